/* DynamicQuantizeLinear: 8-bit values of a float tensor, with a scale and zero point found from its range.
 *
 * All arithmetic is float, one rounding an operation: the range joined with 0, y_scale = range / (qmax -
 * qmin), the zero point qmin - min / y_scale saturated, then rounded. uint8 uses [0, 255] and int8, which a
 * schema may allow, [-127, 127]. When all elements are 0 the range says nothing, and it is taken as 1. NaN
 * elements have no part in the range and become qmin. */
#include "ops/op.h"

#include <math.h>

/* Elements that a thread takes at a time. */
enum { GRAIN = 16384 };

typedef struct range {
    float low, high;
} range;

typedef struct dynamic_job {
    const dq_op_call *call;
    const float *x;
    range *pieces; /* one each GRAIN elements */
    float scale;
    int32_t zero;
    dq_dtype dtype;
} dynamic_job;

/* The schema says the type of the outputs; uint8 where it leaves that open. */
static dq_dtype result_type(const dq_op_call *call)
{
    for (uint32_t i = 0; i < call->out_count; i += 2)
        if (call->out[i] && call->out[i]->dtype != DQ_UNDEFINED)
            return call->out[i]->dtype;
    return DQ_UINT8;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = result_type(call);
    if (dtype != DQ_UINT8 && dtype != DQ_INT8)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "output 0 'y' is %s, wanted uint8 or int8",
                            dq_dtype_name(dtype));
    DQ_TRY(dq_call_output_like(call, 0, dtype, call->in[0], err));
    DQ_TRY(dq_call_output(call, 1, DQ_FLOAT, 0, NULL, err));
    return dq_call_output(call, 2, dtype, 0, NULL, err);
}

static size_t piece_count(const dq_op_call *call)
{
    return call->in[0]->count / GRAIN + (call->in[0]->count % GRAIN != 0);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    (void)err;
    call->scratch_size = piece_count(call) * sizeof(range);
    return DQ_OK;
}

static void find_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dynamic_job *job = arg;
    range *piece = &job->pieces[begin / GRAIN];
    piece->low = piece->high = 0.0f;
    job->call->kernels->minmax_f32(job->x + begin, end - begin, &piece->low, &piece->high);
}

static void find_parameters(dynamic_job *job)
{
    float low = 0.0f, high = 0.0f;
    size_t pieces = piece_count(job->call);
    for (size_t i = 0; i < pieces; i++) {
        low = job->pieces[i].low < low ? job->pieces[i].low : low;
        high = job->pieces[i].high > high ? job->pieces[i].high : high;
    }
    float qmin = job->dtype == DQ_INT8 ? -127.0f : 0.0f, qmax = job->dtype == DQ_INT8 ? 127.0f : 255.0f;
    float width = low == high ? 1.0f : high - low;
    job->scale = width / (qmax - qmin);
    float zero = qmin - low / job->scale;
    zero = zero > qmin ? zero : qmin; /* also for NaN, which an infinite range gives */
    zero = zero < qmax ? zero : qmax;
    job->zero = (int32_t)rintf(zero);
}

static void quantize_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dynamic_job *job = arg;
    if (job->dtype == DQ_UINT8) {
        uint8_t zero = (uint8_t)job->zero, *y = dq_data(job->call->out[0], uint8_t) + begin;
        job->call->kernels->quantize_f32_u8(job->x + begin, end - begin, &job->scale, &zero, 0, y);
        return;
    }
    int8_t zero = (int8_t)job->zero, *y = dq_data(job->call->out[0], int8_t) + begin;
    job->call->kernels->quantize_f32_s8(job->x + begin, end - begin, &job->scale, &zero, 0, y);
    for (size_t i = 0; i < end - begin; i++)
        y[i] = y[i] < -127 ? -127 : y[i];
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    size_t n = call->in[0]->count;
    dynamic_job job = {
        .call = call, .x = dq_data(call->in[0], float), .pieces = call->scratch, .dtype = result_type(call)};
    dq_parallel(call->threads, n, GRAIN, find_range, &job);
    find_parameters(&job);
    if (call->out[0])
        dq_parallel(call->threads, n, GRAIN, quantize_range, &job);
    if (call->out_count > 1 && call->out[1])
        dq_data(call->out[1], float)[0] = job.scale;
    if (call->out_count > 2 && call->out[2])
        dq_data(call->out[2], uint8_t)[0] = (uint8_t)job.zero;
    return DQ_OK;
}

const dq_op_impl dq_op_dynamic_quantize_linear = {infer, prepare, run, 0};
