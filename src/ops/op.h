/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of an operator. One implementation serves all versions of an operator: `prepare` translates a
 * version's differences into plain parameters and picks kernels, `run` never looks at the opset.
 *
 * The schema is checked before any of these functions is called: the number of inputs and outputs, their
 * element types, the attributes and their defaults (the node holds a default like an attribute of the model).
 * `infer` checks what a schema cannot express: shapes, lengths, ranges of attribute values.
 *
 * - infer: sets the type and shape of each requested output (dq_call_output) from the types and shapes of the
 *   inputs, and from the values of inputs that are known (data not NULL). May keep results in call->state,
 *   allocated in call->arena, for prepare and run. If it needs a value that is not known, it returns
 *   dq_call_need(call, i), and is called again in the run, when all values are known.
 *
 * - prepare (may be NULL): makes `state` in call->arena and sets the scratch sizes that `run` needs.
 *   Types and shapes of all inputs and outputs are final; data is available for constant inputs only.
 *
 * - run: computes the data of the outputs. Allocates nothing (strings: from call->strings), writes no inputs.
 *   Outputs do not overlap inputs, except through DQ_OP_VIEW, DQ_OP_IN_PLACE and call->concat_offsets.
 *
 * infer and prepare may run on any thread, for several plans at once: they write only to the call.
 * Error messages speak of the node's inputs, outputs and attributes ("input 4 'w_scale' has 63 elements,
 * expected 1 or 64"); dq_call_fail_input and dq_call_fail make them. The caller adds model and node. */
#ifndef DQ_OPS_OP_H
#define DQ_OPS_OP_H

#include "base/checked.h"
#include "base/threads.h"
#include "graph/graph.h"
#include "kernels/kernels.h"
#include "ops/packs.h"
#include "tensor/shape.h"

/** Returned by infer, never seen by users: infer must be called again when all inputs have data. */
#define DQ_DEFERRED ((dq_status)-1)

typedef struct dq_op_call dq_op_call;

enum {
    DQ_OP_VIEW = 1 << 0,       /* Output 0 is a view: the bytes of input 0 with another shape or type. `run`
                                  copies; it is skipped if the planner lets both share memory. */
    DQ_OP_SHAPE_ONLY = 1 << 1, /* Outputs depend on the shapes and types of the inputs, not on their data. */
    DQ_OP_IMPURE = 1 << 2,     /* The result is no function of the inputs (random numbers): never folded. */
    DQ_OP_SUBGRAPH = 1 << 3,   /* The node has subgraphs, which exec/control_flow.h runs; infer and run are
                                  NULL. */
    DQ_OP_ITEMS = 1 << 4,     /* Inputs or outputs are sequences or optionals, whose items are known only in a
                                 run: planned in each run. */
    DQ_OP_UNALIGNED = 1 << 5, /* Input 0 may be unaligned to its element size; the operator only copies it. */
    DQ_OP_PACKS = 1 << 6,     /* Constant inputs may be unaligned in infer and prepare, which pass them to
                                 dq_call_pack or do not read them. An input that is not packed is aligned in
                                 run. */
    DQ_OP_IN_PLACE = 1 << 7,  /* An output may use the memory of input 0 if both have the same number of
                                 elements of the same size and no other input overlaps it. */
    DQ_OP_IN_ANY_PLACE = 1 << 8, /* The same for every input. */
    DQ_OP_IDEMPOTENT = 1 << 9,   /* In-place execution is idempotent: running twice gives the same result. The
                                    operator overwrites only elements that it does not read, or with equal
                                    values. */
    DQ_OP_BROADCAST_VIEW = 1 << 15, /* Input 1 may be a broadcast view of float or float16 (dq_tensor); input
                                       0 may be any view. */
};

/** Outputs 1 and 2 may use the memory of inputs i and i + 1 (past keys and values; 1 <= i <= 31) if sizes are
 * equal and no other input overlaps it. */
#define DQ_OP_PAST_AT(i) ((unsigned)(i) << 10)
static inline uint32_t dq_op_past(unsigned flags)
{
    return flags >> 10 & 31; /* 0: none */
}

/** Batch-separable: output[n] depends only on input[n] of the inputs in `mask`; the others must broadcast.
 * Bit i is input i, the last bit all further ones. An attribute `axis` or `perm`, or a Resize
 * that crops, may prevent it. The second output of MaxPool is not separable. */
#define DQ_OP_BATCH_SEPARABLE(mask) ((unsigned)(mask) << 16)
#define DQ_OP_BATCH_SEPARABLE_FIRST DQ_OP_BATCH_SEPARABLE(1)
#define DQ_OP_BATCH_SEPARABLE_ALL DQ_OP_BATCH_SEPARABLE(0xFFFF)
static inline bool dq_op_is_batch_separable(unsigned flags, uint32_t i)
{
    return flags >> (i < 15 ? 16 + i : 31) & 1;
}

typedef struct dq_op_impl {
    dq_status (*infer)(dq_op_call *call, dq_error *err);
    dq_status (*prepare)(dq_op_call *call, dq_error *err);
    dq_status (*run)(const dq_op_call *call, dq_error *err);
    unsigned flags;
} dq_op_impl;

/** Properties of an operator that hold for all attributes. Rewrite passes ask for these, not for names. */
enum {
    DQ_TRAIT_ELEMENTWISE = 1 << 0,   /* An output element depends on the input elements of its index, which
                                        broadcast. */
    DQ_TRAIT_CONTINUOUS = 1 << 1,    /* A numeric function without jumps: a small change of an input causes a
                                        small change of the output. */
    DQ_TRAIT_DATA_MOVEMENT = 1 << 2, /* Output elements are those of input 0 in another order or shape. */
    DQ_TRAIT_COPIES = 1 << 3,        /* Output elements are elements of any input: Concat, Where, Pad. */
    DQ_TRAIT_SELECTS = 1 << 4        /* An output element is a maximum or minimum of elements of input 0. */
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
    const dq_tensor *
        *in;         /* NULL: the input is omitted. data NULL: the value is not known yet (never in run) */
    dq_tensor **out; /* NULL: not requested (optional outputs only). dtype is set before infer if the
                        schema determines it */
    const char *const *in_formals; /* the schema's name of each input */
    uint64_t constant_inputs;      /* bit i: input i is the same in all runs of the plan (i < 64) */
    uint64_t persistent_inputs;    /* bit i: … and its data lives as long as `packs` */
    uint64_t packed_inputs;        /* bit i: dq_call_pack was called for input i */
    size_t *split_offsets;  /* Zero-copy Split. For each output: its first element in input 0; the output is
                               contiguous there. Set by infer; run is skipped if all outputs are views. */
    size_t *concat_offsets; /* Zero-copy Concat. For each input: byte offset of its copy in output 0, or
                               DQ_NOT_CONCATENATED. Set by infer or prepare. The planner then lets producers
                               write there, and run skips these copies (dq_call_is_concatenated). */
    size_t block, repeats;  /* Broadcast view, if `times` is not 0: output 0 is a broadcast view of input 0,
                           each  `run` elements repeated `times` times (dq_tensor). Set by infer. */
    dq_arena *arena;        /* for state; lives as long as the state */
    void *state;            /* prepare → run */
    size_t scratch_size;    /* Bytes of scratch that the threads of run share. Set by prepare. */
    size_t worker_scratch_size; /* Bytes of scratch for each worker of dq_parallel. Set by prepare. */
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
    const char *explanation; /* of the choice, in `arena`; set if `explain` */
};

/** Gives output i its type and shape (checked against limits); does nothing if the output is not requested.
 */
dq_status dq_call_output(dq_op_call *call, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
                         dq_error *err);
/** The same with the shape of `like`. */
dq_status dq_call_output_like(dq_op_call *call, uint32_t i, dq_dtype dtype, const dq_tensor *like,
                              dq_error *err);
/** Makes output i a sequence or an optional of tensors (or sequences) of that type; `run` gives it its items.
 */
void dq_call_output_items(dq_op_call *call, uint32_t i, dq_kind kind, dq_kind item_kind, dq_dtype dtype);
/** For infer: allocates call->split_offsets, zeroed. It stays NULL without a planner, and for types of less
 * than a byte. */
dq_status dq_call_split_offsets(dq_op_call *call, dq_error *err);
/** For infer and prepare: allocates call->concat_offsets, all DQ_NOT_CONCATENATED. It stays NULL without a
 * planner. */
#define DQ_NOT_CONCATENATED SIZE_MAX
dq_status dq_call_concat_offsets(dq_op_call *call, dq_error *err);
/** In run: whether input i already is in its part of output 0, as its producer wrote it there. */
static inline bool dq_call_is_concatenated(const dq_op_call *call, uint32_t i)
{
    return call->concat_offsets && call->concat_offsets[i] != DQ_NOT_CONCATENATED &&
           call->in[i]->data == (const char *)call->out[0]->data + call->concat_offsets[i];
}
/** DQ_OK if input i is omitted or has data, else DQ_DEFERRED. */
dq_status dq_call_need(const dq_op_call *call, uint32_t i);
/** Input i; NULL if it is omitted or past the inputs of the node. */
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

/** In prepare of an operator that delegates to another call: takes over its algorithm. */
static inline void dq_call_take_algorithm(dq_op_call *call, const dq_op_call *inner)
{
    call->algorithm = inner->algorithm;
    call->explanation = inner->explanation;
}

/** In prepare: reserves a × b elements of `size` bytes in the scratch of run; *at is their byte offset, a
 * multiple of 64. False if the size overflows. */
static inline bool dq_call_reserve(dq_op_call *call, size_t a, size_t b, size_t size, size_t *at)
{
    size_t count;
    return dq_mul_size(a, b, &count) && dq_align_size(call->scratch_size, DQ_ALIGN, &call->scratch_size) &&
           dq_reserve_size(&call->scratch_size, count, size, DQ_ALIGN, at);
}
/** State of `size` bytes, zeroed, in call->arena. */
dq_status dq_call_state(dq_op_call *call, size_t size, dq_error *err);

/** Set the error's message and return its status. dq_call_fail_input prefixes "input 4 'w_scale' ", and
 * dq_call_fail takes any text about the node. */
dq_status dq_call_fail_input(const dq_op_call *call, dq_error *err, uint32_t i, const char *format, ...)
    DQ_PRINTF(4, 5);
dq_status dq_call_fail(const dq_op_call *call, dq_error *err, dq_status status, const char *format, ...)
    DQ_PRINTF(4, 5);

/** Fails because input i holds an index that is outside its axis. Returns `fault`: DQ_BAD_MODEL if the index
 * is constant in the model, else DQ_BAD_INPUT. */
dq_status dq_call_fail_index(const dq_op_call *call, dq_error *err, uint32_t i, dq_status fault,
                             int64_t index, int64_t length);
/** The same for a tuple of indices that has one outside its axis. */
dq_status dq_call_fail_tuple(const dq_op_call *call, dq_error *err, uint32_t i, const int64_t *tuple,
                             const int64_t *dims);

/** Attribute 'axis' as an axis of input 0; `absent` is its default. */
dq_status dq_call_axis(const dq_op_call *call, int64_t absent, size_t *axis, dq_error *err);

/** Bounds of the result: attribute `clip` of the operators of domain dqrun, infinite if absent. */
typedef struct dq_bounds {
    float low, high;
} dq_bounds;
dq_status dq_call_bounds(const dq_op_call *call, dq_bounds *bounds, dq_error *err);

/** Packs constant input i (weights, column sums, a table) once for all plans and sessions of the model:
 * `make` fills `size` bytes, aligned to 64. `key` distinguishes the packed forms of one input (kernel and
 * parameters; compared as bytes). For prepare; requires dq_call_constant(call, i). */
dq_status dq_call_pack(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key, size_t key_size,
                       size_t size, const void **packed, dq_error *err);
/** The same, but the bytes are available only in run, so that all weights of a plan are packed on all
 * threads. Pointers in `key` must stay valid until then. */
dq_status dq_call_pack_deferred(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key,
                                size_t key_size, size_t size, const void **packed, dq_error *err);
/** The same with a `make` that accepts unaligned tensors and releases the pages of mapped ones. */
dq_status dq_call_pack_unaligned(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key,
                                 size_t key_size, size_t size, const void **packed, dq_error *err);

/* ---- The registry ------------------------------------------------------------------------------------- */

/** The implementation of an operator version, or NULL. */
const dq_op *dq_op_find(const char *domain, const char *name, int since_version);
/** Whether any version of it is implemented. */
bool dq_op_known(const char *domain, const char *name);

#endif
