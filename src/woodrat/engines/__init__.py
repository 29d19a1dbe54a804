"""Engines: where a log and what is derived from it are kept."""
