/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/float_forms.h"

#include <string.h>

enum { MAX_OPERANDS = 3, MAX_INPUTS = 4 };

/* An operator over quantized values: which inputs are its operands (value, scale, zero point each), its bias
 * and the quantizer of its result. */
typedef struct form {
    const char *op_type, *float_op;
    size_t operand_count, operands[MAX_OPERANDS];
    size_t bias; /* 0: none */
    size_t scale, zero_point;
    bool has_attributes;
} form;

static const form forms[] = {
    {"QLinearConv", "Conv", 2, {0, 3}, 8, 6, 7, true},
    {"QLinearMatMul", "MatMul", 2, {0, 3}, 0, 6, 7, false},
    {"QLinearAdd", "Add", 2, {0, 3}, 0, 6, 7, false},
    {"QLinearMul", "Mul", 2, {0, 3}, 0, 6, 7, false},
    {"QLinearSigmoid", "Sigmoid", 1, {0}, 0, 3, 4, false},
    {"QLinearLeakyRelu", "LeakyRelu", 1, {0}, 0, 3, 4, true},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", 1, {0}, 0, 3, 4, false},
    {"QLinearConcat", "Concat", 2, {2, 5}, 0, 0, 1, true},
    {"QLinearConcat", "Concat", 3, {2, 5, 8}, 0, 0, 1, true},
};

/* Operators whose results are elements of input 0: those with DQ_TRAIT_DATA_MOVEMENT or DQ_TRAIT_SELECTS in
 * the library's table, which tests/insight/run.py compares. The public header does not tell traits. */
static const char *const movements[] = {
    "DepthToSpace", "Expand",    "Flatten",   "Gather",    "GatherElements",  "GatherND", "Identity",
    "MaxPool",      "ReduceMax", "ReduceMin", "Reshape",   "ReverseSequence", "Slice",    "SpaceToDepth",
    "Split",        "Squeeze",   "Tile",      "Transpose", "Unsqueeze"};

typedef struct builder {
    insight_comparison *c;
    model_edit *edit;
    const insight_switches *switches;
    const char **float_names; /* float form by value of the quantized model; NULL: none */
    size_t serial;
    dq_error *err;
} builder;

bool insight_needs_float_form(const insight_pair *p)
{
    return p->codes && (p->is_qoperator || p->is_edit);
}

/* ---- Folded activations -------------------------------------------------------------------------------- */

const dq_tensor *insight_constant_named(const insight_model *m, const char *name)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    const size_t value = insight_value_named(m, name);
    return value != INSIGHT_NONE && dq_value_describe(m->values[value].value, &info, NULL) == DQ_OK
               ? info.initializer
               : NULL;
}

/* Whether the float model has an activation where the quantized model has a range. */
static bool is_folded(const insight_comparison *c, const insight_pair *p)
{
    const size_t made = insight_producer(&c->quantized, p->got ? p->got : p->codes);
    return p->float_op && (!strcmp(p->float_op, "Relu") || !strcmp(p->float_op, "Clip")) &&
           made != INSIGHT_NONE && strcmp(c->quantized.nodes[made].op_type, p->float_op) != 0;
}

dq_status insight_unfold(insight_comparison *c, model_edit *edit, const insight_pair *p, const char *real,
                         const char **unfolded, dq_error *err)
{
    const insight_model *f = &c->reference;
    const char *inputs[MAX_INPUTS] = {real, NULL, NULL, NULL};
    const size_t pair = (size_t)(p - c->pairs), node = insight_producer(f, p->name);
    *unfolded = real;
    if (!is_folded(c, p) || node == INSIGHT_NONE)
        return DQ_OK;
    dq_status status = DQ_OK;
    for (size_t k = 1; k < f->nodes[node].input_count && k < 3 && status == DQ_OK; k++) {
        const size_t value = f->nodes[node].inputs[k];
        const dq_tensor *end =
            value == INSIGHT_NONE ? NULL : insight_constant_named(f, f->values[value].name);
        inputs[k] = end ? insight_format(&c->pool, "dqrun_end_%zu_%zu", pair, k) : "";
        if (!inputs[k])
            return io_no_memory(err);
        if (end)
            status = model_edit_add_initializer(edit, inputs[k], end, err);
    }
    *unfolded = insight_format(&c->pool, "dqrun_unfolded_%zu", pair);
    if (!*unfolded)
        return io_no_memory(err);
    return status == DQ_OK ? model_edit_add_node(edit, p->float_op, inputs, *unfolded, NULL, err) : status;
}

/* ---- Names --------------------------------------------------------------------------------------------- */

static const char *new_name(builder *b)
{
    return insight_format(&b->c->pool, "dqrun_twin_%zu", b->serial++);
}

static const char *value_name(const builder *b, const insight_node *n, size_t input)
{
    return input < n->input_count && n->inputs[input] != INSIGHT_NONE
               ? b->c->quantized.values[n->inputs[input]].name
               : NULL;
}

/* A new node; *name is its result. */
static dq_status add(builder *b, const char *op_type, const char *const inputs[MAX_INPUTS], const char *like,
                     const char **name)
{
    *name = new_name(b);
    return *name ? model_edit_add_node(b->edit, op_type, inputs, *name, like, b->err) : io_no_memory(b->err);
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

static size_t weight_of(const builder *b, const char *name)
{
    for (size_t i = 0; i < b->c->weight_count; i++)
        if (!strcmp(b->c->weights[i].name, name))
            return i;
    return INSIGHT_NONE;
}

/* A constant as floats, and the float model's where its switch says so. */
static dq_status add_constant(builder *b, size_t value, const char **name)
{
    dq_tensor *real = NULL;
    const char *quantized = new_name(b);
    const size_t weight = weight_of(b, b->c->quantized.values[value].name);
    const char *on = weight == INSIGHT_NONE ? NULL : b->switches->weights[weight];
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_status status = quantized ? insight_dequantized(b->c, value, &real, b->err) : io_no_memory(b->err);
    if (status == DQ_OK)
        status = model_edit_add_initializer(b->edit, quantized, real, b->err);
    dq_tensor_free(real);
    *name = quantized;
    if (status != DQ_OK || !on)
        return status;
    const size_t reference = insight_value_named(&b->c->reference, b->c->weights[weight].float_name);
    const char *original = new_name(b);
    status = original ? dq_value_describe(b->c->reference.values[reference].value, &info, b->err)
                      : io_no_memory(b->err);
    if (status == DQ_OK)
        status = model_edit_add_initializer(b->edit, original, info.initializer, b->err);
    const char *const inputs[MAX_INPUTS] = {on, original, quantized, NULL};
    return status == DQ_OK ? add(b, "Where", inputs, NULL, name) : status;
}

/* The real number of an operand. */
static dq_status add_operand(builder *b, const insight_node *n, size_t input, const char **name)
{
    const size_t value = n->inputs[input];
    if (b->float_names[value]) {
        *name = b->float_names[value];
        return DQ_OK;
    }
    if (b->c->quantized.values[value].is_initializer)
        return add_constant(b, value, name);
    const char *const inputs[MAX_INPUTS] = {value_name(b, n, input), value_name(b, n, input + 1),
                                            value_name(b, n, input + 2), NULL};
    return add(b, "DequantizeLinear", inputs, NULL, name);
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* The pair of a quantized value that a switch leaves out; NULL. */
static const insight_pair *switched_pair(const builder *b, const char *quantized)
{
    for (size_t i = 0; i < b->c->pair_count; i++)
        if (b->c->pairs[i].codes && !strcmp(b->c->pairs[i].codes, quantized))
            return b->switches->pairs[i] ? &b->c->pairs[i] : NULL;
    return NULL;
}

/* The float form of a value that `real` gives, quantized with these parameters. */
static dq_status add_quantizer(builder *b, size_t value, const char *real, const char *scale,
                               const char *zero_point)
{
    const insight_pair *p = switched_pair(b, b->c->quantized.values[value].name);
    const char *quantized = NULL, *dequantized = NULL;
    const char *const first[MAX_INPUTS] = {real, scale, zero_point, NULL};
    dq_status status = add(b, "QuantizeLinear", first, NULL, &quantized);
    const char *const second[MAX_INPUTS] = {quantized, scale, zero_point, NULL};
    if (status == DQ_OK)
        status = add(b, "DequantizeLinear", second, NULL, &dequantized);
    b->float_names[value] = dequantized;
    if (status != DQ_OK || !p)
        return status;
    status = insight_unfold(b->c, b->edit, p, real, &real, b->err);
    const char *const third[MAX_INPUTS] = {b->switches->pairs[p - b->c->pairs], real, dequantized, NULL};
    return status == DQ_OK ? add(b, "Where", third, NULL, &b->float_names[value]) : status;
}

static const form *form_of(const insight_node *n)
{
    const size_t triples = (n->input_count - (n->input_count > 2 ? 2 : n->input_count)) / 3;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].op_type, n->op_type) &&
            (strcmp(n->op_type, "QLinearConcat") != 0 || forms[i].operand_count == triples))
            return &forms[i];
    return NULL;
}

static dq_status add_operator(builder *b, const insight_node *n, const form *f)
{
    const char *inputs[MAX_INPUTS] = {NULL}, *real = NULL;
    dq_status status = DQ_OK;
    for (size_t i = 0; i < f->operand_count && status == DQ_OK; i++)
        status = add_operand(b, n, f->operands[i], &inputs[i]);
    if (status == DQ_OK && f->bias && value_name(b, n, f->bias))
        status = add_constant(b, n->inputs[f->bias], &inputs[f->operand_count]);
    const char *like = f->has_attributes ? b->c->quantized.values[n->outputs[0]].name : NULL;
    if (status == DQ_OK)
        status = add(b, f->float_op, inputs, like, &real);
    return status == DQ_OK ? add_quantizer(b, n->outputs[0], real, value_name(b, n, f->scale),
                                           value_name(b, n, f->zero_point))
                           : status;
}

static bool is_movement(const insight_node *n)
{
    for (size_t i = 0; i < sizeof movements / sizeof *movements; i++)
        if (!strcmp(movements[i], n->op_type) && !*n->domain)
            return n->input_count && n->input_count <= MAX_INPUTS && n->output_count == 1;
    return false;
}

static dq_status add_movement(builder *b, const insight_node *n)
{
    const char *inputs[MAX_INPUTS] = {b->float_names[n->inputs[0]]};
    for (size_t i = 1; i < n->input_count; i++)
        inputs[i] = value_name(b, n, i) ? value_name(b, n, i) : "";
    return add(b, n->op_type, inputs, b->c->quantized.values[n->outputs[0]].name,
               &b->float_names[n->outputs[0]]);
}

/* Lets the readers of the dequantized value read its float form. */
static dq_status redirect_readers(builder *b, const char *dequantized, const char *float_name)
{
    for (size_t k = 0; k < b->c->output_count; k++)
        if (!strcmp(b->c->outputs[k].name, dequantized))
            b->switches->outputs[k] = float_name;
    return model_edit_redirect(b->edit, dequantized, float_name, b->err);
}

static dq_status add_node(builder *b, const insight_node *n)
{
    const form *f = form_of(n);
    if (!n->output_count || n->outputs[0] == INSIGHT_NONE || !n->input_count || n->inputs[0] == INSIGHT_NONE)
        return DQ_OK;
    if (f && value_name(b, n, f->scale))
        return add_operator(b, n, f);
    const char *float_name = b->float_names[n->inputs[0]];
    if (!strcmp(n->op_type, "QuantizeLinear") && switched_pair(b, b->c->quantized.values[n->outputs[0]].name))
        return add_quantizer(b, n->outputs[0], value_name(b, n, 0), value_name(b, n, 1), value_name(b, n, 2));
    if (float_name && !strcmp(n->op_type, "DequantizeLinear"))
        return redirect_readers(b, b->c->quantized.values[n->outputs[0]].name, float_name);
    return float_name && is_movement(n) ? add_movement(b, n) : DQ_OK;
}

dq_status insight_add_float_forms(insight_comparison *c, model_edit *edit, const insight_switches *switches,
                                  dq_error *err)
{
    builder b = {.c = c, .edit = edit, .switches = switches, .err = err};
    b.float_names = insight_alloc(&c->pool, c->quantized.value_count, sizeof *b.float_names);
    dq_status status = b.float_names ? DQ_OK : io_no_memory(err);
    for (size_t i = 0; i < c->quantized.node_count && status == DQ_OK; i++)
        status = add_node(&b, &c->quantized.nodes[i]);
    return status;
}
