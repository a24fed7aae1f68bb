"""Replays traces on simulated machines, without the programs that made them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apenet import _core
from apenet.base.errors import ApenetError, InputError, from_core, texts
from apenet.base.escape import escape_line
from apenet.base.foreign import GOAL_TRACE, recognise_text
from apenet.base.infiles import TooLargeError, UnreadableError, opened_file, printable, read_text
from apenet.base.numbers import checked_seed
from apenet.machine import BOTH, ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import Mapping, map_file, map_ranks
from apenet.run import folder as runfolder
from apenet.run.long_runs import require_ends, require_soon
from apenet.run.results import RanksResult, Request, checked_engine, ranks_results, show_size, show_time, with_flit_time
from apenet.run.settings_effect import warnings_of
from apenet.run.trace_file import trace_filter
from apenet.traces.convert import converted, is_foreign

MOST_UNPACKED_BYTES = 2**36
"""The most bytes of a trace packed by gzip, which is unpacked to a temporary file."""
_MOST_RECOGNISED_BYTES = 2**26


class ReplayError(ApenetError):
    """A trace that deadlocks: the message says what each rank waits for."""


@dataclass(frozen=True, kw_only=True)
class ReplayRequest(Request):
    """The request to replay a trace."""

    trace: str

    def to_json(self) -> dict[str, Any]:
        """The contents of command.json."""
        return {"replay": self.trace, **super().to_json()}


@dataclass(frozen=True, kw_only=True)
class ReplayResult(RanksResult):
    """The result of a replay."""

    trace: str
    operations: int

    def to_json(self) -> dict[str, Any]:
        """The contents of run.json."""
        return {"trace": self.trace, "operations": self.operations, **super().to_json()}


def replay(
    trace: str | Path,
    *,
    machine: Machine | str = "ape16",
    ranks_per_node: int = 1,
    map: Mapping = "linear",  # noqa: A002 (as the option is called)
    engine: str = "packet",
    out: str | Path | None = None,
    trace_out: str | Path | None = None,
    trace_ranks: str | Sequence[int] | None = None,
    trace_from: str | float | None = None,
    trace_to: str | float | None = None,
    trace_least: str | int | None = None,
    seed: int = 1,
    faults: Sequence[str] = (),
    allow_long: bool = False,
) -> ReplayResult:
    """Replays a trace (GOAL, OTF2 or Chakra), with ranks placed as by `apenet.run`.

    `out`, `trace_out` and `faults` correspond to `out`, `trace` and `faults` of `apenet.run`, `trace_ranks`,
    `trace_from`, `trace_to` and `trace_least` to those of the same name. Raises InputError for a
    file that is not GOAL (it names the line), and for messages that would take hours unless `allow_long`; ReplayError
    if ranks wait for ever, and PartitionError if faults leave no path.
    """
    chosen = (read_machine(machine) if isinstance(machine, str) else machine).with_faults(*texts("faults", faults))
    chosen_events = trace_filter(trace_out, trace_ranks, trace_from, trace_to, trace_least)
    checked_engine(engine)
    seed = checked_seed(seed)
    began = time.monotonic()
    file = Path(trace)
    schedule, notes = _read(file)
    nodes = map_ranks(chosen, schedule.rank_count, ranks_per_node, map)
    sent = schedule.traffic()[3] if not chosen.topology.has_routers else ()
    require_ends(chosen, int(max(sent, default=0)), "trace", printable(file))
    if not allow_long:
        description = chosen.description(seed, ENGINES[0] if engine == BOTH else engine)
        packet_hops = _core.count_goal_packet_hops(description, list(nodes), schedule).all
        require_soon(packet_hops, "messages", "trace", printable(file), "a shorter trace or smaller messages")
    request = ReplayRequest(
        trace=str(trace),
        machine=chosen,
        ranks=schedule.rank_count,
        ranks_per_node=ranks_per_node,
        mapping=str(map) if isinstance(map, str | Path) else "given",
        nodes=tuple(nodes),
        engine=engine,
        seed=seed,
    )
    inputs = {"the GOAL file": file, "machine": chosen.path, "map": map_file(map)}
    with runfolder.Outputs(request, out=out, trace=trace_out, trace_filter=chosen_events, inputs=inputs) as outputs:
        result = _replayed(request, schedule, outputs.observation, began)
        result = replace(result, warnings=(*result.warnings, *notes))
        if engine == BOTH:
            flit = _replayed(replace(request, engine=ENGINES[1]), schedule, _core.ObservationOptions(), began)
            result = with_flit_time(result, flit.virtual_time_us)
        return outputs.keep(result)


def read_trace(trace: str | Path) -> _core.GoalSchedule:
    """Reads a trace: GOAL, OTF2 or Chakra. Raises InputError, which names the line."""
    return _read(Path(trace))[0]


def _read(file: Path) -> tuple[_core.GoalSchedule, list[str]]:
    """A trace, and what it leaves open."""
    anchor = file / "traces.otf2"
    if anchor.is_file():
        raise InputError("trace", str(file), f"a file: {printable(anchor)} is the anchor file of an OTF2 trace")
    if is_foreign(file):
        with converted(file) as (goal, notes):
            try:
                return _core.read_goal(goal, f"{printable(file)}, as GOAL"), notes
            except ValueError as error:  # sizes and times beyond those of GOAL
                raise from_core(error) from error
    try:
        with opened_file(file, MOST_UNPACKED_BYTES) as opened:
            return _core.read_goal(opened, printable(file)), []
    except UnreadableError as error:
        raise InputError("trace", str(file), f"a GOAL file that can be read ({error})") from error
    except ValueError as error:
        found = _other_content(file)
        if found is not None:
            raise InputError("trace", str(file), f"a GOAL file: {found}") from error
        raise from_core(error) from error


def _other_content(file: Path) -> str | None:
    """The content of a file that is no GOAL trace, if it is recognised."""
    try:
        text = read_text(file, _MOST_RECOGNISED_BYTES)
    except TooLargeError:
        return None
    except UnreadableError as error:
        return str(error)
    if not text.strip():
        return "the file is empty"
    found = recognise_text(text)
    return None if found is None or found.name == GOAL_TRACE else str(found)


def _replayed(
    request: ReplayRequest, schedule: _core.GoalSchedule, observed: _core.ObservationOptions, began: float
) -> ReplayResult:
    try:
        report = _core.replay_goal(request.description(), list(request.nodes), schedule, observed)
    except ValueError as error:
        raise request.machine.refused(error) from error
    except _core.ReplayDeadlock as error:
        raise ReplayError(str(error)) from error
    common = ranks_results(request.machine, request.seed, report, report.finish_ps, began)
    result = ReplayResult(trace=request.trace, operations=report.operations, **common)
    if report.operations == 0:
        return replace(result, warnings=(*result.warnings, "the trace has no operations: nothing was simulated"))
    return replace(result, warnings=(*result.warnings, *warnings_of(request, schedule, result, is_replay=True)))


def summary(result: ReplayResult) -> str:
    """The short report that `apenet replay` prints."""
    ends = ", ".join(
        f"{name} {show_time(float(value))}"
        for name, value in (
            ("first", result.finish_us.min()),
            ("mean", result.finish_us.mean()),
            ("last", result.finish_us.max()),
        )
    )
    lines = [
        f"{escape_line(str(result.trace))} on {result.where}, {len(result.finish_us)} ranks: "
        f"{show_time(result.virtual_time_us)} of virtual time",
        f"ranks end: {ends}",
        f"{result.operations} operations, {result.messages} messages, {show_size(result.bytes)}; "
        f"{result.busiest_text}; {result.wall_time_s:.2f} s of wall time",
        *(text for text in (result.flit_text, result.faults.summary()) if text),
        *(f"warning: {warning}" for warning in result.warnings),
    ]
    return "\n".join(lines)
