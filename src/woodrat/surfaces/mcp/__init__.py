"""MCP: the verbs as tools of agents, over stdio and HTTP."""
