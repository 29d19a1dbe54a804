"""Causal decision memory: what a run read, decided, called and answered. Pure."""
