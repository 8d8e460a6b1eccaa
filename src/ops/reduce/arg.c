/* ArgMax and ArgMin: where along an axis the extreme stands; among equals the first, or the last. The first
 * NaN counts as the extreme, as in NumPy. */
#include "kernels/kernels.h"
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>

enum { WORK = 8192 /* elements of a piece of parallel work, about */, BLOCK = 256 };

typedef struct state {
    size_t n, inner; /* length of the axis; elements behind it, which is its stride */
    bool max, last;
} state;

static dq_status read_axis(const dq_op_call *call, size_t *axis, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t given = dq_node_int(call->node, "axis", 0);
    if (!dq_axis(given, in->rank, axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside an input of rank %u", given, in->rank);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis, rank = 0;
    DQ_TRY(read_axis(call, &axis, err));
    if (in->dims[axis] == 0)
        return dq_call_fail_input(call, err, 0, "is empty along axis %zu, which has no extreme", axis);
    bool keep = dq_node_int(call->node, "keepdims", 1) != 0;
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < in->rank; d++)
        if (d != axis || keep)
            dims[rank++] = d == axis ? 1 : in->dims[d];
    return dq_call_output(call, 0, DQ_INT64, rank, dims, err);
}

static dq_status prepare(dq_op_call *call, bool max, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    *(state *)call->state = (state){(size_t)in->dims[axis], dq_dims_product(in->dims, axis + 1, in->rank),
                                    max, dq_node_int(call->node, "select_last_index", 0) != 0};
    return DQ_OK;
}

/* Whether x (element i) takes the place of best: 1 yes, 0 equal, -1 no. */
static int beats_double(double x, double best, bool max)
{
    if (isnan(x) || isnan(best))
        return isnan(x) && !isnan(best) ? 1 : isnan(x) ? 0 : -1;
    return x == best ? 0 : (x > best) == max ? 1 : -1;
}

static int beats_integer(uint64_t x, uint64_t best, bool max)
{
    return x == best ? 0 : (x > best) == max ? 1 : -1;
}

static size_t find(const state *s, const dq_tensor *in, size_t base)
{
    unsigned cls = dq_dtype_get(in->dtype)->cls;
    uint64_t flip = cls == DQ_CLASS_INT ? (uint64_t)1 << 63 : 0; /* orders signed as unsigned */
    bool is_float = cls == DQ_CLASS_FLOAT;
    double best_d = 0;
    uint64_t best_u = 0;
    size_t where = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + i * s->inner;
        double d = is_float ? dq_tensor_get_double(in, at) : 0;
        uint64_t u = is_float ? 0 : (uint64_t)dq_tensor_get_int(in, at) ^ flip;
        int beats = i == 0     ? 1
                    : is_float ? beats_double(d, best_d, s->max)
                               : beats_integer(u, best_u, s->max);
        if (beats > 0 || (beats == 0 && s->last)) {
            best_d = d;
            best_u = u;
            where = i;
        }
    }
    return where;
}

/* A stretch of floats: the kernels find the extreme, which is then looked for. */
static size_t find_in_row(const state *s, const dq_float_rows *rows, const float *x)
{
    float best = s->max ? rows->max_of(x, s->n) : rows->min_of(x, s->n);
    for (size_t i = 0; i < s->n; i++) {
        size_t at = s->last ? s->n - 1 - i : i;
        if (x[at] == best || (isnan(best) && isnan(x[at])))
            return at;
    }
    return 0;
}

/* n <= BLOCK results side by side, of floats. */
static void find_columns(const state *s, const float *x, size_t n, int64_t *out)
{
    const float sign = s->max ? 1.0f : -1.0f;
    float best[BLOCK];
    int32_t where[BLOCK];
    for (size_t k = 0; k < n; k++) {
        best[k] = x[k] * sign;
        where[k] = 0;
    }
    for (size_t i = 1; i < s->n; i++) {
        const float *row = x + i * s->inner;
        for (size_t k = 0; k < n; k++) {
            float here = row[k] * sign;
            bool equal = (here == best[k]) | (isnan(here) & isnan(best[k]));
            bool better = (here > best[k]) | (isnan(here) & !isnan(best[k])) | (equal & s->last);
            best[k] = better ? here : best[k];
            where[k] = better ? (int32_t)i : where[k];
        }
    }
    for (size_t k = 0; k < n; k++)
        out[k] = where[k];
}

typedef struct job {
    const state *s;
    const dq_op_call *call;
} job;

static void floats_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    const float *x = dq_data(j->call->in[0], float);
    int64_t *out = dq_data(j->call->out[0], int64_t);
    for (size_t i = begin, n = 1; i < end; i += n) {
        if (s->inner == 1) {
            out[i] = (int64_t)find_in_row(s, j->call->kernels->float_rows, x + i * s->n);
            continue;
        }
        n = s->inner - i % s->inner < end - i ? s->inner - i % s->inner : end - i;
        n = n < BLOCK ? n : BLOCK;
        find_columns(s, x + i / s->inner * s->n * s->inner + i % s->inner, n, out + i);
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    for (size_t i = begin; i < end; i++)
        dq_data(j->call->out[0], int64_t)[i] =
            (int64_t)find(s, j->call->in[0], i / s->inner * s->n * s->inner + i % s->inner);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    job j = {s, call};
    if (call->out[0]->count)
        dq_parallel(call->threads, call->out[0]->count, WORK / s->n + 1,
                    call->in[0]->dtype == DQ_FLOAT && s->n <= INT32_MAX ? floats_piece : piece, &j);
    return DQ_OK;
}

static dq_status prepare_max(dq_op_call *call, dq_error *err)
{
    return prepare(call, true, err);
}

static dq_status prepare_min(dq_op_call *call, dq_error *err)
{
    return prepare(call, false, err);
}

const dq_op_impl dq_op_arg_max = {infer, prepare_max, run, 0};
const dq_op_impl dq_op_arg_min = {infer, prepare_min, run, 0};
