/* SPDX-License-Identifier: Apache-2.0 */
/* tools/io: .npy, .npz and .pb at the level of their functions: what the tests of the command line cannot
 * reach. */
#include "io/npz.h"
#include "io/pb.h"
#include "io/text.h"
#include "support/test_program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct memory {
    const uint8_t *at;
    size_t left, largest; /* the most that one read asked for */
} memory;

static dq_status read_memory(void *arg, void *buffer, size_t size, dq_error *err)
{
    memory *m = arg;
    m->largest = size > m->largest ? size : m->largest;
    if (size > m->left)
        return io_fail(err, DQ_BAD_INPUT, "is cut off");
    memcpy(buffer, m->at, size);
    m->at += size;
    m->left -= size;
    return DQ_OK;
}

/* A version 1 header with this literal and nothing after it, in a source that claims `size` bytes after the
 * header. */
static dq_status read_header(const char *literal, uint64_t size, npy_header *header, dq_error *err)
{
    uint8_t bytes[512];
    size_t length = strlen(literal);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)length;
    bytes[9] = 0;
    memcpy(bytes + 10, literal, length);
    memory m = {bytes, 10 + length, 0};
    io_source source = {.read = read_memory, .arg = &m, .size = 10 + length + size};
    return npy_read_header(&source, header, err);
}

START_TEST(header_fields)
{
    npy_header h;
    dq_error err;
    ck_assert_int_eq(
        read_header("{'descr': '>i2', 'fortran_order': True, 'shape': (3, 4), }\n", 24, &h, &err), DQ_OK);
    ck_assert(h.big_endian && h.fortran && h.kind == 'i');
    ck_assert_int_eq(h.dtype, DQ_INT16);
    ck_assert_uint_eq(h.rank, 2);
    ck_assert_int_eq(h.dims[0], 3);
    ck_assert_int_eq(h.dims[1], 4);
    ck_assert_uint_eq(h.count, 12);
    ck_assert_uint_eq(h.data_size, 24);
}
END_TEST

START_TEST(type_that_is_wanted)
{
    npy_header h;
    dq_error err;
    ck_assert_int_eq(read_header("{'descr': '|V1', 'fortran_order': False, 'shape': ()}", 1, &h, &err),
                     DQ_OK);
    ck_assert_int_eq(npy_type(&h, DQ_FLOAT8E4M3FN), DQ_FLOAT8E4M3FN);
    ck_assert_int_eq(npy_type(&h, DQ_INT2), DQ_INT2);
    ck_assert_int_eq(npy_type(&h, DQ_FLOAT6E2M3), DQ_FLOAT6E2M3);
    ck_assert_int_eq(npy_type(&h, DQ_BFLOAT16), DQ_UNDEFINED);
    ck_assert_int_eq(npy_type(&h, DQ_UINT8), DQ_UNDEFINED);
    ck_assert_int_eq(npy_type(&h, DQ_STRING), DQ_UNDEFINED);
    ck_assert_int_eq(npy_type(&h, DQ_UNDEFINED), DQ_UNDEFINED);
    ck_assert_int_eq(read_header("{'descr': '<f1', 'fortran_order': False, 'shape': ()}", 1, &h, &err),
                     DQ_OK);
    ck_assert_int_eq(npy_type(&h, DQ_FLOAT8E5M2), DQ_FLOAT8E5M2);
    ck_assert_int_eq(read_header("{'descr': '|i1', 'fortran_order': False, 'shape': ()}", 1, &h, &err),
                     DQ_OK);
    ck_assert_int_eq(npy_type(&h, DQ_INT4), DQ_INT4);
    ck_assert_int_eq(npy_type(&h, DQ_FLOAT4E2M1), DQ_INT8);
    ck_assert_int_eq(npy_type(&h, DQ_FLOAT), DQ_INT8);
}
END_TEST

START_TEST(limit_before_memory)
{
    npy_header h;
    dq_error err;
    dq_tensor *t = NULL;
    memory m = {NULL, 0, 0};
    io_source source = {.read = read_memory, .arg = &m};
    ck_assert_int_eq(read_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1125899906842624,)}",
                                 UINT64_C(1) << 53, &h, &err),
                     DQ_OK);
    ck_assert_int_eq(npy_read_data(&source, &h, DQ_UNDEFINED, 1 << 20, &t, &err), DQ_OUT_OF_MEMORY);
    ck_assert_str_eq(err.message,
                     "has type double[1125899906842624], over the limit of 1048576 bytes for one tensor");
    /* Strings without characters take no bytes in the file, but memory. */
    ck_assert_int_eq(read_header("{'descr': '<U0', 'fortran_order': False, 'shape': (100000,)}", 0, &h, &err),
                     DQ_OK);
    ck_assert_int_eq(npy_read_data(&source, &h, DQ_UNDEFINED, 1 << 20, &t, &err), DQ_OUT_OF_MEMORY);
    ck_assert_uint_eq(m.largest, 0);
    ck_assert_ptr_null(t);
}
END_TEST

START_TEST(read_that_fails_in_the_middle)
{
    npy_header h;
    dq_error err;
    dq_tensor *t = NULL;
    uint8_t few[5] = {0};
    for (int fortran = 0; fortran < 2; fortran++) {
        memory m = {few, sizeof few, 0};
        io_source source = {.read = read_memory, .arg = &m};
        ck_assert_int_eq(read_header(fortran ? "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}"
                                             : "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
                                     16, &h, &err),
                         DQ_OK);
        ck_assert_int_eq(npy_read_data(&source, &h, DQ_UNDEFINED, IO_TENSOR_LIMIT, &t, &err), DQ_BAD_INPUT);
        ck_assert_str_eq(err.message, "is cut off");
        ck_assert_ptr_null(t);
    }
}
END_TEST

START_TEST(packed_bits)
{
    for (unsigned bits = 2; bits <= 6; bits += 2) {
        uint8_t bytes[16];
        memset(bytes, 0xFF, sizeof bytes);
        for (size_t i = 0; i < 17; i++)
            io_put_bits(bytes, bits, i, (unsigned)i * 7);
        for (size_t i = 0; i < 17; i++)
            ck_assert_uint_eq(io_get_bits(bytes, bits, i), i * 7 & ((1u << bits) - 1));
        size_t end = (17 * bits + 7) / 8;
        ck_assert_uint_eq(bytes[end], 0xFF);
    }
    uint8_t six[3] = {0};
    for (unsigned i = 0; i < 4; i++)
        io_put_bits(six, 6, i, i + 1);
    ck_assert_uint_eq(six[0], 1 | 2 << 6);
    ck_assert_uint_eq(six[1], 3 << 4);
    ck_assert_uint_eq(six[2], 4 << 2);
}
END_TEST

START_TEST(counts_that_overflow)
{
    size_t n = 0;
    const int64_t huge[] = {INT64_MAX, INT64_MAX}, empty[] = {0, INT64_MAX, 3}, bad[] = {0, -1};
    ck_assert(!io_count(2, huge, &n));
    ck_assert(io_count(2, empty, &n) && n == 0);
    ck_assert(!io_count(2, bad, &n));
    ck_assert(io_count(0, NULL, &n) && n == 1);
    ck_assert(!io_packed_size(DQ_DOUBLE, SIZE_MAX / 2, &n));
    ck_assert(io_packed_size(DQ_FLOAT6E2M3, 5, &n) && n == 4);
}
END_TEST

START_TEST(long_messages_are_cut_between_characters)
{
    dq_error err;
    char text[1200];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xA4", 2);
    for (size_t skip = 0; skip < 2; skip++) {
        text[sizeof text - 2] = 0;
        io_fail(&err, DQ_BAD_INPUT, "%s%s", skip ? "x" : "", text);
        size_t length = strlen(err.message);
        ck_assert_uint_lt(length, sizeof err.message);
        ck_assert_str_eq(err.message + length - 3, "\xE2\x80\xA6");
        ck_assert_str_eq(err.message + length - 5, "\xC3\xA4\xE2\x80\xA6");
    }
}
END_TEST

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

START_TEST(written_whole)
{
    char folder[] = "dqrun-npz-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.npz", folder);
    const int64_t dims[] = {1000};
    dq_tensor *t = NULL;
    dq_error err;
    const char *names[] = {"a/b"};
    ck_assert_int_eq(dq_tensor_create(DQ_FLOAT, 1, dims, &t, &err), DQ_OK);
    const dq_tensor *tensors[] = {t};
    ck_assert_int_eq(npz_write(path, 1, names, tensors, &err), DQ_OK);
    ck_assert_int_eq(entries(folder), 1);
    npz *archive = NULL;
    ck_assert_int_eq(npz_open(path, &archive, &err), DQ_OK);
    ck_assert_uint_eq(npz_count(archive), 1);
    ck_assert_str_eq(npz_name(archive, 0), "a/b");
    npz_close(archive);
    dq_tensor_free(t);
    unlink(path);
    rmdir(folder);
}
END_TEST

/* Three uint2 with the bits behind them set: in raw_data, and as an int32. */
START_TEST(bits_behind_the_last_element_are_cleared)
{
    static const char *const files[] = {"\x08\x03\x10\x19\x4a\x01\xe4", "\x08\x03\x10\x19\x2a\x02\xe4\x01"};
    static const size_t sizes[] = {7, 8};
    for (int i = 0; i < 2; i++) {
        dq_tensor *t = NULL;
        char *name = NULL;
        dq_error err;
        ck_assert_msg(pb_read(files[i], sizes[i], 1 << 20, &name, &t, &err) == DQ_OK, "%s", err.message);
        ck_assert_int_eq(dq_tensor_dtype(t), DQ_UINT2);
        ck_assert_int_eq(*(const uint8_t *)dq_tensor_data(t), 0x24);
        dq_tensor_free(t);
        free(name);
    }
}
END_TEST

START_TEST(a_list_that_grows_keeps_its_elements)
{
    size_t *list = NULL, capacity = 0;
    for (size_t count = 0; count < 1000; count++) {
        ck_assert_ptr_nonnull(list = io_room(list, count, &capacity, sizeof *list));
        ck_assert_uint_gt(capacity, count);
        list[count] = count;
    }
    for (size_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(list[i], i);
    ck_assert_uint_le(capacity, 2 * 1000);
    free(list);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("io", NULL, NULL);
    add_test(&tests, header_fields);
    add_test(&tests, type_that_is_wanted);
    add_test(&tests, limit_before_memory);
    add_test(&tests, read_that_fails_in_the_middle);
    add_test(&tests, packed_bits);
    add_test(&tests, counts_that_overflow);
    add_test(&tests, long_messages_are_cut_between_characters);
    add_test(&tests, written_whole);
    add_test(&tests, a_list_that_grows_keeps_its_elements);
    add_test(&tests, bits_behind_the_last_element_are_cleared);
    return test_program_run(&tests);
}
