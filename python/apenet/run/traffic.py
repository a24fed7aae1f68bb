"""Synthetic traffic on a machine's network without cards: latency over load.

`apenet.traffic("iq-router-v1", loads="0.1:0.8:0.1", engine="flit")`; the same as `apenet traffic`. A load is
the fraction of a link that every node offers: flits per node and flit time. Latencies are in cycles of the router's
clock.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsFloat, cast

from apenet import _core
from apenet._core import version as __version__
from apenet.base.errors import InputError, texts
from apenet.base.gather import gather_warnings
from apenet.base.numbers import checked_seed, whole
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.run.long_runs import require_soon

__all__ = ["PATTERNS", "TrafficPoint", "TrafficResult", "most_load", "parse_loads", "traffic"]

PATTERNS: tuple[str, ...] = tuple(_core.traffic_patterns())
MOST_POINTS = 1000
MOST_FLITS = 65535
MOST_CYCLES = 10**9
WARMUP_CYCLES, MEASURE_CYCLES, DRAIN_CYCLES = 5000, 7500, 25000


@dataclass(frozen=True)
class TrafficPoint:
    """One load. Latencies and hops are averages over the packets generated in the window.

    With `measure_queued` also over those that were generated before it and still queued at their sources.
    """

    offered: float
    accepted: float
    least_accepted: float
    most_accepted: float
    packet_latency_cycles: float
    network_latency_cycles: float
    min_latency_cycles: float
    max_latency_cycles: float
    hops: float
    saturated: bool
    packets: int

    def to_json(self) -> dict[str, Any]:
        """The object of this point in what `apenet traffic --json` prints."""
        return dict(vars(self))


@dataclass(frozen=True)
class TrafficResult:
    """A sweep over loads."""

    machine: str
    settings: tuple[str, ...]
    engine: str
    pattern: str
    packet_flits: int
    seed: int
    warmup_cycles: int
    measure_cycles: int
    measure_queued: bool
    cycle_ps: float
    points: tuple[TrafficPoint, ...]
    warnings: tuple[str, ...]
    partition: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet traffic --json` prints."""
        apart = ("points", "warnings", "partition")
        conditions = {name: value for name, value in vars(self).items() if name not in apart}
        return {
            **conditions,
            **({} if self.partition is None else {"partition": self.partition}),
            "settings": list(self.settings),
            "version": __version__,
            "points": [point.to_json() for point in self.points],
            "warnings": list(self.warnings),
        }

    def to_table(self) -> str:
        """The table for users: a header, and one line per load."""
        where = self.machine if self.partition is None else f"{self.machine}, partition {self.partition}"
        lines = [
            f"# apenet traffic, {where}, engine {self.engine}, pattern {self.pattern}, "
            f"packets of {self.packet_flits} flits, cycle {self.cycle_ps:g} ps",
            f"# {'offered':>8} {'accepted':>9} {'packet':>10} {'network':>10} {'hops':>7}",
            f"# {'flits per node':>18} {'latency (cycles)':>21}",
        ]
        for point in self.points:
            state = ""
            if point.saturated:
                state = f"  saturated: nodes {point.least_accepted:.3g} to {point.most_accepted:.3g}"
            lines.append(
                f"{point.offered:10.4g} {point.accepted:9.4f} {point.packet_latency_cycles:10.2f} "
                f"{point.network_latency_cycles:10.2f} {point.hops:7.3f}{state}"
            )
        lines += [f"# warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def most_load(machine: Machine) -> int:
    """The largest load that a node can offer: 1 for each of its injection FIFOs."""
    return cast("int", machine.description().base_units().get("router.injection_fifos", 1))


def parse_loads(text: str, most: int = 1) -> tuple[float, ...]:
    """`0.3`, `0.1,0.2,0.4` or `FIRST:LAST:STEP`, both ends included. Raises InputError.

    `most`: see `most_load`.
    """
    limit = "1" if most == 1 else f"{most}, 1 for each of router.injection_fifos"
    expected = f"a load above 0 and up to {limit}; several with commas, or FIRST:LAST:STEP such as 0.1:0.9:0.1"
    number = r"[0-9]{0,9}\.?[0-9]{1,18}(?:[eE][-+]?[0-9]{1,3})?"
    if re.fullmatch(rf"{number}:{number}:{number}", text):
        first, last, step = (Fraction(part) for part in text.split(":"))
        if step <= 0 or first > last or (last - first) / step > MOST_POINTS:
            raise InputError("load", text, f"FIRST <= LAST, and at most {MOST_POINTS} steps of more than 0")
        count = int((last - first) / step) + 1
        loads = tuple(float(first + step * i) for i in range(count))
    elif re.fullmatch(rf"{number}(,{number})*", text):
        loads = tuple(float(part) for part in text.split(","))
    else:
        raise InputError("load", text, expected)
    for load in loads:
        if not 0 < load <= most:
            raise InputError("load", load, expected)
    return loads


def _as_text(load: float) -> str:
    """A load with all its digits; `parse_loads` reports values that are no numbers."""
    return repr(float(load)) if isinstance(load, SupportsFloat) and not isinstance(load, bool) else repr(load)


def traffic(
    machine: Machine | str,
    *,
    loads: str | Sequence[float] = (0.1,),
    pattern: str = "uniform",
    packet_flits: int = 1,
    engine: str = "packet",
    seed: int = 1,
    warmup_cycles: int = WARMUP_CYCLES,
    measure_cycles: int = MEASURE_CYCLES,
    drain_cycles: int = DRAIN_CYCLES,
    measure_queued: bool = False,
    allow_long: bool = False,
    settings: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> TrafficResult:
    """Runs synthetic traffic at each load, each on a fresh network.

    `measure_queued` also measures packets that were generated before the window and still queued at their sources
    when it began, as BookSim2 does: beyond saturation the average latency depends on it.

    `progress` is called with the number of loads done. Raises InputError or MachineError for invalid input, and
    InputError for what would take hours unless `allow_long`.
    """
    settings = texts("settings", settings)
    chosen = read_machine(machine, settings) if isinstance(machine, str) else machine.with_settings(*settings)
    if pattern not in PATTERNS:
        close = difflib.get_close_matches(pattern, PATTERNS, n=1, cutoff=0.5)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        raise InputError("pattern", pattern, "one of " + ", ".join(PATTERNS) + hint)
    checked = parse_loads(loads if isinstance(loads, str) else ",".join(map(_as_text, loads)), most_load(chosen))
    if not chosen.topology.has_routers:
        raise InputError("machine", chosen.name, "a machine with a network: every topology but none")
    packet_flits = whole("packet_flits", packet_flits, 1, MOST_FLITS, f"a whole number from 1 to {MOST_FLITS}")
    seed = checked_seed(seed)
    cycles = _checked_cycles(warmup_cycles, measure_cycles, drain_cycles)
    description = chosen.description(engine=engine)
    points: list[TrafficPoint] = []
    warnings: list[list[str]] = []
    every = [_options(pattern, load, packet_flits, seed, cycles) for load in checked]
    if (part := chosen.partition) is not None:
        for options in every:
            options.set_partition(list(part.nodes), list(part.extents))
    if not allow_long:
        _require_soon(chosen, description.network, every)
    for options in every:
        options.measures_queued = measure_queued
        try:
            point = _core.run_traffic(description.network, options)
        except ValueError as error:
            raise chosen.refused(error) from error
        points.append(_point(point))
        warnings.append(point.warnings)
        if progress is not None:
            progress(len(points))
    return TrafficResult(
        machine=chosen.name,
        settings=chosen.settings,
        engine=engine,
        pattern=pattern,
        packet_flits=packet_flits,
        seed=seed,
        warmup_cycles=cycles["warmup_cycles"],
        measure_cycles=cycles["measure_cycles"],
        measure_queued=measure_queued,
        cycle_ps=1e12 / cast("int", description.base_units()["router.clock_mhz"]),
        points=tuple(points),
        warnings=gather_warnings(warnings),
        partition=None if part is None else part.text,
    )


def _require_soon(machine: Machine, network: _core.NetworkDescription, every: Sequence[_core.TrafficOptions]) -> None:
    packet_hops = 0.0
    for options in every:
        try:
            packet_hops += _core.count_link_crossings(network, options)
        except ValueError as error:
            raise machine.refused(error) from error
    loads = f"{every[0].load:g}" if len(every) == 1 else f"{every[0].load:g} to {every[-1].load:g}"
    require_soon(packet_hops, "packets", "load", loads, "fewer loads, a shorter --measure or a smaller machine")


def _checked_cycles(warmup: int, measure: int, drain: int) -> dict[str, int]:
    given = {"warmup_cycles": (warmup, 0), "measure_cycles": (measure, 1), "drain_cycles": (drain, 0)}
    return {
        name: whole(name, value, least, MOST_CYCLES, f"a whole number from {least} to {MOST_CYCLES}")
        for name, (value, least) in given.items()
    }


def _options(pattern: str, load: float, packet_flits: int, seed: int, cycles: dict[str, int]) -> _core.TrafficOptions:
    options = _core.TrafficOptions()
    options.pattern = pattern
    options.load = load
    options.packet_flits = packet_flits
    options.seed = seed
    for name, value in cycles.items():
        setattr(options, name, value)
    return options


def _point(point: _core.TrafficPoint) -> TrafficPoint:
    return TrafficPoint(
        offered=point.offered,
        accepted=point.accepted,
        least_accepted=point.least_accepted,
        most_accepted=point.most_accepted,
        packet_latency_cycles=point.packet_latency_cycles,
        network_latency_cycles=point.network_latency_cycles,
        min_latency_cycles=point.min_latency_cycles,
        max_latency_cycles=point.max_latency_cycles,
        hops=point.hops,
        saturated=point.is_saturated,
        packets=point.packets,
    )
