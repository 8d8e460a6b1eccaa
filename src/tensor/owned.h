/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that own their memory, for the caller: dq_tensor_free frees them. */
#ifndef DQ_TENSOR_OWNED_H
#define DQ_TENSOR_OWNED_H

#include "tensor/tensor.h"

/** A tensor of the type and shape of `like`, which is no list, with memory of the allocator (NULL: malloc).
 * The elements are not set, but strings are empty. The allocator is copied: the tensor may outlive its owner.
 */
dq_status dq_tensor_new_owned(const dq_allocator *allocator, const dq_tensor *like, dq_tensor **out,
                              dq_error *err);
/** A copy of a tensor, sequence or optional, down to the bytes of strings. */
dq_status dq_tensor_copy_owned(const dq_allocator *allocator, const dq_tensor *t, dq_tensor **out,
                               dq_error *err);
/** A sequence or optional like `like` that owns the items; items NULL: `count` that are NULL. */
dq_status dq_tensor_new_list(const dq_allocator *allocator, const dq_tensor *like, size_t count,
                             dq_tensor *const *items, dq_tensor **out, dq_error *err);
/** Sets element i, below count, of a string tensor that owns its memory to a copy. */
dq_status dq_tensor_put_string(dq_tensor *t, size_t i, const char *bytes, size_t length, dq_error *err);

/** Frees a tensor that was malloc'ed or made by these, with what it owns. NULL is ignored. */
void dq_tensor_free_owned(dq_tensor *t);

#endif
