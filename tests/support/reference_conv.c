/* SPDX-License-Identifier: Apache-2.0 */
#include "support/reference_conv.h"

#include "support/random.h"

#include <math.h>
#include <string.h>

int64_t ref_conv_span(const ref_conv *g, size_t axis)
{
    return (g->kernel[axis] - 1) * g->dilation[axis] + 1;
}

bool ref_conv_finish(ref_conv *g)
{
    for (size_t i = 0; i < g->axes; i++) {
        if (g->auto_pad && strcmp(g->auto_pad, "VALID") == 0)
            g->begin[i] = g->end[i] = 0;
        if (g->auto_pad && strncmp(g->auto_pad, "SAME", 4) == 0) {
            const int64_t out = (g->in[i] + g->stride[i] - 1) / g->stride[i];
            int64_t pad = (out - 1) * g->stride[i] + ref_conv_span(g, i) - g->in[i];
            pad = pad > 0 ? pad : 0;
            g->begin[i] = strcmp(g->auto_pad, "SAME_UPPER") == 0 ? pad / 2 : (pad + 1) / 2;
            g->end[i] = pad - g->begin[i];
            g->out[i] = out;
            continue;
        }
        const int64_t steps = g->in[i] + g->begin[i] + g->end[i] - ref_conv_span(g, i);
        if (steps < 0)
            return false;
        g->out[i] = steps / g->stride[i] + 1;
    }
    return true;
}

ref_conv ref_conv_random(uint64_t *state)
{
    static const char *const modes[] = {NULL, NULL, NULL, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    ref_conv g;
    do {
        memset(&g, 0, sizeof g);
        g.axes = 1 + random_below(state, REF_AXES);
        g.batch = random_below(state, 4);
        const bool depthwise = random_below(state, 3) == 0;
        g.group = random_below(state, 2) || depthwise ? 1 + random_below(state, 5) : 1;
        g.group_in = depthwise ? 1 : 1 + random_below(state, 6);
        g.group_out = 1 + random_below(state, depthwise ? 3 : 20);
        const bool pointwise = random_below(state, 5) == 0;
        for (size_t i = 0; i < g.axes; i++) {
            g.in[i] = 1 + random_below(state, g.axes == 3 ? 6 : 10);
            g.kernel[i] = pointwise ? 1 : 1 + random_below(state, 4);
            g.stride[i] = pointwise ? 1 : 1 + random_below(state, 3);
            g.dilation[i] = pointwise ? 1 : 1 + random_below(state, 2);
            g.begin[i] = pointwise ? 0 : random_below(state, 4);
            g.end[i] = pointwise ? 0 : random_below(state, 4);
        }
        g.auto_pad = modes[random_below(state, sizeof modes / sizeof modes[0])];
    } while (!ref_conv_finish(&g));
    return g;
}

void ref_conv_pads(const ref_conv *g, int64_t pads[2 * REF_AXES])
{
    memcpy(pads, g->begin, g->axes * sizeof *pads);
    memcpy(pads + g->axes, g->end, g->axes * sizeof *pads);
}

size_t ref_conv_dims(const ref_conv *g, int64_t channels, const int64_t *spatial, int64_t *dims)
{
    dims[0] = g->batch;
    dims[g->channels_last ? 1 + g->axes : 1] = channels;
    memcpy(dims + (g->channels_last ? 1 : 2), spatial, g->axes * sizeof *dims);
    return 2 + g->axes;
}

static size_t product(const int64_t *dims, size_t n)
{
    size_t p = 1;
    for (size_t i = 0; i < n; i++)
        p *= (size_t)dims[i];
    return p;
}

size_t ref_conv_x_count(const ref_conv *g)
{
    return (size_t)(g->batch * g->group * g->group_in) * product(g->in, g->axes);
}

size_t ref_conv_w_count(const ref_conv *g)
{
    return (size_t)(g->group * g->group_out * g->group_in) * product(g->kernel, g->axes);
}

size_t ref_conv_y_count(const ref_conv *g)
{
    return (size_t)(g->batch * g->group * g->group_out) * product(g->out, g->axes);
}

/* y[i] = sum of x[…] * w[…] over `count` terms. */
typedef struct terms {
    const ref_conv *g;
    size_t position, channel, image; /* of y[i] */
    size_t kernel, plane, count;     /* elements of the kernel, of a channel of x; terms */
} terms;

static terms terms_of(const ref_conv *g, size_t i)
{
    const size_t out = product(g->out, g->axes), channels = (size_t)(g->group * g->group_out);
    terms t = {.g = g, .kernel = product(g->kernel, g->axes), .plane = product(g->in, g->axes)};
    t.image = i / out / channels;
    t.channel = g->channels_last ? i % channels : i / out % channels;
    t.position = g->channels_last ? i / channels % out : i % out;
    t.count = (size_t)g->group_in * t.kernel;
    return t;
}

/* Finds the factors of a term: indices of x and w. False: x is padding. */
static bool find(const terms *t, size_t term, size_t *x, size_t *w)
{
    const ref_conv *g = t->g;
    const size_t group_in = (size_t)g->group_in, channels = (size_t)g->group * group_in;
    const size_t channel = t->channel / (size_t)g->group_out * group_in + term / t->kernel;
    size_t tap = term % t->kernel, position = t->position, at = 0, step = 1;
    *w = t->channel * t->count + term;
    for (size_t i = g->axes; i-- > 0; step *= (size_t)g->in[i]) {
        const int64_t o = (int64_t)(position % (size_t)g->out[i]), k = (int64_t)(tap % (size_t)g->kernel[i]);
        const int64_t index = o * g->stride[i] + k * g->dilation[i] - g->begin[i];
        position /= (size_t)g->out[i];
        tap /= (size_t)g->kernel[i];
        if (index < 0 || index >= g->in[i])
            return false;
        at += (size_t)index * step;
    }
    *x = g->channels_last ? (t->image * t->plane + at) * channels + channel
                          : (t->image * channels + channel) * t->plane + at;
    return true;
}

size_t ref_conv_channel(const ref_conv *g, size_t i)
{
    return terms_of(g, i).channel;
}

int64_t ref_zero_point(const dq_tensor *zero, size_t channel)
{
    return zero ? dq_tensor_get_int(zero, zero->count == 1 ? 0 : channel) : 0;
}

int64_t ref_conv_integer(const ref_conv *g, const dq_tensor *x, const dq_tensor *x_zero, const dq_tensor *w,
                         const dq_tensor *w_zero, size_t i)
{
    const terms t = terms_of(g, i);
    const int64_t zero_x = ref_zero_point(x_zero, 0), zero_w = ref_zero_point(w_zero, t.channel);
    int64_t sum = 0;
    size_t at_x, at_w;
    for (size_t k = 0; k < t.count; k++)
        if (find(&t, k, &at_x, &at_w))
            sum += (dq_tensor_get_int(x, at_x) - zero_x) * (dq_tensor_get_int(w, at_w) - zero_w);
    return sum;
}

float ref_conv_f32(const ref_conv *g, const double *x, const double *w, size_t i)
{
    const terms t = terms_of(g, i);
    float sum = 0;
    size_t at_x, at_w;
    for (size_t k = 0; k < t.count; k++) {
        const bool inside = find(&t, k, &at_x, &at_w);
        sum = fmaf((float)w[at_w], inside ? (float)x[at_x] : 0, sum);
    }
    return sum;
}

void ref_conv_add_transposed(const ref_conv *g, const double *y, const double *w, double *x)
{
    const size_t count = ref_conv_y_count(g);
    size_t at_x, at_w;
    for (size_t i = 0; i < count; i++) {
        const terms t = terms_of(g, i);
        for (size_t k = 0; k < t.count; k++)
            if (find(&t, k, &at_x, &at_w))
                x[at_x] += y[i] * w[at_w];
    }
}
