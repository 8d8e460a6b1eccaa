/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun runs quantized ONNX models. This is its only public header, and the manual of the C API.
 *
 *     static float data[4]; // the input
 *     const int64_t dims[] = {1, 4};
 *     dq_model *model = NULL;
 *     dq_session *session = NULL;
 *     dq_tensor *x = NULL;
 *     const dq_tensor *y = NULL; // belongs to the session, and is valid until its next run
 *     dq_error err;
 *     if (dq_model_load("model.onnx", NULL, &model, &err) ||
 *         dq_session_create(model, NULL, &session, &err) ||
 *         dq_tensor_wrap(DQ_FLOAT, 2, dims, data, sizeof data, &x, &err) ||
 *         dq_session_set_input(session, "x", x, &err) || dq_session_run(session, &err) ||
 *         dq_session_get_output(session, "y", &y, &err))
 *         fprintf(stderr, "%s\n", err.message);
 *     else
 *         printf("%g\n", dq_tensor_value(y, 0));
 *     dq_session_free(session);
 *     dq_model_free(model);
 *     dq_tensor_free(x);
 *
 * Contents: errors, memory, element types, tensors, sequences and optionals, limits, schemas, models (load,
 * check, save), models from code, looking into a model, thread pools, sessions, looking into a session. The
 * rules below hold for every call; the comment of a call says only what is special about it.
 *
 * Errors. Each call that can fail returns a dq_status. Where `err` is not NULL and the call fails, it fills
 * `err` with a message of one sentence: the fault, the value found, the value expected, and the place. After
 * a failed call out parameters are not defined, unless the call says otherwise. The library
 * never prints, exits or aborts.
 *
 * NULL. A call that returns a dq_status refuses a NULL that its comment does not allow: DQ_INVALID_ARGUMENT,
 * "dq_session_run: session is NULL". `err` may always be NULL, and so may pointers to options. X_free(NULL)
 * does nothing. All other calls need a handle that is not NULL. Where a call takes the name of an input or
 * output of a session, NULL names the first one.
 *
 * Ownership. Handles are opaque. X_create, X_load and X_wrap give a handle to the caller, who frees it with
 * X_free. Models, schemas and thread pools are reference-counted: X_free gives the caller's reference back,
 * and the object lives as long as something uses it. Strings, arrays and structs that the caller passes are
 * read during the call and may be freed after it, unless the call says otherwise. Constant strings that a
 * function returns live as long as the process.
 *
 * Units. Sizes are in bytes and times in seconds, unless the name says otherwise. Shapes are arrays of
 * int64_t; -1 is an unknown dimension. Messages print a shape as [N,1,8,8], with the symbol or ? for an
 * unknown dimension.
 *
 * Structs. Every struct but dq_error begins with `size`, the size that the program was compiled with, so that
 * later versions can add fields at the end. The program initializes each struct, also one that the library
 * fills in:
 *
 *     dq_session_options options = DQ_SESSION_OPTIONS_INIT; // sets size; all other fields are the defaults
 *     options.threads = 2;
 *
 * In C, `{.size = sizeof(dq_session_options), .threads = 2}` is the same. Zero in any other field is its
 * default. A program runs with each library of its soversion, older or newer than its header:
 *  - Fields that an older program lacks take their defaults.
 *  - Fields that an older library lacks must be zero, else the call returns DQ_UNSUPPORTED.
 *  - When the library fills a struct in, it writes the fields that both sides have.
 *  - A size below the first version of the struct is DQ_INVALID_ARGUMENT.
 *  - A struct that a callback receives carries the library's size.
 *
 * Threads. A model is immutable once loaded; any number of threads and sessions may use it at once. One
 * thread at a time may use a session or a builder; dq_session_cancel is the exception. Any number of threads
 * may read a tensor while none writes it. Calls on different objects need no lock.
 *
 * The process. The library reads no environment variable and leaves the locale, umask, signal handlers,
 * signal masks and resource limits alone. It changes three things: the first session, set of schemas or pool
 * registers handlers with pthread_atfork; a session may ask Linux for the tile registers of AMX
 * (dq_session_create); files are mapped and memory is allocated. Threads of a pool block all signals except
 * those of their own faults.
 *
 * Floating point. Each call computes in the default environment: round to nearest, denormals kept, no traps.
 * It restores the environment of the calling thread, with its exception flags, when it returns. Callbacks are
 * called in the default environment.
 *
 * fork. The child may use and free all models, schemas and pools, and all sessions that no other thread was
 * using at the moment of the fork. It must leave alone a session that another thread was running; the memory
 * of that session is lost to the child. The threads of a pool do not exist in the child: sessions that used
 * them run on the child's own thread, new pools start their own. fork waits until other threads have left the
 * critical sections of shared objects, at most as long as it takes to rewrite a model or to pack its weights.
 */
#ifndef DQRUN_DQRUN_H
#define DQRUN_DQRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(DQ_BUILDING) && defined(__GNUC__)
#define DQ_API __attribute__((visibility("default")))
#else
#define DQ_API
#endif

#define DQ_VERSION_MAJOR 0
#define DQ_VERSION_MINOR 2
#define DQ_VERSION_PATCH 0

/** The version of the library that the program runs with, "0.2.0"; the header's may differ. */
DQ_API const char *dq_version(void);

/* ---- Errors ------------------------------------------------------------------------------------------ */

/** Result of a call. The statuses differ by who can correct the fault. They are also exit codes of the
 * command `dqrun`, which adds 1 for outputs that differ from the expected ones, and 124 for a time limit. */
typedef enum dq_status {
    DQ_OK = 0,
    DQ_INVALID_ARGUMENT = 2, /**< the call is wrong: NULL, an unknown name, an impossible option */
    DQ_BAD_MODEL = 3,        /**< the model cannot be read, or breaks the format or its schemas */
    DQ_BAD_INPUT = 4,        /**< an input tensor or input file does not fit the model */
    DQ_UNSUPPORTED = 5,      /**< valid ONNX that this build of dqrun does not implement */
    DQ_OUT_OF_MEMORY = 6,    /**< memory ran out, or a bound of dq_limits was reached */
    DQ_INTERNAL = 70,        /**< a bug in dqrun; please report it with the message */
    DQ_IO = 74,              /**< writing failed: disk full, no permission */
    DQ_CANCELLED = 130       /**< the call was cancelled, by dq_session_cancel for example */
} dq_status;

/** The name of a status, "DQ_BAD_MODEL"; "unknown status" for a number that is none. */
DQ_API const char *dq_status_name(dq_status status);

/** Description of a failed call, in memory of the caller. It is filled only by a call that does not return
 * DQ_OK. */
typedef struct dq_error {
    dq_status status;   /**< the status that the call returned */
    char message[1024]; /**< UTF-8, zero-terminated, without newline; a longer message is cut and ends in "…"
                         */
} dq_error;

/* ---- Memory ------------------------------------------------------------------------------------------ */

/** An allocator for the long-lived memory of a model (dq_load_options.allocator) or a session
 * (dq_session_options.allocator); without one, it comes from malloc. The struct is copied; `arg` must live
 * until the last memory has been released.
 *
 * A model's allocator provides: the graph with its attributes and unpacked initializers, copies of small
 * files and of the bytes of dq_model_load_read, packed weights, constants that planning computes, and fused
 * nodes. For a model from dq_builder_finish, the graph comes from malloc and the rest from the allocator. All
 * of it is released when the model is freed with its last session. A session's allocator provides: plans, the
 * buffer of activations and scratch memory, values whose shape depends on data, strings and sequences, inner
 * graphs, and the tensors of dq_session_take_output, which may be released after the session.
 *
 * Not covered are: files over 1 MiB, which are mapped; schemas; thread pools and the stacks of threads;
 * tensors that the caller creates; memory that lives during one call only (parsing, planning, writing).
 *
 * Any thread may call both functions, several at once, and while the library holds locks: they must not call
 * the library. */
typedef struct dq_allocator {
    size_t size; /**< sizeof(dq_allocator), set by DQ_ALLOCATOR_INIT */
    /** `bytes` (1 or more) that need not be cleared, aligned to `alignment`, a power of two of at most 64.
     * NULL: there is no memory, and the call that needs it ends with DQ_OUT_OF_MEMORY. */
    void *(*allocate)(void *arg, size_t bytes, size_t alignment);
    /** Takes back what allocate returned, with the same number of bytes. */
    void (*release)(void *arg, void *memory, size_t bytes);
    void *arg; /**< passed to both */
} dq_allocator;

#define DQ_ALLOCATOR_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_allocator), NULL, NULL, NULL                                                               \
    }

/* ---- Element types ----------------------------------------------------------------------------------- */

/** Element types, numbered as in ONNX's TensorProto.DataType. */
typedef enum dq_dtype {
    DQ_UNDEFINED = 0,
    DQ_FLOAT = 1,
    DQ_UINT8 = 2,
    DQ_INT8 = 3,
    DQ_UINT16 = 4,
    DQ_INT16 = 5,
    DQ_INT32 = 6,
    DQ_INT64 = 7,
    DQ_STRING = 8,
    DQ_BOOL = 9,
    DQ_FLOAT16 = 10,
    DQ_DOUBLE = 11,
    DQ_UINT32 = 12,
    DQ_UINT64 = 13,
    DQ_COMPLEX64 = 14,
    DQ_COMPLEX128 = 15,
    DQ_BFLOAT16 = 16,
    DQ_FLOAT8E4M3FN = 17,
    DQ_FLOAT8E4M3FNUZ = 18,
    DQ_FLOAT8E5M2 = 19,
    DQ_FLOAT8E5M2FNUZ = 20,
    DQ_UINT4 = 21,
    DQ_INT4 = 22,
    DQ_FLOAT4E2M1 = 23,
    DQ_FLOAT8E8M0 = 24,
    DQ_UINT2 = 25,
    DQ_INT2 = 26,
    DQ_FLOAT6E2M3 = 27,
    DQ_FLOAT6E3M2 = 28,
    DQ_DTYPE_COUNT = 29 /**< one more than the last */
} dq_dtype;

/** Name of an element type as ONNX writes it inside tensor(…): "float", "uint8", "float8e4m3fn"; "undefined"
 * for DQ_UNDEFINED and for a number that is no type. */
DQ_API const char *dq_dtype_name(dq_dtype dtype);
/** The element type with this name; DQ_UNDEFINED when there is none. */
DQ_API dq_dtype dq_dtype_from_name(const char *name);
/** Bits of one element: 2, 4, 6, 8, 16, 32, 64 or 128; 0 for strings and DQ_UNDEFINED. Elements under 8 bits
 * are packed, the first in the lowest bits; four 6-bit elements fill three bytes, little endian. */
DQ_API unsigned dq_dtype_bits(dq_dtype dtype);

/** Kinds of values. */
typedef enum dq_kind {
    DQ_KIND_TENSOR,
    DQ_KIND_SPARSE,   /**< only in declarations; dqrun does not run such values */
    DQ_KIND_SEQUENCE, /**< a list of tensors of one element type and any shapes */
    DQ_KIND_OPTIONAL, /**< a tensor, a sequence, or nothing */
    DQ_KIND_MAP       /**< only in declarations; dqrun does not run such values */
} dq_kind;

/* ---- Tensors ----------------------------------------------------------------------------------------- */

/** The largest rank of a tensor. */
#define DQ_MAX_RANK 16

/** A tensor: element type, shape, and elements in row-major order without gaps. */
typedef struct dq_tensor dq_tensor;

/** Creates a tensor with memory of its own. All elements are zero, strings are empty. `dims` holds `rank`
 * sizes, 0 or more each; it may be NULL for rank 0. DQ_UNSUPPORTED: the rank is over DQ_MAX_RANK.
 * DQ_OUT_OF_MEMORY: memory ran out, or the size overflows size_t. Free it with dq_tensor_free. */
DQ_API dq_status dq_tensor_create(dq_dtype dtype, size_t rank, const int64_t *dims, dq_tensor **out,
                                  dq_error *err);
/** Creates a tensor over memory of the caller, which must outlive the tensor and be aligned to the element,
 * to 8 bytes at most. `size` is the size of the elements, ceil(count * bits / 8), else DQ_INVALID_ARGUMENT.
 * Strings cannot be wrapped. Free it with dq_tensor_free, which leaves the memory alone. */
DQ_API dq_status dq_tensor_wrap(dq_dtype dtype, size_t rank, const int64_t *dims, void *data, size_t size,
                                dq_tensor **out, dq_error *err);
/** Does the same with memory that must not be written. The tensor may be an input of a session or a constant
 * of a builder. Calls that would write to it refuse it. */
DQ_API dq_status dq_tensor_wrap_const(dq_dtype dtype, size_t rank, const int64_t *dims, const void *data,
                                      size_t size, dq_tensor **out, dq_error *err);
/** Frees a tensor that the caller created, wrapped or took over (dq_session_take_output). Other tensors
 * belong to a session, a model or a list. */
DQ_API void dq_tensor_free(dq_tensor *tensor);

/** Element type; of a sequence or optional, that of the tensors inside. */
DQ_API dq_dtype dq_tensor_dtype(const dq_tensor *tensor);
/** Number of dimensions; 0 for a scalar. */
DQ_API size_t dq_tensor_rank(const dq_tensor *tensor);
/** The dimensions, dq_tensor_rank numbers that live as long as the tensor; never NULL. */
DQ_API const int64_t *dq_tensor_dims(const dq_tensor *tensor);
/** Number of elements, the product of the dimensions: 1 for a scalar. */
DQ_API size_t dq_tensor_count(const dq_tensor *tensor);
/** Bytes of the elements, ceil(count * bits / 8); 0 for strings. */
DQ_API size_t dq_tensor_size(const dq_tensor *tensor);
/** The elements, to read. NULL for strings, sequences and optionals, and for no other tensor. */
DQ_API const void *dq_tensor_data(const dq_tensor *tensor);
/** The elements, to write. NULL for strings, sequences, optionals and tensors of dq_tensor_wrap_const. */
DQ_API void *dq_tensor_mutable_data(dq_tensor *tensor);
/** Bytes of element i of a string tensor, not zero-terminated; their number goes to `length`, which may be
 * NULL. They live until the element is set or the tensor is freed. NULL past the last element and for other
 * element types. */
DQ_API const char *dq_tensor_string(const dq_tensor *tensor, size_t i, size_t *length);
/** Copies `length` bytes to element i of a string tensor that dq_tensor_create made. `bytes` may be NULL for
 * length 0. */
DQ_API dq_status dq_tensor_set_string(dq_tensor *tensor, size_t i, const char *bytes, size_t length,
                                      dq_error *err);
/** Element i as a double: exact where double can hold it, 0 or 1 for booleans, the real part of complex
 * numbers. NaN for strings and past the last element. This call is for printing and comparing; it is slow. */
DQ_API double dq_tensor_value(const dq_tensor *tensor, size_t i);

/* ---- Sequences and optionals ------------------------------------------------------------------------- */

/** Kind of a dq_tensor: a tensor, a sequence of tensors, or an optional. For a sequence or optional,
 * dq_tensor_dtype is the element type of the tensors inside, dq_tensor_count the number of items, rank and
 * size are 0, data is NULL. */
DQ_API dq_kind dq_tensor_kind(const dq_tensor *tensor);
/** Item i of a sequence, or, for i = 0, the value in an optional. It belongs to the list. NULL past the last.
 */
DQ_API const dq_tensor *dq_tensor_item(const dq_tensor *tensor, size_t i);
/** Creates a sequence of `count` tensors of element type `dtype`, which the caller created or wrapped. On
 * DQ_OK the sequence owns them, and dq_tensor_free of the sequence frees them. */
DQ_API dq_status dq_sequence_create(dq_dtype dtype, size_t count, dq_tensor *const *items, dq_tensor **out,
                                    dq_error *err);
/** Creates an optional for values of `kind` (DQ_KIND_TENSOR or DQ_KIND_SEQUENCE) and element type `dtype`.
 * `item` NULL makes it empty; else, on DQ_OK, the optional owns the item. */
DQ_API dq_status dq_optional_create(dq_kind kind, dq_dtype dtype, dq_tensor *item, dq_tensor **out,
                                    dq_error *err);

/* ---- Limits ------------------------------------------------------------------------------------------ */

/** Bounds on the resources that a model may use. Each is checked before the memory is allocated or the work
 * begins; beyond it a call returns DQ_OUT_OF_MEMORY. Zero in a field is its default. */
typedef struct dq_limits {
    size_t size;           /**< sizeof(dq_limits), set by DQ_LIMITS_INIT */
    uint64_t file_bytes;   /**< size of the model file and of each external data file; default 64 GiB */
    uint64_t tensor_bytes; /**< size of one tensor; default 16 GiB */
    /** Activations and scratch of one plan; strings and sequences of one run; all sparse tensors of the
     * model, unpacked. Packed weights are not counted. Default 64 GiB. */
    uint64_t session_bytes;
    /** Nodes of all graphs and inner graphs together. The bound holds twice: for the nodes in the file, where
     * the body of a function counts once, and for the nodes after model-local functions are inlined. Inlining
     * may copy 16 names and attributes for each node of the bound; a call counts as 9 of them. Default
     * 1,000,000. */
    uint64_t nodes;
    uint32_t nesting; /**< depth of inner graphs and function calls; default 32 */
    /** Work of one run; default: no bound. A run that would exceed it ends with DQ_OUT_OF_MEMORY before the
     * node that exceeds it begins. Work is counted from shapes: the same model, inputs, session options and
     * limits give the same result in each run, on each instruction set and with any number of threads. A node
     * counts 1 each time its graph runs, also when its result was computed during planning, and in addition:
     *  - matrix products, convolutions, attention, recurrent networks and mixtures of experts: their
     * multiply-adds, whatever the types; Einsum: those of its contractions of two operands each;
     *  - pools and LRN: the elements of all windows; MaxRoiPool: of all regions, each as large as the image;
     *  - Resize: for each output element the input elements under its kernel, a product over the resized
     * axes;
     *  - Det: a third of the cube of a matrix's rows; Fourier transforms of n elements: n log n;
     *  - NonMaxSuppression: the scores, times the boxes that may be chosen of a class;
     *  - TfIdfVectorizer: for each element the elements of all n-grams that may begin there, skips included;
     *  - reductions, and other operators that read a larger input (ArgMax, TopK, NonZero, Unique, losses):
     * the elements of the input;
     *  - all others: the elements of their outputs; of a sequence, its items;
     *  - each run of an inner graph, such as an iteration of a loop: the elements of the graph's outputs.
     * The nodes are those that the session runs. A fused node counts once, so that a run with `no_fuse`
     * counts more. */
    uint64_t work;
} dq_limits;

#define DQ_LIMITS_INIT                                                                                       \
    {                                                                                                        \
        sizeof(dq_limits), 0, 0, 0, 0, 0, 0                                                                  \
    }

/* ---- Schemas ----------------------------------------------------------------------------------------- */

/** A set of operator schemas: those in the library, and files that replace or add some
 * (docs/schema-format.md). Models keep their set alive. Any number of threads may use a set at once, as long
 * as none adds to it. */
typedef struct dq_schemas dq_schemas;

/** Creates a set with the library's schemas. Free it with dq_schemas_free. */
DQ_API dq_status dq_schemas_create(dq_schemas **out, dq_error *err);
/** Adds the schemas of every *.yaml file under `directory` and its folders. A schema replaces the set's of
 * the same domain, name and since_version. The call ends at the first file with a fault, which adds nothing;
 * the files before it have been added. DQ_BAD_MODEL: a fault in the text. DQ_INVALID_ARGUMENT: a folder or
 * file cannot be read. */
DQ_API dq_status dq_schemas_add_dir(dq_schemas *schemas, const char *directory, dq_error *err);
/** Does the same with `length` bytes of YAML text. `source` names the text in messages. */
DQ_API dq_status dq_schemas_add_yaml(dq_schemas *schemas, const char *text, size_t length, const char *source,
                                     dq_error *err);
/** Gives the caller's reference back. The set is freed with the last model that uses it. */
DQ_API void dq_schemas_free(dq_schemas *schemas);

/** An operator version. */
typedef struct dq_operator_info {
    size_t size; /**< sizeof(dq_operator_info), set by DQ_OPERATOR_INFO_INIT */
    int since_version;
    bool deprecated;
    bool implemented;   /**< false: there is a schema and no implementation */
    const char *domain; /**< "" is ai.onnx; strings live during the visit only */
    const char *name;
} dq_operator_info;

#define DQ_OPERATOR_INFO_INIT                                                                                \
    {                                                                                                        \
        sizeof(dq_operator_info), 0, false, false, NULL, NULL                                                \
    }

/** Calls `visit` for each operator version of the set, ordered by domain, name and version. `schemas` NULL:
 * the library's set. A non-zero result of `visit` ends the list; the call returns DQ_OK then, too. */
DQ_API dq_status dq_schemas_list(dq_schemas *schemas, int (*visit)(void *arg, const dq_operator_info *info),
                                 void *arg, dq_error *err);
/** Writes the type constraints of an operator version, "T1: float, float16; T2: uint8", to `buffer` of `size`
 * bytes. The text is zero-terminated, and cut when it is longer; `buffer` may be NULL for size 0. Of `info`,
 * domain, name and since_version are read. `schemas` NULL: the library's set. Returns the length of the whole
 * text without the terminator; 0 for an operator version that is not in the set. */
DQ_API size_t dq_schemas_types(dq_schemas *schemas, const dq_operator_info *info, char *buffer, size_t size);

/* ---- Models ------------------------------------------------------------------------------------------ */

/** A loaded model: its graph and its constants. Sessions share it. */
typedef struct dq_model dq_model;
/** Parts of a model: see "Looking into a model". */
typedef struct dq_graph dq_graph;
typedef struct dq_node dq_node;
typedef struct dq_value dq_value;

typedef struct dq_load_options {
    size_t size;             /**< sizeof(dq_load_options), set by DQ_LOAD_OPTIONS_INIT */
    dq_schemas *schemas;     /**< kept alive by the model; NULL: the library's */
    const dq_limits *limits; /**< read during the call; NULL: the defaults */
    /** Folder of external data for models that dq_model_load does not load; NULL: they may have none. */
    const char *base_dir;
    const dq_allocator *allocator; /**< of the model's memory, copied; NULL: malloc */
    /** Provides external data: sets *bytes and *size to the whole contents of the file at `location`, a
     * string of the model that the callback must check. It is called once for each location, by the thread
     * that loads. The bytes must not change until they are released. With it, the library opens no file of
     * external data. A status other than DQ_OK ends loading with that status. NULL: files in base_dir, or in
     * the model's folder. */
    dq_status (*external_data)(void *arg, const char *location, const void **bytes, size_t *size);
    /** Releases bytes of external_data, once for each location, when the model is freed with its last session
     * or when loading fails. `size` is the size that external_data set. May be NULL. */
    void (*release_external_data)(void *arg, const char *location, const void *bytes, size_t size);
    void *external_data_arg; /**< passed to both; lives as long as the model */
    /** File of packed weights for this model (dq_session_save_packed); NULL: none. Sessions read weights
     * there instead of packing them, which takes most of the time of planning. Weights that the file does not
     * have are packed as always, and results are the same. The file is mapped until the model is freed with
     * its last session: processes share its memory, and it must not be written to meanwhile, as the model's.
     * DQ_BAD_INPUT: the file is damaged, or for another model or another version of the library. */
    const char *packed_path;
} dq_load_options;

#define DQ_LOAD_OPTIONS_INIT                                                                                 \
    {                                                                                                        \
        sizeof(dq_load_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                              \
    }

/** Loads an .onnx file: parses it, reads external data from the model's folder, and checks every node against
 * its schema. A node that cannot run is no error here: dq_model_check lists such nodes, and dq_session_create
 * refuses the model. Free it with dq_model_free. DQ_BAD_MODEL: the file cannot be read, or breaks the format
 * or a schema. DQ_OUT_OF_MEMORY: memory ran out, or a bound of `options->limits` was reached.
 *
 * The model file and each external data file over 1 MiB stay mapped. They must not be written to while the
 * model lives: results are undefined then, and a truncated file raises SIGBUS in the thread that reads past
 * its end. Replacing a file by rename is safe. Smaller files are read: they may change once the call has
 * returned, and a file that is truncated during the call is DQ_BAD_MODEL. Load large files that may be
 * truncated with dq_model_load_memory. */
DQ_API dq_status dq_model_load(const char *path, const dq_load_options *options, dq_model **out,
                               dq_error *err);
/** Loads a model from `size` bytes in memory, which must not change until the model is freed, and with it its
 * last session. `name` takes the place of the path in messages. */
DQ_API dq_status dq_model_load_memory(const void *bytes, size_t size, const char *name,
                                      const dq_load_options *options, dq_model **out, dq_error *err);
/** Loads a model from an open file descriptor, which belongs to the caller and may be closed after the call.
 * A regular file is read or mapped from its beginning; the offset of the descriptor is neither used nor
 * moved. A pipe, socket or device is read to its end, at most dq_limits.file_bytes; the call waits for data.
 * External data comes from options->base_dir or options->external_data. `name` takes the place of the path in
 * messages. */
DQ_API dq_status dq_model_load_fd(int fd, const char *name, const dq_load_options *options, dq_model **out,
                                  dq_error *err);

/** Reads up to `size` bytes into `buffer`. Returns their number, 0 at the end, a negative number on an error.
 */
typedef ptrdiff_t (*dq_read_fn)(void *arg, void *buffer, size_t size);
/** Loads a model from the bytes that `read` returns until its end; the model keeps a copy. The calling thread
 * calls `read` with `arg`. A negative result ends loading with DQ_BAD_MODEL, a result over `size` with
 * DQ_INVALID_ARGUMENT. */
DQ_API dq_status dq_model_load_read(dq_read_fn read, void *arg, const char *name,
                                    const dq_load_options *options, dq_model **out, dq_error *err);
/** Gives the caller's reference back. The model is freed with its last session. */
DQ_API void dq_model_free(dq_model *model);

/** A value of a graph. Pointers live as long as the model. */
typedef struct dq_value_info {
    size_t size; /**< sizeof(dq_value_info), set by DQ_VALUE_INFO_INIT */
    const char *name;
    const char *type;    /**< "tensor(float)", "seq(tensor(float))"… as ONNX writes it */
    dq_kind kind;        /**< if not DQ_KIND_TENSOR, dtype, has_shape, rank, dims and dim_names are unused */
    dq_kind item_kind;   /**< kind of the value in an optional */
    dq_dtype item_dtype; /**< element type of the tensors inside a sequence or optional */
    dq_dtype dtype;      /**< declared, else from the operators' schemas; DQ_UNDEFINED: unknown */
    bool has_shape;      /**< false: any rank */
    bool optional;       /**< an input whose default is an initializer */
    bool is_input;       /**< of its graph */
    bool is_output;      /**< of its graph */
    size_t rank;
    const int64_t *dims;          /**< -1 where unknown or symbolic */
    const char *const *dim_names; /**< symbols, an entry NULL where there is none */
    const dq_graph *graph;        /**< the graph whose value it is */
    /** The constant, or an input's default, not copied; NULL: none. Data of a large one in a mapped file may
     * be unaligned to its type: read it with memcpy, or by dq_tensor_value. */
    const dq_tensor *initializer;
    const dq_node *producer; /**< NULL: an input or initializer, or a value between synthetic nodes */
} dq_value_info;

#define DQ_VALUE_INFO_INIT                                                                                   \
    {                                                                                                        \
        sizeof(dq_value_info), NULL, NULL, DQ_KIND_TENSOR, DQ_KIND_TENSOR, DQ_UNDEFINED, DQ_UNDEFINED,       \
            false, false, false, false, 0, NULL, NULL, NULL, NULL, NULL                                      \
    }

/** Number of inputs. Inputs that have defaults (initializers) come last. */
DQ_API size_t dq_model_input_count(const dq_model *model);
/** Describes input i. The caller initializes `info` with DQ_VALUE_INFO_INIT. DQ_INVALID_ARGUMENT: past the
 * last. */
DQ_API dq_status dq_model_input(const dq_model *model, size_t i, dq_value_info *info, dq_error *err);
/** Number of outputs. */
DQ_API size_t dq_model_output_count(const dq_model *model);
/** Describes output i, as dq_model_input does for inputs. */
DQ_API dq_status dq_model_output(const dq_model *model, size_t i, dq_value_info *info, dq_error *err);

/** Finds an input by name; `index` is its number for dq_model_input. name NULL: the first. DQ_BAD_INPUT: no
 * such input; the message lists the inputs. */
DQ_API dq_status dq_model_find_input(const dq_model *model, const char *name, size_t *index, dq_error *err);
/** Finds an output by name, for dq_model_output. */
DQ_API dq_status dq_model_find_output(const dq_model *model, const char *name, size_t *index, dq_error *err);

/** Calls `report` for each node that cannot run, with the status and the message, which live during the call
 * only. Bodies of functions and inner graphs are included. `report` may be NULL. Returns DQ_OK when every
 * node can run, DQ_BAD_MODEL when a node breaks the standard, else DQ_UNSUPPORTED; `err` gets the first
 * message of that status. */
DQ_API dq_status dq_model_check(const dq_model *model, void (*report)(void *arg, const dq_error *why),
                                void *arg, dq_error *err);

/** Writes the model to an .onnx file. Model-local functions are inlined, defaults of attributes are written
 * out, and all tensors are inside the file. The file appears whole or not at all; where `path` is a symbolic
 * link, the file that it points to is replaced. DQ_UNSUPPORTED: more than protobuf's 2 GiB. DQ_IO: the file
 * cannot be written. */
DQ_API dq_status dq_model_save(const dq_model *model, const char *path, dq_error *err);
/** Does the same in memory: sets *bytes and *size. The caller frees the bytes with dq_free. */
DQ_API dq_status dq_model_save_memory(const dq_model *model, void **bytes, size_t *size, dq_error *err);
/** Receives the next `size` bytes, 1 or more. Returns 0, or another number on an error. */
typedef int (*dq_write_fn)(void *arg, const void *bytes, size_t size);
/** Does the same through `write`, which the calling thread calls with `arg` and the bytes in pieces, in
 * order. After a result other than 0 it is not called again, and the call returns DQ_IO. */
DQ_API dq_status dq_model_save_write(const dq_model *model, dq_write_fn write, void *arg, dq_error *err);

/** Frees memory that a call allocated for the caller, where its comment says so. dq_free(NULL) does nothing.
 */
DQ_API void dq_free(void *memory);

/* ---- Models from code -------------------------------------------------------------------------------- */

/** Builds a model without a file:
 *
 *     const int64_t dims[] = {-1, 4};
 *     const char *const dim_names[] = {"N", NULL};
 *     const char *const inputs[] = {"x", "scale"};
 *     const char *y = NULL; // a name that the builder generates
 *     dq_builder *b = NULL;
 *     dq_node_spec quantize = DQ_NODE_SPEC_INIT;
 *     quantize.op_type = "QuantizeLinear";
 *     quantize.input_count = 2;
 *     quantize.inputs = inputs;
 *     quantize.output_count = 1;
 *     dq_builder_create("half", &b, &err);
 *     dq_builder_opset(b, "", 21, &err);
 *     dq_builder_input(b, "x", DQ_FLOAT, 2, dims, dim_names, &err);
 *     dq_builder_initializer(b, "scale", scale, &err);
 *     dq_builder_node(b, &quantize, &y, &err);
 *     dq_builder_output(b, y, DQ_UINT8, 2, dims, dim_names, &err);
 *     dq_builder_finish(b, NULL, &model, &err);
 *
 * Nodes may come in any order: dq_builder_finish connects values by name. Everything that is given to a
 * builder is copied. A builder after a failed call can only be freed. */
typedef struct dq_builder dq_builder;

/** Creates a builder. `name` is the graph's, and takes the place of the path in messages. dq_builder_finish
 * frees the builder, else dq_builder_free does. */
DQ_API dq_status dq_builder_create(const char *name, dq_builder **out, dq_error *err);
/** Frees a builder that was not finished. */
DQ_API void dq_builder_free(dq_builder *builder);
/** Imports version `version` of the operators of a domain, "" for ai.onnx. This must come before the first
 * node of the domain. */
DQ_API dq_status dq_builder_opset(dq_builder *builder, const char *domain, int version, dq_error *err);

/** In place of a rank: the shape is not declared. `dims` and `dim_names` are unused then. */
#define DQ_ANY_SHAPE SIZE_MAX
/** Declares an input of the graph: `rank` dimensions, -1 where unknown. `dim_names`, NULL or an array of
 * `rank` entries, holds their symbols, NULL where there is none. */
DQ_API dq_status dq_builder_input(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                                  const int64_t *dims, const char *const *dim_names, dq_error *err);
/** Declares an output of the graph. dtype DQ_UNDEFINED: no type is declared, which ONNX's checker refuses. */
DQ_API dq_status dq_builder_output(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                                   const int64_t *dims, const char *const *dim_names, dq_error *err);
/** Declares element type and shape of a value inside the graph. */
DQ_API dq_status dq_builder_value(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                                  const int64_t *dims, const char *const *dim_names, dq_error *err);
/** Adds a constant. With the name of an input it is the default of that input. */
DQ_API dq_status dq_builder_initializer(dq_builder *builder, const char *name, const dq_tensor *tensor,
                                        dq_error *err);

/** Numbered as ONNX's AttributeProto.AttributeType. */
typedef enum dq_attribute_kind {
    DQ_ATTRIBUTE_UNDEFINED = 0,
    DQ_ATTRIBUTE_FLOAT = 1,
    DQ_ATTRIBUTE_INT = 2,
    DQ_ATTRIBUTE_STRING = 3,
    DQ_ATTRIBUTE_TENSOR = 4,
    DQ_ATTRIBUTE_GRAPH = 5,
    DQ_ATTRIBUTE_FLOATS = 6,
    DQ_ATTRIBUTE_INTS = 7,
    DQ_ATTRIBUTE_STRINGS = 8,
    DQ_ATTRIBUTE_TENSORS = 9,
    DQ_ATTRIBUTE_GRAPHS = 10,
    DQ_ATTRIBUTE_TYPE = 13,
    DQ_ATTRIBUTE_TYPES = 14
} dq_attribute_kind;

/** An attribute of a node. The field of its kind is used; lists have `count` elements. Strings are
 * zero-terminated. A builder accepts the kinds FLOAT, INT, STRING, TENSOR, FLOATS, INTS and STRINGS;
 * dq_node_attribute gives all. */
typedef struct dq_attribute {
    size_t size; /**< sizeof(dq_attribute), set by DQ_ATTRIBUTE_INIT */
    const char *name;
    dq_attribute_kind kind;
    float f;
    int64_t i;
    const char *s;
    const dq_tensor *tensor;
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
    size_t count;
    const dq_graph *graph;
    const dq_graph *const *graphs;
    const dq_tensor *const *tensors;
    const char *type; /**< "seq(tensor(float))" */
    const char *const *types;
} dq_attribute;

#define DQ_ATTRIBUTE_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_attribute), NULL, DQ_ATTRIBUTE_UNDEFINED, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL,     \
            NULL, NULL, NULL, NULL                                                                           \
    }

/** Description of a node. */
typedef struct dq_node_spec {
    size_t size;         /**< sizeof(dq_node_spec), set by DQ_NODE_SPEC_INIT */
    const char *domain;  /**< NULL or "": ai.onnx */
    const char *op_type; /**< "QLinearConv" */
    const char *name;    /**< NULL: the builder generates a name */
    size_t input_count;
    const char *const *inputs; /**< names of values; NULL or "": the input is left out */
    size_t output_count;
    const char *const *outputs; /**< names; "": the output is not needed; NULL, or an entry NULL: generated */
    size_t attribute_count;
    const dq_attribute *attributes; /**< an array whose elements all have the size of the first */
} dq_node_spec;

#define DQ_NODE_SPEC_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_node_spec), NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL                                    \
    }

/** Adds a node. The names of its outputs go to `outputs`, an array of spec->output_count, and live as long as
 * the builder; NULL: the caller does not need them. */
DQ_API dq_status dq_builder_node(dq_builder *builder, const dq_node_spec *spec, const char **outputs,
                                 dq_error *err);

/** Makes the model, which is checked like a loaded one with the same messages. The builder is freed, also
 * when the call fails. */
DQ_API dq_status dq_builder_finish(dq_builder *builder, const dq_load_options *options, dq_model **out,
                                   dq_error *err);

/* ---- Looking into a model ---------------------------------------------------------------------------- */

/** Reads the graphs, nodes and values of a model:
 *
 *     dq_model_info model_info = DQ_MODEL_INFO_INIT;
 *     dq_graph_info graph = DQ_GRAPH_INFO_INIT;
 *     dq_model_describe(model, &model_info, &err);
 *     dq_graph_describe(model_info.graph, &graph, &err);
 *     for (size_t i = 0; i < graph.node_count; i++) { // in the order of computation
 *         dq_node_info node = DQ_NODE_INFO_INIT;
 *         dq_node_describe(graph.nodes[i], &node, &err);
 *         printf("%s %s\n", node.op_type, node.name);
 *     }
 *
 * Handles are compared as pointers. They, and everything that the functions of this section return through
 * pointers, live as long as the model; a session keeps its model alive. Nothing is copied: an initializer is
 * the tensor that runs read. Any thread may call these functions at any time. A model with nodes that cannot
 * run can be read, too.
 *
 * The graphs are those of the file, with these differences: calls of model-local functions are replaced by
 * the nodes of the functions; nodes are in topological order; attributes that a node left out have their
 * defaults; duplicate QuantizeLinear nodes of one value are merged, so that all consumers read the result of
 * the first. Fusion does not change these graphs; dq_session_step shows its result. */

/** Description of a model. */
typedef struct dq_model_info {
    size_t size;      /**< sizeof(dq_model_info), set by DQ_MODEL_INFO_INIT */
    const char *name; /**< the path, or the name that a model from memory or code was given */
    int64_t ir_version;
    /** From the file; "" where it has none. */
    const char *producer_name, *producer_version, *domain;
    int64_t model_version; /**< from the file; 0 where it has none */
    const char *doc;
    const dq_graph *graph; /**< the main graph */
    size_t opset_count;    /**< for dq_model_opset */
    size_t metadata_count; /**< for dq_model_metadata */
} dq_model_info;

#define DQ_MODEL_INFO_INIT                                                                                   \
    {                                                                                                        \
        sizeof(dq_model_info), NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, 0                                \
    }

/** Describes a model. The caller initializes `info` with DQ_MODEL_INFO_INIT. */
DQ_API dq_status dq_model_describe(const dq_model *model, dq_model_info *info, dq_error *err);
/** Operator set i that the model imports; domain "" is ai.onnx. `domain` and `version` may be NULL.
 * DQ_INVALID_ARGUMENT: past the last. */
DQ_API dq_status dq_model_opset(const dq_model *model, size_t i, const char **domain, int *version,
                                dq_error *err);
/** Entry i of the model's metadata_props, in the order of the file. `key` and `value` may be NULL.
 * DQ_INVALID_ARGUMENT: past the last. */
DQ_API dq_status dq_model_metadata(const dq_model *model, size_t i, const char **key, const char **value,
                                   dq_error *err);
/** Finds a value of the main graph by name: an input, an initializer or an output of a node. NULL: there is
 * none. */
DQ_API const dq_value *dq_model_find_value(const dq_model *model, const char *name);

/** Description of a graph. */
typedef struct dq_graph_info {
    size_t size; /**< sizeof(dq_graph_info), set by DQ_GRAPH_INFO_INIT */
    const char *name;
    const dq_graph *outer; /**< the graph whose node holds this one as an attribute; NULL: the main graph */
    size_t node_count;
    const dq_node *const *nodes; /**< in topological order */
    size_t input_count;
    const dq_value *const *inputs; /**< as declared, also those with a default */
    size_t output_count;
    const dq_value *const *outputs; /**< may be values of an outer graph, and one value more than once */
    const char *const *output_names;
    size_t value_count;
    const dq_value *const *values; /**< the graph's own: inputs, initializers and outputs of its nodes */
} dq_graph_info;

#define DQ_GRAPH_INFO_INIT                                                                                   \
    {                                                                                                        \
        sizeof(dq_graph_info), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, NULL                          \
    }

/** Describes a graph. The caller initializes `info` with DQ_GRAPH_INFO_INIT. */
DQ_API dq_status dq_graph_describe(const dq_graph *graph, dq_graph_info *info, dq_error *err);
/** Finds a value by name in one graph; values of outer graphs are not searched. NULL: there is none. */
DQ_API const dq_value *dq_graph_find_value(const dq_graph *graph, const char *name);

/** Description of a node. */
typedef struct dq_node_info {
    size_t size;      /**< sizeof(dq_node_info), set by DQ_NODE_INFO_INIT */
    const char *name; /**< "" when the model gives none */
    const char *op_type;
    const char *domain; /**< "" is ai.onnx */
    int since_version;  /**< of the schema of the node; 0: there is no schema */
    int opset;          /**< the version of the domain that the model, or the function, imports */
    /** The node was made by rewrites of a session and does not belong to the model (dq_session_step). */
    bool synthetic;
    size_t input_count;
    const dq_value *const *inputs; /**< NULL entries: left out. Values of outer graphs may be among them. */
    size_t output_count;
    const dq_value *const *outputs; /**< NULL entries: left out */
    size_t attribute_count;         /**< for dq_node_attribute */
    const dq_graph *graph;          /**< the graph that the node belongs to */
} dq_node_info;

#define DQ_NODE_INFO_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_node_info), NULL, NULL, NULL, 0, 0, false, 0, NULL, 0, NULL, 0, NULL                       \
    }

/** Describes a node. The caller initializes `info` with DQ_NODE_INFO_INIT. */
DQ_API dq_status dq_node_describe(const dq_node *node, dq_node_info *info, dq_error *err);
/** Attribute i of a node: name, kind and the field of that kind; other fields are zero. Strings are
 * zero-terminated; a DQ_ATTRIBUTE_STRING has `count` bytes and may contain zeros. Sparse tensors are given as
 * dense ones. The caller initializes `attribute` with DQ_ATTRIBUTE_INIT. DQ_INVALID_ARGUMENT: past the last.
 */
DQ_API dq_status dq_node_attribute(const dq_node *node, size_t i, dq_attribute *attribute, dq_error *err);

/** Describes a value, as far as it is known without a run. Where the model declares no element type, it comes
 * from the schemas of the operators. The shape is the declared one, or that of the initializer. The caller
 * initializes `info` with DQ_VALUE_INFO_INIT. */
DQ_API dq_status dq_value_describe(const dq_value *value, dq_value_info *info, dq_error *err);
/** Consumers of a value: sets *nodes to an array of the *count nodes that read it, each once, in topological
 * order, with those of inner graphs. An output of the graph is no consumer. The first call builds an index of
 * the whole model, in time and memory linear in its nodes. */
DQ_API dq_status dq_value_consumers(const dq_model *model, const dq_value *value, size_t *count,
                                    const dq_node *const **nodes, dq_error *err);

/** Granularity of a quantization: the elements that share one scale. */
typedef enum dq_granularity {
    DQ_GRANULARITY_UNKNOWN = 0, /**< the shape of the scale depends on data */
    DQ_PER_TENSOR = 1,          /**< all */
    DQ_PER_AXIS = 2,            /**< one index of an axis */
    DQ_PER_BLOCK = 3            /**< block_size consecutive elements along an axis */
} dq_granularity;

/** A value's quantization: real number = (element - zero point) * scale. */
typedef struct dq_quantization {
    size_t size;    /**< sizeof(dq_quantization), set by DQ_QUANTIZATION_INIT */
    bool quantized; /**< false: no node quantizes the value, and all other fields are zero */
    dq_granularity granularity;
    /** For DQ_PER_AXIS and DQ_PER_BLOCK: an axis of the value. It is negative, counted from the last axis
     * (-1), where the rank is not known. */
    int64_t axis;
    int64_t block_size; /**< for DQ_PER_BLOCK: number of elements */
    /** NULL: the operator has no scale (ConvInteger, MatMulInteger, MulInteger); later nodes scale the
     * result. */
    const dq_value *scale;
    const dq_value *zero_point; /**< NULL: zero, or the middle of the range for unsigned packed weights */
    /** Constant data of scale and zero point; NULL: computed in a run, or absent. */
    const dq_tensor *scale_data, *zero_point_data;
    const dq_node *node; /**< the node that quantizes or dequantizes the value */
} dq_quantization;

#define DQ_QUANTIZATION_INIT                                                                                 \
    {                                                                                                        \
        sizeof(dq_quantization), false, DQ_GRANULARITY_UNKNOWN, 0, 0, NULL, NULL, NULL, NULL, NULL           \
    }

/** Finds the quantization of a value from the node that computes it, else from the first consumer that has
 * scales or zero points for it. These nodes are QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and
 * the operators of ai.onnx, com.microsoft and onednn with scales or zero points for quantized inputs:
 * QLinearX, XInteger, QGemm, QAttention, MatMulNBits, GatherBlockQuantized, QMoE and others whose schemas
 * name such inputs x, x_scale, x_zero_point. The caller initializes `quantization` with DQ_QUANTIZATION_INIT.
 *
 * Packed weights: MatMulNBits holds N x K weights as N x blocks x bytes, and its axis 1 counts the blocks;
 * blocks of MatMulBnb4 lie along its one axis; experts of QMoE (axis 0) have scales of their own besides. The
 * per-channel scales of a quantized cache of GroupQueryAttention are of each head, too. */
DQ_API dq_status dq_value_quantization(const dq_model *model, const dq_value *value,
                                       dq_quantization *quantization, dq_error *err);

/* ---- Thread pools ------------------------------------------------------------------------------------ */

/** Threads that sessions share (dq_session_options.pool). One session at a time uses them; a session that
 * runs meanwhile computes on its caller's thread alone. The threads start with the first work that is worth
 * sharing, and sleep between runs. Sessions that get neither a pool nor a number of threads share one pool of
 * all cores, which the first of them creates and the last one frees. */
typedef struct dq_thread_pool dq_thread_pool;

typedef struct dq_thread_pool_options {
    size_t size; /**< sizeof(dq_thread_pool_options), set by DQ_THREAD_POOL_OPTIONS_INIT */
    /** Number of threads with the caller's; 0: the number of physical cores that the process may use, by its
     * affinity and the CPU time of its control group. */
    unsigned threads;
    /** Microseconds for which a thread polls for the next work of a run before it sleeps; 0: 50. A larger
     * value costs CPU time; a smaller one wakes threads more often, at 5 to 50 us each. */
    unsigned spin_us;
    /** Runs work on threads of the caller; the pool then starts none. The callback calls task(task_arg, i)
     * once for each i from 0 to count - 1, in any order, concurrently or not, on any threads, and returns
     * when all tasks are done. count is at most `threads`. NULL: the pool starts threads of its own. */
    void (*parallel_for)(void *arg, size_t count, void (*task)(void *task_arg, size_t i), void *task_arg);
    void *parallel_for_arg; /**< passed to parallel_for */
    /** Processors for the pool's own threads, as the system numbers them, one for each in turn; the thread
     * that calls dq_session_run stays where the caller has it. NULL: wherever the system lets them run. A
     * processor that the process may not use is DQ_INVALID_ARGUMENT, and so are processors together with
     * parallel_for. */
    const unsigned *cpus;
    size_t cpu_count;
} dq_thread_pool_options;

#define DQ_THREAD_POOL_OPTIONS_INIT                                                                          \
    {                                                                                                        \
        sizeof(dq_thread_pool_options), 0, 0, NULL, NULL, NULL, 0                                            \
    }

/** Creates a pool. Free it with dq_thread_pool_free. */
DQ_API dq_status dq_thread_pool_create(const dq_thread_pool_options *options, dq_thread_pool **out,
                                       dq_error *err);
/** Gives the caller's reference back. The pool is freed with its last session. */
DQ_API void dq_thread_pool_free(dq_thread_pool *pool);
/** Number of threads, with the caller's. */
DQ_API unsigned dq_thread_pool_threads(const dq_thread_pool *pool);

/* ---- Sessions ---------------------------------------------------------------------------------------- */

/** Runs a model: it holds inputs, plans, activations and outputs. */
typedef struct dq_session dq_session;

/** A step of a run (dq_session_options.trace). It lives during the callback only. */
typedef struct dq_trace_event {
    size_t size;      /**< the library's sizeof(dq_trace_event) */
    const char *node; /**< name of the node, else of its first output */
    const char *op;   /**< "QLinearConv-10" */
    double seconds;   /**< wall time of the step */
    size_t output_count;
    const char *const *output_names;
    const dq_tensor *const *outputs; /**< an entry is NULL where the output is not used */
    const char
        *algorithm; /**< "conv_s8=winograd_2d" (dq_algorithm_info.id); NULL: the operator has one only */
} dq_trace_event;

/** Subject of a log record. */
typedef enum dq_log_kind {
    DQ_LOG_REWRITE = 1, /**< rewrites: which nodes were fused, and why others were not */
    DQ_LOG_PLAN = 2     /**< the planner: algorithms, batch tiles, nodes that no output needs */
} dq_log_kind;

/** A line of the log (dq_session_options.log). It lives during the callback only. */
typedef struct dq_log_record {
    size_t size; /**< the library's sizeof(dq_log_record) */
    dq_log_kind kind;
    const char *message; /**< one line, UTF-8, without a newline */
} dq_log_record;

/** Phases of a call. */
typedef enum dq_phase {
    DQ_PHASE_PLAN = 1, /**< planning for the shapes of the inputs */
    DQ_PHASE_RUN = 2   /**< computing */
} dq_phase;

/** Progress of a call (dq_session_options.progress). It lives during the callback only. */
typedef struct dq_progress {
    size_t size; /**< the library's sizeof(dq_progress) */
    dq_phase phase;
    uint64_t
        nodes; /**< planned or begun so far in this phase; those of inner graphs each time that they run */
    uint64_t work;       /**< counted so far in this phase, as dq_limits.work counts it */
    uint64_t total_work; /**< of the whole run; 0 where it is not known before, and while planning */
} dq_progress;

typedef struct dq_session_options {
    size_t size; /**< sizeof(dq_session_options), set by DQ_SESSION_OPTIONS_INIT */
    /** Number of threads, with the caller's, of a pool of the session's own. 0: the session uses the
     * process's pool of all cores (see dq_thread_pool). A program with a session in each thread sets 1.
     * Unused with `pool`. */
    unsigned threads;
    /** "c", "sse41", "avx2"…: the highest ISA level to use (dq_isa_name); NULL: the CPU's best. */
    const char *isa;
    /** Run the graph as written, without rewrites that fuse nodes. */
    bool no_fuse;
    /** Let com.microsoft's MatMulNBits and QMoE with 4-bit weights and accuracy_level 4 round their
     * activations to 8 bits in each block, as ONNX Runtime does (docs/com-microsoft.md). This is faster.
     * Otherwise such products have float precision, whatever the attribute says. */
    bool honor_accuracy_level;
    /** Called after each step of a run; NULL: none. Large batches then run whole, step by step, instead of in
     * tiles of a few items that go through many steps, and take longer. */
    void (*trace)(void *arg, const dq_trace_event *event);
    /** Called with each decision of the rewriter and the planner; NULL: none. */
    void (*log)(void *arg, const dq_log_record *record);
    /** Handed to trace, log and progress, which are called by the thread that runs the session. */
    void *arg;
    /** The threads to use, which the session keeps alive; `threads` is not looked at then. NULL: as `threads`
     * says. */
    dq_thread_pool *pool;
    /** Called before each node is planned and before each is run, for small nodes every few microseconds;
     * NULL: none. A result other than 0 cancels the call, as dq_session_cancel does. With a pool whose
     * threads are the caller's (parallel_for), one of these may call it; never two at once. */
    int (*progress)(void *arg, const dq_progress *progress);
    const dq_allocator *allocator; /**< of the session's memory, copied; NULL: malloc */
    /** Names of passes of the rewriter that shall not run, separated by commas (dq_pass_describe); NULL:
     * none.
     */
    const char *disabled_passes;
    /** Algorithms to use whatever they cost, "conv_s8=gemm_im2col,matmul_f32=gemv": at most one of each table
     * (dq_algorithm_describe); NULL: the planner chooses. Planning a node that the algorithm does not apply
     * to fails with DQ_INVALID_ARGUMENT and the reason. */
    const char *algorithms;
} dq_session_options;

#define DQ_SESSION_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        sizeof(dq_session_options), 0, NULL, false, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL    \
    }

/** A pass of the rewriter, which replaces patterns of nodes before a graph is planned. The strings are short
 * phrases for people and live as long as the library. */
typedef struct dq_pass_info {
    size_t size;      /**< sizeof(dq_pass_info), set by DQ_PASS_INFO_INIT */
    const char *name; /**< "lower_qdq_matmul" */
    /** "model": runs once when a model is loaded, and cannot be disabled; "precision", "graph": looks at a
     * whole graph; "node": is tried at each node. */
    const char *scope;
    const char *matches;     /**< the pattern of nodes */
    const char *replacement; /**< the nodes that take its place */
    const char *exactness;   /**< how far results may be from the graph as written (docs/rewrites.md) */
} dq_pass_info;

#define DQ_PASS_INFO_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_pass_info), NULL, NULL, NULL, NULL, NULL                                                   \
    }

/** Number of passes. */
DQ_API size_t dq_pass_count(void);
/** Describes pass i; passes run in this order. DQ_INVALID_ARGUMENT: there is no such pass. */
DQ_API dq_status dq_pass_describe(size_t i, dq_pass_info *info, dq_error *err);

/** A row of an algorithm table: one of the ways in which an operator is computed. The planner takes the one
 * of the lowest cost among those that apply to a node. The strings live as long as the library. */
typedef struct dq_algorithm_info {
    size_t size;               /**< sizeof(dq_algorithm_info), set by DQ_ALGORITHM_INFO_INIT */
    const char *id;            /**< table and name: "conv_s8=winograd_2d" */
    const char *summary;       /**< how it computes, a phrase for people */
    const char *table;         /**< "conv_s8" */
    const char *table_summary; /**< what the table's rows compute */
    /** Rows of a table with equal numbers give results of equal bits. Shapes alone decide which result a node
     * has; the planner chooses among the rows of that number. */
    size_t result;
} dq_algorithm_info;

#define DQ_ALGORITHM_INFO_INIT                                                                               \
    {                                                                                                        \
        sizeof(dq_algorithm_info), NULL, NULL, NULL, NULL, 0                                                 \
    }

/** Number of rows of all algorithm tables. */
DQ_API size_t dq_algorithm_count(void);
/** Describes row i; the rows of a table follow each other. DQ_INVALID_ARGUMENT: there is no such row. */
DQ_API dq_status dq_algorithm_describe(size_t i, dq_algorithm_info *info, dq_error *err);

/** Creates a session, which keeps the model alive. Free it with dq_session_free. DQ_UNSUPPORTED,
 * DQ_BAD_MODEL: the model has nodes that cannot run. DQ_BAD_INPUT: the model's file of packed weights is for
 * another ISA level. DQ_INVALID_ARGUMENT: the ISA level is unknown, or the
 * CPU does not have it; there is no pass of that name, or it cannot be disabled; there is no algorithm of
 * that name.
 *
 * On a CPU with AMX, unless a lower level is asked for, the call requests the tile registers from Linux. From
 * then on each signal stack of the process (sigaltstack) needs sysconf(_SC_MINSIGSTKSZ) bytes. If one in use
 * is smaller, the session works without AMX. */
DQ_API dq_status dq_session_create(dq_model *model, const dq_session_options *options, dq_session **out,
                                   dq_error *err);
/** Frees a session and its outputs. No thread may be running it. */
DQ_API void dq_session_free(dq_session *session);

/** Sets an input for the following runs; tensor NULL removes it. name NULL: the first input. The tensor,
 * sequence or optional is not copied: it must live and stay unchanged while runs use it and while their
 * outputs are read, because an output may share its memory. DQ_BAD_INPUT: no such input, or type or shape do
 * not fit its declaration. */
DQ_API dq_status dq_session_set_input(dq_session *session, const char *name, const dq_tensor *tensor,
                                      dq_error *err);
/** Makes the following runs write an output to a tensor of the caller, which must live as long; tensor NULL
 * ends that. name NULL: the first output. DQ_BAD_INPUT: the type does not fit the model's declaration. Each
 * run checks type and shape against the output itself, before it computes anything if the shape is known by
 * then. Strings, sequences, optionals and tensors of dq_tensor_wrap_const are refused.
 *
 * After a run these tensors hold what they would hold if all outputs were computed elsewhere and copied at
 * the end. Two of them may not overlap: the run is refused. One may overlap inputs, which then hold the
 * output after the run. After a failed run their contents are undefined.
 *
 * Where the result is the same, the output is computed in place and nothing is copied. That includes states
 * which are updated in the memory of their input: by elementwise operators (Add …), ScatterND,
 * ScatterElements, TensorScatter, com.microsoft's LinearAttention and CausalConvWithState, and by attention
 * with one buffer for past and present that has room for the longest sequence: GroupQueryAttention,
 * MultiHeadAttention with past_sequence_length, Attention with past_present_share_buffer. A model that keeps
 * its keys and values in such buffers generates tokens like this:
 *
 *     // once, for the keys and the values of each layer: a tensor of 1 x heads x longest sequence x size
 *     dq_session_set_input(session, "past_key_values.0.key", cache, &err);
 *     dq_session_set_output(session, "present.0.key", cache, &err);
 *     // for each token: the other inputs, with a mask over all tokens so far
 *     dq_session_set_input(session, "input_ids", token, &err);
 *     dq_session_set_input(session, "attention_mask", ones, &err);
 *     dq_session_run(session, &err); // adds a row to each cache
 *     dq_session_get_output(session, "logits", &logits, &err);
 *
 * Where present is always longer than past, use two buffers in turn: the output of one run, wrapped in its
 * new shape with dq_tensor_wrap, is the input of the next. */
DQ_API dq_status dq_session_set_output(dq_session *session, const char *name, dq_tensor *tensor,
                                       dq_error *err);
/** Runs the graph. The first run with a set of input shapes plans and allocates. Later runs with the same
 * shapes do not, as long as the set is one of the last four. DQ_BAD_INPUT: an input is missing or does not
 * fit. DQ_BAD_MODEL: a node does not fit the shapes or values that it received. DQ_CANCELLED: see
 * dq_session_cancel. After a failed run the session can be used as before; it has no outputs. */
DQ_API dq_status dq_session_run(dq_session *session, dq_error *err);
/** Cancels the session's run, planning included. The run returns DQ_CANCELLED as soon as each thread has
 * finished its current piece of work, a small operator or a part of a large one. Any thread and any signal
 * handler may call this at any time while the session lives: it is one atomic store, and async-signal-safe.
 *
 * The request stands until a run has returned DQ_CANCELLED. If nothing runs, or the run ends too early to see
 * it, the next run returns at once. After that the session can be used as before. */
DQ_API void dq_session_cancel(dq_session *session);
/** An output of the last run; name NULL: the first. The tensor belongs to the session and lives until the
 * session runs again, gets another output by dq_session_add_output, or is freed. It may lie in memory of the
 * caller: in a tensor of dq_session_set_output, or in an input. DQ_INVALID_ARGUMENT: no such output, or the
 * last run failed. */
DQ_API dq_status dq_session_get_output(dq_session *session, const char *name, const dq_tensor **out,
                                       dq_error *err);
/** Hands an output of the last run over to the caller; name NULL: the graph's first. *out is valid after
 * later runs, and after session and model are freed. Its memory comes from the session's allocator, and
 * dq_tensor_free gives it back.
 *
 * The first time, an output is copied. From then on each run computes it in memory that is allocated for the
 * caller, and taking it costs nothing. Memory that is not taken is used again by the next run. An output is
 * copied each time where it has no memory of its own before the run: a string tensor, sequence or optional; a
 * shape that depends on data; an input or a constant that is an output as it is; a view of another output, or
 * the same value by another name, unless the others have been taken before; and where the caller has set a
 * tensor for it with dq_session_set_output.
 *
 * Once it is taken, dq_session_get_output and dq_session_take_output refuse the output until the next run
 * (DQ_INVALID_ARGUMENT), as they do without a run that succeeded, and a tensor that dq_session_get_output
 * gave for it is no longer valid. Other outputs stay as they are. After DQ_OUT_OF_MEMORY, the session still
 * has the output. */
DQ_API dq_status dq_session_take_output(dq_session *session, const char *name, dq_tensor **out,
                                        dq_error *err);
/** Makes a value inside the graph an output of this session too. The session plans again, so this is best
 * done before the first run. Such a value is computed as the graph is written, which prevents fusion across
 * it. DQ_INVALID_ARGUMENT: no value of that name. */
DQ_API dq_status dq_session_add_output(dq_session *session, const char *name, dq_error *err);

/** Name of the ISA level that the session uses, "avx512vnni". */
DQ_API const char *dq_session_isa(const dq_session *session);
/** Number of threads that the session uses, with the caller's. */
DQ_API unsigned dq_session_threads(const dq_session *session);
/** Name of ISA level i of this build for the CPU's family, the lowest first; NULL past the last. `available`,
 * which may be NULL, receives whether this CPU has it. */
DQ_API const char *dq_isa_name(size_t i, bool *available);

/* ---- Looking into a session -------------------------------------------------------------------------- */

/** Plans without running: fuses nodes, infers shapes, packs weights and assigns memory for the inputs that
 * are set, of which only types and shapes are used. The next run with these shapes plans nothing. Outputs of
 * an earlier run are no longer valid. Errors are those of dq_session_run. */
DQ_API dq_status dq_session_prepare(dq_session *session, dq_error *err);

/** Writes the weights that sessions of the model have packed for this session's ISA level to a file, for
 * dq_load_options.packed_path. Call it after dq_session_prepare or a run: for several shapes of inputs, after
 * that of each. A model's default inputs, options such as no_fuse, and the number of threads may ask for
 * weights in other forms, which are packed as always. The file appears whole or not at all; it is for this
 * model, ISA level and version of the library, and is as large as the packed weights
 * (docs/packed-weights.md). DQ_IO: the file cannot be written. */
DQ_API dq_status dq_session_save_packed(dq_session *session, const char *path, dq_error *err);
/** Does the same through `write`, as dq_model_save_write does. */
DQ_API dq_status dq_session_save_packed_write(dq_session *session, dq_write_fn write, void *arg,
                                              dq_error *err);

/** The shape of one input. */
typedef struct dq_shape {
    size_t size;      /**< sizeof(dq_shape), set by DQ_SHAPE_INIT */
    const char *name; /**< NULL: the graph's first input */
    size_t rank;
    const int64_t *dims; /**< `rank` dimensions, 0 or more each */
} dq_shape;

#define DQ_SHAPE_INIT                                                                                        \
    {                                                                                                        \
        sizeof(dq_shape), NULL, 0, NULL                                                                      \
    }

/** Memory in bytes. */
typedef struct dq_memory_info {
    size_t size; /**< sizeof(dq_memory_info), set by DQ_MEMORY_INFO_INIT */
    /** The session's buffer for this plan: activations, which share memory by liveness, and scratch memory.
     * Steps whose shapes depend on data and inner graphs allocate more. */
    uint64_t activation_bytes;
    uint64_t weight_bytes; /**< packed weights and other forms of constants, shared by the model's sessions */
    /** Constants that steps read, packed or not: initializers, and values computed from them. */
    uint64_t constant_bytes;
} dq_memory_info;

#define DQ_MEMORY_INFO_INIT                                                                                  \
    {                                                                                                        \
        sizeof(dq_memory_info), 0, 0, 0                                                                      \
    }

/** Infers types and shapes of the outputs, and the memory of a run, for inputs of these shapes. Nothing runs,
 * and no data is needed:
 *
 *     const int64_t dims[] = {8, 1, 8, 8};
 *     dq_shape shape = DQ_SHAPE_INIT;
 *     dq_memory_info memory = DQ_MEMORY_INFO_INIT;
 *     shape.name = "image";
 *     shape.rank = 4;
 *     shape.dims = dims;
 *     dq_session_infer(session, 1, &shape, print_output, NULL, &memory, &err);
 *
 * `visit` (or NULL) is called for each of the session's outputs, in order; a non-zero return ends the walk.
 * Its dq_value_info lives during the callback, and has no shape where the shape depends on data. `memory` may
 * be NULL. An input that is not among `inputs` has the shape of the tensor that is set, else its default,
 * else the declared shape. The session, its inputs and its outputs stay as they are, with one exception: an
 * input with a default that gets a shape for the first time ends the life of the outputs. Later runs plan
 * again; they reuse packed weights only. DQ_BAD_INPUT: an unknown input, a shape that the model does not
 * declare, or an input without one. */
DQ_API dq_status dq_session_infer(dq_session *session, size_t count, const dq_shape *inputs,
                                  int (*visit)(void *arg, const dq_value_info *output), void *arg,
                                  dq_memory_info *memory, dq_error *err);

/** A step of the current plan, that of the last run or dq_session_prepare. Pointers live until the session
 * plans again, runs with other shapes, gets another output, or is freed. */
typedef struct dq_step_info {
    size_t size;           /**< sizeof(dq_step_info), set by DQ_STEP_INFO_INIT */
    const dq_node *node;   /**< of the model, or one that fusion made (dq_node_info.synthetic) */
    const char *op;        /**< "QLinearConv-10", as in dq_trace_event */
    const char *algorithm; /**< as in dq_trace_event; NULL also where it is known only in the run */
    const char *decision;  /**< the planner's decision about it; NULL: none */
    /** The nodes of the model that the step computes. Each node belongs to one step at most. If several steps
     * need it, as with a DequantizeLinear that has two readers, it belongs to the first of them. A node
     * without a step of its own, such as a Reshape in the memory of its input, belongs to the step that
     * computes its input, else to the first that reads its output. Nodes that planning computes, and nodes
     * that no output needs, belong to none. A step that only changes a layout has no nodes. */
    size_t written_count;
    const dq_node *const *written;
    uint64_t work;          /**< counted as dq_limits.work; 0: known only in the run */
    uint64_t scratch_bytes; /**< of all threads together; 0 also where it is known only in the run */
    /** The part of `work` that is multiply-adds of matrix products, convolutions, recurrent networks and
     * attention. An algorithm such as Winograd's may need fewer. */
    uint64_t macs;
    /** Bytes of the step's inputs, constants and outputs, each counted once, as the model stores them. A step
     * that computes in the memory of its input moves fewer. 0: known only in the run. */
    uint64_t bytes;
} dq_step_info;

#define DQ_STEP_INFO_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_step_info), NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0                                    \
    }

/** Number of steps of the current plan; 0 before the session has planned. */
DQ_API size_t dq_session_step_count(const dq_session *session);
/** Describes step i, in the order of the run. Steps that run in batch tiles are listed once, with the work of
 * the whole batch. The caller initializes `info` with DQ_STEP_INFO_INIT. DQ_INVALID_ARGUMENT: past the last,
 * or before the session has planned. */
DQ_API dq_status dq_session_step(dq_session *session, size_t i, dq_step_info *info, dq_error *err);
/** Memory of the current plan. The caller initializes `memory` with DQ_MEMORY_INFO_INIT. DQ_INVALID_ARGUMENT:
 * the session has not planned. */
DQ_API dq_status dq_session_memory(const dq_session *session, dq_memory_info *memory, dq_error *err);

/** Place and liveness interval of a value in the session's buffer. */
typedef struct dq_lifetime {
    size_t size; /**< the library's sizeof(dq_lifetime) */
    const dq_value *value;
    /** The value that owns the memory: this value itself, or the value that it is a view of, is computed in
     * place of, or is concatenated into. Values that are live at the same time overlap only when they have
     * the same owner. */
    const dq_value *memory_of;
    uint64_t offset, bytes; /**< in the buffer */
    /** The first step that writes the value and the last step that reads it, directly or through a view. For
     * outputs the last is the number of steps: the end of the run. */
    size_t first_step, last_step;
} dq_lifetime;

/** Calls `visit` for each value in the session's buffer, ordered by first_step. A non-zero result ends the
 * list. Constants, values in memory of the caller, and values whose shape depends on data are not in the
 * buffer. Tensors of dq_session_set_output are used instead of the memory of the output. For steps that run
 * in batch tiles the list has the memory of one thread, and each value that later steps read twice: as a tile
 * and whole. DQ_INVALID_ARGUMENT: the session has not planned. */
DQ_API dq_status dq_session_lifetimes(const dq_session *session,
                                      int (*visit)(void *arg, const dq_lifetime *lifetime), void *arg,
                                      dq_error *err);

#ifdef __cplusplus
}
#endif
#endif
