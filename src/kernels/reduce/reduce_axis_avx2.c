/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { VECTORS = 4 };

static inline __m256i load_ints(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline void store_ints(void *p, __m256i a)
{
    _mm256_storeu_si256(p, a);
}

static inline __m256i load_wide(const int32_t *p)
{
    return _mm256_cvtepi32_epi64(_mm_loadu_si128((const void *)p));
}

static inline __m256i load_bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

static inline __m256d load_double(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}

/* ---- Reductions ----
 *
 * Four vectors of results at a time. The last group may overlap the one before it: it is computed first and
 * stored last. `next` is the new accumulator, an expression of the accumulator a and the elements e. */
#define JOIN(name, from, to, vector, load_y, store_y, load_x, key_map, next)                                 \
    static void name(const void *x, size_t step, size_t count, size_t n, uint64_t sign_xor, void *y)         \
    {                                                                                                        \
        enum { LANES = sizeof(vector) / sizeof(to), W = VECTORS * LANES };                                   \
        const __m256i map = key_map;                                                                         \
        to last[W], *to_y = y, *out = last;                                                                  \
        (void)map;                                                                                           \
        if (n < W) {                                                                                         \
            dq_reduce_axis_mixed_c.name(x, step, count, n, sign_xor, y);                                     \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = n - W, then = 0; i + W < n || out == last; i = then, then += W, out = to_y + i) {    \
            const from *row = (const from *)x + i;                                                           \
            vector acc[VECTORS];                                                                             \
            for (int p = 0; p < VECTORS; p++)                                                                \
                acc[p] = load_y(to_y + i + p * LANES);                                                       \
            for (size_t t = 0; t < count; t++, row += step)                                                  \
                for (int p = 0; p < VECTORS; p++) {                                                          \
                    const vector e = load_x(row + p * LANES), a = acc[p];                                    \
                    acc[p] = next;                                                                           \
                }                                                                                            \
            for (int p = 0; p < VECTORS; p++)                                                                \
                store_y(out + p * LANES, acc[p]);                                                            \
        }                                                                                                    \
        memcpy(to_y + n - W, last, sizeof last);                                                             \
    }
#define JOIN_INTS(name, from, to, load_x, key_map, next)                                                     \
    JOIN(name, from, to, __m256i, load_ints, store_ints, load_x, key_map, next)
#define JOIN_FLOATS(name, next)                                                                              \
    JOIN(name, float, double, __m256d, _mm256_loadu_pd, _mm256_storeu_pd, load_double,                       \
         _mm256_setzero_si256(), next)

static inline __m256i larger_64(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}

static inline __m256d absolute(__m256d a)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}

JOIN_INTS(max_8, uint8_t, uint8_t, load_ints, _mm256_set1_epi8((char)sign_xor),
          _mm256_max_epu8(_mm256_xor_si256(e, map), a))
JOIN_INTS(max_32, int32_t, int32_t, load_ints, _mm256_set1_epi32((int)sign_xor),
          _mm256_max_epi32(_mm256_xor_si256(e, map), a))
JOIN_INTS(max_64, int64_t, int64_t, load_ints, _mm256_set1_epi64x((long long)sign_xor),
          larger_64(_mm256_xor_si256(e, map), a))
JOIN_INTS(add_32, int32_t, uint64_t, load_wide, _mm256_setzero_si256(), _mm256_add_epi64(a, e))
JOIN_INTS(add_64, uint64_t, uint64_t, load_ints, _mm256_setzero_si256(), _mm256_add_epi64(a, e))
JOIN_FLOATS(mul_f32, _mm256_mul_pd(a, e))
JOIN_FLOATS(abs_f32, _mm256_add_pd(a, absolute(e)))
JOIN_FLOATS(squares_f32, _mm256_fmadd_pd(e, e, a))

static inline void cumulate_group(const float *x, ptrdiff_t step, size_t count, bool exclusive, float *y,
                                  double *sums)
{
    __m256d total[VECTORS];
    for (int p = 0; p < VECTORS; p++)
        total[p] = _mm256_loadu_pd(sums + p * 4);
    for (; count > 0; count--, x += step, y += step)
        for (int p = 0; p < VECTORS; p++) {
            const __m256d next = _mm256_add_pd(total[p], load_double(x + p * 4));
            _mm_storeu_ps(y + p * 4, _mm256_cvtpd_ps(exclusive ? total[p] : next));
            total[p] = next;
        }
    for (int p = 0; p < VECTORS; p++)
        _mm256_storeu_pd(sums + p * 4, total[p]);
}

static void cumulate_f32(const float *x, ptrdiff_t step, size_t count, size_t n, bool exclusive, float *y,
                         double *sums)
{
    enum { W = VECTORS * 4 };
    const size_t whole = n / W * W;
    for (size_t i = 0; i < whole; i += W)
        if (exclusive)
            cumulate_group(x + i, step, count, true, y + i, sums + i);
        else
            cumulate_group(x + i, step, count, false, y + i, sums + i);
    dq_reduce_axis_mixed_c.cumulate_f32(x + whole, step, count, n - whole, exclusive, y + whole,
                                        sums + whole);
}

/* ---- Arg-maximum ----
 *
 * NaNs are collected off the critical path of the comparisons, for all columns of a group at once. Row
 * numbers grow, so that the maximum of the rows that exceeded their predecessors is the row of the largest
 * element. */

static inline __m256i more_ints(__m256i v, __m256i most)
{
    return _mm256_cmpgt_epi32(v, most);
}

static inline __m256i odd_ints(__m256i a, __m256i b)
{
    (void)a;
    (void)b;
    return _mm256_setzero_si256();
}

static inline __m256i more_floats(__m256 v, __m256 most)
{
    return _mm256_castps_si256(_mm256_cmp_ps(v, most, _CMP_GT_OQ));
}

static inline __m256i odd_floats(__m256 a, __m256 b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}

#define ARG(name, from, vector, load, key_map, mapped, larger, kind, bits)                                   \
    static inline __m256i name##_step(const from *row, vector map, __m256i t, vector *most, __m256i *at)     \
    {                                                                                                        \
        vector v[VECTORS];                                                                                   \
        for (int p = 0; p < VECTORS; p++) {                                                                  \
            v[p] = mapped(load(row + 8 * p), map);                                                           \
            at[p] = _mm256_max_epi32(at[p], _mm256_and_si256(more_##kind(v[p], most[p]), t));                \
            most[p] = larger(v[p], most[p]);                                                                 \
        }                                                                                                    \
        return _mm256_or_si256(odd_##kind(v[0], v[1]), odd_##kind(v[2], v[3]));                              \
    }                                                                                                        \
    static void name(const void *x, ptrdiff_t step, size_t count, size_t n, uint64_t sign_xor, void *best,   \
                     int32_t *where)                                                                         \
    {                                                                                                        \
        enum { W = 8 * VECTORS };                                                                            \
        const vector map = key_map;                                                                          \
        if (n < W) {                                                                                         \
            dq_reduce_axis_mixed_c.name(x, step, count, n, sign_xor, best, where);                           \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < n; i += W) {                                                                  \
            i = n - i < W ? n - W : i;                                                                       \
            const from *row = (const from *)x + i;                                                           \
            __m256i at[VECTORS], odd = _mm256_setzero_si256(), t = odd;                                      \
            vector most[VECTORS];                                                                            \
            for (int p = 0; p < VECTORS; p++) {                                                              \
                most[p] = mapped(load(row + 8 * p), map);                                                    \
                at[p] = t;                                                                                   \
            }                                                                                                \
            for (size_t left = count; left-- > 0; row += step) {                                             \
                odd = _mm256_or_si256(odd, name##_step(row, map, t, most, at));                              \
                t = _mm256_add_epi32(t, _mm256_set1_epi32(1));                                               \
            }                                                                                                \
            for (int p = 0; p < VECTORS; p++) {                                                              \
                store_ints((int32_t *)best + i + 8 * p, _mm256_or_si256(odd, bits(most[p])));                \
                store_ints(where + i + 8 * p, at[p]);                                                        \
            }                                                                                                \
        }                                                                                                    \
    }
#define SAME(a) (a)
ARG(arg_8, uint8_t, __m256i, load_bytes, _mm256_set1_epi32((int)sign_xor), _mm256_xor_si256, _mm256_max_epi32,
    ints, SAME)
ARG(arg_32, int32_t, __m256i, load_ints, _mm256_set1_epi32((int)sign_xor), _mm256_xor_si256, _mm256_max_epi32,
    ints, SAME)
ARG(arg_f32, float, __m256, _mm256_loadu_ps, _mm256_castsi256_ps(_mm256_set1_epi32((int)sign_xor)),
    _mm256_xor_ps, _mm256_max_ps, floats, _mm256_castps_si256)

const dq_reduce_axis_mixed dq_reduce_axis_mixed_avx2 = {.max_8 = max_8,
                                                        .max_32 = max_32,
                                                        .max_64 = max_64,
                                                        .add_32 = add_32,
                                                        .add_64 = add_64,
                                                        .mul_f32 = mul_f32,
                                                        .abs_f32 = abs_f32,
                                                        .squares_f32 = squares_f32,
                                                        .cumulate_f32 = cumulate_f32,
                                                        .arg_8 = arg_8,
                                                        .arg_32 = arg_32,
                                                        .arg_f32 = arg_f32};
