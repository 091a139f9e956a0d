"""File checkpoints with the real runtime: previewing, going back, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qoder_agent_sdk import ControlRequestError, QoderSDKClient, get_session_messages

pytestmark = pytest.mark.anyio

FIRST = "c0ffee00-0000-4000-8000-000000000001"
SECOND = "c0ffee00-0000-4000-8000-000000000002"


def replies() -> list[dict[str, Any]]:
    """The second message creates a file."""
    write = {"name": "Write", "input": {"file_path": "new.txt", "content": "one\ntwo\n"}, "id": "call_1"}
    return [{"text": "hello"}, {"toolCalls": [write]}, {"text": "done", "repeat": True}]


async def say(client: QoderSDKClient, text: str, uuid: str) -> None:
    """One turn."""
    await client.query(text, message_uuid=uuid)
    async for _ in client.receive_response():
        pass


async def test_enable_file_checkpointing_and_rewind_files(scripted: Any, project: Path) -> None:
    file = project / "new.txt"
    options = scripted(*replies(), allowed_tools=["Write"], enable_file_checkpointing=True)
    async with QoderSDKClient(options) as client:
        await say(client, "hi", FIRST)
        await say(client, "write", SECOND)
        assert file.read_text() == "one\ntwo\n"
        preview = await client.rewind_files(SECOND, dry_run=True)
        assert preview == {"canRewind": True, "filesChanged": [str(file)], "insertions": 0, "deletions": 2}
        assert file.exists()
        assert (await client.rewind_files("absent", dry_run=True))["canRewind"] is False
        with pytest.raises(ControlRequestError, match="no file checkpoint found"):
            await client.rewind_files("absent")
        report = await client.rewind(SECOND)
        assert report["messagesRemoved"] == 4
        assert not file.exists()
        session_id = (await client.get_server_info())["session_id"]
    # Readers of the session see the conversation as it is now.
    assert [message.type for message in get_session_messages(session_id, directory=project)] == ["user", "assistant"]


async def test_without_the_option_there_is_nothing_to_rewind_to(scripted: Any, project: Path) -> None:
    async with QoderSDKClient(scripted(*replies(), allowed_tools=["Write"])) as client:
        await say(client, "hi", FIRST)
        await say(client, "write", SECOND)
        with pytest.raises(ControlRequestError, match="enable_file_checkpointing"):
            await client.rewind_files(SECOND)
        assert (project / "new.txt").exists()
