"""What a type checker knows of the library in user code: real parameters and results, here, there and awaited."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

USER = """
import woodrat


@woodrat.tool
def lookup(application: str) -> dict[str, int]:
    return {"score": 580}


@woodrat.tool(once=True)
async def pay(amount: int) -> str:
    return "paid"


class Desk:
    @woodrat.tool
    def ask(self, question: str) -> int:
        return len(question)


def here() -> None:
    with woodrat.open(":memory:", agent="crm") as ledger:
        reveal_type(ledger)  # Ledger
        reveal_type(ledger.store([{"entity_type": "contact", "name": "Ana"}], priority=1))  # Report
        reveal_type(ledger.runs.show("run_a"))  # RunRecord
        reveal_type(ledger.at(0).show("contact/Ana"))  # Snapshot
        reveal_type(ledger.schemas.list())  # Page[Schema]
        for conflict in ledger.conflicts():
            reveal_type(conflict)  # EntityConflict
        reveal_type(ledger.diff(0))  # Changes
        reveal_type(lookup("42"))  # dict[str, int]
        ledger.store([{}], prio=1)  # error: prio
        ledger.runs.show(42)  # error: int
        lookup(42)  # error: int
        reveal_type(lookup.call("42"))  # Call
        reveal_type(lookup.call("42").fact("/score"))  # Fact
        lookup.call(42)  # error: int
        reveal_type(Desk().ask("why?"))  # int
        reveal_type(Desk().ask.call("why?"))  # Call
        Desk().ask(42)  # error: int


async def there() -> None:
    async with await woodrat.aopen("http://localhost:8787", key="wrat_") as ledger:
        reveal_type(ledger)  # AsyncLedger
        reveal_type(await ledger.store([{"entity_type": "contact", "name": "Ana"}]))  # Report
        reveal_type(await ledger.runs.show("run_a"))  # RunRecord
        reveal_type(await ledger.proofs.capsule("run_a"))  # Capsule
        reveal_type(await pay(3))  # str
        reveal_type(await pay.call(3))  # Call
        await pay.call("3")  # error: str
        past = await ledger.at(0)
        reveal_type(await past.show("contact/Ana"))  # Snapshot
        async for stored in await ledger.observations(limit=10):
            reveal_type(stored)  # Stored
        await ledger.store([{}], prio=1)  # error: prio
        await ledger.show(42)  # error: int
        await woodrat.aopen(":memory:", agnt="crm")  # error: agnt
"""


def test_user_code_is_checked_by_the_real_types(tmp_path: Path) -> None:
    """Every verb reveals its record, and every mistake in a call is an error; the comment at each line says which."""
    file = tmp_path / "user.py"
    file.write_text(USER, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    lines = USER.split("\n")
    expected = {number: text for number, text in enumerate(lines, 1) if "  # " in text}
    seen: dict[int, str] = {}
    for number, text in re.findall(r"user\.py:(\d+): (?:error|note): (.*)", told):
        seen[int(number)] = seen.get(int(number), "") + text
    for number, text in expected.items():
        wanted = text.rpartition("  # ")[2].removeprefix("error: ")
        assert number in seen, f"{text}: mypy says nothing\n{told}"
        assert wanted.split("[")[0] in seen[number], f"{text}: {seen[number]}"
    assert set(seen) == set(expected), told
