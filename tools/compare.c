/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include "io/common.h"
#include "io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The distance of two integers of one type; always fits in uint64_t. */
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

/* hypot without overflow or underflow of squares. Programs that must run on glibc before 2.35 cannot use that
 * of the C library. */
static double magnitude(double re, double im)
{
    const double a = fabs(re), b = fabs(im), larger = a > b ? a : b, smaller = a > b ? b : a;
    const double ratio = larger > 0 ? smaller / larger : 0;
    return larger * sqrt(1 + ratio * ratio);
}

/* Whether element i is equal. *distance: the difference of the two; NaN if it is no number. */
static bool close_enough(const dq_tensor *got, const dq_tensor *want, size_t i, const compare_tolerance *tol,
                         double *distance)
{
    double g0 = io_part(got, i, 0), w0 = io_part(want, i, 0), g1 = io_part(got, i, 1),
           w1 = io_part(want, i, 1);
    bool nan_got = isnan(g0) || isnan(g1), nan_want = isnan(w0) || isnan(w1);
    *distance = (double)NAN;
    if (nan_got || nan_want)
        return nan_got && nan_want;
    if (g0 == w0 && g1 == w1)
        return tol->rtol >= 0 || (!signbit(g0) == !signbit(w0) && !signbit(g1) == !signbit(w1));
    if (isinf(g0) || isinf(g1) || isinf(w0) || isinf(w1))
        return false;
    *distance = magnitude(g0 - w0, g1 - w1);
    double scale = magnitude(w0, w1);
    return *distance <= tol->atol + tol->rtol * scale;
}

static void floats(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tol,
                   compare_result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        double distance;
        if (close_enough(got, want, i, tol, &distance))
            continue;
        /* A difference that is no number is larger than any other; the first one stays. */
        bool first = !r->differ++;
        if (first || (!isnan(r->largest) && (isnan(distance) || distance > r->largest))) {
            r->largest = distance;
            r->where = i;
        }
    }
}

static void say_difference(const dq_tensor *got, const dq_tensor *want, uint64_t quanta, compare_result *r)
{
    int digits = dq_dtype_bits(dq_tensor_dtype(got)) > 64 || dq_tensor_dtype(got) == DQ_DOUBLE ? 17 : 9;
    char at[IO_INDEX_TEXT], g[IO_VALUE_TEXT], w[IO_VALUE_TEXT], by[64] = "";
    if (quanta && io_is_integer(dq_tensor_dtype(got)))
        snprintf(by, sizeof by, "the largest difference is %" PRIu64 " %s, ", quanta,
                 quanta == 1 ? "quantum" : "quanta");
    else if (dq_tensor_dtype(got) != DQ_BOOL && !isnan(r->largest))
        snprintf(by, sizeof by, "the largest difference is %.3g, ", r->largest);
    snprintf(r->message, sizeof r->message, "%zu of %zu elements differ; %sat %s: got %s, expected %s",
             r->differ, r->count, by, io_index_text(got, r->where, at),
             io_value_text(got, r->where, digits, g), io_value_text(want, r->where, digits, w));
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

static const char *kind_name(const dq_tensor *t)
{
    return dq_tensor_kind(t) == DQ_KIND_TENSOR     ? "a tensor"
           : dq_tensor_kind(t) == DQ_KIND_SEQUENCE ? "a sequence"
                                                   : "an optional";
}

/* Compares two lists item by item, and reports the first that differs. */
static void lists(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tolerance,
                  compare_result *result)
{
    size_t count = dq_tensor_count(got);
    *result = (compare_result){.same = true, .comparable = true, .count = count, .message = "equal"};
    if (count != dq_tensor_count(want) || dq_tensor_dtype(got) != dq_tensor_dtype(want)) {
        result->same = result->comparable = false;
        snprintf(result->message, sizeof result->message, "got %s of %zu items of %s, expected %zu of %s",
                 kind_name(got), count, dq_dtype_name(dq_tensor_dtype(got)), dq_tensor_count(want),
                 dq_dtype_name(dq_tensor_dtype(want)));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        compare_result item;
        compare_tensors(dq_tensor_item(got, i), dq_tensor_item(want, i), tolerance, &item);
        result->differ += !item.same;
        if (item.same || !result->same)
            continue;
        result->same = false;
        result->where = i;
        result->largest = item.largest;
        snprintf(result->message, sizeof result->message, "item %zu: %.600s", i, item.message);
    }
}

void compare_tensors(const dq_tensor *got, const dq_tensor *want, const compare_tolerance *tolerance,
                     compare_result *result)
{
    if (dq_tensor_kind(got) != dq_tensor_kind(want)) {
        *result = (compare_result){.count = dq_tensor_count(got)};
        snprintf(result->message, sizeof result->message, "got %s, expected %s", kind_name(got),
                 kind_name(want));
        return;
    }
    if (dq_tensor_kind(got) != DQ_KIND_TENSOR) {
        lists(got, want, tolerance, result);
        return;
    }
    *result = (compare_result){.count = dq_tensor_count(got)};
    dq_dtype dtype = dq_tensor_dtype(got);
    if (dtype != dq_tensor_dtype(want) || !same_shape(got, want)) {
        char g[IO_TYPE_TEXT], w[IO_TYPE_TEXT];
        io_type_text(dtype, dq_tensor_rank(got), dq_tensor_dims(got), g);
        io_type_text(dq_tensor_dtype(want), dq_tensor_rank(want), dq_tensor_dims(want), w);
        snprintf(result->message, sizeof result->message, "got %.150s, expected %.150s", g, w);
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
        snprintf(result->message, sizeof result->message, "equal");
    else
        say_difference(got, want, quanta, result);
}
