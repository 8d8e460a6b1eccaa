/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of requantizing: integers of 128 bits, and nothing of what kernels do. */
#include "kernel_check.h"

#include <math.h>

__extension__ typedef __int128 wide;

enum { WORKSPACE = 120 }; /* bits that may be used */

/* whole * 2^exponent */
typedef struct scaled {
    wide whole;
    int exponent;
} scaled;

static scaled scaled_of(double x)
{
    int exponent;
    double fraction = frexp(x, &exponent);
    return (scaled){(wide)ldexp(fraction, 53), exponent - 53};
}

static scaled odd_part(scaled x)
{
    while (x.whole && x.whole % 2 == 0) {
        x.whole /= 2;
        x.exponent++;
    }
    return x;
}

static int bits_of(wide x)
{
    int n = 0;
    for (x = x < 0 ? -x : x; x; x /= 2)
        n++;
    return n;
}

static scaled product(scaled a, scaled b)
{
    return odd_part((scaled){a.whole * b.whole, a.exponent + b.exponent});
}

static scaled raised(scaled x, int bits)
{
    for (; bits; bits--, x.exponent--)
        x.whole *= 2;
    return x;
}

/* Less the last bits, which the last one that is left stands for. */
static scaled lowered(scaled x, int bits)
{
    for (; bits; bits--, x.exponent++)
        x.whole = x.whole / 2 + (x.whole % 2 && x.whole / 2 % 2 == 0 ? x.whole % 2 : 0);
    return x;
}

static scaled sum_of(scaled a, scaled b)
{
    if (a.whole == 0 || b.whole == 0)
        return a.whole == 0 ? b : a;
    if (a.exponent < b.exponent)
        return sum_of(b, a);
    int row_stride = a.exponent - b.exponent, workspace = WORKSPACE - bits_of(a.whole);
    if (row_stride > workspace)
        b = lowered(b, row_stride - workspace);
    a = raised(a, row_stride < workspace ? row_stride : workspace);
    a.whole += b.whole;
    return a;
}

enum { BOUND = 1 << 20 };

int32_t kernel_quotient(int64_t sum, double a, float b, float c, float y)
{
    if (!isfinite(a) || !isfinite(b) || !isfinite(c) || !isfinite(y) || y == 0) {
        double v = ((double)sum * a * (double)b + (double)c) / (double)y;
        return isnan(v) ? INT32_MIN : v > BOUND ? BOUND : v < -BOUND ? -BOUND : (int32_t)rint(v);
    }
    scaled top = product(product((scaled){sum, 0}, odd_part(scaled_of(a))), odd_part(scaled_of((double)b)));
    top = sum_of(top, odd_part(scaled_of((double)c)));
    scaled under = odd_part(scaled_of((double)y));
    int exponent = top.exponent - under.exponent, sign = (top.whole < 0) == (under.whole < 0) ? 1 : -1;
    top.whole = top.whole < 0 ? -top.whole : top.whole;
    under.whole = under.whole < 0 ? -under.whole : under.whole;
    if (top.whole != 0 && bits_of(top.whole) + exponent > bits_of(under.whole) + 22)
        return sign * BOUND;
    if (top.whole == 0 || bits_of(top.whole) + exponent < bits_of(under.whole) - 2)
        return 0;
    if (exponent > 0)
        top = raised(top, exponent);
    else
        under = raised(under, -exponent);
    wide quotient = top.whole / under.whole, rest = top.whole % under.whole;
    quotient += rest > under.whole - rest || (rest == under.whole - rest && quotient % 2 == 1);
    return sign * (int32_t)(quotient < BOUND ? quotient : BOUND);
}

int32_t kernel_code(int32_t sum, const dq_requantize_to *to, size_t column)
{
    const dq_factors *f = &to->factors;
    const bool biased = to->bias.shift != NULL;
    int64_t v =
        kernel_quotient((int64_t)sum - (biased ? to->bias.start[column] : 0), f->a, f->b[column * f->b_step],
                        biased ? to->bias.bias[column] : 0, f->y[column * f->y_step]);
    v += v == INT32_MIN ? 0 : to->zero_point;
    return (int32_t)(v < to->lo ? to->lo : v > to->hi ? to->hi : v);
}

/* ---- Multipliers ----------------------------------------------------------------------------------------
 */

static float some_float(int least, int most)
{
    return ldexpf(1 + (float)kernel_random(1 << 23) * 0x1p-23f,
                  least + (int)kernel_random((uint32_t)(most - least + 1)));
}

/* b / y with which `sum` comes to a tie. */
static void tie(int32_t sum, float *b, float *y)
{
    *b = (float)(2 * (int32_t)kernel_random(256) + 1);
    *y = 2.0f * (float)(sum ? sum : 1); /* exactly so up to 2^24 */
}

/* sum * a * b and half an odd number times y, all taken as whole numbers with a power of two, differ in one
 * unit: sums so near a tie that double cannot tell. */
typedef struct near_tie {
    int32_t sum;
    float a, b, y;
} near_tie;

static const near_tie near_ties[] = {
    {1444170209, 75641, 1242601, 10287889 * 0x1p43f},  {1034367589, 16171333, 453623, 8540919 * 0x1p44f},
    {2442547, 14225711, 1504501, 11886379 * 0x1p43f},  {838226245, 8844685, 13313, 11220953 * 0x1p44f},
    {1276840313, 660023, 5469439, 13100523 * 0x1p47f}, {157717361, 3873061, 10872061, 11937005 * 0x1p42f},
    {504409751, 5265727, 621031, 15627303 * 0x1p46f},  {928990319, 969611, 2007667, 16284679 * 0x1p41f}};
enum { NEAR_TIES = sizeof near_ties / sizeof near_ties[0] };

/* Of one column; a is 1. */
static void some_multiplier(int32_t sum, float *b, float *y)
{
    static const float nan_of_ones = __builtin_nanf("0x3fffff"); /* its bits look like those of a number */
    const float odd[] = {0,      -0.0f, INFINITY, -INFINITY, NAN, nan_of_ones, -nan_of_ones,
                         1e-38f, 3e38f, 1e-45f,   -0.25f,    1};
    static const float ties[] = {98, 10, 6, 1.5f, 0.75f, 4, 256, 3, 2, 1000};
    *b = some_float(-20, 0);
    *y = some_float(-4, 4);
    switch (kernel_random(6)) {
    case 0: /* of any size */
        *b = some_float(-149, 127) * (kernel_random(2) ? 1.0f : -1.0f);
        *y = some_float(-149, 127);
        break;
    case 1:
        *(kernel_random(2) ? b : y) = odd[kernel_random(sizeof odd / sizeof odd[0])];
        break;
    case 2:
        *b = 1;
        *y = ties[kernel_random(sizeof ties / sizeof ties[0])] * ldexpf(1, (int)kernel_random(9));
        break;
    case 3:
        tie(sum, b, y);
        break;
    default: /* usual ones */
        break;
    }
}

/* One whose products with sums are exact in double, where a is 1 or a power of two. */
static void exact_multiplier(float *b, float *y)
{
    *b = ldexpf(1 + (float)kernel_random(1u << (1 + kernel_random(22))), -(int)kernel_random(24));
    *y = ldexpf(1, (int)kernel_random(8) - 4);
}

/* In quanta of the result, between -1/2 and 1/2. */
static double some_shift(double product)
{
    switch (kernel_random(4)) {
    case 0: /* a tie */
        return fabs(product) < 1e6 ? floor(product) + 0.5 - product : 0.5;
    case 1:
        return 0;
    default:
        return kernel_random(1 << 24) * 0x1p-24 - 0.5;
    }
}

void kernel_add_bias(dq_requantize_to *to, const int32_t *sums, size_t n)
{
    const dq_factors *f = &to->factors;
    double *shift = kernel_memory(n * sizeof *shift);
    float *bias = kernel_memory(n * sizeof *bias);
    int32_t *start = kernel_memory(n * sizeof *start);
    for (size_t j = 0; j < n; j++) {
        const float b = f->b[j * f->b_step], y = f->y[j * f->y_step];
        if (!isfinite(to->scale[j]))
            return;
        start[j] = kernel_random(2) ? 0 : (int32_t)kernel_random(200001) - 100000;
        bias[j] = (float)(some_shift(sums[j] * to->scale[j]) * (double)y + start[j] * f->a * (double)b);
        shift[j] = dq_requantize_shift(start[j], bias[j], f->a, b, y);
        if (!(fabs(shift[j]) <= DQ_MAX_SHIFT)) { /* float does not hold it */
            start[j] = 0;
            shift[j] = 0;
            bias[j] = 0;
        }
    }
    to->bias = (dq_requantize_bias){shift, bias, start};
    to->exact = false;
}

dq_requantize_to kernel_requantize_to(const int32_t *sums, size_t n)
{
    double a = 1, *scale = kernel_memory(n * sizeof *scale);
    float *b = kernel_memory(n * sizeof *b), *y = kernel_memory(n * sizeof *y);
    const near_tie *near = NULL;
    const uint32_t kind = kernel_random(5);
    const int32_t lo = kernel_random(2) ? 0 : -128;
    const bool exact = kind == 4 && kernel_random(2);
    for (size_t j = 0; kind < 3 && j < n; j++)
        for (size_t i = 0; i < NEAR_TIES; i++)
            near = sums[j] == near_ties[i].sum ? &near_ties[i] : near;
    if (near) {
        a = (double)near->a;
        if (kernel_random(2)) /* a is a product of two */
            a *= (double)near->b;
    }
    if (!near && kind == 3) /* a product of two scales, of any size */
        a = (double)some_float(-149, 127) * (double)some_float(-149, 127);
    for (size_t j = 0; j < n; j++) {
        if (exact)
            exact_multiplier(b + j, y + j);
        else
            some_multiplier(sums[j], b + j, y + j);
        if (near) {
            b[j] = a > (double)near->a ? 1 : near->b;
            y[j] = near->y;
        }
        scale[j] = a * (double)b[j] / (double)y[j];
    }
    const dq_factors factors = {a, b, y, 1, 1};
    dq_requantize_to to = {.scale = scale,
                           .factors = factors,
                           .exact = dq_exact_products(scale, &factors, n),
                           .zero_point = lo + (int32_t)kernel_random(256),
                           .lo = lo,
                           .hi = lo + 255};
    if (kernel_random(2))
        kernel_add_bias(&to, sums, n);
    return to;
}

int32_t kernel_sum(void)
{
    static const int32_t ends[] = {0, 1, -1, 147, INT32_MAX, INT32_MIN};
    switch (kernel_random(6)) {
    case 0:
        return near_ties[kernel_random(NEAR_TIES)].sum;
    case 1:
        return ends[kernel_random(sizeof ends / sizeof ends[0])];
    case 2: /* any size */
        return ((int32_t)kernel_random(UINT32_MAX) >> kernel_random(31)) * (kernel_random(2) ? 1 : -1);
    default: /* small ones, so that not all saturate and there are ties */
        return (int32_t)kernel_random(2000) - 1000;
    }
}
