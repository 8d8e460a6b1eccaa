/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolution with int32 accumulators, which ConvInteger, QLinearConv and their fused forms share.
 *
 * The input is first copied with padding (the zero point of x), so that the elements of a window have the
 * same offsets from its corner everywhere. Algorithms on the padded input:
 *   - channels last, each output position a row of an integer matrix product (gemm_s8.h) whose runs are the
 *     kernel's positions, or whole kernel rows when those are contiguous (dq_dwconv_rows_s8);
 *   - the same for kernels of 3×3 by fewer products, where kernels are faster so
 * (kernels/winograd/winograd.h);
 *   - channels four at a time, pixels side by side, for constant weights (kernels/conv_nc4hw4/nc4hw4.h),
 * where kernels are faster so;
 *   - groups of a single input channel (depthwise), where channels share nothing: plane by plane, by rows,
 *     or to codes at once where that is known to be exact; small planes many channels at once;
 *     or, where a tensor has channels last, many channels at once, pixel by pixel.
 * Each takes x, and gives the result, with channels first or last. */
#ifndef DQ_OPS_CONV_S8_H
#define DQ_OPS_CONV_S8_H

#include "ops/conv/conv_s8_algorithms.h"
#include "ops/conv/conv_shape.h"
#include "ops/conv/dwconv_nchwc.h"
#include "ops/matmul/gemm_s8_blocks.h"

/** A padded image, in bytes: rows of the last axis, each `width` pixels of `unit` channels. */
typedef struct dq_padded_input {
    size_t rank;
    size_t unit, width, rows, size;
    size_t extent[DQ_MAX_RANK]; /* of each axis, padding included, as far as windows reach */
    size_t step[DQ_MAX_RANK];   /* bytes to the next element on each axis */
    bool whole;  /* nothing padded or cut: rows are pieces of all pixels, the last one shorter */
    bool pixels; /* x has channels last, too: pixels are copied, not gathered from planes */
} dq_padded_input;

typedef struct dq_conv_s8 dq_conv_s8;

enum { DQ_CONV_S8_CHANNELS = DQ_GEMM_S8_NR_MAX }; /* of one dq_conv_sums, at most */

/** Sums of output channels channel … channel + channels - 1 of image `batch` at output positions first …
 * first + count - 1: that of position i and channel j is c[i * c_stride + j]. With more than one channel, c
 * can be read up to the next multiple of DQ_REQUANTIZE_COLS. `transposed`, only where the result has channels
 * last: it is c[j * c_stride + i], as dq_nc4hw4_store_fn takes it; and results go to `codes`, pixels
 * DQ_NC4HW4_OUTS apart, unless that is NULL. */
typedef struct dq_conv_sums {
    const dq_conv_s8 *conv;
    const dq_op_call *call;
    size_t batch, channel, channels, first, count, c_stride;
    bool transposed;
    uint8_t *qvalues;
    const int32_t *c;
} dq_conv_sums;
typedef void dq_conv_sums_fn(const dq_conv_sums *sums);
/** Writes them as they are: channels are rows of 32-bit elements, as far apart as planes of the result. */
void dq_conv_sums_transpose(const dq_conv_sums *sums, void *out);

/** What becomes of the sums of an output channel, for operators that make codes of them and nothing else;
 * to->out: where those of the first image are. `scale` is what to->scale then points to. False: it is not
 * known before a run. */
typedef bool dq_conv_requantize_params_fn(const dq_op_call *call, size_t channel, double *scale,
                                          dq_requantize_to *to);

/** How a depthwise convolution takes planes (conv_s8_depthwise.c). */
typedef struct dq_dwconv_planes {
    size_t pitch;       /* bytes of a row of the padded plane: whole strides */
    size_t steps;       /* pairs of a kernel row */
    size_t pairs;       /* of the kernel */
    size_t distance;    /* between the elements of a pair */
    size_t line, lines; /* pairs of a row; times that the plane is written as pairs */
    size_t shift;       /* one time: from the pairs of a step to those of the next */
    size_t reach;       /* rows below a window's first */
    size_t rows_per_store;
    size_t size, padded; /* bytes of a padded plane, and how many of them stand side by side */
    bool as_bytes;       /* a kernel of 3×3 takes the plane as it is (dq_dwconv_3x3_s8) */
    const void *
        *channels; /* of each output channel what dq_dwconv_requantize_s8 packed, or NULL; NULL: of none */
    size_t lines_offset;
    ptrdiff_t *sources; /* where in x's plane each row of the padded one begins; -1: all padding */
    size_t *corners;    /* the first row of each row of outputs */
} dq_dwconv_planes;

/** How tiles of outputs are shared out (conv_s8_winograd.c). */
typedef struct dq_conv_s8_winograd {
    size_t across, rows_per_task, tasks; /* tiles of a row; rows of a task; tasks of an image */
    size_t tiles, panels,
        channels;       /* tiles of a task; panels of output channels; input channels, rounded up */
    size_t sums_offset; /* of the packed weights: their sums, one an output channel */
    size_t v_offset, m_offset, y_offset; /* of a worker's scratch: transformed pixels, products, outputs */
} dq_conv_s8_winograd;

/** Images and tasks of convolutions with pixels side by side (conv_s8_nc4hw4.c). */
typedef struct dq_nc4hw4_way {
    bool linear;           /* 1×1, pixels one after the other: a single row, and a task copies its block's */
    bool by_rows;          /* a step is four neighbours in a kernel row, else one tap of four channels */
    size_t planes, steps;  /* of pixels of four bytes, of a group; steps of a window */
    size_t rows, width;    /* of results */
    bool every_row;        /* of x is stored; else one for each row of results */
    size_t stored;         /* rows of a plane */
    size_t stride, phases; /* along a row: between windows; sets of columns that are as far apart */
    size_t phase;          /* pixels of a set */
    size_t row, plane, image;          /* in bytes */
    size_t across, rows_per_task;      /* of a block: windows of a row, and rows */
    size_t blocks;                     /* of an image's group */
    size_t panels;                     /* of output channels of a group */
    size_t sums_offset, starts_offset; /* of the packed weights, whose last panel is ones */
    size_t c_stride, c_offset, pixel_sums_offset, block_offset, row_offset; /* of a worker's scratch */
    size_t results_offset; /* 0: results go at once where they belong */
    float *exact_scale; /* of each output channel what kernels/conv_nc4hw4/nc4hw4.h has of that name; NULL: 0
                           of all */
} dq_nc4hw4_way;

/** Where the rows of a matrix product are. */
typedef enum dq_dwconv_rows_s8 {
    DQ_CONV_S8_WINDOWS,    /* in the padded image */
    DQ_CONV_S8_GATHERED,   /* each block copies its windows from there, as their runs are short */
    DQ_CONV_S8_TRANSPOSED, /* 1×1: each block makes its pixels from the planes; there is no image */
    DQ_CONV_S8_PLACED      /* 1×1 of x with channels last: its pixels are rows; there is no image, either */
} dq_dwconv_rows_s8;

struct dq_conv_s8 {
    /* Set by the operator: inputs (past the node's: left out), and what becomes of sums. */
    uint32_t x, w, x_zero, w_zero, bias;
    bool x_last, y_last; /* channels of x and of the result */
    dq_conv_sums_fn *store;
    dq_conv_requantize_params_fn *qvalues; /* NULL: sums are wanted */
    size_t own; /* bytes a channel of the result, at the start of call->scratch, that are the operator's */
    /* Worked out: */
    dq_conv_shape s;
    dq_padded_input image;
    ptrdiff_t *offsets; /* of a window's runs from its corner in the image */
    const dq_algorithm *algorithm;
    bool image_signed;          /* bytes of padded images are int8, else uint8 */
    size_t images_offset, pass; /* of call->scratch, and how many images at a time; not of depthwise planes */
    /* matrix product */
    dq_qweights weights;
    const void *packed; /* NULL: made in each run at packed_offset of call->scratch */
    size_t packed_offset, columns_offset;
    size_t images_per_block, block_rows, blocks, chunk, chunks;
    dq_dwconv_rows_s8 rows;
    size_t runs, run, run_step; /* of a window in the image; kernel positions from one run to the next */
    dq_qscratch layout;
    /* depthwise: of a worker's scratch; with channels last, of call->scratch */
    size_t sums_offset, weights_offset;
    dq_dwconv_planes planes;
    dq_dwconv_nchwc nchwc;
    dq_conv_s8_winograd winograd;
    dq_nc4hw4_way nc4hw4;
};

/** Some images of the batch, padded. */
typedef struct dq_conv_s8_pass {
    const dq_op_call *call;
    const dq_conv_s8 *conv;
    const void *packed; /* weights, as the way wants them */
    dq_qblock columns;  /* init, zero and any_zero of all panels of all groups */
    uint8_t *images;
    size_t first, count; /* images of the batch */
} dq_conv_s8_pass;

/** Shapes and zero points: for infer, and first thing in prepare. */
dq_status dq_conv_s8_infer(const dq_op_call *call, dq_conv_s8 *conv, dq_error *err);
/** The rest of *conv, which stood in zeroed memory. Asks for scratch. */
dq_status dq_conv_s8_prepare(dq_op_call *call, dq_conv_s8 *conv, dq_error *err);
void dq_conv_s8_run(const dq_op_call *call, const dq_conv_s8 *conv);

/** One element of a zero point of 8-bit type: element `channel`, or the only one; 0 when left out. */
static inline int32_t dq_conv_s8_zero(const dq_op_call *call, uint32_t input, size_t channel)
{
    const dq_tensor *t = dq_call_in(call, input);
    if (!t)
        return 0;
    size_t i = t->count == 1 ? 0 : channel;
    return t->dtype == DQ_INT8 ? dq_data(t, int8_t)[i] : dq_data(t, uint8_t)[i];
}
static inline int32_t dq_conv_s8_bias(const dq_op_call *call, const dq_conv_s8 *conv, size_t channel)
{
    const dq_tensor *t = dq_call_in(call, conv->bias);
    return t ? dq_data(t, int32_t)[channel] : 0;
}

/* ---- Parts ------------------------------------------------------------------------------------------- */

/** Lays out an image of `unit` channels a pixel; false when its size does not fit. `pieces`: where nothing is
 * padded, rows may be pieces of any length. */
bool dq_padded_input_layout(const dq_conv_shape *s, size_t unit, bool pieces, dq_padded_input *image);
/** The distance of kernel position `t` (row-major over the kernel's axes) from a window's corner. */
ptrdiff_t dq_padded_input_offset(const dq_padded_input *image, const dq_window *w, size_t t);
/** The corner of the window of output position `p` (row-major). */
size_t dq_padded_input_corner(const dq_padded_input *image, const dq_window *w, size_t p);
/** Where in a plane of x row `row` of the padded image begins (not cut into pieces); false: all padding. */
bool dq_padded_input_source(const dq_padded_input *image, const dq_window *w, size_t row, size_t *at);
/** What a padded image is filled from: `unit` planes (or pixels) of one image, each byte ^ sign_xor. */
typedef struct dq_padded_input_fill {
    const dq_kernels *kernels;
    const dq_padded_input *image;
    const dq_conv_shape *s;
    const uint8_t *x;
    uint8_t sign_xor, pad; /* pad: as it stands in the image */
} dq_padded_input_fill;

/** Row `row` of the padded image. */
void dq_padded_input_row(const dq_padded_input_fill *fill, size_t row, uint8_t *out);
/** Of a whole image whose x has channels first: channels first … end - 1 of row `row`. */
void dq_padded_input_planes(const dq_padded_input_fill *fill, size_t row, size_t first, size_t end,
                            uint8_t *out);

/** What columns of sums begin with, those of a group `width` apart: the biases, and (zero not NULL) the zero
 * points of w as dq_gemm_s8_zero has them. What no output channel has stays 0. */
void dq_conv_s8_columns(const dq_op_call *call, const dq_conv_s8 *conv, size_t width, int32_t *init,
                        int32_t *zero);

/** How many images a pass takes: enough to share out, few enough to stay in the cache. */
size_t dq_conv_s8_images(const dq_conv_s8 *conv);

/** Offsets of a window's runs from its corner, `step` kernel positions from one to the next. */
dq_status dq_conv_s8_find_offsets(dq_op_call *call, dq_conv_s8 *conv, size_t runs, size_t step,
                                  dq_error *err);
/** What turns bytes of x into those of padded images. */
uint8_t dq_conv_s8_sign_xor(const dq_op_call *call, const dq_conv_s8 *conv);
/** Whether the rows of a matrix product are in padded images. */
bool dq_conv_s8_has_images(const dq_conv_s8 *conv);
/** Calls `run` for some images at a time, which `fill` copies with their padding first. */
void dq_conv_s8_passes(dq_conv_s8_pass *pass, bool fill, void (*run)(const dq_conv_s8_pass *pass));

/** Fills in what matrix products know of the weights; and into how many chunks the threads divide these,
 * SIZE_MAX when their size does not fit. */
void dq_conv_s8_gemm_describe(const dq_op_call *call, dq_conv_s8 *conv);
size_t dq_conv_s8_gemm_chunks(const dq_op_call *call, dq_conv_s8 *conv);

/** conv_s8_nc4hw4_images.c: all images of a pass; pixels first … first + n - 1 of an image's group, where way
 * is linear; bytes of a row of x with its padding, as far as windows of neighbours reach. */
void dq_conv_s8_nc4hw4_images(const dq_conv_s8_pass *pass);
void dq_conv_s8_nc4hw4_block(const dq_conv_s8_pass *pass, size_t image, size_t group, size_t first, size_t n,
                             uint8_t *out);
size_t dq_conv_s8_nc4hw4_row(const dq_conv_s8 *conv);

#endif
