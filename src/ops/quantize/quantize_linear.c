/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear: y = saturate(round(x / y_scale) + y_zero_point).
 *
 * The quotient is rounded once, correctly, in the precision of the division. That is attribute `precision`,
 * else the type of y_scale; both operands are converted to it first. With an int32 scale, a precision without
 * fractions, the exact ratio is rounded to an integer once, ties to even. A float8e8m0 scale, a power of two,
 * divides in float.
 *
 * Integer results: round the quotient, add the zero point and saturate, in this order and without overflow;
 * NaN gives the type's minimum. Float results: add the zero point (unless it is 0, so that -0 stays) and
 * convert as Cast does. */
#include "ops/granularity.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>

typedef struct quantize_state {
    dq_scale_granularity granularity;
    dq_dtype precision; /* float, float16, bfloat16 or double; int32: the exact ratio */
    bool saturate;
} quantize_state;

/* Arguments of the range function. */
typedef struct quantize_job {
    const quantize_state *state;
    const dq_kernels *kernels;
    const dq_tensor *x, *scale, *zero; /* zero NULL: 0 */
    dq_tensor *y;
} quantize_job;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static bool is_result_type(int64_t dtype)
{
    if (!dq_dtype_valid(dtype) || dtype == DQ_FLOAT8E8M0)
        return false;
    const dq_dtype_row *row = dq_dtype_get((dq_dtype)dtype);
    if (row->cls == DQ_CLASS_FLOAT)
        return row->bits <= 8;
    return (row->cls == DQ_CLASS_INT || row->cls == DQ_CLASS_UINT) && row->bits <= 16;
}

static dq_status result_type(const dq_op_call *call, dq_dtype *dtype, dq_error *err)
{
    const dq_tensor *zero = dq_call_in(call, 2);
    int64_t value = dq_node_int(call->node, "output_dtype", 0);
    *dtype = zero ? zero->dtype : DQ_UINT8;
    if (value == 0)
        return DQ_OK;
    if (!is_result_type(value))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'output_dtype' is %" PRId64
                            " (%s), expected an integer type of at most 16 bits or a float type of at most 8",
                            value, dq_dtype_valid(value) ? dq_dtype_name((dq_dtype)value) : "no type");
    if (zero && (dq_dtype)value != zero->dtype)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'output_dtype' is %s, expected %s as input 2 'y_zero_point' is",
                            dq_dtype_name((dq_dtype)value), dq_dtype_name(zero->dtype));
    *dtype = (dq_dtype)value;
    return DQ_OK;
}

static dq_status division_precision(const dq_op_call *call, dq_dtype *precision, dq_error *err)
{
    dq_dtype scale = call->in[1]->dtype;
    int64_t value = dq_node_int(call->node, "precision", 0);
    bool standard = call->node->domain[0] == '\0'; /* com.microsoft divides in float */
    *precision = scale == DQ_FLOAT8E8M0 || !standard ? DQ_FLOAT : scale;
    if (value == 0)
        return DQ_OK;
    if (value != DQ_FLOAT && value != DQ_FLOAT16 && value != DQ_BFLOAT16 && value != DQ_DOUBLE &&
        value != (int64_t)*precision)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'precision' is %" PRId64
                            " (%s), expected float, float16, bfloat16 or double",
                            value, dq_dtype_valid(value) ? dq_dtype_name((dq_dtype)value) : "no type");
    *precision = (dq_dtype)value;
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_scale_granularity granularity;
    dq_dtype dtype, precision;
    DQ_TRY(result_type(call, &dtype, err));
    DQ_TRY(division_precision(call, &precision, err));
    DQ_TRY(dq_granularity_read(call, &granularity, err));
    return dq_call_output_like(call, 0, dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(quantize_state), err));
    quantize_state *state = call->state;
    state->saturate = dq_node_int(call->node, "saturate", 1) != 0;
    DQ_TRY(division_precision(call, &state->precision, err));
    return dq_granularity_read(call, &state->granularity, err);
}

/* ---- Integers of 8 and 16 bits: kernels --------------------------------------------------------------- */

static bool has_kernel(dq_dtype y)
{
    return y == DQ_UINT8 || y == DQ_INT8 || y == DQ_UINT16 || y == DQ_INT16;
}

#define KERNEL_ROW(slot, type)                                                                               \
    job->kernels->slot(x, run->length, scale, job->zero ? dq_data(job->zero, type) + run->scale : NULL,      \
                       run->step, dq_data(job->y, type) + first)

/* x and `scale` point to the segment's elements and scales. */
static void kernel_row(const quantize_job *job, size_t first, const dq_scale_segment *run, const float *x,
                       const float *scale)
{
    switch (job->y->dtype) {
    case DQ_UINT8:
        KERNEL_ROW(quantize_f32_u8, uint8_t);
        return;
    case DQ_INT8:
        KERNEL_ROW(quantize_f32_s8, int8_t);
        return;
    case DQ_UINT16:
        KERNEL_ROW(quantize_f32_u16, uint16_t);
        return;
    default:
        KERNEL_ROW(quantize_f32_s16, int16_t);
        return;
    }
}

/* ---- Division in float, float16 or bfloat16: through float --------------------------------------------- */

/* Rounds values to a type, in place, as floats. */
static void round_floats(const dq_kernels *k, dq_dtype dtype, size_t n, float *values)
{
    uint16_t halves[DQ_ROW];
    if (dtype == DQ_FLOAT)
        return;
    dq_store_from_floats(k, dtype, halves, 0, n, values, false);
    dq_load_floats(k, dtype, halves, 0, n, values);
}

/* Loads an operand of the division in its precision. int32 occurs here only with precision float, so it is
 * rounded once. */
static void load_operand(const quantize_job *job, const dq_tensor *t, size_t first, size_t n, float *out)
{
    if (t->dtype == DQ_INT32) {
        for (size_t i = 0; i < n; i++)
            out[i] = (float)dq_data(t, int32_t)[first + i];
        return;
    }
    dq_load_floats(job->kernels, t->dtype, t->data, first, n, out);
    if (t->dtype != job->state->precision)
        round_floats(job->kernels, job->state->precision, n, out);
}

/* Quantizes to 4- or 2-bit integers through int8; its saturation cannot change the result. */
static void store_packed(const quantize_job *job, size_t first, const dq_scale_segment *run,
                         const float *quotient)
{
    static const float one = 1.0f;
    const dq_dtype_row *row = dq_dtype_get(job->y->dtype);
    int8_t out[DQ_ROW], zero[DQ_ROW] = {0};
    size_t n = run->length, step = run->step;
    job->kernels->quantize_f32_s8(quotient, n, &one, NULL, 0, out);
    if (job->zero)
        dq_load_packed(job->zero->dtype, job->zero->data, run->scale, step ? n : 1, zero);
    for (size_t i = 1; i < n && step == 0; i++)
        zero[i] = zero[0];
    int16_t least = (int16_t)row->min, most = (int16_t)row->max;
    for (size_t i = 0; i < n; i++) {
        int16_t sum = (int16_t)(out[i] + zero[i]);
        sum = sum > least ? sum : least;
        out[i] = (int8_t)(sum < most ? sum : most);
    }
    dq_store_packed(job->y->dtype, job->y->data, first, n, out);
}

static void store_small_floats(const quantize_job *job, size_t first, const dq_scale_segment *run,
                               float *quotient)
{
    float zero[DQ_ROW];
    if (job->zero) {
        dq_load_floats(job->kernels, job->zero->dtype, job->zero->data, run->scale,
                       run->step ? run->length : 1, zero);
        for (size_t i = 0; i < run->length && (run->step || zero[0] != 0); i++)
            if (zero[i * run->step] != 0)
                quotient[i] += zero[i * run->step];
    }
    dq_store_from_floats(job->kernels, job->y->dtype, job->y->data, first, run->length, quotient,
                         job->state->saturate);
}

/* Quantizes a segment of at most DQ_ROW elements. A quotient of two numbers of p bits, rounded to 24 bits
 * (float) and then to p, equals the one rounded once if 24 >= 2 * p + 2: float16 has p = 11, bfloat16 8. */
static void float_row(const quantize_job *job, size_t first, const dq_scale_segment *run)
{
    float x[DQ_ROW], scale[DQ_ROW];
    size_t n = run->length;
    load_operand(job, job->x, first, n, x);
    load_operand(job, job->scale, run->scale, run->step ? n : 1, scale);
    job->kernels->rows_f32->div(x, 1, scale, run->step, n, x);
    round_floats(job->kernels, job->state->precision, n, x);
    if (dq_dtype_is_float(job->y->dtype)) {
        store_small_floats(job, first, run, x);
    } else if (dq_dtype_is_packed(job->y->dtype)) {
        store_packed(job, first, run, x);
    } else {
        for (size_t i = 0; i < n; i++)
            scale[i] = 1.0f;
        kernel_row(job, first, run, x, scale);
    }
}

/* ---- All other types: through double ------------------------------------------------------------------ */

/* Rounds values to a type, in place, as doubles. */
static void round_doubles(dq_dtype dtype, size_t n, double *values)
{
    if (dtype == DQ_FLOAT16 || dtype == DQ_BFLOAT16)
        for (size_t i = 0; i < n; i++)
            values[i] = (double)dq_decode_float(
                dtype, dq_encode_float(dtype, dq_round_to_odd(values[i]), false, DQ_ROUND_NEAREST));
}

static void store_integers(const quantize_job *job, size_t first, size_t n, const double *quotient,
                           const double *zero)
{
    const dq_dtype_row *row = dq_dtype_get(job->y->dtype);
    int64_t out[DQ_ROW];
    for (size_t i = 0; i < n; i++) {
        double low = (double)row->min - zero[i], high = (double)row->max - zero[i];
        double q = quotient[i] > low ? quotient[i] : low; /* NaN gives `low`, too */
        q = q < high ? q : high;
        out[i] = (int64_t)(nearbyint(q) + zero[i]);
    }
    dq_store_ints(job->y->dtype, job->y->data, first, n, out);
}

static void store_doubles(const quantize_job *job, size_t first, size_t n, double *quotient,
                          const double *zero)
{
    for (size_t i = 0; i < n; i++)
        if (zero[i] != 0)
            quotient[i] += zero[i];
    dq_store_floats(job->y->dtype, job->y->data, first, n, quotient, job->state->saturate, DQ_ROUND_NEAREST);
}

/* Quantizes a segment of at most DQ_ROW elements: int32 x, or a division in double, or the exact ratio. The
 * argument of float_row holds for double's 53 bits. The ratio of two int32 is either a half or so far from
 * every half that 53 bits decide its side. */
static void double_row(const quantize_job *job, size_t first, const dq_scale_segment *run)
{
    double x[DQ_ROW], scale[DQ_ROW], zero[DQ_ROW] = {0};
    dq_dtype precision = job->state->precision;
    size_t n = run->length;
    dq_load_doubles(job->x->dtype, job->x->data, first, n, x);
    dq_scale_segment_load(job->scale, run, n, scale);
    if (job->zero)
        dq_scale_segment_load(job->zero, run, n, zero);
    round_doubles(precision, n, x);
    round_doubles(precision, n, scale);
    for (size_t i = 0; i < n; i++)
        x[i] /= scale[i];
    round_doubles(precision, n, x);
    if (dq_dtype_is_float(job->y->dtype))
        store_doubles(job, first, n, x, zero);
    else
        store_integers(job, first, n, x, zero);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* Whether one kernel call quantizes whole segments from x to y; other types take DQ_ROW elements at a time.
 */
static bool is_direct(const quantize_job *job)
{
    return job->x->dtype == DQ_FLOAT && job->scale->dtype == DQ_FLOAT && job->state->precision == DQ_FLOAT &&
           has_kernel(job->y->dtype);
}

static void quantize_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const quantize_job *job = arg;
    dq_dtype precision = job->state->precision;
    bool direct = is_direct(job), doubles = precision == DQ_DOUBLE || precision == DQ_INT32;
    if (job->x->dtype == DQ_INT32 || job->scale->dtype == DQ_INT32)
        doubles = doubles || precision != DQ_FLOAT;
    if (!direct)
        dq_clear_elements(job->y->dtype, job->y->data, begin, end);
    dq_scale_segment run = {0};
    for (size_t first = begin; first < end; first += run.length) {
        size_t axis_end = direct || end - first < DQ_ROW ? end : first + DQ_ROW;
        if (first == begin)
            run = dq_granularity_segment(&job->state->granularity, first, axis_end);
        else
            dq_granularity_next(&job->state->granularity, first, axis_end, &run);
        if (direct)
            kernel_row(job, first, &run, dq_data(job->x, float) + first,
                       dq_data(job->scale, float) + run.scale);
        else if (doubles)
            double_row(job, first, &run);
        else
            float_row(job, first, &run);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0])
        return DQ_OK;
    quantize_job job = {.state = call->state,
                        .kernels = call->kernels,
                        .x = call->in[0],
                        .scale = call->in[1],
                        .zero = dq_call_in(call, 2),
                        .y = call->out[0]};
    dq_parallel(call->threads, job.x->count, dq_row_grain(job.x->count), quantize_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_quantize_linear = {infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
