/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger and QLinearConv against the formula written out, and the geometry of windows. */
#include "conv_naive.h"

#include <math.h>
#include <string.h>

static const char *const integer_formals[] = {"x", "w", "x_zero_point", "w_zero_point"};
static const char *const linear_formals[] = {
    "x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point", "B"};

/* ---- Random convolutions ----------------------------------------------------------------------------- */

static void add_attributes(ops_case *c, const naive_geometry *g, uint64_t *state)
{
    size_t strides = naive_product(g->stride, g->axes);
    ops_int(c, "group", g->group);
    if (naive_random(state, 2))
        ops_ints(c, "kernel_shape", g->axes, g->kernel);
    if (strides > 1 || naive_random(state, 2))
        ops_ints(c, "strides", g->axes, g->stride);
    ops_ints(c, "dilations", g->axes, g->dilation);
    if (g->auto_pad)
        ops_string(c, "auto_pad", g->auto_pad);
    if (!g->auto_pad || strcmp(g->auto_pad, "NOTSET") == 0)
        ops_ints(c, "pads", 2 * g->axes, g->pads);
}

static void tensor_dims(const naive_geometry *g, int64_t channels, const int64_t *spatial, int64_t *dims)
{
    dims[0] = g->batch;
    dims[g->last ? 1 + g->axes : 1] = channels;
    memcpy(dims + (g->last ? 1 : 2), spatial, g->axes * sizeof *dims);
}

static dq_tensor *add_x(ops_case *c, uint64_t *state, dq_dtype dtype, const naive_geometry *g)
{
    int64_t dims[2 + NAIVE_AXES];
    tensor_dims(g, g->group * g->group_in, g->in, dims);
    return naive_qvalues(c, state, dtype, 2 + g->axes, dims);
}

static dq_tensor *add_w(ops_case *c, uint64_t *state, dq_dtype dtype, const naive_geometry *g)
{
    int64_t dims[2 + NAIVE_AXES] = {g->group * g->group_out, g->group_in};
    memcpy(dims + 2, g->kernel, sizeof g->kernel);
    return naive_qvalues(c, state, dtype, 2 + g->axes, dims);
}

/* Rank of a parameter for channels: a scalar, or a vector of one element or one each. */
static size_t channel_param(uint64_t *state, int64_t channels, int64_t *dim)
{
    uint32_t kind = naive_random(state, 3);
    *dim = kind == 1 ? 1 : channels;
    return kind == 0 ? 0 : 1;
}

static void check_shape(const ops_case *c, const naive_geometry *g)
{
    int64_t dims[2 + NAIVE_AXES];
    tensor_dims(g, g->group * g->group_out, g->out, dims);
    char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
    ck_assert_str_eq(dq_shape_text(c->out[0]->rank, c->out[0]->dims, got),
                     dq_shape_text(2 + g->axes, dims, expected));
}

START_TEST(random_integer)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8};
    uint64_t state = 2685821657736338717u;
    for (int round = 0; round < 400; round++) {
        naive_geometry g = naive_random_geometry(&state);
        dq_dtype tx = types[round & 1], tw = types[round >> 1 & 1];
        const dq_tensor *zeros[2] = {NULL, NULL};
        const int64_t one = 1;
        int64_t dim;
        ops_case c;
        ops_begin(&c, "", "ConvInteger", 10);
        add_attributes(&c, &g, &state);
        const dq_tensor *x = add_x(&c, &state, tx, &g), *w = add_w(&c, &state, tw, &g);
        if (naive_random(&state, 3))
            zeros[0] = naive_qvalues(&c, &state, tx, naive_random(&state, 2), &one);
        else
            ops_skip(&c);
        if (naive_random(&state, 3)) {
            size_t rank = channel_param(&state, g.group * g.group_out, &dim);
            zeros[1] = naive_qvalues(&c, &state, tw, rank, &dim);
        }
        ops_must_run(&c);
        check_shape(&c, &g);
        for (size_t i = 0; i < c.out[0]->count; i++) {
            int64_t expected = naive_conv_sum(&g, x, zeros[0], w, zeros[1], i);
            ck_assert_msg(dq_data(c.out[0], int32_t)[i] == expected,
                          "round %d, element %zu: %d, expected %lld", round, i, dq_data(c.out[0], int32_t)[i],
                          (long long)expected);
        }
        ops_end(&c);
    }
}
END_TEST

static dq_tensor *random_scale(ops_case *c, uint64_t *state, size_t rank, const int64_t *dims)
{
    dq_tensor *t = ops_in(c, DQ_FLOAT, rank, dims, NULL);
    bool plain = naive_random(state, 2) == 0; /* many sums on ties */
    for (size_t i = 0; i < t->count; i++)
        dq_data(t, float)[i] = plain ? 1.0f / (float)(1 << naive_random(state, 5))
                                     : (float)(1 + naive_random(state, 5000)) / 977;
    return t;
}

static double scale_at(const dq_tensor *scale, size_t channel)
{
    return dq_tensor_get_double(scale, scale->count == 1 ? 0 : channel);
}

enum { WIDE = 3 }; /* of the standard, com.microsoft's with and without channels_last, and dqrun's */

/* One output of `apart` or so is looked at; `extreme`: the largest sums. */
static void check_linear(uint64_t *state, const naive_geometry *g, int kind, const dq_dtype types[3],
                         bool extreme, uint32_t stride, int round)
{
    static const char *const domains[] = {"", "com.microsoft", "com.microsoft", "dqrun"};
    dq_dtype tx = types[0], tw = types[1], ty = types[2];
    int64_t channels = g->group * g->group_out, dim;
    const int64_t one = 1;
    ops_case c;
    ops_begin(&c, domains[kind], kind == WIDE ? "QLinearConv16" : "QLinearConv", kind ? 1 : 10);
    add_attributes(&c, g, state);
    if (kind == 1 || kind == 2)
        ops_int(&c, "channels_last", g->last);
    dq_tensor *x = add_x(&c, state, tx, g);
    const dq_tensor *x_scale = random_scale(&c, state, naive_random(state, 2), &one);
    dq_tensor *x_zero = naive_qvalues(&c, state, tx, naive_random(state, 2), &one);
    dq_tensor *w = add_w(&c, state, tw, g);
    size_t rank = channel_param(state, channels, &dim);
    const dq_tensor *w_scale = random_scale(&c, state, rank, &dim);
    rank = channel_param(state, channels, &dim);
    dq_tensor *w_zero = naive_qvalues(&c, state, tw, rank, &dim);
    const dq_tensor *y_scale = random_scale(&c, state, OPS_SCALAR);
    const dq_tensor *y_zero = naive_qvalues(&c, state, ty, OPS_SCALAR), *bias = NULL;
    if (naive_random(state, 2)) {
        dq_tensor *b = ops_in(&c, kind == WIDE ? DQ_FLOAT : DQ_INT32, 1, &channels, NULL);
        for (size_t i = 0; i < b->count; i++)
            dq_tensor_put_double(b, i, (double)naive_random(state, 20000) - 10000);
        bias = b;
    }
    for (size_t i = 0; extreme && i < x->count; i++)
        dq_tensor_put_int(x, i, dq_dtype_get(tx)->min);
    for (size_t i = 0; extreme && i < w->count; i++)
        dq_tensor_put_int(w, i, dq_dtype_get(tw)->min);
    for (size_t i = 0; extreme && i < w_zero->count; i++)
        dq_tensor_put_int(w_zero, i, dq_dtype_get(tw)->max);
    if (extreme)
        dq_tensor_put_int(x_zero, 0, dq_dtype_get(tx)->max);
    ops_must_run(&c);
    check_shape(&c, g);
    double lo = (double)dq_dtype_get(ty)->min, hi = (double)dq_dtype_get(ty)->max;
    for (size_t i = 0; i < c.out[0]->count; i += 1 + naive_random(state, stride)) {
        size_t channel, image, p;
        naive_conv_place(g, i, &p, &channel, &image);
        double scale = scale_at(x_scale, 0) * scale_at(w_scale, channel);
        double added = bias ? dq_tensor_get_double(bias, channel) / (kind == WIDE ? scale : 1) : 0;
        double sum = (double)naive_conv_sum(g, x, x_zero, w, w_zero, i) + added;
        double v = rint(sum * (scale / scale_at(y_scale, 0)));
        double expected = fmin(fmax(v + (double)naive_zero(y_zero, 0), lo), hi);
        ck_assert_msg(dq_tensor_get_double(c.out[0], i) == expected, "round %d, element %zu: %g, expected %g",
                      round, i, dq_tensor_get_double(c.out[0], i), expected);
    }
    ops_end(&c);
}

static const dq_dtype linear_types[] = {DQ_UINT8, DQ_INT8, DQ_UINT16, DQ_INT16};

START_TEST(random_linear)
{
    uint64_t state = 1442695040888963407u;
    for (int round = 0; round < 600; round++) {
        naive_geometry g = naive_random_geometry(&state);
        int kind = round % 4, each = kind == WIDE ? 4 : 2;
        g.last = kind == 2;
        if (g.last && g.axes < 3 && naive_random(&state, 8) == 0) /* more than is stored at a time */
            *(naive_random(&state, 2) ? &g.group : &g.group_out) = 70;
        const dq_dtype types[] = {linear_types[round / 4 % each], linear_types[round / 16 % each],
                                  linear_types[round / 64 % each]};
        check_linear(&state, &g, kind, types, false, 1, round);
    }
}
END_TEST

/* Codes of 16 bits, more than fit in a band, and sums that 32 bits do not hold. */
START_TEST(wide_bands)
{
    uint64_t state = 2862933555777941757u;
    for (int round = 0; round < 16; round++) {
        bool depthwise = round % 4 == 0;
        naive_geometry g = {
            .axes = 1 + (round % 4 < 3), .batch = 1, .group = depthwise ? 2 : 1, .group_in = 1};
        if (!depthwise)
            g.group_in = 36 + naive_random(&state, 20);
        g.group_out = 1 + naive_random(&state, 20);
        for (size_t i = 0; i < g.axes; i++) {
            g.in[i] = (depthwise ? 130 : g.axes == 1 ? 3000 : 60) + naive_random(&state, 9);
            g.kernel[i] = round % 8 == 5 ? 1 : 3;
            g.stride[i] = 1 + (round % 8 == 6);
            g.dilation[i] = 1 + (round % 8 == 7);
            g.pads[i] = naive_random(&state, 3);
            g.pads[g.axes + i] = naive_random(&state, 3);
        }
        ck_assert(naive_finish(&g));
        const dq_dtype types[] = {linear_types[2 + round / 8], linear_types[round % 4],
                                  linear_types[round / 4 % 4]};
        check_linear(&state, &g, WIDE, types, round % 3 == 0, 200, round);
    }
}
END_TEST

/* Depthwise: planes of few pixels and many channels. */
START_TEST(small_planes)
{
    static const uint32_t longest[] = {60, 7, 3};
    uint64_t state = 1181783497276652981u;
    for (int round = 0; round < 96; round++) {
        naive_geometry g = {.axes = 1 + naive_random(&state, 3), .group_in = 1, .group_out = 1};
        g.batch = 1 + naive_random(&state, 2);
        g.group = 8 + naive_random(&state, 90);
        do {
            for (size_t i = 0; i < g.axes; i++) {
                g.in[i] = 1 + naive_random(&state, longest[g.axes - 1]);
                g.kernel[i] = 1 + naive_random(&state, 4);
                g.stride[i] = 1 + naive_random(&state, 2);
                g.dilation[i] = 1 + naive_random(&state, 2);
                g.pads[i] = naive_random(&state, 3);
                g.pads[g.axes + i] = naive_random(&state, 3);
            }
        } while (!naive_finish(&g));
        const dq_dtype types[] = {linear_types[round % 2], linear_types[round / 2 % 2],
                                  linear_types[round / 4 % 2]};
        check_linear(&state, &g, 0, types, round % 3 == 0, 1, round);
    }
}
END_TEST

/* Kernels of 3×3 at stride 1 over many pixels, with channels and sides that fill no vector and no tile. */
START_TEST(many_pixels)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8};
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 16; round++) {
        naive_geometry g = {.axes = 2, .batch = 1 + naive_random(&state, 2), .group = 1, .stride = {1, 1}};
        g.group_in = 16 + naive_random(&state, 20);
        g.group_out = 1 + naive_random(&state, 36);
        for (size_t i = 0; i < 2; i++) {
            g.in[i] = 20 + naive_random(&state, 9) + (round == (int)i ? 22 : 0);
            g.kernel[i] = 3;
            g.dilation[i] = 1;
            g.pads[i] = naive_random(&state, 3);
            g.pads[2 + i] = naive_random(&state, 3);
        }
        ck_assert(naive_finish(&g));
        dq_dtype tx = types[round & 1], tw = types[round >> 1 & 1];
        const int64_t one = 1;
        ops_case c;
        ops_begin(&c, "", "ConvInteger", 10);
        add_attributes(&c, &g, &state);
        const dq_tensor *x = add_x(&c, &state, tx, &g), *x_zero, *w_zero;
        dq_tensor *w = add_w(&c, &state, tw, &g);
        x_zero = naive_qvalues(&c, &state, tx, 1, &one);
        w_zero = ops_in(&c, tw, OPS_SCALAR, OPS_VALUES(tw == DQ_UINT8 ? 128 : 0));
        if (round % 4 == 3) { /* the largest sums */
            memset(x->data, tx == DQ_UINT8 ? 0xff : 0x80, x->size);
            memset(w->data, tw == DQ_UINT8 ? 0 : 0x80, w->size);
        }
        ops_must_run(&c);
        check_shape(&c, &g);
        for (size_t i = 0; i < c.out[0]->count; i += 1 + naive_random(&state, 40)) {
            int64_t expected = naive_conv_sum(&g, x, x_zero, w, w_zero, i);
            ck_assert_msg(dq_data(c.out[0], int32_t)[i] == expected,
                          "round %d, element %zu: %d, expected %lld", round, i, dq_data(c.out[0], int32_t)[i],
                          (long long)expected);
        }
        ops_end(&c);
    }
}
END_TEST

/* ---- Single cases ------------------------------------------------------------------------------------ */

/* 64 channels of 255 against weights of 127, and of -128: pairs of products overflow 16 bits. */
START_TEST(full_range)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    dq_tensor *x = ops_in(&c, DQ_UINT8, OPS_DIMS(1, 64, 3, 3), NULL);
    dq_tensor *w = ops_in(&c, DQ_INT8, OPS_DIMS(2, 64, 3, 3), NULL);
    memset(x->data, 255, x->size);
    memset(w->data, 127, w->size / 2);
    memset(dq_data(w, uint8_t) + w->size / 2, 0x80, w->size / 2);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 2, 1, 1), OPS_VALUES(64 * 9 * 255 * 127, 64 * 9 * 255 * -128));
    ops_end(&c);
}
END_TEST

/* Scratch grows with their number, not with its square (the harness looks). */
START_TEST(many_channels)
{
    enum { CHANNELS = 2048 };
    uint64_t state = 5;
    ops_case c;
    ops_begin(&c, "", "QLinearConv", 10);
    naive_qvalues(&c, &state, DQ_UINT8, OPS_DIMS(1, 2, 5, 5));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    naive_qvalues(&c, &state, DQ_INT8, OPS_DIMS(CHANNELS, 2, 1, 1));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.25));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(4));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(9));
    ops_must_run(&c);
    ops_end(&c);
}
END_TEST

/* The bias is added in int32, which wraps. */
START_TEST(bias_wraps)
{
    ops_case c;
    ops_begin(&c, "", "QLinearConv", 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 1), OPS_VALUES(10));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 1), OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_INT32, OPS_DIMS(1), OPS_VALUES(INT32_MAX - 5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 1, 1), OPS_VALUES(-128));
    ops_end(&c);
}
END_TEST

START_TEST(no_input_channels)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 0, 2, 2), NULL);
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 0, 2, 1), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1, 1, 2), OPS_VALUES(0, 0));
    ops_end(&c);

    ops_begin(&c, "dqrun", "QLinearConv16", 1);
    ops_in(&c, DQ_UINT16, OPS_DIMS(1, 0, 1, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(3));
    ops_in(&c, DQ_INT8, OPS_DIMS(5, 0, 1, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(7));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(1, 5, 1, 2), OPS_VALUES(7, 7, 7, 7, 7, 7, 7, 7, 7, 7));
    ops_end(&c);
}
END_TEST

/* Of 8-bit weights and 16-bit codes the largest sum that 32 bits hold, the least that they do not, and a deep
 * one. */
START_TEST(sums_that_just_fit_and_do_not)
{
    enum { OUT = 9, PIXELS = 5 };
    static const int64_t depths[] = {511, 512, 3000};
    for (int i = 0; i < 3; i++) {
        ops_case c;
        ops_begin(&c, "dqrun", "QLinearConv16", 1);
        ops_in(&c, DQ_UINT16, OPS_DIMS(1, depths[i], 1, PIXELS), NULL);
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
        ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(32768));
        dq_tensor *w = ops_in(&c, DQ_INT8, OPS_DIMS(OUT, depths[i], 1, 1), NULL);
        memset(w->data, -128, w->size);
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
        ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1 << 22));
        ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(0));
        ops_must_run(&c);
        for (size_t k = 0; k < OUT * PIXELS; k++)
            ck_assert_int_eq(dq_data(c.out[0], uint16_t)[k], depths[i]);
        ops_end(&c);
    }
}
END_TEST

START_TEST(only_padding)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    ops_ints(&c, "pads", 2, (const int64_t[]){3, 3});
    ops_ints(&c, "strides", 1, (const int64_t[]){6});
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 1), OPS_VALUES(9));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 1, 1), OPS_VALUES(-7));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1, 2), OPS_VALUES(0, 0));
    ops_end(&c);
}
END_TEST

/* All windows see the whole axis but its last element, and one padded place. */
START_TEST(as_long_as_without_padding)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    ops_ints(&c, "pads", 2, (const int64_t[]){1, 0});
    ops_ints(&c, "strides", 1, (const int64_t[]){2});
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 5), OPS_VALUES(1, 2, 3, 4, 5));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 1, 3), OPS_VALUES(1, 10, 100));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1, 2), OPS_VALUES(210, 432));
    ops_end(&c);
}
END_TEST

/* The only window lies before the first element. */
START_TEST(far_in_the_padding)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    ops_ints(&c, "pads", 2, (const int64_t[]){1000, 0});
    ops_ints(&c, "strides", 1, (const int64_t[]){2000});
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 2), OPS_VALUES(9, 9));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 1, 1), OPS_VALUES(-7));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1, 1), OPS_VALUES(0));
    ops_end(&c);
}
END_TEST

/* More images than are laid out at a time. */
START_TEST(large_images)
{
    enum { BATCH = 4, CHANNELS = 64, SIDE = 128, PLANE = SIDE * SIDE };
    uint64_t state = 99;
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    dq_tensor *x = naive_qvalues(&c, &state, DQ_UINT8, OPS_DIMS(BATCH, CHANNELS, SIDE, SIDE));
    dq_tensor *w = naive_qvalues(&c, &state, DQ_INT8, OPS_DIMS(1, CHANNELS, 1, 1));
    ops_must_run(&c);
    for (size_t i = 0; i < BATCH * PLANE; i++) {
        int32_t sum = 0;
        for (size_t k = 0; k < CHANNELS; k++)
            sum +=
                dq_data(x, uint8_t)[(i / PLANE * CHANNELS + k) * PLANE + i % PLANE] * dq_data(w, int8_t)[k];
        ck_assert_int_eq(dq_data(c.out[0], int32_t)[i], sum);
    }
    ops_end(&c);
}
END_TEST

/* ---- Refusals ---------------------------------------------------------------------------------------- */

typedef struct attribute {
    const char *name;
    size_t count;
    int64_t values[4];
} attribute;

static void refuse_integer(size_t rank_x, const int64_t *x, size_t rank_w, const int64_t *w,
                           const attribute *attr, const char *sentence)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    for (int i = 0; i < 4; i++)
        c.formals[i] = integer_formals[i];
    if (attr && strcmp(attr->name, "group") == 0)
        ops_int(&c, attr->name, attr->values[0]);
    else if (attr)
        ops_ints(&c, attr->name, attr->count, attr->values);
    ops_in(&c, DQ_UINT8, rank_x, x, NULL);
    ops_in(&c, DQ_UINT8, rank_w, w, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, sentence);
    ops_end(&c);
}

START_TEST(geometry_refused)
{
    refuse_integer(OPS_DIMS(3, 4), OPS_DIMS(3, 4), NULL,
                   "input 0 'x' has 2 axes, expected batch, channels and 1 or more spatial axes");
    refuse_integer(OPS_DIMS(1, 4, 5, 5), OPS_DIMS(3, 4, 2), NULL,
                   "input 1 'w' has 3 axes, expected 4 as input 0 has");
    refuse_integer(OPS_DIMS(1, 5, 5), OPS_DIMS(3, 4, 2), NULL,
                   "input 0 'x' has 5 channels, expected 4 for each of 1 groups as the weights have");
    refuse_integer(OPS_DIMS(1, 8, 5), OPS_DIMS(3, 4, 2), &(attribute){"group", 1, {2}},
                   "input 1 'w' has 3 output channels, expected a multiple of the 2 groups");
    refuse_integer(OPS_DIMS(1, 8, 5), OPS_DIMS(3, 4, 2), &(attribute){"group", 1, {0}},
                   "attribute 'group' is 0, expected 1 or more");
    refuse_integer(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"strides", 2, {1, 1}},
                   "attribute 'strides' has 2 values, expected 1");
    refuse_integer(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"dilations", 1, {0}},
                   "attribute 'dilations' has 0 at index 0, expected 1 or more");
    refuse_integer(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"pads", 2, {0, -1}},
                   "attribute 'pads' has -1 at index 1, expected 0 or more");
    refuse_integer(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"kernel_shape", 1, {3}},
                   "attribute 'kernel_shape' has 3 at index 0, but the weights have 2");
    refuse_integer(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 7), &(attribute){"pads", 2, {1, 0}},
                   "input 0 'x' has 5 elements on spatial axis 0, with padding 6: fewer than the window's 7");
    refuse_integer(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 0), NULL,
                   "input 1 'w' has an empty spatial axis 0, expected 1 element or more");
}
END_TEST

static void refuse_linear(uint32_t input, int64_t count, const char *sentence)
{
    ops_case c;
    ops_begin(&c, "", "QLinearConv", 10);
    for (uint32_t i = 0; i < 9; i++) {
        c.formals[i] = linear_formals[i];
        dq_dtype type = i == 8 ? DQ_INT32 : i == 1 || i == 4 || i == 6 ? DQ_FLOAT : DQ_UINT8;
        if (i == 0)
            ops_in(&c, type, OPS_DIMS(1, 3, 4, 4), NULL);
        else if (i == 3)
            ops_in(&c, type, OPS_DIMS(64, 3, 3, 3), NULL);
        else if (i == input)
            ops_in(&c, type, 1, &count, NULL);
        else if (i < 8)
            ops_in(&c, type, OPS_SCALAR, NULL);
    }
    ops_must_refuse(&c, DQ_BAD_MODEL, sentence);
    ops_end(&c);
}

START_TEST(parameters_refused)
{
    refuse_linear(1, 2, "input 1 'x_scale' has 2 elements, expected 1");
    refuse_linear(2, 3, "input 2 'x_zero_point' has 3 elements, expected 1");
    refuse_linear(4, 63, "input 4 'w_scale' has 63 elements, expected 1 or 64 (output channels)");
    refuse_linear(5, 2, "input 5 'w_zero_point' has 2 elements, expected 1 or 64 (output channels)");
    refuse_linear(6, 64, "input 6 'y_scale' has 64 elements, expected 1");
    refuse_linear(7, 0, "input 7 'y_zero_point' has 0 elements, expected 1");
    refuse_linear(8, 63, "input 8 'B' has shape [63], expected [64] (output channels)");
}
END_TEST

START_TEST(sizes_that_overflow)
{
    const int64_t huge = (int64_t)1 << 62;
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    ops_ints(&c, "dilations", 1, &huge);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 5), NULL);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 5), NULL);
    ops_must_refuse(&c, DQ_OUT_OF_MEMORY,
                    "the windows of spatial axis 0 span more elements than can be counted");
    ops_end(&c);
    ops_begin(&c, "", "ConvInteger", 10);
    ops_ints(&c, "pads", 2, (const int64_t[]){INT64_MAX, 1});
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 5), NULL);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 5), NULL);
    ops_must_refuse(&c, DQ_OUT_OF_MEMORY,
                    "the windows of spatial axis 0 span more elements than can be counted");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("QLinearConv");
    add_test(&tests, random_integer);
    add_test(&tests, random_linear);
    add_test(&tests, wide_bands);
    add_test(&tests, small_planes);
    add_test(&tests, many_pixels);
    add_test(&tests, full_range);
    add_test(&tests, many_channels);
    add_test(&tests, bias_wraps);
    add_test(&tests, no_input_channels);
    add_test(&tests, sums_that_just_fit_and_do_not);
    add_test(&tests, only_padding);
    add_test(&tests, as_long_as_without_padding);
    add_test(&tests, far_in_the_padding);
    add_test(&tests, large_images);
    add_test(&tests, geometry_refused);
    add_test(&tests, parameters_refused);
    add_test(&tests, sizes_that_overflow);
    return run_suite(tests.suite);
}
