"""The recorder: a run recorded as it happens."""
