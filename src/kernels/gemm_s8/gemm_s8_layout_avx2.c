/* SPDX-License-Identifier: Apache-2.0 */
/* dq_gemm_s8_pack for groups of four positions, 16 columns at a time. Vectors interleave matrices with
 * contiguous columns, with contiguous positions, or with one stride within each group. Portable code packs
 * the others. */
#include "kernels/gemm_s8/gemm_s8_pack.h"

#include <immintrin.h>
#include <string.h>

enum {
    COLS = 16,
    GROUP = 4,
    BYTES = COLS * GROUP,
    AT_ONCE = 4 /* groups packed at a time if positions are contiguous */
};

/* Running sums of 16 columns. */
typedef struct sums16 {
    __m256i low, high;
} sums16;

static inline __m128i load16(const uint8_t *p, __m128i sign_xor)
{
    return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p), sign_xor);
}

static inline __m256i sums_of(__m128i a, __m128i b)
{
    __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_set_m128i(b, a));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Stores a group and adds to the column sums: v[i] has columns 4i … 4i + 3. */
static inline void store_group(const __m128i v[4], uint8_t *to, sums16 *sums)
{
    for (int i = 0; i < 4; i++)
        _mm_storeu_si128((__m128i *)(void *)(to + 16 * i), v[i]);
    sums->low = _mm256_add_epi32(sums->low, sums_of(v[0], v[1]));
    sums->high = _mm256_add_epi32(sums->high, sums_of(v[2], v[3]));
}

static const uint8_t *position(const dq_gemm_s8_b *b, const uint8_t *run, size_t p)
{
    return run + p / b->inner * b->outer_stride + p % b->inner * b->inner_stride;
}

/* Packs a segment whose columns are contiguous; packed groups are `step` bytes apart from start to start. */
static void across(const dq_gemm_s8_b *b, const uint8_t *run, uint8_t *to, size_t step, sums16 *sums)
{
    __m128i sign_xor = _mm_set1_epi8((char)b->sign_xor), zero = _mm_setzero_si128(), v[4];
    bool flat = b->inner >= b->run;
    for (size_t p = 0; p < b->run; p += GROUP, to += step) {
        __m128i r[GROUP];
        for (size_t i = 0; i < GROUP; i++)
            r[i] = p + i >= b->run ? zero
                   : flat          ? load16(run + (p + i) * b->inner_stride, sign_xor)
                                   : load16(position(b, run, p + i), sign_xor);
        __m128i low = _mm_unpacklo_epi8(r[0], r[1]), low2 = _mm_unpacklo_epi8(r[2], r[3]);
        __m128i high = _mm_unpackhi_epi8(r[0], r[1]), high2 = _mm_unpackhi_epi8(r[2], r[3]);
        v[0] = _mm_unpacklo_epi16(low, low2);
        v[1] = _mm_unpackhi_epi16(low, low2);
        v[2] = _mm_unpacklo_epi16(high, high2);
        v[3] = _mm_unpackhi_epi16(high, high2);
        store_group(v, to, sums);
    }
}

/* Transposes four groups of four columns, `strided` bytes from column to column: out[g] has group g. */
static inline void four_columns(const uint8_t *x, size_t strided, __m128i sign_xor, __m128i out[AT_ONCE])
{
    __m128i a = load16(x, sign_xor), b = load16(x + strided, sign_xor);
    __m128i c = load16(x + 2 * strided, sign_xor), d = load16(x + 3 * strided, sign_xor);
    __m128i low = _mm_unpacklo_epi32(a, b), low2 = _mm_unpacklo_epi32(c, d);
    __m128i high = _mm_unpackhi_epi32(a, b), high2 = _mm_unpackhi_epi32(c, d);
    out[0] = _mm_unpacklo_epi64(low, low2);
    out[1] = _mm_unpackhi_epi64(low, low2);
    out[2] = _mm_unpacklo_epi64(high, high2);
    out[3] = _mm_unpackhi_epi64(high, high2);
}

/* Packs a segment whose positions are contiguous. */
static void along(const dq_gemm_s8_b *b, const uint8_t *run, uint8_t *to, size_t step, sums16 *sums)
{
    enum { LENGTH = AT_ONCE * GROUP };
    __m128i sign_xor = _mm_set1_epi8((char)b->sign_xor), columns[4][AT_ONCE], v[4];
    size_t p = 0;
    for (; p + LENGTH <= b->run; p += LENGTH) {
        for (size_t i = 0; i < 4; i++)
            four_columns(run + p + 4 * i * b->col_stride, b->col_stride, sign_xor, columns[i]);
        for (size_t g = 0; g < AT_ONCE; g++, to += step) {
            for (size_t i = 0; i < 4; i++)
                v[i] = columns[i][g];
            store_group(v, to, sums);
        }
    }
    for (; p < b->run; p += GROUP, to += step) {
        uint8_t group[BYTES] = {0};
        for (size_t j = 0; j < COLS; j++)
            for (size_t i = 0; i < GROUP && p + i < b->run; i++)
                group[j * GROUP + i] = run[j * b->col_stride + p + i] ^ b->sign_xor;
        for (size_t i = 0; i < 4; i++)
            v[i] = load16(group + 16 * i, _mm_setzero_si128());
        store_group(v, to, sums);
    }
}

/* Packs a segment where neither columns nor positions are contiguous; within a group, positions have one
 * stride. */
static void strided(const dq_gemm_s8_b *b, const uint8_t *run, uint8_t *to, size_t step, sums16 *sums)
{
    __m128i sign_xor = _mm_set1_epi8((char)b->sign_xor), v[4];
    size_t exceeds_caches = b->inner_stride;
    for (size_t p = 0; p < b->run; p += GROUP, to += step) {
        uint8_t group[BYTES];
        const uint8_t *x = position(b, run, p);
        if (b->run - p >= GROUP)
            for (size_t j = 0; j < COLS; j++, x += b->col_stride) {
                uint32_t four = x[0] | (uint32_t)x[exceeds_caches] << 8 |
                                (uint32_t)x[2 * exceeds_caches] << 16 | (uint32_t)x[3 * exceeds_caches] << 24;
                memcpy(group + j * GROUP, &four, GROUP);
            }
        else
            for (size_t j = 0; j < COLS; j++, x += b->col_stride)
                for (size_t i = 0; i < GROUP; i++)
                    group[j * GROUP + i] = p + i < b->run ? x[i * exceeds_caches] : b->sign_xor;
        for (size_t i = 0; i < 4; i++)
            v[i] = load16(group + 16 * i, sign_xor);
        store_group(v, to, sums);
    }
}

static void pack16(const dq_gemm_s8_b *b, size_t first, size_t step, uint8_t *to, int32_t *sums)
{
    sums16 found = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    const uint8_t *run = b->data + first * b->col_stride;
    for (size_t t = 0; t < b->runs; t++, run += b->run_stride) {
        if (b->col_stride == 1)
            across(b, run, to, step, &found);
        else if (b->inner_stride == 1 && b->inner >= b->run)
            along(b, run, to, step, &found);
        else
            strided(b, run, to, step, &found);
        to += (b->run + GROUP - 1) / GROUP * step;
    }
    _mm256_storeu_si256((__m256i *)(void *)sums, found.low);
    _mm256_storeu_si256((__m256i *)(void *)(sums + 8), found.high);
}

size_t dq_gemm_s8_pack_avx2(const dq_gemm_s8_b *b, size_t first, size_t nr, void *panel, int32_t *sums)
{
    size_t size = dq_gemm_s8_panel_size(b->runs, b->run, nr, GROUP);
    bool groups =
        b->col_stride == 1 || b->inner >= b->run || b->inner % GROUP == 0; /* one stride within each group */
    if (b->cols - first < nr || !groups || b->runs * b->run == 0)
        return dq_gemm_s8_pack(b, first, nr, GROUP, panel, sums);
    for (size_t j = 0; j < nr; j += COLS)
        pack16(b, first + j, nr * GROUP, (uint8_t *)panel + j * GROUP, sums + j);
    return size;
}
