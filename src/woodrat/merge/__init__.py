"""Merge policies: how the live claims on one field become one value.

Every policy is a join over a set of claims, ranked by the contents of each observation; the value comes last in every
rank, so equal ranks are equal values. A digest only chooses which of several equal claims is shown. Three families
share one interface:

    ranked    latest, highest_priority, first, max, min, and a user's own   one value; corrections come first
    slots     union: elements asserted and not removed                      corrections speak per element
              by_key: objects told apart by the text of a member            corrections speak per object and member
    terms     sum, append                                                   a correction stands in for one original

`fold` is the definition: all claims of a field at once. `extend` adds one more claim to the result of `fold` and must
agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from woodrat.merge.additive import Append, Sum
from woodrat.merge.by_key import by_key
from woodrat.merge.claim import Claim, claim_of
from woodrat.merge.policy import FoldHistory, Held, Policy, Shown
from woodrat.merge.ranked import FIRST, HIGHEST_PRIORITY, LATEST, MAX, MIN, JoinPolicy
from woodrat.merge.union import Union
from woodrat.state.schema_keywords import BY_KEY, PolicyName

__all__ = [
    "BUILTIN",
    "LATEST",
    "Claim",
    "Held",
    "JoinPolicy",
    "FoldHistory",
    "Policy",
    "Shown",
    "by_key",
    "claim_of",
    "known_policy",
]

BUILTIN: Mapping[str, Policy] = {
    str(policy.name): policy for policy in (LATEST, HIGHEST_PRIORITY, FIRST, MAX, MIN, Union(), Sum(), Append())
}
"""The built-in policies by name; `known_policy` also finds `by_key`, which has one per member."""


def known_policy(name: PolicyName, policies: Mapping[str, Policy]) -> Policy | None:
    """Return the policy of this name, version and code, built in or one of these."""
    found = policies.get(str(name))
    if found is None and name.name == BY_KEY and name.member is not None:
        return by_key(name.member)
    return found if found is not None and found.name == name else None
