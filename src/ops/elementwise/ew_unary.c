/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one operand: arithmetic, rounding, elementary functions, activations. Elementary functions
 * that networks commonly use are kernels for float; the others are those of base/math.h. float16 and bfloat16
 * are computed in float and rounded once. */
#include "base/math.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/elementwise.h"

#include <math.h>
#include <string.h>

/* Defines a float and a double kernel, their table, and an operator of nothing else. */
#define FLOATS(name, f32, f64)                                                                               \
    DQ_EW_UNARY(name##_f32, float, float, f32)                                                               \
    DQ_EW_UNARY(name##_f64, double, double, f64)
#define FLOAT_ROWS(name) [DQ_FLOAT] = name##_f32, [DQ_DOUBLE] = name##_f64
#define FLOAT_OP(name, f32, f64)                                                                             \
    FLOATS(name, f32, f64)                                                                                   \
    static const dq_ew_table name##_table = {.fn = {FLOAT_ROWS(name)}};                                      \
    DQ_EW_OP(dq_op_##name, name##_table);
/* The same with a member of dq_rows_f32 as the float kernel. */
#define ROW_OP(name, f64)                                                                                    \
    DQ_EW_ROW_MAP(name##_f32, name)                                                                          \
    OP_OVER(name, f64)
#define OP_OVER(name, f64)                                                                                   \
    DQ_EW_UNARY(name##_f64, double, double, f64)                                                             \
    static const dq_ew_table name##_table = {.fn = {FLOAT_ROWS(name)}};                                      \
    DQ_EW_OP(dq_op_##name, name##_table);
#define ROW_OP_WITH(name, member, reader, f64)                                                               \
    DQ_EW_ROW_MAP1(name##_f32, member)                                                                       \
    DQ_EW_UNARY(name##_f64, double, double, f64)                                                             \
    static const dq_ew_table name##_table = {.fn = {FLOAT_ROWS(name)}, .params = reader};                    \
    DQ_EW_OP(dq_op_##name, name##_table);
#define FLOAT_OP_WITH(name, reader, f32, f64)                                                                \
    FLOATS(name, f32, f64)                                                                                   \
    static const dq_ew_table name##_table = {.fn = {FLOAT_ROWS(name)}, .params = reader};                    \
    DQ_EW_OP(dq_op_##name, name##_table);
#define SIGNED(name, expr)                                                                                   \
    DQ_EW_UNARY(name##_i8, int8_t, int8_t, expr)                                                             \
    DQ_EW_UNARY(name##_i16, int16_t, int16_t, expr)                                                          \
    DQ_EW_UNARY(name##_i32, int32_t, int32_t, expr)                                                          \
    DQ_EW_UNARY(name##_i64, int64_t, int64_t, expr)
#define SIGNED_ROWS(name)                                                                                    \
    [DQ_INT8] = name##_i8, [DQ_INT16] = name##_i16, [DQ_INT32] = name##_i32, [DQ_INT64] = name##_i64
#define UNSIGNED(name, expr)                                                                                 \
    DQ_EW_UNARY(name##_u8, uint8_t, uint8_t, expr)                                                           \
    DQ_EW_UNARY(name##_u16, uint16_t, uint16_t, expr)                                                        \
    DQ_EW_UNARY(name##_u32, uint32_t, uint32_t, expr)                                                        \
    DQ_EW_UNARY(name##_u64, uint64_t, uint64_t, expr)
#define UNSIGNED_ROWS(name)                                                                                  \
    [DQ_UINT8] = name##_u8, [DQ_UINT16] = name##_u16, [DQ_UINT32] = name##_u32, [DQ_UINT64] = name##_u64

/* ---- Also for integers; the lowest number is its own negative and absolute value ----------------------- */

FLOATS(abs, fabsf(a), fabs(a))
SIGNED(abs, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
UNSIGNED(abs, a)
static const dq_ew_table abs_table = {.fn = {FLOAT_ROWS(abs), SIGNED_ROWS(abs), UNSIGNED_ROWS(abs)}};
DQ_EW_OP(dq_op_abs, abs_table);

FLOATS(neg, -a, -a)
SIGNED(neg, 0 - (uint64_t)a)
static const dq_ew_table neg_table = {.fn = {FLOAT_ROWS(neg), SIGNED_ROWS(neg)}};
DQ_EW_OP(dq_op_neg, neg_table);

/* NaN stays NaN */
FLOATS(sign, a > 0 ? 1 : a < 0 ? -1 : a, a > 0 ? 1 : a < 0 ? -1 : a)
SIGNED(sign, (a > 0) - (a < 0))
UNSIGNED(sign, a > 0)
static const dq_ew_table sign_table = {.fn = {FLOAT_ROWS(sign), SIGNED_ROWS(sign), UNSIGNED_ROWS(sign)}};
DQ_EW_OP(dq_op_sign, sign_table);

DQ_EW_ROW(relu_f32, clip(in[0], n, 0, INFINITY, out))
DQ_EW_UNARY(relu_f64, double, double, a < 0 ? 0 : a)
SIGNED(relu, a < 0 ? 0 : a)
static const dq_ew_table relu_table = {.fn = {FLOAT_ROWS(relu), SIGNED_ROWS(relu)}};
DQ_EW_OP(dq_op_relu, relu_table);

UNSIGNED(bit_not, ~a)
static const dq_ew_table bit_not_table = {
    .fn = {UNSIGNED_ROWS(bit_not), [DQ_INT8] = bit_not_u8, [DQ_INT16] = bit_not_u16, [DQ_INT32] = bit_not_u32,
           [DQ_INT64] = bit_not_u64}};
DQ_EW_OP(dq_op_bitwise_not, bit_not_table);

/* ---- Roots, rounding, elementary functions ------------------------------------------------------------- */

FLOAT_OP(sqrt, sqrtf(a), sqrt(a))
FLOAT_OP(reciprocal, 1 / a, 1 / a)
DQ_EW_ROW(floor_f32, floor(in[0], n, 0.0f, out))
DQ_EW_ROW(ceil_f32, floor(in[0], n, -0.0f, out))
OP_OVER(floor, floor(a))
OP_OVER(ceil, ceil(a))
ROW_OP(round, rint(a))
ROW_OP(exp, dq_exp(a))
ROW_OP(log, dq_log(a))
ROW_OP(erf, dq_erf(a))
ROW_OP(sin, dq_sin(a))
ROW_OP(cos, dq_cos(a))
FLOAT_OP(tan, dq_tanf(a), dq_tan(a))
ROW_OP(asin, dq_asin(a))
ROW_OP(acos, dq_acos(a))
ROW_OP(atan, dq_atan(a))
FLOAT_OP(sinh, dq_sinhf(a), dq_sinh(a))
FLOAT_OP(cosh, dq_coshf(a), dq_cosh(a))
ROW_OP(tanh, dq_tanh(a))
FLOAT_OP(asinh, dq_asinhf(a), dq_asinh(a))
FLOAT_OP(acosh, dq_acoshf(a), dq_acosh(a))
FLOAT_OP(atanh, dq_atanhf(a), dq_atanh(a))

/* ---- Activations --------------------------------------------------------------------------------------- */

static dq_status read_alpha(dq_op_call *call, dq_ew_params *params, dq_error *err)
{
    (void)err;
    params->alpha = (double)dq_node_float(call->node, "alpha", 1);
    params->beta = (double)dq_node_float(call->node, "beta", 0.5f);
    params->gamma = (double)dq_node_float(call->node, "gamma", 1);
    return DQ_OK;
}
#define ALPHA ((float)params->alpha)
#define BETA ((float)params->beta)
#define GAMMA ((float)params->gamma)

/* The exponent is never positive, so that exp does not overflow. */
static double sigmoid_of_f64(double x)
{
    double e = dq_exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* log(1 + exp(x)), without overflow. */
static double softplus_of_f64(double x)
{
    return (x > 0 ? x : 0) + dq_log1p(dq_exp(-fabs(x)));
}

/* Clamps x to [0, 1]; NaN stays NaN. */
static double unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

ROW_OP(sigmoid, sigmoid_of_f64(a))
ROW_OP(softplus, softplus_of_f64(a))
FLOAT_OP(softsign, a / (1 + fabsf(a)), a / (1 + fabs(a)))
ROW_OP(hard_swish, a *unit(a / 6 + 0.5))
ROW_OP(mish, a *dq_tanh(softplus_of_f64(a)))
/* x < 0 ? x * slope : x, selected by masks. Compilers would branch for the floats, and random signs
 * mispredict half of the branches. */
static float leaky(float x, float slope)
{
    float product = x * slope;
    uint32_t plain, scaled, mask;
    memcpy(&plain, &x, sizeof plain);
    memcpy(&scaled, &product, sizeof scaled);
    mask = -(uint32_t)(plain > 0x80000000U); /* -0 is not less than 0 */
    plain = (scaled & mask) | (plain & ~mask);
    memcpy(&x, &plain, sizeof x);
    return x;
}

static void leaky_relu_f32(void *out, const void *const in[], const size_t step[], size_t n,
                           const dq_ew_params *params)
{
    (void)step;
    const float *x = in[0], alpha = (float)params->alpha;
    float *y = out;
    for (size_t i = 0; i < n; i++)
        y[i] = leaky(x[i], alpha);
}
DQ_EW_UNARY(leaky_relu_f64, double, double, a < 0 ? params->alpha * a : a)
static const dq_ew_table leaky_relu_table = {.fn = {FLOAT_ROWS(leaky_relu)}, .params = read_alpha};
DQ_EW_OP(dq_op_leaky_relu, leaky_relu_table);
FLOAT_OP_WITH(thresholded_relu, read_alpha, a > ALPHA ? a : 0, a > params->alpha ? a : 0)
DQ_EW_ROW(hard_sigmoid_f32, hard_sigmoid(in[0], n, ALPHA, BETA, out))
DQ_EW_UNARY(hard_sigmoid_f64, double, double, unit(params->alpha *a + params->beta))
static const dq_ew_table hard_sigmoid_table = {.fn = {FLOAT_ROWS(hard_sigmoid)}, .params = read_alpha};
DQ_EW_OP(dq_op_hard_sigmoid, hard_sigmoid_table);
ROW_OP_WITH(elu, elu, read_alpha, a < 0 ? params->alpha * dq_expm1(a) : a)

static void selu_f32(void *out, const void *const in[], const size_t step[], size_t n,
                     const dq_ew_params *params)
{
    (void)step;
    params->rows->elu(in[0], n, ALPHA, out);
    params->rows->scale(out, n, GAMMA, out);
}
DQ_EW_UNARY(selu_f64, double, double, params->gamma *(a < 0 ? params->alpha * dq_expm1(a) : a))
static const dq_ew_table selu_table = {.fn = {FLOAT_ROWS(selu)}, .params = read_alpha};
DQ_EW_OP(dq_op_selu, selu_table);

/* a < 0 ? alpha * (exp(a / alpha) - 1) : a */
static void celu_f32(void *out, const void *const in[], const size_t step[], size_t n,
                     const dq_ew_params *params)
{
    enum { BLOCK = 256 };
    float block[BLOCK], *y = out;
    (void)step;
    for (size_t i = 0; i < n; i += BLOCK) {
        const float *x = (const float *)in[0] + i;
        size_t count = n - i < BLOCK ? n - i : BLOCK;
        for (size_t k = 0; k < count; k++)
            block[k] = x[k] / ALPHA;
        params->rows->elu(block, count, ALPHA, block);
        for (size_t k = 0; k < count; k++)
            y[i + k] = x[k] < 0 ? block[k] : x[k];
    }
}
DQ_EW_UNARY(celu_f64, double, double, a < 0 ? params->alpha * dq_expm1(a / params->alpha) : a)
static const dq_ew_table celu_table = {.fn = {FLOAT_ROWS(celu)}, .params = read_alpha};
DQ_EW_OP(dq_op_celu, celu_table);
ROW_OP_WITH(swish, silu, read_alpha, a *sigmoid_of_f64(params->alpha *a))

/* ---- Gelu ---------------------------------------------------------------------------------------------- */

#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588

DQ_EW_ROW_MAP(gelu_f32, gelu)
DQ_EW_UNARY(gelu_f64, double, double, 0.5 * a * (1 + dq_erf(a * SQRT_HALF)))
DQ_EW_ROW_MAP(gelu_tanh_f32, gelu_tanh)
DQ_EW_UNARY(gelu_tanh_f64, double, double,
            0.5 * a * (1 + dq_tanh(SQRT_2_OVER_PI * (a + 0.044715 * a * a * a))))
static const dq_ew_table gelu_table = {.fn = {FLOAT_ROWS(gelu)}};
static const dq_ew_table gelu_tanh_table = {.fn = {FLOAT_ROWS(gelu_tanh)}};

static dq_status gelu_infer(dq_op_call *call, dq_error *err)
{
    return dq_ew_infer(call, &gelu_table, err);
}

static dq_status gelu_prepare(dq_op_call *call, dq_error *err)
{
    const char *form = dq_node_string(call->node, "approximate", "none");
    bool exact = strcmp(form, "none") == 0;
    if (!exact && strcmp(form, "tanh") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'approximate' is '%s', expected none or tanh",
                            form);
    return dq_ew_prepare(call, exact ? &gelu_table : &gelu_tanh_table, NULL, 0, err);
}

const dq_op_impl dq_op_gelu = {gelu_infer, gelu_prepare, dq_ew_run,
                               DQ_OP_IN_PLACE | DQ_OP_BATCH_SEPARABLE_FIRST};

/* com.microsoft: BiasGelu and FastGelu, with a bias along the last axis, and QuickGelu, x * sigmoid(alpha *
 * x). */
DQ_EW_ROW_PAIR(biased_f32, add)
DQ_EW_BINARY(biased_f64, double, double, a + b)
static const dq_ew_table bias_gelu_table = {
    .fn = {FLOAT_ROWS(biased)}, .then = &gelu_table, .steps = 1u << DQ_FLOAT};
static const dq_ew_table bias_gelu_tanh_table = {
    .fn = {FLOAT_ROWS(biased)}, .then = &gelu_tanh_table, .steps = 1u << DQ_FLOAT};

static dq_status biased_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0], *bias = dq_call_in(call, 1);
    char text[DQ_SHAPE_TEXT];
    if (bias && x->rank == 0)
        return dq_call_fail_input(call, err, 0, "is a scalar, expected an axis for the bias");
    if (bias && (bias->rank != 1 || bias->dims[0] != x->dims[x->rank - 1]))
        return dq_call_fail_input(call, err, 1, "has shape %s, expected [%lld] (last axis of input 0)",
                                  dq_shape_text(bias->rank, bias->dims, text),
                                  (long long)x->dims[x->rank - 1]);
    return dq_call_output_like(call, 0, x->dtype, x, err);
}

static dq_status bias_gelu_prepare(dq_op_call *call, dq_error *err)
{
    return dq_ew_prepare(call, &bias_gelu_table, NULL, 0, err);
}

static dq_status fast_gelu_prepare(dq_op_call *call, dq_error *err)
{
    if (dq_call_in(call, 1))
        return dq_ew_prepare(call, &bias_gelu_tanh_table, NULL, 0, err);
    call->in_count = 1; /* a bias that an empty name omits */
    return dq_ew_prepare(call, &gelu_tanh_table, NULL, 0, err);
}

const dq_op_impl dq_op_bias_gelu = {biased_infer, bias_gelu_prepare, dq_ew_run, DQ_OP_IN_PLACE};
const dq_op_impl dq_op_fast_gelu = {biased_infer, fast_gelu_prepare, dq_ew_run, DQ_OP_IN_PLACE};

/* ---- PRelu --------------------------------------------------------------------------------------------- */

DQ_EW_SECOND(prelu_f32, float, float, leaky(a, b))
DQ_EW_BINARY(prelu_f64, double, double, a < 0 ? a * b : a)
DQ_EW_BINARY(prelu_i32, int32_t, int32_t, a < 0 ? (uint32_t)a * (uint32_t)b : (uint32_t)a)
DQ_EW_BINARY(prelu_i64, int64_t, int64_t, a < 0 ? (uint64_t)a * (uint64_t)b : (uint64_t)a)
/* unsigned numbers are never below 0: b is not needed */
DQ_EW_BINARY(prelu_u32, uint32_t, uint32_t, b == 0 ? a : a)
DQ_EW_BINARY(prelu_u64, uint64_t, uint64_t, b == 0 ? a : a)
static const dq_ew_table prelu_table = {
    .fn = {FLOAT_ROWS(prelu), [DQ_INT32] = prelu_i32, [DQ_INT64] = prelu_i64, [DQ_UINT32] = prelu_u32,
           [DQ_UINT64] = prelu_u64},
    .seconds = 1u << DQ_FLOAT,
    .broadcasts_since = 7};
DQ_EW_OP(dq_op_prelu, prelu_table);

/* ---- SwiGLU and Shrink --------------------------------------------------------------------------------- */

static void swiglu_f32(void *out, const void *const in[], const size_t step[], size_t n,
                       const dq_ew_params *params)
{
    params->rows->silu(in[0], n, ALPHA, out);
    params->rows->mul(out, 1, in[1], step[1], n, out);
}
DQ_EW_BINARY(swiglu_f64, double, double, a *sigmoid_of_f64(params->alpha *a) * b)
static const dq_ew_table swiglu_table = {
    .fn = {FLOAT_ROWS(swiglu)}, .params = read_alpha, .seconds = 1u << DQ_FLOAT};

static dq_status swiglu_infer(dq_op_call *call, dq_error *err)
{
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    if (!dq_tensor_same_shape(call->in[0], call->in[1]))
        return dq_call_fail_input(call, err, 1, "has shape %s, expected that of input 0, %s",
                                  dq_shape_text(call->in[1]->rank, call->in[1]->dims, mine),
                                  dq_shape_text(call->in[0]->rank, call->in[0]->dims, theirs));
    return dq_ew_infer(call, &swiglu_table, err);
}

static dq_status swiglu_prepare(dq_op_call *call, dq_error *err)
{
    return dq_ew_prepare(call, &swiglu_table, NULL, 0, err);
}

const dq_op_impl dq_op_swiglu = {swiglu_infer, swiglu_prepare, dq_ew_run, 0};

static dq_status read_shrink(dq_op_call *call, dq_ew_params *params, dq_error *err)
{
    (void)err;
    params->alpha = (double)dq_node_float(call->node, "lambd", 0.5f);
    params->beta = (double)dq_node_float(call->node, "bias", 0);
    return DQ_OK;
}

/* Integers are computed as real numbers and truncated. */
static double shrink(double a, const dq_ew_params *params)
{
    if (a < -params->alpha)
        return a + params->beta;
    return a > params->alpha ? a - params->beta : 0;
}

static int64_t shrunk(double a, const dq_ew_params *params)
{
    return dq_cast_to_int(shrink(a, params), DQ_INT64);
}

DQ_EW_UNARY(shrink_f32, float, float, a<-ALPHA ? a + BETA : a> ALPHA ? a - BETA : 0)
DQ_EW_UNARY(shrink_f64, double, double, shrink(a, params))
DQ_EW_UNARY(shrink_i8, int8_t, int8_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_i16, int16_t, int16_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_i32, int32_t, int32_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_i64, int64_t, int64_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_u8, uint8_t, uint8_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_u16, uint16_t, uint16_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_u32, uint32_t, uint32_t, shrunk((double)a, params))
DQ_EW_UNARY(shrink_u64, uint64_t, uint64_t, dq_cast_to_int(shrink((double)a, params), DQ_UINT64))
static const dq_ew_table shrink_table = {
    .fn = {FLOAT_ROWS(shrink), [DQ_INT8] = shrink_i8, [DQ_INT16] = shrink_i16, [DQ_INT32] = shrink_i32,
           [DQ_INT64] = shrink_i64, [DQ_UINT8] = shrink_u8, [DQ_UINT16] = shrink_u16,
           [DQ_UINT32] = shrink_u32, [DQ_UINT64] = shrink_u64},
    .params = read_shrink};
DQ_EW_OP(dq_op_shrink, shrink_table);

DQ_EW_ROW(round_trip_f32, requantize(in[0], n, ALPHA, BETA, (float)params->gamma, out))

const dq_ew_named dq_ew_unary_named[] = {
    {DQ_EW_ROUND_TRIP, round_trip_f32, 1},
    {"Abs", abs_f32, 1},
    {"Neg", neg_f32, 1},
    {"Relu", relu_f32, 1},
    {"Sqrt", sqrt_f32, 1},
    {"Reciprocal", reciprocal_f32, 1},
    {"Floor", floor_f32, 1},
    {"Ceil", ceil_f32, 1},
    {"Round", round_f32, 1},
    {"Exp", exp_f32, 1},
    {"Log", log_f32, 1},
    {"Erf", erf_f32, 1},
    {"Tanh", tanh_f32, 1},
    {"Sigmoid", sigmoid_f32, 1},
    {"Softplus", softplus_f32, 1},
    {"HardSwish", hard_swish_f32, 1},
    {"Mish", mish_f32, 1},
    {"LeakyRelu", leaky_relu_f32, 1},
    {"HardSigmoid", hard_sigmoid_f32, 1},
    {"Elu", elu_f32, 1},
    {"Selu", selu_f32, 1},
    {"Softsign", softsign_f32, 1},
    {"ThresholdedRelu", thresholded_relu_f32, 1},
    {"Swish", swish_f32, 1},
    {"Gelu", gelu_f32, 1},
    {"GeluTanh", gelu_tanh_f32, 1},
    {"PRelu", prelu_f32, 2},
    {NULL, NULL, 0},
};
