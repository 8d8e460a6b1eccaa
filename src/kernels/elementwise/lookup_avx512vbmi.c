/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/elementwise/lookup_avx512_body.h"

/* Permutes two halves of 128 entries; bit 7 of the index selects between them. */
static inline __m512i look_up(const __m512i table[VECTORS], __m512i x)
{
    const __m512i low = _mm512_permutex2var_epi8(table[0], x, table[1]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(x), _mm512_permutex2var_epi8(table[2], x, table[3]));
}

void dq_lookup_x8_avx512vbmi(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y)
{
    look_up_row(x, n, table, y);
}
