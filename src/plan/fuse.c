#include "plan/fuse.h"

#include "plan/fuser.h"

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
    dq_dtype known = v->id < f->use_count ? f->program->dtypes[v->id] : DQ_UNDEFINED;
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

bool dq_fuser_dequantized(const dq_fuser *f, const dq_value *v, bool any, dq_dequantized *out)
{
    const dq_node *node = v ? v->producer : NULL;
    if (!node || strcmp(node->op_type, "DequantizeLinear") != 0 || !is_quantizing_domain(node) ||
        v->graph != f->graph)
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

void dq_fuser_operand(dq_fuser *f, const dq_dequantized *x, dq_value **in)
{
    in[0] = x->codes;
    in[1] = x->scale;
    in[2] = zero_value(f, x->zero, x->dtype);
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
    node->out_names[0] = out->name;
    return node;
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
            if (node->in[i])
                f->uses[node->in[i]->id]++;
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

static dq_status fuse(dq_fuser *f, const dq_value *const *wanted, uint32_t wanted_count, dq_error *err)
{
    const dq_graph *g = f->graph;
    f->use_count = f->program->ir->value_count;
    f->uses = DQ_NEW_ARRAY(f->arena, f->use_count, uint32_t);
    f->capacity = g->node_count + 16;
    f->nodes = DQ_NEW_ARRAY(f->arena, f->capacity, dq_node *);
    if (!f->uses || !f->nodes)
        return dq_no_memory(err, f->capacity * sizeof *f->nodes, "fused nodes");
    f->count = g->node_count;
    if (g->node_count)
        memcpy(f->nodes, g->nodes, g->node_count * sizeof *g->nodes);
    count_uses(f, g);
    for (uint32_t i = 0; i < wanted_count; i++)
        if (wanted[i]->id < f->use_count)
            f->uses[wanted[i]->id] += 2; /* never "once": what a caller wants is computed as written */
    for (uint32_t at = 0; at < f->count && !f->failed; at++) {
        uint32_t before = f->count;
        if (f->nodes[at]->made)
            continue;
        /* tables before elements: x * x is cheaper and exact as a table */
        if (dq_fuse_products(f, at) || dq_fuse_table(f, at) || dq_fuse_elements(f, at) ||
            dq_fuse_dynamic(f, at) || dq_fuse_blocks(f, at))
            at += f->count - before;
    }
    return f->failed ? DQ_OUT_OF_MEMORY : DQ_OK;
}

/* ---- What a program keeps ----------------------------------------------------------------------------- */

typedef struct kept {
    struct kept *next;
    dq_fused fused;
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

static kept *find(const dq_fusions *fusions, const dq_value *const *wanted, uint32_t count)
{
    for (kept *k = fusions->first; k; k = k->next)
        if (k->wanted_count == count &&
            (count == 0 || memcmp(k->wanted, wanted, count * sizeof *wanted) == 0))
            return k;
    return NULL;
}

static dq_status make(dq_program *program, const dq_value *const *wanted, uint32_t count, dq_why_fn why,
                      void *why_arg, kept **out, dq_error *err)
{
    dq_fusions *fusions = program->fusions;
    dq_fuser f = {.program = program,
                  .graph = program->ir->graph,
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
        .wanted = values,
        .wanted_count = count};
    fusions->first = k;
    *out = k;
    return DQ_OK;
}

dq_status dq_fuse(dq_program *program, const dq_value *const *wanted, uint32_t wanted_count, dq_why_fn why,
                  void *why_arg, const dq_fused **out, dq_error *err)
{
    dq_status status = DQ_OK;
    pthread_mutex_lock(&program->fusions->lock);
    /* someone who asks why gets told: the pass runs again */
    kept *k = why ? NULL : find(program->fusions, wanted, wanted_count);
    if (!k)
        status = make(program, wanted, wanted_count, why, why_arg, &k, err);
    if (status == DQ_OK)
        *out = &k->fused;
    pthread_mutex_unlock(&program->fusions->lock);
    return status;
}
