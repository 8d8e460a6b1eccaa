/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the members dots and mix_heads of dq_rows_f32, for several heads that read the same rows.
 * Included by float_rows_body.h. A register tile holds several rows or columns of several heads, so that a
 * loaded vector serves all of them. Its rows are prefetched while earlier ones are used: the hardware
 * prefetcher does not overlap memory with that much work per row. */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum {
    LINE_FLOATS = 64 / sizeof(float),
    MAX_ROWS = 4,
    MAX_HEADS = 4,
    TILE_ROWS = VF_LANES == 16 ? 4 : 2, /* of a tile of MAX_HEADS heads in dots */
    TILE_PARTS = VF_LANES == 1 ? PARTS : 1,
    MAX_VECTORS = 8,
    TILE_VECTORS = VF_LANES == 16 ? 16 : 8, /* sums of a tile of some heads in mix_heads */
    COLUMNS_OF_MAX = TILE_VECTORS / MAX_HEADS * VF_LANES,
    COLUMNS_OF_TWO = TILE_VECTORS / 2 * VF_LANES,
    ROWS_PER_BLOCK = 32 /* stay in the L1 cache while all sums read them */
};

/* Elements to prefetch ahead: whole rows. */
static inline size_t elements_ahead(const dq_heads_f32 *s)
{
    return (s->distance / ((s->n + 1) * sizeof(float)) + 1) * s->row;
}

/* Adds `parts` vectors from p on of a group of 16 elements of `rows` rows and `heads` heads to their lanes.
 */
ALWAYS_INLINE void dots_group(const float *const row[MAX_ROWS], const float *const in[MAX_HEADS], size_t i,
                              int rows, int heads, int p, int parts, vf lane[MAX_HEADS][MAX_ROWS][PARTS])
{
#pragma GCC unroll 16
    for (int end = p + parts; p < end; p++) {
        vf right[MAX_ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            right[r] = vf_load(row[r] + i + p * VF_LANES);
#pragma GCC unroll 4
        for (int h = 0; h < heads; h++) {
            const vf left = vf_load(in[h] + i + p * VF_LANES);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                lane[h][r][p] = vf_fma(left, right[r], lane[h][r][p]);
        }
    }
}

/* Computes the dot products of `rows` rows from t on and `heads` heads from h on, `parts` of the vectors of a
 * group at a time. All three are constant in each call. Rows after the last one repeat row t. */
ALWAYS_INLINE void dots_tile(const dq_heads_f32 *s, size_t ahead, size_t t, size_t h, int rows, int heads,
                             int parts)
{
    const size_t whole = s->n / GROUP * GROUP;
    const float *row[MAX_ROWS], *in[MAX_HEADS];
    vf lane[MAX_HEADS][MAX_ROWS][PARTS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        row[r] = s->rows + (t + (size_t)r < s->count ? t + (size_t)r : t) * s->row;
#pragma GCC unroll 4
    for (int j = 0; j < heads; j++)
        in[j] = s->in + (h + (size_t)j) * s->in_head;
#pragma GCC unroll 16
    for (int p = 0; p < PARTS; p += parts) {
#pragma GCC unroll 4
        for (int j = 0; j < heads; j++)
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
                for (int part = p; part < p + parts; part++)
                    lane[j][r][part] = vf_set(0.0f);
        for (size_t i = 0; i < whole; i += GROUP) {
            if (p == 0)
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    __builtin_prefetch(row[r] + i + ahead);
            dots_group(row, in, i, rows, heads, p, parts, lane);
        }
    }
    if (whole < s->n) {
        float tails[MAX_ROWS + MAX_HEADS][2 * GROUP];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            row[r] = fill_up(row[r], whole, s->n, 0, tails[r]);
#pragma GCC unroll 4
        for (int j = 0; j < heads; j++)
            in[j] = fill_up(in[j], whole, s->n, 0, tails[MAX_ROWS + j]);
        dots_group(row, in, 0, rows, heads, 0, PARTS, lane);
    }
#pragma GCC unroll 4
    for (int j = 0; j < heads; j++)
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            if (t + (size_t)r < s->count)
                s->out[(h + (size_t)j) * s->out_head + t + (size_t)r] = fold_floats(lane[j][r]);
}

/* out[t] = the dot product of a and b + t * b_step, for t < count. */
static void dots_of_one(const float *a, const float *b, size_t b_step, size_t n, size_t count, float *out)
{
    enum { ROWS = 4 };
    float workspace[2 * GROUP], other[2 * GROUP];
    for (size_t t = 0; t < count; t += ROWS) {
        vf lane[ROWS][PARTS];
        const float *row[ROWS];
        for (size_t r = 0; r < ROWS; r++) {
            row[r] = b + (t + r < count ? t + r : t) * b_step;
            for (int p = 0; p < PARTS; p++)
                lane[r][p] = vf_set(0.0f);
        }
        for (size_t i = 0; i < n; i += GROUP) {
            const float *left = group_at(a, i, n, 0, workspace);
            for (size_t r = 0; r < ROWS; r++) {
                const float *right = group_at(row[r], i, n, 0, other);
                for (int p = 0; p < PARTS; p++)
                    lane[r][p] =
                        vf_fma(vf_load(left + p * VF_LANES), vf_load(right + p * VF_LANES), lane[r][p]);
            }
        }
        for (size_t r = 0; r < ROWS && t + r < count; r++)
            out[t + r] = fold_floats(lane[r]);
    }
}

static void dots(const dq_heads_f32 *s)
{
    const size_t ahead = elements_ahead(s), each = s->heads == 1 ? s->count : ROWS_PER_BLOCK;
    for (size_t t = 0, end; t < s->count; t = end) {
        size_t h = 0;
        end = s->count - t < each ? s->count : t + each;
        for (; h + MAX_HEADS <= s->heads; h += MAX_HEADS)
            for (size_t r = t; r < end; r += TILE_ROWS)
                dots_tile(s, h ? 0 : ahead, r, h, TILE_ROWS, MAX_HEADS, TILE_PARTS);
        for (; h < s->heads; h++)
            dots_of_one(s->in + h * s->in_head, s->rows + t * s->row, s->row, s->n, end - t,
                        s->out + h * s->out_head + t);
    }
}

/* Adds rows t … end - 1 to `vectors` vectors of the sums of `heads` heads, from column i on. */
ALWAYS_INLINE void mix_tile(const dq_heads_f32 *s, size_t t, size_t end, size_t h, size_t i, int heads,
                            int vectors)
{
    vf sum[MAX_HEADS][MAX_VECTORS];
    const float *row = s->rows + t * s->row + i, *in = s->in + h * s->in_head;
    float *out = s->out + h * s->out_head + i;
    const size_t ahead = h == 0 ? ROWS_PER_BLOCK * s->row : 0;
#pragma GCC unroll 4
    for (int j = 0; j < heads; j++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[j][v] = vf_load(out + (size_t)j * s->out_head + v * VF_LANES);
    for (; t < end; t++, row += s->row) {
        vf x[MAX_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            x[v] = vf_load(row + v * VF_LANES);
        for (int v = 0; v < vectors * VF_LANES; v += LINE_FLOATS)
            __builtin_prefetch(row + ahead + v);
#pragma GCC unroll 4
        for (int j = 0; j < heads; j++) {
            const vf w = vf_set(in[(size_t)j * s->in_head + t]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[j][v] = vf_fma(w, x[v], sum[j][v]);
        }
    }
#pragma GCC unroll 4
    for (int j = 0; j < heads; j++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            vf_store(out + (size_t)j * s->out_head + v * VF_LANES, sum[j][v]);
}

static void mix_heads(const dq_heads_f32 *s)
{
    const size_t each = s->heads == 1 ? 2 * ROWS_PER_BLOCK : ROWS_PER_BLOCK;
    for (size_t t = 0, end; t < s->count; t = end) {
        end = s->count - t < each ? s->count : t + each;
        for (size_t h = 0, heads; h < s->heads; h += heads) {
            size_t i = 0;
            heads = s->heads - h >= MAX_HEADS ? MAX_HEADS : s->heads - h >= 2 ? 2 : 1;
            for (; heads == MAX_HEADS && i + COLUMNS_OF_MAX <= s->n; i += COLUMNS_OF_MAX)
                mix_tile(s, t, end, h, i, MAX_HEADS, TILE_VECTORS / MAX_HEADS);
            for (; heads == 2 && i + COLUMNS_OF_TWO <= s->n; i += COLUMNS_OF_TWO)
                mix_tile(s, t, end, h, i, 2, TILE_VECTORS / 2);
            for (size_t j = h; j < h + heads && i < s->n; j++)
                mix(s->in + j * s->in_head + t, end - t, s->rows + t * s->row + i, s->row, s->n - i,
                    s->out + j * s->out_head + i);
        }
    }
}
