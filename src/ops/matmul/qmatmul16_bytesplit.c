/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/qmatmul16_bytesplit.h"

#include "base/checked.h"
#include "ops/matmul/qgemm16_pack.h"

#include <string.h>

enum { MIDDLE = 32768, W_MIDDLE = 128, SPLIT = DQ_QPRODUCT_SPLIT };

/* Rows of x in a band: a multiple of what the threads share in blocks. */
static size_t band_of(const dq_op_call *call, size_t rows, size_t k)
{
    enum { CACHED_BYTES = 1 << 21, BLOCK = 64 };
    const size_t least = BLOCK * dq_threads_count(call->threads),
                 band = CACHED_BYTES / (2 * k) / least * least;
    return dq_least(rows, band > least ? band : least);
}

dq_status dq_qmatmul16_bytesplit_prepare(dq_op_call *call, size_t rows, size_t k, size_t n, bool transposed,
                                         dq_qmatmul16_bytesplit *b, dq_error *err)
{
    size_t bytes, *used = &call->scratch_size;
    b->rows = rows;
    b->n = n;
    b->band = band_of(call, rows, k);
    b->split = dq_dtype_get(call->in[DQ_Q16_W]->dtype)->bits == 16;
    if (!dq_mul_size(b->band, 2 * k, &bytes) || !dq_add_size(bytes, DQ_GEMM_S8_SLACK, &bytes) ||
        !dq_reserve_size(used, bytes, 1, DQ_ALIGN, &b->qvalues_at) ||
        !dq_reserve_size(used, b->split ? b->band : 0, sizeof(double), DQ_ALIGN, &b->sums_at) ||
        !dq_reserve_size(used, n, 3 * sizeof(double), DQ_ALIGN, &b->terms_at))
        return dq_no_memory(err, SIZE_MAX, "rows of bytes");
    const dq_qproduct_weights w = {.input = DQ_Q16_W,
                                   .transposed = transposed,
                                   .matrices = 1,
                                   .k = k,
                                   .n = n,
                                   .row_multiple = 2,
                                   .split = b->split};
    return dq_qproduct_prepare(call, &w, 2 * b->band, &b->p, err);
}

/* ---- A run --------------------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_qmatmul16_bytesplit *b;
    uint8_t *qvalues;
    double *row_sums;   /* 128 times the sum of each row of x as uint16, if the weights are split */
    dq_q16_terms terms; /* of each column */
    double factor;
    size_t first; /* row of x of the band */
} job;

/* Splits x ^ sign_xor into low and high bytes, each ^ sign. */
static void split(const uint16_t *restrict x, uint16_t sign_xor, uint8_t sign, size_t n,
                  uint8_t *restrict low, uint8_t *restrict high)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t qvalue = x[i] ^ sign_xor;
        low[i] = (uint8_t)qvalue ^ sign;
        high[i] = (uint8_t)(qvalue >> 8) ^ sign;
    }
}

/* The sum of x ^ sign_xor, at most MAX_SPLIT_DEPTH values. */
static uint32_t sum_of(const uint16_t *x, uint16_t sign_xor, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (uint16_t)(x[i] ^ sign_xor);
    return sum;
}

static void split_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_tensor *x = j->call->in[DQ_Q16_X];
    const size_t k = j->b->p.w.b.run;
    const uint16_t sign_xor = x->dtype == DQ_INT16 ? MIDDLE : 0;
    const uint8_t sign = dq_gemm_s8_sign_xor(DQ_UINT8, j->b->p.w.kernel->a_signed);
    for (size_t i = begin; i < end; i++) {
        const uint16_t *from = (const uint16_t *)x->data + (j->first + i) * k;
        uint8_t *low = j->qvalues + 2 * i * k;
        split(from, sign_xor, sign, k, low, low + k);
        if (j->b->split)
            j->row_sums[i] = W_MIDDLE * (double)sum_of(from, sign_xor, k);
    }
}

/* The sum of the weights of a column, each minus the midpoint of its type. */
static double column_sum(const dq_qmatmul16_bytesplit *b, const int32_t *sums, size_t column)
{
    if (!b->split)
        return sums[column];
    const int32_t *low = sums + column / SPLIT * 2 * SPLIT + column % SPLIT;
    return low[0] + 256.0 * low[SPLIT] + W_MIDDLE * (double)b->p.w.b.run;
}

static void find_terms(job *j)
{
    const dq_op_call *call = j->call;
    const int32_t *sums = dq_qproduct_sums(&j->b->p);
    const double x_zero = (double)dq_qgemm16_zero(call->in[DQ_Q16_X_ZERO], 0);
    for (size_t i = 0; i < j->b->n; i++)
        j->terms.offset[i] = -(x_zero + MIDDLE) * column_sum(j->b, sums, i);
    dq_q16_terms_fill(call, j->factor, 0, j->b->n, &j->terms);
}

/* Requantizes sums of `s->rows` rows of x, from row `row` of the band on: those of the low bytes of x are
 * s->sums. */
static void put(const job *j, dq_q16_sums *s, size_t row, size_t col)
{
    const size_t n = j->b->n;
    s->out_stride = n;
    s->col_step = 1;
    dq_q16_sums_by(j->call, j->factor, &j->terms, col, col, s);
    dq_qgemm16_put(j->call, s, (j->first + row) * n + col);
}

static void store(void *arg, size_t row, size_t rows, size_t col, size_t cols, const int32_t *c,
                  size_t c_stride)
{
    dq_q16_sums s = dq_qgemm16_sums(((const job *)arg)->call);
    s.rows = rows / 2;
    s.cols = cols;
    s.stride = 2 * c_stride;
    s.sums = c;
    s.high = c + c_stride;
    put(arg, &s, row / 2, col);
}

/* extra = 65536 * hh + 256 * (lh + hl) + row_sum, with the sums of the low bytes of x and the high bytes of
 * the weights in lh, and so on. */
static void join(const int32_t *restrict low_x, const int32_t *restrict high_x, double row_sum, size_t cols,
                 double *restrict extra)
{
    for (size_t i = 0; i < cols; i++) {
        const int32_t middle = low_x[SPLIT + i] + high_x[i];
        extra[i] = 65536.0 * high_x[SPLIT + i] + (256.0 * middle + row_sum);
    }
}

/* Columns of low bytes and of high bytes alternate in groups of SPLIT. */
static void store_split(void *arg, size_t row, size_t rows, size_t col, size_t cols, const int32_t *c,
                        size_t c_stride)
{
    enum { MAX_ROWS = 32 };
    const job *j = arg;
    double extra[MAX_ROWS * SPLIT];
    const size_t first = col / 2, end = first + cols / 2, n = end < j->b->n ? end - first : j->b->n - first;
    for (size_t i = 0, many; i < rows / 2; i += many, c += 2 * many * c_stride) {
        many = rows / 2 - i < MAX_ROWS ? rows / 2 - i : MAX_ROWS;
        for (size_t r = 0; r < many; r++) {
            const int32_t *low = c + 2 * r * c_stride;
            join(low, low + c_stride, j->row_sums[row / 2 + i + r], n, extra + r * SPLIT);
        }
        dq_q16_sums s = dq_qgemm16_sums(j->call);
        s.rows = many;
        s.cols = n;
        s.stride = 2 * c_stride;
        s.sums = c;
        s.extra = extra;
        s.extra_stride = SPLIT;
        put(j, &s, row / 2 + i, first);
    }
}

void dq_qmatmul16_bytesplit_run(const dq_op_call *call, const dq_qmatmul16_bytesplit *b)
{
    static const uint8_t split_zero = 128; /* of int8 bytes, as dq_qproduct_run takes it from uint8 */
    char *scratch = call->scratch;
    job j = {.call = call,
             .b = b,
             .qvalues = (uint8_t *)scratch + b->qvalues_at,
             .row_sums = (double *)(void *)(scratch + b->sums_at),
             .terms = dq_q16_terms_in((double *)(void *)(scratch + b->terms_at), b->n),
             .factor = dq_q16_factor(call)};
    find_terms(&j);
    dq_qproduct_rows rows = {.packed = b->p.packed,
                             .qvalues = j.qvalues,
                             .b_zero = b->split ? &split_zero : call->in[DQ_Q16_W_ZERO]->data,
                             .store = b->split ? store_split : store,
                             .arg = &j};
    for (; j.first < b->rows && !dq_threads_cancelled(call->threads); j.first += b->band) {
        const size_t count = dq_least(b->band, b->rows - j.first);
        rows.rows = 2 * count;
        dq_parallel(call->threads, count, dq_gemm_s8_grain(16 * b->p.w.b.run), split_rows, &j);
        dq_qproduct_run(call, &b->p, &rows);
    }
}
