"""Verbs on runs that write: runs told in documents, judgements, evaluations."""
