/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* off64_t */
#include "alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define WRAPPED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WRAPPED 1
#endif
#endif

#if defined(WRAPPED)
#define OURS(name) __wrap_##name
#define THEIRS(name) __real_##name
#define their_aligned_alloc __real_aligned_alloc
#else
#define OURS(name) name
#define THEIRS(name) __libc_##name
#define their_aligned_alloc __libc_memalign
#endif

void *THEIRS(malloc)(size_t size);
void *THEIRS(calloc)(size_t count, size_t size);
void *THEIRS(realloc)(void *old, size_t size);
void *their_aligned_alloc(size_t align, size_t size);
void THEIRS(free)(void *p);
void *OURS(malloc)(size_t size);
void *OURS(calloc)(size_t count, size_t size);
void *OURS(realloc)(void *old, size_t size);
void *OURS(aligned_alloc)(size_t align, size_t size);
void OURS(free)(void *p);

static atomic_size_t countdown; /* 0: nothing is armed, or it went off */
static atomic_bool went_off;

void oom_arm(size_t nth)
{
    atomic_store(&went_off, false);
    atomic_store(&countdown, nth);
}

bool oom_disarm(void)
{
    atomic_store(&countdown, 0);
    return atomic_load(&went_off);
}

static bool fails(void)
{
    size_t left = atomic_load(&countdown);
    while (left != 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1))
        ;
    if (left != 1)
        return false;
    atomic_store(&went_off, true);
    errno = ENOMEM;
    return true;
}

/* What is live: a hash set of addresses. A piece that came another way (from inside a library, where calls
 * are wrapped) is not in it, and freeing that piece changes nothing. */
enum { SLOTS = 1 << 18 };
static uintptr_t slots[SLOTS];
static size_t live;
static atomic_flag busy = ATOMIC_FLAG_INIT;

static size_t home_of(uintptr_t key)
{
    return (size_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> 46);
}

static void lock(void)
{
    while (atomic_flag_test_and_set(&busy))
        ;
}

static void *remember(void *p)
{
    if (p == NULL)
        return NULL;
    lock();
    size_t i = home_of((uintptr_t)p);
    while (slots[i] != 0)
        i = (i + 1) % SLOTS;
    slots[i] = (uintptr_t)p;
    live++;
    atomic_flag_clear(&busy);
    return p;
}

/* Moves the followers of the hole up, so that no search ends at it too early. */
static void close_hole(size_t hole)
{
    for (size_t i = (hole + 1) % SLOTS; slots[i] != 0; i = (i + 1) % SLOTS) {
        size_t home = home_of(slots[i]);
        if ((i - home) % SLOTS >= (i - hole) % SLOTS) {
            slots[hole] = slots[i];
            slots[i] = 0;
            hole = i;
        }
    }
}

static void forget(const void *p)
{
    if (p == NULL)
        return;
    lock();
    size_t i = home_of((uintptr_t)p);
    while (slots[i] != 0 && slots[i] != (uintptr_t)p)
        i = (i + 1) % SLOTS;
    if (slots[i] != 0) {
        slots[i] = 0;
        live--;
        close_hole(i);
    }
    atomic_flag_clear(&busy);
}

size_t oom_live(void)
{
    return live;
}

void *OURS(malloc)(size_t size)
{
    return fails() ? NULL : remember(THEIRS(malloc)(size));
}

void *OURS(calloc)(size_t count, size_t size)
{
    return fails() ? NULL : remember(THEIRS(calloc)(count, size));
}

void *OURS(realloc)(void *old, size_t size)
{
    if (fails())
        return NULL;
    uintptr_t was = (uintptr_t)old;
    void *p = THEIRS(realloc)(old, size);
    if (p != NULL) {
        forget((const void *)was);
        remember(p);
    }
    return p;
}

void *OURS(aligned_alloc)(size_t align, size_t size)
{
    return fails() ? NULL : remember(their_aligned_alloc(align, size));
}

void OURS(free)(void *p)
{
    forget(p);
    THEIRS(free)(p);
}

#if defined(WRAPPED)
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text) /* elsewhere it calls our malloc */
{
    return fails() ? NULL : remember(__real_strdup(text));
}
#endif

/* The system's, too, wherever dqrun's own objects call them: a file that is mapped, a thread that begins. */
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*begin)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*begin)(void *), void *arg);

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*begin)(void *), void *arg)
{
    return fails() ? EAGAIN : __real_pthread_create(thread, how, begin, arg);
}
