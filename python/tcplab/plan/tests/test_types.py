"""The types of a plan in Python are those of `crates/plan`."""

import json
import types
import typing
from typing import Any

import pytest
import typing_extensions

from tcplab import _core
from tcplab.plan import types as plan_types

SCHEMA = json.loads(_core.schema("plan"))
PARTS = {
    "Plan": SCHEMA,
    "Flow": SCHEMA["$defs"]["Flow"],
    **{name: SCHEMA["$defs"][name] for name in ("Node", "Link", "Direction", "Change", "Sample", "Capture")},
    **{name: SCHEMA["$defs"][name] for name in ("Chance", "Reorder", "Jitter", "Loss", "Trace", "Pattern")},
    "Control": SCHEMA["$defs"]["Cc"],
}
# Python carries these as they are.
OPAQUE = {"tcp", "sender", "receiver", "offloads", "model", "queue", "overhead", "policer"}
OPAQUE |= {"routing", "accelerate"}


def hints(name: str) -> dict[str, Any]:
    inside = {**vars(plan_types), "ReadOnly": typing_extensions.ReadOnly}
    found: dict[str, Any] = typing_extensions.get_type_hints(getattr(plan_types, name), inside, inside)
    return found


def keys(schema: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The keys of a mapping with their schemas, and which are always there, whatever its kind."""
    properties, always = dict(schema.get("properties", {})), set(schema.get("required", ()))
    if "$ref" in schema:
        more, required = keys(_resolved(schema))
        properties, always = properties | more, always | required
    variants = [keys(variant) for variant in schema.get("oneOf", ())]
    for more, _ in variants:
        properties |= more
    if variants:
        always |= set.intersection(*(required for _, required in variants))
    return properties, always


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_the_same_keys(name: str) -> None:
    properties, _ = keys(PARTS[name])
    if name == "Flow":
        # A kind of traffic may have keys that Python does not read.
        assert set(hints(name)) <= set(properties)
    else:
        assert set(hints(name)) == set(properties)


@pytest.mark.parametrize("name", PARTS)
def test_what_is_always_there_here_is_so_there(name: str) -> None:
    properties, always = keys(PARTS[name])
    # A key that is null where there is none is written all the same.
    nullable = {key for key, schema in properties.items() if "null" in _json_types(schema)}
    assert set(hints(name)) - optional(name) <= always | nullable


@pytest.mark.parametrize("name", PARTS)
def test_a_key_has_the_same_type(name: str) -> None:
    properties, _ = keys(PARTS[name])
    for key, hint in hints(name).items():
        if key not in OPAQUE:
            # A key that may be absent is left out rather than null.
            absent = {"null"} if key in optional(name) else set()
            assert _types(hint) | absent == _json_types(properties[key]) | absent, (name, key)


def optional(name: str) -> set[str]:
    """The keys that may be absent."""
    written = getattr(plan_types, name).__annotations__
    return {key for key, hint in written.items() if "NotRequired" in str(hint)}


def _types(hint: Any) -> set[str]:
    """The types that JSON has for a Python type."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return set[str]().union(*(_types(one) for one in typing.get_args(hint)))
    if origin is typing.Literal:
        return {"string"}
    plain = {int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null"}
    if hint in plain:
        return {plain[hint]}
    return {"array"} if origin is list else {"object"}


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The part of the schema that a reference names."""
    part: dict[str, Any] = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return part


def _json_types(schema: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        return _json_types(_resolved(schema))
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return set[str]().union(*(_json_types(one) for one in options))
    if "const" in schema or "enum" in schema:
        return {"string"}
    kind = schema.get("type", "object")
    return {kind} if isinstance(kind, str) else set(kind)
