/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/program.h"

#include "base/memory.h"
#include "plan/check.h"
#include "plan/fold_constants.h"
#include "plan/rewrite_cache.h"
#include "rewrite/rewrite.h"

/* Collects faults in a list outside of an arena: an arena would keep every outgrown copy. */
static dq_status add_fault(void *arg, const dq_error *fault)
{
    dq_program *p = arg;
    if (p->fault_count == p->fault_capacity) {
        const size_t capacity = p->fault_capacity ? 2 * p->fault_capacity : 1;
        dq_error *grown = dq_memory_grow(p->allocator, (void *)(uintptr_t)p->faults,
                                         p->fault_capacity * sizeof *grown, capacity * sizeof *grown);
        if (!grown)
            return DQ_OUT_OF_MEMORY;
        p->faults = grown;
        p->fault_capacity = capacity;
    }
    *(dq_error *)(uintptr_t)&p->faults[p->fault_count++] = *fault;
    return DQ_OK;
}

static dq_status fill(dq_program *p, dq_ir *ir, dq_error *err)
{
    p->dtype_count = (size_t)ir->value_count + 1;
    DQ_TRY(dq_packs_create(p->allocator, &p->packs, err));
    DQ_TRY(dq_folded_create(ir->value_count, p->allocator, &p->folded, err));
    DQ_TRY(dq_rewrite_cache_create(ir->graph_count, p->allocator, &p->rewrites, err));
    dq_dtype *dtypes = dq_memory_calloc(p->allocator, p->dtype_count, sizeof *dtypes);
    p->dtypes = dtypes;
    if (!dtypes)
        return dq_no_memory(err, p->dtype_count * sizeof *dtypes, "a program");
    DQ_TRY(dq_check_graph(ir->graph, p->schemas, add_fault, p, dtypes, err));
    return dq_cse_quantize(ir) ? DQ_OK : dq_no_memory(err, p->dtype_count * sizeof *dtypes, "a program");
}

dq_status dq_program_create(dq_ir *ir, dq_schemas *schemas, const dq_allocator *allocator, dq_program **out,
                            dq_error *err)
{
    dq_program *p = dq_memory_calloc(allocator, 1, sizeof *p);
    if (!p)
        return dq_no_memory(err, sizeof *p, "a program");
    p->schemas = schemas;
    p->allocator = allocator;
    dq_status status = fill(p, ir, err);
    if (status != DQ_OK) {
        dq_program_free(p);
        return status;
    }
    p->ir = ir;
    ir->dtypes = p->dtypes;
    *out = p;
    return DQ_OK;
}

void dq_program_free(dq_program *program)
{
    if (!program)
        return;
    const dq_allocator *allocator = program->allocator;
    dq_rewrite_cache_free(program->rewrites);
    dq_folded_free(program->folded);
    dq_packs_free(program->packs);
    dq_ir_free(program->ir);
    dq_memory_free(allocator, program->faults, program->fault_capacity * sizeof *program->faults);
    dq_memory_free(allocator, program->dtypes, program->dtype_count * sizeof *program->dtypes);
    dq_memory_free(allocator, program, sizeof *program);
}
