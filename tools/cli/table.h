/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of dqrun's commands and options, one row each. The parser, --help, the manual page and the
 * completions of shells all read these tables; nothing else lists commands or options. */
#ifndef DQ_TOOLS_CLI_TABLE_H
#define DQ_TOOLS_CLI_TABLE_H

#include <dqrun/dqrun.h>

/* ---- Commands ------------------------------------------------------------------------------------------ */

typedef enum cli_command {
    CLI_RUN,
    CLI_CHECK,
    CLI_BENCH,
    CLI_INSPECT,
    CLI_COMPARE,
    CLI_REDUCE,
    CLI_PACK,
    CLI_OPS,
    CLI_PASSES,
    CLI_ALGORITHMS,
    CLI_ISA,
    CLI_HELP,
    CLI_COMPLETION,
    CLI_MAN,
    CLI_COMMANDS /**< Number of commands. */
} cli_command;

/** The completion that a shell offers for an argument. */
typedef enum cli_completion {
    CLI_COMPLETE_NOTHING,
    CLI_COMPLETE_MODEL, /**< .onnx files and folders */
    CLI_COMPLETE_INPUT, /**< .npz, .npy and .pb files and folders */
    CLI_COMPLETE_FOLDER,
    CLI_COMPLETE_CHOICES, /**< the option's `choices` */
    CLI_COMPLETE_ISA,     /**< the levels of this build */
    CLI_COMPLETE_COMMAND, /**< names of commands */
    CLI_COMPLETE_SHELL
} cli_completion;

typedef struct cli_command_row {
    const char *name;
    const char *arguments;           /**< As in the usage line; "" for none. */
    bool needs_model;                /**< The first argument is a model. */
    size_t least, most;              /**< Number of arguments; SIZE_MAX: any number. */
    cli_completion completion, more; /**< Of the first argument, and of the following ones. */
    const char *summary;             /**< A line in the list of commands, without a period. */
    const char *description;         /**< sentences */
} cli_command_row;

extern const cli_command_row cli_commands[CLI_COMMANDS];

/** The command of that name; CLI_COMMANDS if there is none. */
cli_command cli_command_of(const char *name);

/* ---- Options ------------------------------------------------------------------------------------------- */

typedef enum cli_option_id {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_OUT,
    CLI_OPTION_VALUE,
    CLI_OPTION_EXPECT,
    CLI_OPTION_RTOL,
    CLI_OPTION_ATOL,
    CLI_OPTION_LABELS,
    CLI_OPTION_HASH,
    CLI_OPTION_HASH_VALUES,
    CLI_OPTION_JSON,
    CLI_OPTION_FLOAT,
    CLI_OPTION_REF,
    CLI_OPTION_AGAINST_ISA,
    CLI_OPTION_MAP,
    CLI_OPTION_LEAVE_ONE_OUT,
    CLI_OPTION_FIX,
    CLI_OPTION_FAIL_ABOVE,
    CLI_OPTION_REPORT,
    CLI_OPTION_DOT,
    CLI_OPTION_SVG,
    CLI_OPTION_BATCH,
    CLI_OPTION_RANDOM,
    CLI_OPTION_DIM,
    CLI_OPTION_THREADS,
    CLI_OPTION_ISA,
    CLI_OPTION_NO_FUSE,
    CLI_OPTION_DISABLE_PASS,
    CLI_OPTION_ALGORITHM,
    CLI_OPTION_HONOR_ACCURACY_LEVEL,
    CLI_OPTION_SCHEMA_DIR,
    CLI_OPTION_LIMIT,
    CLI_OPTION_PACKED,
    CLI_OPTION_TIMEOUT,
    CLI_OPTION_WARMUP,
    CLI_OPTION_RUNS,
    CLI_OPTION_SECONDS,
    CLI_OPTION_PROFILE,
    CLI_OPTION_TRACE,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_WHY,
    CLI_OPTION_QUIET,
    CLI_OPTION_NO_PROGRESS,
    CLI_OPTION_COLOR,
    CLI_OPTION_HELP,
    CLI_OPTION_VERSION,
    CLI_OPTIONS /**< Number of options; less than the bits of a uint64_t. */
} cli_option_id;

typedef enum cli_section {
    CLI_SECTION_INPUT,
    CLI_SECTION_OUTPUT,
    CLI_SECTION_COMPARING,
    CLI_SECTION_RUNNING,
    CLI_SECTION_BENCH,
    CLI_SECTION_GENERAL,
    CLI_SECTIONS
} cli_section;

extern const char *const cli_section_titles[CLI_SECTIONS];

typedef struct cli_option {
    const char *name;     /**< without "--" */
    char letter;          /**< 0: none */
    const char *argument; /**< Its name in the help; NULL: the option takes no argument. */
    unsigned commands;    /**< Bit 1 << cli_command is set for each command that has the option. */
    cli_section section;
    cli_completion completion; /**< of the argument */
    const char *choices;       /**< Of CLI_COMPLETE_CHOICES: words separated by a space. */
    bool repeats;              /**< may be given several times */
    const char *replaced_by; /**< Set for an old name of that option: accepted with a warning, not listed. */
    const char *help;        /**< sentences */
} cli_option;

/** By cli_option_id. */
extern const cli_option cli_options_table[CLI_OPTIONS];

/** The option of that name, which has `length` bytes; CLI_OPTIONS if there is none. */
cli_option_id cli_option_of(const char *name, size_t length);
/** The option of that letter; CLI_OPTIONS if there is none. */
cli_option_id cli_option_of_letter(char letter);

/* ---- Other texts of the help --------------------------------------------------------------------------- */

/** A term and its meaning. Lists of them end with a NULL term. */
typedef struct cli_term {
    const char *term, *meaning;
} cli_term;

extern const cli_term cli_input_forms[]; /**< of INPUTS */
extern const cli_term cli_environment[]; /**< variables */
extern const char cli_batch_text[];      /**< The definition of a batch. */

/** The output of --json: an introduction, by command its members, and the notation of numbers. */
extern const char cli_json_intro[], cli_json_numbers[];
extern const cli_term cli_json_shapes[];

typedef struct cli_example {
    cli_command command;
    const char *line, *meaning;
} cli_example;

/** Ends with a NULL line. */
extern const cli_example cli_examples[];

typedef struct cli_exit_code {
    int code;
    const char *meaning;
} cli_exit_code;

/** Ends with a NULL meaning. */
extern const cli_exit_code cli_exit_codes[];

/** The exit codes that are not values of dq_status. */
enum { CLI_EXIT_DIFFERS = 1, CLI_EXIT_TIMEOUT = 124 };

/** Date of the text above, for the manual page. */
extern const char cli_page_date[];

#endif
