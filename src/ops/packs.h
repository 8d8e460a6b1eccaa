/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of constant tensors that kernels want (packed weights, column sums, tables), made once per model and
 * shared by all its plans and sessions. Thread-safe. */
#ifndef DQ_OPS_PACKS_H
#define DQ_OPS_PACKS_H

#include "base/threads.h"
#include "tensor/tensor.h"

typedef struct dq_packs dq_packs;

/** Fills `packed` from a constant tensor; `key` is what dq_packs_get was given: if the form is wanted at
 * once, that pointer itself, so that behind the bytes that are compared there may be what only the maker
 * wants. */
typedef void (*dq_pack_fn)(void *packed, const dq_tensor *from, const void *key);

/** The allocator (NULL: malloc) outlives the cache. Copies that live while a form is made are malloc'ed. */
dq_status dq_packs_create(const dq_allocator *allocator, dq_packs **out, dq_error *err);
void dq_packs_free(dq_packs *packs);

enum {
    DQ_PACK_UNALIGNED =
        1 << 0, /* `make` takes a loose tensor as it is, and gives back the pages of a mapped one */
    DQ_PACK_LATER = 1 << 1 /* the bytes are wanted after the next dq_packs_finish: `key` has no pointers to
                              what may be gone by then */
};

/** What is wanted of a tensor: the form that (make, key) names. */
typedef struct dq_packing {
    dq_pack_fn make;
    const void *key;
    size_t key_size, size; /* bytes of the key; of the form */
    unsigned how;          /* of DQ_PACK_… */
} dq_packing;

/** A form of `from`: an earlier one, or new bytes (zeroed, aligned to 64) that `make` fills, from an aligned
 * copy where `from` is loose and `make` does not take that. Forms live until dq_packs_free. */
dq_status dq_packs_get(dq_packs *packs, const dq_tensor *from, const dq_packing *requested,
                       const void **packed, dq_error *err);

/** Fills, on all threads, the forms that dq_packs_get left for later, by whomever they were wanted. What was
 * not filled, as memory ran out, is left for the next call. `packs` may be NULL. */
dq_status dq_packs_finish(dq_packs *packs, dq_threads *threads, dq_error *err);

/** Bytes of all forms that there are. */
size_t dq_packs_bytes(dq_packs *packs);

/** Gives a loose tensor aligned data, a form of its own. Does nothing with others. */
dq_status dq_packs_align(dq_packs *packs, dq_tensor *t, dq_error *err);

#endif
