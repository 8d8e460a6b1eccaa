/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum of many operands as a sequence of contractions. Labels that only one operand has are summed first.
 * Then two operands at a time are contracted, the pair with the fewest multiply-adds first, until one or two
 * are left. A single contraction would iterate over all labels at once.
 *
 *   ab,bc,cd->ad   →   ab,bc->ac   ac,cd->ad
 *
 * The order depends on shapes only. Integers wrap around, which gives the same bits in any order. Results of
 * steps are rounded to the operands' type (float for float16 and bfloat16). */
#include "base/checked.h"
#include "ops/matmul/einsum.h"
#include "ops/widened.h"

#include <math.h>
#include <string.h>

enum { STEPS = 2 * DQ_EINSUM_OPERANDS, EQUATION = 3 * DQ_MAX_RANK + 8 };

/* An operand that is still to be contracted: an input, or the result of a step. */
typedef struct term {
    size_t rank, labels[DQ_MAX_RANK];
    int64_t dims[DQ_MAX_RANK];
    uint32_t input; /* below in_count; else in_count + step */
} term;

typedef struct step {
    uint32_t from[2], count;
    char equation[EQUATION];
    dq_attr attr;
    dq_node node;
    dq_tensor y;
    size_t y_at; /* byte offset of y in the scratch */
    const dq_tensor *in[2];
    dq_tensor *out[1];
    dq_op_call call;
} step;

typedef struct state {
    uint32_t steps;
    bool at_once; /* one contraction, no steps: dq_einsum_run with `state` */
    void *state;
    step step[STEPS];
} state;

typedef struct search {
    dq_einsum e;
    term terms[DQ_EINSUM_OPERANDS];
    uint32_t count;
} search;

/* ---- The order ---------------------------------------------------------------------------------------- */

static bool has(const term *t, size_t label)
{
    for (size_t d = 0; d < t->rank; d++)
        if (t->labels[d] == label)
            return true;
    return false;
}

/* Whether the result, or a term other than a and b, has the label. */
static bool is_kept(const search *s, size_t label, const term *a, const term *b)
{
    for (size_t d = 0; d < s->e.out_rank; d++)
        if (s->e.out[d] == label)
            return true;
    for (uint32_t i = 0; i < s->count; i++)
        if (&s->terms[i] != a && &s->terms[i] != b && has(&s->terms[i], label))
            return true;
    return false;
}

/* Adds the labels of `from` that are kept, once each. False: there would be too many. */
static bool add_kept(const search *s, const term *from, const term *a, const term *b, term *to)
{
    for (size_t d = 0; d < from->rank; d++) {
        if (!is_kept(s, from->labels[d], a, b) || has(to, from->labels[d]))
            continue;
        if (to->rank == DQ_MAX_RANK)
            return false;
        to->labels[to->rank++] = from->labels[d];
    }
    return true;
}

static int64_t length_in(const term *t, size_t label)
{
    for (size_t d = 0; d < t->rank; d++)
        if (t->labels[d] == label && t->dims[d] != 1)
            return t->dims[d];
    return 1;
}

/* Multiply-adds of the contraction of a and b (a again: of a alone), and the elements of its result. */
static double cost_of(const search *s, const term *a, const term *b, double *elements)
{
    double products = 1;
    *elements = 1;
    for (size_t label = 0; label < DQ_EINSUM_LABELS; label++) {
        const int64_t length = length_in(a, label) != 1 ? length_in(a, label) : length_in(b, label);
        products *= (double)length;
        *elements *= is_kept(s, label, a, b) ? (double)length : 1;
    }
    return products;
}

/* Finds the pair with the fewest multiply-adds; of equal ones, that with the smallest result. */
static bool find_pair(const search *s, uint32_t *a, uint32_t *b)
{
    double least = (double)INFINITY, fewest = 0;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = i + 1; k < s->count; k++) {
            const term *x = &s->terms[i], *y = &s->terms[k];
            term to = {0};
            double elements;
            const double cost = cost_of(s, x, y, &elements);
            if (cost > least || (cost == least && elements >= fewest) || !add_kept(s, x, x, y, &to) ||
                !add_kept(s, y, x, y, &to))
                continue;
            least = cost;
            fewest = elements;
            *a = i;
            *b = k;
        }
    return least < (double)INFINITY;
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

/* Writes a term of a step's equation. Labels get new letters, as a step has fewer than 26 of them. */
static void write_term(const size_t *labels, size_t rank, size_t *known, size_t *count, char **to)
{
    for (size_t d = 0; d < rank; d++) {
        size_t i = 0;
        while (i < *count && known[i] != labels[d])
            i++;
        if (i == *count)
            known[(*count)++] = labels[d];
        *(*to)++ = (char)('a' + i);
    }
}

static const dq_tensor *tensor_of(const dq_op_call *call, const state *s, uint32_t from)
{
    return from < call->in_count ? call->in[from] : &s->step[from - call->in_count].y;
}

/* Adds the step that contracts a and b (NULL: a alone) to *to. */
static dq_status add_step(dq_op_call *call, state *s, const term *a, const term *b, term *to, dq_error *err)
{
    size_t known[3 * DQ_MAX_RANK], count = 0;
    step *p = &s->step[s->steps];
    char *at = p->equation;
    write_term(a->labels, a->rank, known, &count, &at);
    p->from[0] = a->input;
    p->count = b ? 2 : 1;
    if (b) {
        *at++ = ',';
        write_term(b->labels, b->rank, known, &count, &at);
        p->from[1] = b->input;
    }
    *at++ = '-';
    *at++ = '>';
    write_term(to->labels, to->rank, known, &count, &at);
    p->attr = (dq_attr){
        .name = "equation", .kind = DQ_ATTR_STRING, .u.s = {p->equation, (size_t)(at - p->equation)}};
    p->node = *call->node;
    p->node.attr_count = 1;
    p->node.attrs = &p->attr;
    p->y.dtype = call->in[0]->dtype;
    p->call = *call;
    p->call.node = &p->node;
    p->call.in_count = p->count;
    p->call.out_count = 1;
    p->call.in = p->in;
    p->call.out = p->out;
    p->call.constant_inputs = p->call.persistent_inputs = 0;
    p->call.state = NULL;
    p->call.scratch_size = p->call.worker_scratch_size = 0;
    for (uint32_t i = 0; i < p->count; i++)
        p->in[i] = tensor_of(call, s, p->from[i]);
    p->out[0] = &p->y;
    DQ_TRY(dq_einsum_infer(&p->call, err));
    DQ_TRY(dq_einsum_prepare(&p->call, err));
    memcpy(to->dims, p->y.dims, to->rank * sizeof *to->dims);
    to->input = call->in_count + s->steps++;
    return DQ_OK;
}

/* Adds steps that sum over labels of one term which neither another term nor the result has. */
static dq_status sum_alone(dq_op_call *call, state *s, search *f, dq_error *err)
{
    for (uint32_t i = 0; i < f->count; i++) {
        term *t = &f->terms[i], to = {0};
        double elements;
        (void)add_kept(f, t, t, t, &to);
        if (cost_of(f, t, t, &elements) == elements)
            continue;
        DQ_TRY(add_step(call, s, t, NULL, &to, err));
        *t = to;
    }
    return DQ_OK;
}

/* Adds the steps that contract pairs. *good is false if a result would have too many axes. */
static dq_status join_pairs(dq_op_call *call, state *s, search *f, bool *good, dq_error *err)
{
    *good = true;
    while (f->count > 2) {
        uint32_t i = 0, k = 0;
        term to = {0};
        if (!find_pair(f, &i, &k)) {
            *good = false;
            return DQ_OK;
        }
        term *a = &f->terms[i], *b = &f->terms[k];
        (void)(add_kept(f, a, a, b, &to) && add_kept(f, b, a, b, &to));
        DQ_TRY(add_step(call, s, a, b, &to, err));
        *a = to;
        f->terms[k] = f->terms[--f->count];
    }
    return DQ_OK;
}

static dq_status add_last(dq_op_call *call, state *s, search *f, dq_error *err)
{
    term to = {.rank = f->e.out_rank};
    memcpy(to.labels, f->e.out, to.rank * sizeof *to.labels);
    return add_step(call, s, &f->terms[0], f->count > 1 ? &f->terms[1] : NULL, &to, err);
}

static void begin(const dq_op_call *call, search *f)
{
    f->count = call->in_count;
    for (uint32_t i = 0; i < f->count; i++) {
        term *t = &f->terms[i];
        *t = (term){.rank = f->e.rank[i], .input = i};
        memcpy(t->labels, f->e.labels[i], t->rank * sizeof *t->labels);
        memcpy(t->dims, call->in[i]->dims, t->rank * sizeof *t->dims);
    }
}

/* Reserves scratch for the results of all steps but the last. */
static dq_status store_results(dq_op_call *call, state *s, dq_error *err)
{
    for (uint32_t i = 0; i < s->steps; i++) {
        step *p = &s->step[i];
        if (p->call.worker_scratch_size > call->worker_scratch_size)
            call->worker_scratch_size = p->call.worker_scratch_size;
        if (i + 1 == s->steps)
            break;
        p->y_at = call->scratch_size;
        if (!dq_add_size(p->y_at, p->y.size, &call->scratch_size) ||
            !dq_align_size(call->scratch_size, DQ_ALIGN, &call->scratch_size))
            return dq_no_memory(err, SIZE_MAX, "the steps of Einsum");
    }
    return DQ_OK;
}

static dq_status prepare_at_once(dq_op_call *call, state *s, dq_error *err)
{
    s->at_once = true;
    DQ_TRY(dq_einsum_prepare(call, err));
    s->state = call->state;
    call->state = s;
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    search f;
    bool good = false;
    DQ_TRY(dq_einsum_read(call, &f.e, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    begin(call, &f);
    if (f.count > 1) {
        DQ_TRY(sum_alone(call, s, &f, err));
        DQ_TRY(join_pairs(call, s, &f, &good, err));
    }
    if (!good || (f.count == 2 && s->steps == 0)) {
        s->steps = 0;
        return prepare_at_once(call, s, err);
    }
    DQ_TRY(add_last(call, s, &f, err));
    return store_results(call, s, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    if (s->at_once) {
        dq_op_call one = *call;
        one.state = s->state;
        return dq_einsum_run(&one, err);
    }
    for (uint32_t i = 0; i < s->steps; i++) {
        const step *p = &s->step[i];
        const bool last = i + 1 == s->steps;
        const dq_tensor *in[2];
        dq_tensor operands[2], y = last ? *call->out[0] : p->y, *out[1] = {&y};
        dq_op_call one = p->call;
        for (uint32_t k = 0; k < p->count; k++) {
            operands[k] = *tensor_of(call, s, p->from[k]);
            if (p->from[k] >= call->in_count)
                operands[k].data = (char *)call->scratch + s->step[p->from[k] - call->in_count].y_at;
            in[k] = &operands[k];
        }
        if (!last)
            y.data = (char *)call->scratch + p->y_at;
        one.in = in;
        one.out = out;
        one.worker_scratch = call->worker_scratch;
        one.worker_scratch_size = call->worker_scratch_size;
        DQ_TRY(dq_einsum_run(&one, err));
    }
    return DQ_OK;
}

/* ---- Work ---------------------------------------------------------------------------------------------- */

/* Replaces *a by the contraction of a and b (a again: of a alone); returns its multiply-adds. */
static double contract(const search *s, term *a, const term *b)
{
    double elements;
    const double products = cost_of(s, a, b, &elements);
    term to = {0};
    (void)(add_kept(s, a, a, b, &to) && (a == b || add_kept(s, b, a, b, &to)));
    for (size_t d = 0; d < to.rank; d++) {
        const int64_t length = length_in(a, to.labels[d]);
        to.dims[d] = length != 1 ? length : length_in(b, to.labels[d]);
    }
    *a = to;
    return products;
}

static double products_at_once(const dq_einsum *e)
{
    double products = 1;
    for (size_t label = 0; label < DQ_EINSUM_LABELS; label++)
        products *= e->dims[label] >= 0 ? (double)e->dims[label] : 1;
    return products;
}

/* Multiply-adds of the contractions that prepare chooses. */
static double count_products(search *f)
{
    double products = 0, elements;
    for (uint32_t i = 0; f->count > 1 && i < f->count; i++)
        if (cost_of(f, &f->terms[i], &f->terms[i], &elements) != elements)
            products += contract(f, &f->terms[i], &f->terms[i]);
    while (f->count > 2) {
        uint32_t i = 0, k = 0;
        if (!find_pair(f, &i, &k))
            return products_at_once(&f->e);
        products += contract(f, &f->terms[i], &f->terms[k]);
        f->terms[k] = f->terms[--f->count];
    }
    return products + cost_of(f, &f->terms[0], &f->terms[f->count - 1], &elements);
}

uint64_t dq_einsum_products(const dq_op_call *call)
{
    search f;
    if (dq_einsum_read(call, &f.e, &(dq_error){0}) != DQ_OK)
        return 0;
    begin(call, &f);
    const double products = count_products(&f);
    return products < 0x1p64 ? (uint64_t)products : UINT64_MAX;
}

DQ_OP_WIDENED(dq_op_einsum, true, dq_einsum_infer, prepare, run, 0)
