/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum as one contraction, of one, two or all operands: products of the operands' elements, summed over the
 * labels that the result lacks, in row-major order of these labels (in ASCII order). Integers wrap around.
 * Floats are summed in double; two float operands are a GEMM, as in MatMul. A single operand without sums is
 * a strided copy. */
#include "ops/matmul/einsum.h"
#include "base/checked.h"
#include "ops/copy_nd.h"
#include "ops/matmul/gemm_driver_f32.h"
#include "ops/matmul/matmul_generic.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Roles of labels in a GEMM of two operands: in both operands and the result (BATCH), in the first and the
 * result (ROWS), in the second and the result (COLS), and summed over (STEPS). */
typedef enum group { BATCH, ROWS, COLS, STEPS, GROUPS } group;
enum { LEFT, RIGHT, RESULT, SIDES, MAX_LISTED_OFFSETS = 1 << 20 /* maximum indices of a group */ };
enum { MAX_STEPS = 1 << 14 /* maximum length of a sum, as a worker packs whole rows and columns */ };
#define NO_STRIDE SIZE_MAX

typedef struct state {
    size_t operands, rank; /* the first `rank` labels are those of the result; the others are summed over */
    size_t labels, terms;  /* number of labels; terms of a sum */
    size_t dims[DQ_EINSUM_LABELS];
    size_t strides[DQ_EINSUM_OPERANDS][DQ_EINSUM_LABELS];
    bool product;                    /* two float operands, computed by `mm` or `blocks` */
    group group[DQ_EINSUM_LABELS];   /* role of each label */
    const size_t *at[GROUPS][SIDES]; /* offset in each side for each combined index of a group */
    size_t even[GROUPS][SIDES];      /* stride between these offsets; UNEVEN: there is no single stride */
    dq_matmul_generic mm;
    bool by_blocks;   /* strides allow a dq_gemm_f32, `blocks` */
    group rows, cols; /* its rows and columns … */
    size_t a, b;      /* … and the operands (LEFT, RIGHT) that have them */
    dq_gemm_f32 blocks;
    const float *panels; /* packed b, if it is constant; else NULL */
} state;

static dq_status bad(const dq_op_call *call, const dq_einsum *p, dq_error *err)
{
    char shapes[2 * DQ_SHAPE_TEXT] = "", one[DQ_SHAPE_TEXT];
    size_t used = 0;
    for (uint32_t i = 0; i < call->in_count && used < sizeof shapes; i++)
        used += (size_t)snprintf(shapes + used, sizeof shapes - used, "%s%s", i ? ", " : "",
                                 dq_shape_text(call->in[i]->rank, call->in[i]->dims, one));
    return dq_call_fail(call, err, DQ_BAD_MODEL,
                        "attribute 'equation' is '%.200s', which does not fit its inputs (%s)", p->equation,
                        shapes);
}

/* Label of a letter, in ASCII order; DQ_EINSUM_LABELS for other characters. */
static size_t letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (size_t)(c - 'A');
    return c >= 'a' && c <= 'z' ? (size_t)(c - 'a') + 26 : DQ_EINSUM_LABELS;
}

static const char *skip(const char *c)
{
    while (*c == ' ')
        c++;
    return c;
}

/* Parses the labels of a term of the equation; *rest points to the text after it. The operand has `axes`
 * axes: the ellipsis stands for those without a letter. */
static bool read_term(const char *c, size_t axes, size_t *labels, size_t *count, size_t *ellipsis,
                      const char **rest)
{
    size_t letters = 0;
    const char *end = c;
    bool dots = false;
    for (end = skip(c); *end && *end != ',' && *end != '-'; end = skip(end + 1)) {
        if (strncmp(end, "...", 3) == 0 && !dots) {
            dots = true;
            end += 2;
        } else if (letter(*end) == DQ_EINSUM_LABELS || letters++ >= DQ_MAX_RANK) {
            return false;
        }
    }
    *rest = end;
    if (letters > axes || (!dots && letters != axes))
        return false;
    *ellipsis = axes - letters;
    *count = 0;
    for (const char *at = skip(c); at != end; at = skip(at + 1)) {
        if (*at != '.') {
            labels[(*count)++] = letter(*at);
            continue;
        }
        for (size_t d = 0; d < *ellipsis; d++)
            labels[(*count)++] = DQ_EINSUM_LABELS - *ellipsis + d;
        at += 2;
    }
    return true;
}

static bool read_operands(const dq_op_call *call, dq_einsum *p, const char **rest)
{
    const char *c = p->equation;
    for (size_t d = 0; d < DQ_EINSUM_LABELS; d++)
        p->dims[d] = -1;
    for (size_t i = 0; i < call->in_count; i++) {
        const dq_tensor *t = call->in[i];
        size_t ellipsis = 0;
        if (!read_term(c, t->rank, p->labels[i], &p->rank[i], &ellipsis, &c))
            return false;
        p->ellipsis = ellipsis > p->ellipsis ? ellipsis : p->ellipsis;
        for (size_t d = 0; d < t->rank; d++) {
            size_t label = p->labels[i][d];
            if (p->dims[label] >= 0 && p->dims[label] != t->dims[d] && p->dims[label] != 1 && t->dims[d] != 1)
                return false;
            if (p->dims[label] < 0 || p->dims[label] == 1)
                p->dims[label] = t->dims[d];
            p->uses[label]++;
        }
        if (i + 1 < call->in_count && *c++ != ',')
            return false;
    }
    *rest = c;
    return true;
}

static bool read_result(dq_einsum *p, const char *c)
{
    size_t dots = DQ_EINSUM_LABELS - p->ellipsis;
    if (*c == 0) { /* implicit form: the ellipsis, then the letters that appear once, in order */
        for (size_t d = dots; d < DQ_EINSUM_LABELS; d++)
            p->out[p->out_rank++] = d;
        for (size_t d = 0; d < 52; d++)
            if (p->uses[d] == 1)
                p->out[p->out_rank++] = d;
        return true;
    }
    if (strncmp(c, "->", 2) != 0)
        return false;
    bool seen[DQ_EINSUM_LABELS] = {false};
    for (c = skip(c + 2); *c; c = skip(c + 1)) {
        if (strncmp(c, "...", 3) == 0) {
            for (size_t d = dots; d < DQ_EINSUM_LABELS && !seen[DQ_EINSUM_LABELS - 1]; d++)
                p->out[p->out_rank++] = d;
            seen[DQ_EINSUM_LABELS - 1] = p->ellipsis > 0;
            c += 2;
            continue;
        }
        size_t label = letter(*c);
        if (label == DQ_EINSUM_LABELS || seen[label] || p->dims[label] < 0)
            return false;
        seen[label] = true;
        p->out[p->out_rank++] = label;
    }
    return true;
}

dq_status dq_einsum_read(const dq_op_call *call, dq_einsum *p, dq_error *err)
{
    const char *rest = NULL;
    *p = (dq_einsum){.equation = dq_node_string(call->node, "equation", "")};
    if (call->in_count > DQ_EINSUM_OPERANDS)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "has %u inputs, and at most %d run", call->in_count,
                            DQ_EINSUM_OPERANDS);
    if (!read_operands(call, p, &rest) || !read_result(p, rest))
        return bad(call, p, err);
    return DQ_OK;
}

dq_status dq_einsum_infer(dq_op_call *call, dq_error *err)
{
    dq_einsum p;
    int64_t dims[DQ_EINSUM_LABELS];
    DQ_TRY(dq_einsum_read(call, &p, err));
    for (size_t d = 0; d < p.out_rank; d++)
        dims[d] = p.dims[p.out[d]];
    return dq_call_output(call, 0, call->in[0]->dtype, p.out_rank, dims, err);
}

static void add_label(state *s, const dq_op_call *call, const dq_einsum *p, size_t label)
{
    size_t strides[DQ_MAX_RANK];
    for (size_t i = 0; i < call->in_count; i++) {
        const dq_tensor *t = call->in[i];
        dq_strides(t->rank, t->dims, strides);
        for (size_t d = 0; d < t->rank; d++)
            if (p->labels[i][d] == label && t->dims[d] != 1)
                s->strides[i][s->labels] += strides[d];
    }
    s->dims[s->labels++] = (size_t)p->dims[label];
}

/* ---- Two float operands as a matrix product ------------------------------------------------------------ */

static group group_of(const state *s, size_t label)
{
    if (label >= s->rank)
        return STEPS;
    if (s->strides[RIGHT][label])
        return s->strides[LEFT][label] ? BATCH : COLS;
    return ROWS;
}

/* Moves leading labels of a side to the batch if they do not have a common stride with the labels after
 * them, in operand and result. The remaining labels must be enough for a matrix product. */
static void move_to_batch(state *s, group side, const size_t out_strides[])
{
    enum { MIN_PRODUCT_SIDE = 8 };
    const size_t *strides = s->strides[side == ROWS ? LEFT : RIGHT];
    size_t count = 1, last = s->rank, end = 0; /* labels from `last` on have one stride, and count indices */
    for (size_t d = s->rank; d-- > 0;) {
        if (s->group[d] != side || s->dims[d] == 1)
            continue;
        if (count > 1 && (strides[d] != strides[last] * s->dims[last] ||
                          out_strides[d] != out_strides[last] * s->dims[last])) {
            end = d + 1;
            break;
        }
        count *= s->dims[d];
        last = d;
    }
    for (size_t d = 0; d < end && count >= MIN_PRODUCT_SIDE; d++)
        s->group[d] = s->group[d] == side ? BATCH : s->group[d];
}

/* Lists the offsets of all combined indices of a group. False: there are too many, or *failed is an error. */
static bool list_offsets(dq_op_call *call, state *s, group which, const size_t out_strides[], size_t *count,
                         dq_status *failed, dq_error *err)
{
    const size_t most = which == STEPS ? MAX_STEPS : MAX_LISTED_OFFSETS;
    *count = 1;
    for (size_t d = 0; d < s->labels; d++)
        if (s->group[d] == which && (!dq_mul_size(*count, s->dims[d], count) || *count > most))
            return false;
    for (size_t side = LEFT; side < SIDES; side++) {
        size_t *at = DQ_NEW_ARRAY(call->arena, *count ? *count : 1, size_t);
        if (!at) {
            *failed = dq_no_memory(err, *count * sizeof *at, "the offsets of an operand");
            return false;
        }
        for (size_t i = 0; i < *count; i++)
            for (size_t d = s->labels, rest = i; d-- > 0;) {
                if (s->group[d] != which)
                    continue;
                size_t stride = side != RESULT ? s->strides[side][d] : d < s->rank ? out_strides[d] : 0;
                at[i] += rest % s->dims[d] * stride;
                rest /= s->dims[d];
            }
        s->at[which][side] = at;
        s->even[which][side] = *count > 1 ? at[1] : 1;
        for (size_t i = 0; i < *count; i++)
            if (at[i] != i * s->even[which][side])
                s->even[which][side] = NO_STRIDE;
    }
    return true;
}

typedef struct operands {
    const state *s;
    const dq_kernels *kernels;
    const float *in[2];
    float *out;
} operands;

static void pack(const operands *o, int side, group lane_group, size_t batch, size_t first, size_t count,
                 size_t strip_width, float *to)
{
    const state *s = o->s;
    const float *from = o->in[side] + s->at[BATCH][side][batch];
    const size_t *lane = s->at[lane_group][side] + first, *step = s->at[STEPS][side];
    size_t lane_step = s->even[lane_group][side], steps = s->even[STEPS][side];
    if (lane_step != NO_STRIDE && steps != NO_STRIDE) {
        const dq_matmul_generic_strip even = {.data = from,
                                              .dtype = DQ_FLOAT,
                                              .strip_stride = lane_step,
                                              .step_stride = steps,
                                              .strip_width = strip_width,
                                              .k = s->mm.k};
        dq_matmul_generic_pack_strided(&even, first * lane_step, count, to);
        return;
    }
    for (size_t p = 0; p < s->mm.k; p++, to += strip_width) {
        const float *row = from + step[p];
        for (size_t i = 0; i < count; i++)
            to[i] = row[lane[i]];
        for (size_t i = count; i < strip_width; i++)
            to[i] = 0;
    }
}

static void pack_rows(const void *arg, size_t batch, size_t first, size_t count, void *to)
{
    pack(arg, LEFT, ROWS, batch, first, count, DQ_STRIP_ROWS, to);
}

static void pack_cols(const void *arg, size_t batch, size_t first, size_t count, void *to)
{
    pack(arg, RIGHT, COLS, batch, first, count, DQ_STRIP_COLS, to);
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    const operands *o = arg;
    const state *s = o->s;
    const size_t *at = s->at[COLS][RESULT] + col;
    for (size_t i = 0; i < rows; i++) {
        const float *from = (const float *)tile + i * DQ_STRIP_COLS;
        float *to = o->out + s->at[BATCH][RESULT][batch] + s->at[ROWS][RESULT][row + i];
        if (s->even[COLS][RESULT] == 1)
            memcpy(to + at[0], from, cols * sizeof *to);
        else
            for (size_t j = 0; j < cols; j++)
                to[at[j]] = from[j];
    }
}

static void part_a(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const operands *o = arg;
    const state *s = o->s;
    const size_t step = s->even[STEPS][s->a];
    block->a_row = s->even[s->rows][s->a];
    block->a = o->in[s->a] + s->at[BATCH][s->a][part->batch] + part->row * block->a_row + part->p * step;
    if (!s->blocks.a_workspace)
        return;
    o->kernels->transpose_x32((const uint32_t *)(const void *)block->a, step, part->k, part->rows,
                              (uint32_t *)(void *)workspace, part->k);
    block->a = workspace;
    block->a_row = part->k;
}

static void part_b(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const operands *o = arg;
    const state *s = o->s;
    if (!s->panels) {
        dq_pack_b_f32(o->kernels->transpose_x32, o->in[s->b] + s->at[BATCH][s->b][part->batch],
                      s->even[s->cols][s->b], s->even[STEPS][s->b], part, workspace, block);
        return;
    }
    block->b = s->panels + part->col * s->blocks.k + part->p * DQ_GEMM_F32_NR;
    block->b_step = DQ_GEMM_F32_NR;
    block->b_panel = DQ_GEMM_F32_NR * s->blocks.k;
}

static void part_c(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    (void)workspace;
    const operands *o = arg;
    const state *s = o->s;
    block->c_row = s->even[s->rows][RESULT];
    block->c = o->out + s->at[BATCH][RESULT][part->batch] + part->row * block->c_row + part->col;
    block->low = -INFINITY;
    block->high = INFINITY;
}

/* Whether a dq_gemm_f32 can compute the product, with the operands in this order or exchanged: columns of the
 * result are contiguous, and A is contiguous along its rows or along the sum. */
static bool find_blocks(state *s, bool swapped, const size_t counts[GROUPS])
{
    s->a = swapped ? RIGHT : LEFT;
    s->b = swapped ? LEFT : RIGHT;
    s->rows = swapped ? COLS : ROWS;
    s->cols = swapped ? ROWS : COLS;
    const size_t a_row = s->even[s->rows][s->a], a_step = s->even[STEPS][s->a];
    s->blocks = (dq_gemm_f32){.batches = counts[BATCH],
                              .m = counts[s->rows],
                              .n = counts[s->cols],
                              .k = counts[STEPS],
                              .a_workspace = a_step != 1,
                              .a = part_a,
                              .b = part_b,
                              .c = part_c};
    return a_row != NO_STRIDE && a_step != NO_STRIDE && (a_row == 1 || a_step == 1) &&
           s->even[s->cols][s->b] != NO_STRIDE && s->even[STEPS][s->b] != NO_STRIDE &&
           s->even[s->rows][RESULT] != NO_STRIDE && s->even[s->cols][RESULT] == 1;
}

static dq_status plan_blocks(dq_op_call *call, state *s, dq_error *err)
{
    const uint32_t b = s->b == LEFT ? 0 : 1;
    dq_gemm_f32 *f = &s->blocks;
    const dq_pack_b_shape of = {.batches = 1,
                                .n = f->n,
                                .k = f->k,
                                .col_stride = s->even[s->cols][s->b],
                                .step_stride = s->even[STEPS][s->b]};
    if (f->batches == 1 && dq_call_constant(call, b) && f->n && f->k && call->in[b]->count / f->n == f->k &&
        call->in[b]->count % f->n == 0)
        DQ_TRY(dq_panels_f32_constant(call, b, &of, &s->panels, err));
    f->b_packed = s->panels != NULL;
    return dq_gemm_f32_prepare(call, f, err);
}

static dq_status plan_product(dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *out = call->out[0];
    size_t strides[DQ_MAX_RANK], counts[GROUPS];
    dq_status failed = DQ_OK;
    if (s->operands != 2 || out->dtype != DQ_FLOAT || out->count == 0)
        return DQ_OK;
    dq_strides(out->rank, out->dims, strides);
    for (size_t d = 0; d < s->labels; d++)
        s->group[d] = group_of(s, d);
    move_to_batch(s, ROWS, strides);
    move_to_batch(s, COLS, strides);
    for (group g = BATCH; g < GROUPS; g++)
        if (!list_offsets(call, s, g, strides, &counts[g], &failed, err))
            return failed;
    s->product = true;
    s->by_blocks = find_blocks(s, false, counts) || find_blocks(s, true, counts);
    if (s->by_blocks)
        return plan_blocks(call, s, err);
    s->mm = (dq_matmul_generic){.type = DQ_FLOAT,
                                .batches = counts[BATCH],
                                .m = counts[ROWS],
                                .n = counts[COLS],
                                .k = counts[STEPS],
                                .pack_a = pack_rows,
                                .pack_b = pack_cols,
                                .store = store};
    return dq_matmul_generic_prepare(call, &s->mm, err);
}

dq_status dq_einsum_prepare(dq_op_call *call, dq_error *err)
{
    dq_einsum p;
    bool taken[DQ_EINSUM_LABELS] = {false};
    DQ_TRY(dq_einsum_read(call, &p, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->operands = call->in_count;
    s->rank = p.out_rank;
    for (size_t d = 0; d < p.out_rank; d++) {
        add_label(s, call, &p, p.out[d]);
        taken[p.out[d]] = true;
    }
    s->terms = 1;
    for (size_t d = 0; d < DQ_EINSUM_LABELS; d++)
        if (!taken[d] && p.dims[d] >= 0) {
            if (!dq_mul_size(s->terms, (size_t)p.dims[d], &s->terms))
                return dq_call_fail(call, err, DQ_BAD_MODEL, "sums over more terms than can be counted");
            add_label(s, call, &p, d);
        }
    return plan_product(call, s, err);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Advances to the next term of a sum; at[i] is the offset of its element in operand i. */
static void advance(const state *s, size_t coord[DQ_EINSUM_LABELS], size_t at[DQ_EINSUM_OPERANDS])
{
    for (size_t d = s->labels; d-- > s->rank;) {
        bool more = ++coord[d] < s->dims[d];
        for (size_t i = 0; i < s->operands; i++)
            at[i] = more ? at[i] + s->strides[i][d] : at[i] - (s->dims[d] - 1) * s->strides[i][d];
        if (more)
            return;
        coord[d] = 0;
    }
}

static double float_sum(const dq_op_call *call, size_t at[DQ_EINSUM_OPERANDS])
{
    const state *s = call->state;
    size_t coord[DQ_EINSUM_LABELS] = {0};
    double sum = 0;
    for (size_t k = 0; k < s->terms; k++) {
        double product = 1;
        for (size_t i = 0; i < s->operands; i++)
            product *= dq_tensor_get_double(call->in[i], at[i]);
        sum += product;
        advance(s, coord, at);
    }
    return sum;
}

static uint64_t integer_sum(const dq_op_call *call, size_t at[DQ_EINSUM_OPERANDS])
{
    const state *s = call->state;
    size_t coord[DQ_EINSUM_LABELS] = {0};
    uint64_t sum = 0;
    for (size_t k = 0; k < s->terms; k++) {
        uint64_t product = 1;
        for (size_t i = 0; i < s->operands; i++)
            product *= (uint64_t)dq_tensor_get_int(call->in[i], at[i]);
        sum += product;
        advance(s, coord, at);
    }
    return sum;
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    for (size_t o = begin; o < end && !dq_threads_cancelled(call->threads); o++) {
        size_t at[DQ_EINSUM_OPERANDS] = {0};
        for (size_t d = s->rank, rest = o; d-- > 0; rest /= s->dims[d])
            for (size_t i = 0; i < s->operands; i++)
                at[i] += rest % s->dims[d] * s->strides[i][d];
        if (dq_dtype_is_float(call->out[0]->dtype))
            dq_tensor_put_double(call->out[0], o, float_sum(call, at));
        else
            dq_tensor_put_int(call->out[0], o, (int64_t)integer_sum(call, at));
    }
}

dq_status dq_einsum_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    const dq_tensor *out = call->out[0];
    if (s->product) {
        const operands o = {
            s, call->kernels, {call->in[LEFT]->data, call->in[RIGHT]->data}, dq_data(out, float)};
        if (s->by_blocks)
            dq_gemm_f32_run(call, &s->blocks, &o);
        else
            dq_matmul_generic_run(call, &s->mm, &o);
    } else if (s->operands == 1 && s->labels == s->rank && out->count) {
        dq_copy_nd m = {0};
        size_t strides[DQ_MAX_RANK];
        dq_strides(out->rank, out->dims, strides);
        for (size_t d = 0; d < s->rank; d++)
            dq_copy_nd_add(&m, s->dims[d], (int64_t)s->strides[0][d], strides[d]);
        dq_copy_nd_coalesce(&m);
        dq_copy_nd_run(call, &m, out->dtype, out->data, call->in[0]->data);
    } else {
        dq_parallel(call->threads, out->count, 64, piece, &call);
    }
    return DQ_OK;
}
