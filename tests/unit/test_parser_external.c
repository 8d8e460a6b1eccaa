/* SPDX-License-Identifier: Apache-2.0 */
/* src/parser: external data, and what a hostile model might try with it. */
#include "parse.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[2048]; /* a folder in the one the test starts in */
static char dir[2100];  /* root/model: the model's folder */

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* A folder with good data, and ways out of it: links of both kinds, a pipe, a folder, a file above. */
static void make_folder(void)
{
    static const char numbers[] = "0123456789abcdef";
    ck_assert_ptr_nonnull(getcwd(root, sizeof root - 32));
    strcat(root, "/external-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(dir, sizeof dir, "%s/model", root);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(chdir(dir), 0);
    write_file("good.bin", numbers, 16);
    write_file("../outside.bin", numbers, 16);
    write_file("twin.bin", numbers, 16);
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    write_file("sub/deep.bin", numbers, 16);
    ck_assert_int_eq(symlink("../outside.bin", "link.bin"), 0);
    ck_assert_int_eq(symlink("..", "up"), 0);
    ck_assert_int_eq(link("../outside.bin", "hard.bin"), 0);
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
}

static void remove_folder(void)
{
    static const char *const files[] = {"good.bin", "../outside.bin", "twin.bin", "sub/deep.bin", "link.bin",
                                        "up",       "hard.bin",       "pipe",     "m.onnx"};
    ck_assert_int_eq(chdir(dir), 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(files[i]);
    rmdir("sub");
    ck_assert_int_eq(chdir("../.."), 0);
    ck_assert_int_eq(rmdir(dir), 0);
    ck_assert_int_eq(rmdir(root), 0);
}

static void entry(ow *tensor, const char *key, const char *value)
{
    ow pair = {0};
    ow_str(&pair, 1, key);
    ow_str(&pair, 2, value);
    ow_msg(tensor, 13, &pair);
}

/* An int8[4] tensor with external data; NULL leaves a key out. */
static ow external_tensor(const char *name, const char *location, const char *offset, const char *length)
{
    static const int64_t dims[] = {4};
    ow tensor = ow_tensor(name, DQ_INT8, 1, dims);
    if (location)
        entry(&tensor, "location", location);
    if (offset)
        entry(&tensor, "offset", offset);
    if (length)
        entry(&tensor, "length", length);
    entry(&tensor, "checksum", "unread");
    entry(&tensor, "__class__", "unread");
    ow_int(&tensor, 14, 1);
    return tensor;
}

static void external(ow *graph, const char *name, const char *location, const char *offset,
                     const char *length)
{
    ow tensor = external_tensor(name, location, offset, length);
    ow_msg(graph, OW_GRAPH_INIT, &tensor);
}

START_TEST(external_data_is_read_in_place)
{
    ow graph = {0};
    external(&graph, "a", "good.bin", NULL, NULL);
    external(&graph, "b", "good.bin", "12", "4");
    external(&graph, "c", "./sub//deep.bin", "1", NULL);
    ow model = ow_model(&graph);
    write_file("m.onnx", model.bytes, model.size);
    char whole[2200];
    snprintf(whole, sizeof whole, "%s/m.onnx", dir);
    const char *const paths[] = {whole, "m.onnx", "./m.onnx"};
    for (int i = 0; i < 3; i++) {
        dq_ir *ir = NULL;
        dq_status status = dq_parse_file(paths[i], NULL, &ir, &err);
        ck_assert_msg(status == DQ_OK, "%s", err.message);
        ck_assert_mem_eq(constant(ir, "a")->data, "0123", 4);
        ck_assert_mem_eq(constant(ir, "b")->data, "cdef", 4);
        ck_assert_mem_eq(constant(ir, "c")->data, "1234", 4);
        /* one mapping for both */
        ck_assert_ptr_eq((char *)constant(ir, "a")->data + 12, constant(ir, "b")->data);
        dq_ir_free(ir);
    }
}
END_TEST

typedef struct attack {
    const char *location, *offset, *length, *message;
} attack;

#define OUTSIDE "external data '%s' is not the path of a file inside the model's folder"
#define SYMLINK "external data '%s' is or passes a symbolic link, expected a file inside the model's folder"

static const attack attacks[] = {
    {"/etc/passwd", NULL, NULL, OUTSIDE},
    {"../outside.bin", NULL, NULL, OUTSIDE},
    {"sub/../../outside.bin", NULL, NULL, OUTSIDE},
    {"sub/..", NULL, NULL, OUTSIDE},
    {"", NULL, NULL, OUTSIDE},
    {"sub/", NULL, NULL, OUTSIDE},
    {"link.bin", NULL, NULL, SYMLINK},
    {"up/outside.bin", NULL, NULL, SYMLINK},
    {"hard.bin", NULL, NULL, "external data '%s' has 2 names (hard links), expected a file of its own"},
    {"pipe", NULL, NULL, "external data %s: is not a regular file"},
    {"sub", NULL, NULL, "external data %s: is a folder, expected a file"},
    {".", NULL, NULL, "external data %s: is a folder, expected a file"},
    {"none.bin", NULL, NULL, "external data '%s' cannot be opened: No such file or directory"},
    {"good.bin/x", NULL, NULL, "external data '%s' cannot be opened: Not a directory"},
    {NULL, "0", NULL, "has external data without a location"},
    {"good.bin", "13", NULL, "wants 4 bytes at offset 13 of external data '%s', which has 16 bytes"},
    {"good.bin", "18446744073709551615", "4",
     "wants 4 bytes at offset 18446744073709551615 of external data '%s', which has 16 bytes"},
    {"good.bin", "18446744073709551616", "4",
     "has '18446744073709551616' as offset of its external data, expected a number of bytes"},
    {"good.bin", "99999999999999999999", "4",
     "has '99999999999999999999' as offset of its external data, expected a number of bytes"},
    {"good.bin", "-4", "4", "has '-4' as offset of its external data, expected a number of bytes"},
    {"good.bin", "0x4", "4", "has '0x4' as offset of its external data, expected a number of bytes"},
    {"good.bin", "", "4", "has '' as offset of its external data, expected a number of bytes"},
    {"good.bin", "4", "18446744073709551615",
     "has 18446744073709551615 bytes of external data, expected 4 (int8[4])"},
    {"good.bin", "0", "18446744073709551616",
     "has '18446744073709551616' as length of its external data, expected a number of bytes"},
    {"good.bin", "0", "5", "has 5 bytes of external data, expected 4 (int8[4])"},
};

START_TEST(external_data_stays_inside)
{
    const attack *a = &attacks[_i];
    ow graph = {0};
    external(&graph, "w", a->location, a->offset, a->length);
    ow model = ow_model(&graph);
    char expected[512] = "t.onnx: initializer 'w' ";
    const char *rest = strstr(a->message, "%s");
    size_t used = strlen(expected);
    if (rest)
        snprintf(expected + used, sizeof expected - used, "%.*s%s%s", (int)(rest - a->message), a->message,
                 a->location, rest + 2);
    else
        snprintf(expected + used, sizeof expected - used, "%s", a->message);
    dq_ir *ir = NULL;
    ck_assert_int_eq(
        dq_parse_memory(model.bytes, model.size, "t.onnx", &(dq_load_options){.base_dir = dir}, &ir, &err),
        DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, expected);
}
END_TEST

/* Tensors stand in more places than the initializers: each of them goes the same way. */
static ow carrier(unsigned which, const ow *tensor)
{
    static const int64_t dims[] = {8}, four[] = {4}, places[] = {0, 1, 2, 3};
    ow graph = {0}, sparse = {0}, attr = {0}, more = {0}, function = {0};
    ow indices = ow_tensor("", DQ_INT64, 1, four), values = ow_tensor("s", DQ_INT8, 1, four);
    ow_ints(&indices, 7, 4, places);
    ow_ints(&values, 5, 4, places);
    ow_msg(&sparse, 1, which == 1 ? &values : tensor);
    ow_msg(&sparse, 2, which == 1 ? tensor : &indices);
    ow_ints(&sparse, 3, 1, dims);
    if (which < 2)
        ow_msg(&graph, OW_GRAPH_SPARSE, &sparse);
    ow_str(&attr, 1, which == 2 ? "sparse_value" : "value");
    ow_int(&attr, 20, which == 2 ? DQ_ATTR_SPARSE_TENSOR : DQ_ATTR_TENSOR);
    ow_msg(&attr, which == 2 ? 22 : 5, which == 2 ? &sparse : tensor);
    ow_msg(&more, OW_NODE_ATTR, &attr);
    if (which == 2 || which == 3)
        ow_node(&graph, OW_GRAPH_NODE, "c", "Constant", "", "", "y", &more);
    ow model = ow_model(&graph);
    ow_str(&function, 1, "F");
    ow_list(&function, 5, "y");
    ow_node(&function, 7, "c", "Constant", "", "", "y", &more);
    ow_opset(&function, 9, "", 21);
    ow_str(&function, 10, "my");
    if (which == 4)
        ow_msg(&model, OW_MODEL_FUNCTION, &function);
    return model;
}

START_TEST(external_data_stays_inside_wherever_a_tensor_stands)
{
    static const char *const outside[] = {"/etc/passwd",    "../outside.bin", "link.bin",
                                          "up/outside.bin", "hard.bin",       "pipe"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        ow tensor = external_tensor("s", outside[i], NULL, "4"), model = carrier((unsigned)_i, &tensor);
        dq_ir *ir = NULL;
        ck_assert_int_eq(dq_parse_memory(model.bytes, model.size, "t.onnx",
                                         &(dq_load_options){.base_dir = dir}, &ir, &err),
                         DQ_BAD_MODEL);
        ck_assert_msg(strstr(err.message, outside[i]) != NULL, "%s", err.message);
    }
}
END_TEST

START_TEST(external_data_has_limits_and_needs_a_folder)
{
    ow graph = {0};
    dq_ir *ir = NULL;
    external(&graph, "w", "good.bin", NULL, NULL);
    ow model = ow_model(&graph);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: initializer 'w' wants external data 'good.bin', and a model in memory has none without "
            "a folder for it");
    dq_limits limits = {0};
    const char large[1024] = {0};
    const size_t size = sizeof large;
    write_file("twin.bin", large, size);
    graph.size = 0;
    external(&graph, "w", "twin.bin", NULL, NULL);
    model = ow_model(&graph);
    limits.file_bytes = model.size;
    ck_assert_int_eq(dq_parse_memory(model.bytes, model.size, "t.onnx",
                                     &(dq_load_options){.base_dir = dir, .limits = &limits}, &ir, &err),
                     DQ_OUT_OF_MEMORY);
    char expected[256];
    snprintf(expected, sizeof expected,
             "t.onnx: initializer 'w' external data twin.bin: has %zu bytes, over the limit of %zu", size,
             model.size);
    ck_assert_str_eq(err.message, expected);
}
END_TEST

static ow empty_tensor_at(const char *offset)
{
    static const int64_t dims[] = {0};
    ow graph = {0}, tensor = ow_tensor("w", DQ_INT8, 1, dims);
    entry(&tensor, "location", "good.bin");
    entry(&tensor, "offset", offset);
    ow_int(&tensor, 14, 1);
    ow_msg(&graph, OW_GRAPH_INIT, &tensor);
    return ow_model(&graph);
}

START_TEST(an_empty_tensor_may_stand_at_the_end_and_not_after_it)
{
    ow model = empty_tensor_at("17");
    dq_ir *ir = NULL;
    ck_assert_int_eq(
        dq_parse_memory(model.bytes, model.size, "t.onnx", &(dq_load_options){.base_dir = dir}, &ir, &err),
        DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "t.onnx: initializer 'w' wants 0 bytes at offset 17 of external data "
                                  "'good.bin', which has 16 bytes");
    model = empty_tensor_at("16");
    ck_assert_msg(dq_parse_memory(model.bytes, model.size, "t.onnx", &(dq_load_options){.base_dir = dir}, &ir,
                                  &err) == DQ_OK,
                  "%s", err.message);
    dq_ir_free(ir);
}
END_TEST

START_TEST(data_in_two_places_is_refused)
{
    static const int64_t dims[] = {4};
    ow graph = {0}, tensor = ow_tensor("w", DQ_INT8, 1, dims);
    entry(&tensor, "location", "good.bin");
    ow_int(&tensor, 14, 1);
    ow_raw(&tensor, 9, "abcd", 4);
    ow_msg(&graph, OW_GRAPH_INIT, &tensor);
    ow model = ow_model(&graph);
    refused(&model, DQ_BAD_MODEL,
            "t.onnx: initializer 'w' has its data both in the model and in an external file");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("parser_external", make_folder, remove_folder);
    add_test(&tests, external_data_is_read_in_place);
    add_loop_test(&tests, external_data_stays_inside, 0, (int)(sizeof attacks / sizeof attacks[0]));
    add_loop_test(&tests, external_data_stays_inside_wherever_a_tensor_stands, 0, 5);
    add_test(&tests, external_data_has_limits_and_needs_a_folder);
    add_test(&tests, an_empty_tensor_may_stand_at_the_end_and_not_after_it);
    add_test(&tests, data_in_two_places_is_refused);
    return test_program_run(&tests);
}
