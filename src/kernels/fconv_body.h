/* dq_fconv_plane_fn and dq_fevery_fn over the vector that a vec_<isa>.h defines: included once by the file of
 * each ISA, after that header. The last vectors may go on behind the last result. */
#include "kernels/fproduct.h"

#include <stdbool.h>
#include <string.h>

enum { FCONV_VECTORS = 4, FCONV_TAPS = 9 /* of the usual kernel, 3x3 */ };

static inline void fconv_begin(const dq_fconv *f, size_t at, vf sum[FCONV_VECTORS])
{
    for (int v = 0; v < FCONV_VECTORS; v++)
        sum[v] = f->more ? vf_load(f->y + at + v * VF_LANES) : vf_set(0.0f);
}

static inline void fconv_step(vf factor, const float *x, vf sum[FCONV_VECTORS])
{
    for (int v = 0; v < FCONV_VECTORS; v++)
        sum[v] = vf_fma(factor, vf_load(x + v * VF_LANES), sum[v]);
}

static inline void fconv_end(const dq_fconv *f, size_t at, vf sum[FCONV_VECTORS])
{
    const vf bias = vf_set(f->bias), low = vf_set(f->low), high = vf_set(f->high);
    for (int v = 0; v < FCONV_VECTORS && f->last; v++) {
        vf x = vf_add(sum[v], bias);
        x = vf_pick(vf_less(x, low), low, x);
        sum[v] = vf_pick(vf_less(high, x), high, x);
    }
    for (int v = 0; v < FCONV_VECTORS; v++)
        vf_store(f->y + at + v * VF_LANES, sum[v]);
}

/* The kernel stays in registers. */
static void fconv_nine(const dq_fconv *f)
{
    vf factor[FCONV_TAPS], sum[FCONV_VECTORS];
    const float *x[FCONV_TAPS];
    for (int t = 0; t < FCONV_TAPS; t++) {
        factor[t] = vf_set(f->w[t]);
        x[t] = f->x + f->offsets[t];
    }
    for (size_t at = 0; at < f->n; at += FCONV_VECTORS * VF_LANES) {
        fconv_begin(f, at, sum);
        for (int t = 0; t < FCONV_TAPS; t++)
            fconv_step(factor[t], x[t] + at, sum);
        fconv_end(f, at, sum);
    }
}

static void fconv_plane(const dq_fconv *f)
{
    vf sum[FCONV_VECTORS];
    if (f->taps == FCONV_TAPS) {
        fconv_nine(f);
        return;
    }
    for (size_t at = 0; at < f->n; at += FCONV_VECTORS * VF_LANES) {
        fconv_begin(f, at, sum);
        for (size_t t = 0; t < f->taps; t++)
            fconv_step(vf_set(f->w[t]), f->x + f->offsets[t] + at, sum);
        fconv_end(f, at, sum);
    }
}

/* Fewer than a vector, next to each other. */
static inline void fevery_few(const float *x, size_t n, float *y)
{
    enum { FOUR = 4 };
    if (n > FOUR)
        memcpy(y, x, FOUR * sizeof *y);
    if (n >= FOUR) {
        memcpy(y + n - FOUR, x + n - FOUR, FOUR * sizeof *y);
        return;
    }
    if (n > 1)
        memcpy(y, x, 2 * sizeof *y);
    if (n % 2)
        y[n - 1] = x[n - 1];
}

/* The last vector covers elements once more. */
static inline void fevery_row(const float *x, size_t step, size_t n, float *y)
{
    size_t i = 0;
    bool vectors = n >= VF_LANES && step <= 2;
    for (; vectors && i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, step == 1 ? vf_load(x + i) : vf_load_even(x + 2 * i));
    if (vectors && i < n) {
        i = n - VF_LANES;
        vf_store(y + i, step == 1 ? vf_load(x + i) : vf_load_even(x + 2 * i));
    } else if (!vectors && step == 1 && n < 8) {
        fevery_few(x, n, y);
    } else {
        for (; i < n; i++)
            y[i] = x[i * step];
    }
}

static void fevery(const float *x, size_t x_row, size_t step, size_t rows, size_t n, float *y, size_t y_row)
{
    for (; rows; rows--, x += x_row, y += y_row)
        fevery_row(x, step, n, y);
}
