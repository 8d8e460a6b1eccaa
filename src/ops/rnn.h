/* What LSTM and DynamicQuantizeLSTM share: shapes, and the cell. */
#ifndef DQ_OPS_RNN_H
#define DQ_OPS_RNN_H

#include "ops/rnn_activation.h"

/** Fails unless input i is left out or has the first `rank` of a, b, c as its shape. */
dq_status dq_rnn_want_shape(const dq_op_call *call, uint32_t i, size_t rank, size_t a, size_t b, size_t c,
                            dq_error *err);
/** Attribute `direction`: the number of directions, and whether the first goes backward. */
dq_status dq_rnn_direction(const dq_op_call *call, size_t *directions, bool *first_backward, dq_error *err);

/** The LSTM's gates, in the order in which they stand in weights. */
enum { DQ_LSTM_I, DQ_LSTM_O, DQ_LSTM_F, DQ_LSTM_C };

typedef struct dq_lstm_cell {
    size_t hidden;
    bool coupled;                       /* the forget gate is one less the input gate */
    double clip;                        /* bound of the functions' arguments */
    const dq_rnn_activation *functions; /* of gates, candidate, cell */
    const dq_tensor *peepholes;         /* NULL: none; those of i, o, f begin at element peepholes_at */
    size_t peepholes_at;
} dq_lstm_cell;

/** One step of one sequence: from the four gates' sums (4 * hidden of them) and the old cell state `c` to the
 * new `c` and hidden state `h`. */
void dq_lstm_cell_step(const dq_lstm_cell *cell, const double *gate, double *c, double *h);

#endif
