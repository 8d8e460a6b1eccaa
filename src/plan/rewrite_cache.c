/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rewrite_cache.h"

#include "base/lock.h"
#include "base/memory.h"
#include "ops/conv/conv_s8_algorithms.h"
#include "plan/fold_constants.h"

#include <string.h>

typedef struct entry {
    struct entry *next;
    dq_rewritten_graph graph;
    const dq_value **requested;
    uint32_t requested_count;
    size_t nchw_max_depth;
    dq_pass_set disabled;
} entry;

struct dq_rewrite_cache {
    dq_lock lock;
    dq_arena arena;
    entry **of;          /* By the number of a graph: the first entry of its list. */
    uint32_t overridden; /* Number of inputs whose default some run has overridden. */
};

dq_status dq_rewrite_cache_create(uint32_t graph_count, const dq_allocator *allocator, dq_rewrite_cache **out,
                                  dq_error *err)
{
    dq_rewrite_cache *cache = dq_memory_calloc(allocator, 1, sizeof *cache);
    if (!cache)
        return dq_no_memory(err, sizeof *cache, "rewritten nodes");
    cache->arena.allocator = allocator;
    cache->of = DQ_NEW_ARRAY(&cache->arena, graph_count, entry *);
    dq_status status = cache->of ? dq_lock_create(&cache->lock, "rewritten nodes", err)
                                 : dq_no_memory(err, graph_count * sizeof *cache->of, "rewritten nodes");
    if (status != DQ_OK) {
        dq_arena_free(&cache->arena);
        dq_memory_free(allocator, cache, sizeof *cache);
        return status;
    }
    *out = cache;
    return DQ_OK;
}

void dq_rewrite_cache_free(dq_rewrite_cache *cache)
{
    if (!cache)
        return;
    dq_arena_free(&cache->arena);
    dq_lock_destroy(&cache->lock);
    dq_memory_free(cache->arena.allocator, cache, sizeof *cache);
}

uint32_t dq_rewrite_cache_override(dq_rewrite_cache *cache, dq_value *v)
{
    dq_lock_take(&cache->lock);
    cache->overridden += !atomic_exchange(&v->overridden, true);
    const uint32_t overridden = cache->overridden;
    dq_lock_release(&cache->lock);
    return overridden;
}

/* ---- Callbacks of the rewriter ----------------------------------------------------------------------- */

typedef struct caller {
    dq_program *program;
    const dq_plan_request *request;
    /* Explanations are queued until the lock is released, because the callback may wait for other threads. */
    dq_arena arena;
    struct explanation {
        struct explanation *next;
        const char *text;
    } * first, **end;
} caller;

static void explain(void *arg, const char *text)
{
    caller *c = arg;
    struct explanation *e = DQ_NEW(&c->arena, struct explanation);
    if (!e || !(e->text = dq_arena_string(&c->arena, text, strlen(text))))
        return;
    *c->end = e;
    c->end = &e->next;
}

static bool cancelled(void *arg)
{
    const caller *c = arg;
    return dq_threads_cancelled(c->request->threads);
}

static dq_status copy_tensor(const dq_tensor *from, dq_arena *arena, const dq_tensor **out, dq_error *err)
{
    dq_tensor *to = NULL;
    DQ_TRY(dq_tensor_new(arena, from->dtype, from->rank, from->dims, 0, &to, err));
    memcpy(to->data, from->data, from->size);
    *out = to;
    return DQ_OK;
}

/* Evaluates nodes by planning them: constants are folded. The program keeps values that depend on
 * initializers only; others are copied. */
static dq_status evaluate(void *arg, const dq_evaluation *e, dq_arena *arena, const dq_tensor **out,
                          dq_error *err)
{
    const caller *c = arg;
    dq_kernels kernels;
    dq_plan *plan = NULL;
    dq_binding *bindings = dq_memory_calloc(NULL, e->bound_count + 1, sizeof *bindings);
    if (!bindings)
        return dq_no_memory(err, e->bound_count * sizeof *bindings, "rewritten nodes");
    for (uint32_t i = 0; i < e->bound_count; i++)
        bindings[i] = (dq_binding){.value = e->bound[i].value,
                                   .tensor = e->bound[i].tensor,
                                   .constant = true,
                                   .fixed = e->bound[i].initializer,
                                   .persistent = e->bound[i].initializer};
    dq_kernels_select(1, &kernels); /* Portable C: the result does not depend on the processor. */
    const dq_plan_request request = {.graph = e->graph,
                                     .nodes = e->nodes,
                                     .node_count = e->node_count,
                                     .made = e->made,
                                     .made_count = e->made_count,
                                     .bindings = bindings,
                                     .binding_count = e->bound_count,
                                     .requested = e->results,
                                     .requested_count = e->result_count,
                                     .kernels = &kernels};
    dq_status status = dq_plan_create(c->program, &request, &plan, err);
    for (uint32_t i = 0; status == DQ_OK && i < e->result_count; i++) {
        const dq_value *v = e->results[i];
        const dq_tensor *computed = dq_plan_output(plan, v);
        out[i] = v->id < c->program->ir->value_count ? dq_folded_get(c->program->folded, v->id) : NULL;
        if (!out[i] && computed->data)
            status = copy_tensor(computed, arena, &out[i], err);
    }
    dq_plan_free(plan);
    dq_memory_free(NULL, bindings, (e->bound_count + 1) * sizeof *bindings);
    return status;
}

/* ---- Entries ------------------------------------------------------------------------------------------ */

static entry *find(const dq_rewrite_cache *cache, const dq_plan_request *request, size_t nchw_max_depth)
{
    const uint32_t count = request->requested_count;
    for (entry *e = cache->of[request->graph->number]; e; e = e->next)
        if (e->requested_count == count && e->nchw_max_depth == nchw_max_depth &&
            e->disabled == request->disabled_passes && e->graph.overridden == cache->overridden &&
            (count == 0 || memcmp(e->requested, request->requested, count * sizeof *e->requested) == 0))
            return e;
    return NULL;
}

static dq_status make(caller *c, size_t nchw_max_depth, entry **out, dq_error *err)
{
    const dq_plan_request *request = c->request;
    const uint32_t count = request->requested_count;
    dq_rewrite_cache *cache = c->program->rewrites;
    entry *e = DQ_NEW(&cache->arena, entry);
    const dq_value **values = DQ_NEW_ARRAY(&cache->arena, count, const dq_value *);
    if (!e || !values)
        return dq_no_memory(err, sizeof *e, "rewritten nodes");
    const dq_rewrite_request rewrite = {.ir = c->program->ir,
                                        .graph = request->graph,
                                        .schemas = c->program->schemas,
                                        .dtypes = c->program->dtypes,
                                        .requested = request->requested,
                                        .requested_count = count,
                                        .disabled = request->disabled_passes,
                                        .nchw_max_depth = nchw_max_depth,
                                        .arena = &cache->arena,
                                        .evaluate = evaluate,
                                        .cancelled = cancelled,
                                        .explain = request->why ? explain : NULL,
                                        .arg = c};
    dq_rewritten nodes;
    DQ_TRY(dq_rewrite(&rewrite, &nodes, err));
    if (count)
        memcpy(values, request->requested, count * sizeof *values);
    entry **first = &cache->of[request->graph->number];
    *e = (entry){.next = *first,
                 .graph = {.nodes = nodes, .overridden = cache->overridden},
                 .requested = values,
                 .requested_count = count,
                 .nchw_max_depth = nchw_max_depth,
                 .disabled = request->disabled_passes};
    *first = e;
    *out = e;
    return DQ_OK;
}

static dq_status make_locked(caller *c, const dq_rewritten_graph **out, dq_error *err)
{
    dq_status status = DQ_OK;
    const size_t nchw_max_depth = dq_conv_s8_depth_of_planes(c->request->kernels);
    dq_lock_take(&c->program->rewrites->lock);
    /* A request with `why` runs the passes again to get their explanations. */
    entry *e = c->request->why ? NULL : find(c->program->rewrites, c->request, nchw_max_depth);
    if (!e)
        status = make(c, nchw_max_depth, &e, err);
    if (status == DQ_OK)
        *out = &e->graph;
    dq_lock_release(&c->program->rewrites->lock);
    return status;
}

dq_status dq_program_rewrite(dq_program *program, const dq_plan_request *request,
                             const dq_rewritten_graph **out, dq_error *err)
{
    caller c = {.program = program, .request = request, .end = &c.first};
    const dq_status status = make_locked(&c, out, err);
    for (const struct explanation *e = c.first; e; e = e->next)
        request->why(request->why_arg, e->text);
    dq_arena_free(&c.arena);
    return status;
}
