"""Canon: from a value to bytes, from bytes to a name.

The only place that turns values into bytes. Pure: no clock, no disk, no randomness.
"""
