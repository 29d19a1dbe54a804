"""The pages people come for: home, a run, two runs compared, a decision, an entity; and the two tasks of a newcomer."""

from __future__ import annotations

from pathlib import Path

from tests.inspector import ledgers
from tests.inspector.conftest import Open, made_once
from tests.inspector.served import Served

import woodrat

ANA = "/entities/contact/Ana%20Rivera"


def test_an_auditor_learns_why_loan_42_was_rejected_in_three_clicks(demo: Served, look: Open) -> None:
    """Why, from which document, who changed it since and why, and how to prove it."""
    found = look(demo, "/")
    page = found.page
    page.get_by_role("region", name="Stale decisions").get_by_role("link", name="application #42").click()
    page.get_by_text("Because credit score 580 is below 600.").wait_for()
    page.get_by_text("the outcome would be").wait_for()
    told = page.inner_text("main")
    for words in (
        "Rejected",
        "Marginal credit",
        "credit-report-rivera.txt",
        "Credit score: 580",
        "maria corrected it to 720",
        "mixed up two people",
        "the outcome would be approved",
        "If credit score had been at least 700",
        "woodrat-verify",
    ):
        assert words in told, words
    article = page.locator("main article, main .paper, main .card").first.inner_text()
    for hidden in ("obs_", "run_", "src_", "position", " lt ", "gte"):
        assert hidden not in article, hidden
    page.get_by_role("link", name="credit-report-rivera.txt").first.click()
    page.locator("[data-marked]", has_text="Credit score: 580").wait_for()
    found.check()


def test_an_engineer_learns_why_two_runs_differ_in_three_clicks(demo: Served, look: Open) -> None:
    found = look(demo, "/")
    page = found.page
    runs = page.get_by_role("region", name="Latest runs").get_by_role("row", name="How is kline to pay?")
    runs.nth(0).get_by_role("checkbox").check()
    runs.nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare 2").click()
    page.get_by_role("heading", name="Why two runs differ").wait_for()
    page.get_by_text("billing-bot wrote payment_terms Net-45 (was Net-30)").first.wait_for()
    told = page.inner_text("main")
    for words in ("they part here", "Net-30", "Net-45", "invoice-118.txt", "Escalate to legal."):
        assert words in told, words
    page.get_by_text("they part here").first.wait_for(state="visible")
    found.check()


def test_home_searches_everything(demo: Served, look: Open) -> None:
    found = look(demo, "/")
    found.page.get_by_label("Search entities, runs and documents").last.fill("Ana Rivera")
    found.page.keyboard.press("Enter")
    found.page.wait_for_url("**/?q=Ana*")
    found.page.get_by_role("link", name="Ana Rivera").first.wait_for()
    found.check()


def test_many_runs_fall_into_clusters(demo: Served, look: Open) -> None:
    runs = [run["id"] for run in demo.items("runs", subject="contract/kline")]
    assert len(runs) == 4
    found = look(demo, f"/compare?runs={','.join(runs)}")
    told = found.page.inner_text("main")
    assert "3 of 4 runs agree" in told
    assert "payment_terms" in told or "payment terms" in told
    found.check()


def test_a_fork_is_edited_in_place_and_its_outcome_shown_at_once(demo: Served, look: Open) -> None:
    """The value of the other run stands ready; what is typed is in the outcome, the command and the test."""
    runs = [run["id"] for run in demo.items("runs", subject="contract/kline")]
    found = look(demo, f"/compare?runs={runs[-1]},{runs[0]}")
    page = found.page
    page.get_by_role("button", name="Fork from here").first.click()
    panel = page.get_by_role("region", name="Fork from here")
    panel.get_by_text("standard procedure → escalate").wait_for()
    command = panel.locator("[data-fork=command]")
    assert command.inner_text() == (
        f"woodrat runs fork {runs[-1]} --at 2 --set fields.payment_terms=Net-45 --with my_agent:agent"
    )
    panel.get_by_label("It becomes").fill("Net-30 ")
    panel.get_by_text("would flip").wait_for()
    panel.get_by_label("It becomes").fill("Net-30")
    panel.get_by_text("Type another value").wait_for()
    panel.get_by_label("It becomes").fill("Net-60")
    panel.get_by_text("would flip").wait_for()
    panel.get_by_role("button", name="pytest").click()
    code = panel.locator("[data-fork=pytest]").inner_text()
    compile(code, "test_fork.py", "exec")
    assert 'edited = {"fields.payment_terms": "Net-60"}' in code
    found.check()


def test_a_step_of_a_run_is_forked(demo: Served, look: Open) -> None:
    """A tool's result is edited at its step; a rule that looks at it by name is asked."""
    runs = [run["id"] for run in demo.items("runs", subject="contract/kline")]
    found = look(demo, f"/runs/{runs[0]}")
    step = found.page.locator("[data-step='1']")
    step.locator("button.line").click()
    step.get_by_role("button", name="Fork from here").click()
    step.get_by_label("What to edit").select_option(label="limit")
    step.get_by_label("It becomes").fill("0")
    step.locator("[data-outcome] p").first.wait_for()
    assert "--at 1 --set result.limit=0" in step.locator("[data-fork]").inner_text()
    found.check()


def test_an_entity_names_who_it_may_be_the_same_as(own: Served, look: Open) -> None:
    """However many duplicates there are, those of this entity are found, and one is merged with a reason."""
    many = [{"entity_type": "company", "domain": f"d{n // 2}", "$": {"key": f"k{n}"}} for n in range(300)]
    own.post("store", {"records": many})
    found = look(own, "/entities/company/k299")
    suggested = found.page.get_by_role("region", name="Suggested merges")
    assert "has the same domain: d149" in suggested.inner_text()
    suggested.get_by_role("button", name="Merge").click()
    found.page.get_by_label("Reason").fill("one register entry")
    found.page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    suggested.wait_for(state="detached")
    found.check()
    assert own.items("duplicates", ref="company/k298") == []


def test_a_run_is_judged_and_shows_its_steps(own: Served, look: Open) -> None:
    (run,) = [run["id"] for run in own.items("runs", subject="loan/30")]
    found = look(own, f"/runs/{run}")
    page = found.page
    steps = page.locator("[data-step]")
    assert steps.count() == len(own.get(f"runs/{run}/steps")["items"])
    steps.filter(has_text="lookup_credit_bureau").locator("button, summary").first.click()
    page.get_by_text("open_accounts").first.wait_for()
    page.get_by_role("button", name="Judge").click()
    page.get_by_label("Verdict").select_option("bad")
    page.get_by_label("Reason").fill("a person should have looked at it")
    page.get_by_role("button", name="Store the judgement").click()
    page.get_by_text("a person should have looked at it").wait_for()
    assert own.get(f"runs/{run}")["verdict"] == "bad"
    found.check()


def test_a_run_is_copied_as_a_test(demo: Served, look: Open) -> None:
    (run,) = [run["id"] for run in demo.items("runs", subject="loan/30")]
    found = look(demo, None)
    found.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    found.go(f"/runs/{run}")
    found.page.get_by_role("button", name="Copy as pytest test").click()
    found.page.get_by_text("Copied").wait_for()
    code = found.evaluate("() => navigator.clipboard.readText()")
    compile(code, "test_run.py", "exec")
    assert run in code
    found.check()


def test_two_sliders_scrub_an_entity(demo: Served, look: Open) -> None:
    """What is believed follows what was known; the address holds the moment, so that a colleague sees the same."""
    found = look(demo, ANA)
    page = found.page
    city = page.locator("[data-field=city] .value")
    assert "San Francisco" in city.inner_text()
    known = page.get_by_label("Known at")
    known.focus()
    page.keyboard.press("Home")
    page.wait_for_url("**as_of=*")
    page.wait_for_function("() => document.querySelector('[data-field=city]')?.innerText.includes('Barcelona')")
    assert page.locator("[data-field=city]").get_by_text("changed").count() == 1
    page.reload()
    found.settle()
    assert "Barcelona" in city.inner_text()
    page.get_by_role("button", name="Back to now").first.click()
    page.wait_for_function("() => document.querySelector('[data-field=city]')?.innerText.includes('San Francisco')")
    true = page.get_by_label("True at")
    true.focus()
    page.keyboard.press("Home")
    page.wait_for_url("**valid_at=*")
    page.wait_for_function("() => document.querySelector('[data-field=city]')?.innerText.includes('Barcelona')")
    found.check()


def test_an_entity_is_corrected_retracted_deleted_and_restored(own: Served, look: Open) -> None:
    found = look(own, "/entities/contact/Mei%20Tanaka")
    page = found.page

    def act(button: str, *, field: str | None = None, value: str | None = None) -> None:
        page.get_by_role("button", name=button, exact=True).first.click()
        dialog = page.get_by_role("dialog")
        if field is not None and value is not None:
            dialog.get_by_label("Field").fill(field)
            dialog.get_by_label("Right value").fill(value)
        dialog.get_by_label("Reason").fill("tried in the browser")
        dialog.locator("[type=submit]").click()
        dialog.wait_for(state="hidden")

    act("Correct", field="city", value="Faro")
    page.locator("[data-field=city]", has_text="Faro").wait_for()
    page.locator("[data-field=city] button").first.click()
    page.get_by_text("Lisbon").first.wait_for()
    act("Withdraw")
    page.locator("[data-field=city] .value", has_text="Porto").first.wait_for()
    act("Delete")
    page.get_by_role("button", name="Restore").wait_for()
    act("Restore")
    page.locator("[data-field=city]", has_text="Porto").wait_for()
    found.check()
    shown = own.get("entities/contact/Mei%20Tanaka")
    assert (shown["fields"]["city"], shown["deleted"]) == ("Porto", False)
    ops = [one["op"] for one in own.items("observations", ref="contact/Mei Tanaka")]
    assert ops == ["assert", "assert", "correct", "retract", "delete", "restore"]


def test_a_proof_without_keys_says_how_to_make_one(demo: Served, look: Open) -> None:
    (run,) = [run["id"] for run in demo.items("runs", subject="loan/30")]
    found = look(demo, f"/runs/{run}")
    found.page.get_by_role("button", name="Download proof").click()
    found.page.get_by_text("woodrat init").first.wait_for()
    found.check(400)


def test_what_was_erased_is_a_clear_page(tmp_path: Path, look: Open) -> None:
    """The entity is not known any more, its entries say that they were erased, and no page shows what went."""
    path = made_once("demo", ledgers.make_demo, tmp_path)
    woodrat.init(tmp_path / "keys")
    with woodrat.open(path, tenant=ledgers.TENANT, keys=tmp_path / "keys") as ledger:
        position = ledger.observations("contact/Mei Tanaka").items[0].position
        assert ledger.erase("contact/Mei Tanaka", reason="she asked for it").purged
    with Served(path) as server:
        found = look(server, "/entities/contact/Mei%20Tanaka").check(404)
        assert "Nothing was changed" in found.page.inner_text("main")
        found.go(f"/log/{position}").check(404)
        assert "Its content was erased" in found.page.inner_text("main")
        for page in ("/", "/log", "/entities", "/recall?q=where+does+Mei+Tanaka+live"):
            assert "Porto" not in found.go(page).page.inner_text("main"), page
        found.check(404)
