/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment: rounding mode, flush-to-zero (FTZ, DAZ), exception masks and exception
 * flags of a thread.
 *
 * Results must not depend on what a caller has set there, and a call must leave it as it was. So each public
 * function that computes with floats enters the default environment first and restores the caller's last.
 * Threads of a pool are started inside such a function, and inherit the default environment. */
#ifndef DQ_BASE_FPENV_H
#define DQ_BASE_FPENV_H

#if defined(__x86_64__) || defined(__aarch64__)
#include <stdint.h>
/** MXCSR and the x87 control word; FPCR and FPSR. */
typedef struct dq_fpenv {
    uint64_t control, status;
} dq_fpenv;
#else
#include <fenv.h>
typedef fenv_t dq_fpenv;
#endif

/** Sets the default environment: round to nearest, denormals kept, no exception traps. Returns the thread's
 * own, for dq_fpenv_leave. A few nanoseconds. */
dq_fpenv dq_fpenv_enter(void);
/** Restores the environment that dq_fpenv_enter returned, exception flags included. */
void dq_fpenv_leave(dq_fpenv own);

#endif
