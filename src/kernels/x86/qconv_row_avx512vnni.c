/* Thirty-two outputs at a time, taps in pairs: the two taps' bytes as 16-bit numbers side by side, so that
 * vpdpwssd adds both products to the sum without saturating. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 32 };

/* The elements from x on, 1 or 2 bytes apart, as 16-bit numbers. */
static inline __m512i elements(const uint8_t *x, size_t stride)
{
    if (stride == 1)
        return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)x));
    return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi16(0xff));
}

static inline void outputs(const uint8_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                           size_t stride, int32_t init, size_t n, int32_t *out)
{
    /* each the first or last four lanes of every eight, as unpacking leaves them */
    __m512i low = _mm512_set1_epi32(init), high = low;
    for (size_t t = 0; t < taps; t += 2) {
        bool last = t + 1 == taps;
        int32_t pair = (uint16_t)w[t];
        if (!last)
            memcpy(&pair, w + t, sizeof pair);
        __m512i weights = _mm512_set1_epi32(pair);
        __m512i a = elements(x + offsets[t], stride), b = last ? a : elements(x + offsets[t + 1], stride);
        low = _mm512_dpwssd_epi32(low, _mm512_unpacklo_epi16(a, b), weights);
        high = _mm512_dpwssd_epi32(high, _mm512_unpackhi_epi16(a, b), weights);
    }
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    uint32_t mask = n < LANES ? (1u << n) - 1 : UINT32_MAX;
    _mm512_mask_storeu_epi32(out, (__mmask16)mask, _mm512_permutex2var_epi64(low, first, high));
    _mm512_mask_storeu_epi32(out + 16, (__mmask16)(mask >> 16), _mm512_permutex2var_epi64(low, second, high));
}

static inline __attribute__((always_inline)) void row(const uint8_t *x, const ptrdiff_t *offsets,
                                                      const int16_t *w, size_t taps, size_t stride,
                                                      int32_t init, size_t n, int32_t *out)
{
    for (size_t j = 0; j < n; j += LANES)
        outputs(x + j * stride, offsets, w, taps, stride, init, n - j, out + j);
}

void dq_qconv_row_avx512vnni(const uint8_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                             size_t stride, int32_t init, size_t n, int32_t *out)
{
    if (stride == 1)
        row(x, offsets, w, taps, 1, init, n, out);
    else if (stride == 2)
        row(x, offsets, w, taps, 2, init, n, out);
    else
        dq_qconv_row_c(x, offsets, w, taps, stride, init, n, out);
}
