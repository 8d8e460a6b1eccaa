/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the kernel table from kernels.def. */
#include "base/cpu.h"
#include "kernels/kernels.h"

#include <string.h>

void dq_kernels_select(unsigned isa_mask, dq_kernels *out)
{
    memset(out, 0, sizeof *out);
    out->isa = isa_mask;
#define DQ_KERNEL(isa, type, slot, function)                                                                 \
    if (isa_mask & (isa))                                                                                    \
        out->slot = &function;
#include "kernels/kernels.def"
#undef DQ_KERNEL
}
