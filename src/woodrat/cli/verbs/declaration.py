"""Declaration: what a command is made of, and the arguments that many commands share.

A command is data. What is typed (words, arguments, which of them are ids) stands here; how an answer is shown does not.
"""

from __future__ import annotations

from typing import Any

from woodrat.records import dataclass

Argument = tuple[tuple[str, ...], dict[str, Any]]
"""Names and settings of one argument, as argparse takes them; `ids` besides says which kinds of id it may be."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command."""

    words: str
    """What is typed, such as `entities search`."""
    run: str
    """Module and function that answer it; imported when it is called."""
    what: str
    """What it does, in one sentence that fits a line of the help."""
    examples: tuple[str, ...]
    """Commands to try."""
    arguments: tuple[Argument, ...] = ()
    """What it takes besides the options every command takes."""
    reads: bool = False
    """Whether it answers at a moment: `--as-of` and `--valid-at`."""
    writes: bool = False
    """Whether it writes to the ledger: ids are then given in full."""
    more: str = ""
    """What else there is to know, below the sentence."""
    rows: bool = True
    """Whether its answer is a list or a record, which `-o csv` can print."""


def whole(text: str) -> int:
    """Return a whole number as people write it."""
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 17:
        return int(text)
    raise ValueError(text)


whole.__name__ = "whole number"  # argparse says it in its message


def version(text: str) -> int | str:
    """Return a version of an entity, or the word for whether it is known."""
    return text if text in ("new", "known") else whole(text)


version.__name__ = "version"


def argument(*names: str, **settings: Any) -> Argument:
    """Return one argument."""
    return names, settings


def destination(argument: Argument) -> str:
    """Return the name that an argument's value goes by."""
    names, settings = argument
    name: str = settings.get("dest") or names[-1].lstrip("-").replace("-", "_")
    return name


def is_option(argument: Argument) -> bool:
    """Return whether an argument is an option, such as `--limit N`, and not a value in its place."""
    return argument[0][0].startswith("-")


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
"""What every command takes; can stand before or after it."""
MOMENT: tuple[Argument, ...] = (
    argument("--as-of", metavar="M", ids=("run",), help="answer with what was known at this moment (default: now)"),
    argument("--valid-at", metavar="T", help="count only what was true by this time (default: all of it)"),
)
"""What every command takes that reads."""

ANY_ID = ("run", "observation", "source", "interpretation", "entity")
REF = argument("ref", metavar="REF", ids=("entity",), help="entity: type/key, or an ent_ id")
REF_OR_ALL = argument(
    "ref", metavar="REF", nargs="?", ids=("entity",), help="entity: type/key or ent_ id (default: all)"
)
TYPE = argument("--entity-type", metavar="T", help="only entities of this type")
LIMIT = argument("--limit", type=whole, metavar="N", help="return at most this many")
LIMIT_ALL = argument("--limit", type=whole, metavar="N", help="return at most this many (default: all)")
CURSOR = argument("--cursor", metavar="C", help="continue where the previous page ended")
OBSERVED = argument("--observed-at", metavar="T", help="when it was observed, RFC 3339 with an offset (default: now)")
KEY = argument("--idempotency-key", metavar="K", help="makes it safe to send the same call again")
DRY_RUN = argument("--dry-run", action="store_true", help="do everything except write")
REASON = argument("--reason", metavar="TEXT", help="why")
REASON_REQUIRED = argument("--reason", metavar="TEXT", required=True, help="why; stored with the change")
IF_VERSION = argument(
    "--if-version",
    type=version,
    metavar="N",
    help="write only if the entity has this version; also `new` or `known`",
)
RUN = argument("run", metavar="RUN", ids=("run",), help="run id; `last` is the latest run")
AGENT = argument("--agent", metavar="A", help="only runs of this agent")
SINCE = argument("--since", metavar="T", help="only runs that started at or after this time")
UNTIL = argument("--until", metavar="T", help="only runs that started before this time")
GRAPH = argument("--format", choices=("dot", "mermaid"), help="print a graph for Graphviz or Mermaid instead")
FUNCTION = argument(
    "--with",
    dest="function",
    required=True,
    metavar="MODULE:FUNCTION",
    help="the agent's function; it receives the run",
)
STATEMENT = (REASON, OBSERVED, KEY, DRY_RUN)
"""What most writes about an entity take."""
