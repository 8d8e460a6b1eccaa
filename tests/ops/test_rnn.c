/* RNN, GRU, LSTM: with Relu for activation the numbers are exact. */
#include "harness.h"

static void relus(ops_case *c, size_t count)
{
    static const dq_string names[6] = {{"Relu", 4}, {"Relu", 4}, {"relu", 4},
                                       {"Relu", 4}, {"Relu", 4}, {"Relu", 4}};
    c->attrs[c->node.attr_count++] =
        (dq_attr){.name = "activations", .kind = DQ_ATTR_STRINGS, .count = count, .u = {.strings = names}};
}

START_TEST(rnn_both_ways_with_lengths)
{
    ops_case c;
    ops_begin(&c, "", "RNN", 22); /* h' = x + 2 h + 1 (forward), x + h (backward); 3 steps, 2 sequences */
    c.out_count = 2;
    relus(&c, 2);
    ops_string(&c, "direction", "bidirectional");
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2, 1), OPS_VALUES(1, 10, 2, 20, 3, 30));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 1), OPS_VALUES(1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 1), OPS_VALUES(2, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0.25, 0.75, 0, 0));
    ops_in(&c, DQ_INT32, OPS_DIMS(2), OPS_VALUES(3, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3, 2, 2, 1), OPS_VALUES(2, 11, 6, 30, 7, 43, 5, 20, 18, 0, 3, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(2, 2, 1), OPS_VALUES(18, 43, 6, 30));
    ops_end(&c);
}
END_TEST

START_TEST(gru_resets_before_or_after)
{
    for (int64_t after = 0; after < 2; after++) {
        ops_case c;
        ops_begin(&c, "", "GRU", 14); /* z = 0.5, r = 2, biases of R: 4 on the hidden gate; h = 8 */
        c.out_count = 2;
        relus(&c, 2);
        ops_int(&c, "linear_before_reset", after);
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 1, 1), OPS_VALUES(1));
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 3, 1), OPS_VALUES(0.5, 2, 1));
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 3, 1), OPS_VALUES(0, 0, 1));
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 6), OPS_VALUES(0, 0, 0, 0, 0, 4));
        ops_skip(&c);
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 1, 1), OPS_VALUES(8));
        ops_must_run(&c);
        /* the hidden gate: 1 + 2 * 8 + 4, or 1 + 2 * (8 + 4) */
        ops_want(&c, 1, DQ_DOUBLE, OPS_DIMS(1, 1, 1), after ? OPS_VALUES(16.5) : OPS_VALUES(14.5));
        ops_end(&c);
    }
}
END_TEST

START_TEST(lstm_gates)
{
    ops_case c;
    ops_begin(&c, "", "LSTM", 22); /* gates i o f c of x = 1: 2, 3, 5, 7; peepholes 1, 1, 0; layout 1 */
    c.out_count = 3;
    relus(&c, 3);
    ops_int(&c, "layout", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), OPS_VALUES(2, 3, 5, 7));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), OPS_VALUES(0, 0, 0, 1));
    ops_skip(&c);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), OPS_VALUES(10));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(1, 1, 0));
    ops_must_run(&c);
    /* i = 2 + 10, c = 5 * 10 + 12 * (7 + 1) = 146, o = 3 + 146, h = 149 * 146 */
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(21754));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 1), OPS_VALUES(146));
    ops_end(&c);

    ops_begin(&c, "", "LSTM", 7);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape 1x3x1, wanted 1x4x1");
    ops_end(&c);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("RNN, GRU, LSTM");
    tcase_add_test(tests, rnn_both_ways_with_lengths);
    tcase_add_test(tests, gru_resets_before_or_after);
    tcase_add_test(tests, lstm_gates);
    return ops_main(tests);
}
