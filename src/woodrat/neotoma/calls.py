"""Calls: declaration and argument parsing of the calls of Neotoma's clients.

Arguments are a JSON object, or in the query string of a GET as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, Refused, shown
from woodrat.neotoma import names
from woodrat.records import dataclass
from woodrat.server.access import READ

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past

Given = dict[str, Any]

LIMIT: Final = 100
LIMIT_MAX: Final = 1_000
"""Default and largest number of items in an answer."""
PAGE: Final = 500
"""Entities per page when counting them."""
_UNHEEDED: Final = (
    *("user_id", "strict", "include_snapshots", "include_merged", "external_actor", "format", "order_by"),
    *("identity_basis", "similarity_threshold", "collapse_by", "source_peer_id", "source_storage", "intake", "summary"),
    *("published", "published_after", "published_before", "include_deleted", "expand_entities", "user_specific"),
    *("migrate_existing", "force", "activate"),
)
"""Neotoma arguments that have no meaning here: a key determines the ledger."""


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One thing that clients call."""

    answer: Callable[[Past, Given, Any], dict[str, Any] | bytes]
    """Makes the answer from the arguments and the result of the write; bytes are a file."""
    needs: tuple[str, ...] = ()
    """Arguments it cannot do without."""
    takes: tuple[str, ...] = ()
    """Further arguments."""
    grant: str = READ
    """The grant that a key needs for it."""
    write: Callable[[Ledger, Given], Any] | None = None
    """Writes, where it does."""
    about: Callable[[Given], Mapping[str, Any]] = lambda given: {}
    """The arguments that a key's grants are checked against."""
    relates: Callable[[Given], Iterator[Mapping[str, Any]]] = lambda given: iter(())
    """The relations it makes, and entities it names by id; each needs the same grants as in REST."""
    tests: bool = False
    """Whether it says whether values fit a condition, so that a key needs `read` as well."""
    soon: Callable[[Past, Given, Any], dict[str, Any] | None] = lambda past, given, done: None
    """Gives the answer where that takes less than handing it to a thread, from the same as `answer`; else `None`."""
    empty: Mapping[str, Any] | None = None
    """The answer if its entity is unknown; None if that is an error."""


def checked(verb: ClientCall, body: Any) -> Given:
    """Return the arguments of a call; unknown, missing and invalid ones are refused at once."""
    if not isinstance(body, dict):
        raise Refused([Fault("(body)", f"expected an object, got {shown(body)}", "Send a JSON object.")])
    faults = []
    known = (*verb.needs, *verb.takes, *_UNHEEDED)
    for name in sorted(set(body) - set(known)):
        faults.append(Fault(name, "unknown field", f"Send {', '.join((*verb.needs, *verb.takes)) or 'none'}."))
    given = {name: value for name, value in body.items() if value is not None and name not in _UNHEEDED}
    faults += [Fault(name, "is missing", "Send it.") for name in verb.needs if name not in given]
    for name, value in given.items():
        kind = _TYPES.get(name, str)
        if name in known and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            faults.append(Fault(name, f"got {shown(value)}", f"Send {_WORDS[kind]}."))
    for name, least in (("limit", 1), ("offset", 0)):
        if type(given.get(name)) is int and given[name] < least:
            faults.append(Fault(name, f"got {given[name]}", f"Send {least} or more."))
    if faults:
        raise Refused(faults, "Nothing was written." if verb.write is not None else "Nothing was read.")
    return names.typed(given)


def from_query(arguments: Mapping[str, list[str]]) -> Given:
    """Return the arguments in a query string with their types: numbers, true and false, lists and objects."""
    return {name: _meant(name, values[-1]) for name, values in arguments.items()}


def _meant(name: str, text: str) -> Any:
    if _TYPES.get(name, str) is str:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text  # the check states the expected type


_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("limit", "offset", "source_priority", "max_hops", "observations_limit"), int),
    **dict.fromkeys(("entities", "relationships", "relationship_types", "entity_types", "fields_to_add"), list),
    **dict.fromkeys(("fields_to_remove", "canonical_name_fields"), list),
    **dict.fromkeys(("corrections", "metadata", "snapshot_filters", "interpretation_config", "interpretation"), dict),
    **dict.fromkeys(("predicate", "new_entity", "schema_definition", "reducer_config", "fields"), dict),
    **dict.fromkeys(("commit", "include_entities", "include_observations", "exclude_bookkeeping"), bool),
    **dict.fromkeys(("include_relationships", "include_sources", "include_events"), bool),
    **dict.fromkeys(("entity_ids", "event_types", "changes"), list),
    **dict.fromkeys(("overwrite",), bool),
    **dict.fromkeys(("max_failures",), int),
    "value": object,
}
_WORDS: Final = {int: "a whole number", list: "a list", dict: "an object", bool: "true or false", str: "text"}


def window(given: Given) -> tuple[int, int]:
    """Return the page size and the offset."""
    return min(given.get("limit", LIMIT), LIMIT_MAX), given.get("offset", 0)


def page(name: str, items: list[Any], given: Given) -> dict[str, Any]:
    """Return a window of a list, with the number of all."""
    limit, offset = window(given)
    return {name: items[offset : offset + limit], "total": len(items), "limit": limit, "offset": offset}


def moment(given: Given, *stated: str) -> str | None:
    """Return the first of these times that is given, in fixed width; a date alone is its beginning."""
    from woodrat.ledger.moments import timestamp

    for name in stated:
        if name in given:
            text = given[name]
            return timestamp(f"{text}T00:00:00Z" if len(text) == len("2026-01-05") else text, name)
    return None
