/* SPDX-License-Identifier: Apache-2.0 */
/* DFT. */
#include "harness.h"

#include <math.h>
#include <string.h>

/* All lengths up to 70 against the definition; 37 and up, but for 64, go by a chirp. */
START_TEST(all_lengths_against_the_definition)
{
    for (int64_t n = 1; n <= 70; n++) {
        double x[70], want[140];
        for (int64_t i = 0; i < n; i++)
            x[i] = (double)(i * i % 13) - 6;
        for (int64_t k = 0; k < n; k++) {
            double sum[2] = {0};
            for (int64_t i = 0; i < n; i++) {
                double angle = -6.283185307179586 * (double)(i * k % n) / (double)n;
                sum[0] += x[i] * cos(angle);
                sum[1] += x[i] * sin(angle);
            }
            memcpy(want + 2 * k, sum, sizeof sum);
        }
        ops_case c;
        ops_begin(&c, "", "DFT", 20);
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(n, 1), x);
        ops_must_run(&c);
        for (int64_t i = 0; i < 2 * n; i++)
            ck_assert_double_eq_tol(dq_data(c.out[0], double)[i], want[i], 1e-11);
        ops_end(&c);

        ops_begin(&c, "", "DFT", 20); /* half a spectrum back to the signal */
        ops_int(&c, "inverse", 1);
        ops_int(&c, "onesided", 1);
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(n / 2 + 1, 2), want);
        ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES((double)n));
        ops_must_run(&c);
        ck_assert_int_eq(c.out[0]->dims[0], n);
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq_tol(dq_data(c.out[0], double)[i], x[i], 1e-11);
        ops_end(&c);
    }
    ops_case c;
    ops_begin(&c, "", "DFT", 20);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(0));
    ops_must_refuse(&c, DQ_BAD_MODEL, "has a length of 0, expected 1 or more");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("dft", NULL, NULL);
    add_test(&tests, all_lengths_against_the_definition);
    return test_program_run(&tests);
}
