"""Types of model selection: the catalog, the policy callback and BYOK.

TypedDicts with the keys that travel. `ModelPolicyResult.model` may be the name
of a model or a `CustomModel` with the credentials of a third party.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

if TYPE_CHECKING:
    # The runtime always sends it, so that checkers need not be told at each use.
    from typing_extensions import Required as Sent
else:

    class Sent:
        """The type that is named, as the documents declare it."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """The type itself."""
            return kind


QoderModelPurpose = Literal[
    "main",
    "plan",
    "task",
    "compact",
    "title",
    "suggestion",
    "generate",
    "hook_prompt",
    "subagent",
    "web_fetch",
    "image_gen",
    "compression",
    "utility",
]


class ModelInfo(TypedDict, total=False):
    """A model that can be used; without `isEnabled` it is available."""

    value: str
    displayName: str
    isEnabled: bool


class ModelPolicyContext(TypedDict, total=False):
    """What the model is needed for, and which models there are."""

    purpose: Sent[str]
    sessionId: str
    agentId: str
    turnIndex: int
    availableModels: list[ModelInfo]


class CustomModel(TypedDict, total=False):
    """Credentials and model of a third-party provider; `style` defaults to "openai"."""

    provider: str
    model: str
    api_key: str
    url: str
    style: str


class AdaptedModel(CustomModel, total=False):
    """A `CustomModel` with the compatibility profile of its server: a name, or a dict of the fields that differ."""

    compat: Union[str, dict[str, Any]]


class ModelPolicyResult(TypedDict, total=False):
    """The model for one request, and overrides of its parameters."""

    model: Union[str, CustomModel]
    parameters: dict[str, Any]


ModelPolicyProvider = Callable[
    [ModelPolicyContext],
    Union[ModelPolicyResult, Awaitable[ModelPolicyResult]],
]


class BYOKModelInfo(TypedDict, total=False):
    """A model of a third-party provider."""

    key: str
    display_name: str
    is_vl: bool
    is_reasoning: bool
    format: str
    max_input_tokens: int


class BYOKModelTypeInfo(TypedDict, total=False):
    """A group of models of a provider."""

    key: str
    display_name: str
    models: list[BYOKModelInfo]


class BYOKFieldInfo(TypedDict, total=False):
    """A field that a provider wants the user to fill in."""

    key: str
    display_name: str
    type: str
    mandatory: bool


class BYOKProviderInfo(TypedDict, total=False):
    """A third-party provider."""

    key: str
    display_name: str
    api_key_url: str
    url: str
    fields: list[BYOKFieldInfo]
    types: list[BYOKModelTypeInfo]


class SDKControlGetByokConfigResponse(TypedDict, total=False):
    """The catalog of providers as the runtime sends it."""

    providers: list[BYOKProviderInfo]
