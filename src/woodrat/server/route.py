"""Route: one address and method of the server, what it takes, who may call it and what it answers."""

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
    """What it is, in a clause."""
    required: bool = False
    """Whether a call without it is refused."""
    wire: str = ""
    """Its name on the wire, where that is another."""
    inside: str = "query"
    """Where it stands: `query`, `path`, `body` or `header`."""
    example: Any = None
    """A value that works, for the document; of a body the route has one."""

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
    """The address; a part in braces takes all of the path up to what follows it."""
    verb: str
    """The name of the operation: a verb of the library with `_` for `.`, or a word like one."""
    answer: Callable[..., Any]
    """Carries it out on the ledger, or on the moment asked for, with the arguments by name."""
    what: str
    """What it does, in a sentence."""
    grant: str = READ
    """What a key needs for it."""
    params: tuple[Param, ...] = ()
    """Its arguments."""
    moment: bool = True
    """Whether it reads at a moment: `as_of` and `valid_at`."""
    example: Any = None
    """A body that works, for the document."""
    returns: Callable[..., Any] | None = None
    """The function whose annotation says what `answer` returns, where that is another: the method of a verb."""
    relays: bool = False
    """Whether it records a live run, and takes the relay that keeps such runs as well."""
    wide: bool = False
    """Whether it may tell of other types than it names, so that a grant for one type does not open it."""
    alone: bool = False
    """Whether it reads what it wrote, so that it cannot share a commit."""
    lines: bool = False
    """Whether its body may be JSON lines too."""
    soon: Callable[..., Any] | None = None
    """Answers for the present on the loop itself, where that takes less than handing it to a thread; else `None`."""

    @property
    def writes(self) -> bool:
        """Whether it appends to the log."""
        return self.method == "POST" and self.grant != READ

    @property
    def takes(self) -> tuple[Param, ...]:
        """Its arguments, and the moment where it reads at one."""
        return (*self.params, AS_OF, VALID_AT) if self.moment else self.params

    @property
    def has_details(self) -> bool:
        """Whether its answers are short unless `details` is sent."""
        # By identity: a route is asked with every call, and comparing arguments part by part takes long.
        return any(param is DETAILS for param in self.params)

    @property
    def form(self) -> AnswerForm:
        """What its answers look like."""
        return codec.answer_form(self.returns or self.answer, at_moment=self.moment)


def in_query(
    name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "", example: Any = None
) -> Param:
    """Return an argument that stands in the query of an address."""
    return Param(name, schema, what, required, wire, example=example)


def in_path(name: str, what: str, example: str, schema: Mapping[str, Any] = TEXT) -> Param:
    """Return an argument that is part of an address."""
    return Param(name, schema, what, True, inside="path", example=example)


def in_body(name: str, schema: Mapping[str, Any], what: str, *, required: bool = False, wire: str = "") -> Param:
    """Return an argument that stands in the body."""
    return Param(name, schema, what, required, wire, "body")


def param_of(parameter: Parameter, method: str) -> Param:
    """Return a parameter of a verb as a route has it."""
    kind = parameter.kind
    inside = "path" if parameter.in_path else "header" if kind.header else "body" if method == "POST" else "query"
    example = kind.example if inside == "path" or (inside == "query" and parameter.required) else None
    return Param(parameter.name, kind.schema, kind.what, parameter.required, kind.header or kind.wire, inside, example)


DETAILS: Final = param_of(details(), "GET")
"""Whether an answer has everything; by default a list is compact."""
AS_OF, VALID_AT = (param_of(parameter, "GET") for parameter in at_moment())
KEY: Final = Param(
    "idempotency_key", TEXT, "makes it safe to send the same call again", wire="Idempotency-Key", inside="header"
)
