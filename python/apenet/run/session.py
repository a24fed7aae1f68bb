"""Runs the programs of one or several jobs, and traces beside them, in a session of the core."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from apenet import _core
from apenet.base.calls import is_of_host, memory_file, named_call, refused_by_host
from apenet.host import launch
from apenet.host.applications import as_applications, has_several
from apenet.host.client_server import as_client_and_server, is_client_server
from apenet.host.openmpi_launcher import OpenMpiLauncher
from apenet.host.streams import OutputFolder
from apenet.machine import Machine


@dataclass(frozen=True, kw_only=True)
class SessionJob:
    """A program, and how its ranks are started.

    `extra`: variables for its environment. `loaded`: those that lead to its MPI library. `capture`: its output goes to
    the outcome instead of this process's streams. `directory`: where its ranks begin, instead of the current folder.
    """

    program: Path
    command: Sequence[str]
    nodes: Sequence[int]
    options: _core.SessionOptions
    capture: bool
    extra: Mapping[str, str]
    loaded: Mapping[str, str]
    folder: OutputFolder | None = None
    directory: Path | None = None
    reads_input: bool = True


@dataclass(frozen=True, kw_only=True)
class SessionOutcome:
    """The report of a job, and its output if it was captured."""

    report: _core.SessionReport
    stdout: bytes | None = field(repr=False)
    stderr: bytes | None = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class SessionEnd:
    """The outcomes of the jobs, what the traces did, and whether a signal ended them."""

    outcomes: list[SessionOutcome]
    traces: _core.TracesReport
    is_interrupted: bool


def run_session(
    machine: Machine,
    description: _core.MachineDescription,
    jobs: Sequence[SessionJob],
    observation: _core.ObservationOptions,
    *,
    traces: Sequence[_core.GoalJob] = (),
    is_to_end: Callable[[], bool],
    progress: Callable[[_core.SessionProgress], None] | None = None,
    open_to: int = 0,
) -> SessionEnd:
    """Runs all to their end. Calls `is_to_end` many times a second; if it returns true, all are ended.

    `open_to`: the machine is an open one, of so many ranks of a job on a node; then there are no traces.
    """
    with ExitStack() as stack:
        prepared = [PreparedJob(job, stack) for job in jobs]
        described = [_core.SessionJob(list(job.nodes), job.options) for job in jobs]
        with refusals_named(machine):
            if open_to:
                session = _core.Session(description, open_to)
                for one in described:
                    session.add(one, True)
            else:
                session = _core.Session(description, described, list(traces), observation)
        started = [one.start(session.mapping_path(number), stack) for number, one in enumerate(prepared)]
        seen = stack.enter_context(launch.interrupts())

        def is_interrupted() -> bool:
            is_over = is_to_end()
            for one in prepared:
                one.openmpi.check()
            if progress is not None:
                progress(session.progress)
            return bool(seen) or is_over

        with refusals_named(machine):
            reports = _run_open(session, started, is_interrupted) if open_to else session.run(started, is_interrupted)
        outcomes = [one.outcome(report) for one, report in zip(prepared, reports, strict=True)]
        return SessionEnd(outcomes=outcomes, traces=session.report_on_traces(), is_interrupted=bool(seen))


def _run_open(
    session: _core.Session, started: Sequence[_core.StartedJob], is_interrupted: Callable[[], bool]
) -> list[_core.SessionReport]:
    for number, one in enumerate(started):
        session.start(number, one)
    left = set(range(len(started)))
    while left:
        left -= set(session.serve(is_interrupted, lambda: False))
    return [session.report(number) for number in range(len(started))]


@contextmanager
def refusals_named(machine: Machine) -> Iterator[None]:
    """Turns what the core refuses into the errors of this package."""
    try:
        yield
    except ValueError as error:
        raise machine.refused(error) from error
    except RuntimeError as error:  # perhaps the core's system_error: memory, or descriptors
        if not is_of_host(error):
            raise
        raise refused_by_host(error) from error


class PreparedJob:
    """What a job needs besides the session."""

    def __init__(self, job: SessionJob, stack: ExitStack) -> None:
        self._job = job
        self._sinks = _Sinks(stack, job.capture)
        job.options.output_fd, job.options.error_fd = self._sinks.descriptors
        job.options.set_program(job.program)
        self._lifeline, _ = _pipe(stack)
        self.openmpi = OpenMpiLauncher(job.program, len(job.nodes), stack)
        job.options.start_launcher = self.openmpi.start

    def start(self, mapping_path: str, stack: ExitStack) -> _core.StartedJob:
        """Starts the ranks for a session of this process."""
        launched = self.launch(mapping_path, stack)
        ranks = [_core.RankProcess(rank.process_id, *rank.descriptors) for rank in launched.ranks]
        return _core.StartedJob(ranks, launched.supervisor.process_id, launched.supervisor.fileno())

    def launch(self, mapping_path: str, stack: ExitStack) -> launch.Launched:
        """Starts the ranks. They end with the stack."""
        job, count = self._job, len(self._job.nodes)
        environment = launch.rank_environment(
            mapping_path,
            self._lifeline,
            job.program,
            job.loaded,
            job.extra,
            ranks=count,
            cores=len(os.sched_getaffinity(0)) if job.options.cores == _core.CoreUse.all else 0,
            has_sockets=job.options.has_sockets,
        )
        self.openmpi.environment = environment
        command: tuple[Path, Sequence[str]] = (job.program, job.command)
        if has_several(job.command):
            command = as_applications(job.command, count)
        elif is_client_server(job.program, count):
            command = as_client_and_server(*command)
        with nullcontext() if job.directory is None else chdir(job.directory):
            launched = launch.start_ranks(*command, count, environment, job.folder, reads_input=job.reads_input)
        stack.callback(launched.end)
        return launched

    def outcome(self, report: _core.SessionReport) -> SessionOutcome:
        """What the job has done, with its output if that is captured."""
        os.write(self._job.options.error_fd, self.openmpi.words())
        stdout, stderr = self._sinks.contents()
        return SessionOutcome(report=report, stdout=stdout, stderr=stderr)


def _pipe(stack: ExitStack) -> tuple[int, int]:
    with named_call("pipe"):
        ends = os.pipe()
    for descriptor in ends:
        stack.callback(os.close, descriptor)
    return ends


class _Sinks:
    """The destination of the ranks' output: this process's streams, or memory."""

    def __init__(self, stack: ExitStack, capture: bool) -> None:
        self._files = []
        if capture:
            for name in ("stdout", "stderr"):
                self._files.append(stack.enter_context(os.fdopen(memory_file(f"apenet-{name}"), "r+b")))
            self.descriptors = (self._files[0].fileno(), self._files[1].fileno())
        else:
            sys.stdout.flush()
            sys.stderr.flush()
            self.descriptors = (1, 2)

    def contents(self) -> tuple[bytes | None, bytes | None]:
        """The captured output."""
        if not self._files:
            return None, None
        for file in self._files:
            file.seek(0)
        return self._files[0].read(), self._files[1].read()
