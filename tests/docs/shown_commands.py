"""Commands in text: the lines that a document shows to be typed, and commands that a sentence mentions in backticks."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from woodrat.cli.fast_parser import command_of
from woodrat.cli.verbs import FIRST_WORDS, named
from woodrat.cli.verbs.declaration import EVERYWHERE, arguments_of

PROGRAMS: Final = ("woodrat", "woodrat-verify", "export", "curl", "pip", "python3", "psql", "neotoma")
"""What a line of a page begins with if it is to be typed."""
VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*=")
MENTION: Final = re.compile(r"`(woodrat\s[^`]+)`")
FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PLACEHOLDER: Final = "…"


@dataclass(frozen=True)
class CommandLine:
    """One command line of a page."""

    number: int
    """The number of its first line."""
    section: int
    """How many headings stand above it."""
    text: str
    """The line as typed: continuations joined, without the comment behind it."""

    @property
    def words(self) -> list[str]:
        """The words a shell makes of it."""
        return shlex.split(self.text)


def command_lines(page: str) -> list[CommandLine]:
    """Return the command lines of a page: those of its code blocks that begin with a program or a variable."""
    found: list[CommandLine] = []
    section, fenced, continued = 0, False, False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("#") and not fenced:
            section += 1
        elif continued:
            found[-1] = CommandLine(found[-1].number, section, f"{found[-1].text} {_typed(line)}")
        elif (fenced or line.startswith("    ")) and is_command(line):
            found.append(CommandLine(number, section, _typed(line)))
        else:
            continue
        continued = bool(found) and found[-1].text.endswith("\\") and line.endswith("\\")
        if continued:
            found[-1] = CommandLine(found[-1].number, section, found[-1].text.removesuffix("\\").rstrip())
    return found


def is_command(line: str) -> bool:
    """Return whether a line of a code block is one to be typed."""
    words = line.split()
    while words and VARIABLE.match(words[0]):
        words = words[1:]
    return len(words) > 1 and words[0] in PROGRAMS


def stray_lines(page: str) -> list[str]:
    """Return the lines of a page that stand right below a command line in its block, and are none themselves."""
    lines = page.splitlines()
    commands = {line.number for line in command_lines(page)}
    below = [number + 1 for number in commands if not lines[number - 1].endswith("\\")]
    rest = [lines[number - 1] for number in sorted(below) if number not in commands and number <= len(lines)]
    return [line.strip() for line in rest if line.startswith("    ")]


def _typed(line: str) -> str:
    return re.sub(r"\s+#\s.*$", "", line.strip())


# Mentions


def mentions(text: str) -> Iterator[str]:
    """Yield the commands of ours that a text mentions in backticks."""
    for found in MENTION.finditer(FENCED.sub("", text)):
        yield " ".join(found[1].split())


def texts_of(source: str) -> Iterator[str]:
    """Yield the texts in a Python module; what an f-string fills in stands there as a placeholder."""
    parts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            pieces = [piece.value if isinstance(piece, ast.Constant) else PLACEHOLDER for piece in node.values]
            parts |= {id(piece) for piece in node.values}
            yield "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def problem_of(mention: str) -> str | None:
    """Return what is wrong with a command that a text mentions: an unknown command or option; None if nothing is."""
    try:
        words = shlex.split(mention)[1:]
    except ValueError:
        return "its quotes do not match"
    if not re.fullmatch(r"[a-z-]+", words[0]):
        return None  # a placeholder, such as COMMAND
    name = command_of(words)
    command = named(name)
    if command is None:
        if words[0].startswith("-"):
            options: set[str] = {"--help", "--version"}
        elif words[0] not in FIRST_WORDS:
            return f"there is no command {words[0]}"
        elif len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
            return f"there is no command {words[0]} {words[1]}"
        else:
            options = {"--help"}
    else:
        options = {"--help", *(name for names, _ in arguments_of(command) for name in names)}
    options |= {name for names, _ in EVERYWHERE for name in names}
    wrong = [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]
    return f"there is no option {', '.join(wrong)}" if wrong else None
