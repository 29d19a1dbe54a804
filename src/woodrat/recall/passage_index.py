"""The passage index: the passages of one tenant's runs under one embedder, in memory.

It is a function of the log and the embedder, and grows as the log does. Rows stand in the order of the log, so what
was known at a position is the first rows of it. `docs/formats/recall.md` describes the bytes of a row; they are derived
data and no format to be relied on.
"""

from __future__ import annotations

from array import array
from typing import Any, Final

from woodrat.canon import form, moment
from woodrat.errors import Fault, Refused
from woodrat.recall import vectors
from woodrat.recall.passages import ANSWERED, ASKED, DECIDED, RECALLED, Passage
from woodrat.records import dataclass

DECISIONS_MAX: Final = 32
"""How many decisions of one run have a passage; later ones are found by their run's question and answer."""

KINDS: Final = (ASKED, DECIDED, ANSWERED, RECALLED)
"""Kinds of passage, by the number a row has."""
WORDLESS: Final = KINDS.index(RECALLED)
"""Rows that have no vector."""

DECISION, REDECIDED, PLAIN, FOLLOW_UP, ABSENT = range(5)
"""How a run is offered: one that decided; one that decided in answer to a question about such a run; one that decided
nothing. A follow-up question, which answers from memory and decides nothing, is never offered; nor is a run that has
not begun."""
OFFERED: Final = (DECISION, REDECIDED, PLAIN)
"""The kinds of run that can be a hit, the first before all others."""

NEVER: Final = 2**62
"""The row of what has not happened."""

_BLOCK_COMPONENTS = 131_072  # a block as float32 stays in a processor's cache while it is multiplied

_HEAD_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class PassageRow:
    """What an index keeps for one entry: a passage, its vector, and what the run's start says about who may see it."""

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
        """Return the row as an index keeps it."""
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


def unpack_row(data: bytes) -> PassageRow:
    """Return a row that `pack` wrote."""
    size = int.from_bytes(data[:_HEAD_BYTES], "big") + _HEAD_BYTES
    head: dict[str, Any] = form.decode(data[_HEAD_BYTES:size])
    return PassageRow(
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


def row_of(run: str, found: Passage, vector: bytes, body: dict[str, Any]) -> PassageRow:
    """Return what an index keeps for a passage of an entry with this body."""
    square = vectors.square(vector)
    if found.kind != ASKED:
        return PassageRow(run, found.kind, vector, square, found.names, found.pairs, found.runs)
    stated = [body.get(name) for name in ("started_at", "principal", "conversation")]
    started_at, principal, conversation = (value if isinstance(value, str) else None for value in stated)
    return PassageRow(
        run,
        ASKED,
        vector,
        square,
        found.names,
        found.pairs,
        started_at=started_at,
        principal=principal,
        conversation=conversation,
        recall=body.get("recall") is True,
    )


class PassageIndex:
    """Passages in the order of the log, and what is known of their runs."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.position = -1
        """The position it is true for."""
        self.block_rows = max(1, _BLOCK_COMPONENTS // dimension)
        """How many vectors one block holds."""
        self.blocks: list[bytearray] = []
        """The vectors, row after row."""
        # By row.
        self.squares = array("d")
        self.positions = array("q")
        self.kinds = array("b")
        self.run_of = array("q")
        # By number of a run. The first three are rows: where it began, first decided, and first recalled others.
        self.started = array("q")
        self.decided = array("q")
        self.recalled = array("q")
        self.marked = array("b")
        self.decisions = array("q")
        self.began = array("q")
        self.ids: list[str] = []
        self.rows: list[list[int]] = []
        self.asked_pairs: list[tuple[str, ...]] = []
        self.asked_names: list[tuple[str, ...]] = []
        self.recalls: dict[int, list[tuple[int, str]]] = {}
        self.number: dict[str, int] = {}
        """Numbers of runs by their ids."""
        self.of_principal: dict[str, list[int]] = {}
        self.of_conversation: dict[str, list[int]] = {}
        self.named: dict[str, list[int]] = {}
        """Rows by the identifiers that name what their runs are about."""
        self.paired: dict[str, list[int]] = {}
        """Rows by the identifiers they hold together with a word, as `application 42`."""

    def __len__(self) -> int:
        return len(self.positions)

    def takes(self, run: str, kind: str, waiting: int) -> bool:
        """Return whether a further passage of a run is wanted: a start once, so many decisions and no more.

        `waiting` are those of its kind that are about to be added.
        """
        number = self.number.get(run)
        if kind == ASKED:
            return not waiting and (number is None or self.started[number] == NEVER)
        return kind != DECIDED or waiting + (0 if number is None else self.decisions[number]) < DECISIONS_MAX

    def add(self, position: int, item: PassageRow) -> None:
        """Add what an index keeps for an entry; entries come in the order of the log."""
        assert not self.positions or position > self.positions[-1], "rows stand in the order of the log"
        if item.vector and len(item.vector) != self.dimension:
            raise Refused([other_dimension(len(item.vector), self.dimension)], "Nothing was scored.")
        number = self.number.setdefault(item.run, len(self.ids))
        if number == len(self.ids):
            self._add_run(item.run)
        row = len(self.positions)
        block, at = divmod(row, self.block_rows)
        if block == len(self.blocks):
            self.blocks.append(bytearray(self.block_rows * self.dimension))
        if item.vector:
            self.blocks[block][at * self.dimension : (at + 1) * self.dimension] = item.vector
        self.squares.append(item.square)
        self.positions.append(position)
        self.kinds.append(KINDS.index(item.kind))
        self.run_of.append(number)
        self.rows[number].append(row)
        for name in item.names:
            self.named.setdefault(name, []).append(row)
        for pair in item.pairs:
            self.paired.setdefault(pair, []).append(row)
        if item.kind == ASKED:
            self._start(number, row, item)
        elif item.kind == DECIDED:
            self.decided[number] = min(row, self.decided[number])
            self.decisions[number] += 1
        elif item.kind == RECALLED:
            self.recalled[number] = min(row, self.recalled[number])
            self.recalls.setdefault(number, []).extend((row, run) for run in item.runs)

    def _add_run(self, run: str) -> None:
        self.ids.append(run)
        self.rows.append([])
        self.asked_pairs.append(())
        self.asked_names.append(())
        for first_row in (self.started, self.decided, self.recalled):
            first_row.append(NEVER)
        for count in (self.marked, self.decisions, self.began):
            count.append(0)

    def _start(self, number: int, row: int, item: PassageRow) -> None:
        assert self.started[number] == NEVER, "a run starts once"
        self.started[number] = row
        self.marked[number] = item.recall
        self.asked_pairs[number] = item.pairs
        self.asked_names[number] = item.names
        if item.started_at is not None and moment.is_fixed(item.started_at):
            self.began[number] = moment.to_micros(item.started_at)
        if item.principal is not None:
            self.of_principal.setdefault(item.principal, []).append(number)
        if item.conversation is not None:
            self.of_conversation.setdefault(item.conversation, []).append(number)

    def kind(self, number: int, rows: int) -> int:
        """Return how a run was offered when there were so many rows."""
        if self.started[number] >= rows:
            return ABSENT
        recalled = self.recalled[number] < rows
        if self.decided[number] < rows:
            # What it recalled says whom it asked about; marked without that, it may have asked about anyone.
            return REDECIDED if self.marked[number] and not recalled else DECISION
        return FOLLOW_UP if self.marked[number] or recalled else PLAIN


def other_dimension(kept: int, given: int) -> Fault:
    """Return the fault of an embedder whose vectors are not those that were kept under its id."""
    problem = f"vectors kept under its id have {kept} components, its own have {given}"
    return Fault("embedder", problem, "Reindex with this embedder, or give it an id of its own.")
