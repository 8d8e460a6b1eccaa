/* SPDX-License-Identifier: Apache-2.0 */
/* tools/analyze includes this file first where gcc or clang-tidy read a file. They read one file at a time: a
 * function that reports an error, and is in another file, could return DQ_OK for all they know. These macros
 * tell them that it never does. */
#ifdef ANALYZED_TOOLS
#include "io/common.h"
#define io_fail(...) ((void)io_fail(__VA_ARGS__), DQ_INTERNAL)
#else
#include "base/error.h"
#define dq_fail(...) ((void)dq_fail(__VA_ARGS__), DQ_INTERNAL)
#define dq_no_memory(...) ((void)dq_no_memory(__VA_ARGS__), DQ_OUT_OF_MEMORY)
#ifdef ANALYZED_OPERATORS
#include "ops/op.h"
#define dq_call_fail(...) ((void)dq_call_fail(__VA_ARGS__), DQ_INTERNAL)
#define dq_call_fail_input(...) ((void)dq_call_fail_input(__VA_ARGS__), DQ_INTERNAL)
#define dq_call_fail_index(...) ((void)dq_call_fail_index(__VA_ARGS__), DQ_INTERNAL)
#define dq_call_fail_tuple(...) ((void)dq_call_fail_tuple(__VA_ARGS__), DQ_INTERNAL)
#endif
#endif
