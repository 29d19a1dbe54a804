"""Reads take any unique beginning of an id, and `last`; a write takes the whole id, and names it."""

from __future__ import annotations

import json

import pytest
from tests.commands import Cli

ANA = "contact/Ana Rivera"
CRM, WEB = "obs_d2fjsh5trd3wfuioa2iscubxg2", "obs_pmlsgx2mhscnae7ltvxes62wyn"


def run_of(cli: Cli, number: int) -> str:
    """Import a run; return its id."""
    document = {"query": f"Run {number}?", "steps": [{"read": ANA}], "answer": str(number)}
    (run,) = cli("runs", "import", "-", stdin=json.dumps(document).encode()).json["items"]
    return str(run)


def test_a_unique_beginning_is_the_id(ana: Cli) -> None:
    """Entities, observations, sources, interpretations and runs are read by the beginning of their ids."""
    whole = ana("show", ANA).json
    assert ana("show", whole["entity_id"][:9]).json == whole
    assert ana("blame", f"{whole['entity_id'][:9]}#city").json == ana("blame", f"{ANA}#city").json
    assert ana("lineage", CRM[:7]).json == ana("lineage", CRM).json
    assert ana("impact", WEB[:6]).json == ana("impact", WEB).json
    source = ana("sources", "add", "-", stdin=b"Net-30").json["source"]
    assert ana("sources", "show", source[:8]).json["text"] == "Net-30"
    run = run_of(ana, 1)
    assert ana("runs", "show", run[:12]).json["id"] == run
    assert ana("runs", "diff", run[:12], run).json["same"] is True


def test_last_is_the_latest_run(ana: Cli) -> None:
    """`last` names the run that the log heard of last, also as a moment, and as of an earlier moment the one before."""
    first = run_of(ana, 1)
    head = ana("fingerprint").json["position"]
    second = run_of(ana, 2)
    assert ana("runs", "show", "last").json["id"] == second
    assert ana("runs", "show", "last", "--as-of", str(head)).json["id"] == first
    assert ana("show", ANA, "--as-of", "last").code == 0
    assert ana("lineage", "last").json == ana("lineage", second).json


def test_without_runs_there_is_no_last(ana: Cli) -> None:
    """Where there is no run, `last` is not found."""
    assert ana("runs", "show", "last").code == 3


def test_an_ambiguous_beginning_is_refused_with_what_it_can_mean(ana: Cli) -> None:
    """Several ids with the same beginning are listed, ten at most, and nothing is read."""
    runs = sorted(run_of(ana, number) for number in range(12))
    ran = ana("runs", "show", runs[0][:6])
    assert ran.code == 2
    assert f'RUN: "{runs[0][:6]}" is the beginning of several ids: {runs[0]}, ' in ran.err
    assert ran.err.count("run_") == 11
    assert "and more. Type more of the id.\nNothing was read." in ran.err


@pytest.mark.parametrize(
    ("words", "full"),
    [
        (("retract", CRM[:8], "--reason", "x"), CRM),
        (("correct", ANA, "--set", "city=Vic", "--reason", "x", "--replaces", WEB[:9]), WEB),
        (("delete", "ent_e6kwyelb"), "ent_e6kwyelbgdqvrqexhppy7t5lmf"),
    ],
)
def test_a_write_needs_the_whole_id_and_names_it(ana: Cli, words: tuple[str, ...], full: str) -> None:
    """A write refuses the beginning of an id, and says which id it is."""
    before = ana("log").out
    ran = ana(*words)
    assert ran.code == 2
    assert f"is only the beginning of an id, and a write needs the whole id. Send {full}." in ran.err
    assert "Nothing was written." in ran.err
    assert ana("log").out == before


def test_the_latest_run_is_judged_by_its_id(ana: Cli) -> None:
    """`last` is for reading; a write says which run it would have been."""
    run = run_of(ana, 1)
    ran = ana("runs", "judge", "last", "good")
    assert ran.code == 2
    assert f'"last" stands for the latest run, and a write needs the whole id. Send {run}.' in ran.err
    assert ana("runs", "judge", run, "good").code == 0


def test_no_tenant_completes_ids_of_another(ana: Cli) -> None:
    """What begins so elsewhere is not found here."""
    ana("store", '--json={"entity_type":"thing","name":"x"}', "--tenant", "other")
    assert ana("lineage", CRM[:8], "--tenant", "other").code in (2, 3)
    assert CRM not in ana("lineage", CRM[:8], "--tenant", "other").err
