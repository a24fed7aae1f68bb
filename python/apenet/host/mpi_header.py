"""Reads the prototypes and constants of an installed MPICH's headers."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apenet.base.errors import HostError

HANDLES = (
    "Comm",
    "Datatype",
    "Errhandler",
    "File",
    "Group",
    "Info",
    "Message",
    "Op",
    "Request",
    "Session",
    "Win",
)
"""MPI's opaque types, without the prefix."""

# Functions of C alone, or whose arguments have no equal in Fortran (arrays of strings, C's callbacks).
_OF_C_ALONE = re.compile(
    r"MPI_(T_.*|.*_c|.*_(f2c|c2f|f082c|c2f08|f2f08|f082f|toint|fromint)|Abi_.*|DUP_FN|Pcontrol|Comm_spawn(_multiple)?|"
    r"File_create_errhandler|Grequest_start|Register_datarep|Info_get_string|Info_create_env|Keyval_create|Attr_(get|put)|Op_create_c)$"
)
_INTEGER = re.compile(r"^\(?\s*(-?\s*(0x[0-9a-fA-F]+|[0-9]+))\s*\)?$")
_ENUMERATIONS = ("MPIR_Win_flavor", "MPIR_Win_model", "MPIR_Topo_type", "MPIR_Combiner_enum")


@dataclass(frozen=True)
class Parameter:
    """A parameter: `kind` is its C type without qualifiers, pointers and extents, such as `int` or `MPI_Comm`."""

    kind: str
    name: str
    is_constant: bool
    pointers: int
    extents: str

    @property
    def is_array(self) -> bool:
        """Whether it is declared with brackets."""
        return bool(self.extents)

    @property
    def handle(self) -> str:
        """The opaque type, without its prefix; empty for others."""
        name = self.kind.removeprefix("MPI_")
        return name if name in HANDLES and self.kind.startswith("MPI_") else ""


@dataclass(frozen=True)
class Prototype:
    """A function of MPI."""

    result: str
    name: str
    parameters: tuple[Parameter, ...]


_ADDRESSES = ("baseptr", "buffer_addr")
"""Parameters through which a function of C returns an address."""


def with_c_ptr(prototypes: Sequence[Prototype]) -> list[Prototype]:
    """The forms with type(c_ptr) of those that return an address, under the names that MPI gives them."""
    return [
        Prototype(
            each.result,
            f"{each.name}_cptr",
            tuple(replace(of, kind="c_ptr") if of.name in _ADDRESSES else of for of in each.parameters),
        )
        for each in prototypes
        if any(of.name in _ADDRESSES for of in each.parameters)
    ]


@dataclass(frozen=True)
class Constant:
    """A constant: `kind` is "int", "MPI_Offset" or an opaque type."""

    kind: str
    name: str
    value: int


def read_prototypes(header: Path) -> list[Prototype]:
    """The functions of mpi_proto.h that have a Fortran form, in the header's order."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = []
    for result, name, inside in re.findall(
        r"^(int|double|MPI_Aint) (MPI_\w+)\((.*?)\)\s*(?:MPICH_|;)", text, flags=re.MULTILINE | re.DOTALL
    ):
        if _OF_C_ALONE.match(name):
            continue
        arguments = [_parameter(text) for each in inside.split(",") if (text := " ".join(each.split())) != "void"]
        # Fortran has no command line to give to MPI_Init.
        found.append(Prototype(result, name, tuple(each for each in arguments if each.name not in ("argc", "argv"))))
    return found


def read_constants(header: Path, mpicc: Path) -> list[Constant]:
    """The constants of mpi.h that Fortran has too, with the values that its C compiler gives them."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    kinds: dict[str, str] = {}
    for name, value in re.findall(r"^#define[ \t]+(MPI_[A-Z0-9_]+)[ \t]+(\S.*?)\s*$", text, flags=re.MULTILINE):
        cast = re.match(r"^\(*\s*(MPI_\w+)\s*\)", value)
        if name.startswith("MPI_T_") or "*" in value or '"' in value:
            continue
        if cast and (cast[1].removeprefix("MPI_") in HANDLES or cast[1] == "MPI_Offset"):
            kinds[name] = cast[1]
        elif _INTEGER.match(value) or value.startswith("MPI_ERR_"):
            kinds[name] = "int"
    for name in _ENUMERATIONS:
        body = re.search(rf"enum {name}\s*\{{(.*?)\}}", text, flags=re.DOTALL)
        kinds |= dict.fromkeys(re.findall(r"MPI_[A-Z0-9_]+", body[1] if body else ""), "int")
    values = _evaluated(list(kinds), mpicc)
    return [Constant(kind, name, value) for (name, kind), value in zip(kinds.items(), values, strict=True)]


def _parameter(text: str) -> Parameter:
    found = re.match(r"^(const )?(\w+|\.\.\.) ?(\**) ?(?:const )?(\w*)((?:\[[0-9]*\])*)$", text)
    if found is None:
        raise HostError(f"mpi_proto.h: {text!r}: expected a parameter")
    constant, kind, pointers, name, extents = found.groups()
    return Parameter(kind, name, constant is not None, len(pointers), extents)


def _evaluated(names: list[str], mpicc: Path) -> list[int]:
    lines = "".join(f'  printf("%lld\\n", (long long)({name}));\n' for name in names)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "constants.c"
        program = source.with_suffix("")
        source.write_text(f"#include <mpi.h>\n#include <stdio.h>\nint main(void) {{\n{lines}}}\n", encoding="utf-8")
        made = subprocess.run([mpicc, "-w", "-o", program, source], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise HostError(f"the constants of mpi.h could not be read with {mpicc}:\n{made.stderr.strip()}")
        printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [int(line) for line in printed.split()]
