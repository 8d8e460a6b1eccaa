/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions that give the same bits on every processor, with every compiler and C library.
 *
 * A C library chooses its functions by the processor: with and without fused multiply-add they differ in the
 * last bit. These functions use additions, multiplications, divisions and square roots of doubles in a fixed
 * order, whose bits IEEE 754 determines. Nothing here fuses. No table comes from elsewhere: tables.py
 * computes the constants when dqrun is built. The functions assume rounding to nearest.
 *
 * Accuracy in units in the last place, measured by tests/math against a 200-bit reference: 0.8 for sin, cos,
 * tan and sinh; 0.75 for exp and pow, whose denormal results are rounded twice; 0.65 for erf and cosh; 0.55
 * for the others. Functions of floats compute in double and round once: 0.5001. A result that is a double is
 * exact.
 *
 * Special values follow C99, annex F: signed zeros, infinities, NaN, the cases of pow. Denormal arguments and
 * results are treated like other numbers. errno and the exception flags are not set deliberately. */
#ifndef DQ_BASE_MATH_H
#define DQ_BASE_MATH_H

double dq_exp(double x);
double dq_expm1(double x);
double dq_log(double x);
double dq_log1p(double x);
double dq_pow(double x, double y);

double dq_sin(double x);
double dq_cos(double x);
double dq_tan(double x);
double dq_asin(double x);
double dq_acos(double x);
double dq_atan(double x);

double dq_sinh(double x);
double dq_cosh(double x);
double dq_tanh(double x);
double dq_asinh(double x);
double dq_acosh(double x);
double dq_atanh(double x);

double dq_erf(double x);

/* For single floats; the kernels of float_rows.h compute whole rows. */
float dq_powf(float x, float y);
float dq_sinf(float x);
float dq_cosf(float x);
float dq_tanf(float x);
float dq_sinhf(float x);
float dq_coshf(float x);
float dq_asinhf(float x);
float dq_acoshf(float x);
float dq_atanhf(float x);

#endif
