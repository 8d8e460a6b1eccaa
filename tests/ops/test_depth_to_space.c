/* SPDX-License-Identifier: Apache-2.0 */
/* DepthToSpace and SpaceToDepth. */
#include "harness.h"

static const double EIGHT[] = {0, 1, 2, 3, 4, 5, 6, 7};

START_TEST(depth_to_space)
{
    static const char *const modes[] = {"DCR", "CRD"};
    static const double want[2][8] = {{0, 2, 4, 6, 1, 3, 5, 7}, {0, 1, 2, 3, 4, 5, 6, 7}};
    for (size_t i = 0; i < 2; i++) {
        ops_case c;
        ops_begin(&c, "", "DepthToSpace", 13);
        ops_int(&c, "blocksize", 2);
        ops_string(&c, "mode", modes[i]);
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 8, 1, 1), EIGHT);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 2, 2, 2), want[i]);
        ops_end(&c);
    }
}
END_TEST

START_TEST(space_to_depth)
{
    ops_case c;
    ops_begin(&c, "", "SpaceToDepth", 13);
    ops_int(&c, "blocksize", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 4), EIGHT);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 4, 1, 2), OPS_VALUES(0, 2, 1, 3, 4, 6, 5, 7));
    ops_end(&c);

    ops_begin(&c, "", "SpaceToDepth", 13);
    ops_int(&c, "blocksize", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 4), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has shape [1,1,2,4], which is not whole blocks of 3");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("depth_to_space", NULL, NULL);
    add_test(&tests, depth_to_space);
    add_test(&tests, space_to_depth);
    return test_program_run(&tests);
}
