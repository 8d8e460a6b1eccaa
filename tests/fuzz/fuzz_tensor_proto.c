/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the protobuf messages that hold data: TensorProto, SequenceProto and OptionalProto.
 *
 * The first byte chooses: its upper two bits the message (0 and 1 TensorProto, 2 OptionalProto, 3
 * SequenceProto), the lower six the element type that is expected of items. The others are the message. What
 * was read of a TensorProto must be the same after it is written as .npy and read again. */
#include "io/pb.h"
#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sequence or optional: what is read is whole, and can be freed. */
static void read_list(const uint8_t *bytes, size_t size, dq_dtype expected, bool sequence)
{
    dq_error err;
    dq_tensor *list = NULL;
    char *name = NULL;
    dq_value_info declared = {.kind = sequence ? DQ_KIND_SEQUENCE : DQ_KIND_OPTIONAL, .item_dtype = expected};
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
    dq_dtype expected = (dq_dtype)((data[0] & 63) % DQ_DTYPE_COUNT);
    if (data[0] & 0x80) {
        read_list(data + 1, size - 1, expected, data[0] & 0x40);
        return 0;
    }
    if (pb_read(data + 1, size - 1, LIMIT, &name, &tensor, &err) == DQ_OK)
        write_and_read(tensor);
    free(name);
    return 0;
}
