"""Forgeries: each takes an honest story or its document and spoils it, against one item of docs/formats/capsule.md."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.verifier import forge
from tests.verifier.forge import Draft, Story, cut, obs_id, observation, seal
from tests.verifier.plain_values import ERASED, REDACTED, canonical, name


class Forged(NamedTuple):
    """A file that lies, and what is expected of it: a code of refusal, or a part with `+` before it."""

    data: bytes
    expected: str
    key: str = forge.KEY
    against: str | None = None


class Forgery(NamedTuple):
    """A named way to forge."""

    item: str
    name: str
    make: Callable[[Random], Forged]


FORGERIES: list[Forgery] = []
Spoil = Callable[[Story, Random], None]
SpoilDocument = Callable[[dict[str, Any], Random], Any]
Make = Callable[[Story, Random], tuple[Any, ...]]


def on_story(
    item: str, expected: str, kind: str | None = None, base: Any = forge.run_story
) -> Callable[[Spoil], Spoil]:
    """Register a forgery that writes a lie into the log."""

    def register(spoil: Spoil) -> Spoil:
        def make(rng: Random) -> Forged:
            story = base(rng, kind) if kind else base(rng)
            spoil(story, rng)
            return Forged(seal(story.document()), expected)

        FORGERIES.append(Forgery(item, spoil.__name__, make))
        return spoil

    return register


def on_document(item: str, expected: str) -> Callable[[SpoilDocument], SpoilDocument]:
    """Register a forgery that spoils a capsule after it was made."""

    def register(spoil: SpoilDocument) -> SpoilDocument:
        def make(rng: Random) -> Forged:
            document = forge.run_story(rng).document()
            return Forged(spoil(document, rng) or seal(document), expected)

        FORGERIES.append(Forgery(item, spoil.__name__, make))
        return spoil

    return register


def on_file(item: str, expected: str) -> Callable[[Make], Make]:
    """Register a forgery that makes its own file: (data, and perhaps a key and a held note)."""

    def register(made: Make) -> Make:
        def make(rng: Random) -> Forged:
            data, *others = made(forge.run_story(rng), rng)
            key = others[0] if others and others[0] else forge.KEY
            return Forged(data, expected, key, others[1] if len(others) > 1 else None)

        FORGERIES.append(Forgery(item, made.__name__, make))
        return made

    return register


def several(register: Callable[[str, Any], Any], ways: dict[str, Any]) -> None:
    """Register many small forgeries by name."""
    for title, way in ways.items():
        way.__name__ = title
        register(title, way)


def conditions(story: Story, label: str = "risk", which: int = -1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = story.body(label)["rules"][which]["conditions"]
    return found


def last_of(story: Story, key: str = "score") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the condition on a fact in the matching rule of `risk`, as `gt`, and its `when`."""
    matching = story.body("risk")["rules"][-1]
    found = next(each for each in matching["conditions"] if each["key"] == key)
    return found, matching["when"]


# G


def wrong_key(story: Story, rng: Random) -> tuple[Any, ...]:
    signer, hashed, rest = forge.KEY.split("+", 2)
    bad = rng.choice(
        [
            f"{signer}+{'0' * 8}+{rest}",
            f"{signer}+{hashed}",
            "",
            f"a b+{hashed}+{rest}",
            f"{signer}+{hashed}+{rest[:-4]}",
        ]
    )
    return seal(story.document()), bad or " "


on_file("G1", "key")(wrong_key)
several(
    lambda title, way: on_document("G2", "form")(way),
    {
        "no_line_feed": lambda d, r: canonical(d),
        "spaces": lambda d, r: json.dumps(d).encode() + b"\n",
        "two_line_feeds": lambda d, r: seal(d) + b"\n",
        "not_utf8": lambda d, r: seal(d)[:-3] + b"\xff" + seal(d)[-3:],
        "too_deep": lambda d, r: seal({**d, "claim": json.loads("[" * 150 + "]" * 150)}),
        "key_twice": lambda d, r: b'{"a":1,"a":1}\n',
    },
)
several(
    lambda title, way: on_document("G3", "shape")(way),
    {
        "surplus_member": lambda d, r: d.update(more=1),
        "other_format": lambda d, r: d.update(format=r.choice([1, False, "0", None])),
        "other_word": lambda d, r: d.update(woodrat=r.choice(["proofs", 1, [], "consistency"])),
        "member_missing": lambda d, r: d.pop(r.choice(sorted(d))) and None,
    },
)
several(
    lambda title, way: on_document("G4", title.split("_")[0])(way),
    {
        "note_is_no_note": lambda d, r: d.update(checkpoint=r.choice(["", 5, None, "a\n\nb\n", d["checkpoint"][:-1]])),
        "signer_is_another": lambda d, r: d.update(
            checkpoint=d["checkpoint"].replace("— example.com/forge", "— example.com/x")
        ),
        "signature_is_of_another_text": lambda d, r: d.update(checkpoint="x" + d["checkpoint"]),
        "checkpoint_is_none": lambda d, r: d.update(
            checkpoint=forge.signed(r.choice(["a\n", "a\n01\nAA==\n", "a\n1\nAA==\n"]))
        ),
    },
)


@on_file("G5", "origin")
def two_origins(story: Story, rng: Random) -> tuple[Any, ...]:
    return (seal({**story.consistency(4), "to": story.note(len(story.drafts), origin="log_b")}),)


@on_file("G5", "shape")
def proof_is_no_list_of_hashes(story: Story, rng: Random) -> tuple[Any, ...]:
    return (seal({**story.consistency(4), "proof": rng.choice([None, ["x"], [1], "a" * 64, {}])}),)


@on_file("G5", "consistency")
def proof_leads_elsewhere(story: Story, rng: Random) -> tuple[Any, ...]:
    made = story.consistency(rng.randrange(1, 8))
    return (seal({**made, "from": story.note(3, b"x" * 32)}),)


@on_file("G6", "forked")
def held_at_the_older_end(story: Story, rng: Random) -> tuple[Any, ...]:
    size = rng.randrange(1, 9)
    return seal(story.consistency(size)), None, story.note(size, b"y" * 32)


@on_file("G6", "forked")
def held_root_is_another(story: Story, rng: Random) -> tuple[Any, ...]:
    return seal(story.document()), None, story.note(len(story.drafts), b"y" * 32)


@on_file("G6", "truncated")
def held_is_longer(story: Story, rng: Random) -> tuple[Any, ...]:
    file = rng.choice([story.document(), story.proof(3), story.consistency(5)])
    return seal(file), None, story.note(99, b"y" * 32)


@on_file("G6", "origin")
def held_is_of_another_log(story: Story, rng: Random) -> tuple[Any, ...]:
    return seal(story.document()), None, story.note(4, origin="log_b")


@on_file("G6", "+held")
def held_is_not_joined(story: Story, rng: Random) -> tuple[Any, ...]:
    file = rng.choice([story.document(), story.proof(3), story.consistency(5)])
    return seal(file), None, story.note(4, b"y" * 32)


@on_file("G6", "note")
def held_is_no_note(story: Story, rng: Random) -> tuple[Any, ...]:
    return seal(story.document()), None, "nothing"


several(
    lambda title, way: on_document("G7", title.split("_")[0])(way),
    {
        "shape_of_claim_surplus": lambda d, r: d["claim"].update(more=1),
        "shape_of_claim_kind": lambda d, r: d["claim"].update(kind=r.choice(["field", "x", None, []])),
        "shape_of_claim_run": lambda d, r: d["claim"].update(run=r.choice([1, None, ["a"]])),
        "shape_of_positions": lambda d, r: d["claim"]["positions"].reverse(),
        "shape_of_positions_typed": lambda d, r: d["claim"]["positions"].__setitem__(0, r.choice([True, 1.5, "1", -1])),
        "shape_of_claim": lambda d, r: d.update(claim=r.choice([None, [], "run"])),
        "shape_of_entries": lambda d, r: d.update(entries=r.choice([[], None, {}, [1], [{}], [{"position": True}]])),
        "order_of_entries": lambda d, r: d["entries"].reverse(),
        "entries_left_out": lambda d, r: d["entries"].pop(r.randrange(len(d["entries"]))) and None,
    },
)


@on_document("G8", "shape")
def entry_member_retyped(document: dict[str, Any], rng: Random) -> None:
    entry = rng.choice(document["entries"])
    member = rng.choice(sorted(set(entry) - {"position"}))
    entry[member] = rng.choice([7, True, [1], {"x": 1}] + (["x"] if member not in ("log",) else []))


@on_document("G8", "shape")
def entry_member_missing(document: dict[str, Any], rng: Random) -> None:
    entry = rng.choice(document["entries"])
    del entry[rng.choice(sorted(set(entry) - {"position"}))]


@on_document("G8", "shape")
def envelope_spoiled(document: dict[str, Any], rng: Random) -> None:
    envelope = rng.choice(document["entries"])["envelope"]
    envelope.update(
        rng.choice(
            [{"write": 999}, {"write": True}, {"origin": {}}, {"more": 1}, {"origin": {"log": "a", "position": -1}}]
        )
    )


@on_document("G9", "body")
def body_changed(document: dict[str, Any], rng: Random) -> None:
    rng.choice([e for e in document["entries"] if e["kind"] != "source"])["body"]["more"] = 1


@on_document("G9", "body")
def nonce_changed(document: dict[str, Any], rng: Random) -> None:
    rng.choice(document["entries"])["nonce"] = "0" * 32


@on_document("G10", "inclusion")
def header_changed(document: dict[str, Any], rng: Random) -> None:
    entry = rng.choice(document["entries"])
    entry.update(rng.choice([{"log": "log_b"}, {"recorded_at": forge.moment(7777)}, {"proof": entry["proof"][1:]}]))


@on_story("G11", "order")
def clock_goes_back(story: Story, rng: Random) -> None:
    story.draft(rng.choice(["read", "risk", "ended"])).recorded = rng.choice([0, story.at["started"]])


@on_story("G11", "order")
def clock_stands_still(story: Story, rng: Random) -> None:
    story.draft("risk").recorded = story.at["model"]


@on_story("G11", "order")
def write_overlaps_others(story: Story, rng: Random) -> None:
    story.draft(rng.choice(["started", "read", "risk"])).length = rng.choice([2, 3, 1000])


@on_story("G11", "order")
def entry_beyond_its_write(story: Story, rng: Random) -> None:
    story.draft("source").length = 1


@on_story("G11", "order")
def write_goes_around_another(story: Story, rng: Random) -> None:
    story.draft("risk").write = story.at["read"]


@on_story("G11", "order")
def one_write_at_two_times(story: Story, rng: Random) -> None:
    story.draft("received").recorded = story.at["received"]


# B


@on_story("B1", "shape")
def body_member_surplus(story: Story, rng: Random) -> None:
    labels = [
        "schema",
        "won",
        "started",
        "read",
        "tool",
        "model",
        "risk",
        "channels",
        "noted",
        "ended",
        "judged",
        "wrote",
    ]
    story.body(rng.choice(labels))["more"] = rng.choice([1, None])


@on_story("B1", "shape")
def body_member_retyped(story: Story, rng: Random) -> None:
    members = {
        "read": "fields found position entity",
        "risk": "rules facts default stage mode omitted facts_origin",
        "ended": "skipped numbered step",
        "started": "inputs agent redact",
        "wrote": "entity op step",
        "schema": "schema",
        "judged": "run",
    }
    label, member = rng.choice([(label, member) for label in members for member in members[label].split()])
    story.body(label)[member] = rng.choice([-2, 1.5, [True], [[]]])


@on_story("B1", "shape")
def rule_or_condition_misshapen(story: Story, rng: Random) -> None:
    first = story.body("risk")["rules"][0]
    told = first["conditions"][0]
    ways: list[Callable[[], Any]] = [
        lambda: first.update(predicate="p"),
        lambda: first.pop("when"),
        lambda: first.update(unknown=False),
        lambda: first.update(conditions={}),
        lambda: told.pop("operand"),
        lambda: told.update(result="yes"),
        lambda: told.update(origin={"kind": "dream"}),
        lambda: told.update(origin={"kind": "stated", "by": "value"}),
        lambda: told.update(more=1),
    ]
    rng.choice(ways)()


@on_story("B2", "erased")
def blank_without_erasure(story: Story, rng: Random) -> None:
    story.draft(rng.choice(["won", "schema", "noted", "tool", "ended", "source"])).blank = True


@on_story("B2", "erased")
def erasure_names_another(story: Story, rng: Random) -> None:
    forge.erased(story, rng)
    body = story.body("erasure")
    body["positions"] = [each for each in body["positions"] if each[0] != story.at["gone risk"]]


@on_story("B2", "erased")
def erasure_of_another_log(story: Story, rng: Random) -> None:
    forge.erased(story, rng)
    story.body("erasure")["log"] = "log_b"


@on_story("B1", "surplus")
def observation_shown_twice(story: Story, rng: Random) -> None:
    story.add("observation", copy.deepcopy(story.body("won")))


@on_story("B5", "surplus")
def surplus_entry(story: Story, rng: Random) -> None:
    bodies: list[tuple[str, Any]] = [
        ("observation", observation("loan/42", 9, fields={"score": 1})),
        ("observation", observation("contact/9", 9, fields={"score": 1})),
        ("schema", {"schema": {"x-woodrat-version": 1}, "type": "contact"}),
        ("tag", {}),
        ("source", b"x"),
        ("received", {"agent": "a", "name": "a", "received_at": "", "source": "src_x"}),
        ("interpretation.ended", {"interpretation": "int_b", "ended_at": "", "status": ""}),
        (
            "erasure",
            {
                "agent": "a",
                "erased_at": "",
                "log": "a",
                "reason": "",
                "scope": "",
                "positions": [],
                "macs": [],
                "names": [],
            },
        ),
        ("observation", forge.same_as("contact/1", "contact/2")),
    ]
    story.drafts[story.at["late"]] = Draft(*rng.choice(bodies))


@on_story("B4", "+source")
def source_left_out(story: Story, rng: Random) -> None:
    story.draft("source").shown = False


# O and F


def observation_base(rng: Random) -> Story:
    return forge.observation_story(rng)


@on_story("O1", "claim", base=observation_base)
def another_observation_is_claimed(story: Story, rng: Random) -> None:
    story.claim["observation"] = name("observation", canonical(story.body("other")))


def winner_base(rng: Random) -> Story:
    """Tell a plain field: an old value, the winner, and what was stated of another entity."""
    story = Story({"kind": "field", "entity": "loan/1", "field": "f", "misfits": [], "value": 580, "schema": "schema"})
    story.add("tag", {}, "early", shown=False)
    properties = {"f": {"type": "integer"}, "own": {"x-woodrat-merge": {"code": "", "name": "", "version": 1}}}
    story.add("schema", {"schema": {"properties": properties, "x-woodrat-version": 1}, "type": "loan"}, "schema")
    story.add("observation", observation("loan/1", 1, fields={"f": 700}), "old")
    story.add("observation", observation("loan/1", 2, fields={"f": 580}, priority=rng.randrange(3)), "won")
    story.add("observation", observation("loan/1", 9, fields={"f": "high"}), "aside")
    story.claim["misfits"] = ["aside"]
    story.add("tag", {}, "late", shown=False)
    return story


@on_story("F1", "schema", base=winner_base)
def schema_not_named(story: Story, rng: Random) -> None:
    del story.claim["schema"]


@on_story("F1", "schema", base=winner_base)
def later_schema_passed_over(story: Story, rng: Random) -> None:
    later = {"schema": {"properties": {"f": {"x-woodrat-merge": "max"}}, "x-woodrat-version": 2}, "type": "loan"}
    story.drafts[story.at["late"]] = Draft("schema", later)


@on_story("F1", "schema", base=winner_base)
def schema_of_another_type(story: Story, rng: Random) -> None:
    story.body("schema")["type"] = "contact"


@on_story("F1", "+schema", base=winner_base)
def schema_dropped(story: Story, rng: Random) -> None:
    story.draft("schema").shown = False
    del story.claim["schema"]
    story.claim |= {"value": "high", "misfits": []}


@on_story("F2", "schema", base=winner_base)
def policy_unknown(story: Story, rng: Random) -> None:
    story.body("schema")["schema"]["properties"]["f"]["x-woodrat-merge"] = rng.choice(
        ["newest", 1, None, {"name": "x"}]
    )


@on_story("F3", "surplus", base=winner_base)
def observation_of_another_entity(story: Story, rng: Random) -> None:
    story.body("won")["entity"]["key"] = "2"
    story.claim["value"] = 700


@on_story("F4", "+named", base=winner_base)
def replaced_is_not_shown(story: Story, rng: Random) -> None:
    story.body("won").update(op="correct", replaces=["obs_" + "a" * 52])


@on_story("F5", "claim", base=winner_base)
def winner_declared_a_misfit(story: Story, rng: Random) -> None:
    story.claim |= {"misfits": ["won", "aside"], "value": 700}


@on_story("F5", "claim", base=winner_base)
def misfit_passed_over(story: Story, rng: Random) -> None:
    story.claim |= {"misfits": [], "value": "high"}


@on_story("F5", "claim", base=winner_base)
def misfit_is_no_claim(story: Story, rng: Random) -> None:
    story.claim["misfits"] = ["schema", "aside"]


@on_story("F5", "+subschema", base=winner_base)
def subschema_not_evaluated(story: Story, rng: Random) -> None:
    story.body("schema")["schema"]["properties"]["f"]["pattern"] = "x"
    story.claim |= {"misfits": ["won", "aside"], "value": 700}


@on_story("F5", "+subschema", base=winner_base)
def schema_beyond_its_limits(story: Story, rng: Random) -> None:
    story.body("schema")["schema"] |= rng.choice(forge.BEYOND)
    story.claim |= rng.choice([{"misfits": ["aside"]}, {"misfits": [], "value": "high"}])


@on_story("F6", "claim", base=winner_base)
def another_value(story: Story, rng: Random) -> None:
    story.claim["value"] = rng.choice([700, 581, "580", None, "high"])


@on_story("F6", "claim", base=winner_base)
def winner_dropped(story: Story, rng: Random) -> None:
    story.draft("won").shown = False


@on_story("F6", "claim", base=winner_base)
def winner_retracted(story: Story, rng: Random) -> None:
    named = [name("observation", canonical(story.body("won")))]
    story.drafts[story.at["late"]] = Draft("observation", observation("loan/1", 9, op="retract", replaces=named))


@on_story("F6", "claim", base=winner_base)
def entity_deleted(story: Story, rng: Random) -> None:
    story.drafts[story.at["late"]] = Draft("observation", observation("loan/1", 9, op="delete"))


def collection_base(rng: Random) -> Story:
    return forge.field_story(
        rng, rng.choice(["union", "by_key", "sum", "append", "max", "min", "first", "highest_priority"]), plain=True
    )


@on_story("F6", "claim", base=collection_base)
def another_merged_value(story: Story, rng: Random) -> None:
    value = story.claim["value"]
    story.claim["value"] = [*value, "forged"] if isinstance(value, list) else [value, 1]


@on_story("B2", "erased", base=winner_base)
def winner_blanked(story: Story, rng: Random) -> None:
    story.draft("won").blank = True
    story.claim["value"] = 700


# S


@on_story("S1", "claim")
def start_left_out(story: Story, rng: Random) -> None:
    story.draft("started").shown = False


@on_story("S1", "claim")
def left_out_of_what_is_no_read(story: Story, rng: Random) -> None:
    story.claim["left_out"] = [story.at[rng.choice(["tool", "started", "late"])]]


@on_story("S2", "foreign")
def step_of_another_agent(story: Story, rng: Random) -> None:
    story.body(rng.choice(["read", "tool", "model", "risk", "channels", "noted", "ended"]))["agent"] = "mallory"


@on_story("S2", "foreign")
def step_of_another_run(story: Story, rng: Random) -> None:
    story.body(rng.choice(["read", "tool", "risk", "noted", "ended", "judged"]))["run"] = "run_x"


@on_story("S3", "claim", "decision")
def stage_that_was_not_decided(story: Story, rng: Random) -> None:
    story.claim["stage"] = "other"


@on_story("S4", "+end")
def end_left_out(story: Story, rng: Random) -> None:
    story.draft("ended").shown = False


@on_story("S5", "steps")
def step_left_out(story: Story, rng: Random) -> None:
    story.draft(rng.choice(["tool", "model", "channels", "noted", "wrote"])).shown = False


@on_story("S5", "steps", "decision")
def second_decision_left_out(story: Story, rng: Random) -> None:
    story.body("channels")["stage"] = "risk"
    story.draft("channels").shown = False


@on_story("S5", "steps")
def two_starts(story: Story, rng: Random) -> None:
    story.drafts[story.at["spare"]] = Draft("run.started", forge.step(0, inputs={"amount": 1}))


@on_story("S5", "steps")
def step_written_by_another(story: Story, rng: Random) -> None:
    story.body("wrote")["agent"] = "mallory"


def renumbered(story: Story, **numbers: int) -> None:
    """Give entries of the run other numbers."""
    for label, number in numbers.items():
        story.body(label)["step"] = number


@on_story("S6", "steps")
def two_decisions_of_one_number(story: Story, rng: Random) -> None:
    renumbered(story, channels=4, wrote=5, noted=6, ended=7)
    story.body("channels").update(
        rng.choice([{"stage": "risk"}, {"stage": "risk", "span": story.body("risk")["span"]}, {}])
    )


@on_story("S6", "steps")
def two_results_of_one_call(story: Story, rng: Random) -> None:
    again = copy.deepcopy(story.body("tool"))
    again["result"]["a/b"][0]["tier"] = 777_777
    story.drafts[story.at["late"]] = Draft("run.tool", again)


@on_story("S6", "steps")
def step_beyond_the_end(story: Story, rng: Random) -> None:
    story.drafts[story.at["late"]] = Draft("run.tool", forge.step(rng.choice([9, 99]), name="pay", result={}))


@on_story("S6", "+steps")
def number_twice_in_a_run_that_was_continued(story: Story, rng: Random) -> None:
    story.body("noted")["data"] = {"event": "continued"}
    story.drafts[story.at["late"]] = Draft("run.noted", forge.step(7, span="elsewhere", text="again"))


@on_story("S7", "steps")
def decision_numbered_before_its_read(story: Story, rng: Random) -> None:
    renumbered(story, read=4, risk=1)


@on_story("S7", "steps")
def steps_numbered_out_of_order(story: Story, rng: Random) -> None:
    renumbered(story, risk=5, channels=4)


@on_story("S7", "steps")
def beginning_after_the_decisions(story: Story, rng: Random) -> None:
    story.drafts[story.at["late"]] = story.drafts[story.at["started"]]
    story.drafts[story.at["started"]] = Draft("tag", {}, shown=False)


@on_story("S8", "+skipped")
def call_left_out_as_skipped(story: Story, rng: Random) -> None:
    story.drafts[story.at["noted"]] = Draft("run.tool", forge.step(7, name="pay", result={}), shown=False)
    story.body("ended")["skipped"] = [7]


def all_merged_in(story: Story) -> None:
    for draft in story.drafts[story.at["started"] :]:
        draft.origin = {"log": "log_elsewhere", "position": 7}
    story.draft("older").shown = False


@on_story("S9", "+imported")
def evidence_after_the_decision_and_merged_in(story: Story, rng: Random) -> None:
    """A tool result, a decision or the inputs stand after the decision that uses them."""
    label = rng.choice(["tool", "started", "risk"])
    if label == "risk":
        forge.of_its_own(story, rng)
    story.draft(label).origin = {"log": "log_elsewhere", "position": 7}
    story.drafts[story.at["late"]] = story.drafts[story.at[label]]
    story.drafts[story.at[label]] = Draft("tag", {}, shown=False)


@on_story("S10", "evidence")
def nothing_found_and_fields(story: Story, rng: Random) -> None:
    story.body("read")["found"] = False


# R


def read_field(story: Story, field: str = "score") -> dict[str, Any]:
    found: dict[str, Any] = story.body("read")["fields"][field]
    return found


@on_story("R1", "evidence", "run")
def read_without_place(story: Story, rng: Random) -> None:
    del story.body("read")[rng.choice(["entity", "position"])]


@on_story("R2", "+foreign")
def read_of_another_log(story: Story, rng: Random) -> None:
    story.body("read")["log"] = "log_b"
    story.draft("older").shown = False


@on_story("R3", "evidence")
def read_of_a_position_not_yet_there(story: Story, rng: Random) -> None:
    at = rng.choice([story.at["read"], story.at["risk"], 9999])
    story.body("read")["position"] = at
    for label in ("risk", "channels"):
        body = story.body(label)
        told = [each["origin"] for rule in body["rules"] for each in rule["conditions"]]
        for origin in [*told, *body["facts_origin"].values()]:
            if origin["kind"] == "read":
                origin["position"] = at


@on_story("R3", "evidence")
def as_of_is_another(story: Story, rng: Random) -> None:
    story.body("read")["as_of"] = 3


@on_story("R4", "schema")
def schema_left_out(story: Story, rng: Random) -> None:
    story.draft("schema").shown = False


@on_story("R4", "schema")
def read_names_no_schema(story: Story, rng: Random) -> None:
    del story.body("read")["schema"]


@on_story("R4", "schema")
def read_names_a_later_schema(story: Story, rng: Random) -> None:
    changed = {"schema": {"properties": {"score": {"x-woodrat-merge": "max"}}, "x-woodrat-version": 2}, "type": "loan"}
    story.drafts[story.at["late"]] = Draft("schema", changed)
    story.body("read")["schema"] = name("schema", canonical(changed))


@on_story("R4", "schema")
def read_passes_over_a_schema(story: Story, rng: Random) -> None:
    changed = {"schema": {"properties": {}, "x-woodrat-version": 2}, "type": "loan"}
    story.drafts[story.at["spare"]] = Draft("schema", changed)


@on_story("R5", "schema")
def read_under_an_unknown_policy(story: Story, rng: Random) -> None:
    story.claim["left_out"] = [story.at["read"]]
    story.renamed(
        "schema", lambda b: b["schema"]["properties"]["score"].update({"x-woodrat-merge": rng.choice(["newest", 7])})
    )


@on_story("R6", "evidence")
def read_cites_nothing(story: Story, rng: Random) -> None:
    del read_field(story)["observation"]


@on_story("R6", "evidence")
def read_shows_no_value(story: Story, rng: Random) -> None:
    del read_field(story)["value"]


@on_story("R6", "evidence")
def one_winner_with_several(story: Story, rng: Random) -> None:
    own = read_field(story)["observation"]
    read_field(story)["observations"] = rng.choice([[], [own], [own, own]])


@on_story("R7", "evidence")
def read_cites_another_entity(story: Story, rng: Random) -> None:
    story.renamed("won", lambda body: body["entity"].update(key="43"))


@on_story("R7", "evidence")
def read_cites_a_later_observation(story: Story, rng: Random) -> None:
    later = observation("loan/42", 7, fields=story.body("won")["fields"])
    story.drafts[story.at["late"]] = Draft("observation", later)
    read_field(story)["observation"] = obs_id(later)


@on_story("R7", "evidence")
def read_cites_what_is_not_shown(story: Story, rng: Random) -> None:
    read_field(story)["observation"] = rng.choice([obs_id(story.body("older")), "obs_x"])


@on_story("R7", "evidence")
def read_cites_what_is_not_yet_valid(story: Story, rng: Random) -> None:
    story.body("read")["effective"] = forge.moment(4)


@on_story("R7", "evidence")
def read_cites_a_field_not_stated(story: Story, rng: Random) -> None:
    story.renamed("won", lambda body: body["fields"].pop("score"))


@on_story("R8", "evidence")
def read_of_another_value(story: Story, rng: Random) -> None:
    read_field(story)["value"] += 100


@on_story("R8", "evidence", "run")
def read_of_another_value_that_no_decision_uses(story: Story, rng: Random) -> None:
    story.renamed("won", lambda body: body["fields"].update(desk=1))
    story.body("read")["fields"]["desk"] = {
        "observation": obs_id(story.body("won")),
        "value": rng.choice([2, "1", None]),
    }


@on_story("R8", "evidence")
def read_hidden_without_a_pattern(story: Story, rng: Random) -> None:
    read_field(story)["value"] = REDACTED


@on_story("R8", "evidence")
def read_cut_with_another_digest(story: Story, rng: Random) -> None:
    read_field(story)["value"] = cut(700)


@on_story("R8", "evidence")
def read_erased_without_an_erasure(story: Story, rng: Random) -> None:
    read_field(story)["value"] = ERASED


@on_story("R8", "evidence")
def read_of_a_misfit(story: Story, rng: Random) -> None:
    story.renamed("schema", lambda b: b["schema"]["properties"]["score"].update(maximum=10))


@on_story("R9", "evidence", "run")
def collection_with_an_element_nobody_stated(story: Story, rng: Random) -> None:
    story.claim["left_out"] = [story.at["read"]]
    field = rng.choice(["flags", "notes"])
    second = observation("loan/42", 3, fields={field: ["c"]})
    story.drafts[story.at["spare"]] = Draft("observation", second)
    both = [obs_id(story.body("won")), obs_id(second)]
    story.body("read")["fields"][field] = {"observation": both[0], "observations": both, "value": ["c", "forged"]}


@on_story("R9", "evidence", "run")
def collection_of_one_observation_with_another_element(story: Story, rng: Random) -> None:
    story.claim["left_out"] = [story.at["read"]]
    field = rng.choice(["flags", "notes"])
    second = observation("loan/42", 3, fields={field: ["c"]})
    story.drafts[story.at["spare"]] = Draft("observation", second)
    story.body("read")["fields"][field] = {"observation": obs_id(second), "value": ["forged"]}


@on_story("R10", "+subschema")
def read_by_a_schema_beyond_its_limits(story: Story, rng: Random) -> None:
    story.renamed("schema", lambda body: body["schema"].update(rng.choice(forge.BEYOND)))


@on_story("R10", "evidence")
def loser_cited_beside_the_winner(story: Story, rng: Random) -> None:
    story.renamed("older", lambda body: body.update(rng.choice([{"observed_at": forge.moment(6)}, {"priority": 1}])))
    story.renamed("older", lambda body: body.update(observed_at=max(body["observed_at"], forge.moment(5))))


def full_name(story: Story, label: str) -> str:
    return name("observation", canonical(story.body(label)))


@on_story("R10", "evidence")
def loser_cited_beside_its_correction(story: Story, rng: Random) -> None:
    fields = {"score": 1, "memo": "other"}
    correction = observation("loan/42", rng.choice([1, 9]), op="correct", fields=fields)
    correction["replaces"] = [full_name(story, "won")]
    story.drafts[story.at["spare"]] = Draft("observation", correction)


@on_story("R10", "evidence")
def withdrawn_cited_beside_its_retraction(story: Story, rng: Random) -> None:
    undo: dict[str, Any] = {"op": "retract", "replaces": [full_name(story, "won")]}
    story.drafts[story.at["spare"]] = Draft("observation", observation("loan/42", 9, **undo))


@on_story("R10", "evidence")
def deleted_entity_read(story: Story, rng: Random) -> None:
    story.drafts[story.at["spare"]] = Draft("observation", observation("loan/42", 9, op="delete"))


@on_story("R10", "evidence")
def joined_entity_has_the_winner(story: Story, rng: Random) -> None:
    story.draft("other").shown = True
    story.drafts[story.at["spare"]] = Draft("observation", forge.same_as("loan/42", "loan/43"))


@on_story("R10", "evidence", "run")
def collection_merges_to_another_value(story: Story, rng: Random) -> None:
    field, wrong = rng.choice([("flags", ["a"]), ("flags", ["b", "a"]), ("notes", []), ("notes", ["n", "n"])])
    story.body("read")["fields"][field] = {"observation": obs_id(story.body("won")), "value": wrong}


@on_story("R10", "evidence", "run")
def own_policy_passed_over_a_correction(story: Story, rng: Random) -> None:
    forge.own_policy(story, rng)
    correction = observation("loan/42", 9, op="correct", fields={"grade": "A"}, replaces=[full_name(story, "won")])
    story.drafts[story.at["spare"]] = Draft("observation", correction)


@on_story("R10", "+winner")
def losers_left_out(story: Story, rng: Random) -> None:
    forge.left_out(story, rng)


@on_story("R10", "+effective")
def read_by_what_was_true(story: Story, rng: Random) -> None:
    forge.effective(story, rng)


@on_story("R10", "+subschema")
def claims_not_evaluated(story: Story, rng: Random) -> None:
    story.renamed("schema", lambda body: body["schema"]["properties"]["score"].update(multipleOf=7))


# D


@on_story("D1", "decision")
def rules_without_facts(story: Story, rng: Random) -> None:
    del story.body("risk")[rng.choice(["facts", "facts_origin"])]


@on_story("D2", "decision")
def no_rules_and_some_omitted(story: Story, rng: Random) -> None:
    story.body("risk").update(rules=[], omitted={"rules": 1}, default=False, chosen="anything")


@on_story("D2", "decision")
def omitted_conditions_hide_a_false_one(story: Story, rng: Random) -> None:
    first = story.body("risk")["rules"][0]
    first["conditions"] = [each for each in first["conditions"] if each["result"]]
    story.body("risk").update(omitted={"conditions": 1}, rules=[first], chosen=first["chosen"])
    first["matched"] = True


@on_story("D2", "decision")
def omitted_though_few(story: Story, rng: Random) -> None:
    story.body("risk")["omitted"] = {rng.choice(["rules", "conditions"]): 1}


@on_story("D6", "decision")
def many_conditions_and_a_false_one_hidden(story: Story, rng: Random) -> None:
    forge.omitted(story, rng)
    body = story.body("risk")
    body["omitted"] = {"conditions": 1}
    found, when = last_of(story, "amount")
    body["rules"][-1]["conditions"].remove(found)
    when["amount"] = {"eq": -5}


@on_story("D3", "decision")
def condition_dropped(story: Story, rng: Random) -> None:
    conditions(story).pop()


@on_story("D3", "decision")
def condition_twice(story: Story, rng: Random) -> None:
    conditions(story).append(copy.deepcopy(conditions(story)[0]))


@on_story("D3", "decision")
def when_says_more(story: Story, rng: Random) -> None:
    story.body("risk")["rules"][-1]["when"]["age"] = {"exists": False}


@on_story("D3", "decision")
def when_hidden_without_a_pattern(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    when["score"] = REDACTED
    found.update(op="gt", operand=REDACTED)


@on_story("D4", "decision")
def operator_unknown(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    found["op"] = "less_than"
    when["score"] = {"less_than": found["operand"]}


@on_story("D4", "decision")
def operand_is_another(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    found |= {"op": "gte", "operand": 1}
    when["score"] = {"gte": 5000}


@on_story("D4", "decision")
def operand_is_another_with_the_same_result(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    found |= {"op": "gte", "operand": 1}
    when["score"] = {"gte": 2}


@on_story("D5", "decision")
def result_is_another(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    found |= {"op": "gt", "operand": 5000}
    when["score"] = {"gt": 5000}


@on_story("D5", "decision")
def unknown_said_to_hold(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    found |= {"op": "lt", "operand": "600"}
    when["score"] = {"lt": "600"}


@on_story("D5", "decision")
def result_and_error(story: Story, rng: Random) -> None:
    last_of(story)[0]["error"] = "no"


@on_story("D5", "decision")
def exists_of_what(story: Story, rng: Random) -> None:
    found, when = last_of(story)
    found |= {"op": "exists", "operand": 1}
    when["score"] = {"exists": 1}


@on_story("D6", "decision")
def rule_said_to_match(story: Story, rng: Random) -> None:
    body = story.body("risk")
    body["rules"] = body["rules"][:1]
    body["rules"][0]["matched"] = True
    body["chosen"] = body["rules"][0]["chosen"]


@on_story("D6", "decision")
def rule_said_not_to_match(story: Story, rng: Random) -> None:
    forge.default(story, rng)
    told = forge.rule(
        [forge.condition(rng, "desk", story.body("risk")["facts"]["desk"], True, {"kind": "stated"})], 1, None
    )
    story.body("risk")["rules"].append({**told, "matched": False})


@on_story("D6", "decision")
def matched_and_unknown(story: Story, rng: Random) -> None:
    story.body("risk")["rules"][-1]["unknown"] = True
    story.body("risk")["on_missing"] = "skip"


@on_story("D7", "+predicate")
def rule_is_code(story: Story, rng: Random) -> None:
    forge.predicate(story, rng)


@on_story("D8", "decision")
def chosen_is_another(story: Story, rng: Random) -> None:
    story.body("risk")["chosen"] = rng.choice(["forged", REDACTED, ERASED, cut("forged"), None])


@on_story("D8", "decision")
def default_is_another(story: Story, rng: Random) -> None:
    story.body("risk")["default"] = True


@on_story("D8", "decision")
def unknown_without_skip(story: Story, rng: Random) -> None:
    forge.unknown(story, rng)
    del story.body("risk")["on_missing"]


@on_story("D8", "decision")
def label_is_another(story: Story, rng: Random) -> None:
    story.body("risk")["rule"] = rng.choice(["forged", ["Good"]])


@on_story("D8", "decision")
def match_is_not_the_last(story: Story, rng: Random) -> None:
    story.body("risk")["rules"].reverse()


@on_story("D8", "decision", "run")
def select_chose_another(story: Story, rng: Random) -> None:
    story.body("channels")["chosen"] = rng.choice(["approved", [], ["forged"]])


@on_story("D8", "decision")
def default_with_more(story: Story, rng: Random) -> None:
    forge.default(story, rng)
    story.body("risk").update(rng.choice([{"untried": []}, {"otherwise": 1}]))


@on_story("D8", "decision", "decision")
def another_stage_contradicts_itself(story: Story, rng: Random) -> None:
    story.body("channels")["chosen"] = ["forged"]


@on_story("D9", "+cut")
def facts_or_origins_cut_away(story: Story, rng: Random) -> None:
    story.body("risk")[rng.choice(["facts", "facts_origin", "untried"])] = {"$truncated": {"digest": "0" * 64}}


@on_story("D9", "evidence")
def fact_without_origin(story: Story, rng: Random) -> None:
    story.body("risk")["facts"]["new"] = 1


@on_story("D9", "evidence")
def fact_is_not_the_actual(story: Story, rng: Random) -> None:
    story.body("risk")["facts"]["desk"] = "another"


@on_story("D9", "evidence")
def origin_of_condition_is_another(story: Story, rng: Random) -> None:
    last_of(story)[0]["origin"] = {"kind": "stated"}


def all_of(story: Story, key: str, value: Any) -> None:
    """Lie about a fact throughout: the rules are true of the lie."""
    forge.values_of(story, key, lambda old: value, ["risk"])
    for rule in story.body("risk")["rules"]:
        for each in rule["conditions"]:
            if each["key"] == key:
                each |= {"op": "eq", "operand": value if each["result"] else "else"}
                rule["when"][key] = {"eq": each["operand"]}


def lie(title: str, key: str, spoil: Callable[[Story], Any]) -> None:
    """Register a decision on a value that its origin does not say."""

    def lying(story: Story, rng: Random) -> None:
        all_of(story, key, 777_777)
        spoil(story)

    lying.__name__ = title
    on_story("D10", "evidence")(lying)


for _key in ("score", "memo", "amount", "tier", "mood"):
    lie(f"lie_about_{_key}", _key, lambda story: None)
lie("lie_and_hide_the_input", "amount", lambda story: story.body("started")["inputs"].update(amount=REDACTED))
lie("lie_and_cut_the_input", "amount", lambda story: story.body("started")["inputs"].update(amount=cut(1)))
lie("lie_and_hide_the_result", "tier", lambda story: story.body("tool")["result"]["a/b"][0].update(tier=REDACTED))
lie("lie_and_cut_the_result", "tier", lambda story: story.body("tool")["result"]["a/b"][0].update(tier=cut(1)))
lie("lie_and_hide_the_response", "mood", lambda story: story.body("model").update(response={"mood": [REDACTED]}))
lie("lie_and_cut_the_response", "mood", lambda story: story.body("model").update(response={"mood": [cut("calm")]}))


@on_story("D10", "evidence")
def read_hidden_and_the_condition_says_otherwise(story: Story, rng: Random) -> None:
    story.body("started")["redact"] = ["score"]
    read_field(story)["value"] = REDACTED
    all_of(story, "score", 777_777)


@on_story("D10", "evidence")
def read_cut_and_the_condition_says_otherwise(story: Story, rng: Random) -> None:
    read_field(story)["value"] = cut(None, None)
    all_of(story, "score", 777_777)


@on_story("D10", "evidence")
def origin_names_no_place(story: Story, rng: Random) -> None:
    key, change = rng.choice(
        [("amount", {"name": "x"}), ("tier", {"span": "x"}), ("tier", {"path": "/x"}), ("mood", {"path": "mood"})]
    )
    body = story.body("risk")
    told = [each["origin"] for rule in body["rules"] for each in rule["conditions"] if each["key"] == key]
    for origin in [*told, body["facts_origin"][key]]:
        origin.update(change)


@on_story("D10", "evidence")
def missing_fact_was_there(story: Story, rng: Random) -> None:
    origin = rng.choice(
        [{"kind": "input", "name": "currency"}, {"kind": "model", "span": f"{3:016x}", "path": "/mood"}]
    )
    told = {"key": "age", "op": "gt", "operand": 18, "origin": origin, "error": "no such fact"}
    story.body("risk")["rules"].insert(0, {**forge.rule([told], 1, None), "unknown": True})
    story.body("risk")["on_missing"] = "skip"


@on_story("D10", "evidence")
def call_after_the_decision(story: Story, rng: Random) -> None:
    tool, late = story.at["tool"], story.at["late"]
    story.drafts[tool], story.drafts[late] = story.drafts[late], story.drafts[tool]


def from_elsewhere(story: Story, origin: dict[str, Any]) -> None:
    """Say that a fact of the decision came from somewhere else."""
    told = [each for rule in story.body("risk")["rules"] for each in rule["conditions"] if each["key"] == "desk"]
    for each in told:
        each["origin"] = origin
    story.body("risk")["facts_origin"]["desk"] = origin


@on_story("D10", "+decision")
def decision_of_a_run_that_is_not_there(story: Story, rng: Random) -> None:
    from_elsewhere(story, {"kind": "decision", "run": "run_x", "span": "0"})


@on_story("D10", "+recall")
def recall_of_a_run_that_is_not_there(story: Story, rng: Random) -> None:
    from_elsewhere(story, {"kind": "recall", "run": "run_x", "span": "0", "stage": "risk"})


@on_story("D10", "evidence")
def decision_of_the_run_that_is_not_there(story: Story, rng: Random) -> None:
    span = rng.choice(["0", story.body("risk")["span"], story.body("channels")["span"]])
    from_elsewhere(story, {"kind": "decision", "run": forge.RUN, "span": span})


@on_story("D10", "evidence", "run")
def decision_of_the_run_chose_otherwise(story: Story, rng: Random) -> None:
    forge.of_its_own(story, rng)
    story.body("channels")["facts"]["risk"] = "another"


@on_story("D10", "evidence")
def evidence_numbered_after_the_decision(story: Story, rng: Random) -> None:
    """The entries stand before the decision; a thread or another log only explains that, not their numbers."""
    renumbered(story, **rng.choice([{"read": 4, "risk": 1}, {"tool": 4, "risk": 2}]))
    story.body("read")["after"] = "elsewhere"
    if rng.random() < 0.5:
        all_merged_in(story)


@on_story("D10", "evidence")
def origin_cites_other_observations(story: Story, rng: Random) -> None:
    body = story.body("risk")
    told = [each["origin"] for rule in body["rules"] for each in rule["conditions"] if each["key"] == "score"]
    for origin in [*told, body["facts_origin"]["score"]]:
        origin["observations"] = [obs_id(story.body("older"))]


# Generic mutations: of a document, or of a body before it is sealed

JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e21,
    "",
    "x",
    REDACTED,
    ERASED,
    [],
    {},
    ["x"],
    {"x": 1},
    {"$truncated": {}},
    "é" * 3,
]


def holders(value: Any) -> list[Any]:
    """Return every object and list in a value that has something in it."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if inside else []) + [holder for each in inside for holder in holders(each)]


def mutate(value: Any, rng: Random) -> None:
    """Delete, insert or retype one member or item anywhere in a value."""
    holder = rng.choice(holders(value))
    way = rng.choice(["delete", "insert", "retype", "retype", "swap"])
    if isinstance(holder, dict):
        key = rng.choice(sorted(holder))
        if way == "delete":
            del holder[key]
        elif way == "insert":
            holder[rng.choice(["x", "redact", "unknown", "error", "observations", "origin", "on_missing"])] = (
                rng.choice(JUNK)
            )
        elif way == "swap":
            other = rng.choice(sorted(holder))
            holder[key], holder[other] = holder[other], holder[key]
        else:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
    else:
        at = rng.randrange(len(holder))
        if way == "delete":
            del holder[at]
        elif way == "insert":
            holder.insert(at, copy.deepcopy(rng.choice([*JUNK, holder[at]])))
        else:
            holder[at] = copy.deepcopy(rng.choice(JUNK))


def mutated_document(rng: Random) -> bytes:
    """Return a capsule with one thing changed after it was made."""
    document = forge.honest(rng).document()
    mutate(document, rng)
    return seal(document)


def mutated_body(rng: Random) -> bytes:
    """Return a capsule of a log in which one or two bodies were changed before it was signed."""
    story = forge.honest(rng)
    for _ in range(rng.randrange(1, 3)):
        drafts = [draft for draft in story.drafts if draft.shown and not isinstance(draft.body, bytes) and draft.body]
        mutate(rng.choice(drafts).body, rng)
    return seal(story.document())
