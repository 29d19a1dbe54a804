"""The oracle's items of a run and a decision: section 7 of docs/formats/capsule.md."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from tests.verifier.oracle_fold import (
    ONE_WINNER,
    Fold,
    Said,
    ends,
    fits,
    group,
    is_hidden_field,
    is_own,
    is_policy,
    key_member,
    policy_of,
    removal_fits,
    takes,
)
from tests.verifier.oracle_values import (
    ERASED,
    REDACTED,
    canonical,
    compare,
    covered,
    cut_digest,
    everything,
    holds_cut,
    is_cut,
    is_mark,
    is_number,
    is_text,
    is_unserialisable,
    name,
    occurs,
    rank,
    same,
    sha,
)

OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "exists", "matches")
Entry = dict[str, Any]


class Nowhere(Exception):
    """A path leads nowhere; the reason, where there is one, is its argument."""


class RunItems:
    """What the oracle checks of a run; the files, entries and parts are the Oracle's."""

    entries: list[Entry]
    claim: dict[str, Any]
    observations: list[Said]
    placed: set[int]
    parts: set[str]
    again: set[int]
    merged_in: set[int]
    own_names: set[str]
    check: Callable[[Any, str, str], None]
    lowers: Callable[..., None]
    shown: Callable[..., list[Entry]]
    schemas_of: Callable[[str], list[tuple[tuple[int, bytes], Entry]]]

    def verify_run(self) -> None:
        """Make the checks of a run or decision claim, in order."""
        self.S1()
        self.S2()
        self.S3()
        self.S4()
        self.S5()
        self.S6()
        self.S7()
        self.S8()
        self.S9()
        self.S10()
        self.places()
        self.verify_reads()
        of_the_claim = self.decisions()
        for decision in self.shown("run.decided"):
            named = set(self.parts)
            self.verify_decision(decision)
            if decision in of_the_claim:
                self.D10(decision)
            else:
                self.parts = named

    def run_entries(self) -> list[Entry]:
        return [entry for entry in self.shown() if entry["kind"].startswith("run.")]

    def decisions(self) -> list[Entry]:
        """Return the decisions of the claim."""
        stage = self.claim.get("stage")
        return [e for e in self.shown("run.decided") if self.claim["kind"] == "run" or e["body"]["stage"] == stage]

    # The run (S)

    def S1(self) -> None:
        """A `run.started` with a body is shown."""
        self.check(self.shown("run.started"), "claim", "claim")
        reads = {read["position"] for read in self.shown("run.read")}
        self.check(set(self.claim.get("left_out", [])) <= reads, "claim", "claim")

    def S2(self) -> None:
        """Every entry of a run is of this run, and of its owner unless it is a judgement."""
        started = self.shown("run.started")
        owner = started[0]["body"]["agent"] if started else None
        for entry in self.run_entries():
            record = f"entry {entry['position']}"
            self.check(entry["body"]["run"] == self.claim["run"], "foreign", record)
            self.check(entry["kind"] == "run.judged" or entry["body"]["agent"] == owner, "foreign", record)

    def S3(self) -> None:
        """At least one decision of the claim is shown."""
        self.check(self.claim["kind"] == "run" or self.decisions(), "claim", "claim")

    def S4(self) -> None:
        """The run is numbered, or its verdict is lowered."""
        ended = self.shown("run.ended")
        self.numbered = len(ended) == 1 and "numbered" in ended[0]["body"]
        if not ended:
            self.lowers("end")
        elif not self.numbered:
            self.lowers("steps")

    def S5(self) -> None:
        """Every step of a numbered run is accounted for."""
        if not self.numbered:
            return
        end = self.shown("run.ended")[0]
        record, last = f"entry {end['position']}", end["body"]["step"]
        started = self.shown("run.started")
        self.check(len(started) == 1, "steps", record)
        owner = started[0]["body"]["agent"]
        known = {entry["body"]["step"] for entry in self.run_entries() if entry["kind"] != "run.judged"}
        known |= set(end["body"].get("skipped", []))
        for one in self.observations:
            if one.body.get("run") == self.claim["run"] and one.body["agent"] == owner and "step" in one.body:
                known.add(one.body["step"])
        missing = last + 1 - len({step for step in known if step <= last})
        blank = {e["envelope"]["write"] for e in self.entries if e["kind"] == "observation" and e["nonce"] is None}
        self.check(missing <= len(blank), "steps", record)

    def of_several_recorders(self) -> bool:
        """Whether a note says that the run was continued or resumed."""
        data = [entry["body"].get("data") for entry in self.shown("run.noted")]
        return any(isinstance(said, dict) and said.get("event") in ("continued", "resumed") for said in data)

    def steps(self) -> list[Entry]:
        return [entry for entry in self.run_entries() if entry["kind"] != "run.judged"]

    def S6(self) -> None:
        """No number is beyond the end's, and none is taken twice."""
        if not self.numbered:
            return
        last = self.shown("run.ended")[0]["body"]["step"]
        for at, entry in enumerate(self.steps()):
            same_number = [e for e in self.steps()[:at] if e["body"]["step"] == entry["body"]["step"]]
            good = entry["body"]["step"] <= last and all(is_same_step(e, entry) for e in same_number)
            if self.of_several_recorders():
                if not good:
                    self.lowers("steps")
            else:
                self.check(good, "steps", f"entry {entry['position']}")

    def S7(self) -> None:
        """What one recorder recorded at once, in one thread, is numbered in the order of the log."""
        if not self.numbered or self.of_several_recorders() or any("after" in e["body"] for e in self.run_entries()):
            return
        free = self.again | self.merged_in
        at_once = [e for e in self.steps() if e["kind"] not in ("run.tool", "run.model") and e["position"] not in free]
        for one, two in itertools.pairwise(at_once):
            self.check(one["body"]["step"] <= two["body"]["step"], "steps", f"entry {two['position']}")

    def S8(self) -> None:
        """Numbers that are said to be skipped lower."""
        if self.numbered and self.shown("run.ended")[0]["body"].get("skipped"):
            self.lowers("skipped", self.shown("run.ended")[0]["position"])

    def S9(self) -> None:
        """Entries of the run that were merged in lower."""
        if any(entry["position"] in self.merged_in for entry in self.run_entries()):
            self.lowers("imported")

    def S10(self) -> None:
        """A read that found nothing has no fields."""
        for read in self.shown("run.read"):
            self.check(read["body"]["found"] or not read["body"].get("fields"), "evidence", f"entry {read['position']}")

    def origins_of(self, decision: Entry) -> list[dict[str, Any]]:
        """Return the origins that a decision names."""
        body, found = decision["body"], []
        if not is_cut(body.get("facts_origin", {})):
            found += list(body.get("facts_origin", {}).values())
        if not is_cut(body.get("rules", [])):
            found += [condition["origin"] for rule in body.get("rules", []) for condition in rule["conditions"]]
        return found

    def named_ids(self) -> set[str]:
        """Return the ids of observations that a read or an origin names."""
        ids: set[str] = set()
        for read in self.shown("run.read"):
            for field in fields_of(read).values():
                ids |= {field["observation"]} if "observation" in field else set()
                ids |= set(field.get("observations", []))
        for decision in self.shown("run.decided"):
            for origin in self.origins_of(decision):
                ids |= set(origin.get("observations", []))
        return ids

    def places(self) -> None:
        """Say which observations, schemas and entries of the run have a place."""
        ids = self.named_ids()
        entities: set[str] = set()
        for read in self.shown("run.read"):
            body = read["body"]
            entities |= {body["entity"]} if "entity" in body else set()
            if "entity" in body and "position" in body and not self.is_foreign(read):
                members = self.group_at(body["entity"], body["position"], body.get("effective"))
                entities |= members
                for one in self.observations:
                    if one.entity in members and (one.position <= body["position"] or self.is_again(one)):
                        self.placed.add(one.position)
        for decision in self.shown("run.decided"):
            for origin in self.origins_of(decision):
                entities |= {origin["entity"]} if "entity" in origin else set()
        named = [one for one in self.observations if one.id in ids]
        entities |= {one.entity for one in named}
        self.placed |= {entry["position"] for entry in self.run_entries()} | {one.position for one in named}
        for one in self.observations:
            if one.body.get("run") == self.claim["run"] or entities & set(ends(one.body["entity"]) or ()):
                self.placed.add(one.position)
        types = {entity.split("/")[0] for entity in entities}
        self.placed |= {entry["position"] for entry in self.shown("schema") if entry["body"]["type"] in types}

    # What items of reads and decisions share

    def hidden_of(self, *entries: Entry) -> frozenset[str]:
        """Return the hidden keys of these entries of the run."""
        told = [*self.shown("run.started"), *entries]
        return frozenset(pattern for entry in told for pattern in entry["body"].get("redact", []))

    def is_again(self, *entries: Entry | Said) -> bool:
        return any((e.position if isinstance(e, Said) else e["position"]) in self.again for e in entries)

    def by_id(self, text: str) -> Said | None:
        return next((one for one in self.observations if one.id == text), None)

    def group_at(self, entity: str, position: int | None, effective: str | None = None) -> set[str]:
        """Return the group of an entity at a position; None is: over everything shown."""
        chosen = [
            one
            for one in self.observations
            if (position is None or one.position <= position or one.position in self.again)
            and (effective is None or one.op == "retract" or one.body["valid_from"] <= effective)
        ]
        return group(entity, chosen)

    def in_force(self, entity: str, position: int) -> Entry | None:
        """Return the schema entry in force for an entity among those shown at or below a position."""
        found = [(order, e) for order, e in self.schemas_of(entity.split("/")[0]) if e["position"] <= position]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    # Reads (R)

    def verify_reads(self) -> None:
        """Check the fields of the reads that the claim rests on."""
        wanted = [origin for decision in self.decisions() for origin in self.origins_of(decision)]
        for read in self.shown("run.read"):
            fields = dict(fields_of(read))
            if self.claim["kind"] == "run" and is_cut(read["body"].get("fields")):
                self.lowers("cut", read["position"])
            if self.claim["kind"] == "decision":
                fields = {
                    field: fields[field] for field in fields if any(is_of(read, origin, field) for origin in wanted)
                }
            if not fields or not self.R1(read):
                continue
            self.R2(read)
            if "effective" in read["body"]:
                self.lowers("effective", read["position"])
            self.R3(read)
            self.R4(read)
            for field in fields:
                self.R5(read, field)
            for field, shown in fields.items():
                if self.R6(read, field, shown) and self.R7(read, field, shown):
                    self.R8(read, field, shown)
                    self.R9(read, field, shown)
                    self.R10(read, field, shown)

    def R1(self, read: Entry) -> bool:
        """The read has an entity and a position."""
        r, body = read["position"], read["body"]
        if "entity" not in body:
            self.check(self.is_again(read) or "remembered" in body, "evidence", f"entry {r}")
            self.lowers("erased" if self.is_again(read) else "recall", r)
            return False
        if "position" not in body:
            self.check(not self.numbered, "evidence", f"entry {r}")
            self.lowers("read", r)
            return False
        return True

    def is_foreign(self, read: Entry) -> bool:
        return read["body"].get("log") not in self.own_names or read["position"] in self.merged_in

    def R2(self, read: Entry) -> None:
        """A read of another log is foreign."""
        if self.is_foreign(read):
            self.lowers("foreign", read["position"])

    def R3(self, read: Entry) -> None:
        """The log had the position when it was read."""
        r, body = read["position"], read["body"]
        self.check(self.is_foreign(read) or body["position"] < r, "evidence", f"entry {r}")
        self.check(body.get("as_of", body["position"]) == body["position"], "evidence", f"entry {r}")

    def schema_of(self, read: Entry) -> dict[str, Any] | None:
        """Return the schema a read is judged by."""
        body = read["body"]
        if not self.is_foreign(read):
            entry = self.in_force(body["entity"], body["position"])
        else:
            of_type = [e for _, e in self.schemas_of(body["entity"].split("/")[0])]
            entry = next((e for e in of_type if schema_name(e) == body.get("schema")), None)
        return entry["body"]["schema"] if entry else None

    def R4(self, read: Entry) -> None:
        """The schema the read names is the one in force."""
        body, record = read["body"], f"entry {read['position']}"
        if self.is_foreign(read):
            self.check("schema" not in body or self.schema_of(read) is not None, "schema", record)
        else:
            entry = self.in_force(body["entity"], body["position"])
            self.check(body.get("schema") == (schema_name(entry) if entry else None), "schema", record)

    def R5(self, read: Entry, field: str) -> None:
        """The field has a policy by that schema."""
        r, policy = read["position"], policy_of(self.schema_of(read), field)
        self.check(is_policy(policy), "schema", f"entry {r}")
        if is_own(policy):
            self.lowers("policy", r)

    def R6(self, read: Entry, field: str, shown: dict[str, Any]) -> bool:
        """The field names its observations as its policy asks."""
        r, record = read["position"], f"entry {read['position']}"
        if "observation" not in shown:
            self.check(self.is_again(read), "evidence", record)
            self.lowers("erased", r)
            return False
        self.check("value" in shown, "evidence", record)
        several = shown.get("observations")
        if is_one_winner(policy_of(self.schema_of(read), field)):
            self.check(several is None, "evidence", record)
        elif several is not None:
            self.check(2 <= len(several) <= 1000 and len(set(several)) == len(several), "evidence", record)
            self.check(several[0] == shown["observation"] or self.is_again(read), "evidence", record)
        return True

    def R7(self, read: Entry, field: str, shown: dict[str, Any]) -> bool:
        """Each observation named is shown, and could have been read."""
        r, body, record = read["position"], read["body"], f"entry {read['position']}"
        foreign, effective = self.is_foreign(read), body.get("effective")
        members = self.group_at(body["entity"], None if foreign else body["position"], effective)
        one_winner = is_one_winner(policy_of(self.schema_of(read), field))
        going_on = True
        for named in dict.fromkeys([shown["observation"], *shown.get("observations", [])]):
            one = self.by_id(named)
            self.check(one is not None, "evidence", record)
            assert one is not None
            self.check(foreign or self.is_again(one) or one.position <= body["position"], "evidence", record)
            self.check(one.op in ("assert", "correct") and one.entity in members, "evidence", record)
            if not (field in one.fields or (one.states(field) and not one_winner)):
                self.check(self.is_again(read) and self.is_again(one), "evidence", record)
                self.lowers("erased", r)
                going_on = False
                continue
            self.check(effective is None or one.body["valid_from"] <= effective, "evidence", record)
        return going_on

    def R8(self, read: Entry, field: str, shown: dict[str, Any]) -> None:
        """Of one winner the value is that of the observation, which fits."""
        schema = self.schema_of(read)
        one = self.by_id(shown["observation"])
        if not is_one_winner(policy_of(schema, field)) or one is None:
            return
        r, record = read["position"], f"entry {read['position']}"
        hidden = self.hidden_of(read) | ({field} if is_hidden_field(schema, field) else set())
        reasons = compare(shown["value"], one.fields[field], [field], hidden, self.is_again(read, one))
        self.check(reasons is not None, "evidence", record)
        for reason in reasons or ():
            self.lowers(reason, r)
        if "erased" not in (reasons or ()):
            self.check(fits(schema, field, one.fields[field]) is not False, "evidence", record)

    def is_followed(self, read: Entry) -> bool:
        """Whether the observations that a read saw can be merged again."""
        body = read["body"]
        if self.is_foreign(read) or "effective" in body or self.is_again(read):
            return False
        if read["position"] in self.claim.get("left_out", [read["position"]]):
            return False
        members = self.group_at(body["entity"], body["position"])
        gone = [e for e in self.entries if e["kind"] == "observation" and e["nonce"] is None]
        return not any(self.is_again(one) for one in self.observations if one.entity in members) and not any(
            entry["position"] <= body["position"] for entry in gone
        )

    def R10(self, read: Entry, field: str, shown: dict[str, Any]) -> None:
        """The observations shown merge to what was read."""
        r, body, record = read["position"], read["body"], f"entry {read['position']}"
        schema = self.schema_of(read)
        policy = policy_of(schema, field)
        if not self.is_followed(read):
            if not is_own(policy):
                self.lowers("winner" if is_one_winner(policy) else "collection", r)
            return
        members = self.group_at(body["entity"], body["position"])
        seen = [one for one in self.observations if one.entity in members and one.position <= body["position"]]
        seen = [one for one in seen if not one.entity.startswith("audit_event/") or one.op == "assert"]
        known = {one.name for one in self.observations}
        for one in seen:
            if (one.states(field) or one.op not in ("assert", "correct")) and not set(one.replaces) <= known:
                self.lowers("named", one.position)
        fitting = {}
        for one in seen:
            if one.states(field):
                fit = fits(schema, field, one.fields[field]) if field in one.fields else removal_fits(schema)
                fitting[one.name] = None if fit is None else fit and takes(policy, one, field)
        if None in fitting.values():
            self.lowers("subschema", r)
            return
        fold = Fold(members, seen, field, lambda one: bool(fitting[one.name]))
        if is_one_winner(policy):
            best = fold.winner(policy)
            self.check(best is not None and best.id == shown["observation"], "evidence", record)
            return
        corrected = bool(fold.standing(fold.corrections))
        found = fold.value("latest" if is_own(policy) else policy)
        self.check(found, "evidence", record)
        if not is_own(policy) or corrected:
            hidden = self.hidden_of(read) | ({field} if is_hidden_field(schema, field) else set())
            reasons = compare(shown["value"], found[0], [field], hidden, False)
            self.check(reasons is not None, "evidence", record)
            for reason in reasons or ():
                self.lowers(reason, r)

    def R9(self, read: Entry, field: str, shown: dict[str, Any]) -> None:
        """Every element of a union or append, and every member of an object, is in a list of the observations named."""
        policy = policy_of(self.schema_of(read), field)
        key = key_member(policy)
        ids = shown.get("observations", [shown["observation"]] if "observation" in shown else [])
        ones = [one for one in map(self.by_id, ids) if one is not None]
        value = shown["value"]
        if (
            (policy not in ("union", "append") and key is None)
            or not 0 < len(ids) < 1000
            or self.is_again(read, *ones)
            or not isinstance(value, list)
            or any(is_mark(part) for part in everything(value))
            or occurs(REDACTED, value)
        ):
            return
        listed = [item for one in ones for item in as_list(one.fields.get(field))]
        if key is None:
            good = all(any(same(item, other) for other in listed) for item in value)
        else:
            objects = [item for item in listed if isinstance(item, dict) and is_text(item.get(key))]
            good = all(
                isinstance(item, dict)
                and is_text(item.get(key))
                and all(
                    any(o[key] == item[key] and member in o and same(o[member], item[member]) for o in objects)
                    for member in item
                )
                for item in value
            )
        self.check(good, "evidence", f"entry {read['position']}")

    # Decisions (D)

    def verify_decision(self, decision: Entry) -> None:
        """Check what one decision says, item by item."""
        if self.D1(decision):
            self.D2(decision)
            self.D3(decision)
            self.D4(decision)
            self.D5(decision)
            self.D6(decision)
            self.D7(decision)
            self.D8(decision)
        self.D9(decision)

    def decision(self, holds: Any, decision: Entry) -> None:
        self.check(holds, "decision", f"entry {decision['position']}")

    def evidence(self, holds: Any, decision: Entry) -> None:
        self.check(holds, "evidence", f"entry {decision['position']}")

    def alike(self, reasons: set[str] | None, decision: Entry, code: str) -> None:
        """Refuse what is different; lower by the reasons."""
        self.check(reasons is not None, code, f"entry {decision['position']}")
        for reason in reasons or ():
            self.lowers(reason, decision["position"])

    def D1(self, decision: Entry) -> bool:
        """There are rules, with facts and origins; or the choice was not made by rules that are shown."""
        body, n = decision["body"], decision["position"]
        if "rules" not in body:
            self.lowers("choice", n)
            return False
        if is_cut(body["rules"]):
            self.lowers("cut", n)
            return False
        self.decision("facts" in body and "facts_origin" in body, decision)
        return True

    def D2(self, decision: Entry) -> None:
        """Rules and conditions are omitted only for their number."""
        body, omitted = decision["body"], decision["body"].get("omitted", {})
        rules = body["rules"]
        self.decision("rules" not in omitted or len(rules) >= 1000, decision)
        told = sum(len(rule["conditions"]) for rule in rules)
        self.decision("conditions" not in omitted or told >= 1000, decision)
        if omitted:
            self.lowers("omitted", decision["position"])

    def wanted(self, decision: Entry, rule: dict[str, Any]) -> tuple[dict[tuple[str, str], Any], set[str]]:
        """Return the conditions `when` asks for, with their operands, and the keys whose conditions it hides."""
        hidden = self.hidden_of(decision)
        asked: dict[tuple[str, str], Any] = {}
        unseen: set[str] = set()
        if is_cut(rule["when"]):
            return asked, unseen
        for key, given in rule["when"].items():
            if given == REDACTED and covered(key, hidden):
                unseen.add(key)
            elif isinstance(given, dict) and not is_mark(given):
                asked |= {(key, op): operand for op, operand in given.items()}
            else:
                asked[key, "eq"] = given
        return asked, unseen

    def with_when(self, decision: Entry) -> list[dict[str, Any]]:
        return [rule for rule in decision["body"]["rules"] if "when" in rule]

    def D3(self, decision: Entry) -> None:
        """The conditions of a rule are those of its `when`, each once."""
        some_missing = "conditions" in decision["body"].get("omitted", {})
        for rule in self.with_when(decision):
            told = [(condition["key"], condition.get("op")) for condition in rule["conditions"]]
            self.decision(len(set(told)) == len(told), decision)
            if is_cut(rule["when"]):
                self.lowers("cut", decision["position"])
                continue
            asked, unseen = self.wanted(decision, rule)
            seen = {pair for pair in told if pair[0] not in unseen}
            self.decision(seen <= set(asked) and (some_missing or seen == set(asked)), decision)
            for key in unseen:
                of_key = [condition for condition in rule["conditions"] if condition["key"] == key]
                self.decision(of_key or some_missing, decision)
                self.decision(all(condition.get("operand") == REDACTED for condition in of_key), decision)
                self.lowers("hidden", decision["position"])

    def D4(self, decision: Entry) -> None:
        """Every operator is known, and operands are those of `when`."""
        for rule in self.with_when(decision):
            asked, _ = self.wanted(decision, rule)
            self.decision(all(op in OPERATORS for _, op in asked), decision)
            for condition in rule["conditions"]:
                self.decision(condition.get("op") in OPERATORS, decision)
                pair = (condition["key"], condition["op"])
                if pair in asked:
                    hidden, again = self.hidden_of(decision), self.is_again(decision)
                    reasons = compare(asked[pair], condition["operand"], [pair[0]], hidden, again)
                    self.alike(reasons, decision, "decision")

    def evaluated(self, decision: Entry, rule: dict[str, Any]) -> list[tuple[dict[str, Any] | None, str]]:
        """Return (condition, or None for a missing one; true, false, unknown or no) for every condition of a rule."""
        asked, _ = self.wanted(decision, rule)
        found: list[tuple[dict[str, Any] | None, str]] = []
        for condition in rule["conditions"]:
            if "op" not in condition:
                continue
            pair = (condition["key"], condition["op"])
            operand = asked.pop(pair, condition["operand"])
            actual = [condition["actual"]] if "actual" in condition else []
            found.append((condition, self.evaluate(decision, pair[1], operand, actual)))
        facts = decision["body"].get("facts", {})
        for (key, op), operand in asked.items():
            if is_cut(facts):
                found.append((None, "no"))
            else:
                found.append((None, self.evaluate(decision, op, operand, [facts[key]] if key in facts else [])))
        return found

    def evaluate(self, decision: Entry, op: str, operand: Any, actual: list[Any]) -> str:
        """Evaluate a condition: true, false, unknown or no (not evaluated). `actual` is a list of one value or none."""
        n, again = decision["position"], self.is_again(decision)
        if op == "exists":
            if operand == REDACTED:
                self.lowers("hidden", n)
                return "no"
            self.decision(isinstance(operand, bool), decision)
            return said(bool(actual) == operand)
        if not actual:
            return "unknown"
        if op == "matches":
            self.lowers("matches", n)
            return "no"
        reasons = {
            "hidden": occurs(REDACTED, operand, *actual),
            "erased": again and occurs(ERASED, operand, *actual),
            "mark": any(is_unserialisable(part) for side in (operand, *actual) for part in everything(side)),
        }
        if any(reasons.values()):
            for reason in reasons:
                if reasons[reason]:
                    self.lowers(reason, n)
            return "no"
        if op in ("eq", "ne"):
            sides = standing_for(operand), standing_for(actual[0])
            if None in sides:
                self.lowers("cut", n)
                return "no"
            return said((sides[0] == sides[1]) == (op == "eq"))
        if op in ("in", "not_in"):
            if is_cut(operand):
                self.lowers("cut", n)
                return "no"
            if not isinstance(operand, list) or len(operand) > 1000:
                return "unknown"
            elements = [standing_for(element) for element in operand]
            if operand and None in [standing_for(actual[0]), *elements]:
                self.lowers("cut", n)
                return "no"
            return said((standing_for(actual[0]) in elements) == (op == "in"))
        if op not in ("gt", "gte", "lt", "lte"):
            return "unknown"
        if is_cut(operand) or is_cut(actual[0]):
            self.lowers("cut", n)
            return "no"
        both = (actual[0], operand)
        if not (all(map(is_number, both)) or all(map(is_text, both))):
            return "unknown"
        one, two = map(rank, both)
        return said({"gt": one > two, "gte": one >= two, "lt": one < two, "lte": one <= two}[op])

    def D5(self, decision: Entry) -> None:
        """Every condition says what its evaluation says."""
        for rule in self.with_when(decision):
            for condition, outcome in self.evaluated(decision, rule):
                if condition is None:
                    continue
                self.decision(("result" in condition) != ("error" in condition), decision)
                if outcome in ("true", "false"):
                    self.decision(condition.get("result") is (outcome == "true"), decision)
                elif outcome == "unknown":
                    self.decision("error" in condition, decision)

    def D6(self, decision: Entry) -> None:
        """Every rule says what its conditions say."""
        for rule in decision["body"]["rules"]:
            self.decision(not (rule["matched"] and "unknown" in rule), decision)
        for rule in self.with_when(decision):
            outcomes, open_ones = [], is_cut(rule["when"])
            for condition, outcome in self.evaluated(decision, rule):
                if outcome != "no":
                    outcomes.append(outcome)
                elif condition is None:
                    open_ones = True
                else:
                    outcomes.append(said(condition["result"]) if "result" in condition else "unknown")
            told = {condition["key"] for condition in rule["conditions"]}
            open_ones = open_ones or not self.wanted(decision, rule)[1] <= told
            now = (rule["matched"], "unknown" in rule)
            if "false" in outcomes:
                self.decision(now == (False, False), decision)
            elif not open_ones:
                unknown = "unknown" in outcomes
                self.decision(now == (bool(outcomes) and not unknown, unknown), decision)

    def D7(self, decision: Entry) -> None:
        """A predicate is not evaluated."""
        if any("predicate" in rule for rule in decision["body"]["rules"]):
            self.lowers("predicate", decision["position"])

    def D8(self, decision: Entry) -> None:
        """What was chosen is what the matching rules chose, or the default."""
        body, rules = decision["body"], decision["body"]["rules"]
        matching = [rule for rule in rules if rule["matched"]]
        self.decision(body["default"] is (not matching), decision)
        labels: Any = [rule.get("label") for rule in matching]
        chosen: Any = [rule["chosen"] for rule in matching]
        if body["mode"] == "decide":
            self.decision(len(matching) <= 1 and (not matching or rules[-1]["matched"]), decision)
            labels = labels[0] if labels else None
            chosen = chosen[0] if chosen else None
        else:
            self.decision(isinstance(body.get("chosen"), list) or is_cut(body.get("chosen")), decision)
        self.decision("on_missing" in body or not any("unknown" in rule for rule in rules), decision)
        if matching:
            reasons = compare(body.get("chosen"), chosen, [], self.hidden_of(decision), self.is_again(decision))
            self.alike(reasons, decision, "decision")
        self.decision(same(body.get("rule"), labels), decision)
        self.decision(not body["default"] or ("untried" not in body and "otherwise" not in body), decision)

    def conditions_of(self, decision: Entry) -> list[dict[str, Any]]:
        rules = decision["body"].get("rules", [])
        return [] if is_cut(rules) else [condition for rule in rules for condition in rule["conditions"]]

    def D9(self, decision: Entry) -> None:
        """Facts, origins and conditions go together."""
        facts, origins = decision["body"].get("facts"), decision["body"].get("facts_origin")
        if is_cut(facts) or is_cut(origins) or is_cut(decision["body"].get("untried")):
            self.lowers("cut", decision["position"])
        if facts is None or origins is None or is_cut(facts) or is_cut(origins):
            return
        self.evidence(set(facts) <= set(origins), decision)
        for condition in self.conditions_of(decision):
            key = condition["key"]
            self.evidence(("actual" in condition) == (key in facts), decision)
            if "actual" in condition:
                hidden, again = self.hidden_of(decision), self.is_again(decision)
                self.alike(compare(facts[key], condition["actual"], [key], hidden, again), decision, "evidence")
            self.evidence(key not in origins or same(condition["origin"], origins[key]), decision)

    def D10(self, decision: Entry) -> None:
        """Every value is what its origin says, and where there is none the origin says nothing."""
        body = decision["body"]
        facts, origins = body.get("facts", {}), body.get("facts_origin", {})
        if not is_cut(facts) and not is_cut(origins):
            for key in facts:
                if key in origins:
                    self.origin(decision, key, origins[key], [facts[key]])
        for condition in self.conditions_of(decision):
            value = [condition["actual"]] if "actual" in condition else []
            self.origin(decision, condition["key"], condition["origin"], value)

    def origin(self, decision: Entry, key: str, origin: dict[str, Any], value: list[Any]) -> None:
        """Check one value, or that there is none, against its origin."""
        kind = origin["kind"]
        if kind == "recall":
            self.lowers("recall", decision["position"])
        elif kind == "decision":
            self.decision_origin(decision, key, origin, value)
        if kind == "input":
            self.input_origin(decision, key, origin, value)
        elif kind in ("tool", "model"):
            self.call_origin(decision, key, origin, value)
        elif kind == "read":
            self.read_origin(decision, key, origin, value)

    def before(self, decision: Entry, kind: str) -> list[Entry]:
        """Return the entries of a kind that count as a place of origin."""
        free = self.again | self.merged_in
        return [
            entry
            for entry in self.shown(kind)
            if not self.numbered
            or (
                (entry["position"] < decision["position"] or free & {entry["position"], decision["position"]})
                and entry["body"]["step"] < decision["body"]["step"]
            )
        ]

    def decision_origin(self, decision: Entry, key: str, origin: dict[str, Any], value: list[Any]) -> None:
        made = [e for e in self.before(decision, "run.decided") if e["body"]["span"] == origin["span"]]
        if origin["run"] != self.claim["run"] or (not made and not self.numbered):
            self.lowers("decision", decision["position"])
        elif made:
            told = [(entry, entry["body"].get("chosen")) for entry in made]
            self.last_alike(decision, [key, made[-1]["body"]["stage"]], value, told)
        else:
            self.evidence(not value, decision)

    def last_alike(self, decision: Entry, keys: list[str], value: list[Any], told: list[tuple[Entry, Any]]) -> None:
        """Of the places that have a value the last that is alike counts; one of them is."""
        self.evidence(value, decision)
        for entry, other in reversed(told):
            hidden, again = self.hidden_of(decision, entry), self.is_again(decision, entry)
            reasons = compare(value[0], other, keys, hidden, again)
            if reasons is not None:
                return self.alike(reasons, decision, "evidence")
        return self.evidence(False, decision)

    def input_origin(self, decision: Entry, key: str, origin: dict[str, Any], value: list[Any]) -> None:
        inputs = [(entry, entry["body"].get("inputs", {})) for entry in self.before(decision, "run.started")]
        is_any_cut = any(is_cut(given) for _, given in inputs)
        if is_any_cut:
            self.lowers("cut", decision["position"])
        wanted = origin["name"]
        told = [(entry, given[wanted]) for entry, given in inputs if not is_cut(given) and wanted in given]
        if told:
            self.last_alike(decision, [key, wanted], value, told)
        else:
            self.evidence(is_any_cut or not value, decision)

    def call_origin(self, decision: Entry, key: str, origin: dict[str, Any], value: list[Any]) -> None:
        member = {"tool": "result", "model": "response"}[origin["kind"]]
        told, reasons = [], set()
        steps = steps_of(origin["path"])
        for entry in self.before(decision, f"run.{origin['kind']}"):
            body = entry["body"]
            if body["span"] != origin["span"] or steps is None:
                continue
            if member not in body and (body.get("begun") is True or body.get("errored") is True):
                continue
            try:
                told.append((entry, follow(body.get(member), steps, self.is_again(entry))))
            except Nowhere as why:
                reasons |= set(why.args)
        if told:
            self.last_alike(decision, [key, *(steps or [])[-1:]], value, told)
            return
        for reason in reasons:
            self.lowers(reason, decision["position"])
        self.evidence(reasons or not value, decision)

    def read_origin(self, decision: Entry, key: str, origin: dict[str, Any], value: list[Any]) -> None:
        n, field = decision["position"], origin["field"]
        if "entity" not in origin:
            self.evidence(self.is_again(decision), decision)
            self.lowers("erased", n)
            return
        places = [e for e in self.before(decision, "run.read") if is_of(e, origin, None)]
        if not places:
            self.lowers("read", n)
            if value and "position" in origin and "observations" in origin:
                self.outside_read(decision, key, origin, value[0])
            return
        with_cut = [read for read in places if is_cut(read["body"].get("fields"))]
        if with_cut:
            self.lowers("cut", n)
        having = [read for read in places if field in fields_of(read)]
        if not value:
            self.evidence(not having, decision)
            return
        for read in reversed(having):
            reasons = self.answer(decision, key, origin, value[0], read)
            if reasons is not None:
                self.alike(reasons, decision, "evidence")
                return
        self.evidence(with_cut and not having, decision)

    def answer(self, decision: Entry, key: str, origin: dict[str, Any], value: Any, read: Entry) -> set[str] | None:
        """Return the reasons with which a read answers for a value; None where it does not."""
        field, told = origin["field"], fields_of(read)[origin["field"]]
        if "value" not in told:
            return None
        schema = self.schema_of(read) if "position" in read["body"] else None
        hidden = self.hidden_of(decision, read) | ({field} if is_hidden_field(schema, field) else set())
        reasons = compare(value, told["value"], [key, field], hidden, self.is_again(decision, read))
        if reasons is None:
            return None
        ids = told.get("observations", [told["observation"]] if "observation" in told else [])
        named = origin.get("observations", [])
        if ids and named and not self.is_again(decision, read) and ids != named[:1000]:
            return None
        one = self.by_id(told.get("observation", ""))
        if "position" not in read["body"] or not is_one_winner(policy_of(schema, field)) or one is None:
            return reasons
        if field not in one.fields:
            return reasons | {"erased"} if self.is_again(read) and self.is_again(one) else None
        further = compare(value, one.fields[field], [key, field], hidden, self.is_again(decision, read, one))
        return None if further is None else reasons | further

    def outside_read(self, decision: Entry, key: str, origin: dict[str, Any], value: Any) -> None:
        n, field, position = decision["position"], origin["field"], origin["position"]
        members = self.group_at(origin["entity"], position)
        with_field: list[Said] = []
        for named in origin["observations"]:
            one = self.by_id(named)
            if one is None:
                self.evidence(self.is_again(decision), decision)
                self.lowers("erased", n)
                continue
            self.evidence(one.position <= position or self.is_again(one), decision)
            self.evidence(one.entity in members, decision)
            if field in one.fields or field in one.body.get("remove", {}):
                with_field.append(one)
            else:
                self.evidence(self.is_again(one) and self.is_again(decision), decision)
                self.lowers("erased", n)
        entry = self.in_force(origin["entity"], position)
        schema = entry["body"]["schema"] if entry else None
        if is_one_winner(policy_of(schema, field)) and len(with_field) == len(origin["observations"]):
            self.evidence(len(with_field) == 1 and field in with_field[0].fields, decision)
            hidden = self.hidden_of(decision) | ({field} if is_hidden_field(schema, field) else set())
            again = self.is_again(decision, with_field[0])
            reasons = compare(value, with_field[0].fields[field], [key, field], hidden, again)
            self.alike(reasons, decision, "evidence")


def is_same_step(one: Entry, two: Entry) -> bool:
    """Whether two entries may have one number: of one read of many entities, or of one call, which ends once."""
    if one["kind"] != two["kind"] or one["body"]["span"] != two["body"]["span"]:
        return False
    begun = [entry["body"].get("begun") is True for entry in (one, two)]
    return one["kind"] == "run.read" or (one["kind"] == "run.tool" and any(begun))


def fields_of(read: Entry) -> dict[str, Any]:
    """Return the fields of a read; one without, or with cut ones, has none."""
    fields = read["body"].get("fields", {})
    return {} if is_cut(fields) else fields


def is_of(read: Entry, origin: dict[str, Any], field: str | None) -> bool:
    """Whether an origin names a read, and this field of it."""
    return (
        origin["kind"] == "read"
        and "entity" in origin
        and origin["entity"] == read["body"].get("entity")
        and origin.get("position") == read["body"].get("position")
        and field in (None, origin["field"])
    )


def is_one_winner(policy: Any) -> bool:
    return is_text(policy) and policy in ONE_WINNER


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def schema_name(entry: Entry) -> str:
    """Return the full name of a schema."""
    return name("schema", canonical(entry["body"]))


def said(holds: bool) -> str:
    return "true" if holds else "false"


def standing_for(value: Any) -> str | None:
    """Return what a value stands for under `eq`; None where it cannot be compared."""
    if is_cut(value):
        return cut_digest(value)
    return None if holds_cut(value) else sha(canonical(value))


def steps_of(path: str) -> list[str] | None:
    """Return the steps of a JSON Pointer, their escapes undone; None where it is none."""
    if path and not path.startswith("/"):
        return None
    if re.search("~(?![01])", path):
        return None
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def follow(value: Any, steps: list[str], again: bool) -> Any:
    """Return what a path leads to; Nowhere, with the reason if there is one."""
    for step in steps:
        if is_cut(value):
            raise Nowhere("cut")
        if value == REDACTED:
            raise Nowhere("hidden")
        if again and value == ERASED:
            raise Nowhere("erased")
        if isinstance(value, dict):
            if step not in value:
                raise Nowhere("erased") if again else Nowhere()
            value = value[step]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", step) and int(step) < len(value):
            value = value[int(step)]
        else:
            raise Nowhere("erased") if again else Nowhere()
    return value
