#include "kernels/kernels.h"

void dq_qconv_pairs_c(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out)
{
    for (size_t j = 0; j < n; j++) {
        out[2 * j] = x[j * stride];
        out[2 * j + 1] = x[j * stride + distance];
    }
}

/* Tap by tap, so that compilers can take many outputs at once. */
void dq_qconv_rows_c(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets, const int16_t *w,
                     size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++, x += step, out += n) {
        for (size_t j = 0; j < n; j++)
            out[j] = init;
        for (size_t t = 0; t < taps; t++) {
            const int16_t *from = x + offsets[t], first = w[2 * t], second = w[2 * t + 1];
            for (size_t j = 0; j < n; j++)
                out[j] =
                    (int32_t)((uint32_t)out[j] + (uint32_t)(first * from[2 * j] + second * from[2 * j + 1]));
        }
    }
}

void dq_qconv_codes_c(const uint8_t *x, size_t step, const dq_qconv_taps *taps, const dq_requantize_to *to,
                      size_t n)
{
    size_t count = 0;
    for (size_t g = 0; g < taps->groups; g++)
        count += taps->sizes[g];
    for (size_t j = 0; j < n; j++, x += step) {
        uint32_t sum = (uint32_t)taps->init;
        for (const dq_qconv_tap *t = taps->taps; t < taps->taps + count; t++)
            sum += (uint32_t)(t->w[0] * x[t->offset] + t->w[1] * x[t->offset + 1]);
        int32_t acc = (int32_t)sum;
        dq_requantize_c(&acc, 1, to->scale, 0, to->zero_point, to->lo, to->hi, to->out + j);
    }
}
