/* SPDX-License-Identifier: Apache-2.0 */
/* Indices and regions outside of their tensors are refused: MaxUnpool, RoiAlign, NegativeLogLikelihoodLoss,
 * Col2Im. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(outside)
{
    ops_case c;
    ops_begin(&c, "", "MaxUnpool", 22);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 1, 1), OPS_VALUES(2));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds index 2, expected 0 to 1");
    ops_end(&c);

    ops_begin(&c, "", "RoiAlign", 22);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(0, 0, 1, 1));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_refuse(&c, DQ_BAD_INPUT, "has a region of image 1, expected 0 to 0");
    ops_end(&c);

    ops_begin(&c, "", "RoiAlign", 22); /* a region as large as a float can say does not run for ever */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(0, 0, 1048576, 1));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(0));
    ops_must_refuse(&c, DQ_BAD_INPUT, "takes 1.04858e+06 samples of a bin, and at most 65536 run");
    ops_end(&c);

    ops_begin(&c, "", "NegativeLogLikelihoodLoss", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(-1));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds class -1, expected 0 to 2");
    ops_end(&c);

    ops_begin(&c, "", "Col2Im", 18);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(4));
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has blocks of 4 for an image of 3 along spatial axis 0, which do not fit");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("out_of_range");
    add_test(&tests, outside);
    return run_suite(tests.suite);
}
