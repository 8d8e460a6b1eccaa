/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN. Float tensors use rnn_float.c. Other types are computed here in double and rounded when
 * they are stored. A sum has eight interleaved partial sums, which are added in a fixed order. So the bits
 * depend on neither threads nor ISA. A task is one sequence of one direction. */
#include "ops/recurrent/rnn.h"
#include "base/checked.h"
#include "ops/widened.h"

#include <math.h>
#include <string.h>

enum { X = DQ_RNN_X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum { LANES = 8 };

static const size_t gates_of[] = {1, 3, 4};     /* RNN: i; GRU: z r h; LSTM: i o f c */
static const size_t functions_of[] = {1, 2, 3}; /* activations of a direction */

typedef struct state {
    dq_rnn shape;
    bool floats;
    dq_rnn_float f;
} state;

/* ---- Shapes -------------------------------------------------------------------------------------------- */

static dq_status read_shapes(const dq_op_call *call, dq_rnn_kind what, dq_rnn *s, dq_error *err)
{
    const dq_tensor *x = call->in[X], *r = call->in[R];
    s->kind = what;
    s->gates = gates_of[what];
    s->functions_each = functions_of[what];
    s->batch_first = dq_node_int(call->node, "layout", 0) != 0;
    DQ_TRY(dq_rnn_direction(call, &s->directions, &s->first_backward, err));
    for (uint32_t i = X; i <= R; i++)
        if (call->in[i]->rank != 3)
            return dq_call_fail_input(call, err, i, "has rank %u, expected 3", call->in[i]->rank);
    s->steps = (size_t)x->dims[s->batch_first];
    s->batch = (size_t)x->dims[!s->batch_first];
    s->input = (size_t)x->dims[2];
    s->hidden = (size_t)r->dims[2];
    size_t rows, d = s->directions, h = s->hidden, b = s->batch;
    if (!dq_mul_size(2 * s->gates, h, &rows))
        return dq_call_fail_input(call, err, R, "has too many columns");
    DQ_TRY(dq_rnn_want_shape(call, W, 3, d, rows / 2, s->input, err));
    DQ_TRY(dq_rnn_want_shape(call, R, 3, d, rows / 2, h, err));
    DQ_TRY(dq_rnn_want_shape(call, BIAS, 2, d, rows, 0, err));
    DQ_TRY(dq_rnn_want_shape(call, LENGTHS, 1, b, 0, 0, err));
    DQ_TRY(dq_rnn_want_shape(call, INITIAL_H, 3, s->batch_first ? b : d, s->batch_first ? d : b, h, err));
    if (what != DQ_LSTM)
        return DQ_OK;
    DQ_TRY(dq_rnn_want_shape(call, INITIAL_C, 3, s->batch_first ? b : d, s->batch_first ? d : b, h, err));
    return dq_rnn_want_shape(call, PEEPHOLES, 2, d, 3 * h, 0, err);
}

static dq_status infer(dq_op_call *call, dq_rnn_kind what, dq_error *err)
{
    dq_rnn s = {0};
    DQ_TRY(read_shapes(call, what, &s, err));
    int64_t steps = (int64_t)s.steps, batch = (int64_t)s.batch, d = (int64_t)s.directions,
            h = (int64_t)s.hidden;
    int64_t all[4] = {steps, d, batch, h}, all_first[4] = {batch, steps, d, h};
    int64_t last[3] = {d, batch, h}, last_first[3] = {batch, d, h};
    dq_dtype dtype = call->in[X]->dtype;
    DQ_TRY(dq_call_output(call, DQ_RNN_Y, dtype, 4, s.batch_first ? all_first : all, err));
    for (uint32_t i = DQ_RNN_Y_H; i <= DQ_RNN_Y_C; i++)
        DQ_TRY(dq_call_output(call, i, dtype, 3, s.batch_first ? last_first : last, err));
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_rnn_kind what, dq_error *err)
{
    static const char *const absent[][DQ_RNN_FUNCTIONS] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *own = call->state;
    dq_rnn *s = &own->shape;
    DQ_TRY(read_shapes(call, what, s, err));
    DQ_TRY(dq_rnn_activations(call, absent[what], s->functions_each, s->directions, s->functions, err));
    s->reset_after = dq_node_int(call->node, "linear_before_reset", 0) != 0;
    s->coupled = dq_node_int(call->node, "input_forget", 0) != 0;
    s->clip = (double)dq_node_float(call->node, "clip", INFINITY);
    own->floats = call->in[X]->dtype == DQ_FLOAT;
    if (own->floats)
        return dq_rnn_float_prepare(call, s, &own->f, err);
    size_t numbers; /* doubles: gates, h, c, a spare row, x */
    if (!dq_mul_size(s->gates + 3, s->hidden, &numbers) || !dq_add_size(numbers, s->input, &numbers) ||
        !dq_mul_size(numbers, sizeof(double), &call->worker_scratch_size))
        return dq_call_fail_input(call, err, R, "has too many columns");
    return DQ_OK;
}

/* ---- One sequence -------------------------------------------------------------------------------------- */

typedef struct sequence {
    const dq_op_call *call;
    const dq_rnn *s;
    size_t direction, item;
    const dq_rnn_activation *functions;
    double *gate, *h, *c, *spare, *x;
} sequence;

static double get(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_DOUBLE ? dq_data(t, double)[i] : dq_tensor_get_double(t, i);
}

/* The sum of w[at + i] · v[i]. */
static double dot(const dq_tensor *w, size_t at, const double *v, size_t n)
{
    double lane[LANES] = {0};
    size_t i = 0;
    if (w->dtype == DQ_DOUBLE)
        for (const double *from = dq_data(w, double) + at; i + LANES <= n; i += LANES)
            for (size_t k = 0; k < LANES; k++)
                lane[k] += from[i + k] * v[i + k];
    for (; i < n; i++)
        lane[i % LANES] += get(w, at + i) * v[i];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static double apply(const sequence *q, size_t function, double x)
{
    const dq_rnn_activation *f = &q->functions[function];
    double clip = q->s->clip;
    return f->fn(x < -clip ? -clip : x > clip ? clip : x, f->alpha, f->beta);
}

/* from_x: row `row` of W times x, plus its bias. from_h: row `row` of R times h, plus its bias. */
static double from_x(const sequence *q, size_t row)
{
    const dq_rnn *s = q->s;
    const dq_tensor *bias = dq_call_in(q->call, BIAS);
    size_t rows = s->gates * s->hidden, at = q->direction * rows + row;
    double b = bias ? get(bias, q->direction * 2 * rows + row) : 0;
    return dot(q->call->in[W], at * s->input, q->x, s->input) + b;
}

static double from_h(const sequence *q, size_t row, const double *h)
{
    const dq_rnn *s = q->s;
    const dq_tensor *bias = dq_call_in(q->call, BIAS);
    size_t rows = s->gates * s->hidden, at = q->direction * rows + row;
    double b = bias ? get(bias, q->direction * 2 * rows + rows + row) : 0;
    return dot(q->call->in[R], at * s->hidden, h, s->hidden) + b;
}

static void step_lstm(const sequence *q)
{
    const dq_tensor *p = dq_call_in(q->call, PEEPHOLES);
    const dq_rnn_activation *last = &q->functions[2];
    size_t n = q->s->hidden, at = q->direction * 3 * n;
    double *gate = q->gate;
    for (size_t row = 0; row < 4 * n; row++)
        gate[row] = from_x(q, row) + from_h(q, row, q->h);
    for (size_t j = 0; j < n; j++) {
        double old = q->c[j], peep[3] = {0};
        for (size_t g = 0; p && g < 3; g++)
            peep[g] = get(p, at + g * n + j);
        double in = apply(q, 0, gate[DQ_LSTM_I * n + j] + peep[DQ_LSTM_I] * old);
        double forget = q->s->coupled ? 1 - in : apply(q, 0, gate[DQ_LSTM_F * n + j] + peep[DQ_LSTM_F] * old);
        q->c[j] = forget * old + in * apply(q, 1, gate[DQ_LSTM_C * n + j]);
        double out = apply(q, 0, gate[DQ_LSTM_O * n + j] + peep[DQ_LSTM_O] * q->c[j]);
        q->h[j] = out * last->fn(q->c[j], last->alpha, last->beta);
    }
}

static void step_gru(const sequence *q)
{
    enum { Z, RESET, H };
    size_t n = q->s->hidden;
    for (size_t row = 0; row < 2 * n; row++)
        q->gate[row] = apply(q, 0, from_x(q, row) + from_h(q, row, q->h));
    for (size_t j = 0; j < n; j++)
        q->spare[j] = q->gate[RESET * n + j] * q->h[j];
    for (size_t j = 0; j < n; j++) {
        double past = q->s->reset_after ? q->gate[RESET * n + j] * from_h(q, H * n + j, q->h)
                                        : from_h(q, H * n + j, q->spare);
        q->gate[H * n + j] = apply(q, 1, from_x(q, H * n + j) + past);
    }
    for (size_t j = 0; j < n; j++)
        q->h[j] = (1 - q->gate[Z * n + j]) * q->gate[H * n + j] + q->gate[Z * n + j] * q->h[j];
}

static void step_rnn(const sequence *q)
{
    size_t n = q->s->hidden;
    for (size_t j = 0; j < n; j++)
        q->spare[j] = apply(q, 0, from_x(q, j) + from_h(q, j, q->h));
    memcpy(q->h, q->spare, n * sizeof *q->h);
}

/* ---- All sequences ------------------------------------------------------------------------------------- */

static void put_row(dq_tensor *to, size_t at, const double *from, size_t n)
{
    for (size_t j = 0; j < n; j++)
        dq_tensor_put_double(to, at + j, from ? from[j] : 0);
}

static void put_step(const sequence *q, size_t t, const double *h)
{
    if (q->call->out[DQ_RNN_Y])
        put_row(q->call->out[DQ_RNN_Y], dq_rnn_y_at(q->s, t, q->direction, q->item), h, q->s->hidden);
}

static void run_sequence(const sequence *q, size_t length)
{
    const dq_rnn *s = q->s;
    const dq_op_call *call = q->call;
    const dq_tensor *h = dq_call_in(call, INITIAL_H),
                    *c = s->kind == DQ_LSTM ? dq_call_in(call, INITIAL_C) : NULL;
    bool backward = s->first_backward || q->direction == 1;
    size_t at = dq_rnn_last_at(s, q->direction, q->item);
    for (size_t j = 0; j < s->hidden; j++) {
        q->h[j] = h ? get(h, at + j) : 0;
        q->c[j] = c ? get(c, at + j) : 0;
    }
    for (size_t i = 0; i < length && !dq_threads_cancelled(call->threads); i++) {
        size_t t = backward ? length - 1 - i : i;
        size_t row = dq_rnn_x_row(s, t, q->item);
        for (size_t k = 0; k < s->input; k++)
            q->x[k] = get(call->in[X], row * s->input + k);
        if (s->kind == DQ_LSTM)
            step_lstm(q);
        else if (s->kind == DQ_GRU)
            step_gru(q);
        else
            step_rnn(q);
        put_step(q, t, q->h);
    }
    for (size_t t = length; t < s->steps; t++)
        put_step(q, t, NULL);
    if (call->out_count > DQ_RNN_Y_H && call->out[DQ_RNN_Y_H])
        put_row(call->out[DQ_RNN_Y_H], at, q->h, s->hidden);
    if (call->out_count > DQ_RNN_Y_C && call->out[DQ_RNN_Y_C])
        put_row(call->out[DQ_RNN_Y_C], at, q->c, s->hidden);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *own = call->state;
    const dq_rnn *s = &own->shape;
    double *scratch = dq_call_worker_scratch(call, worker);
    for (size_t i = begin; i < end; i++) {
        sequence q = {.call = call, .s = s, .direction = i / s->batch, .item = i % s->batch, .gate = scratch};
        q.functions = s->functions + q.direction * s->functions_each;
        q.h = q.gate + s->gates * s->hidden;
        q.c = q.h + s->hidden;
        q.spare = q.c + s->hidden;
        q.x = q.spare + s->hidden;
        run_sequence(&q, dq_rnn_length(call, s->steps, q.item));
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *own = call->state;
    const dq_rnn *s = &own->shape;
    DQ_TRY(dq_rnn_check_lengths(call, s->steps, s->batch, err));
    if (own->floats)
        dq_rnn_float_run(call, s, &own->f);
    else
        dq_parallel(call->threads, s->directions * s->batch, 1, piece, &call);
    return DQ_OK;
}

#define RECURRENT(symbol, what)                                                                              \
    static dq_status symbol##_infer(dq_op_call *call, dq_error *err)                                         \
    {                                                                                                        \
        return infer(call, what, err);                                                                       \
    }                                                                                                        \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, what, err);                                                                     \
    }                                                                                                        \
    DQ_OP_WIDENED(symbol, true, symbol##_infer, symbol##_prepare, run, DQ_OP_PACKS)

RECURRENT(dq_op_rnn, DQ_RNN)
RECURRENT(dq_op_gru, DQ_GRU)
RECURRENT(dq_op_lstm, DQ_LSTM)
