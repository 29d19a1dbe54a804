"""Closure: from the data to forget to everything that must go with it.

The scope is found by index. Then the log is walked: once for texts that others state too, and then until no new entry
is found that names or quotes erased data. An entry that merely loses a part is rewritten; entries that name it are then
rewritten too.

A walk searches the bytes of bodies and parses the few that match. It runs in a view, while others write; `tail.py`
checks the entries written meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View
from woodrat.erasure import rewrite
from woodrat.erasure.plan import NO_ERASURE, Plan, Scope
from woodrat.erasure.quotes import Finder, Quoted, is_long_enough, leaves, names_any, texts, unsearched
from woodrat.erasure.reader.tail import search_receipts
from woodrat.erasure.rewrite import Names
from woodrat.errors import Fault, NotFound, Refused
from woodrat.ledger import entry_index
from woodrat.log.erasure import Erasure, Link, digest_mac, field_name, name_mac, record_mac
from woodrat.state import observation, relation
from woodrat.state.meaning import RUN_KINDS, Meaning, step_of
from woodrat.state.note import ABOUT, note_of
from woodrat.state.observation import Observation
from woodrat.state.run_owner import is_part, owner_of
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.ledger.progress import Progress
    from woodrat.log.check import Row
    from woodrat.log.entry import Entry

STAYING: Final = frozenset({"schema", "erasure"})
"""Kinds that erasures never touch: schemas, which control merging, and erasures, which record what is gone."""
STATED: Final = frozenset({"observation", "schema"})
"""Kinds that make a text common, so that it does not belong to the erased records alone."""
BEGUN: Final = RUN_KINDS | {"source", "interpretation.started", "interpretation.ended"}
"""Kinds of entries of a run, an interpretation or a source."""
CHUNK_ENTRIES: Final = 1_000
"""Entries read at a time."""
SHARED_MAX: Final = 5
"""Most positions listed for a value that others state too."""


def close(
    view: View, scope: Scope, key: bytes, stopped: Collection[str] = (), progress: Progress | None = None
) -> Plan:
    """Return the plan for a scope. `stopped` are the MACs of earlier erasures: their data is not written again."""
    return _Closing(view, scope, key, stopped, progress).plan()


def close_mentions(
    view: View, tenant: str, scope: Scope, known: Plan, key: bytes, stopped: Collection[str] = ()
) -> Plan | None:
    """Return the plan for a log of the server's own: entries about a tenant that name or quote data erased there.

    Reads from before there was an erasure key have their targets in the audit by name. They are rewritten without. None
    if there are no such entries.
    """
    return _Closing(view, scope, key, stopped).mentions(tenant, known)


class _Closing:
    """One closure during its computation."""

    def __init__(
        self,
        view: View,
        scope: Scope,
        key: bytes,
        stopped: Collection[str],
        progress: Progress | None = None,
    ) -> None:
        self._progress = progress
        self._view, self._scope, self._key, self._stopped = view, scope, key, stopped
        self._head = view.head().position
        self._direct: set[int] = set()
        self._readings: set[str] = set()
        self._runs: set[str] = set()
        self._sources: set[bytes] = set()
        self._ref = scope.ref if scope.kind in ("entity", "subject") else None
        self._refs = () if self._ref is None else (self._ref, *_notes_about(view, self._ref, self._head))
        """The entities to erase: the one that the scope names, and the notes about it."""
        self._found: dict[int, tuple[str, bytes]] = {}
        """Entries to erase, certain or possible, by position."""
        self._links: dict[bytes, Link] = {}
        """Replacements that another ledger made for observations, by their digests."""
        self._gone_ids: set[str] = set()
        """Short ids of entries to erase, certain or possible: an entry that names one may go too."""
        self._plan = Plan()

    def plan(self) -> Plan:
        """Return the plan."""
        if self._scope.records is None:
            self._select_beginnings()
            theirs = self._select_observations()
        else:
            self._select_records(self._scope.records)
            theirs = {}
        if not self._found and not self._direct:
            raise NotFound(self._nothing(), {"scope": self._scope.kind})
        scope = self._scope
        field = None if scope.ref is None or scope.field is None else (scope.ref, scope.field)
        if field is not None:
            self._plan.names.add(name_mac(self._key, field_name(*field)))
        names = Names(
            self._key,
            refs=self._refs,
            fields=() if field is None else (field,),
            readings=self._readings,
            runs=self._runs,
            quoted=Quoted(self._theirs_alone(theirs), tuple(map(str, self._refs))),
            exists=lambda ref: self._view.entity(ref.digest, self._head) is not None,
        )
        self._plan.quoted = names.quoted
        self._follow(names)
        self._find_digests(names)
        self._say(names)
        self._select_receipts(names)
        self._plan.through = self._head
        self._plan.named = frozenset(self._gone_ids | names.touched)
        self._plan.refs = frozenset(self._refs if scope.ref is None else (*self._refs, scope.ref))
        return self._plan

    def mentions(self, tenant: str, known: Plan) -> Plan | None:
        """Return the plan for a log that only mentions data erased elsewhere, or None."""
        names = Names(self._key, refs=self._refs, quoted=known.quoted)
        names.note_gone([*known.ids, *(ref.id for ref in self._refs)])
        for position, kind, body in self._entries({"observation"}):
            said = list(leaves(form.decode(body)))
            if tenant in said and any(names.text(text) != text for text in said):
                self._found[position] = (kind, body)
        if not self._found:
            return None
        self._plan.quoted = known.quoted
        self._say(names)
        self._select_receipts(names)
        return self._plan

    def _nothing(self) -> str:
        scope = self._scope
        what = {
            "field": f"{scope.ref}#{scope.field}: the log has no observation of it",
            "source": "There is no such source here",
            "agent": f"{scope.agent} has no entries here",
        }.get(scope.kind, f"{scope.ref}: the log has no observation of it")
        return f"{what}. {NO_ERASURE} Search for it, or in `woodrat log`."

    def _entries(self, kinds: Collection[str] | None = None) -> Iterator[tuple[int, str, bytes]]:
        """Yield every entry that has a body; read part by part, since plans are made inside transactions too."""
        few = kinds is not None and "observation" not in kinds
        for start in range(0, self._head + 1, CHUNK_ENTRIES):
            cancellation.check()
            last = self._head if few else min(start + CHUNK_ENTRIES - 1, self._head)
            read: Iterable[Entry | Row] = (
                self._view.entries(start - 1, last, kinds) if few else self._view.rows(start - 1, last)
            )
            for entry in list(read):
                kind, body = entry.kind, entry.body
                if body is not None and kind not in STAYING and (kinds is None or kind in kinds):
                    yield entry.position, kind, body
            if few:  # other kinds than observations are found by themselves
                return
            if self._progress is not None and last < self._head:
                self._progress(last + 1, self._head + 1)

    def _select_beginnings(self) -> None:
        """Find the runs, readings and sources that the scope names."""
        scope = self._scope
        if scope.source is not None:
            self._sources.add(scope.source)
        if scope.kind not in ("source", "agent", "subject"):
            return
        delivered: dict[bytes, set[str]] = {}
        kinds = {"received", "interpretation.started", "run.started", "tag"}
        for position, kind, body in self._entries(kinds):
            said: Any = form.decode(body)
            if kind == "run.started":
                step = step_of(kind, body)
                theirs = scope.agent is not None and said.get("agent") == scope.agent
                about = scope.kind == "subject" and step is not None and step.subject == scope.ref
                if step is not None and (theirs or about):
                    if self._is_of_owner(step.run, said):
                        self._runs.add(step.run)
                    else:
                        self._direct.add(position)
                continue
            if kind == "received":
                digest = ids.digest_of("source", said["source"])
                assert digest is not None, "a stored delivery names its source in full"
                delivered.setdefault(digest, set()).add(said["agent"])
            elif kind == "interpretation.started" and (
                said["agent"] == scope.agent or ids.digest_of("source", said["source"]) == scope.source
            ):
                self._readings.add(said["interpretation"])
            if scope.agent is not None and said["agent"] == scope.agent:
                self._direct.add(position)
        if scope.agent is not None:
            self._sources |= {source for source, agents in delivered.items() if agents == {scope.agent}}
        if self._readings or self._runs or self._sources or scope.agent is not None:
            for position, kind, body in self._entries(BEGUN):
                if kind == "source":
                    gone = source_digest(body) in self._sources
                elif kind in RUN_KINDS:
                    step = step_of(kind, body)
                    gone = step is not None and step.run in self._runs
                    # The agent's statements about runs of others: judgements, and entries from another log.
                    gone = gone or (scope.agent is not None and form.decode(body).get("agent") == scope.agent)
                elif kind.startswith("interpretation."):
                    gone = form.decode(body)["interpretation"] in self._readings
                else:
                    gone = False
                if gone:
                    self._direct.add(position)

    def _is_of_owner(self, run: str, started: Mapping[str, Any]) -> bool:
        """Return True if the start of a run is by its owner: in another log, any agent may have claimed it."""
        entries = entry_index.run_entries(self._view, run, self._view.head().position)
        bodies = [(entry.kind, form.decode(entry.body)) for entry in entries if entry.body is not None]
        told: list[tuple[str, Any]] = [(kind, body) for kind, body in bodies if isinstance(body, dict)]
        return is_part("run.started", started, owner_of(run, told))

    def _select_observations(self) -> dict[str, set[str]]:
        """Find the observations that the scope names; return the texts they state, each with its fields."""
        scope, theirs = self._scope, dict[str, set[str]]()
        for position in self._direct:
            entry = self._view.entry(position)
            assert entry is not None and entry.body is not None, "it was just read"
            self._found[position] = (entry.kind, entry.body)
        if scope.kind == "field":
            assert scope.ref is not None and scope.field is not None
            for position, said in self._view.observations(scope.ref.digest, BEFORE_ALL, self._head):
                if scope.field in said.stated:
                    self._found[position] = ("observation", said.body)
                    self._collect(said, theirs, {scope.field})
            return theirs
        if self._ref is not None:
            theirs.setdefault(self._ref.key, set()).add("key")
            for ref in self._with_relations(self._refs):
                for stored in self._view.observations(ref.digest, BEFORE_ALL, self._head):
                    self._select(stored.position, stored.observation, theirs)
        else:
            for position, said in self._observations_in_scope():
                self._select(position, said, theirs)
        return theirs

    def _select(self, position: int, said: Observation, theirs: dict[str, set[str]]) -> None:
        self._direct.add(position)
        self._found[position] = ("observation", said.body)
        self._collect(said, theirs, said.stated)

    def _with_relations(self, refs: Iterable[Ref]) -> list[Ref]:
        """Return entities, and the relations that name them, at any depth."""
        found = dict.fromkeys(refs)
        waiting = list(found)
        while waiting:
            for edge in entry_index.relations(self._view, waiting.pop().digest, None, self._head):
                if edge not in found:
                    found[edge] = None
                    waiting.append(edge)
        return list(found)

    def _observations_in_scope(self) -> Iterator[tuple[int, Observation]]:
        """Yield the observations of an agent, or from a source."""
        scope = self._scope
        marks = {form.spell_text(scope.agent)} if scope.agent is not None else set[bytes]()
        marks |= {ids.name("source", source).encode() for source in (scope.source,) if source is not None}
        if scope.kind == "source":
            marks |= {reading.encode() for reading in self._readings}
        finder = Finder(marks)
        for position, _, body in self._entries({"observation"}):
            if not finder.finds(body):
                continue
            said = observation.stored(body)
            source = said.optional.get("source")
            if (
                (scope.agent is not None and said.agent == scope.agent)
                or (isinstance(source, str) and scope.source == ids.digest_of("source", source))
                or (scope.kind == "source" and said.optional.get("interpretation") in self._readings)
            ):
                yield position, said

    def _select_records(self, known: Erasure) -> None:
        """Find the records that another ledger erased, with its replacements."""
        macs = frozenset(known.macs)
        for position, kind, body in self._entries():
            if (mac := record_mac(self._key, kind, body)) in macs:
                self._direct.add(position)
                self._found[position] = (kind, body)
                if kind == "observation" and mac in known.links:
                    self._links[observation.stored(body).digest] = known.links[mac]

    @staticmethod
    def _collect(said: Observation, theirs: dict[str, set[str]], names: Collection[str]) -> None:
        is_relation = relation.endpoints(said.entity) is not None
        for part in (said.fields, said.remove):
            for name, value in part.items():
                if name in names and not (is_relation and name in ("from", "to")):
                    for text in texts(value):  # type: ignore[arg-type]
                        theirs.setdefault(text, set()).add(name)

    def _theirs_alone(self, theirs: Mapping[str, set[str]]) -> set[str]:
        """Return the texts that no surviving observation and no schema states; note the others."""
        plan, scope = self._plan, self._scope
        alone: dict[str, set[str]] = {}
        for text, named in theirs.items():
            if is_long_enough(text):
                alone[text] = named
            else:
                for name in named:
                    plan.short[name] = min(plan.short.get(name, len(text)), len(text))
        if scope.kind == "field" and scope.ref is not None:
            held = [text for text in theirs if len(text) > 1 and text in scope.ref.key]
            if held:
                problem = f"the entity's key holds a value of {scope.field}"
                remedy = "Erase the whole entity."
                raise Refused([Fault("field", problem, remedy)], NO_ERASURE)
        finder = Finder({spelling for text in alone for spelling in (text.encode(), form.spell_text(text)[1:-1])})
        for start in range(0, self._head + 1, CHUNK_ENTRIES):
            if not alone:
                break
            cancellation.check()
            last = min(start + CHUNK_ENTRIES - 1, self._head)
            for row in list(self._view.rows(start - 1, last)):
                body = row.body
                if body is None or row.kind not in STATED or row.position in self._direct or not finder.finds(body):
                    continue
                if row.kind == "schema":
                    self._share(alone, [text for text in alone if text.encode() in body], row.position)
                    continue
                said: Any = form.decode(body)
                if row.position in self._found and scope.field is not None:
                    for part in ("fields", "remove"):
                        said.get(part, {}).pop(scope.field, None)
                self._share(alone, self._stated_texts(said, theirs), row.position)
            if self._progress is not None and last < self._head:
                self._progress(last + 1, self._head + 1)
        return {text for text in alone if not self._is_elsewhere(text)}

    def _stated_texts(self, said: Any, theirs: Mapping[str, set[str]]) -> Iterator[str]:
        """Yield the texts that an observation states; the key of an erased entity only if it may be a name used
        elsewhere.

        A field of another entity that holds the key refers to the erased one, and quotes it.
        """
        key = None if self._ref is None else self._ref.key
        for text in leaves(said):
            if text != key or self._ref is None or _names_another(said, self._ref, theirs[text]):
                yield text

    def _share(self, alone: dict[str, set[str]], stated: Iterable[str], position: int) -> None:
        """Note that these are not theirs alone."""
        for text in stated:
            for name in alone.pop(text, ()):
                found = self._plan.shared.setdefault(name, [])
                if len(found) < SHARED_MAX and position not in found:
                    found.append(position)

    def _is_elsewhere(self, text: str) -> bool:
        """Return True if a text is the reference of a surviving entity."""
        try:
            ref = ids.parse_ref(text)
        except Refused:
            return False
        return ref != self._scope.ref and self._view.entity(ref.digest, self._head) is not None

    def _follow(self, names: Names) -> None:
        """Find every entry that names or quotes possibly erased data, until no new one is found."""
        gone = {ids.id_of("source", digest) for digest in self._sources} | self._readings | self._runs
        gone |= {ref.id for ref in self._refs}
        for kind, body in self._found.values():
            gone |= _ids_of(kind, body)
        looked_for = gone
        quotes = True  # search texts once, and names until no new ones appear
        while looked_for:
            fresh: set[str] = set()
            names_them = names_any(looked_for)
            for position, kind, body in self._entries():
                if position in self._found:
                    continue
                if kind == "tag":
                    tagged: Any = form.decode(body)
                    if not names.quoted.is_in(str(tagged.get("name"))):
                        continue
                elif kind != "source" and names_them(body):
                    pass
                elif not quotes or not names.quoted.may_be_in(kind, body):
                    continue
                self._found[position] = (kind, body)
                fresh |= _ids_of(kind, body)
            looked_for, quotes = fresh - gone, False
            gone |= looked_for
        self._gone_ids = gone

    def _find_digests(self, names: Names) -> None:
        """Find entries with digests of unsearchable data, in runs that lost something."""
        for kind, body in self._found.values():
            if kind in RUN_KINDS and (step := step_of(kind, body)) is not None:
                names.touched.add(step.run)
        names.touched -= names.runs
        if not names.touched:
            return
        for run in sorted(names.touched):
            for entry in entry_index.run_entries(self._view, run, self._head):
                if entry.body is None or entry.position in self._found:
                    continue
                if rewrite.digests_unseen(entry.kind, entry.body):
                    self._found[entry.position] = (entry.kind, entry.body)

    def _say(self, names: Names) -> None:
        """Rewrite the surviving parts of the found entries, and record the erased ones."""
        ordered = sorted(self._found.items())
        again: dict[int, bytes | None] = {}
        for position, (kind, body) in ordered:
            if kind == "source":
                new = None if position in self._direct else self._lawful(kind, rewrite.source_again(body, names))
                again[position] = new
                if new != body:
                    names.note_source(source_digest(body), None if new is None else source_digest(new))
        again.update(self._observations(names))
        for position, (kind, body) in ordered:
            if kind not in ("source", "observation"):
                speak = rewrite.AGAIN.get(kind)
                direct = position in self._direct or speak is None
                again[position] = None if direct or speak is None else self._lawful(kind, speak(kind, body, names))
        for position, (kind, body) in ordered:
            if again[position] != body:
                self._note_gone(position, kind, body, names)
        gone = frozenset(self._plan.positions)
        spoken = dict.fromkeys((self._found[position][0], again[position]) for position in self._plan.positions)
        for kind, new in spoken:
            if new is not None:
                self._note_again(kind, new, gone)
        # Entries that stay unchanged may contain one of the texts inside a longer word.
        kept = [self._found[position] for position in self._found if position not in gone]
        self._plan.sought = names.quoted.spellings([*kept, *((kind, new) for kind, new in spoken if new is not None)])

    def _observations(self, names: Names) -> Iterator[tuple[int, bytes | None]]:
        """Yield the replacements of the found observations, named ones before those that name them."""
        waiting = {
            said.digest: (position, said)
            for position, (kind, body) in sorted(self._found.items())
            if kind == "observation"
            for said in (observation.stored(body),)
        }
        while waiting:
            stack = [next(iter(waiting))]
            while stack:
                digest = stack[-1]
                if digest not in waiting:
                    stack.pop()
                    continue
                position, said = waiting[digest]
                named = [name for name in (*said.replaces, *said.saw) if name in waiting]
                if named:  # names are digests, so this terminates
                    stack += named
                    continue
                stack.pop()
                del waiting[digest]
                body = None
                if position not in self._direct:
                    body = self._lawful("observation", rewrite.observation_again(said, names))
                if body != said.body:
                    if digest in self._links:
                        names.note_known(said, self._links[digest])
                    else:
                        names.note_observation(said, None if body is None else observation.stored(body))
                    self._note_names(said, names)
                yield position, body

    def _lawful(self, kind: str, body: bytes | None) -> bytes | None:
        """Return a body unless it was erased before."""
        erased = body is not None and bool(self._stopped) and record_mac(self._key, kind, body) in self._stopped
        return None if erased else body

    def _note_names(self, said: Observation, names: Names) -> None:
        mac = digest_mac(self._key, said.digest)
        new, chain = names.observations[said.digest], names.links[said.digest]
        self._plan.links[mac] = (
            ids.name("observation", new) if new is not None else tuple(ids.name("observation", link) for link in chain)
        )
        gone = {said.id, said.name}
        ref = names.ref(said.entity)
        if ref != said.entity:
            gone |= {str(said.entity), said.entity.id}
        if ref is not None:
            self._plan.touched.add(ref)
        self._plan.names |= {name_mac(self._key, name) for name in gone}

    def _note_gone(self, position: int, kind: str, body: bytes, names: Names) -> None:
        plan = self._plan
        plan.positions.append(position)
        plan.kinds[kind] += 1
        plan.macs.add(record_mac(self._key, kind, body))
        gone: set[str] = set()
        if kind == "source":
            digest = source_digest(body)
            gone = {ids.id_of("source", digest), ids.name("source", digest)}
        elif kind == "interpretation.started":
            gone = {form.decode(body)["interpretation"]} & self._readings
        elif kind in RUN_KINDS:
            gone = {form.decode(body)["run"]} & self._runs
        plan.names |= {name_mac(self._key, name) for name in gone}
        if position not in self._direct and names.quoted.may_be_in(kind, body):
            plan.quoting.append(position)

    def _note_again(self, kind: str, body: bytes, gone: Collection[int]) -> None:
        """Plan to write a body, unless the log holds and keeps it already."""
        meaning: Meaning = observation.stored(body) if kind == "observation" else step_of(kind, body)
        if isinstance(meaning, Observation):
            held = self._view.observation(meaning.digest, self._head)
            if held is not None and held.position not in gone:
                return
        elif kind == "source" and entry_index.source_position(self._view, source_digest(body)) is not None:
            return
        self._plan.items.append((kind, body, meaning))
        self._plan.resaid[kind] += 1

    def _select_receipts(self, names: Names) -> None:
        """Find the idempotency keys whose reports or requests contain erased data, and count the unsearchable ones."""
        plan = self._plan
        plan.ids = {name for kind, body in self._gone() for name in _ids_of(kind, body)}
        positions = set(plan.positions)
        search_receipts(self._view, plan, self._scope)
        plan.unsearched = sum(
            unsearched(body) for position, _, body in self._entries(RUN_KINDS) if position not in positions
        )

    def _gone(self) -> Iterator[tuple[str, bytes]]:
        return (self._found[position] for position in self._plan.positions)


def _notes_about(view: View, subject: Ref, through: int) -> Iterator[Ref]:
    """Yield all notes that were ever about an entity: they are erased with it."""
    for edge in entry_index.relations(view, subject.digest, ABOUT, through):
        note = note_of(edge, subject)
        if note is not None:
            yield note


def _ids_of(kind: str, body: bytes) -> set[str]:
    """Return the ids by which other entries name the contents of an entry."""
    if kind == "observation":
        said = observation.stored(body)
        return {said.id, said.entity.id}
    return {ids.id_of("source", source_digest(body))} if kind == "source" else set()


def _names_another(said: Any, ref: Ref, fields: Collection[str]) -> bool:
    """Return True if an observation uses the key of an entity for something else: its entity, its agent, a namesake."""
    entity = said["entity"]
    if ref.key in (entity["key"], said["agent"]):
        return True
    if entity["type"] != ref.type:
        return False
    return any(said.get(part, {}).get(name) == ref.key for part in ("fields", "remove") for name in fields)
