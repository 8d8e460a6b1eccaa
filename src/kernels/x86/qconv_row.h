/* What rows of convolutions share. */
#ifndef DQ_KERNELS_X86_QCONV_ROW_H
#define DQ_KERNELS_X86_QCONV_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* Whether these are the pairs of a kernel of 3×3 whose rows are as far apart as rows of outputs. */
static inline bool three_by_three(const ptrdiff_t *offsets, size_t taps, size_t step)
{
    for (size_t t = 2; t < taps && taps == 6; t++)
        if (offsets[t] - offsets[t - 2] != (ptrdiff_t)step)
            return false;
    return taps == 6;
}

#endif
