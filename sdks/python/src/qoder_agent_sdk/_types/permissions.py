"""Types of permission decisions: modes, rules, updates, contexts and answers.

The callback's context and answers are dataclasses with the documented fields;
`PermissionUpdate.to_wire` gives the camelCase form that travels to the runtime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Union

PermissionMode = Literal[
    "default",
    "acceptEdits",
    "bypassPermissions",
    "yolo",
    "plan",
    "dontAsk",
    "auto",
]

PermissionBehavior = Literal["allow", "deny", "ask"]

PermissionUpdateDestination = Literal["userSettings", "projectSettings", "localSettings", "session"]

#: How a person's decision is to be counted; it does not change the decision.
PermissionDecisionClassification = Literal["user_temporary", "user_permanent", "user_reject"]


class ExitPlanModeApprovalDetails(TypedDict, total=False):
    """What the user approves when plan mode is left."""

    plan: str
    planFilePath: str


@dataclass
class PermissionRuleValue:
    """One rule: a tool, and optionally what its argument must match."""

    tool_name: str
    rule_content: str | None = None


@dataclass
class PermissionUpdate:
    """A change of the permission rules, the mode or the accessible directories."""

    type: Literal["addRules", "replaceRules", "removeRules", "setMode", "addDirectories", "removeDirectories"]
    rules: list[PermissionRuleValue] | None = None
    behavior: PermissionBehavior | None = None
    mode: PermissionMode | None = None
    directories: list[str] | None = None
    destination: PermissionUpdateDestination | None = None

    def to_wire(self) -> dict[str, Any]:
        """The form in which the runtime reads it."""
        wire: dict[str, Any] = {"type": self.type}
        if self.rules is not None:
            wire["rules"] = [{"toolName": rule.tool_name, "ruleContent": rule.rule_content} for rule in self.rules]
        for name in ("behavior", "mode", "directories", "destination"):
            value = getattr(self, name)
            if value is not None:
                wire[name] = value
        return wire


@dataclass
class ToolPermissionContext:
    """What is known about the call that waits for a decision."""

    signal: asyncio.Event | None = None
    suggestions: list[Any] = field(default_factory=list)
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    classifier_approvable: bool | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    agent_id: str | None = None
    exit_plan_mode: ExitPlanModeApprovalDetails | None = None


@dataclass
class PermissionResultAllow:
    """The call may run, with `updated_input` in place of its arguments when given."""

    behavior: Literal["allow"] = "allow"
    updated_input: dict[str, Any] | None = None
    updated_permissions: list[PermissionUpdate | dict[str, Any]] | None = None
    decision_classification: PermissionDecisionClassification | None = None


@dataclass
class PermissionResultDeny:
    """The call must not run; the model reads `message`, `interrupt` ends the turn."""

    behavior: Literal["deny"] = "deny"
    message: str = ""
    interrupt: bool = False
    decision_classification: PermissionDecisionClassification | None = None


PermissionResult = Union[PermissionResultAllow, PermissionResultDeny]

CanUseTool = Callable[
    [str, dict[str, Any], ToolPermissionContext],
    Awaitable[PermissionResult],
]
