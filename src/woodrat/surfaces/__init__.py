"""Surfaces: translation only. What a verb does is decided below; here it is spelled for people and programs."""
