"""What is shown of a session, read from the text of its log.

Only the start and the end of a long log are at hand, where lines may be cut:
a line that cannot be read is passed over.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_PROMPT_LIMIT = 200

#: Prompts that no person typed.
_NOT_PROMPTS = re.compile(
    r"^(?:<local-command-stdout>|<session-start-hook>|<tick>|<goal>|\[Request interrupted by user[^\]]*\]"
    r"|\s*<ide_opened_file>[\s\S]*</ide_opened_file>\s*$|\s*<ide_selection>[\s\S]*</ide_selection>\s*$)"
)


@dataclass
class SDKSessionInfo:
    """What a list of sessions shows of one; times are in milliseconds."""

    session_id: str
    summary: str
    last_modified: int
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None


@dataclass
class SessionMessage:
    """One message of a stored session; `message` is the message of the model's API."""

    type: str
    uuid: str
    session_id: str
    message: Any
    parent_tool_use_id: str | None = None
    timestamp: str | None = None
    subtype: str | None = None
    compact_metadata: dict[str, Any] | None = None


def session_facts(
    head: str, tail: str, session_id: str, last_modified: int, file_size: int | None = None
) -> SDKSessionInfo | None:
    """What a list shows, from the start and the end of a log; None when there is nothing to show."""
    if '"isSidechain":true' in head.split("\n", 1)[0].replace(": ", ":"):
        return None
    first, last = head.split("\n"), tail.split("\n")
    newest = [*reversed(last), *reversed(first)]
    title = _field(newest, "customTitle") or _field(newest, "aiTitle")
    prompt = _first_prompt(first)
    ends = last[::-1]
    summary = title or _field(ends, "lastPrompt") or _field(ends, "summary", kind="summary") or prompt
    if not summary:
        return None
    return SDKSessionInfo(
        session_id=session_id,
        summary=summary,
        last_modified=last_modified,
        file_size=file_size,
        custom_title=title,
        first_prompt=prompt,
        git_branch=_field(newest, "gitBranch"),
        cwd=_field(first, "cwd"),
        tag=_tag(ends),
        created_at=milliseconds(_field(first, "timestamp")),
    )


def session_message(entry: dict[str, Any], session_id: str) -> SessionMessage:
    """An entry of a log as a message."""
    return SessionMessage(
        type=entry["type"],
        uuid=entry["uuid"],
        session_id=entry.get("sessionId") or session_id,
        message=entry.get("message", entry.get("content")),
        parent_tool_use_id=entry.get("parentToolUseId"),
        timestamp=entry.get("timestamp"),
        subtype=entry.get("subtype"),
        compact_metadata=entry.get("compactMetadata"),
    )


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None  # torn, or begun before the part that was read
    return entry if isinstance(entry, dict) else None


def _field(lines: list[str], key: str, kind: str | None = None) -> str | None:
    """The text of a field of the first line that has it; what a tool was called with is no field of a line."""
    for line in lines:
        if f'"{key}"' not in line or (entry := _entry(line)) is None:
            continue
        value = entry.get(key)
        if isinstance(value, str) and value and kind in (None, entry.get("type")):
            return value
    return None


def _tag(lines: list[str]) -> str | None:
    for line in lines:
        if '"tag"' in line and (entry := _entry(line)) is not None and entry.get("type") == "tag":
            tag = entry.get("tag")
            return tag if isinstance(tag, str) and tag else None
    return None


def milliseconds(timestamp: str | None) -> int | None:
    """A time as milliseconds since 1970; None when it cannot be read."""
    if timestamp is None:
        return None
    try:
        return int(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None


def _first_prompt(lines: list[str]) -> str | None:
    for line in lines:
        if '"type":"user"' not in line.replace('": "', '":"') or '"tool_result"' in line:
            continue
        entry = _entry(line)
        if entry is None or entry.get("isMeta") or entry.get("isCompactSummary"):
            continue
        text = _text_of((entry.get("message") or {}).get("content")).strip()
        if text and "<command-name>" not in text and not _NOT_PROMPTS.match(text):
            flat = text.replace("\n", " ")
            return flat if len(flat) <= _PROMPT_LIMIT else flat[:_PROMPT_LIMIT].rstrip() + "…"
    return None


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text", "") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return next((text for text in texts if text), "")
