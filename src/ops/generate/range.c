/* SPDX-License-Identifier: Apache-2.0 */
/* Range: start, start + delta, start + 2 delta … below limit. Floats are computed in their own type (float16
 * and bfloat16 in float), each from its index, so that errors do not accumulate. */
#include "ops/op.h"
#include "ops/rows.h"

#include <math.h>

enum { START, LIMIT, DELTA };

static dq_status too_long(const dq_op_call *call, dq_error *err)
{
    return dq_call_fail(call, err, DQ_BAD_MODEL, "has more elements than a tensor can hold");
}

static dq_status count_floats(const dq_op_call *call, int64_t *count, dq_error *err)
{
    double start = dq_tensor_get_double(call->in[START], 0), limit = dq_tensor_get_double(call->in[LIMIT], 0);
    double n = ceil((limit - start) / dq_tensor_get_double(call->in[DELTA], 0));
    if (isnan(n) || n >= 9223372036854775808.0)
        return too_long(call, err);
    *count = n > 0 ? (int64_t)n : 0;
    return DQ_OK;
}

static dq_status count_integers(const dq_op_call *call, int64_t *count, dq_error *err)
{
    int64_t start = dq_tensor_get_int(call->in[START], 0), limit = dq_tensor_get_int(call->in[LIMIT], 0);
    int64_t delta = dq_tensor_get_int(call->in[DELTA], 0);
    if (delta == 0)
        return dq_call_fail_input(call, err, DELTA, "is 0");
    bool up = delta > 0;
    *count = 0;
    if (up ? start >= limit : start <= limit)
        return DQ_OK;
    /* Differences of 64-bit numbers fit in unsigned ones. */
    uint64_t span = up ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = up ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t n = (span - 1) / step + 1;
    if (n > INT64_MAX)
        return too_long(call, err);
    *count = (int64_t)n;
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    for (uint32_t i = START; i <= DELTA; i++) {
        if (call->in[i]->count != 1)
            return dq_call_fail_input(call, err, i, "has %zu elements, expected a scalar",
                                      call->in[i]->count);
        DQ_TRY(dq_call_need(call, i));
    }
    int64_t count = 0;
    if (dq_dtype_is_float(call->in[START]->dtype))
        DQ_TRY(count_floats(call, &count, err));
    else
        DQ_TRY(count_integers(call, &count, err));
    return dq_call_output(call, 0, call->in[START]->dtype, 1, &count, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_tensor *out = call->out[0];
    const dq_tensor *start = call->in[START], *delta = call->in[DELTA];
    if (out->dtype == DQ_DOUBLE) {
        double first = *dq_data(start, double), step = *dq_data(delta, double);
        for (size_t i = 0; i < out->count; i++)
            dq_data(out, double)[i] = first + (double)i * step;
    } else if (dq_dtype_is_float(out->dtype)) {
        float first = (float)dq_tensor_get_double(start, 0), step = (float)dq_tensor_get_double(delta, 0);
        for (size_t i = 0, n; i < out->count; i += n) {
            float row[DQ_ROW];
            n = out->count - i < DQ_ROW ? out->count - i : DQ_ROW;
            for (size_t k = 0; k < n; k++)
                row[k] = first + (float)(int64_t)(i + k) * step;
            dq_store_from_floats(call->kernels, out->dtype, out->data, i, n, row, true);
        }
    } else {
        uint64_t next = (uint64_t)dq_tensor_get_int(start, 0), step = (uint64_t)dq_tensor_get_int(delta, 0);
        for (size_t i = 0, n; i < out->count; i += n) {
            int64_t row[DQ_ROW];
            n = out->count - i < DQ_ROW ? out->count - i : DQ_ROW;
            for (size_t k = 0; k < n; k++, next += step)
                row[k] = (int64_t)next;
            dq_store_ints(out->dtype, out->data, i, n, row);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_range = {infer, NULL, run, 0};
