"""The machine files' schema: pydantic models of what the core lists (`_core.schema()`), and what belongs to no list.

Every parameter is a `Quantity`: its value, the class of its origin and its source. The unit of a value is the last part
of its key.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Field, create_model

from apenet import _core
from apenet.machine.published import PublishedResult
from apenet.machine.quantity import Quantity, Section, Text

RawTable = dict[str, Any]
TableName = Annotated[str, Field(pattern="^[A-Za-z0-9_-]+$")]
_SCHEMA = _core.schema()
_Kind = _core.FieldKind


class Listed(Section):
    """A section whose keys are those of a description of the core."""

    if TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:  # noqa: ANN401 (what the core lists has the types that it says)
            ...


class About(Section):
    """[machine]: what the file describes."""

    name: Text
    title: Text
    summary: Text


class Shape(NamedTuple):
    """The keys and traits of one topology."""

    needs: tuple[str, ...]
    allows: tuple[str, ...]
    routings: tuple[str, ...]
    overrides: tuple[str, ...]  # tables that override [network.link]; a cube has as many as dimensions
    has_routers: bool
    is_grid: bool  # nodes that are neighbours by their coordinates are one cable apart
    wraps: bool  # a grid whose lines are closed


SHAPES = {
    keys.name: Shape(
        tuple(keys.needs),
        tuple(keys.allows),
        tuple(keys.routings),
        tuple(keys.links),
        keys.has_routers,
        keys.is_grid,
        keys.wraps,
    )
    for keys in _SCHEMA.topologies
}
DIMENSIONS = next(shape.overrides for shape in SHAPES.values() if shape.is_grid)
OVERRIDES = tuple(dict.fromkeys(name for shape in SHAPES.values() for name in shape.overrides))
"""The tables below [network.link]."""

# Two ways to say the same: exactly one of each pair, all of it. Setting a key of one takes the other away.
_WHOLE = ("forward_cycles", "credit_cycles")
_STAGES = (
    "routing_delay_cycles",
    "vc_allocation_delay_cycles",
    "switch_allocation_delay_cycles",
    "switch_traversal_delay_cycles",
    "credit_delay_cycles",
)
ROUTER_ALTERNATIVES = ((_WHOLE, _STAGES), (("buffer_bytes",), ("buffer_flits",)))

SECTIONS = {section.name: section.fields for section in _SCHEMA.sections}
CARD_KINDS = {card.kind.name: card.kind for card in _SCHEMA.cards}
CARD_FIELDS = {
    f"card {card.kind.name}{table}": fields
    for card in _SCHEMA.cards
    for table, fields in (("", card.section.fields), *((f".{key}", inner) for key, inner in card.section.tables))
}
FILE_KEYS = tuple(field.key for field in SECTIONS["network"] if field.kind == _Kind.file)
"""Keys of [network] whose values are names of files with lines of their own."""

LISTS = {field.key: field for fields in SECTIONS.values() for field in fields if field.is_list}


def _value_type(field: _core.Field) -> Any:  # noqa: ANN401 (a type, made of the field's range)
    match field.kind:
        case _Kind.measured:
            bound = Field(gt=0, allow_inf_nan=False) if field.least > 0 else Field(ge=0, allow_inf_nan=False)
            value: Any = Annotated[float, bound]
        case _Kind.probability:
            value = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
        case _Kind.choice:
            value = Literal[tuple(field.choices)]
        case _Kind.whole:
            value = Annotated[int, Field(ge=field.least, le=field.most)]
        case _:
            value = Text
    if field.is_list:
        value = Annotated[list[value], Field(min_length=field.list_least, max_length=field.list_most)]
    return value


_QUANTITIES: dict[tuple[object, ...], Any] = {}


def _quantity(field: _core.Field) -> Any:  # noqa: ANN401 (a type)
    """Fields with equal ranges share a model: making one takes a millisecond."""
    lengths = (field.list_least, field.list_most) if field.is_list else None
    alike = (field.kind, field.least, field.most, tuple(field.choices), lengths)
    if alike not in _QUANTITIES:
        _QUANTITIES[alike] = Quantity[_value_type(field)]  # type: ignore[misc]
    return _QUANTITIES[alike]


def _keys(fields: Iterable[_core.Field], *, are_optional: bool = False) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for field in fields:
        quantity = _quantity(field)
        keys[field.key] = (quantity | None, None) if are_optional or field.is_optional else (quantity, ...)
    return keys


def _section(name: str, keys: dict[str, Any]) -> type[Listed]:
    model: type[Listed] = create_model(name, __base__=Listed, **keys)
    return model


def _card(card: _core.CardSection) -> type[Listed]:
    name = card.kind.name
    tables = {
        key: (dict[TableName, _section(key, _keys(fields))], Field(min_length=1))  # type: ignore[misc]
        for key, fields in card.section.tables
    }
    return _section(name, {"kind": (Literal[name], ...), **_keys(card.section.fields), **tables})


CARDS = {card.kind.name: _card(card) for card in _SCHEMA.cards}

if TYPE_CHECKING:
    AnyCard: TypeAlias = Listed
    Bus: TypeAlias = Listed
    Host: TypeAlias = Listed
    Network: TypeAlias = Listed
    Router: TypeAlias = Listed
    SoftwareLayer: TypeAlias = Listed
    Datagrams: TypeAlias = Listed
    InternetProtocol: TypeAlias = Listed
else:
    LinkOverride = _section("LinkOverride", _keys(SECTIONS["network.link"], are_optional=True))
    _overrides = dict.fromkeys(OVERRIDES, (LinkOverride | None, None))
    Link = _section("Link", {**_keys(SECTIONS["network.link"]), **_overrides})
    _links = {"link": (Link | None, None), "links": (dict[str, LinkOverride] | None, None)}
    Network = _section("Network", {**_keys(SECTIONS["network"]), **_links})
    Router = _section("Router", _keys(SECTIONS["router"]))
    Bus = _section("Bus", _keys(SECTIONS["bus"]))
    Host = _section("Host", _keys(SECTIONS["host"]))
    SoftwareLayer = _section("SoftwareLayer", _keys(SECTIONS["software"]))
    Datagrams = _section("Datagrams", _keys(SECTIONS["software.udp"]))
    InternetProtocol = _section("InternetProtocol", _keys(SECTIONS["software.ip"]))
    AnyCard = Annotated[reduce(or_, CARDS.values()), Field(discriminator="kind")]


class Software(Section):
    """[software]: the card's own library, MPI over the libfabric provider, and the kernel's UDP/IP and TCP/IP."""

    card: SoftwareLayer
    mpi: SoftwareLayer
    udp: Datagrams | None = None
    ip: InternetProtocol | None = None


class WithCard(Section):
    """A section with a [card]."""

    @property
    def card_kind(self) -> _core.CardKind:
        """The traits of every card of this kind."""
        return CARD_KINDS[self.card.kind]  # type: ignore[attr-defined]


class Rail(WithCard):
    """[rail.NAME]: a further card of every node, or a further port of its card, with a network of its own."""

    slot: Quantity[Literal["own", "shared"]]
    network: Network
    router: Router | None = None
    card: AnyCard
    bus: Bus | None = None
    software: Software


RailName = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,24}$")]


PARTITION_NAME = "^[A-Za-z_][A-Za-z0-9_-]{0,31}$"
"""Never to be taken for a box."""


class MachineFile(WithCard):
    """A whole file. Which sections a machine needs depends on its card: see `apenet.machine.check`."""

    machine: About
    network: Network
    router: Router | None = None
    card: AnyCard
    bus: Bus | None = None
    host: Host
    software: Software
    rail: dict[RailName, Rail] = Field(default_factory=dict)
    partition: dict[Annotated[str, Field(pattern=PARTITION_NAME)], Text] = Field(default_factory=dict)
    results: dict[str, PublishedResult] = Field(default_factory=dict)
