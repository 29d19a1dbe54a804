"""Proof: the commands that check the ledger, and prove it to others."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import Command, argument

COMMANDS: tuple[Command, ...] = (
    Command(
        "fingerprint",
        "maintenance:fingerprint",
        ("woodrat fingerprint", "woodrat fingerprint --as-of @release-3"),
        verb="fingerprint",
        more="The same observations give the same fingerprint, in any order of arrival.",
    ),
    Command(
        "prove-order",
        "maintenance:prove_order",
        ("woodrat prove-order --shuffles 100",),
        verb="prove_order",
        more="Feeds everything to fresh ledgers in other orders and compares them. Exits with 1 if any differs.",
    ),
    Command(
        "verify",
        "verify:verify",
        ("woodrat verify --deep", "woodrat verify --checkpoint held-elsewhere.note"),
        verb="verify",
        forms={
            "checkpoints": {"metavar": "F", "help": "file with a checkpoint kept elsewhere; repeatable"},
            "key": {"metavar": "F", "help": "file with the verifier key that must have signed it, such as signer.pub"},
        },
        own=(argument("--embedder", metavar="E", help="also check the vectors of this embedder, with --deep"),),
        rows=False,
        more="Exits with 1 if derived data is out of date, and with 5 if the log is damaged.",
    ),
    Command(
        "rebuild",
        "maintenance:rebuild",
        ("woodrat rebuild",),
        verb="rebuild",
        more="Exits with 1 if anything had to be repaired.",
    ),
    Command(
        "checkpoint",
        "proofs:checkpoint",
        ("woodrat checkpoint", "woodrat checkpoint --new-epoch 'restored from the backup of Monday'"),
        verb="proofs.checkpoint",
        own=(argument("--out", metavar="F", help="also write the signed note to this file"),),
        more="A log that is shorter than the last one signed is refused.",
    ),
    Command(
        "prove",
        "proofs:prove",
        ("woodrat prove obs_… --out proof.json", "woodrat prove --from monday.note --out consistency.json"),
        verb="proofs.prove",
        own=(
            argument(
                "--from",
                dest="old",
                metavar="NOTE",
                help="file with an older checkpoint: prove that the log extends it",
            ),
            argument("--to", dest="new", metavar="NOTE", help="file with the newer checkpoint (default: one made now)"),
            argument("--out", metavar="F", help="file to write (default: standard output)"),
        ),
        rows=False,
    ),
    Command(
        "capsule",
        "proofs:capsule",
        ("woodrat capsule run_… --out decision.json", "woodrat capsule loan/42#creditScore --out score.json"),
        verb="proofs.capsule",
        own=(
            argument("--out", metavar="F", required=True, help="file to write; - for standard output"),
            argument("--with-verifier", action="store_true", help="put both stand-alone verifiers beside it"),
        ),
        rows=False,
        more="Checking it takes the file and your public key, and neither Woodrat nor the ledger.",
    ),
    Command(
        "erase",
        "erase:erase",
        (
            "woodrat erase contact/ana@example.com --reason 'request of 5 May' --dry-run",
            "woodrat erase contact/ana@example.com --reason 'request of 5 May' --out certificate.json",
        ),
        verb="erase",
        forms={"reason": {"required": False}},
        own=(
            argument("--yes", action="store_true", help="do not ask for confirmation"),
            argument("--out", metavar="F", help="new file for the certificate, as JSON"),
            argument(
                "--finish",
                action="store_true",
                help="finish pending erasures: search the files, and compact a file that still contains erased bytes",
            ),
            argument("--compact", action="store_true", help="with --finish: compact the file in any case"),
            argument("--again", action="store_true", help="after restoring a backup, repeat earlier erasures"),
        ),
        rows=False,
        more="Entries that name or quote it are erased too. `delete` hides an entity without erasing it.",
    ),
)
"""The commands, in the order of the help."""
