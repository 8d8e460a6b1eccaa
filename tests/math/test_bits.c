/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of elementary functions and of rows of floats, on every processor and with every compiler: a hash
 * over many results of each function against the one that is written here.
 *
 * A change of an algorithm changes its hash. The program then prints the line that belongs here; it is the
 * same from every build (gcc and clang, -O0 and -O3, x86-64 and arm), or the change is wrong. */
#include "base/cpu.h"
#include "base/math.h"
#include "kernels/kernels.h"
#include "support/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct hash {
    uint64_t sum, random;
} hash;

/* FNV-1a, eight bytes at a time. All NaNs are one: IEEE 754 leaves their sign and payload open. */
static void add_bits(hash *h, uint64_t bits)
{
    h->sum = (h->sum ^ bits) * 0x100000001b3;
    h->sum ^= h->sum >> 29;
}

static void add_result(hash *h, double y)
{
    uint64_t bits = 0x7ff8000000000000;
    if (!isnan(y))
        memcpy(&bits, &y, sizeof bits);
    add_bits(h, bits);
}

/* In turn: any number, one from -2 to 2, one from -32 to 32, an exact multiple of 1/16. */
static double argument(hash *h, size_t i)
{
    double x;
    uint64_t bits = random_bits(&h->random);
    double unit = (double)(int64_t)bits * 0x1p-63;
    memcpy(&x, &bits, sizeof x);
    return i % 4 == 0 ? x : i % 4 == 1 ? 2 * unit : i % 4 == 2 ? 32 * unit : floor(1024 * unit) / 16;
}

static float float_argument(hash *h, size_t i)
{
    float x;
    uint64_t bits = random_bits(&h->random);
    uint32_t upper = (uint32_t)(bits >> 32);
    float unit = (float)((int32_t)upper >> 7) * 0x1p-24f;
    memcpy(&x, &upper, sizeof x);
    return i % 4 == 0 ? x : i % 4 == 1 ? 2 * unit : i % 4 == 2 ? 32 * unit : (float)(upper >> 22) / 16 - 32;
}

/* ---- base/math.h --------------------------------------------------------------------------------------- */

enum { RESULTS = 40000 };
typedef struct expected {
    const char *name;
    uint64_t sum;
    double (*of_double)(double);
    float (*of_float)(float);
} expected;

#define DOUBLES(f, sum)                                                                                      \
    {                                                                                                        \
#f, sum, dq_##f, NULL                                                                                \
    }
#define FLOATS(f, sum)                                                                                       \
    {                                                                                                        \
#f, sum, NULL, dq_##f                                                                                \
    }
static const expected functions[] = {DOUBLES(exp, 0x46ccbee29cea38b6),   DOUBLES(expm1, 0xd0c0ad5dcad20f1b),
                                     DOUBLES(log, 0x84dc975a754bcb24),   DOUBLES(log1p, 0x5daf587b9ac83f61),
                                     DOUBLES(sin, 0x55d0c21dc25fece3),   DOUBLES(cos, 0x277250cc540e0889),
                                     DOUBLES(tan, 0x4e51a3d3d807b91e),   DOUBLES(asin, 0x0930a0b7a754ed1c),
                                     DOUBLES(acos, 0xb2a6a0743cbac692),  DOUBLES(atan, 0xcf108c085dc871ff),
                                     DOUBLES(sinh, 0xa58519517c07e777),  DOUBLES(cosh, 0x8136ca7d41e662c2),
                                     DOUBLES(tanh, 0x4f3df556c27d0fbc),  DOUBLES(asinh, 0x4ba0a60be6fff976),
                                     DOUBLES(acosh, 0xbdaead0ce43c08f1), DOUBLES(atanh, 0xd9ce1e7adf4059fd),
                                     DOUBLES(erf, 0x35bc7f9b3788e981),   FLOATS(sinf, 0x4853401ea1b48c00),
                                     FLOATS(cosf, 0x9de1d6357acfc581),   FLOATS(tanf, 0xde2c13178a789963),
                                     FLOATS(sinhf, 0xf3b43356c719fa3b),  FLOATS(coshf, 0x07cf250d7727eafa),
                                     FLOATS(asinhf, 0x81b3092ab85cd159), FLOATS(acoshf, 0x3a8845a1556f3f72),
                                     FLOATS(atanhf, 0x88e5972e34e71c22)};

static int wrong(const char *name, uint64_t got, uint64_t sum)
{
    if (got != sum)
        printf("%s: the hash is 0x%016llx, expected 0x%016llx\n", name, (unsigned long long)got,
               (unsigned long long)sum);
    return got != sum;
}

static int check_functions(void)
{
    int failed = 0;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        hash h = {0, 1};
        for (size_t i = 0; i < RESULTS; i++)
            if (functions[f].of_double)
                add_result(&h, functions[f].of_double(argument(&h, i)));
            else
                add_result(&h, (double)functions[f].of_float(float_argument(&h, i)));
        failed += wrong(functions[f].name, h.sum, functions[f].sum);
    }
    hash pow = {0, 1}, powf = {0, 1};
    for (size_t i = 0; i < RESULTS; i++) {
        double x = argument(&pow, i / 4);
        add_result(&pow, dq_pow(x, argument(&pow, i)));
        float y = float_argument(&powf, i / 4);
        add_result(&powf, (double)dq_powf(y, float_argument(&powf, i)));
    }
    return failed + wrong("pow", pow.sum, 0xd2295b6932672b79) + wrong("powf", powf.sum, 0x0cc26fa0df7bb86d);
}

/* ---- dq_rows_f32 ------------------------------------------------------------------------------------- */

enum { ROW = 1000 };

static int check_rows(const dq_rows_f32 *k)
{
    const struct {
        const char *name;
        dq_map_f32_fn *map;
        uint64_t sum;
    } maps[] = {{"exp of rows", k->exp, 0xdd76686bcf6defcf},
                {"log of rows", k->log, 0x17b6a2929f120b4f},
                {"erf of rows", k->erf, 0x31ffc1038429ff40},
                {"tanh of rows", k->tanh, 0xa8e0ae4f30365eee},
                {"sigmoid of rows", k->sigmoid, 0x21af516af876ad8e},
                {"sin of rows", k->sin, 0xcc3b07e6a9bf878b},
                {"cos of rows", k->cos, 0x43880cd9cc95f502},
                {"asin of rows", k->asin, 0x996ee54d9b912bbe},
                {"acos of rows", k->acos, 0xc2a1373ade296c67},
                {"atan of rows", k->atan, 0x6ab2b0ee43171da3},
                {"softplus of rows", k->softplus, 0x4795ecc7e8eaf70e},
                {"mish of rows", k->mish, 0xf8da685cd082c942},
                {"gelu of rows", k->gelu, 0x263a20ba90061575},
                {"gelu_tanh of rows", k->gelu_tanh, 0xb9011f5a1b1230eb},
                {"hard_swish of rows", k->hard_swish, 0xa19967be062e640f}};
    int failed = 0;
    float x[ROW], y[ROW];
    for (size_t f = 0; f < sizeof maps / sizeof *maps; f++) {
        hash h = {0, 1};
        for (size_t row = 0; row < RESULTS / ROW; row++) {
            for (size_t i = 0; i < ROW; i++)
                x[i] = float_argument(&h, i);
            maps[f].map(x, ROW, y);
            for (size_t i = 0; i < ROW; i++)
                add_result(&h, (double)y[i]);
        }
        failed += wrong(maps[f].name, h.sum, maps[f].sum);
    }
    return failed;
}

/* Sums, and rows that are made with them, of all lengths up to ROW / 4. */
static int check_sums(const dq_rows_f32 *k)
{
    hash h = {0, 1};
    float x[ROW], y[ROW], by[4];
    for (size_t n = 1; n <= ROW / 4; n++) {
        for (size_t i = 0; i < ROW; i++)
            x[i] = float_argument(&h, 1);
        add_result(&h, k->sum(x, n));
        add_result(&h, k->squares(x, n, x[0], 0.125f * x[1]));
        k->dots(&(dq_heads_f32){.rows = x + n, .row = n, .count = 3, .n = n, .heads = 1, .in = x, .out = by});
        add_result(&h, (double)by[0] + (double)by[1] + (double)by[2]);
        add_result(&h, k->exp_sum(x, n, k->max_of(x, n), y));
        k->normalize(x, n, x[0], x[1], x[2], x + n, x + 2 * n, 1, y);
        k->mix(x, 3, x, n, n, y);
        k->lrn(x, x, n, 3, 0.25f, 1.5f, n, x + 3 * n);
        for (size_t i = 0; i < n; i++)
            add_result(&h, (double)y[i] + (double)x[3 * n + i]);
    }
    k->softmax_columns(x, 50, 20, 50, false, y, 50);
    k->softmax_columns(x, 50, 20, 50, true, x, 50);
    for (size_t i = 0; i < ROW; i++)
        add_result(&h, (double)y[i] + (double)x[i]);
    return wrong("sums of rows", h.sum, 0xa93e5153c79753ea);
}

int main(void)
{
    static dq_kernels table;
    dq_kernels_select(DQ_ISA_C, &table);
    int failed = check_functions() + check_rows(table.rows_f32) + check_sums(table.rows_f32);
    return failed ? 1 : 0;
}
