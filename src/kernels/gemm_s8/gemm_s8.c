/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM in portable C. A panel interleaves nr columns position by position. The inner loop over columns
 * thus has a constant length and no carried dependence, so that compilers vectorize it as 16-bit products
 * widened to 32 bits. */
#include "base/checked.h"
#include "kernels/gemm_s8/gemm_s8_pack.h"
#include "kernels/kernels.h"

#include <string.h>

enum { MR = 4, NR = 16 };

static size_t panel_size(size_t runs, size_t run)
{
    size_t positions, bytes;
    if (!dq_mul_size(runs, run, &positions) || !dq_mul_size(positions, NR, &bytes) ||
        !dq_align_size(bytes, DQ_ALIGN, &bytes))
        return 0;
    return bytes ? bytes : 64;
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    int8_t *out = panel;
    size_t cols = b->cols - first < NR ? b->cols - first : NR;
    uint32_t sum[NR] = {0};
    size_t used = b->runs * b->run * NR;
    size_t size = panel_size(b->runs, b->run);
    memset(out + used, 0, size - used);
    for (size_t t = 0; t < b->runs; t++)
        for (size_t p = 0; p < b->run; p++, out += NR) {
            const uint8_t *from = b->data + first * b->col_stride + t * b->run_stride +
                                  p / b->inner * b->outer_stride + p % b->inner * b->inner_stride;
            memset(out, 0, NR);
            for (size_t j = 0; j < cols; j++) {
                out[j] = (int8_t)(from[j * b->col_stride] ^ b->sign_xor);
                sum[j] += (uint32_t)out[j];
            }
        }
    memcpy(sums, sum, sizeof sum);
    return size;
}

/* Rows past `rows` repeat the last one, so that one loop serves all tile heights. */
static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    uint32_t acc[MR][NR];
    for (size_t i = 0; i < MR; i++)
        memcpy(acc[i], init, sizeof acc[i]);
    const int8_t *b = panel;
    for (size_t t = 0; t < a->runs; t++) {
        const uint8_t *x[MR];
        for (size_t i = 0; i < MR; i++)
            x[i] = a->rows[i < rows ? i : rows - 1] + a->offsets[t];
        for (size_t p = 0; p < a->run; p++, b += NR) {
            int16_t w[NR];
            for (size_t j = 0; j < NR; j++)
                w[j] = b[j];
            for (size_t i = 0; i < MR; i++) {
                int16_t value = x[i][p];
                for (size_t j = 0; j < NR; j++)
                    acc[i][j] += (uint32_t)((int32_t)value * w[j]);
            }
        }
    }
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * c_stride, acc[i], sizeof acc[i]);
}

const dq_gemm_s8 dq_gemm_s8_c = {.mr = MR,
                                 .nr = NR,
                                 .a_signed = false,
                                 .panel_size = panel_size,
                                 .pack = pack,
                                 .tile = tile,
                                 .sums = dq_gemm_s8_sums_u8};

void dq_subtract_scaled_s32_c(int32_t *c, size_t n, int32_t factor, const int32_t *v)
{
    for (size_t j = 0; j < n; j++)
        c[j] = (int32_t)((uint32_t)c[j] - (uint32_t)factor * (uint32_t)v[j]);
}
