/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with fused requantization, 64 outputs at a time, or 32 at stride 2.
 *
 * vpdpbusd multiplies four contiguous bytes by weights of up to three neighboring elements of a kernel row.
 * Four bytes thus serve two outputs: once with the weights first, and once with the weights after a zero. A
 * load from the first byte of a window gives outputs 4i and 4i + 1, a load two bytes further outputs 4i + 2
 * and 4i + 3. Packing to 16 and to 8 bits interleaves them. No byte is shuffled before, and few loads cross a
 * cache line, the main cost of a load.
 *
 * One float multiplication without checks requantizes the sums (exact_scale_avx2.h). */
#include "kernels/kernels.h"
#include "kernels/requantize/exact_scale_avx2.h"

#include <immintrin.h>

enum { UNIT = 64 /* bytes */, OUTPUTS_PER_BLOCK = 4096 /* outputs at a time, about */ };
enum { MIDDLE = 0 };

static float exact_scale(const dq_requantize_to *to, double largest)
{
    return largest < INT32_MAX ? dq_nc4hw4_exact_scale_avx2(to, largest) : 0;
}

#include "kernels/dwconv/dwconv_quads.h"

/* ---- Outputs ------------------------------------------------------------------------------------------ */

typedef struct form {
    __m512i init, zero_point, sign_xor;
    __m512 scale, shift;
} form;

/* Results are in the lower 16 bits of all lanes. Moves those of the second vector to the upper halves of
 * the first one, and adds the zero point. */
static inline __m512i halves(__m512i first, __m512i second, __m512i zero_point)
{
    return _mm512_adds_epi16(_mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_slli_epi32(second, 16)),
                             zero_point);
}

/* Computes 64 quantized outputs of windows that begin in the vectors at x: two vectors, or four if
 * `strided`. `strided`, `shifted`, and `quads` if not 0, are constant in most calls. */
static inline __attribute__((always_inline)) __m512i
qvalues(const uint8_t *const x[QUAD], const quad *q, size_t quads, bool strided, bool shifted, const form *f)
{
    const __m512i turn =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    __m512i v[QUAD] = {f->init, f->init, f->init, f->init};
    for (size_t i = 0; i < quads; i++) {
        int32_t both[2];
        memcpy(both, q[i].w, sizeof both);
        const __m512i w = _mm512_set1_epi32(both[0]), next = _mm512_set1_epi32(both[1]);
        for (int k = 0; k < QUAD; k++) {
            __m512i bytes = _mm512_loadu_si512(x[strided ? k : k / 2] + q[i].at);
            v[k] = _mm512_dpbusd_epi32(v[k], bytes, strided || k % 2 == 0 ? w : next);
        }
    }
    for (int k = 0; k < QUAD; k++) {
        const __m512 sums = _mm512_cvtepi32_ps(v[k]), magic = _mm512_set1_ps(EXACT_SCALE_MAGIC);
        v[k] = _mm512_castps_si512(shifted ? _mm512_add_ps(_mm512_fmadd_ps(sums, f->scale, f->shift), magic)
                                           : _mm512_fmadd_ps(sums, f->scale, magic));
    }
    __m512i all = _mm512_packus_epi16(halves(v[0], v[1], f->zero_point), halves(v[2], v[3], f->zero_point));
    all = strided ? _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), all)
                  : _mm512_shuffle_epi8(all, turn);
    return _mm512_xor_si512(all, f->sign_xor);
}

/* Units of 64 bytes in which windows begin. Either all rows are computed as one long row, and put_rows()
 * skips the windows between rows; or each row has whole units. The caller chooses the way with fewer windows.
 */
typedef struct units {
    const uint8_t *x;
    size_t row_pitch, across, column; /* across: units of a row */
    size_t left;                      /* units left to compute */
    bool both;                        /* the last unit also has windows two bytes further */
} units;

/* Finds the two vectors of the next unit. The vectors of the last unit reach no farther than its windows;
 * further calls return them again. */
static inline void next_unit(units *u, const uint8_t *x[2])
{
    x[0] = u->x + u->column * UNIT;
    x[1] = x[0] + (u->left > 1 || u->both ? 2 : 0);
    if (u->left <= 1)
        return;
    u->left--;
    if (++u->column == u->across) {
        u->column = 0;
        u->x += u->row_pitch;
    }
}

static inline __attribute__((always_inline)) void make_qvalues(units u, const head *h, size_t quads,
                                                               bool strided, bool shifted, uint8_t *out)
{
    const quad *q = (const quad *)(h + 1);
    const form f = {_mm512_set1_epi32(h->init), _mm512_set1_epi16((int16_t)(h->zero_point - h->lo)),
                    _mm512_set1_epi8((char)h->lo), _mm512_set1_ps(h->scale), _mm512_set1_ps(h->shift)};
    for (size_t i = strided ? (u.left + 1) / 2 : u.left; i; i--, out += UNIT) {
        const uint8_t *x[QUAD];
        next_unit(&u, x);
        if (strided)
            next_unit(&u, x + 2);
        _mm512_storeu_si512(out, qvalues(x, q, quads, strided, shifted, &f));
    }
}

/* Copies rows to contiguous memory. Short rows are written as whole vectors if these end before the end of
 * `out`; the next rows overwrite the excess. */
static void put_rows(const uint8_t *from, size_t pitch, size_t rows, size_t n, uint8_t *out)
{
    enum { SHORT_ROW = 16 };
    const uint8_t *end = out + rows * n;
    for (; n < SHORT_ROW && end - out >= SHORT_ROW; from += pitch, out += n)
        _mm_storeu_si128((void *)out, _mm_loadu_si128((const void *)from));
    for (; out < end; from += pitch, out += n)
        for (size_t j = 0; j < n; j += UNIT) {
            __mmask64 some = n - j < UNIT ? (1ull << (n - j)) - 1 : UINT64_MAX;
            _mm512_mask_storeu_epi8(out + j, some, _mm512_loadu_si512(from + j));
        }
}

static void put(const uint8_t *x, size_t row_pitch, size_t stride, size_t rows, const void *packed, size_t n,
                uint8_t *out)
{
    enum { ROW = 3 }; /* quads of a 3×3 kernel */
    uint8_t made[OUTPUTS_PER_BLOCK + 2 * UNIT];
    const head *h = packed;
    const bool strided = stride != 1;
    if (n == 0)
        return;
    const unsigned each = strided ? 5 : 6; /* log2 of the windows of a unit */
    const size_t whole = (((n - 1) >> each) + 1) << each, step = strided ? row_pitch / 2 : row_pitch;
    const bool one = (!strided || row_pitch % 2 == 0) && step < whole;
    const size_t pitch = one ? step : whole;
    const size_t rows_at_once = n > OUTPUTS_PER_BLOCK ? 1
                                : (rows - 1) * pitch + n <= OUTPUTS_PER_BLOCK
                                    ? rows
                                    : 1 + (OUTPUTS_PER_BLOCK - n) / pitch;
    for (size_t i = 0, some; i < rows; i += some) {
        some = rows - i < rows_at_once ? rows - i : rows_at_once;
        for (size_t j = 0, width; j < n; j += width) {
            width = n - j < OUTPUTS_PER_BLOCK ? n - j : OUTPUTS_PER_BLOCK;
            size_t all = one ? (some - 1) * pitch + width : width, across = ((all - 1) >> each) + 1;
            units u = {.x = x + i * row_pitch + j * stride,
                       .row_pitch = row_pitch,
                       .across = across,
                       .left = one ? across : across * some,
                       .both = (all - 1 - ((across - 1) << each)) * stride > 1};
            if (strided)
                make_qvalues(u, h, h->quads, true, h->shift != 0, made);
            else if (h->quads == ROW && h->shift == 0)
                make_qvalues(u, h, ROW, false, false, made);
            else if (h->quads == ROW)
                make_qvalues(u, h, ROW, false, true, made);
            else
                make_qvalues(u, h, h->quads, false, h->shift != 0, made);
            put_rows(made, pitch, some, width, out + i * n + j);
        }
    }
}

const dq_dwconv_requantize_s8 dq_dwconv_requantize_s8_avx512vnni = {
    .size = size, .pack = pack, .resolve = resolve, .put = put};
