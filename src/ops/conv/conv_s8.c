/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/conv_s8.h"

#include "base/checked.h"

#include <string.h>

dq_status dq_conv_s8_infer(const dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    DQ_TRY(dq_conv_shape_infer(call, conv->x, conv->w, conv->x_last, conv->y_last, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, conv->x_zero, false, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, conv->w_zero, true, &conv->s, err));
    return dq_conv_bias_check(call, conv->bias, &conv->s, err);
}

static const dq_algorithm rows[] = {
#define DQ_ROW(name, summary, run)                                                                           \
    {"conv_s8=" #name,                                                                                       \
     summary,                                                                                                \
     0,                                                                                                      \
     dq_conv_s8_##name##_is_applicable,                                                                      \
     dq_conv_s8_##name##_work,                                                                               \
     dq_conv_s8_##name##_prepare,                                                                            \
     dq_conv_s8_##run##_run},
#include "ops/conv/conv_s8.def"
#undef DQ_ROW
};

const dq_algorithm_table dq_conv_s8_algorithms = {
    .name = "conv_s8",
    .summary = "convolution of 8-bit integers (ConvInteger, QLinearConv and their fused forms)",
    .rows = rows,
    .count = sizeof rows / sizeof *rows};

static const dq_algorithm *row_of(const char *id)
{
    size_t i = 0;
    while (strcmp(rows[i].id, id) != 0)
        i++;
    return &rows[i];
}

static double cost_of(const char *id, const dq_conv_s8_problem *p)
{
    const dq_algorithm *row = row_of(id);
    const dq_algorithm_work work = row->work(p);
    return dq_algorithm_cost(row, &work, p->kernels->isa);
}

size_t dq_conv_s8_depth_of_planes(const dq_kernels *kernels)
{
    enum { CHANNELS = 64, PIXELS = 28 * 28 }; /* a typical layer */
    const dq_conv_shape shape = {.window = {.rank = 1, .kernel = {1}, .out = {PIXELS}},
                                 .batch = 1,
                                 .group = 1,
                                 .in_channels = CHANNELS,
                                 .out_channels = CHANNELS,
                                 .group_in = CHANNELS,
                                 .group_out = CHANNELS,
                                 .in_size = PIXELS,
                                 .kernel_size = 1,
                                 .out_size = PIXELS};
    const dq_conv_s8_problem p = {.shape = &shape,
                                  .unpadded = true,
                                  .constant_weights = true,
                                  .same_sign = true,
                                  .image_bytes = CHANNELS * PIXELS,
                                  .run = CHANNELS,
                                  .runs = 1,
                                  .weight_chunks = 1,
                                  .kernels = kernels};
    if (cost_of("conv_s8=nc4hw4", &p) > cost_of("conv_s8=gemm_pointwise", &p))
        return 0;
    return kernels->conv_nc4hw4_s8->nhwc ? SIZE_MAX : kernels->conv_nc4hw4_s8->deepest;
}

/* ---- Problem of the algorithm table ------------------------------------------------------------------- */

/* Sets equal_weight_zeros and no_weight_zeros from the weights' zero points. */
static void look_at_zeros(const dq_op_call *call, const dq_conv_s8 *conv, dq_conv_s8_problem *p)
{
    const dq_dtype type = call->in[conv->w]->dtype;
    const dq_tensor *zero = dq_call_in(call, conv->w_zero);
    p->equal_weight_zeros = p->no_weight_zeros = !zero || dq_call_constant(call, conv->w_zero);
    for (size_t j = 0; p->equal_weight_zeros && j < (zero ? zero->count : 1); j++) {
        const int32_t value = dq_conv_s8_zero(call, conv->w_zero, j);
        p->no_weight_zeros = p->no_weight_zeros && dq_gemm_s8_zero(value, type, true) == 0;
        p->equal_weight_zeros = value == dq_conv_s8_zero(call, conv->w_zero, 0);
    }
    p->no_weight_zeros = p->no_weight_zeros && p->equal_weight_zeros;
}

/* True if every operand of the requantized result but x is constant. */
static bool knows_requantization(const dq_op_call *call, const dq_conv_s8 *conv)
{
    const uint32_t known[] = {conv->w, conv->x_zero, conv->w_zero, conv->bias};
    double scale;
    dq_requantize_to to;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (dq_call_in(call, known[i]) && !dq_call_constant(call, known[i]))
            return false;
    return conv->qvalues && conv->qvalues(call, 0, &scale, &to);
}

static dq_conv_s8_problem describe(const dq_op_call *call, dq_conv_s8 *conv)
{
    const dq_conv_shape *s = &conv->s;
    dq_conv_s8_problem p = {.shape = s,
                            .depthwise = s->group_in == 1 && s->group > 1,
                            .unpadded = conv->image.whole,
                            .constant_weights = dq_call_constant(call, conv->w),
                            .known_requantization = knows_requantization(call, conv),
                            .image_bytes = s->in_channels * s->in_size,
                            .kernels = call->kernels};
    look_at_zeros(call, conv, &p);
    if (!p.depthwise) {
        dq_conv_s8_gemm_describe(call, conv);
        p.run = conv->run;
        p.runs = conv->runs;
        p.same_sign = dq_gemm_s8_sign_xor(call->in[conv->x]->dtype, conv->weights.kernel->a_signed) == 0;
        p.weight_chunks = dq_conv_s8_gemm_chunks(call, conv);
    }
    return p;
}

dq_status dq_conv_s8_prepare(dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    dq_conv_shape *s = &conv->s;
    if (s->batch * s->out_channels * s->out_size == 0)
        return DQ_OK; /* no output; other sizes may be arbitrarily large */
    const bool depthwise = s->group_in == 1 && s->group > 1, planes = depthwise && !s->x_last && !s->y_last;
    if (s->in_size == 1 && !depthwise)
        s->x_last = true; /* with one pixel, NCHW and NHWC are the same */
    if (!dq_padded_input_layout(s, planes ? 1 : s->in_channels, !planes, &conv->image))
        return dq_no_memory(err, SIZE_MAX, "a padded image");
    const dq_conv_s8_problem problem = describe(call, conv);
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_CONV_S8, &problem, &conv->algorithm, err));
    return conv->algorithm->prepare(call, conv, err);
}

dq_status dq_conv_s8_find_offsets(dq_op_call *call, dq_conv_s8 *conv, size_t runs, size_t step, dq_error *err)
{
    conv->offsets = DQ_NEW_ARRAY(call->arena, runs ? runs : 1, ptrdiff_t);
    if (!conv->offsets)
        return dq_no_memory(err, runs, "offsets of a kernel's elements");
    for (size_t t = 0; t < runs; t++)
        conv->offsets[t] = dq_padded_input_offset(&conv->image, &conv->s.window, t * step);
    return DQ_OK;
}

size_t dq_conv_s8_images(const dq_conv_s8 *conv)
{
    enum { PASS = 1 << 21 }; /* approximate bytes of the padded images of a pass */
    size_t images = conv->image.size < PASS ? PASS / (conv->image.size + 1) + 1 : 1;
    return images < conv->s.batch ? images : conv->s.batch;
}

uint8_t dq_conv_s8_sign_xor(const dq_op_call *call, const dq_conv_s8 *conv)
{
    return dq_gemm_s8_sign_xor(call->in[conv->x]->dtype, conv->image_signed);
}

bool dq_conv_s8_has_images(const dq_conv_s8 *conv)
{
    return conv->rows != DQ_CONV_S8_TRANSPOSED && conv->rows != DQ_CONV_S8_IN_PLACE;
}

void dq_conv_sums_transpose(const dq_conv_sums *sums, void *out)
{
    if (sums->channels == 1 && sums->c_stride == 1)
        memcpy(out, sums->c, sums->count * sizeof *sums->c);
    else
        sums->call->kernels->transpose_x32((const uint32_t *)sums->c, sums->c_stride, sums->count,
                                           sums->channels, out, sums->conv->s.out_size);
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

typedef struct filling {
    const dq_conv_s8_batch_tile *run;
    size_t parts; /* tasks of a row, each with some of its channels */
} filling;

static void fill_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    enum { GRANULE = 64 }; /* channels */
    (void)worker;
    const filling *f = arg;
    const dq_conv_s8_batch_tile *run = f->run;
    const dq_conv_s8 *conv = run->conv;
    const dq_padded_input *image = &conv->image;
    const dq_tensor *x = run->call->in[conv->x];
    uint8_t sign_xor = dq_conv_s8_sign_xor(run->call, conv);
    dq_padded_input_fill fill = {.kernels = run->call->kernels,
                                 .image = image,
                                 .s = &conv->s,
                                 .sign_xor = sign_xor,
                                 .pad = (uint8_t)dq_conv_s8_zero(run->call, conv->x_zero, 0) ^ sign_xor};
    size_t x_size = conv->s.in_channels * conv->s.in_size;
    for (size_t i = begin; i < end; i++) {
        size_t part = i % f->parts, number = i / f->parts / image->rows, row = i / f->parts % image->rows;
        fill.x = (const uint8_t *)x->data + (run->first + number) * x_size;
        uint8_t *to = run->images + number * image->size + row * image->width * image->unit;
        size_t some = image->unit / GRANULE, last = some * (part + 1) / f->parts * GRANULE;
        if (f->parts == 1)
            dq_padded_input_row(&fill, row, to);
        else
            dq_padded_input_planes(&fill, row, some * part / f->parts * GRANULE,
                                   part + 1 < f->parts ? last : image->unit, to);
    }
}

static void fill_images(const dq_conv_s8_batch_tile *run)
{
    enum { PIECE = 1 << 14 }; /* approximate bytes per task */
    const dq_padded_input *image = &run->conv->image;
    size_t row_bytes = image->width * image->unit;
    filling f = {run, 1};
    if (row_bytes == 0 || !dq_conv_s8_has_images(run->conv))
        return;                         /* without channels, rows are empty and may be arbitrarily many */
    if (image->whole && !image->pixels) /* few rows of many channels: split the channels, too */
        f.parts += image->unit * run->conv->s.in_size / image->rows / PIECE;
    dq_parallel(run->call->threads, run->count * image->rows * f.parts, PIECE / (row_bytes + 1) + 1,
                fill_rows, &f);
}

void dq_conv_s8_columns(const dq_op_call *call, const dq_conv_s8 *conv, size_t width, int32_t *init,
                        int32_t *zero)
{
    const dq_tensor *bias = dq_call_in(call, conv->bias), *zeros = dq_call_in(call, conv->w_zero);
    const size_t some = conv->s.group_out;
    const dq_dtype type = call->in[conv->w]->dtype;
    const bool each = zeros && zeros->count != 1;
    const int32_t only = each ? 0 : dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->w_zero, 0), type, true);
    memset(init, 0, width * conv->s.group * sizeof *init);
    if (zero)
        memset(zero, 0, width * conv->s.group * sizeof *zero);
    for (size_t g = 0, first = 0; g < conv->s.group; g++, first += some) {
        if (bias)
            memcpy(init + g * width, dq_data(bias, int32_t) + first, some * sizeof *init);
        for (size_t j = 0; zero && j < some; j++)
            zero[g * width + j] =
                each ? dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->w_zero, first + j), type, true) : only;
    }
}

void dq_conv_s8_run_batch_tiles(dq_conv_s8_batch_tile *pass, bool fill,
                                void (*run)(const dq_conv_s8_batch_tile *pass))
{
    const dq_conv_s8 *conv = pass->conv;
    pass->images = (uint8_t *)pass->call->scratch + conv->images_offset;
    for (pass->first = 0; pass->first < conv->s.batch; pass->first += conv->pass) {
        pass->count = dq_least(conv->s.batch - pass->first, conv->pass);
        if (fill)
            fill_images(pass);
        run(pass);
    }
}

void dq_conv_s8_run(const dq_op_call *call, const dq_conv_s8 *conv)
{
    dq_algorithm_run(call, conv->algorithm, conv);
}
