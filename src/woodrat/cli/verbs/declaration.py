"""Declaration: the parts of a command, and the arguments derived from its verb.

A command is data. Its words and arguments are declared here; the printing of its answer is not. A command of a verb
states only the differences on a terminal; the rest comes from the verb's declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from woodrat.api.parameters import Schema
    from woodrat.api.verb import Parameter, Verb

Argument = tuple[tuple[str, ...], dict[str, Any]]
"""Names and settings of one argument, for argparse; `ids` adds the kinds of id that it accepts."""
Form = Mapping[str, Any] | tuple[Argument, ...]
"""How a command takes a parameter of its verb differently: other settings, or other arguments instead of it."""

FILE: Final = "FILE"
"""The placeholder of a parameter whose value comes from a file on a terminal."""


class Command:
    """One command.

    If it calls a verb of the library, its sentence, its arguments, whether it reads at a moment and whether it writes
    come from the verb, on demand.
    """

    def __init__(
        self,
        words: str,
        run: str,
        examples: tuple[str, ...],
        *,
        verb: str | Verb = "",
        forms: Mapping[str, Form] | None = None,
        own: tuple[Argument, ...] = (),
        what: str = "",
        more: str = "",
        reads: bool = False,
        writes: bool = False,
        rows: bool = True,
    ) -> None:
        self.words = words
        """Its words, such as `entities search`."""
        self.run = run
        """Module and function that answer it; imported when it is called."""
        self.examples = examples
        """Commands to try."""
        self.forms: Mapping[str, Form] = {} if forms is None else forms
        """Parameters of the verb that are typed in another form, by name; a parameter without arguments cannot be
        typed."""
        self.own = own
        """Its arguments besides the parameters of its verb and the global options."""
        self.more = more
        """Further text, below the sentence."""
        self.rows = rows
        """Whether its answer is a list or a record, which `-o csv` can print."""
        self._verb, self._what, self._reads, self._writes = verb, what, reads, writes

    @cached_property
    def verb(self) -> Verb | None:
        """The verb of the library behind it; None for a command of the terminal alone."""
        if not isinstance(self._verb, str):
            return self._verb
        from woodrat.api.verbs import declared

        return declared(self._verb) if self._verb else None

    @property
    def what(self) -> str:
        """Its description, in one sentence that fits a line of the help."""
        return self._what or ("" if self.verb is None else self.verb.what)

    @property
    def reads(self) -> bool:
        """Whether it answers at a moment: `--as-of` and `--valid-at`."""
        return self._reads if self.verb is None else self.verb.declaration.at_moment

    @property
    def writes(self) -> bool:
        """Whether it writes to the ledger: ids are then given in full."""
        return self._writes if self.verb is None else self.verb.writes

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Its arguments without the global options; positional ones first."""
        derived = () if self.verb is None else derived_arguments(self.verb, self.words, self.forms)
        return tuple(sorted((*derived, *self.own), key=is_option))


def argument(*names: str, **settings: Any) -> Argument:
    """Return one argument."""
    return names, settings


def destination(argument: Argument) -> str:
    """Return the name of an argument's value."""
    names, settings = argument
    name: str = settings.get("dest") or names[-1].lstrip("-").replace("-", "_")
    return name


def is_option(argument: Argument) -> bool:
    """Return True if an argument is an option, such as `--limit N`, and not positional."""
    return argument[0][0].startswith("-")


def label(argument: Argument) -> str:
    """Return the name of an argument in errors: the option, or its placeholder in the help."""
    names, settings = argument
    return names[0] if is_option(argument) else settings.get("metavar", names[0])


# Forms of typed values


def whole(text: str) -> int:
    """Return a whole number as people write it."""
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 17:
        return int(text)
    raise ValueError(text)


def number(text: str) -> float:
    """Return a number as people write it."""
    if "_" in text or text.strip() != text:
        raise ValueError(text)
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def whole_or(words: tuple[str, ...]) -> Callable[[str], int | str]:
    """Return a parser of a whole number or one of these words."""

    def read(text: str) -> int | str:
        return text if text in words else whole(text)

    read.__name__ = f"whole number, {' or '.join(words)}"
    return read


whole.__name__, number.__name__ = "whole number", "number"  # argparse says it in its message


# Arguments from the parameters of a verb


def derived_arguments(verb: Verb, words: str, forms: Mapping[str, Form]) -> Iterator[Argument]:
    """Yield the arguments of a verb's command: words in capitals in its declaration are positional, others are options.

    `REF` is required, `[REF]` is optional, `REF...` and `[REF...]` may be repeated.
    """
    places = verb.declaration.command.split()[len(words.split()) :]
    for parameter in verb.parameters:
        form = forms.get(parameter.name, {})
        if isinstance(form, tuple):
            yield from form
            continue
        named = form.get("metavar") or parameter.kind.metavar
        place = next((place for place in places if _inside(place) == named), None)
        if place is None:
            yield _option(parameter, form)
        else:
            places.remove(place)
            yield _in_place(parameter, place, form, verb)


def _inside(place: str) -> str:
    """Return the name in a placeholder, without brackets and dots."""
    return (place[1:-1] if place.startswith("[") else place).removesuffix("...")


def _option(parameter: Parameter, form: Mapping[str, Any]) -> Argument:
    kind = parameter.kind
    value = _value(kind.schema, kind.metavar)
    settings: dict[str, Any] = {
        "dest": parameter.name,
        "help": _help(parameter, repeatable=value.get("action") == "append"),
        **value,
    }
    if settings.get("action") != "store_true" and "choices" not in settings:
        settings["metavar"] = kind.metavar or parameter.wire.upper()
    if parameter.required:
        settings["required"] = True
    if kind.ids:
        settings["ids"] = kind.ids
    return (parameter.option,), {**settings, **form}


def _in_place(parameter: Parameter, place: str, form: Mapping[str, Any], verb: Verb) -> Argument:
    kind = parameter.kind
    several, optional = "..." in place, place.startswith("[")
    settings: dict[str, Any] = {"metavar": _inside(place), "help": _help(parameter, repeatable=False)}
    if several or optional:
        settings["nargs"] = ("*" if optional else "+") if several else "?"
    elif kind.ids == ("run",) and not verb.writes:
        settings["help"] += "; `last` is the latest run"
    if kind.ids:
        settings["ids"] = kind.ids
    return (parameter.name,), {**settings, **form}


def is_pairs(schema: Schema, metavar: str) -> bool:
    """Return True if a value is typed as name=value, once for each name."""
    return schema.get("type") == "object" and "=" in metavar


def _value(schema: Schema, metavar: str) -> dict[str, Any]:
    """Return the parser of a typed value, by its JSON Schema; text by default."""
    alternatives = schema.get("anyOf", (schema,))
    types = {each.get("type") for each in alternatives}
    words = tuple(word for each in alternatives for word in each.get("enum", ()))
    if "boolean" in types:
        return {"action": "store_true"}
    if metavar == FILE:
        return {}
    if is_pairs(schema, metavar) or any(each.get("items", {}).get("type") == "string" for each in alternatives):
        return {"action": "append", "default": []}
    if "integer" in types and ("string" not in types or words):
        return {"type": whole_or(words) if words else whole}
    if "number" in types:
        return {"type": number}
    return {"choices": words} if words else {}


def _help(parameter: Parameter, *, repeatable: bool) -> str:
    """Return the help text of a parameter."""
    kind, default = parameter.kind, parameter.default
    text = kind.what
    if kind.metavar == FILE:
        text += ", as a JSON file; - for standard input"
    elif is_pairs(kind.schema, kind.metavar) or (kind.schema == {} and "default" not in text):
        text += ", as JSON or text"
    if repeatable:
        return f"{text}; repeatable"
    stated = isinstance(default, int | float | str) and type(default) is not bool and default not in ("", -1)
    return f"{text} (default: {default})" if stated and "default" not in text else text


# What many commands take

OUTPUTS = ("table", "json", "jsonl", "csv")
EVERYWHERE: tuple[Argument, ...] = (
    argument(
        "--db",
        metavar="URL",
        help="database: a path, sqlite:///path, or http(s)://… with its API key in WOODRAT_TOKEN (env: WOODRAT_DB)",
    ),
    argument("--tenant", help="tenant to work in (env: WOODRAT_TENANT; default: default)"),
    argument("--as", dest="as_agent", metavar="AGENT", help="agent to write as (env: WOODRAT_AGENT; default: cli)"),
    argument(
        "--signing-keys",
        metavar="DIR",
        help="folder of the keys that sign checkpoints (env: WOODRAT_SIGNING_KEYS; default: the one `init` made)",
    ),
    argument("-o", "--output", choices=OUTPUTS, help="output format (default: table on a terminal, json when piped)"),
)
"""Global options; they can come before or after the command."""
MOMENT_NAMES = ("as_of", "valid_at")
"""Names of the arguments for the moment."""


@cache
def moment() -> tuple[Argument, ...]:
    """Return the arguments of every command that reads."""
    from woodrat.api.verb import at_moment

    return tuple(_option(parameter, {}) for parameter in at_moment())


def arguments_of(command: Command) -> tuple[Argument, ...]:
    """Return the arguments of a command without the global options, its moment included."""
    return (*command.arguments, *(moment() if command.reads else ()))


ALL: Mapping[str, Form] = {"limit": {"help": "return at most this many (default: all)"}}
"""The limit of a command that prints the whole list where none is typed."""
EXIT_CODE = argument("--exit-code", action="store_true", help="exit with 1 when there is a difference")
GRAPH = argument("--format", choices=("dot", "mermaid"), help="print a graph for Graphviz or Mermaid instead")
EMBEDDER = argument("--embedder", metavar="E", help="minilm, none, openai:MODEL, … (default: minilm where installed)")
FUNCTION = argument(
    "--with",
    dest="function",
    required=True,
    metavar="MODULE:FUNCTION",
    help="the agent's function; it receives the run",
)
REQUIRED: Final = {"required": True}
"""The form of a parameter that is required on a terminal, but not in the library."""
REF_OR_ALL: Final = {"help": "entity: type/key, or an ent_ id (default: all)"}
"""The form of an optional reference."""
