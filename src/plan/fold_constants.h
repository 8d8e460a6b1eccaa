/* SPDX-License-Identifier: Apache-2.0 */
/* Values that follow from initializers alone, computed once for all plans of a program. */
#ifndef DQ_PLAN_FOLD_CONSTANTS_H
#define DQ_PLAN_FOLD_CONSTANTS_H

#include "tensor/tensor.h"

typedef struct dq_folded dq_folded;

/** The allocator (NULL: malloc) outlives it. */
dq_status dq_folded_create(size_t value_count, const dq_allocator *allocator, dq_folded **out, dq_error *err);
void dq_folded_free(dq_folded *folded);

/** The value with that id, or NULL when it has not been computed. */
const dq_tensor *dq_folded_get(dq_folded *folded, uint32_t id);
/** Keeps a copy of a value's tensor, and gives the kept one: `t`'s, or that of a thread that was quicker. */
dq_status dq_folded_put(dq_folded *folded, uint32_t id, const dq_tensor *t, const dq_tensor **kept,
                        dq_error *err);

#endif
