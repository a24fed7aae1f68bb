"""The tests of two nodes: the published ones at the card and above it, and accesses to remote memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.base.sizes import LARGEST_BYTES, parse_size
from apenet.bench import card, layers, mpi
from apenet.bench.layer_table import CARD, LAYERS, MPI, PAIR
from apenet.bench.request import LayerRequest, Option, Traits, doubling_counts, pair_of
from apenet.bench.result import BenchResult

MEMORIES = ("host", "host-copied", "gpu", "gpu-staged")
PATHS = ("auto", "send", "put")
ENDS = ("reply", "landed")
MOST_CHANNELS = 2**16 - 1
MOST_WINDOW = 2**32 - 1  # limit of the core's counter


@dataclass(frozen=True)
class TwoNodes(LayerRequest[BenchResult]):
    """The common part of all tests of two nodes, or of two processes of one."""

    may_share_node = True

    _: KW_ONLY
    channels: Annotated[
        str | int | Sequence[int], Option("Messages at once, one per hardware queue; or 1:8, or 1,2,4,8.", "K")
    ] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = doubling_counts("channels", self.channels)
        expected = "a whole number of at least 1"
        self._set("channels", [whole("channels", number, 1, MOST_CHANNELS, expected) for number in counts])
        if self.at_once is not None:
            whole("window", self.at_once, 1, MOST_WINDOW, f"a whole number from 1 to {MOST_WINDOW}")
            if self.iterations is not None and self.at_once > self.iterations:
                raise InputError("window", self.at_once, f"at most the {self.iterations} of iterations")

    @property
    def channel_counts(self) -> list[int]:
        """The numbers of channels to measure, one after another."""
        return doubling_counts("channels", self.channels)

    @property
    def at_once(self) -> int | None:
        """The window of a test that has one; None: the test's own."""
        return None

    @property
    def steps(self) -> int | None:
        """As for every request, for each number of channels."""
        of_sizes = super().steps
        return None if of_sizes is None else of_sizes * len(self.channel_counts)


@dataclass(frozen=True, kw_only=True)
class Windowed:
    """The option of tests with windows of messages."""

    window: Annotated[int | None, Option("Messages at once, or all if a size has fewer; 1 is blocking.")] = None

    @property
    def at_once(self) -> int | None:
        """The window."""
        return self.window


@dataclass(frozen=True)
class CardPair(TwoNodes):
    """A test that exists at the card, and above it."""

    _: KW_ONLY
    memory: Annotated[
        str, Option(f"Location of the buffers, for both nodes or for each: {', '.join(MEMORIES)}.", "KIND[,KIND]")
    ] = "host"
    path: Annotated[str, Option("Operation of the card that carries messages.", "|".join(PATHS))] = "auto"
    region: Annotated[
        str | int | None, Option("Memory that each channel moves through, instead of one buffer.", "SIZE")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.region is not None:
            size = parse_size(self.region) if isinstance(self.region, str) else self.region
            self._set("region", whole("region", size, 1, LARGEST_BYTES, f"a whole number from 1 to {LARGEST_BYTES}"))
        for name, value, known in (("path", self.path, PATHS), ("until", self.end, ENDS)):
            if value not in known:
                raise InputError(name, value, "one of " + ", ".join(known))
        if len(self.memories) != PAIR or not set(self.memories) <= set(MEMORIES):
            raise InputError("memory", self.memory, "one of " + ", ".join(MEMORIES) + ", or two of them as host,gpu")
        if self.measured_layer != CARD:
            self._check_above_card()

    def _check_above_card(self) -> None:
        layer = self.measured_layer
        if layer == MPI and self.channel_counts != [1]:
            counts = ",".join(map(str, self.channel_counts))
            raise InputError("channels", counts, f"1 at layer {layer}: channels belong to the card's own tests")
        for name, value in self.conditions.items():
            if name != "window" and (name, layer) != ("memory", MPI):
                key = name.removesuffix("_bytes")
                raise InputError(key, value, f"none at layer {layer}: {key} belongs to the card's own tests")

    @property
    def memories(self) -> list[str]:
        """Buffer locations of the first and of the second node."""
        parts = self.memory.split(",")
        return parts * PAIR if len(parts) == 1 else parts

    @property
    def end(self) -> str:
        """The event that ends the test."""
        return ENDS[0]

    @property
    def conditions(self) -> dict[str, object]:
        """The conditions that differ from the defaults, by their names in the result."""
        values = (
            ("window", self.at_once, None),
            ("memory", self.memory, "host"),
            ("path", self.path, PATHS[0]),
            ("until", self.end, ENDS[0]),
            ("region_bytes", self.region, None),
        )
        return {name: value for name, value, default in values if value != default}

    def measure(self) -> BenchResult:
        """At the card, or with a program over it."""
        if self.measured_layer == CARD:
            return card.measure(self, self._card_options(), self.channel_counts, self.conditions)
        if self.measured_layer == MPI and self.traits.test in mpi.TESTS:
            return mpi.measure(self, self.at_once, self.memory)
        return layers.measure(self, self.channel_counts, self.at_once)

    def _card_pair(self) -> list[int]:
        """The pair by its numbers in the partition; empty: the core chooses, on a whole machine."""
        return self.placed or ([] if self.simulated.partition is None else pair_of(self))

    def _card_options(self) -> _core.CardTestOptions:
        options = _core.CardTestOptions()
        options.nodes = self.simulated.allocation.of_machine(self._card_pair())
        options.iterations = self.iterations or 0
        options.window = self.at_once or 0
        options.local, options.remote = (getattr(_core.Buffer, name.replace("-", "_")) for name in self.memories)
        options.path = getattr(_core.Path, "automatic" if self.path == "auto" else self.path)
        options.until_landed = self.end == "landed"
        options.region_bytes = int(self.region or 0)
        return options


@dataclass(frozen=True)
class PingPong(CardPair):
    """A message and its reply, as half a round trip."""

    traits = Traits("pingpong", "message and reply of the same size; time is half the round trip")


@dataclass(frozen=True)
class PingPing(CardPair):
    """Messages of both nodes at once."""

    traits = Traits(
        "pingping", "both send at once, then both receive; time is the round, bandwidth that of one direction"
    )


@dataclass(frozen=True)
class RoundTrip(CardPair):
    """A message and its reply, as a whole."""

    traits = Traits("roundtrip", "message and reply of the same size; time is the whole round trip")


@dataclass(frozen=True)
class OneWay(CardPair):
    """Messages one after another, and one closing reply."""

    traits = Traits(
        "oneway",
        "messages one after another, one closing reply; time is that of one message: a gap, not a latency",
        is_stream=True,
    )
    _: KW_ONLY
    until: Annotated[str, Option("Ends with a closing reply, or with all completions.", "|".join(ENDS))] = "reply"

    @property
    def end(self) -> str:
        """The option."""
        return self.until


@dataclass(frozen=True)
class Unidirectional(Windowed, CardPair):
    """Windows of messages in one direction."""

    traits = Traits(
        "unidirectional", "windows of messages in one direction; time is that of one message", is_stream=True
    )


@dataclass(frozen=True)
class Bidirectional(Windowed, CardPair):
    """Messages of both nodes, in both directions together."""

    traits = Traits(
        "bidirectional", "both sides send and receive at once; bandwidth is that of both directions together"
    )


@dataclass(frozen=True)
class Flush(CardPair):
    """Messages until the sender has its completions."""

    traits = Traits(
        "flush",
        "messages posted at once, until the sender has its completions; time is that of one message",
        is_stream=True,
    )


@dataclass(frozen=True)
class Rate(Windowed, CardPair):
    """Puts without notification."""

    traits = Traits(
        "rate",
        "windows of puts without notification; time is that of one put",
        is_stream=True,
        counts_channels=False,
        rate_title="Messages per second",
    )


@dataclass(frozen=True)
class Access(Windowed, TwoNodes):
    """Accesses to the other process's memory, by a library: the card has no such test."""

    def measure(self) -> BenchResult:
        """With a program over the layer."""
        if self.measured_layer == CARD:
            of = [name for name, layer in LAYERS.items() if self.traits.test in layer.tests]
            raise InputError("layer", CARD, f"one of {', '.join(of)} for {self.traits.test}")
        return layers.measure(self, self.channel_counts, self.at_once)


@dataclass(frozen=True)
class Put(Access):
    """Puts that have ended at both sides."""

    traits = Traits("put", "puts that have ended at both sides, --window of them at once; time is that of one")


@dataclass(frozen=True)
class Get(Access):
    """Gets."""

    traits = Traits("get", "gets, --window of them at once; time is that of one")
