/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with pairwise multiplication of bytes: packing for all x86 levels up to AVX-512, and
 * the kernel for SSE4.1. nc4hw4_sums.h describes the panel. */
#include "kernels/simd/vec_sse41.h"

#include "kernels/conv_nc4hw4/nc4hw4_sums.h"

#include "base/checked.h"

enum { MAX_PAIR_SUM = 128 /* maximum magnitude of the weights of one sign in a 16-bit sum */ };

/* ---- Packing ------------------------------------------------------------------------------------------ */

static size_t round_up(size_t bytes)
{
    return (bytes + DQ_ALIGN - 1) / DQ_ALIGN * DQ_ALIGN;
}

size_t dq_nc4hw4_panel_size_sse41(size_t steps)
{
    enum { EACH = sizeof(uint32_t) + OUTS * (STEP + 2 * sizeof(record)) };
    size_t size;
    return steps <= UINT32_MAX && dq_mul_size(steps, EACH, &size) && dq_add_size(size, sizeof(head), &size) &&
                   dq_align_size(size, DQ_ALIGN, &size)
               ? size
               : 0;
}

/* Loads the weights of a step: four for each channel. */
static inline __m128i weights_of(const int8_t *w, size_t steps, size_t step)
{
    int32_t four[OUTS];
    for (size_t j = 0; j < OUTS; j++)
        memcpy(&four[j], w + (j * steps + step) * STEP, STEP);
    return _mm_loadu_si128((const void *)four);
}

/* Returns the safe parts of a step's weights. In an unsafe pair, the larger weight gives up the excess. */
static inline __m128i safe_part(__m128i w)
{
    const __m128i most = _mm_set1_epi16(MAX_PAIR_SUM), least = _mm_set1_epi16(-MAX_PAIR_SUM),
                  zero = _mm_setzero_si128();
    __m128i a = _mm_srai_epi16(_mm_slli_epi16(w, 8), 8), b = _mm_srai_epi16(w, 8), sum = _mm_add_epi16(a, b);
    __m128i over = _mm_sub_epi16(sum, _mm_max_epi16(_mm_min_epi16(sum, most), least));
    __m128i not_a = _mm_xor_si128(_mm_cmpgt_epi16(a, b), _mm_cmpgt_epi16(sum, zero));
    a = _mm_sub_epi16(a, _mm_andnot_si128(not_a, over));
    b = _mm_sub_epi16(b, _mm_and_si128(not_a, over));
    return _mm_or_si128(_mm_and_si128(a, _mm_set1_epi16(0xff)), _mm_slli_epi16(b, 8));
}

/* Magnitude sums of the safe parts, for each channel, pair and sign: at most 128. */
static inline __m128i sizes_of(__m128i part)
{
    const __m128i zero = _mm_setzero_si128(), ones = _mm_set1_epi8(1);
    __m128i more = _mm_maddubs_epi16(_mm_max_epi8(part, zero), ones);
    __m128i less = _mm_maddubs_epi16(_mm_sub_epi8(zero, _mm_min_epi8(part, zero)), ones);
    return _mm_packus_epi16(more, less);
}

static inline bool no_overflow(__m128i sizes, const uint8_t *others)
{
    __m128i sum = _mm_adds_epu8(sizes, _mm_loadu_si128((const void *)others)),
            most = _mm_set1_epi8((char)MAX_PAIR_SUM);
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(sum, most), most)) == 0xffff;
}

/* Sum of squares of the magnitude sums: the larger, the fewer other steps match this one. */
static inline int32_t load_of(const uint8_t *sizes)
{
    const __m128i all = _mm_loadu_si128((const void *)sizes), none = _mm_setzero_si128();
    __m128i low = _mm_unpacklo_epi8(all, none), high = _mm_unpackhi_epi8(all, none);
    __m128i sum = _mm_add_epi32(_mm_madd_epi16(low, low), _mm_madd_epi16(high, high));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    return _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 1);
}

/* Sorts steps by load, the heaviest first, by stable binary insertion. `loads` is scratch for one number
 * per step. */
static void sort(const uint8_t *sizes, size_t steps, uint32_t *order, int32_t *loads)
{
    for (size_t s = 0; s < steps; s++) {
        int32_t load = load_of(sizes + s * OUTS * STEP);
        size_t at = 0;
        for (size_t n = s; n;) { /* searches at … at + n for the end of those at least as heavy */
            size_t half = n / 2;
            bool goes_after = loads[at + half] >= load;
            at = goes_after ? at + half + 1 : at;
            n = goes_after ? n - half - 1 : half;
        }
        memmove(order + at + 1, order + at, (s - at) * sizeof *order);
        memmove(loads + at + 1, loads + at, (s - at) * sizeof *loads);
        order[at] = (uint32_t)s;
        loads[at] = load;
    }
}

/* Orders steps in matched pairs and returns the number of matched steps; the others come last. Heavy steps
 * choose first, because light ones find a match at the end, too. */
static size_t match(const uint8_t *sizes, size_t steps, uint32_t *order, int32_t *loads)
{
    size_t first = 0, end = steps;
    sort(sizes, steps, order, loads);
    while (first < end) {
        __m128i one = _mm_loadu_si128((const void *)(sizes + (size_t)order[first] * OUTS * STEP));
        size_t other = first + 1;
        while (other < end && !no_overflow(one, sizes + (size_t)order[other] * OUTS * STEP))
            other++;
        if (other < end) {
            uint32_t step = order[other];
            memmove(order + first + 2, order + first + 1, (other - first - 1) * sizeof *order);
            order[first + 1] = step;
            first += 2;
        } else {
            uint32_t step = order[first];
            memmove(order + first, order + first + 1, (--end - first) * sizeof *order);
            order[end] = step;
        }
    }
    return first;
}

/* Whether the sums of the products of both records fit in 16 bits. */
static bool fit(const record *a, const record *b)
{
    int sums[2][2] = {{0}}; /* of each pair and sign */
    for (size_t e = 0; e < STEP; e++) {
        sums[e / 2][a->w[e] < 0] += a->w[e];
        sums[e / 2][b->w[e] < 0] += b->w[e];
    }
    return sums[0][0] <= MAX_PAIR_SUM && sums[0][1] >= -MAX_PAIR_SUM && sums[1][0] <= MAX_PAIR_SUM &&
           sums[1][1] >= -MAX_PAIR_SUM;
}

/* Orders records in pairs that fit; a record that none fits is paired with one of zeros. Returns their
 * end. */
static record *couple(record *r, record *end)
{
    for (; r < end; r += 2) {
        record *other = r + 1;
        while (other < end && !fit(r, other))
            other++;
        if (other == end)
            *end++ = (record){.step = r->step};
        record found = *other;
        *other = r[1];
        r[1] = found;
    }
    return end;
}

size_t dq_nc4hw4_pack_sse41(const int8_t *w, size_t steps, void *panel)
{
    head *h = panel;
    uint32_t *order = (uint32_t *)(h + 1);
    int8_t *safe = (int8_t *)(order + steps);
    record *records = (record *)(void *)(safe + steps * OUTS * STEP), *next = records;
    memset(h, 0, sizeof *h);
    for (size_t s = 0; s < steps; s++) /* the memory of the safe parts holds the sums first */
        _mm_storeu_si128((void *)(safe + s * OUTS * STEP), sizes_of(safe_part(weights_of(w, steps, s))));
    h->matched = (uint32_t)match((const uint8_t *)safe, steps, order, (int32_t *)(void *)records);
    for (size_t s = 0; s < steps; s++)
        _mm_storeu_si128((void *)(safe + s * OUTS * STEP), safe_part(weights_of(w, steps, order[s])));
    for (size_t j = 0; j < OUTS; j++) {
        record *first = next;
        for (size_t s = 0; s < steps; s++) {
            const int8_t *all = w + (j * steps + order[s]) * STEP, *part = safe + (s * OUTS + j) * STEP;
            if (memcmp(all, part, STEP) == 0)
                continue;
            next->step = order[s];
            for (size_t e = 0; e < STEP; e++)
                next->w[e] = (int8_t)(all[e] - part[e]);
            next++;
        }
        next = couple(first, next);
        h->records[j] = (uint32_t)(next - first);
    }
    size_t used = sizeof *h + steps * (sizeof *order + OUTS * STEP) + (size_t)(next - records) * sizeof *next;
    return round_up(used);
}

/* Steps must be those of the panel, and records in it. */
size_t dq_nc4hw4_used_sse41(size_t steps, const void *panel, size_t size)
{
    const head *h = panel;
    const uint32_t *order = (const uint32_t *)(h + 1);
    const size_t first = sizeof *h + steps * (sizeof *order + OUTS * STEP);
    const record *records = (const record *)(const void *)((const char *)panel + first);
    size_t count = 0;
    if (size < first)
        return 0;
    for (size_t j = 0; j < OUTS; j++) {
        count += h->records[j];
        if (h->records[j] % 2)
            return 0;
    }
    const size_t used = round_up(first + count * sizeof *records);
    if (h->matched > steps || h->matched % 2 || used > size)
        return 0;
    for (size_t i = 0; i < steps; i++)
        if (order[i] >= steps)
            return 0;
    for (size_t i = 0; i < count; i++)
        if (records[i].step >= steps)
            return 0;
    return used;
}

/* ---- Pixels ------------------------------------------------------------------------------------------- */

void dq_nc4hw4_interleave_sse41(const uint8_t *const planes[STEP], size_t n, uint8_t sign_xor, uint8_t *out)
{
    enum { PIXELS_PER_STEP = 16 };
    const __m128i sign_xors = _mm_set1_epi8((char)sign_xor);
    if (n < PIXELS_PER_STEP) {
        dq_nc4hw4_interleave_c(planes, n, sign_xor, out);
        return;
    }
    for (size_t at = 0; at < n; at += PIXELS_PER_STEP) {
        size_t p = n - at < PIXELS_PER_STEP ? n - PIXELS_PER_STEP
                                            : at; /* the last vectors overlap those before them */
        __m128i x[STEP];
        for (int e = 0; e < STEP; e++)
            x[e] = planes[e] ? _mm_xor_si128(_mm_loadu_si128((const void *)(planes[e] + p)), sign_xors)
                             : _mm_setzero_si128();
        __m128i low0 = _mm_unpacklo_epi8(x[0], x[1]), low2 = _mm_unpacklo_epi8(x[2], x[3]);
        __m128i high0 = _mm_unpackhi_epi8(x[0], x[1]), high2 = _mm_unpackhi_epi8(x[2], x[3]);
        __m128i *to = (void *)(out + STEP * p);
        _mm_storeu_si128(to, _mm_unpacklo_epi16(low0, low2));
        _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low0, low2));
        _mm_storeu_si128(to + 2, _mm_unpacklo_epi16(high0, high2));
        _mm_storeu_si128(to + 3, _mm_unpackhi_epi16(high0, high2));
    }
}

#define ISA(name) name##_sse41

#include "kernels/conv_nc4hw4/nc4hw4_store.h"

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_sse41 = {.lanes = 8,
                                                   .least = 24,
                                                   .deepest = 256,
                                                   .nhwc = true,
                                                   .interleave = dq_nc4hw4_interleave_sse41,
                                                   .panel_size = dq_nc4hw4_panel_size_sse41,
                                                   .pack = dq_nc4hw4_pack_sse41,
                                                   .used = dq_nc4hw4_used_sse41,
                                                   .sums = sums,
                                                   .store = store};
