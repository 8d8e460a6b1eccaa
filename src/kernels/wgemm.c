#include "kernels/kernels.h"

void dq_wgemm_c(const int16_t *a, size_t pairs, const int16_t *const b[DQ_WGEMM_OCTETS],
                const uint32_t *offsets, size_t octets, int32_t *c)
{
    enum { ROWS = DQ_WGEMM_ROWS, OCTET = DQ_WGEMM_OCTET };
    for (size_t i = 0; i < ROWS; i++)
        for (size_t o = 0; o < octets; o++) {
            const int16_t *x = a + 2 * i;
            uint32_t sums[OCTET] = {0};
            for (size_t p = 0; p < pairs; p++, x += 2 * ROWS) {
                const int16_t *z = b[o] + offsets[p];
                for (size_t j = 0; j < OCTET; j++)
                    sums[j] += (uint32_t)(x[0] * z[2 * j]) + (uint32_t)(x[1] * z[2 * j + 1]);
            }
            for (size_t j = 0; j < OCTET; j++)
                c[i * DQ_WGEMM_COLS + o * OCTET + j] = (int32_t)sums[j];
        }
}

void dq_wrow_c(const int16_t *x, size_t pairs, const int8_t *const b[DQ_WGEMM_OCTETS], int32_t *c)
{
    enum { OCTET = DQ_WGEMM_OCTET };
    for (size_t i = 0; i < DQ_WGEMM_COLS; i++) {
        const int8_t *z = b[i / OCTET] + 2 * (i % OCTET);
        uint32_t sum = 0;
        for (size_t p = 0; p < pairs; p++, z += 2 * OCTET)
            sum += (uint32_t)(x[2 * p] * z[0]) + (uint32_t)(x[2 * p + 1] * z[1]);
        c[i] = (int32_t)sum;
    }
}

/* `extra` being there and `step` are known in most calls, so that compilers make vectors of it. */
static inline __attribute__((always_inline)) void wide_row(const dq_wide_sums *s, const int32_t *sums,
                                                           const int32_t *high, const double *extra,
                                                           const double *fixed, const double *offset,
                                                           const double *scale, size_t step, uint16_t *out)
{
    const double magic = 6755399441055744.0; /* adding 1.5 * 2^52 and taking it away rounds */
    const double least = s->lo - s->zero_point, most = s->hi - s->zero_point;
    for (size_t j = 0; j < s->cols; j++) {
        double sum = extra ? sums[j] + extra[j] : sums[j];
        sum += high ? 256.0 * high[j] : 0;
        sum += fixed ? fixed[j * step] : 0;
        double v = (sum + offset[j * step]) * scale[j * step];
        v = v > least ? v : least; /* also for NaN; bounds are whole numbers, so that rounding may follow */
        v = v < most ? v : most;
        out[j] = (uint16_t)((int32_t)(v + magic - magic) + s->zero_point);
    }
}

void dq_requantize_wide_c(const dq_wide_sums *s, uint16_t *out)
{
    for (size_t i = 0; i < s->rows; i++) {
        const int32_t *sums = s->sums + i * s->stride;
        const double *extra = s->extra ? s->extra + i * s->extra_stride : NULL,
                     *offset = s->offset + i * s->row_step, *scale = s->scale + i * s->row_step;
        uint16_t *to = out + i * s->out_stride;
        if (s->fixed)
            wide_row(s, sums, s->high ? s->high + i * s->stride : NULL, extra, s->fixed + i * s->row_step,
                     offset, scale, s->col_step, to);
        else if (s->high)
            wide_row(s, sums, s->high + i * s->stride, extra, NULL, offset, scale, s->col_step, to);
        else if (extra && s->col_step)
            wide_row(s, sums, NULL, extra, NULL, offset, scale, 1, to);
        else if (extra)
            wide_row(s, sums, NULL, extra, NULL, offset, scale, 0, to);
        else if (s->col_step)
            wide_row(s, sums, NULL, NULL, NULL, offset, scale, 1, to);
        else
            wide_row(s, sums, NULL, NULL, NULL, offset, scale, 0, to);
    }
}
