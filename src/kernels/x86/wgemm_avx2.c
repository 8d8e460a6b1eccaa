/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/x86/requantize_wide.h"
#include "kernels/x86/vec_avx2.h"

#include <math.h>

#define ISA(name) name##_avx2

#include "kernels/wconv_rows_body.h"
#include "kernels/wrow_body.h"

enum { ROWS = DQ_WGEMM_ROWS, COLS = DQ_WGEMM_COLS, LANES = DQ_WGEMM_OCTET };

static inline __m256i load(const int16_t *x)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

/* Keeps the compiler from seeing that a place was read before: it would keep what is there in a register,
 * which sums need. */
static inline const int16_t *afresh(const int16_t *x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* Sums of a row: what compilers keep in registers, as they do not an array of them. */
typedef struct row {
    __m256i first, second, third;
} row;

static inline __attribute__((always_inline)) void add(row *r, const int16_t *a, __m256i first, __m256i second,
                                                      const int16_t *third, int octets)
{
    __m256i x = _mm256_castps_si256(_mm256_broadcast_ss((const float *)(const void *)a));
    r->first = _mm256_add_epi32(r->first, _mm256_madd_epi16(x, first));
    if (octets > 1)
        r->second = _mm256_add_epi32(r->second, _mm256_madd_epi16(x, second));
    if (octets > 2)
        r->third = _mm256_add_epi32(r->third, _mm256_madd_epi16(x, load(afresh(third))));
}

static inline void put(const row *r, int octets, int32_t *c)
{
    _mm256_storeu_si256((__m256i *)(void *)c, r->first);
    if (octets > 1)
        _mm256_storeu_si256((__m256i *)(void *)(c + LANES), r->second);
    if (octets > 2)
        _mm256_storeu_si256((__m256i *)(void *)(c + 2 * LANES), r->third);
}

/* `octets` is constant in each call, so that sums stay in registers: twelve of sixteen. The others hold two
 * vectors of b, one of a and a product; the third vector of b is read from the cache each time. */
static inline __attribute__((always_inline)) void tile(const int16_t *a, size_t pairs,
                                                       const int16_t *const b[], const uint32_t *offsets,
                                                       int octets, int32_t *c)
{
    const row zero = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    row r0 = zero, r1 = zero, r2 = zero, r3 = zero;
    const int16_t *x = b[0], *y = b[octets > 1 ? 1 : 0], *z = b[octets > 2 ? 2 : 0];
    for (; pairs > 0; pairs--, a += 2 * ROWS, offsets++) {
        size_t at = *offsets;
        __m256i first = load(x + at), second = octets > 1 ? load(y + at) : first;
        add(&r0, a, first, second, z + at, octets);
        add(&r1, a + 2, first, second, z + at, octets);
        add(&r2, a + 4, first, second, z + at, octets);
        add(&r3, a + 6, first, second, z + at, octets);
    }
    put(&r0, octets, c);
    put(&r1, octets, c + COLS);
    put(&r2, octets, c + 2 * COLS);
    put(&r3, octets, c + 3 * COLS);
}

void dq_wgemm_avx2(const int16_t *a, size_t pairs, const int16_t *const b[DQ_WGEMM_OCTETS],
                   const uint32_t *offsets, size_t octets, int32_t *c)
{
    if (octets == 3)
        tile(a, pairs, b, offsets, 3, c);
    else if (octets == 2)
        tile(a, pairs, b, offsets, 2, c);
    else
        tile(a, pairs, b, offsets, 1, c);
}

/* ---- Sums to 16 bits ----------------------------------------------------------------------------------- */

/* A row, and what is the same for all its columns. */
typedef struct wide_row {
    const dq_wide_sums *s;
    size_t i;
    const int32_t *sums, *high;
    const double *extra, *scale, *shift;
    __m256d begin, same_scale, same_shift; /* same: begin is in it */
    __m256i low, add, most, flip, near;    /* near: twice */
} wide_row;

static inline __m256d doubles(const int32_t *x)
{
    return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)x));
}

/* Four sums from column j on; `high`, `extra` and `step` are constant in each call. */
static inline __attribute__((always_inline)) __m256 four(const wide_row *r, size_t j, bool high, bool extra,
                                                         bool step)
{
    __m256d v = doubles(r->sums + j), scale = r->same_scale, shift = r->same_shift;
    if (high)
        v = _mm256_fmadd_pd(doubles(r->high + j), _mm256_set1_pd(256), v);
    if (extra)
        v = _mm256_add_pd(v, _mm256_loadu_pd(r->extra + j));
    if (step) {
        scale = _mm256_loadu_pd(r->scale + j);
        shift = _mm256_add_pd(_mm256_loadu_pd(r->shift + j), r->begin);
    }
    return _mm256_castpd_ps(_mm256_fmadd_pd(v, scale, shift));
}

/* Eight results before saturation to int16, numbers 0 1 4 5 and 2 3 6 7 in the halves; the same
 * of their fractions. */
static inline __attribute__((always_inline)) __m256i eight(const wide_row *r, size_t j, bool high, bool extra,
                                                           bool step, __m256i *fractions)
{
    __m256 first = four(r, j, high, extra, step), second = four(r, j + 4, high, extra, step);
    *fractions = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
    __m256i upper = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
    return _mm256_add_epi32(_mm256_max_epi32(upper, r->low), r->add);
}

/* Sixteen results in order. */
static inline __m256i sixteen_values(const wide_row *r, __m256i first, __m256i second)
{
    __m256i v = _mm256_packs_epi32(first, second); /* 0 1 4 5, 8 9 12 13, 2 3 6 7, 10 11 14 15 */
    v = _mm256_xor_si256(_mm256_min_epi16(v, r->most), r->flip);
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline __m128i eight_values(const wide_row *r, __m256i v)
{
    return _mm256_castsi256_si128(sixteen_values(r, v, v));
}

static inline bool sure(const wide_row *r, __m256i fractions)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(fractions, r->near), fractions)) == -1;
}

/* At least eight columns; the last ones reach back over those before them. */
static inline __attribute__((always_inline)) void put_row(const wide_row *r, bool high, bool extra, bool step,
                                                          uint16_t *out)
{
    const size_t cols = r->s->cols;
    size_t j = 0;
    for (; j + 2 * LANES <= cols; j += 2 * LANES) {
        __m256i low, up, first = eight(r, j, high, extra, step, &low),
                         second = eight(r, j + LANES, high, extra, step, &up);
        vi_store(out + j, sixteen_values(r, first, second));
        if (__builtin_expect(!sure(r, _mm256_min_epu32(low, up)), 0))
            dq_requantize_wide_part(r->s, r->i, j, 2 * LANES, out + j);
    }
    for (; j < cols; j += LANES) {
        const size_t at = j + LANES <= cols ? j : cols - LANES;
        __m256i fractions, v = eight(r, at, high, extra, step, &fractions);
        _mm_storeu_si128((__m128i *)(void *)(out + at), eight_values(r, v));
        if (__builtin_expect(!sure(r, fractions), 0))
            dq_requantize_wide_part(r->s, r->i, at, LANES, out + at);
    }
}

static inline void begin_row(wide_row *r, const fixed_point *f, size_t i)
{
    const dq_wide_sums *s = r->s;
    r->i = i;
    r->sums = s->sums + i * s->stride;
    r->high = s->high ? s->high + i * s->stride : NULL;
    r->extra = s->extra ? s->extra + i * s->extra_stride : NULL;
    r->scale = s->scale + i * s->row_step;
    r->shift = s->shift + i * s->row_step;
    r->same_scale = _mm256_broadcast_sd(r->scale);
    r->same_shift = _mm256_set1_pd(*r->shift + f->begin);
}

/* Fewer than eight columns, made as many. */
static __attribute__((noinline)) void put_few(const wide_row *r, uint16_t *out)
{
    int32_t sums[LANES] = {0};
    uint16_t values[LANES];
    wide_row whole = *r;
    const size_t n = r->s->cols;
    whole.sums = sums;
    for (size_t j = 0; j < n; j++)
        sums[j] = r->sums[j];
    __m256i fractions, v = eight(&whole, 0, false, false, false, &fractions);
    _mm_storeu_si128((__m128i *)(void *)values, eight_values(r, v));
    for (size_t j = 0; j < n; j++)
        out[j] = values[j];
    if (!sure(r, fractions))
        dq_requantize_wide_part(r->s, r->i, 0, n, out);
}

void dq_requantize_wide_avx2(const dq_wide_sums *s, uint16_t *out)
{
    const fixed_point f = fixed_point_of(s);
    const bool plain = !s->high && !s->extra && !s->col_step;
    wide_row r = {.s = s,
                  .begin = _mm256_set1_pd(f.begin),
                  .low = _mm256_set1_epi32(f.low),
                  .add = _mm256_set1_epi32(f.add),
                  .most = _mm256_set1_epi16(f.high),
                  .flip = _mm256_set1_epi16((int16_t)f.flip),
                  .near = _mm256_set1_epi32(2 * f.near)};
    if (f.near == 0 || s->cols == 0 || (s->cols < LANES && !plain)) {
        dq_requantize_wide_c(s, out);
        return;
    }
    for (size_t i = 0; i < s->rows; i++, out += s->out_stride) {
        begin_row(&r, &f, i);
        if (s->cols < LANES)
            put_few(&r, out);
        else if (plain)
            put_row(&r, false, false, false, out);
        else if (!s->high && !s->col_step)
            put_row(&r, false, true, false, out);
        else
            put_row(&r, s->high != NULL, s->extra != NULL, s->col_step != 0, out);
    }
}
