"""The version of this SDK and of the protocol it speaks.

Both travel with `initialize`, so that a runtime of another generation is
refused by name instead of failing later in some other way.
"""

__version__ = "0.1.0"

#: Version of the stdio protocol between the SDK and `qodercli`.
PROTOCOL_VERSION = 1
