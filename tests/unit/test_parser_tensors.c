/* SPDX-License-Identifier: Apache-2.0 */
/* src/parser: tensors of every type and form come out bit for bit, and wrong ones are refused. */
#include "parse.h"

/* ---- Tensors ------------------------------------------------------------------------------------------ */

/* Five elements of each type: the bytes, and the entries of the typed field that say the same. */
typedef struct elements {
    int dtype, field;
    size_t entry_count;
    int64_t entries[10];
    size_t byte_count;
    uint8_t bytes[40];
} elements;

static const elements all_types[] = {
    {DQ_UINT8, 5, 5, {0, 1, 127, 128, 255}, 5, {0, 1, 127, 128, 255}},
    {DQ_INT8, 5, 5, {0, 1, 127, -128, -1}, 5, {0, 1, 127, 128, 255}},
    {DQ_UINT16, 5, 5, {0, 1, 258, 32768, 65535}, 10, {0, 0, 1, 0, 2, 1, 0, 128, 255, 255}},
    {DQ_INT16, 5, 5, {0, 1, 258, -32768, -1}, 10, {0, 0, 1, 0, 2, 1, 0, 128, 255, 255}},
    {DQ_INT32, 5, 5, {0, 1, 0x04030201, INT32_MIN, -2}, 20, {0, 0, 0, 0, 1, 0,   0,   0,   1,   2,
                                                             3, 4, 0, 0, 0, 128, 254, 255, 255, 255}},
    {DQ_INT64, 7, 5, {0, 1, 0x04030201, INT64_MIN, -2}, 40, {0, 0,   0,   0,   0,   0,   0,   0,   1,   0,
                                                             0, 0,   0,   0,   0,   0,   1,   2,   3,   4,
                                                             0, 0,   0,   0,   0,   0,   0,   0,   0,   0,
                                                             0, 128, 254, 255, 255, 255, 255, 255, 255, 255}},
    {DQ_BOOL, 5, 5, {0, 1, 1, 0, 1}, 5, {0, 1, 1, 0, 1}},
    {DQ_FLOAT16, 5, 5, {0, 0x3C00, 0x0201, 0x8000, 0xFC00}, 10, {0, 0, 0, 0x3C, 1, 2, 0, 0x80, 0, 0xFC}},
    {DQ_UINT32, 11, 5, {0, 1, 0x04030201, 0x80000000, 0xFFFFFFFF}, 20, {0, 0,   0,   0,   1,   0,  0,
                                                                        0, 1,   2,   3,   4,   0,  0,
                                                                        0, 128, 255, 255, 255, 255}},
    {DQ_UINT64, 11, 5, {0, 1, 0x04030201, INT64_MIN, -1}, 40, {0,   0,   0,   0,   0,   0,   0,   0,
                                                               1,   0,   0,   0,   0,   0,   0,   0,
                                                               1,   2,   3,   4,   0,   0,   0,   0,
                                                               0,   0,   0,   0,   0,   0,   0,   128,
                                                               255, 255, 255, 255, 255, 255, 255, 255}},
    {DQ_BFLOAT16,
     5,
     5,
     {0, 0x3F80, 0x0201, 0x8000, 0xFF80},
     10,
     {0, 0, 0x80, 0x3F, 1, 2, 0, 0x80, 0x80, 0xFF}},
    {DQ_FLOAT8E4M3FN, 5, 5, {0, 56, 127, 128, 255}, 5, {0, 56, 127, 128, 255}},
    {DQ_FLOAT8E4M3FNUZ, 5, 5, {0, 56, 127, 128, 255}, 5, {0, 56, 127, 128, 255}},
    {DQ_FLOAT8E5M2, 5, 5, {0, 56, 127, 128, 255}, 5, {0, 56, 127, 128, 255}},
    {DQ_FLOAT8E5M2FNUZ, 5, 5, {0, 56, 127, 128, 255}, 5, {0, 56, 127, 128, 255}},
    {DQ_UINT4, 5, 3, {0x10, 0xF7, 0x08}, 3, {0x10, 0xF7, 0x08}},
    {DQ_INT4, 5, 3, {0x10, 0xF7, 0x08}, 3, {0x10, 0xF7, 0x08}},
    {DQ_FLOAT4E2M1, 5, 3, {0x10, 0xF7, 0x08}, 3, {0x10, 0xF7, 0x08}},
    {DQ_FLOAT8E8M0, 5, 5, {0, 56, 127, 128, 255}, 5, {0, 56, 127, 128, 255}},
    {DQ_UINT2, 5, 2, {0xE4, 0x03}, 2, {0xE4, 0x03}},
    {DQ_INT2, 5, 2, {0xE4, 0x03}, 2, {0xE4, 0x03}},
    {DQ_FLOAT6E2M3, 5, 5, {1, 2, 63, 32, 5}, 4, {0x81, 0xF0, 0x83, 0x05}},
    {DQ_FLOAT6E3M2, 5, 5, {1, 2, 63, 32, 5}, 4, {0x81, 0xF0, 0x83, 0x05}},
};

static const int64_t five[] = {5};

START_TEST(integers_and_bit_patterns_of_every_type)
{
    const elements *e = &all_types[_i];
    ow raw = ow_tensor("raw", e->dtype, 1, five), typed = ow_tensor("typed", e->dtype, 1, five);
    ow single = ow_tensor("single", e->dtype, 1, five), graph = {0};
    ow_raw(&raw, 9, e->bytes, e->byte_count);
    ow_ints(&typed, (unsigned)e->field, e->entry_count, e->entries);
    for (size_t i = 0; i < e->entry_count; i++) /* not packed: legal, if nobody writes it */
        ow_int(&single, (unsigned)e->field, e->entries[i]);
    ow_msg(&graph, OW_GRAPH_INIT, &raw);
    ow_msg(&graph, OW_GRAPH_INIT, &typed);
    ow_msg(&graph, OW_GRAPH_INIT, &single);
    ow model = ow_model(&graph);
    dq_ir *ir = parsed(&model);
    static const char *const names[] = {"raw", "typed", "single"};
    for (int i = 0; i < 3; i++) {
        const dq_tensor *t = constant(ir, names[i]);
        ck_assert_int_eq((int)t->dtype, e->dtype);
        ck_assert_uint_eq(t->count, 5);
        ck_assert_uint_eq(t->size, e->byte_count);
        ck_assert_mem_eq(t->data, e->bytes, e->byte_count);
        ck_assert_uint_eq((uintptr_t)t->data % dq_dtype_get(t->dtype)->align, 0);
    }
    dq_ir_free(ir);
}
END_TEST

static void float_tensor_is(int dtype, unsigned field, size_t size, const void *numbers)
{
    static const int64_t two[] = {2};
    ow raw = ow_tensor("raw", dtype, 1, two), typed = ow_tensor("typed", dtype, 1, two);
    ow pieces = ow_tensor("pieces", dtype, 1, two), graph = {0};
    ow_raw(&raw, 9, numbers, size);
    ow_raw(&typed, field, numbers, size);
    ow_raw(&pieces, field, numbers, size / 2);
    ow_raw(&pieces, field, (const char *)numbers + size / 2, size / 2);
    ow_msg(&graph, OW_GRAPH_INIT, &raw);
    ow_msg(&graph, OW_GRAPH_INIT, &typed);
    ow_msg(&graph, OW_GRAPH_INIT, &pieces);
    ow model = ow_model(&graph);
    dq_ir *ir = parsed(&model);
    ck_assert_mem_eq(constant(ir, "raw")->data, numbers, size);
    ck_assert_mem_eq(constant(ir, "typed")->data, numbers, size);
    ck_assert_mem_eq(constant(ir, "pieces")->data, numbers, size);
    dq_ir_free(ir);
}

START_TEST(floats_and_complex_numbers)
{
    static const float floats[] = {1.5f, -0.0f, 3e-40f, -1e30f};
    static const double doubles[] = {1.5, -0.0, 3e-310, -1e300};
    float_tensor_is(DQ_FLOAT, 4, 8, floats);
    float_tensor_is(DQ_COMPLEX64, 4, 16, floats);
    float_tensor_is(DQ_DOUBLE, 10, 16, doubles);
    float_tensor_is(DQ_COMPLEX128, 10, 32, doubles);
}
END_TEST

START_TEST(packed_floats_that_are_cut)
{
    static const struct {
        int dtype;
        unsigned field;
        size_t size;
        const char *message;
    } cut[] = {{DQ_FLOAT, 4, 5, "t.onnx: initializer 'w' has damaged float_data"},
               {DQ_DOUBLE, 10, 12, "t.onnx: initializer 'w' has damaged double_data"}};
    static const int64_t dims[] = {1};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        ow tensor = ow_tensor("w", cut[i].dtype, 1, dims), graph = {0};
        ow_raw(&tensor, cut[i].field, "123456789abc", cut[i].size);
        ow_msg(&graph, OW_GRAPH_INIT, &tensor);
        ow model = ow_model(&graph);
        refused(&model, DQ_BAD_MODEL, cut[i].message);
    }
}
END_TEST

START_TEST(strings_and_empty_tensors)
{
    static const int64_t dims[] = {2, 1}, none[] = {0, 3};
    ow strings = ow_tensor("s", DQ_STRING, 2, dims), empty = ow_tensor("e", DQ_FLOAT, 2, none), graph = {0};
    ow_raw(&strings, 6, "a\0b", 3);
    ow_str(&strings, 6, "");
    ow_msg(&graph, OW_GRAPH_INIT, &strings);
    ow_msg(&graph, OW_GRAPH_INIT, &empty);
    ow model = ow_model(&graph);
    dq_ir *ir = parsed(&model);
    const dq_string *s = constant(ir, "s")->data;
    ck_assert_uint_eq(s[0].length, 3);
    ck_assert_mem_eq(s[0].bytes, "a\0b", 3);
    ck_assert_uint_eq(s[1].length, 0);
    ck_assert_uint_eq(constant(ir, "e")->count, 0);
    ck_assert_ptr_nonnull(constant(ir, "e")->data);
    dq_ir_free(ir);
}
END_TEST

START_TEST(raw_data_stays_in_the_file_where_it_is_aligned)
{
    static const int64_t dims[] = {4096};
    static uint8_t zeros[4096];
    ow tensor = ow_tensor("w", DQ_INT8, 1, dims), graph = {0};
    ow_raw(&tensor, 9, zeros, sizeof zeros);
    ow_msg(&graph, OW_GRAPH_INIT, &tensor);
    ow model = ow_model(&graph);
    dq_ir *ir = parsed(&model);
    const uint8_t *data = constant(ir, "w")->data;
    ck_assert(data > model.bytes && data + sizeof zeros <= model.bytes + model.size);
    dq_ir_free(ir);
}
END_TEST

typedef struct wrong_tensor {
    const char *message;
    dq_status status;
    int dtype;
    size_t rank;
    int64_t dims[20];
    unsigned field; /* 0: no data */
    size_t entry_count;
    int64_t entries[4];
    size_t raw; /* bytes of raw_data besides, 0: none */
} wrong_tensor;

static const wrong_tensor wrong_tensors[] = {
    {"has 10 bytes of raw data, expected 16 (float[4])", DQ_BAD_MODEL, DQ_FLOAT, 1, {4}, 0, 0, {0}, 10},
    {"has 1 bytes of raw data, expected 3 (int4[2,3])", DQ_BAD_MODEL, DQ_INT4, 2, {2, 3}, 0, 0, {0}, 1},
    {"has 2 entries of int32_data, expected 3 (int8[3])", DQ_BAD_MODEL, DQ_INT8, 1, {3}, 5, 2, {1, 2}, 0},
    {"has 0 entries of float_data, expected 1 (float[])", DQ_BAD_MODEL, DQ_FLOAT, 0, {0}, 0, 0, {0}, 0},
    {"has 128 as entry 1 of int32_data, expected -128 to 127 (int8)",
     DQ_BAD_MODEL,
     DQ_INT8,
     1,
     {2},
     5,
     2,
     {0, 128},
     0},
    {"has 256 as entry 0 of int32_data, expected -128 to 255 (uint8)",
     DQ_BAD_MODEL,
     DQ_UINT8,
     1,
     {1},
     5,
     1,
     {256},
     0},
    {"has 64 as entry 0 of int32_data, expected 0 to 63 (float6e2m3)",
     DQ_BAD_MODEL,
     DQ_FLOAT6E2M3,
     1,
     {1},
     5,
     1,
     {64},
     0},
    {"has 2 as entry 0 of int32_data, expected 0 to 1 (bool)", DQ_BAD_MODEL, DQ_BOOL, 1, {1}, 5, 1, {2}, 0},
    {"has 165 as element 0 of type bool, expected 0 or 1", DQ_BAD_MODEL, DQ_BOOL, 1, {1}, 0, 0, {0}, 1},
    {"has 4294967296 as entry 0 of uint64_data, expected at most 4294967295 (uint32)",
     DQ_BAD_MODEL,
     DQ_UINT32,
     1,
     {1},
     11,
     1,
     {INT64_C(1) << 32},
     0},
    {"has elements of type int64 in int32_data, expected int64_data or raw_data",
     DQ_BAD_MODEL,
     DQ_INT64,
     1,
     {1},
     5,
     1,
     {1},
     0},
    {"has both raw_data and int64_data, expected one of them", DQ_BAD_MODEL, DQ_INT64, 1, {1}, 7, 1, {1}, 8},
    {"has strings as raw data, expected string_data", DQ_BAD_MODEL, DQ_STRING, 1, {1}, 0, 0, {0}, 1},
    {"has element type 29, which is not one of ONNX's (1 to 28)", DQ_BAD_MODEL, 29, 1, {1}, 0, 0, {0}, 1},
    {"has element type 0, which is not one of ONNX's (1 to 28)", DQ_BAD_MODEL, 0, 1, {1}, 0, 0, {0}, 1},
    {"has shape [-2], expected dimensions of 0 or more", DQ_BAD_MODEL, DQ_INT8, 1, {-2}, 0, 0, {0}, 1},
    {"has rank 17, expected at most 16",
     DQ_UNSUPPORTED,
     DQ_INT8,
     17,
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
     0,
     0,
     {0},
     1},
    {"has shape [1099511627776,1099511627776] of int8, over the limit of 17179869184 bytes for one tensor",
     DQ_OUT_OF_MEMORY,
     DQ_INT8,
     2,
     {INT64_C(1) << 40, INT64_C(1) << 40},
     0,
     0,
     {0},
     1},
    {"has 1 bytes of raw data, expected 8589934592 (int8[8589934592])",
     DQ_BAD_MODEL,
     DQ_INT8,
     1,
     {INT64_C(1) << 33},
     0,
     0,
     {0},
     1},
};

START_TEST(wrong_tensors_are_refused)
{
    const wrong_tensor *w = &wrong_tensors[_i];
    uint8_t raw[16];
    memset(raw, 0xA5, sizeof raw);
    ow tensor = ow_tensor("w", w->dtype, w->rank, w->dims), graph = {0};
    if (w->field)
        ow_ints(&tensor, w->field, w->entry_count, w->entries);
    if (w->raw)
        ow_raw(&tensor, 9, raw, w->raw);
    ow_msg(&graph, OW_GRAPH_INIT, &tensor);
    ow model = ow_model(&graph);
    char message[256];
    snprintf(message, sizeof message, "t.onnx: initializer 'w' %s", w->message);
    refused(&model, w->status, message);
}
END_TEST

/* ---- Sparse tensors ----------------------------------------------------------------------------------- */

static ow sparse_model(size_t value_count, size_t index_rank, size_t index_count, const int64_t *indices)
{
    static const int64_t dims[] = {2, 3}, values[] = {7, -8, 9};
    int64_t nnz[] = {(int64_t)value_count}, pairs[] = {(int64_t)index_count / 2, 2},
            list[] = {(int64_t)index_count};
    ow v = ow_tensor("s", DQ_INT16, 1, nnz), graph = {0}, sparse = {0};
    ow i = index_rank == 1 ? ow_tensor("", DQ_INT64, 1, list) : ow_tensor("", DQ_INT64, 2, pairs);
    ow_ints(&v, 5, value_count, values);
    ow_ints(&i, 7, index_count, indices);
    ow_msg(&sparse, 1, &v);
    ow_msg(&sparse, 2, &i);
    ow_ints(&sparse, 3, 2, dims);
    ow_msg(&graph, OW_GRAPH_SPARSE, &sparse);
    return ow_model(&graph);
}

START_TEST(sparse_tensors_become_dense)
{
    static const int64_t linear[] = {1, 5}, pairs[] = {0, 1, 1, 2};
    static const int16_t expected[] = {0, 7, 0, 0, 0, -8};
    ow models[] = {sparse_model(2, 1, 2, linear), sparse_model(2, 2, 4, pairs)};
    for (int i = 0; i < 2; i++) {
        dq_ir *ir = parsed(&models[i]);
        ck_assert_uint_eq(constant(ir, "s")->size, sizeof expected);
        ck_assert_mem_eq(constant(ir, "s")->data, expected, sizeof expected);
        dq_ir_free(ir);
    }
}
END_TEST

START_TEST(wrong_sparse_tensors_are_refused)
{
    static const int64_t twice[] = {5, 5}, past[] = {1, 6}, negative[] = {-1, 2}, column[] = {0, 1, 1, 3},
                         falling[] = {1, 2, 0, 1}, three[] = {1, 2, 3};
    ow model = sparse_model(2, 1, 2, twice);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: sparse initializer 's' has sparse indices that do not ascend at 1");
    model = sparse_model(2, 2, 4, falling);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: sparse initializer 's' has sparse indices that do not ascend at 1");
    model = sparse_model(2, 1, 2, past);
    refused(&model, DQ_BAD_MODEL, "t.onnx: sparse initializer 's' has sparse index 6 at 1, expected 0 to 5");
    model = sparse_model(2, 1, 2, negative);
    refused(&model, DQ_BAD_MODEL, "t.onnx: sparse initializer 's' has sparse index -1 at 0, expected 0 to 5");
    model = sparse_model(2, 2, 4, column);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: sparse initializer 's' has sparse index 3 at 1 for dimension 1, expected 0 to 2");
    model = sparse_model(2, 1, 3, three);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: sparse initializer 's' has sparse indices of shape [3], expected [2] or [2,2]");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("parser_tensors", NULL, NULL);
    add_loop_test(&tests, integers_and_bit_patterns_of_every_type, 0,
                  (int)(sizeof all_types / sizeof all_types[0]));
    add_test(&tests, floats_and_complex_numbers);
    add_test(&tests, packed_floats_that_are_cut);
    add_test(&tests, strings_and_empty_tensors);
    add_test(&tests, raw_data_stays_in_the_file_where_it_is_aligned);
    add_loop_test(&tests, wrong_tensors_are_refused, 0,
                  (int)(sizeof wrong_tensors / sizeof wrong_tensors[0]));
    add_test(&tests, sparse_tensors_become_dense);
    add_test(&tests, wrong_sparse_tensors_are_refused);
    return test_program_run(&tests);
}
