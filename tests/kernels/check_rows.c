/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of numbers: minima, quantizing, dequantizing, conversions. */
#include "base/codec.h"
#include "kernel_check.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void same_float(float got, float expected, size_t n, size_t i)
{
    bool same = isnan(expected) ? isnan(got) : bits_of(got) == bits_of(expected);
    KERNEL_FAIL_UNLESS(same, "n %zu, element %zu is %.9g, expected %.9g", n, i, (double)got,
                       (double)expected);
}

void check_minmax_f32(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        float *x = kernel_floats(n), low = i % 2 ? 5.0f : -0.0f, high = i % 2 ? -5.0f : -0.0f, lo = low,
              hi = high;
        k->minmax_f32(x, n, &lo, &hi);
        for (size_t j = 0; j < n; j++) {
            low = x[j] < low ? x[j] : low;
            high = x[j] > high ? x[j] : high;
        }
        low += 0.0f; /* -0 becomes 0 */
        high += 0.0f;
        KERNEL_FAIL_UNLESS(bits_of(lo) == bits_of(low) && bits_of(hi) == bits_of(high),
                           "n %zu: %g … %g, expected %g … %g", n, (double)lo, (double)hi, (double)low,
                           (double)high);
        kernel_done();
    }
}

/* The sizes of kernel_size, each eight times, and rows that are written past the caches. */
static bool row_size(size_t i, size_t *n)
{
    static size_t small;
    while (kernel_size(small, n))
        small++;
    *n = DQ_FAR_ROW + 13;
    return i < 8 * small ? kernel_size(i / 8, n) : i < 8 * small + 3;
}

/* Scales for a row (step 0: one): of usual sizes, of every size that floats have, and odd ones. */
static float *some_scales(size_t n)
{
    static const float odd[] = {0, INFINITY, NAN, -1, 1e-42f, 1, 0.5f};
    float *scale = kernel_memory(n * sizeof *scale);
    for (size_t i = 0; i < n; i++)
        scale[i] = kernel_random(4) ? ldexpf(1 + (float)kernel_random(1000), -(int)kernel_random(20))
                   : kernel_random(2)
                       ? ldexpf(1 + (float)kernel_random(1000) / 1000, 127 - (int)kernel_random(277))
                       : odd[kernel_random(sizeof odd / sizeof odd[0])];
    return scale;
}

static double quantized(float x, float scale, double zero, double lo, double hi)
{
    float q = x / scale;
    double v = rint((double)q) + zero;
    return v >= hi ? hi : v > lo ? v : lo;
}

/* Elements of which nearly all become codes inside the bounds, and few stand between two of them: what fast
 * ways over many at once take. In some rows a few elements stay as they are, of any size, infinite or NaN,
 * and meet the fast ways alone. */
static void put_tame(float *x, size_t n, const float *scale, size_t step)
{
    const uint32_t stay = kernel_random(2) ? 40 : UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        if (kernel_random(stay))
            x[i] = ((float)kernel_random(65536) / 128 - 255.9f) * scale[i * step];
}

/* Some elements stand as near the middle between two codes as floats come. */
static void put_ties(float *x, size_t n, const float *scale, size_t step)
{
    for (size_t i = 0; i < n; i++) {
        float tie = ((float)kernel_random(600) - 299.5f) * scale[i * step];
        if (kernel_random(8) == 0)
            x[i] = kernel_random(3) == 0 ? tie : nextafterf(tie, kernel_random(2) ? INFINITY : -INFINITY);
    }
}

#define CHECK_QUANTIZE(slot, type, lo, hi)                                                                   \
    void check_##slot(const dq_kernels *k)                                                                   \
    {                                                                                                        \
        size_t n;                                                                                            \
        for (size_t i = 0; row_size(i, &n); i++) {                                                           \
            size_t step = n < DQ_FAR_ROW ? i % 2 : 0, scales = step ? n : 1;                                 \
            float *x = kernel_floats(n), *scale = some_scales(scales);                                       \
            type *zero = i / 2 % 2 ? kernel_bytes(scales * sizeof *zero) : NULL,                             \
                 *y = kernel_bytes(n * sizeof *y);                                                           \
            if (n < DQ_FAR_ROW ? i / 4 % 2 : i % 2)                                                          \
                put_tame(x, n, scale, step);                                                                 \
            else                                                                                             \
                put_ties(x, n, scale, step);                                                                 \
            k->slot(x, n, scale, zero, step, y);                                                             \
            for (size_t j = 0; j < n; j++) {                                                                 \
                double z = zero ? zero[j * step] : 0, want = quantized(x[j], scale[j * step], z, lo, hi);    \
                KERNEL_FAIL_UNLESS(y[j] == want, "n %zu: %g / %g + %g is %d, expected %g", n, (double)x[j],  \
                                   (double)scale[j * step], z, (int)y[j], want);                             \
            }                                                                                                \
            kernel_done();                                                                                   \
        }                                                                                                    \
    }

CHECK_QUANTIZE(quantize_f32_u8, uint8_t, 0, UINT8_MAX)
CHECK_QUANTIZE(quantize_f32_s8, int8_t, INT8_MIN, INT8_MAX)
CHECK_QUANTIZE(quantize_f32_u16, uint16_t, 0, UINT16_MAX)
CHECK_QUANTIZE(quantize_f32_s16, int16_t, INT16_MIN, INT16_MAX)

#define CHECK_DEQUANTIZE(slot, type)                                                                         \
    void check_##slot(const dq_kernels *k)                                                                   \
    {                                                                                                        \
        size_t n;                                                                                            \
        for (size_t i = 0; row_size(i, &n); i++) {                                                           \
            size_t step = n < DQ_FAR_ROW ? i % 2 : 0, scales = step ? n : 1;                                 \
            type *x = kernel_bytes(n * sizeof *x),                                                           \
                 *zero = i / 2 % 2 ? kernel_bytes(scales * sizeof *zero) : NULL;                             \
            float *scale = some_scales(scales), *y = kernel_memory(n * sizeof *y);                           \
            k->slot(x, n, scale, zero, step, y);                                                             \
            for (size_t j = 0; j < n; j++) {                                                                 \
                int64_t difference = (int64_t)x[j] - (zero ? zero[j * step] : 0);                            \
                same_float(y[j], (float)difference *scale[j * step], n, j);                                  \
            }                                                                                                \
            kernel_done();                                                                                   \
        }                                                                                                    \
    }

CHECK_DEQUANTIZE(dequantize_u8_f32, uint8_t)
CHECK_DEQUANTIZE(dequantize_s8_f32, int8_t)
CHECK_DEQUANTIZE(dequantize_u16_f32, uint16_t)
CHECK_DEQUANTIZE(dequantize_s16_f32, int16_t)
CHECK_DEQUANTIZE(dequantize_s32_f32, int32_t)

#define CHECK_BLOCKS(slot, type)                                                                             \
    void check_##slot(const dq_kernels *k)                                                                   \
    {                                                                                                        \
        for (size_t i = 0; i < 200; i++) {                                                                   \
            size_t blocks = kernel_random(6), block = 2 + kernel_random(70), n = blocks * block;             \
            type *x = kernel_bytes(n * sizeof *x),                                                           \
                 *zero = i % 2 ? kernel_bytes(blocks * sizeof *zero) : NULL;                                 \
            float *scale = some_scales(blocks), *y = kernel_memory(n * sizeof *y);                           \
            k->slot(x, blocks, block, scale, zero, y);                                                       \
            for (size_t j = 0; j < n; j++)                                                                   \
                same_float(y[j], (float)(x[j] - (zero ? zero[j / block] : 0)) * scale[j / block], n, j);     \
            kernel_done();                                                                                   \
        }                                                                                                    \
    }

CHECK_BLOCKS(dequantize_blocks_u8_f32, uint8_t)
CHECK_BLOCKS(dequantize_blocks_s8_f32, int8_t)

/* Every float16 there is. */
void check_convert_f16_f32(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        uint16_t *x = kernel_bytes(n * sizeof *x);
        float *y = kernel_memory(n * sizeof *y);
        k->convert_f16_f32(x, n, y);
        for (size_t j = 0; j < n; j++)
            KERNEL_FAIL_UNLESS(bits_of(y[j]) == bits_of(dq_f16_to_f32(x[j])), "n %zu: %#x gives %#x", n, x[j],
                               bits_of(y[j]));
        kernel_done();
    }
    uint16_t *all = kernel_memory(65536 * sizeof *all);
    float *y = kernel_memory(65536 * sizeof *y);
    for (size_t j = 0; j < 65536; j++)
        all[j] = (uint16_t)j;
    k->convert_f16_f32(all, 65536, y);
    for (size_t j = 0; j < 65536; j++)
        KERNEL_FAIL_UNLESS(bits_of(y[j]) == bits_of(dq_f16_to_f32(all[j])), "%#zx gives %#x", j,
                           bits_of(y[j]));
}

void check_convert_f32_f16(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i / 2, &n); i++) {
        /* random bits, and values near the range of float16 */
        float *x = i % 2 ? kernel_bytes(n * sizeof *x) : kernel_floats(n);
        uint16_t *y = kernel_bytes(n * sizeof *y);
        k->convert_f32_f16(x, n, y);
        for (size_t j = 0; j < n; j++)
            KERNEL_FAIL_UNLESS(y[j] == dq_f32_to_f16(x[j]), "n %zu: %#x gives %#x", n, bits_of(x[j]), y[j]);
        kernel_done();
    }
}

static int code_at(const uint8_t *x, bool is_signed)
{
    return is_signed ? (int8_t)*x : *x;
}

/* The result of column c, from line[from …] as `under` rows make it. */
static int max_of(const dq_max_windows *w, const uint8_t *x, const uint8_t *line, size_t c)
{
    int most = INT8_MIN;
    for (size_t k = 0; k < w->kernel; k++) {
        size_t at = c * w->stride + k * w->dilation;
        bool inside = w->under && at >= w->from && at - w->from < w->n;
        int here = inside ? INT8_MIN : code_at(line + at, w->is_signed);
        for (size_t r = 0; inside && r < w->under; r++) {
            int in_row = code_at(x + r * w->x_step + at - w->from, w->is_signed);
            here = in_row > here ? in_row : here;
        }
        most = here > most ? here : most;
    }
    return most;
}

void check_max_windows_x8(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i / 6, &n); i++) {
        dq_max_windows w = {.n = n, .is_signed = i % 2, .under = kernel_random(4), .rows = kernel_random(4)};
        w.kernel = 1 + kernel_random(4);
        w.stride = 1 + i % 3;
        w.dilation = 1 + kernel_random(2);
        w.from = kernel_random(3);
        size_t length = w.from + n + kernel_random(3), span = (w.kernel - 1) * w.dilation + 1;
        w.width = length < span ? 0 : (length - span) / w.stride + 1;
        w.x_step = n + kernel_random(3);
        w.row_step = kernel_random(2) ? w.x_step : 2 * w.x_step + 1;
        size_t size = w.rows && w.under ? (w.rows - 1) * w.row_step + (w.under - 1) * w.x_step + n : 0;
        w.x = kernel_bytes(size);
        uint8_t *line = kernel_bytes(length + DQ_MAX_SLACK), *before = kernel_bytes(length);
        memcpy(before, line, length);
        w.line = line;
        w.out = kernel_bytes(w.rows * w.width);
        k->max_windows_x8(&w);
        for (size_t j = 0; j < w.rows * w.width; j++) {
            int want = max_of(&w, w.x + j / w.width * w.row_step, before, j % w.width);
            KERNEL_FAIL_UNLESS(
                code_at(w.out + j, w.is_signed) == want,
                "n %zu, %zu rows of %zu, kernel %zu, stride %zu: result %zu is %d, expected %d", n, w.rows,
                w.under, w.kernel, w.stride, j, code_at(w.out + j, w.is_signed), want);
        }
        kernel_done();
    }
}

/* ---- Elements twice ---- */

void check_upsample2x_x(const dq_kernels *k)
{
    size_t n;
    for (size_t s = 0; kernel_size(s, &n); s++)
        for (size_t width = 1; width <= 8; width *= 2) {
            const size_t rows = kernel_random(5), bytes = n * width;
            const uint8_t *x = kernel_bytes(rows * bytes);
            uint8_t *y = kernel_memory(4 * rows * bytes);
            k->upsample2x_x(x, n, width, rows, y);
            for (size_t i = 0; i < 4 * rows * bytes; i++) {
                size_t row = i / (4 * bytes), at = i % (2 * bytes);
                uint8_t expected = x[row * bytes + at / width / 2 * width + at % width];
                KERNEL_FAIL_UNLESS(y[i] == expected,
                                   "n %zu, width %zu, rows %zu: byte %zu is %u, expected %u", n, width, rows,
                                   i, y[i], expected);
            }
            kernel_done();
        }
}

/* ---- Between pixels ---- */

void check_bilinear_f32(const dq_kernels *k)
{
    size_t n;
    for (size_t s = 0; kernel_size(s, &n); s++) {
        const size_t below = 2 + kernel_random(9), workspace = n + kernel_random(3), last = n + below + 1;
        const float *x = kernel_floats(last + 1);
        double *weight = kernel_memory(4 * workspace * sizeof *weight), *y = kernel_memory(n * sizeof *y);
        float *z = kernel_memory(n * sizeof *z);
        bool odd = false;
        size_t *at = kernel_memory(n * sizeof *at);
        for (size_t i = 0; i < 4 * workspace; i++)
            weight[i] = (double)kernel_random(1 << 20) * 0x1p-20 / 3;
        for (size_t i = 0; i < n; i++)
            at[i] = kernel_random((uint32_t)n);
        const bool found = k->bilinear_f32(x, below, at, weight, workspace, n, false, y);
        const bool again = k->bilinear_f32(x, below, at, weight, workspace, n, true, z);
        for (size_t i = 0; i < n; i++) {
            double part[4];
            for (size_t p = 0; p < 4; p++)
                part[p] = weight[p * workspace + i] * (double)x[at[i] + p % 2 + p / 2 * below];
            const double expected = (part[0] + part[1]) + (part[2] + part[3]);
            odd = odd || isnan(expected);
            KERNEL_FAIL_UNLESS(
                isnan(expected) ? isnan(y[i]) && isnan(z[i]) : y[i] == expected && z[i] == (float)expected,
                "n %zu, element %zu: %.17g and %.9g, expected %.17g", n, i, y[i], (double)z[i], expected);
        }
        KERNEL_FAIL_UNLESS(found == odd && again == odd, "n %zu: %d and %d, expected %d", n, found, again,
                           odd);
        kernel_done();
    }
}
