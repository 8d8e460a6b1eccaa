/* SPDX-License-Identifier: Apache-2.0 */
/* Pad. */
#include "harness.h"

static void pads(const char *mode, double begin, double end, int64_t n, const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Pad", 19);
    ops_string(&c, "mode", mode);
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(begin, end));
    ops_skip(&c);
    ops_in(&c, DQ_INT64, OPS_VECTOR(-1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, n), want);
    ops_end(&c);
}

START_TEST(padding)
{
    pads("constant", 1, 2, 6, OPS_VALUES(0, 1, 2, 3, 0, 0));
    pads("constant", -1, 1, 3, OPS_VALUES(2, 3, 0));
    pads("edge", 2, 1, 6, OPS_VALUES(1, 1, 1, 2, 3, 3));
    pads("reflect", 2, 2, 7, OPS_VALUES(3, 2, 1, 2, 3, 2, 1));
    pads("wrap", 2, 1, 6, OPS_VALUES(2, 3, 1, 2, 3, 1));
    pads("reflect", -1, 2, 4, OPS_VALUES(2, 3, 2, 1));

    static const dq_dtype types[] = {DQ_UINT4, DQ_UINT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    ops_case c;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) { /* both axes; one axis is all pads */
        ops_begin(&c, "", "Pad", 25);
        ops_string(&c, "mode", "edge");
        ops_in(&c, types[t], OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
        ops_in(&c, DQ_INT64, OPS_VECTOR(1, 1, 0, 2));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(3, 6),
                 OPS_VALUES(1, 1, 2, 3, 3, 3, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 6, 6));
        ops_end(&c);
        ops_begin(&c, "", "Pad", 25);
        ops_string(&c, "mode", "wrap");
        ops_in(&c, types[t], OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
        ops_in(&c, DQ_INT64, OPS_VECTOR(0, 5, 1, -3));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, 5), OPS_VALUES(2, 3, 1, 2, 3, 2, 3, 1, 2, 3));
        ops_end(&c);
    }
    ops_begin(&c, "", "Pad", 25); /* packed, with a value */
    ops_in(&c, DQ_UINT4, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, OPS_VECTOR(1, 1));
    ops_in(&c, DQ_UINT4, OPS_SCALAR, OPS_VALUES(15));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT4, OPS_DIMS(5), OPS_VALUES(15, 1, 2, 3, 15));
    ops_end(&c);

    ops_begin(&c, "", "Pad", 2);
    ops_ints(&c, "pads", OPS_INTS(0, 1, 0, 0));
    ops_float(&c, "value", 0.5f);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(2, 2), OPS_VALUES(0.5, 1, 0.5, 2));
    ops_end(&c);

    ops_begin(&c, "", "Pad", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_INT64, OPS_VECTOR(-2, -1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "pads axis 0 of 2 by -2 and -1, which leaves no length");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("pad", NULL, NULL);
    add_test(&tests, padding);
    return test_program_run(&tests);
}
