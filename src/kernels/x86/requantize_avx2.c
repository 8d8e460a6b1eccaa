/* Products in float decide nearly all roundings: acc, scale and their product are each off by at most 2^-24
 * of their size, so that below 512 the product is within 2^-13.4 of the true one, and rounds alike unless it
 * is closer than that to half a quantum. Those few are done in double, as are products that do not fit in 32
 * bits: the conversion gives the lowest number then, which is far from them. From 512 on all results
 * saturate, whatever the zero point. */
#include "kernels/kernels.h"

#include <float.h>
#include <immintrin.h>
#include <string.h>

enum { LANES = 8, COLS = 16, ROWS = 16, GROUP = 4 /* vectors that become one of bytes */ };

/* Four results as int32. The maximum with `low` last: where the product is NaN, the instruction gives its
 * second operand. */
static inline __m128i four(const int32_t *acc, __m256d scale, __m256d low, __m256d high, __m128i zero)
{
    __m128i sums = _mm_loadu_si128((const __m128i *)(const void *)acc);
    __m256d v = _mm256_mul_pd(_mm256_cvtepi32_pd(sums), scale);
    v = _mm256_min_pd(_mm256_max_pd(v, low), high);
    v = _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm_add_epi32(_mm256_cvttpd_epi32(v), zero);
}

static __attribute__((noinline)) void exact(const int32_t *acc, size_t n, const double *scale,
                                            size_t scale_step, int32_t zero_point, int32_t lo, int32_t hi,
                                            uint8_t *out)
{
    __m256d low = _mm256_set1_pd(lo - zero_point), high = _mm256_set1_pd(hi - zero_point);
    __m128i zero = _mm_set1_epi32(zero_point), low_bytes = _mm_set1_epi32(0xff);
    size_t j = 0;
    __m256d s0 = _mm256_set1_pd(n ? scale[0] : 0), s1 = s0;
    for (; j + LANES <= n; j += LANES) {
        if (scale_step) {
            s0 = _mm256_loadu_pd(scale + j);
            s1 = _mm256_loadu_pd(scale + j + 4);
        }
        __m128i a = _mm_and_si128(four(acc + j, s0, low, high, zero), low_bytes);
        __m128i b = _mm_and_si128(four(acc + j + 4, s1, low, high, zero), low_bytes);
        __m128i words = _mm_packus_epi32(a, b);
        _mm_storel_epi64((__m128i *)(void *)(out + j), _mm_packus_epi16(words, words));
    }
    if (j < n)
        dq_requantize_c(acc + j, n - j, scale + (scale_step ? j : 0), scale_step, zero_point, lo, hi,
                        out + j);
}

/* What stays the same from row to row. Codes are made as if `lo` were 0, and flipped at the end. */
typedef struct fixed {
    __m256i zero, flip;
} fixed;

static inline fixed fix(int32_t zero_point, int32_t lo)
{
    return (fixed){_mm256_set1_epi16((int16_t)(zero_point - lo)), _mm256_set1_epi8((char)lo)};
}

/* How far products have been from what they were rounded to, down and up. */
typedef struct distance {
    __m256 least, most;
} distance;

static inline bool sure(distance d)
{
    const __m256 bound = _mm256_set1_ps(0.5f - 0x1p-13f);
    __m256 inside =
        _mm256_and_ps(_mm256_cmp_ps(d.most, bound, _CMP_LT_OQ),
                      _mm256_cmp_ps(d.least, _mm256_sub_ps(_mm256_setzero_ps(), bound), _CMP_GT_OQ));
    return _mm256_movemask_ps(inside) == 0xff;
}

/* Eight sums rounded. The scale is finite. */
static inline __m256i eight(const int32_t *acc, __m256 scale, distance *d)
{
    __m256 v = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)acc));
    v = _mm256_mul_ps(v, scale);
    __m256i code = _mm256_cvtps_epi32(v);
    v = _mm256_sub_ps(v, _mm256_cvtepi32_ps(code));
    d->least = _mm256_min_ps(d->least, v);
    d->most = _mm256_max_ps(d->most, v);
    return code;
}

/* 32 codes from four times eight: elements 0 … 3 of one after the other, and then 4 … 7. */
static inline __m256i quarters(__m256i a, __m256i b, __m256i c, __m256i d, const fixed *f)
{
    __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(a, b), f->zero);
    __m256i second = _mm256_adds_epi16(_mm256_packs_epi32(c, d), f->zero);
    return _mm256_xor_si256(_mm256_packus_epi16(first, second), f->flip);
}

/* The same, vectors one after the other. */
static inline __m256i join(__m256i a, __m256i b, __m256i c, __m256i d, const fixed *f)
{
    return _mm256_permutevar8x32_epi32(quarters(a, b, c, d, f), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline __m256 eight_scales(const double *scale)
{
    __m128 low = _mm256_cvtpd_ps(_mm256_loadu_pd(scale)), high = _mm256_cvtpd_ps(_mm256_loadu_pd(scale + 4));
    return _mm256_set_m128(high, low);
}

static inline bool all_finite(__m256 s)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), s);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ)) == 0xff;
}

void dq_requantize_avx2(const int32_t *acc, size_t n, const double *scale, size_t scale_step,
                        int32_t zero_point, int32_t lo, int32_t hi, uint8_t *out)
{
    enum { VECTORS = 4, STEP = VECTORS * LANES };
    if (n < STEP) {
        exact(acc, n, scale, scale_step, zero_point, lo, hi, out);
        return;
    }
    fixed f = fix(zero_point, lo);
    __m256 s[VECTORS] = {_mm256_set1_ps((float)scale[0])};
    bool finite = all_finite(s[0]);
    s[1] = s[2] = s[3] = s[0];
    for (size_t at = 0; at < n; at += STEP) {
        size_t j = n - at < STEP ? n - STEP : at; /* the last ones reach back over those before them */
        distance d = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        __m256i codes[VECTORS];
        for (size_t v = 0; v < VECTORS && scale_step; v++) {
            s[v] = eight_scales(scale + j + v * LANES);
            finite = all_finite(s[v]) && (v == 0 || finite);
        }
        for (int v = 0; v < VECTORS; v++)
            codes[v] = eight(acc + j + v * LANES, s[v], &d);
        if (finite && sure(d))
            _mm256_storeu_si256((__m256i *)(void *)(out + j),
                                join(codes[0], codes[1], codes[2], codes[3], &f));
        else
            exact(acc + j, STEP, scale + j * scale_step, scale_step, zero_point, lo, hi, out + j);
    }
}

/* ---- Tiles -------------------------------------------------------------------------------------------- */

typedef struct tile {
    const dq_requantize_to *to;
    const double *scale;
    __m256 s[2]; /* the same as floats */
    bool finite;
    fixed f;
} tile;

/* Two rows of 16 columns. */
static inline void two_rows(const tile *t, const int32_t *first, const int32_t *second, __m128i out[2])
{
    distance d = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256i a = eight(first, t->s[0], &d), b = eight(first + LANES, t->s[1], &d);
    __m256i e = eight(second, t->s[0], &d), f = eight(second + LANES, t->s[1], &d);
    __m256i codes = join(a, b, e, f, &t->f);
    out[0] = _mm256_castsi256_si128(codes);
    out[1] = _mm256_extracti128_si256(codes, 1);
    if (!sure(d) || !t->finite)
        for (int i = 0; i < 2; i++) {
            uint8_t row[COLS];
            exact(i ? second : first, COLS, t->scale, 1, t->to->zero_point, t->to->lo, t->to->hi, row);
            out[i] = _mm_loadu_si128((const __m128i *)(const void *)row);
        }
}

static inline void put(uint8_t *out, __m128i v, size_t n)
{
    uint8_t bytes[COLS];
    if (n >= COLS) {
        _mm_storeu_si128((__m128i *)(void *)out, v);
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)bytes, v);
    memcpy(out, bytes, n);
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

static __attribute__((noinline)) __m256i exact_group(const tile *t, const int32_t *const row[GROUP],
                                                     size_t half)
{
    uint8_t bytes[GROUP * LANES];
    for (size_t k = 0; k < GROUP; k++)
        exact(row[k], LANES, t->scale + half * LANES, 1, t->to->zero_point, t->to->lo, t->to->hi,
              bytes + k * LANES);
    return _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(const void *)bytes),
                                       _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

/* Eight columns of rows i … i + 3, the last one standing in for those that are missing: four bytes of a
 * column beside each other, columns 0 … 3 in the lower half. */
static inline __m256i group(const tile *t, const int32_t *acc, size_t acc_stride, size_t i, size_t rows,
                            size_t half)
{
    const __m256i turned =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    distance d = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    const int32_t *row[GROUP];
    __m256i v[GROUP];
    for (size_t k = 0; k < GROUP; k++) {
        row[k] = acc + (i + k < rows ? i + k : rows - 1) * acc_stride + half * LANES;
        v[k] = eight(row[k], t->s[half], &d);
    }
    __m256i codes =
        sure(d) && t->finite ? quarters(v[0], v[1], v[2], v[3], &t->f) : exact_group(t, row, half);
    return _mm256_shuffle_epi8(codes, turned);
}

/* Columns k and k + 4 of 16 rows, for k < 4, from the bytes of four groups. */
static inline void join_groups(const __m256i v[GROUP], uint8_t *out, size_t stride)
{
    __m256i pairs[GROUP];
    for (size_t k = 0; k < 2; k++) {
        pairs[k] = _mm256_unpacklo_epi32(v[2 * k], v[2 * k + 1]);
        pairs[2 + k] = _mm256_unpackhi_epi32(v[2 * k], v[2 * k + 1]);
    }
    for (size_t k = 0; k < GROUP; k++) {
        __m256i low = pairs[k / 2 * 2], high = pairs[k / 2 * 2 + 1];
        __m256i lanes = k % 2 ? _mm256_unpackhi_epi64(low, high) : _mm256_unpacklo_epi64(low, high);
        _mm_storeu_si128((__m128i *)(void *)(out + k * stride), _mm256_castsi256_si128(lanes));
        _mm_storeu_si128((__m128i *)(void *)(out + (k + GROUP) * stride), _mm256_extracti128_si256(lanes, 1));
    }
}

/* By squares of 16 rows. */
static inline void as_columns(const tile *t, const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                              uint8_t *out)
{
    size_t stride = t->to->out_stride;
    for (size_t i = 0; i < rows; i += ROWS)
        for (size_t half = 0; half * LANES < cols; half++) {
            uint8_t some[LANES * ROWS], *to = out + half * LANES * stride + i;
            size_t n = rows - i, lines = cols - half * LANES;
            __m256i v[GROUP];
            for (size_t k = 0; k < GROUP; k++)
                v[k] = group(t, acc, acc_stride, i + k * GROUP, rows, half);
            if (n >= ROWS && lines >= LANES) {
                join_groups(v, to, stride);
                continue;
            }
            join_groups(v, some, ROWS);
            for (size_t j = 0; j < lines && j < LANES; j++)
                memcpy(to + j * stride, some + j * ROWS, n < ROWS ? n : ROWS);
        }
}

void dq_requantize_tile_avx2(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                             const dq_requantize_to *to)
{
    double few[COLS] = {0};
    tile t = {.to = to, .f = fix(to->zero_point, to->lo)};
    for (size_t j = 0; j < cols; j += COLS) {
        size_t n = cols - j < COLS ? cols - j : COLS;
        t.scale = to->scale + j;
        if (n < COLS)
            t.scale = memcpy(few, t.scale, n * sizeof *few);
        t.s[0] = eight_scales(t.scale);
        t.s[1] = eight_scales(t.scale + LANES);
        t.finite = all_finite(t.s[0]) && all_finite(t.s[1]);
        if (to->transposed)
            as_columns(&t, acc + j, acc_stride, rows, n, to->out + j * to->out_stride);
        else
            as_rows(&t, acc + j, acc_stride, rows, n, to->out + j);
    }
}
