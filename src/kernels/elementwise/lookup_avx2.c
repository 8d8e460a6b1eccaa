/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { PART = 16, HALF = 8 }; /* PART: entries that one shuffle selects from; HALF: parts of half a table */

/* Looks up 32 indices from 0 to 127 in half a table. A shuffle selects by the low four bits of an index, and
 * gives 0 if its top bit is set. index - 16 k keeps the low bits and has its top bit clear only if the index
 * is in part k or a later one. The tables therefore hold the XOR of each part with the one before it: the XOR
 * of all results is the entry. Negative indices stay negative, as the subtraction saturates. */
static __m256i half(const __m256i parts[HALF], __m256i index)
{
    const __m256i step = _mm256_set1_epi8(PART);
    __m256i result = _mm256_shuffle_epi8(parts[0], index);
    for (int k = 1; k < HALF; k++) {
        index = _mm256_subs_epi8(index, step);
        result = _mm256_xor_si256(result, _mm256_shuffle_epi8(parts[k], index));
    }
    return result;
}

static void load_parts(const uint8_t *table, __m256i parts[HALF])
{
    __m256i before = _mm256_setzero_si256();
    for (int k = 0; k < HALF; k++) {
        __m256i part = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + PART * k)));
        parts[k] = _mm256_xor_si256(part, before);
        before = part;
    }
}

void dq_lookup_x8_avx2(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y)
{
    enum { WIDTH = 32, MIN_ROW = 128 }; /* in shorter rows loading the tables costs more than it saves */
    const __m256i top = _mm256_set1_epi8((char)0x80);
    __m256i low[HALF], high[HALF];
    size_t i = 0;
    if (n >= MIN_ROW) {
        load_parts(table, low);
        load_parts(table + PART * HALF, high);
        for (; n - i >= WIDTH; i += WIDTH) {
            __m256i index = _mm256_loadu_si256((const __m256i *)(x + i));
            __m256i value = _mm256_xor_si256(half(low, index), half(high, _mm256_xor_si256(index, top)));
            _mm256_storeu_si256((__m256i *)(y + i), value);
        }
    }
    for (; i < n; i++)
        y[i] = table[x[i]];
}
