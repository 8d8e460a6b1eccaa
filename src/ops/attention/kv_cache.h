/* SPDX-License-Identifier: Apache-2.0 */
/* KV cache of GroupQueryAttention: [batch, heads, capacity, size] of a float type, or symmetrically quantized
 * with one scale, or one scale for each head and element (per channel). Quantized types are int8, float8, and
 * 4 bits. 4-bit values are stored plus 8, two in a byte of a uint8 tensor, the first in the low bits. */
#ifndef DQ_OPS_KV_CACHE_H
#define DQ_OPS_KV_CACHE_H

#include "ops/op.h"

typedef struct dq_kv_cache {
    dq_dtype dtype;
    size_t size; /* elements of a row */
    size_t row_bytes;
    uint32_t scale; /* input number; used if `scaled` */
    bool scaled, per_channel;
} dq_kv_cache;

/** Sets *c for a cache of `dtype`, from attribute `quantization` ('k_quant_type' …) and input `scale`, and
 * checks them. */
dq_status dq_kv_cache_infer(const dq_op_call *call, dq_dtype dtype, size_t heads, size_t size,
                            const char *quantization, uint32_t scale, dq_kv_cache *c, dq_error *err);

/** Quantizes a row of c->size elements of a head. */
void dq_kv_cache_put(const dq_op_call *call, const dq_kv_cache *c, size_t head, const float *from, void *row);
/** Dequantizes n consecutive rows of a head. */
void dq_kv_cache_get(const dq_op_call *call, const dq_kv_cache *c, size_t head, const void *rows, size_t n,
                     float *to);

#endif
