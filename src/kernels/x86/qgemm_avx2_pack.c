#include "kernels/x86/qgemm_avx2.h"

#include "base/checked.h"
#include "kernels/qgemm_pack.h"

#include <immintrin.h>
#include <string.h>

enum {
    NR = DQ_AVX2_NR,
    GROUP = DQ_AVX2_GROUP,
    MOST = 128,       /* size of same-signed weights that are summed in 16 bits: 255 * 128 < 2^15 */
    MOST_ENTRY = 127, /* of a rest */
    MOST_POSITIONS = 1 << 16,
    OPEN = 4
};

/* What the ways cost, relative to each other, as measured on Zen 3: the time of a multiplication in quads is
 * 82, in pairs 100, in words 115, and that of an entry 165. */
enum { COST_QUAD = 82, COST_PAIR = 100, COST_WORD = 115, COST_ENTRY = 165 };

static bool positions_of(size_t runs, size_t run, size_t *positions)
{
    return dq_align_size(run, GROUP, positions) && dq_mul_size(*positions, runs, positions);
}

/* Entries that cost no more than `saved` for each weight. */
static size_t worth(size_t positions, size_t saved)
{
    return positions * NR * saved / COST_ENTRY;
}

/* Words take more than any split that is worth it. */
size_t dq_qgemm_avx2_panel_size(size_t runs, size_t run)
{
    size_t positions, bytes, all;
    if (!positions_of(runs, run, &positions) || !dq_mul_size(positions, NR * sizeof(int16_t), &bytes) ||
        !dq_add_size(bytes, sizeof(dq_avx2_head) + NR * sizeof(int32_t), &all))
        return 0;
    return all;
}

/* ---- Splitting ---------------------------------------------------------------------------------------- */

/* Pairs of a column that still want a second entry. */
typedef struct open_pairs {
    uint32_t number[OPEN];
    int rest[OPEN]; /* of the first entry; 0: none is open here */
    uint32_t next;
} open_pairs;

typedef struct splitter {
    int8_t *safe;
    size_t runs, groups;
    bool quads;
    uint32_t pairs[NR]; /* of entries, of each column so far */
    open_pairs open[NR];
    dq_avx2_record *out[NR]; /* where each column's records go; NULL: they are only counted */
    size_t total, limit;     /* entries, those missing in open pairs among them */
} splitter;

static void write_entry(splitter *s, size_t column, uint32_t pair, size_t second, size_t position, int rest)
{
    if (!s->out[column])
        return;
    dq_avx2_record *record = s->out[column] + pair / 2;
    record->position[pair % 2 * 2 + second] = (uint16_t)position;
    record->rest[pair % 2 * 2 + second] = (int8_t)rest;
}

static bool fit(int a, int b)
{
    return (a < 0) != (b < 0) || (a + b <= MOST && a + b >= -MOST);
}

/* An entry joins one that waits for company with which it is safe, or waits itself. */
static void put(splitter *s, size_t column, size_t position, int rest)
{
    open_pairs *open = &s->open[column];
    for (size_t i = 0; i < OPEN; i++)
        if (open->rest[i] && fit(open->rest[i], rest)) {
            write_entry(s, column, open->number[i], 1, position, rest);
            open->rest[i] = 0;
            return;
        }
    uint32_t pair = s->pairs[column]++, i = open->next++ % OPEN;
    open->number[i] = pair;
    open->rest[i] = rest;
    s->total += 2;
    write_entry(s, column, pair, 0, position, rest);
}

/* Splits the n weights of one column whose products one lane of 16 bits sums: the largest give first. The
 * distance of the weight at `at` with number e is e % 2 bytes, and a group's for e from 2 on. */
static void split(splitter *s, int8_t *at, size_t n, size_t column, size_t position)
{
    int value[4];
    for (size_t e = 0; e < n; e++)
        value[e] = at[e % 2 + e / 2 * NR * GROUP];
    for (int sign = -1; sign <= 1; sign += 2) {
        int sum = 0;
        for (size_t e = 0; e < n; e++)
            sum += value[e] * sign > 0 ? value[e] * sign : 0;
        while (sum > MOST) {
            size_t most = 0;
            for (size_t e = 1; e < n; e++)
                most = value[e] * sign > value[most] * sign ? e : most;
            int rest = value[most] * sign < sum - MOST ? value[most] * sign : sum - MOST;
            rest = rest < MOST_ENTRY ? rest : MOST_ENTRY;
            put(s, column, position + most % 2 + most / 2 * GROUP, rest * sign);
            value[most] -= rest * sign;
            sum -= rest;
        }
    }
    for (size_t e = 0; e < n && s->out[column]; e++)
        at[e % 2 + e / 2 * NR * GROUP] = (int8_t)value[e];
}

/* Sums of the sizes of a pair's negative or positive weights, whichever is larger, in lanes of 16 bits:
 * *less and *more. */
static inline void pair_sums(const int8_t *w, __m256i *less, __m256i *more)
{
    __m256i v = _mm256_load_si256((const __m256i *)(const void *)w), zero = _mm256_setzero_si256();
    __m256i ones = _mm256_set1_epi8(1);
    *more = _mm256_maddubs_epi16(_mm256_max_epi8(v, zero), ones);
    *less = _mm256_maddubs_epi16(_mm256_sub_epi8(zero, _mm256_min_epi8(v, zero)), ones);
}

/* Finds the lanes of eight columns that are not safe; `both`: with the group behind. */
static void split_columns(splitter *s, int8_t *w, bool both, size_t column, size_t position)
{
    __m256i less, more;
    pair_sums(w, &less, &more);
    if (both) {
        __m256i less2, more2;
        pair_sums(w + NR * GROUP, &less2, &more2);
        less = _mm256_add_epi16(less, less2);
        more = _mm256_add_epi16(more, more2);
    }
    __m256i unsafe = _mm256_cmpgt_epi16(_mm256_max_epi16(less, more), _mm256_set1_epi16(MOST));
    for (uint32_t mask = (uint32_t)_mm256_movemask_epi8(unsafe); mask;) {
        unsigned byte = (unsigned)__builtin_ctz(mask);
        split(s, w + byte, both ? 4 : 2, column + byte / GROUP, position + byte % GROUP);
        mask &= ~(3u << byte);
    }
}

/* Whether there may be no more than s->limit entries in the end, as it looks after `done` positions. */
static bool bearable(const splitter *s, size_t done)
{
    double part = (double)done / (double)(s->runs * s->groups * GROUP) + 0.1;
    return (double)s->total <= (double)s->limit * part;
}

/* Goes over all weights, or until there are more than s->limit entries, or it looks as if there were. */
static bool split_panel(splitter *s)
{
    int8_t *w = s->safe;
    size_t position = 0;
    s->total = 0;
    memset(s->pairs, 0, sizeof s->pairs);
    memset(s->open, 0, sizeof s->open);
    for (size_t t = 0; t < s->runs; t++)
        for (size_t g = 0; g < s->groups;) {
            if (!bearable(s, position))
                return false;
            bool both = s->quads && g + 2 <= s->groups;
            for (size_t column = 0; column < NR; column += 8)
                split_columns(s, w + column * GROUP, both, column, position);
            size_t step = both ? 2 : 1;
            g += step;
            position += step * GROUP;
            w += step * NR * GROUP;
        }
    return s->total <= s->limit;
}

/* What splitting would come to, with at most `limit` entries. */
static bool try_split(splitter *s, bool quads, size_t limit)
{
    s->quads = quads;
    s->limit = limit;
    return split_panel(s);
}

/* Chooses how to multiply and splits; returns the number of records behind the safe parts. */
static size_t choose(splitter *s, dq_avx2_head *head, dq_avx2_record *records)
{
    size_t positions = s->runs * s->groups * GROUP, most = worth(positions, COST_WORD - COST_PAIR), count = 0;
    size_t most_quads = worth(positions, COST_WORD - COST_QUAD);
    bool pairs = try_split(s, false, most);
    if (pairs && s->total + worth(positions, COST_PAIR - COST_QUAD) < most_quads)
        most_quads = s->total + worth(positions, COST_PAIR - COST_QUAD);
    bool quads = try_split(s, true, most_quads);
    if (!quads && !pairs)
        return 0;
    if (!quads)
        try_split(s, false, most);
    for (size_t j = 0; j < NR; j++) {
        s->out[j] = records + count;
        head->records[j] = (uint16_t)((s->pairs[j] + 1) / 2);
        count += head->records[j];
    }
    memset(records, 0, count * sizeof *records);
    try_split(s, quads, SIZE_MAX);
    head->mode = quads ? DQ_AVX2_QUADS : DQ_AVX2_PAIRS;
    return count;
}

/* ---- Words -------------------------------------------------------------------------------------------- */

/* Groups of bytes become words at `to`, which may begin before them as long as it ends where they do. */
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

/* Bytes stand in the second half of what words take, until they become them. */
static size_t pack_words(const dq_qgemm_b *b, size_t first, dq_avx2_head *head, int32_t *sums)
{
    int32_t *terms = (int32_t *)(void *)(head + 1);
    size_t groups = b->runs * dq_avx2_groups(b->run), bytes = groups * DQ_AVX2_GROUP_BYTES;
    int8_t *from = (int8_t *)(terms + NR) + bytes;
    memset(head, 0, sizeof *head);
    head->mode = DQ_AVX2_WORDS;
    dq_qgemm_pack_avx2(b, first, NR, from, sums);
    make_words(from, groups, terms, (int16_t *)(void *)(terms + NR));
    return sizeof *head + NR * sizeof *terms + 2 * bytes;
}

size_t dq_qgemm_avx2_pack(const dq_qgemm_b *b, size_t first, void *panel, int32_t *sums)
{
    dq_avx2_head *head = panel;
    splitter s = {.safe = (int8_t *)(head + 1), .runs = b->runs, .groups = dq_avx2_groups(b->run)};
    size_t positions = s.runs * s.groups * GROUP, safe_bytes = positions * NR, records = 0;
    if (positions && b->use == DQ_QGEMM_ONCE)
        return pack_words(b, first, head, sums);
    dq_qgemm_pack_avx2(b, first, NR, s.safe, sums);
    memset(head, 0, sizeof *head);
    head->mode = DQ_AVX2_BYTES;
    if (b->use == DQ_QGEMM_OFTEN && positions && positions <= MOST_POSITIONS)
        records = choose(&s, head, (dq_avx2_record *)(void *)(s.safe + safe_bytes));
    if (b->use == DQ_QGEMM_OFTEN && positions && head->mode == DQ_AVX2_BYTES)
        return pack_words(b, first, head, sums);
    size_t used = sizeof *head + safe_bytes + records * sizeof(dq_avx2_record);
    return (used + 63) / 64 * 64;
}
