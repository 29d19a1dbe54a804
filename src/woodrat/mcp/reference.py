"""References: the entity that a loose name means, and the answer to an agent if it is ambiguous.

The library finds an entity by a value that identifies it. Agents say less: a first name, or a name without its type. A
read is answered if exactly one entity matches, and says so; a write is refused with the exact call to send instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from woodrat.errors import NotFound, Refused, WoodratError
from woodrat.state.note import NOTE

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.mcp.action import Action, Given
    from woodrat.merge.snapshot import Snapshot

REFS: Final = ("ref", "about", "subject", "one", "other", "start", "end")
"""Arguments that name an entity, by their names in the library."""
RUNS: Final = ("run", "first", "second")
"""Arguments that name a run."""
CANDIDATES_MAX: Final = 5
"""Most candidates that are listed."""


def completed(past: Past, given: Given) -> Given:
    """Return arguments with the latest run for `last`, and `loan 42#score` as the reference that it spells."""
    found = dict(given)
    for name in RUNS:
        if given.get(name) in ("last", "latest"):
            found[name] = next(iter(past.ids("last")), given[name])
    if isinstance(given.get("set"), Mapping):
        found["set"] = {_field(past, name): value for name, value in given["set"].items()}
    return found


def _field(past: Past, name: str) -> str:
    ref, mark, field = name.rpartition("#")
    return f"{_with_type(past, ref)}#{field}" if mark and "/" not in ref else name


def unknown(past: Past, given: Given) -> list[str]:
    """Return the arguments that name unknown entities."""
    return [name for name in REFS if isinstance(given.get(name), str) and not _is_known(past, given[name])]


def _is_known(past: Past, text: str) -> bool:
    """Return True if text is a reference or an id of an entity."""
    try:
        return past.show(text).matched is None
    except WoodratError:
        return False


def candidates(past: Past, text: str) -> list[str]:
    """Return the entities that a name may mean: by key, or else by a value, or else by all of its words."""
    type, slash, key = (text if "/" in text else _with_type(past, text)).partition("/")
    words, type_asked = (key, type) if slash else (text, None)
    try:
        hits = past.search(words, entity_type=type_asked, limit=CANDIDATES_MAX + 1).items
    except WoodratError:
        return []
    named = [hit for hit in hits if slash or hit.snapshot.entity.type != NOTE]
    by_key = [hit for hit in named if hit.exact]
    by_value = [hit for hit in named if _has_value(hit.snapshot, words)]
    return [str(hit.snapshot.entity) for hit in by_key or by_value or named]


def _with_type(past: Past, text: str) -> str:
    """Return `loan 42` as the reference that it spells where that is known."""
    type, space, key = text.strip().partition(" ")
    ref = f"{type.lower()}/{key.strip()}"
    return ref if space and _is_known(past, ref) else text


def hints(past: Past, refs: Iterable[str]) -> list[str]:
    """Return a hint for each entity that is new and may be a known one: one with all the words of its key."""
    found: list[str] = []
    new = [ref for ref in refs if len(past.observations(ref, limit=2).items) == 1]
    for ref in new[:CANDIDATES_MAX]:
        others = [other for other in _with_words(past, ref) if other not in new]
        if others:
            call = _call("change", {"action": "merge", "one": ref, "other": others[0]})
            found.append(f"{ref} may be {' or '.join(others)}. {call} if they are one.")
    return found


def _with_words(past: Past, ref: str) -> list[str]:
    """Return the entities of a type that contain all words of a key."""
    type, _, key = ref.partition("/")
    try:
        hits = past.search(key, entity_type=type, limit=CANDIDATES_MAX).items
    except WoodratError:
        return []
    return [str(hit.snapshot.entity) for hit in hits]


def _has_value(snapshot: Snapshot, text: str) -> bool:
    folded = " ".join(text.lower().split())
    return any(
        isinstance(value, str) and " ".join(value.lower().split()) == folded for value in snapshot.fields.values()
    )


def only_one(past: Past, given: Given, names: list[str]) -> tuple[Given, dict[str, str]] | None:
    """Return the arguments with each name replaced by the one matching entity, and the match; None if a name is
    ambiguous.
    """
    meant, asked = dict(given), {}
    for name in names:
        found = candidates(past, given[name])
        if len(found) != 1:
            return None
        meant[name] = found[0]
        asked = {"asked": given[name], "entity": found[0]}
    return meant, asked


def refused(past: Past, problem: WoodratError, tool: str, named: str, action: Action, given: Given) -> WoodratError:
    """Return the error with the candidates, and the call with the first of them."""
    names = [] if given.get("details") else unknown(past, given)  # with details: the library's own answer
    if not names:
        return problem
    found = {name: candidates(past, given[name])[:CANDIDATES_MAX] for name in names}
    listed = list(dict.fromkeys(ref for refs in found.values() for ref in refs))
    if listed and all(ref in str(problem) for ref in listed):
        return problem  # it names them already
    if not all(found.values()):
        if "as_of" in given:
            return problem  # the entity may exist now; the error says that it did not at that moment
        missing = [given[name] for name, refs in found.items() if not refs]
        ask = _call("recall", {"question": " ".join(missing)})
        return _with(problem, f"Nothing is stored under that name. {ask} to look for it in other words.")
    first = {**given, **{name: refs[0] for name, refs in found.items()}}
    call = _call(tool, _sent(named, action, first))
    return _with(problem, f"Did you mean {' or '.join(listed)}? {call}.")


def _with(problem: WoodratError, remedy: str) -> WoodratError:
    """Return an error with a further remedy; its code and details stay the same."""
    message = str(problem)
    if isinstance(problem, Refused):
        return Refused(problem.faults, f"{message.rpartition(chr(10))[2]} {remedy}")
    return NotFound(f"{message} {remedy}", problem.details)


def _sent(named: str, action: Action, given: Given) -> dict[str, Any]:
    """Return arguments as an agent sends them."""
    wire = {parameter.name: name for name, parameter in action.parameters.items()}
    return {**({"action": named} if named else {}), **{wire.get(name, name): value for name, value in given.items()}}


def _call(tool: str, sent: Mapping[str, Any]) -> str:
    return f"Call {tool} with {orjson.dumps(sent).decode()}"
