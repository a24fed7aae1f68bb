"""The environment that ranks inherit from this process: everything except the variables of other launchers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from apenet.host.elf import contains, read_elf

# Variables in which a launcher or a batch system passes a process its rank and its process manager. Ranks use our
# process manager, and Open MPI's launcher would otherwise start its ranks through the batch system.
_LAUNCHERS = re.compile(
    r"""(
      APENET_(CLIENT|COMPUTE_REPORT|COMPUTE_TABLE|KEPT|LIFELINE|MAPPING)$  # a rank that starts a simulation
    | APENET_(OUTSIDE|RANK|RANK_PLAN|RANK_PLACE_\w*|RECORD|TRAP_TSC)$
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

# Libraries that would take the program's calls if they came before the shim: MPI and the C library, but not a profiler
# such as libmpiP.so.
_LAST_LIBRARY = re.compile(r"lib(mpi|mpich|mpi_abi|c|pthread|rt|dl)\.so")

_LINK_ORDER = "verify_asan_link_order"


def environment() -> dict[str, str]:
    """The environment of this process without the variables of other launchers.

    It has HOME, without which the launcher of Open MPI 5 does not start. Services and `env -i` give none.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 (a container's user may have none)
    given = {name: value for name, value in os.environ.items() if _LAUNCHERS.match(name) is None}
    return {"HOME": home if home.startswith("/") else "/", **given}


def separates(library: Path) -> bool:
    """Whether the loader would take this path in LD_PRELOAD for several."""
    return re.search("[ :]", str(library)) is not None


def preloaded(shim: Path, program: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that make every process of a run load the shim, and before it the user's libraries.

    A profiler among these calls `PMPI_*`, which the shim provides. The runtime of a sanitizer comes first if the
    program needs it or the user preloads it. MPI and the C library come behind the shim, because they would take the
    program's calls otherwise. Programs that a script starts are unknown here, so the address
    sanitizer's check of the link order is turned off. The shim has the same rule for the programs that processes of the
    run start (src/runtime/shim/preload_order.hpp).
    """
    theirs = re.split(r"[ :]+", inherited.get("LD_PRELOAD", ""))
    theirs = [name for name in dict.fromkeys(theirs) if name and name != str(shim)]
    first = [name for name in theirs if _FIRST_LIBRARY.search(Path(name).name)]
    for name in needed_libraries(program):
        if _FIRST_LIBRARY.search(name) and name not in (Path(path).name for path in first):
            first.append(name)
    last = [name for name in theirs if name not in first and _LAST_LIBRARY.match(Path(name).name)]
    others = [name for name in theirs if name not in (*first, *last)]
    variables = {"LD_PRELOAD": " ".join([*first, *others, str(shim), *last])}
    options = inherited.get("ASAN_OPTIONS", "")
    if not first and _LINK_ORDER not in options:
        variables["ASAN_OPTIONS"] = ":".join(part for part in (options, f"{_LINK_ORDER}=0") if part)
    return variables


def needed_libraries(program: Path) -> list[str]:
    """The libraries that a 64-bit ELF program names in its dynamic section; none for anything else."""
    found = read_elf(program)
    return [] if found is None else list(found.needed)


def calls(program: Path, function: str) -> bool:
    """Whether a name in this file is that of the function."""
    return contains(program, b"\0" + function.encode() + b"\0")
