/* SPDX-License-Identifier: Apache-2.0 */
/* Models from descriptors and functions, external data from a callback, and models saved to memory and to
 * functions: include/dqrun/dqrun.h. */
#include "onnx_writer.h"
#include "small_model.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 1 << 19 /* floats: a file that is mapped, and larger than a pipe's buffer */ };

static void *bytes; /* of a model that adds w, of `floats` elements, to x */
static size_t size, floats;

static void make_bytes(size_t count)
{
    float *w = calloc(count, sizeof *w);
    ck_assert_ptr_nonnull(w);
    for (size_t i = 0; i < count; i++)
        w[i] = (float)(i % 1000) + 0.5f;
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){1});
    constant("w", DQ_FLOAT, 1, (int64_t[]){(int64_t)count}, w);
    node("Add", "x", "w", "y");
    output("y");
    must(dq_builder_finish(b, NULL, &model, &err));
    must(dq_model_save_memory(model, &bytes, &size, &err));
    tear_down();
    free(w);
    floats = count;
}

/* Runs the model that was loaded from such bytes, and frees it. */
static void runs(void)
{
    float x = 1;
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    options.threads = 1;
    must(dq_session_create(model, &options, &session, &err));
    must(dq_session_set_input(session, "x", row(1, &x), &err));
    must(dq_session_run(session, &err));
    const float *y = data_of("y");
    size_t right = 0;
    while (right < floats && y[right] == (float)(right % 1000) + 1.5f)
        right++;
    ck_assert_uint_eq(right, floats);
    tear_down();
}

static void free_bytes(void)
{
    tear_down();
    dq_free(bytes);
    bytes = NULL;
}

/* A file without a name that holds those bytes. */
static int file_of_bytes(void)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fflush(file), 0);
    int fd = dup(fileno(file));
    ck_assert_int_ge(fd, 0);
    fclose(file);
    return fd;
}

/* ---- Descriptors --------------------------------------------------------------------------------------- */

START_TEST(a_file_is_loaded_from_its_beginning)
{
    make_bytes(_i ? LARGE : 3);
    int fd = file_of_bytes();
    ck_assert_int_eq(lseek(fd, 5, SEEK_SET), 5);
    must(dq_model_load_fd(fd, "descriptor", NULL, &model, &err));
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 5);
    close(fd); /* the model does without */
    runs();
}
END_TEST

static int pipe_end;

static void *write_bytes(void *arg)
{
    const char *from = bytes;
    (void)arg;
    for (size_t at = 0, n; at < size; at += n) {
        ssize_t wrote = write(pipe_end, from + at, size - at);
        ck_assert_int_gt(wrote, 0);
        n = (size_t)wrote;
    }
    close(pipe_end);
    return NULL;
}

START_TEST(a_pipe_is_read_to_its_end)
{
    int ends[2];
    pthread_t writer;
    make_bytes(_i ? LARGE : 3);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0); /* the call waits for data all the same */
    pipe_end = ends[1];
    ck_assert_int_eq(pthread_create(&writer, NULL, write_bytes, NULL), 0);
    must(dq_model_load_fd(ends[0], "pipe", NULL, &model, &err));
    pthread_join(writer, NULL);
    close(ends[0]);
    runs();
}
END_TEST

START_TEST(descriptors_that_give_no_model)
{
    int folder = open(".", O_RDONLY), nothing = open("/dev/null", O_RDONLY),
        zeros = open("/dev/zero", O_RDONLY);
    dq_limits limits = DQ_LIMITS_INIT;
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    limits.file_bytes = 100;
    options.limits = &limits;
    refused(dq_model_load_fd(folder, "it", NULL, &model, &err), DQ_BAD_MODEL,
            "it: is a folder, expected a file");
    refused(dq_model_load_fd(nothing, "it", NULL, &model, &err), DQ_BAD_MODEL, "it: is empty");
    refused(dq_model_load_fd(zeros, "it", &options, &model, &err), DQ_OUT_OF_MEMORY,
            "it: has more bytes than the limit of 100");
    close(folder);
    close(nothing);
    close(zeros);
    refused(dq_model_load_fd(folder, "it", NULL, &model, &err), DQ_BAD_MODEL,
            "it: cannot be read: Bad file descriptor");
    refused(dq_model_load_fd(-1, "it", NULL, &model, &err), DQ_INVALID_ARGUMENT,
            "dq_model_load_fd: fd is -1, expected an open descriptor");
    refused(dq_model_load_fd(0, NULL, NULL, &model, &err), DQ_INVALID_ARGUMENT,
            "dq_model_load_fd: name is NULL");
    refused(dq_model_load_fd(0, "it", NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_model_load_fd: out is NULL");
}
END_TEST

/* ---- Functions ----------------------------------------------------------------------------------------- */

typedef struct stream {
    size_t at, piece; /* bytes at once; 0: as many as there is room for */
    size_t fail_at;
    ptrdiff_t fault; /* returned there */
} stream;

static ptrdiff_t read_stream(void *arg, void *buffer, size_t workspace)
{
    stream *s = arg;
    if (s->fault && s->at >= s->fail_at)
        return s->fault;
    size_t n = size - s->at;
    n = n < workspace ? n : workspace;
    n = s->piece && n > s->piece ? s->piece : n;
    memcpy(buffer, (const char *)bytes + s->at, n);
    s->at += n;
    return (ptrdiff_t)n;
}

START_TEST(a_function_is_read_to_its_end)
{
    static const size_t pieces[] = {1, 7, 4096, 0};
    for (size_t i = 0; i < 4; i++) {
        make_bytes(i > 1 ? LARGE : 3);
        must(dq_model_load_read(read_stream, &(stream){.piece = pieces[i]}, "stream", NULL, &model, &err));
        runs();
        free_bytes();
    }
}
END_TEST

START_TEST(functions_that_fail)
{
    dq_limits limits = DQ_LIMITS_INIT;
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    options.limits = &limits;
    make_bytes(3);
    stream s = {.piece = 10, .fail_at = 20, .fault = -5};
    refused(dq_model_load_read(read_stream, &s, "it", NULL, &model, &err), DQ_BAD_MODEL,
            "it: cannot be read: the read function returned -5 at byte 20");
    s = (stream){.piece = 10, .fail_at = 20, .fault = PTRDIFF_MAX};
    ck_assert_int_eq(dq_model_load_read(read_stream, &s, "it", NULL, &model, &err), DQ_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "it: the read function returned "));
    limits.file_bytes = size - 1;
    refused(dq_model_load_read(read_stream, &(stream){0}, "it", &options, &model, &err), DQ_OUT_OF_MEMORY,
            err.message);
    limits.file_bytes = size;
    must(dq_model_load_read(read_stream, &(stream){0}, "it", &options, &model, &err));
    dq_model *other = NULL;
    refused(dq_model_load_read(NULL, NULL, "it", NULL, &other, &err), DQ_INVALID_ARGUMENT,
            "dq_model_load_read: read is NULL");
    refused(dq_model_load_read(read_stream, &s, NULL, NULL, &other, &err), DQ_INVALID_ARGUMENT,
            "dq_model_load_read: name is NULL");
    refused(dq_model_load_read(read_stream, &s, "it", NULL, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_model_load_read: out is NULL");
}
END_TEST

/* ---- External data ------------------------------------------------------------------------------------- */

typedef struct store {
    size_t asked, released, live;
    dq_status status; /* what the callback returns */
    const void *contents;
    size_t size;
} store;

static dq_status give(void *arg, const char *location, const void **out, size_t *out_size)
{
    store *s = arg;
    ck_assert_ptr_nonnull(strstr(location, "weights"));
    s->asked++;
    if (s->status != DQ_OK)
        return s->status;
    s->live++;
    *out = s->contents;
    *out_size = s->size;
    return DQ_OK;
}

static void take_back(void *arg, const char *location, const void *given, size_t given_size)
{
    store *s = arg;
    ck_assert_ptr_nonnull(strstr(location, "weights"));
    ck_assert_ptr_eq(given, s->contents);
    ck_assert_uint_eq(given_size, s->size);
    s->released++;
    s->live--;
}

static void initializer(ow *graph, const char *name, const char *location, const char *offset)
{
    ow tensor = ow_tensor(name, DQ_FLOAT, 1, (int64_t[]){2});
    const char *const entries[][2] = {{"location", location}, {"offset", offset}};
    for (int i = 0; i < 2; i++) {
        ow pair = {0};
        ow_str(&pair, 1, entries[i][0]);
        ow_str(&pair, 2, entries[i][1]);
        ow_msg(&tensor, 13, &pair);
    }
    ow_int(&tensor, 14, 1);
    ow_msg(graph, OW_GRAPH_INIT, &tensor);
}

/* y = x + a + b + c; a and b in one file, c in another one, whose location no path inside a folder has. */
static ow external_model(void)
{
    ow graph = {0};
    ow_str(&graph, 2, "g");
    ow_value(&graph, OW_GRAPH_IN, "x", DQ_FLOAT, 1, (int64_t[]){2});
    initializer(&graph, "a", "weights", "0");
    initializer(&graph, "b", "weights", "8");
    initializer(&graph, "c", "../weights:2", "0");
    ow_node(&graph, OW_GRAPH_NODE, "n0", "Add", "", "x,a", "p", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n1", "Add", "", "p,b", "q", NULL);
    ow_node(&graph, OW_GRAPH_NODE, "n2", "Add", "", "q,c", "y", NULL);
    ow_value(&graph, OW_GRAPH_OUT, "y", DQ_FLOAT, 1, (int64_t[]){2});
    return ow_model(&graph);
}

static dq_load_options options_of(store *s)
{
    return (dq_load_options){.size = sizeof(dq_load_options),
                             .external_data = give,
                             .release_external_data = take_back,
                             .external_data_arg = s};
}

START_TEST(external_data_comes_from_a_callback)
{
    const float weights[] = {1, 2, 10, 20}, x[] = {100, 200};
    store s = {.contents = weights, .size = sizeof weights};
    const ow file = external_model();
    const dq_load_options options = options_of(&s);
    must(dq_model_load_memory(file.bytes, file.size, "m", &options, &model, &err));
    ck_assert_uint_eq(s.asked, 2); /* once for each location */
    ck_assert_uint_eq(s.live, 2);
    must(dq_session_create(model, NULL, &session, &err));
    must(dq_session_set_input(session, "x", keep(tensor_of(DQ_FLOAT, 1, (int64_t[]){2}, x)), &err));
    must(dq_session_run(session, &err));
    const float *y = data_of("y");
    ck_assert(y[0] == 112 && y[1] == 224);
    dq_model_free(model); /* the session keeps it */
    model = NULL;
    ck_assert_uint_eq(s.live, 2);
    tear_down();
    ck_assert_uint_eq(s.live, 0);
    ck_assert_uint_eq(s.released, 2);
}
END_TEST

START_TEST(callbacks_that_give_no_data)
{
    const float weights[] = {1, 2, 10, 20};
    const ow file = external_model();
    store s = {.contents = weights, .size = sizeof weights, .status = DQ_UNSUPPORTED};
    dq_load_options options = options_of(&s);
    refused(dq_model_load_memory(file.bytes, file.size, "m", &options, &model, &err), DQ_UNSUPPORTED,
            "m: initializer 'a' external data 'weights': the external_data callback returned status 5");
    ck_assert_uint_eq(s.asked, 1);
    s = (store){.contents = weights, .size = 12};
    refused(dq_model_load_memory(file.bytes, file.size, "m", &options, &model, &err), DQ_BAD_MODEL,
            "m: initializer 'b' wants 8 bytes at offset 8 of external data 'weights', which has 12 bytes");
    ck_assert_uint_eq(s.released, 1); /* when loading failed */
    ck_assert_uint_eq(s.live, 0);
    s = (store){.contents = NULL, .size = 12};
    refused(
        dq_model_load_memory(file.bytes, file.size, "m", &options, &model, &err), DQ_INVALID_ARGUMENT,
        "m: initializer 'a' external data 'weights': the external_data callback returned NULL for 12 bytes");
    dq_limits limits = DQ_LIMITS_INIT;
    limits.file_bytes = 1000;
    options.limits = &limits;
    s = (store){.contents = weights, .size = 1001};
    refused(dq_model_load_memory(file.bytes, file.size, "m", &options, &model, &err), DQ_OUT_OF_MEMORY,
            "m: initializer 'a' external data 'weights' has 1001 bytes, over the limit of 1000");
    ck_assert_uint_eq(s.live, 0);
    options.release_external_data = NULL; /* nothing to release */
    s = (store){.contents = weights, .size = sizeof weights};
    must(dq_model_load_memory(file.bytes, file.size, "m", &options, &model, &err));
    tear_down();
    ck_assert_uint_eq(s.released, 0);
}
END_TEST

/* ---- Saving -------------------------------------------------------------------------------------------- */

typedef struct collected {
    char *bytes;
    size_t size, calls, fail_at; /* fails at this call, counted from 1 */
} collected;

static int collect(void *arg, const void *piece, size_t piece_size)
{
    collected *c = arg;
    ck_assert_uint_gt(piece_size, 0);
    if (++c->calls == c->fail_at)
        return 7;
    ck_assert(!c->fail_at || c->calls < c->fail_at); /* never again after a fault */
    c->bytes = realloc(c->bytes, c->size + piece_size);
    ck_assert_ptr_nonnull(c->bytes);
    memcpy(c->bytes + c->size, piece, piece_size);
    c->size += piece_size;
    return 0;
}

START_TEST(all_ways_save_the_same_bytes)
{
    collected c = {0};
    make_bytes(_i ? LARGE : 3);
    must(dq_model_load_memory(bytes, size, "m", NULL, &model, &err));
    must(dq_model_save_write(model, collect, &c, &err));
    ck_assert_uint_eq(c.size, size);
    ck_assert_mem_eq(c.bytes, bytes, size);
    free(c.bytes);

    char path[] = "load-save-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    must(dq_model_save(model, path, &err));
    tear_down();
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq((size_t)info.st_size, size);
    must(dq_model_load(path, NULL, &model, &err));
    unlink(path);
    runs();
}
END_TEST

START_TEST(saving_that_fails)
{
    collected c = {.fail_at = 1};
    make_bytes(LARGE);
    must(dq_model_load_memory(bytes, size, "m", NULL, &model, &err));
    refused(dq_model_save_write(model, collect, &c, &err), DQ_IO,
            "m: cannot be written: the write function returned 7 at byte 0");
    ck_assert_uint_eq(c.calls, 1);
    c = (collected){.fail_at = 2};
    ck_assert_int_eq(dq_model_save_write(model, collect, &c, &err), DQ_IO);
    ck_assert_uint_eq(c.calls, 2);
    free(c.bytes);
    void *out = NULL;
    size_t out_size = 0;
    refused(dq_model_save_memory(NULL, &out, &out_size, &err), DQ_INVALID_ARGUMENT,
            "dq_model_save_memory: model is NULL");
    refused(dq_model_save_memory(model, NULL, &out_size, &err), DQ_INVALID_ARGUMENT,
            "dq_model_save_memory: bytes is NULL");
    refused(dq_model_save_memory(model, &out, NULL, &err), DQ_INVALID_ARGUMENT,
            "dq_model_save_memory: size is NULL");
    refused(dq_model_save_write(NULL, collect, &c, &err), DQ_INVALID_ARGUMENT,
            "dq_model_save_write: model is NULL");
    refused(dq_model_save_write(model, NULL, &c, &err), DQ_INVALID_ARGUMENT,
            "dq_model_save_write: write is NULL");
    dq_free(NULL);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("load_save", NULL, free_bytes);
    add_loop_test(&tests, a_file_is_loaded_from_its_beginning, 0, 2);
    add_loop_test(&tests, a_pipe_is_read_to_its_end, 0, 2);
    add_test(&tests, descriptors_that_give_no_model);
    add_test(&tests, a_function_is_read_to_its_end);
    add_test(&tests, functions_that_fail);
    add_test(&tests, external_data_comes_from_a_callback);
    add_test(&tests, callbacks_that_give_no_data);
    add_loop_test(&tests, all_ways_save_the_same_bytes, 0, 2);
    add_test(&tests, saving_that_fails);
    return test_program_run(&tests);
}
