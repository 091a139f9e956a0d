"""What is shown of a session, read from the text of its log.

Lists look for names in the text instead of parsing it, because only the start
and the end of a long log are at hand, where lines may be cut.
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
    title = next(
        (found for key in ("customTitle", "aiTitle") for text in (tail, head) if (found := _last(text, key))), None
    )
    prompt = _first_prompt(head)
    summary = title or _last(tail, "lastPrompt") or _last(tail, "summary") or prompt
    if not summary:
        return None
    return SDKSessionInfo(
        session_id=session_id,
        summary=summary,
        last_modified=last_modified,
        file_size=file_size,
        custom_title=title,
        first_prompt=prompt,
        git_branch=_last(tail, "gitBranch") or _last(head, "gitBranch"),
        cwd=_first(head, "cwd"),
        tag=_tag(tail),
        created_at=milliseconds(_first(head, "timestamp")),
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


def _values(text: str, key: str) -> list[str]:
    return re.findall(rf'"{key}": ?("(?:[^"\\]|\\.)*")', text)


def _last(text: str, key: str) -> str | None:
    values = _values(text, key)
    return _unquoted(values[-1]) if values else None


def _first(text: str, key: str) -> str | None:
    values = _values(text, key)
    return _unquoted(values[0]) if values else None


def _unquoted(quoted: str) -> str | None:
    try:
        return str(json.loads(quoted)) or None
    except ValueError:
        return None


def _tag(tail: str) -> str | None:
    rows = [line for line in tail.split("\n") if line.startswith('{"type":"tag"')]
    return _last(rows[-1], "tag") if rows else None


def milliseconds(timestamp: str | None) -> int | None:
    """A time as milliseconds since 1970; None when it cannot be read."""
    if timestamp is None:
        return None
    try:
        return int(datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None


def _first_prompt(head: str) -> str | None:
    for line in head.split("\n"):
        if '"type":"user"' not in line.replace('": "', '":"') or '"tool_result"' in line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("isMeta") or entry.get("isCompactSummary"):
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
