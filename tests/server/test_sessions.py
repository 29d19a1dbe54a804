"""Sessions: signing in with a key, what the cookie opens, what else a call needs, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.cookies import SimpleCookie
from types import SimpleNamespace

import pytest
from tests.server.server import Answer, Server

from woodrat.api.ledger import Ledger
from woodrat.canon import moment
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server import sessions, sign_in
from woodrat.server.app import App
from woodrat.server.audit import AUDIT_TENANT, looked
from woodrat.server.keys import KEYS_TENANT, Keyring, OpenAtFirst
from woodrat.server.limits import Limits
from woodrat.server.sessions import SESSIONS_TENANT

RECORD = {"records": [{"entity_type": "contact", "name": "Ana", "city": "Olot"}]}


class Hands(SystemClock):
    """A clock that can be put forward."""

    ahead = 0

    def now(self) -> str:
        return moment.from_micros(moment.to_micros(super().now()) + self.ahead * 1_000_000)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def ring(engine: SqliteEngine, clock: Hands) -> Keyring:
    return Keyring(Ledger(engine, tenant=KEYS_TENANT, agent="operator", clock=clock, policies=registry(())), clock)


Begin = Callable[..., Server]


@pytest.fixture
def begin(engine: SqliteEngine, ring: Keyring, clock: Hands) -> Iterator[Begin]:
    with ExitStack() as running:

        def start(**limits: object) -> Server:
            app = App(engine, ring, clock=clock, policies=registry(()), limits=Limits(**limits))  # type: ignore[arg-type]
            return running.enter_context(Server(app))

        yield start


class Browser:
    """Keeps the cookie of one server, and sends it back."""

    def __init__(self, server: Server) -> None:
        self.server, self.cookies = server, dict[str, str]()
        self.token = ""

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request as a page of the server does."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.server.call(method, path, body, headers=sent)
        for name, part in SimpleCookie(answer.headers.get("set-cookie", "")).items():
            self.cookies[name] = part.value
            if not part.value:
                del self.cookies[name]
        return answer

    def sign_in(self, key: str) -> Answer:
        """Sign in, and remember the token."""
        answer = self.call("POST", "/session", {"key": key})
        self.token = answer.json.get("csrf_token", "")
        return answer

    def write(self, **headers: str) -> Answer:
        """Store a record with the token of the session."""
        return self.call("POST", "/v1/store", RECORD, **{"x_csrf_token": self.token, **headers})


@pytest.fixture
def secret(ring: Keyring) -> str:
    return ring.create("default", "ann", ["read", "write"])[1]


def test_a_key_becomes_a_session(begin: Begin, ring: Keyring, secret: str) -> None:
    """A good key is answered with a cookie that scripts and other sites do not get, and the key is nowhere in it."""
    browser = Browser(server := begin())
    before = browser.call("GET", "/session").json
    assert (before["signed_in"], before["keys_required"], before["tenant"], before["csrf_token"]) == (
        *(False, True),
        *(None, None),
    )
    answer = browser.sign_in(secret)
    assert answer.status == 201
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"woodrat_session_{server.port}=ses_")
    assert "; HttpOnly; SameSite=Strict" in cookie
    assert "; Max-Age=1800;" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie  # this is plain HTTP on loopback
    assert secret not in cookie
    assert secret.rpartition("_")[2] not in cookie
    who = browser.call("GET", "/session").json
    assert (who["tenant"], who["agent"], who["grants"], who["read_only"]) == (
        *("default", "ann", ["read", "write"]),
        False,
    )
    assert who["csrf_token"] == browser.token != ""
    assert who["idle_end_at"] < who["ends_at"]
    assert browser.call("GET", "/v1/runs").status == 200
    assert browser.write().status == 200
    assert browser.call("GET", "/v1/entities/contact/Ana").json["blame"]["city"]["agent"] == "ann"


def test_a_write_needs_the_token(begin: Begin, secret: str) -> None:
    """A cookie alone changes nothing; a key needs no token, and a key that is sent goes before a cookie."""
    browser = Browser(begin())
    browser.sign_in(secret)
    for wrong in ("", "x", browser.token[:-1]):
        answer = browser.write(x_csrf_token=wrong)
        assert (answer.status, answer.json["code"]) == (403, "forbidden")
        assert "x-csrf-token" in answer.json["detail"]
    other = Browser(browser.server)
    other.sign_in(secret)
    assert browser.write(x_csrf_token=other.token).status == 403  # of another session of the same key
    assert browser.call("GET", "/v1/entities/contact/Ana").status == 404  # nothing was written
    assert browser.call("DELETE", "/session").status == 403
    keyed = {"Authorization": f"Bearer {secret}"}
    assert browser.call("POST", "/v1/store", RECORD, **keyed).status == 200
    assert browser.call("GET", "/v1/runs", Authorization="Bearer wrat_wrong").status == 401


def test_signing_out_ends_it_everywhere(begin: Begin, secret: str) -> None:
    """A session that was ended on one server opens nothing on another, whoever still has its cookie."""
    one, two = begin(), begin()
    browser = Browser(one)
    browser.sign_in(secret)
    value = next(iter(browser.cookies.values()))
    elsewhere = Browser(two)
    elsewhere.cookies[f"woodrat_session_{two.port}"] = value
    assert elsewhere.call("GET", "/v1/runs").status == 200
    out = browser.call("DELETE", "/session", x_csrf_token=browser.token)
    assert out.json["signed_in"] is False
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert browser.cookies == {}
    browser.cookies[f"woodrat_session_{one.port}"] = value
    gone = browser.call("GET", "/v1/runs")
    assert gone.status == 401
    assert "Sign in again" in gone.json["detail"]
    two.app.sessions.refresh()
    assert elsewhere.call("GET", "/v1/runs").status == 401


def test_it_ends_by_itself(begin: Begin, clock: Hands, secret: str) -> None:
    """Calls renew a session, half an hour without one ends it, and after twelve hours it ends however it is used."""
    browser = Browser(begin())
    began = browser.sign_in(secret).json
    assert "set-cookie" not in browser.call("GET", "/v1/runs").headers
    first = dict(browser.cookies)
    for _ in range(24):
        clock.ahead += sessions.IDLE_SECONDS - 60
        answer = browser.call("GET", "/v1/runs")
        assert answer.status == 200
        assert "Max-Age=1800" in answer.headers["set-cookie"]
    assert browser.call("GET", "/session").json["idle_end_at"] == began["ends_at"]
    assert browser.token == browser.call("GET", "/session").json["csrf_token"]  # an open page can go on
    kept, browser.cookies = browser.cookies, first
    assert browser.call("GET", "/v1/runs").status == 401  # a cookie from the start lasts no longer for that
    browser.cookies = kept
    clock.ahead = sessions.WHOLE_SECONDS
    over = browser.call("GET", "/session")
    assert over.json["signed_in"] is False
    assert "Max-Age=0" in over.headers["set-cookie"]
    browser.sign_in(secret)
    clock.ahead += sessions.IDLE_SECONDS
    assert browser.call("GET", "/v1/runs").status == 401


def test_it_ends_with_its_key(begin: Begin, ring: Keyring, clock: Hands) -> None:
    """A session opens what its key opens, and nothing from when the key is revoked or over."""
    until = moment.from_micros(moment.to_micros(clock.now()) + 600_000_000)
    revoked, first = ring.create("default", "ann", ["read"])
    _, second = ring.create("default", "bob", ["read"], expires_at=until)
    server = begin()
    ann, bob = Browser(server), Browser(server)
    assert ann.sign_in(first).json["read_only"] is True
    bob.sign_in(second)
    denied = ann.write()
    assert (denied.status, denied.json["details"]) == (403, {"grant": "write"})
    ring.revoke(revoked.id)
    assert (ann.call("GET", "/v1/runs").status, bob.call("GET", "/v1/runs").status) == (401, 200)
    clock.ahead += 600
    assert bob.call("GET", "/v1/runs").status == 401
    assert bob.sign_in(second).status == 401


def test_a_forged_cookie_opens_nothing(begin: Begin, engine: SqliteEngine, secret: str) -> None:
    """No part of a cookie can be changed, and what the database has of a session makes no cookie."""
    browser = Browser(server := begin())
    browser.sign_in(secret)
    ((name, value),) = browser.cookies.items()
    id, hidden, made, signature = value.split(".")
    stored = server.app.tenants.of(SESSIONS_TENANT, "test").show(f"session/{id}").fields
    assert hidden not in str(stored)
    other = "a" * 26
    forged = (
        *(f"{id}.{hidden}.{int(made) + 1}.{signature}", f"{id}.{'a' * 32}.{made}.{signature}"),
        *(f"ses_{other}.{hidden}.{made}.{signature}", f"{id}.{hidden}.{made}.{'b' * 32}", id, "", "x" * 5_000, "ses_é"),
    )
    for text in forged:
        browser.cookies = {name: text}
        assert browser.call("GET", "/v1/runs").status == 401, text
    browser.cookies = {name.removesuffix(str(server.port)) + "1": value}
    assert browser.call("GET", "/v1/runs").status == 401  # it belongs to another port


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "JSON"),
        (b"[]", 400, "key"),
        (b'{"key": 1}', 400, "key"),
        (b'{"key": " "}', 400, "key"),
        (b'{"key": "wrat_x", "tenant": "a"}', 400, "tenant"),
        (b'{"key": "%b"}' % (b"k" * 5_000), 413, "4096"),
        (b'{"key": "wrat_unknown"}', 401, "not valid"),
    ],
)
def test_what_is_no_key_is_said(begin: Begin, secret: str, body: bytes, status: int, said: str) -> None:
    """A sign-in that cannot be understood, or whose key is not good, says what to send, and sets no cookie."""
    answer = begin().call("POST", "/session", body, headers={"Content-Type": "application/json"})
    assert answer.status == status
    assert said in answer.json["detail"]
    assert "Nothing was " in answer.json["detail"]
    assert "set-cookie" not in answer.headers


def test_a_form_cannot_sign_in(begin: Begin, secret: str) -> None:
    """What a form of another site can send without asking is not taken: text, or a foreign origin."""
    server = begin()
    body = b'{"key": "%b"}' % secret.encode()
    assert server.call("POST", "/session", body, headers={"Content-Type": "text/plain"}).status == 415
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
        sent = {"Content-Type": "application/json", **headers}
        assert server.call("POST", "/session", body, headers=sent).status == 403
    assert server.call("PUT", "/session", body).status == 405


@pytest.fixture
def unheld(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long attempts were held that came after too many failures; nobody waits for it."""
    held: list[float] = []

    async def sleep(seconds: float) -> None:
        held.append(seconds)

    monkeypatch.setattr(sign_in, "asyncio", SimpleNamespace(sleep=sleep, get_running_loop=asyncio.get_running_loop))
    return held


def wrong(key: str) -> str:
    """Return a key of the same id with another secret."""
    return key[:-1] + ("a" if key[-1] != "a" else "b")


def test_failing_often_has_to_wait(begin: Begin, secret: str, unheld: list[float]) -> None:
    """After ten wrong secrets of a key from an address attempts are slow, and wrong ones have to wait; a right one gets
    in, other keys are not held, and sessions that exist go on."""
    server = begin(proxied=True)

    def attempt(key: str, address: str = "198.51.100.7") -> Answer:
        return server.call("POST", "/session", {"key": key}, headers={"X-Forwarded-For": f"203.0.113.5, {address}"})

    assert [attempt(wrong(secret)).status for _ in range(sign_in.FAILURES_MAX)] == [401] * sign_in.FAILURES_MAX
    refused = attempt(wrong(secret))
    assert refused.status == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 7
    assert unheld == [sign_in.HOLD_SECONDS]
    assert attempt(secret).status == 201
    assert len(unheld) == 2
    assert (attempt("wrat_other_x").status, attempt(wrong(secret), "198.51.100.8").status) == (401, 401)
    assert len(unheld) == 2


@pytest.mark.parametrize("shared", ["key", "address"])
def test_guessing_from_many_addresses_or_at_many_keys_is_slow(
    begin: Begin, secret: str, unheld: list[float], monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    """Failures of one key from all addresses are bounded together, and those of one address; the right key gets in."""
    monkeypatch.setattr(sign_in, "SHARED_FAILURES_MAX", 12)
    server = begin(proxied=True)
    tried = []
    for number in range(14):
        key = wrong(secret) if shared == "key" else f"wrat_none{number}_x"
        address = f"198.51.100.{number}" if shared == "key" else "198.51.100.1"
        tried.append(server.call("POST", "/session", {"key": key}, headers={"X-Forwarded-For": address}).status)
    assert tried == [401] * 12 + [429] * 2
    sent = {"X-Forwarded-For": "198.51.100.1"}
    assert server.call("POST", "/session", {"key": secret}, headers=sent).status == 201
    assert len(unheld) == 3


def test_a_proxy_says_over_what_a_call_came(begin: Begin, secret: str) -> None:
    """The TLS of a proxy makes the cookie a secure one."""
    sent = {"X-Forwarded-For": "198.51.100.8", "X-Forwarded-Proto": "https"}
    answer = begin(proxied=True).call("POST", "/session", {"key": secret}, headers=sent)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-woodrat_session_")
    assert cookie.endswith("; Secure")


def test_who_signed_in_is_on_record(begin: Begin, engine: SqliteEngine, ring: Keyring, secret: str) -> None:
    """The audit says which key signed in and out, and that somebody had its id without its secret."""
    browser = Browser(server := begin())
    browser.sign_in(secret)
    browser.call("DELETE", "/session", x_csrf_token=browser.token)
    server.call("POST", "/session", {"key": secret[:-1] + "_"})
    server.app.audit.flush()
    audit = server.app.tenants.of(AUDIT_TENANT, "test")
    ((key),) = ring.all()
    events = {(one.verb, one.outcome) for one in looked(audit, key.id)}
    assert events == {("sign_in", "success"), ("sign_out", "success"), ("sign_in", "denied")}


def test_without_keys_nobody_signs_in(engine: SqliteEngine, ring: Keyring) -> None:
    """A server that needs no key says so; from the first key on it asks for one."""
    clock = SystemClock()
    app = App(engine, OpenAtFirst(ring, "default", "web"), clock=clock, policies=registry(()))
    with Server(app) as server:
        who = server.call("GET", "/session").json
        assert (who["signed_in"], who["keys_required"], who["agent"]) == (True, False, "web")
        assert who["csrf_token"] is None
        assert server.call("POST", "/session", {"key": "wrat_x"}).status == 400
        assert server.call("GET", "/session", headers={"X-Forwarded-For": "203.0.113.1"}).json["signed_in"] is False
        _, secret = ring.create("default", "ann", ["*"])
        assert server.call("GET", "/session").json == {**server.call("GET", "/session").json, "keys_required": True}
        assert Browser(server).sign_in(secret).status == 201


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_may_only_link(begin: Begin, secret: str, site: str) -> None:
    """A browser says which site a request comes from: a link is followed, all else is refused, key or not."""
    server = begin()
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.call("GET", "/docs", headers=link).status == 200
    for changed in ({"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Dest": "iframe"}):
        assert server.call("GET", "/v1/runs", headers={**link, **changed}, key=secret).status == 403
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert server.call("GET", "/v1/runs", headers=own, key=secret).status == 200


def test_an_allowed_origin_may_call(begin: Begin, secret: str) -> None:
    """A page of an origin that was allowed calls with a key, though it is of another site."""
    server = begin(origins=("https://tools.example",))
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Origin": "https://tools.example"}
    assert server.call("GET", "/v1/runs", headers=headers, key=secret).status == 200
