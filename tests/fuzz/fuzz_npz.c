/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of .npz and .npy files.
 *
 * The first byte chooses: its upper bit the format (0 .npz, 1 .npy), the lower six the element type that is
 * expected. The others are the file. Nothing may crash or take much memory, and what was read must be the
 * same after it is written as .npy and read again. */
#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMBERS = 8 };

static void try_npz(const uint8_t *bytes, size_t size, dq_dtype expected)
{
    dq_error err;
    npz *archive = NULL;
    if (npz_open_memory(bytes, size, &archive, &err) != DQ_OK)
        return;
    for (size_t i = 0; i < npz_count(archive) && i < MEMBERS; i++) {
        dq_tensor *tensor = NULL;
        npy_header header;
        dq_status seen = npz_header(archive, i, &header, &err);
        dq_status status = npz_read(archive, i, expected, LIMIT, &tensor, &err);
        must(seen == DQ_OK || status != DQ_OK);
        must(npz_find(archive, npz_name(archive, i)) == i);
        if (status == DQ_OK)
            write_and_read(tensor);
    }
    npz_close(archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dq_tensor *tensor = NULL;
    if (!size)
        return 0;
    dq_dtype expected = (dq_dtype)((data[0] & 63) % DQ_DTYPE_COUNT);
    if (!(data[0] & 0x80))
        try_npz(data + 1, size - 1, expected);
    else if (read_npy(data + 1, size - 1, expected, &tensor) == DQ_OK)
        write_and_read(tensor);
    return 0;
}
