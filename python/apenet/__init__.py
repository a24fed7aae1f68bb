"""APENet in software: unmodified MPI programs on a simulated interconnect, in deterministic virtual time.

import apenet
ape16 = apenet.machine("ape16")
apenet.bench.pingpong(ape16, sizes="16:1M")
apenet.run(["./program"], n=16, machine=ape16)
apenet.replay("trace.goal", machine=ape16)
apenet.traffic("iq-router-v1", loads="0.1:0.8:0.1", engine="flit")
apenet.report("run")
apenet.workload(program, n=16, machine=ape16)
apenet.optimise_placement("trace.goal", machine=ape16)
apenet.optimise("bench dslash", ["ape128", "pax"], grid={"network.link.clock_mhz": [100, 133]}, latin=64)
apenet.cluster.run([apenet.cluster.Job("left", "trace.goal", "4x4x4")], machine="ape128")
apenet.fit.fit("osu_latency.txt")
apenet.calibrate.calibrate("tcp")
apenet.reproduce.reproduce(apenet.reproduce.plan(["ape128"]))
"""

import importlib
from typing import TYPE_CHECKING, Any

from apenet._core import version as __version__
from apenet.base.errors import (
    ApenetError,
    EndOfTimeError,
    HostError,
    InputError,
    MachineError,
    NotWrittenError,
    PartitionError,
)

# Functions with the name of their package: the import of the package must come first.
from apenet.explain import explain, report
from apenet.machine import Machine, machine, machine_names, machines
from apenet.run.program import run
from apenet.study import study

if TYPE_CHECKING:
    from apenet import bench, cluster, fit, reproduce
    from apenet.compare.difference import difference
    from apenet.fit import calibrate
    from apenet.optimising import optimise
    from apenet.placing import PlacementResult, optimise_placement
    from apenet.run.program_result import RunError, RunResult
    from apenet.run.replay import ReplayError, ReplayResult, replay
    from apenet.run.traffic import TrafficPoint, TrafficResult, traffic
    from apenet.run.workload import WorkloadError, workload
    from apenet.study.answer import OptimiseResult
    from apenet.study.study import Study

__all__ = [
    "ApenetError",
    "EndOfTimeError",
    "HostError",
    "InputError",
    "Machine",
    "MachineError",
    "NotWrittenError",
    "OptimiseResult",
    "PartitionError",
    "PlacementResult",
    "ReplayError",
    "ReplayResult",
    "RunError",
    "RunResult",
    "Study",
    "TrafficPoint",
    "TrafficResult",
    "WorkloadError",
    "__version__",
    "bench",
    "calibrate",
    "cluster",
    "difference",
    "explain",
    "fit",
    "machine",
    "machine_names",
    "machines",
    "optimise",
    "optimise_placement",
    "replay",
    "report",
    "reproduce",
    "run",
    "study",
    "traffic",
    "workload",
]

_MODULES = {
    "bench": "apenet.bench",
    "calibrate": "apenet.fit.calibrate",
    "cluster": "apenet.cluster",
    "fit": "apenet.fit",
    "reproduce": "apenet.reproduce",
}
_HOMES = {
    "OptimiseResult": "apenet.study.answer",
    "PlacementResult": "apenet.placing",
    "ReplayError": "apenet.run.replay",
    "ReplayResult": "apenet.run.replay",
    "RunError": "apenet.run.program_result",
    "RunResult": "apenet.run.program_result",
    "Study": "apenet.study.study",
    "TrafficPoint": "apenet.run.traffic",
    "TrafficResult": "apenet.run.traffic",
    "WorkloadError": "apenet.run.workload",
    "difference": "apenet.compare.difference",
    "optimise": "apenet.optimising",
    "optimise_placement": "apenet.placing",
    "replay": "apenet.run.replay",
    "traffic": "apenet.run.traffic",
    "workload": "apenet.run.workload",
}
"""The home of each name that is imported when it is first used: together they take half a second."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 (functions, types and modules)
    """Imports a module of _MODULES, or a name of _HOMES."""
    if name in _MODULES:
        found: Any = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """All names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})
