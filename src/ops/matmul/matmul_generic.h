/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products that are not quantized, MatMul, Gemm and Conv give the operands and take the
 * results through callbacks, block by block. Each sum runs over k from 0 up, one after the other, in the
 * computing type: float for float16, bfloat16 and float, double for double, integers modulo 2^32 or 2^64. A
 * float product and its sum are rounded once (dq_gemm_block_f32_fn), a double product before it is added: the
 * bits do not depend on threads or the processor. */
#ifndef DQ_OPS_MATMUL_GENERIC_H
#define DQ_OPS_MATMUL_GENERIC_H

#include "ops/op.h"

enum {
    DQ_STRIP_ROWS = 8,  /* rows of a strip of A */
    DQ_STRIP_COLS = 32, /* columns of a strip of B */
};

/** Lays `count` lanes (rows of A or columns of B) from number `first` on as to[p * lanes + i], p below k, in
 * the computing type; rows or columns past `count` are zero, up to DQ_STRIP_ROWS or DQ_STRIP_COLS. */
typedef void dq_matmul_generic_pack_fn(const void *arg, size_t batch, size_t first, size_t count, void *to);

/** Takes a finished tile, tile[i * DQ_STRIP_COLS + j] in the computing type. */
typedef void dq_matmul_generic_store_fn(const void *arg, size_t batch, size_t row, size_t col, size_t rows,
                                        size_t cols, const void *tile);

typedef struct dq_matmul_generic {
    dq_dtype type; /* computing type: dq_matmul_generic_type of the operands' */
    size_t batches, m, n, k;
    dq_matmul_generic_pack_fn *pack_a, *pack_b;
    dq_matmul_generic_store_fn *store;
    const void *packed_b; /* the strips of the only matrix B, or NULL: pack_b makes them */
} dq_matmul_generic;

/** The computing type of an element type. */
dq_dtype dq_matmul_generic_type(dq_dtype dtype);

/** Packs input i once for all runs when it is constant and one float matrix of k by n: column j, step p is
 * element j * col_stride + p * step_stride. In prepare, before dq_matmul_generic_prepare. */
dq_status dq_matmul_generic_constant_b(dq_op_call *call, uint32_t i, size_t col_stride, size_t step_stride,
                                       dq_matmul_generic *mm, dq_error *err);

/** Asks for the worker scratch that dq_matmul_generic_run needs; in prepare. */
dq_status dq_matmul_generic_prepare(dq_op_call *call, const dq_matmul_generic *mm, dq_error *err);
void dq_matmul_generic_run(const dq_op_call *call, const dq_matmul_generic *mm, const void *arg);

/** Rows or columns at fixed strides, in elements: of the lanes from `base` on, lane i has at step p the
 * element base + i * lane_stride + p * step_stride of `data`. */
typedef struct dq_matmul_generic_strip {
    const void *data;
    dq_dtype dtype;
    size_t strip_stride, step_stride;
    size_t strip_width, k; /* rows or columns of a strip: DQ_STRIP_ROWS or DQ_STRIP_COLS */
} dq_matmul_generic_strip;

/** A pack function's work for `count` of them. */
void dq_matmul_generic_pack_strided(const dq_matmul_generic_strip *from, size_t base, size_t count, void *to);

/** Writes n numbers of the computing type as elements of `dtype` from element `at` of `data` on, rounded
 * once. */
void dq_matmul_generic_write(void *data, dq_dtype dtype, size_t at, const void *from, size_t n);

#endif
