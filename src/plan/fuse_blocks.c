/* Weights of 4 bits with a scale for each block of a column, in float precision:
 *
 *   MatMul(a, DequantizeLinear(w, axis = rows, block_size))  → com.microsoft.MatMulNBits
 *
 * The weights stay in 4 bits instead of being unpacked for all runs. Zero points and scales are applied to
 * the sums of blocks (ops/weight_only/weight_only.h): not exact. */
#include "plan/fuser.h"

#include <string.h>

typedef struct blocks {
    const dq_tensor *codes, *scale, *zero;
    int64_t rows, columns, size, count; /* elements of a block, blocks of a column */
} blocks;

static bool has_shape(const dq_tensor *t, int64_t rows, int64_t columns)
{
    return t->rank == 2 && t->dims[0] == rows && t->dims[1] == columns;
}

static bool is_4_bits(dq_dtype dtype)
{
    return dtype == DQ_UINT4 || dtype == DQ_INT4;
}

static bool read_blocks(const dq_fuser *f, const dq_value *v, blocks *b)
{
    const dq_node *node = v->producer;
    if (!dq_fuser_is(node, "DequantizeLinear") || v->graph != f->graph || !dq_fuser_once(f, v))
        return false;
    bool with_zero = node->in_count > 2 && node->in[2];
    int64_t axis = dq_node_int(node, "axis", 1), result = dq_node_int(node, "output_dtype", 0);
    *b = (blocks){.codes = dq_fuser_constant(node->in[0]),
                  .scale = dq_fuser_constant(node->in[1]),
                  .zero = with_zero ? dq_fuser_constant(node->in[2]) : NULL,
                  .size = dq_node_int(node, "block_size", 0)};
    if (!b->codes || !b->scale || (with_zero && !b->zero) || !is_4_bits(b->codes->dtype) ||
        b->codes->rank != 2 || b->scale->dtype != DQ_FLOAT || (axis != 0 && axis != -2) ||
        (result != 0 && result != DQ_FLOAT))
        return false;
    b->rows = b->codes->dims[0];
    b->columns = b->codes->dims[1];
    /* what MatMulNBits takes: a power of two that fills bytes */
    if (b->size < 16 || (b->size & (b->size - 1)) != 0 || b->rows < 1 || b->columns < 1)
        return false;
    b->count = (b->rows - 1) / b->size + 1;
    return has_shape(b->scale, b->count, b->columns) &&
           (!b->zero || has_shape(b->zero, b->count, b->columns));
}

/* A code as MatMulNBits counts it, from 0 to 15. */
static unsigned unsigned_code(const dq_tensor *t, int64_t i)
{
    unsigned bits = (unsigned)dq_get_bits(t->data, 4, (size_t)i);
    return t->dtype == DQ_INT4 ? bits ^ 8U : bits;
}

static void put_code(uint8_t *row, int64_t i, unsigned code)
{
    row[i / 2] = (uint8_t)(row[i / 2] | code << (i % 2 * 4));
}

/* Columns become rows, each with its blocks behind each other, the last one filled up. */
static dq_value *make_codes(dq_fuser *f, const blocks *b)
{
    dq_tensor *t;
    int64_t dims[] = {b->columns, b->count, b->size / 2};
    dq_value *v = dq_fuser_make_constant(f, DQ_UINT8, 3, dims, &t);
    for (int64_t c = 0; v && c < b->columns; c++)
        for (int64_t r = 0; r < b->rows; r++)
            put_code(dq_data(t, uint8_t) + c * b->count * (b->size / 2), r,
                     unsigned_code(b->codes, r * b->columns + c));
    return v;
}

static dq_value *make_scales(dq_fuser *f, const blocks *b)
{
    dq_tensor *t;
    dq_value *v = dq_fuser_make_constant(f, DQ_FLOAT, 2, (int64_t[]){b->columns, b->count}, &t);
    for (int64_t c = 0; v && c < b->columns; c++)
        for (int64_t k = 0; k < b->count; k++)
            dq_data(t, float)[c * b->count + k] = dq_fuser_float(b->scale, (size_t)(k * b->columns + c));
    return v;
}

static dq_value *make_zeros(dq_fuser *f, const blocks *b)
{
    dq_tensor *t;
    int64_t bytes = (b->count + 1) / 2;
    unsigned none = b->codes->dtype == DQ_INT4 ? 8 : 0;
    dq_value *v = dq_fuser_make_constant(f, DQ_UINT8, 2, (int64_t[]){b->columns, bytes}, &t);
    for (int64_t c = 0; v && c < b->columns; c++)
        for (int64_t k = 0; k < b->count; k++)
            put_code(dq_data(t, uint8_t) + c * bytes, k,
                     b->zero ? unsigned_code(b->zero, k * b->columns + c) : none);
    return v;
}

bool dq_fuse_blocks(dq_fuser *f, uint32_t at)
{
    dq_node *last = f->nodes[at];
    blocks b;
    if (!dq_fuser_is(last, "MatMul") || !read_blocks(f, last->in[1], &b) ||
        dq_fuser_dtype(f, last->in[0]) != DQ_FLOAT)
        return false;
    dq_value *in[4] = {last->in[0], make_codes(f, &b), make_scales(f, &b), make_zeros(f, &b)};
    if (f->failed)
        return false;
    dq_node *made = dq_fuser_node(f, "com.microsoft", "MatMulNBits", 1, last, 4, in, last->out[0], 4);
    if (!made)
        return false;
    made->attrs[0] = (dq_attr){.name = "K", .kind = DQ_ATTR_INT, .u.i = b.rows};
    made->attrs[1] = (dq_attr){.name = "N", .kind = DQ_ATTR_INT, .u.i = b.columns};
    made->attrs[2] = (dq_attr){.name = "bits", .kind = DQ_ATTR_INT, .u.i = 4};
    made->attrs[3] = (dq_attr){.name = "block_size", .kind = DQ_ATTR_INT, .u.i = b.size};
    if (!dq_fuser_bind(f, made))
        return false;
    f->nodes[at] = made;
    dq_fuser_tell(f, last, "fused with the dequantization of its 4-bit weights into MatMulNBits");
    return true;
}
