/* SPDX-License-Identifier: Apache-2.0 */
/* Writes ONNX messages byte by byte, right and wrong ones, for the tests of what reads them. Field numbers
 * are those of onnx.proto. */
#ifndef DQ_TESTS_ONNX_WRITER_H
#define DQ_TESTS_ONNX_WRITER_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** A message that is being written. */
typedef struct ow {
    size_t size;
    uint8_t bytes[16384];
} ow;

enum { OW_MODEL_GRAPH = 7, OW_MODEL_OPSET = 8, OW_MODEL_FUNCTION = 25 };
enum {
    OW_GRAPH_NODE = 1,
    OW_GRAPH_INIT = 5,
    OW_GRAPH_IN = 11,
    OW_GRAPH_OUT = 12,
    OW_GRAPH_INFO = 13,
    OW_GRAPH_SPARSE = 15
};
enum { OW_NODE_ATTR = 5, OW_NODE_DOMAIN = 7, OW_NODE_OVERLOAD = 8 };

static inline void ow_byte(ow *w, unsigned byte)
{
    assert(w->size < sizeof w->bytes);
    w->bytes[w->size++] = (uint8_t)byte;
}

static inline void ow_varint(ow *w, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        ow_byte(w, (unsigned)(value & 0x7F) | 0x80);
    ow_byte(w, (unsigned)value);
}

static inline void ow_int(ow *w, unsigned id, int64_t value)
{
    ow_varint(w, (uint64_t)id << 3);
    ow_varint(w, (uint64_t)value);
}

static inline void ow_raw(ow *w, unsigned id, const void *bytes, size_t size)
{
    ow_varint(w, (uint64_t)id << 3 | 2);
    ow_varint(w, size);
    for (size_t i = 0; i < size; i++)
        ow_byte(w, ((const uint8_t *)bytes)[i]);
}

static inline void ow_str(ow *w, unsigned id, const char *text)
{
    ow_raw(w, id, text, strlen(text));
}

static inline void ow_msg(ow *w, unsigned id, const ow *message)
{
    ow_raw(w, id, message->bytes, message->size);
}

static inline void ow_float(ow *w, unsigned id, float value)
{
    ow_varint(w, (uint64_t)id << 3 | 5);
    uint32_t bits;
    memcpy(&bits, &value, 4);
    for (int i = 0; i < 4; i++)
        ow_byte(w, bits >> (8 * i) & 0xFF);
}

/** A packed list of varints. */
static inline void ow_ints(ow *w, unsigned id, size_t count, const int64_t *values)
{
    ow list = {0};
    for (size_t i = 0; i < count; i++)
        ow_varint(&list, (uint64_t)values[i]);
    ow_msg(w, id, &list);
}

/** One string field for each part of a comma-separated list. */
static inline void ow_list(ow *w, unsigned id, const char *names)
{
    while (names && *names) {
        size_t length = strcspn(names, ",");
        /* "-" stands for a name that is left out */
        ow_raw(w, id, names, length == 1 && *names == '-' ? 0 : length);
        names += length + (names[length] == ',');
    }
}

/** Adds a node to a graph (field 1) or function (field 7). attrs may be NULL: a message of NodeProto fields.
 */
static inline void ow_node(ow *graph, unsigned field, const char *name, const char *op, const char *domain,
                           const char *in, const char *out, const ow *more)
{
    ow node = {0};
    ow_list(&node, 1, in);
    ow_list(&node, 2, out);
    ow_str(&node, 3, name);
    ow_str(&node, 4, op);
    ow_str(&node, OW_NODE_DOMAIN, domain);
    for (size_t i = 0; more && i < more->size; i++)
        ow_byte(&node, more->bytes[i]);
    ow_msg(graph, field, &node);
}

/** A TensorProto without data. */
static inline ow ow_tensor(const char *name, int dtype, size_t rank, const int64_t *dims)
{
    ow tensor = {0};
    ow_ints(&tensor, 1, rank, dims);
    ow_int(&tensor, 2, dtype);
    ow_str(&tensor, 8, name);
    return tensor;
}

/** A graph's input or output (field) of tensor type; rank < 0: no shape. */
static inline void ow_value(ow *graph, unsigned field, const char *name, int dtype, int rank,
                            const int64_t *dims)
{
    ow shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (int i = 0; i < rank; i++) {
        ow dim = {0};
        ow_int(&dim, 1, dims[i]);
        ow_msg(&shape, 1, &dim);
    }
    ow_int(&tensor, 1, dtype);
    if (rank >= 0)
        ow_msg(&tensor, 2, &shape);
    ow_msg(&type, 1, &tensor);
    ow_str(&value, 1, name);
    ow_msg(&value, 2, &type);
    ow_msg(graph, field, &value);
}

/** Adds an import of an operator set to a model (field 8) or function (field 9). */
static inline void ow_opset(ow *w, unsigned field, const char *domain, int64_t version)
{
    ow opset = {0};
    ow_str(&opset, 1, domain);
    ow_int(&opset, 2, version);
    ow_msg(w, field, &opset);
}

/** A model of IR version 10 around a graph, importing ai.onnx 21. */
static inline ow ow_model(const ow *graph)
{
    ow model = {0};
    ow_int(&model, 1, 10);
    ow_opset(&model, OW_MODEL_OPSET, "", 21);
    ow_msg(&model, OW_MODEL_GRAPH, graph);
    return model;
}

#endif
