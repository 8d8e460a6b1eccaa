/* SPDX-License-Identifier: Apache-2.0 */
/* One measure a slot: a call on memory in the first-level cache, and for rows one on memory that fits no
 * cache. */
#include "bench_measures.h"
#include "support/random.h"

#include "base/cpu.h"
#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *bench_source, *bench_target, *bench_third;
double bench_scales[DQ_REQUANTIZE_COLS];

/* ---- The table ---- */

static double read_rate[2], write_rate[2]; /* near, far */

static void run_call(void *arg)
{
    call *c = arg;
    c->measure->run(c);
}

/* Small numbers of either sign as floats; as integers they are anything. */
static void fill(uint8_t *bytes)
{
    uint64_t state = 1;
    for (size_t i = 0; i < WORKSPACE; i += 4) {
        float x = (float)random_fraction(&state) * 6.0f;
        memcpy(bytes + i, &x, 4);
    }
}

void bench_begin(void)
{
    bench_source = dq_pages_alloc(WORKSPACE);
    bench_target = dq_pages_alloc(WORKSPACE);
    bench_third = dq_pages_alloc(WORKSPACE);
    if (!bench_source || !bench_target || !bench_third)
        exit(EXIT_FAILURE);
    fill(bench_source);
    memset(bench_target, 0, WORKSPACE);
    fill(bench_third);
    for (size_t i = 0; i < DQ_REQUANTIZE_COLS; i++)
        bench_scales[i] = (double)0.001f;
    for (int exceeds_caches = 0; exceeds_caches < 2; exceeds_caches++) {
        size_t bytes = exceeds_caches ? (size_t)FAR * 4 : 8192;
        read_rate[exceeds_caches] = bench_read_rate(bytes);
        write_rate[exceeds_caches] = bench_write_rate(bytes);
        printf("%s: reads %.1f, writes %.1f GB/s\n", exceeds_caches ? "memory" : "first-level cache",
               1e-9 * read_rate[exceeds_caches], 1e-9 * write_rate[exceeds_caches]);
    }
    printf("memory: four words read and one written %.1f, one read and four written %.1f GB/s\n",
           1e-9 * bench_copy_rate((size_t)FAR * 4, (size_t)FAR),
           1e-9 * bench_copy_rate((size_t)FAR, (size_t)FAR * 4));
    printf("%-11s %-32s %10s %9s %7s %9s %7s\n", "", "", "ns a call", "near", "of max", "far", "of max");
}

void bench_limits(void)
{
    enum { FEWEST = 1 << 13, MOST = 1 << 28 /* bytes */ };
    for (size_t bytes = FEWEST; bytes <= MOST; bytes *= 2)
        printf("reads of %zu bytes: %.1f GB/s\n", bytes, 1e-9 * bench_read_rate(bytes));
    for (unsigned isa = DQ_ISA_SSE41; isa <= DQ_ISA_AMX; isa *= 2)
        if (isa & dq_cpu_isa())
            printf("products of %s: bytes %.1f, words %.1f, floats %.1f GMAC\n", dq_isa_highest(isa),
                   1e-9 * bench_product_rate(isa, BENCH_BYTES), 1e-9 * bench_product_rate(isa, BENCH_WORDS),
                   1e-9 * bench_product_rate(isa, BENCH_FLOATS));
}

/* Prints the rate of `took` seconds and its part of what the machine allows. */
static void print_rate(const bench_work *w, double took, unsigned isa, int exceeds_caches)
{
    if (w->products > 0) {
        double most = bench_product_rate(isa, w->bytes ? BENCH_BYTES : BENCH_FLOATS),
               got = w->products / took;
        printf(" %5.1f GMAC", 1e-9 * got);
        printf(most > 0 ? "  %4.0f %%" : "       -", 100 * got / most);
        return;
    }
    double least = w->read / read_rate[exceeds_caches] + w->written / write_rate[exceeds_caches];
    printf(" %5.1f GB/s  %4.0f %%", 1e-9 * (w->read + w->written) / took, 100 * least / took);
}

static bool measure_slot(const measure *m, const char *isa_name, unsigned isa, const char *slot,
                         const char *name, const dq_kernels *k)
{
    bool any = false;
    for (; m->slot; m++) {
        if (strcmp(m->slot, slot) != 0)
            continue;
        call c = {.k = k, .measure = m, .n = NEAR};
        double took = bench_seconds(run_call, &c);
        int width = printf("%-11s %s%s%s", isa_name, name, m->what ? ", " : "", m->what ? m->what : "");
        printf("%*s %10.1f", width < 44 ? 44 - width : 0, "", 1e9 * took);
        print_rate(&c.work, took, isa, 0);
        if (m->row) {
            c.n = FAR;
            print_rate(&c.work, took = bench_seconds(run_call, &c), isa, 1);
        }
        printf("\n");
        any = true;
    }
    return any;
}

bool bench_kernel(const char *isa_name, unsigned isa, const char *slot, const char *name, const dq_kernels *k)
{
    bool row = measure_slot(bench_rows, isa_name, isa, slot, name, k);
    return measure_slot(bench_products, isa_name, isa, slot, name, k) || row;
}
