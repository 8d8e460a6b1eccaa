/* Exact products of uint8 and int8 without a dot instruction: see qgemm_avx2.h for how weights are split. The
 * safe parts are multiplied 6 rows by 16 columns at a time, which fills the sixteen registers.
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

/* `height` and `mode` are constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void sum_rows(const part *p, int height, uint32_t mode)
{
    const __m256i ones = _mm256_set1_epi16(1), evens = _mm256_set1_epi16(0x00ff);
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
        for (; mode == DQ_AVX2_QUADS && g + 2 <= groups; g += 2, w += 2 * DQ_AVX2_GROUP_BYTES)
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
                    __m256i b = load(w + 32 * v);
                    if (mode == DQ_AVX2_SINGLE) {
                        __m256i even = _mm256_maddubs_epi16(_mm256_and_si256(value, evens), b);
                        __m256i odd = _mm256_maddubs_epi16(_mm256_andnot_si256(evens, value), b);
                        acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(even, ones));
                        acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(odd, ones));
                    } else {
                        __m256i sum = _mm256_maddubs_epi16(value, b);
                        acc[i][v] = _mm256_add_epi32(acc[i][v], _mm256_madd_epi16(sum, ones));
                    }
                }
            }
    }
    for (int i = 0; i < height; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_si256((__m256i *)(void *)(p->c + (size_t)i * p->c_stride + v * LANES), acc[i][v]);
}

#define HEIGHTS(name, mode)                                                                                  \
    static void name(const part *p, size_t height)                                                           \
    {                                                                                                        \
        switch (height) {                                                                                    \
        case 1:                                                                                              \
            sum_rows(p, 1, mode);                                                                            \
            break;                                                                                           \
        case 2:                                                                                              \
            sum_rows(p, 2, mode);                                                                            \
            break;                                                                                           \
        case 3:                                                                                              \
            sum_rows(p, 3, mode);                                                                            \
            break;                                                                                           \
        case 4:                                                                                              \
            sum_rows(p, 4, mode);                                                                            \
            break;                                                                                           \
        case 5:                                                                                              \
            sum_rows(p, 5, mode);                                                                            \
            break;                                                                                           \
        default:                                                                                             \
            sum_rows(p, 6, mode);                                                                            \
        }                                                                                                    \
    }
HEIGHTS(sum_single, DQ_AVX2_SINGLE)
HEIGHTS(sum_pairs, DQ_AVX2_PAIRS)
HEIGHTS(sum_quads, DQ_AVX2_QUADS)
#undef HEIGHTS

/* ---- Turned rows -------------------------------------------------------------------------------------- */

/* dq_qgemm_a.turned begins with a line whose first byte says whether the rows are turned already. */
enum { TURNED_HEAD = 64 };

static size_t turned_size(size_t runs, size_t run)
{
    size_t positions, bytes;
    if (!dq_align_size(run, GROUP, &positions) || !dq_mul_size(positions, runs, &positions) ||
        !dq_add_size(positions, TURN, &positions) || !dq_mul_size(positions, MR, &bytes) ||
        !dq_add_size(bytes, TURNED_HEAD, &bytes))
        return 0;
    return bytes;
}

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
    size_t halves = rows > HALF ? 2 : 1;
    uint8_t *turned = (uint8_t *)a->turned + TURNED_HEAD, *done = a->turned;
    if (!*done)
        turn(a, rows, halves * HALF, turned);
    *done = 1;
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
    for (size_t i = 0, height; i < rows; i += height) {
        part p = {a->rows + i, a, weights, init, c + i * c_stride, c_stride};
        height = rows - i < HEIGHT ? rows - i : HEIGHT;
        if (head->mode == DQ_AVX2_QUADS)
            sum_quads(&p, height);
        else if (head->mode == DQ_AVX2_PAIRS)
            sum_pairs(&p, height);
        else
            sum_single(&p, height);
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
