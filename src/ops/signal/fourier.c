/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/signal/fourier.h"
#include "base/math.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

enum { MAX_DIRECT_LENGTH = 32 /* lengths up to this that are no powers of two use the definition */ };

static const double two_pi = 6.283185307179586;

static void fill_roots(double *roots, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        double angle = -two_pi * (double)k / (double)n;
        roots[2 * k] = dq_cos(angle);
        roots[2 * k + 1] = dq_sin(angle);
    }
}

/* ---- Powers of two ------------------------------------------------------------------------------------- */

static void swap_bits(double *x, size_t n)
{
    for (size_t i = 1, j = 0; i < n; i++) {
        size_t bit = n / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        for (size_t part = 0; i < j && part < 2; part++) {
            double kept = x[2 * i + part];
            x[2 * i + part] = x[2 * j + part];
            x[2 * j + part] = kept;
        }
    }
}

static void halving(const double *roots, double *x, size_t n)
{
    swap_bits(x, n);
    for (size_t size = 2; size <= n; size *= 2)
        for (size_t base = 0; base < n; base += size)
            for (size_t k = 0; k < size / 2; k++) {
                const double *w = roots + 2 * (k * (n / size));
                double *a = x + 2 * (base + k), *b = a + size;
                double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
}

/* ---- Other lengths ------------------------------------------------------------------------------------- */

static void by_definition(const dq_fourier *f, double *x, double *work)
{
    for (size_t k = 0; k < f->n; k++) {
        double re = 0, im = 0;
        for (size_t i = 0; i < f->n; i++) {
            const double *w = f->roots + 2 * (i * k % f->n);
            re += x[2 * i] * w[0] - x[2 * i + 1] * w[1];
            im += x[2 * i] * w[1] + x[2 * i + 1] * w[0];
        }
        work[2 * k] = re;
        work[2 * k + 1] = im;
    }
    memcpy(x, work, 2 * f->n * sizeof *x);
}

/* to = x · y (complex) */
static void multiply(double *to, const double *x, const double *y, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        double re = x[2 * k] * y[2 * k] - x[2 * k + 1] * y[2 * k + 1];
        to[2 * k + 1] = x[2 * k] * y[2 * k + 1] + x[2 * k + 1] * y[2 * k];
        to[2 * k] = re;
    }
}

static void conjugate(double *x, size_t n)
{
    for (size_t k = 0; k < n; k++)
        x[2 * k + 1] = -x[2 * k + 1];
}

static void by_chirp(const dq_fourier *f, double *x, double *work)
{
    memset(work, 0, 2 * f->m * sizeof *work);
    multiply(work, x, f->chirp, f->n);
    halving(f->roots, work, f->m);
    multiply(work, work, f->chirp_back, f->m);
    conjugate(work, f->m); /* inverse transform: conjugate, transform, conjugate */
    halving(f->roots, work, f->m);
    conjugate(work, f->m);
    multiply(x, work, f->chirp, f->n);
    for (size_t k = 0; k < 2 * f->n; k++)
        x[k] /= (double)f->m;
}

static void make_chirp(dq_fourier *f)
{
    size_t square = 0; /* k² modulo 2n, so that the angle stays exact */
    for (size_t k = 0; k < f->n; square = (square + 2 * k + 1) % (2 * f->n), k++) {
        double angle = -two_pi / 2 * (double)square / (double)f->n;
        f->chirp[2 * k] = dq_cos(angle);
        f->chirp[2 * k + 1] = dq_sin(angle);
        size_t mirrored = k ? f->m - k : 0;
        f->chirp_back[2 * k] = f->chirp_back[2 * mirrored] = f->chirp[2 * k];
        f->chirp_back[2 * k + 1] = f->chirp_back[2 * mirrored + 1] = -f->chirp[2 * k + 1];
    }
    halving(f->roots, f->chirp_back, f->m);
}

dq_status dq_fourier_make(dq_fourier *f, size_t n, dq_arena *arena, dq_error *err)
{
    *f = (dq_fourier){.n = n};
    bool power = (n & (n - 1)) == 0;
    if (n > SIZE_MAX / 128)
        return dq_no_memory(err, n, "a Fourier transform");
    for (f->m = n > MAX_DIRECT_LENGTH || power ? 1 : 0; f->m && f->m < (power ? n : 2 * n - 1);)
        f->m *= 2;
    size_t roots = f->m ? f->m : n;
    f->roots = DQ_NEW_ARRAY(arena, 2 * roots, double);
    f->work = 2 * roots;
    if (!f->roots)
        return dq_no_memory(err, 2 * roots * sizeof(double), "a Fourier transform");
    fill_roots(f->roots, roots);
    if (power || !f->m)
        return DQ_OK;
    f->chirp = DQ_NEW_ARRAY(arena, 2 * n, double);
    f->chirp_back = DQ_NEW_ARRAY(arena, 2 * f->m, double);
    if (!f->chirp || !f->chirp_back)
        return dq_no_memory(err, 2 * f->m * sizeof(double), "a Fourier transform");
    make_chirp(f);
    return DQ_OK;
}

void dq_fourier_run(const dq_fourier *f, bool inverse, double *signal, double *work)
{
    if (inverse)
        conjugate(signal, f->n);
    if (!f->m)
        by_definition(f, signal, work);
    else if (f->chirp)
        by_chirp(f, signal, work);
    else
        halving(f->roots, signal, f->n);
    if (inverse)
        conjugate(signal, f->n);
    for (size_t k = 0; inverse && k < 2 * f->n; k++)
        signal[k] /= (double)f->n;
}
