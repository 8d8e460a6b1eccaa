/* SPDX-License-Identifier: Apache-2.0 */
/* A program: a checked model and the caches that all its plans share. It is created at load; afterwards only
 * the caches change, each under its own lock. */
#ifndef DQ_PLAN_PROGRAM_H
#define DQ_PLAN_PROGRAM_H

#include "ops/op.h"
#include "schema/schema.h"

typedef struct dq_program {
    const dq_allocator *allocator; /* Of the program and its caches; NULL: malloc. */
    dq_ir *ir;
    dq_schemas *schemas;
    dq_packs *packs;
    const dq_error *faults; /* One error for each node that cannot run, in the order of the nodes. */
    size_t fault_count, fault_capacity;
    const dq_dtype *dtypes; /* By value id: element types of tensors, as far as schemas determine them. */
    size_t dtype_count;
    struct dq_rewrite_cache *rewrites; /* See rewrite_cache.h. */
    /* Values that depend on initializers only, see fold_constants.h. */
    struct dq_folded *folded;
} dq_program;

/** Checks every node of the linked graph and its subgraphs: schema, attributes, types as far as declarations
 * determine them, and whether it is implemented. Errors of nodes are stored in `faults`, not returned. Takes
 * ownership of `ir` on DQ_OK only; the caller keeps `schemas`. The allocator (NULL: malloc) outlives the
 * program. */
dq_status dq_program_create(dq_ir *ir, dq_schemas *schemas, const dq_allocator *allocator, dq_program **out,
                            dq_error *err);
void dq_program_free(dq_program *program);

#endif
