"""Server: the commands that serve the ledger, look after keys and webhooks, and set things up."""

from __future__ import annotations

from woodrat.cli.verbs.declaration import Command, argument, whole

_KEY = argument("key", metavar="KEY", help="key id")
_WEBHOOK = argument("webhook", metavar="WEBHOOK", help="webhook id")

COMMANDS: tuple[Command, ...] = (
    Command(
        "serve",
        "serve:serve",
        (
            "woodrat serve",
            "woodrat serve --host 0.0.0.0 --name ledger.example.org --tls-cert c.pem --tls-key k.pem",
        ),
        what="Serve the ledger over HTTP.",
        own=(
            argument(
                "--host", metavar="H", default="127.0.0.1", help="address to listen on; beyond this machine needs keys"
            ),
            argument("--port", type=whole, metavar="N", default=8787, help="port to listen on (default: 8787)"),
            argument("--name", metavar="H", action="append", default=[], help="host name it answers to; repeatable"),
            argument(
                "--origin", metavar="URL", action="append", default=[], help="web site that may call it; repeatable"
            ),
            argument("--tls-cert", metavar="F", help="certificate, PEM"),
            argument("--tls-key", metavar="F", help="private key of the certificate, PEM"),
            argument(
                "--behind-proxy",
                action="store_true",
                help="trust X-Forwarded-Host, -Proto and -For of a proxy in front; needs keys",
            ),
            argument(
                "--compact-window",
                metavar="HH:MM-HH:MM",
                help="time of day (UTC) to compact a SQLite file if erasures left something (default: by hand)",
            ),
            argument("--calls-per-second", type=whole, metavar="N", help="rate limit per key (default: none)"),
            argument(
                "--workers", type=whole, metavar="N", default=1, help="processes that serve; PostgreSQL (default: 1)"
            ),
            argument(
                "--log-level",
                choices=("debug", "info", "warning", "error"),
                default="warning",
                help="log level of standard error, as JSON lines (default: warning)",
            ),
        ),
        rows=False,
        more="The inspector is at /, REST at /v1, its description at /openapi.json.",
    ),
    Command(
        "open",
        "inspect:open_file",
        ("woodrat open agents.db", "woodrat open agents.db --tenant lending --no-browser"),
        what="Open a ledger file in the inspector, in your browser.",
        own=(
            argument("file", metavar="FILE", help="ledger file"),
            argument("--port", type=whole, metavar="N", default=0, help="port to listen on (default: any free port)"),
            argument("--no-browser", action="store_true", help="print the address and start no browser"),
        ),
        rows=False,
        more="It serves the file to this machine alone until Ctrl-C. Without --tenant, the only tenant of the file is "
        "shown.",
    ),
    Command(
        "mcp",
        "agents:mcp",
        ("woodrat mcp --db agents.db --as claude-code",),
        what="Serve the ledger to an MCP client over stdin and stdout.",
        rows=False,
    ),
    Command(
        "keys create",
        "serve:create",
        (
            "woodrat keys create --tenant lending --agent loan-officer --grant read --grant write --grant run",
            "woodrat keys create --tenant lending --agent auditor --grant read --expires-at 2027-01-01T00:00:00Z",
        ),
        what="Create an API key for --tenant, and show its secret once.",
        own=(
            argument("--agent", metavar="A", required=True, help="agent whose name its writes carry"),
            argument(
                "--grant",
                metavar="G",
                action="append",
                default=[],
                help="a grant: read, write, correct, run, manage, metrics, one for a type such as "
                "write:contact, or '*' for all but metrics; repeatable, at least one",
            ),
            argument("--name", metavar="TEXT", help="purpose of the key"),
            argument("--priority-max", type=whole, metavar="N", help="highest priority its holder may use"),
            argument("--expires-at", metavar="T", help="when it expires (default: never)"),
        ),
    ),
    Command(
        "keys list",
        "serve:keys",
        ("woodrat keys list",),
        what="List API keys, without their secrets.",
    ),
    Command(
        "keys revoke",
        "serve:revoke",
        ("woodrat keys revoke key_… --reason 'laptop lost'",),
        what="Revoke an API key.",
        own=(_KEY, argument("--reason", metavar="TEXT", help="why")),
    ),
    Command(
        "keys audit",
        "serve:audit",
        ("woodrat keys audit key_…", "woodrat keys audit -o jsonl"),
        what="List reads by API key and time.",
        own=(argument("key", metavar="KEY", nargs="?", help="key id (default: all keys)"),),
    ),
    Command(
        "tenants list",
        "serve:tenants",
        ("woodrat tenants list",),
        what="List the tenants that have a log.",
    ),
    Command(
        "webhooks add",
        "serve:add_webhook",
        (
            "woodrat webhooks add https://hooks.example.org/woodrat --secret-file hook.secret --tenant lending",
            "woodrat webhooks add http://localhost:9000/ --secret-file hook.secret --kind observation --after 0",
        ),
        what="Send new entries of --tenant to an address, signed.",
        own=(
            argument("url", metavar="URL", help="where to send them: https, or an address of this machine"),
            argument("--secret-file", metavar="F", required=True, help="file with the secret that signs them"),
            argument("--kind", metavar="K", action="append", default=[], help="only entries of this kind; repeatable"),
            argument(
                "--after", type=whole, metavar="N", help="start after this position (default: the end of the log)"
            ),
        ),
        more="A running server picks it up.",
    ),
    Command(
        "webhooks list",
        "serve:webhooks",
        ("woodrat webhooks list",),
        what="List webhooks, and the position of each.",
    ),
    Command(
        "webhooks remove",
        "serve:remove_webhook",
        ("woodrat webhooks remove hook_…",),
        what="Remove a webhook.",
        own=(_WEBHOOK,),
    ),
    Command(
        "webhooks dead-letters",
        "serve:dead_letters",
        ("woodrat webhooks dead-letters",),
        what="List deliveries that failed for good.",
        own=(argument("webhook", metavar="WEBHOOK", nargs="?", help="webhook id (default: all webhooks)"),),
    ),
    Command(
        "webhooks retry",
        "serve:retry_webhook",
        ("woodrat webhooks retry hook_…", "woodrat webhooks retry hook_… --first 128"),
        what="Send failed deliveries again.",
        own=(
            _WEBHOOK,
            argument("--first", type=whole, metavar="N", help="only the delivery that starts at this position"),
        ),
        more="A running server picks it up.",
    ),
    Command(
        "migrate",
        "maintenance:migrate",
        ("woodrat migrate --db agents.db", "woodrat migrate --db postgresql://db.example.com/agents"),
        what="Set a database up: its tables, and its roles on PostgreSQL.",
        own=(
            argument(
                "--distributed",
                action="store_true",
                help="change nothing: print the SQL that spreads a PostgreSQL database over nodes of Citus by tenant",
            ),
        ),
    ),
    Command(
        "init",
        "agents:init",
        ("woodrat init --signing-keys ./keys --name example.com/ledger", "woodrat init --client claude-code"),
        what="Create signing keys, or connect an MCP client.",
        own=(
            argument("--name", metavar="NAME", help="name of the signer (default: woodrat- and eight digits)"),
            argument(
                "--client",
                choices=("claude-code", "cursor", "vscode", "claude-desktop"),
                help="add the ledger to the MCP configuration of this program",
            ),
            argument("--print", action="store_true", help="with --client: show what would be written, and where"),
        ),
        rows=False,
    ),
    Command(
        "doctor",
        "maintenance:doctor",
        ("woodrat doctor",),
        what="Show versions, settings, files and possible problems.",
        rows=False,
    ),
    Command(
        "demo",
        "demo:demo",
        ("woodrat demo", "woodrat demo --serve"),
        what="Show two short stories on a ledger in memory.",
        own=(
            argument("--story", choices=("agents", "runs"), help="only this story (default: both)"),
            argument("--serve", action="store_true", help="open the ledger of the stories in the inspector"),
            argument("--port", type=whole, metavar="N", default=0, help="with --serve: port (default: any free port)"),
            argument("--no-browser", action="store_true", help="with --serve: start no browser"),
        ),
        rows=False,
        more="Two agents disagree about a city, and two runs with the same inputs end differently. Nothing is kept. "
        "With --serve it runs on a temporary file, together with a rejected loan, until Ctrl-C.",
    ),
    Command(
        "completion",
        "completion:completion",
        ("woodrat completion bash > ~/.local/share/bash-completion/completions/woodrat", "woodrat completion fish"),
        what="Print a completion script for your shell.",
        own=(argument("shell", choices=("bash", "zsh", "fish"), help="the shell"),),
        rows=False,
    ),
)
"""The commands, in the order of the help."""
