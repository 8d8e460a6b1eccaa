/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rows.h"

#include <math.h>
#include <string.h>

#define LOAD(type)                                                                                           \
    do {                                                                                                     \
        const type *from = (const type *)data + first;                                                       \
        for (size_t i = 0; i < n; i++)                                                                       \
            out[i] = from[i];                                                                                \
    } while (0)

#define STORE(type)                                                                                          \
    do {                                                                                                     \
        type *to = (type *)data + first;                                                                     \
        for (size_t i = 0; i < n; i++)                                                                       \
            to[i] = (type)in[i];                                                                             \
    } while (0)

void dq_load_ints(dq_dtype dtype, const void *data, size_t first, size_t n, int64_t *out)
{
    switch (dtype) {
    case DQ_BOOL:
    case DQ_UINT8:
        LOAD(uint8_t);
        return;
    case DQ_INT8:
        LOAD(int8_t);
        return;
    case DQ_UINT16:
        LOAD(uint16_t);
        return;
    case DQ_INT16:
        LOAD(int16_t);
        return;
    case DQ_UINT32:
        LOAD(uint32_t);
        return;
    case DQ_INT32:
        LOAD(int32_t);
        return;
    case DQ_UINT64:
    case DQ_INT64:
        memcpy(out, (const int64_t *)data + first, n * sizeof *out);
        return;
    default: {
        const dq_dtype_row *row = dq_dtype_get(dtype);
        unsigned unused = row->cls == DQ_CLASS_INT ? 64u - row->bits : 0;
        for (size_t i = 0; i < n; i++)
            out[i] = (int64_t)(dq_get_bits(data, row->bits, first + i) << unused) >> unused;
    }
    }
}

size_t dq_load_indices(const dq_tensor *t, size_t first, size_t n, int64_t length, size_t *out)
{
    uint64_t outside = 0, most = (uint64_t)length - 1;
    size_t good = 0;
    const uint64_t *from = out;
    if (t->dtype == DQ_INT64)
        from = dq_data(t, uint64_t) + first;
    else
        dq_load_ints(t->dtype, t->data, first, n, (int64_t *)(void *)out);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = from[i];
        x += (0 - (x >> 63)) & (uint64_t)length;
        out[i] = (size_t)x;
        outside |= x | (most - x); /* the highest bit: negative, or above `most` */
    }
    if (outside >> 63 == 0)
        return n;
    while (out[good] < (size_t)length)
        good++;
    return good;
}

void dq_load_doubles(dq_dtype dtype, const void *data, size_t first, size_t n, double *out)
{
    switch (dtype) {
    case DQ_FLOAT: {
        const float *from = (const float *)data + first;
        for (size_t i = 0; i < n; i++)
            out[i] = (double)from[i];
        return;
    }
    case DQ_DOUBLE:
        memcpy(out, (const double *)data + first, n * sizeof *out);
        return;
    case DQ_FLOAT16: {
        const uint16_t *from = (const uint16_t *)data + first;
        for (size_t i = 0; i < n; i++)
            out[i] = (double)dq_f16_to_f32(from[i]);
        return;
    }
    case DQ_UINT8:
        LOAD(uint8_t);
        return;
    case DQ_INT8:
        LOAD(int8_t);
        return;
    case DQ_INT32:
        LOAD(int32_t);
        return;
    case DQ_UINT64:
        for (size_t i = 0; i < n; i++)
            out[i] = (double)((const uint64_t *)data)[first + i];
        return;
    default:
        break;
    }
    const dq_dtype_row *row = dq_dtype_get(dtype);
    if (row->cls == DQ_CLASS_FLOAT) {
        for (size_t i = 0; i < n; i++)
            out[i] = (double)dq_decode_float(dtype, (uint32_t)dq_get_bits(data, row->bits, first + i));
        return;
    }
    for (size_t done = 0; done < n;) {
        int64_t ints[64];
        size_t some = n - done < 64 ? n - done : 64;
        dq_load_ints(dtype, data, first + done, some, ints);
        for (size_t i = 0; i < some; i++)
            out[done + i] = (double)ints[i];
        done += some;
    }
}

void dq_store_ints(dq_dtype dtype, void *data, size_t first, size_t n, const int64_t *in)
{
    unsigned bits = dq_dtype_get(dtype)->bits;
    switch (bits) {
    case 8:
        STORE(uint8_t);
        return;
    case 16:
        STORE(uint16_t);
        return;
    case 32:
        STORE(uint32_t);
        return;
    case 64:
        STORE(uint64_t);
        return;
    default:
        for (size_t i = 0; i < n; i++)
            dq_put_bits(data, bits, first + i, (uint64_t)in[i]);
    }
}

void dq_store_floats(dq_dtype dtype, void *data, size_t first, size_t n, const double *in, bool saturate,
                     dq_round round)
{
    if (dtype == DQ_FLOAT) {
        float *to = (float *)data + first;
        for (size_t i = 0; i < n; i++)
            to[i] = (float)in[i];
        return;
    }
    if (dtype == DQ_DOUBLE) {
        memcpy((double *)data + first, in, n * sizeof *in);
        return;
    }
    unsigned bits = dq_dtype_get(dtype)->bits;
    for (size_t i = 0; i < n; i++)
        dq_put_bits(data, bits, first + i, dq_encode_float(dtype, dq_round_to_odd(in[i]), saturate, round));
}

/* Without branches, so that the compiler vectorizes the loop. */
void dq_round_all_to_odd(const double *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++) {
        const float nearest = (float)x[i];
        const double back = (double)nearest;
        uint32_t bits;
        memcpy(&bits, &nearest, sizeof bits);
        bits = (bits - (fabs(back) > fabs(x[i]))) | (back != x[i]);
        memcpy(&y[i], &bits, sizeof bits);
    }
}

void dq_load_floats(const dq_kernels *k, dq_dtype dtype, const void *data, size_t first, size_t n, float *out)
{
    const uint16_t *halves = (const uint16_t *)data + first;
    switch (dtype) {
    case DQ_FLOAT:
        memcpy(out, (const float *)data + first, n * sizeof *out);
        return;
    case DQ_FLOAT16:
        k->convert_f16_f32(halves, n, out);
        return;
    case DQ_BFLOAT16:
        for (size_t i = 0; i < n; i++)
            out[i] = dq_bf16_to_f32(halves[i]);
        return;
    default:
        if (dq_codec_has_rows(dtype)) {
            dq_decode_bytes(dtype, (const uint8_t *)data + first, n, out);
            return;
        }
        if (dq_dtype_bits(dtype) == 4) {
            float table[16];
            for (uint32_t i = 0; i < 16; i++)
                table[i] = dq_decode_float(dtype, i);
            for (size_t i = 0; i < n; i++)
                out[i] = table[((const uint8_t *)data)[(first + i) / 2] >> (first + i) % 2 * 4 & 15];
            return;
        }
        for (size_t i = 0; i < n; i++)
            out[i] = dq_decode_float(dtype, (uint32_t)dq_get_bits(data, dq_dtype_bits(dtype), first + i));
    }
}

void dq_store_from_floats(const dq_kernels *k, dq_dtype dtype, void *data, size_t first, size_t n,
                          const float *in, bool saturate)
{
    uint16_t *halves = (uint16_t *)data + first;
    switch (dtype) {
    case DQ_FLOAT:
        memcpy((float *)data + first, in, n * sizeof *in);
        return;
    case DQ_FLOAT16:
        k->convert_f32_f16(in, n, halves);
        return;
    case DQ_BFLOAT16:
        dq_encode_bf16(in, n, halves);
        return;
    default:
        if (dq_codec_has_rows(dtype)) {
            dq_encode_bytes(dtype, in, n, saturate, (uint8_t *)data + first);
            return;
        }
        for (size_t i = 0; i < n; i++)
            dq_put_bits(data, dq_dtype_bits(dtype), first + i,
                        dq_encode_float(dtype, in[i], saturate, DQ_ROUND_NEAREST));
    }
}

static int8_t packed_value(unsigned raw, unsigned bits, bool is_signed)
{
    unsigned unused = 8 - bits;
    return is_signed ? (int8_t)((int8_t)(uint8_t)(raw << unused) >> unused)
                     : (int8_t)(raw & ((1u << bits) - 1));
}

void dq_load_packed(dq_dtype dtype, const void *data, size_t first, size_t n, int8_t *out)
{
    unsigned bits = dq_dtype_bits(dtype), each = 8 / bits;
    bool is_signed = dq_dtype_get(dtype)->cls == DQ_CLASS_INT;
    const uint8_t *bytes = data;
    size_t i = 0;
    if (bits == 4 && first % 2 == 0) { /* two values a byte, in a loop that the compiler vectorizes */
        const uint8_t *from = bytes + first / 2;
        for (; i < n / 2; i++) {
            out[2 * i] = is_signed ? (int8_t)((int8_t)(from[i] << 4) >> 4) : (int8_t)(from[i] & 15);
            out[2 * i + 1] = is_signed ? (int8_t)((int8_t)from[i] >> 4) : (int8_t)(from[i] >> 4);
        }
        i *= 2;
    }
    for (; i < n; i++) {
        size_t element = first + i;
        out[i] = packed_value((unsigned)bytes[element / each] >> (element % each * bits), bits, is_signed);
    }
}

void dq_store_packed(dq_dtype dtype, void *data, size_t first, size_t n, const int8_t *in)
{
    unsigned bits = dq_dtype_bits(dtype), each = 8 / bits, mask = (1u << bits) - 1;
    uint8_t *bytes = data;
    size_t i = 0;
    for (; i < n && (first + i) % each; i++)
        dq_put_bits(data, bits, first + i, (uint8_t)in[i]);
    if (bits == 4) {
        uint8_t *to = bytes + (first + i) / 2;
        const int8_t *from = in + i;
        size_t pairs = (n - i) / 2;
        for (size_t p = 0; p < pairs; p++)
            to[p] = (uint8_t)((from[2 * p] & 15) | (from[2 * p + 1] & 15) << 4);
        i += 2 * pairs;
    }
    for (; n - i >= each; i += each) {
        unsigned byte = 0;
        for (unsigned k = 0; k < each; k++)
            byte |= ((unsigned)in[i + k] & mask) << (k * bits);
        bytes[(first + i) / each] = (uint8_t)byte;
    }
    for (; i < n; i++)
        dq_put_bits(data, bits, first + i, (uint8_t)in[i]);
}

void dq_clear_elements(dq_dtype dtype, void *data, size_t begin, size_t end)
{
    size_t bits = dq_dtype_get(dtype)->bits;
    size_t from = begin / 8 * bits, to = end / 8 * bits + (end % 8 * bits + 7) / 8;
    memset((char *)data + from, 0, to - from);
}
