/* SPDX-License-Identifier: Apache-2.0 */
/* Matches values of a float model to those of its quantized form.
 *
 * Each quantized activation of the model is a candidate under several names: that of the value before
 * quantization, and its own and the dequantized value's less the suffixes that quantizers add. --map comes
 * first, then equal names, then names less suffixes. Values that are not quantized match by name alone. What
 * is left over is matched by structure. Where quantization has folded an operator into the one before it
 * (BatchNormalization, Relu, Clip), the float value after it takes over the match. */
#include "insight/compare.h"

#include "io/common.h"

#include <stdlib.h>
#include <string.h>

/* Suffixes of onnxruntime's, neural-compressor's and dqrun's own quantizers. Longer ones come first. */
static const char *const suffixes[] = {
    "_DequantizeLinear_Output",
    "_QuantizeLinear_Output",
    "_dequantize_output",
    "_quantize_output",
    "_DequantizeLinear",
    "_QuantizeLinear",
    "_rounded_codes",
    "_dequantized",
    "_quantized",
    "_rounded",
    "_codes",
    "_real",
};

enum { NAME = 1024 };

const char *insight_base_name(const char *name, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t length = strlen(buffer), n = strlen(suffixes[i]);
        if (length > n && !strcmp(buffer + length - n, suffixes[i])) {
            buffer[length - n] = 0;
            return buffer;
        }
    }
    return buffer;
}

size_t insight_value_named(const insight_model *m, const char *name)
{
    const dq_value *value = name && m->model ? dq_model_find_value(m->model, name) : NULL;
    return value ? insight_find_value(m, value) : INSIGHT_NONE;
}

size_t insight_producer(const insight_model *m, const char *value)
{
    const size_t index = insight_value_named(m, value);
    return index == INSIGHT_NONE ? INSIGHT_NONE : m->values[index].producer;
}

static bool is_float_value(const insight_value *v)
{
    /* Files may declare values that no node computes. */
    return !v->is_constant && (v->producer != INSIGHT_NONE || v->is_input) &&
           (!strcmp(v->type, "float") || !strcmp(v->type, "float16") || !strcmp(v->type, "bfloat16") ||
            !strcmp(v->type, "double"));
}

static bool is_op(const insight_model *m, size_t node, const char *op_type)
{
    return node != INSIGHT_NONE && !strcmp(m->nodes[node].op_type, op_type);
}

/* The node that reads the value with this operator; INSIGHT_NONE. */
static size_t reader_of(const insight_model *m, size_t value, const char *op_type)
{
    size_t count = 0;
    const dq_node *const *readers = NULL;
    if (dq_value_consumers(m->model, m->values[value].value, &count, &readers, NULL) != DQ_OK)
        return INSIGHT_NONE;
    for (size_t i = 0; i < count; i++)
        if (is_op(m, insight_find_node(m, readers[i]), op_type))
            return insight_find_node(m, readers[i]);
    return INSIGHT_NONE;
}

/* ---- Reference values ---------------------------------------------------------------------------------- */

typedef struct matcher {
    const insight_request *r;
    insight_comparison *c;
    bool *taken;     /* by value of the float model, or by reference array */
    size_t *pair_of; /* the pair of each */
    size_t count;    /* of reference values */
} matcher;

static const char *reference_name(const matcher *x, size_t i)
{
    return x->r->reference ? x->c->reference.values[i].name : x->r->ref_names[i];
}

static bool can_match(const matcher *x, size_t i)
{
    return !x->r->reference || is_float_value(&x->c->reference.values[i]);
}

/* The reference value of that name that can be matched and is not; INSIGHT_NONE. */
static size_t find_reference(const matcher *x, const char *name)
{
    if (x->r->reference) {
        const size_t i = insight_value_named(&x->c->reference, name);
        return i != INSIGHT_NONE && can_match(x, i) && !x->taken[i] ? i : INSIGHT_NONE;
    }
    for (size_t i = 0; i < x->count; i++)
        if (!strcmp(x->r->ref_names[i], name) && !x->taken[i])
            return i;
    return INSIGHT_NONE;
}

/* By --map, under any of the names. */
static size_t find_mapped(const matcher *x, const char *const names[3])
{
    for (size_t k = 0; k < x->r->map_count; k++)
        for (size_t i = 0; i < 3; i++)
            if (names[i] && !strcmp(x->r->maps[k].name, names[i]))
                return find_reference(x, x->r->maps[k].float_name);
    return INSIGHT_NONE;
}

static size_t find_by_names(const matcher *x, const char *const names[3])
{
    char base[NAME];
    size_t found = find_mapped(x, names);
    for (size_t i = 0; i < 3 && found == INSIGHT_NONE; i++)
        found = names[i] ? find_reference(x, names[i]) : INSIGHT_NONE;
    for (size_t i = 0; i < 3 && found == INSIGHT_NONE; i++)
        found = names[i] ? find_reference(x, insight_base_name(names[i], base, sizeof base)) : INSIGHT_NONE;
    return found;
}

/* ---- Quantized activations ----------------------------------------------------------------------------- */

static const char *value_name(const dq_value *value)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    return value && dq_value_describe(value, &info, NULL) == DQ_OK ? info.name : NULL;
}

/* Fills in the quantizer of the value, and the float values before and after it. */
static bool read_quantizer(const insight_model *m, size_t index, insight_pair *to)
{
    const insight_value *v = &m->values[index];
    dq_quantization q = DQ_QUANTIZATION_INIT;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (v->is_constant || v->producer == INSIGHT_NONE || !v->quantization.quantized ||
        dq_value_quantization(m->model, v->value, &q, NULL) != DQ_OK || !q.scale ||
        dq_value_describe(v->value, &info, NULL) != DQ_OK || !q.scale_data)
        return false;
    const bool is_quantize = is_op(m, v->producer, "QuantizeLinear");
    const size_t dequantize = reader_of(m, index, "DequantizeLinear");
    to->codes = v->name;
    to->got = NULL;
    to->quantizer = m->nodes[v->producer].name;
    to->order = v->producer;
    to->is_qoperator = !is_quantize;
    to->scale = value_name(q.scale);
    to->zero_point = value_name(q.zero_point);
    to->scale_data = q.scale_data;
    to->zero_point_data = q.zero_point_data;
    to->dtype = info.dtype;
    if (is_quantize && m->nodes[v->producer].inputs[0] != INSIGHT_NONE)
        to->got = m->values[m->nodes[v->producer].inputs[0]].name;
    if (dequantize == INSIGHT_NONE)
        return true;
    const insight_node *node = &m->nodes[dequantize];
    to->observed = m->values[node->outputs[0]].name;
    to->dequantized_scale = node->inputs[1] == INSIGHT_NONE ? NULL : m->values[node->inputs[1]].name;
    if (node->inputs[1] != INSIGHT_NONE &&
        dq_value_describe(m->values[node->inputs[1]].value, &info, NULL) == DQ_OK)
        to->dequantized_scale_data = info.initializer;
    if (node->input_count > 2 && node->inputs[2] != INSIGHT_NONE) {
        info = (dq_value_info)DQ_VALUE_INFO_INIT;
        to->dequantized_zero_point = m->values[node->inputs[2]].name;
        if (dq_value_describe(m->values[node->inputs[2]].value, &info, NULL) == DQ_OK)
            to->dequantized_zero_point_data = info.initializer;
    }
    return true;
}

static void set_nodes(const matcher *x, insight_pair *p, size_t reference)
{
    const insight_model *q = &x->c->quantized, *f = &x->c->reference;
    const size_t made = insight_producer(q, p->got ? p->got : p->codes);
    p->node = made == INSIGHT_NONE ? NULL : q->nodes[made].name;
    if (made != INSIGHT_NONE && !p->codes)
        p->order = made;
    if (!x->r->reference || f->values[reference].producer == INSIGHT_NONE)
        return;
    p->float_node = f->nodes[f->values[reference].producer].name;
    p->float_op = f->nodes[f->values[reference].producer].op_type;
}

static dq_status add_pair(matcher *x, const insight_pair *candidate, size_t reference, dq_error *err)
{
    insight_comparison *c = x->c;
    insight_pair *p = &c->pairs[c->pair_count];
    *p = *candidate;
    p->name = reference_name(x, reference);
    p->gain_db = 0;
    set_nodes(x, p, reference);
    if (p->codes && !p->observed) {
        p->observed = insight_format(&c->pool, "dqrun_observed_%zu", c->pair_count);
        p->is_edit = true;
        if (!p->observed)
            return io_no_memory(err);
    }
    if (!p->codes)
        p->observed = p->got;
    x->taken[reference] = true;
    x->pair_of[reference] = c->pair_count++;
    return DQ_OK;
}

static dq_status match_quantized(matcher *x, dq_error *err)
{
    const insight_model *m = &x->c->quantized;
    dq_status status = DQ_OK;
    for (size_t i = 0; i < m->value_count && status == DQ_OK; i++) {
        insight_pair p = {0};
        if (!read_quantizer(m, i, &p))
            continue;
        const char *const names[3] = {p.got, p.codes, p.is_edit ? NULL : p.observed};
        const size_t reference = find_by_names(x, names);
        if (reference != INSIGHT_NONE)
            status = add_pair(x, &p, reference, err);
    }
    return status;
}

static dq_status match_plain(matcher *x, dq_error *err)
{
    const insight_model *m = &x->c->quantized;
    dq_status status = DQ_OK;
    for (size_t i = 0; i < m->value_count && status == DQ_OK; i++) {
        const insight_value *v = &m->values[i];
        if (!is_float_value(v) || is_op(m, v->producer, "DequantizeLinear") || (v->is_input && !v->is_output))
            continue;
        const insight_pair p = {.got = v->name};
        const char *const names[3] = {v->name, NULL, NULL};
        size_t reference = find_mapped(x, names);
        reference = reference == INSIGHT_NONE ? find_reference(x, v->name) : reference;
        if (reference != INSIGHT_NONE)
            status = add_pair(x, &p, reference, err);
    }
    return status;
}

/* ---- By structure -------------------------------------------------------------------------------------- */

/* What names have matched, as a start for the structure. */
static void know_pairs(const matcher *x, size_t *to)
{
    const insight_model *m = &x->c->quantized;
    for (size_t i = 0; i < m->value_count; i++)
        to[i] = INSIGHT_NONE;
    for (size_t i = 0; i < x->c->pair_count; i++) {
        const insight_pair *p = &x->c->pairs[i];
        const char *const names[3] = {p->got, p->codes, p->is_edit ? NULL : p->observed};
        for (size_t k = 0; k < 3; k++) {
            const size_t value = insight_value_named(m, names[k]);
            if (value != INSIGHT_NONE)
                to[value] = insight_value_named(&x->c->reference, p->name);
        }
    }
}

static dq_status match_structure(matcher *x, dq_error *err)
{
    const insight_model *m = &x->c->quantized;
    size_t *to = insight_alloc(&x->c->pool, m->value_count, sizeof *to);
    if (!to)
        return io_no_memory(err);
    know_pairs(x, to);
    dq_status status = insight_align(x->c, to, err);
    for (int quantized = 1; quantized >= 0; quantized--) {
        for (size_t i = 0; i < m->value_count && status == DQ_OK; i++) {
            insight_pair p = {.got = m->values[i].name};
            if (to[i] == INSIGHT_NONE || x->taken[to[i]] || !can_match(x, to[i]))
                continue;
            if (quantized ? read_quantizer(m, i, &p)
                          : is_float_value(&m->values[i]) && !m->values[i].is_input &&
                                !is_op(m, m->values[i].producer, "DequantizeLinear"))
                status = add_pair(x, &p, to[i], err);
        }
    }
    return status;
}

/* ---- Folded operators ---------------------------------------------------------------------------------- */

/* Whether the quantized model still has this operator after the value of the pair. */
static bool still_has(const insight_model *m, const insight_pair *p, const char *op_type)
{
    const char *const names[3] = {p->got, p->codes, p->is_edit ? NULL : p->observed};
    for (size_t i = 0; i < 3; i++) {
        const size_t value = names[i] ? insight_value_named(m, names[i]) : INSIGHT_NONE;
        if (value != INSIGHT_NONE && reader_of(m, value, op_type) != INSIGHT_NONE)
            return true;
    }
    return false;
}

static bool is_foldable(const char *op_type)
{
    return !strcmp(op_type, "BatchNormalization") || !strcmp(op_type, "Relu") || !strcmp(op_type, "Clip");
}

/* A float node whose result is not matched, whose input is, and which the quantized model has no more. */
static void follow_folds(matcher *x)
{
    insight_model *f = &x->c->reference;
    for (size_t i = 0; i < f->node_count; i++) {
        const insight_node *n = &f->nodes[i];
        if (!is_foldable(n->op_type) || n->inputs[0] == INSIGHT_NONE || n->outputs[0] == INSIGHT_NONE ||
            !x->taken[n->inputs[0]] || x->taken[n->outputs[0]])
            continue;
        const size_t index = x->pair_of[n->inputs[0]];
        insight_pair *p = &x->c->pairs[index];
        if (still_has(&x->c->quantized, p, n->op_type))
            continue;
        p->name = f->values[n->outputs[0]].name;
        x->taken[n->inputs[0]] = false;
        x->taken[n->outputs[0]] = true;
        x->pair_of[n->outputs[0]] = index;
        set_nodes(x, p, n->outputs[0]);
    }
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static int by_order(const void *a, const void *b)
{
    const insight_pair *x = a, *y = b;
    return x->order != y->order ? (x->order > y->order) - (x->order < y->order) : strcmp(x->name, y->name);
}

/* Whether quantization has folded the operator that reads the value, and nothing else reads it. */
static bool is_folded(const matcher *x, size_t value)
{
    const insight_model *f = &x->c->reference;
    for (int step = 0; x->r->reference && step < 3; step++) {
        size_t count = 0;
        const dq_node *const *readers = NULL;
        if (dq_value_consumers(f->model, f->values[value].value, &count, &readers, NULL) != DQ_OK ||
            count != 1)
            return false;
        const size_t node = insight_find_node(f, readers[0]);
        if (node == INSIGHT_NONE || !is_foldable(f->nodes[node].op_type) ||
            f->nodes[node].outputs[0] == INSIGHT_NONE)
            return false;
        value = f->nodes[node].outputs[0];
        if (x->taken[value])
            return true;
    }
    return false;
}

static dq_status list_unmatched(const matcher *x, dq_error *err)
{
    insight_comparison *c = x->c;
    c->unmatched = insight_alloc(&c->pool, x->count, sizeof *c->unmatched);
    if (!c->unmatched)
        return io_no_memory(err);
    for (size_t i = 0; i < x->count; i++) {
        if (!can_match(x, i))
            continue;
        const bool is_plain_input = x->r->reference && c->reference.values[i].is_input;
        if (!x->taken[i] && is_plain_input)
            continue; /* an input that is not quantized is the same on both sides */
        c->float_value_count++;
        if (!x->taken[i] && is_folded(x, i))
            c->folded_count++;
        else if (!x->taken[i])
            c->unmatched[c->unmatched_count++] = reference_name(x, i);
    }
    return DQ_OK;
}

dq_status insight_match(const insight_request *r, insight_comparison *c, dq_error *err)
{
    matcher x = {.r = r, .c = c, .count = r->reference ? c->reference.value_count : r->ref_count};
    x.taken = insight_alloc(&c->pool, x.count, sizeof *x.taken);
    x.pair_of = insight_alloc(&c->pool, x.count, sizeof *x.pair_of);
    c->pairs = insight_alloc(&c->pool, x.count, sizeof *c->pairs);
    if (!x.taken || !x.pair_of || !c->pairs)
        return io_no_memory(err);
    dq_status status = match_quantized(&x, err);
    if (status == DQ_OK)
        status = match_plain(&x, err);
    if (status == DQ_OK && r->reference)
        follow_folds(&x);
    if (status == DQ_OK && r->reference)
        status = match_structure(&x, err);
    if (status == DQ_OK)
        status = list_unmatched(&x, err);
    qsort(c->pairs, c->pair_count, sizeof *c->pairs, by_order);
    return status;
}
