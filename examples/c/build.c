/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a model from code, runs it, and saves it.
 *
 *     build [OUT.onnx]
 *
 * The model quantizes four values to uint8 and multiplies them by a quantized matrix:
 * x -> QuantizeLinear -> QLinearMatMul -> DequantizeLinear -> y.
 * Shows: dq_builder, initializers, generated names. */
#include <dqrun/dqrun.h>

#include <stdio.h>

static dq_error err;
static dq_status status; /* of the first call that failed; what follows it does nothing */

static void check(dq_status result)
{
    if (status == DQ_OK)
        status = result;
}

static void initializer(dq_builder *b, const char *name, dq_dtype dtype, size_t rank, const int64_t *dims,
                        const void *data, size_t size)
{
    dq_tensor *tensor = NULL;
    if (status != DQ_OK)
        return;
    check(dq_tensor_wrap_const(dtype, rank, dims, data, size, &tensor, &err));
    if (status == DQ_OK)
        check(dq_builder_initializer(b, name, tensor, &err)); /* copies it */
    dq_tensor_free(tensor);
}

/* Adds a node of one output, and returns the output's generated name. */
static const char *node(dq_builder *b, const char *op_type, size_t count, const char *const *inputs)
{
    const char *output = NULL;
    dq_node_spec spec = DQ_NODE_SPEC_INIT;
    if (status != DQ_OK)
        return NULL;
    spec.op_type = op_type;
    spec.input_count = count;
    spec.inputs = inputs;
    spec.output_count = 1;
    check(dq_builder_node(b, &spec, &output, &err));
    return output;
}

static dq_model *build(void)
{
    static const float x_scale = 0.5f, w_scale = 0.25f, y_scale = 1;
    static const uint8_t x_zero = 128, y_zero = 100;
    static const int8_t w_zero = 0, w[8] = {1, 2, 3, 4, -1, -2, -3, -4};
    static const int64_t x_dims[2] = {-1, 4}, w_dims[2] = {4, 2}, y_dims[2] = {-1, 2};
    static const char *const symbols[2] = {"N", NULL};
    dq_builder *b = NULL;
    dq_model *model = NULL;
    check(dq_builder_create("example", &b, &err));
    if (status == DQ_OK)
        check(dq_builder_opset(b, "", 21, &err));
    if (status == DQ_OK)
        check(dq_builder_input(b, "x", DQ_FLOAT, 2, x_dims, symbols, &err));
    initializer(b, "x_scale", DQ_FLOAT, 0, NULL, &x_scale, sizeof x_scale);
    initializer(b, "x_zero_point", DQ_UINT8, 0, NULL, &x_zero, sizeof x_zero);
    initializer(b, "w", DQ_INT8, 2, w_dims, w, sizeof w);
    initializer(b, "w_scale", DQ_FLOAT, 0, NULL, &w_scale, sizeof w_scale);
    initializer(b, "w_zero_point", DQ_INT8, 0, NULL, &w_zero, sizeof w_zero);
    initializer(b, "y_scale", DQ_FLOAT, 0, NULL, &y_scale, sizeof y_scale);
    initializer(b, "y_zero_point", DQ_UINT8, 0, NULL, &y_zero, sizeof y_zero);
    const char *quantize[] = {"x", "x_scale", "x_zero_point"};
    const char *q = node(b, "QuantizeLinear", 3, quantize);
    const char *multiply[] = {q,         "x_scale",      "x_zero_point", "w",
                              "w_scale", "w_zero_point", "y_scale",      "y_zero_point"};
    const char *product = node(b, "QLinearMatMul", 8, multiply);
    const char *dequantize[] = {product, "y_scale", "y_zero_point"};
    const char *y = node(b, "DequantizeLinear", 3, dequantize);
    if (status == DQ_OK)
        check(dq_builder_output(b, y, DQ_FLOAT, 2, y_dims, symbols, &err));
    if (status == DQ_OK)
        check(dq_builder_finish(b, NULL, &model, &err)); /* frees the builder */
    else
        dq_builder_free(b);
    return model;
}

int main(int argc, char **argv)
{
    static const float x[2][4] = {{1, 2, 3, 4}, {-0.5f, 0.5f, 10, -10}};
    static const int64_t dims[2] = {2, 4};
    dq_session *session = NULL;
    dq_tensor *input = NULL;
    const dq_tensor *y = NULL;
    dq_model *model = build();
    if (status == DQ_OK)
        check(dq_session_create(model, NULL, &session, &err));
    if (status == DQ_OK)
        check(dq_tensor_wrap_const(DQ_FLOAT, 2, dims, x, sizeof x, &input, &err));
    if (status == DQ_OK)
        check(dq_session_set_input(session, "x", input, &err));
    if (status == DQ_OK)
        check(dq_session_run(session, &err));
    if (status == DQ_OK)
        check(dq_session_get_output(session, NULL, &y, &err));
    for (size_t i = 0; status == DQ_OK && i < dq_tensor_count(y); i++)
        printf("y[%zu,%zu] = %g\n", i / 2, i % 2, dq_tensor_value(y, i));
    if (status == DQ_OK && argc > 1)
        check(dq_model_save(model, argv[1], &err));
    if (status != DQ_OK)
        fprintf(stderr, "build: %s: %s\n", dq_status_name(status), err.message);
    dq_session_free(session);
    dq_model_free(model);
    dq_tensor_free(input);
    return (int)status;
}
