"""Proof: the commands that check the ledger, and prove it to others."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import Verb, argument, whole

VERBS: tuple[Verb, ...] = (
    Verb(
        "fingerprint",
        "maintenance:fingerprint",
        "Print one digest of the whole state.",
        ("woodrat fingerprint", "woodrat fingerprint --as-of @release-3"),
        (argument("--provenance", action="store_true", help="include the observations behind the values"),),
        reads=True,
        more="The same observations give the same fingerprint, in whatever order they arrived.",
    ),
    Verb(
        "prove-order",
        "maintenance:prove_order",
        "Check that order of arrival does not matter.",
        ("woodrat prove-order --shuffles 100",),
        (argument("--shuffles", type=whole, default=100, metavar="N", help="how many orders to try (default: 100)"),),
        more="Feeds everything to fresh ledgers in other orders and compares them. Exits with 1 if any differs.",
    ),
    Verb(
        "verify",
        "verify:verify",
        "Check the log and everything derived from it.",
        ("woodrat verify --deep", "woodrat verify --checkpoint held-elsewhere.note"),
        (
            argument("--deep", action="store_true", help="also check the search index, other indexes and vectors"),
            argument(
                "--jobs", type=whole, metavar="N", help="how many processes share the work (default: by log size)"
            ),
            argument("--checkpoint", action="append", metavar="F", help="checkpoint kept elsewhere; repeatable"),
            argument("--key", metavar="F", help="verifier key that must have signed it, such as signer.pub"),
            argument("--embedder", metavar="E", help="also check the vectors of this embedder, with --deep"),
        ),
        rows=False,
        more="Exits with 1 if derived data is out of date, and with 5 if the log is damaged.",
    ),
    Verb(
        "rebuild",
        "maintenance:rebuild",
        "Rebuild everything derived from the log, and compare.",
        ("woodrat rebuild",),
        more="Exits with 1 if anything had to be repaired.",
    ),
    Verb(
        "checkpoint",
        "proofs:checkpoint",
        "Sign the length and the root of the log.",
        ("woodrat checkpoint", "woodrat checkpoint --new-epoch 'restored from the backup of Monday'"),
        (
            argument("--new-epoch", metavar="REASON", help="accept a history that contradicts the last checkpoint"),
            argument("--out", metavar="F", help="also write the signed note to this file"),
        ),
        more="A log that is shorter than the last one signed is refused.",
    ),
    Verb(
        "prove",
        "proofs:prove",
        "Prove that an observation is in the log.",
        ("woodrat prove obs_… --out proof.json", "woodrat prove --from monday.note --out consistency.json"),
        (
            argument(
                "what", metavar="OBS", nargs="?", ids=("observation",), help="an observation, or a position of the log"
            ),
            argument(
                "--from",
                dest="since",
                metavar="NOTE",
                help="file with an older checkpoint: prove that the log extends it",
            ),
            argument("--to", metavar="NOTE", help="file with the newer checkpoint (default: one made now)"),
            argument("--out", metavar="F", help="file to write (default: standard output)"),
        ),
        rows=False,
    ),
    Verb(
        "capsule",
        "proofs:capsule",
        "Write a file that proves a decision, offline.",
        ("woodrat capsule run_… --out decision.json", "woodrat capsule loan/42#creditScore --out score.json"),
        (
            argument(
                "what",
                metavar="RUN|OBS|REF#field",
                ids=("run", "observation", "entity"),
                help="a run, a decision as RUN#stage, an observation or a field",
            ),
            argument("--out", metavar="F", required=True, help="file to write; - for standard output"),
            argument("--with-verifier", action="store_true", help="put both stand-alone verifiers beside it"),
        ),
        rows=False,
        more="Whoever checks it needs the file and your public key, and neither Woodrat nor the ledger.",
    ),
    Verb(
        "erase",
        "erase:erase",
        "Erase something for good; earlier proofs still hold.",
        (
            "woodrat erase contact/ana@example.com --reason 'request of 5 May' --dry-run",
            "woodrat erase contact/ana@example.com --reason 'request of 5 May' --out certificate.json",
        ),
        (
            argument(
                "what",
                metavar="REF|REF#field|SRC",
                nargs="?",
                ids=("entity", "source"),
                help="an entity, a field of one, or a source",
            ),
            argument("--agent", metavar="A", help="erase everything this agent stated"),
            argument("--subject", metavar="REF", help="erase an entity, its relations and all runs about it"),
            argument("--reason", metavar="TEXT", help="why; stored in the log, so do not name anybody in it"),
            argument("--dry-run", action="store_true", help="show what would be erased, and erase nothing"),
            argument("--yes", action="store_true", help="do not ask for confirmation"),
            argument("--out", metavar="F", help="new file for the certificate, as JSON"),
            argument("--finish", action="store_true", help="remove from the files what an interrupted erasure left"),
            argument("--again", action="store_true", help="after restoring a backup, erase again what had been erased"),
        ),
        writes=True,
        rows=False,
        more="What names or quotes it goes with it. `delete` hides an entity without erasing it.",
    ),
)
"""The commands, in the order of the help."""
