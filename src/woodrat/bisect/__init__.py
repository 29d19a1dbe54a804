"""Bisect: the write that changed an answer, and the fewest observations that show one."""
