#include "kernels/kernels.h"

#include <math.h>

void dq_wgemm_c(const int16_t *a, const int16_t *b, size_t pairs, double *c)
{
    enum { ROWS = DQ_WGEMM_ROWS, COLS = DQ_WGEMM_COLS };
    for (size_t i = 0; i < ROWS; i++) {
        const int16_t *x = a + 2 * i, *w = b;
        int64_t sums[COLS] = {0};
        for (size_t p = 0; p < pairs; p++, x += 2 * ROWS, w += 2 * COLS)
            for (size_t j = 0; j < COLS; j++)
                sums[j] += (int32_t)x[0] * w[2 * j] + (int32_t)x[1] * w[2 * j + 1];
        for (size_t j = 0; j < COLS; j++)
            c[i * COLS + j] += (double)sums[j];
    }
}

void dq_requantize_f64_c(const double *acc, size_t n, const double *offset, const double *scale, size_t step,
                         int32_t zero_point, int32_t lo, int32_t hi, int32_t *out)
{
    for (size_t j = 0; j < n; j++) {
        double v = rint((acc[j] + offset[j * step]) * scale[j * step]) + zero_point;
        v = v > lo ? v : lo; /* also for NaN */
        out[j] = (int32_t)(v < hi ? v : hi);
    }
}
