/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the members of dq_rows_f32. Included once per ISA level, after its vec_<isa>.h; the including
 * file fills its record with FLOAT_ROWS. */
#include "kernels/elementwise/divide_body.h"
#include "kernels/elementwise/float_math.h"
#include "kernels/elementwise/float_rows.h"
#include "kernels/elementwise/row_tails_body.h"

#include <stdbool.h>
#include <string.h>

enum { PARTS = GROUP / VF_LANES, HALVES = GROUP / VD_LANES, BLOCK = 256 };

/* ---- Functions of one and two operands ----------------------------------------------------------------- */

/* A member's loop over whole vectors. A step is VF_LANES, or 0 if one vector is used for all. */
typedef void whole_fn(const float *a, size_t a_step, const float *b, size_t b_step, size_t n, float *y);

/* Returns x, or `workspace` filled with *x if step is 0. */
static inline const float *broadcast(const float *x, size_t step, float workspace[VF_LANES])
{
    if (step)
        return x;
    vf_store(workspace, vf_set(*x));
    return workspace;
}

/* Runs `whole` on the whole vectors of a row and then on its padded tail. One copy of each function's code
 * serves both. Steps are 0 or 1. */
static __attribute__((noinline)) void by_vectors(whole_fn *whole, const float *a, size_t a_step,
                                                 const float *b, size_t b_step, size_t n, float *y)
{
    size_t rest = n % VF_LANES, done = n - rest;
    float a_workspace[VF_LANES] = {0}, b_workspace[VF_LANES] = {0};
    if (n == 0)
        return;
    a = broadcast(a, a_step, a_workspace);
    b = broadcast(b, b_step, b_workspace);
    whole(a, a_step * VF_LANES, b, b_step * VF_LANES, done, y);
    if (rest == 0)
        return;
    if (a_step)
        memcpy(a_workspace, a + done, rest * sizeof *a);
    if (b_step)
        memcpy(b_workspace, b + done, rest * sizeof *b);
    whole(a_workspace, 0, b_workspace, 0, VF_LANES, a_workspace);
    memcpy(y + done, a_workspace, rest * sizeof *y);
}

#define WHOLE(name, expr)                                                                                    \
    static void name##_whole(const float *a, size_t a_step, const float *b, size_t b_step, size_t n,         \
                             float *y)                                                                       \
    {                                                                                                        \
        for (size_t i = 0; i < n; i += VF_LANES, a += a_step, b += b_step) {                                 \
            const vf u = vf_load(a), v = vf_load(b);                                                         \
            vf_store(y + i, expr);                                                                           \
        }                                                                                                    \
    }

#define PAIR(name, expr)                                                                                     \
    WHOLE(name, expr)                                                                                        \
    static void name##_row(const float *a, size_t a_step, const float *b, size_t b_step, size_t n, float *y) \
    {                                                                                                        \
        by_vectors(name##_whole, a, a_step, b, b_step, n, y);                                                \
    }

#define MAP1(name, expr)                                                                                     \
    WHOLE(name, expr)                                                                                        \
    static void name##_row(const float *x, size_t n, float alpha, float *y)                                  \
    {                                                                                                        \
        by_vectors(name##_whole, x, 1, &alpha, 0, n, y);                                                     \
    }

#define MAP(name)                                                                                            \
    static void name##_whole(const float *a, size_t a_step, const float *b, size_t b_step, size_t n,         \
                             float *y)                                                                       \
    {                                                                                                        \
        (void)a_step;                                                                                        \
        (void)b;                                                                                             \
        (void)b_step;                                                                                        \
        for (size_t i = 0; i < n; i += VF_LANES)                                                             \
            vf_store(y + i, name##_any(vf_load(a + i)));                                                     \
    }                                                                                                        \
    static void name##_row(const float *x, size_t n, float *y)                                               \
    {                                                                                                        \
        by_vectors(name##_whole, x, 1, x, 1, n, y);                                                          \
    }

/* Maximum and minimum that keep a NaN of u or v. */
static inline vf larger(vf u, vf v)
{
    return vf_pick(vf_unordered(u, u), u, vf_max(u, v));
}

static inline vf smaller(vf u, vf v)
{
    return vf_pick(vf_unordered(u, u), u, vf_min(u, v));
}

MAP(exp)
MAP(log)
MAP(erf)
MAP(tanh)
MAP(sigmoid)
MAP(sin)
MAP(cos)
MAP(asin)
MAP(acos)
MAP(atan)
MAP(hard_swish)
MAP(softplus)
MAP(mish)
MAP(gelu)
MAP(gelu_tanh)
MAP(round)
MAP1(floor, floor_any(u, v))
MAP1(silu, silu_any(u, v))
MAP1(elu, elu_any(u, v))
PAIR(add, vf_add(u, v))
PAIR(sub, vf_sub(u, v))
PAIR(mul, vf_mul(u, v))
PAIR(div, vf_div(u, v))
PAIR(min, smaller(u, v))
PAIR(max, larger(u, v))

static void scale_row(const float *x, size_t n, float factor, float *y)
{
    const vf f = vf_set(factor);
    size_t i = 0;
    if (n < VF_LANES) {
        if (n > 0)
            store_few(y, n, vf_mul(load_few(x, n), f));
        return;
    }
    const vf last = vf_mul(vf_load(x + n - VF_LANES), f); /* y may be x */
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, vf_mul(vf_load(x + i), f));
    vf_store(y + n - VF_LANES, last);
}

static void hard_sigmoid_row(const float *x, size_t n, float alpha, float beta, float *y)
{
    const vf a = vf_set(alpha), b = vf_set(beta);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, hard_sigmoid_any(vf_load(x + i), a, b));
    if (i < n)
        store_few(y + i, n - i, hard_sigmoid_any(load_few(x + i, n - i), a, b));
}

static inline vf clipped(vf v, vf low, vf high)
{
    return vf_min(high, vf_max(low, v));
}

static void clip_row(const float *x, size_t n, float low, float high, float *y)
{
    const vf l = vf_set(low), h = vf_set(high);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, clipped(vf_load(x + i), l, h));
    if (i < n)
        store_few(y + i, n - i, clipped(load_few(x + i, n - i), l, h));
}

static void divide_row(const float *x, size_t n, float by, float *y)
{
    if (!VF_FUSED) {
        div_row(x, 1, &by, 0, n, y);
        return;
    }
    const size_t rest = n % VF_LANES, whole = n - rest;
    const divisor s = divisor_of(by);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(y + i, divided(vf_load(x + i), &s));
    if (rest)
        store_few(y + whole, rest, vf_div(load_few(x + whole, rest), s.by));
}

/* Fake quantization of whole vectors. It clamps before the division if dividing is safe (dq_divides), else
 * after it. Both give the same: the quotient of a bound times the scale is much nearer to the bound than to
 * the next integer. */
static __attribute__((noinline)) void requantize_whole(const float *x, size_t n, float scale, float low,
                                                       float high, float *y)
{
    const float by = dq_divides(scale) ? scale : 1;
    const divisor s = divisor_of(by);
    const vf least = vf_set(low * by), most = vf_set(high * by), factor = vf_set(scale);
    const vf magic = vf_set(12582912.0f); /* rounds floats below 2^22 when it is added and subtracted */
    if (by != scale) {
        div_row(x, 1, &scale, 0, n, y);
        x = y;
    }
    for (size_t i = 0; i < n; i += VF_LANES) {
        vf v = divided(vf_min(vf_max(vf_load(x + i), least), most), &s);
        vf_store(y + i, vf_mul(vf_sub(vf_add(v, magic), magic), factor));
    }
}

static void requantize_row(const float *x, size_t n, float scale, float low, float high, float *y)
{
    const size_t rest = n % VF_LANES, whole = n - rest;
    requantize_whole(x, whole, scale, low, high, y);
    if (rest) {
        float some[VF_LANES];
        vf_store(some, load_few(x + whole, rest));
        requantize_whole(some, VF_LANES, scale, low, high, some);
        memcpy(y + whole, some, rest * sizeof *y);
    }
}

/* ---- Sums ---------------------------------------------------------------------------------------------- */

/* Tree reduction over `count` lanes or vectors, 2 to 16 and constant: first l and l + 8, then l and l + 4,
 * l and l + 2, l and l + 1. */
#define HALVE(count, step)                                                                                   \
    do {                                                                                                     \
        if ((count) > 8)                                                                                     \
            step(8);                                                                                         \
        if ((count) > 4)                                                                                     \
            step(4);                                                                                         \
        if ((count) > 2)                                                                                     \
            step(2);                                                                                         \
        if ((count) > 1)                                                                                     \
            step(1);                                                                                         \
    } while (0)
#define JOIN(to, h, join)                                                                                    \
    for (int l = 0; l < (h); l++)                                                                            \
    (to)[l] = join((to)[l], (to)[l + (h)])

#define FOLD(name, vector, number, count, lanes, first)                                                      \
    static inline number name(vector lane[count])                                                            \
    {                                                                                                        \
        HALVE(count, name##_VECTORS);                                                                        \
        HALVE(lanes, name##_LANES);                                                                          \
        return first(lane[0]);                                                                               \
    }
#define fold_floats_VECTORS(h) JOIN(lane, h, vf_add)
#define fold_floats_LANES(h) lane[0] = vf_add(lane[0], vf_rotate(lane[0], h))
#define fold_doubles_VECTORS(h) JOIN(lane, h, vd_add)
#define fold_doubles_LANES(h) lane[0] = vd_add(lane[0], vd_rotate(lane[0], h))
#define fold_largest_VECTORS(h) JOIN(lane, h, larger)
#define fold_largest_LANES(h) lane[0] = larger(lane[0], vf_rotate(lane[0], h))
#define fold_peak_VECTORS(h) JOIN(lane, h, vf_max)
#define fold_peak_LANES(h) lane[0] = vf_max(lane[0], vf_rotate(lane[0], h))
FOLD(fold_floats, vf, float, PARTS, VF_LANES, vf_first)
FOLD(fold_doubles, vd, double, HALVES, VD_LANES, vd_first)
FOLD(fold_largest, vf, float, PARTS, VF_LANES, vf_first)
FOLD(fold_peak, vf, float, PARTS, VF_LANES, vf_first)

static inline void clear_doubles(vd lane[HALVES])
{
    for (int p = 0; p < HALVES; p++)
        lane[p] = vd_zero();
}

static inline void add_to_doubles(vd lane[HALVES], int part, vf a)
{
    vd *to = lane + part * VF_HALVES;
    to[0] = vd_add(to[0], vf_half(a, 0));
    if (VF_HALVES > 1)
        to[VF_HALVES - 1] = vd_add(to[VF_HALVES - 1], vf_half(a, 1));
}

/* Maximum of a group and the groups before it. One comparison checks two vectors for NaN. */
static inline void larger_group(const float *from, vi sign_xor, vf most[PARTS], vf *odd)
{
    vf v[PARTS];
    for (int p = 0; p < PARTS; p++) {
        v[p] = vi_float(vi_xor(vf_bits(vf_load(from + p * VF_LANES)), sign_xor));
        most[p] = vf_max(v[p], most[p]);
    }
    for (int p = 0; p < PARTS; p += 2)
        *odd = vf_pick(vf_unordered(v[p], v[PARTS - 1 - p]), vf_set(NAN), *odd);
}

/* Maximum of the elements XORed with `sign`: the sign bit negates, for the minimum. */
static float largest(const float *x, size_t n, uint32_t sign)
{
    const vi sign_xor = vi_set(sign);
    vf most[PARTS], odd = vf_set(-INFINITY);
    float workspace[2 * GROUP];
    const size_t whole = n / GROUP * GROUP;
    for (int p = 0; p < PARTS; p++)
        most[p] = vf_set(-INFINITY);
    if (whole < n)
        larger_group(fill_up(x, whole, n, sign ? INFINITY : -INFINITY, workspace), sign_xor, most, &odd);
    for (size_t i = 0; i < whole; i += GROUP)
        larger_group(x + i, sign_xor, most, &odd);
    most[0] = larger(odd, most[0]);
    return fold_largest(most);
}

static float max_of(const float *x, size_t n)
{
    return largest(x, n, 0);
}

static float min_of(const float *x, size_t n)
{
    return -largest(x, n, 0x80000000);
}

static inline void peak_group(const float *from, vf most[PARTS])
{
    for (int p = 0; p < PARTS; p++)
        most[p] = vf_max(vf_load(from + p * VF_LANES), most[p]);
}

static float peak(const float *x, size_t n)
{
    const size_t whole = n / GROUP * GROUP;
    vf most[PARTS];
    float workspace[2 * GROUP];
    const float *rest = n > whole ? fill_up(x, whole, n, -INFINITY, workspace) : NULL;
    for (int p = 0; p < PARTS; p++)
        most[p] = vf_set(-INFINITY);
    for (size_t i = 0; i < whole; i += GROUP)
        peak_group(x + i, most);
    if (rest)
        peak_group(rest, most);
    return fold_peak(most);
}

/* An exponential is a long chain of dependent operations. A loop over whole exponentials leaves most of them
 * waiting in the processor's scheduler, which is then full. Therefore the range reduction of a block is one
 * loop and the polynomial another, with `reduced` between them. */
typedef struct reduced {
    float r[BLOCK], n[BLOCK]; /* those of exp_reduced */
} reduced;

static inline void reduce_group(const float *from, vf off, reduced *to, size_t at)
{
    for (int p = 0; p < PARTS; p++, at += VF_LANES) {
        vf n, r = exp_negative_reduced(vf_sub(vf_load(from + p * VF_LANES), off), &n);
        vf_store(to->r + at, r);
        vf_store(to->n + at, n);
    }
}

static inline void exp_group(const reduced *from, size_t at, vf sum[PARTS], float *to)
{
    for (int p = 0; p < PARTS; p++, at += VF_LANES) {
        vf e = exp_scaled(vf_load(from->r + at), vf_load(from->n + at));
        vf_store(to + p * VF_LANES, e);
        sum[p] = vf_add(sum[p], e);
    }
}

static double exp_sum(const float *x, size_t n, float off, float *y)
{
    const vf offs = vf_set(off);
    vd total[HALVES];
    reduced block;
    float workspace[2 * GROUP], last[GROUP];
    clear_doubles(total);
    for (size_t i = 0; i < n; i += BLOCK, x += BLOCK, y += BLOCK) {
        const size_t some = n - i < BLOCK ? n - i : BLOCK, whole = some / GROUP * GROUP;
        const float *rest = some > whole ? fill_up(x, whole, some, -INFINITY, workspace) : NULL;
        vf sum[PARTS];
        for (size_t k = 0; k < whole; k += GROUP)
            reduce_group(x + k, offs, &block, k);
        if (rest)
            reduce_group(rest, offs, &block, whole);
        for (int p = 0; p < PARTS; p++)
            sum[p] = vf_set(0.0f);
        for (size_t k = 0; k < whole; k += GROUP)
            exp_group(&block, k, sum, y + k);
        if (rest) {
            exp_group(&block, whole, sum, last);
            store_tail(y + whole, some - whole, last);
        }
        for (int p = 0; p < PARTS; p++)
            add_to_doubles(total, p, sum[p]);
    }
    return fold_doubles(total);
}

enum { COLUMNS = DQ_SOFTMAX_COLUMNS };

/* Maximum of each column, four vectors of columns at a time. The last vector may overlap the one before it.
 * Here and below it is loaded before that one is stored. */
static void column_peaks(const float *x, size_t x_step, size_t count, size_t n, float *peaks)
{
    enum { VECTORS = 4 };
    for (size_t i = 0; i < n; i += VECTORS * VF_LANES) {
        vf most[VECTORS];
        size_t at[VECTORS];
        for (int p = 0; p < VECTORS; p++) {
            at[p] = i + (size_t)p * VF_LANES < n - VF_LANES ? i + (size_t)p * VF_LANES : n - VF_LANES;
            most[p] = vf_set(-INFINITY);
        }
        const float *from = x;
        for (size_t t = 0; t < count; t++, from += x_step)
            for (int p = 0; p < VECTORS; p++)
                most[p] = vf_max(vf_load(from + at[p]), most[p]);
        for (int p = 0; p < VECTORS; p++)
            vf_store(peaks + at[p], most[p]);
    }
}

/* One row of exponentials; adds them to one lane of each column. */
static __attribute__((noinline)) void column_exps(const float *x, const float *peaks, size_t n, float *sum,
                                                  float *y)
{
    const size_t end = n - VF_LANES;
    const vf last = exp_negative(vf_sub(vf_load(x + end), vf_load(peaks + end)));
    const vf last_sum = vf_add(vf_load(sum + end), last);
    for (size_t i = 0; i < end; i += VF_LANES) {
        const vf e = exp_negative(vf_sub(vf_load(x + i), vf_load(peaks + i)));
        vf_store(y + i, e);
        vf_store(sum + i, vf_add(vf_load(sum + i), e));
    }
    vf_store(y + end, last);
    vf_store(sum + end, last_sum);
}

/* Sums of 8 or 16 lanes of each column. */
static void column_fold(float lane[GROUP][COLUMNS], size_t lanes, size_t n, double *sums)
{
    for (size_t i = 0; i < n; i += VD_LANES) {
        const size_t at = i < n - VD_LANES ? i : n - VD_LANES;
        vd v[GROUP / 2];
        for (int l = 0; l < GROUP / 2; l++)
            v[l] = vd_load_floats(lane[l] + at);
        if (lanes == GROUP)
            for (int l = 0; l < GROUP / 2; l++)
                v[l] = vd_add(v[l], vd_load_floats(lane[l + GROUP / 2] + at));
        for (int l = 0; l < GROUP / 4; l++)
            v[l] = vd_add(v[l], v[l + GROUP / 4]);
        vd_store(sums + at, vd_add(vd_add(v[0], v[2]), vd_add(v[1], v[3])));
    }
}

/* Exponentials and their sums; y NULL: the sums only. */
static void column_sums(const float *x, size_t x_step, size_t count, size_t n, const float *peaks, float *y,
                        size_t y_step, double *sums)
{
    const size_t lanes = count <= GROUP / 2 ? GROUP / 2 : GROUP;
    float lane[GROUP][COLUMNS], unseen[COLUMNS];
    double total[GROUP][COLUMNS];
    memset(lane, 0, lanes * sizeof *lane);
    for (size_t t = 0; t < count; t++) {
        if (t > 0 && t % BLOCK == 0)
            dq_softmax_block(lane[0], t == BLOCK, total[0]);
        column_exps(x + t * x_step, peaks, n, lane[t % GROUP], y ? y + t * y_step : unseen);
    }
    if (count > BLOCK)
        dq_softmax_total(lane[0], total[0], sums);
    else
        column_fold(lane, lanes, n, sums);
}

/* Last step of Softmax, x * factor, or (factor NULL) of LogSoftmax, (x - peak) + term. */
static inline void column_ends(const float *x, size_t n, const float *factor, const float *peaks,
                               const float *term, float *y)
{
    const size_t end = n - VF_LANES;
    const vf last = vf_load(x + end);
    if (factor) {
        for (size_t i = 0; i < end; i += VF_LANES)
            vf_store(y + i, vf_mul(vf_load(x + i), vf_load(factor + i)));
        vf_store(y + end, vf_mul(last, vf_load(factor + end)));
        return;
    }
    for (size_t i = 0; i < end; i += VF_LANES)
        vf_store(y + i, vf_add(vf_sub(vf_load(x + i), vf_load(peaks + i)), vf_load(term + i)));
    vf_store(y + end, vf_add(vf_sub(last, vf_load(peaks + end)), vf_load(term + end)));
}

static void softmax_columns(const float *x, size_t x_step, size_t count, size_t n, bool logs, float *y,
                            size_t y_step)
{
    float peaks[COLUMNS] = {0}, by[COLUMNS];
    double sums[COLUMNS];
    if (count == 0)
        return;
    column_peaks(x, x_step, count, n, peaks);
    column_sums(x, x_step, count, n, peaks, logs ? NULL : y, y_step, sums);
    dq_softmax_ends(sums, n, logs, by);
    for (size_t t = 0; t < count; t++, x += x_step, y += y_step)
        column_ends(logs ? x : y, n, logs ? NULL : by, peaks, by, y);
}

static double sum(const float *x, size_t n)
{
    vd total[HALVES];
    float workspace[2 * GROUP];
    clear_doubles(total);
    for (size_t i = 0; i < n; i += GROUP) {
        const float *from = group_at(x, i, n, 0, workspace);
        for (int p = 0; p < HALVES; p++)
            total[p] = vd_add(total[p], vd_load_floats(from + p * VD_LANES));
    }
    return fold_doubles(total);
}

static inline void add_group(const float *from, size_t step, size_t count, const double *sums,
                             vd total[HALVES])
{
    for (int p = 0; p < HALVES; p++)
        total[p] = vd_load(sums + p * VD_LANES);
    for (size_t t = 0; t < count; t++, from += step)
        for (int p = 0; p < HALVES; p++)
            total[p] = vd_add(total[p], vd_load_floats(from + p * VD_LANES));
}

static inline void store_group(double *sums, const vd total[HALVES])
{
    for (int p = 0; p < HALVES; p++)
        vd_store(sums + p * VD_LANES, total[p]);
}

static void add_to(const float *x, size_t step, size_t count, size_t n, double *sums)
{
    vd total[HALVES], last[HALVES]; /* `last`: the last group; it may overlap the one before it */
    if (n >= GROUP)
        add_group(x + n - GROUP, step, count, sums + n - GROUP, last);
    for (size_t i = 0; i + GROUP < n; i += GROUP) {
        add_group(x + i, step, count, sums + i, total);
        store_group(sums + i, total);
    }
    if (n >= GROUP)
        store_group(sums + n - GROUP, last);
    for (size_t i = 0; i < n && n < GROUP; i++)
        for (size_t t = 0; t < count; t++)
            sums[i] += (double)x[t * step + i];
}

/* Extremes of one or two vectors of columns, a compile-time constant. NaNs are collected in `odd`, off the
 * critical path of the maxima. */
static inline void extreme_vectors(const float *from, size_t step, size_t count, vi sign_xor, int vectors,
                                   float *y)
{
    vf most[2], odd[2];
    for (int p = 0; p < vectors; p++) {
        most[p] = vi_float(vi_xor(vf_bits(vf_load(y + p * VF_LANES)), sign_xor));
        odd[p] = most[p];
    }
    for (size_t t = 0; t < count; t++, from += step)
        for (int p = 0; p < vectors; p++) {
            vf v = vi_float(vi_xor(vf_bits(vf_load(from + p * VF_LANES)), sign_xor));
            most[p] = vf_max(v, most[p]);
            odd[p] = vf_pick(vf_unordered(v, v), v, odd[p]);
        }
    for (int p = 0; p < vectors; p++) {
        most[p] = vf_pick(vf_unordered(odd[p], odd[p]), odd[p], most[p]);
        vf_store(y + p * VF_LANES, vi_float(vi_xor(vf_bits(most[p]), sign_xor)));
    }
}

static void extreme_to(const float *x, size_t step, size_t count, size_t n, bool least, float *y)
{
    const vi sign_xor = vi_set(least ? 0x80000000 : 0);
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES)
        extreme_vectors(x + i, step, count, sign_xor, 2, y + i);
    while (i < n && n >= VF_LANES) { /* the last vector may overlap the one before it */
        i = n - i < VF_LANES ? n - VF_LANES : i;
        extreme_vectors(x + i, step, count, sign_xor, 1, y + i);
        i += VF_LANES;
    }
    for (size_t t = 0; t < count && i < n; t++) {
        vf most = larger(vi_float(vi_xor(vf_bits(load_few(x + t * step, n)), sign_xor)),
                         vi_float(vi_xor(vf_bits(load_few(y, n)), sign_xor)));
        store_few(y, n, vi_float(vi_xor(vf_bits(most), sign_xor)));
    }
}

static inline void add_squares(vd lane[HALVES], const vf difference[PARTS])
{
#ifdef vf_in_memory
    float workspace[GROUP];
    for (int p = 0; p < PARTS; p++)
        vf_store(workspace + p * VF_LANES, difference[p]);
    vf_in_memory(workspace);
#endif
    for (int h = 0; h < HALVES; h++) {
#ifdef vf_in_memory
        const vd d = vd_load_floats(workspace + h * VD_LANES);
#else
        const vf part = difference[h / VF_HALVES];
        const vd d = h % VF_HALVES ? vf_half(part, 1) : vf_half(part, 0);
#endif
        lane[h] = vd_fma(d, d, lane[h]);
    }
}

static double squares(const float *x, size_t n, float high, float low)
{
    vf off = vf_set(high), rest = vf_set(low);
    vd total[HALVES];
    float workspace[GROUP] = {0};
    clear_doubles(total);
    for (size_t i = 0; i < n; i += GROUP) {
        const float *from = x + i;
        if (n - i < GROUP) {
            for (size_t l = 0; i + l < n; l++)
                workspace[l] = x[i + l] - high - low;
            from = workspace;
            off = rest = vf_set(0.0f);
        }
        vf difference[PARTS];
        for (int p = 0; p < PARTS; p++)
            difference[p] = vf_sub(vf_sub(vf_load(from + p * VF_LANES), off), rest);
        add_squares(total, difference);
    }
    return fold_doubles(total);
}

/* ---- Normalizations, weighted sums, LRN ---------------------------------------------------------------- */

static inline vf normalized(vf v, vf off, vf rest, vf factor)
{
    return vf_mul(vf_sub(vf_sub(v, off), rest), factor);
}

static void normalize(const float *x, size_t n, float high, float low, float factor, const float *gamma,
                      const float *beta, size_t step, float *y)
{
    static const float one = 1.0f, none = -0.0f;
    const vf off = vf_set(high), rest = vf_set(low), f = vf_set(factor);
    const size_t g_step = gamma ? step : 0, b_step = beta ? step : 0;
    float workspace[2][VF_LANES];
    size_t i = 0;
    if (n == 0)
        return;
    if (!gamma && !beta && factor == 1.0f)
        for (; i + VF_LANES <= n; i += VF_LANES)
            vf_store(y + i, vf_sub(vf_sub(vf_load(x + i), off), rest));
    gamma = broadcast(gamma ? gamma : &one, g_step, workspace[0]);
    beta = broadcast(beta ? beta : &none, b_step, workspace[1]);
    if (g_step + b_step == 0) {
        const vf g = vf_load(gamma), b = vf_load(beta);
        for (; i + VF_LANES <= n; i += VF_LANES)
            vf_store(y + i, vf_fma(normalized(vf_load(x + i), off, rest, f), g, b));
    }
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf g = vf_load(gamma), b = vf_load(beta);
        vf_store(y + i, vf_fma(normalized(vf_load(x + i), off, rest, f), g, b));
        gamma += g_step * VF_LANES;
        beta += b_step * VF_LANES;
    }
    if (i < n) {
        vf g = load_few(gamma, n - i), b = load_few(beta, n - i);
        store_few(y + i, n - i, vf_fma(normalized(load_few(x + i, n - i), off, rest, f), g, b));
    }
}

/* Adds to `vectors` vectors of y; the number is constant in each call, so that sums stay in registers. */
static inline __attribute__((always_inline)) void mix_vectors(const float *w, size_t count, const float *x,
                                                              size_t x_step, int vectors, float *y)
{
    enum { MAX_VECTORS = 8 };
    vf acc[MAX_VECTORS];
#pragma GCC unroll 8
    for (int p = 0; p < vectors; p++)
        acc[p] = vf_load(y + p * VF_LANES);
    for (size_t t = 0; t < count; t++, x += x_step)
#pragma GCC unroll 8
        for (int p = 0; p < vectors; p++)
            acc[p] = vf_fma(vf_set(w[t]), vf_load(x + p * VF_LANES), acc[p]);
#pragma GCC unroll 8
    for (int p = 0; p < vectors; p++)
        vf_store(y + p * VF_LANES, acc[p]);
}

static void mix(const float *w, size_t count, const float *x, size_t x_step, size_t n, float *y)
{
    enum { WIDE = 8 * VF_LANES, HALF = 4 * VF_LANES };
    size_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        mix_vectors(w, count, x + i, x_step, 8, y + i);
    if (i + HALF <= n) {
        mix_vectors(w, count, x + i, x_step, 4, y + i);
        i += HALF;
    }
    for (; i < n; i += VF_LANES) {
        size_t few = n - i < VF_LANES ? n - i : VF_LANES;
        vf acc = load_few(y + i, few);
        for (size_t t = 0; t < count; t++)
            acc = vf_fma(vf_set(w[t]), load_few(x + t * x_step + i, few), acc);
        store_few(y + i, few, acc);
    }
}

#include "kernels/elementwise/heads_f32_body.h"

static inline vf lrn_of(vf x, vf squares_of, vf alpha, vf bias)
{
    vf p = vf_fma(alpha, squares_of, bias), root = vf_sqrt(p);
    return vf_div(x, vf_mul(root, vf_sqrt(root)));
}

static void lrn(const float *x, const float *around, size_t step, size_t count, float alpha, float bias,
                size_t n, float *y)
{
    const vf a = vf_set(alpha), b = vf_set(bias);
    for (size_t i = 0; i < n; i += VF_LANES) {
        const size_t few = n - i < VF_LANES ? n - i : VF_LANES;
        vf s = vf_set(0.0f);
        for (size_t t = 0; t < count; t++) {
            const float *row = around + t * step + i;
            vf c = few < VF_LANES ? load_few(row, few) : vf_load(row);
            s = vf_fma(c, c, s);
        }
        if (few < VF_LANES)
            store_few(y + i, few, lrn_of(load_few(x + i, few), s, a, b));
        else
            vf_store(y + i, lrn_of(vf_load(x + i), s, a, b));
    }
}

#define FLOAT_ROWS                                                                                           \
    {                                                                                                        \
        .exp = exp_row, .log = log_row, .erf = erf_row, .tanh = tanh_row, .sigmoid = sigmoid_row,            \
        .sin = sin_row, .cos = cos_row, .asin = asin_row, .acos = acos_row, .atan = atan_row,                \
        .hard_swish = hard_swish_row, .hard_sigmoid = hard_sigmoid_row, .softplus = softplus_row,            \
        .mish = mish_row, .gelu = gelu_row, .gelu_tanh = gelu_tanh_row, .round = round_row,                  \
        .floor = floor_row, .silu = silu_row, .elu = elu_row, .add = add_row, .sub = sub_row,                \
        .mul = mul_row, .div = div_row, .min = min_row, .max = max_row, .clip = clip_row,                    \
        .divide = divide_row, .requantize = requantize_row, .max_of = max_of, .min_of = min_of,              \
        .peak = peak, .add_to = add_to, .extreme_to = extreme_to, .exp_sum = exp_sum,                        \
        .softmax_columns = softmax_columns, .scale = scale_row, .sum = sum, .squares = squares,              \
        .normalize = normalize, .dots = dots, .mix = mix, .mix_heads = mix_heads, .lrn = lrn                 \
    }
