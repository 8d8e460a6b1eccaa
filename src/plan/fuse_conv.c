/* Float convolutions with constant weights:
 *
 *   Conv, then BatchNormalization, Mul and Add of constants a channel    → Conv with other weights and bias
 *   Conv (and those) (+ z) (Relu, Clip)                                  → com.microsoft.FusedConv
 *
 * Sum, bounds, and terms alone are exact: the same roundings in the same order. Factors go into the weights,
 * joined in double and rounded once, which moves a result by at most 2^-24 of the sum of its products'
 * magnitudes: less than what the float sum of the graph as written is off by, where it has more than one
 * product. */
#include "plan/fuse_behind.h"

#include <string.h>

/* y = factor * x + term, for each channel. */
typedef struct affine {
    double *factor, *term;
    bool scaled, moved;
} affine;

static bool constant_floats(const dq_node *node, uint32_t i, size_t count, const float **data)
{
    const dq_tensor *t = i < node->in_count ? dq_fuser_constant(node->in[i]) : NULL;
    bool fits = t && t->dtype == DQ_FLOAT && t->rank == 1 && t->count == count;
    *data = fits ? dq_data(t, float) : NULL;
    return fits;
}

static bool is_inference(const dq_node *node)
{
    for (uint32_t i = 1; i < node->out_count; i++)
        if (node->out[i])
            return false;
    return dq_node_int(node, "training_mode", 0) == 0 && dq_node_int(node, "is_test", 1) != 0 &&
           dq_node_int(node, "spatial", 1) != 0;
}

/* Joins what BatchNormalization does; false when it is another node, or its numbers are not finite. */
static bool join_normalization(const dq_node *node, const dq_chain *c, affine *a)
{
    const float *scale, *bias, *mean, *variance;
    double epsilon = (double)dq_node_float(node, "epsilon", 1e-5f);
    if (!constant_floats(node, 1, c->channels, &scale) || !constant_floats(node, 2, c->channels, &bias) ||
        !constant_floats(node, 3, c->channels, &mean) || !constant_floats(node, 4, c->channels, &variance) ||
        !is_inference(node))
        return false;
    for (size_t i = 0; i < c->channels; i++) {
        double factor = (double)scale[i] / sqrt((double)variance[i] + epsilon);
        if (!isfinite(factor) || !isfinite(factor * (double)mean[i] + (double)bias[i]))
            return false;
    }
    for (size_t i = 0; i < c->channels; i++) {
        double factor = (double)scale[i] / sqrt((double)variance[i] + epsilon);
        a->factor[i] *= factor;
        a->term[i] = (a->term[i] - (double)mean[i]) * factor + (double)bias[i];
    }
    a->scaled = true;
    return true;
}

static bool join_constant(const dq_value *constant, bool factor, const dq_chain *c, affine *a)
{
    const dq_tensor *t = dq_fuser_constant(constant);
    for (size_t i = 0; i < t->count; i++)
        if (!isfinite(dq_data(t, float)[i]))
            return false;
    for (size_t i = 0; i < c->channels; i++) {
        double v = (double)dq_data(t, float)[t->count == 1 ? 0 : i];
        a->factor[i] *= factor ? v : 1;
        a->term[i] = factor ? a->term[i] * v : a->term[i] + v;
    }
    a->scaled = a->scaled || factor;
    return true;
}

/* One node more. A term behind another one would be rounded once where the graph rounds twice: as good, not
 * the same bits. */
static bool join_next(const dq_fuser *f, dq_chain *c, affine *a)
{
    dq_value *other;
    uint32_t at;
    const dq_node *node = dq_chain_next(f, c, "BatchNormalization", &at, &other);
    bool joined = node && node->in[0] == c->last && join_normalization(node, c, a);
    static const char *const ops[] = {"Mul", "Add"};
    for (int i = 0; i < 2 && !joined; i++) {
        node = dq_chain_next(f, c, ops[i], &at, &other);
        dq_value *constant = node ? dq_chain_channels(c, other) : NULL;
        joined = constant && join_constant(constant, i == 0, c, a);
    }
    if (joined)
        dq_chain_go_on(c, node, at);
    a->moved = a->moved || joined;
    return joined;
}

static float element(const dq_tensor *t, size_t i)
{
    float v;
    memcpy(&v, (const char *)t->data + i * sizeof v, sizeof v); /* it may be loose */
    return v;
}

/* Weights and bias with the factors and terms in them. */
static bool apply(dq_fuser *f, const dq_tensor *w, const affine *a, dq_value **in)
{
    size_t channels = (size_t)w->dims[0], each = channels ? w->count / channels : 0;
    dq_tensor *made;
    if (!(in[2] = dq_fuser_make_constant(f, DQ_FLOAT, 1, w->dims, &made)))
        return false;
    for (size_t i = 0; i < channels; i++)
        dq_data(made, float)[i] = (float)a->term[i];
    if (!a->scaled)
        return true;
    if (!(in[1] = dq_fuser_make_constant(f, DQ_FLOAT, w->rank, w->dims, &made)))
        return false;
    for (size_t i = 0; i < w->count; i++)
        dq_data(made, float)[i] = (float)((double)element(w, i) * a->factor[i / each]);
    return true;
}

/* The bias as terms; false when it is not constant. */
static bool begin_affine(dq_fuser *f, const dq_node *conv, size_t channels, affine *a)
{
    const float *bias = NULL;
    if (conv->in_count > 2 && conv->in[2] && !constant_floats(conv, 2, channels, &bias))
        return false;
    *a = (affine){DQ_NEW_ARRAY(f->arena, channels, double), DQ_NEW_ARRAY(f->arena, channels, double), false,
                  false};
    if (!a->factor || !a->term) {
        f->failed = true;
        dq_no_memory(f->err, channels * sizeof *a->term, "fused nodes");
        return false;
    }
    for (size_t i = 0; i < channels; i++) {
        a->factor[i] = 1;
        a->term[i] = bias ? (double)bias[i] : -0.0;
    }
    return true;
}

/* The activation function of FusedConv that bounds a result. */
static bool set_activation(dq_fuser *f, const dq_chain *c, dq_attr *attrs)
{
    bool relu = c->clip.lo == 0 && c->clip.hi == INFINITY;
    dq_string name = {relu ? "Relu" : "Clip", 4};
    attrs[0] = (dq_attr){.name = "activation", .kind = DQ_ATTR_STRING, .u.s = name};
    return dq_chain_bounds(f, c, "activation_params", &attrs[1]);
}

static dq_node *make(dq_fuser *f, const dq_node *conv, const dq_chain *c, dq_value *const *in)
{
    bool bounded = dq_chain_bounded(c), fused = bounded || c->z;
    uint32_t inputs = c->z ? 4 : in[2] ? 3 : 2;
    dq_node *made =
        fused ? dq_fuser_node(f, "com.microsoft", "FusedConv", 1, conv, inputs, in, c->last,
                              conv->attr_count + 2 * bounded)
              : dq_fuser_node(f, "", "Conv", conv->opset, conv, inputs, in, c->last, conv->attr_count);
    if (!made)
        return NULL;
    dq_fuser_copy_attrs(conv, made);
    return !bounded || set_activation(f, c, made->attrs + conv->attr_count) ? made : NULL;
}

bool dq_fuse_conv(dq_fuser *f, uint32_t at)
{
    const dq_node *conv = f->nodes[at];
    const dq_tensor *w = dq_fuser_is(conv, "Conv") ? dq_fuser_constant(conv->in[1]) : NULL;
    affine a = {0};
    if (!w || w->rank < 3 || w->dtype != DQ_FLOAT || !conv->out[0])
        return false;
    dq_chain c = dq_chain_begin(conv->out[0], at, w);
    if (!dq_fuser_once(f, c.last))
        return false;
    bool can_join = begin_affine(f, conv, c.channels, &a);
    if (f->failed)
        return false;
    while (can_join && join_next(f, &c, &a))
        continue;
    dq_chain_end(f, &c);
    if (c.inner_count == 0)
        return false;
    dq_value *in[4] = {conv->in[0], conv->in[1], conv->in_count > 2 ? conv->in[2] : NULL, c.z};
    if (a.moved && !apply(f, w, &a, in))
        return false;
    dq_node *made = make(f, conv, &c, in);
    if (!made || !dq_fuser_bind(f, made))
        return false;
    dq_chain_replace(f, &c, made);
    dq_fuser_tell(f, conv, "fused with%s%s%s behind it into %s", a.moved ? " factors and terms" : "",
                  c.z ? " a sum" : "", dq_chain_bounded(&c) ? " bounds" : "", made->op_type);
    return true;
}
