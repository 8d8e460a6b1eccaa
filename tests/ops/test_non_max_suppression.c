/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

static void boxes(ops_case *c, double most, double overlap)
{
    ops_begin(c, "", "NonMaxSuppression", 11);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 3, 4), OPS_VALUES(0, 0, 1, 1, 0, 0, 1, 0.5, 1, 1, 0, 0.5));
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 3), OPS_VALUES(0.5, 0.5, 0.75));
    ops_in(c, DQ_INT64, OPS_DIMS(1), &most);
    ops_in(c, DQ_FLOAT, OPS_SCALAR, &overlap);
}

START_TEST(few_boxes)
{
    ops_case c; /* boxes 0 and 1, and 0 and 2, overlap by exactly a half; 1 and 2 touch */
    boxes(&c, 9e18, 0.5);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(3, 3), OPS_VALUES(0, 0, 2, 0, 0, 0, 0, 0, 1));
    ops_end(&c);
    boxes(&c, 2, 0.25);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 3), OPS_VALUES(0, 0, 2, 0, 0, 1));
    ops_end(&c);
    boxes(&c, -1, 0.5);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(0, 3), NULL);
    ops_end(&c);
    for (int bounded = 0; bounded < 2; bounded++) { /* batches and classes; one class has none above -1 */
        static const double all[] = {0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0};
        static const double some[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0};
        ops_begin(&c, "", "NonMaxSuppression", 11);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 4), OPS_VALUES(0, 0, 1, 1, 3, 3, 4, 4, 0, 0, 1, 1, 3, 3, 4, 4));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 2),
               OPS_VALUES(0, -0.0, (double)NAN, -(double)INFINITY, -2, -1, 5, 6));
        ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(7));
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
        if (bounded)
            ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(-1));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_INT64, OPS_DIMS(bounded ? 4 : 7, 3), bounded ? some : all);
        ops_end(&c);
    }
}
END_TEST

static float shared(const double *x, const double *y) /* of all that two boxes cover */
{
    float common = 1, area[2] = {1, 1};
    for (int d = 0; d < 2; d++) {
        const float low = (float)fmax(x[d], y[d]), high = (float)fmin(x[2 + d], y[2 + d]);
        common *= high > low ? high - low : 0;
        area[0] *= (float)x[2 + d] - (float)x[d];
        area[1] *= (float)y[2 + d] - (float)y[d];
    }
    return common / (area[0] + area[1] - common);
}

/* Many boxes, equal scores among them, against the definition. */
START_TEST(many_boxes_against_the_definition)
{
    enum { N = 211 };
    static double x[N * 4], scores[N], want[N * 3];
    for (size_t i = 0; i < N; i++) {
        const double place[2] = {(double)(i * i % 89), (double)(i * 7 % 61)};
        for (size_t d = 0; d < 2; d++) {
            x[i * 4 + d] = place[d];
            x[i * 4 + 2 + d] = place[d] + 5 + (double)(i % (11 + d));
        }
        scores[i] = (double)(i * 37 % 64) / 64;
    }
    for (int bits = 0; bits < 8; bits++) {
        const double lowest = bits & 1 ? 0.875 : 0, most = bits & 2 ? 10 : N;
        const float overlap = bits & 4 ? 0.5f : 0.0625f;
        size_t found = 0, at[N];
        for (size_t step = 0; step < 64; step++) /* from the highest score on */
            for (size_t i = 0; i < N; i++) {
                bool free =
                    scores[i] == (double)(63 - step) / 64 && scores[i] > lowest && (double)found < most;
                for (size_t k = 0; free && k < found; k++)
                    free = !(shared(x + i * 4, x + at[k] * 4) > overlap);
                if (free)
                    at[found++] = i;
            }
        for (size_t k = 0; k < found; k++) {
            want[k * 3] = want[k * 3 + 1] = 0;
            want[k * 3 + 2] = (double)at[k];
        }
        ops_case c;
        ops_begin(&c, "", "NonMaxSuppression", 11);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, N, 4), x);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, N), scores);
        ops_in(&c, DQ_INT64, OPS_SCALAR, &most);
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES((double)overlap));
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, &lowest);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_INT64, OPS_DIMS((int64_t)found, 3), want);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("non_max_suppression", NULL, NULL);
    add_test(&tests, few_boxes);
    add_test(&tests, many_boxes_against_the_definition);
    return test_program_run(&tests);
}
