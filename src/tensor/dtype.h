/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: one table row each. */
#ifndef DQ_TENSOR_DTYPE_H
#define DQ_TENSOR_DTYPE_H

#include "base/error.h"

typedef enum dq_class {
    DQ_CLASS_NONE,
    DQ_CLASS_INT,
    DQ_CLASS_UINT,
    DQ_CLASS_FLOAT,
    DQ_CLASS_COMPLEX,
    DQ_CLASS_BOOL,
    DQ_CLASS_STRING
} dq_class;

typedef struct dq_dtype_row {
    const char *name; /* as in tensor(…) */
    uint8_t bits;     /* of an element; 0 for strings */
    uint8_t align;    /* of an array of them, bytes */
    uint8_t cls;      /* dq_class */
    int64_t min, max; /* of integer types up to 63 bits (uint64: max is INT64_MAX) */
} dq_dtype_row;

extern const dq_dtype_row dq_dtype_rows[DQ_DTYPE_COUNT];

static inline bool dq_dtype_valid(int64_t dtype)
{
    return dtype > DQ_UNDEFINED && dtype < DQ_DTYPE_COUNT;
}
/** The row of a type; that of DQ_UNDEFINED for a number that is none. */
static inline const dq_dtype_row *dq_dtype_get(dq_dtype dtype)
{
    return &dq_dtype_rows[dq_dtype_valid((int64_t)dtype) ? dtype : DQ_UNDEFINED];
}
static inline bool dq_dtype_is_int(dq_dtype dtype) /* signed or unsigned, not bool */
{
    unsigned cls = dq_dtype_get(dtype)->cls;
    return cls == DQ_CLASS_INT || cls == DQ_CLASS_UINT;
}
static inline bool dq_dtype_is_float(dq_dtype dtype)
{
    return dq_dtype_get(dtype)->cls == DQ_CLASS_FLOAT;
}
static inline bool dq_dtype_is_packed(dq_dtype dtype) /* several elements a byte */
{
    unsigned bits = dq_dtype_get(dtype)->bits;
    return bits != 0 && bits < 8;
}

/** Bytes of `count` elements, packed types rounded up to a byte; strings: of the dq_string array. False when
 * it does not fit in a size_t. */
bool dq_dtype_size(dq_dtype dtype, size_t count, size_t *size);

#endif
