"""Completing: scripts that let a shell finish words, made from the table of verbs."""

from __future__ import annotations

from woodrat.cli.command import CommandResult, Invocation
from woodrat.cli.tables import Paper
from woodrat.cli.verbs import COMMANDS, GROUPS
from woodrat.cli.verbs.declaration import EVERYWHERE, OUTPUTS, Command, arguments_of, moment

_BASH = """\
# Completion of woodrat for bash; made by `woodrat completion bash`.
_woodrat() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" verb="" word index known=""
    for ((index = 1; index < COMP_CWORD; index++)); do
        word="${COMP_WORDS[index]}"
        case "$verb" in
            "") case " @FIRST@ " in *" $word "*) verb="$word" ;; esac ;;
@SECOND@
        esac
    done
    case "$before" in
        -o | --output) COMPREPLY=($(compgen -W "@OUTPUTS@" -- "$current")); return ;;
        --db | --file | --source | --out | --signing-keys | --from | --to) COMPREPLY=(); return ;;
    esac
    case "$verb" in
        "") known="@FIRST@ @EVERYWHERE@ --version" ;;
@KNOWN@
    esac
    COMPREPLY=($(compgen -W "$known" -- "$current"))
}
complete -o default -F _woodrat woodrat
"""

_ZSH = """\
#compdef woodrat
# Completion of woodrat for zsh; made by `woodrat completion zsh`.
autoload -U +X bashcompinit && bashcompinit
"""


def completion(call: Invocation) -> CommandResult:
    """Print a completion script; it is text in every output format."""
    script = {"bash": bash, "zsh": zsh, "fish": fish}[call.given.shell]()

    def text(paper: Paper) -> None:
        for line in script.splitlines():
            paper.line(line)

    return CommandResult(script, text, plain=True)


def bash() -> str:
    """Return the script for bash."""
    second, known = [], []
    for group in GROUPS:
        words = " ".join(_second(group))
        second.append(f'            {group}) case " {words} " in *" $word "*) verb="{group} $word" ;; esac ;;')
        known.append(f'        {group}) known="{words}" ;;')
    for command in COMMANDS:
        choices = [choice for _, given in command.arguments for choice in given.get("choices", ())]
        words = " ".join([*choices, *_options(command)])
        known.append(f'        "{command.words}") known="{words}" ;;')
    return (
        _BASH.replace("@FIRST@", " ".join(_first()))
        .replace("@SECOND@", "\n".join(second))
        .replace("@KNOWN@", "\n".join(known))
        .replace("@OUTPUTS@", " ".join(OUTPUTS))
        .replace("@EVERYWHERE@", " ".join(_everywhere()))
    )


def zsh() -> str:
    """Return the script for zsh, which understands that of bash."""
    return _ZSH + bash()


def fish() -> str:
    """Return the script for fish."""
    lines = ["# Completion of woodrat for fish; made by `woodrat completion fish`."]
    first = " ".join(_first())
    top = f"not __fish_seen_subcommand_from {first}"
    for name in _first():
        what = GROUPS.get(name) or next(command.what for command in COMMANDS if command.words == name)
        lines.append(f"complete -c woodrat -f -n {_quoted(top)} -a {name} -d {_quoted(what)}")
    for command in COMMANDS:
        name, _, under = command.words.partition(" ")
        here = f"__fish_seen_subcommand_from {name}"
        if under:
            others = " ".join(_second(name))
            before = f"{here}; and not __fish_seen_subcommand_from {others}"
            lines.append(f"complete -c woodrat -f -n {_quoted(before)} -a {under} -d {_quoted(command.what)}")
            here = f"{here}; and __fish_seen_subcommand_from {under}"
        for names, given in command.arguments:
            about = _quoted(given.get("help", ""))
            if names[0].startswith("--"):
                takes = "" if given.get("action") == "store_true" else " -r"
                lines.append(f"complete -c woodrat -n {_quoted(here)} -l {names[0][2:]}{takes} -d {about}")
            elif "choices" in given:
                lines.append(f"complete -c woodrat -f -n {_quoted(here)} -a {_quoted(' '.join(given['choices']))}")
        for names, _ in moment() if command.reads else ():
            lines.append(f"complete -c woodrat -n {_quoted(here)} -l {names[0][2:]} -x")
    lines += [f"complete -c woodrat -l {name} -r" for name in ("db", "tenant", "as", "signing-keys")]
    lines.append(f"complete -c woodrat -s o -l output -x -a {_quoted(' '.join(OUTPUTS))}")
    return "\n".join(lines) + "\n"


def _first() -> list[str]:
    return list(dict.fromkeys(command.words.partition(" ")[0] for command in COMMANDS))


def _second(group: str) -> list[str]:
    return [command.words.partition(" ")[2] for command in COMMANDS if command.words.startswith(group + " ")]


def _options(command: Command) -> list[str]:
    own = [names[0] for names, _ in arguments_of(command) if names[0].startswith("-")]
    return [*own, *_everywhere(), "--help"]


def _everywhere() -> list[str]:
    return [name for names, _ in EVERYWHERE for name in reversed(names)]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
