/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers functions of one 8-bit value to lookup tables.
 *
 * Matches: all nodes between DequantizeLinear and QuantizeLinear that compute element by element on that
 * value and scalar constants (Relu, Sigmoid, x * HardSigmoid(x), a chain of them, or none). QuantizeLinear
 * and DequantizeLinear may occur inside: the function then begins before them. Quantized operators match as
 * well: QLinearMul(x, QLinearSigmoid(x)). So do functions in float16 and bfloat16 (dq_lower_half_lut).
 *
 * Replaces: TableLookup with 256 entries, filled by running those nodes on all quantized values.
 *
 * Exactness: exact, including the roundings of half precision.
 *
 * Leaves alone: pure data movement between equal parameters (sink_data_movement.c). */
#include "rewrite/match.h"

#include <math.h>
#include <string.h>

enum { CODES = 256, MAX_NODES = 32, MAX_LEAVES = 8 };

typedef struct region {
    dq_node *nodes[MAX_NODES]; /* In topological order. */
    uint32_t count;
    const dq_value *leaves[MAX_LEAVES]; /* The dequantized values on which the function depends: all of the
                                            same quantized values. */
    uint32_t leaf_count;
    dq_dequantized source; /* Of the leaves. */
} region;

static bool in_region(const region *r, const dq_node *node)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->nodes[i] == node)
            return true;
    return false;
}

static bool add_node(region *r, const dq_node *node)
{
    if (in_region(r, node))
        return true;
    if (r->count == MAX_NODES)
        return false;
    r->nodes[r->count++] = (dq_node *)(uintptr_t)node;
    return true;
}

/* Whether a constant keeps the shape of the other operand. */
static bool is_scalar(const dq_tensor *t)
{
    return t->count == 1 && t->rank <= 1;
}

static bool grow(const dq_rewriter *f, region *r, const dq_value *v, int depth);

/* Whether the quantized values come from a QuantizeLinear of such a function: then adds that function. */
static bool reach_through(const dq_rewriter *f, region *r, const dq_dequantized *x, int depth)
{
    const dq_node *node = x->qvalues->producer;
    dq_quantized q;
    region before = *r;
    if (x->moved || !node || x->qvalues->graph != f->graph || !dq_match_quantized(f, node, false, &q))
        return false;
    if (grow(f, r, node->in[0], depth + 1) && add_node(r, node) && add_node(r, x->node))
        return true;
    *r = before;
    return false;
}

/* Adds a dequantized value with which the function begins. */
static bool add_leaf(const dq_rewriter *f, region *r, const dq_value *v, const dq_dequantized *x, int depth)
{
    const dq_tensor *constant = dq_match_constant(x->qvalues);
    if (constant && !x->moved && is_scalar(constant))
        return add_node(r, x->node);
    for (uint32_t i = 0; i < r->leaf_count; i++)
        if (r->leaves[i] == v)
            return true;
    if (reach_through(f, r, x, depth))
        return true;
    if (r->leaf_count == MAX_LEAVES ||
        (r->leaf_count > 0 &&
         (r->source.qvalues != x->qvalues || r->source.moved != x->moved ||
          !dq_match_same_params(r->source.scale_t, r->source.zero_t, x->scale_t, x->zero_t))))
        return false;
    r->source = *x;
    r->leaves[r->leaf_count++] = v;
    return true;
}

/* Adds the nodes that compute `v`, producers first. False: a node does not match. */
static bool grow(const dq_rewriter *f, region *r, const dq_value *v, int depth)
{
    const dq_tensor *constant = dq_match_constant(v);
    const dq_node *node = v->producer;
    dq_dequantized x;
    if (constant)
        return is_scalar(constant);
    if (!node || v->graph != f->graph || depth > MAX_NODES)
        return false;
    if (in_region(r, node))
        return true;
    if (dq_match_dequantized(f, v, false, &x))
        return x.per_tensor && add_leaf(f, r, v, &x, depth);
    if (!dq_match_trait(node, DQ_TRAIT_ELEMENTWISE) || node->out_count != 1)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !grow(f, r, node->in[i], depth + 1))
            return false;
    return add_node(r, node);
}

/* Computes the region's nodes, and the QuantizeLinear of `v` with the parameters of `last`, for all quantized
 * values. If the look-up precedes comparisons (`compares`), no element of `v` may be NaN. */
static dq_status fill_table(dq_rewriter *f, const region *r, const dq_value *v, const dq_node *last,
                            bool compares, const dq_tensor **table, dq_error *err)
{
    dq_node *nodes[MAX_NODES + 1];
    dq_bound_value given[MAX_LEAVES];
    dq_value *in[3] = {(dq_value *)(uintptr_t)v, last->in[1], dq_node_input(last, 2)};
    float all[CODES], scale = dq_match_scale(r->source.scale_t, 0);
    int64_t zero = dq_match_zero_point(r->source.zero_t, 0), first = r->source.dtype == DQ_INT8 ? -128 : 0;
    dq_tensor x = {.data = all};
    for (int i = 0; i < CODES; i++)
        all[i] = (float)(first + i - zero) * scale;
    DQ_TRY(dq_tensor_set_shape(&x, DQ_FLOAT, 1, (int64_t[]){CODES}, 0, DQ_INTERNAL, err));
    for (uint32_t i = 0; i < r->leaf_count; i++)
        given[i] = (dq_bound_value){.value = r->leaves[i], .tensor = &x};
    dq_value *out = dq_rewriter_make_value(f, "", DQ_UNDEFINED);
    dq_node *q = out ? dq_rewriter_node(f, (dq_op_id){last->domain, last->op_type, last->opset}, last,
                                        last->in_count, in, out, last->attr_count)
                     : NULL;
    if (!q)
        return DQ_OUT_OF_MEMORY;
    dq_rewriter_copy_attrs(last, q);
    if (!dq_rewriter_bind(f, q))
        return dq_fail(err, DQ_UNSUPPORTED, "its QuantizeLinear does not fit");
    memcpy(nodes, r->nodes, r->count * sizeof *nodes);
    nodes[r->count] = q;
    DQ_TRY(dq_rewriter_evaluate(f, nodes, r->count + 1, given, r->leaf_count, out, table, err));
    if (!*table || (*table)->size != CODES)
        return dq_fail(err, DQ_UNSUPPORTED, "a result is not one an element");
    if (!compares || r->count == 0)
        return DQ_OK;
    const dq_tensor *floats = NULL;
    DQ_TRY(dq_rewriter_evaluate(f, nodes, r->count, given, r->leaf_count, v, &floats, err));
    if (!floats || floats->dtype != DQ_FLOAT || floats->count != CODES)
        return dq_fail(err, DQ_UNSUPPORTED, "a result is not one an element");
    for (size_t i = 0; i < CODES; i++)
        if (isnan(dq_match_float(floats, i)))
            return dq_fail(err, DQ_UNSUPPORTED, "a result is NaN, which a comparison after it lets pass");
    return DQ_OK;
}

/* Makes the TableLookup that replaces `last`, or `last` and the chain before it. NULL: filling the table
 * failed (`status`, `why`), or out of memory. */
static dq_node *make_lookup(dq_rewriter *f, const dq_node *last, dq_value *qvalues, const dq_tensor *table,
                            dq_status status, const dq_error *why)
{
    if (status == DQ_OUT_OF_MEMORY)
        dq_rewriter_no_memory(f);
    else if (status != DQ_OK)
        dq_rewriter_explain(f, last, "no table: %s", why->message);
    if (status != DQ_OK)
        return NULL;
    dq_value *in[2] = {qvalues, dq_rewriter_make_value(f, "", table->dtype)};
    if (!in[0] || !in[1])
        return NULL;
    in[1]->constant = table;
    return dq_rewriter_node(f, (dq_op_id){"dqrun", "TableLookup", 1}, last, 2, in, last->out[0], 0);
}

static void tell_count(const dq_rewriter *f, const dq_node *last, uint32_t count)
{
    dq_rewriter_explain(f, last, "%u node%s before it become one look-up in a table", count,
                        count == 1 ? "" : "s");
}

/* Whether `v` is a function of one quantized value. *r becomes that function, else empty. */
static bool begins_at(const dq_rewriter *f, region *r, const dq_value *v)
{
    *r = (region){0};
    if (grow(f, r, v, 0) && r->leaf_count > 0)
        return true;
    *r = (region){0};
    return false;
}

bool dq_lower_lut(dq_rewriter *f)
{
    const dq_node *last = f->nodes[f->at];
    const dq_value *v;
    dq_quantized q;
    dq_data_movement tail = {.clip = {-INFINITY, INFINITY}};
    region r = {0};
    if (!dq_match_quantized(f, last, true, &q))
        return false;
    if (q.dtype != DQ_UINT8 && q.dtype != DQ_INT8)
        return false;
    v = last->in[0];
    if (!begins_at(f, &r, v)) {
        v = dq_match_moves_without_nan(f, &q, &tail);
        if (!begins_at(f, &r, v))
            v = dq_match_moves(f, &q, &tail);
        if (r.leaf_count == 0 && !begins_at(f, &r, v))
            return false;
    }
    const dq_tensor *table = NULL;
    dq_error why;
    dq_status status = fill_table(f, &r, v, last, tail.compares, &table, &why);
    dq_value *qvalues = status == DQ_OK ? dq_rewriter_quantized_value(f, &r.source) : NULL;
    const dq_dequantized *x = &r.source;
    const bool same = r.count == 0 && x->dtype == q.dtype &&
                      dq_match_same_params(x->scale_t, x->zero_t, q.scale_t, q.zero_t);
    dq_node *made = same && qvalues ? dq_rewriter_node(f, (dq_op_id){"", "Identity", 13}, last, 1, &qvalues,
                                                       last->out[0], 0)
                                    : make_lookup(f, last, qvalues, table, status, &why);
    if (!made || !dq_rewriter_bind(f, made) || !dq_rewriter_replace_quantize(f, made, &q, &tail))
        return false;
    tell_count(f, last, r.count);
    return true;
}

/* ---- Quantized operators ------------------------------------------------------------------------------ */

enum { MAX_VISITS = 4 * MAX_NODES };

/* The number of inputs of quantized values, *in, on which the node computes element by element; 0: it does
 * not. */
static uint32_t reads_qvalues(const dq_node *node, uint32_t in[2])
{
    if (strcmp(node->domain, "com.microsoft") != 0 || node->out_count != 1)
        return 0;
    in[0] = 0;
    in[1] = 3;
    if (strcmp(node->op_type, "QLinearSigmoid") == 0 || strcmp(node->op_type, "QLinearLeakyRelu") == 0)
        return 1;
    return strcmp(node->op_type, "QLinearAdd") == 0 || strcmp(node->op_type, "QLinearMul") == 0 ? 2 : 0;
}

static bool grow_qvalues(const dq_rewriter *f, region *r, const dq_value *v, int *visits);

/* Adds a quantized operator with constant parameters, and the producers of its quantized values. */
static bool add_quantized(const dq_rewriter *f, region *r, const dq_node *node, int *visits)
{
    uint32_t at[2], count = reads_qvalues(node, at);
    if (!count)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        bool qvalues = i == at[0] || (count == 2 && i == at[1]);
        if (qvalues ? !grow_qvalues(f, r, node->in[i], visits)
                    : node->in[i] && !dq_match_constant(node->in[i]))
            return false;
    }
    return add_node(r, node);
}

/* Adds the producers of the quantized values `v`, as long as everything depends on the same quantized values.
 */
static bool grow_qvalues(const dq_rewriter *f, region *r, const dq_value *v, int *visits)
{
    const dq_tensor *constant = dq_match_constant(v);
    if (constant)
        return is_scalar(constant);
    if (v->producer && v->graph == f->graph && ++*visits < MAX_VISITS) {
        region before = *r;
        if (in_region(r, v->producer) || add_quantized(f, r, v->producer, visits))
            return true;
        *r = before;
    }
    if (!r->leaf_count)
        r->leaves[r->leaf_count++] = v;
    return r->leaves[0] == v;
}

/* Replaces the current node by a look-up in the table of the region's results, computed for all values of the
 * leaf's 8-bit type. */
static bool insert_lookup_node(dq_rewriter *f, const region *r)
{
    dq_node *last = f->nodes[f->at];
    dq_dtype dtype = dq_match_dtype(f, r->leaves[0]);
    if (dtype != DQ_UINT8 && dtype != DQ_INT8)
        return false;
    uint8_t all[CODES];
    for (int i = 0; i < CODES; i++)
        all[i] = (uint8_t)(dtype == DQ_INT8 ? i - CODES / 2 : i);
    dq_tensor x = {.data = all};
    const dq_tensor *table = NULL;
    dq_error why;
    dq_status status = dq_tensor_set_shape(&x, dtype, 1, (int64_t[]){CODES}, 0, DQ_INTERNAL, &why);
    dq_bound_value given = {.value = r->leaves[0], .tensor = &x};
    if (status == DQ_OK)
        status = dq_rewriter_evaluate(f, r->nodes, r->count, &given, 1, last->out[0], &table, &why);
    if (status == DQ_OK && (!table || table->size != CODES))
        return false;
    dq_node *made = make_lookup(f, last, (dq_value *)(uintptr_t)r->leaves[0], table, status, &why);
    if (!made || !dq_rewriter_bind(f, made))
        return false;
    dq_rewriter_replace(f, f->at, made);
    tell_count(f, last, r->count - 1);
    return true;
}

bool dq_lower_qlinear_lut(dq_rewriter *f)
{
    region r = {0};
    int visits = 0;
    return add_quantized(f, &r, f->nodes[f->at], &visits) && r.count >= 2 && r.leaf_count &&
           insert_lookup_node(f, &r);
}

/* ---- Half precision ----------------------------------------------------------------------------------- */

/* Whether the node has one constant scale and zero point. */
static bool has_one_scale(const dq_node *node)
{
    const dq_value *zero = dq_node_input(node, 2);
    const dq_tensor *scale = dq_match_constant(node->in[1]), *zero_t = dq_match_constant(zero);
    return scale && is_scalar(scale) && (!zero || (zero_t && is_scalar(zero_t)));
}

/* Adds the producers of the float value `v` of any type, back to DequantizeLinear nodes of the same quantized
 * values. */
static bool grow_half(const dq_rewriter *f, region *r, const dq_value *v, int *visits)
{
    const dq_tensor *constant = dq_match_constant(v);
    const dq_node *node = v->producer;
    if (constant)
        return is_scalar(constant);
    if (!node || v->graph != f->graph || *node->domain || node->out_count != 1 || ++*visits == MAX_VISITS)
        return false;
    if (in_region(r, node))
        return true;
    if (dq_match_op(node, "DequantizeLinear")) {
        if (!has_one_scale(node) || dq_match_constant(node->in[0]))
            return false;
        r->leaves[0] = r->leaf_count ? r->leaves[0] : node->in[0];
        r->leaf_count = 1;
        return r->leaves[0] == node->in[0] && add_node(r, node);
    }
    if (!dq_match_trait(node, DQ_TRAIT_ELEMENTWISE) && !dq_match_op(node, "Cast"))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !grow_half(f, r, node->in[i], visits))
            return false;
    return add_node(r, node);
}

static bool gives_half(const dq_rewriter *f, const region *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (dq_match_is_half(f, r->nodes[i]->out[0]))
            return true;
    return false;
}

static bool lower_half_lut_at(dq_rewriter *f)
{
    const dq_node *last = f->nodes[f->at];
    region r = {0};
    int visits = 0;
    return dq_match_op(last, "QuantizeLinear") && last->out[0] && has_one_scale(last) &&
           grow_half(f, &r, last->in[0], &visits) && r.leaf_count && gives_half(f, &r) &&
           add_node(&r, last) && insert_lookup_node(f, &r);
}

void dq_lower_half_lut(dq_rewriter *f)
{
    for (f->at = 0; f->at < f->count && !f->failed; f->at++)
        (void)lower_half_lut_at(f);
}
