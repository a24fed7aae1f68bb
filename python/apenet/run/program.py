"""Runs a real program on a simulated machine, in virtual time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from apenet import _core
from apenet._core import version as __version__
from apenet.base.errors import InputError, Interrupted, NotWrittenError, texts
from apenet.base.numbers import checked_seed
from apenet.base.outfiles import given_path
from apenet.compute.charging import Job
from apenet.host.mpi_library import MpiChoice, loader_variables, refused_progress_threads
from apenet.host.streams import OutputFolder
from apenet.machine import BOTH, ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import BY_PROGRAM, Mapping, map_file
from apenet.run import folder as runfolder
from apenet.run.computation import Computation, choose
from apenet.run.first_grid import LINEAR, map_by_first_grid
from apenet.run.limits import WallLimit, time_text, virtual_limit_ps
from apenet.run.packet_file import has_sockets, packet_file
from apenet.run.program_outcome import computed, program_result
from apenet.run.program_request import STALL_TIMEOUT_S, RunRequest, program_request, session_options
from apenet.run.program_result import RunError, RunResult, failed_ranks
from apenet.run.recording import Recording
from apenet.run.results import PS_PER_US, checked_engine, with_flit_time
from apenet.run.session import SessionJob, run_session
from apenet.run.settings_effect import WatchedSettings
from apenet.run.trace_file import trace_filter

_NO_PROGRESS_THREAD = (
    "beside its progress thread, Intel MPI waits by reading memory, which the order of threads cannot see"
)


def run(
    command: Sequence[str | Path],
    *,
    n: int,
    machine: Machine | str = "ape16",
    ranks_per_node: int = 1,
    map: Mapping = "linear",  # noqa: A002 (as the option is called)
    compute: str = "none",
    size: str | None = None,
    engine: str = "packet",
    mpi: MpiChoice = "auto",
    out: str | Path | None = None,
    trace: str | Path | None = None,
    trace_ranks: str | Sequence[int] | None = None,
    trace_from: str | float | None = None,
    trace_to: str | float | None = None,
    trace_least: str | int | None = None,
    pin: bool | None = None,
    trap_tsc: bool = False,
    ip: bool = False,
    pcap: str | Path | None = None,
    pcap_node: int | None = None,
    seed: int = 1,
    capture: bool = False,
    environment: dict[str, str] | None = None,
    record: str | Path | None = None,
    faults: Sequence[str] = (),
    stall_timeout: str | float = STALL_TIMEOUT_S,
    tag_output: bool = False,
    output: str | Path | None = None,
    limit_wall: str | float | None = None,
    limit_virtual: str | float | None = None,
    check: bool = True,
    progress: Callable[[float, int], None] | None = None,
) -> RunResult:
    """Runs a program with n ranks on a simulated machine, and returns when all its processes have ended.

    Placement and machine: as in `apenet run` (`map="cart:auto"` runs the program twice); `faults` are links and nodes
    that die and revive (`Machine.with_faults`).

    compute: `none`, `measured[:SCALE]`, `record:FILE`, or the FILE[:SCALE] of a profile.
    size: size of a rank's part of the problem, for profiles.
    engine: `packet`, `flit` or `both`. With `both` the program runs again with the flit engine; the output of that run
        is dropped, and its time is in the result.
    out: folder for the run's files; the result then also has network statistics over time.
    record: file for a GOAL trace, the input of `apenet.replay`.
    trace: file for a timeline, which ui.perfetto.dev opens. `trace_ranks` ("0-3,8"), `trace_from`, `trace_to` (virtual
        times) and `trace_least` (bytes) choose its events.
    capture: puts the program's output into the result; otherwise it goes to this process's streams.
    output: folder for the program's output, one file per rank and stream (rank-0003.out).
    tag_output: puts the rank in front of each line, `[3] `.
    pin: true: one core, false: all; by default the run chooses by how its ranks communicate and compute. The results
        are the same.
    ip: the ranks' sockets are those of the simulated nodes (docs/apis/ip.md); without it they are the host's.
    pcap: file for the packets of these sockets, which Wireshark and tcpdump open: each packet when it leaves its node,
        or with `pcap_node` those that this node sends and receives.
    trap_tsc: the processor's cycle counter (rdtsc) is virtual, too, at one tick per nanosecond.
    stall_timeout: wall time without progress, in seconds or as `30s`, after which the run ends as a deadlock
        (docs/reference/failures.md).
    limit_wall: wall time after which the run ends, in seconds or as `90s`.
    limit_virtual: virtual time at which it ends, in seconds or as `10ms`.
    progress: called many times a second while the run lasts, with its virtual time in microseconds and its messages.
    check: false: a program that fails gives a result whose `ok` is false.

    Raises InputError and MachineError for invalid input, and RunError for a program that does not complete with
    status 0: it has the result, the status, the ranks and the end of standard error.
    """
    chosen = (read_machine(machine) if isinstance(machine, str) else machine).with_faults(*texts("faults", faults))
    chosen_events = trace_filter(trace, trace_ranks, trace_from, trace_to, trace_least)
    options = session_options(chosen, pin, stall_timeout)
    limit = WallLimit(limit_wall)
    options.limit_virtual_ps = virtual_limit_ps(limit_virtual)
    options.tag_output, options.has_sockets = tag_output, has_sockets(ip, chosen, compute, pcap)
    output_path = given_path("output", output, "a folder")
    if output_path is not None and (tag_output or capture):
        raise InputError("output", output_path, "neither tags nor capture with it: each rank has files of its own")
    if checked_engine(engine) == BOTH and compute.startswith("record:"):
        raise InputError("engine", engine, f"{' or '.join(ENGINES)} with --compute {compute}")
    if engine == BOTH:
        chosen.description(checked_seed(seed), ENGINES[1])  # refused where there is no network
    is_by_program = map == BY_PROGRAM
    if is_by_program:
        map = _map_by_program(  # noqa: A001 (as the option is called)
            command,
            n=n,
            machine=chosen,
            ranks_per_node=ranks_per_node,
            mpi=mpi,
            trap_tsc=trap_tsc,
            seed=seed,
            options=session_options(chosen, pin, stall_timeout),
            environment=environment or {},
            limit=limit,
        )
    request, program = program_request(
        command,
        n=n,
        machine=chosen,
        ranks_per_node=ranks_per_node,
        map=map,
        compute=compute,
        size=size,
        engine=engine,
        mpi=mpi,
        trap_tsc=trap_tsc,
        seed=seed,
        ip=ip,
    )
    request = replace(
        request,
        limit_virtual=None if limit_virtual is None else time_text(limit_virtual),
        limit_wall=None if limit_wall is None else time_text(limit_wall),
    )
    job = Job(program, request.command[1:], request.ranks, request.size, chosen)
    choice = choose(compute, job)
    options.compute, options.compute_scale = choice.mode, choice.scale
    inputs = {"program": program, "machine": chosen.path, "map": map_file(map), "profile": choice.profile}
    with (
        runfolder.Outputs(
            request,
            out=out,
            trace=trace,
            trace_filter=chosen_events,
            packets=packet_file(pcap, pcap_node),
            record=record,
            profile=choice.record,
            inputs=inputs,
        ) as outputs,
        Computation(choice, job) as computation,
        WatchedSettings(chosen, outputs.recording) as watched,
    ):
        refused = refused_progress_threads(request.mpi)
        extra = {
            **(environment or {}),
            **dict.fromkeys(refused, "0"),
            **_own_environment(trap_tsc, outputs.recording),
            **computation.environment,
            **watched.environment,
        }
        lost = None
        with nullcontext() if output_path is None else OutputFolder(output_path, request.ranks) as folder:
            session_job = SessionJob(
                program=program,
                command=request.command,
                nodes=request.nodes,
                options=outputs.with_packets(options),
                capture=capture,
                extra=extra,
                loaded=loader_variables("intel" if request.mpi == "intel" else mpi),
                folder=folder,
            )
            result = _run(
                request,
                session_job,
                outputs.observation,
                measure=computation.measure_if_due,
                limit=limit,
                progress=progress,
            )
            try:
                if folder is not None:
                    folder.check_room()
            except NotWrittenError as error:
                lost = error
        result = _with_library_checked(request, result)
        ignored = (f"{name} = '{value}' is ignored: {_NO_PROGRESS_THREAD}" for name, value in refused.items())
        result = replace(result, warnings=(*result.warnings, *ignored))
        if result.ok:
            ineffective = watched.warnings(request, result)
            result = replace(result, warnings=(*result.warnings, *ineffective))
        if outputs.recording is not None:
            result = _recorded(request, outputs.recording, result)
        result = computed(choice, computation, result)
        if is_by_program:
            result = _placed(result, str(map))
        if engine == BOTH and result.ok:
            again = run(
                command,
                n=n,
                machine=chosen,
                ranks_per_node=ranks_per_node,
                map=map,
                compute=compute,
                size=size,
                engine=ENGINES[1],
                mpi=mpi,
                pin=pin,
                trap_tsc=trap_tsc,
                ip=ip,
                seed=seed,
                capture=True,
                environment=environment,
                stall_timeout=stall_timeout,
                limit_wall=limit_wall,
                limit_virtual=limit_virtual,
            )
            result = with_flit_time(result, again.virtual_time_us)
        result = outputs.keep(result, computation, lost)
    return _checked(result, folder) if check else result


def _map_by_program(
    command: Sequence[str | Path],
    *,
    n: int,
    machine: Machine,
    ranks_per_node: int,
    mpi: MpiChoice,
    trap_tsc: bool,
    seed: int,
    options: _core.SessionOptions,
    environment: dict[str, str],
    limit: WallLimit,
) -> str:
    """The placement that the program's first grid asks for. Raises InputError, and Interrupted."""
    if machine.allocation.torus is None:
        raise InputError("map", BY_PROGRAM, f"a machine that is a torus or a mesh; {machine.allocation.name} is not")
    request, program = program_request(
        command,
        n=n,
        machine=machine,
        ranks_per_node=ranks_per_node,
        map=LINEAR,
        engine=ENGINES[0],
        mpi=mpi,
        trap_tsc=trap_tsc,
        seed=seed,
    )
    job = SessionJob(
        program=program,
        command=request.command,
        nodes=request.nodes,
        options=options,
        capture=True,
        extra={
            **environment,
            **dict.fromkeys(refused_progress_threads(request.mpi), "0"),
            **_own_environment(trap_tsc, None),
        },
        loaded=loader_variables("intel" if request.mpi == "intel" else mpi),
        reads_input=False,
    )
    return map_by_first_grid(request, job, limit.is_over)


def _placed(result: RunResult, mapping: str) -> RunResult:
    """The result, which says what `cart:auto` was."""
    if mapping == LINEAR:
        warning = f"map = {BY_PROGRAM}: the program makes no grid of all its ranks by MPI_Cart_create: placed as linear"
        return replace(result, warnings=(*result.warnings, warning))
    note = f"--map {BY_PROGRAM} is {mapping}, the grid of the program's first MPI_Cart_create"
    return replace(result, note="; ".join(text for text in (result.note, note) if text))


def _checked(result: RunResult, folder: OutputFolder | None) -> RunResult:
    """Raises RunError for a failed program, and Interrupted if a signal ended the run."""
    if result.outcome == "interrupted":
        raise Interrupted
    if result.ok:
        return result
    failed = failed_ranks(result)
    if folder is not None and failed:
        raise RunError(result, folder.end_of_errors(failed[0]))
    raise RunError(result, result.stderr or b"")


def _with_library_checked(request: RunRequest, result: RunResult) -> RunResult:
    """Warns if a program has a path of its own to another library of the same ABI than Intel MPI's."""
    others = {rank.library for rank in result.ranks if rank.library and not rank.library.startswith("Intel")}
    if request.mpi != "intel" or not others:
        return result
    warning = f"mpi = intel, but the program found {', '.join(sorted(others))}: its own path leads there"
    return replace(result, warnings=(*result.warnings, warning))


def _own_environment(trap_tsc: bool, recording: Recording | None) -> dict[str, str]:
    return {
        **({"APENET_TRAP_TSC": "1"} if trap_tsc else {}),
        **(recording.environment if recording is not None else {}),
    }


def _recorded(request: RunRequest, recording: Recording, result: RunResult) -> RunResult:
    rail = "" if request.machine.rail is None else f", rail {request.machine.rail}"
    heading = (
        f"{__version__}: {request.ranks} ranks on {request.machine.name}{rail}, compute {request.compute}, "
        f"seed {request.seed}"
    )
    if result.outcome != "completed":
        heading += f", stopped ({result.outcome})"
    warnings = recording.write(request.ranks, heading, is_complete=result.outcome == "completed")
    return replace(result, warnings=(*result.warnings, *warnings))


def _run(
    request: RunRequest,
    job: SessionJob,
    observation: _core.ObservationOptions,
    *,
    measure: Callable[[], None],
    limit: WallLimit,
    progress: Callable[[float, int], None] | None,
) -> RunResult:
    began = time.monotonic()

    def is_to_end() -> bool:
        measure()
        return limit.is_over()

    def tell(reached: _core.SessionProgress) -> None:
        if progress is not None:
            progress(reached.virtual_ps / PS_PER_US, reached.messages)

    end = run_session(request.machine, request.description(), [job], observation, is_to_end=is_to_end, progress=tell)
    result = program_result(request, end.outcomes[0], began)
    return result if end.is_interrupted else limit.judge(result)
