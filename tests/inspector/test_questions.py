"""Pages that answer questions: stale decisions, conflicts, documents, impact, what-if, recall, the log, keys."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.inspector.conftest import Open
from tests.inspector.served import Served


def test_a_stale_decision_says_what_changed_who_changed_it_and_why(demo: Served, look: Open) -> None:
    page = look(demo, "/stale").check().page
    loan = page.locator("[data-stale=flip]", has_text="application #42")
    assert "would flip to approved" in loan.inner_text()
    assert "580 → 720 by maria" in re.sub(r"\s+", " ", loan.inner_text())
    assert "mixed up two people" in loan.inner_text()
    flips = page.locator("[data-stale]").count()
    page.get_by_label("Include decisions with the same outcome").check()
    page.wait_for_url("**/stale?same=true")
    page.wait_for_function("(n) => document.querySelectorAll('[data-stale]').length >= n", arg=flips)


def test_a_conflict_is_settled_with_a_reason(own: Served, look: Open) -> None:
    found = look(own, "/conflicts")
    page = found.page
    city = page.locator("[data-conflict='contact/Ana Rivera#city']")
    city.get_by_role("row", name="Barcelona").get_by_role("button", name="Keep this value").click()
    submit = page.get_by_role("button", name="Correct the field")
    assert submit.is_disabled()
    page.get_by_label("Reason").fill("she told me on the phone")
    submit.click()
    city.wait_for(state="detached")
    found.check()
    claims = own.get("blame/contact/Ana%20Rivera", field="city")["claims"]["city"]
    assert [(claim["value"], claim["agent"]) for claim in claims if claim["wins"]] == [("Barcelona", "inspector")]


def test_two_entities_that_are_one_are_merged(own: Served, look: Open) -> None:
    found = look(own, "/duplicates")
    row = found.page.locator("[data-duplicate='ana@rivera.example']")
    row.get_by_role("button", name="Merge").click()
    found.page.get_by_label("Reason").fill("they share a mailbox")
    found.page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    row.wait_for(state="detached")
    found.check()
    assert own.items("duplicates") == []


def test_a_document_is_beside_the_facts_read_from_it(demo: Served, look: Open) -> None:
    found = look(demo, "/sources")
    page = found.page
    page.get_by_role("link", name="invoice-118.txt").click()
    found.settle()
    assert page.locator("[data-marked]").count() == 0
    page.get_by_role("button", name="Show where").first.click()
    assert page.locator("[data-marked]").inner_text().split("\n")[-1] == "Payment within 45 days."
    page.get_by_label("First").select_option(label="Read by reader-1")
    page.get_by_label("Second").select_option(label="Read by reader-2")
    page.get_by_text("payment terms Net-30 → Net-45").wait_for()
    found.check()


def test_impact_leads_from_a_document_to_the_decision(demo: Served, look: Open) -> None:
    (report,) = [one for one in demo.items("sources") if one["name"] == "credit-report-rivera.txt"]
    found = look(demo, f"/impact?of={report['source']}")
    graph = found.page.get_by_role("group", name="What depends on credit-report-rivera.txt")
    graph.get_by_role("link").filter(has_text="rejected").wait_for()
    loan = graph.get_by_role("link").filter(has_text="loan/42").filter(has_not_text="→")
    assert loan.get_attribute("href") == "/entities/loan/42"
    assert "loan-officer" in found.page.get_by_role("table").first.inner_text()
    found.check()


def test_a_threshold_is_moved_and_flips_are_counted(demo: Served, look: Open) -> None:
    found = look(demo, "/what-if?stage=classify-risk")
    page = found.page
    slider = page.get_by_label("Credit score is below 600")
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    page.wait_for_url("**suppose=**")
    page.wait_for_selector("[data-count=flip]:text-is('2')")
    page.reload()
    found.settle()
    assert page.locator("[data-count=flip]").inner_text() == "2"
    assert page.get_by_label("Credit score is below 640").count() == 1
    page.get_by_role("button", name="Put everything back").click()
    page.get_by_text("Move a slider").wait_for()
    found.check()


def test_recall_shows_hits_misses_and_what_a_model_is_given(demo: Served, look: Open) -> None:
    found = look(demo, "/recall")
    page = found.page
    page.get_by_label("Question").fill("why was application 42 rejected?")
    page.get_by_role("button", name="Ask").click()
    page.locator("[data-hit]").first.wait_for()
    page.get_by_text("What a model would be given").click()
    assert "classify-risk" in page.locator("pre").inner_text()
    page.get_by_label("Threshold").evaluate(
        "(input) => { input.value = 1; input.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    page.wait_for_url("**threshold=1*")
    page.get_by_text("Nothing passed").wait_for()
    page.get_by_role("region", name="Near misses").wait_for()
    found.check()


def test_the_log_is_live_and_an_entry_has_its_own_page(own: Served, look: Open) -> None:
    found = look(own, "/log")
    page = found.page
    page.get_by_role("button", name="Verify now").click()
    page.get_by_text("sound", exact=True).wait_for()
    page.get_by_text("live", exact=True).wait_for()
    found.until(lambda: found.streams == 1)
    store = "woodrat.open(sys.argv[1], tenant='demo').store({'entity_type': 'contact', 'name': 'Nils Live'})"
    subprocess.run([sys.executable, "-c", f"import sys, woodrat; {store}", own.path], check=True, timeout=60)
    page.get_by_text("contact/Nils Live").wait_for()
    assert found.streams == 1
    page.get_by_role("button", name="Older").click()
    page.wait_for_url("**/log?through=*")
    found.settle()
    page.get_by_role("region", name="Entries").get_by_role("link").first.click()
    found.settle()
    assert re.search(r"/log/\d+$", page.url)
    assert page.get_by_text("Commitment").count() == 1
    found.check()


def test_a_verification_says_how_far_it_is_and_can_be_cancelled(large: Served, look: Open) -> None:
    """The bar grows with the entries that were checked; whoever has seen enough stops it, and nothing was changed."""
    found = look(large, "/log")
    page = found.page
    page.get_by_role("button", name="Verify now").click()
    bar = page.get_by_role("progressbar", name="Verification")
    whole = f"of {large.get('position')['position'] + 1:,}"
    page.locator("[data-verifying]", has_text=whole).wait_for()
    seen: set[int] = set()

    def is_seen_growing() -> bool:
        if bar.count():
            seen.add(int(bar.get_attribute("aria-valuenow") or 0))
        return bar.count() == 0 or len(seen) > 2

    found.until(is_seen_growing)
    assert len(seen) > 2, seen
    assert min(seen) < 100
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled after").wait_for()
    page.get_by_role("button", name="Verify again").wait_for()
    found.check()


def test_a_schema_is_told_in_words(demo: Served, look: Open) -> None:
    found = look(demo, "/schemas")
    found.page.get_by_role("link", name="contact", exact=True).click()
    found.page.get_by_text("Two records are the same if they share email").wait_for()
    assert "all elements are kept" in found.page.get_by_role("row", name="emails").inner_text()
    found.check()


def test_a_key_is_revoked_by_who_may_manage(own: Served, look: Open) -> None:
    _, operator = own.keys.create("demo", "operator", ["*"])
    own.keys.create("demo", "laptop", ["read"], name="on the road")
    found = look(own, None)
    page = found.page
    page.goto(own.url + "/admin")
    page.get_by_label(re.compile("key", re.IGNORECASE)).first.fill(operator)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Administration").wait_for()
    row = page.get_by_role("row", name="on the road")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_label("Reason").fill("lost")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    row.get_by_text("revoked").wait_for()
    found.check(401)


def test_pages_say_what_is_wrong_with_what_they_are_asked(demo: Served, look: Open) -> None:
    for path, words in (
        ("/sources/src_aaaaaaaaaaaaaaaaaaaaaaaaaa", "There is no source"),
        ("/impact?of=obs_aaaaaaaaaaaaaaaaaaaaaaaaaa", "There is no"),
        ("/log/999999", "does not reach position"),
        ("/log/x", "is no position"),
        ("/schemas/nothing_here", "nothing_here"),
        ("/what-if?run=run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "There is no run"),
        ("/nowhere", "There is no such page"),
    ):
        found = look(demo, path).check(404, 400)
        assert words in found.text(), path
