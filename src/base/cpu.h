/* SPDX-License-Identifier: Apache-2.0 */
/* CPU features as a mask of ISA levels. Levels are ordered: a level includes the lower ones that the CPU has,
 * so that one name ("avx2") determines the allowed kernels. */
#ifndef DQ_BASE_CPU_H
#define DQ_BASE_CPU_H

#include <dqrun/dqrun.h>

/** One bit per level. DQ_ISA_C is always set. */
typedef enum dq_isa {
    DQ_ISA_C = 1u << 0,
    DQ_ISA_SSE41 = 1u << 1,
    DQ_ISA_AVX2 = 1u << 2, /**< With FMA and F16C. */
    DQ_ISA_AVXVNNI = 1u << 3,
    DQ_ISA_AVX512 = 1u << 4, /**< F, BW, VL, DQ. */
    DQ_ISA_AVX512VNNI = 1u << 5,
    DQ_ISA_AVX512VBMI = 1u << 6,
    DQ_ISA_AMX = 1u << 7, /**< Tiles of 8-bit integers. */
    DQ_ISA_NEON = 1u << 8,
    DQ_ISA_DOTPROD = 1u << 9,
    DQ_ISA_I8MM = 1u << 10
} dq_isa;

/** The levels of this CPU whose registers the operating system saves. Linux saves AMX tiles only after a
 * process requests it, which this function does. */
unsigned dq_cpu_isa(void);
/** Gives the mask of a level's name: the level and all lower ones (avxvnni is not lower than avx512) that
 * this CPU has. AMX tiles are requested from the system only if the name includes them. An unknown name, a
 * name of another CPU family, or a level that this CPU lacks is refused; the message lists the available
 * levels. */
dq_status dq_isa_from_name(const char *name, unsigned *mask, dq_error *err);
/** The name of the highest level in `mask`. */
const char *dq_isa_highest(unsigned mask);
/** Sizes of one core's data caches in bytes, or usual ones where the system does not tell. */
typedef struct dq_cache_sizes {
    size_t l1, l2;
} dq_cache_sizes;
dq_cache_sizes dq_cpu_caches(void);
/** How many bytes ahead a single pass over memory should prefetch, a multiple of cache lines. 2 KiB on
 * Intel's processors: with 8 KiB, tokens of a decoder took 1.12 times as long on a Xeon with AMX. Else 8 KiB:
 * with 4 KiB they took 1.12 times as long on a Zen 5. */
size_t dq_cpu_prefetch_distance(void);
/** Number of physical cores that this process may run on, limited by its CPU quota; at least 1. */
unsigned dq_cpu_cores(void);
/** Whether this process may run on processor `cpu`, by the system's numbering. */
bool dq_cpu_usable(unsigned cpu);
/** Pins the calling thread to processor `cpu`. Does nothing if the system refuses. */
void dq_cpu_pin(unsigned cpu);
/** The CPU quota of this process in Linux's control groups, in processors, at least 1; 0: no limit. It is
 * rounded down, because the scheduler throttles the process for the rest of each period if it has one thread
 * too many. `root` precedes the paths of /proc and /sys ("" except in tests). */
unsigned dq_cpu_quota(const char *root);

#endif
