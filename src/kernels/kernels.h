/* Kernels: pointers and sizes only; no tensor, no status, no allocation. Portable C fills the table, then the
 * files of each ISA level in the mask overwrite what they do better (kernels.def lists all implementations).
 *
 * The contract of a slot stands over its type, and holds for every implementation bit for bit unless it says
 * otherwise. Common to all: pointers may be unaligned beyond their element type, n may be 0, sources are not
 * read past their end, destinations not written past theirs, sources and destinations do not overlap. */
#ifndef DQ_KERNELS_KERNELS_H
#define DQ_KERNELS_KERNELS_H

#include "kernels/qgemm.h"

#include <stddef.h>
#include <stdint.h>

/** Smallest and largest of x[0 … n-1] joined with the given *lo and *hi; NaN elements are passed over. */
typedef void dq_minmax_f32_fn(const float *x, size_t n, float *lo, float *hi);

typedef struct dq_kernels {
#define DQ_SLOT(type, name) type *name;
#include "kernels/slots.def"
#undef DQ_SLOT
} dq_kernels;

/* Every implementation in the list is declared by its line: a function, or a constant record of functions
 * that belong together (type `const dq_qgemm`). */
#define DQ_KERNEL(isa, type, slot, function) extern type function;
#include "kernels/kernels.def"
#undef DQ_KERNEL

/** The table for an ISA mask (dq_isa bits, see base/cpu.h). */
void dq_kernels_select(unsigned isa_mask, dq_kernels *out);

#endif
