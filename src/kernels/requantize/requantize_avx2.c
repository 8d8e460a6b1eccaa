/* SPDX-License-Identifier: Apache-2.0 */
#include "base/copy.h"
#include "kernels/kernels.h"
#include "kernels/requantize/exact_scale_avx2.h"
#include "kernels/requantize/requantize_float.h"

#include <float.h>
#include <immintrin.h>
#include <string.h>

enum { LANES = 8, COLS = 16, ROWS = 16 };
/* Rows whose columns are all written before the next rows. With a power of two as row stride, more rows would
 * evict each other from the first-level cache. */
enum { BAND = 8 };

/* Constants of all rows. Results are computed as if `lo` were 0; sign_xor corrects them at the end. */
typedef struct fixed {
    __m256i below, sign_xor; /* `below` is subtracted from bits 14 and up */
} fixed;

static inline fixed fix(int32_t zero_point, int32_t lo)
{
    return (fixed){_mm256_set1_epi16((int16_t)(uint16_t)(MIDDLE - (zero_point - lo))),
                   _mm256_set1_epi8((char)lo)};
}

/* Whether no result is near a tie. `least`: the smallest fraction so far. */
static inline bool far_from_ties(__m256i least)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(least, _mm256_set1_epi32(NEAR_TIE))) == -1;
}

/* Bits 14 and up of eight sums (requantize_float.h). `scale` is finite and already times UNIT. `begin` is
 * BEGINNING, or beginning_with of the shifts. */
static inline __m256i eight(const int32_t *acc, __m256 scale, __m256 begin, __m256i *least)
{
    __m256 v = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)acc));
    __m256i bits = _mm256_castps_si256(_mm256_fmadd_ps(v, scale, begin));
    *least = _mm256_min_epi32(*least, _mm256_and_si256(bits, _mm256_set1_epi32((1 << FRACTION) - 1)));
    return _mm256_srai_epi32(bits, FRACTION);
}

/* The multipliers of consecutive sums: sum i has multiplier first + i * step. */
typedef struct multipliers {
    const dq_requantize_to *to;
    size_t first, step;
} multipliers;

/* Replaces the rounded products of those of four sums that the mask near_tie selects by exact ones. */
static __attribute__((noinline)) __m128i resolve_near_ties(__m128i rounded, int near_tie, const int32_t *acc,
                                                           const multipliers *m)
{
    int32_t v[LANES / 2];
    _mm_storeu_si128((__m128i *)(void *)v, rounded);
    for (size_t i = 0; i < LANES / 2; i++)
        if (near_tie >> i & 1)
            v[i] = dq_requantize_exactly(acc[i], m->to, m->first + i * m->step);
    return _mm_loadu_si128((const __m128i *)(const void *)v);
}

/* Scale and shift of four sums, for results in double. */
typedef struct term {
    __m256d scale, shift;
} term;

/* shift NULL: zeros. */
static inline term load_term(const double *scale, const double *shift)
{
    return (term){_mm256_loadu_pd(scale), shift ? _mm256_loadu_pd(shift) : _mm256_setzero_pd()};
}

static inline term same_term(const double *scale, const double *shift)
{
    return (term){_mm256_set1_pd(*scale), _mm256_set1_pd(shift ? *shift : 0)};
}

/* Bits 14 and up of four sums, in double. The maximum with `low` is last, as the instruction returns its
 * second operand if the product is NaN. */
static inline __m128i four_exactly(const int32_t *acc, const term *t, const multipliers *m)
{
    const __m256d low = _mm256_set1_pd(-256), high = _mm256_set1_pd(256);
    __m128i sums = _mm_loadu_si128((const __m128i *)(const void *)acc);
    __m256d v = _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(sums), t->scale), t->shift);
    v = _mm256_min_pd(_mm256_max_pd(v, low), high);
    __m256d whole = _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256d off = _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(v, whole));
    const __m256d limit = _mm256_set1_pd(dq_requantize_tie_margin(m->to));
    int near_tie = _mm256_movemask_pd(_mm256_cmp_pd(off, limit, _CMP_GE_OQ));
    __m128i rounded = _mm256_cvttpd_epi32(whole);
    if (__builtin_expect(near_tie, 0))
        rounded = resolve_near_ties(rounded, near_tie, acc, m);
    return _mm_add_epi32(rounded, _mm_set1_epi32(MIDDLE));
}

static inline __m256i no_fraction(void)
{
    return _mm256_set1_epi32(1 << FRACTION);
}

/* Packs 4 × 8 results to bytes. The lower half has the first four of each vector, the upper half the others.
 */
static inline __m256i qvalues_of(const __m256i v[4], const fixed *f)
{
    __m256i first = _mm256_subs_epu16(_mm256_packus_epi32(v[0], v[1]), f->below);
    __m256i second = _mm256_subs_epu16(_mm256_packus_epi32(v[2], v[3]), f->below);
    return _mm256_xor_si256(_mm256_packus_epi16(first, second), f->sign_xor);
}

static inline __m256i in_order(__m256i qvalues)
{
    return _mm256_permutevar8x32_epi32(qvalues, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

enum { QUAD = 4 };

/* Four vectors of eight sums. Vector i has the multipliers from first[i] on (step 0: only that one), with
 * scales at scale[i] and shifts, if any, at shift[i]. */
typedef struct quad_sums {
    const dq_requantize_to *to;
    size_t step; /* 1, or 0: one multiplier */
    const int32_t *acc[QUAD];
    const double *scale[QUAD], *shift[QUAD];
    size_t first[QUAD];
} quad_sums;

/* qvalues_of the results in double, or exact. Not inlined, so that its rare callers keep their vectors in
 * registers. */
static __attribute__((noinline)) __m256i exact_qvalues(const quad_sums *q)
{
    const fixed f = fix(q->to->zero_point, q->to->lo);
    __m256i v[QUAD];
    for (size_t i = 0; i < QUAD; i++) {
        const double *scale = q->scale[i], *shift = q->to->bias.shift ? q->shift[i] : NULL;
        const multipliers m = {q->to, q->first[i], q->step};
        const multipliers next = {q->to, q->first[i] + LANES / 2 * q->step, q->step};
        const term low = q->step ? load_term(scale, shift) : same_term(scale, shift);
        const term high = q->step ? load_term(scale + LANES / 2, shift ? shift + LANES / 2 : NULL) : low;
        v[i] = _mm256_set_m128i(four_exactly(q->acc[i] + LANES / 2, &high, &next),
                                four_exactly(q->acc[i], &low, &m));
    }
    return qvalues_of(v, &f);
}

static inline __m256 eight_scales(const double *scale)
{
    const __m256d unit = _mm256_set1_pd(UNIT);
    __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_loadu_pd(scale), unit));
    __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_loadu_pd(scale + 4), unit));
    return _mm256_set_m128(high, low);
}

/* beginning_with of eight shifts; NULL: BEGINNING. */
static inline __m256 eight_begins(const double *shift)
{
    if (!shift)
        return _mm256_set1_ps(BEGINNING);
    const __m256d unit = _mm256_set1_pd(UNIT), begin = _mm256_set1_pd((double)BEGINNING);
    __m256d low = _mm256_fmadd_pd(_mm256_loadu_pd(shift), unit, begin);
    __m256d high = _mm256_fmadd_pd(_mm256_loadu_pd(shift + 4), unit, begin);
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

static inline __m256 same_begins(const double *shift)
{
    return _mm256_set1_ps(shift ? beginning_with(*shift) : BEGINNING);
}

static inline bool all_finite(__m256 s)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), s);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ)) == 0xff;
}

enum { ROW_VECTORS = 4, ROW_STEP = ROW_VECTORS * LANES };

/* A row of sums; results go to `out`. */
typedef struct row {
    const int32_t *acc;
    size_t n;            /* at least ROW_STEP */
    const double *scale; /* from the first multiplier on */
    const double *shift; /* likewise; NULL: none */
    uint8_t *out;
    multipliers m;
    fixed f;
} row;

/* Start of the step at `at`; the last step overlaps the one before it. */
static inline size_t step_at(const row *r, size_t at)
{
    return r->n - at < ROW_STEP ? r->n - ROW_STEP : at;
}

/* Requantizes the row from `at` on and stops at a step with a result near a tie. Returns its start, or n. It
 * calls no function, so that constants stay in registers; `step` and `shifted` are compile-time constants in
 * each call. */
static inline __attribute__((always_inline)) size_t put_until_tie(const row *r, size_t at, bool step,
                                                                  bool shifted)
{
    const fixed f = r->f;
    __m256 begin = same_begins(shifted ? r->shift : NULL);
    __m256 s[ROW_VECTORS] = {_mm256_set1_ps((float)(r->scale[0] * UNIT))};
    bool finite = all_finite(s[0]);
    s[1] = s[2] = s[3] = s[0];
    for (; at < r->n; at += ROW_STEP) {
        const size_t j = step_at(r, at);
        __m256i v[ROW_VECTORS], least = no_fraction();
        for (size_t i = 0; i < ROW_VECTORS && step; i++) {
            s[i] = eight_scales(r->scale + j + i * LANES);
            finite = all_finite(s[i]) && (i == 0 || finite);
        }
        for (size_t i = 0; i < ROW_VECTORS; i++) {
            if (step && shifted)
                begin = eight_begins(r->shift + j + i * LANES);
            v[i] = eight(r->acc + j + i * LANES, s[i], begin, &least);
        }
        if (!finite || !far_from_ties(least))
            return at;
        _mm256_storeu_si256((__m256i *)(void *)(r->out + j), in_order(qvalues_of(v, &f)));
    }
    return at;
}

static inline void put_exact(const row *r, size_t j)
{
    quad_sums q = {.to = r->m.to, .step = r->m.step};
    for (size_t i = 0; i < QUAD; i++) {
        const size_t at = j + i * LANES;
        q.acc[i] = r->acc + at;
        q.scale[i] = r->scale + at * q.step;
        q.shift[i] = r->shift ? r->shift + at * q.step : NULL;
        q.first[i] = r->m.first + at * q.step;
    }
    _mm256_storeu_si256((__m256i *)(void *)(r->out + j), in_order(exact_qvalues(&q)));
}

static void put_row(const row *r, bool step)
{
    for (size_t at = 0; at < r->n; at += ROW_STEP) {
        if (r->shift)
            at = step ? put_until_tie(r, at, true, true) : put_until_tie(r, at, false, true);
        else
            at = step ? put_until_tie(r, at, true, false) : put_until_tie(r, at, false, false);
        if (at >= r->n)
            return;
        put_exact(r, step_at(r, at));
    }
}

/* A row of fewer than ROW_STEP elements: pads it. */
static __attribute__((noinline)) void put_short(const row *r, bool step)
{
    int32_t sums[ROW_STEP] = {0};
    double scales[ROW_STEP] = {0}, shifts[ROW_STEP] = {0};
    uint8_t qvalues[ROW_STEP];
    const row whole = {
        sums, ROW_STEP, step ? scales : r->scale, step && r->shift ? shifts : r->shift, qvalues, r->m, r->f};
    memcpy(sums, r->acc, r->n * sizeof *sums);
    if (step)
        memcpy(scales, r->scale, r->n * sizeof *scales);
    if (step && r->shift)
        memcpy(shifts, r->shift, r->n * sizeof *shifts);
    put_row(&whole, step);
    dq_copy_row(r->out, qvalues, r->n);
}

void dq_requantize_s32_avx2(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first,
                            size_t step, uint8_t *out)
{
    const row r = {.acc = acc,
                   .n = n,
                   .scale = to->scale + first,
                   .shift = to->bias.shift ? to->bias.shift + first : NULL,
                   .out = out,
                   .m = {to, first, step},
                   .f = fix(to->zero_point, to->lo)};
    if (n >= ROW_STEP)
        put_row(&r, step != 0);
    else if (n)
        put_short(&r, step != 0);
}

/* ---- Tiles -------------------------------------------------------------------------------------------- */

typedef struct tile {
    const dq_requantize_to *to;
    size_t first;                /* column */
    const double *scale, *shift; /* shift NULL: none */
    __m256 s[2], begin[2];       /* scales and constants of eight() */
    bool finite;
    fixed f;
} tile;

static inline void put(uint8_t *out, __m128i v, size_t n)
{
    uint8_t bytes[COLS];
    if (n >= COLS) {
        _mm_storeu_si128((__m128i *)(void *)out, v);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)bytes, v);
    dq_copy_row(out, bytes, n);
}

/* Requantizes two rows of 16 columns. */
static inline void two_rows(const tile *t, const int32_t *first, const int32_t *second, __m128i out[2])
{
    __m256i least = no_fraction();
    __m256i v[4] = {
        eight(first, t->s[0], t->begin[0], &least), eight(first + LANES, t->s[1], t->begin[1], &least),
        eight(second, t->s[0], t->begin[0], &least), eight(second + LANES, t->s[1], t->begin[1], &least)};
    __m256i qvalues = qvalues_of(v, &t->f);
    if (__builtin_expect(!far_from_ties(least) || !t->finite, 0)) {
        const double *scale = t->scale, *next = scale + LANES, *shift = t->shift;
        const double *next_shift = shift ? shift + LANES : NULL;
        const quad_sums q = {.to = t->to,
                             .step = 1,
                             .acc = {first, first + LANES, second, second + LANES},
                             .scale = {scale, next, scale, next},
                             .shift = {shift, next_shift, shift, next_shift},
                             .first = {t->first, t->first + LANES, t->first, t->first + LANES}};
        qvalues = exact_qvalues(&q);
    }
    qvalues = in_order(qvalues);
    out[0] = _mm256_castsi256_si128(qvalues);
    out[1] = _mm256_extracti128_si256(qvalues, 1);
}

static inline void as_rows(const tile *t, const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                           uint8_t *out)
{
    for (size_t i = 0; i < rows; i += 2) {
        size_t next = i + 1 < rows ? i + 1 : i;
        __m128i v[2];
        two_rows(t, acc + i * acc_stride, acc + next * acc_stride, v);
        put(out + i * t->to->out_stride, v[0], cols);
        put(out + next * t->to->out_stride, v[1], cols);
    }
}

/* Requantizes four rows of eight columns; the four bytes of a column are adjacent. */
static inline __m256i quad(const tile *t, const int32_t *const rows[QUAD], int half)
{
    const __m256i transpose = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8,
                                               12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m256i v[QUAD], least = no_fraction();
    for (int i = 0; i < QUAD; i++)
        v[i] = eight(rows[i] + half * LANES, t->s[half], t->begin[half], &least);
    __m256i qvalues = qvalues_of(v, &t->f);
    if (__builtin_expect(!far_from_ties(least) || !t->finite, 0)) {
        const int at = half * LANES;
        const size_t first = t->first + (size_t)at;
        const double *scale = t->scale + at, *shift = t->shift ? t->shift + at : NULL;
        const quad_sums q = {.to = t->to,
                             .step = 1,
                             .acc = {rows[0] + at, rows[1] + at, rows[2] + at, rows[3] + at},
                             .scale = {scale, scale, scale, scale},
                             .shift = {shift, shift, shift, shift},
                             .first = {first, first, first, first}};
        qvalues = exact_qvalues(&q);
    }
    return _mm256_shuffle_epi8(qvalues, transpose);
}

/* Requantizes and transposes 16 rows (n of them exist) by eight columns (`cols` of them exist). n and cols
 * are compile-time constants for full tiles. */
static inline __attribute__((always_inline)) void square(const tile *t, const int32_t *acc, size_t acc_stride,
                                                         int half, size_t n, size_t cols, uint8_t *out)
{
    __m256i x[QUAD], y[QUAD];
    for (size_t k = 0; k < QUAD; k++) {
        const int32_t *from[QUAD];
        for (size_t e = 0; e < QUAD; e++)
            from[e] = acc + (k * QUAD + e < n ? k * QUAD + e : n - 1) * acc_stride;
        x[k] = k * QUAD < n ? quad(t, from, half) : x[0];
    }
    for (size_t k = 0; k < QUAD; k += 2) {
        y[k] = _mm256_unpacklo_epi32(x[k], x[k + 1]);
        y[k + 1] = _mm256_unpackhi_epi32(x[k], x[k + 1]);
    }
    for (size_t k = 0; k < 2; k++) {
        x[2 * k] = _mm256_unpacklo_epi64(y[k], y[k + 2]);
        x[2 * k + 1] = _mm256_unpackhi_epi64(y[k], y[k + 2]);
    }
    for (size_t j = 0; j < cols; j++)
        put(out + j * t->to->out_stride,
            j < QUAD ? _mm256_castsi256_si128(x[j]) : _mm256_extracti128_si256(x[j - QUAD], 1), n);
}

/* The last 16 rows overlap the rows before them, if there are enough. */
static inline void as_columns(const tile *t, const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                              uint8_t *out)
{
    for (size_t at = 0; at < rows; at += ROWS) {
        size_t i = rows > ROWS && rows - at < ROWS ? rows - ROWS : at, n = rows - i < ROWS ? rows - i : ROWS;
        for (int half = 0; half < 2; half++) {
            size_t first = (size_t)half * LANES, left = cols > first ? cols - first : 0;
            uint8_t *to = out + first * t->to->out_stride + i;
            if (left >= LANES && n == ROWS)
                square(t, acc + i * acc_stride, acc_stride, half, ROWS, LANES, to);
            else if (left)
                square(t, acc + i * acc_stride, acc_stride, half, n, left < LANES ? left : LANES, to);
        }
    }
}

void dq_requantize_tile_s32_avx2(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                                 const dq_requantize_to *to)
{
    double few[COLS] = {0}, few_shifts[COLS] = {0};
    tile t = {.to = to, .f = fix(to->zero_point, to->lo)};
    for (size_t i = 0, band; i < rows; i += band) {
        band = to->transposed || rows - i < BAND ? rows - i : BAND;
        for (size_t j = 0; j < cols; j += COLS) {
            size_t n = cols - j < COLS ? cols - j : COLS;
            const int32_t *from = acc + i * acc_stride + j;
            t.first = j;
            t.scale = to->scale + j;
            if (n < COLS)
                t.scale = memcpy(few, t.scale, n * sizeof *few);
            t.shift = to->bias.shift ? to->bias.shift + j : NULL;
            if (n < COLS && t.shift)
                t.shift = memcpy(few_shifts, t.shift, n * sizeof *few_shifts);
            t.begin[0] = eight_begins(t.shift);
            t.begin[1] = eight_begins(t.shift ? t.shift + LANES : NULL);
            t.s[0] = eight_scales(t.scale);
            t.s[1] = eight_scales(t.scale + LANES);
            t.finite = all_finite(t.s[0]) && all_finite(t.s[1]);
            if (to->transposed)
                as_columns(&t, from, acc_stride, band, n, to->out + j * to->out_stride);
            else
                as_rows(&t, from, acc_stride, band, n, to->out + i * to->out_stride + j);
        }
    }
}

/* ---- Rows of a few channels, transposed ---------------------------------------------------------------- */

void dq_nc4hw4_store_avx2(const int32_t *c, size_t c_stride, size_t n, size_t channels,
                          const dq_requantize_to *to)
{
    const __m256i transpose = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8,
                                               12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const double *shift = to->bias.shift;
    fixed f = fix(to->zero_point, to->lo);
    __m256 s[QUAD], begin[QUAD];
    const int32_t *rows[QUAD];
    bool finite = true;
    for (size_t j = 0; j < QUAD; j++) {
        size_t channel = j < channels ? j : channels - 1;
        rows[j] = c + channel * c_stride;
        s[j] = _mm256_set1_ps((float)(to->scale[channel] * UNIT));
        begin[j] = same_begins(shift ? shift + channel : NULL);
        finite = finite && all_finite(s[j]);
    }
    uint8_t *out = to->out;
    for (size_t p = 0; p < n; p += LANES) {
        __m256i v[QUAD], least = no_fraction();
        for (int j = 0; j < QUAD; j++)
            v[j] = eight(rows[j] + p, s[j], begin[j], &least);
        __m256i qvalues = qvalues_of(v, &f);
        if (__builtin_expect(!finite || !far_from_ties(least), 0)) {
            quad_sums q = {.to = to, .step = 0};
            for (size_t j = 0; j < QUAD; j++) {
                q.first[j] = j < channels ? j : channels - 1;
                q.acc[j] = c + q.first[j] * c_stride + p;
                q.scale[j] = to->scale + q.first[j];
                q.shift[j] = shift ? shift + q.first[j] : NULL;
            }
            qvalues = exact_qvalues(&q);
        }
        qvalues = _mm256_shuffle_epi8(qvalues, transpose);
        uint32_t pixels[LANES];
        if (channels == QUAD && to->out_stride == QUAD && p + LANES <= n) {
            _mm256_storeu_si256((__m256i *)(void *)out, qvalues);
            out += LANES * QUAD;
            continue;
        }
        _mm256_storeu_si256((__m256i *)(void *)pixels, qvalues);
        for (size_t i = 0; i < LANES && p + i < n; i++, out += to->out_stride)
            if (channels == QUAD)
                memcpy(out, &pixels[i], QUAD);
            else
                memcpy(out, &pixels[i], channels);
    }
}

/* ---- A row with an exact scale ------------------------------------------------------------------------- */

typedef struct row_until_tie {
    __m256 scale, shift;
    __m256i zero_point, sign_xor;
} row_until_tie;

/* `shifted` is a compile-time constant in each call. */
static inline __attribute__((always_inline)) void put_32(const int32_t *c, const row_until_tie *by,
                                                         bool shifted, uint8_t *out)
{
    const __m256i transpose = _mm256_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 0, 2, 4,
                                               6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    __m256i v[ROW_VECTORS];
    for (size_t i = 0; i < ROW_VECTORS; i++) {
        __m256i sums = _mm256_loadu_si256((const __m256i *)(const void *)(c + i * LANES));
        v[i] = exact_scale_rounded(_mm256_cvtepi32_ps(sums), by->scale, by->shift, shifted);
    }
    __m256i qvalues = _mm256_packus_epi16(exact_scale_halves(v[0], v[1], by->zero_point),
                                          exact_scale_halves(v[2], v[3], by->zero_point));
    qvalues = in_order(_mm256_shuffle_epi8(qvalues, transpose));
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_xor_si256(qvalues, by->sign_xor));
}

static inline __attribute__((always_inline)) void
put_row_until_tie(const int32_t *c, size_t n, const row_until_tie *by, bool shifted, uint8_t *out)
{
    uint8_t few[ROW_STEP];
    if (n < ROW_STEP) {
        put_32(c, by, shifted, few);
        dq_copy_row(out, few, n);
        return;
    }
    for (size_t p = 0; p < n - ROW_STEP; p += ROW_STEP)
        put_32(c + p, by, shifted, out + p);
    put_32(c + n - ROW_STEP, by, shifted, out + n - ROW_STEP);
}

void dq_nc4hw4_requantize_avx2(const int32_t *c, size_t n, float scale, const dq_requantize_to *to)
{
    const float shift = exact_scale_shift(to);
    const row_until_tie by = {_mm256_set1_ps(scale), _mm256_set1_ps(shift),
                              _mm256_set1_epi16((int16_t)(to->zero_point - to->lo)),
                              _mm256_set1_epi8((char)to->lo)};
    if (shift != 0)
        put_row_until_tie(c, n, &by, true, to->out);
    else
        put_row_until_tie(c, n, &by, false, to->out);
}
