/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/qconv16_bytesplit.h"

#include "base/checked.h"
#include "ops/conv/conv_s16_algorithms.h"
#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/matmul/qgemm16_pack.h"
#include "ops/packers.h"

#include <string.h>

enum {
    ROWS = DQ_GEMM_BYTESPLIT_ROWS,
    COLS = DQ_GEMM_BYTESPLIT_COLS,
    NR = DQ_GEMM_BYTESPLIT_NR,
    QUAD = 4,
    TILE_ROWS = 4, /* rows of the smallest register tile of kernels */
    MAX_INT32_WEIGHT_SUM =
        1 << 16, /* 2^31 / 2^15: bound of a row's sum of |w| below which int32 holds its sums with x */
    BAND_BYTES = 3 << 16,        /* approximate bytes of a band */
    MAX_GATHERED_BYTES = 5 << 17 /* maximum bytes of gathered columns */
};

bool dq_conv_s16_gemm_bytes_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s16_problem *p = problem;
    return p->can_bytesplit || dq_not_applicable(reason, "not 16 by 8 bits with constant, symmetric weights");
}

dq_algorithm_work dq_conv_s16_gemm_bytes_work(const void *problem)
{
    const dq_conv_s16_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double pixels = (double)s->batch * (double)s->group * (double)s->out_size;
    const double padding = (double)((s->group_in + QUAD - 1) / QUAD * QUAD) / (double)s->group_in;
    return (dq_algorithm_work){.macs = 2 * padding * dq_conv_s16_macs(s, TILE_ROWS, COLS),
                               .bytes =
                                   pixels * (double)s->group_in * (double)s->kernel_size * sizeof(int16_t),
                               .calls = pixels / COLS * (double)(s->group_out / ROWS + 1)};
}

/* ---- Packing ------------------------------------------------------------------------------------------- */

/* Parameters of the packed weights; the key of dq_call_pack, compared as bytes. */
typedef struct form {
    size_t groups, rows, panels, blocks, depth, taps, sums_offset;
} form;

/* Packs panels of rows, block by block. A quad has one kernel element of four consecutive input channels. */
void dq_pack_conv_bytesplit_s16s8(void *packed, const dq_tensor *from, const void *key)
{
    const form *f = key;
    int32_t *sums = (int32_t *)(void *)((char *)packed + f->sums_offset);
    int32_t *largest = sums + f->groups * f->panels * ROWS;
    const uint8_t sign_xor = dq_gemm_s8_sign_xor(from->dtype, true), *x = from->data;
    const size_t line = DQ_GEMM_BYTESPLIT_DEPTH * QUAD;
    for (size_t r = 0; r < f->groups * f->rows; r++) {
        const size_t row = r % f->rows, panel = r / f->rows * f->panels + row / ROWS;
        int8_t *to = (int8_t *)packed + panel * f->blocks * DQ_GEMM_BYTESPLIT_WEIGHTS + row % ROWS * line;
        int32_t sum = 0, size = 0;
        for (size_t c = 0; c < f->depth; c++)
            for (size_t t = 0; t < f->taps; t++, x++) {
                const size_t quad = c / QUAD * f->taps + t;
                const int8_t qvalue = (int8_t)(*x ^ sign_xor);
                to[quad / DQ_GEMM_BYTESPLIT_DEPTH * DQ_GEMM_BYTESPLIT_WEIGHTS +
                   quad % DQ_GEMM_BYTESPLIT_DEPTH * QUAD + c % QUAD] = qvalue;
                sum += qvalue;
                size += qvalue < 0 ? -qvalue : qvalue;
            }
        sums[panel * ROWS + row % ROWS] = sum;
        if (size > *largest)
            *largest = size;
    }
}

dq_status dq_qconv16_bytesplit_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_bytesplit *c,
                                       dq_error *err)
{
    size_t elements, size, columns, *used = &call->worker_scratch_size;
    const size_t channels = (s->group_in + QUAD - 1) / QUAD;
    c->planes = 2 * channels;
    c->quads = channels * s->kernel_size;
    c->blocks = dq_gemm_bytesplit_s16s8_blocks(c->quads);
    c->panels = (s->group_out + ROWS - 1) / ROWS;
    c->pointwise = dq_conv_pointwise(s);
    DQ_TRY(dq_input_band_prepare(call, s, c->planes, false, BAND_BYTES, &c->b, err));
    columns = MAX_GATHERED_BYTES / (c->blocks * DQ_GEMM_BYTESPLIT_CODES);
    c->gathered = columns > 1 ? columns : 1;
    if (!dq_mul_size(s->group * c->panels, c->blocks * DQ_GEMM_BYTESPLIT_WEIGHTS, &c->sums_offset) ||
        !dq_mul_size(s->group * c->panels, ROWS * sizeof(int32_t), &size) ||
        !dq_add_size(size, sizeof(int32_t), &size) || !dq_add_size(size, c->sums_offset, &size) ||
        !dq_input_band_size(&c->b, c->planes, &elements) || elements > UINT32_MAX / sizeof(int16_t) ||
        !dq_reserve_size(used, c->pointwise ? 0 : elements, sizeof(int16_t), DQ_ALIGN, &c->band_at) ||
        !dq_reserve_size(used, c->quads, sizeof(uint32_t), DQ_ALIGN, &c->offsets_at) ||
        !dq_reserve_size(used, c->gathered, c->blocks * DQ_GEMM_BYTESPLIT_CODES, DQ_ALIGN, &c->gathered_at) ||
        !dq_reserve_size(used, 2 * DQ_GEMM_BYTESPLIT_SUMS, sizeof(int32_t), DQ_ALIGN, &c->sums_at) ||
        !dq_mul_size(s->out_channels, 3 * sizeof(double), &call->scratch_size))
        return dq_no_memory(err, SIZE_MAX, "the input under a convolution's windows");
    const form key = {.groups = s->group,
                      .rows = s->group_out,
                      .panels = c->panels,
                      .blocks = c->blocks,
                      .depth = s->group_in,
                      .taps = s->kernel_size,
                      .sums_offset = c->sums_offset};
    return dq_call_pack_deferred(call, DQ_Q16_W, dq_pack_conv_bytesplit_s16s8, &key, sizeof key, size,
                                 &c->packed, err);
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

typedef struct task {
    const dq_op_call *call;
    const dq_conv_shape *s;
    const dq_qconv16_bytesplit *c;
    dq_partition cut;   /* of bands, and of their pairs of panels, among threads */
    dq_q16_terms terms; /* for all output channels */
    double factor;
    size_t image, group, first, count; /* range of output positions along the first axis */
    int16_t *band;
    uint8_t *gathered;
    uint32_t *offsets;
    int32_t *lower, *upper;
} task;

/* Offsets and lengths, in an output channel, of the two halves of a column tile. */
typedef struct columns {
    size_t at[2], n[2];
} columns;

/* Finds the next 8 outputs of the band, from output column *column of row *row on, and advances both. */
static const uint8_t *find_block(const task *t, size_t *row, size_t *column, size_t *at, size_t *n)
{
    const dq_input_band *b = &t->c->b;
    const size_t all = dq_input_band_columns(b, t->count);
    const int16_t *x = t->band + dq_input_band_offset(b, *row) + 2 * *column;
    *n = all - *column < NR ? all - *column : NR;
    *at = t->first * (t->s->out_size / (size_t)b->w.out[0]) + *row * all + *column;
    *column += NR;
    if (*column >= all) {
        *column = 0;
        *row += 1;
    }
    return (const uint8_t *)x;
}

/* Packs a column tile of a band. Advances *column and *row. */
static columns gather_tile(const task *t, size_t *row, size_t *column, uint8_t *to)
{
    const dq_qconv16_bytesplit *c = t->c;
    columns at = {0};
    const uint8_t *x[2];
    x[0] = x[1] = find_block(t, row, column, &at.at[0], &at.n[0]);
    if (*row < dq_input_band_rows(&c->b, t->count))
        x[1] = find_block(t, row, column, &at.at[1], &at.n[1]);
    t->call->kernels->gemm_bytesplit_s16s8->gather(x, t->offsets, c->quads, c->b.plane * sizeof(int16_t), to);
    return at;
}

/* The same for a pointwise convolution, whose band is a single row. */
static columns split_tile(const task *t, size_t *row, size_t *column, uint8_t *to)
{
    const dq_conv_shape *s = t->s;
    const dq_tensor *x = t->call->in[DQ_Q16_X];
    const size_t left = t->count - *column, n = left < COLS ? left : COLS, at = t->first + *column;
    const size_t channel = t->image * s->in_channels + t->group * s->group_in;
    t->call->kernels->gemm_bytesplit_s16s8->split((const uint16_t *)x->data + channel * s->in_size + at,
                                                  s->in_size, s->group_in, n,
                                                  x->dtype == DQ_UINT16 ? 0x8000 : 0, to);
    *column += n;
    *row += *column == t->count;
    return (columns){.at = {at, at + NR}, .n = {n < NR ? n : NR, n < NR ? 0 : n - NR}};
}

static void put(const task *t, dq_q16_sums *s, size_t channel, size_t column, size_t at)
{
    at += (t->image * t->s->out_channels + channel) * t->s->out_size;
    s->sums = t->lower + column;
    s->high = t->upper + column;
    dq_qgemm16_put(t->call, s, at);
}

/* Computes one or two panels for all gathered columns. */
static void run_panels(const task *t, size_t panel, size_t panels, const columns *at, size_t count)
{
    const dq_qconv16_bytesplit *c = t->c;
    const size_t first = t->group * c->panels + panel, left = t->s->group_out - panel * ROWS;
    const size_t channel = t->group * t->s->group_out + panel * ROWS;
    const int8_t *w = (const int8_t *)c->packed + first * c->blocks * DQ_GEMM_BYTESPLIT_WEIGHTS;
    const int32_t *sums = (const int32_t *)(const void *)((const char *)c->packed + c->sums_offset);
    dq_q16_sums s = dq_qgemm16_sums(t->call);
    s.rows = left < panels * ROWS ? left : panels * ROWS;
    s.stride = COLS;
    s.out_stride = t->s->out_size;
    s.row_step = 1;
    s.narrow = sums[t->s->group * c->panels * ROWS] < MAX_INT32_WEIGHT_SUM;
    dq_q16_sums_by(t->call, t->factor, &t->terms, channel, channel, &s);
    for (size_t i = 0; i < count; i++, at++) {
        t->call->kernels->gemm_bytesplit_s16s8->tile(w, sums + first * ROWS, s.rows, c->quads,
                                                     t->gathered + i * c->blocks * DQ_GEMM_BYTESPLIT_CODES,
                                                     t->lower, t->upper);
        const bool contiguous = at->n[0] == NR && at->at[1] == at->at[0] + NR;
        s.cols = at->n[0] + (contiguous ? at->n[1] : 0);
        put(t, &s, channel, 0, at->at[0]);
        s.cols = at->n[1];
        if (!contiguous && s.cols > 0)
            put(t, &s, channel, NR, at->at[1]);
    }
}

/* Computes panels first … end - 1 for all columns of the band. */
static void run_band(const task *t, size_t first, size_t end)
{
    enum {
        MAX_COLUMNS = MAX_GATHERED_BYTES / DQ_GEMM_BYTESPLIT_CODES
    }; /* maximum column tiles gathered at a time */
    const dq_qconv16_bytesplit *c = t->c;
    const dq_gemm_bytesplit_s16s8 *kernel = t->call->kernels->gemm_bytesplit_s16s8;
    const size_t all = dq_input_band_rows(&c->b, t->count);
    columns at[MAX_COLUMNS];
    for (size_t row = 0, column = 0; row < all;) {
        size_t n = 0;
        for (; n < c->gathered && row < all; n++) {
            uint8_t *to = t->gathered + n * c->blocks * DQ_GEMM_BYTESPLIT_CODES;
            at[n] = c->pointwise ? split_tile(t, &row, &column, to) : gather_tile(t, &row, &column, to);
        }
        if (kernel->begin)
            kernel->begin();
        for (size_t panel = first; panel < end; panel += DQ_GEMM_BYTESPLIT_PANELS)
            run_panels(t, panel,
                       end - panel < DQ_GEMM_BYTESPLIT_PANELS ? end - panel : DQ_GEMM_BYTESPLIT_PANELS, at,
                       n);
        if (kernel->done)
            kernel->done();
    }
}

static size_t pairs_of(const dq_qconv16_bytesplit *c)
{
    return (c->panels + DQ_GEMM_BYTESPLIT_PANELS - 1) / DQ_GEMM_BYTESPLIT_PANELS;
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const dq_conv_shape *s = t.s;
    const dq_qconv16_bytesplit *c = t.c;
    char *scratch = dq_call_worker_scratch(t.call, worker);
    const int16_t pad = (int16_t)dq_qgemm16_zero(t.call->in[DQ_Q16_X_ZERO], 0);
    size_t filled = SIZE_MAX;
    t.band = (int16_t *)(void *)(scratch + c->band_at);
    t.offsets = (uint32_t *)(void *)(scratch + c->offsets_at);
    t.gathered = (uint8_t *)scratch + c->gathered_at;
    t.lower = (int32_t *)(void *)(scratch + c->sums_at);
    t.upper = t.lower + DQ_GEMM_BYTESPLIT_SUMS;
    if (!c->pointwise)
        memset(t.band + c->planes * c->b.plane, 0, 2 * NR * sizeof *t.band); /* slack, read but not used */
    for (size_t q = 0; q < c->quads; q++)
        t.offsets[q] = (uint32_t)((q / s->kernel_size * 2 * c->b.plane + c->b.taps[q % s->kernel_size]) *
                                  sizeof(int16_t));
    for (size_t i = begin; i < end; i++) {
        size_t pair, end_pair;
        const size_t rest = dq_partition_piece(&t.cut, i, pairs_of(c), &pair, &end_pair);
        const size_t end_panel = end_pair * DQ_GEMM_BYTESPLIT_PANELS;
        dq_input_band_range(&c->b, rest % c->b.bands, &t.first, &t.count);
        t.group = rest / c->b.bands % s->group;
        t.image = rest / c->b.bands / s->group;
        if (filled != rest && !c->pointwise)
            dq_input_band_fill_quads(&c->b, t.call->in[DQ_Q16_X], t.first,
                                     (t.image * s->in_channels + t.group * s->group_in) * s->in_size,
                                     s->group_in, pad, t.band);
        filled = rest;
        run_band(&t, pair * DQ_GEMM_BYTESPLIT_PANELS, end_panel < c->panels ? end_panel : c->panels);
    }
}

void dq_qconv16_bytesplit_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_bytesplit *c)
{
    task t = {.call = call,
              .s = s,
              .c = c,
              .terms = dq_q16_terms_in(call->scratch, s->out_channels),
              .factor = dq_q16_factor(call)};
    const int32_t *sums = (const int32_t *)(const void *)((const char *)c->packed + c->sums_offset);
    const int64_t x_zero = dq_qgemm16_zero(call->in[DQ_Q16_X_ZERO], 0);
    for (size_t i = 0; i < s->out_channels; i++) {
        const size_t row = i / s->group_out * c->panels * ROWS + i % s->group_out;
        dq_q16_term(call, t.factor, i, (double)(-x_zero * sums[row]), i, &t.terms);
    }
    t.cut = dq_threads_cut(call->threads, s->batch * s->group * c->b.bands, pairs_of(c));
    const size_t products =
        s->out_size / c->b.bands * c->panels * ROWS * (s->group_in * s->kernel_size + 1) / t.cut.parts;
    dq_parallel(call->threads, dq_partition_count(&t.cut), dq_gemm_s8_grain(products), run_tasks, &t);
}
