"""A user's own merge policy: pure functions under a name, a version and the digest of their source."""

from __future__ import annotations

import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping

from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused
from woodrat.merge import BUILTIN, Claim, JoinPolicy, Policy
from woodrat.merge.policy import ALL_TYPES
from woodrat.state.schema_keywords import BY_KEY, PolicyName


def own_policy(
    name: str,
    version: int,
    *,
    lift: Callable[[Claim], Json],
    join: Callable[[Json, Json], Json],
    read: Callable[[Json], Json] = lambda joined: joined,
    json_types: Iterable[str] = ALL_TYPES,
    code: str | None = None,
) -> JoinPolicy:
    """Return a policy made of three pure functions.

    `lift` turns a claim into a JSON value, `join` combines two such values, `read` turns the result into the
    field's value. `code` is the SHA-256 of the source text of the three unless it is stated.
    """
    if name in BUILTIN or name == BY_KEY:
        problem = f"{name} is a built-in policy"
        raise Refused([Fault("name", problem, "Choose another name.")], outcome="No policy was made.")
    return JoinPolicy(
        PolicyName(name, version, code or _code_digest(lift, join, read)), lift, join, read, frozenset(json_types)
    )


def registry(policies: Iterable[Policy]) -> Mapping[str, Policy]:
    """Return the built-in policies and these, by name."""
    return {**BUILTIN, **{str(policy.name): policy for policy in policies}}


def _code_digest(*functions: Callable[..., object]) -> str:
    try:
        text = "\n".join(textwrap.dedent(inspect.getsource(function)) for function in functions)
    except (OSError, TypeError) as error:
        problem = "the source text of the functions cannot be read here"
        remedy = "State code as the SHA-256 of what defines the policy, in hex."
        raise Refused([Fault("code", problem, remedy)], outcome="No policy was made.") from error
    return hashlib.sha256(text.encode()).hexdigest()
