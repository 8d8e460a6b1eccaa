/* SPDX-License-Identifier: Apache-2.0 */
/* A program: a model that has been checked, with what all its plans share. Made once at load; afterwards only
 * its caches change, under locks of their own. */
#ifndef DQ_PLAN_PROGRAM_H
#define DQ_PLAN_PROGRAM_H

#include "ops/op.h"
#include "schema/schema.h"

typedef struct dq_program {
    const dq_allocator *allocator; /* of the program and its caches; NULL: malloc */
    dq_ir *ir;
    dq_schemas *schemas;
    dq_packs *packs;
    const dq_error *faults; /* one for each node that cannot run, in the order of the nodes */
    size_t fault_count, fault_capacity;
    const dq_dtype *dtypes; /* by value id: element types of tensors as far as the schemas tell */
    size_t dtype_count;
    struct dq_rewrite_cache *rewrites; /* see rewrite_cache.h */
    struct dq_folded *folded; /* values computed once from initializers alone, see fold_constants.h */
} dq_program;

/** Checks every node of the linked graph, inner graphs too: schema, attributes, types as far as they follow
 * from declarations, and that there is an implementation. Faults are kept, not returned. Takes `ir` over on
 * DQ_OK only; `schemas` stays the caller's. The allocator (NULL: malloc) outlives the program. */
dq_status dq_program_create(dq_ir *ir, dq_schemas *schemas, const dq_allocator *allocator, dq_program **out,
                            dq_error *err);
void dq_program_free(dq_program *program);

#endif
