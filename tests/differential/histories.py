"""Random histories: one call after another, most of them sound, for ledgers that are to answer alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from woodrat import Ledger, Past, Report, WoodratError
from woodrat.engines.engine import Engine
from woodrat.testing.generators import TROUBLE
from woodrat.testing.ledgers import EARLY, LATE, LATEST, THING, THING_2, answers, indexes_of, ledger_on, log_of, spelled

TENANTS: Final = ("t", "t", "t", "other")
AGENTS: Final = ("ada", "bob", "cyd")
IDEMPOTENCY: Final = ("k1", "k2", "k3", "k4", "k5", "k6")
KEYS: Final = ("1", "2", "é", "ê/x", "10")
TYPES: Final = ("thing", "thing", "thing", "contact", "free", "company")
TIMES: Final = (None, None, EARLY, LATE, LATEST, "2026-01-01T00:00:10Z", "1999-12-31T23:59:59.999999+14:00")
WRONG: Final = (
    "",
    "nothing",
    "thing/9",
    "ent_aaaaaaaaaaaaaaaaaaaaaaaaaa",
    "obs_7777777777777777777777777a",
    "a b/\0",
    None,
    7,
)
"""What names nothing, or cannot be a name."""

Verb = Callable[[Ledger], Any]


NAMESPACED = {"register": "schemas.register", "source": "sources.add"}
"""Calls that the library has in a namespace."""


@dataclass
class History:
    """Chooses one call after another, knowing what came of those before; a seed gives the same choices again."""

    chance: random.Random
    refs: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    size: int = 0
    begun: int = 0
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Writes that may be sent again, with their arguments."""

    def learn(self, name: str, report: Any) -> None:
        """Take in what a call answered, to speak of it later."""
        if name == "tag" and report is not None:
            self.tags = ["release", "r-2", "r-3"]
        if isinstance(report, Report) and not report.dry_run:
            self.refs += report.entities
            self.said += report.observations
            self.size = max(self.size, report.position + 1)
        elif isinstance(report, str) and report.startswith("src_"):
            self.ids.append(report)

    def ref(self) -> Any:
        """Return an entity: mostly one that was spoken of, sometimes one that is not there."""
        roll = self.chance.random()
        if roll < 0.04:
            return self.chance.choice(WRONG)
        if roll < 0.12:
            return f"{self.chance.choice(TYPES)}/{self.chance.choice(KEYS)}"
        return self.chance.choice(self.refs[-20:] or WRONG)

    def pair(self) -> tuple[Any, Any]:
        """Return two entities, mostly of one type, as a merge needs them."""
        one = self.ref()
        alike = [
            ref for ref in self.refs if isinstance(one, str) and ref != one and ref.split("/")[0] == one.split("/")[0]
        ]
        return one, self.chance.choice(alike) if alike and self.chance.random() < 0.85 else self.ref()

    def observation(self) -> Any:
        return (
            self.chance.choice(WRONG) if self.chance.random() < 0.05 else self.chance.choice(self.said[-25:] or WRONG)
        )

    def id(self) -> Any:
        return self.chance.choice(self.ids or WRONG)

    def value(self) -> Any:
        return self.chance.choice(TROUBLE) if self.chance.random() < 0.4 else self.chance.choice(("a", "b", 1, 2, "3"))

    def fields(self) -> dict[str, Any]:
        """Return some fields of a thing, most of them fitting."""
        pick = self.chance.choice
        some: dict[str, Callable[[], Any]] = {
            "city": lambda: pick(("Vic", "Berga", "Ürgell", "Girona", "Vic", "Berga", "Girona", "Ürgell", 7)),
            "rank": self.value,
            "born": self.value,
            "best": self.value,
            "tags": lambda: [self.value() for _ in range(self.chance.randrange(4))],
            "total": lambda: pick((1, -7, "0.1", "1.50", 10**15, "9007199254740993", 2, 3, 4, 5, 1.5)),
            "log": lambda: [self.value() for _ in range(self.chance.randrange(3))],
            "email": lambda: pick(("a@example.com", "b@example.com", "A@example.com ")),
        }
        return {name: some[name]() for name in self.chance.sample(sorted(some), self.chance.randrange(1, 5))}

    def record(self) -> Any:
        """Return a record, now and then one to be refused."""
        pick, roll = self.chance.choice, self.chance.random()
        if roll < 0.03:
            return pick((None, {}, {"entity_type": "thing"}, {"entity_type": 7, "id": "1"}, {"id": "1"}))
        kind = pick(TYPES)
        record: dict[str, Any] = {"entity_type": kind, **self.fields()}
        record["name" if kind in ("contact", "company") else "id"] = pick(KEYS)
        about: dict[str, Any] = {}
        if self.chance.random() < 0.15:
            about["remove"] = {"tags": [self.value()]}
        if self.chance.random() < 0.1:
            about["relate"] = [{"type": pick(("works_at", "knows")), "to": self.ref()}]
        if self.chance.random() < 0.15:
            about |= {"priority": pick((0, 1, -1, 2**40)), "observed_at": pick(TIMES[2:])}
        if self.chance.random() < 0.1:
            about["source"] = self.id()
        return {**record, "$": about} if about else record

    def options(self, *names: str) -> dict[str, Any]:
        """Return some optional arguments."""
        pick = self.chance.choice
        some: dict[str, Callable[[], Any]] = {
            "observed_at": lambda: pick(TIMES),
            "valid_from": lambda: pick(TIMES),
            "priority": lambda: pick((0, 1, -1, 2, 0, 1, "high")),
            "reason": lambda: pick(("because", "since", "é", "", 7)),
            "idempotency_key": lambda: pick((*IDEMPOTENCY, "")),
            "dry_run": lambda: True,
            "source": self.id,
            "if_version": lambda: self.chance.randrange(-2, self.size + 2),
            "saw": lambda: [self.observation()],
        }
        odds = {"observed_at": 0.6, "priority": 0.2}
        return {name: some[name]() for name in names if self.chance.random() < odds.get(name, 0.08)}

    def moment(self) -> Any:
        """Return a moment, rarely one that is none."""
        if self.chance.random() < 0.05:
            return self.chance.choice(("", "yesterday", -7, 1.5, "2026-01-01T00:00:00", "@none", self.size + 3))
        position = self.chance.randrange(-1, max(self.size, 1))
        time = f"2026-01-01T00:00:{self.chance.randrange(60):02}.{self.chance.randrange(10**6):06}Z"
        tagged = f"@{self.chance.choice(self.tags)}" if self.tags else "now"
        return self.chance.choice(("now", position, position, str(max(position, 0)), time, tagged))

    def next(self) -> tuple[str, Verb]:
        """Return the name of the next call, and the call itself."""
        self.begun += 1
        if self.begun == 1 and self.chance.random() < 0.8:
            return "register", lambda ledger: ledger.schemas.register(THING)
        if self.begun == 2:
            names = {"email": "a@example.com"}
            records = [
                {"entity_type": kind, "id": key, "name": key, **(names if kind == "thing" else {})}
                for kind in dict.fromkeys(TYPES)
                for key in KEYS[:3]
            ]
            return "store", lambda ledger: ledger.store(records, observed_at=EARLY)
        writes: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {
            "store": (10, self.store),
            "correct": (5, self._correct),
            "retract": (3, self._retract),
            "delete": (2, self._mark),
            "restore": (2, self._mark),
            "relate": (3, self._relate),
            "merge": (3, lambda: {**dict(zip(("one", "other"), self.pair(), strict=True)), **self._marking()}),
            "split": (2, self._split),
            "register": (2, self._register),
            "source": (1, self._source),
            "tag": (1, self._tag),
        }
        reads: dict[str, tuple[int, Callable[[Past], Any]]] = {
            "show": (2, self._about("show")),
            "history": (1, self._about("history")),
            "blame": (1, self._about("blame")),
            "observations": (1, self._about("observations")),
            "related": (2, self._related()),
            "conflicts": (1, lambda past: past.conflicts()),
            "diff": (2, self._diff()),
            "values": (1, lambda past: past.values()),
            "fingerprint": (2, self._fingerprint()),
            "timeline": (1, lambda past: past.timeline()),
            "schemas": (1, lambda past: past.schemas.list()),
            "deliveries": (1, lambda past: past.sources.list()),
            "content": (1, self._content()),
        }
        weights = {name: weight for name, (weight, _) in (*writes.items(), *reads.items())}
        (name,) = self.chance.choices(list(weights), list(weights.values()))
        if name in reads:
            return name, self._read(reads[name][1])
        if self.calls and self.chance.random() < 0.06:
            name, given = self.chance.choice(self.calls)
        else:
            given = writes[name][1]()
            self.calls.append((name, given))
        return name, lambda ledger: attrgetter(NAMESPACED.get(name, name))(ledger)(**given)

    def store(self) -> dict[str, Any]:
        """Return the arguments of a store."""
        count = self.chance.choice((1, 1, 1, 2, 3, 8))
        records = [self.record() for _ in range(count)]
        names = ("observed_at", "valid_from", "priority", "idempotency_key", "source", "dry_run", "if_version", "saw")
        return {"records": records if count > 1 else records[0], **self.options(*names)}

    def _correct(self) -> dict[str, Any]:
        given = {"ref": self.ref(), "fields": self.fields()}
        if self.chance.random() < 0.2:
            given["replaces"] = self.observation()
        if self.chance.random() < 0.15:
            given["remove"] = {"tags": [self.value()]}
        names = (
            "observed_at",
            "valid_from",
            "priority",
            "reason",
            "idempotency_key",
            "source",
            "dry_run",
            "if_version",
        )
        return {**given, **self.options(*names)}

    def _marking(self) -> dict[str, Any]:
        return self.options("observed_at", "reason", "idempotency_key", "dry_run")

    def _retract(self) -> dict[str, Any]:
        named = [self.observation() for _ in range(self.chance.choice((1, 1, 2)))]
        return {"observations": named if len(named) > 1 else named[0], **self._marking()}

    def _mark(self) -> dict[str, Any]:
        return {"ref": self.ref(), **self._marking()}

    def _split(self) -> dict[str, Any]:
        return {"ref": self.ref(), "other": self.chance.choice((None, self.ref())), **self._marking()}

    def _relate(self) -> dict[str, Any]:
        given = {
            "start": self.ref(),
            "type": self.chance.choice(("works_at", "knows", "works_at", "knows", "")),
            "end": self.ref(),
        }
        if self.chance.random() < 0.2:
            given |= {"key": self.chance.choice(KEYS), "fields": {"since": self.value()}}
        return {**given, **self._marking()}

    def _register(self) -> dict[str, Any]:
        free = {"title": "free", "properties": {"city": {"x-woodrat-merge": "first"}}, "x-woodrat-identity": [["id"]]}
        other = {**THING, "x-woodrat-identity": [["id"], ["city"]]}
        model = self.chance.choice((THING, other, THING_2, other, free, {"title": "free"}, {"type": 7}))
        return {"model": model, **self.options("idempotency_key", "dry_run")}

    def _source(self) -> dict[str, Any]:
        content = bytes(self.chance.choices(b"ab\x00\xff", k=self.chance.choice((0, 3, 9000))))
        return {
            "content": content,
            "name": self.chance.choice(("letter", "l/2", "é")),
            **self.options("idempotency_key"),
        }

    def _tag(self) -> dict[str, Any]:
        name = self.chance.choice(("release", "r-2", "r-3", "no tag"))
        return {"name": name, "moment": self.moment(), **self.options("idempotency_key")}

    def _about(self, verb: str) -> Callable[[Past], Any]:
        ref, named = self.ref(), self.chance.choice((None, None, "city", "tags", "nothing"))
        given = {"field": named} if verb in ("history", "blame") and named else {}
        return lambda past: getattr(past, verb)(ref, **given)

    def _related(self) -> Callable[[Past], Any]:
        ref, depth = self.ref(), self.chance.choice((1, 2, 3, 0))
        return lambda past: past.related(ref, depth=depth)

    def _diff(self) -> Callable[[Past], Any]:
        before, after, ref = self.moment(), self.moment(), self.chance.choice((None, self.ref()))
        return lambda past: past.diff(before, after, ref)

    def _fingerprint(self) -> Callable[[Past], Any]:
        provenance = self.chance.random() < 0.3
        return lambda past: past.fingerprint(provenance=provenance)

    def _content(self) -> Callable[[Past], Any]:
        id = self.id()
        return lambda past: past.sources.content(id).hex()

    def _read(self, ask: Callable[[Past], Any]) -> Verb:
        """Return a read, at the present or at another moment on one clock or both."""
        roll, moment, effective = (
            self.chance.random(),
            self.moment(),
            self.chance.choice((None, None, EARLY, LATE, LATEST, "2026-01-01T00:00:05Z", "no")),
        )
        if roll < 0.4:
            return ask
        return lambda ledger: ask(ledger.at(moment, valid_at=effective))


def plain(found: Any) -> Any:
    """Return an answer as plain JSON."""
    if hasattr(found, "to_json"):
        return found.to_json()
    if isinstance(found, Mapping):
        return {str(key): plain(value) for key, value in found.items()}
    if isinstance(found, tuple | list):
        return [plain(value) for value in found]
    if hasattr(found, "observation"):
        return [found.position, found.observation.to_json()]
    return found if isinstance(found, str | int | float | None) else str(found)


def outcome(call: Verb, ledger: Ledger) -> tuple[Any, bytes]:
    """Return what came of a call, and the same as bytes; whatever is not an error of ours passes through."""
    try:
        found = call(ledger)
    except WoodratError as error:
        return None, spelled([type(error).__name__, error.to_json()])
    return found, spelled(["done", plain(found)])


def compare(one: Engine, other: Engine, tenant: str, chance: random.Random) -> None:
    """Assert that two engines hold the same bytes and say the same, now and in the past."""
    assert spelled(log_of(one, tenant)) == spelled(log_of(other, tenant))
    keys = [(agent, key) for agent in AGENTS for key in IDEMPOTENCY]
    kept, *others = indexes_of(one, tenant, keys)
    kept_2, *others_2 = indexes_of(other, tenant, keys)
    assert others == others_2
    assert {ref for ref, _ in kept} == {ref for ref, _ in kept_2}
    left, right = ledger_on(one, tenant), ledger_on(other, tenant)
    for moment in ("now", chance.randint(-1, left.position), chance.randint(-1, left.position)):
        for effective in (None, chance.choice((EARLY, LATE))):
            pasts = [ledger.at(moment, valid_at=effective) for ledger in (left, right)]
            assert spelled(answers(pasts[0])) == spelled(answers(pasts[1]))
    assert left.fingerprint() == right.fingerprint() == right.at("now").fingerprint()
