/* SPDX-License-Identifier: Apache-2.0 */
/* Quantize and dequantize rows of 8- or 16-bit values with one scale and zero point, known at planning time.
 */
#ifndef DQ_OPS_ROW_QUANTIZER_H
#define DQ_OPS_ROW_QUANTIZER_H

#include "ops/op.h"

#include <string.h>

typedef struct dq_row_quantizer {
    dq_dtype dtype;
    float scale;
    union {
        uint8_t u8;
        int8_t s8;
        uint16_t u16;
        int16_t s16;
    } zero;
} dq_row_quantizer;

static inline bool dq_row_quantizer_supports(int64_t dtype)
{
    return dtype == DQ_UINT8 || dtype == DQ_INT8 || dtype == DQ_UINT16 || dtype == DQ_INT16;
}
dq_row_quantizer dq_row_quantizer_make(dq_dtype dtype, float scale, int64_t zero);
/** Dequantizes n quantized values, from index `at` on, like DequantizeLinear. */
void dq_row_quantizer_dequantize(const dq_kernels *k, const dq_row_quantizer *c, const void *qvalues,
                                 size_t at, size_t n, float *to);
/** Quantizes n floats, to index `at` on, like QuantizeLinear. */
void dq_row_quantizer_quantize(const dq_kernels *k, const dq_row_quantizer *c, const float *x, size_t n,
                               void *qvalues, size_t at);

/** XORs n 16-bit values with `sign_xor`. The last vector overlaps the one before it, so that no scalar tail
 * is needed. */
static inline void dq_sign_xor_16(const int16_t *from, size_t n, uint16_t sign_xor, int16_t *restrict to)
{
    enum { VECTOR = 8, HALF_VECTOR = 4 };
    if (n >= VECTOR) {
        for (size_t at = 0; at < n; at += VECTOR) {
            const size_t i = n - at < VECTOR ? n - VECTOR : at;
            for (size_t k = 0; k < VECTOR; k++)
                to[i + k] = (int16_t)(from[i + k] ^ sign_xor);
        }
    } else if (n >= HALF_VECTOR) {
        const uint64_t all = sign_xor * UINT64_C(0x0001000100010001);
        uint64_t first, last;
        memcpy(&first, from, sizeof first);
        memcpy(&last, from + n - HALF_VECTOR, sizeof last);
        first ^= all;
        last ^= all;
        memcpy(to, &first, sizeof first);
        memcpy(to + n - HALF_VECTOR, &last, sizeof last);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = (int16_t)(from[i] ^ sign_xor);
    }
}

#endif
