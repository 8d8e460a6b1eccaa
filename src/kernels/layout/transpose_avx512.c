/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition of 32-bit elements by register tiles of 16 × 16. */
#include "kernels/kernels.h"
#include "kernels/layout/transpose_tile.h"

#include <immintrin.h>

enum { SIDE = 16 };

/* Transposes a tile. Masked loads put four columns of rows i, i + 4, i + 8 and i + 12 into one vector,
 * without shuffles. Then all four quarters transpose 4 × 4 tiles at once. */
static inline void square_16(const uint32_t *src, size_t src_stride, uint32_t *dst, size_t dst_stride)
{
    __m512i v[SIDE], w[SIDE];
    for (size_t i = 0; i < SIDE; i++) {
        const uint32_t *from = src + i % 4 * src_stride + i / 4 * 4;
        __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)from));
        for (size_t q = 1; q < 4; q++)
            x = _mm512_mask_broadcast_i32x4(
                x, (__mmask16)(0xf << 4 * q),
                _mm_loadu_si128((const __m128i *)(const void *)(from + 4 * q * src_stride)));
        v[i] = x;
    }
    for (int i = 0; i < SIDE; i += 4) {
        __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]), b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
        __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        w[i] = _mm512_unpacklo_epi64(a, c);
        w[i + 1] = _mm512_unpackhi_epi64(a, c);
        w[i + 2] = _mm512_unpacklo_epi64(b, d);
        w[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (size_t i = 0; i < SIDE; i++)
        _mm512_storeu_si512(dst + i * dst_stride, w[i]);
}

DQ_TRANSPOSE_BY_SQUARES(dq_transpose_x32_avx512, uint32_t, SIDE, square_16, dq_transpose_x32_avx2)
