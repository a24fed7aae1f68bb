"""Requests: one dataclass for each test of `apenet bench`, with its options, their checks and its measurement.

The fields of a request are the test's options. `apenet bench TEST` and the function `apenet.bench.TEST` are made from
them, so an option is added by its field here and by the code that uses it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from apenet import _core
from apenet.base.errors import InputError, Literal
from apenet.base.numbers import checked_seed, whole
from apenet.base.sizes import checked_sizes
from apenet.bench import conduits
from apenet.bench.layer_table import CARD, GASNET_LAYERS, LAYERS, MOST_PROGRAM_ITERATIONS
from apenet.host.mpi_library import MpiChoice
from apenet.machine import ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import MOST_RANKS
from apenet.run.long_runs import ALLOW_LONG, require_ends, require_soon

ACTIVE_MESSAGES = ("improved", "first")
"""The implementations of Active Messages of GASNet's conduit for EXTOLL, the default first."""
CACHES = ("on", "off")
FEWEST_NODES = 2
MESSAGE_OF_PROCESSES = 20  # packet-hops that the host could simulate while two processes exchange a message
MOST_DEFAULT_ITERATIONS = 2000
MOST_ITERATIONS = 2**31 - 1  # limit of the core's counter, which also counts the rounds of a pattern

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Option:
    """The command line's form of a field of a request. Texts are parsed by the request."""

    help: str
    metavar: str | None = None
    flag: str = ""
    """Without it, the field's name."""
    default: str | None = None
    """The command's default, where it is not the field's."""


@dataclass(frozen=True)
class Traits:
    """The traits of a test in its results."""

    test: str
    definition: str
    is_stream: bool = False
    """Its time is the inverse of a rate."""
    counts_channels: bool = True
    """The rate is that of the messages of all channels."""
    rate_title: str | None = None
    """The column of the rate in the table."""
    bandwidth_of: str | None = None
    """The bytes that a workload's bandwidth counts: those that one `node` sends, the `vector`, or all that cross the
    `cut`."""


def no_progress(_size_bytes: int) -> None:
    """Ignores progress."""


@dataclass(frozen=True, kw_only=True)
class Request(ABC, Generic[Result]):
    """One test. Checks its options when it is made: InputError and MachineError for bad ones."""

    traits: ClassVar[Traits]
    engine: Annotated[str, Option("Engine of the network.")] = "packet"
    """As for `apenet.run`."""
    seed: Annotated[int, Option("Seed of the simulation.")] = 1

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError("engine", self.engine, " or ".join(ENGINES))
        checked_seed(self.seed)

    @abstractmethod
    def measure(self) -> Result:
        """Runs the test. Raises BenchError if a program fails."""

    def _set(self, name: str, value: object) -> None:
        """Sets a field while the request is checked."""
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class Runs(Request[Result]):
    """The options of runs of programs: as for `apenet.run`."""

    mpi: Annotated[MpiChoice, Option("MPI of --layer mpi.", "auto|mpich|openmpi|intel")] = "auto"
    pin: Annotated[bool | None, Option("Run on one core, or on all.")] = None

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the processes of a program."""
        return {}


@dataclass(frozen=True)
class MachineRequest(Request[Result]):
    """A test of one machine over message sizes."""

    default_sizes: ClassVar[str | int] = "16:1M"  # from the card's smallest payload on
    default_layer: ClassVar[str] = CARD
    may_share_node: ClassVar[bool] = False
    """Whether `nodes` may name a node twice, for two processes on it."""

    machine: Machine | str
    _: KW_ONLY
    sizes: Annotated[
        str | int | Sequence[int] | None,
        Option("Message sizes; they double from MIN to MAX.  [default: 16:1M]", "MIN:MAX"),
    ] = None
    nodes: Annotated[str | Sequence[int] | None, Option("Numbers of the nodes that communicate.", "A,B")] = None
    layer: Annotated[str | None, Option("Where to measure.  [default: card]", "card|apelib|mpi|...")] = None
    iterations: Annotated[int | None, Option("Repetitions of each size.")] = None
    caches: Annotated[str, Option("off: software without the processors' caches.", "|".join(CACHES))] = "on"
    allow_long: Annotated[bool, Option(ALLOW_LONG)] = False
    progress: Callable[[int], None] = no_progress
    """Called with each size before its measurement."""
    simulated: Machine = field(init=False, repr=False)
    """The machine that is measured."""
    sizes_bytes: list[int] = field(init=False, repr=False)
    placed: list[int] | None = field(init=False, repr=False)
    """The nodes, as numbers; None: those of the test."""
    measured_layer: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("measured_layer", self.default_layer if self.layer is None else self.layer)
        if self.measured_layer not in (CARD, *LAYERS):
            raise InputError("layer", self.layer, "one of " + ", ".join((CARD, *LAYERS)))
        self._set("sizes_bytes", checked_sizes(self.default_sizes if self.sizes is None else self.sizes))
        if self.caches not in CACHES:
            raise InputError("caches", self.caches, " or ".join(CACHES))
        chosen = read_machine(self.machine) if isinstance(self.machine, str) else self.machine
        if self.caches != CACHES[0]:
            chosen = chosen.with_settings(f"host.caches={self.caches}")
        self._set("simulated", chosen)
        self._set(
            "placed", None if self.nodes is None else checked_nodes(chosen, self.nodes, may_share=self.may_share_node)
        )
        if self.iterations is not None:
            expected = "a whole number of at least 1"
            self._set("iterations", whole("iterations", self.iterations, 1, MOST_ITERATIONS, expected))
        if self.sizes_bytes:
            sent = max(self.sizes_bytes) * (self.iterations or MOST_DEFAULT_ITERATIONS)
            require_ends(chosen, sent, "sizes", str(max(self.sizes_bytes)))

    def at_sizes(self, sizes_bytes: Sequence[int]) -> Self:
        """The same test at these sizes, which may be zero, as those of other benchmarks are."""
        other = copy.copy(self)
        other._set("sizes_bytes", list(sizes_bytes))
        return other

    @property
    def common_conditions(self) -> dict[str, object]:
        """The conditions that differ from the defaults, by their names in the result; of all tests."""
        caches = self.simulated.file.host.caches
        return {
            **({} if self.simulated.rail is None else {"rail": self.simulated.rail}),
            **({} if self.simulated.partition is None else {"partition": self.simulated.partition.text}),
            **({} if caches is None or caches.value == CACHES[0] else {"caches": caches.value}),
            **({} if self.engine == "packet" else {"engine": self.engine}),
        }

    def require_soon(self, packet_hops: float) -> None:
        """Refuses what would take hours, unless that is allowed. Raises InputError."""
        if self.allow_long:
            return
        sizes = self.sizes_bytes
        shown = str(sizes[0]) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
        smaller = "smaller --sizes, fewer --iterations or fewer nodes (-n)"
        require_soon(packet_hops, self.traits.test, "sizes", shown, smaller)

    @property
    def steps(self) -> int | None:
        """The number of calls of `progress`; None if that is not known before."""
        return len(self.sizes_bytes) if self.measured_layer == CARD and self.sizes is not None else None


@dataclass(frozen=True)
class ProgramRequest(MachineRequest[Result], Runs[Result]):
    """A test of one machine that may run programs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measured_layer == CARD:
            for name, given, unset in (("mpi", self.mpi, "auto"), ("pin", self.pin, None)):
                if given != unset:
                    raise InputError(name, given, f"none at layer {CARD}, which runs no program")

    def require_program_soon(self, nodes: Sequence[int], at_once: int = 1) -> None:
        """Refuses iterations that a program cannot count, and those that would take hours. Raises InputError.

        Each iteration sends at least `at_once` messages from the first of these nodes to the second.
        """
        iterations = self.iterations or 1
        whole("iterations", iterations, 1, MOST_PROGRAM_ITERATIONS, f"1 to {MOST_PROGRAM_ITERATIONS} for programs")
        work = _core.MessageWork(self.simulated.description(self.seed, self.engine))
        first, second = self.simulated.allocation.of_machine(nodes[:2])
        of_sizes = [MESSAGE_OF_PROCESSES + work.of(first, second, size).all for size in self.sizes_bytes]
        self.require_soon(iterations * at_once * sum(of_sizes))


@dataclass(frozen=True)
class LayerRequest(ProgramRequest[Result]):
    """A test of one machine that may run programs over any layer."""

    _: KW_ONLY
    active_messages: Annotated[
        str | None, Option("Implementation of layers gasnet and upc.", "|".join(ACTIVE_MESSAGES))
    ] = None
    conduit: Annotated[
        str | None,
        Option("Network of layers gasnet and upc.  [default: that of the machine's card]", "|".join(conduits.CONDUITS)),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        layer = self.measured_layer
        for key, value in (("active_messages", self.active_messages), ("conduit", self.conduit)):
            if value is not None and layer not in GASNET_LAYERS:
                raise InputError(key, value, f"none at layer {layer}: it belongs to {' and '.join(GASNET_LAYERS)}")
        if self.active_messages is not None and self.active_messages not in ACTIVE_MESSAGES:
            raise InputError("active_messages", self.active_messages, " or ".join(ACTIVE_MESSAGES))
        conduits.check(self.simulated, self.conduit, self.active_messages)

    @property
    def common_conditions(self) -> dict[str, object]:
        """Also the options of the layers over GASNet."""
        given = {"active_messages": self.active_messages, "conduit": self.conduit}
        return super().common_conditions | {name: value for name, value in given.items() if value is not None}

    @property
    def environment(self) -> dict[str, str]:
        """With the variables of the library of GASNet."""
        given = {"GASNET_EXTOLL_AM": self.active_messages, "GASNET_CONDUIT": self.conduit}
        return {name: value for name, value in given.items() if value is not None}


def checked_nodes(machine: Machine, nodes: str | Sequence[int], *, may_share: bool = False) -> list[int]:
    """At least two nodes of the machine or its partition, different ones unless `may_share`, from numbers or a text."""
    if isinstance(nodes, str):
        if not re.fullmatch(r"[0-9]+(,[0-9]+)*", nodes):
            raise InputError("nodes", nodes, "node numbers such as 0,1")
        nodes = [int(part) for part in nodes.split(",")]
    text = ",".join(map(str, nodes))
    count = machine.allocation.node_count
    expected = f"nodes of {machine.allocation.name}" + (f": 0 to {count - 1}" if count else "")
    most = (count or MOST_RANKS) - 1
    checked = []
    for node in nodes:
        try:
            checked.append(whole("nodes", node, 0, most, expected))
        except InputError as error:
            raise InputError("nodes", text, expected) from error
    if len(checked) < FEWEST_NODES or not (may_share or len(set(checked)) == len(checked)):
        different = "" if may_share else " different"
        raise InputError("nodes", text, f"at least two{different} nodes, such as 0,1")
    return checked


def pair_of(request: MachineRequest[Any]) -> list[int]:
    """The nodes of a test of two: those asked for, or node 0 and its neighbour in the first dimension that has one."""
    if request.placed is not None:
        return list(request.placed)
    neighbour = 1
    for extent in request.simulated.allocation.dims:
        if extent > 1:
            break
        neighbour *= extent
    part = request.simulated.partition
    if part is not None and neighbour >= len(part.nodes):
        raise InputError("partition", part.given, "one of at least two nodes")
    return [0, neighbour]


_SEVERAL = r"[1-9][0-9]{0,6}(,[1-9][0-9]{0,6})*"
_RANGE = r"([1-9][0-9]{0,6}):([1-9][0-9]{0,6})"


def doubling_counts(name: str, given: str | int | Iterable[int]) -> list[int]:
    """Numbers, or a text such as 8, 1,2,4,8 or 1:8."""
    return _counts(name, given, "1,2,4,8, or 1:8 (doubling)", _doubling)


def all_counts(name: str, given: str | Iterable[int]) -> list[int]:
    """Numbers, or a text such as 6, 1,2,6 or 1:6."""
    return _counts(name, given, "1,2,6, or 1:6 (every one)", lambda first, last: range(first, last + 1))


def _doubling(first: int, last: int) -> list[int]:
    return [first << step for step in range((last // first).bit_length())]


def _counts(
    name: str, given: str | int | Iterable[int], example: str, between: Callable[[int, int], Iterable[int]]
) -> list[int]:
    if isinstance(given, str):
        ends = re.fullmatch(_RANGE, given)
        if ends is not None and int(ends[1]) <= int(ends[2]):
            return list(between(int(ends[1]), int(ends[2])))
        if not re.fullmatch(_SEVERAL, given):
            last = example.rpartition(":")[2].split(" ", maxsplit=1)[0]
            raise InputError(name, given, f"a number such as {last}, numbers such as {example}")
        return [int(part) for part in given.split(",")]
    return list(given) if isinstance(given, Iterable) else [given]


@dataclass(frozen=True)
class OptionField:
    """An option of a request: its name, the type of its values, its default, and how it is shown."""

    name: str
    type: type
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """On the command line."""
        return self.option.flag or "--" + self.name.replace("_", "-")

    @property
    def error_name(self) -> str:
        """In error messages."""
        return self.flag.lstrip("-").replace("-", "_")


def options_of(request: type[Request[Any]]) -> Iterator[OptionField]:
    """The options of a request, in the order of the help text: those of runs in general stand last."""
    hints = _hints(request)
    general = {*Request.__annotations__, *Runs.__annotations__}
    for one in sorted(fields(request), key=lambda one: one.name in general):
        if get_origin(hints[one.name]) is not Annotated:
            continue
        given, option = get_args(hints[one.name])
        kinds = get_args(given) or (given,)
        kind = next((known for known in (bool, int) if known in kinds and str not in kinds), str)
        yield OptionField(one.name, kind, one.default, option)


@functools.cache
def _hints(request: type[Request[Any]]) -> dict[str, Any]:
    """The types of a request's fields, with their options."""
    return get_type_hints(request, include_extras=True)


class Catalogue:
    """All tests by their names."""

    def __init__(self) -> None:
        self.requests: dict[str, type[Request[Any]]] = {}

    def add(self, request: Callable[Parameters, Request[Result]]) -> Callable[Parameters, Result]:
        """Registers a request. Returns the function that makes one of these options and measures it."""
        kind = cast("type[Request[Result]]", request)
        test = kind.traits.test
        self.requests[test] = kind

        @functools.wraps(request, updated=())
        def measured(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
            self.refuse_foreign(test, options)
            return request(*args, **options).measure()

        measured.__name__ = measured.__qualname__ = test
        measured.__doc__ = f"{kind.traits.definition}.\n\n{_explained(kind)}"
        measured.__signature__ = _signature(kind)  # type: ignore[attr-defined]
        measured.__annotations__ = {}  # those of the signature
        return measured

    def owners(self, option: str) -> list[str]:
        """The tests that have this option."""
        return [test for test, request in self.requests.items() if option in {one.name for one in options_of(request)}]

    def refuse_foreign(self, test: str, options: dict[str, Any]) -> None:
        """Raises InputError for an option of other tests, and TypeError for one that no test has."""
        known = {one.name for one in fields(self.requests[test]) if one.init}
        for name, value in options.items():
            if name not in known:
                raise self.foreign(test, name, value)

    def foreign(self, test: str, name: str, value: object) -> Exception:
        """The error for an option that this test does not have."""
        owners = self.owners(name)
        if not owners:
            named = ", ".join(one.name for one in options_of(self.requests[test]))
            return TypeError(f"unknown option {name}: one of {named}")
        option = next(one for one in options_of(self.requests[owners[0]]) if one.name == name)
        shown = value if isinstance(value, str | int | float) else str(value)
        return InputError(option.error_name, shown, f"none for {test}: it belongs to {', '.join(owners)}")


def _signature(request: type[Request[Any]]) -> inspect.Signature:
    """The signature as `help` shows it: types without the options' texts, and the type of the result."""
    hints = _hints(request)
    parameters = []
    for one in inspect.signature(request).parameters.values():
        hint = hints[one.name]
        shown = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        default = Literal("no_progress") if one.default is no_progress else one.default  # without its address
        parameters.append(one.replace(annotation=shown, default=default))
    return inspect.Signature(parameters, return_annotation=get_type_hints(request.measure)["return"])


def _explained(request: type[Request[Any]]) -> str:
    return "\n".join(f"{one.name}: {one.option.help}" for one in options_of(request))
