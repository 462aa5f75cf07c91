"""For coding agents: commands as tools of an MCP server (``traceview mcp``), and a skill file."""
