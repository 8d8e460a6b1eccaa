/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define EXIT_OUT_OF_MEMORY 6

void *cf_realloc(void *old, size_t count, size_t size)
{
    void *p = size != 0 && count > SIZE_MAX / size ? NULL : realloc(old, count * size + 1);
    if (p == NULL) {
        fprintf(stderr, "dqrun-conformance: out of memory: %zu times %zu bytes\n", count, size);
        exit(EXIT_OUT_OF_MEMORY);
    }
    return p;
}

char *cf_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(cf_realloc(NULL, size, 1), text, size);
}

char *cf_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    char *text = cf_realloc(NULL, size, 1);
    text[0] = '\0';
    va_start(args, format);
    vsnprintf(text, size, format, args);
    va_end(args);
    return text;
}

bool cf_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("dqrun-conformance: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

double cf_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint8_t *cf_read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (file == NULL || fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        cf_complain("%s: %s", path, file == NULL ? strerror(errno) : "not a regular file");
        if (file != NULL)
            fclose(file);
        return NULL;
    }
    *size = (size_t)info.st_size;
    uint8_t *data = cf_realloc(NULL, *size + 1, 1);
    if (fread(data, 1, *size, file) != *size) {
        cf_complain("%s: could not be read to its end", path);
        free(data);
        data = NULL;
    } else {
        data[*size] = 0;
    }
    fclose(file);
    return data;
}
