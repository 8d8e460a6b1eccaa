/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of floats: every member bit for bit as portable C has it, and portable C against the double functions
 * of libm. */
#include "base/cpu.h"
#include "kernel_check.h"

#include <math.h>
#include <string.h>

static const dq_rows_f32 *portable(void)
{
    static dq_kernels table;
    dq_kernels_select(DQ_ISA_C, &table);
    return table.rows_f32;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool same(float a, float b)
{
    return isnan(a) ? isnan(b) : bits_of(a) == bits_of(b);
}

static void same_rows(const char *what, const float *got, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        KERNEL_FAIL_UNLESS(same(got[i], expected[i]), "%s, n %zu: element %zu is %.9g, expected %.9g", what,
                           n, i, (double)got[i], (double)expected[i]);
}

static void same_number(const char *what, double got, double expected, size_t n)
{
    bool fits = isnan(expected) ? isnan(got) : got == expected;
    KERNEL_FAIL_UNLESS(fits, "%s, n %zu: %.17g, expected %.17g", what, n, got, expected);
}

/* ---- Functions ----------------------------------------------------------------------------------------- */

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus_of(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double mish_of(double x)
{
    return x * tanh(softplus_of(x));
}

/* Gelu's arguments as the contract has them: their rounding is not to be held against the functions. */
static double gelu_of(double x)
{
    return x / 2 * (1 + erf((double)((float)x * 0.707106781f)));
}

static double gelu_tanh_of(double x)
{
    float v = (float)x;
    return x * sigmoid_of((double)(v * fmaf(v * v, 0.0713548163f, 1.59576912f)));
}

static double silu_of(double x)
{
    return x * sigmoid_of(x);
}

static double elu_of(double x)
{
    return x < 0 ? expm1(x) : x;
}

static double hard_sigmoid_of(double x)
{
    double r = x * 0.25 + 0.375;
    return r < 0 ? 0 : r > 1 ? 1 : r;
}

static double hard_swish_of(double x)
{
    float r = fmaf((float)x, 1.0f / 6, 0.5f);
    return x * (double)(r < 0 ? 0 : r > 1 ? 1 : r);
}

static void hard_sigmoid_row(const dq_rows_f32 *f, const float *x, size_t n, float *y)
{
    f->hard_sigmoid(x, n, 0.25f, 0.375f, y);
}

static void silu_row(const dq_rows_f32 *f, const float *x, size_t n, float *y)
{
    f->silu(x, n, 1.0f, y);
}

static void floor_row(const dq_rows_f32 *f, const float *x, size_t n, float *y)
{
    f->floor(x, n, 0.0f, y);
}

static void ceil_row(const dq_rows_f32 *f, const float *x, size_t n, float *y)
{
    f->floor(x, n, -0.0f, y);
}

static void elu_row(const dq_rows_f32 *f, const float *x, size_t n, float *y)
{
    f->elu(x, n, 1.0f, y);
}

#define ROW(name)                                                                                            \
    static void name##_row(const dq_rows_f32 *f, const float *x, size_t n, float *y)                         \
    {                                                                                                        \
        f->name(x, n, y);                                                                                    \
    }
ROW(exp)
ROW(log)
ROW(erf)
ROW(tanh)
ROW(sigmoid)
ROW(sin)
ROW(cos)
ROW(asin)
ROW(acos)
ROW(atan)
ROW(hard_swish)
ROW(softplus)
ROW(mish)
ROW(gelu)
ROW(gelu_tanh)
ROW(round)

/* Largest error in units of the last place of the float nearest to the result; of gelu's larger operand,
 * which its sum cancels. */
static const struct {
    const char *name;
    void (*row)(const dq_rows_f32 *f, const float *x, size_t n, float *y);
    double (*of)(double x);
    double ulps;
} functions[] = {
    {"exp", exp_row, exp, 1},
    {"log", log_row, log, 1},
    {"erf", erf_row, erf, 6},
    {"tanh", tanh_row, tanh, 5.25},
    {"sigmoid", sigmoid_row, sigmoid_of, 2.25},
    {"sin", sin_row, sin, 1.5},
    {"cos", cos_row, cos, 1.5},
    {"asin", asin_row, asin, 2.25},
    {"acos", acos_row, acos, 1.5},
    {"atan", atan_row, atan, 1.5},
    {"hard_sigmoid", hard_sigmoid_row, hard_sigmoid_of, 0.5},
    {"hard_swish", hard_swish_row, hard_swish_of, 0.5},
    {"softplus", softplus_row, softplus_of, 1.75},
    {"mish", mish_row, mish_of, 4},
    {"gelu", gelu_row, gelu_of, 4.25},
    {"gelu_tanh", gelu_tanh_row, gelu_tanh_of, 2.25},
    {"floor", floor_row, floor, 0},
    {"ceil", ceil_row, ceil, 0},
    {"round", round_row, rint, 0},
    {"silu", silu_row, silu_of, 2.25},
    {"elu", elu_row, elu_of, 1},
};

static double unit_at(double x)
{
    float a = fabsf((float)x), next;
    if (isinf(a))
        a = 0x1.fffffep127f;
    next = nextafterf(a, INFINITY);
    return isinf(next) ? 0x1p104 : (double)next - (double)a;
}

static double error_of(size_t f, float x, float got)
{
    double expected = functions[f].of((double)x);
    if (isnan(expected) || isnan(got))
        return isnan(expected) == isnan(got) ? 0 : (double)INFINITY;
    if (isinf((float)expected) || isinf(got))
        return (float)expected == got || fabs(expected) > 3.402823e38 ? 0 : (double)INFINITY;
    bool cancels = functions[f].of == gelu_of && x < 0;
    double unit = unit_at(cancels ? (double)x / 2 : expected), few = 0x1p-149 * fabs((double)x);
    return fabs((double)got - expected) / (few > unit && few < 0x1p-135 ? few : unit);
}

/* Every float whose bits are a multiple of a prime, and those around 0, infinity and NaN. */
static void check_functions(const dq_rows_f32 *k)
{
    enum { ROWS = 1024, STEP = 4093 };
    const dq_rows_f32 *c = portable();
    float *x = kernel_memory(ROWS * sizeof *x), *y = kernel_memory(ROWS * sizeof *y),
          *z = kernel_memory(ROWS * sizeof *z);
    double worst[sizeof functions / sizeof *functions] = {0};
    float at[sizeof functions / sizeof *functions] = {0};
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
        for (size_t i = 0; i < ROWS; i++, bits += STEP) {
            uint32_t b = (uint32_t)bits;
            memcpy(&x[i], &b, sizeof b);
        }
        for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
            functions[f].row(k, x, ROWS, y);
            functions[f].row(c, x, ROWS, z);
            same_rows(functions[f].name, y, z, ROWS);
            for (size_t i = 0; i < ROWS && k == c; i++) {
                double error = error_of(f, x[i], y[i]);
                if (error > worst[f]) {
                    worst[f] = error;
                    at[f] = x[i];
                }
            }
        }
    }
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        KERNEL_FAIL_UNLESS(worst[f] <= functions[f].ulps, "%s is %g units off at %.9g", functions[f].name,
                           worst[f], (double)at[f]);
    kernel_done();
}

/* ---- Sums and rows ------------------------------------------------------------------------------------- */

static void check_maps(const dq_rows_f32 *k, size_t n)
{
    const dq_rows_f32 *c = portable();
    float *x = kernel_floats(n), *y = kernel_memory(n * sizeof *y), *z = kernel_memory(n * sizeof *z);
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        functions[f].row(k, x, n, y);
        functions[f].row(c, x, n, z);
        same_rows(functions[f].name, y, z, n);
    }
    k->scale(x, n, 0.3f, y);
    c->scale(x, n, 0.3f, z);
    same_rows("scale", y, z, n);
    memcpy(y, x, n * sizeof *x);
    k->scale(y, n, 0.3f, y);
    same_rows("scale in place", y, z, n);
    for (int relu = 0; relu < 2; relu++) {
        const float low = relu ? 0 : -0.5f, high = relu ? INFINITY : 0.75f;
        k->clip(x, n, low, high, y);
        for (size_t i = 0; i < n; i++) {
            z[i] = x[i] < low ? low : x[i];
            z[i] = z[i] > high ? high : z[i];
        }
        same_rows("clip", y, z, n);
    }
    kernel_done();
}

static float requantized(float x, float scale, float low, float high)
{
    float q = rintf(x / scale), r = q >= high ? high : q > low ? q : low;
    return (r + 0.0f) * scale;
}

/* Divided by one number: any floats, and such as stand next to the middle between two whole numbers. */
static void check_divided(const dq_rows_f32 *k, size_t n)
{
    static const float scales[] = {1.0f / 3, 0.00123f, 0x1.fffffep-9f, 0x1.000002p-7f, 0x1p-60f, 0x1.9p59f,
                                   1e-42f,   -0.7f,    0.0f,           INFINITY,       NAN,      6.0f};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        const float scale = scales[s], low = s % 2 ? 0 : -(float)kernel_random(65536), high = low + 65535;
        float *x = kernel_floats(n), *y = kernel_memory(n * sizeof *y), *z = kernel_memory(n * sizeof *z);
        for (size_t i = 0; i < n; i++) {
            float tie = (float)((double)(low + (float)kernel_random(65600)) + 0.5) * scale;
            if (kernel_random(4))
                x[i] = kernel_random(2) ? tie : nextafterf(tie, kernel_random(2) ? INFINITY : -INFINITY);
            z[i] = requantized(x[i], scale, low, high);
        }
        k->requantize(x, n, scale, low, high, y);
        same_rows("requantize", y, z, n);
        for (size_t i = 0; i < n; i++) {
            float any = ldexpf((float)(1 + kernel_random((1 << 24) - 1)), (int)kernel_random(90) - 58);
            x[i] = kernel_random(8) ? kernel_random(2) ? -any : any : 0;
            z[i] = x[i] / scale;
        }
        if (scale >= 0x1p-60f && scale <= 0x1p60f) {
            k->divide(x, n, scale, y);
            same_rows("divide", y, z, n);
        }
    }
    kernel_done();
}

static void check_pairs(const dq_rows_f32 *k, size_t n)
{
    const dq_rows_f32 *c = portable();
    const struct {
        const char *name;
        dq_pair_f32_fn *got, *expected;
    } pairs[] = {{"add", k->add, c->add}, {"sub", k->sub, c->sub}, {"mul", k->mul, c->mul},
                 {"div", k->div, c->div}, {"min", k->min, c->min}, {"max", k->max, c->max}};
    float *a = kernel_floats(n), *b = kernel_floats(n), *y = kernel_memory(n * sizeof *y),
          *z = kernel_memory(n * sizeof *z);
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (size_t steps = 0; steps < 4; steps++) {
            pairs[p].got(a, steps & 1, b, steps >> 1, n, y);
            pairs[p].expected(a, steps & 1, b, steps >> 1, n, z);
            same_rows(pairs[p].name, y, z, n);
        }
    kernel_done();
}

/* Numbers whose order of summation shows. */
static float *ordinary(size_t n)
{
    float *x = kernel_memory(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = ldexpf((float)kernel_random(1 << 24) - 0x1p23f, -(int)kernel_random(12) - 15);
    return x;
}

static void check_sums(const dq_rows_f32 *k, float *x, size_t n)
{
    const dq_rows_f32 *c = portable();
    float *y = kernel_memory(n * sizeof *y), *z = kernel_memory(n * sizeof *z);
    same_number("max_of", (double)k->max_of(x, n), (double)c->max_of(x, n), n);
    same_number("min_of", (double)k->min_of(x, n), (double)c->min_of(x, n), n);
    same_number("sum", k->sum(x, n), c->sum(x, n), n);
    same_number("squares", k->squares(x, n, 0.7f, 1e-9f), c->squares(x, n, 0.7f, 1e-9f), n);
    float most = c->max_of(x, n);
    same_number("exp_sum", k->exp_sum(x, n, most, y), c->exp_sum(x, n, most, z), n);
    same_rows("exp_sum", y, z, n);
    kernel_done();
}

/* The lanes as the contract has them, where sums are not exact. */
static void check_order(const dq_rows_f32 *k, size_t n)
{
    float *x = ordinary(n);
    double lane[16] = {0}, square[16] = {0};
    float dot[16] = {0}, got;
    for (size_t i = 0; i < n; i++) {
        lane[i % 16] += (double)x[i];
        square[i % 16] = fma((double)x[i], (double)x[i], square[i % 16]);
        dot[i % 16] = fmaf(x[i], x[i], dot[i % 16]);
    }
    for (size_t h = 8; h; h /= 2)
        for (size_t l = 0; l < h; l++) {
            lane[l] += lane[l + h];
            square[l] += square[l + h];
            dot[l] += dot[l + h];
        }
    same_number("sum", k->sum(x, n), lane[0], n);
    same_number("squares", k->squares(x, n, 0, 0), square[0], n);
    k->dots(&(dq_heads_f32){.rows = x, .count = 1, .n = n, .heads = 1, .in = x, .out = &got});
    same_number("dots", (double)got, (double)dot[0], n);
    kernel_done();
}

static void check_extremes(const dq_rows_f32 *k, float *x, size_t n)
{
    float most = -INFINITY, least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        most = isnan(x[i]) || x[i] > most ? x[i] : most;
        least = isnan(x[i]) || x[i] < least ? x[i] : least;
    }
    same_number("max_of", (double)k->max_of(x, n), (double)most, n);
    same_number("min_of", (double)k->min_of(x, n), (double)least, n);
    float peak = -INFINITY;
    for (size_t i = 0; i < n; i++)
        peak = x[i] > peak ? x[i] : peak;
    same_number("peak", (double)k->peak(x, n), (double)peak, n);
}

static void check_add_to(const dq_rows_f32 *k, size_t n)
{
    for (size_t count = 0; count < 7; count += 3) {
        size_t step = n + kernel_random(3);
        float *x = kernel_floats(n + 5 * step);
        double *got = kernel_memory(n * sizeof *got);
        for (size_t i = 0; i < n; i++)
            got[i] = 1e-3 * (double)i;
        k->add_to(x, step, count, n, got);
        for (size_t i = 0; i < n; i++) {
            double expected = 1e-3 * (double)i;
            for (size_t t = 0; t < count; t++)
                expected += (double)x[t * step + i];
            same_number("add_to", got[i], expected, n);
        }
        kernel_done();
    }
}

static void check_extreme_to(const dq_rows_f32 *k, size_t n)
{
    for (size_t count = 0; count < 20; count += 6)
        for (int form = 0; form < 4; form++) {
            bool least = form & 1;
            size_t step = n + kernel_random(3);
            float *x = form & 2 ? kernel_floats(n + 19 * step) : ordinary(n + 19 * step), *y = ordinary(n),
                  *z = kernel_memory(n * sizeof *z);
            for (size_t i = 0; i < n; i++) {
                z[i] = y[i];
                for (size_t t = 0; t < count; t++) {
                    float v = x[t * step + i];
                    z[i] = isnan(v) || (least ? v < z[i] : v > z[i]) ? v : z[i];
                }
            }
            k->extreme_to(x, step, count, n, least, y);
            for (size_t i = 0; i < n; i++)
                same_number("extreme_to", (double)y[i], (double)z[i], n);
            kernel_done();
        }
}

static void check_normalize(const dq_rows_f32 *k, size_t n)
{
    float *x = ordinary(n), *gamma = ordinary(n), *beta = ordinary(n), *y = kernel_memory(n * sizeof *y),
          *z = kernel_memory(n * sizeof *z);
    for (size_t form = 0; form < 8; form++) {
        const float *g = form & 1 ? gamma : NULL, *b = form & 2 ? beta : NULL;
        size_t step = form >> 2;
        k->normalize(x, n, 0.1f, 1e-9f, 1.7f, g, b, step, y);
        for (size_t i = 0; i < n; i++)
            z[i] = fmaf((x[i] - 0.1f - 1e-9f) * 1.7f, g ? g[i * step] : 1.0f, b ? b[i * step] : -0.0f);
        same_rows("normalize", y, z, n);
    }
    kernel_done();
}

/* The column of `count` elements that are `step` apart, by functions of single elements. */
/* A column as a row. */
static void softmax_of(const float *x, size_t step, size_t count, bool logs, float *y)
{
    float *row = kernel_memory(count * sizeof *row), *e = kernel_memory(count * sizeof *e);
    float most = -INFINITY;
    for (size_t t = 0; t < count; t++) {
        row[t] = x[t * step];
        most = isnan(row[t]) || row[t] > most ? row[t] : most;
    }
    const double total = portable()->exp_sum(row, count, most, e);
    for (size_t t = 0; t < count; t++)
        y[t * step] = logs ? row[t] - most - (float)log(total) : e[t] * (float)(1 / total);
}

static void check_softmax_columns(const dq_rows_f32 *k, size_t n)
{
    static const size_t counts[] = {1, 7, 16, 40, 256, 300};
    if (n < 16 || n > DQ_SOFTMAX_COLUMNS)
        return;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int form = 0; form < 4; form++) {
            const size_t count = counts[c], step = n + kernel_random(3), all = (count - 1) * step + n;
            float *x = form & 1 ? kernel_floats(all) : ordinary(all), *y = kernel_memory(all * sizeof *y),
                  *z = kernel_memory(all * sizeof *z);
            memcpy(y, x, all * sizeof *y);
            memcpy(z, x, all * sizeof *z);
            k->softmax_columns(form & 1 ? x : y, step, count, n, form & 2, y, step);
            for (size_t i = 0; i < n; i++)
                softmax_of(x + i, step, count, form & 2, z + i);
            same_rows("softmax_columns", y, z, all);
            kernel_done();
        }
}

/* Scores and weighted sums of several heads, with memory between the heads that must not change. */
static void check_heads(const dq_rows_f32 *k, size_t n)
{
    enum { GAP = 3, MAX_COUNT = 71 };
    const dq_rows_f32 *c = portable();
    for (size_t heads = 1; heads <= 9; heads++) {
        const size_t count = heads == 1 ? MAX_COUNT : kernel_random(MAX_COUNT), row = n + kernel_random(3);
        dq_heads_f32 s = {.row = row, .count = count, .n = n, .heads = heads};
        const size_t in = n + count + GAP, all = heads * in;
        float *y = ordinary(all), *z = kernel_memory(all * sizeof *z);
        s.rows = ordinary(count * row + n);
        s.in = ordinary(all);
        s.in_head = s.out_head = in;
        memcpy(z, y, all * sizeof *z);
        s.out = y;
        k->dots(&s);
        for (size_t h = 0; h < heads; h++)
            for (size_t t = 0; t < count; t++) {
                const float *q = s.in + h * in;
                c->dots(&(dq_heads_f32){.rows = s.rows + t * row,
                                        .count = 1,
                                        .n = n,
                                        .heads = 1,
                                        .in = q,
                                        .out = z + h * in + t});
            }
        same_rows("dots", y, z, all);
        k->mix_heads(&s);
        for (size_t h = 0; h < heads; h++)
            for (size_t t = 0; t < count; t++)
                for (size_t i = 0; i < n; i++)
                    z[h * in + i] = fmaf(s.in[h * in + t], s.rows[t * row + i], z[h * in + i]);
        same_rows("mix_heads", y, z, all);
        kernel_done();
    }
}

static void check_matrices(const dq_rows_f32 *k, size_t n)
{
    for (size_t count = 0; count < 10; count += 3) {
        size_t step = n + kernel_random(3);
        float *x = ordinary(n + 9 * step), *w = ordinary(n > 10 ? n : 10), *y = ordinary(n > 10 ? n : 10),
              *z = kernel_memory((n > 10 ? n : 10) * sizeof *z);
        memcpy(z, y, n * sizeof *z);
        k->mix(w, count, x, step, n, y);
        for (size_t t = 0; t < count; t++)
            for (size_t i = 0; i < n; i++)
                z[i] = fmaf(w[t], x[t * step + i], z[i]);
        same_rows("mix", y, z, n);
        k->lrn(x, x, step, count, 0.01f, 1.0f, n, y);
        for (size_t i = 0; i < n; i++) {
            float s = 0, p;
            for (size_t t = 0; t < count; t++)
                s = fmaf(x[t * step + i], x[t * step + i], s);
            p = fmaf(0.01f, s, 1.0f);
            z[i] = x[i] / (sqrtf(p) * sqrtf(sqrtf(p)));
        }
        same_rows("lrn", y, z, n);
        kernel_done();
    }
}

void check_rows_f32(const dq_kernels *k)
{
    size_t n;
    check_functions(k->rows_f32);
    for (size_t i = 0; kernel_size(i, &n); i++) {
        check_maps(k->rows_f32, n);
        check_pairs(k->rows_f32, n);
        check_divided(k->rows_f32, n);
        check_sums(k->rows_f32, ordinary(n), n);
        check_sums(k->rows_f32, kernel_floats(n), n);
        check_order(k->rows_f32, n);
        check_extremes(k->rows_f32, ordinary(n), n);
        check_extremes(k->rows_f32, kernel_floats(n), n);
        check_add_to(k->rows_f32, n);
        check_extreme_to(k->rows_f32, n);
        check_normalize(k->rows_f32, n);
        check_softmax_columns(k->rows_f32, n);
        check_matrices(k->rows_f32, n);
        check_heads(k->rows_f32, n);
    }
}
