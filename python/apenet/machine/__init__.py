"""Machines: finding, reading, changing and showing their descriptions.

`machine("ape16")` is where everything starts; what it returns is given to `apenet.run` and `apenet.bench`.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from apenet import _core
from apenet.base.errors import ApenetError, InputError, MachineError, from_core, shortened, texts
from apenet.base.escape import escape_line
from apenet.base.foreign import TOML, recognise_text
from apenet.base.frames import pandas_for
from apenet.base.infiles import UnreadableError, read_text
from apenet.base.tomltext import TomlError, parse_toml
from apenet.machine.cart import Torus
from apenet.machine.check import check
from apenet.machine.inherit import base_of, merged, merged_rail, rail_bases
from apenet.machine.lower import lower, read_named
from apenet.machine.partition import Allocation, Partition, Whole, is_box_or_list, parse_partition, split
from apenet.machine.picture import drawn
from apenet.machine.quantity import Quantity, Section, quantities
from apenet.machine.rails import FIRST_RAIL, alone
from apenet.machine.schema import FILE_KEYS, PARTITION_NAME, SHAPES, MachineFile, RawTable, Shape
from apenet.machine.settings import applied, setting_texts
from apenet.machine.show import html_of, listed, text_of
from apenet.machine.write import to_toml

__all__ = ["BOTH", "ENGINES", "FIRST_RAIL", "Machine", "MachineFile", "machine", "machine_names", "machines"]

ENGINES = ("packet", "flit")
"""Engines of the network: docs/models/network.md, docs/models/flit-engine.md."""

BOTH = "both"
"""A run on the packet engine, with its time on the flit engine beside it."""

MOST_FILE_BYTES = 2**20
"""The largest machine file; the longest shipped one has 30 kilobytes."""

# The cables of more nodes than 16x16x16 cannot be told apart in a picture.
_MOST_DRAWN = 4096


@dataclass(frozen=True, repr=False)
class Machine:
    """A checked machine description, with the settings that were applied to it."""

    path: Path
    file: MachineFile
    settings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    rail: str | None = None
    partition: Partition | None = None
    checks_settings: bool = field(default=True, repr=False, compare=False)
    """Whether runs say which of the settings have no effect."""
    table: RawTable = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        return text_of(self.name, self._rows())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return html_of(self.name, self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        """The traits by which Python shows it, at most seven."""
        try:
            shape = self.shape
        except ApenetError as error:  # a file of the network has been changed
            shape = str(error)
        rows = [
            ("summary", self.file.machine.summary),
            ("network", f"{shape}, {self.file.network.topology.value}"),
            ("card", self.file.card.kind),
            ("file", str(self.path)),
        ]
        if self.rail is not None:
            rows.append(("rail", self.rail))
        elif self.file.rail:
            rows.append(("rails", ", ".join(self.rails)))
        rows += [("settings", listed(self.settings))] if self.settings else []
        rows += [("partition", self.partition.text)] if self.partition is not None else []
        return rows + ([("faults", listed(self.faults))] if self.faults else [])

    @property
    def name(self) -> str:
        """The machine's name, `ape16`, in one line that can be printed."""
        return shortened(escape_line(self.file.machine.name))

    @property
    def label(self) -> str:
        """The file as errors name it."""
        path = self.path.name if self.path.parent == _folder() else str(self.path)
        return path if self.rail is None else f"{path} --rail {self.rail}"

    @property
    def dims(self) -> tuple[int, ...]:
        """Nodes along each dimension of a torus or mesh, X first; empty for any other machine."""
        return tuple(self.file.network.dims.value) if self.file.network.dims is not None else ()

    @property
    def topology(self) -> Shape:
        """The traits of its network's topology, from the core."""
        return SHAPES[self.file.network.topology.value]

    @cached_property
    def node_count(self) -> int | None:
        """Number of nodes, None for a machine that has as many as are asked for."""
        if not self.topology.has_routers:
            return math.prod(self.dims) if self.dims else None
        try:
            return _core.count_network_nodes(self.description().network)
        except ValueError as error:
            raise self.refused(error) from error

    @property
    def shape(self) -> str:
        """Its size, for people: `4x2x2`, `144 nodes`, `any size`."""
        if self.dims:
            return "x".join(map(str, self.dims))
        return "any size" if self.node_count is None else f"{self.node_count} nodes"

    @property
    def ports(self) -> int | None:
        """The number of processes that can share a node's card, None when there is no limit."""
        return self.description().processes_per_node

    def with_settings(self, *settings: str) -> Machine:
        """A machine with `key.path=value` settings applied, each validated like the file."""
        table = self.table
        for setting in settings:
            table = applied(table, setting)
        every = (*self.settings, *settings)
        origin = " ".join((self.label, *(f"--set {shortened(setting)}" for setting in every)))
        checked = check(table, origin)
        lower(checked, origin, self.path.parent)
        changed = replace(self, file=checked, settings=every, table=table, partition=None)
        return changed.with_partition(None if self.partition is None else self.partition.given)

    @property
    def rails(self) -> tuple[str, ...]:
        """The cards of a node, each with its network: `first`, and the names of `[rail.NAME]`."""
        return (FIRST_RAIL, *self.file.rail)

    def with_rail(self, name: str) -> Machine:
        """A machine whose nodes have this one of their cards alone, with its network and software: see `rails`.

        Raises InputError for a name that the machine has not.
        """
        if name not in self.rails:
            known = f"one of {', '.join(self.rails)}" if self.file.rail else f'"{FIRST_RAIL}": a node has one card'
            raise InputError("rail", name, f"{known} on {self.label}")
        chosen = replace(self, rail=name, table=alone(self.table, name), partition=None)
        chosen = replace(chosen, file=check(chosen.table, chosen.label))
        return chosen.with_partition(None if self.partition is None else self.partition.given)

    def with_partition(self, given: str | None) -> Machine:
        """A machine on whose partition ranks are placed: a name in the file, a box `1x4x4@3,0,0`, or `nodes:0-3,8`.

        The network is the whole machine's. Raises InputError for what is no partition of it.
        """
        if given is None:
            return replace(self, partition=None)
        if is_box_or_list(given):
            return replace(self, partition=self._parsed(given, "partition"))
        found = {partition.given: partition for partition in self.partitions}.get(given)
        if found is None:
            names = ", ".join(self.file.partition)
            known = f"one of {names}, or " if names else f"{self.label} names none; "
            raise InputError("partition", given, f"{known}a box such as 1x4x4@0,0,0, or nodes:0-3,8")
        return replace(self, partition=found)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions that the file names. Raises MachineError for one that the machine does not have."""
        return tuple(self.named_partition(name, text, self.label) for name, text in self.file.partition.items())

    def named_partition(self, name: str, text: str, file: str) -> Partition:
        """A box or list with the name that a file gives it. Raises MachineError naming file and key."""
        try:
            if not re.fullmatch(PARTITION_NAME, name):
                raise InputError("partition", name, "a name of letters, digits, _ and -, with a letter first")
            return replace(self._parsed(text, f"partition.{name}"), given=name)
        except InputError as error:
            raise MachineError(file, error.name, error.value, error.expected) from error

    def split(self, box: str) -> tuple[Partition, ...]:
        """The machine in equal boxes of these extents, such as 1x4x4. Raises InputError if they do not divide it."""
        return tuple(split(box, "split", self._whole("split", box)))

    def _parsed(self, text: str, key: str) -> Partition:
        return parse_partition(text, key, self._whole(key, text))

    def _whole(self, key: str, text: str) -> Whole:
        if self.node_count is None:
            raise InputError(key, text, f"none: {self.name} has as many nodes as are asked for")
        return Whole(self.name, self.dims if self.topology.is_grid else (), self.node_count)

    @property
    def allocation(self) -> Allocation:
        """Where ranks are placed: on the whole machine, or on its partition."""
        closed = (self.topology.wraps,) * len(self.dims)
        if self.partition is None:
            torus = Torus(self.dims, closed) if self.topology.is_grid else None
            return Allocation(self.name, self.shape, self.node_count, self.dims, torus, None)
        part = self.partition
        closed = tuple(wraps and spans for wraps, spans in zip(closed, part.spans, strict=False))
        torus = Torus(part.extents, closed) if part.extents else None
        name = f"partition {part.given} of {self.name}"
        return Allocation(name, part.shape, len(part.nodes), part.extents, torus, part.nodes)

    def require_whole(self, what: str) -> None:
        """Raises InputError if a partition is chosen, for what takes all nodes."""
        if self.partition is not None:
            raise InputError("partition", self.partition.given, f"none for {what}, which takes the whole machine")

    def with_faults(self, *faults: str) -> Machine:
        """A machine whose links and nodes die and revive: `link (0,0,0)+x down @10us up @2ms`.

        In the network of a further rail: `ib: link ...`.

        Raises MachineError for what is no fault, or none that this machine can have.
        """
        faulty = replace(self, faults=(*self.faults, *faults))
        if faults:
            faulty.wire()
        return faulty

    def with_settings_checked(self, wanted: bool) -> Machine:
        """The machine whose runs say which of its settings have no effect, which costs a simulation each, or do not."""
        return replace(self, checks_settings=wanted)

    def description(self, seed: int = 1, engine: str = "packet") -> _core.MachineDescription:
        """The machine in base units, as the C++ core takes it, its network run by one of `ENGINES`."""
        if engine not in ENGINES:
            raise InputError("engine", engine, " or ".join(ENGINES))
        if engine != ENGINES[0] and not self.file.card_kind.has_network:
            kind = self.file.card.kind
            raise InputError("engine", engine, f'{ENGINES[0]} for {self.label}: card.kind = "{kind}" has no network')
        return lower(self.file, self.label, self.path.parent, seed, getattr(_core.Engine, engine), self.faults)

    def arrangement(self) -> _core.ArrangementTraits | None:
        """Its topology and routing, and whether they are free of deadlock; None where there is no network."""
        if not self.topology.has_routers:
            return None
        try:
            return _core.inspect_arrangement(self.description().network)
        except ValueError as error:
            raise self.refused(error) from error

    def wire(self) -> None:
        """Puts the machine together, as a run would: what no single key shows (deadlock, buffers) is found here."""
        try:
            _core.wire(self.description(), [0])
        except ValueError as error:
            raise self.refused(error) from error

    def refused(self, error: ValueError) -> MachineError | InputError:
        """The core's error with this machine's file, and with the file that the key names."""
        refused = from_core(error)
        section, dot, rest = refused.name.partition(".")
        if refused.name not in ("fault", "rail") and not (dot and section in MachineFile.model_fields):
            return refused
        if refused.name == "fault":  # stands in no machine file
            return MachineError(f"faults of {self.label}", refused.name, refused.value, refused.expected)
        if section == "rail":
            return MachineError(self.label, refused.name, refused.value, refused.expected)
        named = getattr(self.file.network, rest.partition(" ")[0], None) if rest.startswith(FILE_KEYS) else None
        where = self.label if named is None else f"{self.label}: {named.value}"
        return MachineError(where, refused.name, refused.value, refused.expected)

    def frame(self) -> Any:  # noqa: ANN401 (pandas is not a dependency)
        """Its parameters as a pandas frame: key, value, class, source, and the range of an assumed number.

        Raises InputError if pandas is not installed.
        """
        columns = ["key", "value", "class", "source", "least", "most"]
        rows = [
            (key, one.value, one.origin, one.source, *(one.range or (None, None))) for key, one in quantities(self.file)
        ]
        return pandas_for("frame").DataFrame(rows, columns=columns).set_index("key")

    def plot(self) -> Any:  # noqa: ANN401 (matplotlib has no public types)
        """Its network as a matplotlib figure: routers, cables, nodes, and the numbers of its links with their classes.

        A notebook shows the figure; `machine.plot().savefig("network.png")` writes it. Raises InputError for a machine
        without a network, and for one of more than 4096 nodes.
        """
        count = self.node_count
        if not self.topology.has_routers or count is None:
            raise InputError("plot", self.name, "a machine with a network: its card connects any two nodes directly")
        if count > _MOST_DRAWN:
            raise InputError("plot", f"{self.name}, {count} nodes", f"a machine of at most {_MOST_DRAWN} nodes")
        notes = ["faults are not drawn"] if self.faults else []
        if self.file.rail and self.rail is None:
            notes.insert(0, f"first of the rails {', '.join(self.rails)}")

        import matplotlib.pyplot as plt  # noqa: PLC0415 (slow import)

        title = f"{self.name}: {self.shape}, {self.file.network.topology.value}"
        figure = drawn(title, self.file, self.description(), notes, plt)
        plt.close(figure)  # a notebook would otherwise show it twice
        return figure

    def to_toml(self) -> str:
        """The resolved description as a machine file."""
        return to_toml(self.file)

    def saved(self) -> dict[str, bytes]:
        """`machine.toml` and, beside it, copies of the files that it names: what is to be in each, by its name."""
        contents: dict[str, bytes] = {}
        rails = {name: self._with_copies(rail, f"rail.{name}.", contents) for name, rail in self.file.rail.items()}
        resolved = self._with_copies(self.file.model_copy(update={"rail": rails}), "", contents)
        return {"machine.toml": to_toml(resolved).encode(), **contents}

    def _with_copies(self, section: Section, prefix: str, contents: dict[str, bytes]) -> Any:  # noqa: ANN401
        """The file or the rail with the names of copies, which it adds to `contents`."""
        network = section.network  # type: ignore[attr-defined]
        copied: dict[str, Quantity[str]] = {}
        for key in FILE_KEYS:
            quantity: Quantity[str] | None = getattr(network, key)
            if quantity is None:
                continue
            text = read_named(quantity, f"{prefix}network.{key}", self.label, self.path.parent)
            name = prefix.replace(".", "-") + _copy_of(key)
            contents[name] = text.encode()
            origin = "assumed" if quantity.origin == "set" else quantity.origin
            copied[key] = quantity.model_copy(update={"value": name, "origin": origin})
        return section.model_copy(update={"network": network.model_copy(update=copied)})


def _copy_of(key: str) -> str:
    return f"{key.removesuffix('_file')}.txt"


def _folder() -> Path:
    return Path(_core.__file__).parent / "machines"


def machine_names() -> list[str]:
    """Names of the machines that come with the package."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def machines() -> Iterator[Machine]:
    """The machines that come with the package."""
    return (machine(name) for name in machine_names())


def machine(
    name_or_path: str | Path,
    settings: Iterable[str] | Mapping[str, object] = (),
    faults: Iterable[str] = (),
    rail: str | None = None,
    partition: str | None = None,
) -> Machine:
    """Reads a machine by the name of one that comes with the package, or by the path of a file.

    `settings` are changes, as texts `key.path=value` or as `{"key.path": value}`; `rail` chooses one of a node's cards,
    see Machine.with_rail; `faults` say what dies and revives, see Machine.with_faults; ranks are placed on the
    `partition`, see Machine.with_partition.

    Raises MachineError naming file, key, value and what was expected.
    """
    path = _find(name_or_path)
    table = _with_bases(path, ())
    whole = Machine(path, check(table, path), table=table).with_settings(*setting_texts(settings))
    chosen = whole if rail is None else whole.with_rail(rail)
    return chosen.with_partition(partition).with_faults(*texts("faults", faults))


def _with_bases(path: Path, derived: tuple[Path, ...]) -> RawTable:
    """The tables of a file over those of its bases, which are checked for themselves: faults are reported there."""
    try:
        text = read_text(path, MOST_FILE_BYTES)
    except UnreadableError as error:
        raise InputError("machine", path, f"a machine file that can be read: {error}") from error
    try:
        table: RawTable = parse_toml(text)
    except TomlError as error:
        found = recognise_text(text)
        reason = str(error) if found is None or found.name == TOML else str(found)
        raise MachineError(path, "the file", "not TOML", f"a machine description in TOML: {reason}") from error
    for name, base in rail_bases(table).items():
        of_rail = merged_rail(table["rail"][name], _below(path, f"rail.{name}.base", base, derived))
        table = {**table, "rail": {**table["rail"], name: of_rail}}
    base = base_of(table)
    return table if base is None else merged(table, _below(path, "machine.base", base, derived))


def _below(path: Path, key: str, base: object, derived: tuple[Path, ...]) -> RawTable:
    """The tables of a base of the file, which the key names."""
    expected = "the name of a machine, or the path of a machine file"
    if not isinstance(base, str):
        raise MachineError(path, key, base, expected)
    shipped = _folder() / f"{base}.toml"
    base_path = shipped if "/" not in base and shipped.is_file() else path.parent / base
    if not base or not os.path.lexists(base_path):
        raise MachineError(path, key, base, expected)
    chain = (*derived, path.resolve())
    if base_path.resolve() in chain:
        raise MachineError(path, key, base, "a machine that is not derived from this one")
    below = _with_bases(base_path, chain)
    check(below, base_path)
    return _moved(below, base_path.parent, path.parent)


def _moved(table: RawTable, folder: Path, to: Path) -> RawTable:
    """The files that a base names are beside the base."""
    rails = {name: _moved(rail, folder, to) for name, rail in table.get("rail", {}).items()}
    table = {**table, "rail": rails} if rails else table
    network = table.get("network", {})
    named = {key: network[key] for key in FILE_KEYS if key in network} if folder != to else {}
    moved = {key: {**entry, "value": str((folder / entry["value"]).resolve())} for key, entry in named.items()}
    return {**table, "network": {**network, **moved}}


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    shipped = _folder() / f"{text}.toml"
    if isinstance(name_or_path, str) and "/" not in text and shipped.is_file():
        return shipped
    path = Path(name_or_path)
    if text and os.path.lexists(path):
        return path
    names = machine_names()
    if path.suffix == ".toml" or "/" in text:
        raise InputError("machine", text, "a file that exists, or one of " + ", ".join(names))
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    raise InputError("machine", text, "one of " + ", ".join(names) + ", or the path of a machine file" + hint)
