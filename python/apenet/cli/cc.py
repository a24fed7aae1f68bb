"""apenet cc: a compiler with the package's headers and libraries."""

from __future__ import annotations

import shlex
import subprocess
from typing import Annotated

import typer

from apenet.base.errors import InputError
from apenet.host.compiling import command
from apenet.host.toolchain import PKG_CONFIG


def cc(
    context: typer.Context,
    am: Annotated[bool, typer.Option("--am", help="Link Active Messages, for a conduit in a tree of GASNet.")] = False,
    apelib: Annotated[bool, typer.Option("--apelib", help="Link the library of the APENet machines.")] = False,
    extoll: Annotated[bool, typer.Option("--extoll", help="Link EXTOLL's VELO and RMA.")] = False,
    gasnet_seq: Annotated[bool, typer.Option("--gasnet-seq", help="Link GASNet-1 for one thread.")] = False,
    gasnet_par: Annotated[bool, typer.Option("--gasnet-par", help="Link GASNet-1 for threads.")] = False,
    gasnet_parsync: Annotated[
        bool, typer.Option("--gasnet-parsync", help="Link GASNet-1 for threads that take turns.")
    ] = False,
    qmp: Annotated[bool, typer.Option("--qmp", help="Link QMP, the message passing of lattice QCD.")] = False,
    rdma: Annotated[bool, typer.Option("--rdma", help="Link the library of APENet's cards.")] = False,
    tnw: Annotated[bool, typer.Option("--tnw", help="Link QPACE's torus network processor.")] = False,
    udp: Annotated[bool, typer.Option("--udp", help="Link UDP through the kernels of the simulated nodes.")] = False,
    mpi: Annotated[bool, typer.Option("--mpi", help="Compile with this environment's MPI, Fortran too.")] = False,
    compiler: Annotated[
        str | None,
        typer.Option("--compiler", metavar="NAME", help="Default: cc, c++ or gfortran, by the source's suffix."),
    ] = None,
    pkg_config_path: Annotated[
        bool, typer.Option("--pkg-config-path", help="Print the folder of the libraries' pkg-config files.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the compiler's command instead of running it.")] = False,
) -> None:
    """Compile a program that uses the machines' own libraries. All other arguments go to the compiler."""
    if pkg_config_path:
        typer.echo(PKG_CONFIG)
        return
    wanted = {
        "am": am,
        "apelib": apelib,
        "extoll": extoll,
        "gasnet-seq": gasnet_seq,
        "gasnet-par": gasnet_par,
        "gasnet-parsync": gasnet_parsync,
        "qmp": qmp,
        "rdma": rdma,
        "tnw": tnw,
        "udp": udp,
    }
    if not context.args and not show:
        raise InputError("arguments", "none", "those of a compiler, such as prog.c -o prog")
    whole = command(context.args, [name for name, chosen in wanted.items() if chosen], mpi=mpi, compiler=compiler)
    if show:
        typer.echo(shlex.join(whole))
        return
    raise typer.Exit(subprocess.run(whole, check=False).returncode)
