"""OpenAPI: the document of the server, made from its routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from woodrat.surfaces import whole
from woodrat.surfaces.http.routes import AS_OF, EFFECTIVE, ROUTES, Param, Route

_STATUSES = {
    "400": "The input is at fault; nothing was written.",
    "401": "There is no key, or none we know.",
    "403": "The key does not carry the grant, or the page's origin is not allowed.",
    "404": "There is no such thing in this tenant, at this moment.",
    "408": "The body took too long to arrive.",
    "412": "A condition stated by the caller no longer holds.",
    "413": "The body is too large.",
    "414": "The query is too long.",
    "415": "The body is of another media type or encoding.",
    "421": "The host is not a name of this server.",
    "429": "The key calls too often; `Retry-After` says when to call again.",
    "503": "The engine cannot answer now; the same call may be sent again.",
}
"""What a problem document may come with, and what it means."""

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
        "example": {
            "type": "urn:woodrat:problem:refused",
            "title": "The input is at fault",
            "status": 400,
            "detail": 'limit: expected a whole number, got "many" (text). Send digits.\nNothing was read.',
            "instance": "urn:woodrat:request:9efb025574215f56",
            "code": "refused",
            "details": {
                "faults": [
                    {
                        "path": "limit",
                        "problem": 'expected a whole number, got "many" (text)',
                        "remedy": "Send digits.",
                    }
                ]
            },
        },
    },
}


def document(version: str, routes: Iterable[Route] = ROUTES) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
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
            "responses": {"Problem": _problem("What went wrong.")},
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
            **{status: _problem(what) for status, what in _STATUSES.items()},
        },
    }
    if any(param.name == "if_version" for param in params):
        found["parameters"].append(
            {
                "name": "If-Match",
                "in": "header",
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
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return found


def _parameter(param: Param) -> dict[str, Any]:
    return {
        "name": param.spelled,
        "in": param.inside,
        "required": param.required,
        "description": param.what,
        "schema": dict(param.schema),
    }


def _problem(what: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": what, "content": {"application/problem+json": {"schema": schema}}}
