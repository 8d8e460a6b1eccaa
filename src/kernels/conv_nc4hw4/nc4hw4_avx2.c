/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with AVX2, by pairwise multiplication of bytes (nc4hw4_sums.h). */
#include "kernels/simd/vec_avx2.h"

#include "kernels/conv_nc4hw4/nc4hw4_sums.h"

static inline __m256i plane(const uint8_t *from, size_t p, __m256i sign_xors)
{
    return from ? _mm256_xor_si256(vi_load(from + p), sign_xors) : _mm256_setzero_si256();
}

/* The two halves of a vector hold pixels p … p + 15 and p + 16 … p + 31 until they are stored. */
void dq_nc4hw4_interleave_avx2(const uint8_t *const planes[STEP], size_t n, uint8_t sign_xor, uint8_t *out)
{
    enum { PIXELS_PER_STEP = 32, VECTOR = 32 };
    const __m256i sign_xors = _mm256_set1_epi8((char)sign_xor);
    if (n < PIXELS_PER_STEP) {
        dq_nc4hw4_interleave_sse41(planes, n, sign_xor, out);
        return;
    }
    for (size_t at = 0; at < n; at += PIXELS_PER_STEP) {
        size_t p = n - at < PIXELS_PER_STEP ? n - PIXELS_PER_STEP
                                            : at; /* the last vectors overlap those before them */
        __m256i x0 = plane(planes[0], p, sign_xors), x1 = plane(planes[1], p, sign_xors);
        __m256i x2 = plane(planes[2], p, sign_xors), x3 = plane(planes[3], p, sign_xors);
        __m256i low0 = _mm256_unpacklo_epi8(x0, x1), low2 = _mm256_unpacklo_epi8(x2, x3);
        __m256i high0 = _mm256_unpackhi_epi8(x0, x1), high2 = _mm256_unpackhi_epi8(x2, x3);
        __m256i a = _mm256_unpacklo_epi16(low0, low2), b = _mm256_unpackhi_epi16(low0, low2);
        __m256i c = _mm256_unpacklo_epi16(high0, high2), d = _mm256_unpackhi_epi16(high0, high2);
        uint8_t *to = out + STEP * p;
        vi_store(to, _mm256_permute2x128_si256(a, b, 0x20));
        vi_store(to + VECTOR, _mm256_permute2x128_si256(c, d, 0x20));
        vi_store(to + 2 * VECTOR, _mm256_permute2x128_si256(a, b, 0x31));
        vi_store(to + 3 * VECTOR, _mm256_permute2x128_si256(c, d, 0x31));
    }
}

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_avx2 = {.lanes = 8,
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
                                                  .qvalues = dq_nc4hw4_requantize_avx2};
