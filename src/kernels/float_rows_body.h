/* The members of dq_float_rows over the vector that a vec_<isa>.h defines. Included once by the file of each
 * ISA, after that header, which then fills its record with FLOAT_ROWS. */
#include "kernels/float_math.h"
#include "kernels/float_rows.h"

#include <stdbool.h>
#include <string.h>

enum { GROUP = 16, PARTS = GROUP / VF_LANES, HALVES = GROUP / VD_LANES, BLOCK = 256 };

/* ---- Ends of rows, shorter than a vector ----------------------------------------------------------------
 */

static inline vf load_few(const float *x, size_t n)
{
    float few[VF_LANES] = {0};
    memcpy(few, x, n * sizeof *x);
    return vf_load(few);
}

static inline void store_few(float *y, size_t n, vf a)
{
    float few[VF_LANES];
    vf_store(few, a);
    memcpy(y, few, n * sizeof *y);
}

/* A whole group: the row's, or what is left of it with `fill` behind it in `room`. */
static inline const float *group_at(const float *x, size_t i, size_t n, float fill, float room[GROUP])
{
    if (n - i >= GROUP)
        return x + i;
    for (size_t l = n - i; l < GROUP; l++)
        room[l] = fill;
    memcpy(room, x + i, (n - i) * sizeof *x);
    return room;
}

/* ---- Functions ------------------------------------------------------------------------------------------
 */

#define MAP_LOOP(expr)                                                                                       \
    size_t i = 0;                                                                                            \
    for (; i + VF_LANES <= n; i += VF_LANES) {                                                               \
        const vf v = vf_load(x + i);                                                                         \
        vf_store(y + i, expr);                                                                               \
    }                                                                                                        \
    if (i < n) {                                                                                             \
        const vf v = load_few(x + i, n - i);                                                                 \
        store_few(y + i, n - i, expr);                                                                       \
    }

#define MAP(name, expr)                                                                                      \
    static void name##_row(const float *x, size_t n, float *y)                                               \
    {                                                                                                        \
        MAP_LOOP(expr)                                                                                       \
    }

#define MAP1(name, expr)                                                                                     \
    static void name##_row(const float *x, size_t n, float alpha, float *y)                                  \
    {                                                                                                        \
        const vf a = vf_set(alpha);                                                                          \
        MAP_LOOP(expr)                                                                                       \
    }

MAP(exp, exp_any(v))
MAP(log, log_any(v))
MAP(erf, erf_any(v))
MAP(tanh, tanh_any(v))
MAP(sigmoid, sigmoid_any(v))
MAP(softplus, softplus_any(v))
MAP(mish, mish_any(v))
MAP(gelu, gelu_any(v))
MAP(gelu_tanh, gelu_tanh_any(v))
MAP1(silu, silu_any(v, a))
MAP1(elu, elu_any(v, a))
MAP1(scale, vf_mul(v, a))

/* ---- Two operands ---------------------------------------------------------------------------------------
 */

#define PAIR_LOOP(a_vector, a_few, b_vector, b_few, expr)                                                    \
    for (; i + VF_LANES <= n; i += VF_LANES) {                                                               \
        const vf u = a_vector, v = b_vector;                                                                 \
        vf_store(y + i, expr);                                                                               \
    }                                                                                                        \
    if (i < n) {                                                                                             \
        const vf u = a_few, v = b_few;                                                                       \
        store_few(y + i, n - i, expr);                                                                       \
    }

#define PAIR(name, expr)                                                                                     \
    static void name##_row(const float *a, size_t a_step, const float *b, size_t b_step, size_t n, float *y) \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n == 0)                                                                                          \
            return;                                                                                          \
        const vf one_a = vf_set(*a), one_b = vf_set(*b);                                                     \
        if (a_step && b_step) {                                                                              \
            PAIR_LOOP(vf_load(a + i), load_few(a + i, n - i), vf_load(b + i), load_few(b + i, n - i), expr)  \
        } else if (a_step) {                                                                                 \
            PAIR_LOOP(vf_load(a + i), load_few(a + i, n - i), one_b, one_b, expr)                            \
        } else if (b_step) {                                                                                 \
            PAIR_LOOP(one_a, one_a, vf_load(b + i), load_few(b + i, n - i), expr)                            \
        } else {                                                                                             \
            PAIR_LOOP(one_a, one_a, one_b, one_b, expr)                                                      \
        }                                                                                                    \
    }

/* a NaN in u or v stays */
static inline vf larger(vf u, vf v)
{
    return vf_pick(vf_unordered(u), u, vf_max(u, v));
}

static inline vf smaller(vf u, vf v)
{
    return vf_pick(vf_unordered(u), u, vf_min(u, v));
}

PAIR(add, vf_add(u, v))
PAIR(sub, vf_sub(u, v))
PAIR(mul, vf_mul(u, v))
PAIR(div, vf_div(u, v))
PAIR(min, smaller(u, v))
PAIR(max, larger(u, v))

/* ---- Sums -----------------------------------------------------------------------------------------------
 */

/* What is done with the halves of 2 to 16 lanes or vectors, a constant number: lanes l and l + 8, l + 4, l +
 * 2, l + 1. */
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
#define PLUS(a, b) ((a) + (b))

static inline float fold_floats(vf lane[PARTS])
{
    float few[VF_LANES];
#define VECTORS(h) JOIN(lane, h, vf_add)
#define LANES(h) JOIN(few, h, PLUS)
    HALVE(PARTS, VECTORS);
    vf_store(few, lane[0]);
    HALVE(VF_LANES, LANES);
#undef VECTORS
    return few[0];
}

static inline double fold_doubles(vd lane[HALVES])
{
    double few[VD_LANES];
#define VECTORS(h) JOIN(lane, h, vd_add)
    HALVE(HALVES, VECTORS);
    vd_store(few, lane[0]);
    HALVE(VD_LANES, LANES);
#undef VECTORS
#undef LANES
    return few[0];
}

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

/* Lanes of numbers are joined without branches. */
#define EXTREME(name, none, better, op, ordinary)                                                            \
    static inline float name##_lanes(float lane[GROUP])                                                      \
    {                                                                                                        \
        for (int l = 1; l < VF_LANES; l++)                                                                   \
            lane[0] = isnan(lane[l]) || lane[l] op lane[0] ? lane[l] : lane[0];                              \
        return lane[0];                                                                                      \
    }                                                                                                        \
    static float name(const float *x, size_t n)                                                              \
    {                                                                                                        \
        vf most[PARTS];                                                                                      \
        float room[GROUP];                                                                                   \
        for (int p = 0; p < PARTS; p++)                                                                      \
            most[p] = vf_set(none);                                                                          \
        for (size_t i = 0; i < n; i += GROUP) {                                                              \
            const float *from = group_at(x, i, n, none, room);                                               \
            for (int p = 0; p < PARTS; p++)                                                                  \
                most[p] = better(vf_load(from + p * VF_LANES), most[p]);                                     \
        }                                                                                                    \
        for (int p = 1; p < PARTS; p++)                                                                      \
            most[0] = better(most[0], most[p]);                                                              \
        vf_store(room, most[0]);                                                                             \
        if (!vm_all(ordinary(most[0])))                                                                      \
            return name##_lanes(room);                                                                       \
        HALVE(VF_LANES, name##_JOIN);                                                                        \
        return room[0];                                                                                      \
    }
#define BELOW_INFINITY(v) vf_less(v, vf_set(INFINITY))
#define ABOVE_INFINITY(v) vf_less(vf_set(-INFINITY), v)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define max_of_JOIN(h) JOIN(room, h, LARGER)
#define min_of_JOIN(h) JOIN(room, h, SMALLER)
EXTREME(max_of, -INFINITY, larger, >, BELOW_INFINITY)
EXTREME(min_of, INFINITY, smaller, <, ABOVE_INFINITY)

static double exp_sum(const float *x, size_t n, float off, float *y)
{
    const vf offs = vf_set(off);
    vd total[HALVES];
    float room[GROUP];
    clear_doubles(total);
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        size_t end = n - begin < BLOCK ? n : begin + BLOCK, i = begin;
        vf sum[PARTS], e;
        for (int p = 0; p < PARTS; p++)
            sum[p] = vf_set(0.0f);
        for (; i + GROUP <= end; i += GROUP)
            for (int p = 0; p < PARTS; p++) {
                e = exp_negative(vf_sub(vf_load(x + i + p * VF_LANES), offs));
                vf_store(y + i + p * VF_LANES, e);
                sum[p] = vf_add(sum[p], e);
            }
        if (i < end) {
            group_at(x, i, end, -INFINITY, room);
            for (int p = 0; p < PARTS; p++) {
                e = exp_negative(vf_sub(vf_load(room + p * VF_LANES), offs));
                vf_store(room + p * VF_LANES, e);
                sum[p] = vf_add(sum[p], e);
            }
            memcpy(y + i, room, (end - i) * sizeof *y);
        }
        for (int p = 0; p < PARTS; p++)
            add_to_doubles(total, p, sum[p]);
    }
    return fold_doubles(total);
}

static double sum(const float *x, size_t n)
{
    vd total[HALVES];
    float room[GROUP];
    clear_doubles(total);
    for (size_t i = 0; i < n; i += GROUP) {
        const float *from = group_at(x, i, n, 0, room);
        for (int p = 0; p < PARTS; p++)
            add_to_doubles(total, p, vf_load(from + p * VF_LANES));
    }
    return fold_doubles(total);
}

static void add_to(const float *x, size_t step, size_t count, size_t n, double *sums)
{
    size_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        vd total[HALVES];
        for (int p = 0; p < HALVES; p++)
            total[p] = vd_load(sums + i + p * VD_LANES);
        for (size_t t = 0; t < count; t++)
            for (int p = 0; p < PARTS; p++)
                add_to_doubles(total, p, vf_load(x + t * step + i + p * VF_LANES));
        for (int p = 0; p < HALVES; p++)
            vd_store(sums + i + p * VD_LANES, total[p]);
    }
    for (; i < n; i++)
        for (size_t t = 0; t < count; t++)
            sums[i] += (double)x[t * step + i];
}

static inline void add_squares(vd lane[HALVES], int part, vf a)
{
    for (int h = 0; h < VF_HALVES; h++) {
        vd d = h ? vf_half(a, 1) : vf_half(a, 0);
        lane[part * VF_HALVES + h] = vd_fma(d, d, lane[part * VF_HALVES + h]);
    }
}

static double squares(const float *x, size_t n, float high, float low)
{
    const vf off = vf_set(high), rest = vf_set(low);
    vd total[HALVES];
    float room[GROUP] = {0};
    size_t i = 0;
    clear_doubles(total);
    for (; i + GROUP <= n; i += GROUP)
        for (int p = 0; p < PARTS; p++)
            add_squares(total, p, vf_sub(vf_sub(vf_load(x + i + p * VF_LANES), off), rest));
    for (size_t l = 0; i + l < n; l++)
        room[l] = x[i + l] - high - low;
    if (i < n)
        for (int p = 0; p < PARTS; p++)
            add_squares(total, p, vf_load(room + p * VF_LANES));
    return fold_doubles(total);
}

static void dots(const float *a, const float *b, size_t b_step, size_t n, size_t count, float *out)
{
    enum { ROWS = 4 };
    float room[GROUP], other[GROUP];
    for (size_t t = 0; t < count; t += ROWS) {
        vf lane[ROWS][PARTS];
        const float *row[ROWS];
        for (size_t r = 0; r < ROWS; r++) {
            row[r] = b + (t + r < count ? t + r : t) * b_step;
            for (int p = 0; p < PARTS; p++)
                lane[r][p] = vf_set(0.0f);
        }
        for (size_t i = 0; i < n; i += GROUP) {
            const float *left = group_at(a, i, n, 0, room);
            for (size_t r = 0; r < ROWS; r++) {
                const float *right = group_at(row[r], i, n, 0, other);
                for (int p = 0; p < PARTS; p++)
                    lane[r][p] =
                        vf_fma(vf_load(left + p * VF_LANES), vf_load(right + p * VF_LANES), lane[r][p]);
            }
        }
        for (size_t r = 0; r < ROWS && t + r < count; r++)
            out[t + r] = fold_floats(lane[r]);
    }
}

/* ---- Rows made of rows ----------------------------------------------------------------------------------
 */

static inline vf normalized(vf v, vf off, vf rest, vf factor)
{
    return vf_mul(vf_sub(vf_sub(v, off), rest), factor);
}

static void normalize(const float *x, size_t n, float high, float low, float factor, const float *gamma,
                      const float *beta, size_t step, float *y)
{
    const vf off = vf_set(high), rest = vf_set(low), f = vf_set(factor);
    const vf one_gamma = vf_set(gamma && n ? *gamma : 1.0f), one_beta = vf_set(beta && n ? *beta : -0.0f);
    const bool gammas = gamma && step, betas = beta && step;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf g = gammas ? vf_load(gamma + i) : one_gamma, b = betas ? vf_load(beta + i) : one_beta;
        vf_store(y + i, vf_fma(normalized(vf_load(x + i), off, rest, f), g, b));
    }
    if (i < n) {
        size_t few = n - i;
        vf g = gammas ? load_few(gamma + i, few) : one_gamma, b = betas ? load_few(beta + i, few) : one_beta;
        store_few(y + i, few, vf_fma(normalized(load_few(x + i, few), off, rest, f), g, b));
    }
}

static void mix(const float *w, size_t count, const float *x, size_t x_step, size_t n, float *y)
{
    enum { WIDE = 4 };
    size_t i = 0;
    for (; i + WIDE * VF_LANES <= n; i += WIDE * VF_LANES) {
        vf acc[WIDE];
        for (int p = 0; p < WIDE; p++)
            acc[p] = vf_load(y + i + p * VF_LANES);
        for (size_t t = 0; t < count; t++)
            for (int p = 0; p < WIDE; p++)
                acc[p] = vf_fma(vf_set(w[t]), vf_load(x + t * x_step + i + p * VF_LANES), acc[p]);
        for (int p = 0; p < WIDE; p++)
            vf_store(y + i + p * VF_LANES, acc[p]);
    }
    for (; i < n; i += VF_LANES) {
        size_t few = n - i < VF_LANES ? n - i : VF_LANES;
        vf acc = load_few(y + i, few);
        for (size_t t = 0; t < count; t++)
            acc = vf_fma(vf_set(w[t]), load_few(x + t * x_step + i, few), acc);
        store_few(y + i, few, acc);
    }
}

static inline vf lrn_of(vf x, vf squares_of, vf alpha, vf bias)
{
    vf p = vf_fma(alpha, squares_of, bias), root = vf_sqrt(p);
    return vf_div(x, vf_mul(root, vf_sqrt(root)));
}

static void lrn(const float *x, const float *around, size_t step, size_t count, float alpha, float bias,
                size_t n, float *y)
{
    const vf a = vf_set(alpha), b = vf_set(bias);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf s = vf_set(0.0f);
        for (size_t t = 0; t < count; t++) {
            vf c = vf_load(around + t * step + i);
            s = vf_fma(c, c, s);
        }
        vf_store(y + i, lrn_of(vf_load(x + i), s, a, b));
    }
    if (i < n) {
        vf s = vf_set(0.0f);
        for (size_t t = 0; t < count; t++) {
            vf c = load_few(around + t * step + i, n - i);
            s = vf_fma(c, c, s);
        }
        store_few(y + i, n - i, lrn_of(load_few(x + i, n - i), s, a, b));
    }
}

#define FLOAT_ROWS                                                                                           \
    {                                                                                                        \
        .exp = exp_row, .log = log_row, .erf = erf_row, .tanh = tanh_row, .sigmoid = sigmoid_row,            \
        .softplus = softplus_row, .mish = mish_row, .gelu = gelu_row, .gelu_tanh = gelu_tanh_row,            \
        .silu = silu_row, .elu = elu_row, .add = add_row, .sub = sub_row, .mul = mul_row, .div = div_row,    \
        .min = min_row, .max = max_row, .max_of = max_of, .min_of = min_of, .add_to = add_to,                \
        .exp_sum = exp_sum, .scale = scale_row, .sum = sum, .squares = squares, .normalize = normalize,      \
        .dots = dots, .mix = mix, .lrn = lrn                                                                 \
    }
