"""Dataclasses that are also dicts.

Callback inputs are documented as dataclasses and used as dicts
(`inp.get("tool_input", {})`). A record is both: attributes for the documented
fields, keys for everything the runtime sent, and plain JSON for `json.dumps`.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

RecordType = TypeVar("RecordType", bound="Record")


class Record(dict[str, Any]):
    """Base of dataclasses whose fields can also be read as keys."""

    def __post_init__(self) -> None:
        """Put the fields that were given into the dict."""
        for each in fields(self):  # type: ignore[arg-type]
            self.setdefault(each.name, getattr(self, each.name))

    @classmethod
    def from_wire(cls: type[RecordType], payload: dict[str, Any]) -> RecordType:
        """Build a record from what the runtime sent; `None` for a missing field, an unknown one stays a key."""
        values: dict[str, Any] = {}
        for each in fields(cls):  # type: ignore[arg-type]
            if each.name in payload:
                values[each.name] = payload[each.name]
            elif each.default is MISSING and each.default_factory is MISSING:
                values[each.name] = None
        record = cls(**values)
        record.clear()
        record.update(payload)
        return record
