/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the packers in packers.def and of their checks. */
#ifndef DQ_OPS_PACKERS_H
#define DQ_OPS_PACKERS_H

#include "ops/packs.h"

/** Bytes that a run reads from a form, counted from its beginning, where a file holds the first `size` of its
 * `full` bytes. 0: a form of that key may not be in a file, or a run would read outside of the `size` bytes
 * or of its operands. Numbers may be wrong, offsets and counts may not. */
typedef size_t dq_packed_used_fn(const void *packed, size_t size, size_t full, const void *key);

/** For forms that hold only numbers and are read completely. */
dq_packed_used_fn dq_packed_numbers;

/** Panels of a packed form, which has a list of their offsets. */
typedef struct dq_packed_panels {
    size_t starts; /* offset of the list, whose elements are size_t */
    size_t count;
    size_t first; /* offset of the first panel, after the list */
    /* Bytes that a run reads of a panel where `size` bytes of it are there; 0 if it would read others. */
    size_t (*used)(const void *panel, size_t size, const void *key);
} dq_packed_panels;

/** As dq_packed_used_fn, for a form that ends with these panels. */
size_t dq_packed_panels_used(const dq_packed_panels *panels, const void *packed, size_t size, size_t full,
                             const void *key);

typedef struct dq_packer {
    const char *name;
    dq_pack_fn make;
    size_t pointers;
    dq_packed_used_fn *used;
} dq_packer;

#define DQ_PACKER(name, function, pointers, used)                                                            \
    void function(void *packed, const dq_tensor *from, const void *key);                                     \
    dq_packed_used_fn used;
#include "ops/packers.def"
#undef DQ_PACKER

/** The row of a packer; NULL: there is none. */
const dq_packer *dq_packer_of(dq_pack_fn make);

#endif
