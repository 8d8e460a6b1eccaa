/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/matmul_generic.h"
#include "ops/packers.h"

#include "base/checked.h"
#include "base/codec.h"

#include <math.h>
#include <string.h>

enum { ROW_BLOCK = 128, COL_BLOCK = 128 };

dq_dtype dq_matmul_generic_type(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_DOUBLE:
        return DQ_DOUBLE;
    case DQ_INT32:
    case DQ_UINT32:
        return DQ_UINT32;
    case DQ_INT64:
    case DQ_UINT64:
        return DQ_UINT64;
    default:
        return DQ_FLOAT;
    }
}

static size_t width_of(dq_dtype type)
{
    return dq_dtype_get(type)->bits / 8u;
}

/* ---- One tile ----------------------------------------------------------------------------------------- */

#define TILE(name, T)                                                                                        \
    static void name(const void *a_strip, const void *b_strip, size_t k, size_t rows, size_t cols,           \
                     void *out)                                                                              \
    {                                                                                                        \
        enum { STEP = 8 };                                                                                   \
        T *to = out;                                                                                         \
        for (size_t i = 0; i < rows; i++)                                                                    \
            for (size_t j = 0; j < cols; j += STEP) {                                                        \
                const T *a = (const T *)a_strip + i, *b = (const T *)b_strip + j;                            \
                T sum[STEP] = {0};                                                                           \
                for (size_t p = 0; p < k; p++, a += DQ_STRIP_ROWS, b += DQ_STRIP_COLS)                       \
                    for (size_t v = 0; v < STEP; v++)                                                        \
                        sum[v] += *a * b[v];                                                                 \
                memcpy(to + i * DQ_STRIP_COLS + j, sum, sizeof sum);                                         \
            }                                                                                                \
    }

TILE(tile_f64, double)
TILE(tile_u32, uint32_t)
TILE(tile_u64, uint64_t)

static void tile_f32(const dq_kernels *kernels, const float *a, const float *b_strip, size_t k, size_t rows,
                     size_t cols, float *out)
{
    kernels->gemm_block_f32(&(dq_gemm_block_f32){.rows = rows,
                                                 .cols = cols,
                                                 .k = k,
                                                 .a = a,
                                                 .b = b_strip,
                                                 .a_row = k,
                                                 .b_step = DQ_STRIP_COLS,
                                                 .b_panel = DQ_GEMM_F32_NR,
                                                 .c = out,
                                                 .c_row = DQ_STRIP_COLS,
                                                 .last = true,
                                                 .alpha = 1,
                                                 .low = -INFINITY,
                                                 .high = INFINITY});
}

/* Computes a tile. `a` is a strip, or for floats, rows of k elements. */
static void tile(const dq_kernels *kernels, dq_dtype type, const void *a, const void *b_strip, size_t k,
                 size_t rows, size_t cols, void *out)
{
    switch (type) {
    case DQ_FLOAT:
        tile_f32(kernels, a, b_strip, k, rows, cols, out);
        break;
    case DQ_DOUBLE:
        tile_f64(a, b_strip, k, rows, cols, out);
        break;
    case DQ_UINT32:
        tile_u32(a, b_strip, k, rows, cols, out);
        break;
    default:
        tile_u64(a, b_strip, k, rows, cols, out);
    }
}

/* ---- Blocks ------------------------------------------------------------------------------------------- */

typedef struct strips {
    dq_dtype dtype;
    size_t n, k, col_stride, step_stride;
} strips;

void dq_pack_matmul_generic(void *packed, const dq_tensor *from, const void *key)
{
    const strips *s = key;
    const dq_matmul_generic_strip strip = {.data = from->data,
                                           .dtype = s->dtype,
                                           .strip_stride = s->col_stride,
                                           .step_stride = s->step_stride,
                                           .strip_width = DQ_STRIP_COLS,
                                           .k = s->k};
    for (size_t col = 0; col < s->n; col += DQ_STRIP_COLS)
        dq_matmul_generic_pack_strided(&strip, col * s->col_stride, dq_least(s->n - col, DQ_STRIP_COLS),
                                       (float *)packed + col * s->k);
}

dq_status dq_matmul_generic_constant_b(dq_op_call *call, uint32_t i, size_t col_stride, size_t step_stride,
                                       dq_matmul_generic *mm, dq_error *err)
{
    size_t cols, size;
    strips key;
    mm->packed_b = NULL;
    if (mm->type != DQ_FLOAT || !dq_call_constant(call, i) || call->in[i]->count != mm->n * mm->k ||
        call->in[i]->count == 0)
        return DQ_OK;
    if (!dq_align_size(mm->n, DQ_STRIP_COLS, &cols) || !dq_mul_size(cols, mm->k, &size) ||
        !dq_mul_size(size, sizeof(float), &size))
        return dq_no_memory(err, SIZE_MAX, "packed weights");
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.dtype = call->in[i]->dtype;
    key.n = mm->n;
    key.k = mm->k;
    key.col_stride = col_stride;
    key.step_stride = step_stride;
    return dq_call_pack_deferred(call, i, dq_pack_matmul_generic, &key, sizeof key, size, &mm->packed_b, err);
}

/* Rows of k elements that A needs in a worker's scratch: a strip, and for floats its transpose. */
static size_t rows_in_scratch(const dq_matmul_generic *mm)
{
    return mm->type == DQ_FLOAT ? 2 * DQ_STRIP_ROWS : DQ_STRIP_ROWS;
}

dq_status dq_matmul_generic_prepare(dq_op_call *call, const dq_matmul_generic *mm, dq_error *err)
{
    size_t bytes;
    const size_t vectors = (mm->packed_b ? 0 : COL_BLOCK) + rows_in_scratch(mm); /* of k elements each */
    if (!dq_mul_size(mm->k, vectors * width_of(mm->type), &bytes) || !dq_align_size(bytes, DQ_ALIGN, &bytes))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "has sums of %zu products, which is too many",
                            mm->k);
    call->worker_scratch_size = bytes;
    return DQ_OK;
}

typedef struct job {
    const dq_matmul_generic *mm;
    const dq_op_call *call;
    const void *arg;
    size_t row_blocks, col_blocks;
} job;

/* Packs rows of A for tile(): a strip at `to`. Floats are transposed into the memory after it, as float
 * kernels read rows. */
static const void *pack_rows(const job *j, size_t batch, size_t row, size_t rows, char *to)
{
    const dq_matmul_generic *mm = j->mm;
    mm->pack_a(j->arg, batch, row, rows, to);
    if (mm->type != DQ_FLOAT)
        return to;
    uint32_t *strip = (uint32_t *)(void *)to, *transposed = strip + mm->k * DQ_STRIP_ROWS;
    j->call->kernels->transpose_x32(strip, DQ_STRIP_ROWS, mm->k, rows, transposed, mm->k);
    return transposed;
}

/* Computes a block of one strip of A. Each strip of B is used once, while it is in the cache. */
static void flat_block(const job *j, size_t batch, size_t row, size_t col, char *scratch)
{
    const dq_matmul_generic *mm = j->mm;
    size_t rows = dq_least(DQ_STRIP_ROWS, mm->m - row), col_end = dq_least(col + COL_BLOCK, mm->n);
    char *b_strip = scratch + mm->k * rows_in_scratch(mm) * width_of(mm->type);
    double sums[DQ_STRIP_ROWS * DQ_STRIP_COLS];
    const void *a = pack_rows(j, batch, row, rows, scratch);
    for (size_t c = col; c < col_end && !dq_threads_cancelled(j->call->threads); c += DQ_STRIP_COLS) {
        const size_t cols = dq_least(DQ_STRIP_COLS, col_end - c);
        mm->pack_b(j->arg, batch, c, cols, b_strip);
        tile(j->call->kernels, mm->type, a, b_strip, mm->k, rows, cols, sums);
        mm->store(j->arg, batch, row, c, rows, cols, sums);
    }
}

static void block(const job *j, size_t batch, size_t row, size_t col, char *scratch)
{
    const dq_matmul_generic *mm = j->mm;
    size_t width = width_of(mm->type);
    size_t b_strip_size = mm->k * DQ_STRIP_COLS * width;
    const char *b_strips = scratch;
    if (mm->m - row <= DQ_STRIP_ROWS && !mm->packed_b) {
        flat_block(j, batch, row, col, scratch);
        return;
    }
    char *a_strip = scratch + mm->k * COL_BLOCK * width;
    double sums[DQ_STRIP_ROWS * DQ_STRIP_COLS]; /* large enough and aligned for every computing type */
    size_t row_end = dq_least(row + ROW_BLOCK, mm->m), col_end = dq_least(col + COL_BLOCK, mm->n);
    if (mm->packed_b) {
        a_strip = scratch;
        b_strips = (const char *)mm->packed_b + col * mm->k * width;
    }
    for (size_t c = col, s = 0; c < col_end && !mm->packed_b; c += DQ_STRIP_COLS, s++)
        mm->pack_b(j->arg, batch, c, dq_least(DQ_STRIP_COLS, col_end - c), scratch + s * b_strip_size);
    for (size_t r = row; r < row_end && !dq_threads_cancelled(j->call->threads); r += DQ_STRIP_ROWS) {
        size_t rows = dq_least(DQ_STRIP_ROWS, row_end - r);
        const void *a = pack_rows(j, batch, r, rows, a_strip);
        for (size_t c = col, s = 0; c < col_end; c += DQ_STRIP_COLS, s++) {
            const size_t cols = dq_least(DQ_STRIP_COLS, col_end - c);
            tile(j->call->kernels, mm->type, a, b_strips + s * b_strip_size, mm->k, rows, cols, sums);
            mm->store(j->arg, batch, r, c, rows, cols, sums);
        }
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    char *scratch = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i++) {
        size_t col = i % j->col_blocks, rest = i / j->col_blocks;
        block(j, rest / j->row_blocks, rest % j->row_blocks * ROW_BLOCK, col * COL_BLOCK, scratch);
    }
}

void dq_matmul_generic_run(const dq_op_call *call, const dq_matmul_generic *mm, const void *arg)
{
    job j = {mm, call, arg, (mm->m + ROW_BLOCK - 1) / ROW_BLOCK, (mm->n + COL_BLOCK - 1) / COL_BLOCK};
    dq_parallel(call->threads, mm->batches * j.row_blocks * j.col_blocks, 1, piece, &j);
}

/* ---- Packing and storing ------------------------------------------------------------------------------ */

#define PACK(name, S, T, value)                                                                              \
    static void name(const dq_matmul_generic_strip *at, size_t base, size_t count, void *to)                 \
    {                                                                                                        \
        const S *from = at->data;                                                                            \
        const size_t strip_stride = at->strip_stride, step_stride = at->step_stride;                         \
        const size_t strip_width = at->strip_width, k = at->k;                                               \
        T *out = to;                                                                                         \
        if (count == strip_width && strip_stride == 1) {                                                     \
            for (size_t p = 0; p < k; p++, out += strip_width)                                               \
                for (size_t i = 0; i < strip_width; i++) {                                                   \
                    const S x = from[base + p * step_stride + i];                                            \
                    out[i] = value;                                                                          \
                }                                                                                            \
            return;                                                                                          \
        }                                                                                                    \
        if (count == DQ_STRIP_ROWS && strip_width == DQ_STRIP_ROWS) {                                        \
            for (size_t p = 0; p < k; p++, out += DQ_STRIP_ROWS)                                             \
                for (size_t i = 0; i < DQ_STRIP_ROWS; i++) {                                                 \
                    const S x = from[base + i * strip_stride + p * step_stride];                             \
                    out[i] = value;                                                                          \
                }                                                                                            \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t p = 0; p < k; p++, out += strip_width)                                                   \
            for (size_t i = 0; i < strip_width; i++) {                                                       \
                if (i < count) {                                                                             \
                    const S x = from[base + i * strip_stride + p * step_stride];                             \
                    out[i] = value;                                                                          \
                } else {                                                                                     \
                    out[i] = 0;                                                                              \
                }                                                                                            \
            }                                                                                                \
    }

PACK(pack_f32, float, float, x)
PACK(pack_f64, double, double, x)
PACK(pack_u32, uint32_t, uint32_t, x)
PACK(pack_u64, uint64_t, uint64_t, x)
PACK(pack_f16, uint16_t, float, dq_f16_to_f32(x))
PACK(pack_bf16, uint16_t, float, dq_bf16_to_f32(x))

void dq_matmul_generic_pack_strided(const dq_matmul_generic_strip *from, size_t base, size_t count, void *to)
{
    switch (from->dtype) {
    case DQ_FLOAT:
        pack_f32(from, base, count, to);
        break;
    case DQ_DOUBLE:
        pack_f64(from, base, count, to);
        break;
    case DQ_FLOAT16:
        pack_f16(from, base, count, to);
        break;
    case DQ_BFLOAT16:
        pack_bf16(from, base, count, to);
        break;
    case DQ_INT32:
    case DQ_UINT32:
        pack_u32(from, base, count, to);
        break;
    default:
        pack_u64(from, base, count, to);
        break;
    }
}

void dq_matmul_generic_write(void *data, dq_dtype dtype, size_t at, const void *from, size_t n)
{
    size_t width = width_of(dtype);
    if (dtype != DQ_FLOAT16 && dtype != DQ_BFLOAT16) {
        memcpy((char *)data + at * width, from, n * width);
        return;
    }
    const float *x = from;
    for (size_t i = 0; i < n; i++)
        dq_put_bits(data, 16, at + i, dtype == DQ_FLOAT16 ? dq_f32_to_f16(x[i]) : dq_f32_to_bf16(x[i]));
}
