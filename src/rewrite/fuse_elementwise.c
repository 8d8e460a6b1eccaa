/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses chains of elementwise float operators into dqrun.Elementwise.
 *
 * Matches: elementwise operators that earlier passes left in float, with DequantizeLinear at the begin and
 * QuantizeLinear at the end. QuantizeLinear followed by DequantizeLinear inside a chain is one step, which
 * rounds floats.
 *
 * Replaces: one dqrun.Elementwise, which runs the whole chain strip by strip, from quantized values to
 * quantized values. The last float value may have other readers; it is then a second result. If data movement
 * comes between the chain and a QuantizeLinear, the chain produces quantized values, which are then moved
 * (sink_data_movement.c).
 *
 * Exactness: exact, the same kernels on the same operands.
 *
 * A chain is matched from its end: it grows by nodes whose results only the chain reads. */
#include "rewrite/fuse_elementwise.h"
#include "ops/elementwise/elementwise.h"

#include <math.h>
#include <string.h>

static bool look_around(dq_chain_pass *p)
{
    dq_rewriter *f = p->f;
    uint32_t values = f->written_count + f->value_count;
    p->by = DQ_NEW_ARRAY(f->scratch, values, dq_node *);
    p->node_index = DQ_NEW_ARRAY(f->scratch, values, uint32_t);
    p->first = DQ_NEW_ARRAY(f->scratch, values, uint32_t);
    p->removed = DQ_NEW(f->arena, dq_node);
    if (!p->by || !p->node_index || !p->first || !p->removed)
        return dq_rewriter_no_memory(f);
    if (!dq_rewriter_count_final_uses(f, &p->uses, &p->needed) ||
        !dq_rewriter_list_uses(f, p->needed, values, &p->read_positions))
        return false;
    *p->removed = (dq_node){.name = "", .domain = "", .op_type = "", .graph = f->graph, .made = true};
    for (uint32_t n = 0; n < f->count; n++)
        for (uint32_t i = 0; p->needed[n] && i < f->nodes[n]->out_count; i++)
            if (f->nodes[n]->out[i]) {
                p->by[dq_rewriter_index(f, f->nodes[n]->out[i])] = f->nodes[n];
                p->node_index[dq_rewriter_index(f, f->nodes[n]->out[i])] = n;
            }
    return true;
}

static uint32_t uses_of(const dq_chain_pass *p, const dq_value *v)
{
    return p->uses[dq_rewriter_index(p->f, v)];
}

/* ---- Matching a chain --------------------------------------------------------------------------------- */

static bool has_limits(const dq_node *node)
{
    for (uint32_t i = 1; i < node->in_count; i++) {
        const dq_tensor *t = dq_match_constant(node->in[i]);
        if (node->in[i] && (!t || t->dtype != DQ_FLOAT || t->count != 1 || t->rank != 0))
            return false;
    }
    return true;
}

/* The node's name in the kernel table; NULL: none. */
static const char *step_name(const dq_node *node)
{
    if (dq_match_op(node, "Sum"))
        return node->in_count > 1 ? "Add" : NULL;
    if (dq_match_op(node, "Gelu") && strcmp(dq_node_string(node, "approximate", "none"), "none") != 0)
        return "GeluTanh";
    return node->op_type;
}

static bool is_step(const dq_chain_pass *p, const dq_node *node)
{
    const char *name = node && !*node->domain && !node->made ? step_name(node) : NULL;
    const dq_ew_named *row = name ? dq_ew_find(name, strlen(name)) : NULL;
    if (!row || node->opset < 7 || node->out_count != 1 || node->in_count == 0 || node->graph != p->f->graph)
        return false;
    bool folds = dq_match_op(node, "Sum") || dq_match_op(node, "Min") || dq_match_op(node, "Max");
    if (dq_match_op(node, "Clip") ? !has_limits(node) : !folds && node->in_count != row->operands)
        return false;
    if (folds && (node->in_count < 2 || node->in_count > 4))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && dq_match_dtype(p->f, node->in[i]) != DQ_FLOAT)
            return false;
    return node->in[0] != NULL;
}

/* Whether the node is a DequantizeLinear of a QuantizeLinear after a step, with no other reader of the
 * quantized values. *before is then the QuantizeLinear. */
static bool is_round_trip(const dq_chain_pass *p, const dq_node *node, dq_quantized *before)
{
    dq_dequantized x;
    if (!node || node->made || strcmp(node->op_type, "DequantizeLinear") != 0 ||
        !dq_match_dequantized(p->f, node->out[0], true, &x) || x.node != node || !x.per_tensor)
        return false;
    const dq_node *q = dq_chain_producer(p, x.qvalues);
    return q && !q->made && uses_of(p, x.qvalues) == 1 && dq_match_quantized(p->f, q, true, before) &&
           before->dtype == x.dtype &&
           dq_match_same_params(x.scale_t, x.zero_t, before->scale_t, before->zero_t) &&
           is_step(p, dq_chain_producer(p, q->in[0]));
}

dq_value *const *dq_chain_operands(const dq_chain_pass *p, const dq_node *node, uint32_t *count)
{
    bool trip = strcmp(node->op_type, "DequantizeLinear") == 0;
    *count = trip ? 1 : node->in_count;
    return trip ? dq_chain_producer(p, node->in[0])->in : node->in;
}

static bool in_chain(const dq_chain *c, const dq_node *node)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->nodes[i] == node)
            return true;
    return false;
}

static uint32_t reads(const dq_chain_pass *p, const dq_chain *c, const dq_value *v)
{
    uint32_t count = 0, ins;
    for (uint32_t n = 0; n < c->count; n++) {
        dq_value *const *in = dq_chain_operands(p, c->nodes[n], &ins);
        for (uint32_t i = 0; i < ins; i++)
            count += in[i] == v;
    }
    return count;
}

/* Whether the chain's inputs and steps fit in the limits. */
static bool fits(const dq_chain_pass *p, const dq_chain *c)
{
    const dq_value *seen[DQ_CHAIN_INPUTS];
    uint32_t inputs = 0, limits = 0, steps = 0, ins;
    for (uint32_t n = 0; n < c->count; n++) {
        const dq_node *node = c->nodes[n];
        dq_value *const *in = dq_chain_operands(p, node, &ins);
        steps += ins > 2 ? ins - 1 : 1;
        for (uint32_t i = 0; i < ins; i++) {
            const dq_value *v = in[i];
            bool known = !v || in_chain(c, v->producer);
            for (uint32_t k = 0; !known && k < inputs; k++)
                known = seen[k] == v;
            if (!known && inputs == DQ_CHAIN_INPUTS)
                return false;
            if (!known)
                seen[inputs++] = v;
        }
        if (dq_match_op(node, "Clip"))
            limits += 2; /* Omitted limits are made as constants. */
    }
    return inputs + limits <= DQ_CHAIN_INPUTS && steps <= DQ_CHAIN_STEPS;
}

/* Adds one more node whose result only the chain reads. False: there is none. */
static bool grow(const dq_chain_pass *p, dq_chain *c)
{
    uint32_t ins;
    dq_quantized q;
    for (uint32_t n = 0; n < c->count; n++) {
        dq_value *const *in = dq_chain_operands(p, c->nodes[n], &ins);
        for (uint32_t i = 0; i < ins && c->count < DQ_CHAIN_STEPS; i++) {
            const dq_node *node = in[i] ? dq_chain_producer(p, in[i]) : NULL;
            if (!node || in_chain(c, node) || uses_of(p, in[i]) != reads(p, c, in[i]) ||
                (!is_step(p, node) && !is_round_trip(p, node, &q)))
                continue;
            c->nodes[c->count++] = node;
            if (fits(p, c))
                return true;
            c->count--;
        }
    }
    return false;
}

/* Removes round trips at the begin of the chain: the chain reads their quantized values instead. */
static void trim(const dq_chain_pass *p, dq_chain *c)
{
    uint32_t count = 0, ins;
    for (uint32_t n = 0; n < c->count; n++) {
        dq_value *const *in = dq_chain_operands(p, c->nodes[n], &ins);
        if (in == c->nodes[n]->in || in_chain(c, dq_chain_producer(p, in[0])))
            c->nodes[count++] = c->nodes[n];
    }
    c->count = count;
}

/* ---- The program of a chain --------------------------------------------------------------------------- */

static int64_t input_of(const dq_chain_pass *p, dq_chain *c, dq_value *v)
{
    dq_dequantized x;
    for (uint32_t i = 0; i < c->in_count; i++)
        if (c->in[i] == v || (c->qvalues[i].node && c->qvalues[i].node->out[0] == v))
            return i;
    bool coded = dq_chain_producer(p, v) && !dq_chain_producer(p, v)->made &&
                 dq_match_dequantized(p->f, v, true, &x) && !x.moved && x.per_tensor && x.dtype != DQ_INT32 &&
                 !dq_match_constant(x.qvalues);
    c->qvalues[c->in_count] = coded ? x : (dq_dequantized){0};
    c->in[c->in_count] = coded ? x.qvalues : v;
    return c->in_count++;
}

/* Adds the inputs. They come first: steps are numbered after them. */
static void add_inputs(const dq_chain_pass *p, dq_chain *c)
{
    uint32_t ins;
    for (uint32_t n = 0; n < c->count; n++) {
        dq_value *const *in = dq_chain_operands(p, c->nodes[n], &ins);
        for (uint32_t i = 0; i < ins; i++)
            if (in[i] && !in_chain(c, dq_chain_producer(p, in[i])))
                input_of(p, c, in[i]);
    }
}

static int64_t add_limit(const dq_chain_pass *p, dq_chain *c, float limit)
{
    dq_tensor *t;
    dq_value *v = dq_rewriter_make_constant(p->f, DQ_FLOAT, 0, NULL, &t);
    if (!v)
        return -1;
    dq_data(t, float)[0] = limit;
    c->qvalues[c->in_count] = (dq_dequantized){0};
    c->in[c->in_count] = v;
    return c->in_count++;
}

static int64_t emit(const dq_chain_pass *p, dq_chain *c, dq_value *v, const int64_t *limits);

static int64_t add_step(dq_chain *c, const dq_node *node, const char *name, int64_t a, int64_t b,
                        int64_t third)
{
    const int64_t args[DQ_CHAIN_ARGS] = {a, b, third};
    c->name[c->steps] = name;
    c->like[c->steps] = node;
    c->of[c->steps] = NULL;
    memcpy(c->args + (size_t)c->steps * DQ_CHAIN_ARGS, args, sizeof args);
    return c->in_count + c->steps++;
}

/* Emits the steps that compute `v`, and returns its number. `limits`: two numbers per node of the chain, the
 * limits of a Clip. */
static int64_t emit(const dq_chain_pass *p, dq_chain *c, dq_value *v, const int64_t *limits)
{
    const dq_node *node = dq_chain_producer(p, v);
    uint32_t at = 0, ins;
    for (uint32_t s = 0; s < c->steps; s++)
        if (c->of[s] == v)
            return c->in_count + s;
    while (at < c->count && c->nodes[at] != node)
        at++;
    if (at == c->count)
        return input_of(p, c, v);
    dq_value *const *in = dq_chain_operands(p, node, &ins);
    int64_t result = emit(p, c, in[0], limits);
    const char *name = in == node->in ? step_name(node) : DQ_EW_ROUND_TRIP;
    if (dq_match_op(node, "Clip"))
        result = add_step(c, node, name, result, limits[2 * at], limits[2 * at + 1]);
    else if (ins == 1)
        result = add_step(c, node, name, result, -1, -1);
    for (uint32_t i = 1; i < ins && !dq_match_op(node, "Clip"); i++)
        result = add_step(c, node, name, result, emit(p, c, node->in[i], limits), -1);
    c->of[c->steps - 1] = v;
    return result;
}

static bool make_program(const dq_chain_pass *p, dq_chain *c, dq_value *last)
{
    int64_t limits[2 * DQ_CHAIN_STEPS] = {0};
    add_inputs(p, c);
    for (uint32_t n = 0; n < c->count; n++)
        for (uint32_t k = 0; k < 2 && dq_match_op(c->nodes[n], "Clip"); k++) {
            const dq_node *node = c->nodes[n];
            bool given = node->in_count > k + 1 && node->in[k + 1];
            float absent = k ? dq_node_float(node, "max", INFINITY) : dq_node_float(node, "min", -INFINITY);
            limits[2 * n + k] = given ? input_of(p, c, node->in[k + 1]) : add_limit(p, c, absent);
            if (limits[2 * n + k] < 0)
                return false;
        }
    emit(p, c, last, limits);
    return true;
}

/* ---- The fused node ----------------------------------------------------------------------------------- */

/* Attributes, as in schemas/dqrun/Elementwise.yaml. */
enum { ATTRS = 4, MAX_NUMBERS = DQ_CHAIN_STEPS * DQ_CHAIN_ARGS + DQ_CHAIN_INPUTS + 2 };

static bool set_attrs(dq_rewriter *f, dq_node *node, const dq_chain *c, size_t number_count,
                      const float *numbers, size_t qvalue_count, const int64_t *qvalues)
{
    size_t arg_count = (size_t)c->steps * DQ_CHAIN_ARGS;
    dq_string *steps = DQ_NEW_ARRAY(f->arena, c->steps, dq_string);
    int64_t *args = DQ_NEW_ARRAY(f->arena, arg_count + qvalue_count, int64_t);
    float *floats = DQ_NEW_ARRAY(f->arena, number_count, float);
    if (!steps || !args || !floats)
        return dq_rewriter_no_memory(f);
    for (uint32_t s = 0; s < c->steps; s++)
        steps[s] = (dq_string){c->name[s], strlen(c->name[s])};
    memcpy(args, c->args, arg_count * sizeof *args);
    memcpy(args + arg_count, qvalues, qvalue_count * sizeof *args);
    memcpy(floats, numbers, number_count * sizeof *floats);
    node->attrs[0] =
        (dq_attr){.name = "steps", .kind = DQ_ATTR_STRINGS, .count = c->steps, .u.strings = steps};
    node->attrs[1] = (dq_attr){.name = "operands", .kind = DQ_ATTR_INTS, .count = arg_count, .u.ints = args};
    node->attrs[2] =
        (dq_attr){.name = "numbers", .kind = DQ_ATTR_FLOATS, .count = number_count, .u.floats = floats};
    node->attrs[3] =
        (dq_attr){.name = "codes", .kind = DQ_ATTR_INTS, .count = qvalue_count, .u.ints = args + arg_count};
    return true;
}

/* Writes alpha, beta and gamma of a step; for a round trip the scale, and the bounds of quantized values
 * minus the zero point. */
static void step_numbers(const dq_rewriter *f, const dq_chain *c, uint32_t s, float *to)
{
    dq_dequantized x;
    to[0] = dq_node_float(c->like[s], "alpha", 1);
    to[1] = dq_node_float(c->like[s], "beta", 0.5f);
    to[2] = dq_node_float(c->like[s], "gamma", 1);
    if (strcmp(c->name[s], DQ_EW_ROUND_TRIP) == 0 && dq_match_dequantized(f, c->like[s]->out[0], true, &x)) {
        int64_t most = (int64_t)1 << dq_dtype_get(x.dtype)->bits;
        int64_t low =
            (x.dtype == DQ_INT8 || x.dtype == DQ_INT16 ? -most / 2 : 0) - dq_match_zero_point(x.zero_t, 0);
        to[0] = dq_match_scale(x.scale_t, 0);
        to[1] = (float)low;
        to[2] = (float)(low + most - 1);
    }
}

/* Makes the fused node. `q` NULL: the result is float. `also` not NULL: the last float value is a second
 * result. */
static dq_node *make_node(dq_rewriter *f, const dq_chain *c, const dq_quantized *q, dq_value *out,
                          dq_value *also)
{
    float numbers[MAX_NUMBERS];
    int64_t qvalues[DQ_CHAIN_INPUTS + 2 * DQ_CHAIN_ARGS], last = c->in_count + c->steps - 1;
    size_t n = 0, m = 0;
    for (uint32_t s = 0; s < c->steps; s++, n += DQ_CHAIN_ARGS)
        step_numbers(f, c, s, numbers + n);
    for (uint32_t i = 0; i < c->in_count; i++) {
        const dq_dequantized *x = &c->qvalues[i];
        numbers[n++] = x->node ? dq_match_scale(x->scale_t, 0) : 1;
        qvalues[m++] = x->node ? dq_match_zero_point(x->zero_t, 0) : 0;
    }
    for (int i = 0; i < (also ? 2 : 1); i++) {
        bool quantizes = q && i == 0;
        numbers[n++] = quantizes ? dq_match_scale(q->scale_t, 0) : 1;
        qvalues[m++] = last;
        qvalues[m++] = quantizes ? (int64_t)q->dtype : DQ_FLOAT;
        qvalues[m++] = quantizes ? dq_match_zero_point(q->zero_t, 0) : 0;
    }
    dq_node *node = dq_rewriter_node(f, (dq_op_id){"dqrun", "Elementwise", 1}, c->nodes[0], c->in_count,
                                     c->in, out, ATTRS);
    if (!node || !set_attrs(f, node, c, n, numbers, m, qvalues) ||
        (also && !dq_rewriter_set_outputs(f, node, 2, (dq_value *[]){out, also})))
        return NULL;
    return dq_rewriter_bind(f, node) ? node : NULL;
}

/* Makes a chain without steps. */
dq_node *dq_rewriter_requantize(dq_rewriter *f, const dq_dequantized *x, dq_value *qvalues,
                                const dq_quantized *q, const dq_node *like)
{
    const dq_chain c = {.nodes = {like}, .count = 1, .in = {qvalues}, .qvalues = {*x}, .in_count = 1};
    dq_value *out = dq_rewriter_make_value(f, qvalues->name, q->dtype);
    dq_node *made = out ? make_node(f, &c, q, out, NULL) : NULL;
    return made && dq_rewriter_insert_before(f, made) ? made : NULL;
}

/* ---- The pass ----------------------------------------------------------------------------------------- */

/* Whether a needed node before the current one reads `v`. Nodes that went into chains are skipped
 * permanently, so that each is skipped only once. */
static bool is_read_before(const dq_chain_pass *p, const dq_value *v)
{
    const uint32_t i = dq_rewriter_index(p->f, v), end = p->read_positions.start[i + 1];
    uint32_t *first = &p->first[i];
    if (!*first)
        *first = p->read_positions.start[i];
    while (*first < end && p->f->nodes[p->read_positions.positions[*first]] == p->removed)
        ++*first;
    return *first < end && p->read_positions.positions[*first] < p->f->at;
}

/* The end of the chain at f->at. */
typedef struct ending {
    dq_value *v; /* Its last float value. */
    bool quantizes, shared;
    dq_quantized q;
    dq_data_movement tail; /* Data movement before the QuantizeLinear, which then moves quantized values. */
} ending;

/* Finds the end of a chain: the QuantizeLinear at f->at, possibly after data movement, or the node itself. */
static bool find_ending(const dq_chain_pass *p, ending *e)
{
    const dq_rewriter *f = p->f;
    const dq_node *last = f->nodes[f->at];
    *e = (ending){0};
    e->quantizes = !last->made && dq_match_quantized(f, last, true, &e->q);
    e->v = e->quantizes ? last->in[0] : last->out_count > 0 ? last->out[0] : NULL;
    if (!e->v)
        return false;
    const dq_value *before = e->quantizes ? dq_match_moves_without_nan(f, &e->q, &e->tail) : e->v;
    if (e->tail.count > 0 && is_step(p, dq_chain_producer(p, before)))
        e->v = (dq_value *)(uintptr_t)before;
    else
        e->tail.count = 0;
    e->shared = e->quantizes && uses_of(p, e->v) > 1;
    return is_step(p, dq_chain_producer(p, e->v)) && !(e->shared && is_read_before(p, e->v));
}

/* Removes the producer of the value, if it precedes the current node: it is part of the chain. */
static void remove_producer(dq_chain_pass *p, const dq_value *v)
{
    uint32_t n = p->node_index[dq_rewriter_index(p->f, v)];
    if (n < p->f->at) {
        p->f->nodes[n] = p->removed;
        p->needed[n] = false;
    }
}

/* Replaces the nodes of the chain and those after it by `made`. */
static bool replace(dq_chain_pass *p, const dq_chain *c, dq_node *made, const ending *e)
{
    dq_rewriter *f = p->f;
    if (e->tail.count == 0)
        dq_rewriter_replace(f, f->at, made);
    else if (!dq_rewriter_replace_quantize(f, made, &e->q, &e->tail))
        return false;
    for (uint32_t i = 0; i < c->count; i++) {
        remove_producer(p, c->nodes[i]->out[0]);
        if (strcmp(c->nodes[i]->op_type, "DequantizeLinear") == 0)
            remove_producer(p, c->nodes[i]->in[0]);
    }
    return true;
}

static void fuse_at(dq_chain_pass *p)
{
    dq_rewriter *f = p->f;
    dq_node *last = f->nodes[f->at];
    ending e;
    dq_chain c = {0};
    if (!find_ending(p, &e))
        return;
    c.nodes[c.count++] = dq_chain_producer(p, e.v);
    while (grow(p, &c))
        ;
    trim(p, &c);
    dq_chain_cut(p, &c);
    if (!make_program(p, &c, e.v))
        return;
    uint32_t dequantized = 0, trips = 0;
    for (uint32_t i = 0; i < c.in_count; i++)
        dequantized += c.qvalues[i].node != NULL;
    for (uint32_t s = 0; s < c.steps; s++)
        trips += strcmp(c.name[s], DQ_EW_ROUND_TRIP) == 0;
    if (c.count + dequantized + e.quantizes < 2)
        return;
    dq_node *made = make_node(f, &c, e.quantizes ? &e.q : NULL, last->out[0], e.shared ? e.v : NULL);
    if (!made || !replace(p, &c, made, &e))
        return;
    uint32_t before = c.count + trips + dequantized - !e.quantizes;
    dq_rewriter_explain(f, last, "runs strip by strip with the %u node%s before it%s", before,
                        before == 1 ? "" : "s",
                        e.tail.count ? ", data movement between them works on the quantized values" : "");
}

/* ---- Explanations of remaining nodes ------------------------------------------------------------------ */

static bool has_form(const dq_node *node)
{
    static const char *const names[] = {
        "Conv",        "ConvTranspose",     "Gemm",       "MatMul",  "Add",    "Mul",  "Sum",
        "AveragePool", "GlobalAveragePool", "ReduceMean", "Softmax", "Concat", "Where"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dq_match_op(node, names[i]))
            return true;
    return false;
}

/* The reason why a QuantizeLinear remains; NULL: none that a model could change. `v`: its input before data
 * movement; `before` produces it. */
static const char *reason(const dq_chain_pass *p, const dq_node *node, const dq_value *v,
                          const dq_node *before)
{
    dq_quantized q;
    dq_dequantized x;
    if (!dq_match_quantized(p->f, node, true, &q))
        return "its parameters are not one constant scale and zero point for 8 or 16 bits";
    if (!before || before->made)
        return NULL;
    for (const dq_value *u = node->in[0];; u = u->producer->in[0]) {
        if (uses_of(p, u) > 1)
            return "its float result is read elsewhere, too";
        if (u == v)
            break;
    }
    if (!has_form(before))
        return "this operator has no form for quantized values";
    for (uint32_t i = dq_match_op(before, "Where"); i < before->in_count && i < 2; i++)
        if (!dq_match_dequantized(p->f, before->in[i], true, &x))
            return i ? "its second operand is not dequantized" : "its operand is not dequantized";
    return "the types or parameters of its operands and of its result do not go together";
}

static void tell_rest(const dq_chain_pass *p)
{
    for (uint32_t n = 0; n < p->f->count && p->f->request->explain; n++) {
        const dq_node *node = p->f->nodes[n];
        if (!p->needed[n] || node->made || strcmp(node->op_type, "QuantizeLinear") != 0 || !node->in[0])
            continue;
        const dq_value *v = dq_match_skip_moves(p->f, node->in[0]);
        const dq_node *before = dq_chain_producer(p, v);
        const char *why = reason(p, node, v, before);
        char text[DQ_NODE_TEXT];
        if (why)
            dq_rewriter_explain(p->f, node, "stays after %s in float: %s",
                                before ? dq_node_text(before, text) : "an input", why);
    }
}

void dq_fuse_elementwise(dq_rewriter *f)
{
    dq_chain_pass p = {.f = f};
    if (!look_around(&p))
        return;
    for (f->at = f->count; f->at-- > 0 && !f->failed;)
        if (p.needed[f->at])
            fuse_at(&p);
    tell_rest(&p);
    (void)(f->failed || dq_rewriter_apply_insertions(f));
}
