/* SPDX-License-Identifier: Apache-2.0 */
#include "io/hash.h"

#include "io/common.h"
#include "io/text.h"

#include <stdio.h>
#include <string.h>

static void add_text(sha256 *hash, const char *text)
{
    sha256_add(hash, text, strlen(text));
}

static void add_strings(sha256 *hash, const dq_tensor *t)
{
    for (size_t i = 0; i < dq_tensor_count(t); i++) {
        size_t length = 0;
        const char *bytes = dq_tensor_string(t, i, &length);
        uint8_t prefix[8];
        for (size_t k = 0; k < sizeof prefix; k++)
            prefix[k] = (uint8_t)((uint64_t)length >> 8 * k);
        sha256_add(hash, prefix, sizeof prefix);
        sha256_add(hash, bytes, length);
    }
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

/* How the numbers of a type are hashed. */
typedef struct form {
    size_t bytes;             /* of one number; complex elements are two */
    uint64_t magnitude;       /* all bits but the sign; 0: the type has one NaN or none */
    uint64_t infinity, quiet; /* magnitudes above `infinity` are NaN; `quiet` is the one to hash */
} form;

static form form_of(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_FLOAT:
    case DQ_COMPLEX64:
        return (form){4, 0x7fffffff, 0x7f800000, 0x7fc00000};
    case DQ_DOUBLE:
    case DQ_COMPLEX128:
        return (form){8, 0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000};
    case DQ_FLOAT16:
        return (form){2, 0x7fff, 0x7c00, 0x7e00};
    case DQ_BFLOAT16:
        return (form){2, 0x7fff, 0x7f80, 0x7fc0};
    case DQ_FLOAT8E4M3FN: /* no infinity: one NaN of each sign */
        return (form){1, 0x7f, 0x7e, 0x7f};
    case DQ_FLOAT8E5M2:
        return (form){1, 0x7f, 0x7c, 0x7e};
    default:
        return (form){dq_dtype_bits(dtype) / 8, 0, 0, 0};
    }
}

static uint64_t get_bits(const uint8_t *at, size_t bytes)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (bytes) {
    case 1:
        memcpy(&v8, at, 1);
        return v8;
    case 2:
        memcpy(&v16, at, 2);
        return v16;
    case 4:
        memcpy(&v32, at, 4);
        return v32;
    default:
        memcpy(&v64, at, 8);
        return v64;
    }
}

static void add_numbers(sha256 *hash, const dq_tensor *t)
{
    const uint8_t *data = dq_tensor_data(t);
    const unsigned bits = dq_dtype_bits(dq_tensor_dtype(t));
    const form f = form_of(dq_tensor_dtype(t));
    const size_t count = bits < 8 ? dq_tensor_count(t) : dq_tensor_size(t) / f.bytes;
    uint8_t buffer[4096];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = bits < 8 ? io_get_bits(data, bits, i) : get_bits(data + i * f.bytes, f.bytes);
        if (f.magnitude && (value & f.magnitude) > f.infinity)
            value = f.quiet;
        const size_t bytes = bits < 8 ? 1 : f.bytes;
        for (size_t k = 0; k < bytes; k++)
            buffer[used++] = (uint8_t)(value >> 8 * k);
        if (used + 8 > sizeof buffer) {
            sha256_add(hash, buffer, used);
            used = 0;
        }
    }
    sha256_add(hash, buffer, used);
}

/* ---- Values -------------------------------------------------------------------------------------------- */

static void add_value(sha256 *hash, const dq_tensor *value)
{
    char text[IO_TYPE_TEXT];
    const dq_dtype dtype = dq_tensor_dtype(value);
    if (dq_tensor_kind(value) != DQ_KIND_TENSOR) {
        snprintf(text, sizeof text, "%s(%s)[%zu]\n",
                 dq_tensor_kind(value) == DQ_KIND_SEQUENCE ? "seq" : "optional", dq_dtype_name(dtype),
                 dq_tensor_count(value));
        add_text(hash, text);
        for (size_t i = 0; dq_tensor_item(value, i); i++)
            add_value(hash, dq_tensor_item(value, i));
        return;
    }
    add_text(hash, io_type_text(dtype, dq_tensor_rank(value), dq_tensor_dims(value), text));
    add_text(hash, "\n");
    if (dtype == DQ_STRING)
        add_strings(hash, value);
    else
        add_numbers(hash, value);
}

const char *io_hash(const dq_tensor *value, char text[SHA256_TEXT])
{
    sha256 hash;
    sha256_start(&hash);
    add_value(&hash, value);
    return sha256_finish(&hash, text);
}
