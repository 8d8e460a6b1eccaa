/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of the command line. */
#include "cli/options.h"

#include "cli/suggest.h"
#include "compare.h"
#include "io/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct reader {
    cli_options *options;
    int argc, at;
    char **argv;
    const char **words; /* Words that are no options, in order. */
    size_t word_count;
    bool has_operand; /* The first word comes after "--": it is no command. */
    uint64_t used;    /* Bit 1 << cli_option_id is set for each option seen. */
    bool help;
    dq_error *err;
} reader;

static bool was_given(const reader *r, cli_option_id id)
{
    return r->used >> id & 1;
}

/* ---- Options ------------------------------------------------------------------------------------------- */

static dq_status unknown_option(reader *r, const char *argument)
{
    char text[CLI_SUGGEST_TEXT], name[CLI_SUGGEST_BYTES] = "";
    size_t length = argument[1] == '-' ? strcspn(argument + 2, "=") : 0;
    if (length < sizeof name)
        memcpy(name, argument + 2, length);
    cli_suggestion suggestion = cli_suggest_for(name);
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (!cli_options_table[i].replaced_by)
            cli_suggest_try(&suggestion, cli_options_table[i].name);
    }
    cli_suggest_text(&suggestion, "--", text);
    return io_fail(r->err, DQ_INVALID_ARGUMENT, "unknown option '%s'%s", argument,
                   *text ? text : "; see dqrun --help");
}

static void set_flag(reader *r, cli_option_id id)
{
    cli_options *to = r->options;
    bool *const flags[CLI_OPTIONS] = {
        [CLI_OPTION_JSON] = &to->json,
        [CLI_OPTION_LEAVE_ONE_OUT] = &to->leave_one_out,
        [CLI_OPTION_HASH] = &to->hash,
        [CLI_OPTION_HASH_VALUES] = &to->hash_values,
        [CLI_OPTION_DOT] = &to->dot,
        [CLI_OPTION_SVG] = &to->svg,
        [CLI_OPTION_BATCH] = &to->batch,
        [CLI_OPTION_NO_FUSE] = &to->no_fuse,
        [CLI_OPTION_HONOR_ACCURACY_LEVEL] = &to->honor_accuracy_level,
        [CLI_OPTION_PROFILE] = &to->profile,
        [CLI_OPTION_VERBOSE] = &to->verbose,
        [CLI_OPTION_WHY] = &to->why,
        [CLI_OPTION_QUIET] = &to->quiet,
        [CLI_OPTION_NO_PROGRESS] = &to->no_progress,
        [CLI_OPTION_HELP] = &r->help,
        [CLI_OPTION_VERSION] = &to->version,
    };
    *flags[id] = true;
    to->hash = to->hash || to->hash_values;
    to->no_fuse = to->no_fuse || to->hash_values;
}

/* Applies an option. `value` is in the same command-line argument, or NULL. */
static dq_status apply(reader *r, cli_option_id id, bool is_long, const char *value)
{
    const cli_option *o = &cli_options_table[id];
    /* --output may name several values, as in dqrun 0.1. */
    bool repeats = o->repeats || !o->argument || id == CLI_OPTION_OUTPUT;
    if (was_given(r, id) && !repeats)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s is given twice", o->name);
    r->used |= UINT64_C(1) << id;
    if (!o->argument) {
        if (value)
            return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s takes no value, got '%s'", o->name, value);
        set_flag(r, id);
        return DQ_OK;
    }
    if (!value && r->at + 1 >= r->argc)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "--%s needs a value: --%s %s", o->name, o->name,
                       o->argument);
    return cli_set_value(r->options, id, is_long, value ? value : r->argv[++r->at], r->err);
}

static dq_status read_long(reader *r, const char *argument)
{
    const char *name = argument + 2, *equals = strchr(name, '=');
    cli_option_id id = cli_option_of(name, equals ? (size_t)(equals - name) : strlen(name));
    return id == CLI_OPTIONS ? unknown_option(r, argument) : apply(r, id, true, equals ? equals + 1 : NULL);
}

/* "-qv", "-o FILE", "-oFILE". */
static dq_status read_letters(reader *r, const char *argument)
{
    for (const char *c = argument + 1; *c; c++) {
        cli_option_id id = cli_option_of_letter(*c);
        if (id == CLI_OPTIONS)
            return unknown_option(r, argument);
        bool takes_value = cli_options_table[id].argument != NULL;
        dq_status status = apply(r, id, false, takes_value && c[1] ? c + 1 : NULL);
        if (status != DQ_OK || takes_value)
            return status;
    }
    return DQ_OK;
}

static dq_status read_arguments(reader *r)
{
    bool only_words = false;
    for (r->at = 1; r->at < r->argc; r->at++) {
        const char *argument = r->argv[r->at];
        dq_status status = DQ_OK;
        if (only_words || argument[0] != '-' || !argument[1])
            r->words[r->word_count++] = argument;
        else if (!strcmp(argument, "--")) {
            only_words = true;
            r->has_operand = !r->word_count;
        } else if (argument[1] == '-')
            status = read_long(r, argument);
        else
            status = read_letters(r, argument);
        if (status != DQ_OK || r->help || r->options->version)
            return status;
    }
    return DQ_OK;
}

/* ---- Commands ------------------------------------------------------------------------------------------ */

static const char *closest_command(const char *word, char text[CLI_SUGGEST_TEXT])
{
    cli_suggestion suggestion = cli_suggest_for(word);
    for (int i = 0; i < CLI_COMMANDS; i++)
        cli_suggest_try(&suggestion, cli_commands[i].name);
    return cli_suggest_text(&suggestion, "", text);
}

/* --help ends the parsing. Its topic is the command before or directly after it. */
static void choose_topic(reader *r)
{
    const char *word = r->word_count ? r->words[0] : r->at + 1 < r->argc ? r->argv[r->at + 1] : "";
    r->options->command = CLI_HELP;
    r->options->topic = cli_command_of(word);
}

static dq_status choose_help(reader *r, const char *word)
{
    char text[CLI_SUGGEST_TEXT];
    r->options->topic = cli_command_of(word);
    if (r->options->topic != CLI_COMMANDS)
        return DQ_OK;
    closest_command(word, text);
    return io_fail(r->err, DQ_INVALID_ARGUMENT, "there is no command '%s'%s", word,
                   *text ? text : "; see dqrun --help");
}

/* A first word that is no command is a model, unless no such file exists and it resembles a command. */
static dq_status choose_command(reader *r, size_t *first)
{
    struct stat info;
    char text[CLI_SUGGEST_TEXT];
    if (!r->word_count)
        return io_fail(r->err, DQ_INVALID_ARGUMENT,
                       "nothing to do: expected dqrun MODEL [INPUTS…] or dqrun COMMAND; see dqrun --help");
    const char *word = r->words[0];
    cli_command command = r->has_operand ? CLI_COMMANDS : cli_command_of(word);
    *first = command != CLI_COMMANDS;
    r->options->command = *first ? command : CLI_RUN;
    if (!*first && !r->has_operand && stat(word, &info) && *closest_command(word, text))
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "'%s' is neither a command nor a file%s", word, text);
    return DQ_OK;
}

/* Refuses options that the command does not have. */
static dq_status check_options(const reader *r)
{
    const char *command = cli_commands[r->options->command].name;
    for (int i = 0; i < CLI_OPTIONS; i++) {
        const cli_option *o = &cli_options_table[i];
        if (was_given(r, (cli_option_id)i) && !(o->commands >> r->options->command & 1))
            return io_fail(r->err, DQ_INVALID_ARGUMENT, "'%s' has no option --%s; see dqrun %s --help",
                           command, o->name, command);
    }
    return DQ_OK;
}

static dq_status take_words(reader *r, size_t first)
{
    cli_options *to = r->options;
    const cli_command_row *row = &cli_commands[to->command];
    size_t count = r->word_count - first;
    const char **words = r->words + first;
    if (count < row->least)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "'%s' needs %s: usage is dqrun %s %s", row->name,
                       !row->needs_model ? "an argument"
                       : row->least > 1  ? "a model and inputs"
                                         : "a model",
                       row->name, row->arguments);
    if (count > row->most)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "unexpected argument '%s': usage is dqrun %s%s%s",
                       words[row->most], row->name, *row->arguments ? " " : "", row->arguments);
    if (to->command == CLI_HELP)
        return count ? choose_help(r, words[0]) : DQ_OK;
    if (!row->needs_model) {
        to->argument = count ? words[0] : NULL;
        return DQ_OK;
    }
    to->model = words[0];
    for (size_t i = 1; i < count; i++)
        to->inputs[to->input_count++] = words[i];
    return DQ_OK;
}

/* ---- Conflicting options ------------------------------------------------------------------------------ */

static dq_status check_standard_input(const cli_options *o, dq_error *err)
{
    size_t uses = o->model && !strcmp(o->model, "-");
    uses += o->float_model && !strcmp(o->float_model, "-");
    for (size_t i = 0; i < o->input_count; i++)
        uses += !strcmp(o->inputs[i], "-");
    if (uses > 1)
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "'-' is given %zu times, and standard input can be read once", uses);
    return DQ_OK;
}

static dq_status check_standard_output(const cli_options *o, dq_error *err)
{
    if (!o->output || strcmp(o->output, "-") != 0)
        return DQ_OK;
    const char *other = o->json     ? "--json"
                        : o->expect ? "--expect"
                        : o->labels ? "--labels"
                        : o->hash   ? "--hash"
                                    : NULL;
    if (other && !(o->quiet && !o->json))
        return io_fail(err, DQ_INVALID_ARGUMENT, "--output - and %s both write to standard output", other);
    return DQ_OK;
}

/* Values inside the graph are no outputs of reduce and pack: what --output names is a folder or file. */
static dq_status complete_output(const reader *r)
{
    cli_options *o = r->options;
    if (o->command != CLI_REDUCE && o->command != CLI_PACK)
        return DQ_OK;
    if ((o->output != NULL) + o->file_or_value_count > 1)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "--output is given twice: '%s' and '%s'",
                       o->output ? o->output : o->files_or_values[0], o->files_or_values[o->output ? 0 : 1]);
    o->output = o->output ? o->output : o->file_or_value_count ? o->files_or_values[0] : NULL;
    if (o->command == CLI_PACK && !o->output && !strcmp(o->model, "-"))
        return io_fail(r->err, DQ_INVALID_ARGUMENT,
                       "'pack' needs a file for the weights of a model from standard input: --output FILE");
    return DQ_OK;
}

static dq_status complete_reduce(const reader *r)
{
    cli_options *o = r->options;
    if (o->command != CLI_REDUCE)
        return DQ_OK;
    if (!o->output || !strcmp(o->output, "-"))
        return io_fail(r->err, DQ_INVALID_ARGUMENT,
                       "'reduce' needs a folder for the part of the model: --output FOLDER");
    if (!o->input_count && !o->random)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "'reduce' needs inputs: INPUTS, or --random SEED");
    if (o->ref && o->against_isa)
        return io_fail(r->err, DQ_INVALID_ARGUMENT, "--ref and --against-isa exclude each other");
    if (o->no_fuse && !o->ref && !o->against_isa)
        return io_fail(r->err, DQ_INVALID_ARGUMENT,
                       "--no-fuse leaves nothing to compare the graph as written "
                       "with: expected --against-isa or --ref, too");
    if (o->against_isa && !was_given(r, CLI_OPTION_RTOL)) /* Levels have the same bits. */
        o->rtol = 0;
    if (o->against_isa && !was_given(r, CLI_OPTION_ATOL))
        o->atol = 0;
    return DQ_OK;
}

static dq_status check_combination(const reader *r)
{
    const cli_options *o = r->options;
    dq_error *err = r->err;
    bool makes_up = o->random || ((o->command == CLI_BENCH || o->command == CLI_PACK) && !o->input_count) ||
                    o->command == CLI_INSPECT;
    if (o->quiet && (o->verbose || o->why || o->json || o->hash))
        return io_fail(err, DQ_INVALID_ARGUMENT, "--quiet and --%s contradict each other",
                       o->verbose ? "verbose"
                       : o->why   ? "why"
                       : o->json  ? "json"
                                  : "hash");
    if (o->hash_values && o->value_count)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--hash-values gives every value, and excludes --value");
    if ((was_given(r, CLI_OPTION_RTOL) || was_given(r, CLI_OPTION_ATOL)) && !o->expect &&
        o->command != CLI_REDUCE)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--rtol and --atol need --expect");
    if (o->command == CLI_COMPARE && !o->float_model == !o->ref)
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       o->ref ? "--float and --ref exclude each other"
                              : "'compare' needs what to compare with: --float MODEL or --ref FILE");
    if (o->json + o->dot + o->svg > 1)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--json, --dot and --svg exclude each other");
    if (was_given(r, CLI_OPTION_RUNS) && was_given(r, CLI_OPTION_SECONDS))
        return io_fail(err, DQ_INVALID_ARGUMENT, "--runs and --seconds contradict each other");
    if (o->dim_count && !makes_up)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--dim needs --random, whose inputs it sizes");
    dq_status status = complete_output(r);
    if (status == DQ_OK)
        status = complete_reduce(r);
    if (status == DQ_OK)
        status = check_standard_input(o, err);
    return status == DQ_OK ? check_standard_output(o, err) : status;
}

/* ---- The whole command line --------------------------------------------------------------------------- */

static dq_status interpret(reader *r)
{
    size_t first = 0;
    dq_status status = read_arguments(r);
    if (r->options->version || status != DQ_OK)
        return status;
    if (r->help) {
        choose_topic(r);
        return DQ_OK;
    }
    status = choose_command(r, &first);
    if (status == DQ_OK)
        status = check_options(r);
    if (status == DQ_OK)
        status = take_words(r, first);
    if (status == DQ_OK)
        status = check_combination(r);
    return status == DQ_OK ? cli_choose_isa(r->options, r->err) : status;
}

dq_status cli_parse(int argc, char **argv, cli_options *options, dq_error *err)
{
    *options = (cli_options){.limits = DQ_LIMITS_INIT,
                             .topic = CLI_COMMANDS,
                             .rtol = COMPARE_RTOL,
                             .atol = COMPARE_ATOL,
                             .fail_above = (double)INFINITY,
                             .warmup = 1,
                             .seconds = 2};
    /* No list is longer than the command line. */
    size_t capacity = (size_t)argc + 1;
    options->inputs = calloc(capacity, sizeof *options->inputs);
    options->values = calloc(2 * capacity, sizeof *options->values); /* files_or_values may be appended. */
    options->files_or_values = calloc(capacity, sizeof *options->files_or_values);
    options->schema_dirs = calloc(capacity, sizeof *options->schema_dirs);
    options->dims = calloc(capacity, sizeof *options->dims);
    options->maps = calloc(capacity, sizeof *options->maps);
    reader r = {.options = options, .argc = argc, .argv = argv, .err = err};
    r.words = calloc(capacity, sizeof *r.words);
    dq_status status = DQ_OK;
    if (!options->inputs || !options->values || !options->files_or_values || !options->schema_dirs ||
        !options->dims || !options->maps || !r.words)
        status = io_no_memory(err);
    if (status == DQ_OK)
        status = interpret(&r);
    free(r.words);
    return status;
}

dq_session_options cli_session_options(const cli_options *options)
{
    dq_session_options session = DQ_SESSION_OPTIONS_INIT;
    session.threads = options->threads;
    session.isa = options->isa;
    session.no_fuse = options->no_fuse;
    session.disabled_passes = options->disabled_passes;
    session.algorithms = options->algorithms;
    session.honor_accuracy_level = options->honor_accuracy_level;
    return session;
}

void cli_options_clear(cli_options *options)
{
    for (size_t i = 0; i < options->dim_count; i++)
        free(options->dims[i].name);
    free(options->inputs);
    free(options->values);
    free(options->files_or_values);
    free(options->schema_dirs);
    free(options->dims);
    free(options->maps);
    *options = (cli_options){0};
}
