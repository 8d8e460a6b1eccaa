/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithm table of 8-bit matrix products: how B is packed, and the kernel that multiplies it. */
#include "ops/matmul/matmul_s8.h"

#include "ops/algorithm.h"

enum { CACHED = 1 << 22 /* maximum bytes of B that stay in a cache from run to run */ };

/* The product of a rows × k matrix A and a k × n matrix B. */
typedef struct problem {
    const dq_gemm_s8 *few_rows, *gemm; /* the kernel for few rows of A, and the one for many */
    size_t rows, k, n;
    bool constant_b;
} problem;

static problem problem_of(const dq_op_call *call, const dq_qweights *w, uint32_t b, size_t rows, dq_dtype a)
{
    const dq_gemm_s8 *kernel = call->kernels->gemm_s8;
    const bool other = kernel->other_sign && kernel->a_signed != (a == DQ_INT8);
    return (problem){.few_rows = kernel->few ? kernel->few : kernel,
                     .gemm = other ? kernel->other_sign : kernel,
                     .rows = rows,
                     .k = w->b.runs * w->b.run,
                     .n = w->b.cols,
                     .constant_b = dq_call_constant(call, b)};
}

static bool is_b_constant(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    return p->constant_b || dq_not_applicable(reason, "B is not constant");
}

static bool is_b_variable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    return !p->constant_b || dq_not_applicable(reason, "B is constant");
}

static double blocks_of(const problem *p, const dq_gemm_s8 *kernel)
{
    return (double)(p->rows / kernel->mr + (p->rows % kernel->mr != 0));
}

/* `read`: how many times B is read from memory. */
static dq_algorithm_work work_of(const problem *p, const dq_gemm_s8 *kernel, double read)
{
    const double panels = (double)(p->n / kernel->nr + (p->n % kernel->nr != 0));
    const double size = (double)p->k * panels * (double)kernel->nr;
    return (dq_algorithm_work){
        .macs = (double)p->rows * size, .bytes = read * size, .calls = blocks_of(p, kernel) * panels};
}

/* Packed B costs no memory traffic if it stays in a cache. */
static dq_algorithm_work work_of_few_rows_packed(const void *arg)
{
    const problem *p = arg;
    return work_of(p, p->few_rows, (double)p->k * (double)p->n <= CACHED ? 0 : 1);
}

static dq_algorithm_work work_of_few_rows(const void *arg)
{
    const problem *p = arg;
    return work_of(p, p->few_rows, 1);
}

/* Each block of rows reads all panels and widens their elements. */
static dq_algorithm_work work_of_gemm_packed(const void *arg)
{
    const problem *p = arg;
    return work_of(p, p->gemm, blocks_of(p, p->gemm));
}

static dq_algorithm_work work_of_gemm(const void *arg)
{
    const problem *p = arg;
    return work_of(p, p->gemm, 1 + blocks_of(p, p->gemm));
}

enum { FEW_ROWS_PACKED, FEW_ROWS, GEMM_PACKED, GEMM };

static const dq_algorithm rows[] = {
    [FEW_ROWS_PACKED] = {"matmul_s8=few_rows_packed",
                         "few rows, for which reading B takes the time; B is packed once", 0, is_b_constant,
                         work_of_few_rows_packed, NULL, NULL},
    [FEW_ROWS] = {"matmul_s8=few_rows", "few rows; B is packed in each run", 0, is_b_variable,
                  work_of_few_rows, NULL, NULL},
    [GEMM_PACKED] = {"matmul_s8=gemm_packed", "constant B in panels that are made once", 0, is_b_constant,
                     work_of_gemm_packed, NULL, NULL},
    [GEMM] = {"matmul_s8=gemm", "B is laid out in panels in each run", 0, is_b_variable, work_of_gemm, NULL,
              NULL}};

const dq_algorithm_table dq_matmul_s8_algorithms = {
    .name = "matmul_s8",
    .summary = "matrix product of 8-bit integers (MatMulInteger, QLinearMatMul, QGemm and their fused forms)",
    .rows = rows,
    .count = sizeof rows / sizeof *rows};

static void use(const problem *p, const dq_algorithm *row, dq_qweights *w)
{
    const bool few = row == &rows[FEW_ROWS_PACKED] || row == &rows[FEW_ROWS];
    w->kernel = few ? p->few_rows : p->gemm;
    w->b.use = few ? DQ_GEMM_S8_FEW : p->constant_b ? DQ_GEMM_S8_OFTEN : DQ_GEMM_S8_ONCE;
}

void dq_matmul_s8_use(const dq_op_call *call, dq_qweights *w, uint32_t b, size_t count, dq_dtype a)
{
    const problem p = problem_of(call, w, b, count, a);
    use(&p, dq_algorithm_cheapest(DQ_ALGORITHMS_MATMUL_S8, &p, call->kernels->isa), w);
}

dq_status dq_matmul_s8_choose(dq_op_call *call, dq_qweights *w, uint32_t b, size_t count, dq_dtype a,
                              dq_error *err)
{
    const problem p = problem_of(call, w, b, count, a);
    const dq_algorithm *row;
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_MATMUL_S8, &p, &row, err));
    use(&p, row, w);
    return DQ_OK;
}
