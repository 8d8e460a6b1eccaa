/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, logic, and Where. Comparisons with NaN are false. */
#include "ops/elementwise/elementwise.h"

#include <math.h>
#include <string.h>

typedef struct wide {
    uint64_t half[2];
} wide;

/* ---- Equal, Less, Greater and their relatives ---------------------------------------------------------- */

static bool same_string(dq_string a, dq_string b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

DQ_EW_BINARY(equal_8, uint8_t, bool, a == b)
DQ_EW_BINARY(equal_bool, bool, bool, a == b)
DQ_EW_BINARY(equal_16, uint16_t, bool, a == b)
DQ_EW_SECOND(equal_32, uint32_t, bool, a == b)
DQ_EW_SECOND(equal_64, uint64_t, bool, a == b)
DQ_EW_SECOND(equal_f32, float, bool, a == b)
DQ_EW_BINARY(equal_f64, double, bool, a == b)
DQ_EW_BINARY(equal_string, dq_string, bool, same_string(a, b))
static const dq_ew_table equal = {.fn = {[DQ_UINT8] = equal_8,
                                         [DQ_INT8] = equal_8,
                                         [DQ_BOOL] = equal_bool,
                                         [DQ_UINT16] = equal_16,
                                         [DQ_INT16] = equal_16,
                                         [DQ_UINT32] = equal_32,
                                         [DQ_INT32] = equal_32,
                                         [DQ_UINT64] = equal_64,
                                         [DQ_INT64] = equal_64,
                                         [DQ_FLOAT] = equal_f32,
                                         [DQ_DOUBLE] = equal_f64,
                                         [DQ_STRING] = equal_string},
                                  .out = DQ_BOOL,
                                  .commutes = true,
                                  .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_equal, equal);

#define ORDER(name, op)                                                                                      \
    DQ_EW_BINARY(name##_u8, uint8_t, bool, a op b)                                                           \
    DQ_EW_BINARY(name##_i8, int8_t, bool, a op b)                                                            \
    DQ_EW_BINARY(name##_u16, uint16_t, bool, a op b)                                                         \
    DQ_EW_BINARY(name##_i16, int16_t, bool, a op b)                                                          \
    DQ_EW_BINARY(name##_u32, uint32_t, bool, a op b)                                                         \
    DQ_EW_SECOND(name##_i32, int32_t, bool, a op b)                                                          \
    DQ_EW_BINARY(name##_u64, uint64_t, bool, a op b)                                                         \
    DQ_EW_SECOND(name##_i64, int64_t, bool, a op b)                                                          \
    DQ_EW_SECOND(name##_f32, float, bool, a op b)                                                            \
    DQ_EW_BINARY(name##_f64, double, bool, a op b)
#define ORDER_ROWS(name)                                                                                     \
    [DQ_UINT8] = name##_u8, [DQ_INT8] = name##_i8, [DQ_UINT16] = name##_u16, [DQ_INT16] = name##_i16,        \
    [DQ_UINT32] = name##_u32, [DQ_INT32] = name##_i32, [DQ_UINT64] = name##_u64, [DQ_INT64] = name##_i64,    \
    [DQ_FLOAT] = name##_f32, [DQ_DOUBLE] = name##_f64

ORDER(less, <)
static const dq_ew_table less = {.fn = {ORDER_ROWS(less)}, .out = DQ_BOOL, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_less, less);
static const dq_ew_table greater = {
    .fn = {ORDER_ROWS(less)}, .out = DQ_BOOL, .swap = true, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_greater, greater);

ORDER(at_most, <=)
static const dq_ew_table at_most = {.fn = {ORDER_ROWS(at_most)}, .out = DQ_BOOL, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_less_or_equal, at_most);
static const dq_ew_table at_least = {
    .fn = {ORDER_ROWS(at_most)}, .out = DQ_BOOL, .swap = true, .seconds = DQ_EW_COMMON};
DQ_EW_OP(dq_op_greater_or_equal, at_least);

/* ---- And, Or, Xor, Not --------------------------------------------------------------------------------- */

DQ_EW_SECOND(and_bool, bool, bool, a &b)
static const dq_ew_table and_table = {
    .fn = {[DQ_BOOL] = and_bool}, .commutes = true, .seconds = 1u << DQ_BOOL};
DQ_EW_OP(dq_op_and, and_table);

DQ_EW_SECOND(or_bool, bool, bool, a | b)
static const dq_ew_table or_table = {.fn = {[DQ_BOOL] = or_bool}, .commutes = true, .seconds = 1u << DQ_BOOL};
DQ_EW_OP(dq_op_or, or_table);

DQ_EW_SECOND(xor_bool, bool, bool, a ^ b)
static const dq_ew_table xor_table = {
    .fn = {[DQ_BOOL] = xor_bool}, .commutes = true, .seconds = 1u << DQ_BOOL};
DQ_EW_OP(dq_op_xor, xor_table);

DQ_EW_UNARY(not_bool, uint8_t, uint8_t, a == 0)
static const dq_ew_table not_table = {.fn = {[DQ_BOOL] = not_bool}};
DQ_EW_OP(dq_op_not, not_table);

/* ---- IsNaN, IsInf -------------------------------------------------------------------------------------- */

DQ_EW_UNARY(is_nan_f32, float, bool, isnan(a))
DQ_EW_UNARY(is_nan_f64, double, bool, isnan(a))
static const dq_ew_table is_nan = {.fn = {[DQ_FLOAT] = is_nan_f32, [DQ_DOUBLE] = is_nan_f64}, .out = DQ_BOOL};
DQ_EW_OP(dq_op_is_nan, is_nan);

/* alpha and beta: the infinities to detect; NaN, which equals nothing, for one that is not. */
static dq_status infinities(dq_op_call *call, dq_ew_params *params, dq_error *err)
{
    (void)err;
    params->alpha = dq_node_int(call->node, "detect_positive", 1) ? (double)INFINITY : (double)NAN;
    params->beta = dq_node_int(call->node, "detect_negative", 1) ? (double)-INFINITY : (double)NAN;
    return DQ_OK;
}

DQ_EW_UNARY(is_inf_f32, float, bool, (a == (float)params->alpha) | (a == (float)params->beta))
DQ_EW_UNARY(is_inf_f64, double, bool, (a == params->alpha) | (a == params->beta))
static const dq_ew_table is_inf = {
    .fn = {[DQ_FLOAT] = is_inf_f32, [DQ_DOUBLE] = is_inf_f64}, .out = DQ_BOOL, .params = infinities};
DQ_EW_OP(dq_op_is_inf, is_inf);

/* ---- Where --------------------------------------------------------------------------------------------- */

/* Selects words by masks, which vectorizes if the condition is read as bytes. */
#define MASKED(c, v, w) (T)((w) ^ (((v) ^ (w)) & (T)(0 - (T)(c))))
#define EITHER(c, v, w) ((c) ? (v) : (w))
#define CHOOSE_LOOP(pick, x_at, y_at)                                                                        \
    for (size_t i = 0; i < n; i++)                                                                           \
        z[i] = pick(condition[i], x_at, y_at);
#define CHOOSE(name, type, pick)                                                                             \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *params)                                                             \
    {                                                                                                        \
        (void)params;                                                                                        \
        typedef type T;                                                                                      \
        const uint8_t *condition = in[0];                                                                    \
        const T *x = in[1], *y = in[2], x0 = *x, y0 = *y;                                                    \
        const size_t x_step = step[1], y_step = step[2];                                                     \
        T *z = out;                                                                                          \
        if (!step[0]) {                                                                                      \
            const T *from = *condition ? x : y, value = *from;                                               \
            if (*condition ? x_step : y_step)                                                                \
                memmove(z, from, n * sizeof(T));                                                             \
            else                                                                                             \
                for (size_t i = 0; i < n; i++)                                                               \
                    z[i] = value;                                                                            \
        } else if (x_step && y_step) {                                                                       \
            CHOOSE_LOOP(pick, x[i], y[i])                                                                    \
        } else if (x_step) {                                                                                 \
            CHOOSE_LOOP(pick, x[i], y0)                                                                      \
        } else if (y_step) {                                                                                 \
            CHOOSE_LOOP(pick, x0, y[i])                                                                      \
        } else {                                                                                             \
            CHOOSE_LOOP(pick, x0, y0)                                                                        \
        }                                                                                                    \
    }

CHOOSE(choose_8, uint8_t, MASKED)
CHOOSE(choose_16, uint16_t, MASKED)
CHOOSE(choose_32, uint32_t, MASKED)
CHOOSE(choose_64, uint64_t, MASKED)
CHOOSE(choose_128, wide, EITHER)
CHOOSE(choose_string, dq_string, EITHER)
static const dq_ew_table where = {.fn = {[DQ_BOOL] = choose_8,
                                         [DQ_UINT8] = choose_8,
                                         [DQ_INT8] = choose_8,
                                         [DQ_UINT16] = choose_16,
                                         [DQ_INT16] = choose_16,
                                         [DQ_FLOAT16] = choose_16,
                                         [DQ_BFLOAT16] = choose_16,
                                         [DQ_UINT32] = choose_32,
                                         [DQ_INT32] = choose_32,
                                         [DQ_FLOAT] = choose_32,
                                         [DQ_UINT64] = choose_64,
                                         [DQ_INT64] = choose_64,
                                         [DQ_DOUBLE] = choose_64,
                                         [DQ_COMPLEX64] = choose_64,
                                         [DQ_COMPLEX128] = choose_128,
                                         [DQ_STRING] = choose_string},
                                  .select = 1,
                                  .steps = UINT32_MAX};
DQ_EW_OP(dq_op_where, where);
