/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the packers in packers.def and of their checks. */
#ifndef DQ_OPS_PACKERS_H
#define DQ_OPS_PACKERS_H

#include "ops/packs.h"

/** Whether a form of that key may be in a file, and whether a run may read these bytes, whatever a file
 * holds: it stays inside of the form and of its operands. Numbers may be wrong, offsets and counts may not.
 */
typedef bool dq_packed_check_fn(const void *packed, const void *key);

/** For forms that hold only numbers: true. */
dq_packed_check_fn dq_packed_numbers;

typedef struct dq_packer {
    const char *name;
    dq_pack_fn make;
    size_t pointers;
    dq_packed_check_fn *is_safe;
} dq_packer;

#define DQ_PACKER(name, function, pointers, check)                                                           \
    void function(void *packed, const dq_tensor *from, const void *key);                                     \
    dq_packed_check_fn check;
#include "ops/packers.def"
#undef DQ_PACKER

/** The row of a packer; NULL: there is none. */
const dq_packer *dq_packer_of(dq_pack_fn make);

#endif
