"""Neotoma: the addresses and shapes that clients written for Neotoma know."""
