/* Elements twice, 32 bytes of them at a time; the last of a row overlap those before, and a row of less is
 * the portable kernel's. */
#include "kernels/kernels.h"

#include <immintrin.h>

#define TWICE(name, low_halves, high_halves)                                                                 \
    static void name(const __m256i *x, size_t vectors, __m256i *y, __m256i *z)                               \
    {                                                                                                        \
        for (size_t i = 0; i < vectors; i++) {                                                               \
            __m256i v = _mm256_loadu_si256(x + i);                                                           \
            __m256i low = low_halves(v, v), high = high_halves(v, v); /* in each half of a vector */         \
            __m256i first = _mm256_permute2x128_si256(low, high, 0x20);                                      \
            __m256i second = _mm256_permute2x128_si256(low, high, 0x31);                                     \
            _mm256_storeu_si256(y + 2 * i, first);                                                           \
            _mm256_storeu_si256(y + 2 * i + 1, second);                                                      \
            _mm256_storeu_si256(z + 2 * i, first);                                                           \
            _mm256_storeu_si256(z + 2 * i + 1, second);                                                      \
        }                                                                                                    \
    }
TWICE(twice_1, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8)
TWICE(twice_2, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16)
TWICE(twice_4, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32)
TWICE(twice_8, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64)

void dq_twice_avx2(const void *x, size_t n, size_t width, void *y, void *z)
{
    static void (*const by_width[])(const __m256i *x, size_t vectors, __m256i *y, __m256i *z) = {
        [1] = twice_1, [2] = twice_2, [4] = twice_4, [8] = twice_8};
    size_t bytes = n * width, vectors = bytes / sizeof(__m256i), last = bytes - sizeof(__m256i);
    if (vectors == 0) {
        dq_twice_c(x, n, width, y, z);
        return;
    }
    by_width[width](x, vectors, y, z);
    if (bytes % sizeof(__m256i))
        by_width[width]((const __m256i *)(const void *)((const char *)x + last), 1,
                        (__m256i *)(void *)((char *)y + 2 * last), (__m256i *)(void *)((char *)z + 2 * last));
}
