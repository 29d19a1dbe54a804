"""Verifying: nothing derived is trusted, and everything is worked out again from the log.

    file → log (rows, writes, tree) → checkpoints held elsewhere → receipts → derived data

All of it is one consistent view, and nothing is written. What is derived is only compared with a log that is sound.
On a long log several processes share the work: each checks parts of the log and some of the entities, in a view of its
own. The log only grows, so all of them see the same beginning of it; should one find derived data that does not agree,
everything derived is compared again in the one view of this process, and only that counts.
"""

from __future__ import annotations

import os
import random
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon.digest import digest
from woodrat.canon.ids import TenantId
from woodrat.context import Context
from woodrat.engines import cancellation
from woodrat.engines.port import Audit, Mismatch, Receipt, View
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Corrupt, Fault, Refused, shown
from woodrat.ledger import collector, entry_index, receipts
from woodrat.ledger.moments import NO_READ, open_reader
from woodrat.ledger.plans import admit
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Writer
from woodrat.log import check as log_check
from woodrat.log.check import PART, Damage, Held, Joined
from woodrat.log.entry import DIGEST_BYTES, NONCE_BYTES, request_commitment
from woodrat.merge import BUILTIN
from woodrat.proofs.verbs.signer import copied_name
from woodrat.state import fingerprint
from woodrat.state.asof import AsOf
from woodrat.state.meaning import Meaning
from woodrat.state.observation import Observation
from woodrat.verify import index as verify_index
from woodrat.verify import reader as verify_refold
from woodrat.verify.reader import UNREADABLE, Refolded, Refolder, refold, stretch
from woodrat.verify.report import Finding, OrderProof, Verified, finding

if TYPE_CHECKING:
    from woodrat.ledger.progress import Progress
    from woodrat.recall.embedders import Embedder
    from woodrat.verify.workers import Crew

JOBS_MAX: Final = 4
"""How many processes share the work unless another number is asked for."""
ALONE_BELOW: Final = 20_000
"""A log with fewer entries is checked by one process: starting another takes longer than it saves."""
STRETCHES: Final = 4
"""In how many stretches of the log each process gets its part."""
SLICES: Final = 16
"""How many slices of the entities each process gets, so that none waits long for another."""
BATCH_MAX: Final = 200
"""Most entries that one shuffled write takes."""
FINDINGS_MAX: Final = 100
"""How many findings are given."""


def verify(
    context: Context,
    *,
    deep: bool = False,
    checkpoints: Iterable[Held] = (),
    signed: Iterable[Held] = (),
    remembered: Iterable[Held] = (),
    earlier: Collection[str] = (),
    jobs: int | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Work everything out again from the log, and say what does not agree. Nothing is written.

    `checkpoints` are held elsewhere, `signed` is the last one of this signer, and `remembered` is what the log in this
    location must begin with, whatever name it goes by; `earlier` are logs that lay here in earlier epochs.
    """
    memory = _Memory(tuple(signed), tuple(remembered), frozenset(earlier))
    work = _Verification(context, deep, tuple(checkpoints), embedder, progress, memory)
    try:
        with context.engine.view(context.tenant) as view:
            work.all(view, jobs)
    except Corrupt as error:
        # The engine cannot go on reading. What was found until then stands.
        problem = str(error).split(". ")[0]
        if work.is_log_sound:
            work.note([Mismatch("index", error.details.get("position"), None, problem)])
        else:
            work.note([Mismatch("file", error.details.get("position"), None, problem, log=True)])
    return work.outcome()


class _Memory(NamedTuple):
    """What the signing keys remember of a log."""

    signed: tuple[Held, ...]
    """The last checkpoint signed for it."""
    remembered: tuple[Held, ...]
    """What the log in its location must begin with."""
    earlier: frozenset[str]
    """Names of logs that lay there in earlier epochs."""

    def behind(self, log: Joined, name: str | None) -> tuple[Held, ...]:
        """Return what is remembered of a log that is an older copy and holds less; `name` is what was copied."""
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
        self._engine, self._tenant, self._policies = context.engine, context.tenant, context.policies
        self._deep, self._checkpoints, self._embedder = deep, checkpoints, embedder
        self._memory = memory
        self._findings: dict[tuple[Any, ...], Finding] = {}
        self._checked: list[str] = []
        self._unchecked: set[str] = set()
        self._log: Joined | None = None
        self._folded: Refolded | None = None
        self._size = 0
        self._steps = _Steps(progress)

    def all(self, view: View, jobs: int | None) -> None:
        """Check everything, from the ground up."""
        audit = view.audit()
        self._size = audit.size
        with self._crew(jobs) as crew:
            self._steps.begin(self._size)
            log, seen = self._check_log(view, audit, crew)
            self._checked.append("log")
            self.note(_of_log(log.damage))
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
            if not any(found.log for found in self._findings.values()):
                self._check_derived(view, audit, log, seen, crew)
        self._steps.end()

    @property
    def is_log_sound(self) -> bool:
        """Whether all of the log was checked and nothing was found in it, so that the rest can be made again."""
        return self._log is not None and not any(found.log for found in self._findings.values())

    def _crew(self, jobs: int | None) -> Crew:
        from woodrat.verify.workers import Crew

        if jobs is None:
            jobs = min(JOBS_MAX, os.cpu_count() or 1) if self._size >= ALONE_BELOW else 1
        opener = self._engine.elsewhere()
        own = any(BUILTIN.get(name) is not policy for name, policy in self._policies.items())
        # A policy of the user's own is code that another process may not have.
        return Crew(opener, self._tenant, 1 if opener is None or own else jobs)

    def _take(self, audit: Audit) -> None:
        self.note(audit.wrong)
        audit.wrong = []

    def note(self, found: Iterable[Mismatch]) -> None:
        """Take in what was found; the same thing counts once."""
        for part, position, entity, problem, log in found:
            key = (not log, position is None, position or 0, part, str(entity), problem)
            self._findings.setdefault(key, finding(part, log, position, entity, problem))

    # The log

    def _check_log(self, view: View, audit: Audit, crew: Crew) -> tuple[Joined, dict[str, int]]:
        """Check the file and the log, alone or with others; return the log, and how many rows of each index were found.

        The file is checked by this process, and meanwhile the others, if there are any, begin with the log.
        """
        size = self._size
        known = (*self._checkpoints, *self._memory.signed, *self._memory.remembered)
        sizes = [held.size for held in known if held.size <= size]
        parts = -(-size // PART)
        step = max(1, -(-parts // (crew.jobs * STRETCHES)) if crew.jobs > 1 else parts) * PART
        tasks = [(start, min(start + step, size), size, sizes) for start in range(0, max(size, 1), step)]
        work = crew.begin("stretch", tasks)
        audit.structure()
        if not audit.wrong:  # what a damaged file says of its rows is worth nothing
            verify_index.check_notes(view, audit)
        self._checked.append("file")
        self._take(audit)
        tell = self._steps.of_log
        found = work.finish(lambda start, end, size, sizes: stretch(view, audit, start, end, size, sizes, tell), tell)
        seen: dict[str, int] = {}
        for each in found:
            self.note(each.wrong)
            for name, count in each.seen.items():
                seen[name] = seen.get(name, 0) + count
        log = log_check.joined(each.checked for each in found)
        for height, roots in enumerate(log.upper[1:], log_check.PART_HEIGHT + 1):
            audit.subtrees(height, 0, roots)
        self._take(audit)
        sound = not log.damage and not any(found.damage == "tree" for found in self._findings.values())
        if sound and view.head().frontier != log.frontier:
            self.note([Mismatch("tree", None, None, "the end of the tree is not what the leaves give")])
        for name, count in audit.seen.items():
            seen[name] = seen.get(name, 0) + count
        audit.seen = {}
        return log, seen

    # What is derived

    def _check_derived(self, view: View, audit: Audit, log: Joined, seen: dict[str, int], crew: Crew) -> None:
        self._checked.append("state")
        slices = audit.slices(crew.jobs * SLICES)
        if crew.jobs > 1:
            tell = self._steps.of_state

            def own(within: tuple[int, int], size: int, deep: bool) -> Refolded:
                return refold(view, view.audit(size), self._policies, within, deep, tell)

            tasks = [(within, log.size, self._deep) for within in slices]
            folded = verify_refold.total(crew.begin("refold", tasks).finish(own, tell))
            if not self._disagreements(view, view.audit(), log, folded, seen):
                self._folded = folded
                return
            self._steps.again()
        # In one view nothing can have changed between one look and the next.
        refolder = Refolder(view, audit, self._policies, deep=self._deep)
        for within in slices:
            refolder.fold(within, self._steps.of_state)
        self._folded, audit.seen = refolder.found, {}
        self.note(self._disagreements(view, audit, log, refolder.found, seen))

    def _disagreements(
        self, view: View, audit: Audit, log: Joined, folded: Refolded, seen: Mapping[str, int]
    ) -> list[Mismatch]:
        """Return what does not agree with the log, all entities together."""
        found = list(folded.wrong)
        self._unchecked |= folded.unchecked
        if folded.seen.get("said", 0) < log.observations and not any(one.part == "index" for one in found):
            found.append(_unnoted(view, audit.unnoted()))
        if folded.unchecked:
            return found
        found += islice(verify_index.fingerprint_faults(view, audit, folded.then, log.size), FINDINGS_MAX)
        verify_index.pass_over_backlog(view, audit)
        if self._deep:
            self._unchecked |= verify_index.compare(view, audit, self._embedder, self._policies)
            self._checked += ["search", "indexes", "vectors"] if "search" not in self._checked else []
            found += audit.wrong
            audit.wrong = []
        else:
            verify_index.pass_over(audit)
        every = dict(seen)
        for counts in (folded.seen, audit.seen):
            for name, count in counts.items():
                every[name] = every.get(name, 0) + count
        audit.surplus(every)
        return found + audit.wrong

    def outcome(self) -> Verified:
        """Return what was looked at and found."""
        ordered = [self._findings[key] for key in sorted(self._findings, key=lambda key: key[:5])]
        log, folded = self._log, self._folded
        sound = not any(found.log for found in ordered)
        root = verify_index.root_of(folded.now) if folded is not None and sound and not self._unchecked else None
        return Verified(
            position=self._size - 1,
            entries=self._size,
            observations=log.observations if log else 0,
            entities=folded.entities if folded else 0,
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
    """How far the work is, as entries: folding an entry takes about four times as long as checking it."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._size = self._log = self._state = 0

    def begin(self, size: int) -> None:
        self._size = size
        self._tell()

    def of_log(self, entries: int) -> None:
        self._log += entries
        self._tell()

    def of_state(self, observations: int) -> None:
        self._state += observations
        self._tell()

    def again(self) -> None:
        """What is derived is compared once more."""
        self._state = 0

    def _tell(self) -> None:
        cancellation.check()
        done = (self._log + 4 * self._state) // 5
        if self._progress is not None and done < self._size:
            self._progress(done, self._size)

    def end(self) -> None:
        if self._progress is not None:
            self._progress(self._size, self._size)


def _unnoted(view: View, position: int | None) -> Mismatch:
    """Return what is wrong with an observation that no index knows: it may be one that the log holds already."""
    row = None if position is None else next(view.rows(position - 1, position), None)
    if row is not None and row.body is not None:
        before = view.observation(digest("observation", row.body), row.position - 1)
        if before is not None:
            problem = f"the observation at {before.position} stands in the log again"
            return Mismatch("repeated", position, None, problem, log=True)
    return Mismatch("index", position, None, "no history of an entity leads to the observation")


def _of_log(damage: Iterable[Damage]) -> list[Mismatch]:
    return [Mismatch(found.damage, found.position, None, found.problem, log=True) for found in damage]


def check_clone(view: View, log: Joined) -> list[Mismatch]:
    """Compare how far a log is said to have been taken over with its names: what comes after begins a new one."""
    last, begins = view.cloned(), max(log.names.values(), default=0)
    if last >= log.size - 1 or begins == last + 1:
        return []
    if last < 0:
        problem = "the log has a new name from here on, and is not said to have been taken over before"
    else:
        problem = f"the log is said to have been taken over through {last}, and has its last name from {begins} on"
    return [Mismatch("clone", begins, None, problem, log=True)]


def _last_name(log: Joined) -> str | None:
    return max(log.names, key=log.names.__getitem__, default=None)


def _behind(log: Joined, size: int) -> Mismatch:
    """Say that a log is an older copy; nothing in it is wrong."""
    problem = (
        f"this is an older copy than the signing keys remember, such as a restored backup: they remember {size} "
        f"entries, and the log has {log.size}"
    )
    if size > log.size:
        problem += f"; if no backup was restored, its last {size - log.size} were cut off"
    return Mismatch("behind", log.size, None, problem)


def check_location(log: Joined, remembered: Iterable[Held]) -> list[Mismatch]:
    """Compare a log with what is remembered of its location; it may go on under another name, and not otherwise."""
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
    """Compare what idempotency keys were used for with the writes that committed to it.

    A write of which any entry is `absent` has no receipt: the request nonce goes with the first that is erased.
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
            problem = f"{who} is not what the write committed to"
            found.append(Mismatch("receipt", first, None, problem, log=True))
        elif (lost := _first_within(absent, first, last)) is not None:
            problem = f"{who} is still there, and the entry at {lost} of its write was erased"
            found.append(Mismatch("receipt", lost, None, problem, log=True))
    return found


# Order: the same set, fed in many orders to fresh ledgers, ends in one fingerprint


def prove_order(context: Context, shuffles: object, progress: Progress | None = None) -> OrderProof:
    """Feed all observations and schemas in `shuffles` orders, each in batches of its own, with repetitions."""
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
