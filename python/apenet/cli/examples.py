"""apenet examples: the package's examples, to copy and to change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from apenet.base.errors import InputError, NotWrittenError

EXAMPLES = Path(__file__).parent.parent / "examples"

app = typer.Typer(help="List and copy the examples.", no_args_is_help=True, rich_markup_mode=None)


def _all() -> list[Path]:
    return sorted(path for path in EXAMPLES.iterdir() if (path / "README.md").exists())


def _title(example: Path) -> str:
    heading = (example / "README.md").read_text(encoding="utf-8").splitlines()[0]
    return heading.partition(":")[2].strip()


@app.command("list")
def list_examples() -> None:
    """List the examples."""
    width = max(len(example.name) for example in _all())
    for example in _all():
        typer.echo(f"{example.name:{width}}  {_title(example)}")


@app.command("copy")
def copy(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="An example's name or number, or 'all'.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder of the copies.")] = Path("examples"),
) -> None:
    """Copy examples into a folder. The commands of their README.md work there."""
    chosen = _all() if "all" in names else list(dict.fromkeys(_find(name) for name in names))
    for example in chosen:
        if (to / example.name).exists():
            raise InputError("folder", str(to / example.name), "a name that is not in use: examples overwrite nothing")
    for example in chosen:
        try:
            shutil.copytree(example, to / example.name)
        except OSError as error:  # also shutil.Error, which lists source, destination and reason of each file
            shutil.rmtree(to / example.name, ignore_errors=True)
            reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or str(error)
            raise NotWrittenError("--to", to / example.name, reason) from error
        typer.echo(to / example.name)


def _find(name: str) -> Path:
    found = [example for example in _all() if name in (example.name, example.name.partition("_")[0])]
    if not found:
        raise InputError("example", name, f"one of {', '.join(example.name for example in _all())}")
    return found[0]
