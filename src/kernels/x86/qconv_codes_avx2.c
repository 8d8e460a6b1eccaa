/* Kernels of 3×3 to codes, 32 outputs at a time.
 *
 * vpmaddubsw takes neighbours in memory as they are: from the first byte of a window on come products of
 * every other output, and from the next byte on those of the outputs between. A kernel row is two such taps,
 * one byte apart: the middle weight is shared out among them, so that neither overflows 16 bits. Taps are
 * then summed in 16 bits, in one group or in two. Such sums wrap, but lie in a range of at most 2^16 numbers
 * that is known from the weights, and begin with what moves this range to that of 16 bits, so that nothing is
 * lost.
 *
 * A product of floats with nothing to check makes codes of them: only scales are taken for which it was seen
 * to give what the product of doubles gives. Both only grow with the sum, and so are the same for all sums
 * when they are for those beside each half quantum. */
#include "kernels/kernels.h"
#include "kernels/x86/accumulate_avx2.h"
#include "kernels/x86/qconv_row.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { ROWS = 3, STEP = 32, HALF = 16, VECTORS = 4, SOME = 1024 /* outputs at a time */ };
enum { TAP_MOST = 128, GROUP_MOST = 257 }; /* what weights of a tap and of a group come to */

typedef struct packed {
    int8_t w[ROWS][4]; /* of the taps of each row */
    int32_t init;
    int16_t begin[2]; /* of sums of either group */
    int16_t zero_point, flip;
    float scale;
    uint8_t rows[ROWS]; /* of the kernel; the first group has the taps of one, and the next one's first */
    bool single;        /* one group */
} packed;

/* ---- Scales ------------------------------------------------------------------------------------------- */

/* Added to and taken from a float of less than 2^22, this rounds to a whole number: the lower bits. */
static const float magic = 12582912;

static inline __m256i rounded(__m256 v, __m256 scale)
{
    return _mm256_castps_si256(_mm256_fmadd_ps(v, scale, _mm256_set1_ps(magic)));
}

static inline __m256d whole(__m256d v)
{
    return _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Whether products with the float are rounded as those with the double are, for the sums next to where the
 * result goes from one whole number to the next, of numbers first … end and some more. */
static bool is_sure(double scale, float with, int first, int end)
{
    const __m256d scales = _mm256_set1_pd(scale), inverse = _mm256_set1_pd(1 / scale);
    const __m128 floats = _mm_set1_ps(with), middle = _mm_set1_ps(magic);
    __m128 differ = _mm_setzero_ps();
    for (; first < end; first += 4) {
        __m256d half = _mm256_add_pd(_mm256_set1_pd(first), _mm256_setr_pd(0.5, 1.5, 2.5, 3.5));
        __m256d sum = whole(_mm256_mul_pd(half, inverse));
        for (int i = -1; i <= 1; i++) {
            __m256d here = _mm256_add_pd(sum, _mm256_set1_pd(i));
            __m128 exact = _mm256_cvtpd_ps(whole(_mm256_mul_pd(here, scales)));
            __m128 code = _mm_sub_ps(_mm_fmadd_ps(_mm256_cvtpd_ps(here), floats, middle), middle);
            differ = _mm_or_ps(differ, _mm_cmpneq_ps(exact, code));
        }
    }
    return _mm_movemask_ps(differ) == 0;
}

/* 0: there is none. */
static float sure_scale(double scale, int first, int end)
{
    enum { TRIES = 3 };
    const float nearest = (float)scale,
                tries[TRIES] = {nearest, nextafterf(nearest, 0), nextafterf(nearest, 1)};
    for (size_t i = 0; i < TRIES; i++)
        if (is_sure(scale, tries[i], first, end))
            return tries[i];
    return 0;
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Sizes of weights of either sign, and of all. */
static int size_of(int a)
{
    return a < 0 ? -a : a;
}

/* Shares out the middle one of three weights, so that the first tap has at most `first` in all, and the
 * second `second`: whether this is possible. */
static bool split(const int16_t *w, int first, int second, int8_t taps[4])
{
    const int sign = w[1] < 0 ? -1 : 1, most = w[1] < 0 ? 128 : 127, middle = size_of(w[1]);
    int a = first - size_of(w[0]), b = second - size_of(w[2]), same;
    if (w[0] < INT8_MIN || w[0] > INT8_MAX || w[2] < INT8_MIN || w[2] > INT8_MAX || a < 0 || b < 0)
        return false;
    a = a < most ? a : most;
    b = b < most ? b : most;
    same = w[0] * sign > 0 ? w[0] * sign : 0;
    a = a < TAP_MOST - same ? a : TAP_MOST - same;
    same = w[2] * sign > 0 ? w[2] * sign : 0;
    b = b < TAP_MOST - same ? b : TAP_MOST - same;
    if (a + b < middle)
        return false;
    a = a < middle ? a : middle;
    taps[0] = (int8_t)w[0];
    taps[1] = (int8_t)(sign * a);
    taps[2] = (int8_t)(sign * (middle - a));
    taps[3] = (int8_t)w[2];
    return true;
}

static int row_size(const int16_t *w)
{
    return size_of(w[0]) + size_of(w[1]) + size_of(w[2]);
}

static bool find_taps(const int16_t *w, packed *p)
{
    enum { ANY = 2 * GROUP_MOST };
    const int sizes[ROWS] = {row_size(w), row_size(w + 4), row_size(w + 8)};
    p->single = sizes[0] + sizes[1] + sizes[2] <= GROUP_MOST;
    for (size_t i = 0; i < ROWS; i++) { /* the row that both groups share */
        size_t first = i == 0 ? 1 : 0, last = i == 2 ? 1 : 2;
        int room = p->single ? ANY : GROUP_MOST - sizes[first],
            other = p->single ? ANY : GROUP_MOST - sizes[last];
        p->rows[0] = (uint8_t)first;
        p->rows[1] = (uint8_t)i;
        p->rows[2] = (uint8_t)last;
        if (split(w + 4 * first, ANY, ANY, p->w[0]) && split(w + 4 * i, room, other, p->w[1]) &&
            split(w + 4 * last, ANY, ANY, p->w[2]))
            return true;
    }
    return false;
}

bool dq_qconv_3x3_pack_avx2(const int16_t *w, int32_t init, const dq_requantize_to *to, void *out)
{
    enum { EACH = 2 * ROWS };
    packed p = {.zero_point = (int16_t)(to->zero_point - to->lo), .flip = (int16_t)to->lo};
    const double scale = to->scale[0];
    int below[2] = {0, INT16_MIN};
    double largest = fabs((double)init);
    for (size_t t = 0; t < 12; t++)
        largest += 255 * size_of(w[t]);
    if (!(scale >= 0x1p-14) || !(largest * scale < INT16_MAX) || largest >= 0x1p22 || !find_taps(w, &p))
        return false;
    below[0] = p.single ? 0 : INT16_MIN;
    for (size_t t = 0; t < 12; t++) {
        int8_t value = p.w[t / 4][t % 4];
        below[!p.single && t >= EACH] += value < 0 ? -255 * value : 0;
    }
    for (int i = 0; i < 2; i++)
        p.begin[i] = (int16_t)below[i];
    p.init = init - below[0] - (p.single ? 0 : below[1]);
    p.scale = sure_scale(scale, to->lo - to->zero_point, to->hi - to->zero_point);
    memcpy(out, &p, sizeof p);
    return p.scale > 0;
}

/* ---- Codes -------------------------------------------------------------------------------------------- */

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline __m256i products(__m256i x, const __m256i *w)
{
    return _mm256_maddubs_epi16(x, *w);
}

/* Sums of both groups for 32 outputs, 16 and 16 others; of a single group only the first ones. */
typedef struct sums16 {
    __m256i ones[2], others[2];
} sums16;

/* A channel's numbers as vectors. */
typedef struct taps {
    const uint8_t *rows[ROWS];
    __m256i w[2 * ROWS], begin[2];
} taps;

static inline __attribute__((always_inline)) taps taps_of(const uint8_t *x, size_t step, const packed *p)
{
    taps t = {.begin = {_mm256_set1_epi16(p->begin[0]), _mm256_set1_epi16(p->begin[1])}};
    for (size_t r = 0; r < ROWS; r++)
        t.rows[r] = x + p->rows[r] * step;
    for (size_t i = 0; i < 2 * ROWS; i++) {
        int16_t both;
        memcpy(&both, &p->w[i / 2][i % 2 * 2], sizeof both);
        t.w[i] = _mm256_set1_epi16(both);
    }
    return t;
}

/* n windows one after the other: even ones and odd ones. `single` is constant in each call. */
static inline __attribute__((always_inline)) void sum_taps(const uint8_t *x, size_t step, const packed *p,
                                                           bool single, size_t n, sums16 *out)
{
    const taps t = taps_of(x, step, p);
    for (size_t i = 0; i < n; i += STEP, out++) {
        __m256i even[2] = {t.begin[0], t.begin[1]}, odd[2] = {t.begin[0], t.begin[1]};
        for (int r = 0; r < ROWS; r++) {
            const int first = !single && r == 2, second = !single && r > 0;
            __m256i a = load(t.rows[r] + i), b = load(t.rows[r] + i + 1), c = load(t.rows[r] + i + 2);
            add_now(&even[first], products(a, t.w + 2 * r));
            add_now(&odd[first], products(b, t.w + 2 * r));
            add_now(&even[second], products(b, t.w + 2 * r + 1));
            add_now(&odd[second], products(c, t.w + 2 * r + 1));
        }
        for (int g = 0; g < (single ? 1 : 2); g++) {
            out->ones[g] = even[g];
            out->others[g] = odd[g];
        }
    }
}

/* The same of windows two bytes apart: n vectors of 16. */
static inline __attribute__((always_inline)) void sum_apart(const uint8_t *x, size_t step, const packed *p,
                                                            bool single, size_t n, __m256i *out)
{
    const taps t = taps_of(x, step, p);
    for (size_t i = 0; i < n; i++, out += 2) {
        __m256i sums[2] = {t.begin[0], t.begin[1]};
        for (int r = 0; r < ROWS; r++) {
            add_now(&sums[!single && r == 2], products(load(t.rows[r] + i * STEP), t.w + 2 * r));
            add_now(&sums[!single && r > 0], products(load(t.rows[r] + i * STEP + 1), t.w + 2 * r + 1));
        }
        out[0] = sums[0];
        if (!single)
            out[1] = sums[1];
    }
}

/* Of a single group: sums as if 16 bits had no sign are the lower half of a float from 2^23 on. */
static inline __m256 as_float(__m256i halves, __m256 taken)
{
    return _mm256_sub_ps(_mm256_castsi256_ps(halves), taken);
}

static inline __m256 sum_floats(__m256i halves, __m256i init)
{
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(halves, _mm256_set1_epi16(1)), init));
}

/* The lower halves of both hold results: those of the second go into the upper halves of the first. */
static inline __m256i halves_of(__m256i first, __m256i second, __m256i zero_point)
{
    return _mm256_adds_epi16(_mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa), zero_point);
}

/* n outputs; `single` as above, `apart`: the ones are 16 in a row, not even ones. */
static inline __attribute__((always_inline)) void put_codes(const sums16 *s, const packed *p, bool single,
                                                            bool apart, size_t n, uint8_t *out)
{
    const __m256i init = _mm256_set1_epi32(p->init), zero_point = _mm256_set1_epi16(p->zero_point);
    const __m256i flip = _mm256_set1_epi8((char)p->flip), upper = _mm256_set1_epi16(0x4b00);
    const __m256i even = _mm256_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 0, 2, 4, 6, 1,
                                          3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const __m256 scale = _mm256_set1_ps(p->scale), taken = _mm256_set1_ps(0x1p23f - (float)p->init);
    for (size_t i = 0; i < n; i += STEP, s++) {
        const __m256i *a = s->ones, *b = s->others;
        __m256i v[VECTORS] = {_mm256_unpacklo_epi16(a[0], single ? upper : a[1]),
                              _mm256_unpackhi_epi16(a[0], single ? upper : a[1]),
                              _mm256_unpacklo_epi16(b[0], single ? upper : b[1]),
                              _mm256_unpackhi_epi16(b[0], single ? upper : b[1])};
        for (int j = 0; j < VECTORS; j++)
            v[j] = rounded(single ? as_float(v[j], taken) : sum_floats(v[j], init), scale);
        __m256i low = halves_of(v[0], v[apart ? 1 : 2], zero_point);
        __m256i high = halves_of(v[apart ? 2 : 1], v[3], zero_point);
        __m256i codes = _mm256_packus_epi16(low, high);
        if (apart)
            codes = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(codes, even), 0xd8);
        _mm256_storeu_si256((void *)(out + i), _mm256_xor_si256(codes, flip));
    }
}

/* Outputs of some rows, `pitch` apart: windows of all rows are taken as one row, and those between rows are
 * left out when codes are put in their place. */
static inline __attribute__((always_inline)) void
some_codes(const uint8_t *x, size_t step, size_t rows, const packed *p, bool single, size_t n, uint8_t *out)
{
    sums16 sums[SOME / STEP];
    size_t all = (rows - 1) * step + n;
    sum_taps(x, step, p, single, all, sums);
    put_codes(sums, p, single, false, all, out);
}

/* The same at stride 2: rows begin with a vector. */
static inline __attribute__((always_inline)) void
some_apart(const uint8_t *x, size_t step, size_t rows, const packed *p, bool single, size_t n, uint8_t *out)
{
    sums16 sums[SOME / STEP];
    __m256i *to = sums[0].ones;
    for (size_t i = 0, vectors = (n + HALF - 1) / HALF; i < rows; i++, to += 2 * vectors)
        sum_apart(x + 2 * i * step, step, p, single, vectors, to);
    put_codes(sums, p, single, true, rows * ((n + HALF - 1) / HALF * HALF), out);
}

/* Rows of n bytes, `step` apart, one behind the other. Where there is room, short ones are written with what
 * comes behind them, which is written over by the next ones. */
static void put_rows(const uint8_t *from, size_t step, size_t rows, size_t n, uint8_t *out)
{
    const uint8_t *end = out + rows * n;
    for (size_t i = 0; i < rows; i++, from += step, out += n) {
        if (n < STEP && end - out >= STEP) {
            _mm256_storeu_si256((void *)out, load(from));
            continue;
        }
        if (n < STEP) {
            memcpy(out, from, n);
            continue;
        }
        for (size_t j = 0; j < n - STEP; j += STEP)
            _mm256_storeu_si256((void *)(out + j), load(from + j));
        _mm256_storeu_si256((void *)(out + n - STEP), load(from + n - STEP));
    }
}

void dq_qconv_3x3_codes_avx2(const uint8_t *x, size_t step, size_t stride, size_t rows, const void *from,
                             size_t n, uint8_t *out)
{
    uint8_t made[SOME];
    packed p;
    memcpy(&p, from, sizeof p);
    const size_t pitch = stride == 1 ? step : (n + HALF - 1) / HALF * HALF;
    const size_t together = n && n < SOME ? 1 + (SOME - n) / pitch : 1;
    for (size_t i = 0, some; i < rows; i += some) {
        some = rows - i < together ? rows - i : together;
        for (size_t j = 0, width; j < n; j += width) {
            width = n - j < SOME ? n - j : SOME;
            const uint8_t *corner = x + (i * step + j) * stride;
            if (stride == 1 && p.single)
                some_codes(corner, step, some, &p, true, width, made);
            else if (stride == 1)
                some_codes(corner, step, some, &p, false, width, made);
            else if (p.single)
                some_apart(corner, step, some, &p, true, width, made);
            else
                some_apart(corner, step, some, &p, false, width, made);
            put_rows(made, pitch, some, width, out + i * n + j);
        }
    }
}
