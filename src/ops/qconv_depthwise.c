/* Convolution where each group has one input channel. Weights are taken with their zero point away, as 16-bit
 * numbers (at most 255 in size), so that only the term of x's zero point is left: sum x w' - zx * sum w'. */
#include "base/checked.h"
#include "ops/qconv.h"

enum { ALIGN = 64 };

dq_status dq_qconv_depthwise_prepare(dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    const dq_conv_shape *s = &conv->s;
    size_t size, sums, weights;
    bool fits = dq_add_size(conv->image.size, DQ_QGEMM_SLACK, &size) && dq_align_size(size, ALIGN, &size);
    conv->sums_offset = size;
    fits = fits && dq_mul_size((size_t)s->window.out[s->window.rank - 1], sizeof(int32_t), &sums) &&
           dq_add_size(size, sums, &size) && dq_align_size(size, ALIGN, &size);
    conv->weights_offset = size;
    fits = fits && dq_mul_size(s->kernel_size, sizeof(int16_t), &weights) &&
           dq_add_size(size, weights, &size) && dq_align_size(size, ALIGN, &size);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "a padded plane");
    call->worker_scratch_size = size;
    return DQ_OK;
}

typedef struct run_state {
    const dq_op_call *call;
    const dq_qconv *conv;
    uint8_t flip, pad;
    int32_t x_zero; /* of bytes that are flipped */
} run_state;

/* Weights of an output channel; returns their sum. */
static int32_t take_weights(const run_state *run, size_t channel, int16_t *out)
{
    const dq_tensor *w = run->call->in[run->conv->w];
    size_t n = run->conv->s.kernel_size;
    int32_t zero = dq_qconv_zero(run->call, run->conv->w_zero, channel), sum = 0;
    for (size_t t = 0; t < n; t++) {
        size_t i = channel * n + t;
        int32_t value = w->dtype == DQ_INT8 ? dq_data(w, int8_t)[i] : dq_data(w, uint8_t)[i];
        out[t] = (int16_t)(value - zero);
        sum = (int32_t)((uint32_t)sum + (uint32_t)out[t]);
    }
    return sum;
}

/* One output channel from its padded plane, by rows of the last axis. */
static void run_channel(const run_state *run, size_t image, size_t channel, const uint8_t *plane,
                        char *scratch)
{
    const dq_qconv *conv = run->conv;
    const dq_window *window = &conv->s.window;
    int32_t *sums = (int32_t *)(scratch + conv->sums_offset);
    int16_t *weights = (int16_t *)(scratch + conv->weights_offset);
    size_t width = (size_t)window->out[window->rank - 1], stride = (size_t)window->stride[window->rank - 1];
    uint32_t init = (uint32_t)dq_qconv_bias(run->call, conv, channel) -
                    (uint32_t)run->x_zero * (uint32_t)take_weights(run, channel, weights);
    dq_conv_sums out = {.conv = conv,
                        .call = run->call,
                        .batch = image,
                        .channel = channel,
                        .channels = 1,
                        .count = width,
                        .c_stride = 1,
                        .c = sums};
    for (out.first = 0; out.first < conv->s.out_size; out.first += width) {
        run->call->kernels->qconv_row(plane + dq_qimage_corner(&conv->image, window, out.first),
                                      conv->offsets, weights, conv->s.kernel_size, stride, (int32_t)init,
                                      width, sums);
        conv->store(&out);
    }
}

/* Planes: an input channel of an image, with all output channels that it makes. */
static void run_planes(void *arg, size_t begin, size_t end, unsigned worker)
{
    const run_state *run = arg;
    const dq_qconv *conv = run->conv;
    const dq_conv_shape *s = &conv->s;
    const dq_qimage *image = &conv->image;
    uint8_t *plane = dq_call_worker_scratch(run->call, worker);
    const uint8_t *x = run->call->in[conv->x]->data;
    for (size_t i = begin; i < end; i++) {
        size_t number = i / s->group, channel = i % s->group;
        for (size_t row = 0; row < image->rows; row++)
            dq_qimage_row(run->call->kernels, image, s, x + i * s->in_size, row, run->flip, run->pad,
                          plane + row * image->width);
        for (size_t j = 0; j < s->group_out; j++)
            run_channel(run, number, channel * s->group_out + j, plane, (char *)plane);
    }
}

void dq_qconv_depthwise_run(const dq_op_call *call, const dq_qconv *conv)
{
    dq_dtype type = call->in[conv->x]->dtype;
    int32_t zero = dq_qconv_zero(call, conv->x_zero, 0);
    run_state run = {.call = call, .conv = conv, .flip = dq_qgemm_flip(type, false)};
    run.x_zero = dq_qgemm_zero(zero, type, false);
    run.pad = (uint8_t)run.x_zero;
    size_t products = conv->s.out_size * conv->s.kernel_size * conv->s.group_out;
    dq_parallel(call->threads, conv->s.batch * conv->s.group, dq_qgemm_grain(products), run_planes, &run);
}
