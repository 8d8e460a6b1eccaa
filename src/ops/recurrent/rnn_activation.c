/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/rnn_activation.h"
#include "base/math.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static double relu(double x, double alpha, double beta)
{
    (void)alpha;
    (void)beta;
    return x < 0 ? 0 : x;
}

/* tanh with a relative difference of at most 2e-15 to dq_tanh, in half its time. */
static double tangent(double x)
{
    double size = fabs(x), square = x * x;
    if (size < 0.02) /* Taylor series: the quotient below would suffer from cancellation */
        return x * (1 + square * (-1.0 / 3 +
                                  square * (2.0 / 15 + square * (-17.0 / 315 + square * (62.0 / 2835)))));
    double e = dq_exp(-2 * size);
    return copysign((1 - e) / (1 + e), x);
}

static double tanh_of(double x, double alpha, double beta)
{
    (void)alpha;
    (void)beta;
    return tangent(x);
}

static double sigmoid(double x, double alpha, double beta)
{
    (void)alpha;
    (void)beta;
    double e = dq_exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static double affine(double x, double alpha, double beta)
{
    return alpha * x + beta;
}

static double leaky_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x < 0 ? alpha * x : x;
}

static double thresholded_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x < alpha ? 0 : x;
}

static double scaled_tanh(double x, double alpha, double beta)
{
    return alpha * tangent(beta * x);
}

static double hard_sigmoid(double x, double alpha, double beta)
{
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double elu(double x, double alpha, double beta)
{
    (void)beta;
    return x < 0 ? alpha * dq_expm1(x) : x;
}

static double softsign(double x, double alpha, double beta)
{
    (void)alpha;
    (void)beta;
    return x / (1 + fabs(x));
}

static double softplus(double x, double alpha, double beta)
{
    (void)alpha;
    (void)beta;
    return (x > 0 ? x : 0) + dq_log1p(dq_exp(-fabs(x)));
}

static const struct {
    const char *name;
    dq_rnn_activation_fn *fn;
    bool takes_alpha, takes_beta;
    double alpha, beta;
} functions[] = {
    {"Sigmoid", sigmoid, false, false, 0, 0},
    {"Tanh", tanh_of, false, false, 0, 0},
    {"Relu", relu, false, false, 0, 0},
    {"Affine", affine, true, true, 1, 0},
    {"LeakyRelu", leaky_relu, true, false, 0.01, 0},
    {"ThresholdedRelu", thresholded_relu, true, false, 1, 0},
    {"ScaledTanh", scaled_tanh, true, true, 1, 1},
    {"HardSigmoid", hard_sigmoid, true, true, 0.2, 0.5},
    {"Elu", elu, true, false, 1, 0},
    {"Softsign", softsign, false, false, 0, 0},
    {"Softplus", softplus, false, false, 0, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

void dq_rnn_activate(const dq_rows_f32 *rows, const dq_rnn_activation *f, float clip, float *x, size_t n)
{
    if (clip < INFINITY)
        rows->clip(x, n, -clip, clip, x);
    if (f->fn == sigmoid)
        rows->sigmoid(x, n, x);
    else if (f->fn == tanh_of)
        rows->tanh(x, n, x);
    else
        for (size_t i = 0; i < n; i++)
            x[i] = (float)f->fn((double)x[i], f->alpha, f->beta);
}

static size_t find(const char *name)
{
    size_t f = 0;
    while (f < FUNCTIONS && strcasecmp(functions[f].name, name) != 0)
        f++;
    return f;
}

dq_rnn_activation_fn *dq_rnn_activation_find(const char *name)
{
    size_t f = find(name);
    return f == FUNCTIONS ? NULL : functions[f].fn;
}

static const char *name_of(const dq_attr *names, const char *const *absent, size_t count, size_t i)
{
    return names ? names->u.strings[i].bytes : absent[i % count];
}

/* The next element of a list of floats, or `absent` if none is left. */
static double take(const dq_attr *list, size_t *used, double absent)
{
    return list && *used < list->count ? (double)list->u.floats[(*used)++] : absent;
}

dq_status dq_rnn_activations(const dq_op_call *call, const char *const *absent, size_t count,
                             size_t directions, dq_rnn_activation *to, dq_error *err)
{
    const dq_attr *names = dq_node_attr(call->node, "activations");
    const dq_attr *alphas = dq_node_attr(call->node, "activation_alpha");
    const dq_attr *betas = dq_node_attr(call->node, "activation_beta");
    size_t alphas_used = 0, betas_used = 0;
    /* a schema's default may name the functions of two directions for a node with one */
    if (names && names->count < count * directions)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'activations' has %zu names, expected %zu",
                            names->count, count * directions);
    for (size_t i = 0; i < count * directions; i++) {
        const char *name = name_of(names, absent, count, i);
        size_t f = find(name);
        if (f == FUNCTIONS)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'activations' has '%s', which the standard does not know", name);
        to[i].fn = functions[f].fn;
        to[i].alpha =
            functions[f].takes_alpha ? take(alphas, &alphas_used, functions[f].alpha) : functions[f].alpha;
        to[i].beta =
            functions[f].takes_beta ? take(betas, &betas_used, functions[f].beta) : functions[f].beta;
    }
    return DQ_OK;
}
