/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/work.h"

#include "ops/matmul/einsum.h"

#define DQ_OP(domain, op_name, first, last, impl, traits) extern const dq_op_impl impl;
#include "ops/ops.def"
#undef DQ_OP

static uint64_t count_of(const dq_tensor *t)
{
    return t ? t->count : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Length of an axis (negative: counted from the end); 1 if there is none. */
static uint64_t axis_of(const dq_tensor *t, int axis)
{
    if (axis < 0)
        axis += t ? (int)t->rank : 0;
    return t && axis >= 0 && axis < (int)t->rank ? (uint64_t)t->dims[axis] : 1;
}

static uint64_t output_elements(const dq_op_call *call)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < call->out_count; i++)
        sum = dq_work_add(sum, count_of(call->out[i]));
    return sum;
}

/* ---- Work that follows from input `at` ----------------------------------------------------------------- */

typedef uint64_t (*work_fn)(const dq_op_call *call, uint32_t at);

/* Operators that read the whole input. */
static uint64_t input_elements(const dq_op_call *call, uint32_t at)
{
    return larger(count_of(dq_call_in(call, at)), output_elements(call));
}

/* Matrix products: the left operand, which is summed over its last axis (transposed: the one before it). */
static uint64_t product(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *a = dq_call_in(call, at);
    const bool transposed = dq_node_int(call->node, "transA", 0) != 0;
    return dq_work_mul(count_of(call->out[0]), axis_of(a, transposed && a->rank > 1 ? -2 : -1));
}

/* Convolutions: the weights of one output channel, [channels, channels of the group, kernel…]. */
static uint64_t convolution(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *w = dq_call_in(call, at);
    return w && w->count ? dq_work_mul(count_of(call->out[0]), w->count / axis_of(w, 0)) : 0;
}

/* Transposed convolutions: the weights of one input channel. */
static uint64_t transposed_convolution(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *w = dq_call_in(call, at);
    return w && w->count ? dq_work_mul(count_of(call->in[0]), w->count / axis_of(w, 0)) : 0;
}

/* Pools: the elements of all windows. Without kernel_shape (global pools): the whole input. */
static uint64_t windows(const dq_op_call *call, uint32_t at)
{
    size_t rank = 0;
    const int64_t *kernel = dq_node_ints(call->node, "kernel_shape", &rank);
    uint64_t work = count_of(call->out[0]);
    for (size_t d = 0; d < rank; d++)
        work = dq_work_mul(work, kernel[d] > 0 ? (uint64_t)kernel[d] : 1);
    return larger(work, input_elements(call, at));
}

/* Recurrent networks: all of W and R, [directions, gates, …], for each element of the sequences. */
static uint64_t recurrent(const dq_op_call *call, uint32_t at)
{
    const uint64_t weights = dq_work_add(count_of(dq_call_in(call, 1)), count_of(dq_call_in(call, 2)));
    const dq_tensor *x = dq_call_in(call, at);
    return dq_work_mul(weights, dq_work_mul(axis_of(x, 0), axis_of(x, 1)));
}

/* Attention: each query element is multiplied with `keys` keys, and each result sums as many values. */
static uint64_t attention_over(const dq_op_call *call, uint64_t keys)
{
    return dq_work_mul(2 * count_of(call->out[0]), keys);
}

/* Number of keys: key is [batch, keys, …] or [batch, heads, keys, size], past keys [batch, heads, keys,
 * size]. */
static uint64_t keys_of(const dq_op_call *call, uint32_t key, uint32_t past)
{
    const dq_tensor *k = dq_call_in(call, key), *before = dq_call_in(call, past);
    k = k ? k : call->in[0]; /* packed QKV: one tensor has queries, keys and values */
    return axis_of(k, k->rank == 4 ? 2 : 1) + (before && before->rank == 4 ? axis_of(before, 2) : 0);
}

static uint64_t onnx_attention(const dq_op_call *call, uint32_t at)
{
    return attention_over(call, keys_of(call, at, 4));
}

static uint64_t multi_head_attention(const dq_op_call *call, uint32_t at)
{
    return attention_over(call, keys_of(call, at, 6));
}

static uint64_t group_query_attention(const dq_op_call *call, uint32_t at)
{
    return attention_over(call, keys_of(call, at, 3));
}

/* Attention with the projection of its input by weights [inputs, queries + keys + values]. */
static uint64_t self_attention(const dq_op_call *call, uint32_t past)
{
    const dq_tensor *x = call->in[0], *before = dq_call_in(call, past);
    const uint64_t keys = axis_of(x, 1) + (before && before->rank == 5 ? axis_of(before, 3) : 0);
    const uint64_t projection = dq_work_mul(x->count, axis_of(dq_call_in(call, 1), -1));
    return dq_work_add(projection, attention_over(call, keys));
}

/* Linear attention: each step reads and updates the state, [batch, heads, keys, values]. */
static uint64_t linear_attention(const dq_op_call *call, uint32_t at)
{
    const uint64_t state = call->out_count > 1 ? count_of(call->out[1]) : 0;
    return dq_work_mul(2 * larger(state, 1), axis_of(dq_call_in(call, at), 1));
}

/* Mixture of experts: the `k` experts of each token, with two products of equally many weights. */
static uint64_t experts(const dq_op_call *call, uint32_t at)
{
    const int64_t k = dq_node_int(call->node, "k", 1);
    const uint64_t each = dq_work_mul(count_of(call->in[0]), 2 * axis_of(dq_call_in(call, at), 1));
    return dq_work_mul(each, k > 0 ? (uint64_t)k : 1);
}

/* Einsum: its pairwise contractions. */
static uint64_t einsum(const dq_op_call *call, uint32_t at)
{
    (void)at;
    return larger(dq_einsum_products(call), output_elements(call));
}

/* ---- Others ------------------------------------------------------------------------------------------- */

static uint64_t bits_of(uint64_t n)
{
    uint64_t bits = 1;
    while (n >>= 1)
        bits++;
    return bits;
}

/* Fourier transforms: n log n. */
static uint64_t transform(const dq_op_call *call, uint32_t at)
{
    return dq_work_mul(count_of(call->out[0]), bits_of(count_of(dq_call_in(call, at))));
}

/* Determinant of n × n: n³ / 3. */
static uint64_t determinant(const dq_op_call *call, uint32_t at)
{
    const uint64_t elements = count_of(call->in[at]);
    return larger(dq_work_mul(elements, axis_of(call->in[at], -1)) / 3, elements);
}

/* LRN: each element sums the squares of its window, which is clipped to the channels. */
static uint64_t channel_windows(const dq_op_call *call, uint32_t at)
{
    const uint64_t channels = axis_of(call->in[at], 1);
    const int64_t size = dq_node_int(call->node, "size", 1);
    return dq_work_mul(count_of(call->in[at]),
                       size < 1 || (uint64_t)size > channels ? channels : (uint64_t)size);
}

/* Resampling: the input elements under the kernel of each output element. With antialiasing, downscaling
 * widens the kernel by the scale. */
static uint64_t resampled(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *x = call->in[at], *y = call->out[0];
    const char *mode = dq_node_string(call->node, "mode", "nearest");
    const uint64_t width = *mode == 'c' ? 4 : *mode == 'l' ? 2 : 1;
    const bool antialias = dq_node_int(call->node, "antialias", 0) != 0;
    uint64_t work = count_of(y);
    for (int d = 0; width > 1 && y && d < (int)y->rank && work; d++) {
        const uint64_t in = axis_of(x, d), out = axis_of(y, d);
        if (in != out)
            work =
                dq_work_mul(work, antialias && in > out ? dq_work_mul(width, (in + out - 1) / out) : width);
    }
    return larger(work, input_elements(call, at));
}

/* TfIdfVectorizer: an n-gram of each size with each skip distance starts at each element. */
static uint64_t ngrams(const dq_op_call *call, uint32_t at)
{
    const dq_attr *sizes = dq_node_attr(call->node, "ngram_counts");
    const uint64_t row = axis_of(call->in[at], -1);
    const int64_t longest = dq_node_int(call->node, "max_gram_length", 1);
    const int64_t skips = dq_node_int(call->node, "max_skip_count", 0);
    const uint64_t distances = skips > 0 && (uint64_t)skips < row ? (uint64_t)skips + 1 : skips > 0 ? row : 1;
    uint64_t elements = 0;
    for (int64_t size = dq_node_int(call->node, "min_gram_length", 1);
         sizes && size <= longest && (uint64_t)size <= sizes->count; size++)
        elements = dq_work_add(elements, size > 1 ? dq_work_mul((uint64_t)size, distances) : 1);
    return dq_work_add(dq_work_mul(count_of(call->in[at]), elements), output_elements(call));
}

/* MaxRoiPool: bins share at most one row and one column of pixels with each of their neighbors, on two sides.
 */
static uint64_t region_maxima(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *x = call->in[0], *y = call->out[0];
    const uint64_t rows = dq_work_add(axis_of(x, 2), 2 * axis_of(y, 2));
    const uint64_t columns = dq_work_add(axis_of(x, 3), 2 * axis_of(y, 3));
    const uint64_t planes = dq_work_mul(axis_of(dq_call_in(call, at), 0), axis_of(x, 1));
    return larger(dq_work_mul(planes, dq_work_mul(rows, columns)), count_of(y));
}

/* RoiAlign: samples of each output element; with an adaptive ratio, each region may be the whole image. */
static uint64_t regions(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *x = call->in[0];
    const int64_t ratio = dq_node_int(call->node, "sampling_ratio", 0);
    const uint64_t image = x->count / larger(axis_of(x, 0), 1), samples = ratio > 0 ? (uint64_t)ratio : 1;
    if (ratio > 0)
        return dq_work_mul(count_of(call->out[0]), dq_work_mul(samples, samples));
    return larger(dq_work_mul(axis_of(dq_call_in(call, at), 0), image), count_of(call->out[0]));
}

/* NonMaxSuppression: each box of each class is compared with the boxes selected so far. */
static uint64_t suppression(const dq_op_call *call, uint32_t at)
{
    const dq_tensor *scores = call->in[at], *most = dq_call_in(call, 2);
    const int64_t chosen = most && most->data && most->count ? dq_tensor_get_int(most, 0) : 0;
    const uint64_t boxes = axis_of(scores, -1);
    const uint64_t each = chosen > 0 && (uint64_t)chosen < boxes ? (uint64_t)chosen : chosen > 0 ? boxes : 1;
    return dq_work_mul(count_of(scores), each);
}

/* ---- Table of operators -------------------------------------------------------------------------------- */

/* Operators whose work is more than their outputs' elements, and the input from which it follows. */
static const struct row {
    const dq_op_impl *impl;
    work_fn work;
    uint32_t at;
} rows[] = {
    {&dq_op_matmul, product, 0},
    {&dq_op_gemm, product, 0},
    {&dq_op_qlinear_matmul, product, 0},
    {&dq_op_matmul_integer, product, 0},
    {&dq_op_matmul_integer16, product, 0},
    {&dq_op_matmul_integer_to_float, product, 0},
    {&dq_op_dynamic_quantize_matmul, product, 0},
    {&dq_op_quantized_gemm, product, 0},
    {&dq_op_qlinear_matmul16, product, 0},
    {&dq_op_matmul_nbits, product, 0},
    {&dq_op_matmul_bnb4, product, 0},
    {&dq_op_dequantize_matmul, product, 0},
    {&dq_op_conv, convolution, 1},
    {&dq_op_conv_integer, convolution, 1},
    {&dq_op_conv_integer_to_float, convolution, 1},
    {&dq_op_qlinear_conv, convolution, 3},
    {&dq_op_qlinear_conv16, convolution, 3},
    {&dq_op_deform_conv, convolution, 1},
    {&dq_op_causal_conv_with_state, convolution, 1},
    {&dq_op_conv_transpose, transposed_convolution, 1},
    {&dq_op_einsum, einsum, 0},
    {&dq_op_rnn, recurrent, 0},
    {&dq_op_gru, recurrent, 0},
    {&dq_op_lstm, recurrent, 0},
    {&dq_op_dynamic_quantize_lstm, recurrent, 0},
    {&dq_op_attention, onnx_attention, 1},
    {&dq_op_multi_head_attention, multi_head_attention, 1},
    {&dq_op_group_query_attention, group_query_attention, 1},
    {&dq_op_ms_attention, self_attention, 4},
    {&dq_op_qattention, self_attention, 8},
    {&dq_op_linear_attention, linear_attention, 0},
    {&dq_op_qmoe, experts, 2},
    {&dq_op_max_pool, windows, 0},
    {&dq_op_average_pool, windows, 0},
    {&dq_op_lp_pool, windows, 0},
    {&dq_op_nhwc_max_pool, windows, 0},
    {&dq_op_qlinear_average_pool, windows, 0},
    {&dq_op_global_max_pool, windows, 0},
    {&dq_op_global_average_pool, windows, 0},
    {&dq_op_global_lp_pool, windows, 0},
    {&dq_op_qlinear_global_average_pool, windows, 0},
    {&dq_op_tiled_qdq, windows, 0},
    {&dq_op_reduce_min, input_elements, 0},
    {&dq_op_reduce_max, input_elements, 0},
    {&dq_op_reduce_sum, input_elements, 0},
    {&dq_op_reduce_mean, input_elements, 0},
    {&dq_op_reduce_prod, input_elements, 0},
    {&dq_op_reduce_l1, input_elements, 0},
    {&dq_op_reduce_l2, input_elements, 0},
    {&dq_op_reduce_sum_square, input_elements, 0},
    {&dq_op_reduce_log_sum, input_elements, 0},
    {&dq_op_reduce_log_sum_exp, input_elements, 0},
    {&dq_op_reduce_sum_integer, input_elements, 0},
    {&dq_op_qlinear_reduce_mean, input_elements, 0},
    {&dq_op_arg_min, input_elements, 0},
    {&dq_op_arg_max, input_elements, 0},
    {&dq_op_top_k, input_elements, 0},
    {&dq_op_non_zero, input_elements, 0},
    {&dq_op_unique, input_elements, 0},
    {&dq_op_compress, input_elements, 0},
    {&dq_op_multinomial, input_elements, 0},
    {&dq_op_col2im, input_elements, 0},
    {&dq_op_split_to_sequence, input_elements, 0},
    {&dq_op_string_normalizer, input_elements, 0},
    {&dq_op_string_split, input_elements, 0},
    {&dq_op_tfidf_vectorizer, ngrams, 0},
    {&dq_op_softmax_cross_entropy_loss, input_elements, 0},
    {&dq_op_negative_log_likelihood_loss, input_elements, 0},
    {&dq_op_dft, transform, 0},
    {&dq_op_stft, transform, 0},
    {&dq_op_det, determinant, 0},
    {&dq_op_lrn, channel_windows, 0},
    {&dq_op_resize, resampled, 0},
    {&dq_op_upsample, resampled, 0},
    {&dq_op_roi_align, regions, 1},
    {&dq_op_max_roi_pool, region_maxima, 1},
    {&dq_op_non_max_suppression, suppression, 1},
};

uint64_t dq_call_infer_work(const dq_op_call *call)
{
    return call->node->op->impl == &dq_op_non_max_suppression ? suppression(call, 1) : 0;
}

uint64_t dq_call_work(const dq_op_call *call)
{
    if (call->node->uncounted)
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].impl == call->node->op->impl)
            return dq_work_add(1, rows[i].work(call, rows[i].at));
    return dq_work_add(1, output_elements(call));
}

static bool is_product(work_fn work)
{
    static const work_fn products[] = {product,
                                       convolution,
                                       transposed_convolution,
                                       einsum,
                                       recurrent,
                                       onnx_attention,
                                       self_attention,
                                       linear_attention,
                                       multi_head_attention,
                                       experts,
                                       group_query_attention};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (products[i] == work)
            return true;
    return false;
}

uint64_t dq_call_macs(const dq_op_call *call, uint64_t work)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows && work; i++)
        if (rows[i].impl == call->node->op->impl)
            return is_product(rows[i].work) ? work - 1 : 0;
    return 0;
}

static uint64_t stored_bytes(const dq_tensor *t)
{
    size_t size = 0;
    return t && t->kind == DQ_KIND_TENSOR && dq_dtype_size(t->dtype, dq_tensor_stored(t), &size) ? size : 0;
}

uint64_t dq_call_bytes(const dq_op_call *call)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < call->in_count; i++)
        sum = dq_work_add(sum, stored_bytes(call->in[i]));
    for (uint32_t i = 0; i < call->out_count; i++)
        sum = dq_work_add(sum, stored_bytes(call->out[i]));
    return sum;
}
