/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft MatMulNBits and MatMulBnb4, and dqrun DequantizeMatMul: products of float activations with
 * weights of 2, 4 or 8 bits (ops/weight_only/weight_only.h). They have float precision, unless
 * `accuracy_level` allows less and the session honors it.
 *
 *   MatMulNBits: w[n][k] = (q - zero point) * scale, with the parameters of block g_idx[k], by default
 *                k / block_size; a row stores whole blocks of block_size values, low bits first
 *   MatMulBnb4:  w = table[q] * absmax[i / block_size], i the index in the flat matrix ([N, K], or [K, N]
 *                with transB 0), high bits of a byte first
 *   DequantizeMatMul: w = DequantizeLinear(b), with parameters for the tensor, for each column, or for blocks
 *                along columns */
#include "base/checked.h"
#include "ops/algorithm.h"
#include "ops/packers.h"
#include "ops/rows.h"
#include "ops/weight_only/weight_only.h"

#include <inttypes.h>
#include <string.h>

enum { A, B, SCALES, ZEROS, GROUPS, BIAS, PLAIN_BIAS = GROUPS }; /* MatMulBnb4 has the first three */

/* bitsandbytes' FP4: sign, then 0, 1/192, 2/3, 1, 1/3, 1/2, 1/6, 1/4. */
static const float fp4[16] = {0.0f,         0.0052083333f, 0.6666667f,   1.0f,           0.33333334f, 0.5f,
                              0.16666667f,  0.25f,         -0.0f,        -0.0052083333f, -0.6666667f, -1.0f,
                              -0.33333334f, -0.5f,         -0.16666667f, -0.25f};
/* NormalFloat4: quantiles of the normal distribution (QLoRA, arXiv:2305.14314, appendix E). */
static const float nf4[16] = {-1.0f,
                              -0.6961928009986877f,
                              -0.5250730514526367f,
                              -0.39491748809814453f,
                              -0.28444138169288635f,
                              -0.18477343022823334f,
                              -0.09105003625154495f,
                              0.0f,
                              0.07958029955625534f,
                              0.16093020141124725f,
                              0.24611230194568634f,
                              0.33791524171829224f,
                              0.44070982933044434f,
                              0.5626170039176941f,
                              0.7229568362236023f,
                              1.0f};

/* ---- Shapes ------------------------------------------------------------------------------------------- */

/* Reads attribute `name`, which must be at least 1. */
static dq_status positive(const dq_op_call *call, const char *name, size_t *out, dq_error *err)
{
    int64_t value = dq_node_int(call->node, name, 0);
    if (value < 1 || value > INT32_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' is %" PRId64 ", expected 1 or more",
                            name, value);
    *out = (size_t)value;
    return DQ_OK;
}

static dq_status check_count(const dq_op_call *call, uint32_t i, size_t expected, const char *what,
                             dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == expected)
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has %zu elements, expected %zu (%s)", t->count, expected, what);
}

/* Sets the fields that follow from the sizes of the matrix, and checks the last axis of A. */
static dq_status resolve_rows(const dq_op_call *call, dq_weights *w, dq_error *err)
{
    dq_weight_form *f = &w->form;
    const dq_tensor *a = call->in[A];
    char text[DQ_SHAPE_TEXT];
    if (a->rank < 1 || (size_t)a->dims[a->rank - 1] != f->k)
        return dq_call_fail_input(call, err, A, "has shape %s, expected %zu (K) in the last axis",
                                  dq_shape_text(a->rank, a->dims, text), f->k);
    f->matrices = 1;
    f->groups = (f->k + f->block - 1) / f->block;
    w->qvalues = B;
    w->scales = SCALES;
    w->zeros = ZEROS;
    w->group_idx = w->bias = DQ_NO_INPUT;
    w->rows = dq_dims_product(a->dims, 0, a->rank - 1);
    w->writes_output = a->dtype == DQ_FLOAT;
    return DQ_OK;
}

static dq_status resolve_common(const dq_op_call *call, dq_weights *w, dq_error *err)
{
    dq_weight_form *f = &w->form;
    memset(w, 0, sizeof *w);
    DQ_TRY(positive(call, "K", &f->k, err));
    DQ_TRY(positive(call, "N", &f->n, err));
    DQ_TRY(positive(call, "block_size", &f->block, err));
    DQ_TRY(resolve_rows(call, w, err));
    f->k_stride = f->scale_block = 1;
    f->scale_row = f->groups;
    f->bits = 4;
    return DQ_OK;
}

static dq_status resolve_nbits(const dq_op_call *call, dq_weights *w, dq_error *err)
{
    DQ_TRY(resolve_common(call, w, err));
    dq_weight_form *f = &w->form;
    int64_t bits = dq_node_int(call->node, "bits", 4);
    size_t n = f->n, all, groups;
    if (bits != 2 && bits != 4 && bits != 8)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'bits' is %" PRId64 ", expected 2, 4 or 8",
                            bits);
    if (dq_node_int(call->node, "weight_prepacked", 0) != 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "weights packed for another runtime's kernels cannot be read");
    f->bits = (uint32_t)bits;
    if (f->block * f->bits % 8)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'block_size' is %zu, expected whole bytes of %u-bit values", f->block,
                            f->bits);
    f->zero_row = (f->groups * f->bits + 7) / 8;
    if (!dq_mul_size(f->groups, f->block, &f->n_stride) ||
        !dq_mul_size(n, f->n_stride / (8 / f->bits), &all) || !dq_mul_size(n, f->groups, &groups))
        return dq_no_memory(err, SIZE_MAX, "weights");
    DQ_TRY(check_count(call, B, all, "N rows of whole blocks", err));
    DQ_TRY(check_count(call, SCALES, groups, "one a block", err));
    const dq_tensor *zeros = dq_call_in(call, ZEROS);
    w->group_idx = GROUPS;
    w->bias = BIAS;
    if (zeros)
        DQ_TRY(check_count(call, ZEROS, zeros->dtype == DQ_UINT8 ? n * f->zero_row : groups, "one a block",
                           err));
    DQ_TRY(check_count(call, GROUPS, f->k, "one a column", err));
    return check_count(call, BIAS, n, "one a row of B", err);
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static dq_status resolve_bnb4(const dq_op_call *call, dq_weights *w, dq_error *err)
{
    DQ_TRY(resolve_common(call, w, err));
    dq_weight_form *f = &w->form;
    int64_t type = dq_node_int(call->node, "quant_type", -1);
    size_t count;
    if (type != 0 && type != 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'quant_type' is %" PRId64 ", expected 0 (FP4) or 1 (NF4)", type);
    if (!dq_mul_size(f->n, f->k, &count))
        return dq_no_memory(err, SIZE_MAX, "weights");
    DQ_TRY(check_count(call, B, count / 2 + count % 2, "two values a byte", err));
    DQ_TRY(check_count(call, SCALES, count / f->block + (count % f->block != 0), "one a block", err));
    bool rows = dq_node_int(call->node, "transB", 1) != 0;
    w->table = type == 0 ? fp4 : nf4;
    w->zeros = DQ_NO_INPUT;
    f->high_first = 1;
    f->scale_run = f->block;
    f->n_stride = rows ? f->k : 1;
    f->k_stride = rows ? 1 : f->n;
    f->block = rows ? common_divisor(f->k, f->block) : 1; /* divides every row */
    f->groups = (f->k + f->block - 1) / f->block;
    return DQ_OK;
}

/* DequantizeMatMul: B is [K, N], or with transB [N, K], with parameters as in DequantizeLinear. */
static dq_status resolve_plain(const dq_op_call *call, dq_weights *w, dq_error *err)
{
    const dq_tensor *b = call->in[B];
    const size_t transposed = dq_node_int(call->node, "transB", 0) != 0, scales = call->in[SCALES]->count;
    const int64_t block = dq_node_int(call->node, "block_size", 0);
    dq_weight_form *f = &w->form;
    memset(w, 0, sizeof *w);
    if (b->rank != 2 || b->count == 0 || block < 0)
        return dq_call_fail_input(call, err, B, "is no matrix that can be cut into blocks");
    f->n = (size_t)b->dims[!transposed];
    f->k = (size_t)b->dims[transposed];
    f->block = block ? dq_least((size_t)block, f->k) : f->k;
    f->bits = dq_dtype_get(b->dtype)->bits;
    f->sign = dq_dtype_get(b->dtype)->min < 0 ? UINT32_MAX / ((1u << f->bits) - 1) << (f->bits - 1) : 0;
    f->zeros_as_scales = true;
    f->n_stride = transposed ? f->k : 1;
    f->k_stride = transposed ? 1 : f->n;
    DQ_TRY(resolve_rows(call, w, err));
    w->bias = PLAIN_BIAS;
    if (scales != 1) {
        f->scale_row = transposed ? f->groups : 1;
        f->scale_block = transposed || f->groups == 1 ? 1 : f->n;
        DQ_TRY(check_count(call, SCALES, f->n * f->groups, "one, or one a block", err));
    }
    DQ_TRY(check_count(call, ZEROS, scales, "as scales", err));
    return check_count(call, PLAIN_BIAS, f->n, "one a column", err);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static void load_row(const void *arg, size_t row, float *to)
{
    const dq_op_call *call = arg;
    const dq_tensor *a = call->in[A];
    size_t k = ((const dq_weights *)call->state)->form.k;
    dq_load_floats(call->kernels, a->dtype, a->data, row * k, k, to);
}

static const dq_tensor *bias_of(const dq_op_call *call)
{
    return dq_call_in(call, ((const dq_weights *)call->state)->bias);
}

static void store(const void *arg, size_t row, size_t col, size_t rows, size_t cols, const float *tile,
                  size_t step)
{
    const dq_op_call *call = arg;
    const dq_weights *w = call->state;
    const dq_tensor *bias = bias_of(call), *y = call->out[0];
    for (size_t i = 0; i < rows; i++) {
        float sums[DQ_NBITS_COLS];
        const float *from = tile + i * step;
        for (size_t j = 0; bias && j < cols; j++)
            sums[j] = from[j] + dq_tensor_get_float(bias, col + j);
        dq_store_from_floats(call->kernels, y->dtype, y->data, (row + i) * w->form.n + col, cols,
                             bias ? sums : from, false);
    }
}

/* ---- Packed weights from files ------------------------------------------------------------------------- */

/* Another order than that of the matrix depends on group_idx, and lies in memory of this process. */
size_t dq_packed_nbits_used(const void *packed, size_t size, size_t full, const void *key)
{
    return ((const dq_weight_form *)key)->sorted ? 0 : dq_packed_numbers(packed, size, full, key);
}

/* ---- Algorithms --------------------------------------------------------------------------------------- */

bool dq_weights_may_round(const dq_op_call *call, const dq_weights *w)
{
    return call->honor_accuracy_level && dq_node_int(call->node, "accuracy_level", 0) == 4 &&
           w->form.bits != 2 && !w->table;
}

typedef struct problem {
    const dq_weights *w;
    bool may_round;
} problem;

/* Results: the algorithms give different bits. Number of rows, type and attributes decide, never the
 * processor. */
enum { GEMM, INTEGERS, ROUNDED };

static int result_of(const void *arg)
{
    const problem *p = arg;
    if (p->may_round)
        return ROUNDED;
    return !p->w->table && p->w->rows <= dq_weights_max_integer_rows(&p->w->form) ? INTEGERS : GEMM;
}

static bool is_x_integers_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    return !p->w->table || dq_not_applicable(reason, "weights are indices into a table of values");
}

static bool is_x_rounded_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    return p->may_round || dq_not_applicable(reason, "accuracy_level is not 4, or not honored");
}

/* The packed weights are read once for all rows. */
static dq_algorithm_work work_of_x_integers(const void *arg)
{
    const problem *p = arg;
    const dq_weight_form *f = &p->w->form;
    const double size = (double)f->n * (double)f->k;
    return (dq_algorithm_work){
        .macs = (double)p->w->rows * size, .bytes = size * f->bits / 8, .calls = (double)p->w->rows};
}

/* The weights are read as dequantized floats. */
static dq_algorithm_work work_of_gemm(const void *arg)
{
    dq_algorithm_work work = work_of_x_integers(arg);
    work.bytes *= 32.0 / ((const problem *)arg)->w->form.bits;
    return work;
}

static const dq_algorithm algorithms[] = {
    [GEMM] = {"matmul_weight_only=gemm", "weights become floats, a panel at a time", GEMM,
              dq_always_applicable, work_of_gemm, NULL, NULL},
    [INTEGERS] = {"matmul_weight_only=x_integers",
                  "few rows of x as integers of up to 22 bits, weights as they are", INTEGERS,
                  is_x_integers_applicable, work_of_x_integers, NULL, NULL},
    [ROUNDED] = {"matmul_weight_only=x_rounded", "x rounded to 8 bits a block, as accuracy_level 4 allows",
                 ROUNDED, is_x_rounded_applicable, work_of_x_integers, NULL, NULL}};

const dq_algorithm_table dq_matmul_weight_only_algorithms = {
    .name = "matmul_weight_only",
    .summary = "matrix product of floats with weights of 2, 4 or 8 bits (MatMulNBits, MatMulBnb4)",
    .result = result_of,
    .rows = algorithms,
    .count = sizeof algorithms / sizeof *algorithms};

/* ---- The operators ------------------------------------------------------------------------------------ */

typedef dq_status (*resolve_fn)(const dq_op_call *call, dq_weights *w, dq_error *err);

static dq_status infer_with(dq_op_call *call, resolve_fn resolve, dq_error *err)
{
    dq_weights w;
    const dq_tensor *a = call->in[A];
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(resolve(call, &w, err));
    memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[a->rank - 1] = (int64_t)w.form.n;
    return dq_call_output(call, 0, a->dtype, a->rank, dims, err);
}

static dq_status prepare_with(dq_op_call *call, resolve_fn resolve, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_weights), err));
    dq_weights *w = call->state;
    DQ_TRY(resolve(call, w, err));
    const problem p = {w, dq_weights_may_round(call, w)};
    const dq_algorithm *algorithm;
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_MATMUL_WEIGHT_ONLY, &p, &algorithm, err));
    w->max_integer_rows = algorithm == &algorithms[INTEGERS] ? w->rows : 0;
    w->rounded = algorithm == &algorithms[ROUNDED];
    DQ_TRY(dq_weights_prepare(call, w, err));
    call->scratch_size = w->scratch_size;
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const dq_weights *w = call->state;
    const dq_tensor *bias = bias_of(call);
    const dq_weights_io ends = {.load = load_row,
                                .store = store,
                                .arg = call,
                                .x = call->in[A]->dtype == DQ_FLOAT ? call->in[A]->data : NULL,
                                .out = call->out[0] ? call->out[0]->data : NULL,
                                .bias = bias ? bias->data : NULL};
    DQ_TRY(dq_weights_begin(call, w, call->scratch, err));
    if (call->out[0] && call->out[0]->count)
        dq_weights_run(call, w, call->scratch, 0, w->rows, &ends);
    return DQ_OK;
}

static dq_status infer_nbits(dq_op_call *call, dq_error *err)
{
    return infer_with(call, resolve_nbits, err);
}

static dq_status prepare_nbits(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, resolve_nbits, err);
}

static dq_status infer_bnb4(dq_op_call *call, dq_error *err)
{
    return infer_with(call, resolve_bnb4, err);
}

static dq_status prepare_bnb4(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, resolve_bnb4, err);
}

static dq_status infer_plain(dq_op_call *call, dq_error *err)
{
    return infer_with(call, resolve_plain, err);
}

static dq_status prepare_plain(dq_op_call *call, dq_error *err)
{
    return prepare_with(call, resolve_plain, err);
}

const dq_op_impl dq_op_dequantize_matmul = {infer_plain, prepare_plain, run, 0};
const dq_op_impl dq_op_matmul_nbits = {infer_nbits, prepare_nbits, run, 0};
const dq_op_impl dq_op_matmul_bnb4 = {infer_bnb4, prepare_bnb4, run, 0};
