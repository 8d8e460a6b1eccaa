/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without an engine: replay [--mutate N] FILE|FOLDER…
 * Each file is given to the target as it is and, with --mutate, N times with a few bytes changed, cut out or
 * cut off; always in the same way, so that a failure can be repeated. Prints how many inputs were run; 1 when
 * there was none. */
#include "support/random.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static unsigned long mutations;
static unsigned long runs;
static uint64_t state = 1;

static uint32_t draw(size_t below)
{
    return random_below(&state, below ? (uint32_t)below : 1);
}

/* On a copy of exactly that size, so that sanitizers see every byte read past the end. */
static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(1);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    runs++;
}

static size_t mutate(uint8_t *bytes, size_t size)
{
    static const uint8_t telling[] = {0, 1, 0x7F, 0x80, 0xFF};
    for (uint32_t n = 1 + draw(4); n > 0 && size > 0; n--) {
        size_t at = draw(size), length = 1 + draw(8);
        switch (draw(4)) {
        case 0:
            bytes[at] = (uint8_t)draw(256);
            break;
        case 1:
            bytes[at] = telling[draw(sizeof telling)];
            break;
        case 2:
            if (length > size - at)
                length = size - at;
            memmove(bytes + at, bytes + at + length, size - at - length);
            size -= length;
            break;
        default:
            size = draw(8) ? size : at;
        }
    }
    return size;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    struct stat info;
    if (file && stat(path, &info) == 0 && (bytes = malloc((size_t)info.st_size + 1)) != NULL)
        *size = fread(bytes, 1, (size_t)info.st_size, file);
    if (file)
        fclose(file);
    return bytes;
}

static void run_file(const char *path)
{
    size_t size = 0;
    uint8_t *bytes = read_file(path, &size);
    uint8_t *work = bytes ? malloc(size + 1) : NULL;
    if (!work) {
        fprintf(stderr, "replay: %s cannot be read\n", path);
        exit(1);
    }
    run(bytes, size);
    for (unsigned long i = 0; i < mutations; i++) {
        memcpy(work, bytes, size);
        run(work, mutate(work, size));
    }
    free(work);
    free(bytes);
}

static void run_folder(const char *path)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort); /* sorted: the same mutations on every machine */
    for (int i = 0; i < count; i++) {
        char file[4096];
        struct stat info;
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (stat(file, &info) == 0 && S_ISREG(info.st_mode))
            run_file(file);
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--mutate") == 0) {
        mutations = strtoul(argv[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode))
            run_folder(argv[i]);
        else
            run_file(argv[i]);
    }
    printf("%lu inputs\n", runs);
    return runs == 0;
}
