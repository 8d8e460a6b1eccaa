/* CumSum and CumProd along an axis: floats in double and rounded as each is stored, integers modulo 2^64. */
#include "ops/lists.h"
#include "ops/rows.h"

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

static void load_floats(const dq_tensor *t, size_t at, size_t n, double *x)
{
    dq_load_doubles(t->dtype, t->data, at, n, x);
}

static void store_floats(dq_tensor *t, size_t at, size_t n, const double *x)
{
    dq_store_floats(t->dtype, t->data, at, n, x, true, DQ_ROUND_NEAREST);
}

static void load_integers(const dq_tensor *t, size_t at, size_t n, uint64_t *x)
{
    dq_load_ints(t->dtype, t->data, at, n, (int64_t *)x);
}

static void store_integers(dq_tensor *t, size_t at, size_t n, const uint64_t *x)
{
    dq_store_ints(t->dtype, t->data, at, n, (const int64_t *)x);
}

/* x becomes a result. */
#define TAKE(T, total, x)                                                                                    \
    do {                                                                                                     \
        const T next = product ? (total) * (x) : (total) + (x);                                              \
        (x) = exclusive ? (total) : next;                                                                    \
        (total) = next;                                                                                      \
    } while (0)

/* `count` lines, at most DQ_ROW, that lie side by side; or one, whose elements do. */
#define CUMULATE(T, kind)                                                                                    \
    static void lines_of_##kind(const dq_op_call *call, size_t base, size_t count)                           \
    {                                                                                                        \
        const state *s = call->state;                                                                        \
        const bool product = s->product, exclusive = s->exclusive;                                           \
        T total[DQ_ROW], x[DQ_ROW];                                                                          \
        for (size_t k = 0; k < count; k++)                                                                   \
            total[k] = product;                                                                              \
        for (size_t i = 0; i < s->n; i++) {                                                                  \
            size_t at = base + (s->reverse ? s->n - 1 - i : i) * s->inner;                                   \
            load_##kind(call->in[0], at, count, x);                                                          \
            for (size_t k = 0; k < count; k++)                                                               \
                TAKE(T, total[k], x[k]);                                                                     \
            store_##kind(call->out[0], at, count, x);                                                        \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static void line_of_##kind(const dq_op_call *call, size_t base)                                          \
    {                                                                                                        \
        const state *s = call->state;                                                                        \
        const bool product = s->product, exclusive = s->exclusive;                                           \
        T total = product, x[DQ_ROW];                                                                        \
        for (size_t done = 0, n; done < s->n; done += n) {                                                   \
            n = s->n - done < DQ_ROW ? s->n - done : DQ_ROW;                                                 \
            size_t at = base + (s->reverse ? s->n - done - n : done);                                        \
            load_##kind(call->in[0], at, n, x);                                                              \
            for (size_t i = 0; i < n; i++)                                                                   \
                TAKE(T, total, x[s->reverse ? n - 1 - i : i]);                                               \
            store_##kind(call->out[0], at, n, x);                                                            \
        }                                                                                                    \
    }

CUMULATE(double, floats)
CUMULATE(uint64_t, integers)

/* The same of sums of floats that lie side by side, which become what their totals are. */
static void sums_of_lines(const dq_op_call *call, size_t base, size_t count)
{
    const state *s = call->state;
    double total[DQ_ROW] = {0};
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + (s->reverse ? s->n - 1 - i : i) * s->inner;
        if (s->exclusive)
            store_floats(call->out[0], at, count, total);
        call->kernels->float_rows->add_to(dq_data(call->in[0], float) + at, 0, 1, count, total);
        if (!s->exclusive)
            store_floats(call->out[0], at, count, total);
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    bool floats = dq_dtype_is_float(call->in[0]->dtype), sums = call->in[0]->dtype == DQ_FLOAT && !s->product;
    for (size_t i = begin, n = 1; i < end; i += n) {
        size_t base = i / s->inner * s->n * s->inner + i % s->inner;
        if (s->inner == 1) {
            (floats ? line_of_floats : line_of_integers)(call, base);
            continue;
        }
        n = s->inner - i % s->inner < end - i ? s->inner - i % s->inner : end - i;
        n = n < DQ_ROW ? n : DQ_ROW;
        (sums ? sums_of_lines : floats ? lines_of_floats : lines_of_integers)(call, base, n);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (call->in[0]->count)
        dq_parallel(call->threads, call->in[0]->count / s->n, s->inner == 1 ? 64 : DQ_ROW, piece, &call);
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
