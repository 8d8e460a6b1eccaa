/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op.h"

#include "tensor/items.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DQ_OP(domain, op_name, first, last, impl, traits) extern const dq_op_impl impl;
#include "ops/ops.def"
#undef DQ_OP

static const dq_op registry[] = {
#define DQ_OP(op_domain, op_name, op_first, op_last, op_impl, op_traits)                                     \
    {.domain = op_domain,                                                                                    \
     .name = #op_name,                                                                                       \
     .first = op_first,                                                                                      \
     .last = op_last,                                                                                        \
     .impl = &op_impl,                                                                                       \
     .traits = op_traits},
#include "ops/ops.def"
#undef DQ_OP
};
enum { OPS = sizeof registry / sizeof registry[0] };

static bool named(const dq_op *op, const char *domain, const char *name)
{
    return strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0;
}

const dq_op *dq_op_find(const char *domain, const char *name, int since_version)
{
    for (size_t i = 0; i < OPS; i++)
        if (named(&registry[i], domain, name) && registry[i].first <= since_version &&
            since_version <= registry[i].last)
            return &registry[i];
    return NULL;
}

bool dq_op_known(const char *domain, const char *name)
{
    for (size_t i = 0; i < OPS; i++)
        if (named(&registry[i], domain, name))
            return true;
    return false;
}

dq_status dq_call_output(dq_op_call *call, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
                         dq_error *err)
{
    if (i >= call->out_count || !call->out[i])
        return DQ_OK;
    dq_status status =
        dq_tensor_set_shape(call->out[i], dtype, rank, dims, call->tensor_limit, DQ_BAD_MODEL, err);
    if (status != DQ_OK)
        dq_error_prefix(err, "output %u ", i);
    return status;
}

dq_status dq_call_bounds(const dq_op_call *call, dq_bounds *bounds, dq_error *err)
{
    const dq_attr *clip = dq_node_attr(call->node, "clip");
    if (clip && clip->count != 2)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'clip' has %zu values, expected 2",
                            clip->count);
    *bounds = clip ? (dq_bounds){clip->u.floats[0], clip->u.floats[1]} : (dq_bounds){-INFINITY, INFINITY};
    return DQ_OK;
}

dq_status dq_call_output_like(dq_op_call *call, uint32_t i, dq_dtype dtype, const dq_tensor *like,
                              dq_error *err)
{
    return dq_call_output(call, i, dtype, like->rank, like->dims, err);
}

void dq_call_output_items(dq_op_call *call, uint32_t i, dq_kind kind, dq_kind item_kind, dq_dtype dtype)
{
    if (i < call->out_count && call->out[i])
        dq_items_describe(call->out[i], kind, item_kind, dtype);
}

dq_status dq_call_split_offsets(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    if (!call->arena || in->count == 0 || in->size % in->count != 0)
        return DQ_OK;
    call->split_offsets = DQ_NEW_ARRAY(call->arena, call->out_count, size_t);
    return call->split_offsets
               ? DQ_OK
               : dq_no_memory(err, call->out_count * sizeof *call->split_offsets, "a step of the plan");
}

dq_status dq_call_concat_offsets(dq_op_call *call, dq_error *err)
{
    if (!call->arena)
        return DQ_OK;
    call->concat_offsets = DQ_NEW_ARRAY(call->arena, call->in_count, size_t);
    for (uint32_t i = 0; call->concat_offsets && i < call->in_count; i++)
        call->concat_offsets[i] = DQ_NOT_CONCATENATED;
    return call->concat_offsets ? DQ_OK
                                : dq_no_memory(err, call->in_count * sizeof(size_t), "a step of the plan");
}

dq_status dq_call_need(const dq_op_call *call, uint32_t i)
{
    const dq_tensor *in = dq_call_in(call, i);
    return !in || in->data ? DQ_OK : DQ_DEFERRED;
}

dq_status dq_call_state(dq_op_call *call, size_t size, dq_error *err)
{
    call->state = dq_arena_alloc(call->arena, size, 16);
    return call->state ? DQ_OK : dq_no_memory(err, size, "an operator's parameters");
}

dq_status dq_call_fail(const dq_op_call *call, dq_error *err, dq_status status, const char *format, ...)
{
    (void)call;
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dq_fail(err, status, "%s", text);
}

dq_status dq_call_fail_input(const dq_op_call *call, dq_error *err, uint32_t i, const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *formal = call->in_formals ? call->in_formals[i] : NULL;
    if (formal)
        return dq_fail(err, DQ_BAD_MODEL, "input %u '%s' %s", i, formal, text);
    return dq_fail(err, DQ_BAD_MODEL, "input %u %s", i, text);
}

dq_status dq_call_fail_index(const dq_op_call *call, dq_error *err, uint32_t i, dq_status fault,
                             int64_t index, int64_t length)
{
    dq_call_fail_input(call, err, i, "holds %" PRId64 ", outside an axis of %" PRId64, index, length);
    if (err)
        err->status = fault;
    return fault;
}

dq_status dq_call_fail_tuple(const dq_op_call *call, dq_error *err, uint32_t i, const int64_t *tuple,
                             const int64_t *dims)
{
    while (*tuple >= -*dims && *tuple < *dims)
        tuple++, dims++;
    return dq_call_fail_index(call, err, i, DQ_BAD_INPUT, *tuple, *dims);
}

dq_status dq_call_axis(const dq_op_call *call, int64_t absent, size_t *axis, dq_error *err)
{
    const unsigned rank = call->in[0]->rank;
    const int64_t value = dq_node_int(call->node, "axis", absent);
    if (dq_axis(value, rank, axis))
        return DQ_OK;
    return dq_call_fail(call, err, DQ_BAD_MODEL,
                        "attribute 'axis' is %" PRId64 ", outside an input of rank %u", value, rank);
}

static dq_status pack(dq_op_call *call, uint32_t i, dq_packing *expected, const void **packed, dq_error *err)
{
    expected->isa = call->kernels->isa;
    if (i < 64)
        call->packed_inputs |= UINT64_C(1) << i;
    if (call->packs && i < 64 && (call->persistent_inputs >> i & 1))
        return dq_packs_get(call->packs, call->in[i], expected, packed, err);
    void *own = dq_arena_alloc(call->arena, expected->size, DQ_ALIGN);
    if (!own)
        return dq_no_memory(err, expected->size, "packed weights");
    expected->make(own, call->in[i], expected->key);
    *packed = own;
    return DQ_OK;
}

dq_status dq_call_pack(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key, size_t key_size,
                       size_t size, const void **packed, dq_error *err)
{
    return pack(call, i, &(dq_packing){make, key, key_size, size, 0, 0}, packed, err);
}

dq_status dq_call_pack_deferred(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key,
                                size_t key_size, size_t size, const void **packed, dq_error *err)
{
    return pack(call, i, &(dq_packing){make, key, key_size, size, DQ_PACK_DEFERRED, 0}, packed, err);
}

dq_status dq_call_pack_unaligned(dq_op_call *call, uint32_t i, dq_pack_fn make, const void *key,
                                 size_t key_size, size_t size, const void **packed, dq_error *err)
{
    return pack(call, i, &(dq_packing){make, key, key_size, size, DQ_PACK_UNALIGNED | DQ_PACK_DEFERRED, 0},
                packed, err);
}
