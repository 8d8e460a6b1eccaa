/* Finished sums, four at a time. maxps and minps give their second operand when the two are equal or one is
 * NaN, as the comparisons of the portable code do. */
#include "kernels/kernels.h"

#include <immintrin.h>

typedef struct finish {
    __m128 scale, bias, low, high;
} finish;

static inline __m128 finished(const finish *f, const float *y)
{
    __m128 v = _mm_cvtepi32_ps(_mm_loadu_si128((const __m128i *)(const void *)y));
    return _mm_add_ps(_mm_mul_ps(v, f->scale), f->bias);
}

static inline void put(const finish *f, float *y, __m128 v)
{
    _mm_storeu_ps(y, _mm_min_ps(f->high, _mm_max_ps(f->low, v)));
}

void dq_finish_s32_f32_sse41(float *y, size_t n, float scale, float bias, const float *z, float low,
                             float high)
{
    const finish f = {_mm_set1_ps(scale), _mm_set1_ps(bias), _mm_set1_ps(low), _mm_set1_ps(high)};
    size_t i = 0;
    if (z)
        for (; i + 4 <= n; i += 4)
            put(&f, y + i, _mm_add_ps(finished(&f, y + i), _mm_loadu_ps(z + i)));
    else
        for (; i + 4 <= n; i += 4)
            put(&f, y + i, finished(&f, y + i));
    dq_finish_s32_f32_c(y + i, n - i, scale, bias, z ? z + i : NULL, low, high);
}
