/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM in float. One GEMM multiplies X by W for all time steps and directions. At each step, a
 * GEMM of several sequences adds the product of state and R to the same chains of sums
 * (kernels/gemm_f32/gemm_f32.h). Activations and the arithmetic of the cell are those of
 * kernels/elementwise/float_rows.h, each rounded to float. So the bits depend neither on threads, nor on the
 * number of sequences in a task, nor on the ISA. */
#include "base/checked.h"
#include "ops/packers.h"
#include "ops/recurrent/rnn.h"

#include <math.h>
#include <string.h>

enum { MACS_PER_TASK = 1 << 17 /* approximate minimum of multiply-adds in a parallel task */ };

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* Packing key of R: for each direction, the panels of columns[0], then those of columns[1]. */
typedef struct layout {
    dq_transpose_x32_fn *transpose;
    size_t directions, hidden, columns[2], padded_columns[2];
} layout;

static layout layout_of(const dq_op_call *call, const dq_rnn *s, const dq_rnn_float *f)
{
    layout l;
    memset(&l, 0, sizeof l); /* compared as bytes */
    l.transpose = call->kernels->transpose_x32;
    l.directions = s->directions;
    l.hidden = s->hidden;
    memcpy(l.columns, f->columns, sizeof l.columns);
    memcpy(l.padded_columns, f->padded_columns, sizeof l.padded_columns);
    return l;
}

void dq_pack_rnn_f32(void *to, const dq_tensor *r, const void *key)
{
    const layout *l = key;
    const float *from = r->data;
    float *at = to;
    for (size_t i = 0; i < 2 * l->directions; i++) {
        dq_gemm_part all = {.cols = l->columns[i % 2], .k = l->hidden};
        dq_gemm_block_f32 block;
        dq_pack_b_f32(l->transpose, from, l->hidden, 1, &all, at, &block);
        from += all.cols * l->hidden;
        at += l->padded_columns[i % 2] * l->hidden;
    }
}

/* Sequences of a task: all, or so few that each thread gets a task. */
static size_t rows_of(const dq_op_call *call, const dq_rnn *s)
{
    size_t threads = dq_threads_count(call->threads);
    size_t blocks = threads > s->directions ? (threads + s->directions - 1) / s->directions : 1;
    return s->batch > blocks ? (s->batch + blocks - 1) / blocks : 1;
}

dq_status dq_rnn_float_prepare(dq_op_call *call, const dq_rnn *s, dq_rnn_float *f, dq_error *err)
{
    size_t width = s->gates * s->hidden, columns, rows, workspace;
    f->rows = rows_of(call, s);
    f->columns[1] = s->kind == DQ_GRU ? s->hidden : 0;
    f->columns[0] = width - f->columns[1];
    if (!dq_align_size(f->columns[0], DQ_GEMM_F32_NR, &f->padded_columns[0]) ||
        !dq_align_size(f->columns[1], DQ_GEMM_F32_NR, &f->padded_columns[1]) ||
        !dq_align_size(s->hidden, DQ_GEMM_F32_NR, &f->state))
        return dq_no_memory(err, SIZE_MAX, "weights");
    if (!dq_mul_size(s->steps, s->batch, &rows) || !dq_mul_size(width, s->directions, &columns))
        return dq_no_memory(err, SIZE_MAX, "sequences");
    f->from_x = (dq_matmul_f32){.batches = 1,
                                .m = rows,
                                .n = columns,
                                .k = s->input,
                                .a_row = s->input,
                                .a_step = 1,
                                .b_col = s->input,
                                .b_step = 1,
                                .alpha = 1,
                                .bounds = {-INFINITY, INFINITY}};
    DQ_TRY(dq_matmul_f32_prepare(call, DQ_RNN_W, &f->from_x, err));

    const layout l = layout_of(call, s, f);
    const size_t padded_columns = f->padded_columns[0] + f->padded_columns[1];
    size_t bytes, both;
    if (!dq_mul_size(padded_columns, s->hidden, &f->packed_size) ||
        !dq_mul_size(f->packed_size, s->directions * sizeof(float), &bytes))
        return dq_no_memory(err, SIZE_MAX, "weights");
    if (bytes && dq_call_constant(call, DQ_RNN_R)) {
        const void *packed;
        DQ_TRY(dq_call_pack(call, DQ_RNN_R, dq_pack_rnn_f32, &l, sizeof l, bytes, &packed, err));
        f->packed = packed;
    }
    /* for each sequence: gates, h, c, and a spare state */
    if (!dq_mul_size(f->rows, padded_columns + 3 * f->state, &workspace) ||
        !dq_mul_size(workspace, sizeof(float), &workspace) ||
        !dq_call_reserve(call, f->packed ? 0 : bytes, 1, 1, &f->packed_at) ||
        !dq_mul_size(rows, sizeof(float), &both) || !dq_call_reserve(call, both, columns, 1, &f->sums_at) ||
        !dq_call_reserve(call, columns + s->directions * f->state, 1, sizeof(float), &f->bias_at))
        return dq_no_memory(err, SIZE_MAX, "sequences");
    if (call->worker_scratch_size < workspace)
        call->worker_scratch_size = workspace;
    return DQ_OK;
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_rnn *s;
    const dq_rnn_float *f;
    const float *packed; /* R */
    const float *sums;   /* X · Wᵀ plus the biases: [row of X][direction][gate][hidden] */
    const float *z;      /* linear_before_reset: R's bias of the hidden gate, [direction][state]; or NULL */
} job;

/* A task: some sequences of one direction. */
typedef struct block {
    const job *j;
    size_t direction, item, rows;
    const dq_rnn_activation *functions;
    size_t width, state;         /* floats of a row of gates, and of a state, including padding */
    float *gate, *h, *c, *spare; /* a row for each sequence */
} block;

static const float *floats(const dq_op_call *call, uint32_t i)
{
    const dq_tensor *t = dq_call_in(call, i);
    return t ? dq_data(t, float) : NULL;
}

/* Multiplies rows `a` by part 0 or 1 of R (dq_rnn_float.columns). `more`: adds to the sums in c. z: adds a
 * bias, unless NULL. */
static void product(const block *b, int part, const float *a, float *c, size_t c_row, bool more,
                    const float *z)
{
    const dq_rnn_float *f = b->j->f;
    size_t n = b->j->s->hidden;
    dq_gemm_block_f32 g = {.rows = b->rows,
                           .cols = f->padded_columns[part],
                           .k = n,
                           .a = a,
                           .b = b->j->packed + b->direction * f->packed_size +
                                (part ? f->padded_columns[0] * n : 0),
                           .a_row = f->state,
                           .b_step = DQ_GEMM_F32_NR,
                           .b_panel = DQ_GEMM_F32_NR * n,
                           .c = c,
                           .c_row = c_row,
                           .more = more,
                           .last = z != NULL,
                           .alpha = 1,
                           .low = -INFINITY,
                           .high = INFINITY,
                           .z = z};
    b->j->call->kernels->gemm_block_f32(&g);
}

static bool runs(const block *b, size_t row, size_t step)
{
    return step < dq_rnn_length(b->j->call, b->j->s->steps, b->item + row);
}

static void step_lstm(const block *b, size_t step)
{
    const dq_rnn *s = b->j->s;
    const float *peepholes = floats(b->j->call, DQ_RNN_PEEPHOLES);
    size_t n = s->hidden;
    dq_lstm_cell cell = {.hidden = n,
                         .coupled = s->coupled,
                         .clip = (float)s->clip,
                         .functions = b->functions,
                         .peepholes = peepholes ? peepholes + b->direction * 3 * n : NULL};
    product(b, 0, b->h, b->gate, b->width, true, NULL);
    for (size_t i = 0; i < b->rows; i++)
        if (runs(b, i, step))
            dq_lstm_cell_step(b->j->call->kernels->rows_f32, &cell, b->gate + i * b->width,
                              b->c + i * b->state, b->h + i * b->state);
}

/* Applies the hidden gate's activation, and h = (1 - z) * gate + z * h. */
static void finish_gru(const block *b, float *gate, float *h)
{
    static const float one = 1;
    const dq_rows_f32 *rows = b->j->call->kernels->rows_f32;
    size_t n = b->j->s->hidden;
    float *z = gate, *hidden = gate + b->j->f->padded_columns[0];
    dq_rnn_activate(rows, &b->functions[1], (float)b->j->s->clip, hidden, n);
    rows->mul(z, 1, h, 1, n, h);
    rows->sub(&one, 0, z, 1, n, z);
    rows->mul(z, 1, hidden, 1, n, hidden);
    rows->add(hidden, 1, h, 1, n, h);
}

static void step_gru(const block *b, size_t step)
{
    const dq_rnn *s = b->j->s;
    const dq_rows_f32 *rows = b->j->call->kernels->rows_f32;
    const float *z = b->j->z ? b->j->z + b->direction * b->state : NULL;
    const size_t n = s->hidden, at = b->j->f->padded_columns[0]; /* offset of the hidden gate */
    product(b, 0, b->h, b->gate, b->width, true, NULL);
    if (s->reset_after)
        product(b, 1, b->h, b->spare, b->state, false, z);
    for (size_t i = 0; i < b->rows; i++) {
        float *gate = b->gate + i * b->width, *reset = gate + n, *past = b->spare + i * b->state;
        dq_rnn_activate(rows, &b->functions[0], (float)s->clip, gate, 2 * n);
        rows->mul(reset, 1, s->reset_after ? past : b->h + i * b->state, 1, n, past);
        if (s->reset_after)
            rows->add(gate + at, 1, past, 1, n, gate + at);
    }
    if (!s->reset_after)
        product(b, 1, b->spare, b->gate + at, b->width, true, NULL);
    for (size_t i = 0; i < b->rows; i++)
        if (runs(b, i, step))
            finish_gru(b, b->gate + i * b->width, b->h + i * b->state);
}

static void step_rnn(const block *b, size_t step)
{
    size_t n = b->j->s->hidden;
    product(b, 0, b->h, b->gate, b->width, true, NULL);
    for (size_t i = 0; i < b->rows; i++) {
        if (!runs(b, i, step))
            continue;
        dq_rnn_activate(b->j->call->kernels->rows_f32, &b->functions[0], (float)b->j->s->clip,
                        b->gate + i * b->width, n);
        memcpy(b->h + i * b->state, b->gate + i * b->width, n * sizeof(float));
    }
}

/* ---- Sequences ---------------------------------------------------------------------------------------- */

static void put(const dq_op_call *call, uint32_t i, size_t at, const float *from, size_t n)
{
    if (i >= call->out_count || !call->out[i])
        return;
    float *to = dq_data(call->out[i], float) + at;
    if (from)
        memcpy(to, from, n * sizeof *to);
    else
        memset(to, 0, n * sizeof *to);
}

/* Copies the contribution of X to the gates in this step. Sequences that have ended keep their state. */
static void begin_step(const block *b, size_t step, bool backward)
{
    const dq_rnn *s = b->j->s;
    const dq_rnn_float *f = b->j->f;
    const size_t width = s->gates * s->hidden;
    for (size_t i = 0; i < b->rows; i++) {
        if (!runs(b, i, step))
            continue;
        size_t length = dq_rnn_length(b->j->call, s->steps, b->item + i),
               t = backward ? length - 1 - step : step;
        size_t row = dq_rnn_x_row(s, t, b->item + i);
        const float *from = b->j->sums + (row * s->directions + b->direction) * width;
        float *to = b->gate + i * b->width;
        memcpy(to, from, f->columns[0] * sizeof *to);
        memcpy(to + f->padded_columns[0], from + f->columns[0], f->columns[1] * sizeof *to);
    }
}

static void end_step(const block *b, size_t step, bool backward)
{
    const dq_rnn *s = b->j->s;
    for (size_t i = 0; i < b->rows; i++) {
        size_t length = dq_rnn_length(b->j->call, s->steps, b->item + i), t = step;
        if (step < length && backward)
            t = length - 1 - step;
        put(b->j->call, DQ_RNN_Y, dq_rnn_y_at(s, t, b->direction, b->item + i),
            step < length ? b->h + i * b->state : NULL, s->hidden);
    }
}

static void begin(const block *b)
{
    const dq_rnn *s = b->j->s;
    const float *h = floats(b->j->call, DQ_RNN_H),
                *c = s->kind == DQ_LSTM ? floats(b->j->call, DQ_RNN_C) : NULL;
    size_t n = s->hidden;
    memset(b->gate, 0, b->rows * (b->width + 3 * b->state) * sizeof(float));
    for (size_t i = 0; i < b->rows; i++) {
        size_t at = dq_rnn_last_at(s, b->direction, b->item + i);
        if (h)
            memcpy(b->h + i * b->state, h + at, n * sizeof *h);
        if (c)
            memcpy(b->c + i * b->state, c + at, n * sizeof *c);
    }
}

/* Whether all sequences have ended. */
static bool all_ended(const block *b, size_t step)
{
    for (size_t i = 0; i < b->rows; i++)
        if (runs(b, i, step))
            return false;
    return true;
}

static void run_block(const block *b)
{
    const dq_rnn *s = b->j->s;
    bool backward = s->first_backward || b->direction == 1;
    begin(b);
    for (size_t step = 0; step < s->steps && !dq_threads_cancelled(b->j->call->threads); step++) {
        if (all_ended(b, step)) {
            end_step(b, step, backward);
            continue;
        }
        begin_step(b, step, backward);
        if (s->kind == DQ_LSTM)
            step_lstm(b, step);
        else if (s->kind == DQ_GRU)
            step_gru(b, step);
        else
            step_rnn(b, step);
        end_step(b, step, backward);
    }
    for (size_t i = 0; i < b->rows; i++) {
        size_t at = dq_rnn_last_at(s, b->direction, b->item + i);
        put(b->j->call, DQ_RNN_Y_H, at, b->h + i * b->state, s->hidden);
        put(b->j->call, DQ_RNN_Y_C, at, b->c + i * b->state, s->hidden);
    }
}

static void piece(void *arg, size_t first, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_rnn *s = j->s;
    size_t blocks = (s->batch + j->f->rows - 1) / j->f->rows;
    for (size_t i = first; i < end; i++) {
        block b = {.j = j, .direction = i / blocks, .item = i % blocks * j->f->rows};
        b.rows = s->batch - b.item < j->f->rows ? s->batch - b.item : j->f->rows;
        b.functions = s->functions + b.direction * s->functions_each;
        b.width = j->f->padded_columns[0] + j->f->padded_columns[1];
        b.state = j->f->state;
        b.gate = dq_call_worker_scratch(j->call, worker);
        b.h = b.gate + b.rows * b.width;
        b.c = b.h + b.rows * b.state;
        b.spare = b.c + b.rows * b.state;
        run_block(&b);
    }
}

/* The biases that the product with X adds: of W and R, without R's bias of the hidden gate if
 * linear_before_reset. */
static const float *biases(const dq_op_call *call, const dq_rnn *s, float *to)
{
    const float *bias = floats(call, DQ_RNN_BIAS);
    size_t width = s->gates * s->hidden, alone = s->reset_after ? 2 * s->hidden : width;
    for (size_t d = 0; bias && d < s->directions; d++, bias += 2 * width)
        for (size_t j = 0; j < width; j++)
            to[d * width + j] = j < alone ? bias[j] + bias[width + j] : bias[j];
    return bias ? to : NULL;
}

/* R's bias of the hidden gate for linear_before_reset: a padded row for each direction. NULL: none. */
static const float *biases_after(const dq_op_call *call, const dq_rnn *s, size_t state, float *to)
{
    const float *bias = floats(call, DQ_RNN_BIAS);
    const size_t n = s->hidden;
    if (!bias || s->kind != DQ_GRU || !s->reset_after)
        return NULL;
    memset(to, 0, s->directions * state * sizeof *to);
    for (size_t d = 0; d < s->directions; d++)
        memcpy(to + d * state, bias + (6 * d + 5) * n, n * sizeof *to);
    return to;
}

void dq_rnn_float_run(const dq_op_call *call, const dq_rnn *s, const dq_rnn_float *f)
{
    char *scratch = call->scratch;
    float *sums = (float *)(void *)(scratch + f->sums_at), *bias = (float *)(void *)(scratch + f->bias_at);
    job j = {.call = call, .s = s, .f = f, .packed = f->packed, .sums = sums};
    if (s->batch == 0 || s->hidden == 0)
        return;
    if (!f->packed) {
        const layout l = layout_of(call, s, f);
        dq_pack_rnn_f32(scratch + f->packed_at, call->in[DQ_RNN_R], &l);
        j.packed = (const float *)(const void *)(scratch + f->packed_at);
    }
    dq_matmul_f32_operands o = {
        .a = call->in[DQ_RNN_X]->data, .b = call->in[DQ_RNN_W]->data, .c = sums, .z = biases(call, s, bias)};
    j.z = biases_after(call, s, f->state, bias + s->directions * s->gates * s->hidden);
    dq_matmul_f32_run(call, &f->from_x, &o);
    size_t pieces = s->directions * ((s->batch + f->rows - 1) / f->rows);
    size_t work = f->rows * f->packed_size; /* multiply-adds of a step */
    dq_parallel(call->threads, pieces, s->steps && work < MACS_PER_TASK / s->steps ? pieces : 1, piece, &j);
}
