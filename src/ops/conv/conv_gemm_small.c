/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/conv_gemm_small.h"

#include "base/checked.h"
#include "ops/conv/conv_f32_algorithms.h"
#include "ops/conv/im2col_pack.h"

#include <math.h>

enum {
    MAX_WINDOWS = 64,            /* maximum windows of an image */
    MAX_POINTWISE_WINDOWS = 256, /* the same for pointwise convolutions with many channels */
    MIN_POINTWISE_CHANNELS = 96, /* minimum input and output channels for MAX_POINTWISE_WINDOWS */
    STEPS = 256,                 /* steps of windows that a task lays out, about */
    LINE = 16                    /* floats of a cache line */
};

typedef struct job {
    const dq_op_call *call;
    const dq_conv_gemm_small *c;
    const dq_conv_floats *o;
} job;

static float *rows_of(const job *j, size_t batch)
{
    char *at = (char *)j->call->scratch + j->c->rows_offset;
    return (float *)(void *)at + batch * j->c->shape->out_size * j->c->row;
}

/* ---- GEMM --------------------------------------------------------------------------------------------- */

static void part_rows(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    (void)workspace;
    const job *j = arg;
    block->a = rows_of(j, part->batch) + part->row * j->c->row + part->p;
    block->a_row = j->c->row;
}

static size_t channel_of(const dq_conv_shape *s, const dq_gemm_part *part)
{
    return part->batch % s->group * s->group_out + part->col;
}

static void part_weights(const void *arg, const dq_gemm_part *part, float *workspace,
                         dq_gemm_block_f32 *block)
{
    (void)workspace;
    const job *j = arg;
    const size_t k = j->c->product.k;
    const size_t panel = part->batch % j->c->shape->group * j->c->panel_count + part->col / DQ_GEMM_F32_NR;
    block->b = j->c->panels + (panel * k + part->p) * DQ_GEMM_F32_NR;
    block->b_step = DQ_GEMM_F32_NR;
    block->b_panel = DQ_GEMM_F32_NR * k;
}

/* Columns are output channels: the bias is added as z with row stride 0. */
static void part_sums(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_conv_shape *s = j->c->shape;
    block->c = workspace;
    block->c_row = part->cols;
    block->z = j->o->bias ? j->o->bias + channel_of(s, part) : NULL;
    block->z_row = 0;
    block->low = j->o->z ? -INFINITY : j->o->finish->low;
    block->high = j->o->z ? INFINITY : j->o->finish->high;
    block->gate = j->o->z ? NULL : j->o->finish->gate;
}

/* Transposes finished sums to NCHW and applies the rest of the epilogue there, image by image. */
static void part_done(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_conv_floats *o = j->o;
    const dq_conv_shape *s = j->c->shape;
    for (size_t i = 0, rows; i < part->rows; i += rows) {
        const size_t image = part->batch + (part->row + i) / s->out_size, row = (part->row + i) % s->out_size;
        const size_t at = (image * s->group_out + part->col) * s->out_size + row;
        rows = dq_least(s->out_size - row, part->rows - i);
        j->call->kernels->transpose_x32((const uint32_t *)(const void *)(block->c + i * block->c_row),
                                        block->c_row, rows, part->cols, (uint32_t *)(void *)(o->out + at),
                                        s->out_size);
        const dq_plane_sums sums = {at, part->cols, rows, s->out_size};
        dq_conv_epilogue_sums(j->call, o, &sums, NULL, !o->z);
    }
}

/* ---- im2row ------------------------------------------------------------------------------------------- */

/* Lays out the windows (im2row) of `chunk` channels of a group. */
static void windows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_gemm_small *c = j->c;
    const dq_conv_shape *s = c->shape;
    dq_transpose_x32_fn *transpose = j->call->kernels->transpose_x32;
    float *workspace = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i++) {
        const size_t batch = i / c->chunks, channel = i % c->chunks * c->chunk;
        const size_t channels = dq_least(c->chunk, s->group_in - channel);
        const float *x = j->o->x + batch * s->group_in * s->in_size;
        uint32_t *to = (uint32_t *)(void *)(rows_of(j, batch) + channel * s->kernel_size);
        if (c->pointwise)
            transpose((const uint32_t *)(const void *)(x + channel * s->in_size), s->in_size, channels,
                      s->in_size, to, c->row);
        for (size_t col = 0; col < s->out_size && !c->pointwise; col += DQ_GEMM_F32_NR) {
            dq_gemm_block_f32 block;
            const dq_gemm_part part = {.col = col,
                                       .cols = dq_least(DQ_GEMM_F32_NR, s->out_size - col),
                                       .p = channel * s->kernel_size,
                                       .k = channels * s->kernel_size};
            dq_im2col_pack(j->call->kernels, &s->window, x, &part, workspace, &block);
            transpose((const uint32_t *)(const void *)workspace, DQ_GEMM_F32_NR, part.k, part.cols,
                      to + col * c->row, c->row);
        }
    }
}

/* ---- Preparation and run ------------------------------------------------------------------------------ */

bool dq_conv_f32_gemm_small_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const size_t most =
        s->kernel_size == 1 && s->group_in >= MIN_POINTWISE_CHANNELS && s->group_out >= MIN_POINTWISE_CHANNELS
            ? MAX_POINTWISE_WINDOWS
            : MAX_WINDOWS;
    if (!dq_conv_f32_is_countable(p, reason))
        return false;
    if (!p->constant_weights || !p->float_weights)
        return dq_not_applicable(reason, "weights are not constant floats");
    if (s->group_out < DQ_GEMM_F32_NR)
        return dq_not_applicable(reason, "%zu output channels, expected at least %d", s->group_out,
                                 DQ_GEMM_F32_NR);
    return s->out_size <= most ||
           dq_not_applicable(reason, "%zu output pixels, expected at most %zu", s->out_size, most);
}

dq_algorithm_work dq_conv_f32_gemm_small_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double rows = (double)s->batch * (double)s->out_size * (double)s->group;
    return (dq_algorithm_work){.macs = dq_conv_f32_macs(s, DQ_GEMM_F32_NR),
                               .bytes = rows * (double)s->group_in * (double)s->kernel_size * sizeof(float),
                               .calls =
                                   rows * (double)((s->group_out + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR)};
}

dq_status dq_conv_gemm_small_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                     dq_conv_gemm_small *c, dq_error *err)
{
    const size_t k = shape->group_in * shape->kernel_size, batches = shape->batch * shape->group;
    const size_t workers = dq_threads_count(call->threads);
    size_t workspace;
    *c = (dq_conv_gemm_small){.shape = shape, .pointwise = dq_conv_pointwise(shape)};
    c->panel_count = (shape->group_out + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR;
    c->row = ((k + LINE - 1) / LINE | 1) * LINE; /* odd number of lines: rows use all sets of L1 */
    c->chunk = dq_least(STEPS / shape->kernel_size + 1, shape->group_in);
    c->chunks = (shape->group_in + c->chunk - 1) / c->chunk;
    if (c->chunks * batches % workers != 0) { /* an equal number for each thread */
        const size_t more = c->chunks + workers - c->chunks % workers;
        c->chunk = dq_least(c->chunk, (shape->group_in + more - 1) / more);
        c->chunks = (shape->group_in + c->chunk - 1) / c->chunk;
    }
    /* without groups, the rows of all images form one matrix: weights are read once for several images */
    c->product = (dq_gemm_f32){.batches = shape->group == 1 ? 1 : batches,
                               .m = shape->group == 1 ? shape->batch * shape->out_size : shape->out_size,
                               .n = shape->group_out,
                               .k = k,
                               .grain = 1,
                               .b_packed = true,
                               .c_workspace = true,
                               .a = part_rows,
                               .b = part_weights,
                               .c = part_sums,
                               .done = part_done};
    const dq_pack_b_shape weights = {
        .batches = shape->group, .n = shape->group_out, .k = k, .col_stride = k, .step_stride = 1};
    DQ_TRY(dq_panels_f32_constant(call, w, &weights, &c->panels, err));
    DQ_TRY(dq_gemm_f32_prepare(call, &c->product, err));
    if (!dq_call_reserve(call, batches * shape->out_size, c->row, sizeof(float), &c->rows_offset) ||
        !dq_mul_size(c->chunk * shape->kernel_size, DQ_GEMM_F32_NR * sizeof(float), &workspace))
        return dq_no_memory(err, SIZE_MAX, "windows");
    if (call->worker_scratch_size < workspace)
        call->worker_scratch_size = workspace;
    return DQ_OK;
}

void dq_conv_gemm_small_run(const dq_op_call *call, const dq_conv_gemm_small *c, const dq_conv_floats *o)
{
    job j = {call, c, o};
    dq_parallel(call->threads, c->shape->batch * c->shape->group * c->chunks, 1, windows, &j);
    dq_gemm_f32_run(call, &c->product, &j);
}
