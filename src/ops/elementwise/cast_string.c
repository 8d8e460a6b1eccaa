/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/elementwise/cast.h"
#include "ops/rows.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Syntax of literals ------------------------------------------------------------------------------- */

typedef enum literal { LITERAL_NONE, LITERAL_WHOLE, LITERAL_DECIMAL, LITERAL_INF, LITERAL_NAN } literal;

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Accepts [sign] digits [. digits] [e [sign] digits], or a special word. */
static literal classify(const char *text)
{
    const char *p = text + (*text == '+' || *text == '-');
    if (strcasecmp(p, "inf") == 0 || strcasecmp(p, "infinity") == 0)
        return LITERAL_INF;
    if (strcasecmp(p, "nan") == 0)
        return LITERAL_NAN;
    const char *whole = p;
    p = skip_digits(p);
    size_t digits = (size_t)(p - whole);
    if (digits && !*p)
        return LITERAL_WHOLE;
    if (*p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction);
        digits += (size_t)(p - fraction);
    }
    if (!digits)
        return LITERAL_NONE;
    if (*p == 'e' || *p == 'E') {
        const char *exponent = p + 1 + (p[1] == '+' || p[1] == '-');
        p = skip_digits(exponent);
        if (p == exponent)
            return LITERAL_NONE;
    }
    return *p ? LITERAL_NONE : LITERAL_DECIMAL;
}

/* Returns the string without surrounding spaces, zero-terminated: in `small`, or in the arena if it is long.
 * A string with a zero byte becomes empty, which is not a number. */
enum { INLINE_BYTES = 64 };
static dq_status trimmed(const dq_op_call *call, dq_string s, char small[INLINE_BYTES], const char **out,
                         dq_error *err)
{
    const char *from = s.bytes;
    size_t length = s.length;
    for (; length && isspace((unsigned char)from[0]); from++)
        length--;
    while (length && isspace((unsigned char)from[length - 1]))
        length--;
    if (length && memchr(from, 0, length))
        length = 0;
    if (length >= INLINE_BYTES) {
        *out = dq_arena_string(call->strings, from, length);
        return *out ? DQ_OK : dq_no_memory(err, length, "a string");
    }
    if (length)
        memcpy(small, from, length);
    small[length] = '\0';
    *out = small;
    return DQ_OK;
}

/* ---- Decimal to double, rounded to odd ---------------------------------------------------------------- */

/* Reads a decimal number digit by digit, without its sign. */
typedef struct decimal {
    const char *next; /* the first digit that is not 0; NULL: the number is 0 */
    long exponent;    /* of that digit */
} decimal;

static decimal read_decimal(const char *text)
{
    const char *p = text + (*text == '+' || *text == '-');
    long whole = skip_digits(p) - p, position = 0, exponent = 0;
    const char *e = strpbrk(p, "eE");
    if (e) {
        exponent = strtol(e + 1, NULL, 10);
        exponent = exponent > LONG_MAX / 4 ? LONG_MAX / 4 : exponent < LONG_MIN / 4 ? LONG_MIN / 4 : exponent;
    }
    for (; *p && p != e; p++) {
        if (*p == '.')
            continue;
        if (*p != '0')
            return (decimal){p, whole - 1 - position + exponent};
        position++;
    }
    return (decimal){NULL, 0};
}

static int next_digit(decimal *d)
{
    if (*d->next == '.')
        d->next++;
    return *d->next >= '0' && *d->next <= '9' ? *d->next++ - '0' : -1;
}

/* The sign of |text| - x, exactly. Requires x finite and not negative. */
static int compare_magnitude(const char *text, double x)
{
    char exact[800]; /* 767 significant digits represent any double exactly */
    snprintf(exact, sizeof exact, "%.770e", x);
    decimal a = read_decimal(text), b = read_decimal(exact);
    if (!a.next || !b.next)
        return (a.next != NULL) - (b.next != NULL);
    if (a.exponent != b.exponent)
        return a.exponent > b.exponent ? 1 : -1;
    for (;;) {
        int digit_a = next_digit(&a), digit_b = next_digit(&b);
        if (digit_a < 0 && digit_b < 0)
            return 0;
        digit_a = digit_a < 0 ? 0 : digit_a;
        digit_b = digit_b < 0 ? 0 : digit_b;
        if (digit_a != digit_b)
            return digit_a > digit_b ? 1 : -1;
    }
}

/* Reads the number as a double, rounded to odd. A later rounding to a narrower type then rounds as if from
 * the decimal number. */
static double decimal_to_odd(const char *text)
{
    double x = strtod(text, NULL), magnitude = fabs(x);
    if (!isfinite(x))
        return x;
    int side = compare_magnitude(text, magnitude);
    union {
        double d;
        uint64_t u;
    } v = {.d = magnitude};
    if (side != 0 && (v.u & 1) == 0) {
        if (side < 0)
            v.u--;
        else if (magnitude < DBL_MAX)
            v.u++;
    }
    return copysign(v.d, x);
}

/* ---- From strings -------------------------------------------------------------------------------------- */

/* Reads a whole number modulo 2^64. */
static int64_t whole_number(const char *text)
{
    bool negative = *text == '-';
    uint64_t value = 0;
    for (const char *p = text + (*text == '+' || *text == '-'); *p; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    return (int64_t)(negative ? 0 - value : value);
}

static double number(literal kind, const char *text, bool odd)
{
    if (kind == LITERAL_INF)
        return *text == '-' ? -(double)INFINITY : (double)INFINITY;
    if (kind == LITERAL_NAN)
        return (double)NAN;
    return odd ? decimal_to_odd(text) : strtod(text, NULL);
}

static dq_status read_element(const dq_op_call *call, size_t i, bool saturate, dq_round round, dq_error *err)
{
    dq_string s = dq_data(call->in[0], dq_string)[i];
    dq_tensor *y = call->out[0];
    char small[INLINE_BYTES];
    const char *text;
    DQ_TRY(trimmed(call, s, small, &text, err));
    literal kind = classify(text);
    bool is_true = strcasecmp(text, "true") == 0;
    if (y->dtype == DQ_BOOL && (is_true || strcasecmp(text, "false") == 0)) {
        dq_data(y, uint8_t)[i] = is_true;
        return DQ_OK;
    }
    if (kind == LITERAL_NONE)
        return dq_call_fail(
            call, err, DQ_BAD_INPUT, "element %zu of input 0 is '%.*s', expected a number for %s", i,
            (int)(s.length < 64 ? s.length : 64), s.length ? s.bytes : "", dq_dtype_name(y->dtype));
    if (dq_dtype_is_float(y->dtype)) {
        double value = number(kind, text, y->dtype != DQ_DOUBLE);
        if (isinf(value) && dq_cast_infinity_is_nan(call, saturate))
            value = (double)NAN;
        dq_store_floats(y->dtype, y->data, i, 1, &value, saturate, round);
        return DQ_OK;
    }
    int64_t value;
    if (y->dtype == DQ_BOOL)
        value = number(kind, text, true) != 0; /* to odd, so that a tiny number is not 0 */
    else if (kind == LITERAL_WHOLE)
        value = whole_number(text);
    else
        value = dq_cast_to_int(number(kind, text, false), y->dtype);
    dq_store_ints(y->dtype, y->data, i, 1, &value);
    return DQ_OK;
}

/* ---- To strings ---------------------------------------------------------------------------------------- */

enum { TEXT = 40 }; /* -d.dddddddddddddddde+308 and -0.0001 with 17 digits are shorter */

static bool reads_back(const char *text, dq_dtype dtype, double x)
{
    double back = strtod(text, NULL);
    uint64_t element = 0;
    dq_store_floats(dtype, &element, 0, 1, &back, true, DQ_ROUND_NEAREST);
    dq_load_doubles(dtype, &element, 0, 1, &back);
    return back == x;
}

/* Converts "-d.ddde-XX" to positional notation if its exponent is in [-4, 15]. */
static void plain(const char *scientific, char out[TEXT])
{
    const char *p = scientific, *e = strchr(scientific, 'e');
    int exponent = atoi(e + 1), digits = 0;
    char digit[TEXT] = "", *to = out;
    if (*p == '-')
        *to++ = *p++;
    for (; p < e; p++)
        if (*p != '.')
            digit[digits++] = *p;
    if (exponent < -4 || exponent > 15) {
        strcpy(out, scientific); /* printf writes the exponent with two digits or more */
        return;
    }
    if (exponent < 0) {
        *to++ = '0';
        *to++ = '.';
        for (int i = -1; i > exponent; i--)
            *to++ = '0';
    }
    for (int i = 0; i < digits || i <= exponent; i++) {
        *to++ = i < digits ? digit[i] : '0';
        if (i == exponent)
            *to++ = '.';
    }
    if (to[-1] == '.')
        *to++ = '0';
    *to = '\0';
}

static void print_float(dq_dtype dtype, double x, char out[TEXT])
{
    if (!isfinite(x)) {
        snprintf(out, TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    char scientific[TEXT];
    for (int digits = 0; digits < 17; digits++) {
        snprintf(scientific, sizeof scientific, "%.*e", digits, x);
        if (reads_back(scientific, dtype, x))
            break;
    }
    plain(scientific, out);
}

static dq_status print_element(const dq_op_call *call, size_t i, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    char text[TEXT];
    if (x->dtype == DQ_BOOL)
        snprintf(text, sizeof text, "%s", dq_data(x, uint8_t)[i] ? "True" : "False");
    else if (dq_dtype_is_float(x->dtype))
        print_float(x->dtype, dq_tensor_get_double(x, i), text);
    else if (x->dtype == DQ_UINT64)
        snprintf(text, sizeof text, "%" PRIu64, dq_data(x, uint64_t)[i]);
    else
        snprintf(text, sizeof text, "%" PRId64, dq_tensor_get_int(x, i));
    dq_string *y = &dq_data(call->out[0], dq_string)[i];
    y->length = strlen(text);
    y->bytes = dq_arena_string(call->strings, text, y->length);
    return y->bytes ? DQ_OK : dq_no_memory(err, y->length, "a string");
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* Runs on one thread, as all strings share an arena. The C locale makes the decimal separator a point. */
dq_status dq_cast_strings(const dq_op_call *call, bool saturate, dq_round round, dq_error *err)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "the system refused the C locale");
    locale_t before = uselocale(c);
    dq_status status = DQ_OK;
    const dq_tensor *x = call->in[0];
    if (x->dtype == DQ_STRING)
        dq_clear_elements(call->out[0]->dtype, call->out[0]->data, 0, x->count);
    for (size_t i = 0; i < x->count && status == DQ_OK; i++)
        status =
            x->dtype == DQ_STRING ? read_element(call, i, saturate, round, err) : print_element(call, i, err);
    uselocale(before);
    freelocale(c);
    return status;
}
