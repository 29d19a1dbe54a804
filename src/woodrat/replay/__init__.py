"""Replay: an agent's code run again on a recorded run, and runs carried on from their record."""
