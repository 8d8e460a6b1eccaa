/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: the distinct elements, or slices along an axis. NaNs are equal to each other and come last. Their
 * number depends on the data: infer sorts, run writes the results. */
#include "ops/element.h"
#include "ops/shape/rank.h"

#include <math.h>
#include <stdlib.h>

enum { Y, FIRST, INVERSE, COUNTS };

/* Result of infer: for each slice its group of equal slices, in ascending order, and the first slice of each
 * group. */
typedef struct state {
    size_t groups, *group, *first, *name; /* name: workspace for each group's number in the output */
} state;

/* Slices along the axis: element k of slice i is at (k / inner · n + i) · inner + k % inner. */
typedef struct slices {
    const dq_tensor *t;
    size_t n, size, inner;
    size_t axis; /* DQ_MAX_RANK: the flattened input */
} slices;

static dq_status read_slices(const dq_op_call *call, slices *s, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    *s = (slices){in, in->count, 1, 1, DQ_MAX_RANK};
    if (!dq_node_attr(call->node, "axis"))
        return DQ_OK;
    DQ_TRY(dq_call_axis(call, 0, &s->axis, err));
    s->n = (size_t)in->dims[s->axis];
    s->inner = dq_dims_product(in->dims, s->axis + 1, in->rank);
    s->size = s->n ? in->count / s->n : 0;
    return DQ_OK;
}

/* ---- Order --------------------------------------------------------------------------------------------- */

static int compare_elements(const dq_tensor *t, size_t a, size_t b)
{
    unsigned cls = dq_dtype_get(t->dtype)->cls;
    if (cls == DQ_CLASS_STRING) {
        const dq_string *x = &dq_data(t, dq_string)[a], *y = &dq_data(t, dq_string)[b];
        size_t common = x->length < y->length ? x->length : y->length;
        int order = common ? memcmp(x->bytes, y->bytes, common) : 0;
        return order ? order : (x->length > y->length) - (x->length < y->length);
    }
    if (cls == DQ_CLASS_FLOAT) {
        double x = dq_tensor_get_double(t, a), y = dq_tensor_get_double(t, b);
        if (isnan(x) || isnan(y))
            return (isnan(x) != 0) - (isnan(y) != 0);
        return (x > y) - (x < y);
    }
    int64_t x = dq_tensor_get_int(t, a), y = dq_tensor_get_int(t, b);
    if (cls == DQ_CLASS_UINT)
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static int compare(const slices *s, size_t a, size_t b)
{
    int order = 0;
    for (size_t k = 0; order == 0 && k < s->size; k++) {
        size_t base = k / s->inner * s->n * s->inner + k % s->inner;
        order = compare_elements(s->t, base + a * s->inner, base + b * s->inner);
    }
    return order;
}

static bool after(const slices *s, size_t a, size_t b)
{
    int order = compare(s, a, b);
    return order > 0 || (order == 0 && a > b);
}

static void sink(const slices *s, size_t *heap, size_t n, size_t at)
{
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && after(s, heap[child + 1], heap[child]))
            child++;
        if (!after(s, heap[child], heap[at]))
            return;
        size_t kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
        at = child;
    }
}

/* Sorts the slices' numbers in ascending order of slices; equal ones by number. */
static void sort(const slices *s, size_t *order)
{
    for (size_t i = 0; i < s->n; i++)
        order[i] = i;
    for (size_t i = s->n / 2; i-- > 0;)
        sink(s, order, s->n, i);
    for (size_t n = s->n; n > 1; n--) {
        size_t last = order[0];
        order[0] = order[n - 1];
        order[n - 1] = last;
        sink(s, order, n - 1, 0);
    }
}

static void add(state *to, size_t slice, bool begins)
{
    if (begins)
        to->first[to->groups++] = slice;
    to->group[slice] = to->groups - 1;
}

static bool group_slices(const slices *s, state *to)
{
    size_t *order = calloc(s->n, sizeof *order);
    if (order)
        sort(s, order);
    for (size_t i = 0; order && i < s->n; i++)
        add(to, order[i], i == 0 || compare(s, order[i - 1], order[i]) != 0);
    free(order);
    return order != NULL;
}

/* Groups slices of one number each. */
static bool group_numbers(const slices *s, state *to)
{
    dq_ranked *order = calloc(s->n, sizeof *order);
    if (order)
        dq_rank_select(s->t, 0, s->n, 1, false, s->n, order);
    for (size_t i = 0; order && i < s->n; i++)
        add(to, (size_t)order[i].number, i == 0 || order[i].key != order[i - 1].key);
    free(order);
    return order != NULL;
}

/* ---- The operator -------------------------------------------------------------------------------------- */

static dq_status infer(dq_op_call *call, dq_error *err)
{
    slices s;
    DQ_TRY(read_slices(call, &s, err));
    DQ_TRY(dq_call_need(call, 0));
    if (dq_dtype_get(s.t->dtype)->cls == DQ_CLASS_COMPLEX)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "sorts %s, which has no order here",
                            dq_dtype_name(s.t->dtype));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *found = call->state;
    found->group = DQ_NEW_ARRAY(call->arena, s.n, size_t);
    found->first = DQ_NEW_ARRAY(call->arena, s.n, size_t);
    found->name = DQ_NEW_ARRAY(call->arena, s.n, size_t);
    bool numbers = s.size == 1 && s.t->dtype != DQ_STRING,
         allocated = found->group && found->first && found->name;
    if (!allocated || (s.n && !(numbers ? group_numbers : group_slices)(&s, found)))
        return dq_no_memory(err, s.n * sizeof(dq_ranked), "sorting");
    int64_t dims[DQ_MAX_RANK], different = (int64_t)found->groups, all = (int64_t)s.n;
    for (size_t d = 0; d < s.t->rank; d++)
        dims[d] = d == s.axis ? different : s.t->dims[d];
    DQ_TRY(s.axis == DQ_MAX_RANK ? dq_call_output(call, Y, s.t->dtype, 1, &different, err)
                                 : dq_call_output(call, Y, s.t->dtype, s.t->rank, dims, err));
    DQ_TRY(dq_call_output(call, FIRST, DQ_INT64, 1, &different, err));
    DQ_TRY(dq_call_output(call, INVERSE, DQ_INT64, 1, &all, err));
    return dq_call_output(call, COUNTS, DQ_INT64, 1, &different, err);
}

static void put(const dq_op_call *call, uint32_t i, size_t at, size_t value)
{
    if (i < call->out_count && call->out[i])
        dq_data(call->out[i], int64_t)[at] = (int64_t)value;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    slices s;
    DQ_TRY(read_slices(call, &s, err));
    const state *found = call->state;
    const size_t *group = found->group, *first = found->first, groups = found->groups;
    size_t *name = found->name, named = 0;
    bool sorted = dq_node_int(call->node, "sorted", 1) != 0;
    for (size_t g = 0; g < groups; g++) {
        name[g] = g;
        put(call, COUNTS, g, 0);
    }
    for (size_t i = 0; !sorted && i < s.n; i++)
        if (first[group[i]] == i)
            name[group[i]] = named++;
    for (size_t i = 0; i < s.n; i++) {
        size_t to = name[group[i]];
        put(call, INVERSE, i, to);
        if (COUNTS < call->out_count && call->out[COUNTS])
            dq_data(call->out[COUNTS], int64_t)[to]++;
    }
    size_t outer = s.inner ? s.size / s.inner : 0;
    for (size_t g = 0; g < groups; g++) {
        put(call, FIRST, name[g], first[g]);
        for (size_t o = 0; call->out[Y] && o < outer; o++)
            dq_copy_elements(s.t, (o * s.n + first[g]) * s.inner, call->out[Y],
                             (o * groups + name[g]) * s.inner, s.inner);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_unique = {infer, NULL, run, 0};
