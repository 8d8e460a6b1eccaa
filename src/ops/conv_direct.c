#include "ops/conv_direct.h"

enum { FEW = 4, WORK = 65536 /* multiplications of a piece of parallel work, about */ };

typedef struct job {
    const dq_conv_shape *s;
    const dq_tensor *x, *w, *bias;
    dq_tensor *out;
    size_t rows; /* of an output plane: all axes but the last */
    size_t taps; /* kernel elements of all axes but the last */
} job;

bool dq_conv_direct_suits(const dq_conv_shape *s, dq_dtype dtype)
{
    return s->group_out < FEW && (dtype == DQ_FLOAT || dtype == DQ_DOUBLE);
}

/* The input row under kernel row `tap` of output row `row`; false when it is padding. */
static bool input_row(const dq_window *w, size_t row, size_t tap, size_t *at)
{
    size_t step = 1;
    *at = 0;
    for (size_t d = w->rank - 1; d-- > 0;) {
        int64_t o = (int64_t)(row % (size_t)w->out[d]), t = (int64_t)(tap % (size_t)w->kernel[d]);
        int64_t i = o * w->stride[d] - w->begin[d] + t * w->dilation[d];
        if (i < 0 || i >= w->in[d])
            return false;
        *at += (size_t)i * step;
        step *= (size_t)w->in[d];
        row /= (size_t)w->out[d];
        tap /= (size_t)w->kernel[d];
    }
    return true;
}

/* Outputs [from, to) of a row are those for which an element at `offset` from the window's start is input. */
static void reach(const dq_window *w, size_t last, int64_t offset, int64_t *from, int64_t *to)
{
    int64_t stride = w->stride[last];
    *from = offset < 0 ? (-offset - 1) / stride + 1 : 0;
    *to = offset < w->in[last] ? (w->in[last] - offset - 1) / stride + 1 : 0;
    if (*to > w->out[last])
        *to = w->out[last];
}

#define ROW(name, T)                                                                                         \
    static void name(const job *j, size_t plane, size_t row)                                                 \
    {                                                                                                        \
        const dq_conv_shape *s = j->s;                                                                       \
        const dq_window *win = &s->window;                                                                   \
        size_t last = win->rank - 1, width = (size_t)win->in[last], n = (size_t)win->out[last];              \
        size_t channel = plane % s->out_channels, image = plane / s->out_channels;                           \
        size_t first = image * s->in_channels + channel / s->group_out * s->group_in;                        \
        T *y = dq_data(j->out, T) + plane * s->out_size + row * n;                                           \
        const T *w = dq_data(j->w, T) + channel * s->group_in * s->kernel_size;                              \
        for (size_t i = 0; i < n; i++)                                                                       \
            y[i] = 0;                                                                                        \
        for (size_t c = 0; c < s->group_in; c++) {                                                           \
            for (size_t t = 0; t < j->taps; t++, w += win->kernel[last]) {                                   \
                size_t in_row;                                                                               \
                if (!input_row(win, row, t, &in_row))                                                        \
                    continue;                                                                                \
                const T *x = dq_data(j->x, T) + (first + c) * s->in_size + in_row * width;                   \
                for (int64_t k = 0; k < win->kernel[last]; k++) {                                            \
                    int64_t offset = k * win->dilation[last] - win->begin[last], from, to;                   \
                    const T factor = w[k];                                                                   \
                    reach(win, last, offset, &from, &to);                                                    \
                    if (win->stride[last] == 1)                                                              \
                        for (int64_t i = from; i < to; i++)                                                  \
                            y[i] += factor * x[i + offset];                                                  \
                    else                                                                                     \
                        for (int64_t i = from; i < to; i++)                                                  \
                            y[i] += factor * x[i * win->stride[last] + offset];                              \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
        if (j->bias)                                                                                         \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i] += dq_data(j->bias, T)[channel];                                                        \
    }

ROW(row_f32, float)
ROW(row_f64, double)

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        (j->x->dtype == DQ_FLOAT ? row_f32 : row_f64)(j, i / j->rows, i % j->rows);
}

void dq_conv_direct(const dq_op_call *call, const dq_conv_shape *s, const dq_tensor *x, const dq_tensor *w,
                    const dq_tensor *bias, dq_tensor *out)
{
    const dq_window *win = &s->window;
    size_t last = win->rank - 1, work = (size_t)win->out[last] * s->group_in * s->kernel_size;
    job j = {
        s, x, w, bias, out, s->out_size / (size_t)win->out[last], s->kernel_size / (size_t)win->kernel[last]};
    dq_parallel(call->threads, s->batch * s->out_channels * j.rows, work < WORK ? WORK / (work + 1) + 1 : 1,
                piece, &j);
}
