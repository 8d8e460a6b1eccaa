/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun TiledQdq: values by hand, and its refusals. tests/fusion holds it against the nodes that it stands
 * for. */
#include "harness.h"

static void begin(ops_case *c, const char *op, int version, int64_t free)
{
    static const float scales[] = {0.5f, 0.25f};
    static const int64_t qvalues[] = {1, DQ_UINT16, 100};
    ops_begin(c, "dqrun", "TiledQdq", 1);
    ops_string(c, "op", op);
    ops_int(c, "version", version);
    ops_int(c, "free", free);
    ops_floats(c, "scales", 2, scales);
    ops_ints(c, "codes", 3, qvalues);
}

START_TEST(values)
{
    ops_case c;
    const int64_t two[] = {2, 2};
    begin(&c, "GlobalAveragePool", 1, 2);
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 1, 2), OPS_VALUES(1, 3, -1, -5));
    ops_must_run(&c); /* floats 0 1; -1 -3 */
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(1, 2, 1, 1), OPS_VALUES(102, 92));
    ops_end(&c);
    begin(&c, "MaxPool", 12, 2);
    ops_ints(&c, "kernel_shape", 2, two);
    ops_in(&c, DQ_UINT16, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(1, 60001, 3, 7));
    ops_must_run(&c); /* 30000 */
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(65535));
    ops_end(&c);
    begin(&c, "Softmax", 13, -1); /* no element */
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(2, 0), NULL);
    ops_end(&c);
}
END_TEST

/* Sizes of Resize: those of the axes that count slices must stay as they are. */
START_TEST(sizes_of_planes_alone)
{
    static const int64_t sizes[][4] = {{2, 1, 2, 2}, {4, 1, 2, 2}, {2, 3, 2, 2}};
    for (size_t i = 0; i < 3; i++) {
        ops_case c;
        double numbers[4];
        for (size_t d = 0; d < 4; d++)
            numbers[d] = (double)sizes[i][d];
        begin(&c, "Resize", 19, 2);
        ops_in(&c, DQ_INT8, OPS_DIMS(2, 1, 1, 1), OPS_VALUES(3, -1));
        ops_skip(&c);
        ops_skip(&c);
        ops_in(&c, DQ_INT64, OPS_DIMS(4), numbers);
        c.weights = 1 << 3;
        if (i == 0) {
            ops_must_run(&c); /* floats 1 and -1 */
            ops_want(&c, 0, DQ_UINT16, OPS_DIMS(2, 1, 2, 2), OPS_VALUES(104, 104, 104, 104, 96, 96, 96, 96));
        } else {
            ops_must_refuse(&c, DQ_BAD_MODEL, "has an operator that does not hold together");
        }
        ops_end(&c);
    }
}
END_TEST

START_TEST(refusals)
{
    static const char message[] = "has an operator that does not hold together";
    const struct {
        const char *op;
        int version;
        int64_t free;
    } bad[] = {{"Relu", 14, 1},
               {"Softmax", 99, -1},
               {"LayerNormalization", 17, -1}, /* its scale is missing */
               {"AveragePool", 19, 0},
               {"LRN", 13, 4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int64_t kernel[] = {1, 2};
        ops_case c;
        begin(&c, bad[i].op, bad[i].version, bad[i].free);
        ops_ints(&c, "kernel_shape", 2, kernel);
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 3, 4), NULL);
        ops_must_refuse(&c, DQ_BAD_MODEL, message);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("tiled_qdq", NULL, NULL);
    add_test(&tests, values);
    add_test(&tests, sizes_of_planes_alone);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
