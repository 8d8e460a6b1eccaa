/* SPDX-License-Identifier: Apache-2.0 */
/* Div and Mod. Integer division by zero gives 0, as does its remainder. The lowest number divided by -1 is
 * itself. */
#include "ops/elementwise/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

/* ---- Div, Mod ----------------------------------------------------------------------------------------- */

static int64_t quotient(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

/* 32-bit quotient in double: precise enough that truncating gives the integer quotient, and it vectorizes. */
static int32_t quotient_32(int32_t a, int32_t b)
{
    const double q = (double)a / (b ? (double)b : HUGE_VAL);
    return (int32_t)(q < 0x1p31 ? q : -0x1p31);
}

/* Remainder with the sign of the divisor, as in Python. */
static int64_t modulus(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Remainder with the sign of the dividend, as in C. */
static int64_t remainder_of(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

#define SIGNED_AND_UNSIGNED(name, function, function_32, unsigned_expr)                                      \
    DQ_EW_BINARY(name##_u8, uint8_t, uint8_t, unsigned_expr)                                                 \
    DQ_EW_BINARY(name##_u16, uint16_t, uint16_t, unsigned_expr)                                              \
    DQ_EW_BINARY(name##_u32, uint32_t, uint32_t, unsigned_expr)                                              \
    DQ_EW_BINARY(name##_u64, uint64_t, uint64_t, unsigned_expr)                                              \
    DQ_EW_BINARY(name##_i8, int8_t, int8_t, function(a, b))                                                  \
    DQ_EW_BINARY(name##_i16, int16_t, int16_t, function(a, b))                                               \
    DQ_EW_BINARY(name##_i32, int32_t, int32_t, function_32(a, b))                                            \
    DQ_EW_BINARY(name##_i64, int64_t, int64_t, function(a, b))

/* ---- Division of small integers in float
 *
 * For magnitudes below 2^23, a quotient that is not an integer differs from the next integer by more than its
 * rounding error. Truncating it is therefore exact. */

enum {
    MAX_EXACT_FLOAT = 1 << 23,
    DIVIDED = 1u << DQ_UINT8 | 1u << DQ_INT8 | 1u << DQ_INT32 | 1u << DQ_INT64
};

#define SMALL_FLOATS(name, T, U)                                                                             \
    static bool name(const T *x, size_t n, float *y)                                                         \
    {                                                                                                        \
        U large = 0;                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                     \
            large |= (U)x[i] + MAX_EXACT_FLOAT;                                                              \
            y[i] = (float)(int32_t)x[i];                                                                     \
        }                                                                                                    \
        return large < 2 * MAX_EXACT_FLOAT;                                                                  \
    }
SMALL_FLOATS(small_32, int32_t, uint32_t)
SMALL_FLOATS(small_64, int64_t, uint64_t)

/* Converts to float; false if some are not small. */
static bool small_floats(const dq_kernels *k, dq_dtype type, const void *x, size_t n, float *y)
{
    return type == DQ_INT32   ? small_32(x, n, y)
           : type == DQ_INT64 ? small_64(x, n, y)
                              : dq_cast_numbers(k, type, x, DQ_FLOAT, y, n);
}

/* Divides n <= DQ_ROW numbers by n divisors or by one; false if some are not small. */
static bool small_quotients(dq_dtype type, bool remainders, void *out, const void *const in[],
                            const size_t step[], size_t n, const dq_ew_params *params)
{
    float a[DQ_ROW], b[DQ_ROW], q[DQ_ROW];
    const size_t divisors = step[1] ? n : 1;
    if (!small_floats(params->kernels, type, in[0], n, a) ||
        !small_floats(params->kernels, type, in[1], divisors, b))
        return false;
    for (size_t i = 0; i < divisors; i++)
        b[i] = b[i] != 0 ? b[i] : HUGE_VALF;
    params->rows->div(a, 1, b, step[1], n, q);
    for (size_t i = divisors; i < n && remainders; i++)
        b[i] = b[0];
    for (size_t i = 0; i < n && remainders; i++) {
        const float product = (float)(int32_t)q[i] * b[i]; /* NaN: division by zero */
        const float r = product == product ? a[i] - product : 0;
        q[i] = r * b[i] < 0 ? r + b[i] : r;
    }
    for (size_t i = 0; i < n && type == DQ_INT64; i++)
        ((int64_t *)out)[i] = (int32_t)q[i];
    return type == DQ_INT64 || dq_cast_numbers(params->kernels, DQ_FLOAT, q, type, out, n);
}

/* Divides blocks in float if all are small, else by the kernel `any`, for which scalar divisors are
 * materialized. */
static void divide(dq_dtype type, bool remainders, dq_ew_fn *any, void *out, const void *const in[],
                   const size_t step[], size_t n, const dq_ew_params *params)
{
    const size_t width = dq_dtype_get(type)->bits / 8u;
    for (size_t done = 0, few; done < n; done += few) {
        const void *from[] = {(const char *)in[0] + done * width,
                              (const char *)in[1] + step[1] * done * width};
        void *to = (char *)out + done * width;
        few = n - done < DQ_ROW ? n - done : DQ_ROW;
        if (small_quotients(type, remainders, to, from, step, few, params))
            continue;
        _Alignas(16) char copies[DQ_ROW * sizeof(int64_t)];
        for (size_t i = 0; i < few && !step[1]; i++)
            memcpy(copies + i * width, in[1], width);
        from[1] = step[1] ? from[1] : copies;
        any(to, from, step, few, params);
    }
}

#define DIVIDE(name, type, remainders)                                                                       \
    static void small_##name(void *out, const void *const in[], const size_t step[], size_t n,               \
                             const dq_ew_params *params)                                                     \
    {                                                                                                        \
        divide(type, remainders, name, out, in, step, n, params);                                            \
    }
#define DIVIDE_EACH(name, remainders)                                                                        \
    DIVIDE(name##_u8, DQ_UINT8, remainders)                                                                  \
    DIVIDE(name##_i8, DQ_INT8, remainders)                                                                   \
    DIVIDE(name##_i32, DQ_INT32, remainders)                                                                 \
    DIVIDE(name##_i64, DQ_INT64, remainders)
#define DIVIDE_ROWS(name)                                                                                    \
    [DQ_UINT8] = small_##name##_u8, [DQ_INT8] = small_##name##_i8, [DQ_UINT16] = name##_u16,                 \
    [DQ_INT16] = name##_i16, [DQ_UINT32] = name##_u32, [DQ_INT32] = small_##name##_i32,                      \
    [DQ_UINT64] = name##_u64, [DQ_INT64] = small_##name##_i64

SIGNED_AND_UNSIGNED(div, quotient, quotient_32, b ? a / b : 0)
DIVIDE_EACH(div, false)
DQ_EW_ROW_PAIR(div_f32, div)
DQ_EW_BINARY(div_f64, double, double, a / b)
static const dq_ew_table div_table = {.fn = {DIVIDE_ROWS(div), [DQ_FLOAT] = div_f32, [DQ_DOUBLE] = div_f64},
                                      .steps = 1u << DQ_FLOAT,
                                      .seconds = DIVIDED};
DQ_EW_OP(dq_op_div, div_table);

static double float_modulus(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : copysign(r, r == 0 ? b : r);
}

SIGNED_AND_UNSIGNED(mod, modulus, modulus, b ? a % b : 0)
DIVIDE_EACH(mod, true)
DQ_EW_BINARY(mod_f32, float, float, float_modulus((double)a, (double)b))
DQ_EW_BINARY(mod_f64, double, double, float_modulus(a, b))
#define REM_ROWS                                                                                             \
    [DQ_UINT8] = rem_u8, [DQ_INT8] = rem_i8, [DQ_UINT16] = rem_u16, [DQ_INT16] = rem_i16,                    \
    [DQ_UINT32] = rem_u32, [DQ_INT32] = rem_i32, [DQ_UINT64] = rem_u64, [DQ_INT64] = rem_i64
SIGNED_AND_UNSIGNED(rem, remainder_of, remainder_of, b ? a % b : 0)
DQ_EW_BINARY(rem_f32, float, float, fmodf(a, b))
DQ_EW_BINARY(rem_f64, double, double, fmod(a, b))
static const dq_ew_table mod = {.fn = {DIVIDE_ROWS(mod), [DQ_FLOAT] = mod_f32, [DQ_DOUBLE] = mod_f64},
                                .seconds = DIVIDED};
static const dq_ew_table rem_table = {.fn = {REM_ROWS, [DQ_FLOAT] = rem_f32, [DQ_DOUBLE] = rem_f64}};

static const dq_ew_table *mod_of(const dq_op_call *call)
{
    return dq_node_int(call->node, "fmod", 0) ? &rem_table : &mod;
}

static dq_status mod_infer(dq_op_call *call, dq_error *err)
{
    return dq_ew_infer(call, mod_of(call), err);
}

static dq_status mod_prepare(dq_op_call *call, dq_error *err)
{
    return dq_ew_prepare(call, mod_of(call), NULL, 0, err);
}

const dq_op_impl dq_op_mod = {mod_infer, mod_prepare, dq_ew_run, DQ_OP_IN_PLACE};
