/* Exact products of uint8 and int8 without a dot instruction: see qgemm_avx2.h for how weights are split. The
 * safe parts are multiplied 6 rows by 16 columns at a time, which fills the sixteen registers. Weights that
 * are not split meet rows whose bytes are.
 *
 * The rest is added for up to 64 rows at once: an entry of a column concerns the same position of all rows,
 * so for this part the rows are turned, 64 (or, of few rows, 32) bytes to a position. Four entries make a
 * step: their bytes are interleaved to four of each row, and multiplied as the safe parts are. */
#include "kernels/x86/qgemm_avx2.h"

#include "base/checked.h"
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"
#include "kernels/x86/accumulate_avx2.h"

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

/* dq_qgemm_a.turned: a line whose first bytes say what is there, halves of bytes, turned rows. The first byte
 * is the contract's. */
enum { KEPT_HALVES = 1, KEPT_TURNED = 2, KEPT_HEAD = 64 };

/* Positions of a row, with room for what is written past its end. */
static bool row_size(size_t runs, size_t run, size_t *positions)
{
    enum { VECTOR = 32 };
    return dq_align_size(run, GROUP, positions) && dq_mul_size(*positions, runs, positions) &&
           dq_align_size(*positions, VECTOR, positions) && dq_add_size(*positions, VECTOR, positions);
}

static size_t turned_size(const dq_qgemm_b *b, size_t rows)
{
    size_t positions, halves, turned, all;
    rows = b->use == DQ_QGEMM_FEW ? rows : MR;
    if (!row_size(b->runs, b->run, &positions) || !dq_mul_size(positions, 2 * rows, &halves) ||
        !dq_mul_size(positions, b->use == DQ_QGEMM_FEW ? 0 : MR, &turned) ||
        !dq_add_size(halves, turned, &all) || !dq_add_size(all, KEPT_HEAD, &all))
        return 0;
    return all;
}

/* ---- Weights as they are ------------------------------------------------------------------------------ */

/* The products of half a byte, 15 at most, are small enough for eight groups to be summed in 16 bits:
 * 8 * 2 * 15 * 128 < 2^15. So rows are taken in halves, and the upper ones' sums times 16. */
enum { HALVES_HEIGHT = 2, TOGETHER = 8 };

static void keep_halves(const dq_qgemm_a *a, size_t rows, size_t positions, uint8_t *out)
{
    const __m256i mask = _mm256_set1_epi8(15);
    for (size_t i = 0; i < rows; i++, out += 2 * positions) {
        uint8_t *to = out;
        for (size_t t = 0; t < a->runs; t++, to += dq_avx2_groups(a->run) * GROUP) {
            const uint8_t *x = a->rows[i] + a->offsets[t];
            for (size_t k = 0; k < a->run; k += 32) {
                __m256i bytes = load(x + k), upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
                _mm256_storeu_si256((__m256i *)(void *)(to + k), _mm256_and_si256(bytes, mask));
                _mm256_storeu_si256((__m256i *)(void *)(to + positions + k), upper);
            }
        }
    }
}

typedef struct half_sums {
    __m256i lower[HALVES_HEIGHT][VECTORS], upper[HALVES_HEIGHT][VECTORS];
} half_sums;

/* One group. `height` is constant in each call. */
static inline __attribute__((always_inline)) void add_group(half_sums *sum, const uint8_t *x,
                                                            size_t positions, int height, const int8_t *w)
{
    for (int i = 0; i < height; i++, x += 2 * positions) {
        __m256i low = _mm256_set1_epi32(four(x)), up = _mm256_set1_epi32(four(x + positions));
        for (int v = 0; v < VECTORS; v++) {
            __m256i b = load(w + 32 * v);
            add_now(&sum->lower[i][v], _mm256_maddubs_epi16(low, b));
            add_now(&sum->upper[i][v], _mm256_maddubs_epi16(up, b));
        }
    }
}

/* `x`: lower halves of the first row, the upper ones `positions` behind. */
static inline __attribute__((always_inline)) void sum_halves(const uint8_t *x, size_t positions, int height,
                                                             const int8_t *w, size_t groups, int32_t *c,
                                                             size_t c_stride)
{
    enum { NEXT = DQ_AVX2_GROUP_BYTES };
    const __m256i ones = _mm256_set1_epi16(1), sixteens = _mm256_set1_epi16(16);
    for (size_t left; groups; groups -= left) {
        half_sums sum;
        for (int i = 0; i < height; i++)
            for (int v = 0; v < VECTORS; v++)
                sum.lower[i][v] = sum.upper[i][v] = _mm256_setzero_si256();
        left = groups < TOGETHER ? groups : TOGETHER;
        size_t g = 0;
        for (; g + 4 <= left; g += 4, x += 4 * GROUP, w += 4 * NEXT) {
            add_group(&sum, x, positions, height, w);
            add_group(&sum, x + GROUP, positions, height, w + NEXT);
            add_group(&sum, x + 2 * GROUP, positions, height, w + 2 * NEXT);
            add_group(&sum, x + 3 * GROUP, positions, height, w + 3 * NEXT);
        }
        for (; g < left; g++, x += GROUP, w += NEXT)
            add_group(&sum, x, positions, height, w);
        for (int i = 0; i < height; i++)
            for (int v = 0; v < VECTORS; v++) {
                int32_t *to = c + (size_t)i * c_stride + v * LANES;
                __m256i both = _mm256_add_epi32(_mm256_madd_epi16(sum.lower[i][v], ones),
                                                _mm256_madd_epi16(sum.upper[i][v], sixteens));
                _mm256_storeu_si256((__m256i *)(void *)to, _mm256_add_epi32(load(to), both));
            }
    }
}

static void add_halves(const dq_qgemm_a *a, size_t rows, const int8_t *w, const int32_t *init, int32_t *c,
                       size_t c_stride)
{
    size_t positions = 0, groups = a->runs * dq_avx2_groups(a->run);
    uint8_t *kept = a->turned;
    row_size(a->runs, a->run, &positions);
    if (!(kept[0] & KEPT_HALVES))
        keep_halves(a, rows, positions, kept + KEPT_HEAD);
    kept[0] |= KEPT_HALVES;
    const uint8_t *x = kept + KEPT_HEAD;
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * c_stride, init, NR * sizeof *c);
    for (; rows >= HALVES_HEIGHT; rows -= HALVES_HEIGHT) {
        sum_halves(x, positions, HALVES_HEIGHT, w, groups, c, c_stride);
        x += 2 * HALVES_HEIGHT * positions;
        c += HALVES_HEIGHT * c_stride;
    }
    if (rows)
        sum_halves(x, positions, 1, w, groups, c, c_stride);
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
    uint8_t *kept = a->turned;
    row_size(a->runs, a->run, &positions);
    uint8_t *turned = kept + KEPT_HEAD + 2 * MR * positions;
    if (!(kept[0] & KEPT_TURNED))
        turn(a, rows, halves * HALF, turned);
    kept[0] |= KEPT_TURNED;
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
    if (head->mode == DQ_AVX2_ANY) {
        add_halves(a, rows, weights, init, c, c_stride);
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
