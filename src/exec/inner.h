/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of control flow operators: subgraphs that run, values that outlive an iteration, and
 * tensors that are assembled slice by slice. */
#ifndef DQ_EXEC_INNER_H
#define DQ_EXEC_INNER_H

#include "exec/exec.h"
#include "plan/rewrite_cache.h"

/** A subgraph with its plan and memory. If the outer plan was reshaped, this plan is, too: shapes and
 * constants of its captures may have changed. */
typedef struct dq_inner {
    dq_graph *graph;
    dq_plan *plan;       /* NULL before the first run. */
    uint32_t generation; /* Generation of the outer plan for which this one was made. */
    dq_exec exec;
    const dq_rewritten_graph *rewritten; /* The rewritten graph; NULL: the graph as written. */
    dq_tensor *inputs;                   /* By position: the caller fills them in before each run. */
    dq_binding *bindings;                /* Bindings of the inputs, then of the captures. */
    dq_tensor *planned; /* By index in `given`: types and shapes for which `plan` was made. */
    uint32_t binding_count;
    bool *passed; /* By output: whether it is an unchanged input, see dq_inner_is_invariant. */
    const dq_value **requested;
} dq_inner;

/** A value with memory of its own. */
typedef struct dq_kept {
    dq_tensor t;
    void *memory;
    size_t capacity;
    const dq_allocator *allocator; /* NULL: malloc */
} dq_kept;

/** State of a step with subgraphs. */
typedef struct dq_flow {
    const dq_allocator *allocator; /* Of all its memory: the plan's allocator. */
    dq_inner *inners[2];           /* If: the then and else branches. Other operators: the body, and NULL. */
    dq_kept *kept;                 /* By output of the step. */
    dq_kept *slices;               /* By input of the body. */
    uint32_t kept_count, slice_count;
    int64_t iteration;
    bool go;
} dq_flow;

/** Gives the state of the step, which its first run makes. `first` and `second` (may be NULL) name the
 * attributes with the subgraphs. */
dq_status dq_flow_open(const dq_plan *plan, dq_step *step, const char *first, const char *second,
                       dq_flow **out, dq_error *err);

/** Runs the subgraph on inner->inputs. dq_inner_output gives its outputs until it runs again. */
dq_status dq_inner_run(dq_inner *inner, const dq_plan *outer, const dq_step *step, dq_error *err);
const dq_tensor *dq_inner_output(const dq_inner *inner, uint32_t i);

/** Whether the output `out` of the subgraph is its input `in`, unchanged: a loop-invariant state. Such an
 * output is not computed, and dq_inner_output must not be called for it: its value is the initial value of
 * the input. */
bool dq_inner_is_invariant(dq_inner *inner, uint32_t out, uint32_t in);
/** Binds input `in` of the subgraph to input `from` of the step for all iterations, as a constant if it is
 * constant in the outer plan. */
void dq_inner_bind_invariant(dq_inner *inner, uint32_t in, const dq_plan *outer, const dq_step *step,
                             uint32_t from);

/** Checks that the body has as many inputs and outputs as the operator requires. */
dq_status dq_inner_check_arity(const dq_inner *inner, const dq_step *step, uint32_t inputs, uint32_t outputs,
                               dq_error *err);

/** Copies a tensor. Of a sequence or optional it copies only the head of the list, because items live as long
 * as the run. */
dq_status dq_kept_set(dq_kept *kept, const dq_tensor *t, dq_error *err);
void dq_kept_free(dq_kept *kept);
/** Makes `kept` a zeroed tensor of that type and shape. `keep`: the bytes that it held stay at the front. */
dq_status dq_kept_shape(dq_kept *kept, const dq_step *step, dq_dtype dtype, size_t rank, const int64_t *dims,
                        bool keep, dq_error *err);

/** Copies slice `at` along `axis` out of `whole`, or into it. `slice` has the shape of `whole` without that
 * axis. Both have data. */
void dq_slice_extract(const dq_step *step, const dq_tensor *whole, size_t axis, size_t at, dq_tensor *slice);
void dq_slice_insert(const dq_step *step, dq_tensor *whole, size_t axis, size_t at, const dq_tensor *slice);

/** Sets the scan output of a loop that ran no iteration: output i of the body, concatenated along `axis` to
 * output `to` of the step. It has `length` elements along the axis (0 except for padding), all zero, and
 * otherwise the shape that the body declares, with 0 for unknown dimensions. */
dq_status dq_empty_scan(const dq_inner *inner, const dq_step *step, uint32_t i, uint32_t to, int64_t axis,
                        int64_t length, dq_kept *kept, dq_error *err);

/** Sets output i of the step. */
void dq_flow_set_output(dq_step *step, uint32_t i, const dq_tensor *t);
/** Sets output i of the step to its input `from`: a copy in `kept`, unless the input is constant. */
dq_status dq_flow_give_input(dq_step *step, uint32_t i, const dq_plan *outer, uint32_t from, dq_kept *kept,
                             dq_error *err);

/** Run a Scan step (scan.c) or a SequenceMap step (sequence_map.c). The inputs must have data. */
dq_status dq_flow_scan(dq_plan *plan, dq_step *step, dq_error *err);
dq_status dq_flow_sequence_map(dq_plan *plan, dq_step *step, dq_error *err);

#endif
