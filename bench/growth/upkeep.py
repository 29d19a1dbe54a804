"""Upkeep: the verbs that care for a ledger as a whole, prove something of it, or carry it elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import woodrat
from bench.growth.case import Case, Facts
from bench.growth.loans import LOANS
from bench.growth.people import AGENTS, PEOPLE, person, picked
from bench.growth.slope import ALL, ANSWER
from bench.growth.stock import INDEXES, index_all
from woodrat.api.ledger import Ledger
from woodrat.ledger.indexer import positions


def cases() -> Iterator[Case]:
    """Yield the rows."""
    yield Case("erase, one entity", "erase", ANSWER, PEOPLE, _erase, keys=True)
    yield Case("erase, dry run", "erase", ANSWER, PEOPLE, _erase_dry, keys=True)
    yield Case("erase_again, nothing left", "erase_again", ANSWER, PEOPLE, _erase_again, _erase_first, keys=True)
    yield Case("finish_erasure", "finish_erasure", ANSWER, PEOPLE, _finish_erasure, _erase_first, keys=True)
    for world in (PEOPLE, LOANS):
        name = f"all indexes of {world.name}, from nothing"
        yield Case(name, "rebuild", ALL, world, _index, repeats=False, is_bare=True)
    yield Case("rebuild", "rebuild", ALL, PEOPLE, _rebuild, repeats=False)
    yield Case("verify", "verify", ALL, PEOPLE, _verify, repeats=False)
    yield Case("verify, deep", "verify", ALL, PEOPLE, _verify_deep, repeats=False)
    yield Case("prove_order, one shuffle", "prove_order", ALL, PEOPLE, _prove_order, repeats=False)
    yield Case("proofs.checkpoint", "proofs.checkpoint", ANSWER, PEOPLE, _checkpoint, keys=True)
    yield Case("proofs.checkpoints", "proofs.checkpoints", ANSWER, PEOPLE, _checkpoints, _sign, keys=True)
    yield Case("proofs.prove", "proofs.prove", ANSWER, PEOPLE, _prove, _sign, keys=True)
    yield Case("proofs.prove_consistency", "proofs.prove_consistency", ANSWER, PEOPLE, _consistency, _sign, keys=True)
    yield Case("proofs.capsule of a field", "proofs.capsule", ANSWER, PEOPLE, _capsule, _sign, keys=True)
    yield Case("log.export", "log.export", ALL, PEOPLE, _export, repeats=False)
    yield Case("log.import_", "log.import_", ALL, PEOPLE, _import, _export_file, repeats=False)
    yield Case("log.backup", "log.backup", ALL, PEOPLE, _backup, repeats=False)
    yield Case("log.sync, nothing new", "log.sync", ANSWER, PEOPLE, _sync, _copy)
    yield Case("log.sync, one new entry", "log.sync", ANSWER, PEOPLE, _sync_one, _copy)
    yield Case("log.sync, everything new", "log.sync", ALL, PEOPLE, _sync_all, repeats=False)


def _erase(ledger: Ledger, facts: Facts, number: int) -> None:
    shipment = f"shipment/SHP-{picked(number, facts['shipments']):07d}"
    assert ledger.erase(shipment, reason="asked to be forgotten")


def _erase_dry(ledger: Ledger, facts: Facts, number: int) -> None:
    shipment = f"shipment/SHP-{picked(number, facts['shipments']):07d}"
    assert ledger.erase(shipment, reason="asked to be forgotten", dry_run=True)


def _erase_first(ledger: Ledger, facts: Facts) -> Facts:
    _erase(ledger, facts, 0)
    return {}


def _erase_again(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.erase_again() == ()


def _finish_erasure(ledger: Ledger, facts: Facts, _: int) -> None:
    ledger.finish_erasure()


def _index(ledger: Ledger, facts: Facts, _: int) -> None:
    index_all(ledger)
    with ledger.context.engine.view(ledger.tenant) as view:
        assert not any(found.lacking for found in positions(view, INDEXES))


def _rebuild(ledger: Ledger, facts: Facts, _: int) -> None:
    ledger.rebuild()


def _verify(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.verify().sound


def _verify_deep(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.verify(deep=True).sound


def _prove_order(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.prove_order(shuffles=1)


def _write(ledger: Ledger, number: int) -> None:
    ledger.store({"entity_type": "company", "name": f"New company {number}"})


def _checkpoint(ledger: Ledger, facts: Facts, number: int) -> None:
    _write(ledger, number)
    assert ledger.proofs.checkpoint()


def _sign(ledger: Ledger, facts: Facts) -> Facts:
    old = ledger.proofs.checkpoint()
    return {"checkpoint": old.note, "proved": facts["observations"][0]}


def _checkpoints(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.proofs.checkpoints()


def _prove(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.proofs.prove(facts["proved"])


def _consistency(ledger: Ledger, facts: Facts, number: int) -> None:
    _write(ledger, number)
    assert ledger.proofs.prove_consistency(facts["checkpoint"])


def _capsule(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.proofs.capsule(f"{person(picked(number, facts['people']))}#city")


def _export(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.log.export(io.BytesIO()).entries == facts["head"] + 1


def _beside(facts: Facts, name: str) -> Path:
    return Path(facts["path"]).with_name(name)


def _export_file(ledger: Ledger, facts: Facts) -> Facts:
    ledger.log.export(_beside(facts, "exported.jsonl"))
    return {}


def _import(ledger: Ledger, facts: Facts, _: int) -> None:
    """Import into a new ledger, which becomes a clone."""
    with woodrat.open(_beside(facts, "clone.db"), agent=AGENTS[0]) as clone:
        clone.log.import_(_beside(facts, "exported.jsonl"))
        assert clone.position == facts["head"]


def _backup(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.log.backup(_beside(facts, "backup.db"))


def _copy(ledger: Ledger, facts: Facts) -> Facts:
    with woodrat.open(_beside(facts, "other.db"), agent=AGENTS[1]) as other:
        ledger.log.sync(other)
    return {}


def _sync(ledger: Ledger, facts: Facts, _: int) -> None:
    with woodrat.open(_beside(facts, "other.db"), agent=AGENTS[1]) as other:
        ledger.log.sync(other)


def _sync_one(ledger: Ledger, facts: Facts, number: int) -> None:
    _write(ledger, number)
    _sync(ledger, facts, number)


def _sync_all(ledger: Ledger, facts: Facts, _: int) -> None:
    with woodrat.open(_beside(facts, "other.db"), agent=AGENTS[1]) as other:
        ledger.log.sync(other)
        assert other.position > 0
