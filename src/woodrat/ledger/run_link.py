"""Within: what a write says about the run it is part of."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from woodrat.canon import form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from woodrat.canon.ids import Ref


class Within(Protocol):
    """A step of a run that writes."""

    run: str
    """Id of the run."""
    step: int
    """Number of the step."""

    def saw(self, entities: Iterable[Ref]) -> Sequence[str]:
        """Return the observations of these entities that the run has read."""

    def key(self, verb: str, given: Mapping[str, object]) -> str:
        """Return the idempotency key of a call that states none: the same when the run is resumed and says it again."""


def request_name(verb: str, given: Mapping[str, object]) -> str:
    """Return a short name of a request: the verb and the arguments as sent."""
    taken = sha256(verb.encode())
    for name, value in sorted(given.items()):
        data = value if isinstance(value, bytes) else form.serialise(value)
        taken.update(b"\n%b %d " % (name.encode(), len(data)) + data)
    return taken.hexdigest()[:32]
