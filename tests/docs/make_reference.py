"""Write docs/reference/verbs: a page for each noun of the library, made from the declarations of its verbs.

In docs/reference/cli.md the sentence, the examples and the arguments of every command are made from it too, and in
docs/reference/rest.md the table of addresses; what else is said on these pages stays.

`python3 dev.py docs` runs it; tests/docs/test_reference.py holds that the pages are what it would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from woodrat.api.verb import Parameter, Verb
from woodrat.api.verbs import NAMESPACES, verbs
from woodrat.cli.verbs import COMMANDS
from woodrat.cli.verbs.declaration import Argument, Command, is_option
from woodrat.server.routes import ROUTES

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "verbs"
COMMAND_LINE: Final = FOLDER.parent / "cli.md"
REST: Final = FOLDER.parent / "rest.md"
LEDGER: Final = "ledger"
"""The page of the verbs that are methods of the ledger itself."""
TITLES: Final = {
    LEDGER: "Facts, questions and the ledger as a whole",
    "runs": "Runs",
    "schemas": "Schemas",
    "sources": "Sources",
    "interpretations": "Interpretations",
    "proofs": "Proofs",
    "log": "The log",
    "training": "Training data",
}


def noun_of(verb: Verb) -> str:
    """Return the page that a verb is on."""
    return verb.name.rpartition(".")[0] or LEDGER


def pages() -> dict[str, str]:
    """Return the text of every page by its noun."""
    assert set(TITLES) == {LEDGER, *NAMESPACES}
    return {noun: "\n".join(_page(noun)) + "\n" for noun in TITLES}


def _page(noun: str) -> Iterator[str]:
    called = "ledger" if noun == LEDGER else f"ledger.{noun}"
    yield f"# {TITLES[noun]}"
    yield ""
    yield f"The declared verbs of `{called}`. `python3 dev.py docs` makes this page from them; do not edit it."
    yield ""
    yield "A verb that reads can be asked of any moment: `ledger.at(moment, valid_at=…)` in Python, `--as-of` and"
    yield "`--valid-at` on the command line, `as_of` and `valid_at` in REST and MCP."
    for verb in verbs().values():
        if noun_of(verb) == noun:
            yield ""
            yield from section(verb)


def section(verb: Verb) -> Iterator[str]:
    """Yield the lines about one verb."""
    yield f"## `ledger.{verb.name}`"
    yield ""
    first, *rest = (verb.function.__doc__ or "").strip().split("\n\n")
    yield " ".join(first.split())
    for paragraph in rest:
        yield ""
        yield " ".join(paragraph.split()) if not paragraph.startswith("            ") else _code(paragraph)
    yield ""
    yield f"    {_signature(verb)}"
    places = list(_places(verb))
    if places:
        yield ""
        yield from places
    if verb.parameters:
        yield ""
        yield "| parameter | type | what it is |"
        yield "|---|---|---|"
        for parameter in verb.parameters:
            yield _row(parameter)


def _code(paragraph: str) -> str:
    return "\n".join("    " + line.removeprefix("            ") for line in paragraph.split("\n"))


def _signature(verb: Verb) -> str:
    """Return what is written to call a verb, with the defaults."""
    names = [p.name if p.required else f"{p.name}={_default(p)}" for p in verb.parameters]
    return f"ledger.{verb.name}({', '.join(names)}) -> {verb.function.__annotations__['return']}"


def _default(parameter: Parameter) -> str:
    return "…" if parameter.default is ... else repr(parameter.default).replace("'", '"')


def _places(verb: Verb) -> Iterator[str]:
    declared = verb.declaration
    if declared.command:
        yield f"- command line: `woodrat {declared.command}`"
    if declared.path:
        moment = ", at any moment" if declared.at_moment else ""
        yield f"- REST: `{declared.method} {declared.path}`, needs the grant `{declared.grant}`{moment}"
    if declared.tool:
        yield f"- MCP: the tool `{declared.tool}`"


def _row(parameter: Parameter) -> str:
    kind = parameter.kind
    named = (
        f"`{parameter.name}`"
        if parameter.wire == parameter.name
        else f"`{parameter.name}` (`{parameter.wire}` elsewhere)"
    )
    needed = "" if parameter.required else ", optional"
    return f"| {named} | {_type(kind.schema)}{needed} | {kind.what.replace('|', chr(92) + '|')} |"


def _type(schema: object) -> str:
    """Return what a JSON Schema says of a value, in a word or two."""
    assert isinstance(schema, dict)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if schema.get("$ref"):
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "flag", "object": "object"}
    return words.get(str(schema.get("type")), "any value")


def command_page(page: str) -> str:
    """Return the page of the command line, with what is said of each command by its own declaration."""
    head, *sections = re.split(r"^### `woodrat (.*)`\n", page, flags=re.MULTILINE)
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    return head + "".join(_command(command, bodies[command.words]) for command in COMMANDS)


def _command(command: Command, body: str) -> str:
    paragraphs = body.strip("\n").split("\n\n")
    # After the sentence and the examples comes what was written by hand, then the arguments, and perhaps a new heading.
    prose = [each for each in paragraphs[1:] if not each.startswith(("    woodrat", "- `", "## "))]
    heading = [each for each in paragraphs if each.startswith("## ")]
    arguments = [_argument(argument) for argument in command.arguments]
    if command.reads:
        arguments.append("- `--as-of M`, `--valid-at T`: the moment to answer at.")
    parts = [
        f"### `woodrat {command.words}`",
        f"{command.what} {command.more}".strip(),
        "\n".join(f"    {example}" for example in command.examples),
        *prose,
        "\n".join(arguments),
        *heading,
    ]
    return "\n\n".join(filter(None, parts)) + "\n\n"


def _argument(argument: Argument) -> str:
    names, settings = argument
    value = settings.get("metavar") or "|".join(settings.get("choices", ()))
    named = " ".join(filter(None, (names[0], value))) if is_option(argument) else value or names[0]
    text: str = settings["help"]
    first = text.partition(" ")[0].rstrip(":;,").replace("'", "")
    text = text[0].upper() + text[1:] if first.isalpha() else text
    return f"- `{named}`: {text}." + (" Required." if settings.get("required") else "")


def rest_page(page: str) -> str:
    """Return the page about REST with its table of addresses as the routes have it."""
    return _ADDRESSES.sub("\n".join(_addresses()), page)


def _addresses() -> Iterator[str]:
    from woodrat.server.access import ANYONE

    yield "| address | needs | what it does |"
    yield "|---|---|---|"
    for route in sorted(ROUTES, key=lambda route: (route.path.split("/")[2], route.path, route.method)):
        needs = "any" if route.grant == ANYONE else route.grant
        yield f"| `{route.method} {route.path}` | {needs} | {route.what} |"


_ADDRESSES: Final = re.compile(r"\| address \| needs \| what it does \|(?:\n\|.*)*")


def main() -> None:
    """Write the pages, and remove those of nouns that are gone."""
    REST.write_text(rest_page(REST.read_text("utf-8")), "utf-8")
    COMMAND_LINE.write_text(command_page(COMMAND_LINE.read_text("utf-8")).rstrip("\n") + "\n", "utf-8")
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in FOLDER.glob("*.md"):
        if old.stem not in written:
            old.unlink()
    for noun, text in written.items():
        (FOLDER / f"{noun}.md").write_text(re.sub(r"[ \t]+\n", "\n", text), "utf-8")


if __name__ == "__main__":
    main()
