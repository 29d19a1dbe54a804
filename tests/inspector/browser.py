"""A real browser that looks at the inspector, and notices what no page may do."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Playwright, Request, Response, sync_playwright
from tests.inspector.paging import Call

from woodrat.inspector.site import STATIC

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SETTING: Final = "WOODRAT_BROWSER"
AXE: Final = Path(__file__).resolve().parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
"""The checker of accessibility, which comes with what the app is built with."""
WIDE: Final = {"width": 1280, "height": 800}
NARROW: Final = {"width": 390, "height": 844}
NAVIGATE: Final = "(path) => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
SETTLED_MS: Final = 60_000
"""How long a page may take to show what it has, the first recall of a large ledger too, which builds its index.

Nothing is asserted about the time.
"""
QUIET: Final = ("Failed to load resource",)
"""What a browser says of an answer that is an error; which answers may be one is asserted by status."""


def executable() -> str | None:
    """Return the browser of this machine, if there is one."""
    named = os.environ.get(SETTING)
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


def missing() -> str | None:
    """Return what keeps browser tests from running, if anything does."""
    if executable() is None:
        return f"there is no browser ({', '.join(BROWSERS)}, or what {SETTING} names)"
    if not (STATIC / "index.html").exists():
        return "the inspector is not built; run `python3 dev.py ui`"
    return None


@contextmanager
def running() -> Iterator[Browser]:
    """Have one browser, for as many pages as are wanted."""
    with sync_playwright() as playwright:
        browser = start(playwright)
        yield browser
        browser.close()


def start(playwright: Playwright) -> Browser:
    """Start the browser of this machine."""
    options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"]
    return playwright.chromium.launch(executable_path=executable(), args=options)


@dataclass
class Look:
    """One page being looked at, with all that went wrong in it."""

    page: Page
    base: str
    """The address of the server."""
    errors: list[str] = field(default_factory=list)
    """What the console, a script or the policy of the page complained about, and dialogs."""
    requests: list[str] = field(default_factory=list)
    """Paths that were asked for, with their methods, in order."""
    failed: list[tuple[int, str]] = field(default_factory=list)
    """Answers that were errors, by status and path."""
    streams: int = 0
    """How often the stream of the log was asked for."""
    answers: list[Response] = field(default_factory=list)
    """Answers of the API that are JSON, until `calls` takes them."""
    waiting: set[Request] = field(default_factory=set)
    """Requests without an answer yet; the stream of the log never ends and is none of them."""

    def __post_init__(self) -> None:
        page = self.page
        page.set_default_timeout(SETTLED_MS)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', (event) => "
            "console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample));"
        )
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(f"script: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)
        page.on("dialog", self._dialog)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(QUIET):
            self.errors.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.errors.append(f"asked somebody else: {request.url}")
        self.requests.append(f"{request.method} {request.url.removeprefix(self.base)}")
        if request.resource_type == "eventsource":
            self.streams += 1
        else:
            self.waiting.add(request)

    def _ended(self, request: Request) -> None:
        self.waiting.discard(request)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.failed.append((response.status, response.url.removeprefix(self.base)))
        elif "/v1/" in response.url and response.headers.get("content-type", "").startswith("application/json"):
            self.answers.append(response)

    def go(self, path: str) -> Look:
        """Open an address and wait until the page shows what it has."""
        self.page.goto(self.base + path)
        return self.settle()

    def visit(self, path: str) -> Look:
        """Go to another page of the app without loading the app again, as a link does."""
        self.evaluate(NAVIGATE, path)
        return self.settle()

    def settle(self) -> Look:
        """Wait until nothing is being loaded: no skeleton is shown, and the page has its heading."""
        self.page.wait_for_selector("main h1, main [role=alert]", state="attached")
        self.page.wait_for_function("() => !document.querySelector('[aria-busy=true], .skeleton, [data-loading]')")
        return self

    def rest(self) -> Look:
        """Wait until the whole page has been seen and nothing is asked for any more, and look at its top."""
        self.settle()
        self.evaluate("() => window.scrollTo(0, document.documentElement.scrollHeight)")
        self.page.wait_for_timeout(100)
        self.until(lambda: not self.waiting)
        self.settle()
        self.evaluate("() => window.scrollTo(0, 0)")
        return self

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; fail where it never does."""
        for _ in range(SETTLED_MS // 50):
            if holds():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{self.page.url}: it never held; still waiting for {[each.url for each in self.waiting]}")

    def calls(self) -> list[Call]:
        """Return what was asked of the API since the last time, with the answers."""
        taken, self.answers[:] = self.answers[:], []
        found = []
        for response in taken:
            url = urlsplit(response.url)
            asked: dict[str, Any] = dict(parse_qsl(url.query))
            if sent := response.request.post_data:
                asked |= json.loads(sent)
            body = response.body()
            found.append(Call(response.request.method, url.path, asked, json.loads(body), len(body)))
        return found

    def text(self) -> str:
        """Return what the page says."""
        return self.page.inner_text("body")

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Run a script in the page."""
        return self.page.evaluate(script, argument)

    def check(self, *statuses: int) -> Look:
        """Fail on anything that went wrong; answers with these statuses are expected."""
        assert self.errors == [], f"{self.page.url}: {self.errors}"
        unexpected = [answer for answer in self.failed if answer[0] not in statuses]
        assert unexpected == [], f"{self.page.url}: {unexpected}"
        return self

    def serious(self) -> list[str]:
        """Return what keeps people from using the page, as axe-core finds it: serious and critical issues."""
        if not self.evaluate("() => 'axe' in window"):
            self.evaluate(f"() => {{ {AXE.read_text('utf-8')} }}")
        found = self.evaluate(
            "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
            ".filter((one) => one.impact === 'serious' || one.impact === 'critical')"
            ".map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html).join(' | '))"
        )
        return list(found)
