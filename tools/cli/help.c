/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include "cli/terminal.h"

#include <string.h>

enum { LINE = 80, INDENT = 2, TEXT_COLUMN = 24 };

/* Columns of `length` bytes of UTF-8 text of narrow characters. */
static int columns(const char *text, size_t length)
{
    int n = 0;
    for (size_t i = 0; i < length; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* Writes text in lines that begin at column `indent`; the first one begins at column `at`. */
static void wrap(FILE *to, const char *text, int at, int indent)
{
    const char *blank = "";
    while (*text) {
        size_t length = strcspn(text, " ");
        int width = columns(text, length);
        if (*blank && at + 1 + width > LINE) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
            blank = "";
        }
        fprintf(to, "%s%.*s", blank, (int)length, text);
        at += width + (int)strlen(blank);
        blank = " ";
        text += length + (text[length] == ' ');
    }
    fputc('\n', to);
}

static void put_title(FILE *to, const char *title)
{
    fprintf(to, "\n%s%s:%s\n", cli_style_on(to, CLI_STYLE_TITLE), title, cli_style_off(to));
}

static void put_term(FILE *to, const char *term, const char *meaning)
{
    int width = columns(term, strlen(term));
    fprintf(to, "%*s%s", INDENT, "", term);
    if (INDENT + width + 2 > TEXT_COLUMN)
        fprintf(to, "\n%*s", TEXT_COLUMN, "");
    else
        fprintf(to, "%*s", TEXT_COLUMN - INDENT - width, "");
    wrap(to, meaning, TEXT_COLUMN, TEXT_COLUMN);
}

static void put_terms(FILE *to, const char *title, const cli_term *terms)
{
    put_title(to, title);
    for (; terms->term; terms++)
        put_term(to, terms->term, terms->meaning);
}

bool cli_is_listed(const cli_option *option, cli_command command)
{
    return !option->replaced_by && (command == CLI_COMMANDS || option->commands >> command & 1);
}

const char *cli_option_term(const cli_option *o, char buffer[CLI_TERM_BYTES])
{
    char letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(buffer, CLI_TERM_BYTES, "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    return buffer;
}

static void put_options(FILE *to, cli_command command, cli_section section)
{
    char term[CLI_TERM_BYTES];
    bool any = false;
    for (int i = 0; i < CLI_OPTIONS; i++) {
        const cli_option *o = &cli_options_table[i];
        if (o->section != section || !cli_is_listed(o, command))
            continue;
        if (!any)
            put_title(to, cli_section_titles[section]);
        any = true;
        put_term(to, cli_option_term(o, term), o->help);
        if (o->repeats)
            fprintf(to, "%*sMay be given several times.\n", TEXT_COLUMN, "");
    }
}

/* Prints the examples of a command; CLI_COMMANDS: all. */
static void put_examples(FILE *to, cli_command command)
{
    bool any = false;
    for (const cli_example *e = cli_examples; e->line; e++) {
        if (command != CLI_COMMANDS && e->command != command)
            continue;
        if (!any)
            put_title(to, "Examples");
        any = true;
        fprintf(to, "%*s%s\n%*s", INDENT, "", e->line, 3 * INDENT, "");
        wrap(to, e->meaning, 3 * INDENT, 3 * INDENT);
    }
}

static void put_exit_codes(FILE *to)
{
    char code[16];
    put_title(to, "Exit codes");
    for (const cli_exit_code *row = cli_exit_codes; row->meaning; row++) {
        snprintf(code, sizeof code, "%d", row->code);
        fprintf(to, "%*s%3s  %s\n", INDENT, "", code, row->meaning);
    }
}

static void print_overview(FILE *to)
{
    fprintf(to, "usage: dqrun MODEL [INPUTS…] [options]\n"
                "       dqrun COMMAND [arguments] [options]\n\n"
                "Runs quantized ONNX models.\n");
    put_title(to, "Commands");
    for (int i = 0; i < CLI_COMMANDS; i++)
        put_term(to, cli_commands[i].name, cli_commands[i].summary);
    fprintf(to, "\n'dqrun COMMAND --help' explains a command and lists its options.\n");
    put_examples(to, CLI_RUN);
    put_options(to, CLI_HELP, CLI_SECTION_GENERAL);
    put_terms(to, "Environment", cli_environment);
    put_exit_codes(to);
}

void cli_print_help(FILE *to, cli_command topic)
{
    if (topic == CLI_COMMANDS) {
        print_overview(to);
        return;
    }
    const cli_command_row *row = &cli_commands[topic];
    fprintf(to, "usage: dqrun %s%s%s [options]\n\n", topic == CLI_RUN ? "[run]" : row->name,
            *row->arguments ? " " : "", row->arguments);
    wrap(to, row->description, 0, 0);
    if (row->needs_model) {
        fputc('\n', to);
        wrap(to, "MODEL is an .onnx file, or '-' for standard input.", 0, 0);
    }
    if (row->more == CLI_COMPLETE_INPUT)
        put_terms(to, "INPUTS, in any number and order", cli_input_forms);
    for (int section = 0; section < CLI_SECTIONS; section++)
        put_options(to, topic, (cli_section)section);
    if (topic == CLI_RUN) {
        put_title(to, "Batches");
        fprintf(to, "%*s", INDENT, "");
        wrap(to, cli_batch_text, INDENT, INDENT);
    }
    put_examples(to, topic);
    fprintf(to, "\nExit codes and environment: dqrun --help\n");
}
