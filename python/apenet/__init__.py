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

from apenet import bench, cluster, fit, reproduce
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
from apenet.compare.difference import difference
from apenet.explain import explain, report
from apenet.fit import calibrate
from apenet.machine import Machine, machine, machine_names, machines
from apenet.optimising import optimise
from apenet.placing import PlacementResult, optimise_placement
from apenet.run.program import run
from apenet.run.program_result import RunError, RunResult
from apenet.run.replay import ReplayError, ReplayResult, replay
from apenet.run.traffic import TrafficPoint, TrafficResult, traffic
from apenet.run.workload import WorkloadError, workload
from apenet.study import Study, study
from apenet.study.answer import OptimiseResult

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
