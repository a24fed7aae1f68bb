"""From a TOML table to a checked `MachineFile`, or to a `MachineError` that says what to write instead."""

from __future__ import annotations

import difflib
import functools
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from apenet.base.errors import ABSENT, MachineError, Problem
from apenet.machine.quantity import Quantity, quantities
from apenet.machine.schema import (
    CARDS,
    DIMENSIONS,
    LISTS,
    OVERRIDES,
    ROUTER_ALTERNATIVES,
    SHAPES,
    About,
    MachineFile,
    Network,
    Rail,
    RawTable,
    Router,
    WithCard,
)
from apenet.machine.units import conversion_hint, unit_name

INLINE_TABLE = 'an inline table { value = ..., class = "published|derived|fitted|assumed", source = "..." }'


def check(table: RawTable, file: Path | str) -> MachineFile:
    """Validates a parsed file. Raises MachineError with every problem found, unknown keys first."""
    problems = list(_unknown_keys(MachineFile, table, ()))
    if not problems:
        try:
            checked = MachineFile.model_validate(table)
        except ValidationError as error:
            problems = _of_one_key_each(_problem(details, table) for details in error.errors())
        else:
            problems = list(_inconsistencies(checked))
            if not problems:
                return checked
    first = problems[0]
    raise MachineError(file, first.key, first.value, first.expected, tuple(problems[1:]))


def tables_of(model: type[BaseModel], table: RawTable) -> dict[str, type[BaseModel]]:
    """The keys of a section that are sections themselves, with the model of each."""
    found: dict[str, type[BaseModel]] = {}
    for name, inner in _sections_of(model):
        if inner is not None:
            found[name] = inner
            continue
        kind = table.get("card", {}).get("kind") if isinstance(table.get("card"), dict) else None
        if isinstance(kind, str) and kind in CARDS:  # otherwise that alone is what is wrong
            found[name] = CARDS[kind]
    return found


@functools.cache
def _sections_of(model: type[BaseModel]) -> list[tuple[str, type[BaseModel] | None]]:
    """The same of every table; None for the card, whose model its kind decides."""
    found: list[tuple[str, type[BaseModel] | None]] = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if issubclass(model, WithCard) and name == "card":
            found.append((name, None))
            continue
        candidates = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
        found += [(name, one) for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)]
    return found


@functools.cache
def named_tables_of(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The keys of a section below which sections have names of the file's own, with the model of those."""
    found: dict[str, type[BaseModel]] = {}
    for name, field in model.model_fields.items():
        for candidate in (field.annotation, *typing.get_args(field.annotation)):
            if typing.get_origin(candidate) is dict:
                inner = typing.get_args(candidate)[1]
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    found[name] = inner
    return found


@functools.cache
def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys that a section knows, as the file writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _unknown_keys(model: type[BaseModel], table: RawTable, path: tuple[str, ...]) -> Iterator[Problem]:
    known = keys_of(model)
    for key, value in table.items():
        if key not in known:
            yield Problem(_dotted((*path, key)), _bare(value), _nearest(key, _bare(value), known, model))
    for key, inner in named_tables_of(model).items():
        named = table.get(key)
        for name, one in named.items() if isinstance(named, dict) else ():
            if isinstance(one, dict):
                yield from _unknown_keys(inner, one, (*path, key, name))
    for key, inner in tables_of(model, table).items():
        if isinstance(table.get(key), dict):
            yield from _unknown_keys(inner, table[key], (*path, key))


def _dotted(names: Iterable[str]) -> str:
    """A key as a TOML file writes it: names with other characters than letters, digits, _ and - are quoted."""
    return ".".join(name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name) for name in names)


def _bare(value: object) -> object:
    return value["value"] if isinstance(value, dict) and "value" in value else value


def _nearest(key: str, value: object, known: list[str], model: type[BaseModel]) -> str:
    for candidate in known:
        hint = conversion_hint(key, candidate, value)
        if hint:
            return hint
    if model is Rail and key in MachineFile.model_fields:
        return f"one of {', '.join(known)} in a rail: [{key}] is of the whole machine"
    if model is MachineFile and key in (*keys_of(About), "base"):  # inherit.py reads the base
        return "this key in the section [machine]"
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if close:
        return f'the known key "{close[0]}"'
    if issubclass(model, Quantity):
        return INLINE_TABLE
    return "one of " + ", ".join(known)


def _of_one_key_each(problems: Iterable[Problem]) -> list[Problem]:
    """A value that is no member of a union has a problem with each of them: one problem, with all that it may be."""
    found: dict[str, Problem] = {}
    for problem in problems:
        if problem.key in found and problem.expected not in found[problem.key].expected:
            expected = f"{found[problem.key].expected}, or {problem.expected}"
            found[problem.key] = Problem(problem.key, problem.value, expected)
        found.setdefault(problem.key, problem)
    return list(found.values())


def _problem(details: ErrorDetails, table: RawTable) -> Problem:
    path = _path_in_file(details["loc"], table)
    value = ABSENT if details["type"] in ("missing", "union_tag_not_found") else details["input"]
    if details["type"] == "union_tag_not_found":
        path = (*path, "kind")
    if details["type"] == "union_tag_invalid":
        path, value = (*path, "kind"), details["ctx"]["tag"]
    if path[0] == "rail" and path[-1] == "[key]":
        named = table["rail"][details["input"]]
        return Problem(_dotted(map(str, path[:-1])), named, "a rail's name of 1 to 24 letters, digits, _ and -")
    if path[0] == "results":
        names = [f'"{step}"' if position == 1 else step for position, step in enumerate(path)]
    else:
        # A bad value is reported under its parameter's key: bus.clock_mhz, not bus.clock_mhz.value.
        names = [step for step in path if step != "value"] if "value" in path[-2:] else list(path)
    key = ".".join(name if isinstance(name, str) else f"[{name}]" for name in names).replace(".[", "[")
    return Problem(key, value, _expected(details, path))


def _path_in_file(loc: tuple[int | str, ...], table: RawTable) -> tuple[int | str, ...]:
    """Pydantic puts the tag or the type of a union's member into its paths; the file has no such level."""
    path: list[int | str] = []
    at: Any = table
    for position, step in enumerate(loc):
        if path[-1:] == ["card"] and step in CARDS and not (isinstance(at, dict) and step in at):
            continue
        if isinstance(step, str) and isinstance(at, (bool, int, float, str, list)):
            continue
        path.append(step)
        if isinstance(at, dict):
            at = at.get(step)
        elif isinstance(at, list) and isinstance(step, int) and step < len(at):
            at = at[step]
        elif position < len(loc) - 1:
            at = None
    return tuple(path)


def _expected(details: ErrorDetails, path: tuple[int | str, ...]) -> str:  # noqa: PLR0911 (one a kind)
    kind = details["type"]
    context = details.get("ctx", {})
    names = [step for step in path if isinstance(step, str) and step != "value"]
    unit = unit_name(names[-1]) if names else ""
    of_unit = f" ({unit})" if unit else ""
    match kind:
        case "missing":
            return _expected_missing(path)
        case "model_type" | "model_attributes_type" | "dict_type":
            return INLINE_TABLE if path and path[-1] != "value" and unit else f"a table or {INLINE_TABLE}"
        case "greater_than":
            return f"a number greater than {context['gt']:g}{of_unit}"
        case "greater_than_equal":
            return f"a number of at least {context['ge']:g}{of_unit}"
        case "less_than_equal":
            return f"a number of at most {context['le']}{of_unit}"
        case "int_type" | "int_from_float":
            return f"a whole number{of_unit}"
        case "float_type" | "finite_number":
            return f"a finite number{of_unit}"
        case "string_type" | "string_too_short":
            return "a text that is not empty"
        case "literal_error":
            return f"one of {context['expected']}"
        case "union_tag_invalid" | "union_tag_not_found":
            return "one of " + ", ".join(f"'{name}'" for name in CARDS)
        case "list_type" | "too_short" | "too_long":
            return _expected_list(str(names[-1]) if names else "")
        case _:
            return details["msg"]


def _expected_list(key: str) -> str:
    if key == "role":
        return "a list of these, one for each value"
    if key == "range":
        return "a list of two numbers: the least and the largest plausible value"
    field = LISTS.get(key)
    if field is None or field.list_most is None:
        return "a list of numbers, at least one"
    between = "or" if field.list_most == field.list_least + 1 else "to"
    return f"a list of {field.list_least} {between} {field.list_most} whole numbers: {field.meaning}"


def _expected_missing(path: tuple[int | str, ...]) -> str:
    name = str(path[-1])
    match name:
        case "class":
            return "one of 'published', 'derived', 'fitted', 'assumed'"
        case "source":
            return "a text: where the value is from, how it was derived, what it was fitted to or why it was assumed"
        case "value":
            return "the parameter's value"
        case _:
            unit = unit_name(name)
            return f"a value in {unit}" if unit else "a value for this key"


def _inconsistencies(file: MachineFile) -> Iterator[Problem]:
    """Problems of no single key: sections and dimensions that do not fit each other."""
    yield from _of_rail(file)
    for name, rail in file.rail.items():
        for problem in _of_rail(rail):
            yield Problem(f"rail.{name}.{problem.key}", problem.value, problem.expected)
    if "first" in file.rail:
        yield Problem("rail.first", "a table", "another name: the first rail is what the file describes without [rail]")
    if (file.host.gpu_copy_bandwidth_mib_s is None) != (file.host.gpu_copy_latency_us is None):
        missing = "bandwidth_mib_s" if file.host.gpu_copy_bandwidth_mib_s is None else "latency_us"
        yield Problem(f"host.gpu_copy_{missing}", ABSENT, "bandwidth and latency together, or neither")
    if file.host.caches is not None and file.host.caches.value == "off" and file.host.uncached_factor is None:
        yield Problem("host.uncached_factor", ABSENT, 'a number, such as 50, with host.caches = "off"')
    for key, quantity in quantities(file):
        for name, given, expected in quantity.problems():
            yield Problem(f"{key}.{name}", ABSENT if given is None else given, expected)
    for key, result in file.results.items():
        for name, given, expected in result.problems():
            yield Problem(f'results."{key}".{name}', ABSENT if given is None else given, expected)
        named = None if result.repeats is None else file.results.get(result.repeats)
        if result.repeats is not None and (named is None or named.repeats is not None or result.repeats == key):
            expected = "the key of another result of this file, which repeats none itself"
            yield Problem(f'results."{key}".repeats', result.repeats, expected)


def _of_rail(rail: MachineFile | Rail) -> Iterator[Problem]:
    """Problems of a card and its network."""
    topology = rail.network.topology.value
    card = rail.card_kind
    is_shared = isinstance(rail, Rail) and rail.slot.value == "shared"
    if is_shared and rail.bus is not None:
        yield Problem("bus", "a section", 'none with slot = "shared": the card is at the bus of the first rail')
    if card.has_network:
        if not SHAPES[topology].has_routers:
            others = ", ".join(f"'{name}'" for name, shape in SHAPES.items() if shape.has_routers)
            yield Problem("network.topology", topology, f'one of {others} for card.kind = "{card.name}"')
        needed = {"router": rail.router, **({"bus": rail.bus} if card.has_bus and not is_shared else {})}
        for key, value in needed.items():
            if value is None:
                yield Problem(key, ABSENT, f'what card.kind = "{card.name}" needs')
        if rail.bus is not None and not card.has_bus:
            yield Problem("bus", "a section", f'none for card.kind = "{card.name}", which has no bus')
    elif SHAPES[topology].has_routers:
        yield Problem("network.topology", topology, f"'none' for card.kind = \"{card.name}\", which has no network")
    yield from _misshapen(rail.network)
    if rail.router is not None:
        yield from _ambiguous(rail.router)


def _ambiguous(router: Router) -> Iterator[Problem]:
    """Values of a router that are given in neither of two ways, or in both."""
    for ways in ROUTER_ALTERNATIVES:
        given = [[key for key in way if getattr(router, key) is not None] for way in ways]
        one, other = (" and ".join(way) if len(way) < 3 else "the stages' delays" for way in ways)  # noqa: PLR2004
        if all(given):
            key = given[1][0]
            yield Problem(f"router.{key}", getattr(router, key).value, f"none beside {given[0][0]}: {one}, or {other}")
            continue
        chosen = ways[1] if given[1] else ways[0]
        for key in chosen:
            if getattr(router, key) is None:
                yield Problem(f"router.{key}", ABSENT, f"a value: a router has {one}, or {other}")


def _one_of(names: tuple[str, ...]) -> str:
    return "one of " + ", ".join(f"'{name}'" for name in names)


def _misshapen(network: Network) -> Iterator[Problem]:
    """Keys of [network] that its topology needs and does not have, or has and does not know."""
    topology = network.topology.value
    shape = SHAPES[topology]
    for key in Network.model_fields:
        value = getattr(network, key)
        if value is None and key in shape.needs:
            which = f": {_one_of(shape.routings)}" if key == "routing" else ""
            yield Problem(f"network.{key}", ABSENT, f'what network.topology = "{topology}" needs{which}')
        if value is not None and key not in ("topology", *shape.needs, *shape.allows):
            known = ", ".join((*shape.needs, *shape.allows)) or "no further key"
            yield Problem(f"network.{key}", _bare_model(value), f'with network.topology = "{topology}": {known}')
    routing = network.routing.value if network.routing is not None else None
    if routing is not None and shape.has_routers and routing not in shape.routings:
        yield Problem("network.routing", routing, f'{_one_of(shape.routings)} with network.topology = "{topology}"')
    if (routing == "table") != (network.table_file is not None):
        value = ABSENT if network.table_file is None else network.table_file.value
        yield Problem("network.table_file", value, 'a file\'s name with network.routing = "table", and none otherwise')
    if network.link is not None:
        yield from _unknown_overrides(network, shape.overrides)


def _unknown_overrides(network: Network, known: tuple[str, ...]) -> Iterator[Problem]:
    if network.dims is not None and known == DIMENSIONS:
        known = known[: len(network.dims.value)]
        reason = f"none: network.dims has {len(known)} dimensions"
    elif network.parents is not None:
        known = known[: len(network.parents.value)]
        reason = f"none: a fat tree of {len(known) + 1} levels has {', '.join(known)}"
    else:
        reason = f'none: network.topology = "{network.topology.value}" has no such link'
    for name in OVERRIDES:
        if name not in known and getattr(network.link, name) is not None:
            yield Problem(f"network.link.{name}", "a table", reason)


def _bare_model(value: object) -> object:
    return value.value if isinstance(value, Quantity) else "a table"
