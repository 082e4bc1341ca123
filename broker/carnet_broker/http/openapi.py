"""The OpenAPI document, made from the doors themselves, so that it cannot say what the code does not do."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from carnet_broker.http.door import Door, Doors

__all__ = ["describe_doors"]

_PROBLEM: Mapping[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "reason", "trace_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": {"type": "string"},
        "trace_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    },
}
_OAUTH_ERROR: Mapping[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {name: {"type": "string"} for name in ("error", "error_description", "reason")},
}
_FORMS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "/oauth2/token": (
        "Open or renew a run, or get a guard token (RFC 6749 §4.4)",
        ("grant_type",),
        ("run_id", "scope"),
    ),
    "/oauth2/revoke": ("Revoke a token and what is below it (RFC 7009)", ("token",), ("token_type_hint",)),
    "/oauth2/introspect": ("Introspect a token (RFC 7662)", ("token",), ("token_type_hint",)),
}
_OPEN = {
    "/.well-known/oauth-authorization-server": "Authorization server metadata (RFC 8414)",
    "/.well-known/jwks.json": "Public keys (RFC 7517)",
    "/healthz": "The process answers",
    "/readyz": "Store, keys and policy are well",
}
_CREDENTIALS = ("client_id", "client_secret", "client_assertion_type", "client_assertion")


def describe_doors(doors: Doors, issuer: str) -> dict[str, Any]:
    """OpenAPI 3.1 of all doors, OAuth endpoints and open documents."""
    models = {model for door in doors for model in (door.body, door.query) if model is not None}
    _, schemas = models_json_schema(
        [(model, "validation") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, dict[str, Any]] = {}
    for door in doors:
        paths.setdefault(door.path, {})[door.method.lower()] = _operation(door)
    paths |= {path: {"post": _form(*parts)} for path, parts in _FORMS.items()}
    paths |= {path: {"get": {"summary": text, "responses": {"200": _ok()}}} for path, text in _OPEN.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Carnet", "version": "1"},
        "servers": [{"url": issuer}],
        "paths": paths,
        "components": {
            "schemas": {**schemas.get("$defs", {}), "Problem": _PROBLEM, "OAuthError": _OAUTH_ERROR},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "client": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _operation(door: Door[Any, Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": door.summary,
        "responses": {str(door.status): _ok(), "default": _refusal("Problem", "application/problem+json")},
        "parameters": [_path_parameter(name) for name in re.findall(r"{(\w+)}", door.path)],
    }
    if door.accept:
        operation["security"] = [{"bearer": []}]
        operation["x-accepts"] = sorted(kind.value for kind in door.accept)
    if door.body is not None:
        operation["requestBody"] = {
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{door.body.__name__}"}}}
        }
    if door.query is not None:
        operation["parameters"] += _query_parameters(door.query)
    return operation


def _query_parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    properties = model.model_json_schema()["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _form(summary: str, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    names = (*required, *optional, *_CREDENTIALS)
    schema = {
        "type": "object",
        "required": list(required),
        "properties": {name: {"type": "string"} for name in names},
    }
    return {
        "summary": summary,
        "security": [{"client": []}, {}],
        "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": schema}}},
        "responses": {"200": _ok(), "default": _refusal("OAuthError", "application/json")},
    }


def _ok() -> dict[str, Any]:
    return {"description": "Done"}


def _refusal(name: str, media: str) -> dict[str, Any]:
    return {"description": "Refused", "content": {media: {"schema": {"$ref": f"#/components/schemas/{name}"}}}}
