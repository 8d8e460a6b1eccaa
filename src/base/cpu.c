/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/cpu.h"

#include "base/error.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <sys/syscall.h>
#define DQ_X86 1
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define DQ_ARM64 1
#endif

typedef struct level {
    const char *name;
    unsigned bit;
} level;

/* Lowest first; only those of this CPU family. */
static const level levels[] = {
    {"c", DQ_ISA_C},
#ifdef DQ_X86
    {"sse41", DQ_ISA_SSE41},
    {"avx2", DQ_ISA_AVX2},
    {"avxvnni", DQ_ISA_AVXVNNI},
    {"avx512", DQ_ISA_AVX512},
    {"avx512vnni", DQ_ISA_AVX512VNNI},
    {"avx512vbmi", DQ_ISA_AVX512VBMI},
    {"amx", DQ_ISA_AMX},
#endif
#ifdef DQ_ARM64
    {"neon", DQ_ISA_NEON},
    {"dotprod", DQ_ISA_DOTPROD},
    {"i8mm", DQ_ISA_I8MM},
#endif
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

#if defined(DQ_SIMDE)
/* Kernels of all levels are compiled with SIMDe, for tests/kernels. */
static unsigned detect(void)
{
    unsigned mask = 0;
    for (size_t i = 0; i < LEVELS; i++)
        mask |= levels[i].bit;
    return mask;
}
#elif defined(DQ_X86)
static uint64_t xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

static unsigned detect(void)
{
    unsigned a, b, c, d, mask = DQ_ISA_C;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return mask;
    bool sse41 = (c >> 19) & 1, fma = (c >> 12) & 1, osxsave = (c >> 27) & 1, avx = (c >> 28) & 1;
    bool f16c = (c >> 29) & 1;
    if (sse41)
        mask |= DQ_ISA_SSE41;
    /* A CPU flag is not sufficient: the system must save the vector registers (XCR0 bits 1-2, 5-7, 17-18). */
    uint64_t saved = osxsave ? xcr0() : 0;
    unsigned b7 = 0, c7 = 0, d7 = 0, a71 = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        b7 = b;
        c7 = c;
        d7 = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
        a71 = a;
    bool avx2 = (b7 >> 5) & 1;
    if (!(avx && avx2 && fma && f16c && (saved & 6) == 6))
        return mask;
    mask |= DQ_ISA_AVX2;
    if ((a71 >> 4) & 1)
        mask |= DQ_ISA_AVXVNNI;
    bool f = (b7 >> 16) & 1, dq = (b7 >> 17) & 1, bw = (b7 >> 30) & 1, vl = (b7 >> 31) & 1;
    if (!(f && dq && bw && vl && (saved & 0xE6) == 0xE6))
        return mask;
    mask |= DQ_ISA_AVX512;
    if ((c7 >> 11) & 1)
        mask |= DQ_ISA_AVX512VNNI;
    if ((c7 >> 1) & 1)
        mask |= DQ_ISA_AVX512VBMI;
    bool tiles = (d7 >> 24) & 1, tiles_of_bytes = (d7 >> 25) & 1;
    if ((mask & DQ_ISA_AVX512VNNI) && tiles && tiles_of_bytes && (saved & 0x60000) == 0x60000)
        mask |= DQ_ISA_AMX;
    return mask;
}
#elif defined(DQ_ARM64)
static unsigned detect(void)
{
    unsigned mask = DQ_ISA_C | DQ_ISA_NEON;
    if (getauxval(AT_HWCAP) & (1u << 20)) /* HWCAP_ASIMDDP. */
        mask |= DQ_ISA_DOTPROD;
    if ((mask & DQ_ISA_DOTPROD) && (getauxval(AT_HWCAP2) & (1u << 13))) /* HWCAP2_I8MM. */
        mask |= DQ_ISA_I8MM;
    return mask;
}
#else
static unsigned detect(void)
{
    return DQ_ISA_C;
}
#endif

/* Levels that the processor has and whose registers the system can save, whether this process requested them
 * or not. In virtual machines each cpuid traps: 40 us for all of them. */
static unsigned levels_of_cpu(void)
{
    static atomic_uint found;
    unsigned mask = atomic_load_explicit(&found, memory_order_relaxed);
    if (!mask) {
        mask = detect();
        atomic_store_explicit(&found, mask, memory_order_relaxed);
    }
    return mask;
}

/* Requests the tile registers from Linux: 8 KiB that it saves only for processes that request them. Returns
 * whether it grants them. */
static bool tiles_granted(void)
{
#if defined(DQ_X86) && !defined(DQ_SIMDE)
    enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
#else
    return true;
#endif
}

unsigned dq_cpu_isa(void)
{
    unsigned mask = levels_of_cpu();
    return (mask & DQ_ISA_AMX) && !tiles_granted() ? mask & ~(unsigned)DQ_ISA_AMX : mask;
}

static void list_levels(unsigned mask, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < LEVELS; i++)
        if (mask & levels[i].bit && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", levels[i].name);
}

dq_status dq_isa_from_name(const char *name, unsigned *mask, dq_error *err)
{
    /* Lower levels request nothing from the system. */
    unsigned cpu = strcmp(name, "amx") == 0 ? dq_cpu_isa() : levels_of_cpu(), lower = 0;
    char have[160];
    list_levels(cpu, have, sizeof have);
    for (size_t i = 0; i < LEVELS; i++) {
        lower |= levels[i].bit;
#ifdef DQ_X86
        if (levels[i].bit == DQ_ISA_AVX512) /* AVX-512 processors have VNNI with 512 bits, or none. */
            lower &= ~(unsigned)DQ_ISA_AVXVNNI;
#endif
        if (strcmp(levels[i].name, name) != 0)
            continue;
        if (!(cpu & levels[i].bit))
            return dq_fail(err, DQ_INVALID_ARGUMENT, "ISA level '%s' is not on this CPU, which has %s", name,
                           have);
        *mask = lower & cpu;
        return DQ_OK;
    }
    return dq_fail(err, DQ_INVALID_ARGUMENT, "ISA level '%s' is unknown, expected one of %s", name, have);
}

const char *dq_isa_highest(unsigned mask)
{
    const char *name = levels[0].name;
    for (size_t i = 0; i < LEVELS; i++)
        if (mask & levels[i].bit)
            name = levels[i].name;
    return name;
}

const char *dq_isa_name(size_t i, bool *available)
{
    if (i >= LEVELS)
        return NULL;
    if (available)
        *available = (dq_cpu_isa() & levels[i].bit) != 0;
    return levels[i].name;
}

/* The size in bytes of the data cache of a level (1 or 2), as Linux tells; 0 if it does not. */
static size_t cache_of_system(unsigned cache)
{
    enum { CACHES = 4 };
    for (unsigned i = 0; i < CACHES; i++) {
        static const char *const names[] = {"level", "type", "size"};
        char path[96], text[3][16] = {"", "", ""};
        for (unsigned j = 0; j < 3; j++) {
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", i, names[j]);
            FILE *file = fopen(path, "re");
            if (!file)
                return 0;
            if (!fgets(text[j], sizeof text[j], file))
                text[j][0] = '\0';
            fclose(file);
        }
        if ((unsigned)(text[0][0] - '0') == cache && text[1][0] != 'I') /* data or unified */
            return (size_t)strtoul(text[2], NULL, 10) << 10;
    }
    return 0;
}

/* The C library knows the sizes on x86-64, and Linux elsewhere. */
static size_t cache_size(unsigned cache, size_t least, size_t usual, size_t most)
{
    long known = 0;
#ifdef _SC_LEVEL1_DCACHE_SIZE
    known = sysconf(cache == 1 ? _SC_LEVEL1_DCACHE_SIZE : _SC_LEVEL2_CACHE_SIZE);
#endif
    size_t size = known > 0 ? (size_t)known : cache_of_system(cache);
    return size < least ? usual : size < most ? size : most;
}

dq_cache_sizes dq_cpu_caches(void)
{
    /* Larger second-level caches are shared by cores. */
    enum { L1_MIN = 1 << 13, L1 = 1 << 15, L1_MAX = 1 << 18 };
    enum { L2_MIN = 1 << 16, L2 = 1 << 19, L2_MAX = 1 << 21 };
    static atomic_size_t l1, l2;
    dq_cache_sizes sizes = {atomic_load_explicit(&l1, memory_order_relaxed),
                            atomic_load_explicit(&l2, memory_order_relaxed)};
    if (sizes.l1 && sizes.l2)
        return sizes;
    sizes.l1 = cache_size(1, L1_MIN, L1, L1_MAX);
    sizes.l2 = cache_size(2, L2_MIN, L2, L2_MAX);
    atomic_store_explicit(&l1, sizes.l1, memory_order_relaxed);
    atomic_store_explicit(&l2, sizes.l2, memory_order_relaxed);
    return sizes;
}

static bool is_intel(void)
{
#ifdef DQ_X86
    unsigned a, name[3];
    return __get_cpuid(0, &a, &name[0], &name[2], &name[1]) && memcmp(name, "GenuineIntel", sizeof name) == 0;
#else
    return false;
#endif
}

size_t dq_cpu_prefetch_distance(void)
{
    enum { INTEL = 2048, USUAL = 8192 };
    static atomic_size_t distance;
    size_t known = atomic_load_explicit(&distance, memory_order_relaxed);
    if (known)
        return known;
    known = is_intel() ? INTEL : USUAL;
    atomic_store_explicit(&distance, known, memory_order_relaxed);
    return known;
}

/* Whether the CPU is the first of its core's sibling list, which represents the core. */
static bool first_of_core(unsigned cpu)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    unsigned first = cpu;
    int got = fscanf(file, "%u", &first);
    fclose(file);
    return got != 1 || first == cpu;
}

static unsigned cores_of_set(const cpu_set_t *set)
{
    unsigned cores = 0, cpus = 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, set))
            continue;
        cpus++;
        if (first_of_core(cpu))
            cores++;
    }
    /* A process bound only to second siblings still has the CPUs to which it is bound. */
    return cores ? cores : cpus ? cpus : 1;
}

unsigned dq_cpu_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    unsigned cores = cores_of_set(&set), quota = cores > 1 ? dq_cpu_quota("") : 0;
    return quota && quota < cores ? quota : cores;
}

bool dq_cpu_usable(unsigned cpu)
{
    cpu_set_t set;
    return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(cpu, &set);
}

void dq_cpu_pin(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set); /* 0: this thread. */
}
