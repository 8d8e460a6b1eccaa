/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM with vpmaddwd, and requantization to 16 bits in fixed point (requantize_s64.h). */
#include "kernels/requantize/requantize_s64.h"
#include "kernels/simd/vec_avx2.h"

#define ISA(name) name##_avx2

#include "kernels/dwconv/dwconv_rows_s16_body.h"
#include "kernels/gemm_s16/gemv_s16s8_body.h"

enum { LANES = DQ_GEMM_S16_NR };

#define v_dot_16(sums, a, b) _mm256_add_epi32(sums, _mm256_madd_epi16(a, b))

#include "kernels/gemm_s16/gemm_s16_tile.h"

/* ---- Requantization to 16 bits ------------------------------------------------------------------------- */

/* Constants of all rows, from fixed_point (requantize_s64.h). */
typedef struct form {
    __m256d begin;
    __m256i low, add, most, sign_xor, near; /* near: twice that of fixed_point */
} form;

static inline form form_of(const fixed_point *f)
{
    return (form){.begin = _mm256_set1_pd(f->begin),
                  .low = _mm256_set1_epi32(f->low),
                  .add = _mm256_set1_epi32(f->add),
                  .most = _mm256_set1_epi16(f->high),
                  .sign_xor = _mm256_set1_epi16((int16_t)f->sign_xor),
                  .near = _mm256_set1_epi32(2 * f->near)};
}

/* A row of sums, and its scales and shifts. */
typedef struct q16_row {
    const int32_t *sums, *high;
    const double *extra, *scale, *shift;
    __m256d same_scale, same_shift; /* for a col_step of 0; same_shift includes form.begin */
} q16_row;

static inline __m256d doubles(const int32_t *x)
{
    return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)x));
}

/* Scales four sums from column j on to fixed-point numbers; `high`, `extra` and `step` are constant in
 * each call. */
static inline __attribute__((always_inline)) __m256 four(const form *f, const q16_row *r, size_t j, bool high,
                                                         bool extra, bool step)
{
    __m256d v = doubles(r->sums + j), scale = r->same_scale, shift = r->same_shift;
    if (high)
        v = _mm256_fmadd_pd(doubles(r->high + j), _mm256_set1_pd(256), v);
    if (extra)
        v = _mm256_add_pd(v, _mm256_loadu_pd(r->extra + j));
    if (step) {
        scale = _mm256_loadu_pd(r->scale + j);
        shift = _mm256_add_pd(_mm256_loadu_pd(r->shift + j), f->begin);
    }
    return _mm256_castpd_ps(_mm256_fmadd_pd(v, scale, shift));
}

/* Eight results before saturation to int16, with columns 0 1 4 5 and 2 3 6 7 in the two halves. Updates
 * `least`, the smallest fractions. */
static inline __attribute__((always_inline)) __m256i eight(const form *f, const q16_row *r, size_t j,
                                                           bool high, bool extra, bool step, __m256i *least)
{
    __m256 first = four(f, r, j, high, extra, step), second = four(f, r, j + 4, high, extra, step);
    *least = _mm256_min_epu32(*least, _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88)));
    __m256i upper = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
    return _mm256_add_epi32(_mm256_max_epi32(upper, f->low), f->add);
}

/* Saturates sixteen results and puts them in order. */
static inline __m256i sixteen_values(const form *f, __m256i first, __m256i second)
{
    __m256i v = _mm256_packs_epi32(first, second); /* 0 1 4 5, 8 9 12 13, 2 3 6 7, 10 11 14 15 */
    v = _mm256_xor_si256(_mm256_min_epi16(v, f->most), f->sign_xor);
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Requantizes rows from row i on. Stops at the first row with a result near a tie and returns its index,
 * or the number of rows. There are at least eight columns; the last vector overlaps the one before it. No
 * function is called, so that constants stay in registers. */
static inline __attribute__((always_inline)) size_t put_until_tie(const dq_q16_sums *s,
                                                                  const fixed_point *fixed, size_t i,
                                                                  bool high, bool extra, bool step,
                                                                  uint16_t *out)
{
    const size_t rows = s->rows, cols = s->cols, stride = s->stride, row_step = s->row_step;
    const form f = form_of(fixed);
    q16_row r = {.sums = s->sums + i * stride,
                 .high = high ? s->high + i * stride : NULL,
                 .extra = extra ? s->extra + i * s->extra_stride : NULL,
                 .scale = s->scale + i * row_step,
                 .shift = s->shift + i * row_step};
    for (out += i * s->out_stride; i < rows; i++, out += s->out_stride) {
        __m256i least = _mm256_set1_epi32(-1);
        size_t j = 0;
        r.same_scale = _mm256_broadcast_sd(r.scale);
        r.same_shift = _mm256_add_pd(_mm256_broadcast_sd(r.shift), f.begin);
        for (; j + 2 * LANES <= cols; j += 2 * LANES) {
            __m256i first = eight(&f, &r, j, high, extra, step, &least),
                    second = eight(&f, &r, j + LANES, high, extra, step, &least);
            vi_store(out + j, sixteen_values(&f, first, second));
        }
        for (; j < cols; j += LANES) {
            const size_t at = j + LANES <= cols ? j : cols - LANES;
            __m256i v = eight(&f, &r, at, high, extra, step, &least);
            v = sixteen_values(&f, v, v);
            _mm_storeu_si128((__m128i *)(void *)(out + at), _mm256_castsi256_si128(v));
        }
        __m256i far_from_tie = _mm256_cmpeq_epi32(_mm256_max_epu32(least, f.near), least);
        if (__builtin_expect(_mm256_movemask_epi8(far_from_tie) != -1, 0))
            break;
        r.sums += stride;
        if (high)
            r.high += stride;
        if (extra)
            r.extra += s->extra_stride;
        r.scale += row_step;
        r.shift += row_step;
    }
    return i;
}

/* Calls put_until_tie with its constants. */
static size_t put_any(const dq_q16_sums *s, const fixed_point *f, size_t i, uint16_t *out)
{
    const bool high = s->high != NULL, extra = s->extra != NULL, step = s->col_step != 0;
    if (high)
        return put_until_tie(s, f, i, true, extra, step, out);
    if (extra)
        return step ? put_until_tie(s, f, i, false, true, true, out)
                    : put_until_tie(s, f, i, false, true, false, out);
    return step ? put_until_tie(s, f, i, false, false, true, out)
                : put_until_tie(s, f, i, false, false, false, out);
}

/* The same for fewer than eight columns, padded to eight. */
static size_t put_few(const dq_q16_sums *s, const fixed_point *f, size_t i, uint16_t *out)
{
    for (; i < s->rows; i++) {
        int32_t sums[LANES] = {0};
        uint16_t values[LANES];
        dq_q16_sums padded = dq_q16_rest(s, i, 0);
        for (size_t j = 0; j < s->cols; j++)
            sums[j] = padded.sums[j];
        padded.sums = sums;
        padded.cols = LANES;
        if (put_until_tie(&padded, f, 0, false, false, false, values) == 0)
            break;
        for (size_t j = 0; j < s->cols; j++)
            out[i * s->out_stride + j] = values[j];
    }
    return i;
}

void dq_requantize_s64_avx2(const dq_q16_sums *s, uint16_t *out)
{
    const fixed_point f = fixed_point_of(s);
    const bool few = s->cols < LANES;
    if (f.near == 0 || s->cols == 0 || (few && (s->high || s->extra || s->col_step))) {
        dq_requantize_s64_c(s, out);
        return;
    }
    for (size_t i = 0; i < s->rows; i++) {
        i = few ? put_few(s, &f, i, out) : put_any(s, &f, i, out);
        if (i < s->rows)
            dq_requantize_s64_part(s, i, 0, s->cols, out + i * s->out_stride);
    }
}
