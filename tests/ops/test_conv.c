/* SPDX-License-Identifier: Apache-2.0 */
/* Conv of floats: single cases, and the bits of every algorithm against the reference convolution. */
#include "conv_cases.h"

#include <math.h>
#include <string.h>

START_TEST(pads_and_strides)
{
    ops_case c;
    ops_begin(&c, "", "Conv", 22);
    ops_ints(&c, "pads", 4, (const int64_t[]){1, 1, 1, 1});
    ops_ints(&c, "strides", 2, (const int64_t[]){2, 2});
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 3), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 3), OPS_VALUES(1, 1, 1, 1, 1, 1, 1, 1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(12.5, 16.5, 24.5, 28.5));
    ops_end(&c);
}
END_TEST

START_TEST(all_is_padding)
{
    ops_case c;
    ops_begin(&c, "", "Conv", 22);
    ops_int(&c, "group", 2);
    ops_ints(&c, "pads", 4, (const int64_t[]){2, 0, 1, 0});
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 0, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 3, 2), OPS_VALUES(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0.5, -1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 1, 2), OPS_VALUES(0.5, 0.5, -1, -1));
    ops_end(&c);
}
END_TEST

/* Five output channels a group go through a matrix product, two do not. */
START_TEST(small_integers_of_every_type)
{
    static const dq_dtype types[] = {DQ_FLOAT, DQ_DOUBLE, DQ_FLOAT16};
    static const int64_t outs[] = {5, 2, 1};
    enum { MAX = 2000 };
    static double x[MAX], w[MAX], bias[MAX], want[MAX];
    for (size_t i = 0; i < MAX; i++) {
        x[i] = ops_small_integer(i);
        w[i] = ops_small_integer(i + 3);
        bias[i] = ops_small_integer(i + 1);
    }
    for (size_t i = 0; i < 9; i++) {
        ref_conv g = {2,      2,      2,      3,      outs[i / 3], {9, 11}, {3, 2},
                      {1, 1}, {2, 1}, {0, 1}, {1, 1}, NULL,        false,   {0}};
        const int64_t channels = g.group * g.group_out;
        ck_assert(ref_conv_finish(&g));
        ck_assert(ref_conv_x_count(&g) <= MAX && ref_conv_y_count(&g) <= MAX);
        for (size_t k = 0; k < ref_conv_y_count(&g); k++)
            want[k] = (double)ref_conv_f32(&g, x, w, k) + bias[ref_conv_channel(&g, k)];
        ops_case c;
        ops_begin(&c, "", "Conv", 11);
        conv_attributes(&c, &g, NULL);
        ops_in(&c, types[i % 3], OPS_DIMS(g.batch, g.group * g.group_in, g.in[0], g.in[1]), x);
        ops_in(&c, types[i % 3], OPS_DIMS(channels, g.group_in, g.kernel[0], g.kernel[1]), w);
        ops_in(&c, types[i % 3], OPS_DIMS(channels), bias);
        ops_must_run(&c);
        ops_want(&c, 0, types[i % 3], OPS_DIMS(g.batch, channels, g.out[0], g.out[1]), want);
        ops_end(&c);
    }
}
END_TEST

typedef double number_fn(uint64_t *state);

/* Relu(conv + bias + z) with the contract's order of operations: one chain of fused multiply-adds, the bias,
 * z. `odd`, unless it is 0, is one element of x. */
static void run_bits(const ref_conv *geometry, number_fn *number, uint64_t *state, double odd)
{
    enum { MAX = 40000 };
    static double x[MAX], w[MAX], bias[128], z[MAX], want[MAX];
    ref_conv g = *geometry;
    ck_assert(ref_conv_finish(&g));
    const size_t x_count = ref_conv_x_count(&g), w_count = ref_conv_w_count(&g),
                 y_count = ref_conv_y_count(&g);
    const int64_t channels = g.group * g.group_out;
    int64_t x_dims[2 + REF_AXES], y_dims[2 + REF_AXES], w_dims[2 + REF_AXES] = {channels, g.group_in};
    const size_t rank = ref_conv_dims(&g, g.group * g.group_in, g.in, x_dims);
    ref_conv_dims(&g, channels, g.out, y_dims);
    memcpy(w_dims + 2, g.kernel, sizeof g.kernel);
    ck_assert(x_count <= MAX && w_count <= MAX && y_count <= MAX && channels <= 128);
    for (size_t i = 0; i < x_count; i++)
        x[i] = number(state);
    if (odd != 0)
        x[random_below(state, (uint32_t)x_count)] = odd;
    for (size_t i = 0; i < w_count; i++)
        w[i] = number(state);
    for (int64_t i = 0; i < channels; i++)
        bias[i] = number(state);
    for (size_t i = 0; i < y_count; i++) {
        z[i] = number(state);
        float y = ref_conv_f32(&g, x, w, i);
        y += (float)bias[ref_conv_channel(&g, i)];
        y += (float)z[i];
        want[i] = (double)(y < 0 ? 0 : y);
    }
    ops_case c;
    ops_begin(&c, "com.microsoft", "FusedConv", 1);
    ops_string(&c, "activation", "Relu");
    conv_attributes(&c, &g, NULL);
    ops_in(&c, DQ_FLOAT, rank, x_dims, x);
    ops_in(&c, DQ_FLOAT, rank, w_dims, w);
    ops_in(&c, DQ_FLOAT, 1, &channels, bias);
    ops_in(&c, DQ_FLOAT, rank, y_dims, z);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, rank, y_dims, want);
    ops_end(&c);
}

START_TEST(bits)
{
    static const ref_conv cases[] = {
        /* pointwise, of one and of several blocks of KC, read in place and packed */
        REF_CONV(2, 1, 1, 5, 7, {5, 5}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}),
        REF_CONV(2, 1, 1, 300, 31, {3, 7}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}),
        REF_CONV(2, 2, 3, 9, 6, {4, 9}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}),
        REF_CONV(2, 1, 2, 70, 30, {4, 8}, {1, 1}, {2, 1}, {1, 1}, {0}, {0}),
        /* windows: over several rows of the image, at its edges, strided, dilated */
        REF_CONV(2, 1, 1, 40, 13, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 2, 2, 3, 5, {19, 23}, {3, 5}, {2, 2}, {1, 1}, {1, 2}, {1, 2}),
        REF_CONV(2, 1, 1, 3, 4, {40, 40}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}),
        REF_CONV(2, 1, 1, 4, 4, {20, 21}, {3, 2}, {3, 4}, {2, 3}, {4, 0}, {0, 5}),
        REF_CONV(2, 1, 1, 1, 8, {3, 3}, {17, 17}, {1, 1}, {1, 1}, {8, 8}, {8, 8}),
        REF_CONV(2, 2, 1, 6, 9, {12, 30}, {11, 7}, {1, 2}, {1, 2}, {0, 3}, {2, 3}),
        REF_CONV(2, 3, 1, 2, 5, {13, 12}, {3, 5}, {2, 3}, {2, 1}, {0, 4}, {3, 2}),
        REF_CONV(2, 2, 1, 3, 6, {9, 37}, {2, 3}, {1, 1}, {1, 2}, {1, 0}, {0, 1}),
        REF_CONV(1, 2, 1, 6, 9, {150}, {9}, {1}, {2}, {5}, {7}),
        REF_CONV(3, 1, 1, 3, 6, {5, 6, 7}, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {0, 1, 2}),
        REF_CONV(3, 2, 1, 1, 9, {4, 9, 21}, {3, 5, 7}, {2, 1, 3}, {1, 2, 1}, {2, 4, 3}, {1, 4, 5}),
        REF_CONV(3, 1, 1, 6, 17, {4, 5, 19}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2}),
        /* patches, transposed as matrices: over several rows, disjoint and overlapping, of one row */
        REF_CONV(2, 1, 1, 3, 9, {35, 50}, {8, 8}, {8, 8}, {1, 1}, {0}, {0}),
        REF_CONV(2, 1, 1, 4, 10, {13, 30}, {4, 4}, {4, 4}, {1, 1}, {0}, {0}),
        REF_CONV(2, 2, 2, 5, 7, {40, 43}, {3, 13}, {5, 4}, {2, 1}, {0}, {0}),
        REF_CONV(1, 2, 1, 2, 40, {403}, {20}, {7}, {1}, {0}, {0}),
        /* small images: windows at every second place, over borders, one; and larger ones, of many channels
         */
        REF_CONV(2, 2, 2, 20, 24, {9, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 0}),
        REF_CONV(1, 2, 1, 70, 18, {31}, {5}, {1}, {3}, {7}, {8}),
        REF_CONV(2, 3, 1, 40, 33, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}),
        REF_CONV(2, 1, 1, 300, 40, {8, 9}, {1, 1}, {2, 2}, {1, 1}, {0}, {0}),
        REF_CONV(2, 1, 1, 97, 103, {9, 14}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}),
        /* few output channels: row by row */
        REF_CONV(2, 2, 6, 1, 1, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 1, 5, 1, 1, {15, 37}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 1, 3, 1, 2, {60, 70}, {5, 4}, {1, 3}, {2, 1}, {0, 9}, {11, 1}),
        REF_CONV(2, 1, 1, 12, 3, {13, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(1, 1, 4, 2, 1, {333}, {6}, {1}, {3}, {7}, {8}),
        REF_CONV(3, 1, 4, 1, 1, {7, 6, 20}, {3, 2, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 1}),
        /* depthwise, channel-blocked: all channels in one block, some, in several blocks */
        REF_CONV(2, 3, 19, 1, 1, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 2, 100, 1, 1, {7, 6}, {3, 5}, {1, 1}, {1, 1}, {1, 2}, {1, 2}),
        REF_CONV(2, 1, 33, 1, 1, {14, 13}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 1}),
        REF_CONV(2, 2, 16, 1, 1, {9, 4}, {1, 1}, {2, 1}, {1, 1}, {0}, {0}),
        REF_CONV(1, 1, 40, 1, 1, {90}, {7}, {1}, {3}, {9}, {5}),
        REF_CONV(3, 1, 24, 1, 1, {4, 3, 5}, {3, 2, 3}, {1, 1, 2}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}),
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_bits(&cases[i], random_fraction, &state, 0);
}
END_TEST

/* Transformed, small integers stay exact; and where an output is not finite all of them come from the chain,
 * in planes as small as these. */
static double whole(uint64_t *state)
{
    return floor(16 * random_fraction(state));
}

static const double odd[] = {(double)INFINITY, (double)-INFINITY, (double)NAN, 3e38};

START_TEST(winograd_2d)
{
    static const ref_conv cases[] = {
        REF_CONV(2, 1, 1, 16, 16, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 1, 1, 19, 21, {5, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 1, 1, 130, 17, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 2, 1, 70, 33, {9, 3}, {3, 3}, {1, 1}, {1, 1}, {3, 0}, {0, 6}),
        REF_CONV(2, 3, 2, 16, 18, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {2, 2}, {2, 1}),
        REF_CONV(2, 1, 2, 24, 31, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {0, 1}, {1, 0}),
        REF_CONV(2, 1, 1, 16, 16, {19, 41}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 1}), /* chunks */
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_bits(&cases[i], whole, &state, 0);
        for (size_t o = 0; i < 6 && o < sizeof odd / sizeof *odd; o++)
            run_bits(&cases[i], whole, &state, odd[o]);
    }
}
END_TEST

START_TEST(winograd_1d)
{
    static const ref_conv cases[] = {
        REF_CONV(1, 1, 1, 16, 32, {98}, {3}, {1}, {1}, {0}, {0}),
        REF_CONV(1, 2, 1, 17, 33, {131}, {3}, {1}, {1}, {2}, {1}),
        REF_CONV(1, 1, 2, 16, 32, {101}, {5}, {1}, {2}, {3}, {0}),
        REF_CONV(1, 1, 1, 19, 32, {150}, {4}, {1}, {3}, {9}, {1}),
        REF_CONV(1, 1, 1, 16, 35, {120}, {3}, {1}, {4}, {4}, {4}),
        REF_CONV(1, 2, 1, 16, 32, {140}, {3}, {1}, {8}, {0}, {0}),
        REF_CONV(1, 1, 1, 16, 32, {190}, {7}, {1}, {16}, {0}, {8}),
        REF_CONV(1, 1, 1, 90, 32, {420}, {3}, {1}, {90}, {96}, {0}), /* strips, and blocks of lines */
        REF_CONV(2, 1, 1, 5, 32, {11, 100}, {5, 3}, {1, 1}, {2, 1}, {0, 1}, {0, 1}),
        REF_CONV(2, 1, 1, 16, 34, {97, 1}, {6, 1}, {1, 1}, {1, 1}, {3, 0}, {2, 0}),
        REF_CONV(3, 1, 2, 3, 32, {3, 7, 105}, {2, 3, 9}, {2, 1, 1}, {1, 3, 1}, {0, 0, 5}, {0, 0, 2}),
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_bits(&cases[i], whole, &state, 0);
        for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
            run_bits(&cases[i], whole, &state, odd[o]);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("conv", NULL, NULL);
    add_test(&tests, pads_and_strides);
    add_test(&tests, all_is_padding);
    add_test(&tests, small_integers_of_every_type);
    add_test(&tests, bits);
    add_test(&tests, winograd_2d);
    add_test(&tests, winograd_1d);
    return test_program_run(&tests);
}
