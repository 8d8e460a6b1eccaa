/* SPDX-License-Identifier: Apache-2.0 */
/* What the control flow operators are made of: inner graphs that run, values that outlive an iteration, and
 * tensors put together slice by slice. */
#ifndef DQ_EXEC_INNER_H
#define DQ_EXEC_INNER_H

#include "exec/exec.h"
#include "plan/rewrite_cache.h"

/** An inner graph with its plan and memory. Where the plan around it was made again, so is its own: what it
 * takes may have changed, shapes and constants alike. */
typedef struct dq_inner {
    dq_graph *graph;
    dq_plan *plan;       /* NULL before the first run */
    uint32_t generation; /* of the plan around it, when this one was made */
    dq_exec exec;
    const dq_rewritten_graph *rewritten; /* once made; NULL: the graph as written */
    dq_tensor *inputs;                   /* by position, for the caller to fill in before each run */
    dq_binding *bindings;                /* the inputs, then what the graph takes from outside */
    dq_tensor *planned;                  /* what `plan` was made for; by place in `given` */
    uint32_t binding_count;
    bool *passed; /* by output: one of the inputs as it came, see dq_inner_pass */
    const dq_value **requested;
} dq_inner;

/** A value with memory of its own. */
typedef struct dq_kept {
    dq_tensor t;
    void *memory;
    size_t capacity;
    const dq_allocator *allocator; /* NULL: malloc */
} dq_kept;

/** State of a step with inner graphs. */
typedef struct dq_flow {
    const dq_allocator *allocator; /* of all that it has: the plan's */
    dq_inner *inners[2];           /* If: then and else; the others: the body, and NULL */
    dq_kept *kept;                 /* by output of the step */
    dq_kept *slices;               /* by input of the body */
    uint32_t kept_count, slice_count;
    int64_t iteration;
    bool go;
} dq_flow;

/** The state of the step, made at its first run, with the graphs of the attributes of these names (the second
 * may be NULL). */
dq_status dq_flow_open(const dq_plan *plan, dq_step *step, const char *first, const char *second,
                       dq_flow **out, dq_error *err);

/** Runs the graph over inner->inputs. Outputs: dq_inner_output, until it runs again. */
dq_status dq_inner_run(dq_inner *inner, const dq_plan *outer, const dq_step *step, dq_error *err);
const dq_tensor *dq_inner_output(const dq_inner *inner, uint32_t i);

/** Whether the graph's output `out` is its input `in` as it came: a state that no iteration changes. Such an
 * output is not computed (dq_inner_output may not be asked), and the input is what the loop began with. */
bool dq_inner_pass(dq_inner *inner, uint32_t out, uint32_t in);
/** Gives the graph's input `in` the step's input `from`, the same in all iterations: as a constant where it
 * is one outside. */
void dq_inner_hold(dq_inner *inner, uint32_t in, const dq_plan *outer, const dq_step *step, uint32_t from);

/** The body has as many inputs and outputs as the operator wants. */
dq_status dq_inner_check_arity(const dq_inner *inner, const dq_step *step, uint32_t inputs, uint32_t outputs,
                               dq_error *err);

/** Copies a tensor; of a sequence or optional, whose items live as long as the run, the list's head. */
dq_status dq_kept_set(dq_kept *kept, const dq_tensor *t, dq_error *err);
void dq_kept_free(dq_kept *kept);
/** A tensor of that type and shape, zeroed, with room for it; what it held stays in front when `keep`. */
dq_status dq_kept_shape(dq_kept *kept, const dq_step *step, dq_dtype dtype, size_t rank, const int64_t *dims,
                        bool keep, dq_error *err);

/** Copies slice `at` along `axis` out of `whole`, or into it; `slice` has the shape of whole without that
 * axis. Both have data. */
void dq_slice_out(const dq_step *step, const dq_tensor *whole, size_t axis, size_t at, dq_tensor *slice);
void dq_slice_in(const dq_step *step, dq_tensor *whole, size_t axis, size_t at, const dq_tensor *slice);

/** Output i of the body, output `to` of the step, put together along `axis` when no iteration ran: zeros,
 * `length` long (0 but for padding), and otherwise as the body declares it, unknown dimensions 0. */
dq_status dq_empty_scan(const dq_inner *inner, const dq_step *step, uint32_t i, uint32_t to, int64_t axis,
                        int64_t length, dq_kept *kept, dq_error *err);

/** Gives the step its output i. */
void dq_flow_give(dq_step *step, uint32_t i, const dq_tensor *t);
/** Gives the step its input `from` as output i, out of memory of its own unless it is a constant. */
dq_status dq_flow_give_input(dq_step *step, uint32_t i, const dq_plan *outer, uint32_t from, dq_kept *kept,
                             dq_error *err);

/** Run a Scan step (scan.c), or a SequenceMap step (sequence_map.c), whose inputs are there. */
dq_status dq_flow_scan(dq_plan *plan, dq_step *step, dq_error *err);
dq_status dq_flow_sequence_map(dq_plan *plan, dq_step *step, dq_error *err);

#endif
