/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing messages that a test wrote. */
#ifndef DQ_TESTS_PARSE_H
#define DQ_TESTS_PARSE_H

#include "onnx_writer.h"
#include "parser/parser.h"
#include "support/test_program.h"

static dq_error err;

static inline dq_status parse(const ow *model, dq_ir **ir)
{
    return dq_parse_memory(model->bytes, model->size, "t.onnx", NULL, ir, &err);
}

static inline dq_ir *parsed(const ow *model)
{
    dq_ir *ir = NULL;
    dq_status status = parse(model, &ir);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
    return ir;
}

static inline void refused(const ow *model, dq_status status, const char *message)
{
    dq_ir *ir = NULL;
    ck_assert_int_eq(parse(model, &ir), status);
    ck_assert_str_eq(err.message, message);
    ck_assert_int_eq(err.status, status);
    ck_assert_ptr_null(ir);
}

static inline const dq_tensor *constant(const dq_ir *ir, const char *name)
{
    const dq_value *value = dq_namemap_get(&ir->graph->values, name);
    ck_assert_ptr_nonnull(value);
    ck_assert_ptr_nonnull(value->constant);
    return value->constant;
}

#endif
