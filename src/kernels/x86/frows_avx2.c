/* Rows for float convolutions: windows of an image as steps of a panel, and depthwise rows. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 8 };

/* Floats 0, 2 … 14 from x on, none behind them. */
static inline __m256 every_second(const float *x)
{
    __m256 low = _mm256_loadu_ps(x), high = _mm256_loadu_ps(x + LANES - 1);
    __m256 mixed = _mm256_shuffle_ps(low, high, 0xd8); /* 0 2 | 9 - 1, 11 - 1; in each half */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}

/* ---- Windows ----------------------------------------------------------------------------------------- */

/* Lanes that stand in memory as they do in the vector, from `from` on. */
typedef struct run {
    const float *from;
    __m256i lanes;
} run;

/* Takes the first of the lanes `left` and those in a row with it. */
static run take_run(const float *x, const int32_t *at, __m256i distance, __m256i *left)
{
    unsigned bits = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(*left));
    if (bits == 0)
        return (run){x, _mm256_setzero_si256()};
    int first = __builtin_ctz(bits);
    int32_t offset = at[first] - first;
    __m256i lanes = _mm256_and_si256(*left, _mm256_cmpeq_epi32(distance, _mm256_set1_epi32(offset)));
    *left = _mm256_andnot_si256(lanes, *left);
    return (run){x + offset, lanes};
}

static inline bool all_of(__m256i lanes)
{
    return _mm256_movemask_epi8(lanes) == -1;
}

enum { FEW_CHANNELS = 4 };

/* Half a panel. Most windows stand in a row, or at every second place; at the image's edges they are one or
 * two runs of lanes, which are worth looking for when there are some channels. */
static void gather_half(const float *x, const int32_t *at, size_t channels, size_t plane, size_t step,
                        float *to)
{
    const __m256i places = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), first = _mm256_set1_epi32(at[0]);
    const __m256i distance = _mm256_sub_epi32(places, count), twice = _mm256_sub_epi32(distance, count);
    const __m256i valid = _mm256_cmpgt_epi32(places, _mm256_set1_epi32(-1));
    if (at[0] >= 0 && all_of(_mm256_cmpeq_epi32(distance, first))) {
        for (size_t c = 0; c < channels; c++, x += plane, to += step)
            _mm256_storeu_ps(to, _mm256_loadu_ps(x + at[0]));
        return;
    }
    if (at[0] >= 0 && all_of(_mm256_cmpeq_epi32(twice, first))) {
        for (size_t c = 0; c < channels; c++, x += plane, to += step)
            _mm256_storeu_ps(to, every_second(x + at[0]));
        return;
    }
    if (channels >= FEW_CHANNELS) {
        __m256i left = valid;
        run one = take_run(x, at, distance, &left), two = take_run(x, at, distance, &left);
        if (_mm256_movemask_epi8(left) == 0) {
            for (size_t c = 0; c < channels; c++, one.from += plane, two.from += plane, to += step)
                _mm256_storeu_ps(to, _mm256_or_ps(_mm256_maskload_ps(one.from, one.lanes),
                                                  _mm256_maskload_ps(two.from, two.lanes)));
            return;
        }
    }
    for (size_t c = 0; c < channels; c++, x += plane, to += step)
        _mm256_storeu_ps(to, _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, places,
                                                      _mm256_castsi256_ps(valid), sizeof *x));
}

void dq_fgather_avx2(const float *x, const int32_t at[DQ_FPANEL], size_t channels, size_t plane, size_t step,
                     float *to)
{
    for (int j = 0; j < DQ_FPANEL; j += LANES)
        gather_half(x, at + j, channels, plane, step, to + j);
}

/* ---- Rows -------------------------------------------------------------------------------------------- */

enum { MOST_VECTORS = 4, MOST = MOST_VECTORS * LANES };

/* `vectors` and `stride` (1 or 2) are constants in each call. */
static inline __attribute__((always_inline)) void sums(const dq_fconv *f, const float *x, int stride,
                                                       int vectors, float *y)
{
    __m256 sum[MOST_VECTORS];
    for (int v = 0; v < vectors; v++)
        sum[v] = f->more ? _mm256_loadu_ps(y + v * LANES) : _mm256_setzero_ps();
    for (size_t t = 0; t < f->taps; t++) {
        const __m256 factor = _mm256_broadcast_ss(f->w + t);
        const float *from = x + f->offsets[t];
        for (int v = 0; v < vectors; v++) {
            const float *at = from + v * LANES * stride;
            __m256 value = stride == 2 ? every_second(at) : _mm256_loadu_ps(at);
            sum[v] = _mm256_fmadd_ps(factor, value, sum[v]);
        }
    }
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_ps(y + v * LANES, sum[v]);
}

/* n results, 1 … MOST: whole vectors of them. */
static inline __attribute__((always_inline)) void some(const dq_fconv *f, const float *x, int stride,
                                                       size_t n, float *y)
{
    switch ((n + LANES - 1) / LANES) {
    case 1:
        sums(f, x, stride, 1, y);
        break;
    case 2:
        sums(f, x, stride, 2, y);
        break;
    case 3:
        sums(f, x, stride, 3, y);
        break;
    default:
        sums(f, x, stride, MOST_VECTORS, y);
    }
}

static inline __attribute__((always_inline)) void plane(const dq_fconv *f, int stride)
{
    for (size_t r = 0; r < f->rows; r++) {
        const float *x = f->x + r * f->x_row;
        float *y = f->y + r * f->y_row, room[MOST];
        for (size_t i = 0; i < f->n; i += MOST) {
            size_t n = f->n - i < MOST ? f->n - i : MOST;
            bool whole = n % LANES == 0;
            if (!whole && f->more)
                memcpy(room, y + i, n * sizeof *y);
            some(f, x + i * (size_t)stride, stride, n, whole ? y + i : room);
            if (!whole)
                memcpy(y + i, room, n * sizeof *y);
        }
    }
}

void dq_fconv_plane_avx2(const dq_fconv *f)
{
    if (f->stride == 1)
        plane(f, 1);
    else if (f->stride == 2)
        plane(f, 2);
    else
        dq_fconv_plane_c(f);
}
