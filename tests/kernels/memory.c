/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "kernel_check.h"
#include "support/random.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 128, GUARD_BYTE = 0x5a, BLOCKS_MAX = 256 };

typedef struct block {
    unsigned char *base, *data, *limit; /* limit: first byte that must not be touched */
    size_t mapped, bytes;
} block;

const char *kernel_name = "";
static block blocks[BLOCKS_MAX];
static size_t block_count;
static uint64_t random_state = 1;

uint32_t kernel_random(uint32_t n)
{
    return random_below(&random_state, n);
}

int32_t kernel_start(void)
{
    int32_t high = (int32_t)kernel_random(65536), low = (int32_t)kernel_random(65536), near = low / 64;
    switch (kernel_random(4)) {
    case 0:
        return INT32_MAX - near;
    case 1:
        return INT32_MIN + near;
    default:
        return (high - 32768) * 65536 + low;
    }
}

bool kernel_size(size_t i, size_t *n)
{
    enum { ALL_UP_TO = 70 };
    static const size_t more[] = {95, 96, 127, 128, 129, 255, 256, 257, 1000};
    if (i >= ALL_UP_TO + sizeof more / sizeof more[0])
        return false;
    *n = i < ALL_UP_TO ? i : more[i - ALL_UP_TO];
    return true;
}

void kernel_fail(const char *file, int line, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s (%s:%d)\n", kernel_name, text, file, line);
    _exit(EXIT_FAILURE);
}

void *kernel_memory(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + 2 * GUARD + page - 1) / page * page;
    KERNEL_FAIL_UNLESS(block_count < BLOCKS_MAX, "more than %d blocks of memory", BLOCKS_MAX);
    block *b = &blocks[block_count++];
    b->mapped = whole + page;
    b->bytes = bytes;
    b->base = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    KERNEL_FAIL_UNLESS(b->base != MAP_FAILED, "no memory");
    b->limit = b->base + whole;
    KERNEL_FAIL_UNLESS(mprotect(b->limit, page, PROT_NONE) == 0, "no forbidden page");
    memset(b->base, GUARD_BYTE, whole);
    b->data = kernel_random(2) ? b->limit - bytes : b->base + GUARD;
    memset(b->data, 0, bytes);
    return b->data;
}

void *kernel_bytes(size_t bytes)
{
    unsigned char *data = kernel_memory(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)kernel_random(256);
    return data;
}

float *kernel_floats(size_t n)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-42f, 3e38f, -3e38f, 0.5f, -2.5f};
    float *data = kernel_memory(n * sizeof *data);
    for (size_t i = 0; i < n; i++) {
        float sign = kernel_random(2) ? 1.0f : -1.0f;
        data[i] = sign * ldexpf((float)kernel_random(1 << 24), (int)kernel_random(40) - 30);
        if (kernel_random(8) == 0)
            data[i] = odd[kernel_random(sizeof odd / sizeof odd[0])];
    }
    return data;
}

void kernel_done(void)
{
    for (size_t i = 0; i < block_count; i++) {
        block *b = &blocks[i];
        for (unsigned char *p = b->base; p < b->limit; p++)
            if (p < b->data || p >= b->data + b->bytes)
                KERNEL_FAIL_UNLESS(*p == GUARD_BYTE, "a byte %td from the start of %zu was written",
                                   p - b->data, b->bytes);
        munmap(b->base, b->mapped);
    }
    block_count = 0;
}
