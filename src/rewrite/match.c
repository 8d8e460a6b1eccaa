/* SPDX-License-Identifier: Apache-2.0 */
/* Matching of operands and results: constants, types, DequantizeLinear before and QuantizeLinear after an
 * operator. */
#include "rewrite/match.h"

#include <math.h>
#include <string.h>

bool dq_match_op(const dq_node *node, const char *op)
{
    return node && !*node->domain && strcmp(node->op_type, op) == 0;
}

bool dq_match_trait(const dq_node *node, unsigned traits)
{
    return node && node->op && (node->op->traits & traits) != 0;
}

const dq_tensor *dq_match_constant(const dq_value *v)
{
    if (!v)
        return NULL;
    if (v->constant)
        return dq_value_holds(v) ? v->constant : NULL;
    const dq_attr *attr = dq_match_op(v->producer, "Constant") ? dq_node_attr(v->producer, "value") : NULL;
    return attr && attr->kind == DQ_ATTR_TENSOR ? attr->u.tensor : NULL;
}

dq_dtype dq_match_dtype(const dq_rewriter *f, const dq_value *v)
{
    const dq_tensor *constant = dq_match_constant(v);
    const bool own = v->graph == f->graph;
    const dq_dtype known = !own                               ? f->request->dtypes[v->id]
                           : v->index < f->graph->value_count ? f->dtypes[v->index]
                                                              : DQ_UNDEFINED;
    return constant ? constant->dtype : known ? known : v->type.dtype;
}

bool dq_match_is_half(const dq_rewriter *f, const dq_value *v)
{
    const dq_dtype dtype = v ? dq_match_dtype(f, v) : DQ_UNDEFINED;
    return dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16;
}

static bool is_quantized_type(dq_dtype dtype, bool any)
{
    if (dtype == DQ_UINT8 || dtype == DQ_INT8)
        return true;
    return any && (dtype == DQ_UINT16 || dtype == DQ_INT16 || dtype == DQ_INT32);
}

static bool is_quantizing_domain(const dq_node *node)
{
    return !*node->domain || strcmp(node->domain, "com.microsoft") == 0;
}

static bool has_bad_scale(const dq_rewriter *f, const dq_node *node)
{
    const dq_value *out = node->out_count > 0 ? node->out[0] : NULL;
    const dq_value_record *record = out ? dq_rewriter_record(f, out) : NULL;
    return record && record->has_bad_scale;
}

static bool read_dequantized(const dq_rewriter *f, const dq_node *node, bool any, dq_dequantized *out)
{
    if (!node || strcmp(node->op_type, "DequantizeLinear") != 0 || !is_quantizing_domain(node) ||
        node->graph != f->graph || has_bad_scale(f, node))
        return false;
    *out = (dq_dequantized){
        .node = node, .qvalues = dq_match_resolve(f, node->in[0]), .scale = dq_match_resolve(f, node->in[1])};
    out->zero = dq_match_resolve(f, dq_node_input(node, 2));
    out->scale_t = dq_match_constant(out->scale);
    out->zero_t = dq_match_constant(out->zero);
    out->dtype = dq_match_dtype(f, out->qvalues);
    out->axis = dq_node_int(node, "axis", 1);
    int64_t result = dq_node_int(node, "output_dtype", 0);
    if (!out->scale_t || (out->zero && !out->zero_t) || out->scale_t->dtype != DQ_FLOAT ||
        !is_quantized_type(out->dtype, any) || (result != 0 && result != DQ_FLOAT) ||
        out->scale_t->rank > 1 || out->scale_t->count == 0)
        return false;
    out->per_tensor = out->scale_t->count == 1;
    return out->per_tensor || dq_node_int(node, "block_size", 0) == 0;
}

bool dq_match_dequantized(const dq_rewriter *f, const dq_value *v, bool any, dq_dequantized *out)
{
    const dq_value *from = dq_match_skip_moves(f, v);
    const dq_value_record *record = from ? dq_rewriter_record(f, from) : NULL;
    if (!record || !read_dequantized(f, record->dequantize ? record->dequantize : from->producer, any, out))
        return false;
    if (from == v)
        return true;
    out->moved = v;
    if (out->per_tensor) {
        dq_quant_params p = dq_match_params(out->scale_t, out->zero_t, out->dtype);
        return dq_match_moves_commute(f, v, &p);
    }
    const dq_tensor *qvalues = dq_match_constant(out->qvalues);
    return qvalues && dq_match_transposed_axis(v, from, qvalues->rank, &out->axis);
}

bool dq_match_quantized(const dq_rewriter *f, const dq_node *node, bool any, dq_quantized *out)
{
    if (strcmp(node->op_type, "QuantizeLinear") != 0 || !is_quantizing_domain(node) || !node->out[0] ||
        dq_node_int(node, "precision", 0) != 0 || has_bad_scale(f, node))
        return false;
    *out = (dq_quantized){.node = node, .scale = dq_match_resolve(f, node->in[1])};
    out->zero = dq_match_resolve(f, dq_node_input(node, 2));
    out->scale_t = dq_match_constant(out->scale);
    out->zero_t = dq_match_constant(out->zero);
    int64_t declared = dq_node_int(node, "output_dtype", 0);
    out->dtype = out->zero_t ? out->zero_t->dtype : declared ? (dq_dtype)declared : DQ_UINT8;
    return out->scale_t && (!out->zero || out->zero_t) && out->scale_t->dtype == DQ_FLOAT &&
           out->scale_t->count == 1 && out->scale_t->rank <= 1 && is_quantized_type(out->dtype, any) &&
           out->dtype != DQ_INT32 && dq_match_dtype(f, node->in[0]) == DQ_FLOAT;
}

float dq_match_float(const dq_tensor *t, size_t i)
{
    float v;
    memcpy(&v, (const char *)t->data + i * sizeof v, sizeof v);
    return v;
}

float dq_match_scale(const dq_tensor *scale, size_t i)
{
    return dq_match_float(scale, scale->count == 1 ? 0 : i);
}

int64_t dq_match_zero_point(const dq_tensor *zero, size_t i)
{
    return zero ? dq_tensor_get_int(zero, zero->count == 1 ? 0 : i) : 0;
}

dq_quant_params dq_match_params(const dq_tensor *scale, const dq_tensor *zero, dq_dtype dtype)
{
    return (dq_quant_params){dq_match_scale(scale, 0), dq_match_zero_point(zero, 0), dtype};
}

int64_t dq_match_quantize(const dq_quant_params *p, float v)
{
    const dq_dtype_row *row = dq_dtype_get(p->dtype);
    double qvalue = nearbyint((double)(v / p->scale)) + (double)p->zero;
    return !(qvalue > (double)row->min) ? row->min : qvalue >= (double)row->max ? row->max : (int64_t)qvalue;
}

bool dq_match_same_params(const dq_tensor *scale_a, const dq_tensor *zero_a, const dq_tensor *scale_b,
                          const dq_tensor *zero_b)
{
    return scale_a->count == 1 && scale_b->count == 1 &&
           dq_match_scale(scale_a, 0) == dq_match_scale(scale_b, 0) &&
           dq_match_zero_point(zero_a, 0) == dq_match_zero_point(zero_b, 0);
}
