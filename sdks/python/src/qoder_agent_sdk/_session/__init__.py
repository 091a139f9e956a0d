"""A running session: handshake, messages as they arrive, callbacks, turns."""
