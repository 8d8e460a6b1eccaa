/* SPDX-License-Identifier: Apache-2.0 */
/* Vectorized reductions of integers, whose order does not change the result. Contiguous results are columns.
 * A row of elements is reduced as several columns, which are combined at the end. */
#include "ops/reduce/reduce.h"

#include <string.h>

enum {
    BLOCK = DQ_REDUCE_BLOCK,
    LANES = 128,           /* bytes of accumulators (columns) of a long row */
    TILE = 4096,           /* elements of short rows transposed at a time */
    MAX_SHORT_ROW = 128,   /* maximum length of short rows */
    MAX_SHORT_ROW_64 = 64, /* the same for 64-bit elements, which are not transposed */
    LINE = 16,             /* minimum of contiguous results per task */
    DENSE_BYTES = 16384,   /* bytes of densely spaced rows per kernel call */
    MIN_DENSE_ROWS = 16    /* minimum rows per kernel call */
};

/* Reduction of one element type. */
typedef struct reducer {
    dq_join_fn *join;
    size_t width, result_bytes; /* bytes of an element; bytes of an accumulator */
    uint64_t sign_xor, start;   /* start: initial value of the accumulators that fill 64 bits */
    bool add;                   /* a sum, else an extreme */
} reducer;

typedef struct job {
    const dq_reduction *s;
    const dq_kernels *kernels;
    const dq_tensor *in;
    dq_tensor *out;
    reducer reducer;
} job;

typedef union lanes {
    uint8_t of_8[BLOCK];
    uint32_t of_32[BLOCK];
    uint64_t of_64[BLOCK];
} lanes;

uint64_t dq_extreme_sign_xor(dq_dtype dtype, bool max)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    const uint64_t all = UINT64_MAX >> (64 - row->bits), sign = (uint64_t)1 << (row->bits - 1);
    if (row->cls == DQ_CLASS_FLOAT)
        return max ? 0 : sign;
    /* Inverting all bits reverses the order. Inverting the sign bit orders signed numbers as unsigned. */
    return (max ? 0 : all) ^ ((row->cls == DQ_CLASS_INT) == (row->bits == 8) ? sign : 0);
}

static bool reducer_of(const dq_reduce_axis_mixed *k, dq_reduce_kind kind, dq_dtype dtype, reducer *to)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    bool mean = kind == DQ_REDUCE_MEAN && row->cls == DQ_CLASS_INT;
    bool extreme = kind == DQ_REDUCE_MIN || kind == DQ_REDUCE_MAX;
    size_t width = row->bits / 8;
    if (row->cls == DQ_CLASS_FLOAT || (!extreme && kind != DQ_REDUCE_SUM && !mean))
        return false;
    uint64_t sign_xor = extreme ? dq_extreme_sign_xor(dtype, kind == DQ_REDUCE_MAX) : 0;
    if (!extreme && width == 4)
        *to = (reducer){k->add_32, 4, 8, 0, 0, true};
    else if (!extreme && width == 8)
        *to = (reducer){k->add_64, 8, 8, 0, 0, true};
    else if (extreme && row->bits == 8)
        *to = (reducer){k->max_8, 1, 1, sign_xor, 0, false};
    else if (extreme && width == 4)
        *to = (reducer){k->max_32, 4, 4, sign_xor, 0x8000000080000000, false};
    else if (extreme && width == 8)
        *to = (reducer){k->max_64, 8, 8, sign_xor, (uint64_t)1 << 63, false};
    else
        return false;
    return true;
}

static void begin_lanes(const reducer *w, size_t n, lanes *to)
{
    for (size_t i = 0; i * sizeof(uint64_t) < n * w->result_bytes; i++)
        to->of_64[i] = w->start;
}

/* Mean truncated toward zero. If the sum has less than 53 bits, a quotient that is not an integer is not
 * rounded to one in double. */
static int64_t mean_of(int64_t sum, size_t count)
{
    const int64_t exact = (int64_t)1 << 53;
    return sum < exact && sum > -exact ? (int64_t)((double)sum / (double)count) : sum / (int64_t)count;
}

/* Means of sums of less than 51 bits. They are converted to double by adding them to the mantissa of 1.5 *
 * 2^52. */
static void means_of(const uint64_t *sums, size_t n, size_t count, int32_t *to)
{
    const double around = 0x1.8p52, by = (double)count;
    uint64_t high;
    memcpy(&high, &around, sizeof high);
    for (size_t k = 0; k < n; k++) {
        const uint64_t bits = sums[k] + high;
        double sum;
        memcpy(&sum, &bits, sizeof sum);
        to[k] = (int32_t)((sum - around) / by);
    }
}

static void give(const job *j, lanes *from, size_t n, size_t i)
{
    const reducer *w = &j->reducer;
    const size_t count = j->s->reduced.count;
    const bool mean = j->s->kind == DQ_REDUCE_MEAN;
    void *to = (char *)j->out->data + i * w->width;
    if (mean && w->width == 4 && count < (size_t)1 << 19) {
        means_of(from->of_64, n, count, to);
        return;
    }
    for (size_t k = 0; k < n && mean; k++)
        from->of_64[k] = (uint64_t)mean_of((int64_t)from->of_64[k], count);
    for (size_t k = 0; k < n; k++)
        if (w->width == 1)
            ((uint8_t *)to)[k] = from->of_8[k] ^ (uint8_t)w->sign_xor;
        else if (w->width == 8)
            ((uint64_t *)to)[k] = from->of_64[k] ^ w->sign_xor;
        else
            ((uint32_t *)to)[k] =
                (w->add ? (uint32_t)from->of_64[k] : from->of_32[k]) ^ (uint32_t)w->sign_xor;
}

/* Accumulates the elements of `walk` from x on in n <= BLOCK columns. Densely spaced rows are processed in
 * parts that fit in L1, because kernels read a few columns at a time. */
static void join(const reducer *w, const char *x, const dq_walk *walk, size_t n, lanes *to)
{
    size_t coord[DQ_MAX_RANK] = {0}, inner = walk->rank ? walk->rank - 1 : 0;
    size_t run = walk->rank ? walk->dims[inner] : 1, step = walk->rank ? walk->strides[inner] : 0;
    size_t part =
        step * w->width < DENSE_BYTES / MIN_DENSE_ROWS ? DENSE_BYTES / (step * w->width + 1) : MIN_DENSE_ROWS;
    for (size_t done = 0; done < walk->count; done += run) {
        const char *from = x + dq_walk_next(walk, coord, inner) * w->width;
        for (size_t t = 0; t < run; t += part)
            w->join(from + t * step * w->width, step, run - t < part ? run - t : part, n, w->sign_xor, to);
    }
}

#define LARGEST(type, x, n, sign_xor, most)                                                                  \
    do {                                                                                                     \
        const type *from = (x), sign_xor_bits = (type)(sign_xor);                                            \
        for (size_t k = 0; k < (n); k++)                                                                     \
            (most) = (type)(from[k] ^ sign_xor_bits) > (most) ? (type)(from[k] ^ sign_xor_bits) : (most);    \
    } while (0)

/* Combines n values at x to one accumulator. `sign_xor` applies to extremes first. */
static void join_all(const reducer *w, const void *x, size_t n, uint64_t sign_xor, lanes *to)
{
    if (w->add) {
        uint64_t sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += ((const uint64_t *)x)[k];
        to->of_64[0] = sum;
    } else if (w->result_bytes == 1) {
        uint8_t most = 0;
        LARGEST(uint8_t, x, n, sign_xor, most);
        to->of_8[0] = most;
    } else if (w->result_bytes == 4) {
        int32_t most = INT32_MIN;
        LARGEST(int32_t, x, n, sign_xor, most);
        to->of_32[0] = (uint32_t)most;
    } else {
        int64_t most = INT64_MIN;
        LARGEST(int64_t, x, n, sign_xor, most);
        to->of_64[0] = (uint64_t)most;
    }
}

/* Computes result i from the segments at x. Several short segments have a column for each position. Long
 * segments, or a single one, have LANES bytes of columns. */
static void row(const job *j, const char *x, size_t i)
{
    const reducer *w = &j->reducer;
    dq_walk walk = j->s->reduced;
    size_t coord[DQ_MAX_RANK] = {0}, inner = walk.rank - 1, run = walk.dims[inner];
    size_t n = LANES / w->result_bytes, rest = run % n;
    lanes most;
    if (inner && run <= BLOCK) {
        walk.rank--;
        walk.count /= run;
        begin_lanes(w, run, &most);
        join(w, x, &walk, run, &most);
        join_all(w, &most, run, 0, &most);
        give(j, &most, 1, i);
        return;
    }
    begin_lanes(w, n, &most);
    for (size_t done = 0; done < walk.count; done += run) {
        const char *from = x + dq_walk_next(&walk, coord, inner) * w->width;
        w->join(from, n, run / n, n, w->sign_xor, &most);
        w->join(from + (run - rest) * w->width, 0, 1, rest, w->sign_xor, &most);
    }
    join_all(w, &most, n, 0, &most);
    give(j, &most, 1, i);
}

static const char *element(const job *j, size_t at)
{
    return (const char *)j->in->data + at * j->reducer.width;
}

static void piece_of_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        row(j, element(j, dq_walk_at(&j->s->kept, i)), i);
}

static void piece_of_columns(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin, n; i < end; i += n) {
        n = dq_reduce_strided(&j->s->kept, i, end);
        lanes most;
        begin_lanes(&j->reducer, n, &most);
        join(&j->reducer, element(j, dq_walk_at(&j->s->kept, i)), &j->s->reduced, n, &most);
        give(j, &most, n, i);
    }
}

void dq_reduce_transpose(const dq_kernels *kernels, size_t width, const void *x, size_t rows, size_t cols,
                         void *to)
{
    if (width == 1)
        kernels->transpose_x8(x, cols, rows, cols, 0, to, rows);
    else
        kernels->transpose_x32(x, cols, rows, cols, to, rows);
}

/* Computes results of contiguous short rows by transposing them. 64-bit elements would gain nothing. */
static void piece_of_short_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const reducer *w = &j->reducer;
    uint32_t transposed[TILE];
    lanes most;
    size_t each = j->s->reduced.count, few = TILE / each < BLOCK ? TILE / each / LINE * LINE : BLOCK;
    for (size_t i = begin, n; i < end; i += n) {
        n = end - i < few ? end - i : few;
        begin_lanes(w, n, &most);
        if (w->width < 8) {
            dq_reduce_transpose(j->kernels, w->width, element(j, i * each), n, each, transposed);
            join(w, (const char *)transposed, &(dq_walk){1, each, {each}, {n}}, n, &most);
        }
        for (size_t k = 0; k < n && w->width == 8; k++) {
            lanes one;
            join_all(w, element(j, (i + k) * each), each, w->sign_xor, &one);
            most.of_64[k] = one.of_64[0];
        }
        give(j, &most, n, i);
    }
}

bool dq_reduce_integers(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                        const dq_tensor *in, dq_tensor *out)
{
    job j = {s, kernels, in, out, {0}};
    size_t grain = dq_reduce_grain(s);
    if (!reducer_of(kernels->reduce_axis_mixed, s->kind, in->dtype, &j.reducer))
        return false;
    if (dq_reduce_short_rows(s, j.reducer.width < 8 ? MAX_SHORT_ROW : MAX_SHORT_ROW_64))
        dq_parallel(threads, out->count, (grain + LINE - 1) / LINE * LINE, piece_of_short_rows, &j);
    else if (s->reduced.rank && s->reduced.strides[s->reduced.rank - 1] == 1)
        dq_parallel(threads, out->count, grain, piece_of_rows, &j);
    else
        dq_parallel(threads, out->count, dq_column_grain(grain, s->kept.dims[s->kept.rank - 1]),
                    piece_of_columns, &j);
    return true;
}
