/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with AVX-512 without VNNI, by pairwise multiplication of bytes (nc4hw4_sums.h), and
 * requantization of rows of sums. */
#include "kernels/simd/vec_avx512.h"

#include "kernels/conv_nc4hw4/nc4hw4_sums.h"
#include "kernels/requantize/exact_scale_avx2.h"

enum { CODES = 64 };

typedef struct row {
    __m512 scale, shift;
    __m512i zero_point, sign_xor;
} row;

/* The same as exact_scale_rounded() of AVX2. */
static inline __attribute__((always_inline)) __m512i rounded(const int32_t *c, __mmask64 some, int v,
                                                             const row *by, bool shifted)
{
    const __m512 magic = _mm512_set1_ps(EXACT_SCALE_MAGIC);
    __m512i sums = _mm512_maskz_loadu_epi32((__mmask16)(some >> v * VF_LANES), c + v * VF_LANES);
    const __m512 x = _mm512_cvtepi32_ps(sums);
    return _mm512_castps_si512(shifted ? _mm512_add_ps(_mm512_fmadd_ps(x, by->scale, by->shift), magic)
                                       : _mm512_fmadd_ps(x, by->scale, magic));
}

/* The same as exact_scale_halves() of AVX2. */
static inline __m512i halves(__m512i first, __m512i second, __m512i zero_point)
{
    return _mm512_adds_epi16(_mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_slli_epi32(second, 16)),
                             zero_point);
}

/* Requantizes CODES sums, or those in mask `some`. `shifted` is constant in each call, `some` in calls for
 * all. */
static inline __attribute__((always_inline)) void put(const int32_t *c, __mmask64 some, const row *by,
                                                      bool shifted, uint8_t *out)
{
    const __m512i turn =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i low = halves(rounded(c, some, 0, by, shifted), rounded(c, some, 1, by, shifted), by->zero_point);
    __m512i high = halves(rounded(c, some, 2, by, shifted), rounded(c, some, 3, by, shifted), by->zero_point);
    __m512i qvalues = _mm512_shuffle_epi8(_mm512_packus_epi16(low, high), turn);
    qvalues = _mm512_xor_si512(_mm512_permutexvar_epi32(order, qvalues), by->sign_xor);
    _mm512_mask_storeu_epi8(out, some, qvalues);
}

static inline __attribute__((always_inline)) void put_all(const int32_t *c, size_t n, const row *by,
                                                          bool shifted, uint8_t *out)
{
    size_t p = 0;
    for (; n - p >= CODES; p += CODES)
        put(c + p, UINT64_MAX, by, shifted, out + p);
    if (p < n)
        put(c + p, (1ull << (n - p)) - 1, by, shifted, out + p);
}

void dq_nc4hw4_requantize_avx512(const int32_t *c, size_t n, float scale, const dq_requantize_to *to)
{
    const float shift = exact_scale_shift(to);
    const row by = {_mm512_set1_ps(scale), _mm512_set1_ps(shift),
                    _mm512_set1_epi16((int16_t)(to->zero_point - to->lo)), _mm512_set1_epi8((char)to->lo)};
    if (shift != 0)
        put_all(c, n, &by, true, to->out);
    else
        put_all(c, n, &by, false, to->out);
}

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_avx512 = {.lanes = 8,
                                                    .least = 24,
                                                    .deepest = 256,
                                                    .nhwc = true,
                                                    .interleave = dq_nc4hw4_interleave_avx2,
                                                    .panel_size = dq_nc4hw4_panel_size_sse41,
                                                    .pack = dq_nc4hw4_pack_sse41,
                                                    .used = dq_nc4hw4_used_sse41,
                                                    .sums = sums,
                                                    .store = dq_nc4hw4_store_avx2,
                                                    .exact_scale = dq_nc4hw4_exact_scale_avx2,
                                                    .qvalues = dq_nc4hw4_requantize_avx512};
