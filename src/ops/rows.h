/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of contiguous elements in one wider type, for operators that accept many element types but
 * compute in few. `first` is the index of the first element, n their number, `data` a tensor's data. */
#ifndef DQ_OPS_ROWS_H
#define DQ_OPS_ROWS_H

#include "base/codec.h"
#include "kernels/kernels.h"
#include "tensor/tensor.h"

/** Elements of a block that operators convert at a time; its buffers are on the stack. */
enum { DQ_ROW = 256 };

/** Elements of a task that quantizes or dequantizes, of `count` in all. Tensors far larger than the caches
 * get whole rows, whose results kernels write with non-temporal stores. A multiple of 8, so that packed
 * results split at byte boundaries. */
static inline size_t dq_row_grain(size_t count)
{
    return count / 8 >= DQ_FAR_ROW ? DQ_FAR_ROW : 16384;
}

/** Converts elements of any integer, bool or float type to doubles. Exact except for (u)int64 above 2^53. */
void dq_load_doubles(dq_dtype dtype, const void *data, size_t first, size_t n, double *out);
/** Converts elements of any integer or bool type; uint64 is reinterpreted. */
void dq_load_ints(dq_dtype dtype, const void *data, size_t first, size_t n, int64_t *out);

/** Loads indices of any integer type and normalizes them to [0, length); negative ones count from the end.
 * Returns how many are valid before the first one out of range: n if all are. */
size_t dq_load_indices(const dq_tensor *t, size_t first, size_t n, int64_t length, size_t *out);

/** Converts elements of any float type up to 32 bits; exact. */
void dq_load_floats(const dq_kernels *k, dq_dtype dtype, const void *data, size_t first, size_t n,
                    float *out);
/** Unpacks elements of a packed integer type; all fit in an int8. */
void dq_load_packed(dq_dtype dtype, const void *data, size_t first, size_t n, int8_t *out);

/** Stores the low bits of each value as any integer or bool type. Packed types read and modify whole bytes:
 * two threads may not write the same byte. */
void dq_store_ints(dq_dtype dtype, void *data, size_t first, size_t n, const int64_t *in);
/** Rounds each value once to any float type; `saturate` and `round` as for dq_encode_float. */
void dq_store_floats(dq_dtype dtype, void *data, size_t first, size_t n, const double *in, bool saturate,
                     dq_round round);

/** Rounds each double to float with dq_round_to_odd. dq_store_from_floats then rounds the result as if from
 * the double, without double rounding. */
void dq_round_all_to_odd(const double *x, size_t n, float *y);
/** Rounds each value once to any float type up to 32 bits. */
void dq_store_from_floats(const dq_kernels *k, dq_dtype dtype, void *data, size_t first, size_t n,
                          const float *in, bool saturate);
/** Stores the low bits of each value as a packed integer type; threads as for dq_store_ints. */
void dq_store_packed(dq_dtype dtype, void *data, size_t first, size_t n, const int8_t *in);

/** Zeroes elements [begin, end). `begin` is a multiple of 8, so that no byte is shared with earlier elements.
 * The padding bits after the last element of a packed tensor are zeroed too. */
void dq_clear_elements(dq_dtype dtype, void *data, size_t begin, size_t end);

#endif
