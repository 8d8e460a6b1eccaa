/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention/kv_cache.h"

#include "base/cpu.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

dq_status dq_kv_cache_infer(const dq_op_call *call, dq_dtype dtype, size_t heads, size_t size,
                            const char *quantization, uint32_t scale, dq_kv_cache *c, dq_error *err)
{
    const char *kind = dq_node_string(call->node, quantization, "NONE");
    const dq_tensor *s = dq_call_in(call, scale);
    bool four_bits = dtype == DQ_UINT8;
    int64_t bits = four_bits ? 4 : 8;
    c->dtype = dtype;
    c->size = size;
    c->row_bytes = four_bits ? size / 2 : size * (dq_dtype_get(dtype)->bits / 8u);
    c->scale = scale;
    c->scaled = dtype == DQ_INT8 || dtype == DQ_UINT8 || dtype == DQ_FLOAT8E4M3FN;
    c->per_channel = strcmp(kind, "PER_CHANNEL") == 0;
    if (c->scaled != (c->per_channel || strcmp(kind, "PER_TENSOR") == 0))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute '%s' is '%s', which does not go with a cache of %s", quantization,
                            kind, dq_dtype_get(dtype)->name);
    if (!c->scaled)
        return DQ_OK;
    if (dq_node_int(call->node, "kv_cache_bit_width", bits) != bits || (four_bits && size % 2 != 0))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'kv_cache_bit_width' is %" PRId64 ", expected %" PRId64
                            " for a cache of %s, and heads of even size for 4",
                            dq_node_int(call->node, "kv_cache_bit_width", bits), bits,
                            dq_dtype_get(dtype)->name);
    size_t expected = c->per_channel ? heads * size : 1;
    if (!s)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has no input %" PRIu32 ", the scale of a quantized cache", scale);
    if (s->count != expected)
        return dq_call_fail_input(call, err, scale, "has %zu elements, expected %zu", s->count, expected);
    return DQ_OK;
}

static float scale_of(const dq_op_call *call, const dq_kv_cache *c, size_t head, size_t i)
{
    return dq_data(call->in[c->scale], float)[c->per_channel ? head * c->size + i : 0];
}

static int quantized(float x, int low, int high)
{
    float q = rintf(x);
    return q >= (float)high ? high : q > (float)low ? (int)q : low; /* NaN: low */
}

void dq_kv_cache_put(const dq_op_call *call, const dq_kv_cache *c, size_t head, const float *from, void *row)
{
    if (!c->scaled) {
        dq_store_from_floats(call->kernels, c->dtype, row, 0, c->size, from, false);
        return;
    }
    uint8_t *to = row;
    if (c->dtype == DQ_UINT8)
        memset(to, 0, c->row_bytes);
    for (size_t i = 0; i < c->size; i++) {
        float x = from[i] / scale_of(call, c, head, i);
        if (c->dtype == DQ_FLOAT8E4M3FN)
            to[i] = (uint8_t)dq_encode_float(c->dtype, x, true, DQ_ROUND_NEAREST);
        else if (c->dtype == DQ_INT8)
            to[i] = (uint8_t)quantized(x, -128, 127);
        else
            to[i / 2] |= (uint8_t)((quantized(x, -8, 7) + 8) << (i % 2 * 4));
    }
}

/* Prefetches the row that is `distance` bytes ahead. */
static void prefetch_row(const dq_kv_cache *c, const uint8_t *row, size_t distance)
{
    enum { LINE = 64 };
    for (size_t at = 0; at < c->row_bytes; at += LINE)
        __builtin_prefetch(row + distance + at);
}

static void load_row(const dq_op_call *call, const dq_kv_cache *c, const uint8_t *row, float *to)
{
    if (c->dtype == DQ_INT8)
        for (size_t i = 0; i < c->size; i++)
            to[i] = (float)(int8_t)row[i];
    else if (c->dtype == DQ_UINT8)
        for (size_t i = 0; i < c->size; i++)
            to[i] = (float)((row[i / 2] >> (i % 2 * 4) & 15) - 8);
    else
        dq_load_floats(call->kernels, c->dtype, row, 0, c->size, to);
}

void dq_kv_cache_get(const dq_op_call *call, const dq_kv_cache *c, size_t head, const void *rows, size_t n,
                     float *to)
{
    const uint8_t *from = rows;
    const dq_rows_f32 *f = call->kernels->rows_f32;
    const float *scale = c->scaled ? dq_data(call->in[c->scale], float) : NULL;
    const size_t distance = dq_cpu_prefetch_distance();
    for (size_t t = 0; t < n; t++, from += c->row_bytes, to += c->size) {
        prefetch_row(c, from, distance);
        load_row(call, c, from, to);
        if (c->per_channel)
            f->mul(to, 1, scale + head * c->size, 1, c->size, to);
        else if (scale)
            f->scale(to, c->size, scale[0], to);
    }
}
