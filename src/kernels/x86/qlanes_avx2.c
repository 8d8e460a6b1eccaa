/* Two vectors of eight pixels by four output channels at a time, whose sums stay in registers.
 *
 * A pair of products of uint8 and int8 is summed in 16 bits where the weights of one sign come to 128 or less
 * in size: 255 * 128 < 2^15. So each weight is split into a safe part, whose pairs obey this, and a rest,
 * which is almost always zero. The pairs of two steps are summed in 16 bits, too, where they obey this
 * together: a panel's steps are matched so that nearly all find one that does. Rests stand behind the safe
 * parts as records: a step, and four more weights for it. */
#include "kernels/kernels.h"

#include "base/checked.h"

#include <immintrin.h>
#include <string.h>

enum { STEP = DQ_QLANES_STEP, OUTS = DQ_QLANES_OUTS, PIXELS = DQ_QLANES_PIXELS };
enum { ALIGN = 64, LANES = 8, VECTORS = 2, MOST = 128 };

/* Behind it the panel's steps, in the order of their safe parts, those, and records. */
typedef struct head {
    uint32_t matched; /* of the steps: one and the next are summed together */
    uint32_t records[OUTS];
    uint8_t unused[ALIGN - (OUTS + 1) * sizeof(uint32_t)];
} head;

typedef struct record {
    uint32_t step;
    int8_t w[STEP];
} record;

/* ---- Packing ------------------------------------------------------------------------------------------ */

static size_t panel_size(size_t steps)
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

/* Orders steps, and returns how many of them, from the first, are matched. */
static size_t match(const uint8_t *sizes, size_t steps, uint32_t *order)
{
    size_t first = 0, end = steps;
    for (size_t s = 0; s < steps; s++)
        order[s] = (uint32_t)s;
    while (first < end) {
        __m128i one = _mm_loadu_si128((const void *)(sizes + (size_t)order[first] * OUTS * STEP));
        size_t other = first + 1, at;
        while (other < end && !safe_together(one, sizes + (size_t)order[other] * OUTS * STEP))
            other++;
        bool found = other < end;
        at = found ? first + 1 : --end;
        uint32_t step = order[found ? other : first];
        order[found ? other : first] = order[at];
        order[at] = step;
        first += found ? 2 : 0;
    }
    return first;
}

static size_t pack(const int8_t *w, size_t steps, void *panel)
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

/* `vectors` is constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile(const task *t, int vectors, int32_t *c,
                                                       size_t c_stride)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const uint32_t *order = (const uint32_t *)(t->panel + 1), *end = order + t->steps;
    const int8_t *w = (const int8_t *)end;
    __m256i acc[OUTS][VECTORS];
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            acc[j][v] = _mm256_set1_epi32(t->init[j]);
    for (size_t pairs = t->panel->matched / 2; pairs; pairs--, order += 2, w += 2 * OUTS * STEP) {
        const uint8_t *here = t->x + t->offsets[order[0]], *next = t->x + t->offsets[order[1]];
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
    for (; order < end; order++, w += OUTS * STEP)
        for (int j = 0; j < OUTS; j++)
            for (int v = 0; v < vectors; v++) {
                __m256i sum =
                    _mm256_maddubs_epi16(load(t->x + t->offsets[*order] + 32 * v), four(w + j * STEP));
                acc[j][v] = _mm256_add_epi32(acc[j][v], _mm256_madd_epi16(sum, ones));
            }
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            _mm256_storeu_si256((void *)(c + (size_t)j * c_stride + v * LANES), acc[j][v]);
}

static inline void add_rests(const task *t, int vectors, int32_t *c, size_t c_stride)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const record *r =
        (const record *)((const uint32_t *)(t->panel + 1) + t->steps * (1 + OUTS * STEP / sizeof(uint32_t)));
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
        if (one)
            tile(&t, 1, c, c_stride);
        else
            tile(&t, 2, c, c_stride);
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

const dq_qlanes dq_qlanes_avx2 = {.beats = &dq_qgemm_avx2,
                                  .interleave = interleave,
                                  .panel_size = panel_size,
                                  .pack = pack,
                                  .sums = sums,
                                  .store = dq_qlanes_store_avx2};
