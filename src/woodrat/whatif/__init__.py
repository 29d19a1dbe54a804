"""Whatif."""
