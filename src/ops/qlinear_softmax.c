/* QLinearSoftmax of com.microsoft.
 *
 * A row's exponentials come from a table of floats that is shifted so that the row's greatest code meets its
 * end; the shift upwards keeps small ones from vanishing. They are added up as floats in the row's order, and
 *     Y = saturate(round(e * k / sum) + y_zero_point),  k = floor(1 / y_scale),
 * product and quotient rounded to float. The zero point of X plays no part. Before version 13 of Softmax,
 * which attribute `opset` tells, a row is all axes from `axis` on. */
#include "ops/q8.h"

#include <float.h>
#include <inttypes.h>

typedef struct softmax_state {
    size_t length, inner; /* elements of a row, and from one to the next */
    size_t rows;
    bool ready;       /* the table is made */
    float table[256]; /* entry 255 belongs to the greatest code */
} softmax_state;

static dq_status read_axis(const dq_op_call *call, size_t *axis, dq_error *err)
{
    size_t rank = call->in[0]->rank;
    int64_t given = dq_node_int(call->node, "axis", -1);
    if (dq_axis(given, rank, axis))
        return DQ_OK;
    if (rank == 0)
        return dq_call_fail_input(call, err, 0, "is a scalar, wanted 1 axis or more");
    return dq_call_fail(call, err, DQ_BAD_MODEL,
                        "attribute 'axis' is %" PRId64 ", wanted %d to %d for input 0 of rank %zu", given,
                        -(int)rank, (int)rank - 1, rank);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static void make_table(const dq_op_call *call, size_t length, float table[256])
{
    double scale = (double)dq_data(call->in[1], float)[0];   /* a zero point cancels out */
    double room = (double)logf(FLT_MAX / (float)length) - 5; /* a row's sum stays finite */
    double shift = (room > 0 ? room : 0) / scale;
    for (int i = 0; i < 256; i++)
        table[i] = (float)exp((i - 255 + shift) * scale);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    DQ_TRY(dq_call_state(call, sizeof(softmax_state), err));
    softmax_state *state = call->state;
    bool flat = dq_node_int(call->node, "opset", 13) < 13;
    size_t end = flat ? x->rank : axis + 1;
    state->length = dq_dims_product(x->dims, axis, end);
    state->inner = dq_dims_product(x->dims, end, x->rank);
    state->rows = state->length ? x->count / state->length : 0;
    state->ready = dq_call_constant(call, 1);
    if (state->ready)
        make_table(call, state->length, state->table);
    return DQ_OK;
}

typedef struct softmax_job {
    const softmax_state *state;
    const float *table;
    const uint8_t *x;
    uint8_t *y;
    dq_q8 qx, qy; /* of X only the type counts */
    float factor;
} softmax_job;

/* Of an exponential: a product beyond float's range, which short rows can have, is taken in double. */
static uint8_t result(const softmax_job *job, float e, float sum)
{
    float scaled = e * job->factor;
    double exact = (double)e * (double)job->factor / (double)sum;
    return dq_q8_round(&job->qy, (double)(isfinite(scaled) ? scaled / sum : (float)exact));
}

/* `flip` brings codes into the order of bytes. A long row's results come from a table of all codes. */
static void one_row(const softmax_job *job, size_t at)
{
    enum { LONG = 512 };
    size_t n = job->state->length, step = job->state->inner;
    const uint8_t *x = job->x + at;
    uint8_t *y = job->y + at, highest = 0, results[256];
    uint8_t flip = (uint8_t)(job->qx.min & 0x80);
    for (size_t i = 0; i < n; i++) {
        uint8_t code = (uint8_t)(x[i * step] ^ flip);
        highest = code > highest ? code : highest;
    }
    const float *table = job->table + (255 - highest);
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += table[x[i * step] ^ flip];
    for (size_t c = 0; n >= LONG && c <= highest; c++)
        results[c ^ flip] = result(job, table[c], sum);
    for (size_t i = 0; i < n; i++)
        y[i * step] = n >= LONG ? results[x[i * step]] : result(job, table[x[i * step] ^ flip], sum);
}

static void rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const softmax_job *job = arg;
    size_t inner = job->state->inner;
    for (size_t i = begin; i < end; i++)
        one_row(job, i / inner * inner * job->state->length + i % inner);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const softmax_state *state = call->state;
    const dq_tensor *x = call->in[0];
    float table[256];
    if (!call->out[0] || state->rows == 0)
        return DQ_OK;
    if (!state->ready)
        make_table(call, state->length, table);
    softmax_job job = {.state = state,
                       .table = state->ready ? state->table : table,
                       .x = x->data,
                       .y = call->out[0]->data,
                       .qx = dq_q8_read(call, 1, 2, x->dtype),
                       .qy = dq_q8_read(call, 3, 4, x->dtype)};
    job.factor = floorf(1 / job.qy.scale);
    dq_parallel(call->threads, state->rows, 16384 / state->length + 1, rows, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_softmax = {infer, prepare, run, 0};
