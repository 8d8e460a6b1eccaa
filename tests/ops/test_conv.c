/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, the float one. */
#include "harness.h"

#include <math.h>

/* Small integers in floats: sums are exact in any order. */
static double small(size_t i)
{
    return (double)((i * 7919 + i / 13) % 17) - 8;
}

START_TEST(conv_pads_and_strides)
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
static void against_plain_loops(int outs)
{
    enum { IMAGES = 2, GROUPS = 2, IN = 3, MAX = 5, H = 9, WIDTH = 11, KH = 3, KW = 2, OH = 6, OW = 12 };
    static double x[IMAGES * GROUPS * IN * H * WIDTH], w[GROUPS * MAX * IN * KH * KW], bias[GROUPS * MAX];
    static double want[IMAGES * GROUPS * MAX * OH * OW];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = small(i);
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = small(i + 3);
    for (size_t i = 0; i < sizeof bias / sizeof *bias; i++)
        bias[i] = small(i + 1);
    size_t at = 0;
    for (int n = 0; n < IMAGES; n++)
        for (int o = 0; o < GROUPS * outs; o++)
            for (int y = 0; y < OH; y++)
                for (int z = 0; z < OW; z++) {
                    double sum = bias[o];
                    for (int i = 0; i < IN; i++)
                        for (int ky = 0; ky < KH; ky++)
                            for (int kx = 0; kx < KW; kx++) {
                                int iy = y + 2 * ky - 0, ix = z + kx - 1; /* dilation 2; pads 0 and 1 */
                                if (iy >= H || ix < 0 || ix >= WIDTH)
                                    continue;
                                int ch = o / outs * IN + i;
                                sum += x[((n * GROUPS * IN + ch) * H + iy) * WIDTH + ix] *
                                       w[((o * IN + i) * KH + ky) * KW + kx];
                            }
                    want[at++] = sum;
                }
    static const dq_dtype types[] = {DQ_FLOAT, DQ_DOUBLE, DQ_FLOAT16};
    for (size_t t = 0; t < 3; t++) {
        ops_case c;
        ops_begin(&c, "", "Conv", 11);
        ops_int(&c, "group", GROUPS);
        ops_ints(&c, "dilations", 2, (const int64_t[]){2, 1});
        ops_ints(&c, "pads", 4, (const int64_t[]){0, 1, 1, 1});
        ops_in(&c, types[t], OPS_DIMS(IMAGES, GROUPS * IN, H, WIDTH), x);
        ops_in(&c, types[t], OPS_DIMS(GROUPS * outs, IN, KH, KW), w);
        ops_in(&c, types[t], OPS_DIMS(GROUPS * outs), bias);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(IMAGES, GROUPS * outs, OH, OW), want);
        ops_end(&c);
    }
}

START_TEST(conv_against_plain_loops)
{
    against_plain_loops(5);
    against_plain_loops(2);
    against_plain_loops(1);
}
END_TEST

START_TEST(transposed)
{
    ops_case c;
    ops_begin(&c, "", "ConvTranspose",
              22); /* two groups, stride 2, cropped by a pad, one more by output_padding */
    ops_int(&c, "group", 2);
    ops_ints(&c, "strides", 1, (const int64_t[]){2});
    ops_ints(&c, "pads", 2, (const int64_t[]){1, 0});
    ops_ints(&c, "output_padding", 1, (const int64_t[]){1});
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(1, 2, 10, 20));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 3), OPS_VALUES(1, 2, 3, 1, 0, -1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0.5, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 5), OPS_VALUES(2.5, 5.5, 4.5, 6.5, 0.5, 0, 10, 0, -20, 0));
    ops_end(&c);

    ops_begin(&c, "", "ConvTranspose", 11);
    ops_string(&c, "auto_pad", "SAME_UPPER");
    ops_ints(&c, "strides", 1, (const int64_t[]){2});
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 1, 2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 1, 3), OPS_VALUES(1, 2, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(1, 1, 4), OPS_VALUES(1, 2, 5, 4));
    ops_end(&c);
}
END_TEST

typedef struct fused_case {
    const char *activation;
    size_t params;
    float values[7];
    double want[3];
} fused_case;

/* Sums of -4, 1 and 9, to which Z adds 1. */
static void run_fused(const fused_case *f, size_t channels)
{
    ops_case c;
    double z[12], bias[4], weights[4], expected[12];
    for (size_t i = 0; i < 3 * channels; i++) {
        z[i] = 1;
        expected[i] = f->want[i % 3];
    }
    for (size_t i = 0; i < channels; i++) {
        bias[i] = -1;
        weights[i] = 1;
    }
    ops_begin(&c, "com.microsoft", "FusedConv", 1);
    ops_string(&c, "activation", f->activation);
    if (f->params)
        ops_floats(&c, "activation_params", f->params, f->values);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3), OPS_VALUES(-4, 1, 9));
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)channels, 1, 1), weights);
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)channels), bias);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, (int64_t)channels, 3), z);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, (int64_t)channels, 3), expected);
    ops_end(&c);
}

START_TEST(fused)
{
    static const fused_case cases[] = {
        {"Relu", 0, {0}, {0, 1, 9}},
        {"LeakyRelu", 1, {0.5f}, {-2, 1, 9}},
        {"Clip", 2, {-3, 5}, {-3, 1, 5}},
        {"HardSigmoid", 2, {0.25f, 0.5f}, {0, 0.75, 1}},
        {"Gate", 7, {0.125f, 0.5f, 0, 1, 4, 2, 1}, {1, 1.3125, 5.5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_fused(&cases[i], 1); /* without a matrix product */
        run_fused(&cases[i], 4);
    }
}
END_TEST

static void refuse_fused(const char *activation, size_t params, int64_t z, dq_status status,
                         const char *sentence)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "FusedConv", 1);
    ops_string(&c, "activation", activation);
    if (params)
        ops_floats(&c, "activation_params", params, (const float[]){1, 2, 3});
    c.formals[3] = "Z";
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, z), NULL);
    ops_must_refuse(&c, status, sentence);
    ops_end(&c);
}

START_TEST(fused_refused)
{
    refuse_fused("Relu", 0, 1, DQ_BAD_MODEL,
                 "input 3 'Z' has shape [1,1,1], expected that of the result, [1,1,3]");
    refuse_fused("Clip", 1, 3, DQ_BAD_MODEL,
                 "attribute 'activation_params' has 1 values, expected 2 for Clip");
    refuse_fused(
        "Elu", 1, 3, DQ_UNSUPPORTED,
        "attribute 'activation' is 'Elu', expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip");
}
END_TEST

/* ---- Bits -------------------------------------------------------------------------------------------- */

typedef struct conv_case {
    int64_t rank, images, group, ins, outs; /* channels of a group */
    int64_t in[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
} conv_case;

/* Fractions whose products and sums are rounded. */
static double fraction(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)((float)(*state >> 40) / 16777216.0f - 0.5f);
}

/* The contract: one chain of fused multiply-adds over channels and the kernel's elements, padding as zeros.
 */
static float chain(const conv_case *k, const double *x, const double *w, int64_t image, int64_t channel,
                   const int64_t *at)
{
    float sum = 0;
    int64_t taps = 1, plane = 1;
    for (int d = 0; d < k->rank; d++) {
        taps *= k->kernel[d];
        plane *= k->in[d];
    }
    for (int64_t i = 0; i < k->ins; i++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t rest = t, offset = 0, step = 1;
            bool inside = true;
            for (int64_t d = k->rank; d-- > 0; rest /= k->kernel[d]) {
                int64_t p = at[d] * k->stride[d] - k->begin[d] + rest % k->kernel[d] * k->dilation[d];
                inside = inside && p >= 0 && p < k->in[d];
                offset += p * step;
                step *= k->in[d];
            }
            int64_t from = (image * k->group + channel / k->outs) * k->ins + i;
            sum = fmaf((float)w[(channel * k->ins + i) * taps + t],
                       inside ? (float)x[from * plane + offset] : 0, sum);
        }
    return sum;
}

typedef double number_fn(uint64_t *state);

/* `odd`: a pixel. The harness runs each case with portable kernels on one thread and with the best ones on
 * three, and wants the same bytes. */
static void run_bits(const conv_case *k, number_fn *number, uint64_t *state, double odd)
{
    enum { MAX = 40000 };
    static double x[MAX], w[MAX], bias[128], z[MAX], want[MAX];
    int64_t x_dims[5] = {k->images, k->group * k->ins}, w_dims[5] = {k->group * k->outs, k->ins};
    int64_t y_dims[5] = {k->images, k->group * k->outs}, pads[6], x_size = k->images * k->group * k->ins;
    int64_t w_size = k->group * k->outs * k->ins, places = 1, channels = k->group * k->outs;
    size_t rank = (size_t)k->rank;
    for (size_t d = 0; d < rank; d++) {
        x_dims[d + 2] = k->in[d];
        w_dims[d + 2] = k->kernel[d];
        y_dims[d + 2] =
            (k->in[d] + k->begin[d] + k->end[d] - (k->kernel[d] - 1) * k->dilation[d] - 1) / k->stride[d] + 1;
        pads[d] = k->begin[d];
        pads[d + rank] = k->end[d];
        x_size *= k->in[d];
        w_size *= k->kernel[d];
        places *= y_dims[d + 2];
    }
    ck_assert(x_size <= MAX && w_size <= MAX && k->images * channels * places <= MAX && channels <= 128);
    for (int64_t i = 0; i < x_size; i++)
        x[i] = number(state);
    if (odd != 0)
        x[*state % (uint64_t)x_size] = odd;
    for (int64_t i = 0; i < w_size; i++)
        w[i] = number(state);
    for (int64_t i = 0; i < channels; i++)
        bias[i] = number(state);
    for (int64_t i = 0; i < k->images * channels * places; i++) {
        int64_t rest = i % places, at[3];
        z[i] = number(state);
        for (size_t d = rank; d-- > 0; rest /= y_dims[d + 2])
            at[d] = rest % y_dims[d + 2];
        int64_t channel = i / places % channels;
        float y = chain(k, x, w, i / places / channels, channel, at);
        y += (float)bias[channel];
        y += (float)z[i];
        y = y < 0 ? 0 : y;
        want[i] = (double)y;
    }
    ops_case c;
    ops_begin(&c, "com.microsoft", "FusedConv", 1);
    ops_string(&c, "activation", "Relu");
    ops_int(&c, "group", k->group);
    ops_ints(&c, "strides", rank, k->stride);
    ops_ints(&c, "dilations", rank, k->dilation);
    ops_ints(&c, "pads", 2 * rank, pads);
    ops_in(&c, DQ_FLOAT, rank + 2, x_dims, x);
    ops_in(&c, DQ_FLOAT, rank + 2, w_dims, w);
    ops_in(&c, DQ_FLOAT, 1, &channels, bias);
    ops_in(&c, DQ_FLOAT, rank + 2, y_dims, z);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, rank + 2, y_dims, want);
    ops_end(&c);
}

START_TEST(bits)
{
    static const conv_case cases[] = {
        /* pointwise, of one and of several blocks of steps, where it stands and laid out */
        {2, 1, 1, 5, 7, {5, 5}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}},
        {2, 1, 1, 300, 31, {3, 7}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}},
        {2, 2, 3, 9, 6, {4, 9}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}},
        {2, 1, 2, 70, 30, {4, 8}, {1, 1}, {2, 1}, {1, 1}, {0}, {0}},
        /* windows: over several rows of the image, at its edges, at every second place, apart */
        {2, 1, 1, 40, 13, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 2, 2, 3, 5, {19, 23}, {3, 5}, {2, 2}, {1, 1}, {1, 2}, {1, 2}},
        {2, 1, 1, 3, 4, {40, 40}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}},
        {2, 1, 1, 4, 4, {20, 21}, {3, 2}, {3, 4}, {2, 3}, {4, 0}, {0, 5}},
        {2, 1, 1, 1, 8, {3, 3}, {17, 17}, {1, 1}, {1, 1}, {8, 8}, {8, 8}},
        {2, 2, 1, 6, 9, {12, 30}, {11, 7}, {1, 2}, {1, 2}, {0, 3}, {2, 3}},
        {2, 3, 1, 2, 5, {13, 12}, {3, 5}, {2, 3}, {2, 1}, {0, 4}, {3, 2}},
        {2, 2, 1, 3, 6, {9, 37}, {2, 3}, {1, 1}, {1, 2}, {1, 0}, {0, 1}},
        {1, 2, 1, 6, 9, {150}, {9}, {1}, {2}, {5}, {7}},
        {3, 1, 1, 3, 6, {5, 6, 7}, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {0, 1, 2}},
        {3, 2, 1, 1, 9, {4, 9, 21}, {3, 5, 7}, {2, 1, 3}, {1, 2, 1}, {2, 4, 3}, {1, 4, 5}},
        {3, 1, 1, 6, 17, {4, 5, 19}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2}},
        /* patches, which are turned as matrices: over several rows, apart and one over the other, of a row */
        {2, 1, 1, 3, 9, {35, 50}, {8, 8}, {8, 8}, {1, 1}, {0}, {0}},
        {2, 1, 1, 4, 10, {13, 30}, {4, 4}, {4, 4}, {1, 1}, {0}, {0}},
        {2, 2, 2, 5, 7, {40, 43}, {3, 13}, {5, 4}, {2, 1}, {0}, {0}},
        {1, 2, 1, 2, 40, {403}, {20}, {7}, {1}, {0}, {0}},
        /* small images: windows at every second place, over borders, one; and larger ones, of many channels
         */
        {2, 2, 2, 20, 24, {9, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 0}},
        {1, 2, 1, 70, 18, {31}, {5}, {1}, {3}, {7}, {8}},
        {2, 3, 1, 40, 33, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}},
        {2, 1, 1, 300, 40, {8, 9}, {1, 1}, {2, 2}, {1, 1}, {0}, {0}},
        {2, 1, 1, 97, 103, {9, 14}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}},
        /* few output channels: row by row */
        {2, 2, 6, 1, 1, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 1, 5, 1, 1, {15, 37}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
        {2, 1, 3, 1, 2, {60, 70}, {5, 4}, {1, 3}, {2, 1}, {0, 9}, {11, 1}},
        {2, 1, 1, 12, 3, {13, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {1, 1, 4, 2, 1, {333}, {6}, {1}, {3}, {7}, {8}},
        {3, 1, 4, 1, 1, {7, 6, 20}, {3, 2, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 1}},
        /* channels side by side: all turned together, some, in several blocks */
        {2, 3, 19, 1, 1, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 2, 100, 1, 1, {7, 6}, {3, 5}, {1, 1}, {1, 1}, {1, 2}, {1, 2}},
        {2, 1, 33, 1, 1, {14, 13}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 1}},
        {2, 2, 16, 1, 1, {9, 4}, {1, 1}, {2, 1}, {1, 1}, {0}, {0}},
        {1, 1, 40, 1, 1, {90}, {7}, {1}, {3}, {9}, {5}},
        {3, 1, 24, 1, 1, {4, 3, 5}, {3, 2, 3}, {1, 1, 2}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}},
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_bits(&cases[i], fraction, &state, 0);
}
END_TEST

/* Transformed, small integers stay exact; and where an output is not finite all of them come from the chain,
 * in planes as small as these. */
static double whole(uint64_t *state)
{
    return floor(16 * fraction(state));
}

static const double odd[] = {(double)INFINITY, (double)-INFINITY, (double)NAN, 3e38};

START_TEST(winograd)
{
    static const conv_case cases[] = {
        {2, 1, 1, 16, 16, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 1, 1, 19, 21, {5, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 1, 1, 130, 17, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 2, 1, 70, 33, {9, 3}, {3, 3}, {1, 1}, {1, 1}, {3, 0}, {0, 6}},
        {2, 3, 2, 16, 18, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {2, 2}, {2, 1}},
        {2, 1, 2, 24, 31, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {0, 1}, {1, 0}},
        {2, 1, 1, 16, 16, {19, 41}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 1}}, /* chunks */
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_bits(&cases[i], whole, &state, 0);
        for (size_t o = 0; i < 6 && o < sizeof odd / sizeof *odd; o++)
            run_bits(&cases[i], whole, &state, odd[o]);
    }
}
END_TEST

START_TEST(line)
{
    static const conv_case cases[] = {
        {1, 1, 1, 16, 32, {98}, {3}, {1}, {1}, {0}, {0}},
        {1, 2, 1, 17, 33, {131}, {3}, {1}, {1}, {2}, {1}},
        {1, 1, 2, 16, 32, {101}, {5}, {1}, {2}, {3}, {0}},
        {1, 1, 1, 19, 32, {150}, {4}, {1}, {3}, {9}, {1}},
        {1, 1, 1, 16, 35, {120}, {3}, {1}, {4}, {4}, {4}},
        {1, 2, 1, 16, 32, {140}, {3}, {1}, {8}, {0}, {0}},
        {1, 1, 1, 16, 32, {190}, {7}, {1}, {16}, {0}, {8}},
        {1, 1, 1, 90, 32, {420}, {3}, {1}, {90}, {96}, {0}}, /* strips, and blocks of lines */
        {2, 1, 1, 5, 32, {11, 100}, {5, 3}, {1, 1}, {2, 1}, {0, 1}, {0, 1}},
        {2, 1, 1, 16, 34, {97, 1}, {6, 1}, {1, 1}, {1, 1}, {3, 0}, {2, 0}},
        {3, 1, 2, 3, 32, {3, 7, 105}, {2, 3, 9}, {2, 1, 1}, {1, 3, 1}, {0, 0, 5}, {0, 0, 2}},
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_bits(&cases[i], whole, &state, 0);
        for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
            run_bits(&cases[i], whole, &state, odd[o]);
    }
}
END_TEST

/* Each input element spread over the results that its window covers; small integers, exact in any order.
 * Channels are of a group; `end` pads are those after `begin`. */
static void broadcast(const conv_case *k, const int64_t *out, const double *x, const double *w,
                      const double *bias, double *y)
{
    int64_t plane = 1, taps = 1, places = 1, all_outs = k->group * k->outs;
    for (int64_t d = 0; d < k->rank; d++) {
        plane *= k->in[d];
        taps *= k->kernel[d];
        places *= out[d];
    }
    for (int64_t i = 0; i < k->images * all_outs * places; i++)
        y[i] = bias[i / places % all_outs];
    for (int64_t n = 0; n < k->images * k->group * k->ins; n++)
        for (int64_t o = 0; o < k->outs; o++)
            for (int64_t i = 0; i < plane * taps; i++) {
                int64_t from = i / taps, tap = i % taps, at = 0, step = 1;
                bool inside = true;
                for (int64_t d = k->rank; d-- > 0; from /= k->in[d], tap /= k->kernel[d]) {
                    int64_t p =
                        from % k->in[d] * k->stride[d] + tap % k->kernel[d] * k->dilation[d] - k->begin[d];
                    inside = inside && p >= 0 && p < out[d];
                    at += p * step;
                    step *= out[d];
                }
                int64_t group = n / k->ins % k->group, image = n / k->ins / k->group;
                if (inside)
                    y[(image * all_outs + group * k->outs + o) * places + at] +=
                        x[n * plane + i / taps] *
                        w[(n % (k->group * k->ins) * k->outs + o) * taps + i % taps];
            }
}

START_TEST(transposed_against_spreading)
{
    enum { MAX = 20000, CHANNELS = 100 };
    static double x[MAX], w[MAX], bias[CHANNELS], want[MAX];
    static const conv_case cases[] = {
        {2, 1, 1, 20, 7, {5, 6}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
        {2, 2, 2, 3, 5, {7, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 1}},
        {2, 1, 1, 4, 3, {6, 5}, {2, 2}, {3, 2}, {1, 1}, {0, 0}, {0, 0}}, /* results that nothing reaches */
        {2, 1, 1, 300, 6, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {0, 1}},
        {2, 1, 1, 3, 6, {9, 8}, {3, 4}, {2, 3}, {3, 2}, {2, 0}, {1, 4}},
        {2, 1, 1, 24, 4, {28, 28}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, /* blocks of columns, unlike */
        {1, 2, 3, 5, 2, {40}, {9}, {4}, {2}, {5}, {6}},
        {3, 1, 2, 2, 4, {3, 4, 5}, {3, 2, 4}, {2, 1, 2}, {1, 2, 1}, {1, 0, 1}, {0, 1, 2}},
        {2, 1, 1, 2, 3, {3, 3}, {2, 2}, {70, 9}, {1, 1}, {0, 0}, {0, 0}}, /* many phases */
        /* each result takes one pixel: all phases at once, also more rows than a block has */
        {2, 2, 1, 20, 7, {5, 6}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
        {2, 1, 1, 70, 3, {9, 21}, {3, 3}, {3, 3}, {1, 1}, {0, 0}, {0, 0}},
        {1, 1, 1, 60, 100, {40}, {2}, {2}, {1}, {0}, {0}},
        {3, 1, 1, 5, 15, {2, 3, 9}, {2, 4, 2}, {2, 4, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    };
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE};
    for (size_t i = 0; i < MAX; i++) {
        x[i] = small(i);
        w[i] = (double)((i * 7919 + i / 7) % 3) - 1;
    }
    for (size_t i = 0; i < CHANNELS; i++)
        bias[i] = small(i + 1);
    for (size_t i = 0; i < 3 * (sizeof cases / sizeof *cases); i++) {
        const conv_case *k = &cases[i / 3];
        size_t rank = (size_t)k->rank;
        int64_t x_dims[5] = {k->images, k->group * k->ins}, w_dims[5] = {k->group * k->ins, k->outs};
        int64_t y_dims[5] = {k->images, k->group * k->outs}, pads[6], channels = k->group * k->outs;
        for (size_t d = 0; d < rank; d++) {
            x_dims[d + 2] = k->in[d];
            w_dims[d + 2] = k->kernel[d];
            y_dims[d + 2] = (k->in[d] - 1) * k->stride[d] + (k->kernel[d] - 1) * k->dilation[d] + 1 -
                            k->begin[d] - k->end[d];
            pads[d] = k->begin[d];
            pads[d + rank] = k->end[d];
        }
        broadcast(k, y_dims + 2, x, w, bias, want);
        ops_case c;
        ops_begin(&c, "", "ConvTranspose", 11);
        ops_int(&c, "group", k->group);
        ops_ints(&c, "strides", rank, k->stride);
        ops_ints(&c, "dilations", rank, k->dilation);
        ops_ints(&c, "pads", 2 * rank, pads);
        ops_in(&c, types[i % 3], rank + 2, x_dims, x);
        ops_in(&c, types[i % 3], rank + 2, w_dims, w);
        ops_in(&c, types[i % 3], 1, &channels, bias);
        ops_must_run(&c);
        ops_want(&c, 0, types[i % 3], rank + 2, y_dims, want);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_group tests = ops_group("Conv");
    add_test(&tests, transposed_against_spreading);
    add_test(&tests, bits);
    add_test(&tests, winograd);
    add_test(&tests, line);
    add_test(&tests, conv_pads_and_strides);
    add_test(&tests, all_is_padding);
    add_test(&tests, conv_against_plain_loops);
    add_test(&tests, transposed);
    add_test(&tests, fused);
    add_test(&tests, fused_refused);
    return run_suite(tests.suite);
}
