/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of the arguments of options. */
#include "cli/options.h"

#include "cli/suggest.h"
#include "io/common.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 1000000000, THREADS_MAX = 1024 };

static dq_status refuse(cli_option_id id, const char *value, const char *expected, dq_error *err)
{
    return io_fail(err, DQ_INVALID_ARGUMENT, "--%s is '%s', expected %s", cli_options_table[id].name, value,
                   expected);
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static bool read_unsigned(const char *text, uint64_t most, uint64_t *value)
{
    uint64_t v = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        unsigned digit = (unsigned)(*text - '0');
        if (v > (most - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *value = v;
    return true;
}

/* Parses digits with an optional point and exponent: strtod without hexadecimal, infinity and spaces. */
static bool read_number(const char *text, double *value)
{
    if (!*text || text[strspn(text, "0123456789.eE+-")] || *text == '+' || *text == '-')
        return false;
    char *end = NULL;
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value);
}

/* Parses a number; a number of bytes may have the suffix K, M, G or T. */
static bool read_size(const char *text, bool bytes, uint64_t most, uint64_t *value)
{
    static const char units[] = "KMGT";
    char digits[24] = "";
    size_t length = strlen(text);
    const char *unit = length && bytes ? strchr(units, text[length - 1]) : NULL;
    if (unit)
        length--;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    if (!read_unsigned(digits, most >> shift, value))
        return false;
    *value <<= shift;
    return *value > 0;
}

/* ---- NAME=SIZE ----------------------------------------------------------------------------------------- */

static dq_status set_dim(cli_options *to, const char *value, dq_error *err)
{
    const char *equals = strrchr(value, '=');
    uint64_t size = 0;
    if (!equals || equals == value || !read_unsigned(equals + 1, INT64_MAX, &size))
        return refuse(CLI_OPTION_DIM, value, "NAME=SIZE with a size of 0 or more", err);
    char *name = malloc((size_t)(equals - value) + 1);
    if (!name)
        return io_no_memory(err);
    memcpy(name, value, (size_t)(equals - value));
    name[equals - value] = 0;
    to->dims[to->dim_count++] = (cli_dim){name, (int64_t)size};
    return DQ_OK;
}

static dq_status set_limit(cli_options *options, const char *value, dq_error *err)
{
    dq_limits *to = &options->limits;
    uint64_t nesting = 0;
    const struct {
        const char *name;
        bool bytes;
        uint64_t most, *target;
    } limits[] = {
        {"file", true, UINT64_MAX, &to->file_bytes},       {"tensor", true, UINT64_MAX, &to->tensor_bytes},
        {"session", true, UINT64_MAX, &to->session_bytes}, {"nodes", false, UINT64_MAX, &to->nodes},
        {"nesting", false, UINT32_MAX, &nesting},          {"work", false, UINT64_MAX, &to->work}};
    const char *equals = strchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    char name[CLI_SUGGEST_BYTES] = "", text[CLI_SUGGEST_TEXT];
    if (length < sizeof name)
        memcpy(name, value, length);
    cli_suggestion suggestion = cli_suggest_for(name);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        cli_suggest_try(&suggestion, limits[i].name);
        if (strcmp(limits[i].name, name) != 0)
            continue;
        if (!read_size(equals + 1, limits[i].bytes, limits[i].most, limits[i].target))
            return refuse(CLI_OPTION_LIMIT, value,
                          limits[i].bytes ? "bytes from 1 up, such as 512M" : "a number from 1 up", err);
        if (nesting)
            to->nesting = (uint32_t)nesting;
        return DQ_OK;
    }
    return io_fail(err, DQ_INVALID_ARGUMENT,
                   "--limit is '%s', expected NAME=SIZE with file, tensor, session, nodes, nesting or work%s",
                   value, cli_suggest_text(&suggestion, "", text));
}

/* ---- All of them --------------------------------------------------------------------------------------- */

static dq_status set_number(cli_options *to, cli_option_id id, const char *value, dq_error *err)
{
    uint64_t number = 0;
    switch (id) {
    case CLI_OPTION_RTOL:
        return read_number(value, &to->rtol) ? DQ_OK : refuse(id, value, "a number of 0 or more", err);
    case CLI_OPTION_ATOL:
        return read_number(value, &to->atol) ? DQ_OK : refuse(id, value, "a number of 0 or more", err);
    case CLI_OPTION_FAIL_ABOVE:
        return read_number(value, &to->fail_above) ? DQ_OK : refuse(id, value, "a number of 0 or more", err);
    case CLI_OPTION_RANDOM:
        to->random = true;
        return read_unsigned(value, UINT64_MAX, &to->seed)
                   ? DQ_OK
                   : refuse(id, value, "a whole number from 0 to 2^64-1", err);
    case CLI_OPTION_WARMUP:
        return read_unsigned(value, COUNT_MAX, &to->warmup)
                   ? DQ_OK
                   : refuse(id, value, "a whole number up to 1000000000", err);
    case CLI_OPTION_RUNS:
        return read_unsigned(value, COUNT_MAX, &to->runs) && to->runs
                   ? DQ_OK
                   : refuse(id, value, "a whole number from 1 to 1000000000", err);
    case CLI_OPTION_SECONDS:
        return read_number(value, &to->seconds) ? DQ_OK : refuse(id, value, "a number of 0 or more", err);
    case CLI_OPTION_TIMEOUT:
        return read_number(value, &to->timeout) && to->timeout > 0 && to->timeout <= COUNT_MAX
                   ? DQ_OK
                   : refuse(id, value, "seconds above 0, up to 1000000000", err);
    default:
        if (!read_unsigned(value, THREADS_MAX, &number) || !number)
            return refuse(id, value, "a whole number from 1 to 1024", err);
        to->threads = (unsigned)number;
        return DQ_OK;
    }
}

static dq_status set_color(cli_options *to, const char *value, dq_error *err)
{
    static const char *const names[] = {
        [CLI_COLOR_AUTO] = "auto", [CLI_COLOR_ALWAYS] = "always", [CLI_COLOR_NEVER] = "never"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(names[i], value)) {
            to->color = (cli_color)i;
            return DQ_OK;
        }
    }
    return refuse(CLI_OPTION_COLOR, value, "auto, always or never", err);
}

static dq_status add_value(cli_options *to, const char *value, dq_error *err)
{
    for (size_t i = 0; i < to->value_count; i++) {
        if (!strcmp(to->values[i], value))
            return refuse(CLI_OPTION_VALUE, value, "each name once", err);
    }
    to->values[to->value_count++] = value;
    return DQ_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static dq_status set_output(cli_options *to, bool is_long, const char *value, dq_error *err)
{
    bool is_file = !is_long || !strcmp(value, "-") || ends_with(value, ".npz") || ends_with(value, ".npy");
    if (!is_file) {
        to->files_or_values[to->file_or_value_count++] = value;
        return DQ_OK;
    }
    if (to->output)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--output is given twice: '%s' and '%s'", to->output, value);
    to->output = value;
    return DQ_OK;
}

dq_status cli_set_value(cli_options *to, cli_option_id id, bool is_long, const char *value, dq_error *err)
{
    if (!*value)
        return refuse(id, value, "one that is not empty", err);
    switch (id) {
    case CLI_OPTION_OUTPUT:
        return set_output(to, is_long, value, err);
    case CLI_OPTION_OUT:
        to->old_out = true;
        return set_output(to, false, value, err);
    case CLI_OPTION_VALUE:
        return add_value(to, value, err);
    case CLI_OPTION_EXPECT:
        to->expect = value;
        return DQ_OK;
    case CLI_OPTION_LABELS:
        to->labels = value;
        return DQ_OK;
    case CLI_OPTION_FLOAT:
        to->float_model = value;
        return DQ_OK;
    case CLI_OPTION_REF:
        to->ref = value;
        return DQ_OK;
    case CLI_OPTION_REPORT:
        if (!strcmp(value, "-"))
            return io_fail(err, DQ_INVALID_ARGUMENT, "--report is '-', expected a file");
        to->report = value;
        to->profile = true; /* of bench: what its report shows */
        return DQ_OK;
    case CLI_OPTION_TRACE:
        if (!strcmp(value, "-"))
            return io_fail(err, DQ_INVALID_ARGUMENT, "--trace is '-', expected a file");
        to->trace = value;
        return DQ_OK;
    case CLI_OPTION_PACKED:
        to->packed = value;
        return DQ_OK;
    case CLI_OPTION_FIX:
        to->fix = value;
        return DQ_OK;
    case CLI_OPTION_MAP:
        to->maps[to->map_count++] = value;
        return strchr(value, '=') ? DQ_OK : refuse(id, value, "FLOAT=NAME", err);
    case CLI_OPTION_ISA:
        to->isa = value;
        return DQ_OK;
    case CLI_OPTION_AGAINST_ISA:
        to->against_isa = value;
        return DQ_OK;
    case CLI_OPTION_DISABLE_PASS:
        to->disabled_passes = value;
        return DQ_OK;
    case CLI_OPTION_ALGORITHM:
        to->algorithms = value;
        return DQ_OK;
    case CLI_OPTION_SCHEMA_DIR:
        to->schema_dirs[to->schema_dir_count++] = value;
        return DQ_OK;
    case CLI_OPTION_COLOR:
        return set_color(to, value, err);
    case CLI_OPTION_DIM:
        return set_dim(to, value, err);
    case CLI_OPTION_LIMIT:
        return set_limit(to, value, err);
    default:
        return set_number(to, id, value, err);
    }
}
