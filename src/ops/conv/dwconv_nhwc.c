/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolution of NHWC tensors. Neighboring channels are contiguous, so that many channels of
 * a pixel are accumulated at a time. Weights are int16 without their zero point, in the order multiplier
 * (index among the output channels of an input channel), kernel position, input channel. */
#include "base/checked.h"
#include "ops/conv/conv_s8.h"

enum { PIXELS = 64 /* pixels per call of store */ };

bool dq_conv_s8_depthwise_nhwc_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    return (p->depthwise && (p->shape->x_last || p->shape->y_last)) ||
           dq_not_applicable(reason, "not depthwise with channels last");
}

dq_algorithm_work dq_conv_s8_depthwise_nhwc_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double planes = (double)s->batch * (double)s->out_channels;
    return (dq_algorithm_work){.macs = planes * (double)s->out_size * (double)s->kernel_size,
                               .bytes = (double)s->batch * (double)p->image_bytes,
                               .calls = planes};
}

dq_status dq_conv_s8_depthwise_nhwc_prepare(dq_op_call *call, void *state, dq_error *err)
{
    dq_conv_s8 *conv = state;
    const dq_conv_shape *s = &conv->s;
    size_t *used = &call->scratch_size, weights;
    DQ_TRY(dq_conv_s8_find_offsets(call, conv, s->kernel_size, 1, err));
    conv->pass = dq_conv_s8_images(conv);
    if (!dq_mul_size(conv->own, s->out_channels, used) || !dq_align_size(*used, DQ_ALIGN, used) ||
        !dq_mul_size(s->out_channels, s->kernel_size, &weights) ||
        !dq_reserve_size(used, weights, sizeof(int16_t), DQ_ALIGN, &conv->weights_offset) ||
        !dq_reserve_size(used, s->out_channels, sizeof(int32_t), DQ_ALIGN, &conv->sums_offset) ||
        !dq_reserve_size(used, conv->image.size, conv->pass, DQ_ALIGN, &conv->images_offset))
        return dq_no_memory(err, SIZE_MAX, "weights and padded images");
    call->worker_scratch_size = sizeof(int32_t[PIXELS * DQ_CONV_S8_CHANNELS]);
    return DQ_OK;
}

/* Writes the weights, and, at sums_offset, the initial value of each output channel's sums: bias - x_zero *
 * sum of its weights. Returns the weights. */
static const void *take_weights(const dq_op_call *call, const dq_conv_s8 *conv)
{
    const dq_conv_shape *s = &conv->s;
    const dq_tensor *w = call->in[conv->w];
    int16_t *weights = (int16_t *)((char *)call->scratch + conv->weights_offset);
    int32_t *starts = (int32_t *)((char *)call->scratch + conv->sums_offset);
    int32_t x_zero = dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->x_zero, 0), call->in[conv->x]->dtype, false);
    for (size_t m = 0; m < s->out_channels; m++) {
        size_t channel = m / s->group_out, multiple = m % s->group_out;
        int16_t *to = weights + multiple * s->kernel_size * s->in_channels + channel;
        int32_t zero = dq_conv_s8_zero(call, conv->w_zero, m);
        uint32_t sum = 0;
        for (size_t t = 0; t < s->kernel_size; t++) {
            size_t i = m * s->kernel_size + t;
            int32_t value = w->dtype == DQ_INT8 ? dq_data(w, int8_t)[i] : dq_data(w, uint8_t)[i];
            to[t * s->in_channels] = (int16_t)(value - zero);
            sum += (uint32_t)(value - zero);
        }
        starts[m] = (int32_t)((uint32_t)dq_conv_s8_bias(call, conv, m) - (uint32_t)x_zero * sum);
    }
    return weights;
}

/* sums[c] += x[c] * w[c], modulo 2^32. A product fits in int32, as |w| is at most 255. */
static void add_products(const uint8_t *x, const int16_t *w, size_t n, int32_t *sums)
{
    for (size_t c = 0; c < n; c++)
        sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)(x[c] * w[c]));
}

/* Output channels per call of store: those of whole input channels if possible. */
static size_t channels_at_a_time(const dq_conv_shape *s)
{
    size_t most = DQ_CONV_S8_CHANNELS;
    return s->group_out <= most ? most / s->group_out * s->group_out : most;
}

/* Computes sums[c] of output channel (first + c) * group_out + multiple, for c < n. */
static void sum_multiple(const dq_conv_s8_batch_tile *pass, const uint8_t *corner, size_t multiple,
                         size_t first, size_t n, int32_t *sums)
{
    const dq_conv_s8 *conv = pass->conv;
    const dq_conv_shape *s = &conv->s;
    const int32_t *starts = (const int32_t *)((const char *)pass->call->scratch + conv->sums_offset);
    const int16_t *w = (const int16_t *)pass->packed + multiple * s->kernel_size * s->in_channels + first;
    for (size_t c = 0; c < n; c++)
        sums[c] = starts[(first + c) * s->group_out + multiple];
    for (size_t t = 0; t < s->kernel_size; t++, w += s->in_channels)
        add_products(corner + conv->offsets[t] + first, w, n, sums);
}

/* Computes the sums of output channels first … end - 1 at one output position. */
static void sum_pixel(const dq_conv_s8_batch_tile *pass, const uint8_t *corner, size_t first, size_t end,
                      int32_t *sums)
{
    const dq_conv_shape *s = &pass->conv->s;
    size_t multiples = s->group_out, channel = first / multiples, n = (end - first) / multiples;
    int32_t few[DQ_CONV_S8_CHANNELS];
    if (multiples == 1) {
        sum_multiple(pass, corner, 0, first, n, sums);
    } else if (multiples <= DQ_CONV_S8_CHANNELS) {
        for (size_t j = 0; j < multiples; j++) {
            sum_multiple(pass, corner, j, channel, n, few);
            for (size_t c = 0; c < n; c++)
                sums[c * multiples + j] = few[c];
        }
    } else {
        for (size_t m = first; m < end; m++)
            sum_multiple(pass, corner, m % multiples, m / multiples, 1, sums + m - first);
    }
}

typedef struct job {
    const dq_conv_s8_batch_tile *pass;
    size_t blocks; /* blocks of output positions per image */
} job;

static void run_block(const job *j, size_t number, size_t first, int32_t *sums)
{
    const dq_conv_s8_batch_tile *pass = j->pass;
    const dq_conv_s8 *conv = pass->conv;
    const dq_conv_shape *s = &conv->s;
    const uint8_t *image = pass->images + number * conv->image.size;
    dq_conv_sums out = {.conv = conv, .call = pass->call, .batch = pass->first + number, .first = first};
    out.count = s->out_size - first < PIXELS ? s->out_size - first : PIXELS;
    out.c_stride = DQ_CONV_S8_CHANNELS;
    out.c = sums;
    size_t most = channels_at_a_time(s);
    for (; out.channel < s->out_channels; out.channel += out.channels) {
        size_t left = s->out_channels - out.channel;
        out.channels = left < most ? left : most;
        for (size_t i = 0; i < out.count; i++)
            sum_pixel(pass, image + dq_padded_input_corner(&conv->image, &s->window, first + i), out.channel,
                      out.channel + out.channels, sums + i * out.c_stride);
        conv->store(&out);
    }
}

static void run_blocks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        run_block(j, i / j->blocks, i % j->blocks * PIXELS, dq_call_worker_scratch(j->pass->call, worker));
}

static void run_pass(const dq_conv_s8_batch_tile *pass)
{
    const dq_conv_shape *s = &pass->conv->s;
    job j = {pass, s->out_size / PIXELS + (s->out_size % PIXELS != 0)};
    dq_parallel(pass->call->threads, pass->count * j.blocks,
                dq_gemm_s8_grain(PIXELS * s->out_channels * s->kernel_size), run_blocks, &j);
}

void dq_conv_s8_depthwise_nhwc_run(const dq_op_call *call, const void *state, const void *operands)
{
    (void)operands;
    dq_conv_s8_batch_tile pass = {.call = call, .conv = state};
    pass.packed = take_weights(call, pass.conv);
    dq_conv_s8_run_batch_tiles(&pass, true, run_pass);
}
