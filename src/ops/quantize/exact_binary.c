/* QLinearAdd and QLinearMul of the domain dqrun: sums and products of two quantized operands, broadcast, as
 * the real-number formula has them, rounded once (ops/quantize/exact_ratio.h).
 *
 * The kernels are those of com.microsoft's operators, with numbers (attribute `terms`) for which all 65,536
 * pairs of quantized values have been tried. Without such numbers results come from a table of all pairs. */
#include "ops/broadcast.h"
#include "ops/quantize/exact_ratio.h"

enum { GRAIN = 16384 /* elements of a task */, VALUES = 256 };

typedef struct state {
    dq_loop loop;
    const float *terms;   /* NULL: … */
    const uint8_t *table; /* … by quantized values of the first operand, then of the second; each as a byte */
} state;

static const uint32_t operands[] = {0, 3};

static dq_status infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check_exact(call, 1, 2, err));
    DQ_TRY(dq_q8_check_exact(call, 4, 5, err));
    DQ_TRY(dq_q8_check_exact(call, 6, 7, err));
    return dq_loop_infer(call, operands, 2, call->in[0]->dtype, err);
}

static dq_q8_pair pair_of(const dq_op_call *call)
{
    const dq_dtype dtype = call->in[0]->dtype;
    return (dq_q8_pair){dq_q8_read(call, 1, 2, dtype), dq_q8_read(call, 4, 5, dtype),
                        dq_q8_read(call, 6, 7, dtype)};
}

static dq_status prepare(dq_op_call *call, size_t term_count, int (*result)(const dq_q8_pair *, int, int),
                         dq_error *err)
{
    const dq_attr *terms = dq_node_attr(call->node, "terms");
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    dq_loop_plan(call, operands, 2, &s->loop);
    if (terms && terms->count == term_count) {
        s->terms = terms->u.floats;
        return DQ_OK;
    }
    const dq_q8_pair pair = pair_of(call);
    uint8_t *table = DQ_NEW_ARRAY(call->arena, VALUES * VALUES, uint8_t);
    if (!table)
        return dq_no_memory(err, VALUES * VALUES, "a table of all pairs");
    for (int i = 0; i < VALUES * VALUES; i++)
        table[i] = (uint8_t)result(&pair, dq_q8_code(&pair.a, (uint8_t)(i / VALUES)),
                                   dq_q8_code(&pair.b, (uint8_t)(i % VALUES)));
    s->table = table;
    return DQ_OK;
}

static dq_status prepare_add(dq_op_call *call, dq_error *err)
{
    return prepare(call, DQ_ADD_TERMS, dq_q8_add, err);
}

static dq_status prepare_mul(dq_op_call *call, dq_error *err)
{
    return prepare(call, DQ_MUL_TERMS, dq_q8_mul, err);
}

typedef struct job {
    const dq_op_call *call;
    const state *s;
    const uint8_t *a, *b;
    uint8_t *y;
    dq_q8_pair pair;
    dq_loop_fn *fn;
} job;

static void look_up(void *arg, const dq_loop_run *run)
{
    const job *j = arg;
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1];
    for (size_t i = 0; i < run->n; i++)
        j->y[run->at + i] = j->s->table[a[i * run->step[0]] * VALUES + b[i * run->step[1]]];
}

/* The kernels' second operand may stay the same along a run. */
static void add_run(void *arg, const dq_loop_run *run)
{
    const job *j = arg;
    const bool b_first = run->step[0] == 0;
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1];
    const uint8_t *first = b_first ? b : a, *second = b_first ? a : b;
    const float *t = j->s->terms + (b_first ? DQ_ADD_TERMS / 2 : 0);
    const size_t step = run->step[!b_first];
    uint8_t *y = j->y + run->at;
    if (j->pair.y.min < 0)
        j->call->kernels->qlinear_add_s8((const int8_t *)first, t[0], (const int8_t *)second, t[1], step,
                                         t[2], run->n, (int8_t *)y);
    else
        j->call->kernels->qlinear_add_u8(first, t[0], second, t[1], step, t[2], run->n, y);
}

static void mul_run(void *arg, const dq_loop_run *run)
{
    const job *j = arg;
    const bool b_first = run->step[0] == 0;
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1];
    const uint8_t *first = b_first ? b : a, *second = b_first ? a : b;
    const int first_zero = b_first ? j->pair.b.zero : j->pair.a.zero;
    const int second_zero = b_first ? j->pair.a.zero : j->pair.b.zero;
    const float *t = j->s->terms;
    const size_t step = run->step[!b_first];
    uint8_t *y = j->y + run->at;
    if (j->pair.y.min < 0)
        j->call->kernels->qlinear_mul_s8((const int8_t *)first, first_zero, (const int8_t *)second,
                                         second_zero, step, t[0], t[1], run->n, (int8_t *)y);
    else
        j->call->kernels->qlinear_mul_u8(first, first_zero, second, second_zero, step, t[0], t[1], run->n, y);
}

static void range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    dq_loop_range(&j->s->loop, begin, end, j->fn, arg);
}

static dq_status run(const dq_op_call *call, dq_loop_fn *fn)
{
    const state *s = call->state;
    if (!call->out[0])
        return DQ_OK;
    job j = {.call = call,
             .s = s,
             .a = call->in[0]->data,
             .b = call->in[3]->data,
             .y = call->out[0]->data,
             .pair = pair_of(call),
             .fn = s->terms ? fn : look_up};
    dq_parallel(call->threads, call->out[0]->count, GRAIN, range, &j);
    return DQ_OK;
}

static dq_status add(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run(call, add_run);
}

static dq_status mul(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run(call, mul_run);
}

const dq_op_impl dq_op_exact_add = {infer, prepare_add, add,
                                    DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_SLICED_ALL};
const dq_op_impl dq_op_exact_mul = {infer, prepare_mul, mul,
                                    DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_SLICED_ALL};
