/* SPDX-License-Identifier: Apache-2.0 */
/* Activation functions of LSTM, GRU and RNN, which attribute `activations` names. */
#ifndef DQ_OPS_RNN_ACTIVATION_H
#define DQ_OPS_RNN_ACTIVATION_H

#include "ops/op.h"

typedef double dq_rnn_activation_fn(double x, double alpha, double beta);

typedef struct dq_rnn_activation {
    dq_rnn_activation_fn *fn;
    double alpha, beta;
} dq_rnn_activation;

/** x[i] = f(clamp(x[i], -clip, clip)) for i < n, in float. */
void dq_rnn_activate(const dq_rows_f32 *rows, const dq_rnn_activation *f, float clip, float *x, size_t n);

/** The function of a name, case-insensitive; NULL if there is none. */
dq_rnn_activation_fn *dq_rnn_activation_find(const char *name);

/** Reads attribute `activations`: `count` functions for each direction. Elements of `activation_alpha` and
 * `activation_beta` go in order to the functions that use them. Without the attribute, each direction has the
 * functions `absent`. */
dq_status dq_rnn_activations(const dq_op_call *call, const char *const *absent, size_t count,
                             size_t directions, dq_rnn_activation *to, dq_error *err);

#endif
