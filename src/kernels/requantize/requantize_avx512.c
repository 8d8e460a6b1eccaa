/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/requantize/requantize_float.h"
#include "kernels/requantize/requantize_s64.h"

#include <float.h>
#include <immintrin.h>

enum {
    LANES = 16,
    ROWS = 16,
    GROUP = 4 /* vectors that are packed to one of bytes */,
    ELEMENTS_PER_STEP = GROUP * LANES
};

/* Constants of all rows. Results are computed as if `lo` were 0; sign_xor corrects them at the end. */
typedef struct form {
    const dq_requantize_to *to;
    __m512i below, sign_xor; /* below: subtracted from bits 14 and up */
} form;

static inline form form_of(const dq_requantize_to *to)
{
    return (form){to, _mm512_set1_epi16((int16_t)(uint16_t)(MIDDLE - (to->zero_point - to->lo))),
                  _mm512_set1_epi8((char)to->lo)};
}

/* ---- In double ---------------------------------------------------------------------------------------- */

/* Eight results. The maximum returns its second operand, the lower bound, if the product is NaN. *near_tie:
 * the results near a tie. */
static inline __m256i eight(__m256i acc, __m512d scale, __m512d shift, const dq_requantize_to *to,
                            __mmask8 *near_tie)
{
    __m512d v = _mm512_add_pd(_mm512_mul_pd(_mm512_cvtepi32_pd(acc), scale), shift);
    v = _mm512_max_pd(v, _mm512_set1_pd(to->lo - to->zero_point));
    v = _mm512_min_pd(v, _mm512_set1_pd(to->hi - to->zero_point));
    __m512d whole = _mm512_roundscale_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512d off = _mm512_abs_pd(_mm512_sub_pd(v, whole));
    *near_tie = _mm512_cmp_pd_mask(off, _mm512_set1_pd(dq_requantize_tie_margin(to)), _CMP_GE_OQ);
    return _mm256_add_epi32(_mm512_cvtpd_epi32(whole), _mm256_set1_epi32(to->zero_point));
}

/* Recomputes exactly those of out[0 … 7] that the mask near_tie selects. */
static __attribute__((noinline)) void settle(const int32_t *acc, unsigned near_tie,
                                             const dq_requantize_to *to, size_t first, size_t step,
                                             uint8_t *out)
{
    for (; near_tie; near_tie &= near_tie - 1) {
        const size_t j = (size_t)__builtin_ctz(near_tie);
        out[j] = dq_requantize_one_exactly(acc[j], to, first + j * step);
    }
}

/* dq_requantize_s32_fn */
static __attribute__((noinline)) void exact(const int32_t *acc, size_t n, const dq_requantize_to *to,
                                            size_t first, size_t step, uint8_t *out)
{
    const double *shift = to->bias.shift ? to->bias.shift + first : NULL;
    __m512d s = _mm512_set1_pd(n ? to->scale[first] : 0), more = _mm512_set1_pd(n && shift ? *shift : 0);
    for (size_t j = 0; j < n; j += 8) {
        __mmask8 some = n - j < 8 ? (__mmask8)((1u << (n - j)) - 1) : (__mmask8)0xff, near_tie;
        if (step)
            s = _mm512_maskz_loadu_pd(some, to->scale + first + j);
        if (step && shift)
            more = _mm512_maskz_loadu_pd(some, shift + j);
        __m256i results = eight(_mm256_maskz_loadu_epi32(some, acc + j), s, more, to, &near_tie);
        _mm256_mask_cvtepi32_storeu_epi8(out + j, some, results);
        if (near_tie & some)
            settle(acc + j, near_tie & some, to, first + j * step, step, out + j);
    }
}

/* ---- In float ----------------------------------------------------------------------------------------- */

static inline __m512 sixteen_scales(const double *scale, size_t n)
{
    const __m512d unit = _mm512_set1_pd(UNIT);
    __mmask16 some = (__mmask16)((1u << n) - 1);
    __m256 low = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_maskz_loadu_pd((__mmask8)some, scale), unit));
    __m256 high =
        _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_maskz_loadu_pd((__mmask8)(some >> 8), scale + 8), unit));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* beginning_with of n shifts; NULL: BEGINNING. */
static inline __m512 sixteen_begins(const double *shift, size_t n)
{
    if (!shift)
        return _mm512_set1_ps(BEGINNING);
    const __m512d unit = _mm512_set1_pd(UNIT), begin = _mm512_set1_pd((double)BEGINNING);
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    __m512d low = _mm512_maskz_loadu_pd((__mmask8)some, shift);
    __m512d high = _mm512_maskz_loadu_pd((__mmask8)(some >> 8), shift + 8);
    __m256 floats = _mm512_cvtpd_ps(_mm512_fmadd_pd(low, unit, begin));
    return _mm512_insertf32x8(_mm512_castps256_ps512(floats),
                              _mm512_cvtpd_ps(_mm512_fmadd_pd(high, unit, begin)), 1);
}

static inline bool all_finite(__m512 s)
{
    return _mm512_cmp_ps_mask(_mm512_abs_ps(s), _mm512_set1_ps(FLT_MAX), _CMP_LE_OQ) == 0xffff;
}

/* Bits 14 and up of sixteen sums (requantize_float.h). `scale` is finite and `begin` from sixteen_begins.
 * Adds to *near_tie the results that double products might round otherwise: their fraction has only its
 * lowest bits set. */
static inline __m512i rounded(const int32_t *acc, __m512 scale, __m512 begin, __mmask16 *near_tie)
{
    _Static_assert((NEAR_TIE & (NEAR_TIE + 1)) == 0, "ones below");
    __m512 v = _mm512_cvtepi32_ps(_mm512_loadu_si512(acc));
    __m512i bits = _mm512_castps_si512(_mm512_fmadd_ps(v, scale, begin));
    *near_tie |= _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(((1 << FRACTION) - 1) & ~NEAR_TIE));
    return _mm512_srai_epi32(bits, FRACTION);
}

/* Packs four vectors to bytes by quarters: 32-bit lane l has elements 4l … 4l + 3 of one vector. */
static inline __m512i quarters(const __m512i v[GROUP], const form *f)
{
    __m512i first = _mm512_subs_epu16(_mm512_packus_epi32(v[0], v[1]), f->below);
    __m512i second = _mm512_subs_epu16(_mm512_packus_epi32(v[2], v[3]), f->below);
    return _mm512_xor_si512(_mm512_packus_epi16(first, second), f->sign_xor);
}

/* Converts from quarters to the order of the vectors, and back. */
static inline __m512i regroup(__m512i v)
{
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                    v);
}

void dq_requantize_s32_avx512(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first,
                              size_t step, uint8_t *out)
{
    const double *scale = to->scale + first, *shift = to->bias.shift ? to->bias.shift + first : NULL;
    form f = form_of(to);
    if (n < ELEMENTS_PER_STEP) {
        exact(acc, n, to, first, step, out);
        return;
    }
    __m512 s = _mm512_set1_ps((float)(scale[0] * UNIT));
    __m512 begin = _mm512_set1_ps(shift ? beginning_with(*shift) : BEGINNING);
    for (size_t at = 0; at < n; at += ELEMENTS_PER_STEP) {
        size_t j = n - at < ELEMENTS_PER_STEP ? n - ELEMENTS_PER_STEP
                                              : at; /* the last step overlaps the one before it */
        __m512i v[GROUP];
        __mmask16 near_tie = 0;
        bool finite = all_finite(s);
        for (size_t k = 0; k < GROUP; k++) {
            if (step) {
                s = sixteen_scales(scale + j + k * LANES, LANES);
                finite = all_finite(s) && (k == 0 || finite);
                begin = sixteen_begins(shift ? shift + j + k * LANES : NULL, LANES);
            }
            v[k] = rounded(acc + j + k * LANES, s, begin, &near_tie);
        }
        if (finite && near_tie == 0)
            _mm512_storeu_si512(out + j, regroup(quarters(v, &f)));
        else
            exact(acc + j, ELEMENTS_PER_STEP, to, first + j * step, step, out + j);
    }
}

/* ---- Tiles -------------------------------------------------------------------------------------------- */

typedef struct tile {
    const int32_t *acc; /* first column of the tile */
    size_t stride, first, cols;
    __m512 s, begin; /* scales and shifts as floats */
    bool finite;
    form f;
} tile;

/* Sums of row i; rows past the end repeat the last one. */
static inline const int32_t *row_of(const tile *t, size_t i, size_t rows)
{
    return t->acc + (i < rows ? i : rows - 1) * t->stride;
}

static __attribute__((noinline)) __m512i exact_rows(const tile *t, size_t i, size_t rows)
{
    uint8_t bytes[GROUP * LANES] = {0};
    for (size_t k = 0; k < GROUP; k++)
        exact(row_of(t, i + k, rows), t->cols, t->f.to, t->first, 1, bytes + k * LANES);
    return regroup(_mm512_loadu_si512(bytes));
}

/* Four rows from row i on, packed by quarters. */
static inline __m512i four_rows(const tile *t, size_t i, size_t rows)
{
    __m512i v[GROUP];
    __mmask16 near_tie = 0;
    for (size_t k = 0; k < GROUP; k++)
        v[k] = rounded(row_of(t, i + k, rows), t->s, t->begin, &near_tie);
    return t->finite && near_tie == 0 ? quarters(v, &t->f) : exact_rows(t, i, rows);
}

/* Stores the first n bytes of 128-bit lane k of v at out + k * stride, for k < count. */
static inline void put_lanes(__m512i v, size_t count, size_t n, uint8_t *out, size_t stride)
{
    __mmask16 some = (__mmask16)((1u << n) - 1);
    _mm_mask_storeu_epi8(out, some, _mm512_castsi512_si128(v));
    if (count > 1)
        _mm_mask_storeu_epi8(out + stride, some, _mm512_extracti32x4_epi32(v, 1));
    if (count > 2)
        _mm_mask_storeu_epi8(out + 2 * stride, some, _mm512_extracti32x4_epi32(v, 2));
    if (count > 3)
        _mm_mask_storeu_epi8(out + 3 * stride, some, _mm512_extracti32x4_epi32(v, 3));
}

static void as_rows(const tile *t, size_t rows, uint8_t *out, size_t stride)
{
    for (size_t i = 0; i < rows; i += GROUP)
        put_lanes(regroup(four_rows(t, i, rows)), rows - i, t->cols, out + i * stride, stride);
}

/* Transposes tiles of 16 rows: first the four bytes of a column become adjacent, then all sixteen. */
static void as_columns(const tile *t, size_t rows, uint8_t *out, size_t stride)
{
    const __m512i transposed =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    for (size_t i = 0; i < rows; i += ROWS) {
        size_t n = rows - i < ROWS ? rows - i : ROWS;
        __m512i v[GROUP], pairs[GROUP];
        for (size_t k = 0; k < GROUP; k++)
            v[k] = _mm512_shuffle_epi8(four_rows(t, i + k * GROUP, rows), transposed);
        for (size_t k = 0; k < 2; k++) {
            pairs[k] = _mm512_unpacklo_epi32(v[2 * k], v[2 * k + 1]);
            pairs[2 + k] = _mm512_unpackhi_epi32(v[2 * k], v[2 * k + 1]);
        }
        for (size_t k = 0; k < GROUP && k < t->cols; k++) { /* columns k, k + 4, k + 8 and k + 12 */
            __m512i low = pairs[k / 2 * 2], high = pairs[k / 2 * 2 + 1];
            __m512i lanes = k % 2 ? _mm512_unpackhi_epi64(low, high) : _mm512_unpacklo_epi64(low, high);
            put_lanes(lanes, (t->cols - k + GROUP - 1) / GROUP, n, out + k * stride + i, GROUP * stride);
        }
    }
}

/* Rows of 64 columns from `first` on: the bytes of a row are one vector. */
static void as_q16_rows(const int32_t *acc, size_t acc_stride, size_t rows, const dq_requantize_to *to,
                        size_t first, uint8_t *out)
{
    const form f = form_of(to);
    const double *shift = to->bias.shift ? to->bias.shift + first : NULL;
    __m512 s[GROUP], begin[GROUP];
    bool finite = true;
    for (size_t k = 0; k < GROUP; k++) {
        begin[k] = sixteen_begins(shift ? shift + k * LANES : NULL, LANES);
        s[k] = sixteen_scales(to->scale + first + k * LANES, LANES);
        finite = all_finite(s[k]) && finite;
    }
    for (; rows > 0; rows--, acc += acc_stride, out += to->out_stride) {
        __m512i v[GROUP];
        __mmask16 near_tie = 0;
        for (size_t k = 0; k < GROUP; k++)
            v[k] = rounded(acc + k * LANES, s[k], begin[k], &near_tie);
        if (finite && near_tie == 0)
            _mm512_storeu_si512(out, regroup(quarters(v, &f)));
        else
            exact(acc, ELEMENTS_PER_STEP, to, first, 1, out);
    }
}

void dq_requantize_tile_s32_avx512(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                                   const dq_requantize_to *to)
{
    tile t = {.stride = acc_stride, .f = form_of(to)};
    size_t j = 0;
    for (; !to->transposed && cols - j >= ELEMENTS_PER_STEP; j += ELEMENTS_PER_STEP)
        as_q16_rows(acc + j, acc_stride, rows, to, j, to->out + j);
    for (; j < cols && rows > 0; j += LANES) {
        t.acc = acc + j;
        t.cols = cols - j < LANES ? cols - j : LANES;
        t.first = j;
        t.s = sixteen_scales(to->scale + j, t.cols);
        t.begin = sixteen_begins(to->bias.shift ? to->bias.shift + j : NULL, t.cols);
        t.finite = all_finite(t.s);
        if (to->transposed)
            as_columns(&t, rows, to->out + j * to->out_stride, to->out_stride);
        else
            as_rows(&t, rows, to->out + j, to->out_stride);
    }
}

/* ---- To 16 bits ---------------------------------------------------------------------------------------- */

/* A row of 16-bit results, and the constants of all its columns. */
typedef struct q16_row {
    const int32_t *sums, *high;
    const double *extra, *scale, *shift;
    __m512d begin, same_scale, same_shift; /* same_…: of all columns; same_shift includes `begin` */
    __m512i low, add, near;                /* near: 2 * near of fixed_point */
    __m256i most, sign_xor;
} q16_row;

/* Operands of a call. They are compile-time constants where the call is frequent. */
typedef struct q16_form {
    bool high, extra, step;
    bool joined; /* sums + 256 * high fits in int32 */
} q16_form;

/* r of requantize_s64.h for eight sums from column j on. */
static inline __attribute__((always_inline)) __m512i eight_wide(const q16_row *r, size_t j, __mmask8 some,
                                                                q16_form is)
{
    __m256i sums = _mm256_maskz_loadu_epi32(some, r->sums + j), upper = sums;
    if (is.high)
        upper = _mm256_maskz_loadu_epi32(some, r->high + j);
    if (is.high && is.joined)
        sums = _mm256_add_epi32(sums, _mm256_slli_epi32(upper, 8));
    __m512d v = _mm512_cvtepi32_pd(sums), scale = r->same_scale, shift = r->same_shift;
    if (is.high && !is.joined)
        v = _mm512_fmadd_pd(_mm512_cvtepi32_pd(upper), _mm512_set1_pd(256), v);
    if (is.extra)
        v = _mm512_add_pd(v, _mm512_maskz_loadu_pd(some, r->extra + j));
    if (is.step) {
        scale = _mm512_maskz_loadu_pd(some, r->scale + j);
        shift = _mm512_add_pd(_mm512_maskz_loadu_pd(some, r->shift + j), r->begin);
    }
    return _mm512_castpd_si512(_mm512_fmadd_pd(v, scale, shift));
}

/* Stores sixteen results from column j on. Returns a mask of those near a tie. */
static inline __attribute__((always_inline)) __mmask16 put_sixteen(const q16_row *r, size_t j, __mmask16 some,
                                                                   q16_form is, uint16_t *out)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    __m512i low = eight_wide(r, j, (__mmask8)some, is);
    __m512i up = eight_wide(r, j + 8, (__mmask8)(some >> 8), is);
    __m512i values = _mm512_max_epi32(_mm512_permutex2var_epi32(low, odd, up), r->low);
    __m256i results = _mm512_cvtsepi32_epi16(_mm512_add_epi32(values, r->add));
    results = _mm256_xor_si256(_mm256_min_epi16(results, r->most), r->sign_xor);
    __m512i fractions = _mm512_permutex2var_epi32(low, even, up);
    _mm256_mask_storeu_epi16(out + j, some, results);
    return _mm512_mask_cmplt_epu32_mask(some, fractions, r->near);
}

/* All rows of `cols` columns. The loop reads nothing from *s, so that tiles of few columns cost little for
 * each row. */
static inline __attribute__((always_inline)) void put_q16_rows(const dq_q16_sums *s, size_t cols, q16_row r,
                                                               q16_form is, uint16_t *out)
{
    const size_t rows = s->rows, stride = s->stride, row_step = s->row_step;
    const size_t extra_stride = s->extra_stride, out_stride = s->out_stride, whole = cols / LANES * LANES;
    const __mmask16 rest = (__mmask16)((1u << (cols - whole)) - 1);
    for (size_t i = 0; i < rows; i++, out += out_stride) {
        r.same_scale = _mm512_set1_pd(*r.scale);
        r.same_shift = _mm512_add_pd(_mm512_set1_pd(*r.shift), r.begin);
        for (size_t j = 0; j < whole; j += LANES)
            if (__builtin_expect(put_sixteen(&r, j, 0xffff, is, out), 0))
                dq_requantize_s64_part(s, i, j, LANES, out + j);
        if (rest && __builtin_expect(put_sixteen(&r, whole, rest, is, out), 0))
            dq_requantize_s64_part(s, i, whole, cols - whole, out + whole);
        r.sums += stride;
        if (is.high)
            r.high += stride;
        if (is.extra)
            r.extra += extra_stride;
        r.scale += row_step;
        r.shift += row_step;
    }
}

void dq_requantize_s64_avx512(const dq_q16_sums *s, uint16_t *out)
{
    const fixed_point f = fixed_point_of(s);
    const q16_row r = {.sums = s->sums,
                       .high = s->high,
                       .extra = s->extra,
                       .scale = s->scale,
                       .shift = s->shift,
                       .begin = _mm512_set1_pd(f.begin),
                       .low = _mm512_set1_epi32(f.low),
                       .add = _mm512_set1_epi32(f.add),
                       .near = _mm512_set1_epi32(2 * f.near),
                       .most = _mm256_set1_epi16(f.high),
                       .sign_xor = _mm256_set1_epi16((int16_t)f.sign_xor)};
    const q16_form is = {s->high != NULL, s->extra != NULL, s->col_step != 0, s->narrow};
    if (f.near == 0)
        dq_requantize_s64_c(s, out);
    else if (s->cols == 0)
        return;
    else if (is.extra || (is.high && !is.joined))
        put_q16_rows(s, s->cols, r, is, out);
    else if (is.high && is.step)
        put_q16_rows(s, s->cols, r, (q16_form){.high = true, .step = true, .joined = true}, out);
    else if (is.high && s->cols == LANES) /* a tile of a convolution */
        put_q16_rows(s, LANES, r, (q16_form){.high = true, .joined = true}, out);
    else if (is.high)
        put_q16_rows(s, s->cols, r, (q16_form){.high = true, .joined = true}, out);
    else if (is.step)
        put_q16_rows(s, s->cols, r, (q16_form){.step = true}, out);
    else
        put_q16_rows(s, s->cols, r, (q16_form){.high = false}, out);
}
