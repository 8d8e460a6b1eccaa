/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun TiledQdq: runs DequantizeLinear, a float operator and QuantizeLinear tile by tile, so that the floats
 * stay in the cache. It uses the same kernels on the same values: results have the same bits.
 *
 * Tiles consist of slices that the operator treats independently. With `free` axes (-1: all but the last), a
 * slice is one index of the first `free` axes. With `free` 0, for operators along axis 1, it is one position
 * of all axes after the first two. MaxPool runs on 16-bit quantized values directly if their scale and zero
 * point do not change. */
#include "ops/row_quantizer.h"

#include <string.h>

enum {
    MAX_INPUTS = 4,
    SIZES = 3,       /* index of input `sizes` of Resize */
    CHUNK = 1 << 15, /* floats of a tile, about … */
    COLUMNS = 512    /* … and columns of a tile at least, if `free` is 0 */
};

/* The operator's call for one number of slices. */
typedef struct tile_call {
    dq_op_call call;
    const dq_tensor *in[MAX_INPUTS];
    dq_tensor *out[1];
    dq_tensor x, y, sizes;
    int64_t lengths[DQ_MAX_RANK];
} tile_call;

typedef struct state {
    const dq_op *op;
    dq_row_quantizer from, to;
    bool as_is;                  /* the operator runs on the quantized values */
    size_t free;                 /* number of free axes; 0: columns */
    size_t slices, each, chunks; /* tiles of a row: of all slices, or of an image */
    size_t rows, images;         /* for columns: rows of an image; number of images */
    size_t in_each, out_each;    /* elements of a slice; for columns 1 */
    tile_call tile_call[2];      /* for `each` slices, and for the last tile */
    size_t x_at, y_at, scratch_at, worker_at;
} state;

static dq_status bad(const dq_op_call *call, dq_error *err)
{
    return dq_call_fail(call, err, DQ_BAD_MODEL, "has an operator that does not hold together");
}

/* Operators that TiledQdq may run. No schema checks the inner operator, so only these are allowed: they have
 * one result, and the schema of TiledQdq describes their inputs and attributes. `inputs`: number of required
 * inputs. */
static const struct {
    const char *name;
    uint32_t inputs;
} known[] = {{"AveragePool", 1},
             {"GlobalAveragePool", 1},
             {"LRN", 1},
             {"LogSoftmax", 1},
             {"MaxPool", 1},
             {"GlobalMaxPool", 1},
             {"Resize", 1},
             {"Softmax", 1},
             {"LayerNormalization", 2},
             {"RMSNormalization", 2},
             {"SimplifiedLayerNormalization", 2}};

static bool is_known(const dq_op_call *call, const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return dq_call_in(call, known[i].inputs - 1) != NULL;
    return false;
}

static dq_status read_attrs(const dq_op_call *call, state *s, dq_error *err)
{
    const char *name = dq_node_string(call->node, "op", "");
    const dq_attr *scales = dq_node_attr(call->node, "scales"), *qvalues = dq_node_attr(call->node, "codes");
    int64_t free = dq_node_int(call->node, "free", 0), rank = call->in[0]->rank;
    s->op = is_known(call, name) ? dq_op_find("", name, (int)dq_node_int(call->node, "version", 0)) : NULL;
    free = free < 0 ? rank - 1 : free;
    if (!s->op || scales->count != 2 || qvalues->count != 3 ||
        !dq_row_quantizer_supports(qvalues->u.ints[1]) || call->in_count > MAX_INPUTS || free >= rank ||
        (free == 0 && rank < 3))
        return bad(call, err);
    s->free = (size_t)free;
    s->from = dq_row_quantizer_make(call->in[0]->dtype, scales->u.floats[0], qvalues->u.ints[0]);
    s->to = dq_row_quantizer_make((dq_dtype)qvalues->u.ints[1], scales->u.floats[1], qvalues->u.ints[2]);
    s->as_is = strcmp(name, "MaxPool") == 0 && rank == 4 && dq_dtype_get(s->from.dtype)->bits == 16 &&
               s->from.dtype == s->to.dtype && s->from.scale == 1 && s->to.scale == 1 &&
               qvalues->u.ints[0] == 0 && qvalues->u.ints[2] == 0;
    return DQ_OK;
}

/* Infers the operator for an x of these dimensions. */
static dq_status begin_form(const dq_op_call *call, const state *s, const int64_t *dims, tile_call *f,
                            dq_error *err)
{
    f->call = *call;
    f->call.version = (int)dq_node_int(call->node, "version", 0);
    f->call.constant_inputs &= ~(uint64_t)1;
    f->call.threads = NULL;
    f->call.out_count = 1;
    f->call.split_offsets = NULL;
    f->call.state = NULL;
    f->call.scratch_size = f->call.worker_scratch_size = 0;
    for (uint32_t i = 0; i < call->in_count; i++)
        f->in[i] = call->in[i];
    f->in[0] = &f->x;
    f->out[0] = &f->y;
    f->call.in = f->in;
    f->call.out = f->out;
    const dq_tensor *sizes = dq_call_in(call, SIZES);
    if (sizes && sizes->data && sizes->count == call->in[0]->rank) {
        if (memcmp(sizes->data, call->in[0]->dims, s->free * sizeof *dims) != 0)
            return bad(call, err); /* results would depend on several slices */
        memcpy(f->lengths, sizes->data, sizes->count * sizeof *f->lengths);
        memcpy(f->lengths, dims, s->free * sizeof *dims);
        f->sizes = *sizes;
        f->sizes.data = f->lengths;
        f->in[SIZES] = &f->sizes;
    }
    const dq_dtype dtype = s->as_is ? call->in[0]->dtype : DQ_FLOAT;
    DQ_TRY(dq_tensor_set_shape(&f->x, dtype, call->in[0]->rank, dims, 0, DQ_BAD_MODEL, err));
    DQ_TRY(s->op->impl->infer(&f->call, err));
    bool same = f->y.dtype == dtype && f->y.rank == f->x.rank;
    for (size_t d = 0; same && d < f->x.rank; d++)
        same = f->y.dims[d] == dims[d] || (s->free && d >= s->free);
    return same ? DQ_OK : bad(call, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_attrs(call, &s, err));
    DQ_TRY(begin_form(call, &s, call->in[0]->dims, &s.tile_call[0], err));
    return dq_call_output(call, 0, s.to.dtype, s.tile_call[0].y.rank, s.tile_call[0].y.dims, err);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

static void cut(const dq_op_call *call, state *s)
{
    const dq_tensor *x = call->in[0], *y = call->out[0];
    size_t axes = s->free ? s->free : 2, inner = dq_dims_product(x->dims, axes, x->rank);
    s->images = s->rows = 1;
    if (s->free) {
        s->slices = dq_dims_product(x->dims, 0, axes);
        s->in_each = inner;
        s->out_each = dq_dims_product(y->dims, axes, y->rank);
    } else {
        s->slices = inner;
        s->images = (size_t)x->dims[0];
        s->rows = (size_t)x->dims[1];
        s->in_each = s->out_each = 1;
    }
    size_t most = (s->in_each > s->out_each ? s->in_each : s->out_each) * s->rows;
    s->each = most < CHUNK ? CHUNK / (most + !most) : 1;
    if (!s->free && s->each < COLUMNS) /* shorter rows cost more than the cache saves */
        s->each = COLUMNS;
    s->each = s->each < s->slices ? s->each : s->slices;
    s->chunks = s->each ? (s->slices + s->each - 1) / s->each : 0;
}

/* Prepares the call for `count` slices; *scratch and *worker become the largest scratch sizes so far. */
static dq_status prepare_form(dq_op_call *call, state *s, size_t count, tile_call *f, size_t *scratch,
                              size_t *worker, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < x->rank; d++)
        dims[d] = s->free ? (d < s->free ? 1 : x->dims[d]) : (d == 1 ? x->dims[1] : 1);
    dims[s->free ? 0 : x->rank - 1] = (int64_t)count;
    DQ_TRY(begin_form(call, s, dims, f, err));
    if (f->y.count != count * s->out_each * s->rows)
        return bad(call, err);
    DQ_TRY(s->op->impl->prepare(&f->call, err));
    dq_call_take_algorithm(call, &f->call);
    *scratch = f->call.scratch_size > *scratch ? f->call.scratch_size : *scratch;
    *worker = f->call.worker_scratch_size > *worker ? f->call.worker_scratch_size : *worker;
    call->packed_inputs |= f->call.packed_inputs;
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    size_t scratch = 0, worker = 0, *size = &call->worker_scratch_size;
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_attrs(call, s, err));
    cut(call, s);
    if (s->chunks == 0 || call->out[0]->count == 0)
        return DQ_OK;
    size_t last = s->slices - (s->chunks - 1) * s->each;
    DQ_TRY(prepare_form(call, s, s->each, &s->tile_call[0], &scratch, &worker, err));
    DQ_TRY(prepare_form(call, s, last, &s->tile_call[1], &scratch, &worker, err));
    s->x_at = 0;
    if (!dq_align_size(s->tile_call[0].x.size, DQ_ALIGN, &s->y_at) ||
        !dq_add_size(s->y_at, s->tile_call[0].y.size, size) ||
        !dq_align_size(*size, DQ_ALIGN, &s->scratch_at) || !dq_add_size(s->scratch_at, scratch, size) ||
        !dq_align_size(*size, DQ_ALIGN, &s->worker_at) || !dq_add_size(s->worker_at, worker, size) ||
        !dq_align_size(*size, DQ_ALIGN, size))
        return dq_no_memory(err, SIZE_MAX, "tiles of floats");
    return DQ_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------ */

typedef struct job {
    const dq_op_call *call;
    const state *s;
} job;

/* Runs tiles begin … end - 1, numbered through all images. */
static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const state *s = j->s;
    const dq_op_call *call = j->call;
    char *workspace = dq_call_worker_scratch(call, worker);
    for (size_t i = begin; i < end; i++) {
        size_t chunk = i % s->chunks, image = i / s->chunks * s->rows;
        const tile_call *f = &s->tile_call[chunk + 1 == s->chunks];
        const dq_tensor *in[MAX_INPUTS];
        dq_tensor x = f->x, y = f->y, *out[1] = {&y};
        dq_op_call one = f->call;
        dq_error unused;
        memcpy(in, call->in, call->in_count * sizeof *in);
        if (f->sizes.data)
            in[SIZES] = &f->sizes;
        in[0] = &x;
        one.in = in;
        one.out = out;
        one.strings = call->strings;
        one.scratch = workspace + s->scratch_at;
        one.worker_scratch = workspace + s->worker_at;
        x.data = workspace + s->x_at;
        y.data = workspace + s->y_at;
        if (s->as_is) {
            x.data = dq_data(call->in[0], uint16_t) + chunk * s->each * s->in_each;
            y.data = dq_data(call->out[0], uint16_t) + chunk * s->each * s->out_each;
            (void)s->op->impl->run(&one, &unused);
            continue;
        }
        size_t n = x.count / s->rows, m = y.count / s->rows;
        for (size_t r = 0; r < s->rows; r++)
            dq_row_quantizer_dequantize(call->kernels, &s->from, call->in[0]->data,
                                        (image + r) * s->slices * s->in_each + chunk * s->each * s->in_each,
                                        n, dq_data(&x, float) + r * n);
        (void)s->op->impl->run(&one, &unused); /* the operators that the rewrite puts here do not fail */
        for (size_t r = 0; r < s->rows; r++)
            dq_row_quantizer_quantize(call->kernels, &s->to, dq_data(&y, float) + r * m, m,
                                      call->out[0]->data,
                                      (image + r) * s->slices * s->out_each + chunk * s->each * s->out_each);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    job j = {call, call->state};
    if (call->out[0]->count)
        dq_parallel(call->threads, j.s->images * j.s->chunks, 1, piece, &j);
    return DQ_OK;
}

const dq_op_impl dq_op_tiled_qdq = {infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
