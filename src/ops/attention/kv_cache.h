/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of keys or values of GroupQueryAttention: [batch, heads, capacity, size] of a float type, or
 * quantized symmetrically with a scale for all, or one for each head and element: int8, float8, or 4 bits,
 * two elements a byte of a uint8 tensor, low ones first, 8 above their value. */
#ifndef DQ_OPS_KV_CACHE_H
#define DQ_OPS_KV_CACHE_H

#include "ops/op.h"

typedef struct dq_kv_cache {
    dq_dtype dtype;
    size_t size; /* elements of a row */
    size_t row_bytes;
    uint32_t scale; /* input; used when `scaled` */
    bool scaled, per_channel;
} dq_kv_cache;

/** Describes a cache of `dtype` by attribute `quantization` ('k_quant_type' …) and input `scale`. */
dq_status dq_kv_cache_infer(const dq_op_call *call, dq_dtype dtype, size_t heads, size_t size,
                            const char *quantization, uint32_t scale, dq_kv_cache *c, dq_error *err);

/** Encodes and decodes a row of a head. */
void dq_kv_cache_put(const dq_op_call *call, const dq_kv_cache *c, size_t head, const float *from, void *row);
void dq_kv_cache_get(const dq_op_call *call, const dq_kv_cache *c, size_t head, const void *row, float *to);

#endif
