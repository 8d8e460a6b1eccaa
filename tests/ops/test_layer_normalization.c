/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization, its simplified and skip forms, EmbedLayerNormalization. */
#include "harness.h"

#include <math.h>

START_TEST(layer_normalization)
{
    ops_case c;
    ops_begin(&c, "", "LayerNormalization", 17);
    c.out_count = 2;
    ops_int(&c, "axis", -1);
    ops_float(&c, "epsilon", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 3, 10, 30));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(2, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(-2, 4, -2, 4));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(2, 20));
    ops_end(&c);

    ops_begin(&c, "", "LayerNormalization", 17); /* of nothing */
    c.out_count = 3;
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    for (uint32_t i = 1; i < 3; i++)
        ops_want(&c, i, DQ_FLOAT, OPS_DIMS(2, 1), (const double[]){(double)NAN, (double)NAN});
    ops_end(&c);
}
END_TEST

/* ONNX Runtime's, in the standard's domain; stash_type says the type of the statistics. */
START_TEST(simplified)
{
    for (int stash = DQ_FLOAT; stash <= DQ_DOUBLE; stash += DQ_DOUBLE - DQ_FLOAT) {
        ops_case c;
        ops_begin(&c, "", "SimplifiedLayerNormalization", 1);
        ops_float(&c, "epsilon", 0);
        ops_int(&c, "stash_type", stash);
        ops_in(&c, DQ_FLOAT16, OPS_DIMS(2, 2), OPS_VALUES(1, 7, -1, 1));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(5, 10));
        c.out_count = 2;
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 14, -5, 10));
        double fifth = stash == DQ_DOUBLE ? 0.2 : (double)0.2f;
        ops_want(&c, 1, (dq_dtype)stash, OPS_DIMS(2, 1), (double[]){fifth, 1});
        ops_end(&c);
    }
}
END_TEST

/* Rows of two numbers with a mean of 3 and a deviation of 1. */
static void begin_skip(ops_case *c, dq_dtype dtype)
{
    ops_begin(c, "com.microsoft", "SkipLayerNormalization", 1);
    ops_float(c, "epsilon", 0);
    ops_in(c, dtype, OPS_DIMS(2, 1, 2), OPS_VALUES(1, 3, 4, 0));
    ops_in(c, dtype, OPS_DIMS(1, 2), OPS_VALUES(1, 0));
    ops_in(c, dtype, OPS_DIMS(2), OPS_VALUES(2, 4));
    ops_in(c, dtype, OPS_DIMS(2), OPS_VALUES(1, 0));
    ops_in(c, dtype, OPS_DIMS(2), OPS_VALUES(0, 1));
}

START_TEST(skip)
{
    const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_BFLOAT16};
    for (size_t i = 0; i < 3; i++) {
        ops_case c;
        begin_skip(&c, types[i]);
        c.out_count = 4;
        ops_must_run(&c);
        ops_want(&c, 3, types[i], OPS_DIMS(2, 1, 2), OPS_VALUES(2, 4, 5, 1));
        ops_want(&c, 0, types[i], OPS_DIMS(2, 1, 2), OPS_VALUES(-1, 4, 3, -4));
        ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(2, 1, 1), OPS_VALUES(3, 3));
        ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(2, 1, 1), OPS_VALUES(1, 0.5));
        ops_end(&c);
    }
}
END_TEST

START_TEST(skip_simplified)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "SkipSimplifiedLayerNormalization", 1);
    ops_float(&c, "epsilon", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(0, 6)); /* 1, 7: a root mean square of 5 */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(5, 10));
    c.out_count = 3;
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(1, 14));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1), (double[]){(double)0.2f});
    ops_end(&c);
}
END_TEST

START_TEST(skip_of_empty_rows)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "SkipLayerNormalization", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    c.out_count = 4;
    ops_must_run(&c);
    for (uint32_t i = 1; i < 3; i++)
        ops_want(&c, i, DQ_FLOAT, OPS_DIMS(1, 2, 1), (const double[]){(double)NAN, (double)NAN});
    ops_want(&c, 3, DQ_FLOAT, OPS_DIMS(1, 2, 0), NULL);
    ops_end(&c);
}
END_TEST

START_TEST(skip_refused)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "SkipLayerNormalization", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [3,2], which does not broadcast to [2,1,2]");
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "SkipLayerNormalization", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has shape [3], expected [2], the length of the last axis");
    ops_end(&c);
}
END_TEST

/* Two words of two numbers, two positions; the sum of word and position has a mean of 0. */
static void begin_embed(ops_case *c, double word)
{
    ops_begin(c, "com.microsoft", "EmbedLayerNormalization", 1);
    ops_float(c, "epsilon", 0);
    ops_in(c, DQ_INT32, OPS_DIMS(1, 2), (double[]){word, 0});
    ops_skip(c);
    ops_in(c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 0, 4, 0));
    ops_in(c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0, -4, 1, -2));
    ops_skip(c);
    ops_in(c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(3, 5));
    ops_in(c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0, 1));
    ops_in(c, DQ_INT32, OPS_DIMS(1, 2), OPS_VALUES(1, 0));
}

START_TEST(embed)
{
    ops_case c;
    begin_embed(&c, 1);
    c.out_count = 3;
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(3, -4, 3, -4));
    ops_want(&c, 1, DQ_INT32, OPS_DIMS(1), OPS_VALUES(1));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(4, -4, 2, -2));
    ops_end(&c);

    begin_embed(&c, 2);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 0 holds 2, outside the 2 rows of input 2");
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "EmbedLayerNormalization", 1); /* rows without elements */
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 2), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 0), NULL);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("layer_normalization", NULL, NULL);
    add_test(&tests, layer_normalization);
    add_test(&tests, simplified);
    add_test(&tests, skip);
    add_test(&tests, skip_simplified);
    add_test(&tests, skip_of_empty_rows);
    add_test(&tests, skip_refused);
    add_test(&tests, embed);
    return test_program_run(&tests);
}
