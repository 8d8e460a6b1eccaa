/* SPDX-License-Identifier: Apache-2.0 */
#include "api/structs.h"

#include <string.h>

#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

static const struct {
    const char *type, *initializer;
    size_t size, first_size;
} structs[DQ_STRUCT_COUNT] = {
#define ROW(middle, type, last) {#type, "DQ_" #middle "_INIT", sizeof(type), END_OF(type, last)},
    DQ_PUBLIC_STRUCTS(ROW)
#undef ROW
};

static dq_status check_size(dq_struct which, const char *where, size_t size, dq_error *err)
{
    if (size >= structs[which].first_size)
        return DQ_OK;
    return dq_fail(err, DQ_INVALID_ARGUMENT, "%s.size is %zu, expected at least %zu; initialize with %s",
                   where, size, structs[which].first_size, structs[which].initializer);
}

dq_status dq_read_struct(dq_struct which, const char *where, const void *caller, void *own, dq_error *err)
{
    const size_t own_size = structs[which].size;
    size_t size = own_size;
    memset(own, 0, own_size);
    if (caller) {
        memcpy(&size, caller, sizeof size);
        DQ_TRY(check_size(which, where, size, err));
        for (size_t i = own_size; i < size; i++)
            if (((const char *)caller)[i])
                return dq_fail(err, DQ_UNSUPPORTED,
                               "%s.size is %zu, and byte %zu is set; this library's %s has %zu bytes, the "
                               "rest must be 0",
                               where, size, i, structs[which].type, own_size);
        memcpy(own, caller, size < own_size ? size : own_size);
    }
    memcpy(own, &own_size, sizeof own_size);
    return DQ_OK;
}

dq_status dq_write_struct(dq_struct which, const char *where, const void *own, void *to, dq_error *err)
{
    size_t size, own_size = structs[which].size;
    if (!to)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s is NULL", where);
    memcpy(&size, to, sizeof size);
    DQ_TRY(check_size(which, where, size, err));
    if (size < own_size)
        own_size = size;
    memcpy((char *)to + sizeof size, (const char *)own + sizeof size, own_size - sizeof size);
    return DQ_OK;
}
