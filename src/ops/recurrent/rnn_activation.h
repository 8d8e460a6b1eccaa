/* SPDX-License-Identifier: Apache-2.0 */
/* The activation functions that LSTM, GRU and RNN name in their attributes. */
#ifndef DQ_OPS_RNN_ACTIVATION_H
#define DQ_OPS_RNN_ACTIVATION_H

#include "ops/op.h"

typedef double dq_rnn_activation_fn(double x, double alpha, double beta);

typedef struct dq_rnn_activation {
    dq_rnn_activation_fn *fn;
    double alpha, beta;
} dq_rnn_activation;

/** x[i] = f(x[i] within [-clip, clip]), in float. */
void dq_rnn_activate(const dq_rows_f32 *rows, const dq_rnn_activation *f, float clip, float *x, size_t n);

/** The function of a name (letters' case aside); NULL when there is none. */
dq_rnn_activation_fn *dq_rnn_activation_find(const char *name);

/** The node's `activations`, with their `activation_alpha` and `activation_beta`, which are handed out in
 * order to the functions that use them; `count` for each direction. Without the attribute: `absent`, for each
 * direction the same. */
dq_status dq_rnn_activations(const dq_op_call *call, const char *const *absent, size_t count,
                             size_t directions, dq_rnn_activation *to, dq_error *err);

#endif
