"""Requests and results that all kinds of simulation share: links, faults, ranks."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.machine import BOTH, ENGINES, Machine
from apenet.run.activity import NetworkActivity, network_activity

PS_PER_US = 10**6
PACKET_ENGINE = "packet engine: "
"""Begins the core's warnings of the packet engine's accuracy."""


Simulated = TypeVar("Simulated", bound="Result")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to a machine: everything that determines the result, independent of the host."""

    machine: Machine
    ranks: int
    ranks_per_node: int
    mapping: str
    nodes: tuple[int, ...]
    engine: str
    seed: int

    def description(self) -> _core.MachineDescription:
        """The machine as the core takes it, with the packet engine if both are asked for."""
        return self.machine.description(self.seed, ENGINES[0] if self.engine == BOTH else self.engine)

    def to_json(self) -> dict[str, Any]:
        """The contents of command.json."""
        return {
            "machine": self.machine.name,
            "settings": list(self.machine.settings),
            "rail": self.machine.rail,
            "partition": None if self.machine.partition is None else self.machine.partition.text,
            "faults": list(self.machine.faults),
            "ranks": self.ranks,
            "ranks_per_node": self.ranks_per_node,
            "mapping": self.mapping,
            "nodes": list(self.nodes),
            "engine": self.engine,
            "seed": self.seed,
            "version": __version__,
        }


def checked_engine(engine: str) -> str:
    """One of the engines, or both. Raises InputError."""
    if engine not in (*ENGINES, BOTH):
        raise InputError("engine", engine, f"{', '.join(ENGINES)} or {BOTH}")
    return engine


@dataclass(frozen=True)
class LinkResult:
    """The traffic of one direction of a link; utilisation is its busy share of the virtual time.

    `packets` and `wire_bytes` do not include corrupted packets and their retransmitted bytes.
    """

    name: str
    packets: int
    wire_bytes: int
    busy_us: float
    utilisation: float
    corrupted_packets: int = 0
    retransmitted_bytes: int = 0


@dataclass(frozen=True)
class PortResult:
    """The use of one kind of shared resource: links, ports between routers and cards, buses.

    `busy_us` is the sum of all, `busiest_us` that of the busiest, `waited_us` the time for which packets could have
    left and did not, None where the model does not count it. `used` of `count` were busy at all.
    """

    name: str
    count: int
    used: int
    packets: int | None
    busy_us: float
    busiest_us: float
    waited_us: float | None


@dataclass(frozen=True)
class FaultResult:
    """Faults of the network; `events` counts links and nodes that died or revived."""

    events: int
    reconfigurations: int
    packets_taken_back: int
    corrupted_packets: int
    retransmitted_bytes: int

    def summary(self) -> str:
        """A line of the short report; empty without faults."""
        parts = []
        if self.events:
            parts.append(
                f"fault events: {self.events}, reconfigurations: {self.reconfigurations}, "
                f"packets taken back: {self.packets_taken_back}"
            )
        if self.corrupted_packets:
            parts.append(
                f"corrupted packets: {self.corrupted_packets}, sent again: {show_size(self.retransmitted_bytes)}"
            )
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Result(ABC):
    """The part of a simulation's result that all kinds share. Only `wall_time_s` and `of_host` may vary.

    `messages` and `bytes` count what is posted to the cards, including protocol overhead. `folder` is that of the run.
    `partition` is the part of the machine that was used, if one was chosen.
    """

    machine: str
    seed: int
    version: str
    virtual_time_us: float
    messages: int
    bytes: int
    trace_hash: str
    links: tuple[LinkResult, ...] = field(repr=False)
    faults: FaultResult
    network: NetworkActivity | None = field(repr=False)
    warnings: tuple[str, ...]
    wall_time_s: float
    flit_virtual_time_us: float | None = None
    partition: str | None = None
    ports: tuple[PortResult, ...] = field(default=(), repr=False)
    folder: Path | None = field(default=None, repr=False, compare=False)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The contents of run.json."""

    @property
    def where(self) -> str:
        """The machine, and its partition, for the short report."""
        return self.machine if self.partition is None else f"{self.machine}, partition {self.partition}"

    @property
    def machine_json(self) -> dict[str, str]:
        """The machine, and its partition if one was chosen, as run.json has them."""
        return {"machine": self.machine, **({} if self.partition is None else {"partition": self.partition})}

    @property
    def flit_text(self) -> str:
        """The flit engine's time beside this one, for the short report; empty unless both were asked for."""
        if self.flit_virtual_time_us is None:
            return ""
        percent = 100 * (self.flit_virtual_time_us / self.virtual_time_us - 1) if self.virtual_time_us > 0 else 0.0
        return f"flit engine: {show_time(self.flit_virtual_time_us)} of virtual time, {percent:+.1f} %"

    def of_host(self) -> dict[str, Any]:
        """Values for host.json beside the wall time: they may vary."""
        return {}

    @property
    def busiest_link(self) -> LinkResult | None:
        """The link with the most busy time, the first of several; None when none was used."""
        used = [link for link in self.links if link.busy_us > 0]
        return max(used, key=lambda link: link.busy_us, default=None)

    @property
    def busiest_text(self) -> str:
        """The busiest link, for the short report."""
        busiest = self.busiest_link
        if busiest is None:
            return "no link between switches was used"
        return f"busiest link {busiest.name}: {busiest.utilisation:.1%} busy"


@dataclass(frozen=True, kw_only=True)
class RanksResult(Result):
    """The result of ranks without processes; arrays have one element per rank.

    `sends` and `sent_bytes` count the ranks' own sends.
    """

    finish_us: NDArray[np.float64] = field(repr=False)
    waiting_us: NDArray[np.float64] = field(repr=False)
    compute_us: NDArray[np.float64] = field(repr=False)
    sends: NDArray[np.int64] = field(repr=False)
    sent_bytes: NDArray[np.int64] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """All fields except the wall time, as one object."""
        busiest = self.busiest_link
        return {
            **self.machine_json,
            "seed": self.seed,
            "version": self.version,
            "virtual_time_us": self.virtual_time_us,
            **({} if self.flit_virtual_time_us is None else {"flit_virtual_time_us": self.flit_virtual_time_us}),
            "finish_us": {
                "min": float(self.finish_us.min()),
                "mean": float(self.finish_us.mean()),
                "max": float(self.finish_us.max()),
            },
            "messages": self.messages,
            "bytes": self.bytes,
            "busiest_link": vars(busiest) if busiest else None,
            "trace_hash": self.trace_hash,
            "faults": vars(self.faults),
            "warnings": list(self.warnings),
            "ranks": [
                {"finish_us": float(finish), "waiting_us": float(waiting), "compute_us": float(compute)}
                for finish, waiting, compute in zip(self.finish_us, self.waiting_us, self.compute_us, strict=True)
            ],
            "links": [vars(link) for link in self.links if link.packets > 0],
            "ports": [vars(port) for port in self.ports],
        }


def link_results(links: Sequence[_core.LinkUse], virtual_ps: int) -> tuple[LinkResult, ...]:
    """The links' statistics over a run of this virtual time."""
    return tuple(
        LinkResult(
            name=link.name,
            packets=link.packets,
            wire_bytes=link.wire_bytes,
            busy_us=link.busy_ps / PS_PER_US,
            utilisation=round(link.busy_ps / virtual_ps, 6) if virtual_ps > 0 else 0.0,
            corrupted_packets=link.corrupted_packets,
            retransmitted_bytes=link.retransmitted_bytes,
        )
        for link in links
    )


def port_results(ports: Sequence[_core.PortUse]) -> tuple[PortResult, ...]:
    """The use of every kind of shared resource that was used."""
    return tuple(
        PortResult(
            name=port.name,
            count=len(port.busy_ps),
            used=int((port.busy_ps > 0).sum()),
            packets=None if port.waited_ps is None else port.packets,
            busy_us=int(port.busy_ps.sum()) / PS_PER_US,
            busiest_us=int(port.busy_ps.max()) / PS_PER_US,
            waited_us=None if port.waited_ps is None else port.waited_ps / PS_PER_US,
        )
        for port in ports
        if len(port.busy_ps) > 0 and port.busy_ps.max() > 0
    )


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What the jobs of a session did together: the fields of a report of the core."""

    messages: int
    bytes: int
    trace_hash: int
    links: Sequence[_core.LinkUse]
    ports: Sequence[_core.PortUse]
    faults: _core.FaultUse
    network: _core.NetworkHistory | None
    warnings: Sequence[str]


def common_results(
    machine: Machine,
    seed: int,
    report: _core.RanksReport | _core.SessionReport | _core.JobsReport | Totals,
    virtual_ps: int,
    began: float,
) -> dict[str, Any]:
    """The fields of Result; `began` is the wall time at the start."""
    return {
        "machine": machine.name,
        "partition": None if machine.partition is None else machine.partition.text,
        "seed": seed,
        "version": __version__,
        "virtual_time_us": virtual_ps / PS_PER_US,
        "messages": report.messages,
        "bytes": report.bytes,
        "trace_hash": f"{report.trace_hash:016x}",
        "links": link_results(report.links, virtual_ps),
        "ports": port_results(report.ports),
        "faults": FaultResult(
            events=report.faults.events,
            reconfigurations=report.faults.reconfigurations,
            packets_taken_back=report.faults.packets_taken_back,
            corrupted_packets=report.faults.corrupted_packets,
            retransmitted_bytes=report.faults.retransmitted_bytes,
        ),
        "network": network_activity(report.network, virtual_ps) if report.network is not None else None,
        "warnings": tuple(report.warnings),
        "wall_time_s": time.monotonic() - began,
    }


def ranks_results(
    machine: Machine, seed: int, report: _core.RanksReport, finish_ps: NDArray[np.int64], began: float
) -> dict[str, Any]:
    """The fields of RanksResult."""
    return {
        **common_results(machine, seed, report, int(finish_ps.max()), began),
        "finish_us": finish_ps / PS_PER_US,
        "waiting_us": report.waited_ps / PS_PER_US,
        "compute_us": report.computed_ps / PS_PER_US,
        "sends": np.asarray(report.sends),
        "sent_bytes": np.asarray(report.sent_bytes),
    }


def with_flit_time(result: Simulated, flit_virtual_time_us: float) -> Simulated:
    """A result of the packet engine whose time the flit engine has checked: no warning of that is left to say."""
    warnings = tuple(warning for warning in result.warnings if not warning.startswith(PACKET_ENGINE))
    return replace(result, flit_virtual_time_us=flit_virtual_time_us, warnings=warnings)


def show_time(microseconds: float) -> str:
    """A time in a suitable unit."""
    if microseconds < 1e3:  # noqa: PLR2004
        return f"{microseconds:.2f} us"
    if microseconds < 1e6:  # noqa: PLR2004
        return f"{microseconds / 1e3:.3f} ms"
    return f"{microseconds / 1e6:.4f} s"


def show_size(count: int) -> str:
    """A number of bytes in a suitable unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"
