/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the attention of a decoder token by token, with key and value caches that are updated in place.
 *
 *     decoder
 *
 * The model is one GroupQueryAttention of com.microsoft: two query heads share one key and value head of
 * eight elements, over at most 16 tokens.
 * Shows: one tensor as input and output, so that a run adds a row to each cache and copies nothing. */
#include <dqrun/dqrun.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 2, SIZE = 8, LONGEST = 16, TOKENS = 5 };

static dq_error err;

/* Prints the message and ends the program when a call failed; a program of some lines may do so. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        if ((call) != DQ_OK)                                                                                 \
            return fprintf(stderr, "decoder: %s\n", err.message), (int)err.status;                           \
    } while (0)

static dq_status build(dq_model **model)
{
    static const int64_t query[3] = {1, 1, HEADS * SIZE}, row[3] = {1, 1, SIZE},
                         cache[4] = {1, 1, LONGEST, SIZE};
    static const int64_t one[1] = {1};
    static const char *const inputs[] = {"query",      "key",           "value",       "past_key",
                                         "past_value", "last_position", "total_length"};
    static const char *const outputs[] = {"output", "present_key", "present_value"};
    dq_attribute attributes[2] = {DQ_ATTRIBUTE_INIT, DQ_ATTRIBUTE_INIT};
    dq_node_spec node = DQ_NODE_SPEC_INIT;
    dq_builder *b = NULL;
    attributes[0].name = "num_heads";
    attributes[1].name = "kv_num_heads";
    attributes[0].kind = attributes[1].kind = DQ_ATTRIBUTE_INT;
    attributes[0].i = HEADS;
    attributes[1].i = 1;
    node.domain = "com.microsoft";
    node.op_type = "GroupQueryAttention";
    node.input_count = 7;
    node.inputs = inputs;
    node.output_count = 3;
    node.outputs = outputs;
    node.attribute_count = 2;
    node.attributes = attributes;
    dq_status status = dq_builder_create("decoder", &b, &err);
    if (status != DQ_OK)
        return status;
    if (dq_builder_opset(b, "", 21, &err) || dq_builder_opset(b, "com.microsoft", 1, &err) ||
        dq_builder_input(b, "query", DQ_FLOAT, 3, query, NULL, &err) ||
        dq_builder_input(b, "key", DQ_FLOAT, 3, row, NULL, &err) ||
        dq_builder_input(b, "value", DQ_FLOAT, 3, row, NULL, &err) ||
        dq_builder_input(b, "past_key", DQ_FLOAT, 4, cache, NULL, &err) ||
        dq_builder_input(b, "past_value", DQ_FLOAT, 4, cache, NULL, &err) ||
        dq_builder_input(b, "last_position", DQ_INT32, 1, one, NULL, &err) ||
        dq_builder_input(b, "total_length", DQ_INT32, 1, one, NULL, &err) ||
        dq_builder_node(b, &node, NULL, &err) ||
        dq_builder_output(b, "output", DQ_FLOAT, 3, query, NULL, &err) ||
        dq_builder_output(b, "present_key", DQ_FLOAT, 4, cache, NULL, &err) ||
        dq_builder_output(b, "present_value", DQ_FLOAT, 4, cache, NULL, &err)) {
        dq_builder_free(b);
        return err.status;
    }
    return dq_builder_finish(b, NULL, model, &err);
}

int main(void)
{
    static float query[HEADS * SIZE], key[SIZE], value[SIZE], keys[LONGEST * SIZE], values[LONGEST * SIZE];
    static int32_t last, total;
    static const struct {
        const char *input;
        dq_dtype dtype;
        size_t rank;
        int64_t dims[4];
        void *data;
        size_t size;
        const char *output; /* that is written to the same memory */
    } bindings[] = {
        {"query", DQ_FLOAT, 3, {1, 1, HEADS * SIZE}, query, sizeof query, NULL},
        {"key", DQ_FLOAT, 3, {1, 1, SIZE}, key, sizeof key, NULL},
        {"value", DQ_FLOAT, 3, {1, 1, SIZE}, value, sizeof value, NULL},
        {"past_key", DQ_FLOAT, 4, {1, 1, LONGEST, SIZE}, keys, sizeof keys, "present_key"},
        {"past_value", DQ_FLOAT, 4, {1, 1, LONGEST, SIZE}, values, sizeof values, "present_value"},
        {"last_position", DQ_INT32, 1, {1}, &last, sizeof last, NULL},
        {"total_length", DQ_INT32, 1, {1}, &total, sizeof total, NULL},
    };
    enum { BINDINGS = sizeof bindings / sizeof bindings[0] };
    dq_tensor *tensors[BINDINGS] = {0};
    dq_model *model = NULL;
    dq_session *session = NULL;
    const dq_tensor *output = NULL;
    TRY(build(&model));
    TRY(dq_session_create(model, NULL, &session, &err));
    for (size_t i = 0; i < BINDINGS; i++) { /* once, before the first token */
        TRY(dq_tensor_wrap(bindings[i].dtype, bindings[i].rank, bindings[i].dims, bindings[i].data,
                           bindings[i].size, &tensors[i], &err));
        TRY(dq_session_set_input(session, bindings[i].input, tensors[i], &err));
        if (bindings[i].output)
            TRY(dq_session_set_output(session, bindings[i].output, tensors[i], &err));
    }
    for (int token = 0; token < TOKENS; token++) {
        for (int i = 0; i < SIZE; i++) { /* what the layers before would give */
            key[i] = query[i] = query[SIZE + i] = i == token ? 8.0f : 0.0f;
            value[i] = (float)(10 * token + i);
        }
        last = token;
        total = token + 1;
        TRY(dq_session_run(session, &err));
        TRY(dq_session_get_output(session, "output", &output, &err));
        /* The query is like its own key: most of the attention is on the newest token. */
        printf("token %d: output starts with %.3f, row %d of the value cache with %g\n", token,
               dq_tensor_value(output, 0), token, (double)values[token * SIZE]);
    }
    for (size_t i = 0; i < BINDINGS; i++)
        dq_tensor_free(tensors[i]);
    dq_session_free(session);
    dq_model_free(model);
    return 0;
}
