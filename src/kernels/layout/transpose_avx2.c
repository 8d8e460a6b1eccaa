/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition kernels of AVX2: 32-bit elements by register tiles of 8 × 8, bytes by tiles of 32 rows and 16
 * columns. Byte shuffles convert between planes and pixels of a few channels (NCHW and NHWC). The
 * SSE4.1 kernels do the remainders, and 16-bit elements. */
#include "kernels/kernels.h"
#include "kernels/layout/transpose_tile.h"

#include <immintrin.h>
#include <string.h>

enum { SIDE32 = 8, ROWS8 = 32, COLS8 = 16 };

/* ---- Pixels and planes (NHWC and NCHW) ----------------------------------------------------------------- */

enum { CHANNELS = 4, HALF = 16, WHOLE = 32 };

/* Deinterleaves (`deinterleave` true) n pixels into planes, `plane` bytes from one to the next, or
 * interleaves planes to pixels. Elements have 1 << log bytes. Returns how many pixels are done. Each result
 * vector is the XOR of shuffles of all planes, or of as many 16-byte parts of the pixels; both vector halves
 * are treated alike. */
static inline size_t convert_pixels(const uint8_t *from, uint8_t *to, size_t n, size_t plane, unsigned log,
                                    int channels, bool deinterleave, uint8_t sign_xor)
{
    uint8_t takes[CHANNELS][CHANNELS][HALF];
    __m256i mask[CHANNELS][CHANNELS];
    const __m256i sign_xors = _mm256_set1_epi8((char)sign_xor);
    memset(takes, 0x80, sizeof takes); /* 0x80: the shuffle gives 0 */
    for (int c = 0; c < channels; c++)
        for (int b = 0; b < HALF; b++) { /* byte b of plane c is byte `at` of the pixels */
            int at = (((b >> log) * channels + c) << log) + (b & ((1 << log) - 1));
            if (deinterleave)
                takes[c][at / HALF][b] = (uint8_t)(at % HALF);
            else
                takes[at / HALF][c][at % HALF] = (uint8_t)b;
        }
    for (int i = 0; i < channels; i++)
        for (int k = 0; k < channels; k++)
            mask[i][k] =
                _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)takes[i][k]));
    const size_t count = (n << log) / WHOLE;
    for (size_t g = 0; g < count; g++) {
        __m256i x[CHANNELS];
        for (int k = 0; k < channels; k++)
            x[k] = deinterleave
                       ? _mm256_loadu2_m128i((const __m128i *)(const void *)(from + (channels + k) * HALF),
                                             (const __m128i *)(const void *)(from + k * HALF))
                       : _mm256_loadu_si256((const __m256i *)(const void *)(from + k * plane));
        for (int i = 0; i < channels; i++) {
            __m256i y = sign_xors;
            for (int k = 0; k < channels; k++)
                y = _mm256_xor_si256(y, _mm256_shuffle_epi8(x[k], mask[i][k]));
            if (deinterleave)
                _mm256_storeu_si256((__m256i *)(void *)(to + i * plane), y);
            else
                _mm256_storeu2_m128i((__m128i *)(void *)(to + (channels + i) * HALF),
                                     (__m128i *)(void *)(to + i * HALF), y);
        }
        from += deinterleave ? channels * WHOLE : WHOLE;
        to += deinterleave ? WHOLE : channels * WHOLE;
    }
    return (count * WHOLE) >> log;
}

typedef struct done {
    size_t rows, cols; /* one of them 0 */
} done;

/* Converts rows that are contiguous pixels (NHWC), or columns that become such. Stops where no whole vector
 * is left. */
static done pixels(const void *src, size_t src_stride, size_t rows, size_t cols, unsigned log,
                   uint8_t sign_xor, void *dst, size_t dst_stride)
{
    if (cols == 3 && src_stride == 3)
        return (done){.rows = convert_pixels(src, dst, rows, dst_stride << log, log, 3, true, sign_xor)};
    if (rows == 3 && dst_stride == 3)
        return (done){.cols = convert_pixels(src, dst, cols, src_stride << log, log, 3, false, sign_xor)};
    if (cols == 4 && src_stride == 4 && log < 2)
        return (done){.rows = convert_pixels(src, dst, rows, dst_stride << log, log, 4, true, sign_xor)};
    if (rows == 4 && dst_stride == 4 && log < 2)
        return (done){.cols = convert_pixels(src, dst, cols, src_stride << log, log, 4, false, sign_xor)};
    return (done){0, 0};
}

/* ---- 32-bit elements ----------------------------------------------------------------------------------- */

static inline void square_32(const uint32_t *src, size_t src_stride, uint32_t *dst, size_t dst_stride)
{
    __m256 v[SIDE32], w[SIDE32];
    for (size_t i = 0; i < SIDE32; i++)
        v[i] = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)(src + i * src_stride)));
    for (int i = 0; i < SIDE32; i += 4) {
        __m256 a = _mm256_unpacklo_ps(v[i], v[i + 1]), b = _mm256_unpackhi_ps(v[i], v[i + 1]);
        __m256 c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]), d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
        w[i] = _mm256_shuffle_ps(a, c, 0x44);
        w[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
        w[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        w[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    for (size_t i = 0; i < SIDE32; i++) {
        __m256 column = i < 4 ? _mm256_permute2f128_ps(w[i], w[i + 4], 0x20)
                              : _mm256_permute2f128_ps(w[i - 4], w[i], 0x31);
        _mm256_storeu_si256((__m256i *)(void *)(dst + i * dst_stride), _mm256_castps_si256(column));
    }
}

static void few_words(const uint32_t *src, size_t src_stride, size_t rows, size_t cols, uint32_t *dst,
                      size_t dst_stride)
{
    const done d = pixels(src, src_stride, rows, cols, 2, 0, dst, dst_stride);
    dq_transpose_x32_sse41(src + d.rows * src_stride + d.cols, src_stride, rows - d.rows, cols - d.cols,
                           dst + d.cols * dst_stride + d.rows, dst_stride);
}

DQ_TRANSPOSE_BY_SQUARES(dq_transpose_x32_avx2, uint32_t, SIDE32, square_32, few_words)

/* ---- 16-bit and 8-bit elements ------------------------------------------------------------------------- */

void dq_transpose_x16_avx2(const uint16_t *src, size_t src_stride, size_t rows, size_t cols, uint16_t *dst,
                           size_t dst_stride)
{
    const done d = pixels(src, src_stride, rows, cols, 1, 0, dst, dst_stride);
    dq_transpose_x16_sse41(src + d.rows * src_stride + d.cols, src_stride, rows - d.rows, cols - d.cols,
                           dst + d.cols * dst_stride + d.rows, dst_stride);
}

/* Transposes a tile. Rows i and i + 16 are the halves of vector i. Each step interleaves the first eight
 * vectors with the other eight; after four steps the rows are columns. */
static inline void block_8(const uint8_t *src, size_t src_stride, uint8_t sign_xor, uint8_t *dst,
                           size_t dst_stride)
{
    const __m256i sign_xors = _mm256_set1_epi8((char)sign_xor);
    __m256i v[COLS8], next[COLS8];
    for (size_t i = 0; i < COLS8; i++) {
        const uint8_t *from = src + i * src_stride;
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)from);
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(from + COLS8 * src_stride));
        v[i] = _mm256_xor_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), sign_xors);
    }
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < COLS8 / 2; i++) {
            next[2 * i] = _mm256_unpacklo_epi8(v[i], v[i + 8]);
            next[2 * i + 1] = _mm256_unpackhi_epi8(v[i], v[i + 8]);
        }
        for (int i = 0; i < COLS8; i++)
            v[i] = next[i];
    }
    for (size_t i = 0; i < COLS8; i++)
        _mm256_storeu_si256((__m256i *)(void *)(dst + i * dst_stride), v[i]);
}

void dq_transpose_x8_avx2(const uint8_t *src, size_t src_stride, size_t rows, size_t cols, uint8_t sign_xor,
                          uint8_t *dst, size_t dst_stride)
{
    const done d = pixels(src, src_stride, rows, cols, 0, sign_xor, dst, dst_stride);
    src += d.rows * src_stride + d.cols;
    dst += d.cols * dst_stride + d.rows;
    rows -= d.rows;
    cols -= d.cols;
    size_t whole = cols >= COLS8 ? rows / ROWS8 * ROWS8 : 0;
    for (size_t c = 0; whole && c < cols; c = dq_next_square(c, COLS8, cols))
        for (size_t r = 0; r < whole; r += ROWS8)
            block_8(src + r * src_stride + c, src_stride, sign_xor, dst + c * dst_stride + r, dst_stride);
    if (whole == rows)
        return;
    whole = whole && rows - whole < COLS8 ? rows - COLS8 : whole; /* the last tile overlaps earlier rows */
    dq_transpose_x8_sse41(src + whole * src_stride, src_stride, rows - whole, cols, sign_xor, dst + whole,
                          dst_stride);
}
