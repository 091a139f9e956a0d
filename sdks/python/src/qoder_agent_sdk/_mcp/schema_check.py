"""Checks arguments of a tool call against the tool's JSON Schema.

The model can send anything; a handler should only see what its schema allows.
This covers the keywords that tool schemas use. A keyword that is not known
here allows everything, so that a rich schema never refuses a correct call.
"""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def check_value(value: Any, schema: Any, where: str = "") -> str | None:
    """The first thing that is wrong with the value, or None."""
    if schema is True or not isinstance(schema, dict):
        return None if schema is not False else f"{where or 'the arguments'}: no value is allowed"
    for check in (_check_type, _check_choice, _check_number, _check_text, _check_items, _check_members, _check_parts):
        problem = check(value, schema, where)
        if problem:
            return problem
    return None


def _named(where: str) -> str:
    return f"'{where}'" if where else "the arguments"


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


def _check_type(value: Any, schema: dict[str, Any], where: str) -> str | None:
    expected = schema.get("type")
    if expected is None:
        return None
    names = expected if isinstance(expected, list) else [expected]
    if any(_has_type(value, name) for name in names):
        return None
    return f"{_named(where)} must be of type {' or '.join(map(str, names))}, not {type(value).__name__}"


def _check_choice(value: Any, schema: dict[str, Any], where: str) -> str | None:
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        return f"{_named(where)} must be one of {', '.join(map(repr, schema['enum']))}, not {value!r}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{_named(where)} must be {schema['const']!r}, not {value!r}"
    return None


def _same(left: Any, right: Any) -> bool:
    # Python takes True for 1; JSON does not.
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _check_number(value: Any, schema: dict[str, Any], where: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if "minimum" in schema and value < schema["minimum"]:
        return f"{_named(where)} must be at least {schema['minimum']}, not {value}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{_named(where)} must be at most {schema['maximum']}, not {value}"
    # Draft 4 spelled these two as booleans; only numbers are limits.
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and not isinstance(low, bool) and value <= low:
        return f"{_named(where)} must be more than {low}, not {value}"
    if high is not None and not isinstance(high, bool) and value >= high:
        return f"{_named(where)} must be less than {high}, not {value}"
    return None


def _check_text(value: Any, schema: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, str):
        return None
    if len(value) < schema.get("minLength", 0):
        return f"{_named(where)} must have at least {schema['minLength']} characters"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        return f"{_named(where)} must have at most {schema['maxLength']} characters"
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            matches = re.search(pattern, value) is not None
        except re.error:
            return None  # a pattern of another dialect cannot be judged here
        if not matches:
            return f"{_named(where)} must match the pattern {pattern}"
    return None


def _check_items(value: Any, schema: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, list):
        return None
    if len(value) < schema.get("minItems", 0):
        return f"{_named(where)} must have at least {schema['minItems']} items"
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        return f"{_named(where)} must have at most {schema['maxItems']} items"
    first = schema.get("prefixItems", [])
    for index, item in enumerate(value):
        item_schema = first[index] if index < len(first) else schema.get("items", True)
        problem = check_value(item, item_schema, f"{where}[{index}]")
        if problem:
            return problem
    return None


def _check_members(value: Any, schema: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, dict):
        return None
    for name in schema.get("required", []):
        if name not in value:
            return f"{_named(where)}: '{name}' is required"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, member in value.items():
        path = f"{where}.{name}" if where else name
        if name in properties:
            problem = check_value(member, properties[name], path)
        elif others is False and "patternProperties" not in schema:
            problem = f"'{path}' is not a parameter; there are: {', '.join(properties) or 'none'}"
        else:
            problem = check_value(member, others, path)
        if problem:
            return problem
    return None


def _check_parts(value: Any, schema: dict[str, Any], where: str) -> str | None:
    for part in schema.get("allOf", []):
        problem = check_value(value, part, where)
        if problem:
            return problem
    for keyword in ("anyOf", "oneOf"):
        choices = schema.get(keyword)
        if not choices:
            continue
        problems = [check_value(value, choice, where) for choice in choices]
        fitting = sum(problem is None for problem in problems)
        if fitting == 0:
            return f"{_named(where)} fits none of the allowed forms ({'; '.join(map(str, problems))})"
        if keyword == "oneOf" and fitting > 1:
            return f"{_named(where)} fits {fitting} forms where exactly one is allowed"
    return None
