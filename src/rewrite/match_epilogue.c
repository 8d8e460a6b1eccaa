/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/match_epilogue.h"

#include <string.h>

dq_epilogue dq_epilogue_begin(const dq_value *conv_out, uint32_t at, const dq_tensor *weights)
{
    return (dq_epilogue){.rank = weights->rank,
                         .trailing_axes = weights->rank - 2,
                         .channels = (size_t)weights->dims[0],
                         .last = (dq_value *)(uintptr_t)conv_out,
                         .at = at,
                         .clip = {-INFINITY, INFINITY}};
}

const dq_node *dq_epilogue_next(const dq_rewriter *f, const dq_epilogue *c, const char *op, uint32_t *at,
                                dq_value **other)
{
    if (!dq_rewriter_has_one_use(f, c->last) || c->inner_count == DQ_EPILOGUE_MAX_VALUES)
        return NULL;
    dq_node *node = dq_rewriter_next_use(f, c->at, c->last, at);
    if (!node || !dq_match_op(node, op) || !node->out[0])
        return NULL;
    *other = node->in_count == 2 ? node->in[node->in[0] == c->last] : NULL;
    return node;
}

void dq_epilogue_append(dq_epilogue *c, const dq_node *node, uint32_t at)
{
    c->inner[c->inner_count++] = c->last;
    c->last = node->out[0];
    c->at = at;
}

/* Whether `dims` broadcast along the channels only: one element, or one per channel. An entry -1 is that of a
 * Reshape. */
static bool along_channels(const dq_epilogue *c, size_t rank, const int64_t *dims, size_t count)
{
    if (rank > c->rank || (count != 1 && count != c->channels))
        return false;
    for (size_t d = 0; d < rank; d++) {
        bool channel = d + 1 + c->trailing_axes == rank;
        if (dims[d] != 1 && !(channel && (dims[d] == -1 || dims[d] == (int64_t)c->channels)))
            return false;
    }
    return count == 1 || rank > c->trailing_axes;
}

dq_value *dq_epilogue_per_channel(const dq_epilogue *c, dq_value *v)
{
    const dq_tensor *t = dq_match_constant(v);
    if (t)
        return t->dtype == DQ_FLOAT && along_channels(c, t->rank, t->dims, t->count) ? v : NULL;
    const dq_node *reshape = v->producer;
    if (!dq_match_op(reshape, "Reshape") || reshape->in_count != 2 ||
        dq_node_int(reshape, "allowzero", 0) != 0)
        return NULL;
    const dq_tensor *shape = dq_match_constant(reshape->in[1]);
    t = dq_match_constant(reshape->in[0]);
    if (!t || !shape || t->dtype != DQ_FLOAT || shape->dtype != DQ_INT64 ||
        !along_channels(c, shape->count, dq_data(shape, int64_t), t->count))
        return NULL;
    return reshape->in[0];
}

static bool is_any(const dq_node *node, const char *const *ops)
{
    while (*ops && !dq_match_op(node, *ops))
        ops++;
    return *ops != NULL;
}

/* Whether a value can be assumed to have the shape of the convolution's result when both are added: declared
 * shapes say so, or it comes from another convolution or pool and not from an operator that broadcasts. If
 * the assumption fails, the graph is planned as written. */
static bool is_image(const dq_value *v, const dq_value *like)
{
    static const char *const makers[] = {"Conv",    "ConvInteger", "ConvTranspose",
                                         "MaxPool", "AveragePool", NULL};
    static const char *const passers[] = {"Relu", "Clip", "Add", "Sum", "Mul", "Cast", NULL};
    if (v->type.has_shape && like->type.has_shape) {
        bool same = v->type.rank == like->type.rank;
        for (uint32_t d = 0; same && d < v->type.rank; d++)
            same = v->type.dims[d] >= 0 && v->type.dims[d] == like->type.dims[d];
        if (same)
            return true;
    }
    for (int steps = 0; steps < 16 && v->producer; steps++) {
        if (is_any(v->producer, makers))
            return true;
        if (!is_any(v->producer, passers))
            return false;
        v = v->producer->in[0];
    }
    return false;
}

void dq_epilogue_match_sum(const dq_rewriter *f, dq_epilogue *c)
{
    dq_value *other;
    uint32_t at;
    const dq_node *node = dq_epilogue_next(f, c, "Add", &at, &other);
    if (!node)
        node = dq_epilogue_next(f, c, "Sum", &at, &other);
    if (node && other && !dq_match_constant(other) && is_image(other, c->last)) {
        c->z = other;
        dq_epilogue_append(c, node, at);
    }
}

void dq_epilogue_match_clips(const dq_rewriter *f, dq_epilogue *c)
{
    const dq_node *node;
    uint32_t at;
    dq_clip own = {-INFINITY, INFINITY};
    while (dq_rewriter_has_one_use(f, c->last) && c->inner_count < DQ_EPILOGUE_MAX_VALUES &&
           (node = dq_rewriter_next_use(f, c->at, c->last, &at)) && dq_match_clip(node, &own)) {
        /* The earlier bounds are clipped by the later ones. */
        c->clip =
            (dq_clip){fminf(fmaxf(c->clip.lo, own.lo), own.hi), fminf(fmaxf(c->clip.hi, own.lo), own.hi)};
        own = (dq_clip){-INFINITY, INFINITY};
        dq_epilogue_append(c, node, at);
    }
}

/* Whether `v` is a constant float that broadcasts over all values. */
static bool is_scalar(const dq_epilogue *c, dq_value *v, float *to)
{
    const dq_tensor *t = v ? dq_match_constant(v) : NULL;
    bool is = t && t->count == 1 && dq_epilogue_per_channel(c, v) == v;
    *to = is ? dq_match_float(t, 0) : 0;
    return is && isfinite(*to);
}

/* Matches a hard sigmoid that begins with the node. Returns its last node, with its position in *at. */
static const dq_node *read_sigmoid(const dq_rewriter *f, dq_epilogue *c, const dq_node *node, uint32_t *at)
{
    dq_hswish_f32 *g = &c->gate;
    dq_clip clip = {-INFINITY, INFINITY};
    *g = (dq_hswish_f32){
        .scale = 1, .shift = 0, .low = 0, .high = 1, .divisor = 1, .factor = 1, .term = -0.0f};
    if (dq_match_op(node, "HardSigmoid")) {
        g->scale = dq_node_float(node, "alpha", 0.2f);
        g->shift = dq_node_float(node, "beta", 0.5f);
        return node;
    }
    if (!dq_match_op(node, "Add") || !is_scalar(c, node->in[node->in[0] == c->last], &g->shift) ||
        !dq_rewriter_has_one_use(f, node->out[0]))
        return NULL;
    const dq_node *bounds = dq_rewriter_next_use(f, *at, node->out[0], at);
    if (!bounds || bounds->in[0] != node->out[0] || !dq_match_clip(bounds, &clip))
        return NULL;
    g->low = clip.lo;
    g->high = clip.hi;
    c->inner[c->inner_count++] = node->out[0];
    return bounds;
}

/* Matches the product with the sigmoid. If there is none, restores the list of inner values. */
static bool join_gate(const dq_rewriter *f, dq_epilogue *c)
{
    const uint32_t inner = c->inner_count;
    uint32_t at = c->at, product_at;
    dq_value *x = c->last, *other;
    const dq_node *whole = dq_epilogue_next(f, c, "HardSwish", &at, &other);
    if (whole) {
        c->gate = (dq_hswish_f32){.scale = 1.0f / 6.0f,
                                  .shift = 0.5f,
                                  .low = 0,
                                  .high = 1,
                                  .divisor = 1,
                                  .factor = 1,
                                  .term = -0.0f};
        dq_epilogue_append(c, whole, at);
        return true;
    }
    if (dq_rewriter_use_count(f, x) != 2)
        return false;
    const dq_node *node = dq_rewriter_next_use(f, c->at, x, &at);
    const dq_node *product = node ? dq_rewriter_next_use(f, at, x, &product_at) : NULL;
    const dq_node *sigmoid = product ? read_sigmoid(f, c, node, &at) : NULL;
    dq_value *t = sigmoid ? sigmoid->out[0] : NULL;
    if (!t || !dq_match_op(product, "Mul") || !dq_rewriter_has_one_use(f, t) ||
        product->in[product->in[0] == x] != t) {
        c->inner_count = inner;
        return false;
    }
    c->inner[c->inner_count++] = t;
    dq_epilogue_append(c, product, product_at);
    return true;
}

void dq_epilogue_match_gate(const dq_rewriter *f, dq_epilogue *c)
{
    static const char *const ops[] = {"Div", "Mul", "Add"};
    enum { GATE_VALUES = 6 /* Values that it adds. */ };
    if (c->inner_count + GATE_VALUES > DQ_EPILOGUE_MAX_VALUES || !join_gate(f, c))
        return;
    c->gated = true;
    float *const to[] = {&c->gate.divisor, &c->gate.factor, &c->gate.term};
    for (int i = 0; i < 3; i++) {
        dq_value *other;
        uint32_t at;
        float number;
        const dq_node *node = dq_epilogue_next(f, c, ops[i], &at, &other);
        if (!node || !is_scalar(c, other, &number) || (i == 0 && node->in[0] != c->last))
            continue;
        *to[i] = number;
        dq_epilogue_append(c, node, at);
    }
}

static bool set_floats(dq_rewriter *f, const char *name, size_t count, const float *from, dq_attr *attr)
{
    float *floats = DQ_NEW_ARRAY(f->arena, count, float);
    if (!floats)
        return dq_rewriter_no_memory(f);
    memcpy(floats, from, count * sizeof *floats);
    *attr = (dq_attr){.name = name, .kind = DQ_ATTR_FLOATS, .count = count, .u.floats = floats};
    return true;
}

bool dq_epilogue_clip_attr(dq_rewriter *f, const dq_epilogue *c, const char *name, dq_attr *attr)
{
    return set_floats(f, name, 2, (const float[]){c->clip.lo, c->clip.hi}, attr);
}

bool dq_epilogue_gate_attr(dq_rewriter *f, const dq_epilogue *c, const char *name, dq_attr *attr)
{
    const dq_hswish_f32 *g = &c->gate;
    const float params[] = {g->scale, g->shift, g->low, g->high, g->divisor, g->factor, g->term};
    return set_floats(f, name, sizeof params / sizeof *params, params, attr);
}

void dq_epilogue_replace(dq_rewriter *f, const dq_epilogue *c, dq_node *made)
{
    dq_rewriter_replace(f, c->at, made);
}

bool dq_epilogue_to_float(dq_rewriter *f, const dq_epilogue *c, const dq_node *conv, uint32_t in_count,
                          dq_value **in)
{
    const bool bounded = dq_epilogue_clips(c);
    dq_node *made = dq_rewriter_node(f, (dq_op_id){"dqrun", "ConvIntegerToFloat", 1}, conv, in_count, in,
                                     c->last, conv->attr_count + bounded);
    if (!made)
        return false;
    dq_rewriter_copy_attrs(conv, made);
    if ((bounded && !dq_epilogue_clip_attr(f, c, "clip", &made->attrs[conv->attr_count])) ||
        !dq_rewriter_bind(f, made))
        return false;
    dq_epilogue_replace(f, c, made);
    return true;
}
