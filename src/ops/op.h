/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of an operator. One implementation serves all versions of an operator: `prepare` turns a
 * version's differences into plain parameters and picks kernels, `run` never looks at the opset.
 *
 * What the schema says is settled before any of this is called: the number of inputs and outputs, their
 * element types, which attributes there are, and their defaults (a default stands in the node like a given
 * attribute). What a schema cannot say, an operator's `infer` checks: shapes, lengths, the range of attribute
 * values.
 *
 * - infer: from the inputs' types and shapes (and the values of those that are known: data not NULL) gives
 * each wanted output its type and shape, by dq_call_output. When it needs a value that is not known yet it
 * returns dq_call_need(call, i): it is then called again, at run time, when all values are.
 *   What it finds out from values on the way may stay in call->state for prepare and run, made in
 * call->arena.
 * - prepare (may be NULL): makes `state` in call->arena and says how much scratch `run` wants. Types and
 * shapes of all inputs and outputs are final; an input's data is there when it is constant.
 * - run: computes the outputs' data from the inputs'. Allocates nothing (strings: from call->strings). Inputs
 * are never written. Outputs do not overlap inputs unless the operator says DQ_OP_VIEW or
 * DQ_OP_IN_PLACE, or call->joins.
 *
 * infer and prepare may run on any thread, for several plans at once: they write only to the call.
 * Errors are sentences about the node's own parts ("input 4 'w_scale' has 63 elements, expected 1 or 64"),
 * made with dq_call_fail_input and dq_call_fail; the caller puts the model and the node in front. */
#ifndef DQ_OPS_OP_H
#define DQ_OPS_OP_H

#include "base/checked.h"
#include "base/threads.h"
#include "graph/graph.h"
#include "kernels/kernels.h"
#include "ops/packs.h"
#include "tensor/shape.h"

/** Returned by infer, never seen by users: "call me again when all inputs have data". */
#define DQ_DEFERRED ((dq_status)-1)

typedef struct dq_op_call dq_op_call;

enum {
    DQ_OP_VIEW = 1 << 0,       /* output 0 has the bytes of input 0 under another shape or type: `run` may
                                  be skipped when the planner lets both share memory; `run` copies */
    DQ_OP_SHAPE_ONLY = 1 << 1, /* outputs depend on the inputs' shapes and types alone, not on their data */
    DQ_OP_IMPURE = 1 << 2,     /* not a function of its inputs (random numbers): never folded */
    DQ_OP_SUBGRAPH = 1 << 3,  /* holds graphs: run by the executor's control flow (exec/control_flow.h); infer
                                 and run are NULL */
    DQ_OP_ITEMS = 1 << 4,     /* takes or gives sequences or optionals, whose items are known only in a run:
                                 planned in each run */
    DQ_OP_UNALIGNED = 1 << 5, /* input 0 may be loose (dq_tensor): it is only copied from */
    DQ_OP_PACKS = 1 << 6,     /* constant inputs may be loose in infer and prepare, which give them to
                                 dq_call_pack or leave them alone; what was not packed is aligned in run */
    DQ_OP_IN_PLACE = 1 << 7,  /* an output may have the memory of input 0, where both have as many elements
                                 of the same size and no other input overlaps it */
    DQ_OP_IN_ANY_PLACE = 1 << 8, /* … or of another input */
    DQ_OP_REPEATS = 1 << 9, /* run in place once more, it gives the same: of the input, it writes only to what
                               it does not read, or as it was */
    DQ_OP_BROADCAST_VIEW = 1 << 15, /* input 1, of a view input 0, may be spread (dq_tensor) if it is of float
                               or float16 */
};

/** Outputs 1 and 2 may have the memory of inputs i and i + 1, i being 1 … 31, where both have the same size
 * and no other input overlaps it. */
#define DQ_OP_PAST_AT(i) ((unsigned)(i) << 10)
static inline uint32_t dq_op_past(unsigned flags)
{
    return flags >> 10 & 31; /* 0: none */
}

/** What stands at one place of the outputs' outermost axis follows from what stands there in the inputs of
 * `mask`, whose last bit is for all from there on, and from the other inputs, which broadcast, if at all.
 * An attribute `axis` or `perm`, or Resize that crops, may prevent it. MaxPool's second output does not. */
#define DQ_OP_BATCH_SEPARABLE(mask) ((unsigned)(mask) << 16)
#define DQ_OP_BATCH_SEPARABLE_FIRST DQ_OP_BATCH_SEPARABLE(1)
#define DQ_OP_BATCH_SEPARABLE_ALL DQ_OP_BATCH_SEPARABLE(0xFFFF)
static inline bool dq_op_sliced(unsigned flags, uint32_t i)
{
    return flags >> (i < 15 ? 16 + i : 31) & 1;
}

typedef struct dq_op_impl {
    dq_status (*infer)(dq_op_call *call, dq_error *err);
    dq_status (*prepare)(dq_op_call *call, dq_error *err);
    dq_status (*run)(const dq_op_call *call, dq_error *err);
    unsigned flags;
} dq_op_impl;

/** What is true of an operator whatever its attributes are. Rewrites ask for these, not for names. */
enum {
    DQ_TRAIT_ELEMENTWISE = 1 << 0, /* an output element depends on the elements at its place, by broadcast */
    DQ_TRAIT_CONTINUOUS = 1 << 1,  /* computes numbers, without jumps: a small change of an input makes a
                                      small one */
    DQ_TRAIT_DATA_MOVEMENT = 1 << 2, /* output elements are those of input 0, in other places or shapes */
    DQ_TRAIT_COPIES = 1 << 3,        /* output elements are those of any input: Concat, Where, Pad */
    DQ_TRAIT_SELECTS = 1 << 4        /* an output element is the greatest or least of some of input 0 */
};

typedef struct dq_op {
    const char *domain, *name;
    int first, last; /* since_versions that the implementation covers */
    const dq_op_impl *impl;
    unsigned traits; /* DQ_TRAIT_… */
} dq_op;

struct dq_op_call {
    const dq_node *node;
    int version; /* since_version of the node's schema */
    uint32_t in_count, out_count;
    const dq_tensor **in; /* NULL: left out. data NULL: value not known yet (never so in run) */
    dq_tensor **out;      /* NULL: not wanted, which only what the schema leaves open can be. dtype is set
                             before infer where the schema decides it */
    const char *const *in_formals; /* the schema's name of each input */
    uint64_t constant_inputs;      /* bit i: input i is the same for every run of the plan (i < 64) */
    uint64_t persistent_inputs;    /* bit i: … and its data lives as long as `packs` */
    uint64_t packed_inputs;        /* bit i: dq_call_pack was called for it */
    size_t *parts; /* set by infer (dq_call_parts) where each output is a stretch of input 0 as it stands: by
                      output its first element; run may be skipped when all share memory */
    size_t *joins; /* set by infer or prepare (dq_call_joins) where inputs stand end to end in output 0: by
                      input its first byte there, DQ_NOT_JOINED where it does not stand there as it is; run
                      leaves out what is there already (dq_call_joined) */
    size_t run, times;   /* set by infer, times not 0: output 0 would be input 0 spread so (dq_tensor) */
    dq_arena *arena;     /* for state; lives as long as the state */
    void *state;         /* prepare → run */
    size_t scratch_size; /* set by prepare: bytes that run may use, shared by its threads … */
    size_t worker_scratch_size; /* … and bytes for each worker of dq_parallel */
    void *scratch;              /* in run: scratch_size bytes, aligned to 64 */
    void *worker_scratch;       /* in run: use dq_call_worker_scratch */
    dq_threads *threads;
    const dq_kernels *kernels;
    bool honor_accuracy_level; /* see dq_session_options */
    dq_arena *strings;     /* in run: for the bytes of output strings, and for items; lives until the next run
                              of the session */
    dq_packs *packs;       /* NULL: nothing is cached, dq_call_pack makes it in `arena` */
    uint64_t tensor_limit; /* bytes of one tensor */
    /* Set by the planner before prepare, and read by dq_algorithm_choose … */
    const struct dq_forced_algorithms *forced; /* NULL: none */
    bool explain;
    /* … which sets these; NULL: the operator has no table. */
    const struct dq_algorithm *algorithm;
    const char *explanation; /* of the choice, in `arena`, where `explain` asks for it */
};

/** Gives output i its type and shape (checked against limits); does nothing when the output is not wanted. */
dq_status dq_call_output(dq_op_call *call, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
                         dq_error *err);
/** The same with the shape of `like`. */
dq_status dq_call_output_like(dq_op_call *call, uint32_t i, dq_dtype dtype, const dq_tensor *like,
                              dq_error *err);
/** Makes output i a sequence or an optional of tensors (or sequences) of that type; `run` gives it its items.
 */
void dq_call_output_items(dq_op_call *call, uint32_t i, dq_kind kind, dq_kind item_kind, dq_dtype dtype);
/** For infer: makes call->parts, zeroed. It stays NULL where no planner looks, and for packed types. */
dq_status dq_call_parts(dq_op_call *call, dq_error *err);
/** For infer and prepare: makes call->joins, all DQ_NOT_JOINED. It stays NULL where no planner looks. */
#define DQ_NOT_JOINED SIZE_MAX
dq_status dq_call_joins(dq_op_call *call, dq_error *err);
/** In run: whether the planner has put input i where it stands in output 0. */
static inline bool dq_call_joined(const dq_op_call *call, uint32_t i)
{
    return call->joins && call->joins[i] != DQ_NOT_JOINED &&
           call->in[i]->data == (const char *)call->out[0]->data + call->joins[i];
}
/** DQ_OK when input i is left out or has data, else DQ_DEFERRED. */
dq_status dq_call_need(const dq_op_call *call, uint32_t i);
/** Input i, or NULL when it is left out or past the node's inputs. */
static inline const dq_tensor *dq_call_in(const dq_op_call *call, uint32_t i)
{
    return i < call->in_count ? call->in[i] : NULL;
}
static inline bool dq_call_constant(const dq_op_call *call, uint32_t i)
{
    return i < 64 && (call->constant_inputs >> i & 1);
}
static inline void *dq_call_worker_scratch(const dq_op_call *call, unsigned worker)
{
    return (char *)call->worker_scratch + worker * call->worker_scratch_size;
}

/** In prepare of an operator that prepares another one's call in its place: that one's algorithm is its own.
 */
static inline void dq_call_take_algorithm(dq_op_call *call, const dq_op_call *inner)
{
    call->algorithm = inner->algorithm;
    call->explanation = inner->explanation;
}

/** In prepare: adds a × b elements of `size` bytes to the scratch that run may use; *at is where they begin,
 * a multiple of 64. False when it does not fit. */
static inline bool dq_call_reserve(dq_op_call *call, size_t a, size_t b, size_t size, size_t *at)
{
    size_t count;
    return dq_mul_size(a, b, &count) && dq_align_size(call->scratch_size, DQ_ALIGN, &call->scratch_size) &&
           dq_reserve_size(&call->scratch_size, count, size, DQ_ALIGN, at);
}
/** State of `size` bytes, zeroed, in call->arena. */
dq_status dq_call_state(dq_op_call *call, size_t size, dq_error *err);

/** "input 4 'w_scale' " + sentence / "attribute 'axis' …" / anything about the node. */
dq_status dq_call_fail_input(const dq_op_call *call, dq_error *err, uint32_t i, const char *format, ...)
    DQ_PRINTF(4, 5);
dq_status dq_call_fail(const dq_op_call *call, dq_error *err, dq_status status, const char *format, ...)
    DQ_PRINTF(4, 5);

/** Says that input i holds an index outside an axis; `fault` is DQ_BAD_MODEL where the model fixes it, else
 * DQ_BAD_INPUT, and returned. */
dq_status dq_call_fail_index(const dq_op_call *call, dq_error *err, uint32_t i, dq_status fault,
                             int64_t index, int64_t length);
/** The same of a tuple of indices from an input, of which one is outside the axis of its place. */
dq_status dq_call_fail_tuple(const dq_op_call *call, dq_error *err, uint32_t i, const int64_t *tuple,
                             const int64_t *dims);

/** The attribute 'axis', `absent` when it is left out, as an axis of input 0. */
dq_status dq_call_axis(const dq_op_call *call, int64_t absent, size_t *axis, dq_error *err);

/** The smallest and the largest result, of the attribute `clip` of dqrun's operators: infinities when absent.
 */
typedef struct dq_bounds {
    float low, high;
} dq_bounds;
dq_status dq_call_bounds(const dq_op_call *call, dq_bounds *bounds, dq_error *err);

/** A form of constant input i (packed weights, column sums, a table) that is made once and shared by all
 * plans and sessions of the model: `make` fills `size` bytes, aligned to 64. `key` tells apart different
 * forms of one input (kernel and parameters; compared as bytes). For prepare, when dq_call_constant(call, i).
 */
dq_status dq_call_pack(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key, size_t key_size,
                       size_t size, const void **packed, dq_error *err);
/** The same, but the bytes are only there in run, so that all weights of a plan can be packed on all threads.
 * `key` has no pointers to what may not last. */
dq_status dq_call_pack_later(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key, size_t key_size,
                             size_t size, const void **packed, dq_error *err);
/** That, with a `make` that takes a loose tensor as it is, and gives back the pages of a mapped one. */
dq_status dq_call_pack_unaligned(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key,
                                 size_t key_size, size_t size, const void **packed, dq_error *err);

/* ---- The registry ------------------------------------------------------------------------------------- */

/** The implementation of an operator version, or NULL. */
const dq_op *dq_op_find(const char *domain, const char *name, int since_version);
/** Whether any version of it is implemented. */
bool dq_op_known(const char *domain, const char *name);

#endif
