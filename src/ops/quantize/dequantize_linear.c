/* SPDX-License-Identifier: Apache-2.0 */
/* DequantizeLinear: y = (x - x_zero_point) * x_scale.
 *
 * The difference is computed exactly, then rounded to float, which only int32 may require. Its product with
 * the scale is rounded once, to the output type. A zero point of a float type is subtracted too, unless it is
 * 0, so that -0 stays. */
#include "ops/granularity.h"
#include "ops/rows.h"

#include <inttypes.h>

typedef struct dequantize_job {
    const dq_scale_granularity *granularity;
    const dq_kernels *kernels;
    const dq_tensor *x, *scale, *zero; /* zero NULL: 0 */
    dq_tensor *y;
} dequantize_job;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static bool is_result_type(int64_t dtype)
{
    return dtype == DQ_FLOAT || dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16;
}

static dq_status result_type(const dq_op_call *call, dq_dtype *dtype, dq_error *err)
{
    int64_t value = dq_node_int(call->node, "output_dtype", 0);
    *dtype = value == 0 ? call->in[1]->dtype : (dq_dtype)value;
    if (value != 0 && !is_result_type(value))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'output_dtype' is %" PRId64
                            " (%s), expected float, float16 or bfloat16",
                            value, dq_dtype_valid(value) ? dq_dtype_name((dq_dtype)value) : "no type");
    if (!is_result_type((int64_t)*dtype))
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "attribute 'output_dtype' is not given and input 1 'x_scale' is %s, which cannot be "
            "the output's type, expected float, float16 or bfloat16",
            dq_dtype_name(*dtype));
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_scale_granularity granularity;
    dq_dtype dtype;
    DQ_TRY(result_type(call, &dtype, err));
    DQ_TRY(dq_granularity_read(call, &granularity, err));
    return dq_call_output_like(call, 0, dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_scale_granularity), err));
    return dq_granularity_read(call, call->state, err);
}

/* ---- Integers to float: kernels ------------------------------------------------------------------------ */

static bool has_kernel(dq_dtype x)
{
    return x == DQ_UINT8 || x == DQ_INT8 || x == DQ_UINT16 || x == DQ_INT16 || x == DQ_INT32;
}

#define KERNEL_ROW(slot, type)                                                                               \
    job->kernels->slot(dq_data(job->x, type) + first, run->length, scale,                                    \
                       job->zero ? dq_data(job->zero, type) + run->scale : NULL, run->step, y)

/* `scale` points to the segment's scales. */
static void kernel_row(const dequantize_job *job, size_t first, const dq_scale_segment *run,
                       const float *scale, float *y)
{
    switch (job->x->dtype) {
    case DQ_UINT8:
        KERNEL_ROW(dequantize_u8_f32, uint8_t);
        return;
    case DQ_INT8:
        KERNEL_ROW(dequantize_s8_f32, int8_t);
        return;
    case DQ_UINT16:
        KERNEL_ROW(dequantize_u16_f32, uint16_t);
        return;
    case DQ_INT16:
        KERNEL_ROW(dequantize_s16_f32, int16_t);
        return;
    default:
        KERNEL_ROW(dequantize_s32_f32, int32_t);
        return;
    }
}

/* Dequantizes the whole blocks that start at `first` and end by `end`; returns their number of elements, 0 if
 * there are none or the type has no block kernel. */
static size_t block_rows(const dequantize_job *job, size_t first, size_t end, const dq_scale_segment *run)
{
    size_t block = job->granularity->block, count = 0;
    if (job->x->dtype == DQ_UINT8 || job->x->dtype == DQ_INT8)
        count = dq_granularity_blocks(job->granularity, first, end, run);
    if (count == 0)
        return 0;
    const float *scale = dq_data(job->scale, float) + run->scale;
    float *y = dq_data(job->y, float) + first;
    if (job->x->dtype == DQ_UINT8)
        job->kernels->dequantize_blocks_u8_f32(dq_data(job->x, uint8_t) + first, count, block, scale,
                                               job->zero ? dq_data(job->zero, uint8_t) + run->scale : NULL,
                                               y);
    else
        job->kernels->dequantize_blocks_s8_f32(dq_data(job->x, int8_t) + first, count, block, scale,
                                               job->zero ? dq_data(job->zero, int8_t) + run->scale : NULL, y);
    return count * block;
}

/* ---- Integers and floats of up to 8 bits: through float ------------------------------------------------ */

static bool is_small_float(dq_dtype dtype)
{
    return dq_dtype_is_float(dtype) && dq_dtype_bits(dtype) <= 8;
}

/* Whether float products are exact, or rounded to float as the output type requires. The difference of
 * integers has 9 bits, a small float 4, and scales of types other than float at most 11. */
static bool in_floats(const dequantize_job *job)
{
    dq_dtype x = job->x->dtype;
    if (is_small_float(x))
        return job->y->dtype == DQ_FLOAT || (job->scale->dtype != DQ_FLOAT && !job->zero);
    return dq_dtype_is_int(x) && dq_dtype_bits(x) <= 8 &&
           (job->scale->dtype != DQ_FLOAT || job->y->dtype == DQ_FLOAT);
}

/* A zero point of 0 is not subtracted, so that -0 stays. */
static void small_float_row(const dequantize_job *job, size_t first, const dq_scale_segment *run,
                            const float *scale, float *y)
{
    float zero[DQ_ROW];
    size_t n = run->length, step = run->step;
    dq_load_floats(job->kernels, job->x->dtype, job->x->data, first, n, y);
    if (job->zero) {
        dq_load_floats(job->kernels, job->zero->dtype, job->zero->data, run->scale, step ? n : 1, zero);
        for (size_t i = 0; i < n; i++)
            y[i] = zero[i * step] != 0 ? y[i] - zero[i * step] : y[i];
    }
    job->kernels->rows_f32->mul(y, 1, scale, step, n, y);
}

/* Dequantizes a segment of at most DQ_ROW elements. */
static void float_row(const dequantize_job *job, size_t first, const dq_scale_segment *run)
{
    float scale[DQ_ROW], y[DQ_ROW];
    size_t n = run->length, parameters = run->step ? n : 1;
    dq_load_floats(job->kernels, job->scale->dtype, job->scale->data, run->scale, parameters, scale);
    if (dq_dtype_is_float(job->x->dtype)) {
        small_float_row(job, first, run, scale, y);
    } else if (dq_dtype_is_packed(job->x->dtype)) {
        int8_t x[DQ_ROW], zero[DQ_ROW];
        dq_load_packed(job->x->dtype, job->x->data, first, n, x);
        if (job->zero)
            dq_load_packed(job->zero->dtype, job->zero->data, run->scale, parameters, zero);
        job->kernels->dequantize_s8_f32(x, n, scale, job->zero ? zero : NULL, run->step, y);
    } else {
        kernel_row(job, first, run, scale, y);
    }
    dq_store_from_floats(job->kernels, job->y->dtype, job->y->data, first, n, y, false);
}

/* ---- All other types: through double ------------------------------------------------------------------- */

/* Dequantizes a segment of at most DQ_ROW elements. The product of two floats is exact in double. */
static void double_row(const dequantize_job *job, size_t first, const dq_scale_segment *run)
{
    double x[DQ_ROW], scale[DQ_ROW], zero[DQ_ROW];
    size_t n = run->length;
    dq_load_doubles(job->x->dtype, job->x->data, first, n, x);
    dq_scale_segment_load(job->scale, run, n, scale);
    if (job->zero) {
        dq_scale_segment_load(job->zero, run, n, zero);
        for (size_t i = 0; i < n; i++)
            if (zero[i] != 0)
                x[i] -= zero[i];
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(float)x[i] * scale[i];
    dq_store_floats(job->y->dtype, job->y->data, first, n, x, false, DQ_ROUND_NEAREST);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

static void dequantize_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dequantize_job *job = arg;
    bool direct = job->y->dtype == DQ_FLOAT && job->scale->dtype == DQ_FLOAT && has_kernel(job->x->dtype);
    bool floats = in_floats(job);
    dq_scale_segment run = {0};
    for (size_t first = begin, blocks = 0; first < end; first += blocks ? blocks : run.length) {
        size_t axis_end = direct || end - first < DQ_ROW ? end : first + DQ_ROW;
        if (first == begin || blocks)
            run = dq_granularity_segment(job->granularity, first, axis_end);
        else
            dq_granularity_next(job->granularity, first, axis_end, &run);
        blocks = direct ? block_rows(job, first, end, &run) : 0;
        if (blocks)
            continue;
        if (direct)
            kernel_row(job, first, &run, dq_data(job->scale, float) + run.scale,
                       dq_data(job->y, float) + first);
        else if (floats)
            float_row(job, first, &run);
        else
            double_row(job, first, &run);
    }
}

/* Whether a zero point of a small float type is 0 for all scales, which equals none. */
static bool is_nothing(const dq_tensor *zero)
{
    for (size_t i = 0; i < zero->count; i++)
        if (dq_tensor_get_double(zero, i) != 0)
            return false;
    return true;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0])
        return DQ_OK;
    dequantize_job job = {.granularity = call->state,
                          .kernels = call->kernels,
                          .x = call->in[0],
                          .scale = call->in[1],
                          .zero = dq_call_in(call, 2),
                          .y = call->out[0]};
    if (job.zero && is_small_float(job.x->dtype) && is_nothing(job.zero))
        job.zero = NULL;
    dq_parallel(call->threads, job.x->count, dq_row_grain(job.x->count), dequantize_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_dequantize_linear = {infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
