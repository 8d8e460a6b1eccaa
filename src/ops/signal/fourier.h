/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transform of any length, in double. Short lengths use the definition, powers of two a
 * radix-2 FFT, and other lengths Bluestein's algorithm, a convolution with a chirp (Bluestein 1970). */
#ifndef DQ_OPS_FOURIER_H
#define DQ_OPS_FOURIER_H

#include "ops/op.h"

typedef struct dq_fourier {
    size_t n;
    size_t m;           /* length of the radix-2 transforms; 0: the definition is used */
    double *roots;      /* m (or n) complex numbers: exp(-2πi k / m) */
    double *chirp;      /* n complex: exp(-πi k² / n); NULL: n is a power of two */
    double *chirp_back; /* m complex: the transform of the conjugate chirp */
    size_t work;        /* doubles of workspace that dq_fourier_run needs */
} dq_fourier;

/** Makes the tables in the arena. Requires n >= 1. */
dq_status dq_fourier_make(dq_fourier *f, size_t n, dq_arena *arena, dq_error *err);

/** Transforms n complex numbers in place; `inverse` divides by n. */
void dq_fourier_run(const dq_fourier *f, bool inverse, double *signal, double *work);

#endif
