"""Runs the programs of several jobs in one simulation."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from apenet import _core
from apenet.base.errors import Interrupted
from apenet.base.outfiles import given_path
from apenet.host.mpi_library import MpiChoice, loader_variables
from apenet.host.streams import OutputFolder
from apenet.machine import Machine
from apenet.machine.mapping import Mapping
from apenet.run.folder import OF_SEVERAL_JOBS, Outputs
from apenet.run.program import RunRequest, program_request, program_result, session_options
from apenet.run.program_result import RunResult
from apenet.run.results import Totals
from apenet.run.session import SessionJob, run_session


@dataclass(frozen=True, kw_only=True)
class PlannedProgram:
    """A program on its nodes. `request` is what `apenet run` would ask for."""

    request: RunRequest
    program: Path
    mpi: MpiChoice
    start_ps: int
    out: Path | None
    output: Path | None


def plan_program(
    command: Sequence[str],
    *,
    machine: Machine,
    ranks: int,
    ranks_per_node: int,
    mapping: Mapping,
    mpi: MpiChoice,
    engine: str,
    seed: int,
    start_ps: int,
    out: str | Path | None,
    output: str | Path | None,
) -> PlannedProgram:
    """Checks the job. Raises InputError as `apenet.run`."""
    request, program = program_request(
        command, n=ranks, machine=machine, ranks_per_node=ranks_per_node, map=mapping, engine=engine, mpi=mpi, seed=seed
    )
    return PlannedProgram(
        request=request,
        program=program,
        mpi=mpi,
        start_ps=start_ps,
        out=given_path("out", out, "a folder"),
        output=given_path("output", output, "a folder"),
    )


def run_programs(
    machine: Machine, description: _core.MachineDescription, plans: Sequence[PlannedProgram], *, is_kept: bool
) -> tuple[list[RunResult], Totals]:
    """Runs the programs together. `is_kept`: their folders are written. Raises Interrupted if a signal ends them."""
    began = time.monotonic()
    with ExitStack() as stack:
        outputs, jobs = [], []
        for plan in plans:
            out = plan.out if is_kept else None
            inputs = {"program": plan.program, "machine": plan.request.machine.path}
            outputs.append(stack.enter_context(Outputs(plan.request, out=out, trace=None, inputs=inputs)))
            folder = None
            if is_kept and plan.output is not None:
                folder = stack.enter_context(OutputFolder(plan.output, plan.request.ranks))
            jobs.append(_session_job(plan, folder))
        observation = outputs[0].observation
        observation.network_history = any(one.observation.network_history for one in outputs)
        outcomes, is_interrupted = run_session(machine, description, jobs, observation, is_to_end=lambda: False)
        if is_interrupted:
            raise Interrupted
        results = [program_result(plan.request, outcome, began) for plan, outcome in zip(plans, outcomes, strict=True)]
        mark = (OF_SEVERAL_JOBS,) if len(plans) > 1 else ()
        results = [
            replace(one.keep(replace(result, warnings=(*result.warnings, *mark))), warnings=result.warnings)
            for one, result in zip(outputs, results, strict=True)
        ]
        for job in jobs:
            if job.folder is not None:
                job.folder.check_room()
    of_all = set.intersection(*(set(result.warnings) for result in results))
    general = tuple(text for text in results[0].warnings if text in of_all)
    own = [replace(one, warnings=tuple(text for text in one.warnings if text not in of_all)) for one in results]
    first = outcomes[0].report
    hashes = " ".join(result.trace_hash for result in results)
    totals = Totals(
        messages=sum(result.messages for result in results),
        bytes=sum(result.bytes for result in results),
        trace_hash=int(hashlib.sha256(hashes.encode()).hexdigest()[:16], 16),
        links=first.links,
        ports=first.ports,
        faults=first.faults,
        network=None,
        warnings=general,
    )
    return own, totals


def _session_job(plan: PlannedProgram, folder: OutputFolder | None) -> SessionJob:
    options = session_options(plan.request.machine)
    options.start_ps = plan.start_ps
    return SessionJob(
        program=plan.program,
        command=plan.request.command,
        nodes=plan.request.nodes,
        options=options,
        capture=True,
        extra={},
        loaded=loader_variables("intel" if plan.request.mpi == "intel" else plan.mpi),
        folder=folder,
        reads_input=False,
    )
