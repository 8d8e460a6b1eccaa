/* SPDX-License-Identifier: Apache-2.0 */
/* Biases and sums of quantized products: the bias as floats or as int32 in the scale of the products, and the
 * integer types that hold the sums (sum_bounds.c). */
#include "kernels/kernels.h"
#include "rewrite/product.h"

#include <math.h>

/* ---- Bias --------------------------------------------------------------------------------------------- */

static double product_scale(const dq_product *p, size_t channel)
{
    return p->alpha * (double)dq_match_scale(p->x.scale_t, 0) *
           (double)dq_match_scale(p->w.scale_t, channel % p->w.scale_t->count);
}

/* Whether the bias has one value, or one per channel, and keeps the shape of the result. */
static bool bias_fits(const dq_product *p, const dq_tensor *t)
{
    size_t least = p->added && dq_match_op(p->node, "MatMul") ? 1 : p->inner + 2;
    if (t->rank > least)
        return false;
    if (t->count == 1)
        return true;
    size_t trailing_axes = p->added ? p->inner : 0;
    return t->rank > trailing_axes && t->count == p->channels &&
           (size_t)t->dims[t->rank - 1 - trailing_axes] == p->channels;
}

/* The bias of a channel, from a constant or from dequantized constants. */
static double bias_at(const dq_tensor *constant, const dq_dequantized *dq, size_t channel)
{
    if (constant)
        return (double)dq_match_float(constant, constant->count == 1 ? 0 : channel);
    const dq_tensor *qvalues = dq_match_constant(dq->qvalues);
    size_t i = qvalues->count == 1 ? 0 : channel;
    return (double)(dq_tensor_get_int(qvalues, i) - dq_match_zero_point(dq->zero_t, i)) *
           (double)dq_match_scale(dq->scale_t, i);
}

/* Reads the bias for bias_at. False, with an explanation: it is no such constant. */
static bool read_bias(dq_rewriter *f, const dq_product *p, const dq_tensor **constant, dq_dequantized *dq)
{
    *constant = dq_match_constant(p->bias);
    bool dequantized =
        !*constant && dq_match_dequantized(f, p->bias, true, dq) && dq_rewriter_move_to_quantized(f, dq);
    const dq_tensor *shape = *constant ? *constant : dequantized ? dq_match_constant(dq->qvalues) : NULL;
    if (shape && (!*constant || shape->dtype == DQ_FLOAT) && bias_fits(p, shape) &&
        (!dequantized || dq->per_tensor || dq->scale_t->count == shape->count))
        return true;
    dq_rewriter_explain(f, p->node, "not fused: the bias is not constant, or not one a channel");
    return false;
}

dq_value *dq_product_float_bias(dq_rewriter *f, const dq_product *p)
{
    dq_dequantized dq = {0};
    const dq_tensor *constant;
    dq_tensor *t;
    if (p->channels == 0 || !read_bias(f, p, &constant, &dq))
        return NULL;
    dq_value *v = dq_rewriter_make_constant(f, DQ_FLOAT, 1, (int64_t[]){(int64_t)p->channels}, &t);
    for (size_t i = 0; v && i < p->channels; i++)
        dq_data(t, float)[i] = (float)(p->beta * bias_at(constant, &dq, i));
    return v;
}

/* Splits the bias of a channel into an int32 and a remainder. */
typedef struct channel_bias {
    int32_t qvalue;
    float value;
    double rest;  /* In quanta of the result. */
    double exact; /* In the scale of the products. */
} channel_bias;

/* Splits the bias. If the scale of an int32 bias equals that of the products, except for the rounding of
 * their product to float, the bias is taken as one in the scale of the products: quantizers mean it so.
 * False: int32 does not hold it to half a quantum. */
static bool split_bias(const dq_product *p, size_t channel, double value, bool quantized, channel_bias *b)
{
    const double scale = product_scale(p, channel), a = p->alpha * (double)dq_match_scale(p->x.scale_t, 0);
    const float w = dq_match_scale(p->w.scale_t, channel % p->w.scale_t->count);
    b->value = (float)value;
    b->exact = (quantized ? value : (double)b->value) / scale;
    const double qvalue = nearbyint(b->exact);
    if (!(fabs(qvalue) < 2147483648.0))
        return false;
    b->qvalue = (int32_t)qvalue;
    b->rest = dq_requantize_shift(b->qvalue, b->value, a, w, (float)p->y_scale);
    if (quantized && fabs(b->exact - qvalue) <= 1e-6 * fabs(b->exact))
        b->rest = 0;
    return fabs(b->rest) <= DQ_MAX_SHIFT;
}

bool dq_product_int32_bias(dq_rewriter *f, dq_product *p, const char *otherwise)
{
    dq_dequantized dq = {0};
    const dq_tensor *constant;
    dq_tensor *qvalues, *floats;
    bool has_rest = false;
    if (!read_bias(f, p, &constant, &dq))
        return false;
    const int64_t dims[] = {(int64_t)p->channels};
    p->sum_bias = dq_rewriter_make_constant(f, DQ_INT32, 1, dims, &qvalues);
    dq_value *rest = dq_rewriter_make_constant(f, DQ_FLOAT, 1, dims, &floats);
    if (!p->sum_bias || !rest)
        return false;
    for (size_t i = 0; i < p->channels; i++) {
        channel_bias b;
        if (!split_bias(p, i, p->beta * bias_at(constant, &dq, i), !constant && dq.dtype == DQ_INT32, &b)) {
            dq_rewriter_explain(
                f, p->node,
                "the bias of channel %zu is %.9g in the scale of the products, which int32 does not "
                "hold to half a quantum: %s",
                i, b.exact, otherwise);
            p->bias_overflows = true;
            return true;
        }
        dq_data(qvalues, int32_t)[i] = b.qvalue;
        dq_data(floats, float)[i] = b.value;
        has_rest = has_rest || b.rest != 0;
    }
    p->rest_bias = has_rest ? rest : NULL;
    return true;
}

/* ---- Sums --------------------------------------------------------------------------------------------- */

/* Finds the constant operand, whose elements are the weights of a sum, and the other one. False: both are
 * computed. */
static bool find_weights(const dq_product *p, dq_product_sums *s)
{
    const bool gemm = dq_match_op(p->node, "Gemm"), conv = !gemm && !dq_match_op(p->node, "MatMul");
    const dq_tensor *x = dq_match_constant(p->x.qvalues), *w = dq_match_constant(p->w.qvalues);
    *s = (dq_product_sums){.x = &p->x, .w = w, .w_zero = p->w.zero_t};
    if (w && (conv || w->rank < 2)) {
        s->channels = w->rank < 2 ? 1 : (size_t)w->dims[0];
    } else if (w) {
        s->columns = dq_node_int(p->node, "transB", 0) == 0;
        s->channels = (size_t)w->dims[s->columns ? w->rank - 1 : w->rank - 2];
    } else if (x) { /* Rows of x are the weights of columns of w. */
        *s = (dq_product_sums){.x = &p->w, .w = x, .w_zero = p->x.zero_t};
        s->columns = dq_node_int(p->node, "transA", 0) != 0;
        const size_t length = x->rank == 0 ? 1 : (size_t)x->dims[x->rank - 1];
        s->channels = s->columns ? length : length == 0 ? 0 : x->count / length;
    }
    return s->w != NULL;
}

dq_sum_bound dq_product_int32_sums(dq_rewriter *f, const dq_product *p, const char *otherwise)
{
    dq_product_sums s;
    if (!find_weights(p, &s))
        return DQ_SUMS_UNKNOWN;
    s.bias = dq_match_constant(p->sum_bias);
    return dq_match_int32_holds(f, p->node, &s, otherwise) ? DQ_SUMS_FIT : DQ_SUMS_OVERFLOW;
}

bool dq_product_double_sums(dq_rewriter *f, const dq_product *p)
{
    dq_product_sums s;
    return !find_weights(p, &s) || dq_match_double_holds(f, p->node, &s);
}
