/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAdd, QLinearMul and MulInteger of com.microsoft: two quantized operands, broadcast.
 *
 * QLinearAdd, with ratios ra = A_scale / C_scale and rb likewise, each rounded to float:
 *     fixed = C_zero_point - fma(ra, A_zero_point, rb * B_zero_point)
 *     C = saturate(round(fma(A, ra, fma(B, rb, fixed))))
 * where A and B are the quantized values. The operands are swapped if A is constant along the innermost
 * segment. The zero point is inside the rounded sum, so that ties round differently than in round-then-add.
 *
 * QLinearMul, with ratio = A_scale * B_scale / C_scale, both steps rounded to float:
 *     C = saturate(round((A - A_zero_point) * (B - B_zero_point) * ratio + C_zero_point))
 *
 * MulInteger: (A - A_zero_point) * (B - B_zero_point) in int32. */
#include "ops/broadcast.h"
#include "ops/quantize/q8.h"

/* Elements of a task. */
enum { GRAIN = 16384 };

typedef struct binary_job {
    const dq_op_call *call;
    const dq_loop *loop;
    const uint8_t *a, *b; /* quantized values as bytes */
    bool is_signed;
    dq_q8 qa, qb, qc;
    dq_loop_fn *fn;
} binary_job;

static void binary_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const binary_job *job = arg;
    dq_loop_range(job->loop, begin, end, job->fn, arg);
}

static void binary_run(const dq_op_call *call, binary_job *job)
{
    const dq_tensor *out = call->out[0];
    job->call = call;
    job->loop = call->state;
    job->is_signed = call->in[0]->dtype == DQ_INT8;
    dq_parallel(call->threads, out->count, GRAIN, binary_range, job);
}

/* ---- QLinearAdd, QLinearMul --------------------------------------------------------------------------- */

static const uint32_t qlinear_operands[] = {0, 3};

static dq_status qlinear_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 4, 5, err));
    DQ_TRY(dq_q8_check(call, 6, 7, err));
    return dq_loop_infer(call, qlinear_operands, 2, call->in[0]->dtype, err);
}

static dq_status qlinear_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_loop), err));
    dq_loop_plan(call, qlinear_operands, 2, call->state);
    return DQ_OK;
}

/* A segment whose `second` operand may be a scalar (step 0). */
typedef struct pair {
    const uint8_t *first, *second;
    const dq_q8 *q_first, *q_second;
    size_t step; /* of the second */
} pair;

static pair pair_of(const binary_job *job, const dq_loop_segment *run)
{
    const uint8_t *a = job->a + run->offset[0], *b = job->b + run->offset[1];
    if (run->step[0] == 0)
        return (pair){b, a, &job->qb, &job->qa, run->step[0]};
    return (pair){a, b, &job->qa, &job->qb, run->step[1]};
}

static void add_run(void *arg, const dq_loop_segment *run)
{
    const binary_job *job = arg;
    const dq_kernels *kernels = job->call->kernels;
    pair p = pair_of(job, run);
    float first = p.q_first->scale / job->qc.scale, second = p.q_second->scale / job->qc.scale;
    float zeros = fmaf(first, (float)p.q_first->zero, second * (float)p.q_second->zero);
    float fixed = (float)job->qc.zero - zeros;
    uint8_t *y = dq_data(job->call->out[0], uint8_t) + run->at;
    if (job->is_signed)
        kernels->qlinear_add_s8((const int8_t *)p.first, first, (const int8_t *)p.second, second, p.step,
                                fixed, run->n, (int8_t *)y);
    else
        kernels->qlinear_add_u8(p.first, first, p.second, second, p.step, fixed, run->n, y);
}

static void mul_run(void *arg, const dq_loop_segment *run)
{
    const binary_job *job = arg;
    const dq_kernels *kernels = job->call->kernels;
    pair p = pair_of(job, run);
    float scales = job->qa.scale * job->qb.scale;
    float ratio = scales / job->qc.scale, zero = (float)job->qc.zero;
    uint8_t *y = dq_data(job->call->out[0], uint8_t) + run->at;
    if (job->is_signed)
        kernels->qlinear_mul_s8((const int8_t *)p.first, p.q_first->zero, (const int8_t *)p.second,
                                p.q_second->zero, p.step, ratio, zero, run->n, (int8_t *)y);
    else
        kernels->qlinear_mul_u8(p.first, p.q_first->zero, p.second, p.q_second->zero, p.step, ratio, zero,
                                run->n, y);
}

static dq_status qlinear_run(const dq_op_call *call, dq_loop_fn *fn)
{
    if (!call->out[0])
        return DQ_OK;
    dq_dtype dtype = call->in[0]->dtype;
    binary_job job = {.a = call->in[0]->data,
                      .b = call->in[3]->data,
                      .qa = dq_q8_read(call, 1, 2, dtype),
                      .qb = dq_q8_read(call, 4, 5, dtype),
                      .qc = dq_q8_read(call, 6, 7, dtype),
                      .fn = fn};
    binary_run(call, &job);
    return DQ_OK;
}

static dq_status add(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return qlinear_run(call, add_run);
}

static dq_status mul(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return qlinear_run(call, mul_run);
}

const dq_op_impl dq_op_qlinear_add = {qlinear_infer, qlinear_prepare, add,
                                      DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_BATCH_SEPARABLE_ALL};
const dq_op_impl dq_op_qlinear_mul = {qlinear_infer, qlinear_prepare, mul,
                                      DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_BATCH_SEPARABLE_ALL};

/* ---- MulInteger --------------------------------------------------------------------------------------- */

static const uint32_t integer_operands[] = {0, 2};

static dq_status integer_infer(dq_op_call *call, dq_error *err)
{
    for (uint32_t i = 1; i <= 3; i += 2) {
        const dq_tensor *zero = dq_call_in(call, i);
        if (zero && zero->count != 1)
            return dq_call_fail_input(call, err, i, "has %zu elements, expected 1", zero->count);
    }
    return dq_loop_infer(call, integer_operands, 2, DQ_INT32, err);
}

static dq_status integer_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_loop), err));
    dq_loop_plan(call, integer_operands, 2, call->state);
    return DQ_OK;
}

static void integer_product(void *arg, const dq_loop_segment *run)
{
    const binary_job *job = arg;
    const uint8_t *a = job->a + run->offset[0], *b = job->b + run->offset[1];
    int32_t *y = dq_data(job->call->out[0], int32_t) + run->at;
    for (size_t i = 0; i < run->n; i++)
        y[i] = (dq_q8_value(&job->qa, a[i * run->step[0]]) - job->qa.zero) *
               (dq_q8_value(&job->qb, b[i * run->step[1]]) - job->qb.zero);
}

static dq_q8 zero_point(const dq_op_call *call, uint32_t i)
{
    const dq_tensor *zero = dq_call_in(call, i);
    const dq_dtype_row *row = dq_dtype_get(call->in[0]->dtype);
    return (dq_q8){
        .zero = zero ? (int)dq_tensor_get_int(zero, 0) : 0, .min = (int)row->min, .max = (int)row->max};
}

static dq_status integer_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0])
        return DQ_OK;
    binary_job job = {.a = call->in[0]->data,
                      .b = call->in[2]->data,
                      .qa = zero_point(call, 1),
                      .qb = zero_point(call, 3),
                      .fn = integer_product};
    binary_run(call, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_mul_integer = {integer_infer, integer_prepare, integer_run, 0};
