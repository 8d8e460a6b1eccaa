/* Quantized products:
 *
 *   QuantizeLinear(Conv(DQ x, DQ w, bias))        → QLinearConv
 *   QuantizeLinear(Gemm(DQ a, DQ b, bias))        → com.microsoft.QGemm
 *   QuantizeLinear(MatMul(DQ a, DQ b))            → QLinearMatMul
 *   MatMul(DQ a, DQ b) (+ bias)                   → com.microsoft.MatMulIntegerToFloat
 *
 * The sum is exact in the integer domain, where the graph as written rounds a float sum; it is then
 * requantized once: at most one quantum apart. A Relu or Clip in between becomes one of codes (fuse_clip.c).
 * A bias that is float, or int32 in another scale, is rounded to int32 in the scale of the products (x_scale
 * * w_scale), which moves a result by at most half of that scale: only done where that is at most half a
 * quantum. */
#include "plan/fuser.h"

#include <math.h>
#include <string.h>

/* ---- Bias ---------------------------------------------------------------------------------------------- */

/* One product to fuse. */
typedef struct product {
    const dq_node *node;
    dq_dequantized x, w;
    size_t channels; /* scales of w that there may be */
    double y_scale;
} product;

static double product_scale(const product *p, size_t channel)
{
    return (double)dq_fuser_scale(p->x.scale_t, 0) * (double)dq_fuser_scale(p->w.scale_t, channel);
}

/* The bias as floats: constant, or dequantized int32 constants. */
static double bias_at(const dq_tensor *constant, const dq_dequantized *dq, size_t channel)
{
    if (constant)
        return (double)dq_data(constant, float)[constant->count == 1 ? 0 : channel];
    const dq_tensor *codes = dq_fuser_constant(dq->codes);
    size_t i = codes->count == 1 ? 0 : channel;
    return (double)(dq_tensor_get_int(codes, i) - dq_fuser_zero(dq->zero_t, i)) *
           (double)dq_fuser_scale(dq->scale_t, i);
}

/* The bias as int32 in the scale of the products; NULL when it cannot be (the reason told). */
static dq_value *int32_bias(dq_fuser *f, const product *p, const dq_value *bias)
{
    dq_dequantized dq = {0};
    const dq_tensor *constant = dq_fuser_constant(bias);
    bool dequantized = !constant && dq_fuser_dequantized(f, bias, true, &dq) && dq.dtype == DQ_INT32;
    const dq_tensor *shape = constant ? constant : dequantized ? dq_fuser_constant(dq.codes) : NULL;
    if (!shape || (constant && constant->dtype != DQ_FLOAT) || shape->rank > 1 ||
        (shape->count != 1 && shape->count != p->channels)) {
        dq_fuser_tell(f, p->node, "not fused: the bias is not constant, or not one a channel");
        return NULL;
    }
    dq_tensor *t;
    dq_value *v = dq_fuser_make_constant(f, DQ_INT32, 1, (int64_t[]){(int64_t)p->channels}, &t);
    for (size_t i = 0; v && i < p->channels; i++) {
        double scale = product_scale(p, i), code = nearbyint(bias_at(constant, &dq, i) / scale);
        if (!(fabs(code) < 2147483648.0) || !(scale <= p->y_scale)) {
            dq_fuser_tell(f, p->node, "not fused: the bias does not fit int32 in the scale of the products");
            return NULL;
        }
        dq_data(t, int32_t)[i] = (int32_t)code;
    }
    return v;
}

/* ---- Conv and Gemm --------------------------------------------------------------------------------------
 */

/* A scale for each of the channels along `axis`, or one; the same of the zero point. */
static bool channels_fit(const dq_dequantized *w, int64_t axis, size_t rank, size_t channels)
{
    if (w->per_tensor)
        return true;
    int64_t given = w->axis < 0 ? w->axis + (int64_t)rank : w->axis;
    return given == axis && w->scale_t->count == channels;
}

static dq_node *make_conv(dq_fuser *f, const product *p, const dq_quantized *q)
{
    const dq_node *conv = p->node;
    bool biased = conv->in_count > 2 && conv->in[2];
    dq_value *in[9] = {NULL};
    dq_fuser_operand(f, &p->x, in);
    dq_fuser_operand(f, &p->w, in + 3);
    dq_fuser_result(f, q, in + 6);
    if (biased && !(in[8] = int32_bias(f, p, conv->in[2])))
        return NULL;
    if (f->failed)
        return NULL;
    dq_node *node =
        dq_fuser_node(f, "", "QLinearConv", 10, conv, biased ? 9 : 8, in, q->node->out[0], conv->attr_count);
    if (node)
        dq_fuser_copy_attrs(conv, node);
    return node;
}

static dq_node *make_gemm(dq_fuser *f, const product *p, const dq_quantized *q)
{
    const dq_node *gemm = p->node;
    bool biased = gemm->in_count > 2 && gemm->in[2];
    dq_value *in[9] = {NULL};
    dq_fuser_operand(f, &p->x, in);
    dq_fuser_operand(f, &p->w, in + 3);
    dq_fuser_result(f, q, in + 7);
    if (biased && !(in[6] = int32_bias(f, p, gemm->in[2])))
        return NULL;
    if (f->failed)
        return NULL;
    dq_node *node = dq_fuser_node(f, "com.microsoft", "QGemm", 1, gemm, 9, in, q->node->out[0], 2);
    if (!node)
        return NULL;
    node->attrs[0] = (dq_attr){.name = "transA", .kind = DQ_ATTR_INT, .u.i = dq_node_int(gemm, "transA", 0)};
    node->attrs[1] = (dq_attr){.name = "transB", .kind = DQ_ATTR_INT, .u.i = dq_node_int(gemm, "transB", 0)};
    return node;
}

static bool conv_channels(product *p)
{
    const dq_tensor *w = dq_fuser_constant(p->w.codes);
    if (!w || w->rank < 3)
        return false;
    p->channels = (size_t)w->dims[0];
    return channels_fit(&p->w, 0, w->rank, p->channels);
}

static bool gemm_channels(product *p)
{
    const dq_tensor *w = dq_fuser_constant(p->w.codes);
    bool transposed = dq_node_int(p->node, "transB", 0) != 0;
    if (!w || w->rank != 2 || dq_node_float(p->node, "alpha", 1) != 1 ||
        dq_node_float(p->node, "beta", 1) != 1)
        return false;
    p->channels = (size_t)w->dims[!transposed];
    return channels_fit(&p->w, transposed ? 0 : 1, 2, p->channels);
}

/* ---- MatMul ----------------------------------------------------------------------------------------------
 */

static dq_node *make_matmul(dq_fuser *f, const product *p, const dq_quantized *q)
{
    dq_value *in[8];
    dq_fuser_operand(f, &p->x, in);
    dq_fuser_operand(f, &p->w, in + 3);
    dq_fuser_result(f, q, in + 6);
    return f->failed ? NULL : dq_fuser_node(f, "", "QLinearMatMul", 21, p->node, 8, in, q->node->out[0], 0);
}

/* Scales of b: one, or of constant weights one a column. */
static bool matmul_channels(const product *p)
{
    const dq_tensor *w = dq_fuser_constant(p->w.codes);
    if (p->w.per_tensor)
        return true;
    return w && w->rank >= 2 &&
           channels_fit(&p->w, (int64_t)w->rank - 1, w->rank, (size_t)w->dims[w->rank - 1]);
}

/* The product's operands; false and the reason told when they are not dequantized 8-bit codes. */
static bool read_operands(const dq_fuser *f, const dq_node *node, product *p)
{
    *p = (product){.node = node};
    if (dq_fuser_dequantized(f, node->in[0], false, &p->x) && p->x.per_tensor &&
        dq_fuser_dequantized(f, node->in[1], false, &p->w))
        return true;
    return false;
}

static bool is_product(const dq_node *node)
{
    return dq_fuser_is(node, "Conv") || dq_fuser_is(node, "Gemm") || dq_fuser_is(node, "MatMul");
}

/* QuantizeLinear at `at`, from a product through clips that nobody else reads. */
static bool fuse_quantized(dq_fuser *f, uint32_t at)
{
    dq_quantized q;
    product p;
    dq_clip c;
    if (!dq_fuser_quantized(f, f->nodes[at], false, &q))
        return false;
    const dq_value *v = dq_fuser_before_clips(f, q.node->in[0], &c);
    const dq_node *node = v->producer;
    if (!node || !is_product(node))
        return false;
    if (!dq_fuser_once(f, v)) {
        dq_fuser_tell(f, node, "not fused: its float result is wanted elsewhere, too");
        return false;
    }
    if (!read_operands(f, node, &p)) {
        dq_fuser_tell(f, node,
                      "not fused: an operand is not dequantized from 8 bits with constant parameters");
        return false;
    }
    p.y_scale = (double)dq_fuser_scale(q.scale_t, 0);
    dq_node *fused = NULL;
    if (dq_fuser_is(node, "Conv") && conv_channels(&p))
        fused = make_conv(f, &p, &q);
    else if (dq_fuser_is(node, "Gemm") && gemm_channels(&p))
        fused = make_gemm(f, &p, &q);
    else if (dq_fuser_is(node, "MatMul") && matmul_channels(&p))
        fused = make_matmul(f, &p, &q);
    if (!fused || !dq_fuser_bind(f, fused) || !dq_fuser_place_clipped(f, at, fused, &q, &c))
        return false;
    dq_fuser_tell(f, node, "fused with its quantization into %s", fused->op_type);
    return true;
}

/* ---- MatMul to float -------------------------------------------------------------------------------------
 */

/* The bias of an Add behind a MatMul: a constant vector as long as there are columns. */
static dq_value *matmul_bias(const dq_node *add, const dq_value *sum, const product *p)
{
    dq_value *other = add->in[add->in[0] == sum ? 1 : 0];
    const dq_tensor *bias = dq_fuser_constant(other), *w = dq_fuser_constant(p->w.codes);
    bool fits = bias && w && bias->dtype == DQ_FLOAT && bias->rank == 1 && w->rank >= 2 &&
                bias->count == (size_t)w->dims[w->rank - 1];
    return fits && other != sum ? other : NULL;
}

/* Whether the one reader of a MatMul's result quantizes it: then that one fuses. */
static bool is_quantized_next(const dq_fuser *f, uint32_t at, const dq_value *v)
{
    dq_quantized q;
    if (!dq_fuser_is(v->producer, "MatMul") || !dq_fuser_once(f, v))
        return false;
    for (uint32_t n = at + 1; n < f->count; n++)
        for (uint32_t i = 0; i < f->nodes[n]->in_count; i++)
            if (f->nodes[n]->in[i] == v)
                return dq_fuser_quantized(f, f->nodes[n], false, &q);
    return false;
}

/* MatMul, or an Add of a bias to one, whose float result stays. */
static bool fuse_to_float(dq_fuser *f, uint32_t at)
{
    dq_node *last = f->nodes[at];
    const dq_node *node = last;
    dq_value *bias = NULL;
    product p;
    if (dq_fuser_is(last, "Add")) {
        for (int side = 0; side < 2 && node == last; side++) {
            const dq_value *v = last->in[side];
            if (v->producer && dq_fuser_is(v->producer, "MatMul") && v->graph == f->graph &&
                dq_fuser_once(f, v))
                node = v->producer;
        }
        if (node == last || !read_operands(f, node, &p) || !(bias = matmul_bias(last, node->out[0], &p)))
            return false;
    } else if (!dq_fuser_is(last, "MatMul") || !read_operands(f, node, &p)) {
        return false;
    }
    if (!matmul_channels(&p) || is_quantized_next(f, at, last->out[0]))
        return false;
    dq_value *in[7] = {p.x.codes, p.w.codes, p.x.scale, p.w.scale, p.x.zero, p.w.zero, bias};
    dq_node *fused =
        dq_fuser_node(f, "com.microsoft", "MatMulIntegerToFloat", 1, node, 7, in, last->out[0], 0);
    if (!fused || !dq_fuser_bind(f, fused))
        return false;
    f->nodes[at] = fused;
    dq_fuser_tell(f, node, "fused with the dequantization of its operands into MatMulIntegerToFloat");
    return true;
}

bool dq_fuse_products(dq_fuser *f, uint32_t at)
{
    return fuse_quantized(f, at) || fuse_to_float(f, at);
}
