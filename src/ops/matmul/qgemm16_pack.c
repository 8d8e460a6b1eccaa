/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/qgemm16_pack.h"
#include "ops/packers.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

enum { NR = DQ_GEMM_S16_NR, MAX_PAIRS = 1 << 15 };

static int32_t middle_of(dq_dtype dtype)
{
    return dtype == DQ_UINT16 ? 32768 : dtype == DQ_UINT8 ? 128 : 0;
}

int64_t dq_qgemm16_zero(const dq_tensor *zero, size_t at)
{
    return dq_tensor_get_int(zero, zero->count == 1 ? 0 : at) - middle_of(zero->dtype);
}

#define LOAD(S, middle)                                                                                      \
    for (size_t i = 0; i < n; i++)                                                                           \
        to[i] = (int16_t)(((const S *)data)[first + i] - (middle));

void dq_qgemm16_load(dq_dtype dtype, const void *data, size_t first, size_t n, int16_t *restrict to)
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

__attribute__((noinline)) void dq_qgemm16_store(dq_dtype dtype, void *data, size_t first, size_t n,
                                                const uint16_t *from)
{
    if (dtype == DQ_UINT16 || dtype == DQ_INT16)
        memcpy((uint16_t *)data + first, from, n * sizeof *from);
    else
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)data)[first + i] = (uint8_t)from[i];
}

/* ---- Packing ------------------------------------------------------------------------------------------- */

static size_t width_of(const dq_qgemm16 *w)
{
    return w->planes; /* bytes of a quantized value: one plane for each 8 bits */
}

static size_t panel_qvalues(const dq_qgemm16 *w)
{
    return w->pairs * w->strip_width * 2;
}

static size_t sums_at(const dq_qgemm16 *w)
{
    size_t bytes = w->matrices * w->panels * panel_qvalues(w) * width_of(w);
    return (bytes + DQ_ALIGN - 1) / DQ_ALIGN * DQ_ALIGN;
}

/* Packs a panel of `count` vectors from element `first` on, and computes their sums. For 8-bit values it also
 * updates the largest sum of magnitudes.
 *
 * `pairs` packs up to MAX_PAIRS pairs of NR contiguous vectors. The compiler vectorizes it: so many values of
 * at most 2^15 in magnitude have 32-bit sums. */
#define MAKE_PANEL(name, S, D, middle)                                                                       \
    static __attribute__((noinline)) void name##_pairs(const S *restrict x, size_t step, size_t count,       \
                                                       D *restrict to, int64_t *restrict sums,               \
                                                       int64_t *restrict sizes)                              \
    {                                                                                                        \
        int32_t some[NR] = {0}, magnitudes[NR] = {0};                                                        \
        for (size_t p = 0; p < count; p++, x += 2 * step, to += 2 * NR)                                      \
            for (size_t i = 0; i < NR; i++) {                                                                \
                const D a = (D)(x[i] - (middle)), b = (D)(x[step + i] - (middle));                           \
                to[2 * i] = a;                                                                               \
                to[2 * i + 1] = b;                                                                           \
                some[i] += a + b;                                                                            \
                if (sizeof(S) == 1)                                                                          \
                    magnitudes[i] += (a < 0 ? -a : a) + (b < 0 ? -b : b);                                    \
            }                                                                                                \
        for (size_t i = 0; i < NR; i++) {                                                                    \
            sums[i] += some[i];                                                                              \
            sizes[i] += magnitudes[i];                                                                       \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static void name(const dq_qgemm16 *w, const void *data, size_t first, size_t count, void *packed,        \
                     int64_t *sums, int64_t *largest)                                                        \
    {                                                                                                        \
        const bool vectors = w->inner == 1 && w->lane_step == 1 && w->strip_width == NR && count == NR;      \
        const size_t pairs = vectors ? w->outer / 2 : 0;                                                     \
        int64_t sizes[NR] = {0};                                                                             \
        const S *from = (const S *)data + first;                                                             \
        D *to = packed;                                                                                      \
        for (size_t p = 0; p < pairs; p += MAX_PAIRS)                                                        \
            name##_pairs(from + 2 * p * w->outer_step, w->outer_step,                                        \
                         pairs - p < MAX_PAIRS ? pairs - p : MAX_PAIRS, to + 2 * p * NR, sums, sizes);       \
        for (size_t q = 2 * pairs; q < w->outer; q++)                                                        \
            for (size_t r = 0; r < w->inner; r++) {                                                          \
                const S *x = from + q * w->outer_step + r * w->inner_step;                                   \
                D *out = to + (q / 2 * w->inner + r) * w->strip_width * 2 + q % 2;                           \
                for (size_t i = 0; i < count; i++) {                                                         \
                    int32_t qvalue = x[i * w->lane_step] - (middle);                                         \
                    out[2 * i] = (D)qvalue;                                                                  \
                    sums[i] += qvalue;                                                                       \
                    if (sizeof(S) == 1)                                                                      \
                        sizes[i] += qvalue < 0 ? -qvalue : qvalue;                                           \
                }                                                                                            \
            }                                                                                                \
        for (size_t i = 0; i < count; i++)                                                                   \
            *largest = sizes[i] > *largest ? sizes[i] : *largest;                                            \
    }

MAKE_PANEL(make_u8, uint8_t, int8_t, 128)
MAKE_PANEL(make_s8, int8_t, int8_t, 0)
MAKE_PANEL(make_u16, uint16_t, int16_t, 32768)
MAKE_PANEL(make_s16, int16_t, int16_t, 0)

/* Packs the panels [begin, end) of all matrices, whose memory is zero, and updates the largest sum of
 * magnitudes.
 */
static void make_panels(const dq_qgemm16 *w, const dq_tensor *from, void *packed, size_t begin, size_t end,
                        int64_t *largest)
{
    int64_t *sums = (int64_t *)(void *)((char *)packed + sums_at(w));
    for (size_t i = begin; i < end; i++) {
        size_t lane = i % w->panels * w->strip_width, left = w->n - lane;
        size_t first = i / w->panels * w->matrix_step + lane * w->lane_step;
        (from->dtype == DQ_UINT8   ? make_u8
         : from->dtype == DQ_INT8  ? make_s8
         : from->dtype == DQ_INT16 ? make_s16
                                   : make_u16)(
            w, from->data, first, left < w->strip_width ? left : w->strip_width,
            (char *)packed + i * panel_qvalues(w) * width_of(w), sums + i * w->strip_width, largest);
    }
}

static int64_t *largest_at(const dq_qgemm16 *w, void *packed)
{
    return (int64_t *)(void *)((char *)packed + sums_at(w)) + w->matrices * w->panels * w->strip_width;
}

void dq_pack_gemm_s16(void *packed, const dq_tensor *from, const void *key)
{
    const dq_qgemm16 *w = key;
    make_panels(w, from, packed, 0, w->matrices * w->panels, largest_at(w, packed));
}

/* Packing in a run, shared between threads. */
typedef struct pack_job {
    const dq_qgemm16 *w;
    const dq_tensor *from;
    char *packed;
    _Atomic int64_t largest;
} pack_job;

static void pack_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    pack_job *j = arg;
    const size_t panel = panel_qvalues(j->w) * width_of(j->w), sums = j->w->strip_width * sizeof(int64_t);
    int64_t own = 0, largest = atomic_load_explicit(&j->largest, memory_order_relaxed);
    (void)worker;
    memset(j->packed + begin * panel, 0, (end - begin) * panel);
    memset(j->packed + sums_at(j->w) + begin * sums, 0, (end - begin) * sums);
    make_panels(j->w, j->from, j->packed, begin, end, &own);
    while (own > largest && !atomic_compare_exchange_weak_explicit(
                                &j->largest, &largest, own, memory_order_relaxed, memory_order_relaxed))
        ;
}

static const void *pack_in_run(const dq_op_call *call, const dq_qgemm16 *w)
{
    enum { ELEMENTS_PER_TASK = 4096 };
    pack_job j = {.w = w, .from = call->in[DQ_Q16_W], .packed = call->scratch};
    dq_parallel(call->threads, w->matrices * w->panels, ELEMENTS_PER_TASK / (panel_qvalues(w) + 1) + 1,
                pack_range, &j);
    *largest_at(w, j.packed) = atomic_load_explicit(&j.largest, memory_order_relaxed);
    return j.packed;
}

dq_status dq_qgemm16_prepare(dq_op_call *call, dq_qgemm16 *w, dq_error *err)
{
    size_t strip_width, bytes, sums;
    w->planes = dq_dtype_get(call->in[DQ_Q16_W]->dtype)->bits / 8u;
    w->panels = w->n / w->strip_width + (w->n % w->strip_width != 0);
    w->pairs = (w->outer / 2 + w->outer % 2) * w->inner;
    w->packed = NULL;
    if (!dq_mul_size(w->matrices, w->panels * w->strip_width, &strip_width) ||
        !dq_mul_size(strip_width * w->planes, w->pairs * 2, &bytes) ||
        !dq_align_size(bytes, DQ_ALIGN, &bytes) || !dq_add_size(strip_width, 1, &sums) ||
        !dq_mul_size(sums, sizeof(int64_t), &sums) || !dq_add_size(bytes, sums, &bytes) ||
        !dq_align_size(bytes, DQ_ALIGN, &w->size))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    if (!dq_call_constant(call, DQ_Q16_W)) {
        call->scratch_size = w->size;
        return DQ_OK;
    }
    dq_qgemm16 key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.strip_width = w->strip_width;
    key.matrices = w->matrices;
    key.n = w->n;
    key.outer = w->outer;
    key.inner = w->inner;
    key.matrix_step = w->matrix_step;
    key.lane_step = w->lane_step;
    key.outer_step = w->outer_step;
    key.inner_step = w->inner_step;
    key.planes = w->planes;
    key.panels = w->panels;
    key.pairs = w->pairs;
    return dq_call_pack_deferred(call, DQ_Q16_W, dq_pack_gemm_s16, &key, sizeof key, w->size, &w->packed,
                                 err);
}

/* ---- A run --------------------------------------------------------------------------------------------- */

/* The span follows from magnitudes: planes of 16-bit values, and 8-bit values minus a zero point, are within
 * ±256, plain 8-bit values within ±128. */
dq_qgemm16_run dq_qgemm16_begin(const dq_op_call *call, const dq_qgemm16 *w)
{
    enum { DEPTH_SYMMETRIC = 255, DEPTH_ASYMMETRIC = 127, SMALL = UINT16_MAX /* times 32768 */ };
    const dq_tensor *zero = call->in[DQ_Q16_W_ZERO];
    dq_qgemm16_run r = {.call = call, .w = w, .packed = w->packed, .symmetric = true};
    r.factor = dq_q16_factor(call);
    for (size_t i = 0; i < zero->count; i++)
        r.symmetric = r.symmetric && dq_qgemm16_zero(zero, i) == 0;
    r.span = w->planes == 1 && r.symmetric ? DEPTH_SYMMETRIC : DEPTH_ASYMMETRIC;
    if (!r.packed)
        r.packed = pack_in_run(call, w);
    const int64_t *sums = (const int64_t *)(const void *)((const char *)r.packed + sums_at(w));
    if (w->planes == 1 && r.symmetric && sums[w->matrices * w->panels * w->strip_width] <= SMALL)
        r.span = SIZE_MAX;
    return r;
}

static void widen(const int8_t *restrict from, size_t n, int16_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* Splits n values, minus the zero points of `each` in turn, into the plane of upper bytes and that of signed
 * lower ones. */
static inline __attribute__((always_inline)) void split_planes(const int16_t *restrict from,
                                                               const int32_t *restrict zeros, size_t n,
                                                               size_t each, int16_t *restrict to)
{
    for (size_t i = 0; i < n; i += each)
        for (size_t j = 0; j < each; j++) {
            const int32_t v = from[i + j] - zeros[j], high = (v + 128) >> 8;
            to[i + j] = (int16_t)high;
            to[n + i + j] = (int16_t)(v - 256 * high);
        }
}

void dq_qgemm16_expand(const dq_qgemm16_run *r, size_t matrix, size_t panel, int16_t *to)
{
    enum { MAX_COUNT = 2 * DQ_GEMM_S16_NR };
    const dq_qgemm16 *w = r->w;
    const dq_tensor *zero = r->call->in[DQ_Q16_W_ZERO];
    size_t n = panel_qvalues(w), each = 2 * w->strip_width, at = (matrix * w->panels + panel) * n;
    int32_t zeros[MAX_COUNT];
    if (w->planes == 1 && r->symmetric) {
        widen((const int8_t *)r->packed + at, n, to);
        return;
    }
    const int32_t first = (int32_t)dq_qgemm16_zero(zero, 0);
    for (size_t j = 0; j < each; j++) {
        const size_t lane = panel * w->strip_width + j / 2;
        zeros[j] = zero->count == 1 ? first
                   : lane < w->n    ? (int32_t)dq_qgemm16_zero(zero, matrix * w->n + lane)
                                    : 0;
    }
    if (w->planes == 1) {
        const int8_t *from = (const int8_t *)r->packed + at;
        for (size_t i = 0; i < n; i += each)
            for (size_t j = 0; j < each; j++)
                to[i + j] = (int16_t)(from[i + j] - zeros[j]);
        return;
    }
    const int16_t *from = (const int16_t *)r->packed + at;
    if (each == MAX_COUNT)
        split_planes(from, zeros, n, MAX_COUNT, to);
    else
        split_planes(from, zeros, n, each, to);
}

bool dq_q16_can_bytesplit(const dq_op_call *call, size_t depth)
{
    enum { MAX_COUNT = 1 << 16 /* products of up to 255 · 128 */ };
    const dq_tensor *zero = call->in[DQ_Q16_W_ZERO];
    const size_t bytes = dq_dtype_get(call->in[DQ_Q16_W]->dtype)->bits / 8u;
    if (depth == 0 || depth > MAX_COUNT / bytes || !dq_call_constant(call, DQ_Q16_W) ||
        !dq_call_constant(call, DQ_Q16_W_ZERO) || dq_dtype_get(call->in[DQ_Q16_X]->dtype)->bits != 16)
        return false;
    for (size_t i = 0; i < zero->count; i++)
        if (dq_qgemm16_zero(zero, i) != 0)
            return false;
    return true;
}

double dq_q16_factor(const dq_op_call *call)
{
    return (double)dq_node_float(call->node, "alpha", 1) *
           (double)dq_data(call->in[DQ_Q16_X_SCALE], float)[0];
}

/* The error of double arithmetic is below 2^-50 of the largest term: 2^17, because results beyond it
 * saturate, or a term that cancels (gemm_s16.h). An infinite or NaN scale makes the error infinite. */
static void raise_error(double offset, double scale, double added, dq_q16_terms *terms)
{
    const double error = (fabs(offset * scale) + fabs(added) + 0x1p17) * 0x1p-49;
    if (!(error <= terms->error))
        terms->error = error < (double)INFINITY ? error : (double)INFINITY;
}

static double y_scale_of(const dq_op_call *call)
{
    const dq_tensor *y_scale = dq_call_in(call, DQ_Q16_Y_SCALE);
    return y_scale ? (double)dq_data(y_scale, float)[0] : 1;
}

static double scale_of(const dq_op_call *call, double factor, size_t at)
{
    const dq_tensor *w_scale = call->in[DQ_Q16_W_SCALE];
    return factor * (double)dq_data(w_scale, float)[w_scale->count == 1 ? 0 : at] / y_scale_of(call);
}

static double added_of(const dq_op_call *call, size_t at)
{
    const dq_tensor *bias = dq_call_in(call, DQ_Q16_BIAS);
    return bias ? (double)dq_data(bias, float)[bias->count == 1 ? 0 : at] / y_scale_of(call) : 0;
}

void dq_q16_term(const dq_op_call *call, double factor, size_t at, double offset, size_t i,
                 dq_q16_terms *terms)
{
    const double scale = scale_of(call, factor, at), added = added_of(call, at);
    terms->offset[i] = offset;
    terms->scale[i] = scale;
    terms->shift[i] = offset * scale + added;
    raise_error(offset, scale, added, terms);
}

void dq_q16_terms_fill(const dq_op_call *call, double factor, size_t at, size_t n, dq_q16_terms *terms)
{
    const dq_tensor *bias = dq_call_in(call, DQ_Q16_BIAS);
    if (call->in[DQ_Q16_W_SCALE]->count != 1 || (bias && bias->count != 1)) {
        for (size_t i = 0; i < n; i++)
            dq_q16_term(call, factor, at + i, terms->offset[i], i, terms);
        return;
    }
    const double scale = scale_of(call, factor, 0), added = added_of(call, 0);
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(terms->offset[i]);
        largest = size > largest ? size : largest;
        terms->scale[i] = scale;
        terms->shift[i] = terms->offset[i] * scale + added;
    }
    raise_error(largest, scale, added, terms);
}

void dq_qgemm16_terms(const dq_qgemm16_run *r, size_t matrix, size_t first, size_t count, dq_q16_terms *terms)
{
    const dq_qgemm16 *w = r->w;
    const int64_t *sums = (const int64_t *)(const void *)((const char *)r->packed + sums_at(w)) +
                          matrix * w->panels * w->strip_width + first;
    const dq_tensor *zeros = r->call->in[DQ_Q16_W_ZERO];
    const int64_t x_zero = dq_qgemm16_zero(r->call->in[DQ_Q16_X_ZERO], 0), k = (int64_t)(w->outer * w->inner);
    int64_t zero = r->symmetric ? 0 : dq_qgemm16_zero(zeros, 0);
    for (size_t i = 0; i < count; i++) {
        if (!r->symmetric && zeros->count != 1)
            zero = dq_qgemm16_zero(zeros, matrix * w->n + first + i);
        terms->offset[i] = (double)(x_zero * (zero * k - sums[i]));
    }
    dq_q16_terms_fill(r->call, r->factor, matrix * w->n + first, count, terms);
}

void dq_q16_sums_by(const dq_op_call *call, double factor, const dq_q16_terms *terms, size_t i, size_t at,
                    dq_q16_sums *s)
{
    const dq_tensor *w_scale = call->in[DQ_Q16_W_SCALE], *y_scale = dq_call_in(call, DQ_Q16_Y_SCALE),
                    *bias = dq_call_in(call, DQ_Q16_BIAS);
    const size_t step = w_scale->count != 1;
    s->offset = terms->offset + i;
    s->scale = terms->scale + i;
    s->shift = terms->shift + i;
    s->error = terms->error;
    s->factors = (dq_factors){.a = factor, .b = dq_data(w_scale, float) + at * step, .b_step = step};
    s->factors.y = y_scale ? dq_data(y_scale, float) : NULL;
    s->c_step = bias && bias->count != 1;
    s->c = bias ? dq_data(bias, float) + at * s->c_step : NULL;
}

static void add(double *extra, const int32_t *sums, double factor, bool first)
{
    for (size_t i = 0; i < DQ_Q16_TILE; i++)
        extra[i] = (first ? 0 : extra[i]) + sums[i] * factor;
}

void dq_qgemm16_tiles(const dq_qgemm16_run *r, const int16_t *a, size_t a_step, size_t count,
                      const int16_t *const b[DQ_GEMM_S16_BLOCKS], const uint32_t *offsets, size_t blocks,
                      dq_q16_tiles *out)
{
    const dq_qgemm16 *w = r->w;
    bool rows = w->strip_width == DQ_GEMM_S16_ROWS;
    const int16_t *z[DQ_GEMM_S16_BLOCKS] = {b[0], b[blocks > 1 ? 1 : 0], b[blocks > 2 ? 2 : 0]};
    out->has_extra = false;
    out->has_high = w->planes == 2 && w->pairs <= r->span;
    for (size_t plane = 0; plane < w->planes; plane++) {
        bool low = plane + 1 == w->planes, more = true;
        for (size_t at = 0, n; more; at += n) {
            n = w->pairs - at < r->span ? w->pairs - at : r->span;
            more = at + n < w->pairs;
            for (size_t i = 0; i < count; i++) {
                r->call->kernels->gemm_s16(a + i * a_step + at * DQ_GEMM_S16_ROWS * 2, n, z, offsets + at,
                                           blocks, out->has_high && !low ? out->high[i] : out->sums[i]);
                if (!out->has_high && (more || !low))
                    add(out->extra[i], out->sums[i], low ? 1 : 256, !out->has_extra);
            }
            out->has_extra = !out->has_high && (out->has_extra || more || !low);
        }
        a += rows ? panel_qvalues(w) : 0;
        for (size_t o = 0; o < DQ_GEMM_S16_BLOCKS && !rows; o++)
            z[o] += panel_qvalues(w);
    }
}

/* The compensation of the zero point of vector `at`; `sum` is the sum of all elements of x. */
static double of_zeros(const dq_qgemm16_run *r, size_t at, int64_t sum)
{
    const dq_qgemm16 *w = r->w;
    return !r->symmetric && at < w->matrices * w->n
               ? (double)(-sum * dq_qgemm16_zero(r->call->in[DQ_Q16_W_ZERO], at))
               : 0;
}

void dq_qgemm16_row(const dq_qgemm16_run *r, size_t matrix, size_t panel, size_t panels, const int16_t *x,
                    dq_q16_tiles *out)
{
    enum { SPAN = 255 };
    const dq_qgemm16 *w = r->w;
    const int8_t *b[DQ_GEMM_S16_BLOCKS];
    int32_t sums[DQ_GEMM_S16_COLS];
    int64_t sum = 0;
    for (size_t o = 0; o < DQ_GEMM_S16_BLOCKS; o++)
        b[o] = (const int8_t *)r->packed +
               (matrix * w->panels + panel + (o < panels ? o : 0)) * panel_qvalues(w);
    for (size_t i = 0; i < 2 * w->pairs && !r->symmetric; i++)
        sum += x[i];
    for (size_t j = 0; j < DQ_GEMM_S16_COLS; j++) {
        out->sums[0][j] = 0;
        out->extra[0][j] = of_zeros(r, matrix * w->n + panel * w->strip_width + j, sum);
    }
    out->has_extra = true;
    out->has_high = false;
    for (size_t at = 0, n; at < w->pairs; at += n) {
        n = w->pairs - at < SPAN ? w->pairs - at : SPAN;
        r->call->kernels->gemv_s16s8(x + 2 * at, n, b, sums);
        for (size_t j = 0; j < DQ_GEMM_S16_COLS; j++)
            out->extra[0][j] += sums[j];
        for (size_t o = 0; o < DQ_GEMM_S16_BLOCKS; o++)
            b[o] += n * w->strip_width * 2;
    }
}

dq_q16_sums dq_qgemm16_sums(const dq_op_call *call)
{
    const dq_dtype_row *type = dq_dtype_get(call->out[0]->dtype);
    const dq_tensor *zero = dq_call_in(call, DQ_Q16_Y_ZERO);
    return (dq_q16_sums){.zero_point = zero ? (int32_t)dq_tensor_get_int(zero, 0) : 0,
                         .lo = (int32_t)type->min,
                         .hi = (int32_t)type->max};
}

static void put_floats(const dq_q16_sums *s, float *y)
{
    for (size_t i = 0; i < s->rows; i++)
        for (size_t j = 0; j < s->cols; j++) {
            const size_t at = i * s->stride + j, term = i * s->row_step + j * s->col_step;
            double total = s->sums[at] + (s->high ? 256.0 * s->high[at] : 0);
            total += s->extra ? s->extra[i * s->extra_stride + j] : 0;
            total = (total + s->offset[term]) * s->scale[term];
            y[i * s->out_stride + j] = (float)(total + (s->c ? (double)s->c[term * s->c_step] : 0));
        }
}

/* Requantizes to 8 bits by way of 16-bit results: some whole rows at a time, or a part of a row. */
static void put_bytes(const dq_kernels *k, const dq_q16_sums *s, dq_tensor *y, size_t at)
{
    enum { PIECE = 1024 };
    uint16_t qvalues[PIECE];
    for (size_t i = 0, rows = 1; i < s->rows; i += rows)
        for (size_t j = 0; j < s->cols; j += PIECE) {
            const size_t left = s->rows - i, some = PIECE / s->cols;
            dq_q16_sums part = dq_q16_rest(s, i, j);
            part.rows = rows = some == 0 ? 1 : some < left ? some : left;
            part.cols = part.out_stride = part.cols < PIECE ? part.cols : PIECE;
            k->requantize_s64(&part, qvalues);
            for (size_t r = 0; r < rows; r++)
                dq_qgemm16_store(y->dtype, y->data, at + (i + r) * s->out_stride + j, part.cols,
                                 qvalues + r * part.cols);
        }
}

void dq_qgemm16_put(const dq_op_call *call, const dq_q16_sums *s, size_t at)
{
    dq_tensor *y = call->out[0];
    if (y->dtype == DQ_FLOAT)
        put_floats(s, dq_data(y, float) + at);
    else if (dq_dtype_get(y->dtype)->bits == 16)
        call->kernels->requantize_s64(s, dq_data(y, uint16_t) + at);
    else
        put_bytes(call->kernels, s, y, at);
}

static size_t groups_of(const dq_qgemm16 *w, size_t group)
{
    return w->panels / group + (w->panels % group != 0);
}

dq_partition dq_qgemm16_cut(const dq_qgemm16 *w, const dq_threads *threads, size_t blocks, size_t group)
{
    return dq_threads_cut(threads, blocks, groups_of(w, group));
}

size_t dq_qgemm16_task(const dq_qgemm16 *w, const dq_partition *cut, size_t i, size_t group, size_t *panel,
                       size_t *end)
{
    size_t first, last;
    const size_t block = dq_partition_piece(cut, i, groups_of(w, group), &first, &last);
    *panel = first * group;
    *end = last * group < w->panels ? last * group : w->panels;
    return block;
}
