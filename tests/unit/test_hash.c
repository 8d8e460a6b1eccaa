/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by the examples of FIPS 180-4, and the bytes of values that docs/hash.md defines. */
#include "io/hash.h"
#include "support/test_program.h"

#include <stdlib.h>
#include <string.h>

static void check_bytes(const void *bytes, size_t size, const char *expected)
{
    /* In parts of every size around a block's, too. */
    for (size_t part = size ? size : 1; part; part = part > 130 ? 130 : part - 1) {
        char text[SHA256_TEXT];
        sha256 hash;
        sha256_start(&hash);
        for (size_t at = 0; at < size; at += part)
            sha256_add(&hash, (const char *)bytes + at, at + part < size ? part : size - at);
        ck_assert_str_eq(sha256_finish(&hash, text), expected);
    }
}

/* The examples that NIST publishes with FIPS 180-4: one block, two blocks, a million letters; and no bytes.
 */
START_TEST(examples_of_the_standard)
{
    check_bytes("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    ck_assert_ptr_nonnull(million);
    memset(million, 'a', 1000000);
    char text[SHA256_TEXT];
    sha256 hash;
    sha256_start(&hash);
    for (size_t at = 0; at < 1000000; at += 1000)
        sha256_add(&hash, million + at, 1000);
    ck_assert_str_eq(sha256_finish(&hash, text),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
    check_bytes("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

/* The padding takes a second block from 56 bytes on. */
START_TEST(ends_of_a_block)
{
    char bytes[130];
    memset(bytes, 'x', sizeof bytes);
    check_bytes(bytes, 55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
    check_bytes(bytes, 56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
    check_bytes(bytes, 63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
    check_bytes(bytes, 64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
    check_bytes(bytes, 65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
    check_bytes(bytes, 119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
    check_bytes(bytes, 120, "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
    check_bytes(bytes, 128, "24da1b81d0b16df6428eee73c69fcb2a93c76bc6df706f0c6670fe6bfe800464");
}
END_TEST

static void check_value(const dq_tensor *value, const void *bytes, size_t size)
{
    char text[SHA256_TEXT], expected[SHA256_TEXT];
    sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, bytes, size);
    ck_assert_str_eq(io_hash(value, text), sha256_finish(&hash, expected));
}

static dq_tensor *wrap(dq_dtype dtype, size_t rank, const int64_t *dims, const void *data, size_t size)
{
    dq_tensor *t = NULL;
    ck_assert_int_eq(dq_tensor_wrap_const(dtype, rank, dims, data, size, &t, NULL), DQ_OK);
    return t;
}

#define CHECK(value, bytes) check_value(value, bytes, sizeof(bytes) - 1)

START_TEST(numbers)
{
    static const int64_t dims[] = {1, 2}, three[] = {3}, none[] = {0, 4};
    const float floats[] = {1.0f, -2.5f};
    const int64_t integer = 0x0102030405060708;
    const uint8_t nibbles[] = {0x21, 0xf3}; /* the last element leaves four bits unused */
    dq_tensor *t = wrap(DQ_FLOAT, 2, dims, floats, sizeof floats);
    CHECK(t, "float[1,2]\n\0\0\x80\x3f\0\0\x20\xc0");
    dq_tensor_free(t);
    t = wrap(DQ_INT64, 0, NULL, &integer, sizeof integer);
    CHECK(t, "int64[]\n\x08\x07\x06\x05\x04\x03\x02\x01");
    dq_tensor_free(t);
    t = wrap(DQ_UINT4, 1, three, nibbles, sizeof nibbles);
    CHECK(t, "uint4[3]\n\x01\x02\x03");
    dq_tensor_free(t);
    t = wrap(DQ_UINT8, 2, none, nibbles, 0);
    CHECK(t, "uint8[0,4]\n");
    dq_tensor_free(t);
}
END_TEST

/* Sign and payload of a NaN mean nothing; infinities and the signs of zeros do. */
START_TEST(not_a_number)
{
    static const int64_t three[] = {3};
    const uint32_t floats[] = {0xffc00001, 0x7f800001, 0xff800000};
    const uint16_t halves[] = {0xfe00, 0x8000, 0xfc00};
    const uint64_t doubles[] = {0xfff8000000000000, 0x7ff0000000000001, 0x8000000000000000};
    const uint8_t bytes[] = {0xff, 0xfe, 0x80};
    dq_tensor *t = wrap(DQ_FLOAT, 1, three, floats, sizeof floats);
    CHECK(t, "float[3]\n\0\0\xc0\x7f\0\0\xc0\x7f\0\0\x80\xff");
    dq_tensor_free(t);
    t = wrap(DQ_FLOAT16, 1, three, halves, sizeof halves);
    CHECK(t, "float16[3]\n\0\x7e\0\x80\0\xfc");
    dq_tensor_free(t);
    t = wrap(DQ_DOUBLE, 1, three, doubles, sizeof doubles);
    CHECK(t, "double[3]\n\0\0\0\0\0\0\xf8\x7f\0\0\0\0\0\0\xf8\x7f\0\0\0\0\0\0\0\x80");
    dq_tensor_free(t);
    t = wrap(DQ_FLOAT8E4M3FN, 1, three, bytes, sizeof bytes);
    CHECK(t, "float8e4m3fn[3]\n\x7f\xfe\x80");
    dq_tensor_free(t);
    t = wrap(DQ_UINT8, 1, three, bytes, sizeof bytes);
    CHECK(t, "uint8[3]\n\xff\xfe\x80");
    dq_tensor_free(t);
}
END_TEST

/* Lengths keep neighbouring strings, and neighbouring items, from changing places. */
START_TEST(strings_and_lists)
{
    static const int64_t two[] = {2}, one[] = {1};
    const uint8_t byte = 7;
    dq_tensor *t = NULL, *list = NULL;
    ck_assert_int_eq(dq_tensor_create(DQ_STRING, 1, two, &t, NULL), DQ_OK);
    ck_assert_int_eq(dq_tensor_set_string(t, 0, "ab", 2, NULL), DQ_OK);
    CHECK(t, "string[2]\n\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0");
    dq_tensor_free(t);
    t = wrap(DQ_UINT8, 1, one, &byte, 1);
    ck_assert_int_eq(dq_sequence_create(DQ_UINT8, 1, &t, &list, NULL), DQ_OK);
    CHECK(list, "seq(uint8)[1]\nuint8[1]\n\7");
    dq_tensor_free(list);
    ck_assert_int_eq(dq_optional_create(DQ_KIND_TENSOR, DQ_FLOAT, NULL, &list, NULL), DQ_OK);
    CHECK(list, "optional(float)[0]\n");
    dq_tensor_free(list);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("hash", NULL, NULL);
    add_test(&tests, examples_of_the_standard);
    add_test(&tests, ends_of_a_block);
    add_test(&tests, numbers);
    add_test(&tests, not_a_number);
    add_test(&tests, strings_and_lists);
    return test_program_run(&tests);
}
