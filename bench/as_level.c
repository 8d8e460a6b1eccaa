/* SPDX-License-Identifier: Apache-2.0 */
/* A preloaded object (LD_PRELOAD) that lets a process see a processor of a lower ISA level, so that engines
 * can be measured as on such a machine: compare.py --as LEVEL. DQRUN_BENCH_AS names the level.
 *
 * Linux makes cpuid fault where the processor can (arch_prctl(2), ARCH_SET_CPUID; Intel since Ivy Bridge,
 * flag cpuid_fault of /proc/cpuinfo). Each cpuid then arrives here as SIGSEGV. The handler runs it, and takes
 * out of its answer what the level does not have. Threads inherit the setting from the one that starts them;
 * a program that is executed loads this object itself.
 *
 * Where the processor cannot, as_level.py replaces each cpuid in copies of the engines by an invalid
 * instruction of the same size, UD0. It arrives here as SIGILL and gets the same answer.
 * DQRUN_BENCH_AS_COPIES says so.
 *
 * Of the loader's own choices, made before, the C library's memcpy stays that of the real processor, for all
 * alike. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 }; /* ARCH_SET_CPUID of asm/prctl.h */

typedef struct {
    uint32_t a, b, c, d;
} registers;

/* Bits that each level takes away (Intel 64 and IA-32 manual, CPUID): of leaf 7.0 b, c, d; of 7.1 a, d; of
 * 0xd a, the states that XSAVE knows: those of AVX2 are x87, SSE and AVX, those of AVX-512 three more. */
enum {
    PF_ER = 0x0c000000,
    IFMA = 1 << 21,
    F_DQ_CD_BW_VL = (int)0xd0030000,
    VNNI = 1 << 11,
    VBMI_VBMI2_BITALG_VPOPCNTDQ = 0x5042,
    /* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8 */
    LEAF_7_D = 0x03c0010c,
    AVX_VNNI = 1 << 4,
    AVX512_BF16_AMX_FP16_AVX_IFMA = 0x00a00020,
    /* AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10 */
    LEAF_7_1_D = 0x00080530,
    ABOVE_AVX = ~7,
    ABOVE_AVX512 = ~0xe7
};
typedef struct {
    const char *name;
    int b, c, d, a1, d1, states;
} level;

static const level levels[] = {
    {"avx2", F_DQ_CD_BW_VL | IFMA | PF_ER, VNNI | VBMI_VBMI2_BITALG_VPOPCNTDQ, LEAF_7_D,
     AVX_VNNI | AVX512_BF16_AMX_FP16_AVX_IFMA, LEAF_7_1_D, ABOVE_AVX},
    {"avxvnni", F_DQ_CD_BW_VL | IFMA | PF_ER, VNNI | VBMI_VBMI2_BITALG_VPOPCNTDQ, LEAF_7_D,
     AVX512_BF16_AMX_FP16_AVX_IFMA, LEAF_7_1_D, ABOVE_AVX},
    {"avx512", IFMA | PF_ER, VNNI | VBMI_VBMI2_BITALG_VPOPCNTDQ, LEAF_7_D,
     AVX_VNNI | AVX512_BF16_AMX_FP16_AVX_IFMA, LEAF_7_1_D, ABOVE_AVX512},
    {"avx512vnni", IFMA | PF_ER, VBMI_VBMI2_BITALG_VPOPCNTDQ, LEAF_7_D,
     AVX_VNNI | AVX512_BF16_AMX_FP16_AVX_IFMA, LEAF_7_1_D, ABOVE_AVX512},
    {"avx512vbmi", PF_ER, 0, LEAF_7_D, AVX_VNNI | AVX512_BF16_AMX_FP16_AVX_IFMA, LEAF_7_1_D, ABOVE_AVX512},
};

static const level *shown;
static bool faults; /* cpuid itself faults; else UD0 is in its stead */

static registers ask(uint32_t leaf, uint32_t subleaf)
{
    registers r = {leaf, 0, subleaf, 0};
    if (faults)
        syscall(SYS_arch_prctl, SET_CPUID, 1);
    __asm__ volatile("cpuid" : "+a"(r.a), "=b"(r.b), "+c"(r.c), "=d"(r.d));
    if (faults)
        syscall(SYS_arch_prctl, SET_CPUID, 0);
    if (leaf == 7 && subleaf == 0) {
        r.b &= ~(uint32_t)shown->b;
        r.c &= ~(uint32_t)shown->c;
        r.d &= ~(uint32_t)shown->d;
    } else if (leaf == 7 && subleaf == 1) {
        r.a &= ~(uint32_t)shown->a1;
        r.d &= ~(uint32_t)shown->d1;
    } else if (leaf == 0xd && subleaf == 0) {
        r.a &= ~(uint32_t)shown->states;
    }
    return r;
}

static void answer(int sig, siginfo_t *info, void *context)
{
    (void)info;
    static const uint8_t cpuid[] = {0x0f, 0xa2}, ud0[] = {0x0f, 0xff};
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (memcmp((const void *)g[REG_RIP], faults ? cpuid : ud0, sizeof cpuid) !=
        0) { /* a fault of the program itself: let it end by it */
        signal(sig, SIG_DFL);
        return;
    }
    registers r = ask((uint32_t)g[REG_RAX], (uint32_t)g[REG_RCX]);
    g[REG_RAX] = r.a;
    g[REG_RBX] = r.b;
    g[REG_RCX] = r.c;
    g[REG_RDX] = r.d;
    g[REG_RIP] += (greg_t)sizeof cpuid;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

__attribute__((constructor)) static void hide(void)
{
    const char *name = getenv("DQRUN_BENCH_AS");
    for (size_t i = 0; name && i < sizeof levels / sizeof *levels; i++)
        if (strcmp(levels[i].name, name) == 0)
            shown = &levels[i];
    if (!shown)
        fail("as_level: DQRUN_BENCH_AS names no level");
    faults = !getenv("DQRUN_BENCH_AS_COPIES");
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    if (sigaction(faults ? SIGSEGV : SIGILL, &action, NULL))
        fail("as_level: sigaction");
    if (faults && syscall(SYS_arch_prctl, SET_CPUID, 0))
        fail("as_level: this processor or system cannot let cpuid fault");
}
