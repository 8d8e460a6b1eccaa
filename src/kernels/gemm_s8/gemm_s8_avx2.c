/* SPDX-License-Identifier: Apache-2.0 */
/* Exact 8-bit GEMM of uint8 and int8 without a dot-product instruction; gemm_s8_avx2.h describes how weights
 * are split. The register tile of safe parts is 3 rows by 16 columns for whole batches, up to 4 by 16
 * otherwise; that of words is 4 by 16.
 *
 * The rest of the weights is added for up to 64 rows at once. An entry of a column multiplies the same
 * position of all rows. Therefore the rows are transposed for this part, to 64 bytes per position (32 for up
 * to 32 rows). A record of four entries is a step: the bytes are interleaved to four of each row, and
 * multiplied as the safe parts are. */
#include "kernels/gemm_s8/gemm_s8_avx2.h"
#include "kernels/gemm_s8/gemm_s8_avx2_sums.h"

#include "base/checked.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"
#include "kernels/kernels.h"

enum { MR = 64, NR = DQ_AVX2_NR, VECTORS = NR / LANES, GROUP = DQ_AVX2_GROUP };
enum { HEIGHT = 4, DEEP_HEIGHT = 3 /* rows of a register tile */ };
enum { HALF = 32, FEW = 16 /* rows of a tile */, TRANSPOSE = 16 /* positions transposed at a time */ };
enum { LINE = 64 /* bytes of a cache line */ };

/* ---- Safe parts --------------------------------------------------------------------------------------- */

/* The safe parts of a panel, or some of their groups. */
typedef struct part {
    const int8_t *weights;
    const ptrdiff_t *at; /* offset in a row of each group of weights */
    size_t groups, depth;
} part;

/* Rows of sums before a pass over a part, and after it. */
typedef struct pass {
    const int32_t *from;
    int32_t *to;
    size_t from_stride, to_stride; /* from_stride 0: all rows begin with the same values */
} pass;

static inline pass rows_after(const pass *s, size_t rows)
{
    return (pass){s->from + rows * s->from_stride, s->to + rows * s->to_stride, s->from_stride, s->to_stride};
}

static inline __attribute__((always_inline)) void widen(const row16 *r, row32 *sums)
{
    const __m256i ones = _mm256_set1_epi16(1);
    sums->low = _mm256_add_epi32(sums->low, _mm256_madd_epi16(r->low, ones));
    sums->high = _mm256_add_epi32(sums->high, _mm256_madd_epi16(r->high, ones));
}

/* Adds whole batches for three rows: the most rows whose sums all stay in registers. Returns the number of
 * groups left. `depth` is constant in each call, so that the inner loop, and only that one, is unrolled. */
static inline __attribute__((always_inline)) size_t sum_batches(const uint8_t *const *rows,
                                                                const ptrdiff_t *at, const int8_t *w,
                                                                size_t groups, size_t depth,
                                                                row32 sums[DEEP_HEIGHT])
{
    const uint8_t *x = rows[0], *y = rows[1], *z = rows[2];
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 1
#endif
    for (; groups >= depth; groups -= depth, at += depth, w += depth * DQ_AVX2_GROUP_BYTES) {
        row16 r0, r1, r2;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
        for (size_t g = 0; g < depth; g++) {
            __m256i low, high;
            load_columns(w + g * DQ_AVX2_GROUP_BYTES, &low, &high);
            add(&r0, x + at[g], low, high, g == 0);
            add(&r1, y + at[g], low, high, g == 0);
            add(&r2, z + at[g], low, high, g == 0);
        }
        widen(&r0, &sums[0]);
        widen(&r1, &sums[1]);
        widen(&r2, &sums[2]);
    }
    return groups;
}

/* Adds one group for up to four rows. */
static inline __attribute__((always_inline)) void sum_one(const uint8_t *const *rows, ptrdiff_t at,
                                                          const int8_t *w, int height, row32 *sums)
{
    __m256i low, high;
    load_columns(w, &low, &high);
    for (int i = 0; i < height; i++) {
        row16 r;
        add(&r, rows[i] + at, low, high, true);
        widen(&r, &sums[i]);
    }
}

/* Adds two groups for up to four rows. The weights of both stay in registers as far as these suffice. */
static inline __attribute__((always_inline)) void sum_two(const uint8_t *const *rows, const ptrdiff_t *at,
                                                          const int8_t *w, int height, row32 sums[HEIGHT])
{
    __m256i low, high, low1 = load(w + DQ_AVX2_GROUP_BYTES), high1 = load(w + DQ_AVX2_GROUP_BYTES + 32);
    load_columns(w, &low, &high);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 4
#endif
    for (int i = 0; i < height; i++) {
        row16 r;
        add(&r, rows[i] + at[0], low, high, true);
        add(&r, rows[i] + at[1], low1, high1, false);
        widen(&r, &sums[i]);
    }
}

/* Adds the products of `height` rows, which is constant in each call, two groups at a time. Any part of a
 * safe batch is safe. If the depth is odd, the last group of a batch is added by itself. */
static inline __attribute__((always_inline)) void sum_twos(const part *p, const uint8_t *const *rows,
                                                           int height, const pass *s)
{
    const ptrdiff_t *at = p->at;
    const int8_t *w = p->weights;
    row32 sums[HEIGHT];
    for (int i = 0; i < height; i++)
        sums[i] = read_row(s->from + (size_t)i * s->from_stride);
    for (size_t left = p->groups, some; left; left -= some) {
        some = p->depth % 2 && p->depth < left ? p->depth : left;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 1
#endif
        for (size_t twos = some / 2; twos; twos--, at += 2, w += 2 * DQ_AVX2_GROUP_BYTES)
            sum_two(rows, at, w, height, sums);
        if (some % 2)
            sum_one(rows, *at++, w, height, sums);
        w += some % 2 * DQ_AVX2_GROUP_BYTES;
    }
    for (int i = 0; i < height; i++)
        write_row(&sums[i], s->to + (size_t)i * s->to_stride);
}

static void sum_rows(const part *p, const uint8_t *const *rows, size_t count, pass s)
{
    for (; count >= HEIGHT; count -= HEIGHT, rows += HEIGHT, s = rows_after(&s, HEIGHT))
        sum_twos(p, rows, HEIGHT, &s);
    if (count >= 2) {
        sum_twos(p, rows, 2, &s);
        count -= 2;
        rows += 2;
        s = rows_after(&s, 2);
    }
    if (count)
        sum_twos(p, rows, 1, &s);
}

/* Adds all products of most rows, and returns the number of these rows. */
static inline __attribute__((always_inline)) size_t sum_deep(const part *p, const uint8_t *const *rows,
                                                             size_t count, pass s, size_t depth)
{
    size_t i = 0;
    for (; count - i >= DEEP_HEIGHT && count - i != HEIGHT;
         i += DEEP_HEIGHT, s = rows_after(&s, DEEP_HEIGHT)) {
        row32 sums[DEEP_HEIGHT];
        for (size_t j = 0; j < DEEP_HEIGHT; j++)
            sums[j] = read_row(s.from + j * s.from_stride);
        size_t g = p->groups - sum_batches(rows + i, p->at, p->weights, p->groups, depth, sums);
        for (; g < p->groups; g++)
            sum_one(rows + i, p->at[g], p->weights + g * DQ_AVX2_GROUP_BYTES, DEEP_HEIGHT, sums);
        for (size_t j = 0; j < DEEP_HEIGHT; j++)
            write_row(&sums[j], s.to + j * s.to_stride);
    }
    return i;
}

static void sum_all(const part *p, const uint8_t *const *rows, size_t count, const pass *s)
{
    size_t done = p->depth == 8   ? sum_deep(p, rows, count, *s, 8)
                  : p->depth == 6 ? sum_deep(p, rows, count, *s, 6)
                  : p->depth == 4 ? sum_deep(p, rows, count, *s, 4)
                  : p->depth == 3 ? sum_deep(p, rows, count, *s, 3)
                                  : 0;
    sum_rows(p, rows + done, count - done, rows_after(s, done));
}

/* ---- Rows kept for all panels ------------------------------------------------------------------------- */

/* dq_gemm_s8_a.packed holds, in this order: this head; the rows as 16-bit words; the transposed rows; the
 * offset in a row of each group of positions; the same offsets in the order of a panel. */
enum { KEPT_WORDS = 1, KEPT_PACKED = 2, KEPT_GROUPS = 4, KEPT_SUMS = 8 };
typedef struct kept_head {
    uint8_t kept; /* the contract's first byte: KEPT_… flags of the parts that are filled in */
    uint8_t padding[63];
    int32_t terms[MR]; /* for each row the sum of x0 x2 + x1 x3 */
    int32_t sums[MR];  /* for each row the sum of its bytes */
} kept_head;

/* Computes the positions of a row, including one vector that may be written past its end. */
static bool row_size(size_t runs, size_t run, size_t *positions)
{
    enum { VECTOR = 32 };
    return dq_align_size(run, GROUP, positions) && dq_mul_size(*positions, runs, positions) &&
           dq_align_size(*positions, VECTOR, positions) && dq_add_size(*positions, VECTOR, positions);
}

static size_t packed_a_size(const dq_gemm_s8_b *b, size_t rows)
{
    size_t positions, all;
    (void)rows;
    if (!row_size(b->runs, b->run, &positions) ||
        !dq_mul_size(positions, 3 * MR + 2 * sizeof(ptrdiff_t) / GROUP, &all) ||
        !dq_add_size(all, sizeof(kept_head), &all))
        return 0;
    return all;
}

/* Widens the bytes of a segment to 16-bit words, with zeros past its end. Returns the sum of x0 x2 + x1 x3
 * over its groups as partial sums in the lanes. */
static __m256i widen_run(const uint8_t *x, size_t run, uint16_t *to)
{
    enum { STEP = 16 };
    const __m128i count = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m256i terms = _mm256_setzero_si256();
    for (size_t k = 0; k < run; k += STEP) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(x + k));
        if (run - k < STEP)
            bytes = _mm_and_si128(bytes, _mm_cmpgt_epi8(_mm_set1_epi8((char)(run - k)), count));
        __m256i words = _mm256_cvtepu8_epi16(bytes);
        _mm256_storeu_si256((__m256i *)(void *)(to + k), words);
        terms = _mm256_add_epi32(terms, _mm256_madd_epi16(words, _mm256_srli_epi64(words, 32)));
    }
    return terms;
}

/* Returns the rows as 16-bit words, `positions` per row. The first call creates them. */
static const uint16_t *row_words(const dq_gemm_s8_a *a, size_t rows, size_t positions)
{
    kept_head *head = a->packed;
    uint16_t *words = (uint16_t *)(void *)(head + 1);
    if (head->kept & KEPT_WORDS)
        return words;
    head->kept |= KEPT_WORDS;
    for (size_t i = 0; i < rows; i++) {
        __m256i terms = _mm256_setzero_si256();
        uint16_t *to = words + i * positions;
        for (size_t t = 0; t < a->runs; t++, to += dq_avx2_groups(a->run) * GROUP)
            terms = _mm256_add_epi32(terms, widen_run(a->rows[i] + a->offsets[t], a->run, to));
        uint32_t lanes[LANES], sum = 0;
        _mm256_storeu_si256((__m256i *)(void *)lanes, terms);
        for (int l = 0; l < LANES; l++)
            sum += lanes[l];
        head->terms[i] = (int32_t)sum;
    }
    return words;
}

/* ---- Words -------------------------------------------------------------------------------------------- */

enum { WORDS_HEIGHT = 4, WORDS_GROUP = NR * GROUP /* 16-bit words of a group */ };

/* `height` is constant in each call. */
static inline __attribute__((always_inline)) void sum_words(const uint16_t *x, size_t positions, int height,
                                                            const int16_t *w, size_t groups,
                                                            __m256i acc[WORDS_HEIGHT][VECTORS])
{
#pragma GCC unroll 2
    for (; groups; groups--, x += GROUP, w += WORDS_GROUP) {
        __m256i low[VECTORS], high[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            high[v] = load(w + v * 32);
            low[v] = load(w + v * 32 + 16);
        }
        for (int i = 0; i < height; i++) {
            const uint16_t *from = x + (size_t)i * positions;
            __m256i first = _mm256_set1_epi32(four(from)), second = _mm256_set1_epi32(four(from + 2));
            for (int v = 0; v < VECTORS; v++) {
                __m256i a = _mm256_add_epi16(first, high[v]), b = _mm256_add_epi16(second, low[v]);
                acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(a, b));
            }
        }
    }
}

/* Computes up to four rows by 16 columns. `terms` holds the sum of x0 x2 + x1 x3 of each row. */
static inline __attribute__((always_inline)) void words_rows(const uint16_t *x, size_t positions, int height,
                                                             const int32_t *terms, const void *panel,
                                                             size_t groups, const int32_t *init, int32_t *c,
                                                             size_t c_stride)
{
    const int32_t *columns = panel;
    __m256i acc[WORDS_HEIGHT][VECTORS];
    for (int i = 0; i < height; i++)
        for (int v = 0; v < VECTORS; v++) {
            __m256i both = _mm256_add_epi32(load(columns + v * LANES), _mm256_set1_epi32(terms[i]));
            acc[i][v] = _mm256_sub_epi32(load(init + v * LANES), both);
        }
    sum_words(x, positions, height, (const int16_t *)(const void *)(columns + NR), groups, acc);
    for (int i = 0; i < height; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_si256((__m256i *)(void *)(c + (size_t)i * c_stride + v * LANES), acc[i][v]);
}

static void multiply_words(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init,
                           int32_t *c, size_t c_stride)
{
    size_t positions = 0, groups = a->runs * dq_avx2_groups(a->run);
    row_size(a->runs, a->run, &positions);
    const uint16_t *x = row_words(a, rows, positions);
    const int32_t *terms = ((const kept_head *)a->packed)->terms;
    for (; rows >= WORDS_HEIGHT; rows -= WORDS_HEIGHT) {
        words_rows(x, positions, WORDS_HEIGHT, terms, panel, groups, init, c, c_stride);
        x += WORDS_HEIGHT * positions;
        terms += WORDS_HEIGHT;
        c += WORDS_HEIGHT * c_stride;
    }
    if (rows == 3)
        words_rows(x, positions, 3, terms, panel, groups, init, c, c_stride);
    else if (rows == 2)
        words_rows(x, positions, 2, terms, panel, groups, init, c, c_stride);
    else if (rows == 1)
        words_rows(x, positions, 1, terms, panel, groups, init, c, c_stride);
}

/* ---- Transposed rows ---------------------------------------------------------------------------------- */

/* One step of a transpose of 16 by 16 bytes in each 128-bit half: interleaves rows i and i + 8. */
static inline __attribute__((always_inline)) void interleave(const __m256i in[TRANSPOSE],
                                                             __m256i out[TRANSPOSE])
{
    for (int i = 0; i < TRANSPOSE / 2; i++) {
        out[2 * i] = _mm256_unpacklo_epi8(in[i], in[i + TRANSPOSE / 2]);
        out[2 * i + 1] = _mm256_unpackhi_epi8(in[i], in[i + TRANSPOSE / 2]);
    }
}

/* Transposes 16 positions of 32 rows. */
static void transpose_square(const uint8_t *const x[HALF], ptrdiff_t from, uint8_t *to, size_t step)
{
    __m256i a[TRANSPOSE], b[TRANSPOSE];
    for (int i = 0; i < TRANSPOSE; i++) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(x[i] + from));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(x[i + TRANSPOSE] + from));
        a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    interleave(a, b);
    interleave(b, a);
    interleave(a, b);
    interleave(b, a);
    for (int i = 0; i < TRANSPOSE; i++)
        _mm256_storeu_si256((__m256i *)(void *)(to + (size_t)i * step), a[i]);
}

/* Whether more than FEW rows evict each other from the first-level cache: at such distances they share two of
 * its sets. */
static bool share_sets(const uint8_t *const x[HALF])
{
    enum { DISTANCE = 2048 };
    return ((uintptr_t)x[1] - (uintptr_t)x[0]) % DISTANCE == 0;
}

/* Transposes 64 positions of 32 rows, and reads each row once. */
static void transpose_lines(const uint8_t *const x[HALF], ptrdiff_t from, uint8_t *to, size_t step)
{
    uint8_t lines[HALF * LINE];
    const uint8_t *at[HALF];
    for (size_t i = 0; i < HALF; i++) {
        at[i] = memcpy(lines + i * LINE, x[i] + from, LINE);
    }
    for (size_t k = 0; k < LINE; k += TRANSPOSE)
        transpose_square(at, (ptrdiff_t)k, to + k * step, step);
}

/* Whether at most 16 rows are transposed, eight into each 128-bit half. */
static bool are_few(size_t rows)
{
    return rows <= FEW;
}

/* Transposes rows to `step` bytes per position. Bytes transposed past a segment's end are overwritten by the
 * next segment, or not used. */
static void pack(const dq_gemm_s8_a *a, size_t rows, size_t step, uint8_t *out)
{
    const bool few = are_few(rows);
    for (size_t half = 0; half < step; half += HALF) {
        const uint8_t *x[HALF];
        uint8_t *to = out + half;
        for (size_t i = 0; i < HALF; i++) {
            size_t row = few ? i / FEW * (FEW / 2) + i % (FEW / 2) : half + i;
            x[i] = a->rows[row < rows ? row : rows - 1];
        }
        const size_t lines = !few && share_sets(x) ? a->run / LINE * LINE : 0;
        for (size_t t = 0; t < a->runs; t++) {
            size_t k = 0;
            for (; k < lines; k += LINE)
                transpose_lines(x, a->offsets[t] + (ptrdiff_t)k, to + k * step, step);
            for (; k < a->run; k += TRANSPOSE)
                transpose_square(x, a->offsets[t] + (ptrdiff_t)k, to + k * step, step);
            to += dq_avx2_groups(a->run) * GROUP * step;
        }
    }
}

/* ---- The rest ----------------------------------------------------------------------------------------- */

/* Adds one record of a column for 32 rows: out[v] has rows 4v … 4v + 3 and 16 + 4v … 16 + 4v + 3. */
static inline __attribute__((always_inline)) void rest_step(const uint8_t *packed, const dq_avx2_record *r,
                                                            size_t step, __m256i out[4])
{
    const __m256i ones = _mm256_set1_epi16(1), w = _mm256_set1_epi32(four(r->rest));
    __m256i x0 = load(packed + r->position[0] * step), x1 = load(packed + r->position[1] * step);
    __m256i x2 = load(packed + r->position[2] * step), x3 = load(packed + r->position[3] * step);
    __m256i low0 = _mm256_unpacklo_epi8(x0, x1), low2 = _mm256_unpacklo_epi8(x2, x3);
    __m256i high0 = _mm256_unpackhi_epi8(x0, x1), high2 = _mm256_unpackhi_epi8(x2, x3);
    __m256i bytes[4] = {_mm256_unpacklo_epi16(low0, low2), _mm256_unpackhi_epi16(low0, low2),
                        _mm256_unpacklo_epi16(high0, high2), _mm256_unpackhi_epi16(high0, high2)};
    for (int v = 0; v < 4; v++) {
        __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes[v], w), ones);
        out[v] = _mm256_add_epi32(out[v], sum);
    }
}

/* Sums all records of a column for `halves` times 32 rows, in rest_step()'s order of rows. */
static inline __attribute__((always_inline)) void rest_column(const uint8_t *packed, const dq_avx2_record *r,
                                                              size_t records, int halves, int32_t *sums)
{
    __m256i acc[2][4];
    for (int v = 0; v < 4; v++)
        acc[0][v] = acc[1][v] = _mm256_setzero_si256();
    for (const dq_avx2_record *end = r + records; r < end; r++)
        for (int h = 0; h < halves; h++)
            rest_step(packed + h * HALF, r, (size_t)halves * HALF, acc[h]);
    for (int h = 0; h < halves; h++)
        for (int v = 0; v < 4; v++)
            _mm256_storeu_si256((__m256i *)(void *)(sums + (h * 4 + v) * LANES), acc[h][v]);
}

/* The same for at most 16 rows: two vectors. */
static inline void rest_column_few(const uint8_t *packed, const dq_avx2_record *r, size_t records,
                                   int32_t *sums)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (const dq_avx2_record *end = r + records; r < end; r++) {
        __m256i x[4], w = _mm256_set1_epi32(four(r->rest));
        for (int e = 0; e < 4; e++)
            x[e] = load(packed + r->position[e] * (size_t)HALF);
        __m256i first = _mm256_unpacklo_epi8(x[0], x[1]), second = _mm256_unpacklo_epi8(x[2], x[3]);
        __m256i bytes[2] = {_mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second)};
        for (int v = 0; v < 2; v++) {
            __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes[v], w), ones);
            acc[v] = _mm256_add_epi32(acc[v], sum);
        }
    }
    for (int v = 0; v < 2; v++)
        _mm256_storeu_si256((__m256i *)(void *)(sums + v * LANES), acc[v]);
}

/* Transposes eight columns of one vector of eight rows and adds them to c. The vector's last four rows are
 * `row_stride` rows after its first four. Column j is at sums + j * MR. */
static void add_square(const int32_t *sums, size_t row, size_t row_stride, size_t rows, int32_t *c)
{
    __m256i x[LANES], y[LANES];
    for (int j = 0; j < LANES; j++)
        x[j] = load(sums + j * MR);
    for (int j = 0; j < LANES; j += 4) {
        __m256i a = _mm256_unpacklo_epi32(x[j], x[j + 1]), b = _mm256_unpackhi_epi32(x[j], x[j + 1]);
        __m256i d = _mm256_unpacklo_epi32(x[j + 2], x[j + 3]), e = _mm256_unpackhi_epi32(x[j + 2], x[j + 3]);
        y[j] = _mm256_unpacklo_epi64(a, d);
        y[j + 1] = _mm256_unpackhi_epi64(a, d);
        y[j + 2] = _mm256_unpacklo_epi64(b, e);
        y[j + 3] = _mm256_unpackhi_epi64(b, e);
    }
    for (size_t i = 0; i < LANES; i++) {
        size_t at = row + i % 4 + i / 4 * row_stride;
        __m256i sum = i < 4 ? _mm256_permute2x128_si256(y[i], y[i + 4], 0x20)
                            : _mm256_permute2x128_si256(y[i - 4], y[i], 0x31);
        if (at < rows)
            _mm256_storeu_si256((__m256i *)(void *)(c + at * NR), _mm256_add_epi32(load(c + at * NR), sum));
    }
}

static void add_rest(const dq_gemm_s8_a *a, size_t rows, const dq_avx2_head *head, const dq_avx2_record *r,
                     int32_t *c)
{
    int32_t sums[NR * MR];
    size_t halves = rows > HALF ? 2 : 1, positions = 0;
    bool few = are_few(rows);
    kept_head *kept = a->packed;
    row_size(a->runs, a->run, &positions);
    uint8_t *packed = (uint8_t *)(kept + 1) + 2 * MR * positions;
    if (!(kept->kept & KEPT_PACKED))
        pack(a, rows, halves * HALF, packed);
    kept->kept |= KEPT_PACKED;
    for (size_t j = 0; j < NR; r += head->records[j], j++) {
        if (few)
            rest_column_few(packed, r, head->records[j], sums + j * MR);
        else if (halves == 2)
            rest_column(packed, r, head->records[j], 2, sums + j * MR);
        else
            rest_column(packed, r, head->records[j], 1, sums + j * MR);
    }
    for (size_t j = 0; j < NR; j += LANES)
        for (size_t v = 0; v < (few ? 2 : halves * 4); v++)
            add_square(sums + j * MR + v * LANES, v / 4 * HALF + v % 4 * 4, few ? FEW / 2 : 16, rows, c + j);
}

/* Computes the offsets of `groups` groups in a row of one segment; writes whole vectors. */
static void offsets_in_run(const uint16_t *order, size_t groups, ptrdiff_t offset, ptrdiff_t *to)
{
    enum { PLACES = 4, LOG_GROUP = 2 };
    for (size_t i = 0; i < groups; i += PLACES) {
        __m256i some = _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(order + i)));
        some = _mm256_add_epi64(_mm256_slli_epi64(some, LOG_GROUP), _mm256_set1_epi64x(offset));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), some);
    }
}

/* Returns the offset in a row of each group of the panel. */
static const ptrdiff_t *group_offsets(const dq_gemm_s8_a *a, const uint16_t *order)
{
    kept_head *kept = a->packed;
    size_t positions = 0, groups = dq_avx2_groups(a->run), all = a->runs * groups;
    row_size(a->runs, a->run, &positions);
    ptrdiff_t *offsets = (ptrdiff_t *)(void *)((char *)(kept + 1) + 3 * MR * positions),
              *ordered = offsets + all;
    if (a->runs == 1) {
        offsets_in_run(order, groups, a->offsets[0], ordered);
        return ordered;
    }
    for (size_t t = 0; t < a->runs && !(kept->kept & KEPT_GROUPS); t++)
        for (size_t g = 0; g < groups; g++)
            offsets[t * groups + g] = a->offsets[t] + (ptrdiff_t)(g * GROUP);
    kept->kept |= KEPT_GROUPS;
    for (size_t i = 0; i < all; i++)
        ordered[i] = offsets[order[i]];
    return ordered;
}

/* Sets the sums to the initial values plus, in shifted columns, shift * (sum of the row). */
static void begin_sums(const dq_gemm_s8_a *a, size_t rows, const dq_avx2_head *head, const int32_t *init,
                       int32_t *c)
{
    kept_head *kept = a->packed;
    const int32_t *sums = a->sums ? a->sums : kept->sums;
    if (head->shifted && !a->sums && !(kept->kept & KEPT_SUMS)) {
        dq_gemm_s8_sums_u8_avx2(a, rows, kept->sums);
        kept->kept |= KEPT_SUMS;
    }
    for (size_t v = 0; v < NR; v += LANES) {
        __m256i from = load(init + v);
        __m256i shift =
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(head->shift + v)));
        for (size_t i = 0; i < rows; i++) {
            __m256i sum = from;
            if (head->shifted)
                sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(shift, _mm256_set1_epi32(sums[i])));
            _mm256_storeu_si256((__m256i *)(void *)(c + i * NR + v), sum);
        }
    }
}

/* Shifts and the rest are added to sums of the tile's own, because more than one pass over C is slow: rows
 * whose stride is a multiple of 1 KiB share few sets of the first-level cache. */
static void multiply_safe(const dq_gemm_s8_a *a, size_t rows, const dq_avx2_head *head, const int32_t *init,
                          int32_t *c, size_t c_stride)
{
    const uint16_t *order = (const uint16_t *)(const void *)(head + 1);
    size_t groups = a->runs * dq_avx2_groups(a->run);
    const int8_t *weights = (const int8_t *)(head + 1) + dq_avx2_order_bytes(groups);
    const part p = {weights, group_offsets(a, order), groups, head->depth};
    pass s = {init, c, 0, c_stride};
    int32_t sums[MR * NR];
    if (head->shifted || head->any) {
        begin_sums(a, rows, head, init, sums);
        s.from = sums;
        s.from_stride = NR;
    }
    if (head->any)
        add_rest(a, rows, head,
                 (const dq_avx2_record *)(const void *)(weights + groups * DQ_AVX2_GROUP_BYTES), sums);
    sum_all(&p, a->rows, rows, &s);
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    const dq_avx2_head *head = panel;
    if (head->mode == DQ_AVX2_WORDS)
        multiply_words(a, rows, head + 1, init, c, c_stride);
    else
        multiply_safe(a, rows, head, init, c, c_stride);
}

/* ---- Sums of rows ------------------------------------------------------------------------------------- */

/* vpsadbw against zero adds eight bytes to a 64-bit lane. The remainder of a segment is added byte by byte.
 */
void dq_gemm_s8_sums_u8_avx2(const dq_gemm_s8_a *a, size_t rows, int32_t *out)
{
    for (size_t i = 0; i < rows; i++) {
        __m256i sums = _mm256_setzero_si256();
        __m128i few = _mm_setzero_si128();
        uint32_t rest = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *x = a->rows[i] + a->offsets[t];
            size_t p = 0;
            for (; p + 32 <= a->run; p += 32) {
                __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(x + p));
                sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
            }
            for (; p + 8 <= a->run; p += 8) {
                __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(x + p));
                few = _mm_add_epi64(few, _mm_sad_epu8(bytes, _mm_setzero_si128()));
            }
            for (; p < a->run; p++)
                rest += x[p];
        }
        sums = _mm256_add_epi64(sums, _mm256_zextsi128_si256(few));
        uint64_t lanes[4];
        _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
        out[i] = (int32_t)(rest + (uint32_t)(lanes[0] + lanes[1] + lanes[2] + lanes[3]));
    }
}

const dq_gemm_s8 dq_gemm_s8_avx2 = {.mr = MR,
                                    .nr = NR,
                                    .a_signed = false,
                                    .panel_size = dq_gemm_s8_avx2_panel_size,
                                    .packed_a_size = packed_a_size,
                                    .pack = dq_gemm_s8_avx2_pack,
                                    .used = dq_gemm_s8_avx2_used,
                                    .tile = tile,
                                    .sums = dq_gemm_s8_sums_u8_avx2,
                                    .few = &dq_gemm_s8_few_avx2};
