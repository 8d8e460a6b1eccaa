/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/batch_tiling.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CACHE = 1 << 20,  /* bytes that stay in a core's cache from node to node */
    PAYS = 4 * CACHE, /* bytes less to fetch */
    AGAIN = 4,        /* what a byte of weights that is read once more costs, in bytes that are not fetched:
                         it comes with shorter products, too */
    ROUNDS = 8,       /* of slices for all threads, where the last may leave some of them without */
    ALIGN = 4096      /* what one core fetches ahead is not the other's */
};

/* What a value is to slices. */
typedef enum role {
    WHOLE,           /* the same for all */
    BATCH_SEPARABLE, /* one of each */
    SHAPED           /* a constant that depends on how many there are */
} role;

typedef struct slicer {
    dq_program *program;
    const dq_plan_request *request;
    struct dq_slices *slices;
    dq_node *const *nodes;
    uint32_t node_count, end; /* nodes before `end` run by slices */
    int64_t length, each;     /* of the outermost axis: in all, and at a time */
    uint8_t *roles;           /* by slot of slices->shapes */
    bool *outside;            /* by the same: has the caller's memory */
    bool *ahead;              /* by the same: what nodes before `end` give, until it is listed for the rest */
} slicer;

static const dq_slot *slot_of(const slicer *s, const dq_value *v)
{
    return dq_plan_slot(s->slices->shapes, v);
}

static role role_of(const slicer *s, const dq_value *v)
{
    return s->roles[dq_plan_index(s->slices->shapes, v)];
}

/* ---- Which nodes -------------------------------------------------------------------------------------- */

/* Of the node's outputs, those that are computed; *constant: while planning. */
static uint32_t count_outputs(const slicer *s, const dq_node *node, bool *constant)
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

/* Whether the outermost axis stays what it is. */
static bool keeps_axis(const slicer *s, const dq_node *node, const dq_tensor *out)
{
    const dq_attr *axis = dq_node_attr(node, "axis");
    size_t count = 0;
    const int64_t *perm = dq_node_ints(node, "perm", &count);
    return !(axis && (axis->u.i == 0 || axis->u.i + (int64_t)out->rank == 0)) && !(count && perm[0]) &&
           out->rank && out->dims[0] == s->length &&
           strcmp(dq_node_string(node, "coordinate_transformation_mode", ""), "tf_crop_and_resize") != 0;
}

/* A view's other inputs are a shape, which slices may have their own of. */
static bool view_fits(const slicer *s, const dq_node *node, uint32_t i, role r)
{
    const dq_tensor *t = &slot_of(s, node->in[i])->t;
    if (i == 0)
        return r == BATCH_SEPARABLE;
    return r == SHAPED || (r == WHOLE && t->data && t->dtype == DQ_INT64 && !t->unaligned && t->count &&
                           dq_tensor_get_int(t, 0) != s->length);
}

static bool input_fits(const slicer *s, const dq_node *node, uint32_t i, role r, const dq_tensor *out)
{
    const dq_tensor *t = &slot_of(s, node->in[i])->t;
    const bool along = dq_op_is_batch_separable(node->op->impl->flags, i);
    if (r == BATCH_SEPARABLE)
        return along && t->rank == out->rank;
    return r == WHOLE && !(along && t->rank == out->rank && t->dims[0] != 1);
}

/* Whether slices of what the node gives, or nothing but constants, follow from those of what it takes. */
static bool goes_by_slices(const slicer *s, const dq_node *node)
{
    const unsigned flags = node->op->impl->flags;
    const dq_tensor *out = NULL;
    bool sliced = false;
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
        sliced = sliced || r == BATCH_SEPARABLE;
    }
    return sliced;
}

/* Constants are WHOLE, unless one is the shape of slices or follows from such a one. */
static role constant_role(const slicer *s, const dq_node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && (slot_of(s, node->in[i])->where != DQ_AT_CONSTANT || role_of(s, node->in[i])))
            return SHAPED;
    return WHOLE;
}

/* What a node reads and writes of all slices, and of constants: bytes. `between`: what nodes before it wrote
 * and it reads; `given`: what it writes, which is copied once more behind the last of the nodes. */
typedef struct traffic {
    size_t slices, constants, between, given;
} traffic;

static traffic traffic_of(const slicer *s, const dq_node *node)
{
    traffic t = {0};
    if (node->op->impl->flags & DQ_OP_VIEW)
        return t;
    for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
        const bool out = i >= node->in_count;
        const dq_value *v = out ? node->out[i - node->in_count] : node->in[i];
        const dq_slot *slot = v ? slot_of(s, v) : NULL;
        if (slot && role_of(s, v) == BATCH_SEPARABLE) {
            t.slices += slot->t.size;
            t.between += out || s->outside[dq_plan_index(s->slices->shapes, v)] ? 0 : 2 * slot->t.size;
            t.given += out ? slot->t.size : 0;
        } else if (slot && slot->where == DQ_AT_CONSTANT) {
            t.constants += slot->t.size;
        }
    }
    return t;
}

/* Gives values their roles, as far as nodes go by slices, and notes what they read and write. */
static uint32_t find_roles(slicer *s, traffic *traffics)
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
        else if (!goes_by_slices(s, node))
            break;
        for (uint32_t i = 0; i < node->out_count; i++)
            if (node->out[i])
                s->roles[dq_plan_index(s->slices->shapes, node->out[i])] = (uint8_t)r;
        if (r == BATCH_SEPARABLE)
            traffics[n] = traffic_of(s, node);
        if (r == BATCH_SEPARABLE && node->op->impl->flags & DQ_OP_VIEW)
            s->outside[dq_plan_index(s->slices->shapes, node->out[0])] =
                s->outside[dq_plan_index(s->slices->shapes, node->in[0])];
    }
    return n;
}

/* As many slices at a time as the cache holds, in equal parts. Then nodes are left to the rest whose weights,
 * read again for each part, are more than what they would find in the cache. */
static void choose(slicer *s, const traffic *traffics, uint32_t count)
{
    size_t largest = 1;
    double gain = 0, best = PAYS;
    for (uint32_t n = 0; n < count; n++)
        largest = traffics[n].slices > largest ? traffics[n].slices : largest;
    for (s->each = s->length; s->each > 1; s->each--)
        if (s->length % s->each == 0 && largest / (size_t)s->length * (size_t)s->each <= CACHE)
            break;
    for (uint32_t n = 0; n < count; n++) {
        gain -= AGAIN * (double)traffics[n].constants * (double)(s->length / s->each - 1);
        if (traffics[n].slices > CACHE)
            gain += (double)traffics[n].between;
        if (gain - (double)traffics[n].given > best) {
            best = gain - (double)traffics[n].given;
            s->end = n + 1;
        }
    }
    if (s->each == s->length)
        s->end = 0;
}

/* ---- Their plan, and that of the rest ------------------------------------------------------------------ */

static void scale(dq_tensor *t, int64_t from, int64_t to)
{
    t->dims[0] = to;
    t->count = t->count / (size_t)from * (size_t)to;
    t->size = t->size / (size_t)from * (size_t)to;
}

/* A slice must have the shape of the whole but for its length. */
static bool holds(const slicer *s, const dq_plan *plan)
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

static dq_status make_runner(slicer *s, dq_plan_request request, dq_slice_runner *runner, dq_error *err)
{
    dq_arena *arena = &s->slices->arena;
    runner->given = DQ_NEW_ARRAY(arena, request.given_count, dq_binding);
    runner->tensors = DQ_NEW_ARRAY(arena, request.given_count, dq_tensor);
    if (!runner->given || !runner->tensors)
        return dq_no_memory(err, request.given_count * sizeof(dq_tensor), "slices");
    for (uint32_t i = 0; i < request.given_count; i++) {
        runner->given[i] = request.given[i];
        runner->tensors[i] = *request.given[i].tensor;
        runner->given[i].tensor = &runner->tensors[i];
        if (s->slices->sliced[i])
            scale(&runner->tensors[i], s->length, s->each);
    }
    request.given = runner->given;
    return dq_plan_create(s->program, &request, &runner->plan, err);
}

/* Each thread has slices of its own where their number leaves hardly any thread without work. */
static dq_status make_runners(slicer *s, dq_error *err)
{
    struct dq_slices *slices = s->slices;
    const size_t threads = dq_threads_count(s->request->threads);
    const bool parallel = slices->count % threads == 0 || slices->count >= ROUNDS * threads;
    dq_plan_request request = *s->request;
    request.nodes = s->nodes;
    request.node_count = s->end;
    request.requested = slices->values;
    request.requested_count = slices->value_count;
    request.by_slices = false;
    request.part = true;
    request.budget = NULL; /* all slices are counted before the first */
    for (uint32_t n = 0; n < s->end; n++)
        slices->work = dq_work_add(slices->work, slices->shapes->works[n]);
    if (parallel)
        request.threads = dq_threads_alone(request.threads);
    slices->runner_count = parallel ? threads : 1;
    slices->runners = DQ_NEW_ARRAY(&slices->arena, slices->runner_count, dq_slice_runner);
    if (!slices->runners)
        return dq_no_memory(err, slices->runner_count * sizeof(dq_slice_runner), "slices");
    for (size_t i = 0; i < slices->runner_count; i++) {
        DQ_TRY(make_runner(s, request, &slices->runners[i], err));
        request.why = NULL;
    }
    return holds(s, slices->runners[0].plan) ? DQ_OK : dq_fail(err, DQ_INTERNAL, "slices differ");
}

typedef struct list {
    const slicer *s;
    dq_binding *given; /* for the rest: the caller's, and what the slices give it */
    uint32_t count;
} list;

/* A value that the rest reads, or a caller. */
static void list_value(void *arg, dq_value *v)
{
    list *l = arg;
    const dq_slot *slot = slot_of(l->s, v);
    struct dq_slices *slices = l->s->slices;
    bool *ahead = &l->s->ahead[dq_plan_index(slices->shapes, v)];
    if (!*ahead)
        return;
    *ahead = false;
    const bool constant = slot->where == DQ_AT_CONSTANT;
    l->given[l->count++] = (dq_binding){.value = v,
                                        .tensor = &slot->t,
                                        .constant = constant,
                                        .fixed = constant && slot->fixed,
                                        .persistent = constant && slot->persistent,
                                        .computed = !constant};
    if (!constant)
        slices->values[slices->value_count++] = v;
}

static dq_status list_values(slicer *s, list *l, dq_error *err)
{
    const dq_plan_request *request = s->request;
    const size_t most = s->slices->shapes->slot_count;
    bool constant;
    l->given = DQ_NEW_ARRAY(&s->slices->arena, most + request->given_count, dq_binding);
    s->slices->values = DQ_NEW_ARRAY(&s->slices->arena, most, const dq_value *);
    if (!l->given || !s->slices->values)
        return dq_no_memory(err, most * sizeof *l->given, "slices");
    for (; l->count < request->given_count; l->count++)
        l->given[l->count] = request->given[l->count];
    for (uint32_t n = 0; n < s->end; n++)
        for (uint32_t i = 0; i < s->nodes[n]->out_count; i++)
            if (s->nodes[n]->out[i])
                s->ahead[dq_plan_index(s->slices->shapes, s->nodes[n]->out[i])] = true;
    for (uint32_t n = s->end; n < s->node_count; n++)
        if (count_outputs(s, s->nodes[n], &constant))
            dq_node_each_use(s->nodes[n], list_value, l);
    for (uint32_t i = 0; i < request->requested_count; i++)
        list_value(l, (dq_value *)(uintptr_t)request->requested[i]);
    return DQ_OK;
}

static void tell(const slicer *s)
{
    char sentence[128];
    if (!s->request->why)
        return;
    snprintf(sentence, sizeof sentence,
             "the first %u of %u nodes run by slices, %" PRId64 " of %" PRId64 " at a time", s->end,
             s->node_count, s->each, s->length);
    s->request->why(s->request->why_arg, sentence);
}

static dq_status make_plans(slicer *s, dq_plan **out, dq_error *err)
{
    struct dq_slices *slices = s->slices;
    list l = {s, NULL, 0};
    dq_plan_request rest = *s->request;
    rest.by_slices = false;
    DQ_TRY(list_values(s, &l, err));
    slices->count = (size_t)(s->length / s->each);
    slices->node_count = s->end;
    DQ_TRY(make_runners(s, err));
    if (!dq_align_size(slices->runners[0].plan->buffer_size, ALIGN, &slices->runner_bytes) ||
        !dq_mul_size(slices->runner_bytes, slices->runner_count, &rest.ahead))
        return dq_no_memory(err, SIZE_MAX, "slices");
    rest.nodes = s->nodes + s->end;
    rest.node_count = s->node_count - s->end;
    rest.given = l.given;
    rest.given_count = l.count;
    DQ_TRY(dq_plan_create(s->program, &rest, out, err));
    (*out)->slices = slices;
    tell(s);
    return DQ_OK;
}

/* ---- Whether at all ----------------------------------------------------------------------------------- */

static dq_status look(slicer *s, dq_error *err)
{
    const dq_plan_request *request = s->request;
    struct dq_slices *slices = s->slices;
    slices->given_count = request->given_count;
    const size_t slots = slices->shapes->slot_count + (size_t)1;
    s->roles = DQ_NEW_ARRAY(&slices->arena, slots, uint8_t);
    s->outside = DQ_NEW_ARRAY(&slices->arena, slots, bool);
    s->ahead = DQ_NEW_ARRAY(&slices->arena, slots, bool);
    slices->sliced = DQ_NEW_ARRAY(&slices->arena, request->given_count, bool);
    traffic *traffics = DQ_NEW_ARRAY(&slices->arena, s->node_count, traffic);
    if (!s->roles || !s->outside || !s->ahead || !slices->sliced || !traffics)
        return dq_no_memory(err, slots, "slices");
    for (uint32_t i = 0; i < request->given_count; i++) {
        const dq_tensor *t = request->given[i].tensor;
        slices->sliced[i] = t->rank && t->dims[0] == s->length && !dq_dtype_is_packed(t->dtype);
        const uint32_t slot = dq_plan_index(slices->shapes, request->given[i].value);
        s->roles[slot] = slices->sliced[i] ? BATCH_SEPARABLE : WHOLE;
        s->outside[slot] = true;
    }
    choose(s, traffics, find_roles(s, traffics));
    return DQ_OK;
}

/* The outermost axis of the first input that has one. */
static int64_t length_of(const dq_plan_request *request)
{
    for (uint32_t i = 0; i < request->given_count; i++) {
        const dq_binding *given = &request->given[i];
        if (given->tensor->kind != DQ_KIND_TENSOR || given->constant || given->varying)
            return 0;
    }
    return request->given_count && request->given[0].tensor->rank ? request->given[0].tensor->dims[0] : 0;
}

void dq_slices_free(struct dq_slices *slices)
{
    if (!slices)
        return;
    for (size_t i = 0; slices->runners && i < slices->runner_count; i++)
        dq_plan_free(slices->runners[i].plan);
    dq_plan_free(slices->shapes);
    dq_arena_free(&slices->arena);
    dq_memory_free(slices->arena.allocator, slices, sizeof *slices);
}

dq_plan *dq_slices_whole(dq_plan *plan)
{
    dq_plan *whole = plan->slices ? plan->slices->shapes : plan;
    if (plan->slices) {
        plan->slices->shapes = NULL;
        dq_plan_free(plan);
    }
    return whole;
}

dq_status dq_slices_make(dq_plan **plan, const dq_plan_request *request, dq_error *err)
{
    slicer s = {.program = (*plan)->program, .request = request, .length = length_of(request)};
    s.nodes = request->nodes ? request->nodes : request->graph->nodes;
    s.node_count = request->nodes ? request->node_count : request->graph->node_count;
    if (s.length <= 1)
        return DQ_OK;
    s.slices = dq_memory_calloc(request->allocator, 1, sizeof *s.slices);
    if (!s.slices)
        return dq_no_memory(err, sizeof *s.slices, "slices");
    s.slices->arena.allocator = request->allocator;
    s.slices->shapes = *plan;
    dq_status status = look(&s, err);
    if (status == DQ_OK && s.end && (status = make_plans(&s, plan, err)) == DQ_OK)
        return DQ_OK;
    s.slices->shapes = NULL;
    dq_slices_free(s.slices);
    /* any other fault is seen again with all slices at once, or is none there */
    return status == DQ_OUT_OF_MEMORY || status == DQ_CANCELLED ? status : DQ_OK;
}
