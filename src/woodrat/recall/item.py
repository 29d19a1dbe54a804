"""Item: what a shelf keeps for one entry of a run, and its bytes.

`docs/formats/recall.md` describes them; they are derived data and no format to be relied on.
"""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon import form
from woodrat.recall import vectors
from woodrat.recall.passages import ASKED, Passage
from woodrat.records import dataclass

_HEAD_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Item:
    """What a shelf keeps for one entry: a passage, its vector, and what the run's start says about who may see it."""

    run: str
    """The run."""
    kind: str
    """Kind of the passage."""
    vector: bytes
    """Its vector, a signed byte for each component; empty for a passage without a text."""
    square: int
    """The square of the vector's length."""
    names: tuple[str, ...]
    """Identifiers that name what the run is about."""
    pairs: tuple[str, ...]
    """Identifiers with the word they follow."""
    runs: tuple[str, ...] = ()
    """Runs that were recalled."""
    started_at: str | None = None
    """When the run began; stated by what was asked only, as is all that follows."""
    principal: str | None = None
    """On whose behalf it ran."""
    conversation: str | None = None
    """Which conversation it is part of."""
    recall: bool = False
    """Whether it is marked as answering from memory."""

    def pack(self) -> bytes:
        """Return the item as a shelf keeps it."""
        head: dict[str, Any] = {"run": self.run, "kind": self.kind}
        if self.square:
            head["square"] = self.square
        for name in ("started_at", "principal", "conversation"):
            if getattr(self, name) is not None:
                head[name] = getattr(self, name)
        if self.recall:
            head["recall"] = True
        for name in ("names", "pairs", "runs"):
            if getattr(self, name):
                head[name] = list(getattr(self, name))
        said = form.serialise(head)
        return len(said).to_bytes(_HEAD_BYTES, "big") + said + self.vector


def unpack(data: bytes) -> Item:
    """Return an item that `pack` wrote."""
    size = int.from_bytes(data[:_HEAD_BYTES], "big") + _HEAD_BYTES
    head: dict[str, Any] = form.decode(data[_HEAD_BYTES:size])
    return Item(
        head["run"],
        head["kind"],
        data[size:],
        head.get("square", 0),
        tuple(head.get("names", ())),
        tuple(head.get("pairs", ())),
        tuple(head.get("runs", ())),
        head.get("started_at"),
        head.get("principal"),
        head.get("conversation"),
        head.get("recall", False),
    )


def item_of(run: str, found: Passage, vector: bytes, body: dict[str, Any]) -> Item:
    """Return what a shelf keeps for a passage of an entry with this body."""
    square = vectors.square(vector)
    if found.kind != ASKED:
        return Item(run, found.kind, vector, square, found.names, found.pairs, found.runs)
    stated = [body.get(name) for name in ("started_at", "principal", "conversation")]
    started_at, principal, conversation = (value if isinstance(value, str) else None for value in stated)
    marked = body.get("recall") is True
    return Item(run, ASKED, vector, square, found.names, found.pairs, (), started_at, principal, conversation, marked)
