/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the sums of quantized products: int32 accumulation is used only if no data can make it overflow.
 *
 * Let v = w - w_zero be the weights, and x in [low, high] the type's range minus the zero point, so that low
 * <= 0 <= high. A sum of x * v is between P * low - N * high and P * high - N * low. P is the sum of the
 * positive v, and N that of the magnitudes of the negative ones. Both bounds are attained, and an int32 bias
 * shifts both. Only the final sum must fit: kernels add modulo 2^32, so that intermediate overflows cancel.
 *
 * Most products need no pass over their weights: up to 33,025 terms always fit (255 * 255 each), and 65,793
 * with symmetric int8 weights. The others cost one pass. */
#include "rewrite/match.h"

#include <string.h>

typedef struct range {
    int64_t low, high;
} range;

/* The range of a type, minus a zero point. */
static range type_range(dq_dtype dtype, int64_t zero)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    return (range){row->min - zero, row->max - zero};
}

/* The union of the ranges for all zero points of a tensor. */
static range tensor_range(dq_dtype dtype, const dq_tensor *zero)
{
    range all = type_range(dtype, dq_match_zero_point(zero, 0));
    for (size_t i = 1; zero && i < zero->count; i++) {
        const range r = type_range(dtype, dq_match_zero_point(zero, i));
        all.low = r.low < all.low ? r.low : all.low;
        all.high = r.high > all.high ? r.high : all.high;
    }
    return all;
}

static int64_t largest_size(range r)
{
    return -r.low > r.high ? -r.low : r.high;
}

static int64_t bias_at(const dq_tensor *bias, size_t channel)
{
    return bias ? dq_data(bias, int32_t)[bias->count == 1 ? 0 : channel] : 0;
}

static int64_t largest_bias(const dq_tensor *bias)
{
    int64_t largest = 0;
    for (size_t i = 0; bias && i < bias->count; i++) {
        const int64_t size = bias_at(bias, i) < 0 ? -bias_at(bias, i) : bias_at(bias, i);
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Whether the sum of `terms` products of magnitude at most `each`, and a bias, is less than `limit`. */
static bool always_fits(size_t terms, int64_t each, int64_t bias, int64_t limit)
{
    return bias < limit && (each == 0 || terms <= (uint64_t)(limit - 1 - bias) / (uint64_t)each);
}

/* ---- The pass over the weights ------------------------------------------------------------------------ */

/* Sums of the positive v, and of the magnitudes of the negative ones. */
typedef struct sizes {
    uint64_t positive, negative;
} sizes;

enum { PIECE = 1 << 16 /* Weights whose sum of magnitudes fits in 32 bits: 255 each. */ };

/* Of contiguous weights. */
#define ADD_ROW(name, type)                                                                                  \
    static sizes name(const type *w, size_t n, int32_t zero)                                                 \
    {                                                                                                        \
        sizes all = {0};                                                                                     \
        for (size_t from = 0; from < n; from += PIECE) {                                                     \
            const size_t end = n - from < PIECE ? n : from + PIECE;                                          \
            uint32_t positive = 0, negative = 0;                                                             \
            for (size_t i = from; i < end; i++) {                                                            \
                const int32_t v = w[i] - zero;                                                               \
                positive += (uint32_t)(v > 0 ? v : 0);                                                       \
                negative += (uint32_t)(v < 0 ? -v : 0);                                                      \
            }                                                                                                \
            all.positive += positive;                                                                        \
            all.negative += negative;                                                                        \
        }                                                                                                    \
        return all;                                                                                          \
    }

/* Of the columns of a matrix, up to PIECE rows. */
#define ADD_COLUMNS(name, type)                                                                              \
    static void name(const type *w, size_t rows, size_t n, const int32_t *zero, uint32_t *restrict positive, \
                     uint32_t *restrict negative)                                                            \
    {                                                                                                        \
        for (size_t k = 0; k < rows; k++, w += n)                                                            \
            for (size_t j = 0; j < n; j++) {                                                                 \
                const int32_t v = w[j] - zero[j];                                                            \
                positive[j] += (uint32_t)(v > 0 ? v : 0);                                                    \
                negative[j] += (uint32_t)(v < 0 ? -v : 0);                                                   \
            }                                                                                                \
    }

ADD_ROW(add_row_u8, uint8_t)
ADD_ROW(add_row_s8, int8_t)
ADD_COLUMNS(add_columns_u8, uint8_t)
ADD_COLUMNS(add_columns_s8, int8_t)

/* The sum found so far that is furthest outside of int32, or nearest to its limits. */
typedef struct extreme {
    int64_t value, outside;
    size_t channel;
} extreme;
static const extreme nothing = {.outside = INT64_MIN};

static void compare(const dq_product_sums *s, range x, sizes v, size_t channel, extreme *most)
{
    const int64_t bias = bias_at(s->bias, channel), positive = (int64_t)v.positive,
                  negative = (int64_t)v.negative;
    const int64_t high = positive * x.high - negative * x.low + bias;
    const int64_t low = positive * x.low - negative * x.high + bias;
    const int64_t above = high - INT32_MAX, below = INT32_MIN - low;
    if (above > most->outside || below > most->outside)
        *most = above > below ? (extreme){high, above, channel} : (extreme){low, below, channel};
}

static extreme find_in_rows(const dq_product_sums *s, range x, size_t terms)
{
    extreme most = nothing;
    for (size_t c = 0; c < s->channels; c++) {
        const int32_t zero =
            (int32_t)dq_match_zero_point(s->w_zero, s->w_zero && s->w_zero->count > 1 ? c : 0);
        const uint8_t *w = (const uint8_t *)s->w->data + c * terms;
        compare(s, x,
                s->w->dtype == DQ_INT8 ? add_row_s8((const int8_t *)w, terms, zero)
                                       : add_row_u8(w, terms, zero),
                c, &most);
    }
    return most;
}

/* Accumulators of columns: two sums and a zero point per channel, and its total. */
typedef struct column_sums {
    uint32_t *positive, *negative;
    int32_t *zero;
    sizes *all;
} column_sums;

static extreme find_in_columns(const dq_product_sums *s, range x, size_t terms, const column_sums *workspace)
{
    const size_t n = s->channels;
    const uint8_t *w = s->w->data;
    extreme most = nothing;
    for (size_t c = 0; c < n; c++)
        workspace->zero[c] =
            (int32_t)dq_match_zero_point(s->w_zero, s->w_zero && s->w_zero->count > 1 ? c : 0);
    for (size_t left = s->w->count / n; left > 0; left -= terms) {
        memset(workspace->all, 0, n * sizeof *workspace->all);
        for (size_t k = 0, rows; k < terms; k += rows, w += rows * n) {
            rows = terms - k < PIECE ? terms - k : PIECE;
            memset(workspace->positive, 0, n * sizeof *workspace->positive);
            memset(workspace->negative, 0, n * sizeof *workspace->negative);
            if (s->w->dtype == DQ_INT8)
                add_columns_s8((const int8_t *)w, rows, n, workspace->zero, workspace->positive,
                               workspace->negative);
            else
                add_columns_u8(w, rows, n, workspace->zero, workspace->positive, workspace->negative);
            for (size_t c = 0; c < n; c++) {
                workspace->all[c].positive += workspace->positive[c];
                workspace->all[c].negative += workspace->negative[c];
            }
        }
        for (size_t c = 0; c < n; c++)
            compare(s, x, workspace->all[c], c, &most);
    }
    return most;
}

/* ---- The proofs --------------------------------------------------------------------------------------- */

static size_t terms_of(const dq_product_sums *s)
{
    return s->columns ? (size_t)s->w->dims[s->w->rank - 2] : s->w->count / s->channels;
}

bool dq_match_int32_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s,
                          const char *otherwise)
{
    if (s->channels == 0 || s->w->count == 0)
        return true;
    const size_t terms = terms_of(s), n = s->channels;
    const range x = tensor_range(s->x->dtype, s->x->zero_t), w = tensor_range(s->w->dtype, s->w_zero);
    if (always_fits(terms, largest_size(x) * largest_size(w), largest_bias(s->bias), (int64_t)INT32_MAX + 1))
        return true;
    extreme most;
    if (s->columns) {
        const column_sums workspace = {
            DQ_NEW_ARRAY(f->scratch, n, uint32_t), DQ_NEW_ARRAY(f->scratch, n, uint32_t),
            DQ_NEW_ARRAY(f->scratch, n, int32_t), DQ_NEW_ARRAY(f->scratch, n, sizes)};
        if (!workspace.positive || !workspace.negative || !workspace.zero || !workspace.all)
            return dq_rewriter_no_memory(f);
        most = find_in_columns(s, x, terms, &workspace);
    } else {
        most = find_in_rows(s, x, terms);
    }
    if (most.outside <= 0)
        return true;
    dq_rewriter_explain(f, node, "sums of channel %zu reach %lld, int32 holds %lld at most: %s", most.channel,
                        (long long)most.value, (long long)(most.value < 0 ? INT32_MIN : INT32_MAX),
                        otherwise);
    return false;
}

bool dq_match_double_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s)
{
    const int64_t limit = (int64_t)1 << 53;
    if (s->channels == 0 || s->w->count == 0)
        return true;
    const int64_t each = largest_size(tensor_range(s->x->dtype, s->x->zero_t)) *
                         largest_size(tensor_range(s->w->dtype, s->w_zero));
    if (always_fits(terms_of(s), each, 0, limit))
        return true;
    dq_rewriter_explain(
        f, node, "not fused: sums of %zu products up to %lld are not exact in double, which holds 2^53",
        terms_of(s), (long long)each);
    return false;
}
