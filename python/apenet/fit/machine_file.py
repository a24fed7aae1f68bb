"""A machine file made of measurements: a fabric card whose ping-pong is that of the file. docs/models/fabric.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.base.outfiles import OutFile, begins_with
from apenet.bench import card
from apenet.bench.request import BenchRequest
from apenet.fit.curvefit import MIB
from apenet.fit.measurement import PINGPONG, STREAMS, Measurement, require_sizes
from apenet.fit.pathfit import PathsFit
from apenet.fit.protocols import LEAST_SLOPE_US_PER_BYTE, TOLERANCE, Protocol, protocols
from apenet.fit.text import MeasurementError, Quoted
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
class Agreement:
    """How far the machine's own measurement is from the file's, at its worst size."""

    test: str
    worst_percent: float
    worst_at_bytes: int
    points: int

    def to_json(self) -> dict[str, Any]:
        """As the dataclass."""
        return dict(vars(self))


@dataclass(frozen=True)
class WrittenMachine:
    """A machine file and how its measurements agree with what it was made of."""

    path: Path
    protocols: int
    paths: int
    agreements: tuple[Agreement, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What --json adds."""
        return {
            "file": str(self.path),
            "protocols": self.protocols,
            "paths": self.paths,
            "agreement": [agreement.to_json() for agreement in self.agreements],
            "warnings": list(self.warnings),
        }


def check_machine_file(path: Path) -> None:
    """Raises InputError for what cannot be a machine file, before anything is computed."""
    if path.suffix != ".toml" or not re.fullmatch(r"[A-Za-z0-9_.-]+", path.name):
        raise InputError("--to-machine", path, "a file such as my-fabric.toml")
    _place(path).close()


def _place(path: Path) -> OutFile:
    return OutFile("--to-machine", path, begins_with(b"# Written by apenet "))


def write_machine(measurements: Sequence[Measurement], path: Path, fitted: PathsFit | None = None) -> WrittenMachine:
    """Writes a machine made of a ping-pong and, if there is one, a stream; measures it, and says how both agree.

    `fitted` is a path model of the ping-pong: its paths are written where they meet every point. Raises
    MeasurementError for tests that make no machine, NotWrittenError when the file cannot be written.
    """
    pingpong, stream = _roles(measurements)
    sources = " and ".join(Path(one.file).name for one in (pingpong, stream) if one is not None)
    several = pingpong.distinct_channels() != [1]
    if fitted is not None and stream is None and (several or fitted.in_sample.max_percent <= 100 * TOLERANCE):
        card_table, counts = _paths_card(fitted, sources), (1, len(fitted.paths))
    elif several:
        raise MeasurementError(
            pingpong.file, None, Quoted("several messages at once"), "a ping-pong alone with --model paths:K"
        )
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


_HEAD = """# Written by apenet {version} from {sources}: what was measured there, as a machine.
# It knows the times between two nodes and nothing of what lies between them: docs/models/fabric.md.

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
            raise MeasurementError(
                one.file, None, Quoted(f"the test {one.test}"), "one ping-pong, and one stream beside it at most"
            )
    if pingpong is None:
        raise MeasurementError(
            measurements[0].file,
            None,
            Quoted(f"the test {measurements[0].test}"),
            "a ping-pong: a stream does not tell a latency",
        )
    require_sizes(pingpong, _LEAST_SIZES, "a machine is more than two points")
    return pingpong, stream


def _quantity(value: object, origin: str, source: str, note: str = "") -> Table:
    return {"value": value, "class": origin, "source": source, **({"note": note} if note else {})}


def _ns(time_us: float) -> float:
    """To whole picoseconds, which is what machines count in."""
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
        else _quantity([0.0 for _ in found], "assumed", "a ping-pong does not tell what one message costs the next"),
        "bandwidth_mib_s": _quantity(
            [_mib_s(protocol.hold_us_per_byte) for protocol in found],
            "fitted",
            origin,
            "" if stream is not None else "assumed to be that of a stream too: a ping-pong does not tell",
        ),
    }
    transit = [protocol.transit_us_per_byte for protocol in found]
    if stream is not None and max(transit) > 0:
        # Protocols without any: so fast that it is nothing.
        rates = [_mib_s(max(value, _NO_TRANSIT_US_PER_BYTE)) for value in transit]
        path["transit_bandwidth_mib_s"] = _quantity(rates, "fitted", origin)
    card_table: Table = {"kind": "fabric"}
    if switches:
        note = "between the largest size of one protocol and the next measured one, where the switch is is not known"
        card_table["switch_bytes"] = _quantity(switches, "fitted", origin, note)
    return {**card_table, "paths": {"wire": path}}


def _paths_card(fitted: PathsFit, sources: str) -> Table:
    origin = f"fitted to {sources}: {fitted.model}"
    paths: Table = {}
    for number, (path, row) in enumerate(zip(fitted.paths, fitted.coefficients, strict=True), start=1):
        separate = len(row) == 3  # noqa: PLR2004 (lambda, tau, 1/beta)
        told = path.lambda_us is not None
        gap = float(row[1]) if separate else 0.0
        paths[f"path{number}"] = {
            "latency_ns": _quantity(
                [_ns(float(row[0]))], "fitted", origin, "" if told else "its sum with the gap is told"
            ),
            "gap_ns": _quantity([_ns(gap)], "fitted", origin)
            if told
            else _quantity([_ns(gap)], "assumed", "the measurements do not tell it from the latency"),
            "bandwidth_mib_s": _quantity([_mib_s(float(row[-1]))], "fitted", origin)
            if path.beta_mib_s is not None
            else _quantity(
                [_mib_s(max(float(row[-1]), LEAST_SLOPE_US_PER_BYTE))], "assumed", "the measurements do not tell it"
            ),
        }
    return {"kind": "fabric", "paths": paths}


def _table(name: str, card_table: Table, pingpong: Measurement, sources: str) -> Table:
    part = f"part of the times in {sources}: they are those of the whole way"
    latency = _ns(float(pingpong.times_us.min()))
    layer = {f"{step}_us": _quantity(0.0, "assumed", part) for step in _STEPS}
    limit = "the change of protocol is in the card's times"
    layer["eager_limit_bytes"] = _quantity(_NO_LIMIT_BYTES, "assumed", limit)
    return {
        "machine": {
            "name": name,
            "title": f"Fabric measured in {sources}",
            "summary": f"Any two nodes as far apart as in {sources} ({pingpong.form}, {pingpong.section})",
        },
        "network": {"topology": _quantity("none", "assumed", "measured were two nodes: nothing is known between them")},
        "card": card_table,
        "host": {
            "copy_bandwidth_mib_s": _quantity(float(_FREE_MIB_S), "assumed", f"copies are {part}"),
            "local_latency_ns": _quantity(latency, "assumed", "as the fabric's smallest message: not measured"),
            "flops_per_second": _quantity(1e9, "assumed", "a round number: not measured"),
        },
        "software": {"card": dict(layer), "mpi": dict(layer)},
    }


def _agreements(machine: Machine, pingpong: Measurement, stream: Measurement | None) -> tuple[Agreement, ...]:
    found = [_agreement(machine, pingpong, PINGPONG)]
    if stream is not None:
        found.append(_agreement(machine, stream, stream.test))
    return tuple(found)


def _agreement(machine: Machine, measurement: Measurement, test: str) -> Agreement:
    """The machine's own `apenet bench`, size for size."""
    percents = np.empty(len(measurement))
    for channels in measurement.distinct_channels():
        part = measurement.channels == channels
        sizes = [int(size) for size in measurement.sizes_bytes[part]]
        request = BenchRequest(machine=machine, test=test, sizes=sizes)
        result = card.measure(request, card.Conditions(), [channels])
        percents[part] = 100 * (result.times_us / measurement.times_us[part] - 1)
    worst = int(np.abs(percents).argmax())
    return Agreement(test, float(percents[worst]), int(measurement.sizes_bytes[worst]), len(percents))


def _warnings(count: int, pingpong: Measurement, stream: Measurement | None, found: Sequence[Agreement]) -> list[str]:
    warnings = []
    if count > max(3, len(pingpong) // 3):
        warnings.append(
            f"{count} protocols for {len(pingpong)} sizes: the curve is noisy, the machine a table more than a model"
        )
    if stream is None and pingpong.distinct_channels() == [1]:
        warnings.append("how fast messages follow one another is assumed: give a stream too (osu_bw, ib_write_bw)")
    warnings += [
        f"the machine's {one.test} is {one.worst_percent:+.1f} % off at {one.worst_at_bytes} bytes"
        for one in found
        if abs(one.worst_percent) > 5  # noqa: PLR2004 (what is promised of the ping-pong)
    ]
    return warnings
