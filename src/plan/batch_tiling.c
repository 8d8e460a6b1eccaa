/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/batch_tiling.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CACHE = 1 << 20,  /* Bytes that stay in a core's cache from node to node. */
    PAYS = 4 * CACHE, /* Least reduction of memory traffic, in bytes. */
    /* Cost of reading a byte of weights once more, in bytes of memory traffic. It includes the cost of
       smaller products. */
    AGAIN = 4,
    ROUNDS = 8,  /* Least number of tiles per thread, so that idle threads in the last round cost little. */
    ALIGN = 4096 /* The prefetcher of one core must not fetch another core's lines. */
};

/* The role of a value in batch tiling. */
typedef enum role {
    WHOLE,           /* The same for all tiles. */
    BATCH_SEPARABLE, /* Sliced along the batch: each tile has its part. */
    SHAPED           /* A constant that depends on the batch size. */
} role;

typedef struct tiler {
    dq_program *program;
    const dq_plan_request *request;
    struct dq_batch_tiling *tiling;
    dq_node *const *nodes;
    uint32_t node_count, end; /* Nodes before `end` run tile by tile. */
    int64_t length, each;     /* Length of the outermost axis: of the batch, and of a tile. */
    uint8_t *roles;           /* By slot of slices->shapes. */
    bool *outside;            /* By the same: the value is in the caller's memory. */
    bool *ahead; /* By the same: nodes before `end` produce the value, and it is not yet listed for the other
                    nodes. */
} tiler;

static const dq_slot *slot_of(const tiler *s, const dq_value *v)
{
    return dq_plan_slot(s->tiling->shapes, v);
}

static role role_of(const tiler *s, const dq_value *v)
{
    return s->roles[dq_plan_index(s->tiling->shapes, v)];
}

/* ---- Nodes to tile ----------------------------------------------------------------------------------- */

/* Number of the node's outputs that are computed; *constant: at planning time. */
static uint32_t count_outputs(const tiler *s, const dq_node *node, bool *constant)
{
    uint32_t count = 0;
    *constant = false;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_slot *slot = node->out[i] ? slot_of(s, node->out[i]) : NULL;
        count += slot && slot->where != DQ_AT_NONE;
        *constant |= slot && slot->where == DQ_AT_CONSTANT;
    }
    return count;
}

/* Whether the node preserves the outermost axis. */
static bool keeps_axis(const tiler *s, const dq_node *node, const dq_tensor *out)
{
    const dq_attr *axis = dq_node_attr(node, "axis");
    size_t count = 0;
    const int64_t *perm = dq_node_ints(node, "perm", &count);
    return !(axis && (axis->u.i == 0 || axis->u.i + (int64_t)out->rank == 0)) && !(count && perm[0]) &&
           out->rank && out->dims[0] == s->length &&
           strcmp(dq_node_string(node, "coordinate_transformation_mode", ""), "tf_crop_and_resize") != 0;
}

/* Whether input i of a view fits. Inputs other than the first are a shape, which may differ between the tile
 * and the batch. */
static bool view_fits(const tiler *s, const dq_node *node, uint32_t i, role r)
{
    const dq_tensor *t = &slot_of(s, node->in[i])->t;
    if (i == 0)
        return r == BATCH_SEPARABLE;
    return r == SHAPED || (r == WHOLE && t->data && t->dtype == DQ_INT64 && !t->unaligned && t->count &&
                           dq_tensor_get_int(t, 0) != s->length);
}

static bool input_fits(const tiler *s, const dq_node *node, uint32_t i, role r, const dq_tensor *out)
{
    const dq_tensor *t = &slot_of(s, node->in[i])->t;
    const bool along = dq_op_is_batch_separable(node->op->impl->flags, i);
    if (r == BATCH_SEPARABLE)
        return along && t->rank == out->rank;
    return r == WHOLE && !(along && t->rank == out->rank && t->dims[0] != 1);
}

/* Whether a tile of the outputs depends only on that tile of the inputs and on constants. */
static bool is_tiled(const tiler *s, const dq_node *node)
{
    const unsigned flags = node->op->impl->flags;
    const dq_tensor *out = NULL;
    bool is_batched = false;
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_slot *slot = node->out[i] ? slot_of(s, node->out[i]) : NULL;
        if (!slot || slot->where == DQ_AT_NONE)
            continue;
        if (!slot->shaped || !keeps_axis(s, node, &slot->t) || dq_dtype_is_packed(slot->t.dtype) ||
            (out && flags < DQ_OP_BATCH_SEPARABLE_ALL))
            return false;
        out = &slot->t;
    }
    for (uint32_t i = 0; out && i < node->in_count; i++) {
        const role r = node->in[i] ? role_of(s, node->in[i]) : WHOLE;
        if (!node->in[i])
            continue;
        if (!(flags & DQ_OP_VIEW ? view_fits(s, node, i, r) : input_fits(s, node, i, r, out)))
            return false;
        is_batched = is_batched || r == BATCH_SEPARABLE;
    }
    return is_batched;
}

/* A constant is WHOLE unless it is computed from the shape of the batch. */
static role constant_role(const tiler *s, const dq_node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && (slot_of(s, node->in[i])->where != DQ_AT_CONSTANT || role_of(s, node->in[i])))
            return SHAPED;
    return WHOLE;
}

/* Memory traffic of a node in bytes, over the whole batch, and of constants. `between`: inputs that earlier
 * nodes wrote; `given`: its outputs, which are copied once more if it is the last tiled node. */
typedef struct traffic {
    size_t tiling, constants, between, bindings;
} traffic;

static traffic traffic_of(const tiler *s, const dq_node *node)
{
    traffic t = {0};
    if (node->op->impl->flags & DQ_OP_VIEW)
        return t;
    for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
        const bool out = i >= node->in_count;
        const dq_value *v = out ? node->out[i - node->in_count] : node->in[i];
        const dq_slot *slot = v ? slot_of(s, v) : NULL;
        if (slot && role_of(s, v) == BATCH_SEPARABLE) {
            t.tiling += slot->t.size;
            t.between += out || s->outside[dq_plan_index(s->tiling->shapes, v)] ? 0 : 2 * slot->t.size;
            t.bindings += out ? slot->t.size : 0;
        } else if (slot && slot->where == DQ_AT_CONSTANT) {
            t.constants += slot->t.size;
        }
    }
    return t;
}

/* Determines the roles of values up to the first node that cannot be tiled, and the memory traffic. Returns
 * the number of nodes that can be tiled. */
static uint32_t find_roles(tiler *s, traffic *traffics)
{
    uint32_t n = 0;
    for (; n < s->node_count; n++) {
        const dq_node *node = s->nodes[n];
        bool constant;
        role r = BATCH_SEPARABLE;
        if (count_outputs(s, node, &constant) == 0)
            continue;
        if (constant)
            r = constant_role(s, node);
        else if (!is_tiled(s, node))
            break;
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i])
                s->roles[dq_plan_index(s->tiling->shapes, node->out[i])] = (uint8_t)r;
        if (r == BATCH_SEPARABLE)
            traffics[n] = traffic_of(s, node);
        if (r == BATCH_SEPARABLE && node->op->impl->flags & DQ_OP_VIEW)
            s->outside[dq_plan_index(s->tiling->shapes, node->out[0])] =
                s->outside[dq_plan_index(s->tiling->shapes, node->in[0])];
    }
    return n;
}

/* Chooses the largest tile that fits in the cache and divides the batch. Then chooses the last tiled node: it
 * excludes nodes whose weights, read again for each tile, cost more than the cache saves. */
static void choose(tiler *s, const traffic *traffics, uint32_t count)
{
    size_t largest = 1;
    double gain = 0, best = PAYS;
    for (uint32_t n = 0; n < count; n++)
        largest = traffics[n].tiling > largest ? traffics[n].tiling : largest;
    for (s->each = s->length; s->each > 1; s->each--)
        if (s->length % s->each == 0 && largest / (size_t)s->length * (size_t)s->each <= CACHE)
            break;
    for (uint32_t n = 0; n < count; n++) {
        gain -= AGAIN * (double)traffics[n].constants * (double)(s->length / s->each - 1);
        if (traffics[n].tiling > CACHE)
            gain += (double)traffics[n].between;
        if (gain - (double)traffics[n].bindings > best) {
            best = gain - (double)traffics[n].bindings;
            s->end = n + 1;
        }
    }
    if (s->each == s->length)
        s->end = 0;
}

/* ---- The plans of a tile and of the other nodes ------------------------------------------------------ */

static void scale(dq_tensor *t, int64_t from, int64_t to)
{
    t->dims[0] = to;
    t->count = t->count / (size_t)from * (size_t)to;
    t->size = t->size / (size_t)from * (size_t)to;
}

/* Checks that values of a tile have the shapes of the batch, except for the length of the outermost axis. */
static bool holds(const tiler *s, const dq_plan *plan)
{
    bool same = !dq_plan_has_dynamic_steps(plan);
    for (uint32_t n = 0; same && n < s->end; n++)
        for (uint32_t i = 0; i < s->nodes[n]->out_count; i++) {
            const dq_value *v = s->nodes[n]->out[i];
            if (!v || role_of(s, v) != BATCH_SEPARABLE || slot_of(s, v)->where == DQ_AT_NONE)
                continue;
            dq_tensor whole = slot_of(s, v)->t;
            scale(&whole, s->length, s->each);
            same = same && dq_tensor_same_shape(&whole, &dq_plan_slot(plan, v)->t);
        }
    return same;
}

static dq_status make_runner(tiler *s, dq_plan_request request, dq_batch_tile_runner *runner, dq_error *err)
{
    dq_arena *arena = &s->tiling->arena;
    runner->bindings = DQ_NEW_ARRAY(arena, request.binding_count, dq_binding);
    runner->tensors = DQ_NEW_ARRAY(arena, request.binding_count, dq_tensor);
    if (!runner->bindings || !runner->tensors)
        return dq_no_memory(err, request.binding_count * sizeof(dq_tensor), "batch tiles");
    for (uint32_t i = 0; i < request.binding_count; i++) {
        runner->bindings[i] = request.bindings[i];
        runner->tensors[i] = *request.bindings[i].tensor;
        runner->bindings[i].tensor = &runner->tensors[i];
        if (s->tiling->is_batched[i])
            scale(&runner->tensors[i], s->length, s->each);
    }
    request.bindings = runner->bindings;
    return dq_plan_create(s->program, &request, &runner->plan, err);
}

/* Each thread gets tiles of its own if their number leaves hardly any thread idle. */
static dq_status make_runners(tiler *s, dq_error *err)
{
    struct dq_batch_tiling *tiling = s->tiling;
    const size_t threads = dq_threads_count(s->request->threads);
    const bool parallel = tiling->count % threads == 0 || tiling->count >= ROUNDS * threads;
    dq_plan_request request = *s->request;
    request.nodes = s->nodes;
    request.node_count = s->end;
    request.requested = tiling->values;
    request.requested_count = tiling->value_count;
    request.by_batch_tiles = false;
    request.part = true;
    request.budget = NULL; /* The work of all tiles is counted before the first. */
    for (uint32_t n = 0; n < s->end; n++)
        tiling->work = dq_work_add(tiling->work, tiling->shapes->works[n]);
    if (parallel)
        request.threads = dq_threads_alone(request.threads);
    tiling->runner_count = parallel ? threads : 1;
    tiling->runners = DQ_NEW_ARRAY(&tiling->arena, tiling->runner_count, dq_batch_tile_runner);
    if (!tiling->runners)
        return dq_no_memory(err, tiling->runner_count * sizeof(dq_batch_tile_runner), "batch tiles");
    for (size_t i = 0; i < tiling->runner_count; i++) {
        DQ_TRY(make_runner(s, request, &tiling->runners[i], err));
        request.why = NULL;
    }
    return holds(s, tiling->runners[0].plan) ? DQ_OK : dq_fail(err, DQ_INTERNAL, "batch tiles differ");
}

typedef struct list {
    const tiler *s;
    dq_binding *bindings; /* Bindings of the other nodes: the caller's, and the results of the tiles. */
    uint32_t count;
} list;

/* Lists a value that the other nodes or a caller read. */
static void list_value(void *arg, dq_value *v)
{
    list *l = arg;
    const dq_slot *slot = slot_of(l->s, v);
    struct dq_batch_tiling *tiling = l->s->tiling;
    bool *ahead = &l->s->ahead[dq_plan_index(tiling->shapes, v)];
    if (!*ahead)
        return;
    *ahead = false;
    const bool constant = slot->where == DQ_AT_CONSTANT;
    l->bindings[l->count++] = (dq_binding){.value = v,
                                           .tensor = &slot->t,
                                           .constant = constant,
                                           .fixed = constant && slot->fixed,
                                           .persistent = constant && slot->persistent,
                                           .computed = !constant};
    if (!constant)
        tiling->values[tiling->value_count++] = v;
}

static dq_status list_values(tiler *s, list *l, dq_error *err)
{
    const dq_plan_request *request = s->request;
    const size_t most = s->tiling->shapes->slot_count;
    bool constant;
    l->bindings = DQ_NEW_ARRAY(&s->tiling->arena, most + request->binding_count, dq_binding);
    s->tiling->values = DQ_NEW_ARRAY(&s->tiling->arena, most, const dq_value *);
    if (!l->bindings || !s->tiling->values)
        return dq_no_memory(err, most * sizeof *l->bindings, "batch tiles");
    for (; l->count < request->binding_count; l->count++)
        l->bindings[l->count] = request->bindings[l->count];
    for (uint32_t n = 0; n < s->end; n++)
        for (uint32_t i = 0; i < s->nodes[n]->out_count; i++)
            if (s->nodes[n]->out[i])
                s->ahead[dq_plan_index(s->tiling->shapes, s->nodes[n]->out[i])] = true;
    for (uint32_t n = s->end; n < s->node_count; n++)
        if (count_outputs(s, s->nodes[n], &constant))
            dq_node_each_use(s->nodes[n], list_value, l);
    for (uint32_t i = 0; i < request->requested_count; i++)
        list_value(l, (dq_value *)(uintptr_t)request->requested[i]);
    return DQ_OK;
}

static void tell(const tiler *s)
{
    char message[128];
    if (!s->request->why)
        return;
    snprintf(message, sizeof message,
             "the first %u of %u nodes run in batch tiles, %" PRId64 " of %" PRId64 " images at a time",
             s->end, s->node_count, s->each, s->length);
    s->request->why(s->request->why_arg, message);
}

static dq_status make_plans(tiler *s, dq_plan **out, dq_error *err)
{
    struct dq_batch_tiling *tiling = s->tiling;
    list l = {s, NULL, 0};
    dq_plan_request rest = *s->request;
    rest.by_batch_tiles = false;
    DQ_TRY(list_values(s, &l, err));
    tiling->count = (size_t)(s->length / s->each);
    tiling->node_count = s->end;
    DQ_TRY(make_runners(s, err));
    if (!dq_align_size(tiling->runners[0].plan->buffer_size, ALIGN, &tiling->runner_bytes) ||
        !dq_mul_size(tiling->runner_bytes, tiling->runner_count, &rest.ahead))
        return dq_no_memory(err, SIZE_MAX, "batch tiles");
    rest.nodes = s->nodes + s->end;
    rest.node_count = s->node_count - s->end;
    rest.bindings = l.bindings;
    rest.binding_count = l.count;
    DQ_TRY(dq_plan_create(s->program, &rest, out, err));
    (*out)->tiling = tiling;
    tell(s);
    return DQ_OK;
}

/* ---- Decision ---------------------------------------------------------------------------------------- */

static dq_status look(tiler *s, dq_error *err)
{
    const dq_plan_request *request = s->request;
    struct dq_batch_tiling *tiling = s->tiling;
    tiling->binding_count = request->binding_count;
    const size_t slots = tiling->shapes->slot_count + (size_t)1;
    s->roles = DQ_NEW_ARRAY(&tiling->arena, slots, uint8_t);
    s->outside = DQ_NEW_ARRAY(&tiling->arena, slots, bool);
    s->ahead = DQ_NEW_ARRAY(&tiling->arena, slots, bool);
    tiling->is_batched = DQ_NEW_ARRAY(&tiling->arena, request->binding_count, bool);
    traffic *traffics = DQ_NEW_ARRAY(&tiling->arena, s->node_count, traffic);
    if (!s->roles || !s->outside || !s->ahead || !tiling->is_batched || !traffics)
        return dq_no_memory(err, slots, "batch tiles");
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const dq_tensor *t = request->bindings[i].tensor;
        tiling->is_batched[i] = t->rank && t->dims[0] == s->length && !dq_dtype_is_packed(t->dtype);
        const uint32_t slot = dq_plan_index(tiling->shapes, request->bindings[i].value);
        s->roles[slot] = tiling->is_batched[i] ? BATCH_SEPARABLE : WHOLE;
        s->outside[slot] = true;
    }
    choose(s, traffics, find_roles(s, traffics));
    return DQ_OK;
}

/* The batch size: length of the outermost axis of the first input; 0 if an input is no tensor, constant or
 * varying. */
static int64_t length_of(const dq_plan_request *request)
{
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const dq_binding *bindings = &request->bindings[i];
        if (bindings->tensor->kind != DQ_KIND_TENSOR || bindings->constant || bindings->varying)
            return 0;
    }
    return request->binding_count && request->bindings[0].tensor->rank ? request->bindings[0].tensor->dims[0]
                                                                       : 0;
}

void dq_batch_tiling_free(struct dq_batch_tiling *tiling)
{
    if (!tiling)
        return;
    for (size_t i = 0; tiling->runners && i < tiling->runner_count; i++)
        dq_plan_free(tiling->runners[i].plan);
    dq_plan_free(tiling->shapes);
    dq_arena_free(&tiling->arena);
    dq_memory_free(tiling->arena.allocator, tiling, sizeof *tiling);
}

dq_plan *dq_batch_tiling_undo(dq_plan *plan)
{
    dq_plan *whole = plan->tiling ? plan->tiling->shapes : plan;
    if (plan->tiling) {
        plan->tiling->shapes = NULL;
        dq_plan_free(plan);
    }
    return whole;
}

dq_status dq_batch_tiling_make(dq_plan **plan, const dq_plan_request *request, dq_error *err)
{
    tiler s = {.program = (*plan)->program, .request = request, .length = length_of(request)};
    s.nodes = request->nodes ? request->nodes : request->graph->nodes;
    s.node_count = request->nodes ? request->node_count : request->graph->node_count;
    if (s.length <= 1)
        return DQ_OK;
    s.tiling = dq_memory_calloc(request->allocator, 1, sizeof *s.tiling);
    if (!s.tiling)
        return dq_no_memory(err, sizeof *s.tiling, "batch tiles");
    s.tiling->arena.allocator = request->allocator;
    s.tiling->shapes = *plan;
    dq_status status = look(&s, err);
    if (status == DQ_OK && s.end && (status = make_plans(&s, plan, err)) == DQ_OK)
        return DQ_OK;
    s.tiling->shapes = NULL;
    dq_batch_tiling_free(s.tiling);
    /* Any other error occurs again without batch tiling, or is none then. */
    return status == DQ_OUT_OF_MEMORY || status == DQ_CANCELLED ? status : DQ_OK;
}
