"""Erasure: forgetting named data for ever, with everything that quotes it, and proving that."""
