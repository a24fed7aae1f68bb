"""Benchmarks at the card: scripted ranks over the card's own library, without processes of the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.base.sizes import LARGEST_BYTES
from apenet.bench.request import BenchRequest
from apenet.bench.result import BenchResult, make_result

PAIR = 2
MOST_WINDOW = 2**32 - 1  # limit of the core's counter
MEMORIES = ("host", "host-copied", "gpu", "gpu-staged")
PATHS = ("auto", "send", "put")
ENDS = ("reply", "landed")


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The conditions of a card-level test; None means the test's own default.

    `window`: simultaneous messages. `memory`: location of the buffers, one of MEMORIES, or two separated by a comma:
    of the node that sends first, and of the other. `path`: the card's operation that carries messages. `until`: what
    ends oneway. `region_bytes`: the memory that each channel moves through, message by message.
    """

    window: int | None = None
    memory: str = "host"
    path: str = "auto"
    until: str = "reply"
    region_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "region_bytes"):
            value = getattr(self, name)
            if value is not None:
                most = LARGEST_BYTES if name == "region_bytes" else MOST_WINDOW
                whole(name.removesuffix("_bytes"), value, 1, most, f"a whole number from 1 to {most}")
        for name, known in (("path", PATHS), ("until", ENDS)):
            if getattr(self, name) not in known:
                raise InputError(name, getattr(self, name), "one of " + ", ".join(known))
        if len(self.memories) != PAIR or not set(self.memories) <= set(MEMORIES):
            raise InputError("memory", self.memory, "one of " + ", ".join(MEMORIES) + ", or two of them as host,gpu")

    @property
    def memories(self) -> list[str]:
        """Buffer locations of the first and of the second node."""
        parts = self.memory.split(",")
        return parts * PAIR if len(parts) == 1 else parts

    @property
    def given(self) -> dict[str, object]:
        """The conditions that differ from the defaults."""
        defaults = asdict(Conditions())
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def apply(self, options: _core.CardTestOptions) -> None:
        """Converts to the core's structure."""
        options.window = self.window or 0
        options.local, options.remote = (getattr(_core.Buffer, name.replace("-", "_")) for name in self.memories)
        options.path = getattr(_core.Path, "automatic" if self.path == "auto" else self.path)
        options.until_landed = self.until == "landed"
        options.region_bytes = self.region_bytes or 0


def measure(request: BenchRequest, conditions: Conditions, channels: Sequence[int]) -> BenchResult:
    """Measures each size for each number of channels, on a fresh machine."""
    machine, nodes = request.machine, request.nodes
    if nodes is not None and len(nodes) != PAIR:
        raise InputError("nodes", ",".join(map(str, nodes)), "two nodes at layer card, such as 0,1")
    description = machine.description(request.seed, request.engine)
    options = _core.CardTestOptions()
    options.nodes = list(nodes or ())
    options.iterations = request.iterations or 0
    conditions.apply(options)
    points, channels_of_points, warnings = [], [], []
    for at_once in channels:
        options.channels = at_once
        for size in request.sizes:
            request.progress(size)
            options.sizes = [size]
            try:
                (point,) = _core.run_card_test(description, getattr(_core.CardTest, request.test), options)
            except ValueError as error:
                raise machine.refused(error) from error
            points.append((point.size_bytes, point.time_ps * 1e-6, point.bandwidth_mib_s))
            channels_of_points.append(at_once)
            warnings.append(point.warnings)
    return make_result(
        request, "card", points, channels=channels_of_points, conditions=conditions.given, warnings=warnings
    )
