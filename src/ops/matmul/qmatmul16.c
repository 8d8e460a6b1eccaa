/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearMatMul16: a matrix product of quantized values of 8 or 16 bits that is exact for every depth.
 * Batches broadcast as in MatMul; transB is that of Gemm.
 *
 *   total = sum of (a - a_zero_point)(b - b_zero_point), exact
 *   y = saturate(round((total * alpha * a_scale * b_scale + bias) / y_scale) + y_zero_point)
 *
 * in real numbers, rounded once. Without y_scale the result is total * (alpha * a_scale * b_scale) + bias as
 * float. Scales and zero points of b are one for all, or, with a single matrix b, one for each column. The
 * bias is one float, or one for each column. 8-bit operands whose sums int32 always holds use int32
 * (qmatmul16_s32.h). Other sums are computed in parts that int32 holds, which are added in double: exact
 * below 2^53. */
#include "base/checked.h"
#include "ops/algorithm.h"
#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/matmul/matmul_shape.h"
#include "ops/matmul/qgemm16_pack.h"
#include "ops/matmul/qmatmul16_bytesplit.h"
#include "ops/matmul/qmatmul16_s32.h"

#include <string.h>

enum { ROWS = DQ_GEMM_S16_ROWS, NR = DQ_GEMM_S16_NR, COLS = DQ_GEMM_S16_COLS, BLOCK = 64 };

typedef struct state {
    dq_matmul_shape s;
    size_t m, batches; /* as computed: with a single b, all matrices of a are one */
    bool transposed;   /* b is stored as [N, K] */
    const dq_algorithm *algorithm;
    dq_qmatmul16_s32 int32;       /* of algorithm gemm_s8 */
    dq_qmatmul16_bytesplit bytes; /* of algorithm gemm_bytes */
    /* Of algorithm gemm: */
    dq_qgemm16 w;
    size_t block, blocks; /* rows of a task; blocks of rows */
    /* Byte offsets in a worker's scratch: packed rows of x; expanded panels; four rows before packing;
     * offsets of pairs. */
    size_t rows_at, qvalues_at, lines_at, offsets_at;
} state;

/* ---- Planning ------------------------------------------------------------------------------------------ */

static dq_status check_param(const dq_op_call *call, uint32_t i, size_t columns, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == 1 || (columns && t->rank == 1 && t->count == columns))
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has %zu elements, expected %s", t->count,
                              columns ? "1 or one a column" : "1");
}

static dq_status check(const dq_op_call *call, dq_matmul_shape *s, dq_error *err)
{
    const dq_tensor *b = call->in[DQ_Q16_W];
    dq_tensor transposed = *b;
    if (dq_node_int(call->node, "transB", 0) != 0) {
        if (b->rank != 2)
            return dq_call_fail_input(call, err, DQ_Q16_W, "has rank %u, expected a matrix", b->rank);
        transposed.dims[0] = b->dims[1];
        transposed.dims[1] = b->dims[0];
    }
    DQ_TRY(dq_matmul_shape_of(call, DQ_Q16_X, DQ_Q16_W, call->in[DQ_Q16_X], &transposed, s, err));
    size_t columns = s->b_batches == 1 ? s->n : 0;
    for (uint32_t i = DQ_Q16_X_SCALE; i <= DQ_Q16_BIAS; i++) {
        bool many = i == DQ_Q16_W_SCALE || i == DQ_Q16_W_ZERO || i == DQ_Q16_BIAS;
        if (i != DQ_Q16_W)
            DQ_TRY(check_param(call, i, many ? columns : 0, err));
    }
    if (!dq_call_in(call, DQ_Q16_Y_SCALE) != !dq_call_in(call, DQ_Q16_Y_ZERO))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "needs both of y_scale and y_zero_point, or none");
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_matmul_shape s;
    DQ_TRY(check(call, &s, err));
    const dq_tensor *zero = dq_call_in(call, DQ_Q16_Y_ZERO);
    return dq_call_output(call, 0, zero ? zero->dtype : DQ_FLOAT, s.rank, s.dims, err);
}

static bool lay_out(const dq_op_call *call, state *st, size_t *used)
{
    size_t row;
    (void)call;
    st->block = st->m < BLOCK ? (st->m + ROWS - 1) / ROWS * ROWS : BLOCK;
    st->blocks = st->m / st->block + (st->m % st->block != 0);
    return dq_mul_size(st->w.pairs, 2 * sizeof(int16_t), &row) &&
           dq_reserve_size(used, st->block, row, DQ_ALIGN, &st->rows_at) &&
           dq_reserve_size(used, COLS * st->w.planes, row, DQ_ALIGN, &st->qvalues_at) &&
           dq_reserve_size(used, ROWS, row, DQ_ALIGN, &st->lines_at) &&
           dq_reserve_size(used, st->w.pairs, sizeof(uint32_t), DQ_ALIGN, &st->offsets_at) &&
           st->w.pairs <= UINT32_MAX / (2 * NR);
}

static dq_status prepare_gemm(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    const dq_matmul_shape *s = &st->s;
    st->w = (dq_qgemm16){.strip_width = NR,
                         .matrices = s->b_batches,
                         .n = s->n,
                         .outer = s->k,
                         .inner = 1,
                         .matrix_step = s->k * s->n,
                         .lane_step = st->transposed ? s->k : 1,
                         .outer_step = st->transposed ? 1 : s->n};
    DQ_TRY(dq_qgemm16_prepare(call, &st->w, err));
    if (!lay_out(call, st, &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    return DQ_OK;
}

/* ---- A run --------------------------------------------------------------------------------------------- */

typedef struct task {
    const dq_qgemm16_run *run;
    const state *st;
    size_t batch, first, count; /* rows */
    int16_t *rows, *qvalues, *lines;
    uint32_t *offsets;
    dq_partition cut; /* of the run among threads */
} task;

/* Packs the rows of the block: panels of four rows, interleaved by pairs. */
static void fill_rows(const task *t)
{
    const state *st = t->st;
    const dq_tensor *x = t->run->call->in[DQ_Q16_X];
    size_t k = st->s.k, pairs = st->w.pairs;
    size_t matrix = st->batches == 1 ? 0 : dq_matmul_offset(&st->s, t->batch, st->s.a_strides);
    memset(t->lines, 0, ROWS * pairs * 2 * sizeof *t->lines);
    for (size_t i = 0; i < t->count; i += ROWS) {
        for (size_t j = 0; j < ROWS && i + j < t->count; j++)
            dq_qgemm16_load(x->dtype, x->data, (matrix * st->m + t->first + i + j) * k, k,
                            t->lines + j * pairs * 2);
        t->run->call->kernels->transpose_x32((const uint32_t *)(const void *)t->lines, pairs, ROWS, pairs,
                                             (uint32_t *)(void *)(t->rows + i * pairs * 2), ROWS);
    }
}

static void put_tile(const task *t, dq_q16_sums *s, size_t row, size_t rows, size_t col)
{
    const size_t n = t->st->s.n;
    s->rows = rows;
    s->out_stride = n;
    dq_qgemm16_put(t->run->call, s, (t->batch * t->st->m + t->first + row) * n + col);
}

/* Whether the product is a GEMV with 8-bit weights, which are not expanded. */
static bool by_row(const state *st)
{
    return st->m == 1 && st->w.planes == 1;
}

/* Multiplies all rows of the block by up to three panels of columns. */
static void run_panels(const task *t, size_t panel, size_t panels)
{
    const state *st = t->st;
    size_t matrix = st->batches == 1 ? 0 : dq_matmul_offset(&st->s, t->batch, st->s.b_strides);
    size_t first = panel * NR, each = dq_qgemm16_panel(&st->w), row = st->w.pairs * 2;
    const int16_t *b[DQ_GEMM_S16_BLOCKS] = {t->qvalues, t->qvalues + each, t->qvalues + 2 * each};
    double workspace[3 * COLS];
    dq_q16_terms terms = dq_q16_terms_in(workspace, COLS);
    dq_q16_sums s = dq_qgemm16_sums(t->run->call);
    dq_q16_tiles tiles;
    s.cols = st->w.n - first < panels * NR ? st->w.n - first : panels * NR;
    s.stride = s.extra_stride = s.out_stride = COLS;
    s.col_step = 1;
    dq_qgemm16_terms(t->run, matrix, first, s.cols, &terms);
    dq_q16_sums_by(t->run->call, t->run->factor, &terms, 0, matrix * st->w.n + first, &s);
    for (size_t i = 0; i < panels && !by_row(st); i++)
        dq_qgemm16_expand(t->run, matrix, panel + i, t->qvalues + i * each);
    for (size_t at = 0; at < t->count; at += DQ_Q16_TILES * ROWS) {
        size_t left = t->count - at < DQ_Q16_TILES * ROWS ? t->count - at : DQ_Q16_TILES * ROWS;
        if (by_row(st))
            dq_qgemm16_row(t->run, matrix, panel, panels, t->lines, &tiles);
        else
            dq_qgemm16_tiles(t->run, t->rows + at * row, ROWS * row, (left + ROWS - 1) / ROWS, b, t->offsets,
                             panels, &tiles);
        for (size_t i = 0; i < left; i += ROWS) {
            s.sums = tiles.sums[i / ROWS];
            s.high = tiles.has_high ? tiles.high[i / ROWS] : NULL;
            s.extra = tiles.has_extra ? tiles.extra[i / ROWS] : NULL;
            put_tile(t, &s, at + i, left - i < ROWS ? left - i : ROWS, first);
        }
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const state *st = t.st;
    char *scratch = dq_call_worker_scratch(t.run->call, worker);
    t.rows = (int16_t *)(void *)(scratch + st->rows_at);
    t.qvalues = (int16_t *)(void *)(scratch + st->qvalues_at);
    t.lines = (int16_t *)(void *)(scratch + st->lines_at);
    t.offsets = (uint32_t *)(void *)(scratch + st->offsets_at);
    for (size_t p = 0; p < st->w.pairs; p++)
        t.offsets[p] = (uint32_t)(p * 2 * NR);
    for (size_t i = begin; i < end; i++) {
        size_t panel, last, rest = dq_qgemm16_task(&st->w, &t.cut, i, DQ_GEMM_S16_BLOCKS, &panel, &last);
        t.first = rest % st->blocks * st->block;
        t.batch = rest / st->blocks;
        t.count = st->m - t.first < st->block ? st->m - t.first : st->block;
        fill_rows(&t);
        for (size_t n; panel < last; panel += n) {
            const size_t left = last - panel;
            n = left == DQ_GEMM_S16_BLOCKS + 1 ? 2 : dq_least(left, DQ_GEMM_S16_BLOCKS); /* not one alone */
            run_panels(&t, panel, n);
        }
    }
}

static void run_gemm(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    dq_qgemm16_run begun = dq_qgemm16_begin(call, &st->w);
    task t = {.run = &begun, .st = st};
    t.cut = dq_qgemm16_cut(&st->w, call->threads, st->batches * st->blocks, DQ_GEMM_S16_BLOCKS);
    const size_t products = st->block * st->w.panels * NR * (st->s.k + 1) / t.cut.parts;
    dq_parallel(call->threads, dq_partition_count(&t.cut), dq_gemm_s8_grain(products), run_tasks, &t);
}

/* ---- Algorithms ---------------------------------------------------------------------------------------- */

typedef struct problem {
    size_t batches, m, k, n; /* batches and m as in state */
    bool one_b;              /* there is a single matrix b */
    bool fits_int32;         /* dq_qmatmul16_s32_fits */
    bool can_bytesplit;      /* dq_q16_can_bytesplit */
    size_t planes;           /* bytes of a weight */
} problem;

static double rows_of(const problem *p)
{
    return (double)p->batches * (double)p->m;
}

static double columns_of(const problem *p)
{
    return (double)((p->n + NR - 1) / NR * NR);
}

static bool is_gemm_s8_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    return p->fits_int32 ||
           dq_not_applicable(reason, "not 8-bit by 8-bit without a bias, in sums of 32 bits");
}

static dq_algorithm_work work_of_gemm_s8(const void *arg)
{
    const problem *p = arg;
    const double rows = rows_of(p), k = (double)p->k, columns = columns_of(p);
    return (dq_algorithm_work){.macs = rows * k * columns, .bytes = rows * k, .calls = rows * columns / NR};
}

static bool is_gemm_bytes_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    if (!p->can_bytesplit)
        return dq_not_applicable(reason, "x has 8 bits, or the weights are not constant and symmetric");
    return (p->batches == 1 && p->one_b) || dq_not_applicable(reason, "%zu matrices, expected 1", p->batches);
}

/* The low and high bytes of x make twice as many rows, those of 16-bit weights twice as many columns. Joining
 * four sums to a result takes as long as moving JOIN bytes. */
static dq_algorithm_work work_of_gemm_bytes(const void *arg)
{
    enum { JOIN = 3 };
    const problem *p = arg;
    dq_algorithm_work work = work_of_gemm_s8(arg);
    work.macs *= 2 * (double)p->planes;
    work.bytes *= 2 * sizeof(int16_t);
    if (p->planes == 2)
        work.bytes += JOIN * rows_of(p) * columns_of(p);
    return work;
}

static bool is_gemm_applicable(const void *arg, dq_reason *reason)
{
    return dq_always_applicable(arg, reason);
}

/* Each run expands panels of 16-bit weights into their two bytes, which takes as long as moving EXPANSION
 * bytes a weight. */
static dq_algorithm_work work_of_gemm(const void *arg)
{
    enum { EXPANSION = 3 };
    const problem *p = arg;
    dq_algorithm_work work = work_of_gemm_s8(arg);
    work.macs *= (double)p->planes;
    work.bytes *= 2 * sizeof(int16_t);
    if (p->planes == 2)
        work.bytes += EXPANSION * (double)p->k * columns_of(p);
    return work;
}

static dq_status prepare_gemm_s8(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    return dq_qmatmul16_s32_prepare(call, &st->s, st->transposed, &st->int32, err);
}

static void run_gemm_s8(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    dq_qmatmul16_s32_run(call, &st->int32);
}

static dq_status prepare_gemm_bytes(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    return dq_qmatmul16_bytesplit_prepare(call, st->m, st->s.k, st->s.n, st->transposed, &st->bytes, err);
}

static void run_gemm_bytes(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    dq_qmatmul16_bytesplit_run(call, &st->bytes);
}

static const dq_algorithm rows[] = {
#define ROW(name, summary)                                                                                   \
    {                                                                                                        \
        "matmul_s16=" #name, summary, 0, is_##name##_applicable, work_of_##name, prepare_##name, run_##name  \
    }
    ROW(gemm_s8, "8-bit products into 32-bit sums"),
    ROW(gemm_bytes, "8-bit products of the two bytes of x with the bytes of the weights"),
    ROW(gemm, "16-bit products into 64-bit sums")
#undef ROW
};

const dq_algorithm_table dq_matmul_s16_algorithms = {
    .name = "matmul_s16",
    .summary = "matrix product with 16-bit integers, or of floats' quantization (QDQ MatMul and Gemm)",
    .rows = rows,
    .count = sizeof rows / sizeof *rows};

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    const dq_matmul_shape *s = &st->s;
    DQ_TRY(check(call, &st->s, err));
    if (s->batches * s->m * s->n == 0)
        return DQ_OK;
    const bool flat = s->b_batches == 1 && s->a_batches == s->batches;
    st->transposed = dq_node_int(call->node, "transB", 0) != 0;
    st->m = flat ? s->m * s->batches : s->m;
    st->batches = flat ? 1 : s->batches;
    const problem p = {.batches = st->batches,
                       .m = st->m,
                       .k = s->k,
                       .n = s->n,
                       .one_b = s->b_batches == 1,
                       .fits_int32 = dq_qmatmul16_s32_fits(call, s->k),
                       .can_bytesplit = dq_q16_can_bytesplit(call, s->k),
                       .planes = dq_dtype_get(call->in[DQ_Q16_W]->dtype)->bits / 8u};
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_MATMUL_S16, &p, &st->algorithm, err));
    return st->algorithm->prepare(call, st, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    dq_algorithm_run(call, st->algorithm, st);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_matmul16 = {infer, prepare, run, 0};
