/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/elementwise/elementwise.h"

#include "ops/rows.h"

#include <string.h>

enum {
    BLOCK = 256,   /* elements that are widened at a time */
    GRAIN = 16384, /* elements of a task */
    SLOTS = 3,     /* operands of a kernel, except for folds */
    COPIES = 4096, /* bytes of materialized copies of a scalar operand or of a short repeated segment */
    MAX_SHORT_BYTES = 1024, /* most bytes of a short repeated segment … */
    BROADCAST = 256,        /* … and of one of broadcast values */
    MAX_REPEATS = 4         /* a segment that repeats at most this often is not materialized */
};

typedef struct operand {
    const void *fixed; /* NULL: the data of input `input` */
    uint32_t input;
    dq_dtype dtype;
    size_t width;                /* bytes of an element */
    size_t strides[DQ_MAX_RANK]; /* in elements, over the loop's dimensions */
} operand;

typedef struct state {
    dq_ew_fn *fn, *then;
    dq_ew_params params;
    dq_dtype stage; /* compute type of the kernel if operands are widened, else DQ_UNDEFINED */
    dq_dtype out;
    bool fold, stage_out;
    bool copies; /* an operand has step 0, but the kernel needs step 1 */
    size_t out_width;
    size_t rank; /* at least 1 */
    size_t dims[DQ_MAX_RANK];
    size_t count, operand_count;
    size_t rows; /* innermost segments that one kernel call covers; 0: each is a call of its own */
    operand *operands;
} state;

/* ---- Shapes ------------------------------------------------------------------------------------------- */

/* Reshapes a vector of more than one element to [C, 1, 1, …], so that it broadcasts along axis 1 of input 0.
 */
static dq_status along_channels(const dq_op_call *call, uint32_t i, dq_tensor *shape, dq_error *err)
{
    const dq_tensor *first = call->in[0];
    if (shape->rank != 1 || shape->dims[0] == 1 || first->rank < 2)
        return DQ_OK;
    if (shape->dims[0] != first->dims[1])
        return dq_call_fail_input(call, err, i, "has %lld elements, expected 1 or %lld (axis 1 of input 0)",
                                  (long long)shape->dims[0], (long long)first->dims[1]);
    while (shape->rank + 1u < first->rank)
        shape->dims[shape->rank++] = 1;
    return DQ_OK;
}

/* The shape of operand i for broadcasting; it differs from the operand's own only before opset 7. */
static dq_status aligned(const dq_op_call *call, const dq_ew_table *table, uint32_t i, dq_tensor *shape,
                         dq_error *err)
{
    const dq_tensor *t = call->in[i], *first = call->in[0];
    *shape = *t;
    if (i == 0)
        return DQ_OK;
    if (call->version < table->broadcasts_since)
        return along_channels(call, i, shape, err);
    if (!dq_node_attr(call->node, "broadcast"))
        return DQ_OK;
    if (dq_node_int(call->node, "broadcast", 0) == 0)
        return dq_tensor_same_shape(t, first)
                   ? DQ_OK
                   : dq_call_fail_input(call, err, i, "has another shape than input 0, and broadcast is 0");
    const dq_attr *axis = dq_node_attr(call->node, "axis");
    size_t at = 0;
    if (!axis)
        return DQ_OK; /* alignment at the last axes, as since opset 7 */
    if (!dq_axis(axis->u.i, first->rank, &at) || at + t->rank > first->rank)
        return dq_call_fail(
            call, err, DQ_BAD_MODEL,
            "attribute 'axis' is %lld, expected one that lays input 1 (rank %u) inside input 0 "
            "(rank %u)",
            (long long)axis->u.i, t->rank, first->rank);
    while (at + shape->rank < first->rank)
        shape->dims[shape->rank++] = 1;
    return DQ_OK;
}

dq_status dq_ew_infer(dq_op_call *call, const dq_ew_table *table, dq_error *err)
{
    int64_t dims[DQ_MAX_RANK] = {0};
    size_t rank = 0;
    for (uint32_t i = 0; i < call->in_count; i++) {
        dq_tensor shape;
        DQ_TRY(aligned(call, table, i, &shape, err));
        int64_t joined[DQ_MAX_RANK] = {0}; /* dq_broadcast may not write to its inputs */
        size_t joined_rank;
        if (!dq_broadcast(rank, dims, shape.rank, shape.dims, &joined_rank, joined)) {
            char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
            return dq_call_fail_input(call, err, i, "has shape %s, which does not broadcast with %s",
                                      dq_shape_text(shape.rank, shape.dims, mine),
                                      dq_shape_text(rank, dims, theirs));
        }
        rank = joined_rank;
        memcpy(dims, joined, sizeof dims);
    }
    dq_dtype out = table->out != DQ_UNDEFINED ? table->out : call->in[table->select]->dtype;
    return dq_call_output(call, 0, out, rank, dims, err);
}

static size_t width_of(dq_dtype dtype)
{
    return dtype == DQ_STRING ? sizeof(dq_string) : dq_dtype_get(dtype)->bits / 8u;
}

/* Drops dimensions of 1 and merges adjacent dimensions that every operand walks with one stride. This makes
 * the innermost segment as long as possible. */
static void coalesce(state *s, size_t rank, const int64_t *dims)
{
    size_t kept = 0;
    for (size_t d = 0; d < rank; d++) {
        size_t n = (size_t)dims[d];
        if (n == 1)
            continue;
        bool join = kept > 0;
        for (size_t i = 0; join && i < s->operand_count; i++) {
            const size_t *strides = s->operands[i].strides;
            join = strides[kept - 1] == strides[d] * n;
        }
        if (!join)
            s->dims[kept++] = 1;
        s->dims[kept - 1] *= n;
        for (size_t i = 0; i < s->operand_count; i++)
            s->operands[i].strides[kept - 1] = s->operands[i].strides[d];
    }
    if (kept == 0) {
        s->dims[kept++] = 1;
        for (size_t i = 0; i < s->operand_count; i++)
            s->operands[i].strides[0] = 1;
    }
    s->rank = kept;
}

/* Whether the operand's innermost segment is short and repeats along the next dimension. Materialized several
 * times, it becomes contiguous like the other operands. */
static bool repeats(const state *s, const operand *o)
{
    return o->strides[s->rank - 1] == 1 && o->strides[s->rank - 2] == 0;
}

/* Whether the operand is constant along an innermost segment and advances from one to the next; materialized
 * likewise. */
static bool broadcasts(const state *s, const operand *o)
{
    return o->strides[s->rank - 1] == 0 && o->strides[s->rank - 2] != 0 && o->width <= sizeof(uint64_t);
}

static size_t rows_at_once(const state *s)
{
    size_t last = s->rank - 1, rows = s->stage == DQ_UNDEFINED ? COPIES : BLOCK / s->dims[last];
    if (s->rank < 2 || s->operand_count > (s->fold ? 2 : SLOTS))
        return 0;
    for (size_t i = 0; i < s->operand_count; i++) {
        const operand *o = &s->operands[i];
        const size_t bytes = s->dims[last] * o->width;
        if ((repeats(s, o) && bytes <= MAX_SHORT_BYTES) || (broadcasts(s, o) && bytes <= BROADCAST))
            rows = rows < COPIES / bytes ? rows : COPIES / bytes;
        else if (o->strides[last - 1] != s->dims[last] * o->strides[last])
            return 0;
    }
    rows = rows < s->dims[last - 1] ? rows : s->dims[last - 1];
    return rows < MAX_REPEATS ? 0 : rows;
}

/* ---- Prepare ------------------------------------------------------------------------------------------ */

static bool same_types(const state *s)
{
    for (size_t i = 1; i < s->operand_count; i++)
        if (s->operands[i].dtype != s->operands[0].dtype)
            return false;
    return true;
}

static dq_status pick(dq_op_call *call, state *s, const dq_ew_table *table, dq_error *err)
{
    dq_dtype dtype = s->operands[table->select].dtype;
    s->fn = table->fn[dtype];
    bool mixed = table->select == 0 && !same_types(s); /* Pow: base and exponent have different types */
    if (mixed) {
        s->stage = DQ_DOUBLE;
        s->fn = table->fn[DQ_DOUBLE];
    } else if (!s->fn && dq_dtype_is_float(dtype) && dq_dtype_get(dtype)->bits < 32) {
        s->stage = DQ_FLOAT;
        s->fn = table->fn[DQ_FLOAT];
    }
    if (!s->fn)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "has no implementation for %s", dq_dtype_name(dtype));
    s->stage_out = s->stage != DQ_UNDEFINED && table->out == DQ_UNDEFINED;
    if (table->then)
        s->then = table->then->fn[s->stage != DQ_UNDEFINED ? s->stage : dtype];
    s->fold = table->fold;
    return DQ_OK;
}

dq_status dq_ew_prepare(dq_op_call *call, const dq_ew_table *table, const dq_tensor *const fixed[],
                        size_t fixed_count, dq_error *err)
{
    const dq_tensor *out = call->out[0];
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->operand_count = call->in_count > fixed_count ? call->in_count : fixed_count;
    s->operands = DQ_NEW_ARRAY(call->arena, s->operand_count, operand);
    if (!s->operands)
        return dq_no_memory(err, s->operand_count * sizeof(operand), "an operator's parameters");
    for (uint32_t i = 0; i < s->operand_count; i++) {
        operand *o = &s->operands[table->swap ? 1 - i : i];
        const dq_tensor *stand_in = i < fixed_count ? fixed[i] : NULL;
        dq_tensor shape;
        if (stand_in)
            shape = *stand_in;
        else
            DQ_TRY(aligned(call, table, i, &shape, err));
        o->fixed = stand_in ? stand_in->data : NULL;
        o->input = i;
        o->dtype = shape.dtype;
        o->width = width_of(shape.dtype);
        dq_broadcast_strides(&shape, out->rank, out->dims, o->strides);
    }
    s->params.operands = s->operand_count;
    s->params.rows = call->kernels->rows_f32;
    s->params.kernels = call->kernels;
    s->out = out->dtype;
    s->out_width = width_of(out->dtype);
    s->count = out->count;
    DQ_TRY(pick(call, s, table, err));
    if (table->params)
        DQ_TRY(table->params(call, &s->params, err));
    if (!s->count)
        return DQ_OK;
    coalesce(s, out->rank, out->dims);
    dq_dtype type = s->stage != DQ_UNDEFINED ? s->stage : s->operands[table->select].dtype;
    /* Swaps operands if the kernel takes a second operand of step 0 and the first one has it. Float kernels
     * take either. */
    if (table->commutes && (table->seconds & ~table->steps) >> type & 1 && s->operand_count == 2 &&
        s->operands[0].strides[s->rank - 1] == 0) {
        const operand first = s->operands[0];
        s->operands[0] = s->operands[1];
        s->operands[1] = first;
    }
    for (size_t i = 0; i < s->operand_count && !(table->steps >> type & 1); i++)
        s->copies |= s->operands[i].strides[s->rank - 1] == 0 && !(i && table->seconds >> type & 1);
    s->rows = rows_at_once(s);
    return DQ_OK;
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

typedef union block {
    float f[BLOCK];
    double d[BLOCK];
} block;

typedef struct job {
    const state *s;
    const dq_op_call *call;
    void *out;
} job;

static void widen(const job *j, const operand *o, const char *from, size_t n, block *to)
{
    dq_tensor view = {.dtype = o->dtype, .data = (void *)(uintptr_t)from};
    if (j->s->stage == DQ_FLOAT)
        dq_load_floats(j->call->kernels, o->dtype, from, 0, n, to->f);
    else
        for (size_t i = 0; i < n; i++)
            to->d[i] = dq_tensor_get_double(&view, i);
}

static void narrow(const job *j, const block *from, size_t n, char *to)
{
    dq_tensor view = {.dtype = j->s->out, .data = to};
    if (j->s->stage == DQ_FLOAT)
        dq_store_from_floats(j->call->kernels, j->s->out, to, 0, n, from->f, true);
    else
        for (size_t i = 0; i < n; i++)
            dq_tensor_put_double(&view, i, from->d[i]);
}

/* Operand i from `offset` elements on: its own data, or widened into `to`. */
static const void *load(const job *j, size_t i, size_t offset, size_t n, size_t *step, block *to)
{
    const operand *o = &j->s->operands[i];
    const char *from = o->fixed ? o->fixed : j->call->in[o->input]->data;
    from += offset * o->width;
    *step = o->strides[j->s->rank - 1];
    if (j->s->stage == DQ_UNDEFINED)
        return from;
    widen(j, o, from, *step ? n : 1, to);
    return to;
}

static void copy_run(void *out, const void *from, size_t step, size_t width, size_t n)
{
    if (step) {
        memcpy(out, from, n * width);
        return;
    }
    memcpy(out, from, width);
    for (size_t done = 1; done < n;) {
        size_t more = done < n - done ? done : n - done;
        memcpy((char *)out + done * width, out, more * width);
        done += more;
    }
}

/* Runs the kernel. Operands of step 0 that it does not take are materialized, and the segment is divided
 * accordingly. */
static void apply(const state *s, void *out, const void *const in[], const size_t step[], size_t n)
{
    if (!s->copies) {
        s->fn(out, in, step, n, &s->params);
        return;
    }
    size_t operands = s->fold ? 2 : s->operand_count, piece = n, width[SLOTS] = {0};
    for (size_t i = 0; i < operands; i++) {
        width[i] = s->stage != DQ_UNDEFINED ? dq_dtype_get(s->stage)->bits / 8u : s->operands[i].width;
        if (!step[i] && piece > COPIES / width[i])
            piece = COPIES / width[i];
    }
    _Alignas(16) char copies[SLOTS][COPIES];
    const char *at[SLOTS] = {NULL};
    for (size_t i = 0; i < operands; i++) {
        at[i] = step[i] ? in[i] : copies[i];
        if (!step[i])
            copy_run(copies[i], in[i], 0, width[i], piece);
    }
    const size_t out_width = s->stage_out ? width[0] : s->out_width;
    for (size_t done = 0; done < n; done += piece) {
        const void *from[SLOTS];
        for (size_t i = 0; i < operands; i++)
            from[i] = at[i] + step[i] * done * width[i];
        s->fn((char *)out + done * out_width, from, step, n - done < piece ? n - done : piece, &s->params);
    }
}

/* Applies what follows the kernel to its n results in `to`: the table `then`, and the narrowing to the output
 * type. */
static void finish(const job *j, void *to, size_t n, char *out)
{
    const state *s = j->s;
    if (s->then)
        s->then(to, (const void *[]){to}, (const size_t[]){1}, n, &s->params);
    if (s->stage_out)
        narrow(j, to, n, out);
}

/* Computes a segment of at most BLOCK elements (of any length if nothing is widened). */
static void compute(const job *j, const size_t coord[DQ_MAX_RANK], size_t n, char *out)
{
    const state *s = j->s;
    block buffers[SLOTS], result;
    const void *in[SLOTS] = {NULL};
    size_t step[SLOTS] = {0};
    void *to = s->stage_out ? (void *)&result : (void *)out;
    for (size_t i = 0; i < s->operand_count; i++) {
        size_t offset = 0;
        for (size_t d = 0; d < s->rank; d++)
            offset += coord[d] * s->operands[i].strides[d];
        size_t slot = s->fold && i > 0 ? 1 : i;
        in[slot] = load(j, i, offset, n, &step[slot], &buffers[slot]);
        if (!s->fold || i == 0)
            continue;
        apply(s, to, in, step, n);
        in[0] = to;
        step[0] = 1;
    }
    if (!s->fold)
        apply(s, to, in, step, n);
    else if (s->operand_count == 1)
        copy_run(to, in[0], step[0], s->stage ? sizeof(float) : s->out_width, n);
    finish(j, to, n, out);
}

/* Writes `rows` segments of `row` copies of one value each; the values have stride `stride`. It may write up
 * to 7 bytes past the end. */
static void broadcast(const char *from, size_t stride, size_t width, size_t rows, size_t row, char *to)
{
    for (size_t r = 0; r < rows; r++, from += stride * width) {
        uint64_t value = 0;
        if (width == 1)
            value = *(const uint8_t *)from * (UINT64_MAX / UINT8_MAX);
        else if (width == 2)
            value = *(const uint16_t *)(const void *)from * (UINT64_MAX / UINT16_MAX);
        else if (width == 4)
            value = *(const uint32_t *)(const void *)from * (UINT64_MAX / UINT32_MAX);
        else
            value = *(const uint64_t *)(const void *)from;
        for (size_t i = 0; i < row * width; i += sizeof value)
            memcpy(to + r * row * width + i, &value, sizeof value);
    }
}

typedef struct written {
    _Alignas(16) char bytes[COPIES + MAX_SHORT_BYTES]; /* a segment may begin inside the first copy */
    const char *from;                                  /* source of the copies */
} written;

/* Data of operand o for n results from offset `within` of the innermost two dimensions on. These begin at
 * `from`. */
static const void *rows_of(const state *s, const operand *o, const char *from, size_t within, size_t n,
                           written *w)
{
    const size_t last = s->rank - 1, row = s->dims[last], first = within / row;
    if (broadcasts(s, o))
        broadcast(from + first * o->strides[last - 1] * o->width, o->strides[last - 1], o->width,
                  (within + n - 1) / row - first + 1, row, w->bytes);
    else if (!repeats(s, o))
        return from + within * o->strides[last] * o->width;
    else
        for (size_t k = 0; k <= s->rows && w->from != from; k++)
            memcpy(w->bytes + k * row * o->width, from, row * o->width);
    w->from = from;
    return w->bytes + within % row * o->width;
}

/* Computes results begin … end - 1, several innermost segments at a time. */
static void run_rows(const job *j, size_t begin, size_t end)
{
    const state *s = j->s;
    const size_t last = s->rank - 1, row = s->dims[last], plane = s->dims[last - 1] * row;
    written copies[SLOTS];
    block buffers[SLOTS], result;
    for (size_t i = 0; i < SLOTS; i++)
        copies[i].from = NULL;
    for (size_t at = begin, n; at < end; at += n) {
        const void *in[SLOTS] = {NULL};
        size_t step[SLOTS] = {0}, within = at % plane;
        n = plane - within < s->rows * row ? plane - within : s->rows * row;
        n = n < end - at ? n : end - at;
        for (size_t i = 0; i < s->operand_count; i++) {
            const operand *o = &s->operands[i];
            const char *from = o->fixed ? o->fixed : j->call->in[o->input]->data;
            size_t rest = at / plane;
            for (size_t d = last - 1; d-- > 0; rest /= s->dims[d])
                from += rest % s->dims[d] * o->strides[d] * o->width;
            step[i] = broadcasts(s, o) ? 1 : o->strides[last];
            in[i] = rows_of(s, o, from, within, n, &copies[i]);
            if (s->stage == DQ_UNDEFINED)
                continue;
            widen(j, o, in[i], step[i] ? n : 1, &buffers[i]);
            in[i] = &buffers[i];
        }
        char *out = (char *)j->out + at * s->out_width;
        void *to = s->stage_out ? (void *)&result : (void *)out;
        apply(s, to, in, step, n);
        finish(j, to, n, out);
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    if (s->rows) {
        run_rows(j, begin, end);
        return;
    }
    size_t coord[DQ_MAX_RANK] = {0};
    for (size_t d = s->rank, rest = begin; d-- > 0; rest /= s->dims[d])
        coord[d] = rest % s->dims[d];
    size_t last = s->rank - 1;
    for (size_t at = begin; at < end;) {
        size_t n = s->dims[last] - coord[last];
        n = n < end - at ? n : end - at;
        if (s->stage != DQ_UNDEFINED && n > BLOCK)
            n = BLOCK;
        compute(j, coord, n, (char *)j->out + at * s->out_width);
        at += n;
        coord[last] += n;
        for (size_t d = last; d > 0 && coord[d] == s->dims[d]; d--) {
            coord[d] = 0;
            coord[d - 1]++;
        }
    }
}

dq_status dq_ew_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    job j = {s, call, call->out[0] ? call->out[0]->data : NULL};
    if (s->count && j.out)
        dq_parallel(call->threads, s->count, GRAIN, piece, &j);
    return DQ_OK;
}
