"""apenet cc: a compiler with the package's headers and libraries."""

from __future__ import annotations

import shlex
import subprocess
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from apenet.base.errors import InputError
from apenet.host.compiling import command, libraries
from apenet.host.toolchain import PKG_CONFIG

_OTHERS: dict[str, tuple[Any, Any]] = {
    "mpi": (
        Annotated[bool, typer.Option("--mpi", help="Compile with this environment's MPI, Fortran too.")],
        False,
    ),
    "compiler": (
        Annotated[
            str | None,
            typer.Option("--compiler", metavar="NAME", help="Default: cc, c++ or gfortran, by the source's suffix."),
        ],
        None,
    ),
    "pkg_config_path": (
        Annotated[bool, typer.Option("--pkg-config-path", help="Print the folder of the libraries' pkg-config files.")],
        False,
    ),
    "show": (
        Annotated[bool, typer.Option("--show", help="Print the compiler's command instead of running it.")],
        False,
    ),
}


def cc(context: typer.Context, **given: Any) -> None:  # noqa: ANN401 (the parameters below)
    """Compile a program that uses the machines' own libraries. All other arguments go to the compiler."""
    if given["pkg_config_path"]:
        typer.echo(PKG_CONFIG)
        return
    if not context.args and not given["show"]:
        raise InputError("arguments", "none", "those of a compiler, such as prog.c -o prog")
    chosen = [name for name in libraries() if given[_parameter_name(name)]]
    whole = command(context.args, chosen, mpi=given["mpi"], compiler=given["compiler"])
    if given["show"]:
        typer.echo(shlex.join(whole))
        return
    status = subprocess.run(whole, check=False).returncode
    if status != 0 and not chosen and not given["mpi"]:
        known = ", ".join(f"--{name}" for name in libraries())
        typer.echo(f"apenet cc: no library was asked for: --mpi for MPI, or {known}", err=True)
    raise typer.Exit(status)


def _parameter_name(library: str) -> str:
    return library.replace("-", "_")


def _parameters() -> list[Parameter]:
    """An option for each library, and the others."""
    linking = {
        _parameter_name(name): (Annotated[bool, typer.Option(f"--{name}", help=f"{one.summary}.")], False)
        for name, one in libraries().items()
    }
    return [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)] + [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in {**linking, **_OTHERS}.items()
    ]


cc.__signature__ = Signature(_parameters())  # type: ignore[attr-defined]
cc.__annotations__ = {one.name: one.annotation for one in _parameters()}
