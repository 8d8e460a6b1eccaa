/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConv of the standard and of com.microsoft, and dqrun's QLinearConv16, against their formula. */
#include "conv_cases.h"

#include <math.h>
#include <string.h>

static const char *const formals[] = {
    "x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point", "B"};

static dq_tensor *random_scale(ops_case *c, uint64_t *state, size_t rank, const int64_t *dims)
{
    dq_tensor *t = ops_in(c, DQ_FLOAT, rank, dims, NULL);
    bool plain = random_below(state, 2) == 0; /* many sums on ties */
    for (size_t i = 0; i < t->count; i++)
        dq_data(t, float)[i] = plain ? 1.0f / (float)(1 << random_below(state, 5))
                                     : (float)(1 + random_below(state, 5000)) / 977;
    return t;
}

static double scale_at(const dq_tensor *scale, size_t channel)
{
    return dq_tensor_get_double(scale, scale->count == 1 ? 0 : channel);
}

enum { WIDE = 3 }; /* of the standard, com.microsoft's with and without channels_last, and dqrun's */

/* Checks one output in about stride / 2; `extreme`: the largest sums. */
static void check_linear(uint64_t *state, const ref_conv *g, int kind, const dq_dtype types[3], bool extreme,
                         uint32_t stride, int round)
{
    static const char *const domains[] = {"", "com.microsoft", "com.microsoft", "dqrun"};
    dq_dtype tx = types[0], tw = types[1], ty = types[2];
    int64_t channels = g->group * g->group_out, dim;
    const int64_t one = 1;
    ops_case c;
    ops_begin(&c, domains[kind], kind == WIDE ? "QLinearConv16" : "QLinearConv", kind ? 1 : 10);
    conv_attributes(&c, g, state);
    if (kind == 1 || kind == 2)
        ops_int(&c, "channels_last", g->channels_last);
    dq_tensor *x = conv_in_x(&c, state, tx, g);
    const dq_tensor *x_scale = random_scale(&c, state, random_below(state, 2), &one);
    dq_tensor *x_zero = ops_in_random(&c, state, tx, random_below(state, 2), &one);
    dq_tensor *w = conv_in_w(&c, state, tw, g);
    size_t rank = conv_channel_param(state, channels, &dim);
    const dq_tensor *w_scale = random_scale(&c, state, rank, &dim);
    rank = conv_channel_param(state, channels, &dim);
    dq_tensor *w_zero = ops_in_random(&c, state, tw, rank, &dim);
    const dq_tensor *y_scale = random_scale(&c, state, OPS_SCALAR);
    const dq_tensor *y_zero = ops_in_random(&c, state, ty, OPS_SCALAR), *bias = NULL;
    if (random_below(state, 2)) {
        dq_tensor *b = ops_in(&c, kind == WIDE ? DQ_FLOAT : DQ_INT32, 1, &channels, NULL);
        for (size_t i = 0; i < b->count; i++)
            dq_tensor_put_double(b, i, (double)random_below(state, 20000) - 10000);
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
    conv_want_shape(&c, g);
    double lo = (double)dq_dtype_get(ty)->min, hi = (double)dq_dtype_get(ty)->max;
    for (size_t i = 0; i < c.out[0]->count; i += 1 + random_below(state, stride)) {
        const size_t channel = ref_conv_channel(g, i);
        double scale = scale_at(x_scale, 0) * scale_at(w_scale, channel);
        double added = bias ? dq_tensor_get_double(bias, channel) / (kind == WIDE ? scale : 1) : 0;
        double sum = (double)ref_conv_integer(g, x, x_zero, w, w_zero, i) + added;
        double v = rint(sum * (scale / scale_at(y_scale, 0)));
        double expected = fmin(fmax(v + (double)ref_zero_point(y_zero, 0), lo), hi);
        ck_assert_msg(dq_tensor_get_double(c.out[0], i) == expected, "round %d, element %zu: %g, expected %g",
                      round, i, dq_tensor_get_double(c.out[0], i), expected);
    }
    ops_end(&c);
}

static const dq_dtype linear_types[] = {DQ_UINT8, DQ_INT8, DQ_UINT16, DQ_INT16};

START_TEST(random_convolutions)
{
    uint64_t state = 1442695040888963407u;
    for (int round = 0; round < 600; round++) {
        ref_conv g = ref_conv_random(&state);
        int kind = round % 4, each = kind == WIDE ? 4 : 2;
        g.channels_last = kind == 2;
        if (g.channels_last && g.axes < 3 && random_below(&state, 8) == 0) /* more than is stored at a time */
            *(random_below(&state, 2) ? &g.group : &g.group_out) = 70;
        const dq_dtype types[] = {linear_types[round / 4 % each], linear_types[round / 16 % each],
                                  linear_types[round / 64 % each]};
        check_linear(&state, &g, kind, types, false, 1, round);
    }
}
END_TEST

/* 16-bit values, more than fit in one input band, and sums that exceed 32 bits. */
START_TEST(bands_of_16_bits)
{
    uint64_t state = 2862933555777941757u;
    for (int round = 0; round < 16; round++) {
        bool depthwise = round % 4 == 0;
        ref_conv g = {.axes = 1 + (round % 4 < 3), .batch = 1, .group = depthwise ? 2 : 1, .group_in = 1};
        if (!depthwise)
            g.group_in = 36 + random_below(&state, 20);
        g.group_out = 1 + random_below(&state, 20);
        for (size_t i = 0; i < g.axes; i++) {
            g.in[i] = (depthwise ? 130 : g.axes == 1 ? 3000 : 60) + random_below(&state, 9);
            g.kernel[i] = round % 8 == 5 ? 1 : 3;
            g.stride[i] = 1 + (round % 8 == 6);
            g.dilation[i] = 1 + (round % 8 == 7);
            g.begin[i] = random_below(&state, 3);
            g.end[i] = random_below(&state, 3);
        }
        ck_assert(ref_conv_finish(&g));
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
        ref_conv g = {.axes = 1 + random_below(&state, 3), .group_in = 1, .group_out = 1};
        g.batch = 1 + random_below(&state, 2);
        g.group = 8 + random_below(&state, 90);
        do {
            for (size_t i = 0; i < g.axes; i++) {
                g.in[i] = 1 + random_below(&state, longest[g.axes - 1]);
                g.kernel[i] = 1 + random_below(&state, 4);
                g.stride[i] = 1 + random_below(&state, 2);
                g.dilation[i] = 1 + random_below(&state, 2);
                g.begin[i] = random_below(&state, 3);
                g.end[i] = random_below(&state, 3);
            }
        } while (!ref_conv_finish(&g));
        const dq_dtype types[] = {linear_types[round % 2], linear_types[round / 2 % 2],
                                  linear_types[round / 4 % 2]};
        check_linear(&state, &g, 0, types, round % 3 == 0, 1, round);
    }
}
END_TEST

/* Scratch grows with their number, not with its square (the harness looks). */
START_TEST(many_channels)
{
    enum { CHANNELS = 2048 };
    uint64_t state = 5;
    ops_case c;
    ops_begin(&c, "", "QLinearConv", 10);
    ops_in_random(&c, &state, DQ_UINT8, OPS_DIMS(1, 2, 5, 5));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in_random(&c, &state, DQ_INT8, OPS_DIMS(CHANNELS, 2, 1, 1));
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

START_TEST(no_input_channels_of_16_bits)
{
    ops_case c;
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

static void refuse(uint32_t input, int64_t count, const char *message)
{
    ops_case c;
    ops_begin(&c, "", "QLinearConv", 10);
    for (uint32_t i = 0; i < 9; i++) {
        c.formals[i] = formals[i];
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
    ops_must_refuse(&c, DQ_BAD_MODEL, message);
    ops_end(&c);
}

START_TEST(parameters_refused)
{
    refuse(1, 2, "input 1 'x_scale' has 2 elements, expected 1");
    refuse(2, 3, "input 2 'x_zero_point' has 3 elements, expected 1");
    refuse(4, 63, "input 4 'w_scale' has 63 elements, expected 1 or 64 (output channels)");
    refuse(5, 2, "input 5 'w_zero_point' has 2 elements, expected 1 or 64 (output channels)");
    refuse(6, 64, "input 6 'y_scale' has 64 elements, expected 1");
    refuse(7, 0, "input 7 'y_zero_point' has 0 elements, expected 1");
    refuse(8, 63, "input 8 'B' has shape [63], expected [64] (output channels)");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_conv", NULL, NULL);
    add_test(&tests, random_convolutions);
    add_test(&tests, bands_of_16_bits);
    add_test(&tests, small_planes);
    add_test(&tests, many_channels);
    add_test(&tests, bias_wraps);
    add_test(&tests, no_input_channels_of_16_bits);
    add_test(&tests, sums_that_just_fit_and_do_not);
    add_test(&tests, parameters_refused);
    return test_program_run(&tests);
}
