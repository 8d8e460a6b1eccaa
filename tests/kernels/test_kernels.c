/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernels [--bench] [TEXT]: holds every line of kernels.def (those whose function's name holds TEXT) to
 * the contract of its slot, each in a process of its own. Prints a line for each: its instruction set, its
 * function, and `checked`, `FAILED` or `not here` (this processor lacks the instructions).
 *
 * With --bench before TEXT the kernels that run here are timed instead (bench.h); --limits prints only what
 * they are held against.
 *
 * Built with DQ_SIMDE, the kernels of all levels above portable C were compiled with SIMDe's intrinsics in
 * portable C (simde/immintrin.h) and run anywhere. */
#include "base/cpu.h"
#include "bench.h"
#include "kernel_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

static bool runs_here(const kernel_row *row)
{
#ifdef DQ_SIMDE
    return row->isa != DQ_ISA_C; /* portable C is none of SIMDe's work */
#else
    return (row->isa & dq_cpu_isa()) != 0;
#endif
}

static void run_check(const kernel_row *row)
{
    kernel_name = row->name;
    dq_kernels table;
    dq_kernels_select(DQ_ISA_C, &table);
    row->put(&table);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (strcmp(checks[i].slot, row->slot) == 0) {
            checks[i].check(&table);
            kernel_done();
            return;
        }
    KERNEL_FAIL_UNLESS(false, "slot %s has no check: add it to checks.def", row->slot);
}

/* A kernel that hangs is killed after this time of the processor, however busy the machine is. */
enum { CPU_SECONDS = 300 };

/* Runs the check in a process of its own: a kernel that touches forbidden memory ends only this process. A
 * check that passes ends by exit(), not _exit(), so that builds for coverage write the lines it ran. */
static bool passes(const kernel_row *row)
{
    const struct rlimit cpu = {.rlim_cur = CPU_SECONDS, .rlim_max = CPU_SECONDS};
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CPU, &cpu);
        run_check(row);
        exit(EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: ended by signal %d (%s)\n", row->name, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

/* Portable C fills every slot. */
static bool portable_table_is_full(void)
{
    bool full = true;
    dq_kernels table;
    dq_kernels_select(DQ_ISA_C, &table);
#define DQ_SLOT(type, name)                                                                                  \
    if (table.name == NULL) {                                                                                \
        fprintf(stderr, "slot " #name " has no portable kernel\n");                                          \
        full = false;                                                                                        \
    }
#include "kernels/slots.def"
#undef DQ_SLOT
    return full;
}

static int bench(const char *text)
{
    bench_begin();
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const kernel_row *row = &kernels[i];
        if (!strstr(row->name, text) || !runs_here(row))
            continue;
        dq_kernels table;
        dq_kernels_select(DQ_ISA_C, &table);
        row->put(&table);
        if (!bench_kernel(dq_isa_highest(row->isa), row->isa, row->slot, row->name, &table))
            printf("%-11s %-32s has no measure yet\n", dq_isa_highest(row->isa), row->name);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--limits") == 0) {
        bench_begin();
        bench_limits();
        return EXIT_SUCCESS;
    }
    bool timed = argc > 1 && strcmp(argv[1], "--bench") == 0;
    const char *text = argc > 1 + timed ? argv[1 + timed] : "";
    if (timed)
        return bench(text);
    bool good = portable_table_is_full();
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const kernel_row *row = &kernels[i];
        if (!strstr(row->name, text))
            continue;
        bool here = runs_here(row), passed = here && passes(row);
        good = good && (passed || !here);
        printf("%-12s %-40s %s\n", dq_isa_highest(row->isa), row->name,
               passed ? "checked"
               : here ? "FAILED"
                      : "not here");
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
