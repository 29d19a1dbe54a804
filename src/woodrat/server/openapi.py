"""OpenAPI: the document of the server, made from its routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from woodrat.api.parameters import TYPE
from woodrat.server import problems, records
from woodrat.server.access import ANYONE, CORRECT, MANAGE, READ, RUN, WRITE
from woodrat.server.requests import EVENTS, LINES
from woodrat.server.routes import AS_OF, ROUTES, VALID_AT, Param, Route


def _listing(noun: str, *, paged: bool = True) -> dict[str, Any]:
    """Return the schema of a list under its noun."""
    listed = {"type": "array", "items": {"type": "object"}}
    cursor = {"cursor": {"type": "string", "description": "where the next page begins; left out: there is none"}}
    return {
        "type": "object",
        "required": [noun],
        "properties": {
            "position": {"type": "integer", "description": "where it was read"},
            noun: listed,
            **(cursor if paged else {}),
        },
    }


COMPONENTS: dict[str, Any] = {
    "Said": {
        "type": "object",
        "description": "What is said about the claim itself.",
        "properties": {
            "key": {"type": "string", "description": "the entity's key, where no field makes it"},
            "observed_at": {"type": "string", "description": "when it was seen, RFC 3339 with an offset"},
            "valid_from": {"type": "string", "description": "since when it is true"},
            "priority": {"type": "integer", "description": "how much the writer is to be trusted; larger wins"},
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
                    "quote": {"type": "string", "description": "the words, to the letter"},
                },
            },
            "confidence": {"type": "number", "description": "how sure the writer is"},
            "reason": {"type": "string", "description": "why it is said"},
            "remove": {"type": "object", "description": "elements taken out of collections, by field"},
            "relate": {"type": "array", "items": {"type": "object"}, "description": "relations to other entities"},
        },
    },
    "Record": {
        "type": "object",
        "required": ["entity_type"],
        "properties": {
            "entity_type": {**TYPE, "description": "type of the entity"},
            "$": {"$ref": "#/components/schemas/Said"},
        },
        "additionalProperties": True,
        "description": "One statement about one entity; every plain key is a field.",
    },
    "Report": {
        "type": "object",
        "required": ["position", "observations", "known", "changes", "conflicts", "hints", "repeated", "dry_run"],
        "properties": {
            "position": {"type": "integer", "description": "position of the write's last entry"},
            "positions": {"type": "array", "items": {"type": "integer"}},
            "observations": {"type": "array", "items": {"type": "string"}},
            "known": {"type": "array", "items": {"type": "string"}, "description": "those that were known already"},
            "entities": {"type": "array", "items": {"type": "string"}},
            "changes": {"type": "array", "items": {"type": "object"}},
            "conflicts": {"type": "array", "items": {"type": "string"}},
            "by_arrival": {
                "type": "array",
                "items": {"type": "string"},
                "description": "fields decided only by arrival now: no observation time was given",
            },
            "hints": {"type": "array", "items": {"type": "string"}},
            "repeated": {"type": "boolean", "description": "whether this is the answer of an earlier call"},
            "dry_run": {"type": "boolean"},
            "id": {"type": ["string", "null"]},
        },
    },
    "Snapshot": {
        "type": "object",
        "required": [
            *("entity", "entity_id", "entity_type", "members", "deleted", "fields", "more", "blame", "conflicts"),
            *("problem", "schema", "position", "version", "digest"),
        ],
        "properties": {
            "entity": {"type": "string"},
            "entity_id": {"type": "string"},
            "entity_type": {"type": "string"},
            "members": {"type": "array", "items": {"type": "string"}},
            "deleted": {"type": "boolean"},
            "fields": {"type": "object"},
            "blame": {"type": "object", "description": "by field, the observation that set the value and the policy"},
            "conflicts": {"type": "array", "items": {"type": "object"}},
            "position": {"type": "integer"},
            "version": {"type": "integer"},
            "digest": {"type": "string"},
            "more": {"type": "object", "description": "collections told in part, and how many elements they have"},
            "problem": {
                "type": ["string", "null"],
                "description": "why nothing is shown: nothing fits the schema in force",
            },
            "schema": {"type": ["string", "null"], "description": "full name of the schema it was merged under"},
        },
    },
    "Entities": {
        "type": "object",
        "required": ["entities", "position"],
        "properties": {
            "position": {"type": "integer"},
            "entities": {"type": "array", "items": {"$ref": "#/components/schemas/Snapshot"}},
            "cursor": {"type": "string"},
        },
    },
    "Imported": {
        "type": "object",
        "required": ["entries", "cloned", "merged", "known", "erased", "erasures", "log", "position", "root"],
        "properties": {
            "entries": {"type": "integer", "description": "how many were offered"},
            "cloned": {"type": "integer", "description": "how many were taken over as they are"},
            "merged": {"type": "integer", "description": "how many were merged in, as new entries of this log"},
            "known": {"type": "integer"},
            "erased": {"type": "integer"},
            "erasures": {"type": "integer", "description": "how many erasures were carried out here"},
            "log": {"type": ["string", "null"]},
            "position": {"type": "integer"},
            "root": {"type": "string"},
            "changed": {"type": "boolean"},
        },
    },
    "Duplicates": _listing("duplicates"),
    "Observations": _listing("observations"),
    "History": _listing("history"),
    "Timeline": _listing("timeline"),
    "Conflicts": _listing("conflicts"),
    "Related": _listing("related"),
    "Deliveries": _listing("deliveries"),
    "Interpretations": _listing("interpretations"),
    "Runs": _listing("runs"),
    "Decisions": _listing("decisions"),
    "Entries": _listing("entries", paged=False),
    "Schemas": _listing("schemas"),
    "Changes": _listing("changes", paged=False),
    "Answer": {"type": "object", "additionalProperties": True},
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


COMPONENTS["Report"]["example"] = {
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
_RECORDS = '{"entity_type": "contact", "name": "Ana Rivera"}\n{"entity_type": "contact", "name": "Bob Chen"}\n'
"""Records to store, a line each."""


def _plain(verb: str, what: str, media: str, schema: Mapping[str, Any], *statuses: int) -> dict[str, Any]:
    """Return an operation that takes nothing."""
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
    "/healthz": _plain("healthz", "Say that the process answers.", "application/json", _STATUS, 421),
    "/readyz": _plain(
        "readyz", "Say that the engine answers, or what is in its way.", "application/json", _STATUS, 421
    ),
    "/metrics": _plain(
        "metrics", "Count and time requests, for Prometheus.", "text/plain", {"type": "string"}, 401, 421
    ),
    "/v1/traces": {
        "post": {
            "operationId": "traces",
            "summary": "Take in spans, which become runs (OTLP/HTTP).",
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
                    "description": "Taken in; in part where it says so.",
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
"""What there is beside the verbs."""
_BESIDE["/readyz"]["get"]["responses"]["503"] = _DEGRADED


TAGS: Mapping[str, str] = {
    ANYONE: "open to every key",
    READ: "need the grant `read`",
    WRITE: "need the grant `write`",
    CORRECT: "need the grant `correct`",
    RUN: "need the grant `run`",
    MANAGE: "need the grant `manage`",
    "watch": "for whatever looks after processes",
}
"""What operations are sorted by: what a key needs for them."""


def document(version: str, routes: Iterable[Route] = ROUTES) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {path: dict(item) for path, item in _BESIDE.items()}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Woodrat",
            "version": version,
            "summary": "The replayable state layer and causal decision memory for AI agents.",
            "description": "The ledger over HTTP: every address is a verb of the library with the same arguments.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "the server that this document came from"}],
        "tags": [{"name": name, "description": what} for name, what in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": problems.responses(),
        },
        "security": [{"key": []}, {}],
    }


def _operation(route: Route) -> dict[str, Any]:
    params = (*route.params, AS_OF, VALID_AT) if route.moment else route.params
    found: dict[str, Any] = {
        "operationId": route.verb,
        "summary": route.what,
        "description": _described(route),
        "tags": [route.grant],
        "parameters": [_parameter(param) for param in params if param.inside != "body"],
        "responses": {
            "200": {
                "description": "Done.",
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{route.shape}"}}},
            },
            **problems.references(),
        },
    }
    if any(param.name == "if_version" for param in params):
        what = "the ETag that reading the entity gave, several, or *; another version is refused with 412"
        found["parameters"].append(_header("If-Match", what))
    if route.verb == "store":
        found["parameters"].append(_header("If-None-Match", "*: what is stored must not be known yet, or 412"))
    if route.shape == "Snapshot":
        found["parameters"].append(_header("If-None-Match", "the ETag of what you have; 304 if that is still so"))
        told = found["responses"]
        told["200"]["headers"] = {"ETag": {"schema": {"type": "string"}, "description": "stands for this answer"}}
        told["304"] = {"description": "What you have is still so."}
    if route.method == "POST":
        body = [param for param in params if param.inside == "body"]
        schema = {
            "type": "object",
            "properties": {param.spelled: {**param.schema, "description": param.what} for param in body},
            "required": [param.spelled for param in body if param.required],
            "additionalProperties": False,
        }
        content: dict[str, Any] = {"schema": schema}
        if route.example is not None:
            content["example"] = route.example
        media: dict[str, Any] = {"application/json": content}
        if route.lines:
            lines: dict[str, Any] = {"schema": {"type": "string"}}
            media[LINES.decode()] = {**lines, "example": _RECORDS} if route.verb == "store" else lines
        found["requestBody"] = {"required": True, "content": media}
    if route.verb == "log":
        what = "the position of the last event that came; with `Accept: text/event-stream`"
        found["parameters"].append(_header("Last-Event-ID", what))
        told = found["responses"]["200"]["content"]
        told |= {form.decode(): {"schema": {"type": "string"}} for form in (LINES, EVENTS)}
    return found


def _header(name: str, what: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": what, "schema": {"type": "string"}}


def _described(route: Route) -> str:
    """Return what there is to know of an operation besides its arguments."""
    found = [f"Open to {'every key' if route.grant == ANYONE else f'keys with the grant `{route.grant}`'}."]
    if route.wide:
        found.append("A grant for a type does not open it.")
    if any(param.spelled == "Idempotency-Key" for param in route.params):
        found.append("Sent again with the same `Idempotency-Key`, it answers as it did and is one write.")
    if route.verb in records.VERBS:
        # No form of its own here: makers of clients would take an answer for one or the other.
        found.append(f"`Accept: {records.MEDIA_TYPE.decode()}` has it as the library's records.")
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
