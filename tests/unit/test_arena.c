/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/arena.c: allocations that are freed together. */
#include "base/arena.h"
#include "support/test_program.h"

#include <string.h>

START_TEST(arena_pieces_are_apart_aligned_and_zero)
{
    dq_arena arena = {0};
    size_t wrong = 0;
    for (int round = 0; round < 3; round++) {
        char *pieces[200];
        for (size_t i = 0; i < 200; i++) {
            size_t size = i * 37 % 5000, align = (size_t)1 << i % 7;
            pieces[i] = dq_arena_alloc(&arena, size, align);
            ck_assert_ptr_nonnull(pieces[i]);
            ck_assert_uint_eq((uintptr_t)pieces[i] % align, 0);
            for (size_t k = 0; k < size; k++)
                wrong += pieces[i][k] != 0;
            memset(pieces[i], (int)i, size);
        }
        for (size_t i = 0; i < 200; i++)
            for (size_t k = 0; k < i * 37 % 5000; k++)
                wrong += pieces[i][k] != (char)i;
        dq_arena_reset(&arena);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_ptr_null(dq_arena_array(&arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(dq_arena_alloc(&arena, SIZE_MAX - 8, 16));
    ck_assert_str_eq(dq_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
    dq_arena_free(&arena);
}
END_TEST

/* The rest of the block is as long as the piece, but not as the piece and its padding. */
START_TEST(arena_counts_padding)
{
    dq_arena arena = {0};
    ck_assert_ptr_nonnull(dq_arena_alloc(&arena, 1, 1));
    size_t held = arena.held;
    char *piece = dq_arena_alloc(&arena, held - 1, 2);
    ck_assert_ptr_nonnull(piece);
    ck_assert_uint_ge(arena.held, 2 * held);
    memset(piece, 1, held - 1);
    dq_arena_free(&arena);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("arena", NULL, NULL);
    add_test(&tests, arena_pieces_are_apart_aligned_and_zero);
    add_test(&tests, arena_counts_padding);
    return test_program_run(&tests);
}
