# SPDX-License-Identifier: Apache-2.0
"""How transcripts and pages with commands are read and compared; needs nothing but Python.

A page's "console" blocks are commands and what they print, both streams as on a terminal, then "[exit code N]" when that is not 0.
The commands run in the order of the page, in a new folder for each page, which has the project's files and build/tools/dqrun. In
these blocks

- a line "..." stands for any number of lines;
- after a comment <!-- numbers vary -->, each number stands for any number, and lines come in any order (times decide it);
- a block of any language after <!-- file: NAME --> is first written to that file.
"""

import re

REST = "... (re)"
BLOCK = re.compile(r"^(?:<!-- (?P<mark>file: (?P<file>\S+)|numbers vary) -->\n+)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r" *(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?")


def output_lines(output, code):
    return output.decode().splitlines() + ([f"[exit code {code}]"] if code else [])


def read(path):
    """The transcript as (command or comment, expected lines)."""
    parts = []
    for line in path.read_text().splitlines():
        if line.startswith(("$ ", "## ")) or not parts:
            parts.append((line, []))
        else:
            parts[-1][1].append(line)
    return parts


def transcript_matches(expected, got):
    """Whether the lines are as the transcript says."""
    if not expected:
        return not got
    if expected[0] == REST:
        return any(transcript_matches(expected[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    first = expected[0].removesuffix(" (re)")
    same = re.fullmatch(first, got[0]) if first != expected[0] else first == got[0]
    return bool(same) and transcript_matches(expected[1:], got[1:])


def page_steps(text):
    """What a page has tests do, in its order: ("file", NAME, content), and a command as ("$" or "$ in any order", command, expected
    lines)."""
    for block in BLOCK.finditer(text):
        if block["file"]:
            yield "file", block["file"], block["text"]
        elif block["language"] == "console":
            for part in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
                command, *expected = part.splitlines()
                while command.endswith("\\"):
                    command += "\n" + expected.pop(0)
                kind = "$ in any order" if block["mark"] else "$"
                yield kind, command, [line_pattern(line, block["mark"]) for line in expected]


def line_pattern(line, mark):
    if line == "...":
        return REST
    if mark:
        return r" *-?[0-9][0-9.e+-]*".join(map(re.escape, NUMBER.split(line))) + " (re)"
    return line


def matches_in_any_order(expected, got):
    """Each expected line has a line of its own; without REST no other line is left."""
    left = list(got)
    for line in expected:
        found = next((i for i, other in enumerate(left) if line != REST and transcript_matches([line], [other])), None)
        if line != REST and found is None:
            return False
        if line != REST:
            del left[found]
    return not left or REST in expected


MATCHES = {"$": transcript_matches, "$ in any order": matches_in_any_order}
