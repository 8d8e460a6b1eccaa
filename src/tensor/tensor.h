/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors inside the library: a view over memory that somebody owns. Dense, row-major. The same struct is a
 * sequence or an optional (tensor/items.h). */
#ifndef DQ_TENSOR_TENSOR_H
#define DQ_TENSOR_TENSOR_H

#include "base/arena.h"
#include "tensor/dtype.h"

/** Element of a string tensor. The bytes belong to whoever owns the tensor (or to an arena that it names). */
typedef struct dq_string {
    const char *bytes; /* may be NULL when length is 0 */
    size_t length;
} dq_string;

struct dq_tensor {
    dq_dtype dtype; /* of a sequence or optional: that of its tensors */
    uint32_t rank;
    int64_t dims[DQ_MAX_RANK]; /* all >= 0 once the shape is known */
    size_t count;              /* product of dims */
    size_t size;               /* bytes of data: dq_dtype_size(dtype, count); dq_string array for strings */
    void *data;                /* NULL: not known (while planning) or no memory yet. Never NULL when it holds
                                  elements that may be read, also with count 0. */
    bool mapped;    /* data lies in a mapped file: pages that are not needed for a while may be given back */
    bool unaligned; /* data is not aligned to its type: for memcpy alone. Large initializers in a mapped file,
                   where the planner gives operators something else (ops/op.h) */
    size_t block, repeats; /* times not 0: broadcast view, runs of so many elements stand in data once for all
                          times that they come one after the other: see dq_tensor_gather. Only where the
                          planner knows that all readers take it so (ops/op.h) */
    bool owned; /* data, and the strings or items in it, were allocated for this tensor (owned.h) … */
    const dq_allocator *allocator; /* … by this one, which lives as long; NULL: malloc */
    bool is_const;                 /* the caller's memory, which must not be written (dq_tensor_wrap_const) */
    dq_kind kind;                  /* tensor, sequence or optional */
    dq_kind item_kind;             /* of an optional: tensor or sequence */
};

/** Fills in kind, type, shape, count and size (data untouched), refusing negative dimensions, a rank over
 * DQ_MAX_RANK and a size over `limit` bytes (0: no limit) or over SIZE_MAX. `fault` is the status of a shape
 * that cannot be. */
dq_status dq_tensor_set_shape(dq_tensor *t, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit,
                              dq_status fault, dq_error *err);

/** A tensor in the arena with zeroed data, aligned to 64 bytes. */
dq_status dq_tensor_new(dq_arena *arena, dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit,
                        dq_tensor **out, dq_error *err);

/** Elements that stand in data. */
static inline size_t dq_tensor_stored(const dq_tensor *t)
{
    return t->repeats ? t->count / t->repeats : t->count;
}
/** Where element i of a spread tensor stands. */
static inline size_t dq_tensor_stored_index(const dq_tensor *t, size_t i)
{
    return i / (t->block * t->repeats) * t->block + i % t->block;
}
/** All elements, of `size` bytes each, one after the other, `from` being what stands in data. */
void dq_tensor_gather(const dq_tensor *t, const void *from, size_t size, void *to);

bool dq_tensor_same_shape(const dq_tensor *a, const dq_tensor *b);

/** Whether some byte belongs to the data of both. */
bool dq_tensor_overlap(const dq_tensor *a, const dq_tensor *b);

/** "[3,1,224,224]", "[]" for rank 0, into buffer; returns buffer. Unknown dimensions (-1) print as "?". */
enum { DQ_SHAPE_TEXT = 384 };
const char *dq_shape_text(size_t rank, const int64_t *dims, char buffer[DQ_SHAPE_TEXT]);
/** The same where dim_names (may be NULL) holds the symbol of an unknown dimension, or NULL: "[N,1,8,8]". */
const char *dq_symbols_text(size_t rank, const int64_t *dims, const char *const *dim_names,
                            char buffer[DQ_SHAPE_TEXT]);

/** Where elements of integer type start, by type: dq_data(t, float)[i]. */
#define dq_data(tensor, type) ((type *)(tensor)->data)

/** What the inline functions below do for every type. */
int64_t dq_tensor_any_int(const dq_tensor *t, size_t i);
double dq_tensor_any_double(const dq_tensor *t, size_t i);

/** Element i of any integer or bool type (packed ones too) as int64 (uint64 is reinterpreted). */
static inline int64_t dq_tensor_get_int(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_INT64 ? dq_data(t, int64_t)[i] : dq_tensor_any_int(t, i);
}
/** Stores the low bits of `value` as element i of an integer or bool type. Not atomic for packed types. */
void dq_tensor_put_int(dq_tensor *t, size_t i, int64_t value);

/** Raw bits of element i of any type up to 64 bits, and their store. */
uint64_t dq_get_bits(const void *data, unsigned bits, size_t i);
void dq_put_bits(void *data, unsigned bits, size_t i, uint64_t value);

/** The double nearest to element i: exact for all types but (u)int64 above 2^53 (rounded to even). */
static inline double dq_tensor_get_double(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_FLOAT ? (double)dq_data(t, float)[i] : dq_tensor_any_double(t, i);
}

/** Element i of a float, float16 or bfloat16 tensor. */
float dq_tensor_get_float(const dq_tensor *t, size_t i);

/** Stores a double as element i of a float, integer or bool type: floats rounded to nearest even, once;
 * integers cut toward zero and held within the type's range, NaN as 0. Not atomic for packed types. */
void dq_tensor_put_double(dq_tensor *t, size_t i, double value);

#endif
