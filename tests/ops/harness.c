/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "support/random.h"
#include "support/threads_of.h"

#include "base/codec.h"
#include "base/cpu.h"
#include "ops/packs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

void ops_begin(ops_case *c, const char *domain, const char *name, int version)
{
    memset(c, 0, sizeof *c);
    c->op = dq_op_find(domain, name, version);
    ck_assert_msg(c->op != NULL, "%s-%d is not implemented", name, version);
    c->node.name = "node";
    c->node.domain = domain;
    c->node.op_type = name;
    c->node.overload = "";
    c->node.opset = version;
    c->node.attrs = c->attrs;
    c->out_count = 1;
}

void ops_end(ops_case *c)
{
    dq_arena_free(&c->arena);
}

/* ---- Attributes and inputs ---------------------------------------------------------------------------- */

static dq_attr *add_attr(ops_case *c, const char *name, dq_attr_kind kind)
{
    ck_assert_uint_lt(c->node.attr_count, OPS_MAX);
    dq_attr *attr = &c->attrs[c->node.attr_count++];
    attr->name = name;
    attr->kind = kind;
    return attr;
}

void ops_int(ops_case *c, const char *name, int64_t value)
{
    add_attr(c, name, DQ_ATTR_INT)->u.i = value;
}

void ops_float(ops_case *c, const char *name, float value)
{
    add_attr(c, name, DQ_ATTR_FLOAT)->u.f = value;
}

void ops_string(ops_case *c, const char *name, const char *value)
{
    dq_attr *attr = add_attr(c, name, DQ_ATTR_STRING);
    attr->u.s = (dq_string){value, strlen(value)};
}

void ops_ints(ops_case *c, const char *name, size_t count, const int64_t *values)
{
    dq_attr *attr = add_attr(c, name, DQ_ATTR_INTS);
    attr->count = count;
    attr->u.ints = values;
}

void ops_floats(ops_case *c, const char *name, size_t count, const float *values)
{
    dq_attr *attr = add_attr(c, name, DQ_ATTR_FLOATS);
    attr->count = count;
    attr->u.floats = values;
}

static dq_tensor *new_tensor(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims)
{
    dq_tensor *t = NULL;
    dq_status status = dq_tensor_new(&c->arena, dtype, rank, dims, 0, &t, &c->err);
    ck_assert_msg(status == DQ_OK, "%s", c->err.message);
    return t;
}

static dq_tensor *add_input(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims)
{
    ck_assert_uint_lt(c->in_count, OPS_MAX);
    return c->in[c->in_count++] = new_tensor(c, dtype, rank, dims);
}

static void put_value(dq_tensor *t, size_t i, double value)
{
    const dq_dtype_row *row = dq_dtype_get(t->dtype);
    if (row->cls == DQ_CLASS_COMPLEX)
        ck_abort_msg("complex inputs are given as bits");
    if (t->dtype == DQ_DOUBLE)
        dq_data(t, double)[i] = value;
    else if (row->cls == DQ_CLASS_FLOAT)
        dq_put_bits(t->data, row->bits, i,
                    dq_encode_float(t->dtype, dq_round_to_odd(value), !isinf(value), DQ_ROUND_NEAREST));
    else if (t->dtype == DQ_UINT64)
        dq_data(t, uint64_t)[i] = (uint64_t)value;
    else
        dq_tensor_put_int(t, i, (int64_t)value);
}

dq_tensor *ops_in(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims, const double *values)
{
    dq_tensor *t = add_input(c, dtype, rank, dims);
    for (size_t i = 0; values && i < t->count; i++) {
        if (dtype == DQ_FLOAT) /* one rounding to nearest: the value is not rounded again */
            dq_data(t, float)[i] = (float)values[i];
        else
            put_value(t, i, values[i]);
    }
    return t;
}

dq_tensor *ops_in_random(ops_case *c, uint64_t *state, dq_dtype dtype, size_t rank, const int64_t *dims)
{
    dq_tensor *t = add_input(c, dtype, rank, dims);
    for (size_t i = 0; i < t->size; i++)
        ((uint8_t *)t->data)[i] = (uint8_t)random_below(state, 256);
    return t;
}

dq_tensor *ops_scalar(ops_case *c, dq_dtype dtype, double value)
{
    return ops_in(c, dtype, OPS_SCALAR, &value);
}

dq_tensor *ops_in_bits(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims, const uint64_t *bits)
{
    dq_tensor *t = add_input(c, dtype, rank, dims);
    for (size_t i = 0; i < t->count; i++)
        dq_put_bits(t->data, dq_dtype_bits(dtype), i, bits[i]);
    return t;
}

dq_tensor *ops_in_strings(ops_case *c, size_t rank, const int64_t *dims, const char *const *values)
{
    dq_tensor *t = add_input(c, DQ_STRING, rank, dims);
    for (size_t i = 0; i < t->count; i++)
        dq_data(t, dq_string)[i] = (dq_string){values[i], strlen(values[i])};
    return t;
}

void ops_skip(ops_case *c)
{
    ck_assert_uint_lt(c->in_count, OPS_MAX);
    c->in[c->in_count++] = NULL;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* One run: what the planner and the executor set in a call. */
typedef struct setup {
    dq_kernels kernels;
    dq_threads *threads;
    bool constant; /* inputs are known while planning */
    const dq_tensor *in[OPS_MAX];
    dq_tensor hidden[OPS_MAX]; /* inputs as seen before their data is known */
    dq_packs *packs;           /* or NULL; with them constants are loose where the operator takes that */
    dq_tensor unaligned[OPS_MAX];
    dq_tensor *out[OPS_MAX];
    dq_op_call call;
} setup;

static const dq_tensor *loosen(ops_case *c, const dq_tensor *from, dq_tensor *to)
{
    char *bytes = dq_arena_alloc(&c->arena, from->size + 1, 64);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes + 1, from->data, from->size);
    *to = *from;
    to->data = bytes + 1;
    to->unaligned = true;
    return to;
}

static void fill_call(ops_case *c, setup *s)
{
    s->call = (dq_op_call){.node = &c->node,
                           .version = c->node.opset,
                           .in_count = c->in_count,
                           .out_count = c->out_count,
                           .in = s->in,
                           .out = s->out,
                           .in_formals = c->formals,
                           .constant_inputs = s->constant ? UINT64_MAX : c->weights,
                           .persistent_inputs = s->packs ? UINT64_MAX : 0,
                           .packs = s->packs,
                           .arena = &c->arena,
                           .threads = s->threads,
                           .kernels = &s->kernels,
                           .honor_accuracy_level = c->honor_accuracy_level,
                           .strings = &c->arena};
    for (uint32_t i = 0; i < c->in_count; i++) {
        s->in[i] = c->in[i];
        if (!s->constant && c->in[i] && !(c->weights >> i & 1)) {
            s->hidden[i] = *c->in[i];
            s->hidden[i].data = NULL;
            s->in[i] = &s->hidden[i];
        }
        if (s->packs && c->op->impl->flags & DQ_OP_PACKS && c->in[i] && c->in[i]->size)
            s->in[i] = loosen(c, c->in[i], &s->unaligned[i]);
    }
    for (uint32_t i = 0; i < c->out_count; i++) {
        s->out[i] = DQ_NEW(&c->arena, dq_tensor);
        ck_assert_ptr_nonnull(s->out[i]);
        s->out[i]->dtype = c->out_types[i];
    }
}

/* What was packed stays as it is. */
static void show_inputs(ops_case *c, setup *s)
{
    for (uint32_t i = 0; i < c->in_count; i++)
        if (s->in[i] != &s->unaligned[i] || !(s->call.packed_inputs >> i & 1))
            s->in[i] = c->in[i];
}

static dq_status plan(ops_case *c, setup *s)
{
    dq_status status = c->op->impl->infer(&s->call, &c->err);
    if (status == DQ_DEFERRED) {
        ck_assert_msg(!s->constant, "infer asked for a value that it has");
        show_inputs(c, s);
        status = c->op->impl->infer(&s->call, &c->err);
    }
    if (status == DQ_OK && c->op->impl->prepare)
        status = c->op->impl->prepare(&s->call, &c->err);
    if (status == DQ_OK)
        status = dq_packs_finish(s->packs, s->threads, &c->err);
    show_inputs(c, s);
    return status;
}

static void *guarded(ops_case *c, size_t size)
{
    unsigned char *bytes = dq_arena_alloc(&c->arena, size + GUARD, 64);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, GUARD_BYTE, size + GUARD);
    return bytes;
}

static void check_guard(const void *data, size_t size, const char *what)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < GUARD; i++)
        ck_assert_msg(bytes[size + i] == GUARD_BYTE, "wrote past the end of %s", what);
}

/* Scratch for threads to share is in proportion to what an operator works on. */
static void check_scratch(const ops_case *c, const setup *s)
{
    enum { TIMES = 64, LITTLE = 1 << 16 };
    size_t all = LITTLE;
    for (uint32_t i = 0; i < c->in_count; i++)
        all += c->in[i] ? c->in[i]->size : 0;
    for (uint32_t i = 0; i < c->out_count; i++)
        all += s->out[i]->size;
    ck_assert_msg(s->call.scratch_size / TIMES <= all, "%zu bytes of scratch for tensors of %zu",
                  s->call.scratch_size, all);
}

static dq_status execute(ops_case *c, setup *s)
{
    for (uint32_t i = 0; i < c->out_count; i++) {
        ck_assert_msg(s->out[i]->dtype != DQ_UNDEFINED, "output %u has no type after infer", i);
        s->out[i]->data = guarded(c, s->out[i]->size);
        if (s->out[i]->dtype == DQ_STRING)
            memset(s->out[i]->data, 0, s->out[i]->size);
    }
    size_t workers = s->call.worker_scratch_size * dq_threads_count(s->threads);
    check_scratch(c, s);
    s->call.scratch = guarded(c, s->call.scratch_size);
    s->call.worker_scratch = guarded(c, workers);
    void *copies[OPS_MAX] = {NULL};
    for (uint32_t i = 0; i < c->in_count; i++)
        if (c->in[i] && c->in[i]->size) {
            copies[i] = dq_arena_alloc(&c->arena, c->in[i]->size, 1);
            ck_assert_ptr_nonnull(copies[i]);
            memcpy(copies[i], c->in[i]->data, c->in[i]->size);
        }
    dq_status status = c->op->impl->run(&s->call, &c->err);
    for (uint32_t i = 0; i < c->in_count; i++)
        ck_assert_msg(!copies[i] || memcmp(copies[i], c->in[i]->data, c->in[i]->size) == 0,
                      "input %u was written", i);
    for (uint32_t i = 0; i < c->out_count; i++)
        check_guard(s->out[i]->data, s->out[i]->size, "an output");
    check_guard(s->call.scratch, s->call.scratch_size, "the scratch");
    check_guard(s->call.worker_scratch, workers, "the workers' scratch");
    return status;
}

static void check_same(const dq_tensor *a, const dq_tensor *b)
{
    ck_assert_int_eq(a->dtype, b->dtype);
    ck_assert(dq_tensor_same_shape(a, b));
    if (a->dtype == DQ_STRING) {
        for (size_t i = 0; i < a->count; i++) {
            dq_string x = dq_data(a, dq_string)[i], y = dq_data(b, dq_string)[i];
            ck_assert(x.length == y.length && (!x.length || memcmp(x.bytes, y.bytes, x.length) == 0));
        }
        return;
    }
    const unsigned char *x = a->data, *y = b->data;
    for (size_t i = 0; i < a->size; i++) /* an assertion takes long */
        if (x[i] != y[i])
            ck_abort_msg("byte %zu differs between kernels, threads or constness", i);
}

dq_status ops_run(ops_case *c)
{
    enum { PLAIN, UNKNOWN, KNOWN, WAYS };
    setup *ways = calloc(WAYS, sizeof *ways);
    dq_status status[WAYS];
    ck_assert_ptr_nonnull(ways);
    ways[PLAIN].constant = ways[KNOWN].constant = true;
    dq_kernels_select(DQ_ISA_C, &ways[PLAIN].kernels);
    dq_kernels_select(dq_cpu_isa(), &ways[UNKNOWN].kernels);
    dq_kernels_select(dq_cpu_isa(), &ways[KNOWN].kernels);
    ck_assert_int_eq(threads_of(3, &ways[UNKNOWN].threads, &c->err), DQ_OK);
    ck_assert_int_eq(dq_packs_create(NULL, &ways[KNOWN].packs, &c->err), DQ_OK);
    for (int i = WAYS; i-- > 0;) { /* the message of PLAIN stays */
        fill_call(c, &ways[i]);
        status[i] = plan(c, &ways[i]);
    }
    bool planned = status[PLAIN] == DQ_OK && status[UNKNOWN] == DQ_OK && status[KNOWN] == DQ_OK;
    for (int i = WAYS; planned && i-- > 0;)
        status[i] = execute(c, &ways[i]);
    ck_assert_msg(status[UNKNOWN] == status[PLAIN] || status[UNKNOWN] == DQ_OK, "%s", c->err.message);
    ck_assert_msg(status[KNOWN] == status[PLAIN], "%s", c->err.message);
    for (uint32_t i = 0; status[PLAIN] == DQ_OK && i < c->out_count; i++) {
        check_same(ways[PLAIN].out[i], ways[UNKNOWN].out[i]);
        check_same(ways[PLAIN].out[i], ways[KNOWN].out[i]);
        c->out[i] = ways[PLAIN].out[i];
    }
    dq_status result = status[PLAIN];
    dq_threads_free(ways[UNKNOWN].threads);
    dq_packs_free(ways[KNOWN].packs);
    free(ways);
    return result;
}

void ops_must_run(ops_case *c)
{
    dq_status status = ops_run(c);
    ck_assert_msg(status == DQ_OK, "refused: %s", c->err.message);
}

void ops_must_refuse(ops_case *c, dq_status status, const char *message)
{
    dq_status got = ops_run(c);
    ck_assert_msg(got != DQ_OK, "ran, expected: %s", message);
    ck_assert_str_eq(c->err.message, message);
    ck_assert_int_eq(got, status);
}

/* ---- Looking at outputs ------------------------------------------------------------------------------- */

static const dq_tensor *check_type(const ops_case *c, uint32_t i, dq_dtype dtype, size_t rank,
                                   const int64_t *dims)
{
    const dq_tensor *t = c->out[i];
    char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
    ck_assert_str_eq(dq_dtype_name(t->dtype), dq_dtype_name(dtype));
    ck_assert_str_eq(dq_shape_text(t->rank, t->dims, got), dq_shape_text(rank, dims, expected));
    return t;
}

void ops_want(const ops_case *c, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
              const double *values)
{
    const dq_tensor *t = check_type(c, i, dtype, rank, dims);
    for (size_t k = 0; k < t->count; k++) {
        double got = dq_tensor_get_double(t, k), expected = values[k];
        bool same = isnan(expected) ? isnan(got) : got == expected && signbit(got) == signbit(expected);
        ck_assert_msg(same, "element %zu is %.17g, expected %.17g", k, got, expected);
    }
}

void ops_want_bits(const ops_case *c, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
                   const uint64_t *bits)
{
    const dq_tensor *t = check_type(c, i, dtype, rank, dims);
    for (size_t k = 0; k < t->count; k++) {
        uint64_t got = dq_get_bits(t->data, dq_dtype_bits(dtype), k);
        ck_assert_msg(got == bits[k], "element %zu is %#" PRIx64 ", expected %#" PRIx64, k, got, bits[k]);
    }
}

void ops_want_strings(const ops_case *c, uint32_t i, size_t rank, const int64_t *dims,
                      const char *const *values)
{
    const dq_tensor *t = check_type(c, i, DQ_STRING, rank, dims);
    for (size_t k = 0; k < t->count; k++) {
        dq_string got = dq_data(t, dq_string)[k];
        ck_assert_msg(got.length == strlen(values[k]) && memcmp(got.bytes, values[k], got.length) == 0,
                      "element %zu is '%.*s', expected '%s'", k, (int)got.length, got.bytes, values[k]);
    }
}

void ops_check_unary(const char *name, int version, dq_dtype dtype, int64_t n, const double *x, dq_dtype out,
                     const double *values)
{
    ops_case c;
    ops_begin(&c, "", name, version);
    ops_in(&c, dtype, OPS_DIMS(n), x);
    ops_must_run(&c);
    ops_want(&c, 0, out, OPS_DIMS(n), values);
    ops_end(&c);
}

void ops_check_binary(const char *name, int version, dq_dtype dtype, int64_t n, const double *a,
                      const double *b, dq_dtype out, const double *values)
{
    ops_case c;
    ops_begin(&c, "", name, version);
    ops_in(&c, dtype, OPS_DIMS(n), a);
    ops_in(&c, dtype, OPS_DIMS(n), b);
    ops_must_run(&c);
    ops_want(&c, 0, out, OPS_DIMS(n), values);
    ops_end(&c);
}
