/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/program.h"

#include "plan/check.h"
#include "plan/fold.h"
#include "plan/fuse.h"
#include "plan/twins.h"

#include <stdlib.h>

/* Faults are collected in a malloc'ed list: the arena would keep every outgrown copy. */
static dq_status add_fault(void *arg, const dq_error *fault)
{
    dq_program *p = arg;
    dq_error *grown = realloc((void *)(uintptr_t)p->faults, (p->fault_count + 1) * sizeof *grown);
    if (!grown)
        return DQ_OUT_OF_MEMORY;
    grown[p->fault_count++] = *fault;
    p->faults = grown;
    return DQ_OK;
}

dq_status dq_program_create(dq_ir *ir, dq_schemas *schemas, dq_program **out, dq_error *err)
{
    dq_program *p = calloc(1, sizeof *p);
    if (!p)
        return dq_no_memory(err, sizeof *p, "a program");
    p->schemas = schemas;
    dq_status status = dq_packs_create(&p->packs, err);
    if (status == DQ_OK)
        status = dq_folded_create(ir->value_count, &p->folded, err);
    if (status == DQ_OK)
        status = dq_fusions_create(ir->graph_count, &p->fusions, err);
    dq_dtype *dtypes = calloc((size_t)ir->value_count + 1, sizeof *dtypes);
    p->dtypes = dtypes;
    if (status == DQ_OK && !dtypes)
        status = dq_no_memory(err, ir->value_count * sizeof *dtypes, "a program");
    if (status == DQ_OK)
        status = dq_check_graph(ir->graph, schemas, add_fault, p, dtypes, err);
    if (status == DQ_OK && !dq_merge_twins(ir))
        status = dq_no_memory(err, ir->value_count * sizeof *dtypes, "a program");
    if (status != DQ_OK) {
        dq_program_free(p);
        return status;
    }
    p->ir = ir;
    *out = p;
    return DQ_OK;
}

void dq_program_free(dq_program *program)
{
    if (!program)
        return;
    dq_fusions_free(program->fusions);
    dq_folded_free(program->folded);
    dq_packs_free(program->packs);
    dq_ir_free(program->ir);
    free((void *)(uintptr_t)program->faults);
    free((void *)(uintptr_t)program->dtypes);
    free(program);
}
