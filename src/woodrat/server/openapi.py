"""OpenAPI: the document of the server, made from its routes.

The shapes of answers come from the records that the verbs return (`record_json.schemas`). Request bodies, problem
documents and the addresses beside the routes are written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from woodrat import record_json
from woodrat.api.parameters import TYPE
from woodrat.compact_json import CompactKind, is_shortened
from woodrat.merge.snapshot import Snapshot
from woodrat.server import heavy_reads, problems
from woodrat.server.access import ANYONE, CORRECT, MANAGE, READ, RUN, WRITE
from woodrat.server.requests import EVENTS, LINES
from woodrat.server.route import Param, Route
from woodrat.server.routes import ROUTES

COMPONENTS: dict[str, Any] = {
    "ClaimMetadata": {
        "type": "object",
        "description": "Metadata about the claim.",
        "properties": {
            "key": {"type": "string", "description": "the entity's key, where no field makes it"},
            "observed_at": {"type": "string", "description": "when it was seen, RFC 3339 with an offset"},
            "valid_from": {"type": "string", "description": "since when it is true"},
            "priority": {"type": "integer", "description": "trust in the writer; the larger wins"},
            "source": {"type": "string", "description": "id of the source it was read from"},
            "locator": {
                "type": "object",
                "description": "where in the source it was read",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": {
                    "page": {"type": "integer", "minimum": 1},
                    "line": {"type": "integer", "minimum": 1},
                    "end_line": {"type": "integer", "minimum": 1},
                    "pointer": {"type": "string", "description": "JSON Pointer"},
                    "quote": {"type": "string", "description": "the exact words"},
                },
            },
            "confidence": {"type": "number", "description": "how sure the writer is"},
            "reason": {"type": "string", "description": "why it is stated"},
            "remove": {"type": "object", "description": "elements to take out of collections, by field"},
            "relate": {"type": "array", "items": {"type": "object"}, "description": "relations to other entities"},
        },
    },
    "Record": {
        "type": "object",
        "required": ["entity_type"],
        "properties": {
            "entity_type": {**TYPE, "description": "type of the entity"},
            "$": {"$ref": "#/components/schemas/ClaimMetadata"},
        },
        "additionalProperties": True,
        "description": "One statement about one entity; every plain key is a field.",
    },
    "Problem": {
        "type": "object",
        "required": ["type", "title", "status", "detail", "instance", "code", "details"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string"},
            "code": {
                "type": "string",
                "enum": ["refused", "forbidden", "not_found", "outdated", "unavailable", "corrupt"],
            },
            "details": {"type": "object"},
        },
    },
}


_EXAMPLES: Mapping[str, Any] = {
    "store": {
        "position": 1,
        "positions": [0, 1],
        "observations": ["obs_d2fjsh5trd3wfuioa2iscubxg2"],
        "known": [],
        "entities": ["contact/Ana Rivera"],
        "changes": [
            {
                "entity": "contact/Ana Rivera",
                "was_deleted": False,
                "is_deleted": False,
                "fields": [
                    {"field": "city", "had": False, "before": None, "has": True, "after": "Barcelona", "part": False},
                    {"field": "name", "had": False, "before": None, "has": True, "after": "Ana Rivera", "part": False},
                ],
            }
        ],
        "conflicts": [],
        "by_arrival": [],
        "hints": [],
        "repeated": False,
        "dry_run": False,
        "id": None,
    }
}
"""Answers as the server gives them, by operation."""
_RECORDS = '{"entity_type": "contact", "name": "Ana Rivera"}\n{"entity_type": "contact", "name": "Bob Chen"}\n'
"""Records to store, one per line."""


def _plain(verb: str, what: str, media: str, schema: Mapping[str, Any], *statuses: int) -> dict[str, Any]:
    """Return an operation without parameters."""
    done = {"description": "Done.", "content": {media: {"schema": schema}}}
    further = {str(status): {"$ref": f"#/components/responses/{problems.name(status)}"} for status in statuses}
    told = {"operationId": verb, "summary": what, "description": what, "tags": ["watch"]}
    return {"get": {**told, "responses": {"200": done, **further}}}


_STATUS: Mapping[str, Any] = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"enum": ["ok", "degraded"]}, "problem": {"type": "string"}},
}
_DEGRADED: Mapping[str, Any] = {"description": "Degraded.", "content": {"application/json": {"schema": _STATUS}}}
_BESIDE: dict[str, dict[str, Any]] = {
    "/healthz": _plain("healthz", "Check that the process answers.", "application/json", _STATUS, 421),
    "/readyz": _plain(
        "readyz", "Check that the engine answers; if it does not, say why.", "application/json", _STATUS, 421
    ),
    "/metrics": _plain(
        "metrics", "Return counts and times of requests, for Prometheus.", "text/plain", {"type": "string"}, 401, 421
    ),
    "/v1/traces": {
        "post": {
            "operationId": "traces",
            "summary": "Receive spans over OTLP/HTTP and record them as runs.",
            "description": "Spans of the GenAI and OpenInference conventions become runs.",
            "tags": ["run"],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {"type": "object"}, "example": {"resourceSpans": []}},
                    "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
                },
            },
            "responses": {
                "200": {
                    "description": "Received; partialSuccess counts the rejected spans.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "4XX": {
                    "description": "A google.rpc.Status, in the encoding of the request.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                "default": {
                    "description": "A google.rpc.Status, in the encoding of the request.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
            },
        }
    },
}
"""Paths beside the routes."""
_BESIDE["/readyz"]["get"]["responses"]["503"] = _DEGRADED


TAGS: Mapping[str, str] = {
    ANYONE: "open to every key",
    READ: "need the grant `read`",
    WRITE: "need the grant `write`",
    CORRECT: "need the grant `correct`",
    RUN: "need the grant `run`",
    MANAGE: "need the grant `manage`",
    "watch": "for monitoring",
}
"""Operations are grouped by the grant that a key needs for them."""


def document(version: str, routes: Sequence[Route] = ROUTES) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {path: dict(item) for path, item in _BESIDE.items()}
    schemas, records = record_json.schemas(*(kind for route in routes for kind in (route.form.kind, _compact(route))))
    for route, schema, compact in zip(routes, schemas[::2], schemas[1::2], strict=True):
        document = {"type": "object", "description": "A document to keep byte for byte, for the verifiers."}
        answer = document if route.form.kind is bytes else route.form.schema(schema)
        if compact != schema:
            answer = {"description": "Compact; whole records with `details`.", "anyOf": [compact, schema]}
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, answer)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Woodrat",
            "version": version,
            "summary": "The replayable state layer and causal decision memory for AI agents.",
            "description": "The ledger over HTTP. Operations take and return the same values as the library's verbs.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "this server"}],
        "tags": [{"name": name, "description": what} for name, what in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {**COMPONENTS, **dict(sorted(records.items()))},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": problems.responses(),
        },
        "security": [{"key": []}, {}],
    }


def _compact(route: Route) -> Any:
    """Return the type of an answer without details."""
    kind = route.form.kind
    listed = route.has_details and kind is not Snapshot
    return CompactKind(kind) if listed and is_shortened(kind) else kind


def _operation(route: Route, answer: dict[str, Any]) -> dict[str, Any]:
    params = route.takes
    content: dict[str, Any] = {"schema": answer}
    if route.verb in _EXAMPLES:
        content["example"] = _EXAMPLES[route.verb]
    found: dict[str, Any] = {
        "operationId": route.verb,
        "summary": route.what,
        "description": _described(route),
        "tags": [route.grant],
        "parameters": [_parameter(param) for param in params if param.inside != "body"],
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": content}},
            **problems.references(),
        },
    }
    if any(param.name == "if_version" for param in params):
        what = "ETag of the entity as you read it, several ETags, or *; another version is refused with 412"
        found["parameters"].append(_header("If-Match", what))
    if route.verb == "store":
        found["parameters"].append(
            _header("If-None-Match", "*: write only new records; refused with 412 if any is known")
        )
    if route.form.kind is Snapshot:
        found["parameters"].append(_header("If-None-Match", "ETag of the answer you have; 304 if it has not changed"))
        told = found["responses"]
        told["200"]["headers"] = {
            "ETag": {"schema": {"type": "string"}, "description": "changes with the answer, apart from its position"}
        }
        told["304"] = {"description": "The answer has not changed."}
    if route.method == "POST":
        body = [param for param in params if param.inside == "body"]
        schema = {
            "type": "object",
            "properties": {param.spelled: {**param.schema, "description": param.what} for param in body},
            "required": [param.spelled for param in body if param.required],
            "additionalProperties": False,
        }
        sent: dict[str, Any] = {"schema": schema}
        if route.example is not None:
            sent["example"] = route.example
        media: dict[str, Any] = {"application/json": sent}
        if route.lines:
            lines: dict[str, Any] = {"schema": {"type": "string"}}
            media[LINES.decode()] = {**lines, "example": _RECORDS} if route.verb == "store" else lines
        found["requestBody"] = {"required": True, "content": media}
    if route.verb == "log_entries":
        what = "position of the last event received; with `Accept: text/event-stream`"
        found["parameters"].append(_header("Last-Event-ID", what))
        told = found["responses"]["200"]["content"]
        told |= {form.decode(): {"schema": {"type": "string"}} for form in (LINES, EVENTS)}
    if route.verb in heavy_reads.TELLING:
        found["responses"]["200"]["content"][EVENTS.decode()] = {"schema": _followed(heavy_reads.TELLING[route.verb])}
    return found


def _followed(what: str) -> dict[str, Any]:
    """Return the description of a long read with streamed progress."""
    told = (
        f'events `progress` with `{{"done", "total", "what": "{what}"}}`, then `result` with the answer as JSON, '
        "or `problem` with a problem document; closing the connection stops the work"
    )
    return {"type": "string", "description": told}


def _header(name: str, what: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": what, "schema": {"type": "string"}}


def _described(route: Route) -> str:
    """Return the grant that an operation needs, and the effect of a repeated call."""
    found = [f"Open to {'every key' if route.grant == ANYONE else f'keys with the grant `{route.grant}`'}."]
    if route.wide:
        found.append("A grant for one type is not enough.")
    if any(param.spelled == "Idempotency-Key" for param in route.params):
        found.append("With the same `Idempotency-Key`, a repeated call returns the first answer and writes nothing.")
    return " ".join(found)


def _parameter(param: Param) -> dict[str, Any]:
    found = {
        "name": param.spelled,
        "in": param.inside,
        "required": param.required,
        "description": param.what,
        "schema": dict(param.schema),
    }
    return found if param.example is None else {**found, "example": param.example}
