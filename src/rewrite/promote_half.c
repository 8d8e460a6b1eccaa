/* SPDX-License-Identifier: Apache-2.0 */
/* Promotes half precision to float inside quantized regions.
 *
 * Matches: DequantizeLinear with a float16 or bfloat16 result → operators that are continuous in their inputs
 * → QuantizeLinear to 8 bits. A region is a set of such operators, connected by values that nothing else
 * reads: every path from each of them ends in a QuantizeLinear of the region.
 *
 * Replaces: the same operators in float, so that later passes match them. Scales keep their values, and Casts
 * between half precision and float disappear. Half-precision inputs of the region are cast to float, which is
 * exact. DequantizeLinear is copied for readers outside.
 *
 * Exactness: only the region's QuantizeLinear results differ from the graph as written, by its half-precision
 * roundings and overflows (docs/rewrites.md). All other values are exact.
 *
 * Leaves alone:
 *
 * - values that callers, subgraphs or other operators read, and the values from which they are computed;
 *
 * - regions that no 8-bit value enters, or without an operator other than Cast, which gain nothing;
 *
 * - 16-bit quantized values, which half precision cannot distinguish;
 *
 * - values that depend on constants only, so that weights quantized by the graph keep their values;
 *
 * - operators with jumps, such as Floor and ArgMax.
 *
 * Functions of one quantized value become a lookup table first, which is exact (lower_lut.c). */
#include "rewrite/match.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct pass {
    dq_rewriter *f;
    dq_value **as;       /* By the index of a value: its replacement in the new list; NULL: itself. */
    dq_value **as_float; /* By the index of a value: the same in float; NULL: does not exist (yet). */
    /* By the index of a value: 1 + the position of its producer; 0: no node of the list. */
    uint32_t *producer_of;
    bool *fixed;  /* By the index of a value: depends on constants only, through other nodes than
                     DequantizeLinear. */
    bool *read;   /* By the index of a value: a needed node or a caller reads it. */
    bool *kept;   /* By the index of a value: a reader outside of regions needs it as written. */
    bool *inside; /* By position in the list: belongs to a region. */
    /* By position, union-find: a node of the same region, nearer to its root; the root itself. */
    uint32_t *region;
    /* By position of the root: a DequantizeLinear of 8-bit values that are no weights enters the region. */
    bool *enters;
    bool *computes;  /* By position of the root: the region has an operator other than Cast. */
    dq_node **nodes; /* The new list. */
    uint32_t count;
} pass;

/* ---- Regions ------------------------------------------------------------------------------------------- */

static bool is_real(const dq_rewriter *f, const dq_value *v)
{
    return v && (dq_match_is_half(f, v) || dq_match_dtype(f, v) == DQ_FLOAT);
}

static bool is_8_bit(const dq_rewriter *f, const dq_value *v)
{
    const dq_dtype dtype = dq_match_dtype(f, v);
    return dtype == DQ_UINT8 || dtype == DQ_INT8;
}

static bool is_16_bit(const dq_rewriter *f, const dq_value *v)
{
    const dq_dtype dtype = dq_match_dtype(f, v);
    return dtype == DQ_UINT16 || dtype == DQ_INT16;
}

static bool all_fixed(const pass *p, const dq_node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !dq_match_constant(node->in[i]) && !p->fixed[dq_rewriter_index(p->f, node->in[i])])
            return false;
    return true;
}

static bool any_half(const dq_rewriter *f, uint32_t count, dq_value *const *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (dq_match_is_half(f, values[i]))
            return true;
    return false;
}

static bool quantizes(const dq_node *node)
{
    return strcmp(node->op_type, "QuantizeLinear") == 0;
}

static bool dequantizes(const dq_node *node)
{
    return strcmp(node->op_type, "DequantizeLinear") == 0;
}

/* Whether the node reads only the shape, which is the same in every type. */
static bool reads_shape(const dq_node *node)
{
    return dq_match_op(node, "Shape") || dq_match_op(node, "Size");
}

/* Whether all scales are normal numbers. Otherwise values that half precision rounds to 0 or infinity become
 * NaN, and the others do not. */
static bool are_normal(const dq_tensor *scale)
{
    for (size_t i = 0; i < scale->count; i++)
        if (!isnormal((float)dq_tensor_any_double(scale, i)))
            return false;
    return true;
}

/* Whether the node is a DequantizeLinear to half precision with constant scales. It gives the same numbers in
 * float. */
static bool is_entry(const dq_rewriter *f, const dq_node *node)
{
    const dq_tensor *scale = dequantizes(node) && node->out[0] ? dq_match_constant(node->in[1]) : NULL;
    return scale && dq_match_is_half(f, node->out[0]) && !is_16_bit(f, node->in[0]) && are_normal(scale);
}

/* Whether the node is a QuantizeLinear to 8 bits with one constant scale. */
static bool is_exit(const dq_rewriter *f, const dq_node *node)
{
    const dq_tensor *scale = quantizes(node) && node->out[0] ? dq_match_constant(node->in[1]) : NULL;
    return scale && scale->count == 1 && is_real(f, node->in[1]) && are_normal(scale) &&
           dq_node_int(node, "precision", 0) == 0 && is_real(f, node->in[0]) && is_8_bit(f, node->out[0]);
}

/* Whether the node itself may belong to a region. */
static bool is_member(const pass *p, const dq_node *node)
{
    const dq_rewriter *f = p->f;
    if ((*node->domain && strcmp(node->domain, "com.microsoft") != 0) || node->out_count == 0)
        return false;
    if (dequantizes(node))
        return is_entry(f, node);
    if (all_fixed(p, node))
        return false;
    if (dq_match_op(node, "Cast"))
        return is_real(f, node->in[0]) && is_real(f, node->out[0]) &&
               (dq_match_dtype(f, node->in[0]) == DQ_FLOAT || dq_match_dtype(f, node->out[0]) == DQ_FLOAT);
    return is_exit(f, node) || reads_shape(node) ||
           dq_match_trait(node, DQ_TRAIT_CONTINUOUS | DQ_TRAIT_DATA_MOVEMENT | DQ_TRAIT_COPIES);
}

static bool is_read(const pass *p, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && p->read[dq_rewriter_index(p->f, node->out[i])])
            return true;
    return false;
}

static void read_value(void *arg, dq_value *v)
{
    const pass *p = arg;
    p->read[dq_rewriter_index(p->f, v)] = true;
}

static void keep_value(void *arg, dq_value *v)
{
    const pass *p = arg;
    p->kept[dq_rewriter_index(p->f, v)] = true;
}

/* Whether all readers of the node's results are in regions; they were visited before. A result that is no
 * float, such as the indices of MaxPool, is not. */
static bool stays_inside(const pass *p, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_value *v = node->out[i];
        if (v && p->read[dq_rewriter_index(p->f, v)] &&
            (p->kept[dq_rewriter_index(p->f, v)] || !is_real(p->f, v)))
            return false;
    }
    return true;
}

static void find_givers(pass *p)
{
    for (uint32_t n = 0; n < p->f->count; n++) {
        const dq_node *node = p->f->nodes[n];
        const bool fixed = !dequantizes(node) && all_fixed(p, node);
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i]) {
                p->producer_of[dq_rewriter_index(p->f, node->out[i])] = n + 1;
                p->fixed[dq_rewriter_index(p->f, node->out[i])] = fixed;
            }
    }
}

/* Visits nodes from the last to the first, and marks needed nodes, and nodes whose paths all end in
 * QuantizeLinear. */
static void find_members(pass *p)
{
    dq_rewriter *f = p->f;
    for (uint32_t i = 0; i < f->requested_count; i++)
        p->read[dq_rewriter_index(f, f->requested[i])] = p->kept[dq_rewriter_index(f, f->requested[i])] =
            true;
    for (uint32_t n = f->count; n-- > 0;) {
        const dq_node *node = f->nodes[n];
        p->region[n] = n;
        if (!is_read(p, node))
            continue;
        dq_node_each_use(node, read_value, p);
        p->inside[n] = is_member(p, node) && (is_exit(f, node) || is_entry(f, node) || stays_inside(p, node));
        if (!p->inside[n] && !reads_shape(node))
            dq_node_each_use(node, keep_value, p);
    }
}

static uint32_t root_of(const pass *p, uint32_t n)
{
    while (p->region[n] != n)
        n = p->region[n] = p->region[p->region[n]];
    return n;
}

/* Connects nodes to regions. DequantizeLinear does not connect the regions that read it, since it is copied
 * for each. */
static void connect(pass *p)
{
    const dq_rewriter *f = p->f;
    for (uint32_t n = 0; n < f->count; n++) {
        const dq_node *node = f->nodes[n];
        for (uint32_t i = 0; p->inside[n] && !dequantizes(node) && i < node->in_count; i++) {
            const uint32_t producer_of =
                node->in[i] ? p->producer_of[dq_rewriter_index(p->f, node->in[i])] : 0;
            if (producer_of && p->inside[producer_of - 1] && !dequantizes(f->nodes[producer_of - 1]) &&
                !quantizes(f->nodes[producer_of - 1]) && !p->kept[dq_rewriter_index(p->f, node->in[i])])
                p->region[root_of(p, n)] = root_of(p, producer_of - 1);
        }
    }
}

/* Whether a quantized value that is no constant enters through the node. */
static bool enters_by(const pass *p, const dq_node *node)
{
    const dq_value *x = node->in[0];
    return dequantizes(node) && is_8_bit(p->f, x) && !dq_match_constant(x) &&
           !p->fixed[dq_rewriter_index(p->f, x)];
}

static void measure(const pass *p)
{
    const dq_rewriter *f = p->f;
    for (uint32_t n = 0; n < f->count; n++) {
        const dq_node *node = f->nodes[n];
        if (!p->inside[n] || dequantizes(node))
            continue;
        const uint32_t root = root_of(p, n);
        p->computes[root] = p->computes[root] || (!quantizes(node) && !dq_match_op(node, "Cast"));
        for (uint32_t i = 0; i < node->in_count; i++) {
            const uint32_t producer_of =
                node->in[i] ? p->producer_of[dq_rewriter_index(p->f, node->in[i])] : 0;
            if (producer_of && p->inside[producer_of - 1] && enters_by(p, f->nodes[producer_of - 1]))
                p->enters[root] = true;
        }
    }
}

/* Keeps the regions that gain, with the DequantizeLinear nodes that they read. Everything else stays as
 * written, and so do its inputs, and DequantizeLinear results that nodes outside read. Returns the first node
 * that stays; NULL: none. */
static const dq_node *choose(pass *p)
{
    dq_rewriter *f = p->f;
    const dq_node *first = NULL;
    for (uint32_t n = f->count; n-- > 0;) {
        const dq_node *node = f->nodes[n];
        const uint32_t root = root_of(p, n);
        if (!p->inside[n])
            continue;
        if (dequantizes(node))
            p->inside[n] = p->as_float[dq_rewriter_index(p->f, node->out[0])] != NULL;
        else
            p->inside[n] = p->enters[root] && p->computes[root];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (node->in[i] && p->inside[n])
                p->as_float[dq_rewriter_index(p->f, node->in[i])] =
                    node->in[i]; /* A mark until the new list is made: it is read in float. */
            else if (node->in[i])
                p->kept[dq_rewriter_index(p->f, node->in[i])] = true;
        first = p->inside[n] && any_half(f, node->in_count, node->in) ? node : first;
    }
    memset(p->as_float, 0, (f->written_count + f->value_count) * sizeof *p->as_float);
    return first;
}

/* ---- The new list ------------------------------------------------------------------------------------- */

static dq_value *take(const pass *p, dq_value *v)
{
    return v && p->as[dq_rewriter_index(p->f, v)] ? p->as[dq_rewriter_index(p->f, v)] : v;
}

/* Copies a value of the model that another node produces now. */
static dq_value *renew(pass *p, const dq_value *v, dq_node *producer)
{
    dq_value *made = DQ_NEW(p->f->arena, dq_value);
    if (!made)
        return dq_rewriter_no_memory(p->f), NULL;
    *made = *v;
    made->producer = producer;
    return p->as[dq_rewriter_index(p->f, v)] = made;
}

static dq_value *add_cast(pass *p, const dq_node *like, dq_value *from, dq_value *to)
{
    dq_node *cast =
        from && to ? dq_rewriter_node(p->f, (dq_op_id){"", "Cast", 13}, like, 1, &from, to, 1) : NULL;
    if (!cast)
        return NULL;
    cast->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT, .u.i = (int64_t)to->type.dtype};
    if (!dq_rewriter_bind(p->f, cast))
        return NULL;
    p->nodes[p->count++] = cast;
    return to;
}

static dq_value *float_constant(dq_rewriter *f, const dq_tensor *half)
{
    dq_tensor *t;
    dq_value *v = dq_rewriter_make_constant(f, DQ_FLOAT, half->rank, half->dims, &t);
    for (size_t i = 0; v && i < half->count; i++)
        dq_data(t, float)[i] = dq_tensor_get_float(half, i);
    return v;
}

/* The value in float, if it is a half float. */
static dq_value *take_float(pass *p, const dq_node *like, dq_value *v)
{
    if (!dq_match_is_half(p->f, v))
        return take(p, v);
    const dq_tensor *constant = dq_match_constant(v);
    dq_value **as_float = &p->as_float[dq_rewriter_index(p->f, v)];
    if (!*as_float)
        *as_float = constant ? float_constant(p->f, constant)
                             : add_cast(p, like, take(p, v), dq_rewriter_make_value(p->f, v->name, DQ_FLOAT));
    return *as_float;
}

static dq_node *copy_node(dq_rewriter *f, const dq_node *node)
{
    dq_node *copy = DQ_NEW(f->arena, dq_node);
    if (!copy)
        return dq_rewriter_no_memory(f), NULL;
    *copy = *node;
    copy->made_for = node;
    copy->in = DQ_NEW_ARRAY(f->arena, node->in_count, dq_value *);
    copy->out = DQ_NEW_ARRAY(f->arena, node->out_count, dq_value *);
    copy->attrs = DQ_NEW_ARRAY(f->arena, node->attr_count, dq_attr);
    if (!copy->in || !copy->out || !copy->attrs)
        return dq_rewriter_no_memory(f), NULL;
    dq_rewriter_copy_attrs(node, copy);
    return copy;
}

/* Adds a node that stays, or a copy of it if one of its inputs was replaced. */
static bool add_as_written(pass *p, dq_node *node)
{
    bool same = true;
    for (uint32_t i = 0; i < node->in_count; i++)
        same = same && take(p, node->in[i]) == node->in[i];
    dq_node *copy = same ? node : copy_node(p->f, node);
    if (!copy)
        return false;
    for (uint32_t i = 0; !same && i < node->in_count; i++)
        copy->in[i] = take(p, node->in[i]);
    for (uint32_t i = 0; !same && i < node->out_count; i++)
        if (node->out[i] && !(copy->out[i] = renew(p, node->out[i], copy)))
            return false;
    p->nodes[p->count++] = copy;
    return true;
}

/* Adds the node in float, and a DequantizeLinear also as written if nodes outside of regions read it. */
static bool add_float(pass *p, dq_node *node)
{
    dq_rewriter *f = p->f;
    dq_node *copy = copy_node(f, node);
    if (!copy)
        return false;
    for (uint32_t i = 0; i < copy->attr_count; i++)
        if (strcmp(copy->attrs[i].name, "output_dtype") == 0 && dq_match_is_half(f, node->out[0]))
            copy->attrs[i].u.i = DQ_FLOAT;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !(copy->in[i] = take_float(p, node, node->in[i])))
            return false;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_value *out = node->out[i];
        if (!dq_match_is_half(f, out)) {
            if (out && !(copy->out[i] = renew(p, out, copy)))
                return false;
            continue;
        }
        dq_value *made = dq_rewriter_make_value(f, out->name, DQ_FLOAT);
        if (!made)
            return false;
        made->type = out->type;
        made->type.dtype = DQ_FLOAT;
        made->producer = copy;
        copy->out[i] = p->as_float[dq_rewriter_index(p->f, out)] = made;
    }
    if (!dq_rewriter_bind(f, copy))
        return false;
    p->nodes[p->count++] = copy;
    return !dequantizes(node) || !p->kept[dq_rewriter_index(p->f, node->out[0])] || add_as_written(p, node);
}

static bool add_node(pass *p, uint32_t n)
{
    dq_node *node = p->f->nodes[n];
    if (reads_shape(node) && p->as_float[dq_rewriter_index(p->f, node->in[0])])
        return add_float(p, node);
    if (!p->inside[n])
        return add_as_written(p, node);
    if (!dq_match_op(node, "Cast"))
        return any_half(p->f, node->in_count, node->in) || any_half(p->f, node->out_count, node->out)
                   ? add_float(p, node)
                   : add_as_written(p, node);
    dq_value *from = take_float(p, node, node->in[0]), *out = node->out[0];
    *(dq_match_is_half(p->f, out) ? &p->as_float[dq_rewriter_index(p->f, out)]
                                  : &p->as[dq_rewriter_index(p->f, out)]) = from;
    return from != NULL;
}

/* Adds all needed nodes. Unread nodes are omitted: they may read values that are float now. */
static bool add_all(pass *p)
{
    for (uint32_t n = 0; n < p->f->count; n++)
        if (is_read(p, p->f->nodes[n]) && !add_node(p, n))
            return false;
    return true;
}

static bool any_entry(const dq_rewriter *f)
{
    for (uint32_t n = 0; n < f->count; n++)
        if (is_entry(f, f->nodes[n]))
            return true;
    return false;
}

void dq_promote_half(dq_rewriter *f)
{
    if (!any_entry(f))
        return;
    const size_t values = f->written_count + f->value_count;
    size_t most = 0;
    for (uint32_t n = 0; n < f->count; n++) /* Itself, and as many Casts and copies. */
        most += 1 + (size_t)f->nodes[n]->in_count + f->nodes[n]->out_count;
    pass p = {.f = f,
              .as = DQ_NEW_ARRAY(f->scratch, values, dq_value *),
              .as_float = DQ_NEW_ARRAY(f->scratch, values, dq_value *),
              .producer_of = DQ_NEW_ARRAY(f->scratch, values, uint32_t),
              .fixed = DQ_NEW_ARRAY(f->scratch, values, bool),
              .read = DQ_NEW_ARRAY(f->scratch, values, bool),
              .kept = DQ_NEW_ARRAY(f->scratch, values, bool),
              .inside = DQ_NEW_ARRAY(f->scratch, f->count, bool),
              .region = DQ_NEW_ARRAY(f->scratch, f->count, uint32_t),
              .enters = DQ_NEW_ARRAY(f->scratch, f->count, bool),
              .computes = DQ_NEW_ARRAY(f->scratch, f->count, bool),
              .nodes = DQ_NEW_ARRAY(f->arena, most, dq_node *)};
    if (f->failed || !p.as || !p.as_float || !p.producer_of || !p.fixed || !p.read || !p.kept || !p.inside ||
        !p.region || !p.enters || !p.computes || !p.nodes) {
        dq_rewriter_no_memory(f);
        return;
    }
    find_givers(&p);
    find_members(&p);
    connect(&p);
    measure(&p);
    const dq_node *first = choose(&p);
    if (first && !add_all(&p))
        return;
    if (first) {
        f->nodes = p.nodes;
        f->count = p.count;
        dq_rewriter_explain(f, first, "half precision is computed in float from here to QuantizeLinear");
    }
}
