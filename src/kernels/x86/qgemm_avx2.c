/* Exact products of uint8 and int8 without a dot instruction: see qgemm_avx2.h for how weights are split. The
 * safe parts are multiplied 6 rows by 16 columns at a time, which fills the sixteen registers; words 4 rows
 * by 16 columns.
 *
 * The rest is added for up to 64 rows at once: an entry of a column concerns the same position of all rows,
 * so for this part the rows are turned, 64 (or, of few rows, 32) bytes to a position. Four entries make a
 * step: their bytes are interleaved to four of each row, and multiplied as the safe parts are. */
#include "kernels/x86/qgemm_avx2.h"

#include "base/checked.h"
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"

#include <immintrin.h>
#include <string.h>

enum { MR = 64, NR = DQ_AVX2_NR, LANES = 8, VECTORS = NR / LANES, GROUP = DQ_AVX2_GROUP, HEIGHT = 6 };
enum { HALF = 32, TURN = 16 /* positions turned at once */ };

static inline int32_t four(const void *x)
{
    int32_t bytes;
    memcpy(&bytes, x, sizeof bytes);
    return bytes;
}

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* ---- Safe parts --------------------------------------------------------------------------------------- */

typedef struct part {
    const uint8_t *const *rows;
    const dq_qgemm_a *a;
    const int8_t *weights;
    const int32_t *init;
    int32_t *c;
    size_t c_stride;
} part;

/* `height` and `quads` are constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void sum_rows(const part *p, int height, bool quads)
{
    const __m256i ones = _mm256_set1_epi16(1);
    size_t groups = dq_avx2_groups(p->a->run);
    const int8_t *w = p->weights;
    __m256i acc[HEIGHT][VECTORS];
    for (int i = 0; i < height; i++)
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] = load(p->init + v * LANES);
    for (size_t t = 0; t < p->a->runs; t++) {
        const uint8_t *x[HEIGHT];
        size_t g = 0;
        for (int i = 0; i < height; i++)
            x[i] = p->rows[i] + p->a->offsets[t];
        for (; quads && g + 2 <= groups; g += 2, w += 2 * DQ_AVX2_GROUP_BYTES)
            for (int i = 0; i < height; i++) {
                __m256i here = _mm256_set1_epi32(four(x[i] + GROUP * g));
                __m256i next = _mm256_set1_epi32(four(x[i] + GROUP * (g + 1)));
                for (int v = 0; v < VECTORS; v++) {
                    __m256i sum = _mm256_maddubs_epi16(here, load(w + 32 * v));
                    sum = _mm256_add_epi16(
                        sum, _mm256_maddubs_epi16(next, load(w + DQ_AVX2_GROUP_BYTES + 32 * v)));
                    acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(sum, ones));
                }
            }
        for (; g < groups; g++, w += DQ_AVX2_GROUP_BYTES)
            for (int i = 0; i < height; i++) {
                __m256i value = _mm256_set1_epi32(four(x[i] + GROUP * g));
                for (int v = 0; v < VECTORS; v++) {
                    __m256i sum = _mm256_maddubs_epi16(value, load(w + 32 * v));
                    acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(sum, ones));
                }
            }
    }
    for (int i = 0; i < height; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_si256((__m256i *)(void *)(p->c + (size_t)i * p->c_stride + v * LANES), acc[i][v]);
}

#define HEIGHTS(name, quads)                                                                                 \
    static void name(const part *p, size_t height)                                                           \
    {                                                                                                        \
        switch (height) {                                                                                    \
        case 1:                                                                                              \
            sum_rows(p, 1, quads);                                                                           \
            break;                                                                                           \
        case 2:                                                                                              \
            sum_rows(p, 2, quads);                                                                           \
            break;                                                                                           \
        case 3:                                                                                              \
            sum_rows(p, 3, quads);                                                                           \
            break;                                                                                           \
        case 4:                                                                                              \
            sum_rows(p, 4, quads);                                                                           \
            break;                                                                                           \
        case 5:                                                                                              \
            sum_rows(p, 5, quads);                                                                           \
            break;                                                                                           \
        default:                                                                                             \
            sum_rows(p, HEIGHT, quads);                                                                      \
        }                                                                                                    \
    }
HEIGHTS(sum_pairs, false)
HEIGHTS(sum_quads, true)
#undef HEIGHTS

/* ---- Rows kept for all panels ------------------------------------------------------------------------- */

/* dq_qgemm_a.turned: this, rows as words, turned rows. */
enum { KEPT_WORDS = 1, KEPT_TURNED = 2 };
typedef struct kept_head {
    uint8_t kept; /* the contract's first byte: what is there */
    uint8_t padding[63];
    int32_t terms[MR]; /* of each row: the sum of x0 x2 + x1 x3 */
} kept_head;

/* Positions of a row, with room for what is written past its end. */
static bool row_size(size_t runs, size_t run, size_t *positions)
{
    enum { VECTOR = 32 };
    return dq_align_size(run, GROUP, positions) && dq_mul_size(*positions, runs, positions) &&
           dq_align_size(*positions, VECTOR, positions) && dq_add_size(*positions, VECTOR, positions);
}

static size_t turned_size(const dq_qgemm_b *b, size_t rows)
{
    size_t positions, words, turned, all;
    rows = b->use == DQ_QGEMM_FEW ? rows : MR;
    if (!row_size(b->runs, b->run, &positions) || !dq_mul_size(positions, 2 * rows, &words) ||
        !dq_mul_size(positions, b->use == DQ_QGEMM_FEW ? 0 : MR, &turned) ||
        !dq_add_size(words, turned, &all) || !dq_add_size(all, sizeof(kept_head), &all))
        return 0;
    return all;
}

/* Bytes of a run as words; returns the sum of x0 x2 + x1 x3 over its groups in lanes. What is past its end is
 * zero. */
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

/* The rows as words, `positions` of each, made when they are first asked for. */
static const uint16_t *row_words(const dq_qgemm_a *a, size_t rows, size_t positions)
{
    kept_head *head = a->turned;
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

enum { WORDS_HEIGHT = 4, WORDS_GROUP = NR * GROUP /* words of a group */ };

/* `height` is constant in each call. */
static inline __attribute__((always_inline)) void sum_words(const uint16_t *x, size_t positions, int height,
                                                            const int16_t *w, size_t groups,
                                                            __m256i acc[WORDS_HEIGHT][VECTORS])
{
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

/* `terms`: of the rows. */
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

static void multiply_words(const dq_qgemm_a *a, size_t rows, const void *panel, const int32_t *init,
                           int32_t *c, size_t c_stride)
{
    size_t positions = 0, groups = a->runs * dq_avx2_groups(a->run);
    row_size(a->runs, a->run, &positions);
    const uint16_t *x = row_words(a, rows, positions);
    const int32_t *terms = ((const kept_head *)a->turned)->terms;
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

/* ---- Bytes as they are -------------------------------------------------------------------------------- */

enum { BYTES_HEIGHT = 2, QUARTERS = NR / 4 /* vectors of four columns with two sums each */ };

/* One group. */
static inline __attribute__((always_inline)) void bytes_group(const uint16_t *x, size_t positions, int height,
                                                              const int8_t *w,
                                                              __m256i acc[BYTES_HEIGHT][QUARTERS])
{
    for (int v = 0; v < QUARTERS; v++) {
        __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(w + 16 * v)));
        for (int i = 0; i < height; i++) {
            int64_t from;
            memcpy(&from, x + (size_t)i * positions, sizeof from);
            acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(words, _mm256_set1_epi64x(from)));
        }
    }
}

/* `height` is constant in each call. */
static inline __attribute__((always_inline)) void bytes_rows(const uint16_t *x, size_t positions, int height,
                                                             const int8_t *w, size_t groups,
                                                             const int32_t *init, int32_t *c, size_t c_stride)
{
    __m256i acc[BYTES_HEIGHT][QUARTERS];
    for (int i = 0; i < height; i++)
        for (int v = 0; v < QUARTERS; v++)
            acc[i][v] = _mm256_setzero_si256();
    for (; groups; groups--, x += GROUP, w += DQ_AVX2_GROUP_BYTES)
        bytes_group(x, positions, height, w, acc);
    for (int i = 0; i < height; i++)
        for (int v = 0; v < VECTORS; v++) {
            /* columns 0 1 4 5 | 2 3 6 7 */
            __m256i sums = _mm256_hadd_epi32(acc[i][2 * v], acc[i][2 * v + 1]);
            sums = _mm256_permute4x64_epi64(sums, _MM_SHUFFLE(3, 1, 2, 0));
            _mm256_storeu_si256((__m256i *)(void *)(c + (size_t)i * c_stride + v * LANES),
                                _mm256_add_epi32(load(init + v * LANES), sums));
        }
}

static void multiply_bytes(const dq_qgemm_a *a, size_t rows, const int8_t *w, const int32_t *init, int32_t *c,
                           size_t c_stride)
{
    size_t positions = 0, groups = a->runs * dq_avx2_groups(a->run);
    row_size(a->runs, a->run, &positions);
    const uint16_t *x = row_words(a, rows, positions);
    for (; rows >= BYTES_HEIGHT; rows -= BYTES_HEIGHT) {
        bytes_rows(x, positions, BYTES_HEIGHT, w, groups, init, c, c_stride);
        x += BYTES_HEIGHT * positions;
        c += BYTES_HEIGHT * c_stride;
    }
    if (rows)
        bytes_rows(x, positions, 1, w, groups, init, c, c_stride);
}

/* ---- Turned rows -------------------------------------------------------------------------------------- */

/* One step of a transpose of 16 by 16 bytes in each half: rows i and i + 8 interleaved. */
static inline __attribute__((always_inline)) void interleave(const __m256i in[TURN], __m256i out[TURN])
{
    for (int i = 0; i < TURN / 2; i++) {
        out[2 * i] = _mm256_unpacklo_epi8(in[i], in[i + TURN / 2]);
        out[2 * i + 1] = _mm256_unpackhi_epi8(in[i], in[i + TURN / 2]);
    }
}

/* 16 positions of 32 rows. */
static void turn_square(const uint8_t *const x[HALF], size_t from, uint8_t *to, size_t step)
{
    __m256i a[TURN], b[TURN];
    for (int i = 0; i < TURN; i++) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(x[i] + from));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(x[i + TURN] + from));
        a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    interleave(a, b);
    interleave(b, a);
    interleave(a, b);
    interleave(b, a);
    for (int i = 0; i < TURN; i++)
        _mm256_storeu_si256((__m256i *)(void *)(to + (size_t)i * step), a[i]);
}

/* What is turned past a run's end is overwritten by the next, or multiplied by nothing. */
static void turn(const dq_qgemm_a *a, size_t rows, size_t step, uint8_t *out)
{
    for (size_t half = 0; half < step; half += HALF) {
        uint8_t *to = out + half;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *x[HALF];
            for (size_t i = 0; i < HALF; i++)
                x[i] = a->rows[half + i < rows ? half + i : rows - 1] + a->offsets[t];
            for (size_t k = 0; k < a->run; k += TURN)
                turn_square(x, k, to + k * step, step);
            to += dq_avx2_groups(a->run) * GROUP * step;
        }
    }
}

/* ---- The rest ----------------------------------------------------------------------------------------- */

/* The entries of one column for 32 rows: out[v] has rows 4v … 4v + 3, and the same 16 further. */
static inline __attribute__((always_inline)) void rest_step(const uint8_t *turned, const dq_avx2_record *r,
                                                            size_t step, __m256i out[4])
{
    const __m256i ones = _mm256_set1_epi16(1), w = _mm256_set1_epi32(four(r->rest));
    __m256i x0 = load(turned + r->position[0] * step), x1 = load(turned + r->position[1] * step);
    __m256i x2 = load(turned + r->position[2] * step), x3 = load(turned + r->position[3] * step);
    __m256i low0 = _mm256_unpacklo_epi8(x0, x1), low2 = _mm256_unpacklo_epi8(x2, x3);
    __m256i high0 = _mm256_unpackhi_epi8(x0, x1), high2 = _mm256_unpackhi_epi8(x2, x3);
    __m256i bytes[4] = {_mm256_unpacklo_epi16(low0, low2), _mm256_unpackhi_epi16(low0, low2),
                        _mm256_unpacklo_epi16(high0, high2), _mm256_unpackhi_epi16(high0, high2)};
    for (int v = 0; v < 4; v++) {
        __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes[v], w), ones);
        out[v] = _mm256_add_epi32(out[v], sum);
    }
}

/* sums[v]: vector v of `halves` times 4, as rest_step has them. */
static inline __attribute__((always_inline)) void rest_column(const uint8_t *turned, const dq_avx2_record *r,
                                                              size_t records, int halves, int32_t *sums)
{
    __m256i acc[2][4];
    for (int v = 0; v < 4; v++)
        acc[0][v] = acc[1][v] = _mm256_setzero_si256();
    for (const dq_avx2_record *end = r + records; r < end; r++)
        for (int h = 0; h < halves; h++)
            rest_step(turned + h * HALF, r, (size_t)halves * HALF, acc[h]);
    for (int h = 0; h < halves; h++)
        for (int v = 0; v < 4; v++)
            _mm256_storeu_si256((__m256i *)(void *)(sums + (h * 4 + v) * LANES), acc[h][v]);
}

/* Adds eight columns of a vector's eight rows to c: column j's are at sums + j * MR. */
static void add_square(const int32_t *sums, size_t row, size_t rows, int32_t *c, size_t c_stride)
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
        size_t at = row + i % 4 + i / 4 * 16;
        __m256i sum = i < 4 ? _mm256_permute2x128_si256(y[i], y[i + 4], 0x20)
                            : _mm256_permute2x128_si256(y[i - 4], y[i], 0x31);
        if (at < rows)
            _mm256_storeu_si256((__m256i *)(void *)(c + at * c_stride),
                                _mm256_add_epi32(load(c + at * c_stride), sum));
    }
}

static void add_rest(const dq_qgemm_a *a, size_t rows, const dq_avx2_head *head, const dq_avx2_record *r,
                     int32_t *c, size_t c_stride)
{
    int32_t sums[NR * MR];
    size_t halves = rows > HALF ? 2 : 1, positions = 0;
    kept_head *kept = a->turned;
    row_size(a->runs, a->run, &positions);
    uint8_t *turned = (uint8_t *)(kept + 1) + 2 * MR * positions;
    if (!(kept->kept & KEPT_TURNED))
        turn(a, rows, halves * HALF, turned);
    kept->kept |= KEPT_TURNED;
    for (size_t j = 0; j < NR; r += head->records[j], j++) {
        if (halves == 2)
            rest_column(turned, r, head->records[j], 2, sums + j * MR);
        else
            rest_column(turned, r, head->records[j], 1, sums + j * MR);
    }
    for (size_t j = 0; j < NR; j += LANES)
        for (size_t v = 0; v < halves * 4; v++)
            add_square(sums + j * MR + v * LANES, v / 4 * HALF + v % 4 * 4, rows, c + j, c_stride);
}

static void tile(const dq_qgemm_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    const dq_avx2_head *head = panel;
    const int8_t *weights = (const int8_t *)(head + 1);
    if (head->mode == DQ_AVX2_BYTES || head->mode == DQ_AVX2_WORDS) {
        if (head->mode == DQ_AVX2_BYTES)
            multiply_bytes(a, rows, weights, init, c, c_stride);
        else
            multiply_words(a, rows, weights, init, c, c_stride);
        return;
    }
    for (size_t i = 0, height; i < rows; i += height) {
        part p = {a->rows + i, a, weights, init, c + i * c_stride, c_stride};
        height = rows - i < HEIGHT ? rows - i : HEIGHT;
        if (head->mode == DQ_AVX2_QUADS)
            sum_quads(&p, height);
        else
            sum_pairs(&p, height);
    }
    size_t safe_bytes = a->runs * dq_avx2_groups(a->run) * DQ_AVX2_GROUP_BYTES;
    uint32_t any = 0;
    for (size_t j = 0; j < NR; j++)
        any |= head->records[j];
    if (any)
        add_rest(a, rows, head, (const dq_avx2_record *)(const void *)(weights + safe_bytes), c, c_stride);
}

/* ---- Sums of rows ------------------------------------------------------------------------------------- */

/* vpsadbw against zero adds eight bytes to a 64-bit lane; a run of less than a vector is added byte by byte.
 */
void dq_qgemm_sums_u8_avx2(const dq_qgemm_a *a, size_t rows, int32_t *out)
{
    for (size_t i = 0; i < rows; i++) {
        __m256i sums = _mm256_setzero_si256();
        uint32_t rest = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *x = a->rows[i] + a->offsets[t];
            size_t p = 0;
            for (; p + 32 <= a->run; p += 32) {
                __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(x + p));
                sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
            }
            for (; p < a->run; p++)
                rest += x[p];
        }
        uint64_t lanes[4];
        _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
        out[i] = (int32_t)(rest + (uint32_t)(lanes[0] + lanes[1] + lanes[2] + lanes[3]));
    }
}

const dq_qgemm dq_qgemm_avx2 = {.mr = MR,
                                .nr = NR,
                                .a_signed = false,
                                .panel_size = dq_qgemm_avx2_panel_size,
                                .turned_size = turned_size,
                                .pack = dq_qgemm_avx2_pack,
                                .tile = tile,
                                .sums = dq_qgemm_sums_u8_avx2};
