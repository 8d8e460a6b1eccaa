/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment of a thread: rounding mode, flush-to-zero (FTZ, DAZ), exception masks and
 * exception flags.
 *
 * Results must not depend on the caller's environment, and a call must leave it unchanged. So each public
 * function that computes with floats first enters the default environment and finally restores the caller's.
 * Pool threads are started inside such a function, and inherit the default environment. */
#ifndef DQ_BASE_FPENV_H
#define DQ_BASE_FPENV_H

#if defined(__x86_64__) || defined(__aarch64__)
#include <stdint.h>
/** x86-64: MXCSR and the x87 control word; AArch64: FPCR and FPSR. */
typedef struct dq_fpenv {
    uint64_t control, status;
} dq_fpenv;
#else
#include <fenv.h>
typedef fenv_t dq_fpenv;
#endif

/** Sets the default environment: round to nearest, keep denormals, no exception traps. Returns the thread's
 * own environment for dq_fpenv_leave. Takes a few nanoseconds. */
dq_fpenv dq_fpenv_enter(void);
/** Restores the environment that dq_fpenv_enter returned, exception flags included. */
void dq_fpenv_leave(dq_fpenv own);

#endif
