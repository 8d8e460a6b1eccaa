/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero: coordinates of the non-zero elements. Compress: slices that a condition selects. The lengths of
 * both results depend on the data. */
#include "ops/element.h"
#include "ops/elementwise/cast.h"
#include "ops/rows.h"

/* ---- NonZero ------------------------------------------------------------------------------------------- */

static bool is_zero(const dq_tensor *t, size_t i)
{
    unsigned cls = dq_dtype_get(t->dtype)->cls;
    if (cls == DQ_CLASS_BOOL)
        return dq_data(t, uint8_t)[i] == 0;
    if (cls == DQ_CLASS_STRING)
        return dq_data(t, dq_string)[i].length == 0;
    if (cls == DQ_CLASS_COMPLEX) {
        size_t half = dq_dtype_get(t->dtype)->bits / 16u;
        const char *parts = (const char *)t->data + i * 2 * half;
        double re[2] = {0};
        for (int k = 0; k < 2; k++) {
            float single;
            if (half == sizeof single) {
                memcpy(&single, parts + (size_t)k * half, half);
                re[k] = (double)single;
            } else {
                memcpy(&re[k], parts + (size_t)k * half, half);
            }
        }
        return re[0] == 0 && re[1] == 0;
    }
    return cls == DQ_CLASS_FLOAT ? dq_tensor_get_double(t, i) == 0 : dq_tensor_get_int(t, i) == 0;
}

/* Sets some[i] to 1 for non-zero elements, else 0, for n <= DQ_ROW elements. Returns their number. */
static size_t find_some(const dq_op_call *call, size_t first, size_t n, uint8_t *some)
{
    const dq_tensor *t = call->in[0];
    const size_t width = dq_element_width(t->dtype);
    size_t sum = 0;
    if (t->dtype == DQ_BOOL)
        memcpy(some, dq_data(t, uint8_t) + first, n);
    else if (!width || !dq_cast_numbers(call->kernels, t->dtype, (const char *)t->data + first * width,
                                        DQ_BOOL, some, n))
        for (size_t i = 0; i < n; i++)
            some[i] = !is_zero(t, first + i);
    for (size_t i = 0; i < n; i++) {
        some[i] = some[i] != 0;
        sum += some[i];
    }
    return sum;
}

static dq_status non_zero_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    uint8_t some[DQ_ROW];
    DQ_TRY(dq_call_need(call, 0));
    int64_t dims[2] = {in->rank, 0};
    for (size_t i = 0; i < in->count; i += DQ_ROW)
        dims[1] += (int64_t)find_some(call, i, in->count - i < DQ_ROW ? in->count - i : DQ_ROW, some);
    return dq_call_output(call, 0, DQ_INT64, 2, dims, err);
}

/* Capacity for DQ_ROW positions; list_indices may read or write one word past the last. */
enum { PLACES = DQ_ROW + sizeof(uint64_t) };

/* Lists the positions, from `first` on, of the n <= DQ_ROW elements with a 1 in some[PLACES]; `sum` are set.
 */
static size_t list_indices(uint8_t *some, size_t n, size_t sum, size_t first, size_t *at)
{
    enum { RARE = 16 }; /* one element of this many is rare: all-zero words are then skipped */
    size_t count = 0;
    const bool rare = sum * RARE < n;
    memset(some + n, 0, sizeof(uint64_t));
    for (size_t j = 0; j < n; j += sizeof(uint64_t)) {
        uint64_t any;
        memcpy(&any, some + j, sizeof any);
        if (rare && !any)
            continue;
        for (size_t k = j; k < j + sizeof any; k++) { /* branchless: the branch would be unpredictable */
            at[count] = first + k;
            count += some[k];
        }
    }
    return count;
}

/* Lists the positions of the non-zero ones of n <= DQ_ROW elements from `first` on; returns their number. */
static size_t find_indices(const dq_op_call *call, size_t first, size_t n, size_t *at)
{
    uint8_t some[PLACES];
    const size_t sum = find_some(call, first, n, some);
    return list_indices(some, n, sum, first, at);
}

/* a / b. Coordinates usually fit in 32 bits, whose division is much faster on older processors. */
static size_t quotient(size_t a, size_t b)
{
    return a <= UINT32_MAX && b <= UINT32_MAX ? (uint32_t)a / (uint32_t)b : a / b;
}

/* Converts element numbers to coordinates in `out`, whose rows have n elements. */
static void store_indices(const dq_tensor *in, const size_t *at, size_t count, int64_t *out, size_t n)
{
    for (size_t j = 0; j < count && in->rank; j++) {
        size_t rest = at[j];
        for (size_t d = in->rank - 1; d > 0; d--) {
            const size_t dim = (size_t)in->dims[d], whole = quotient(rest, dim);
            out[d * n + j] = (int64_t)(rest - whole * dim);
            rest = whole;
        }
        out[j] = (int64_t)rest;
    }
}

/* The same for long rows, whose elements share all coordinates but the last. */
static void store_rows(const dq_op_call *call, int64_t *out, size_t n)
{
    const dq_tensor *in = call->in[0];
    size_t coord[DQ_MAX_RANK] = {0}, found = 0, last = in->rank - 1, row = (size_t)in->dims[last];
    for (size_t i = 0; i < in->count && found < n; i += row, dq_next_coord(last, in->dims, coord))
        for (size_t k = 0; k < row; k += DQ_ROW) {
            size_t at[PLACES];
            const size_t count = find_indices(call, i + k, row - k < DQ_ROW ? row - k : DQ_ROW, at);
            for (size_t d = 0; d < last; d++)
                for (size_t j = 0; j < count; j++)
                    out[d * n + found + j] = (int64_t)coord[d];
            for (size_t j = 0; j < count; j++)
                out[last * n + found + j] = (int64_t)(at[j] - i);
            found += count;
        }
}

static dq_status non_zero_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    enum { MIN_LONG_ROW = 32 };
    const dq_tensor *in = call->in[0];
    const size_t n = (size_t)call->out[0]->dims[1];
    int64_t *out = dq_data(call->out[0], int64_t);
    if (in->rank && in->dims[in->rank - 1] >= MIN_LONG_ROW) {
        store_rows(call, out, n);
        return DQ_OK;
    }
    for (size_t i = 0, found = 0; i < in->count && found < n; i += DQ_ROW) {
        size_t at[PLACES];
        const size_t count = find_indices(call, i, in->count - i < DQ_ROW ? in->count - i : DQ_ROW, at);
        store_indices(in, at, count, out + found, n);
        found += count;
    }
    return DQ_OK;
}

const dq_op_impl dq_op_non_zero = {non_zero_infer, NULL, non_zero_run, 0};

/* ---- Compress ------------------------------------------------------------------------------------------ */

/* Without an axis the input is flattened. */
static dq_status split(const dq_op_call *call, size_t *outer, size_t *n, size_t *inner, size_t *axis,
                       dq_error *err)
{
    const dq_tensor *in = call->in[0];
    *outer = *inner = 1;
    *n = in->count;
    *axis = DQ_MAX_RANK;
    if (!dq_node_attr(call->node, "axis"))
        return DQ_OK;
    DQ_TRY(dq_call_axis(call, 0, axis, err));
    *outer = dq_dims_product(in->dims, 0, *axis);
    *n = (size_t)in->dims[*axis];
    *inner = dq_dims_product(in->dims, *axis + 1, in->rank);
    return DQ_OK;
}

/* Number of the n slices that the condition covers. */
static size_t named(const dq_tensor *condition, size_t n)
{
    return n < condition->count ? n : condition->count;
}

static dq_status compress_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0], *condition = call->in[1];
    size_t outer, n, inner, axis;
    DQ_TRY(split(call, &outer, &n, &inner, &axis, err));
    if (condition->rank != 1)
        return dq_call_fail_input(call, err, 1, "has rank %u, expected 1", condition->rank);
    DQ_TRY(dq_call_need(call, 1));
    int64_t dims[DQ_MAX_RANK], kept = 0;
    for (size_t i = 0; i < named(condition, n); i++)
        kept += dq_data(condition, uint8_t)[i] != 0;
    for (size_t d = 0; d < in->rank; d++)
        dims[d] = d == axis ? kept : in->dims[d];
    return axis == DQ_MAX_RANK ? dq_call_output(call, 0, in->dtype, 1, &kept, err)
                               : dq_call_output(call, 0, in->dtype, in->rank, dims, err);
}

/* Lists the selected ones of `few` <= DQ_ROW slices from `first` on, as numbers from `number` on; returns how
 * many. */
static size_t list_selected(const dq_tensor *condition, size_t first, size_t few, size_t number, size_t *at)
{
    const uint8_t *selected = dq_data(condition, uint8_t) + first;
    uint8_t some[PLACES];
    size_t sum = 0;
    for (size_t i = 0; i < few; i++)
        sum += some[i] = selected[i] != 0;
    return list_indices(some, few, sum, number, at);
}

static dq_status compress_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0], *condition = call->in[1];
    dq_tensor *out = call->out[0];
    size_t outer, n, inner, axis, to = 0;
    DQ_TRY(split(call, &outer, &n, &inner, &axis, err));
    const size_t slice = dq_element_width(in->dtype) * inner, end = named(condition, n);
    for (size_t o = 0; o < outer && out->count; o++)
        for (size_t i = 0, few, count; i < end; i += few, to += count) {
            size_t at[PLACES];
            few = end - i < DQ_ROW ? end - i : DQ_ROW;
            count = list_selected(condition, i, few, o * n + i, at);
            if (slice)
                dq_gather_elements(slice, (char *)out->data + to * slice, in->data, at, count);
            for (size_t j = 0; j < count && !slice; j++)
                dq_copy_elements(in, at[j] * inner, out, (to + j) * inner, inner);
        }
    return DQ_OK;
}

const dq_op_impl dq_op_compress = {compress_infer, NULL, compress_run, 0};
