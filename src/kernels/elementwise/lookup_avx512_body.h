/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Looks up a row of bytes, 64 at a time, in a table of 256 bytes in
 * registers. The file of the ISA level defines look_up. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { WIDTH = 64, VECTORS = 256 / WIDTH };

/* The entries of 64 indices. */
static inline __m512i look_up(const __m512i table[VECTORS], __m512i x);

/* Only the last store has a mask: for rows in memory, masked stores take three times as long (Zen 5). */
static inline void look_up_row(const uint8_t *x, size_t n, const uint8_t entries[256], uint8_t *y)
{
    __m512i table[VECTORS];
    for (int i = 0; i < VECTORS; i++)
        table[i] = _mm512_loadu_si512(entries + WIDTH * i);
    size_t j = 0;
    for (; n - j >= WIDTH; j += WIDTH)
        _mm512_storeu_si512(y + j, look_up(table, _mm512_loadu_si512(x + j)));
    if (j < n) {
        const __mmask64 rest = ((__mmask64)1 << (n - j)) - 1;
        _mm512_mask_storeu_epi8(y + j, rest, look_up(table, _mm512_maskz_loadu_epi8(rest, x + j)));
    }
}
