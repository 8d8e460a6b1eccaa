/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/rewrite.h"

#include "base/lock.h"
#include "base/memory.h"
#include "rewrite/rewriter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Looking ------------------------------------------------------------------------------------------ */

bool dq_rewriter_is(const dq_node *node, const char *op)
{
    return node && !*node->domain && strcmp(node->op_type, op) == 0;
}

const dq_tensor *dq_rewriter_constant(const dq_value *v)
{
    if (!v)
        return NULL;
    if (v->constant)
        return dq_value_holds(v) ? v->constant : NULL;
    const dq_attr *attr = dq_rewriter_is(v->producer, "Constant") ? dq_node_attr(v->producer, "value") : NULL;
    return attr && attr->kind == DQ_ATTR_TENSOR ? attr->u.tensor : NULL;
}

dq_dtype dq_rewriter_dtype(const dq_rewriter *f, const dq_value *v)
{
    const dq_tensor *constant = dq_rewriter_constant(v);
    const bool own = v->graph == f->graph;
    const dq_dtype known = !own                               ? f->program->dtypes[v->id]
                           : v->place < f->graph->value_count ? f->dtypes[v->place]
                                                              : DQ_UNDEFINED;
    return constant ? constant->dtype : known ? known : v->type.dtype;
}

bool dq_rewriter_is_half(const dq_rewriter *f, const dq_value *v)
{
    const dq_dtype dtype = v ? dq_rewriter_dtype(f, v) : DQ_UNDEFINED;
    return dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16;
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

static bool is_unfit(const dq_rewriter *f, const dq_node *node)
{
    const dq_value *out = node->out_count > 0 ? node->out[0] : NULL;
    return out && dq_rewriter_at(f, out) < f->use_count && f->unfit[dq_rewriter_at(f, out)];
}

static bool read_dequantized(const dq_rewriter *f, const dq_node *node, bool any, dq_dequantized *out)
{
    if (!node || strcmp(node->op_type, "DequantizeLinear") != 0 || !is_quantizing_domain(node) ||
        node->graph != f->graph || is_unfit(f, node))
        return false;
    *out = (dq_dequantized){.node = node,
                            .codes = dq_rewriter_resolve(f, node->in[0]),
                            .scale = dq_rewriter_resolve(f, node->in[1])};
    out->zero = dq_rewriter_resolve(f, dq_node_input(node, 2));
    out->scale_t = dq_rewriter_constant(out->scale);
    out->zero_t = dq_rewriter_constant(out->zero);
    out->dtype = dq_rewriter_dtype(f, out->codes);
    out->axis = dq_node_int(node, "axis", 1);
    int64_t result = dq_node_int(node, "output_dtype", 0);
    if (!out->scale_t || (out->zero && !out->zero_t) || out->scale_t->dtype != DQ_FLOAT ||
        !is_code(out->dtype, any) || (result != 0 && result != DQ_FLOAT) || out->scale_t->rank > 1 ||
        out->scale_t->count == 0)
        return false;
    out->per_tensor = out->scale_t->count == 1;
    return out->per_tensor || dq_node_int(node, "block_size", 0) == 0;
}

bool dq_rewriter_dequantized(const dq_rewriter *f, const dq_value *v, bool any, dq_dequantized *out)
{
    const dq_value *from = dq_rewriter_skip_moves(f, v);
    const uint32_t at = from ? dq_rewriter_at(f, from) : f->use_count;
    if (at >= f->use_count ||
        !read_dequantized(f, f->instead[at] ? f->instead[at] : from->producer, any, out))
        return false;
    if (from == v)
        return true;
    out->moved = v;
    if (out->per_tensor) {
        dq_quant_params p = dq_rewriter_params(out->scale_t, out->zero_t, out->dtype);
        return dq_rewriter_moves_commute(f, v, &p);
    }
    const dq_tensor *codes = dq_rewriter_constant(out->codes);
    return codes && dq_rewriter_transposed_axis(v, from, codes->rank, &out->axis);
}

bool dq_rewriter_quantized(const dq_rewriter *f, const dq_node *node, bool any, dq_quantized *out)
{
    if (strcmp(node->op_type, "QuantizeLinear") != 0 || !is_quantizing_domain(node) || !node->out[0] ||
        dq_node_int(node, "precision", 0) != 0 || is_unfit(f, node))
        return false;
    *out = (dq_quantized){.node = node, .scale = dq_rewriter_resolve(f, node->in[1])};
    out->zero = dq_rewriter_resolve(f, dq_node_input(node, 2));
    out->scale_t = dq_rewriter_constant(out->scale);
    out->zero_t = dq_rewriter_constant(out->zero);
    int64_t declared = dq_node_int(node, "output_dtype", 0);
    out->dtype = out->zero_t ? out->zero_t->dtype : declared ? (dq_dtype)declared : DQ_UINT8;
    return out->scale_t && (!out->zero || out->zero_t) && out->scale_t->dtype == DQ_FLOAT &&
           out->scale_t->count == 1 && out->scale_t->rank <= 1 && is_code(out->dtype, any) &&
           out->dtype != DQ_INT32 && dq_rewriter_dtype(f, node->in[0]) == DQ_FLOAT;
}

float dq_rewriter_float(const dq_tensor *t, size_t i)
{
    float v;
    memcpy(&v, (const char *)t->data + i * sizeof v, sizeof v);
    return v;
}

float dq_rewriter_scale(const dq_tensor *scale, size_t i)
{
    return dq_rewriter_float(scale, scale->count == 1 ? 0 : i);
}

int64_t dq_rewriter_zero(const dq_tensor *zero, size_t i)
{
    return zero ? dq_tensor_get_int(zero, zero->count == 1 ? 0 : i) : 0;
}

dq_quant_params dq_rewriter_params(const dq_tensor *scale, const dq_tensor *zero, dq_dtype dtype)
{
    return (dq_quant_params){dq_rewriter_scale(scale, 0), dq_rewriter_zero(zero, 0), dtype};
}

int64_t dq_rewriter_quantize(const dq_quant_params *p, float v)
{
    const dq_dtype_row *row = dq_dtype_get(p->dtype);
    double code = nearbyint((double)(v / p->scale)) + (double)p->zero;
    return !(code > (double)row->min) ? row->min : code >= (double)row->max ? row->max : (int64_t)code;
}

bool dq_rewriter_same_params(const dq_tensor *scale_a, const dq_tensor *zero_a, const dq_tensor *scale_b,
                             const dq_tensor *zero_b)
{
    return scale_a->count == 1 && scale_b->count == 1 &&
           dq_rewriter_scale(scale_a, 0) == dq_rewriter_scale(scale_b, 0) &&
           dq_rewriter_zero(zero_a, 0) == dq_rewriter_zero(zero_b, 0);
}

/* ---- The pass ----------------------------------------------------------------------------------------- */

/* From version 23 on, the schema leaves the result of DequantizeLinear open, and with it all types behind it.
 */
static dq_status refine_types(dq_rewriter *f, dq_dtype *dtypes, dq_error *err)
{
    bool open = false;
    for (uint32_t i = 0; i < f->graph->value_count; i++)
        dtypes[i] = f->program->dtypes[f->graph->all[i]->id];
    f->dtypes = dtypes;
    for (uint32_t n = 0; n < f->graph->node_count; n++) {
        const dq_node *node = f->graph->nodes[n];
        const dq_value *out = node->out_count > 0 ? node->out[0] : NULL;
        dq_error unfit;
        if (!out || dtypes[out->place] || !node->schema || !is_quantizing_domain(node))
            continue;
        bool dequantizes = strcmp(node->op_type, "DequantizeLinear") == 0;
        if (dequantizes || strcmp(node->op_type, "QuantizeLinear") == 0) {
            dq_dtype given = (dq_dtype)dq_node_int(node, "output_dtype", 0);
            const dq_value *zero = dq_node_input(node, 2);
            dtypes[out->place] = given         ? given
                                 : dequantizes ? dq_rewriter_dtype(f, node->in[1])
                                 : zero        ? dq_rewriter_dtype(f, zero)
                                               : DQ_UINT8;
            open = true;
        } else if (open && dq_rewriter_bind_types(f, node, dtypes, &unfit) == DQ_OUT_OF_MEMORY) {
            return dq_no_memory(err, 64, "a node's types");
        }
    }
    return DQ_OK;
}

static dq_status begin(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count, dq_error *err)
{
    const dq_graph *g = f->graph;
    f->use_count = f->known = g->value_count + g->capture_count + 1;
    f->count = g->node_count;
    f->nodes = DQ_NEW_ARRAY(f->arena, f->count, dq_node *);
    dq_dtype *dtypes = DQ_NEW_ARRAY(f->passing, g->value_count, dq_dtype);
    if (!f->nodes || !dtypes)
        return dq_no_memory(err, f->count * sizeof *f->nodes, "fused nodes");
    DQ_TRY(refine_types(f, dtypes, err));
    if (f->count)
        memcpy(f->nodes, g->nodes, f->count * sizeof *g->nodes);
    dq_promote_half(f, wanted, wanted_count);
    f->instead = DQ_NEW_ARRAY(f->passing, f->use_count, const dq_node *);
    f->insertions = DQ_NEW_ARRAY(f->passing, f->count, dq_insertion);
    if (f->failed || !f->instead || !f->insertions)
        return dq_no_memory(err, f->use_count * sizeof *f->instead, "fused nodes");
    return dq_rewriter_count_uses(f, wanted, wanted_count) && dq_fold_quantization_params(f) &&
                   dq_rewriter_check_scales(f)
               ? DQ_OK
               : DQ_OUT_OF_MEMORY;
}

static dq_status go_on(const dq_plan_request *request, dq_error *err)
{
    return dq_threads_cancelled(request->threads) ? dq_fail(err, DQ_CANCELLED, "the run was cancelled")
                                                  : DQ_OK;
}

/* Cancelled between nodes and between passes; nothing is kept then. */
static dq_status fuse(dq_rewriter *f, const dq_plan_request *request, dq_error *err)
{
    const dq_value *const *wanted = request->wanted;
    const uint32_t wanted_count = request->wanted_count;
    DQ_TRY(go_on(request, err));
    DQ_TRY(begin(f, wanted, wanted_count, err));
    for (f->at = 0; f->at < f->count && !f->failed; f->at++) {
        DQ_TRY(go_on(request, err));
        if (f->nodes[f->at]->made || !dq_rewriter_is_read(f, f->nodes[f->at]))
            continue;
        /* tables before elements: x * x is cheaper and exact as a table */
        (void)(dq_lower_qdq_matmul(f) || dq_lower_lut(f) || dq_lower_qdq_elementwise(f) ||
               dq_lower_qdq_tiled(f) || dq_lower_dynamic_matmul(f, f->at) ||
               dq_lower_dynamic_conv(f, f->at) || dq_fold_conv_epilogue(f, f->at) ||
               dq_lower_weight_only(f) || dq_fold_transpose(f) || dq_match_layer_norm(f) ||
               dq_lower_qlinear_lut(f));
    }
    if (!f->failed && dq_rewriter_apply_insertions(f))
        dq_fuse_elementwise(f, wanted, wanted_count);
    DQ_TRY(go_on(request, err));
    if (!f->failed)
        dq_assign_layout_nhwc(f, wanted, wanted_count);
    return f->failed ? DQ_OUT_OF_MEMORY : DQ_OK;
}

/* ---- What a program keeps ----------------------------------------------------------------------------- */

typedef struct kept {
    struct kept *next;
    dq_rewritten fused;
    const dq_value **wanted;
    uint32_t wanted_count;
    size_t deepest;
} kept;

struct dq_rewrite_cache {
    dq_lock lock;
    dq_arena arena;
    kept **of;    /* by the number of a graph: the first of its own */
    uint32_t fed; /* defaults of inputs that once were not what runs had */
};

dq_status dq_rewrite_cache_create(uint32_t graph_count, const dq_allocator *allocator, dq_rewrite_cache **out,
                                  dq_error *err)
{
    dq_rewrite_cache *fusions = dq_memory_calloc(allocator, 1, sizeof *fusions);
    if (!fusions)
        return dq_no_memory(err, sizeof *fusions, "fused nodes");
    fusions->arena.allocator = allocator;
    fusions->of = DQ_NEW_ARRAY(&fusions->arena, graph_count, kept *);
    dq_status status = fusions->of ? dq_lock_create(&fusions->lock, "fused nodes", err)
                                   : dq_no_memory(err, graph_count * sizeof *fusions->of, "fused nodes");
    if (status != DQ_OK) {
        dq_arena_free(&fusions->arena);
        dq_memory_free(allocator, fusions, sizeof *fusions);
        return status;
    }
    *out = fusions;
    return DQ_OK;
}

void dq_rewrite_cache_free(dq_rewrite_cache *fusions)
{
    if (!fusions)
        return;
    dq_arena_free(&fusions->arena);
    dq_lock_destroy(&fusions->lock);
    dq_memory_free(fusions->arena.allocator, fusions, sizeof *fusions);
}

static kept *find(const dq_rewrite_cache *fusions, const dq_plan_request *request, size_t deepest)
{
    const uint32_t count = request->wanted_count;
    for (kept *k = fusions->of[request->graph->number]; k; k = k->next)
        if (k->wanted_count == count && k->deepest == deepest && k->fused.fed == fusions->fed &&
            (count == 0 || memcmp(k->wanted, request->wanted, count * sizeof *k->wanted) == 0))
            return k;
    return NULL;
}

static dq_status make(dq_program *program, const dq_plan_request *request, size_t deepest, kept **out,
                      dq_error *err)
{
    const uint32_t count = request->wanted_count;
    dq_rewrite_cache *fusions = program->fusions;
    dq_arena passing = {0};
    dq_rewriter f = {.program = program,
                     .graph = request->graph,
                     .arena = &fusions->arena,
                     .passing = &passing,
                     .deepest = deepest,
                     .why = request->why,
                     .why_arg = request->why_arg,
                     .err = err};
    kept *k = DQ_NEW(&fusions->arena, kept);
    const dq_value **values = DQ_NEW_ARRAY(&fusions->arena, count, const dq_value *);
    if (!k || !values)
        return dq_no_memory(err, sizeof *k, "fused nodes");
    dq_status status = fuse(&f, request, err);
    dq_arena_free(&passing);
    DQ_TRY(status);
    if (count)
        memcpy(values, request->wanted, count * sizeof *values);
    kept **first = &fusions->of[request->graph->number];
    *k = (kept){.next = *first,
                .fused = {.nodes = f.nodes,
                          .node_count = f.count,
                          .values = f.values,
                          .made_count = f.value_count,
                          .fed = fusions->fed},
                .wanted = values,
                .wanted_count = count,
                .deepest = deepest};
    *first = k;
    *out = k;
    return DQ_OK;
}

uint32_t dq_rewrite_cache_feed(dq_rewrite_cache *fusions, dq_value *v)
{
    dq_lock_take(&fusions->lock);
    fusions->fed += !atomic_exchange(&v->fed, true);
    const uint32_t fed = fusions->fed;
    dq_lock_release(&fusions->lock);
    return fed;
}

/* What a pass says, for its caller's callback once no lock is taken: that may wait for other threads. */
typedef struct talk {
    dq_arena arena;
    struct said {
        struct said *next;
        const char *sentence;
    } * first, **end;
} talk;

static void note(void *arg, const char *sentence)
{
    talk *t = arg;
    struct said *s = DQ_NEW(&t->arena, struct said);
    if (!s || !(s->sentence = dq_arena_string(&t->arena, sentence, strlen(sentence))))
        return; /* it is explanation only */
    *t->end = s;
    t->end = &s->next;
}

static dq_status fuse_locked(dq_program *program, const dq_plan_request *request, const dq_rewritten **out,
                             dq_error *err)
{
    dq_status status = DQ_OK;
    const dq_qlanes *planes = request->kernels->qlanes;
    const bool beaten = planes->beats != request->kernels->qgemm;
    const size_t deepest = beaten ? 0 : planes->turns ? SIZE_MAX : planes->deepest;
    dq_lock_take(&program->fusions->lock);
    /* someone who asks why gets told: the pass runs again */
    kept *k = request->why ? NULL : find(program->fusions, request, deepest);
    if (!k)
        status = make(program, request, deepest, &k, err);
    if (status == DQ_OK)
        *out = &k->fused;
    dq_lock_release(&program->fusions->lock);
    return status;
}

dq_status dq_rewrite(dq_program *program, const dq_plan_request *request, const dq_rewritten **out,
                     dq_error *err)
{
    talk t = {.end = &t.first};
    dq_plan_request noted = *request;
    if (request->why) {
        noted.why = note;
        noted.why_arg = &t;
    }
    dq_status status = fuse_locked(program, &noted, out, err);
    for (const struct said *s = t.first; s; s = s->next)
        request->why(request->why_arg, s->sentence);
    dq_arena_free(&t.arena);
    return status;
}
