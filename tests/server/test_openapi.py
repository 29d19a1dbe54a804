"""The server keeps what its OpenAPI document says, whatever is sent to it; and a server that does not is found out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.conftest import Start, engine, keyring, start
from tests.server.server import Server

from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.records import replace
from woodrat.server.app import App
from woodrat.server.keys import Keyring, Open
from woodrat.server.openapi import document
from woodrat.server.problems import Rejected
from woodrat.server.route import Route
from woodrat.server.routes import ROUTES

__all__ = ["engine", "keyring", "start"]

CHECKS: Any = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 300 if os.environ.get("WOODRAT_FAULTS") == "full" else 8
"""How many requests are made up for each operation, half of them against the document."""


@pytest.fixture(scope="module")
def told() -> Any:
    """A server that knows an entity, a run and a source."""
    with served(ROUTES) as server:
        records = [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}]
        server.call("POST", "/v1/store", {"records": records})
        server.call("POST", "/v1/runs/import", {"document": {"query": "Approve #42?", "answer": "no"}})
        source = server.call("POST", "/v1/sources", {"text": "Net-30", "name": "contract.txt"}).json["source"]
        KNOWN["source"] = source
        reading = server.call("POST", "/v1/interpretations", {"source": source}).json
        KNOWN["interpretation"] = reading["interpretation"]
        KNOWN["run"] = server.call("POST", "/v1/runs", {"query": "Approve?"}).json["run"]
        yield server


KNOWN = {"ref": "contact/Ana%20Rivera", "pack": "neotoma", "webhook": "hook_x", "key": "key_x", "what": "contact/Ana"}
"""What stands in an address: names of what the server knows, where it knows any."""


def served(routes: tuple[Route, ...]) -> Server:
    app = App(
        InMemoryEngine(),
        Open("default", "http"),
        clock=SystemClock(),
        policies=registry(()),
        routes=routes,
        endpoints=endpoints(),
    )
    return Server(app)


def fuzz(server: Server, route: Route, examples: int = EXAMPLES) -> None:
    """Send made-up requests for one operation; raise where an answer is not as documented."""
    schema = schemathesis.openapi.from_dict(document("1", (route,)))
    operation = schema[route.path][route.method]
    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

        @given(operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=max(1, examples // 2),
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate,),
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Any) -> None:
            response = case.call(base_url=f"http://127.0.0.1:{server.port}", timeout=20)
            case.validate_response(response, checks=CHECKS)

        try:
            send()
        except Unsatisfiable:
            # Where everything is text there is nothing that would be against the document.
            assert mode is schemathesis.GenerationMode.NEGATIVE


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.verb)
def test_every_answer_is_as_documented(told: Server, route: Route) -> None:
    """Requests made up from the document, and against it, get a documented status, media type and shape, never 500."""
    fuzz(told, route)


VALUES: tuple[Any, ...] = ([], {}, 0, -1, 1.5, "", "x", True, [[]], [{}], {"a": {}}, "\u0001", 2**53, "run_x#y", ["x"])
"""Of every type one or two, and some that look like what is meant."""


@pytest.mark.parametrize("route", [route for route in ROUTES if route.method == "POST"], ids=lambda route: route.verb)
def test_an_argument_of_any_type_is_answered(told: Server, route: Route) -> None:
    """Whatever value an argument has, it is taken or refused as documented."""
    path = route.path.format(**KNOWN)
    connection = told.connect()
    for param in route.params:
        if param.inside != "body":
            continue
        for value in VALUES:
            body = json.dumps({**(route.example or {}), param.spelled: value})
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            said = response.read()
            assert response.status in (200, 400, 404, 412), (param.spelled, value, said)
    connection.close()


def test_a_number_of_any_size_is_answered(told: Server) -> None:
    """A whole number in an address is taken or refused, however large it is."""
    for route in ROUTES:
        needed = {param.spelled: "contact/Ana Rivera" for param in route.params if param.required}
        for param in route.takes:
            kinds = [param.schema, *param.schema.get("anyOf", ())]
            if route.method == "GET" and param.inside == "query" and any(one.get("type") == "integer" for one in kinds):
                for number in ("9" * 16, "-" + "9" * 16):
                    path = route.path.format(**KNOWN, prefix="obs_", entity_type="contact")
                    answer = told.call("GET", f"{path}?{urlencode({**needed, param.spelled: number})}")
                    assert answer.status < 500, (route.verb, param.spelled, answer.body)


def amiss(answer: Callable[..., Any]) -> tuple[Route, ...]:
    """Return one route whose answer is planted."""
    route = next(route for route in ROUTES if route.verb == "fingerprint")
    return (replace(route, answer=answer),)


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError("planted")


def undocumented(*_: Any, **__: Any) -> Any:
    raise Rejected(418, "This is a teapot.")


def shapeless(*_: Any, **__: Any) -> Any:
    return 42


@pytest.mark.parametrize(
    ("answer", "found"),
    [(raising, "Server error"), (undocumented, "Undocumented status code"), (shapeless, "not of type")],
)
def test_a_server_that_breaks_its_document_is_found_out(answer: Callable[..., Any], found: str) -> None:
    """A planted failure, an undocumented status and an answer of another shape are each found."""
    routes = amiss(answer)
    with served(routes) as server, pytest.raises(FailureGroup) as failures:
        fuzz(server, routes[0])
    assert found in "\n".join(str(each) for each in failures.value.exceptions)


def test_every_parameter_that_must_be_sent_has_an_example() -> None:
    """Whoever reads the document can send every operation as it stands there."""
    for route in ROUTES:
        operation = document("1")["paths"][route.path][route.method.lower()]
        for parameter in operation["parameters"]:
            assert not parameter["required"] or "example" in parameter, (route.verb, parameter["name"])
        bodies = operation.get("requestBody", {}).get("content", {})
        assert route.method == "GET" or "example" in bodies["application/json"], route.verb


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema of a document, and all that are inside of one."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str | list) or "anyOf" in value:
            yield value
        for name, inner in value.items():
            if name not in ("example", "examples"):
                yield from schemas_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas_in(inner)


def test_makers_of_clients_understand_the_document() -> None:
    """Lists say what they list, a value is of one type or null, and every operation has a name and one JSON answer.

    What generators of clients cannot read they leave out, and `store` with it.
    """
    found = document("1")
    for schema in schemas_in(found):
        kind = schema.get("type")
        assert kind != "array" or "items" in schema, schema
        assert not isinstance(kind, list) or len(set(kind) - {"null"}) == 1, schema
    operations = [operation for item in found["paths"].values() for operation in item.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    tags = {tag["name"] for tag in found["tags"]}
    for operation in operations:
        assert operation["description"]
        assert set(operation["tags"]) <= tags
        forms = set(operation["responses"]["200"]["content"]) - {"application/x-ndjson", "text/event-stream"}
        assert len(forms) == 1, operation["operationId"]


def test_the_document_tells_of_every_form(told: Server) -> None:
    """Lines and events stand in the document beside JSON, and so does what there is beside the verbs."""
    found = told.call("GET", "/openapi.json").json["paths"]
    assert "application/x-ndjson" in found["/v1/store"]["post"]["requestBody"]["content"]
    log = found["/v1/log"]["get"]
    assert {"application/x-ndjson", "text/event-stream"} < set(log["responses"]["200"]["content"])
    assert "Last-Event-ID" in {parameter["name"] for parameter in log["parameters"]}
    for path in ("/healthz", "/readyz", "/metrics"):
        answer = told.call("GET", path)
        assert answer.headers["content-type"].partition(";")[0] in found[path]["get"]["responses"]["200"]["content"]
    example = found["/v1/traces"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert told.call("POST", "/v1/traces", example).status == 200


def test_problems_in_the_document_are_those_of_the_server(start: Start, keyring: Keyring) -> None:
    """The example of each problem that can be brought about is what the server answers, but for the request."""
    _, key = keyring.create("lending", "crm", ["read", "write:contact"])
    _, other = keyring.create("lending", "busy", ["read"])
    server = start(keyring)
    records = [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}]
    assert server.call("POST", "/v1/store", {"records": records}, key=key).status == 200
    task = {"records": [{"entity_type": "task", "name": "Ship"}]}
    plain, long = {"Content-Type": "text/plain"}, {"Content-Type": "application/json", "Content-Length": "100000016"}
    answers = [
        server.call("GET", "/v1/entities?limit=many", key=key),
        server.call("GET", "/v1/entities"),
        server.call("POST", "/v1/store", task, key=key),
        server.call("GET", "/v1/entities/contact/Bob", key=key),
        server.call("POST", "/v1/store", {"records": records}, key=key, headers={"If-Match": '"0"'}),
        server.call("POST", "/v1/store", b"x", key=key, headers=long),
        server.call("GET", "/v1/entities?" + "a" * 16_388, key=key),
        server.call("POST", "/v1/store", b"x", key=key, headers=plain),
        server.call("GET", "/v1/entities", key=key, headers={"Host": "evil.example"}),
    ]
    busy = start(keyring, calls_per_second=5)
    answers.append(next(a for a in iter(lambda: busy.call("GET", "/v1/position", key=other), None) if a.status != 200))
    shown = document("1")["components"]["responses"]
    for answer in answers:
        example = shown[f"Problem{answer.status}"]["content"]["application/problem+json"]["example"]
        assert answer.json | {"instance": ""} == example | {"instance": ""}
    assert len({answer.status for answer in answers}) == len(answers)
