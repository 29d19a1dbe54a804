"""Erasure: forgetting for ever what is named, with all that quotes it, and proving that."""
