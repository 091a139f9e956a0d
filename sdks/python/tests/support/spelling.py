"""Types in one spelling, so that a documented type can be compared with ours.

`Optional`, `Union` and `|` are the same, a bare `dict` is one of anything by text, names count without the modules
they come from, and a quoted annotation counts as the type that it names.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from mcp.types import ToolAnnotations
from typing_extensions import NotRequired

from support.samples import public_names

#: What the document uses and neither declares nor always imports.
NAMED = (asyncio, AsyncIterable, AsyncIterator, Awaitable, Callable, Path, ToolAnnotations)
OTHERS = {"Any": Any, "Literal": Literal, "NotRequired": NotRequired, "T": TypeVar("T")}

#: What a bare container holds.
BARE = {dict: "dict[str, Any]", list: "list[Any]"}


def known_names() -> dict[str, Any]:
    """What annotations may name beside what their module has."""
    return {**public_names(), **{each.__name__: each for each in NAMED}, **OTHERS}


def types_of(declared: Any) -> dict[str, str]:
    """The types of the fields or parameters of a declaration, spelled."""
    names = {**vars(sys.modules.get(declared.__module__, sys)), **known_names()}
    hints = get_type_hints(declared, names, names, include_extras=True)
    return {name: spelled(hint) for name, hint in hints.items()}


def spelled(declared: Any) -> str:
    """A type in our spelling."""
    if isinstance(declared, (str, ForwardRef)):
        text = declared if isinstance(declared, str) else declared.__forward_arg__
        return spelled(eval(text, known_names()))
    if declared in (None, NoneType):
        return "None"
    if isinstance(declared, list):
        return f"[{', '.join(spelled(each) for each in declared)}]"
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return " | ".join(sorted({spelled(each) for each in arguments}))
    if origin is Literal:
        return f"Literal[{', '.join(sorted(map(repr, arguments)))}]"
    if origin is not None:
        return f"{_name(origin)}[{', '.join(spelled(each) for each in arguments)}]"
    if declared in BARE:
        return BARE[declared]
    return _name(declared)


def _name(declared: Any) -> str:
    return str(getattr(declared, "__name__", None) or getattr(declared, "_name", None) or declared).lstrip("~")
