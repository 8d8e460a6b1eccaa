/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the ranges that verdicts suggest into the quantized model.
 *
 * A scale that several quantizers share gets the range of all of them. Biases that are quantized with the
 * scale of their node's input are quantized again, so that they stand for the same real numbers. */
#include "insight/compare.h"

#include "io/common.h"
#include "io/model_edit.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The new parameters of a quantizer, by the name of its scale. */
typedef struct change {
    const char *scale, *zero_point;
    double low, high, new_scale, new_zero_point;
    const insight_pair *pair;
} change;

typedef struct fixer {
    const insight_comparison *c;
    model_edit *edit;
    change *changes;
    size_t count;
} fixer;

static bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static const change *change_of(const fixer *f, const char *scale)
{
    for (size_t i = 0; i < f->count; i++)
        if (same_text(f->changes[i].scale, scale))
            return &f->changes[i];
    return NULL;
}

/* ---- Which ranges -------------------------------------------------------------------------------------- */

static void add_change(fixer *f, const insight_pair *p)
{
    if (change_of(f, p->scale))
        return;
    change *ch = &f->changes[f->count++];
    *ch = (change){.scale = p->scale, .zero_point = p->zero_point, .pair = p};
    for (size_t i = 0; i < f->c->pair_count; i++) {
        const insight_pair *other = &f->c->pairs[i];
        if (!other->has_range || !same_text(other->scale, p->scale))
            continue;
        ch->low = fmin(ch->low, other->range.min);
        ch->high = fmax(ch->high, other->range.max);
    }
    const insight_range *r = &p->range;
    const bool symmetric = !p->zero_point || (r->q_min < 0 && r->zero_point == 0 && ch->low < 0);
    ch->new_scale = symmetric ? fmax(ch->high / (double)r->q_max, r->q_min ? ch->low / (double)r->q_min : 0)
                              : (ch->high - ch->low) / (double)(r->q_max - r->q_min);
    ch->new_zero_point = symmetric ? 0 : nearbyint((double)r->q_min - ch->low / ch->new_scale);
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

static void put_value(dq_tensor *t, size_t i, double x)
{
    void *data = dq_tensor_mutable_data(t);
    switch (dq_tensor_dtype(t)) {
    case DQ_FLOAT:
        ((float *)data)[i] = (float)x;
        break;
    case DQ_INT32:
        ((int32_t *)data)[i] = (int32_t)x;
        break;
    case DQ_UINT8:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    case DQ_INT8:
        ((int8_t *)data)[i] = (int8_t)x;
        break;
    case DQ_UINT16:
        ((uint16_t *)data)[i] = (uint16_t)x;
        break;
    case DQ_INT16:
        ((int16_t *)data)[i] = (int16_t)x;
        break;
    default:
        break;
    }
}

static bool can_put(dq_dtype dtype)
{
    return dtype == DQ_FLOAT || dtype == DQ_INT32 || dtype == DQ_UINT8 || dtype == DQ_INT8 ||
           dtype == DQ_UINT16 || dtype == DQ_INT16;
}

/* Sets all elements of the constant; `values` NULL: to the one value. */
static dq_status set_constant(fixer *f, const char *name, const dq_tensor *like, const double *values,
                              double value, dq_error *err)
{
    dq_tensor *t = NULL;
    if (!can_put(dq_tensor_dtype(like)))
        return io_fail(err, DQ_UNSUPPORTED,
                       "--fix: '%s' is of type %s, expected float or an integer of 8 to 32 bits", name,
                       dq_dtype_name(dq_tensor_dtype(like)));
    dq_status status =
        dq_tensor_create(dq_tensor_dtype(like), dq_tensor_rank(like), dq_tensor_dims(like), &t, err);
    for (size_t i = 0; status == DQ_OK && i < dq_tensor_count(like); i++)
        put_value(t, i, values ? values[i] : value);
    if (status == DQ_OK)
        status = model_edit_set_constant(f->edit, name, t, err);
    dq_tensor_free(t);
    return status;
}

/* Of one quantizer that has the changed scale, and of its DequantizeLinear. */
static dq_status apply_pair(fixer *f, const change *ch, const insight_pair *p, dq_error *err)
{
    dq_status status = set_constant(f, p->scale, p->scale_data, NULL, ch->new_scale, err);
    if (status == DQ_OK && p->zero_point)
        status = set_constant(f, p->zero_point, p->zero_point_data, NULL, ch->new_zero_point, err);
    if (status == DQ_OK && p->dequantized_scale_data && !same_text(p->dequantized_scale, p->scale))
        status = set_constant(f, p->dequantized_scale, p->dequantized_scale_data, NULL, ch->new_scale, err);
    if (status == DQ_OK && p->dequantized_zero_point_data &&
        !same_text(p->dequantized_zero_point, p->zero_point))
        status = set_constant(f, p->dequantized_zero_point, p->dequantized_zero_point_data, NULL,
                              ch->new_zero_point, err);
    return status;
}

static dq_status apply(fixer *f, const change *ch, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < f->c->pair_count && status == DQ_OK; i++)
        if (f->c->pairs[i].has_range && same_text(f->c->pairs[i].scale, ch->scale))
            status = apply_pair(f, ch, &f->c->pairs[i], err);
    return status;
}

/* ---- Biases -------------------------------------------------------------------------------------------- */

static const dq_tensor *data_of(const insight_model *m, size_t value)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    return value != INSIGHT_NONE && dq_value_describe(m->values[value].value, &info, NULL) == DQ_OK
               ? info.initializer
               : NULL;
}

static size_t dequantize_of(const insight_model *m, size_t value)
{
    const size_t node = value == INSIGHT_NONE ? INSIGHT_NONE : m->values[value].producer;
    return node != INSIGHT_NONE && !strcmp(m->nodes[node].op_type, "DequantizeLinear") ? node : INSIGHT_NONE;
}

/* Where a node's bias, its scale and the scales that it is the product of are: values of the quantized model.
 */
typedef struct bias {
    size_t value, scale, input_scale, weight_scale; /* scale: INSIGHT_NONE for QLinearConv */
} bias;

static bool find_bias(const insight_model *m, const insight_node *n, bias *b)
{
    if (!strcmp(n->op_type, "QLinearConv") && n->input_count > 8 && n->inputs[8] != INSIGHT_NONE) {
        *b = (bias){n->inputs[8], INSIGHT_NONE, n->inputs[1], n->inputs[4]};
        return true;
    }
    if (n->input_count < 3 || (strcmp(n->op_type, "Conv") != 0 && strcmp(n->op_type, "Gemm") != 0))
        return false;
    const size_t x = dequantize_of(m, n->inputs[0]), w = dequantize_of(m, n->inputs[1]),
                 c = dequantize_of(m, n->inputs[2]);
    if (x == INSIGHT_NONE || w == INSIGHT_NONE || c == INSIGHT_NONE)
        return false;
    *b = (bias){m->nodes[c].inputs[0], m->nodes[c].inputs[1], m->nodes[x].inputs[1], m->nodes[w].inputs[1]};
    return true;
}

/* The real number of a bias: of the float model, where it is known. */
static double real_bias(const fixer *f, const bias *b, size_t i)
{
    const insight_model *m = &f->c->quantized;
    const char *name = m->values[b->value].name;
    for (size_t k = 0; k < f->c->weight_count; k++) {
        const dq_tensor *data =
            same_text(f->c->weights[k].name, name)
                ? data_of(&f->c->reference,
                          insight_value_named(&f->c->reference, f->c->weights[k].float_name))
                : NULL;
        if (data && i < dq_tensor_count(data))
            return dq_tensor_value(data, i);
    }
    const dq_tensor *w = data_of(m, b->weight_scale), *x = data_of(m, b->input_scale);
    const dq_tensor *s = b->scale == INSIGHT_NONE ? NULL : data_of(m, b->scale);
    const double scale = s ? dq_tensor_value(s, dq_tensor_count(s) > 1 ? i : 0)
                           : dq_tensor_value(x, 0) * dq_tensor_value(w, dq_tensor_count(w) > 1 ? i : 0);
    return dq_tensor_value(data_of(m, b->value), i) * scale;
}

/* Quantizes the bias again for the new scale of the node's input. */
static dq_status mend_bias(fixer *f, insight_pool *pool, const bias *b, dq_error *err)
{
    const insight_model *m = &f->c->quantized;
    const change *ch = change_of(f, m->values[b->input_scale].name);
    const dq_tensor *data = data_of(m, b->value), *w = data_of(m, b->weight_scale);
    const dq_tensor *s = b->scale == INSIGHT_NONE ? NULL : data_of(m, b->scale);
    if (!ch || !data || !w || !data_of(m, b->input_scale) || dq_tensor_dtype(data) != DQ_INT32)
        return DQ_OK;
    const size_t count = dq_tensor_count(data);
    double *values = insight_alloc(pool, count, sizeof *values),
           *scales = insight_alloc(pool, count, sizeof *scales);
    if (!values || !scales)
        return io_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        scales[i] = (double)(float)(ch->new_scale * dq_tensor_value(w, dq_tensor_count(w) > 1 ? i : 0));
        const double q = nearbyint(real_bias(f, b, i) / scales[i]);
        values[i] = fmin(fmax(q, (double)INT32_MIN), (double)INT32_MAX);
    }
    dq_status status = set_constant(f, m->values[b->value].name, data, values, 0, err);
    if (status == DQ_OK && s)
        status = set_constant(f, m->values[b->scale].name, s, scales, 0, err);
    return status;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

dq_status insight_fix(const insight_request *r, const insight_comparison *c, void **bytes, size_t *size,
                      size_t *changed, dq_error *err)
{
    insight_pool pool = {0};
    fixer f = {.c = c};
    f.changes = insight_alloc(&pool, c->verdict_count, sizeof *f.changes);
    dq_status status =
        f.changes ? model_edit_open(r->quantized_bytes, r->quantized_size, &f.edit, err) : io_no_memory(err);
    for (size_t i = 0; i < c->verdict_count && status == DQ_OK; i++)
        if (c->verdicts[i].has_fix)
            add_change(&f, &c->pairs[c->verdicts[i].pair]);
    for (size_t i = 0; i < f.count && status == DQ_OK; i++)
        status = apply(&f, &f.changes[i], err);
    for (size_t i = 0; i < c->quantized.node_count && status == DQ_OK; i++) {
        bias b;
        if (find_bias(&c->quantized, &c->quantized.nodes[i], &b))
            status = mend_bias(&f, &pool, &b, err);
    }
    if (status == DQ_OK)
        status = model_edit_pack(f.edit, bytes, size, err);
    *changed = f.count;
    model_edit_close(f.edit);
    insight_pool_free(&pool);
    return status;
}
