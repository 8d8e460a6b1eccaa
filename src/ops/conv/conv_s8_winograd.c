/* SPDX-License-Identifier: Apache-2.0 */
/* Integer Winograd F(2×2, 3×3) convolution: 3×3 kernels at stride 1 (kernels/winograd/winograd.h).
 *
 * A task takes some rows of tiles of an image. It transforms their pixels; then, for each panel of output
 * channels, it multiplies them with the transformed weights (16 products) and transforms the products to
 * outputs. If the number of tasks is not a multiple of the threads, the last tasks are split by panels.
 *
 * Transformed weights take 16 int16 for 9 bytes. Hence the algorithm is meant for layers with many pixels,
 * whose memory is mostly activations. */
#include "base/checked.h"
#include "ops/conv/conv_s8.h"
#include "ops/packers.h"

#include <string.h>

enum { POINTS = DQ_WINOGRAD_POINTS, COLS = DQ_WINOGRAD_COLS, TAPS = 9, SIDE = 4 };

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Parameters of the packed weights; the key of dq_call_pack, compared as bytes. */
typedef struct form {
    size_t in, in_padded, out, panels; /* channels; in_padded: rounded up to DQ_WINOGRAD_STEP */
    uint8_t sign_xor;
} form;

enum { LANES = 2 * COLS }; /* weights transformed at a time: a panel's output channels, two input channels */

/* Multiplies G with LANES columns of three weights. int16 holds the result, also when applied twice. */
static void transform_once(const int16_t *restrict a, const int16_t *restrict b, const int16_t *restrict c,
                           int16_t *restrict to, size_t row_stride)
{
    for (size_t l = 0; l < LANES; l++) {
        to[l] = (int16_t)(2 * a[l]);
        to[row_stride + l] = (int16_t)(a[l] + b[l] + c[l]);
        to[2 * row_stride + l] = (int16_t)(a[l] - b[l] + c[l]);
        to[3 * row_stride + l] = (int16_t)(2 * c[l]);
    }
}

/* Computes G g G' of LANES 3×3 weights, with stride `point` between the elements of a result. */
static void transform(int16_t g[TAPS][LANES], int16_t *to, size_t point)
{
    int16_t rows[3][SIDE][LANES];
    for (size_t k = 0; k < 3; k++)
        transform_once(g[k], g[3 + k], g[6 + k], rows[k][0], LANES);
    for (size_t k = 0; k < SIDE; k++)
        transform_once(rows[0][k], rows[1][k], rows[2][k], to + k * SIDE * point, point);
}

/* Packs by panel, then point; the sums of each column's weights follow. Missing channels are 0. */
void dq_pack_conv_winograd_s8(void *packed, const dq_tensor *from, const void *key)
{
    const form *f = key;
    size_t point = f->in_padded * COLS;
    int16_t *to = packed, g[TAPS][LANES];
    int32_t *sums = (int32_t *)(void *)(to + f->panels * POINTS * point);
    for (size_t first = 0; first < f->out; first += COLS, to += POINTS * point, sums += COLS) {
        size_t cols = f->out - first < COLS ? f->out - first : COLS;
        const uint8_t *panel = (const uint8_t *)from->data + first * f->in * TAPS;
        memset(g, 0, sizeof g);
        for (size_t c = 0; c < f->in; c += 2) {
            size_t some = f->in - c < 2 ? 1 : 2;
            if (some == 1)
                memset(g, 0, sizeof g);
            for (size_t j = 0; j < cols; j++) {
                const uint8_t *w = panel + (j * f->in + c) * TAPS;
                int32_t sum = 0;
                for (size_t e = 0; e < some; e++)
                    for (size_t t = 0; t < TAPS; t++, w++) {
                        g[t][2 * j + e] = (int8_t)(*w ^ f->sign_xor);
                        sum += g[t][2 * j + e];
                    }
                sums[j] += sum;
            }
            transform(g, to + c * COLS, point);
        }
    }
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

bool dq_conv_s8_winograd_2d_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const dq_window *w = &s->window;
    if (w->rank != 2 || s->group != 1)
        return dq_not_applicable(reason, "%zu spatial axes and %zu groups, expected 2 and 1", w->rank,
                                 s->group);
    if (!dq_conv_is_3x3(s))
        return dq_not_applicable(reason, "the kernel is not 3x3 at stride 1");
    if (!p->constant_weights || !p->no_weight_zeros)
        return dq_not_applicable(reason, "weights are not constant and symmetric");
    return s->in_channels <= DQ_WINOGRAD_CHANNELS ||
           dq_not_applicable(reason, "%zu input channels, expected at most %d", s->in_channels,
                             DQ_WINOGRAD_CHANNELS);
}

static size_t round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

/* 16 multiply-adds for a tile of 2×2 outputs. The transforms write int16 and read int32. */
dq_algorithm_work dq_conv_s8_winograd_2d_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double in = (double)round_up(s->in_channels, DQ_WINOGRAD_STEP);
    const double out = (double)round_up(s->out_channels, COLS);
    const double tiles = (double)s->batch * (double)((s->window.out[0] + 1) / 2) *
                         (double)((s->window.out[1] + 1) / 2) * POINTS;
    return (dq_algorithm_work){.macs = tiles * in * out,
                               .bytes = (double)s->batch * (double)p->image_bytes +
                                        tiles * (in * sizeof(int16_t) + out * sizeof(int32_t)),
                               .calls = (double)s->batch * out / COLS};
}

dq_status dq_conv_s8_winograd_2d_prepare(dq_op_call *call, void *state, dq_error *err)
{
    enum { TILES = 32 }; /* approximate tiles of a task */
    dq_conv_s8 *conv = state;
    const dq_conv_shape *s = &conv->s;
    dq_conv_s8_winograd *g = &conv->winograd;
    size_t padded, size, rows = ((size_t)s->window.out[0] + 1) / 2, *used = &call->scratch_size;
    size_t *worker = &call->worker_scratch_size, slack;
    g->across = ((size_t)s->window.out[1] + 1) / 2;
    g->rows_per_task = g->across < TILES ? TILES / g->across : 1;
    g->rows_per_task = g->rows_per_task < rows ? g->rows_per_task : rows;
    g->tasks = (rows + g->rows_per_task - 1) / g->rows_per_task;
    g->panels = (s->out_channels + COLS - 1) / COLS;
    conv->pass = dq_conv_s8_images(conv);
    form f;
    memset(&f, 0, sizeof f);
    f.in = s->in_channels;
    f.in_padded = padded = (s->in_channels + DQ_WINOGRAD_STEP - 1) / DQ_WINOGRAD_STEP * DQ_WINOGRAD_STEP;
    f.out = s->out_channels;
    f.panels = g->panels;
    f.sign_xor = dq_gemm_s8_sign_xor(call->in[conv->w]->dtype, true);
    g->tiles = g->rows_per_task * g->across;
    g->channels = padded;
    /* Slack: with odd output sizes the last tiles read one row and one pixel more. */
    bool fits = dq_mul_size(conv->own, s->out_channels, used) && dq_align_size(*used, DQ_ALIGN, used) &&
                dq_reserve_size(used, g->panels * COLS, sizeof(int32_t), DQ_ALIGN, &conv->columns_offset) &&
                dq_reserve_size(used, conv->image.size, conv->pass, DQ_ALIGN, &conv->images_offset) &&
                dq_add_size(conv->image.width, 2, &slack) && dq_mul_size(slack, conv->image.unit, &slack) &&
                dq_add_size(*used, slack, used) && dq_add_size(*used, DQ_GEMM_S8_SLACK, used) &&
                dq_mul_size(g->tiles, padded, &size) &&
                dq_reserve_size(worker, size, POINTS * sizeof(int16_t), DQ_ALIGN, &g->v_offset) &&
                dq_reserve_size(worker, g->tiles, POINTS * COLS * sizeof(int32_t), DQ_ALIGN, &g->m_offset) &&
                dq_reserve_size(worker, g->tiles, SIDE * COLS * sizeof(int32_t), DQ_ALIGN, &g->y_offset) &&
                dq_mul_size(g->panels * COLS, padded, &size) &&
                dq_mul_size(size, POINTS * sizeof(int16_t), &g->sums_offset) &&
                dq_add_size(g->sums_offset, g->panels * COLS * sizeof(int32_t), &size);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "transformed weights and pixels");
    return dq_call_pack_deferred(call, conv->w, dq_pack_conv_winograd_s8, &f, sizeof f, size, &conv->packed,
                                 err);
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

static void set_columns(const dq_op_call *call, const dq_conv_s8 *conv)
{
    const int32_t *sums =
        (const int32_t *)(const void *)((const char *)conv->packed + conv->winograd.sums_offset);
    int32_t *init = (int32_t *)((char *)call->scratch + conv->columns_offset);
    uint32_t zero =
        (uint32_t)dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->x_zero, 0), call->in[conv->x]->dtype, false);
    dq_conv_s8_columns(call, conv, conv->winograd.panels * COLS, init, NULL);
    for (size_t j = 0; j < conv->s.out_channels; j++)
        init[j] = (int32_t)((uint32_t)init[j] - zero * (uint32_t)sums[j]);
}

typedef struct task {
    const dq_conv_s8_batch_tile *pass;
    size_t image, first, rows; /* image of the batch; first row of tiles, and their number */
    int16_t *v;
    int32_t *m, *y;
} task;

static void transform_pixels(const task *t)
{
    const dq_conv_s8 *conv = t->pass->conv;
    const dq_conv_s8_winograd *g = &conv->winograd;
    const uint8_t *image = t->pass->images + (t->image - t->pass->first) * conv->image.size;
    for (size_t i = 0; i < t->rows; i++)
        t->pass->call->kernels->winograd_s8->input(
            image + (t->first + i) * 2 * conv->image.step[0], conv->image.step[0], conv->image.step[1],
            g->across, g->channels, t->v + i * g->across * g->channels, g->tiles * g->channels);
}

static void run_panel(const task *t, size_t panel)
{
    const dq_op_call *call = t->pass->call;
    const dq_conv_s8 *conv = t->pass->conv;
    const dq_conv_s8_winograd *g = &conv->winograd;
    const int32_t *init =
        (const int32_t *)((const char *)call->scratch + conv->columns_offset) + panel * COLS;
    size_t width = (size_t)conv->s.window.out[1], height = (size_t)conv->s.window.out[0],
           u_point = g->channels * COLS;
    size_t point = g->tiles * COLS, left = conv->s.out_channels - panel * COLS;
    dq_conv_sums out = {.conv = conv,
                        .call = call,
                        .batch = t->image,
                        .channel = panel * COLS,
                        .channels = left < COLS ? left : COLS,
                        .first = 2 * t->first * width,
                        .c_stride = COLS,
                        .c = t->y};
    for (size_t p = 0; p < POINTS; p++)
        call->kernels->winograd_s8->product(
            t->v + p * g->tiles * g->channels, t->rows * g->across, g->channels,
            (const int16_t *)conv->packed + (panel * POINTS + p) * u_point, t->m + p * point);
    for (size_t i = 0; i < t->rows; i++) {
        size_t row = 2 * (t->first + i), rows = height - row < 2 ? height - row : 2;
        call->kernels->winograd_s8->output(t->m + i * g->across * COLS, point, init, width, rows,
                                           t->y + out.count * COLS);
        out.count += rows * width;
    }
    conv->store(&out);
}

typedef struct tasks {
    const dq_conv_s8_batch_tile *pass;
    dq_partition cut;
} tasks;

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const tasks *all = arg;
    const dq_conv_s8_batch_tile *pass = all->pass;
    const dq_conv_s8_winograd *g = &pass->conv->winograd;
    char *scratch = dq_call_worker_scratch(pass->call, worker);
    size_t rows = ((size_t)pass->conv->s.window.out[0] + 1) / 2;
    for (size_t i = begin; i < end; i++) {
        size_t panel, last, number = dq_partition_piece(&all->cut, i, g->panels, &panel, &last);
        task t = {.pass = pass,
                  .image = pass->first + number / g->tasks,
                  .first = number % g->tasks * g->rows_per_task,
                  .v = (int16_t *)(scratch + g->v_offset),
                  .m = (int32_t *)(scratch + g->m_offset),
                  .y = (int32_t *)(scratch + g->y_offset)};
        t.rows = rows - t.first < g->rows_per_task ? rows - t.first : g->rows_per_task;
        transform_pixels(&t);
        for (; panel < last; panel++)
            run_panel(&t, panel);
    }
}

static void run_pass(const dq_conv_s8_batch_tile *pass)
{
    const dq_conv_s8_winograd *g = &pass->conv->winograd;
    tasks all = {pass, dq_threads_cut(pass->call->threads, pass->count * g->tasks, g->panels)};
    dq_parallel(pass->call->threads, dq_partition_count(&all.cut), 1, run_tasks, &all);
}

void dq_conv_s8_winograd_2d_run(const dq_op_call *call, const void *state, const void *operands)
{
    (void)operands;
    dq_conv_s8_batch_tile pass = {.call = call, .conv = state};
    set_columns(call, pass.conv);
    dq_conv_s8_run_batch_tiles(&pass, true, run_pass);
}
