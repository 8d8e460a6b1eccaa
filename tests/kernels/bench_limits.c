/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do: loops that do nothing else. */
#define _POSIX_C_SOURCE 200809L
#include "base/cpu.h"
#include "base/pages.h"
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__) && !defined(DQ_SIMDE)
#include <immintrin.h>
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds_of(void (*run)(void *), void *arg, size_t calls)
{
    double begin = now();
    for (size_t i = 0; i < calls; i++)
        run(arg);
    return now() - begin;
}

double bench_seconds(void (*run)(void *arg), void *arg)
{
    enum { RUNS = 12 };
    size_t calls = 1;
    double took;
    while ((took = seconds_of(run, arg, calls)) < 1e-3)
        calls *= 2;
    double least = took / (double)calls;
    for (int i = 0; i < RUNS; i++) {
        took = seconds_of(run, arg, calls) / (double)calls;
        least = took < least ? took : least;
    }
    return least;
}

/* ---- Memory ---- */

typedef uint64_t lanes __attribute__((vector_size(32), may_alias));

typedef struct piece {
    lanes *at;
    size_t count;
    lanes sum;
} piece;

#if defined(__x86_64__) && !defined(DQ_SIMDE)
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif

/* The pieces' ends and sums are kept in variables: through `arg` each store might change them. */
WIDE static void read_wide(void *arg)
{
    piece *p = arg;
    const lanes *at = p->at, *end = at + p->count;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += 4) {
        a |= at[0];
        b |= at[1];
        c |= at[2];
        d |= at[3];
    }
    p->sum |= a | b | c | d;
}

WIDE static void write_wide(void *arg)
{
    piece *p = arg;
    lanes *at = p->at, *end = at + p->count, value = p->sum;
    for (; at < end; at += 4)
        at[0] = at[1] = at[2] = at[3] = value;
}

static void read_plain(void *arg)
{
    piece *p = arg;
    const uint64_t *at = (const uint64_t *)(void *)p->at;
    uint64_t sum[4] = {0};
    for (size_t i = 0; i < 4 * p->count; i += 4)
        for (size_t l = 0; l < 4; l++)
            sum[l] |= at[i + l];
    memcpy(&p->sum, sum, sizeof sum);
}

static void write_plain(void *arg)
{
    piece *p = arg;
    memset(p->at, 1, p->count * sizeof *p->at);
}

static double rate(void (*wide)(void *), void (*plain)(void *), size_t bytes)
{
    piece p = {.count = bytes / sizeof(lanes)};
    p.at = dq_pages_alloc(p.count * sizeof(lanes));
    if (!p.at)
        return 0;
    memset(p.at, 1, p.count * sizeof(lanes));
    bool has_wide = (dq_cpu_isa() & (DQ_ISA_AVX2 | DQ_ISA_NEON)) != 0;
    double took = bench_seconds(has_wide ? wide : plain, &p);
    free(p.at);
    return (double)bytes / took;
}

double bench_read_rate(size_t bytes)
{
    return rate(read_wide, read_plain, bytes);
}

double bench_write_rate(size_t bytes)
{
    return rate(write_wide, write_plain, bytes);
}

typedef struct copy {
    const lanes *from;
    lanes *to;
    size_t count; /* of the side that has fewer */
} copy;

/* With stores as they usually are, and with stores that go to memory directly where there are any. */
#if defined(__x86_64__) && !defined(DQ_SIMDE)
#define PUT_FAR(to, value) _mm256_stream_si256((__m256i *)(to), (__m256i)(value))
#else
#define PUT_FAR(to, value) (*(to) = (value))
#endif
#define PUT_NEAR(to, value) (*(to) = (value))

#define COPIES(put, join, broadcast)                                                                         \
    WIDE static void join(void *arg)                                                                         \
    {                                                                                                        \
        const copy c = *(const copy *)arg;                                                                   \
        for (size_t i = 0; i < c.count; i++)                                                                 \
            put(c.to + i, c.from[4 * i] | c.from[4 * i + 1] | c.from[4 * i + 2] | c.from[4 * i + 3]);        \
    }                                                                                                        \
    WIDE static void broadcast(void *arg)                                                                    \
    {                                                                                                        \
        const copy c = *(const copy *)arg;                                                                   \
        for (size_t i = 0; i < c.count; i++)                                                                 \
            for (size_t k = 0; k < 4; k++)                                                                   \
                put(c.to + 4 * i + k, c.from[i]);                                                            \
    }
COPIES(PUT_NEAR, join_near, spread_near)
COPIES(PUT_FAR, join_far, spread_far)

double bench_copy_rate(size_t read, size_t written)
{
    uint8_t *from = dq_pages_alloc(read), *to = dq_pages_alloc(written);
    bool has_wide = (dq_cpu_isa() & (DQ_ISA_AVX2 | DQ_ISA_NEON)) != 0;
    double took = 0;
    if (from && to && has_wide) {
        memset(from, 1, read);
        memset(to, 1, written);
        copy c = {(const lanes *)(const void *)from, (lanes *)(void *)to,
                  (read < written ? read : written) / sizeof(lanes)};
        took = bench_seconds(read > written ? join_near : spread_near, &c);
        double past = bench_seconds(read > written ? join_far : spread_far, &c);
        took = past < took ? past : took;
    }
    free(from);
    free(to);
    return took > 0 ? (double)(read + written) / took : 0;
}

/* ---- Products: twelve sums in registers, which hide an instruction's latency ---- */

#if defined(__x86_64__) && !defined(DQ_SIMDE)
enum { STEPS = 1000, SUMS = 12 };

/* The empty statements keep the compiler from seeing that sums and products are alike, and each sum in one
 * register. */
#define HIDE(v) __asm__ volatile("" : "+x"(v))
#define LOOP(name, target_of, vector, zero, step, keep)                                                      \
    __attribute__((target(target_of))) static void name(void *arg)                                           \
    {                                                                                                        \
        vector sum[SUMS], a = zero, b = zero;                                                                \
        _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++)                                              \
        {                                                                                                    \
            sum[i] = zero;                                                                                   \
            HIDE(sum[i]);                                                                                    \
        }                                                                                                    \
        HIDE(b);                                                                                             \
        for (int n = 0; n < STEPS; n++)                                                                      \
            _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++)                                          \
            {                                                                                                \
                HIDE(a);                                                                                     \
                sum[i] = step;                                                                               \
                HIDE(sum[i]);                                                                                \
            }                                                                                                \
        _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++)                                              \
            memcpy((char *)arg + i * (keep), &sum[i], keep);                                                 \
    }
LOOP(float_sse, "sse4.1", __m128, _mm_setzero_ps(), _mm_add_ps(sum[i], _mm_mul_ps(a, b)), 16)
LOOP(float_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), _mm256_fmadd_ps(a, b, sum[i]), 32)
LOOP(float_avx512, "avx512f", __m512, _mm512_setzero_ps(), _mm512_fmadd_ps(a, b, sum[i]), 64)
LOOP(word_avx512, "avx512f,avx512bw", __m512i, _mm512_setzero_si512(),
     _mm512_add_epi32(sum[i], _mm512_madd_epi16(a, b)), 64)
LOOP(word_avx512vnni, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
     _mm512_dpwssd_epi32(sum[i], a, b), 64)
LOOP(word_avx2, "avx2", __m256i, _mm256_setzero_si256(), _mm256_add_epi32(sum[i], _mm256_madd_epi16(a, b)),
     32)
LOOP(word_avxvnni, "avxvnni", __m256i, _mm256_setzero_si256(), _mm256_dpwssd_avx_epi32(sum[i], a, b), 32)
LOOP(byte_sse, "sse4.1", __m128i, _mm_setzero_si128(), _mm_add_epi32(sum[i], _mm_madd_epi16(a, b)), 16)
LOOP(byte_avx2, "avx2", __m256i, _mm256_setzero_si256(),
     _mm256_add_epi32(sum[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), b)), 32)
LOOP(byte_avxvnni, "avxvnni", __m256i, _mm256_setzero_si256(), _mm256_dpbusd_avx_epi32(sum[i], a, b), 32)
LOOP(byte_avx512, "avx512f,avx512bw", __m512i, _mm512_setzero_si512(),
     _mm512_add_epi32(sum[i], _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), b)), 64)
LOOP(byte_avx512vnni, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
     _mm512_dpbusd_epi32(sum[i], a, b), 64)

/* Four tiles of sums, in turn: the instruction's latency is that of three. */
__attribute__((target("amx-tile,amx-int8"))) static void byte_amx(void *arg)
{
    struct {
        uint8_t palette, rest[15];
        uint16_t line[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shape.line[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("" ::"r"(&shape) : "memory");
    _tile_loadconfig(&shape); /* and zeros in all tiles */
    for (int n = 0; n < STEPS * SUMS / 4; n++) {
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, arg, 0);
    _tile_release();
}

/* Of a level, and what one of its steps multiplies. */
static const struct loop {
    unsigned isa;
    bench_number number;
    void (*run)(void *);
    int products;
} loops[] = {
    {DQ_ISA_AMX, BENCH_BYTES, byte_amx, 16 * 16 * 64},
    {DQ_ISA_AVX512VNNI, BENCH_BYTES, byte_avx512vnni, 64},
    {DQ_ISA_AVX512, BENCH_BYTES, byte_avx512, 64},
    {DQ_ISA_AVXVNNI, BENCH_BYTES, byte_avxvnni, 32},
    {DQ_ISA_AVX2, BENCH_BYTES, byte_avx2, 32},
    {DQ_ISA_SSE41, BENCH_BYTES, byte_sse, 8},
    {DQ_ISA_AVX512VNNI, BENCH_WORDS, word_avx512vnni, 32},
    {DQ_ISA_AVX512, BENCH_WORDS, word_avx512, 32},
    {DQ_ISA_AVXVNNI, BENCH_WORDS, word_avxvnni, 16},
    {DQ_ISA_AVX2, BENCH_WORDS, word_avx2, 16},
    {DQ_ISA_SSE41, BENCH_WORDS, byte_sse, 8},
    {DQ_ISA_AVX512, BENCH_FLOATS, float_avx512, 16},
    {DQ_ISA_AVX2, BENCH_FLOATS, float_avx2, 8},
    {DQ_ISA_SSE41, BENCH_FLOATS, float_sse, 4},
};

/* By the highest level up to `isa` that has a loop. Portable C is compiled for the lowest. */
double bench_product_rate(unsigned isa, bench_number number)
{
    static double known[sizeof loops / sizeof loops[0]];
    uint8_t kept[SUMS * 64];
    unsigned level = isa == DQ_ISA_C ? DQ_ISA_SSE41 : isa;
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (loops[i].number == number && loops[i].isa <= level && (loops[i].isa & dq_cpu_isa())) {
            double least = known[i] == 0 ? bench_seconds(loops[i].run, kept) : 1;
            for (int again = 0; again < 4 && known[i] == 0; again++)
                least = fmin(least, bench_seconds(loops[i].run, kept));
            if (known[i] == 0)
                known[i] = (double)STEPS * SUMS * loops[i].products / least;
            return known[i];
        }
    return 0;
}
#else
double bench_product_rate(unsigned isa, bench_number number)
{
    (void)isa, (void)number;
    return 0;
}
#endif
