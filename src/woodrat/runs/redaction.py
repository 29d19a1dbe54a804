"""Hiding: entries of runs without what stands under keys to be hidden.

A run that is recorded here hides values before they are written into an entry. Entries that were made elsewhere (a
trace, a file, a recorder at the other end of a wire) come whole, and the same is taken out of them here. What an entry
itself is made of (its span, its name, its kind) is never hidden, whatever the keys are called. Of a value that was cut
there the preview goes: nobody can say under which key its letters stood.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.runs.shape import SHAPE, SHAPED
from woodrat.runs.values import TRUNCATED, is_mark
from woodrat.state.redaction import REDACTED, taken_out

if TYPE_CHECKING:
    from woodrat.canon.form import Json

_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "run.started": ("inputs", "forked_from"),
    "run.read": ("args", "edited"),
    "run.model": ("messages", "parameters", "response"),
    "run.tool": ("args", "result"),
    "run.decided": ("chosen", "otherwise", "facts"),
    "run.noted": ("data",),
    "run.ended": ("answer",),
    "run.judged": ("preferred",),
}
"""The parts of an entry that hold what an agent's code handed over, beside the attributes that any may have."""


def without(kind: str, body: Mapping[str, Json], hidden: Collection[str]) -> dict[str, Any]:
    """Return the body of an entry without the values under hidden keys, at any depth; a beginning says the keys."""
    found: dict[str, Any] = dict(body)
    for part in (*_VALUES.get(kind, ()), "attributes"):
        if part in found:
            found[part] = _shown(found[part], hidden)
    if SHAPE in found and not form.same(found.get(SHAPED.get(kind, "")), body.get(SHAPED.get(kind, ""))):
        found[SHAPE] = REDACTED  # it was made before this was hidden, and may hold some of it
    if kind == "run.started":
        stated = found.get("redact")
        found["redact"] = sorted({*(stated if isinstance(stated, list) else ()), *hidden})
    if kind == "run.read" and isinstance(found.get("fields"), Mapping):
        found["fields"] = {name: _field(name, item, hidden) for name, item in found["fields"].items()}
    if kind == "run.decided":
        for part in ("rules", "untried"):
            if isinstance(found.get(part), list):
                found[part] = [rule(tried, hidden) for tried in found[part]]
    return found


def when(wanted: Json, hidden: Collection[str]) -> Json:
    """Return the conditions of a rule as they may be shown; an operator is no key."""
    if not isinstance(wanted, Mapping):
        return taken_out(wanted, hidden)  # type: ignore[no-any-return]
    return {key: REDACTED if key in hidden else _asked(value, hidden) for key, value in wanted.items()}


def _asked(wanted: Json, hidden: Collection[str]) -> Any:
    if isinstance(wanted, Mapping):
        return {op: taken_out(operand, hidden) for op, operand in wanted.items()}
    return taken_out(wanted, hidden)


def _shown(value: Any, hidden: Collection[str]) -> Any:
    """Return a value that was recorded elsewhere, without what is to be hidden."""
    return _uncut(taken_out(value, hidden))


def _uncut(value: Any) -> Any:
    if is_mark(value) and isinstance(value.get(TRUNCATED), Mapping):
        return {TRUNCATED: {name: item for name, item in value[TRUNCATED].items() if name != "preview"}}
    if isinstance(value, dict):
        return {name: _uncut(item) for name, item in value.items()}
    return [_uncut(item) for item in value] if isinstance(value, list) else value


def _field(name: str, item: Any, hidden: Collection[str]) -> Any:
    if not isinstance(item, Mapping) or "value" not in item:
        return item
    return {**item, "value": REDACTED if name in hidden else _shown(item["value"], hidden)}


def rule(tried: Any, hidden: Collection[str]) -> Any:
    """Return a rule as a decision records it, as it may be shown."""
    if not isinstance(tried, Mapping):
        return tried
    found: dict[str, Any] = dict(tried)
    if "chosen" in found:
        found["chosen"] = _shown(found["chosen"], hidden)
    if "when" in found:
        found["when"] = _uncut(when(found["when"], hidden))
    if isinstance(found.get("conditions"), list):
        found["conditions"] = [condition(each, hidden) for each in found["conditions"]]
    return found


def condition(made: Any, hidden: Collection[str]) -> Any:
    """Return one comparison of a rule as it may be shown."""
    if not isinstance(made, Mapping):
        return made
    away = made.get("key") in hidden
    shown = {part: REDACTED if away else _shown(made[part], hidden) for part in ("actual", "operand") if part in made}
    return {**made, **shown}
