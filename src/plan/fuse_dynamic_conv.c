/* Dynamic quantization of convolutions, as quantizers write it:
 *
 *   Mul(Cast(ConvInteger(x, w, zx, zw)), Mul(sx, sw)) (+ bias a channel) (+ z) (Relu, Clip)
 *                                                                      → dqrun.ConvIntegerToFloat
 *
 * The same roundings in the same order: exact to the bit. */
#include "plan/fuser.h"

#include <math.h>

enum { MOST_STEPS = 12 };

/* What is read so far: the chain's last value, and where its node stands. */
typedef struct chain {
    const dq_node *conv;
    size_t rank, channels; /* of the result */
    dq_value *x_scale, *w_scale, *bias, *z;
    dq_clip clip;
    dq_value *last;
    uint32_t at;
    dq_value *inner[MOST_STEPS]; /* values that only the chain reads */
    uint32_t inner_count;
} chain;

/* Says that the one reader of the value has become part of another node. */
static void consume(dq_fuser *f, const dq_value *v)
{
    if (v->id < f->use_count)
        f->uses[v->id] = 0;
}

static bool is_needed(const dq_fuser *f, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && (node->out[i]->id >= f->use_count || f->uses[node->out[i]->id]))
            return true;
    return false;
}

/* The first node behind position `at` that reads the value and is needed, and its position; NULL: none. */
static dq_node *reader_of(const dq_fuser *f, uint32_t at, const dq_value *v, uint32_t *position)
{
    for (uint32_t n = at + 1; n < f->count; n++)
        for (uint32_t i = 0; i < f->nodes[n]->in_count; i++)
            if (f->nodes[n]->in[i] == v && is_needed(f, f->nodes[n])) {
                *position = n;
                return f->nodes[n];
            }
    return NULL;
}

/* The one reader of the chain's last value, when it is this operator; *other is the operand beside it. */
static dq_node *next(const dq_fuser *f, const chain *c, const char *op, uint32_t *at, dq_value **other)
{
    if (!dq_fuser_once(f, c->last) || c->inner_count == MOST_STEPS)
        return NULL;
    dq_node *node = reader_of(f, c->at, c->last, at);
    if (!node || !dq_fuser_is(node, op) || !node->out[0])
        return NULL;
    *other = node->in_count == 2 ? node->in[node->in[0] == c->last] : NULL;
    return node;
}

static void go_on(chain *c, const dq_node *node, uint32_t at)
{
    c->inner[c->inner_count++] = c->last;
    c->last = node->out[0];
    c->at = at;
}

/* Whether `v` says for sure that it is one float. */
static bool is_single(const dq_value *v, size_t rank)
{
    const dq_tensor *t = dq_fuser_constant(v);
    if (t)
        return t->count == 1 && t->rank <= rank && t->dtype == DQ_FLOAT;
    return dq_fuser_is(v->producer, "DynamicQuantizeLinear") && v->producer->out_count > 1 &&
           v->producer->out[1] == v;
}

/* Whether dims broadcast along the channels alone: one element, or one a channel. An entry -1 is a Reshape's
 * "the rest". */
static bool along_channels(const chain *c, size_t rank, const int64_t *dims, size_t count)
{
    if (rank > c->rank || (count != 1 && count != c->channels))
        return false;
    for (size_t d = 0; d < rank; d++) {
        bool channel = d + c->rank - rank == 1;
        if (dims[d] != 1 && !(channel && (dims[d] == -1 || dims[d] == (int64_t)c->channels)))
            return false;
    }
    return count == 1 || rank == c->rank || rank + 1 == c->rank;
}

/* The constant floats, one or one a channel, that `v` is, or is a Reshape of; NULL: none. */
static dq_value *channel_vector(const chain *c, dq_value *v)
{
    const dq_tensor *t = dq_fuser_constant(v);
    if (t)
        return t->dtype == DQ_FLOAT && along_channels(c, t->rank, t->dims, t->count) ? v : NULL;
    const dq_node *reshape = v->producer;
    if (!dq_fuser_is(reshape, "Reshape") || reshape->in_count != 2 ||
        dq_node_int(reshape, "allowzero", 0) != 0)
        return NULL;
    const dq_tensor *shape = dq_fuser_constant(reshape->in[1]);
    t = dq_fuser_constant(reshape->in[0]);
    if (!t || !shape || t->dtype != DQ_FLOAT || shape->dtype != DQ_INT64 ||
        !along_channels(c, shape->count, dq_data(shape, int64_t), t->count))
        return NULL;
    return reshape->in[0];
}

/* Cast, and Mul by the product of the scales. */
static bool read_scaling(const dq_fuser *f, chain *c)
{
    dq_value *scales = NULL;
    uint32_t at;
    const dq_node *cast = next(f, c, "Cast", &at, &scales);
    if (!cast || dq_node_int(cast, "to", 0) != DQ_FLOAT)
        return false;
    go_on(c, cast, at);
    const dq_node *mul = next(f, c, "Mul", &at, &scales);
    if (!mul)
        return false;
    go_on(c, mul, at);
    const dq_node *both = scales->producer;
    if (!dq_fuser_is(both, "Mul"))
        return false;
    for (int side = 0; side < 2; side++) {
        c->x_scale = both->in[side];
        c->w_scale = channel_vector(c, both->in[1 - side]);
        if (c->w_scale && is_single(c->x_scale, c->rank))
            return true;
    }
    return false;
}

static bool is_any(const dq_node *node, const char *const *ops)
{
    while (*ops && !dq_fuser_is(node, *ops))
        ops++;
    return *ops != NULL;
}

/* Whether a value is surely as large as the convolution's result where both are added: shapes say so, or it
 * comes from another convolution or pool and not from something that spreads. What turns out otherwise is
 * planned again as it is written. */
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

/* A bias, a sum with another image, and bounds, each if it is there. */
static void read_rest(const dq_fuser *f, chain *c)
{
    dq_value *other;
    uint32_t at;
    const dq_node *node = next(f, c, "Add", &at, &other);
    if (node && (c->bias = channel_vector(c, other)))
        go_on(c, node, at);
    node = next(f, c, "Add", &at, &other);
    if (!node)
        node = next(f, c, "Sum", &at, &other);
    if (node && other && !dq_fuser_constant(other) && is_image(other, c->last)) {
        c->z = other;
        go_on(c, node, at);
    }
    while (dq_fuser_once(f, c->last) && c->inner_count < MOST_STEPS &&
           (node = reader_of(f, c->at, c->last, &at)) && node->in[0] == c->last &&
           dq_fuser_read_clip(node, &c->clip))
        go_on(c, node, at);
}

static bool set_clip(dq_fuser *f, const chain *c, dq_attr *attr)
{
    float *bounds = DQ_NEW_ARRAY(f->arena, 2, float);
    if (!bounds) {
        f->failed = true;
        dq_no_memory(f->err, 2 * sizeof *bounds, "fused nodes");
        return false;
    }
    bounds[0] = c->clip.lo;
    bounds[1] = c->clip.hi;
    *attr = (dq_attr){.name = "clip", .kind = DQ_ATTR_FLOATS, .count = 2, .u.floats = bounds};
    return true;
}

bool dq_fuse_dynamic_conv(dq_fuser *f, uint32_t at)
{
    const dq_node *conv = f->nodes[at];
    const dq_tensor *w = dq_fuser_is(conv, "ConvInteger") ? dq_fuser_constant(conv->in[1]) : NULL;
    if (!w || w->rank < 3 || !conv->out[0])
        return false;
    chain c = {.conv = conv,
               .rank = w->rank,
               .channels = (size_t)w->dims[0],
               .clip = {-INFINITY, INFINITY},
               .last = conv->out[0],
               .at = at};
    if (!read_scaling(f, &c))
        return false;
    read_rest(f, &c);
    dq_value *in[8] = {conv->in[0],
                       conv->in[1],
                       conv->in_count > 2 ? conv->in[2] : NULL,
                       conv->in_count > 3 ? conv->in[3] : NULL,
                       c.x_scale,
                       c.w_scale,
                       c.bias,
                       c.z};
    bool bounded = !isinf(c.clip.lo) || !isinf(c.clip.hi);
    dq_node *made =
        dq_fuser_node(f, "dqrun", "ConvIntegerToFloat", 1, conv, 8, in, c.last, conv->attr_count + bounded);
    if (!made)
        return false;
    dq_fuser_copy_attrs(conv, made);
    if ((bounded && !set_clip(f, &c, &made->attrs[conv->attr_count])) || !dq_fuser_bind(f, made))
        return false;
    f->nodes[c.at] = made;
    for (uint32_t i = 0; i < c.inner_count; i++)
        consume(f, c.inner[i]);
    dq_fuser_tell(f, conv, "fused with its scaling%s%s%s into ConvIntegerToFloat", c.bias ? ", bias" : "",
                  c.z ? ", sum" : "", bounded ? ", bounds" : "");
    return true;
}
