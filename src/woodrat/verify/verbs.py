"""Verifying: no derived data is trusted, and everything is derived again from the log.

    file → log (rows, writes, tree) → checkpoints held elsewhere → receipts → derived data

All reads share one consistent view, and nothing is written to the ledger. The log is copied to a scratch database while
it is checked. If it is sound, everything is derived from it there, by the functions that a rebuild uses, and the rows
are compared table by table.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon.ids import Ref, TenantId
from woodrat.context import Context
from woodrat.engines import cancellation
from woodrat.engines.records import Mismatch, Receipt
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.view import View
from woodrat.errors import Corrupt, Fault, Refused, shown
from woodrat.ledger import collector, entry_index, receipts
from woodrat.ledger.comparison import TABLES, Comparison
from woodrat.ledger.find import entity_pages
from woodrat.ledger.moments import NO_READ, open_reader
from woodrat.ledger.plans import admit
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Writer
from woodrat.log import check as log_check
from woodrat.log.check import Damage, Held, Joined
from woodrat.log.entry import DIGEST_BYTES, NONCE_BYTES, request_commitment
from woodrat.proofs.verbs.signer import copied_name
from woodrat.records import replace
from woodrat.state import fingerprint
from woodrat.state.asof import AsOf
from woodrat.state.meaning import Meaning
from woodrat.state.observation import Observation
from woodrat.verify import index as verify_index
from woodrat.verify import reader as verify_reader
from woodrat.verify.reader import UNREADABLE
from woodrat.verify.report import Finding, OrderProof, Verified, finding

if TYPE_CHECKING:
    from woodrat.ledger.progress import Progress
    from woodrat.log.check import Row
    from woodrat.recall.embedders import Embedder

BATCH_MAX: Final = 200
"""Most entries in one shuffled write."""
FINDINGS_MAX: Final = 100
"""Most findings in the answer."""
MISSHOWN: Final = "the fields or the version in the view woodrat.state differ from the log's"
"""The fault if plain SQL shows something else than the state."""


def verify(
    context: Context,
    *,
    deep: bool = False,
    checkpoints: Iterable[Held] = (),
    signed: Iterable[Held] = (),
    remembered: Iterable[Held] = (),
    earlier: Collection[str] = (),
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Compute everything again from the log, and report mismatches. Nothing is written.

    `checkpoints` are external ones, `signed` is the last one of this signer, and `remembered` is the prefix that the
    log at this location must have, whatever its name; `earlier` are logs at this location in earlier epochs.
    """
    memory = _Memory(tuple(signed), tuple(remembered), frozenset(earlier))
    work = _Verification(context, deep, tuple(checkpoints), embedder, progress, memory)
    try:
        with context.engine.view(context.tenant) as view:
            work.all(view)
    except Corrupt as error:
        # the engine cannot continue reading earlier findings stay
        problem = str(error).split(". ")[0]
        if work.is_log_sound:
            work.note([Mismatch("index", error.details.get("position"), None, problem)])
        else:
            work.note([Mismatch("file", error.details.get("position"), None, problem, log=True)])
    return work.outcome()


class _Memory(NamedTuple):
    """The signing keys' memory of a log."""

    signed: tuple[Held, ...]
    """The last checkpoint signed for it."""
    remembered: tuple[Held, ...]
    """The prefix that the log at its location must have."""
    earlier: frozenset[str]
    """Names of logs that lay there in earlier epochs."""

    def behind(self, log: Joined, name: str | None) -> tuple[Held, ...]:
        """Return the memory of a log that is an older and shorter copy; `name` is the copied log."""
        is_copy = name != _last_name(log)
        lacking = tuple(
            held
            for held in (*self.signed, *self.remembered)
            if held.size > log.size or (is_copy and log.root_at(held.size) != held.root)
        )
        is_known = name in self.earlier or all(held.origin == name for held in lacking)
        return lacking if name is not None and is_known else ()


class _Verification:
    """One verification under way."""

    def __init__(
        self,
        context: Context,
        deep: bool,
        checkpoints: Sequence[Held],
        embedder: Embedder | None,
        progress: Progress | None,
        memory: _Memory,
    ) -> None:
        self._context, self._deep, self._checkpoints, self._embedder = context, deep, checkpoints, embedder
        self._memory = memory
        self._findings: dict[tuple[Any, ...], Finding] = {}
        self._checked: list[str] = []
        self._unchecked: set[str] = set()
        self._log: Joined | None = None
        self._root: bytes | None = None
        """The root of the fingerprint at the end of the log, from the log alone."""
        self._size = self._entities = 0
        self._steps = _Steps(progress)

    def all(self, view: View) -> None:
        """Check everything, from the ground up."""
        self._size = size = view.extent()
        self._steps.begin(view, size)
        wrong = view.structure()
        if not wrong:  # a damaged file's row counts are worthless
            wrong += verify_index.check_notes(view)
        self.note(wrong)
        self._checked.append("file")
        with closing(verify_reader.scratch_for(self._context, view, size)) as engine:
            log = self._check_log(view, partial(engine.load, self._context.tenant))
            signed, remembered = self._memory.signed, self._memory.remembered
            behind = self._memory.behind(log, copied_name(view)) if not log.damage else ()
            if behind:
                self.note([_behind(log, max(held.size for held in behind))])
                signed = tuple(held for held in signed if held not in behind)
                remembered = tuple(held for held in remembered if held not in behind)
            if self._checkpoints or self._memory.signed:
                self.note(_of_log(log_check.against(log, (*self._checkpoints, *signed))))
                self._checked.append("checkpoints")
            if self._memory.remembered:
                self.note(check_location(log, remembered))
                self._checked.append("location")
            self._log = log
            if not log.damage:
                self.note(check_receipts(view, log.size, log.absent))
                self._checked.append("receipts")
                self.note(check_clone(view, log))
            if not self._is_log_damaged:
                self._check_derived(view, log, replace(self._context, engine=engine))
        self._steps.end()

    @property
    def is_log_sound(self) -> bool:
        """Whether all of the log was checked without findings, so that derived data can be rebuilt."""
        return self._log is not None and not self._is_log_damaged

    @property
    def _is_log_damaged(self) -> bool:
        return any(found.log for found in self._findings.values())

    def note(self, found: Iterable[Mismatch]) -> None:
        """Add findings; equal ones count once."""
        for part, position, entity, problem, log in found:
            key = (not log, position is None, position or 0, part, str(entity), problem)
            self._findings.setdefault(key, finding(part, log, position, entity, problem))

    # The log

    def _check_log(self, view: View, load: Callable[[Sequence[Row]], object]) -> Joined:
        """Check the log, and copy its sound part."""
        known = (*self._checkpoints, *self._memory.signed, *self._memory.remembered)
        sizes = [held.size for held in known if held.size <= self._size]
        log, wrong = verify_reader.check_log(view, self._size, sizes, self._steps.of_log, load)
        self._checked.append("log")
        self.note(wrong)
        self.note(_of_log(log.damage))
        return log

    # What is derived

    def _check_derived(self, view: View, log: Joined, scratch: Context) -> None:
        """Derive everything again, and compare it with the ledger's data."""
        self._checked.append("state")
        with scratch.engine.view(scratch.tenant) as right:
            policies, lacking = verify_reader.stand_ins(right, scratch.policies)
        scratch = replace(scratch, policies=policies)
        self._unchecked |= {f"{type}: {problem}" for type, problem in lacking.items()}
        root = verify_reader.derive(scratch, self._steps.of_state)
        followed = verify_index.Followed(view, scratch, self._steps.of_rows)
        with scratch.engine.view(scratch.tenant) as right:
            self.note(verify_reader.repeated(right))
        if self._is_log_damaged:
            return
        if not lacking:
            self._root = root
            followed.states(deep=self._deep)
            if self._deep:
                followed.passages(self._embedder)
                self._checked += ["search", "indexes", "vectors"]
            self._unchecked |= followed.unchecked
            self.note(followed.wrong)
        with scratch.engine.view(scratch.tenant) as right:
            self._compare(view, right, Comparison(view, right, policies), followed, lacking)
        is_tree_kept = not any(found.damage == "tree" for found in self._findings.values())
        if is_tree_kept and view.head().frontier != log.frontier:
            self.note([Mismatch("tree", None, None, "the end of the tree does not match the leaves")])

    def _compare(
        self, view: View, right: View, comparison: Comparison, followed: verify_index.Followed, lacking: Collection[str]
    ) -> None:
        self._entities = sum(map(len, entity_pages(right, None, self._size - 1)))
        for table in TABLES:
            comparison.table(table)
            self._steps.of_rows()
        comparison.states(lacking)
        if not lacking:
            refs = (Ref(*row[:2]) for row in right.derived("state"))
            for ref in view.misshown(verify_reader.shown_folds(right, comparison.policies, refs)):
                self.note([Mismatch("state", None, ref, MISSHOWN)])
            verify_index.compare(view, right, comparison, followed)
            self.note(islice(verify_index.fingerprint_faults(view, right), FINDINGS_MAX))
        self.note(comparison.wrong)

    def outcome(self) -> Verified:
        """Return the scope and the findings."""
        ordered = [self._findings[key] for key in sorted(self._findings, key=lambda key: key[:5])]
        log, root = self._log, None if self._is_log_damaged or self._unchecked else self._root
        return Verified(
            position=self._size - 1,
            entries=self._size,
            observations=log.observations if log else 0,
            entities=self._entities,
            logs=tuple(log.names) if log else (),
            root=log.frontier.root().hex() if log else "",
            fingerprint=fingerprint.text(root) if root is not None else None,
            checked=tuple(self._checked),
            unchecked=tuple(sorted(self._unchecked)),
            covered=max(
                (held.size for held in (*self._checkpoints, *self._memory.signed) if held.size <= self._size), default=0
            ),
            damage=tuple(ordered[:FINDINGS_MAX]),
        )


class _Steps:
    """The progress of the work, in entries: deriving data from an entry takes several times as long as checking it."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._view: View | None = None
        self._size = self._log = self._state = 0

    def begin(self, view: View, size: int) -> None:
        self._view, self._size = view, size
        self._tell()

    def of_log(self, entries: int) -> None:
        self._log += entries
        self._tell()

    def of_state(self, done: int, _: int) -> None:
        self._state = done
        self._tell()

    def of_rows(self) -> None:
        """Continue with work that is not measured in entries."""
        self._tell()

    def _tell(self) -> None:
        cancellation.check()
        if self._view is not None:
            self._view.meta("")  # a server ends idle transactions
        done = (self._log + 3 * self._state) // 5
        if self._progress is not None and done < self._size:
            self._progress(done, self._size)

    def end(self) -> None:
        if self._progress is not None:
            self._progress(self._size, self._size)


def _of_log(damage: Iterable[Damage]) -> list[Mismatch]:
    return [Mismatch(found.damage, found.position, None, found.problem, log=True) for found in damage]


def check_clone(view: View, log: Joined) -> list[Mismatch]:
    """Compare the recorded clone position of a log with its names: later entries begin a new one."""
    last, begins = view.cloned(), max(log.names.values(), default=0)
    if last >= log.size - 1 or begins == last + 1:
        return []
    if last < 0:
        problem = "the log has a new name from here on, but has no recorded clone position before"
    else:
        problem = f"the log is recorded as a clone up to {last}, but has its last name from {begins} on"
    return [Mismatch("clone", begins, None, problem, log=True)]


def _last_name(log: Joined) -> str | None:
    return max(log.names, key=log.names.__getitem__, default=None)


def _behind(log: Joined, size: int) -> Mismatch:
    """Report that a log is an older copy; the log itself is valid."""
    problem = (
        f"this is an older copy than the signing keys remember, such as a restored backup: they remember {size} "
        f"entries, and the log has {log.size}"
    )
    if size > log.size:
        problem += f"; if no backup was restored, its last {size - log.size} were cut off"
    return Mismatch("behind", log.size, None, problem)


def check_location(log: Joined, remembered: Iterable[Held]) -> list[Mismatch]:
    """Compare a log with the memory of its location; it may continue under another name, but not otherwise change."""
    found: list[Mismatch] = []
    name = _last_name(log)
    for known in remembered:
        if known.size > log.size:
            there = f"the log has {log.size}"
        elif log.root_at(known.size) != known.root:
            there = "the log begins with others"
        else:
            continue
        part = "switched" if name != known.origin else "truncated" if known.size > log.size else "forked"
        problem = (
            f"the keys folder remembers {known.size} entries of {known.origin} in this location, root "
            f"{known.root.hex()}, and {there}{'' if name is None else f', as {name}'}"
        )
        found.append(Mismatch(part, min(known.size, log.size) if part == "truncated" else 0, None, problem, log=True))
    return found


def _first_within(ranges: Sequence[tuple[int, int]], first: int, last: int) -> int | None:
    """Return the first position of sorted ranges that lies between two others, both included."""
    at = bisect_left(ranges, first, key=lambda pair: pair[1])
    if at == len(ranges) or ranges[at][0] > last:
        return None
    return max(first, ranges[at][0])


def _is_committed(receipt: Receipt, key: str, request: bytes | None) -> bool:
    """Return whether a write committed to a receipt: to its request nonce, key and request digest."""
    nonce, asked = receipt.nonce, receipt.request
    if type(nonce) is not bytes or len(nonce) != NONCE_BYTES or type(asked) is not bytes or len(asked) != DIGEST_BYTES:
        return False
    return request_commitment(nonce, key, asked) == request


def check_receipts(view: View, size: int, absent: Sequence[tuple[int, int]] = ()) -> list[Mismatch]:
    """Compare the receipts of idempotency keys with the writes that committed to them.

    A write with any `absent` entry has no receipt: the request nonce is removed with the first erased entry.
    """
    found: list[Mismatch] = []
    for agent, key, receipt in view.receipts():
        who = f"the receipt of {agent} for key {key!r}"
        try:
            first, last = receipts.positions(receipt)
            whole = 0 <= first <= last
        except UNREADABLE:
            found.append(Mismatch("receipt", None, None, f"{who} cannot be read", log=True))
            continue
        if first >= size:
            problem = f"{who} is of a write at {first}, and the log ends before"
            found.append(Mismatch("truncated", size, None, problem, log=True))
            continue
        row = next(view.rows(first - 1, first), None)
        if row is None or row.length != last - first + 1 or not whole:
            found.append(Mismatch("receipt", first, None, f"{who} is not of a write at {first}", log=True))
        elif not _is_committed(receipt, key, row.request):
            problem = f"{who} does not match the write's commitment"
            found.append(Mismatch("receipt", first, None, problem, log=True))
        elif (lost := _first_within(absent, first, last)) is not None:
            problem = f"{who} is still there, and the entry at {lost} of its write was erased"
            found.append(Mismatch("receipt", lost, None, problem, log=True))
    return found


# Order: the same set, fed in many orders to fresh ledgers, ends in one fingerprint


def prove_order(context: Context, shuffles: object, progress: Progress | None = None) -> OrderProof:
    """Write all observations and schemas in `shuffles` orders, each in random batches, with repetitions."""
    if type(shuffles) is not int or shuffles < 1:
        raise Refused([Fault("shuffles", f"got {shown(shuffles)}", "Send a number above 0.")], outcome=NO_READ)
    with open_reader(context) as reader:
        position = reader.asof.position
        refs = reader.view.entities(None, position)
        meanings: list[Meaning] = [stored.observation for stored in reader.stored(refs)]
        for entity_type in entry_index.schema_types(reader.view, position):
            meanings += entry_index.schemas(reader.view, entity_type, position)
        expected = reader.fingerprint().root()
    differing: list[int] = []
    with collector.held_off_long() as part_is_done:
        for seed in range(shuffles):
            chance = random.Random(seed)
            order = [*meanings, *chance.sample(list(meanings), min(len(meanings), 10))]
            chance.shuffle(order)
            engine, tenant = InMemoryEngine(), TenantId("order")
            writer = Writer(Context(engine, tenant, context.policies, context.clock, "prove-order"))
            start = 0
            while start < len(order):
                cancellation.check()
                batch = order[start : start + chance.randint(1, BATCH_MAX)]
                start += len(batch)
                writer.write("admit", {}, lambda draft, batch=batch: admit(draft, batch))  # type: ignore[misc]
                part_is_done()
            with engine.view(tenant) as view:
                root = Reader(view, AsOf(view.head().position), context.policies).fingerprint().root()
            engine.close()
            if root != expected:
                differing.append(seed)
            if progress is not None:
                progress(seed + 1, shuffles)
    count = sum(isinstance(meaning, Observation) for meaning in meanings)
    return OrderProof(count, shuffles, fingerprint.text(expected), tuple(differing))
