"""What a sweep varies: keys of the machine and options of the command over listed values, numbers over ranges."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apenet.base.errors import InputError
from apenet.base.tomltext import TomlError, parse_toml

MOST_VALUES = 1_000_000
_RANGE = re.compile(r"\s*([^:\s]+)\s*:\s*([^:\s]+)\s*:\s*([^:\s]+)\s*")
_KEY = re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9-]*|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
_EXPECTED_KEY = "a key of the machine, such as network.link.clock_mhz, or an option of the command, such as --sizes"
_BOUNDS = 2


@dataclass(frozen=True)
class Axis:
    """One swept parameter. Values are texts, as `--set KEY=` or the option takes them."""

    name: str
    values: tuple[str, ...]

    @property
    def is_option(self) -> bool:
        """Whether it is an option of the command, and else a key of the machine."""
        return self.name.startswith("-")

    def arguments(self, value: str) -> tuple[str, ...]:
        """The value on the command line."""
        if not self.is_option:
            return ("--set", f"{self.name}={value}")
        return (f"{self.name}={value}",) if self.name.startswith("--") else (self.name, value)


@dataclass(frozen=True)
class Interval:
    """A number of the machine that is drawn from a range."""

    key: str
    low: float
    high: float


def parse_axis(option: str, given: str) -> Axis:
    """`KEY=FIRST:LAST:COUNT`, `KEY=A,B,C` or `KEY=[A, B, C]`, where KEY is also an option: `-n=2,4`.

    Raises InputError.
    """
    key, equals, text = given.partition("=")
    key = key.strip()
    if not equals or not _KEY.fullmatch(key):
        raise InputError(option, given, f"KEY=VALUES with {_EXPECTED_KEY}")
    return Axis(key, _values(option, given, text.strip()))


def axis_of(option: str, key: str, values: object) -> Axis:
    """The same from a TOML file: a text as on the command line, or a list of values. Raises InputError."""
    if not _KEY.fullmatch(key):
        raise InputError(option, key, _EXPECTED_KEY)
    if isinstance(values, str):
        return Axis(key, _values(option, values, values.strip()))
    if isinstance(values, list):
        return Axis(key, _checked(option, str(values), [_text_of(value) for value in values]))
    raise InputError(option, values, "a list of values, or a text such as 100:133:11")


def parse_interval(option: str, given: str) -> Interval:
    """`KEY=LOW:HIGH`. Raises InputError."""
    key, equals, text = given.partition("=")
    low, colon, high = text.partition(":")
    if not equals or not colon:
        raise InputError(option, given, "KEY=LOW:HIGH, such as bus.clock_mhz=66:133")
    return _interval(option, given, key.strip(), _number(option, given, low), _number(option, given, high))


def interval_of(option: str, key: str, bounds: object) -> Interval:
    """The same from a TOML file, `[LOW, HIGH]`. Raises InputError."""
    if isinstance(bounds, list) and len(bounds) == _BOUNDS:
        low, high = bounds
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in bounds):
            return _interval(option, bounds, key, low, high)
    raise InputError(option, bounds, "the least and the largest value, [LOW, HIGH]")


def _interval(option: str, given: object, key: str, low: float, high: float) -> Interval:
    if key.startswith("-") or not _KEY.fullmatch(key):
        raise InputError(option, given, "a key of the machine, such as bus.clock_mhz")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(option, given, "two numbers, the smaller first")
    return Interval(key, low, high)


def _values(option: str, given: str, text: str) -> tuple[str, ...]:
    if found := _RANGE.fullmatch(text):
        return _checked(option, given, _spaced(option, given, *found.groups()))
    if text.startswith("["):
        try:
            listed = parse_toml(f"value = {text}")["value"]
        except (TomlError, KeyError) as error:
            raise InputError(option, given, f"a list in TOML: {error}") from error
        return _checked(option, given, [_text_of(value) for value in listed])
    return _checked(option, given, [part.strip() for part in text.split(",")])


def _spaced(option: str, given: str, first: str, last: str, count: str) -> list[str]:
    """Evenly spaced numbers with both ends; whole where all are, else of six digits: whole hertz and picoseconds."""
    if not re.fullmatch(r"[0-9]+", count) or not 1 <= int(count) <= MOST_VALUES:
        raise InputError(option, given, f"FIRST:LAST:COUNT with a count from 1 to {MOST_VALUES}")
    low, high, steps = _number(option, given, first), _number(option, given, last), int(count) - 1
    if steps == 0 and low != high:
        raise InputError(option, given, "FIRST:LAST:COUNT with a count of at least 2")
    values = [low + (high - low) * step / max(steps, 1) for step in range(steps + 1)]
    values = [float(f"{value:.6g}") if 0 < step < steps else value for step, value in enumerate(values)]
    whole = all(value.is_integer() and abs(value) < 2**53 for value in values) and not re.search("[.eE]", first + last)
    return [str(int(value)) if whole else repr(value) for value in values]


def _number(option: str, given: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(option, given, f'numbers, not "{text.strip()}"')
    return value


def _text_of(value: Any) -> str:  # noqa: ANN401 (whatever TOML holds)
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _checked(option: str, given: str, values: Sequence[str]) -> tuple[str, ...]:
    if not values or any(not value for value in values):
        raise InputError(option, given, "at least one value, none of them empty")
    if len(set(values)) < len(values):
        twice = next(value for value in values if list(values).count(value) > 1)
        raise InputError(option, given, f"each value once, {twice} comes twice")
    return tuple(values)
