/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of a function's name, then one or two arguments as numbers of C (hexadecimal, inf, nan), and
 * writes each result so: for compare.py, and for the emulators of other processors. */
#include "base/math.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNARY(f)                                                                                             \
    {                                                                                                        \
#f, dq_##f, NULL, NULL, NULL                                                                         \
    }
#define FLOAT(f)                                                                                             \
    {                                                                                                        \
#f, NULL, dq_##f, NULL, NULL                                                                         \
    }

static const struct function {
    const char *name;
    double (*of_double)(double);
    float (*of_float)(float);
    double (*of_doubles)(double, double);
    float (*of_floats)(float, float);
} functions[] = {
    UNARY(exp),
    UNARY(expm1),
    UNARY(log),
    UNARY(log1p),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(asinh),
    UNARY(acosh),
    UNARY(atanh),
    UNARY(erf),
    FLOAT(sinf),
    FLOAT(cosf),
    FLOAT(tanf),
    FLOAT(sinhf),
    FLOAT(coshf),
    FLOAT(asinhf),
    FLOAT(acoshf),
    FLOAT(atanhf),
    {"pow", NULL, NULL, dq_pow, NULL},
    {"powf", NULL, NULL, NULL, dq_powf},
};

static double result_of(const struct function *f, double x, double y)
{
    if (f->of_double)
        return f->of_double(x);
    if (f->of_float)
        return (double)f->of_float((float)x);
    return f->of_doubles ? f->of_doubles(x, y) : (double)f->of_floats((float)x, (float)y);
}

int main(void)
{
    char line[256], name[16], first[64], second[64];
    while (fgets(line, sizeof line, stdin)) {
        const struct function *f = functions;
        strcpy(second, "0");
        if (sscanf(line, "%15s %63s %63s", name, first, second) < 2)
            return 1;
        while (strcmp(f->name, name) != 0)
            if (++f == functions + sizeof functions / sizeof *functions)
                return 1;
        printf("%a\n", result_of(f, strtod(first, NULL), strtod(second, NULL)));
    }
    return 0;
}
