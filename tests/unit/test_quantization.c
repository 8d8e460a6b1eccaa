/* SPDX-License-Identifier: Apache-2.0 */
/* src/api/quantization.c: dq_value_quantization over every kind of operator that tells a scale or a zero
 * point. */
#include "small_model.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX = 24 };

/* A node, the value that is asked for, and the answer.
 *
 * `ins`: an operand each, named a0, a1 … "q": uint8 input of 4x4; "w", "w3": uint8 initializers of 4x4,
 * 2x4x4; "f": float input; "s", "s4", "s24": float initializers of so many elements in each dimension; "sv":
 * a float input that holds one; "su": one of any shape; "z", "z4", "z24": uint8 ones; "-": left out. Outputs
 * are y0, y1 … */
typedef struct sample {
    const char *domain, *op, *ins;
    size_t outs;
    const char *attrs, *value, *scale, *zero_point; /* "" for none; scale NULL: not quantized */
    dq_granularity granularity;
    int64_t axis, block_size;
} sample;

#define MS "com.microsoft"

static const sample samples[] = {
    {"", "QuantizeLinear", "f,s,z", 1, "", "y0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {"", "QuantizeLinear", "f,s", 1, "", "y0", "a1", "", DQ_PER_TENSOR, 0, 0},
    {"", "QuantizeLinear", "f,s4,z4", 1, "axis=0", "y0", "a1", "a2", DQ_PER_AXIS, 0, 0},
    {"", "QuantizeLinear", "f,s4,z4", 1, "", "y0", "a1", "a2", DQ_PER_AXIS, 1, 0},
    {"", "QuantizeLinear", "f,s24,z24", 1, "axis=0,block_size=2", "y0", "a1", "a2", DQ_PER_BLOCK, 0, 2},
    {"", "QuantizeLinear", "f,sv", 1, "", "y0", "a1", "", DQ_PER_TENSOR, 0, 0},
    {"", "QuantizeLinear", "f,su", 1, "", "y0", "a1", "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "QuantizeLinear", "f,s,z", 1, "", "a0", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "QuantizeLinear", "f,s,z", 1, "", "a1", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "QuantizeLinear", "f,s,z", 1, "", "a2", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "DequantizeLinear", "q,s,z", 1, "", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {"", "DequantizeLinear", "w,s4,z4", 1, "axis=-1", "a0", "a1", "a2", DQ_PER_AXIS, 1, 0},
    {"", "DequantizeLinear", "w,s24", 1, "axis=-2,block_size=2", "a0", "a1", "", DQ_PER_BLOCK, 0, 2},
    {"", "DequantizeLinear", "q,s,z", 1, "", "y0", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "DynamicQuantizeLinear", "f", 3, "", "y0", "y1", "y2", DQ_PER_TENSOR, 0, 0},
    {"", "DynamicQuantizeLinear", "f", 3, "", "y2", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "QLinearConv", "q,s,z,w,s4,z4,s,z", 1, "", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {"", "QLinearConv", "q,s,z,w,s4,z4,s,z", 1, "", "a3", "a4", "a5", DQ_PER_AXIS, 0, 0},
    {"", "QLinearConv", "q,s,z,w,s4,z4,s,z", 1, "", "y0", "a6", "a7", DQ_PER_TENSOR, 0, 0},
    {"", "QLinearMatMul", "q,s4,z4,w,s4,z4,s,z", 1, "", "a0", "a1", "a2", DQ_PER_AXIS, 0, 0},
    {"", "QLinearMatMul", "q,s,z,w3,s4,z4,s,z", 1, "", "a3", "a4", "a5", DQ_PER_AXIS, 2, 0},
    {"", "QLinearMatMul", "q,s,z,w,s4,z4,s,z", 1, "", "y0", "a6", "a7", DQ_PER_TENSOR, 0, 0},
    {"", "ConvInteger", "q,w,z,z4", 1, "", "a0", "", "a2", DQ_PER_TENSOR, 0, 0},
    {"", "ConvInteger", "q,w,z,z4", 1, "", "a1", "", "a3", DQ_PER_AXIS, 0, 0},
    {"", "ConvInteger", "q,w,z,z4", 1, "", "y0", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "MatMulInteger", "q,w", 1, "", "a1", "", "", DQ_PER_TENSOR, 0, 0},
    {"", "MatMulInteger", "q,w,z4,z4", 1, "", "a0", "", "a2", DQ_PER_AXIS, 0, 0},
    {"", "MatMulInteger", "q,w,z4,z4", 1, "", "a1", "", "a3", DQ_PER_AXIS, 1, 0},
    {MS, "QuantizeLinear", "f,s,z", 1, "", "y0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "DequantizeLinear", "q,s,z", 1, "", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearAdd", "q,s,z,w,s,z,s,z", 1, "", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearAdd", "q,s,z,w,s,z,s,z", 1, "", "a3", "a4", "a5", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearAdd", "q,s,z,w,s,z,s,z", 1, "", "y0", "a6", "a7", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearMul", "q,s,-,w,s,z,s,z", 1, "", "a0", "a1", "", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearAveragePool", "q,s,z,s,z", 1, "kernel_shape=[2]", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearAveragePool", "q,s,z,s,z", 1, "kernel_shape=[2]", "y0", "a3", "a4", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearConv", "q,s,z,w,s4,z4,s,z", 1, "channels_last=1", "a3", "a4", "a5", DQ_PER_AXIS, 0, 0},
    {MS, "QLinearGlobalAveragePool", "q,s,z,s,z", 1, "", "y0", "a3", "a4", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearLeakyRelu", "q,s,z,s,z", 1, "", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearReduceMean", "q,s,z,s,z", 1, "", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearReduceMean", "q,s,z,s,z", 1, "", "y0", "a3", "a4", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearSigmoid", "q,s,z,s,z", 1, "", "y0", "a3", "a4", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearSoftmax", "q,s,z,s,z", 1, "opset=13", "a0", "a1", "a2", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearSoftmax", "q,s,z,s,z", 1, "opset=13", "y0", "a3", "a4", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearWhere", "f,q,s,z,w,s,z,s,z", 1, "", "a1", "a2", "a3", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearWhere", "f,q,s,z,w,s,z,s,z", 1, "", "a4", "a5", "a6", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearWhere", "f,q,s,z,w,s,z,s,z", 1, "", "y0", "a7", "a8", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearConcat", "s,z,q,s,z,w,s,z", 1, "axis=0", "a2", "a3", "a4", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearConcat", "s,z,q,s,z,w,s,z", 1, "axis=0", "a5", "a6", "a7", DQ_PER_TENSOR, 0, 0},
    {MS, "QLinearConcat", "s,z,q,s,z,w,s,z", 1, "axis=0", "y0", "a0", "a1", DQ_PER_TENSOR, 0, 0},
    {MS, "QGemm", "q,s,z,w,s4,z4,-,s,z", 1, "", "a3", "a4", "a5", DQ_PER_AXIS, 1, 0},
    {MS, "QGemm", "q,s,z,w,s4,z4,-,s,z", 1, "transB=1", "a3", "a4", "a5", DQ_PER_AXIS, 0, 0},
    {MS, "QGemm", "q,s,z,w,s4,z4,-,s,z", 1, "", "y0", "a7", "a8", DQ_PER_TENSOR, 0, 0},
    {MS, "QAttention", "q,w,f,s,s4,-,z,z4", 1, "num_heads=2", "a0", "a3", "a6", DQ_PER_TENSOR, 0, 0},
    {MS, "QAttention", "q,w,f,s,s4,-,z,z4", 1, "num_heads=2", "a1", "a4", "a7", DQ_PER_AXIS, 1, 0},
    {MS, "DynamicQuantizeMatMul", "f,w,s4,z4", 1, "", "a1", "a2", "a3", DQ_PER_AXIS, 1, 0},
    {MS, "DynamicQuantizeMatMul", "f,w,s4,z4", 1, "", "a0", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
    {MS, "MatMulIntegerToFloat", "q,w,s,s4", 1, "", "a0", "a2", "", DQ_PER_TENSOR, 0, 0},
    {MS, "MatMulIntegerToFloat", "q,w,s,s4", 1, "", "a1", "a3", "", DQ_PER_AXIS, 1, 0},
    {MS, "MulInteger", "q,z,w,z", 1, "", "a0", "", "a1", DQ_PER_TENSOR, 0, 0},
    {MS, "MulInteger", "q,z,w,z", 1, "", "a2", "", "a3", DQ_PER_TENSOR, 0, 0},
    {MS, "DynamicQuantizeLSTM", "f,w3,w3,-,-,-,-,-,s2,z2,s24,z24", 1, "", "a1", "a8", "a9", DQ_PER_AXIS, 0,
     0},
    {MS, "DynamicQuantizeLSTM", "f,w3,w3,-,-,-,-,-,s2,z2,s24,z24", 1, "", "a2", "a10", "a11", DQ_PER_AXIS, 2,
     0},
    {MS, "QEmbedLayerNormalization", "q,-,w,w,-,w,w,-,s,s,-,s,s,z,z,-,z,z", 2, "", "a2", "a8", "a13",
     DQ_PER_TENSOR, 0, 0},
    {MS, "QEmbedLayerNormalization", "q,-,w,w,-,w,w,-,s,s,-,s,s,z,z,-,z,z", 2, "", "a6", "a12", "a17",
     DQ_PER_TENSOR, 0, 0},
    {MS, "QEmbedLayerNormalization", "q,w,w,w,w,w,w,-,s,s,s,s,s,z,z,z,z,z", 2, "", "a4", "a10", "a15",
     DQ_PER_TENSOR, 0, 0},
    {MS, "MatMulNBits", "f,w3,s24", 1, "K=128,N=2,block_size=32", "a1", "a2", "", DQ_PER_BLOCK, 1, 32},
    {MS, "MatMulNBits", "f,w3,s24,z4", 1, "K=128,N=2,block_size=32", "a1", "a2", "a3", DQ_PER_BLOCK, 1, 32},
    {MS, "MatMulBnb4", "f,w,s4", 1, "K=4,N=4,block_size=16,quant_type=1", "a1", "a2", "", DQ_PER_BLOCK, 0,
     16},
    {MS, "GatherBlockQuantized", "w,f,s24,z24", 1, "quantize_axis=0,block_size=16", "a0", "a2", "a3",
     DQ_PER_BLOCK, 0, 16},
    {MS, "GatherBlockQuantized", "w,f,s24,z24", 1, "", "a0", "a2", "a3", DQ_PER_BLOCK, 1, 128},
    {MS, "QMoE", "f,f,w3,s24,-,w3,s24", 1, "", "a2", "a3", "", DQ_PER_AXIS, 1, 0},
    {MS, "QMoE", "f,f,w3,s24,-,w3,s24,-,-,-,-,z,z", 1, "block_size=16", "a5", "a6", "a12", DQ_PER_BLOCK, 2,
     16},
    {MS, "GroupQueryAttention", "f,f,f,w,w,f,f,-,-,-,-,-,s,s4", 3, "num_heads=2,kv_num_heads=2", "a3", "a12",
     "", DQ_PER_TENSOR, 0, 0},
    {MS, "GroupQueryAttention", "f,f,f,w,w,f,f,-,-,-,-,-,s,s4", 3, "num_heads=2,kv_num_heads=2", "a4", "a13",
     "", DQ_PER_AXIS, 1, 0},
    {MS, "GroupQueryAttention", "f,f,f,w,w,f,f", 3, "num_heads=2,kv_num_heads=2", "a4", NULL, "",
     DQ_GRANULARITY_UNKNOWN, 0, 0},
    {"", "Add", "q,w", 1, "", "a0", NULL, "", DQ_GRANULARITY_UNKNOWN, 0, 0},
};

/* ---- Models of one node -------------------------------------------------------------------------------- */

static void initializer(const char *name, dq_dtype dtype, const char *digits)
{
    static float zeros[64];
    int64_t dims[4];
    size_t rank = 0;
    for (; digits[rank]; rank++)
        dims[rank] = digits[rank] - '0';
    constant(name, dtype, rank, dims, zeros);
}

static void operand(const char *what, const char *name)
{
    const int64_t square[] = {4, 4};
    if (strcmp(what, "q") == 0)
        input(name, DQ_UINT8, 2, square);
    else if (strcmp(what, "f") == 0)
        input(name, DQ_FLOAT, 2, square);
    else if (strcmp(what, "sv") == 0)
        input(name, DQ_FLOAT, 0, NULL);
    else if (strcmp(what, "su") == 0)
        input(name, DQ_FLOAT, DQ_ANY_SHAPE, NULL);
    else if (what[0] == 'w')
        initializer(name, DQ_UINT8, what[1] ? "244" : "44");
    else
        initializer(name, what[0] == 's' ? DQ_FLOAT : DQ_UINT8, what + 1);
}

/* "a=1,b=[2]": integers, and lists of one. */
static size_t read_attributes(const char *text, char names[][32], int64_t *values, dq_attribute *out)
{
    size_t count = 0;
    for (char copy[128], *rest = copy, *part = strcpy(copy, text); (part = strtok_r(rest, ",", &rest));
         count++) {
        const char *equals = strchr(part, '=');
        const bool list = equals[1] == '[';
        snprintf(names[count], 32, "%.*s", (int)(equals - part), part);
        values[count] = strtoll(equals + 1 + list, NULL, 10);
        out[count] = (dq_attribute){.size = sizeof *out,
                                    .name = names[count],
                                    .kind = list ? DQ_ATTRIBUTE_INTS : DQ_ATTRIBUTE_INT,
                                    .i = values[count],
                                    .ints = &values[count],
                                    .count = list};
    }
    return count;
}

static void build(const sample *s)
{
    char names[MAX][8], attr_names[8][32], copy[128], *rest = copy;
    const char *ins[MAX], *outs[] = {"y0", "y1", "y2"};
    int64_t values[8];
    dq_attribute attrs[8];
    size_t count = 0;
    begin();
    strcpy(copy, s->ins);
    for (const char *part; (part = strtok_r(rest, ",", &rest)); count++) {
        snprintf(names[count], sizeof *names, "a%zu", count);
        ins[count] = *part == '-' ? "" : names[count];
        if (*part != '-')
            operand(part, names[count]);
    }
    const size_t attr_count = read_attributes(s->attrs, attr_names, values, attrs);
    must(add_node(b, s->domain, s->op, "n", count, ins, s->outs, outs, attr_count, attrs, &err));
    output("y0");
    must(dq_builder_finish(b, NULL, &model, &err));
}

static void check_value(const dq_value *found, const char *expected)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (!*expected) {
        ck_assert_ptr_null(found);
        return;
    }
    ck_assert_ptr_nonnull(found);
    must(dq_value_describe(found, &info, &err));
    ck_assert_str_eq(info.name, expected);
}

START_TEST(each_operator_tells_its_values)
{
    const sample *s = &samples[_i];
    dq_quantization q = DQ_QUANTIZATION_INIT;
    dq_node_info n = DQ_NODE_INFO_INIT;
    build(s);
    must(dq_value_quantization(model, dq_model_find_value(model, s->value), &q, &err));
    ck_assert_msg(q.quantized == (s->scale != NULL), "%s %s: %s", s->op, s->ins, s->value);
    if (!s->scale) {
        ck_assert_ptr_null(q.node);
        return;
    }
    must(dq_node_describe(q.node, &n, &err));
    ck_assert_int_ne(n.since_version, 0); /* the sample passes the schema */
    check_value(q.scale, s->scale);
    check_value(q.zero_point, s->zero_point);
    ck_assert_msg(q.granularity == s->granularity && q.axis == s->axis && q.block_size == s->block_size,
                  "%s %s: %s has granularity %d, axis %d, block size %d", s->op, s->ins, s->value,
                  (int)q.granularity, (int)q.axis, (int)q.block_size);
    if (q.scale) {
        dq_value_info scale = DQ_VALUE_INFO_INIT;
        must(dq_value_describe(q.scale, &scale, &err));
        ck_assert_ptr_eq(q.scale_data, scale.initializer);
    }
}
END_TEST

/* The node that gives a value speaks before those that read it. */
START_TEST(the_producer_comes_first)
{
    dq_quantization q = DQ_QUANTIZATION_INIT;
    const char *outs[] = {"codes", "back"};
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    constant("one", DQ_FLOAT, 0, NULL, (float[]){1});
    constant("two", DQ_FLOAT, 0, NULL, (float[]){2});
    must(add_node(b, "", "DequantizeLinear", "dq", 2, (const char *[]){"codes", "two"}, 1, outs + 1, 0, NULL,
                  &err));
    must(add_node(b, "", "QuantizeLinear", "q", 2, (const char *[]){"x", "one"}, 1, outs, 0, NULL, &err));
    output("back");
    finish();
    must(dq_value_quantization(model, dq_model_find_value(model, "codes"), &q, &err));
    ck_assert_double_eq(dq_tensor_value(q.scale_data, 0), 1);
}
END_TEST

/* A Constant node is as good as an initializer. */
START_TEST(a_constant_node_gives_its_data)
{
    dq_quantization q = DQ_QUANTIZATION_INIT;
    const dq_attribute value = {
        .size = sizeof value, .name = "value", .kind = DQ_ATTRIBUTE_TENSOR, .tensor = row(1, (float[]){3})};
    const char *outs[] = {"scale", "y"};
    begin();
    input("x", DQ_UINT8, 1, (int64_t[]){2});
    must(add_node(b, "", "Constant", "c", 0, NULL, 1, outs, 1, &value, &err));
    must(add_node(b, "", "DequantizeLinear", "dq", 2, (const char *[]){"x", "scale"}, 1, outs + 1, 0, NULL,
                  &err));
    output("y");
    finish();
    must(dq_value_quantization(model, dq_model_find_value(model, "x"), &q, &err));
    ck_assert_double_eq(dq_tensor_value(q.scale_data, 0), 3);
    refused(dq_value_quantization(NULL, q.scale, &q, &err), DQ_INVALID_ARGUMENT,
            "dq_value_quantization: model is NULL");
    refused(dq_value_quantization(model, NULL, &q, &err), DQ_INVALID_ARGUMENT,
            "dq_value_quantization: value is NULL");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("quantization", NULL, tear_down);
    add_loop_test(&tests, each_operator_tells_its_values, 0, (int)(sizeof samples / sizeof *samples));
    add_test(&tests, the_producer_comes_first);
    add_test(&tests, a_constant_node_gives_its_data);
    return test_program_run(&tests);
}
