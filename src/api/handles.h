/* SPDX-License-Identifier: Apache-2.0 */
/* What the public handles are. */
#ifndef DQ_API_HANDLES_H
#define DQ_API_HANDLES_H

#include "exec/exec.h"

#include <stdatomic.h>

struct dq_model {
    dq_allocator allocator; /* of the model and all that it has; zeros: malloc */
    dq_program *program;
    dq_schemas *schemas;
    atomic_uint users; /* the caller, and each session */
    dq_arena arena;    /* of what the functions below hand out */
    dq_value_info *inputs, *outputs;
    uint32_t input_count;
    uint32_t *input_at; /* position in the graph's inputs of each of `inputs` */
};

/** What a caller asks for when it makes a model, whole, whatever the size of its structs. */
typedef struct dq_load_request {
    dq_load_options options; /* its pointers to structs lead to those below, or are NULL */
    dq_limits limits;
    dq_allocator allocator;
} dq_load_request;

/** Reads the options of a public function, `function`; NULL: the defaults. */
dq_status dq_load_request_read(const char *function, const dq_load_options *options, dq_load_request *out,
                               dq_error *err);

/** Reads an allocator of the caller's, `where` as in dq_read_struct; NULL: *out is of zeros, which is malloc.
 */
dq_status dq_allocator_read(const char *where, const dq_allocator *allocator, dq_allocator *out,
                            dq_error *err);

/** A model over a graph from whatever source: functions inlined, linked, checked. Takes `ir` over, also when
 * it fails. The options are those of a dq_load_request. */
dq_status dq_model_from_ir(dq_ir *ir, const dq_load_options *options, dq_model **out, dq_error *err);

/** Describes a value with the whole struct of this library. */
dq_status dq_describe_value(const dq_value *v, dq_value_info *info, dq_error *err);

/** "image: float[N,1,8,8], mask: bool[N]" into buffer, which is always terminated. */
void dq_model_wants(const dq_model *model, char *buffer, size_t size);

#endif
