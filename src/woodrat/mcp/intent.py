"""Intent: turns a call in a model's words into the arguments of the tool, if only one reading is possible.

A model knows a tool by its description alone. It renames arguments, sends a record with its fields beside it, a number
as text, one value instead of a list, a time in words. None of that should need a second call. An ambiguous call stays
unchanged, and `arguments.py` refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import ids, moment, moment_words
from woodrat.ledger.spoken_times import SPELLED
from woodrat.mcp.argument_schema import schema_of

if TYPE_CHECKING:
    from woodrat.mcp.action import Action, Given, Tool

ACTION: Final = "action"
"""The argument that selects an action of a tool."""

ACTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "change": {
        "forget": "delete",
        "remove": "delete",
        "hide": "delete",
        "undelete": "restore",
        "undo": "retract",
        "withdraw": "retract",
        "update": "correct",
        "set": "correct",
        "link": "relate",
    },
    "history": {"provenance": "blame", "claims": "blame", "events": "timeline", "history": "changes"},
    "run": {"begin": "start", "finish": "end", "stop": "end", "record": "step"},
    "runs": {"get": "show", "read": "show", "compare": "diff", "search": "list"},
    "explain": {"whatif": "what_if", "affected": "impact", "provenance": "lineage"},
    "sources": {"keep": "add", "store": "add", "read": "content", "get": "content"},
    "schemas": {"get": "show", "suggest": "infer"},
}
"""Other words for the actions of a tool."""

_TIMES: Final = ("as_of", "observed_at")
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "reference": ("ref",),
    "entity": ("ref", "about"),
    "entity_ref": ("ref", "about"),
    "entity_id": ("ref", "about"),
    "id": ("ref", "run", "source"),
    "ref": ("about", "of", "subject", "one"),
    "subject": ("about", "ref"),
    "about": ("ref", "subject"),
    "run_id": ("run",),
    "source_id": ("source",),
    "observation": ("observations", "of"),
    "observation_id": ("observations", "of"),
    "observation_ids": ("observations",),
    "question": ("query",),
    "query": ("question",),
    "q": ("question", "query"),
    "text": ("question", "query", "content"),
    "note": ("text",),
    "content": ("text",),
    "memory": ("text",),
    "fact": ("text",),
    "document": ("content",),
    "title": ("name",),
    "filename": ("name",),
    "file_name": ("name",),
    "mime_type": ("media_type",),
    "content_type": ("media_type",),
    "record": ("records",),
    "data": ("records", "fields"),
    "entities": ("records",),
    "type": ("entity_type",),
    "filter": ("where",),
    "filters": ("where",),
    "values": ("fields",),
    "set": ("fields",),
    "fields": ("set",),
    "since": ("from",),
    "after": ("since", "from"),
    "start": ("since", "from"),
    "from": ("since",),
    "until": ("to",),
    "before": ("until", "to"),
    "end": ("until", "to"),
    "to": ("until",),
    "at": _TIMES,
    "asof": _TIMES,
    "when": _TIMES,
    "date": _TIMES,
    "time": _TIMES,
    "limit": ("k",),
    "k": ("limit",),
    "top_k": ("k", "limit"),
    "max_results": ("limit", "k"),
    "relation": ("type",),
    "relation_type": ("type",),
    "target": ("to", "other"),
    "into": ("other",),
    "because": ("reason",),
}
"""Synonyms of arguments; a synonym stands for the first argument in its list that the action takes and the call lacks.
"""

TOOLS: Final[Mapping[str, str]] = {
    "get": "show",
    "read": "show",
    "find": "search",
    "query": "search",
    "list": "search",
    "add": "store",
    "save": "store",
    "ask": "recall",
    "note": "remember",
    "document": "sources",
    "provenance": "history",
}
"""Other words for tools."""

VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "status": {"failed": "error", "failure": "error", "errored": "error", "succeeded": "done", "success": "done"}
}
"""Other words for values of arguments."""


def worded(tool: Tool, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the names and in the shapes that the tool takes, if they have only one meaning."""
    known = dict(sent)
    name = "" if "" in tool.actions else action_of(tool, known)
    if name is None:
        return known
    if name:
        known[ACTION] = name
    action = tool.actions[name]
    known = _renamed(action, _shaped(tool.name, name, action, known))
    return {
        argument: _valued(argument, _typed(action, argument, value)) if argument in action.parameters else value
        for argument, value in known.items()
    }


def action_of(tool: Tool, sent: Mapping[str, Any]) -> str | None:
    """Return the intended action, by a synonym or by the arguments; None if several are possible."""
    named = sent.get(ACTION)
    if isinstance(named, str) and named:
        word = named.strip().lower().replace("-", "_").replace(" ", "_")
        word = ACTIONS.get(tool.name, {}).get(word, word)
        return word if word in tool.actions else None
    if named not in (None, ""):
        return None
    names = {name for name, value in sent.items() if name != ACTION and value not in (None, "")}
    meant = {name: set(_renamed(action, dict.fromkeys(names))) for name, action in tool.actions.items()}
    taking = [name for name, action in tool.actions.items() if meant[name] <= action.parameters.keys()]
    fitting = [name for name in taking if set(tool.actions[name].needed) <= meant[name]]
    if tool.usual is None:  # never guess a writing action if the arguments also fit another action
        return fitting[0] if len(taking) == len(fitting) == 1 else None
    return fitting[0] if len(fitting) == 1 or (fitting and fitting[0] == tool.usual) else None


# Names and shapes


def _renamed(action: Action, sent: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name, value in sent.items():
        target = name
        if name not in action.parameters:
            meant = (word for word in WORDS.get(name, ()) if word in action.parameters and word not in sent)
            target = next((word for word in meant if word not in known), name)
        known[target] = value
    return known


def _shaped(tool: str, name: str, action: Action, sent: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with records and fields where they belong."""
    if tool == "store":
        return _with_records(action, sent)
    if name == "correct" and not {"fields", "values", "set", "data", "remove"} & sent.keys():
        fields = _strangers(action, sent)
        if fields:
            return {**{key: value for key, value in sent.items() if key not in fields}, "fields": fields}
    if name == "what_if" and "set" in sent:
        return {**sent, "set": _supposed(sent["set"])}
    if name == "merge" and isinstance(refs := sent.get("refs") or sent.get("entities"), list) and len(refs) == 2:
        rest = {key: value for key, value in sent.items() if key not in ("refs", "entities")}
        return {**rest, "one": refs[0], "other": refs[1]}
    return sent


def _supposed(values: Any) -> Any:
    """Return suppositions by `ref#field`, whether sent as `ref#field=value` or with a dot for the mark."""
    if isinstance(values, str) and not values.lstrip().startswith("{"):
        name, mark, value = values.partition("=")
        if not mark:
            return values
        values = {name.strip(): _json(value.strip(), (int, float, list, dict))}
    if not isinstance(values, dict):
        return values
    return {_field_named(name): value for name, value in values.items()}


def _field_named(name: str) -> str:
    type, slash, rest = name.partition("/")
    key, dot, field = rest.rpartition(".")
    return f"{type}/{key}#{field}" if slash and dot and key and "#" not in name else name


def _strangers(action: Action, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that match no parameter of the action; empty if one of them may be misspelled."""
    from woodrat.state.schema_check import near

    meant = _renamed(action, sent)
    strange = {name: value for name, value in sent.items() if name in meant and name not in action.parameters}
    strange.pop(ACTION, None)
    return {} if any(near(name, action.parameters) for name in strange) else strange


def _with_records(action: Action, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a store, with a record among the arguments moved into `records`."""
    records = _json(sent.get("records"), (list, dict))
    if records is None and not {"record", "data", "entities"} & sent.keys():
        type = sent.get("entity_type", sent.get("type"))
        if isinstance(type, str):
            kept = action.parameters.keys() | {ACTION}
            fields = {name: value for name, value in sent.items() if name not in kept}
            rest = {name: value for name, value in sent.items() if name in kept}
            return {**rest, "records": [_record(fields)]}
        return sent
    known = _renamed(action, sent)
    records = _json(known.get("records"), (list, dict))
    if isinstance(records, dict):
        records = [records]
    if isinstance(records, list):
        known["records"] = [_record(each) for each in records]
    return known


def _record(record: Any) -> Any:
    """Return a record as the ledger takes it: its type under `entity_type`, and its fields beside it."""
    if not isinstance(record, dict):
        return record
    flat = dict(record)
    if "entity_type" not in flat and not ids.type_faults(flat.get("type")):
        flat["entity_type"] = flat.pop("type")
    fields = flat.get("fields")
    if (
        isinstance(fields, dict)
        and flat.keys() <= {"entity_type", "fields", "key", "$"}
        and "entity_type" not in fields
    ):
        about = flat.get("$", {})
        key = {"key": flat["key"]} if "key" in flat else {}
        if isinstance(about, dict):
            named = {"$": {**key, **about}} if key or about else {}
            return {"entity_type": flat.get("entity_type"), **fields, **named} if "entity_type" in flat else record
    return flat


# Values


def _typed(action: Action, name: str, value: Any) -> Any:
    """Return a value as the type that the argument takes: text that spells one, or one value for a list."""
    schema = schema_of(action.parameters[name])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, str) and "string" not in types:
        value = _spelled(value.strip(), types)
    if "array" in types and "string" not in types and schema["items"].get("type") == "string":
        if isinstance(value, str):
            return [value]
        if name == "where" and isinstance(value, dict):
            return [f"{field}={_condition(wanted)}" for field, wanted in value.items() if _is_plain(wanted)]
    return value


def _spelled(text: str, types: Iterable[str]) -> Any:
    """Return text parsed as a value of another type, or the text."""
    for type in types:
        if type in ("integer", "number") and isinstance(found := _json(text, (int, float)), int | float):
            return found
        if type == "boolean" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if type == "array" and isinstance(found := _json(text, (list,)), list):
            return found
        if type == "object" and isinstance(found := _json(text, (dict,)), dict):
            return found
    return text


def _json(value: Any, kinds: tuple[type, ...]) -> Any:
    """Return the JSON value of a text if it has one of these types, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    from woodrat.canon import form
    from woodrat.errors import Refused

    try:
        found = form.parse(value.encode())
    except (Refused, UnicodeEncodeError):
        return value
    return found if isinstance(found, kinds) and not isinstance(found, bool) else value


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _condition(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else f"{value}"


def _valued(name: str, value: Any) -> Any:
    if name in _REFS and isinstance(value, str):
        return _reference(value)
    if name in ("type", "entity_type") and isinstance(value, str):
        return _type(value)
    return VALUES.get(name, {}).get(value.lower(), value) if isinstance(value, str) else value


_REFS: Final = ("ref", "about", "subject", "one", "other", "from", "to")


def _reference(text: str) -> str:
    """Return a reference with its type as types are spelled: `Contact/Ana` is `contact/Ana`."""
    type, slash, key = text.partition("/")
    return f"{_type(type)}/{key.strip()}" if slash and _type(type) != type else text


def _type(text: str) -> str:
    """Return a type as types are spelled, `works at` as `works_at`, where that makes it one."""
    spelled = text.strip().lower().replace(" ", "_").replace("-", "_")
    return spelled if ids.type_faults(text) and not ids.type_faults(spelled) else text


# Times

_INSTANTS: Final = ("observed_at", "valid_from", "valid_at", "since", "until")
"""Arguments that must be a time, not another kind of moment; the library takes these as timestamps."""
_WITHOUT_ZONE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?")
"""A time without its zone, which is UTC's."""
_MOMENTS: Final = ("as_of", "before", "after")
"""Arguments that are a moment, by their names in the library: words that are no period it understands itself."""


def _time_of_words(text: str, now: str, zone: str | None) -> str | None:
    """Return the time that words mean; `Monday` and `on Monday` are the latest one."""
    words = text.strip().lower().removeprefix("on ").removeprefix("since ")
    return moment_words.resolve(words, now, zone) or moment_words.resolve(f"last {words}", now, zone)


def timed(given: Given, now: str, zone: str | None = None) -> tuple[Given, dict[str, str]]:
    """Return arguments with times instead of words, and the resolved times by the names that agents send.

    A period means its end, but never the future, if the question is about a moment; it means its beginning as a start,
    and its end as an end. Days are in the given time zone; default: UTC.
    """
    known, understood = dict(given), dict[str, str]()
    for name in (*_INSTANTS, *_MOMENTS):
        text = given.get(name)
        if not isinstance(text, str) or (name in _INSTANTS and not moment.fault(text)):
            continue
        if (period := moment_words.period(text, now, zone)) is not None:
            start, end = period
            if name in ("as_of", "valid_at"):
                known[name] = min(end, now)
            else:
                first = known.get({"until": "since", "after": "before"}.get(name, ""))
                known[name] = end if isinstance(first, str) and first >= start else start
        elif _WITHOUT_ZONE.fullmatch(text):
            known[name] = f"{text[:10]}T{text[11:]}{':00' if len(text) == 16 else ''}Z"
        elif text != "now" and (spoken := _time_of_words(text, now, zone)) is not None:
            known[name] = spoken
        else:
            continue
        understood[SPELLED.get(name, name)] = known[name]
    return known, understood
