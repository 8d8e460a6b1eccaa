/* SPDX-License-Identifier: Apache-2.0 */
/* .npy arrays: versions 1 to 3 of the header, C and Fortran order, both byte orders.
 *
 * numpy has no names for some of ONNX's element types. They are stored as raw elements ('|V1', '<V2'), as
 * numpy does with arrays of the package ml_dtypes: bfloat16 in two bytes, the 8-bit floats in one, and types
 * under 8 bits one element per byte, in its lowest bits. The file does not say which of these types it has,
 * so the caller requests one. numpy writes float8e5m2 as '<f1', which it cannot load again; this writer uses
 * raw elements for it, too, and the reader accepts both. */
#ifndef DQ_TOOLS_IO_NPY_H
#define DQ_TOOLS_IO_NPY_H

#include "common.h"

/** A source of bytes, in order. `read` gives exactly `size` bytes or fails with a message. */
typedef struct io_source {
    dq_status (*read)(void *arg, void *buffer, size_t size, dq_error *err);
    void *arg;
    uint64_t size; /**< Of the whole source; the array must fill it exactly. */
} io_source;

typedef struct npy_header {
    char kind; /**< numpy's letter: b i u f c S U V. */
    bool big_endian, fortran;
    size_t itemsize; /**< Bytes of one element in the file. */
    dq_dtype dtype;  /**< DQ_UNDEFINED for raw elements. */
    size_t rank;
    int64_t dims[DQ_MAX_RANK];
    size_t count, data_size;
    char descr[16]; /**< As spelled in the file, for messages. */
} npy_header;

/** Reads and checks the header. `source` is then at the first element. Pickled objects, structured arrays,
 * types that ONNX lacks, and a size that differs from the header are DQ_BAD_INPUT. */
dq_status npy_read_header(io_source *source, npy_header *header, dq_error *err);

/** The type of npy_read_data's result: the file's own; or `requested`, if the file has raw elements of its
 * size, or 8-bit integers and `requested` is an integer type under 8 bits. DQ_UNDEFINED for other raw
 * elements. */
dq_dtype npy_type(const npy_header *header, dq_dtype requested);

/** Reads the elements after npy_read_header. `requested` may be DQ_UNDEFINED. It converts no value: one that
 * does not fit in a type under 8 bits is DQ_BAD_INPUT. Allocates at most `limit` bytes. */
dq_status npy_read_data(io_source *source, const npy_header *header, dq_dtype requested, uint64_t limit,
                        dq_tensor **out, dq_error *err);

/** The .npy encoding of a tensor: the header, then the data, which may be the tensor's own. */
typedef struct npy_image {
    char header[640];
    size_t header_size;
    const void *data;
    size_t data_size;
    void *owned; /**< Memory that npy_image_clear frees; NULL if the data belongs to the tensor. */
} npy_image;

/** Encodes a tensor. Strings become '<U…' if all are UTF-8, else '|S…'. The tensor must outlive the image. */
dq_status npy_encode(const dq_tensor *tensor, npy_image *image, dq_error *err);
void npy_image_clear(npy_image *image);

/** Read the header of a .npy file, and its array. Messages do not name the path. */
dq_status npy_file_header(const char *path, npy_header *header, dq_error *err);
dq_status npy_file_read(const char *path, dq_dtype requested, uint64_t limit, dq_tensor **out, dq_error *err);

/** Writes a .npy file atomically (out_file.h). */
dq_status npy_file_write(const char *path, const dq_tensor *tensor, dq_error *err);

#endif
