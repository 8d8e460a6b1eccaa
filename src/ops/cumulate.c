/* CumSum and CumProd along an axis: floats in double and rounded as each is stored, integers modulo 2^64. */
#include "ops/lists.h"

typedef struct state {
    bool product, exclusive, reverse;
    size_t n, inner; /* length of the axis, and its stride */
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_list axis;
    DQ_TRY(dq_list_from_input(call, 1, &axis, err));
    DQ_TRY(dq_list_axes(call, &axis, call->in[0]->rank, err));
    if (axis.count != 1)
        return dq_call_fail_input(call, err, 1, "has %zu elements, wanted one axis", axis.count);
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, bool product, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list axis;
    DQ_TRY(dq_list_from_input(call, 1, &axis, err));
    DQ_TRY(dq_list_axes(call, &axis, in->rank, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    size_t at = (size_t)axis.at[0];
    *(state *)call->state = (state){product, dq_node_int(call->node, "exclusive", 0) != 0,
                                    dq_node_int(call->node, "reverse", 0) != 0, (size_t)in->dims[at],
                                    dq_dims_product(in->dims, at + 1, in->rank)};
    return DQ_OK;
}

static void line_of_floats(const dq_op_call *call, size_t base)
{
    const state *s = call->state;
    double total = s->product ? 1 : 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + (s->reverse ? s->n - 1 - i : i) * s->inner;
        double x = dq_tensor_get_double(call->in[0], at), next = s->product ? total * x : total + x;
        dq_tensor_put_double(call->out[0], at, s->exclusive ? total : next);
        total = next;
    }
}

/* Floats that lie side by side, a row of the axis after the other. */
static void lines_of_floats(const dq_op_call *call, size_t base, size_t count)
{
    enum { BLOCK = 256 };
    const state *s = call->state;
    double total[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t n = count - done < BLOCK ? count - done : BLOCK;
        for (size_t k = 0; k < n; k++)
            total[k] = s->product ? 1 : 0;
        for (size_t i = 0; i < s->n; i++) {
            size_t at = base + done + (s->reverse ? s->n - 1 - i : i) * s->inner;
            const float *x = dq_data(call->in[0], float) + at;
            float *y = dq_data(call->out[0], float) + at;
            for (size_t k = 0; k < n; k++) {
                double next = s->product ? total[k] * (double)x[k] : total[k] + (double)x[k];
                y[k] = (float)(s->exclusive ? total[k] : next);
                total[k] = next;
            }
        }
    }
}

static void line_of_integers(const dq_op_call *call, size_t base)
{
    const state *s = call->state;
    uint64_t total = s->product ? 1 : 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + (s->reverse ? s->n - 1 - i : i) * s->inner;
        uint64_t x = (uint64_t)dq_tensor_get_int(call->in[0], at), next = s->product ? total * x : total + x;
        dq_tensor_put_int(call->out[0], at, (int64_t)(s->exclusive ? total : next));
        total = next;
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    for (size_t i = begin, n = 1; i < end; i += n) {
        size_t base = i / s->inner * s->n * s->inner + i % s->inner;
        if (call->in[0]->dtype == DQ_FLOAT && s->inner > 1) {
            n = s->inner - i % s->inner < end - i ? s->inner - i % s->inner : end - i;
            lines_of_floats(call, base, n);
        } else if (dq_dtype_is_float(call->in[0]->dtype))
            line_of_floats(call, base);
        else
            line_of_integers(call, base);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (call->in[0]->count)
        dq_parallel(call->threads, call->in[0]->count / s->n, 64, piece, &call);
    return DQ_OK;
}

static dq_status prepare_sum(dq_op_call *call, dq_error *err)
{
    return prepare(call, false, err);
}

static dq_status prepare_product(dq_op_call *call, dq_error *err)
{
    return prepare(call, true, err);
}

const dq_op_impl dq_op_cum_sum = {infer, prepare_sum, run, 0};
const dq_op_impl dq_op_cum_prod = {infer, prepare_product, run, 0};
