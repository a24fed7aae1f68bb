"""Writes a machine file from measurements: a fabric card with the measured ping-pong. See docs/models/fabric.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet import bench
from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.base.outfiles import OutFile, begins_with
from apenet.fit.curvefit import MIB
from apenet.fit.measurement import PINGPONG, STREAMS, Measurement, require_sizes
from apenet.fit.pathfit import PathsFit
from apenet.fit.protocols import LEAST_SLOPE_US_PER_BYTE, TOLERANCE, Protocol, protocols
from apenet.fit.statistics import AsJson
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.check import check
from apenet.machine.write import to_toml

_LEAST_SIZES = 3
_NO_LIMIT_BYTES = 2**40
_FREE_MIB_S = 1_000_000
_NO_TRANSIT_US_PER_BYTE = 1e-9
_STEPS = ("send", "receive", "after_receive", "completion", "rendezvous", "publish", "poll", "clock_read")
Table = dict[str, Any]


@dataclass(frozen=True)
class Agreement(AsJson):
    """The largest deviation between the machine's simulated times and the file's, over sizes."""

    test: str
    worst_percent: float
    worst_at_bytes: int
    points: int


@dataclass(frozen=True)
class WrittenMachine:
    """A machine file, and how its simulated times agree with the measurements."""

    path: Path
    protocols: int
    paths: int
    agreements: tuple[Agreement, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The part that it adds to --json."""
        return {
            "file": str(self.path),
            "protocols": self.protocols,
            "paths": self.paths,
            "agreement": [agreement.to_json() for agreement in self.agreements],
            "warnings": list(self.warnings),
        }


def check_machine_file(path: Path) -> None:
    """Raises InputError for an invalid machine file name, before any computation."""
    if path.suffix != ".toml" or not re.fullmatch(r"[A-Za-z0-9_.-]+", path.name):
        raise InputError("--to-machine", path, "a file such as my-fabric.toml")
    _place(path).close()


def _place(path: Path) -> OutFile:
    return OutFile("--to-machine", path, begins_with(b"# Written by apenet "))


def write_machine(measurements: Sequence[Measurement], path: Path, fitted: PathsFit | None = None) -> WrittenMachine:
    """Writes a machine from a ping-pong and optionally a stream; simulates both on it, and reports the agreement.

    `fitted` is a path model of the ping-pong: its paths are written if they meet every point. Raises MeasurementError
    for tests that do not determine a machine, NotWrittenError if the file cannot be written.
    """
    pingpong, stream = _roles(measurements)
    sources = " and ".join(Path(one.file).name for one in (pingpong, stream) if one is not None)
    several = pingpong.distinct_channels() != [1]
    if fitted is not None and stream is None and (several or fitted.in_sample.max_percent <= 100 * TOLERANCE):
        card_table, counts = _paths_card(fitted, sources), (1, len(fitted.paths))
    elif several:
        raise pingpong.error("several messages at once", "a ping-pong alone with --model paths:K")
    else:
        found = protocols(pingpong, stream)
        card_table, counts = _protocols_card(found, stream, sources), (len(found), 1)
    table = _table(path.stem, card_table, pingpong, sources)
    content = _HEAD.format(version=__version__, sources=sources) + to_toml(check(table, path))
    with _place(path) as file:
        file.write(content.encode())
        file.keep()
    agreements = _agreements(read_machine(path), pingpong, stream)
    return WrittenMachine(path, *counts, agreements, tuple(_warnings(counts[0], pingpong, stream, agreements)))


_HEAD = """# Written by apenet {version} from {sources}.
# This machine models the measured times between two nodes, and no network: see docs/models/fabric.md.

"""


def _roles(measurements: Sequence[Measurement]) -> tuple[Measurement, Measurement | None]:
    pingpong: Measurement | None = None
    stream: Measurement | None = None
    for one in measurements:
        if one.test == PINGPONG and pingpong is None:
            pingpong = one
        elif one.test in STREAMS and stream is None:
            stream = one
        else:
            raise one.error(f"the test {one.test}", "one ping-pong, and at most one stream")
    if pingpong is None:
        first = measurements[0]
        raise first.error(f"the test {first.test}", "a ping-pong: a stream does not determine a latency")
    require_sizes(pingpong, _LEAST_SIZES, "a machine needs more than two points")
    return pingpong, stream


def _quantity(value: object, origin: str, source: str, note: str = "") -> Table:
    return {"value": value, "class": origin, "source": source, **({"note": note} if note else {})}


def _ns(time_us: float) -> float:
    """Rounds to whole picoseconds, the unit of machines."""
    return round(time_us * 1e3, 3)


def _mib_s(us_per_byte: float) -> float:
    return float(f"{1e6 / MIB / us_per_byte:.9g}")


def _protocols_card(found: Sequence[Protocol], stream: Measurement | None, sources: str) -> Table:
    origin = f"fitted to {sources}"
    switches = [protocol.max_size_bytes for protocol in found[:-1]]
    path: Table = {
        "latency_ns": _quantity([_ns(protocol.latency_us) for protocol in found], "fitted", origin),
        "gap_ns": _quantity([_ns(protocol.gap_us) for protocol in found], "fitted", origin)
        if stream is not None
        else _quantity([0.0 for _ in found], "assumed", "a ping-pong does not show the gap between messages"),
        "bandwidth_mib_s": _quantity(
            [_mib_s(protocol.hold_us_per_byte) for protocol in found],
            "fitted",
            origin,
            "" if stream is not None else "assumed to hold for a stream, too: a ping-pong does not show it",
        ),
    }
    transit = [protocol.transit_us_per_byte for protocol in found]
    if stream is not None and max(transit) > 0:
        # Protocols without bandwidth get one so high that it does not matter.
        rates = [_mib_s(max(value, _NO_TRANSIT_US_PER_BYTE)) for value in transit]
        path["transit_bandwidth_mib_s"] = _quantity(rates, "fitted", origin)
    card_table: Table = {"kind": "fabric"}
    if switches:
        note = "the switch lies between the largest size of one protocol and the next measured size"
        card_table["switch_bytes"] = _quantity(switches, "fitted", origin, note)
    return {**card_table, "paths": {"wire": path}}


def _paths_card(fitted: PathsFit, sources: str) -> Table:
    origin = f"fitted to {sources}: {fitted.model}"
    paths: Table = {}
    for number, (path, row) in enumerate(zip(fitted.paths, fitted.coefficients, strict=True), start=1):
        separate = len(row) == 3  # noqa: PLR2004 (lambda, tau, 1/beta)
        is_separate = path.lambda_us is not None
        gap = float(row[1]) if separate else 0.0
        paths[f"path{number}"] = {
            "latency_ns": _quantity(
                [_ns(float(row[0]))], "fitted", origin, "" if is_separate else "only its sum with the gap is known"
            ),
            "gap_ns": _quantity([_ns(gap)], "fitted", origin)
            if is_separate
            else _quantity([_ns(gap)], "assumed", "the measurements do not separate it from the latency"),
            "bandwidth_mib_s": _quantity([_mib_s(float(row[-1]))], "fitted", origin)
            if path.beta_mib_s is not None
            else _quantity(
                [_mib_s(max(float(row[-1]), LEAST_SLOPE_US_PER_BYTE))],
                "assumed",
                "the measurements do not determine it",
            ),
        }
    return {"kind": "fabric", "paths": paths}


def _table(name: str, card_table: Table, pingpong: Measurement, sources: str) -> Table:
    part = f"included in the times in {sources}, which contain the software"
    latency = _ns(float(pingpong.times_us.min()))
    layer = {f"{step}_us": _quantity(0.0, "assumed", part) for step in _STEPS}
    limit = "the card's times contain the change of protocol"
    layer["eager_limit_bytes"] = _quantity(_NO_LIMIT_BYTES, "assumed", limit)
    return {
        "machine": {
            "name": name,
            "title": f"Fabric measured in {sources}",
            "summary": f"Any two nodes as far apart as in {sources} ({pingpong.form}, {pingpong.section})",
        },
        "network": {"topology": _quantity("none", "assumed", "only two nodes were measured, and no network")},
        "card": card_table,
        "host": {
            "copy_bandwidth_mib_s": _quantity(float(_FREE_MIB_S), "assumed", f"copies are {part}"),
            "local_latency_ns": _quantity(latency, "assumed", "as for the fabric's smallest message: not measured"),
            "flops_per_second": _quantity(1e9, "assumed", "a round number: not measured"),
        },
        "software": {"card": dict(layer), "mpi": dict(layer)},
    }


def _agreements(machine: Machine, pingpong: Measurement, stream: Measurement | None) -> tuple[Agreement, ...]:
    return tuple(_agreement(machine, one) for one in (pingpong, stream) if one is not None)


def _agreement(machine: Machine, measurement: Measurement) -> Agreement:
    """Runs `apenet bench` on the machine and compares size by size."""
    percents = np.empty(len(measurement))
    for channels in measurement.distinct_channels():
        part = measurement.channels == channels
        sizes = [int(size) for size in measurement.sizes_bytes[part]]
        result = bench.make_request(measurement.test, machine, channels=channels).at_sizes(sizes).measure()
        percents[part] = 100 * (result.times_us / measurement.times_us[part] - 1)
    worst = int(np.abs(percents).argmax())
    return Agreement(measurement.test, float(percents[worst]), int(measurement.sizes_bytes[worst]), len(percents))


def _warnings(count: int, pingpong: Measurement, stream: Measurement | None, found: Sequence[Agreement]) -> list[str]:
    warnings = []
    if count > max(3, len(pingpong) // 3):
        warnings.append(
            f"{count} protocols for {len(pingpong)} sizes: the curve is noisy, and the machine is a table rather than "
            "a model"
        )
    if stream is None and pingpong.distinct_channels() == [1]:
        warnings.append("the gap between messages is assumed: add a stream (osu_bw, ib_write_bw)")
    warnings += [
        f"the machine's {one.test} is {one.worst_percent:+.1f} % off at {one.worst_at_bytes} bytes"
        for one in found
        if abs(one.worst_percent) > 5  # noqa: PLR2004 (guaranteed for the ping-pong)
    ]
    return warnings
