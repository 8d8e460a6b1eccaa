#include "kernels/x86/vec_sse41.h"

#include "kernels/x86/qlanes_sums.h"

#include "base/checked.h"

enum { MOST = 128 };

/* ---- Packing ------------------------------------------------------------------------------------------ */

size_t dq_qlanes_panel_size_sse41(size_t steps)
{
    enum { EACH = sizeof(uint32_t) + OUTS * (STEP + sizeof(record)) };
    size_t size;
    return steps <= UINT32_MAX && dq_mul_size(steps, EACH, &size) && dq_add_size(size, sizeof(head), &size) &&
                   dq_align_size(size, ALIGN, &size)
               ? size
               : 0;
}

/* Splits a step's weights of one channel: of a pair that is not safe the larger gives. Whether one was not.
 */
static bool split(const int8_t *w, int8_t *part, int8_t *rest)
{
    bool any = false;
    memcpy(part, w, STEP);
    memset(rest, 0, STEP);
    for (size_t e = 0; e < STEP; e += 2) {
        int sum = w[e] + w[e + 1], over = sum > MOST ? sum - MOST : sum < -MOST ? sum + MOST : 0;
        size_t larger = (w[e] > w[e + 1]) == (sum > 0) ? e : e + 1;
        rest[larger] = (int8_t)over;
        part[larger] = (int8_t)(part[larger] - over);
        any = any || over;
    }
    return any;
}

/* The sizes of a step's safe parts of one sign, of each channel, pair and sign. */
static void find_sizes(const int8_t *w, size_t steps, uint8_t *sizes)
{
    int8_t part[STEP], rest[STEP];
    for (size_t j = 0; j < OUTS; j++, w += steps * STEP) {
        split(w, part, rest);
        for (size_t e = 0; e < STEP; e += 2) {
            int a = part[e], b = part[e + 1];
            *sizes++ = (uint8_t)((a > 0 ? a : 0) + (b > 0 ? b : 0));
            *sizes++ = (uint8_t)((a < 0 ? -a : 0) + (b < 0 ? -b : 0));
        }
    }
}

static inline bool safe_together(__m128i sizes, const uint8_t *others)
{
    __m128i sum = _mm_adds_epu8(sizes, _mm_loadu_si128((const void *)others)),
            most = _mm_set1_epi8((char)MOST);
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(sum, most), most)) == 0xffff;
}

/* How hard it is to find another for a step: the squares of its sizes. */
static inline int32_t load_of(const uint8_t *sizes)
{
    const __m128i all = _mm_loadu_si128((const void *)sizes), none = _mm_setzero_si128();
    __m128i low = _mm_unpacklo_epi8(all, none), high = _mm_unpackhi_epi8(all, none);
    __m128i sum = _mm_add_epi32(_mm_madd_epi16(low, low), _mm_madd_epi16(high, high));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    return _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 1);
}

/* Steps, the heaviest first. */
static void sort(const uint8_t *sizes, size_t steps, uint32_t *order)
{
    for (size_t s = 0; s < steps; s++) {
        size_t at = s;
        int32_t load = load_of(sizes + s * OUTS * STEP);
        for (; at && load_of(sizes + (size_t)order[at - 1] * OUTS * STEP) < load; at--)
            order[at] = order[at - 1];
        order[at] = (uint32_t)s;
    }
}

/* Orders steps, and returns how many of them, from the first, are matched. Heavy ones choose first: light
 * ones find another at the end, too. */
static size_t match(const uint8_t *sizes, size_t steps, uint32_t *order)
{
    size_t first = 0, end = steps;
    sort(sizes, steps, order);
    while (first < end) {
        __m128i one = _mm_loadu_si128((const void *)(sizes + (size_t)order[first] * OUTS * STEP));
        size_t other = first + 1;
        while (other < end && !safe_together(one, sizes + (size_t)order[other] * OUTS * STEP))
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

size_t dq_qlanes_pack_sse41(const int8_t *w, size_t steps, void *panel)
{
    head *h = panel;
    uint32_t *order = (uint32_t *)(h + 1);
    int8_t *safe = (int8_t *)(order + steps);
    record *records = (record *)(void *)(safe + steps * OUTS * STEP), *next = records;
    memset(h, 0, sizeof *h);
    for (size_t s = 0; s < steps; s++) /* where the safe parts will be */
        find_sizes(w + s * STEP, steps, (uint8_t *)safe + s * OUTS * STEP);
    h->matched = (uint32_t)match((const uint8_t *)safe, steps, order);
    for (size_t j = 0; j < OUTS; j++) {
        const record *first = next;
        for (size_t s = 0; s < steps; s++) {
            next->step = order[s];
            if (split(w + (j * steps + order[s]) * STEP, safe + (s * OUTS + j) * STEP, next->w))
                next++;
        }
        h->records[j] = (uint32_t)(next - first);
    }
    size_t used = sizeof *h + steps * (sizeof *order + OUTS * STEP) + (size_t)(next - records) * sizeof *next;
    return (used + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- Pixels ------------------------------------------------------------------------------------------- */

void dq_qlanes_interleave_sse41(const uint8_t *const planes[STEP], size_t n, uint8_t flip, uint8_t *out)
{
    enum { SOME = 16 };
    const __m128i flips = _mm_set1_epi8((char)flip);
    if (n < SOME) {
        dq_qlanes_interleave_c(planes, n, flip, out);
        return;
    }
    for (size_t at = 0; at < n; at += SOME) {
        size_t p = n - at < SOME ? n - SOME : at; /* the last ones reach back over those before them */
        __m128i x[STEP];
        for (int e = 0; e < STEP; e++)
            x[e] = planes[e] ? _mm_xor_si128(_mm_loadu_si128((const void *)(planes[e] + p)), flips)
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

#include "kernels/qlanes_store.h"

const dq_qlanes dq_qlanes_sse41 = {.beats = &dq_qgemm_sse41,
                                   .interleave = dq_qlanes_interleave_sse41,
                                   .panel_size = dq_qlanes_panel_size_sse41,
                                   .pack = dq_qlanes_pack_sse41,
                                   .sums = sums,
                                   .store = store};
