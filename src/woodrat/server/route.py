"""Route: one address and method of the server, with its arguments, its grant and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from woodrat.api import codec
from woodrat.api.codec import AnswerForm
from woodrat.api.parameters import TEXT
from woodrat.api.verb import Parameter, at_moment, details
from woodrat.records import dataclass
from woodrat.server.access import READ


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a route."""

    name: str
    """Its name in the library; in the query it is spelled `wire`."""
    schema: Mapping[str, Any]
    """JSON Schema of its value."""
    what: str
    """Its description, in a clause."""
    required: bool = False
    """True if a call without it is refused."""
    wire: str = ""
    """Its name on the wire, if that differs."""
    inside: str = "query"
    """Its place: `query`, `path`, `body` or `header`."""
    example: Any = None
    """A valid example value; a body has one example for the whole route."""

    @property
    def spelled(self) -> str:
        """Its name on the wire."""
        return self.wire or self.name


@dataclass(frozen=True, slots=True)
class Route:
    """One address and method."""

    method: str
    """GET or POST."""
    path: str
    """The address; a part in braces matches everything up to the text that follows it."""
    verb: str
    """The name of the operation: a verb of the library with `_` for `.`, or a word like one."""
    answer: Callable[..., Any]
    """Executes it on the ledger, or on the requested moment, with the arguments by name."""
    what: str
    """Its summary, in a sentence."""
    grant: str = READ
    """The grant that it needs."""
    params: tuple[Param, ...] = ()
    """Its arguments."""
    moment: bool = True
    """True if it reads at a moment: `as_of` and `valid_at`."""
    example: Any = None
    """A valid example body."""
    returns: Callable[..., Any] | None = None
    """The function whose annotation states the type of the answer, if it is another one: the method of a verb."""
    relays: bool = False
    """True if it records a live run, and also takes the relay of such runs."""
    wide: bool = False
    """True if it may reveal other types than it names, so that a grant for one type does not open it."""
    alone: bool = False
    """True if it reads its own write, so that it cannot share a commit."""
    lines: bool = False
    """True if its body may also be JSON lines."""
    soon: Callable[..., Any] | None = None
    """Answers for the present on the event loop if that is cheaper than a thread; otherwise returns None."""

    @property
    def writes(self) -> bool:
        """True if it appends to the log."""
        return self.method == "POST" and self.grant != READ

    @property
    def takes(self) -> tuple[Param, ...]:
        """Its arguments, with the moment if it reads at one."""
        return (*self.params, AS_OF, VALID_AT) if self.moment else self.params

    @property
    def has_details(self) -> bool:
        """True if its answers are short unless `details` is sent."""
        # Compare by identity: every call looks up its route, and comparing arguments takes long.
        return any(param is DETAILS for param in self.params)

    @property
    def form(self) -> AnswerForm:
        """The type of its answer."""
        return codec.answer_form(self.returns or self.answer, at_moment=self.moment)


def in_query(
    name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "", example: Any = None
) -> Param:
    """Return an argument in the query string."""
    return Param(name, schema, what, required, wire, example=example)


def in_path(name: str, what: str, example: str, schema: Mapping[str, Any] = TEXT) -> Param:
    """Return an argument in the path."""
    return Param(name, schema, what, True, inside="path", example=example)


def in_body(name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "") -> Param:
    """Return an argument in the body."""
    return Param(name, schema, what, required, wire, "body")


def param_of(parameter: Parameter, method: str) -> Param:
    """Return a parameter of a verb as an argument of a route."""
    kind = parameter.kind
    inside = "path" if parameter.in_path else "header" if kind.header else "body" if method == "POST" else "query"
    example = kind.example if inside == "path" or (inside == "query" and parameter.required) else None
    return Param(parameter.name, kind.schema, kind.what, parameter.required, kind.header or kind.wire, inside, example)


DETAILS: Final = param_of(details(), "GET")
"""The `details` argument: whether an answer is complete; by default a list is compact."""
AS_OF, VALID_AT = (param_of(parameter, "GET") for parameter in at_moment())
KEY: Final = Param(
    "idempotency_key", TEXT, "makes it safe to send the same call again", wire="Idempotency-Key", inside="header"
)
