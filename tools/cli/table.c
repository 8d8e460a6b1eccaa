/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <string.h>

const char cli_page_date[] = "2026-11-25";

const cli_command_row cli_commands[CLI_COMMANDS] = {
    [CLI_RUN] = {"run", "MODEL [INPUTS…]", true, 1, SIZE_MAX, CLI_COMPLETE_MODEL, CLI_COMPLETE_INPUT,
                 "run a model (the word run may be left out)",
                 "Runs a model on inputs from files and prints a table of the outputs, or writes them, or "
                 "compares them with expected ones."},
    [CLI_CHECK] = {"check", "MODEL", true, 1, 1, CLI_COMPLETE_MODEL, CLI_COMPLETE_NOTHING,
                   "list the nodes of a model that cannot run, and why",
                   "Prints a line for each node of the model that cannot run, with the reason. The exit code "
                   "is 0 when every node can run."},
    [CLI_BENCH] =
        {"bench", "MODEL [INPUTS…]", true, 1, SIZE_MAX, CLI_COMPLETE_MODEL, CLI_COMPLETE_INPUT,
         "measure how long loading and running a model takes",
         "Loads the model, runs it once, which also plans it, then --warmup times, then for as long "
         "as --runs or --seconds says, and prints the times of these last runs. Without INPUTS it "
         "makes inputs up, as --random 0 does."},
    [CLI_INSPECT] =
        {"inspect", "MODEL [INPUTS…]", true, 1, SIZE_MAX, CLI_COMPLETE_MODEL, CLI_COMPLETE_INPUT,
         "show what a model holds and how it is computed",
         "Prints inputs, outputs, weights, memory and operators of a model, then its nodes: how each is "
         "computed (on integers or floats, and why on floats), by which step and algorithm, and how its "
         "result "
         "is quantized. The plan is for the shapes of INPUTS, or of inputs that are made up; nothing runs."},
    [CLI_COMPARE] = {"compare", "MODEL INPUTS…", true, 2, SIZE_MAX, CLI_COMPLETE_MODEL, CLI_COMPLETE_INPUT,
                     "find where a quantized model loses accuracy, why, and what cures it",
                     "Runs a quantized model and its float form (--float), or reference values (--ref), on "
                     "the same inputs and "
                     "compares them value by value. Prints how much the outputs differ, then for the worst "
                     "nodes the cause and "
                     "the cure. Each .npz file and folder of INPUTS is one input, as in a batch. Both graphs "
                     "run as written, "
                     "without fusing nodes. docs/compare.md defines each measure."},
    [CLI_REDUCE] =
        {"reduce", "MODEL INPUTS…", true, 1, SIZE_MAX, CLI_COMPLETE_MODEL, CLI_COMPLETE_INPUT,
         "find the smallest part of a model that is computed in two ways with different results",
         "Computes a model in two ways on the same inputs: as written and with rewritten nodes, or "
         "at two ISA levels (--against-isa), or against reference values (--ref). Where results "
         "differ, it searches for the smallest connected part that still differs, runs each "
         "candidate, and writes the smallest with its inputs. The exit code is that of diff: 0 when "
         "nothing differs, 1 when a part is written. docs/reduce.md has an example."},
    [CLI_PACK] = {"pack", "MODEL [INPUTS…]", true, 1, SIZE_MAX, CLI_COMPLETE_MODEL, CLI_COMPLETE_INPUT,
                  "write packed weights to a file, from which later processes start faster",
                  "Plans the model for the shapes of INPUTS, or of inputs that are made up, and writes the "
                  "weights as its kernels read them to MODEL.packed, or to --output. run and bench read them "
                  "with --packed. The file is for this model, this version of dqrun and the ISA level; "
                  "anything else is refused (docs/packed-weights.md). Nothing runs."},
    [CLI_OPS] = {"ops", "[FILTER]", false, 0, 1, CLI_COMPLETE_NOTHING, CLI_COMPLETE_NOTHING,
                 "list the operators that dqrun runs",
                 "Prints each operator version with its element types. FILTER is a part of an operator's or "
                 "domain's name, in capital or small letters: only operators that contain it are listed."},
    [CLI_PASSES] = {"passes", "", false, 0, 0, CLI_COMPLETE_NOTHING, CLI_COMPLETE_NOTHING,
                    "list the passes that rewrite a graph before it runs",
                    "Prints the passes in the order in which they run: the pattern of nodes that each one "
                    "matches, what takes its place, and how far results may be from the graph as written. "
                    "--disable-pass leaves one out; --why tells what each pass did."},
    [CLI_ALGORITHMS] =
        {"algorithms", "", false, 0, 0, CLI_COMPLETE_NOTHING, CLI_COMPLETE_NOTHING,
         "list the algorithms that operators are computed by",
         "Prints a table for each operator that can be computed in several ways. The planner takes the "
         "algorithm of the lowest estimated cost among those that apply to a node; --why tells which, and "
         "why not the others. --algorithm forces one. Algorithms for floats that round in another order are "
         "marked with the number of their result: which result a node has follows from its shapes alone."},
    [CLI_ISA] =
        {"isa", "", false, 0, 0, CLI_COMPLETE_NOTHING, CLI_COMPLETE_NOTHING,
         "list the instruction sets of this build and processor",
         "Prints the ISA levels that this build has kernels for, the lowest first, which of them this "
         "processor has, and which one a run would use."},
    [CLI_HELP] = {"help", "[COMMAND]", false, 0, 1, CLI_COMPLETE_COMMAND, CLI_COMPLETE_NOTHING,
                  "explain a command and its options", "Prints the help of dqrun or of one of its commands."},
    [CLI_COMPLETION] =
        {"completion", "SHELL", false, 1, 1, CLI_COMPLETE_SHELL, CLI_COMPLETE_NOTHING,
         "print the completions for a shell: bash, zsh or fish",
         "Prints a script that lets a shell complete the commands, options and files of dqrun. "
         "'meson install' puts the scripts where the shells look for them; without it: "
         "eval \"$(dqrun completion bash)\"."},
    [CLI_MAN] = {"man", "", false, 0, 0, CLI_COMPLETE_NOTHING, CLI_COMPLETE_NOTHING,
                 "print the manual page dqrun(1)",
                 "Prints the manual page as roff text: dqrun man | man -l -"},
};

const char *const cli_section_titles[CLI_SECTIONS] = {
    [CLI_SECTION_INPUT] = "Input options",         [CLI_SECTION_OUTPUT] = "Output options",
    [CLI_SECTION_COMPARING] = "Comparing options", [CLI_SECTION_RUNNING] = "Running options",
    [CLI_SECTION_BENCH] = "Measuring options",     [CLI_SECTION_GENERAL] = "General options",
};

enum {
    RUN = 1 << CLI_RUN,
    CHECK = 1 << CLI_CHECK,
    BENCH = 1 << CLI_BENCH,
    INSPECT = 1 << CLI_INSPECT,
    COMPARE = 1 << CLI_COMPARE,
    REDUCE = 1 << CLI_REDUCE,
    PACK = 1 << CLI_PACK,
    OPS = 1 << CLI_OPS,
    PASSES = 1 << CLI_PASSES,
    ALGORITHMS = 1 << CLI_ALGORITHMS,
    ISA = 1 << CLI_ISA,
    RUNS = RUN | BENCH,
    PLANS = RUNS | INSPECT | REDUCE | PACK,
    MODELS = PLANS | COMPARE | CHECK,
    REPORTS = RUNS | INSPECT | REDUCE | COMPARE | CHECK | OPS | PASSES | ALGORITHMS | ISA,
    ALL = (1 << CLI_COMMANDS) - 1
};

#define NO_CHOICE CLI_COMPLETE_NOTHING, NULL
#define FLAG NULL

const cli_option cli_options_table[CLI_OPTIONS] = {
    [CLI_OPTION_OUTPUT] =
        {"output", 'o', "FILE", RUN | REDUCE | PACK, CLI_SECTION_OUTPUT, CLI_COMPLETE_INPUT, NULL, false,
         NULL,
         "Write the outputs to FILE, a .npz archive as numpy.savez writes it, or '-' for "
         "standard output. The file is written whole or not at all. For a batch: a folder; "
         "for reduce: a folder "
         "for model.onnx, inputs.npz, expected.npz and rerun.sh; for pack: the file of packed "
         "weights."},
    [CLI_OPTION_OUT] = {"out", 0, "FILE", RUN, CLI_SECTION_OUTPUT, CLI_COMPLETE_INPUT, NULL, false, "output",
                        "An old name of --output."},
    [CLI_OPTION_VALUE] = {"value", 0, "NAME", RUN, CLI_SECTION_OUTPUT, NO_CHOICE, true, NULL,
                          "Give this output only, or this value inside the graph, in place of all outputs."},
    [CLI_OPTION_EXPECT] =
        {"expect", 0, "REF", RUN, CLI_SECTION_OUTPUT, CLI_COMPLETE_INPUT, NULL, false, NULL,
         "Compare the outputs with REF: an .npz file (arrays by name, or arr_0, arr_1… by "
         "position) or a folder with output_0.pb, output_1.pb… Exit code 1 when they differ. "
         "For a batch: a folder with one such file or folder for each run, of its name."},
    [CLI_OPTION_RTOL] =
        {"rtol", 0, "X", RUN | REDUCE, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
         "Relative tolerance of --expect and reduce: floats are equal when |got - expected| <= atol + rtol "
         "* |expected|, NaN equals NaN. Integers, bools and strings are compared exactly. "
         "Default: 1e-3; 0 with --against-isa."},
    [CLI_OPTION_ATOL] = {"atol", 0, "X", RUN | REDUCE, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
                         "Absolute tolerance of --expect and reduce. Default: 1e-7; 0 with --against-isa."},
    [CLI_OPTION_LABELS] =
        {"labels", 0, "FILE", RUN | COMPARE, CLI_SECTION_OUTPUT, CLI_COMPLETE_INPUT, NULL, false, NULL,
         "Compare with class labels, one integer for each row (.npy, or an .npz with one "
         "array): print in how many rows the label has the largest score, and which classes "
         "are confused."},
    [CLI_OPTION_HASH] =
        {"hash", 0, FLAG, RUN, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
         "Print for each output the SHA-256 of its type, shape and elements (docs/hash.md), in "
         "place of the table: two machines agree when diff finds nothing."},
    [CLI_OPTION_HASH_VALUES] =
        {"hash-values", 0, FLAG, RUN, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
         "The same for each value inside the graph, in the order of the nodes: as if --no-fuse and --value "
         "were given with each input and each result of a node."},
    [CLI_OPTION_JSON] = {"json", 0, FLAG, REPORTS, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
                         "Print the results as JSON (its shape: dqrun(1), section JSON)."},
    [CLI_OPTION_FLOAT] = {"float", 0, "MODEL", COMPARE, CLI_SECTION_COMPARING, CLI_COMPLETE_MODEL, NULL,
                          false, NULL, "The float model that MODEL was quantized from."},
    [CLI_OPTION_REF] =
        {"ref", 0, "FILE", COMPARE | REDUCE, CLI_SECTION_COMPARING, CLI_COMPLETE_INPUT, NULL, false, NULL,
         "An .npz file with reference values of one input, by name: in place of --float, or of the "
         "second way to compute."},
    [CLI_OPTION_AGAINST_ISA] = {"against-isa", 0, "LEVEL", REDUCE, CLI_SECTION_COMPARING, CLI_COMPLETE_ISA,
                                NULL, false, NULL,
                                "Compare --isa with this level, in place of the graph as written."},
    [CLI_OPTION_MAP] =
        {"map", 0, "FLOAT=NAME", COMPARE, CLI_SECTION_COMPARING, NO_CHOICE, true, NULL,
         "Compare the value FLOAT of the float model with the value NAME of MODEL. Other values are "
         "matched by their names, less the suffixes that quantizers add."},
    [CLI_OPTION_LEAVE_ONE_OUT] =
        {"leave-one-out", 0, FLAG, COMPARE, CLI_SECTION_COMPARING, NO_CHOICE, false, NULL,
         "Also leave out each quantizer in turn and rank them by what the outputs gain. "
         "Takes a run of all inputs for each; groups without a gain are left out together."},
    [CLI_OPTION_FIX] = {"fix", 0, "FILE", COMPARE, CLI_SECTION_COMPARING, CLI_COMPLETE_MODEL, NULL, false,
                        NULL, "Write MODEL with the ranges that the verdicts suggest from these inputs."},
    [CLI_OPTION_FAIL_ABOVE] =
        {"fail-above", 0, "X", COMPARE, CLI_SECTION_COMPARING, NO_CHOICE, false, NULL,
         "Exit code 1 when an output's noise is more than X of its signal: 0.01 is an SQNR of "
         "20 dB."},
    [CLI_OPTION_REPORT] =
        {"report", 0, "FILE", INSPECT | COMPARE | BENCH, CLI_SECTION_OUTPUT, CLI_COMPLETE_INPUT, NULL, false,
         NULL,
         "Also write the analysis as one HTML file with plots and tables, which needs no network. "
         "With bench: --profile is implied."},
    [CLI_OPTION_DOT] = {"dot", 0, FLAG, INSPECT, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
                        "Print the graph in the language of Graphviz, integer regions in green."},
    [CLI_OPTION_SVG] = {"svg", 0, FLAG, INSPECT, CLI_SECTION_OUTPUT, NO_CHOICE, false, NULL,
                        "Print a drawing of the graph as SVG, integer regions in green; details show when "
                        "the pointer rests on a node."},
    [CLI_OPTION_BATCH] =
        {"batch", 0, FLAG, RUN, CLI_SECTION_INPUT, NO_CHOICE, false, NULL,
         "Run each .npz file and folder of INPUTS on its own and print a line for each; "
         "NAME=FILE inputs are given to every run. A folder of .npz files is always a batch."},
    [CLI_OPTION_RANDOM] =
        {"random", 0, "SEED", RUNS | REDUCE | PACK, CLI_SECTION_INPUT, NO_CHOICE, false, NULL,
         "Make up inputs that are not given, the same on every machine: floats even in [-1, "
         "1), integers of up to 16 bits in their whole range, wider ones 0 to 9."},
    [CLI_OPTION_DIM] = {"dim", 0, "NAME=SIZE", PLANS, CLI_SECTION_INPUT, NO_CHOICE, true, NULL,
                        "The size of a symbolic dimension of made-up inputs. Default: that of a given input, "
                        "else 1."},
    [CLI_OPTION_THREADS] = {"threads", 0, "N", PLANS | COMPARE, CLI_SECTION_RUNNING, NO_CHOICE, false, NULL,
                            "Number of threads. Default: the physical cores that the process may use."},
    [CLI_OPTION_ISA] = {"isa", 0, "LEVEL", PLANS | COMPARE | ISA, CLI_SECTION_RUNNING, CLI_COMPLETE_ISA, NULL,
                        false, NULL,
                        "The highest instruction set to use, such as c or avx2; 'dqrun isa' lists them. "
                        "Default: DQRUN_ISA, else the best."},
    [CLI_OPTION_NO_FUSE] = {"no-fuse", 0, FLAG, PLANS, CLI_SECTION_RUNNING, NO_CHOICE, false, NULL,
                            "Run the graph as written, without fusing nodes."},
    [CLI_OPTION_DISABLE_PASS] = {"disable-pass", 0, "NAME", PLANS, CLI_SECTION_RUNNING, NO_CHOICE, false,
                                 NULL,
                                 "Leave out a pass that rewrites the graph, or several separated by commas; "
                                 "'dqrun passes' lists them."},
    [CLI_OPTION_ALGORITHM] =
        {"algorithm", 0, "TABLE=ROW", PLANS, CLI_SECTION_RUNNING, NO_CHOICE, false, NULL,
         "Use this algorithm for all nodes of its table, or several separated by commas; "
         "'dqrun algorithms' lists them."},
    [CLI_OPTION_HONOR_ACCURACY_LEVEL] = {"honor-accuracy-level", 0, FLAG, PLANS, CLI_SECTION_RUNNING,
                                         NO_CHOICE, false, NULL,
                                         "Where a node's accuracy_level is 4, round activations to 8 bits as "
                                         "ONNX Runtime does: faster, less accurate."},
    [CLI_OPTION_SCHEMA_DIR] = {"schema-dir", 0, "DIR", MODELS | OPS, CLI_SECTION_RUNNING, CLI_COMPLETE_FOLDER,
                               NULL, true, NULL,
                               "Operator schemas (YAML) that override dqrun's own or add to them."},
    [CLI_OPTION_LIMIT] =
        {"limit", 0, "NAME=SIZE", MODELS, CLI_SECTION_RUNNING, CLI_COMPLETE_CHOICES,
         "file= tensor= session= nodes= nesting= work=", true, NULL,
         "What a model may ask for, in bytes or with K, M, G or T: file (default 64G), tensor "
         "(16G), session (64G); or a number: nodes (1000000), nesting (32), and for a run "
         "work, in multiply-adds and elements (no limit)."},
    [CLI_OPTION_PACKED] = {"packed", 0, "FILE", RUNS, CLI_SECTION_RUNNING, CLI_COMPLETE_INPUT, NULL, false,
                           NULL,
                           "Read packed weights from this file, which 'dqrun pack' wrote for the model."},
    [CLI_OPTION_TIMEOUT] = {"timeout", 0, "SECONDS", RUNS | COMPARE | REDUCE | PACK, CLI_SECTION_RUNNING,
                            NO_CHOICE, false, NULL,
                            "Cancel loading and running after this time: exit code 124."},
    [CLI_OPTION_WARMUP] = {"warmup", 0, "N", BENCH, CLI_SECTION_BENCH, NO_CHOICE, false, NULL,
                           "Runs after the first one that are not counted. Default: 1."},
    [CLI_OPTION_RUNS] = {"runs", 0, "N", BENCH, CLI_SECTION_BENCH, NO_CHOICE, false, NULL,
                         "Number of runs that are counted, in place of --seconds."},
    [CLI_OPTION_SECONDS] = {"seconds", 0, "S", BENCH, CLI_SECTION_BENCH, NO_CHOICE, false, NULL,
                            "How long to repeat the run. Default: 2."},
    [CLI_OPTION_PROFILE] =
        {"profile", 0, FLAG, BENCH, CLI_SECTION_BENCH, NO_CHOICE, false, NULL,
         "Also print the time of each operator and step, the slowest first, their multiply-adds and bytes "
         "a second, and what this machine can do."},
    [CLI_OPTION_TRACE] = {"trace", 0, "FILE", BENCH, CLI_SECTION_BENCH, CLI_COMPLETE_INPUT, NULL, false, NULL,
                          "Also write the steps of the runs over time to FILE, which ui.perfetto.dev opens."},
    [CLI_OPTION_VERBOSE] =
        {"verbose", 'v', FLAG, RUN | COMPARE | REDUCE, CLI_SECTION_GENERAL, NO_CHOICE, false, NULL,
         "Print the ISA level, the threads and the time of each step to standard error; with "
         "compare: print every value and weight; with reduce: print each candidate to standard error."},
    [CLI_OPTION_WHY] = {"why", 0, FLAG, RUN, CLI_SECTION_GENERAL, NO_CHOICE, false, NULL,
                        "Print what the planner decided to standard error."},
    [CLI_OPTION_QUIET] = {"quiet", 'q', FLAG, RUN | CHECK, CLI_SECTION_GENERAL, NO_CHOICE, false, NULL,
                          "Print errors only."},
    [CLI_OPTION_NO_PROGRESS] = {"no-progress", 0, FLAG, RUNS | COMPARE | REDUCE, CLI_SECTION_GENERAL,
                                NO_CHOICE, false, NULL,
                                "Show no progress bar, nor the steps of reduce. It is shown on a terminal "
                                "only, for what takes more than "
                                "two seconds."},
    [CLI_OPTION_COLOR] = {"color", 0, "WHEN", REPORTS | PACK, CLI_SECTION_GENERAL, CLI_COMPLETE_CHOICES,
                          "auto always never", false, NULL,
                          "Use colors: auto (on a terminal, unless NO_COLOR is set or TERM is dumb; the "
                          "default), always or never."},
    [CLI_OPTION_HELP] = {"help", 'h', FLAG, ALL, CLI_SECTION_GENERAL, NO_CHOICE, false, NULL,
                         "Print the help; after a command, of that command."},
    [CLI_OPTION_VERSION] = {"version", 'V', FLAG, ALL, CLI_SECTION_GENERAL, NO_CHOICE, false, NULL,
                            "Print the version."},
};

const cli_term cli_input_forms[] = {
    {"FILE.npz", "arrays by the names of the model's inputs, or arr_0, arr_1… by position"},
    {"NAME=FILE.npy", "one array for the input NAME"},
    {"NAME=FILE.pb", "the same from an ONNX TensorProto"},
    {"FOLDER", "with input_0.pb, input_1.pb… by position, as ONNX's test_data_set_N; a SequenceProto or "
               "OptionalProto where the model expects one"},
    {"-", "an .npz archive from standard input"},
    {NULL, NULL},
};

const char cli_batch_text[] =
    "Inputs from several files are one run: each file gives other inputs. A batch runs the model once for "
    "each "
    "file: with --batch, or when one of the INPUTS is a folder of .npz files. In a batch each .npz file, "
    "each "
    ".npz file of such a folder in the order of their names, and each folder with input_0.pb… is a run; "
    "NAME=FILE inputs are given to all runs. Each run prints one line. With --output FOLDER, the run of "
    "DIR/a.npz or DIR/a writes FOLDER/a.npz; with --expect FOLDER, it is compared with FOLDER/a.npz or the "
    "folder FOLDER/a. A run that fails does not stop the others; the exit code is that of the first failure, "
    "else 1 when outputs differ.";

const char cli_json_intro[] = "With --json a command prints one JSON document. It does so when it succeeds, "
                              "and also when check finds nodes "
                              "that cannot run, when outputs differ from --expect, and when runs of a batch "
                              "fail. Other errors leave standard "
                              "output empty. Errors are text on standard error. Later versions may add "
                              "members; those listed here stay.";

const cli_term cli_json_shapes[] = {
    {"run",
     "{\"model\", \"isa\", \"threads\", \"outputs\": [OUTPUT…]}; with --expect also \"comparison\": "
     "{\"equal\": true or false, \"outputs\": [{\"name\", \"equal\", \"count\", \"message\"}…]}; with "
     "--labels also \"labels\": {\"correct\", \"rows\", \"accuracy\", \"confusion\"}, where confusion[i][j] "
     "is how many rows of label i have the largest score in class j (null above 20 classes). OUTPUT is "
     "{\"name\", \"kind\": \"tensor\", \"type\", \"shape\": [SIZE…], \"min\", \"max\", \"mean\", \"nan\": "
     "number of NaN, \"first\": [up to 5 values]}, where min, max and mean leave NaN out and are null when "
     "there is nothing to tell; or {\"name\", \"kind\": \"sequence\" or \"optional\", \"type\": of the "
     "tensors "
     "inside, \"items\": [OUTPUT…]}; with --hash each OUTPUT of a list of outputs also has \"sha256\"."},
    {"run, a batch",
     "{\"model\", \"isa\", \"threads\", \"runs\": [{\"input\": FILE, \"outputs\", \"comparison\"} or "
     "{\"input\": FILE, \"error\": {\"status\", \"message\"}}…], \"failed\", \"different\"}, where the "
     "last two count runs."},
    {"check",
     "{\"model\", \"can_run\": true or false, \"problems\": [{\"status\", \"message\"}…], \"inputs\": "
     "[DECLARATION…], \"outputs\": [DECLARATION…]}. DECLARATION is {\"name\", \"type\": such as "
     "\"tensor(float)\", \"shape\": [SIZE, the name of a symbolic dimension, or null for an unknown "
     "one…], or null when no shape is declared; \"optional\": true or false}. A status is a name such as "
     "\"DQ_UNSUPPORTED\"."},
    {"bench",
     "{\"load_ms\", \"first_run_ms\", \"min_ms\", \"median_ms\", \"mean_ms\", \"p90_ms\", \"p99_ms\", "
     "\"runs\", "
     "\"peak_rss_kib\", \"threads\", \"isa\", \"model\", \"made_up_inputs\": true or false}; with --profile "
     "also \"steps\": [{\"node\", \"op\", \"algorithm\": TEXT or null, \"ms\", "
     "\"macs\", \"bytes\"}…] in the order of a run, and \"machine\": {\"integer_macs_per_s\", "
     "\"float_macs_per_s\", \"bytes_per_s\"}."},
    {"inspect",
     "{\"model\", \"inputs\", \"outputs\": [VALUE…], \"nodes\", \"values\", \"steps\", \"operators\", "
     "\"weights\", \"memory\", \"lifetimes\" …}, where nodes, values and steps refer to each other by index; "
     "docs/inspect-json.md lists all members."},
    {"compare",
     "{\"model\", \"float_model\", \"matched\", \"verdicts\": [{\"cause\", \"value\", \"node\", \"why\", "
     "\"cure\"…}…], the worst first, \"outputs\", \"values\", \"weights\"…}; docs/inspect-json.md lists all "
     "members."},
    {"reduce",
     "{\"model\", \"differs\": true or false, \"nodes_before\", \"candidates\": how many were run}; where it "
     "differs also \"nodes_after\", \"operators\": [TEXT…], \"difference\": TEXT, \"folder\", \"command\": "
     "TEXT."},
    {"ops",
     "[{\"domain\", \"name\", \"since_version\", \"deprecated\", \"implemented\", \"types\": {CONSTRAINT: "
     "[TYPE…]…}}…]"},
    {"passes",
     "[{\"name\", \"scope\": \"model\", \"precision\", \"graph\" or \"node\", \"matches\", \"replacement\", "
     "\"exactness\"}…] in the order in which they run."},
    {"algorithms", "[{\"id\": \"TABLE=ROW\", \"summary\", \"table\", \"table_summary\", \"result\": "
                   "NUMBER}…], table by table."},
    {"isa", "{\"used\": LEVEL, \"set_by\": \"--isa\", \"DQRUN_ISA\" or null, \"levels\": [{\"name\", "
            "\"available\"}…]}, the lowest first."},
    {NULL, NULL},
};

const char cli_json_numbers[] =
    "Integers are exact, up to 64 bits. Floats read back as the same number; the texts \"NaN\", \"Infinity\" "
    "and "
    "\"-Infinity\" stand for what JSON has no numbers for, and complex numbers are texts such as \"1+2i\".";

const cli_term cli_environment[] = {
    {"DQRUN_ISA", "The ISA level to use when there is no --isa."},
    {"NO_COLOR", "When set and not empty, no colors are used (unless --color always)."},
    {"TERM", "When dumb, neither colors nor a progress bar are used."},
    {NULL, NULL},
};

const cli_example cli_examples[] = {
    {CLI_RUN, "dqrun model.onnx inputs.npz", "run a model and print a table of its outputs"},
    {CLI_RUN, "dqrun model.onnx image=photo.npy -o scores.npz", "one input by name; write the outputs"},
    {CLI_RUN, "dqrun model.onnx test_data_set_0 --expect test_data_set_0", "compare with expected outputs"},
    {CLI_RUN, "dqrun model.onnx --random 1 --dim N=8", "run on made-up inputs"},
    {CLI_RUN, "dqrun model.onnx inputs/ -o outputs/", "a batch: one run for each .npz file of a folder"},
    {CLI_RUN, "cat model.onnx | dqrun - inputs.npz -o - > outputs.npz", "pipes"},
    {CLI_CHECK, "dqrun check model.onnx", "can this model run?"},
    {CLI_BENCH, "dqrun bench model.onnx --threads 1 --profile", "where does the time go?"},
    {CLI_INSPECT, "dqrun inspect model.onnx", "what runs on integers, what on floats, and why?"},
    {CLI_INSPECT, "dqrun inspect model.onnx --svg > model.svg", "a drawing of the graph"},
    {CLI_COMPARE, "dqrun compare int8.onnx inputs/ --float model.onnx",
     "where is accuracy lost, and what cures it?"},
    {CLI_COMPARE, "dqrun compare int8.onnx inputs.npz --float model.onnx --fix fixed.onnx",
     "write the model with better ranges"},
    {CLI_REDUCE, "dqrun reduce model.onnx inputs.npz --output small",
     "which nodes do rewrites compute differently?"},
    {CLI_REDUCE, "dqrun reduce model.onnx inputs.npz --against-isa c --output small",
     "which nodes does this processor compute differently?"},
    {CLI_PACK, "dqrun pack model.onnx", "write model.onnx.packed"},
    {CLI_PACK, "dqrun model.onnx inputs.npz --packed model.onnx.packed", "start from packed weights"},
    {CLI_OPS, "dqrun ops matmul", "which versions of MatMul and its relatives are there?"},
    {CLI_PASSES, "dqrun passes", "which patterns are replaced, and how exactly?"},
    {CLI_ALGORITHMS, "dqrun algorithms", "in which ways is a convolution computed?"},
    {CLI_ISA, "dqrun isa", "what would this processor use?"},
    {CLI_HELP, "dqrun help bench", "the options of a command"},
    {CLI_COMPLETION, "eval \"$(dqrun completion bash)\"", "complete commands and options in this shell"},
    {CLI_MAN, "dqrun man | man -l -", "read the manual page without installing it"},
    {CLI_RUN, NULL, NULL},
};

const cli_exit_code cli_exit_codes[] = {
    {0, "success"},
    {CLI_EXIT_DIFFERS, "outputs differ: --expect, --fail-above, reduce"},
    {DQ_INVALID_ARGUMENT, "wrong usage"},
    {DQ_BAD_MODEL, "the model is broken or cannot be read"},
    {DQ_BAD_INPUT, "an input is broken, missing or not what the model expects"},
    {DQ_UNSUPPORTED, "valid ONNX that dqrun cannot run"},
    {DQ_OUT_OF_MEMORY, "out of memory, or over a limit"},
    {DQ_INTERNAL, "a bug in dqrun"},
    {DQ_IO, "an output could not be written"},
    {CLI_EXIT_TIMEOUT, "the time of --timeout is over"},
    {DQ_CANCELLED, "interrupted by Ctrl-C (a second one kills the process)"},
    {0, NULL},
};

cli_command cli_command_of(const char *name)
{
    for (int i = 0; i < CLI_COMMANDS; i++) {
        if (!strcmp(cli_commands[i].name, name))
            return (cli_command)i;
    }
    return CLI_COMMANDS;
}

cli_option_id cli_option_of(const char *name, size_t length)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (strlen(cli_options_table[i].name) == length && !memcmp(cli_options_table[i].name, name, length))
            return (cli_option_id)i;
    }
    return CLI_OPTIONS;
}

cli_option_id cli_option_of_letter(char letter)
{
    for (int i = 0; i < CLI_OPTIONS; i++) {
        if (cli_options_table[i].letter == letter)
            return (cli_option_id)i;
    }
    return CLI_OPTIONS;
}
