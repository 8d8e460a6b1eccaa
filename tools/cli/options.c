/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "compare.h"
#include "io/common.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char cli_help[] = "usage: dqrun MODEL [INPUTS…] [options]        run, and show or keep the outputs\n"
                        "       dqrun check MODEL [options]            list what cannot run, and why\n"
                        "       dqrun bench MODEL [INPUTS…] [options]  time loading and running\n"
                        "       dqrun ops [--json] [--schema-dir DIR]  list the operators that run\n"
                        "\n"
                        "MODEL is an .onnx file. INPUTS are, in any number and mixture:\n"
                        "  FILE.npz            arrays by the names of the model's inputs; arr_0, arr_1…\n"
                        "                      by position\n"
                        "  NAME=FILE.npy       one array (also as NAME=FILE.pb, a TensorProto)\n"
                        "  FOLDER              input_0.pb, input_1.pb… by position, as in ONNX's\n"
                        "                      test_data_set_N; a SequenceProto or OptionalProto where\n"
                        "                      the model wants one\n"
                        "\n"
                        "What happens with the outputs; without any of these a table shows them:\n"
                        "  -o, --out FILE.npz  write them to a file, as numpy.savez does\n"
                        "  --expect REF        compare with REF, an .npz (by name, or arr_N by position)\n"
                        "                      or a folder with output_0.pb…; exit code 1 when they\n"
                        "                      differ\n"
                        "  --rtol X, --atol X  floats are equal when |got - wanted| <= atol + rtol *\n"
                        "                      |wanted|, NaN to NaN (1e-3 and 1e-7); integers, bools and\n"
                        "                      strings are always compared exactly\n"
                        "  --labels FILE       class labels, one integer a row (.npy, or an .npz with one\n"
                        "                      array): print how many rows have their largest score\n"
                        "                      there, and which classes are confused\n"
                        "  --output NAME       this output only, or this value inside the graph; may be\n"
                        "                      given several times\n"
                        "\n"
                        "Inputs that are not given:\n"
                        "  --random SEED       make them up, the same on every machine: floats even in\n"
                        "                      [-1, 1), integers up to 16 bits in their whole range,\n"
                        "                      wider ones 0 to 9\n"
                        "  --dim NAME=SIZE     size of a symbolic dimension of a made-up input (else that\n"
                        "                      of a given input, else 1)\n"
                        "\n"
                        "How it runs:\n"
                        "  --threads N         threads to use (default: the cores that the process may\n"
                        "                      use)\n"
                        "  --isa LEVEL         highest instruction set to use, such as c or avx2\n"
                        "                      (default: DQRUN_ISA, else the best)\n"
                        "  --no-fuse           run the graph as written\n"
                        "  --honor-accuracy-level\n"
                        "                      where accuracy_level is 4, round activations to 8 bits as\n"
                        "                      ONNX Runtime does: faster\n"
                        "  --schema-dir DIR    operator schemas that override or add to dqrun's own; may\n"
                        "                      be given several times\n"
                        "  --limit NAME=SIZE   what a model may ask for, in bytes or with K, M, G, T\n"
                        "                      after them: file (64G), tensor (16G), session (64G);\n"
                        "                      or how many: nodes (1000000), nesting (32), and of a\n"
                        "                      run: work, multiply-adds and elements (no bound)\n"
                        "  --timeout SECONDS   give up loading and running after that time: exit code 124\n"
                        "\n"
                        "What dqrun bench measures:\n"
                        "  --warmup N          runs after the first that do not count (default: 1)\n"
                        "  --runs N            runs that count, or\n"
                        "  --seconds S         how long to go on running (default: 2)\n"
                        "  --profile           also where the time goes: operators and steps, the slowest\n"
                        "                      first\n"
                        "  --json              the figures as JSON\n"
                        "\n"
                        "  -v, --verbose       say what is used and the time of each step, on stderr\n"
                        "  --why               say what the planner decided, on stderr\n"
                        "  -q, --quiet         nothing but errors\n"
                        "  -h, --help          this text\n"
                        "  --version           the version\n"
                        "\n"
                        "Exit codes: 0 good, 1 outputs differ, 2 wrong usage, 3 bad model, 4 bad input,\n"
                        "5 unsupported, 6 out of memory or over a limit, 70 a bug in dqrun, 74 an output\n"
                        "could not be written, 124 the time of --timeout is up, 130 interrupted by\n"
                        "Ctrl-C (which cancels a run; a second one kills the process).\n";

enum id {
    ID_OUT,
    ID_EXPECT,
    ID_RTOL,
    ID_ATOL,
    ID_LABELS,
    ID_OUTPUT,
    ID_RANDOM,
    ID_DIM,
    ID_THREADS,
    ID_ISA,
    ID_NO_FUSE,
    ID_HONOR,
    ID_SCHEMA_DIR,
    ID_LIMIT,
    ID_TIMEOUT,
    ID_VERBOSE,
    ID_WHY,
    ID_QUIET,
    ID_HELP,
    ID_VERSION,
    ID_JSON,
    ID_WARMUP,
    ID_RUNS,
    ID_SECONDS,
    ID_PROFILE
};

enum {
    FOR_RUN = 1 << CLI_RUN,
    FOR_CHECK = 1 << CLI_CHECK,
    FOR_OPS = 1 << CLI_OPS,
    FOR_BENCH = 1 << CLI_BENCH,
    FOR_ALL = 15
};
enum { FOR_RUNS = FOR_RUN | FOR_BENCH, FOR_MODELS = FOR_RUNS | FOR_CHECK };

typedef struct option {
    const char *name;
    char letter;      /* 0: none */
    bool takes_value; /* the argument after it, or what follows '=' */
    unsigned commands;
    enum id id;
} option;

static const option options_table[] = {
    {"out", 'o', true, FOR_RUN, ID_OUT},
    {"expect", 0, true, FOR_RUN, ID_EXPECT},
    {"rtol", 0, true, FOR_RUN, ID_RTOL},
    {"atol", 0, true, FOR_RUN, ID_ATOL},
    {"labels", 0, true, FOR_RUN, ID_LABELS},
    {"output", 0, true, FOR_RUN, ID_OUTPUT},
    {"random", 0, true, FOR_RUNS, ID_RANDOM},
    {"dim", 0, true, FOR_RUNS, ID_DIM},
    {"threads", 0, true, FOR_RUNS, ID_THREADS},
    {"isa", 0, true, FOR_RUNS, ID_ISA},
    {"no-fuse", 0, false, FOR_RUNS, ID_NO_FUSE},
    {"honor-accuracy-level", 0, false, FOR_RUNS, ID_HONOR},
    {"schema-dir", 0, true, FOR_ALL, ID_SCHEMA_DIR},
    {"limit", 0, true, FOR_MODELS, ID_LIMIT},
    {"timeout", 0, true, FOR_RUNS, ID_TIMEOUT},
    {"verbose", 'v', false, FOR_RUN, ID_VERBOSE},
    {"why", 0, false, FOR_RUN, ID_WHY},
    {"quiet", 'q', false, FOR_RUN | FOR_CHECK, ID_QUIET},
    {"help", 'h', false, FOR_ALL, ID_HELP},
    {"version", 0, false, FOR_ALL, ID_VERSION},
    {"json", 0, false, FOR_OPS | FOR_BENCH, ID_JSON},
    {"warmup", 0, true, FOR_BENCH, ID_WARMUP},
    {"runs", 0, true, FOR_BENCH, ID_RUNS},
    {"seconds", 0, true, FOR_BENCH, ID_SECONDS},
    {"profile", 0, false, FOR_BENCH, ID_PROFILE},
};

typedef struct reader {
    cli_options *options;
    int argc, at;
    char **argv;
    unsigned used; /* bit 1 << id for each option seen */
    dq_error *err;
} reader;

static dq_status usage(reader *r, const char *what, const char *argument, const char *why)
{
    return io_fail(r->err, DQ_INVALID_ARGUMENT, "%s '%s'%s; see dqrun --help", what, argument, why);
}

static dq_status wants(reader *r, const option *o, const char *value, const char *wanted)
{
    return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s has the value '%s', wanted %s", o->name, value, wanted);
}

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

/* Digits with an optional point and exponent, as strtod without its hexadecimal, infinite and spaced forms.
 */
static bool read_tolerance(const char *text, double *value)
{
    if (!*text || text[strspn(text, "0123456789.eE+-")] || *text == '+' || *text == '-')
        return false;
    char *end = NULL;
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value);
}

static void push(const char **list, size_t *count, const char *value)
{
    list[(*count)++] = value;
}

static dq_status set_dim(reader *r, const option *o, const char *value)
{
    const char *equals = strrchr(value, '=');
    uint64_t size = 0;
    if (!equals || equals == value || !read_unsigned(equals + 1, INT64_MAX, &size))
        return wants(r, o, value, "NAME=SIZE with a size of 0 or more");
    char *name = malloc((size_t)(equals - value) + 1);
    if (!name)
        return io_fail(r->err, DQ_OUT_OF_MEMORY, "out of memory");
    memcpy(name, value, (size_t)(equals - value));
    name[equals - value] = 0;
    r->options->dims[r->options->dim_count++] = (cli_dim){name, (int64_t)size};
    return DQ_OK;
}

/* A number, with K, M, G or T after it where it counts bytes. */
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

static dq_status set_limit(reader *r, const option *o, const char *value)
{
    dq_limits *to = &r->options->limits;
    uint64_t nesting = 0;
    const struct {
        const char *name;
        bool bytes;
        uint64_t most, *place;
    } limits[] = {
        {"file", true, UINT64_MAX, &to->file_bytes},       {"tensor", true, UINT64_MAX, &to->tensor_bytes},
        {"session", true, UINT64_MAX, &to->session_bytes}, {"nodes", false, UINT64_MAX, &to->nodes},
        {"nesting", false, UINT32_MAX, &nesting},          {"work", false, UINT64_MAX, &to->work}};
    const char *equals = strchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (strlen(limits[i].name) != length || memcmp(limits[i].name, value, length) != 0)
            continue;
        if (!read_size(equals + 1, limits[i].bytes, limits[i].most, limits[i].place))
            return wants(r, o, value,
                         limits[i].bytes ? "bytes from 1 up, such as 512M" : "a number from 1 up");
        if (nesting)
            to->nesting = (uint32_t)nesting;
        return DQ_OK;
    }
    return wants(r, o, value, "NAME=SIZE with file, tensor, session, nodes, nesting or work");
}

enum { COUNT_MAX = 1000000000 };

static dq_status set_number(reader *r, const option *o, const char *value)
{
    cli_options *to = r->options;
    uint64_t number = 0;
    switch (o->id) {
    case ID_RTOL:
        return read_tolerance(value, &to->rtol) ? DQ_OK : wants(r, o, value, "a number of 0 or more");
    case ID_ATOL:
        return read_tolerance(value, &to->atol) ? DQ_OK : wants(r, o, value, "a number of 0 or more");
    case ID_RANDOM:
        to->random = true;
        return read_unsigned(value, UINT64_MAX, &to->seed)
                   ? DQ_OK
                   : wants(r, o, value, "a whole number from 0 to 2^64-1");
    case ID_WARMUP:
        return read_unsigned(value, COUNT_MAX, &to->warmup)
                   ? DQ_OK
                   : wants(r, o, value, "a whole number up to 1000000000");
    case ID_RUNS:
        return read_unsigned(value, COUNT_MAX, &to->runs) && to->runs
                   ? DQ_OK
                   : wants(r, o, value, "a whole number from 1 to 1000000000");
    case ID_SECONDS:
        return read_tolerance(value, &to->seconds) ? DQ_OK : wants(r, o, value, "a number of 0 or more");
    case ID_TIMEOUT:
        return read_tolerance(value, &to->timeout) && to->timeout > 0 && to->timeout <= COUNT_MAX
                   ? DQ_OK
                   : wants(r, o, value, "seconds above 0, up to 1000000000");
    default:
        if (!read_unsigned(value, 1024, &number) || !number)
            return wants(r, o, value, "a whole number from 1 to 1024");
        to->threads = (unsigned)number;
        return DQ_OK;
    }
}

static dq_status set_value(reader *r, const option *o, const char *value)
{
    cli_options *to = r->options;
    if (!*value)
        return wants(r, o, value, "one that is not empty");
    switch (o->id) {
    case ID_OUT:
        to->out = value;
        return DQ_OK;
    case ID_EXPECT:
        to->expect = value;
        return DQ_OK;
    case ID_LABELS:
        to->labels = value;
        return DQ_OK;
    case ID_ISA:
        to->isa = value;
        return DQ_OK;
    case ID_OUTPUT:
        for (size_t i = 0; i < to->output_count; i++) {
            if (!strcmp(to->outputs[i], value))
                return wants(r, o, value, "each name once");
        }
        push(to->outputs, &to->output_count, value);
        return DQ_OK;
    case ID_SCHEMA_DIR:
        push(to->schema_dirs, &to->schema_dir_count, value);
        return DQ_OK;
    case ID_DIM:
        return set_dim(r, o, value);
    case ID_LIMIT:
        return set_limit(r, o, value);
    default:
        return set_number(r, o, value);
    }
}

static void set_flag(cli_options *to, enum id id)
{
    switch (id) {
    case ID_NO_FUSE:
        to->no_fuse = true;
        break;
    case ID_HONOR:
        to->honor_accuracy_level = true;
        break;
    case ID_VERBOSE:
        to->verbose = true;
        break;
    case ID_WHY:
        to->why = true;
        break;
    case ID_QUIET:
        to->quiet = true;
        break;
    case ID_PROFILE:
        to->profile = true;
        break;
    case ID_HELP:
        to->command = CLI_HELP;
        break;
    case ID_VERSION:
        to->command = CLI_VERSION;
        break;
    default:
        to->json = true;
    }
}

/* `value` is what stands in the same argument, or NULL. */
static dq_status apply(reader *r, const option *o, const char *value)
{
    unsigned bit = 1u << o->id;
    bool repeats = o->id == ID_OUTPUT || o->id == ID_SCHEMA_DIR || o->id == ID_DIM || o->id == ID_LIMIT;
    if (r->used & bit && o->takes_value && !repeats)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s is given twice", o->name);
    r->used |= bit;
    if (!o->takes_value) {
        if (value)
            return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s takes no value, got '%s'", o->name, value);
        set_flag(r->options, o->id);
        return DQ_OK;
    }
    if (!value && r->at + 1 >= r->argc)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s needs a value", o->name);
    return set_value(r, o, value ? value : r->argv[++r->at]);
}

static dq_status read_long(reader *r, const char *argument)
{
    const char *name = argument + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    for (size_t i = 0; i < sizeof options_table / sizeof *options_table; i++) {
        const option *o = &options_table[i];
        if (strlen(o->name) == length && !memcmp(o->name, name, length))
            return apply(r, o, equals ? equals + 1 : NULL);
    }
    return usage(r, "unknown option", argument, "");
}

/* "-qv", "-o FILE", "-oFILE". */
static dq_status read_letters(reader *r, const char *argument)
{
    for (const char *c = argument + 1; *c; c++) {
        const option *o = NULL;
        for (size_t i = 0; i < sizeof options_table / sizeof *options_table; i++) {
            if (options_table[i].letter == *c)
                o = &options_table[i];
        }
        if (!o)
            return usage(r, "unknown option", argument, "");
        bool value_here = o->takes_value && c[1];
        dq_status status = apply(r, o, value_here ? c + 1 : NULL);
        if (status != DQ_OK || o->takes_value)
            return status;
    }
    return DQ_OK;
}

static dq_status read_arguments(reader *r, const char **words, size_t *word_count)
{
    bool only_words = false;
    for (r->at = 1; r->at < r->argc; r->at++) {
        const char *argument = r->argv[r->at];
        dq_status status = DQ_OK;
        if (only_words || argument[0] != '-')
            push(words, word_count, argument);
        else if (!strcmp(argument, "--"))
            only_words = true;
        else if (argument[1] == '-')
            status = read_long(r, argument);
        else if (argument[1])
            status = read_letters(r, argument);
        else
            status = usage(r, "cannot read", argument, ": files are needed, not pipes");
        if (status != DQ_OK)
            return status;
        if (r->options->command == CLI_HELP || r->options->command == CLI_VERSION)
            return DQ_OK;
    }
    return DQ_OK;
}

/* An option that the command does not have. */
static dq_status check_fitting(const reader *r)
{
    static const char *const names[] = {[CLI_RUN] = "a run",
                                        [CLI_CHECK] = "dqrun check",
                                        [CLI_OPS] = "dqrun ops",
                                        [CLI_BENCH] = "dqrun bench"};
    for (size_t i = 0; i < sizeof options_table / sizeof *options_table; i++) {
        const option *o = &options_table[i];
        if (r->used & 1u << o->id && !(o->commands & 1u << r->options->command))
            return io_fail(r->err, DQ_INVALID_ARGUMENT, "%s has no option --%s; see dqrun --help",
                           names[r->options->command], o->name);
    }
    return DQ_OK;
}

static dq_status check_words(reader *r, const char **words, size_t count)
{
    cli_options *to = r->options;
    if (!count)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "no model is given; see dqrun --help");
    if (!strcmp(words[0], "help")) {
        to->command = CLI_HELP;
        return DQ_OK;
    }
    if (!strcmp(words[0], "ops"))
        to->command = CLI_OPS;
    else if (!strcmp(words[0], "check"))
        to->command = CLI_CHECK;
    else if (!strcmp(words[0], "bench"))
        to->command = CLI_BENCH;
    dq_status status = check_fitting(r);
    if (status != DQ_OK)
        return status;
    size_t first = to->command != CLI_RUN;
    if (to->command == CLI_OPS && count > 1)
        return usage(r, "unexpected argument", words[1], " after dqrun ops");
    if (first && to->command != CLI_OPS && count < 2)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "dqrun %s needs a model; see dqrun --help", words[0]);
    if (to->command == CLI_CHECK && count > 2)
        return usage(r, "unexpected argument", words[2], " after the model");
    if (to->command == CLI_OPS)
        return DQ_OK;
    to->model = words[first];
    for (size_t i = first + 1; i < count; i++)
        push(to->inputs, &to->input_count, words[i]);
    return DQ_OK;
}

static dq_status check_together(const cli_options *o, unsigned used, dq_error *err)
{
    bool tolerance = used & (1u << ID_RTOL | 1u << ID_ATOL);
    if (o->quiet && (o->verbose || o->why))
        return io_fail(err, DQ_INVALID_ARGUMENT, "--quiet and --%s contradict each other",
                       o->verbose ? "verbose" : "why");
    if (tolerance && !o->expect)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--rtol and --atol need --expect");
    if (used & 1u << ID_RUNS && used & 1u << ID_SECONDS)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--runs and --seconds contradict each other");
    if (o->dim_count && !o->random)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--dim needs --random, whose inputs it sizes");
    return DQ_OK;
}

dq_status cli_parse(int argc, char **argv, cli_options *options, dq_error *err)
{
    *options = (cli_options){
        .limits = DQ_LIMITS_INIT, .rtol = COMPARE_RTOL, .atol = COMPARE_ATOL, .warmup = 1, .seconds = 2};
    /* No list is longer than the command line. */
    size_t room = (size_t)argc + 1;
    options->inputs = calloc(room, sizeof *options->inputs);
    options->outputs = calloc(room, sizeof *options->outputs);
    options->schema_dirs = calloc(room, sizeof *options->schema_dirs);
    options->dims = calloc(room, sizeof *options->dims);
    const char **words = calloc(room, sizeof *words);
    dq_status status = DQ_OK;
    if (!options->inputs || !options->outputs || !options->schema_dirs || !options->dims || !words)
        status = io_fail(err, DQ_OUT_OF_MEMORY, "out of memory");
    reader r = {.options = options, .argc = argc, .argv = argv, .err = err};
    size_t count = 0;
    if (status == DQ_OK)
        status = read_arguments(&r, words, &count);
    bool told = options->command == CLI_HELP || options->command == CLI_VERSION;
    if (status == DQ_OK && !told)
        status = check_words(&r, words, count);
    if (status == DQ_OK && !told)
        status = check_together(options, r.used, err);
    free(words);
    return status;
}

dq_session_options cli_session_options(const cli_options *options)
{
    return (dq_session_options){.size = sizeof(dq_session_options),
                                .threads = options->threads,
                                .isa = options->isa,
                                .no_fuse = options->no_fuse,
                                .honor_accuracy_level = options->honor_accuracy_level};
}

void cli_options_clear(cli_options *options)
{
    for (size_t i = 0; i < options->dim_count; i++)
        free(options->dims[i].name);
    free(options->inputs);
    free(options->outputs);
    free(options->schema_dirs);
    free(options->dims);
    *options = (cli_options){0};
}
