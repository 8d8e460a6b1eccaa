/* SPDX-License-Identifier: Apache-2.0 */
/* Moves DequantizeLinear past Concat, for a product that then reads the concatenated quantized values.
 *
 * Matches: Concat of dequantized values with one scale and zero point, read by Conv, ConvTranspose, Gemm or
 * MatMul.
 *
 * Replaces: Concat of the quantized values -> DequantizeLinear.
 *
 * Exactness: exact, as each element is dequantized as before. */
#include "rewrite/match.h"

bool dq_sink_dequantize_concat(dq_rewriter *f)
{
    const dq_node *node = f->nodes[f->at];
    dq_dequantized first, x;
    dq_value_record *record =
        node->out_count > 0 && node->out[0] ? dq_rewriter_record(f, node->out[0]) : NULL;
    if (!dq_match_op(node, "Concat") || node->in_count == 0 || !record ||
        !dq_match_is_product(dq_rewriter_consumer(f, node->out[0])) ||
        !dq_match_dequantized(f, node->in[0], true, &first))
        return false;
    dq_value **in = DQ_NEW_ARRAY(f->arena, node->in_count, dq_value *);
    if (!in)
        return dq_rewriter_no_memory(f);
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (!dq_match_dequantized(f, node->in[i], true, &x) || x.dtype != first.dtype ||
            !dq_match_same_params(x.scale_t, x.zero_t, first.scale_t, first.zero_t) ||
            !dq_rewriter_move_to_quantized(f, &x))
            return false;
        in[i] = x.qvalues;
    }
    dq_value *qvalues = dq_rewriter_make_value(f, node->out[0]->name, first.dtype);
    dq_node *made = qvalues ? dq_rewriter_node(f, (dq_op_id){"", "Concat", node->opset}, node, node->in_count,
                                               in, qvalues, node->attr_count)
                            : NULL;
    dq_value *back[] = {qvalues, first.scale, first.zero};
    dq_node *last =
        made ? dq_rewriter_node(f, (dq_op_id){first.node->domain, "DequantizeLinear", first.node->opset},
                                node, 3, back, node->out[0], 0)
             : NULL;
    if (!last)
        return false;
    dq_rewriter_copy_attrs(node, made);
    if (!dq_rewriter_bind(f, made) || !dq_rewriter_bind(f, last) || !dq_rewriter_insert_before(f, made))
        return false;
    dq_rewriter_replace(f, f->at, last);
    record->dequantize = last;
    dq_rewriter_explain(f, node, "works on quantized values, which are dequantized after it");
    return true;
}
