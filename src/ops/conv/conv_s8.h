/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolution with int32 accumulators, which ConvInteger, QLinearConv and their fused forms share.
 *
 * The input is first copied with its padding (the zero point of x), so that the elements of every window have
 * the same offsets from the window's corner. Algorithms on the padded input:
 *
 *   - gemm: NHWC. Each output position is a row of an integer GEMM (gemm_s8.h). The runs of a row are kernel
 *     positions, or whole kernel rows if those are contiguous (dq_conv_s8_row_source).
 *
 *   - winograd_2d: NHWC, for 3×3 kernels (kernels/winograd/winograd.h).
 *
 *   - nc4hw4: NC4HW4, for constant weights (kernels/conv_nc4hw4/nc4hw4.h).
 *
 *   - depthwise: one input channel per group. NCHW plane by plane, either through rows of sums or with fused
 *     requantization where that is exact; NCHWc for small planes; NHWC pixel by pixel, many channels at once.
 *
 * Each reads x and writes the output in NCHW or NHWC, as far as its is_applicable says. */
#ifndef DQ_OPS_CONV_S8_H
#define DQ_OPS_CONV_S8_H

#include "ops/conv/conv_s8_algorithms.h"
#include "ops/conv/conv_shape.h"
#include "ops/conv/dwconv_nchwc.h"
#include "ops/matmul/gemm_s8_blocks.h"

/** Layout of a padded image of bytes in NHWC: rows along the last axis, each of `width` pixels of `unit`
 * channels. */
typedef struct dq_padded_input {
    size_t rank;
    size_t unit, width, rows, size; /* size: bytes of the image */
    size_t extent[DQ_MAX_RANK];     /* padded length of each axis, as far as windows reach */
    size_t step[DQ_MAX_RANK];       /* stride of each axis, in bytes */
    bool whole;  /* neither padded nor cropped: rows split all pixels evenly, the last one may be shorter */
    bool pixels; /* x is NHWC: pixels are copied, not transposed from planes */
} dq_padded_input;

typedef struct dq_conv_s8 dq_conv_s8;

enum { DQ_CONV_S8_CHANNELS = DQ_GEMM_S8_NR_MAX }; /* maximum channels of one dq_conv_sums */

/** A tile of accumulators: output channels channel … channel + channels - 1 of image `batch` at output
 * positions first … first + count - 1.
 *
 * The sum of position i and channel j is c[i * c_stride + j]. With more than one channel, c is readable up to
 * the next multiple of DQ_REQUANTIZE_COLS.
 *
 * `transposed`, only for NHWC output: the sum is c[j * c_stride + i], as dq_nc4hw4_store_fn takes it. If
 * `codes` is not NULL, results go there with a stride of DQ_NC4HW4_OUTS between pixels. */
typedef struct dq_conv_sums {
    const dq_conv_s8 *conv;
    const dq_op_call *call;
    size_t batch, channel, channels, first, count, c_stride;
    bool transposed;
    uint8_t *qvalues;
    const int32_t *c;
} dq_conv_sums;
typedef void dq_conv_sums_fn(const dq_conv_sums *sums);
/** Writes the int32 sums unchanged to NCHW `out`: a row of 32-bit elements per channel, at the stride of the
 * output's planes. */
void dq_conv_sums_transpose(const dq_conv_sums *sums, void *out);

/** Gives the requantization parameters of output channel `channel`, for operators whose only output is the
 * requantized sums. *scale receives the multiplier, and to->scale points to it. Returns false if they are not
 * known before a run. */
typedef bool dq_conv_requantize_params_fn(const dq_op_call *call, size_t channel, double *scale,
                                          dq_requantize_to *to);

/** Layout of the planes of NCHW depthwise convolution (conv_s8_depthwise.c). */
typedef struct dq_dwconv_planes {
    size_t pitch;       /* stride between rows of the padded plane, in bytes: a multiple of the conv stride */
    size_t steps;       /* pairs of a kernel row */
    size_t pairs;       /* pairs of the kernel */
    size_t distance;    /* between the two elements of a pair, in pixels */
    size_t line, lines; /* pairs of a row; copies of the plane as pairs: 1 or `steps` */
    size_t shift;       /* if lines is 1: pairs between those of consecutive steps */
    size_t reach;       /* rows from the first to the last of a window */
    size_t rows_per_store; /* output rows per call of store */
    size_t size, padded;   /* bytes of a padded plane; padded planes held at a time */
    bool as_bytes;         /* a 3×3 kernel reads the padded plane itself (dq_dwconv_3x3_s8) */
    const void *
        *channels; /* by output channel: form packed by dq_dwconv_requantize_s8, or NULL; NULL: no channel */
    size_t lines_offset; /* of the pairs, in the worker scratch */
    ptrdiff_t *sources;  /* offset in x's plane of each row of the padded plane; -1: all padding */
    size_t *corners;     /* for each output row: first row of its windows in the padded plane */
} dq_dwconv_planes;

/** Tiling and tasks of Winograd convolution (conv_s8_winograd.c). */
typedef struct dq_conv_s8_winograd {
    size_t across, rows_per_task, tasks; /* tiles of a row; tile rows of a task; tasks of an image */
    size_t tiles, panels, channels; /* tiles of a task; panels of output channels; input channels, rounded up
                                       to DQ_WINOGRAD_STEP */
    size_t sums_offset;             /* in the packed weights: the sum of each output channel's weights */
    size_t v_offset, m_offset, y_offset; /* in the worker scratch: transformed pixels, products, outputs */
} dq_conv_s8_winograd;

/** Image layout and tasks of NC4HW4 convolution (conv_s8_nc4hw4.c). */
typedef struct dq_conv_s8_nc4hw4 {
    bool linear;  /* unpadded 1×1 at stride 1: the image is one row, and each task copies its block */
    bool by_rows; /* a step is four neighbors in a kernel row; else one kernel position of 4 channels */
    size_t planes, steps;              /* planes of 4-byte pixels of a group; steps of a window */
    size_t rows, width;                /* of the output */
    bool every_row;                    /* every row of x is stored; else one for each output row */
    size_t stored;                     /* rows of a plane */
    size_t stride, phases;             /* stride along a row; sets of columns, by column modulo the stride */
    size_t phase;                      /* pixels of such a set */
    size_t row, plane, image;          /* in bytes */
    size_t across, rows_per_task;      /* of a task's block: windows of a row, and rows */
    size_t blocks;                     /* blocks of an image's group */
    size_t panels;                     /* panels of output channels of a group */
    size_t sums_offset, starts_offset; /* in the packed weights: weight sums; panel offsets. A panel of ones
                                          is the last one */
    size_t c_stride, c_offset, pixel_sums_offset, block_offset, row_offset; /* in the worker scratch */
    size_t results_offset; /* in the worker scratch: quantized results before transposition; 0: none */
    float *exact_scale;    /* exact scale of each output channel (dq_nc4hw4_exact_scale_fn); NULL: none */
} dq_conv_s8_nc4hw4;

/** Source of the rows of the GEMM's A. */
typedef enum dq_conv_s8_row_source {
    DQ_CONV_S8_WINDOWS,    /* windows of the padded image, in place (indirect GEMM) */
    DQ_CONV_S8_GATHERED,   /* im2col: each block copies its windows, whose runs are short */
    DQ_CONV_S8_TRANSPOSED, /* 1×1, NCHW x: each block transposes its pixels; there is no padded image */
    DQ_CONV_S8_IN_PLACE    /* 1×1, NHWC x: the pixels of x are the rows; there is no padded image */
} dq_conv_s8_row_source;

struct dq_conv_s8 {
    /* Set by the operator: indices of inputs (one past the node's inputs: absent), and use of the sums. */
    uint32_t x, w, x_zero, w_zero, bias;
    bool x_last, y_last; /* x and the output are NHWC */
    dq_conv_sums_fn *store;
    dq_conv_requantize_params_fn *qvalues; /* NULL: the operator uses the sums themselves */
    size_t own; /* bytes per output channel at the start of call->scratch, reserved for the operator */
    /* Set by dq_conv_s8_infer and dq_conv_s8_prepare: */
    dq_conv_shape s;
    dq_padded_input image;
    ptrdiff_t *offsets; /* offset of each run of a window (or step, or pair) from the window's corner */
    const dq_algorithm *algorithm;
    bool image_signed;          /* padded images are int8, else uint8 */
    size_t images_offset, pass; /* padded images in call->scratch; images per pass. Not NCHW depthwise */
    /* GEMM: */
    dq_qweights weights;
    const void *packed; /* weights; NULL: packed in each run at packed_offset of call->scratch */
    size_t packed_offset, columns_offset;
    size_t images_per_block, block_rows, blocks, chunk, chunks;
    dq_conv_s8_row_source rows;
    size_t runs, run, run_step; /* of a window: runs, bytes of a run, kernel positions between runs */
    dq_qscratch layout;
    /* Depthwise: offsets in the worker scratch; for NHWC in call->scratch. */
    size_t sums_offset, weights_offset;
    dq_dwconv_planes planes;
    dq_dwconv_nchwc nchwc;
    dq_conv_s8_winograd winograd;
    dq_conv_s8_nc4hw4 nc4hw4;
};

/** A pass: some images of the batch, padded. */
typedef struct dq_conv_s8_batch_tile {
    const dq_op_call *call;
    const dq_conv_s8 *conv;
    const void *packed; /* weights as the algorithm packs them */
    dq_qblock columns;  /* init, zero and any_zero for the panels of all groups */
    uint8_t *images;
    size_t first, count; /* range of images of the batch */
} dq_conv_s8_batch_tile;

/** Infers shapes and checks zero points and bias. Called in infer, and first in prepare. */
dq_status dq_conv_s8_infer(const dq_op_call *call, dq_conv_s8 *conv, dq_error *err);
/** Fills in the rest of *conv, zeroed by the caller: chooses the algorithm and reserves scratch. */
dq_status dq_conv_s8_prepare(dq_op_call *call, dq_conv_s8 *conv, dq_error *err);
void dq_conv_s8_run(const dq_op_call *call, const dq_conv_s8 *conv);

/** The 8-bit zero point of a channel: element `channel` of `input`, or its only element; 0 if absent. */
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

/* ---- Shared by the algorithms ------------------------------------------------------------------------ */

/** Computes the layout of an image of `unit` channels per pixel. `pieces`: an image without padding may be
 * `whole`. Returns false if the size overflows size_t. */
bool dq_padded_input_layout(const dq_conv_shape *s, size_t unit, bool pieces, dq_padded_input *image);
/** Offset of kernel position `t` (row-major over the kernel's axes) from a window's corner, in bytes. */
ptrdiff_t dq_padded_input_offset(const dq_padded_input *image, const dq_window *w, size_t t);
/** Offset of the corner of the window of output position `p` (row-major), in bytes. */
size_t dq_padded_input_corner(const dq_padded_input *image, const dq_window *w, size_t p);
/** Gives the offset in a plane of x of row `row` of a padded image that is not `whole`. Returns false if the
 * row is all padding. */
bool dq_padded_input_source(const dq_padded_input *image, const dq_window *w, size_t row, size_t *at);
/** Source of a padded image: `unit` planes (or pixels) of an image at x. Each byte is xored with sign_xor. */
typedef struct dq_padded_input_fill {
    const dq_kernels *kernels;
    const dq_padded_input *image;
    const dq_conv_shape *s;
    const uint8_t *x;
    uint8_t sign_xor, pad; /* pad: the zero point, after sign_xor */
} dq_padded_input_fill;

/** Writes row `row` of the padded image. */
void dq_padded_input_row(const dq_padded_input_fill *fill, size_t row, uint8_t *out);
/** Writes channels first … end - 1 of row `row` of a `whole` image from NCHW x. */
void dq_padded_input_planes(const dq_padded_input_fill *fill, size_t row, size_t first, size_t end,
                            uint8_t *out);

/** Writes the initial value of each output channel's sums, with a stride of `width` between groups: the bias
 * to init, and, unless `zero` is NULL, the zero point of w by dq_gemm_s8_zero to zero. Padding columns are
 * 0. */
void dq_conv_s8_columns(const dq_op_call *call, const dq_conv_s8 *conv, size_t width, int32_t *init,
                        int32_t *zero);

/** Images per pass: enough for all threads, few enough to stay in the cache. */
size_t dq_conv_s8_images(const dq_conv_s8 *conv);

/** Sets conv->offsets for `runs` runs of a window, with `step` kernel positions between runs. */
dq_status dq_conv_s8_find_offsets(dq_op_call *call, dq_conv_s8 *conv, size_t runs, size_t step,
                                  dq_error *err);
/** Mask whose exclusive-or converts bytes of x to the signedness of padded images. */
uint8_t dq_conv_s8_sign_xor(const dq_op_call *call, const dq_conv_s8 *conv);
/** True if the GEMM's rows come from padded images. */
bool dq_conv_s8_has_images(const dq_conv_s8 *conv);
/** Runs all passes: for each, fills the padded images if `fill`, then calls `run`. */
void dq_conv_s8_run_batch_tiles(dq_conv_s8_batch_tile *pass, bool fill,
                                void (*run)(const dq_conv_s8_batch_tile *pass));

/** Describes the weights as the B of a GEMM. The second function returns the chunks of panels that separate
 * tasks take, or SIZE_MAX if the packed size overflows size_t. */
void dq_conv_s8_gemm_describe(const dq_op_call *call, dq_conv_s8 *conv);
size_t dq_conv_s8_gemm_chunks(const dq_op_call *call, dq_conv_s8 *conv);

/** In conv_s8_nc4hw4_images.c. The first function fills all images of a pass. The second fills pixels first …
 * first + n - 1 of an image's group, if `linear`. The third returns the bytes of a padded row of x, if
 * `by_rows`, else 0. */
void dq_conv_s8_nc4hw4_images(const dq_conv_s8_batch_tile *pass);
void dq_conv_s8_nc4hw4_block(const dq_conv_s8_batch_tile *pass, size_t image, size_t group, size_t first,
                             size_t n, uint8_t *out);
size_t dq_conv_s8_nc4hw4_row(const dq_conv_s8 *conv);

#endif
