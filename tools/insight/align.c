/* SPDX-License-Identifier: Apache-2.0 */
/* Follows both graphs side by side, for values whose names tell nothing.
 *
 * A node of the quantized model stands for a node of the float model that has the same operator, reads the
 * same values, and stands for no other. Quantizers pass their value through. An operator that quantization
 * folds into the one before (BatchNormalization, Relu, Clip) is skipped where the quantized model does not
 * have it. */
#include "insight/compare.h"
#include "io/common.h"

#include <string.h>

typedef struct aligner {
    const insight_model *q, *f;
    size_t *to;    /* by value of the quantized model: the float value; INSIGHT_NONE */
    bool *claimed; /* by node of the float model */
} aligner;

static bool is_one_of(const char *op_type, const char *const *list)
{
    while (*list && strcmp(*list, op_type) != 0)
        list++;
    return *list != NULL;
}

static bool is_quantizer(const char *op_type)
{
    static const char *const quantizers[] = {"QuantizeLinear", "DequantizeLinear", NULL};
    return is_one_of(op_type, quantizers);
}

static const char *float_op(const char *op_type)
{
    return !strncmp(op_type, "QLinear", 7) ? op_type + 7 : !strcmp(op_type, "QGemm") ? "Gemm" : op_type;
}

/* Whether the float node reads what the quantized one does, as far as that is known. */
static bool reads_the_same(const aligner *a, const insight_node *q, const insight_node *f)
{
    bool any = false;
    for (size_t i = 0; i < q->input_count; i++) {
        const size_t expected = q->inputs[i] == INSIGHT_NONE ? INSIGHT_NONE : a->to[q->inputs[i]];
        bool found = false;
        if (expected == INSIGHT_NONE)
            continue;
        for (size_t k = 0; k < f->input_count; k++)
            found = found || f->inputs[k] == expected;
        if (!found)
            return false;
        any = true;
    }
    return any;
}

static size_t find_node(const aligner *a, const insight_node *n)
{
    for (size_t i = 0; i < a->f->node_count; i++)
        if (!a->claimed[i] && !strcmp(a->f->nodes[i].op_type, float_op(n->op_type)) &&
            reads_the_same(a, n, &a->f->nodes[i]))
            return i;
    return INSIGHT_NONE;
}

/* The only node that reads the value; INSIGHT_NONE. */
static size_t only_reader(const insight_model *m, size_t value)
{
    size_t count = 0;
    const dq_node *const *readers = NULL;
    if (dq_value_consumers(m->model, m->values[value].value, &count, &readers, NULL) != DQ_OK || count != 1)
        return INSIGHT_NONE;
    return insight_find_node(m, readers[0]);
}

/* The only node that reads the value, or its quantized and dequantized form. */
static size_t next_operator(const insight_model *m, size_t value)
{
    size_t node = only_reader(m, value);
    while (node != INSIGHT_NONE && is_quantizer(m->nodes[node].op_type) &&
           m->nodes[node].outputs[0] != INSIGHT_NONE)
        node = only_reader(m, m->nodes[node].outputs[0]);
    return node;
}

/* The float value after the operators that quantization has folded into its node. */
static size_t skip_folded(const aligner *a, size_t f_value, size_t q_value)
{
    static const char *const folded[] = {"BatchNormalization", "Relu", "Clip", NULL};
    for (;;) {
        const size_t reader = only_reader(a->f, f_value), own = next_operator(a->q, q_value);
        if (reader == INSIGHT_NONE || !is_one_of(a->f->nodes[reader].op_type, folded) ||
            (own != INSIGHT_NONE && !strcmp(a->q->nodes[own].op_type, a->f->nodes[reader].op_type)) ||
            a->f->nodes[reader].outputs[0] == INSIGHT_NONE)
            return f_value;
        f_value = a->f->nodes[reader].outputs[0];
    }
}

static void align_node(aligner *a, const insight_node *n)
{
    if (!n->output_count || n->outputs[0] == INSIGHT_NONE)
        return;
    const size_t output = n->outputs[0];
    if (is_quantizer(n->op_type)) {
        if (a->to[output] == INSIGHT_NONE && n->inputs[0] != INSIGHT_NONE)
            a->to[output] = a->to[n->inputs[0]];
        return;
    }
    const size_t node = find_node(a, n);
    if (node == INSIGHT_NONE || a->f->nodes[node].outputs[0] == INSIGHT_NONE)
        return;
    a->claimed[node] = true;
    if (a->to[output] == INSIGHT_NONE)
        a->to[output] = skip_folded(a, a->f->nodes[node].outputs[0], output);
}

dq_status insight_align(insight_comparison *c, size_t *to, dq_error *err)
{
    aligner a = {.q = &c->quantized, .f = &c->reference, .to = to};
    a.claimed = insight_alloc(&c->pool, a.f->node_count, sizeof *a.claimed);
    if (!a.claimed)
        return io_no_memory(err);
    for (size_t i = 0; i < a.q->value_count; i++)
        if (a.q->values[i].is_input && to[i] == INSIGHT_NONE)
            to[i] = insight_value_named(a.f, a.q->values[i].name);
    for (size_t i = 0; i < a.q->node_count; i++)
        align_node(&a, &a.q->nodes[i]);
    return DQ_OK;
}
