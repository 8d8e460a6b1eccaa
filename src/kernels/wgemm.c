#include "kernels/kernels.h"

void dq_wgemm_c(const int16_t *a, size_t pairs, const int16_t *const b[DQ_WGEMM_OCTETS],
                const uint32_t *offsets, size_t octets, int32_t *c)
{
    enum { ROWS = DQ_WGEMM_ROWS, OCTET = DQ_WGEMM_OCTET };
    for (size_t i = 0; i < ROWS; i++)
        for (size_t o = 0; o < octets; o++) {
            const int16_t *x = a + 2 * i;
            int32_t sums[OCTET] = {0};
            for (size_t p = 0; p < pairs; p++, x += 2 * ROWS) {
                const int16_t *z = b[o] + offsets[p];
                for (size_t j = 0; j < OCTET; j++)
                    sums[j] += x[0] * z[2 * j] + x[1] * z[2 * j + 1];
            }
            for (size_t j = 0; j < OCTET; j++)
                c[i * DQ_WGEMM_COLS + o * OCTET + j] = sums[j];
        }
}

void dq_requantize_wide_c(const dq_wide_sums *s, uint16_t *out)
{
    const double magic = 6755399441055744.0; /* adding 1.5 * 2^52 and taking it away rounds */
    double low = s->lo - s->zero_point, high = s->hi - s->zero_point;
    for (size_t i = 0; i < s->rows * s->cols; i++) {
        size_t row = i / s->cols, col = i % s->cols, at = row * s->stride + col;
        size_t term = row * s->row_step + col * s->col_step;
        double sum = s->extra ? s->sums[at] + s->extra[at] : s->sums[at];
        double v = (sum + s->offset[term]) * s->scale[term];
        v = v > low ? v : low; /* also for NaN; bounds are whole numbers, so that rounding may follow */
        v = v < high ? v : high;
        out[at] = (uint16_t)((int32_t)(v + magic - magic) + s->zero_point);
    }
}
