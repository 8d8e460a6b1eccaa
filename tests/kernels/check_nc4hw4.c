/* SPDX-License-Identifier: Apache-2.0 */
/* Integer convolutions with pixels side by side. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, PIXELS = DQ_NC4HW4_PIXELS };

static void check_interleave(const dq_conv_nc4hw4_s8 *kernel)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        const uint8_t *planes[STEP];
        uint8_t sign_xor = kernel_random(2) ? 0x80 : 0, *out = kernel_bytes(STEP * n);
        for (int e = 0; e < STEP; e++)
            planes[e] = kernel_random(5) ? kernel_bytes(n) : NULL;
        kernel->interleave(planes, n, sign_xor, out);
        for (size_t p = 0; p < STEP * n; p++) {
            const uint8_t *plane = planes[p % STEP];
            KERNEL_FAIL_UNLESS(out[p] == (plane ? plane[p / STEP] ^ sign_xor : 0), "n %zu, byte %zu", n, p);
        }
        kernel_done();
    }
}

/* Weights of a kind: small ones, any, and the largest of one sign or both. */
static int8_t weight(size_t kind)
{
    int any = (int)kernel_random(256) - 128;
    switch (kind % 4) {
    case 0:
        return (int8_t)(kernel_random(10) ? any / 8 : any);
    case 1:
        return (int8_t)any;
    case 2:
        return kernel_random(2) ? 127 : -128;
    default:
        return kernel_random(9) ? -128 : 127;
    }
}

static uint32_t sum(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const int8_t *w)
{
    uint32_t total = 0;
    for (size_t s = 0; s < steps; s++)
        for (size_t e = 0; e < STEP; e++)
            total += (uint32_t)(x[offsets[s] + (ptrdiff_t)e] * w[s * STEP + e]);
    return total;
}

static void check_sums(const dq_conv_nc4hw4_s8 *kernel, size_t kind, size_t n, size_t steps)
{
    enum { STRIDE = 40 };
    size_t c_stride = (n + PIXELS - 1) / PIXELS * PIXELS + kernel_random(3), most = kernel->panel_size(steps);
    size_t span = (n + PIXELS - 1) / PIXELS * PIXELS * STEP;
    ptrdiff_t *offsets = kernel_memory(steps * sizeof *offsets);
    int8_t *w = kernel_memory(OUTS * steps * STEP);
    uint8_t *x = kernel_bytes(STRIDE * (steps + 1) + span);
    int32_t init[OUTS], *c = kernel_bytes(OUTS * c_stride * sizeof *c);
    void *panel = kernel_bytes(most + 64); /* aligned below */
    void *at = (void *)(((uintptr_t)panel + 63) / 64 * 64);
    for (size_t s = 0; s < steps; s++)
        offsets[s] = (ptrdiff_t)kernel_random((uint32_t)(STRIDE * (steps + 1)));
    for (size_t i = 0; i < OUTS * steps * STEP; i++)
        w[i] = weight(kind);
    if (kind % 3 == 0)
        memset(x, 255, STRIDE * (steps + 1) + span);
    for (int j = 0; j < OUTS; j++)
        init[j] = kernel_start();
    size_t used = kernel->pack(w, steps, at);
    KERNEL_FAIL_UNLESS(used <= most && used % 64 == 0, "%zu steps: panel of %zu bytes, most %zu", steps, used,
                       most);
    if (kernel->used) {
        const size_t found = kernel->used(steps, at, used);
        KERNEL_FAIL_UNLESS(found == used && kernel->used(steps, at, used - 1) == 0,
                           "a panel from a file uses %zu bytes, expected %zu", found, used);
        at = memcpy(kernel_bytes(used), at, used); /* nothing may be read past its end */
    }
    kernel->sums(x, offsets, steps, at, init, n, c, c_stride);
    for (size_t j = 0; j < OUTS; j++)
        for (size_t p = 0; p < n; p++) {
            uint32_t want = (uint32_t)init[j] + sum(x + STEP * p, offsets, steps, w + j * steps * STEP);
            KERNEL_FAIL_UNLESS((uint32_t)c[j * c_stride + p] == want,
                               "kind %zu, %zu steps, %zu pixels: channel %zu, pixel %zu is %d, expected %d",
                               kind, steps, n, j, p, c[j * c_stride + p], (int32_t)want);
        }
    kernel_done();
}

static void check_store(const dq_conv_nc4hw4_s8 *kernel, size_t n, size_t channels)
{
    size_t c_stride = (n + PIXELS - 1) / PIXELS * PIXELS + kernel_random(3),
           stride = channels + kernel_random(3) * 4;
    int32_t *c = kernel_bytes(channels * c_stride * sizeof *c), first[OUTS];
    size_t size = n ? (n - 1) * stride + channels : 0;
    uint8_t *out = kernel_bytes(size), *was = kernel_memory(size), byte;
    for (size_t j = 0; j < channels; j++)
        first[j] = kernel_sum();
    for (size_t i = 0; i < channels * c_stride; i++)
        c[i] = kernel_random(2) ? first[i / c_stride] : kernel_sum();
    if (size)
        memcpy(was, out, size);
    dq_requantize_to to = kernel_requantize_to(first, channels);
    to.out = out;
    to.out_stride = stride;
    kernel->store(c, c_stride, n, channels, &to);
    for (size_t at = 0; at < size; at++) {
        byte = was[at];
        if (at % stride < channels)
            byte = (uint8_t)kernel_code(c[at % stride * c_stride + at / stride], &to, at % stride);
        KERNEL_FAIL_UNLESS(out[at] == byte, "%zu pixels of %zu channels, byte %zu: %u, expected %u", n,
                           channels, at, out[at], byte);
    }
    kernel_done();
}

enum {
    SIDES = 3,
    HALVES = 520
}; /* sums beside a half quantum, and how many of those codes have and some more */

/* Sums beside half quanta, and now and then any. Returns whether a float was found. */
static bool check_qvalues(const dq_conv_nc4hw4_s8 *kernel, size_t n)
{
    enum { LARGEST = 1 << 24, AT_ONCE = 2 * PIXELS };
    static const float ties[] = {98, 130, 350, 900, 1000, 1.5f * 256};
    const int32_t lo = kernel_random(2) ? 0 : -128;
    const bool exact_ties = kernel_random(2);
    const float b = exact_ties
                        ? 1
                        : ldexpf(1 + (float)kernel_random(1 << 23) * 0x1p-23f, -9 - (int)kernel_random(4)),
                y = exact_ties ? ties[kernel_random(sizeof ties / sizeof ties[0])]
                               : 1 + (float)kernel_random(1 << 23) * 0x1p-23f;
    const double scale = (double)b / (double)y;
    uint8_t *out = kernel_bytes(n);
    int32_t *c = kernel_bytes((n + AT_ONCE - 1) / AT_ONCE * AT_ONCE * sizeof *c);
    dq_requantize_to to = {.scale = &scale,
                           .factors = {.a = 1, .b = &b, .y = &y},
                           .zero_point = lo + (int32_t)kernel_random(256),
                           .lo = lo,
                           .hi = lo + 255,
                           .out = out};
    const int32_t sum = (int32_t)kernel_random(2000) - 1000;
    if (kernel_random(2))
        kernel_add_bias(&to, &sum, 1);
    const double shift = to.bias.shift ? to.bias.shift[0] : 0;
    for (size_t p = 0; p < n; p++) {
        int half = (int)(p / SIDES % HALVES) - HALVES / 2, side = (int)(p % SIDES) - 1;
        c[p] = kernel_random(20) ? (int32_t)rint((half + 0.5 - shift) / scale) + side : c[p] % LARGEST;
    }
    float exact_scale = kernel->exact_scale(&to, LARGEST);
    if (exact_scale > 0) {
        kernel->qvalues(c, n, exact_scale, &to);
        for (size_t p = 0; p < n; p++)
            KERNEL_FAIL_UNLESS(out[p] == (uint8_t)kernel_code(c[p], &to, 0),
                               "%a / %a as %a, sum %d: %u, expected %d", (double)b, (double)y,
                               (double)exact_scale, c[p], out[p], kernel_code(c[p], &to, 0));
    }
    kernel_done();
    return exact_scale > 0;
}

static void check_all_qvalues(const dq_conv_nc4hw4_s8 *kernel)
{
    size_t n, found = 0;
    for (size_t i = 0; kernel_size(i / 16, &n); i++)
        found += n && check_qvalues(kernel, n);
    for (size_t i = 0; i < 100; i++) /* of scales at random some have no float */
        found += check_qvalues(kernel, SIDES * HALVES);
    KERNEL_FAIL_UNLESS(found > 0, "no float gives the same codes");
    kernel_done();
}

void check_conv_nc4hw4_s8(const dq_kernels *k)
{
    size_t n;
    if (k->conv_nc4hw4_s8->exact_scale)
        check_all_qvalues(k->conv_nc4hw4_s8);
    for (size_t i = 0; kernel_size(i / 4, &n) && n < 100; i++)
        check_store(k->conv_nc4hw4_s8, n, 1 + i % 4);
    check_interleave(k->conv_nc4hw4_s8);
    for (size_t i = 0; kernel_size(i / 8, &n) && n < 100; i++)
        check_sums(k->conv_nc4hw4_s8, i, n, kernel_random(12));
    check_sums(k->conv_nc4hw4_s8, 2, 20, 300);
    check_sums(k->conv_nc4hw4_s8, 3, 20, 301);
}
