"""Remote tending: the verbs that care for a ledger as a whole, at a ledger behind an address.

The server signs with its own keys and erases in its own files. How far it is with long work it does not say: `progress`
and `jobs` are taken and pass over it. Log export, import and sync go over the log's own
routes; a backup is made beside the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

from woodrat.api import codec
from woodrat.api.remote_past import RemotePast, check_embedder, ref_text
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import report as reports

if TYPE_CHECKING:
    from woodrat.erasure.certificate import Certificate
    from woodrat.erasure.verbs.byte_scan import Finished
    from woodrat.exchange.verbs.export import ExportedLog
    from woodrat.exchange.verbs.importer import Imported
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.rebuild import Progress, Rebuilt
    from woodrat.ledger.report import Report
    from woodrat.log.checkpoint import Checkpoint
    from woodrat.proofs.capsule import Capsule
    from woodrat.proofs.proof import Growth, Proof, Signed
    from woodrat.recall.index import Reindexed
    from woodrat.verify.report import OrderProof, Verified


class RemoteTended(RemotePast):
    """One tenant's ledger behind an address, with the verbs that speak of all of it."""

    def _do(self, verb: str, path: str, **given: Any) -> Any:
        """Return what a verb of the library returns that changes something; it is sent once."""
        answer = self._transport.post(path, given, accept=codec.MEDIA_TYPE)
        return codec.read(codec.returned(verb), answer)

    @cached_property
    def _caller(self) -> dict[str, str]:
        found: dict[str, str] = self._transport.get("/v1/caller")
        return found

    @property
    def tenant(self) -> str:
        """The tenant, as the key says."""
        return self._caller["tenant"]

    @property
    def agent(self) -> str:
        """The agent, as the key says."""
        return self._caller["agent"]

    def checkpoint(self, *, new_epoch: str | None = None) -> Signed:
        """Return a signed checkpoint of the log as it is now, as `Ledger.checkpoint` does."""
        found: Signed = self._do("checkpoint", "/v1/checkpoints", new_epoch=new_epoch)
        return found

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints this log must go on from; none without keys, or before the first was signed."""
        found: tuple[Checkpoint, ...] = self._read("checkpoints", "/v1/checkpoints")
        return found

    def prove(self, what: str | int) -> Proof:
        """Return the proof that an observation, or the entry at a position, is in the log under a checkpoint."""
        found: Proof = self._read("prove", f"/v1/proofs/{what}")
        return found

    def prove_growth(self, old: str | bytes, new: str | bytes | None = None) -> Growth:
        """Return the proof that one checkpoint of this log goes on from an older one; `new` left out is one of now."""
        body = {"old": _text(old), "new": None if new is None else _text(new)}
        found: Growth = self._ask("prove_growth", "/v1/proofs/growth", body)
        return found

    def prove_order(self, *, shuffles: int = 100, progress: object = None) -> OrderProof:
        """Have the server feed everything in other orders to fresh ledgers, and compare the states."""
        found: OrderProof = self._read("prove_order", "/v1/prove-order", shuffles=shuffles)
        return found

    def capsule(self, what: str) -> Capsule:
        """Return one document that proves a run, a decision (`RUN#stage`), an observation or `type/key#field`."""
        found: Capsule = self._read("capsule", f"/v1/capsules/{what}")
        return found

    def verify(
        self,
        *,
        deep: bool = False,
        checkpoints: Iterable[str] = (),
        key: str | None = None,
        jobs: object = None,
        embedder: object = None,
        progress: object = None,
    ) -> Verified:
        """Have everything worked out again from the log alone, as `Ledger.verify` does; checkpoints are notes."""
        check_embedder(embedder)
        asked = {"deep": deep or None, "checkpoints": list(checkpoints) or None, "key": key}
        found: Verified = self._read("verify", "/v1/verify", **asked)
        return found

    def rebuild(self, progress: object = None) -> Rebuilt:
        """Have everything derived made again from the log alone, and be told what differed."""
        found: Rebuilt = self._do("rebuild", "/v1/rebuild")
        return found

    def reindex(self, embedder: object = None, *, progress: object = None) -> Reindexed:
        """Have all runs embedded again for `recall`, by the server's embedder."""
        check_embedder(embedder)
        found: Reindexed = self._do("reindex", "/v1/reindex")
        return found

    def export_log(
        self,
        out: str | PathLike[str] | BinaryIO,
        *,
        after: int = -1,
        through: Moment = "now",
        force: bool = False,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> ExportedLog:
        """Write the log as JSON lines, as `Ledger.export_log` does; a connection that breaks is made anew."""
        from woodrat.exchange.relay import remote_peer

        how: Any = {"after": after, "through": through, "force": force, "resume": resume, "progress": progress}
        return remote_peer.export(self._transport, out, **how)

    def import_log(self, source: str | PathLike[str] | BinaryIO, *, progress: Progress | None = None) -> Imported:
        """Let the server take in an exported log; importing it again changes nothing. The key must carry `manage`."""
        from woodrat.exchange.relay import remote_peer

        return remote_peer.import_file(self._transport, source, progress)

    def admit(self, bodies: Iterable[tuple[str, bytes]]) -> Report:
        """Take in observations and schemas another log holds, as (kind, canonical body)."""
        told = [{"kind": kind, "body": form.parse(body)} for kind, body in bodies]
        # What is known changes nothing, so it may be sent again.
        answer = self._transport.post("/v1/admit", {"bodies": told}, key=self._transport.fresh_key())
        return reports.from_json(answer)

    def erase(
        self,
        what: str | Ref | None = None,
        *,
        reason: str,
        agent: str | None = None,
        subject: str | Ref | None = None,
        dry_run: bool = False,
        progress: object = None,
    ) -> Certificate:
        """Forget something for ever in every file of the server, as `Ledger.erase` does; by the server's keys."""
        asked = {"what": what, "subject": subject}
        named = {name: None if ref is None else ref_text(ref, name) for name, ref in asked.items()}
        found: Certificate = self._do(
            "erase", "/v1/erase", **named, reason=reason, agent=agent, dry_run=dry_run or None
        )
        return found

    def erase_again(self) -> tuple[Certificate, ...]:
        """Erase what was erased in another copy of this ledger, by what the server's keys folder remembers."""
        found: tuple[Certificate, ...] = self._do("erase_again", "/v1/erase/again")
        return found

    def finish_erasure(self) -> Finished:
        """Take out of every file of the server what erasures left there, and search them; return how far it came."""
        found: Finished = self._do("finish_erasure", "/v1/erase/finish")
        return found


def _text(note: object) -> str:
    if isinstance(note, str | bytes):
        return note.decode("utf-8", "replace") if isinstance(note, bytes) else note
    raise Refused([Fault("old", f"got {shown(note)}", "Send a checkpoint as its note.")], "Nothing was proved.")
