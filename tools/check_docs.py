#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages (*.md): links, names of files, functions and options, length of lines and sentences.

    tools/check_docs.py [PROJECT_FOLDER]

- Links inside the project resolve, and so do their anchors.
- In backticks: files exist, dq_ and DQ_ names are in the sources, and so are functions written as name(); options of dqrun exist.
  FAMILY and <name> stand for any name. What a page shows in its own code blocks exists for that page.
- In a table with the columns "function" and "file" each function is in its file.
- Prose has at most 160 characters a line and 35 words a sentence. Tables, code and generated parts are free.
- CHANGELOG.md and CITATION.cff have the version of meson.build.
- A code block has one of the LANGUAGES. Tests run those of "console": tests/cli/transcript_cases.py.

Generated parts are between "<!-- NAME: written by TOOL -->" and "<!-- end of NAME -->"; a page whose first line says
"<!-- written by TOOL -->" is generated as a whole. One test is one page. Prints one line for each problem, and `N passed, N failed,
N skipped` as the last line; the exit code is 1 when something failed.
"""

import fnmatch
import re
import sys
from pathlib import Path

LONGEST_LINE, LONGEST_SENTENCE = 160, 35
LANGUAGES = {"console", "c", "cpp", "python", "sh", "text", "diff", "mermaid", "yaml", "cmake", "meson", "json", "tsv"}
SOURCES = ("src", "include", "tools", "tests", "python", "bench", "examples", "schemas")
TOP_FILES = ("meson.build", "meson_options.txt", "pyproject.toml")
HIDDEN = re.compile(r"\.(?!ci$|clang-format$)")

FENCE = re.compile(r"^ *```(\w*)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
WHOLE_GENERATED = re.compile(r"<!-- written by \S+ -->")
GENERATED = re.compile(r"<!-- (.+?): written by .+? -->\n.*?<!-- end of \1 -->", re.DOTALL)
IDENTIFIER = re.compile(r"(?<![\w-])(?:dq|DQ)_\w+[*…]?(?:\.[a-z]\w*)*")  # with the fields of a struct
FILE_NAME = re.compile(r"[\w.<>*+-]+\.(?:c|h|def|py|md)")
PATH = re.compile(r"[\w.<>*+-]+(?:/[\w.<>*+-]+)*/?")
PLACEHOLDER = re.compile(r"<\w+>|(?<![A-Za-z0-9])[A-Z][A-Z]+(?![a-z0-9])")
OPTION = re.compile(r"--[a-z][\w-]*")
HELP_OPTION = re.compile(r"^ +(?:-\w, )?--([a-z-]+)", re.MULTILINE)
END_OF_SENTENCE = re.compile(r"""(?<=[.!?])["')]*\s+(?=["'(]?[A-Za-z0-9])""")
WORD = re.compile(r"[^\W_][\w'’./-]*")


class Project:
    """The files of a project, and the words in its sources."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(self.list_files())
        self.endings = {name[at + 1:] for name in self.files for at in [-1, *(i for i, c in enumerate(name) if c == "/")]}
        self.folders = {name[:i] for name in self.files for i, c in enumerate(name) if c == "/"}
        self.words = set()
        for name in self.files:
            if (name.startswith(SOURCES) or name in TOP_FILES) and not name.endswith((".md", ".npz", ".onnx", ".svg")):
                self.words |= set(re.findall(r"--[a-z][\w-]*|\w+", self.text(name)))
        self.options = self.options_of_commands()

    def list_files(self):
        for path in self.root.rglob("*"):
            parts = path.relative_to(self.root).parts
            if path.is_file() and not any(HIDDEN.match(part) or part == "__pycache__" for part in parts) and not parts[0].startswith("build"):
                yield "/".join(parts)

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def options_of_commands(self):
        """Command -> its options, from the help in the transcripts of the command line."""
        found = {}
        for name in self.files:
            if fnmatch.fnmatch(name, "tests/cli/transcripts/*.txt"):
                for command, text in re.findall(r"^\$ dqrun (\w+) --help\n(.*?)(?=^[$#] |\Z)", self.text(name), re.MULTILINE | re.DOTALL):
                    found[command] = set(HELP_OPTION.findall(text))
        return found

    def has_path(self, path, page):
        path = path.rstrip("/")
        folder = page.rpartition("/")[0]
        names = (path, f"{folder}/{path}" if folder else path)
        if any(name in self.folders or name in self.endings for name in names):
            return True
        pattern = PLACEHOLDER.sub("*", path)
        return "*" in pattern and any(fnmatch.fnmatch(name, pattern) for name in self.endings | self.folders)


class Page:
    def __init__(self, project, name):
        self.project, self.name = project, name
        self.text = project.text(name)
        self.generated = bool(WHOLE_GENERATED.match(self.text))
        self.own = ""        # what its code blocks hold
        self.lines = []      # (number, line, is it prose); without code, comments and generated parts
        self.problems = []
        self.read()

    def say(self, number, text):
        self.problems.append(f"{self.name}:{number}: {text}")

    def read(self):
        def blank(match):
            return "\n" * match.group().count("\n")
        text = COMMENT.sub(blank, GENERATED.sub(blank, self.text))
        fence = None
        for number, line in enumerate(text.split("\n"), 1):
            match = FENCE.match(line)
            if match and fence is None:
                fence = match.group(1)
                if fence not in LANGUAGES:
                    self.say(number, f"a code block of language '{fence}', expected one of {', '.join(sorted(LANGUAGES))}")
            elif match:
                fence = None
            elif fence is None:
                self.lines.append((number, line, not line.lstrip().startswith("|")))
            else:
                self.own += line + "\n"
        self.own_words = set(re.findall(r"\w+", self.own))

    def anchors(self):
        found, fence = dict.fromkeys(re.findall(r'<a id="([^"]+)">', self.text), 1), False
        for line in self.text.split("\n"):
            fence ^= bool(FENCE.match(line))
            match = None if fence else re.match(r"#+ +(.*?)\s*$", line)
            if match:
                title = LINK.sub(r"\1", match.group(1)).lower()
                slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
                count = found.get(slug, 0)
                found[slug] = count + 1
                if count:
                    found[f"{slug}-{count}"] = 1
        return set(found)

    # ---- Links --------------------------------------------------------------------------------------------------

    def check_links(self, pages):
        for number, line, _ in self.lines:
            for _, target in LINK.findall(SPAN.sub("", line) if "](" in "".join(SPAN.findall(line)) else line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                name = self.name
                if path:
                    name = str((self.project.root / self.name).parent.joinpath(path).resolve())
                    name = name.removeprefix(str(self.project.root)).strip("/")
                if name not in self.project.files and name not in self.project.folders:
                    self.say(number, f"links to {path}, which is not there")
                elif anchor and (name not in pages or anchor not in pages[name].anchors()):
                    self.say(number, f"links to {target}, which has no such heading")

    # ---- Names --------------------------------------------------------------------------------------------------

    def has_word(self, word):
        words = self.project.words | self.own_words
        stem = word.rstrip("*…")
        return any(w.startswith(stem) for w in words) if stem != word else word in words

    def check_token(self, number, token):
        token = token.strip(",;:()[]\"'").removeprefix("./").removesuffix("()")
        if OPTION.fullmatch(token.split("=")[0]):
            if token.split("=")[0] not in self.project.words and token.split("=")[0].removeprefix("--") not in self.project.words:
                self.say(number, f"names the option {token}, which nothing has")
            return
        path = token.partition("#")[0]
        first = path.split("/")[0]
        looks_like_path = PATH.fullmatch(path) and ("/" in path and first in (*SOURCES, "docs", ".ci") or FILE_NAME.fullmatch(path.split("/")[-1]))
        if looks_like_path and not first.startswith("build") and path.rstrip("/").split("/")[-1] not in self.own:
            if not self.project.has_path(path, self.name):
                self.say(number, f"names the file {path}, which is not there")
        if "/" not in token:
            for name in () if FILE_NAME.fullmatch(token) else IDENTIFIER.findall(token):
                for word in name.split("."):
                    if not self.has_word(word):
                        self.say(number, f"names {word}, which is not in the sources")

    def check_names(self):
        for number, line, _ in self.lines:
            for span in SPAN.findall(line):
                for command in re.split(r" && ", span):
                    for token in () if command.startswith("ninja ") else command.split():  # ninja's targets are no files
                        self.check_token(number, token)
                call = re.fullmatch(r"(\w+)\(\)", span)
                if call and not self.has_word(call.group(1)):
                    self.say(number, f"names the function {span}, which is not in the sources")
                self.check_command(number, span)

    def check_command(self, number, text):
        """The options of "dqrun COMMAND …"; without a command it is run."""
        match = re.match(r"(?:\$ )?(?:\S*/)?dqrun (.*)", text)
        if not match or not self.project.options:
            return
        command = re.split(r" [|><&;] ?|\s#\s", match.group(1))[0]
        word = command.split()[0] if command.split() else ""
        options = self.project.options.get(word, self.project.options.get("run", set()))
        for option in OPTION.findall(command):
            if option.removeprefix("--") not in options | {"help", "version"}:
                self.say(number, f"gives dqrun {word if word in self.project.options else 'run'} the option {option}, which it does not have")

    def check_commands_in_code(self):
        fence = None
        for number, line in enumerate(self.text.split("\n"), 1):
            match = FENCE.match(line)
            if match:
                fence = match.group(1) if fence is None else None
            elif fence in ("console", "sh", "text"):
                self.check_command(number, line)

    def check_functions(self):
        """Rows of tables that have a column "function" and a column "file"."""
        columns = None
        for number, line, prose in self.lines:
            if prose:
                columns = None
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if columns is None:
                columns = [cell.lower() for cell in cells]
            elif "function" in columns and "file" in columns and not set(line) <= set("|- :"):
                files = SPAN.findall(cells[columns.index("file")])
                text = "".join(self.project.text(name) for name in files if name in self.project.files)
                for function in SPAN.findall(cells[columns.index("function")]):
                    if not re.search(rf"\b{re.escape(function)}\b", text):
                        self.say(number, f"says that {function} is in {' or '.join(files)}, where it is not")

    # ---- Lengths ------------------------------------------------------------------------------------------------

    def check_lengths(self):
        paragraph = []
        for number, line, prose in [*self.lines, (0, "", True)]:
            if prose and len(line) > LONGEST_LINE:
                self.say(number, f"has {len(line)} characters, expected at most {LONGEST_LINE}")
            starts = re.match(r"\s*(?:[-*] |\d+\. |#|>|\|)", line) or not line.strip() or not prose
            if starts and paragraph:
                self.check_sentences(paragraph)
                paragraph = []
            if prose and line.strip():
                paragraph.append((number, line))

    def check_sentences(self, paragraph):
        text = " ".join(line.strip() for _, line in paragraph)
        text = re.sub(r"^(?:[-*] (?:\[.\] )?|\d+\. |#+ |> )", "", text)
        text = LINK.sub(r"\1", SPAN.sub("Code", text)).replace("**", "")
        for sentence in END_OF_SENTENCE.split(text):
            words = len(WORD.findall(sentence))
            if words > LONGEST_SENTENCE:
                self.say(paragraph[0][0], f"a sentence of {words} words, expected at most {LONGEST_SENTENCE}: {sentence[:60]}…")

    def check(self, pages):
        self.check_links(pages)
        if self.generated:
            return self.problems
        self.check_names()
        self.check_commands_in_code()
        self.check_functions()
        self.check_lengths()
        return self.problems


def version_problems(project):
    """Files that say another version than meson.build."""
    version = re.search(r"^  version: '(.*)'", project.text("meson.build"), re.MULTILINE)[1] if "meson.build" in project.files else None
    for name, pattern in (("CHANGELOG.md", "^## {}( |$)"), ("CITATION.cff", "^version: {}$")):
        if version and (name not in project.files or not re.search(pattern.format(re.escape(version)), project.text(name), re.MULTILINE)):
            yield f"{name}: does not have the version {version} of meson.build"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    project = Project(root)
    pages = {name: Page(project, name) for name in project.files if name.endswith(".md")}
    failed = 0
    for page in pages.values():
        problems = page.check(pages)
        print("\n".join(problems), end="\n" if problems else "")
        failed += bool(problems)
    others = list(version_problems(project))
    print("\n".join(others), end="\n" if others else "")
    print(f"{len(pages) - failed} passed, {failed + len(others)} failed, 0 skipped")
    return 1 if failed or others or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
