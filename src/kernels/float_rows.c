#include "kernels/vec_c.h"

#include "kernels/fconv_body.h"
#include "kernels/float_pool_body.h"
#include "kernels/float_rows_body.h"
#include "kernels/fwinograd_body.h"
#include "kernels/kernels.h"

void dq_softmax_ends(const double *sums, size_t n, bool logs, float *factor, float *term)
{
    for (size_t l = 0; l < n; l++) {
        factor[l] = logs ? 1.0f : (float)(1 / sums[l]);
        term[l] = logs ? -(float)log(sums[l]) : -0.0f;
    }
}

const dq_float_rows dq_float_rows_c = FLOAT_ROWS;
const dq_float_pool dq_float_pool_c = FLOAT_POOL;
const dq_fwinograd dq_fwinograd_c = FWINOGRAD;

void dq_fconv_plane_c(const dq_fconv *f)
{
    fconv_plane(f);
}

void dq_fevery_c(const float *x, size_t x_row, size_t step, size_t rows, size_t n, float *y, size_t y_row)
{
    fevery(x, x_row, step, rows, n, y, y_row);
}
