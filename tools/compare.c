#include "compare.h"

#include "io/common.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_TEXT = 64, INDEX_TEXT = DQ_MAX_RANK * 21 + 3 };

/* Distance of two integers of one type; fits in uint64_t for every pair. */
static uint64_t distance(bool is_signed, uint64_t a, uint64_t b)
{
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    return less ? b - a : a - b;
}

static void integers(const dq_tensor *got, const dq_tensor *want, compare_result *r, uint64_t *quanta)
{
    bool is_signed = io_is_signed(dq_tensor_dtype(got));
    for (size_t i = 0; i < r->count; i++) {
        uint64_t d = distance(is_signed, io_get_int(got, i), io_get_int(want, i));
        if (!d)
            continue;
        r->differ++;
        if (d > *quanta) {
            *quanta = d;
            r->where = i;
        }
    }
    r->largest = (double)*quanta;
}

static bool text_equal(const dq_tensor *got, const dq_tensor *want, size_t i)
{
    size_t a = 0, b = 0;
    const char *s = dq_tensor_string(got, i, &a), *t = dq_tensor_string(want, i, &b);
    return a == b && (a == 0 || memcmp(s, t, a) == 0);
}

static void strings(const dq_tensor *got, const dq_tensor *want, compare_result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (text_equal(got, want, i))
            continue;
        if (!r->differ++)
            r->where = i;
    }
    r->largest = (double)NAN;
}

/* Parts 0 and 1 of a complex element; part 0 of any other. */
static double part(const dq_tensor *t, size_t i, int which)
{
    dq_dtype dtype = dq_tensor_dtype(t);
    if (dtype == DQ_COMPLEX64)
        return (double)((const float *)dq_tensor_data(t))[2 * i + (size_t)which];
    if (dtype == DQ_COMPLEX128)
        return ((const double *)dq_tensor_data(t))[2 * i + (size_t)which];
    return which ? 0 : dq_tensor_value(t, i);
}

/* Whether element i is equal, and how far apart the two are: NaN when no number says so. */
static bool close_enough(const dq_tensor *got, const dq_tensor *want, size_t i, const compare_tolerance *tol,
                         double *apart)
{
    double g0 = part(got, i, 0), w0 = part(want, i, 0), g1 = part(got, i, 1), w1 = part(want, i, 1);
    bool nan_got = isnan(g0) || isnan(g1), nan_want = isnan(w0) || isnan(w1);
    *apart = (double)NAN;
    if (nan_got || nan_want)
        return nan_got && nan_want;
    if (g0 == w0 && g1 == w1)
        return true;
    if (isinf(g0) || isinf(g1) || isinf(w0) || isinf(w1))
        return false;
    *apart = g1 == 0 && w1 == 0 ? fabs(g0 - w0) : hypot(g0 - w0, g1 - w1);
    double scale = w1 == 0 ? fabs(w0) : hypot(w0, w1);
    return *apart <= tol->atol + tol->rtol * scale;
}

static void floats(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tol,
                   compare_result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        double apart;
        if (close_enough(got, want, i, tol, &apart))
            continue;
        /* A difference that no number expresses is larger than any other; the first of them stays. */
        bool first = !r->differ++;
        if (first || (!isnan(r->largest) && (isnan(apart) || apart > r->largest))) {
            r->largest = apart;
            r->where = i;
        }
    }
}

static const char *index_text(const dq_tensor *t, size_t i, char buffer[INDEX_TEXT])
{
    size_t rank = dq_tensor_rank(t);
    const int64_t *dims = dq_tensor_dims(t);
    int64_t at[DQ_MAX_RANK] = {0};
    for (size_t axis = rank; axis-- > 0;) {
        at[axis] = (int64_t)(i % (size_t)dims[axis]);
        i /= (size_t)dims[axis];
    }
    size_t used = (size_t)snprintf(buffer, INDEX_TEXT, "[");
    for (size_t axis = 0; axis < rank; axis++)
        used += (size_t)snprintf(buffer + used, INDEX_TEXT - used, "%s%" PRId64, axis ? "," : "", at[axis]);
    snprintf(buffer + used, INDEX_TEXT - used, "]");
    return buffer;
}

static const char *value_text(const dq_tensor *t, size_t i, char buffer[VALUE_TEXT])
{
    dq_dtype dtype = dq_tensor_dtype(t);
    if (dtype == DQ_STRING) {
        size_t length = 0;
        const char *s = dq_tensor_string(t, i, &length);
        snprintf(buffer, VALUE_TEXT, length > 40 ? "'%.*s…'" : "'%.*s'", (int)(length > 40 ? 40 : length),
                 length ? s : "");
    } else if (dtype == DQ_BOOL) {
        snprintf(buffer, VALUE_TEXT, "%s", io_get_int(t, i) ? "true" : "false");
    } else if (io_is_integer(dtype)) {
        if (io_is_signed(dtype))
            snprintf(buffer, VALUE_TEXT, "%" PRId64, (int64_t)io_get_int(t, i));
        else
            snprintf(buffer, VALUE_TEXT, "%" PRIu64, io_get_int(t, i));
    } else if (dtype == DQ_COMPLEX64 || dtype == DQ_COMPLEX128) {
        snprintf(buffer, VALUE_TEXT, "%.9g%+.9gi", part(t, i, 0), part(t, i, 1));
    } else {
        snprintf(buffer, VALUE_TEXT, dtype == DQ_DOUBLE ? "%.17g" : "%.9g", dq_tensor_value(t, i));
    }
    return buffer;
}

static void say_difference(const dq_tensor *got, const dq_tensor *want, uint64_t quanta, compare_result *r)
{
    char at[INDEX_TEXT], g[VALUE_TEXT], w[VALUE_TEXT], by[VALUE_TEXT] = "";
    if (quanta && io_is_integer(dq_tensor_dtype(got)))
        snprintf(by, sizeof by, "the largest difference is %" PRIu64 " %s, ", quanta,
                 quanta == 1 ? "quantum" : "quanta");
    else if (!isnan(r->largest))
        snprintf(by, sizeof by, "the largest difference is %.3g, ", r->largest);
    snprintf(r->sentence, sizeof r->sentence, "%zu of %zu elements differ; %sat %s: got %s, wanted %s",
             r->differ, r->count, by, index_text(got, r->where, at), value_text(got, r->where, g),
             value_text(want, r->where, w));
}

static bool same_shape(const dq_tensor *got, const dq_tensor *want)
{
    size_t rank = dq_tensor_rank(got);
    if (rank != dq_tensor_rank(want))
        return false;
    for (size_t i = 0; i < rank; i++) {
        if (dq_tensor_dims(got)[i] != dq_tensor_dims(want)[i])
            return false;
    }
    return true;
}

void compare_tensors(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tolerance,
                     compare_result *result)
{
    *result = (compare_result){.count = dq_tensor_count(got)};
    dq_dtype dtype = dq_tensor_dtype(got);
    if (dtype != dq_tensor_dtype(want) || !same_shape(got, want)) {
        char g[IO_TYPE_TEXT], w[IO_TYPE_TEXT];
        io_type_text(dtype, dq_tensor_rank(got), dq_tensor_dims(got), g);
        io_type_text(dq_tensor_dtype(want), dq_tensor_rank(want), dq_tensor_dims(want), w);
        snprintf(result->sentence, sizeof result->sentence, "got %.150s, wanted %.150s", g, w);
        return;
    }
    result->comparable = true;
    uint64_t quanta = 0;
    if (dtype == DQ_STRING)
        strings(got, want, result);
    else if (io_is_integer(dtype) || dtype == DQ_BOOL)
        integers(got, want, result, &quanta);
    else
        floats(got, want, tolerance, result);
    result->same = result->differ == 0;
    if (result->same)
        snprintf(result->sentence, sizeof result->sentence, "equal");
    else
        say_difference(got, want, quanta, result);
}
