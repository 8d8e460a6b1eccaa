/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithm table of 8-bit matrix products: how B is packed, and the kernel that multiplies it. */
#include "ops/matmul/matmul_s8.h"

#include "ops/algorithm.h"

enum { CACHED = 1 << 22 /* bytes of B that stay in a cache from run to run */ };

static const dq_gemm_s8 *few_rows_kernel(const dq_matmul_s8_problem *p)
{
    return p->kernels->gemm_s8->few ? p->kernels->gemm_s8->few : p->kernels->gemm_s8;
}

static const dq_gemm_s8 *gemm_kernel(const dq_matmul_s8_problem *p)
{
    const dq_gemm_s8 *kernel = p->kernels->gemm_s8;
    return kernel->other_sign && kernel->a_signed != (p->a == DQ_INT8) ? kernel->other_sign : kernel;
}

static bool is_constant(const void *arg, dq_reason *reason)
{
    const dq_matmul_s8_problem *p = arg;
    return p->constant_b || dq_not_applicable(reason, "B is not constant");
}

static bool is_run_time(const void *arg, dq_reason *reason)
{
    const dq_matmul_s8_problem *p = arg;
    return !p->constant_b || dq_not_applicable(reason, "B is constant");
}

static bool is_few_rows_packed_applicable(const void *arg, dq_reason *reason)
{
    return is_constant(arg, reason);
}

static bool is_few_rows_applicable(const void *arg, dq_reason *reason)
{
    return is_run_time(arg, reason);
}

static bool is_gemm_packed_applicable(const void *arg, dq_reason *reason)
{
    return is_constant(arg, reason);
}

static bool is_gemm_applicable(const void *arg, dq_reason *reason)
{
    return is_run_time(arg, reason);
}

static double blocks_of(const dq_matmul_s8_problem *p, const dq_gemm_s8 *kernel)
{
    return (double)(p->rows / kernel->mr + (p->rows % kernel->mr != 0));
}

/* `read`: how often B is moved. */
static dq_algorithm_work work_of(const dq_matmul_s8_problem *p, const dq_gemm_s8 *kernel, double read)
{
    const double panels = (double)(p->n / kernel->nr + (p->n % kernel->nr != 0));
    const double size = (double)p->k * panels * (double)kernel->nr;
    return (dq_algorithm_work){
        .macs = (double)p->rows * size, .bytes = read * size, .calls = blocks_of(p, kernel) * panels};
}

static dq_algorithm_work work_of_few_rows_packed(const void *arg)
{
    const dq_matmul_s8_problem *p = arg;
    const bool cached = (double)p->k * (double)p->n <= CACHED;
    return work_of(p, few_rows_kernel(p), cached ? 0 : 1);
}

static dq_algorithm_work work_of_few_rows(const void *arg)
{
    return work_of(arg, few_rows_kernel(arg), 1);
}

/* Each block of rows reads all panels, and widens their elements. */
static dq_algorithm_work work_of_gemm_packed(const void *arg)
{
    return work_of(arg, gemm_kernel(arg), blocks_of(arg, gemm_kernel(arg)));
}

static dq_algorithm_work work_of_gemm(const void *arg)
{
    return work_of(arg, gemm_kernel(arg), 1 + blocks_of(arg, gemm_kernel(arg)));
}

static const dq_algorithm rows[] = {
#define ROW(name, summary)                                                                                   \
    {                                                                                                        \
        .id = "matmul_s8=" #name, summary, 0, is_##name##_applicable, work_of_##name, NULL, NULL             \
    }
    ROW(few_rows_packed, "few rows, for which reading B takes the time; B is packed once"),
    ROW(few_rows, "few rows; B is packed in each run"),
    ROW(gemm_packed, "constant B in panels that are made once"),
    ROW(gemm, "B is laid out in panels in each run")
#undef ROW
};

const dq_algorithm_table dq_matmul_s8_algorithms = {
    .name = "matmul_s8",
    .summary = "matrix product of 8-bit integers (MatMulInteger, QLinearMatMul, QGemm and their fused forms)",
    .rows = rows,
    .count = sizeof rows / sizeof *rows};

static void use(const dq_matmul_s8_problem *p, const dq_algorithm *row, dq_qweights *w)
{
    const bool few = row < &rows[2];
    w->kernel = few ? few_rows_kernel(p) : gemm_kernel(p);
    w->b.use = few ? DQ_QGEMM_FEW : p->constant_b ? DQ_QGEMM_OFTEN : DQ_QGEMM_ONCE;
}

void dq_matmul_s8_use(const dq_matmul_s8_problem *p, dq_qweights *w)
{
    use(p, dq_algorithm_cheapest(DQ_ALGORITHMS_MATMUL_S8, p, p->kernels->isa), w);
}

dq_status dq_matmul_s8_choose(dq_op_call *call, const dq_matmul_s8_problem *p, dq_qweights *w, dq_error *err)
{
    const dq_algorithm *row;
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_MATMUL_S8, p, &row, err));
    use(p, row, w);
    return DQ_OK;
}
