/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qparam.h"

#include <string.h>

/* Whether `t` has an accepted shape for the operand's rows (columns); sets its steps along the batch axes. */
static bool matches(const dq_tensor *t, const dq_tensor *operand, dq_qparam_axis axis, size_t length,
                    const dq_matmul_shape *s, dq_qparam *out)
{
    if (operand->rank < 2)
        return false; /* a vector has one row (column), and the caller has already accepted single elements */
    if (t->rank == 1) {
        out->step = 1;
        return (size_t)t->dims[0] == length;
    }
    if (t->rank < 2 || t->rank > operand->rank)
        return false;
    const int64_t *last = t->dims + t->rank - 2;
    int64_t across = axis == DQ_QPARAM_ROWS ? last[1] : last[0];
    int64_t along = axis == DQ_QPARAM_ROWS ? last[0] : last[1];
    if (across != 1 || (along != 1 && (size_t)along != length))
        return false;
    out->step = along == 1 ? 0 : 1;
    size_t own = t->rank - 2, step = (size_t)along;
    for (size_t i = own; i-- > 0;) {
        if (t->dims[i] != 1 && t->dims[i] != operand->dims[operand->rank - t->rank + i])
            return false;
        out->strides[s->batch_rank - own + i] = t->dims[i] == 1 ? 0 : step;
        step *= (size_t)t->dims[i];
    }
    return true;
}

dq_status dq_qparam_resolve(const dq_op_call *call, uint32_t input, uint32_t operand, dq_qparam_axis axis,
                            const dq_matmul_shape *s, dq_qparam *out, dq_error *err)
{
    memset(out, 0, sizeof *out);
    const dq_tensor *t = dq_call_in(call, input), *of = call->in[operand];
    out->input = input;
    out->present = t != NULL;
    out->single = !t || t->count == 1;
    size_t length = axis == DQ_QPARAM_ROWS ? s->m : s->n;
    if (out->single || matches(t, of, axis, length, s, out))
        return DQ_OK;
    char text[DQ_SHAPE_TEXT], operand_text[DQ_SHAPE_TEXT];
    if (of->rank < 2)
        return dq_call_fail_input(call, err, input,
                                  "has shape %s, expected 1 element as input %u is a vector",
                                  dq_shape_text(t->rank, t->dims, text), operand);
    return dq_call_fail_input(
        call, err, input, "has shape %s, expected 1 element or %zu (%s of input %u, which has shape %s)",
        dq_shape_text(t->rank, t->dims, text), length, axis == DQ_QPARAM_ROWS ? "rows" : "columns", operand,
        dq_shape_text(of->rank, of->dims, operand_text));
}
