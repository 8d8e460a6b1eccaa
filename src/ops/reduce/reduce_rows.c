/* SPDX-License-Identifier: Apache-2.0 */
/* Vectorized reductions of floats: over contiguous rows, over transposed short rows, and of contiguous
 * results. */
#include "base/math.h"
#include "ops/reduce/reduce.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = DQ_REDUCE_BLOCK,
    MAX_SHORT_ROW = 64,      /* maximum length of rows that are transposed */
    TILE = 4096,             /* elements transposed at a time */
    LINE = 32,               /* minimum of contiguous results per task */
    LANES = 16,              /* lanes of a row, see kernels/elementwise/float_rows.h */
    ELEMENTS_PER_TASK = 8192 /* approximate elements per task */
};

typedef struct job {
    const dq_reduction *s;
    const dq_kernels *kernels;
    const dq_tensor *in;
    dq_tensor *out;
} job;

size_t dq_walk_at(const dq_walk *w, size_t i)
{
    size_t at = 0;
    if (w->rank == 1) /* avoids a division, which takes as long as a short row */
        return i * w->strides[0];
    for (size_t d = w->rank; d-- > 0; i /= w->dims[d])
        at += i % w->dims[d] * w->strides[d];
    return at;
}

double dq_reduce_finish(dq_reduce_kind kind, double shift, double sum, size_t count)
{
    switch (kind) {
    case DQ_REDUCE_MEAN:
        return sum / (double)count;
    case DQ_REDUCE_L2:
        return sqrt(sum);
    case DQ_REDUCE_LOG_SUM:
        return dq_log(sum);
    case DQ_REDUCE_LOG_SUM_EXP:
        return dq_log(sum) + shift;
    default:
        return sum;
    }
}

size_t dq_reduce_grain(const dq_reduction *s)
{
    return s->reduced.count < ELEMENTS_PER_TASK ? ELEMENTS_PER_TASK / (s->reduced.count + 1) + 1 : 1;
}

size_t dq_walk_next(const dq_walk *w, size_t coord[DQ_MAX_RANK], size_t inner)
{
    size_t at = 0;
    for (size_t d = 0; d < inner; d++)
        at += coord[d] * w->strides[d];
    for (size_t d = inner; d-- > 0; coord[d] = 0)
        if (++coord[d] < w->dims[d])
            break;
    return at;
}

/* Returns n elements from `at` on as floats: in place, or converted into `workspace`. */
static const float *floats_at(const job *j, size_t at, size_t n, float *workspace)
{
    if (j->in->dtype == DQ_FLOAT)
        return dq_data(j->in, float) + at;
    dq_load_floats(j->kernels, j->in->dtype, j->in->data, at, n, workspace);
    return workspace;
}

/* Stores n <= BLOCK results from number i on. */
static void put(const job *j, size_t i, const double *values, size_t n)
{
    float workspace[BLOCK], *to = dq_data(j->out, float) + i;
    if (j->out->dtype == DQ_FLOAT) {
        for (size_t k = 0; k < n; k++)
            to[k] = (float)values[k];
        return;
    }
    dq_round_all_to_odd(values, n, workspace);
    dq_store_from_floats(j->kernels, j->out->dtype, j->out->data, i, n, workspace, true);
}

/* Finishes n accumulators and stores them as results from number i on. */
static void put_all(const job *j, size_t i, double *sums, const float *shift, size_t n)
{
    const dq_reduce_kind kind = j->s->kind;
    const double count = (double)j->s->reduced.count;
    for (size_t k = 0; k < n && kind == DQ_REDUCE_MEAN; k++)
        sums[k] /= count;
    for (size_t k = 0; k < n && kind == DQ_REDUCE_L2; k++)
        sums[k] = sqrt(sums[k]);
    for (size_t k = 0; k < n && (kind == DQ_REDUCE_LOG_SUM || kind == DQ_REDUCE_LOG_SUM_EXP); k++)
        sums[k] = dq_reduce_finish(kind, (double)shift[k], sums[k], 0);
    put(j, i, sums, n);
}

static bool extreme(dq_reduce_kind kind)
{
    return kind == DQ_REDUCE_MIN || kind == DQ_REDUCE_MAX;
}

/* ---- Contiguous elements ------------------------------------------------------------------------------- */

static double found(const dq_rows_f32 *rows, dq_reduce_kind kind, const float *x, size_t n, double value)
{
    bool least = kind == DQ_REDUCE_MIN;
    double here = (double)(least ? rows->min_of(x, n) : rows->max_of(x, n));
    return (least ? here < value : here > value) || isnan(here) ? here : value;
}

/* Accumulates a contiguous segment into `value`. Exponentials are of x - off. */
static double join_row(const job *j, dq_reduce_kind kind, size_t at, size_t n, float off, double value)
{
    const dq_rows_f32 *rows = j->kernels->rows_f32;
    float workspace[BLOCK];
    bool in_workspace = kind == DQ_REDUCE_LOG_SUM_EXP || j->in->dtype != DQ_FLOAT;
    for (size_t i = 0, few; i < n; i += few) {
        few = in_workspace && n - i > BLOCK ? BLOCK : n - i;
        const float *x = floats_at(j, at + i, few, workspace);
        if (extreme(kind)) {
            value = found(rows, kind, x, few, value);
        } else if (kind == DQ_REDUCE_L2 || kind == DQ_REDUCE_SUM_SQUARE) {
            value += rows->squares(x, few, 0, 0);
        } else if (kind == DQ_REDUCE_LOG_SUM_EXP) {
            value += rows->exp_sum(x, few, off, workspace);
        } else {
            value += rows->sum(x, few);
        }
    }
    return value;
}

/* Reduces the contiguous segments of one result in order. */
static double fold_row(const job *j, dq_reduce_kind kind, size_t base, float off)
{
    const dq_walk *w = &j->s->reduced;
    size_t coord[DQ_MAX_RANK], run = w->dims[w->rank - 1];
    double value = kind == DQ_REDUCE_MIN ? HUGE_VAL : kind == DQ_REDUCE_MAX ? -HUGE_VAL : 0;
    if (w->rank == 1)
        return join_row(j, kind, base, run, off, value);
    memset(coord, 0, sizeof coord);
    for (size_t done = 0; done < w->count; done += run)
        value = join_row(j, kind, base + dq_walk_next(w, coord, w->rank - 1), run, off, value);
    return value;
}

/* ---- Contiguous results -------------------------------------------------------------------------------- */

/* Kernel that accumulates columns in double; NULL: join_lines uses another one. */
static dq_join_fn *join_of(const job *j, dq_reduce_kind kind)
{
    const dq_reduce_axis_mixed *k = j->kernels->reduce_axis_mixed;
    switch (kind) {
    case DQ_REDUCE_PROD:
        return k->mul_f32;
    case DQ_REDUCE_L1:
        return k->abs_f32;
    case DQ_REDUCE_L2:
    case DQ_REDUCE_SUM_SQUARE:
        return k->squares_f32;
    default:
        return NULL;
    }
}

static void join_lines(const job *j, dq_reduce_kind kind, const float *x, size_t step, size_t lines, size_t n,
                       float *most, double *out)
{
    const dq_rows_f32 *rows = j->kernels->rows_f32;
    dq_join_fn *join = join_of(j, kind);
    float workspace[BLOCK];
    if (extreme(kind))
        rows->extreme_to(x, step, lines, n, kind == DQ_REDUCE_MIN, most);
    else if (join)
        join(x, step, lines, n, 0, out);
    else if (kind != DQ_REDUCE_LOG_SUM_EXP)
        rows->add_to(x, step, lines, n, out);
    for (; kind == DQ_REDUCE_LOG_SUM_EXP && lines-- > 0; x += step) {
        rows->sub(x, 1, most, 1, n, workspace);
        rows->exp(workspace, n, workspace);
        rows->add_to(workspace, 0, 1, n, out);
    }
}

/* Accumulates n <= BLOCK columns, row after row: extremes into `most`, sums into `out`. */
static void join_columns(const job *j, dq_reduce_kind kind, const dq_walk *w, size_t base, size_t n,
                         float *most, double *out)
{
    size_t coord[DQ_MAX_RANK] = {0}, inner = w->rank ? w->rank - 1 : 0;
    size_t run = w->rank ? w->dims[inner] : 1, step = w->rank ? w->strides[inner] : 0;
    size_t lines = j->in->dtype == DQ_FLOAT ? run : 1;
    float workspace[BLOCK];
    for (size_t done = 0; done < w->count; done += run) {
        size_t at = base + dq_walk_next(w, coord, inner);
        for (size_t t = 0; t < run; t += lines)
            join_lines(j, kind, floats_at(j, at + t * step, n, workspace), step, lines, n, most, out);
    }
}

static void begin_columns(dq_reduce_kind kind, size_t n, float *most, double *out)
{
    for (size_t k = 0; k < n; k++) {
        most[k] = kind == DQ_REDUCE_MIN ? INFINITY : -INFINITY;
        out[k] = kind == DQ_REDUCE_PROD;
    }
}

/* Computes n <= BLOCK results from number i on, whose elements are contiguous from `base` on. */
static void fold_columns(const job *j, const dq_walk *w, size_t base, size_t n, size_t i)
{
    dq_reduce_kind kind = j->s->kind;
    bool by_extreme = extreme(kind) || kind == DQ_REDUCE_LOG_SUM_EXP;
    float most[BLOCK];
    double sum[BLOCK];
    begin_columns(kind, n, most, sum);
    if (by_extreme)
        join_columns(j, extreme(kind) ? kind : DQ_REDUCE_MAX, w, base, n, most, NULL);
    for (size_t k = 0; k < n && kind == DQ_REDUCE_LOG_SUM_EXP; k++)
        most[k] = isfinite(most[k]) ? most[k] : 0;
    if (!extreme(kind))
        join_columns(j, kind, w, base, n, most, sum);
    for (size_t k = 0; k < n && extreme(kind); k++)
        sum[k] = (double)most[k];
    put_all(j, i, sum, most, n);
}

size_t dq_reduce_strided(const dq_walk *kept, size_t i, size_t end)
{
    size_t row = kept->dims[kept->rank - 1], n = row - i % row;
    n = n < end - i ? n : end - i;
    return n < BLOCK ? n : BLOCK;
}

static void piece_of_columns(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_reduction *s = j->s;
    for (size_t i = begin, n; i < end; i += n) {
        n = dq_reduce_strided(&s->kept, i, end);
        fold_columns(j, &s->reduced, dq_walk_at(&s->kept, i), n, i);
    }
}

/* ---- Rows as columns ----------------------------------------------------------------------------------- */

/* True if a result has several segments, short enough that each position in them is a column. */
static bool are_short_rows(const dq_walk *w)
{
    return w->rank > 1 && w->dims[w->rank - 1] <= BLOCK;
}

/* Combines n columns to one value. Column l >= LANES goes to lane l % LANES, in ascending order. Then the
 * lanes are halved four times: lane l + 8 goes to l, then l + 4, l + 2, l + 1. */
static double fold_short_rows(const job *j, dq_reduce_kind kind, size_t n, const float *most, double *sum)
{
    const dq_rows_f32 *rows = j->kernels->rows_f32;
    if (extreme(kind))
        return found(rows, kind, most, n, kind == DQ_REDUCE_MIN ? HUGE_VAL : -HUGE_VAL);
    for (size_t first = LANES, h = LANES; h > 0; first += LANES) {
        h = first < n ? LANES : h / 2;
        const double *from = sum + (first < n ? first : h);
        for (size_t l = 0; l < h && kind == DQ_REDUCE_PROD; l++)
            sum[l] *= from[l];
        for (size_t l = 0; l < h && kind != DQ_REDUCE_PROD; l++)
            sum[l] += from[l];
    }
    return sum[0];
}

/* Computes one result through columns: one per position of short segments, or LANES of them for long ones. */
static double fold_by_columns(const job *j, dq_reduce_kind kind, size_t base)
{
    dq_walk w = j->s->reduced;
    size_t coord[DQ_MAX_RANK] = {0}, run = w.dims[--w.rank], n = LANES;
    float most[BLOCK], workspace[BLOCK];
    double sum[BLOCK];
    if (are_short_rows(&j->s->reduced)) {
        w.count /= n = run;
        begin_columns(kind, (n + LANES - 1) / LANES * LANES, most, sum);
        join_columns(j, kind, &w, base, n, most, sum);
        return fold_short_rows(j, kind, n, most, sum);
    }
    begin_columns(kind, n, most, sum);
    for (size_t done = 0; done < w.count; done += run) {
        size_t at = base + dq_walk_next(&j->s->reduced, coord, w.rank);
        for (size_t i = 0, few; i < run; i += few) {
            few = j->in->dtype != DQ_FLOAT && run - i > BLOCK ? BLOCK : run - i;
            const float *x = floats_at(j, at + i, few, workspace);
            join_of(j, kind)(x, LANES, few / LANES, LANES, 0, sum);
            join_of(j, kind)(x + few / LANES * LANES, 0, 1, few % LANES, 0, sum);
        }
    }
    return fold_short_rows(j, kind, n, most, sum);
}

static double row_value(const job *j, bool by_columns, size_t base)
{
    const dq_reduce_kind kind = j->s->kind;
    const size_t count = j->s->reduced.count;
    if (by_columns)
        return dq_reduce_finish(kind, 0, fold_by_columns(j, kind, base), count);
    const double most = kind == DQ_REDUCE_LOG_SUM_EXP ? fold_row(j, DQ_REDUCE_MAX, base, 0) : 0;
    return isfinite(most) ? dq_reduce_finish(kind, most, fold_row(j, kind, base, (float)most), count) : most;
}

static void piece_of_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_reduction *s = j->s;
    const bool by_columns = s->kind == DQ_REDUCE_PROD || s->kind == DQ_REDUCE_L1 ||
                            (are_short_rows(&s->reduced) && s->kind != DQ_REDUCE_LOG_SUM_EXP);
    for (size_t i = begin, n; i < end; i += n) {
        double values[BLOCK];
        n = end - i < BLOCK ? end - i : BLOCK;
        for (size_t k = 0; k < n; k++)
            values[k] = row_value(j, by_columns, dq_walk_at(&s->kept, i + k));
        put(j, i, values, n);
    }
}

/* Computes results of contiguous short rows by transposing them. */
static void piece_of_short_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    float workspace[TILE], transposed[TILE];
    const dq_tensor view = {.dtype = DQ_FLOAT, .data = transposed};
    const job columns = {j->s, j->kernels, &view, j->out};
    size_t each = j->s->reduced.count, most = TILE / each < BLOCK ? TILE / each / LINE * LINE : BLOCK;
    for (size_t i = begin, n; i < end; i += n) {
        n = end - i < most ? end - i : most;
        const float *x = floats_at(j, i * each, n * each, workspace);
        const dq_walk down = {1, each, {each}, {n}};
        j->kernels->transpose_x32((const uint32_t *)(const void *)x, each, n, each,
                                  (uint32_t *)(void *)transposed, n);
        fold_columns(&columns, &down, 0, n, i);
    }
}

/* ---- Choice of the algorithm --------------------------------------------------------------------------- */

static bool contiguous(const dq_walk *w)
{
    return w->rank && w->strides[w->rank - 1] == 1;
}

bool dq_reduce_short_rows(const dq_reduction *s, size_t most)
{
    const dq_walk *kept = &s->kept;
    return s->reduced.rank == 1 && s->reduced.count <= most && kept->rank == 1 &&
           kept->strides[0] == s->reduced.count;
}

size_t dq_column_grain(size_t grain, size_t row)
{
    grain = (grain + LINE - 1) / LINE * LINE;
    return row < grain || row < 2 * LINE ? (grain + row - 1) / row * row : grain;
}

static size_t column_grain(const dq_reduction *s)
{
    return dq_column_grain(dq_reduce_grain(s), s->kept.dims[s->kept.rank - 1]);
}

bool dq_reduce_by_vectors(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                          const dq_tensor *in, dq_tensor *out)
{
    job j = {s, kernels, in, out};
    size_t grain = dq_reduce_grain(s), lines = (grain + LINE - 1) / LINE * LINE;
    bool floats = in->dtype == DQ_FLOAT || in->dtype == DQ_FLOAT16 || in->dtype == DQ_BFLOAT16;
    bool rows = contiguous(&s->reduced), columns = contiguous(&s->kept);
    if (s->reduced.count == 0 || !(rows || columns))
        return false;
    if (floats && rows && dq_reduce_short_rows(s, MAX_SHORT_ROW))
        dq_parallel(threads, out->count, lines, piece_of_short_rows, &j);
    else if (floats && rows)
        dq_parallel(threads, out->count, grain, piece_of_rows, &j);
    else if (floats)
        dq_parallel(threads, out->count, column_grain(s), piece_of_columns, &j);
    else
        return dq_reduce_integers(threads, kernels, s, in, out);
    return true;
}
