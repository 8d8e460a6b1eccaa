/* SPDX-License-Identifier: Apache-2.0 */
/* Clip: the bounds are attributes (before opset 11) or optional inputs of one element. If the lower bound
 * exceeds the upper one, the result is the upper one; NaN stays NaN. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

#define CLIP(name, T)                                                                                        \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *params)                                                             \
    {                                                                                                        \
        (void)params;                                                                                        \
        (void)step;                                                                                          \
        const T *x = in[0], low = *(const T *)in[1], high = *(const T *)in[2];                               \
        T *y = out;                                                                                          \
        DQ_EW_SIDE_BY_SIDE                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                     \
            T raised = x[i] < low ? low : x[i];                                                              \
            y[i] = raised > high ? high : raised;                                                            \
        }                                                                                                    \
    }

CLIP(clip_u8, uint8_t)
CLIP(clip_i8, int8_t)
CLIP(clip_u16, uint16_t)
CLIP(clip_i16, int16_t)
CLIP(clip_u32, uint32_t)
CLIP(clip_i32, int32_t)
CLIP(clip_u64, uint64_t)
CLIP(clip_i64, int64_t)
DQ_EW_ROW(clip_f32, clip(in[0], n, *(const float *)in[1], *(const float *)in[2], out))
CLIP(clip_f64, double)
static const dq_ew_table table = {.fn = {[DQ_UINT8] = clip_u8,
                                         [DQ_INT8] = clip_i8,
                                         [DQ_UINT16] = clip_u16,
                                         [DQ_INT16] = clip_i16,
                                         [DQ_UINT32] = clip_u32,
                                         [DQ_INT32] = clip_i32,
                                         [DQ_UINT64] = clip_u64,
                                         [DQ_INT64] = clip_i64,
                                         [DQ_FLOAT] = clip_f32,
                                         [DQ_DOUBLE] = clip_f64},
                                  .steps = UINT32_MAX};

static dq_status infer(dq_op_call *call, dq_error *err)
{
    for (uint32_t i = 1; i < 3; i++) {
        const dq_tensor *limit = dq_call_in(call, i);
        if (limit && limit->count != 1)
            return dq_call_fail_input(call, err, i, "has %zu elements, expected a scalar", limit->count);
    }
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

/* Makes a constant for a bound without input: from the attribute, or the limit of the type's range (infinity
 * for floats). */
static dq_status stand_in(dq_op_call *call, const char *attribute, bool high, dq_tensor **out, dq_error *err)
{
    dq_dtype dtype = call->in[0]->dtype;
    DQ_TRY(dq_tensor_new(call->arena, dtype, 0, NULL, 0, out, err));
    const dq_dtype_row *row = dq_dtype_get(dtype);
    const dq_attr *attr = dq_node_attr(call->node, attribute);
    float value = attr ? attr->u.f : high ? INFINITY : -INFINITY;
    if (row->cls == DQ_CLASS_FLOAT)
        dq_tensor_put_double(*out, 0, (double)value);
    else
        dq_tensor_put_int(*out, 0, !high ? row->min : dtype == DQ_UINT64 ? -1 : row->max);
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    dq_tensor *limits[2];
    const dq_tensor *fixed[3] = {NULL, NULL, NULL};
    static const char *const attributes[2] = {"min", "max"};
    for (uint32_t i = 0; i < 2; i++) {
        if (dq_call_in(call, i + 1))
            continue;
        DQ_TRY(stand_in(call, attributes[i], i == 1, &limits[i], err));
        fixed[i + 1] = limits[i];
    }
    return dq_ew_prepare(call, &table, fixed, 3, err);
}

const dq_op_impl dq_op_clip = {infer, prepare, dq_ew_run, DQ_OP_IN_PLACE | DQ_OP_BATCH_SEPARABLE_ALL};

const dq_ew_named dq_ew_clip_named[] = {{"Clip", clip_f32, 3}, {NULL, NULL, 0}};
