/* SPDX-License-Identifier: Apache-2.0 */
/* Scales of packed weights as vectors of floats. The file of the ISA level includes its vec_<isa>.h before.
 */
#ifndef DQ_KERNELS_NBITS_SCALES_H
#define DQ_KERNELS_NBITS_SCALES_H

#include "kernels/kernels.h"

/** The scales of VF_LANES columns of block `block`, from `column` on. */
static inline __attribute__((always_inline)) vf scales_at(const dq_nbits *b, size_t block, size_t column)
{
    const size_t i = block * DQ_NBITS_COLS + column;
    return b->scales ? vf_load(b->scales + i) : vf_load_f16(b->scales_f16 + i);
}

#endif
