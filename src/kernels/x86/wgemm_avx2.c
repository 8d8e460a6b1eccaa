#include "kernels/kernels.h"

#include <immintrin.h>
#include <math.h>

enum { ROWS = DQ_WGEMM_ROWS, COLS = DQ_WGEMM_COLS, LANES = 8, VECTORS = COLS / LANES };
enum { SPAN = 255 }; /* pairs of products below 2^22 that an int32 holds */

static inline __m256i load(const int16_t *x)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

static inline void add_doubles(double *c, __m128i sums)
{
    _mm256_storeu_pd(c, _mm256_add_pd(_mm256_loadu_pd(c), _mm256_cvtepi32_pd(sums)));
}

void dq_wgemm_avx2(const int16_t *a, const int16_t *b, size_t pairs, double *c)
{
    while (pairs > 0) {
        size_t count = pairs < SPAN ? pairs : SPAN;
        __m256i sum[ROWS][VECTORS];
        for (int i = 0; i < ROWS; i++)
            sum[i][0] = sum[i][1] = _mm256_setzero_si256();
        pairs -= count;
        for (; count > 0; count--, a += 2 * ROWS, b += 2 * COLS) {
            __m256i w0 = load(b), w1 = load(b + 2 * LANES);
            for (int i = 0; i < ROWS; i++) {
                __m256i x =
                    _mm256_castps_si256(_mm256_broadcast_ss((const float *)(const void *)(a + 2 * i)));
                sum[i][0] = _mm256_add_epi32(sum[i][0], _mm256_madd_epi16(x, w0));
                sum[i][1] = _mm256_add_epi32(sum[i][1], _mm256_madd_epi16(x, w1));
            }
        }
        for (int i = 0; i < ROWS; i++)
            for (int v = 0; v < VECTORS; v++) {
                double *to = c + i * COLS + v * LANES;
                add_doubles(to, _mm256_castsi256_si128(sum[i][v]));
                add_doubles(to + LANES / 2, _mm256_extracti128_si256(sum[i][v], 1));
            }
    }
}

void dq_requantize_f64_avx2(const double *acc, size_t n, const double *offset, const double *scale,
                            size_t step, int32_t zero_point, int32_t lo, int32_t hi, int32_t *out)
{
    enum { WIDTH = 4 };
    size_t j = 0;
    const __m256d zero = _mm256_set1_pd(zero_point), low = _mm256_set1_pd(lo), high = _mm256_set1_pd(hi);
    for (; j + WIDTH <= n; j += WIDTH) {
        __m256d o = step ? _mm256_loadu_pd(offset + j) : _mm256_broadcast_sd(offset);
        __m256d s = step ? _mm256_loadu_pd(scale + j) : _mm256_broadcast_sd(scale);
        __m256d v = _mm256_mul_pd(_mm256_add_pd(_mm256_loadu_pd(acc + j), o), s);
        v = _mm256_add_pd(_mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), zero);
        v = _mm256_min_pd(_mm256_max_pd(v, low), high); /* of NaN and a bound, max gives the bound */
        _mm_storeu_si128((__m128i *)(void *)(out + j), _mm256_cvttpd_epi32(v));
    }
    for (; j < n; j++) {
        double v = rint((acc[j] + offset[j * step]) * scale[j * step]) + zero_point;
        v = v > lo ? v : lo;
        out[j] = (int32_t)(v < hi ? v : hi);
    }
}
