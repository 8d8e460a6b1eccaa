#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "base/cpu.h"
#include "kernel_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The list ---------------------------------------------------------------------------------------- */

typedef struct kernel_row {
    unsigned isa;
    const char *slot, *name;
    void (*put)(dq_kernels *table);
} kernel_row;

#define DQ_KERNEL(isa, type, slot, function)                                                                 \
    static void put_##function(dq_kernels *table)                                                            \
    {                                                                                                        \
        table->slot = &function;                                                                             \
    }
#include "kernels/kernels.def"
#undef DQ_KERNEL

static const kernel_row kernels[] = {
#define DQ_KERNEL(isa, type, slot, function) {isa, #slot, #function, put_##function},
#include "kernels/kernels.def"
#undef DQ_KERNEL
};

static const struct {
    const char *slot;
    void (*check)(const dq_kernels *k);
} checks[] = {
#define KERNEL_CHECK(slot) {#slot, check_##slot},
#include "checks.def"
#undef KERNEL_CHECK
};

/* ---- Memory ------------------------------------------------------------------------------------------ */

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
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
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
    ck_abort_msg("%s: %s (%s:%d)", kernel_name, text, file, line);
}

void *kernel_memory(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + 2 * GUARD + page - 1) / page * page;
    ck_assert_uint_lt(block_count, BLOCKS_MAX);
    block *b = &blocks[block_count++];
    b->mapped = whole + page;
    b->bytes = bytes;
    b->base = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(b->base != MAP_FAILED);
    b->limit = b->base + whole;
    ck_assert_int_eq(mprotect(b->limit, page, PROT_NONE), 0);
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

/* ---- Tests ------------------------------------------------------------------------------------------- */

START_TEST(kernel)
{
    const kernel_row *row = &kernels[_i];
    kernel_name = row->name;
    if (!(row->isa & dq_cpu_isa())) {
        printf("%s: not checked, this processor lacks its instructions\n", row->name);
        return;
    }
    dq_kernels table;
    dq_kernels_select(DQ_ISA_C, &table);
    row->put(&table);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (strcmp(checks[i].slot, row->slot) == 0) {
            checks[i].check(&table);
            kernel_done();
            return;
        }
    ck_abort_msg("slot %s has no check: add it to checks.def", row->slot);
}
END_TEST

/* Portable C fills every slot. */
START_TEST(portable_table_is_full)
{
    dq_kernels table;
    dq_kernels_select(DQ_ISA_C, &table);
#define DQ_SLOT(type, name) ck_assert_msg(table.name != NULL, "slot " #name " has no portable kernel");
#include "kernels/slots.def"
#undef DQ_SLOT
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, portable_table_is_full);
    tcase_add_loop_test(tests, kernel, 0, (int)(sizeof kernels / sizeof kernels[0]));
    Suite *suite = suite_create("kernels");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
