/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the element types, one table row per type. */
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
    const char *name; /* as ONNX writes it in tensor(…) */
    uint8_t bits;     /* bits of an element; 0 for strings */
    uint8_t align;    /* alignment of an array, in bytes */
    uint8_t cls;      /* dq_class */
    int64_t min, max; /* range of integer types (uint64: max is INT64_MAX) and bool; otherwise 0 */
} dq_dtype_row;

extern const dq_dtype_row dq_dtype_rows[DQ_DTYPE_COUNT];

static inline bool dq_dtype_valid(int64_t dtype)
{
    return dtype > DQ_UNDEFINED && dtype < DQ_DTYPE_COUNT;
}
/** The row of a type. Numbers outside the enum give the row of DQ_UNDEFINED. */
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
static inline bool dq_dtype_is_packed(dq_dtype dtype) /* less than 8 bits per element */
{
    unsigned bits = dq_dtype_get(dtype)->bits;
    return bits != 0 && bits < 8;
}

/** Computes the bytes of `count` elements. Packed types are rounded up to whole bytes; strings count as an
 * array of dq_string. Returns false if the size overflows size_t. */
bool dq_dtype_size(dq_dtype dtype, size_t count, size_t *size);

#endif
