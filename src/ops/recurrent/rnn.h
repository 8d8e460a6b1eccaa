/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks: shapes, offsets in inputs and outputs, and the LSTM cell, shared by RNN, GRU, LSTM and
 * DynamicQuantizeLSTM. */
#ifndef DQ_OPS_RNN_H
#define DQ_OPS_RNN_H

#include "ops/matmul/matmul_f32.h"
#include "ops/recurrent/rnn_activation.h"

enum { DQ_RNN_X, DQ_RNN_W, DQ_RNN_R, DQ_RNN_BIAS, DQ_RNN_LENGTHS, DQ_RNN_H, DQ_RNN_C, DQ_RNN_PEEPHOLES };
enum { DQ_RNN_Y, DQ_RNN_Y_H, DQ_RNN_Y_C };
enum { DQ_RNN_FUNCTIONS = 3 /* activation functions of a direction, at most */ };

typedef enum dq_rnn_kind { DQ_RNN, DQ_GRU, DQ_LSTM } dq_rnn_kind;

typedef struct dq_rnn {
    dq_rnn_kind kind;
    size_t gates, steps, batch, input, hidden, directions;
    size_t functions_each;            /* activation functions of a direction */
    bool batch_first, first_backward; /* layout is 1; direction is reverse */
    bool reset_after, coupled;        /* GRU: linear_before_reset; LSTM: input_forget */
    double clip;                      /* arguments of activation functions are clipped to [-clip, clip] */
    dq_rnn_activation functions[2 * DQ_RNN_FUNCTIONS];
} dq_rnn;

/** Fails unless input i is omitted or has the first `rank` of a, b, c as its shape. */
dq_status dq_rnn_want_shape(const dq_op_call *call, uint32_t i, size_t rank, size_t a, size_t b, size_t c,
                            dq_error *err);
/** Fails unless every sequence has a length of 0 to `steps`. */
dq_status dq_rnn_check_lengths(const dq_op_call *call, size_t steps, size_t batch, dq_error *err);
/** Reads attribute `direction`: the number of directions, and whether the first one runs backward. */
dq_status dq_rnn_direction(const dq_op_call *call, size_t *directions, bool *first_backward, dq_error *err);

/** Number of the row of X (of `input` elements) for time step t of sequence `item`. */
static inline size_t dq_rnn_x_row(const dq_rnn *s, size_t t, size_t item)
{
    return s->batch_first ? item * s->steps + t : t * s->batch + item;
}
/** Offset of a row of Y, in elements. */
static inline size_t dq_rnn_y_at(const dq_rnn *s, size_t t, size_t direction, size_t item)
{
    size_t row = s->batch_first ? (item * s->steps + t) * s->directions + direction
                                : (t * s->directions + direction) * s->batch + item;
    return row * s->hidden;
}
/** Offset of a row of a state (initial_h, initial_c, Y_h, Y_c), in elements. */
static inline size_t dq_rnn_last_at(const dq_rnn *s, size_t direction, size_t item)
{
    return (s->batch_first ? item * s->directions + direction : direction * s->batch + item) * s->hidden;
}
/** Length of sequence `item` in time steps; `steps` if input sequence_lens is omitted. */
static inline size_t dq_rnn_length(const dq_op_call *call, size_t steps, size_t item)
{
    const dq_tensor *lengths = dq_call_in(call, DQ_RNN_LENGTHS);
    return lengths ? (size_t)dq_data(lengths, int32_t)[item] : steps;
}

/** Gates of the LSTM in the order of the weights: input, output, forget, cell candidate. */
enum { DQ_LSTM_I, DQ_LSTM_O, DQ_LSTM_F, DQ_LSTM_C };

typedef struct dq_lstm_cell {
    size_t hidden;
    bool coupled; /* the forget gate is 1 - the input gate */
    float clip;
    const dq_rnn_activation *functions; /* of the gates, the candidate, and the cell */
    const float *peepholes;             /* of gates i, o, f; NULL: none */
} dq_lstm_cell;

/** One time step of one sequence in float. `gate` holds the sums of the four gates (4 * hidden), which are
 * overwritten. The cell state `c` is updated in place, and the hidden state is written to `h`. */
void dq_lstm_cell_step(const dq_rows_f32 *rows, const dq_lstm_cell *cell, float *gate, float *c, float *h);

/** RNN, GRU and LSTM with float tensors (rnn_float.c). */
typedef struct dq_rnn_float {
    dq_matmul_f32 from_x;
    size_t rows;                        /* sequences in a task, multiplied as one batch */
    size_t columns[2];                  /* columns of Rᵀ: of all gates, but of GRU's hidden gate in [1] */
    size_t padded_columns[2], state;    /* columns, and elements of a state, rounded up to whole panels */
    const float *packed;                /* R packed in prepare; NULL: in each run */
    size_t packed_size;                 /* floats of a direction, columns[0] first */
    size_t packed_at, sums_at, bias_at; /* byte offsets in scratch */
} dq_rnn_float;

/** For prepare and run of the operators, after `s` is set. */
dq_status dq_rnn_float_prepare(dq_op_call *call, const dq_rnn *s, dq_rnn_float *f, dq_error *err);
void dq_rnn_float_run(const dq_op_call *call, const dq_rnn *s, const dq_rnn_float *f);

#endif
