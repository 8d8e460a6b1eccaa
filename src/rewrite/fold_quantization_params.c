/* SPDX-License-Identifier: Apache-2.0 */
/* Folds operands that a model computes from constants: weights that it stores in float and quantizes itself
 * (QuantizeLinear before DequantizeLinear), quantized values that are clipped or unpacked, scales that are
 * cast or reshaped. Other passes then see quantized values and parameters as if the file contained them. */
#include "rewrite/match.h"

#include <string.h>

static bool is_fixed(const dq_rewriter *f, const bool *fixed, const dq_value *v)
{
    return !v || dq_match_constant(v) || (v->graph == f->graph && fixed[dq_rewriter_index(f, v)]);
}

static bool follows(const dq_rewriter *f, const bool *fixed, const dq_node *node)
{
    if (!node->op || (node->op->impl->flags & (DQ_OP_IMPURE | DQ_OP_SUBGRAPH)) != 0)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_fixed(f, fixed, node->in[i]))
            return false;
    return true;
}

/* Lists the values of the node to fold: parameters, and quantized values of a DequantizeLinear. */
static uint32_t want(const dq_rewriter *f, const bool *fixed, const dq_node *node, const dq_value **requested)
{
    bool dequantizes = strcmp(node->op_type, "DequantizeLinear") == 0;
    uint32_t count = 0;
    if (!dequantizes && strcmp(node->op_type, "QuantizeLinear") != 0)
        return 0;
    for (uint32_t i = !dequantizes; i < node->in_count && i < 3; i++) {
        const dq_value *v = node->in[i];
        if (v && !dq_match_constant(v) && is_fixed(f, fixed, v))
            requested[count++] = v;
    }
    return count;
}

static bool stand_in(dq_rewriter *f, const dq_value *v, const dq_tensor *t)
{
    dq_value *made = dq_rewriter_make_value(f, v->name, t->dtype);
    if (!made)
        return false;
    made->constant = t;
    dq_rewriter_record(f, v)->constant = made;
    return true;
}

/* Evaluates the nodes. Those that fail stay: the plan reports the error. */
static bool compute(dq_rewriter *f, dq_node *const *nodes, uint32_t count, const dq_value *const *requested,
                    uint32_t requested_count)
{
    dq_error why;
    const dq_tensor **tensors = DQ_NEW_ARRAY(f->scratch, requested_count, const dq_tensor *);
    if (!tensors)
        return dq_rewriter_no_memory(f);
    const dq_status status =
        dq_rewriter_evaluate_all(f, nodes, count, NULL, 0, requested, requested_count, tensors, &why);
    bool good = status != DQ_OUT_OF_MEMORY || dq_rewriter_no_memory(f);
    for (uint32_t i = 0; good && status == DQ_OK && i < requested_count; i++)
        good = !tensors[i] || dq_rewriter_record(f, requested[i])->constant ||
               stand_in(f, requested[i], tensors[i]);
    return good;
}

void dq_fold_quantization_params(dq_rewriter *f)
{
    uint32_t count = 0, requested_count = 0;
    bool *fixed = DQ_NEW_ARRAY(f->scratch, f->record_count, bool);
    dq_node **nodes = DQ_NEW_ARRAY(f->scratch, f->count, dq_node *);
    const dq_value **requested = DQ_NEW_ARRAY(f->scratch, (size_t)f->count * 3, const dq_value *);
    if (!fixed || !nodes || !requested) {
        dq_rewriter_no_memory(f);
        return;
    }
    for (uint32_t n = 0; n < f->count; n++) {
        dq_node *node = f->nodes[n];
        requested_count += want(f, fixed, node, requested + requested_count);
        if (!follows(f, fixed, node))
            continue;
        nodes[count++] = node;
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i])
                fixed[dq_rewriter_index(f, node->out[i])] = true;
    }
    if (requested_count)
        (void)compute(f, nodes, count, requested, requested_count);
}

dq_value *dq_match_resolve(const dq_rewriter *f, dq_value *v)
{
    const dq_value_record *record = v ? dq_rewriter_record(f, v) : NULL;
    return record && record->constant ? record->constant : v;
}

/* Converts a constant of 2- or 4-bit quantized values to one of 8 bits. */
static bool widen(dq_rewriter *f, dq_value *v)
{
    const dq_tensor *from = v ? dq_match_constant(dq_match_resolve(f, v)) : NULL;
    bool is_signed = from && (from->dtype == DQ_INT4 || from->dtype == DQ_INT2);
    dq_tensor *to;
    if (!from || (!is_signed && from->dtype != DQ_UINT4 && from->dtype != DQ_UINT2))
        return true;
    dq_value *made =
        dq_rewriter_make_constant(f, is_signed ? DQ_INT8 : DQ_UINT8, from->rank, from->dims, &to);
    for (size_t i = 0; made && i < from->count; i++)
        dq_tensor_put_int(to, i, dq_tensor_get_int(from, i));
    dq_rewriter_record(f, v)->constant = made;
    return made != NULL;
}

bool dq_match_dequantized_weights(dq_rewriter *f, const dq_value *v, dq_dequantized *out)
{
    if (!dq_match_dequantized(f, v, true, out)) {
        const dq_node *node = dq_match_skip_moves(f, v)->producer;
        const dq_tensor *scale = dq_match_op(node, "DequantizeLinear") && v->graph == f->graph
                                     ? dq_match_constant(dq_match_resolve(f, node->in[1]))
                                     : NULL;
        if (!scale || scale->rank > 1 || !widen(f, node->in[0]) || !widen(f, dq_node_input(node, 2)))
            return false;
        if (!dq_match_dequantized(f, v, true, out))
            return false;
    }
    return out->dtype != DQ_INT32 && dq_rewriter_move_to_quantized(f, out);
}
