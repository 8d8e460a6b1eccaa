/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/dtype.h"

#include "base/checked.h"
#include "tensor/tensor.h"

#include <string.h>

#define INT_ROW(name, bits, align)                                                                           \
    {                                                                                                        \
        name, bits, align, DQ_CLASS_INT, -(INT64_C(1) << (bits - 1)), (INT64_C(1) << (bits - 1)) - 1         \
    }
#define UINT_ROW(name, bits, align)                                                                          \
    {                                                                                                        \
        name, bits, align, DQ_CLASS_UINT, 0, (INT64_C(1) << bits) - 1                                        \
    }
#define FLOAT_ROW(name, bits, align)                                                                         \
    {                                                                                                        \
        name, bits, align, DQ_CLASS_FLOAT, 0, 0                                                              \
    }

const dq_dtype_row dq_dtype_rows[DQ_DTYPE_COUNT] = {
    [DQ_UNDEFINED] = {"undefined", 0, 1, DQ_CLASS_NONE, 0, 0},
    [DQ_FLOAT] = FLOAT_ROW("float", 32, 4),
    [DQ_UINT8] = UINT_ROW("uint8", 8, 1),
    [DQ_INT8] = INT_ROW("int8", 8, 1),
    [DQ_UINT16] = UINT_ROW("uint16", 16, 2),
    [DQ_INT16] = INT_ROW("int16", 16, 2),
    [DQ_INT32] = INT_ROW("int32", 32, 4),
    [DQ_INT64] = {"int64", 64, 8, DQ_CLASS_INT, INT64_MIN, INT64_MAX},
    [DQ_STRING] = {"string", 0, _Alignof(dq_string), DQ_CLASS_STRING, 0, 0},
    [DQ_BOOL] = {"bool", 8, 1, DQ_CLASS_BOOL, 0, 1},
    [DQ_FLOAT16] = FLOAT_ROW("float16", 16, 2),
    [DQ_DOUBLE] = FLOAT_ROW("double", 64, 8),
    [DQ_UINT32] = UINT_ROW("uint32", 32, 4),
    [DQ_UINT64] = {"uint64", 64, 8, DQ_CLASS_UINT, 0, INT64_MAX},
    [DQ_COMPLEX64] = {"complex64", 64, 4, DQ_CLASS_COMPLEX, 0, 0},
    [DQ_COMPLEX128] = {"complex128", 128, 8, DQ_CLASS_COMPLEX, 0, 0},
    [DQ_BFLOAT16] = FLOAT_ROW("bfloat16", 16, 2),
    [DQ_FLOAT8E4M3FN] = FLOAT_ROW("float8e4m3fn", 8, 1),
    [DQ_FLOAT8E4M3FNUZ] = FLOAT_ROW("float8e4m3fnuz", 8, 1),
    [DQ_FLOAT8E5M2] = FLOAT_ROW("float8e5m2", 8, 1),
    [DQ_FLOAT8E5M2FNUZ] = FLOAT_ROW("float8e5m2fnuz", 8, 1),
    [DQ_UINT4] = UINT_ROW("uint4", 4, 1),
    [DQ_INT4] = INT_ROW("int4", 4, 1),
    [DQ_FLOAT4E2M1] = FLOAT_ROW("float4e2m1", 4, 1),
    [DQ_FLOAT8E8M0] = FLOAT_ROW("float8e8m0", 8, 1),
    [DQ_UINT2] = UINT_ROW("uint2", 2, 1),
    [DQ_INT2] = INT_ROW("int2", 2, 1),
    [DQ_FLOAT6E2M3] = FLOAT_ROW("float6e2m3", 6, 1),
    [DQ_FLOAT6E3M2] = FLOAT_ROW("float6e3m2", 6, 1),
};

const char *dq_dtype_name(dq_dtype dtype)
{
    return dq_dtype_get(dtype)->name;
}

unsigned dq_dtype_bits(dq_dtype dtype)
{
    return dq_dtype_get(dtype)->bits;
}

dq_dtype dq_dtype_from_name(const char *name)
{
    for (int dtype = DQ_UNDEFINED + 1; name && dtype < DQ_DTYPE_COUNT; dtype++)
        if (strcmp(dq_dtype_rows[dtype].name, name) == 0)
            return (dq_dtype)dtype;
    return DQ_UNDEFINED;
}

bool dq_dtype_size(dq_dtype dtype, size_t count, size_t *size)
{
    if (dtype == DQ_STRING)
        return dq_mul_size(count, sizeof(dq_string), size);
    size_t bits = dq_dtype_get(dtype)->bits;
    if (bits >= 8)
        return dq_mul_size(count, bits / 8, size);
    /* Multiplies groups of 8 elements, which fill `bits` whole bytes, so that the number of bits cannot
     * overflow. */
    size_t whole;
    if (!dq_mul_size(count / 8, bits, &whole))
        return false;
    return dq_add_size(whole, (count % 8 * bits + 7) / 8, size);
}
