/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft DynamicQuantizeLSTM: an LSTM with dynamically quantized matrix products. X is quantized to
 * uint8 once, by its range over all steps of the longest sequence. The hidden state is quantized at each step
 * by the range of the whole batch; after the end of a sequence its state counts as zeros. Integer sums are
 * multiplied by the product of both scales, as in DynamicQuantizeMatMul. The rest is as in LSTM. */
#include "base/checked.h"
#include "ops/matmul/qproduct.h"
#include "ops/quantize/dynamic_quantize.h"
#include "ops/recurrent/rnn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { X = DQ_RNN_X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };
enum { Y = DQ_RNN_Y, Y_H, Y_C };
enum { GATES = 4, FUNCTIONS = 3, CELLS_PER_TASK = 1024 /* approximate cells of a parallel task */ };

/* Byte offsets in scratch. */
typedef struct offsets {
    size_t w, r, range, qvalues, x_sums, h_sums, gates, h, c, seen;
} offsets;

typedef struct state {
    size_t steps, batch, input, hidden, directions;
    bool first_backward, coupled;
    double clip;
    dq_rnn_activation functions[2 * FUNCTIONS];
    dq_qproduct from_x, from_h;
    offsets at;
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* Checks the shape of a scale or zero point: one for each direction, or for each column of each one. */
static dq_status check_param(const dq_op_call *call, uint32_t i, const state *s, dq_error *err)
{
    if (call->in[i]->rank == 1)
        return dq_rnn_want_shape(call, i, 1, s->directions, 0, 0, err);
    return dq_rnn_want_shape(call, i, 2, s->directions, GATES * s->hidden, 0, err);
}

static dq_status read_shapes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    DQ_TRY(dq_rnn_direction(call, &s->directions, &s->first_backward, err));
    for (uint32_t i = X; i <= R; i++)
        if (call->in[i]->rank != 3)
            return dq_call_fail_input(call, err, i, "has rank %u, expected 3", call->in[i]->rank);
    s->steps = (size_t)x->dims[0];
    s->batch = (size_t)x->dims[1];
    s->input = (size_t)x->dims[2];
    s->hidden = (size_t)call->in[R]->dims[1];
    size_t rows, d = s->directions, h = s->hidden, b = s->batch;
    if (!dq_mul_size(2 * GATES, h, &rows))
        return dq_call_fail_input(call, err, R, "has too many rows");
    int64_t value = dq_node_int(call->node, "hidden_size", (int64_t)h);
    if (value != (int64_t)h)
        return dq_call_fail_input(call, err, R, "has %zu rows, expected %" PRId64 ", attribute 'hidden_size'",
                                  h, value);
    DQ_TRY(dq_rnn_want_shape(call, W, 3, d, s->input, rows / 2, err));
    DQ_TRY(dq_rnn_want_shape(call, R, 3, d, h, rows / 2, err));
    DQ_TRY(dq_rnn_want_shape(call, BIAS, 2, d, rows, 0, err));
    DQ_TRY(dq_rnn_want_shape(call, LENGTHS, 1, b, 0, 0, err));
    DQ_TRY(dq_rnn_want_shape(call, INITIAL_H, 3, d, b, h, err));
    DQ_TRY(dq_rnn_want_shape(call, INITIAL_C, 3, d, b, h, err));
    DQ_TRY(dq_rnn_want_shape(call, PEEPHOLES, 2, d, 3 * h, 0, err));
    for (uint32_t i = W_SCALE; i <= R_ZERO; i++)
        DQ_TRY(check_param(call, i, s, err));
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_shapes(call, &s, err));
    int64_t dims[4] = {(int64_t)s.steps, (int64_t)s.directions, (int64_t)s.batch, (int64_t)s.hidden};
    DQ_TRY(dq_call_output(call, Y, DQ_FLOAT, 4, dims, err));
    DQ_TRY(dq_call_output(call, Y_H, DQ_FLOAT, 3, dims + 1, err));
    return dq_call_output(call, Y_C, DQ_FLOAT, 3, dims + 1, err);
}

/* Reserves scratch, with slack after it: 8-bit kernels read a little past their operands. */
static bool reserve(dq_op_call *call, size_t a, size_t b, size_t width, size_t *at)
{
    return dq_call_reserve(call, a, b, width, at) &&
           dq_add_size(call->scratch_size, DQ_GEMM_S8_SLACK, &call->scratch_size);
}

static bool reserve_all(dq_op_call *call, state *s, size_t rows)
{
    size_t columns = GATES * s->hidden, states = s->batch * s->hidden;
    size_t most = call->in[X]->count > states ? call->in[X]->count : states;
    offsets *at = &s->at;
    call->scratch_size = 0;
    return reserve(call, s->from_x.packed ? 0 : s->from_x.w.size, 1, 1, &at->w) &&
           reserve(call, s->from_h.packed ? 0 : s->from_h.w.size, 1, 1, &at->r) &&
           reserve(call, dq_dynamic_scratch(most), 1, 1, &at->range) &&
           reserve(call, most, 1, 1, &at->qvalues) &&
           reserve(call, rows, columns, sizeof(float), &at->x_sums) &&
           reserve(call, s->batch, columns, sizeof(float), &at->h_sums) &&
           reserve(call, s->batch, columns, sizeof(float), &at->gates) &&
           reserve(call, states, 1, sizeof(float), &at->h) &&
           reserve(call, states, 1, sizeof(float), &at->c) &&
           reserve(call, states, 1, sizeof(float), &at->seen);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    static const char *const absent[FUNCTIONS] = {"Sigmoid", "Tanh", "Tanh"};
    size_t rows, cells;
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_shapes(call, s, err));
    DQ_TRY(dq_rnn_activations(call, absent, FUNCTIONS, s->directions, s->functions, err));
    s->coupled = dq_node_int(call->node, "input_forget", 0) != 0;
    s->clip = (double)dq_node_float(call->node, "clip", INFINITY);
    size_t columns = GATES * s->hidden;
    if (!dq_mul_size(s->steps, s->batch, &rows) || !dq_mul_size(s->batch, s->hidden, &cells))
        return dq_no_memory(err, SIZE_MAX, "sequences");
    const dq_qproduct_weights w = {.input = W, .matrices = s->directions, .k = s->input, .n = columns};
    const dq_qproduct_weights r = {.input = R, .matrices = s->directions, .k = s->hidden, .n = columns};
    DQ_TRY(dq_qproduct_prepare(call, &w, rows, &s->from_x, err));
    DQ_TRY(dq_qproduct_prepare(call, &r, s->batch, &s->from_h, err));
    return reserve_all(call, s, rows) ? DQ_OK : dq_no_memory(err, SIZE_MAX, "sequences");
}

/* ---- Products ----------------------------------------------------------------------------------------- */

/* State of one direction in a run. */
typedef struct pass {
    const dq_op_call *call;
    const state *s;
    size_t direction, step;
    bool backward;
    float *x_sums, *h_sums, *gates, *h, *c;
    float *seen; /* h, but zeros for sequences that have ended: the state that is quantized */
} pass;

static void *at_scratch(const dq_op_call *call, size_t offset)
{
    return (char *)call->scratch + offset;
}

typedef struct product {
    const dq_kernels *kernels;
    const float *scale; /* of the weights */
    size_t scale_step, columns;
    float a_scale;
    float *to;
} product;

static void store(void *arg, size_t row, size_t rows, size_t col, size_t cols, const int32_t *c,
                  size_t c_stride)
{
    const product *p = arg;
    float factors[DQ_GEMM_S8_NR_MAX];
    for (size_t j = 0; j < cols; j++)
        factors[j] = p->a_scale * p->scale[(col + j) * p->scale_step];
    for (size_t i = 0; i < rows; i++)
        p->kernels->dequantize_columns_f32(c + i * c_stride, cols, factors, NULL,
                                           p->to + (row + i) * p->columns + col);
}

/* Quantizes `rows` rows of `a`, multiplies them by weights W or R of a direction, and dequantizes the sums to
 * `to`. */
static void multiply(const dq_op_call *call, const dq_qproduct *by, size_t direction, size_t weights_at,
                     const float *a, size_t rows, float *to)
{
    const state *s = call->state;
    uint32_t first = by->input == W ? W_SCALE : R_SCALE;
    const dq_tensor *scale = call->in[first], *zero = call->in[first + 1];
    size_t count = rows * by->w.b.run, columns = GATES * s->hidden;
    uint8_t *qvalues = at_scratch(call, s->at.qvalues);
    dq_dynamic found = dq_dynamic_find(call, a, count, DQ_UINT8, at_scratch(call, s->at.range));
    dq_dynamic_quantize(call, a, count, &found, qvalues);
    dq_qproduct_sign_xor(by, qvalues, count);
    product p = {.kernels = call->kernels,
                 .scale = dq_data(scale, float) + direction * (scale->rank == 2 ? columns : 1),
                 .scale_step = scale->rank == 2,
                 .columns = columns,
                 .a_scale = found.scale,
                 .to = to};
    const char *zeros = (const char *)zero->data + direction * (zero->rank == 2 ? columns : 1);
    const void *packed = by->packed ? by->packed : at_scratch(call, weights_at);
    const dq_qproduct_rows all = {.packed = packed,
                                  .matrix = direction,
                                  .rows = rows,
                                  .qvalues = qvalues,
                                  .a_zero = found.zero,
                                  .b_zero = zeros,
                                  .b_zero_step = zero->rank == 2,
                                  .store = store,
                                  .arg = &p};
    dq_qproduct_run(call, by, &all);
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

static void put_step(const pass *p, size_t t, size_t item, const float *h)
{
    const state *s = p->s;
    if (!p->call->out[Y])
        return;
    float *y =
        dq_data(p->call->out[Y], float) + ((t * s->directions + p->direction) * s->batch + item) * s->hidden;
    if (h)
        memcpy(y, h, s->hidden * sizeof *y);
    else
        memset(y, 0, s->hidden * sizeof *y);
}

/* Adds the products of X and of the state, and the biases of W and of R. */
static void add_rows(const float *restrict x, const float *restrict h, const float *restrict bias, size_t n,
                     float *restrict gate)
{
    if (bias)
        for (size_t j = 0; j < n; j++)
            gate[j] = x[j] + h[j] + (bias[j] + bias[n + j]);
    else
        for (size_t j = 0; j < n; j++)
            gate[j] = x[j] + h[j];
}

static void one_cell(const pass *p, size_t item)
{
    const state *s = p->s;
    size_t n = s->hidden, columns = GATES * n, length = dq_rnn_length(p->call, s->steps, item);
    const dq_tensor *bias = dq_call_in(p->call, BIAS);
    const float *b = bias ? dq_data(bias, float) + p->direction * 2 * columns : NULL;
    if (p->step >= length) {
        memset(p->seen + item * n, 0, n * sizeof *p->seen);
        put_step(p, p->step, item, NULL);
        return;
    }
    size_t t = p->backward ? length - 1 - p->step : p->step;
    const float *from_x = p->x_sums + (t * s->batch + item) * columns, *from_h = p->h_sums + item * columns;
    float *gate = p->gates + item * columns;
    add_rows(from_x, from_h, b, columns, gate);
    const dq_tensor *peepholes = dq_call_in(p->call, PEEPHOLES);
    dq_lstm_cell cell = {.hidden = n,
                         .coupled = s->coupled,
                         .clip = (float)s->clip,
                         .functions = s->functions + p->direction * FUNCTIONS,
                         .peepholes = peepholes ? dq_data(peepholes, float) + p->direction * 3 * n : NULL};
    dq_lstm_cell_step(p->call->kernels->rows_f32, &cell, gate, p->c + item * n, p->h + item * n);
    memcpy(p->seen + item * n, p->h + item * n, n * sizeof *p->seen);
    put_step(p, t, item, p->h + item * n);
}

static void cells(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    for (size_t item = begin; item < end; item++)
        one_cell(arg, item);
}

static size_t longest(const pass *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->s->batch; i++) {
        size_t length = dq_rnn_length(p->call, p->s->steps, i);
        most = length > most ? length : most;
    }
    return most;
}

static void put_last(const dq_op_call *call, uint32_t i, size_t at, const float *from, size_t n)
{
    if (i < call->out_count && call->out[i])
        memcpy(dq_data(call->out[i], float) + at, from, n * sizeof *from);
}

static void run_direction(const dq_op_call *call, size_t direction)
{
    const state *s = call->state;
    const dq_tensor *h = dq_call_in(call, INITIAL_H), *c = dq_call_in(call, INITIAL_C);
    size_t states = s->batch * s->hidden, from = direction * states;
    pass p = {.call = call,
              .s = s,
              .direction = direction,
              .backward = s->first_backward || direction == 1,
              .x_sums = at_scratch(call, s->at.x_sums),
              .h_sums = at_scratch(call, s->at.h_sums),
              .gates = at_scratch(call, s->at.gates),
              .h = at_scratch(call, s->at.h),
              .c = at_scratch(call, s->at.c),
              .seen = at_scratch(call, s->at.seen)};
    for (size_t i = 0; i < states; i++) {
        p.h[i] = p.seen[i] = h ? dq_data(h, float)[from + i] : 0;
        p.c[i] = c ? dq_data(c, float)[from + i] : 0;
    }
    size_t steps = longest(&p);
    multiply(call, &s->from_x, direction, s->at.w, call->in[X]->data, steps * s->batch, p.x_sums);
    for (p.step = 0; p.step < s->steps && !dq_threads_cancelled(call->threads); p.step++) {
        if (p.step < steps)
            multiply(call, &s->from_h, direction, s->at.r, p.seen, s->batch, p.h_sums);
        dq_parallel(call->threads, s->batch, CELLS_PER_TASK / (s->hidden + 1) + 1, cells, &p);
    }
    put_last(call, Y_H, from, p.h, states);
    put_last(call, Y_C, from, p.c, states);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    DQ_TRY(dq_rnn_check_lengths(call, s->steps, s->batch, err));
    if (s->batch == 0 || s->hidden == 0)
        return DQ_OK;
    dq_qweights_ready(call, W, &s->from_x.w, s->from_x.packed, at_scratch(call, s->at.w));
    dq_qweights_ready(call, R, &s->from_h.w, s->from_h.packed, at_scratch(call, s->at.r));
    for (size_t d = 0; d < s->directions; d++)
        run_direction(call, d);
    return DQ_OK;
}

const dq_op_impl dq_op_dynamic_quantize_lstm = {infer, prepare, run, 0};
