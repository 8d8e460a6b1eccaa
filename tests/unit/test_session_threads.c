/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on many threads share one model: each thread creates, runs and frees sessions of changing shapes
 * at the same time. The first one packs the weights and fuses the nodes. */
#include "public.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { K = 48, N = 40, THREADS = 4, ROUNDS = 12, MAX_ROWS = 8 /* more than a session keeps plans of */ };

static void add_constant(dq_builder *b, const char *name, dq_dtype dtype, size_t rank, const int64_t *dims,
                         const void *bytes)
{
    dq_tensor *t = tensor_of(dtype, rank, dims, bytes);
    must(dq_builder_initializer(b, name, t, &err));
    dq_tensor_free(t);
}

/* x[M,K] quantized, dequantized, times dequantized weights, quantized, Relu, dequantized: what fusion is for.
 */
static dq_model *build(void)
{
    dq_builder *b = NULL;
    dq_model *model = NULL;
    int8_t w[K * N];
    for (int i = 0; i < K * N; i++)
        w[i] = (int8_t)(i * 37 % 251 - 125);
    must(dq_builder_create("shared", &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    must(dq_builder_input(b, "x", DQ_FLOAT, 2, (int64_t[]){-1, K}, NULL, &err));
    add_constant(b, "s", DQ_FLOAT, 0, NULL, &(float){0.05f});
    add_constant(b, "z", DQ_UINT8, 0, NULL, &(uint8_t){120});
    add_constant(b, "sw", DQ_FLOAT, 0, NULL, &(float){0.01f});
    add_constant(b, "zw", DQ_INT8, 0, NULL, &(int8_t){0});
    add_constant(b, "sy", DQ_FLOAT, 0, NULL, &(float){0.3f});
    add_constant(b, "w", DQ_INT8, 2, (int64_t[]){K, N}, w);
    static const struct {
        const char *op, *in[3], *out;
    } nodes[] = {{"QuantizeLinear", {"x", "s", "z"}, "xq"},
                 {"DequantizeLinear", {"xq", "s", "z"}, "xr"},
                 {"DequantizeLinear", {"w", "sw", "zw"}, "wr"},
                 {"MatMul", {"xr", "wr"}, "m"},
                 {"Relu", {"m"}, "r"},
                 {"QuantizeLinear", {"r", "sy", "z"}, "yq"},
                 {"DequantizeLinear", {"yq", "sy", "z"}, "y"}};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        const char *out = nodes[i].out;
        size_t inputs = !nodes[i].in[1] ? 1 : !nodes[i].in[2] ? 2 : 3;
        must(add_node(b, "", nodes[i].op, NULL, inputs, nodes[i].in, 1, &out, 0, NULL, &err));
    }
    must(dq_builder_output(b, "y", DQ_FLOAT, 2, (int64_t[]){-1, N}, NULL, &err));
    must(dq_builder_finish(b, NULL, &model, &err));
    return model;
}

typedef struct work {
    dq_model *model;
    const float *x, *expected; /* MAX_ROWS rows */
    unsigned number;
    atomic_int *faults;
} work;

/* One session over all numbers of rows, there and back; the number of faults. */
static int use_session(const work *w, unsigned round)
{
    dq_session *session = NULL;
    dq_error own;
    int faults = 0;
    const dq_session_options options = {.size = sizeof(dq_session_options),
                                        .threads = 1 + (w->number + round) % 2};
    if (dq_session_create(w->model, &options, &session, &own) != DQ_OK)
        return 1;
    for (int64_t i = 0; i < 2 * MAX_ROWS; i++) {
        const int64_t rows = i < MAX_ROWS ? i + 1 : 2 * MAX_ROWS - i;
        dq_tensor *x = NULL;
        const dq_tensor *y = NULL;
        size_t size = (size_t)rows * K * sizeof(float);
        if (dq_tensor_wrap(DQ_FLOAT, 2, (int64_t[]){rows, K}, (void *)(uintptr_t)w->x, size, &x, &own) !=
                DQ_OK ||
            dq_session_set_input(session, "x", x, &own) != DQ_OK || dq_session_run(session, &own) != DQ_OK ||
            dq_session_get_output(session, "y", &y, &own) != DQ_OK ||
            memcmp(dq_tensor_data(y), w->expected, dq_tensor_size(y)) != 0)
            faults++;
        dq_session_set_input(session, "x", NULL, &own);
        dq_tensor_free(x);
    }
    dq_session_free(session);
    return faults;
}

static void *use_model(void *arg)
{
    const work *w = arg;
    for (unsigned round = 0; round < ROUNDS; round++)
        atomic_fetch_add(w->faults, use_session(w, round));
    return NULL;
}

START_TEST(sessions_on_many_threads_share_a_model)
{
    static float x[MAX_ROWS * K], expected[MAX_ROWS * N];
    for (int i = 0; i < MAX_ROWS * K; i++)
        x[i] = (float)(i * 29 % 97) * 0.1f - 4;
    /* what one session alone gives */
    dq_model *alone = build();
    dq_session *session = NULL;
    const dq_tensor *y = NULL;
    dq_tensor *in = tensor_of(DQ_FLOAT, 2, (int64_t[]){MAX_ROWS, K}, x);
    must(dq_session_create(alone, NULL, &session, &err));
    must(dq_session_set_input(session, "x", in, &err));
    must(dq_session_run(session, &err));
    must(dq_session_get_output(session, "y", &y, &err));
    memcpy(expected, dq_tensor_data(y), sizeof expected);
    dq_session_free(session);
    dq_model_free(alone);
    dq_tensor_free(in);

    dq_model *model = build();
    atomic_int faults = 0;
    pthread_t threads[THREADS];
    work works[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        works[i] = (work){model, x, expected, i, &faults};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_model, &works[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    dq_model_free(model);
    ck_assert_int_eq(faults, 0);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("session_threads", NULL, NULL);
    add_test(&tests, sessions_on_many_threads_share_a_model);
    return test_program_run(&tests);
}
