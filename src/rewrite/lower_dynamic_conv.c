/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers dynamically quantized convolutions, as quantizers write them.
 *
 * Matches and replaces:
 *
 *   Mul(Cast(ConvInteger(x, w, zx, zw)), Mul(sx, sw)) (+ bias per channel) (+ z) (Relu, Clip)
 *                                                                      → dqrun.ConvIntegerToFloat
 *
 * which includes the DynamicQuantizeLinear of x, if only this convolution reads it.
 *
 * Exactness: exact, the same roundings in the same order. */
#include "rewrite/match_epilogue.h"

typedef struct scales {
    dq_value *x, *w;
    dq_value *both; /* Their product. */
} scales;

/* Matches Cast, and Mul by the product of the scales. */
static bool read_scaling(const dq_rewriter *f, dq_epilogue *c, scales *s)
{
    dq_value *product = NULL;
    uint32_t at;
    const dq_node *cast = dq_epilogue_next(f, c, "Cast", &at, &product);
    if (!cast || dq_node_int(cast, "to", 0) != DQ_FLOAT)
        return false;
    dq_epilogue_append(c, cast, at);
    const dq_node *mul = dq_epilogue_next(f, c, "Mul", &at, &product);
    if (!mul)
        return false;
    dq_epilogue_append(c, mul, at);
    const dq_node *both = product->producer;
    s->both = product;
    if (!dq_match_op(both, "Mul"))
        return false;
    for (int side = 0; side < 2; side++) {
        s->x = both->in[side];
        s->w = dq_epilogue_per_channel(c, both->in[1 - side]);
        if (s->w && dq_match_is_scalar_float(s->x, c->rank))
            return true;
    }
    return false;
}

bool dq_lower_dynamic_conv(dq_rewriter *f)
{
    uint32_t at = f->at;
    const dq_node *conv = f->nodes[at], *add;
    const dq_tensor *w = dq_match_op(conv, "ConvInteger") ? dq_match_constant(conv->in[1]) : NULL;
    dq_value *bias = NULL, *other;
    scales s;
    if (!w || w->rank < 3 || !conv->out[0])
        return false;
    dq_epilogue c = dq_epilogue_begin(conv->out[0], at, w);
    if (!read_scaling(f, &c, &s))
        return false;
    if ((add = dq_epilogue_next(f, &c, "Add", &at, &other)) && (bias = dq_epilogue_per_channel(&c, other)))
        dq_epilogue_append(&c, add, at);
    dq_epilogue_match_sum(f, &c);
    dq_epilogue_match_clips(f, &c);
    const dq_node *quantize = dq_match_own_quantize(f, conv, s.x, s.both);
    dq_value *in[8] = {quantize ? quantize->in[0] : conv->in[0],
                       conv->in[1],
                       quantize || conv->in_count < 3 ? NULL : conv->in[2],
                       conv->in_count > 3 ? conv->in[3] : NULL,
                       quantize ? NULL : s.x,
                       s.w,
                       bias,
                       c.z};
    if (!dq_epilogue_to_float(f, &c, conv, 8, in))
        return false;
    dq_rewriter_explain(f, conv, "fused with its %sscaling%s%s%s into ConvIntegerToFloat",
                        quantize ? "operand's quantization and its " : "", bias ? ", bias" : "",
                        c.z ? ", sum" : "", dq_epilogue_clips(&c) ? ", bounds" : "");
    return true;
}
