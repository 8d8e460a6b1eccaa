/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm: alpha · A' · B' + beta · C; dqrun's Gemm, which has bounds; and FusedGemm, which has an activation
 * function. The terms are computed in the computing type (float for 16-bit floats); the result is rounded
 * once to the output type. For integers, alpha and beta are applied in double; the result is truncated. */
#include "ops/elementwise/elementwise.h"
#include "ops/half_floats.h"
#include "ops/matmul/matmul_f32.h"
#include "ops/matmul/matmul_generic.h"

#include <string.h>

typedef struct state {
    dq_matmul_f32 floats;
    dq_half_floats halves;
    bool by_floats; /* computed by `floats`, else by `mm` */
    dq_matmul_generic mm;
    size_t a_row, a_step, b_col, b_step; /* strides in elements */
    size_t c_row, c_col;                 /* 0 where C is broadcast */
    float alpha, beta;
    dq_ew_fn *fn; /* activation of FusedGemm; NULL: none, or only bounds */
    dq_ew_params params;
} state;

enum { B = 1 };
enum { ELEMENTS_PER_TASK = 4096 /* approximate results of a parallel task */ };

typedef struct operands {
    const state *s;
    const dq_tensor *a, *b, *c;
    dq_tensor *out;
} operands;

/* ---- Shapes ------------------------------------------------------------------------------------------- */

typedef struct shape {
    size_t m, n, k;
    bool trans_a, trans_b;
} shape;

static dq_status shape_of(const dq_op_call *call, shape *s, dq_error *err)
{
    const dq_tensor *a = call->in[0], *b = call->in[1];
    for (uint32_t i = 0; i < 2; i++)
        if (call->in[i]->rank != 2)
            return dq_call_fail_input(call, err, i, "has rank %u, expected a matrix", call->in[i]->rank);
    s->trans_a = dq_node_int(call->node, "transA", 0) != 0;
    s->trans_b = dq_node_int(call->node, "transB", 0) != 0;
    s->m = (size_t)a->dims[s->trans_a];
    s->k = (size_t)a->dims[!s->trans_a];
    s->n = (size_t)b->dims[!s->trans_b];
    if ((size_t)b->dims[s->trans_b] != s->k)
        return dq_call_fail_input(call, err, 1, "has %lld terms to a sum, expected the %zu of input 0",
                                  (long long)b->dims[s->trans_b], s->k);
    const dq_tensor *c = dq_call_in(call, 2);
    if (!c)
        return DQ_OK;
    int64_t dims[DQ_MAX_RANK], want[2] = {(int64_t)s->m, (int64_t)s->n};
    size_t rank;
    if (!dq_broadcast(c->rank, c->dims, 2, want, &rank, dims) || rank != 2 ||
        memcmp(dims, want, sizeof want) != 0) {
        char text[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, 2, "has shape %s, expected one that broadcasts to [%zu,%zu]",
                                  dq_shape_text(c->rank, c->dims, text), s->m, s->n);
    }
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    shape s = {0};
    DQ_TRY(shape_of(call, &s, err));
    int64_t dims[2] = {(int64_t)s.m, (int64_t)s.n};
    return dq_call_output(call, 0, call->in[0]->dtype, 2, dims, err);
}

/* ---- FusedGemm's activation ---------------------------------------------------------------------------- */

/* Reads the activation: a function with the name of its operator, whose attributes are activation_alpha,
 * activation_beta and activation_gamma. */
static dq_status read_activation(const dq_op_call *call, state *s, dq_error *err)
{
    static const struct {
        const char *name;
        unsigned params;
    } known[] = {{"Relu", 0}, {"Tanh", 0},      {"Sigmoid", 0},         {"Softplus", 0},    {"Softsign", 0},
                 {"Elu", 1},  {"LeakyRelu", 1}, {"ThresholdedRelu", 1}, {"HardSigmoid", 2}, {"Selu", 2}};
    enum { KNOWN = sizeof known / sizeof *known };
    const char *name = dq_node_string(call->node, "activation", "");
    const dq_attr *alpha = dq_node_attr(call->node, "activation_alpha");
    const dq_attr *beta = dq_node_attr(call->node, "activation_beta");
    const dq_attr *gamma = dq_node_attr(call->node, "activation_gamma");
    size_t i = 0;
    while (i < KNOWN && strcmp(known[i].name, name) != 0)
        i++;
    if (*name == '\0')
        return DQ_OK;
    if (i == KNOWN)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "attribute 'activation' is '%s', which is no function here", name);
    const dq_attr *second = strcmp(name, "Selu") == 0 ? gamma : beta;
    if ((known[i].params > 0 && !alpha) || (known[i].params > 1 && !second))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has activation '%s' without its parameters", name);
    if (strcmp(name, "Relu") == 0) {
        s->floats.bounds.low = 0;
        return DQ_OK;
    }
    s->fn = dq_ew_find(name, strlen(name))->fn;
    s->params = (dq_ew_params){.alpha = alpha ? (double)alpha->u.f : 0,
                               .beta = beta ? (double)beta->u.f : 0,
                               .gamma = gamma ? (double)gamma->u.f : 0,
                               .operands = 1,
                               .rows = call->kernels->rows_f32};
    return DQ_OK;
}

static void activate(const state *s, float *x, size_t n)
{
    const void *in[1] = {x};
    const size_t step[1] = {1};
    if (s->fn)
        s->fn(x, in, step, n, &s->params);
}

typedef struct results {
    const state *s;
    float *x;
} results;

static void activate_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const results *r = arg;
    const size_t n = r->s->mm.n;
    activate(r->s, r->x + begin * n, (end - begin) * n);
}

/* ---- Operands ----------------------------------------------------------------------------------------- */

static void pack_a(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    (void)batch;
    const operands *o = arg;
    const state *s = o->s;
    const dq_matmul_generic_strip rows = {.data = o->a->data,
                                          .dtype = o->a->dtype,
                                          .strip_stride = s->a_row,
                                          .step_stride = s->a_step,
                                          .strip_width = DQ_STRIP_ROWS,
                                          .k = s->mm.k};
    dq_matmul_generic_pack_strided(&rows, row * s->a_row, count, to);
}

static void pack_b(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    (void)batch;
    const operands *o = arg;
    const state *s = o->s;
    const dq_matmul_generic_strip columns = {.data = o->b->data,
                                             .dtype = o->b->dtype,
                                             .strip_stride = s->b_col,
                                             .step_stride = s->b_step,
                                             .strip_width = DQ_STRIP_COLS,
                                             .k = s->mm.k};
    dq_matmul_generic_pack_strided(&columns, col * s->b_col, count, to);
}

static int64_t cut(double x)
{
    if (!(x > -9223372036854775808.0)) /* NaN too */
        return INT64_MIN;
    return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;
}

/* Computes an integer result, modulo 2^64; exact if alpha and beta are 1. */
static uint64_t join_integer(const operands *o, uint64_t product, size_t c_at)
{
    const state *s = o->s;
    bool narrow = dq_dtype_get(o->a->dtype)->bits == 32,
         is_signed = dq_dtype_get(o->a->dtype)->cls == DQ_CLASS_INT;
    uint64_t term = o->c ? (uint64_t)dq_tensor_get_int(o->c, c_at) : 0;
    if (s->alpha == 1 && s->beta == 1)
        return product + term;
    double p = !is_signed ? (double)product : narrow ? (double)(int32_t)product : (double)(int64_t)product;
    double t = is_signed ? (double)(int64_t)term : (double)term;
    return (uint64_t)cut((double)s->alpha * p + (double)s->beta * t);
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    (void)batch;
    const operands *o = arg;
    const state *s = o->s;
    for (size_t i = 0; i < rows; i++) {
        size_t at = (row + i) * s->mm.n + col, c_at = (row + i) * s->c_row + col * s->c_col;
        float f[DQ_STRIP_COLS];
        double d[DQ_STRIP_COLS];
        for (size_t j = 0; j < cols; j++) {
            size_t t = i * DQ_STRIP_COLS + j, c_here = c_at + j * s->c_col;
            switch (s->mm.type) {
            case DQ_FLOAT:
                f[j] = s->alpha * ((const float *)tile)[t];
                if (o->c)
                    f[j] += s->beta * (float)dq_tensor_get_double(o->c, c_here);
                f[j] = f[j] < s->floats.bounds.low ? s->floats.bounds.low : f[j];
                f[j] = f[j] > s->floats.bounds.high ? s->floats.bounds.high : f[j];
                break;
            case DQ_DOUBLE:
                d[j] = (double)s->alpha * ((const double *)tile)[t];
                if (o->c)
                    d[j] += (double)s->beta * dq_data(o->c, double)[c_here];
                break;
            case DQ_UINT32:
                dq_tensor_put_int(o->out, at + j,
                                  (int64_t)join_integer(o, ((const uint32_t *)tile)[t], c_here));
                break;
            default:
                dq_tensor_put_int(o->out, at + j,
                                  (int64_t)join_integer(o, ((const uint64_t *)tile)[t], c_here));
                break;
            }
        }
        if (s->mm.type == DQ_FLOAT)
            activate(s, f, cols);
        if (s->mm.type == DQ_FLOAT || s->mm.type == DQ_DOUBLE)
            dq_matmul_generic_write(o->out->data, o->out->dtype, at,
                                    s->mm.type == DQ_FLOAT ? (const void *)f : (const void *)d, cols);
    }
}

/* ---- The operator ------------------------------------------------------------------------------------- */

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    shape sh = {0};
    DQ_TRY(shape_of(call, &sh, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(dq_call_bounds(call, &s->floats.bounds, err));
    DQ_TRY(read_activation(call, s, err));
    s->mm = (dq_matmul_generic){.type = dq_matmul_generic_type(call->in[0]->dtype),
                                .batches = 1,
                                .m = sh.m,
                                .n = sh.n,
                                .k = sh.k,
                                .pack_a = pack_a,
                                .pack_b = pack_b,
                                .store = store};
    s->a_row = sh.trans_a ? 1 : sh.k;
    s->a_step = sh.trans_a ? sh.m : 1;
    s->b_col = sh.trans_b ? sh.k : 1;
    s->b_step = sh.trans_b ? 1 : sh.n;
    s->alpha = dq_node_float(call->node, "alpha", 1);
    s->beta = dq_node_float(call->node, "beta", 1);
    const dq_tensor *c = dq_call_in(call, 2);
    if (c) {
        int64_t dims[2] = {(int64_t)sh.m, (int64_t)sh.n};
        size_t strides[DQ_MAX_RANK];
        dq_broadcast_strides(c, 2, dims, strides);
        s->c_row = strides[0];
        s->c_col = strides[1];
    }
    /* the float GEMM can add C if beta is 1 and C is contiguous along the rows */
    s->by_floats =
        dq_half_floats_take(call->in[0]->dtype) && (!c || (s->beta == 1 && (s->c_col == 1 || sh.n == 1)));
    if (s->by_floats) {
        s->floats = (dq_matmul_f32){.batches = 1,
                                    .m = sh.m,
                                    .n = sh.n,
                                    .k = sh.k,
                                    .a_row = s->a_row,
                                    .a_step = s->a_step,
                                    .b_col = s->b_col,
                                    .b_step = s->b_step,
                                    .alpha = s->alpha,
                                    .bounds = s->floats.bounds,
                                    .z_stride = s->c_row != 0};
        DQ_TRY(dq_matmul_f32_prepare(call, B, &s->floats, err));
        return dq_half_floats_prepare(call, s->floats.panels ? 1 << B : 0, &s->halves, err);
    }
    DQ_TRY(dq_matmul_generic_constant_b(call, 1, s->b_col, s->b_step, &s->mm, err));
    return dq_matmul_generic_prepare(call, &s->mm, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    operands o = {.s = s, .a = call->in[0], .b = call->in[1], .c = dq_call_in(call, 2), .out = call->out[0]};
    if (!o.out || o.out->count == 0)
        return DQ_OK;
    dq_matmul_f32_operands floats = {.z_row = s->c_row};
    if (s->by_floats) {
        floats.a = dq_half_floats_in(call, &s->halves, 0);
        floats.b = dq_half_floats_in(call, &s->halves, 1);
        floats.c = dq_half_floats_out(call, &s->halves);
        floats.z = dq_half_floats_in(call, &s->halves, 2);
        dq_matmul_f32_run(call, &s->floats, &floats);
        results r = {s, floats.c};
        if (s->fn)
            dq_parallel(call->threads, s->mm.m, ELEMENTS_PER_TASK / s->mm.n + 1, activate_rows, &r);
        dq_half_floats_done(call, &s->halves);
    } else {
        dq_matmul_generic_run(call, &s->mm, &o);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gemm = {infer, prepare, run, DQ_OP_PACKS};
