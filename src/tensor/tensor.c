/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/tensor.h"

#include "base/checked.h"
#include "base/codec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dq_symbols_text(size_t rank, const int64_t *dims, const char *const *dim_names,
                            char buffer[DQ_SHAPE_TEXT])
{
    const size_t capacity = DQ_SHAPE_TEXT - 1; /* for all but the closing bracket */
    size_t used = (size_t)snprintf(buffer, capacity, "[");
    for (size_t i = 0; i < rank && used < capacity; i++) {
        const char *comma = i ? "," : "";
        const char *name = dim_names && dim_names[i] && *dim_names[i] ? dim_names[i] : "?";
        int n = dims[i] == -1 ? snprintf(buffer + used, capacity - used, "%s%s", comma, name)
                              : snprintf(buffer + used, capacity - used, "%s%" PRId64, comma, dims[i]);
        used += (size_t)n;
    }
    if (used >= capacity)
        used = capacity - 1; /* truncated */
    memcpy(buffer + used, "]", 2);
    return buffer;
}

const char *dq_shape_text(size_t rank, const int64_t *dims, char buffer[DQ_SHAPE_TEXT])
{
    return dq_symbols_text(rank, dims, NULL, buffer);
}

dq_status dq_tensor_set_shape(dq_tensor *t, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit,
                              dq_status fault, dq_error *err)
{
    if (rank > DQ_MAX_RANK)
        return dq_fail(err, DQ_UNSUPPORTED, "has rank %zu, expected at most %d", rank, DQ_MAX_RANK);
    char text[DQ_SHAPE_TEXT];
    size_t count = 1, size = 0;
    bool fits = true, empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return dq_fail(err, fault, "has shape %s, expected dimensions of 0 or more",
                           dq_shape_text(rank, dims, text));
        if (dims[i] == 0)
            empty = true;
        else
            fits = fits && dq_mul_size(count, (size_t)dims[i], &count);
    }
    /* An empty tensor has no bytes, but strides over its other dimensions must not overflow either. */
    fits = fits && dq_dtype_size(dtype, count, &size);
    if (!fits || (limit && size > limit))
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "has shape %s of %s, over the limit of %" PRIu64 " bytes for one tensor",
                       dq_shape_text(rank, dims, text), dq_dtype_name(dtype), limit ? limit : SIZE_MAX);
    t->kind = DQ_KIND_TENSOR;
    t->dtype = dtype;
    t->rank = (uint32_t)rank;
    if (rank)
        memmove(t->dims, dims, rank * sizeof *dims);
    t->count = empty ? 0 : count;
    t->size = empty ? 0 : size;
    return DQ_OK;
}

dq_status dq_tensor_new(dq_arena *arena, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit,
                        dq_tensor **out, dq_error *err)
{
    dq_tensor *t = DQ_NEW(arena, dq_tensor);
    if (!t)
        return dq_no_memory(err, sizeof *t, "a tensor");
    DQ_TRY(dq_tensor_set_shape(t, dtype, rank, dims, limit, DQ_BAD_MODEL, err));
    t->data = dq_arena_alloc(arena, t->size ? t->size : 1, DQ_ALIGN);
    if (!t->data)
        return dq_no_memory(err, t->size, "a tensor");
    *out = t;
    return DQ_OK;
}

void dq_tensor_expand(const dq_tensor *t, const void *from, size_t size, void *to)
{
    const size_t run = t->repeats ? t->block : t->count, bytes = run * size;
    for (size_t i = 0; i < t->count; i += run)
        memcpy((char *)to + i * size,
               (const char *)from + (t->repeats ? dq_tensor_stored_index(t, i) : i) * size, bytes);
}

bool dq_tensor_same_shape(const dq_tensor *a, const dq_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0);
}

bool dq_tensor_overlap(const dq_tensor *a, const dq_tensor *b)
{
    const uintptr_t a_at = (uintptr_t)a->data, b_at = (uintptr_t)b->data;
    return a->size && b->size && a_at < b_at + b->size && b_at < a_at + a->size;
}

uint64_t dq_get_bits(const void *data, unsigned bits, size_t i)
{
    const uint8_t *bytes = data;
    uint64_t value = 0;
    if (bits >= 8) {
        switch (bits) {
        case 8:
            return bytes[i];
        case 16: {
            uint16_t v;
            memcpy(&v, bytes + 2 * i, 2);
            return v;
        }
        case 32: {
            uint32_t v;
            memcpy(&v, bytes + 4 * i, 4);
            return v;
        }
        default:
            memcpy(&value, bytes + 8 * i, 8);
            return value;
        }
    }
    /* Byte with the lowest bit of the element. The order of operations keeps i * bits from overflowing. */
    size_t first = i / 8 * bits + i % 8 * bits / 8;
    unsigned shift = (unsigned)(i % 8 * bits % 8);
    value = bytes[first];
    if (shift + bits > 8)
        value |= (uint64_t)bytes[first + 1] << 8;
    return value >> shift & ((1u << bits) - 1);
}

void dq_put_bits(void *data, unsigned bits, size_t i, uint64_t value)
{
    uint8_t *bytes = data;
    if (bits >= 8) {
        switch (bits) {
        case 8:
            bytes[i] = (uint8_t)value;
            return;
        case 16: {
            uint16_t v = (uint16_t)value;
            memcpy(bytes + 2 * i, &v, 2);
            return;
        }
        case 32: {
            uint32_t v = (uint32_t)value;
            memcpy(bytes + 4 * i, &v, 4);
            return;
        }
        default:
            memcpy(bytes + 8 * i, &value, 8);
            return;
        }
    }
    size_t first = i / 8 * bits + i % 8 * bits / 8;
    unsigned shift = (unsigned)(i % 8 * bits % 8);
    unsigned mask = (1u << bits) - 1;
    unsigned put = (unsigned)value & mask;
    bytes[first] = (uint8_t)((bytes[first] & ~(mask << shift)) | put << shift);
    if (shift + bits > 8)
        bytes[first + 1] = (uint8_t)((bytes[first + 1] & ~(mask >> (8 - shift))) | put >> (8 - shift));
}

int64_t dq_tensor_any_int(const dq_tensor *t, size_t i)
{
    const dq_dtype_row *row = dq_dtype_get(t->dtype);
    uint64_t raw = dq_get_bits(t->data, row->bits, i);
    if (row->cls != DQ_CLASS_INT || row->bits == 64)
        return (int64_t)raw;
    unsigned unused = 64u - row->bits;
    return (int64_t)(raw << unused) >> unused;
}

void dq_tensor_put_int(dq_tensor *t, size_t i, int64_t value)
{
    dq_put_bits(t->data, dq_dtype_get(t->dtype)->bits, i, (uint64_t)value);
}

double dq_tensor_any_double(const dq_tensor *t, size_t i)
{
    const dq_dtype_row *row = dq_dtype_get(t->dtype);
    switch (row->cls) {
    case DQ_CLASS_INT:
    case DQ_CLASS_BOOL:
        return (double)dq_tensor_get_int(t, i);
    case DQ_CLASS_UINT:
        return (double)(uint64_t)dq_tensor_get_int(t, i);
    case DQ_CLASS_COMPLEX:
        return t->dtype == DQ_COMPLEX64 ? (double)dq_data(t, float)[2 * i] : dq_data(t, double)[2 * i];
    case DQ_CLASS_FLOAT:
        if (t->dtype == DQ_DOUBLE)
            return dq_data(t, double)[i];
        return (double)dq_decode_float(t->dtype, (uint32_t)dq_get_bits(t->data, row->bits, i));
    default:
        return (double)NAN;
    }
}

float dq_tensor_get_float(const dq_tensor *t, size_t i)
{
    if (t->dtype == DQ_FLOAT)
        return dq_data(t, float)[i];
    uint16_t bits = dq_data(t, uint16_t)[i];
    return t->dtype == DQ_FLOAT16 ? dq_f16_to_f32(bits) : dq_bf16_to_f32(bits);
}

static int64_t cut(double x, dq_dtype dtype)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    if (isnan(x))
        return 0;
    if (x <= (double)row->min)
        return row->min;
    if (dtype == DQ_UINT64)
        return (int64_t)(x >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x);
    return x >= (double)row->max ? row->max : (int64_t)x;
}

void dq_tensor_put_double(dq_tensor *t, size_t i, double value)
{
    const dq_dtype_row *row = dq_dtype_get(t->dtype);
    if (t->dtype == DQ_FLOAT)
        dq_data(t, float)[i] = (float)value;
    else if (t->dtype == DQ_DOUBLE)
        dq_data(t, double)[i] = value;
    else if (row->cls == DQ_CLASS_FLOAT)
        dq_put_bits(t->data, row->bits, i,
                    dq_encode_float(t->dtype, dq_round_to_odd(value), true, DQ_ROUND_NEAREST));
    else
        dq_tensor_put_int(t, i, cut(value, t->dtype));
}
