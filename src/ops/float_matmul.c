#include "ops/float_matmul.h"

#include "base/checked.h"
#include "base/codec.h"

#include <string.h>

enum { ROW_BLOCK = 64, COL_BLOCK = 64, ALIGN = 64 };

dq_dtype dq_fmm_type(dq_dtype dtype)
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
    static void name(const void *a_strip, const void *b_strip, size_t k, void *out)                          \
    {                                                                                                        \
        const T *a = a_strip, *b = b_strip;                                                                  \
        T sum[DQ_FMM_ROWS][DQ_FMM_COLS] = {{0}};                                                             \
        for (size_t p = 0; p < k; p++, a += DQ_FMM_ROWS, b += DQ_FMM_COLS)                                   \
            for (size_t i = 0; i < DQ_FMM_ROWS; i++)                                                         \
                for (size_t j = 0; j < DQ_FMM_COLS; j++)                                                     \
                    sum[i][j] += a[i] * b[j];                                                                \
        memcpy(out, sum, sizeof sum);                                                                        \
    }

TILE(tile_f32, float)
TILE(tile_f64, double)
TILE(tile_u32, uint32_t)
TILE(tile_u64, uint64_t)

typedef void tile_fn(const void *a_strip, const void *b_strip, size_t k, void *out);

static tile_fn *tile_of(dq_dtype type)
{
    return type == DQ_FLOAT    ? tile_f32
           : type == DQ_DOUBLE ? tile_f64
           : type == DQ_UINT32 ? tile_u32
                               : tile_u64;
}

/* ---- Blocks ------------------------------------------------------------------------------------------- */

dq_status dq_fmm_prepare(dq_op_call *call, const dq_fmm *mm, dq_error *err)
{
    size_t bytes;
    if (!dq_mul_size(mm->k, (COL_BLOCK + DQ_FMM_ROWS) * width_of(mm->type), &bytes) ||
        !dq_align_size(bytes, ALIGN, &bytes))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "has sums of %zu products, which is too many",
                            mm->k);
    call->worker_scratch_size = bytes;
    return DQ_OK;
}

typedef struct job {
    const dq_fmm *mm;
    const dq_op_call *call;
    const void *arg;
    size_t row_blocks, col_blocks;
    tile_fn *tile;
} job;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void block(const job *j, size_t batch, size_t row, size_t col, char *b_strips)
{
    const dq_fmm *mm = j->mm;
    size_t width = width_of(mm->type);
    size_t b_strip_size = mm->k * DQ_FMM_COLS * width;
    char *a_strip = b_strips + mm->k * COL_BLOCK * width;
    double tile[DQ_FMM_ROWS * DQ_FMM_COLS]; /* large enough and aligned for every computing type */
    size_t row_end = least(row + ROW_BLOCK, mm->m), col_end = least(col + COL_BLOCK, mm->n);
    for (size_t c = col, s = 0; c < col_end; c += DQ_FMM_COLS, s++)
        mm->pack_b(j->arg, batch, c, least(DQ_FMM_COLS, col_end - c), b_strips + s * b_strip_size);
    for (size_t r = row; r < row_end; r += DQ_FMM_ROWS) {
        size_t rows = least(DQ_FMM_ROWS, row_end - r);
        mm->pack_a(j->arg, batch, r, rows, a_strip);
        for (size_t c = col, s = 0; c < col_end; c += DQ_FMM_COLS, s++) {
            j->tile(a_strip, b_strips + s * b_strip_size, mm->k, tile);
            mm->store(j->arg, batch, r, c, rows, least(DQ_FMM_COLS, col_end - c), tile);
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

void dq_fmm_run(const dq_op_call *call, const dq_fmm *mm, const void *arg)
{
    job j = {mm,
             call,
             arg,
             (mm->m + ROW_BLOCK - 1) / ROW_BLOCK,
             (mm->n + COL_BLOCK - 1) / COL_BLOCK,
             tile_of(mm->type)};
    dq_parallel(call->threads, mm->batches * j.row_blocks * j.col_blocks, 1, piece, &j);
}

/* ---- Packing and storing ------------------------------------------------------------------------------ */

#define PACK(name, S, T, value)                                                                              \
    static void name(const void *data, size_t base, size_t lane_stride, size_t step_stride, size_t count,    \
                     size_t lanes, size_t k, void *to)                                                       \
    {                                                                                                        \
        const S *from = data;                                                                                \
        T *out = to;                                                                                         \
        for (size_t p = 0; p < k; p++, out += lanes)                                                         \
            for (size_t i = 0; i < lanes; i++) {                                                             \
                if (i < count) {                                                                             \
                    const S x = from[base + i * lane_stride + p * step_stride];                              \
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

void dq_fmm_pack_strided(const void *data, dq_dtype dtype, size_t base, size_t lane_stride,
                         size_t step_stride, size_t count, size_t lanes, size_t k, void *to)
{
    switch (dtype) {
    case DQ_FLOAT:
        pack_f32(data, base, lane_stride, step_stride, count, lanes, k, to);
        break;
    case DQ_DOUBLE:
        pack_f64(data, base, lane_stride, step_stride, count, lanes, k, to);
        break;
    case DQ_FLOAT16:
        pack_f16(data, base, lane_stride, step_stride, count, lanes, k, to);
        break;
    case DQ_BFLOAT16:
        pack_bf16(data, base, lane_stride, step_stride, count, lanes, k, to);
        break;
    case DQ_INT32:
    case DQ_UINT32:
        pack_u32(data, base, lane_stride, step_stride, count, lanes, k, to);
        break;
    default:
        pack_u64(data, base, lane_stride, step_stride, count, lanes, k, to);
        break;
    }
}

void dq_fmm_write(void *data, dq_dtype dtype, size_t at, const void *from, size_t n)
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
