/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/weight_only/weight_forms.h"

#include "base/codec.h"
#include "ops/packers.h"

#include <math.h>
#include <string.h>

static uint32_t qvalue_at(const dq_weight_form *f, const uint8_t *qvalues, size_t i)
{
    size_t each = 8 / f->bits, position = f->high_first ? each - 1 - i % each : i % each;
    return qvalues[i / each] >> position * f->bits & ((1u << f->bits) - 1);
}

/* Packed word `word` of a piece of row `row` (counted over all matrices), the first value in the low bits. */
static uint32_t read_word(const dq_weight_form *f, const uint8_t *qvalues, size_t row, const piece *p,
                          size_t word)
{
    size_t fields = fields_of(f), first = p->begin + word * fields;
    size_t count = dq_least(fields, p->begin + p->count - first), at = row * f->n_stride + first;
    uint32_t value = 0;
    if (count == fields && !f->sorted && (f->bits == 8 || (f->k_stride == 1 && at * f->bits % 8 == 0))) {
        const size_t step = f->bits == 8 ? f->k_stride : 1;
        const uint8_t *b = qvalues + (f->bits == 8 ? at + first * (step - 1) : at / (8 / f->bits));
        value = b[0] | (uint32_t)b[step] << 8 | (uint32_t)b[2 * step] << 16 | (uint32_t)b[3 * step] << 24;
        return f->high_first ? (value & 0x0f0f0f0f) << 4 | (value >> 4 & 0x0f0f0f0f) : value;
    }
    for (size_t t = 0; t < count; t++)
        value |= qvalue_at(f, qvalues, row * f->n_stride + source_of(f, first + t) * f->k_stride)
                 << t * f->bits;
    return value;
}

void dq_pack_nbits_words(void *packed, const dq_tensor *from, const void *key)
{
    const dq_weight_form *f = key;
    uint32_t *to = packed;
    for (size_t s = 0; s < f->matrices * strips_of(f); s++) {
        size_t matrix = s / strips_of(f), col = s % strips_of(f) * COLS, cols = dq_least(COLS, f->n - col);
        for (piece p = {0}; next_piece(f, &p);)
            for (size_t word = 0; word < words_of(f, &p); word++, to += COLS)
                for (size_t j = 0; j < cols; j++)
                    to[j] = read_word(f, from->data, matrix * f->n + col + j, &p, word) ^ f->sign;
    }
}

static float scale_at(const dq_weight_form *f, const dq_tensor *from, size_t row, const piece *p)
{
    size_t qvalue = row * f->n_stride + source_of(f, p->begin) * f->k_stride;
    size_t position = row * f->scale_row + p->group * f->scale_block;
    return dq_tensor_get_float(from, f->scale_run ? qvalue / f->scale_run : position);
}

static float zero_at(const dq_weight_form *f, const dq_tensor *from, size_t row, const piece *p)
{
    const uint8_t *qvalues = from->data;
    const size_t position = row * f->scale_row + p->group * f->scale_block, highest = 1u << (f->bits - 1);
    if (f->zeros_as_scales)
        return (float)(dq_get_bits(qvalues, f->bits, position) ^ (f->sign ? highest : 0));
    if (from->dtype != DQ_UINT8)
        return dq_tensor_get_float(from, row * f->groups + p->group);
    if (f->zero_row)
        return (float)dq_get_bits(qvalues + row * f->zero_row, f->bits, p->group);
    return (float)dq_get_bits(qvalues + row / f->n * f->zero_matrix, f->bits, row % f->n);
}

typedef float float_at(const dq_weight_form *f, const dq_tensor *from, size_t row, const piece *p);

/* Packs scales or zero points, as float16 if `f16`. */
static void make_floats(void *to, const dq_tensor *from, const dq_weight_form *f, float_at *read, bool f16)
{
    size_t i = 0;
    for (size_t s = 0; s < f->matrices * strips_of(f); s++) {
        size_t matrix = s / strips_of(f), col = s % strips_of(f) * COLS, cols = dq_least(COLS, f->n - col);
        for (piece p = {0}; next_piece(f, &p); i += COLS)
            for (size_t j = 0; j < cols; j++) {
                const float value = read(f, from, matrix * f->n + col + j, &p);
                if (f16)
                    ((uint16_t *)to)[i + j] = dq_f32_to_f16(value);
                else
                    ((float *)to)[i + j] = value;
            }
    }
}

void dq_pack_nbits_scales(void *packed, const dq_tensor *from, const void *key)
{
    make_floats(packed, from, key, scale_at, ((const dq_weight_form *)key)->scales_f16);
}

/* Whether float16 holds a finite x exactly: it has at most 11 significant bits and is a multiple of 2^-24. */
static bool fits_f16(float x)
{
    const float units = x * 0x1p24f;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x1fff) == 0 && fabsf(x) <= 65504 && (float)(int64_t)units == units;
}

void dq_weights_make_fits_f16(void *packed, const dq_tensor *from, const void *key)
{
    const float *floats = from->dtype == DQ_FLOAT ? from->data : NULL;
    bool fits = true;
    (void)key;
    for (size_t i = 0; fits && i < from->count; i++)
        fits = fits_f16(floats ? floats[i] : dq_tensor_get_float(from, i));
    *(uint8_t *)packed = fits;
}

void dq_pack_nbits_zeros(void *packed, const dq_tensor *from, const void *key)
{
    make_floats(packed, from, key, zero_at, false);
}

bool dq_weights_same_zeros(const dq_op_call *call, const dq_weights *w, float *zero)
{
    const dq_weight_form *f = &w->form;
    const dq_tensor *zeros = call->in[w->zeros];
    if (!dq_call_constant(call, w->zeros) || zeros->count == 0)
        return false;
    piece p = {0};
    *zero = zero_at(f, zeros, 0, &p);
    for (size_t row = 0; row < f->matrices * f->n; row++)
        for (p.group = 0; p.group < f->groups; p.group++)
            if (!(zero_at(f, zeros, row, &p) == *zero))
                return false;
    return true;
}
