/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked matrix product of any element type, for MatMul, Gemm, Einsum and Conv. Callbacks pack the operands
 * into strips and consume finished tiles. Each sum adds its terms in ascending k in the computing type: float
 * for float16, bfloat16 and float; double for double; integers modulo 2^32 or 2^64. Float sums use fused
 * multiply-adds (dq_gemm_block_f32_fn); double ones round the product, then the sum. So results do not depend
 * on the threads or the processor. */
#ifndef DQ_OPS_MATMUL_GENERIC_H
#define DQ_OPS_MATMUL_GENERIC_H

#include "ops/op.h"

enum {
    DQ_STRIP_ROWS = 8,  /* rows of a strip (micro-panel) of A */
    DQ_STRIP_COLS = 32, /* columns of a strip of B */
};

/** Callback: packs a strip of `count` rows of A or columns of B, from number `first` on, in the computing
 * type. With W = DQ_STRIP_ROWS or DQ_STRIP_COLS, element p of row (column) first + i becomes to[p * W + i],
 * for p < k. Rows (columns) from `count` to W - 1 become zero. */
typedef void dq_matmul_generic_pack_fn(const void *arg, size_t batch, size_t first, size_t count, void *to);

/** Callback: stores a finished tile of rows × cols results at (row, col) of matrix `batch`. Result (i, j) is
 * tile[i * DQ_STRIP_COLS + j] in the computing type. */
typedef void dq_matmul_generic_store_fn(const void *arg, size_t batch, size_t row, size_t col, size_t rows,
                                        size_t cols, const void *tile);

typedef struct dq_matmul_generic {
    dq_dtype type; /* computing type: dq_matmul_generic_type of the operands' element type */
    size_t batches, m, n, k;
    dq_matmul_generic_pack_fn *pack_a, *pack_b;
    dq_matmul_generic_store_fn *store;
    const void *packed_b; /* strips of the single matrix B, packed in prepare; NULL: pack_b packs them */
} dq_matmul_generic;

/** The computing type of an element type. */
dq_dtype dq_matmul_generic_type(dq_dtype dtype);

/** In prepare, before dq_matmul_generic_prepare: packs input i (B) once for all runs, if it is constant and a
 * single k × n matrix whose computing type is float. B(p, j) is element j * col_stride + p * step_stride. */
dq_status dq_matmul_generic_constant_b(dq_op_call *call, uint32_t i, size_t col_stride, size_t step_stride,
                                       dq_matmul_generic *mm, dq_error *err);

/** In prepare: sets the worker scratch size that dq_matmul_generic_run needs. */
dq_status dq_matmul_generic_prepare(dq_op_call *call, const dq_matmul_generic *mm, dq_error *err);
void dq_matmul_generic_run(const dq_op_call *call, const dq_matmul_generic *mm, const void *arg);

/** A strip of rows or columns at fixed strides in elements. With `base` the first element of the strip,
 * element p of row (column) i is element base + i * strip_stride + p * step_stride of `data`. */
typedef struct dq_matmul_generic_strip {
    const void *data;
    dq_dtype dtype;
    size_t strip_stride, step_stride;
    size_t strip_width, k; /* strip_width: DQ_STRIP_ROWS or DQ_STRIP_COLS */
} dq_matmul_generic_strip;

/** Does the work of a dq_matmul_generic_pack_fn for `count` rows (columns) of `from`. */
void dq_matmul_generic_pack_strided(const dq_matmul_generic_strip *from, size_t base, size_t count, void *to);

/** Converts n numbers of the computing type to `dtype`, rounded once, and writes them from element `at` of
 * `data` on. */
void dq_matmul_generic_write(void *data, dq_dtype dtype, size_t at, const void *from, size_t n);

#endif
