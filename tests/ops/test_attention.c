/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with scores of 0, so that a result is the plain mean of what a query sees. */
#include "harness.h"
#include "support/random.h"

#include <string.h>

/* Values 2 and 4 of two positions. */
static void begin_self(ops_case *c)
{
    ops_begin(c, "com.microsoft", "Attention", 1);
    ops_int(c, "num_heads", 1);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(2, 4));
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(0, 0, 1));
    ops_skip(c);
}

START_TEST(self)
{
    ops_case c;
    begin_self(&c);
    c.out_count = 2;
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(3, 3));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(2, 1, 1, 2, 1), OPS_VALUES(0, 0, 2, 4));
    ops_end(&c);

    begin_self(&c);
    ops_int(&c, "unidirectional", 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(2, 3));
    ops_end(&c);

    begin_self(&c);
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 2), OPS_VALUES(0, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 1, 1, 1), OPS_VALUES(0, 9));
    ops_must_refuse(
        &c, DQ_BAD_MODEL,
        "input 3 has shape [1,2], expected [1], [2], [1,3], [1,2,3] or a square for each of the batch");
    ops_end(&c);

    begin_self(&c);
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 3), OPS_VALUES(1, 0, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 1, 1, 1), OPS_VALUES(0, 9));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(6.5, 6.5));
    ops_end(&c);

    begin_self(&c);
    ops_int(&c, "do_rotary", 1);
    ops_must_refuse(
        &c, DQ_UNSUPPORTED,
        "attribute 'do_rotary' is 1: without tables of sines and cosines the rotation is not defined");
    ops_end(&c);
}
END_TEST

START_TEST(quantized)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QAttention", 1);
    ops_int(&c, "num_heads", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 1), OPS_VALUES(12, 255));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 3), OPS_VALUES(3, 3, -128));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 0, 1));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 1, 0.25));
    ops_in(&c, DQ_INT32, OPS_DIMS(1), OPS_VALUES(1)); /* one position is valid */
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(10));
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(3, 3, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 1), OPS_VALUES(-31, -31)); /* 2 * -128 / 8 + 1 */
    ops_end(&c);
}
END_TEST

/* Keys of floats are read where they stand, values of another type are not. */
START_TEST(values_of_another_type)
{
    ops_case c;
    ops_begin(&c, "", "Attention", 23);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(7, 9));
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(2, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(4));
    ops_end(&c);
}
END_TEST

START_TEST(many_heads)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "MultiHeadAttention", 1);
    ops_int(&c, "num_heads", 2);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, 1, 2), OPS_VALUES(0, 0));
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, 2, 2, 2, 1),
           OPS_VALUES(5, 1, 6, 2, 7, 3, 8, 6)); /* keys and values alternate */
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1, 1, 2), OPS_VALUES(2, 4));
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "MultiHeadAttention", 1);
    ops_int(&c, "num_heads", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2), NULL);
    ops_must_refuse(
        &c, DQ_BAD_MODEL,
        "input 0 has shape [1,1,2], expected batch, sequence, heads, 3, head size, as there are no keys");
    ops_end(&c);
}
END_TEST

/* One new position after `past` of 4 and 8, of which `length` count; values of two elements, the second 0. */
static void begin_group(ops_case *c, double length)
{
    ops_begin(c, "com.microsoft", "GroupQueryAttention", 1);
    ops_int(c, "num_heads", 2);
    ops_int(c, "kv_num_heads", 1);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 4), NULL);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 2), OPS_VALUES(1, 3));
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 2), OPS_VALUES(12, 0));
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(7, 7, 7, 7));
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(4, 0, 8, 0));
    ops_in(c, DQ_INT32, OPS_DIMS(1), (double[]){length});
    ops_in(c, DQ_INT32, OPS_SCALAR, (double[]){length + 1});
    c->out_count = 3;
    c->out_types[1] = c->out_types[2] = DQ_FLOAT;
}

START_TEST(group)
{
    ops_case c;
    begin_group(&c, 2);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 4), OPS_VALUES(8, 0, 8, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(1, 1, 3, 2), OPS_VALUES(7, 7, 7, 7, 1, 3));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 3, 2), OPS_VALUES(4, 0, 8, 0, 12, 0));
    ops_end(&c);

    begin_group(&c, 1); /* the cache is longer than its contents */
    ops_int(&c, "smooth_softmax", 1);
    ops_must_run(&c);
    double third = (double)((float)(1.0 / 3) * 4 + (float)(1.0 / 3) * 12);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 4), (double[]){third, 0, third, 0});
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(4, 0, 12, 0));
    ops_end(&c);

    begin_group(&c, 2);
    ops_int(&c, "local_window_size", 2);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 4), OPS_VALUES(10, 0, 10, 0));
    ops_end(&c);

    begin_group(&c, 3);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 5 says 4 positions for sequence 0, expected 1 to 3");
    ops_end(&c);
}
END_TEST

/* New rows that are counted, of one: the others are padding. */
static void begin_counted(ops_case *c, double length, double count)
{
    begin_group(c, length);
    for (int i = 0; i < 9; i++)
        ops_skip(c);
    ops_in(c, DQ_INT32, OPS_DIMS(1), (double[]){count});
}

/* The third position pushes the first one out of a cache of two, and of the window. */
START_TEST(sliding)
{
    ops_case c;
    begin_group(&c, 2);
    ops_int(&c, "sliding_window_cache", 1);
    ops_int(&c, "local_window_size", 2);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 4), OPS_VALUES(10, 0, 10, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(7, 7, 1, 3));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(8, 0, 12, 0));
    ops_end(&c);

    begin_group(&c, 2);
    ops_int(&c, "sliding_window_cache", 1);
    ops_int(&c, "local_window_size", 3);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has a sliding cache of 2 positions, expected a window and as many or more");
    ops_end(&c);
}
END_TEST

START_TEST(counted)
{
    ops_case c;
    begin_counted(&c, 1, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 4), OPS_VALUES(8, 0, 8, 0));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(4, 0, 12, 0));
    ops_end(&c);

    begin_counted(&c, 1, 2);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 16 says 2 new rows for sequence 0, expected 0 to 1");
    ops_end(&c);

    begin_counted(&c, 1, 0);
    ops_must_refuse(&c, DQ_BAD_INPUT,
                    "input 16 leaves a past of 2 positions for sequence 0: there are 2, and with 1 new rows "
                    "capacity for 2");
    ops_end(&c);

    begin_counted(&c, 1, 1);
    ops_int(&c, "causal", 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has query_seqlens, which need a past and causal attention");
    ops_end(&c);
}
END_TEST

START_TEST(rotary)
{
    ops_case c;
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        ops_begin(&c, "com.microsoft", "RotaryEmbedding", 1);
        ops_int(&c, "interleaved", interleaved);
        ops_in(&c, DQ_BFLOAT16, OPS_DIMS(1, 1, 4), OPS_VALUES(1, 2, 3, 4));
        ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
        ops_in(&c, DQ_BFLOAT16, OPS_DIMS(2, 2), OPS_VALUES(9, 9, 0, 1));
        ops_in(&c, DQ_BFLOAT16, OPS_DIMS(2, 2), OPS_VALUES(9, 9, 1, 0));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_BFLOAT16, OPS_DIMS(1, 1, 4),
                 interleaved ? OPS_VALUES(-2, 1, 3, 4) : OPS_VALUES(-3, 2, 1, 4));
        ops_end(&c);
    }
    ops_begin(&c, "com.microsoft", "RotaryEmbedding", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), NULL);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 leads to position 2, outside the 2 rows of cosines");
    ops_end(&c);
}
END_TEST

/* Two queries, three keys, one of them cached: the causal bound and a boolean mask leave the first query
 * none. */
START_TEST(causal_with_mask_and_cache)
{
    ops_case c;
    ops_begin(&c, "", "Attention", 24);
    ops_int(&c, "is_causal", 1);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(5, 7));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(2, 4));
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 3), OPS_VALUES(0, 0, 1, 1, 0, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(0, 2.5));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(1, 1, 3, 1), OPS_VALUES(3, 5, 7));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 3, 1), OPS_VALUES(1, 2, 4));
    ops_end(&c);

    ops_begin(&c, "", "Attention", 24);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), NULL);
    ops_skip(&c);
    ops_skip(&c);
    ops_skip(&c);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 6 holds 3, expected 0 to 2 (keys)");
    ops_end(&c);
}
END_TEST

static dq_tensor *in_fractions(ops_case *c, uint64_t *state, const int64_t *dims)
{
    dq_tensor *t = ops_in(c, DQ_FLOAT, 4, dims, NULL);
    for (size_t i = 0; i < t->count; i++)
        dq_data(t, float)[i] = (float)random_fraction(state);
    return t;
}

/* A group of ten heads, more than are computed together, gives the bits of ten heads with keys and values of
 * their own. There are more keys than a block of them has. */
START_TEST(heads_of_a_group)
{
    enum { HEADS = 20, KV_HEADS = 2, ROWS = 2, KEYS = 150, SIZE = 40, GROUP = HEADS / KV_HEADS };
    const int64_t few[] = {1, KV_HEADS, KEYS, SIZE}, many[] = {1, HEADS, KEYS, SIZE};
    const int64_t queries[] = {1, HEADS, ROWS, SIZE};
    uint64_t state = 5;
    ops_case shared, repeated;
    ops_begin(&shared, "", "Attention", 23);
    ops_begin(&repeated, "", "Attention", 23);
    const dq_tensor *q = in_fractions(&shared, &state, queries);
    memcpy(ops_in(&repeated, DQ_FLOAT, 4, queries, NULL)->data, q->data, q->size);
    for (int i = 0; i < 2; i++) {
        const dq_tensor *from = in_fractions(&shared, &state, few),
                        *to = ops_in(&repeated, DQ_FLOAT, 4, many, NULL);
        for (size_t head = 0; head < HEADS; head++)
            memcpy(dq_data(to, float) + head * KEYS * SIZE, dq_data(from, float) + head / GROUP * KEYS * SIZE,
                   KEYS * SIZE * sizeof(float));
    }
    ops_must_run(&shared);
    ops_must_run(&repeated);
    ck_assert_uint_eq(shared.out[0]->size, repeated.out[0]->size);
    ck_assert_mem_eq(shared.out[0]->data, repeated.out[0]->data, shared.out[0]->size);
    ops_end(&shared);
    ops_end(&repeated);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("attention", NULL, NULL);
    add_test(&tests, self);
    add_test(&tests, quantized);
    add_test(&tests, values_of_another_type);
    add_test(&tests, many_heads);
    add_test(&tests, group);
    add_test(&tests, sliding);
    add_test(&tests, counted);
    add_test(&tests, rotary);
    add_test(&tests, causal_with_mask_and_cache);
    add_test(&tests, heads_of_a_group);
    return test_program_run(&tests);
}
