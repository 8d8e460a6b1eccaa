/* 32 outputs at a time, sums in 16 bits. vpmaddubsw takes neighbours in memory as they are: with the first
 * byte of a window come sums of every other output where windows are one byte apart, and with the next byte
 * those of the outputs between; of 16 outputs in a row where they are two bytes apart.
 *
 * Sums of a group wrap, but lie in a range of at most 2^16 numbers that is known from its weights: they begin
 * with what moves this range to that of 16 bits, so that nothing is lost. Those of a single group become
 * floats by standing in the lower half of one, those of several are added in 32 bits, two at a time. */
#include "kernels/x86/requantize_avx2.h"

#include <string.h>

/* Sums are to be added to where it is written: gcc would first make many products, and write them to memory
 * because registers do not hold them. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-ter", "no-tree-reassoc")
#endif

enum { STEP = DQ_QCONV_CODES_STEP, VECTORS = 4, LANES = 8 };
enum {
    USUAL = 6,
    USUAL_GROUPS = 3 /* taps of a kernel of 3×3, and in how many groups they nearly always are */
};

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* Sums of 16 outputs, and of 16 others. */
typedef struct sums16 {
    __m256i one, other;
} sums16;

typedef struct job {
    const dq_qconv_taps *taps;
    const dq_requantize_to *to;
    size_t step;
    size_t count; /* of taps, an even number: the last one may have no weight */
    size_t groups, sizes[DQ_QCONV_TAPS_MOST];
    /* of taps; of groups: */
    ptrdiff_t at[DQ_QCONV_TAPS_MOST + 1];
    __m256i w[DQ_QCONV_TAPS_MOST + 1], begin[DQ_QCONV_TAPS_MOST];
    int32_t init; /* what the sums of all groups want besides */
    __m256 scale;
} job;

/* From the first windows of the ones to those of the others. */
static inline size_t apart(const job *j)
{
    return j->step == 1 ? 1 : STEP;
}

/* n taps. y: the first window of the others, here and below. */
static inline __attribute__((always_inline)) sums16
sum_taps(const uint8_t *x, const uint8_t *y, const ptrdiff_t *at, const __m256i *w, size_t n, __m256i begin)
{
    sums16 s = {begin, begin};
    for (size_t i = 0; i < n; i++) {
        s.one = _mm256_add_epi16(s.one, _mm256_maddubs_epi16(load(x + at[i]), w[i]));
        s.other = _mm256_add_epi16(s.other, _mm256_maddubs_epi16(load(y + at[i]), w[i]));
    }
    return s;
}

/* Adds those of two groups, which meet in the two halves of 32 bits. */
static inline __attribute__((always_inline)) void add_sums(sums16 a, sums16 b, __m256i sums[VECTORS])
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i both[VECTORS] = {_mm256_unpacklo_epi16(a.one, b.one), _mm256_unpackhi_epi16(a.one, b.one),
                             _mm256_unpacklo_epi16(a.other, b.other),
                             _mm256_unpackhi_epi16(a.other, b.other)};
    for (int v = 0; v < VECTORS; v++)
        sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(both[v], ones));
}

/* Any groups. */
static inline __attribute__((always_inline)) void sum_groups(const job *j, const uint8_t *x, const uint8_t *y,
                                                             __m256i sums[VECTORS])
{
    const sums16 none = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    const ptrdiff_t *at = j->at;
    const __m256i *w = j->w;
    for (size_t g = 0; g < j->groups; g += 2) {
        bool two = g + 1 < j->groups;
        size_t n = j->sizes[g], m = two ? j->sizes[g + 1] : 0;
        sums16 a = sum_taps(x, y, at, w, n, j->begin[g]);
        add_sums(a, two ? sum_taps(x, y, at + n, w + n, m, j->begin[g + 1]) : none, sums);
        at += n + m;
        w += n + m;
    }
}

/* Codes of 32 outputs of which some are not sure. Sums of one tap need no beginning. */
static __attribute__((noinline)) void exact(const job *j, const uint8_t *x, uint8_t *out)
{
    const __m256i zero = _mm256_setzero_si256();
    const dq_requantize_to *to = j->to;
    const uint8_t *y = x + apart(j);
    int32_t acc[STEP], *at;
    __m256i init = _mm256_set1_epi32(j->taps->init), sums[VECTORS] = {init, init, init, init};
    for (size_t i = 0; i < j->count; i += 2)
        add_sums(sum_taps(x, y, j->at + i, j->w + i, 1, zero),
                 sum_taps(x, y, j->at + i + 1, j->w + i + 1, 1, zero), sums);
    for (int v = 0; v < 2 && j->step == 1; v++) {
        __m256i a = sums[v], b = sums[v + 2];
        sums[v] = _mm256_unpacklo_epi32(a, b);
        sums[v + 2] = _mm256_unpackhi_epi32(a, b);
    }
    for (int v = 0; v < VECTORS; v++) {
        at = acc + (j->step == 1 ? v % 2 * 8 + v / 2 * 4 : v / 2 * 16 + v % 2 * 4);
        _mm_storeu_si128((void *)at, _mm256_castsi256_si128(sums[v]));
        _mm_storeu_si128((void *)(at + (j->step == 1 ? 16 : 8)), _mm256_extracti128_si256(sums[v], 1));
    }
    dq_requantize_exact_avx2(acc, STEP, to->scale, 0, to->zero_point, to->lo, to->hi, out);
}

/* Of a single group, whose sums are as if 16 bits had no sign: the lower half of a float from 2^23 on. */
static inline __attribute__((always_inline)) void to_floats(sums16 s, __m256 taken, __m256 out[VECTORS])
{
    const __m256i upper = _mm256_set1_epi16(0x4b00);
    __m256i halves[VECTORS] = {_mm256_unpacklo_epi16(s.one, upper), _mm256_unpackhi_epi16(s.one, upper),
                               _mm256_unpacklo_epi16(s.other, upper), _mm256_unpackhi_epi16(s.other, upper)};
    for (int v = 0; v < VECTORS; v++)
        out[v] = _mm256_sub_ps(_mm256_castsi256_ps(halves[v]), taken);
}

/* What puts codes_of() in the order of outputs: bytes of a half, then fours of all. */
typedef struct ordering {
    __m256i bytes, fours;
} ordering;

static ordering order_of(size_t step)
{
    static const uint8_t between[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
    static const uint8_t as_is[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    __m128i half = _mm_loadu_si128((const void *)(step == 1 ? between : as_is));
    return (ordering){_mm256_set_m128i(half, half), step == 1 ? _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
                                                              : _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7)};
}

/* Some outputs. Those of which some are not sure come later: where they begin goes to `unsure`, and their
 * number is returned. No function is called, so that constants stay in registers. `groups` is constant in
 * each call: USUAL taps in so many groups of the same size, or, 0, any. */
static inline __attribute__((always_inline)) size_t sure_codes(const job *j, const uint8_t *x, size_t groups,
                                                               size_t n, uint8_t *out, size_t *unsure)
{
    const sums16 none = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    const size_t each = USUAL / (groups ? groups : 1), step = j->step;
    const __m256i init = _mm256_set1_epi32(j->init);
    const __m256 taken = _mm256_set1_ps(0x1p23f + 0x1p15f - (float)j->init), scale = j->scale;
    const fixed f = fix(j->to->zero_point, j->to->lo);
    const ordering order = order_of(step);
    const uint8_t *y = x + apart(j);
    ptrdiff_t at[USUAL];
    __m256i w[USUAL], begin[USUAL_GROUPS];
    size_t count = 0;
    for (size_t i = 0; i < USUAL && groups; i++) {
        at[i] = j->at[i];
        w[i] = j->w[i];
    }
    for (size_t g = 0; g < groups; g++)
        begin[g] = groups == 1 ? _mm256_xor_si256(j->begin[g], _mm256_set1_epi16(INT16_MIN)) : j->begin[g];
    for (size_t i = 0; i < n; i += STEP, x += STEP * step, y += STEP * step) {
        __m256 values[VECTORS];
        __m256i sums[VECTORS] = {init, init, init, init}, bits[VECTORS], least = no_fraction();
        sums16 part[USUAL_GROUPS] = {none, none, none};
        for (size_t g = 0; g < groups; g++)
            part[g] = sum_taps(x, y, at + g * each, w + g * each, each, begin[g]);
        if (groups == 1)
            to_floats(part[0], taken, values);
        else if (groups)
            add_sums(part[0], part[1], sums);
        else
            sum_groups(j, x, y, sums);
        if (groups == USUAL_GROUPS)
            add_sums(part[2], none, sums);
        for (int v = 0; v < VECTORS; v++)
            bits[v] = bits_of(groups == 1 ? values[v] : _mm256_cvtepi32_ps(sums[v]), scale, &least);
        __m256i codes = _mm256_shuffle_epi8(codes_of(bits, &f), order.bytes);
        _mm256_storeu_si256((void *)(out + i), _mm256_permutevar8x32_epi32(codes, order.fours));
        if (__builtin_expect(!sure(least), 0))
            unsure[count++] = i;
    }
    return count;
}

enum { SOME = 128 * STEP };

/* In how many groups usual taps are, or could be with some more of no weight; else 0. */
static size_t usual_groups(const dq_qconv_taps *taps)
{
    enum { NEAR = 1 << 22 /* with these, all sums of a group are whole as floats */ };
    bool single = taps->groups == 1 && taps->init >= -NEAR && taps->init <= NEAR;
    bool usual = single || taps->groups == 2 || taps->groups == USUAL_GROUPS;
    for (size_t g = 0; g < taps->groups; g++)
        usual = usual && taps->sizes[g] <= USUAL / taps->groups;
    return usual ? taps->groups : 0;
}

/* Weights as vectors, and where sums begin. */
static void begin(job *j, size_t usual)
{
    const dq_qconv_tap *t = j->taps->taps;
    size_t at = 0;
    uint32_t init = (uint32_t)j->taps->init;
    j->groups = j->taps->groups;
    for (size_t g = 0; g < j->groups; g++) {
        int below = INT16_MIN;
        for (const dq_qconv_tap *end = t + j->taps->sizes[g]; t < end; t++, at++) {
            int16_t both;
            memcpy(&both, t->w, sizeof both);
            j->w[at] = _mm256_set1_epi16(both);
            j->at[at] = t->offset;
            below -= 255 * ((t->w[0] < 0 ? t->w[0] : 0) + (t->w[1] < 0 ? t->w[1] : 0));
        }
        j->sizes[g] = usual ? USUAL / usual : j->taps->sizes[g];
        for (; usual && at < (g + 1) * j->sizes[g]; at++) {
            j->w[at] = _mm256_setzero_si256();
            j->at[at] = 0;
        }
        j->begin[g] = _mm256_set1_epi16((int16_t)below);
        init -= (uint32_t)below;
    }
    j->init = (int32_t)init;
    j->at[at] = 0;
    j->w[at] = _mm256_setzero_si256();
    j->count = at + at % 2;
}

void dq_qconv_codes_avx2(const uint8_t *x, size_t step, const dq_qconv_taps *taps, const dq_requantize_to *to,
                         size_t n)
{
    job j;
    size_t usual = usual_groups(taps), unsure[SOME / STEP], some, count;
    bool finite;
    j.taps = taps;
    j.to = to;
    j.step = step;
    j.scale = _mm256_set1_ps((float)(to->scale[0] * 0x1p-75));
    finite = all_finite(j.scale);
    begin(&j, usual);
    for (size_t first = 0; first < n; first += some) {
        const uint8_t *from = x + first * step;
        uint8_t *out = to->out + first;
        some = n - first < SOME ? n - first : SOME;
        count = usual == 1   ? sure_codes(&j, from, 1, some, out, unsure)
                : usual == 2 ? sure_codes(&j, from, 2, some, out, unsure)
                : usual == 3 ? sure_codes(&j, from, 3, some, out, unsure)
                             : sure_codes(&j, from, 0, some, out, unsure);
        for (size_t i = 0; i < (finite ? count : (some + STEP - 1) / STEP); i++) {
            size_t at = finite ? unsure[i] : i * STEP;
            exact(&j, from + at * step, out + at);
        }
    }
}
