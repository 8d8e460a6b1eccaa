/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

/* Gates of 1/2, so that the cell is half of its past and half of what relu lets through; the state half of
 * the cell. */
static void begin(ops_case *c, const double *x, const double *lengths)
{
    static const dq_string names[] = {{"HardSigmoid", 11}, {"Relu", 4}, {"Relu", 4}};
    static const double weights[] = {5, 5, 5, 6}, unit[] = {1}, zero[] = {5}, cell[] = {8, 64};
    ops_begin(c, "com.microsoft", "DynamicQuantizeLSTM", 1);
    c->attrs[c->node.attr_count++] =
        (dq_attr){.name = "activations", .kind = DQ_ATTR_STRINGS, .count = 3, .u.strings = names};
    ops_in(c, DQ_FLOAT, OPS_DIMS(2, 2, 1), x);
    ops_in(c, DQ_UINT8, OPS_DIMS(1, 1, 4), weights); /* 1 for the candidate, else 0 */
    ops_in(c, DQ_UINT8, OPS_DIMS(1, 1, 4), OPS_VALUES(5, 5, 5, 5));
    ops_skip(c);
    if (lengths)
        ops_in(c, DQ_INT32, OPS_DIMS(2), lengths);
    else
        ops_skip(c);
    ops_skip(c);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 2, 1), cell);
    ops_skip(c);
    for (int i = 0; i < 2; i++) {
        ops_in(c, DQ_FLOAT, OPS_DIMS(1), unit);
        ops_in(c, DQ_UINT8, OPS_DIMS(1), zero);
    }
    c->out_count = 3;
}

START_TEST(steps)
{
    ops_case c;
    begin(&c, OPS_VALUES(0, 255, 100, -0.0), NULL); /* a scale of 1: the codes are the values */
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2, 1), OPS_VALUES(2, 79.75, 26, 39.875));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(26, 39.875));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(52, 79.75));
    ops_end(&c);
}
END_TEST

START_TEST(lengths)
{
    ops_case c;
    begin(&c, OPS_VALUES(0, 255, 100, 7), OPS_VALUES(2, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2, 1), OPS_VALUES(2, 79.75, 26, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(26, 79.75));
    ops_end(&c);

    /* steps after the longest sequence do not count for the range */
    begin(&c, OPS_VALUES(0, 255, 1e9, 1e9), OPS_VALUES(1, 1));
    ops_string(&c, "direction", "reverse");
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2, 1), OPS_VALUES(2, 79.75, 0, 0));
    ops_end(&c);

    begin(&c, OPS_VALUES(0, 255, 0, 0), OPS_VALUES(1, 3));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 4 has length 3 for sequence 1, expected 0 to 2");
    ops_end(&c);
}
END_TEST

START_TEST(refused)
{
    ops_case c;
    begin(&c, OPS_VALUES(0, 0, 0, 0), NULL);
    ops_int(&c, "hidden_size", 2);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has 1 rows, expected 2, attribute 'hidden_size'");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("dynamic_quantize_lstm", NULL, NULL);
    add_test(&tests, steps);
    add_test(&tests, lengths);
    add_test(&tests, refused);
    return test_program_run(&tests);
}
