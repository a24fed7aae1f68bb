"""Runs the programs of several jobs, and traces beside them, in one simulation."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, chdir, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from apenet import _core
from apenet.base.errors import InputError, Interrupted
from apenet.base.outfiles import given_path
from apenet.compute.charging import Job as ComputingJob
from apenet.host.mpi_library import MpiChoice, loader_variables
from apenet.host.streams import OutputFolder
from apenet.machine import Machine
from apenet.machine.mapping import Mapping as RankMapping
from apenet.run.computation import Choice, Computation, choose
from apenet.run.folder import OF_SEVERAL_JOBS, Outputs
from apenet.run.limits import time_text, virtual_limit_ps
from apenet.run.program_outcome import computed, program_result
from apenet.run.program_request import RunRequest, program_request, session_options
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
    choice: Choice
    environment: Mapping[str, str]
    directory: Path | None
    out: Path | None
    output: Path | None

    @property
    def computing(self) -> ComputingJob:
        """The program as profiles of computation know it."""
        request = self.request
        return ComputingJob(self.program, request.command[1:], request.ranks, request.size, request.machine)


def plan_program(
    command: Sequence[str],
    *,
    machine: Machine,
    ranks: int,
    ranks_per_node: int,
    mapping: RankMapping,
    mpi: MpiChoice,
    engine: str,
    seed: int,
    start_ps: int,
    compute: str,
    size: str | None,
    environment: Mapping[str, str] | None,
    directory: str | Path | None,
    limit_virtual: str | float | None,
    out: str | Path | None,
    output: str | Path | None,
) -> PlannedProgram:
    """Checks the job. Raises InputError as `apenet.run`."""
    begins_in = None if directory is None else Path(directory).absolute()
    if begins_in is not None and not (begins_in.is_dir() and os.access(begins_in, os.X_OK)):
        raise InputError("directory", directory, "a folder that can be entered")
    with nullcontext() if begins_in is None else chdir(begins_in):
        request, program = program_request(
            command,
            n=ranks,
            machine=machine,
            ranks_per_node=ranks_per_node,
            map=mapping,
            engine=engine,
            mpi=mpi,
            seed=seed,
            compute=compute,
            size=size,
        )
    virtual_limit_ps(limit_virtual)
    request = replace(request, limit_virtual=None if limit_virtual is None else time_text(limit_virtual))
    choice = choose(compute, ComputingJob(program, request.command[1:], request.ranks, request.size, machine))
    if choice.record is not None:
        raise InputError("compute", compute, "none, measured[:SCALE] or a profile: apenet run records one")
    return PlannedProgram(
        request=request,
        program=program,
        mpi=mpi,
        start_ps=start_ps,
        choice=choice,
        environment=environment or {},
        directory=begins_in,
        out=given_path("out", out, "a folder"),
        output=given_path("output", output, "a folder"),
    )


def run_programs(
    machine: Machine,
    description: _core.MachineDescription,
    plans: Sequence[PlannedProgram],
    traces: Sequence[_core.GoalJob],
    *,
    is_kept: bool,
    open_to: int = 0,
) -> tuple[list[RunResult], list[_core.JobReport], Totals]:
    """Runs the programs and the traces together. `is_kept`: the programs' folders are written. `open_to`: run_session.

    Raises Interrupted if a signal ends them.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        outputs, jobs, computations = [], [], []
        for plan in plans:
            out = plan.out if is_kept else None
            inputs = {
                "program": plan.program,
                "machine": plan.request.machine.path,
                "profile": plan.choice.profile,
            }
            outputs.append(stack.enter_context(Outputs(plan.request, out=out, trace=None, inputs=inputs)))
            folder = None
            if is_kept and plan.output is not None:
                folder = stack.enter_context(OutputFolder(plan.output, plan.request.ranks))
            computations.append(stack.enter_context(Computation(plan.choice, plan.computing)))
            jobs.append(_session_job(plan, folder, {**plan.environment, **computations[-1].environment}))
        observation = outputs[0].observation
        observation.network_history = any(one.observation.network_history for one in outputs)
        end = run_session(
            machine, description, jobs, observation, traces=traces, is_to_end=lambda: False, open_to=open_to
        )
        if end.is_interrupted:
            raise Interrupted
        results = [
            computed(plan.choice, computation, program_result(plan.request, outcome, began))
            for plan, computation, outcome in zip(plans, computations, end.outcomes, strict=True)
        ]
        mark = (OF_SEVERAL_JOBS,) if len(plans) + len(traces) > 1 else ()
        results = [
            replace(
                one.keep(replace(result, warnings=(*result.warnings, *mark)), computation), warnings=result.warnings
            )
            for one, computation, result in zip(outputs, computations, results, strict=True)
        ]
        for job in jobs:
            if job.folder is not None:
                job.folder.check_room()
    of_all = set.intersection(*(set(result.warnings) for result in results))
    general = tuple(text for text in results[0].warnings if text in of_all)
    own = [replace(one, warnings=tuple(text for text in one.warnings if text not in of_all)) for one in results]
    first = end.outcomes[0].report
    hashes = [result.trace_hash for result in results] + [f"{end.traces.trace_hash:016x}"] * bool(traces)
    totals = Totals(
        messages=sum(result.messages for result in results) + end.traces.messages,
        bytes=sum(result.bytes for result in results) + end.traces.bytes,
        trace_hash=int(hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16], 16),
        links=first.links,
        ports=first.ports,
        faults=first.faults,
        network=None,
        warnings=general,
    )
    return own, end.traces.traces, totals


def _session_job(plan: PlannedProgram, folder: OutputFolder | None, extra: Mapping[str, str]) -> SessionJob:
    options = session_options(plan.request.machine)
    options.start_ps = plan.start_ps
    options.compute, options.compute_scale = plan.choice.mode, plan.choice.scale
    options.limit_virtual_ps = virtual_limit_ps(plan.request.limit_virtual)
    return SessionJob(
        program=plan.program,
        command=plan.request.command,
        nodes=plan.request.nodes,
        options=options,
        capture=True,
        extra=extra,
        loaded=loader_variables("intel" if plan.request.mpi == "intel" else plan.mpi),
        folder=folder,
        directory=plan.directory,
        reads_input=False,
    )
