/* SPDX-License-Identifier: Apache-2.0 */
/* src/ops/matmul/blocking.h: cache sizes and a register tile to block sizes. */
#include "ops/matmul/blocking.h"
#include "support/test_program.h"

enum { KIB = 1024, HEAD = 64 };

static dq_blocking blocking(size_t l1, size_t l2, size_t mr, size_t nr, size_t k)
{
    const dq_cache_sizes caches = {l1, l2};
    const dq_blocking_tile tile = {.mr = mr, .nr = nr, .panel_bytes = k * nr + HEAD, .c_columns = 64};
    return dq_blocking_of(&caches, &tile);
}

START_TEST(columns_take_half_of_l2)
{
    /* half of L2 by panels of 24 KiB and 64 B: 21 and 42, in pairs */
    ck_assert_uint_eq(blocking(48 * KIB, 1024 * KIB, 8, 32, 768).nc, 20 * 32);
    ck_assert_uint_eq(blocking(48 * KIB, 2048 * KIB, 8, 32, 768).nc, 42 * 32);
    /* panels of 12 KiB and 64 B: 21, in fours */
    ck_assert_uint_eq(blocking(32 * KIB, 512 * KIB, 6, 16, 768).nc, 20 * 16);
}
END_TEST

START_TEST(deep_panels_are_fewer)
{
    ck_assert_uint_eq(blocking(48 * KIB, 1024 * KIB, 8, 32, 3072).nc, 4 * 32);
    /* at least what one call consumes */
    ck_assert_uint_eq(blocking(48 * KIB, 1024 * KIB, 8, 32, 65536).nc, 2 * 32);
    ck_assert_uint_eq(blocking(32 * KIB, 256 * KIB, 6, 16, 65536).nc, 4 * 16);
}
END_TEST

START_TEST(rows_are_whole_tiles)
{
    ck_assert_uint_eq(blocking(48 * KIB, 1024 * KIB, 8, 32, 768).mc, 64);
    ck_assert_uint_eq(blocking(32 * KIB, 1024 * KIB, 8, 32, 768).mc, 64);
    ck_assert_uint_eq(blocking(48 * KIB, 1024 * KIB, 6, 16, 768).mc, 60);
    ck_assert_uint_eq(blocking(16 * KIB, 1024 * KIB, 6, 16, 768).mc, 30);
    ck_assert_uint_eq(blocking(16 * KIB, 1024 * KIB, 64, 16, 768).mc, 64); /* a tile at least */
}
END_TEST

START_TEST(depth_of_floats)
{
    enum { STEP = 64 }; /* bytes of a panel of 16 floats */
    const dq_cache_sizes small = {32 * KIB, 512 * KIB}, large = {48 * KIB, 1024 * KIB},
                         wide = {64 * KIB, 1024 * KIB};
    ck_assert_uint_eq(dq_blocking_depth(&small, 1, STEP, 5000), 5000);
    ck_assert_uint_eq(dq_blocking_depth(&small, 4, STEP, 5000), 5000);
    ck_assert_uint_eq(dq_blocking_depth(&small, 5, STEP, 5000), 384);
    ck_assert_uint_eq(dq_blocking_depth(&large, 32, STEP, 5000), 384);
    ck_assert_uint_eq(dq_blocking_depth(&wide, 32, STEP, 5000), 512);
    ck_assert_uint_eq(dq_blocking_depth(&small, 192, STEP, 5000), 512);
    ck_assert_uint_eq(dq_blocking_depth(&large, 192, STEP, 5000), 1024);
}
END_TEST

START_TEST(half_of_l2_fits)
{
    const dq_cache_sizes caches = {32 * KIB, 1024 * KIB};
    ck_assert(dq_blocking_fits_in_l2(&caches, 512 * KIB));
    ck_assert(!dq_blocking_fits_in_l2(&caches, 512 * KIB + 1));
}
END_TEST

START_TEST(a_tile_uses_a_quarter_of_l2)
{
    const dq_cache_sizes caches = {48 * KIB, 1024 * KIB};
    ck_assert_uint_eq(dq_blocking_panels_of_tile(&caches, 2 * KIB), 128);
    ck_assert_uint_eq(dq_blocking_panels_of_tile(&caches, 24 * KIB + HEAD), 10);
    ck_assert_uint_eq(dq_blocking_panels_of_tile(&caches, 512 * KIB), 0);
}
END_TEST

START_TEST(tiles_share_the_prefetch)
{
    /* eight tiles of 96 prefetches: 24 KiB in steps of half a line */
    dq_blocking_prefetch p = dq_blocking_prefetch_of(24 * KIB, 8, 96);
    ck_assert_uint_eq(p.step, 32);
    ck_assert_uint_eq(p.advance, 3 * KIB);
    /* at most a line each, even if the panel is larger */
    p = dq_blocking_prefetch_of(24 * KIB, 2, 96);
    ck_assert_uint_eq(p.step, 64);
    ck_assert_uint_eq(p.advance, 6 * KIB);
    ck_assert_uint_eq(dq_blocking_prefetch_of(24 * KIB, 1, 96).step, 0);
    ck_assert_uint_eq(dq_blocking_prefetch_of(24 * KIB, 8, 0).step, 0);
    /* all tiles together reach the end of the panel */
    for (size_t tiles = 4; tiles < 12; tiles++)
        for (size_t k = 8; k < 4096; k += 8)
            ck_assert_uint_ge(tiles * dq_blocking_prefetch_of(k * 32, tiles, k / 8).advance, k * 32);
}
END_TEST

START_TEST(the_processor_has_caches)
{
    const dq_cache_sizes caches = dq_cpu_caches(), again = dq_cpu_caches();
    ck_assert_uint_ge(caches.l1, 8 * KIB);
    ck_assert_uint_le(caches.l1, caches.l2);
    ck_assert_uint_le(caches.l2, 2048 * KIB);
    ck_assert_uint_eq(caches.l2, again.l2);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("blocking", NULL, NULL);
    add_test(&tests, columns_take_half_of_l2);
    add_test(&tests, deep_panels_are_fewer);
    add_test(&tests, rows_are_whole_tiles);
    add_test(&tests, depth_of_floats);
    add_test(&tests, half_of_l2_fits);
    add_test(&tests, a_tile_uses_a_quarter_of_l2);
    add_test(&tests, tiles_share_the_prefetch);
    add_test(&tests, the_processor_has_caches);
    return test_program_run(&tests);
}
