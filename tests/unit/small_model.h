/* SPDX-License-Identifier: Apache-2.0 */
/* Models of a few nodes from code, and a session of each. */
#ifndef DQ_TESTS_SMALL_MODEL_H
#define DQ_TESTS_SMALL_MODEL_H

#include "public.h"

static dq_model *model;
static dq_session *session;
static dq_builder *b;
static dq_tensor *made[64];
static size_t made_count;

static inline void refused(dq_status status, dq_status expected, const char *message)
{
    ck_assert_int_eq(status, expected);
    ck_assert_str_eq(err.message, message);
}

static inline void tear_down(void)
{
    dq_session_free(session);
    dq_model_free(model);
    session = NULL;
    model = NULL;
    while (made_count)
        dq_tensor_free(made[--made_count]);
}

static inline dq_tensor *keep(dq_tensor *t)
{
    ck_assert_uint_lt(made_count, sizeof made / sizeof *made);
    made[made_count++] = t;
    return t;
}

/* A tensor over memory of the test's. */
static inline dq_tensor *over(dq_dtype dtype, size_t rank, const int64_t *dims, void *data)
{
    dq_tensor *t = NULL;
    size_t size = dq_dtype_bits(dtype) / 8;
    for (size_t d = 0; d < rank; d++)
        size *= (size_t)dims[d];
    must(dq_tensor_wrap(dtype, rank, dims, data, size, &t, &err));
    return keep(t);
}

static inline dq_tensor *row(size_t n, float *data)
{
    return over(DQ_FLOAT, 1, (int64_t[]){(int64_t)n}, data);
}

/* ---- Models -------------------------------------------------------------------------------------------- */

static inline void begin(void)
{
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    must(dq_builder_opset(b, "com.microsoft", 1, &err));
}

static inline void input(const char *name, dq_dtype dtype, size_t rank, const int64_t *dims)
{
    must(dq_builder_input(b, name, dtype, rank, dims, NULL, &err));
}

static inline void output(const char *name)
{
    must(dq_builder_output(b, name, DQ_UNDEFINED, DQ_ANY_SHAPE, NULL, NULL, &err));
}

static inline void constant(const char *name, dq_dtype dtype, size_t rank, const int64_t *dims, void *data)
{
    must(dq_builder_initializer(b, name, over(dtype, rank, dims, data), &err));
}

static inline void node(const char *op, const char *in0, const char *in1, const char *out)
{
    const char *ins[] = {in0, in1};
    must(add_node(b, "", op, out, in1 ? 2 : 1, ins, 1, &out, 0, NULL, &err));
}

static inline void open_session(unsigned threads, bool no_fuse,
                                void (*log)(void *arg, const dq_log_record *record), void *arg)
{
    const dq_session_options options = {
        .size = sizeof(dq_session_options), .threads = threads, .no_fuse = no_fuse, .log = log, .arg = arg};
    must(dq_session_create(model, &options, &session, &err));
}

static inline void finish(void)
{
    must(dq_builder_finish(b, NULL, &model, &err));
    open_session(1, false, NULL, NULL);
}

static inline const void *data_of(const char *name)
{
    const dq_tensor *t = NULL;
    must(dq_session_get_output(session, name, &t, &err));
    return dq_tensor_data(t);
}

#endif
