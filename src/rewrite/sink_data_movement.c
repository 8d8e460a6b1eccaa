/* SPDX-License-Identifier: Apache-2.0 */
/* Moves data movement and selection of elements from floats to quantized values. Exact: these operators
 * commute with quantization, as Q(DQ(q)) is q.
 *
 * Matches and replaces:
 *
 *   op(move(DequantizeLinear x))     → op(move(x)) of quantized values (dq_rewriter_quantized_value)
 *   QuantizeLinear(move(op(…)))      → move(QuantizeLinear(op(…))) (dq_rewriter_replace_quantize)
 *
 * Relu and Clip after an operator, between data movement, become one Clip of quantized values. That is exact,
 * because quantizing is monotonic: Q(min(max(v, lo), hi)) = min(max(Q(v), Q(lo)), Q(hi)). It is omitted if
 * the type's range already clips.
 *
 * Leaves alone: comparisons (Relu, Clip, MaxPool, ReduceMax, ReduceMin) of values that may be NaN
 * (value_range.c): comparisons propagate NaN, and QuantizeLinear does not. A maximum over no elements is
 * -infinity, which no dequantized value is. Before an operator, and before a Clip, such a node stays unless
 * its windows and axes are known to have elements. */
#include "base/codec.h"
#include "rewrite/match.h"

#include <math.h>
#include <string.h>

/* ---- Data movement ------------------------------------------------------------------------------------ */

/* Whether the node selects elements. Under a positive scale, quantized values have the order of the real
 * values. */
static bool chooses(const dq_node *node)
{
    return dq_match_trait(node, DQ_TRAIT_SELECTS);
}

static bool is_nearest(const dq_node *node)
{
    const char *mode = dq_node_string(node, "coordinate_transformation_mode", "");
    return dq_match_op(node, "Resize") && strcmp(dq_node_string(node, "mode", "nearest"), "nearest") == 0 &&
           strcmp(mode, "tf_crop_and_resize") != 0; /* That mode fills in values outside of the input. */
}

/* Whether the node is a Pad whose new elements are copies, or *value, a constant. */
static bool is_pad(const dq_node *node, float *value)
{
    *value = 0;
    if (!dq_match_op(node, "Pad") || node->opset < 11)
        return false;
    const dq_value *given = dq_node_input(node, 2);
    if (strcmp(dq_node_string(node, "mode", "constant"), "constant") != 0 || !given)
        return true;
    const dq_tensor *t = dq_match_constant(given);
    if (!t || t->dtype != DQ_FLOAT || t->count != 1)
        return false;
    *value = dq_match_float(t, 0);
    return !isnan(*value);
}

static bool pads_constant(const dq_node *node)
{
    return dq_match_op(node, "Pad") && strcmp(dq_node_string(node, "mode", "constant"), "constant") == 0;
}

/* Whether the node can move quantized values of this scale. `v` must be its data input, not a shape or index.
 */
static bool can_move(const dq_node *node, const dq_value *v, const dq_quant_params *p)
{
    float value;
    if (!node || node->in_count == 0 || node->in[0] != v || !node->out[0])
        return false;
    if (dq_match_trait(node, DQ_TRAIT_DATA_MOVEMENT))
        return node->out_count == 1 || dq_match_op(node, "Split");
    if (chooses(node))
        return node->out_count == 1 && p->scale > 0;
    return node->out_count == 1 && (is_nearest(node) || is_pad(node, &value));
}

/* ---- Moving quantized values -------------------------------------------------------------------------- */

dq_node *dq_rewriter_move_quantized(dq_rewriter *f, const dq_node *node, dq_value *qvalues, dq_dtype dtype,
                                    int64_t pad, dq_value **outs)
{
    dq_value *in[8];
    dq_tensor *t;
    uint32_t count = node->in_count;
    if (count > 8)
        return NULL;
    memcpy(in, node->in, count * sizeof *in);
    in[0] = qvalues;
    if (pads_constant(node)) {
        for (; count < 3; count++)
            in[count] = NULL;
        if (!(in[2] = dq_rewriter_make_constant(f, dtype, 0, NULL, &t)))
            return NULL;
        dq_tensor_put_int(t, 0, pad);
    } else if (dq_match_op(node, "Pad") && count > 2) {
        in[2] = NULL; /* The Pad fills with copies, not with this value, which is no quantized value. */
    }
    /* The standard has no MaxPool of 16 bits. */
    if (dq_match_op(node, "MaxPool") && (dtype == DQ_UINT16 || dtype == DQ_INT16)) {
        const dq_quant_params as_is = {.scale = 1, .dtype = dtype};
        return dq_rewriter_tiled(f, node, qvalues, &as_is, &as_is, outs[0]);
    }
    dq_node *made = dq_rewriter_node(f, (dq_op_id){"", node->op_type, node->opset}, node, count, in, outs[0],
                                     node->attr_count);
    if (!made)
        return NULL;
    dq_rewriter_copy_attrs(node, made);
    if (node->out_count > 1 && !dq_rewriter_set_outputs(f, made, node->out_count, outs))
        return NULL;
    return dq_rewriter_bind(f, made) ? made : NULL;
}

/* ---- Before an operator ------------------------------------------------------------------------------- */

const dq_value *dq_match_skip_moves(const dq_rewriter *f, const dq_value *v)
{
    static const dq_quant_params any = {.scale = 1};
    enum { MAX_LOOKED_BACK = 64 /* Limit for each reader of a long chain of data movement. */ };
    for (int i = 0; i < MAX_LOOKED_BACK && v && v->producer && v->graph == f->graph &&
                    v->producer->in_count > 0 && can_move(v->producer, v->producer->in[0], &any);
         i++)
        v = v->producer->in[0];
    return v;
}

bool dq_match_moves_commute(const dq_rewriter *f, const dq_value *v, const dq_quant_params *p)
{
    float value;
    for (const dq_value *from = dq_match_skip_moves(f, v); v != from; v = v->producer->in[0]) {
        if (!can_move(v->producer, v->producer->in[0], p) ||
            (chooses(v->producer) && !dq_match_holds_elements(v->producer)))
            return false;
        /* The fill value must be exactly representable as a quantized value. */
        if (pads_constant(v->producer) &&
            (!is_pad(v->producer, &value) ||
             (float)(dq_match_quantize(p, value) - p->zero) * p->scale != value))
            return false;
    }
    return true;
}

/* Copies the data movement between `x` and `v` to quantized values, and gives those of `v`. */
static dq_value *moved_qvalues(dq_rewriter *f, const dq_value *v, const dq_dequantized *x,
                               const dq_quant_params *p)
{
    const dq_node *node = v->producer;
    float value;
    if (v == x->node->out[0])
        return x->qvalues;
    dq_value **moved = &dq_rewriter_record(f, v)->moved;
    if (*moved)
        return *moved;
    dq_value *qvalues = moved_qvalues(f, node->in[0], x, p);
    dq_value **outs = qvalues ? DQ_NEW_ARRAY(f->arena, node->out_count, dq_value *) : NULL;
    for (uint32_t i = 0; outs && i < node->out_count; i++)
        if (node->out[i] && !(outs[i] = dq_rewriter_make_value(f, node->out[i]->name, x->dtype)))
            return NULL;
    int64_t pad = is_pad(node, &value) ? dq_match_quantize(p, value) : 0;
    dq_node *made = outs ? dq_rewriter_move_quantized(f, node, qvalues, x->dtype, pad, outs) : NULL;
    if (!made || !dq_rewriter_insert_or_fold(f, made))
        return NULL;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i])
            dq_rewriter_record(f, node->out[i])->moved = outs[i];
    return *moved;
}

dq_value *dq_rewriter_quantized_value(dq_rewriter *f, const dq_dequantized *x)
{
    dq_quant_params p = dq_match_params(x->scale_t, x->zero_t, x->dtype);
    if (!x->moved)
        return x->qvalues;
    return moved_qvalues(f, x->moved, x, &p);
}

bool dq_rewriter_move_to_quantized(dq_rewriter *f, dq_dequantized *x)
{
    x->qvalues = dq_rewriter_quantized_value(f, x);
    x->moved = NULL;
    return x->qvalues != NULL;
}

bool dq_match_transposed_axis(const dq_value *v, const dq_value *from, size_t rank, int64_t *axis)
{
    int64_t requested = *axis < 0 ? *axis + (int64_t)rank : *axis;
    for (int64_t a = 0; a < (int64_t)rank; a++) {
        int64_t at = a;
        for (const dq_value *u = v; u != from; u = u->producer->in[0]) {
            size_t count = 0;
            const int64_t *perm = dq_node_ints(u->producer, "perm", &count);
            if (!dq_match_op(u->producer, "Transpose") || (count != 0 && count != rank))
                return false;
            at = count ? perm[at] : (int64_t)rank - 1 - at;
            if (at < 0 || at >= (int64_t)rank)
                return false;
        }
        if (at == requested) {
            *axis = a;
            return true;
        }
    }
    return false;
}

/* ---- After an operator -------------------------------------------------------------------------------- */

static bool constant_bound(const dq_node *node, uint32_t i, float *bound)
{
    const dq_value *v = dq_node_input(node, i);
    if (!v)
        return true;
    const dq_tensor *t = dq_match_constant(v);
    if (!t || (t->dtype != DQ_FLOAT && t->dtype != DQ_FLOAT16) || t->count != 1)
        return false;
    *bound =
        t->dtype == DQ_FLOAT ? dq_match_float(t, 0) : dq_f16_to_f32((uint16_t)dq_get_bits(t->data, 16, 0));
    return true;
}

bool dq_match_clip(const dq_node *node, dq_clip *c)
{
    dq_clip own = {-INFINITY, INFINITY};
    if (dq_match_op(node, "Relu")) {
        own.lo = 0;
    } else if (dq_match_op(node, "Clip")) {
        own.lo = dq_node_float(node, "min", -INFINITY);
        own.hi = dq_node_float(node, "max", INFINITY);
        if (!constant_bound(node, 1, &own.lo) || !constant_bound(node, 2, &own.hi) || !(own.lo <= own.hi))
            return false;
    } else {
        return false;
    }
    /* Its bounds are clipped by those after it. */
    *c = (dq_clip){fminf(fmaxf(own.lo, c->lo), c->hi), fminf(fmaxf(own.hi, c->lo), c->hi)};
    return true;
}

static bool is_narrowed(const dq_clip *c)
{
    return c->lo > -INFINITY || c->hi < INFINITY;
}

/* The quantized fill value of a Pad, after the later clips. */
static int64_t padded_qvalue(const dq_node *node, const dq_quant_params *p, const dq_clip *c)
{
    float value;
    return is_pad(node, &value) ? dq_match_quantize(p, fminf(fmaxf(value, c->lo), c->hi)) : 0;
}

/* Extends the chain by a node, whose first input then takes its position. False: the chain ends at the node.
 */
static bool extend(const dq_node *node, const dq_quant_params *p, dq_data_movement *tail)
{
    float value;
    if (p->scale > 0 && dq_match_clip(node, &tail->clip)) { /* Larger values have larger quantized values. */
        tail->compares = true;
        return true;
    }
    if (tail->count == DQ_MAX_MOVES || node->out_count != 1 || node->in_count == 0 ||
        !can_move(node, node->in[0], p))
        return false;
    /* The maximum of an empty window must be clipped, too; the fill value of a Pad has other bounds. */
    const bool clips_last =
        tail->clips_last || (chooses(node) && is_narrowed(&tail->clip) && !dq_match_holds_elements(node));
    const bool pads_any = tail->pads_any || is_pad(node, &value);
    if (clips_last && pads_any)
        return false;
    tail->clips_last = clips_last;
    tail->pads_any = pads_any;
    tail->compares = tail->compares || chooses(node);
    tail->moves[tail->count] = node;
    tail->pads[tail->count++] = padded_qvalue(node, p, &tail->clip);
    return true;
}

/* `plain`: only through nodes without comparisons. */
static const dq_value *walk(const dq_rewriter *f, const dq_quantized *q, bool plain, dq_data_movement *tail)
{
    const dq_value *v = q->node->in[0];
    const dq_quant_params p = dq_match_params(q->scale_t, q->zero_t, q->dtype);
    *tail = (dq_data_movement){.clip = {-INFINITY, INFINITY}};
    while (v->producer && v->graph == f->graph && dq_rewriter_has_one_use(f, v)) {
        const dq_data_movement before = *tail;
        if (!extend(v->producer, &p, tail))
            break;
        if (plain && tail->compares) {
            *tail = before;
            break;
        }
        v = v->producer->in[0];
    }
    return v;
}

const dq_value *dq_match_moves(const dq_rewriter *f, const dq_quantized *q, dq_data_movement *tail)
{
    return walk(f, q, false, tail);
}

const dq_value *dq_match_moves_without_nan(const dq_rewriter *f, const dq_quantized *q,
                                           dq_data_movement *tail)
{
    const dq_value *v = walk(f, q, false, tail);
    dq_range range;
    return !tail->compares || dq_match_range(f, v, &range) ? v : walk(f, q, true, tail);
}

const dq_node *dq_match_quantize_ahead(const dq_rewriter *f, const dq_value *v)
{
    static const dq_quant_params any = {.scale = 1};
    dq_quantized q;
    while (dq_rewriter_has_one_use(f, v)) {
        const dq_node *node = dq_rewriter_consumer(f, v);
        dq_clip c = {-INFINITY, INFINITY};
        if (node->in_count == 0 || node->in[0] != v)
            return NULL;
        if (dq_match_quantized(f, node, true, &q))
            return node;
        if (!dq_match_clip(node, &c) && !can_move(node, v, &any))
            return NULL;
        v = node->out[0];
    }
    return NULL;
}

/* Makes a clip of 8-bit values as a lookup table, which is the faster kernel. */
static dq_node *make_clip_table(dq_rewriter *f, const dq_quant_params *p, const dq_quantized *q,
                                const dq_clip *c, dq_value *qvalues, dq_value *out)
{
    enum { CODES = 256 };
    dq_tensor *table;
    dq_value *in[] = {qvalues, dq_rewriter_make_constant(f, p->dtype, 1, (int64_t[]){CODES}, &table)};
    int64_t first = dq_dtype_get(p->dtype)->min, lo = dq_match_quantize(p, c->lo),
            hi = dq_match_quantize(p, c->hi);
    if (!in[1])
        return NULL;
    for (int64_t qvalue = first; qvalue < first + CODES; qvalue++)
        dq_tensor_put_int(table, (size_t)(qvalue - first), qvalue < lo ? lo : qvalue > hi ? hi : qvalue);
    dq_node *node = dq_rewriter_node(f, (dq_op_id){"dqrun", "TableLookup", 1}, q->node, 2, in, out, 0);
    return node && dq_rewriter_bind(f, node) ? node : NULL;
}

static dq_node *make_clip(dq_rewriter *f, const dq_quant_params *p, const dq_quantized *q, const dq_clip *c,
                          dq_value *qvalues, dq_value *out)
{
    dq_tensor *lo, *hi;
    if (p->dtype == DQ_UINT8 || p->dtype == DQ_INT8)
        return make_clip_table(f, p, q, c, qvalues, out);
    dq_value *in[] = {qvalues, dq_rewriter_make_constant(f, p->dtype, 0, NULL, &lo),
                      dq_rewriter_make_constant(f, p->dtype, 0, NULL, &hi)};
    if (!in[1] || !in[2])
        return NULL;
    dq_tensor_put_int(lo, 0, dq_match_quantize(p, c->lo));
    dq_tensor_put_int(hi, 0, dq_match_quantize(p, c->hi));
    dq_node *node = dq_rewriter_node(f, (dq_op_id){"", "Clip", 13}, q->node, 3, in, out, 0);
    return node && dq_rewriter_bind(f, node) ? node : NULL;
}

bool dq_rewriter_replace_quantize(dq_rewriter *f, dq_node *made, const dq_quantized *q,
                                  const dq_data_movement *tail)
{
    dq_quant_params p = dq_match_params(q->scale_t, q->zero_t, q->dtype);
    const dq_dtype_row *row = dq_dtype_get(q->dtype);
    bool clips = p.scale > 0 && (dq_match_quantize(&p, tail->clip.lo) > row->min ||
                                 dq_match_quantize(&p, tail->clip.hi) < row->max);
    dq_node *nodes[DQ_MAX_MOVES + 2] = {made};
    const uint32_t steps = tail->count + clips, clip_at = tail->clips_last ? steps : 1;
    uint32_t move = tail->count;
    for (uint32_t i = 1; i <= steps; i++) {
        dq_value *from =
            i == 1 ? dq_rewriter_make_value(f, q->node->out[0]->name, q->dtype) : nodes[i - 1]->out[0];
        dq_value *to =
            i < steps ? dq_rewriter_make_value(f, q->node->out[0]->name, q->dtype) : q->node->out[0];
        if (!from || !to)
            return false;
        if (clips && i == clip_at) {
            nodes[i] = make_clip(f, &p, q, &tail->clip, from, to);
        } else {
            move--;
            nodes[i] =
                dq_rewriter_move_quantized(f, tail->moves[move], from, q->dtype, tail->pads[move], &to);
        }
        if (!nodes[i])
            return false;
        if (i == 1)
            made->out[0] = from;
    }
    for (uint32_t i = 0; i < steps; i++)
        if (!dq_rewriter_insert_before(f, nodes[i]))
            return false;
    dq_rewriter_replace(f, f->at, nodes[steps]);
    return true;
}

/* ---- The pass ----------------------------------------------------------------------------------------- */

bool dq_sink_data_movement(dq_rewriter *f)
{
    dq_quantized q;
    dq_dequantized x;
    const dq_node *node = f->nodes[f->at];
    if (!dq_match_quantized(f, node, true, &q) || !dq_match_dequantized(f, node->in[0], true, &x) ||
        !x.per_tensor || x.dtype != q.dtype ||
        !dq_match_same_params(x.scale_t, x.zero_t, q.scale_t, q.zero_t))
        return false;
    dq_value *qvalues = dq_rewriter_quantized_value(f, &x);
    dq_node *made =
        qvalues ? dq_rewriter_node(f, (dq_op_id){"", "Identity", 13}, node, 1, &qvalues, node->out[0], 0)
                : NULL;
    if (!made || !dq_rewriter_bind(f, made))
        return false;
    dq_rewriter_replace(f, f->at, made);
    dq_rewriter_explain(f, x.moved ? node->in[0]->producer : node,
                        x.moved ? "works on quantized values"
                                : "gives the quantized values that were dequantized before it");
    return true;
}
