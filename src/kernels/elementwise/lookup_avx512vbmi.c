/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <immintrin.h>

/* Permutes two halves of 128 entries; bit 7 of the index selects between them. */
void dq_lookup_x8_avx512vbmi(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y)
{
    __m512i entries[4];
    for (int i = 0; i < 4; i++)
        entries[i] = _mm512_loadu_si512(table + 64 * i);
    for (size_t j = 0; j < n; j += 64) {
        __mmask64 some = n - j < 64 ? ((__mmask64)1 << (n - j)) - 1 : ~(__mmask64)0;
        __m512i index = _mm512_maskz_loadu_epi8(some, x + j);
        __m512i low = _mm512_permutex2var_epi8(entries[0], index, entries[1]);
        __m512i high = _mm512_permutex2var_epi8(entries[2], index, entries[3]);
        __m512i value = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
        _mm512_mask_storeu_epi8(y + j, some, value);
    }
}
