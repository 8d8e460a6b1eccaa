/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_naive.h"

#include <string.h>

int64_t naive_span(const naive_geometry *g, size_t i)
{
    return (g->kernel[i] - 1) * g->dilation[i] + 1;
}

bool naive_finish(naive_geometry *g)
{
    for (size_t i = 0; i < g->axes; i++) {
        int64_t *begin = &g->pads[i], *end = &g->pads[g->axes + i];
        if (g->auto_pad && strcmp(g->auto_pad, "VALID") == 0)
            *begin = *end = 0;
        if (g->auto_pad && strncmp(g->auto_pad, "SAME", 4) == 0) {
            int64_t out = (g->in[i] + g->stride[i] - 1) / g->stride[i];
            int64_t pad = (out - 1) * g->stride[i] + naive_span(g, i) - g->in[i];
            pad = pad > 0 ? pad : 0;
            *begin = strcmp(g->auto_pad, "SAME_UPPER") == 0 ? pad / 2 : (pad + 1) / 2;
            *end = pad - *begin;
            g->out[i] = out;
            continue;
        }
        int64_t workspace = g->in[i] + *begin + *end - naive_span(g, i);
        if (workspace < 0)
            return false;
        g->out[i] = workspace / g->stride[i] + 1;
    }
    return true;
}

naive_geometry naive_random_geometry(uint64_t *state)
{
    static const char *const modes[] = {NULL, NULL, NULL, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    naive_geometry g;
    do {
        memset(&g, 0, sizeof g);
        g.axes = 1 + naive_random(state, NAIVE_AXES);
        g.batch = naive_random(state, 4);
        bool depthwise = naive_random(state, 3) == 0;
        g.group = naive_random(state, 2) || depthwise ? 1 + naive_random(state, 5) : 1;
        g.group_in = depthwise ? 1 : 1 + naive_random(state, 6);
        g.group_out = 1 + naive_random(state, depthwise ? 3 : 20);
        bool plain = naive_random(state, 5) == 0; /* 1 x 1, no padding */
        for (size_t i = 0; i < g.axes; i++) {
            g.in[i] = 1 + naive_random(state, g.axes == 3 ? 6 : 10);
            g.kernel[i] = plain ? 1 : 1 + naive_random(state, 4);
            g.stride[i] = plain ? 1 : 1 + naive_random(state, 3);
            g.dilation[i] = plain ? 1 : 1 + naive_random(state, 2);
            g.pads[i] = plain ? 0 : naive_random(state, 4);
            g.pads[g.axes + i] = plain ? 0 : naive_random(state, 4);
        }
        g.auto_pad = modes[naive_random(state, sizeof modes / sizeof modes[0])];
    } while (!naive_finish(&g));
    return g;
}

size_t naive_product(const int64_t *dims, size_t n)
{
    size_t p = 1;
    for (size_t i = 0; i < n; i++)
        p *= (size_t)dims[i];
    return p;
}

/* Element of x under kernel position t of output position p, in a plane; false in the padding. */
static bool under(const naive_geometry *g, size_t p, size_t t, size_t *at)
{
    size_t step = 1;
    *at = 0;
    for (size_t i = g->axes; i-- > 0; step *= (size_t)g->in[i]) {
        int64_t o = (int64_t)(p % (size_t)g->out[i]), k = (int64_t)(t % (size_t)g->kernel[i]);
        p /= (size_t)g->out[i];
        t /= (size_t)g->kernel[i];
        int64_t place = o * g->stride[i] + k * g->dilation[i] - g->pads[i];
        if (place < 0 || place >= g->in[i])
            return false;
        *at += (size_t)place * step;
    }
    return true;
}

void naive_conv_place(const naive_geometry *g, size_t i, size_t *p, size_t *channel, size_t *image)
{
    size_t out = naive_product(g->out, g->axes), channels = (size_t)(g->group * g->group_out);
    *image = i / out / channels;
    *channel = g->last ? i % channels : i / out % channels;
    *p = g->last ? i / channels % out : i % out;
}

int64_t naive_zero(const dq_tensor *zero, size_t channel)
{
    return zero ? dq_tensor_get_int(zero, zero->count == 1 ? 0 : channel) : 0;
}

int64_t naive_conv_sum(const naive_geometry *g, const dq_tensor *x, const dq_tensor *x_zero,
                       const dq_tensor *w, const dq_tensor *w_zero, size_t i)
{
    size_t in = naive_product(g->in, g->axes), kernel = naive_product(g->kernel, g->axes);
    size_t group_in = (size_t)g->group_in, x_channels = (size_t)g->group * group_in, p, channel, image;
    naive_conv_place(g, i, &p, &channel, &image);
    size_t group = channel / (size_t)g->group_out;
    int64_t sum = 0;
    for (size_t c = 0; c < group_in; c++)
        for (size_t t = 0; t < kernel; t++) {
            size_t at, k = group * group_in + c;
            if (!under(g, p, t, &at))
                continue;
            at = g->last ? (image * in + at) * x_channels + k : (image * x_channels + k) * in + at;
            sum +=
                (dq_tensor_get_int(x, at) - naive_zero(x_zero, 0)) *
                (dq_tensor_get_int(w, (channel * group_in + c) * kernel + t) - naive_zero(w_zero, channel));
        }
    return sum;
}
