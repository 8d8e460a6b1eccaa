#include "ops/weight_only/nbits.h"

#include "base/codec.h"

float dq_nbits_float(const dq_tensor *t, size_t i)
{
    if (t->dtype == DQ_FLOAT)
        return dq_data(t, float)[i];
    uint16_t bits = dq_data(t, uint16_t)[i];
    return t->dtype == DQ_FLOAT16 ? dq_f16_to_f32(bits) : dq_bf16_to_f32(bits);
}
