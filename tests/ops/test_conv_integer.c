/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger against the reference convolution, and the geometry of windows. */
#include "conv_cases.h"

#include <string.h>

static const char *const formals[] = {"x", "w", "x_zero_point", "w_zero_point"};

START_TEST(random_convolutions)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8};
    uint64_t state = 2685821657736338717u;
    for (int round = 0; round < 400; round++) {
        ref_conv g = ref_conv_random(&state);
        dq_dtype tx = types[round & 1], tw = types[round >> 1 & 1];
        const dq_tensor *zeros[2] = {NULL, NULL};
        const int64_t one = 1;
        int64_t dim;
        ops_case c;
        ops_begin(&c, "", "ConvInteger", 10);
        conv_attributes(&c, &g, &state);
        const dq_tensor *x = conv_in_x(&c, &state, tx, &g), *w = conv_in_w(&c, &state, tw, &g);
        if (random_below(&state, 3))
            zeros[0] = ops_in_random(&c, &state, tx, random_below(&state, 2), &one);
        else
            ops_skip(&c);
        if (random_below(&state, 3)) {
            size_t rank = conv_channel_param(&state, g.group * g.group_out, &dim);
            zeros[1] = ops_in_random(&c, &state, tw, rank, &dim);
        }
        ops_must_run(&c);
        conv_want_shape(&c, &g);
        for (size_t i = 0; i < c.out[0]->count; i++) {
            int64_t expected = ref_conv_integer(&g, x, zeros[0], w, zeros[1], i);
            ck_assert_msg(dq_data(c.out[0], int32_t)[i] == expected,
                          "round %d, element %zu: %d, expected %lld", round, i, dq_data(c.out[0], int32_t)[i],
                          (long long)expected);
        }
        ops_end(&c);
    }
}
END_TEST

/* Kernels of 3×3 at stride 1 over many pixels, with channels and sides that fill no vector and no tile. */
START_TEST(kernels_of_3x3)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8};
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 16; round++) {
        ref_conv g = {.axes = 2, .batch = 1 + random_below(&state, 2), .group = 1, .stride = {1, 1}};
        g.group_in = 16 + random_below(&state, 20);
        g.group_out = 1 + random_below(&state, 36);
        for (size_t i = 0; i < 2; i++) {
            g.in[i] = 20 + random_below(&state, 9) + (round == (int)i ? 22 : 0);
            g.kernel[i] = 3;
            g.dilation[i] = 1;
            g.begin[i] = random_below(&state, 3);
            g.end[i] = random_below(&state, 3);
        }
        ck_assert(ref_conv_finish(&g));
        dq_dtype tx = types[round & 1], tw = types[round >> 1 & 1];
        const int64_t one = 1;
        ops_case c;
        ops_begin(&c, "", "ConvInteger", 10);
        conv_attributes(&c, &g, &state);
        const dq_tensor *x = conv_in_x(&c, &state, tx, &g), *x_zero, *w_zero;
        dq_tensor *w = conv_in_w(&c, &state, tw, &g);
        x_zero = ops_in_random(&c, &state, tx, 1, &one);
        w_zero = ops_in(&c, tw, OPS_SCALAR, OPS_VALUES(tw == DQ_UINT8 ? 128 : 0));
        if (round % 4 == 3) { /* the largest sums */
            memset(x->data, tx == DQ_UINT8 ? 0xff : 0x80, x->size);
            memset(w->data, tw == DQ_UINT8 ? 0 : 0x80, w->size);
        }
        ops_must_run(&c);
        conv_want_shape(&c, &g);
        for (size_t i = 0; i < c.out[0]->count; i += 1 + random_below(&state, 40)) {
            int64_t expected = ref_conv_integer(&g, x, x_zero, w, w_zero, i);
            ck_assert_msg(dq_data(c.out[0], int32_t)[i] == expected,
                          "round %d, element %zu: %d, expected %lld", round, i, dq_data(c.out[0], int32_t)[i],
                          (long long)expected);
        }
        ops_end(&c);
    }
}
END_TEST

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

START_TEST(no_input_channels)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 0, 2, 2), NULL);
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 0, 2, 1), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1, 1, 2), OPS_VALUES(0, 0));
    ops_end(&c);
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

/* More images than one batch tile holds. */
START_TEST(large_images)
{
    enum { BATCH = 4, CHANNELS = 64, SIDE = 128, PLANE = SIDE * SIDE };
    uint64_t state = 99;
    ref_conv g = {.axes = 2,
                  .batch = BATCH,
                  .group = 1,
                  .group_in = CHANNELS,
                  .group_out = 1,
                  .in = {SIDE, SIDE},
                  .kernel = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
    ops_case c;
    ck_assert(ref_conv_finish(&g));
    ops_begin(&c, "", "ConvInteger", 10);
    dq_tensor *x = ops_in_random(&c, &state, DQ_UINT8, OPS_DIMS(BATCH, CHANNELS, SIDE, SIDE));
    dq_tensor *w = ops_in_random(&c, &state, DQ_INT8, OPS_DIMS(1, CHANNELS, 1, 1));
    ops_must_run(&c);
    for (size_t i = 0; i < BATCH * PLANE; i++) {
        ck_assert_int_eq(dq_data(c.out[0], int32_t)[i], ref_conv_integer(&g, x, NULL, w, NULL, i));
    }
    ops_end(&c);
}
END_TEST

typedef struct attribute {
    const char *name;
    size_t count;
    int64_t values[4];
} attribute;

static void refuse(size_t rank_x, const int64_t *x, size_t rank_w, const int64_t *w, const attribute *attr,
                   const char *message)
{
    ops_case c;
    ops_begin(&c, "", "ConvInteger", 10);
    for (int i = 0; i < 4; i++)
        c.formals[i] = formals[i];
    if (attr && strcmp(attr->name, "group") == 0)
        ops_int(&c, attr->name, attr->values[0]);
    else if (attr)
        ops_ints(&c, attr->name, attr->count, attr->values);
    ops_in(&c, DQ_UINT8, rank_x, x, NULL);
    ops_in(&c, DQ_UINT8, rank_w, w, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, message);
    ops_end(&c);
}

START_TEST(geometry_refused)
{
    refuse(OPS_DIMS(3, 4), OPS_DIMS(3, 4), NULL,
           "input 0 'x' has 2 axes, expected batch, channels and 1 or more spatial axes");
    refuse(OPS_DIMS(1, 4, 5, 5), OPS_DIMS(3, 4, 2), NULL,
           "input 1 'w' has 3 axes, expected 4 as input 0 has");
    refuse(OPS_DIMS(1, 5, 5), OPS_DIMS(3, 4, 2), NULL,
           "input 0 'x' has 5 channels, expected 4 for each of 1 groups as the weights have");
    refuse(OPS_DIMS(1, 8, 5), OPS_DIMS(3, 4, 2), &(attribute){"group", 1, {2}},
           "input 1 'w' has 3 output channels, expected a multiple of the 2 groups");
    refuse(OPS_DIMS(1, 8, 5), OPS_DIMS(3, 4, 2), &(attribute){"group", 1, {0}},
           "attribute 'group' is 0, expected 1 or more");
    refuse(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"strides", 2, {1, 1}},
           "attribute 'strides' has 2 values, expected 1");
    refuse(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"dilations", 1, {0}},
           "attribute 'dilations' has 0 at index 0, expected 1 or more");
    refuse(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"pads", 2, {0, -1}},
           "attribute 'pads' has -1 at index 1, expected 0 or more");
    refuse(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 2), &(attribute){"kernel_shape", 1, {3}},
           "attribute 'kernel_shape' has 3 at index 0, but the weights have 2");
    refuse(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 7), &(attribute){"pads", 2, {1, 0}},
           "input 0 'x' has 5 elements on spatial axis 0, with padding 6: fewer than the window's 7");
    refuse(OPS_DIMS(1, 4, 5), OPS_DIMS(3, 4, 0), NULL,
           "input 1 'w' has an empty spatial axis 0, expected 1 element or more");
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
    test_program tests = test_program_begin("conv_integer", NULL, NULL);
    add_test(&tests, random_convolutions);
    add_test(&tests, kernels_of_3x3);
    add_test(&tests, full_range);
    add_test(&tests, no_input_channels);
    add_test(&tests, only_padding);
    add_test(&tests, as_long_as_without_padding);
    add_test(&tests, far_in_the_padding);
    add_test(&tests, large_images);
    add_test(&tests, geometry_refused);
    add_test(&tests, sizes_that_overflow);
    return test_program_run(&tests);
}
