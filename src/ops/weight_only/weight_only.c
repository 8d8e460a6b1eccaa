/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/weight_only/weight_only.h"

#include "base/checked.h"
#include "base/cpu.h"
#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/packers.h"
#include "ops/weight_only/weight_digits.h"
#include "ops/weight_only/weight_forms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROWS = DQ_NBITS_ROWS, SIDE = 4, CHUNK = 192 };

/* ---- Order of the weights ------------------------------------------------------------------------------ */

/* Packs group_idx: a permutation of k that is sorted by group, then the first position of each group. */
static void make_sorted(void *packed, const dq_tensor *from, const void *key)
{
    const dq_weight_form *f = key;
    const int32_t *group = from->data;
    uint32_t *k_of = packed, *begin = k_of + f->k;
    memset(begin, 0, (f->groups + 1) * sizeof *begin);
    for (size_t k = 0; k < f->k; k++)
        begin[group[k] + 1]++;
    for (size_t g = 0; g < f->groups; g++)
        begin[g + 1] += begin[g];
    for (size_t k = 0; k < f->k; k++)
        k_of[begin[group[k]]++] = (uint32_t)k;
    for (size_t g = f->groups; g > 0; g--)
        begin[g] = begin[g - 1];
    begin[0] = 0;
}

static dq_status check_groups(const dq_op_call *call, const dq_weights *w, dq_error *err)
{
    const dq_tensor *groups = call->in[w->group_idx];
    for (size_t k = 0; k < groups->count; k++) {
        int32_t group = dq_data(groups, int32_t)[k];
        if (group < 0 || (size_t)group >= w->form.groups)
            return dq_call_fail_input(call, err, w->group_idx, "holds %" PRId32 " at %zu, expected 0 to %zu",
                                      group, k, w->form.groups - 1);
    }
    return DQ_OK;
}

static void fill_lengths(const dq_weight_form *f, uint32_t *lengths)
{
    piece p = {0};
    for (size_t i = 0; next_piece(f, &p); i++)
        lengths[i] = (uint32_t)words_of(f, &p);
}

typedef struct job {
    const dq_op_call *call;
    const dq_weights *w;
    dq_weight_form form;
    const uint32_t *lengths, *words;
    const float *zeros;
    const void *scales;   /* floats, or float16 (form.scales_f16) */
    float *x;             /* packed rows: each group begins at the first value of a word */
    const float *rows_at; /* rows of this chunk in the input, if they need no packing; else NULL */
    char *digits;         /* few rows as a dq_nbits_row each, or as dq_nbits_rounded */
    uint8_t *needs_float; /* for each of these rows: 1 if it has no digits and needs the float GEMM */
    size_t blocks, word_count, pitch; /* pitch: floats of a packed row */
    size_t first, rows;               /* rows of this chunk */
    bool as_integers;
    size_t strip; /* first strip of the matrix */
    const dq_weights_io *ends;
} job;

static const void *either(const void *packed, void *scratch, size_t at)
{
    return packed ? packed : (char *)scratch + at;
}

/* Whether all columns have the zero point `middle`, a quantized value. */
static bool has_one_zero(const dq_weights *w)
{
    return !w->with_zeros && !w->fractions;
}

static job job_of(const dq_op_call *call, const dq_weights *w, void *scratch)
{
    job j = {.call = call, .w = w, .form = w->form, .blocks = w->blocks, .word_count = w->words};
    j.lengths = either(w->lengths, scratch, w->lengths_at);
    j.words = either(w->packed, scratch, w->words_at);
    j.scales = either(w->packed_scales, scratch, w->scales_at);
    j.zeros = w->with_zeros ? either(w->packed_zeros, scratch, w->zeros_at) : NULL;
    j.x = (float *)((char *)scratch + w->x_at);
    j.digits = (char *)scratch + w->digits_at;
    j.needs_float = (uint8_t *)scratch + w->needs_float_at;
    if (!w->lengths) { /* group_idx is known only in the run */
        j.form.sorted = (uint32_t *)((char *)scratch + w->sorted_at);
        j.blocks = j.word_count = 0;
        for (piece p = {0}; next_piece(&j.form, &p); j.blocks++)
            j.word_count += words_of(&j.form, &p);
    }
    j.pitch = j.word_count * fields_of(&j.form);
    return j;
}

static dq_nbits strip_of(const job *j, size_t strip)
{
    const dq_weights *w = j->w;
    const size_t at = strip * j->blocks * COLS;
    return (dq_nbits){.bits = j->form.bits,
                      .table = w->table,
                      .blocks = j->blocks,
                      .lengths = j->lengths,
                      .words = j->words + strip * j->word_count * COLS,
                      .scales = w->form.scales_f16 ? NULL : (const float *)j->scales + at,
                      .scales_f16 = w->form.scales_f16 ? (const uint16_t *)j->scales + at : NULL,
                      .zeros = j->zeros ? j->zeros + at : NULL,
                      .middle = w->middle,
                      .fractions = w->fractions,
                      .distance = dq_cpu_prefetch_distance()};
}

/* A float GEMM of the rows of a chunk from `first` on. */
typedef struct product {
    const job *j;
    size_t first;
} product;

static void a_rows_at(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    (void)workspace;
    const product *p = arg;
    const float *x = p->j->rows_at ? p->j->rows_at : p->j->x;
    block->a = x + (p->first + part->row) * p->j->pitch + part->p;
    block->a_row = p->j->pitch;
}

/* Dequantizes `count` words of a strip from number `word` on, block by block. */
static void strip_as_floats(const job *j, size_t strip, size_t word, size_t count, float *to)
{
    dq_nbits b = strip_of(j, strip);
    size_t begin = 0, fields = fields_of(&j->form), panel = count * fields * DQ_GEMM_F32_NR;
    for (size_t g = 0; count; begin += b.lengths[g++]) {
        if (word >= begin + b.lengths[g])
            continue;
        size_t n = dq_least(count, begin + b.lengths[g] - word);
        j->call->kernels->nbits_f32(&b, g, word, n, to, panel);
        word += n;
        count -= n;
        to += n * fields * DQ_GEMM_F32_NR;
    }
}

static void dequantize_b(const void *arg, const dq_gemm_part *part, float *workspace,
                         dq_gemm_block_f32 *block)
{
    const job *j = ((const product *)arg)->j;
    size_t fields = fields_of(&j->form);
    for (size_t at = 0; at < part->cols; at += COLS)
        strip_as_floats(j, j->strip + (part->col + at) / COLS, part->p / fields, part->k / fields,
                        workspace + at * part->k);
    block->b = workspace;
    block->b_step = DQ_GEMM_F32_NR;
    block->b_panel = part->k * DQ_GEMM_F32_NR;
}

static void c_rows_at(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const product *p = arg;
    const dq_weights_io *ends = p->j->ends;
    const bool writes_output = p->j->w->writes_output;
    const size_t row = p->j->first + p->first + part->row;
    block->c_row = writes_output ? p->j->form.n : part->cols;
    block->c = writes_output ? ends->out + row * block->c_row + part->col : workspace;
    block->z = writes_output && ends->bias ? ends->bias + part->col : NULL;
    block->low = -INFINITY;
    block->high = INFINITY;
}

static void store_results(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block)
{
    const product *p = arg;
    const dq_weights_io *ends = p->j->ends;
    for (size_t at = 0; at < part->cols; at += COLS)
        ends->store(ends->arg, p->j->first + p->first + part->row, part->col + at, part->rows,
                    dq_least(COLS, part->cols - at), block->c + at, block->c_row);
}

static void multiply_floats(const job *j, size_t first, size_t rows)
{
    product p = {j, first};
    dq_gemm_f32 f = j->w->product;
    f.m = rows;
    f.k = j->pitch;
    dq_gemm_f32_run(j->call, &f, &p);
}

/* ---- Prepare ------------------------------------------------------------------------------------------- */

static bool is_qvalue(const dq_weight_form *f, float zero)
{
    return zero >= 0 && zero < (float)(1 << f->bits) && zero == rintf(zero);
}

/* Finds the order of the weights along k. If group_idx is not constant, it reserves scratch for the order. */
static dq_status prepare_order(dq_op_call *call, dq_weights *w, dq_error *err)
{
    dq_weight_form *f = &w->form;
    bool value = dq_call_in(call, w->group_idx) != NULL;
    size_t sorted, fields = fields_of(f);
    /* the address of the order is part of the packing key: it must live as long as the packed form */
    bool persistent = !call->packs || (call->persistent_inputs >> w->group_idx & 1);
    w->ordered = !value || (dq_call_constant(call, w->group_idx) && persistent);
    w->blocks = f->groups; /* upper bound */
    w->words = w->pieces = f->k / fields + w->blocks;
    if (!dq_mul_size(f->k + f->groups + 1, sizeof(uint32_t), &sorted) ||
        (!w->ordered &&
         (!dq_reserve_size(&w->scratch_size, sorted, 1, DQ_ALIGN, &w->sorted_at) ||
          !dq_reserve_size(&w->scratch_size, w->blocks, sizeof(uint32_t), DQ_ALIGN, &w->lengths_at))))
        return dq_no_memory(err, SIZE_MAX, "the order of weights");
    if (!w->ordered)
        return DQ_OK;
    if (value) {
        const void *order;
        DQ_TRY(check_groups(call, w, err));
        DQ_TRY(dq_call_pack(call, w->group_idx, make_sorted, f, sizeof *f, sorted, &order, err));
        f->sorted = order;
    }
    w->blocks = w->words = w->pieces = 0;
    for (piece p = {0}; next_piece(f, &p); w->blocks++) {
        w->words += words_of(f, &p);
        w->pieces += (words_of(f, &p) + DQ_NBITS_PIECE_WORDS(f->bits) - 1) / DQ_NBITS_PIECE_WORDS(f->bits);
    }
    w->lengths = dq_arena_alloc(call->arena, w->blocks * sizeof *w->lengths + 1, sizeof *w->lengths);
    if (!w->lengths)
        return dq_no_memory(err, w->blocks * sizeof *w->lengths, "the order of weights");
    fill_lengths(f, w->lengths);
    return DQ_OK;
}

/* Packs input i once if it is constant, else reserves scratch for packing it in each run. */
static dq_status prepare_form(dq_op_call *call, dq_weights *w, uint32_t i, dq_pack_fn make, size_t lines,
                              const void **packed, size_t *at, dq_error *err)
{
    size_t size, columns, element = i == w->scales && w->form.scales_f16 ? sizeof(uint16_t) : sizeof(float);
    if (!dq_mul_size(w->form.matrices * strips_of(&w->form), COLS * element, &columns) ||
        !dq_mul_size(columns, lines, &size))
        return dq_no_memory(err, SIZE_MAX, "packed weights");
    *packed = NULL;
    if (w->ordered && dq_call_constant(call, i))
        return dq_call_pack_deferred(call, i, make, &w->form, sizeof w->form, size, packed, err);
    return dq_reserve_size(&w->scratch_size, size, 1, DQ_ALIGN, at)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "packed weights");
}

/* Sets row_bytes: digits, factor and sum of each piece, and its start; for unrounded rows digits, factor and
 * sum of each word and part. */
static bool size_digits(dq_weights *w)
{
    const size_t bits = w->form.bits, count = w->rounded ? w->pieces : w->words * DQ_WEIGHT_PARTS;
    size_t bytes = w->rounded ? DQ_NBITS_ROUNDED_BYTES(bits) + 2 * sizeof(float) + sizeof(int32_t)
                              : DQ_NBITS_DIGIT_BYTES(bits) + sizeof(float) + sizeof(int32_t);
    return dq_mul_size(count, bytes, &bytes) && dq_align_size(bytes, DQ_ALIGN, &w->row_bytes);
}

/* Reserves scratch for packed rows of x and for their digits, and prepares the float GEMM. */
static dq_status prepare_rows(dq_op_call *call, dq_weights *w, dq_error *err)
{
    size_t pitch, row, worker = call->worker_scratch_size, rows = dq_least(w->rows, CHUNK);
    size_t max_integer_rows =
        w->rounded ? (rows + SIDE - 1) / SIDE * SIDE : dq_least(rows, w->max_integer_rows);
    if (!dq_mul_size(w->words, fields_of(&w->form), &pitch) || !size_digits(w) ||
        !dq_reserve_size(&w->scratch_size, max_integer_rows, w->row_bytes, DQ_ALIGN, &w->digits_at) ||
        !dq_mul_size(pitch, sizeof(float), &row) ||
        !dq_reserve_size(&w->scratch_size, rows, row, DQ_ALIGN, &w->x_at) ||
        !dq_reserve_size(&w->scratch_size, rows, 1, DQ_ALIGN, &w->needs_float_at) ||
        !dq_mul_size(w->form.k, sizeof(float), &row) || !dq_align_size(row, DQ_ALIGN, &row))
        return dq_no_memory(err, SIZE_MAX, "packed rows");
    w->product = (dq_gemm_f32){.batches = 1,
                               .m = rows,
                               .n = w->form.n,
                               .k = pitch,
                               .grain = fields_of(&w->form),
                               .strip = COLS,
                               .c_workspace = !w->writes_output,
                               .a = a_rows_at,
                               .b = dequantize_b,
                               .c = c_rows_at,
                               .done = w->writes_output ? NULL : store_results};
    DQ_TRY(dq_gemm_f32_prepare(call, &w->product, err));
    worker = row > worker ? row : worker;
    if (call->worker_scratch_size < worker)
        call->worker_scratch_size = worker;
    return DQ_OK;
}

dq_status dq_weights_prepare(dq_op_call *call, dq_weights *w, dq_error *err)
{
    w->scratch_size = 0;
    DQ_TRY(prepare_order(call, w, err));
    w->with_zeros = dq_call_in(call, w->zeros) != NULL;
    /* default: 0 of tables and DequantizeMatMul; signed values have inverted sign bits, so 0 is 2^(bits-1) */
    w->middle = w->table || (w->form.zeros_as_scales && !w->form.sign) ? 0 : (float)(1 << (w->form.bits - 1));
    if (w->with_zeros && dq_weights_same_zeros(call, w, &w->middle))
        w->with_zeros = false;
    const bool qvalues = w->form.zeros_as_scales || !w->with_zeros || call->in[w->zeros]->dtype == DQ_UINT8;
    w->fractions = w->with_zeros ? !qvalues : !is_qvalue(&w->form, w->middle);
    if (w->ordered && dq_call_constant(call, w->scales)) {
        const void *fits;
        DQ_TRY(dq_call_pack(call, w->scales, dq_weights_make_fits_f16, "", 1, 1, &fits, err));
        w->form.scales_f16 = *(const uint8_t *)fits;
    }
    DQ_TRY(prepare_form(call, w, w->scales, dq_pack_nbits_scales, w->blocks, &w->packed_scales, &w->scales_at,
                        err));
    if (w->with_zeros)
        DQ_TRY(prepare_form(call, w, w->zeros, dq_pack_nbits_zeros, w->blocks, &w->packed_zeros, &w->zeros_at,
                            err));
    DQ_TRY(prepare_form(call, w, w->qvalues, dq_pack_nbits_words, w->words, &w->packed, &w->words_at, err));
    return prepare_rows(call, w, err);
}

/* ---- A run --------------------------------------------------------------------------------------------- */

dq_status dq_weights_begin(const dq_op_call *call, const dq_weights *w, void *scratch, dq_error *err)
{
    char *base = scratch;
    if (!w->lengths) {
        dq_weight_form f = w->form;
        DQ_TRY(check_groups(call, w, err));
        make_sorted(base + w->sorted_at, call->in[w->group_idx], &f);
        f.sorted = (uint32_t *)(base + w->sorted_at);
        fill_lengths(&f, (uint32_t *)(base + w->lengths_at));
    }
    job j = job_of(call, w, scratch);
    size_t lines = w->form.matrices * strips_of(&w->form) * COLS * sizeof(float);
    if (!w->packed)
        dq_pack_nbits_words(memset(base + w->words_at, 0, lines * w->words), call->in[w->qvalues], &j.form);
    if (!w->packed_scales)
        dq_pack_nbits_scales(memset(base + w->scales_at, 0, lines * w->blocks), call->in[w->scales], &j.form);
    if (w->with_zeros && !w->packed_zeros)
        dq_pack_nbits_zeros(memset(base + w->zeros_at, 0, lines * w->blocks), call->in[w->zeros], &j.form);
    return DQ_OK;
}

/* ---- Few rows ------------------------------------------------------------------------------------------ */

static dq_weight_digits digits_of(const job *j, size_t row)
{
    dq_weight_digits d = {.factors = (float *)(void *)(j->digits + row * j->w->row_bytes)};
    d.totals = (int32_t *)(void *)(d.factors + DQ_WEIGHT_PARTS * j->word_count);
    d.digits = (int8_t *)(d.totals + DQ_WEIGHT_PARTS * j->word_count);
    return d;
}

/* The arrays of a dq_nbits_rounded of up to ROWS rows from row `first` on, a multiple of ROWS. */
static dq_weight_digits rounded_of(const job *j, size_t first, size_t *rows)
{
    const size_t left = dq_least(ROWS, j->rows - first);
    *rows = left == 1 ? 1 : (left + SIDE - 1) / SIDE * SIDE;
    dq_weight_digits d = {.digits = (int8_t *)j->digits + first * j->w->row_bytes};
    const size_t pieces = *rows * j->w->pieces, bytes = pieces * DQ_NBITS_ROUNDED_BYTES(j->form.bits);
    d.factors = (float *)(void *)(d.digits + bytes);
    d.sums = d.factors + pieces;
    d.starts = (int32_t *)(void *)(d.sums + pieces);
    return d;
}

static bool pack_row(const job *j, const float *x, size_t i)
{
    const dq_weight_row row = {x, j->lengths, j->blocks, fields_of(&j->form)};
    if (!j->w->rounded)
        return dq_weight_digits_make(&row, digits_of(j, i));
    size_t in_group = i % ROWS, rows;
    dq_weight_digits to = rounded_of(j, i - in_group, &rows);
    to.factors += in_group;
    to.sums += in_group;
    to.starts += in_group;
    to.digits += DQ_NBITS_ROUNDED_BYTES(j->form.bits) * in_group;
    return dq_weight_digits_round(j->call->kernels, &row, rows,
                                  has_one_zero(j->w) ? (int32_t)j->w->middle : 0, to);
}

/* Packs a row of x in the order of the weights; each group is padded with zeros to whole words. */
static void lay_out(const job *j, const float *from, float *x)
{
    const dq_weight_form *f = &j->form;
    size_t fields = fields_of(f);
    for (piece p = {0}; next_piece(f, &p);) {
        size_t whole = words_of(f, &p) * fields;
        for (size_t i = 0; f->sorted && i < p.count; i++)
            x[i] = from[f->sorted[p.begin + i]];
        if (!f->sorted)
            memcpy(x, from + p.begin, p.count * sizeof *x);
        memset(x + p.count, 0, (whole - p.count) * sizeof *x);
        x += whole;
    }
}

static void pack_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    float *row = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i++) {
        const float *x = j->rows_at ? j->rows_at + i * j->pitch : j->x + i * j->pitch;
        if (!j->rows_at) {
            j->ends->load(j->ends->arg, j->first + i, row);
            lay_out(j, row, j->x + i * j->pitch);
        }
        if (j->as_integers)
            j->needs_float[i] = !pack_row(j, x, i);
    }
}

static void run_strips(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    float y[COLS];
    for (size_t strip = begin; strip < end; strip++) {
        dq_nbits b = strip_of(j, j->strip + strip);
        for (size_t i = 0; i < j->rows; i++) {
            dq_weight_digits from = digits_of(j, i);
            dq_nbits_row x = {from.digits, from.factors, from.totals};
            if (j->needs_float[i])
                continue;
            j->call->kernels->nbits_s32(&b, &x, y);
            j->ends->store(j->ends->arg, j->first + i, strip * COLS, 1,
                           dq_least(COLS, j->form.n - strip * COLS), y, COLS);
        }
    }
}

static void run_rounded(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    _Alignas(DQ_ALIGN) float y[ROWS * COLS];
    for (size_t strip = begin; strip < end; strip++) {
        dq_nbits b = strip_of(j, j->strip + strip);
        for (size_t i = 0; i < j->rows; i += ROWS) {
            size_t rows;
            dq_weight_digits from = rounded_of(j, i, &rows);
            const dq_nbits_rounded x = {.rows = rows,
                                        .digits = from.digits,
                                        .factors = from.factors,
                                        .sums = from.sums,
                                        .starts = has_one_zero(j->w) ? from.starts : NULL};
            j->call->kernels->nbits_s8(&b, &x, y);
            j->ends->store(j->ends->arg, j->first + i, strip * COLS, dq_least(ROWS, j->rows - i),
                           dq_least(COLS, j->form.n - strip * COLS), y, COLS);
        }
    }
}

static void multiply_digits(job *j)
{
    size_t products = j->rows * COLS * (j->form.k + 1);
    dq_parallel(j->call->threads, strips_of(&j->form), dq_gemm_s8_grain(products),
                j->w->rounded ? run_rounded : run_strips, j);
    for (size_t i = 0; i < j->rows; i++)
        if (j->needs_float[i])
            multiply_floats(j, i, 1);
}

void dq_weights_run(const dq_op_call *call, const dq_weights *w, void *scratch, size_t matrix, size_t m,
                    const dq_weights_io *ends)
{
    job j = job_of(call, w, scratch);
    j.strip = matrix * strips_of(&w->form);
    j.ends = ends;
    j.as_integers = w->rounded || m <= w->max_integer_rows;
    bool in_place = ends->x && !j.form.sorted && j.pitch == w->form.k;
    for (; j.first < m; j.first += CHUNK) {
        j.rows = dq_least(CHUNK, m - j.first);
        j.rows_at = in_place ? ends->x + j.first * j.pitch : NULL;
        if (j.as_integers || !in_place)
            dq_parallel(call->threads, j.rows, dq_gemm_s8_grain(w->form.k + 1), pack_rows, &j);
        if (j.as_integers)
            multiply_digits(&j);
        else
            multiply_floats(&j, 0, j.rows);
    }
}
