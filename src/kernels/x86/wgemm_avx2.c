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

typedef struct fixed {
    const dq_wide_sums *s;
    __m256d low, high;
    __m256i zero;
} fixed;

static inline __m256d doubles(const int32_t *x)
{
    return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)x));
}

/* The lower half of a result is the whole number that it was rounded to. */
static inline __m256 four(const fixed *f, size_t at, size_t extra, const double *more, __m256d offset,
                          __m256d scale)
{
    const __m256d magic = _mm256_set1_pd(6755399441055744.0); /* 1.5 * 2^52 */
    __m256d v = doubles(f->s->sums + at);
    if (f->s->high)
        v = _mm256_add_pd(v, _mm256_mul_pd(doubles(f->s->high + at), _mm256_set1_pd(256)));
    if (f->s->extra)
        v = _mm256_add_pd(v, _mm256_loadu_pd(f->s->extra + extra));
    if (more)
        v = _mm256_add_pd(v, f->s->col_step ? _mm256_loadu_pd(more) : _mm256_broadcast_sd(more));
    v = _mm256_mul_pd(_mm256_add_pd(v, offset), scale);
    v = _mm256_max_pd(v, f->low); /* of NaN and a bound, max gives the bound */
    return _mm256_castpd_ps(_mm256_add_pd(_mm256_min_pd(v, f->high), magic));
}

/* Numbers 0 1 4 5 and 2 3 6 7 are in the halves of `v`: their lower 16 bits, in order. */
static inline __m128i in_order(const fixed *f, __m256 v)
{
    const __m256i lower = _mm256_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 13, 12, 9, 8, 5, 4, 1, 0, -1, -1,
                                          -1, -1, -1, -1, -1, -1, 13, 12, 9, 8, 5, 4, 1, 0);
    __m256i codes = _mm256_shuffle_epi8(_mm256_add_epi32(_mm256_castps_si256(v), f->zero), lower);
    return _mm_unpacklo_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
}

/* One row. */
static __attribute__((noinline)) void any_row(const dq_wide_sums *s, size_t i, uint16_t *out)
{
    const fixed f = {s, _mm256_set1_pd(s->lo - s->zero_point), _mm256_set1_pd(s->hi - s->zero_point),
                     _mm256_set1_epi32(s->zero_point)};
    const double *offset = s->offset + i * s->row_step, *scale = s->scale + i * s->row_step;
    const double *more = s->fixed ? s->fixed + i * s->row_step : NULL;
    const size_t at = i * s->stride, extra = i * s->extra_stride;
    __m256d o0 = _mm256_broadcast_sd(offset), s0 = _mm256_broadcast_sd(scale), o1 = o0, s1 = s0;
    size_t j = 0;
    for (; j + LANES <= s->cols; j += LANES) {
        if (s->col_step) {
            o0 = _mm256_loadu_pd(offset + j);
            s0 = _mm256_loadu_pd(scale + j);
            o1 = _mm256_loadu_pd(offset + j + 4);
            s1 = _mm256_loadu_pd(scale + j + 4);
        }
        const double *first = more ? more + j * s->col_step : NULL,
                     *second = more ? first + 4 * s->col_step : NULL;
        __m256 v = _mm256_shuffle_ps(four(&f, at + j, extra + j, first, o0, s0),
                                     four(&f, at + j + 4, extra + j + 4, second, o1, s1), 0x88);
        _mm_storeu_si128((__m128i *)(void *)(out + j), in_order(&f, v));
    }
    if (j < s->cols) {
        const dq_wide_sums rest = dq_wide_rest(s, i, j);
        dq_requantize_wide_c(&rest, out + j);
    }
}

/* Rows that are as most are: to 16 bits, one offset and scale for all columns. All products lie so far within
 * 31 bits that integers may be saturated. */
typedef struct plain {
    __m256d offset, scale;
    __m256i zero; /* and codes less the middle of their type, `flip` */
    __m256i flip;
} plain;

/* Numbers 0 1 4 5 and 2 3 6 7. */
static inline __m256i eight_plain(const plain *p, const int32_t *sums)
{
    const __m256d magic = _mm256_set1_pd(6755399441055744.0);
    __m256d low = _mm256_mul_pd(_mm256_add_pd(doubles(sums), p->offset), p->scale);
    __m256d up = _mm256_mul_pd(_mm256_add_pd(doubles(sums + 4), p->offset), p->scale);
    __m256 v = _mm256_shuffle_ps(_mm256_castpd_ps(_mm256_add_pd(low, magic)),
                                 _mm256_castpd_ps(_mm256_add_pd(up, magic)), 0x88);
    return _mm256_add_epi32(_mm256_castps_si256(v), p->zero);
}

static inline __m256i codes_of(const plain *p, __m256i first, __m256i second)
{
    __m256i codes = _mm256_xor_si256(_mm256_packs_epi32(first, second), p->flip);
    return _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline __m128i eight_codes(const plain *p, const int32_t *sums)
{
    __m256i v = eight_plain(p, sums);
    return _mm256_castsi256_si128(codes_of(p, v, v));
}

/* Fewer than eight columns. */
static __attribute__((noinline)) void few_plain(const plain *p, const int32_t *sums, size_t n, uint16_t *out)
{
    int32_t all[LANES] = {0};
    for (size_t j = 0; j < n; j++)
        all[j] = sums[j];
    __m128i codes = eight_codes(p, all);
    if (n & 4) {
        _mm_storel_epi64((__m128i *)(void *)out, codes);
        codes = _mm_srli_si128(codes, 8);
        out += 4;
    }
    if (n & 2) {
        _mm_storeu_si32(out, codes);
        codes = _mm_srli_si128(codes, 4);
        out += 2;
    }
    if (n & 1)
        *out = (uint16_t)_mm_extract_epi16(codes, 0);
}

static inline void plain_row(const plain *p, const int32_t *sums, size_t cols, uint16_t *out)
{
    size_t j = 0;
    for (; j + 2 * LANES <= cols; j += 2 * LANES)
        vi_store(out + j, codes_of(p, eight_plain(p, sums + j), eight_plain(p, sums + j + LANES)));
    if (j == cols)
        return;
    if (cols < LANES) {
        const plain own = *p;
        few_plain(&own, sums, cols, out);
        return;
    }
    if (j + LANES <= cols)
        _mm_storeu_si128((__m128i *)(void *)(out + j), eight_codes(p, sums + j));
    /* the last ones reach back over those before them */
    if (cols % LANES > 0)
        _mm_storeu_si128((__m128i *)(void *)(out + cols - LANES), eight_codes(p, sums + cols - LANES));
}

/* Rows from row i on, as long as they are plain; returns the number of the first that is not. */
static __attribute__((noinline)) size_t plain_rows(const dq_wide_sums *s, size_t i, uint16_t *out)
{
    const int32_t *sums = s->sums + i * s->stride;
    const double *offset = s->offset + i * s->row_step, *scale = s->scale + i * s->row_step;
    const size_t rows = s->rows, cols = s->cols, stride = s->stride, step = s->row_step, next = s->out_stride;
    const int16_t flip = s->lo < 0 ? 0 : INT16_MIN;
    plain p = {.zero = _mm256_set1_epi32(s->zero_point + flip), .flip = _mm256_set1_epi16(flip)};
    if (s->hi - s->lo != UINT16_MAX || s->col_step || s->high || s->extra || s->fixed)
        return i;
    for (out += i * next; i < rows && (0x1p31 + fabs(*offset)) * fabs(*scale) <= 0x1p30; i++) {
        p.offset = _mm256_broadcast_sd(offset);
        p.scale = _mm256_broadcast_sd(scale);
        plain_row(&p, sums, cols, out);
        sums += stride;
        out += next;
        offset += step;
        scale += step;
    }
    return i;
}

void dq_requantize_wide_avx2(const dq_wide_sums *s, uint16_t *out)
{
    for (size_t i = 0; s->cols > 0 && (i = plain_rows(s, i, out)) < s->rows; i++)
        any_row(s, i, out + i * s->out_stride);
}
