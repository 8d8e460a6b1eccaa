/* SPDX-License-Identifier: Apache-2.0 */
/* Files of packed weights: dq_session_save_packed and dq_load_options.packed_path. */
#include "counted.h"
#include "ops/packed_file.h"
#include "ops/packers.h"
#include "small_model.h"
#include "support/packed_bytes.h"
#include "support/random.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { ROWS = 70, DEEP = 256, WIDE = 40, CHANNELS = 8, SIDE = 14, RESULTS = 1 << 17 };

static char folder[] = "/tmp/dqrun-packed-XXXXXX", path[64];

static uint8_t x[ROWS * DEEP], image[CHANNELS * SIDE * SIDE];
static int8_t w[DEEP * WIDE], kernel[CHANNELS * CHANNELS * 9];
static float w_float[DEEP * WIDE], x_float[ROWS * DEEP], scales[WIDE * DEEP / 32];
static uint8_t nibbles[WIDE * DEEP / 2];
static size_t extra; /* elements of a constant that nothing reads */

static void set_up(void)
{
    uint64_t state = 1;
    strcpy(folder, "/tmp/dqrun-packed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.packed", folder);
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)random_bits(&state), x_float[i] = (float)x[i] / 256;
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)random_bits(&state);
    /* mostly small weights in long columns, so that AVX2 splits them */
    for (size_t i = 0; i < sizeof w; i++)
        w[i] = (int8_t)((int)(random_bits(&state) % 41) - 20 + (i % 23 ? 0 : 100)), w_float[i] = w[i];
    for (size_t i = 0; i < sizeof kernel; i++)
        kernel[i] = (int8_t)((int)(random_bits(&state) % 61) - 30 + (i % 17 ? 0 : 95));
    for (size_t i = 0; i < sizeof nibbles; i++)
        nibbles[i] = (uint8_t)random_bits(&state);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        scales[i] = 0.5f + (float)(i % 7);
}

static void clean_up(void)
{
    tear_down();
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* no temporary file was left */
}

static void add_matmul_nbits(void)
{
    const char *ins[] = {"xf", "nibbles", "scales"}, *out = "y3";
    const dq_attribute attributes[] = {
        {.size = sizeof(dq_attribute), .name = "K", .kind = DQ_ATTRIBUTE_INT, .i = DEEP},
        {.size = sizeof(dq_attribute), .name = "N", .kind = DQ_ATTRIBUTE_INT, .i = WIDE},
        {.size = sizeof(dq_attribute), .name = "bits", .kind = DQ_ATTRIBUTE_INT, .i = 4},
        {.size = sizeof(dq_attribute), .name = "block_size", .kind = DQ_ATTRIBUTE_INT, .i = 32}};
    constant("nibbles", DQ_UINT8, 3, (int64_t[]){WIDE, DEEP / 32, 16}, nibbles);
    constant("scales", DQ_FLOAT, 1, (int64_t[]){WIDE * DEEP / 32}, scales);
    must(add_node(b, "com.microsoft", "MatMulNBits", "y3", 3, ins, 1, &out, 4, attributes, &err));
}

static dq_status make_model(const dq_load_options *options)
{
    begin();
    input("x", DQ_UINT8, 2, (int64_t[]){ROWS, DEEP});
    input("image", DQ_UINT8, 4, (int64_t[]){1, CHANNELS, SIDE, SIDE});
    input("xf", DQ_FLOAT, 2, (int64_t[]){ROWS, DEEP});
    constant("w", DQ_INT8, 2, (int64_t[]){DEEP, WIDE}, w);
    constant("kernel", DQ_INT8, 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3}, kernel);
    constant("wf", DQ_FLOAT, 2, (int64_t[]){DEEP, WIDE}, w_float);
    constant("extra", DQ_FLOAT, 1, (int64_t[]){(int64_t)extra}, scales);
    node("MatMulInteger", "x", "w", "y0");
    node("ConvInteger", "image", "kernel", "y1");
    node("MatMul", "xf", "wf", "y2");
    add_matmul_nbits();
    output("y0");
    output("y1");
    output("y2");
    output("y3");
    return dq_builder_finish(b, options, &model, &err);
}

static dq_status open_at(const char *isa)
{
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    options.threads = 1;
    options.isa = isa;
    return dq_session_create(model, &options, &session, &err);
}

static void set_inputs(void)
{
    must(dq_session_set_input(session, "x", over(DQ_UINT8, 2, (int64_t[]){ROWS, DEEP}, x), &err));
    must(dq_session_set_input(session, "image",
                              over(DQ_UINT8, 4, (int64_t[]){1, CHANNELS, SIDE, SIDE}, image), &err));
    must(dq_session_set_input(session, "xf", over(DQ_FLOAT, 2, (int64_t[]){ROWS, DEEP}, x_float), &err));
}

/* Hash of all outputs of a run. */
static dq_hash run(void)
{
    static const char *const names[] = {"y0", "y1", "y2", "y3"};
    dq_hash all[4];
    must(dq_session_run(session, &err));
    for (size_t i = 0; i < 4; i++) {
        const dq_tensor *y = NULL;
        must(dq_session_get_output(session, names[i], &y, &err));
        all[i] = dq_hash_bytes(dq_tensor_data(y), dq_tensor_size(y));
    }
    return dq_hash_bytes(all, sizeof all);
}

static dq_status load(void)
{
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    options.packed_path = path;
    return make_model(&options);
}

/* Writes the file for a level, and returns what the model computes. */
static dq_hash save(const char *isa)
{
    must(make_model(NULL));
    must(open_at(isa));
    set_inputs();
    must(dq_session_prepare(session, &err));
    must(dq_session_save_packed(session, path, &err));
    const dq_hash expected = run();
    tear_down();
    return expected;
}

/* ---- The file's bytes -----------------------------------------------------------------------------------
 */

static packed_bytes file;

static void read_file(void)
{
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
    file.size = (size_t)ftell(stream);
    rewind(stream);
    file.bytes = realloc(file.bytes, file.size);
    ck_assert_uint_eq(fread(file.bytes, 1, file.size, stream), file.size);
    fclose(stream);
}

static void write_file(const void *from, size_t count)
{
    FILE *stream = fopen(path, "wb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(from, 1, count, stream), count);
    ck_assert_int_eq(fclose(stream), 0);
}

static void refuses(const char *part)
{
    dq_status status = load();
    ck_assert_msg(status == DQ_BAD_INPUT && strstr(err.message, part) && strstr(err.message, path),
                  "status %u, message '%s', expected '%s'", status, err.message, part);
    ck_assert_ptr_null(model);
    tear_down();
}

/* ---- Tests ----------------------------------------------------------------------------------------------
 */

START_TEST(results_are_the_same_and_nothing_is_packed)
{
    bool available = false;
    const char *isa = dq_isa_name((size_t)_i, &available);
    if (!isa || !available)
        return;
    counted c = {0};
    const dq_allocator allocator = counted_allocator(&c);
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    const dq_hash expected = save(isa);
    options.packed_path = path;
    options.allocator = &allocator;
    must(make_model(&options));
    must(open_at(isa));
    set_inputs();
    const size_t before = c.bytes;
    must(dq_session_prepare(session, &err));
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    must(dq_session_memory(session, &memory, &err));
    ck_assert_uint_gt(memory.weight_bytes, sizeof w + sizeof kernel + sizeof w_float + sizeof nibbles);
    ck_assert_uint_lt(c.bytes - before, memory.weight_bytes / 2);
    ck_assert_int_eq(dq_hash_compare(run(), expected), 0);
    /* A second file has the same bytes: forms from a file are written again. */
    read_file();
    unsigned char *first = malloc(file.size);
    memcpy(first, file.bytes, file.size);
    must(dq_session_save_packed(session, path, &err));
    read_file();
    ck_assert_mem_eq(first, file.bytes, file.size);
    free(first);
    tear_down();
    ck_assert_uint_eq(c.live, 0);
}
END_TEST

START_TEST(another_model_is_refused)
{
    save(NULL);
    w[5] ^= 1;
    refuses("was packed for another model: hash ");
    w[5] ^= 1;
    scales[3] += 1;
    refuses(" of 'scales', expected ");
    scales[3] -= 1;
    extra = 1;
    refuses(" of the types of its constants, expected ");
    extra = 0;
    must(load());
}
END_TEST

START_TEST(another_level_is_refused)
{
    save("c");
    must(load());
    bool available = false;
    if (!dq_isa_name(1, &available) || !available)
        return;
    ck_assert_int_eq(open_at(NULL), DQ_BAD_INPUT);
    ck_assert_msg(strstr(err.message, "was packed for ISA level c (features 0x1), expected") != NULL, "%s",
                  err.message);
    must(open_at("c"));
}
END_TEST

START_TEST(another_version_is_refused)
{
    save(NULL);
    read_file();
    memcpy(file.bytes + AT_VERSION, "0.0.9\0\0", 8);
    packed_seal(&file);
    write_file(file.bytes, file.size);
    refuses("was packed by dqrun 0.0.9, expected ");
    memcpy(file.bytes + AT_VERSION, "\033[1mred", 8);
    packed_seal(&file);
    write_file(file.bytes, file.size);
    refuses("was packed by dqrun ?[1mred, expected ");
    char part[64];
    snprintf(part, sizeof part, "has version %d of the format, expected %d", DQ_PACKED_FORMAT + 1,
             DQ_PACKED_FORMAT);
    file.bytes[AT_FORMAT]++;
    write_file(file.bytes, file.size);
    refuses(part);
    file.bytes[8] ^= 1;
    write_file(file.bytes, file.size);
    refuses("has byte order mark 0x01020305, expected 0x01020304");
}
END_TEST

START_TEST(other_files_are_refused)
{
    write_file("", 0);
    refuses("is not a file of packed weights");
    write_file("dqpacked", 8);
    refuses("has 8 bytes, expected a header of 120: the file was cut off");
    write_file("not for this, but long enough for a header … ……………………………………………………………………………………………………", 120);
    refuses("is not a file of packed weights");
    unlink(path);
    refuses("cannot be opened");
}
END_TEST

START_TEST(a_file_that_was_cut_off_is_refused)
{
    save(NULL);
    read_file();
    const size_t keys_end = packed_number(&file, AT_KEYS_END, 8);
    for (size_t n = 0; n < file.size; n += n < keys_end + 70 || n > file.size - 70 ? 1 : 997) {
        write_file(file.bytes, n);
        refuses(n < 8 ? "is not a file" : "the file was cut off");
    }
    unsigned char *longer = calloc(1, file.size + 1);
    memcpy(longer, file.bytes, file.size);
    write_file(longer, file.size + 1);
    refuses("the file was changed");
    free(longer);
}
END_TEST

START_TEST(every_changed_byte_is_found)
{
    save(NULL);
    read_file();
    const size_t keys_end = packed_number(&file, AT_KEYS_END, 8);
    for (size_t i = 0; i < file.size; i += i < keys_end + 70 ? 1 : 53) {
        file.bytes[i] ^= (unsigned char)(1 << i % 8);
        write_file(file.bytes, file.size);
        refuses("");
        file.bytes[i] ^= (unsigned char)(1 << i % 8);
    }
    write_file(file.bytes, file.size);
    must(load());
}
END_TEST

/* Loads the file, and runs the model if it is accepted: results are wrong, but memory is safe. */
static bool survives(const char *isa)
{
    dq_status status = load();
    if (status == DQ_OK)
        status = open_at(isa);
    if (status == DQ_OK) {
        set_inputs();
        status = dq_session_run(session, &err);
    }
    ck_assert(status == DQ_OK || status == DQ_BAD_INPUT);
    tear_down();
    return status == DQ_OK;
}

/* Changed bytes under checksums that are right. Forms get random bytes, too: they are most of the
 * file, and few of them are offsets, which come first in a form. */
START_TEST(harmful_files_are_refused_or_harmless)
{
    enum { TRIALS = 400 };
    bool available = false;
    const char *isa = dq_isa_name((size_t)_i, &available);
    uint64_t state = 7;
    size_t ran = 0;
    if (!isa || !available)
        return;
    save(isa);
    read_file();
    const size_t keys_end = packed_number(&file, AT_KEYS_END, 8), count = packed_number(&file, AT_COUNT, 4);
    unsigned char *original = malloc(file.size);
    memcpy(original, file.bytes, file.size);
    for (int trial = 0; trial < TRIALS; trial++) {
        const size_t changes = 1 + random_bits(&state) % 8;
        size_t length, form = packed_form(&file, random_bits(&state) % count, &length);
        for (size_t i = 0; i < changes; i++) {
            const uint64_t r = random_bits(&state);
            const size_t at = trial % 4 == 0   ? HEADER + r % (keys_end - HEADER)
                              : trial % 4 == 1 ? form + r % length
                              : trial % 4 == 2 ? form + r % (length < 512 ? length : 512)
                                               : form + length - 1 - r % (length < 4096 ? length : 4096);
            file.bytes[at] = (unsigned char)(r >> 40);
        }
        packed_seal(&file);
        write_file(file.bytes, file.size);
        ran += survives(isa);
        memcpy(file.bytes, original, file.size);
    }
    free(original);
    ck_assert_uint_gt(ran, 0);
    ck_assert_uint_lt(ran, TRIALS);
}
END_TEST

/* Writes the file without the last 64 bytes of form i; sizes, offsets and checksums agree with it. */
static void write_without_end(size_t i)
{
    packed_bytes cut = {.bytes = calloc(1, file.size)};
    size_t length;
    packed_form(&file, i, &length);
    packed_resize(&file, i, length - 64, &cut);
    packed_seal(&cut);
    write_file(cut.bytes, cut.size);
    free(cut.bytes);
}

START_TEST(a_form_without_its_end_is_refused)
{
    bool available = false;
    const char *isa = dq_isa_name((size_t)_i, &available);
    if (!isa || !available)
        return;
    save(isa);
    read_file();
    for (size_t i = 0; i < packed_number(&file, AT_COUNT, 4); i++) {
        write_without_end(i);
        must(load());
        must(open_at(isa));
        set_inputs();
        ck_assert_int_eq(dq_session_prepare(session, &err), DQ_BAD_INPUT);
        ck_assert_msg(strstr(err.message, "is not one of dqrun's") != NULL, "%s", err.message);
        tear_down();
    }
}
END_TEST

/* The kernel's sums become int32_t, which holds those of 8-bit weights. */
START_TEST(depthwise_weights_of_more_than_8_bits_are_refused)
{
    static const float wrong[] = {256, -256, INFINITY, -INFINITY, NAN};
    const dq_packer *packer = dq_packer_of(dq_pack_dwconv_nchwc_s8);
    float weights[16] = {255, -255};
    ck_assert_uint_eq(packer->used(weights, sizeof weights, sizeof weights, NULL), sizeof weights);
    ck_assert_uint_eq(packer->used(weights, sizeof weights - 4, sizeof weights, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weights[15] = wrong[i];
        ck_assert_uint_eq(packer->used(weights, sizeof weights, sizeof weights, NULL), 0);
    }
}
END_TEST

static int refuse_to_write(void *arg, const void *from, size_t count)
{
    (void)from;
    return (*(size_t *)arg += count) > 2000 ? 7 : 0;
}

START_TEST(failed_writes_are_reported)
{
    size_t written = 0;
    must(make_model(NULL));
    must(open_at(NULL));
    set_inputs();
    must(dq_session_prepare(session, &err));
    ck_assert_int_eq(dq_session_save_packed_write(session, refuse_to_write, &written, &err), DQ_IO);
    ck_assert_msg(strstr(err.message, "the write function returned 7 at byte ") != NULL, "%s", err.message);
    ck_assert_int_eq(dq_session_save_packed(session, "/nowhere/m.packed", &err), DQ_IO);
    ck_assert_int_eq(dq_session_save_packed(session, folder, &err), DQ_IO);
    ck_assert_int_eq(dq_session_save_packed(session, NULL, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_session_save_packed(NULL, path, &err), DQ_INVALID_ARGUMENT);
    ck_assert_int_eq(dq_session_save_packed_write(session, NULL, NULL, &err), DQ_INVALID_ARGUMENT);
}
END_TEST

/* Without a plan nothing is packed: the file is empty, and weights are packed as always. */
START_TEST(a_file_may_lack_forms)
{
    must(make_model(NULL));
    must(open_at(NULL));
    must(dq_session_save_packed(session, path, &err));
    set_inputs();
    const dq_hash expected = run();
    tear_down();
    read_file();
    ck_assert_uint_eq(packed_number(&file, AT_COUNT, 4), 0);
    must(load());
    must(open_at(NULL));
    set_inputs();
    ck_assert_int_eq(dq_hash_compare(run(), expected), 0);
}
END_TEST

int main(void)
{
    enum { LEVELS = 8 };
    test_program tests = test_program_begin("packed_weights", set_up, clean_up);
    add_loop_test(&tests, results_are_the_same_and_nothing_is_packed, 0, LEVELS);
    add_test(&tests, another_model_is_refused);
    add_test(&tests, another_level_is_refused);
    add_test(&tests, another_version_is_refused);
    add_test(&tests, other_files_are_refused);
    add_test(&tests, a_file_that_was_cut_off_is_refused);
    add_test(&tests, every_changed_byte_is_found);
    add_loop_test(&tests, harmful_files_are_refused_or_harmless, 0, LEVELS);
    add_loop_test(&tests, a_form_without_its_end_is_refused, 0, LEVELS);
    add_test(&tests, depthwise_weights_of_more_than_8_bits_are_refused);
    add_test(&tests, failed_writes_are_reported);
    add_test(&tests, a_file_may_lack_forms);
    return test_program_run(&tests);
}
