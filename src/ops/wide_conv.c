/* dqrun.WideConv: QLinearConv's arithmetic where codes have 16 bits: y = saturate(round((sum + bias /
 * (x_scale
 * * w_scale)) * (x_scale * w_scale / y_scale)) + y_zero_point), the sum that of (x - x_zero_point)(w -
 * w_zero_point), exact, the bias a float.
 *
 * Rows of the product are output channels, its columns output positions, whose windows are gathered tap by
 * tap, for a block of positions at a time. */
#include "base/checked.h"
#include "ops/conv_shape.h"
#include "ops/qgemm.h"
#include "ops/wide_codes.h"
#include "ops/window_walk.h"

#include <string.h>

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };
enum { ROWS = DQ_WGEMM_ROWS, COLS = DQ_WGEMM_COLS, MOST = 256, LEAST = 64, CACHE = 1 << 18, ALIGN = 64 };

typedef struct state {
    dq_conv_shape s;
    dq_wcodes w;
    size_t block, blocks;                         /* positions of a task */
    size_t chunk, chunks;                         /* panels of a task */
    size_t tiles_at, codes_at, sums_at, lines_at; /* of a worker's scratch */
} state;

static dq_status check(const dq_op_call *call, dq_conv_shape *s, dq_error *err)
{
    DQ_TRY(dq_conv_shape_infer(call, X, W, false, s, err));
    for (uint32_t i = X_SCALE; i <= Y_ZERO; i++)
        if (i != W)
            DQ_TRY(dq_conv_param_check(call, i, i == W_SCALE || i == W_ZERO, s, err));
    return dq_conv_bias_check(call, BIAS, s, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_shape s;
    DQ_TRY(check(call, &s, err));
    return dq_call_output(call, 0, call->in[Y_ZERO]->dtype, s.rank, s.dims, err);
}

/* Few panels a task where there are few blocks, so that threads have something to share. */
static void cut(state *st)
{
    enum { TASKS = 4, PANELS = 16 };
    const dq_conv_shape *s = &st->s;
    size_t row = st->w.pairs * 2 * sizeof(int16_t), fits = CACHE / (row ? row : 1) / COLS * COLS;
    st->block = fits < LEAST ? LEAST : fits > MOST ? MOST : fits;
    st->blocks = s->out_size / st->block + (s->out_size % st->block != 0);
    size_t blocks = st->blocks * s->batch * s->group, wanted = blocks < TASKS ? TASKS / blocks : 1;
    st->chunk = st->w.panels / wanted;
    st->chunk = st->chunk < PANELS ? PANELS : st->chunk;
    st->chunks = st->w.panels / st->chunk + (st->w.panels % st->chunk != 0);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    const dq_conv_shape *s = &st->s;
    DQ_TRY(check(call, &st->s, err));
    if (s->batch * s->out_channels * s->out_size == 0)
        return DQ_OK;
    st->w = (dq_wcodes){.input = W,
                        .lanes = ROWS,
                        .matrices = s->group,
                        .n = s->group_out,
                        .k = s->group_in * s->kernel_size,
                        .lane_step = s->group_in * s->kernel_size,
                        .matrix_step = s->group_out * s->group_in * s->kernel_size,
                        .outer_step = 1,
                        .inner_step = s->kernel_size,
                        .inner = s->group_in};
    DQ_TRY(dq_wcodes_prepare(call, &st->w, err));
    cut(st);
    size_t used = 0, row;
    if (!dq_mul_size(st->w.pairs, 2 * sizeof(int16_t), &row) ||
        !dq_place_size(&used, st->block, row, ALIGN, &st->tiles_at) ||
        !dq_place_size(&used, ROWS * st->w.planes, row, ALIGN, &st->codes_at) ||
        !dq_place_size(&used, st->block, sizeof(double), ALIGN, &st->sums_at) ||
        !dq_place_size(&used, 2 * st->block, sizeof(int16_t), ALIGN, &st->lines_at))
        return dq_no_memory(err, SIZE_MAX, "packed windows");
    call->worker_scratch_size = used;
    call->scratch_size = st->w.packed ? 0 : st->w.size;
    return DQ_OK;
}

/* ---- Windows --------------------------------------------------------------------------------------------
 */

typedef struct task {
    const dq_op_call *call;
    const state *st;
    const void *packed;
    size_t image, group, first, count; /* positions */
    int16_t *tiles, *codes, *lines;
    double *sums; /* of x in each window */
    bool with_sums;
} task;

/* Positions of one output row under one tap: n of them from `at` of the block on, of which [from, to) lie
 * inside the input, the first such at `source` of a channel. */
typedef struct stretch {
    size_t at, n, from, to, source;
} stretch;

static size_t find_stretches(const task *t, size_t tap, stretch *out)
{
    const dq_window *w = &t->st->s.window;
    size_t last = w->rank - 1, width = (size_t)w->out[last], count = 0,
           row_tap = tap / (size_t)w->kernel[last];
    int64_t stride = w->stride[last], shift = (int64_t)(tap % (size_t)w->kernel[last]) * w->dilation[last];
    dq_window rows = *w; /* the axes before the last */
    rows.rank = last;
    for (size_t at = 0; at < t->count;) {
        int64_t origin[DQ_MAX_RANK];
        size_t column = (t->first + at) % width, n = width - column;
        n = n < t->count - at ? n : t->count - at;
        dq_window_origin(w, t->first + at, origin);
        int64_t row = dq_window_at(&rows, origin, row_tap), start = origin[last] + shift, in = w->in[last];
        int64_t from = start < 0 ? (-start - 1) / stride + 1 : 0;
        int64_t to = in > start ? (in - start - 1) / stride + 1 : 0;
        to = to < (int64_t)n ? to : (int64_t)n;
        stretch *s = &out[count++];
        *s = (stretch){.at = at, .n = n};
        if (row >= 0 && from < to) {
            s->from = (size_t)from;
            s->to = (size_t)to;
            s->source = (size_t)(row * in + start + from * stride);
        }
        at += n;
    }
    return count;
}

#define GATHER(S, middle)                                                                                    \
    for (size_t i = 0; i < n; i++)                                                                           \
        to[i] = (int16_t)(((const S *)x->data)[at + i * stride] - (middle));

static void gather(const dq_tensor *x, size_t at, size_t stride, size_t n, int16_t *to)
{
    if (stride == 1)
        dq_wcodes_load(x->dtype, x->data, at, n, to);
    else if (x->dtype == DQ_UINT16)
        GATHER(uint16_t, 32768)
    else if (x->dtype == DQ_INT16)
        GATHER(int16_t, 0)
    else if (x->dtype == DQ_UINT8)
        GATHER(uint8_t, 128)
    else
        GATHER(int8_t, 0)
}

/* What one tap meets in one channel, for the whole block; padding is the zero point. */
static void fill_line(const task *t, const stretch *s, size_t count, size_t channel, int16_t pad,
                      int16_t *line)
{
    const state *st = t->st;
    size_t stride = (size_t)st->s.window.stride[st->s.window.rank - 1];
    size_t base = (t->image * st->s.in_channels + channel) * st->s.in_size;
    for (; count > 0; count--, s++) {
        for (size_t i = 0; i < s->from; i++)
            line[s->at + i] = pad;
        for (size_t i = s->to; i < s->n; i++)
            line[s->at + i] = pad;
        gather(t->call->in[X], base + s->source, stride, s->to - s->from, line + s->at + s->from);
    }
}

static void put_pair(const task *t, size_t pair, const int16_t *first, const int16_t *second)
{
    for (size_t at = 0; at < t->st->block; at += COLS) {
        int16_t *to = t->tiles + (at * t->st->w.pairs + pair * COLS) * 2;
        for (size_t j = 0; j < COLS; j++) {
            to[2 * j] = first[at + j];
            to[2 * j + 1] = second[at + j];
        }
    }
}

static void fill_tiles(const task *t)
{
    const state *st = t->st;
    size_t k = 0, block = st->block;
    int16_t pad = (int16_t)dq_wcodes_zero(t->call->in[X_ZERO], 0);
    stretch stretches[MOST];
    memset(t->lines, 0, 2 * block * sizeof *t->lines);
    memset(t->sums, 0, block * sizeof *t->sums);
    for (size_t tap = 0; tap < st->s.kernel_size; tap++) {
        size_t count = st->s.group_in ? find_stretches(t, tap, stretches) : 0;
        for (size_t c = 0; c < st->s.group_in; c++, k++) {
            int16_t *line = t->lines + k % 2 * block;
            fill_line(t, stretches, count, t->group * st->s.group_in + c, pad, line);
            for (size_t i = 0; t->with_sums && i < t->count; i++)
                t->sums[i] += line[i];
            if (k % 2)
                put_pair(t, k / 2, t->lines, line);
        }
    }
    if (k % 2) {
        memset(t->lines + block, 0, block * sizeof *t->lines);
        put_pair(t, k / 2, t->lines, t->lines + block);
    }
}

/* ---- Channels -------------------------------------------------------------------------------------------
 */

/* What the sums of a channel want on top before they are scaled. */
typedef struct channel {
    double offset, scale, per_sum;
} channel;

static channel channel_of(const task *t, size_t i)
{
    const dq_op_call *call = t->call;
    const state *st = t->st;
    const dq_tensor *w_scale = call->in[W_SCALE], *bias = dq_call_in(call, BIAS);
    size_t number = t->group * st->s.group_out + i;
    int64_t x_zero = dq_wcodes_zero(call->in[X_ZERO], 0), w_zero = dq_wcodes_zero(call->in[W_ZERO], number);
    int64_t fixed = x_zero * (w_zero * (int64_t)st->w.k - dq_wcodes_sums(&st->w, t->packed, t->group)[i]);
    double scale = (double)dq_data(call->in[X_SCALE], float)[0] *
                   (double)dq_data(w_scale, float)[w_scale->count == 1 ? 0 : number];
    channel c = {.offset = (double)fixed, .scale = scale / (double)dq_data(call->in[Y_SCALE], float)[0]};
    if (bias)
        c.offset += (double)dq_data(bias, float)[number] / scale;
    c.per_sum = (double)((st->w.planes > 1 ? DQ_WCODES_EXTRA : 0) - w_zero);
    return c;
}

static bool wants_sums(const dq_op_call *call, const state *st)
{
    bool wants = st->w.planes > 1;
    for (size_t i = 0; !wants && i < call->in[W_ZERO]->count; i++)
        wants = dq_wcodes_zero(call->in[W_ZERO], i) != 0;
    return wants;
}

static void run_panel(const task *t, size_t panel)
{
    const state *st = t->st;
    dq_tensor *y = t->call->out[0];
    const dq_dtype_row *type = dq_dtype_get(y->dtype);
    int32_t zero = (int32_t)dq_tensor_get_int(t->call->in[Y_ZERO], 0), codes[COLS];
    size_t first = panel * ROWS, rows = st->w.n - first < ROWS ? st->w.n - first : ROWS;
    channel channels[ROWS];
    double c[ROWS * COLS];
    dq_wcodes_expand(&st->w, t->packed, t->group, panel, t->codes);
    for (size_t i = 0; i < rows; i++)
        channels[i] = channel_of(t, first + i);
    for (size_t at = 0; at < t->count; at += COLS) {
        size_t cols = t->count - at < COLS ? t->count - at : COLS;
        dq_wcodes_tile(t->call->kernels, &st->w, t->codes, t->tiles + at * st->w.pairs * 2, c);
        for (size_t i = 0; i < rows; i++) {
            double *row = c + i * COLS;
            size_t number = t->group * st->s.group_out + first + i;
            for (size_t j = 0; t->with_sums && j < cols; j++)
                row[j] += channels[i].per_sum * t->sums[at + j];
            t->call->kernels->requantize_f64(row, cols, &channels[i].offset, &channels[i].scale, 0, zero,
                                             (int32_t)type->min, (int32_t)type->max, codes);
            dq_wcodes_store(y->dtype, y->data,
                            (t->image * st->s.out_channels + number) * st->s.out_size + t->first + at, cols,
                            codes);
        }
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const state *st = t.st;
    char *scratch = dq_call_worker_scratch(t.call, worker);
    t.tiles = (int16_t *)(void *)(scratch + st->tiles_at);
    t.codes = (int16_t *)(void *)(scratch + st->codes_at);
    t.sums = (double *)(void *)(scratch + st->sums_at);
    t.lines = (int16_t *)(void *)(scratch + st->lines_at);
    for (size_t i = begin; i < end; i++) {
        size_t panel = i % st->chunks * st->chunk, rest = i / st->chunks;
        size_t last = panel + st->chunk < st->w.panels ? panel + st->chunk : st->w.panels;
        t.first = rest % st->blocks * st->block;
        t.count = st->s.out_size - t.first < st->block ? st->s.out_size - t.first : st->block;
        t.group = rest / st->blocks % st->s.group;
        t.image = rest / st->blocks / st->s.group;
        fill_tiles(&t);
        for (; panel < last; panel++)
            run_panel(&t, panel);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    task t = {.call = call, .st = st, .packed = st->w.packed, .with_sums = wants_sums(call, st)};
    if (!t.packed) {
        dq_wcodes_pack(call, &st->w, call->scratch);
        t.packed = call->scratch;
    }
    size_t products = st->block * st->chunk * ROWS * (st->w.k + 1);
    dq_parallel(call->threads, st->s.batch * st->s.group * st->blocks * st->chunks, dq_qgemm_grain(products),
                run_tasks, &t);
    return DQ_OK;
}

const dq_op_impl dq_op_wide_conv = {infer, prepare, run, 0};
