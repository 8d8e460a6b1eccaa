/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun: runs quantized ONNX models. This is the only public header, and the manual of the C API.
 *
 *     dq_model *model = NULL;
 *     dq_session *session = NULL;
 *     dq_tensor *x = NULL;
 *     const dq_tensor *y = NULL; // belongs to the session, and is valid until its next run
 *     dq_error err;
 *     if (dq_model_load("model.onnx", NULL, &model, &err) ||
 *         dq_session_create(model, NULL, &session, &err) ||
 *         dq_tensor_wrap(DQ_FLOAT, 2, (int64_t[]){1, 4}, data, sizeof data, &x, &err) || // float data[4]
 *         dq_session_set_input(session, "x", x, &err) || dq_session_run(session, &err) ||
 *         dq_session_get_output(session, "y", &y, &err))
 *         fprintf(stderr, "%s\n", err.message);
 *     else
 *         printf("%g\n", dq_tensor_value(y, 0));
 *     dq_session_free(session);
 *     dq_model_free(model);
 *     dq_tensor_free(x);
 *
 * Errors: every call that can fail returns a dq_status and, where `err` is not NULL, fills it with one
 * sentence: what is wrong, what was found, what was wanted, and where. What a call gives through a pointer
 * means something when it returned DQ_OK, and only then. Nothing in the library prints, exits or aborts.
 *
 * NULL: where a call returns a dq_status, a NULL that it does not allow is DQ_INVALID_ARGUMENT. Functions
 * named X_free take NULL and do nothing. All others want a handle.
 *
 * Memory: handles are opaque, and freed by the function of their name. Texts and structs that a call is
 * given are read during the call and need not outlive it, unless it says otherwise. All sizes are in bytes.
 *
 * Structs: every struct but dq_error begins with `size`, the size that the program was compiled with, so that
 * later versions can add fields at the end. The program initializes each struct, whether it or the library
 * fills it in:
 *
 *     dq_session_options options = DQ_SESSION_OPTIONS_INIT; // sets size; all other fields are the defaults
 *
 * In C, `{.size = sizeof(dq_session_options), .threads = 2}` does the same and sets a field. A program runs
 * with an older or a newer library of the same soversion. Fields that an older program does not have take
 * their defaults. A field that an older library does not have must be zero, else the call returns
 * DQ_UNSUPPORTED. A size below the struct's first version is DQ_INVALID_ARGUMENT. When the library fills a
 * struct, it writes the fields that both know. Structs that a callback receives carry the library's size.
 *
 * Threads: a model is immutable once loaded and may be used by any number of threads and sessions at once.
 * A session or builder belongs to one thread at a time, but for dq_session_cancel. A tensor may be read by
 * many threads, written by one.
 *
 * The process: no call changes what belongs to all of it (locale, umask, signal handlers and masks, limits),
 * but for three things. The first session, set of schemas or pool registers handlers with pthread_atfork. A
 * session may ask Linux for the tile registers of AMX (dq_session_create). Files are mapped and memory is
 * allocated. The threads that sessions start block all signals but those of their own faults.
 *
 * Floating point: a call computes in the default environment (round to nearest, denormals kept, no traps),
 * whatever its thread has set, and leaves the thread's environment, its exception flags too, as it was. The
 * callbacks of a call (trace, why, report, visit) are called in the default environment.
 *
 * fork: the child may use, run and free all models, schemas, pools and sessions that no other thread was
 * using at the moment of the fork. A session that another thread was running must be left alone: its memory
 * is lost to the child. The threads of a pool are not in the child, so that sessions which had run with
 * several run with the child's own; new ones start theirs. fork waits until other threads have left the
 * sections that guard what sessions share, which takes as long as fusing a model or packing its weights at
 * most. */
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
#define DQ_VERSION_MINOR 1
#define DQ_VERSION_PATCH 0

/** "0.1.0": the version of the library that is linked, which may differ from the header's. A constant text,
 * as are those of dq_dtype_name, dq_isa_name and dq_session_isa. */
DQ_API const char *dq_version(void);

/* ---- Errors ------------------------------------------------------------------------------------------ */

/** What went wrong, by who can mend it. The values are also the exit codes of the command line. */
typedef enum dq_status {
    DQ_OK = 0,
    DQ_INVALID_ARGUMENT = 2, /**< the call itself is wrong: a NULL, an unknown name, an impossible option */
    DQ_BAD_MODEL = 3,        /**< the model breaks the format, its schemas, or cannot be read */
    DQ_BAD_INPUT = 4,        /**< an input tensor or input file is not what the model wants */
    DQ_UNSUPPORTED = 5,      /**< valid ONNX that this build of dqrun has no implementation for */
    DQ_OUT_OF_MEMORY = 6,    /**< memory ran out, or a dq_limits bound was passed */
    DQ_INTERNAL = 70,        /**< a bug in dqrun; please report it with the sentence */
    DQ_IO = 74,              /**< writing failed: disk full, no permission */
    DQ_CANCELLED = 130       /**< dq_session_cancel ended the call */
} dq_status;

/** The caller's record of an error. Only meaningful after a call returned something other than DQ_OK. */
typedef struct dq_error {
    dq_status status;
    char message[1024]; /**< one sentence, UTF-8, zero-terminated, no newline; cut with "…" when longer */
} dq_error;

/* ---- Memory ------------------------------------------------------------------------------------------ */

/** Where the long-lived memory of a model (dq_load_options.allocator) or session
 * (dq_session_options.allocator) comes from; without one, from malloc. The struct is copied; `arg` must live
 * until the last memory has been released.
 *
 * A model's allocator has: the graph with its attributes and unpacked initializers, copies of small files and
 * of what dq_model_load_read reads, packed weights, constants computed while planning, fused nodes. Of a
 * model from dq_builder_finish, the graph is malloc'ed and the rest is the allocator's. All of it is released
 * when the model is freed with its last session. A session's allocator has: plans, the buffer of activations
 * and scratch memory, memory of values whose shape depends on data, strings and sequences, inner graphs, and
 * the tensors that dq_session_take_output hands over, which may be released after the session.
 *
 * Not covered: files larger than 1 MiB, which are mapped; schemas; thread pools and the stacks of threads;
 * tensors that the caller creates; and what lives during one call only (parsing, planning, writing).
 *
 * Both functions may be called by any thread, by several at once, and while the library holds locks: they
 * must not call the library. */
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

/** "float", "uint8", "float8e4m3fn"…, as ONNX writes them inside tensor(…); "undefined" for no type. */
DQ_API const char *dq_dtype_name(dq_dtype dtype);
/** The type of that name; DQ_UNDEFINED if there is none. */
DQ_API dq_dtype dq_dtype_from_name(const char *name);
/** Bits of one element: 2, 4, 6, 8, … 128; 0 for strings and DQ_UNDEFINED. Types under 8 bits are packed,
 * first element in the lowest bits (6-bit: four elements in three bytes, little endian). */
DQ_API unsigned dq_dtype_bits(dq_dtype dtype);

/** What a value is. */
typedef enum dq_kind {
    DQ_KIND_TENSOR,
    DQ_KIND_SPARSE,   /**< only in declarations: no such value runs */
    DQ_KIND_SEQUENCE, /**< a list of tensors of one element type, of any shapes */
    DQ_KIND_OPTIONAL, /**< one tensor or one sequence, or nothing */
    DQ_KIND_MAP       /**< only in declarations: no such value runs */
} dq_kind;

/* ---- Tensors ----------------------------------------------------------------------------------------- */

#define DQ_MAX_RANK 16

/** A dense tensor in row-major order, little-endian packing of types under 8 bits. */
typedef struct dq_tensor dq_tensor;

/** A tensor that owns zeroed memory. Strings start empty. Free with dq_tensor_free. */
DQ_API dq_status dq_tensor_create(dq_dtype dtype, size_t rank, const int64_t *dims, dq_tensor **out,
                                  dq_error *err);
/** A tensor over the caller's memory, which must outlive it and be aligned to the element (to 8 bytes at
 * most). `size` must be the tensor's size, as dq_tensor_size tells it. Strings cannot be wrapped. Free
 * with dq_tensor_free, which leaves the memory alone. */
DQ_API dq_status dq_tensor_wrap(dq_dtype dtype, size_t rank, const int64_t *dims, void *data, size_t size,
                                dq_tensor **out, dq_error *err);
/** Only of tensors that the caller has created or wrapped: others belong to a session or to a list. */
DQ_API void dq_tensor_free(dq_tensor *tensor);

DQ_API dq_dtype dq_tensor_dtype(const dq_tensor *tensor);
DQ_API size_t dq_tensor_rank(const dq_tensor *tensor);
/** `rank` dimensions, which live as long as the tensor; never NULL. */
DQ_API const int64_t *dq_tensor_dims(const dq_tensor *tensor);
/** Number of elements: the product of the dimensions, 1 for rank 0. */
DQ_API size_t dq_tensor_count(const dq_tensor *tensor);
/** Bytes at dq_tensor_data: ceil(count * bits / 8). 0 for strings. */
DQ_API size_t dq_tensor_size(const dq_tensor *tensor);
/** The elements; never NULL but for strings. Those of a tensor that came from dq_session_get_output must
 * not be written. */
DQ_API void *dq_tensor_data(const dq_tensor *tensor);
/** Element i of a string tensor: bytes (not zero-terminated) and, where `length` is not NULL, their number.
 * They live until the element is set or the tensor is freed. NULL past the last and for other types. */
DQ_API const char *dq_tensor_string(const dq_tensor *tensor, size_t i, size_t *length);
/** Copies `length` bytes into element i of a string tensor made by dq_tensor_create. */
DQ_API dq_status dq_tensor_set_string(dq_tensor *tensor, size_t i, const char *bytes, size_t length,
                                      dq_error *err);
/** Element i as a double, exactly where double can hold it (booleans 0 or 1; complex: the real part); NaN
 * for strings and past the last. For printing and comparing; slow. */
DQ_API double dq_tensor_value(const dq_tensor *tensor, size_t i);

/* ---- Sequences and optionals ------------------------------------------------------------------------- */

/** A dq_tensor may also be a sequence of tensors, or an optional. Then dq_tensor_dtype is the element type
 * of the tensors inside, dq_tensor_count the number of items, rank and size are 0 and data is NULL. */
DQ_API dq_kind dq_tensor_kind(const dq_tensor *tensor);
/** Item i of a sequence, or what an optional holds (i = 0); NULL past the last. It belongs to the list. */
DQ_API const dq_tensor *dq_tensor_item(const dq_tensor *tensor, size_t i);
/** A sequence of tensors, all of that element type. On DQ_OK it owns the items, which were created or
 * wrapped: dq_tensor_free frees them with it. */
DQ_API dq_status dq_sequence_create(dq_dtype dtype, size_t count, dq_tensor *const *items, dq_tensor **out,
                                    dq_error *err);
/** An optional that may hold what `kind` says, DQ_KIND_TENSOR or DQ_KIND_SEQUENCE, of that element type;
 * `item` NULL: it is empty. On DQ_OK it owns the item. */
DQ_API dq_status dq_optional_create(dq_kind kind, dq_dtype dtype, dq_tensor *item, dq_tensor **out,
                                    dq_error *err);

/* ---- Limits ------------------------------------------------------------------------------------------ */

/** Bounds on what a model may ask for, checked before memory is. Zero in a field means its default. */
typedef struct dq_limits {
    size_t size;            /**< sizeof(dq_limits), set by DQ_LIMITS_INIT */
    uint64_t file_bytes;    /**< size of the model file or of one external data file; default 64 GiB */
    uint64_t tensor_bytes;  /**< one tensor; default 16 GiB */
    uint64_t session_bytes; /**< activations and prepared weights of a session; default 64 GiB */
    /** Nodes of all graphs together, inner ones too: those in the file, where the bodies of functions count
     * once, and those after model-local functions are inlined. Inlining may copy 16 names and attributes
     * for each, and a call counts as 9 of them. Default 1,000,000. */
    uint64_t nodes;
    uint32_t nesting; /**< subgraphs and functions inside one another; default 32 */
    /** Work of one run; default: no bound. A run that would pass it ends with DQ_OUT_OF_MEMORY before the
     * node that passes it begins. Work is counted from shapes, so that the same model, inputs, session
     * options and limits end in the same way in each run, at each ISA level and with any number of threads:
     *  - each node counts 1 each time that its graph runs, whether it takes time or was computed while
     *    planning, and besides:
     *  - matrix products, convolutions, attention, recurrent networks and mixtures of experts: their
     *    multiply-adds, whatever their types; Einsum: those of its contractions, of two operands each;
     *  - pools and LRN: the elements of all windows; MaxRoiPool: of all regions, each as large as the image;
     *  - Resize: for each output element the input elements under its kernel, a product over resized axes;
     *  - Det: a third of the cube of a matrix's rows; Fourier transforms of n elements: n log n;
     *  - NonMaxSuppression: each score, times the boxes that may be chosen of a class;
     *  - TfIdfVectorizer: for each element the elements of all n-grams that may begin there, skips included;
     *  - reductions, and what else goes through a larger input (ArgMax, TopK, NonZero, Unique, losses): the
     *    elements of the input;
     *  - all others: the elements of their outputs (a sequence: its items);
     *  - each run of an inner graph (an iteration of a loop): the elements of the graph's outputs.
     * The nodes are those that the session runs: a fused node counts once, so that `no_fuse` counts more. */
    uint64_t work;
} dq_limits;

#define DQ_LIMITS_INIT                                                                                       \
    {                                                                                                        \
        sizeof(dq_limits), 0, 0, 0, 0, 0, 0                                                                  \
    }

/* ---- Schemas ----------------------------------------------------------------------------------------- */

/** A set of operator schemas: those in the library, plus files that override or add
 * (docs/schema-format.md). Models that use it must be freed before it. Safe to share between threads once
 * filled. */
typedef struct dq_schemas dq_schemas;

/** Those in the library. Free with dq_schemas_free. */
DQ_API dq_status dq_schemas_create(dq_schemas **out, dq_error *err);
/** Reads every *.yaml under `directory`, also in its folders. A schema there replaces the library's of the
 * same domain, name and since_version. A file with a fault adds nothing and ends the call; those read
 * before it have been added. A fault in the text is DQ_BAD_MODEL, a folder or file that cannot be read
 * DQ_INVALID_ARGUMENT. */
DQ_API dq_status dq_schemas_add_dir(dq_schemas *schemas, const char *directory, dq_error *err);
/** The same for YAML text in memory; `source` names it in sentences. */
DQ_API dq_status dq_schemas_add_yaml(dq_schemas *schemas, const char *text, size_t length, const char *source,
                                     dq_error *err);
DQ_API void dq_schemas_free(dq_schemas *schemas);

/** One row of what is supported: an operator version. */
typedef struct dq_operator_info {
    size_t size; /**< sizeof(dq_operator_info), set by DQ_OPERATOR_INFO_INIT */
    int since_version;
    bool deprecated;
    bool implemented;   /**< false: there is a schema, and no implementation */
    const char *domain; /**< "" is ai.onnx; texts live during the visit only */
    const char *name;
} dq_operator_info;

#define DQ_OPERATOR_INFO_INIT                                                                                \
    {                                                                                                        \
        sizeof(dq_operator_info), 0, false, false, NULL, NULL                                                \
    }

/** Calls `visit` for each operator version of the set (NULL: the library's own), by domain, name and
 * version. A non-zero return of `visit` ends the walk. */
DQ_API dq_status dq_schemas_list(dq_schemas *schemas, int (*visit)(void *arg, const dq_operator_info *info),
                                 void *arg, dq_error *err);
/** Text of the type constraints of that operator version, e.g. "T1: float, float16; T2: uint8", into
 * `buffer` of `size` bytes: always terminated, cut when it is longer. Returns the whole text's length
 * without the zero; 0 for an operator version that is not in the set. */
DQ_API size_t dq_schemas_types(dq_schemas *schemas, const dq_operator_info *info, char *buffer, size_t size);

/* ---- Models ------------------------------------------------------------------------------------------ */

typedef struct dq_model dq_model;

typedef struct dq_load_options {
    size_t size;             /**< sizeof(dq_load_options), set by DQ_LOAD_OPTIONS_INIT */
    dq_schemas *schemas;     /**< NULL: the library's own */
    const dq_limits *limits; /**< read during the call; NULL: the defaults */
    /** Folder of external data for models that dq_model_load does not load; NULL: they may have none. */
    const char *base_dir;
    const dq_allocator *allocator; /**< of the model's memory, copied; NULL: malloc */
    /** Gives the external data that the model names: sets *bytes and *size to the whole contents of the file
     * at `location`, the text in the model. Called once for each location, by the thread that loads. The
     * bytes must stay as they are until they are released. When set, no file of external data is opened, and
     * what `location` may look like is up to the callback. A status other than DQ_OK ends loading with it.
     * NULL: files inside base_dir, or the model's folder. */
    dq_status (*external_data)(void *arg, const char *location, const void **bytes, size_t *size);
    /** Called once for each location whose bytes were given, when the model is freed with its last session,
     * or when loading fails. `size` is the size that was given. May be NULL. */
    void (*release_external_data)(void *arg, const char *location, const void *bytes, size_t size);
    void *external_data_arg; /**< passed to both; lives as long as the model */
} dq_load_options;

#define DQ_LOAD_OPTIONS_INIT                                                                                 \
    {                                                                                                        \
        sizeof(dq_load_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL                                    \
    }

/** Loads a .onnx file: parses it, resolves external data inside the model's folder, checks every node
 * against its schema. A node that cannot run does not make this fail: dq_model_check lists all of them,
 * and a session is refused. options may be NULL. Free with dq_model_free.
 *
 * The model file and external data of more than 1 MiB each stay mapped, and must not be written to while
 * the model lives: what a run gives is undefined then, and a file that is cut off raises SIGBUS in the thread
 * that reads past its end. Replacing the file by another of its name (rename) changes nothing. Smaller files
 * are read: they may be changed as soon as the call has returned, and one that is cut off during the call is
 * DQ_BAD_MODEL. For large files that may be cut off there is dq_model_load_memory. */
DQ_API dq_status dq_model_load(const char *path, const dq_load_options *options, dq_model **out,
                               dq_error *err);
/** The same from memory, which must stay as it is until the model is freed, with its last session. `name`
 * stands for the path in sentences. */
DQ_API dq_status dq_model_load_memory(const void *bytes, size_t size, const char *name,
                                      const dq_load_options *options, dq_model **out, dq_error *err);
/** The same from an open descriptor, which stays the caller's and may be closed after the call. A regular
 * file is read or mapped from its beginning, wherever the descriptor's offset is; the offset does not move. A
 * pipe, socket or device is read to its end, waiting for data where the descriptor does not block; it may not
 * have more than dq_limits.file_bytes bytes (DQ_OUT_OF_MEMORY). DQ_BAD_MODEL: it cannot be read. External
 * data is looked for in options.base_dir, or comes from options.external_data. */
DQ_API dq_status dq_model_load_fd(int fd, const char *name, const dq_load_options *options, dq_model **out,
                                  dq_error *err);

/** Reads up to `size` bytes into `buffer`. Returns their number, 0 at the end, a negative number on an error.
 */
typedef ptrdiff_t (*dq_read_fn)(void *arg, void *buffer, size_t size);
/** The same from all bytes that `read` returns until its end, which the model keeps. `read` is called by the
 * thread that loads, and with `arg`. A negative return ends loading with DQ_BAD_MODEL, more than `size` with
 * DQ_INVALID_ARGUMENT. */
DQ_API dq_status dq_model_load_read(dq_read_fn read, void *arg, const char *name,
                                    const dq_load_options *options, dq_model **out, dq_error *err);
/** Gives the caller's handle back. The model itself is freed with its last session. */
DQ_API void dq_model_free(dq_model *model);

/** What a graph input or output declares. Pointers live as long as the model. */
typedef struct dq_value_info {
    size_t size; /**< sizeof(dq_value_info), set by DQ_VALUE_INFO_INIT */
    const char *name;
    const char *type;    /**< "tensor(float)", "seq(tensor(float))"… as ONNX writes it */
    dq_kind kind;        /**< unless DQ_KIND_TENSOR, dtype, has_shape, rank, dims and dim_names say nothing */
    dq_kind item_kind;   /**< what an optional holds */
    dq_dtype item_dtype; /**< of the tensors inside a sequence or optional */
    dq_dtype dtype;      /**< DQ_UNDEFINED when not declared */
    bool has_shape;      /**< false: any rank */
    bool optional;       /**< an input that an initializer gives a default */
    size_t rank;
    const int64_t *dims;          /**< -1 where unknown or symbolic */
    const char *const *dim_names; /**< the symbol, or NULL */
} dq_value_info;

#define DQ_VALUE_INFO_INIT                                                                                   \
    {                                                                                                        \
        sizeof(dq_value_info), NULL, NULL, DQ_KIND_TENSOR, DQ_KIND_TENSOR, DQ_UNDEFINED, DQ_UNDEFINED,       \
            false, false, 0, NULL, NULL                                                                      \
    }

/** Inputs that the caller feeds; initializers that are also inputs come after the others.
 * DQ_INVALID_ARGUMENT past the last. `info` is initialized with DQ_VALUE_INFO_INIT. */
DQ_API size_t dq_model_input_count(const dq_model *model);
DQ_API dq_status dq_model_input(const dq_model *model, size_t i, dq_value_info *info, dq_error *err);
DQ_API size_t dq_model_output_count(const dq_model *model);
DQ_API dq_status dq_model_output(const dq_model *model, size_t i, dq_value_info *info, dq_error *err);

/** Calls `report` for each node that cannot run, with the status and sentence; DQ_OK when there is none,
 * else the gravest status, and in err the first sentence with it. `report` may be NULL, and its `why`
 * lives during the call only. Functions are looked into; subgraphs too. */
DQ_API dq_status dq_model_check(const dq_model *model, void (*report)(void *arg, const dq_error *why),
                                void *arg, dq_error *err);

/** Writes the model as a .onnx file, whole or not at all, behind a link where path is one: what was loaded or
 * built, with model-local functions inlined, attributes that were left out written with their defaults, and
 * all tensors inside the file. Refused over protobuf's 2 GiB. DQ_IO: the file could not be written. */
DQ_API dq_status dq_model_save(const dq_model *model, const char *path, dq_error *err);
/** The same bytes in memory, *bytes and their number *size. The caller frees them with dq_free. */
DQ_API dq_status dq_model_save_memory(const dq_model *model, void **bytes, size_t *size, dq_error *err);
/** Takes the next `size` bytes (1 or more). Returns 0, or another number on an error. */
typedef int (*dq_write_fn)(void *arg, const void *bytes, size_t size);
/** The same bytes in pieces, in their order: passed to `write`, with `arg`, during the call. Once `write` has
 * returned another number than 0 it is not called again, and the call returns DQ_IO. */
DQ_API dq_status dq_model_save_write(const dq_model *model, dq_write_fn write, void *arg, dq_error *err);

/** Frees memory that a call has allocated for the caller, where its description says so. NULL is ignored. */
DQ_API void dq_free(void *memory);

/* ---- Models from code -------------------------------------------------------------------------------- */

/** Builds a model without a file:
 *
 *     dq_builder *b = NULL;
 *     const char *y = NULL; // a generated name
 *     dq_builder_create("half", &b, &err);
 *     dq_builder_opset(b, "", 21, &err);
 *     dq_builder_input(b, "x", DQ_FLOAT, 2, (int64_t[]){-1, 4}, (const char *[]){"N", NULL}, &err);
 *     dq_builder_initializer(b, "scale", scale, &err);
 *     const char *ins[] = {"x", "scale"};
 *     dq_builder_node(b, "", "QuantizeLinear", NULL, 2, ins, 1, &y, 0, NULL, &err);
 *     dq_builder_output(b, y, DQ_UINT8, 2, (int64_t[]){-1, 4}, (const char *[]){"N", NULL}, &err);
 *     dq_builder_finish(b, NULL, &model, &err);
 *
 * Order does not matter: names are tied together by dq_builder_finish. Everything given is copied. After a
 * call that failed, the builder can only be freed. */
typedef struct dq_builder dq_builder;

/** `name` is the graph's, and stands for the path in sentences. dq_builder_finish frees the builder, else
 * dq_builder_free does. */
DQ_API dq_status dq_builder_create(const char *name, dq_builder **out, dq_error *err);
DQ_API void dq_builder_free(dq_builder *builder);
/** Imports a version of a domain ("" is ai.onnx). Before the domain's first node. */
DQ_API dq_status dq_builder_opset(dq_builder *builder, const char *domain, int version, dq_error *err);

/** In place of a rank: nothing is said of the shape. */
#define DQ_ANY_SHAPE SIZE_MAX
/** Dimensions of -1 are unknown; dim_names (or NULL) may name them. */
DQ_API dq_status dq_builder_input(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                                  const int64_t *dims, const char *const *dim_names, dq_error *err);
/** dtype may be DQ_UNDEFINED: nothing is declared. ONNX's own checker wants a type and a shape. */
DQ_API dq_status dq_builder_output(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                                   const int64_t *dims, const char *const *dim_names, dq_error *err);
/** Declares the type of a value inside the graph. */
DQ_API dq_status dq_builder_value(dq_builder *builder, const char *name, dq_dtype dtype, size_t rank,
                                  const int64_t *dims, const char *const *dim_names, dq_error *err);
/** A constant; of the name of an input: its default. */
DQ_API dq_status dq_builder_initializer(dq_builder *builder, const char *name, const dq_tensor *tensor,
                                        dq_error *err);

/** Numbered as ONNX's AttributeProto.AttributeType. */
typedef enum dq_attribute_kind {
    DQ_ATTRIBUTE_UNDEFINED = 0,
    DQ_ATTRIBUTE_FLOAT = 1,
    DQ_ATTRIBUTE_INT = 2,
    DQ_ATTRIBUTE_STRING = 3,
    DQ_ATTRIBUTE_TENSOR = 4,
    DQ_ATTRIBUTE_FLOATS = 6,
    DQ_ATTRIBUTE_INTS = 7,
    DQ_ATTRIBUTE_STRINGS = 8
} dq_attribute_kind;

/** One attribute: the field of its kind is used, and `count` for the lists. */
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
} dq_attribute;

#define DQ_ATTRIBUTE_INIT                                                                                    \
    {                                                                                                        \
        sizeof(dq_attribute), NULL, DQ_ATTRIBUTE_UNDEFINED, 0, 0, NULL, NULL, NULL, NULL, NULL, 0            \
    }

/** Adds a node. `name` may be NULL: one is generated. ins[i] NULL or "": left out. outs[i] "": not wanted;
 * NULL: a name is generated, and outs[i] set to it, which lives as long as the builder. */
DQ_API dq_status dq_builder_node(dq_builder *builder, const char *domain, const char *op, const char *name,
                                 size_t in_count, const char *const *ins, size_t out_count, const char **outs,
                                 size_t attribute_count, const dq_attribute *attributes, dq_error *err);

/** The model, checked as a loaded one is and with the same sentences. Frees the builder, even if it
 * fails. */
DQ_API dq_status dq_builder_finish(dq_builder *builder, const dq_load_options *options, dq_model **out,
                                   dq_error *err);

/* ---- Thread pools ------------------------------------------------------------------------------------ */

/** Threads that work for any number of sessions (dq_session_options.pool): one session at a time has them,
 * and another that runs meanwhile computes with its caller's thread alone. The threads are started by the
 * first work that is worth sharing. Between runs they sleep. */
typedef struct dq_thread_pool dq_thread_pool;

typedef struct dq_thread_pool_options {
    size_t size; /**< sizeof(dq_thread_pool_options), set by DQ_THREAD_POOL_OPTIONS_INIT */
    /** In all, the caller's among them; 0: the number of physical cores, or of those whose time the process's
     * control group may use. */
    unsigned threads;
    /** Microseconds for which a thread looks for the run's next work before it sleeps: more wastes time of
     * the processor, less wakes threads more often, which takes 5 to 50 us. 0: 50. */
    unsigned spin_us;
} dq_thread_pool_options;

#define DQ_THREAD_POOL_OPTIONS_INIT                                                                          \
    {                                                                                                        \
        sizeof(dq_thread_pool_options), 0, 0                                                                 \
    }

/** options may be NULL. Free with dq_thread_pool_free. */
DQ_API dq_status dq_thread_pool_create(const dq_thread_pool_options *options, dq_thread_pool **out,
                                       dq_error *err);
/** Gives the caller's handle back. The pool itself is freed with its last session. */
DQ_API void dq_thread_pool_free(dq_thread_pool *pool);
/** Its number of threads. */
DQ_API unsigned dq_thread_pool_threads(const dq_thread_pool *pool);

/* ---- Sessions ---------------------------------------------------------------------------------------- */

typedef struct dq_session dq_session;

/** What a session reports of each step it ran (dq_session_options.trace). Lives during the call only. */
typedef struct dq_trace_event {
    size_t size;      /**< the library's sizeof(dq_trace_event) */
    const char *node; /**< node name, or the name of its first output */
    const char *op;   /**< "QLinearConv-10" */
    double seconds;   /**< wall time of the step */
    size_t output_count;
    const char *const *output_names;
    const dq_tensor *const *outputs; /**< NULL entries: output not wanted */
} dq_trace_event;

typedef struct dq_session_options {
    size_t size; /**< sizeof(dq_session_options), set by DQ_SESSION_OPTIONS_INIT */
    /** 0: the number of physical cores, or of those whose time the process's control group may use. */
    unsigned threads;
    /** "c", "sse41", "avx2"…: the highest level to use; NULL: DQRUN_ISA, else the CPU's best. */
    const char *isa;
    /** Run the graph as written. */
    bool no_fuse;
    /** Let nodes whose attribute accuracy_level is 4 round their activations to 8 bits, block by block, as
     * ONNX Runtime does: com.microsoft's MatMulNBits and QMoE with weights of 4 bits
     * (docs/com-microsoft.md). Faster; otherwise such products have float precision, whatever the node
     * allows. */
    bool honor_accuracy_level;
    /** Called after each step; NULL: none. Batches then run step by step, not a few pictures after the
     * others through many steps, and take longer. */
    void (*trace)(void *arg, const dq_trace_event *event);
    /** Called with each of the planner's decisions, a sentence that lives during the call; NULL: none. */
    void (*why)(void *arg, const char *sentence);
    /** Handed to trace and why, which are called by the thread that runs the session. */
    void *arg;
    /** The threads to use, which the session keeps alive; `threads` is not looked at then. NULL: a pool of
     * its own. */
    dq_thread_pool *pool;
} dq_session_options;

#define DQ_SESSION_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        sizeof(dq_session_options), 0, NULL, false, false, NULL, NULL, NULL, NULL                            \
    }

/** A session, which keeps the model alive. DQ_UNSUPPORTED, DQ_BAD_MODEL: the model has nodes that cannot
 * run. Free with dq_session_free. options may be NULL.
 *
 * Where the processor has AMX and the session is not told to use a lower level, Linux is asked for the
 * tile registers: from then on a signal stack of this process (sigaltstack) needs room for them,
 * sysconf(_SC_MINSIGSTKSZ). If one is in use that has not, the session does without. */
DQ_API dq_status dq_session_create(dq_model *model, const dq_session_options *options, dq_session **out,
                                   dq_error *err);
DQ_API void dq_session_free(dq_session *session);

/** Sets an input for the runs to come; NULL takes it back. The tensor, sequence or optional is not copied:
 * it must live, unchanged, while runs use it and their outputs are read, as an output may lie in its
 * memory. Its type and shape are checked against the model's declaration here. DQ_BAD_INPUT: they differ,
 * or there is no such input. */
DQ_API dq_status dq_session_set_input(dq_session *session, const char *name, const dq_tensor *tensor,
                                      dq_error *err);
/** Has the runs to come write an output to the caller's tensor, which must live as long; tensor NULL: takes
 * it back. name NULL: the graph's first output. The tensor's type is checked against the model's
 * declaration here (DQ_BAD_INPUT), type and shape against the output itself in each run, before it
 * computes anything where the shape is known by then. Tensors of strings, sequences and optionals are
 * refused.
 *
 * What a run leaves in such tensors is what it would be if all outputs were computed apart and copied
 * there in the end. Two of them may not overlap: the run is refused. One may overlap inputs, which then
 * hold the output after the run. A run that fails may leave anything in them.
 *
 * Where it makes no difference, the output is computed right there and nothing is copied. So are states
 * that are updated in place, outputs in the memory of the inputs that they come from: of operators element
 * by element (Add, …), ScatterND, ScatterElements, TensorScatter, and of com.microsoft's LinearAttention,
 * CausalConvWithState, and attention with one buffer for past and present, as long as the longest sequence
 * is to be: GroupQueryAttention, MultiHeadAttention with past_sequence_length, Attention with
 * past_present_share_buffer. So a model that keeps keys and values in such buffers generates tokens:
 *
 *     // once, for the keys and the values of each layer: a tensor of 1 x heads x longest sequence x size
 *     dq_session_set_input(session, "past.0.key", cache, &err);
 *     dq_session_set_output(session, "present.0.key", cache, &err);
 *     // for each token: what else there is, with a mask over all tokens so far
 *     dq_session_set_input(session, "input_ids", token, &err);
 *     dq_session_set_input(session, "attention_mask", ones, &err);
 *     dq_session_run(session, &err); // adds a row to each cache
 *     dq_session_get_output(session, "logits", &logits, &err);
 *
 * Where present is always longer than past, two buffers for each take turns: one run's output, wrapped by
 * dq_tensor_wrap in the shape that it is going to have, is the next run's input. */
DQ_API dq_status dq_session_set_output(dq_session *session, const char *name, dq_tensor *tensor,
                                       dq_error *err);
/** Runs the graph. The first run of a set of input shapes plans and allocates; later ones do not, as long
 * as the set is one of the last four. DQ_BAD_INPUT: an input is missing or does not fit. DQ_BAD_MODEL: a
 * node does not fit the shapes or values that it got. A run that failed leaves the session as it was,
 * without outputs. */
DQ_API dq_status dq_session_run(dq_session *session, dq_error *err);
/** Ends the session's run, planning included, with DQ_CANCELLED, as soon as what the threads are at is done:
 * a piece of a large operator, or a small one. Any thread and any signal handler may call it, as often as it
 * likes, while the session lives: it is async-signal-safe, one atomic store.
 *
 * The request lasts until a run has ended with DQ_CANCELLED: one that comes while nothing runs, or too late
 * for the run that it was meant for, ends the next run at once. After that the session can be used as
 * before. */
DQ_API void dq_session_cancel(dq_session *session);
/** An output of the last run; NULL: the graph's first. It belongs to the session and lives until the
 * session runs again, gets another output by dq_session_add_output, or is freed; that of an output with a
 * tensor of the caller's may be over the caller's memory. */
DQ_API dq_status dq_session_get_output(dq_session *session, const char *name, const dq_tensor **out,
                                       dq_error *err);
/** Makes a value inside the graph an output of this session too; best before the first run, as it is
 * planned anew. Such a value is computed as the graph is written, so fusion stops there. */
DQ_API dq_status dq_session_add_output(dq_session *session, const char *name, dq_error *err);

/** The ISA level in use ("avx512vnni"), and the number of threads. */
DQ_API const char *dq_session_isa(const dq_session *session);
DQ_API unsigned dq_session_threads(const dq_session *session);
/** Name of ISA level i, lowest first, of those that this build knows for the CPU's family, and whether this
 * CPU has it (`available` may be NULL). NULL past the last. */
DQ_API const char *dq_isa_name(size_t i, bool *available);

#ifdef __cplusplus
}
#endif
#endif
