/* SPDX-License-Identifier: Apache-2.0 */
/* llama.cpp as a peer of bench/decoder.py, which compiles this program and starts it:
 *   llama_cpp MODEL.gguf THREADS POSITIONS FLASH CACHE
 * FLASH is 1 for flash attention, 0 for attention by two products. CACHE is f16 or f32, the type of cached
 * keys and values. Other options are llama.cpp's own.
 *
 * It reads commands, one a line, and answers each with a line: milliseconds of
 *   prompt N    one call of llama_decode with N tokens after those in the cache; logits of the last one
 *   token N     the median of N calls with one token each
 *   keep N      removes all but the first N positions from the cache */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llama.h"

enum { MAX_TOKENS = 4096, WORDS = 1000 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double decode(struct llama_context *context, int count)
{
    static llama_token tokens[MAX_TOKENS];
    for (int i = 0; i < count; i++)
        tokens[i] = rand() % WORDS;
    double start = now_ms();
    if (llama_decode(context, llama_batch_get_one(tokens, count)) != 0) {
        fprintf(stderr, "llama_decode failed\n");
        exit(1);
    }
    return now_ms() - start;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_tokens(struct llama_context *context, int count)
{
    static double times[MAX_TOKENS];
    for (int i = 0; i < count; i++)
        times[i] = decode(context, 1);
    qsort(times, (size_t)count, sizeof *times, by_size);
    return times[count / 2];
}

static void ignore(enum ggml_log_level level, const char *text, void *arg)
{
    (void)arg;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    llama_log_set(ignore, NULL);
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model)
        return 1;
    struct llama_context_params options = llama_context_default_params();
    options.n_threads = options.n_threads_batch = atoi(argv[2]);
    options.n_ctx = (uint32_t)atoi(argv[3]);
    options.n_batch = MAX_TOKENS;
    options.flash_attn_type = atoi(argv[4]) ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    options.type_k = options.type_v = strcmp(argv[5], "f32") == 0 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    struct llama_context *context = llama_init_from_model(model, options);
    if (!context)
        return 1;
    char command[16];
    int count;
    while (scanf("%15s %d", command, &count) == 2 && count >= 0 && count <= MAX_TOKENS) {
        double ms = 0;
        if (strcmp(command, "prompt") == 0)
            ms = decode(context, count);
        else if (strcmp(command, "token") == 0)
            ms = median_of_tokens(context, count);
        else
            llama_memory_seq_rm(llama_get_memory(context), -1, count, -1);
        printf("%.6f\n", ms);
        fflush(stdout);
    }
    llama_free(context);
    llama_model_free(model);
    return 0;
}
