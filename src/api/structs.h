/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the structs of dqrun.h that begin with `size` and grow at their end.
 *
 * A public function that receives such a struct copies it with dq_read_struct and uses the copy. The copy has
 * every field: those that an older program does not have are zero. A function that returns one fills a
 * complete struct and copies it to the caller with dq_write_struct. */
#ifndef DQ_API_STRUCTS_H
#define DQ_API_STRUCTS_H

#include "base/error.h"

/* One row for each struct that the program initializes: the middle of its DQ_X_INIT macro, the type, and the
 * last field of the first version. A row never changes; new fields go to the end of the struct. */
#define DQ_PUBLIC_STRUCTS(X)                                                                                 \
    X(LIMITS, dq_limits, work)                                                                               \
    X(OPERATOR_INFO, dq_operator_info, name)                                                                 \
    X(ALLOCATOR, dq_allocator, arg)                                                                          \
    X(LOAD_OPTIONS, dq_load_options, base_dir)                                                               \
    X(VALUE_INFO, dq_value_info, dim_names)                                                                  \
    X(ATTRIBUTE, dq_attribute, count)                                                                        \
    X(NODE_SPEC, dq_node_spec, attributes)                                                                   \
    X(MODEL_INFO, dq_model_info, metadata_count)                                                             \
    X(GRAPH_INFO, dq_graph_info, values)                                                                     \
    X(NODE_INFO, dq_node_info, graph)                                                                        \
    X(QUANTIZATION, dq_quantization, node)                                                                   \
    X(THREAD_POOL_OPTIONS, dq_thread_pool_options, spin_us)                                                  \
    X(SESSION_OPTIONS, dq_session_options, pool)                                                             \
    X(SHAPE, dq_shape, dims)                                                                                 \
    X(MEMORY_INFO, dq_memory_info, constant_bytes)                                                           \
    X(STEP_INFO, dq_step_info, scratch_bytes)                                                                \
    X(PASS_INFO, dq_pass_info, exactness)                                                                    \
    X(ALGORITHM_INFO, dq_algorithm_info, result)

typedef enum dq_struct {
#define DQ_STRUCT_ENUMERATOR(middle, type, last) DQ_STRUCT_##middle,
    DQ_PUBLIC_STRUCTS(DQ_STRUCT_ENUMERATOR)
#undef DQ_STRUCT_ENUMERATOR
        DQ_STRUCT_COUNT
} dq_struct;

/** Copies the caller's struct to `own`, a complete struct of that type. `given` may be NULL: all defaults.
 * `where` names function and argument, "dq_session_create: options". DQ_INVALID_ARGUMENT: the size is below
 * the first version's. DQ_UNSUPPORTED: a field that this library does not have is not zero. */
dq_status dq_read_struct(dq_struct which, const char *where, const void *caller, void *own, dq_error *err);

/** Copies those fields of `own` that the caller's struct has, except `size`. DQ_INVALID_ARGUMENT: as above,
 * or `to` is NULL; then it writes nothing. */
dq_status dq_write_struct(dq_struct which, const char *where, const void *own, void *to, dq_error *err);

#endif
