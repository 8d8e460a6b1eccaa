/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN Graph's Quantize, Dequantize, DynamicQuantize and DynamicDequantize, as operators of domain
 * `onednn`: dst = saturate(round(src / scale + zp)), and dst = (src - zp) * scale.
 *
 * The zero point is added before rounding (to nearest, ties to even), unlike in ONNX's QuantizeLinear.
 * Quotient and sum are computed in double, so that the result is the formula's. NaN gives the type's minimum.
 * Scales and zero points are attributes, or inputs of the dynamic operators: one for all, or with `qtype`
 * per_channel one for each index of `axis`. The type of a quantized result is the one that the graph declares
 * for the value. */
#include "ops/op.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SRC, SCALES, ZPS };

typedef struct params {
    size_t count, inner; /* number of scales; elements from one index of the axis to the next */
    const float *scales; /* of the static operators */
    const int64_t *zps;  /* NULL: zeros */
    bool dynamic;
} params;

static dq_status check_count(const dq_op_call *call, const char *what, size_t got, size_t expected,
                             dq_error *err)
{
    if (got == expected)
        return DQ_OK;
    return dq_call_fail(call, err, DQ_BAD_MODEL, "has %zu %s, expected %zu", got, what, expected);
}

/* Reads the number of scales and the stride of the axis. */
static dq_status read_axis(const dq_op_call *call, params *p, dq_error *err)
{
    const dq_tensor *src = call->in[SRC];
    const char *qtype = dq_node_string(call->node, "qtype", "per_tensor");
    int64_t value = dq_node_int(call->node, "axis", 1);
    size_t axis;
    p->count = 1;
    p->inner = src->count ? src->count : 1;
    if (strcmp(qtype, "per_tensor") == 0)
        return DQ_OK;
    if (strcmp(qtype, "per_channel") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'qtype' is '%s', expected per_tensor or per_channel", qtype);
    if (!dq_axis(value, src->rank, &axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'axis' is %" PRId64 ", expected %d to %d",
                            value, -(int)src->rank, (int)src->rank - 1);
    p->count = (size_t)src->dims[axis];
    p->inner = dq_dims_product(src->dims, axis + 1, src->rank);
    return DQ_OK;
}

static dq_status read_static(const dq_op_call *call, params *p, dq_error *err)
{
    const dq_attr *scales = dq_node_attr(call->node, "scales"), *zps = dq_node_attr(call->node, "zps");
    DQ_TRY(read_axis(call, p, err));
    DQ_TRY(check_count(call, "scales", scales ? scales->count : 0, p->count, err));
    p->scales = scales ? scales->u.floats : NULL;
    if (!zps || zps->count == 0)
        return DQ_OK;
    p->zps = zps->u.ints;
    return check_count(call, "zps", zps->count, p->count, err);
}

static dq_status read_dynamic(const dq_op_call *call, params *p, dq_error *err)
{
    const dq_tensor *zps = dq_call_in(call, ZPS);
    p->dynamic = true;
    DQ_TRY(read_axis(call, p, err));
    if (call->in[SCALES]->rank > 1)
        return dq_call_fail_input(call, err, SCALES, "has rank %u, expected a vector",
                                  call->in[SCALES]->rank);
    DQ_TRY(check_count(call, "scales", call->in[SCALES]->count, p->count, err));
    return zps ? check_count(call, "zps", zps->count, p->count, err) : DQ_OK;
}

static dq_status read(const dq_op_call *call, params *p, dq_error *err)
{
    return call->in_count > 1 ? read_dynamic(call, p, err) : read_static(call, p, err);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status infer_quantize(dq_op_call *call, dq_error *err)
{
    params p = {0};
    const dq_value *out = call->node->out[0];
    dq_dtype dtype = out ? out->type.dtype : DQ_UNDEFINED;
    DQ_TRY(read(call, &p, err));
    if (dtype != DQ_INT8 && dtype != DQ_UINT8)
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "output 0 'dst' is declared %s in the graph, expected int8 or uint8, which is its only say "
            "in the type",
            dq_dtype_name(dtype));
    return dq_call_output_like(call, 0, dtype, call->in[SRC], err);
}

static dq_status infer_dequantize(dq_op_call *call, dq_error *err)
{
    params p = {0};
    DQ_TRY(read(call, &p, err));
    return dq_call_output_like(call, 0, DQ_FLOAT, call->in[SRC], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(params), err));
    return read(call, call->state, err);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

static float scale_of(const dq_op_call *call, const params *p, size_t i)
{
    return p->dynamic ? dq_data(call->in[SCALES], float)[i] : p->scales[i];
}

static int64_t zero_of(const dq_op_call *call, const params *p, size_t i)
{
    const dq_tensor *zps = p->dynamic ? dq_call_in(call, ZPS) : NULL;
    return zps ? dq_tensor_get_int(zps, i) : p->zps ? p->zps[i] : 0;
}

static void quantize_row(const dq_op_call *call, size_t first, size_t n, float scale, int64_t zero)
{
    const float *src = dq_data(call->in[SRC], float) + first;
    dq_dtype dtype = call->out[0]->dtype;
    const dq_dtype_row *row = dq_dtype_get(dtype);
    uint8_t *dst = dq_data(call->out[0], uint8_t) + first;
    for (size_t i = 0; i < n; i++) {
        double v = rint((double)src[i] / (double)scale + (double)zero);
        v = v > (double)row->min ? v : (double)row->min; /* NaN gives the minimum, too */
        v = v < (double)row->max ? v : (double)row->max;
        dst[i] = (uint8_t)(int)v;
    }
}

static void dequantize_row(const dq_op_call *call, size_t first, size_t n, float scale, int64_t zero)
{
    float *dst = dq_data(call->out[0], float) + first;
    int64_t qvalues[DQ_ROW];
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < DQ_ROW ? n - done : DQ_ROW;
        dq_load_ints(call->in[SRC]->dtype, call->in[SRC]->data, first + done, count, qvalues);
        for (size_t i = 0; i < count; i++)
            dst[done + i] = (float)(qvalues[i] - zero) * scale;
    }
}

/* Elements [begin, end), in segments of one scale. */
static void run_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = arg;
    const params *p = call->state;
    for (size_t first = begin, n; first < end; first += n) {
        size_t channel = first / p->inner % p->count;
        n = p->inner - first % p->inner;
        n = n < end - first ? n : end - first;
        float scale = scale_of(call, p, channel);
        int64_t zero = zero_of(call, p, channel);
        if (call->out[0]->dtype == DQ_FLOAT)
            dequantize_row(call, first, n, scale, zero);
        else
            quantize_row(call, first, n, scale, zero);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->out[0])
        dq_parallel(call->threads, call->out[0]->count, 16384, run_range, (void *)(uintptr_t)call);
    return DQ_OK;
}

const dq_op_impl dq_op_onednn_quantize = {infer_quantize, prepare, run, 0};
const dq_op_impl dq_op_onednn_dequantize = {infer_dequantize, prepare, run, 0};
