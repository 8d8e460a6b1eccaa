/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: a cache of values that depend on initializers only. Each is computed once for all plans
 * of a program. */
#ifndef DQ_PLAN_FOLD_CONSTANTS_H
#define DQ_PLAN_FOLD_CONSTANTS_H

#include "tensor/tensor.h"

typedef struct dq_folded dq_folded;

/** The allocator (NULL: malloc) must outlive the cache. */
dq_status dq_folded_create(size_t value_count, const dq_allocator *allocator, dq_folded **out, dq_error *err);
void dq_folded_free(dq_folded *folded);

/** The value with that id; NULL if it is not computed yet. */
const dq_tensor *dq_folded_get(dq_folded *folded, uint32_t id);
/** Stores a copy of the value's tensor. *kept is the stored tensor, which another thread may have stored
 * first. */
dq_status dq_folded_put(dq_folded *folded, uint32_t id, const dq_tensor *t, const dq_tensor **kept,
                        dq_error *err);

#endif
