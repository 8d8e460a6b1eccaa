/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU can do, as a mask of ISA levels. Levels are ordered: a level includes the lower ones that the
 * CPU has, so that one name ("avx2") says which kernels may be used. */
#ifndef DQ_BASE_CPU_H
#define DQ_BASE_CPU_H

#include <dqrun/dqrun.h>

/** One bit a level. DQ_ISA_C is always set. */
typedef enum dq_isa {
    DQ_ISA_C = 1u << 0,
    DQ_ISA_SSE41 = 1u << 1,
    DQ_ISA_AVX2 = 1u << 2, /**< with FMA and F16C */
    DQ_ISA_AVXVNNI = 1u << 3,
    DQ_ISA_AVX512 = 1u << 4, /**< F, BW, VL, DQ */
    DQ_ISA_AVX512VNNI = 1u << 5,
    DQ_ISA_AVX512VBMI = 1u << 6,
    DQ_ISA_AMX = 1u << 7, /**< tiles of 8-bit integers */
    DQ_ISA_NEON = 1u << 8,
    DQ_ISA_DOTPROD = 1u << 9,
    DQ_ISA_I8MM = 1u << 10
} dq_isa;

/** The levels of this CPU that the operating system also saves registers for. Linux does so for the tiles of
 * AMX when a process has asked for it, as this does. */
unsigned dq_cpu_isa(void);
/** The mask for a level's name: it and all lower levels (avxvnni is not lower than avx512), cut to what this
 * CPU has; tiles are asked for only where they are named. A name of another CPU family or unknown, or a level
 * that this CPU lacks, is refused with a sentence that lists those that can be had. */
dq_status dq_isa_from_name(const char *name, unsigned *mask, dq_error *err);
/** The name of the highest level in `mask`. */
const char *dq_isa_highest(unsigned mask);
/** Physical cores that this process may run on, and may use all the time, at least 1. */
unsigned dq_cpu_cores(void);
/** Whether this process may run on processor `cpu`, numbered as by the system. */
bool dq_cpu_usable(unsigned cpu);
/** Keeps the calling thread on processor `cpu`; does nothing where the system refuses. */
void dq_cpu_pin(unsigned cpu);
/** Processors whose time Linux's control groups leave to this process, rounded down, as a thread too many is
 * stopped for the rest of each period; at least 1. 0: no limit. `root` stands before the paths of /proc and
 * /sys ("" but in tests). */
unsigned dq_cpu_quota(const char *root);

#endif
