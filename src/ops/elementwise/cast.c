/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike.
 *
 * Elements are converted in blocks through int64 or double, and the result is rounded once, as its type
 * requires. Integers keep their low bits; bool is "not 0". cast.h defines the result for numbers that an
 * integer type cannot represent. */
#include "ops/elementwise/cast.h"

#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Elements of a task; a multiple of 8, so that packed results split at byte boundaries. */
enum { GRAIN = 16384 };

typedef struct cast_state {
    bool saturate;
    dq_round round;
} cast_state;

typedef struct cast_job {
    const cast_state *state;
    const dq_kernels *kernels;
    const dq_tensor *x;
    dq_tensor *y;
    bool infinity_is_nan;
} cast_job;

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* Reads the target type. Cast-1 names it (FLOAT or INT32); later versions number it. */
static dq_status read_to(const dq_op_call *call, dq_dtype *to, dq_error *err)
{
    const dq_attr *attr = dq_node_attr(call->node, "to");
    if (attr && attr->kind == DQ_ATTR_STRING) {
        char name[16] = "";
        for (size_t i = 0; i < attr->u.s.length && i < sizeof name - 1; i++) {
            char letter = attr->u.s.bytes[i];
            name[i] = letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
        }
        *to = attr->u.s.length < sizeof name ? dq_dtype_from_name(name) : DQ_UNDEFINED;
        if (*to == DQ_UNDEFINED)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'to' is '%.*s', expected the name of a type",
                                (int)(attr->u.s.length < 64 ? attr->u.s.length : 64), attr->u.s.bytes);
        return DQ_OK;
    }
    int64_t number = attr ? attr->u.i : 0;
    if (!dq_dtype_valid(number))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'to' is %" PRId64 ", expected the number of a type", number);
    *to = (dq_dtype)number;
    return DQ_OK;
}

static dq_status infer_to(dq_op_call *call, dq_dtype to, dq_error *err)
{
    if (dq_dtype_get(to)->cls == DQ_CLASS_COMPLEX)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "casts to %s, expected a type that is not complex",
                            dq_dtype_name(to));
    const char *mode = dq_node_string(call->node, "round_mode", "up");
    if (strcmp(mode, "up") != 0 && strcmp(mode, "down") != 0 && strcmp(mode, "nearest") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'round_mode' is '%.64s', expected 'up', 'down' or 'nearest'", mode);
    return dq_call_output_like(call, 0, to, call->in[0], err);
}

static dq_status infer_cast(dq_op_call *call, dq_error *err)
{
    dq_dtype to = DQ_UNDEFINED;
    DQ_TRY(read_to(call, &to, err));
    return infer_to(call, to, err);
}

static dq_status infer_cast_like(dq_op_call *call, dq_error *err)
{
    return infer_to(call, call->in[1]->dtype, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(cast_state), err));
    cast_state *state = call->state;
    const char *mode = dq_node_string(call->node, "round_mode", "up");
    state->saturate = dq_node_int(call->node, "saturate", 1) != 0;
    state->round = *mode == 'u' ? DQ_ROUND_UP : *mode == 'd' ? DQ_ROUND_DOWN : DQ_ROUND_NEAREST;
    return DQ_OK;
}

/* ---- Conversion of numbers ----------------------------------------------------------------------------- */

int64_t dq_cast_to_int(double x, dq_dtype dtype)
{
    if (dtype == DQ_UINT64 && x >= 0x1p63 && x < 0x1p64)
        return (int64_t)(uint64_t)x;
    if (dq_dtype_get(dtype)->bits == 64 || dtype == DQ_UINT32)
        return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int64_t)x : INT32_MIN;
}

/* Converts an integer to a double, rounded to odd: the last of the 53 bits is set if any lower bit is. A
 * later rounding to a type narrower than double then rounds as if from the integer. */
static double int_to_odd(int64_t value, bool is_unsigned)
{
    bool negative = value < 0 && !is_unsigned;
    uint64_t m = negative ? 0 - (uint64_t)value : (uint64_t)value;
    double d = m >> 53 ? (double)(m >> 11 | ((m & 0x7ff) != 0)) * 0x1p11 : (double)m;
    return negative ? -d : d;
}

static void from_ints(const cast_job *job, size_t first, size_t n)
{
    int64_t ints[DQ_ROW];
    dq_dtype from = job->x->dtype, to = job->y->dtype;
    dq_load_ints(from, job->x->data, first, n, ints);
    if (from == DQ_BOOL || to == DQ_BOOL)
        for (size_t i = 0; i < n; i++)
            ints[i] = ints[i] != 0;
    if (!dq_dtype_is_float(to)) {
        dq_store_ints(to, job->y->data, first, n, ints);
        return;
    }
    double values[DQ_ROW];
    for (size_t i = 0; i < n; i++) {
        if (to == DQ_DOUBLE)
            values[i] = from == DQ_UINT64 ? (double)(uint64_t)ints[i] : (double)ints[i];
        else
            values[i] = int_to_odd(ints[i], from == DQ_UINT64);
    }
    dq_store_floats(to, job->y->data, first, n, values, job->state->saturate, job->state->round);
}

bool dq_cast_infinity_is_nan(const dq_op_call *call, bool saturate)
{
    dq_dtype to = call->out[0]->dtype;
    return call->version < 24 && saturate && (to == DQ_FLOAT8E4M3FNUZ || to == DQ_FLOAT8E5M2FNUZ);
}

static void from_floats(const cast_job *job, size_t first, size_t n)
{
    double values[DQ_ROW];
    dq_dtype to = job->y->dtype;
    dq_load_doubles(job->x->dtype, job->x->data, first, n, values);
    if (job->infinity_is_nan)
        for (size_t i = 0; i < n; i++)
            values[i] = isinf(values[i]) ? (double)NAN : values[i];
    if (dq_dtype_is_float(to)) {
        dq_store_floats(to, job->y->data, first, n, values, job->state->saturate, job->state->round);
        return;
    }
    int64_t ints[DQ_ROW];
    for (size_t i = 0; i < n; i++)
        ints[i] = to == DQ_BOOL ? values[i] != 0 : dq_cast_to_int(values[i], to);
    dq_store_ints(to, job->y->data, first, n, ints);
}

/* Whether all fit in an int32. Baseline processors convert four numbers to 32 bits at once, but only one to
 * 64 bits. */
static bool fit_32(const float *x, size_t n)
{
    int32_t outside = 0;
    for (size_t i = 0; i < n; i++)
        outside |= -(int32_t) !(fabsf(x[i]) < 0x1p31f);
    return outside == 0;
}

static void floats_to_64(const float *x, size_t n, int64_t *y)
{
    for (size_t few; n; x += few, y += few, n -= few) {
        few = n < DQ_ROW ? n : DQ_ROW;
        if (fit_32(x, few))
            for (size_t i = 0; i < few; i++)
                y[i] = (int32_t)x[i];
        else
            for (size_t i = 0; i < few; i++)
                y[i] = dq_cast_to_int((double)x[i], DQ_INT64);
    }
}

/* dq_cast_to_int for loops that vectorize: numbers that do not fit are replaced before the conversion. */
static inline int32_t to_32(float a)
{
    return (int32_t)(fabsf(a) < 0x1p31f ? a : -0x1p31f);
}

static inline int64_t double_to_64(double a)
{
    return a >= -0x1p63 && a < 0x1p63 ? (int64_t)a : INT64_MIN;
}

static inline int32_t double_to_32(double a)
{
    return (int32_t)(fabs(a) < 0x1p31 ? a : -0x1p31);
}

static void doubles_to_halves(const dq_kernels *k, const double *x, size_t n, uint16_t *y)
{
    for (size_t few; n; x += few, y += few, n -= few) {
        float workspace[DQ_ROW];
        few = n < DQ_ROW ? n : DQ_ROW;
        dq_round_all_to_odd(x, few, workspace);
        k->convert_f32_f16(workspace, few, y);
    }
}

#define LOOP(from_type, to_type, expr)                                                                       \
    do {                                                                                                     \
        const from_type *from_at = x;                                                                        \
        to_type *to_at = y;                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                     \
            const from_type a = from_at[i];                                                                  \
            to_at[i] = (to_type)(expr);                                                                      \
        }                                                                                                    \
    } while (0)
#define TYPES(from, to) ((from)*DQ_DTYPE_COUNT + (to))
#define PAIR(from, from_type, to, to_type, expr)                                                             \
    case TYPES(from, to):                                                                                    \
        LOOP(from_type, to_type, expr);                                                                      \
        return true;

/* Converts n elements by a loop for this pair of types; false if there is none. The pairs are those of real
 * models, and those from and to int32 and float. */
static bool direct(const dq_kernels *k, dq_dtype from, const void *x, dq_dtype to, void *y, size_t n)
{
    const float one = 1;
    switch (TYPES(from, to)) {
    case TYPES(DQ_FLOAT, DQ_FLOAT16):
        k->convert_f32_f16(x, n, y);
        return true;
    case TYPES(DQ_FLOAT16, DQ_FLOAT):
        k->convert_f16_f32(x, n, y);
        return true;
    case TYPES(DQ_FLOAT, DQ_BFLOAT16):
        dq_encode_bf16(x, n, y);
        return true;
    case TYPES(DQ_UINT8, DQ_FLOAT):
        k->dequantize_u8_f32(x, n, &one, NULL, 0, y);
        return true;
    case TYPES(DQ_INT8, DQ_FLOAT):
        k->dequantize_s8_f32(x, n, &one, NULL, 0, y);
        return true;
    case TYPES(DQ_DOUBLE, DQ_FLOAT16):
        doubles_to_halves(k, x, n, y);
        return true;
    case TYPES(DQ_FLOAT, DQ_INT64):
        floats_to_64(x, n, y);
        return true;
        PAIR(DQ_BFLOAT16, uint16_t, DQ_FLOAT, float, dq_bf16_to_f32(a))
        PAIR(DQ_BOOL, uint8_t, DQ_FLOAT, float, a != 0)
        PAIR(DQ_INT32, int32_t, DQ_FLOAT, float, a)
        PAIR(DQ_INT64, int64_t, DQ_FLOAT, float, a)
        PAIR(DQ_DOUBLE, double, DQ_FLOAT, float, a)
        PAIR(DQ_FLOAT, float, DQ_DOUBLE, double, a)
        PAIR(DQ_FLOAT, float, DQ_BOOL, uint8_t, a != 0)
        PAIR(DQ_UINT8, uint8_t, DQ_BOOL, uint8_t, a != 0)
        PAIR(DQ_INT64, int64_t, DQ_BOOL, uint8_t, a != 0)
        PAIR(DQ_BOOL, uint8_t, DQ_INT64, int64_t, a != 0)
        PAIR(DQ_UINT8, uint8_t, DQ_INT32, int32_t, a)
        PAIR(DQ_INT8, int8_t, DQ_INT32, int32_t, a)
        PAIR(DQ_UINT16, uint16_t, DQ_INT32, int32_t, a)
        PAIR(DQ_INT16, int16_t, DQ_INT32, int32_t, a)
        PAIR(DQ_BOOL, uint8_t, DQ_INT32, int32_t, a != 0)
        PAIR(DQ_INT64, int64_t, DQ_INT32, int32_t, a)
        PAIR(DQ_FLOAT, float, DQ_INT32, int32_t, to_32(a))
        PAIR(DQ_DOUBLE, double, DQ_INT32, int32_t, double_to_32(a))
        PAIR(DQ_DOUBLE, double, DQ_INT64, int64_t, double_to_64(a))
        PAIR(DQ_FLOAT, float, DQ_UINT8, uint8_t, to_32(a))
        PAIR(DQ_DOUBLE, double, DQ_UINT8, uint8_t, double_to_32(a))
        PAIR(DQ_DOUBLE, uint64_t, DQ_BOOL, uint8_t, ((uint32_t)(a >> 32) << 1 | (uint32_t)a) != 0)
        PAIR(DQ_INT64, int64_t, DQ_UINT8, uint8_t, a)
        PAIR(DQ_BOOL, uint8_t, DQ_UINT8, uint8_t, a != 0)
        PAIR(DQ_UINT8, uint8_t, DQ_INT64, int64_t, a)
        PAIR(DQ_INT8, int8_t, DQ_INT64, int64_t, a)
        PAIR(DQ_INT64, int64_t, DQ_DOUBLE, double, a)
        PAIR(DQ_INT32, int32_t, DQ_UINT8, uint8_t, a)
        PAIR(DQ_INT32, int32_t, DQ_UINT16, uint16_t, a)
        PAIR(DQ_INT32, int32_t, DQ_BOOL, uint8_t, a != 0)
        PAIR(DQ_INT32, int32_t, DQ_INT64, int64_t, a)
        PAIR(DQ_INT32, int32_t, DQ_DOUBLE, double, a)
    default:
        return false;
    }
}

#define BIT(type) (1u << (type))

/* An intermediate type through which the conversion has the same result, or DQ_UNDEFINED. */
static dq_dtype between(dq_dtype from, dq_dtype to)
{
    const uint32_t small = BIT(DQ_UINT8) | BIT(DQ_INT8) | BIT(DQ_UINT16) | BIT(DQ_INT16) | BIT(DQ_BOOL);
    const uint32_t halves = BIT(DQ_FLOAT16) | BIT(DQ_BFLOAT16), real = BIT(DQ_FLOAT) | BIT(DQ_DOUBLE);
    const uint32_t all = small | halves | real | BIT(DQ_INT32) | BIT(DQ_INT64);
    if (BIT(from) & halves && BIT(to) & all)
        return DQ_FLOAT;
    /* Integers that a float must round are infinite in float16. */
    if ((to == DQ_FLOAT16 && BIT(from) & all & ~real) || (to == DQ_BFLOAT16 && BIT(from) & small))
        return DQ_FLOAT;
    if (BIT(from) & small && BIT(to) & all)
        return DQ_INT32;
    if (BIT(from) & (real | BIT(DQ_INT32) | BIT(DQ_INT64)) && BIT(to) & small && to != DQ_BOOL)
        return DQ_INT32;
    return DQ_UNDEFINED;
}

/* The unsigned type of the same width, as the low bits of both are the same. */
static dq_dtype unsigned_of(dq_dtype dtype)
{
    return dtype == DQ_INT8 ? DQ_UINT8 : dtype == DQ_INT16 ? DQ_UINT16 : dtype;
}

bool dq_cast_numbers(const dq_kernels *k, dq_dtype from, const void *x, dq_dtype to, void *y, size_t n)
{
    const unsigned bits = dq_dtype_get(from)->bits;
    dq_dtype middle = between(from, to);
    if (dq_dtype_is_int(from) && dq_dtype_is_int(to) && bits >= 8 && bits == dq_dtype_get(to)->bits) {
        memcpy(y, x, n * (bits / 8));
        return true;
    }
    if (direct(k, to == DQ_BOOL ? unsigned_of(from) : from, x, unsigned_of(to), y, n))
        return true;
    if (middle == DQ_UNDEFINED || middle == from || middle == to)
        return false;
    const size_t wide = bits / 8, narrow = dq_dtype_get(to)->bits / 8;
    for (size_t done = 0, few; done < n; done += few) {
        union {
            int32_t ints[DQ_ROW];
            float floats[DQ_ROW];
        } workspace;
        few = n - done < DQ_ROW ? n - done : DQ_ROW;
        if (!dq_cast_numbers(k, from, (const char *)x + done * wide, middle, &workspace, few) ||
            !dq_cast_numbers(k, middle, &workspace, to, (char *)y + done * narrow, few))
            return false;
    }
    return true;
}

static void cast_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const cast_job *job = arg;
    const dq_tensor *x = job->x, *y = job->y;
    if (dq_cast_numbers(job->kernels, x->dtype,
                        (const char *)x->data + begin * (dq_dtype_get(x->dtype)->bits / 8), y->dtype,
                        (char *)y->data + begin * (dq_dtype_get(y->dtype)->bits / 8), end - begin))
        return;
    dq_clear_elements(job->y->dtype, job->y->data, begin, end);
    bool floats = dq_dtype_is_float(job->x->dtype);
    for (size_t first = begin, n; first < end; first += n) {
        n = end - first < DQ_ROW ? end - first : DQ_ROW;
        if (floats)
            from_floats(job, first, n);
        else
            from_ints(job, first, n);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const cast_state *state = call->state;
    const dq_tensor *x = call->in[0];
    dq_tensor *y = call->out[0];
    if (!y)
        return DQ_OK;
    /* The same type is copied; strings are shared. Except float8e5m2, whose infinity may saturate. */
    if (x->dtype == y->dtype && !(x->dtype == DQ_FLOAT8E5M2 && state->saturate)) {
        if (x->size)
            memcpy(y->data, x->data, x->size);
        return DQ_OK;
    }
    if (x->dtype == DQ_STRING || y->dtype == DQ_STRING)
        return dq_cast_strings(call, state->saturate, state->round, err);
    cast_job job = {state, call->kernels, x, y, dq_cast_infinity_is_nan(call, state->saturate)};
    dq_parallel(call->threads, x->count, GRAIN, cast_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_cast = {infer_cast, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
const dq_op_impl dq_op_cast_like = {infer_cast_like, prepare, run, 0};
