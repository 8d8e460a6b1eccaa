/* float16 and bfloat16 around codes: a graph that dequantizes to them, or quantizes from them, computes in
 * float what it says in half floats, so that the other patterns find what they know:
 *
 *   Conv(DequantizeLinear x, …) of half float scales → the same of float scales, which are the same numbers
 *   Cast to half floats, Cast from half floats       → nothing
 *
 * Results of single operators are not rounded to half floats on the way, and do not overflow there: nearer to
 * the formula in real numbers than the graph as written, whose own roundings lie between the two
 * (docs/conformance.md). What stays as it is written, with a Cast in front and behind: values that callers or
 * inner graphs read, codes of 16 bits, which half floats cannot tell apart, what follows from constants alone
 * (weights that the graph quantizes keep their codes), and operators that are not listed here: those that
 * jump, as Floor and ArgMax, would make much of a rounding. */
#include "plan/fuser.h"

#include <stdio.h>
#include <string.h>

typedef struct pass {
    dq_fuser *f;
    dq_value **as;   /* by the index of a value: what stands for it in the new list; NULL: itself */
    dq_value **wide; /* by the index of a value: the same in float; NULL: not there (yet) */
    bool *floats;    /* by the index of a value: given in float by a node that widens, and no mere Cast */
    bool *fixed;  /* by the index of a value: follows from constants, by other nodes than DequantizeLinear */
    bool *kept;   /* by the index of a value: somebody reads it as it is written */
    bool *widens; /* by position in the list */
    dq_node **nodes; /* the new list */
    uint32_t count;
} pass;

/* ---- What widens -------------------------------------------------------------------------------------- */

static bool is_half(const dq_fuser *f, const dq_value *v)
{
    const dq_dtype dtype = v ? dq_fuser_dtype(f, v) : DQ_UNDEFINED;
    return dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16;
}

static bool is_wide_code(const dq_fuser *f, const dq_value *v)
{
    dq_dtype dtype = dq_fuser_dtype(f, v);
    return dtype == DQ_UINT16 || dtype == DQ_INT16;
}

static bool is_listed(const char *list, const char *op)
{
    char name[64];
    return snprintf(name, sizeof name, " %s ", op) < (int)sizeof name && strstr(list, name);
}

static bool computes(const dq_node *node)
{
    static const char ops[] =
        " Abs Add AveragePool BatchNormalization BiasGelu Celu Clip Conv ConvTranspose Cos Div Elu Erf Exp "
        "FastGelu FusedConv FusedMatMul Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool "
        "GroupNormalization HardSigmoid HardSwish InstanceNormalization LRN LayerNormalization LeakyRelu Log "
        "LogSoftmax LpNormalization LpPool MatMul Max MaxPool Mean MeanVarianceNormalization Min Mish Mul "
        "Neg PRelu Pow QuickGelu RMSNormalization Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax "
        "ReduceMean ReduceMin ReduceSum ReduceSumSquare Relu Resize Selu Sigmoid "
        "SimplifiedLayerNormalization Sin SkipLayerNormalization SkipSimplifiedLayerNormalization Softmax "
        "Softplus Softsign Sqrt Sub Sum Swish Tanh ThresholdedRelu Upsample ";
    return is_listed(ops, node->op_type);
}

static bool moves(const dq_node *node)
{
    static const char ops[] =
        " Concat DepthToSpace Dropout Expand Flatten Gather GatherElements GatherND Identity Pad Reshape "
        "Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Where ";
    return is_listed(ops, node->op_type);
}

static bool all_fixed(const pass *p, const dq_node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !dq_fuser_constant(node->in[i]) && !p->fixed[dq_fuser_at(p->f, node->in[i])])
            return false;
    return true;
}

static bool any_half(const dq_fuser *f, uint32_t count, dq_value *const *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_half(f, values[i]))
            return true;
    return false;
}

static bool any_floats(const pass *p, const dq_node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && p->floats[dq_fuser_at(p->f, node->in[i])])
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

/* Whether the node dequantizes to half floats or quantizes them, by parameters that are constants. */
static bool is_border(const dq_fuser *f, const dq_node *node)
{
    if ((!quantizes(node) && !dequantizes(node)) || !node->out[0] || !dq_fuser_constant(node->in[1]) ||
        dq_node_int(node, "precision", 0) != 0 ||
        is_wide_code(f, quantizes(node) ? node->out[0] : node->in[0]))
        return false;
    return is_half(f, node->in[1]) || is_half(f, quantizes(node) ? node->in[0] : node->out[0]);
}

static bool does_widen(const pass *p, const dq_node *node)
{
    const dq_fuser *f = p->f;
    if ((*node->domain && strcmp(node->domain, "com.microsoft") != 0) || node->out_count == 0)
        return false;
    if (dequantizes(node))
        return is_border(f, node);
    if (all_fixed(p, node))
        return false;
    if (dq_fuser_is(node, "Cast"))
        return is_half(f, node->out[0])
                   ? dq_fuser_dtype(f, node->in[0]) == DQ_FLOAT
                   : p->floats[dq_fuser_at(p->f, node->in[0])] && dq_node_int(node, "to", 0) == DQ_FLOAT;
    /* half floats that the model gives are quantized as written: to the bit */
    if (any_floats(p, node) && (moves(node) || is_border(f, node)))
        return true;
    return computes(node) &&
           (any_half(f, node->in_count, node->in) || any_half(f, node->out_count, node->out));
}

static void keep_half(void *arg, dq_value *v)
{
    const pass *p = arg;
    p->kept[dq_fuser_at(p->f, v)] = p->kept[dq_fuser_at(p->f, v)] || is_half(p->f, v);
}

static void keep(void *arg, dq_value *v)
{
    const pass *p = arg;
    p->kept[dq_fuser_at(p->f, v)] = true;
}

static bool holds_graphs(const dq_node *node)
{
    dq_graph *const *graphs;
    for (uint32_t i = 0; i < node->attr_count; i++)
        if (dq_attr_graphs(&node->attrs[i], &graphs) > 0)
            return true;
    return false;
}

/* Finds what widens, and the first node that quantizes or dequantizes what is computed. NULL: none does, as
 * where weights alone are codes: the graph stays in half floats. */
static const dq_node *look(pass *p, const dq_value *const *wanted, uint32_t wanted_count)
{
    dq_fuser *f = p->f;
    const dq_node *first = NULL;
    for (uint32_t n = 0; n < f->count; n++) {
        const dq_node *node = f->nodes[n];
        const bool widens = p->widens[n] = does_widen(p, node);
        const bool fixed = !widens && !dequantizes(node) && all_fixed(p, node);
        if (widens && !first && is_border(f, node) && !all_fixed(p, node))
            first = node;
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i]) {
                p->floats[dq_fuser_at(p->f, node->out[i])] =
                    widens && is_half(f, node->out[i]) && !dq_fuser_is(node, "Cast");
                p->fixed[dq_fuser_at(p->f, node->out[i])] = fixed;
            }
        if (!widens)
            dq_node_each_use(node, holds_graphs(node) ? keep : keep_half, p);
    }
    for (uint32_t i = 0; i < wanted_count; i++)
        p->kept[dq_fuser_at(p->f, wanted[i])] = true;
    return first;
}

/* ---- The new list ------------------------------------------------------------------------------------- */

static dq_value *take(const pass *p, dq_value *v)
{
    return v && p->as[dq_fuser_at(p->f, v)] ? p->as[dq_fuser_at(p->f, v)] : v;
}

/* A value of the model that another node gives now. */
static dq_value *renew(pass *p, const dq_value *v, dq_node *producer)
{
    dq_value *made = DQ_NEW(p->f->arena, dq_value);
    if (!made)
        return dq_fuser_no_memory(p->f), NULL;
    *made = *v;
    made->producer = producer;
    return p->as[dq_fuser_at(p->f, v)] = made;
}

static dq_value *add_cast(pass *p, const dq_node *like, dq_value *from, dq_value *to)
{
    dq_node *cast = from && to ? dq_fuser_node(p->f, "", "Cast", 13, like, 1, &from, to, 1) : NULL;
    if (!cast)
        return NULL;
    cast->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT, .u.i = (int64_t)to->type.dtype};
    if (!dq_fuser_bind(p->f, cast))
        return NULL;
    p->nodes[p->count++] = cast;
    return to;
}

static dq_value *float_constant(dq_fuser *f, const dq_tensor *half)
{
    dq_tensor *t;
    dq_value *v = dq_fuser_make_constant(f, DQ_FLOAT, half->rank, half->dims, &t);
    for (size_t i = 0; v && i < half->count; i++)
        dq_data(t, float)[i] = dq_tensor_get_float(half, i);
    return v;
}

/* The value in float, where it is a half float. */
static dq_value *take_wide(pass *p, const dq_node *like, dq_value *v)
{
    if (!is_half(p->f, v))
        return take(p, v);
    const dq_tensor *constant = dq_fuser_constant(v);
    dq_value **wide = &p->wide[dq_fuser_at(p->f, v)];
    if (!*wide)
        *wide = constant ? float_constant(p->f, constant)
                         : add_cast(p, like, take(p, v), dq_fuser_make_value(p->f, v->name, DQ_FLOAT));
    return *wide;
}

static dq_node *copy_node(dq_fuser *f, const dq_node *node)
{
    dq_node *copy = DQ_NEW(f->arena, dq_node);
    if (!copy)
        return dq_fuser_no_memory(f), NULL;
    *copy = *node;
    copy->in = DQ_NEW_ARRAY(f->arena, node->in_count, dq_value *);
    copy->out = DQ_NEW_ARRAY(f->arena, node->out_count, dq_value *);
    copy->attrs = DQ_NEW_ARRAY(f->arena, node->attr_count, dq_attr);
    if (!copy->in || !copy->out || !copy->attrs)
        return dq_fuser_no_memory(f), NULL;
    dq_fuser_copy_attrs(node, copy);
    return copy;
}

/* A node that stays; its copy where another value stands for one that it reads. */
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

/* The same in float, and behind it what is kept of its results; codes are dequantized anew for that, so as to
 * round once. */
static bool add_wide(pass *p, dq_node *node)
{
    dq_fuser *f = p->f;
    dq_node *copy = copy_node(f, node);
    if (!copy)
        return false;
    for (uint32_t i = 0; i < copy->attr_count; i++)
        if (strcmp(copy->attrs[i].name, "output_dtype") == 0 && is_half(f, node->out[0]))
            copy->attrs[i].u.i = DQ_FLOAT;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !(copy->in[i] = take_wide(p, node, node->in[i])))
            return false;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_value *out = node->out[i];
        if (!is_half(f, out)) {
            if (out && !(copy->out[i] = renew(p, out, copy)))
                return false;
            continue;
        }
        dq_value *made = dq_fuser_make_value(f, out->name, DQ_FLOAT);
        if (!made)
            return false;
        made->type = out->type;
        made->type.dtype = DQ_FLOAT;
        made->producer = copy;
        copy->out[i] = p->wide[dq_fuser_at(p->f, out)] = made;
    }
    if (!dq_fuser_bind(f, copy))
        return false;
    p->nodes[p->count++] = copy;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_value *out = node->out[i];
        if (!is_half(f, out) || !p->kept[dq_fuser_at(p->f, out)])
            continue;
        if (!(dequantizes(node) ? add_as_written(p, node)
                                : add_cast(p, node, copy->out[i], renew(p, out, NULL)) != NULL))
            return false;
    }
    return true;
}

/* A Cast that widens is not needed, unless somebody reads what it gives. */
static bool add_cast_of_model(pass *p, dq_node *node)
{
    dq_value *out = node->out[0], *from = take_wide(p, node, node->in[0]);
    if (!from)
        return false;
    if (is_half(p->f, out)) {
        p->wide[dq_fuser_at(p->f, out)] = from;
        return !p->kept[dq_fuser_at(p->f, out)] || add_as_written(p, node);
    }
    if (p->kept[dq_fuser_at(p->f, out)])
        return add_wide(p, node);
    p->as[dq_fuser_at(p->f, out)] = from;
    return true;
}

static bool add_all(pass *p)
{
    for (uint32_t n = 0; n < p->f->count; n++) {
        dq_node *node = p->f->nodes[n];
        bool added = !p->widens[n]               ? add_as_written(p, node)
                     : dq_fuser_is(node, "Cast") ? add_cast_of_model(p, node)
                                                 : add_wide(p, node);
        if (!added)
            return false;
    }
    return true;
}

void dq_fuse_half(dq_fuser *f, const dq_value *const *wanted, uint32_t wanted_count)
{
    const size_t values = f->use_count;
    size_t most = 0;
    bool any = false;
    for (uint32_t n = 0; n < f->count; n++) {
        const dq_node *node = f->nodes[n];
        any = any || is_border(f, node);
        most += 1 + (size_t)node->in_count + node->out_count; /* itself, and as many Casts */
    }
    if (!any)
        return;
    pass p = {.f = f,
              .as = DQ_NEW_ARRAY(f->passing, values, dq_value *),
              .wide = DQ_NEW_ARRAY(f->passing, values, dq_value *),
              .floats = DQ_NEW_ARRAY(f->passing, values, bool),
              .fixed = DQ_NEW_ARRAY(f->passing, values, bool),
              .kept = DQ_NEW_ARRAY(f->passing, values, bool),
              .widens = DQ_NEW_ARRAY(f->passing, f->count, bool),
              .nodes = DQ_NEW_ARRAY(f->arena, most, dq_node *)};
    if (!p.as || !p.wide || !p.floats || !p.fixed || !p.kept || !p.widens || !p.nodes) {
        dq_fuser_no_memory(f);
        return;
    }
    const dq_node *first = look(&p, wanted, wanted_count);
    if (!first || !add_all(&p))
        return;
    f->nodes = p.nodes;
    f->count = p.count;
    f->use_count += f->value_count;
    dq_fuser_tell(f, first, "half floats around codes are computed as floats, from here on");
}
