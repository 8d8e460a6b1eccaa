/* Softmax, LogSoftmax and Hardmax: over one axis (version 13 on), or over all axes from one on (before). The
 * sum is in double, in order; float16 and bfloat16 are rounded once, at the end. */
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>

typedef enum kind { SOFT, LOG_SOFT, HARD } kind;

enum { WORK = 4096 /* elements of a piece of parallel work, about */ };

typedef struct state {
    kind kind;
    size_t n, inner; /* elements that sum to one, and their stride */
} state;

static dq_status read_axis(const dq_op_call *call, size_t *axis, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    bool flatten = call->version < 13;
    int64_t given = dq_node_int(call->node, "axis", flatten ? 1 : -1);
    *axis = in->rank;
    if (flatten && given == in->rank) /* nothing is behind it: every element stands alone */
        return DQ_OK;
    if (!dq_axis(given, in->rank, axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside an input of rank %u", given, in->rank);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, kind what, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->kind = what;
    bool flatten = call->version < 13;
    s->n = flatten ? dq_dims_product(in->dims, axis, in->rank) : (size_t)in->dims[axis];
    s->inner = flatten ? 1 : dq_dims_product(in->dims, axis + 1, in->rank);
    return DQ_OK;
}

typedef struct job {
    const state *s;
    const dq_tensor *in;
    dq_tensor *out;
} job;

static double get(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_FLOAT ? (double)dq_data(t, float)[i] : dq_tensor_get_double(t, i);
}

/* Exponentials of a float input are taken in float: twice as quick, and as exact as the result can show. */
static double power_of_e(const dq_tensor *in, double x)
{
    return in->dtype == DQ_DOUBLE ? exp(x) : (double)expf((float)x);
}

static void one(const job *j, size_t base)
{
    const state *s = j->s;
    size_t step = s->inner, where = 0;
    double highest = -(double)INFINITY, total = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = get(j->in, base + i * step);
        if (x > highest || isnan(x)) {
            highest = x;
            where = i;
        }
    }
    for (size_t i = 0; i < s->n && s->kind != HARD; i++)
        total += power_of_e(j->in, get(j->in, base + i * step) - highest);
    double log_total = s->kind == LOG_SOFT ? log(total) : 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + i * step;
        double x = get(j->in, at) - highest, y;
        if (s->kind == SOFT)
            y = power_of_e(j->in, x) / total;
        else
            y = s->kind == LOG_SOFT ? x - log_total : i == where ? 1 : 0;
        dq_tensor_put_double(j->out, at, y);
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        one(j, i / j->s->inner * j->s->n * j->s->inner + i % j->s->inner);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    job j = {s, call->in[0], call->out[0]};
    if (j.out->count)
        dq_parallel(call->threads, j.out->count / s->n, WORK / s->n + 1, piece, &j);
    return DQ_OK;
}

#define OVER_AXIS(symbol, what)                                                                              \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, what, err);                                                                     \
    }                                                                                                        \
    const dq_op_impl symbol = {infer, symbol##_prepare, run, 0};

OVER_AXIS(dq_op_softmax, SOFT)
OVER_AXIS(dq_op_log_softmax, LOG_SOFT)
OVER_AXIS(dq_op_hardmax, HARD)
