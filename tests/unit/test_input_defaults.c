/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs with defaults: constants to fusion until a run is given another value, in that session or in another
 * one of the model. */
#include "public.h"

enum { K = 4, N = 3 };

static dq_model *model;
static bool fused; /* the last run */

static void add_constant(dq_builder *b, const char *name, dq_dtype dtype, size_t rank, const int64_t *dims,
                         const void *bytes)
{
    dq_tensor *t = tensor_of(dtype, rank, dims, bytes);
    must(dq_builder_initializer(b, name, t, &err));
    dq_tensor_free(t);
}

/* Codes x and w, of scales sx and 2 sw, multiplied and quantized: with the defaults of both scales, which are
 * 1 and 0.5, to the sums. The weights' scale is computed. */
static void build(void)
{
    static const struct {
        const char *op, *in[2], *out;
    } nodes[] = {{"DequantizeLinear", {"x", "sx"}, "xr"},
                 {"Mul", {"sw", "two"}, "scale"},
                 {"DequantizeLinear", {"w", "scale"}, "wr"},
                 {"MatMul", {"xr", "wr"}, "m"},
                 {"QuantizeLinear", {"m", "sy"}, "y"}};
    static const int8_t w[K * N] = {1, 2, 3, 0, 1, 2, 1, 0, 1, 3, 2, 1};
    dq_builder *b = NULL;
    must(dq_builder_create("defaults", &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    must(dq_builder_input(b, "x", DQ_UINT8, 2, (int64_t[]){1, K}, NULL, &err));
    must(dq_builder_input(b, "sx", DQ_FLOAT, 0, NULL, NULL, &err));
    must(dq_builder_input(b, "sw", DQ_FLOAT, 0, NULL, NULL, &err));
    add_constant(b, "sx", DQ_FLOAT, 0, NULL, &(float){1});
    add_constant(b, "sw", DQ_FLOAT, 0, NULL, &(float){0.5f});
    add_constant(b, "two", DQ_FLOAT, 0, NULL, &(float){2});
    add_constant(b, "sy", DQ_FLOAT, 0, NULL, &(float){1});
    add_constant(b, "w", DQ_INT8, 2, (int64_t[]){K, N}, w);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        const char *out = nodes[i].out;
        must(add_node(b, "", nodes[i].op, NULL, 2, nodes[i].in, 1, &out, 0, NULL, &err));
    }
    must(dq_builder_output(b, "y", DQ_UINT8, 2, (int64_t[]){1, N}, NULL, &err));
    must(dq_builder_finish(b, NULL, &model, &err));
}

static void trace(void *arg, const dq_trace_event *event)
{
    (void)arg;
    fused = fused || strncmp(event->op, "QLinearMatMul", strlen("QLinearMatMul")) == 0;
}

static dq_session *begin(bool no_fuse)
{
    dq_session *session = NULL;
    const dq_session_options options = {
        .size = sizeof(dq_session_options), .threads = 1, .no_fuse = no_fuse, .trace = trace};
    must(dq_session_create(model, &options, &session, &err));
    return session;
}

/* A run with these scales, 0 for the default: each result is `factor` times that of the defaults. */
static void run(dq_session *session, float sx, float sw, int factor, bool wanted_fused)
{
    static const uint8_t codes[K] = {1, 2, 3, 1}, expected[N] = {1 + 3 + 3, 2 + 2 + 2, 3 + 4 + 3 + 1};
    dq_tensor *x = tensor_of(DQ_UINT8, 2, (int64_t[]){1, K}, codes);
    dq_tensor *scales[2] = {sx != 0 ? tensor_of(DQ_FLOAT, 0, NULL, &sx) : NULL,
                            sw != 0 ? tensor_of(DQ_FLOAT, 0, NULL, &sw) : NULL};
    fused = false;
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_set_input(session, "sx", scales[0], &err));
    must(dq_session_set_input(session, "sw", scales[1], &err));
    must(dq_session_run(session, &err));
    const dq_tensor *y = NULL;
    must(dq_session_get_output(session, "y", &y, &err));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(((const uint8_t *)dq_tensor_data(y))[i], factor * expected[i]);
    ck_assert(fused == wanted_fused);
    dq_tensor_free(x);
    dq_tensor_free(scales[0]);
    dq_tensor_free(scales[1]);
}

/* Sessions that feed a default and sessions that do not, in turns. */
START_TEST(fusion_takes_them_until_they_are_fed)
{
    build();
    dq_session *a = begin(false), *b = begin(false), *plain = begin(true);
    run(a, 0, 0, 1, true);
    run(b, 0, 0, 1, true);
    run(plain, 0, 0, 1, false);
    run(b, 0, 1, 2, false);
    run(b, 0, 0, 1, false);
    run(a, 0, 0, 1, true);
    run(b, 2, 1, 4, false);
    run(a, 2, 0, 2, false);
    run(a, 3, 1, 6, false);
    run(plain, 2, 0, 2, false);
    run(plain, 0, 0, 1, false);
    dq_session *c = begin(false);
    run(c, 0, 0, 1, false);
    run(c, 0, 1, 2, false);
    dq_session_free(a);
    dq_session_free(b);
    dq_session_free(c);
    dq_session_free(plain);
    dq_model_free(model);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("input_defaults", NULL, NULL);
    add_test(&tests, fusion_takes_them_until_they_are_fed);
    return test_program_run(&tests);
}
