/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens generated one after the other: a decode loop over a cache of full length in place, and one over a
 * cache that grows, between two buffers; and operators whose state may stay where it is. */
#include "small_model.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 8, HEADS = 2, PROMPT = 3, MAX = 12 };

static float numbers(float *to, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)((i * 37 + seed * 11) % 29) / 32 - 0.4f;
    return to[0];
}

static void matmul(const char *x, const char *weights, int64_t n, int64_t k, const char *y)
{
    static float w[HEADS * WIDTH * WIDTH];
    numbers(w, (size_t)(n * k), (unsigned)(weights[1]));
    constant(weights, DQ_FLOAT, 2, (int64_t[]){k, n}, w);
    node("MatMul", x, weights, y);
}

static void cast(const char *x, dq_dtype to, const char *y)
{
    const dq_attribute a = {.size = sizeof(dq_attribute), .name = "to", .kind = DQ_ATTRIBUTE_INT, .i = to};
    must(add_node(b, "", "Cast", y, 1, &x, 1, &y, 1, &a, &err));
}

/* x: [1, new positions, WIDTH]; mask: [1, all positions]; the cache is of type `kept`. Late: how many
 * positions there are is not seen from the mask's shape. */
static void make_decoder(dq_dtype kept, bool dynamic)
{
    static int64_t one = 1;
    const char *ins[] = {"qc", "kc", "vc", "past.k", "past.v", "lengths", "total"};
    const char *outs[] = {"ac", "present.k", "present.v"};
    const dq_attribute attributes[] = {
        {.size = sizeof(dq_attribute), .name = "num_heads", .kind = DQ_ATTRIBUTE_INT, .i = HEADS},
        {.size = sizeof(dq_attribute), .name = "kv_num_heads", .kind = DQ_ATTRIBUTE_INT, .i = 1}};
    begin();
    input("x", DQ_FLOAT, 3, (int64_t[]){1, -1, WIDTH});
    input("mask", DQ_INT64, 2, (int64_t[]){1, -1});
    input("past.k", kept, 4, (int64_t[]){1, 1, -1, WIDTH});
    input("past.v", kept, 4, (int64_t[]){1, 1, -1, WIDTH});
    constant("one", DQ_INT64, 0, NULL, &one);
    node("ReduceSum", "mask", NULL, "sum");
    node("Sub", "sum", "one", "last");
    cast("last", DQ_INT32, "lengths");
    node("Shape", "mask", NULL, "shape");
    node("Gather", "shape", "one", "all");
    cast(dynamic ? "sum" : "all", DQ_INT32, "total");
    matmul("x", "wq", HEADS * WIDTH, WIDTH, "q");
    matmul("x", "wk", WIDTH, WIDTH, "k");
    matmul("x", "wv", WIDTH, WIDTH, "v");
    cast("q", kept, "qc");
    cast("k", kept, "kc");
    cast("v", kept, "vc");
    must(add_node(b, "com.microsoft", "GroupQueryAttention", "attention", 7, ins, 3, outs, 2, attributes,
                  &err));
    cast("ac", DQ_FLOAT, "a");
    matmul("a", "wo", WIDTH, HEADS * WIDTH, "y");
    output("y");
    output("present.k");
    output("present.v");
    finish();
}

typedef enum how { APART, IN_PLACE, GROWING } how;

/* What the loops compute: the last row of each step, and the caches in the end. */
typedef struct decoded {
    float y[MAX][WIDTH];
    char cache[2][MAX * WIDTH * sizeof(float)];
} decoded;

static void decode(dq_dtype kept, how way, decoded *d)
{
    static const char *const past[] = {"past.k", "past.v"}, *const present[] = {"present.k", "present.v"};
    static int64_t ones[MAX];
    static char other[2][MAX * WIDTH * sizeof(float)];
    const size_t each = WIDTH * dq_dtype_bits(kept) / 8;
    float x[PROMPT * WIDTH];
    int64_t then = 0; /* positions so far */
    memset(d, 0, sizeof *d);
    memset(other, 0, sizeof other);
    numbers(x, PROMPT * WIDTH, 3);
    for (int step = 0; then < MAX; step++) {
        const int64_t added = step ? 1 : PROMPT, now = then + added;
        dq_tensor *tensors[6] = {NULL};
        must(dq_tensor_wrap(DQ_FLOAT, 3, (int64_t[]){1, added, WIDTH}, x, (size_t)added * WIDTH * sizeof *x,
                            &tensors[0], &err));
        for (int64_t i = 0; i < now; i++)
            ones[i] = 1;
        must(dq_tensor_wrap(DQ_INT64, 2, (int64_t[]){1, now}, ones, (size_t)now * sizeof *ones, &tensors[1],
                            &err));
        must(dq_session_set_input(session, "x", tensors[0], &err));
        must(dq_session_set_input(session, "mask", tensors[1], &err));
        for (int i = 0; i < 2; i++) {
            const int64_t old = way == GROWING ? then : MAX, full = way == GROWING ? now : MAX;
            const bool turn = way == GROWING && step % 2;
            dq_tensor **in = &tensors[2 + i], **out = &tensors[4 + i];
            must(dq_tensor_wrap(kept, 4, (int64_t[]){1, 1, old, WIDTH}, turn ? other[i] : d->cache[i],
                                (size_t)old * each, in, &err));
            must(dq_tensor_wrap(kept, 4, (int64_t[]){1, 1, full, WIDTH},
                                way == GROWING && !turn ? other[i] : d->cache[i], (size_t)full * each, out,
                                &err));
            must(dq_session_set_input(session, past[i], *in, &err));
            must(dq_session_set_output(session, present[i], way == APART ? NULL : *out, &err));
        }
        must(dq_session_run(session, &err));
        for (int i = 0; i < 2; i++) {
            if (way == APART)
                memcpy(d->cache[i], data_of(present[i]), MAX * each);
            else /* nothing was copied */
                ck_assert_ptr_eq(data_of(present[i]), dq_tensor_data(tensors[4 + i]));
            dq_session_set_output(session, present[i], NULL, &err);
        }
        memcpy(d->y[step], (const float *)data_of("y") + (added - 1) * WIDTH, sizeof d->y[0]);
        memcpy(x, d->y[step], sizeof d->y[0]);
        for (int i = 0; i < 6; i++)
            dq_tensor_free(tensors[i]);
        then = now;
    }
    if (way == GROWING && (MAX - PROMPT) % 2 == 0) /* the last step wrote to the other buffer */
        memcpy(d->cache, other, sizeof other);
}

START_TEST(caches_in_place_and_growing_ones)
{
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16};
    static decoded stride, there, growing;
    const dq_dtype kept = types[_i / 2];
    make_decoder(kept, _i % 2);
    decode(kept, APART, &stride);
    decode(kept, IN_PLACE, &there);
    decode(kept, GROWING, &growing);
    ck_assert_mem_eq(&there, &stride, sizeof stride);
    ck_assert_mem_eq(&growing, &stride, sizeof stride);
    ck_assert(isfinite(stride.y[MAX - PROMPT][0]) && stride.y[MAX - PROMPT][0] != 0);
}
END_TEST

/* ---- States of single nodes ---------------------------------------------------------------------------- */

enum { MAX_IN = 9, MAX_BYTES = 2048 };

typedef struct one_node {
    const char *domain, *op;
    int opset;
    struct {
        dq_dtype dtype; /* DQ_UNDEFINED: left out */
        size_t rank;
        int64_t dims[5];
        int whole; /* all elements of integers */
    } in[MAX_IN];
    size_t attribute_count;
    dq_attribute attributes[2];
    size_t state, states; /* inputs; they come back as the last outputs */
    size_t out_count;
} one_node;

#define NUMBER(key, value)                                                                                   \
    {                                                                                                        \
        .size = sizeof(dq_attribute), .name = key, .kind = DQ_ATTRIBUTE_INT, .i = value                      \
    }
#define MULTI_HEAD(type)                                                                                     \
    {                                                                                                        \
        "com.microsoft", "MultiHeadAttention", 1, {{type, 3, {1, 2, 16}, 0},                                 \
                                                   {type, 3, {1, 2, 16}, 0},                                 \
                                                   {type, 3, {1, 2, 16}, 0},                                 \
                                                   {0},                                                      \
                                                   {0},                                                      \
                                                   {0},                                                      \
                                                   {type, 4, {1, 2, 6, 8}, 0},                               \
                                                   {type, 4, {1, 2, 6, 8}, 0},                               \
                                                   {DQ_INT32, 1, {1}, 3}},                                   \
            1, {NUMBER("num_heads", 2)}, 6, 2, 3                                                             \
    }
#define ATTENTION(type)                                                                                      \
    {                                                                                                        \
        "com.microsoft", "Attention", 1, {{type, 3, {1, 2, 8}, 0},                                           \
                                          {type, 2, {8, 48}, 0},                                             \
                                          {type, 1, {48}, 0},                                                \
                                          {0},                                                               \
                                          {type, 5, {2, 1, 2, 6, 8}, 0},                                     \
                                          {0},                                                               \
                                          {DQ_INT32, 1, {1}, 3}},                                            \
            2, {NUMBER("num_heads", 2), NUMBER("past_present_share_buffer", 1)}, 4, 1, 2                     \
    }
static const one_node one_nodes[] = {
    MULTI_HEAD(DQ_FLOAT),
    MULTI_HEAD(DQ_FLOAT16),
    ATTENTION(DQ_FLOAT),
    ATTENTION(DQ_FLOAT16),
    {"com.microsoft",
     "LinearAttention",
     1,
     {{DQ_FLOAT, 3, {1, 2, 16}, 0},
      {DQ_FLOAT, 3, {1, 2, 16}, 0},
      {DQ_FLOAT, 3, {1, 2, 16}, 0},
      {DQ_FLOAT, 4, {1, 2, 8, 8}, 0},
      {DQ_FLOAT, 3, {1, 2, 2}, 0},
      {DQ_FLOAT, 3, {1, 2, 2}, 0}},
     2,
     {NUMBER("q_num_heads", 2), NUMBER("kv_num_heads", 2)},
     3,
     1,
     2},
    {"com.microsoft",
     "CausalConvWithState",
     1,
     {{DQ_FLOAT, 3, {1, 4, 3}, 0}, {DQ_FLOAT, 3, {4, 1, 3}, 0}, {0}, {DQ_FLOAT, 3, {1, 4, 2}, 0}},
     0,
     {{0}},
     3,
     1,
     2},
    {"",
     "TensorScatter",
     24,
     {{DQ_FLOAT, 3, {2, 6, 4}, 0}, {DQ_FLOAT, 3, {2, 2, 4}, 0}, {DQ_INT64, 1, {2}, 3}},
     0,
     {{0}},
     0,
     1,
     1},
    {"",
     "ScatterND",
     21,
     {{DQ_UINT8, 2, {6, 4}, 0}, {DQ_INT64, 2, {2, 1}, 3}, {DQ_UINT8, 2, {2, 4}, 7}},
     0,
     {{0}},
     0,
     1,
     1},
    {"",
     "ScatterElements",
     21,
     {{DQ_FLOAT, 2, {6, 4}, 0}, {DQ_INT64, 2, {1, 4}, 2}, {DQ_FLOAT, 2, {1, 4}, 0}},
     0,
     {{0}},
     0,
     1,
     1}};

static void fill(dq_tensor *t, int whole, unsigned seed)
{
    float values[MAX_BYTES / 2];
    unsigned char *bytes = dq_tensor_mutable_data(t);
    numbers(values, dq_tensor_count(t), seed);
    for (size_t i = 0; i < dq_tensor_count(t); i++)
        switch (dq_tensor_dtype(t)) {
        case DQ_FLOAT:
            memcpy(bytes + 4 * i, &values[i], 4);
            break;
        case DQ_FLOAT16: /* some normal numbers */
            memcpy(bytes + 2 * i, &(uint16_t){(uint16_t)(0x2C00 + (i * 37 + seed) % 2048 + i % 2 * 0x8000)},
                   2);
            break;
        case DQ_INT64:
            memcpy(bytes + 8 * i, &(int64_t){whole}, 8);
            break;
        case DQ_INT32:
            memcpy(bytes + 4 * i, &(int32_t){whole}, 4);
            break;
        default:
            bytes[i] = (unsigned char)(i + (unsigned)whole);
        }
}

START_TEST(states_stay_where_they_are)
{
    const one_node *n = &one_nodes[_i];
    static const char *const names[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8"};
    const char *ins[MAX_IN], *outs[] = {"y0", "y1", "y2"};
    dq_tensor *in[MAX_IN] = {NULL};
    unsigned char expected[3][MAX_BYTES];
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", n->opset < 21 ? 21 : n->opset, &err));
    must(dq_builder_opset(b, "com.microsoft", 1, &err));
    for (size_t i = 0; i < MAX_IN; i++) {
        ins[i] = n->in[i].dtype == DQ_UNDEFINED ? "" : names[i];
        if (!*ins[i])
            continue;
        input(names[i], n->in[i].dtype, n->in[i].rank, n->in[i].dims);
        must(dq_tensor_create(n->in[i].dtype, n->in[i].rank, n->in[i].dims, &in[i], &err));
        ck_assert_uint_le(dq_tensor_size(keep(in[i])), MAX_BYTES);
        fill(in[i], n->in[i].whole, (unsigned)i);
    }
    size_t in_count = MAX_IN;
    while (!*ins[in_count - 1])
        in_count--;
    must(add_node(b, n->domain, n->op, "n", in_count, ins, n->out_count, outs, n->attribute_count,
                  n->attributes, &err));
    for (size_t i = 0; i < n->out_count; i++)
        output(outs[i]);
    finish();
    for (size_t i = 0; i < in_count; i++)
        if (in[i])
            must(dq_session_set_input(session, names[i], in[i], &err));
    for (int run = 0; run < 2; run++) {
        for (size_t i = 0; run && i < n->states; i++)
            must(dq_session_set_output(session, outs[n->out_count - n->states + i], in[n->state + i], &err));
        must(dq_session_run(session, &err));
        for (size_t i = 0; i < n->out_count; i++) {
            const dq_tensor *y = NULL;
            must(dq_session_get_output(session, outs[i], &y, &err));
            if (run)
                ck_assert_mem_eq(dq_tensor_data(y), expected[i], dq_tensor_size(y));
            memcpy(expected[i], dq_tensor_data(y), dq_tensor_size(y));
            if (run && i >= n->out_count - n->states)
                ck_assert_ptr_eq(dq_tensor_data(y),
                                 dq_tensor_data(in[n->state + i + n->states - n->out_count]));
        }
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("decode_loop", NULL, tear_down);
    add_loop_test(&tests, caches_in_place_and_growing_ones, 0, 4);
    add_loop_test(&tests, states_stay_where_they_are, 0, sizeof one_nodes / sizeof *one_nodes);
    return test_program_run(&tests);
}
