/* RotaryEmbedding: pairs of numbers of each head are turned by the angle of their place. */
#include "ops/element.h"
#include "ops/rows.h"

#include <inttypes.h>

enum { X, COS, SIN, POSITIONS };

typedef struct shape {
    size_t batch, heads, steps, size, turned; /* `turned` numbers of each head's `size` come in pairs */
} shape;

static dq_status read_shape(const dq_op_call *call, shape *s, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    if (x->rank != 3 && x->rank != 4)
        return dq_call_fail_input(call, err, X, "has rank %u, wanted 3 or 4", x->rank);
    int64_t heads = x->rank == 4 ? x->dims[1] : dq_node_int(call->node, "num_heads", 0);
    int64_t last = x->dims[x->rank - 1];
    if (x->rank == 3 && (heads < 1 || last % heads != 0))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'num_heads' is %" PRId64 ", wanted a divisor of %" PRId64, heads,
                            last);
    s->batch = (size_t)x->dims[0];
    s->heads = (size_t)heads;
    s->steps = (size_t)x->dims[x->rank - 2];
    s->size = (size_t)(x->rank == 4 ? last : last / heads);
    int64_t turned = dq_node_int(call->node, "rotary_embedding_dim", 0);
    if (turned == 0)
        turned = (int64_t)s->size;
    if (turned < 0 || turned > (int64_t)s->size || turned % 2 != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "turns %" PRId64 " numbers of heads of %zu, wanted an even part of them", turned,
                            s->size);
    s->turned = (size_t)turned;
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    shape s;
    DQ_TRY(read_shape(call, &s, err));
    const dq_tensor *positions = dq_call_in(call, POSITIONS);
    int64_t pairs = (int64_t)s.turned / 2, batch = (int64_t)s.batch, steps = (int64_t)s.steps;
    for (uint32_t i = COS; i <= SIN; i++) {
        const dq_tensor *t = call->in[i];
        bool fits = positions
                        ? t->rank == 2 && t->dims[1] == pairs && t->dims[0] == call->in[COS]->dims[0]
                        : t->rank == 3 && t->dims[0] == batch && t->dims[1] == steps && t->dims[2] == pairs;
        char text[DQ_SHAPE_TEXT];
        if (!fits && positions)
            return dq_call_fail_input(call, err, i,
                                      "has shape %s, wanted a row of %" PRId64 " for each position",
                                      dq_shape_text(t->rank, t->dims, text), pairs);
        if (!fits)
            return dq_call_fail_input(call, err, i, "has shape %s, wanted %zux%zux%" PRId64,
                                      dq_shape_text(t->rank, t->dims, text), s.batch, s.steps, pairs);
    }
    if (positions && (positions->rank != 2 || positions->dims[0] != batch || positions->dims[1] != steps)) {
        char text[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, POSITIONS, "has shape %s, wanted %zux%zu",
                                  dq_shape_text(positions->rank, positions->dims, text), s.batch, s.steps);
    }
    return dq_call_output_like(call, 0, call->in[X]->dtype, call->in[X], err);
}

static void load(const dq_tensor *t, size_t at, size_t n, double *to)
{
    dq_load_doubles(t->dtype, t->data, at, n, to);
}

static void store(dq_tensor *t, size_t at, size_t n, const double *from)
{
    dq_store_floats(t->dtype, t->data, at, n, from, true, DQ_ROUND_NEAREST);
}

static void turn(const dq_op_call *call, const shape *s, size_t at, size_t angle)
{
    bool interleaved = dq_node_int(call->node, "interleaved", 0) != 0;
    size_t pairs = s->turned / 2;
    const dq_tensor *in = call->in[X];
    dq_tensor *out = call->out[0];
    for (size_t i = 0, n; i < pairs; i += n) {
        double x[2 * DQ_ROW], cosines[DQ_ROW], sines[DQ_ROW];
        n = pairs - i < DQ_ROW ? pairs - i : DQ_ROW;
        size_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : n; /* of pairs, and of a pair */
        load(call->in[COS], angle * pairs + i, n, cosines);
        load(call->in[SIN], angle * pairs + i, n, sines);
        load(in, at + i * step, n * step, x);
        if (!interleaved)
            load(in, at + pairs + i, n, x + n);
        for (size_t k = 0; k < n; k++) {
            double re = x[k * step], im = x[k * step + apart];
            x[k * step] = cosines[k] * re - sines[k] * im;
            x[k * step + apart] = sines[k] * re + cosines[k] * im;
        }
        store(out, at + i * step, n * step, x);
        if (!interleaved)
            store(out, at + pairs + i, n, x + n);
    }
    if (s->size > s->turned)
        dq_copy_elements(in, at + s->turned, out, at + s->turned, s->size - s->turned);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    shape s;
    DQ_TRY(read_shape(call, &s, err));
    const dq_tensor *positions = dq_call_in(call, POSITIONS);
    bool flat = call->in[X]->rank == 3;
    for (size_t step = 0; call->in[X]->count && step < s.batch * s.steps; step++) {
        size_t angle = step;
        if (positions) {
            int64_t given = dq_tensor_get_int(positions, step), rows = call->in[COS]->dims[0];
            if (given < 0 || given >= rows)
                return dq_call_fail(call, err, DQ_BAD_INPUT,
                                    "input 3 holds position %" PRId64 ", wanted 0 to %" PRId64, given,
                                    rows - 1);
            angle = (size_t)given;
        }
        for (size_t h = 0; h < s.heads; h++) {
            size_t b = step / s.steps, t = step % s.steps;
            turn(call, &s, (flat ? step * s.heads + h : (b * s.heads + h) * s.steps + t) * s.size, angle);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_rotary_embedding = {infer, NULL, run, 0};
