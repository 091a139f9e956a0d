"""From the three forms of `input_schema` to JSON Schema.

A simple dict (`{"query": str}`), a `TypedDict`, and a full JSON Schema dict
are all turned into the schema that goes into the MCP tool list. What cannot be
turned is refused with the name of the tool and the parameter.
"""

from __future__ import annotations

import enum
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from typing_extensions import (
    NotRequired,
    Required,
    get_type_hints,
    is_typeddict,
)

from .._errors import OptionTypeError

JsonSchema = dict[str, Any]

_PLAIN_TYPES: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array"},
    frozenset: {"type": "array"},
    type(None): {"type": "null"},
    None: {"type": "null"},
}

#: Keys that only a JSON Schema has at its top, beside the plain `type`.
_COMPOSITION_KEYS = ("$ref", "anyOf", "oneOf", "allOf")


def tool_schema(input_schema: Any, tool_name: str) -> JsonSchema:
    """The JSON Schema of a tool's arguments."""
    if isinstance(input_schema, dict):
        if _is_json_schema(input_schema):
            return _object_schema(input_schema, tool_name)
        return _schema_of_fields(input_schema, tool_name)
    if is_typeddict(input_schema):
        return _schema_of_typed_dict(input_schema, tool_name)
    model_schema = getattr(input_schema, "model_json_schema", None)
    if callable(model_schema):
        return _object_schema(model_schema(), tool_name)
    raise OptionTypeError(
        f"tool '{tool_name}': input_schema must be a dict of parameter names and types, a TypedDict, "
        f"or a JSON Schema dict, not {_shown(input_schema)}"
    )


def _is_json_schema(candidate: dict[Any, Any]) -> bool:
    # A simple dict may have a parameter that is called "type" or "properties",
    # but its value is then a Python type, never a string or a dict of schemas.
    if isinstance(candidate.get("type"), (str, list)):
        return True
    properties = candidate.get("properties")
    if isinstance(properties, dict) and all(isinstance(value, (dict, bool)) for value in properties.values()):
        return "type" not in candidate
    return any(key in candidate for key in _COMPOSITION_KEYS)


def _object_schema(schema: JsonSchema, tool_name: str) -> JsonSchema:
    kind = schema.get("type", "object")
    if kind != "object":
        raise OptionTypeError(
            f'tool \'{tool_name}\': the JSON Schema of the arguments must have "type": "object", not {kind!r}'
        )
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise OptionTypeError(f"tool '{tool_name}': \"properties\" of the JSON Schema must be a dict")
    required = schema.get("required", [])
    if not isinstance(required, (list, tuple)) or not all(isinstance(name, str) for name in required):
        raise OptionTypeError(f"tool '{tool_name}': \"required\" of the JSON Schema must be a list of names")
    if schema.get("type") == "object" and "properties" in schema:
        return schema
    return {"type": "object", "properties": properties, **schema}


def _schema_of_fields(fields: dict[Any, Any], tool_name: str) -> JsonSchema:
    properties: JsonSchema = {}
    for name, annotation in fields.items():
        if not isinstance(name, str) or not name:
            raise OptionTypeError(f"tool '{tool_name}': a parameter name must be a non-empty string, not {name!r}")
        properties[name] = _schema_of_type(annotation, f"tool '{tool_name}', parameter '{name}'")
    return {"type": "object", "properties": properties, "required": list(properties)}


def _schema_of_typed_dict(typed_dict: Any, tool_name: str) -> JsonSchema:
    # Annotations may be strings, and 3.10 does not see NotRequired in those:
    # the resolved hints decide first, the class's own sets only after them.
    try:
        hints = get_type_hints(typed_dict, include_extras=True)
    except NameError as error:
        raise OptionTypeError(
            f"tool '{tool_name}': an annotation of {typed_dict.__name__} is unknown: {error}"
        ) from error
    optional: frozenset[str] = getattr(typed_dict, "__optional_keys__", frozenset())
    properties: JsonSchema = {}
    required = []
    for name, hint in hints.items():
        is_required = name not in optional
        while (origin := _origin(hint)) in (Required, NotRequired):
            is_required = origin is Required
            hint = get_args(hint)[0]
        properties[name] = _schema_of_type(hint, f"tool '{tool_name}', parameter '{name}'")
        if is_required:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _schema_of_type(annotation: Any, where: str) -> JsonSchema:
    try:
        if annotation in _PLAIN_TYPES:
            return dict(_PLAIN_TYPES[annotation])
    except TypeError:
        pass  # an annotation that cannot be hashed is handled below
    if annotation is Any or annotation is object:
        return {}
    if isinstance(annotation, dict):
        return annotation
    if is_typeddict(annotation):
        return _schema_of_typed_dict(annotation, where)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    model_schema = getattr(annotation, "model_json_schema", None)
    if callable(model_schema):
        schema: JsonSchema = model_schema()
        return schema
    return _schema_of_generic(annotation, where)


def _schema_of_generic(annotation: Any, where: str) -> JsonSchema:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        schema = _schema_of_type(arguments[0], where)
        description = next((extra for extra in arguments[1:] if isinstance(extra, str)), None)
        return schema if description is None else {**schema, "description": description}
    if origin in (Required, NotRequired):
        return _schema_of_type(arguments[0], where)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of_type(argument, where) for argument in arguments]}
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return {
            "type": "array",
            "prefixItems": [_schema_of_type(argument, where) for argument in arguments],
            "minItems": len(arguments),
            "maxItems": len(arguments),
        }
    if origin in (list, tuple, set, frozenset):
        return {"type": "array", "items": _schema_of_type(arguments[0], where)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of_type(arguments[1], where)}
    raise OptionTypeError(
        f"{where}: {_shown(annotation)} has no JSON Schema; use str, int, float, bool, list[T], dict, "
        'a TypedDict, Annotated[T, "..."] or a JSON Schema dict'
    )


def _origin(annotation: Any) -> Any:
    return get_origin(annotation)


def _shown(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)
