/* Fuzz target of the tensor files: .npz, .npy and TensorProto from hostile bytes.
 *
 * The first byte chooses: its upper two bits the format (0 .npz, 1 .npy, 2 TensorProto, 3 OptionalProto or,
 * when it is odd, SequenceProto), the rest the element type that is wanted. The others are the file. Nothing
 * may crash or take much memory, and what was read must be the same after it is written as .npy and read
 * again. */
#include "io/npz.h"
#include "io/pb.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 20, MEMBERS = 8 };

typedef struct memory {
    const uint8_t *at;
    size_t left;
} memory;

static dq_status read_memory(void *arg, void *buffer, size_t size, dq_error *err)
{
    memory *m = arg;
    if (size > m->left)
        return io_fail(err, DQ_BAD_INPUT, "is cut off");
    memcpy(buffer, m->at, size);
    m->at += size;
    m->left -= size;
    return DQ_OK;
}

static dq_status read_npy(const uint8_t *bytes, size_t size, dq_dtype wanted, dq_tensor **out)
{
    dq_error err;
    npy_header header;
    memory m = {bytes, size};
    io_source source = {.read = read_memory, .arg = &m, .size = size};
    dq_status status = npy_read_header(&source, &header, &err);
    return status == DQ_OK ? npy_read_data(&source, &header, wanted, LIMIT, out, &err) : status;
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void must_be_equal(const dq_tensor *a, const dq_tensor *b)
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
static bool ends_in_zero(const dq_tensor *t)
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
static void write_and_read(dq_tensor *tensor)
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

static void try_npz(const uint8_t *bytes, size_t size, dq_dtype wanted)
{
    dq_error err;
    npz *archive = NULL;
    if (npz_open_memory(bytes, size, &archive, &err) != DQ_OK)
        return;
    for (size_t i = 0; i < npz_count(archive) && i < MEMBERS; i++) {
        dq_tensor *tensor = NULL;
        npy_header header;
        dq_status seen = npz_header(archive, i, &header, &err);
        dq_status status = npz_read(archive, i, wanted, LIMIT, &tensor, &err);
        must(seen == DQ_OK || status != DQ_OK);
        must(npz_find(archive, npz_name(archive, i)) == i);
        if (status == DQ_OK)
            write_and_read(tensor);
    }
    npz_close(archive);
}

/* A sequence or optional: what is read is whole, and can be freed. */
static void read_list(const uint8_t *bytes, size_t size, dq_dtype wanted, bool sequence)
{
    dq_error err;
    dq_tensor *list = NULL;
    char *name = NULL;
    dq_value_info declared = {.kind = sequence ? DQ_KIND_SEQUENCE : DQ_KIND_OPTIONAL, .item_dtype = wanted};
    if (pb_read_value(bytes, size, &declared, LIMIT, &name, &list, &err) != DQ_OK)
        return;
    must(name != NULL && dq_tensor_kind(list) == declared.kind);
    for (size_t i = 0; i < dq_tensor_count(list); i++)
        must(dq_tensor_item(list, i) != NULL);
    must(dq_tensor_item(list, dq_tensor_count(list)) == NULL);
    dq_tensor_free(list);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dq_error err;
    dq_tensor *tensor = NULL;
    char *name = NULL;
    if (!size)
        return 0;
    dq_dtype wanted = (dq_dtype)((data[0] & 63) % DQ_DTYPE_COUNT);
    switch (data[0] >> 6) {
    case 1:
        if (read_npy(data + 1, size - 1, wanted, &tensor) == DQ_OK)
            write_and_read(tensor);
        break;
    case 2:
        if (pb_read(data + 1, size - 1, LIMIT, &name, &tensor, &err) == DQ_OK)
            write_and_read(tensor);
        free(name);
        break;
    case 3:
        read_list(data + 1, size - 1, wanted, data[0] & 1);
        break;
    default:
        try_npz(data + 1, size - 1, wanted);
    }
    return 0;
}
