/* com.microsoft MatMulNBits and MatMulBnb4: products of float activations with weights of 2, 4 or 8 bits.
 * Weights become floats column by column, each rounded once, and the product is that of MatMul: float
 * precision whatever `accuracy_level` would allow.
 *
 *   MatMulNBits: w[n][k] = (code - zero point) * scale, the last two of block g_idx[k], by default k /
 * block_size; codes of a row in blocks of block_size, low bits first MatMulBnb4:  w = table[code] * absmax[i
 * / block_size], i the place in the flat matrix ([N, K], or [K, N] with transB 0), high bits of a byte first
 */
#include "base/checked.h"
#include "base/codec.h"
#include "ops/float_matmul.h"
#include "ops/nbits.h"

#include <inttypes.h>
#include <string.h>

enum { A, B, SCALES, ZEROS, GROUPS, BIAS }; /* MatMulBnb4 has the first three */

typedef struct state {
    dq_fmm mm;
    size_t block, blocks; /* values of a block; blocks of a row */
    unsigned bits;
    bool zeros_packed;                  /* as codes, else in the type of A */
    size_t zero_row;                    /* packed: bytes of a row's zero points */
    const float *table;                 /* MatMulBnb4 */
    bool transposed;                    /* MatMulBnb4: B stands as [N, K] */
    const void *codes, *scales, *zeros; /* MatMulNBits: packed, or NULL; see make_codes */
} state;

typedef struct operands {
    const state *s;
    const dq_op_call *call;
} operands;

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

/* Attribute `name`, which must be at least 1. */
static dq_status positive(const dq_op_call *call, const char *name, size_t *out, dq_error *err)
{
    int64_t value = dq_node_int(call->node, name, 0);
    if (value < 1 || value > INT32_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' is %" PRId64 ", wanted 1 or more", name,
                            value);
    *out = (size_t)value;
    return DQ_OK;
}

static dq_status check_count(const dq_op_call *call, uint32_t i, size_t wanted, const char *what,
                             dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == wanted)
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has %zu elements, wanted %zu (%s)", t->count, wanted, what);
}

static dq_status resolve_common(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *a = call->in[A];
    DQ_TRY(positive(call, "K", &s->mm.k, err));
    DQ_TRY(positive(call, "N", &s->mm.n, err));
    DQ_TRY(positive(call, "block_size", &s->block, err));
    char text[DQ_SHAPE_TEXT];
    if (a->rank < 1 || (size_t)a->dims[a->rank - 1] != s->mm.k)
        return dq_call_fail_input(call, err, A, "has shape %s, wanted %zu (K) in the last axis",
                                  dq_shape_text(a->rank, a->dims, text), s->mm.k);
    s->mm.type = dq_fmm_type(a->dtype);
    s->mm.batches = 1;
    s->mm.m = dq_dims_product(a->dims, 0, a->rank - 1);
    return DQ_OK;
}

static dq_status resolve_nbits(const dq_op_call *call, state *s, dq_error *err)
{
    DQ_TRY(resolve_common(call, s, err));
    int64_t bits = dq_node_int(call->node, "bits", 4);
    size_t n = s->mm.n, bytes, all, groups;
    if (bits != 2 && bits != 4 && bits != 8)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'bits' is %" PRId64 ", wanted 2, 4 or 8",
                            bits);
    if (dq_node_int(call->node, "weight_prepacked", 0) != 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "weights packed for another runtime's kernels cannot be read");
    s->bits = (unsigned)bits;
    if (s->block * s->bits % 8)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'block_size' is %zu, wanted whole bytes of %u-bit codes", s->block,
                            s->bits);
    s->blocks = (s->mm.k + s->block - 1) / s->block;
    s->zero_row = (s->blocks * s->bits + 7) / 8;
    if (!dq_mul_size(s->blocks, s->block * s->bits / 8, &bytes) || !dq_mul_size(n, bytes, &all) ||
        !dq_mul_size(n, s->blocks, &groups))
        return dq_no_memory(err, SIZE_MAX, "weights");
    DQ_TRY(check_count(call, B, all, "N rows of whole blocks", err));
    DQ_TRY(check_count(call, SCALES, groups, "one a block", err));
    const dq_tensor *zeros = dq_call_in(call, ZEROS);
    s->zeros_packed = zeros && zeros->dtype == DQ_UINT8;
    if (zeros)
        DQ_TRY(check_count(call, ZEROS, s->zeros_packed ? n * s->zero_row : groups, "one a block", err));
    DQ_TRY(check_count(call, GROUPS, s->mm.k, "one a column", err));
    return check_count(call, BIAS, n, "one a row of B", err);
}

static dq_status resolve_bnb4(const dq_op_call *call, state *s, dq_error *err)
{
    DQ_TRY(resolve_common(call, s, err));
    int64_t type = dq_node_int(call->node, "quant_type", -1);
    size_t count;
    if (type != 0 && type != 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'quant_type' is %" PRId64 ", wanted 0 (FP4) or 1 (NF4)", type);
    s->table = type == 0 ? fp4 : nf4;
    s->transposed = dq_node_int(call->node, "transB", 1) != 0;
    if (!dq_mul_size(s->mm.n, s->mm.k, &count))
        return dq_no_memory(err, SIZE_MAX, "weights");
    DQ_TRY(check_count(call, B, count / 2 + count % 2, "two codes a byte", err));
    return check_count(call, SCALES, count / s->block + (count % s->block != 0), "one a block", err);
}

/* ---- Operands ----------------------------------------------------------------------------------------- */

static void pack_a(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    (void)batch;
    const operands *o = arg;
    size_t k = o->s->mm.k;
    dq_fmm_pack_strided(o->call->in[A]->data, o->call->in[A]->dtype, row * k, k, 1, count, DQ_FMM_ROWS, k,
                        to);
}

static float zero_point(const operands *o, size_t n, size_t group)
{
    const state *s = o->s;
    const dq_tensor *zeros = dq_call_in(o->call, ZEROS);
    if (!zeros)
        return (float)(1 << (s->bits - 1));
    if (!s->zeros_packed)
        return dq_nbits_float(zeros, n * s->blocks + group);
    return (float)dq_get_bits(dq_data(zeros, uint8_t) + n * s->zero_row, s->bits, group);
}

/* Row n of B into lane `lane`. */
static void unpack_row(const operands *o, size_t n, size_t lane, float *to)
{
    const state *s = o->s;
    const dq_tensor *groups = dq_call_in(o->call, GROUPS);
    const uint8_t *codes = dq_data(o->call->in[B], uint8_t) + n * s->blocks * (s->block * s->bits / 8);
    for (size_t k = 0, count; k < s->mm.k; k += count) {
        size_t group = groups ? (size_t)dq_data(groups, int32_t)[k] : k / s->block, left = s->mm.k - k;
        count = groups ? 1 : left < s->block ? left : s->block;
        dq_nbits_unpack(codes, s->bits, k, count, zero_point(o, n, group),
                        dq_nbits_float(o->call->in[SCALES], n * s->blocks + group),
                        to + k * DQ_FMM_COLS + lane, DQ_FMM_COLS);
    }
}

static void unpack_bnb4(const operands *o, size_t n, size_t lane, float *to)
{
    const state *s = o->s;
    const uint8_t *codes = o->call->in[B]->data;
    for (size_t k = 0; k < s->mm.k; k++) {
        size_t i = s->transposed ? n * s->mm.k + k : k * s->mm.n + n;
        unsigned code = i % 2 ? codes[i / 2] & 15u : codes[i / 2] >> 4;
        to[k * DQ_FMM_COLS + lane] = s->table[code] * dq_nbits_float(o->call->in[SCALES], i / s->block);
    }
}

/* ---- 4-bit weights, packed once ------------------------------------------------------------------------ */

/* Strips of DQ_FMM_COLS rows of B side by side: codes as dq_unpack_u4_fn wants them; scales and zero points
 * as floats, one of each column a block. */
typedef struct strips {
    size_t n, k, block, blocks, zero_row;
    bool codes; /* zero points are packed codes */
} strips;

enum { STRIP_BYTES = DQ_FMM_COLS / 2 };

static strips strips_of(const state *s)
{
    strips key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.n = s->mm.n;
    key.k = s->mm.k;
    key.block = s->block;
    key.blocks = s->blocks;
    key.zero_row = s->zero_row;
    key.codes = s->zeros_packed;
    return key;
}

static void make_codes(void *packed, const dq_tensor *from, const void *arg)
{
    const strips *key = arg;
    size_t row_bytes = key->blocks * (key->block / 2);
    for (size_t n = 0; n < key->n; n++) {
        const uint8_t *codes = dq_data(from, uint8_t) + n * row_bytes;
        size_t lane = n % DQ_FMM_COLS;
        uint8_t *to = (uint8_t *)packed + n / DQ_FMM_COLS * key->k * STRIP_BYTES + lane % STRIP_BYTES;
        for (size_t k = 0; k < key->k; k++) {
            unsigned code = codes[k / 2] >> k % 2 * 4 & 15u;
            to[k * STRIP_BYTES] = (uint8_t)(to[k * STRIP_BYTES] | code << (lane < STRIP_BYTES ? 0 : 4));
        }
    }
}

static void make_floats(void *packed, const dq_tensor *from, const void *arg)
{
    const strips *key = arg;
    float *to = packed;
    for (size_t n = 0; n < key->n; n++)
        for (size_t g = 0; g < key->blocks; g++)
            to[(n / DQ_FMM_COLS * key->blocks + g) * DQ_FMM_COLS + n % DQ_FMM_COLS] =
                key->codes ? (float)dq_get_bits(dq_data(from, uint8_t) + n * key->zero_row, 4, g)
                           : dq_nbits_float(from, n * key->blocks + g);
}

static dq_status pack_strips(dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *zeros = dq_call_in(call, ZEROS);
    strips key = strips_of(s);
    size_t lanes, codes, floats;
    if (s->bits != 4 || s->mm.type != DQ_FLOAT || dq_call_in(call, GROUPS) || !dq_call_constant(call, B) ||
        !dq_call_constant(call, SCALES) || (zeros && !dq_call_constant(call, ZEROS)))
        return DQ_OK;
    if (!dq_align_size(s->mm.n, DQ_FMM_COLS, &lanes) || !dq_mul_size(lanes / 2, s->mm.k, &codes) ||
        !dq_mul_size(lanes, s->blocks * sizeof(float), &floats))
        return dq_no_memory(err, SIZE_MAX, "packed weights");
    if (zeros)
        DQ_TRY(dq_call_pack(call, ZEROS, make_floats, &key, sizeof key, floats, &s->zeros, err));
    key.codes = false;
    DQ_TRY(dq_call_pack(call, SCALES, make_floats, &key, sizeof key, floats, &s->scales, err));
    return dq_call_pack(call, B, make_codes, &key, sizeof key, codes, &s->codes, err);
}

static void unpack_strip(const operands *o, size_t strip, float *to)
{
    const state *s = o->s;
    const uint8_t *codes = (const uint8_t *)s->codes + strip * s->mm.k * STRIP_BYTES;
    const float *scales = (const float *)s->scales + strip * s->blocks * DQ_FMM_COLS;
    const float *zeros = s->zeros ? (const float *)s->zeros + strip * s->blocks * DQ_FMM_COLS : NULL;
    float middle[DQ_FMM_COLS];
    for (size_t j = 0; j < DQ_FMM_COLS; j++)
        middle[j] = 8;
    for (size_t k = 0, g = 0; k < s->mm.k; k += s->block, g++) {
        size_t count = s->mm.k - k < s->block ? s->mm.k - k : s->block;
        o->call->kernels->unpack_u4(codes + k * STRIP_BYTES, count, zeros ? zeros + g * DQ_FMM_COLS : middle,
                                    scales + g * DQ_FMM_COLS, to + k * DQ_FMM_COLS);
    }
}

static void pack_b(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    (void)batch;
    const operands *o = arg;
    if (o->s->codes) {
        unpack_strip(o, col / DQ_FMM_COLS, to);
        return;
    }
    if (count < DQ_FMM_COLS)
        memset(to, 0, o->s->mm.k * DQ_FMM_COLS * sizeof(float));
    for (size_t lane = 0; lane < count; lane++)
        if (o->s->table)
            unpack_bnb4(o, col + lane, lane, to);
        else
            unpack_row(o, col + lane, lane, to);
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    (void)batch;
    const operands *o = arg;
    const dq_tensor *bias = o->s->table ? NULL : dq_call_in(o->call, BIAS), *y = o->call->out[0];
    for (size_t i = 0; i < rows; i++) {
        float sums[DQ_FMM_COLS];
        memcpy(sums, (const float *)tile + i * DQ_FMM_COLS, cols * sizeof *sums);
        for (size_t j = 0; bias && j < cols; j++)
            sums[j] += dq_nbits_float(bias, col + j);
        dq_fmm_write(y->data, y->dtype, (row + i) * o->s->mm.n + col, sums, cols);
    }
}

/* ---- The operators ------------------------------------------------------------------------------------ */

typedef dq_status (*resolve_fn)(const dq_op_call *call, state *s, dq_error *err);

static dq_status infer_with(dq_op_call *call, resolve_fn resolve, dq_error *err)
{
    state s = {0};
    const dq_tensor *a = call->in[A];
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(resolve(call, &s, err));
    memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[a->rank - 1] = (int64_t)s.mm.n;
    return dq_call_output(call, 0, a->dtype, a->rank, dims, err);
}

static dq_status prepare_with(dq_op_call *call, resolve_fn resolve, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(resolve(call, s, err));
    s->mm.pack_a = pack_a;
    s->mm.pack_b = pack_b;
    s->mm.store = store;
    if (!s->table)
        DQ_TRY(pack_strips(call, s, err));
    return dq_fmm_prepare(call, &s->mm, err);
}

static dq_status check_groups(const dq_op_call *call, const state *s, dq_error *err)
{
    const dq_tensor *groups = s->table ? NULL : dq_call_in(call, GROUPS);
    for (size_t k = 0; groups && k < groups->count; k++) {
        int32_t group = dq_data(groups, int32_t)[k];
        if (group < 0 || (size_t)group >= s->blocks)
            return dq_call_fail_input(call, err, GROUPS, "holds %" PRId32 " at %zu, wanted 0 to %zu", group,
                                      k, s->blocks - 1);
    }
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    operands o = {s, call};
    DQ_TRY(check_groups(call, s, err));
    if (call->out[0] && call->out[0]->count)
        dq_fmm_run(call, &s->mm, &o);
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

const dq_op_impl dq_op_matmul_nbits = {infer_nbits, prepare_nbits, run, 0};
const dq_op_impl dq_op_matmul_bnb4 = {infer_bnb4, prepare_bnb4, run, 0};
