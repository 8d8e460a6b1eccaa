/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/codes.h"

dq_codes dq_codes_make(dq_dtype dtype, float scale, int64_t zero)
{
    dq_codes c = {.dtype = dtype, .scale = scale};
    switch (dtype) {
    case DQ_UINT8:
        c.zero.u8 = (uint8_t)zero;
        break;
    case DQ_INT8:
        c.zero.s8 = (int8_t)zero;
        break;
    case DQ_UINT16:
        c.zero.u16 = (uint16_t)zero;
        break;
    default:
        c.zero.s16 = (int16_t)zero;
    }
    return c;
}

void dq_codes_read(const dq_kernels *k, const dq_codes *c, const void *codes, size_t at, size_t n, float *to)
{
    switch (c->dtype) {
    case DQ_UINT8:
        k->dequantize_u8_f32((const uint8_t *)codes + at, n, &c->scale, &c->zero.u8, 0, to);
        break;
    case DQ_INT8:
        k->dequantize_s8_f32((const int8_t *)codes + at, n, &c->scale, &c->zero.s8, 0, to);
        break;
    case DQ_UINT16:
        k->dequantize_u16_f32((const uint16_t *)codes + at, n, &c->scale, &c->zero.u16, 0, to);
        break;
    default:
        k->dequantize_s16_f32((const int16_t *)codes + at, n, &c->scale, &c->zero.s16, 0, to);
    }
}

void dq_codes_write(const dq_kernels *k, const dq_codes *c, const float *x, size_t n, void *codes, size_t at)
{
    switch (c->dtype) {
    case DQ_UINT8:
        k->quantize_f32_u8(x, n, &c->scale, &c->zero.u8, 0, (uint8_t *)codes + at);
        break;
    case DQ_INT8:
        k->quantize_f32_s8(x, n, &c->scale, &c->zero.s8, 0, (int8_t *)codes + at);
        break;
    case DQ_UINT16:
        k->quantize_f32_u16(x, n, &c->scale, &c->zero.u16, 0, (uint16_t *)codes + at);
        break;
    default:
        k->quantize_f32_s16(x, n, &c->scale, &c->zero.s16, 0, (int16_t *)codes + at);
    }
}
