/* Functions of one 8-bit value: everything between a DequantizeLinear and a QuantizeLinear that works element
 * by element on that value and scalar constants (Relu, Sigmoid, x * HardSigmoid(x), a chain of them, nothing
 * at all) becomes one look-up in a table of 256 entries. The table is filled by running those very nodes on
 * all codes: exact to the bit. */
#include "plan/fuser.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { CODES = 256, MOST_NODES = 32 };

/* Element by element, for any shape of its one input that is not a scalar constant. */
static bool is_elementwise(const dq_node *node)
{
    static const char *const names[] = {
        "Relu",    "Clip", "LeakyRelu",  "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Erf",
        "Exp",     "Log",  "Sqrt",       "Abs",     "Neg",         "Add",       "Sub",  "Mul",
        "Div",     "Pow",  "Reciprocal", "Floor",   "Ceil",        "Round",     "Min",  "Max",
        "Elu",     "Selu", "Gelu",       "Mish",    "Softplus",    "Softsign",  "Celu", "ThresholdedRelu",
        "Identity"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (dq_fuser_is(node, names[i]))
            return true;
    return false;
}

typedef struct region {
    dq_node *nodes[MOST_NODES]; /* in topological order */
    uint32_t count;
    const dq_node *source; /* the DequantizeLinear that all depends on */
    uint32_t inner_uses;   /* reads inside the region of values that it computes */
} region;

static bool in_region(const region *r, const dq_node *node)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->nodes[i] == node)
            return true;
    return false;
}

/* Adds what gives `v`, needs first; false when something stands in the way. */
static bool grow(const dq_fuser *f, region *r, const dq_value *v, int depth)
{
    const dq_tensor *constant = dq_fuser_constant(v);
    if (constant)
        return constant->count == 1;
    dq_node *node = v->producer;
    if (!node || v->graph != f->graph || depth > MOST_NODES)
        return false;
    dq_dequantized x;
    if (dq_fuser_dequantized(f, v, false, &x)) {
        if (!x.per_tensor || (r->source && r->source != node))
            return false;
        r->source = node;
        return true;
    }
    if (in_region(r, node))
        return true;
    if (!is_elementwise(node) || node->out_count != 1)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !grow(f, r, node->in[i], depth + 1))
            return false;
    if (r->count == MOST_NODES)
        return false;
    r->nodes[r->count++] = node;
    return true;
}

/* Values inside are read inside only: else they are computed anyway, and a table would save nothing. */
static bool is_closed(const dq_fuser *f, const region *r, const dq_node *last)
{
    for (uint32_t n = 0; n < r->count; n++) {
        const dq_value *v = r->nodes[n]->out[0];
        uint32_t reads = last->in[0] == v;
        for (uint32_t k = 0; k < r->count; k++)
            for (uint32_t i = 0; i < r->nodes[k]->in_count; i++)
                reads += r->nodes[k]->in[i] == v;
        if (f->uses[v->id] != reads)
            return false;
    }
    return true;
}

/* Computes the region's nodes on all codes. */
static dq_status fill_table(const dq_fuser *f, const region *r, dq_node *last, dq_dtype codes, uint8_t *table,
                            dq_error *err)
{
    dq_node *nodes[MOST_NODES + 2];
    uint8_t all[CODES];
    dq_tensor x = {.data = all};
    dq_plan *plan = NULL;
    dq_kernels kernels;
    for (int i = 0; i < CODES; i++)
        all[i] = (uint8_t)(codes == DQ_INT8 ? i - 128 : i);
    DQ_TRY(dq_tensor_set_shape(&x, codes, 1, (int64_t[]){CODES}, 0, DQ_INTERNAL, err));
    nodes[0] = (dq_node *)(uintptr_t)r->source;
    memcpy(nodes + 1, r->nodes, r->count * sizeof *nodes);
    nodes[r->count + 1] = last;
    dq_kernels_select(1, &kernels); /* portable C: fusion does not depend on the CPU */
    const dq_given given = {.value = r->source->in[0], .tensor = &x, .constant = true};
    const dq_value *wanted = last->out[0];
    const dq_plan_request request = {.graph = f->graph,
                                     .nodes = nodes,
                                     .node_count = r->count + 2,
                                     .given = &given,
                                     .given_count = 1,
                                     .wanted = &wanted,
                                     .wanted_count = 1,
                                     .kernels = &kernels};
    dq_status status = dq_plan_create(f->program, &request, &plan, err);
    if (status == DQ_OK) {
        /* all of it is constant, so that planning has computed it */
        const dq_tensor *y = dq_plan_output(plan, wanted);
        if (y->data && y->size == CODES)
            memcpy(table, y->data, CODES);
        else
            status = dq_fail(err, DQ_UNSUPPORTED, "a result is not one an element");
    }
    dq_plan_free(plan);
    return status;
}

bool dq_fuse_table(dq_fuser *f, uint32_t at)
{
    dq_node *last = f->nodes[at];
    dq_quantized q;
    region r = {0};
    dq_tensor *table;
    dq_error why;
    if (!dq_fuser_quantized(f, last, false, &q) || !grow(f, &r, last->in[0], 0) || !r.source ||
        !is_closed(f, &r, last))
        return false;
    dq_value *codes = r.source->in[0];
    dq_dtype dtype = dq_fuser_dtype(f, codes);
    dq_value *in[2] = {codes, dq_fuser_make_constant(f, q.dtype, 1, (int64_t[]){CODES}, &table)};
    if (!in[1])
        return false;
    dq_status status = fill_table(f, &r, last, dtype, table->data, &why);
    if (status != DQ_OK) {
        dq_fuser_tell(f, last, "no table: %s", why.message);
        return false;
    }
    dq_node *made = dq_fuser_node(f, "dqrun", "TableLookup", 1, last, 2, in, last->out[0], 0);
    if (!made || !dq_fuser_bind(f, made))
        return false;
    f->nodes[at] = made;
    dq_fuser_tell(f, last, "%u nodes before it become one look-up in a table", r.count);
    return true;
}
