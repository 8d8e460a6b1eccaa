/* dqrun.WideMatMul: a matrix product of codes of which some have 16 bits, as MatMul broadcasts, or with
 * transB as Gemm has it:
 *
 *   total = sum of (a - a_zero_point)(b - b_zero_point), exact, + bias / (alpha * a_scale * b_scale)
 *   y = saturate(round(total * (alpha * a_scale * b_scale / y_scale)) + y_zero_point)
 *
 * or, without y_scale, total * (alpha * a_scale * b_scale) as a float. Scales and zero points of b are one,
 * or one a column of the only matrix; the bias is a float a column. */
#include "base/checked.h"
#include "ops/matmul_shape.h"
#include "ops/qgemm.h"
#include "ops/wide_codes.h"

#include <string.h>

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, BIAS };
enum { ROWS = DQ_WGEMM_ROWS, COLS = DQ_WGEMM_COLS, BLOCK = 64, ALIGN = 64 };

typedef struct state {
    dq_matmul_shape s;
    size_t m, batches; /* as computed: matrices that meet the same b are one */
    dq_wcodes w;
    size_t block, blocks;              /* rows of a task */
    size_t chunk, chunks;              /* panels of a task */
    size_t rows_at, codes_at, sums_at; /* of a worker's scratch */
} state;

/* ---- Planning -------------------------------------------------------------------------------------------
 */

static dq_status check_param(const dq_op_call *call, uint32_t i, size_t columns, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == 1 || (columns && t->rank == 1 && t->count == columns))
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has %zu elements, wanted %s", t->count,
                              columns ? "1 or one a column" : "1");
}

static dq_status check(const dq_op_call *call, dq_matmul_shape *s, dq_error *err)
{
    const dq_tensor *b = call->in[B];
    dq_tensor turned = *b;
    if (dq_node_int(call->node, "transB", 0) != 0) {
        if (b->rank != 2)
            return dq_call_fail_input(call, err, B, "has rank %u, wanted a matrix", b->rank);
        turned.dims[0] = b->dims[1];
        turned.dims[1] = b->dims[0];
    }
    DQ_TRY(dq_matmul_shape_of(call, A, B, call->in[A], &turned, s, err));
    size_t columns = s->b_batches == 1 ? s->n : 0;
    for (uint32_t i = A_SCALE; i <= BIAS; i++)
        if (i != B)
            DQ_TRY(check_param(call, i, i == B_SCALE || i == B_ZERO || i == BIAS ? columns : 0, err));
    if (!dq_call_in(call, Y_SCALE) != !dq_call_in(call, Y_ZERO))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "needs both of y_scale and y_zero_point, or none");
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_matmul_shape s;
    DQ_TRY(check(call, &s, err));
    const dq_tensor *zero = dq_call_in(call, Y_ZERO);
    return dq_call_output(call, 0, zero ? zero->dtype : DQ_FLOAT, s.rank, s.dims, err);
}

static void cut(state *st)
{
    enum { TASKS = 4, PANELS = 4 };
    st->block = st->m < BLOCK ? (st->m + ROWS - 1) / ROWS * ROWS : BLOCK;
    st->blocks = st->m / st->block + (st->m % st->block != 0);
    size_t blocks = st->blocks * st->batches, wanted = blocks < TASKS ? TASKS / blocks : 1;
    st->chunk = st->w.panels / wanted;
    st->chunk = st->chunk < PANELS ? PANELS : st->chunk;
    st->chunks = st->w.panels / st->chunk + (st->w.panels % st->chunk != 0);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    const dq_matmul_shape *s = &st->s;
    DQ_TRY(check(call, &st->s, err));
    if (s->batches * s->m * s->n == 0)
        return DQ_OK;
    bool flat = s->b_batches == 1 && s->a_batches == s->batches;
    bool turned = dq_node_int(call->node, "transB", 0) != 0;
    st->m = flat ? s->m * s->batches : s->m;
    st->batches = flat ? 1 : s->batches;
    st->w = (dq_wcodes){.input = B,
                        .lanes = COLS,
                        .matrices = s->b_batches,
                        .n = s->n,
                        .k = s->k,
                        .matrix_step = s->k * s->n,
                        .lane_step = turned ? s->k : 1,
                        .inner_step = turned ? 1 : s->n,
                        .inner = s->k};
    DQ_TRY(dq_wcodes_prepare(call, &st->w, err));
    cut(st);
    size_t used = 0, row;
    if (!dq_mul_size(st->w.pairs, 2 * sizeof(int16_t), &row) ||
        !dq_place_size(&used, st->block, row, ALIGN, &st->rows_at) ||
        !dq_place_size(&used, COLS * st->w.planes, row, ALIGN, &st->codes_at) ||
        !dq_place_size(&used, st->block, sizeof(double), ALIGN, &st->sums_at))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    call->worker_scratch_size = used;
    call->scratch_size = st->w.packed ? 0 : st->w.size;
    return DQ_OK;
}

/* ---- A run ----------------------------------------------------------------------------------------------
 */

typedef struct task {
    const dq_op_call *call;
    const state *st;
    const void *packed;
    size_t batch, first, count; /* rows */
    int16_t *rows, *codes;
    double *sums; /* of each row */
} task;

static void fill_rows(const task *t)
{
    const state *st = t->st;
    const dq_tensor *a = t->call->in[A];
    size_t k = st->s.k, pairs = st->w.pairs;
    size_t matrix = st->batches == 1 ? 0 : dq_matmul_offset(&st->s, t->batch, st->s.a_strides);
    memset(t->rows, 0, st->block * pairs * 2 * sizeof *t->rows);
    for (size_t i = 0; i < t->count; i++) {
        enum { PIECE = 256 };
        int16_t piece[PIECE], *to = t->rows + (i / ROWS * pairs * ROWS + i % ROWS) * 2;
        size_t from = (matrix * st->m + t->first + i) * k;
        int64_t sum = 0;
        for (size_t p = 0, n; p < k; p += n) {
            n = k - p < PIECE ? k - p : PIECE;
            dq_wcodes_load(a->dtype, a->data, from + p, n, piece);
            if (n % 2)
                piece[n] = 0;
            for (size_t j = 0; j < n; j++)
                sum += piece[j];
            for (size_t j = 0; j < n; j += 2, to += 2 * ROWS)
                memcpy(to, piece + j, 2 * sizeof *to);
        }
        t->sums[i] = (double)sum;
    }
}

/* What the sums of a panel's columns want on top before they are scaled. */
typedef struct columns {
    double offset[COLS], scale[COLS], per_sum[COLS];
} columns;

static void read_columns(const task *t, size_t matrix, size_t first, size_t cols, columns *out)
{
    const dq_op_call *call = t->call;
    const dq_wcodes *w = &t->st->w;
    const dq_tensor *b_scale = call->in[B_SCALE], *bias = dq_call_in(call, BIAS), *y_scale;
    const int64_t *sums = dq_wcodes_sums(w, t->packed, matrix) + first;
    int64_t a_zero = dq_wcodes_zero(call->in[A_ZERO], 0);
    double a = (double)dq_node_float(call->node, "alpha", 1) * (double)dq_data(call->in[A_SCALE], float)[0];
    y_scale = dq_call_in(call, Y_SCALE);
    for (size_t j = 0; j < cols; j++) {
        int64_t b_zero = dq_wcodes_zero(call->in[B_ZERO], first + j);
        double scale = a * (double)dq_data(b_scale, float)[b_scale->count == 1 ? 0 : first + j];
        out->offset[j] = (double)(a_zero * (b_zero * (int64_t)w->k - sums[j]));
        if (bias)
            out->offset[j] += (double)dq_data(bias, float)[bias->count == 1 ? 0 : first + j] / scale;
        out->scale[j] = y_scale ? scale / (double)dq_data(y_scale, float)[0] : scale;
        out->per_sum[j] = (double)((w->planes > 1 ? DQ_WCODES_EXTRA : 0) - b_zero);
    }
}

static void put_row(const task *t, const columns *top, const double *c, size_t at, size_t cols)
{
    dq_tensor *y = t->call->out[0];
    int32_t codes[COLS];
    if (y->dtype == DQ_FLOAT) {
        for (size_t j = 0; j < cols; j++)
            dq_data(y, float)[at + j] = (float)((c[j] + top->offset[j]) * top->scale[j]);
        return;
    }
    const dq_dtype_row *type = dq_dtype_get(y->dtype);
    int32_t zero = (int32_t)dq_tensor_get_int(t->call->in[Y_ZERO], 0);
    t->call->kernels->requantize_f64(c, cols, top->offset, top->scale, 1, zero, (int32_t)type->min,
                                     (int32_t)type->max, codes);
    dq_wcodes_store(y->dtype, y->data, at, cols, codes);
}

static void run_panel(const task *t, size_t panel)
{
    const state *st = t->st;
    size_t matrix = st->batches == 1 ? 0 : dq_matmul_offset(&st->s, t->batch, st->s.b_strides);
    size_t first = panel * COLS, cols = st->w.n - first < COLS ? st->w.n - first : COLS;
    columns top;
    double c[ROWS * COLS];
    read_columns(t, matrix, first, cols, &top);
    dq_wcodes_expand(&st->w, t->packed, matrix, panel, t->codes);
    for (size_t at = 0; at < t->count; at += ROWS) {
        dq_wcodes_tile(t->call->kernels, &st->w, t->codes, t->rows + at * st->w.pairs * 2, c);
        for (size_t i = 0; i < ROWS && at + i < t->count; i++) {
            double *row = c + i * COLS;
            for (size_t j = 0; j < cols; j++)
                row[j] += top.per_sum[j] * t->sums[at + i];
            put_row(t, &top, row, (t->batch * st->m + t->first + at + i) * st->s.n + first, cols);
        }
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const state *st = t.st;
    char *scratch = dq_call_worker_scratch(t.call, worker);
    t.rows = (int16_t *)(void *)(scratch + st->rows_at);
    t.codes = (int16_t *)(void *)(scratch + st->codes_at);
    t.sums = (double *)(void *)(scratch + st->sums_at);
    for (size_t i = begin; i < end; i++) {
        size_t panel = i % st->chunks * st->chunk, rest = i / st->chunks;
        size_t last = panel + st->chunk < st->w.panels ? panel + st->chunk : st->w.panels;
        t.first = rest % st->blocks * st->block;
        t.batch = rest / st->blocks;
        t.count = st->m - t.first < st->block ? st->m - t.first : st->block;
        fill_rows(&t);
        for (; panel < last; panel++)
            run_panel(&t, panel);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    task t = {.call = call, .st = st, .packed = st->w.packed};
    if (!t.packed) {
        dq_wcodes_pack(call, &st->w, call->scratch);
        t.packed = call->scratch;
    }
    size_t products = st->block * st->chunk * COLS * (st->s.k + 1);
    dq_parallel(call->threads, st->batches * st->blocks * st->chunks, dq_qgemm_grain(products), run_tasks,
                &t);
    return DQ_OK;
}

const dq_op_impl dq_op_wide_matmul = {infer, prepare, run, 0};
