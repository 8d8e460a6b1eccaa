/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft MatMulInteger16: matrix product of 16-bit integers into 32-bit sums, which wrap modulo 2^32.
 * The result of two uint16 operands may be declared uint32, which has the same bits.
 *
 * Kernels multiply int16 values. From uint16 operands the midpoint 32768 (za, zb; else 0) is subtracted, and
 *
 *   sum of a b = sum of (a - za)(b - zb) + za · sum of (b - zb) + zb · sum of a                      */
#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/matmul/matmul_shape.h"
#include "ops/matmul/qgemm16_pack.h"
#include "ops/packers.h"

#include <string.h>

enum { A, B };
enum {
    ROWS = DQ_GEMM_S16_ROWS,
    NR = DQ_GEMM_S16_NR,
    COLS = DQ_GEMM_S16_COLS,
    BLOCK = 64, /* rows of a task */
    TILES = 32  /* columns of a task, in tiles of COLS */
};

typedef struct state {
    dq_matmul_shape s;
    size_t pairs, blocks; /* pairs of a column; panels (NR columns) of a matrix */
    const void *packed;   /* NULL: packed in each run, into scratch */
    size_t row_blocks, chunks;
    size_t rows_at, lines_at, sums_at, offsets_at; /* byte offsets in a worker's scratch */
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_matmul_shape s;
    DQ_TRY(dq_matmul_shape_infer(call, A, B, &s, err));
    dq_dtype declared = call->node->out[0] ? call->node->out[0]->type.dtype : DQ_UNDEFINED;
    dq_dtype dtype = declared == DQ_UINT32 ? DQ_UINT32 : DQ_INT32;
    return dq_call_output(call, 0, dtype, s.rank, s.dims, err);
}

static uint32_t middle_of(const dq_tensor *t)
{
    return t->dtype == DQ_UINT16 ? 32768 : 0;
}

/* ---- Packing ------------------------------------------------------------------------------------------- */

/* Packing key of b; compared as bytes. */
typedef struct form {
    size_t matrices, k, n, pairs, blocks;
} form;

static form form_of(const state *st)
{
    return (form){st->s.b_batches, st->s.k, st->s.n, st->pairs, st->blocks};
}

/* Packs panels of NR columns for dq_gemm_s16_fn, then the column sums of all panels. */
void dq_pack_matmul_integer_s16(void *packed, const dq_tensor *from, const void *key)
{
    const form *f = key;
    const size_t block = f->pairs * 2 * NR;
    int16_t *to = packed, qvalues[NR];
    uint32_t *sums = (uint32_t *)(to + f->matrices * f->blocks * block);
    memset(packed, 0, f->matrices * f->blocks * (block * sizeof *to + NR * sizeof *sums));
    for (size_t m = 0; m < f->matrices; m++)
        for (size_t k = 0; k < f->k; k++)
            for (size_t j = 0; j < f->n; j += NR) {
                const size_t at = m * f->blocks + j / NR, count = f->n - j < NR ? f->n - j : NR;
                dq_qgemm16_load(from->dtype, from->data, (m * f->k + k) * f->n + j, count, qvalues);
                for (size_t i = 0; i < count; i++) {
                    to[at * block + k / 2 * 2 * NR + 2 * i + k % 2] = qvalues[i];
                    sums[at * NR + i] += (uint32_t)qvalues[i];
                }
            }
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    const dq_matmul_shape *s = &st->s;
    DQ_TRY(dq_matmul_shape_infer(call, A, B, &st->s, err));
    st->pairs = s->k / 2 + s->k % 2;
    st->blocks = s->n / NR + (s->n % NR != 0);
    st->row_blocks = s->m / BLOCK + (s->m % BLOCK != 0);
    st->chunks = s->n / (COLS * TILES) + (s->n % (COLS * TILES) != 0);
    size_t block, all, rows = s->m < BLOCK ? (s->m + ROWS - 1) / ROWS * ROWS : BLOCK;
    const size_t pair = 2 * sizeof(int16_t);
    if (!dq_mul_size(st->pairs * NR, pair, &block) || !dq_add_size(block, NR * sizeof(uint32_t), &block) ||
        !dq_mul_size(s->b_batches * st->blocks, block, &all) || st->pairs > UINT32_MAX / (2 * NR) ||
        !dq_reserve_size(&call->worker_scratch_size, rows, st->pairs * pair, DQ_ALIGN, &st->rows_at) ||
        !dq_reserve_size(&call->worker_scratch_size, ROWS, st->pairs * pair, DQ_ALIGN, &st->lines_at) ||
        !dq_reserve_size(&call->worker_scratch_size, rows, sizeof(uint32_t), DQ_ALIGN, &st->sums_at) ||
        !dq_reserve_size(&call->worker_scratch_size, st->pairs, sizeof(uint32_t), DQ_ALIGN, &st->offsets_at))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    const form key = form_of(st);
    if (dq_call_constant(call, B))
        return dq_call_pack_deferred(call, B, dq_pack_matmul_integer_s16, &key, sizeof key, all, &st->packed,
                                     err);
    call->scratch_size = all;
    return DQ_OK;
}

/* ---- A run --------------------------------------------------------------------------------------------- */

typedef struct task {
    const dq_op_call *call;
    const state *st;
    size_t batch, row, rows;
    int16_t *qvalues; /* packed rows: panels of four rows, interleaved by pairs */
    int16_t *lines;   /* four rows before that */
    uint32_t *sums, *offsets;
} task;

static uint32_t sum_of(const int16_t *x, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (uint32_t)x[i];
    return sum;
}

static void pack_rows(task *t)
{
    const dq_matmul_shape *s = &t->st->s;
    const dq_tensor *a = t->call->in[A];
    const size_t first = dq_matmul_offset(s, t->batch, s->a_strides) * s->m + t->row, pairs = t->st->pairs;
    memset(t->lines, 0, ROWS * pairs * 2 * sizeof *t->lines);
    for (size_t p = 0; p < pairs; p++)
        t->offsets[p] = (uint32_t)(p * 2 * NR);
    for (size_t i = 0; i < t->rows; i += ROWS) {
        for (size_t r = 0; r < ROWS && i + r < t->rows; r++) {
            int16_t *line = t->lines + r * pairs * 2;
            dq_qgemm16_load(a->dtype, a->data, (first + i + r) * s->k, s->k, line);
            t->sums[i + r] = sum_of(line, s->k) + (uint32_t)s->k * middle_of(a);
        }
        t->call->kernels->transpose_x32((const uint32_t *)(const void *)t->lines, pairs, ROWS, pairs,
                                        (uint32_t *)(void *)(t->qvalues + i * pairs * 2), ROWS);
    }
}

/* Multiplies all rows of the task by `blocks` panels from number `block` of all matrices of b on. */
static void multiply(const task *t, const int16_t *packed, size_t block, size_t blocks, size_t col)
{
    const state *st = t->st;
    const dq_matmul_shape *s = &st->s;
    const size_t size = st->pairs * 2 * NR, left = s->n - col, cols = left < COLS ? left : COLS;
    const int16_t *b[DQ_GEMM_S16_BLOCKS];
    const uint32_t *sums = (const uint32_t *)(packed + s->b_batches * st->blocks * size) + block * NR;
    const uint32_t za = middle_of(t->call->in[A]), zb = middle_of(t->call->in[B]);
    for (size_t o = 0; o < DQ_GEMM_S16_BLOCKS; o++)
        b[o] = packed + (block + (o < blocks ? o : 0)) * size;
    for (size_t i = 0; i < t->rows; i += ROWS) {
        int32_t c[ROWS * COLS];
        t->call->kernels->gemm_s16(t->qvalues + i * st->pairs * 2, st->pairs, b, t->offsets, blocks, c);
        for (size_t r = i; r < t->rows && r < i + ROWS; r++) {
            uint32_t *y = dq_data(t->call->out[0], uint32_t) + (t->batch * s->m + t->row + r) * s->n + col;
            for (size_t j = 0; j < cols; j++)
                y[j] = (uint32_t)c[(r - i) * COLS + j] + za * sums[j] + zb * t->sums[r];
        }
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = arg;
    const state *st = call->state;
    const dq_matmul_shape *s = &st->s;
    char *scratch = dq_call_worker_scratch(call, worker);
    for (size_t i = begin; i < end; i++) {
        task t = {.call = call, .st = st, .batch = i / st->chunks / st->row_blocks};
        t.row = i / st->chunks % st->row_blocks * BLOCK;
        t.rows = s->m - t.row < BLOCK ? s->m - t.row : BLOCK;
        t.qvalues = (int16_t *)(scratch + st->rows_at);
        t.lines = (int16_t *)(scratch + st->lines_at);
        t.sums = (uint32_t *)(scratch + st->sums_at);
        t.offsets = (uint32_t *)(scratch + st->offsets_at);
        pack_rows(&t);
        const size_t matrix = dq_matmul_offset(s, t.batch, s->b_strides) * st->blocks;
        const size_t first = i % st->chunks * TILES * DQ_GEMM_S16_BLOCKS;
        size_t last = first + TILES * DQ_GEMM_S16_BLOCKS;
        last = last < st->blocks ? last : st->blocks;
        for (size_t o = first, n; o < last; o += n) {
            n = last - o < DQ_GEMM_S16_BLOCKS ? last - o : DQ_GEMM_S16_BLOCKS;
            multiply(&t, st->packed ? st->packed : call->scratch, matrix + o, n, o * NR);
        }
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    const form key = form_of(st);
    if (!st->packed)
        dq_pack_matmul_integer_s16(call->scratch, call->in[B], &key);
    dq_parallel(call->threads, st->s.batches * st->row_blocks * st->chunks,
                dq_gemm_s8_grain(BLOCK * COLS * TILES * (st->s.k + 1)), run_tasks, (void *)(uintptr_t)call);
    return DQ_OK;
}

const dq_op_impl dq_op_matmul_integer16 = {infer, prepare, run, 0};
