"""The result of a program, from what its session reports."""

from __future__ import annotations

from dataclasses import replace

from apenet import _core
from apenet.machine import Machine
from apenet.run.computation import Choice, Computation
from apenet.run.program_request import RunRequest
from apenet.run.program_result import RankResult, RouteChange, RunResult
from apenet.run.results import PS_PER_US, common_results
from apenet.run.session import SessionOutcome

_OUTCOMES = {
    getattr(_core.Outcome, name): name
    for name in ("completed", "failed", "aborted", "deadlock", "interrupted", "output_closed", "limit")
}


def computed(choice: Choice, computation: Computation, result: RunResult) -> RunResult:
    """The result with what the run charged for computation."""
    charged, warnings = computation.judge(is_complete=result.outcome == "completed")
    note = "" if choice.charge is None else choice.charge.note
    return replace(result, computation=charged, note=note, warnings=(*result.warnings, *warnings))


def _uncharged_cpu_s(report: _core.SessionReport) -> float:
    """The most of a rank. A program that declares its computation has charged what it computes."""
    if any(rank.computed_us > 0 for rank in report.ranks):
        return 0.0
    return max((rank.uncharged_us for rank in report.ranks), default=0.0) * 1e-6


def _idle_rails(machine: Machine, report: _core.SessionReport) -> tuple[str, ...]:
    if machine.rail is not None or report.messages == 0:
        return ()
    return tuple(name for name, count in zip(machine.rails, report.rail_messages, strict=True) if count == 0)


def program_result(request: RunRequest, outcome: SessionOutcome, began: float) -> RunResult:
    """The result of a job of a session; `began` is the wall time at the start."""
    report = outcome.report
    return RunResult(
        exit_status=report.exit_status,
        outcome=_OUTCOMES[report.outcome],
        message=report.message,
        compute=request.compute,
        ranks=tuple(
            RankResult(
                status=rank.status,
                virtual_time_us=round(rank.virtual_us, 6),
                waiting_us=round(rank.waited_us, 6),
                compute_us=round(rank.computed_us, 6),
                library=rank.library,
                used_network=rank.used_network,
                finalised=rank.finalised,
            )
            for rank in report.ranks
        ),
        route_changes=tuple(
            RouteChange(at_us=change.at_ps / PS_PER_US, rank=change.rank, rail=change.rail, routes=change.routes)
            for change in report.route_changes
        ),
        uncharged_cpu_s=_uncharged_cpu_s(report),
        idle_rails=_idle_rails(request.machine, report),
        nodes=tuple(request.nodes),
        grid=tuple(report.grid),
        traffic=tuple(report.traffic),
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        **common_results(request.machine, request.seed, report, report.virtual_ps, began),
    )
