"""Arguments: from a request to the arguments of a verb, with all faults at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from woodrat.errors import Fault, Outdated, Refused, pointer_part, shown
from woodrat.ledger.arguments import KNOWN, NEW
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.pages import read_cursor
from woodrat.server.requests import tags
from woodrat.server.route import Param, Route

NAMES_SHOWN_MAX: Final = 30
"""Most argument names that a message lists."""


ABSENT: Final = object()
"""The body of a call without a body."""
_VERSION: Final = re.compile(r"([0-9]{1,16})(?:-|$)")
"""The version at the start of an entity tag."""


def arguments(
    route: Route,
    rest: str,
    asked: Mapping[str, Sequence[str]],
    body: Any,
    headers: Mapping[str, str | None],
    *,
    bulk: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a call by their names in the library; unknown, missing and invalid arguments are refused.

    With `bulk`, the body consists of records, and the query string holds the other arguments.
    """
    faults: list[Fault] = []
    found: dict[str, Any] = {}
    _, in_query, in_body, others = _places_of(route)
    if bulk:
        in_query = {**in_query, **{name: param for name, param in in_body.items() if name not in body}}
    for name, values in asked.items():
        param = in_query.get(name)
        if param is None:
            faults.append(Fault(name, "unknown parameter", _known(in_query)))
        else:
            _take(found, param, _typed(param, values, faults))
    if body is not ABSENT:
        if not isinstance(body, Mapping):
            faults.append(Fault("(body)", f"expected an object, got {shown(body)}", _known(in_body)))
            body = {}
        for name, value in body.items():
            param = in_body.get(name)
            if param is None:
                faults.append(Fault(f"/{pointer_part(name)}", "unknown argument", _known(in_body)))
            elif value is not None:
                found[param.name] = value
    for param in others:
        if param.inside == "path":
            found[param.name] = rest
        elif param.inside == "header" and headers.get(param.spelled) is not None:
            found[param.name] = headers[param.spelled]
        if param.required and param.name not in found and not any(fault.path == param.spelled for fault in faults):
            where = f"/{param.spelled}" if param.inside == "body" else param.spelled
            faults.append(Fault(where, "is missing", f"Send {param.what}."))
    if faults:
        read_cursor(found.get("cursor"), b"", faults)  # the verb, which would raise this, is not called
        raise Refused(faults, outcome="Nothing was written." if route.writes else "Nothing was read.")
    return found


class _Places(NamedTuple):
    """The parameters of a route, by their place in the request."""

    route: Route
    """The route."""
    in_query: dict[str, Param]
    """By their names in the query."""
    in_body: dict[str, Param]
    """By their names in the body."""
    others: tuple[Param, ...]
    """Parameters in the path or a header, and required ones."""


_places: Final[dict[int, _Places]] = {}
"""Cache by the identity of the route, which the cached value keeps alive."""


def _places_of(route: Route) -> _Places:
    found = _places.get(id(route))
    if found is None:
        params = route.takes
        found = _places[id(route)] = _Places(
            route,
            {param.spelled: param for param in params if param.inside == "query"},
            {param.spelled: param for param in params if param.inside == "body"},
            tuple(param for param in params if param.required or param.inside in ("path", "header")),
        )
    return found


def take_condition(route: Route, given: dict[str, Any], condition: str, *, none: bool = False) -> None:
    """Take `If-Match`, or `If-None-Match` (`none`), for the version an entity must have."""
    name = "If-None-Match" if none else "If-Match"
    outcome = "Nothing was written." if route.writes else NO_READ
    named = tags(condition)
    if not any(param.name == "if_version" for param in route.params) or (none and route.verb != "store"):
        raise Refused([Fault(name, "this address does not support conditions", "Leave the header out.")], outcome)
    if none and named != ["*"]:
        raise Refused(
            [Fault(name, f"got {shown(condition)}", "Send * to require that nothing is stored yet, or If-Match.")]
        )
    if named is None:
        raise Refused([Fault(name, f"got {shown(condition)}", 'Send the ETag that reading gave, such as W/"17-…".')])
    versions = [int(match[1]) for match in map(_VERSION.match, named) if match is not None]
    if not versions and named != ["*"]:
        raise Outdated(
            f"{name}: {shown(condition)} is not an ETag of an entity here. Nothing was written. Read it again, "
            "then decide.",
            {"expected": condition},
        )
    wanted: Any = NEW if none else KNOWN if not versions else versions[0] if len(versions) == 1 else versions
    if "if_version" in given and given["if_version"] != wanted:
        raise Refused([Fault(name, f"got {shown(condition)}, and if_version says otherwise", "Send one of them.")])
    given["if_version"] = wanted


def _take(found: dict[str, Any], param: Param, value: Any) -> None:
    if value is not None:
        found[param.name] = value


def _typed(param: Param, values: Sequence[str], faults: list[Fault]) -> Any:
    """Return the value of a query parameter, converted by its schema."""
    kind = param.schema.get("type")
    if kind is None and "anyOf" in param.schema:
        kinds = [one.get("type") for one in param.schema["anyOf"]]
        if "array" in kinds and len(values) > 1:
            kind = "array"
        else:  # an address holds the plain one of several
            kind = "integer" if "integer" in kinds and values[0].isdigit() else "string"
    if kind == "array":
        return list(values)
    if len(values) > 1:
        faults.append(Fault(param.spelled, f"is given {len(values)} times", "Give it once."))
        return None
    text = values[0]
    if kind == "integer":
        if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 17:
            return int(text)
        faults.append(Fault(param.spelled, f"expected a whole number, got {shown(text)}", "Send digits."))
        return None
    if kind == "number":
        try:
            return float(text)
        except ValueError:
            faults.append(Fault(param.spelled, f"expected a number, got {shown(text)}", "Send a number."))
            return None
    if kind == "boolean":
        if text in ("true", "false"):
            return text == "true"
        faults.append(Fault(param.spelled, f"expected true or false, got {shown(text)}", "Send true or false."))
        return None
    return text


def _known(params: Mapping[str, Param]) -> str:
    names = sorted(params)
    if not names:
        return "It takes none."
    return f"Send {', '.join(names[:NAMES_SHOWN_MAX])}."
