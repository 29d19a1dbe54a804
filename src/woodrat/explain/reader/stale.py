"""Which decisions are stale: those whose evidence is believed otherwise now, made again on what is believed now."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from woodrat.canon import form
from woodrat.engines.records import BEFORE_ALL
from woodrat.explain.references import evidence, fact_origins, named_observations, read_ref
from woodrat.explain.remake import SAME, Remade, from_models, is_whole, rules_key
from woodrat.explain.stale import Belief, Stale
from woodrat.ledger import entry_index
from woodrat.ledger.pages import Page, PageRequest
from woodrat.ledger.read import Reader
from woodrat.merge import blame, fold
from woodrat.records import dataclass
from woodrat.runs import steps
from woodrat.runs.evidence import LaterChange
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Read
from woodrat.runs.values import REDACTED
from woodrat.state.asof import AsOf
from woodrat.state.fact import Fact
from woodrat.state.observation import DELETE, RETRACT, Observation
from woodrat.state.run_owner import is_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.explain.remake import DecisionNow
    from woodrat.merge.rules import Rules
    from woodrat.merge.snapshot import Snapshot
    from woodrat.runs.summary import RunSummary

REMEMBERED_MAX: Final = 4_096
"""How many answers of a kind are remembered while decisions are compared."""

FEW: Final = 64
"""Up to how many observations of an entity are read to see whether one is among them."""

_KIND: Final = "run.decided"
_WINDOW, _WINDOW_MAX = 1_024, 65_536

K = TypeVar("K")
V = TypeVar("V")


def stale(tracer: Tracer, request: PageRequest, *, same: bool) -> Page[Stale]:
    """Return decisions whose evidence is believed otherwise now, the latest in the log first.

    Those that would come out the same are left out unless asked for. Decisions whose evidence nothing touched since are
    not looked at; with a valid time, or where the index has far to go, every decision is.
    """
    (before,) = request.place_of(int) or (tracer.through + 1,)
    beliefs = Beliefs(tracer)
    decisions: list[Stale] = []
    last = BEFORE_ALL
    positions = _touched(tracer, before)
    while some := list(islice(positions, request.limit + 1)):
        bodies = tracer.view.bodies(some)
        recorded = (recorded_decision(position, *bodies[position]) for position in some if position in bodies)
        found = [made for made in recorded if made is not None]
        beliefs.gather(found)
        for made in found:
            comparison = compare(beliefs, made)
            if comparison is None or (comparison.now.outcome == SAME and not same):
                continue
            if len(decisions) == request.limit:
                return Page(tuple(decisions), request.cursor_at([last]), request.position)
            decisions.append(comparison.stale(beliefs))
            last = made.position
    return Page(tuple(decisions), None, request.position)


def _touched(tracer: Tracer, before: int) -> Iterator[int]:
    """Yield the decisions before a position whose evidence may be believed otherwise now, the latest first."""
    if tracer.reader.asof.effective is not None:
        return _decided(tracer, before)
    return tracer.touched(before)


def _decided(tracer: Tracer, before: int) -> Iterator[int]:
    """Yield the decisions before a position, the latest first, window by window."""
    high, window = min(before - 1, tracer.through), _WINDOW
    while high >= 0:
        low = max(-1, high - window)
        yield from reversed([entry.position for entry in tracer.view.entries(low, high, {"run.decided"})])
        high, window = low, min(window * 2, _WINDOW_MAX)


class RecordedDecision:
    """A decision as it was recorded."""

    __slots__ = ("body", "decision", "position", "read", "run")

    def __init__(self, position: int, run: str, body: dict[str, Any]) -> None:
        self.position = position
        """Where it stands."""
        self.run = run
        """The run it was made in."""
        self.body = body
        """The body of its entry."""
        self.decision = steps.decision_of(body, position)
        """What was decided."""
        self.read = [
            (key, origin, ref)
            for key, origin in fact_origins(self.decision).items()
            if (ref := read_ref(origin)) is not None
        ]
        """The facts that were read: name, where it came from, and of which entity."""


def recorded_decision(position: int, kind: str, data: bytes) -> RecordedDecision | None:
    """Return the decision that an entry records; none where its body is of another shape."""
    body: Any = form.decode(data) if kind == _KIND else None
    run = body.get("run") if isinstance(body, dict) else None
    return RecordedDecision(position, run, body) if isinstance(run, str) else None


class BeliefDifference(NamedTuple):
    """A fact that a decision was made on and that is believed otherwise, or for other reasons, now."""

    key: str
    """What the decision calls it."""
    ref: Ref
    """The entity it was read from."""
    field: str
    """The field."""
    effective: str | None
    """The effective time it was read by."""
    was: tuple[str, ...]
    """The observations behind it then."""
    before: Json
    """What was believed."""
    fact: Fact
    """What is believed now."""


@dataclass(frozen=True, slots=True)
class StaleComparison:
    """A decision whose evidence is believed otherwise at a moment."""

    made: RecordedDecision
    """The decision."""
    record: RunRecord | RunSummary
    """Its run."""
    differences: tuple[BeliefDifference, ...]
    """What is believed otherwise, of what it looked at."""
    now: DecisionNow
    """What it would come to."""

    def stale(self, beliefs: Beliefs) -> Stale:
        """Return it with both beliefs side by side, and why the earlier one no longer holds."""
        record, made = self.record, self.made
        pairs = [(each, beliefs.spoken(each.ref, each.effective)) for each in self.differences]

        def work_out(name: str) -> dict[str, Any]:
            if name == "decision":
                return {name: made.decision}
            return {"beliefs": tuple(beliefs.belief(*pair) for pair in pairs)}

        return Stale.deferred(
            work_out,
            run=made.run,
            agent=record.agent,
            query=record.query,
            subject=record.subject,
            answer=record.answer,
            now=self.now,
        )


class Spoken(NamedTuple):
    """What was said of an entity and of those it is joined with, and what is believed of it."""

    members: tuple[Ref, ...]
    """All of them."""
    observations: list[Observation]
    """What was said, by position."""
    rules: Rules
    """How it is merged."""
    snapshot: Snapshot | None
    """What is believed."""


def compare(beliefs: Beliefs, made: RecordedDecision) -> StaleComparison | None:
    """Compare what a decision looked at with what is believed; none when it is believed as it was."""
    looked, values = evidence(made.decision), made.decision.known_facts
    record: RunRecord | RunSummary | None = None
    now: dict[str, Fact] = {}
    differences: list[BeliefDifference] = []
    for key, origin, ref in made.read:
        before = values.get(key)
        if not _spoken_since(beliefs, ref, origin, before):
            continue
        if record is None:
            record = beliefs.run(made.run)
            if not is_part(_KIND, made.body, record.agent):
                return None
        read = read_by(record, origin) if isinstance(record, RunRecord) else None
        if read is not None and not read.present:
            continue  # it asked for a moment, and would be told the same
        was, field = named_observations(origin), str(origin["field"])
        effective = None if read is None else read.effective
        fact = beliefs.fact(ref, field, effective)
        same_origin = set(was) == set(named_observations(fact.origin))
        if same_origin and (
            not is_whole(before) or ((key in values) is not fact.missing and form.same(before, fact.value))
        ):
            continue  # left as it is on record: a value that was hidden or cut stays so
        if was and not beliefs.knows(was, ref):
            continue  # it was read from another log, and what that holds now cannot be told
        now[key] = fact
        if key in looked:
            differences.append(BeliefDifference(key, ref, field, effective, was, before, fact))
    if record is None or not differences:
        return None
    remade = beliefs.remade(made).on(now, from_models(made.decision), values)
    return StaleComparison(made, record, tuple(differences), remade)


def read_by(record: RunRecord, origin: Mapping[str, Any]) -> Read | None:
    """Return the read that a fact came from: of several at one position one that saw the same, best of the present."""
    entity, position, named = origin.get("entity"), origin.get("position"), set(named_observations(origin))
    reads = [read for read in record.reads if read.entity == entity and read.as_of == position]
    field = str(origin["field"])
    return max(reads, key=lambda read: (set(read.behind(field)) == named, read.present), default=None)


def _spoken_since(beliefs: Beliefs, ref: Ref, origin: Mapping[str, Any], before: Json) -> bool:
    """Return whether belief about a fact may be another than when it was read."""
    position = origin.get("position")
    if type(position) is not int or beliefs.version(ref) > position:
        return True
    # Nothing was said of it since; its schema may have become another.
    fact = beliefs.fact(ref, str(origin["field"]), None)
    return set(fact.origin["observations"]) != set(named_observations(origin)) or not form.same(before, fact.value)


def _fact(tracer: Tracer, ref: Ref, field: str, effective: str | None) -> Fact:
    snapshot = tracer.snapshot(ref, effective)
    if snapshot is None:
        return Fact(field, None, {"kind": "read", "entity": str(ref), "field": field, "observations": []}, missing=True)
    return snapshot.fact(field)


class Beliefs:
    """What is believed at one moment, for many decisions: what several of them ask for is worked out once."""

    def __init__(self, tracer: Tracer, later: Beliefs | None = None) -> None:
        self.tracer = tracer
        self._later = later
        self._facts: dict[tuple[Ref, str, str | None], Fact] = {}
        self._reasons: dict[tuple[Ref, str, str | None, tuple[str, ...]], tuple[str, str, Observation | None]] = {}
        self._known: dict[str, bool] = {}
        self._versions: dict[Ref, int] = {}
        self._spoken: dict[tuple[Ref, str | None], Spoken] = {}
        self._plain: dict[str, RunSummary] = {}
        self._remade: dict[bytes, Remade] = {}
        self.last_run: tuple[str, int, RunRecord] | None = None
        """The run asked about last, its last position, and its record."""

    def gather(self, decisions: Iterable[RecordedDecision]) -> None:
        """Look up what decisions that are compared next ask for: what is believed, and what indexes say of their runs.

        Runs that have to be read are left out.
        """
        tracer = self.tracer
        runs: set[str] = set()
        refs: dict[Ref, None] = {}
        for made in decisions:
            runs.add(made.run)
            for _, _, ref in made.read:
                if ref not in self._versions:
                    refs[ref] = None
        tracer.reader.gather(refs)
        rows = tracer.run_reader.rows(runs)
        plain = {id: row.summary for id, row in rows.items() if row.plain and not row.summary.cut}
        self._plain = {id: plain[id] for id in plain.keys() - tracer.with_moments(plain)}

    def remade(self, made: RecordedDecision) -> Remade:
        """Return what makes a decision again; those by the same rules share it."""
        key = rules_key(made.body)
        found = self._remade.get(key)
        if found is None:
            found = _bounded(self._remade)[key] = Remade(made.decision)
        return found

    def run(self, id: str) -> RunRecord | RunSummary:
        """Return the record of a run; that of the later moment serves where nothing was added to it since."""
        if (plain := self._plain.get(id)) is not None:
            return plain
        for run in (self.last_run, None if self._later is None else self._later.last_run):
            if run is not None and run[0] == id and run[1] <= self.tracer.through:
                return run[2]
        entries = entry_index.run_entries(self.tracer.view, id, self.tracer.through)
        record = self.tracer.run_reader.bare(id, entries)
        self.last_run = (id, entries[-1].position if entries else BEFORE_ALL, record)
        return record

    def version(self, ref: Ref) -> int:
        """Return the position of the last entry that touched an entity."""
        found = self._versions.get(ref)
        if found is None:
            found = _bounded(self._versions)[ref] = self.tracer.reader.version(ref)
        return found

    def knows(self, observations: Iterable[str], ref: Ref) -> bool:
        """Return whether the log holds any of some observations, which were read from an entity."""
        for id in observations:
            known = self._known.get(id)
            if known is None and self.tracer.reader.state(ref).observations <= FEW:
                # They are shown with the decision, and mostly tell; few are looked up one by one then.
                _bounded(self._known).update((said.id, True) for said in self.spoken(ref, None).observations)
                known = self._known.get(id)
            if known is None:
                known = _bounded(self._known)[id] = self.tracer.observation(id) is not None
            if known:
                return True
        return False

    def fact(self, ref: Ref, field: str, effective: str | None) -> Fact:
        """Return what is believed of a field."""
        fact = self._facts.get((ref, field, effective))
        if fact is None:
            fact = _bounded(self._facts)[ref, field, effective] = _fact(self.tracer, ref, field, effective)
        return fact

    def spoken(self, ref: Ref, effective: str | None) -> Spoken:
        """Return what was said of an entity."""
        found = self._spoken.get((ref, effective))
        if found is None:
            found = _bounded(self._spoken)[ref, effective] = _spoken(self.tracer, ref, effective)
        return found

    def belief(self, difference: BeliefDifference, spoken: Spoken) -> Belief:
        """Return both beliefs about a fact, and what became of the earlier one; it asks no engine."""
        key, ref, field, effective, was, before, fact = difference
        reasons = self._reasons.get((ref, field, effective, was))
        if reasons is None:
            change, reason = _change(spoken, field, was, fact)
            reasons = (change, reason, _cause(spoken, field, was, change))
            _bounded(self._reasons)[ref, field, effective, was] = reasons
        change, reason, cause = reasons
        return Belief(
            key=key,
            entity=str(ref),
            field=field,
            before=before,
            now=REDACTED if before == REDACTED else fact.value,
            missing=fact.missing,
            observations=was,
            observations_now=named_observations(fact.origin),
            change=change,
            reason=reason,
            changed_by=None if cause is None else cause.agent,
            because=None if cause is None else steps.text(cause.optional.get("reason")),
        )


def _bounded(memory: dict[K, V]) -> dict[K, V]:
    """Return what is remembered, to be added to; all of it is forgotten when it is too much."""
    if len(memory) >= REMEMBERED_MAX:
        memory.clear()
    return memory


def later_change(tracer: Tracer, origin: Mapping[str, Any]) -> LaterChange | None:
    """Return what became of a value that was read; none where it is still believed, or nobody here can tell."""
    ref, was = read_ref(origin), named_observations(origin)
    if ref is None or (was and all(tracer.observation(id) is None for id in was)):
        return None
    field = str(origin["field"])
    fact = _fact(tracer, ref, field, None)
    if set(named_observations(fact.origin)) == set(was):
        return None
    spoken = _spoken(tracer, ref, None)
    change, _ = _change(spoken, field, was, fact)
    cause = _cause(spoken, field, was, change)
    return LaterChange(
        change=change,
        now=fact.value,
        observation=None if cause is None else cause.id,
        agent=None if cause is None else cause.agent,
        observed_at=None if cause is None else cause.observed_at,
        because=None if cause is None else steps.text(cause.optional.get("reason")),
    )


def was_believed(tracer: Tracer, origin: Mapping[str, Any]) -> bool:
    """Return whether the log shows a field that was read, at the position it was read at, by the same observations."""
    ref, position = read_ref(origin), origin.get("position")
    if ref is None:
        return True  # what was erased says so itself
    if type(position) is not int or not BEFORE_ALL <= position <= tracer.through:
        return False
    found = Reader(tracer.view, AsOf(position), tracer.reader.policies).find(ref)
    shown = () if found is None else named_observations(found.fact(str(origin["field"])).origin)
    return set(shown) == set(named_observations(origin))


def _spoken(tracer: Tracer, ref: Ref, effective: str | None) -> Spoken:
    reader = tracer.reader_by(effective)
    members = reader.group(ref)
    observations = [stored.observation for stored in reader.stored(members)]
    return Spoken(members, observations, reader.rules(ref.type), tracer.snapshot(ref, effective))


def _cause(spoken: Spoken, field: str, was: tuple[str, ...], change: str) -> Observation | None:
    """Return the observation because of which a field is believed otherwise than the observations behind it said."""
    if change in ("retracted", "deleted"):
        op = RETRACT if change == "retracted" else DELETE
        gone = {said.digest for said in spoken.observations if said.id in was}
        causes = [said for said in spoken.observations if said.op == op]
        if op == RETRACT:
            causes = [said for said in causes if not gone.isdisjoint(said.replaces)]
        return causes[-1] if causes else None
    origin = None if spoken.snapshot is None else spoken.snapshot.blame.get(field)
    return next((said for said in spoken.observations if origin is not None and said.id == origin.observation), None)


def _change(spoken: Spoken, field: str, was: tuple[str, ...], fact: Fact) -> tuple[str, str]:
    """Return what became of the observations that a fact rested on, and why they no longer hold."""
    if not was:
        return "stated", "nothing was said of it before"
    known = {said.digest: said for said in spoken.observations}
    verdicts = {str(v.observation): v for v in blame.blame(known.values(), spoken.members, spoken.rules, field)}
    reason = next((verdicts[id].reason for id in was if id in verdicts and not verdicts[id].wins), "others joined it")
    live = fold.live_digests(known)
    if any(said.id in was and digest not in live for digest, said in known.items()):
        return "retracted", reason
    snapshot = spoken.snapshot
    if snapshot is None or snapshot.deleted:
        return "deleted", reason
    origin = snapshot.blame.get(field)
    return ("corrected" if origin is not None and origin.corrected and not fact.missing else "superseded"), reason
