"""OpenAPI: the document of the server, made from its routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from woodrat.surfaces import whole
from woodrat.surfaces.http import problems
from woodrat.surfaces.http.exchange import EVENTS, LINES
from woodrat.surfaces.http.routes import AS_OF, EFFECTIVE, ROUTES, Param, Route

COMPONENTS: dict[str, Any] = {
    "Record": {
        "type": "object",
        "required": ["entity_type"],
        "properties": {
            "entity_type": {"type": "string", "description": "type of the entity"},
            "$": {"type": "object", "description": "what is said about the claim: key, observed_at, priority …"},
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
            "hints": {"type": "array", "items": {"type": "string"}},
            "repeated": {"type": "boolean", "description": "whether this is the answer of an earlier call"},
            "dry_run": {"type": "boolean"},
            "id": {"type": ["string", "null"]},
        },
    },
    "Snapshot": {
        "type": "object",
        "required": ["entity", "entity_id", "entity_type", "fields", "blame", "conflicts", "position", "version"],
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
    "Answer": {"type": "object"},
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
            "deleted": [False, False],
            "fields": [{"field": "city", "after": "Barcelona"}, {"field": "name", "after": "Ana Rivera"}],
        }
    ],
    "conflicts": [],
    "hints": [],
    "repeated": False,
    "dry_run": False,
    "id": None,
}
_RECORDS = '{"entity_type": "contact", "name": "Ana Rivera"}\n{"entity_type": "contact", "name": "Bob Chen"}\n'
"""Records to store, a line each."""
_LAST_EVENT: Mapping[str, Any] = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "the position of the last event that came; with `Accept: text/event-stream`",
    "schema": {"type": "string"},
}


def _plain(what: str, media: str, schema: Mapping[str, Any], *statuses: int) -> dict[str, Any]:
    """Return an operation that takes nothing."""
    done = {"description": "Done.", "content": {media: {"schema": schema}}}
    further = {str(status): {"$ref": f"#/components/responses/{problems.name(status)}"} for status in statuses}
    return {"get": {"summary": what, "tags": ["watch"], "responses": {"200": done, **further}}}


_STATUS: Mapping[str, Any] = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"enum": ["ok", "degraded"]}, "problem": {"type": "string"}},
}
_DEGRADED: Mapping[str, Any] = {"description": "Degraded.", "content": {"application/json": {"schema": _STATUS}}}
_BESIDE: dict[str, dict[str, Any]] = {
    "/healthz": _plain("Say that the process answers.", "application/json", _STATUS, 421),
    "/readyz": _plain("Say that the engine answers, or what is in its way.", "application/json", _STATUS, 421),
    "/metrics": _plain("Count and time requests, for Prometheus.", "text/plain", {"type": "string"}, 401, 421),
    "/v1/traces": {
        "post": {
            "summary": "Take in spans, which become runs (OTLP/HTTP).",
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
        },
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": problems.responses(),
        },
        "security": [{"key": []}, {}],
    }


def _operation(route: Route) -> dict[str, Any]:
    params = (*route.params, AS_OF, EFFECTIVE) if route.moment else route.params
    found: dict[str, Any] = {
        "operationId": route.verb,
        "summary": route.what,
        "tags": [route.grant],
        "parameters": [_parameter(param) for param in params if param.inside != "body"],
        "responses": {
            "200": {
                "description": "Done.",
                "content": {
                    "application/json": {"schema": {"$ref": f"#/components/schemas/{route.shape}"}},
                    **({whole.MEDIA_TYPE.decode(): {"schema": {}}} if route.verb in whole.VERBS else {}),
                },
            },
            **problems.references(),
        },
    }
    if any(param.name == "if_version" for param in params):
        found["parameters"].append(
            {
                "name": "If-Match",
                "in": "header",
                "required": False,
                "description": "the ETag that reading the entity gave; another version is refused with 412",
                "schema": {"type": "string"},
            }
        )
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
        found["parameters"].append(_LAST_EVENT)
        told = found["responses"]["200"]["content"]
        told |= {form.decode(): {"schema": {"type": "string"}} for form in (LINES, EVENTS)}
    return found


def _parameter(param: Param) -> dict[str, Any]:
    found = {
        "name": param.spelled,
        "in": param.inside,
        "required": param.required,
        "description": param.what,
        "schema": dict(param.schema),
    }
    return found if param.example is None else {**found, "example": param.example}
