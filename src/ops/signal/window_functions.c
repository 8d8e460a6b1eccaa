/* SPDX-License-Identifier: Apache-2.0 */
/* HannWindow, HammingWindow, BlackmanWindow: sums of cosines over one period, or up to its end (symmetric).
 * MelWeightMatrix: triangular filters on the mel scale. */
#include "base/math.h"
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>

static dq_status scalar(const dq_op_call *call, uint32_t i, dq_error *err)
{
    if (call->in[i]->count != 1)
        return dq_call_fail_input(call, err, i, "has %zu elements, expected a scalar", call->in[i]->count);
    return dq_call_need(call, i);
}

static dq_status read_type(const dq_op_call *call, dq_dtype *out, dq_error *err)
{
    int64_t value = dq_node_int(call->node, "output_datatype", DQ_FLOAT);
    if (!dq_dtype_valid(value))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'output_datatype' is %" PRId64 ", which is no type", value);
    *out = (dq_dtype)value;
    return DQ_OK;
}

/* ---- Windows ------------------------------------------------------------------------------------------- */

static dq_status window_infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = DQ_FLOAT;
    DQ_TRY(scalar(call, 0, err));
    DQ_TRY(read_type(call, &dtype, err));
    int64_t size = dq_tensor_get_int(call->in[0], 0);
    if (size < 0)
        return dq_call_fail_input(call, err, 0, "is %" PRId64 ", expected a length", size);
    return dq_call_output(call, 0, dtype, 1, &size, err);
}

/* a0 - a1 cos(x) + a2 cos(2x) */
static dq_status window_run(const dq_op_call *call, double a0, double a1, double a2)
{
    static const double two_pi = 6.283185307179586;
    dq_tensor *out = call->out[0];
    size_t period = dq_node_int(call->node, "periodic", 1) ? out->count : out->count - 1;
    for (size_t i = 0; i < out->count; i++) {
        /* A single sample is the middle. */
        double x = period ? two_pi * (double)i / (double)period : two_pi / 2;
        dq_tensor_put_double(out, i, a0 - a1 * dq_cos(x) + a2 * dq_cos(2 * x));
    }
    return DQ_OK;
}

#define WINDOW(name, a0, a1, a2)                                                                             \
    static dq_status name##_run(const dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        (void)err;                                                                                           \
        return window_run(call, a0, a1, a2);                                                                 \
    }                                                                                                        \
    const dq_op_impl dq_op_##name##_window = {window_infer, NULL, name##_run, 0};

WINDOW(hann, 0.5, 0.5, 0)
WINDOW(hamming, 25.0 / 46.0, 21.0 / 46.0, 0)
WINDOW(blackman, 0.42, 0.5, 0.08)

/* ---- MelWeightMatrix ----------------------------------------------------------------------------------- */

enum { BINS, LENGTH, RATE, LOWER, UPPER };

static dq_status mel_infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = DQ_FLOAT;
    for (uint32_t i = BINS; i <= UPPER; i++)
        DQ_TRY(scalar(call, i, err));
    DQ_TRY(read_type(call, &dtype, err));
    int64_t bins = dq_tensor_get_int(call->in[BINS], 0), length = dq_tensor_get_int(call->in[LENGTH], 0);
    int64_t rate = dq_tensor_get_int(call->in[RATE], 0);
    double lower = dq_tensor_get_double(call->in[LOWER], 0), upper = dq_tensor_get_double(call->in[UPPER], 0);
    if (bins < 0 || length < 0 || rate < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has %" PRId64 " bins, a transform of %" PRId64 " and a rate of %" PRId64, bins,
                            length, rate);
    if (!(lower >= 0 && upper >= lower && upper <= 1e12))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has frequencies from %g to %g", lower, upper);
    int64_t dims[2] = {length / 2 + 1, bins};
    return dq_call_output(call, 0, dtype, 2, dims, err);
}

/* Mel scale: 2595 log10(1 + hertz / 700). */
static double mel(double hertz)
{
    return 2595 * dq_log1p(hertz / 700) / 2.302585092994046;
}

static dq_status mel_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_tensor *out = call->out[0];
    size_t rows = (size_t)out->dims[0], bins = (size_t)out->dims[1];
    double length = dq_tensor_get_double(call->in[LENGTH], 0), rate = dq_tensor_get_double(call->in[RATE], 0);
    double low = mel(dq_tensor_get_double(call->in[LOWER], 0));
    double step = (mel(dq_tensor_get_double(call->in[UPPER], 0)) - low) / (double)(bins + 2);
    for (size_t bin = 0; bin < bins; bin++) {
        double edge[3]; /* begin, peak and end of the triangle, in bins of the transform */
        for (size_t k = 0; k < 3; k++) {
            double hertz = 700 * dq_expm1(((double)(bin + k) * step + low) / 2595 * 2.302585092994046);
            edge[k] = floor((length + 1) * hertz / rate);
        }
        for (size_t row = 0; row < rows; row++) {
            double x = (double)row, y = 0;
            if (x == edge[1])
                y = 1;
            else if (x >= edge[0] && x < edge[1])
                y = (x - edge[0]) / (edge[1] - edge[0]);
            else if (x > edge[1] && x < edge[2])
                y = (edge[2] - x) / (edge[2] - edge[1]);
            dq_tensor_put_double(out, row * bins + bin, y);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_mel_weight_matrix = {mel_infer, NULL, mel_run, 0};
