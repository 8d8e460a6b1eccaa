/* Two vectors of eight pixels by four output channels at a time, whose sums stay in registers.
 *
 * A pair of products of uint8 and int8 is summed in 16 bits where the weights of one sign come to 128 or less
 * in size: 255 * 128 < 2^15. So each weight is split into a safe part, whose pairs (or fours, of two steps)
 * obey this, and a rest, which is almost always zero. Rests stand behind the safe parts as records: a step,
 * and four more weights for it that are safe by themselves. */
#include "kernels/kernels.h"

#include "base/checked.h"

#include <immintrin.h>
#include <string.h>

enum { STEP = DQ_QLANES_STEP, OUTS = DQ_QLANES_OUTS, PIXELS = DQ_QLANES_PIXELS };
enum { ALIGN = 64, LANES = 8, VECTORS = 2, MOST = 128, TOGETHER = 8 /* steps of a vector */ };
enum { COST_FOUR = 3, COST_PAIR = 4 /* multiplications of a step, of a channel: a record has COST_PAIR */ };

typedef struct head {
    uint32_t fours; /* 16-bit sums are of two steps */
    uint32_t records[OUTS];
    uint8_t unused[ALIGN - (OUTS + 1) * sizeof(uint32_t)];
} head;

typedef struct record {
    uint32_t step;
    int8_t w[STEP];
} record;

/* ---- Packing ------------------------------------------------------------------------------------------ */

/* Fours are chosen where they have at most `steps` records more than pairs, of which a channel has at most
 * one a step. */
static size_t panel_size(size_t steps)
{
    enum { EACH = OUTS * STEP + (OUTS + 1) * sizeof(record) };
    size_t size;
    return dq_mul_size(steps, EACH, &size) && dq_add_size(size, sizeof(head), &size) &&
                   dq_align_size(size, ALIGN, &size)
               ? size
               : 0;
}

/* Splits the n weights that one lane of 16 bits sums, w[0], w[1], w[4] and w[5]: the largest give first. */
static void split_lane(const int8_t *w, size_t n, int *safe, int *rest)
{
    for (size_t e = 0; e < n; e++) {
        size_t at = e / 2 * STEP + e % 2;
        safe[at] = w[at];
        rest[at] = 0;
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        int sum = 0;
        for (size_t e = 0; e < n; e++)
            sum += safe[e / 2 * STEP + e % 2] * sign > 0 ? safe[e / 2 * STEP + e % 2] * sign : 0;
        while (sum > MOST) {
            size_t most = 0;
            for (size_t e = 1; e < n; e++) {
                size_t at = e / 2 * STEP + e % 2;
                most = safe[at] * sign > safe[most] * sign ? at : most;
            }
            int part = safe[most] * sign < sum - MOST ? safe[most] * sign : sum - MOST;
            safe[most] -= part * sign;
            rest[most] += part * sign;
            sum -= part;
        }
    }
}

static bool safe_pair(int a, int b)
{
    return (a < 0) != (b < 0) || (a + b <= MOST && a + b >= -MOST);
}

/* The records of one step: none, one or two. They are only counted where out is NULL. */
static size_t put_rests(size_t step, const int rest[STEP], record *out)
{
    record r[2] = {{.step = (uint32_t)step}, {.step = (uint32_t)step}};
    size_t n = 0;
    for (size_t e = 0; e < STEP; e += 2) {
        bool together = safe_pair(rest[e], rest[e + 1]);
        size_t wanted = !rest[e] && !rest[e + 1] ? 0 : together ? 1 : 2;
        /* +128 does not occur: a weight of that sign is at most 127 */
        r[0].w[e] = (int8_t)rest[e];
        r[together ? 0 : 1].w[e + 1] = (int8_t)rest[e + 1];
        n = wanted > n ? wanted : n;
    }
    if (out)
        memcpy(out, r, n * sizeof *out);
    return n;
}

/* Bit i: step i of n, TOGETHER at most, has a lane that is to be split. */
static uint32_t unsafe_steps(const int8_t *w, size_t n, bool fours)
{
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi8(1);
    int8_t few[TOGETHER * STEP] = {0};
    if (n < TOGETHER)
        w = memcpy(few, w, n * STEP);
    __m256i v = _mm256_loadu_si256((const void *)w);
    __m256i more = _mm256_maddubs_epi16(_mm256_max_epi8(v, zero), ones);
    __m256i less = _mm256_maddubs_epi16(_mm256_sub_epi8(zero, _mm256_min_epi8(v, zero)), ones);
    if (fours) {
        more = _mm256_add_epi16(more, _mm256_shuffle_epi32(more, _MM_SHUFFLE(2, 3, 0, 1)));
        less = _mm256_add_epi16(less, _mm256_shuffle_epi32(less, _MM_SHUFFLE(2, 3, 0, 1)));
    }
    __m256i unsafe = _mm256_cmpgt_epi16(_mm256_max_epi16(less, more), _mm256_set1_epi16(MOST));
    return ~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(unsafe, zero)));
}

/* Splits a channel's weights: safe parts to safe[s * OUTS * STEP …], records to out; or only counts them. */
static size_t split_channel(const int8_t *w, size_t steps, bool fours, int8_t *safe, record *out)
{
    size_t count = 0;
    uint32_t unsafe = 0;
    for (size_t s = 0, n; s < steps; s += n) {
        int parts[2 * STEP], rest[2 * STEP];
        n = fours && s + 2 <= steps ? 2 : 1;
        if (s % TOGETHER == 0)
            unsafe = unsafe_steps(w + s * STEP, steps - s < TOGETHER ? steps - s : TOGETHER, fours);
        bool whole = !(unsafe >> s % TOGETHER & 1);
        for (size_t i = 0; i < n && safe; i++)
            memcpy(safe + (s + i) * OUTS * STEP, w + (s + i) * STEP, STEP);
        if (whole)
            continue;
        for (size_t lane = 0; lane < STEP; lane += 2)
            split_lane(w + s * STEP + lane, 2 * n, parts + lane, rest + lane);
        for (size_t i = 0; i < n; i++) {
            count += put_rests(s + i, rest + i * STEP, out ? out + count : NULL);
            for (size_t e = 0; e < STEP && safe; e++)
                safe[(s + i) * OUTS * STEP + e] = (int8_t)parts[i * STEP + e];
        }
    }
    return count;
}

static size_t pack(const int8_t *w, size_t steps, void *panel)
{
    head *h = panel;
    int8_t *safe = (int8_t *)(h + 1);
    record *records = (record *)(void *)(safe + steps * OUTS * STEP);
    size_t pairs = 0, fours = 0, count = 0;
    for (size_t j = 0; j < OUTS; j++) {
        pairs += split_channel(w + j * steps * STEP, steps, false, NULL, NULL);
        fours += split_channel(w + j * steps * STEP, steps, true, NULL, NULL);
    }
    memset(h, 0, sizeof *h);
    h->fours = fours * COST_PAIR + steps * OUTS * COST_FOUR < (pairs + steps * OUTS) * COST_PAIR;
    for (size_t j = 0; j < OUTS; j++) {
        size_t n = split_channel(w + j * steps * STEP, steps, h->fours, safe + j * STEP, records + count);
        h->records[j] = (uint32_t)n;
        count += n;
    }
    size_t used = sizeof *h + steps * OUTS * STEP + count * sizeof *records;
    return (used + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- Sums --------------------------------------------------------------------------------------------- */

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline __m256i four(const int8_t *w)
{
    int32_t bytes;
    memcpy(&bytes, w, sizeof bytes);
    return _mm256_set1_epi32(bytes);
}

typedef struct task {
    const uint8_t *x;
    const ptrdiff_t *offsets;
    size_t steps;
    const head *panel;
    const int32_t *init;
} task;

/* `vectors` and `fours` are constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile(const task *t, int vectors, bool fours, int32_t *c,
                                                       size_t c_stride)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const int8_t *w = (const int8_t *)(t->panel + 1);
    __m256i acc[OUTS][VECTORS];
    size_t s = 0;
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            acc[j][v] = _mm256_set1_epi32(t->init[j]);
    for (; fours && s + 2 <= t->steps; s += 2, w += 2 * OUTS * STEP) {
        const uint8_t *here = t->x + t->offsets[s], *next = t->x + t->offsets[s + 1];
        __m256i x[VECTORS], y[VECTORS];
        for (int v = 0; v < vectors; v++) {
            x[v] = load(here + 32 * v);
            y[v] = load(next + 32 * v);
        }
        for (int j = 0; j < OUTS; j++) {
            __m256i a = four(w + j * STEP), b = four(w + (OUTS + j) * STEP);
            for (int v = 0; v < vectors; v++) {
                __m256i sum = _mm256_add_epi16(_mm256_maddubs_epi16(x[v], a), _mm256_maddubs_epi16(y[v], b));
                acc[j][v] = _mm256_add_epi32(acc[j][v], _mm256_madd_epi16(sum, ones));
            }
        }
    }
    for (; s < t->steps; s++, w += OUTS * STEP)
        for (int j = 0; j < OUTS; j++)
            for (int v = 0; v < vectors; v++) {
                __m256i sum = _mm256_maddubs_epi16(load(t->x + t->offsets[s] + 32 * v), four(w + j * STEP));
                acc[j][v] = _mm256_add_epi32(acc[j][v], _mm256_madd_epi16(sum, ones));
            }
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            _mm256_storeu_si256((void *)(c + (size_t)j * c_stride + v * LANES), acc[j][v]);
}

static inline void add_rests(const task *t, int vectors, int32_t *c, size_t c_stride)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const record *r = (const record *)(const void *)((const int8_t *)(t->panel + 1) + t->steps * OUTS * STEP);
    for (int j = 0; j < OUTS; j++, c += c_stride) {
        const record *end = r + t->panel->records[j];
        if (r == end)
            continue;
        __m256i first = load(c), second = vectors > 1 ? load(c + LANES) : first;
        for (; r < end; r++) {
            const uint8_t *x = t->x + t->offsets[r->step];
            __m256i w = four(r->w);
            first = _mm256_add_epi32(first, _mm256_madd_epi16(_mm256_maddubs_epi16(load(x), w), ones));
            if (vectors > 1)
                second =
                    _mm256_add_epi32(second, _mm256_madd_epi16(_mm256_maddubs_epi16(load(x + 32), w), ones));
        }
        _mm256_storeu_si256((void *)c, first);
        if (vectors > 1)
            _mm256_storeu_si256((void *)(c + LANES), second);
    }
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    task t = {x, offsets, steps, panel, init};
    bool any = false;
    for (int j = 0; j < OUTS; j++)
        any = any || t.panel->records[j];
    for (size_t p = 0; p < n; p += PIXELS, t.x += PIXELS * STEP, c += PIXELS) {
        bool one = n - p <= LANES;
        if (one && t.panel->fours)
            tile(&t, 1, true, c, c_stride);
        else if (one)
            tile(&t, 1, false, c, c_stride);
        else if (t.panel->fours)
            tile(&t, 2, true, c, c_stride);
        else
            tile(&t, 2, false, c, c_stride);
        if (any && one)
            add_rests(&t, 1, c, c_stride);
        else if (any)
            add_rests(&t, 2, c, c_stride);
    }
}

/* ---- Pixels ------------------------------------------------------------------------------------------- */

static void interleave(const uint8_t *const planes[STEP], size_t n, uint8_t flip, uint8_t *out)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    const uint8_t *rest[STEP];
    size_t p = 0;
    for (; p + PIXELS <= n; p += PIXELS) {
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
    for (int e = 0; e < STEP; e++)
        rest[e] = planes[e] ? planes[e] + p : NULL;
    dq_qlanes_interleave_c(rest, n - p, flip, out + STEP * p);
}

const dq_qlanes dq_qlanes_avx2 = {
    .beats = &dq_qgemm_avx2, .interleave = interleave, .panel_size = panel_size, .pack = pack, .sums = sums};
