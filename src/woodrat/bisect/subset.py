"""Subset: the state of a set of observations alone, folded in memory without any log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from woodrat.bisect.predicate import Believed
from woodrat.canon.ids import Ref
from woodrat.merge import fold, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state import fingerprint, relation
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.schema_keywords import COLLECTIONS

RulesOf = Callable[[str], Rules]
"""Answers by which rules an entity type is merged."""


def believed_of(state: MergeState, rules: Rules) -> Believed:
    """Return merge state as predicates look at it."""
    fields = snapshot.fields_of(state, rules) if state.exists else {}
    collections = frozenset(name for name in fields if rules.schema.policy_of(name).name in COLLECTIONS)
    return Believed(state.exists, state.exists and state.deleted, fields, collections)


class Subset:
    """A set of observations, and its state; with `only`, restricted to fields of these names."""

    def __init__(
        self, observations: Iterable[Observation], rules_of: RulesOf, only: Collection[str] | None = None
    ) -> None:
        self._rules_of = rules_of
        self._only = only
        self._said: dict[Ref, list[Observation]] = {}
        for observation in observations:
            self._said.setdefault(observation.entity, []).append(observation)
        self._edges: dict[Ref, list[Ref]] | None = None
        self._states: dict[tuple[Ref, ...], MergeState] = {}

    def look(self, ref: Ref) -> Believed:
        """Return the state of an entity."""
        return believed_of(self.state(ref), self._rules_of(ref.type))

    def state(self, ref: Ref) -> MergeState:
        """Return the merge state of an entity with all that it is joined with."""
        return self._fold(self.group(ref))

    def group(self, ref: Ref) -> tuple[Ref, ...]:
        """Return all entities that `same_as` joins with this one, itself included, by digest."""
        if self._edges is None:
            self._edges = {}
            for edge in self._said:
                ends = relation.joined(edge)
                if ends is not None:
                    state = self._fold((edge,))
                    if state.exists and not state.deleted:
                        self._edges.setdefault(ends[0], []).append(ends[1])
                        self._edges.setdefault(ends[1], []).append(ends[0])
        edges = self._edges
        return relation.group(ref, lambda one: edges.get(one, ())) if ref in edges else (ref,)

    def _fold(self, members: tuple[Ref, ...]) -> MergeState:
        found = self._states.get(members)
        if found is None:
            said = [observation for member in members for observation in self._said.get(member, ())]
            rules = self._rules_of(members[0].type)
            found = fold.fold(said, members, rules, self._only) if said else fold.empty(members, rules)
            self._states[members] = found
        return found

    def live(self) -> set[bytes]:
        """Return the digests of the observations that no live retraction withdraws."""
        acting = {
            observation.digest: observation
            for ref, said in self._said.items()
            for observation in said
            if self._rules_of(ref.type).acts(observation)
        }
        return fold.live_digests(acting)

    def behind(self, ref: Ref, names: Iterable[str]) -> Iterator[bytes]:
        """Yield the observations that the values of some fields name as theirs."""
        state, rules = self.state(ref), self._rules_of(ref.type)
        for name in names:
            field = state.field(name)
            if field is not None and field.held is not None:
                yield from rules.policy(name).show(field.held).observations

    def fingerprint(self) -> str:
        """Return the fingerprint of a ledger that holds just these."""
        roots = {self.group(ref)[0] for ref in self._said}
        states = ((root, self.state(root)) for root in sorted(roots, key=lambda root: root.digest))
        tree = fingerprint.Tree.build(
            (root.digest, snapshot.value_digest(state, self._rules_of(root.type)))
            for root, state in states
            if state.exists
        )
        return fingerprint.text(tree.root())


def entities_concerned(refs: Iterable[Ref], edges_at: Callable[[Ref], Iterable[Ref]]) -> dict[Ref, None]:
    """Return all entities that can affect these: those that a `same_as` ever named together with them, and its edges.

    `edges_at` returns the `same_as` entities that name an entity, live or not.
    """
    found: dict[Ref, None] = dict.fromkeys(refs)
    waiting = list(found)
    while waiting:
        for edge in edges_at(waiting.pop()):
            for ref in (edge, *(relation.joined(edge) or ())):
                if ref not in found:
                    found[ref] = None
                    if ref != edge:
                        waiting.append(ref)
    return found


def retracts(observations: Iterable[Observation]) -> bool:
    """Return True if any of these is a retraction."""
    return any(observation.op == RETRACT for observation in observations)
