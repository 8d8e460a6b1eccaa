/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/elementwise/lookup_avx512_body.h"

enum { SHIFT = 8 };

/* Words of a table of 128 words by bits 0 to 6 of each index; `upper` has bit 6. */
static inline __m512i word_at(const __m512i table[VECTORS], __m512i index, __mmask32 upper)
{
    const __m512i low = _mm512_permutex2var_epi16(table[0], index, table[1]);
    return _mm512_mask_mov_epi16(low, upper, _mm512_permutex2var_epi16(table[2], index, table[3]));
}

/* Looks up 64 bytes: the upper seven bits of a byte select two entries of the table, its lowest bit one of
 * them. Even bytes are looked up apart from odd ones, which are the upper halves of words. */
static inline __m512i look_up(const __m512i table[VECTORS], __m512i x)
{
    const __m512i of_even = word_at(table, _mm512_srli_epi16(x, 1),
                                    _mm512_test_epi16_mask(x, _mm512_set1_epi16(0x80))),
                  of_odd = word_at(table, _mm512_srli_epi16(x, SHIFT + 1), _mm512_movepi16_mask(x));
    const __mmask32 is_odd = _mm512_test_epi16_mask(x, _mm512_set1_epi16(1)),
                    is_upper_odd = _mm512_test_epi16_mask(x, _mm512_set1_epi16(1 << SHIFT));
    const __m512i even = _mm512_mask_mov_epi16(of_even, is_odd, _mm512_srli_epi16(of_even, SHIFT)),
                  odd = _mm512_mask_mov_epi16(_mm512_slli_epi16(of_odd, SHIFT), is_upper_odd, of_odd);
    return _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaa, odd);
}

void dq_lookup_x8_avx512(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y)
{
    look_up_row(x, n, table, y);
}
