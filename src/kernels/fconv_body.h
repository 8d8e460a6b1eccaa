/* dq_fconv_plane_fn and dq_fevery_fn over the vector that a vec_<isa>.h defines: included once by the file of
 * each ISA, after that header. The last vectors may go on behind the last result. */
#include "kernels/fgate_body.h"
#include "kernels/fproduct.h"

#include <stdbool.h>
#include <string.h>

/* Vectors of sums at a time: as many as wait for each other's results, where registers hold them. */
enum { FCONV_MOST = 8, FCONV_LESS = 4 };

static inline __attribute__((always_inline)) void fconv_vectors(const dq_fconv *f, size_t at, int vectors)
{
    const vf bias = vf_set(f->bias), low = vf_set(f->low), high = vf_set(f->high);
    const float *x = f->x + at;
    float *y = f->y + at;
    vf sum[FCONV_MOST];
    for (int v = 0; v < vectors; v++)
        sum[v] = f->more ? vf_load(y + v * VF_LANES) : vf_set(0.0f);
    for (size_t t = 0; t < f->taps; t++) {
        const float *from = x + f->offsets[t];
        vf factor = vf_set(f->w[t]);
        for (int v = 0; v < vectors; v++)
            sum[v] = vf_fma(factor, vf_load(from + v * VF_LANES), sum[v]);
    }
    for (int v = 0; v < vectors && f->last; v++) {
        vf s = vf_add(sum[v], bias);
        s = vf_pick(vf_less(s, low), low, s);
        sum[v] = vf_pick(vf_less(high, s), high, s);
    }
    if (f->last && f->gate) {
        const fgate gate = fgate_of(f->gate);
        for (int v = 0; v < vectors; v++)
            sum[v] = fgate_any(&gate, sum[v]);
    }
    for (int v = 0; v < vectors; v++)
        vf_store(y + v * VF_LANES, sum[v]);
}

static void fconv_plane(const dq_fconv *f)
{
    size_t at = 0;
    for (; FCONV_MOST * VF_LANES <= DQ_FCONV_SLACK && at + FCONV_LESS * VF_LANES < f->n;
         at += FCONV_MOST * VF_LANES)
        fconv_vectors(f, at, FCONV_MOST);
    for (; at < f->n; at += FCONV_LESS * VF_LANES)
        fconv_vectors(f, at, FCONV_LESS);
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
