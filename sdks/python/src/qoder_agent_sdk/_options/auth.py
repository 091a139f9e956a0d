"""How the runtime authenticates: factories, and the payload for `initialize`.

A token travels only inside the `initialize` request: never as an argument and
never in the environment, where other programs could read it. It is also kept
out of what options and payloads print.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from .._errors import AuthAccessTokenEnvVarError, OptionTypeError, OptionValueError

DEFAULT_TOKEN_VARIABLE = "QODER_PERSONAL_ACCESS_TOKEN"


@dataclass(frozen=True)
class InternalAuthOptions:
    """One way to authenticate; made by the factory functions."""

    type: Literal["accessToken", "qodercli"]
    access_token: str | None = field(default=None, repr=False)
    env_var: str | None = None


AuthOptions = Union[InternalAuthOptions, dict[str, Any]]


def access_token(token: str) -> InternalAuthOptions:
    """Authenticate with a personal access token."""
    if not isinstance(token, str) or not token.strip():
        raise OptionValueError("access_token() needs a non-empty token")
    return InternalAuthOptions(type="accessToken", access_token=token)


def access_token_from_env(env_var: str = DEFAULT_TOKEN_VARIABLE) -> InternalAuthOptions:
    """Authenticate with a token from an environment variable, read when a session starts."""
    if not isinstance(env_var, str) or not env_var.strip():
        raise OptionValueError("access_token_from_env() needs the name of an environment variable")
    return InternalAuthOptions(type="accessToken", env_var=env_var)


def qodercli_auth() -> InternalAuthOptions:
    """Authenticate with the login of the local `qodercli`."""
    return InternalAuthOptions(type="qodercli")


def auth_payload(auth: AuthOptions | None, env: Mapping[str, str | None]) -> dict[str, Any] | None:
    """What `initialize` carries; reads environment variables, `options.env` first."""
    if auth is None:
        return None
    options = auth if isinstance(auth, InternalAuthOptions) else _from_dict(auth)
    if options.type == "qodercli":
        return {"type": "qodercli"}
    token = options.access_token
    if options.env_var is not None:
        token = env[options.env_var] if options.env_var in env else os.environ.get(options.env_var)
        if not token:
            raise AuthAccessTokenEnvVarError(options.env_var)
    return {"type": "accessToken", "accessToken": token}


def check_auth(auth: object) -> None:
    """Refuse what is no way to authenticate."""
    if auth is None or isinstance(auth, InternalAuthOptions):
        return
    if not isinstance(auth, dict):
        raise OptionTypeError(
            "auth must be made by access_token(), access_token_from_env() or qodercli_auth(), "
            f"or be a dict with a 'type', not {type(auth).__name__}"
        )
    _from_dict(auth)


def _from_dict(auth: dict[str, Any]) -> InternalAuthOptions:
    kind = auth.get("type")
    if kind == "qodercli":
        return qodercli_auth()
    if kind != "accessToken":
        raise OptionValueError(f"auth: 'type' must be 'accessToken' or 'qodercli', not {kind!r}")
    token = auth.get("accessToken", auth.get("access_token"))
    if isinstance(token, dict) and isinstance(token.get("envVar"), str):
        return access_token_from_env(token["envVar"])
    if not isinstance(token, str):
        raise OptionValueError(
            "auth: 'accessToken' must be a token, or {'envVar': name} to read it from the environment"
        )
    return access_token(token)
