/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that own their memory, for callers of the library. dq_tensor_free frees them. */
#ifndef DQ_TENSOR_OWNED_H
#define DQ_TENSOR_OWNED_H

#include "tensor/tensor.h"

/** Creates a tensor of the type and shape of `like`, which is not a list, with memory of the allocator (NULL:
 * malloc). Elements are uninitialized, but strings are empty. The allocator is copied, so the tensor may
 * outlive its owner. */
dq_status dq_tensor_new_owned(const dq_allocator *allocator, const dq_tensor *like, dq_tensor **out,
                              dq_error *err);
/** Copies a tensor, sequence or optional, including the bytes of strings. */
dq_status dq_tensor_copy_owned(const dq_allocator *allocator, const dq_tensor *t, dq_tensor **out,
                               dq_error *err);
/** Creates a sequence or optional like `like` that owns the items. If `items` is NULL, its `count` items are
 * NULL. */
dq_status dq_tensor_new_list(const dq_allocator *allocator, const dq_tensor *like, size_t count,
                             dq_tensor *const *items, dq_tensor **out, dq_error *err);
/** Sets element i < count of a string tensor that owns its memory to a copy of the bytes. */
dq_status dq_tensor_put_string(dq_tensor *t, size_t i, const char *bytes, size_t length, dq_error *err);

/** Frees a malloc'ed tensor or one made by these functions, with everything that it owns. NULL is ignored. */
void dq_tensor_free_owned(dq_tensor *t);

#endif
