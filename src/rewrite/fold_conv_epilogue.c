/* SPDX-License-Identifier: Apache-2.0 */
/* Folds epilogues into float products with constant weights.
 *
 * Matches and replaces:
 *
 *   Conv, ConvTranspose, Gemm, MatMul, then BatchNormalization, Mul and Add of constants per channel
 *                                             → the same with other weights and bias (MatMul: dqrun.MatMul)
 *   Conv (and those) (+ z) (Relu, Clip)       → com.microsoft.FusedConv
 *   the others (and those) (Relu, Clip)       → dqrun.ConvTranspose, Gemm, MatMul
 *
 * Exactness: sums, bounds and terms alone are exact: the same roundings in the same order. Factors are
 * multiplied into the weights in double and rounded once. That changes a result by at most 2^-24 of the sum
 * of its products' magnitudes: less than the error of the float sum of the graph as written, if it has more
 * than one product.
 *
 * A float16 Conv takes only bounds, which are float16 as well: before or after the rounding the result is the
 * same.
 *
 * Conv also takes hard swish, which its kernels compute in the epilogue: the same bits. Other functions
 * remain separate chains after the product (fuse_elementwise.c). In the epilogue they would be slower: the
 * time of the product's stores would no longer be hidden. */
#include "rewrite/match_epilogue.h"

#include <string.h>

/* y = factor * x + term, per channel. */
typedef struct affine {
    double *factor, *term;
    bool scaled, moved;
} affine;

static bool constant_floats(const dq_node *node, uint32_t i, size_t count, const float **data)
{
    const dq_tensor *t = dq_match_constant(dq_node_input(node, i));
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

/* Composes the map with a BatchNormalization. False: another node, or its parameters are not finite. */
static bool join_normalization(const dq_node *node, const dq_epilogue *c, affine *a)
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

static bool join_constant(const dq_value *constant, bool factor, const dq_epilogue *c, affine *a)
{
    const dq_tensor *t = dq_match_constant(constant);
    for (size_t i = 0; i < t->count; i++)
        if (!isfinite(dq_match_float(t, i)))
            return false;
    for (size_t i = 0; i < c->channels; i++) {
        double v = (double)dq_match_float(t, t->count == 1 ? 0 : i);
        a->factor[i] *= factor ? v : 1;
        a->term[i] = factor ? a->term[i] * v : a->term[i] + v;
    }
    a->scaled = a->scaled || factor;
    return true;
}

/* Composes the map with the next node. A term after another term would be rounded once, where the graph
 * rounds twice: as accurate, but not the same bits. */
static bool join_next(const dq_rewriter *f, dq_epilogue *c, affine *a)
{
    dq_value *other;
    uint32_t at;
    const dq_node *node = dq_epilogue_next(f, c, "BatchNormalization", &at, &other);
    /* It normalizes along axis 1. */
    bool joined =
        node && node->in[0] == c->last && c->rank == c->trailing_axes + 2 && join_normalization(node, c, a);
    static const char *const ops[] = {"Mul", "Add"};
    for (int i = 0; i < 2 && !joined; i++) {
        node = dq_epilogue_next(f, c, ops[i], &at, &other);
        dq_value *constant = node ? dq_epilogue_per_channel(c, other) : NULL;
        joined = constant && join_constant(constant, i == 0, c, a);
    }
    if (joined)
        dq_epilogue_append(c, node, at);
    a->moved = a->moved || joined;
    return joined;
}

/* ---- The products ------------------------------------------------------------------------------------- */

typedef struct product {
    enum { CONV, TRANSPOSED, GEMM, MATMUL } kind;
    const dq_node *node;
    const dq_tensor *w;
    dq_epilogue chain;
    /* Weight i belongs to channel i / inner % outer, and to group i / (inner * outer) / group_in. */
    size_t outer, inner, group_in;
} product;

static bool read_product(const dq_node *node, uint32_t at, product *p)
{
    static const char *const names[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    int kind = CONV;
    while (kind <= MATMUL && !dq_match_op(node, names[kind]))
        kind++;
    const dq_tensor *w = kind <= MATMUL ? dq_match_constant(node->in[1]) : NULL;
    if (!w || w->rank < (kind <= TRANSPOSED ? 3 : 2) || !node->out[0] || w->count == 0 ||
        (w->dtype != DQ_FLOAT && (w->dtype != DQ_FLOAT16 || kind != CONV)))
        return false;
    const dq_type *type = &node->out[0]->type;
    int64_t group = dq_node_int(node, "group", 1);
    size_t axis = kind == CONV         ? 0
                  : kind == TRANSPOSED ? 1
                  : kind == GEMM       ? dq_node_int(node, "transB", 0) == 0
                                       : w->rank - 1;
    if (group < 1)
        return false;
    *p = (product){.kind = kind, .node = node, .w = w, .outer = (size_t)w->dims[axis], .group_in = SIZE_MAX};
    p->inner = dq_dims_product(w->dims, axis + 1, w->rank);
    p->chain = dq_epilogue_begin(node->out[0], at, w);
    p->chain.channels = p->outer;
    if (kind == TRANSPOSED) {
        p->group_in = (size_t)(w->dims[0] / group);
        p->chain.channels *= (size_t)group;
    }
    if (kind >= GEMM) {
        p->chain.trailing_axes = 0;
        p->chain.rank = kind == GEMM ? 2 : type->has_shape ? type->rank : 1;
    }
    return p->group_in > 0;
}

/* Reads the constant bias; NULL if there is none. False: it is not constant, or not along the channels. */
static bool read_bias(const product *p, const dq_tensor **bias)
{
    dq_value *v = dq_node_input(p->node, 2);
    *bias = dq_match_constant(v);
    if (!v)
        return true;
    if (!*bias || (*bias)->dtype != DQ_FLOAT)
        return false;
    return p->kind == GEMM ? dq_epilogue_per_channel(&p->chain, v) == v
                           : (*bias)->rank == 1 && (*bias)->count == p->chain.channels;
}

/* Makes weights and bias with the factors and terms applied. */
static bool apply(dq_rewriter *f, const product *p, const affine *a, dq_value **in)
{
    const dq_tensor *w = p->w;
    dq_tensor *made;
    if (!(in[2] = dq_rewriter_make_constant(f, DQ_FLOAT, 1, (int64_t[]){(int64_t)p->chain.channels}, &made)))
        return false;
    for (size_t i = 0; i < p->chain.channels; i++)
        dq_data(made, float)[i] = (float)a->term[i];
    if (!a->scaled)
        return true;
    if (!(in[1] = dq_rewriter_make_constant(f, DQ_FLOAT, w->rank, w->dims, &made)))
        return false;
    for (size_t i = 0; i < w->count; i++) {
        size_t channel = i / p->inner % p->outer, group = i / (p->inner * p->outer) / p->group_in;
        dq_data(made, float)[i] =
            (float)((double)dq_match_float(w, i) * a->factor[group * p->outer + channel]);
    }
    return true;
}

/* Initializes the terms with the bias. False: not possible. */
static bool begin_affine(dq_rewriter *f, const product *p, affine *a)
{
    size_t channels = p->chain.channels;
    double beta = p->kind == GEMM ? (double)dq_node_float(p->node, "beta", 1) : 1;
    const dq_tensor *t;
    if (!read_bias(p, &t))
        return false;
    *a = (affine){DQ_NEW_ARRAY(f->scratch, channels, double), DQ_NEW_ARRAY(f->scratch, channels, double),
                  false, false};
    if (!a->factor || !a->term)
        return dq_rewriter_no_memory(f);
    for (size_t i = 0; i < channels; i++) {
        a->factor[i] = 1;
        a->term[i] = t ? (double)dq_match_float(t, t->count == 1 ? 0 : i) * beta : -0.0;
    }
    return true;
}

/* Sets the activation of FusedConv: the bounds or the gate. */
static bool set_activation(dq_rewriter *f, const dq_epilogue *c, dq_attr *attrs)
{
    bool relu = c->clip.lo == 0 && c->clip.hi == INFINITY;
    dq_string name = {c->gated ? "Gate" : relu ? "Relu" : "Clip", 4};
    attrs[0] = (dq_attr){.name = "activation", .kind = DQ_ATTR_STRING, .u.s = name};
    return c->gated ? dq_epilogue_gate_attr(f, c, "activation_params", &attrs[1])
                    : dq_epilogue_clip_attr(f, c, "activation_params", &attrs[1]);
}

static dq_node *make(dq_rewriter *f, const product *p, dq_value *const *in)
{
    const dq_node *node = p->node;
    const dq_epilogue *c = &p->chain;
    bool bounded = dq_epilogue_clips(c) || c->gated, conv = p->kind == CONV;
    bool own = bounded || c->z || (p->kind == MATMUL && in[2]);
    uint32_t inputs = c->z ? 4 : in[2] ? 3 : 2;
    const char *domain = !own ? "" : conv ? "com.microsoft" : "dqrun";
    dq_node *made = dq_rewriter_node(
        f, (dq_op_id){domain, own && conv ? "FusedConv" : node->op_type, own ? 1 : node->opset}, node, inputs,
        in, c->last, node->attr_count + 2);
    if (!made)
        return NULL;
    made->attr_count = node->attr_count + bounded * (conv ? 2 : 1);
    dq_rewriter_copy_attrs(node, made);
    dq_attr *more = made->attrs + node->attr_count;
    if (bounded && !(conv ? set_activation(f, c, more) : dq_epilogue_clip_attr(f, c, "clip", more)))
        return NULL;
    for (uint32_t i = 0; i < node->attr_count; i++) /* It is included in the bias. */
        if (in[2] != dq_node_input(node, 2) && strcmp(made->attrs[i].name, "beta") == 0)
            made->attrs[i].u.f = 1;
    return made;
}

bool dq_fold_conv_epilogue(dq_rewriter *f)
{
    uint32_t at = f->at;
    product p;
    affine a = {0};
    if (!read_product(f->nodes[at], at, &p))
        return false;
    const dq_node *node = p.node;
    dq_epilogue *c = &p.chain;
    const bool floats = p.w->dtype == DQ_FLOAT;
    bool can_join = floats && begin_affine(f, &p, &a);
    if (f->failed)
        return false;
    while (can_join && join_next(f, c, &a))
        continue;
    if (p.kind == CONV && floats)
        dq_epilogue_match_sum(f, c);
    dq_epilogue_match_clips(f, c);
    if (p.kind == CONV && floats && !dq_epilogue_clips(c))
        dq_epilogue_match_gate(f, c);
    if (c->inner_count == 0)
        return false;
    dq_value *in[4] = {node->in[0], node->in[1], dq_node_input(node, 2), c->z};
    if (a.moved && !apply(f, &p, &a, in))
        return false;
    dq_node *made = make(f, &p, in);
    if (!made || !dq_rewriter_bind(f, made))
        return false;
    dq_epilogue_replace(f, c, made);
    dq_rewriter_explain(f, node, "fused with%s%s%s after it into %s", a.moved ? " factors and terms" : "",
                        c->z ? " a sum" : "",
                        c->gated               ? " a hard sigmoid"
                        : dq_epilogue_clips(c) ? " bounds"
                                               : "",
                        made->op_type);
    return true;
}
