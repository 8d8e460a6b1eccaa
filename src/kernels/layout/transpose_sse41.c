/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition by register tiles: 16 × 16 bytes, 8 × 8 16-bit or 4 × 4 32-bit elements. */
#include "kernels/kernels.h"
#include "kernels/layout/transpose_tile.h"

#include <immintrin.h>
#include <string.h>

enum { SIDE8 = 16, SIDE16 = 8, SIDE32 = 4 };

/* Loads n < 16 bytes, followed by zeros. */
static inline __m128i load_few(const uint8_t *p, size_t n)
{
    uint64_t low = 0, high = 0;
    if (n >= 8) {
        memcpy(&low, p, 8);
        memcpy(&high, p + n - 8, 8);
        high = n == 8 ? 0 : high >> 8 * (16 - n);
    } else if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        low = (uint64_t)last << 8 * (n - 4) | first;
    } else {
        for (size_t i = 0; i < n; i++)
            low |= (uint64_t)p[i] << 8 * i;
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

/* Transposes 16 × 16 bytes. Each step interleaves the first half of the vectors with the second; after four
 * steps the rows are columns. */
static inline void transpose_16(__m128i v[SIDE8])
{
    for (int step = 0; step < 4; step++) {
        __m128i next[SIDE8];
        for (int i = 0; i < SIDE8 / 2; i++) {
            next[2 * i] = _mm_unpacklo_epi8(v[i], v[i + 8]);
            next[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + 8]);
        }
        memcpy(v, next, sizeof next);
    }
}

/* Transposes the tile at src with `rows` rows and `cols` columns (beyond 16: 16). Each stored column is a
 * whole vector. */
static inline void square(const uint8_t *src, size_t src_stride, size_t rows, size_t cols, __m128i sign_xor,
                          uint8_t *dst, size_t dst_stride)
{
    __m128i v[SIDE8];
    for (size_t r = 0; r < SIDE8; r++) {
        const uint8_t *from = src + r * src_stride;
        v[r] = r >= rows       ? _mm_setzero_si128()
               : cols >= SIDE8 ? _mm_loadu_si128((const __m128i *)(const void *)from)
                               : load_few(from, cols);
        v[r] = _mm_xor_si128(v[r], sign_xor);
    }
    transpose_16(v);
    for (size_t c = 0; c < SIDE8 && c < cols; c++)
        _mm_storeu_si128((__m128i *)(void *)(dst + c * dst_stride), v[c]);
}

/* Transposes fewer rows than a tile has, into contiguous columns. The following columns overwrite the excess
 * bytes of a store. Returns how many columns are done: those whose stores end inside dst. */
static size_t narrow(const uint8_t *src, size_t src_stride, size_t rows, size_t cols, __m128i sign_xor,
                     uint8_t *dst)
{
    size_t done = 0, spill = (SIDE8 - 1) / rows; /* columns after one that its store overwrites */
    for (; done + SIDE8 + spill <= cols; done += SIDE8)
        square(src + done, src_stride, rows, SIDE8, sign_xor, dst + done * rows, rows);
    return done;
}

void dq_transpose_x8_sse41(const uint8_t *src, size_t src_stride, size_t rows, size_t cols, uint8_t sign_xor,
                           uint8_t *dst, size_t dst_stride)
{
    __m128i sign_xors = _mm_set1_epi8((char)sign_xor);
    size_t done = 0;
    if (src_stride == 1 && cols == 1) { /* the channels of a single pixel */
        for (size_t i = 0; i < rows; i++)
            dst[i] = src[i] ^ sign_xor;
        return;
    }
    if (rows >= SIDE8 && cols) {
        for (size_t c = 0; c<cols; c = cols> SIDE8 ? dq_next_square(c, SIDE8, cols) : cols)
            for (size_t r = 0; r < rows; r = dq_next_square(r, SIDE8, rows))
                square(src + r * src_stride + c, src_stride, SIDE8, cols, sign_xors, dst + c * dst_stride + r,
                       dst_stride);
        return;
    }
    if (rows > 1 && dst_stride == rows)
        done = narrow(src, src_stride, rows, cols, sign_xors, dst);
    dq_transpose_x8_c(src + done, src_stride, rows, cols - done, sign_xor, dst + done * dst_stride,
                      dst_stride);
}

/* ---- 16-bit elements ----------------------------------------------------------------------------------- */

static inline void square_16(const uint16_t *src, size_t src_stride, uint16_t *dst, size_t dst_stride)
{
    __m128i v[SIDE16], next[SIDE16];
    for (size_t r = 0; r < SIDE16; r++)
        v[r] = _mm_loadu_si128((const __m128i *)(const void *)(src + r * src_stride));
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < SIDE16 / 2; i++) {
            next[2 * i] = _mm_unpacklo_epi16(v[i], v[i + 4]);
            next[2 * i + 1] = _mm_unpackhi_epi16(v[i], v[i + 4]);
        }
        memcpy(v, next, sizeof next);
    }
    for (size_t c = 0; c < SIDE16; c++)
        _mm_storeu_si128((__m128i *)(void *)(dst + c * dst_stride), v[c]);
}

DQ_TRANSPOSE_BY_SQUARES(dq_transpose_x16_sse41, uint16_t, SIDE16, square_16, dq_transpose_x16_c)

/* ---- 32-bit elements ---- */

static inline void square_32(const uint32_t *src, size_t src_stride, uint32_t *dst, size_t dst_stride)
{
    __m128 v[SIDE32];
    for (size_t r = 0; r < SIDE32; r++)
        v[r] = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + r * src_stride)));
    _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
    for (size_t c = 0; c < SIDE32; c++)
        _mm_storeu_si128((__m128i *)(void *)(dst + c * dst_stride), _mm_castps_si128(v[c]));
}

DQ_TRANSPOSE_BY_SQUARES(dq_transpose_x32_sse41, uint32_t, SIDE32, square_32, dq_transpose_x32_c)
