/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor struct of the library: a dense row-major view of memory that it need not own. The same struct
 * represents a sequence or an optional (tensor/items.h). */
#ifndef DQ_TENSOR_TENSOR_H
#define DQ_TENSOR_TENSOR_H

#include "base/arena.h"
#include "tensor/dtype.h"

/** Element of a string tensor. The owner of the tensor, or an arena that the tensor names, owns the bytes. */
typedef struct dq_string {
    const char *bytes; /* may be NULL when length is 0 */
    size_t length;
} dq_string;

struct dq_tensor {
    dq_dtype dtype; /* for a sequence or optional: type of the tensors inside */
    uint32_t rank;
    int64_t dims[DQ_MAX_RANK]; /* all >= 0 once the shape is known */
    size_t count;              /* product of dims */
    size_t size; /* bytes of data: dq_dtype_size(dtype, count), for strings of the dq_string array */
    void *data;  /* NULL: not known (while planning), or no memory yet. Never NULL when elements may be read,
                    even if count is 0. */
    bool mapped; /* data is in a memory-mapped file; pages that are not needed for a while may be released */
    bool unaligned;        /* data is not aligned to its element type, so that only memcpy may read it: large
                              initializers of a mapped file. The planner gives most operators an aligned copy
                              (ops/op.h). */
    size_t block, repeats; /* Broadcast view, if times is not 0: data stores each block of `run` elements
                          once, and the tensor repeats each block `times` times (dq_tensor_expand). The
                          planner makes one only where all readers support it (ops/op.h). */
    bool owned; /* data, and the strings or items in it, were allocated for this tensor (owned.h) … */
    const dq_allocator *allocator; /* … by this allocator, which lives as long; NULL: malloc */
    bool is_const;                 /* data is the caller's and read-only (dq_tensor_wrap_const) */
    dq_kind kind;                  /* tensor, sequence or optional */
    dq_kind item_kind;             /* for an optional: tensor or sequence */
};

/** Sets kind, type, shape, count and size, and leaves data as it is. Fails for negative dimensions, a rank
 * over DQ_MAX_RANK, and a size over `limit` bytes (0: no limit) or SIZE_MAX. `fault` is the status of an
 * invalid shape. */
dq_status dq_tensor_set_shape(dq_tensor *t, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit,
                              dq_status fault, dq_error *err);

/** Creates a tensor in the arena with zeroed data, aligned to 64 bytes. */
dq_status dq_tensor_new(dq_arena *arena, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit,
                        dq_tensor **out, dq_error *err);

/** Number of elements stored in data: less than count for a broadcast view. */
static inline size_t dq_tensor_stored(const dq_tensor *t)
{
    return t->repeats ? t->count / t->repeats : t->count;
}
/** Index in data of element i of a broadcast view. */
static inline size_t dq_tensor_stored_index(const dq_tensor *t, size_t i)
{
    return i / (t->block * t->repeats) * t->block + i % t->block;
}
/** Copies all `count` elements, `size` bytes each, to `to`, expanding a broadcast view. `from` holds the
 * stored elements: data, or data converted to another type. */
void dq_tensor_expand(const dq_tensor *t, const void *from, size_t size, void *to);

bool dq_tensor_same_shape(const dq_tensor *a, const dq_tensor *b);

/** Whether the data of a and b overlap in memory. */
bool dq_tensor_overlap(const dq_tensor *a, const dq_tensor *b);

/** Writes a shape, such as "[3,1,224,224]" ("[]" for rank 0), into buffer and returns buffer. Unknown
 * dimensions (-1) print as "?". */
enum { DQ_SHAPE_TEXT = 384 };
const char *dq_shape_text(size_t rank, const int64_t *dims, char buffer[DQ_SHAPE_TEXT]);
/** The same with symbols for unknown dimensions: "[N,1,8,8]". dim_names and each of its entries may be NULL.
 */
const char *dq_symbols_text(size_t rank, const int64_t *dims, const char *const *dim_names,
                            char buffer[DQ_SHAPE_TEXT]);

/** The data as an array of a C type: dq_data(t, float)[i]. */
#define dq_data(tensor, type) ((type *)(tensor)->data)

/** The general cases of dq_tensor_get_int and dq_tensor_get_double. */
int64_t dq_tensor_any_int(const dq_tensor *t, size_t i);
double dq_tensor_any_double(const dq_tensor *t, size_t i);

/** Element i of any integer or bool type (also packed ones) as int64; uint64 is reinterpreted. */
static inline int64_t dq_tensor_get_int(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_INT64 ? dq_data(t, int64_t)[i] : dq_tensor_any_int(t, i);
}
/** Stores the low bits of `value` as element i of an integer or bool type. Not atomic for packed types. */
void dq_tensor_put_int(dq_tensor *t, size_t i, int64_t value);

/** Loads and stores the raw bits of element i of any type up to 64 bits. */
uint64_t dq_get_bits(const void *data, unsigned bits, size_t i);
void dq_put_bits(void *data, unsigned bits, size_t i, uint64_t value);

/** Element i as a double: exact for all types except (u)int64 above 2^53, which are rounded to even. */
static inline double dq_tensor_get_double(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_FLOAT ? (double)dq_data(t, float)[i] : dq_tensor_any_double(t, i);
}

/** Element i of a float, float16 or bfloat16 tensor. */
float dq_tensor_get_float(const dq_tensor *t, size_t i);

/** Stores a double as element i of a float, integer or bool type. Floats are rounded once, to nearest even.
 * Integers are truncated toward zero and saturated to the type's range; NaN gives 0. Not atomic for packed
 * types. */
void dq_tensor_put_double(dq_tensor *t, size_t i, double value);

#endif
