/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of portable C, one float at a time, for the kernel templates (float_math.h explains the
 * names). */
#ifndef DQ_KERNELS_VEC_C_H
#define DQ_KERNELS_VEC_C_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { VF_LANES = 1, VD_LANES = 1, VF_HALVES = 1, VF_FUSED = 0 };
typedef float vf;
typedef uint32_t vi;
typedef bool vm;
typedef double vd;

static inline vf vf_load(const float *p)
{
    return *p;
}
static inline void vf_store(float *p, vf a)
{
    *p = a;
}
static inline vf vf_set(float a)
{
    return a;
}
static inline vf vf_add(vf a, vf b)
{
    return a + b;
}
static inline vf vf_sub(vf a, vf b)
{
    return a - b;
}
static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}
static inline vf vf_div(vf a, vf b)
{
    return a / b;
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return fmaf(a, b, c);
}
static inline vf vf_sqrt(vf a)
{
    return sqrtf(a);
}
static inline vf vf_floor(vf a)
{
    return floorf(a);
}
static inline vf vf_round(vf a)
{
    return rintf(a);
}
static inline vf vf_min(vf a, vf b)
{
    return a < b ? a : b;
}
static inline vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}
static inline vm vf_less(vf a, vf b)
{
    return a < b;
}
static inline vm vf_unordered(vf a, vf b)
{
    return a != a || b != b;
}
static inline bool vm_all(vm m)
{
    return m;
}
static inline vf vf_pick(vm m, vf a, vf b)
{
    return m ? a : b;
}
static inline vi vf_bits(vf a)
{
    vi b;
    memcpy(&b, &a, sizeof b);
    return b;
}
static inline vf vi_float(vi a)
{
    vf b;
    memcpy(&b, &a, sizeof b);
    return b;
}
static inline vf vi_to_float(vi a)
{
    return (float)(int32_t)a;
}
static inline vi vi_set(uint32_t a)
{
    return a;
}
static inline vi vi_add(vi a, vi b)
{
    return a + b;
}
static inline vi vi_sub(vi a, vi b)
{
    return a - b;
}
static inline vi vi_and(vi a, vi b)
{
    return a & b;
}
static inline vi vi_xor(vi a, vi b)
{
    return a ^ b;
}
static inline vi vi_left_23(vi a)
{
    return a << 23;
}
/* Arithmetic shifts, of signed numbers. */
static inline vi vi_right_1(vi a)
{
    return (vi)((int32_t)a >> 1);
}
static inline vi vi_right_23(vi a)
{
    return (vi)((int32_t)a >> 23);
}
static inline vd vd_zero(void)
{
    return 0;
}
static inline vd vf_half(vf a, int half)
{
    (void)half;
    return (double)a;
}
static inline vd vd_add(vd a, vd b)
{
    return a + b;
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return fma(a, b, c);
}
static inline vd vd_load(const double *p)
{
    return *p;
}
static inline vd vd_load_floats(const float *p)
{
    return (double)*p;
}
static inline void vd_store(double *p, vd a)
{
    *p = a;
}
static inline vd vd_set(double a)
{
    return a;
}
static inline vd vd_sqrt(vd a)
{
    return sqrt(a);
}

static inline vd vd_mul(vd a, vd b)
{
    return a * b;
}
static inline void vd_store_floats(float *p, vd a)
{
    *p = (float)a;
}
/* vf_rotate: lane l gets lane l ^ h (there is only one); vf_first: the first lane. */
#define vf_rotate(a, h) (a)
#define vf_first(a) (a)
#define vd_rotate(a, h) (a)
#define vd_first(a) (a)
/* Every second element. */
static inline vf vf_load_even(const float *p)
{
    return *p;
}
static inline vd vd_load_even(const double *p)
{
    return *p;
}

#endif
