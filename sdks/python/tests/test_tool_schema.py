"""The three forms of `input_schema` become JSON Schema.

Simple dicts, TypedDicts and full schemas, every row of the conversion table, and what
is refused.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from typing_extensions import NotRequired, Required

from qoder_agent_sdk import OptionTypeError, create_sdk_mcp_server, tool


def schema_of(input_schema: Any) -> dict[str, Any]:
    @tool("probe", "Shows its schema.", input_schema)
    async def probe(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": []}

    server = create_sdk_mcp_server(name="s", tools=[probe])
    return server["instance"].tools["probe"].listing()["inputSchema"]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Nested(TypedDict):
    inner: int


class Search(TypedDict):
    query: Annotated[str, "Search keywords"]
    max_results: NotRequired[Annotated[int, "Maximum snippets to return"]]


class Loose(TypedDict, total=False):
    a: int
    b: Required[str]


class Extended(Search):
    source: str


PYTHON_TYPES: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (list[str], {"type": "array", "items": {"type": "string"}}),
    (list[list[int]], {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
    (list, {"type": "array"}),
    (dict, {"type": "object"}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Annotated[str, "Words"], {"type": "string", "description": "Words"}),
    (Any, {}),
    (Literal["a", "b"], {"enum": ["a", "b"]}),
    (Colour, {"enum": ["red", "blue"]}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Nested, {"type": "object", "properties": {"inner": {"type": "integer"}}, "required": ["inner"]}),
    ({"type": "string", "enum": ["x"]}, {"type": "string", "enum": ["x"]}),
]


@pytest.mark.parametrize(("annotation", "expected"), PYTHON_TYPES)
def test_a_python_type_has_its_schema(annotation: Any, expected: dict[str, Any]) -> None:
    assert schema_of({"field": annotation}) == {
        "type": "object",
        "properties": {"field": expected},
        "required": ["field"],
    }


def test_all_keys_of_a_simple_dict_are_required() -> None:
    assert schema_of({"a": str, "b": int})["required"] == ["a", "b"]


def test_a_tool_without_parameters() -> None:
    assert schema_of({}) == {"type": "object", "properties": {}, "required": []}


def test_a_typed_dict_says_what_is_required() -> None:
    assert schema_of(Search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search keywords"},
            "max_results": {"type": "integer", "description": "Maximum snippets to return"},
        },
        "required": ["query"],
    }


def test_a_typed_dict_without_totality() -> None:
    assert schema_of(Loose)["required"] == ["b"]


def test_a_typed_dict_inherits() -> None:
    schema = schema_of(Extended)
    assert set(schema["properties"]) == {"query", "max_results", "source"}
    assert sorted(schema["required"]) == ["query", "source"]


def test_a_full_json_schema_is_kept_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {
            "source": {"type": "string", "enum": ["docs", "wiki"], "description": "Where"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10},
            "filter": {"type": "object", "properties": {"since": {"type": "string", "format": "date"}}},
        },
        "required": ["source"],
        "additionalProperties": False,
    }
    assert schema_of(schema) == schema


def test_parameters_may_be_called_type_and_properties() -> None:
    assert schema_of({"type": str, "properties": dict})["required"] == ["type", "properties"]


@pytest.mark.parametrize("wrong", [str, 3, "query: str", None, ["a"]])
def test_what_is_no_schema_is_refused(wrong: Any) -> None:
    with pytest.raises(OptionTypeError, match="tool 'probe'"):
        schema_of(wrong)


def test_a_type_without_schema_is_refused_by_the_name_of_its_parameter() -> None:
    with pytest.raises(OptionTypeError, match="parameter 'when'.*complex has no JSON Schema"):
        schema_of({"when": complex})


@pytest.mark.parametrize(
    "wrong", [{"type": "string"}, {"type": "object", "properties": []}, {"type": "object", "required": "a"}]
)
def test_a_json_schema_of_something_else_than_an_object_is_refused(wrong: Any) -> None:
    with pytest.raises(OptionTypeError, match="tool 'probe'"):
        schema_of(wrong)
