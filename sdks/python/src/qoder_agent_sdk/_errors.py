"""Every exception that the SDK raises.

`QoderSDKError` is the base. Errors about options are also `ValueError` or
`TypeError`, so that callers who know nothing of this SDK catch them too.
Texts name the thing that failed and say what to do about it.
"""

from __future__ import annotations

from typing import Any


class QoderSDKError(Exception):
    """Base of all errors of the SDK."""

    #: Stable identifier of the kind of error, for programs.
    code = "QODER_SDK_ERROR"


class OptionValueError(QoderSDKError, ValueError):
    """An option, or a combination of options, has a value that cannot work."""

    code = "QODER_OPTION_VALUE"


class OptionTypeError(QoderSDKError, TypeError):
    """An option or argument has a type that is not accepted."""

    code = "QODER_OPTION_TYPE"


class SessionStoreError(QoderSDKError):
    """A session store failed, did not answer, or gave an answer that cannot be used."""

    code = "QODER_SESSION_STORE"


class CLIConnectionError(QoderSDKError):
    """There is no working connection to the runtime."""

    code = "QODER_CLI_CONNECTION"


class CLINotFoundError(CLIConnectionError):
    """No usable `qodercli` executable was found."""

    code = "QODER_CLI_NOT_FOUND"


class QoderCliProcessError(CLIConnectionError):
    """The runtime could not start, or ended with a failure."""

    code = "QODER_CLI_PROCESS_ERROR"

    def __init__(
        self,
        message: str,
        exit_code: int | None = None,
        signal: int | None = None,
        stderr: str | None = None,
    ) -> None:
        """Keep the parts for programs and put them into the text for people."""
        self.exit_code = exit_code
        self.signal = signal
        self.stderr = stderr
        parts = [message]
        if exit_code is not None:
            parts.append(f"exit code {exit_code}")
        if signal is not None:
            parts.append(f"signal {signal}")
        text = ", ".join(parts)
        if stderr and stderr.strip():
            text += "\nstderr of qodercli:\n" + stderr.strip()
        super().__init__(text)


#: The shorter name that other SDKs of this family use.
ProcessError = QoderCliProcessError


class QueryResultError(QoderCliProcessError):
    """A one-shot run ended in an error result and the runtime exited with a failure.

    The `ResultMessage` was delivered before; this error repeats its parts so
    that a caller who only watches for exceptions sees the failure once.
    """

    code = "QODER_RESULT_ERROR"

    def __init__(
        self,
        message: str,
        *,
        subtype: str,
        errors: list[str],
        session_id: str | None,
        terminal_reason: str | None = None,
        api_error_status: int | None = None,
        error_code: int | None = None,
        exit_code: int | None = None,
        signal: int | None = None,
        stderr: str | None = None,
    ) -> None:
        """Carry the parts of the error result beside those of the process."""
        self.subtype = subtype
        self.errors = errors
        self.session_id = session_id
        self.terminal_reason = terminal_reason
        self.api_error_status = api_error_status
        self.error_code = error_code
        super().__init__(message, exit_code=exit_code, signal=signal, stderr=stderr)


class CLIJSONDecodeError(QoderSDKError):
    """The runtime printed a line that is not JSON, or one that is too long."""

    code = "QODER_CLI_JSON_DECODE"

    def __init__(self, message: str, line: str = "", original_error: Exception | None = None) -> None:
        """Keep the start of the line and the parser's own error."""
        self.line = line
        self.original_error = original_error
        super().__init__(message)


class MessageParseError(QoderSDKError):
    """A message of a known type lacks what that type must have."""

    code = "QODER_MESSAGE_PARSE"

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        """Keep the message as it came."""
        self.data = data
        super().__init__(message)


class ControlRequestError(QoderSDKError):
    """The runtime refused a control request."""

    code = "QODER_CONTROL_REQUEST"

    def __init__(self, message: str, subtype: str = "") -> None:
        """Keep which request failed."""
        self.subtype = subtype
        super().__init__(message)


class ControlRequestTimeoutError(ControlRequestError, TimeoutError):
    """The runtime did not answer a control request in time."""

    code = "QODER_CONTROL_REQUEST_TIMEOUT"


class ProtocolVersionMismatchError(CLIConnectionError):
    """SDK and runtime speak different versions of the protocol."""

    code = "QODER_PROTOCOL_VERSION_MISMATCH"


class UnsupportedCliCapabilityError(CLIConnectionError):
    """The runtime lacks something that the options ask for."""

    code = "QODER_UNSUPPORTED_CLI_CAPABILITY"


class AuthNotConfiguredError(QoderSDKError):
    """The runtime needs credentials and none are configured."""

    code = "auth_not_configured"


class AuthAccessTokenEnvVarError(OptionValueError):
    """The environment variable that should hold the access token is not set."""

    code = "auth_access_token_env_var"

    def __init__(self, env_var: str) -> None:
        """Name the variable that was looked for."""
        self.env_var = env_var
        super().__init__(
            f"the environment variable {env_var} is not set or empty: set it in options.env or in the "
            "environment of this process, or use access_token() or qodercli_auth()"
        )


class ModelPolicyTimeoutError(QoderSDKError):
    """The `resolve_model` callback did not answer within `resolve_model_timeout_ms`."""

    code = "model_policy_timeout"
