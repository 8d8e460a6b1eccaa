/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with fused requantization, 64 outputs at a time.
 *
 * vpmaddubsw multiplies contiguous bytes without a shuffle. At stride 1, a load from the first byte of a
 * window gives the products of every second output, and a load from the next byte those of the outputs
 * between. Two neighboring kernel elements form such a tap if their weights cannot overflow 16 bits.
 * Otherwise, the excess of the second weight goes to the tap that begins with it. Taps are summed in 16 bits,
 * in groups. Such sums wrap around, but they are in a range of at most 2^16 numbers that is known from the
 * weights. They start with an offset that moves this range to that of int16, so that no information is lost.
 * All groups have equally many taps: few branches, which are predicted.
 *
 * A row of a 3×3 kernel is two taps one byte apart (a couple), which share a load. Its middle weight is split
 * between them.
 *
 * One float multiplication without checks requantizes the sums (exact_scale_avx2.h). */
#include "base/copy.h"
#include "kernels/gemm_s8/accumulate_avx2.h"
#include "kernels/kernels.h"
#include "kernels/requantize/exact_scale_avx2.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { STEP = 32, HALF = 16, VECTORS = 4, CHUNK = 64 /* outputs of VECTORS vectors */ };
enum { MAX_OUTPUTS = 1024 };             /* maximum outputs at a time */
enum { TAP_MAX = 128, GROUP_MAX = 257 }; /* maximum magnitude sums of a tap and of a group */
enum { TAPS_MAX = 128, GROUPS_MAX = 16, ROWS = 3, EACH = 2 * ROWS };

/* Weights of two neighboring elements, and the offset of the first one's byte. */
typedef struct tap {
    int8_t w[2];
    uint16_t at;
} tap;

/* Head of a channel. After it, for each group: the initial value of its sums, in `at` of a tap; and its
 * taps. */
typedef struct head {
    int32_t init;
    float scale, shift; /* shift: 0 without a bias of floats */
    int16_t zero_point;
    int8_t sign_xor;
    bool row_pairs;        /* three couples: six taps, every second one byte after the one before */
    uint32_t groups, each; /* groups, and taps of each group */
} head;
_Static_assert(sizeof(head) % sizeof(uint64_t) == 0, "taps come in whole words");

/* ---- Scales ------------------------------------------------------------------------------------------- */

#define TIE_MARGIN 0x1.9p-23
#define TIE_MARGIN_SHIFTED 0x1p-21

static inline __m256d whole(__m256d v)
{
    return _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Multiplies four sums by multiplier 0, adds its bias and rounds exactly; the results are returned as
 * floats. */
static __m128 exact_products(__m256d sums, const dq_requantize_to *to)
{
    const __m256d shift = _mm256_set1_pd(to->bias.shift ? to->bias.shift[0] : 0);
    __m256d v = _mm256_add_pd(_mm256_mul_pd(sums, _mm256_set1_pd(to->scale[0])), shift), rounded = whole(v);
    __m256d off = _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(v, rounded));
    int near_tie = _mm256_movemask_pd(_mm256_cmp_pd(off, _mm256_set1_pd(DQ_NEARLY_HALF), _CMP_GE_OQ));
    float out[4];
    _mm_storeu_ps(out, _mm256_cvtpd_ps(rounded));
    if (near_tie) {
        int32_t sum[4];
        _mm_storeu_si128((__m128i *)(void *)sum, _mm256_cvtpd_epi32(sums));
        for (int i = 0; i < 4; i++)
            if (near_tie >> i & 1)
                out[i] = (float)dq_requantize_exactly(sum[i], to, 0);
    }
    return _mm_loadu_ps(out);
}

/* Whether products with the float `with` are rounded as the exact ones are. It checks the sums next to
 * each tie, where the result steps from one whole number to the next, for the numbers first … end and up to
 * three more.
 *
 * A float next to the nearest one moves a tie by at most the share NEAR of its position. With a shift, which
 * is rounded to float as its sum with the product is, a tie moves by at most TIE_MARGIN_SHIFTED of its
 * position without the shift. Ties farther than this from any whole sum need no check. */
static bool is_exact(const dq_requantize_to *to, float with, int first, int end)
{
    const bool shifted = exact_scale_shift(to) != 0;
    const __m256d inverse = _mm256_set1_pd(1 / to->scale[0]);
    const __m256d shift = _mm256_set1_pd(shifted ? to->bias.shift[0] : 0);
    const __m128 floats = _mm_set1_ps(with), middle = _mm_set1_ps(EXACT_SCALE_MAGIC),
                 more = _mm256_cvtpd_ps(shift);
    const double share = shifted ? TIE_MARGIN_SHIFTED : TIE_MARGIN;
    __m128 differ = _mm_setzero_ps();
    for (; first < end; first += 4) {
        __m256d half = _mm256_add_pd(_mm256_set1_pd(first), _mm256_setr_pd(0.5, 1.5, 2.5, 3.5));
        __m256d resolve = _mm256_mul_pd(_mm256_sub_pd(half, shift), inverse), sum = whole(resolve);
        const __m256d sign = _mm256_set1_pd(-0.0), unshifted = _mm256_mul_pd(half, inverse);
        __m256d distance = _mm256_andnot_pd(sign, _mm256_sub_pd(resolve, sum));
        __m256d moved = _mm256_andnot_pd(sign, _mm256_mul_pd(unshifted, _mm256_set1_pd(share)));
        if (_mm256_movemask_pd(_mm256_cmp_pd(distance, moved, _CMP_LE_OQ)) == 0)
            continue;
        for (int i = -1; i <= 1; i++) {
            __m256d here = _mm256_add_pd(sum, _mm256_set1_pd(i));
            __m128 exact = exact_products(here, to);
            __m128 sums = _mm256_cvtpd_ps(here);
            __m128 qvalue = shifted ? _mm_add_ps(_mm_fmadd_ps(sums, floats, more), middle)
                                    : _mm_fmadd_ps(sums, floats, middle);
            qvalue = _mm_sub_ps(qvalue, middle);
            differ = _mm_or_ps(differ, _mm_cmpneq_ps(exact, qvalue));
        }
    }
    return _mm_movemask_ps(differ) == 0;
}

float dq_nc4hw4_exact_scale_avx2(const dq_requantize_to *to, double largest)
{
    enum { TRIES = 3 };
    const double scale = to->scale[0];
    const float nearest = (float)scale,
                tries[TRIES] = {nearest, nextafterf(nearest, 0), nextafterf(nearest, 1)};
    if (!(scale >= 0x1p-14) || !(largest * scale + 1 < INT16_MAX))
        return 0;
    for (size_t i = 0; i < TRIES; i++)
        if (is_exact(to, tries[i], to->lo - to->zero_point, to->hi - to->zero_point))
            return tries[i];
    return 0;
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

static int size_of(int a)
{
    return a < 0 ? -a : a;
}

static int size_of_tap(const tap *t)
{
    return size_of(t->w[0]) + size_of(t->w[1]);
}

/* The part of weight w that fits in a tap with weight `other`. */
static int8_t part_of(int w, int other)
{
    int most = w < 0 ? -INT8_MIN : INT8_MAX,
        capacity = TAP_MAX - ((w < 0) == (other < 0) ? size_of(other) : 0);
    most = most < capacity ? most : capacity;
    most = most < size_of(w) ? most : size_of(w);
    return (int8_t)(w < 0 ? -most : most);
}

static void insert(tap *taps, size_t count, const tap *t)
{
    for (; count && size_of_tap(&taps[count - 1]) < size_of_tap(t); count--)
        taps[count] = taps[count - 1];
    taps[count] = *t;
}

/* Splits the kernel into taps, sorted by magnitude, the heaviest first. Returns false if there are too
 * many. */
static bool find_taps(const int16_t *w, const size_t *at, size_t n, tap *taps, size_t *count)
{
    int left = n ? w[0] : 0; /* rest of weight i */
    *count = 0;
    for (size_t i = 0; i < n;) {
        tap t = {{part_of(left, 0), 0}, (uint16_t)at[i]};
        if (t.w[0] != 0 && *count == TAPS_MAX)
            return false;
        left -= t.w[0];
        if (left == 0 && ++i < n) {
            left = w[i];
            t.w[1] = t.w[0] != 0 && at[i] == at[i - 1] + 1 ? part_of(left, t.w[0]) : 0;
            left -= t.w[1];
        }
        if (t.w[0] != 0)
            insert(taps, (*count)++, &t);
    }
    return true;
}

static void set_initial_values(const head *h, tap *out)
{
    for (size_t g = 0; g < h->groups; g++, out += h->each + 1) {
        int begin = h->groups > 1 ? INT16_MIN : 0;
        for (size_t t = 1; t <= h->each; t++)
            begin += 255 * ((out[t].w[0] < 0 ? -out[t].w[0] : 0) + (out[t].w[1] < 0 ? -out[t].w[1] : 0));
        out->at = (uint16_t)begin;
    }
}

/* Distributes the taps among the groups, each to the lightest one. Returns false if a group becomes too
 * heavy. */
static bool distribute_taps(const tap *taps, size_t count, const head *h, tap *out)
{
    int sizes[GROUPS_MAX] = {0};
    size_t taken[GROUPS_MAX] = {0}, groups = h->groups, each = h->each;
    memset(out, 0, groups * (each + 1) * sizeof *out);
    for (size_t i = 0; i < count; i++) {
        size_t lightest = groups;
        for (size_t g = 0; g < groups; g++)
            if (taken[g] < each && (lightest == groups || sizes[g] < sizes[lightest]))
                lightest = g;
        sizes[lightest] += size_of_tap(&taps[i]);
        if (sizes[lightest] > GROUP_MAX)
            return false;
        out[lightest * (each + 1) + ++taken[lightest]] = taps[i];
    }
    set_initial_values(h, out);
    return true;
}

/* Finds the smallest number of groups. Groups are summed in pairs, so that odd numbers above one are of no
 * use. */
static bool find_groups(const tap *taps, size_t count, size_t capacity, head *h, tap *out)
{
    for (size_t groups = 1; groups <= GROUPS_MAX; groups += groups == 1 ? 1 : 2)
        for (size_t each = (count + groups - 1) / groups, i = 0; i < 2; i++, each++) {
            h->groups = (uint32_t)groups;
            h->each = (uint32_t)each;
            if (groups * (each + 1) <= capacity && distribute_taps(taps, count, h, out))
                return true;
        }
    return false;
}

/* Splits the middle one of three weights between two taps, so that the first tap has a magnitude sum of at
 * most `first`, and the second of at most `second`. Returns whether this is possible. */
static bool split(const int16_t *w, int first, int second, tap taps[2])
{
    int a = size_of(part_of(w[1], w[0])), b = size_of(part_of(w[1], w[2])), middle = size_of(w[1]);
    first -= size_of(w[0]);
    second -= size_of(w[2]);
    a = a < first ? a : first;
    b = b < second ? b : second;
    if (part_of(w[0], 0) != w[0] || part_of(w[2], 0) != w[2] || a < 0 || b < 0 || a + b < middle)
        return false;
    taps[0].w[0] = (int8_t)w[0];
    taps[0].w[1] = (int8_t)(w[1] < 0 ? -a : a);
    taps[1].w[0] = (int8_t)(w[1] - taps[0].w[1]);
    taps[1].w[1] = (int8_t)w[2];
    return true;
}

/* Makes couples of a 3×3 kernel. The first of two groups has the taps of one row, and the first tap of the
 * row that both groups share. */
static bool make_row_pairs(const int16_t *w, const size_t *at, size_t n, head *h, tap *out)
{
    enum { WIDE = 4, ANY = 2 * GROUP_MAX };
    tap taps[EACH] = {0};
    int sizes[ROWS] = {0}, all = 0;
    if (n != ROWS * WIDE)
        return false;
    for (size_t t = 0; t < n; t++) {
        if (t % WIDE ? at[t] != at[t - 1] + 1 : w[t + WIDE - 1] != 0)
            return false;
        sizes[t / WIDE] += size_of(w[t]);
        all += size_of(w[t]);
    }
    h->groups = all > GROUP_MAX ? 2 : 1;
    h->each = EACH / h->groups;
    for (size_t i = 0; i < ROWS; i++) { /* the row that both groups share */
        const size_t order[ROWS] = {i == 0 ? 1 : 0, i, i == 2 ? 1 : 2};
        int most = h->groups == 1 ? 2 * ANY : GROUP_MAX;
        for (size_t t = 0; t < EACH; t++)
            taps[t].at = (uint16_t)(at[order[t / 2] * WIDE] + t % 2);
        if (!split(w + order[0] * WIDE, ANY, ANY, taps) || !split(w + order[2] * WIDE, ANY, ANY, taps + 4) ||
            !split(w + i * WIDE, most - sizes[order[0]], most - sizes[order[2]], taps + 2))
            continue;
        for (size_t t = 0; t < EACH; t++)
            out[t + t / h->each + 1] = taps[t];
        set_initial_values(h, out);
        return true;
    }
    return false;
}

/* Maximum number of taps, including the initial values of groups: a tap may hold a single weight, and
 * groups may be filled unevenly. */
static size_t capacity_for(size_t n)
{
    enum { MORE = 4 };
    return n + MORE;
}

static size_t size(size_t n)
{
    return sizeof(head) + (capacity_for(n) + 1) / 2 * 2 * sizeof(tap);
}

/* Runs once per channel; optimized for size. */
static __attribute__((cold)) bool pack(const int16_t *w, const size_t *at, size_t n, int32_t init,
                                       const dq_requantize_to *to, void *packed)
{
    tap taps[TAPS_MAX], *out = (tap *)((head *)packed + 1);
    head *h = packed;
    double largest = fabs((double)init);
    size_t count;
    for (size_t i = 0; i < n; i++)
        largest += 255 * size_of(w[i]);
    h->scale = dq_nc4hw4_exact_scale_avx2(to, largest);
    if (h->scale == 0 || largest >= 0x1p22)
        return false;
    h->row_pairs = make_row_pairs(w, at, n, h, out);
    if (!h->row_pairs &&
        (!find_taps(w, at, n, taps, &count) || !find_groups(taps, count, capacity_for(n), h, out)))
        return false;
    h->shift = exact_scale_shift(to);
    h->zero_point = (int16_t)(to->zero_point - to->lo);
    h->sign_xor = (int8_t)to->lo;
    h->init = init;
    for (size_t g = 0; g < h->groups; g++)
        h->init -= h->groups > 1 ? (int16_t)out[g * (h->each + 1u)].at : out->at;
    return true;
}

static __attribute__((cold)) size_t resolve(const void *packed, size_t pitch, void *out)
{
    const head *h = packed;
    const tap *from = (const tap *)(h + 1);
    const size_t each = h->each + 1u, taps = h->groups * each;
    tap *to = out ? (tap *)((head *)out + 1) : NULL;
    if (out)
        memcpy(out, packed, sizeof *h + taps * sizeof *from);
    for (size_t i = 0; i < taps; i++) {
        size_t at = dq_conv_s8_offset(from[i].at, pitch);
        if (i % each == 0) /* the initial value of a group */
            continue;
        if (at > UINT16_MAX)
            return 0;
        if (out)
            to[i].at = (uint16_t)at;
    }
    return sizeof *h + (taps + 1) / 2 * 2 * sizeof *from;
}

/* ---- Outputs ------------------------------------------------------------------------------------------ */

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* Windows of some rows, `down` bytes from row to row. At stride 1 the windows of all rows are computed as
 * one long row, and put_rows() skips those between rows. At stride 2 (`strided`), each row begins with a
 * new vector, and a vector has 16 consecutive windows instead of the even or the odd ones of 32. */
typedef struct windows {
    const uint8_t *x;
    size_t row_pitch, n, all, column;
    bool strided;
} windows;

static inline windows begin_windows(const uint8_t *x, size_t row_pitch, bool strided, size_t rows, size_t n)
{
    size_t all = strided ? rows * ((n + HALF - 1) / HALF * HALF) : (rows - 1) * row_pitch + n;
    return (windows){.x = x, .row_pitch = row_pitch, .n = n, .all = all, .strided = strided};
}

/* Finds the first bytes of the vectors of a chunk, which begins with output i. Calls go from chunk to
 * chunk. */
static inline void find_vectors(windows *w, size_t i, const uint8_t *from[VECTORS])
{
    const uint8_t *x = w->x;
    if (!w->strided) {
        from[0] = x;
        from[1] = x + 1;
        from[2] = w->all - i > STEP ? x + STEP : x;
        from[3] = from[2] + 1;
        w->x += CHUNK;
        return;
    }
    for (size_t k = 0; k < VECTORS; k++) {
        from[k] = w->x + w->column * STEP;
        if (i + (k + 1) * HALF < w->all && ++w->column * HALF >= w->n) {
            w->column = 0;
            w->x += w->row_pitch;
        }
    }
}

static inline __m256i weights_of(const tap *t)
{
    int16_t both;
    memcpy(&both, t->w, sizeof both);
    return _mm256_set1_epi16(both);
}

/* Sums the taps. For each chunk, `sums` gets the vectors of group after group. */
static __attribute__((noinline)) void sum_taps(windows *w, const head *h, __m256i *sums)
{
    for (size_t i = 0; i < w->all; i += CHUNK) {
        const tap *t = (const tap *)(h + 1);
        const uint8_t *x[VECTORS];
        find_vectors(w, i, x);
        for (size_t g = h->groups; g; g--, sums += VECTORS) {
            __m256i a = _mm256_set1_epi16((int16_t)t->at), b = a, c = a, d = a;
            for (const tap *end = t++ + h->each; t <= end; t++) {
                const __m256i weights = weights_of(t);
                a = _mm256_add_epi16(a, _mm256_maddubs_epi16(load(x[0] + t->at), weights));
                b = _mm256_add_epi16(b, _mm256_maddubs_epi16(load(x[1] + t->at), weights));
                c = _mm256_add_epi16(c, _mm256_maddubs_epi16(load(x[2] + t->at), weights));
                d = _mm256_add_epi16(d, _mm256_maddubs_epi16(load(x[3] + t->at), weights));
            }
            sums[0] = a;
            sums[1] = b;
            sums[2] = c;
            sums[3] = d;
        }
    }
}

/* The couples of a channel, broadcast to vectors. */
typedef struct row_pairs {
    size_t at[ROWS];
    __m256i w[EACH], begin[2];
} row_pairs;

static inline __attribute__((always_inline)) row_pairs couples_of(const head *h, bool one)
{
    const tap *t = (const tap *)(h + 1);
    row_pairs c = {.begin = {_mm256_set1_epi16((int16_t)t->at), _mm256_setzero_si256()}};
    if (!one)
        c.begin[1] = _mm256_set1_epi16((int16_t)t[ROWS + 1].at);
    for (int i = 0; i < EACH; i++) {
        const tap *next = t + 1 + i + (!one && i >= ROWS);
        c.w[i] = weights_of(next);
        if (i % 2 == 0)
            c.at[i / 2] = next->at;
    }
    return c;
}

/* Sums couples at stride 1, even outputs and odd ones. `one`, constant in each call, means a single group. */
static inline __attribute__((always_inline)) void sum_couples(const windows *w, const head *h, bool one,
                                                              __m256i *sums)
{
    const row_pairs c = couples_of(h, one);
    const uint8_t *rows[ROWS] = {w->x + c.at[0], w->x + c.at[1], w->x + c.at[2]};
    for (size_t i = 0; i < w->all; i += STEP, sums += i % CHUNK || one ? 2 : 2 + VECTORS) {
        __m256i even[2] = {c.begin[0], c.begin[1]}, odd[2] = {c.begin[0], c.begin[1]};
        for (int r = 0; r < ROWS; r++) {
            const int first = !one && r == 2, second = !one && r > 0;
            __m256i v0 = load(rows[r] + i), v1 = load(rows[r] + i + 1), v2 = load(rows[r] + i + 2);
            add_now(&even[first], _mm256_maddubs_epi16(v0, c.w[2 * r]));
            add_now(&odd[first], _mm256_maddubs_epi16(v1, c.w[2 * r]));
            add_now(&even[second], _mm256_maddubs_epi16(v1, c.w[2 * r + 1]));
            add_now(&odd[second], _mm256_maddubs_epi16(v2, c.w[2 * r + 1]));
        }
        for (int g = 0; g < (one ? 1 : 2); g++) {
            sums[g * VECTORS] = even[g];
            sums[g * VECTORS + 1] = odd[g];
        }
    }
}

/* The same at stride 2. */
static inline __attribute__((always_inline)) void sum_stride(const windows *w, const head *h, bool one,
                                                             __m256i *sums)
{
    const row_pairs c = couples_of(h, one);
    const uint8_t *rows[ROWS] = {w->x + c.at[0], w->x + c.at[1], w->x + c.at[2]};
    const size_t width = (w->n + HALF - 1) / HALF * STEP; /* in bytes of x */
    for (size_t i = 0, row = 0, at = 0; i < w->all; i += HALF, sums += i % CHUNK || one ? 1 : 1 + VECTORS) {
        __m256i a[2] = {c.begin[0], c.begin[1]};
        for (int r = 0; r < ROWS; r++) {
            add_now(&a[!one && r == 2], _mm256_maddubs_epi16(load(rows[r] + row + at), c.w[2 * r]));
            add_now(&a[!one && r > 0], _mm256_maddubs_epi16(load(rows[r] + row + at + 1), c.w[2 * r + 1]));
        }
        sums[0] = a[0];
        if (!one)
            sums[VECTORS] = a[1];
        at += STEP;
        if (at == width) {
            at = 0;
            row += w->row_pitch;
        }
    }
}

static void sum_all(windows *w, const head *h, __m256i *sums)
{
    if (!h->row_pairs)
        sum_taps(w, h, sums);
    else if (w->strided && h->groups == 1)
        sum_stride(w, h, true, sums);
    else if (w->strided)
        sum_stride(w, h, false, sums);
    else if (h->groups == 1)
        sum_couples(w, h, true, sums);
    else
        sum_couples(w, h, false, sums);
}

/* Converts the sums of a single group: an unsigned 16-bit sum is the lower half of the float 2^23 + sum. */
static inline void floats_of_one(const __m256i *sums, const head *h, __m256 out[2 * VECTORS])
{
    const __m256i upper = _mm256_set1_epi16(0x4b00);
    const __m256 taken = _mm256_set1_ps(0x1p23f - (float)h->init);
    for (int k = 0; k < VECTORS; k++) {
        out[2 * k] = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpacklo_epi16(sums[k], upper)), taken);
        out[2 * k + 1] = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_unpackhi_epi16(sums[k], upper)), taken);
    }
}

/* Adds the sums of all groups, two groups at a time, and converts them. */
static inline __attribute__((always_inline)) void floats_of(const __m256i *sums, const head *h, size_t groups,
                                                            __m256 out[2 * VECTORS])
{
    const __m256i ones = _mm256_set1_epi16(1), init = _mm256_set1_epi32(h->init);
    __m256i v[2 * VECTORS] = {init, init, init, init, init, init, init, init};
    for (size_t g = 0; g < groups; g += 2, sums += 2 * VECTORS)
        for (int k = 0; k < VECTORS; k++) {
            __m256i a = sums[k], b = sums[VECTORS + k];
            v[2 * k] = _mm256_add_epi32(v[2 * k], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), ones));
            v[2 * k + 1] =
                _mm256_add_epi32(v[2 * k + 1], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), ones));
        }
    for (int k = 0; k < 2 * VECTORS; k++)
        out[k] = _mm256_cvtepi32_ps(v[k]);
}

/* Requantizes n outputs. `groups` is a constant if it is 1 or 2, `shifted` always. */
static inline __attribute__((always_inline)) void qvalues_of(const __m256i *sums, const head *h,
                                                             size_t groups, bool strided, bool shifted,
                                                             size_t n, uint8_t *out)
{
    const __m256i zero_point = _mm256_set1_epi16(h->zero_point), sign_xor = _mm256_set1_epi8(h->sign_xor);
    const __m256i even = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8,
                                          10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m256 scale = _mm256_set1_ps(h->scale), shift = _mm256_set1_ps(h->shift);
    for (size_t i = 0; i < n; i += CHUNK, sums += VECTORS * groups) {
        __m256 v[2 * VECTORS];
        if (groups == 1)
            floats_of_one(sums, h, v);
        else
            floats_of(sums, h, groups, v);
        for (int k = 0; k < 2 * VECTORS; k += 4, out += STEP) {
            __m256i low =
                exact_scale_halves(exact_scale_rounded(v[k], scale, shift, shifted),
                                   exact_scale_rounded(v[k + 2], scale, shift, shifted), zero_point);
            __m256i high =
                exact_scale_halves(exact_scale_rounded(v[k + 1], scale, shift, shifted),
                                   exact_scale_rounded(v[k + 3], scale, shift, shifted), zero_point);
            __m256i qvalues = _mm256_packus_epi16(low, high);
            if (strided)
                qvalues = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(qvalues, even), 0xd8);
            _mm256_storeu_si256((void *)out, _mm256_xor_si256(qvalues, sign_xor));
        }
    }
}

static inline __attribute__((always_inline)) void
put_qvalues(const __m256i *sums, const head *h, bool strided, bool shifted, size_t n, uint8_t *out)
{
    if (h->groups == 1)
        qvalues_of(sums, h, 1, strided, shifted, n, out);
    else if (h->groups == 2)
        qvalues_of(sums, h, 2, strided, shifted, n, out);
    else
        qvalues_of(sums, h, h->groups, strided, shifted, n, out);
}

static __attribute__((noinline)) void put_shifted(const __m256i *sums, const head *h, bool strided, size_t n,
                                                  uint8_t *out)
{
    put_qvalues(sums, h, strided, true, n, out);
}

/* Copies rows of n bytes, `step` bytes from row to row, to contiguous memory. Short rows are written as
 * whole vectors if these end before the end of `out`; the next rows overwrite the excess. */
static void put_rows(const uint8_t *from, size_t step, size_t rows, size_t n, uint8_t *out)
{
    const uint8_t *end = out + rows * n;
    for (size_t i = 0; i < rows; i++, from += step, out += n) {
        if (n < STEP && end - out >= STEP) {
            _mm256_storeu_si256((void *)out, load(from));
            continue;
        }
        if (n < STEP) {
            dq_copy_row(out, from, n);
            continue;
        }
        for (size_t j = 0; j < n - STEP; j += STEP)
            _mm256_storeu_si256((void *)(out + j), load(from + j));
        _mm256_storeu_si256((void *)(out + n - STEP), load(from + n - STEP));
    }
}

static void put(const uint8_t *x, size_t row_pitch, size_t stride, size_t rows, const void *packed, size_t n,
                uint8_t *out)
{
    __m256i sums[MAX_OUTPUTS / HALF * GROUPS_MAX];
    uint8_t made[MAX_OUTPUTS];
    const head *h = packed;
    const bool strided = stride != 1;
    const size_t pitch = strided ? (n + HALF - 1) / HALF * HALF : row_pitch;
    const size_t rows_at_once = n && n < MAX_OUTPUTS ? 1 + (MAX_OUTPUTS - n) / pitch : 1;
    for (size_t i = 0, some; i < rows; i += some) {
        some = rows - i < rows_at_once ? rows - i : rows_at_once;
        for (size_t j = 0, width; j < n; j += width) {
            width = n - j < MAX_OUTPUTS ? n - j : MAX_OUTPUTS;
            windows w = begin_windows(x + i * row_pitch + j * stride, row_pitch, strided, some, width);
            const size_t all = w.all;
            sum_all(&w, h, sums);
            if (h->shift == 0)
                put_qvalues(sums, h, strided, false, all, made);
            else
                put_shifted(sums, h, strided, all, made);
            put_rows(made, pitch, some, width, out + i * n + j);
        }
    }
}

const dq_dwconv_requantize_s8 dq_dwconv_requantize_s8_avx2 = {
    .size = size, .pack = pack, .resolve = resolve, .put = put};
