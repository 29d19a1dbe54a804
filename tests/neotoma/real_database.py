"""A database that a real Neotoma server makes, told over its own addresses what happened, by chance from a seed."""

from __future__ import annotations

import http.client
import json
import random
from typing import Any, Final
from urllib.parse import quote

from woodrat.state import packs

TYPES: Final = 30
GADGET: Final = {
    "entity_type": "gadget",
    "schema_definition": {
        "fields": {"name": {"type": "string", "required": True}, "parts": {"type": "array"}},
        "canonical_name_fields": ["name"],
    },
    "reducer_config": {"merge_policies": {"name": {"strategy": "last_write"}, "parts": {"strategy": "merge_array"}}},
    "schema_version": "1.0",
    "activate": True,
}
SOURCES: Final = ("sensor", "llm_summary", "workflow_state", "human", "import")


def fields_of(kind: str) -> Any:
    """Return the fields of a type, by their type."""
    return packs.facts(packs.NEOTOMA).get(kind, {"fields": {"string": ["name"], "array": ["parts"]}})["fields"]


class Teller:
    """Tells a server what happened, and counts what it accepted."""

    def __init__(self, port: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.accepted: dict[str, int] = {}
        self.refused: dict[str, list[str]] = {}
        self.entities: dict[str, str] = {}
        self.gone: set[str] = set()
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def call(self, path: str, body: Any) -> Any:
        head = {"content-type": "application/json", "authorization": "Bearer dev-local"}
        self._connection.request("POST", f"/{quote(path)}", json.dumps(body), head)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status < 300:
            self.accepted[path] = self.accepted.get(path, 0) + 1
            return answer
        self.refused.setdefault(path, []).append(str(answer)[:200])
        return None

    def record(self, kind: str, number: int) -> dict[str, Any]:
        """Return some of the fields of a type; those that identify it are always there."""
        rules = packs.facts(packs.NEOTOMA).get(kind, {}).get("identity", [])
        named = {part for rule in rules for part in ([rule] if isinstance(rule, str) else rule)}
        found: dict[str, Any] = {"entity_type": kind}
        for type, names in fields_of(kind).items():
            for name in names:
                identifies = name in named or name in ("name", "title", "turn_key", "canonical_name")
                if identifies or self.chance.random() < 0.3:
                    found[name] = self._value(type, name, number if identifies else self.chance.randrange(40))
        return found

    def _value(self, type: str, name: str, number: int) -> Any:
        return {
            "string": f"{name} {number}",
            "date": f"2026-0{1 + number % 9}-{1 + number % 28:02}T09:00:00Z",
            "number": number + 0.5,
            "boolean": number % 2 == 0,
            "array": [f"{name} {number}"],
            "object": {"of": number},
        }[type]

    def some(self, kind: str | None = None) -> str:
        """Return an entity that is there."""
        found = [id for id, type in self.entities.items() if id not in self.gone and kind in (None, type)]
        return self.chance.choice(found)


def fill(port: int, *, observations: int = 5_000, seed: int = 11) -> Teller:
    """Have a server store this many observations, and then correct, relate, merge, split, delete and restore."""
    teller = Teller(port, seed)
    chance = teller.chance
    kinds = [kind for kind in packs.facts(packs.NEOTOMA) if kind != "relationship"][: TYPES - 1]
    teller.call("register_schema", GADGET)
    for number in range(observations // 10):
        records = [teller.record(chance.choice([*kinds, "gadget"]), chance.randrange(20)) for _ in range(10)]
        body: dict[str, Any] = {"entities": records, "idempotency_key": f"store-{number}"}
        body |= {"observation_source": chance.choice(SOURCES)} if chance.random() < 0.5 else {}
        body |= {"source_priority": chance.choice((10, 50, 200))} if chance.random() < 0.3 else {}
        stored = teller.call("store", body)
        for item in stored["entities"] if stored else ():
            teller.entities[item["entity_id"]] = item["entity_type"]
    for number in range(20):
        kept = teller.call("store", {"file_content": f"File {number}", "mime_type": "text/plain"})
        config = {"model": "m-1", "prompt_hash": str(number)}
        body = {"source_id": kept["source_id"], "entities": [teller.record("task", 100 + number)]}
        teller.call(
            "interpretations/create", {**body, "interpretation_config": config, "idempotency_key": f"i{number}"}
        )
    for number in range(200):
        id = teller.some()
        texts = fields_of(teller.entities[id]).get("string", ["name"])
        about = {"entity_id": id, "entity_type": teller.entities[id], "field": chance.choice(sorted(texts))}
        about["value"] = f"corrected {number}"
        teller.call("correct", {**about, "idempotency_key": f"c{number}"})
    for number in range(200):
        ends = {"source_entity_id": teller.some(), "target_entity_id": teller.some()}
        link = {"relationship_type": chance.choice(("PART_OF", "REFERS_TO", "DEPENDS_ON")), **ends}
        teller.call("create_relationship", {**link, "metadata": {"weight": number}})
        if number % 10 == 0:
            teller.call("delete_relationship", link)
        if number % 20 == 0:
            teller.call("restore_relationship", link)
    for _ in range(40):
        kind = chance.choice(kinds)
        one, other = teller.some(kind), teller.some(kind)
        if one != other and teller.call("entities/merge", {"from_entity_id": one, "to_entity_id": other}):
            teller.gone.add(one)
    for number in range(20):
        id = teller.some("task") if "task" in kinds else teller.some(chance.choice(kinds))
        kind = teller.entities[id]
        found = teller.call("list_observations", {"entity_id": id, "limit": 100})
        times = sorted(item["observed_at"] for item in found["observations"])
        body = {"source_entity_id": id, "predicate": {"observed_at_gte": times[len(times) // 2]}}
        new = {"entity_type": kind, "canonical_name": f"split {number}"}
        teller.call("entities/split", {**body, "new_entity": new, "idempotency_key": f"s{number}"})
    for number in range(100):
        about = {"entity_id": teller.some(), "reason": "gone"}
        about["entity_type"] = teller.entities[about["entity_id"]]
        teller.call("delete_entity", about)
        if number % 3 == 0:
            teller.call("restore_entity", about)
    for number in range(observations // 50):
        late = teller.record(chance.choice(kinds), chance.randrange(20))
        teller.call("store", {"entities": [late], "idempotency_key": f"late-{number}"})
    return teller
