/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked 8-bit GEMM: packed weights, zero points and blocks, shared by integer matrix products and
 * convolutions.
 *
 * For operands a (zero point za, one for each row) and b (zero point zb, one for each column), modulo 2^32:
 *     sum (a - za)(b - zb) = sum ab - za * (sum b - K * zb) - zb * sum a
 * Both operands first get the signedness that the kernel requires: inverting the sign bit of a byte moves
 * value and zero point alike by 128. The compensation of a single za goes into the initial values of the
 * accumulators. The compensation of zb vanishes for symmetric weights. */
#ifndef DQ_OPS_GEMM_S8_BLOCKS_H
#define DQ_OPS_GEMM_S8_BLOCKS_H

#include "ops/op.h"

/** Packed weights: one or several right operands (matrices) of one shape, with their layout in the tensor and
 * in the packed form. */
typedef struct dq_qweights {
    const dq_gemm_s8 *kernel;
    dq_gemm_s8_b b;                    /* layout of one matrix; b.data is set when packing */
    size_t matrices, matrix_step;      /* matrix_step: bytes from one matrix to the next in the tensor */
    size_t panels, panel_size;         /* panels of a matrix; maximum bytes of a panel */
    size_t sums_offset, starts_offset; /* in the packed form: of the column sums; of the offsets of panels */
    size_t size;                       /* maximum bytes of the packed form; unused ones are never written */
} dq_qweights;

/** Sets the last five fields from the others. ops/matmul/matmul_s8.h chooses kernel and b.use before. Fields
 * that are not set must be zero bytes, and padding too: the struct is a dq_call_pack key. False if the size
 * overflows size_t. */
bool dq_qweights_layout(dq_qweights *w);
/** In prepare: *packed becomes the packed form of input i if it is constant, else NULL. */
dq_status dq_qweights_constant(dq_op_call *call, uint32_t i, const dq_qweights *w, const void **packed,
                               dq_error *err);
/** For packed forms that the operator makes itself: the byte offset of the first panel, and packing of panel
 * i, counted over all matrices, at byte `start` of `packed` from columns `column` … of b. Returns the start
 * of the next panel. Panels are packed in ascending order. */
size_t dq_qweights_first_panel(const dq_qweights *w);
size_t dq_qweights_pack_panel(const dq_qweights *w, const dq_gemm_s8_b *b, size_t column, size_t i,
                              size_t start, void *packed);
/** In run: returns the packed form. It is `packed`, or if that is NULL, input i packed now into `scratch`
 * (w->size bytes). */
const void *dq_qweights_ready(const dq_op_call *call, uint32_t i, const dq_qweights *w, const void *packed,
                              void *scratch);

/** Layout of a worker's scratch for blocks of `rows` rows by `panels` panels: byte offsets. */
typedef struct dq_qscratch {
    size_t rows, row_sums, row_zero, c, init, cols, zero, transposed, extra;
    size_t size, row_multiple;
} dq_qscratch;

/** Panels per call of `store`: one, or with DQ_QSTORE_PANELS as many as fit in DQ_GEMM_S8_NR_MAX columns.
 * Rows of bytes are then written in whole cache lines. A line that is written in parts may be evicted between
 * them. */
typedef enum dq_qstore { DQ_QSTORE_PANEL, DQ_QSTORE_PANELS } dq_qstore;

/** Sets *s, with `extra` bytes for the operator's own use. False if the size overflows size_t. */
bool dq_qscratch_layout(const dq_qweights *w, size_t rows, size_t panels, dq_qstore store, size_t extra,
                        dq_qscratch *s);

/** Rows of a block (MC): a multiple of the tile's MR, enough to reuse a panel while it is in the cache. */
size_t dq_gemm_s8_block_rows(const dq_gemm_s8 *kernel);
/** Panels of a task (a chunk) for `blocks` blocks of `rows` rows. A task has all panels if there is one
 * thread, or if the blocks alone keep all threads busy; else fewer. At least 1. */
size_t dq_gemm_s8_chunk(const dq_qweights *w, const dq_threads *threads, size_t blocks, size_t rows);
/** The block of rows and the chunk of panels of task number `task`. If the weights exceed the caches, the row
 * blocks vary fastest: all rows use one chunk before the next chunk is read. */
typedef struct dq_qtask {
    size_t block, chunk;
} dq_qtask;
dq_qtask dq_gemm_s8_task(const dq_qweights *w, size_t task, size_t blocks, size_t chunks);
/** Grain of dq_parallel for tasks of `products` multiply-adds each. */
size_t dq_gemm_s8_grain(size_t products);

typedef struct dq_qblock dq_qblock;
/** Callback: consumes the finished sums of columns first … first + cols - 1, of all rows of the block. Row i
 * begins at block->c + i * block->c_stride. */
typedef void dq_qblock_store_fn(const dq_qblock *block, size_t first, size_t cols);

struct dq_qblock {
    const dq_kernels *kernels;
    const dq_qweights *w;
    const void *packed;
    size_t matrix, first_panel, end_panel;
    size_t rows;                   /* at most as many as the scratch was laid out for */
    size_t row_multiple, c_stride; /* panels per call of `store`, and their columns */
    dq_gemm_s8_a a;
    /* In the worker's scratch: */
    const uint8_t **row_pointers; /* = a.rows */
    int32_t *row_sums, *c;        /* sums of A's rows, set by dq_qblock_run; accumulators */
    int32_t *row_zero;            /* za of each row, if per_row */
    bool per_row;
    int32_t a_zero; /* za of all rows, if not per_row */
    /* Of each column from first_panel on: the bias; sum b - K * zb, set by dq_qblock_terms; zb. */
    int32_t *init, *cols, *zero;
    bool any_zero; /* some zb is not 0; set by dq_qblock_terms */
    char *extra;
    /* If not NULL: C of the whole matrix from the block's first row on, for results that are the sums
     * themselves. Groups of whole panels go there, and `store` gets the columns that are left. */
    int32_t *result;
    size_t result_stride;
    dq_qblock_store_fn *store;
    const void *arg;
};

/** A block over a worker's scratch. The caller then sets the rows, the fields of `a`, the row pointers,
 * a_zero or row_zero, init (the bias) and zero (zb of each column). Zero points are those after sign
 * inversion (dq_gemm_s8_zero). */
dq_qblock dq_qblock_begin(const dq_qscratch *layout, void *scratch);
/** Fills init with zeros and zero with `value` for the columns of the block's panels. */
void dq_qblock_columns(dq_qblock *block, int32_t value);
/** Computes the compensation of each column: once for a range of panels, before the blocks of rows on it. */
void dq_qblock_terms(dq_qblock *block);

/** Computes the sums of the block and calls `store` for each group of panels. */
void dq_qblock_run(dq_qblock *block);

/** The mask that gives an operand of 8-bit type `dtype` the signedness of the kernel: 0, or 0x80 to invert
 * the sign bits. dq_gemm_s8_zero is the zero point after that. */
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
