"""Every verb describes itself: in its help, in the reference page, in the completions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.commands import Cli

from woodrat.cli import completion
from woodrat.cli.parser import build
from woodrat.cli.verbs import COMMANDS, FIRST_WORDS, GROUPS, SECTIONS
from woodrat.cli.verbs.declaration import Command
from woodrat.server import wire

PAGE = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text("utf-8")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_verb_has_help(cli: Cli, command: Command) -> None:
    """`--help` of a verb is a sentence, its arguments, the options of every verb and one or two examples."""
    ran = cli(*command.words.split(), "--help")
    assert ran.code == 0
    flat = " ".join(ran.out.split())
    assert command.what in flat
    assert command.more in flat
    assert command.what.endswith(".")
    assert len(command.what) <= 60, "it stands on one line of the list of commands"
    assert 1 <= len(command.examples) <= 2
    for example in command.examples:
        assert f"  {example}\n" in ran.out + "\n"
        assert example.startswith(f"woodrat {command.words}")
    for names, given in command.arguments:
        assert given["help"], names
        assert names[0] in ran.out or given.get("metavar", "") in ran.out
    for option in ("--db", "--tenant", "--as", "--signing-keys", "--output"):
        assert option in ran.out
    assert ("--as-of" in ran.out, "--valid-at" in ran.out) == (command.reads, command.reads)


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_help(cli: Cli, group: str) -> None:
    """`--help` of a group lists its commands with their sentences, and an example of each of them."""
    ran = cli(group, "--help")
    assert ran.code == 0
    listed = re.findall(r"^  ([a-z][a-z-]*) +([A-Z].*)$", ran.out, re.MULTILINE)
    commands = [command for command in COMMANDS if command.words.startswith(f"{group} ")]
    assert listed == [(command.words.partition(" ")[2], command.what) for command in commands]
    for command in commands:
        assert f"  {command.examples[0]}\n" in ran.out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_examples_of_a_verb_can_be_typed(command: Command) -> None:
    """The parser takes every example as it stands."""
    import shlex

    for example in command.examples:
        words = shlex.split(example.partition(" > ")[0])[1:]
        assert build(words).parse_args(words).command.words == command.words


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_verb_runs_something(command: Command) -> None:
    """The function that a verb names is there."""
    from importlib import import_module

    module, _, function = command.run.partition(":")
    assert callable(getattr(import_module(f"woodrat.cli.{module}"), function))


def test_the_help_lists_every_verb_and_none_that_is_missing(cli: Cli) -> None:
    """`woodrat --help` shows the sections, and in each its commands with a sentence, on lines of 80 columns."""
    ran = cli("--help")
    assert ran.code == 0
    assert re.findall(r"^([a-z]+): .+$", ran.out, re.MULTILINE) == ["usage", *SECTIONS]
    listed = re.findall(r"^  ([a-z][a-z-]+(?: [a-z]+)?)(?: …)? +[A-Z].*[.]$", ran.out, re.MULTILINE)
    assert list(dict.fromkeys(name.split()[0] for name in listed)) == list(FIRST_WORDS)
    assert list(FIRST_WORDS) == list(dict.fromkeys(command.words.split()[0] for command in COMMANDS))
    assert [name for name in listed if " " in name] == [v.words for v in COMMANDS if v.words.startswith("runs ")]
    for section in ran.out.partition("\nexamples:")[0].splitlines():
        assert len(section) <= 80, section
    assert cli("--help", "show").out == cli("-h").out == ran.out
    for number in wire.EXIT_CODES.values():
        assert f"{number} " in ran.out
    for group, what in GROUPS.items():
        assert what in " ".join(cli(group, "--help").out.split())


def test_the_version_is_printed(cli: Cli) -> None:
    """`--version` prints the name and the version."""
    ran = cli("--version")
    assert ran.code == 0
    assert re.fullmatch(r"woodrat \S+\n", ran.out)


def test_the_page_describes_every_verb_and_nothing_else() -> None:
    """The reference page has a section for each verb, in order, with its sentence, examples and options."""
    sections = re.split(r"^### `woodrat (.*)`$", PAGE, flags=re.MULTILINE)
    described = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(described) == [command.words for command in COMMANDS]
    for command in COMMANDS:
        text = described[command.words]
        assert command.what in text
        for example in command.examples:
            assert f"    {example}\n" in text
        options = {names[0] for names, _ in command.arguments if names[0].startswith("-")}
        options |= {"--as-of", "--valid-at"} if command.reads else set()
        assert set(re.findall(r"`(--[a-z-]+)", text)) == options, command.words
    for code, number in wire.EXIT_CODES.items():
        assert f"| {number} | `{code}` |" in PAGE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_mention_every_verb(cli: Cli, shell: str) -> None:
    """A completion script names each word of each verb and each option."""
    ran = cli("completion", shell)
    assert ran.code == 0
    for command in COMMANDS:
        for word in command.words.split():
            assert re.search(rf"(?<![a-z-]){re.escape(word)}(?![a-z-])", ran.out), word
        for names, _ in command.arguments:
            if names[0].startswith("--"):
                assert names[0].lstrip("-") in ran.out
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=ran.out, text=True).returncode == 0


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("woodrat sh", ["show"]),
        ("woodrat entities ", ["search", "list"]),
        ("woodrat --db x.db schemas re", ["register"]),
        ("woodrat diff --ex", ["--exit-code"]),
        ("woodrat show contact/a --as", ["--as-of", "--as"]),
        ("woodrat show -o j", ["json", "jsonl"]),
        ("woodrat show -o c", ["csv"]),
        ("woodrat completion f", ["fish"]),
    ],
)
def test_bash_finishes_words(line: str, offered: list[str]) -> None:
    """In bash the script offers what can stand at the cursor."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("this system has no bash")
    words = line.split(" ")
    ask = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _woodrat; "
    script = completion.bash() + ask + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == offered
