/* Finished sums, eight at a time. maxps and minps give their second operand when the two are equal or one is
 * NaN, as the comparisons of the portable code do. */
#include "kernels/kernels.h"

#include <immintrin.h>

typedef struct finish {
    __m256 scale, bias, low, high;
} finish;

static inline __m256 finished(const finish *f, const float *y)
{
    __m256 v = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)y));
    return _mm256_add_ps(_mm256_mul_ps(v, f->scale), f->bias);
}

static inline void put(const finish *f, float *y, __m256 v)
{
    _mm256_storeu_ps(y, _mm256_min_ps(f->high, _mm256_max_ps(f->low, v)));
}

void dq_finish_s32_f32_avx2(float *y, size_t n, float scale, float bias, const float *z, float low,
                            float high)
{
    const finish f = {_mm256_set1_ps(scale), _mm256_set1_ps(bias), _mm256_set1_ps(low), _mm256_set1_ps(high)};
    size_t i = 0;
    if (z)
        for (; i + 8 <= n; i += 8)
            put(&f, y + i, _mm256_add_ps(finished(&f, y + i), _mm256_loadu_ps(z + i)));
    else
        for (; i + 8 <= n; i += 8)
            put(&f, y + i, finished(&f, y + i));
    dq_finish_s32_f32_c(y + i, n - i, scale, bias, z ? z + i : NULL, low, high);
}
