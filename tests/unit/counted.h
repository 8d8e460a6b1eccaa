/* SPDX-License-Identifier: Apache-2.0 */
/* A dq_allocator that counts, checks each release against its allocation, and can refuse one. */
#ifndef DQ_TESTS_COUNTED_H
#define DQ_TESTS_COUNTED_H

#include "support/test_program.h"

#include <dqrun/dqrun.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct counted {
    size_t allocations, live, bytes; /* so far; now; of those live */
    size_t refuse_at;                /* the number of the allocation, from 1, that is refused; 0: none */
    bool refused;
} counted;

/* In front of each piece, where the piece's alignment leaves room. */
typedef struct counted_head {
    uint64_t guard;
    counted *owner;
    size_t bytes;
} counted_head;

enum { COUNTED_ALIGN = 64 };
static pthread_mutex_t counted_lock = PTHREAD_MUTEX_INITIALIZER;
static const uint64_t counted_guard = UINT64_C(0x6a09e667f3bcc908);

static inline void *counted_allocate(void *arg, size_t bytes, size_t alignment)
{
    counted *c = arg;
    ck_assert_uint_gt(bytes, 0);
    ck_assert(alignment > 0 && alignment <= COUNTED_ALIGN && (alignment & (alignment - 1)) == 0);
    pthread_mutex_lock(&counted_lock);
    const bool refused = ++c->allocations == c->refuse_at;
    if (refused) {
        c->refused = true;
    } else {
        c->live++;
        c->bytes += bytes;
    }
    pthread_mutex_unlock(&counted_lock);
    char *memory = refused ? NULL
                           : aligned_alloc(COUNTED_ALIGN, (bytes + 2 * (size_t)COUNTED_ALIGN - 1) /
                                                              COUNTED_ALIGN * COUNTED_ALIGN);
    if (!memory)
        return NULL;
    memset(memory, 0xA5, COUNTED_ALIGN + bytes); /* memory is not clear */
    *(counted_head *)(void *)memory = (counted_head){counted_guard, c, bytes};
    return memory + COUNTED_ALIGN;
}

static inline void counted_release(void *arg, void *memory, size_t bytes)
{
    counted *c = arg;
    counted_head *head = (void *)((char *)memory - COUNTED_ALIGN);
    ck_assert(head->guard == counted_guard);
    ck_assert_ptr_eq(head->owner, c);
    ck_assert_uint_eq(head->bytes, bytes);
    head->guard = 0;
    pthread_mutex_lock(&counted_lock);
    c->live--;
    c->bytes -= bytes;
    pthread_mutex_unlock(&counted_lock);
    memset(memory, 0x5A, bytes);
    free(head);
}

static inline dq_allocator counted_allocator(counted *c)
{
    return (dq_allocator){
        .size = sizeof(dq_allocator), .allocate = counted_allocate, .release = counted_release, .arg = c};
}

#endif
