#include "kernels/kernels.h"

void dq_unpack_u4_c(const uint8_t *codes, size_t k, const float *zero, const float *scale, float *out)
{
    enum { HALF = DQ_FGEMM_COLS / 2 };
    for (size_t p = 0; p < k; p++, codes += HALF, out += DQ_FGEMM_COLS)
        for (size_t j = 0; j < HALF; j++) {
            out[j] = ((float)(codes[j] & 15) - zero[j]) * scale[j];
            out[j + HALF] = ((float)(codes[j] >> 4) - zero[j + HALF]) * scale[j + HALF];
        }
}
