/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun Elementwise: fuses a chain of elementwise operators. It runs in strips, so that intermediate values
 * stay in the cache. Each step is its operator's own kernel with the same operands: results have the same
 * bits.
 *
 * A chain whose only variable input has 16-bit quantized values, and whose result has too, becomes a lookup
 * table. It is made once per model by running the steps on all 65,536 values. A lookup costs less than a few
 * steps.
 *
 * Values are numbered: the inputs, then the result of each step. Along a segment of the broadcast loop a
 * value has step 1 or 0; a step whose operands all have step 0 is computed once. Short segments are merged:
 * an input that repeats in each of them, or is constant along each, is materialized strip by strip. */
#include "base/checked.h"
#include "kernels/quantize/reciprocal.h"
#include "ops/broadcast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/row_quantizer.h"

#include <stdlib.h>
#include <string.h>

enum {
    STRIP = 1024, /* elements of a strip */
    GRAIN = 2 * STRIP,
    MAX_STEPS = 24,
    MAX_VALUES = DQ_LOOP_OPERANDS + MAX_STEPS,
    MAX_OUTPUTS = 2,
    ARGS = 3,
    MAX_SHORT_ELEMENTS = 256, /* most elements of a segment that is merged with others, … */
    MAX_FEW_ELEMENTS = 4,     /* … unless there are at most this many of them */
    QVALUES_16 = 1 << 16,
    MIN_TABLE_STEPS = 3,                 /* a lookup table is made for at least this many steps, … */
    MIN_TABLE_ELEMENTS = QVALUES_16 / 4, /* … elements (making it then costs as much as four runs), … */
    MIN_TABLE_WORK = QVALUES_16 / 4 * 5  /* … and steps times elements of a run */
};

typedef struct step {
    dq_ew_fn *fn;
    dq_ew_params params;
    unsigned args;
    uint8_t arg[ARGS];
    bool divides; /* a Div for which dq_rows_f32.divide may be exact */
} step;

/* How an input continues from one merged segment to the next: contiguous, repeated, or constant along each.
 */
typedef enum layout { CONTIGUOUS, REPEATED, CONSTANT } layout;

typedef struct state {
    dq_loop loop;
    size_t row; /* elements of an original segment, if segments are merged */
    layout layout[DQ_LOOP_OPERANDS];
    size_t inputs, steps, strips; /* strips: buffers that a worker needs */
    step step[MAX_STEPS];
    dq_row_quantizer in[DQ_LOOP_OPERANDS], out[MAX_OUTPUTS];
    uint8_t result[MAX_OUTPUTS];
    int8_t strip[MAX_VALUES];  /* number of the value's strip buffer; -1: none, it has memory of its own */
    int8_t direct[MAX_VALUES]; /* the float output to which the last value is written directly; -1: none */
    size_t varies;             /* with a table: the variable input */
    const uint16_t *table;     /* results by 16-bit input; NULL: steps are run */
} state;

const dq_ew_named *dq_ew_find(const char *name, size_t length)
{
    const dq_ew_named *const lists[] = {dq_ew_arith_named, dq_ew_unary_named, dq_ew_clip_named};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const dq_ew_named *row = lists[i]; row->name; row++)
            if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
                return row;
    return NULL;
}

/* ---- Reading the program ------------------------------------------------------------------------------ */

static dq_status bad(const dq_op_call *call, dq_error *err)
{
    return dq_call_fail(call, err, DQ_BAD_MODEL, "has a program that does not hold together");
}

static const dq_attr *list_of(const dq_op_call *call, const char *name, size_t count)
{
    const dq_attr *attr = dq_node_attr(call->node, name);
    return attr && attr->count == count ? attr : NULL;
}

/* Reads the quantization of inputs and outputs. `scales` follows the numbers of the steps. */
static dq_status read_ends(const dq_op_call *call, state *s, const float *scales, dq_error *err)
{
    enum { OF_OUTPUT = 3 };
    const dq_attr *list = list_of(call, "codes", s->inputs + call->out_count * OF_OUTPUT);
    if (!list || call->out_count > MAX_OUTPUTS)
        return bad(call, err);
    for (size_t i = 0; i < s->inputs; i++) {
        s->in[i] = dq_row_quantizer_make(call->in[i]->dtype, scales[i], list->u.ints[i]);
    }
    for (size_t i = 0; i < call->out_count; i++) {
        const int64_t *to = list->u.ints + s->inputs + i * OF_OUTPUT;
        if (to[0] < 0 || to[0] >= (int64_t)(s->inputs + s->steps) ||
            (to[1] != DQ_FLOAT && !dq_row_quantizer_supports(to[1])))
            return bad(call, err);
        s->result[i] = (uint8_t)to[0];
        s->out[i] = dq_row_quantizer_make((dq_dtype)to[1], scales[s->inputs + i], to[2]);
    }
    return DQ_OK;
}

static dq_status read_steps(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_attr *names = dq_node_attr(call->node, "steps");
    s->inputs = call->in_count;
    s->steps = names->count;
    const dq_attr *operands = list_of(call, "operands", s->steps * ARGS);
    const dq_attr *numbers = list_of(call, "numbers", s->steps * ARGS + s->inputs + call->out_count);
    if (s->steps > MAX_STEPS || s->inputs > DQ_LOOP_OPERANDS || !operands || !numbers)
        return bad(call, err);
    for (size_t i = 0; i < s->steps; i++) {
        step *to = &s->step[i];
        const dq_ew_named *row = dq_ew_find(names->u.strings[i].bytes, names->u.strings[i].length);
        const float *number = numbers->u.floats + i * ARGS;
        if (!row)
            return bad(call, err);
        to->divides = strcmp(row->name, "Div") == 0;
        to->fn = row->fn;
        to->args = row->operands;
        to->params = (dq_ew_params){.alpha = (double)number[0],
                                    .beta = (double)number[1],
                                    .gamma = (double)number[2],
                                    .operands = row->operands,
                                    .rows = call->kernels->rows_f32};
        for (size_t a = 0; a < to->args; a++) {
            int64_t value = operands->u.ints[i * ARGS + a];
            if (value < 0 || value >= (int64_t)(s->inputs + i))
                return bad(call, err);
            to->arg[a] = (uint8_t)value;
        }
    }
    return read_ends(call, s, numbers->u.floats + s->steps * ARGS, err);
}

/* Whether a value is a dequantized value of an ordinary scale: zeros are positive, and all other values are
 * neither tiny nor huge. */
static bool is_ordinary(const dq_op_call *call, const state *s, size_t value)
{
    const bool is_input = value < s->inputs;
    const step *from = is_input ? NULL : &s->step[value - s->inputs];
    if (is_input ? call->in[value]->dtype == DQ_FLOAT
                 : from->fn != dq_ew_find(DQ_EW_ROUND_TRIP, strlen(DQ_EW_ROUND_TRIP))->fn)
        return false;
    const double scale = is_input ? (double)s->in[value].scale : from->params.alpha;
    return scale >= 0x1p-40 && scale <= 0x1p40;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_steps(call, &s, err));
    int64_t dims[DQ_MAX_RANK] = {0};
    size_t rank = 0;
    for (uint32_t i = 0; i < call->in_count; i++) {
        const dq_tensor *t = call->in[i];
        char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
        if (!dq_broadcast(rank, dims, t->rank, t->dims, &rank, dims))
            return dq_call_fail_input(call, err, i, "has shape %s, which does not broadcast with %s",
                                      dq_shape_text(t->rank, t->dims, mine),
                                      dq_shape_text(rank, dims, theirs));
    }
    for (uint32_t i = 0; i < call->out_count; i++)
        DQ_TRY(dq_call_output(call, i, s.out[i].dtype, rank, dims, err));
    return DQ_OK;
}

/* ---- Merging short segments ---------------------------------------------------------------------------- */

static bool joint_of(const dq_loop *l, size_t i, layout *to)
{
    const size_t *strides = l->strides[i], last = l->rank - 1;
    if (strides[last - 1] == l->dims[last] * strides[last])
        *to = CONTIGUOUS;
    else if (strides[last] && !strides[last - 1])
        *to = REPEATED;
    else if (!strides[last] && strides[last - 1] == 1)
        *to = CONSTANT;
    else
        return false;
    return true;
}

/* Merges the innermost two dimensions if segments along the last one are short. */
static void join_runs(state *s)
{
    dq_loop *l = &s->loop;
    const size_t last = l->rank - 1;
    layout joints[DQ_LOOP_OPERANDS];
    if (last == 0 || l->dims[last] > MAX_SHORT_ELEMENTS || l->dims[last - 1] <= MAX_FEW_ELEMENTS)
        return;
    for (size_t i = 0; i < s->inputs; i++)
        if (!joint_of(l, i, &joints[i]))
            return;
    memcpy(s->layout, joints, sizeof joints);
    s->row = l->dims[last];
    l->dims[last - 1] *= s->row;
    l->rank--;
    for (size_t i = 0; i < s->inputs; i++)
        l->strides[i][last - 1] = joints[i] == CONTIGUOUS ? l->strides[i][last] : 0;
}

/* ---- Buffers ------------------------------------------------------------------------------------------ */

/* Assigns strip buffers to values. A buffer is free again after the last step that reads its value. */
static void lay_out(const dq_op_call *call, state *s)
{
    size_t last[MAX_VALUES] = {0}, values = s->inputs + s->steps;
    bool used[MAX_VALUES] = {false};
    for (size_t i = 0; i < s->steps; i++)
        for (size_t a = 0; a < s->step[i].args; a++)
            last[s->step[i].arg[a]] = i + 1;
    for (size_t v = 0; v < values; v++)
        s->direct[v] = s->strip[v] = -1;
    for (uint32_t i = 0; i < call->out_count; i++) {
        last[s->result[i]] = s->steps + 1;
        /* only the last step may, as the output may alias an input */
        if (call->out[i] && call->out[i]->dtype == DQ_FLOAT && s->result[i] == values - 1 && s->steps > 0)
            s->direct[s->result[i]] = (int8_t)i;
    }
    for (size_t v = 0; v < values; v++) {
        size_t now = v < s->inputs ? 0 : v - s->inputs + 1; /* the step that writes it */
        for (size_t u = 0; u < v; u++)
            if (s->strip[u] >= 0 && last[u] < now) {
                used[s->strip[u]] = false;
                last[u] = SIZE_MAX; /* freed once: another value may have the buffer now */
            }
        if (v < s->inputs && s->in[v].dtype == DQ_FLOAT && s->layout[v] == CONTIGUOUS)
            continue;
        size_t free = 0;
        while (used[free])
            free++;
        used[free] = true;
        s->strip[v] = (int8_t)free;
        s->strips = free + 1 > s->strips ? free + 1 : s->strips;
    }
    s->strips++; /* one more, for broadcasting a result of step 0 */
}

/* ---- Running ------------------------------------------------------------------------------------------ */

typedef struct piece {
    const dq_op_call *call;
    const state *s;
    float *strips;
} piece;

typedef struct value {
    const float *data;
    size_t step; /* 0: one value for all elements */
} value;

static const float *dequantize(const piece *p, size_t i, size_t offset, size_t n, float *to)
{
    const dq_tensor *t = p->call->in[i];
    if (t->dtype == DQ_FLOAT)
        return dq_data(t, float) + offset;
    dq_row_quantizer_dequantize(p->call->kernels, &p->s->in[i], t->data, offset, n, to);
    return to;
}

/* Materializes n elements of an input from `within` of the merged segments on; these begin at `offset`. */
static const float *materialize(const piece *p, size_t i, size_t offset, size_t within, size_t n, float *to)
{
    const size_t row = p->s->row, first = within % row;
    float workspace[STRIP];
    if (p->s->layout[i] == REPEATED) {
        const float *from = dequantize(p, i, offset, row, workspace);
        const size_t begun = dq_least(row - first, n);
        memcpy(to, from + first, begun * sizeof *to);
        memcpy(to + begun, from, dq_least(first, n - begun) * sizeof *to);
        for (size_t done = row; done < n; done *= 2)
            memcpy(to + done, to, dq_least(done, n - done) * sizeof *to);
        return to;
    }
    const size_t rows = (first + n - 1) / row + 1;
    const float *from = dequantize(p, i, offset + within / row, rows, workspace);
    for (size_t r = 0, k = 0, end = row - first; r < rows; r++, end += row)
        for (const float stays = from[r]; k < end && k < n; k++)
            to[k] = stays;
    return to;
}

static void take_step(const piece *p, size_t i, size_t at, size_t n, value *values)
{
    const state *s = p->s;
    const step *now = &s->step[i];
    const void *in[ARGS];
    size_t steps[ARGS], v = s->inputs + i;
    bool moves = false;
    for (size_t a = 0; a < now->args; a++) {
        in[a] = values[now->arg[a]].data;
        steps[a] = values[now->arg[a]].step;
        moves = moves || steps[a];
    }
    bool direct = s->direct[v] >= 0 && moves;
    float *to = direct ? dq_data(p->call->out[s->direct[v]], float) + at : p->strips + s->strip[v] * STRIP;
    if (now->divides && steps[0] && !steps[1] && dq_divides(*values[now->arg[1]].data))
        p->call->kernels->rows_f32->divide(in[0], n, *values[now->arg[1]].data, to);
    else
        now->fn(to, in, steps, moves ? n : 1, &now->params);
    values[v] = (value){to, moves};
}

static void give(const piece *p, size_t i, size_t at, size_t n, const value *v)
{
    const dq_tensor *out = p->call->out[i];
    const float *from = v->data;
    float *broadcast = p->strips + (p->s->strips - 1) * STRIP;
    if (!out)
        return;
    if (!v->step) {
        for (size_t k = 0; k < n; k++)
            broadcast[k] = *from;
        from = broadcast;
    }
    if (out->dtype != DQ_FLOAT)
        dq_row_quantizer_quantize(p->call->kernels, &p->s->out[i], from, n, out->data, at);
    else if (from != dq_data(out, float) + at)
        memcpy(dq_data(out, float) + at, from, n * sizeof *from);
}

static void one_run(void *arg, const dq_loop_segment *run)
{
    const piece *p = arg;
    const state *s = p->s;
    const size_t plane = s->loop.dims[s->loop.rank - 1];
    value values[MAX_VALUES];
    for (size_t done = 0; done < run->n; done += STRIP) {
        size_t n = run->n - done < STRIP ? run->n - done : STRIP, at = run->at + done;
        for (size_t i = 0; i < s->inputs; i++) {
            float *to = s->strip[i] < 0 ? NULL : p->strips + s->strip[i] * STRIP;
            size_t moves = run->step[i];
            if (s->layout[i] != CONTIGUOUS) {
                values[i] = (value){materialize(p, i, run->offset[i], at % plane, n, to), 1};
                continue;
            }
            values[i] = (value){dequantize(p, i, run->offset[i] + done * moves, moves ? n : 1, to), moves};
        }
        for (size_t i = 0; i < s->steps; i++)
            take_step(p, i, at, n, values);
        for (size_t i = 0; i < p->call->out_count; i++)
            give(p, i, at, n, &values[s->result[i]]);
    }
}

/* ---- Lookup table of 16-bit values --------------------------------------------------------------------- */

/* Whether a lookup table is applicable and worth its cost: all depends on one input of 16-bit values, and the
 * result has 16 bits, too. */
static bool wants_table(const dq_op_call *call, state *s)
{
    const dq_tensor *out = call->out[0];
    size_t varying = 0;
    for (uint32_t i = 0; i < s->inputs; i++)
        if (!dq_call_constant(call, i) || call->in[i]->count != 1) {
            s->varies = i;
            varying++;
        }
    const dq_tensor *x = call->in[s->varies];
    return varying == 1 && call->packs && call->out_count == 1 && s->steps >= MIN_TABLE_STEPS &&
           out->count >= MIN_TABLE_ELEMENTS && out->count >= MIN_TABLE_WORK / s->steps &&
           x->count == out->count && dq_dtype_get(x->dtype)->bits == 16 &&
           dq_dtype_get(out->dtype)->bits == 16;
}

/* The source of a lookup table. `program`, at its address in the node, identifies it in the cache. */
typedef struct source {
    dq_tensor program;
    const dq_op_call *call;
    float *strips;
} source;

/* Runs the steps on all 65,536 values, in place. */
static void fill_table(void *packed, const dq_tensor *from, const void *key)
{
    const source *all = (const source *)(const void *)from;
    const state *s = all->call->state;
    dq_tensor qvalues = {.dtype = all->call->in[s->varies]->dtype, .data = packed};
    dq_tensor results = {.dtype = all->call->out[0]->dtype, .data = packed}, *out = &results;
    const dq_tensor *in[DQ_LOOP_OPERANDS];
    dq_op_call view = *all->call;
    dq_loop_segment run = {.n = QVALUES_16};
    uint16_t *table = packed;
    (void)key;
    for (size_t i = 0; i < QVALUES_16; i++)
        table[i] = (uint16_t)i;
    for (size_t i = 0; i < s->inputs; i++)
        in[i] = i == s->varies ? &qvalues : all->call->in[i];
    run.step[s->varies] = 1;
    view.in = in;
    view.out = &out;
    one_run(&(piece){&view, s, all->strips}, &run);
}

static dq_status make_table(dq_op_call *call, state *s, dq_error *err)
{
    const size_t bytes = s->strips * STRIP * sizeof(float);
    const dq_attr *program = dq_node_attr(call->node, "operands");
    source all = {.program.data = (void *)(uintptr_t)program->u.ints, .call = call, .strips = malloc(bytes)};
    float constants[DQ_LOOP_OPERANDS] = {0};
    const void *table = NULL;
    if (!all.strips)
        return dq_no_memory(err, bytes, "strips of quantized values");
    for (size_t i = 0; i < s->inputs; i++)
        if (i != s->varies)
            constants[i] = *dequantize(&(piece){.call = call, .s = s}, i, 0, 1, constants + i);
    const dq_packing expected = {fill_table, constants, sizeof constants, QVALUES_16 * sizeof(uint16_t),
                                 0,          0};
    dq_status status = dq_packs_get(call->packs, &all.program, &expected, &table, err);
    free(all.strips);
    s->table = table;
    return status;
}

static void look_up(const uint16_t *x, size_t n, const uint16_t *table, uint16_t *y)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    uint32_t inputs[DQ_LOOP_OPERANDS];
    DQ_TRY(read_steps(call, s, err));
    dq_tensor *shape = call->out[0] ? call->out[0] : call->out[call->out_count - 1];
    dq_op_call view = *call;
    view.out = &shape;
    for (uint32_t i = 0; i < s->inputs; i++)
        inputs[i] = i;
    for (size_t i = 0; i < s->steps; i++)
        s->step[i].divides = s->step[i].divides && is_ordinary(call, s, s->step[i].arg[0]);
    dq_loop_plan(&view, inputs, s->inputs, &s->loop);
    join_runs(s);
    lay_out(call, s);
    if (wants_table(call, s))
        return make_table(call, s, err);
    call->worker_scratch_size = s->strips * STRIP * sizeof(float);
    return DQ_OK;
}

static void range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = arg;
    const state *s = call->state;
    if (s->table) {
        look_up((const uint16_t *)call->in[s->varies]->data + begin, end - begin, s->table,
                (uint16_t *)call->out[0]->data + begin);
        return;
    }
    piece p = {call, s, dq_call_worker_scratch(call, worker)};
    dq_loop_range(&s->loop, begin, end, one_run, &p);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *out = call->out[0] ? call->out[0] : call->out[call->out_count - 1];
    dq_parallel(call->threads, out->count, GRAIN, range, (void *)(uintptr_t)call);
    return DQ_OK;
}

const dq_op_impl dq_op_elementwise_chain = {infer, prepare, run,
                                            DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_BATCH_SEPARABLE_ALL};
