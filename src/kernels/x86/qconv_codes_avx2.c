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

enum { ROWS = 3, STEP = 32, VECTORS = 4, SOME = 1024 /* outputs at a time */ };
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

/* Whether products with the float are rounded as those with the double are, for the sums next to where the
 * result goes from one whole number to the next, of numbers first … end. */
static bool is_sure(double scale, float with, int first, int end)
{
    for (int k = first; k < end; k++) {
        double sum = nearbyint((k + 0.5) / scale);
        for (int i = -1; i <= 1; i++) {
            float code = fmaf((float)(sum + i), with, magic) - magic;
            double exact = nearbyint((sum + i) * scale);
            if (exact != (double)code)
                return false;
        }
    }
    return true;
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

/* Sums of both groups for 32 outputs: even ones, odd ones; of a single group only the first two. */
typedef struct sums16 {
    __m256i even[2], odd[2];
} sums16;

/* Windows one after the other, of which n count. `single` is constant in each call. */
static inline __attribute__((always_inline)) void sum_taps(const uint8_t *x, size_t step, const packed *p,
                                                           bool single, size_t n, sums16 *out)
{
    const uint8_t *rows[ROWS];
    const __m256i begin = _mm256_set1_epi16(p->begin[0]), other = _mm256_set1_epi16(p->begin[1]);
    __m256i w[2 * ROWS];
    for (size_t r = 0; r < ROWS; r++)
        rows[r] = x + p->rows[r] * step;
    for (size_t t = 0; t < 2 * ROWS; t++) {
        int16_t both;
        memcpy(&both, &p->w[t / 2][t % 2 * 2], sizeof both);
        w[t] = _mm256_set1_epi16(both);
    }
    for (size_t i = 0; i < n; i += STEP, out++) {
        __m256i even = begin, odd = begin, even2 = other, odd2 = other;
        for (int r = 0; r < ROWS; r++) {
            __m256i *second = r == 0 || single ? &even : &even2,
                    *second_odd = r == 0 || single ? &odd : &odd2;
            __m256i *first = r < 2 || single ? &even : &even2, *first_odd = r < 2 || single ? &odd : &odd2;
            __m256i a = load(rows[r] + i), b = load(rows[r] + i + 1), c = load(rows[r] + i + 2);
            add_now(first, products(a, w + 2 * r));
            add_now(first_odd, products(b, w + 2 * r));
            add_now(second, products(b, w + 2 * r + 1));
            add_now(second_odd, products(c, w + 2 * r + 1));
        }
        out->even[0] = even;
        out->odd[0] = odd;
        if (!single) {
            out->even[1] = even2;
            out->odd[1] = odd2;
        }
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

/* `single` as above. */
static inline __attribute__((always_inline)) void put_codes(const sums16 *s, const packed *p, bool single,
                                                            size_t n, uint8_t *out)
{
    const __m256i init = _mm256_set1_epi32(p->init), zero_point = _mm256_set1_epi16(p->zero_point);
    const __m256i flip = _mm256_set1_epi8((char)p->flip), upper = _mm256_set1_epi16(0x4b00);
    const __m256 scale = _mm256_set1_ps(p->scale), taken = _mm256_set1_ps(0x1p23f - (float)p->init);
    for (size_t i = 0; i < n; i += STEP, s++) {
        __m256 v[VECTORS];
        if (single) {
            v[0] = as_float(_mm256_unpacklo_epi16(s->even[0], upper), taken);
            v[1] = as_float(_mm256_unpackhi_epi16(s->even[0], upper), taken);
            v[2] = as_float(_mm256_unpacklo_epi16(s->odd[0], upper), taken);
            v[3] = as_float(_mm256_unpackhi_epi16(s->odd[0], upper), taken);
        } else {
            v[0] = sum_floats(_mm256_unpacklo_epi16(s->even[0], s->even[1]), init);
            v[1] = sum_floats(_mm256_unpackhi_epi16(s->even[0], s->even[1]), init);
            v[2] = sum_floats(_mm256_unpacklo_epi16(s->odd[0], s->odd[1]), init);
            v[3] = sum_floats(_mm256_unpackhi_epi16(s->odd[0], s->odd[1]), init);
        }
        /* lower halves hold the results: those of odd outputs go into the upper halves of the others */
        __m256i low =
            _mm256_blend_epi16(rounded(v[0], scale), _mm256_slli_epi32(rounded(v[2], scale), 16), 0xaa);
        __m256i high =
            _mm256_blend_epi16(rounded(v[1], scale), _mm256_slli_epi32(rounded(v[3], scale), 16), 0xaa);
        low = _mm256_adds_epi16(low, zero_point);
        high = _mm256_adds_epi16(high, zero_point);
        _mm256_storeu_si256((void *)(out + i), _mm256_xor_si256(_mm256_packus_epi16(low, high), flip));
    }
}

static void some_codes(const uint8_t *x, size_t step, const packed *p, size_t n, uint8_t *out)
{
    sums16 sums[SOME / STEP];
    if (p->single) {
        sum_taps(x, step, p, true, n, sums);
        put_codes(sums, p, true, n, out);
    } else {
        sum_taps(x, step, p, false, n, sums);
        put_codes(sums, p, false, n, out);
    }
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

/* Windows of some rows are taken as one row: those between rows are left out when codes are put in their
 * place. */
void dq_qconv_3x3_codes_avx2(const uint8_t *x, size_t step, size_t rows, const void *from, size_t n,
                             uint8_t *out)
{
    uint8_t made[SOME];
    packed p;
    memcpy(&p, from, sizeof p);
    size_t together = n < SOME ? 1 + (SOME - n) / step : 1;
    for (size_t i = 0, some; i < rows; i += some) {
        some = rows - i < together ? rows - i : together;
        for (size_t j = 0, width; j < n; j += width) {
            width = n - j < SOME ? n - j : SOME;
            const uint8_t *corner = x + i * step + j;
            some_codes(corner, step, &p, (some - 1) * step + width, made);
            put_rows(made, step, some, width, out + i * n + j);
        }
    }
}
