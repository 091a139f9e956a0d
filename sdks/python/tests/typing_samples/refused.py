"""What type checkers refuse. Each mistake is ignored by name, and an ignore that is not needed is an error itself."""

from __future__ import annotations

import qoder_agent_sdk
from qoder_agent_sdk import HookMatcher, QoderAgentOption, QoderAgentOptions  # type: ignore[attr-defined]

qoder_agent_sdk.querry  # type: ignore[attr-defined]
QoderAgentOptions(max_turn=1)  # type: ignore[call-arg]
QoderAgentOptions(max_turns="1")  # type: ignore[arg-type]
QoderAgentOptions(setting_sources=["projects"])  # type: ignore[list-item]
QoderAgentOptions(hooks={"PreTolUse": [HookMatcher(hooks=[])]})  # type: ignore[dict-item]
print(QoderAgentOption)
