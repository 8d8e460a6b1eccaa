/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/conv_float.h"

#include "ops/conv/conv_f32_algorithms.h"
#include "ops/conv/im2col_pack.h"

#include <string.h>

typedef struct job {
    const dq_op_call *call;
    const dq_conv_float *f;
    const dq_conv_floats *o;
} job;

/* The first output channel of the block. */
static size_t channel_of(const dq_conv_shape *s, const dq_gemm_part *part)
{
    return part->batch % s->group * s->group_out + part->row;
}

static void part_weights(const void *arg, const dq_gemm_part *part, float *workspace,
                         dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const size_t k = j->f->product.k;
    const float *w = j->o->w + channel_of(j->f->shape, part) * k + part->p;
    block->a = j->f->unaligned ? workspace : w;
    block->a_row = j->f->unaligned ? part->k : k;
    for (size_t i = 0; i < part->rows && j->f->unaligned; i++)
        memcpy(workspace + i * part->k, (const char *)w + i * k * sizeof *w, part->k * sizeof *w);
}

static void part_windows(const void *arg, const dq_gemm_part *part, float *workspace,
                         dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_conv_shape *s = j->f->shape;
    const float *image = j->o->x + part->batch * s->group_in * s->in_size;
    if (j->f->padded.shape) {
        dq_im2col_padded_panels(j->call, &j->f->padded, part, workspace, block);
    } else if (!j->f->pointwise) {
        dq_im2col_pack(j->call->kernels, &s->window, image, part, workspace, block);
    } else {
        dq_pack_b_nchw_f32(j->call->kernels->transpose_x32, &j->f->product, image, part, workspace, block);
    }
}

static size_t result_of(const dq_conv_shape *s, const dq_gemm_part *part)
{
    return (part->batch * s->group_out + part->row) * s->out_size + part->col;
}

static void part_result(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    (void)workspace;
    const job *j = arg;
    const dq_conv_shape *s = j->f->shape;
    size_t at = result_of(s, part);
    block->c = j->o->out + at;
    block->c_row = block->z_row = s->out_size;
    block->z = j->o->z ? j->o->z + at : NULL;
    block->bias = j->o->bias ? j->o->bias + channel_of(s, part) : NULL;
    block->low = j->o->finish->low;
    block->high = j->o->finish->high;
    block->gate = j->o->finish->gate;
}

static void part_done(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block)
{
    const job *j = arg;
    for (size_t i = 0; i < part->rows; i++)
        dq_conv_function(j->o->finish, block->c + i * block->c_row, part->cols);
}

bool dq_conv_f32_gemm_is_applicable(const void *problem, dq_reason *reason)
{
    return dq_conv_f32_is_countable(problem, reason);
}

/* Output pixels are the columns. Each block packs its windows. */
dq_algorithm_work dq_conv_f32_gemm_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double columns = (double)((s->out_size + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR * DQ_GEMM_F32_NR);
    const double depth = (double)s->group_in * (double)s->kernel_size;
    const double images = (double)s->batch * (double)s->group;
    return (dq_algorithm_work){.macs = images * (double)s->group_out * columns * depth,
                               .bytes = images * columns * depth * sizeof(float),
                               .calls = images * columns / DQ_GEMM_F32_NR};
}

dq_status dq_conv_float_prepare(dq_op_call *call, const dq_conv_shape *shape, bool function, bool unaligned,
                                dq_conv_float *f, dq_error *err)
{
    *f = (dq_conv_float){.shape = shape, .pointwise = dq_conv_pointwise(shape), .unaligned = unaligned};
    f->product = (dq_gemm_f32){.batches = shape->batch * shape->group,
                               .m = shape->group_out,
                               .n = shape->out_size,
                               .k = shape->group_in * shape->kernel_size,
                               .grain = shape->kernel_size,
                               .a_workspace = f->unaligned,
                               .a = part_weights,
                               .b = part_windows,
                               .c = part_result,
                               .done = function ? part_done : NULL};
    DQ_TRY(dq_im2col_padded_prepare(call, shape, &f->padded, err));
    if (f->padded.shape) { /* one image at a time; blocks may begin at any step */
        f->product.batches = 1;
        f->product.grain = 1;
    }
    return dq_gemm_f32_prepare(call, &f->product, err);
}

void dq_conv_float_run(const dq_op_call *call, const dq_conv_float *f, const dq_conv_floats *o)
{
    const dq_conv_shape *s = f->shape;
    dq_conv_floats one = *o;
    job j = {call, f, &one};
    for (size_t i = 0; i < (f->padded.shape ? s->batch : 1); i++) {
        if (f->padded.shape)
            dq_im2col_padded_copy(call, &f->padded, one.x);
        dq_gemm_f32_run(call, &f->product, &j);
        one.x += s->in_channels * s->in_size;
        one.out += s->out_channels * s->out_size;
        one.z = one.z ? one.z + s->out_channels * s->out_size : NULL;
    }
}

void dq_conv_float_part(const dq_op_call *call, const dq_conv_float *f, const dq_conv_floats *o,
                        const dq_gemm_part *part, void *workspace)
{
    job j = {call, f, o};
    dq_gemm_part some = *part;
    for (size_t done = 0; done < part->cols; done += some.cols) {
        some.col = part->col + done;
        some.cols = part->cols - done < f->product.col_block ? part->cols - done : f->product.col_block;
        dq_gemm_f32_part(call, &f->product, &j, &some, workspace);
    }
}
