/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on two or more operands. Integers wrap around in two's complement. */
#include "base/math.h"
#include "ops/elementwise/elementwise.h"

#include <math.h>
#include <string.h>

/* Sum, difference and product of signed integers have the same bits as those of unsigned ones. */
#define MODULAR(name, op)                                                                                    \
    DQ_EW_BINARY(name##_u8, uint8_t, uint8_t, a op b)                                                        \
    DQ_EW_BINARY(name##_u16, uint16_t, uint16_t, (unsigned)a op(unsigned) b)                                 \
    DQ_EW_SECOND(name##_u32, uint32_t, uint32_t, a op b)                                                     \
    DQ_EW_SECOND(name##_u64, uint64_t, uint64_t, a op b)
#define MODULAR_ROWS(name)                                                                                   \
    [DQ_UINT8] = name##_u8, [DQ_INT8] = name##_u8, [DQ_UINT16] = name##_u16, [DQ_INT16] = name##_u16,        \
    [DQ_UINT32] = name##_u32, [DQ_INT32] = name##_u32, [DQ_UINT64] = name##_u64, [DQ_INT64] = name##_u64

#define EACH(name, expr)                                                                                     \
    DQ_EW_BINARY(name##_u8, uint8_t, uint8_t, expr)                                                          \
    DQ_EW_BINARY(name##_i8, int8_t, int8_t, expr)                                                            \
    DQ_EW_BINARY(name##_u16, uint16_t, uint16_t, expr)                                                       \
    DQ_EW_BINARY(name##_i16, int16_t, int16_t, expr)                                                         \
    DQ_EW_BINARY(name##_u32, uint32_t, uint32_t, expr)                                                       \
    DQ_EW_SECOND(name##_i32, int32_t, int32_t, expr)                                                         \
    DQ_EW_BINARY(name##_u64, uint64_t, uint64_t, expr)                                                       \
    DQ_EW_SECOND(name##_i64, int64_t, int64_t, expr)
#define EACH_ROWS(name)                                                                                      \
    [DQ_UINT8] = name##_u8, [DQ_INT8] = name##_i8, [DQ_UINT16] = name##_u16, [DQ_INT16] = name##_i16,        \
    [DQ_UINT32] = name##_u32, [DQ_INT32] = name##_i32, [DQ_UINT64] = name##_u64, [DQ_INT64] = name##_i64

/* ---- Add, Sub, Mul ------------------------------------------------------------------------------------ */

MODULAR(add, +)
DQ_EW_ROW_PAIR(add_f32, add)
DQ_EW_BINARY(add_f64, double, double, a + b)
static const dq_ew_table add = {.fn = {MODULAR_ROWS(add), [DQ_FLOAT] = add_f32, [DQ_DOUBLE] = add_f64},
                                .commutes = true,
                                .steps = 1u << DQ_FLOAT,
                                .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_add, add);

MODULAR(sub, -)
DQ_EW_ROW_PAIR(sub_f32, sub)
DQ_EW_BINARY(sub_f64, double, double, a - b)
static const dq_ew_table sub = {.fn = {MODULAR_ROWS(sub), [DQ_FLOAT] = sub_f32, [DQ_DOUBLE] = sub_f64},
                                .steps = 1u << DQ_FLOAT,
                                .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_sub, sub);

MODULAR(mul, *)
DQ_EW_ROW_PAIR(mul_f32, mul)
DQ_EW_BINARY(mul_f64, double, double, a *b)
static const dq_ew_table mul = {.fn = {MODULAR_ROWS(mul), [DQ_FLOAT] = mul_f32, [DQ_DOUBLE] = mul_f64},
                                .commutes = true,
                                .steps = 1u << DQ_FLOAT,
                                .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_mul, mul);

DQ_EW_ROW_PAIR(div_f32, div) /* for chains; see ew_divide.c */

/* ---- Pow ---------------------------------------------------------------------------------------------- */

/* Integer powers wrap. A negative exponent gives the real power truncated to an integer: 0 except for bases 1
 * and -1. */
static int64_t power(int64_t base, int64_t exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)base;
    for (uint64_t e = (uint64_t)exponent; e; e >>= 1, square *= square)
        if (e & 1)
            result *= square;
    return (int64_t)result;
}

DQ_EW_BINARY(pow_i32, int32_t, int32_t, power(a, b))
DQ_EW_BINARY(pow_i64, int64_t, int64_t, power(a, b))
static void any_pow_f32(const float *x, size_t x_step, const float *y, size_t y_step, size_t n, float *z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = dq_powf(x[i * x_step], y[i * y_step]);
}

/* Fast paths for a scalar exponent: squares, cubes and square roots, as in decomposed layer normalizations
 * and Gelus. A cube is rounded twice, first to double. As powers, the root of -infinity is infinity, and that
 * of -0 is 0. */
static void pow_f32(void *out, const void *const in[], const size_t step[], size_t n,
                    const dq_ew_params *params)
{
    const float *x = in[0], exponent = *(const float *)in[1];
    float *y = out;
    if (step[1] || !step[0] || (exponent != 2 && exponent != 3 && exponent != 0.5f))
        any_pow_f32(x, step[0], in[1], step[1], n, y);
    else if (exponent == 2)
        params->rows->mul(x, 1, x, 1, n, y);
    else if (exponent == 0.5f)
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] == -INFINITY ? INFINITY : sqrtf(x[i]) + 0.0f;
    else
        for (size_t i = 0; i < n; i++)
            y[i] = (float)((double)x[i] * (double)x[i] * (double)x[i]);
}
DQ_EW_BINARY(pow_f64, double, double, dq_pow(a, b))
static const dq_ew_table pow_table = {
    .fn = {[DQ_INT32] = pow_i32, [DQ_INT64] = pow_i64, [DQ_FLOAT] = pow_f32, [DQ_DOUBLE] = pow_f64},
    .steps = 1u << DQ_FLOAT};
DQ_EW_OP(dq_op_pow, pow_table);

/* ---- Min, Max: a NaN operand makes the result NaN ------------------------------------------------------ */

EACH(min, a < b ? a : b)
DQ_EW_ROW_PAIR(min_f32, min)
DQ_EW_BINARY(min_f64, double, double, a < b || isnan(a) ? a : b)
static const dq_ew_table min_table = {.fn = {EACH_ROWS(min), [DQ_FLOAT] = min_f32, [DQ_DOUBLE] = min_f64},
                                      .fold = true,
                                      .steps = 1u << DQ_FLOAT,
                                      .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_min, min_table);

EACH(max, a > b ? a : b)
DQ_EW_ROW_PAIR(max_f32, max)
DQ_EW_BINARY(max_f64, double, double, a > b || isnan(a) ? a : b)
static const dq_ew_table max_table = {.fn = {EACH_ROWS(max), [DQ_FLOAT] = max_f32, [DQ_DOUBLE] = max_f64},
                                      .fold = true,
                                      .steps = 1u << DQ_FLOAT,
                                      .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_max, max_table);

/* ---- Sum, Mean: in the order of operands --------------------------------------------------------------- */

static const dq_ew_table sum = {.fn = {[DQ_FLOAT] = add_f32, [DQ_DOUBLE] = add_f64},
                                .fold = true,
                                .steps = 1u << DQ_FLOAT,
                                .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_sum, sum);

static void share_f32(void *out, const void *const in[], const size_t step[], size_t n,
                      const dq_ew_params *params)
{
    const float operands = (float)params->operands;
    params->rows->div(in[0], step[0], &operands, 0, n, out);
}
DQ_EW_UNARY(share_f64, double, double, a / (double)params->operands)
static const dq_ew_table share = {.fn = {[DQ_FLOAT] = share_f32, [DQ_DOUBLE] = share_f64}};
static const dq_ew_table mean = {.fn = {[DQ_FLOAT] = add_f32, [DQ_DOUBLE] = add_f64},
                                 .then = &share,
                                 .fold = true,
                                 .steps = 1u << DQ_FLOAT,
                                 .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_mean, mean);

/* ---- Bits --------------------------------------------------------------------------------------------- */

MODULAR(bit_and, &)
static const dq_ew_table bit_and = {.fn = {MODULAR_ROWS(bit_and)}, .commutes = true, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_bitwise_and, bit_and);

MODULAR(bit_or, |)
static const dq_ew_table bit_or = {.fn = {MODULAR_ROWS(bit_or)}, .commutes = true, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_bitwise_or, bit_or);

MODULAR(bit_xor, ^)
static const dq_ew_table bit_xor = {.fn = {MODULAR_ROWS(bit_xor)}, .commutes = true, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_bitwise_xor, bit_xor);

/* A shift by the type's width or more gives 0, or the sign for an arithmetic right shift. A negative amount
 * is such a shift. Baseline processors shift vectors by one common amount only. */
#define LEFT(name, T) DQ_EW_SECOND(left_##name, T, T, b < sizeof(T) * 8 ? (uint64_t)a << b : 0)
LEFT(u8, uint8_t)
LEFT(u16, uint16_t)
LEFT(u32, uint32_t)
LEFT(u64, uint64_t)
static const dq_ew_table shift_left = {.fn = {MODULAR_ROWS(left)}, .seconds = UINT32_MAX};

#define RIGHT(name, T, U)                                                                                    \
    DQ_EW_SECOND(right_##name, T, T,                                                                         \
                 a >> ((U)b < sizeof(T) * 8 ? (unsigned)b : sizeof(T) * 8 - 1) >>                            \
                     ((U)b < sizeof(T) * 8 ? 0 : 1))
RIGHT(u8, uint8_t, uint8_t)
RIGHT(i8, int8_t, uint8_t)
RIGHT(u16, uint16_t, uint16_t)
RIGHT(i16, int16_t, uint16_t)
RIGHT(u32, uint32_t, uint32_t)
RIGHT(i32, int32_t, uint32_t)
RIGHT(u64, uint64_t, uint64_t)
RIGHT(i64, int64_t, uint64_t)
static const dq_ew_table shift_right = {.fn = {EACH_ROWS(right)}, .seconds = UINT32_MAX};

static dq_status shift_infer(dq_op_call *call, dq_error *err)
{
    return dq_ew_infer(call, &shift_left, err);
}

static dq_status shift_prepare(dq_op_call *call, dq_error *err)
{
    const char *direction = dq_node_string(call->node, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'direction' is '%s', expected LEFT or RIGHT",
                            direction);
    return dq_ew_prepare(call, left ? &shift_left : &shift_right, NULL, 0, err);
}

const dq_op_impl dq_op_bit_shift = {shift_infer, shift_prepare, dq_ew_run, DQ_OP_IN_PLACE};

const dq_ew_named dq_ew_arith_named[] = {{"Add", add_f32, 2}, {"Sub", sub_f32, 2}, {"Mul", mul_f32, 2},
                                         {"Div", div_f32, 2}, {"Pow", pow_f32, 2}, {"Min", min_f32, 2},
                                         {"Max", max_f32, 2}, {NULL, NULL, 0}};
