/* SPDX-License-Identifier: Apache-2.0 */
/* Reads SequenceProto and OptionalProto from the wire format, because the distribution's onnx.proto does not
 * describe them. Both have the name in field 1 and the kind of their items in 2. A sequence has its tensors
 * in 3; an optional has a tensor in 3 or a sequence in 5. */
#include "pb.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD_NAME = 1, FIELD_TENSOR = 3, FIELD_SEQUENCE = 5, FIELD_MAP = 6 };

/* The items of a list read so far. */
typedef struct list {
    uint64_t limit; /* Remaining bytes for its tensors. */
    char *name;     /* NULL: none yet. */
    dq_tensor **items;
    size_t count;
} list;

static void clear(list *l)
{
    for (size_t i = 0; i < l->count; i++)
        dq_tensor_free(l->items[i]);
    free(l->items);
    free(l->name);
    *l = (list){0};
}

static dq_status no_memory(dq_error *err)
{
    return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
}

static dq_status take_name(list *l, wire_view text, dq_error *err)
{
    free(l->name);
    l->name = malloc(text.size + 1);
    if (!l->name)
        return no_memory(err);
    if (text.size)
        memcpy(l->name, text.data, text.size);
    l->name[text.size] = '\0';
    return DQ_OK;
}

static dq_status take_item(list *l, dq_tensor *item, dq_error *err)
{
    dq_tensor **grown = realloc(l->items, (l->count + 1) * sizeof(dq_tensor *));
    if (!grown) {
        dq_tensor_free(item);
        return no_memory(err);
    }
    l->items = grown;
    l->items[l->count++] = item;
    return DQ_OK;
}

static dq_status take_tensor(list *l, wire_view bytes, dq_error *err)
{
    char *name = NULL, where[40];
    dq_tensor *t = NULL;
    dq_status status = pb_read(bytes.data, bytes.size, l->limit, &name, &t, err);
    free(name);
    if (status != DQ_OK) {
        snprintf(where, sizeof where, "tensor %zu", l->count);
        return io_prefix(err, status, where);
    }
    size_t size = dq_tensor_size(t);
    l->limit -= size < l->limit ? size : l->limit;
    return take_item(l, t, err);
}

static dq_status read_sequence(wire_view in, dq_dtype dtype, uint64_t limit, char **name, dq_tensor **out,
                               dq_error *err)
{
    list l = {.limit = limit};
    dq_status status = DQ_OK;
    while (status == DQ_OK && in.size) {
        wire_field f;
        if (!wire_next(&in, &f))
            status = io_fail(err, DQ_BAD_INPUT, "is no SequenceProto: it cannot be parsed as one");
        else if (f.number == FIELD_NAME)
            status = take_name(&l, f.bytes, err);
        else if (f.number == FIELD_TENSOR)
            status = take_tensor(&l, f.bytes, err);
        else if (f.number > FIELD_TENSOR && f.number <= FIELD_MAP + 1)
            status = io_fail(err, DQ_UNSUPPORTED, "is a sequence of something else than tensors");
    }
    if (status == DQ_OK && !dtype)
        dtype = l.count ? dq_tensor_dtype(l.items[0]) : DQ_FLOAT;
    if (status == DQ_OK && !l.name)
        status = take_name(&l, (wire_view){NULL, 0}, err);
    if (status == DQ_OK) {
        status = dq_sequence_create(dtype, l.count, l.items, out, err);
        if (status ==
            DQ_INVALID_ARGUMENT) /* Tensors of several types: an error of the file, not of the caller. */
            status = io_fail(err, DQ_BAD_INPUT, "holds tensors that are not all of %s", dq_dtype_name(dtype));
    }
    if (status == DQ_OK) {
        *name = l.name;
        l.name = NULL;
        l.count = 0; /* The sequence owns them. */
    }
    clear(&l);
    return status;
}

static dq_status take_sequence(list *l, wire_view bytes, dq_dtype dtype, dq_error *err)
{
    char *name = NULL;
    dq_tensor *t = NULL;
    dq_status status = read_sequence(bytes, dtype, l->limit, &name, &t, err);
    free(name);
    return status == DQ_OK ? take_item(l, t, err) : status;
}

static dq_status read_optional(wire_view in, const dq_value_info *declared, uint64_t limit, char **name,
                               dq_tensor **out, dq_error *err)
{
    list l = {.limit = limit};
    dq_status status = DQ_OK;
    while (status == DQ_OK && in.size) {
        wire_field f;
        if (!wire_next(&in, &f))
            status = io_fail(err, DQ_BAD_INPUT, "is no OptionalProto: it cannot be parsed as one");
        else if (f.number == FIELD_NAME)
            status = take_name(&l, f.bytes, err);
        else if (f.number == FIELD_TENSOR)
            status = take_tensor(&l, f.bytes, err);
        else if (f.number == FIELD_SEQUENCE)
            status = take_sequence(&l, f.bytes, declared->item_dtype, err);
        else if (f.number > FIELD_TENSOR && f.number <= FIELD_MAP + 1)
            status = io_fail(err, DQ_UNSUPPORTED, "is an optional of neither a tensor nor a sequence");
    }
    if (status == DQ_OK && l.count > 1)
        status = io_fail(err, DQ_BAD_INPUT, "holds %zu values, expected one or none", l.count);
    if (status == DQ_OK && !l.name)
        status = take_name(&l, (wire_view){NULL, 0}, err);
    dq_dtype dtype = l.count ? dq_tensor_dtype(l.items[0]) : declared->item_dtype;
    dq_kind kind = l.count ? dq_tensor_kind(l.items[0]) : declared->item_kind;
    if (status == DQ_OK)
        status = dq_optional_create(kind, dtype, l.count ? l.items[0] : NULL, out, err);
    if (status == DQ_OK) {
        *name = l.name;
        l.name = NULL;
        l.count = 0;
    }
    clear(&l);
    return status;
}

dq_status pb_read_value(const void *bytes, size_t size, const dq_value_info *declared, uint64_t limit,
                        char **name, dq_tensor **out, dq_error *err)
{
    wire_view all = {bytes, size};
    switch (declared->kind) {
    case DQ_KIND_SEQUENCE:
        return read_sequence(all, declared->item_dtype, limit, name, out, err);
    case DQ_KIND_OPTIONAL:
        return read_optional(all, declared, limit, name, out, err);
    case DQ_KIND_TENSOR:
        return pb_read(bytes, size, limit, name, out, err);
    default:
        return io_fail(err, DQ_UNSUPPORTED, "is read for %s, expected a tensor, sequence or optional",
                       declared->type);
    }
}

dq_status pb_read_value_file(const char *path, const dq_value_info *declared, uint64_t limit, char **name,
                             dq_tensor **out, dq_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    /* A TensorProto is at most ten times as large as its tensor: ten bytes per element of a typed field. */
    dq_status status = io_read_file(path, limit > UINT64_MAX / 10 ? limit : limit * 10, &bytes, &size, err);
    if (status != DQ_OK)
        return status;
    status = pb_read_value(bytes, size, declared, limit, name, out, err);
    free(bytes);
    return status;
}
