/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of constants by their content. */
#ifndef DQ_GRAPH_CONTENT_H
#define DQ_GRAPH_CONTENT_H

#include "base/hash.h"
#include "graph/graph.h"

/** Hash of a tensor's data; type and shape do not matter. Pages of a mapped file are released after reading.
 * The tensor must not be of strings. */
dq_hash dq_tensor_hash(const dq_tensor *t);

/** The constants of a model: initializers and tensors in attributes, numbered in the order of the graphs. */
typedef struct dq_content dq_content;

#define DQ_NO_CONSTANT UINT32_MAX

/** Lists the constants of a linked model. Hashes their types and shapes; their data only when asked for, as
 * that reads the whole model. The allocator (NULL: malloc) must outlive the result. */
dq_status dq_content_create(const dq_ir *ir, const dq_allocator *allocator, dq_content **out, dq_error *err);
void dq_content_free(dq_content *content);
/** Hash of the types and shapes of all constants. */
dq_hash dq_content_types(const dq_content *content);

/** Hash of the data of constant `i`; false: there is none, or it is of strings. */
bool dq_content_at(dq_content *content, uint32_t i, dq_hash *hash);
/** The name of constant `i`, which exists. */
const char *dq_content_name(const dq_content *content, uint32_t i);
/** Hash of a tensor's data. *i is the number of a constant with these data, or DQ_NO_CONSTANT. Constants are
 * hashed once. */
dq_hash dq_content_find(dq_content *content, const dq_tensor *t, uint32_t *i);

#endif
