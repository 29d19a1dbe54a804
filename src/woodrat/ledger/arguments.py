"""Arguments: what a caller gave a verb, checked once, every fault at once.

`given` is what the request digest is taken of: the arguments as sent, without those left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.ledger import spoken_times
from woodrat.records import dataclass
from woodrat.state import observation
from woodrat.state.record import parse_moment

if TYPE_CHECKING:
    from woodrat.clock import Clock
    from woodrat.context import Context
    from woodrat.ledger.report import Report

NEW: Final = "new"
"""The condition that nothing was ever said of an entity."""
KNOWN: Final = "known"
"""The condition that something was said of it."""
EXISTING: Final = "existing"
"""What `match` is: a record may be attached to the one known entity that it can mean."""
NEVER: Final = "never"
"""What `match` is where a note is about exactly what was named."""
Expected: TypeAlias = int | tuple[int, ...] | str
"""What a writer takes for the version of an entity: one, one of several, or `new` or `known`."""


@dataclass(frozen=True, slots=True)
class About:
    """What one call says about all its observations; a record's own `$` comes first."""

    observed_at: str | None = None
    valid_from: str | None = None
    priority: int = 0
    source: str | None = None
    interpretation: str | None = None
    run: str | None = None
    step: int | None = None
    reason: str | None = None
    saw: tuple[str, ...] = ()


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


_NOTHING = (None,) * 7
_SILENT = About()


class Arguments:
    """The arguments of one call."""

    def __init__(self, within: Within | None = None) -> None:
        self.within = within
        """The step of a run that writes, where one does."""
        self.given: dict[str, Json | form.Spelled] = {}
        self.faults: list[Fault] = []
        self._times: dict[str, str] = {}

    def time(self, name: str, value: object, clock: Clock) -> object:
        """Return a time as text where it is a date, a `datetime` or words by a clock; anything else as it is."""
        if value is None:
            return None
        told: dict[str, str] = {}
        found = spoken_times.in_argument(name, value, clock, told)
        if told:
            self._times |= told
        return found

    def records(self, records: object, clock: Clock) -> object:
        """Return records with times in place of words."""
        return spoken_times.in_records(records, clock, self._times)

    def told_times(self, context: Context, report: Report) -> Report:
        """Return a report that says what times in words turned out to be; one that is made later says nothing yet."""
        return report if context.stand_in is not None else spoken_times.with_times(report, self._times)

    def check(self, outcome: str = "Nothing was written.") -> None:
        """Refuse the call if anything is wrong with it so far."""
        if self.faults:
            raise Refused(self.faults, outcome)

    def key(self, verb: str, stated: str | None) -> str | None:
        """Return the idempotency key of the call; one that states none has one all the same inside a run."""
        return stated if stated is not None or self.within is None else self.within.key(verb, self.given)

    def refer(self, **refs: object) -> None:
        """Take references to entities; what they mean is found out later."""
        for name, value in refs.items():
            if value is not None:
                self.given[name] = str(value) if isinstance(value, Ref) else self._plain(value)

    def about(
        self,
        *,
        observed_at: object = None,
        valid_from: object = None,
        priority: object = None,
        source: object = None,
        interpretation: object = None,
        run: object = None,
        step: object = None,
        reason: object = None,
        saw: object = None,
    ) -> About:
        """Take what the call says about its observations."""
        if (valid_from, priority, source, interpretation, run, step, reason) == _NOTHING and (
            saw is None or saw == () or saw == []
        ):
            return self._seen_at(observed_at)
        times = {"observed_at": observed_at, "valid_from": valid_from}
        optional = {"reason": reason, "run": run, "step": step}
        fixed = {name: parse_moment(value, name, self.faults) for name, value in times.items()}
        if priority is not None:
            self.faults += observation.priority_faults(priority, "priority")
        stated = {name: value for name, value in optional.items() if value is not None}
        self.faults += [Fault(f.path[1:], f.problem, f.remedy) for f in observation.optional_faults(stated, "")]
        self.faults += self._elsewhere(run, step)
        named = self.text("source", source, ids.KEY_BYTES_MAX)
        wrong = {fault.path for fault in self.faults}
        for name, value in {**times, **optional, "priority": priority, "interpretation": interpretation}.items():
            if value is not None and name not in wrong:
                self.given[name] = value  # type: ignore[assignment]
        return About(
            observed_at=fixed["observed_at"],
            valid_from=fixed["valid_from"],
            priority=priority if isinstance(priority, int) else 0,
            source=named,
            interpretation=interpretation if isinstance(interpretation, str) else None,
            run=run if isinstance(run, str) else self.within.run if self.within is not None else None,
            step=step if isinstance(step, int) else self.within.step if self.within is not None else None,
            reason=reason if isinstance(reason, str) else None,
            saw=tuple(self.texts("saw", saw) or ()),
        )

    def _elsewhere(self, run: object, step: object) -> Iterator[Fault]:
        """Yield a fault for a write that is a step of one run and says to be part of another, or of another step."""
        if self.within is not None:
            remedy = "Leave it out: the run sets it."
            if run is not None and run != self.within.run:
                yield Fault("run", f"got {shown(run)}, and this is a step of {self.within.run}", remedy)
            if step is not None and step != self.within.step:
                yield Fault("step", f"got {shown(step)}, and this is step {self.within.step}", remedy)

    def _seen_at(self, observed_at: object) -> About:
        """Take when it was seen, which is mostly all that a call says, or nothing at all."""
        within = self.within
        if observed_at is None:
            return _SILENT if within is None else About(run=within.run, step=within.step)
        fixed = parse_moment(observed_at, "observed_at", self.faults)
        if fixed is not None:
            self.given["observed_at"] = observed_at  # type: ignore[assignment]
        return About(fixed) if within is None else About(fixed, run=within.run, step=within.step)

    def match(self, value: object) -> bool:
        """Take whether records may be attached to entities that are known already."""
        if value is None:
            return False
        if value != EXISTING:
            self.faults.append(Fault("match", f"got {shown(value)}", f"Send {EXISTING}, or leave it out."))
        self.given["match"] = self._plain(value)
        return True

    def match_subject(self, value: object) -> bool:
        """Take whether a note may be about an entity that is known under another name; it may unless that is said."""
        if value == EXISTING:
            return True
        if value != NEVER:
            self.faults.append(Fault("match", f"got {shown(value)}", f"Send {EXISTING} or {NEVER}."))
        self.given["match"] = self._plain(value)
        return False

    def text(self, name: str, value: object, bytes_max: int) -> str | None:
        """Take text without control characters."""
        if value is None:
            return None
        found = ids.text_faults(value, name, bytes_max, name.replace("_", " "))
        self.faults += found
        if found or not isinstance(value, str):
            return None
        self.given[name] = value
        return value

    def texts(self, name: str, value: object) -> list[str] | None:
        """Take one text or a list of them."""
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            self.faults.append(Fault(name, f"expected ids, got {shown(value)}", "Send one id as text, or a list."))
            return None
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.faults.append(Fault(f"{name}/{index}", f"expected an id, got {shown(item)}", "Send it as text."))
            else:
                self.faults += form.faults(item, f"{name}/{index}")
        if items and not self.faults:
            self.given[name] = list(items)
        return [item for item in items if isinstance(item, str) and not form.faults(item)]

    def fields(self, name: str, value: object) -> dict[str, Json]:
        """Take values by field."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.faults.append(Fault(name, f"expected values by field, got {shown(value)}", "Send an object."))
            return {}
        plain = self._json(name, dict(value))
        if plain is None:
            return {}
        for key in plain:
            self.faults += observation.field_name_faults(key, f"/{name}")
            if key in ("entity_type", "$"):
                problem = f"{key} is not a field"
                self.faults.append(Fault(f"/{name}/{key}", problem, "Use another name; this one is reserved."))
        return plain

    def elements(self, name: str, value: object) -> dict[str, list[Json]]:
        """Take lists of elements by field."""
        found = self.fields(name, value)
        for key, items in found.items():
            if not isinstance(items, list) or not items:
                problem = f"expected a list of elements, got {shown(items)}"
                remedy = "List the elements to remove."
                self.faults.append(Fault(f"/{name}/{pointer_part(key)}", problem, remedy))
        return {key: items for key, items in found.items() if isinstance(items, list)}

    def mapping(self, name: str, value: object) -> dict[str, Json]:
        """Take any JSON object."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.faults.append(Fault(name, f"expected an object, got {shown(value)}", "Send an object."))
            return {}
        return self._json(name, dict(value)) or {}

    def version(self, value: object) -> Expected | None:
        """Take the version of one entity: a number, several of which one must hold, or `known`."""
        if value is None:
            return None
        if value == KNOWN:
            self.given["if_version"] = KNOWN
            return KNOWN
        several: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
        if not several or any(type(each) is not int for each in several):
            remedy = "Send the version a snapshot shows, or several of which one must match."
            self.faults.append(Fault("if_version", f"expected a whole number, got {shown(value)}", remedy))
            return None
        if type(value) is int:
            self.given["if_version"] = value
            return value
        self.given["if_version"] = several
        return tuple(several)

    def versions(self, value: object) -> Expected | Mapping[Ref, Expected | None] | None:
        """Take the version of one entity, versions by reference, or `new` and `known` for all that is stored."""
        if value == NEW:
            self.given["if_version"] = NEW
            return NEW
        if value is None or not isinstance(value, Mapping):
            return self.version(value)
        found: dict[Ref, int | None] = {}
        for text, version in value.items():
            if version is not None and type(version) is not int:
                problem = f"expected a whole number, got {shown(version)}"
                remedy = "Send the version a snapshot shows, or null for not known yet."
                self.faults.append(Fault(f"if_version/{pointer_part(str(text))}", problem, remedy))
                continue
            try:
                found[ids.parse_ref(text, "if_version")] = version
            except Refused as refusal:
                self.faults += refusal.faults
        self.given["if_version"] = {str(ref): version for ref, version in found.items()}
        return found

    def _plain(self, value: object) -> Json:
        return value if isinstance(value, str) else shown(value)

    def _json(self, name: str, value: dict[Any, Any]) -> dict[str, Json] | None:
        found = form.faults(value, f"/{name}", outer=1)
        if found:
            self.faults += found
            return None
        normal: Any = form.normal(value)
        if normal:
            self.given[name] = normal
        return normal  # type: ignore[no-any-return]


def request_name(verb: str, given: Mapping[str, object]) -> str:
    """Return a short name of a request: the verb and the arguments as sent."""
    taken = sha256(verb.encode())
    for name, value in sorted(given.items()):
        data = value if isinstance(value, bytes) else form.serialise(value)
        taken.update(b"\n%b %d " % (name.encode(), len(data)) + data)
    return taken.hexdigest()[:32]
