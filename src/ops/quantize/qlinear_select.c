/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConcat and QLinearWhere of com.microsoft: they combine elements of several quantized tensors, in the
 * scale and zero point of the result. An operand of equal scale and zero point is copied; others are
 * dequantized and quantized, by one lookup table per operand. */
#include "ops/broadcast.h"
#include "ops/quantize/q8.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* ---- QLinearConcat: scale and zero point of the result, then three inputs per tensor ------------------- */

typedef struct concat_state {
    size_t outer, out_row; /* rows of the result and their length */
} concat_state;

static dq_status concat_axis(const dq_op_call *call, size_t rank, size_t *axis, dq_error *err)
{
    int64_t value = dq_node_int(call->node, "axis", 0);
    if (dq_axis(value, rank, axis))
        return DQ_OK;
    if (rank == 0)
        return dq_call_fail_input(call, err, 2, "is a scalar, expected 1 axis or more");
    return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'axis' is %" PRId64 ", expected %d to %d", value,
                        -(int)rank, (int)rank - 1);
}

static bool is_qvalue(const dq_tensor *t)
{
    return t && (t->dtype == DQ_INT8 || t->dtype == DQ_UINT8);
}

/* Checks an operand. All these inputs are one variadic formal parameter, so that error messages number them.
 */
static dq_status concat_operand(dq_op_call *call, uint32_t i, dq_error *err)
{
    const dq_tensor *x = call->in[i], *scale = call->in[i + 1], *zero = call->in[i + 2];
    if (!is_qvalue(x))
        return dq_call_fail_input(call, err, i, "is %s, expected a tensor of uint8 or int8",
                                  x ? dq_dtype_name(x->dtype) : "left out");
    if (!scale || scale->dtype != DQ_FLOAT)
        return dq_call_fail_input(call, err, i + 1, "is %s, expected the scale of input %u, a float",
                                  scale ? dq_dtype_name(scale->dtype) : "left out", i);
    if (zero && zero->dtype != x->dtype)
        return dq_call_fail_input(call, err, i + 2, "is %s, expected the zero point of input %u, %s",
                                  dq_dtype_name(zero->dtype), i, dq_dtype_name(x->dtype));
    return dq_q8_check(call, i + 1, i + 2, err);
}

static dq_status concat_infer(dq_op_call *call, dq_error *err)
{
    size_t axis;
    int64_t dims[DQ_MAX_RANK];
    const dq_tensor *first = dq_call_in(call, 2);
    DQ_TRY(dq_q8_check(call, 0, 1, err));
    if (call->in_count % 3 != 2 || call->in_count < 5)
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "has %u inputs, expected 2 and then 3 for each tensor: itself, its scale, its zero point",
            call->in_count);
    for (uint32_t i = 2; i < call->in_count; i += 3) {
        const dq_tensor *x = call->in[i];
        DQ_TRY(concat_operand(call, i, err));
        if (i == 2) {
            memcpy(dims, x->dims, sizeof dims);
            DQ_TRY(concat_axis(call, x->rank, &axis, err));
            continue;
        }
        bool fits = x->rank == first->rank;
        for (size_t d = 0; fits && d < x->rank; d++)
            fits = d == axis || x->dims[d] == dims[d];
        if (!fits || !dq_add_i64(dims[axis], x->dims[axis], &dims[axis])) {
            char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
            return dq_call_fail_input(call, err, i, "has shape %s, which does not fit to %s but on axis %zu",
                                      dq_shape_text(x->rank, x->dims, mine),
                                      dq_shape_text(first->rank, first->dims, theirs), axis);
        }
    }
    return dq_call_output(call, 0, call->in[1]->dtype, first->rank, dims, err);
}

/* With one row, inputs that are copied may be concatenated without a copy. */
static dq_status concat_joins(dq_op_call *call, dq_error *err)
{
    size_t begin = 0;
    DQ_TRY(dq_call_concat_offsets(call, err));
    for (uint32_t i = 2; call->concat_offsets && i < call->in_count; begin += call->in[i]->count, i += 3) {
        uint8_t table[256];
        if (!dq_q8_constant(call, 0, 1) || !dq_q8_constant(call, i + 1, i + 2))
            continue;
        dq_q8 x = dq_q8_read(call, i + 1, i + 2, call->in[i]->dtype),
              y = dq_q8_read(call, 0, 1, call->out[0]->dtype);
        if (dq_q8_convert_table(&x, &y, table))
            call->concat_offsets[i] = begin;
    }
    return DQ_OK;
}

static dq_status concat_prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *out = call->out[0];
    size_t axis;
    DQ_TRY(dq_call_state(call, sizeof(concat_state), err));
    DQ_TRY(concat_axis(call, out->rank, &axis, err));
    concat_state *state = call->state;
    state->outer = dq_dims_product(out->dims, 0, axis);
    state->out_row = dq_dims_product(out->dims, axis, out->rank);
    return state->outer == 1 ? concat_joins(call, err) : DQ_OK;
}

typedef struct concat_job {
    const dq_kernels *kernels;
    const uint8_t *x;
    uint8_t *y;
    size_t row, out_row;
    bool copy; /* the table is the identity */
    uint8_t table[256];
} concat_job;

/* Looks up many short rows at a time, as they are contiguous in x. */
static void concat_short_rows(const concat_job *job, size_t begin, size_t end)
{
    enum { BLOCK = 4096 };
    uint8_t found[BLOCK];
    for (size_t i = begin, most = BLOCK / job->row, n; i < end; i += n) {
        n = end - i < most ? end - i : most;
        job->kernels->lookup_x8(job->x + i * job->row, n * job->row, job->table, found);
        for (size_t k = 0; k < n; k++)
            memcpy(job->y + (i + k) * job->out_row, found + k * job->row, job->row);
    }
}

static void concat_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    enum { MAX_SHORT_ROW = 128 };
    (void)worker;
    const concat_job *job = arg;
    if (!job->copy && job->row > 0 && job->row <= MAX_SHORT_ROW) {
        concat_short_rows(job, begin, end);
        return;
    }
    for (size_t i = begin; i < end; i++)
        if (job->copy)
            memcpy(job->y + i * job->out_row, job->x + i * job->row, job->row);
        else
            job->kernels->lookup_x8(job->x + i * job->row, job->row, job->table, job->y + i * job->out_row);
}

static dq_status concat_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const concat_state *state = call->state;
    dq_tensor *out = call->out[0];
    if (!out || out->count == 0)
        return DQ_OK;
    dq_q8 to = dq_q8_read(call, 0, 1, out->dtype);
    uint8_t *y = out->data;
    for (uint32_t i = 2; i < call->in_count; i += 3) {
        const dq_tensor *x = call->in[i];
        if (dq_call_is_concatenated(call, i)) {
            y += x->count;
            continue;
        }
        concat_job job = {.kernels = call->kernels,
                          .x = x->data,
                          .y = y,
                          .row = x->count / state->outer,
                          .out_row = state->out_row};
        dq_q8 from = dq_q8_read(call, i + 1, i + 2, x->dtype);
        job.copy = dq_q8_convert_table(&from, &to, job.table);
        if (state->outer == 1 && !job.copy)
            dq_q8_map(call, job.table, job.x, job.row, job.y);
        else
            dq_parallel(call->threads, state->outer, 32768 / (job.row + 1) + 1, concat_rows, &job);
        y += job.row;
    }
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_concat = {concat_infer, concat_prepare, concat_run, DQ_OP_BATCH_SEPARABLE_ALL};

/* ---- QLinearWhere ------------------------------------------------------------------------------------- */

static const uint32_t where_operands[] = {0, 1, 4};

static dq_status where_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 2, 3, err));
    DQ_TRY(dq_q8_check(call, 5, 6, err));
    DQ_TRY(dq_q8_check(call, 7, 8, err));
    return dq_loop_infer(call, where_operands, 3, call->in[1]->dtype, err);
}

static dq_status where_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_loop), err));
    dq_loop_plan(call, where_operands, 3, call->state);
    return DQ_OK;
}

typedef struct where_job {
    const dq_kernels *kernels;
    const dq_loop *loop;
    const uint8_t *condition, *x, *y;
    uint8_t *out;
    uint8_t x_table[256], y_table[256];
} where_job;

/* Converts n quantized values of an operand. */
static void where_convert(const where_job *job, const uint8_t *x, size_t step, size_t n,
                          const uint8_t table[256], uint8_t *out)
{
    if (step)
        job->kernels->lookup_x8(x, n, table, out);
    else
        memset(out, table[*x], n);
}

static void where_choose(void *arg, const dq_loop_segment *run)
{
    enum { BLOCK = 1024 };
    const where_job *job = arg;
    uint8_t x[BLOCK], y[BLOCK];
    for (size_t i = 0, n; i < run->n; i += n) {
        n = run->n - i < BLOCK ? run->n - i : BLOCK;
        const uint8_t *c = job->condition + run->offset[0] + i * run->step[0];
        uint8_t *out = job->out + run->at + i;
        where_convert(job, job->x + run->offset[1] + i * run->step[1], run->step[1], n, job->x_table, x);
        where_convert(job, job->y + run->offset[2] + i * run->step[2], run->step[2], n, job->y_table, y);
        if (run->step[0])
            for (size_t k = 0; k < n; k++)
                out[k] = c[k] ? x[k] : y[k];
        else
            memcpy(out, *c ? x : y, n);
    }
}

static void where_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const where_job *job = arg;
    dq_loop_range(job->loop, begin, end, where_choose, arg);
}

static dq_status where_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_tensor *out = call->out[0];
    if (!out)
        return DQ_OK;
    where_job job = {.kernels = call->kernels,
                     .loop = call->state,
                     .condition = call->in[0]->data,
                     .x = call->in[1]->data,
                     .y = call->in[4]->data,
                     .out = out->data};
    dq_q8 x = dq_q8_read(call, 2, 3, out->dtype), y = dq_q8_read(call, 5, 6, out->dtype);
    dq_q8 z = dq_q8_read(call, 7, 8, out->dtype);
    dq_q8_convert_table(&x, &z, job.x_table);
    dq_q8_convert_table(&y, &z, job.y_table);
    dq_parallel(call->threads, out->count, 32768, where_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_where = {where_infer, where_prepare, where_run, 0};
