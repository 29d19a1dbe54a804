"""Takes pictures of every page of the inspector, to be looked at: both themes, two widths.

python -m tests.inspector.screenshots FOLDER       all of them, on the ledger of the demonstration
python -m tests.inspector.screenshots --docs       those of the README and of the guide, into docs/images/
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.inspector import browser, ledgers, routes
from tests.inspector.browser import NARROW, WIDE, Look
from tests.inspector.served import Served

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
LOAN, CONTRACT = "loan/42", "contract/kline"
REPORT = "credit-report-rivera.txt"


def name_of(path: str) -> str:
    """Return the name of a page's picture: its address, without ids, which differ from run to run."""
    text = re.sub(r"(run|src|obs|int|ent)_[a-z2-7]{26}", "id", path)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "home"


def take(server: Served, folder: Path, paths: Sequence[str], themes: Sequence[str] = ("light", "dark")) -> list[Path]:
    """Take pictures of pages, whole ones, and return the files."""
    made = []
    with browser.running() as found:
        for theme in themes:
            for size in (WIDE, NARROW):
                context = found.new_context(
                    viewport=size,  # type: ignore[arg-type]
                    color_scheme=theme,  # type: ignore[arg-type]
                    reduced_motion="reduce",
                    locale="en-GB",
                    timezone_id="UTC",
                )
                look = Look(context.new_page(), server.url)
                for path in paths:
                    look.go(path).rest()
                    file = folder / f"{name_of(path)}-{size['width']}-{theme}.png"
                    look.page.screenshot(path=file, full_page=True)
                    made.append(file)
                context.close()
    return made


def take_docs(server: Served) -> list[Path]:
    """Take the pictures of the README and the guide, in the order in which a newcomer meets the pages."""
    loans, contracts = (server.items("runs", subject=subject) for subject in (LOAN, CONTRACT))
    rejected = loans[-1]["id"]
    (report,) = [one for one in server.items("sources") if one["name"] == REPORT]
    pages = {
        "home": "/",
        "decision": f"/decisions/{rejected}/{routes.decision_step(server, rejected)}",
        "document": f"/sources/{report['source']}?line=6",
        "compare": f"/compare?runs={contracts[-1]['id']},{contracts[0]['id']}",
        "run": f"/runs/{rejected}",
    }
    made = []
    IMAGES.mkdir(exist_ok=True)
    with browser.running() as found:
        context = found.new_context(
            viewport=WIDE,  # type: ignore[arg-type]
            color_scheme="light",
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        look = Look(context.new_page(), server.url)
        for name, path in pages.items():
            look.go(path).check().rest()
            file = IMAGES / f"inspector-{name}.png"
            look.page.screenshot(path=file)
            made.append(file)
        context.close()
    return made


def main(arguments: Sequence[str]) -> int:
    """Take what was asked for; return the exit code."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    if (problem := browser.missing()) is not None:
        print(f"No picture was taken: {problem}.", file=sys.stderr)
        return 1
    with TemporaryDirectory() as temporary:
        ledgers.make_demo(path := Path(temporary) / "demo.db")
        with Served(path) as server:
            if arguments[0] == "--docs":
                made = take_docs(server)
            else:
                folder = Path(arguments[0])
                folder.mkdir(parents=True, exist_ok=True)
                made = take(server, folder, list(routes.addresses(server)))
    print(f"Took {len(made)} pictures in {made[0].parent}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
