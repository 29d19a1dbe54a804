"""The model: a tenant as a list of entries that answers every read by folding the list.

It defines what is right, and laws compare ledgers with it. It is plain and slow, and shares no code with the merge, the
ledger or an engine. `merge.py` states the rules of merging, `provenance.py` who won and who lost, `tenant.py` what a
log says at a moment and `runs.py` what it says of runs; `agreement.py` asks a ledger the same questions.
"""
