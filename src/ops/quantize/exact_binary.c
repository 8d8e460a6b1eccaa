/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAdd and QLinearMul of the domain dqrun: sums and products of two quantized operands, broadcast.
 * Results are those of the real-number formula, rounded once (ops/quantize/exact_ratio.h).
 *
 * The kernels are those of com.microsoft's operators. Attribute `terms` has their parameters, which were
 * verified for all 65,536 pairs of quantized values. Without it, the kernels compute a lower and an upper
 * bound of each result. Where these differ, the result comes from a lookup table of all pairs. */
#include "base/cpu.h"
#include "ops/broadcast.h"
#include "ops/quantize/exact_ratio.h"

#include <string.h>

enum {
    GRAIN = 16384, /* elements of a task */
    BLOCK = 1024,  /* elements whose bounds are compared at a time, in the L1 cache */
    GROUP = 16,    /* elements that one comparison tells to be equal */
    VALUES = 256,
    MAX_TERMS = DQ_ADD_TERMS
};

typedef struct state {
    dq_loop loop;
    const float *terms;   /* kernel parameters, exact for all pairs; NULL: none */
    const uint8_t *table; /* without terms: all results by the operands' bytes; index a * VALUES + b */
    bool has_bounds;      /* without terms: low and high are kernel parameters that bound the results */
    float low[MAX_TERMS], high[MAX_TERMS];
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

/* Whether two runs of the kernel are faster than the table. Without fused multiply-add in hardware, one run
 * of qlinear_add takes longer than the table does. */
static bool has_fast_kernels(const dq_kernels *kernels)
{
    dq_kernels portable, sse41;
    dq_kernels_select(DQ_ISA_C, &portable);
    dq_kernels_select(DQ_ISA_C | DQ_ISA_SSE41, &sse41);
    return kernels->qlinear_add_u8 != portable.qlinear_add_u8 &&
           kernels->qlinear_add_u8 != sse41.qlinear_add_u8;
}

typedef int result_fn(const dq_q8_pair *p, int a, int b);
typedef bool bounds_fn(const dq_q8_pair *p, float *low, float *high);

static dq_status prepare(dq_op_call *call, size_t term_count, result_fn *result, bounds_fn *bounds,
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
        table[i] = (uint8_t)result(&pair, dq_q8_value(&pair.a, (uint8_t)(i / VALUES)),
                                   dq_q8_value(&pair.b, (uint8_t)(i % VALUES)));
    s->table = table;
    s->has_bounds = has_fast_kernels(call->kernels) && bounds(&pair, s->low, s->high);
    return DQ_OK;
}

static dq_status prepare_add(dq_op_call *call, dq_error *err)
{
    return prepare(call, DQ_ADD_TERMS, dq_q8_add, dq_q8_add_bounds, err);
}

static dq_status prepare_mul(dq_op_call *call, dq_error *err)
{
    return prepare(call, DQ_MUL_TERMS, dq_q8_mul, dq_q8_mul_bounds, err);
}

typedef struct job job;

/* Runs the kernel with `terms`. */
typedef void kernel_fn(const job *j, const float *terms, const dq_loop_segment *run, uint8_t *y);

struct job {
    const dq_op_call *call;
    const state *s;
    const uint8_t *a, *b;
    uint8_t *y;
    dq_q8_pair pair;
    kernel_fn *kernel;
    dq_loop_fn *fn;
};

/* The kernel's second operand may be a scalar (step 0). */
static void add_kernel(const job *j, const float *terms, const dq_loop_segment *run, uint8_t *y)
{
    const bool b_first = run->step[0] == 0;
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1];
    const uint8_t *first = b_first ? b : a, *second = b_first ? a : b;
    const float *t = terms + (b_first ? DQ_ADD_TERMS / 2 : 0);
    const size_t step = run->step[!b_first];
    if (j->pair.y.min < 0)
        j->call->kernels->qlinear_add_s8((const int8_t *)first, t[0], (const int8_t *)second, t[1], step,
                                         t[2], run->n, (int8_t *)y);
    else
        j->call->kernels->qlinear_add_u8(first, t[0], second, t[1], step, t[2], run->n, y);
}

static void mul_kernel(const job *j, const float *terms, const dq_loop_segment *run, uint8_t *y)
{
    const bool b_first = run->step[0] == 0;
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1];
    const uint8_t *first = b_first ? b : a, *second = b_first ? a : b;
    const int first_zero = b_first ? j->pair.b.zero : j->pair.a.zero;
    const int second_zero = b_first ? j->pair.a.zero : j->pair.b.zero;
    const size_t step = run->step[!b_first];
    if (j->pair.y.min < 0)
        j->call->kernels->qlinear_mul_s8((const int8_t *)first, first_zero, (const int8_t *)second,
                                         second_zero, step, terms[0], terms[1], run->n, (int8_t *)y);
    else
        j->call->kernels->qlinear_mul_u8(first, first_zero, second, second_zero, step, terms[0], terms[1],
                                         run->n, y);
}

static void run_exact(void *arg, const dq_loop_segment *run)
{
    const job *j = arg;
    j->kernel(j, j->s->terms, run, j->y + run->at);
}

static void look_up_all(void *arg, const dq_loop_segment *run)
{
    const job *j = arg;
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1], *table = j->s->table;
    const size_t a_step = run->step[0], b_step = run->step[1], n = run->n;
    uint8_t *y = j->y + run->at;
    for (size_t i = 0; i < n; i++)
        y[i] = table[a[i * a_step] * VALUES + b[i * b_step]];
}

/* Index of the first group of bytes from `begin` on that differ, or of the last group if it is shorter. */
static size_t next_unequal(const uint8_t *low, const uint8_t *high, size_t begin, size_t n)
{
    size_t i = begin;
    while (i + GROUP <= n && memcmp(low + i, high + i, GROUP) == 0)
        i += GROUP;
    return i;
}

/* Replaces lower bounds by the exact result where the upper bounds differ. */
static void look_up_unequal(const job *j, const dq_loop_segment *run, uint8_t *low, const uint8_t *high)
{
    const uint8_t *a = j->a + run->offset[0], *b = j->b + run->offset[1], *table = j->s->table;
    const size_t a_step = run->step[0], b_step = run->step[1], n = run->n;
    for (size_t i = next_unequal(low, high, 0, n); i < n; i = next_unequal(low, high, i, n))
        for (size_t end = i + GROUP < n ? i + GROUP : n; i < end; i++)
            if (low[i] != high[i])
                low[i] = table[a[i * a_step] * VALUES + b[i * b_step]];
}

/* Computes bounds block by block. Results may overwrite an operand in place, so they are stored after the
 * block has been read. */
static void run_bounds(void *arg, const dq_loop_segment *run)
{
    const job *j = arg;
    uint8_t low[BLOCK], high[BLOCK];
    dq_loop_segment part = *run;
    for (size_t done = 0; done < run->n; done += part.n) {
        part.n = run->n - done < BLOCK ? run->n - done : BLOCK;
        part.at = run->at + done;
        for (int k = 0; k < 2; k++)
            part.offset[k] = run->offset[k] + done * run->step[k];
        j->kernel(j, j->s->low, &part, low);
        j->kernel(j, j->s->high, &part, high);
        look_up_unequal(j, &part, low, high);
        memcpy(j->y + part.at, low, part.n);
    }
}

static void range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    dq_loop_range(&j->s->loop, begin, end, j->fn, arg);
}

static dq_status run(const dq_op_call *call, kernel_fn *kernel)
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
             .kernel = kernel,
             .fn = s->terms        ? run_exact
                   : s->has_bounds ? run_bounds
                                   : look_up_all};
    dq_parallel(call->threads, call->out[0]->count, GRAIN, range, &j);
    return DQ_OK;
}

static dq_status add(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run(call, add_kernel);
}

static dq_status mul(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run(call, mul_kernel);
}

const dq_op_impl dq_op_exact_add = {infer, prepare_add, add,
                                    DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_BATCH_SEPARABLE_ALL};
const dq_op_impl dq_op_exact_mul = {infer, prepare_mul, mul,
                                    DQ_OP_IN_PLACE | DQ_OP_IN_ANY_PLACE | DQ_OP_BATCH_SEPARABLE_ALL};
