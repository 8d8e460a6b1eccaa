/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearConv16: QLinearConv for 16-bit quantized values:
 *     y = saturate(round((sum * x_scale * w_scale + bias) / y_scale) + y_zero_point)
 * with the exact sum of (x - x_zero_point) * (w - w_zero_point) and a float bias, rounded once.
 *
 * This file has the GEMM: rows are output channels, columns are output positions. A task copies the padded
 * input of a band of output rows (input_band.h), in which the inputs of 8 consecutive positions of an output
 * row are contiguous for every kernel element. */
#include "base/checked.h"
#include "base/copy.h"
#include "ops/conv/conv_s16_algorithms.h"
#include "ops/conv/qconv16_bytesplit.h"
#include "ops/conv/qconv16_depthwise.h"
#include "ops/conv/qconv16_gemv.h"
#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/matmul/qgemm16_pack.h"

#include <string.h>

enum {
    ROWS = DQ_GEMM_S16_ROWS,
    COLS = DQ_GEMM_S16_COLS,
    NR = DQ_GEMM_S16_NR,
    BAND = 3 << 16 /* approximate bytes of a band */
};

typedef struct state {
    dq_conv_shape s;
    const dq_algorithm *algorithm;
    dq_qconv16_depthwise d; /* depthwise */
    dq_qconv16_gemv f;      /* few_outputs */
    dq_qconv16_bytesplit q; /* gemm_bytes */
    dq_qgemm16 w;           /* this and the fields below: gemm */
    dq_input_band b;
    size_t planes;                          /* planes of a band: pairs of channels */
    size_t band_at, qvalues_at, offsets_at; /* offsets in the worker scratch */
} state;

static dq_status check(const dq_op_call *call, dq_conv_shape *s, dq_error *err)
{
    DQ_TRY(dq_conv_shape_infer(call, DQ_Q16_X, DQ_Q16_W, false, false, s, err));
    for (uint32_t i = DQ_Q16_X_SCALE; i <= DQ_Q16_Y_ZERO; i++)
        if (i != DQ_Q16_W)
            DQ_TRY(dq_conv_param_check(call, i, i == DQ_Q16_W_SCALE || i == DQ_Q16_W_ZERO, s, err));
    return dq_conv_bias_check(call, DQ_Q16_BIAS, s, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_shape s;
    DQ_TRY(check(call, &s, err));
    return dq_call_output(call, 0, call->in[DQ_Q16_Y_ZERO]->dtype, s.rank, s.dims, err);
}

static bool lay_out(state *st, size_t *used)
{
    size_t elements;
    return dq_input_band_size(&st->b, st->planes, &elements) &&
           dq_reserve_size(used, elements, sizeof(int16_t), DQ_ALIGN, &st->band_at) &&
           dq_reserve_size(used, DQ_Q16_TILES * dq_qgemm16_panel(&st->w), sizeof(int16_t), DQ_ALIGN,
                           &st->qvalues_at) &&
           dq_reserve_size(used, st->w.pairs, sizeof(uint32_t), DQ_ALIGN, &st->offsets_at);
}

static dq_status prepare_gemm(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    const dq_conv_shape *s = &st->s;
    st->w = (dq_qgemm16){.strip_width = ROWS,
                         .matrices = s->group,
                         .n = s->group_out,
                         .outer = s->group_in,
                         .inner = s->kernel_size,
                         .matrix_step = s->group_out * s->group_in * s->kernel_size,
                         .lane_step = s->group_in * s->kernel_size,
                         .outer_step = s->kernel_size,
                         .inner_step = 1};
    st->planes = s->group_in / 2 + s->group_in % 2;
    DQ_TRY(dq_qgemm16_prepare(call, &st->w, err));
    DQ_TRY(dq_input_band_prepare(call, s, st->planes, false, BAND, &st->b, err));
    if (!lay_out(st, &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "the input under a convolution's windows");
    return DQ_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

typedef struct task {
    const dq_qgemm16_run *run;
    const state *st;
    size_t image, group, first, count; /* range of output positions along the first axis */
    int16_t *band, *qvalues;
    uint32_t *offsets;
    dq_partition cut; /* of the run among threads */
} task;

static void fill_band(const task *t)
{
    const state *st = t->st;
    const dq_conv_shape *s = &st->s;
    const dq_op_call *call = t->run->call;
    int16_t pad = (int16_t)dq_qgemm16_zero(call->in[DQ_Q16_X_ZERO], 0);
    size_t at = (t->image * s->in_channels + t->group * s->group_in) * s->in_size;
    dq_input_band_fill(&st->b, call->in[DQ_Q16_X], t->first, at, s->group_in, pad, t->band);
}

/* Up to three column tiles of 8 output positions, and the offsets of their outputs in a channel. */
typedef struct blocks {
    size_t count, at[DQ_GEMM_S16_BLOCKS], n[DQ_GEMM_S16_BLOCKS];
    bool contiguous; /* all outputs are contiguous in a channel */
    const int16_t *x[DQ_GEMM_S16_BLOCKS];
} blocks;

/* Finds the next o->count tiles, from output column *column of row *row on, and advances both. */
static void find_blocks(const task *t, size_t *row, size_t *column, blocks *o)
{
    const state *st = t->st;
    const size_t columns = dq_input_band_columns(&st->b, t->count);
    const size_t start = t->first * (st->s.out_size / (size_t)st->b.w.out[0]);
    o->contiguous = true;
    for (size_t i = 0; i < o->count; i++) {
        o->n[i] = columns - *column < NR ? columns - *column : NR;
        o->at[i] = start + *row * columns + *column;
        o->x[i] = t->band + dq_input_band_offset(&st->b, *row) + 2 * *column;
        o->contiguous = o->contiguous && o->at[i] == o->at[0] + i * NR;
        *column += NR;
        if (*column >= columns) {
            *column = 0;
            *row += 1;
        }
    }
}

static void put_blocks(const task *t, dq_q16_sums *s, const blocks *o, size_t at)
{
    dq_tensor *y = t->run->call->out[0];
    bool is_16_bit = dq_dtype_get(y->dtype)->bits == 16;
    uint16_t qvalues[DQ_Q16_TILES * DQ_Q16_TILE];
    s->cols = o->count * NR;
    s->out_stride = COLS;
    t->run->call->kernels->requantize_s64(s, qvalues);
    for (size_t i = 0; i < s->rows; i++, at += t->st->s.out_size)
        for (size_t k = 0; k < o->count; k++) {
            const uint16_t *from = qvalues + i * COLS + k * NR;
            if (!is_16_bit)
                dq_qgemm16_store(y->dtype, y->data, at + o->at[k], o->n[k], from);
            else
                dq_copy_row(dq_data(y, uint16_t) + at + o->at[k], from, o->n[k] * sizeof *from);
        }
}

static void put_tiles(const task *t, dq_q16_sums *s, const blocks *o, size_t channel)
{
    const state *st = t->st;
    size_t at = (t->image * st->s.out_channels + t->group * st->s.group_out + channel) * st->s.out_size;
    if (!o->contiguous || o->n[0] < NR) { /* kernels are fastest for whole tiles */
        put_blocks(t, s, o, at);
        return;
    }
    s->cols = o->at[o->count - 1] + o->n[o->count - 1] - o->at[0];
    s->out_stride = st->s.out_size;
    dq_qgemm16_put(t->run->call, s, at + o->at[0]);
}

/* Computes some panels of channels for all positions of the band. */
static void run_panels(const task *t, size_t panel, size_t panels)
{
    const state *st = t->st;
    size_t first = panel * ROWS, n = st->w.n - first < panels * ROWS ? st->w.n - first : panels * ROWS;
    size_t columns = dq_input_band_columns(&st->b, t->count), each = dq_qgemm16_panel(&st->w);
    size_t all = dq_input_band_rows(&st->b, t->count) * ((columns + NR - 1) / NR), row = 0, column = 0;
    double workspace[3 * DQ_Q16_TILES * ROWS];
    dq_q16_terms terms = dq_q16_terms_in(workspace, DQ_Q16_TILES * ROWS);
    dq_q16_sums s = dq_qgemm16_sums(t->run->call);
    dq_q16_tiles tiles;
    s.stride = s.extra_stride = COLS;
    s.row_step = 1;
    s.rows = n;
    s.sums = tiles.sums[0]; /* the rows of consecutive tiles are contiguous */
    dq_qgemm16_terms(t->run, t->group, first, n, &terms);
    dq_q16_sums_by(t->run->call, t->run->factor, &terms, 0, t->group * st->w.n + first, &s);
    for (size_t i = 0; i < panels; i++)
        dq_qgemm16_expand(t->run, t->group, panel + i, t->qvalues + i * each);
    for (size_t at = 0; at < all; at += DQ_GEMM_S16_BLOCKS) {
        blocks o;
        o.count = all - at < DQ_GEMM_S16_BLOCKS ? all - at : DQ_GEMM_S16_BLOCKS;
        find_blocks(t, &row, &column, &o);
        dq_qgemm16_tiles(t->run, t->qvalues, each, panels, o.x, t->offsets, o.count, &tiles);
        s.high = tiles.has_high ? tiles.high[0] : NULL;
        s.extra = tiles.has_extra ? tiles.extra[0] : NULL;
        put_tiles(t, &s, &o, first);
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const state *st = t.st;
    char *scratch = dq_call_worker_scratch(t.run->call, worker);
    size_t inner = st->w.inner, planes = st->planes * st->b.plane, filled = SIZE_MAX;
    t.band = (int16_t *)(void *)(scratch + st->band_at);
    t.qvalues = (int16_t *)(void *)(scratch + st->qvalues_at);
    t.offsets = (uint32_t *)(void *)(scratch + st->offsets_at);
    memset(t.band + planes, 0, 2 * NR * sizeof *t.band); /* slack, read but not used */
    for (size_t p = 0; p < st->w.pairs; p++)
        t.offsets[p] = (uint32_t)(p / inner * st->b.plane) + st->b.taps[p % inner];
    for (size_t i = begin; i < end; i++) {
        size_t panel, last, rest = dq_qgemm16_task(&st->w, &t.cut, i, DQ_Q16_TILES, &panel, &last);
        dq_input_band_range(&st->b, rest % st->b.bands, &t.first, &t.count);
        t.group = rest / st->b.bands % st->s.group;
        t.image = rest / st->b.bands / st->s.group;
        if (filled != rest)
            fill_band(&t);
        filled = rest;
        for (size_t n; panel < last; panel += n) {
            n = last - panel < DQ_Q16_TILES ? last - panel : DQ_Q16_TILES;
            run_panels(&t, panel, n);
        }
    }
}

static void run_gemm(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    const dq_conv_shape *s = &st->s;
    dq_qgemm16_run begun = dq_qgemm16_begin(call, &st->w);
    task t = {.run = &begun, .st = st};
    t.cut = dq_qgemm16_cut(&st->w, call->threads, s->batch * s->group * st->b.bands, DQ_Q16_TILES);
    const size_t products =
        s->out_size / st->b.bands * st->w.panels * ROWS * (s->group_in * s->kernel_size + 1) / t.cut.parts;
    dq_parallel(call->threads, dq_partition_count(&t.cut), dq_gemm_s8_grain(products), run_tasks, &t);
}

/* ---- Algorithms ---------------------------------------------------------------------------------------- */

double dq_conv_s16_macs(const dq_conv_shape *s, size_t channels, size_t pixels)
{
    const double out = (double)((s->group_out + channels - 1) / channels * channels);
    const double size = (double)((s->out_size + pixels - 1) / pixels * pixels);
    return (double)s->batch * (double)s->group * size * out * (double)s->group_in * (double)s->kernel_size;
}

bool dq_conv_s16_gemm_is_applicable(const void *problem, dq_reason *reason)
{
    return dq_always_applicable(problem, reason);
}

dq_algorithm_work dq_conv_s16_gemm_work(const void *problem)
{
    const dq_conv_s16_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double panels = (double)((s->group_out + ROWS - 1) / ROWS);
    return (dq_algorithm_work){
        .macs = dq_conv_s16_macs(s, ROWS, COLS),
        .bytes = (double)s->batch * (double)s->in_channels * (double)s->in_size * sizeof(int16_t),
        .calls = (double)s->batch * (double)s->group * panels * (double)((s->out_size + COLS - 1) / COLS)};
}

static dq_status prepare_depthwise(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    return dq_qconv16_depthwise_prepare(call, &st->s, &st->d, err);
}

static void run_depthwise(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    dq_qconv16_depthwise_run(call, &st->s, &st->d);
}

static dq_status prepare_few_outputs(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    return dq_qconv16_gemv_prepare(call, &st->s, &st->f, err);
}

static void run_few_outputs(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    dq_qconv16_gemv_run(call, &st->s, &st->f);
}

static dq_status prepare_gemm_bytes(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    return dq_qconv16_bytesplit_prepare(call, &st->s, &st->q, err);
}

static void run_gemm_bytes(const dq_op_call *call, const void *arg, const void *none)
{
    (void)none;
    const state *st = arg;
    dq_qconv16_bytesplit_run(call, &st->s, &st->q);
}

static const dq_algorithm rows[] = {
#define DQ_ROW(name, summary)                                                                                \
    {"conv_s16=" #name,         summary,        0,         dq_conv_s16_##name##_is_applicable,               \
     dq_conv_s16_##name##_work, prepare_##name, run_##name},
#include "ops/conv/conv_s16.def"
#undef DQ_ROW
};

const dq_algorithm_table dq_conv_s16_algorithms = {
    .name = "conv_s16",
    .summary = "convolution with 16-bit integers (QDQ convolutions of uint16 and int16)",
    .rows = rows,
    .count = sizeof rows / sizeof *rows};

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    const dq_conv_shape *s = &st->s;
    DQ_TRY(check(call, &st->s, err));
    if (s->batch * s->out_channels * s->out_size == 0)
        return DQ_OK;
    const dq_conv_s16_problem problem = {.shape = s,
                                         .can_bytesplit =
                                             dq_dtype_get(call->in[DQ_Q16_W]->dtype)->bits == 8 &&
                                             dq_q16_can_bytesplit(call, s->group_in * s->kernel_size)};
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_CONV_S16, &problem, &st->algorithm, err));
    return st->algorithm->prepare(call, st, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    dq_algorithm_run(call, st->algorithm, st);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_conv16 = {infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
