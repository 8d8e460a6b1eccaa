/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of packed constants (packed weights, column sums, lookup tables): packed once per model and shared by
 * all its plans and sessions. Thread-safe. */
#ifndef DQ_OPS_PACKS_H
#define DQ_OPS_PACKS_H

#include "base/threads.h"
#include "graph/content.h"
#include "tensor/tensor.h"

typedef struct dq_packs dq_packs;

/** Fills `packed` from a constant tensor. `key` is the cache's copy of the key given to dq_packs_get. Without
 * DQ_PACK_DEFERRED it is the caller's pointer itself, so that data for `make` may follow the compared bytes.
 */
typedef void (*dq_pack_fn)(void *packed, const dq_tensor *from, const void *key);

/** The allocator (NULL: malloc) outlives the cache. Temporary copies during packing are malloc'ed. */
dq_status dq_packs_create(const dq_allocator *allocator, dq_packs **out, dq_error *err);
void dq_packs_free(dq_packs *packs);

enum {
    DQ_PACK_UNALIGNED = 1 << 0, /* `make` accepts unaligned tensors and releases the pages of mapped ones */
    DQ_PACK_DEFERRED = 1 << 1   /* the bytes are needed only after the next dq_packs_finish; pointers in `key`
                                are   valid until then */
};

/** A request for the packed form of a tensor that (make, key) identifies. */
typedef struct dq_packing {
    dq_pack_fn make;
    const void *key;
    size_t key_size, size; /* bytes of the key; of the packed form */
    unsigned how;          /* DQ_PACK_… */
    unsigned isa;          /* mask of dq_isa whose kernels the key names; 0: no form from a file */
} dq_packing;

/** The packed form of `from`: from the cache, or new memory (zeroed, aligned to 64) that `make` fills. `make`
 * gets an aligned copy of an unaligned tensor unless DQ_PACK_UNALIGNED. Packed forms live until
 * dq_packs_free. */
dq_status dq_packs_get(dq_packs *packs, const dq_tensor *from, const dq_packing *requested,
                       const void **packed, dq_error *err);

/** Packs everything that dq_packs_get deferred, for all plans, on all threads. Requests that fail for lack of
 * memory remain for the next call. `packs` may be NULL. */
dq_status dq_packs_finish(dq_packs *packs, dq_threads *threads, dq_error *err);

/** Lets later requests take forms from a file of packed weights for the model at `model_path`, whose
 * constants are `content`. Takes ownership of `content`, also on an error. At most once, before the first
 * request. */
dq_status dq_packs_open_file(dq_packs *packs, const char *path, uint64_t limit, dq_content *content,
                             const char *model_path, dq_error *err);
/** DQ_BAD_INPUT if forms come from a file for other ISA levels than the mask `isa`. */
dq_status dq_packs_check_isa(const dq_packs *packs, unsigned isa, dq_error *err);
/** Writes a file of the forms that requests with that `isa` made or took from a file, as far as packers.def
 * allows.
 */
dq_status dq_packs_save(dq_packs *packs, unsigned isa, dq_content *content, dq_write_fn write, void *arg,
                        dq_error *err);

/** Bytes of all packed forms. */
size_t dq_packs_bytes(dq_packs *packs);

/** Replaces the data of an unaligned tensor by an aligned copy in the cache. Other tensors do not change. */
dq_status dq_packs_align(dq_packs *packs, dq_tensor *t, dq_error *err);

#endif
