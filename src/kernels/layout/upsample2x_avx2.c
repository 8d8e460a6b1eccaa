/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest-neighbor upsampling by two, 32 bytes at a time; the last vector of a row overlaps the one before
 * it. Rows shorter than a vector write past their end, and the rows after them overwrite that. The portable
 * kernel does the last rows, which nothing follows. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { VECTOR_BYTES = sizeof(__m256i) };

static inline void put(char *to, __m256i first, __m256i second)
{
    _mm256_storeu_si256((__m256i *)(void *)to, first);
    _mm256_storeu_si256((__m256i *)(void *)(to + VECTOR_BYTES), second);
}

#define TWICE(name, low_halves, high_halves)                                                                 \
    static void name(const char *x, size_t bytes, size_t rows, char *y)                                      \
    {                                                                                                        \
        for (; rows > 0; rows--, x += bytes, y += 4 * bytes)                                                 \
            for (size_t i = 0, next;; i = next) {                                                            \
                __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(x + i));                      \
                __m256i low = low_halves(v, v), high = high_halves(v, v); /* within each half of a vector */ \
                __m256i first = _mm256_permute2x128_si256(low, high, 0x20);                                  \
                __m256i second = _mm256_permute2x128_si256(low, high, 0x31);                                 \
                put(y + 2 * i, first, second);                                                               \
                put(y + 2 * bytes + 2 * i, first, second);                                                   \
                next = i + VECTOR_BYTES;                                                                     \
                if (next >= bytes)                                                                           \
                    break;                                                                                   \
                next = next + VECTOR_BYTES > bytes ? bytes - VECTOR_BYTES : next;                            \
            }                                                                                                \
    }
TWICE(twice_1, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8)
TWICE(twice_2, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16)
TWICE(twice_4, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32)
TWICE(twice_8, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64)

void dq_upsample2x_x_avx2(const void *x, size_t n, size_t width, size_t rows, void *y)
{
    static void (*const by_width[])(const char *x, size_t bytes, size_t rows,
                                    char *y) = {[1] = twice_1, [2] = twice_2, [4] = twice_4, [8] = twice_8};
    const size_t bytes = n * width;
    if (bytes == 0)
        return;
    const size_t under = (VECTOR_BYTES + bytes - 1) / bytes; /* rows that one vector spans */
    const size_t vectors = rows < under ? 0 : rows - under + 1;
    by_width[width](x, bytes, vectors, y);
    dq_upsample2x_x_c((const char *)x + vectors * bytes, n, width, rows - vectors,
                      (char *)y + 4 * vectors * bytes);
}
