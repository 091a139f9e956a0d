"""What programs and callbacks are given: messages, hook inputs, permissions, servers, models."""
