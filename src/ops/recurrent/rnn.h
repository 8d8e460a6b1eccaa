/* SPDX-License-Identifier: Apache-2.0 */
/* What RNN, GRU, LSTM and DynamicQuantizeLSTM share: shapes, places, and the LSTM's cell. */
#ifndef DQ_OPS_RNN_H
#define DQ_OPS_RNN_H

#include "ops/matmul/matmul_f32.h"
#include "ops/recurrent/rnn_activation.h"

enum { DQ_RNN_X, DQ_RNN_W, DQ_RNN_R, DQ_RNN_BIAS, DQ_RNN_LENGTHS, DQ_RNN_H, DQ_RNN_C, DQ_RNN_PEEPHOLES };
enum { DQ_RNN_Y, DQ_RNN_Y_H, DQ_RNN_Y_C };
enum { DQ_RNN_FUNCTIONS = 3 /* of a direction, at most */ };

typedef enum dq_rnn_kind { DQ_RNN, DQ_GRU, DQ_LSTM } dq_rnn_kind;

typedef struct dq_rnn {
    dq_rnn_kind kind;
    size_t gates, steps, batch, input, hidden, directions;
    size_t functions_each;            /* functions of a direction */
    bool batch_first, first_backward; /* layout 1; direction reverse */
    bool reset_after, coupled;        /* GRU: linear_before_reset; LSTM: input_forget */
    double clip;                      /* bound of the functions' arguments */
    dq_rnn_activation functions[2 * DQ_RNN_FUNCTIONS];
} dq_rnn;

/** Fails unless input i is left out or has the first `rank` of a, b, c as its shape. */
dq_status dq_rnn_want_shape(const dq_op_call *call, uint32_t i, size_t rank, size_t a, size_t b, size_t c,
                            dq_error *err);
/** Fails unless every sequence has 0 to `steps` steps. */
dq_status dq_rnn_check_lengths(const dq_op_call *call, size_t steps, size_t batch, dq_error *err);
/** Attribute `direction`: the number of directions, and whether the first goes backward. */
dq_status dq_rnn_direction(const dq_op_call *call, size_t *directions, bool *first_backward, dq_error *err);

/** Row of X, of `input` elements. */
static inline size_t dq_rnn_x_row(const dq_rnn *s, size_t t, size_t item)
{
    return s->batch_first ? item * s->steps + t : t * s->batch + item;
}
/** Where a row of Y begins. */
static inline size_t dq_rnn_y_at(const dq_rnn *s, size_t t, size_t direction, size_t item)
{
    size_t row = s->batch_first ? (item * s->steps + t) * s->directions + direction
                                : (t * s->directions + direction) * s->batch + item;
    return row * s->hidden;
}
/** Where a row of initial_h, Y_h and the like begins. */
static inline size_t dq_rnn_last_at(const dq_rnn *s, size_t direction, size_t item)
{
    return (s->batch_first ? item * s->directions + direction : direction * s->batch + item) * s->hidden;
}
/** Steps of a sequence, of `steps` at most. */
static inline size_t dq_rnn_length(const dq_op_call *call, size_t steps, size_t item)
{
    const dq_tensor *lengths = dq_call_in(call, DQ_RNN_LENGTHS);
    return lengths ? (size_t)dq_data(lengths, int32_t)[item] : steps;
}

/** The LSTM's gates, in the order in which they stand in weights. */
enum { DQ_LSTM_I, DQ_LSTM_O, DQ_LSTM_F, DQ_LSTM_C };

typedef struct dq_lstm_cell {
    size_t hidden;
    bool coupled; /* the forget gate is one less the input gate */
    float clip;
    const dq_rnn_activation *functions; /* of gates, candidate, cell */
    const float *peepholes;             /* NULL: none; those of i, o, f */
} dq_lstm_cell;

/** One step of one sequence, in float: from the four gates' sums (4 * hidden of them, which are spent) and
 * the old cell state `c` to the new `c` and the hidden state `h`. */
void dq_lstm_cell_step(const dq_rows_f32 *rows, const dq_lstm_cell *cell, float *gate, float *c, float *h);

/** RNN, GRU and LSTM whose tensors are float (rnn_float.c). */
typedef struct dq_rnn_float {
    dq_matmul_f32 from_x;
    size_t rows;                        /* sequences that go step by step together */
    size_t columns[2];                  /* of R: gates that see h, and GRU's hidden gate where it does not */
    size_t padded_columns[2], state;    /* columns and states, in whole panels */
    const float *packed;                /* R, laid out once; NULL: in each run */
    size_t packed_size;                 /* floats of a direction, the columns of [0] first */
    size_t packed_at, sums_at, bias_at; /* scratch */
} dq_rnn_float;

/** For prepare and run of the operators, once `s` is filled in. */
dq_status dq_rnn_float_prepare(dq_op_call *call, const dq_rnn *s, dq_rnn_float *f, dq_error *err);
void dq_rnn_float_run(const dq_op_call *call, const dq_rnn *s, const dq_rnn_float *f);

#endif
