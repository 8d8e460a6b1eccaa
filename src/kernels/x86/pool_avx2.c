/* Rows under a window become one line, vector by vector; its columns are then whole vectors at every distance
 * of the kernel, of which strides of two keep every other byte. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 32, HALF = 16, QUARTER = 8 };

/* `bytes` (LANES, HALF or QUARTER, constant in each call) at p. */
static inline __attribute__((always_inline)) __m256i load(const uint8_t *p, size_t bytes)
{
    if (bytes == LANES)
        return _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm256_castsi128_si256(bytes == HALF ? _mm_loadu_si128((const __m128i *)(const void *)p)
                                                : _mm_loadl_epi64((const __m128i *)(const void *)p));
}

static inline __attribute__((always_inline)) void store(uint8_t *p, size_t bytes, __m256i v)
{
    if (bytes == LANES)
        _mm256_storeu_si256((__m256i *)(void *)p, v);
    else if (bytes == HALF)
        _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(v));
    else
        _mm_storel_epi64((__m128i *)(void *)p, _mm256_castsi256_si128(v));
}

static inline __m256i larger(__m256i a, __m256i b, bool is_signed)
{
    return is_signed ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b);
}

/* The first n bytes, 1 or more. */
static inline void put(uint8_t *out, __m256i v, size_t n)
{
    uint8_t bytes[LANES];
    if (n >= LANES) {
        store(out, LANES, v);
        return;
    }
    store(bytes, LANES, v);
    if (n >= HALF) {
        memcpy(out, bytes, HALF);
        memcpy(out + n - HALF, bytes + n - HALF, HALF);
    } else if (n >= QUARTER) {
        memcpy(out, bytes, QUARTER);
        memcpy(out + n - QUARTER, bytes + n - QUARTER, QUARTER);
    } else {
        memcpy(out, bytes, n);
    }
}

/* Rows of fewer than QUARTER bytes. */
static void join_few(const dq_max_windows *w, const uint8_t *x, uint8_t flip, uint8_t *line)
{
    for (size_t j = 0; j < w->n; j++) {
        uint8_t most = 0;
        for (size_t r = 0; r < w->under; r++) {
            uint8_t here = x[r * w->x_step + j] ^ flip;
            most = here > most ? here : most;
        }
        line[j] = most ^ flip;
    }
}

/* Rows of `bytes` or more, as many at a time: the last ones reach back over those before them. */
static inline __attribute__((always_inline)) void join_by(const dq_max_windows *w, const uint8_t *x,
                                                          bool is_signed, size_t bytes, uint8_t *line)
{
    for (size_t j = 0; j < w->n; j += bytes) {
        size_t at = w->n - j < bytes ? w->n - bytes : j;
        __m256i v = load(x + at, bytes);
        for (size_t r = 1; r < w->under; r++)
            v = larger(v, load(x + r * w->x_step + at, bytes), is_signed);
        store(line + at, bytes, v);
    }
}

static inline void join(const dq_max_windows *w, const uint8_t *x, bool is_signed, uint8_t *line)
{
    if (w->n >= LANES)
        join_by(w, x, is_signed, LANES, line);
    else if (w->n >= HALF)
        join_by(w, x, is_signed, HALF, line);
    else if (w->n >= QUARTER)
        join_by(w, x, is_signed, QUARTER, line);
    else
        join_few(w, x, is_signed ? 0x80 : 0, line);
}

static inline __m256i columns(const dq_max_windows *w, const uint8_t *line, bool is_signed)
{
    __m256i v = load(line, LANES);
    for (size_t k = 1; k < w->kernel; k++)
        v = larger(v, load(line + k * w->dilation, LANES), is_signed);
    return v;
}

static inline void one_row(const dq_max_windows *w, const uint8_t *x, bool is_signed, uint8_t *out)
{
    const __m256i even = _mm256_set1_epi16(0xff);
    if (w->under)
        join(w, x, is_signed, w->line + w->from);
    for (size_t c = 0; c < w->width; c += LANES) {
        const uint8_t *line = w->line + c * w->stride;
        __m256i v = columns(w, line, is_signed);
        if (w->stride == 2) {
            __m256i next = w->width - c > HALF ? columns(w, line + LANES, is_signed) : v;
            v = _mm256_packus_epi16(_mm256_and_si256(v, even), _mm256_and_si256(next, even));
            v = _mm256_permute4x64_epi64(v, _MM_SHUFFLE(3, 1, 2, 0));
        }
        put(out + c, v, w->width - c);
    }
}

void dq_max_windows_avx2(const dq_max_windows *w)
{
    if (w->stride > 2) {
        dq_max_windows_c(w);
        return;
    }
    for (size_t i = 0; i < w->rows; i++) {
        const uint8_t *x = w->under ? w->x + i * w->row_step : NULL;
        if (w->is_signed)
            one_row(w, x, true, w->out + i * w->width);
        else
            one_row(w, x, false, w->out + i * w->width);
    }
}
