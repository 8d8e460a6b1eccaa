/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/row_quantizer.h"

dq_row_quantizer dq_row_quantizer_make(dq_dtype dtype, float scale, int64_t zero)
{
    dq_row_quantizer c = {.dtype = dtype, .scale = scale};
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

void dq_row_quantizer_dequantize(const dq_kernels *k, const dq_row_quantizer *c, const void *qvalues,
                                 size_t at, size_t n, float *to)
{
    switch (c->dtype) {
    case DQ_UINT8:
        k->dequantize_u8_f32((const uint8_t *)qvalues + at, n, &c->scale, &c->zero.u8, 0, to);
        break;
    case DQ_INT8:
        k->dequantize_s8_f32((const int8_t *)qvalues + at, n, &c->scale, &c->zero.s8, 0, to);
        break;
    case DQ_UINT16:
        k->dequantize_u16_f32((const uint16_t *)qvalues + at, n, &c->scale, &c->zero.u16, 0, to);
        break;
    default:
        k->dequantize_s16_f32((const int16_t *)qvalues + at, n, &c->scale, &c->zero.s16, 0, to);
    }
}

void dq_row_quantizer_quantize(const dq_kernels *k, const dq_row_quantizer *c, const float *x, size_t n,
                               void *qvalues, size_t at)
{
    switch (c->dtype) {
    case DQ_UINT8:
        k->quantize_f32_u8(x, n, &c->scale, &c->zero.u8, 0, (uint8_t *)qvalues + at);
        break;
    case DQ_INT8:
        k->quantize_f32_s8(x, n, &c->scale, &c->zero.s8, 0, (int8_t *)qvalues + at);
        break;
    case DQ_UINT16:
        k->quantize_f32_u16(x, n, &c->scale, &c->zero.u16, 0, (uint16_t *)qvalues + at);
        break;
    default:
        k->quantize_f32_s16(x, n, &c->scale, &c->zero.s16, 0, (int16_t *)qvalues + at);
    }
}
