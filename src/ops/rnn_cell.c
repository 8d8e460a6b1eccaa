#include "ops/rnn.h"

#include <string.h>

dq_status dq_rnn_want_shape(const dq_op_call *call, uint32_t i, size_t rank, size_t a, size_t b, size_t c,
                            dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    int64_t dims[3] = {(int64_t)a, (int64_t)b, (int64_t)c};
    if (!t || (t->rank == rank && memcmp(t->dims, dims, rank * sizeof *dims) == 0))
        return DQ_OK;
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, wanted %s", dq_shape_text(t->rank, t->dims, mine),
                              dq_shape_text(rank, dims, theirs));
}

dq_status dq_rnn_direction(const dq_op_call *call, size_t *directions, bool *first_backward, dq_error *err)
{
    const char *direction = dq_node_string(call->node, "direction", "forward");
    *first_backward = strcmp(direction, "reverse") == 0;
    *directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    if (*directions == 1 && !*first_backward && strcmp(direction, "forward") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'direction' is '%s', wanted forward, reverse or bidirectional",
                            direction);
    return DQ_OK;
}

static double apply(const dq_lstm_cell *cell, size_t function, double x)
{
    const dq_rnn_activation *f = &cell->functions[function];
    double clip = cell->clip;
    return f->fn(x < -clip ? -clip : x > clip ? clip : x, f->alpha, f->beta);
}

static double peephole(const dq_lstm_cell *cell, size_t gate, size_t j)
{
    const dq_tensor *p = cell->peepholes;
    size_t at = cell->peepholes_at + gate * cell->hidden + j;
    if (!p)
        return 0;
    return p->dtype == DQ_FLOAT ? (double)dq_data(p, float)[at] : dq_tensor_get_double(p, at);
}

void dq_lstm_cell_step(const dq_lstm_cell *cell, const double *gate, double *c, double *h)
{
    size_t n = cell->hidden;
    const dq_rnn_activation *last = &cell->functions[2];
    for (size_t j = 0; j < n; j++) {
        double old = c[j];
        double in = apply(cell, 0, gate[DQ_LSTM_I * n + j] + peephole(cell, DQ_LSTM_I, j) * old);
        double forget = 1 - in;
        if (!cell->coupled)
            forget = apply(cell, 0, gate[DQ_LSTM_F * n + j] + peephole(cell, DQ_LSTM_F, j) * old);
        c[j] = forget * old + in * apply(cell, 1, gate[DQ_LSTM_C * n + j]);
        double out = apply(cell, 0, gate[DQ_LSTM_O * n + j] + peephole(cell, DQ_LSTM_O, j) * c[j]);
        h[j] = out * last->fn(c[j], last->alpha, last->beta);
    }
}
