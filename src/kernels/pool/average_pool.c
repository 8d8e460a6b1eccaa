/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#define SUM_ROWS(T, name)                                                                                    \
    static void name(const dq_average_sums *r, const T *x, int16_t *restrict sums)                           \
    {                                                                                                        \
        for (size_t j = 0; j < r->n; j++)                                                                    \
            sums[j] = (int16_t)(x[j] - r->bias);                                                             \
        for (size_t k = 1; k < r->under; k++)                                                                \
            for (size_t j = 0; j < r->n; j++)                                                                \
                sums[j] = (int16_t)(sums[j] + x[k * r->x_step + j]);                                         \
    }

SUM_ROWS(uint8_t, sum_u8)
SUM_ROWS(int8_t, sum_s8)

static void sum_rows(const dq_average_sums *r)
{
    for (size_t i = 0; i < r->rows; i++) {
        const uint8_t *x = r->x + i * r->row_step;
        if (r->is_signed)
            sum_s8(r, (const int8_t *)x, r->sums + i * r->sums_step);
        else
            sum_u8(r, x, r->sums + i * r->sums_step);
    }
}

/* Clamping to integers commutes with rounding. The unit of magic's last place is 1. */
static inline uint8_t quantize(float v, float least, float most, int zero)
{
    const float magic = 0x1.8p23f;
    v = v > least ? v : least; /* NaN gives `least`, too */
    v = v < most ? v : most;
    return (uint8_t)((int)((v + magic) - magic) + zero);
}

static void means(const dq_average_means *m)
{
    const int zero = m->zero;
    const float least = (float)((m->is_signed ? INT8_MIN : 0) - zero);
    const float most = (float)((m->is_signed ? INT8_MAX : UINT8_MAX) - zero), margin = m->margin;
    for (size_t i = 0; i < m->n; i += DQ_AVERAGE_STEP) {
        int16_t s[DQ_AVERAGE_STEP] = {0};
        float v[DQ_AVERAGE_STEP];
        for (size_t k = 0; k < m->kernel; k++)
            for (size_t j = 0; j < DQ_AVERAGE_STEP; j++)
                s[j] = (int16_t)(s[j] + m->sums[i + k * m->dilation + j]);
        for (size_t j = 0; j < DQ_AVERAGE_STEP; j++)
            v[j] = (float)s[j] * m->multiplier[i + j];
        for (size_t j = 0; j < DQ_AVERAGE_STEP; j++)
            m->out[i + j] = quantize(v[j] - margin, least, most, zero);
        if (m->near_ties) {
            uint64_t bits = 0;
            for (size_t j = 0; j < DQ_AVERAGE_STEP; j++)
                bits |= (uint64_t)(quantize(v[j] + margin, least, most, zero) != m->out[i + j]) << j;
            m->near_ties[i / DQ_AVERAGE_STEP] = bits;
        }
    }
}

const dq_average_pool_x8 dq_average_pool_x8_c = {sum_rows, means};
