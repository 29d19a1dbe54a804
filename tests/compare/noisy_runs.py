"""Noisy runs: pairs of recorded conversations of one task, worded anew, with one planted change in behaviour.

A *script* is what a run does. It is *rendered* with noise: other words for all that is said, other random ids and
times, independent lookups in another order, small talk in between. A *plant* changes one thing that the script does,
and says what a comparison has to name.
"""

from __future__ import annotations

import copy
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.compare.paraphraser import TEST, TUNING, Paraphraser

from woodrat.importers import reader
from woodrat.records import replace as with_fields
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Write
from woodrat.runs.verbs import documents

PROSE: Final = "<prose>"
"""Stands in a script for an argument that is prose."""


@dataclass
class Act:
    """One step of a script."""

    kind: str
    name: str
    args: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    needs: tuple[str, ...] = ()
    """Values that an earlier step returned."""

    @property
    def label(self) -> str:
        """What a comparison calls it."""
        return {"tool": f"tool {self.name}", "decision": f"decision {self.name}", "write": f"write of {self.name}"}[
            self.kind
        ]


@dataclass
class Script:
    """What a run does."""

    verb: str
    thing: str
    acts: list[Act]


@dataclass
class Plant:
    """What was changed, and what has to be named."""

    kind: str
    labels: set[str]
    """What the row of the headline may be called."""
    paths: tuple[str | None, str | None] = (None, None)
    values: tuple[Any, Any] = (None, None)
    words: tuple[str, ...] = ()
    """What the sentence has to hold besides."""
    place: int = 10**6
    """Where in the script the change is."""


# Domains


def _code(rng: random.Random, prefix: str = "") -> str:
    return prefix + "".join(rng.choices(string.ascii_uppercase + string.digits[2:], k=6)) + rng.choice(string.digits)


def airline(rng: random.Random) -> Script:
    """Change a booking."""
    user, booking, flight = (
        f"{rng.choice(['mia', 'noa', 'raj'])}_{rng.randrange(1000, 9999)}",
        _code(rng),
        f"HAT{rng.randrange(100, 400)}",
    )
    day, price = f"2026-05-{rng.randrange(10, 28)}", rng.randrange(90, 900)
    profile = {
        "name": {"first": "Mia", "last": "Li"},
        "address": {"city": "Houston", "province": "TX", "zip": "77001"},
        "bookings": [booking, _code(rng)],
        "level": "gold",
    }
    trip = {
        "booking": booking,
        "legs": [{"flight": flight, "date": day, "seat": "12A"}, {"flight": "HAT901", "date": day, "seat": "14C"}],
        "cabin": "economy",
        "paid": {"amount": price, "card": rng.randrange(1000, 9999)},
    }
    return Script(
        "move",
        "my flight to another day",
        [
            Act("tool", "get_user_details", {"user_id": user}, profile),
            Act("tool", "get_baggage_rules", {"cabin": "economy"}, {"bags": 2, "fee": 45}),
            Act("tool", "get_booking", {"booking": booking}, trip, (booking,)),
            Act(
                "tool",
                "search_flights",
                {"origin": "IAH", "destination": rng.choice(["SEA", "JFK"]), "date": day},
                [{"flight": flight, "seats": {"economy": rng.randrange(2, 30)}, "price": price + 20}],
                (),
            ),
            Act("decision", "fee-waiver", {"level": "gold", "cabin": "economy"}, rng.choice(["waive", "charge"])),
            Act(
                "tool",
                "update_booking",
                {"booking": booking, "flight": flight, "payment": {"card": "visa", "amount": price}},
                {"status": "confirmed", "total": price + 20},
                (booking, flight),
            ),
            Act("tool", "send_notice", {"user_id": user, "body": PROSE}, "sent"),
        ],
    )


def retail(rng: random.Random) -> Script:
    """Exchange an item."""
    order, item, new = (
        f"#W{rng.randrange(10**6, 10**7)}",
        str(rng.randrange(10**9, 10**10)),
        str(rng.randrange(10**9, 10**10)),
    )
    return Script(
        "exchange",
        "an item of my order",
        [
            Act(
                "tool",
                "find_user_by_email",
                {"email": f"sofia{rng.randrange(100)}@example.com"},
                {"user": f"sofia_li_{rng.randrange(1000, 9999)}", "orders": [order]},
            ),
            Act(
                "tool",
                "get_order",
                {"order_id": order},
                {
                    "order_id": order,
                    "status": "delivered",
                    "items": [
                        {
                            "item_id": item,
                            "name": "Tea Kettle",
                            "options": {"color": "blue", "capacity": "1L"},
                            "price": 42.5,
                        }
                    ],
                    "payment": {"method": "paypal", "amount": 42.5},
                },
                (order,),
            ),
            Act(
                "tool",
                "get_product",
                {"product": "kettle"},
                {"variants": {"a": {"item_id": new, "available": True, "options": {"color": "red"}}}},
            ),
            Act("decision", "eligible", {"status": "delivered", "days": rng.randrange(1, 29)}, "yes"),
            Act(
                "tool",
                "exchange_item",
                {"order_id": order, "old": item, "new": new, "payment": "paypal"},
                {"status": "exchange requested", "difference": 3.25},
                (item, new),
            ),
            Act("write", f"order/{order[1:]}", {}, {"status": "exchange requested", "item": new}),
            Act("tool", "transfer_to_returns_desk", {"summary": PROSE}, "transferred"),
        ],
    )


def bank(rng: random.Random) -> Script:
    """Dispute a payment."""
    account, payment = f"ES{rng.randrange(10**9, 10**10)}", f"P-{rng.randrange(10**5, 10**6)}"
    amount = rng.randrange(20, 900) + 0.75
    return Script(
        "dispute",
        "a payment on my statement",
        [
            Act(
                "tool",
                "lookupAccount",
                {"iban": account},
                {
                    "holder": {"fullName": "Ines Roca", "segment": "private"},
                    "limits": {"daily": {"card": 1500, "cash": 600}},
                    "lastPayments": [payment],
                },
            ),
            Act(
                "tool",
                "listBranches",
                {"city": "Girona"},
                [{"branch": "Nou 12", "open": True}, {"branch": "Rambla 3", "open": False}],
            ),
            Act(
                "tool",
                "getPayment",
                {"payment": payment},
                {
                    "payment": payment,
                    "amount": amount,
                    "merchant": {"name": "Kiosk", "category": {"code": 5994, "text": "news"}},
                    "state": "settled",
                },
                (payment,),
            ),
            Act(
                "decision", "dispute-route", {"amount": amount, "state": "settled"}, rng.choice(["automatic", "manual"])
            ),
            Act(
                "tool",
                "openDispute",
                {"payment": payment, "reason": "not recognised", "amount": amount},
                {"dispute": {"state": "open", "days": 14}},
                (payment,),
            ),
            Act("write", f"account/{account}", {}, {"dispute": "open", "amount": amount, "review": {"level": 2}}),
            Act(
                "tool", "handover_to_fraud_team", {"payment": payment, "message": PROSE}, {"accepted": True}, (payment,)
            ),
        ],
    )


def clinic(rng: random.Random) -> Script:
    """Book a visit."""
    patient, slot = f"pat-{rng.randrange(1000, 9999)}", f"slot{rng.randrange(100, 999)}B"
    return Script(
        "arrange",
        "a visit to the eye doctor",
        [
            Act(
                "tool",
                "patients.search",
                {"born": "1980-02-11", "surname": "Serra"},
                {"hits": [{"patient": patient, "insurer": {"name": "Mutua", "plan": "B"}}]},
            ),
            Act(
                "tool",
                "doctors.list",
                {"field": "eyes"},
                {"doctors": [{"doctor": "Puig", "room": 4}, {"doctor": "Vidal", "room": 9}]},
            ),
            Act(
                "tool",
                "slots.find",
                {"patient": patient, "doctor": "Puig"},
                {
                    "slots": [
                        {"slot": slot, "day": "2026-06-02", "length": 20},
                        {"slot": "slot1A", "day": "2026-06-03", "length": 40},
                    ]
                },
                (patient,),
            ),
            Act("decision", "urgency", {"pain": rng.randrange(10), "fever": False}, rng.choice(["routine", "soon"])),
            Act(
                "tool",
                "slots.book",
                {"slot": slot, "patient": patient, "channel": {"kind": "sms", "lang": "ca"}},
                {"booked": {"slot": slot, "day": "2026-06-02"}, "copay": 12},
                (slot,),
            ),
            Act("write", f"patient/{patient}", {}, {"next_visit": "2026-06-02", "doctor": "Puig"}),
            Act("tool", "notes.add", {"patient": patient, "text": PROSE}, "ok"),
        ],
    )


def freight(rng: random.Random) -> Script:
    """Reroute a container."""
    box, ship = f"MSKU{rng.randrange(10**6, 10**7)}", f"V{rng.randrange(100, 999)}E"
    tons = rng.randrange(4, 28)
    return Script(
        "reroute",
        "a container that is still at sea",
        [
            Act(
                "tool",
                "track_container",
                {"container": box},
                {
                    "position": {"lat": 41.3, "lon": 2.1},
                    "voyage": ship,
                    "cargo": {"tons": tons, "kind": "dry", "seals": ["A1", "B7"]},
                },
            ),
            Act(
                "tool",
                "check_port",
                {"port": "ESBCN"},
                {"berths": {"free": rng.randrange(1, 9), "total": 30}, "strike": False},
            ),
            Act(
                "tool",
                "get_voyage",
                {"voyage": ship},
                {
                    "calls": [{"port": "ESVLC", "eta_days": 2}, {"port": "ESBCN", "eta_days": 3}],
                    "carrier": {"code": "MSK", "tier": 1},
                },
                (ship,),
            ),
            Act(
                "tool",
                "quote_reroute",
                {"container": box, "port": "ESBCN", "tons": tons},
                {"lines": [{"item": "lift", "eur": 310}, {"item": "truck", "eur": 145.5}], "valid": True},
            ),
            Act("decision", "accept-quote", {"eur": 455.5, "limit": 600}, rng.choice(["accept", "ask"])),
            Act(
                "tool",
                "create_reroute",
                {"container": box, "port": "ESBCN", "options": {"customs": "T1", "insured": True}},
                {"state": "planned", "steps": [{"do": "unload", "day": 3}, {"do": "deliver", "day": 4}]},
            ),
            Act(
                "tool",
                "assign_agent",
                {"agent": rng.choice(["port-desk", "customs-desk"]), "container": box},
                "assigned",
            ),
            Act("tool", "mail_consignee", {"container": box, "body": PROSE}, {"queued": True}),
        ],
    )


DOMAINS: Final[dict[str, list[Callable[[random.Random], Script]]]] = {
    TUNING: [airline, retail],
    TEST: [bank, clinic, freight],
}


# Noise

LOOKUPS: Final = (
    "get",
    "list",
    "search",
    "find",
    "lookup",
    "check",
    "track",
    "patients.search",
    "doctors.list",
    "slots.find",
    "quote",
)


def _looks(act: Act) -> bool:
    return act.kind == "tool" and act.name.startswith(LOOKUPS)


def shuffled(acts: list[Act], rng: random.Random) -> list[Act]:
    """Return steps with some neighbours swapped that only look things up and do not need each other."""
    found = list(acts)
    place = 0
    while place < len(found) - 1:
        one, two = found[place], found[place + 1]
        if (
            _looks(one)
            and _looks(two)
            and not _hands_over(one, two)
            and not _hands_over(two, one)
            and rng.random() < 0.5
        ):
            found[place], found[place + 1] = two, one
            place += 1
        place += 1
    return found


def _hands_over(earlier: Act, later: Act) -> bool:
    return any(need in str(earlier.result) for need in later.needs)


def _volatile(rng: random.Random) -> dict[str, Any]:
    made = uuid.UUID(int=rng.getrandbits(128), version=4)
    clock = f"{rng.randrange(10, 23)}:{rng.randrange(10, 59)}:{rng.randrange(10, 59)}"
    stamp = f"2026-0{rng.randrange(1, 9)}-{rng.randrange(10, 28)}T{clock}Z"
    options: list[dict[str, Any]] = [
        {"request_id": str(made)},
        {"traceId": made.hex},
        {"generated_at": stamp},
        {"created": 1_760_000_000 + rng.randrange(10**7)},
        {"latency_ms": rng.randrange(5, 900)},
        {"meta": {"response_id": "resp_" + made.hex[:20], "served_at": stamp}},
    ]
    return {name: value for option in rng.sample(options, 2) for name, value in option.items()}


_KEYS: Final = ("request_id", "traceId", "generated_at", "created", "latency_ms", "meta")


class Rendering:
    """A script being told as a conversation, with noise."""

    def __init__(self, script: Script, seed: int, words: str) -> None:
        self._script, self._rng = script, random.Random(seed)
        self._say = Paraphraser(self._rng, words)

    def record(self, id: str, *, transcript: bool = False) -> RunRecord:
        """Return the run, told as steps or as the messages of a chat with tools, which has no decisions and writes."""
        acts = shuffled(self._script.acts, self._rng)
        if transcript:
            (record,) = documents.read(reader.read(self._transcript(id, [act for act in acts if act.kind == "tool"])))
            return record
        return self._stepwise(id, acts)

    def _transcript(self, id: str, acts: list[Act]) -> dict[str, Any]:
        """Return messages; neighbours may be asked for in one message, and answered in any order."""
        told: list[dict[str, Any]] = [{"role": "system", "content": "You are a helpful agent."}]
        told.append({"role": "user", "content": self._say.request(self._script.verb, self._script.thing)})
        waiting = list(acts)
        while waiting:
            if self._rng.random() < 0.25:
                told.append({"role": "assistant", "content": self._say.reply()})
                told.append({"role": "user", "content": self._say.small_talk()})
            count = 2 if len(waiting) > 1 and not _hands_over(*waiting[:2]) and self._rng.random() < 0.3 else 1
            together, waiting = waiting[:count], waiting[count:]
            ids = [f"call_{self._rng.getrandbits(64):016x}" for _ in together]
            calls = [
                {
                    "id": call,
                    "type": "function",
                    "function": {"name": act.name, "arguments": json.dumps(self._args(act))},
                }
                for call, act in zip(ids, together, strict=True)
            ]
            content = self._say.reply() if self._rng.random() < 0.5 else None
            told.append({"role": "assistant", "content": content, "tool_calls": calls})
            answers = [
                {"role": "tool", "tool_call_id": call, "content": json.dumps(self._fresh(act))}
                for call, act in zip(ids, together, strict=True)
            ]
            self._rng.shuffle(answers)
            told += answers
        told.append({"role": "assistant", "content": self._say.ending()})
        return {"id": id, "messages": told}

    def _args(self, act: Act) -> dict[str, Any]:
        """Return the arguments with prose in words of this run, and some with a key that every run makes up anew."""
        found = {
            name: self._say.note(self._script.verb, self._script.thing) if value == PROSE else value
            for name, value in act.args.items()
        }
        keyed = not _looks(act) and random.Random(act.name).random() < 0.5
        return (
            {**found, "idempotency_key": str(uuid.UUID(int=self._rng.getrandbits(128), version=4))} if keyed else found
        )

    def _stepwise(self, id: str, acts: list[Act]) -> RunRecord:
        steps: list[dict[str, Any]] = []
        writes: list[tuple[int, Act]] = []
        heard: list[Any] = [{"role": "system", "content": "You are a helpful agent."}]
        heard.append({"role": "user", "content": self._say.request(self._script.verb, self._script.thing)})
        question = heard[-1]["content"]
        for act in acts:
            if self._rng.random() < 0.25:
                steps.append({"kind": "model", "model": "m-1", "messages": heard, "response": self._say.reply()})
                heard = [{"role": "user", "content": self._say.small_talk()}]
            if act.kind == "decision":
                steps.append(
                    {
                        "kind": "decision",
                        "stage": act.name,
                        "chosen": act.result,
                        "evidence": act.args,
                        "rationale": self._say.note(self._script.verb, self._script.thing),
                    }
                )
            elif act.kind == "write":
                writes.append((len(steps), act))
            else:
                call = {"name": act.name, "args": self._args(act)}
                steps.append(
                    {
                        "kind": "model",
                        "model": "m-1",
                        "messages": heard,
                        "response": {"content": self._say.reply(), "tool_calls": [call]},
                    }
                )
                result = self._fresh(act)
                steps.append({"kind": "tool", **call, "result": result})
                heard = [{"role": "tool", "name": act.name, "content": result}]
        answer = self._say.ending()
        steps.append({"kind": "model", "model": "m-1", "messages": heard, "response": answer})
        document = {"format": "woodrat-trajectory/0", "id": id, "query": question, "steps": steps, "answer": answer}
        (record,) = documents.read(reader.read(document))
        moment = "2026-01-05T09:00:00.000000Z"
        said = tuple(
            Write(100 + number, f"obs_{id}{number}", act.name, "assert", act.result, {}, moment, step, "bot")
            for number, (step, act) in enumerate(writes)
        )
        return with_fields(record, writes=said)

    def _fresh(self, act: Act) -> Any:
        """Return a result with members that every run makes up anew; which ones depends on the tool alone."""
        if not isinstance(act.result, dict):
            return act.result
        names = random.Random(act.name).sample(_KEYS, 2)
        found: dict[str, Any] = {}
        while not set(names) <= set(found):
            found.update(_volatile(self._rng))
        return {**act.result, **{name: found[name] for name in names}}


# Plants


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any, str | int, Any]]:
    """Yield path, container, key and value of each plain value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        here = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        if isinstance(inner, dict | list):
            yield from _leaves(inner, here)
        else:
            yield here, value, key, inner


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + rng.choice([1, 7, 100])
    return (
        f"{value[:-1]}{'X' if value[-1:] != 'X' else 'Y'}"
        if rng.random() < 0.5
        else rng.choice(["Lugo", "other", "ZZ99"])
    )


def _tools(script: Script) -> list[int]:
    return [place for place, act in enumerate(script.acts) if act.kind == "tool"]


def plant(script: Script, kind: str, rng: random.Random) -> tuple[Script, Plant] | None:
    """Return a script with one change, and what has to be named; none where the script has no place for it."""
    acts = copy.deepcopy(script.acts)
    changed = replace(script, acts=acts)
    tools = _tools(script)
    match kind:
        case "argument":
            act = acts[rng.choice([p for p in tools if any(v != PROSE for _, _, _, v in _leaves(acts[p].args))])]
            path, holder, key, value = rng.choice([leaf for leaf in _leaves(act.args) if leaf[3] != PROSE])
            holder[key] = _other(value, rng)
            return changed, Plant(kind, {act.label}, (path, path), (value, holder[key]))
        case "result" | "retyped":
            places = [p for p in tools if any(_leaves(acts[p].result))]
            act = acts[rng.choice(places)]
            needed = {need for other in acts for need in other.needs}  # other ids would be another task
            leaves = [leaf for leaf in _leaves(act.result) if leaf[3] not in needed]
            if not leaves:
                return None
            path, holder, key, value = rng.choice(leaves)
            if kind == "retyped":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    return None
                holder[key] = str(value)
            else:
                holder[key] = _other(value, rng)
            return changed, Plant(kind, {act.label}, (path, path), (value, holder[key]))
        case "renamed" | "missing":
            places = [p for p in tools if any(isinstance(leaf[1], dict) for leaf in _leaves(acts[p].result))]
            act = acts[rng.choice(places)]
            path, holder, key, value = rng.choice([leaf for leaf in _leaves(act.result) if isinstance(leaf[1], dict)])
            if kind == "missing":
                del holder[key]
                return changed, Plant(kind, {act.label}, (path, None), (value, None))
            new = rng.choice([f"{key}_v2", f"new{str(key).title()}", "label"])
            members = list(holder.items())
            holder.clear()
            holder.update((new if name == key else name, item) for name, item in members)
            other = path[: len(path) - len(str(key))] + new
            return changed, Plant(kind, {act.label}, (path, other), (value, value))
        case "skipped":
            act = acts.pop(rng.choice(tools[1:]))
            return changed, Plant(kind, {act.label}, words=("first run",))
        case "extra":
            place = rng.choice(tools[1:])
            act = Act(
                "tool",
                rng.choice(["read_manual", "verify_identity", acts[place].name]),
                {"ref": _code(rng)},
                {"ok": True},
            )
            acts.insert(place, act)
            return changed, Plant(kind, {act.label}, words=(act.args["ref"],))
        case "other tool":
            act = acts[rng.choice(tools)]
            before = act.label
            act.name = rng.choice(["search_archive", "escalate_case", "run_report"])
            return changed, Plant(kind, {before, act.label}, words=(before, act.label))
        case "swapped":
            dependent = [(p, q) for p in tools for q in tools if p < q and _hands_over(acts[p], acts[q])]
            first, second = rng.choice(dependent)
            acts.insert(first, acts.pop(second))
            return changed, Plant(
                kind, {act.label for act in acts[first : second + 1]}, words=("earlier", acts[first].label)
            )
        case "decision":
            act = next(act for act in acts if act.kind == "decision")
            before, act.result = act.result, "refer"
            return changed, Plant(kind, {act.label}, ("chosen", "chosen"), (before, "refer"))
        case "write":
            act = next((act for act in acts if act.kind == "write"), None)  # type: ignore[assignment]
            if act is None:
                return None
            path, holder, key, value = rng.choice(list(_leaves(act.result)))
            holder[key] = _other(value, rng)
            return changed, Plant(kind, {act.label}, (path, path), (value, holder[key]))
        case "handover":
            act = acts[-1]
            acts.append(Act("tool", "transfer_to_agent", {"agent": "night-desk"}, "transferred"))
            script.acts.append(Act("tool", "transfer_to_agent", {"agent": "day-desk"}, "transferred"))
            return changed, Plant(kind, {"tool transfer_to_agent"}, ("agent", "agent"), ("day-desk", "night-desk"))
    raise AssertionError(kind)


KINDS: Final = (
    "argument",
    "result",
    "retyped",
    "renamed",
    "missing",
    "skipped",
    "extra",
    "other tool",
    "swapped",
    "decision",
    "write",
    "handover",
)


TAILED: Final = ("argument", "result", "retyped", "renamed", "missing", "decision", "write", "other tool")
"""Kinds after which the rest of a run may differ too."""


@dataclass
class Pair:
    """Two runs of one task."""

    name: str
    first: RunRecord
    second: RunRecord
    plant: Plant | None


def pair(words: str, seed: int, kind: str | None) -> Pair | None:
    """Return two noisy runs of one task, the second with a planted change where a kind is named."""
    rng = random.Random(f"{words}-{seed}-{kind}")
    domain = DOMAINS[words][seed % len(DOMAINS[words])]
    script = domain(rng)
    changed, planted = script, None
    if kind is not None:
        made = plant(script, kind, rng)
        if made is None:
            return None
        changed, planted = made
        labelled = [place for place, act in enumerate(changed.acts) if act.label in planted.labels]
        planted.place = max(labelled, default=planted.place)
    if planted is not None and kind in TAILED and rng.random() < 0.4:  # what comes after the change differs as well
        del changed.acts[max(planted.place + 1, len(changed.acts) - rng.randrange(1, 3)) :]
    transcript = kind not in ("decision", "write") and rng.random() < 0.5
    one = Rendering(script, rng.randrange(10**9), words).record(f"one-{seed}", transcript=transcript)
    two = Rendering(changed, rng.randrange(10**9), words).record(f"two-{seed}", transcript=transcript)
    return Pair(f"{domain.__name__}-{seed}-{kind}", one, two, planted)
