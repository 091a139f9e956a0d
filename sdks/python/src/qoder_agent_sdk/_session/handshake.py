"""The `initialize` request, and what its answer must contain.

Carries what the command line cannot: callbacks, agents, credentials. The
answer names the runtime; one of another protocol or version is
refused here, by name, before anything else is sent.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .._errors import ProtocolVersionMismatchError, UnsupportedCliCapabilityError
from .._options.auth import auth_payload
from .._options.options import QoderAgentOptions
from .._version import PROTOCOL_VERSION, __version__
from .callbacks import Callbacks


def initialize_request(options: QoderAgentOptions, callbacks: Callbacks) -> dict[str, Any]:
    """The fields of `initialize`; what was not configured is left out."""
    request: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "sdk": {"name": "python", "version": __version__},
        "hooks": callbacks.hook_registrations(),
    }
    optional: dict[str, Any] = {
        "auth": auth_payload(options.auth, options.env),
        "agents": _agents(options),
        "skills": list(options.skills) if isinstance(options.skills, (list, tuple)) else None,
        "excludeDynamicSections": options.exclude_dynamic_sections,
        "forwardSubagentText": options.forward_subagent_text or None,
        "modelPolicy": _declared(options.resolve_model),
        "elicitation": _declared(options.on_elicitation),
        "mcpOAuth": _declared(options.on_mcp_oauth_required),
        "authExpired": _declared(options.on_auth_expired),
        "proxy": options.proxy,
        "planModeInstructions": options.plan_mode_instructions,
        "promptSuggestions": options.prompt_suggestions or None,
        "customContext": options.custom_context,
        "goalMaxTurns": options.goal_max_turns,
    }
    request.update({key: value for key, value in optional.items() if value is not None})
    return request


def check_initialization(answer: dict[str, Any], options: QoderAgentOptions) -> None:
    """Refuse a runtime that does not fit."""
    theirs = answer.get("protocol_version")
    if str(theirs) != str(PROTOCOL_VERSION):
        raise ProtocolVersionMismatchError(
            f"this SDK speaks protocol version {PROTOCOL_VERSION}, qodercli speaks {theirs or 'an unknown version'}; "
            "use a qodercli and an SDK of the same release"
        )
    version = str(answer.get("qodercli_version") or "")
    if _release(version) != _release(__version__):
        raise ProtocolVersionMismatchError(
            f"this SDK is version {__version__}, qodercli is version {version or 'unknown'}; "
            "use a qodercli and an SDK of the same release"
        )
    if _fails_closed(options) and not (answer.get("hook_on_failure_supported") and answer.get("hooks_applied", True)):
        raise UnsupportedCliCapabilityError(
            "a HookMatcher has on_failure set, but this qodercli cannot guarantee it; use a newer qodercli"
        )


def _declared(callback: object) -> bool | None:
    return True if callback is not None else None


def _release(version: str) -> list[str]:
    return version.split(".")[:2]


def _agents(options: QoderAgentOptions) -> dict[str, Any] | None:
    if not options.agents:
        return None
    return {
        name: {key: value for key, value in asdict(agent).items() if value is not None}
        for name, agent in options.agents.items()
    }


def _fails_closed(options: QoderAgentOptions) -> bool:
    return any(
        matcher.on_failure not in (None, "continue")
        for _, matchers in (options.hooks.items() if options.hooks else ())
        for matcher in matchers
    )
