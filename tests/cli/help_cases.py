# SPDX-License-Identifier: Apache-2.0
"""Help, manual pages and completions: all of them list the same commands and options, and programs that read them accept them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness import Skip, save_quantize

COMMANDS = ["run", "check", "bench", "inspect", "compare", "reduce", "pack", "ops", "passes", "algorithms", "isa", "help", "completion", "man"]
CONFORMANCE_PAGE = Path(__file__).parents[2] / "tools/dqrun-conformance.1"
REFERENCE = Path(__file__).parents[2] / "tools/api_reference.py"  # prints libdqrun(3)


def text_of(h, *args):
    return h.expect(list(args), out=None)


def options_of_help(h, command):
    """{(letter, name, argument)} of the help of a command."""
    return set(re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: ([A-Z=]+))?", text_of(h, "help", command), re.MULTILINE))


def options_of_page(page):
    """{(letter, name, argument): commands} of the section OPTIONS of a page; commands are "" where it names none."""
    section = page.split(".SH OPTIONS", 1)[1].split("\n.SH ", 1)[0]
    found = {}
    for entry in section.split(".TP\n")[1:]:
        head, *body = entry.splitlines()
        head = head.replace("\\-", "-")
        letter, name, argument = re.fullmatch(r"(?:\\fB-(\w)\\fR, )?\\fB--([\w-]+)\\fR(?: \\fI([A-Z=]+)\\fR)?", head).groups("")
        (commands,) = re.findall(r"^\(([\w, ]+)\)$", "\n".join(body), re.MULTILINE) or [""]
        found[letter, name, argument] = commands
    return found


def help_texts(h):
    for command in COMMANDS:
        def readable(command=command):
            text = text_of(h, command, "--help")
            assert text == text_of(h, "help", command) == text_of(h, "--help", command)
            assert all(len(line) <= 80 for line in text.splitlines()), "a line is too long"
            assert text.startswith(f"usage: dqrun {'[run]' if command == 'run' else command}"), text
        h.case(f"help of {command}", readable)

    def overview():
        text = text_of(h, "--help")
        assert text == text_of(h, "help") == text_of(h, "-h")
        assert all(len(line) <= 80 for line in text.splitlines()), "a line is too long"
        listed = re.findall(r"^  (\w+)  +\w", text.split("Commands:")[1].split("\n\n")[0], re.MULTILINE)
        assert listed == COMMANDS, listed
        assert "DQRUN_ISA" in text and "NO_COLOR" in text
    h.case("help of dqrun", overview)


def same_options(h):
    page = text_of(h, "man")
    in_page = options_of_page(page)

    def page_and_help():
        for command in COMMANDS:
            in_help = options_of_help(h, command)
            expected = {option for option, commands in in_page.items() if not commands or command in commands.split(", ")}
            assert in_help == expected, f"{command}: {in_help ^ expected}"
        assert len(in_page) > 25, in_page
    h.case("the page has the options of each command's help", page_and_help)

    def accepted():
        """What the page lists the parser takes, and what it does not list for a command the parser refuses."""
        for (letter, name, argument), commands in in_page.items():
            for command in COMMANDS:
                words = {"run": ["m"], "check": ["m"], "bench": ["m"], "completion": ["bash"]}.get(command, [])
                if name in ("help", "version"):
                    continue
                spellings = [[f"--{name}"], *([[f"-{letter}"]] if letter else [])]
                for spelling in spellings:
                    value = {"NAME=SIZE": "file=1" if name == "limit" else "N=1", "LEVEL": "c", "WHEN": "auto", "FLOAT=NAME": "a=b"}.get(argument, "1")
                    done = h.run([command, *words, *spelling, *([value] if argument else [])])
                    refused = f"'{command}' has no option --{name}" in done.stderr.decode()
                    has = not commands or command in commands.split(", ")
                    assert refused != has, f"{command} {spelling}: {done.stderr}"
                    assert b"unknown option" not in done.stderr, done.stderr
    h.case("the parser takes what the page lists", accepted)

    def exit_codes():
        in_help = re.findall(r"^ +(\d+)  (.+)$", text_of(h, "--help").split("Exit codes:")[1], re.MULTILINE)
        section = page.split(".SH EXIT STATUS")[1].split(".SH")[0].replace("\\-", "-")
        assert re.findall(r"\.TP\n\\fB(\d+)\\fR\n(.+)", section) == in_help
        assert [int(code) for code, _ in in_help] == [0, 1, 2, 3, 4, 5, 6, 70, 74, 124, 130], in_help
    h.case("exit codes", exit_codes)

    def commands():
        section = page.split(".SH COMMANDS")[1].split(".SH")[0]
        assert re.findall(r"\.TP\n\\fB(\w+)\\fR", section) == COMMANDS
    h.case("the page has all commands", commands)

    def old_names():
        section = page.split(".SH COMPATIBILITY")[1].split(".SH SEE")[0]
        assert "\\fB\\-\\-out\\fR" in section and ("", "out", "FILE") not in in_page
        assert "--out " not in text_of(h, "help", "run")
    h.case("old names are listed apart", old_names)


def conformance_page(h):
    def same():
        program = Path(h.program).with_name("dqrun-conformance")
        if not program.exists():
            raise Skip(f"{program} has not been built")
        text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        in_help = set(re.findall(r"^  (?:-(\w), )?--([\w-]+)(?: ([A-Z]+))?", text, re.MULTILINE))
        in_page = set(options_of_page(CONFORMANCE_PAGE.read_text()))
        assert in_help == in_page and len(in_help) > 10, in_help ^ in_page
        codes = re.findall(r"\b(\d+) [a-z]", " ".join(text.split("Exit codes:")[1].split()))
        section = CONFORMANCE_PAGE.read_text().split(".SH EXIT STATUS")[1].split(".SH")[0]
        assert re.findall(r"^\\fB(\d+)\\fR$", section, re.MULTILINE) == codes and "0" in codes, codes
    h.case("dqrun-conformance.1 has the options and exit codes of its help", same)


def formatters(h):
    """Pages go through groff and mandoc without a warning."""
    h.path("dqrun.1").write_text(text_of(h, "man"))
    library = subprocess.run([sys.executable, REFERENCE, "--man"], capture_output=True, text=True, check=True).stdout
    h.path("libdqrun.3").write_text(library)
    for page in h.path("dqrun.1"), CONFORMANCE_PAGE, h.path("libdqrun.3"):
        def groff(page=page):
            if not shutil.which("groff"):
                raise Skip("there is no groff")
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=True)
            assert not done.stderr, done.stderr

        def mandoc(page=page):
            if not shutil.which("mandoc"):
                raise Skip("there is no mandoc")
            done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True, check=False)
            assert done.returncode == 0 and not done.stdout, done.stdout
        h.case(f"groff of {page.name}", groff)
        h.case(f"mandoc of {page.name}", mandoc)

    def shown():
        if not shutil.which("groff"):
            raise Skip("there is no groff")
        done = subprocess.run(["groff", "-man", "-Tascii", "-P-c", h.path("dqrun.1")], capture_output=True, text=True, check=True)
        text = re.sub(r".\x08", "", done.stdout)
        assert re.search(r"^ +-o, --output FILE$", text, re.MULTILINE), text[:3000]
        assert re.search(r"^ +dqrun model\.onnx inputs/ -o outputs/$", text, re.MULTILINE)
        assert "\\" not in text, [line for line in text.splitlines() if "\\" in line]
    h.case("the page as a reader sees it", shown)


# ---- Completions -------------------------------------------------------------------------------------------

# The words of the command line, the last of them being typed; what must be offered; what must not be.
COMPLETIONS = [
    (["ch"], {"check"}, {"run"}),
    ([""], {"run", "bench", "model.onnx", "batch"}, set()),
    (["mod"], {"model.onnx"}, set()),
    (["--threads", "2", "be"], {"bench"}, set()),
    (["bench", "model.onnx", "--ru"], {"--runs"}, set()),
    (["check", "model.onnx", "--"], {"--json", "--limit", "--help"}, {"--runs", "--out", "--output"}),
    (["model.onnx", "--"], {"--output", "--value", "--batch"}, {"--runs", "--out"}),
    (["model.onnx", "in"], {"inputs.npz"}, set()),
    (["model.onnx", "--isa", ""], {"c"}, {"check", "inputs.npz"}),
    (["model.onnx", "--color", "a"], {"auto", "always"}, {"never"}),
    (["model.onnx", "--limit", "f"], {"file="}, set()),
    (["model.onnx", "--random", ""], set(), {"inputs.npz", "check"}),
    (["help", "b"], {"bench"}, {"batch"}),
    (["completion", ""], {"bash", "zsh", "fish"}, {"model.onnx", "check"}),
    (["isa", ""], set(), {"model.onnx", "check"}),
]

BASH = """source completion.bash
COMP_WORDS=(dqrun "$@")
COMP_CWORD=$#
_dqrun
printf '%s\\n' "${COMPREPLY[@]}"
"""

# The specifications that _dqrun hands to zsh's _arguments, and what its own functions offer.
ZSH = """_arguments() { print -r -l -- "$@" }
_describe() { print -r -l -- "${(@)commands%%:*}" }
_files() { print -r -- files "$@" }
compdef() { : }
source ./completion.zsh
words=(dqrun "$@")
CURRENT=$#words
_dqrun
"""


def completion_lines(h, shell, words):
    if shell == "bash":
        command = ["bash", "--norc", "-c", BASH, "bash", *words]
    elif shell == "zsh":
        command = ["zsh", "-f", "-c", ZSH, "zsh", *words]
    else:
        line = " ".join(["dqrun", *words])
        command = ["fish", "--no-config", "-c", f"source completion.fish; complete -C '{line}'"]
    done = subprocess.run(command, cwd=h.folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, (done.stderr, done.stdout)
    return done.stdout.splitlines()


def completions(h):
    save_quantize(h.path("model.onnx"))
    h.path("inputs.npz").write_bytes(b"")
    h.path("batch").mkdir()
    for shell in "bash", "zsh", "fish":
        h.path(f"completion.{shell}").write_text(text_of(h, "completion", shell))
    for shell in "bash", "fish":
        for words, offered, hidden in COMPLETIONS:
            def offers(shell=shell, words=words, offered=offered, hidden=hidden):
                if not shutil.which(shell):
                    raise Skip(f"there is no {shell}")
                got = {line.split("\t")[0].rstrip("/") for line in completion_lines(h, shell, words)}
                assert offered <= got, f"{offered - got} are not offered, but {got}"
                assert not hidden & got, f"{hidden & got} are offered"
            h.case(f"{shell}: dqrun {' '.join(words)}", offers)

    def equals_sign():
        got = set(completion_lines(h, "bash", ["model.onnx", "--color", "=", "n"]))
        assert got == {"never"}, got
        assert "c" in completion_lines(h, "bash", ["model.onnx", "--isa", "="])
    h.case("bash: --color=n", equals_sign)

    def options_of_bash():
        for command in COMMANDS:
            got = {word[2:] for word in completion_lines(h, "bash", [command, "--"])}
            expected = {name for _, name, _ in options_of_help(h, command)}
            assert got == expected, f"{command}: {got ^ expected}"
    h.case("bash has the options of each command's help", options_of_bash)

    def options_of_zsh():
        if not shutil.which("zsh"):
            raise Skip("there is no zsh")
        for command in COMMANDS:
            lines = completion_lines(h, "zsh", [command, "x", ""])
            got = {m for line in lines for m in re.findall(r"^(?:\([^)]*\))?\*?--([\w-]+)=?\[", line)}
            expected = {name for _, name, _ in options_of_help(h, command)}
            assert got == expected, f"{command}: {got ^ expected}"
            assert lines[:2] == ["-s", "-S"] and lines[-1].startswith("*:argument:"), lines
        lines = completion_lines(h, "zsh", [""])
        assert lines[-1] == "*:argument:_dqrun_first", lines
    h.case("zsh has the options of each command's help", options_of_zsh)

    def loaded_by_zsh():
        if not shutil.which("zsh"):
            raise Skip("there is no zsh")
        h.path("functions").mkdir()
        h.path("functions/_dqrun").write_text(text_of(h, "completion", "zsh"))
        for script in ("fpath=(./functions $fpath); autoload -U compinit; compinit -u -d dump; print $_comps[dqrun]",
                       "autoload -U compinit; compinit -u -d dump2; source ./completion.zsh; print $_comps[dqrun]"):
            done = subprocess.run(["zsh", "-f", "-c", script], cwd=h.folder, capture_output=True, text=True, check=False)
            assert (done.stdout, done.stderr) == ("_dqrun\n", ""), done
    h.case("zsh finds the completion in its fpath, and by source", loaded_by_zsh)

    def options_of_fish():
        if not shutil.which("fish"):
            raise Skip("there is no fish")
        for command in COMMANDS:
            got = {line.split("\t")[0][2:] for line in completion_lines(h, "fish", [command, "--"])}
            expected = {name for _, name, _ in options_of_help(h, command)}
            assert got == expected, f"{command}: {got ^ expected}"
    h.case("fish has the options of each command's help", options_of_fish)


def run(h):
    for part in help_texts, same_options, conformance_page, formatters, completions:
        part(h)
