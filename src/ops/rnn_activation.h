/* The activation functions that LSTM, GRU and RNN name in their attributes. */
#ifndef DQ_OPS_RNN_ACTIVATION_H
#define DQ_OPS_RNN_ACTIVATION_H

#include "ops/op.h"

typedef struct dq_rnn_activation {
    double (*fn)(double x, double alpha, double beta);
    double alpha, beta;
} dq_rnn_activation;

/** The node's `activations`, with their `activation_alpha` and `activation_beta`, which are handed out in
 * order to the functions that use them; `count` for each direction. Without the attribute: `absent`, for each
 * direction the same. */
dq_status dq_rnn_activations(const dq_op_call *call, const char *const *absent, size_t count,
                             size_t directions, dq_rnn_activation *to, dq_error *err);

#endif
