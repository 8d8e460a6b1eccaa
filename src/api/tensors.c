/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fpenv.h"
#include "base/pages.h"
#include "tensor/items.h"
#include "tensor/owned.h"

#include <stdlib.h>
#include <string.h>

dq_status dq_tensor_create(dq_dtype dtype, size_t rank, const int64_t *dims, dq_tensor **out, dq_error *err)
{
    DQ_NOT_NULL(out);
    if (rank)
        DQ_NOT_NULL(dims);
    if (!dq_dtype_valid((int64_t)dtype))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_tensor_create: %d is no element type", (int)dtype);
    dq_tensor *t = calloc(1, sizeof *t);
    if (!t)
        return dq_no_memory(err, sizeof *t, "a tensor");
    dq_status status = dq_tensor_set_shape(t, dtype, rank, dims, 0, DQ_INVALID_ARGUMENT, err);
    if (status != DQ_OK) {
        dq_error_prefix(err, "dq_tensor_create: the tensor ");
    } else {
        t->owned = true;
        t->data = dq_pages_alloc(t->size);
        if (t->data)
            memset(t->data, 0, t->size);
        else
            status = dq_no_memory(err, t->size, "a tensor");
    }
    if (status != DQ_OK)
        free(t);
    else
        *out = t;
    return status;
}

/* `function` is the calling public function. */
static dq_status wrap(const char *function, const dq_tensor *like, size_t rank, const int64_t *dims,
                      size_t size, dq_tensor **out, dq_error *err)
{
    static char nothing;
    const dq_dtype dtype = like->dtype;
    const char *missing = !out ? "out" : rank && !dims ? "dims" : size && !like->data ? "data" : NULL;
    if (missing)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: %s is NULL", function, missing);
    if (!dq_dtype_valid((int64_t)dtype) || dtype == DQ_STRING)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: tensors of %s cannot be wrapped", function,
                       dq_dtype_valid((int64_t)dtype) ? dq_dtype_name(dtype) : "an unknown type");
    dq_tensor t = *like;
    dq_status status = dq_tensor_set_shape(&t, dtype, rank, dims, 0, DQ_INVALID_ARGUMENT, err);
    if (status != DQ_OK) {
        dq_error_prefix(err, "%s: the tensor ", function);
        return status;
    }
    if (t.size != size)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: size is %zu bytes, expected %zu", function, size,
                       t.size);
    size_t align = dq_dtype_get(dtype)->align;
    if ((uintptr_t)t.data % align)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: data is not aligned to %zu bytes", function, align);
    if (!t.data)
        t.data = &nothing;
    *out = malloc(sizeof **out);
    if (!*out)
        return dq_no_memory(err, sizeof **out, "a tensor");
    **out = t;
    return DQ_OK;
}

dq_status dq_tensor_wrap(dq_dtype dtype, size_t rank, const int64_t *dims, void *data, size_t size,
                         dq_tensor **out, dq_error *err)
{
    return wrap(__func__, &(dq_tensor){.dtype = dtype, .data = data}, rank, dims, size, out, err);
}

dq_status dq_tensor_wrap_const(dq_dtype dtype, size_t rank, const int64_t *dims, const void *data,
                               size_t size, dq_tensor **out, dq_error *err)
{
    const dq_tensor like = {.dtype = dtype, .data = (void *)(uintptr_t)data, .is_const = true};
    return wrap(__func__, &like, rank, dims, size, out, err);
}

void dq_tensor_free(dq_tensor *tensor)
{
    dq_tensor_free_owned(tensor);
}

dq_dtype dq_tensor_dtype(const dq_tensor *tensor)
{
    return tensor->dtype;
}

size_t dq_tensor_rank(const dq_tensor *tensor)
{
    return tensor->rank;
}

const int64_t *dq_tensor_dims(const dq_tensor *tensor)
{
    return tensor->dims;
}

size_t dq_tensor_count(const dq_tensor *tensor)
{
    return tensor->count;
}

size_t dq_tensor_size(const dq_tensor *tensor)
{
    return tensor->dtype == DQ_STRING || tensor->kind != DQ_KIND_TENSOR ? 0 : tensor->size;
}

const void *dq_tensor_data(const dq_tensor *tensor)
{
    return tensor->dtype == DQ_STRING || tensor->kind != DQ_KIND_TENSOR ? NULL : tensor->data;
}

void *dq_tensor_mutable_data(dq_tensor *tensor)
{
    const bool writable = tensor->kind == DQ_KIND_TENSOR && tensor->dtype != DQ_STRING && !tensor->is_const;
    return writable ? tensor->data : NULL;
}

const char *dq_tensor_string(const dq_tensor *tensor, size_t i, size_t *length)
{
    static const char empty[] = "";
    if (tensor->kind != DQ_KIND_TENSOR || tensor->dtype != DQ_STRING || i >= tensor->count) {
        if (length)
            *length = 0;
        return NULL;
    }
    const dq_string *s = &dq_data(tensor, dq_string)[i];
    if (length)
        *length = s->length;
    return s->bytes ? s->bytes : empty;
}

dq_status dq_tensor_set_string(dq_tensor *tensor, size_t i, const char *bytes, size_t length, dq_error *err)
{
    char got[DQ_KIND_TEXT];
    DQ_NOT_NULL(tensor);
    if (length)
        DQ_NOT_NULL(bytes);
    if (tensor->kind != DQ_KIND_TENSOR || tensor->dtype != DQ_STRING || !tensor->owned)
        return dq_fail(
            err, DQ_INVALID_ARGUMENT,
            "dq_tensor_set_string: tensor is %s, expected a tensor(string) made by dq_tensor_create",
            dq_tensor_kind_text(tensor, got));
    if (i >= tensor->count)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_tensor_set_string: i is %zu, expected less than %zu", i,
                       tensor->count);
    return dq_tensor_put_string(tensor, i, bytes, length, err);
}

/* Element i of numbers whose data may be unaligned. */
static double value_at(const dq_tensor *t, size_t i)
{
    const size_t bytes = dq_dtype_get(t->dtype)->bits / 8;
    max_align_t aligned;
    if (!t->unaligned || bytes == 0 || bytes > sizeof aligned)
        return dq_tensor_get_double(t, i);
    dq_tensor one = *t;
    memcpy(&aligned, (const char *)t->data + i * bytes, bytes);
    one.data = &aligned;
    one.count = 1;
    return dq_tensor_get_double(&one, 0);
}

double dq_tensor_value(const dq_tensor *tensor, size_t i)
{
    const dq_fpenv callers = dq_fpenv_enter(); /* DAZ of the caller would make denormals zero. */
    const bool there = tensor->kind == DQ_KIND_TENSOR && i < tensor->count;
    const double value = there ? value_at(tensor, i) : dq_tensor_get_double(&(dq_tensor){0}, 0);
    dq_fpenv_leave(callers);
    return value;
}

/* ---- Sequences and optionals -------------------------------------------------------------------------- */

dq_kind dq_tensor_kind(const dq_tensor *tensor)
{
    return tensor->kind;
}

const dq_tensor *dq_tensor_item(const dq_tensor *tensor, size_t i)
{
    return tensor->kind != DQ_KIND_TENSOR && i < tensor->count ? dq_item(tensor, i) : NULL;
}

dq_status dq_sequence_create(dq_dtype dtype, size_t count, dq_tensor *const *items, dq_tensor **out,
                             dq_error *err)
{
    DQ_NOT_NULL(out);
    if (count)
        DQ_NOT_NULL(items);
    if (!dq_dtype_valid((int64_t)dtype))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_sequence_create: %d is no element type", (int)dtype);
    for (size_t i = 0; i < count; i++) {
        char got[DQ_KIND_TEXT];
        if (!items[i] || items[i]->kind != DQ_KIND_TENSOR || items[i]->dtype != dtype)
            return dq_fail(err, DQ_INVALID_ARGUMENT,
                           "dq_sequence_create: item %zu is %s, expected tensor(%s)", i,
                           items[i] ? dq_tensor_kind_text(items[i], got) : "NULL", dq_dtype_name(dtype));
    }
    dq_tensor like;
    dq_items_describe(&like, DQ_KIND_SEQUENCE, DQ_KIND_TENSOR, dtype);
    return dq_tensor_new_list(NULL, &like, count, items, out, err);
}

dq_status dq_optional_create(dq_kind kind, dq_dtype dtype, dq_tensor *item, dq_tensor **out, dq_error *err)
{
    char got[DQ_KIND_TEXT];
    DQ_NOT_NULL(out);
    if (!dq_dtype_valid((int64_t)dtype) || (kind != DQ_KIND_TENSOR && kind != DQ_KIND_SEQUENCE))
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "dq_optional_create: expected a tensor or sequence of an element type");
    if (item && (item->kind != kind || item->dtype != dtype))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_optional_create: the item is %s, expected a %s of %s",
                       dq_tensor_kind_text(item, got), kind == DQ_KIND_TENSOR ? "tensor" : "sequence",
                       dq_dtype_name(dtype));
    dq_tensor like;
    dq_items_describe(&like, DQ_KIND_OPTIONAL, kind, dtype);
    return dq_tensor_new_list(NULL, &like, item ? 1 : 0, &item, out, err);
}
