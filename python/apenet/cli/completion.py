"""apenet completion and apenet man: scripts for shells and pages for man, made of the commands' own options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.cli.pages import CommandPage, OptionPage, pages

_BASH = """\
_apenet() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${{COMP_WORDS[i]}}" = "--" ] && return
    case "$command ${{COMP_WORDS[i]}}" in
      {names}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command:$before" in
{values}
    *) case "$command" in
{words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _apenet apenet
"""


def bash(all_pages: list[CommandPage]) -> str:
    """A script for bash."""
    names = "|".join(f'"{" ".join(page.words[:-1])} {page.words[-1]}"' for page in all_pages if page.words)
    values = "\n".join(
        f'    {"|".join(_quoted(f"{name}:{flag}") for flag in option.flags)}) words="{" ".join(option.choices)}" ;;'
        for page in all_pages
        for option in page.options
        if option.choices
        for name in [" ".join(page.words)]
    )
    words = "\n".join(
        f'      "{" ".join(page.words)}") words="{" ".join((*page.below, *_flags(page)))}" ;;' for page in all_pages
    )
    return _BASH.format(names=names, values=values, words=words)


def zsh(all_pages: list[CommandPage]) -> str:
    """A script for zsh, which takes that of bash."""
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{bash(all_pages)}"


def fish(all_pages: list[CommandPage]) -> str:
    """A script for fish."""
    return "".join(f"{line}\n" for page in all_pages for line in _fish_lines(page))


def _fish_lines(page: CommandPage) -> Iterator[str]:
    seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in page.words).removeprefix("; and ")
    below = f"not __fish_seen_subcommand_from {' '.join(page.below)}" if page.below else ""
    condition = "; and ".join(part for part in (seen, below) if part)
    start = f"complete -c apenet -n {_quoted(condition)}"
    if page.below:
        yield f"{start} -f -a {_quoted(' '.join(page.below))}"
    for option in page.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        value = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else " -r" if option.value else ""
        yield f"{start} {flags}{value} -d {_quoted(option.help)}"


def manual(page: CommandPage) -> str:
    """A page in the language of man."""
    name = "-".join(("apenet", *page.words))
    given = [_roff(argument) for argument in page.arguments] or (["COMMAND"] if page.below else [])
    brief = page.help.partition("\n\n")[0].replace("\n", " ")
    lines = [
        f'.TH "{name.upper()}" 1 "" "APENet {__version__}"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(brief.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_roff(' '.join(('apenet', *page.words)))}",
        " ".join(("[OPTIONS]", *given)),
        ".SH DESCRIPTION",
        *(f".PP\n{_roff(' '.join(part.split()))}" for part in page.help.split("\n\n")),
        ".SH OPTIONS",
        *(_roff_option(option) for option in page.options),
    ]
    if page.below:
        lines += [".SH COMMANDS", *(f".TP\n.BR {_roff(f'{name}-{word}')} (1)" for word in page.below)]
    return "\n".join(lines) + "\n"


def _roff_option(option: OptionPage) -> str:
    value = f" \\fI{_roff(option.value)}\\fR" if option.value else ""
    flags = ", ".join(f"\\fB{_roff(flag)}\\fR{value}" for flag in option.flags)
    return f".TP\n{flags}\n{_roff(' '.join(option.help.split()))}"


def _roff(text: str) -> str:
    """Text in which nothing is a command of roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _flags(page: CommandPage) -> list[str]:
    return [flag for option in page.options for flag in option.flags]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "'\\''") + "'"


_SHELLS: dict[str, Callable[[list[CommandPage]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def complete(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Print a completion script for a shell.

    For bash: source <(apenet completion bash)
    """
    if shell not in _SHELLS:
        raise InputError("shell", shell, f"one of {', '.join(_SHELLS)}")
    sys.stdout.write(_SHELLS[shell](_all_pages(context)))


def man(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND...", help="The words of the command, such as: bench halo.")
    ] = None,
) -> None:
    """Print the man page of a command. To read it: apenet man run | man -l -."""
    words = tuple(command or ())
    found = {page.words: page for page in _all_pages(context)}
    if words not in found:
        raise InputError("command", " ".join(words), "the words of a command, as apenet --help shows them")
    sys.stdout.write(manual(found[words]))


def _all_pages(context: Any) -> list[CommandPage]:  # noqa: ANN401 (typer's are not public)
    return list(pages(context.find_root().command))
