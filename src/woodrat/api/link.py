"""The link: a declared verb, called over HTTP.

Arguments of a call are bound to the verb's parameters, and sent in the places that its declaration names. The
answer is read back as the record that the verb's annotation names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.api import codec
from woodrat.canon import form as canonical_form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import redaction, spoken_times
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from woodrat.api.transport import Transport
    from woodrat.api.verb import Parameter, Verb
    from woodrat.clock import Clock

HERE_ONLY: Final = frozenset({"progress", "jobs"})
"""Arguments that configure a local ledger; a server has its own configuration."""


class RemoteContext(NamedTuple):
    """The part of a context that needs no engine."""

    valid_at: str | None
    """Only values true by this time count; None: no limit."""
    clock: Clock
    """Time and fresh ids, here."""
    hidden: frozenset[str]
    """Keys whose values are redacted before they leave this process."""


class Link:
    """A server, at one moment on two clocks."""

    def __init__(
        self,
        transport: Transport,
        hidden: frozenset[str] = frozenset(),
        moment: str | None = None,
        valid_at: str | None = None,
    ) -> None:
        self.transport = transport
        self.hidden = hidden
        """Keys whose values do not leave this process."""
        self.moment = moment
        self.valid_at = valid_at

    @property
    def reading_at(self) -> dict[str, Any]:
        """The moment, as every address that reads takes it."""
        return {"as_of": self.moment, "valid_at": self.valid_at}

    def get(self, path: str, **asked: Any) -> Any:
        """Return the response of a path at the link's moment."""
        return self.transport.get(path, {**asked, **self.reading_at})

    def call(self, verb: Verb, arguments: Mapping[str, Any]) -> Any:
        """Carry out a verb on the server; return the library's result."""
        declaration = verb.declaration
        query: dict[str, Any] = dict(self.reading_at) if declaration.at_moment else {}
        form = codec.answer_of(verb)
        if form.has_details:
            query["details"] = True  # so that the record is equal to a local ledger's
        body: dict[str, Any] = {}
        key: str | None = None
        path = declaration.path
        for parameter in verb.parameters:
            if parameter.name not in arguments:
                continue
            value = sent(verb, parameter, arguments[parameter.name])
            if value is None:
                continue
            if parameter.in_path:
                path = path.replace(f"{{{parameter.wire}}}", str(value))
            elif parameter.kind.header:
                key = value
            else:
                (body if declaration.method == "POST" else query)[parameter.wire] = value
        if declaration.method == "GET":
            answer = self.transport.get(path, query)
        else:
            if verb.writes:
                current.check_write(verb.name)
                body = redaction.arguments(body, self.hidden)
                key = self.transport.fresh_key() if key is None and takes_key(verb) else key
            answer = self.transport.post(path, body, query or None, key=key)
        return form.read(answer)


def takes_key(verb: Verb) -> bool:
    """Return True if sending a verb twice with one key is one write."""
    return any(parameter.kind.header for parameter in verb.parameters)


def sent(verb: Verb, parameter: Parameter, value: Any) -> Any:
    """Return an argument as JSON; `None` if it is not sent."""
    if value is None or value is ... or (not parameter.required and (value is False or value == () or value == [])):
        return None
    if callable(value):
        problem = "a function cannot be sent to a server"
        raise Refused([Fault(parameter.wire, problem, "State conditions or rules instead.")], verb.outcome)
    if isinstance(value, Ref):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    listed = parameter.kind.schema.get("type") == "array"
    if listed and isinstance(value, Mapping):
        return [f"{name}={canonical_form.serialise(item).decode()}" for name, item in value.items()]
    if listed and isinstance(value, str):
        return [value]
    found = plain(value)
    if parameter.kind.ids == ("run",) and isinstance(found, dict | list):  # as other tools write them
        from woodrat.runs.recordings import keepable

        found = keepable(found, verb.outcome)
    # The path of a fault in a record begins at the record, as on a ledger that is here.
    faults = canonical_form.faults(found, "" if parameter.name == "records" else f"/{parameter.wire}")
    if faults:
        raise Refused(faults, verb.outcome)
    return found


def plain(value: Any) -> Any:
    """Return records nested anywhere in a value as their JSON."""
    if isinstance(value, Ref):
        return str(value)
    if hasattr(value, "to_json"):
        return codec.whole(value).to_json()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


def over(verb: Verb) -> Callable[..., Any]:
    """Return a method that carries a verb out over the link of its object."""
    function = verb.function
    code = function.__code__
    positional = code.co_varnames[1 : code.co_argcount]
    known = frozenset(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    offered = frozenset(parameter.name for parameter in verb.parameters)

    @wraps(function, updated=())  # the declared verb stays the same
    def call(self: Any, /, *arguments: Any, **named: Any) -> Any:
        bound = {**dict(zip(positional, arguments, strict=False)), **named}
        if len(arguments) > len(positional) or not known.issuperset(bound):
            function(self, *arguments, **named)  # raises Python's own error for such a call
        for name in bound.keys() - offered - HERE_ONLY:
            if bound[name] is not None:
                remedy = "Leave it out, or open a local ledger."
                problem = f"got {shown(bound[name])}, which cannot be sent to a server"
                raise Refused([Fault(name, problem, remedy)], verb.outcome)
        missing = [p for p in verb.parameters if p.required and p.name not in bound]
        if missing:
            function(self, *arguments, **named)
        # Words and days depend on the caller's zone, so they become times before they are sent.
        clock = self.link.transport.clock
        bound, told = spoken_times.resolved(bound, clock)
        answer = spoken_times.with_times(self.link.call(verb, bound), told)
        if hasattr(answer, "followed_by"):  # a page
            return answer.followed_by(lambda: call(self, **{**bound, "cursor": answer.cursor}))
        return answer

    return call
