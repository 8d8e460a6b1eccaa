/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the scale and zero point of a value among the inputs and outputs of its producer and its readers.
 *
 * Most operators name them after the value: `x`, `x_scale`, `x_zero_point`. Tables list the exceptions. The
 * shape of the scale determines the granularity; an attribute or a second table determines the axis. */
#include "api/handles.h"
#include "api/structs.h"
#include "graph/views.h"

#include <ctype.h>
#include <string.h>

enum { NONE = -1 };

/* An operator with other names for the scale of a value. */
typedef struct exception {
    const char *domain, *op;
    bool output; /* The value is an output. */
    const char *value, *scale, *zero_point;
} exception;

static const exception exceptions[] = {
    {"com.microsoft", "GatherBlockQuantized", false, "data", "scales", "zero_points"},
    {"com.microsoft", "GroupQueryAttention", false, "past_key", "k_scale", NULL},
    {"com.microsoft", "GroupQueryAttention", false, "past_value", "v_scale", NULL},
    {"com.microsoft", "GroupQueryAttention", true, "present_key", "k_scale", NULL},
    {"com.microsoft", "GroupQueryAttention", true, "present_value", "v_scale", NULL},
    {"com.microsoft", "MatMulBnb4", false, "B", "absmax", NULL},
    {"com.microsoft", "MatMulNBits", false, "B", "scales", "zero_points"},
    {"com.microsoft", "QEmbedLayerNormalization", false, "word_embedding_quant", "word_embedding_scale",
     "word_embedding_zero_point"},
    {"com.microsoft", "QEmbedLayerNormalization", false, "position_embedding_quant",
     "position_embedding_scale", "position_embedding_zero_point"},
    {"com.microsoft", "QEmbedLayerNormalization", false, "gamma_quant", "gamma_scale", "gamma_zero_point"},
    {"com.microsoft", "QEmbedLayerNormalization", false, "beta_quant", "beta_scale", "beta_zero_point"},
    {"com.microsoft", "QMoE", false, "fc1_experts_weights", "fc1_scales", "fc1_zero_points"},
    {"com.microsoft", "QMoE", false, "fc2_experts_weights", "fc2_scales", "fc2_zero_points"},
    {"com.microsoft", "QMoE", false, "fc3_experts_weights", "fc3_scales", "fc3_zero_points"},
    {"onednn", "DynamicDequantize", false, "src", "scales", "zps"},
    {"onednn", "DynamicQuantize", true, "dst", "scales", "zps"},
};

/* The axis of several scales, if no attribute of the operator gives it. */
typedef struct axis_rule {
    const char *op, *value;
    int axis, block_axis; /* Less than 0: from the last axis. */
} axis_rule;

static const axis_rule axes[] = {
    {"ConvInteger", "w", 0, 0},
    {"DynamicQuantizeLSTM", "R", -1, 0},
    {"DynamicQuantizeLSTM", "W", -1, 0},
    {"DynamicQuantizeMatMul", "B", -1, 0},
    {"GroupQueryAttention", "past_key", -1, 0},
    {"GroupQueryAttention", "past_value", -1, 0},
    {"GroupQueryAttention", "present_key", -1, 0},
    {"GroupQueryAttention", "present_value", -1, 0},
    {"MatMulBnb4", "B", 0, 0},
    {"MatMulInteger", "A", -2, 0},
    {"MatMulInteger", "B", -1, 0},
    {"MatMulIntegerToFloat", "A", -2, 0},
    {"MatMulIntegerToFloat", "B", -1, 0},
    {"MatMulNBits", "B", 0, 1},
    {"QAttention", "weight", -1, 0},
    {"QGemm", "B", -1, 0},
    {"QLinearConv", "w", 0, 0},
    {"QLinearMatMul", "a", -2, 0},
    {"QLinearMatMul", "b", -1, 0},
    {"QLinearMatMul", "y", -2, 0},
    {"QMoE", "fc1_experts_weights", 1, 2},
    {"QMoE", "fc2_experts_weights", 1, 2},
    {"QMoE", "fc3_experts_weights", 1, 2},
};

/* A node that may determine the quantization of a value. */
typedef struct question {
    const dq_node *node;
    const dq_value *value;
    const char *formal; /* The formal of the value. */
    bool output;
} question;

/* Whether two formals have the same name, ignoring case: `X` and `x_scale` belong together. */
static bool same_name(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
            return false;
    return true;
}

static bool is_name(const char *formal, const char *value, const char *suffix)
{
    const size_t length = strlen(value);
    return strlen(formal) == length + strlen(suffix) && same_name(formal, value, length) &&
           strcmp(formal + length, suffix) == 0;
}

/* The value at the formal `value` + `suffix` of the node; *known: such a formal exists. */
static const dq_value *at_formal(const question *q, const char *value, const char *suffix, bool *known)
{
    const dq_schema *s = q->node->schema;
    for (uint32_t i = 0; i < s->input_count; i++)
        if (is_name(s->inputs[i].name, value, suffix)) {
            *known = true;
            return dq_node_input(q->node, i);
        }
    for (uint32_t i = 0; q->output && i < s->output_count; i++)
        if (is_name(s->outputs[i].name, value, suffix)) {
            *known = true;
            return i < q->node->out_count ? q->node->out[i] : NULL;
        }
    return NULL;
}

/* QLinearConcat has triples of value, scale and zero point after its own two inputs. */
static bool find_in_triples(const question *q, dq_quantization *out)
{
    const dq_node *node = q->node;
    if (q->output || strcmp(node->op_type, "QLinearConcat") != 0)
        return false;
    for (uint32_t i = 2; i + 2 < node->in_count; i += 3)
        if (node->in[i] == q->value) {
            out->scale = node->in[i + 1];
            out->zero_point = node->in[i + 2];
            return true;
        }
    return false;
}

/* Finds scale and zero point of the value. False: the operator has none for it. */
static bool find_operands(const question *q, dq_quantization *out)
{
    const dq_node *node = q->node;
    bool known = false;
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        const exception *e = &exceptions[i];
        if (e->output != q->output || strcmp(e->op, node->op_type) != 0 ||
            strcmp(e->domain, node->domain) != 0 || strcmp(e->value, q->formal) != 0)
            continue;
        out->scale = at_formal(q, e->scale, "", &known);
        out->zero_point = e->zero_point ? at_formal(q, e->zero_point, "", &known) : NULL;
        return out->scale;
    }
    if (find_in_triples(q, out))
        return true;
    out->scale = at_formal(q, q->formal, "_scale", &known);
    out->zero_point = at_formal(q, q->formal, "_zero_point", &known);
    return known;
}

/* ---- Granularity -------------------------------------------------------------------------------------- */

static const dq_tensor *constant_of(const dq_value *v)
{
    if (!v || dq_value_holds(v))
        return v ? v->constant : NULL;
    const dq_node *node = v->constant ? NULL : v->producer;
    const bool constant = node && !*node->domain && strcmp(node->op_type, "Constant") == 0;
    const dq_attr *attr = constant ? dq_node_attr(node, "value") : NULL;
    return attr && attr->kind == DQ_ATTR_TENSOR ? attr->u.tensor : NULL;
}

/* The number of scales as far as the model determines it; NONE: unknown. */
static int64_t count_of(const dq_value *v)
{
    const dq_tensor *t = constant_of(v);
    int64_t count = 1;
    if (t)
        return t->count < INT64_MAX ? (int64_t)t->count : NONE;
    if (v->producer && strcmp(v->producer->op_type, "DynamicQuantizeLinear") == 0)
        return 1;
    for (uint32_t d = 0; v->type.has_shape && d < v->type.rank; d++)
        if (v->type.dims[d] < 0 || __builtin_mul_overflow(count, v->type.dims[d], &count))
            return NONE;
    return v->type.has_shape ? count : NONE;
}

/* An attribute under its name in ai.onnx or in another domain; `absent` if the operator has none. */
static int64_t attribute(const dq_node *node, const char *name, int64_t absent)
{
    if (strcmp(node->op_type, "GatherBlockQuantized") == 0 && strcmp(name, "axis") == 0)
        name = "quantize_axis";
    return dq_node_int(node, name, absent);
}

static int64_t axis_of(const question *q, bool blocks)
{
    const dq_node *node = q->node;
    enum { DEFAULT_AXIS = 1 /* Of QuantizeLinear and DequantizeLinear. */ };
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        const axis_rule *rule = &axes[i];
        if (strcmp(rule->op, node->op_type) != 0 || strcmp(rule->value, q->formal) != 0)
            continue;
        if (blocks)
            return rule->block_axis;
        return rule->axis == -1 && dq_node_int(node, "transB", 0) ? -2 : rule->axis;
    }
    return attribute(node, "axis", DEFAULT_AXIS);
}

/* The rank; 0: unknown. */
static int64_t rank_of(const dq_value *v)
{
    return v->constant ? v->constant->rank : v->type.has_shape ? v->type.rank : 0;
}

static void find_granularity(const question *q, dq_quantization *out)
{
    const dq_value *by = out->scale ? out->scale : out->zero_point;
    const int64_t count = by ? count_of(by) : 1, block = attribute(q->node, "block_size", 0),
                  rank = rank_of(q->value);
    if (block > 0) {
        out->granularity = DQ_PER_BLOCK;
        out->block_size = block;
    } else {
        out->granularity = count == 1 ? DQ_PER_TENSOR : count == NONE ? DQ_GRANULARITY_UNKNOWN : DQ_PER_AXIS;
    }
    if (out->granularity == DQ_PER_TENSOR || out->granularity == DQ_GRANULARITY_UNKNOWN)
        return;
    out->axis = axis_of(q, block > 0);
    /* One scale per direction of a recurrent network. */
    if (strcmp(q->node->op_type, "DynamicQuantizeLSTM") == 0 && rank_of(by) == 1)
        out->axis = 0;
    if (out->axis < 0 && out->axis + rank >= 0)
        out->axis += rank;
}

/* ---- The nodes of a value ----------------------------------------------------------------------------- */

/* Whether a value can be quantized. A float value with a scale is not: the scale belongs to another value. */
static bool may_be_quantized(const dq_value *v)
{
    const dq_ir *ir = v->graph->ir;
    const dq_dtype dtype = v->constant                             ? v->constant->dtype
                           : v->type.dtype != DQ_UNDEFINED         ? v->type.dtype
                           : ir->dtypes && v->id < ir->value_count ? ir->dtypes[v->id]
                                                                   : DQ_UNDEFINED;
    return dtype != DQ_FLOAT && dtype != DQ_DOUBLE && dtype != DQ_FLOAT16 && dtype != DQ_BFLOAT16;
}

static bool answer(const question *q, dq_quantization *out)
{
    dq_quantization found = {.size = sizeof found};
    if (!q->formal || !find_operands(q, &found))
        return false;
    *out = found;
    out->quantized = true;
    out->node = q->node;
    out->scale_data = constant_of(out->scale);
    out->zero_point_data = constant_of(out->zero_point);
    find_granularity(q, out);
    return true;
}

static bool ask(const dq_node *node, const dq_value *v, bool output, dq_quantization *out)
{
    const uint32_t count = output ? node->out_count : node->in_count;
    dq_value *const *operands = output ? node->out : node->in;
    for (uint32_t i = 0; node->schema && i < count; i++) {
        if (operands[i] != v)
            continue;
        const dq_formal *formal =
            output ? dq_schema_output(node->schema, i) : dq_schema_input(node->schema, i);
        const question q = {node, v, formal ? formal->name : NULL, output};
        if (answer(&q, out))
            return true;
    }
    return false;
}

static dq_status find_quantization(dq_ir *ir, const dq_value *v, dq_quantization *out, dq_error *err)
{
    const dq_node *const *nodes;
    size_t count;
    if (!may_be_quantized(v) || (v->producer && ask(v->producer, v, true, out)))
        return DQ_OK;
    DQ_TRY(dq_views_consumers(ir, v, &count, &nodes, err));
    for (size_t i = 0; i < count; i++)
        if (ask(nodes[i], v, false, out))
            return DQ_OK;
    return DQ_OK;
}

dq_status dq_value_quantization(const dq_model *model, const dq_value *value, dq_quantization *quantization,
                                dq_error *err)
{
    dq_quantization own = {.size = sizeof own};
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(value);
    DQ_TRY(find_quantization(model->program->ir, value, &own, err));
    return dq_write_struct(DQ_STRUCT_QUANTIZATION, "dq_value_quantization: quantization", &own, quantization,
                           err);
}
