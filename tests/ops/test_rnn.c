/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU, LSTM: with Relu for activation the numbers are exact. */
#include "harness.h"
#include "support/random.h"

#include <math.h>

static void relus(ops_case *c, size_t count)
{
    static const dq_string names[6] = {{"Relu", 4}, {"Relu", 4}, {"relu", 4},
                                       {"Relu", 4}, {"Relu", 4}, {"Relu", 4}};
    c->attrs[c->node.attr_count++] =
        (dq_attr){.name = "activations", .kind = DQ_ATTR_STRINGS, .count = count, .u = {.strings = names}};
}

START_TEST(rnn_both_ways_with_lengths)
{
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_BFLOAT16, DQ_DOUBLE};
    for (int i = 0; i < 4; i++) {
        const dq_dtype type = types[i];
        ops_case c;
        ops_begin(&c, "", "RNN", 22); /* h' = x + 2 h + 1 (forward), x + h (backward); 3 steps, 2 sequences */
        c.out_count = 2;
        relus(&c, 2);
        ops_string(&c, "direction", "bidirectional");
        ops_in(&c, type, OPS_DIMS(3, 2, 1), OPS_VALUES(1, 10, 2, 20, 3, 30));
        ops_in(&c, type, OPS_DIMS(2, 1, 1), OPS_VALUES(1, 1));
        ops_in(&c, type, OPS_DIMS(2, 1, 1), OPS_VALUES(2, 1));
        ops_in(&c, type, OPS_DIMS(2, 2), OPS_VALUES(0.25, 0.75, 0, 0));
        ops_in(&c, DQ_INT32, OPS_DIMS(2), OPS_VALUES(3, 2));
        ops_must_run(&c);
        ops_want(&c, 0, type, OPS_DIMS(3, 2, 2, 1), OPS_VALUES(2, 11, 6, 30, 7, 43, 5, 20, 18, 0, 3, 0));
        ops_want(&c, 1, type, OPS_DIMS(2, 2, 1), OPS_VALUES(18, 43, 6, 30));
        ops_end(&c);
    }
}
END_TEST

START_TEST(gru_resets_before_or_after)
{
    for (int64_t after = 0; after < 2; after++) {
        ops_case c;
        ops_begin(&c, "", "GRU",
                  after ? 3 : 1); /* z = 0.5, r = 2, biases of R: 4 on the hidden gate; h = 8 */
        c.out_count = 2;
        relus(&c, 2);
        if (after)
            ops_int(&c, "linear_before_reset", 1);
        else
            ops_string(&c, "direction", "foward"); /* GRU-1's default */
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

    ops_begin(&c, "", "LSTM", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [1,3,1], expected [1,4,1]");
    ops_end(&c);
}
END_TEST

/* Numbers in [-0.5, 0.5), the same for every type. */
static dq_tensor *made_up(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t seed)
{
    enum { MAX = 16384 };
    static double values[MAX];
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    ck_assert_uint_le(count, MAX);
    for (size_t i = 0; i < count; i++)
        values[i] = random_fraction(&seed);
    return ops_in(c, dtype, rank, dims, values);
}

typedef struct net {
    const char *name;
    int64_t gates, batch, hidden;
    bool layout, both, lengths, variant; /* variant: GRU resets after; LSTM has peepholes and is coupled */
} net;

static void run_net(ops_case *c, const net *w, dq_dtype dtype)
{
    enum { STEPS = 4, INPUT = 7 };
    static const double lengths[] = {2, 4, 0, 3, 1};
    int64_t d = 1 + w->both, b = w->batch, h = w->hidden, g = w->gates;
    ops_begin(c, "", w->name, 22);
    c->out_count = g == 4 ? 3 : 2;
    ops_int(c, "layout", w->layout);
    ops_string(c, "direction", w->both ? "bidirectional" : "reverse");
    ops_float(c, "clip", 0.75F);
    ops_int(c, g == 4 ? "input_forget" : "linear_before_reset", w->variant);
    made_up(c, dtype, 3, w->layout ? (int64_t[]){b, STEPS, INPUT} : (int64_t[]){STEPS, b, INPUT}, 1);
    made_up(c, dtype, OPS_DIMS(d, g * h, INPUT), 2);
    made_up(c, dtype, OPS_DIMS(d, g * h, h), 3);
    made_up(c, dtype, OPS_DIMS(d, 2 * g * h), 4);
    if (w->lengths)
        ops_in(c, DQ_INT32, OPS_DIMS(b), lengths);
    else
        ops_skip(c);
    made_up(c, dtype, 3, w->layout ? (int64_t[]){b, d, h} : (int64_t[]){d, b, h}, 5);
    if (g == 4)
        made_up(c, dtype, 3, w->layout ? (int64_t[]){b, d, h} : (int64_t[]){d, b, h}, 6);
    if (g == 4 && w->variant)
        made_up(c, dtype, OPS_DIMS(d, 3 * h), 7);
    ops_must_run(c);
}

/* Floats have a way of their own: it computes what double does. */
START_TEST(floats_as_doubles)
{
    static const net kinds[] = {
        {.name = "RNN", .gates = 1}, {.name = "GRU", .gates = 3}, {.name = "LSTM", .gates = 4}};
    static const int64_t batches[] = {1, 2, 5}, sizes[] = {1, 11, 16, 40};
    for (int i = 0; i < 3 * 16; i++) {
        net w = kinds[i % 3];
        w.batch = batches[i / 3 % 5 % 3];
        w.hidden = sizes[i / 3 % 7 % 4];
        int bits = i / 3;
        w.layout = bits & 1;
        w.both = bits >> 1 & 1;
        w.lengths = bits >> 2 & 1;
        w.variant = bits >> 3 & 1;
        ops_case single, wide;
        run_net(&single, &w, DQ_FLOAT);
        run_net(&wide, &w, DQ_DOUBLE);
        for (uint32_t o = 0; o < single.out_count; o++)
            for (size_t k = 0; k < wide.out[o]->count; k++) {
                double got = dq_tensor_get_double(single.out[o], k),
                       expected = dq_tensor_get_double(wide.out[o], k);
                ck_assert_msg(fabs(got - expected) <= 2e-6,
                              "%s case %d output %u element %zu: %g, expected %g", w.name, i, o, k, got,
                              expected);
            }
        ops_end(&single);
        ops_end(&wide);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("rnn", NULL, NULL);
    add_test(&tests, rnn_both_ways_with_lengths);
    add_test(&tests, gru_resets_before_or_after);
    add_test(&tests, lstm_gates);
    add_test(&tests, floats_as_doubles);
    return test_program_run(&tests);
}
