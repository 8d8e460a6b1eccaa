/* Conv: a matrix product of the weights with the input's windows, which are gathered as they are packed; one
 * product for each group of each image. The bias is added to the finished sum, before the one rounding. */
#include "ops/conv_direct.h"
#include "ops/conv_gather.h"
#include "ops/window_walk.h"

enum { X, W, BIAS };

typedef struct state {
    dq_fmm mm;
    dq_conv_shape shape;
} state;

typedef struct operands {
    const state *s;
    const dq_tensor *x, *w, *bias;
    dq_tensor *out;
} operands;

/* Rows: the output channels of a group. */
static void pack_weights(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    const operands *o = arg;
    const dq_conv_shape *s = &o->s->shape;
    size_t k = o->s->mm.k, channel = batch % s->group * s->group_out + row;
    dq_fmm_pack_strided(o->w->data, o->w->dtype, channel * k, k, 1, count, DQ_FMM_ROWS, k, to);
}

/* Columns: the output positions. Steps: channels of the group, and the kernel's elements in each. */
static void pack_windows(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    const operands *o = arg;
    const dq_conv_shape *s = &o->s->shape;
    size_t image = batch / s->group, channel = batch % s->group * s->group_in;
    size_t first = (image * s->in_channels + channel) * s->in_size;
    int64_t origin[DQ_FMM_COLS][DQ_MAX_RANK], at[DQ_FMM_COLS];
    for (size_t j = 0; j < count; j++)
        dq_window_origin(&s->window, col + j, origin[j]);
    for (size_t tap = 0; tap < s->kernel_size; tap++) {
        for (size_t j = 0; j < DQ_FMM_COLS; j++)
            at[j] = j < count ? dq_window_at(&s->window, origin[j], tap) : -1;
        dq_conv_gather(o->x, first, s->group_in, s->in_size, at, s->kernel_size, tap, to);
    }
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    const operands *o = arg;
    const dq_conv_shape *s = &o->s->shape;
    size_t image = batch / s->group, channel = batch % s->group * s->group_out + row;
    for (size_t i = 0; i < rows; i++, channel++) {
        float f[DQ_FMM_COLS];
        double d[DQ_FMM_COLS], bias = o->bias ? dq_tensor_get_double(o->bias, channel) : 0;
        bool single = o->s->mm.type == DQ_FLOAT;
        for (size_t j = 0; j < cols; j++)
            if (single)
                f[j] = ((const float *)tile)[i * DQ_FMM_COLS + j] + (float)bias;
            else
                d[j] = ((const double *)tile)[i * DQ_FMM_COLS + j] + bias;
        dq_fmm_write(o->out->data, o->out->dtype, (image * s->out_channels + channel) * s->out_size + col,
                     single ? (const void *)f : (const void *)d, cols);
    }
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_shape shape;
    DQ_TRY(dq_conv_shape_infer(call, X, W, false, &shape, err));
    DQ_TRY(dq_conv_bias_check(call, BIAS, &shape, err));
    return dq_call_output(call, 0, call->in[X]->dtype, shape.rank, shape.dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    const dq_conv_shape *shape = &s->shape;
    DQ_TRY(dq_conv_shape_infer(call, X, W, false, &s->shape, err));
    s->mm = (dq_fmm){dq_fmm_type(call->in[X]->dtype),
                     shape->batch * shape->group,
                     shape->group_out,
                     shape->out_size,
                     shape->group_in * shape->kernel_size,
                     pack_weights,
                     pack_windows,
                     store};
    if (dq_conv_direct_suits(shape, call->in[X]->dtype))
        return DQ_OK;
    return dq_fmm_prepare(call, &s->mm, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    operands o = {s, call->in[X], call->in[W], dq_call_in(call, BIAS), call->out[0]};
    if (!o.out || o.out->count == 0)
        return DQ_OK;
    if (dq_conv_direct_suits(&s->shape, o.x->dtype))
        dq_conv_direct(call, &s->shape, o.x, o.w, o.bias, o.out);
    else
        dq_fmm_run(call, &s->mm, &o);
    return DQ_OK;
}

const dq_op_impl dq_op_conv = {infer, prepare, run, 0};
