"""Every error Woodrat raises on purpose.

    WoodratError
    ├── Refused       the request is invalid; nothing was written
    ├── Forbidden     the caller may not do this
    ├── NotFound      there is no such thing in this tenant
    ├── Outdated      a condition no longer holds, or the ledger is an older copy than its keys remember
    ├── Unavailable   the engine cannot answer now; the same call may be sent again
    └── Corrupt       stored bytes do not match their digest; stop and verify

Each class has a stable `code` that every surface shows, and a message of four parts: the subject, its value, the effect
on the data, the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from woodrat.records import dataclass

SHOWN_CHARACTERS_MAX = 80
"""Longest rendering of a value inside a message; the rest is cut and the cut is shown."""

SHOWN_FAULTS_MAX = 20
"""Most faults in a message; `faults` always holds all of them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input."""

    path: str
    """Where: a JSON Pointer into the input (`/3/city`), or the name of an argument (`tenant`)."""
    problem: str
    """The problem, with the value, in one clause without a full stop."""
    remedy: str
    """The remedy, as one sentence."""

    def under(self, prefix: str) -> Fault:
        """Return this fault with `prefix` put before its path."""
        return Fault(prefix + self.path, self.problem, self.remedy)

    def to_json(self) -> dict[str, Any]:
        """Return the fault as plain JSON."""
        # Written by hand: the module that derives the JSON of records imports this one.
        return {"path": self.path, "problem": self.problem, "remedy": self.remedy}

    def __str__(self) -> str:
        return f"{self.path or '(input)'}: {self.problem}. {self.remedy}"


def pointer_part(name: str) -> str:
    """Return `name` as one step of a JSON Pointer (RFC 6901) that can be printed anywhere."""
    printable = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in name)
    return printable.replace("~", "~0").replace("/", "~1")


class WoodratError(Exception):
    """Base of all errors raised on purpose."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details: dict[str, Any] = dict(details or {})

    def to_json(self) -> dict[str, Any]:
        """Return the error as plain JSON, the same on every surface."""
        return {"code": self.code, "message": str(self), "details": self.details}


class Refused(WoodratError):
    """Invalid request. Nothing was written; correct it and send it again."""

    code = "refused"

    def __init__(self, faults: Iterable[Fault], outcome: str = "Nothing was written.") -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        assert self.faults, "a refusal names at least one fault"
        lines = [str(fault) for fault in self.faults[:SHOWN_FAULTS_MAX]]
        more = len(self.faults) - len(lines)
        if more:
            lines.append(f"... and {more} more.")
        lines.append(outcome)
        super().__init__("\n".join(lines), {"faults": [fault.to_json() for fault in self.faults]})


class Forbidden(WoodratError):
    """The caller may not do this. Nothing was written; use a key with the grant."""

    code = "forbidden"


class NotFound(WoodratError):
    """There is no such thing in this tenant, at this moment. Nothing was written."""

    code = "not_found"


class Outdated(WoodratError):
    """A condition no longer holds. Nothing was written; read again, then decide."""

    code = "outdated"


class Unavailable(WoodratError):
    """The engine cannot answer now. Sending the same call with the same idempotency key again is safe."""

    code = "unavailable"


class Corrupt(WoodratError):
    """Stored bytes do not match their digest. Stop writing and verify the ledger."""

    code = "corrupt"


def shown(value: object) -> str:
    """Render `value` for a message: as JSON writes it where possible, cut at a named length, with its kind."""
    if value is None:
        return "null"
    if value is True or value is False:
        return f"{str(value).lower()} (boolean)"
    if isinstance(value, int) and value.bit_length() > 256:
        text, kind = f"an integer of {value.bit_length()} bits", "number"
    elif isinstance(value, int | float):
        text, kind = repr(value), "number"
    elif isinstance(value, str):
        text, kind = ascii(value) if not value.isprintable() else f'"{value}"', "text"
    elif isinstance(value, list | tuple):
        text, kind = f"{len(value)} element{'s' * (len(value) != 1)}", "array"
    elif isinstance(value, Mapping):
        text, kind = f"{len(value)} key{'s' * (len(value) != 1)}", "object"
    else:
        text, kind = type(value).__name__, "not a JSON value"
    if len(text) > SHOWN_CHARACTERS_MAX:
        text = text[:SHOWN_CHARACTERS_MAX] + "…"
    return f"{text} ({kind})"
