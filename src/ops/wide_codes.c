#include "ops/wide_codes.h"

#include "base/checked.h"

#include <string.h>

enum { ALIGN = 64 };

static int32_t middle_of(dq_dtype dtype)
{
    return dtype == DQ_UINT16 ? 32768 : dtype == DQ_UINT8 ? 128 : 0;
}

int64_t dq_wcodes_zero(const dq_tensor *zero, size_t at)
{
    return dq_tensor_get_int(zero, zero->count == 1 ? 0 : at) - middle_of(zero->dtype);
}

#define LOAD(S, middle)                                                                                      \
    for (size_t i = 0; i < n; i++)                                                                           \
        to[i] = (int16_t)(((const S *)data)[first + i] - (middle));

void dq_wcodes_load(dq_dtype dtype, const void *data, size_t first, size_t n, int16_t *to)
{
    if (dtype == DQ_UINT16)
        LOAD(uint16_t, 32768)
    else if (dtype == DQ_INT16)
        LOAD(int16_t, 0)
    else if (dtype == DQ_UINT8)
        LOAD(uint8_t, 128)
    else
        LOAD(int8_t, 0)
}

void dq_wcodes_store(dq_dtype dtype, void *data, size_t first, size_t n, const int32_t *from)
{
    if (dtype == DQ_UINT16 || dtype == DQ_INT16)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)data)[first + i] = (uint16_t)from[i];
    else
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)data)[first + i] = (uint8_t)from[i];
}

/* ---- Packing --------------------------------------------------------------------------------------------
 */

static size_t plane_size(const dq_wcodes *w)
{
    return w->pairs * w->lanes * 2;
}

static size_t sums_at(const dq_wcodes *w)
{
    size_t codes = w->matrices * w->panels * w->planes * plane_size(w);
    return (codes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Codes number p of `count` vectors, the first of which begins at `first`. */
static void load_lanes(const dq_wcodes *w, const dq_tensor *from, size_t first, size_t p, size_t count,
                       int16_t *to)
{
    size_t at = first + p / w->inner * w->outer_step + p % w->inner * w->inner_step;
    if (w->lane_step == 1)
        dq_wcodes_load(from->dtype, from->data, at, count, to);
    else
        for (size_t i = 0; i < count; i++)
            dq_wcodes_load(from->dtype, from->data, at + i * w->lane_step, 1, to + i);
}

/* A panel of `count` vectors, and their sums. */
static void make_panel(const dq_wcodes *w, const dq_tensor *from, size_t first, size_t count, int8_t *to,
                       int64_t *sums)
{
    for (size_t p = 0; p < w->k; p++) {
        int8_t *out = to + p / 2 * w->lanes * 2 + p % 2;
        int16_t codes[DQ_WGEMM_COLS];
        load_lanes(w, from, first, p, count, codes);
        for (size_t i = 0; i < count; i++)
            sums[i] += codes[i];
        if (w->planes == 1) {
            for (size_t i = 0; i < count; i++)
                out[2 * i] = (int8_t)codes[i];
            continue;
        }
        for (size_t i = 0; i < count; i++) { /* code = 256 * first plane + second plane + DQ_WCODES_EXTRA */
            int low = codes[i] & 255;
            out[2 * i] = (int8_t)((codes[i] - low) / 256);
            out[2 * i + plane_size(w)] = (int8_t)(low - DQ_WCODES_EXTRA);
        }
    }
}

static void make(void *packed, const dq_tensor *from, const void *key)
{
    const dq_wcodes *w = key;
    int64_t *sums = (int64_t *)(void *)((char *)packed + sums_at(w));
    for (size_t i = 0; i < w->matrices * w->panels; i++) {
        size_t first = i % w->panels * w->lanes, left = w->n - first;
        make_panel(w, from, i / w->panels * w->matrix_step + first * w->lane_step,
                   left < w->lanes ? left : w->lanes, (int8_t *)packed + i * w->planes * plane_size(w),
                   sums + i * w->lanes);
    }
}

dq_status dq_wcodes_prepare(dq_op_call *call, dq_wcodes *w, dq_error *err)
{
    size_t lanes, bytes, sums;
    w->planes = dq_dtype_get(call->in[w->input]->dtype)->bits / 8u;
    w->panels = w->n / w->lanes + (w->n % w->lanes != 0);
    w->pairs = w->k / 2 + w->k % 2;
    w->inner = w->inner ? w->inner : 1;
    w->packed = NULL;
    if (!dq_mul_size(w->matrices * w->planes, w->panels * w->lanes, &lanes) ||
        !dq_mul_size(lanes, w->pairs * 2, &bytes) || !dq_align_size(bytes, ALIGN, &bytes) ||
        !dq_mul_size(lanes, sizeof(int64_t), &sums) || !dq_add_size(bytes, sums, &bytes) ||
        !dq_align_size(bytes, ALIGN, &w->size))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    if (!dq_call_constant(call, w->input))
        return DQ_OK;
    dq_wcodes key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.input = w->input;
    key.lanes = w->lanes;
    key.matrices = w->matrices;
    key.n = w->n;
    key.k = w->k;
    key.matrix_step = w->matrix_step;
    key.lane_step = w->lane_step;
    key.outer_step = w->outer_step;
    key.inner_step = w->inner_step;
    key.inner = w->inner;
    key.planes = w->planes;
    key.panels = w->panels;
    key.pairs = w->pairs;
    return dq_call_pack(call, w->input, make, &key, sizeof key, w->size, &w->packed, err);
}

void dq_wcodes_pack(const dq_op_call *call, const dq_wcodes *w, void *to)
{
    memset(to, 0, w->size);
    make(to, call->in[w->input], w);
}

/* ---- Products -------------------------------------------------------------------------------------------
 */

void dq_wcodes_expand(const dq_wcodes *w, const void *packed, size_t matrix, size_t panel, int16_t *to)
{
    size_t n = dq_wcodes_panel(w);
    const int8_t *from = (const int8_t *)packed + (matrix * w->panels + panel) * n;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

const int64_t *dq_wcodes_sums(const dq_wcodes *w, const void *packed, size_t matrix)
{
    const void *sums = (const char *)packed + sums_at(w);
    return (const int64_t *)sums + matrix * w->panels * w->lanes;
}

void dq_wcodes_tile(const dq_kernels *kernels, const dq_wcodes *w, const int16_t *codes, const int16_t *x,
                    double *c)
{
    enum { TILE = DQ_WGEMM_ROWS * DQ_WGEMM_COLS };
    memset(c, 0, TILE * sizeof *c);
    for (size_t plane = 0; plane < w->planes; plane++, codes += plane_size(w)) {
        for (size_t i = 0; plane > 0 && i < TILE; i++)
            c[i] *= 256;
        if (w->lanes == DQ_WGEMM_ROWS)
            kernels->wgemm(codes, x, w->pairs, c);
        else
            kernels->wgemm(x, codes, w->pairs, c);
    }
}
