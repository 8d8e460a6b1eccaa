#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the C API from the comments of the public header, or the manual page libdqrun(3).

    tools/api_reference.py [--check]     docs/api/*.md; with --check nothing is changed, and the exit code is 1 when a page is stale
    tools/api_reference.py --man         prints libdqrun(3) as roff text

The header is a comment with the rules, then sections ("/* ---- Title ---- */") of declarations, each with the comment before it. In a
comment, lines indented by four more spaces are code, and lines that begin with "- " are list items.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "include" / "dqrun" / "dqrun.h"
FOLDER = ROOT / "docs" / "api"
MARK = "<!-- written by tools/api_reference.py -->\n"
SECTION = re.compile(r"^/\* -{4} (.+?) -+ \*/$")
TITLE = re.compile(r"^([A-Z][A-Za-z ]{1,22})\. (.*)", re.DOTALL)


class Declaration:
    def __init__(self, name, kind, code, comment):
        self.name, self.kind, self.code, self.comment = name, kind, code, comment
        self.macro = None  # the INIT macro of a struct


# ---- Reading ------------------------------------------------------------------------------------------------------


def comment_lines(text):
    """The lines of a comment without its stars."""
    text = re.sub(r"^/\*+ ?|\s*\*/$", "", text.strip(), flags=re.DOTALL)
    return [re.sub(r"^ \* ?", "", line) for line in text.split("\n")]


def end_of_declaration(lines, i):
    """The index after the declaration that begins at line i."""
    if lines[i].startswith("#define"):
        while lines[i].rstrip().endswith("\\"):
            i += 1
        return i + 1
    depth = 0
    while True:
        code = re.sub(r"/\*.*?\*/", "", lines[i])
        depth += code.count("{") - code.count("}")
        i += 1
        if depth == 0 and code.rstrip().endswith(";"):
            return i


def name_of(code):
    """Name and kind of a declaration."""
    if code.startswith("#define"):
        return re.match(r"#define (\w+)", code)[1], "macro"
    found = re.match(r"typedef \w[\w ]*\(\*(\w+)\)", code)
    if found:
        return found[1], "type"
    if code.startswith("typedef"):
        return re.search(r"(\w+);\s*$", code)[1], "type"
    return re.search(r"\b(dq_\w+)\(", code)[1], "function"


def read_header():
    """The rules as lines, and the sections: [(title, [Declaration])]."""
    lines = HEADER.read_text(encoding="utf-8").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("/* This is") or line.startswith("/* dqrun runs"))
    end = next(i for i in range(start, len(lines)) if lines[i].endswith("*/"))
    rules, sections, comment, i = comment_lines("\n".join(lines[start:end + 1])), [], [], end + 1
    while i < len(lines):
        line = lines[i]
        section = SECTION.match(line)
        if section:
            sections.append((section[1], []))
        elif line.startswith("/**"):
            end = next(k for k in range(i, len(lines)) if lines[k].rstrip().endswith("*/"))
            comment, i = comment_lines("\n".join(lines[i:end + 1])), end + 1
            continue
        elif re.match(r"DQ_API |typedef |#define DQ_(?!API)", line):
            sections = sections or [("Version", [])]
            end = end_of_declaration(lines, i)
            code = "\n".join(lines[i:end])
            name, kind = name_of(code)
            if name.endswith("_INIT"):
                sections[-1][1][-1].macro = name
            else:
                sections[-1][1].append(Declaration(name, kind, code, comment))
            comment, i = [], end
            continue
        i += 1
    functions = [d for _, own in sections for d in own if d.kind == "function"]
    assert len(functions) == sum(line.startswith("DQ_API ") for line in lines), "a function of the header was not understood"
    return rules, sections


def paragraphs(lines):
    """("text" | "code" | "item", text) for each part of a comment."""
    parts = []
    for line in lines:
        kind = "code" if line.startswith("    ") else "item" if re.match(r" ?- ", line) else "text"
        if not line.strip():
            parts.append(("end", ""))
        elif kind == "code":
            if parts and parts[-1][0] == "code":
                parts[-1] = ("code", parts[-1][1] + "\n" + line[4:])
            else:
                parts.append(("code", line[4:]))
        elif kind == "item":
            parts.append(("item", line.strip()[2:]))
        elif parts and parts[-1][0] in ("text", "item"):
            parts[-1] = (parts[-1][0], parts[-1][1] + " " + line.strip())
        else:
            parts.append(("text", line.strip()))
    return [part for part in parts if part[0] != "end"]


# ---- Pages --------------------------------------------------------------------------------------------------------


def file_of(title):
    return title.lower().replace(" ", "-") + ".md"


class Pages:
    def __init__(self, rules, sections):
        self.rules, self.sections = rules, sections
        self.where = {d.name: f"{file_of(title)}#{d.name.lower()}" for title, own in sections for d in own}

    def prose(self, text, here):
        """Markdown of a sentence: names of the API become links."""
        def link(match):
            name = match.group()
            if name == here or name not in self.where:
                return f"`{name}`"
            return f"[`{name}`]({self.where[name]})"
        parts = text.split("`")  # every other one is code already
        parts[::2] = [re.sub(r"\b(?:dq|DQ)_\w+(?:\(\w*\))?", link, part.replace("<", "&lt;")) for part in parts[::2]]
        return "`".join(parts)

    def markdown(self, lines, here=""):
        was = None
        for kind, text in paragraphs(lines):
            if was and not (kind == was == "item"):
                yield ""
            if kind == "code":
                yield from ("```c", text, "```")
            else:
                title = TITLE.match(text) if not here else None
                text = f"**{title[1]}.** {self.prose(title[2], here)}" if title else self.prose(text, here)
                yield f"- {text}" if kind == "item" else text
            was = kind

    def index(self):
        yield MARK + "# The C API"
        yield ""
        yield "Which functions are there, and which rules hold for all of them? These pages are made from the comments of"
        yield "[include/dqrun/dqrun.h](../../include/dqrun/dqrun.h); `man libdqrun` has the same in short."
        yield ""
        yield "| section | functions |"
        yield "| --- | --- |"
        for title, own in self.sections:
            names = ", ".join(f"[`{d.name}`]({self.where[d.name]})" for d in own if d.kind == "function")
            yield f"| [{title}]({file_of(title)}) | {names} |"
        yield ""
        yield "## Rules"
        yield ""
        yield from self.markdown(self.rules)
        yield ""

    def section(self, title, own):
        yield MARK + f"# {title}"
        yield ""
        yield "Section of [the C API](README.md), written from the comments of [dqrun.h](../../include/dqrun/dqrun.h)."
        for d in own:
            yield ""
            yield f"## {d.name}"
            yield ""
            yield from self.markdown(d.comment, d.name)
            yield from ("", "```c", d.code, "```")
            if d.macro:
                yield from ("", f"`{d.macro}` initializes it.")
        yield ""

    def files(self):
        yield "README.md", "\n".join(self.index())
        for title, own in self.sections:
            yield file_of(title), "\n".join(self.section(title, own))


# ---- The manual page ----------------------------------------------------------------------------------------------


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    text = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text.replace("…", "..."))
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def man_text(lines):
    for kind, text in paragraphs(lines):
        if kind == "code":
            yield from (".PP", ".nf", ".RS 4", *(roff(line) for line in text.split("\n")), ".RE", ".fi")
        elif kind == "item":
            yield from (".IP \\(bu 2", roff(text))
        else:
            title = TITLE.match(text)
            yield ".PP"
            yield f"\\fB{roff(title[1])}.\\fR {roff(title[2])}" if title else roff(text)


def prototype(code):
    return " ".join(re.sub(r"/\*.*?\*/", "", code.replace("DQ_API ", "")).split())


def manual(rules, sections, version):
    yield '.\\" Written by tools/api_reference.py.'
    yield f'.TH LIBDQRUN 3 "" "dqrun {version}" "Library Functions Manual"'
    yield from (".SH NAME", "libdqrun \\- run quantized ONNX models", ".SH SYNOPSIS", ".B #include <dqrun/dqrun.h>", ".PP",
                "cc \\fIprogram.c\\fR $(pkg\\-config \\-\\-cflags \\-\\-libs dqrun)", ".SH DESCRIPTION")
    yield from man_text(rules)
    for title, own in sections:
        yield f".SH {title.upper()}"
        for d in own:
            yield ".TP"
            yield f".B {roff(prototype(d.code))}" if d.kind == "function" else f".B {roff(d.name)}"
            yield roff(paragraphs(d.comment)[0][1] if d.comment else "See the header.")
    yield from (".SH SEE ALSO", "\\fBdqrun\\fR(1), \\fBdqrun\\-conformance\\fR(1), the header dqrun/dqrun.h")


# ---- The command --------------------------------------------------------------------------------------------------


def write(rules, sections, check):
    stale = 0
    files = dict(Pages(rules, sections).files())
    FOLDER.mkdir(exist_ok=True)
    for name in sorted({*files, *(path.name for path in FOLDER.glob("*.md"))}):
        path = FOLDER / name
        had = path.read_text(encoding="utf-8") if path.exists() else None
        if had == files.get(name):
            continue
        stale += 1
        if check:
            print(f"docs/api/{name} is not up to date: run tools/api_reference.py")
        elif name in files:
            path.write_text(files[name], encoding="utf-8")
        else:
            path.unlink()
    return 1 if check and stale else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--man", action="store_true")
    options = parser.parse_args()
    rules, sections = read_header()
    if not options.man:
        return write(rules, sections, options.check)
    version = re.search(r"^  version: '(.*)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)[1]
    print("\n".join(manual(rules, sections, version)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
