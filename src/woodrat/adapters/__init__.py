"""Adapters: recorders for agent frameworks, one file each, written with the public API alone."""
