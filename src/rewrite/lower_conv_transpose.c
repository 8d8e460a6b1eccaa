/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers ConvTranspose to a sub-pixel convolution.
 *
 *   QLinearConv (kernel: ceil(kernel / stride)) → DepthToSpace → Slice
 *
 * The output position o = q * stride + r of an axis sums x[q - j] * w[j * stride + r]. For each remainder r
 * that is a convolution of x with every stride-th weight, reversed. All remainders are channels of one
 * QLinearConv; DepthToSpace interleaves them, and Slice removes the padding. Missing weights have the
 * quantized value of zero.
 *
 * Exactness: exact, the same sums. */
#include "rewrite/match.h"

#include <limits.h>
#include <string.h>

enum { AXES = 2, MAX_NODES = 6 };

typedef struct shape {
    size_t axes, group, group_in, group_out, phases; /* phases: number of remainders, of all axes. */
    /* begin, end: elements removed from the result. */
    int64_t kernel[AXES], stride[AXES], taps[AXES], begin[AXES], end[AXES];
} shape;

static int64_t item(const dq_node *node, const char *name, size_t i, int64_t absent)
{
    size_t count;
    const int64_t *list = dq_node_ints(node, name, &count);
    return i < count ? list[i] : absent;
}

/* Reads the attributes of an axis. Their lengths are not checked yet. */
static bool read_axis(const dq_node *node, const dq_tensor *w, shape *s, size_t d)
{
    enum { LARGEST = 1 << 12 };
    int64_t k = w->dims[d + 2], stride = item(node, "strides", d, 1),
            extra = item(node, "output_padding", d, 0);
    s->begin[d] = item(node, "pads", d, 0);
    int64_t cut = item(node, "pads", d + s->axes, 0);
    if (k < 1 || k > LARGEST || stride < 1 || stride > LARGEST || extra < 0 || extra > LARGEST ||
        s->begin[d] < 0 || s->begin[d] > LARGEST || cut < 0 || cut > LARGEST ||
        item(node, "dilations", d, 1) != 1)
        return false;
    int64_t length = extra > cut ? k + extra - cut : k;
    s->kernel[d] = k;
    s->stride[d] = stride;
    s->taps[d] = (length + stride - 1) / stride;
    s->end[d] = s->taps[d] * stride - k - extra + cut;
    s->phases *= (size_t)stride;
    return true;
}

static bool read_shape(const dq_node *node, const dq_tensor *w, shape *s)
{
    int64_t group = dq_node_int(node, "group", 1);
    size_t count;
    *s = (shape){.axes = w->rank - 2, .phases = 1};
    if (w->rank < 3 || s->axes > AXES || group < 1 || w->dims[0] % group != 0 || w->dims[1] < 1 ||
        w->dims[0] < 1 || strcmp(dq_node_string(node, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
        (dq_node_ints(node, "output_shape", &count), count != 0))
        return false;
    s->group = (size_t)group;
    s->group_in = (size_t)(w->dims[0] / group);
    s->group_out = (size_t)w->dims[1];
    for (size_t d = 0; d < s->axes; d++)
        if (!read_axis(node, w, s, d))
            return false;
    /* Not if most products would be with missing weights. */
    size_t kernel = dq_dims_product(s->kernel, 0, s->axes), taps = dq_dims_product(s->taps, 0, s->axes);
    return (s->axes < 2 || s->stride[0] == s->stride[1]) && s->phases * taps <= 4 * kernel;
}

/* Offset of the row of weights that tap `at` of phase `phase` reads; -1: none. */
static int64_t source(const shape *s, size_t phase, size_t at)
{
    int64_t from = 0, step = 1;
    for (size_t d = s->axes; d-- > 0;) {
        int64_t r = (int64_t)(phase % (size_t)s->stride[d]), m = (int64_t)(at % (size_t)s->taps[d]);
        int64_t t = (s->taps[d] - 1 - m) * s->stride[d] + r;
        if (t >= s->kernel[d])
            return -1;
        from += t * step;
        step *= s->kernel[d];
        phase /= (size_t)s->stride[d];
        at /= (size_t)s->taps[d];
    }
    return from;
}

static dq_value *make_weights(dq_rewriter *f, const shape *s, const dq_tensor *w, const dq_tensor *zero)
{
    int64_t dims[AXES + 2] = {(int64_t)(s->group * s->group_out * s->phases), (int64_t)s->group_in};
    dq_tensor *t;
    memcpy(dims + 2, s->taps, s->axes * sizeof *dims);
    dq_value *v = dq_rewriter_make_constant(f, w->dtype, w->rank, dims, &t);
    size_t kernel = dq_dims_product(s->kernel, 0, s->axes), taps = dq_dims_product(s->taps, 0, s->axes);
    uint8_t *to = v ? t->data : NULL;
    for (size_t c = 0; v && c < s->group * s->group_out; c++)
        for (size_t phase = 0; phase < s->phases; phase++)
            for (size_t i = 0; i < s->group_in; i++)
                for (size_t at = 0; at < taps; at++) {
                    size_t channel = c / s->group_out * s->group_in + i, out = c % s->group_out;
                    int64_t from = source(s, phase, at);
                    *to++ = from < 0
                                ? (uint8_t)dq_match_zero_point(zero, out)
                                : dq_data(w, uint8_t)[(channel * s->group_out + out) * kernel + (size_t)from];
                }
    return v;
}

/* Repeats a per-channel tensor for each phase. */
static dq_value *repeat(dq_rewriter *f, const shape *s, const dq_tensor *t)
{
    size_t count = s->group * s->group_out * s->phases, size = dq_dtype_get(t->dtype)->bits / 8u;
    dq_tensor *all;
    dq_value *v = dq_rewriter_make_constant(f, t->dtype, 1, (int64_t[]){(int64_t)count}, &all);
    for (size_t i = 0; v && i < count; i++)
        memcpy((char *)all->data + i * size, (const char *)t->data + i / s->phases % t->count * size, size);
    return v;
}

static dq_value *list(dq_rewriter *f, size_t count, const int64_t *values)
{
    dq_tensor *t;
    dq_value *v = dq_rewriter_make_constant(f, DQ_INT64, 1, (int64_t[]){(int64_t)count}, &t);
    if (v)
        memcpy(t->data, values, count * sizeof *values);
    return v;
}

/* A chain of nodes that are not inserted yet. */
typedef struct chain {
    dq_rewriter *f;
    const dq_node *like;
    dq_dtype dtype;
    dq_node *nodes[MAX_NODES];
    uint32_t count;
} chain;

static dq_node *link(chain *c, const char *domain, const char *op, int opset, uint32_t count, dq_value **in,
                     uint32_t attrs)
{
    dq_value *out = dq_rewriter_make_value(c->f, c->like->out[0]->name, c->dtype);
    if (!out)
        return NULL;
    if (c->count > 0)
        in[0] = c->nodes[c->count - 1]->out[0];
    dq_node *node = dq_rewriter_node(c->f, (dq_op_id){domain, op, opset}, c->like, count, in, out, attrs);
    return node ? c->nodes[c->count++] = node : NULL;
}

static const int64_t *keep(dq_rewriter *f, size_t count, const int64_t *values)
{
    int64_t *kept = DQ_NEW_ARRAY(f->arena, count, int64_t);
    if (kept)
        memcpy(kept, values, count * sizeof *values);
    else
        dq_rewriter_no_memory(f);
    return kept;
}

/* Appends the QLinearConv. in[8 … 9]: biases, or NULL. */
static bool link_conv(chain *c, const shape *s, dq_value **in)
{
    int64_t pads[2 * AXES];
    for (size_t d = 0; d < s->axes; d++)
        pads[d] = pads[d + s->axes] = s->taps[d] - 1;
    dq_node *conv = in[9] ? link(c, "dqrun", "QLinearConv", 1, 10, in, 2)
                          : link(c, "", "QLinearConv", 10, in[8] ? 9 : 8, in, 2);
    if (!conv)
        return false;
    conv->attrs[0] = (dq_attr){.name = "group", .kind = DQ_ATTR_INT, .u.i = (int64_t)s->group};
    conv->attrs[1] = (dq_attr){.name = "pads", .kind = DQ_ATTR_INTS, .count = 2 * s->axes};
    return (conv->attrs[1].u.ints = keep(c->f, 2 * s->axes, pads)) != NULL;
}

static bool link_interleave(chain *c, const shape *s)
{
    if (s->axes == 2) {
        dq_value *in[1] = {NULL};
        dq_node *node = link(c, "", "DepthToSpace", 13, 1, in, 2);
        if (!node)
            return false;
        node->attrs[0] = (dq_attr){.name = "blocksize", .kind = DQ_ATTR_INT, .u.i = s->stride[0]};
        node->attrs[1] = (dq_attr){.name = "mode", .kind = DQ_ATTR_STRING, .u.s = {"CRD", 3}};
        return true;
    }
    static const int64_t transposed[] = {0, 1, 3, 2};
    int64_t channels = (int64_t)(s->group * s->group_out);
    dq_value *split[2] = {NULL, list(c->f, 4, (int64_t[]){0, channels, s->stride[0], -1})};
    dq_value *joined[2] = {NULL, list(c->f, 3, (int64_t[]){0, channels, -1})}, *in[1] = {NULL};
    if (!split[1] || !joined[1] || !link(c, "", "Reshape", 14, 2, split, 0))
        return false;
    dq_node *node = link(c, "", "Transpose", 13, 1, in, 1);
    if (!node)
        return false;
    node->attrs[0] = (dq_attr){.name = "perm", .kind = DQ_ATTR_INTS, .count = 4, .u.ints = transposed};
    return link(c, "", "Reshape", 14, 2, joined, 0) != NULL;
}

static bool link_cut(chain *c, const shape *s)
{
    int64_t ends[AXES];
    bool cuts = false;
    for (size_t d = 0; d < s->axes; d++) {
        ends[d] = s->end[d] ? -s->end[d] : INT_MAX;
        cuts = cuts || s->begin[d] || s->end[d];
    }
    dq_value *in[4] = {NULL, list(c->f, s->axes, s->begin), list(c->f, s->axes, ends),
                       list(c->f, s->axes, (int64_t[]){2, 3})};
    return !cuts || (in[1] && in[2] && in[3] && link(c, "", "Slice", 13, 4, in, 0));
}

dq_node *dq_lower_conv_transpose(dq_rewriter *f, const dq_node *node, const dq_dequantized *x,
                                 const dq_dequantized *w, const dq_tensor *bias, const dq_tensor *float_bias,
                                 const dq_quantized *q)
{
    const dq_tensor *qvalues = dq_match_constant(w->qvalues);
    shape s;
    chain c = {.f = f, .like = node, .dtype = q->dtype};
    dq_value *in[10] = {NULL};
    if (!qvalues || !read_shape(node, qvalues, &s)) {
        dq_rewriter_explain(
            f, node,
            "not fused: only with one or two axes of equal strides not above the kernel's size, without "
            "dilations, output_shape and auto_pad");
        return NULL;
    }
    if (!dq_rewriter_operand(f, x, in) || !dq_rewriter_operand(f, w, in + 3))
        return NULL;
    in[3] = make_weights(f, &s, qvalues, w->zero_t);
    if (!w->per_tensor) {
        in[4] = repeat(f, &s, w->scale_t);
        in[5] = repeat(f, &s, dq_match_constant(in[5]));
    }
    dq_rewriter_result(f, q, in + 6);
    if (bias)
        in[8] = repeat(f, &s, bias);
    if (float_bias)
        in[9] = repeat(f, &s, float_bias);
    const dq_product_sums sums = {.x = x,
                                  .w = dq_match_constant(in[3]),
                                  .w_zero = dq_match_constant(in[5]),
                                  .bias = dq_match_constant(in[8]),
                                  .channels = s.group * s.group_out * s.phases};
    if (f->failed || !dq_match_int32_holds(f, node, &sums, "not fused"))
        return NULL;
    if (!link_conv(&c, &s, in) || (s.phases > 1 && !link_interleave(&c, &s)) || !link_cut(&c, &s))
        return NULL;
    dq_node *last = c.nodes[c.count - 1];
    for (uint32_t i = 0; i + 1 < c.count; i++)
        if (!dq_rewriter_bind(f, c.nodes[i]) || !dq_rewriter_insert_before(f, c.nodes[i]))
            return NULL;
    last->out[0] = q->node->out[0];
    return last;
}
