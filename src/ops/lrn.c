/* LRN: each element over (bias + alpha / size · sum of squares of its neighbours in `size` channels) to the
 * power of beta. In double, rounded once. The power of 3/4, which all known networks use, is made of square
 * roots. */
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>

enum { WORK = 2048 /* elements of a piece of parallel work */ };

typedef struct state {
    double alpha, beta, bias;
    int64_t before, after; /* channels on each side; together size - 1 */
    size_t channels, plane;
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    int64_t size = dq_node_int(call->node, "size", 1);
    if (size < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'size' is %" PRId64 ", wanted 1 or more",
                            size);
    if (call->in[0]->rank < 2)
        return dq_call_fail_input(call, err, 0, "has rank %u, wanted 2 or more", call->in[0]->rank);
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    int64_t size = dq_node_int(call->node, "size", 1);
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->alpha = (double)dq_node_float(call->node, "alpha", 1e-4f) / (double)size;
    s->beta = (double)dq_node_float(call->node, "beta", 0.75f);
    s->bias = (double)dq_node_float(call->node, "bias", 1);
    s->before = (size - 1) / 2;
    s->after = size - 1 - s->before;
    s->channels = (size_t)x->dims[1];
    s->plane = dq_dims_product(x->dims, 2, x->rank);
    return DQ_OK;
}

static double power(double x, double beta)
{
    return beta == 0.75 ? sqrt(x) * sqrt(sqrt(x)) : pow(x, beta);
}

static double element(const dq_tensor *x, size_t i)
{
    return x->dtype == DQ_FLOAT ? (double)dq_data(x, float)[i] : dq_tensor_get_double(x, i);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *const *call = arg;
    const state *s = (*call)->state;
    const dq_tensor *x = (*call)->in[0];
    int64_t last = (int64_t)s->channels - 1;
    for (size_t i = begin; i < end; i++) {
        int64_t channel = (int64_t)(i / s->plane % s->channels);
        int64_t from = channel > s->before ? channel - s->before : 0;
        int64_t to = last - channel > s->after ? channel + s->after : last;
        double squares = 0;
        for (int64_t c = from; c <= to; c++) {
            double v = element(x, i - (size_t)channel * s->plane + (size_t)c * s->plane);
            squares += v * v;
        }
        dq_tensor_put_double((*call)->out[0], i,
                             element(x, i) / power(s->bias + s->alpha * squares, s->beta));
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_parallel(call->threads, call->out[0]->count, WORK, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_lrn = {infer, prepare, run, 0};
