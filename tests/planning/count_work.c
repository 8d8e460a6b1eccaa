/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a model, runs it once on zeros, and prints how much work each took: basic blocks of the library,
 * which is built for this with -fsanitize-coverage=trace-pc, and the bytes that the C library's functions
 * went through, 16 a step. The same numbers on every run of one build: what takes longer than linear shows
 * without a clock.
 *
 *     count_work MODEL...     for each "name load run", steps of each */
#include <dqrun/dqrun.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_A_STEP = 16 };

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

/* ---- The C library's functions, through -Wl,--wrap ---------------------------------------------------- */

#define COUNTED(result, name, params, args, bytes)                                                           \
    result __real_##name params;                                                                             \
    result __wrap_##name params;                                                                             \
    result __wrap_##name params                                                                              \
    {                                                                                                        \
        steps += 1 + (bytes) / BYTES_A_STEP;                                                                 \
        return __real_##name args;                                                                           \
    }

COUNTED(void *, memset, (void *to, int byte, size_t size), (to, byte, size), size)
COUNTED(void *, memcpy, (void *to, const void *from, size_t size), (to, from, size), size)
COUNTED(void *, memmove, (void *to, const void *from, size_t size), (to, from, size), size)
COUNTED(int, memcmp, (const void *a, const void *b, size_t size), (a, b, size), size)
COUNTED(void *, calloc, (size_t count, size_t size), (count, size), count *size)
COUNTED(void *, realloc, (void *memory, size_t size), (memory, size), size)
COUNTED(size_t, strlen, (const char *text), (text), __real_strlen(text))

/* ---- The model ---------------------------------------------------------------------------------------- */

static void check(dq_status status, const dq_error *err)
{
    if (status == DQ_OK)
        return;
    fprintf(stderr, "count_work: %s\n", err->message);
    exit(1);
}

static void count(const char *path)
{
    dq_error err;
    dq_model *model;
    dq_session *session;
    dq_tensor *x;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    steps = 0;
    check(dq_model_load(path, NULL, &model, &err), &err);
    const uint64_t load = steps;
    const dq_session_options options = {.size = sizeof(dq_session_options), .threads = 1, .isa = "c"};
    check(dq_session_create(model, &options, &session, &err), &err);
    check(dq_model_input(model, 0, &info, NULL), &err);
    check(dq_tensor_create(info.dtype, info.rank, info.dims, &x, &err), &err);
    check(dq_session_set_input(session, info.name, x, &err), &err);
    steps = 0;
    check(dq_session_run(session, &err), &err);
    printf("%s %llu %llu\n", path, (unsigned long long)load, (unsigned long long)steps);
    dq_session_free(session);
    dq_model_free(model);
    dq_tensor_free(x);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        count(argv[i]);
    return 0;
}
