#include "plan/fuse.h"

#include "plan/fuser.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Looking ------------------------------------------------------------------------------------------ */

bool dq_fuser_is(const dq_node *node, const char *op)
{
    return node && !*node->domain && strcmp(node->op_type, op) == 0;
}

const dq_tensor *dq_fuser_constant(const dq_value *v)
{
    if (!v)
        return NULL;
    if (v->constant)
        return v->is_input ? NULL : v->constant;
    const dq_attr *attr = dq_fuser_is(v->producer, "Constant") ? dq_node_attr(v->producer, "value") : NULL;
    return attr && attr->kind == DQ_ATTR_TENSOR ? attr->u.tensor : NULL;
}

dq_dtype dq_fuser_dtype(const dq_fuser *f, const dq_value *v)
{
    const dq_tensor *constant = dq_fuser_constant(v);
    dq_dtype known = v->id < f->use_count ? f->dtypes[v->id] : DQ_UNDEFINED;
    return constant ? constant->dtype : known ? known : v->type.dtype;
}

bool dq_fuser_once(const dq_fuser *f, const dq_value *v)
{
    return v->id < f->use_count && f->uses[v->id] == 1;
}

static bool is_code(dq_dtype dtype, bool any)
{
    if (dtype == DQ_UINT8 || dtype == DQ_INT8)
        return true;
    return any && (dtype == DQ_UINT16 || dtype == DQ_INT16 || dtype == DQ_INT32);
}

static bool is_quantizing_domain(const dq_node *node)
{
    return !*node->domain || strcmp(node->domain, "com.microsoft") == 0;
}

static bool read_dequantized(const dq_fuser *f, const dq_node *node, bool any, dq_dequantized *out)
{
    if (!node || strcmp(node->op_type, "DequantizeLinear") != 0 || !is_quantizing_domain(node) ||
        node->graph != f->graph)
        return false;
    *out = (dq_dequantized){.node = node, .codes = node->in[0], .scale = node->in[1]};
    out->zero = node->in_count > 2 ? node->in[2] : NULL;
    out->scale_t = dq_fuser_constant(out->scale);
    out->zero_t = dq_fuser_constant(out->zero);
    out->dtype = dq_fuser_dtype(f, out->codes);
    out->axis = dq_node_int(node, "axis", 1);
    int64_t result = dq_node_int(node, "output_dtype", 0);
    if (!out->scale_t || (out->zero && !out->zero_t) || out->scale_t->dtype != DQ_FLOAT ||
        !is_code(out->dtype, any) || (result != 0 && result != DQ_FLOAT) || out->scale_t->rank > 1 ||
        out->scale_t->count == 0)
        return false;
    out->per_tensor = out->scale_t->count == 1;
    return out->per_tensor || dq_node_int(node, "block_size", 0) == 0;
}

bool dq_fuser_dequantized(const dq_fuser *f, const dq_value *v, bool any, dq_dequantized *out)
{
    const dq_value *from = dq_fuser_unmoved(f, v);
    if (!from || !read_dequantized(f, from->producer, any, out))
        return false;
    if (from == v)
        return true;
    out->moved = v;
    if (out->per_tensor) {
        dq_params p = dq_fuser_params(out->scale_t, out->zero_t, out->dtype);
        return dq_fuser_all_move(f, v, &p);
    }
    const dq_tensor *codes = dq_fuser_constant(out->codes);
    return codes && dq_fuser_move_axis(v, from, codes->rank, &out->axis);
}

bool dq_fuser_quantized(const dq_fuser *f, const dq_node *node, bool any, dq_quantized *out)
{
    if (strcmp(node->op_type, "QuantizeLinear") != 0 || !is_quantizing_domain(node) || !node->out[0] ||
        dq_node_int(node, "precision", 0) != 0)
        return false;
    *out = (dq_quantized){.node = node, .scale = node->in[1]};
    out->zero = node->in_count > 2 ? node->in[2] : NULL;
    out->scale_t = dq_fuser_constant(out->scale);
    out->zero_t = dq_fuser_constant(out->zero);
    int64_t declared = dq_node_int(node, "output_dtype", 0);
    out->dtype = out->zero_t ? out->zero_t->dtype : declared ? (dq_dtype)declared : DQ_UINT8;
    return out->scale_t && (!out->zero || out->zero_t) && out->scale_t->dtype == DQ_FLOAT &&
           out->scale_t->count == 1 && out->scale_t->rank <= 1 && is_code(out->dtype, any) &&
           out->dtype != DQ_INT32 && dq_fuser_dtype(f, node->in[0]) == DQ_FLOAT;
}

float dq_fuser_scale(const dq_tensor *scale, size_t i)
{
    return dq_data(scale, float)[scale->count == 1 ? 0 : i];
}

int64_t dq_fuser_zero(const dq_tensor *zero, size_t i)
{
    return zero ? dq_tensor_get_int(zero, zero->count == 1 ? 0 : i) : 0;
}

dq_params dq_fuser_params(const dq_tensor *scale, const dq_tensor *zero, dq_dtype dtype)
{
    return (dq_params){dq_fuser_scale(scale, 0), dq_fuser_zero(zero, 0), dtype};
}

int64_t dq_fuser_code(const dq_params *p, float v)
{
    const dq_dtype_row *row = dq_dtype_get(p->dtype);
    double code = nearbyint((double)(v / p->scale)) + (double)p->zero;
    return !(code > (double)row->min) ? row->min : code >= (double)row->max ? row->max : (int64_t)code;
}

bool dq_fuser_same_params(const dq_tensor *scale_a, const dq_tensor *zero_a, const dq_tensor *scale_b,
                          const dq_tensor *zero_b)
{
    return scale_a->count == 1 && scale_b->count == 1 &&
           dq_fuser_scale(scale_a, 0) == dq_fuser_scale(scale_b, 0) &&
           dq_fuser_zero(zero_a, 0) == dq_fuser_zero(zero_b, 0);
}

/* ---- Making ------------------------------------------------------------------------------------------- */

static bool out_of_memory(dq_fuser *f)
{
    f->failed = true;
    dq_no_memory(f->err, 64, "fused nodes");
    return false;
}

static dq_value *add_value(dq_fuser *f)
{
    if (f->value_count == f->value_capacity) {
        uint32_t wanted = f->value_capacity ? f->value_capacity * 2 : 64;
        dq_value **grown = DQ_NEW_ARRAY(f->arena, wanted, dq_value *);
        if (!grown)
            return out_of_memory(f), NULL;
        if (f->value_count)
            memcpy(grown, f->values, f->value_count * sizeof *grown);
        f->values = grown;
        f->value_capacity = wanted;
    }
    dq_value *v = DQ_NEW(f->arena, dq_value);
    if (!v)
        return out_of_memory(f), NULL;
    v->id = f->program->ir->value_count + f->value_count;
    v->graph = f->graph;
    v->name = "";
    f->values[f->value_count++] = v;
    return v;
}

dq_value *dq_fuser_make_constant(dq_fuser *f, dq_dtype dtype, size_t rank, const int64_t *dims, dq_tensor **t)
{
    dq_value *v = add_value(f);
    if (!v || dq_tensor_new(f->arena, dtype, rank, dims, 0, t, f->err) != DQ_OK)
        return out_of_memory(f), NULL;
    v->constant = *t;
    v->type.dtype = dtype;
    return v;
}

dq_value *dq_fuser_make_value(dq_fuser *f, const char *name, dq_dtype dtype)
{
    dq_value *v = add_value(f);
    if (v) {
        v->name = name;
        v->type.dtype = dtype;
    }
    return v;
}

static dq_value *zero_value(dq_fuser *f, dq_value *v, dq_dtype dtype)
{
    dq_tensor *t;
    return v ? v : dq_fuser_make_constant(f, dtype, 0, NULL, &t);
}

bool dq_fuser_flip(dq_fuser *f, dq_dequantized *x)
{
    dq_tensor *codes, *zero;
    if (!dq_fuser_settle(f, x) || !is_code(x->dtype, false) || !x->per_tensor)
        return false;
    const dq_tensor *from = dq_fuser_constant(x->codes);
    dq_dtype dtype = x->dtype == DQ_INT8 ? DQ_UINT8 : DQ_INT8;
    int64_t step = x->dtype == DQ_INT8 ? 128 : -128;
    if (!from)
        return false;
    x->codes = dq_fuser_make_constant(f, dtype, from->rank, from->dims, &codes);
    x->zero = dq_fuser_make_constant(f, dtype, 0, NULL, &zero);
    if (!x->codes || !x->zero)
        return false;
    for (size_t i = 0; i < from->count; i++)
        dq_data(codes, uint8_t)[i] = dq_data(from, uint8_t)[i] ^ 0x80;
    dq_tensor_put_int(zero, 0, dq_fuser_zero(x->zero_t, 0) + step);
    x->zero_t = zero;
    x->dtype = dtype;
    return true;
}

bool dq_fuser_operand(dq_fuser *f, const dq_dequantized *x, dq_value **in)
{
    in[0] = dq_fuser_codes(f, x);
    in[1] = x->scale;
    in[2] = zero_value(f, x->zero, x->dtype);
    return in[0] && in[2];
}

void dq_fuser_result(dq_fuser *f, const dq_quantized *q, dq_value **in)
{
    in[0] = q->scale;
    in[1] = zero_value(f, q->zero, q->dtype);
}

void dq_fuser_copy_attrs(const dq_node *from, dq_node *to)
{
    for (uint32_t i = 0; i < from->attr_count; i++)
        to->attrs[i] = from->attrs[i];
}

dq_node *dq_fuser_node(dq_fuser *f, const char *domain, const char *op, int opset, const dq_node *like,
                       uint32_t in_count, dq_value *const *in, dq_value *out, uint32_t attr_count)
{
    dq_node *node = DQ_NEW(f->arena, dq_node);
    if (!node)
        return out_of_memory(f), NULL;
    *node = (dq_node){.name = like->name,
                      .domain = domain,
                      .op_type = op,
                      .overload = "",
                      .opset = opset,
                      .in_count = in_count,
                      .out_count = 1,
                      .attr_count = attr_count,
                      .graph = f->graph,
                      .position = like->position,
                      .made = true};
    node->in = DQ_NEW_ARRAY(f->arena, in_count, dq_value *);
    node->out = DQ_NEW_ARRAY(f->arena, 1, dq_value *);
    node->in_names = DQ_NEW_ARRAY(f->arena, in_count, const char *);
    node->out_names = DQ_NEW_ARRAY(f->arena, 1, const char *);
    node->attrs = DQ_NEW_ARRAY(f->arena, attr_count, dq_attr);
    if (!node->in || !node->out || !node->in_names || !node->out_names || !node->attrs)
        return out_of_memory(f), NULL;
    for (uint32_t i = 0; i < in_count; i++) {
        node->in[i] = in[i];
        /* a name that is not empty says that the input is there */
        node->in_names[i] = !in[i] ? "" : *in[i]->name ? in[i]->name : "(made)";
    }
    node->out[0] = out;
    node->out_names[0] = *out->name ? out->name : "(made)";
    return node;
}

bool dq_fuser_give(dq_fuser *f, dq_node *node, uint32_t count, dq_value *const *outs)
{
    dq_value **out = DQ_NEW_ARRAY(f->arena, count, dq_value *);
    const char **names = DQ_NEW_ARRAY(f->arena, count, const char *);
    if (!out || !names)
        return out_of_memory(f);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = outs[i];
        names[i] = !outs[i] ? "" : *outs[i]->name ? outs[i]->name : "(made)";
    }
    node->out = out;
    node->out_names = names;
    node->out_count = count;
    return true;
}

/* What is known of types, held against the node's schema; `dtypes`, by value id, takes what is new of the
 * outputs' types. */
static dq_status bind_types(const dq_fuser *f, const dq_node *node, dq_dtype *dtypes, dq_error *err)
{
    dq_type *types = calloc((size_t)node->in_count + node->out_count + 1, sizeof *types);
    const dq_type **in = calloc((size_t)node->in_count + 1, sizeof *in);
    dq_status status = types && in ? DQ_OK : dq_no_memory(err, sizeof *types, "a node's types");
    for (uint32_t i = 0; status == DQ_OK && i < node->in_count; i++)
        if (node->in[i]) {
            types[i].dtype = dq_fuser_dtype(f, node->in[i]);
            in[i] = &types[i];
        }
    if (status == DQ_OK)
        status = dq_schema_bind_types(node->schema, node, in, types + node->in_count, err);
    for (uint32_t i = 0; status == DQ_OK && dtypes && i < node->out_count; i++)
        if (node->out[i] && types[node->in_count + i].kind == DQ_KIND_TENSOR && !dtypes[node->out[i]->id])
            dtypes[node->out[i]->id] = types[node->in_count + i].dtype;
    free(types);
    free(in);
    return status;
}

bool dq_fuser_bind(dq_fuser *f, dq_node *node)
{
    const dq_schema *schema = NULL;
    dq_error why;
    dq_status status =
        dq_schemas_find(f->program->schemas, node->domain, node->op_type, node->opset, &schema, &why);
    if (status == DQ_OK) {
        node->version = schema->since_version;
        status = dq_schema_check_node(schema, node, &why);
    }
    if (status == DQ_OK)
        status = bind_types(f, node, NULL, &why);
    if (status == DQ_OUT_OF_MEMORY)
        return out_of_memory(f);
    if (status == DQ_OK)
        node->op = dq_op_find(node->domain, node->op_type, node->version);
    if (status == DQ_OK && node->op)
        return true;
    dq_fuser_tell(f, node, "not fused: %s",
                  status == DQ_OK ? "the operator is not implemented" : why.message);
    return false;
}

bool dq_fuser_insert(dq_fuser *f, uint32_t at, dq_node *node)
{
    if (f->count == f->capacity) {
        uint32_t wanted = f->capacity + f->capacity / 2 + 16;
        dq_node **grown = DQ_NEW_ARRAY(f->arena, wanted, dq_node *);
        if (!grown)
            return out_of_memory(f);
        memcpy(grown, f->nodes, f->count * sizeof *grown);
        f->nodes = grown;
        f->capacity = wanted;
    }
    memmove(f->nodes + at + 1, f->nodes + at, (f->count - at) * sizeof *f->nodes);
    f->nodes[at] = node;
    f->count++;
    return true;
}

bool dq_fuser_before(dq_fuser *f, dq_node *node)
{
    if (!dq_fuser_insert(f, f->at, node))
        return false;
    f->at++;
    return true;
}

/* What the nodes take from the graphs around theirs are constants: given to the plan as inputs are. */
static uint32_t give_outer(const dq_fuser *f, dq_node *const *nodes, uint32_t count, dq_given *given)
{
    uint32_t found = 0;
    for (uint32_t n = 0; n < count; n++)
        for (uint32_t i = 0; i < nodes[n]->in_count; i++) {
            const dq_value *v = nodes[n]->in[i];
            const dq_tensor *constant = v && v->graph != f->graph ? dq_fuser_constant(v) : NULL;
            if (constant && given)
                given[found] = (dq_given){.value = v, .tensor = constant, .constant = true, .lasting = true};
            found += constant != NULL;
        }
    return found;
}

dq_status dq_fuser_run(const dq_fuser *f, dq_node *const *nodes, uint32_t count, const dq_given *given,
                       uint32_t given_count, const dq_value *wanted, dq_tensor **out, dq_error *err)
{
    dq_kernels kernels;
    dq_plan *plan = NULL;
    uint32_t outer = give_outer(f, nodes, count, NULL);
    dq_given *all = DQ_NEW_ARRAY(f->arena, given_count + outer, dq_given);
    *out = NULL;
    if (!all)
        return dq_no_memory(err, (given_count + outer) * sizeof *all, "fused nodes");
    if (given_count)
        memcpy(all, given, given_count * sizeof *given);
    give_outer(f, nodes, count, all + given_count);
    dq_kernels_select(1, &kernels); /* portable C: fusion does not depend on the CPU */
    const dq_plan_request request = {.graph = f->graph,
                                     .nodes = nodes,
                                     .node_count = count,
                                     .made = f->values,
                                     .made_count = f->value_count,
                                     .given = all,
                                     .given_count = given_count + outer,
                                     .wanted = &wanted,
                                     .wanted_count = 1,
                                     .kernels = &kernels};
    DQ_TRY(dq_plan_create(f->program, &request, &plan, err));
    const dq_tensor *y = dq_plan_output(plan, wanted);
    dq_status status = DQ_OK;
    if (y->data)
        status = dq_tensor_new(f->arena, y->dtype, y->rank, y->dims, 0, out, err);
    if (*out)
        memcpy((*out)->data, y->data, y->size);
    dq_plan_free(plan);
    return status;
}

bool dq_fuser_compute(dq_fuser *f, dq_node *node)
{
    dq_error why;
    dq_tensor *result = NULL;
    if (dq_fuser_constant(node->in[0]) && node->out_count == 1 &&
        dq_fuser_run(f, &node, 1, NULL, 0, node->out[0], &result, &why) == DQ_OUT_OF_MEMORY)
        return out_of_memory(f);
    node->out[0]->constant = result;
    return result || dq_fuser_before(f, node);
}

void dq_fuser_tell(const dq_fuser *f, const dq_node *node, const char *format, ...)
{
    char text[DQ_NODE_TEXT], decision[384], sentence[DQ_NODE_TEXT + 400];
    if (!f->why)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(decision, sizeof decision, format, args);
    va_end(args);
    snprintf(sentence, sizeof sentence, "%s: %s", dq_node_text(node, text), decision);
    f->why(f->why_arg, sentence);
}

/* ---- The pass ----------------------------------------------------------------------------------------- */

static void count_uses(dq_fuser *f, const dq_graph *g)
{
    for (uint32_t n = 0; n < g->node_count; n++) {
        const dq_node *node = g->nodes[n];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (node->in[i]) {
                f->uses[node->in[i]->id]++;
                f->reader[node->in[i]->id] = node;
            }
        for (uint32_t a = 0; a < node->attr_count; a++) {
            const dq_attr *attr = &node->attrs[a];
            if (attr->kind == DQ_ATTR_GRAPH)
                count_uses(f, attr->u.graph);
            for (size_t k = 0; attr->kind == DQ_ATTR_GRAPHS && k < attr->count; k++)
                count_uses(f, attr->u.graphs[k]);
        }
    }
    for (uint32_t i = 0; g != f->graph && i < g->output_count; i++)
        f->uses[g->outputs[i]->id]++;
}

/* From version 23 on, the schema leaves the result of DequantizeLinear open, and with it all types behind it.
 */
static dq_status refine_types(dq_fuser *f, dq_dtype *dtypes, dq_error *err)
{
    bool open = false;
    memcpy(dtypes, f->program->dtypes, f->use_count * sizeof *dtypes);
    f->dtypes = dtypes;
    for (uint32_t n = 0; n < f->graph->node_count; n++) {
        const dq_node *node = f->graph->nodes[n];
        const dq_value *out = node->out_count > 0 ? node->out[0] : NULL;
        dq_error unfit;
        if (!out || dtypes[out->id] || !node->schema || !is_quantizing_domain(node))
            continue;
        bool dequantizes = strcmp(node->op_type, "DequantizeLinear") == 0;
        if (dequantizes || strcmp(node->op_type, "QuantizeLinear") == 0) {
            dq_dtype given = (dq_dtype)dq_node_int(node, "output_dtype", 0);
            bool zero = node->in_count > 2 && node->in[2];
            dtypes[out->id] = given         ? given
                              : dequantizes ? dq_fuser_dtype(f, node->in[1])
                              : zero        ? dq_fuser_dtype(f, node->in[2])
                                            : DQ_UINT8;
            open = true;
        } else if (open && bind_types(f, node, dtypes, &unfit) == DQ_OUT_OF_MEMORY) {
            return dq_no_memory(err, 64, "a node's types");
        }
    }
    return DQ_OK;
}

static dq_status fuse(dq_fuser *f, const dq_value *const *wanted, uint32_t wanted_count, dq_error *err)
{
    const dq_graph *g = f->graph;
    f->use_count = f->program->ir->value_count;
    f->uses = DQ_NEW_ARRAY(f->arena, f->use_count, uint32_t);
    f->reader = DQ_NEW_ARRAY(f->arena, f->use_count, const dq_node *);
    dq_dtype *dtypes = DQ_NEW_ARRAY(f->arena, f->use_count, dq_dtype);
    f->capacity = g->node_count + 16;
    f->nodes = DQ_NEW_ARRAY(f->arena, f->capacity, dq_node *);
    if (!f->uses || !f->reader || !f->nodes || !dtypes)
        return dq_no_memory(err, f->capacity * sizeof *f->nodes, "fused nodes");
    DQ_TRY(refine_types(f, dtypes, err));
    f->count = g->node_count;
    if (g->node_count)
        memcpy(f->nodes, g->nodes, g->node_count * sizeof *g->nodes);
    count_uses(f, g);
    for (uint32_t i = 0; i < wanted_count; i++)
        if (wanted[i]->id < f->use_count)
            f->uses[wanted[i]->id] += 2; /* never "once": what a caller wants is computed as written */
    for (f->at = 0; f->at < f->count && !f->failed; f->at++) {
        if (f->nodes[f->at]->made)
            continue;
        /* tables before elements: x * x is cheaper and exact as a table */
        (void)(dq_fuse_products(f) || dq_fuse_table(f) || dq_fuse_elements(f) || dq_fuse_dynamic(f, f->at) ||
               dq_fuse_dynamic_conv(f, f->at) || dq_fuse_blocks(f, f->at));
    }
    return f->failed ? DQ_OUT_OF_MEMORY : DQ_OK;
}

/* ---- What a program keeps ----------------------------------------------------------------------------- */

typedef struct kept {
    struct kept *next;
    dq_fused fused;
    const dq_graph *graph;
    const dq_value **wanted;
    uint32_t wanted_count;
} kept;

struct dq_fusions {
    pthread_mutex_t lock;
    dq_arena arena;
    kept *first;
};

dq_status dq_fusions_create(dq_fusions **out, dq_error *err)
{
    dq_fusions *fusions = calloc(1, sizeof *fusions);
    if (!fusions)
        return dq_no_memory(err, sizeof *fusions, "fused nodes");
    if (pthread_mutex_init(&fusions->lock, NULL) != 0) {
        free(fusions);
        return dq_fail(err, DQ_OUT_OF_MEMORY, "the system refused a lock for fused nodes");
    }
    *out = fusions;
    return DQ_OK;
}

void dq_fusions_free(dq_fusions *fusions)
{
    if (!fusions)
        return;
    dq_arena_free(&fusions->arena);
    pthread_mutex_destroy(&fusions->lock);
    free(fusions);
}

static kept *find(const dq_fusions *fusions, const dq_graph *graph, const dq_value *const *wanted,
                  uint32_t count)
{
    for (kept *k = fusions->first; k; k = k->next)
        if (k->graph == graph && k->wanted_count == count &&
            (count == 0 || memcmp(k->wanted, wanted, count * sizeof *wanted) == 0))
            return k;
    return NULL;
}

static dq_status make(dq_program *program, dq_graph *graph, const dq_value *const *wanted, uint32_t count,
                      dq_why_fn why, void *why_arg, kept **out, dq_error *err)
{
    dq_fusions *fusions = program->fusions;
    dq_fuser f = {.program = program,
                  .graph = graph,
                  .arena = &fusions->arena,
                  .why = why,
                  .why_arg = why_arg,
                  .err = err};
    kept *k = DQ_NEW(&fusions->arena, kept);
    const dq_value **values = DQ_NEW_ARRAY(&fusions->arena, count, const dq_value *);
    if (!k || !values)
        return dq_no_memory(err, sizeof *k, "fused nodes");
    DQ_TRY(fuse(&f, wanted, count, err));
    if (count)
        memcpy(values, wanted, count * sizeof *wanted);
    *k = (kept){
        .next = fusions->first,
        .fused = {.nodes = f.nodes, .node_count = f.count, .values = f.values, .made_count = f.value_count},
        .graph = graph,
        .wanted = values,
        .wanted_count = count};
    fusions->first = k;
    *out = k;
    return DQ_OK;
}

dq_status dq_fuse(dq_program *program, dq_graph *graph, const dq_value *const *wanted, uint32_t wanted_count,
                  dq_why_fn why, void *why_arg, const dq_fused **out, dq_error *err)
{
    dq_status status = DQ_OK;
    pthread_mutex_lock(&program->fusions->lock);
    /* someone who asks why gets told: the pass runs again */
    kept *k = why ? NULL : find(program->fusions, graph, wanted, wanted_count);
    if (!k)
        status = make(program, graph, wanted, wanted_count, why, why_arg, &k, err);
    if (status == DQ_OK)
        *out = &k->fused;
    pthread_mutex_unlock(&program->fusions->lock);
    return status;
}
