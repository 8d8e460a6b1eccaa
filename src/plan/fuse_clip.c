/* A Relu or Clip between an operator and its QuantizeLinear becomes a Clip of the codes, which is exact as
 * quantizing is monotonic: Q(min(max(v, lo), hi)) = min(max(Q(v), Q(lo)), Q(hi)). It falls away where the
 * type's range already clips. */
#include "plan/fuser.h"

#include <math.h>

static bool constant_bound(const dq_node *node, uint32_t i, float *bound)
{
    if (node->in_count <= i || !node->in[i])
        return true;
    const dq_tensor *t = dq_fuser_constant(node->in[i]);
    if (!t || t->dtype != DQ_FLOAT || t->count != 1)
        return false;
    *bound = dq_data(t, float)[0];
    return true;
}

bool dq_fuser_read_clip(const dq_node *node, dq_clip *c)
{
    if (dq_fuser_is(node, "Relu")) {
        c->lo = fmaxf(c->lo, 0);
        return true;
    }
    if (!dq_fuser_is(node, "Clip"))
        return false;
    float lo = dq_node_float(node, "min", -INFINITY), hi = dq_node_float(node, "max", INFINITY);
    if (!constant_bound(node, 1, &lo) || !constant_bound(node, 2, &hi) || !(lo <= hi))
        return false;
    *c = (dq_clip){fmaxf(c->lo, lo), fminf(c->hi, hi)};
    return c->lo <= c->hi;
}

const dq_value *dq_fuser_before_clips(const dq_fuser *f, const dq_value *v, dq_clip *c)
{
    *c = (dq_clip){-INFINITY, INFINITY};
    while (v->producer && v->graph == f->graph && dq_fuser_once(f, v) && dq_fuser_read_clip(v->producer, c))
        v = v->producer->in[0];
    return v;
}

static int64_t quantize(float v, const dq_quantized *q)
{
    const dq_dtype_row *row = dq_dtype_get(q->dtype);
    double code =
        nearbyint((double)(v / dq_fuser_scale(q->scale_t, 0))) + (double)dq_fuser_zero(q->zero_t, 0);
    return code <= (double)row->min ? row->min : code >= (double)row->max ? row->max : (int64_t)code;
}

bool dq_fuser_place_clipped(dq_fuser *f, uint32_t at, dq_node *made, const dq_quantized *q, const dq_clip *c)
{
    bool unbounded = isinf(c->lo) && isinf(c->hi);
    if (!unbounded && !(dq_fuser_scale(q->scale_t, 0) > 0))
        return false; /* larger values have smaller codes */
    int64_t lo = quantize(c->lo, q), hi = quantize(c->hi, q);
    const dq_dtype_row *row = dq_dtype_get(q->dtype);
    if (unbounded || (lo == row->min && hi == row->max)) {
        f->nodes[at] = made;
        return true;
    }
    dq_tensor *lo_t, *hi_t;
    dq_value *out = made->out[0];
    dq_value *in[] = {dq_fuser_make_value(f, out->name, q->dtype),
                      dq_fuser_make_constant(f, q->dtype, 0, NULL, &lo_t),
                      dq_fuser_make_constant(f, q->dtype, 0, NULL, &hi_t)};
    if (!in[0] || !in[1] || !in[2])
        return false;
    dq_tensor_put_int(lo_t, 0, lo);
    dq_tensor_put_int(hi_t, 0, hi);
    dq_node *node = dq_fuser_node(f, "", "Clip", 13, q->node, 3, in, out, 0);
    if (!node || !dq_fuser_bind(f, node))
        return false;
    made->out[0] = in[0];
    f->nodes[at] = node;
    return dq_fuser_insert(f, at, made);
}
