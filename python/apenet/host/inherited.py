"""The environment that ranks inherit from this process: everything except the variables of other launchers."""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path

# Variables in which a launcher or a batch system passes a process its rank and its process manager. Ranks use our
# process manager, and Open MPI's launcher would otherwise start its ranks through the batch system.
_LAUNCHERS = re.compile(
    r"""(
      APENET_(LIFELINE|MAPPING|RANK|RANK_PLAN|RANK_PLACE_\w*|RECORD|TRAP_TSC)$  # a rank that starts a simulation
    | PMI_ | PMIX_(?!MCA_) | PRTE_(?!MCA_)
    | HYDI_ | HYDRA_ | MPI_LOCAL(NRANKS|RANKID)$ | MPIEXEC_ | GFORKER_
    | OMPI_(COMM_WORLD|WORLD|UNIVERSE|FILE|FIRST|NUM_APP|APP_CTX|COMMAND|ARGV|TOOL|VERSION|LIBDIR_LOC)
    | OMPI_MCA_(ess|orte|num_procs|initial_wdir|cpu_type|PREFIXES|shmem_RUNTIME)
    | MV2_COMM_WORLD | PALS_ | ALPS_ | FLUX_ | JSM_ | SLURM | PBS_ | LSB_ | PE_HOSTFILE$ | COBALT_
    )""",
    re.VERBOSE,
)

# Runtimes that refuse to start, or miss events, unless they are the first library of a process.
_FIRST_LIBRARY = re.compile(r"lib(asan|hwasan|lsan|tsan|clang_rt\.[a-z]*san)\b.*\.so")

_LINK_ORDER = "verify_asan_link_order"


def environment() -> dict[str, str]:
    """The environment of this process without the variables of other launchers."""
    return {name: value for name, value in os.environ.items() if _LAUNCHERS.match(name) is None}


def preloaded(shim: Path, program: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that make every process of a run load the shim, and before it the user's libraries.

    A profiler among these calls `PMPI_*`, which the shim provides. The runtime of a sanitizer comes first if the
    program needs it or the user preloads it. Programs that a script starts are unknown here, so the address
    sanitizer's check of the link order is turned off.
    """
    theirs = re.split(r"[ :]+", inherited.get("LD_PRELOAD", ""))
    theirs = [name for name in dict.fromkeys(theirs) if name and name != str(shim)]
    first = [name for name in theirs if _FIRST_LIBRARY.search(Path(name).name)]
    for name in needed_libraries(program):
        if _FIRST_LIBRARY.search(name) and name not in (Path(path).name for path in first):
            first.append(name)
    variables = {"LD_PRELOAD": " ".join([*first, *(name for name in theirs if name not in first), str(shim)])}
    options = inherited.get("ASAN_OPTIONS", "")
    if not first and _LINK_ORDER not in options:
        variables["ASAN_OPTIONS"] = ":".join(part for part in (options, f"{_LINK_ORDER}=0") if part)
    return variables


def needed_libraries(program: Path) -> list[str]:
    """The libraries that a 64-bit ELF program names in its dynamic section; none for anything else."""
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _needed(data) if data[:6] == b"\x7fELF\x02\x01" else []
    except (OSError, OverflowError, struct.error, ValueError):  # ValueError: empty
        return []


def calls(program: Path, function: str) -> bool:
    """Whether a name in this file is that of the function."""
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(b"\0" + function.encode() + b"\0") >= 0
    except (OSError, OverflowError, ValueError):
        return False


_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB = 1, 5


def _needed(data: mmap.mmap) -> list[str]:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    # Type, offset in the file, address, size in the file.
    headers = [struct.unpack_from("<I4xQQ8xQ", data, table + i * size) for i in range(count)]
    entries = [
        struct.unpack_from("<qQ", data, offset + i)
        for kind, offset, _, length in headers
        if kind == _PT_DYNAMIC
        for i in range(0, length, 16)
    ]
    strings = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
    for kind, offset, address, length in headers:
        if kind == _PT_LOAD and address <= strings < address + length:
            begin = strings - address + offset
            starts = [begin + value for tag, value in entries if tag == _DT_NEEDED]
            return [data[start : data.find(b"\0", start)].decode(errors="replace") for start in starts]
    return []
