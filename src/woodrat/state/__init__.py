"""State: what is believed, and why. Pure."""
