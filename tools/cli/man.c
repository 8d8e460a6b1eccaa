/* SPDX-License-Identifier: Apache-2.0 */
/* Generates the manual page, with the man macros of groff and mandoc. */
#include "cli/help.h"

#include <string.h>

/* Writes one character as roff and advances `at`. Hyphens of options remain hyphens, and quotes remain
 * straight. */
static void put_character(FILE *to, const char **at)
{
    static const char ellipsis[] = "…";
    static const struct {
        char character;
        const char *roff;
    } escapes[] = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'"', "\\(dq"}};
    if (!strncmp(*at, ellipsis, strlen(ellipsis))) {
        fputs("\\&...", to);
        *at += strlen(ellipsis);
        return;
    }
    char c = *(*at)++;
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        if (c == escapes[i].character) {
            fputs(escapes[i].roff, to);
            return;
        }
    }
    fputc(c, to);
}

/* Writes text as roff in one line. */
static void put_line(FILE *to, const char *text)
{
    if (*text == '.')
        fputs("\\&", to); /* Not a request. */
    while (*text)
        put_character(to, &text);
}

/* Writes text as roff in several lines, with a new line at each sentence, and at a blank in a long line. */
static void put_text(FILE *to, const char *text)
{
    enum { LONG_LINE = 60 };
    const char *begin = text;
    if (*text == '.')
        fputs("\\&", to);
    while (*text) {
        bool breaks = *text == ' ' && text > begin && (text[-1] == '.' || text - begin >= LONG_LINE);
        if (!breaks) {
            put_character(to, &text);
            continue;
        }
        begin = ++text;
        fputs(*text == '.' ? "\n\\&" : "\n", to);
    }
}

static void put_paragraph(FILE *to, const char *text)
{
    fputs(".PP\n", to);
    put_text(to, text);
    fputc('\n', to);
}

/* Writes a term in bold, and its meaning. */
static void put_term(FILE *to, const char *term, const char *meaning)
{
    fputs(".TP\n\\fB", to);
    put_line(to, term);
    fputs("\\fR\n", to);
    put_text(to, meaning);
    fputc('\n', to);
}

static void put_usage(FILE *to, const char *command, const char *arguments)
{
    fputs(*command ? ".br\n\\fBdqrun " : "\\fBdqrun", to);
    put_line(to, command);
    fputs("\\fR ", to);
    put_line(to, arguments);
    fputs(*arguments ? " [options]\n" : "[options]\n", to);
}

/* Lists the commands that have an option: "run, bench"; "" if all have it. */
static void list_commands(unsigned commands, char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; commands != (1u << CLI_COMMANDS) - 1 && i < CLI_COMMANDS && used < size; i++) {
        if (commands >> i & 1)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", cli_commands[i].name);
    }
}

static void put_option(FILE *to, const cli_option *o)
{
    char commands[128];
    fputs(".TP\n", to);
    if (o->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", to);
    put_line(to, o->name);
    fputs("\\fR", to);
    if (o->argument) {
        fputs(" \\fI", to);
        put_line(to, o->argument);
        fputs("\\fR", to);
    }
    fputc('\n', to);
    put_text(to, o->help);
    if (o->repeats)
        fputs("\nMay be given several times.", to);
    list_commands(o->commands, commands, sizeof commands);
    if (*commands)
        fprintf(to, "\n(%s)", commands);
    fputc('\n', to);
}

static void put_options(FILE *to)
{
    fputs(".SH OPTIONS\nIn parentheses: the commands that have the option.\n", to);
    for (int section = 0; section < CLI_SECTIONS; section++) {
        fprintf(to, ".SS %s\n", cli_section_titles[section]);
        for (int i = 0; i < CLI_OPTIONS; i++) {
            if ((int)cli_options_table[i].section == section &&
                cli_is_listed(&cli_options_table[i], CLI_COMMANDS))
                put_option(to, &cli_options_table[i]);
        }
    }
}

static void put_terms(FILE *to, const cli_term *terms)
{
    for (; terms->term; terms++)
        put_term(to, terms->term, terms->meaning);
}

static void put_old_names(FILE *to)
{
    fputs(".SH COMPATIBILITY\nOld spellings keep working for one version, with a warning:\n", to);
    for (int i = 0; i < CLI_OPTIONS; i++) {
        const cli_option *o = &cli_options_table[i];
        if (o->replaced_by)
            fprintf(to, ".TP\n\\fB\\-\\-%s\\fR \\fI%s\\fR\nuse \\fB\\-\\-%s\\fR\n", o->name, o->argument,
                    o->replaced_by);
    }
    fputs(".TP\n\\fB\\-\\-output\\fR \\fINAME\\fR, where the model has a value of that name\n"
          "use \\fB\\-\\-value\\fR\n",
          to);
}

void cli_print_man(FILE *to)
{
    char code[16];
    fprintf(to, ".TH DQRUN 1 %s \"dqrun %s\" \"User Commands\"\n", cli_page_date, dq_version());
    fputs(".SH NAME\ndqrun \\- run quantized ONNX models\n.SH SYNOPSIS\n.nh\n.ad l\n", to);
    put_usage(to, "", cli_commands[CLI_RUN].arguments);
    for (int i = 0; i < CLI_COMMANDS; i++)
        put_usage(to, cli_commands[i].name, cli_commands[i].arguments);
    fputs(".ad\n.hy\n.SH DESCRIPTION\n", to);
    put_text(to, cli_commands[CLI_RUN].description);
    fputs("\n.PP\n\\fIMODEL\\fR is an .onnx file, or \\(aq\\-\\(aq for standard input. \\fIINPUTS\\fR are, "
          "in any "
          "number and order:\n",
          to);
    put_terms(to, cli_input_forms);
    fputs(".SH COMMANDS\n", to);
    for (int i = 0; i < CLI_COMMANDS; i++)
        put_term(to, cli_commands[i].name, cli_commands[i].description);
    put_options(to);
    fputs(".SH BATCHES\n", to);
    put_text(to, cli_batch_text);
    fputs("\n.SH JSON\n", to);
    put_text(to, cli_json_intro);
    fputc('\n', to);
    put_terms(to, cli_json_shapes);
    put_paragraph(to, cli_json_numbers);
    fputs(".SH ENVIRONMENT\n", to);
    put_terms(to, cli_environment);
    fputs(".SH EXIT STATUS\n", to);
    for (const cli_exit_code *row = cli_exit_codes; row->meaning; row++) {
        snprintf(code, sizeof code, "%d", row->code);
        put_term(to, code, row->meaning);
    }
    fputs(".SH EXAMPLES\n", to);
    for (const cli_example *e = cli_examples; e->line; e++)
        put_term(to, e->line, e->meaning);
    put_old_names(to);
    fputs(".SH SEE ALSO\n\\fBdqrun\\-conformance\\fR(1)\n", to);
}
