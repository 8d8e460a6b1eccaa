/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of tensor files share: a .npy from memory, and a tensor written as .npy and read
 * again. */
#ifndef DQ_TESTS_ROUND_TRIP_H
#define DQ_TESTS_ROUND_TRIP_H

#include "io/npz.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 1 << 20 /* bytes of one tensor */ };

typedef struct memory {
    const uint8_t *at;
    size_t left;
} memory;

static inline dq_status read_memory(void *arg, void *buffer, size_t size, dq_error *err)
{
    memory *m = arg;
    if (size > m->left)
        return io_fail(err, DQ_BAD_INPUT, "is cut off");
    memcpy(buffer, m->at, size);
    m->at += size;
    m->left -= size;
    return DQ_OK;
}

static inline dq_status read_npy(const uint8_t *bytes, size_t size, dq_dtype expected, dq_tensor **out)
{
    dq_error err;
    npy_header header;
    memory m = {bytes, size};
    io_source source = {.read = read_memory, .arg = &m, .size = size};
    dq_status status = npy_read_header(&source, &header, &err);
    return status == DQ_OK ? npy_read_data(&source, &header, expected, LIMIT, out, &err) : status;
}

static inline void must(bool holds)
{
    if (!holds)
        abort();
}

static inline void must_be_equal(const dq_tensor *a, const dq_tensor *b)
{
    size_t rank = dq_tensor_rank(a);
    must(dq_tensor_dtype(a) == dq_tensor_dtype(b) && rank == dq_tensor_rank(b));
    must(!rank || !memcmp(dq_tensor_dims(a), dq_tensor_dims(b), rank * sizeof(int64_t)));
    must(!dq_tensor_size(a) || !memcmp(dq_tensor_data(a), dq_tensor_data(b), dq_tensor_size(a)));
    for (size_t i = 0; dq_tensor_dtype(a) == DQ_STRING && i < dq_tensor_count(a); i++) {
        size_t m = 0, n = 0;
        const char *s = dq_tensor_string(a, i, &m), *t = dq_tensor_string(b, i, &n);
        must(m == n && (!m || !memcmp(s, t, m)));
    }
}

/* A .npy cannot hold zeros at the end of a string, which a TensorProto can. */
static inline bool ends_in_zero(const dq_tensor *t)
{
    for (size_t i = 0; dq_tensor_dtype(t) == DQ_STRING && i < dq_tensor_count(t); i++) {
        size_t n = 0;
        const char *s = dq_tensor_string(t, i, &n);
        if (n && !s[n - 1])
            return true;
    }
    return false;
}

/* Takes the tensor over. */
static inline void write_and_read(dq_tensor *tensor)
{
    dq_error err;
    npy_image image;
    dq_tensor *again = NULL;
    if (!ends_in_zero(tensor) && npy_encode(tensor, &image, &err) == DQ_OK) {
        size_t size = image.header_size + image.data_size;
        uint8_t *bytes = malloc(size);
        must(bytes != NULL);
        memcpy(bytes, image.header, image.header_size);
        if (image.data_size)
            memcpy(bytes + image.header_size, image.data, image.data_size);
        /* Fixed width can make a few long strings larger than the limit. */
        if (image.data_size <= LIMIT) {
            must(read_npy(bytes, size, dq_tensor_dtype(tensor), &again) == DQ_OK);
            must_be_equal(tensor, again);
        }
        free(bytes);
        npy_image_clear(&image);
    }
    dq_tensor_free(again);
    dq_tensor_free(tensor);
}

#endif
