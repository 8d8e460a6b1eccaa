/* SPDX-License-Identifier: Apache-2.0 */
/* .npy arrays: versions 1 to 3 of the header, C and Fortran order, both byte orders.
 *
 * numpy has no names for some of ONNX's element types. As numpy does with arrays of the package ml_dtypes,
 * they are stored as raw elements ('|V1', '<V2'): bfloat16 in two bytes, the 8-bit floats in one, and types
 * under 8 bits one element a byte, in its lowest bits. Nothing in the file says which of them it is, so that
 * the reader is told the type that is wanted. (numpy writes float8e5m2 as '<f1', which it cannot load again;
 * this writer uses raw elements for it too, and the reader takes both.) */
#ifndef DQ_TOOLS_IO_NPY_H
#define DQ_TOOLS_IO_NPY_H

#include "common.h"

/** Where bytes come from, in order. `read` delivers exactly `size` bytes or fails with a sentence. */
typedef struct io_source {
    dq_status (*read)(void *arg, void *buffer, size_t size, dq_error *err);
    void *arg;
    uint64_t size; /**< of the whole; the array must fill it exactly */
} io_source;

typedef struct npy_header {
    char kind; /**< numpy's letter: b i u f c S U V */
    bool big_endian, fortran;
    size_t itemsize; /**< bytes of one element in the file */
    dq_dtype dtype;  /**< DQ_UNDEFINED for raw elements */
    size_t rank;
    int64_t dims[DQ_MAX_RANK];
    size_t count, data_size;
    char descr[16]; /**< as the file spells it, for sentences */
} npy_header;

/** Reads and checks the header, which leaves `source` at the first element. Pickled objects, structured
 * arrays and types that ONNX lacks are refused with DQ_BAD_INPUT, as is a size that differs from what the
 * header says. */
dq_status npy_read_header(io_source *source, npy_header *header, dq_error *err);

/** The type that npy_read_data would give the array: the file's own; or `wanted`, when the file has raw
 * elements of its width, or 8-bit integers and `wanted` is an integer type under 8 bits. DQ_UNDEFINED for
 * other raw elements. */
dq_dtype npy_type(const npy_header *header, dq_dtype requested);

/** Reads the elements after npy_read_header. `wanted` may be DQ_UNDEFINED. No value is converted: a value
 * that does not fit in a type under 8 bits is DQ_BAD_INPUT. Nothing over `limit` bytes is allocated. */
dq_status npy_read_data(io_source *source, const npy_header *header, dq_dtype requested, uint64_t limit,
                        dq_tensor **out, dq_error *err);

/** A .npy image of a tensor: the header, then the data, which may be the tensor's own. */
typedef struct npy_image {
    char header[640];
    size_t header_size;
    const void *data;
    size_t data_size;
    void *owned; /**< what npy_image_clear frees; NULL when data belongs to the tensor */
} npy_image;

/** Strings become '<U…' when all are UTF-8, else '|S…'. The tensor must outlive the image. */
dq_status npy_encode(const dq_tensor *tensor, npy_image *image, dq_error *err);
void npy_image_clear(npy_image *image);

/** The header of a .npy file; then its array. Sentences do not name the path. */
dq_status npy_file_header(const char *path, npy_header *header, dq_error *err);
dq_status npy_file_read(const char *path, dq_dtype requested, uint64_t limit, dq_tensor **out, dq_error *err);

/** Writes a .npy file, whole or not at all (out_file.h). */
dq_status npy_file_write(const char *path, const dq_tensor *tensor, dq_error *err);

#endif
