"""Bisect."""
