/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for bash, zsh and fish. */
#include "cli/help.h"

#include "cli/suggest.h"
#include "io/common.h"

#include <string.h>

static const char *const shells[] = {"bash", "zsh", "fish"};
enum { SHELLS = sizeof shells / sizeof *shells };

/* ---- Words --------------------------------------------------------------------------------------------- */

/* The first clause of a help text, in single quotes of a shell; characters of `special` are escaped by a
 * backslash. */
static void put_description(FILE *to, const char *help, const char *special)
{
    for (; *help; help++) {
        if (strchr(".:;", *help) && (help[1] == ' ' || !help[1]))
            break;
        if (*help == '\'')
            fputs("'\\''", to);
        else
            fprintf(to, "%s%c", strchr(special, *help) ? "\\" : "", *help);
    }
}

static void put_commands(FILE *to, const char *separator)
{
    for (int i = 0; i < CLI_COMMANDS; i++)
        fprintf(to, "%s%s", i ? separator : "", cli_commands[i].name);
}

static void put_shells(FILE *to)
{
    for (int i = 0; i < SHELLS; i++)
        fprintf(to, "%s%s", i ? " " : "", shells[i]);
}

static void put_isa_levels(FILE *to)
{
    const char *name;
    for (size_t i = 0; (name = dq_isa_name(i, NULL)) != NULL; i++)
        fprintf(to, "%s%s", i ? " " : "", name);
}

/* The possible words of an argument; none for a file or free text. */
static void put_choices(FILE *to, cli_completion completion, const char *choices)
{
    if (completion == CLI_COMPLETE_CHOICES && choices)
        fputs(choices, to);
    else if (completion == CLI_COMPLETE_ISA)
        put_isa_levels(to);
    else if (completion == CLI_COMPLETE_COMMAND)
        put_commands(to, " ");
    else if (completion == CLI_COMPLETE_SHELL)
        put_shells(to);
}

static bool has_choices(cli_completion completion)
{
    return completion == CLI_COMPLETE_CHOICES || completion == CLI_COMPLETE_ISA ||
           completion == CLI_COMPLETE_COMMAND || completion == CLI_COMPLETE_SHELL;
}

/* "-o|--output": a pattern of `case`. */
static void put_pattern(FILE *to, const cli_option *o)
{
    if (o->letter)
        fprintf(to, "-%c|", o->letter);
    fprintf(to, "--%s", o->name);
}

/* Patterns of all options whose argument is the next word. */
static void put_patterns_with_argument(FILE *to)
{
    const char *separator = "";
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (!cli_options_table[i].argument)
            continue;
        fputs(separator, to);
        put_pattern(to, &cli_options_table[i]);
        separator = "|";
    }
}

/* ---- bash ---------------------------------------------------------------------------------------------- */

static void put_bash_files(FILE *to, cli_completion completion)
{
    if (completion == CLI_COMPLETE_MODEL)
        fputs("_dqrun_files onnx", to);
    else if (completion == CLI_COMPLETE_INPUT)
        fputs("_dqrun_files npz npy pb", to);
    else if (completion == CLI_COMPLETE_FOLDER)
        fputs("_dqrun_files", to);
    else
        fputc(':', to);
}

static void put_bash_argument(FILE *to, cli_completion completion, const char *choices)
{
    if (has_choices(completion)) {
        fputs("_dqrun_words '", to);
        put_choices(to, completion, choices);
        fputc('\'', to);
    } else {
        put_bash_files(to, completion);
    }
}

static void put_bash_options(FILE *to, cli_command command)
{
    const char *separator = "";
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (!cli_is_listed(&cli_options_table[i], command))
            continue;
        fprintf(to, "%s--%s", separator, cli_options_table[i].name);
        separator = " ";
        if (cli_options_table[i].letter)
            fprintf(to, " -%c", cli_options_table[i].letter);
    }
}

static void print_bash(FILE *to)
{
    fputs("# bash completion of dqrun, printed by 'dqrun completion bash'.\n"
          "_dqrun_words()\n{\n    COMPREPLY+=($(compgen -W \"$1\" -- \"$cur\"))\n"
          "    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null\n}\n\n"
          "# Folders, and files with one of the extensions.\n"
          "_dqrun_files()\n{\n    local IFS=$'\\n' extension\n    compopt -o filenames 2>/dev/null\n"
          "    COMPREPLY+=($(compgen -d -- \"$cur\"))\n    for extension; do\n"
          "        COMPREPLY+=($(compgen -f -X \"!*.$extension\" -- \"$cur\"))\n    done\n}\n\n"
          "_dqrun()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=run "
          "first=yes options i\n    COMPREPLY=()\n"
          "    # bash cuts --isa=avx2 into three words.\n"
          "    if [[ $cur == = ]]; then\n        cur=\n    elif [[ $prev == = ]]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n        ",
          to);
    put_patterns_with_argument(to);
    fputs(") ((++i)) ;;\n        -*) ;;\n        ", to);
    put_commands(to, "|");
    fputs(") command=${COMP_WORDS[i]} first=; break ;;\n"
          "        *) first=; break ;;\n        esac\n    done\n    case $prev in\n",
          to);
    for (int i = 0; i < CLI_OPTIONS; i++) {
        const cli_option *o = &cli_options_table[i];
        if (!o->argument)
            continue;
        fputs("    ", to);
        put_pattern(to, o);
        fputs(") ", to);
        put_bash_argument(to, o->completion, o->choices);
        fputs("; return ;;\n", to);
    }
    fputs("    esac\n    case $command in\n", to);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(to, "    %s) options='", cli_commands[i].name);
        put_bash_options(to, (cli_command)i);
        fputs("' ;;\n", to);
    }
    fputs(
        "    esac\n    if [[ $cur == -* ]]; then\n        _dqrun_words \"$options\"\n        return\n    fi\n"
        "    if [[ $first ]]; then\n        _dqrun_words '",
        to);
    put_commands(to, " ");
    fputs("'\n        _dqrun_files onnx\n        return\n    fi\n"
          "    # The words after the command, or after the model where there is no command.\n"
          "    case $command in\n",
          to);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        const cli_command_row *row = &cli_commands[i];
        fprintf(to, "    %s) ", row->name);
        if (row->needs_model)
            fputs("_dqrun_files onnx npz npy pb", to);
        else
            put_bash_argument(to, row->completion, NULL);
        fputs(" ;;\n", to);
    }
    fputs("    esac\n}\ncomplete -F _dqrun dqrun\n", to);
}

/* ---- zsh ----------------------------------------------------------------------------------------------- */

static void put_zsh_argument(FILE *to, cli_completion completion, const char *choices)
{
    if (has_choices(completion)) {
        fputc('(', to);
        put_choices(to, completion, choices);
        fputc(')', to);
    } else if (completion == CLI_COMPLETE_MODEL) {
        fputs("_files -g \"*.onnx\"", to);
    } else if (completion == CLI_COMPLETE_INPUT) {
        fputs("_files -g \"*.(npz|npy|pb)\"", to);
    } else if (completion == CLI_COMPLETE_FOLDER) {
        fputs("_files -/", to);
    }
}

/* '(-o --output)'{-o+,--output=}'[Write…]:FILE:_files': the argument may be part of the word, or the next
 * word. */
static void put_zsh_option(FILE *to, const cli_option *o)
{
    fputs("            ", to);
    const char *short_end = o->argument ? "+" : "", *long_end = o->argument ? "=" : "";
    if (o->letter)
        fprintf(to, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, short_end, o->name,
                long_end);
    else
        fprintf(to, "'%s--%s%s[", o->repeats ? "*" : "", o->name, long_end);
    put_description(to, o->help, "[]:\\");
    fputc(']', to);
    if (o->argument) {
        fprintf(to, ":%s:", o->argument);
        put_zsh_argument(to, o->completion, o->choices);
    }
    fputs("'\n", to);
}

static void put_zsh_command(FILE *to, cli_command command)
{
    const cli_command_row *row = &cli_commands[command];
    fprintf(to, "    (%s)\n        arguments=(\n", row->name);
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (cli_is_listed(&cli_options_table[i], command))
            put_zsh_option(to, &cli_options_table[i]);
    }
    fputs("        )\n        word='", to);
    if (row->needs_model)
        fputs("_files -g \"*.(onnx|npz|npy|pb)\"", to);
    else
        put_zsh_argument(to, row->completion, NULL);
    fputs("' ;;\n", to);
}

static void print_zsh(FILE *to)
{
    fputs("#compdef dqrun\n# zsh completion of dqrun, printed by 'dqrun completion zsh'.\n"
          "_dqrun_first()\n{\n    local -a commands\n    commands=(\n",
          to);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(to, "        '%s:", cli_commands[i].name);
        put_description(to, cli_commands[i].summary, ":\\");
        fputs("'\n", to);
    }
    fputs("    )\n    _describe -t commands command commands\n    _files -g \"*.onnx\"\n}\n\n"
          "_dqrun()\n{\n    local command=run first=yes word i\n    local -a arguments\n"
          "    for ((i = 2; i < CURRENT; i++)); do\n        case $words[i] in\n        (",
          to);
    put_patterns_with_argument(to);
    fputs(") ((++i)) ;;\n        (-*) ;;\n        (", to);
    put_commands(to, "|");
    fputs(") command=$words[i] first=; break ;;\n        (*) first=; break ;;\n        esac\n    done\n"
          "    case $command in\n",
          to);
    for (int i = 0; i < CLI_COMMANDS; i++)
        put_zsh_command(to, (cli_command)i);
    fputs("    esac\n    [[ -z $first ]] || word=_dqrun_first\n"
          "    _arguments -s -S $arguments \"*:argument:$word\"\n}\n\n"
          "# The file is a function when zsh loads it from its fpath; otherwise a shell reads it.\n"
          "if [[ $funcstack[1] == _dqrun ]]; then\n    _dqrun \"$@\"\nelse\n    compdef _dqrun dqrun\nfi\n",
          to);
}

/* ---- fish ---------------------------------------------------------------------------------------------- */

static void put_fish_option(FILE *to, const cli_option *o)
{
    fputs("complete -c dqrun -n '__dqrun_command_is", to);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        if (o->commands >> i & 1)
            fprintf(to, " %s", cli_commands[i].name);
    }
    fprintf(to, "' -l %s", o->name);
    if (o->letter)
        fprintf(to, " -s %c", o->letter);
    if (has_choices(o->completion)) {
        fputs(" -x -a '", to);
        put_choices(to, o->completion, o->choices);
        fputc('\'', to);
    } else if (o->argument) {
        fputs(o->completion == CLI_COMPLETE_NOTHING ? " -x" : " -r -F", to);
    }
    fputs(" -d '", to);
    put_description(to, o->help, "\\");
    fputs("'\n", to);
}

static void print_fish(FILE *to)
{
    fputs("# fish completion of dqrun, printed by 'dqrun completion fish'.\n"
          "# The command of the line: the first word that is no option; run when that is a model; nothing "
          "yet: ''.\n"
          "function __dqrun_command\n    set -l skip no\n    for word in (commandline -opc)[2..-1]\n"
          "        if test $skip = yes\n            set skip no\n            continue\n        end\n"
          "        switch $word\n            case",
          to);
    for (int i = 0; i < CLI_OPTIONS; i++) {
        const cli_option *o = &cli_options_table[i];
        if (o->argument && o->letter)
            fprintf(to, " -%c", o->letter);
        if (o->argument)
            fprintf(to, " --%s", o->name);
    }
    fputs("\n                set skip yes\n            case '-*'\n            case ", to);
    put_commands(to, " ");
    fputs("\n                echo $word\n                return\n            case '*'\n                echo "
          "run\n"
          "                return\n        end\n    end\n    echo ''\nend\n\n"
          "function __dqrun_command_is\n    set -l command (__dqrun_command)\n"
          "    test -n \"$command\"; or set command run\n    contains -- $command $argv\nend\n\n",
          to);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(to, "complete -c dqrun -n 'test -z (__dqrun_command)' -a %s -d '", cli_commands[i].name);
        put_description(to, cli_commands[i].summary, "\\");
        fputs("'\n", to);
    }
    for (int i = 0; i < CLI_COMMANDS; i++) {
        const cli_command_row *row = &cli_commands[i];
        if (row->needs_model)
            continue;
        fprintf(to, "complete -c dqrun -n '__dqrun_command_is %s' -f", row->name);
        if (has_choices(row->completion)) {
            fputs(" -a '", to);
            put_choices(to, row->completion, NULL);
            fputc('\'', to);
        }
        fputc('\n', to);
    }
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (cli_is_listed(&cli_options_table[i], CLI_COMMANDS))
            put_fish_option(to, &cli_options_table[i]);
    }
}

/* -------------------------------------------------------------------------------------------------------- */

dq_status cli_print_completion(FILE *to, const char *shell, dq_error *err)
{
    static void (*const printers[])(FILE *) = {print_bash, print_zsh, print_fish};
    char text[CLI_SUGGEST_TEXT];
    cli_suggestion suggestion = cli_suggest_for(shell);
    for (int i = 0; i < SHELLS; i++) {
        cli_suggest_try(&suggestion, shells[i]);
        if (strcmp(shells[i], shell) != 0)
            continue;
        printers[i](to);
        return DQ_OK;
    }
    return io_fail(err, DQ_INVALID_ARGUMENT, "the shell is '%s', expected bash, zsh or fish%s", shell,
                   cli_suggest_text(&suggestion, "", text));
}
