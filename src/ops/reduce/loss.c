/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the loss of the labeled class at each position, or
 * its sum or weighted mean over all positions. Sums are in double, in row-major order. */
#include "base/math.h"
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SCORES_IN, LABELS, CLASS_WEIGHTS };

typedef enum reduction { NONE, SUM, MEAN } reduction;

typedef struct state {
    reduction reduction;
    bool softmax; /* apply LogSoftmax to the scores first */
    bool ignores;
    int64_t ignored;
    size_t classes, inner;
} state;

static dq_status read_reduction(const dq_op_call *call, reduction *out, dq_error *err)
{
    static const char *const names[] = {"none", "sum", "mean"};
    const char *value = dq_node_string(call->node, "reduction", "mean");
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (reduction)i;
            return DQ_OK;
        }
    return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'reduction' is '%s', expected none, sum or mean",
                        value);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *scores = call->in[SCORES_IN], *labels = call->in[LABELS];
    const dq_tensor *weights = dq_call_in(call, CLASS_WEIGHTS);
    reduction how = NONE;
    DQ_TRY(read_reduction(call, &how, err));
    if (scores->rank < 2)
        return dq_call_fail_input(call, err, SCORES_IN, "has rank %u, expected 2 or more", scores->rank);
    bool fits = labels->rank + 1 == scores->rank;
    for (size_t d = 0; fits && d < labels->rank; d++)
        fits = labels->dims[d] == scores->dims[d ? d + 1 : 0];
    if (!fits) {
        char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, LABELS,
                                  "has shape %s, expected that of the scores, %s, without axis 1",
                                  dq_shape_text(labels->rank, labels->dims, mine),
                                  dq_shape_text(scores->rank, scores->dims, theirs));
    }
    if (weights && (weights->rank != 1 || weights->dims[0] != scores->dims[1]))
        return dq_call_fail_input(call, err, CLASS_WEIGHTS,
                                  "has %zu elements, expected %" PRId64 " (classes)", weights->count,
                                  scores->dims[1]);
    DQ_TRY(dq_call_output_like(call, 1, scores->dtype, scores, err));
    return dq_call_output(call, 0, scores->dtype, how == NONE ? labels->rank : 0, labels->dims, err);
}

static dq_status prepare(dq_op_call *call, bool softmax, dq_error *err)
{
    const dq_tensor *scores = call->in[SCORES_IN];
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->softmax = softmax;
    s->ignores = dq_node_attr(call->node, "ignore_index") != NULL;
    s->ignored = dq_node_int(call->node, "ignore_index", 0);
    s->classes = (size_t)scores->dims[1];
    s->inner = dq_dims_product(scores->dims, 2, scores->rank);
    return read_reduction(call, &s->reduction, err);
}

static dq_status likelihood_prepare(dq_op_call *call, dq_error *err)
{
    return prepare(call, false, err);
}

static dq_status entropy_prepare(dq_op_call *call, dq_error *err)
{
    return prepare(call, true, err);
}

/* log-sum-exp of all classes' scores at a position. */
static double log_total(const state *s, const dq_tensor *scores, size_t base)
{
    double highest = -(double)INFINITY, total = 0;
    for (size_t c = 0; c < s->classes; c++) {
        double x = dq_tensor_get_double(scores, base + c * s->inner);
        highest = x > highest || isnan(x) ? x : highest;
    }
    for (size_t c = 0; c < s->classes; c++)
        total += dq_exp(dq_tensor_get_double(scores, base + c * s->inner) - highest);
    return dq_log(total) + highest;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    const dq_tensor *scores = call->in[SCORES_IN], *labels = call->in[LABELS];
    const dq_tensor *weights = dq_call_in(call, CLASS_WEIGHTS);
    dq_tensor *log_prob = call->out_count > 1 ? call->out[1] : NULL;
    double total = 0, weight_total = 0;
    for (size_t i = 0; i < labels->count; i++) {
        size_t base = i / s->inner * s->classes * s->inner + i % s->inner;
        double off = s->softmax ? log_total(s, scores, base) : 0;
        for (size_t c = 0; log_prob && c < s->classes; c++)
            dq_tensor_put_double(log_prob, base + c * s->inner,
                                 dq_tensor_get_double(scores, base + c * s->inner) - off);
        int64_t label = dq_tensor_get_int(labels, i);
        bool ignored = s->ignores && label == s->ignored;
        if (!ignored && (label < 0 || (uint64_t)label >= s->classes))
            return dq_call_fail(call, err, DQ_BAD_INPUT, "input 1 holds class %" PRId64 ", expected 0 to %zu",
                                label, s->classes - 1);
        double loss = 0, weight = 0;
        if (!ignored) {
            weight = weights ? dq_tensor_get_double(weights, (size_t)label) : 1;
            loss = (off - dq_tensor_get_double(scores, base + (size_t)label * s->inner)) * weight;
        }
        if (s->reduction == NONE && call->out[0])
            dq_tensor_put_double(call->out[0], i, loss);
        total += loss;
        weight_total += weight;
    }
    if (s->reduction != NONE && call->out[0])
        dq_tensor_put_double(call->out[0], 0, s->reduction == MEAN ? total / weight_total : total);
    return DQ_OK;
}

const dq_op_impl dq_op_negative_log_likelihood_loss = {infer, likelihood_prepare, run, 0};
const dq_op_impl dq_op_softmax_cross_entropy_loss = {infer, entropy_prepare, run, 0};
