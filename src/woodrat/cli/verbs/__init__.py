"""Verbs: every command as data; the parser, the completions and the reference page are made from it.

Each section of the help has a module with its commands, and a command line loads only the one it needs: loading all of
them takes longer than most commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from woodrat.cli.verbs.declaration import Command

    COMMANDS: tuple[Command, ...]

SECTIONS: dict[str, str] = {
    "facts": "observations of agents, and the state at any moment",
    "runs": "reads, calls, decisions and answers of agents",
    "questions": "reasons of decisions, and what depends on them",
    "proof": "check the ledger, and prove it to others",
    "data": "schemas, sources, the log, and moving data in and out",
    "server": "serve the ledger, and set things up",
}
"""Sections of the help, in order; each is a module of this package."""

FIRST_WORDS: dict[str, str] = {
    word: section
    for section, words in {
        "facts": "store remember show entities observations history timeline blame conflicts diff tag elements correct "
        "retract delete restore relate related merge split",
        "runs": "runs",
        "questions": "why recall lineage impact stale what-if bisect reduce reindex",
        "proof": "fingerprint prove-order verify rebuild checkpoint prove capsule erase",
        "data": "schemas sources interpretations log sql export import sync copy backup",
        "server": "serve open mcp keys tenants webhooks migrate init doctor demo completion",
    }.items()
    for word in words.split()
}
"""The section of each first word, in the order of the help."""

GROUPS: dict[str, str] = {
    "entities": "Search and list entities.",
    "observations": "List observations.",
    "runs": "List, show, compare, import, judge, resume and replay runs.",
    "schemas": "Register, list, show, infer and check schemas, add packs.",
    "sources": "Add, list and show sources.",
    "interpretations": "List, show and compare interpretations of sources.",
    "export": "Write the log, or training data, to a file.",
    "import": "Read a log, or traces of other tools, from a file.",
    "backup": "Create, restore and verify backups.",
    "keys": "Create, list, revoke and audit the API keys of a server.",
    "tenants": "List tenants.",
    "webhooks": "Send new entries to other addresses.",
}
"""First words that are followed by a second one."""

OTHER_NAMES: dict[str, str] = {
    "add": "store",
    "ask": "recall",
    "note": "remember",
    "compare": "runs diff",
    "find": "entities search",
    "get": "show",
    "put": "store",
    "query": "entities list",
    "record": "runs import",
    "remove": "delete",
    "runs record": "runs import",
    "runs start": "runs import",
    "runs compare": "runs diff",
    "set": "correct",
    "start": "serve",
    "undo": "retract",
    "update": "correct",
    "--by": "--agent",
    "--effective": "--valid-at",
    "--for-agent": "--agent",
    "--format": "-o",
    "--group": "`woodrat runs group`",
    "--json": "-o json",
    "--keys": "--signing-keys",
    "--agent": "--as",
    "--type": "--entity-type",
    "--valid": "--valid-at",
    "--verdict": "`woodrat runs judge RUN good|bad`",
}
"""Words that people type for commands with another name; looked up before similar names."""


def section(name: str) -> tuple[Command, ...]:
    """Return the commands of one section."""
    from importlib import import_module

    commands: tuple[Command, ...] = import_module(f"woodrat.cli.verbs.{name}").COMMANDS
    return commands


def named(words: str) -> Command | None:
    """Return the command with these words."""
    home = FIRST_WORDS.get(words.partition(" ")[0])
    return None if home is None else next((command for command in section(home) if command.words == words), None)


def __getattr__(name: str) -> Any:
    """Return all commands, section by section; made on the first call."""
    if name != "COMMANDS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    every = tuple(command for home in SECTIONS for command in section(home))
    globals()["COMMANDS"] = every
    return every
