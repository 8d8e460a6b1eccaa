/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

/* Of frames of four every two, without a window: a constant, a step, a wave of half the sampling rate. */
static const double signal[8] = {1, 1, 1, 1, 0, 0, 1, -1};
static const double expected[18] = {4, 0, 0, 0, 0, 0, /**/ 2, 0, 1, -1, 0, 0, /**/ 0, 0, -1, -1, 2, 0};

static void begin(ops_case *c, size_t rank, const int64_t *dims)
{
    ops_begin(c, "", "STFT", 17);
    ops_in(c, DQ_FLOAT, rank, dims, signal);
    ops_in(c, DQ_INT64, OPS_SCALAR, OPS_VALUES(2));
    ops_skip(c);
    ops_in(c, DQ_INT64, OPS_SCALAR, OPS_VALUES(4));
    c->weights = 1 << 1 | 1 << 3;
}

/* The standard wants a last axis of 1; exporters leave it out. */
START_TEST(real_signals_with_and_without_their_last_axis)
{
    ops_case c;
    begin(&c, OPS_DIMS(1, 8, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 3, 3, 2), expected);
    ops_end(&c);

    begin(&c, OPS_DIMS(1, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 3, 3, 2), expected);
    ops_end(&c);

    begin(&c, OPS_DIMS(2, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 3, 2), OPS_VALUES(4, 0, 0, 0, 0, 0, 0, 0, -1, -1, 2, 0));
    ops_end(&c);
}
END_TEST

START_TEST(complex_signals_have_both_sides)
{
    ops_case c;
    begin(&c, OPS_DIMS(1, 4, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 4, 2), OPS_VALUES(3, 1, 3, 1, -1, 1, -1, 1));
    ops_end(&c);
}
END_TEST

START_TEST(refused)
{
    ops_case c;
    begin(&c, OPS_DIMS(8));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has shape [8], expected signals and a last axis of 1 or 2");
    ops_end(&c);

    begin(&c, OPS_DIMS(1, 1, 8, 1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has rank 4, expected 3, or 2 for real signals");
    ops_end(&c);

    begin(&c, OPS_DIMS(4, 2));
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has a step of 2 and frames of 4, expected 1 or more and 1 to 2 (the signal)");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("stft", NULL, NULL);
    add_test(&tests, real_signals_with_and_without_their_last_axis);
    add_test(&tests, complex_signals_have_both_sides);
    add_test(&tests, refused);
    return test_program_run(&tests);
}
