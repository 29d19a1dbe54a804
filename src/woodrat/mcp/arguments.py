"""Arguments: the arguments of a tool call, checked against the action, with all faults at once.

The list of tools states less than is accepted, in the subset that every provider of models takes: one type per value,
no alternatives and no bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from woodrat.api.verb import Parameter, at_moment
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.mcp import intent
from woodrat.mcp.argument_schema import schema_of as schema_of
from woodrat.mcp.intent import ACTION

if TYPE_CHECKING:
    from woodrat.mcp.action import Action, Given, Tool

NOTHING_DONE: Final = "Nothing was done."
EXPLAINS_MOMENTS: Final = "show"
"""The tool whose description explains `as_of` and `valid_at`."""
STRANGERS_MAX: Final = 10
"""Most unknown arguments of a call that are listed."""
NAME_CHARACTERS_MAX: Final = 64
"""Longest excerpt of one's name."""
RARE: Final = frozenset(
    {
        *("dry_run", "idempotency_key", "if_version", "saw", "step", "replaces", "key", "valid_from", "priority"),
        *("descending", "excerpts", "threshold", "projection", "scope", "principal", "conversation", "ttl", "budget"),
        *("session", "pipeline", "verdict", "rules", "thresholds", "sweep", "stage", "subject_type", "same"),
        *("without_agents", "on_missing", "rationale", "version", "depth", "remove"),
    }
)
"""Arguments that are taken and not listed, unless an action needs them: agents hardly ever use them, and every agent
reads the whole list. The reference page has them."""
CORRECTED_CHARACTERS_MAX: Final = 1_000
"""Longest call that a refusal suggests."""
MEANT_EMPTY: Final = frozenset({"default", "answer"})
"""Arguments for which null and empty text are values. For others they count as missing, because some models send every
argument."""


# What is listed


def listed(tool: Tool) -> dict[str, Any]:
    """Return the schema of a tool's arguments as agents see it."""
    named: dict[str, Any] = {} if "" in tool.actions else {ACTION: {"type": "string", "enum": list(tool.actions)}}
    texts: dict[str, dict[str, None]] = {}
    for action in tool.actions.values():
        for name, parameter in action.parameters.items():
            if is_rare(tool, name):
                continue
            named.setdefault(name, _plain(schema_of(parameter)))
            texts.setdefault(name, {})[_text(tool, parameter)] = None
    for name, several in texts.items():
        if text := " | ".join(filter(None, several)):
            named[name] = {**named[name], "description": text}
    needed = list(tool.actions[""].needed) if "" in tool.actions else [ACTION]
    return {"type": "object", "properties": named, **({"required": needed} if needed else {})}


def is_rare(tool: Tool, name: str) -> bool:
    """Return True if a tool accepts an argument without listing it."""
    if any(name in action.needed for action in tool.actions.values()):
        return False
    return name in RARE or name in tool.rare


def _text(tool: Tool, parameter: Parameter) -> str:
    """Return the description of an argument for agents, if its kind has one.

    The two arguments of a moment are explained once, in the tool that agents read first.
    """
    return "" if parameter in at_moment() and tool.name != EXPLAINS_MOMENTS else parameter.kind.brief or ""


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in which every value has one type, the first of its types, and no bounds."""
    shown_schema = {name: value for name, value in schema.items() if name in ("type", "enum", "required")}
    if isinstance(shown_schema["type"], list):
        shown_schema["type"] = shown_schema["type"][0]
    if shown_schema["type"] == "array":
        shown_schema["items"] = _plain(schema["items"])
    if shown_schema["type"] == "object" and "properties" in schema:
        shown_schema["properties"] = {name: _plain(value) for name, value in schema["properties"].items()}
    else:
        shown_schema.pop("required", None)
    return shown_schema


# What was sent


def chosen(tool: Tool, sent: Mapping[str, Any]) -> tuple[str, Given]:
    """Return the selected action and its arguments by their names in the library; all faults at once."""
    from woodrat.canon import form

    if faults := form.faults(dict(sent)):
        raise Refused(faults, NOTHING_DONE)
    sent = intent.worded(tool, sent)
    named = sent.get(ACTION) if "" not in tool.actions else ""
    action = tool.actions.get(named) if isinstance(named, str) else None
    if action is None:
        raise Refused([_unknown_action(named, tool), *_strangers(tool, sent)], NOTHING_DONE)
    assert isinstance(named, str)
    asked = {name: value for name, value in sent.items() if not _is_left_out(name, value, action)}
    asked.pop(ACTION if named else "", None)
    placed = [*_misplaced(tool, named, action, asked), *_missing(action, asked)]
    typed = [*_ill_typed(action, asked)]
    if faults := [*placed, *typed]:
        takes = ", ".join(f"{name} (required)" if name in action.needed else name for name in action.parameters)
        usage = f"{f'{tool.name} {named}'.strip()} takes {takes}. " if placed else ""
        raise Refused(faults, usage + NOTHING_DONE + ("" if typed else _corrected(tool, action, sent, placed)))
    parameters = action.parameters
    return named, {parameters[name].name: _whole(parameters[name], value) for name, value in asked.items()}


def _corrected(tool: Tool, action: Action, sent: Mapping[str, Any], faults: Iterable[Fault]) -> str:
    """Return the likely intended call, if removing and renaming arguments makes one."""
    from woodrat.state.schema_check import near

    wrong = {fault.path.removeprefix("/") for fault in faults}
    call: dict[str, Any] = {}
    for name, value in sent.items():
        if name == ACTION or (name in action.parameters and name not in wrong):
            call[name] = value
        elif name not in action.parameters:
            call |= {close: value for close in near(name, action.parameters) if close not in sent}
    asked = [sent[name] for name in ("question", "query") if name not in action.parameters and name in sent]
    if asked and isinstance(asked[0], str) and len(asked[0]) <= CORRECTED_CHARACTERS_MAX:
        return f" To ask in words, call recall with {orjson.dumps({'question': asked[0]}).decode()}."
    text = orjson.dumps(call).decode()
    if call == sent or len(text) > CORRECTED_CHARACTERS_MAX:
        return ""
    try:
        chosen(tool, call)
    except Refused:
        return ""
    return f" Call {tool.name} with {text}."


def _is_left_out(name: str, value: Any, action: Action) -> bool:
    if value is None:
        return name not in MEANT_EMPTY
    return value == "" and name not in {*MEANT_EMPTY, *action.needed, *action.one_of}


def _unknown_action(named: Any, tool: Tool) -> Fault:
    problem = "is missing" if named is None or named == "" else f"unknown action {shown(named)}"
    return Fault(f"/{ACTION}", problem, f"Send one of {', '.join(tool.actions)}.")


def _strangers(tool: Tool, sent: Iterable[str], near_to: Iterable[str] = ()) -> Iterator[Fault]:
    """Yield a fault for each argument that no action of a tool takes; of very many only for the first."""
    from woodrat.state.schema_check import near

    known = {ACTION, *(name for action in tool.actions.values() for name in action.parameters)}
    strangers = [name for name in sent if name not in known]
    for name in strangers[:STRANGERS_MAX]:
        path = name if len(name) <= NAME_CHARACTERS_MAX else f"{name[:NAME_CHARACTERS_MAX]}…"
        meant = [f"Did you mean {close}?" for close in near(path, near_to)]
        yield Fault(f"/{pointer_part(path)}", "unknown argument", *(meant or ["Leave it out."]))
    if (more := len(strangers) - STRANGERS_MAX) > 0:
        yield Fault("arguments", f"{more} more unknown arguments", "Leave them out.")


def _misplaced(tool: Tool, named: str, action: Action, asked: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for each argument that the action does not take, or not beside the others."""
    elsewhere = {name for each in tool.actions.values() for name in each.parameters} - action.parameters.keys()
    for name in asked:
        if name in elsewhere:
            yield Fault(f"/{name}", f"is not an argument of {named}", "Leave it out.")
    yield from _strangers(tool, asked, action.parameters)
    for name, problem in action.misplaced(asked):
        yield Fault(f"/{name}", problem, "Leave one of them out." if "cannot" in problem else "Send both, or neither.")


def _missing(action: Action, asked: Mapping[str, Any]) -> Iterator[Fault]:
    for name in action.needed:
        if name not in asked:
            yield Fault(f"/{name}", "is missing", "Send it.")
    several = [name for name in action.one_of if name in asked]
    if action.one_of and len(several) != 1:
        problem = f"cannot be sent together with {several[0]}" if several else "is missing"
        name = several[-1] if several else action.one_of[0]
        yield Fault(f"/{name}", problem, f"Send one of {', '.join(action.one_of)}.")


def _ill_typed(action: Action, asked: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults that the schemas of the arguments find."""
    from woodrat.state import schema_faults, validator

    values = {name: value for name, value in asked.items() if name in action.parameters}
    for error in validator.errors(_validator(action), values):
        problem, wish = schema_faults.said(error)
        where = "".join(f"/{pointer_part(str(step))}" for step in error.instance_path)
        yield Fault(where, problem, f"Send {wish}.")


@lru_cache(maxsize=64)
def _validator(action: Action) -> Any:
    from woodrat.state import validator

    properties = {name: schema_of(parameter) for name, parameter in action.parameters.items()}
    return validator.validator({"type": "object", "properties": properties})


def _whole(parameter: Parameter, value: Any) -> Any:
    """Return an argument, a whole number as one: JSON may spell it as 2.0 or 1e3."""
    return int(value) if isinstance(value, float) and "integer" in schema_of(parameter)["type"] else value
