/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_average_pool_x8. Included once per ISA level, after its vec_<isa>.h, whose vf has LANES / 2
 * floats.
 *
 * Macro parameters:
 *
 *   ISA(name)                         the level's name
 *   LOWER(name)                       the name of the level that sums rows of fewer than LANES elements
 *   vs                                a vector of LANES int16, 8, 16 or 32
 *   vs_load(p), vs_store(p, v), vs_set(i)
 *   vs_add(a, b)                      modulo 2^16; vs_add_saturated: saturated
 *   vs_bytes(p, is_signed)            LANES bytes as int16
 *   vs_floats(v, half)                half 0 or 1 of the elements as floats
 *   vs_rounded(a, b)                  two vf rounded to int16, saturated, in the order that vb_pack expects
 *   vb                                a vector of 2 * LANES bytes
 *   vb_pack(a, b, is_signed)          the elements of two vs as bytes, saturated
 *   vb_store(p, v)
 *   vb_differ(a, b)                   bit i: byte i of a and of b differ */
#include "kernels/kernels.h"

static inline __attribute__((always_inline)) void sum_row(const dq_average_sums *r, const uint8_t *x,
                                                          bool is_signed, int16_t *sums)
{
    const vs start = vs_set((int16_t)-r->bias);
    for (size_t j = 0; j < r->n; j += LANES) {
        const size_t at = r->n - j < LANES ? r->n - LANES : j; /* The last step overlaps the one before it. */
        vs sum = start;
        for (size_t k = 0; k < r->under; k++)
            sum = vs_add(sum, vs_bytes(x + k * r->x_step + at, is_signed));
        vs_store(sums + at, sum);
    }
}

static void sum_rows(const dq_average_sums *r)
{
    if (r->n < LANES) {
        LOWER(dq_average_pool_x8).sum_rows(r);
        return;
    }
    for (size_t i = 0; i < r->rows; i++)
        if (r->is_signed)
            sum_row(r, r->x + i * r->row_step, true, r->sums + i * r->sums_step);
        else
            sum_row(r, r->x + i * r->row_step, false, r->sums + i * r->sums_step);
}

static inline vs sum_columns(const dq_average_means *m, const int16_t *sums)
{
    vs sum = vs_load(sums);
    for (size_t k = 1; k < m->kernel; k++)
        sum = vs_add(sum, vs_load(sums + k * m->dilation));
    return sum;
}

/* The quantized values of v + offset. */
static inline __attribute__((always_inline)) vb quantized(vf v[2][2], vf offset, vs zero, bool is_signed)
{
    vs r[2];
    for (size_t h = 0; h < 2; h++)
        r[h] = vs_add_saturated(vs_rounded(vf_add(v[h][0], offset), vf_add(v[h][1], offset)), zero);
    return vb_pack(r[0], r[1], is_signed);
}

static inline __attribute__((always_inline)) void means_of(const dq_average_means *m, bool is_signed,
                                                           bool near_ties)
{
    const vf below = vf_set(-m->margin), above = vf_set(m->margin);
    const vs zero = vs_set((int16_t)m->zero);
    for (size_t i = 0; i < m->n; i += DQ_AVERAGE_STEP) {
        uint64_t bits = 0;
        for (size_t j = 0; j < DQ_AVERAGE_STEP; j += 2 * LANES) {
            vf v[2][2];
            for (size_t h = 0; h < 2; h++) {
                const vs sum = sum_columns(m, m->sums + i + j + h * LANES);
                const float *multiplier = m->multiplier + i + j + h * LANES;
                v[h][0] = vf_mul(vs_floats(sum, 0), vf_load(multiplier));
                v[h][1] = vf_mul(vs_floats(sum, 1), vf_load(multiplier + LANES / 2));
            }
            const vb low = quantized(v, below, zero, is_signed);
            vb_store(m->out + i + j, low);
            if (near_ties)
                bits |= (uint64_t)vb_differ(low, quantized(v, above, zero, is_signed)) << j;
        }
        if (near_ties)
            m->near_ties[i / DQ_AVERAGE_STEP] = bits;
    }
}

static void means(const dq_average_means *m)
{
    if (m->is_signed && m->near_ties)
        means_of(m, true, true);
    else if (m->is_signed)
        means_of(m, true, false);
    else if (m->near_ties)
        means_of(m, false, true);
    else
        means_of(m, false, false);
}

const dq_average_pool_x8 ISA(dq_average_pool_x8) = {sum_rows, means};
