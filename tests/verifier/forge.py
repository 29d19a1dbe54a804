"""A forging kit: an operator who holds the signing key, and writes whatever log and capsule they like.

A `Story` is a log as a list of drafts, whose place in the list is their position, and a claim. `honest` tells any; a
story knows the parts that lower its verdict. forgeries.py spoils them.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.verifier.plain_fold import Fold, fits, group, is_own, policy_of, removal_fits, said, takes
from tests.verifier.plain_values import ERASED, REDACTED, canonical, name, sha

from woodrat.log import tree

SIGNER = "example.com/forge"
PRIVATE = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"a forger's key").digest())
PUBLIC = b"\1" + PRIVATE.public_key().public_bytes_raw()
KEY_HASH = hashlib.sha256(SIGNER.encode() + b"\n" + PUBLIC).digest()[:4]
KEY = f"{SIGNER}+{KEY_HASH.hex()}+{b64encode(PUBLIC).decode()}"
LOG = "log_forged"
RUN = "run_" + "f" * 26
OWNER = "crm"
TYPE = "loan"


@functools.cache
def note(origin: str, size: int, root: bytes) -> str:
    """Sign a checkpoint."""
    return signed(f"{origin}\n{size}\n{b64encode(root).decode()}\n")


def signed(text: str) -> str:
    """Sign a text as a note."""
    return f"{text}\n— {SIGNER} {b64encode(KEY_HASH + PRIVATE.sign(text.encode())).decode()}\n"


def moment(number: int) -> str:
    """Return the time of a number of seconds."""
    return f"2026-01-{1 + number // 86400:02}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z"


def cut(value: Any, digest: str | None = "right") -> dict[str, Any]:
    """Return a cut value, with the right digest, another one, or none."""
    made: dict[str, Any] = {"bytes": 70_000, "preview": "…"}
    if digest is not None:
        made["digest"] = sha(canonical(value)) if digest == "right" else digest
    return {"$truncated": made}


@dataclass
class Draft:
    """An entry to be; what is not shown is in the log and not in the capsule."""

    kind: str
    body: Any
    shown: bool = True
    blank: bool = False
    write: int | None = None
    origin: dict[str, Any] | None = None
    log: str = LOG
    length: int | None = None
    recorded: int | None = None


@dataclass
class Story:
    """A log, a claim about it, and the parts its verdict is lowered by."""

    claim: dict[str, Any]
    drafts: list[Draft] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    lowered: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)

    def add(self, kind: str, body: Any, label: str = "", **given: Any) -> int:
        """Append an entry, and return its position."""
        self.drafts.append(Draft(kind, body, **given))
        if label:
            self.at[label] = len(self.drafts) - 1
        return len(self.drafts) - 1

    def draft(self, label: str) -> Draft:
        return self.drafts[self.at[label]]

    def body(self, label: str) -> Any:
        return self.draft(label).body

    def lower(self, part: str, *labels: str) -> None:
        """Expect a part, of these entries by label."""
        self.lowered |= {f"{part} @{label}" for label in labels} or {part}

    def parts(self) -> list[str]:
        """Return the parts expected, by position."""
        split = [part.split("@") for part in self.lowered]
        return sorted(part[0] + str(self.at[part[1]]) if len(part) == 2 else part[0] for part in split)

    def decisions(self) -> list[str]:
        """Return the labels of the decisions the claim is about."""
        return ["risk"] if self.claim["kind"] == "decision" else ["risk", "channels"]

    def renamed(self, label: str, change: Callable[[Any], None]) -> None:
        """Change an observation or schema, and the names by which later entries know it."""
        draft = self.draft(label)
        old = name(draft.kind, canonical(draft.body))
        change(draft.body)
        new = name(draft.kind, canonical(draft.body))
        for other in self.drafts:
            if other is not draft and other.kind != "source":
                text = json.dumps(other.body).replace(old, new).replace(old[:30], new[:30])
                other.body = json.loads(text)

    def entries(self) -> tuple[list[dict[str, Any]], list[bytes]]:
        """Return all entries without their proofs, and the leaves of the tree."""
        made, leaves = [], []
        for position, draft in enumerate(self.drafts):
            nonce = hashlib.sha256(f"nonce {position}".encode()).digest()[:16]
            data = draft.body if isinstance(draft.body, bytes) else canonical(draft.body)
            write = position if draft.write is None else draft.write
            envelope: dict[str, Any] = {"write": write}
            if write == position:
                length = 1 + sum(other.write == position for other in self.drafts[position + 1 :])
                length = draft.length or length
                envelope |= {"length": length, "request": sha(f"request {position}".encode())}
            if draft.origin is not None:
                envelope["origin"] = draft.origin
            header = {
                "commitment": sha(nonce + data),
                "envelope": envelope,
                "format": 0,
                "kind": draft.kind,
                "log": draft.log,
                "position": position,
                "recorded_at": moment(write if draft.recorded is None else draft.recorded),
            }
            leaves.append(hashlib.sha256(b"\0" + canonical(header)).digest())
            body = {"base64": b64encode(data).decode()} if isinstance(draft.body, bytes) else draft.body
            made.append(
                {**header, "nonce": None, "body": None}
                if draft.blank
                else {**header, "nonce": nonce.hex(), "body": body}
            )
        return made, leaves

    def document(self) -> dict[str, Any]:
        """Return the capsule."""
        made, leaves = self.entries()
        size, nodes = len(made), tree.Leaves(leaves)
        shown = [entry for entry, draft in zip(made, self.drafts, strict=True) if draft.shown]
        for entry in shown:
            entry["proof"] = [each.hex() for each in tree.inclusion_proof(nodes, entry["position"], size)]
        claim = {**self.claim, "positions": [entry["position"] for entry in shown]}
        for member in ("misfits", "schema"):
            if member in claim:
                found = claim[member]
                claim[member] = [self.at[each] for each in found] if isinstance(found, list) else self.at[found]
        checkpoint = note(LOG, size, tree.root(leaves))
        return copy.deepcopy(
            {"checkpoint": checkpoint, "claim": claim, "entries": shown, "format": 0, "woodrat": "capsule"}
        )

    def note(self, size: int, root: bytes | None = None, origin: str = LOG) -> str:
        """Return a checkpoint of the log when it was so long."""
        return note(origin, size, root or tree.root(self.entries()[1][:size]))

    def consistency(self, old: int) -> dict[str, Any]:
        """Return a consistency document from an older size to the newest."""
        nodes, size = tree.Leaves(self.entries()[1]), len(self.drafts)
        proof = [each.hex() for each in tree.consistency_proof(nodes, old, size)]
        return {"format": 0, "from": self.note(old), "proof": proof, "to": self.note(size), "woodrat": "consistency"}

    def proof(self, position: int) -> dict[str, Any]:
        """Return a proof document of one entry."""
        made, leaves = self.entries()
        nodes = tree.Leaves(leaves)
        proof = [each.hex() for each in tree.inclusion_proof(nodes, position, len(made))]
        checkpoint = self.note(len(made))
        return {"checkpoint": checkpoint, "entry": made[position], "format": 0, "proof": proof, "woodrat": "proof"}


def seal(document: Any) -> bytes:
    """Return the bytes of a document."""
    return canonical(document) + b"\n"


def observation(entity: str, number: int, **given: Any) -> dict[str, Any]:
    """Return the body of an observation."""
    kind, _, key = entity.partition("/")
    made = {"agent": "web", "entity": {"key": key, "type": kind}, "op": "assert", "priority": 0}
    return {**made, "observed_at": moment(number), "valid_from": moment(number), **given}


def same_as(one: str, two: str, number: int = 1) -> dict[str, Any]:
    """Return the body of a relation that makes two entities one."""
    key = canonical(sorted([one, two])).decode()
    return observation("same_as/" + key, number, fields={"reason": "one loan"})


def obs_id(body: dict[str, Any]) -> str:
    return name("observation", canonical(body))[:30]


# Runs


SCHEMA: dict[str, Any] = {
    "properties": {
        "score": {"type": "integer", "minimum": 0},
        "memo": {"type": "string", "maxLength": 100},
        "flags": {"type": "array", "x-woodrat-merge": "union"},
        "notes": {"type": "array", "x-woodrat-merge": "append"},
        "grade": {"x-woodrat-merge": {"code": "0" * 64, "name": "mine", "version": 1}},
        "pin": {"type": "string", "x-woodrat-redact": True},
    },
    "x-woodrat-version": 1,
}


def condition(rng: Random, key: str, value: Any, want: bool, origin: dict[str, Any]) -> dict[str, Any]:
    """Return a condition on a fact that holds, or does not, by construction."""
    other = [value, 1]
    ways: list[tuple[str, Any]] = [("eq", value if want else other), ("ne", other if want else value)]
    ways += [("in", [other, value] if want else [other]), ("not_in", [] if want else [value]), ("exists", want)]
    if type(value) is int:
        ways += [("gt", value - 1 if want else value), ("gte", value if want else value + 1)]
        ways += [("lt", value + 1 if want else value), ("lte", value if want else value - 0.5)]
    elif isinstance(value, str):
        ways += [("gt", "" if want else value + "a"), ("lt", value + "é" if want else value)]
    op, operand = rng.choice(ways)
    return {"key": key, "op": op, "operand": operand, "actual": value, "result": want, "origin": origin}


def rule(conditions: list[dict[str, Any]], chosen: Any, label: str | None, bare: bool = False) -> dict[str, Any]:
    """Return a rule of these conditions."""
    when: dict[str, Any] = {}
    for each in conditions:
        if bare and each["op"] == "eq" and each["key"] not in when and not isinstance(each["operand"], dict):
            when[each["key"]] = each["operand"]
        elif isinstance(when.get(each["key"], {}), dict):
            when.setdefault(each["key"], {})[each["op"]] = each["operand"]
    matched = bool(conditions) and all(each.get("result") for each in conditions)
    made = {"chosen": chosen, "conditions": conditions, "matched": matched, "when": when}
    return made if label is None else {**made, "label": label}


def step(number: int, **given: Any) -> dict[str, Any]:
    """Return the body of a step of the run."""
    return {"run": RUN, "step": number, "span": f"{number:016x}", "agent": OWNER, "started_at": moment(100), **given}


def run_story(rng: Random, kind: str | None = None) -> Story:
    """Tell a run that is proven: it reads, calls a tool and a model, decides twice, writes, and ends."""
    kind = kind or rng.choice(["run", "decision"])
    story = Story({"kind": kind, "run": RUN, "left_out": [], **({"stage": "risk"} if kind == "decision" else {})})
    score, memo = rng.randrange(300, 850), rng.choice(["calm", "é", "late"]) + str(rng.randrange(99))
    story.add("tag", {}, "early", shown=False)
    schema = copy.deepcopy({"schema": SCHEMA, "type": TYPE})
    story.add("schema", schema, "schema")
    content = f"Score: {score}".encode()
    source = name("source", content)
    story.add("source", content, "source")
    story.add(
        "received",
        {"agent": "web", "name": "a.pdf", "received_at": moment(1), "source": source},
        "received",
        write=story.at["source"],
    )
    reading = {"agent": "web", "interpretation": "int_a", "source": source, "started_at": moment(1), "model": "m"}
    story.add("interpretation.started", reading, "reading")
    older = observation("loan/42", 1, fields={"score": score - 50, "memo": memo})
    story.add("observation", older, "older")
    fields = {"score": score, "memo": memo, "flags": ["a", "b"], "notes": ["n"], "grade": "B", "pin": REDACTED}
    won = observation("loan/42", 5, fields=fields, source=source, interpretation="int_a")
    story.add("observation", won, "won")
    story.add("interpretation.ended", {"interpretation": "int_a", "ended_at": moment(2), "status": "done"}, "read-end")
    other = observation("loan/43", 6, fields=dict(fields, score=score + 100))
    story.add("observation", other, "other", shown=False)
    story.add("tag", {}, "spare", shown=False)
    position = story.at["spare"]
    inputs = {"amount": rng.randrange(1, 9999), "currency": "EUR"}
    story.add("run.started", step(0, inputs=inputs, query="Approve?"), "started")
    shown = {name: {"observation": obs_id(won), "value": fields[name]} for name in ("score", "memo")}
    read = step(1, entity="loan/42", found=True, log=LOG, position=position, fields=shown)
    read["schema"] = name("schema", canonical(schema))
    story.add("run.read", read, "read")
    tier = rng.randrange(1, 5)
    story.add("run.tool", step(2, name="bureau", args={}, result={"a/b": [{"tier": tier}]}), "tool")
    story.add("run.model", step(3, model="small", response={"mood": ["calm"]}), "model")
    read_origin = {"kind": "read", "entity": "loan/42", "position": position, "observations": [obs_id(won)]}
    facts: dict[str, tuple[Any, dict[str, Any]]] = {
        "score": (score, {**read_origin, "field": "score"}),
        "memo": (memo, {**read_origin, "field": "memo"}),
        "amount": (inputs["amount"], {"kind": "input", "name": "amount"}),
        "tier": (tier, {"kind": "tool", "span": f"{2:016x}", "path": "/a~1b/0/tier"}),
        "mood": ("calm", {"kind": "model", "span": f"{3:016x}", "path": "/mood/0", "by": "value"}),
        "desk": (rng.choice([None, True, {"x": 1}]), {"kind": "stated"}),
    }
    story.add("run.decided", decided(rng, 4, "risk", "decide", facts), "risk")
    few = {key: facts[key] for key in ("score", "amount")}
    story.add("run.decided", decided(rng, 5, "channels", "select", few), "channels")
    wrote = observation("decision_note/1", 50, fields={"text": "x"}, run=RUN, step=6, agent=OWNER)
    story.add("observation", wrote, "wrote")
    story.add("run.noted", step(7, text="noted"), "noted")
    story.add("run.ended", step(8, status="done", numbered=True), "ended")
    story.add("run.judged", {**step(3), "agent": "boss", "verdict": "good"}, "judged")
    story.add("tag", {}, "late", shown=False)
    return story


def decided(rng: Random, number: int, stage: str, mode: str, facts: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Return a decision on these facts: the first rule does not match, the last one does."""

    def conditions(wanted: Iterable[bool]) -> list[dict[str, Any]]:
        made = []
        for key, want in zip(facts, wanted, strict=False):
            made.append(condition(rng, key, facts[key][0], want, facts[key][1]))
        return made

    wants = [rng.random() < 0.5 for _ in facts]
    wants[rng.randrange(len(wants))] = False
    first = rule(conditions(wants), "rejected", rng.choice([None, "Bad"]), rng.random() < 0.5)
    last = rule(conditions([True] * len(facts)), rng.choice(["approved", {"to": [1]}]), rng.choice([None, "Good"]))
    body = step(number, stage=stage, mode=mode, default=False, rules=[first, last])
    body["facts"] = {key: value for key, (value, _) in facts.items()}
    body["facts_origin"] = {key: origin for key, (_, origin) in facts.items()}
    if mode == "select":
        body |= {"chosen": [last["chosen"]], "rule": [last.get("label")]}
        return body
    body["chosen"] = last["chosen"]
    if "label" in last:
        body["rule"] = last["label"]
    if rng.random() < 0.5:
        body |= {"untried": [{"chosen": "else", "when": {"score": {"gt": 1}}}], "otherwise": "manual"}
    return body


def values_of(
    story: Story, key: str, change: Callable[[Any], Any], labels: Iterable[str] = ("risk", "channels")
) -> None:
    """Change a fact and every actual of it in decisions."""
    for label in labels:
        body = story.body(label)
        if key in body["facts"]:
            body["facts"][key] = change(body["facts"][key])
        for each in body.get("rules", []):
            for told in each["conditions"]:
                if told["key"] == key and "actual" in told:
                    told["actual"] = change(told["actual"])


# Twists: honest alterations, each with the parts it lowers to


def hidden(story: Story, rng: Random) -> None:
    story.body("started")["redact"] = [rng.choice(["score", "SC*", "*core"])]
    story.body("read")["fields"]["score"]["value"] = REDACTED
    values_of(story, "score", lambda value: REDACTED)
    story.lower("hidden", "read", *story.decisions())


def cut_rightly(story: Story, rng: Random) -> None:
    story.body("read")["fields"]["memo"]["value"] = cut(story.body("won")["fields"]["memo"])


def cut_without_digest(story: Story, rng: Random) -> None:
    story.body("read")["fields"]["memo"]["value"] = cut("", None)
    values_of(story, "memo", lambda value: cut("", None), ["risk"])
    for each in story.body("risk").get("rules", []):
        for told in each["conditions"]:
            if told["key"] == "memo" and told["op"] == "not_in" and told["operand"] == []:
                told["operand"] = [1]
                each["when"]["memo"] = {"not_in": [1]}
    story.lower("cut", "read", "risk")


def collection(story: Story, rng: Random) -> None:
    field, listed = rng.choice([("flags", ["a", "b"]), ("notes", ["n"])])
    story.body("read")["fields"][field] = {"observation": obs_id(story.body("won")), "value": listed}
    if rng.random() < 0.3:
        left_out(story, rng)
        if story.claim["kind"] == "run":
            story.lower("collection", "read")


def left_out(story: Story, rng: Random) -> None:
    """What lost is left out, as the claim says, or does not say as older capsules do not."""
    story.draft("older").shown = False
    story.claim.pop("left_out")
    if rng.random() < 0.5:
        story.claim["left_out"] = [story.at["read"]]
    story.lower("winner", "read")


def contested(story: Story, rng: Random) -> None:
    """A later claim, or a correction of what is not shown, was withdrawn before the read."""
    later = observation("loan/42", 9, fields={"score": 1, "memo": "no"})
    if rng.random() < 0.5:
        later |= {"op": "correct", "replaces": ["obs_" + "a" * 52]}
        story.lower("named", "other")
    story.drafts[story.at["other"]] = Draft("observation", later)
    withdrawn = [name("observation", canonical(later))]
    story.drafts[story.at["spare"]] = Draft("observation", observation("loan/42", 10, op="retract", replaces=withdrawn))


def decided_before(story: Story, rng: Random) -> None:
    """A fact is what the run decided before, or another run, or one that was recalled."""
    desk = story.body("risk")["facts_origin"]["desk"]
    told = [each["origin"] for each in conditions(story, "risk") if each["key"] == "desk"]
    word = rng.choice(["decision", "recall"])
    origin = {"kind": "decision", "run": "run_x", "span": "0"}
    if word == "recall":
        origin = {"kind": "recall", "run": "run_x", "span": "0", "stage": "risk"}
    for each in [desk, *told]:
        each.clear()
        each.update(origin)
    story.lower(word, "risk")


def conditions(story: Story, label: str) -> list[dict[str, Any]]:
    """Return the conditions of a decision."""
    return [condition for each in story.body(label).get("rules", []) for condition in each["conditions"]]


def of_its_own(story: Story, rng: Random) -> None:
    """A fact of the second decision is what the first one chose."""
    body, first = story.body("channels"), story.body("risk")
    body["facts"]["risk"] = copy.deepcopy(first.get("chosen"))
    body["facts_origin"]["risk"] = {"kind": "decision", "run": RUN, "span": first["span"]}


def own_policy(story: Story, rng: Random) -> None:
    story.body("read")["fields"]["grade"] = {"observation": obs_id(story.body("won")), "value": "anything"}
    if story.claim["kind"] == "run":
        story.lower("policy", "read")


def hidden_by_schema(story: Story, rng: Random) -> None:
    story.body("read")["fields"]["pin"] = {"observation": obs_id(story.body("won")), "value": REDACTED}


def foreign(story: Story, rng: Random) -> None:
    story.body("read")["log"] = "log_elsewhere"
    story.draft("older").shown = False
    story.lower("foreign", "read")
    story.lower("winner", "read")


def merged_in(story: Story, rng: Random) -> None:
    for position in range(story.at["started"], story.at["late"]):
        story.drafts[position].origin = {"log": "log_elsewhere", "position": 1000 + position}
    story.draft("older").shown = False
    story.lower("foreign", "read")
    story.lower("winner", "read")
    story.lower("imported")


def joined(story: Story, rng: Random) -> None:
    story.renamed("won", lambda body: body["entity"].update(key="43"))
    story.drafts[story.at["spare"]] = Draft("observation", same_as("loan/42", "loan/43"))


def effective(story: Story, rng: Random) -> None:
    story.body("read")["effective"] = moment(rng.randrange(5, 9))
    story.body("read")["as_of"] = story.body("read")["position"]
    story.lower("effective", "read")
    story.lower("winner", "read")


def read_outside(story: Story, rng: Random) -> None:
    story.drafts[story.at["read"]] = Draft("run.noted", step(1, text="nothing was read"))
    story.draft("older").shown = False
    story.lower("read", *story.decisions())


def no_schema(story: Story, rng: Random) -> None:
    story.drafts[story.at["schema"]] = Draft("tag", {}, shown=False)
    del story.body("read")["schema"]


def later_schema(story: Story, rng: Random) -> None:
    changed = {"properties": {"score": {"x-woodrat-merge": "max"}}, "x-woodrat-version": 2}
    story.drafts[story.at["late"]] = Draft("schema", {"schema": changed, "type": TYPE}, shown=rng.random() < 0.5)


def erased(story: Story, rng: Random) -> None:
    """The score was erased: what named it is blank, and said again without it."""
    labels = ["won", "read", "risk", "channels"]
    positions = [story.at[label] for label in labels]
    body: dict[str, Any] = {"agent": "dpo", "erased_at": moment(200), "log": LOG, "reason": "art. 17", "scope": "field"}
    body |= {"macs": [], "names": [], "positions": [[each, each] for each in positions]}
    copies = {label: copy.deepcopy(story.body(label)) for label in labels}
    write = story.add("erasure", body, "erasure")
    for label in labels:
        story.draft(label).blank = True
        story.at["gone " + label] = story.at[label]
        story.add(story.draft(label).kind, copies[label], label, write=write)
        story.lower("erased", "gone " + label)
        story.lower("again", label)
    story.renamed("won", lambda body: body["fields"].pop("score"))
    story.body("read")["fields"]["score"]["value"] = ERASED
    values_of(story, "score", lambda value: ERASED)
    story.lower("erased", "read", *story.decisions())
    story.lower("winner", "read")


def choice(story: Story, rng: Random) -> None:
    for member in ("rules", "untried", "otherwise", "rule"):
        story.body("risk").pop(member, None)
    story.body("risk")["chosen"] = "whatever"
    story.lower("choice", "risk")


def predicate(story: Story, rng: Random) -> None:
    looked = {"key": "score", "origin": story.body("risk")["facts_origin"]["score"], "result": False}
    looked["actual"] = story.body("risk")["facts"]["score"]
    made = {"chosen": 1, "conditions": [looked], "matched": False, "predicate": "agents.angry"}
    story.body("risk")["rules"].insert(0, made)
    story.lower("predicate", "risk")


def matches(story: Story, rng: Random) -> None:
    told = condition(rng, "mood", "calm", False, story.body("risk")["facts_origin"]["mood"])
    story.body("risk")["rules"].insert(0, rule([{**told, "op": "matches", "operand": "^x"}], 1, None))
    story.lower("matches", "risk")


def unknown(story: Story, rng: Random) -> None:
    """A rule before the match could not be evaluated, and was skipped."""
    body = story.body("risk")
    ways: list[dict[str, Any]] = [{"key": "age", "op": "gt", "operand": 18, "origin": {"kind": "stated"}}]
    ways.append({"key": "age", "op": "ne", "operand": 18, "origin": {"kind": "input", "name": "age"}})
    ways.append({**ways[0], "origin": {"kind": "tool", "span": f"{2:016x}", "path": "/age"}})
    tier = {"key": "tier", "actual": body["facts"]["tier"], "origin": body["facts_origin"]["tier"]}
    ways += [{**tier, "op": "lt", "operand": "600"}, {**tier, "op": "in", "operand": 5}]
    made = rule([{**rng.choice(ways), "error": "cannot be compared"}], "rejected", "Young")
    body["rules"].insert(0, {**made, "unknown": True})
    body["on_missing"] = "skip"


def default(story: Story, rng: Random) -> None:
    body = story.body("risk")
    body["rules"].pop()
    for member in ("untried", "otherwise", "rule"):
        body.pop(member, None)
    body |= {"default": True, "chosen": "manual-review"}


def omitted(story: Story, rng: Random) -> None:
    told = {"key": "desk", "op": "eq", "operand": -1, "origin": {"kind": "stated"}, "result": False}
    told["actual"] = story.body("risk")["facts"]["desk"]
    story.body("risk")["rules"][:0] = [rule([told], number, None) for number in range(1000)]
    story.body("risk")["omitted"] = {rng.choice(["rules", "conditions"]): 7}
    story.lower("omitted", "risk")


def imported(story: Story, rng: Random) -> None:
    del story.body("ended")["numbered"]
    story.lower("steps")


def skipped(story: Story, rng: Random) -> None:
    story.drafts[story.at["noted"]] = Draft("tag", {}, shown=False)
    story.body("ended")["skipped"] = [7]
    story.lower("skipped", "ended")


def continued(story: Story, rng: Random) -> None:
    """Another process went on with the run; both took the same number."""
    story.body("noted")["data"] = {"event": rng.choice(["continued", "resumed"])}
    if rng.random() < 0.5:
        story.drafts[story.at["late"]] = Draft("run.noted", step(7, span="elsewhere", text="from elsewhere"))
        story.lower("steps")


def threaded(story: Story, rng: Random) -> None:
    """Two threads took steps, and the one that began later was recorded first."""
    read, noted = story.body("read"), story.body("noted")
    read["step"], noted["step"] = 2, 7
    story.body("tool")["step"] = 1
    story.drafts[story.at["late"]] = Draft("run.noted", {**noted, "after": read["span"]})
    story.drafts[story.at["noted"]] = Draft("tag", {}, shown=False)


def unended(story: Story, rng: Random) -> None:
    story.drafts[story.at["ended"]] = Draft("tag", {}, shown=False)
    story.lower("end")


def unserialisable(story: Story, rng: Random) -> None:
    mark = {"$unserialisable": {"type": "bytes", "repr": "b''"}}
    values_of(story, "desk", lambda value: mark, ["risk"])
    for each in story.body("risk").get("rules", []):
        for told in each["conditions"]:
            if told["key"] == "desk" and told["op"] != "exists":
                told |= {"op": "eq", "operand": None}
                each["when"]["desk"] = {"eq": None}
                story.lower("mark", "risk")


def inputs_cut(story: Story, rng: Random) -> None:
    story.body("started")["inputs"] = cut(story.body("started")["inputs"])
    story.lower("cut", *story.decisions())


def source_too_long(story: Story, rng: Random) -> None:
    story.draft("source").shown = False
    story.lower("source", "won")


Twist = Callable[[Story, Random], None]
READS: list[Twist | None] = [
    None, hidden, cut_rightly, cut_without_digest, collection, own_policy, hidden_by_schema, foreign, merged_in, joined,
    effective, read_outside, no_schema, later_schema, left_out, contested,
]  # fmt: skip
RULES: list[Twist | None] = [
    None, choice, predicate, matches, unknown, default, unserialisable, decided_before, of_its_own,
]  # fmt: skip
ENDS: list[Twist | None] = [None, None, imported, unended, skipped, continued, threaded]
OTHERS: list[Twist | None] = [None, None, inputs_cut, source_too_long, erased]


def honest_run(rng: Random) -> Story:
    """Tell a run with some twists."""
    story = run_story(rng)
    rules = omitted if rng.random() < 0.02 else rng.choice(RULES)
    # Rules come first: reads hide and cut what they say. What is erased stands for itself.
    last = rng.choice(OTHERS)
    reads = rng.choice(READS) if last is not erased else None
    for twist in (rules, reads, rng.choice(ENDS), last):
        if twist is not None:
            twist(story, rng)
            story.told.append(twist.__name__)
    return story


# Fields and observations


MEMBERS: list[dict[str, Any]] = [{}, {"s": 1}, {"s": True, "t": None}, {"t": [1], "": "x"}, {"s": {"n": "a"}}]
"""Members of objects, but for the one that tells them apart."""


BEYOND: list[dict[str, Any]] = [
    {"unevaluatedProperties": False},
    {"patternProperties": {"a": {}, "b": {}, "c": {}}},
    {"allOf": [{"anyOf": [{"maxLength": 9}] * 20}] * 10},
    {"not": {"$ref": "#/not/items"}},
    {"additionalProperties": {"enum": [1, 2]}},
    {"definitions": {"t": {"items": {"$dynamicRef": "#t"}}}},
]
"""Members of schemas that no verifier evaluates: nothing fits them, or they may lead back to themselves."""


def field_story(rng: Random, policy: Any = None, plain: bool = False) -> Story:
    """Tell a field: claims, corrections, retractions and markers on an entity or a group of two."""
    names = ["latest", "highest_priority", "first", "max", "min", "union", "sum", "append", "by_key", "own"]
    policy = policy or rng.choice(names)
    own = {"code": "0" * 64, "name": "mine", "version": 1}
    chosen: Any = {"own": own, "by_key": {"by_key": "n"}}.get(policy, policy)
    story = Story({"kind": "field", "entity": "loan/1", "field": "f", "misfits": []})
    story.add("tag", {}, shown=False)
    subschema: dict[str, Any] = {"x-woodrat-merge": chosen}
    limits: list[dict[str, Any]] = [
        {},
        {"type": ["integer", "array", "string"]},
        {"not": {"const": 3}},
        {"$ref": "#/$defs/d"},
        {"enum": [1, "a"], "oneOf": [{"enum": [3, "é"]}, {"not": {"$ref": "#/$defs/e"}}]},
        {"anyOf": [{"enum": [5]}, {"$ref": "#/$defs/e"}], "items": {"enum": ["b"]}},
    ]
    if not plain:
        subschema |= rng.choice([*limits, {"pattern": "x"}])
    schema = {
        "properties": {"f": subschema},
        "x-woodrat-version": 1,
        "$defs": {"d": {"anyOf": [{"maximum": 3}, {"maxItems": 3}]}, "e": {"enum": [3, "a", [1]], "maxItems": 2}},
    }
    if not plain and rng.random() < 0.1:
        schema |= rng.choice(BEYOND)
    shown = plain or rng.random() < 0.85
    if shown:
        story.add("schema", {"schema": schema, "type": TYPE}, "schema")
        story.claim["schema"] = "schema"
    else:
        story.lower("schema")
    entities = ["loan/1", "loan/2"] if rng.random() < 0.5 else ["loan/1"]
    if len(entities) == 2:
        story.add("observation", same_as(entities[0], entities[1]), "same_as")

    def value() -> Any:
        if policy in ("union", "append"):
            return [rng.choice(["a", "b", 1, None]) for _ in range(rng.randrange(3))] if rng.random() < 0.9 else "x"
        if policy == "by_key":
            found = [{"n": text, **rng.choice(MEMBERS)} for text in ("a", "é", "😀") if rng.random() < 0.5]
            broken = [{}, [*found, {"n": 1}], [*found, {"n": "a"}, {"n": "a"}], "x"]
            return found if plain or rng.random() < 0.9 else rng.choice(broken)
        if policy == "sum":
            return rng.choice([1, 5, -3, "0.10", "-2.5", "12", "x" if not plain else 2])
        return rng.choice([None, True, 1, 2.5, 3, "a", "é", [1], {"x": 1}])

    said_before: list[tuple[str, dict[str, Any]]] = []
    for number in range(rng.randrange(2, 8)):
        entity = rng.choice(entities)
        given: dict[str, Any] = {"fields": {"f": value()}, "priority": rng.randrange(3), "agent": rng.choice("xy")}
        draw = rng.random()
        ours = [(n, b) for n, b in said_before if b["entity"]["key"] == entity[-1]]
        if draw < 0.15 and policy in ("union", "by_key"):
            given["remove"] = {"f": ["a"]}
            if rng.random() < 0.5:
                del given["fields"]
        elif draw < 0.4 and said_before and number:
            given |= {
                "op": "correct",
                "replaces": sorted({rng.choice(said_before)[0] for _ in range(rng.randrange(1, 3))}),
            }
        elif draw < 0.55 and ours and number:
            given |= {"op": "retract", "replaces": [rng.choice(ours)[0]]}
            del given["fields"]
        elif draw < 0.62 and number > 1:
            given["op"] = rng.choice(["delete", "restore"])
            del given["fields"]
            markers = [n for n, b in ours if b["op"] in ("delete", "restore")]
            if markers:
                given["replaces"] = markers[-1:]
        body = observation(entity, rng.randrange(1, 6), **given)
        full = name("observation", canonical(body))
        if full not in [n for n, _ in said_before]:
            story.add("observation", body, f"o{number}")
            said_before.append((full, body))
    document = schema if shown else None
    observations = [said(at, d.body) for at, d in enumerate(story.drafts) if d.kind == "observation"]
    members = group("loan/1", observations)
    labels = {position: label for label, position in story.at.items()}
    rule_by = policy_of(document, "f")
    for one in observations:
        if one.entity in members and one.states("f"):
            fit = fits(document, "f", one.fields["f"]) if "f" in one.fields else removal_fits(document)
            if fit is None:
                story.lower("subschema")
            if fit is False or not takes(rule_by, one, "f"):
                story.claim["misfits"].append(labels[one.position])
    misfits = [story.at[label] for label in story.claim["misfits"]]
    fold = Fold(members, observations, "f", lambda one: one.position not in misfits)
    if is_own(rule_by):
        found = fold.value("latest")
        story.lower("policy")
    else:
        found = fold.value(rule_by)
    if not found:  # nothing can be claimed of it: tell another one
        return field_story(rng, policy, plain)
    story.claim["value"] = found[0]
    return story


def observation_story(rng: Random) -> Story:
    """Tell one observation, with where it came from."""
    run = run_story(rng)
    story = Story({"kind": "observation", "observation": name("observation", canonical(run.body("won")))})
    story.drafts, story.at = run.drafts, run.at
    for label in run.at:
        run.draft(label).shown = label in ("source", "received", "reading", "read-end", "won")
    if rng.random() < 0.3:
        source_too_long(story, rng)
    if rng.random() < 0.3:
        story.draft("reading").shown = False
        story.lower("interpretation", "won")
    return story


def honest(rng: Random) -> Story:
    """Tell any honest story."""
    return rng.choice([honest_run, honest_run, honest_run, field_story, field_story, observation_story])(rng)
