"""State: beliefs, and the reasons for them. Pure."""
