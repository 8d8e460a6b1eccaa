/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose. */
#include "harness.h"
#include "support/reference_conv.h"

#include <string.h>

START_TEST(strides_and_padding)
{
    ops_case c;
    /* two groups, stride 2, one element less by a pad and one more by output_padding */
    ops_begin(&c, "", "ConvTranspose", 22);
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

/* Small integers, whose sums are exact in any order, against the transposed reference convolution. */
START_TEST(against_the_reference)
{
    enum { MAX = 20000, CHANNELS = 100 };
    static double x[MAX], w[MAX], bias[CHANNELS], want[MAX];
    static const ref_conv cases[] = {
        REF_CONV(2, 1, 1, 20, 7, {5, 6}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(2, 2, 2, 3, 5, {7, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 1}),
        /* some results are the bias alone */
        REF_CONV(2, 1, 1, 4, 3, {6, 5}, {2, 2}, {3, 2}, {1, 1}, {0, 0}, {0, 0}),
        REF_CONV(2, 1, 1, 300, 6, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {0, 1}),
        REF_CONV(2, 1, 1, 3, 6, {9, 8}, {3, 4}, {2, 3}, {3, 2}, {2, 0}, {1, 4}),
        /* blocks of columns of different widths */
        REF_CONV(2, 1, 1, 24, 4, {28, 28}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}),
        REF_CONV(1, 2, 3, 5, 2, {40}, {9}, {4}, {2}, {5}, {6}),
        REF_CONV(3, 1, 2, 2, 4, {3, 4, 5}, {3, 2, 4}, {2, 1, 2}, {1, 2, 1}, {1, 0, 1}, {0, 1, 2}),
        REF_CONV(2, 1, 1, 2, 3, {3, 3}, {2, 2}, {70, 9}, {1, 1}, {0, 0}, {0, 0}), /* many phases */
        /* kernel and stride are equal: one product gives all phases, also of more rows than a block has */
        REF_CONV(2, 2, 1, 20, 7, {5, 6}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}),
        REF_CONV(2, 1, 1, 70, 3, {9, 21}, {3, 3}, {3, 3}, {1, 1}, {0, 0}, {0, 0}),
        REF_CONV(1, 1, 1, 60, 100, {40}, {2}, {2}, {1}, {0}, {0}),
        REF_CONV(3, 1, 1, 5, 15, {2, 3, 9}, {2, 4, 2}, {2, 4, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}),
    };
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE};
    for (size_t i = 0; i < MAX; i++) {
        x[i] = ops_small_integer(i);
        w[i] = (double)((i * 7919 + i / 7) % 3) - 1;
    }
    for (size_t i = 0; i < CHANNELS; i++)
        bias[i] = ops_small_integer(i + 1);
    for (size_t i = 0; i < 3 * (sizeof cases / sizeof *cases); i++) {
        /* x of ConvTranspose is y of the convolution that it transposes */
        const ref_conv *k = &cases[i / 3];
        ref_conv g = *k;
        int64_t x_dims[2 + REF_AXES], y_dims[2 + REF_AXES],
            w_dims[2 + REF_AXES] = {k->group * k->group_in, k->group_out};
        int64_t pads[2 * REF_AXES], channels = k->group * k->group_out;
        g.group_in = k->group_out;
        g.group_out = k->group_in;
        memcpy(g.out, k->in, sizeof g.out);
        for (size_t d = 0; d < g.axes; d++)
            g.in[d] = (k->in[d] - 1) * k->stride[d] + ref_conv_span(k, d) - k->begin[d] - k->end[d];
        const size_t rank = ref_conv_dims(&g, g.group * g.group_out, g.out, x_dims),
                     y_count = ref_conv_x_count(&g);
        ref_conv_dims(&g, channels, g.in, y_dims);
        memcpy(w_dims + 2, g.kernel, sizeof g.kernel);
        ref_conv_pads(&g, pads);
        ck_assert_uint_le(y_count, MAX);
        for (size_t n = 0; n < y_count; n++)
            want[n] = bias[n / (y_count / (size_t)(g.batch * channels)) % (size_t)channels];
        ref_conv_add_transposed(&g, x, w, want);
        ops_case c;
        ops_begin(&c, "", "ConvTranspose", 11);
        ops_int(&c, "group", g.group);
        ops_ints(&c, "strides", g.axes, g.stride);
        ops_ints(&c, "dilations", g.axes, g.dilation);
        ops_ints(&c, "pads", 2 * g.axes, pads);
        ops_in(&c, types[i % 3], rank, x_dims, x);
        ops_in(&c, types[i % 3], rank, w_dims, w);
        ops_in(&c, types[i % 3], 1, &channels, bias);
        ops_must_run(&c);
        ops_want(&c, 0, types[i % 3], rank, y_dims, want);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("conv_transpose", NULL, NULL);
    add_test(&tests, strides_and_padding);
    add_test(&tests, against_the_reference);
    return test_program_run(&tests);
}
