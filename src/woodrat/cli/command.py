"""Calling: one command with its settings resolved, the ledger it opens, and the answer it prints."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from woodrat.cli.verbs.declaration import FILE, arguments_of, destination, label
from woodrat.errors import Corrupt, Fault, NotFound, Refused, Unavailable, WoodratError, shown
from woodrat.records import dataclass
from woodrat.server import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.api.remote import RemoteLedger
    from woodrat.api.verb import Parameter
    from woodrat.cli.tables import Paper
    from woodrat.cli.verbs.declaration import Argument
    from woodrat.engines.engine import Engine
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import Signing
    from woodrat.state.match import Match

KEY_VARIABLE = "WOODRAT_TOKEN"
"""The environment variable with the key of a server: on the command line every list of processes would show it."""
MEMORY = ":memory:"
NOT_OPENED = "Nothing was opened."
NO_READ = "Nothing was read."
NOT_WRITTEN = "Nothing was written."
CREATE, UPDATE, READ = "create", "update", "read"
"""How a verb opens the database: creating it if necessary; for writing if it exists; or read-only."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a verb, for programs and for people."""

    json: Any
    """The whole answer, as plain JSON."""
    text: Callable[[Paper], None]
    """Prints the answer for people."""
    lines: Iterable[Any] | None = None
    """The parts of the answer, each a line of `-o jsonl`; default: the answer is one line."""
    code: int = wire.DONE
    """The exit code."""
    streams: bool = False
    """Whether `lines` is the answer itself, too long to hold: piped output is JSON lines then."""
    follows: bool = False
    """Whether the answer is endless: every line is printed at once, and Ctrl-C is the normal end."""
    note: str | None = None
    """Notes for people, printed on standard error if only `lines` are printed."""
    plain: bool = False
    """True if the answer is text for people or a shell, whatever output format is requested."""
    columns: Sequence[str] | None = None
    """The columns of `-o csv`, if known before the rows; default: every column of the rows."""


class Invocation:
    """One command: its arguments, and the ledger they name."""

    def __init__(self, arguments: Any) -> None:
        self.given = arguments
        self.db: str | None = arguments.db if arguments.db is not None else os.environ.get("WOODRAT_DB") or None
        self.tenant: str = _setting(arguments.tenant, "WOODRAT_TENANT", "default")
        self.agent: str = _setting(arguments.as_agent, "WOODRAT_AGENT", "cli")
        self.keys: str | None = arguments.signing_keys
        self._engine: Engine | None = None
        self._served: RemoteLedger | None = None
        self._signing: Signing | None = None
        self._read_at: Past | None = None
        self.times: dict[str, str] = {}
        """Times that words such as `yesterday` resolved to, by parameter."""
        self.matches: list[Match] = []
        """How entities were found that were not named by key."""

    def __enter__(self) -> Invocation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close opened ledgers; a second call does nothing."""
        try:
            if self._signing is not None:
                self._signing.close()
        finally:
            if self._engine is not None:
                self._engine.close()
            if self._served is not None:
                self._served.close()

    @property
    def is_served(self) -> bool:
        """Whether the ledger is behind an address."""
        return self.db is not None and self.db.startswith(("http://", "https://"))

    def _remote(self) -> RemoteLedger:
        """Return the ledger behind the address, which replaces a local one."""
        if self._served is None:
            assert self.db is not None
            self._served = _open_served(self.db, self.given.tenant, self.given.as_agent)
        return self._served

    @property
    def path(self) -> str | None:
        """The file of the ledger; None if it is not in a file."""
        from woodrat.engines.open import path_of

        if self.is_served:
            problem = "it needs the database file, and --db is the address of a server"
            remedy = "Run it on the machine with the database, with its path as --db."
            raise Refused([Fault(f"woodrat {self.given.command.words}", problem, remedy)], "Nothing was done.")
        return path_of(self.db)

    def engine(self, mode: str) -> Engine:
        """Open the database once; `NotFound` if it does not exist and this verb does not create it."""
        from woodrat.engines.open import engine_for

        if self._engine is None:
            path = self.path
            db = self.db
            if path is not None and not _exists(path):
                if getattr(self.given, "dry_run", False) or getattr(self.given, "trial", False):
                    db = MEMORY
                elif mode != CREATE:
                    raise NotFound(
                        f"There is no database at {path}. Nothing was created. "
                        "Name another file with --db or WOODRAT_DB, or create this one with `woodrat store`.",
                        {"db": path},
                    )
            if mode == READ:
                self._check_there(path)
            self._engine = engine_for(db, readonly=mode == READ)
        return self._engine

    def _check_there(self, path: str | None) -> None:
        """Refuse to read a file of 0 bytes where the keys folder remembers a log."""
        from woodrat.proofs.verbs.folder import keys_for

        if path is not None and _exists(path) and not os.path.getsize(path):
            from woodrat.proofs.verbs import locations

            locations.check_there(keys_for(self.db, self.keys), path, self.tenant)

    def ledger(self, mode: str, *, put_back: bool = False) -> Ledger:
        """Return the ledger of this call's tenant and agent; for a server, the key states them.

        A restored older copy that holds erased data is opened only with `put_back`.
        """
        if self.is_served:
            return self._remote()
        from woodrat.api.ledger import Ledger
        from woodrat.api.maintenance import check_put_back, signing_for
        from woodrat.clock import SystemClock
        from woodrat.ledger.own_policy import registry
        from woodrat.proofs.verbs.folder import keys_for

        engine, clock = self.engine(mode), SystemClock(zone())
        folder = keys_for(self.db, self.keys)
        if folder is not None and self._signing is None:
            self._signing = signing_for(engine, self.tenant, folder, clock, every=None, tell=say)
        if not put_back:
            check_put_back(engine, self.tenant, self.keys)
        return Ledger(
            engine,
            tenant=self.tenant,
            agent=self.agent,
            clock=clock,
            policies=registry(()),
            signing=self._signing,
            keys=self.keys,
            strict=os.environ.get("WOODRAT_STRICT") or False,
            redact=os.environ.get("WOODRAT_REDACT"),
        )

    def past(self) -> Past:
        """Return the ledger as of the requested moment, pinned to a position; imports no code for writing."""
        if self.is_served:
            return self._stated(self._at(self._remote()))
        from woodrat.proofs.verbs.folder import keys_folder, keys_for

        now = self._now()
        if os.path.isdir(os.path.join(keys_folder(self.keys), "erased")):
            from woodrat.api.maintenance import check_put_back

            check_put_back(self.engine(READ), self.tenant, self.keys)
        folder = keys_for(self.db, self.keys)
        if folder is not None:
            from woodrat.proofs.verbs.keys import Keys
            from woodrat.proofs.verbs.signer import look

            try:
                found = look(self.engine(READ), now.tenant, Keys.open(folder))
            except Corrupt as error:
                say(str(error))
            else:
                if found is not None:
                    say(f"{found} This is its current state.")
        return self._stated(self._at(now))

    def _at(self, ledger: Past) -> Past:
        """Return a ledger at the requested moment."""
        moment = "now" if self.given.as_of is None else str(self.given.as_of)
        return at_moment(ledger, moment, "--as-of", valid_at=self.given.valid_at)

    def _now(self) -> Past:
        """Return the current ledger, read-only."""
        from woodrat.api.past import Past
        from woodrat.canon import ids
        from woodrat.clock import SystemClock
        from woodrat.context import Context
        from woodrat.ledger.erasures import LogErasures
        from woodrat.merge import BUILTIN

        faults = ids.tenant_faults(self.tenant) + ids.agent_faults(self.agent, "agent")
        if faults:
            raise Refused(faults, outcome=NO_READ)
        return Past(
            Context(
                self.engine(READ),
                ids.TenantId(self.tenant),
                BUILTIN,
                SystemClock(zone()),
                self.agent,
                erasures=LogErasures(self._keys),
                keys=self.keys,
            )
        )

    def _stated(self, past: Past) -> Past:
        """Remember the view, so that the answer can state the position of the requested moment."""
        self._read_at = past
        return past

    @property
    def moment(self) -> str | None:
        """The resolved moment and times, in words; None if none was requested."""
        past, given, stated = self._read_at, self.given, []
        if past is not None and (given.as_of is not None or given.valid_at is not None):
            stated.append("as of now" if given.as_of is None else f"as of {self.recorded(past, past.position)}")
            if given.valid_at is not None:
                stated.append(f"valid at {_shown_time(given.valid_at)}")
        spoken = ((name, found) for name, found in self.times.items() if name != "valid_at")
        stated += [f"{name.replace('_', ' ')} {_shown_time(found)}" for name, found in spoken]
        return ", ".join(stated) or None

    @property
    def is_spoken(self) -> bool:
        """Whether the requested moment is not a position, so that the output must state it."""
        return not (self.given.as_of or "0").isdigit() or bool(self.times)

    def noted(self, answer: Any) -> Any:
        """Return the result of a verb, and note how its entities were matched."""
        found = None if hasattr(answer, "dry_run") else getattr(answer, "matched", None)  # the report states it itself
        self.matches += found if isinstance(found, tuple) else () if found is None else (found,)
        return answer

    @property
    def stated(self) -> dict[str, Any]:
        """Members of a JSON answer that state how the question was understood."""
        matches = [match.to_json() for match in self.matches]
        matched = {} if not matches else {"matched": matches[0] if len(matches) == 1 else matches}
        return {**matched, **({"times": self.times} if self.times else {})}

    def recorded(self, past: Past, position: int) -> str:
        """Return a position in words, with the time it was recorded at where that is known here."""
        if self.is_served or position < 0:
            return f"position {position}"
        from woodrat.cli.tables import time

        (entry,) = past.log.entries(after=position - 1, limit=1)
        return f"position {position}, recorded {time(entry.recorded_at)}"

    def prepare(self) -> None:
        """Convert typed values for the library: times in words, and shortened ids."""
        self._read_times()
        for argument in reversed(arguments_of(self.given.command)):  # the moment first: others are ids as of it
            if "ids" in argument[1]:
                self._complete_ids(argument)
        if self._engine is not None:
            # opened for reading; the command opens it for its own work
            self._engine.close()
            self._engine = None

    def _read_times(self) -> None:
        """Turn times in words into timestamps, and refuse invalid times under the option's own name."""
        given = self.given
        texts = {name: getattr(given, name, None) for name in ("valid_at", "since", "until", *_WRITTEN)}
        if not any(texts.values()):
            return
        from woodrat.canon import moment, moment_words
        from woodrat.clock import SystemClock

        faults = []
        for name, text in texts.items():
            if text is None:
                continue
            spoken = moment_words.resolve(text, SystemClock().now(), zone())
            if spoken is not None:
                self.times[name] = spoken
            if name in _WRITTEN:
                if spoken is not None:  # else it is sent as typed, because the idempotency key covers the typed text
                    setattr(given, name, spoken)
                continue
            fault = None if spoken is not None else moment.fault(text, f"--{name.replace('_', '-')}")
            if fault is not None:
                faults.append(fault)
            else:
                setattr(given, name, spoken or moment.parse(text))
        if faults:
            raise Refused(faults, NO_READ)

    def _complete_ids(self, argument: Argument) -> None:
        """Replace ids cut short by the ids they are unique for; before a write, refuse them."""
        name, kinds = destination(argument), argument[1]["ids"]
        typed = getattr(self.given, name, None)
        texts: list[Any] = typed if isinstance(typed, list) else [typed]
        if not any(isinstance(text, str) and (text == "last" or text[3:4] == "_") for text in texts):
            return
        from woodrat.ledger import short_ids

        if any(isinstance(text, str) and short_ids.is_short(text, kinds) for text in texts):
            moment = argument[1].get("metavar") == "M"
            whole = [self._completed(text, kinds, label(argument), moment=moment) for text in texts]
            setattr(self.given, name, whole if isinstance(typed, list) else whole[0])

    def _completed(self, text: str, kinds: Collection[str], where: str, *, moment: bool) -> str:
        """Return the whole id; an id in a moment is looked up in the whole log, others as of the moment."""
        from woodrat.ledger import short_ids

        if not short_ids.is_short(text, kinds):
            return text

        def find(prefix: str) -> Iterable[str]:
            try:
                ledger = self._remote() if self.is_served else self._now()
                return (ledger if moment or self.given.as_of is None else self._at(ledger)).ids(prefix)
            except WoodratError:
                return ()  # the command itself reports the faults of the ledger

        writes = self.given.command.writes and not (text == short_ids.LAST and short_ids.LAST in kinds)
        return short_ids.complete(text, find, where, writes=writes, outcome=NOT_WRITTEN if writes else NO_READ)

    def arguments(self, made: Collection[str] = ()) -> dict[str, Any]:
        """Return the typed values for the parameters of the command's verb, as the library takes them.

        It omits missing values, which have defaults in the library, values typed in another form, and values that the
        command has `made` itself.
        """
        command = self.given.command
        labels = {destination(argument): label(argument) for argument in command.arguments}
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        for parameter in command.verb.parameters:
            name = parameter.name
            typed = getattr(self.given, name, None)
            if typed is None or typed is False or typed == []:
                continue
            if name in made or isinstance(command.forms.get(name), tuple):
                continue
            try:
                values[name] = self._value(parameter, typed, labels[name])
            except Refused as refusal:
                faults += refusal.faults
        if faults:
            raise Refused(faults, command.verb.outcome)
        return values

    def _value(self, parameter: Parameter, typed: Any, option: str) -> Any:
        """Return the typed value of a parameter; text and numbers are taken unchanged."""
        kind = parameter.kind
        if kind.schema.get("type") in ("string", "integer", "number", "boolean") and kind.metavar != FILE:
            return typed
        from woodrat.cli import inputs

        return inputs.value_of(parameter, typed, option, self.given.command.verb.outcome)

    def ask(self, target: Past, **made: Any) -> Any:
        """Call the command's verb on a ledger, or a moment of one, with the typed values; return its result.

        `made` are arguments that the command makes itself. Faults name the typed option.
        """
        verb = self.given.command.verb
        typed = self.arguments(made)
        try:
            return self.noted(verb.called_on(target)(**typed, **made))
        except Refused as refusal:
            raise self._as_typed(refusal, typed) from None

    def _as_typed(self, refusal: Refused, typed: Collection[str]) -> Refused:
        """Return an error whose faults name options, such as `--limit`, instead of parameters."""
        command = self.given.command
        labels = {destination(argument): label(argument) for argument in command.arguments}
        names: dict[str, str] = {}
        for parameter in command.verb.parameters:
            if parameter.name in typed:
                names[parameter.name] = names[parameter.wire] = labels[parameter.name]
        return renamed(refusal, names)

    def caught_up(self) -> Past:
        """Return the ledger at the requested moment; the present is opened for writing, so that indexes can catch up.

        A file that is not writable can still be read.
        """
        if self.given.as_of is None and self.given.valid_at is None:
            try:
                return self.ledger(UPDATE)
            except Unavailable:
                pass
        return self.past()

    def _keys(self) -> Keys:
        from woodrat.proofs.verbs.keys import Keys

        return Keys.at(self.keys)


def renamed(refusal: Refused, names: Mapping[str, str]) -> Refused:
    """Return an error with renamed parts: `where/0` becomes `--where/0`."""
    faults = []
    for fault in refusal.faults:
        name, slash, rest = fault.path.partition("/")
        faults.append(Fault(names.get(name, name) + slash + rest, fault.problem, fault.remedy))
    return Refused(faults, str(refusal).rpartition("\n")[2])


_WRITTEN: Final = ("observed_at", "valid_from")
"""Times that are written down."""


def zone() -> str | None:
    """Return the time zone of typed days; None: UTC."""
    return os.environ.get("WOODRAT_ZONE") or None


def at_moment(ledger: Past, moment: str, typed_as: str, *, valid_at: str | None = None) -> Past:
    """Return a ledger as of a typed moment; faults name the option."""
    try:
        return ledger.at(moment, valid_at=valid_at)
    except Refused as refusal:
        raise renamed(refusal, {"moment": typed_as}) from None


def _shown_time(text: str) -> str:
    from woodrat.cli.tables import time

    return time(text)


def say(text: str) -> None:
    """Print a warning about the ledger on standard error; the command continues."""
    import sys

    from woodrat.cli.tables import clean

    with suppress(OSError):
        sys.stderr.write(f"WARNING: {clean(text)}\n")
        sys.stderr.flush()


def _open_served(db: str, tenant: str | None, agent: str | None) -> RemoteLedger:
    """Return the ledger of a server. The key determines tenant and agent; others are refused."""
    from woodrat.api.remote import open_remote
    from woodrat.state.redaction import hidden

    ledger = open_remote(db, os.environ.get(KEY_VARIABLE) or None, hidden(os.environ.get("WOODRAT_REDACT")), zone())
    faults = [
        Fault(option, f"got {shown(stated)}, but the key is for {shown(getattr(ledger, name))}", "Leave it out.")
        for option, name, stated in (("--tenant", "tenant", tenant), ("--as", "agent", agent))
        if stated is not None and stated != getattr(ledger, name)
    ]
    if faults:
        raise Refused(faults, NOT_OPENED)
    return ledger


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # too long a name, say
        reason = getattr(error, "strerror", None) or error
        raise Refused([Fault("db", f"{shown(path)}: {reason}", "Name another file.")], NOT_OPENED) from error
    return True


def _setting(given: str | None, variable: str, otherwise: str) -> str:
    return given if given is not None else os.environ.get(variable) or otherwise
