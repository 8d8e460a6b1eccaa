/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinant of each square matrix in the last two axes, by Gaussian elimination with partial pivoting
 * in double. */
#include "base/checked.h"
#include "ops/op.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    char text[DQ_SHAPE_TEXT];
    if (in->rank < 2 || in->dims[in->rank - 1] != in->dims[in->rank - 2])
        return dq_call_fail_input(call, err, 0, "has shape %s, expected square matrices",
                                  dq_shape_text(in->rank, in->dims, text));
    return dq_call_output(call, 0, in->dtype, in->rank - 2, in->dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    size_t n = (size_t)call->in[0]->dims[call->in[0]->rank - 1];
    if (!dq_mul_size(n, n, &call->scratch_size) ||
        !dq_mul_size(call->scratch_size, sizeof(double), &call->scratch_size))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "has matrices of %zu rows", n);
    return DQ_OK;
}

/* Stops early when `threads` are cancelled: the result is then unspecified. */
static double determinant(const dq_threads *threads, double *a, size_t n)
{
    double result = 1;
    for (size_t c = 0; c < n && !dq_threads_cancelled(threads); c++) {
        size_t pivot = c;
        for (size_t r = c + 1; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[pivot * n + c]))
                pivot = r;
        if (a[pivot * n + c] == 0)
            return 0;
        for (size_t k = c; pivot != c && k < n; k++) {
            double kept = a[c * n + k];
            a[c * n + k] = a[pivot * n + k];
            a[pivot * n + k] = kept;
        }
        result *= pivot == c ? a[c * n + c] : -a[c * n + c];
        for (size_t r = c + 1; r < n && !dq_threads_cancelled(threads); r++) {
            double factor = a[r * n + c] / a[c * n + c];
            for (size_t k = c + 1; k < n; k++)
                a[r * n + k] -= factor * a[c * n + k];
        }
    }
    return result;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    size_t n = (size_t)in->dims[in->rank - 1];
    for (size_t i = 0; i < call->out[0]->count && !dq_threads_cancelled(call->threads); i++) {
        if (n)
            dq_load_doubles(in->dtype, in->data, i * n * n, n * n, call->scratch);
        dq_tensor_put_double(call->out[0], i, determinant(call->threads, call->scratch, n));
    }
    return DQ_OK;
}

const dq_op_impl dq_op_det = {infer, prepare, run, 0};
