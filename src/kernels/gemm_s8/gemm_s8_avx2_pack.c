/* SPDX-License-Identifier: Apache-2.0 */
/* Packs weights for the AVX2 8-bit GEMM: gemm_s8_avx2.h describes the layout. */
#include "kernels/gemm_s8/gemm_s8_avx2.h"

#include "base/checked.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"

#include <immintrin.h>
#include <string.h>

enum {
    NR = DQ_AVX2_NR,
    GROUP = DQ_AVX2_GROUP,
    MAX_PAIR_SUM = 128, /* maximum magnitude of weights of one sign in a 16-bit sum: 255 * 128 < 2^15 */
    MAX_ENTRY = 127,    /* maximum magnitude of an entry of the rest */
    MAX_GROUPS = (1 << 16) / GROUP, /* so that positions fit in 16 bits */
    OPEN = 4                        /* open pairs of a column */
};

/* Costs per group of weights and row, measured on an AMD EPYC without VNNI: for batches of each depth, for
 * words (COST_WORDS), and for entries of the rest, as many as the group has weights (COST_ENTRY). A panel of
 * batches costs COST_PASSES more, for the order of its groups and the passes over sums that words do not
 * need. */
typedef struct way {
    uint8_t depth, cost;
} way;
static const way ways[] = {{2, 85}, {3, 79}, {4, 76}, {6, 73}, {8, 72}};
enum {
    WAYS = sizeof ways / sizeof *ways,
    MAX_DEPTH = 8,
    COST_WORDS = 112,
    COST_ENTRY = 260,
    COST_PASSES = 540
};

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bool positions_of(size_t runs, size_t run, size_t *positions)
{
    return dq_align_size(run, GROUP, positions) && dq_mul_size(*positions, runs, positions);
}

/* The layout of words is larger than that of any split that is worth its time. */
size_t dq_gemm_s8_avx2_panel_size(size_t runs, size_t run)
{
    size_t positions, bytes, all;
    if (!positions_of(runs, run, &positions) || !dq_mul_size(positions, NR * sizeof(int16_t), &bytes) ||
        !dq_add_size(bytes, dq_avx2_order_bytes(positions / GROUP), &all) ||
        !dq_add_size(all, sizeof(dq_avx2_head) + NR * sizeof(int32_t), &all))
        return 0;
    return all;
}

/* ---- Shifts ------------------------------------------------------------------------------------------- */

/* The part of a shifted weight that does not fit in int8. */
typedef struct excess {
    uint16_t position;
    uint8_t column;
    int8_t rest;
} excess;

enum { MAX_EXCESS = 64, LEAST_SHIFT = 8 };

typedef struct shifts {
    int8_t of[NR], broadcast[DQ_AVX2_GROUP_BYTES]; /* per column; repeated in the layout of a group */
    size_t count;
    excess excess[MAX_EXCESS];
} shifts;

/* Computes the means of the columns from their sums. Returns false if all means are near zero. */
static bool find_shifts(const int32_t *sums, size_t count, shifts *s)
{
    bool any = false;
    for (size_t j = 0; j < NR; j++) {
        double mean = (double)sums[j] / (double)count;
        int shift = (int)(mean < 0 ? mean - 0.5 : mean + 0.5);
        any = any || shift >= LEAST_SHIFT || shift <= -LEAST_SHIFT;
        s->of[j] = (int8_t)(shift < -127 ? -127 : shift);
    }
    for (size_t i = 0; i < DQ_AVX2_GROUP_BYTES; i++)
        s->broadcast[i] = s->of[i / GROUP];
    return any;
}

/* Shifts a whole group. Returns false, and changes nothing, if some weights do not fit. */
static bool shift_all(const shifts *s, int8_t *w)
{
    __m256i fits = _mm256_set1_epi8(-1), shifted[2];
    for (int v = 0; v < 2; v++) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32 * v));
        __m256i by = _mm256_loadu_si256((const __m256i *)(const void *)(s->broadcast + 32 * v));
        shifted[v] = _mm256_subs_epi8(x, by);
        fits = _mm256_and_si256(fits, _mm256_cmpeq_epi8(shifted[v], _mm256_sub_epi8(x, by)));
    }
    if (_mm256_movemask_epi8(fits) != -1)
        return false;
    for (int v = 0; v < 2; v++)
        _mm256_storeu_si256((__m256i *)(void *)(w + 32 * v), shifted[v]);
    return true;
}

/* Shifts a group with `live` positions that are not padding. Weights that do not fit become excess; returns
 * false if there are too many of these. */
static bool shift_group(shifts *s, int8_t *w, size_t position, size_t live)
{
    for (size_t j = 0; j < NR; j++)
        for (size_t i = 0; i < live; i++) {
            int value = w[j * GROUP + i] - s->of[j], fits = value > 127 ? 127 : value < -128 ? -128 : value;
            w[j * GROUP + i] = (int8_t)fits;
            if (value == fits)
                continue;
            if (s->count == MAX_EXCESS)
                return false;
            s->excess[s->count++] = (excess){(uint16_t)(position + i), (uint8_t)j, (int8_t)(value - fits)};
        }
    return true;
}

static bool shift_panel(shifts *s, int8_t *w, const dq_gemm_s8_b *b)
{
    size_t groups = dq_avx2_groups(b->run);
    s->count = 0;
    for (size_t t = 0; t < b->runs; t++)
        for (size_t g = 0; g < groups; g++, w += DQ_AVX2_GROUP_BYTES) {
            size_t live = b->run - g * GROUP < GROUP ? b->run - g * GROUP : GROUP;
            if (!(live == GROUP && shift_all(s, w)) && !shift_group(s, w, (t * groups + g) * GROUP, live))
                return false;
        }
    return true;
}

/* ---- Batches ------------------------------------------------------------------------------------------ */

/* Magnitude sums of the positive and of the negative weights, for each pair of a group or batch, saturated to
 * 255. */
typedef struct lanes {
    __m256i more, less;
} lanes;

enum { WINDOW = 32, AT_ONCE = 8, PENALTY = 30 /* cost of an unsafe sum in addition to its excess */ };

/* Assigns groups to batches greedily. Groups enter the window in their natural order; batches take groups
 * from the window. Unused entries of the window have the largest sums, so that no batch prefers them, and the
 * largest lightness, so that no batch starts with them. */
typedef struct arranger {
    const lanes *groups;
    size_t count;
    uint16_t *order;
    lanes window[WINDOW];
    uint16_t number[WINDOW], lightness[WINDOW]; /* lightness: UINT16_MAX - total of the group's sums */
    size_t waiting, next;                       /* entries in use, and the first group outside */
} arranger;

static lanes pair_sums(const int8_t *w)
{
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi8(1);
    __m256i more[2], less[2];
    for (int v = 0; v < 2; v++) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32 * v));
        more[v] = _mm256_maddubs_epi16(_mm256_max_epi8(x, zero), ones);
        less[v] = _mm256_maddubs_epi16(_mm256_sub_epi8(zero, _mm256_min_epi8(x, zero)), ones);
    }
    return (lanes){_mm256_packus_epi16(more[0], more[1]), _mm256_packus_epi16(less[0], less[1])};
}

static inline lanes join(lanes a, lanes b)
{
    return (lanes){_mm256_adds_epu8(a.more, b.more), _mm256_adds_epu8(a.less, b.less)};
}

/* Total of all sums, as partial sums in four 64-bit lanes. */
static inline __m256i total(lanes v)
{
    const __m256i zero = _mm256_setzero_si256();
    return _mm256_add_epi32(_mm256_sad_epu8(v.more, zero), _mm256_sad_epu8(v.less, zero));
}

static inline uint32_t of_lanes(__m256i v)
{
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return (uint32_t)(_mm_cvtsi128_si32(half) + _mm_extract_epi32(half, 2));
}

/* Excess of all sums over the bound, with penalties, as partial sums in four 64-bit lanes. */
static inline __m256i overflow_of(lanes sum)
{
    const __m256i zero = _mm256_setzero_si256(), most = _mm256_set1_epi8((char)MAX_PAIR_SUM);
    __m256i more = _mm256_subs_epu8(sum.more, most), less = _mm256_subs_epu8(sum.less, most);
    __m256i penalty = _mm256_set1_epi8(PENALTY);
    more = _mm256_adds_epu8(more, _mm256_andnot_si256(_mm256_cmpeq_epi8(more, zero), penalty));
    less = _mm256_adds_epu8(less, _mm256_andnot_si256(_mm256_cmpeq_epi8(less, zero), penalty));
    return total((lanes){more, less});
}

/* A bit mask of the sums that are not safe. */
static inline uint32_t unsafe(__m256i sums)
{
    const __m256i most = _mm256_set1_epi8((char)MAX_PAIR_SUM);
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(sums, most), most));
}

/* Byte offset in a group of the pair whose sum has index i: vpackuswb interleaves the two vectors in blocks
 * of eight sums. */
static size_t sum_offset(unsigned i)
{
    return i / 8 % 2 * 32 + i / 16 * 16 + i % 8 * 2;
}

static void enter_group(arranger *a, size_t i, size_t group)
{
    a->window[i] = a->groups[group];
    a->number[i] = (uint16_t)group;
    a->lightness[i] = (uint16_t)(UINT16_MAX - of_lanes(total(a->groups[group])));
}

/* Takes the group at entry i of the window into the current batch and returns its sums. The next group, or
 * the last one of the window, moves to entry i. */
static lanes take(arranger *a, size_t i, size_t *done)
{
    const __m256i all = _mm256_set1_epi8(-1);
    lanes taken = a->window[i];
    a->order[(*done)++] = a->number[i];
    if (a->next < a->count) {
        enter_group(a, i, a->next++);
        return taken;
    }
    size_t last = --a->waiting;
    a->window[i] = a->window[last];
    a->number[i] = a->number[last];
    a->lightness[i] = a->lightness[last];
    a->window[last] = (lanes){all, all};
    a->lightness[last] = UINT16_MAX;
    return taken;
}

/* Index of the least of eight numbers, the first of equal ones, if it is less than *least; otherwise `best`.
 * Updates *least. */
static inline size_t least_of_8(__m128i numbers, size_t first, size_t best, uint32_t *least)
{
    uint32_t found = (uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(numbers)), here = found & UINT16_MAX;
    if (here >= *least)
        return best;
    *least = here;
    return first + (found >> 16);
}

static size_t heaviest(const arranger *a)
{
    size_t best = 0;
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < a->waiting; i += AT_ONCE)
        best =
            least_of_8(_mm_loadu_si128((const __m128i *)(const void *)(a->lightness + i)), i, best, &least);
    return best;
}

/* Badness of four groups, each added to `sum`, as the four 16-bit words of the low 64 bits. */
static inline __m128i badness_of_4(const lanes *groups, lanes sum)
{
    __m256i words = overflow_of(join(sum, groups[0]));
    words = _mm256_or_si256(words, _mm256_slli_epi64(overflow_of(join(sum, groups[1])), 16));
    words = _mm256_or_si256(words, _mm256_slli_epi64(overflow_of(join(sum, groups[2])), 32));
    words = _mm256_or_si256(words, _mm256_slli_epi64(overflow_of(join(sum, groups[3])), 48));
    __m128i half = _mm_add_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    return _mm_add_epi16(half, _mm_unpackhi_epi64(half, half));
}

/* Index of the group that adds the least excess to a batch with sums `sum`; the first of equal ones. */
static size_t best_match(const arranger *a, lanes sum)
{
    size_t best = 0;
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < a->waiting && least > 0; i += AT_ONCE) {
        __m128i low = badness_of_4(a->window + i, sum), high = badness_of_4(a->window + i + 4, sum);
        best = least_of_8(_mm_unpacklo_epi64(low, high), i, best, &least);
    }
    return best;
}

/* Orders the groups for batches of `depth`. Each batch starts with the heaviest group of the window. */
static void arrange(arranger *a, size_t depth)
{
    const __m256i all = _mm256_set1_epi8(-1);
    for (size_t i = 0; i < WINDOW; i++) {
        a->window[i] = (lanes){all, all};
        a->lightness[i] = UINT16_MAX;
    }
    a->waiting = a->count < WINDOW ? a->count : WINDOW;
    a->next = a->waiting;
    for (size_t i = 0; i < a->waiting; i++)
        enter_group(a, i, i);
    for (size_t done = 0; done < a->count;) {
        size_t end = done + depth;
        lanes sum = take(a, heaviest(a), &done);
        while (done < end && done < a->count)
            sum = join(sum, take(a, best_match(a, sum), &done));
    }
}

/* The cost of a panel of batches whose rest has so many entries. */
static double cost_of(const way *by, size_t groups, double entries)
{
    return (double)by->cost * (double)groups + COST_ENTRY * entries / (GROUP * NR) + COST_PASSES;
}

/* Estimates the cost of a panel. The number of entries is estimated from the groups in natural order: if they
 * are up to 2 % of the weights, arranging removes at least half of them, otherwise a smaller share. */
static double estimate(const arranger *a, const way *by)
{
    __m256i bad = _mm256_setzero_si256();
    double weights = (double)a->count * GROUP * NR;
    for (size_t g = 0; g < a->count; g += by->depth) {
        lanes sum = a->groups[g];
        for (size_t i = g + 1; i < g + by->depth && i < a->count; i++)
            sum = join(sum, a->groups[i]);
        bad = _mm256_add_epi64(bad, overflow_of(sum));
    }
    double entries = of_lanes(bad) / (2 * PENALTY * weights), left = entries * entries / (entries + 0.02);
    return cost_of(by, a->count, left * weights);
}

/* The depth with the least cost, or NULL if words cost less. */
static const way *find_way(const arranger *a)
{
    double least = (double)COST_WORDS * (double)a->count;
    const way *best = NULL;
    for (size_t i = 0; i < WAYS; i++) {
        double here = estimate(a, &ways[i]);
        best = here < least ? &ways[i] : best;
        least = here < least ? here : least;
    }
    return best;
}

/* ---- Splitting ---------------------------------------------------------------------------------------- */

/* Pairs of a column that still lack their second entry; a ring buffer. */
typedef struct open_pairs {
    uint32_t number[OPEN];
    int rest[OPEN]; /* value of the first entry; 0: not in use */
    uint32_t next;
} open_pairs;

/* Creates records on demand, each for one column; sort_records() orders them by column at the end. */
typedef struct splitter {
    int8_t *safe;
    const uint16_t *order;
    size_t groups, depth;
    dq_avx2_record *records;
    uint8_t *columns; /* column of record r is columns[-1 - r]: grows down towards the records */
    size_t count, capacity;
    uint32_t spare[NR]; /* 1 + index of the column's record with an unused pair, or 0 */
    open_pairs open[NR];
    size_t total; /* entries, including the missing ones of open pairs */
} splitter;

static void write_entry(const splitter *s, uint32_t pair, size_t second, size_t position, int rest)
{
    dq_avx2_record *record = s->records + pair / 2;
    record->position[pair % 2 * 2 + second] = (uint16_t)position;
    record->rest[pair % 2 * 2 + second] = (int8_t)rest;
}

static bool fit(int a, int b)
{
    return (a < 0) != (b < 0) || (a + b <= MAX_PAIR_SUM && a + b >= -MAX_PAIR_SUM);
}

/* Adds an entry: second in an open pair in which both are safe, or first in a new open pair. Returns false if
 * there is no memory for another record. */
static bool put(splitter *s, size_t column, size_t position, int rest)
{
    open_pairs *open = &s->open[column];
    for (size_t i = 0; i < OPEN; i++)
        if (open->rest[i] && fit(open->rest[i], rest)) {
            write_entry(s, open->number[i], 1, position, rest);
            open->rest[i] = 0;
            return true;
        }
    uint32_t pair = 2 * s->spare[column] - 1, i = open->next++ % OPEN;
    if (s->spare[column]) {
        s->spare[column] = 0;
    } else {
        if (s->count == s->capacity)
            return false;
        pair = 2 * (uint32_t)s->count;
        s->records[s->count++] = (dq_avx2_record){{0}, {0}};
        s->columns[-(ptrdiff_t)s->count] = (uint8_t)column;
        s->spare[column] = (uint32_t)s->count;
    }
    open->number[i] = pair;
    open->rest[i] = rest;
    s->total += 2;
    write_entry(s, pair, 0, position, rest);
    return true;
}

/* Loads the pairs at `w` of n groups as 16-bit words; the remaining words are zero. */
static inline __m128i pairs_of(const int8_t *w, size_t n)
{
    uint16_t pair[MAX_DEPTH] = {0};
#pragma GCC unroll 8
    for (size_t g = 0; g < MAX_DEPTH; g++)
        if (g < n)
            memcpy(pair + g, w + g * DQ_AVX2_GROUP_BYTES, sizeof *pair);
    return _mm_setr_epi16((short)pair[0], (short)pair[1], (short)pair[2], (short)pair[3], (short)pair[4],
                          (short)pair[5], (short)pair[6], (short)pair[7]);
}

/* Splits weights of one sign until their 16-bit sum is safe, the largest first. The sum is over n groups from
 * index `first` on, and over the pair at byte `at` of each group. */
static bool split(splitter *s, size_t first, size_t n, size_t at, int sign)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i number = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int8_t *w = s->safe + first * DQ_AVX2_GROUP_BYTES + at;
    __m128i pairs = pairs_of(w, n);
    __m128i sizes = sign > 0 ? _mm_max_epi8(pairs, zero) : _mm_sub_epi8(zero, _mm_min_epi8(pairs, zero));
    __m128i sums = _mm_sad_epu8(sizes, zero);
    int sum = _mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4);
    while (sum > MAX_PAIR_SUM) {
        __m128i even = _mm_and_si128(sizes, _mm_set1_epi16(0xff)), odd = _mm_srli_epi16(sizes, 8);
        __m128i least = _mm_minpos_epu16(_mm_xor_si128(_mm_max_epu16(even, odd), _mm_set1_epi16(-1)));
        size_t group = (size_t)_mm_extract_epi16(least, 1);
        int size = UINT16_MAX - _mm_extract_epi16(least, 0);
        int8_t *pair = w + group * DQ_AVX2_GROUP_BYTES;
        size_t second = pair[0] * sign != size;
        int rest = size < sum - MAX_PAIR_SUM ? size : sum - MAX_PAIR_SUM;
        rest = rest < MAX_ENTRY ? rest : MAX_ENTRY;
        if (!put(s, at / GROUP, s->order[first + group] * (size_t)GROUP + at % GROUP + second, rest * sign))
            return false;
        pair[second] = (int8_t)(pair[second] - rest * sign);
        __m128i here = _mm_cmpeq_epi8(number, _mm_set1_epi8((char)(2 * group + second)));
        sizes = _mm_sub_epi8(sizes, _mm_and_si128(here, _mm_set1_epi8((char)rest)));
        sum -= rest;
    }
    return true;
}

/* Splits all weights of a panel. Returns false if there is no memory for the records. */
static bool split_panel(splitter *s, const shifts *shifted)
{
    for (size_t i = 0; i < shifted->count; i++)
        if (!put(s, shifted->excess[i].column, shifted->excess[i].position, shifted->excess[i].rest))
            return false;
    for (size_t g = 0, n; g < s->groups; g += n) {
        n = s->groups - g < s->depth ? s->groups - g : s->depth;
        lanes sum = pair_sums(s->safe + g * DQ_AVX2_GROUP_BYTES);
        for (size_t i = 1; i < n; i++)
            sum = join(sum, pair_sums(s->safe + (g + i) * DQ_AVX2_GROUP_BYTES));
        uint32_t more = unsafe(sum.more), less = unsafe(sum.less);
        for (uint32_t mask = more | less; mask; mask &= mask - 1) {
            size_t at = sum_offset((unsigned)__builtin_ctz(mask));
            uint32_t bit = mask & -mask;
            if ((less & bit && !split(s, g, n, at, -1)) || (more & bit && !split(s, g, n, at, 1)))
                return false;
        }
    }
    return true;
}

/* Counts the records of each column and sorts them by column, in place. */
static void sort_records(splitter *s, uint16_t counts[NR])
{
    size_t next[NR], end[NR], at = 0;
    for (size_t r = 0; r < s->count; r++)
        counts[s->columns[-1 - (ptrdiff_t)r]]++;
    for (size_t j = 0; j < NR; at = end[j++]) {
        next[j] = at;
        end[j] = at + counts[j];
    }
    for (size_t j = 0; j < NR; j++)
        while (next[j] < end[j]) {
            uint8_t *column = s->columns - 1 - next[j];
            size_t to = next[*column]++;
            if (*column == j)
                continue;
            dq_avx2_record moved = s->records[to];
            s->records[to] = s->records[next[j]];
            s->records[next[j]] = moved;
            uint8_t was = s->columns[-1 - (ptrdiff_t)to];
            s->columns[-1 - (ptrdiff_t)to] = *column;
            *column = was;
        }
}

/* Chooses the depth of batches for the weights at `natural`, and splits them. Returns the bytes after the
 * head, or 0 if words are faster. Records overwrite the natural weights; their columns grow down from the end
 * of the memory that words would take. A rest that does not fit there is not worth its time. */
static size_t choose(dq_avx2_head *head, size_t groups, const int8_t *natural, const shifts *shifted)
{
    uint16_t *order = (uint16_t *)(void *)(head + 1);
    int8_t *safe = (int8_t *)(head + 1) + dq_avx2_order_bytes(groups);
    lanes *sums = (lanes *)(void *)safe; /* until the safe weights overwrite them */
    arranger a;
    a.groups = sums;
    a.count = groups;
    a.order = order;
    for (size_t g = 0; g < groups; g++)
        sums[g] = pair_sums(natural + g * DQ_AVX2_GROUP_BYTES);
    const way *by = find_way(&a);
    if (!by)
        return 0;
    arrange(&a, by->depth);
    for (size_t g = 0; g < groups; g++)
        memcpy(safe + g * DQ_AVX2_GROUP_BYTES, natural + order[g] * (size_t)DQ_AVX2_GROUP_BYTES,
               DQ_AVX2_GROUP_BYTES);
    size_t bytes = groups * DQ_AVX2_GROUP_BYTES, rest = bytes + NR * sizeof(int32_t);
    splitter s = {.safe = safe, .order = order, .groups = groups, .depth = by->depth};
    s.records = (dq_avx2_record *)(void *)(safe + bytes);
    s.columns = (uint8_t *)s.records + rest;
    s.capacity = rest / (sizeof(dq_avx2_record) + 1);
    if (!split_panel(&s, shifted) ||
        cost_of(by, groups, (double)s.total) > (double)COST_WORDS * (double)groups)
        return 0;
    sort_records(&s, head->records);
    head->mode = DQ_AVX2_BATCHES;
    head->depth = by->depth;
    head->any = s.count > 0;
    return dq_avx2_order_bytes(groups) + bytes + s.count * sizeof(dq_avx2_record);
}

/* ---- Words -------------------------------------------------------------------------------------------- */

/* Widens groups of bytes to 16-bit words at `to`, and sums the terms w0 w2 + w1 w3 of each column. `to` may
 * overlap `from` if it does not end after it. */
static void make_words(const int8_t *from, size_t groups, int32_t *terms, int16_t *to)
{
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (; groups; groups--, from += DQ_AVX2_GROUP_BYTES) {
        __m256i quarter[4];
        for (int q = 0; q < 4; q++)
            quarter[q] =
                _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(from + 16 * q)));
        for (int v = 0; v < 2; v++, to += 32) {
            __m256 a = _mm256_castsi256_ps(quarter[2 * v]), b = _mm256_castsi256_ps(quarter[2 * v + 1]);
            __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
            __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
            high = _mm256_permute4x64_epi64(high, _MM_SHUFFLE(3, 1, 2, 0));
            low = _mm256_permute4x64_epi64(low, _MM_SHUFFLE(3, 1, 2, 0));
            sum[v] = _mm256_add_epi32(sum[v], _mm256_madd_epi16(high, low));
            _mm256_storeu_si256((__m256i *)(void *)to, high);
            _mm256_storeu_si256((__m256i *)(void *)(to + 16), low);
        }
    }
    for (int v = 0; v < 2; v++)
        _mm256_storeu_si256((__m256i *)(void *)(terms + 8 * v), sum[v]);
}

size_t dq_gemm_s8_avx2_pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    dq_avx2_head *head = panel;
    size_t groups = b->runs * dq_avx2_groups(b->run), bytes = groups * DQ_AVX2_GROUP_BYTES;
    int8_t *at = (int8_t *)(head + 1);
    memset(head, 0, sizeof *head);
    /* The bytes are first packed into the second half of the memory for words. */
    int8_t *natural = at + dq_avx2_order_bytes(groups) + bytes;
    dq_gemm_s8_pack_avx2(b, first, NR, natural, sums);
    size_t used = 0;
    if (b->use == DQ_GEMM_S8_OFTEN && groups > 0 && groups <= MAX_GROUPS) {
        shifts by = {.count = 0};
        head->shifted = find_shifts(sums, b->runs * b->run, &by);
        if (!head->shifted || shift_panel(&by, natural, b))
            used = choose(head, groups, natural, &by);
        memcpy(head->shift, by.of, sizeof by.of);
        if (used == 0) /* choose() and shift_panel() may have changed them */
            dq_gemm_s8_pack_avx2(b, first, NR, natural, sums);
    }
    if (used == 0) {
        int32_t *terms = (int32_t *)(void *)at;
        head->mode = DQ_AVX2_WORDS;
        make_words(natural, groups, terms, (int16_t *)(void *)(terms + NR));
        used = NR * sizeof *terms + 2 * bytes;
    }
    return round_up(sizeof *head + used);
}

/* ---- Panels from files ----------------------------------------------------------------------------------
 */

static bool is_depth(size_t depth)
{
    for (size_t i = 0; i < WAYS; i++)
        if (ways[i].depth == depth)
            return true;
    return false;
}

/* Batches are safe if their groups and positions are in the row of A, and their records in the panel. */
static bool is_safe(size_t groups, const dq_avx2_head *head, const dq_avx2_record *records, size_t count)
{
    const uint16_t *order = (const uint16_t *)(const void *)(head + 1);
    if (!is_depth(head->depth))
        return false;
    for (size_t i = 0; i < groups; i++)
        if (order[i] >= groups)
            return false;
    for (size_t i = 0; i < count; i++)
        for (int e = 0; e < 4; e++)
            if (records[i].position[e] >= groups * GROUP)
                return false;
    return true;
}

/* A panel of words holds numbers only. */
size_t dq_gemm_s8_avx2_used(size_t runs, size_t run, const void *panel, size_t size)
{
    const dq_avx2_head *head = panel;
    const size_t groups = runs * dq_avx2_groups(run);
    const size_t words = round_up(sizeof *head + NR * sizeof(int32_t) + 2 * groups * DQ_AVX2_GROUP_BYTES);
    const size_t first = sizeof *head + dq_avx2_order_bytes(groups) + groups * DQ_AVX2_GROUP_BYTES;
    size_t count = 0;
    if (size < sizeof *head || size < (head->mode == DQ_AVX2_WORDS ? words : first))
        return 0;
    if (head->mode == DQ_AVX2_WORDS)
        return words;
    for (size_t j = 0; j < NR; j++)
        count += head->records[j];
    const size_t used = round_up(first + count * sizeof(dq_avx2_record));
    const void *records = (const char *)panel + first;
    return used <= size && is_safe(groups, head, records, count) ? used : 0;
}
