/* SPDX-License-Identifier: Apache-2.0 */
/* A preloaded object (LD_PRELOAD) that lets a process see a processor with AVX2, FMA and F16C and nothing
 * above, so that engines can be measured as on such a machine: compare.py --as-avx2.
 *
 * Linux makes cpuid fault where the processor can (arch_prctl(2), ARCH_SET_CPUID; Intel since Ivy Bridge,
 * flag cpuid_fault of /proc/cpuinfo). Each cpuid then arrives here as SIGSEGV, is run in the handler, and
 * what lies above AVX2 is taken out of its answer. Threads inherit the setting from the one that starts them;
 * a program that is executed loads this object itself. Of the loader's own choices, made before, the C
 * library's memcpy stays that of the real processor, for all alike. */
#define _GNU_SOURCE
#include <signal.h>
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

/* Bits of one leaf that are taken away (Intel 64 and IA-32 manual, CPUID): */
static const struct {
    uint32_t leaf, subleaf;
    registers bits;
} above_avx2[] = {
    /* AVX512 F DQ IFMA PF ER CD BW VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT,
     * AMX BF16, FP16, AMX TILE and INT8 */
    {7, 0, {0, 0xdc230000, 0x00005842, 0x03c0010c}},
    /* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA; AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16,
       AVX10 */
    {7, 1, {0x00a00030, 0, 0, 0x00080530}},
    /* The states that XSAVE knows: all but those of x87, SSE and AVX */
    {0xd, 0, {~7u, 0, 0, 0}},
};

static registers ask(uint32_t leaf, uint32_t subleaf)
{
    registers r = {leaf, 0, subleaf, 0};
    syscall(SYS_arch_prctl, SET_CPUID, 1);
    __asm__ volatile("cpuid" : "+a"(r.a), "=b"(r.b), "+c"(r.c), "=d"(r.d));
    syscall(SYS_arch_prctl, SET_CPUID, 0);
    for (size_t i = 0; i < sizeof above_avx2 / sizeof *above_avx2; i++) {
        if (above_avx2[i].leaf != leaf || above_avx2[i].subleaf != subleaf)
            continue;
        r.a &= ~above_avx2[i].bits.a;
        r.b &= ~above_avx2[i].bits.b;
        r.c &= ~above_avx2[i].bits.c;
        r.d &= ~above_avx2[i].bits.d;
    }
    return r;
}

static void answer(int sig, siginfo_t *info, void *context)
{
    (void)info;
    static const uint8_t cpuid[] = {0x0f, 0xa2};
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (memcmp((const void *)g[REG_RIP], cpuid, sizeof cpuid) !=
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

__attribute__((constructor)) static void hide(void)
{
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGSEGV, &action, NULL) || syscall(SYS_arch_prctl, SET_CPUID, 0)) {
        perror("as_avx2: this processor or system cannot hide what it has");
        exit(1);
    }
}
