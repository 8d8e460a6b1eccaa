/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/random.h"

#include "io/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t hash(const char *name)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    return h;
}

static double unit(uint64_t number)
{
    return (double)(number >> 40) / 8388608.0 - 1.0;
}

static unsigned digit(uint64_t number)
{
    return (unsigned)((number >> 32) * 10 >> 32);
}

typedef struct coded {
    double value;
    uint16_t code;
} coded;

/* Orders by value. The positive one of the two zeros comes last, so that it is found. */
static int by_value(const void *a, const void *b)
{
    const coded *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (int)y->code - (int)x->code;
}

/* Lists all finite values of a float type of up to 16 bits, sorted. */
static dq_status list_codes(dq_dtype dtype, coded **out, size_t *count, dq_error *err)
{
    unsigned bits = dq_dtype_bits(dtype);
    const int64_t all = (int64_t)1 << bits;
    dq_tensor *codes = NULL;
    dq_status status = dq_tensor_create(dtype, 1, &all, &codes, err);
    coded *list = status == DQ_OK ? malloc((size_t)all * sizeof *list) : NULL;
    if (status == DQ_OK && !list)
        status = io_no_memory(err);
    size_t n = 0;
    for (unsigned code = 0; status == DQ_OK && code < all; code++) {
        uint16_t wide = (uint16_t)code;
        uint8_t *data = dq_tensor_mutable_data(codes);
        if (bits < 8)
            io_put_bits(data, bits, code, code);
        else
            memcpy(data + code * (bits / 8), &wide, bits / 8);
        double value = dq_tensor_value(codes, code);
        if (isfinite(value))
            list[n++] = (coded){value, wide};
    }
    dq_tensor_free(codes);
    if (status != DQ_OK)
        return status;
    qsort(list, n, sizeof *list, by_value);
    *out = list;
    *count = n;
    return DQ_OK;
}

static unsigned nearest_below(const coded *list, size_t count, double value)
{
    if (list[0].value >= 0)
        value = fabs(value);
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].value <= value)
            low = middle;
        else
            high = middle;
    }
    return list[low].code;
}

static void put(dq_tensor *tensor, unsigned bits, size_t i, uint64_t value)
{
    uint8_t *data = dq_tensor_mutable_data(tensor);
    if (bits < 8)
        io_put_bits(data, bits, i, (unsigned)value);
    else
        memcpy(data + i * (bits / 8), &value, bits / 8);
}

static dq_status fill_narrow_floats(dq_tensor *tensor, uint64_t state, dq_error *err)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    coded *list = NULL;
    size_t count = 0;
    dq_status status = list_codes(dtype, &list, &count, err);
    for (size_t i = 0; status == DQ_OK && i < dq_tensor_count(tensor); i++)
        put(tensor, dq_dtype_bits(dtype), i, nearest_below(list, count, unit(next(&state))));
    free(list);
    return status;
}

static dq_status fill_strings(dq_tensor *tensor, uint64_t state, dq_error *err)
{
    for (size_t i = 0; i < dq_tensor_count(tensor); i++) {
        char text[2] = {'s', (char)('0' + digit(next(&state)))};
        dq_status status = dq_tensor_set_string(tensor, i, text, sizeof text, err);
        if (status != DQ_OK)
            return status;
    }
    return DQ_OK;
}

static void fill_floats(dq_tensor *tensor, uint64_t state)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    bool single = dtype == DQ_FLOAT || dtype == DQ_COMPLEX64;
    size_t count = dq_tensor_size(tensor) / (single ? sizeof(float) : sizeof(double));
    for (size_t i = 0; i < count; i++) {
        double value = unit(next(&state));
        if (single)
            ((float *)dq_tensor_mutable_data(tensor))[i] = (float)value;
        else
            ((double *)dq_tensor_mutable_data(tensor))[i] = value;
    }
}

static void fill_integers(dq_tensor *tensor, uint64_t state)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    unsigned bits = dq_dtype_bits(dtype);
    for (size_t i = 0; i < dq_tensor_count(tensor); i++) {
        uint64_t number = next(&state);
        put(tensor, bits, i,
            dtype == DQ_BOOL ? number >> 63
            : bits <= 16     ? number >> (64 - bits)
                             : digit(number));
    }
}

dq_status cli_random_fill(dq_tensor *tensor, const char *name, uint64_t seed, dq_error *err)
{
    uint64_t state = seed ^ hash(name);
    dq_dtype dtype = dq_tensor_dtype(tensor);
    if (dtype == DQ_STRING)
        return fill_strings(tensor, state, err);
    if (dtype == DQ_FLOAT || dtype == DQ_DOUBLE || dtype == DQ_COMPLEX64 || dtype == DQ_COMPLEX128) {
        fill_floats(tensor, state);
        return DQ_OK;
    }
    if (!io_is_integer(dtype) && dtype != DQ_BOOL)
        return fill_narrow_floats(tensor, state, err);
    fill_integers(tensor, state);
    return DQ_OK;
}
