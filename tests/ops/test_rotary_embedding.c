/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding. */
#include "harness.h"

#include <math.h>

/* A head of more pairs than are turned at a time, by quarters of a circle, and an element that stays. */
START_TEST(turned_heads)
{
    enum { PAIRS = 300, SIZE = 2 * PAIRS + 1 };
    for (size_t interleaved = 0; interleaved < 2; interleaved++) {
        double x[SIZE], want[SIZE], cosines[PAIRS], sines[PAIRS];
        for (size_t i = 0; i < SIZE; i++)
            want[i] = x[i] = (double)(i + 1);
        for (size_t i = 0; i < PAIRS; i++) {
            size_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + PAIRS,
                   quarters = i % 4;
            cosines[i] = quarters == 0 ? 1 : quarters == 2 ? -1 : 0;
            sines[i] = quarters == 1 ? 1 : quarters == 3 ? -1 : 0;
            want[first] = cosines[i] * x[first] - sines[i] * x[second];
            want[second] = sines[i] * x[first] + cosines[i] * x[second];
        }
        ops_case c;
        ops_begin(&c, "", "RotaryEmbedding", 23);
        ops_int(&c, "interleaved", (int64_t)interleaved);
        ops_int(&c, "rotary_embedding_dim", 2 * PAIRS);
        ops_in(&c, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, 1, SIZE), x);
        ops_in(&c, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, PAIRS), cosines);
        ops_in(&c, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, PAIRS), sines);
        ops_must_run(&c);
        ops_want(&c, 0, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, 1, SIZE), want);
        ops_end(&c);
    }
}
END_TEST

/* Of rank 3 but not of the batch, the steps and half the head. */
START_TEST(tables_of_turns_that_do_not_fit)
{
    ops_case c;
    ops_begin(&c, "", "RotaryEmbedding", 23);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 4), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has shape [1,1,2], expected [1,2,2]");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("rotary_embedding");
    add_test(&tests, turned_heads);
    add_test(&tests, tables_of_turns_that_do_not_fit);
    return run_suite(tests.suite);
}
