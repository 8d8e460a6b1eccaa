/* SPDX-License-Identifier: Apache-2.0 */
/* Batch files: a magic of eight bytes, then records until the end of the file. Every number is little-endian.
 *
 *     u64 size of the body that follows
 *     u32 length, name
 *     u64 length, model (ModelProto)
 *     f64 rtol, f64 atol
 *     u32 number of inputs, u32 number of outputs
 *     for each input, then for each output: u64 length, value (TensorProto) */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = {'D', 'Q', 'C', 'A', 'S', 'E', 'S', '1'};

/* Removes `size` bytes from the front of `from`. */
static bool take(cf_bytes *from, uint64_t size, cf_bytes *out)
{
    if (size > from->size)
        return false;
    *out = (cf_bytes){from->data, (size_t)size};
    from->data += size;
    from->size -= (size_t)size;
    return true;
}

static bool take_number(cf_bytes *from, unsigned bytes, uint64_t *out)
{
    cf_bytes part;
    if (!take(from, bytes, &part))
        return false;
    *out = 0;
    for (unsigned i = 0; i < bytes; i++)
        *out |= (uint64_t)part.data[i] << (8 * i);
    return true;
}

static bool take_count(cf_bytes *from, uint32_t *out)
{
    uint64_t n;
    bool good = take_number(from, 4, &n);
    *out = good ? (uint32_t)n : 0;
    return good;
}

static bool take_double(cf_bytes *from, double *out)
{
    uint64_t bits;
    bool good = take_number(from, 8, &bits);
    if (good)
        memcpy(out, &bits, sizeof *out);
    return good;
}

bool cf_next_value(cf_bytes *values, cf_bytes *value)
{
    uint64_t size;
    return take_number(values, 8, &size) && take(values, size, value);
}

bool cf_parse_record(cf_bytes body, cf_record *record)
{
    uint32_t name_length;
    if (!take_count(&body, &name_length) || !take(&body, name_length, &record->name) ||
        !cf_next_value(&body, &record->model) || !take_double(&body, &record->rtol) ||
        !take_double(&body, &record->atol) || !take_count(&body, &record->input_count) ||
        !take_count(&body, &record->output_count))
        return false;
    record->values = body;
    cf_bytes value;
    for (uint64_t i = (uint64_t)record->input_count + record->output_count; i > 0; i--)
        if (!cf_next_value(&body, &value))
            return false;
    return body.size == 0;
}

static bool add_records(const char *path, cf_bytes file, cf_list *list)
{
    const uint8_t *start = file.data;
    cf_bytes head;
    if (!take(&file, sizeof magic, &head) || memcmp(head.data, magic, sizeof magic) != 0)
        return cf_complain("%s: is not a batch file: it does not begin with DQCASES1", path);
    size_t before = list->count;
    while (file.size > 0) {
        size_t offset = (size_t)(file.data - start);
        cf_bytes body;
        cf_record record;
        if (!cf_next_value(&file, &body) || !cf_parse_record(body, &record))
            return cf_complain("%s: the record at byte %zu is cut off or its lengths do not add up", path,
                               offset);
        char *name = cf_format("%.*s", (int)record.name.size, (const char *)record.name.data);
        cf_add(list, name)->batch = body;
    }
    if (list->count == before)
        return cf_complain("%s: holds no case", path);
    return true;
}

bool cf_read_batch(const char *path, cf_list *list)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        cf_complain("%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    /* The mapping stays until the program ends: cases point into it. */
    size_t size = S_ISREG(info.st_mode) && info.st_size > 0 ? (size_t)info.st_size : 0;
    void *data = size == 0 ? NULL : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return cf_complain("%s: %s", path, strerror(errno));
    return add_records(path, (cf_bytes){data, size}, list);
}
