"""The model: a tenant as a list of entries that answers every read by folding the list.

It defines correct behaviour, and laws compare ledgers with it. It is plain and slow, and shares no code with the merge,
the ledger or an engine. `merge.py` states the rules of merging, `provenance.py` the winners and losers, `tenant.py` the
state of a log at a moment and `runs.py` its runs; `agreement.py` compares a ledger's answers.
"""
