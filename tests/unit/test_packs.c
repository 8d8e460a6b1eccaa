/* SPDX-License-Identifier: Apache-2.0 */
/* src/ops/packs.c: the memory of packed weights. Small ones share an arena, large ones have their own. */
#include "base/checked.h"
#include "base/pages.h"
#include "counted.h"
#include "ops/packs.h"
#include "support/test_program.h"

#include <string.h>

enum { FORMS = 120 };

/* From one byte to more than a large page; the small ones need several blocks. */
static size_t size_of(size_t i)
{
    static const size_t sizes[] = {
        1, 64, 65, 4096, 100000, 700001, DQ_LARGE_PAGE - 1, DQ_LARGE_PAGE, DQ_LARGE_PAGE + 4097};
    return sizes[i % (sizeof sizes / sizeof *sizes)];
}

typedef struct key {
    size_t number, size;
} key;

/* Fills zeroed memory with the number of the form. */
static void make(void *packed, const dq_tensor *from, const void *of)
{
    const key *k = of;
    const char *bytes = packed;
    size_t wrong = 0;
    (void)from;
    ck_assert_uint_eq((uintptr_t)packed % DQ_ALIGN, 0);
    for (size_t i = 0; i < k->size; i++)
        wrong += bytes[i] != 0;
    ck_assert_uint_eq(wrong, 0);
    memset(packed, (int)k->number + 1, k->size);
}

static dq_status request(dq_packs *packs, size_t i, const void **packed, dq_error *err)
{
    static const float weight = 1;
    const dq_tensor from = {
        .dtype = DQ_FLOAT, .count = 1, .size = sizeof weight, .data = (void *)(uintptr_t)&weight};
    const key k = {i, size_of(i)};
    const dq_packing requested = {.make = make, .key = &k, .key_size = sizeof k, .size = k.size};
    return dq_packs_get(packs, &from, &requested, packed, err);
}

static void check_forms(dq_packs *packs)
{
    size_t bytes = 0, wrong = 0;
    for (size_t i = 0; i < FORMS; i++) {
        const void *packed;
        dq_error err = {0};
        ck_assert_int_eq(request(packs, i, &packed, &err), DQ_OK); /* the form that is there */
        for (size_t at = 0; at < size_of(i); at++)
            wrong += ((const char *)packed)[at] != (char)(i + 1);
        bytes += size_of(i);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(dq_packs_bytes(packs), bytes);
}

START_TEST(forms_are_apart_aligned_and_zero)
{
    dq_packs *packs;
    dq_error err = {0};
    ck_assert_int_eq(dq_packs_create(NULL, &packs, &err), DQ_OK);
    for (size_t i = 0; i < FORMS; i++) {
        const void *packed;
        ck_assert_int_eq(request(packs, i, &packed, &err), DQ_OK);
    }
    check_forms(packs);
    dq_packs_free(packs);
}
END_TEST

START_TEST(a_refused_allocation_loses_nothing)
{
    enum { STEP = 11 };
    counted heap = {0};
    const dq_allocator allocator = {sizeof allocator, counted_allocate, counted_release, &heap};
    for (size_t refuse_at = 2; refuse_at == 2 || heap.refused; refuse_at += STEP) {
        dq_packs *packs;
        dq_error err = {0};
        size_t refused = 0;
        heap = (counted){.refuse_at = refuse_at};
        ck_assert_int_eq(dq_packs_create(&allocator, &packs, &err), DQ_OK);
        for (size_t i = 0; i < FORMS; i++) {
            const void *packed;
            if (request(packs, i, &packed, &err) == DQ_OK)
                continue;
            ck_assert_int_eq(err.status, DQ_OUT_OF_MEMORY);
            refused++;
            ck_assert_int_eq(request(packs, i, &packed, &err), DQ_OK);
        }
        ck_assert_uint_eq(refused, heap.refused);
        check_forms(packs);
        dq_packs_free(packs);
        ck_assert_uint_eq(heap.live, 0);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("packs", NULL, NULL);
    add_test(&tests, forms_are_apart_aligned_and_zero);
    add_test(&tests, a_refused_allocation_loses_nothing);
    return test_program_run(&tests);
}
