/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/simd/vec_sse41.h"

#define ISA(name) name##_sse41

typedef struct bounds {
    __m128d low, high;
} bounds;

/* Scale and shift of two sums, for results in double. */
typedef struct term {
    __m128d scale, shift;
} term;

/* The products of two sums, clamped and rounded. The maximum returns its second operand, the lower bound, if
 * the product is NaN. *off: the largest distance from an integer so far. */
static inline __m128i scaled(__m128i acc, const term *t, bounds b, __m128d *off)
{
    __m128d v = _mm_add_pd(_mm_mul_pd(_mm_cvtepi32_pd(acc), t->scale), t->shift);
    v = _mm_min_pd(_mm_max_pd(v, b.low), b.high);
    __m128i rounded = _mm_cvtpd_epi32(v); /* to nearest, ties to even */
    __m128d distance = _mm_sub_pd(v, _mm_cvtepi32_pd(rounded));
    *off = _mm_max_pd(*off, _mm_andnot_pd(_mm_set1_pd(-0.0), distance));
    return rounded;
}

static inline __m128i four(const int32_t *acc, const term t[2], bounds b, __m128d *off)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)acc);
    return _mm_unpacklo_epi64(scaled(v, t, b, off), scaled(_mm_srli_si128(v, 8), t + 1, b, off));
}

static void exact(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first, size_t step,
                  uint8_t *out)
{
    const double *scale = to->scale + first, *shift = to->bias.shift ? to->bias.shift + first : NULL;
    size_t j = 0;
    if (n >= 8) {
        bounds b = {_mm_set1_pd(to->lo - to->zero_point), _mm_set1_pd(to->hi - to->zero_point)};
        __m128i zero = _mm_set1_epi16((short)to->zero_point);
        term t[4];
        for (int v = 0; v < 4; v++)
            t[v] = (term){_mm_set1_pd(scale[0]), _mm_set1_pd(shift ? shift[0] : 0)};
        for (; j + 8 <= n; j += 8) {
            for (int v = 0; v < 4 && step; v++) {
                t[v].scale = _mm_loadu_pd(scale + j + 2 * v);
                t[v].shift = shift ? _mm_loadu_pd(shift + j + 2 * v) : t[v].shift;
            }
            __m128d off = _mm_setzero_pd();
            __m128i words = _mm_packs_epi32(four(acc + j, t, b, &off), four(acc + j + 4, t + 2, b, &off));
            words = _mm_add_epi16(words, zero);
            __m128i bytes = to->lo < 0 ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
            _mm_storel_epi64((__m128i *)(void *)(out + j), bytes);
            if (_mm_movemask_pd(_mm_cmpge_pd(off, _mm_set1_pd(dq_requantize_tie_margin(to)))))
                dq_requantize_near_tie(acc + j, 8, to, first + j * step, step, out + j);
        }
    }
    dq_requantize_s32_c(acc + j, n - j, to, first + j * step, step, out + j);
}

static inline void put_qvalues(const vi v[4], int32_t zero, int32_t sign_xor, uint8_t *out)
{
    const __m128i z = _mm_set1_epi16((int16_t)zero);
    __m128i first = _mm_adds_epi16(_mm_packs_epi32(v[0], v[1]), z);
    __m128i second = _mm_adds_epi16(_mm_packs_epi32(v[2], v[3]), z);
    __m128i qvalues = _mm_xor_si128(_mm_packus_epi16(first, second), _mm_set1_epi8((char)sign_xor));
    _mm_storeu_si128((__m128i *)(void *)out, qvalues);
}

#include "kernels/requantize/requantize_body.h"
