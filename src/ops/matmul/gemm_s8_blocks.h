/* SPDX-License-Identifier: Apache-2.0 */
/* What integer matrix products and convolutions share above the kernels: packed weights, zero points, blocks.
 *
 * For operands a (zero point za, one a row) and b (zero point zb, one a column), modulo 2^32:
 *     sum (a - za)(b - zb) = sum ab - za * (sum b - K * zb) - zb * sum a
 * Both operands are first brought to the kernel's signs: flipping the top bit of a byte moves value and zero
 * point by 128 alike. The term of za goes into the sums' initial values when there is one za, and the term of
 * zb falls away for symmetric weights. */
#ifndef DQ_OPS_GEMM_S8_BLOCKS_H
#define DQ_OPS_GEMM_S8_BLOCKS_H

#include "ops/op.h"

/** One or several right operands of the same shape: how they stand in their tensor, and packed. */
typedef struct dq_qweights {
    const dq_gemm_s8 *kernel;
    dq_gemm_s8_b b;                    /* data: filled in when packing */
    size_t matrices, matrix_step;      /* in bytes of the tensor */
    size_t panels, panel_size;         /* of a matrix; in bytes */
    size_t sums_offset, starts_offset; /* of the packed form: of columns' sums and of panels' starts */
    size_t size; /* of the packed form at most; what is behind its end stays untouched */
} dq_qweights;

/** Fills in the last five fields from the others, kernel and b.use by ops/matmul/matmul_s8.h (fields not set
 * must be zero bytes, padding too: the struct is a dq_call_pack key). False when the size does not fit. */
bool dq_qweights_layout(dq_qweights *w);
/** *packed: the packed form of input i when it is constant, else NULL. */
dq_status dq_qweights_constant(dq_op_call *call, uint32_t i, const dq_qweights *w, const void **packed,
                               dq_error *err);
/** The packed form: `packed`, or when that is NULL made now from input i in `scratch` (w->size bytes). */
const void *dq_qweights_ready(const dq_op_call *call, uint32_t i, const dq_qweights *w, const void *packed,
                              void *scratch);

/** A worker's memory while it computes blocks of `rows` rows by `panels` panels: offsets into its scratch. */
typedef struct dq_qscratch {
    size_t rows, row_sums, row_zero, c, init, cols, zero, transposed, extra;
    size_t size, row_multiple;
} dq_qscratch;

/** How many panels are stored together. DQ_QSTORE_PANELS: as many as fit in DQ_GEMM_S8_NR_MAX columns, so
 * that rows of bytes are written a cache line at once, not in pieces between which other rows displace it. */
typedef enum dq_qstore { DQ_QSTORE_PANEL, DQ_QSTORE_PANELS } dq_qstore;

/** Lays it out with `extra` bytes for the operator's own use; false when the size does not fit. */
bool dq_qscratch_layout(const dq_qweights *w, size_t rows, size_t panels, dq_qstore store, size_t extra,
                        dq_qscratch *s);

/** Rows of a block: enough to use a panel well while it is in the cache, a multiple of the tile's. */
size_t dq_gemm_s8_block_rows(const dq_gemm_s8 *kernel);
/** Panels of a task when there are `blocks` blocks of `rows` rows: all where there is one thread or the
 * blocks alone keep many busy, else fewer. At least 1. */
size_t dq_gemm_s8_chunk(const dq_qweights *w, const dq_threads *threads, size_t blocks, size_t rows);
/** Which chunk of panels and which of `blocks` blocks of rows a task has: where weights fit no cache, all
 * rows meet some of them before the next ones. */
typedef struct dq_qtask {
    size_t block, chunk;
} dq_qtask;
dq_qtask dq_gemm_s8_task(const dq_qweights *w, size_t task, size_t blocks, size_t chunks);
/** Tasks of `products` multiplications each to give a thread at once. */
size_t dq_gemm_s8_grain(size_t products);

typedef struct dq_qblock dq_qblock;
/** Takes columns first … first + cols - 1 of the block's rows: row i is block->c[i * block->c_stride …]. */
typedef void dq_qblock_store_fn(const dq_qblock *block, size_t first, size_t cols);

struct dq_qblock {
    const dq_kernels *kernels;
    const dq_qweights *w;
    const void *packed;
    size_t matrix, first_panel, end_panel;
    size_t rows;                   /* at most those of the scratch */
    size_t row_multiple, c_stride; /* panels stored at once, and their columns */
    dq_gemm_s8_a a;
    /* In the worker's scratch: */
    const uint8_t **row_pointers; /* = a.rows */
    int32_t *row_sums, *c;
    int32_t *row_zero;           /* za of each row … */
    bool per_row;                /* … or */
    int32_t a_zero;              /* that of all */
    int32_t *init, *cols, *zero; /* of each column from first_panel on: bias, (worked out), zb */
    bool any_zero;               /* some zb is not 0 (worked out) */
    char *extra;
    dq_qblock_store_fn *store;
    const void *arg;
};

/** A block over a worker's scratch. The caller sets rows, a's other fields and what row_pointers hold,
 * a_zero or row_zero, init to the bias and zero to zb of each column (all as the kernel's signs want them).
 */
dq_qblock dq_qblock_begin(const dq_qscratch *layout, void *scratch);
/** Fills init with zeros and zero with `value` for the columns of the block's panels. */
void dq_qblock_columns(dq_qblock *block, int32_t value);
/** Works out the columns' terms: once for a range of panels, before the blocks of rows on it. */
void dq_qblock_terms(dq_qblock *block);

/** A row of sums as floats: y[j] = (float)c[j] * factors[j] + bias[j], a rounding an operation; bias NULL:
 * none.
 */
void dq_qsums_scale(const int32_t *c, size_t n, const float *factors, const float *bias, float *y);
/** Computes the sums and hands them to `store`. */
void dq_qblock_run(dq_qblock *block);

/** What flips an operand of 8-bit type `dtype` to the kernel's sign, and moves its zero point along. */
static inline uint8_t dq_gemm_s8_sign_xor(dq_dtype dtype, bool want_signed)
{
    return (dtype == DQ_INT8) == want_signed ? 0 : 0x80;
}
static inline int32_t dq_gemm_s8_zero(int32_t zero_point, dq_dtype dtype, bool want_signed)
{
    if (dq_gemm_s8_sign_xor(dtype, want_signed) == 0)
        return zero_point;
    return want_signed ? zero_point - 128 : zero_point + 128;
}
/** to[i] = from[i] ^ sign_xor for i < n. */
void dq_gemm_s8_copy(const uint8_t *from, size_t n, uint8_t sign_xor, uint8_t *to);

#endif
