#include "ops/nbits.h"

#include "base/codec.h"

float dq_nbits_float(const dq_tensor *t, size_t i)
{
    if (t->dtype == DQ_FLOAT)
        return dq_data(t, float)[i];
    uint16_t bits = dq_data(t, uint16_t)[i];
    return t->dtype == DQ_FLOAT16 ? dq_f16_to_f32(bits) : dq_bf16_to_f32(bits);
}

void dq_nbits_unpack(const uint8_t *codes, unsigned bits, size_t first, size_t n, float zero, float scale,
                     float *to, size_t stride)
{
    unsigned each = 8 / bits, mask = (1u << bits) - 1;
    for (size_t i = first; i < first + n; i++, to += stride) {
        unsigned code = codes[i / each] >> (i % each * bits) & mask;
        *to = ((float)code - zero) * scale;
    }
}
