/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the elements of a TensorProto from the wire format of its message. */
#ifndef DQ_PARSER_PAYLOAD_H
#define DQ_PARSER_PAYLOAD_H

#include "parser/wire.h"
#include "tensor/tensor.h"

/** Fields of TensorProto that hold elements, by field number. */
typedef enum dq_payload_field {
    DQ_PAYLOAD_FLOAT = 4,
    DQ_PAYLOAD_INT32 = 5,
    DQ_PAYLOAD_STRING = 6,
    DQ_PAYLOAD_INT64 = 7,
    DQ_PAYLOAD_RAW = 9,
    DQ_PAYLOAD_DOUBLE = 10,
    DQ_PAYLOAD_UINT64 = 11,
    DQ_PAYLOAD_FIELDS = 12 /* Field numbers are less than this. */
} dq_payload_field;

/** Finds the field of the message that holds elements, and sets t->data; type and shape of `t` are set. The
 * data points into the message if its elements have the right form there, else it is in `arena`. */
dq_status dq_payload_read(dq_arena *arena, dq_wire message, dq_tensor *t, dq_error *err);

/** The same from `size` little-endian bytes outside of a message; `size` must match the shape. The data
 * points to `bytes` if this machine can use them there. `what` is for the message: "raw data". */
dq_status dq_payload_bytes(dq_arena *arena, const uint8_t *bytes, size_t size, const char *what, dq_tensor *t,
                           dq_error *err);

/** Whether the message has elements in any of the fields. */
dq_status dq_payload_present(dq_wire message, bool *present, dq_error *err);

#endif
