/* SPDX-License-Identifier: Apache-2.0 */
/* Models from code, through the public header alone. With a path as argument it only saves its model there,
 * for tests/api/check_saved.py. */
#include "public.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *save_path; /* NULL: a temporary file */

static dq_tensor *floats(size_t rank, const int64_t *dims, const float *values)
{
    return tensor_of(DQ_FLOAT, rank, dims, values);
}

/* x[N,2] quantized per column to int8, and dequantized. */
static dq_builder *per_column(const char **codes)
{
    dq_builder *b = NULL;
    const char *names[] = {"N", NULL};
    const int64_t shape[] = {-1, 2};
    dq_tensor *scale = floats(1, (int64_t[]){2}, (float[]){0.5f, 0.25f}), *zero = NULL;
    must(dq_tensor_create(DQ_INT8, 1, (int64_t[]){2}, &zero, &err));
    ((int8_t *)dq_tensor_mutable_data(zero))[1] = 3;
    must(dq_builder_create("per column", &b, &err));
    must(dq_builder_opset(b, "ai.onnx", 21, &err));
    must(dq_builder_input(b, "x", DQ_FLOAT, 2, shape, names, &err));
    must(dq_builder_initializer(b, "scale", scale, &err));
    must(dq_builder_initializer(b, "zero", zero, &err));
    dq_attribute axis = {.size = sizeof(dq_attribute), .name = "axis", .kind = DQ_ATTRIBUTE_INT, .i = -1};
    const char *y = "y";
    must(add_node(b, "", "DequantizeLinear", "back", 3, (const char *[]){"codes", "scale", "zero"}, 1, &y, 1,
                  &axis, &err));
    *codes = "codes";
    must(add_node(b, "", "QuantizeLinear", NULL, 3, (const char *[]){"x", "scale", "zero"}, 1, codes, 1,
                  &axis, &err));
    const char *copy = NULL;
    must(add_node(b, "", "Identity", NULL, 1, (const char *[]){*codes}, 1, &copy, 0, NULL, &err));
    must(dq_builder_output(b, "y", DQ_FLOAT, 2, shape, names, &err));
    must(dq_builder_output(b, copy, DQ_INT8, 2, shape, names, &err));
    *codes = NULL;
    dq_tensor_free(scale);
    dq_tensor_free(zero);
    return b;
}

static void run_and_check(dq_model *model)
{
    dq_session *session = NULL;
    const dq_tensor *y = NULL, *codes = NULL;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_tensor *x = floats(2, (int64_t[]){2, 2}, (float[]){0.75f, 0.3f, -100, 2});
    must(dq_session_create(model, NULL, &session, &err));
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_run(session, &err));
    must(dq_session_get_output(session, "y", &y, &err));
    must(dq_model_output(model, 1, &info, NULL));
    ck_assert_int_eq(dq_model_output(model, 2, &info, NULL), DQ_INVALID_ARGUMENT);
    must(dq_session_get_output(session, info.name, &codes, &err));
    ck_assert_mem_eq(dq_tensor_data(codes), ((int8_t[]){2, 4, -128, 11}), 4);
    ck_assert_mem_eq(dq_tensor_data(y), ((float[]){1, 0.25f, -64, 2}), 4 * sizeof(float));
    dq_session_free(session);
    dq_tensor_free(x);
}

START_TEST(a_built_model_runs_and_comes_back_from_a_file)
{
    const char *codes;
    char temporary[] = "/tmp/dqrun-built-XXXXXX";
    const char *path = save_path;
    if (!path) {
        close(mkstemp(temporary));
        path = temporary;
    }
    dq_model *model = NULL, *again = NULL;
    must(dq_builder_finish(per_column(&codes), NULL, &model, &err));
    run_and_check(model);
    must(dq_model_save(model, path, &err));
    dq_model_free(model);
    must(dq_model_load(path, NULL, &again, &err));
    run_and_check(again);
    dq_model_free(again);
    if (!save_path)
        unlink(path);
}
END_TEST

static void must_refuse(dq_status got, dq_status expected, const char *message)
{
    ck_assert_int_eq(got, expected);
    ck_assert_str_eq(err.message, message);
}

static dq_builder *begin(void)
{
    dq_builder *b = NULL;
    must(dq_builder_create("m", &b, &err));
    must(dq_builder_opset(b, "", 13, &err));
    must(dq_builder_input(b, "x", DQ_FLOAT, DQ_ANY_SHAPE, NULL, NULL, &err));
    return b;
}

START_TEST(what_is_wrong_is_said)
{
    dq_builder *b = begin();
    const char *out = "y";
    must_refuse(dq_builder_opset(b, "ai.onnx", 14, &err), DQ_INVALID_ARGUMENT,
                "m: domain 'ai.onnx' is imported twice");
    must_refuse(dq_builder_input(b, "x", DQ_INT8, 0, NULL, NULL, &err), DQ_BAD_MODEL,
                "m: graph 'm': two inputs are named 'x'");
    must_refuse(add_node(b, "com.microsoft", "QGemm", NULL, 0, NULL, 1, &out, 0, NULL, &err),
                DQ_INVALID_ARGUMENT,
                "m: domain 'com.microsoft' of QGemm is not imported, expected dq_builder_opset first");
    must_refuse(add_node(b, "", NULL, NULL, 0, NULL, 1, &out, 0, NULL, &err), DQ_INVALID_ARGUMENT,
                "dq_builder_node: spec.op_type is NULL");
    must_refuse(dq_builder_value(b, "v", (dq_dtype)99, 0, NULL, NULL, &err), DQ_INVALID_ARGUMENT,
                "m: value 'v': 99 is no element type");
    must_refuse(
        dq_builder_value(b, "v", DQ_FLOAT, DQ_MAX_RANK + 1, (int64_t[DQ_MAX_RANK + 1]){0}, NULL, &err),
        DQ_INVALID_ARGUMENT, "m: value 'v' has rank 17, expected at most 16");
    dq_builder_free(b);
    ck_assert_int_eq(dq_model_check(NULL, NULL, NULL, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_model_input(NULL, 0, NULL, NULL), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_model_output(NULL, 0, NULL, NULL), DQ_INVALID_ARGUMENT);
}
END_TEST

/* The schema's refusals: a session of such a model is refused with the sentence that a file would give. */
static void refused_session(dq_builder *b, dq_status expected, const char *message)
{
    dq_model *model = NULL;
    dq_session *session = NULL;
    must(dq_builder_output(b, "y", DQ_UNDEFINED, DQ_ANY_SHAPE, NULL, NULL, &err));
    must(dq_builder_finish(b, NULL, &model, &err));
    must_refuse(dq_session_create(model, NULL, &session, &err), expected, message);
    dq_model_free(model);
}

START_TEST(schemas_decide_as_for_files)
{
    const char *out = "y";
    dq_builder *b = begin();
    must(add_node(b, "", "QuantizeLinear", "q", 1, (const char *[]){"x"}, 1, &out, 0, NULL, &err));
    refused_session(b, DQ_BAD_MODEL, "m: node 'q' (QuantizeLinear-13): has 1 input, expected 2 to 3");
    b = begin();
    dq_attribute wrong = {.size = sizeof(dq_attribute), .name = "axes", .kind = DQ_ATTRIBUTE_INT};
    must(add_node(b, "", "Identity", "i", 1, (const char *[]){"x"}, 1, &out, 1, &wrong, &err));
    dq_model *model = NULL;
    dq_session *session = NULL;
    must(dq_builder_output(b, "y", DQ_UNDEFINED, DQ_ANY_SHAPE, NULL, NULL, &err));
    must(dq_builder_finish(b, NULL, &model, &err));
    ck_assert_int_eq(dq_session_create(model, NULL, &session, &err), DQ_BAD_MODEL);
    ck_assert_ptr_nonnull(strstr(err.message, "m: node 'i' (Identity-13): "));
    ck_assert_ptr_nonnull(strstr(err.message, "axes"));
    dq_model_free(model);
}
END_TEST

START_TEST(links_are_checked_at_the_end)
{
    dq_builder *b = begin();
    dq_model *model = NULL;
    must(dq_builder_output(b, "nothing", DQ_FLOAT, DQ_ANY_SHAPE, NULL, NULL, &err));
    must_refuse(dq_builder_finish(b, NULL, &model, &err), DQ_BAD_MODEL,
                "m: graph 'm': output 'nothing' is given by no node, input or initializer");
}
END_TEST

START_TEST(types_by_name)
{
    ck_assert_int_eq(dq_dtype_from_name("int4"), DQ_INT4);
    ck_assert_int_eq(dq_dtype_from_name("int"), DQ_UNDEFINED);
    ck_assert_int_eq(dq_dtype_from_name(NULL), DQ_UNDEFINED);
}
END_TEST

START_TEST(saving_is_whole_or_not_at_all)
{
    const char *codes;
    dq_model *model = NULL;
    must(dq_builder_finish(per_column(&codes), NULL, &model, &err));
    must_refuse(dq_model_save(model, "/nonexistent/m.onnx", &err), DQ_IO,
                "/nonexistent/m.onnx: cannot be written: No such file or directory");
    char folder[] = "/tmp/dqrun-built-XXXXXX", pipe[sizeof folder + 8], expected[sizeof pipe + 32];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    snprintf(expected, sizeof expected, "%s: is not a regular file", pipe);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    must_refuse(dq_model_save(model, pipe, &err), DQ_IO, expected);
    unlink(pipe);
    rmdir(folder);
    dq_model_free(model);
}
END_TEST

START_TEST(saving_through_a_link_keeps_it)
{
    const char *codes;
    char folder[] = "/tmp/dqrun-built-XXXXXX", file[sizeof folder + 8], link[sizeof folder + 8];
    dq_model *model = NULL, *again = NULL;
    struct stat info;
    must(dq_builder_finish(per_column(&codes), NULL, &model, &err));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    must(dq_model_save(model, file, &err));
    ck_assert_int_eq(truncate(file, 0), 0);
    ck_assert_int_eq(symlink("file", link), 0);
    must(dq_model_save(model, link, &err));
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    must(dq_model_load(file, NULL, &again, &err));
    dq_model_free(again);
    dq_model_free(model);
    unlink(link);
    unlink(file);
    rmdir(folder);
}
END_TEST

START_TEST(what_is_no_constant_is_refused)
{
    dq_builder *b = NULL;
    dq_tensor *strings = NULL, *sequence = NULL;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    must(dq_tensor_create(DQ_STRING, 1, (int64_t[]){2}, &strings, &err));
    must(dq_sequence_create(DQ_STRING, 1, &strings, &sequence, &err));
    must(dq_builder_create("constants", &b, &err));
    must_refuse(dq_builder_initializer(b, "s", sequence, &err), DQ_INVALID_ARGUMENT,
                "constants: a constant is a sequence or optional, expected a tensor");
    dq_builder_free(b);
    dq_tensor_free(sequence);
    const char *in = "x", *out = NULL, *list[] = {"a", NULL};
    const dq_attribute attribute = {.size = sizeof(dq_attribute),
                                    .name = "names",
                                    .kind = DQ_ATTRIBUTE_STRINGS,
                                    .strings = list,
                                    .count = 2};
    must(dq_builder_create("strings", &b, &err));
    must(dq_builder_opset(b, "", 21, &err));
    must_refuse(add_node(b, "", "Relu", NULL, 1, &in, 1, &out, 1, &attribute, &err), DQ_INVALID_ARGUMENT,
                "strings: attribute 'names' has no value of kind 8");
    dq_builder_free(b);
    ck_assert_int_eq(dq_model_input(NULL, 0, &info, NULL), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_model_output(NULL, 0, &info, NULL), DQ_INVALID_ARGUMENT);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        save_path = argv[1];
    test_program tests = test_program_begin("builder", NULL, NULL);
    add_test(&tests, a_built_model_runs_and_comes_back_from_a_file);
    add_test(&tests, what_is_wrong_is_said);
    add_test(&tests, schemas_decide_as_for_files);
    add_test(&tests, links_are_checked_at_the_end);
    add_test(&tests, types_by_name);
    add_test(&tests, saving_is_whole_or_not_at_all);
    add_test(&tests, saving_through_a_link_keeps_it);
    add_test(&tests, what_is_no_constant_is_refused);
    return test_program_run(&tests);
}
