"""Compare: where two runs, many runs or two logs first differ, and why."""
