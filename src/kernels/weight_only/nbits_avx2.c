/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with AVX2, by pairwise multiplication of bytes (nbits_pairs.h). */
#include "kernels/gemm_s8/accumulate_avx2.h"
#include "kernels/simd/vec_avx2.h"

#define ISA(name) name##_avx2
enum { WHOLE = 1, LOOKS_UP = 0 };

#include "kernels/weight_only/nbits_pairs.h"

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"

/* A table of 16 floats, split into bytes: bytes[i] has byte i of each float, in both halves of a vector. */
typedef struct lookup {
    vi bytes[4];
} lookup;

static inline lookup lookup_of(const float *table)
{
    const __m128i byte = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m128i x[4];
    for (int i = 0; i < 4; i++)
        x[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(table + 4 * i)), byte);
    __m128i a = _mm_unpacklo_epi32(x[0], x[1]), b = _mm_unpackhi_epi32(x[0], x[1]);
    __m128i c = _mm_unpacklo_epi32(x[2], x[3]), d = _mm_unpackhi_epi32(x[2], x[3]);
    return (lookup){{_mm256_broadcastsi128_si256(_mm_unpacklo_epi64(a, c)),
                     _mm256_broadcastsi128_si256(_mm_unpackhi_epi64(a, c)),
                     _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(b, d)),
                     _mm256_broadcastsi128_si256(_mm_unpackhi_epi64(b, d))}};
}

/* Looks up every second quantized value of the words, from the one in the low bits of `codes` on. In each
 * half, `codes` has four values of four columns: first one of each column, then the next of each column. */
ALWAYS_INLINE void look_up_half(const lookup *table, vi qvalues, vf *value)
{
    vi b[4];
    for (int i = 0; i < 4; i++)
        b[i] = _mm256_shuffle_epi8(table->bytes[i], qvalues);
    vi low01 = _mm256_unpacklo_epi8(b[0], b[1]), low23 = _mm256_unpacklo_epi8(b[2], b[3]);
    vi high01 = _mm256_unpackhi_epi8(b[0], b[1]), high23 = _mm256_unpackhi_epi8(b[2], b[3]);
    value[0] = vi_float(_mm256_unpacklo_epi16(low01, low23));
    value[2] = vi_float(_mm256_unpackhi_epi16(low01, low23));
    value[4] = vi_float(_mm256_unpacklo_epi16(high01, high23));
    value[6] = vi_float(_mm256_unpackhi_epi16(high01, high23));
}

ALWAYS_INLINE void look_up(const lookup *table, vi word, int each, vf *value)
{
    const vi byte =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const vi mask = vi_set(0x0f0f0f0f), qvalues = _mm256_shuffle_epi8(word, byte);
    (void)each;
    look_up_half(table, vi_and(qvalues, mask), value);
    look_up_half(table, vi_and(vi_right(qvalues, 4), mask), value + 1);
}

#include "kernels/weight_only/nbits_floats_body.h"

/* ---- Rounding to 8 bits -------------------------------------------------------------------------------- */

enum { PIECE = DQ_NBITS_PIECE };

/* The largest magnitude over 127, in all lanes; n is a multiple of four. The bits of magnitudes order as they
 * do, and those of NaN are larger. */
static inline vf factor_of(const float *x, size_t n)
{
    const vi magnitude = vi_set(INT32_MAX);
    vi most = vi_set(0);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        most = _mm256_max_epi32(most, vi_and(vf_bits(vf_load(x + i)), magnitude));
    __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    if (i < n)
        half = _mm_max_epi32(half, _mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)(x + i)),
                                                 _mm256_castsi256_si128(magnitude)));
    half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
    const float factor = _mm_cvtss_f32(_mm_castsi128_ps(half)) / 127;
    return vf_set(factor == 0 ? 1 : factor);
}

/* The digits of 32 values, in order. Values beyond int32 do not occur but for NaN, which becomes INT32_MIN.
 */
static inline __m256i round_piece(const float *x, vf factor)
{
    vi q[4];
    for (int i = 0; i < 4; i++)
        q[i] = vf_nearest(vf_div(vf_load(x + i * VF_LANES), factor));
    const vi bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline int32_t sum_of(vi digits)
{
    const vi sums = _mm256_sad_epu8(vi_xor(digits, _mm256_set1_epi8(INT8_MIN)), vi_set(0));
    const __m128i two = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 2) + PIECE * INT8_MIN;
}

/* Writes 32 digits in the order of a word's fields: even ones, then odd ones, of each word. */
static inline void put_digits(vi digits, unsigned bits, int8_t *out)
{
    if (bits == 4) {
        const vi order =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
        vi_store(out, _mm256_shuffle_epi8(digits, order));
        return;
    }
    const vi order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    digits = _mm256_shuffle_epi8(digits, order);
    vi_store(out, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(digits)));
    vi_store(out + 32, _mm256_cvtepi8_epi16(_mm256_extracti128_si256(digits, 1)));
}

bool dq_nbits_round_s8_avx2(const dq_nbits_block *block)
{
    const size_t fields = 32 / block->bits, bytes = DQ_NBITS_ROUNDED_BYTES(block->bits);
    const float *x = block->x;
    const vf factor = factor_of(x, fields * block->words);
    vi least = vi_set(0);
    for (size_t left = fields * block->words, p = 0, n; left; left -= n, p += block->rows, x += n) {
        float padded[PIECE] = {0};
        n = left < PIECE ? left : PIECE;
        if (n < PIECE)
            memcpy(padded, x, n * sizeof *x);
        const vi digits = round_piece(n < PIECE ? padded : x, factor);
        least = _mm256_min_epi8(least, digits);
        put_digits(digits, block->bits, block->digits + bytes * p);
        block->factors[p] = vf_first(factor);
        block->sums[p] = (float)sum_of(digits);
    }
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_set1_epi8(INT8_MIN))) == 0;
}
