/* SPDX-License-Identifier: Apache-2.0 */
/* Layout assignment: selects channels last (NHWC) for regions of the graph, after the other passes.
 *
 * Matches: regions, sets of values that must share a layout because pools, sums, concatenations or lookup
 * tables connect them. Convolutions read and write either layout, and bound regions. A conversion at a
 * convolution costs only its longer time for writing NHWC.
 *
 * Replaces: the same operators with channels last. A Transpose of quantized values is inserted if another
 * operator produces or reads a value of the region, or a caller requests it. If a region does not pay off, a
 * pool may still use NHWC alone between two Transposes.
 *
 * Exactness: exact, the same integers in another order.
 *
 * Cost: with channels last a pool processes whole vectors of channels. Whether that gains more than the rest
 * costs is estimated without sizes, which only a plan knows: everything per channel, in units of the
 * additional time of a convolution for a channel of its result (the enum below). A level whose convolution
 * kernels always transpose NCHW to NHWC writes both layouts in the same time, and gains if its input is NHWC.
 */
#include "rewrite/match.h"

#include <string.h>

enum { AXES = 4, MAX_INPUTS = 256 };

/* Costs and gains per channel, as measured on AVX2, with and without kernels for NCHW, at the sizes of image
 * classifiers. */
enum {
    COST_WRITE = 1,     /* Result of a convolution with kernels for NCHW … */
    GAIN_READ = 1,      /* … operand of one without. */
    COST_TRANSPOSE = 2, /* A Transpose. */
    COST_CONCAT = 2,
    GAIN_MAX = 8, /* Pool with stride 1 … */
    GAIN_MAX_STRIDED = 2,
    MIN_STRIDED_CHANNELS = 256, /* … or, from this number of channels on, with larger strides. */
    GAIN_AVERAGE = 40,
    GAIN_AVERAGE_STRIDED = 10
};

typedef enum kind {
    OTHER,
    CONV, /* Reads and writes either layout. */
    MAX,  /* This and the following: one layout for all quantized values … */
    AVERAGE,
    GLOBAL, /* … except its result. */
    SUM,
    CONCAT,
    TABLE
} kind;

/* The record of a value. The record of a region's representative value also describes the region. */
typedef struct value_state {
    uint32_t up;              /* Union-find link to the region's representative. */
    bool image;               /* Known to have the axes batch, channels and two spatial ones. */
    bool from_outside, first; /* given: another operator produces it. first: another operator reads it, or a
                          caller requests it. */
    int64_t channels;
    dq_value *last;  /* The value with channels last, once it exists. */
    bool transposed; /* The value with channels first exists. */
    /* Of the region: */
    int64_t cost, gain;
    uint32_t nodes;
    bool near_tie, taken;
} value_state;

typedef struct pass {
    dq_rewriter *f;
    bool *needed; /* By position in the list, as … */
    kind *kinds;  /* … the kinds of nodes; OTHER if they are not needed. */
    value_state *states;
    uint32_t state_count;
    dq_node **nodes; /* The new list. */
    uint32_t count, capacity;
} pass;

/* ---- Kinds of nodes ----------------------------------------------------------------------------------- */

static const char microsoft[] = "com.microsoft";

static bool is(const dq_node *node, const char *domain, const char *op)
{
    return strcmp(node->domain, domain) == 0 && strcmp(node->op_type, op) == 0;
}

/* Whether the node is this operator of com.microsoft, or the one of domain dqrun with the same name. */
static bool is_quantized(const dq_node *node, const char *op)
{
    return is(node, microsoft, op) || is(node, "dqrun", op);
}

/* The weights of a convolution over two spatial axes; NULL: another node. */
static const dq_tensor *image_weights(const dq_node *node)
{
    bool conv = is(node, "", "QLinearConv") || is_quantized(node, "QLinearConv");
    bool last = dq_node_int(node, "channels_last", 0) != 0 || dq_node_int(node, "x_channels_last", 0) != 0 ||
                dq_node_int(node, "y_channels_last", 0) != 0;
    const dq_tensor *w = conv && !last ? dq_match_constant(node->in[3]) : NULL;
    return w && w->rank == AXES ? w : NULL;
}

static bool is_image_pool(const dq_rewriter *f, const dq_node *node)
{
    size_t axes;
    dq_dtype dtype = dq_match_dtype(f, node->in[0]);
    (void)dq_node_ints(node, "kernel_shape", &axes);
    return node->out_count == 1 && axes + 2 == AXES && (dtype == DQ_UINT8 || dtype == DQ_INT8);
}

static kind kind_of(const dq_rewriter *f, const dq_node *node)
{
    const dq_tensor *w = image_weights(node);
    if (node->out_count == 0 || !node->out[0] || node->in_count > MAX_INPUTS ||
        dq_node_int(node, "channels_last", 0) != 0)
        return OTHER;
    if (w) /* NCHW is faster for a depthwise convolution. */
        return w->dims[1] > 1 || dq_node_int(node, "group", 1) == 1 ? CONV : OTHER;
    if (is(node, "", "MaxPool"))
        return is_image_pool(f, node) ? MAX : OTHER;
    if (is_quantized(node, "QLinearAveragePool"))
        return is_image_pool(f, node) ? AVERAGE : OTHER;
    if (is_quantized(node, "QLinearGlobalAveragePool"))
        return GLOBAL;
    if (is_quantized(node, "QLinearAdd") || is_quantized(node, "QLinearMul"))
        return SUM;
    if (is(node, microsoft, "QLinearConcat"))
        return CONCAT;
    if (is(node, "dqrun", "TableLookup") || is(node, "", "Identity") ||
        is(node, microsoft, "QLinearLeakyRelu") || is(node, microsoft, "QLinearSigmoid"))
        return TABLE;
    return OTHER;
}

/* Gives the inputs of quantized values: first, first + step … */
static uint32_t qvalues_of(const dq_node *node, kind k, uint32_t *step)
{
    *step = k == SUM || k == CONCAT ? 3 : node->in_count;
    return k == CONCAT ? 2 : 0;
}

/* A constant scalar has no layout. */
static bool has_layout(const dq_node *node, kind k, uint32_t i)
{
    const dq_tensor *t = dq_match_constant(node->in[i]);
    uint32_t step, first = qvalues_of(node, k, &step);
    return i >= first && (i - first) % step == 0 && (k != SUM || i < 6) && !(k == SUM && t && t->count == 1);
}

/* ---- Regions ------------------------------------------------------------------------------------------ */

static value_state *at(const pass *p, const dq_value *v)
{
    return &p->states[dq_rewriter_index(p->f, v)];
}

/* Finds the representative with path halving, so that long chains of nodes remain cheap. */
static value_state *region_at(const pass *p, uint32_t i)
{
    for (value_state *v = p->states; v[i].up != i; i = v[i].up)
        v[i].up = v[v[i].up].up;
    return &p->states[i];
}

static value_state *region_of(const pass *p, const dq_value *v)
{
    return region_at(p, dq_rewriter_index(p->f, v));
}

static void join(const pass *p, const dq_value *a, const dq_value *b)
{
    value_state *one = region_of(p, a), *other = region_of(p, b);
    other->up = (uint32_t)(one - p->states);
}

static void need_first(void *arg, dq_value *v)
{
    at(arg, v)->first = true;
}

/* Clamps a number of channels from a file, so that costs do not overflow. */
static int64_t moderate(int64_t channels)
{
    enum { MAX_CHANNELS = 1 << 20 };
    return channels < 0 ? 0 : channels > MAX_CHANNELS ? MAX_CHANNELS : channels;
}

static void know(const pass *p, const dq_value *v, int64_t channels)
{
    at(p, v)->image = true;
    at(p, v)->channels = moderate(channels);
}

/* Sets shapes from convolutions first; look_at_node then propagates them. */
static void look_at_convs(const pass *p)
{
    for (uint32_t n = 0; n < p->f->count; n++) {
        const dq_node *node = p->f->nodes[n];
        const dq_tensor *w = p->needed[n] ? image_weights(node) : NULL;
        if (!w)
            continue;
        know(p, node->in[0], moderate(w->dims[1]) * moderate(dq_node_int(node, "group", 1)));
        know(p, node->out[0], w->dims[0]);
    }
}

static void look_at_node(const pass *p, const dq_node *node, kind k)
{
    int64_t channels = 0;
    bool image = k == MAX || k == AVERAGE, all = true;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (has_layout(node, k, i)) {
            const dq_tensor *t = dq_match_constant(node->in[i]);
            at(p, node->in[i])->image = at(p, node->in[i])->image || (t && t->rank == AXES);
            image = image || at(p, node->in[i])->image;
            all = all && at(p, node->in[i])->image;
            int64_t own = at(p, node->in[i])->channels;
            channels = k == CONCAT ? channels + own : own > channels ? own : channels;
        }
    for (uint32_t i = 0; (k == SUM ? all : image) && i < node->in_count; i++)
        if (has_layout(node, k, i))
            at(p, node->in[i])->image = at(p, node->out[0])->image = true;
    at(p, node->out[0])->channels = moderate(channels);
}

static void collect_values(pass *p)
{
    for (uint32_t i = 0; i < p->state_count; i++)
        p->states[i] = (value_state){.up = i, .from_outside = true};
    for (uint32_t i = 0; i < p->f->requested_count; i++)
        at(p, p->f->requested[i])->first = true;
    look_at_convs(p);
    for (uint32_t n = 0; n < p->f->count; n++) {
        const dq_node *node = p->f->nodes[n];
        kind k = p->kinds[n];
        if (p->needed[n] && k == OTHER)
            dq_node_each_use(node, need_first, p);
        if (k == OTHER)
            continue;
        if (k != CONV)
            look_at_node(p, node, k);
        if (k != GLOBAL)
            at(p, node->out[0])->from_outside = false;
        for (uint32_t i = 0; k != CONV && k != GLOBAL && i < node->in_count; i++)
            if (has_layout(node, k, i))
                join(p, node->in[i], node->out[0]);
    }
}

static int64_t gain_of(const dq_node *node, kind k, int64_t channels)
{
    size_t count;
    bool strided = false;
    const int64_t *strides = dq_node_ints(node, "strides", &count);
    for (size_t i = 0; i < count; i++)
        strided = strided || strides[i] > 1;
    if (k == AVERAGE)
        return channels * (strided ? GAIN_AVERAGE_STRIDED : GAIN_AVERAGE);
    return k != MAX                          ? 0
           : !strided                        ? channels * GAIN_MAX
           : channels < MIN_STRIDED_CHANNELS ? 0
                                             : channels * GAIN_MAX_STRIDED;
}

/* Whether the convolution transposes NCHW input to NHWC itself. For 1×1 windows it already pays off with
 * fewer channels, if the input can be NHWC. */
static bool transposes_planes(const dq_rewriter *f, const dq_node *conv)
{
    enum { OF_PIXELS = 4 };
    const dq_tensor *w = image_weights(conv);
    int64_t deep = w->dims[1] * w->dims[2] * w->dims[3];
    bool pixels = deep == w->dims[1] && dq_node_int(conv, "group", 1) == 1;
    return f->request->nchw_max_depth != SIZE_MAX &&
           (size_t)deep > (pixels ? f->request->nchw_max_depth / OF_PIXELS : f->request->nchw_max_depth);
}

static void weigh(const pass *p)
{
    for (uint32_t n = 0; n < p->f->count; n++) {
        const dq_node *node = p->f->nodes[n];
        kind k = p->kinds[n];
        if (k == OTHER)
            continue;
        value_state *region = region_of(p, node->out[0]);
        int64_t channels = at(p, node->out[0])->channels;
        if (k == GLOBAL)
            continue;
        if (k != CONV)
            region->nodes++;
        else if (transposes_planes(p->f, node))
            region_of(p, node->in[0])->gain += at(p, node->in[0])->channels * GAIN_READ;
        else
            region->cost += channels * COST_WRITE;
        region->cost += k == CONCAT ? channels * COST_CONCAT : 0;
        region->gain += gain_of(node, k, channels);
    }
    for (uint32_t i = 0; i < p->state_count; i++) {
        const value_state *v = &p->states[i];
        value_state *region = region_at(p, i);
        region->cost += (v->from_outside || v->first) * v->channels * COST_TRANSPOSE;
        region->near_tie = region->near_tie || !v->image;
    }
    for (uint32_t i = 0; i < p->state_count; i++)
        p->states[i].taken = !p->states[i].near_tie && p->states[i].gain > p->states[i].cost;
}

static bool is_taken(const pass *p, const dq_value *v)
{
    return v && region_of(p, v)->taken;
}

/* ---- The new list ------------------------------------------------------------------------------------- */

static bool append(pass *p, dq_node *node)
{
    if (!node || p->count == p->capacity)
        return false;
    p->nodes[p->count++] = node;
    return true;
}

/* Inserts a Transpose of quantized values to channels last, or back. */
static bool transpose(pass *p, dq_value *from, dq_value *to, bool last, const dq_node *like)
{
    static const int64_t orders[2][AXES] = {{0, 3, 1, 2}, {0, 2, 3, 1}};
    dq_node *node = dq_rewriter_node(p->f, (dq_op_id){"", "Transpose", 13}, like, 1, &from, to, 1);
    if (!node)
        return false;
    node->uncounted = true;
    node->attrs[0] = (dq_attr){.name = "perm", .kind = DQ_ATTR_INTS, .count = AXES, .u.ints = orders[last]};
    return dq_rewriter_bind(p->f, node) && append(p, node);
}

/* The value with channels last; inserts the node that produces it. */
static dq_value *last_of(pass *p, dq_value *v, const dq_node *like)
{
    if (!at(p, v)->last) {
        dq_value *last = dq_rewriter_make_value(p->f, v->name, dq_match_dtype(p->f, v));
        if (!last || !transpose(p, v, last, true, like))
            return NULL;
        at(p, v)->last = last;
    }
    return at(p, v)->last;
}

/* Ensures that the value also exists with channels first. */
static bool want_first(pass *p, dq_value *v, const dq_node *like)
{
    value_state *v_at = at(p, v);
    if (!is_taken(p, v) || v_at->from_outside || v_at->transposed || !v_at->last)
        return true;
    v_at->transposed = true;
    return transpose(p, v_at->last, v, false, like);
}

/* Copies a node with other operands and one result. Attributes are those of `from`, except for those
 * overridden by `told`, a list that a nameless attribute ends. */
static dq_node *remake(pass *p, const char *domain, const char *op, const dq_node *from, dq_value *const *in,
                       dq_value *out, const dq_attr *told)
{
    uint32_t attr_count = from->attr_count;
    for (const dq_attr *a = told; a->name; a++)
        attr_count++;
    dq_node *node = dq_rewriter_node(p->f, (dq_op_id){domain, op, *domain ? 1 : from->opset}, from,
                                     from->in_count, in, out, attr_count);
    if (!node)
        return NULL;
    node->attr_count = 0;
    for (uint32_t i = 0; i < from->attr_count; i++) {
        const dq_attr *a = told;
        while (a->name && strcmp(a->name, from->attrs[i].name) != 0)
            a++;
        if (!a->name && strcmp(from->attrs[i].name, "channels_last") != 0 &&
            strcmp(from->attrs[i].name, "storage_order") != 0)
            node->attrs[node->attr_count++] = from->attrs[i];
    }
    for (; told->name; told++)
        node->attrs[node->attr_count++] = *told;
    return dq_rewriter_bind(p->f, node) ? node : NULL;
}

static dq_attr flag(const char *name, int64_t value)
{
    return (dq_attr){.name = name, .kind = DQ_ATTR_INT, .u.i = value};
}

static dq_node *make(pass *p, const dq_node *node, kind k, dq_value *const *in, dq_value *out)
{
    static const int64_t moved[AXES] = {0, 3, 1, 2};
    dq_attr told[3] = {{0}};
    if (k == CONV) {
        told[0] = flag("x_channels_last", in[0] != node->in[0]);
        told[1] = flag("y_channels_last", out != node->out[0]);
        return remake(p, "dqrun", "QLinearConv", node, in, out, told);
    }
    if (k == MAX)
        return remake(p, "com.microsoft", "NhwcMaxPool", node, in, out, told);
    if (k == AVERAGE || k == GLOBAL)
        told[0] = flag("channels_last", 1);
    if (k == CONCAT) {
        int64_t axis = dq_node_int(node, "axis", 0);
        told[0] = flag("axis", axis >= -AXES && axis < AXES ? moved[(axis + AXES) % AXES] : axis);
    }
    return remake(p, node->domain, node->op_type, node, in, out, told);
}

/* Whether a pool outside of selected regions gains more than its two Transposes cost. */
static bool is_alone(const pass *p, const dq_node *node, kind k)
{
    int64_t channels = at(p, node->out[0])->channels;
    return (k == MAX || k == AVERAGE) && !is_taken(p, node->out[0]) &&
           gain_of(node, k, channels) > 2 * channels * COST_TRANSPOSE;
}

/* Whether the node uses channels last. */
static bool is_inside(const pass *p, const dq_node *node, kind k)
{
    return k != OTHER &&
           (is_alone(p, node, k) || is_taken(p, node->in[qvalues_of(node, k, &(uint32_t){0})]) ||
            (k != GLOBAL && is_taken(p, node->out[0])));
}

static bool move_node(pass *p, const dq_node *node, kind k)
{
    dq_value *in[MAX_INPUTS], *y = node->out[0], *out = y;
    bool alone = is_alone(p, node, k);
    for (uint32_t i = 0; i < node->in_count; i++) {
        in[i] = node->in[i];
        if (!in[i] || !has_layout(node, k, i) || (!alone && !is_taken(p, in[i])))
            continue;
        in[i] = last_of(p, in[i], node);
        if (!in[i])
            return false;
    }
    if (k == GLOBAL || alone || is_taken(p, y)) {
        out = dq_rewriter_make_value(p->f, y->name, dq_match_dtype(p->f, y));
        if (!out)
            return false;
    }
    if (!append(p, make(p, node, k, in, out)))
        return false;
    if (k == GLOBAL || alone)
        return transpose(p, out, y, false, node);
    if (out != y)
        at(p, y)->last = out;
    return true;
}

typedef struct wants {
    pass *p;
    const dq_node *node;
    bool good;
} wants;

static void want_use(void *arg, dq_value *v)
{
    wants *w = arg;
    w->good = w->good && want_first(w->p, v, w->node);
}

static bool keep(pass *p, dq_node *node)
{
    wants w = {p, node, true};
    dq_node_each_use(node, want_use, &w);
    return w.good && append(p, node);
}

static bool rewrite(pass *p)
{
    dq_rewriter *f = p->f;
    p->capacity = 3 * f->count + p->f->requested_count;
    p->nodes = DQ_NEW_ARRAY(f->arena, p->capacity, dq_node *);
    if (!p->nodes)
        return dq_rewriter_no_memory(f);
    for (uint32_t n = 0; n < f->count; n++) {
        dq_node *node = f->nodes[n];
        kind k = p->kinds[n];
        if (p->needed[n] && !(is_inside(p, node, k) ? move_node(p, node, k) : keep(p, node)))
            return false;
    }
    for (uint32_t i = 0; i < p->f->requested_count; i++)
        if (p->f->requested[i]->graph == f->graph &&
            !want_first(p, (dq_value *)(uintptr_t)p->f->requested[i], p->f->requested[i]->producer))
            return false;
    return true;
}

/* Explains the decision at the first pool of each region. */
static void tell(const pass *p)
{
    for (uint32_t n = 0; n < p->f->count && p->f->request->explain; n++) {
        const dq_node *node = p->f->nodes[n];
        kind k = p->kinds[n];
        if (k != MAX && k != AVERAGE)
            continue;
        value_state *region = region_of(p, node->out[0]);
        if (is_alone(p, node, k))
            dq_rewriter_explain(p->f, node, "has channels last, between two Transpose nodes");
        else if (region->taken)
            dq_rewriter_explain(p->f, node, "has channels last, in a region of %u node%s", region->nodes,
                                region->nodes == 1 ? "" : "s");
        else
            dq_rewriter_explain(p->f, node, "has channels first: %s",
                                region->near_tie
                                    ? "not all values around it surely have two spatial axes"
                                    : "channels last would gain less here than they cost around it");
    }
}

void dq_assign_layout_nhwc(dq_rewriter *f)
{
    pass p = {.f = f, .state_count = f->written_count + f->value_count};
    p.states = DQ_NEW_ARRAY(f->scratch, p.state_count, value_state);
    p.kinds = DQ_NEW_ARRAY(f->scratch, f->count, kind);
    uint32_t *uses;
    if (!p.states || !p.kinds || !dq_rewriter_count_final_uses(f, &uses, &p.needed)) {
        dq_rewriter_no_memory(f);
        return;
    }
    for (uint32_t n = 0; n < f->count; n++)
        p.kinds[n] = p.needed[n] ? kind_of(f, f->nodes[n]) : OTHER;
    collect_values(&p);
    weigh(&p);
    tell(&p);
    bool any = false;
    for (uint32_t n = 0; n < f->count; n++)
        any = any || is_inside(&p, f->nodes[n], p.kinds[n]);
    if (any && rewrite(&p)) {
        f->nodes = p.nodes;
        f->count = p.count;
    }
}
