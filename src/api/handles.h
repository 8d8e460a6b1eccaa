/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of the public handles. */
#ifndef DQ_API_HANDLES_H
#define DQ_API_HANDLES_H

#include "exec/exec.h"

#include <stdatomic.h>

struct dq_model {
    dq_allocator allocator; /* Of the model and all its memory; zeros: malloc. */
    dq_program *program;
    dq_schemas *schemas;
    atomic_uint users; /* References: the caller's, and one of each session. */
    dq_arena arena;    /* Of the data that the functions below return. */
    dq_value_info *inputs, *outputs;
    uint32_t input_count;
    uint32_t *input_at; /* For each of `inputs`: its position in the graph's inputs. */
};

/** A caller's complete request for a model, whatever the size of its structs. */
typedef struct dq_load_request {
    dq_load_options options; /* Its pointers to structs point to those below, or are NULL. */
    dq_limits limits;
    dq_allocator allocator;
} dq_load_request;

/** Reads the options of the public function `function`; NULL: the defaults. */
dq_status dq_load_request_read(const char *function, const dq_load_options *options, dq_load_request *out,
                               dq_error *err);

/** Reads the caller's allocator; `where` is as in dq_read_struct. NULL: *out is all zeros, which means
 * malloc. */
dq_status dq_allocator_read(const char *where, const dq_allocator *allocator, dq_allocator *out,
                            dq_error *err);

/** Makes a model of a graph from any source: inlines functions, links and checks it. Takes ownership of `ir`,
 * also on an error. The options are those of a dq_load_request. */
dq_status dq_model_from_ir(dq_ir *ir, const dq_load_options *options, dq_model **out, dq_error *err);

/** Describes a value in a complete struct of this library's version. */
dq_status dq_describe_value(const dq_value *v, dq_value_info *info, dq_error *err);

/** Writes a list of the inputs, "image: float[N,1,8,8], mask: bool[N]", to `buffer`, always terminated. */
void dq_model_wants(const dq_model *model, char *buffer, size_t size);

#endif
