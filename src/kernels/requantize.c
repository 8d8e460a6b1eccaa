#include "kernels/kernels.h"

void dq_requantize_c(const int32_t *acc, size_t n, const double *scale, size_t scale_step, int32_t zero_point,
                     int32_t lo, int32_t hi, uint8_t *out)
{
    /* Clamping to whole numbers commutes with rounding and keeps the value small enough that adding and
     * taking away 1.5 * 2^52 rounds it to nearest even, which vectorizes where a call of rint would not. */
    const double magic = 6755399441055744.0;
    double low = lo - zero_point, high = hi - zero_point;
    for (size_t j = 0; j < n; j++) {
        double v = (double)acc[j] * scale[j * scale_step];
        v = v > low ? v : low; /* also for NaN */
        v = v < high ? v : high;
        out[j] = (uint8_t)((int32_t)(v + magic - magic) + zero_point);
    }
}

void dq_requantize_tile_c(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                          const dq_requantize_to *to)
{
    uint8_t codes[DQ_REQUANTIZE_COLS];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += DQ_REQUANTIZE_COLS) {
            size_t n = cols - j < DQ_REQUANTIZE_COLS ? cols - j : DQ_REQUANTIZE_COLS;
            uint8_t *row = to->transposed ? codes : to->out + i * to->out_stride + j;
            dq_requantize_c(acc + i * acc_stride + j, n, to->scale + j, 1, to->zero_point, to->lo, to->hi,
                            row);
            for (size_t k = 0; k < n && to->transposed; k++)
                to->out[(j + k) * to->out_stride + i] = codes[k];
        }
}
