"""Merge policies: how the live claims on one field become one value.

Every policy is a join over a set of claims, ranked by what each observation says of itself; the value comes
last in every rank, so equal ranks are equal values. A digest only chooses which of several equal claims is
shown. Three families share one interface:

    ranked    latest, highest_priority, first, max, min, and a user's own   one value; corrections come first
    union     elements asserted and not removed                             corrections speak per element
    terms     sum, append                                                   a correction stands in for one original

`fold` is the definition: all claims of a field at once. `extend` folds one more claim into what `fold` gave
and must agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from woodrat.merge.claim import Claim, claim_of
from woodrat.merge.policy import Held, Known, Policy, Shown
from woodrat.merge.ranked import FIRST, HIGHEST_PRIORITY, LATEST, MAX, MIN, JoinPolicy
from woodrat.merge.terms import Append, Sum
from woodrat.merge.union import Union

__all__ = ["BUILTIN", "LATEST", "Claim", "Held", "JoinPolicy", "Known", "Policy", "Shown", "claim_of"]

BUILTIN: Mapping[str, Policy] = {
    str(policy.name): policy for policy in (LATEST, HIGHEST_PRIORITY, FIRST, MAX, MIN, Union(), Sum(), Append())
}
"""The policies every ledger has, by name."""
