/* Fused float products decide nearly all roundings. The sum r = acc * scale + (768.5 + 2^-13) is taken times
 * 2^-75, so that its bits, an integer, count steps of 2^-14 from below where |acc * scale| is under 256: bits
 * 14 and up are then the rounded product and a constant, which fits in 16 bits (that is what the power of two
 * is for), and the lower 14 say how far it was from the next half quantum. acc and scale are each off by at
 * most 2^-24 of their size and r by half a step, one step in all, so that the result is sure unless fewer
 * than four steps are left; those few are done in double. From 256 on all results saturate, whatever the zero
 * point, and bits of floats go up with them (those of negative ones are negative). */
#include "kernels/kernels.h"

#include <float.h>
#include <immintrin.h>
#include <string.h>

enum { LANES = 8, COLS = 16, ROWS = 16 };
/* Rows that are written as far as they go before the next: where they are a power of two apart, more of them
 * push each other out of the first-level cache. */
enum { BAND = 8 };

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

enum { FRACTION = 14, UNSURE = 3, MIDDLE = (61 << 9) + 256 /* bits 14 and up of 768 * 2^-75 */ };

/* What stays the same from row to row. Codes are made as if `lo` were 0, and flipped at the end. */
typedef struct fixed {
    __m256i below, flip; /* what is taken from bits 14 and up */
} fixed;

static inline fixed fix(int32_t zero_point, int32_t lo)
{
    return (fixed){_mm256_set1_epi16((int16_t)(uint16_t)(MIDDLE - (zero_point - lo))),
                   _mm256_set1_epi8((char)lo)};
}

/* `least`: the smallest fraction so far. */
static inline bool sure(__m256i least)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(least, _mm256_set1_epi32(UNSURE))) == -1;
}

/* Bits 14 and up for eight sums; the scale is finite, and times 2^-75. */
static inline __m256i eight(const int32_t *acc, __m256 scale, __m256i *least)
{
    const __m256 middle = _mm256_set1_ps((768.5f + 0x1p-13f) * 0x1p-75f);
    __m256 v = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)acc));
    __m256i bits = _mm256_castps_si256(_mm256_fmadd_ps(v, scale, middle));
    *least = _mm256_min_epi32(*least, _mm256_and_si256(bits, _mm256_set1_epi32((1 << FRACTION) - 1)));
    return _mm256_srai_epi32(bits, FRACTION);
}

static inline __m256i no_fraction(void)
{
    return _mm256_set1_epi32(1 << FRACTION);
}

/* 32 codes from four times eight: of each four first those, then, in the upper half, the others. */
static inline __m256i codes_of(const __m256i v[4], const fixed *f)
{
    __m256i first = _mm256_subs_epu16(_mm256_packus_epi32(v[0], v[1]), f->below);
    __m256i second = _mm256_subs_epu16(_mm256_packus_epi32(v[2], v[3]), f->below);
    return _mm256_xor_si256(_mm256_packus_epi16(first, second), f->flip);
}

static inline __m256i in_order(__m256i codes)
{
    return _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline __m256 eight_scales(const double *scale)
{
    const __m256d unit = _mm256_set1_pd(0x1p-75);
    __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_loadu_pd(scale), unit));
    __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_loadu_pd(scale + 4), unit));
    return _mm256_set_m128(high, low);
}

static inline bool all_finite(__m256 s)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), s);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ)) == 0xff;
}

enum { ROW_VECTORS = 4, ROW_STEP = ROW_VECTORS * LANES };

/* Elements from `at` on, until there are all n or some are not sure: where these begin. No function is
 * called, so that constants stay in registers; `step` is constant in each call. */
static inline __attribute__((always_inline)) size_t
sure_elements(const int32_t *acc, size_t at, size_t n, const double *scale, bool step, fixed f, uint8_t *out)
{
    __m256 s[ROW_VECTORS] = {_mm256_set1_ps((float)(scale[0] * 0x1p-75))};
    bool finite = all_finite(s[0]);
    s[1] = s[2] = s[3] = s[0];
    for (; at < n; at += ROW_STEP) {
        size_t j =
            n - at < ROW_STEP ? n - ROW_STEP : at; /* the last ones reach back over those before them */
        __m256i v[ROW_VECTORS], least = no_fraction();
        for (size_t i = 0; i < ROW_VECTORS && step; i++) {
            s[i] = eight_scales(scale + j + i * LANES);
            finite = all_finite(s[i]) && (i == 0 || finite);
        }
        for (int i = 0; i < ROW_VECTORS; i++)
            v[i] = eight(acc + j + i * LANES, s[i], &least);
        if (!finite || !sure(least))
            return at;
        _mm256_storeu_si256((__m256i *)(void *)(out + j), in_order(codes_of(v, &f)));
    }
    return n;
}

void dq_requantize_avx2(const int32_t *acc, size_t n, const double *scale, size_t scale_step,
                        int32_t zero_point, int32_t lo, int32_t hi, uint8_t *out)
{
    if (n < ROW_STEP) {
        exact(acc, n, scale, scale_step, zero_point, lo, hi, out);
        return;
    }
    fixed f = fix(zero_point, lo);
    for (size_t at = 0; at < n; at += ROW_STEP) {
        at = scale_step ? sure_elements(acc, at, n, scale, true, f, out)
                        : sure_elements(acc, at, n, scale, false, f, out);
        if (at >= n)
            return;
        size_t j = n - at < ROW_STEP ? n - ROW_STEP : at;
        exact(acc + j, ROW_STEP, scale + j * scale_step, scale_step, zero_point, lo, hi, out + j);
    }
}

/* ---- Tiles -------------------------------------------------------------------------------------------- */

typedef struct tile {
    const dq_requantize_to *to;
    const double *scale;
    __m256 s[2]; /* the same as eight() wants them */
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
    memcpy(out, bytes, n);
}

/* Two rows of 16 columns. */
static inline void two_rows(const tile *t, const int32_t *first, const int32_t *second, __m128i out[2])
{
    __m256i least = no_fraction();
    __m256i v[4] = {eight(first, t->s[0], &least), eight(first + LANES, t->s[1], &least),
                    eight(second, t->s[0], &least), eight(second + LANES, t->s[1], &least)};
    __m256i codes = in_order(codes_of(v, &t->f));
    out[0] = _mm256_castsi256_si128(codes);
    out[1] = _mm256_extracti128_si256(codes, 1);
    if (!sure(least) || !t->finite)
        for (int i = 0; i < 2; i++) {
            uint8_t row[COLS];
            exact(i ? second : first, COLS, t->scale, 1, t->to->zero_point, t->to->lo, t->to->hi, row);
            out[i] = _mm_loadu_si128((const __m128i *)(const void *)row);
        }
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

enum { QUAD = 4 };

/* Four rows of eight columns, as codes_of() has them. */
static __attribute__((noinline)) __m256i exact_quad(const tile *t, const int32_t *const rows[QUAD], int half)
{
    uint8_t codes[2 * COLS], row[LANES];
    for (int i = 0; i < QUAD; i++) {
        exact(rows[i] + half * LANES, LANES, t->scale + half * LANES, 1, t->to->zero_point, t->to->lo,
              t->to->hi, row);
        memcpy(codes + i * 4, row, 4);
        memcpy(codes + COLS + i * 4, row + 4, 4);
    }
    return _mm256_loadu_si256((const __m256i *)(const void *)codes);
}

/* The same, each column's four bytes together. */
static inline __m256i quad(const tile *t, const int32_t *const rows[QUAD], int half)
{
    const __m256i turn = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12,
                                          1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m256i v[QUAD], least = no_fraction();
    for (int i = 0; i < QUAD; i++)
        v[i] = eight(rows[i] + half * LANES, t->s[half], &least);
    __m256i codes = codes_of(v, &t->f);
    if (__builtin_expect(!sure(least) || !t->finite, 0))
        codes = exact_quad(t, rows, half);
    return _mm256_shuffle_epi8(codes, turn);
}

/* 16 rows, of which n are there, by eight columns, of which `cols` are: both constant where all are. */
static inline __attribute__((always_inline)) void square(const tile *t, const int32_t *acc, size_t acc_stride,
                                                         int half, size_t n, size_t cols, uint8_t *out)
{
    __m256i x[QUAD], y[QUAD];
    for (size_t k = 0; k < QUAD; k++) {
        const int32_t *from[QUAD];
        for (size_t e = 0; e < QUAD; e++)
            from[e] = acc + (k * QUAD + e < n ? k * QUAD + e : n - 1) * acc_stride;
        x[k] = quad(t, from, half);
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

/* The last 16 rows reach back over those before them, where there are enough. */
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

void dq_requantize_tile_avx2(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                             const dq_requantize_to *to)
{
    double few[COLS] = {0};
    tile t = {.to = to, .f = fix(to->zero_point, to->lo)};
    for (size_t i = 0, band; i < rows; i += band) {
        band = to->transposed || rows - i < BAND ? rows - i : BAND;
        for (size_t j = 0; j < cols; j += COLS) {
            size_t n = cols - j < COLS ? cols - j : COLS;
            const int32_t *from = acc + i * acc_stride + j;
            t.scale = to->scale + j;
            if (n < COLS)
                t.scale = memcpy(few, t.scale, n * sizeof *few);
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

/* ---- Rows of a few channels, turned -------------------------------------------------------------------- */

/* Of four rows of sums, eight pixels of four channels. */
static __m256i exact_pixels(const int32_t *const rows[QUAD], size_t channels, const dq_requantize_to *to)
{
    uint8_t codes[QUAD * LANES] = {0}, row[LANES];
    for (size_t j = 0; j < channels; j++) {
        exact(rows[j], LANES, to->scale + j, 0, to->zero_point, to->lo, to->hi, row);
        for (size_t p = 0; p < LANES; p++)
            codes[p * QUAD + j] = row[p];
    }
    return _mm256_loadu_si256((const __m256i *)(const void *)codes);
}

void dq_qlanes_store_avx2(const int32_t *c, size_t c_stride, size_t n, size_t channels,
                          const dq_requantize_to *to)
{
    const __m256i turn = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12,
                                          1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    fixed f = fix(to->zero_point, to->lo);
    __m256 s[QUAD];
    const int32_t *rows[QUAD];
    bool finite = true;
    for (size_t j = 0; j < QUAD; j++) {
        size_t row = j < channels ? j : channels - 1;
        rows[j] = c + row * c_stride;
        s[j] = _mm256_set1_ps((float)(to->scale[row] * 0x1p-75));
        finite = finite && all_finite(s[j]);
    }
    uint8_t *out = to->out;
    for (size_t p = 0; p < n; p += LANES) {
        __m256i v[QUAD], least = no_fraction();
        for (int j = 0; j < QUAD; j++)
            v[j] = eight(rows[j] + p, s[j], &least);
        __m256i codes = _mm256_shuffle_epi8(codes_of(v, &f), turn);
        if (__builtin_expect(!finite || !sure(least), 0)) {
            const int32_t *const at[QUAD] = {rows[0] + p, rows[1] + p, rows[2] + p, rows[3] + p};
            codes = exact_pixels(at, channels, to);
        }
        uint32_t pixels[LANES];
        if (channels == QUAD && to->out_stride == QUAD && p + LANES <= n) {
            _mm256_storeu_si256((__m256i *)(void *)out, codes);
            out += LANES * QUAD;
            continue;
        }
        _mm256_storeu_si256((__m256i *)(void *)pixels, codes);
        for (size_t i = 0; i < LANES && p + i < n; i++, out += to->out_stride)
            if (channels == QUAD)
                memcpy(out, &pixels[i], QUAD);
            else
                memcpy(out, &pixels[i], channels);
    }
}
