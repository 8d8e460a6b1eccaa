/* SPDX-License-Identifier: Apache-2.0 */
/* Exact 8-bit GEMM for few rows, where the time to read the weights dominates. Weights stay bytes. A panel
 * has 32 columns: it is read sequentially, and each position of a row is loaded once for all of them.
 *
 * Instead of the weights, the rows are split, into low and high halves of each byte. Of values below 16, a
 * pair of products fits in 16 bits for any weights, and so do sums of DEPTH pairs: 8 * 2 * 15 * 128 < 2^15.
 */
#include "kernels/gemm_s8/gemm_s8_avx2_sums.h"

#include "base/checked.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"
#include "kernels/kernels.h"

enum { MR = 64, NR = 32, GROUP = 4, GROUP_BYTES = NR * GROUP, HALF = GROUP_BYTES / 2, DEPTH = 8 };
enum { SPLIT_GROUP = 2 * GROUP /* bytes of a row per group: low halves, then high ones */, HEAD = 64 };
enum { PREFETCH = 4096 /* distance in bytes: panels are adjacent and are read in order */ };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_gemm_s8_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_gemm_s8_pack_avx2(b, first, NR, panel, sums);
}

/* ---- Rows in halves ----------------------------------------------------------------------------------- */

static size_t groups_of(size_t run)
{
    return (run + GROUP - 1) / GROUP;
}

/* Computes the bytes of a split row, including one vector that may be written past its end. */
static bool row_size(size_t runs, size_t run, size_t *size)
{
    enum { VECTOR = 32 };
    return dq_align_size(run, GROUP, size) && dq_mul_size(*size, runs, size) && dq_mul_size(*size, 2, size) &&
           dq_align_size(*size, VECTOR, size) && dq_add_size(*size, VECTOR, size);
}

/* 64 bytes with the contract's first byte, then the split rows. */
static size_t packed_a_size(const dq_gemm_s8_b *b, size_t rows)
{
    size_t size;
    return row_size(b->runs, b->run, &size) && dq_mul_size(size, rows, &size) &&
                   dq_add_size(size, HEAD, &size)
               ? size
               : 0;
}

static void split_run(const uint8_t *x, size_t run, uint8_t *to)
{
    enum { STEP = 16 };
    const __m128i mask = _mm_set1_epi8(15);
    for (size_t k = 0; k < run; k += STEP, to += 2 * STEP) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(x + k));
        __m128i low = _mm_and_si128(bytes, mask), high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
        _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi32(low, high));
        _mm_storeu_si128((__m128i *)(void *)(to + STEP), _mm_unpackhi_epi32(low, high));
    }
}

/* Returns the split rows, `row` bytes each. The first call creates them. */
static const uint8_t *row_halves(const dq_gemm_s8_a *a, size_t rows, size_t row)
{
    uint8_t *kept = a->packed, *halves = kept + HEAD;
    for (size_t i = 0; i < rows && !*kept; i++) {
        uint8_t *to = halves + i * row;
        for (size_t t = 0; t < a->runs; t++, to += groups_of(a->run) * SPLIT_GROUP)
            split_run(a->rows[i] + a->offsets[t], a->run, to);
    }
    *kept = 1;
    return halves;
}

/* ---- Products ----------------------------------------------------------------------------------------- */

/* 16-bit sums of a row: those of the low halves and those of the high ones. */
typedef struct halves16 {
    row16 low, high;
} halves16;

static inline __attribute__((always_inline)) void add_halves(halves16 *sums, const uint8_t *x,
                                                             const int8_t *w, bool first)
{
    __m256i low = load(w), high = load(w + 32);
    _mm_prefetch((const char *)w + PREFETCH, _MM_HINT_T0);
    add(&sums->low, x, low, high, first);
    add(&sums->high, x + GROUP, low, high, first);
}

static inline __attribute__((always_inline)) void widen(const halves16 *s, row32 *acc)
{
    const __m256i ones = _mm256_set1_epi16(1), sixteens = _mm256_set1_epi16(16);
    __m256i low = _mm256_madd_epi16(s->low.low, ones), high = _mm256_madd_epi16(s->low.high, ones);
    acc->low = _mm256_add_epi32(acc->low, low);
    acc->high = _mm256_add_epi32(acc->high, high);
    low = _mm256_madd_epi16(s->high.low, sixteens);
    high = _mm256_madd_epi16(s->high.high, sixteens);
    acc->low = _mm256_add_epi32(acc->low, low);
    acc->high = _mm256_add_epi32(acc->high, high);
}

/* Adds two products of `depth` groups of a row with 16 columns each. The two share the row or the columns.
 * `depth` is constant in each call. */
static inline __attribute__((always_inline)) void batch(const uint8_t *x0, const int8_t *w0,
                                                        const uint8_t *x1, const int8_t *w1, size_t depth,
                                                        row32 *acc0, row32 *acc1)
{
    halves16 s0, s1;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
    for (size_t g = 0; g < depth; g++) {
        add_halves(&s0, x0 + g * SPLIT_GROUP, w0 + g * GROUP_BYTES, g == 0);
        add_halves(&s1, x1 + g * SPLIT_GROUP, w1 + g * GROUP_BYTES, g == 0);
    }
    widen(&s0, acc0);
    widen(&s1, acc1);
}

static void one_row(const uint8_t *x, const int8_t *w, size_t groups, const int32_t *init, int32_t *c)
{
    row32 left = read_row(init), right = read_row(init + NR / 2);
    for (; groups >= DEPTH; groups -= DEPTH, x += DEPTH * SPLIT_GROUP, w += DEPTH * GROUP_BYTES)
        batch(x, w, x, w + HALF, DEPTH, &left, &right);
    for (; groups; groups--, x += SPLIT_GROUP, w += GROUP_BYTES)
        batch(x, w, x, w + HALF, 1, &left, &right);
    write_row(&left, c);
    write_row(&right, c + NR / 2);
}

/* `row`: bytes from the first row to the second. */
static void two_rows(const uint8_t *x, size_t row, const int8_t *w, size_t groups, const int32_t *init,
                     int32_t *c, size_t c_stride)
{
    const uint8_t *y = x + row;
    row32 left0 = read_row(init), right0 = read_row(init + NR / 2), left1 = left0, right1 = right0;
    for (; groups >= DEPTH; groups -= DEPTH) {
        batch(x, w, y, w, DEPTH, &left0, &left1);
        __asm__ volatile("" ::: "memory"); /* or gcc stores all 32 broadcast vectors for the second batch */
        batch(x, w + HALF, y, w + HALF, DEPTH, &right0, &right1);
        x += DEPTH * SPLIT_GROUP;
        y += DEPTH * SPLIT_GROUP;
        w += DEPTH * GROUP_BYTES;
    }
    for (; groups; groups--, x += SPLIT_GROUP, y += SPLIT_GROUP, w += GROUP_BYTES) {
        batch(x, w, y, w, 1, &left0, &left1);
        batch(x, w + HALF, y, w + HALF, 1, &right0, &right1);
    }
    write_row(&left0, c);
    write_row(&right0, c + NR / 2);
    write_row(&left1, c + c_stride);
    write_row(&right1, c + c_stride + NR / 2);
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    size_t row = 0, groups = a->runs * groups_of(a->run);
    row_size(a->runs, a->run, &row);
    const uint8_t *x = row_halves(a, rows, row);
    for (; rows >= 2; rows -= 2, x += 2 * row, c += 2 * c_stride)
        two_rows(x, row, panel, groups, init, c, c_stride);
    if (rows)
        one_row(x, panel, groups, init, c);
}

const dq_gemm_s8 dq_gemm_s8_few_avx2 = {.mr = MR,
                                        .nr = NR,
                                        .a_signed = false,
                                        .panel_size = panel_size,
                                        .packed_a_size = packed_a_size,
                                        .pack = pack,
                                        .tile = tile,
                                        .sums = dq_gemm_s8_sums_u8_avx2};
