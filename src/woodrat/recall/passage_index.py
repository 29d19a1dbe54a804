"""The passage index: what a tenant remembers, as passages with their terms, identifiers and vectors, in memory.

A *memory* is one thing that a recall can find: a run, what is believed of an entity, a note, or a piece of a document.
It has one passage or more. The index is a function of the log and grows as the log does: rows stand in the order of the
log, and what an entity was believed to be stands under the positions between which it was believed. So what was known
at a position can be searched. Vectors are filled in afterwards, and a row without one is scored by its words.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any, Final

from woodrat.canon import form, moment
from woodrat.recall import words
from woodrat.recall.passages import ANSWERED, ASKED, DECIDED, DOCUMENT, GONE, RECALLED, Passage
from woodrat.records import dataclass
from woodrat.state.tokens import spans

DECISIONS_MAX: Final = 32
"""How many decisions of one run have a passage; later ones are found by their run's question and answer."""
RUN: Final = "run"
"""The kind of a memory that is a run; others have the kind of their passages."""
RUN_PASSAGES: Final = frozenset({ASKED, DECIDED, ANSWERED, RECALLED})
"""Kinds of passage that runs have."""
WORDLESS: Final = frozenset({RECALLED, GONE})
"""Kinds of passage that have no text."""

DECISION, REDECIDED, PLAIN, FOLLOW_UP, ABSENT = range(5)
"""How a run is offered: one that decided; one that decided in answer to a question about such a run; one that decided
nothing. A follow-up question, which answers from memory and decides nothing, is never offered; nor is a run that has
not begun."""
OFFERED: Final = (DECISION, REDECIDED, PLAIN)
"""The kinds of run that can be a hit."""

NEVER: Final = 2**62
"""The row, or the position, of what has not happened."""
SCHEME_FROM: Final = 3
"""A word that so many different numbers follow names things of one kind by number, as `application` does."""
ROWS_MIN: Final = 1_024
"""How many vectors there is room for at first; a quarter more when it is full."""


@dataclass(frozen=True, slots=True)
class PassageRow:
    """What an index keeps for one passage."""

    of: str
    """What it is a passage of: a run's id, an entity's reference, or a source's id."""
    kind: str
    """Kind of the passage."""
    text: str = ""
    """What it says."""
    agent: str = ""
    """Who said so; empty where that is not known."""
    at: str | None = None
    """When that was: a run's start, an observation's time, a delivery."""
    names: tuple[str, ...] = ()
    """Identifiers that name what it is about."""
    pairs: tuple[str, ...] = ()
    """Identifiers with the word they follow."""
    runs: tuple[str, ...] = ()
    """Runs that were recalled."""
    run: str | None = None
    """The run in which a fact or a note was written."""
    principal: str | None = None
    """On whose behalf a run ran; stated by what was asked only, as is all that follows."""
    conversation: str | None = None
    """Which conversation it is part of."""
    recall: bool = False
    """Whether it is marked as answering from memory."""

    def pack(self) -> bytes:
        """Return the row as an index keeps it: what it states, and nothing of what it does not."""
        stated: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value:
                stated[name] = list(value) if isinstance(value, tuple) else value
        return form.serialise(stated)


def unpack_row(data: bytes) -> PassageRow:
    """Return a row that `pack` wrote."""
    stated: dict[str, Any] = form.decode(data)
    for name in ("names", "pairs", "runs"):
        if name in stated:
            stated[name] = tuple(stated[name])
    return PassageRow(**stated)


def row_of(run: str, found: Passage, body: dict[str, Any]) -> PassageRow:
    """Return what an index keeps for a passage of a run's entry with this body."""
    agent = body.get("agent")
    said = agent if isinstance(agent, str) else ""
    if found.kind != ASKED:
        return PassageRow(run, found.kind, found.text, said, None, found.names, found.pairs, found.runs)
    stated = [body.get(name) for name in ("started_at", "principal", "conversation")]
    started_at, principal, conversation = (value if isinstance(value, str) else None for value in stated)
    return PassageRow(
        run,
        ASKED,
        found.text,
        said,
        started_at,
        found.names,
        found.pairs,
        principal=principal,
        conversation=conversation,
        recall=body.get("recall") is True,
    )


class IndexedMemory:
    """One thing that a recall can find, as the index knows it."""

    __slots__ = (
        "asked_names",
        "asked_pairs",
        "at",
        "conversation",
        "decided",
        "decisions",
        "kind",
        "marked",
        "number",
        "of",
        "principal",
        "recalled",
        "recalls",
        "rows",
        "run",
        "since",
        "started",
        "until",
    )

    def __init__(self, number: int, kind: str, of: str, since: int) -> None:
        self.number, self.kind, self.of, self.since = number, kind, of, since
        self.until = NEVER
        """The position from which it is no longer so."""
        self.at = 0
        """When it was said, in microseconds."""
        self.rows: list[int] = []
        self.run: str | None = None
        self.principal: str | None = None
        self.conversation: str | None = None
        # Of runs. The first three are rows: where it began, first decided, and first recalled others.
        self.started = self.decided = self.recalled = NEVER
        self.decisions = 0
        self.marked = False
        self.recalls: list[tuple[int, str]] = []
        self.asked_names: tuple[str, ...] = ()
        self.asked_pairs: tuple[str, ...] = ()

    def offered(self, rows: int) -> int:
        """Return how a run was offered when there were so many rows."""
        if self.started >= rows:
            return ABSENT
        recalled = self.recalled < rows
        if self.decided < rows:
            # What it recalled says whom it asked about; marked without that, it may have asked about anyone.
            return REDECIDED if self.marked and not recalled else DECISION
        return FOLLOW_UP if self.marked or recalled else PLAIN


class PassageIndex:
    """Passages in the order of the log, and what is known of the memories they belong to."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        """Components of a vector; 0 where there are none."""
        self.position = -1
        """The position it is true for."""
        # By row.
        self.positions = array("q")
        self.ordinals = array("q")
        self.memory_of = array("q")
        self.texts: list[str] = []
        self.kinds: list[str] = []
        self.agents: list[str] = []
        self.sizes = array("q")
        """How many terms a row has."""
        self.vectors: Any = None
        """The vectors as one matrix of floats, with room for more; a float32 holds every dot product of whole bytes
        exactly. One product with all of them is as fast as it gets. None where the engine multiplies."""
        self.unheld: dict[int, Any] | None = None
        """Where the engine multiplies, the vectors of rows that it does not hold; none where it does not multiply."""
        self.squares = array("d")
        """The square of a row's vector; 0 where it has none yet."""
        self.unembedded: set[int] = set()
        """Rows with a text and without a vector."""
        # Memories.
        self.memories: list[IndexedMemory] = []
        self.current: dict[str, IndexedMemory] = {}
        """The latest memory of a run, an entity or a piece of a document."""
        # Terms.
        self.postings: dict[str, array[int]] = {}
        """Rows by term."""
        self.spelled: dict[str, list[str]] = {}
        """Words of the passages by their first letter, for misspellings."""
        self._words: set[str] = set()
        self.named: dict[str, list[int]] = {}
        """Rows by the identifiers that name what they are about."""
        self.paired: dict[str, list[int]] = {}
        """Rows by the identifiers they hold together with a word, as `application 42`."""
        self.numbered: dict[str, set[str]] = {}
        """Some of the numbers that follow a word where they name something; three of them make it a word for a kind."""

    def __len__(self) -> int:
        return len(self.positions)

    def takes(self, run: str, kind: str, waiting: int, *, anew: bool = False) -> bool:
        """Return whether a further passage of a run is wanted: a start once, so many decisions and no more.

        `waiting` are those of its kind that are about to be added; a run that begins `anew` has no others.
        """
        known = None if anew else self.current.get(run)
        if kind == ASKED:
            return not waiting and (known is None or known.started == NEVER)
        return kind != DECIDED or waiting + (0 if known is None else known.decisions) < DECISIONS_MAX

    def add(self, position: int, ordinal: int, item: PassageRow) -> None:
        """Add a passage; they come in the order of the log, and those of one position by their ordinals."""
        assert not self.positions or (position, ordinal) > (self.positions[-1], self.ordinals[-1]), "rows are in order"
        row = len(self.positions)
        memory = self._memory(position, item)
        self.positions.append(position)
        self.ordinals.append(ordinal)
        self.memory_of.append(-1 if memory is None else memory.number)
        self.texts.append(item.text)
        self.kinds.append(item.kind)
        self.agents.append(item.agent)
        self.squares.append(0)
        self.sizes.append(self._add_terms(row, item.text))
        if item.text:
            self.unembedded.add(row)
        for name in item.names:
            self.named.setdefault(name, []).append(row)
        for pair in item.pairs:
            self.paired.setdefault(pair, []).append(row)
            word, _, token = pair.rpartition(" ")
            if token in item.names and len(numbered := self.numbered.setdefault(word, set())) < SCHEME_FROM:
                numbered.add(token)
        if memory is None:
            return
        memory.rows.append(row)
        if item.kind == ASKED:
            self._start(memory, row, item)
        elif item.kind == DECIDED:
            memory.decided = min(row, memory.decided)
            memory.decisions += 1
        elif item.kind == RECALLED:
            memory.recalled = min(row, memory.recalled)
            memory.recalls.extend((row, run) for run in item.runs)
        elif item.at is not None and moment.is_fixed(item.at):
            memory.at = max(memory.at, moment.to_micros(item.at))
            memory.run = memory.run or item.run
            memory.asked_names += item.names
            memory.asked_pairs += item.pairs

    def speakers(self, run: str) -> set[str]:
        """Return whose entries the passages of a run are from."""
        known = self.current.get(run)
        return set() if known is None else {self.agents[row] for row in known.rows}

    def _memory(self, position: int, item: PassageRow) -> IndexedMemory | None:
        """Return the memory that a passage belongs to; what was believed before ends where something else begins."""
        known = self.current.get(item.of)
        if item.kind == ASKED and known is not None and self.speakers(item.of) - {item.agent}:
            known.until = min(known.until, position)  # its owner has begun it: what others said of it is no part of it
            known = None
        if item.kind in RUN_PASSAGES:
            return known or self._begin(RUN, item.of, position)
        if item.kind == DOCUMENT:
            return self._begin(DOCUMENT, item.of, position)
        if known is not None and known.since == position and item.kind != GONE:
            return known
        if known is not None:
            known.until = min(known.until, position)
        if item.kind == GONE:
            self.current.pop(item.of, None)
            return None
        return self._begin(item.kind, item.of, position)

    def _begin(self, kind: str, of: str, position: int) -> IndexedMemory:
        memory = IndexedMemory(len(self.memories), kind, of, position)
        self.memories.append(memory)
        self.current[of] = memory
        return memory

    def _start(self, memory: IndexedMemory, row: int, item: PassageRow) -> None:
        assert memory.started == NEVER, "a run starts once"
        memory.started, memory.marked = row, item.recall
        memory.asked_pairs, memory.asked_names = item.pairs, item.names
        memory.principal, memory.conversation = item.principal, item.conversation
        if item.at is not None and moment.is_fixed(item.at):
            memory.at = moment.to_micros(item.at)

    def _add_terms(self, row: int, text: str) -> int:
        count = 0
        seen: set[str] = set()
        for token, _, _ in spans(words.fold(text)):
            count += 1
            if token in seen:
                continue
            seen.add(token)
            if token not in self._words:
                self._words.add(token)
                self.spelled.setdefault(token[:1], []).append(token)
        for term in dict.fromkeys(words.passage_terms(text)):
            found = self.postings.get(term)
            if found is None:
                found = self.postings[term] = array("q")
            found.append(row)
        return count

    def has_word(self, word: str) -> bool:
        """Return whether any passage has a word, spelled so."""
        return word in self._words

    def rows_until(self, position: int) -> int:
        """Return how many rows stand at or before a position."""
        return bisect_left(self.positions, position + 1)

    # Vectors

    def set_vector(self, row: int, vector: Any, square: int) -> None:
        """Fill in the vector of a row, given as a numpy array of its whole components."""
        if self.unheld is None:
            self._make_room(row)
            self.vectors[row] = vector
        else:
            self.unheld[row] = vector
        self.squares[row] = square
        self.unembedded.discard(row)

    def _make_room(self, row: int) -> None:
        from numpy import float32, zeros

        if self.vectors is None or len(self.vectors) <= row:
            room = zeros((max(ROWS_MIN, row + row // 4, len(self.positions)), self.dimension), float32)
            if self.vectors is not None:
                room[: len(self.vectors)] = self.vectors
            self.vectors = room

    def let_engine_multiply(self) -> None:
        """Hold no vectors from now on but those that the engine does not: all of them, until `hold` says otherwise."""
        embedded = [row for row, square in enumerate(self.squares) if square]
        self.unheld = {row: self.vectors[row].copy() for row in embedded}
        self.vectors = None

    def hold(self, row: int, square: int) -> None:
        """Note that the engine holds the vector of a row."""
        assert self.unheld is not None, "the engine multiplies"
        self.unheld.pop(row, None)
        self.squares[row] = square
        self.unembedded.discard(row)

    def lose(self, row: int) -> None:
        """Note that the engine no longer holds the vector of a row: it has none until it is embedded again."""
        self.squares[row] = 0
        self.unembedded.add(row)

    def products(self, vector: Any, rows: int, held: Any) -> Any:
        """Return the dot products of a vector with the first rows, where any has one; else none.

        `held` are those with rows whose vectors the engine holds, by row, where it multiplies.
        """
        from numpy import float32, float64, fromiter, int64, stack

        wanted = vector.astype(float32)
        if self.unheld is None:
            return None if self.vectors is None else (self.vectors[:rows] @ wanted).astype(float64)
        products = held[:rows].copy()
        own = [row for row in self.unheld if row < rows]
        if own:
            products[fromiter(own, int64)] = stack([self.unheld[row] for row in own]) @ wanted
        return products
