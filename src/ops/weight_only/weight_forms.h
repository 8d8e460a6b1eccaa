/* SPDX-License-Identifier: Apache-2.0 */
/* Packed forms of weight-only operators: which quantization blocks follow one another, and the packers of
 * quantized values, scales and zero points. A form is [strip of COLS columns][line][column]. */
#ifndef DQ_OPS_WEIGHT_FORMS_H
#define DQ_OPS_WEIGHT_FORMS_H

#include "kernels/kernels.h"
#include "ops/weight_only/weight_only.h"

enum { COLS = DQ_NBITS_COLS };

/* A quantization block of a row: positions begin … begin + count - 1 in the order of multiplication. */
typedef struct piece {
    size_t group, begin, count;
} piece;

static inline size_t begin_of(const dq_weight_form *f, size_t group)
{
    return f->sorted ? f->sorted[f->k + group] : dq_least(group * f->block, f->k);
}

static inline bool next_piece(const dq_weight_form *f, piece *p)
{
    p->begin += p->count;
    while (p->begin == begin_of(f, p->group + 1))
        if (++p->group >= f->groups)
            return false;
    p->count = begin_of(f, p->group + 1) - p->begin;
    return true;
}

static inline size_t source_of(const dq_weight_form *f, size_t position)
{
    return f->sorted ? f->sorted[position] : position;
}

static inline size_t fields_of(const dq_weight_form *f)
{
    return 32 / f->bits;
}

/* Each block begins a new packed word. */
static inline size_t words_of(const dq_weight_form *f, const piece *p)
{
    return (p->count + fields_of(f) - 1) / fields_of(f);
}

static inline size_t strips_of(const dq_weight_form *f)
{
    return (f->n + COLS - 1) / COLS;
}

/** Packs a byte: whether float16 holds each scale of the tensor exactly. Its key does not matter. */
void dq_weights_make_fits_f16(void *packed, const dq_tensor *from, const void *key);

/** Whether all zero points are constant and equal; *zero is that zero point. */
bool dq_weights_same_zeros(const dq_op_call *call, const dq_weights *w, float *zero);

#endif
