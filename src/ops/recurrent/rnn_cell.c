/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/rnn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

dq_status dq_rnn_want_shape(const dq_op_call *call, uint32_t i, size_t rank, size_t a, size_t b, size_t c,
                            dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    int64_t dims[3] = {(int64_t)a, (int64_t)b, (int64_t)c};
    if (!t || (t->rank == rank && memcmp(t->dims, dims, rank * sizeof *dims) == 0))
        return DQ_OK;
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s",
                              dq_shape_text(t->rank, t->dims, mine), dq_shape_text(rank, dims, theirs));
}

dq_status dq_rnn_check_lengths(const dq_op_call *call, size_t steps, size_t batch, dq_error *err)
{
    const dq_tensor *lengths = dq_call_in(call, DQ_RNN_LENGTHS);
    for (size_t i = 0; lengths && i < batch; i++) {
        int32_t length = dq_data(lengths, int32_t)[i];
        if (length < 0 || (size_t)length > steps)
            return dq_call_fail(call, err, DQ_BAD_INPUT,
                                "input %d has length %" PRId32 " for sequence %zu, expected 0 to %zu",
                                DQ_RNN_LENGTHS, length, i, steps);
    }
    return DQ_OK;
}

dq_status dq_rnn_direction(const dq_op_call *call, size_t *directions, bool *first_backward, dq_error *err)
{
    const char *direction = dq_node_string(call->node, "direction", "forward");
    *first_backward = strcmp(direction, "reverse") == 0;
    *directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    /* "foward" is the default in the definition of GRU-1. */
    bool forward = strcmp(direction, "forward") == 0 || strcmp(direction, "foward") == 0;
    if (*directions == 1 && !*first_backward && !forward)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'direction' is '%s', expected forward, reverse or bidirectional",
                            direction);
    return DQ_OK;
}

void dq_lstm_cell_step(const dq_rows_f32 *rows, const dq_lstm_cell *cell, float *gate, float *c, float *h)
{
    static const float one = 1;
    const dq_rnn_activation *functions = cell->functions;
    const float *peephole = cell->peepholes, clip = cell->clip;
    size_t n = cell->hidden;
    float *in = gate + DQ_LSTM_I * n, *out = gate + DQ_LSTM_O * n, *forget = gate + DQ_LSTM_F * n,
          *candidate = gate + DQ_LSTM_C * n;
    if (peephole) { /* h is workspace until the end */
        rows->mul(peephole + DQ_LSTM_I * n, 1, c, 1, n, h);
        rows->add(in, 1, h, 1, n, in);
        rows->mul(peephole + DQ_LSTM_F * n, 1, c, 1, n, h);
        rows->add(forget, 1, h, 1, n, forget);
        dq_rnn_activate(rows, &functions[0], clip, in, n);
        dq_rnn_activate(rows, &functions[0], clip, forget, n);
    } else {
        dq_rnn_activate(rows, &functions[0], clip, gate, 3 * n);
    }
    dq_rnn_activate(rows, &functions[1], clip, candidate, n);
    if (cell->coupled)
        rows->sub(&one, 0, in, 1, n, forget);
    rows->mul(forget, 1, c, 1, n, c);
    rows->mul(in, 1, candidate, 1, n, candidate);
    rows->add(c, 1, candidate, 1, n, c);
    if (peephole) {
        rows->mul(peephole + DQ_LSTM_O * n, 1, c, 1, n, h);
        rows->add(out, 1, h, 1, n, out);
        dq_rnn_activate(rows, &functions[0], clip, out, n);
    }
    memcpy(h, c, n * sizeof *h);
    dq_rnn_activate(rows, &functions[2], INFINITY, h, n);
    rows->mul(out, 1, h, 1, n, h);
}
