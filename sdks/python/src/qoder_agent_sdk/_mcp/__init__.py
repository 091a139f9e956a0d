"""Tools and MCP servers that live in this process."""
