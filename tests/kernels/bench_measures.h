/* SPDX-License-Identifier: Apache-2.0 */
/* What measures are made of: the memory that they work on, and the tables of those of rows and of products.
 */
#ifndef DQ_BENCH_MEASURES_H
#define DQ_BENCH_MEASURES_H

#include "bench.h"

enum { NEAR = 2048, FAR = 16 << 20 /* elements */, WORKSPACE = FAR * 4 };

extern uint8_t *bench_source, *bench_target, *bench_third; /* ROOM bytes each, for all measures */
extern double bench_scales[DQ_REQUANTIZE_COLS];

typedef struct call {
    const dq_kernels *k;
    const struct measure *measure;
    size_t n;
    bench_work work; /* set by a run */
} call;

typedef struct measure {
    const char *slot; /* NULL: the table's end */
    void (*run)(call *c);
    bool row;         /* measured on far memory, too */
    const char *what; /* of several of a slot; or NULL */
} measure;

extern const measure bench_rows[], bench_products[];

#define X(type) ((const type *)(const void *)bench_source)
#define Y(type) ((type *)(void *)bench_target)
#define Z(type) ((const type *)(const void *)bench_third)
#define WORK(read_bytes, written_bytes)                                                                      \
    c->work = (bench_work)                                                                                   \
    {                                                                                                        \
        .read = (double)(c->n) * (read_bytes), .written = (double)(c->n) * (written_bytes)                   \
    }

#define MEASURE(slot, read_bytes, written_bytes, ...)                                                        \
    static void run_##slot(call *c)                                                                          \
    {                                                                                                        \
        WORK(read_bytes, written_bytes);                                                                     \
        c->k->slot(__VA_ARGS__);                                                                             \
    }

#define ROW(slot)                                                                                            \
    {                                                                                                        \
#slot, run_##slot, true, NULL                                                                        \
    }
#define PRODUCT(slot)                                                                                        \
    {                                                                                                        \
#slot, run_##slot, false, NULL                                                                       \
    }

#endif
