/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding. */
#include "harness.h"

/* Rotations by quarter turns of more pairs than one block holds, and an element that is not rotated. */
START_TEST(quarter_turns)
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

/* The caches have rank 3, but not the dimensions batch, steps and half the head. */
START_TEST(caches_that_do_not_fit_are_refused)
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
    test_program tests = test_program_begin("rotary_embedding", NULL, NULL);
    add_test(&tests, quarter_turns);
    add_test(&tests, caches_that_do_not_fit_are_refused);
    return test_program_run(&tests);
}
