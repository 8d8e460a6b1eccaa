/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fpenv.h"

/* These functions have a source file of their own: the compiler may move arithmetic across instructions that
 * change its environment, but not across an opaque call. */

#if defined(__x86_64__)

enum {
    MXCSR_DEFAULT = 0x1F80, /* All exceptions masked, no flags, round to nearest, neither FTZ nor DAZ. */
    X87_DEFAULT = 0x37F     /* The same, with 64-bit significands. */
};

dq_fpenv dq_fpenv_enter(void)
{
    uint32_t mxcsr;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    if (mxcsr != MXCSR_DEFAULT) {
        const uint32_t expected = MXCSR_DEFAULT;
        __asm__ volatile("ldmxcsr %0" : : "m"(expected) : "memory");
    }
    if (x87 != X87_DEFAULT) {
        const uint16_t expected = X87_DEFAULT;
        __asm__ volatile("fldcw %0" : : "m"(expected) : "memory");
    }
    return (dq_fpenv){.control = x87, .status = mxcsr};
}

/* The x87 flags need not be restored: the library uses no x87 instructions. */
void dq_fpenv_leave(dq_fpenv own)
{
    const uint32_t mxcsr = (uint32_t)own.status;
    const uint16_t x87 = (uint16_t)own.control;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
    if (x87 != X87_DEFAULT)
        __asm__ volatile("fldcw %0" : : "m"(x87) : "memory");
}

#elif defined(__aarch64__)

dq_fpenv dq_fpenv_enter(void)
{
    dq_fpenv own;
    __asm__ volatile("mrs %0, fpcr" : "=r"(own.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(own.status));
    if (own.control != 0) /* No traps, round to nearest, neither FZ nor FZ16. */
        __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)) : "memory");
    return own;
}

void dq_fpenv_leave(dq_fpenv own)
{
    if (own.control != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(own.control) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(own.status) : "memory");
}

#else

dq_fpenv dq_fpenv_enter(void)
{
    dq_fpenv own;
    fegetenv(&own);
    fesetenv(FE_DFL_ENV);
    return own;
}

void dq_fpenv_leave(dq_fpenv own)
{
    fesetenv(&own);
}

#endif
