/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of a tensor's elements in one wide type: what operators use that take many element types but
 * compute in few. `first` is the index of the first element, n their number, `data` a tensor's. */
#ifndef DQ_OPS_ROWS_H
#define DQ_OPS_ROWS_H

#include "base/codec.h"
#include "kernels/kernels.h"
#include "tensor/tensor.h"

/** Elements that operators take at a time; their buffers live on the stack. */
enum { DQ_ROW = 256 };

/** Elements of a piece of parallel work, of `count` to be quantized or dequantized: where inputs and results
 * are far larger than caches, whole rows that kernels write past them. A multiple of 8, so that packed
 * results split at bytes. */
static inline size_t dq_row_grain(size_t count)
{
    return count / 8 >= DQ_FAR_ROW ? DQ_FAR_ROW : 16384;
}

/** Elements of any integer, bool or float type as doubles: exact but for (u)int64 above 2^53. */
void dq_load_doubles(dq_dtype dtype, const void *data, size_t first, size_t n, double *out);
/** Elements of any integer or bool type; uint64 is reinterpreted. */
void dq_load_ints(dq_dtype dtype, const void *data, size_t first, size_t n, int64_t *out);

/** Indices of any integer type, from -length on counted from the end, brought below `length`: how many until
 * one is outside (n: none is). */
size_t dq_load_indices(const dq_tensor *t, size_t first, size_t n, int64_t length, size_t *out);

/** Elements of any float type up to 32 bits, exactly. */
void dq_load_floats(const dq_kernels *k, dq_dtype dtype, const void *data, size_t first, size_t n,
                    float *out);
/** Elements of a packed integer type: all fit in an int8. */
void dq_load_packed(dq_dtype dtype, const void *data, size_t first, size_t n, int8_t *out);

/** The low bits of each value, into any integer or bool type. For packed types the bytes are read first, so
 * that two threads may not write the same byte. */
void dq_store_ints(dq_dtype dtype, void *data, size_t first, size_t n, const int64_t *in);
/** Each value rounded once into any float type; `saturate` and `round` as for dq_encode_float. */
void dq_store_floats(dq_dtype dtype, void *data, size_t first, size_t n, const double *in, bool saturate,
                     dq_round round);

/** dq_round_to_odd of each: what the next function then rounds is as if rounded once. */
void dq_round_all_to_odd(const double *x, size_t n, float *y);
/** Each value rounded once into any float type up to 32 bits. */
void dq_store_from_floats(const dq_kernels *k, dq_dtype dtype, void *data, size_t first, size_t n,
                          const float *in, bool saturate);
/** The low bits of each value, into a packed integer type; threads as for dq_store_ints. */
void dq_store_packed(dq_dtype dtype, void *data, size_t first, size_t n, const int8_t *in);

/** Clears what elements [begin, end) occupy; begin a multiple of 8, so that no byte is shared with what lies
 * before. A packed tensor's padding after its last element is cleared too. */
void dq_clear_elements(dq_dtype dtype, void *data, size_t begin, size_t end);

#endif
