/* Sixteen outputs at a time, taps in pairs: the two taps' bytes as 16-bit numbers side by side, so that
 * vpmaddwd adds both products. Exact: bytes are below 256, weights at most 255 in size. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 16 };

/* The sixteen elements from x on, 1 or 2 bytes apart, as 16-bit numbers. */
static inline __m256i elements(const uint8_t *x, size_t stride)
{
    if (stride == 1)
        return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)x));
    return _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)x), _mm256_set1_epi16(0xff));
}

static inline void sixteen(const uint8_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                           size_t stride, int32_t init, int32_t *out)
{
    /* of lanes 0-3 and 8-11, and of 4-7 and 12-15: as unpacking leaves them */
    __m256i low = _mm256_set1_epi32(init), high = low;
    for (size_t t = 0; t < taps; t += 2) {
        bool last = t + 1 == taps;
        int32_t pair = (uint16_t)w[t];
        if (!last)
            memcpy(&pair, w + t, sizeof pair);
        __m256i weights = _mm256_set1_epi32(pair);
        __m256i a = elements(x + offsets[t], stride), b = last ? a : elements(x + offsets[t + 1], stride);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights));
    }
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(out + 8), _mm256_permute2x128_si256(low, high, 0x31));
}

static inline __attribute__((always_inline)) void row(const uint8_t *x, const ptrdiff_t *offsets,
                                                      const int16_t *w, size_t taps, size_t stride,
                                                      int32_t init, size_t n, int32_t *out)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        sixteen(x + j * stride, offsets, w, taps, stride, init, out + j);
    if (j < n) {
        int32_t rest[LANES];
        sixteen(x + j * stride, offsets, w, taps, stride, init, rest);
        memcpy(out + j, rest, (n - j) * sizeof *out);
    }
}

void dq_qconv_row_avx2(const uint8_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                       size_t stride, int32_t init, size_t n, int32_t *out)
{
    if (stride == 1)
        row(x, offsets, w, taps, 1, init, n, out);
    else if (stride == 2)
        row(x, offsets, w, taps, 2, init, n, out);
    else
        dq_qconv_row_c(x, offsets, w, taps, stride, init, n, out);
}
