/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a model that is only in memory, with memory from one fixed block: for programs without files and
 * without malloc of their own.
 *
 *     memory MODEL.onnx
 *
 * The file stands for bytes that a program has compiled in.
 * Shows: dq_model_load_memory, limits, an allocator, the need for memory. */
#include <dqrun/dqrun.h>

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- A block that only grows: memory comes back when everything has been freed --------------------------
 */

enum { BLOCK = 4 << 20 };

typedef struct block {
    size_t used, most, live; /* bytes handed out, the most so far, pieces not yet given back */
    alignas(64) unsigned char bytes[BLOCK];
} block;

static void *allocate(void *arg, size_t bytes, size_t alignment)
{
    block *b = (block *)arg;
    size_t at = (b->used + alignment - 1) / alignment * alignment;
    if (at > BLOCK || BLOCK - at < bytes)
        return NULL; /* the call that needs it returns DQ_OUT_OF_MEMORY */
    b->used = at + bytes;
    b->live++;
    if (b->used > b->most)
        b->most = b->used;
    return b->bytes + at;
}

static void release(void *arg, void *memory, size_t bytes)
{
    block *b = (block *)arg;
    (void)memory;
    (void)bytes;
    if (--b->live == 0)
        b->used = 0;
}

static unsigned char *read_file(const char *path, size_t *size)
{
    unsigned char *bytes = NULL;
    FILE *file = fopen(path, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0) {
        *size = (size_t)ftell(file);
        rewind(file);
        bytes = (unsigned char *)malloc(*size);
        if (bytes && fread(bytes, 1, *size, file) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file)
        fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    static block memory;
    static const float image[64] = {0};
    const int64_t dims[4] = {1, 1, 8, 8};
    size_t size = 0;
    unsigned char *bytes = argc == 2 ? read_file(argv[1], &size) : NULL;
    if (!bytes)
        return fprintf(stderr, "usage: memory MODEL.onnx\n"), 2;

    dq_allocator allocator = DQ_ALLOCATOR_INIT;
    allocator.allocate = allocate;
    allocator.release = release;
    allocator.arg = &memory;
    dq_limits limits = DQ_LIMITS_INIT;
    limits.session_bytes = BLOCK;
    limits.work = 10000000; /* multiply-adds and elements of a run: one that needs more is refused */
    dq_load_options load = DQ_LOAD_OPTIONS_INIT;
    load.limits = &limits;
    load.allocator = &allocator;
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    options.allocator = &allocator;
    options.threads = 1;

    dq_model *model = NULL;
    dq_session *session = NULL;
    dq_tensor *input = NULL;
    const dq_tensor *scores = NULL;
    dq_error err;
    dq_status status = dq_model_load_memory(bytes, size, "digits", &load, &model, &err);
    if (status == DQ_OK)
        status = dq_session_create(model, &options, &session, &err);
    if (status == DQ_OK)
        status = dq_tensor_wrap_const(DQ_FLOAT, 4, dims, image, sizeof image, &input, &err);
    if (status == DQ_OK)
        status = dq_session_set_input(session, NULL, input, &err);
    if (status == DQ_OK)
        status = dq_session_run(session, &err);
    if (status == DQ_OK)
        status = dq_session_get_output(session, NULL, &scores, &err);
    if (status == DQ_OK)
        printf("%zu scores, %zu KiB of the block used\n", dq_tensor_count(scores), memory.most / 1024);
    else
        fprintf(stderr, "memory: %s: %s\n", dq_status_name(status), err.message);
    dq_session_free(session);
    dq_model_free(model);
    dq_tensor_free(input);
    free(bytes);
    printf("%zu pieces left\n", memory.live);
    return (int)status;
}
