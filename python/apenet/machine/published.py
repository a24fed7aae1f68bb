"""[results.KEY] of a machine file: what the literature measured, and how that is measured here.

The KEY is that of the compilation of the literature, such as "apenet-2004.uni_bw"; it stands in one file, once, and so
does its number. docs/reference/machine-files.md explains every key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from apenet.machine.quantity import Count, NonNegative, Positive, Section, Text

Quantity = Literal[
    "time_us",
    "bandwidth_mib_s",
    "bandwidth_mb_s",
    "bandwidth_gb_s",
    "rate_per_s",
    "link_fraction",
    "gain_percent",
    "flat_until_bytes",
    "crossover_bytes",
    "fit.slow.fixed_us",
    "fit.slow.lambda_us",
    "fit.slow.tau_us",
    "fit.slow.beta_mb_s",
    "fit.fast.fixed_us",
    "fit.fast.lambda_us",
    "fit.fast.tau_us",
    "fit.fast.beta_mb_s",
]

UNITS: dict[str, str] = {
    "time_us": "us",
    "bandwidth_mib_s": "MiB/s",
    "bandwidth_mb_s": "MB/s",
    "bandwidth_gb_s": "GB/s",
    "rate_per_s": "1/s",
    "link_fraction": "-",
    "gain_percent": "%",
    "flat_until_bytes": "B",
    "crossover_bytes": "B",
    "fixed_us": "us",
    "lambda_us": "us",
    "tau_us": "us",
    "beta_mb_s": "MB/s",
}

Role = Literal["fitted", "follows", "assumed", "predicted"]
"""The worth of an agreement with a published value.

`fitted`: a parameter was fitted to it. `follows`: it follows from a fitted value, or from an input. `assumed`: with
another plausible value of an assumed parameter, the verdict would be another. `predicted`: none of these.
"""
Many = Annotated[list[Count], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """One value of a published result; without a size where its statistic needs none."""

    size_bytes: int | None
    value: float
    role: Role


class PublishedResult(Section):
    """One published value, or several of a curve: `value` and `size_bytes` are then lists of one length.

    `test` to `against` say how to measure, as the options of `apenet bench` of the same names. `quantity` and
    `statistic` say what is read off the points, `target` how an agreement is judged, `role` what it is worth; of a
    curve whose points differ in that, a list. `repeats` names the result of this file that has the same published
    number already: each number is counted once.
    """

    test: Literal["pingpong", "pingping", "oneway", "roundtrip", "unidirectional", "bidirectional", "flush", "rate"]
    layer: Literal["card", "mpi"] = "card"
    sizes: Text = "16:1M"
    channels: Count | Many = 1
    window: Count | None = None
    memory: Text = "host"
    path: Text = "auto"
    until: Text = "reply"
    region_bytes: Count | None = None
    iterations: Count | None = None
    settings: list[Text] = Field(default_factory=list)
    against: list[Text] | None = None
    quantity: Quantity
    statistic: Literal["at_size", "minimum", "maximum", "whole"]
    size_bytes: Count | Many | None = None
    within_us: Positive | None = None
    value: Positive | Annotated[list[Positive], Field(min_length=1)]
    tolerance_percent: NonNegative | None = None
    bound: Literal["upper", "lower"] | None = None
    target: Literal["hard", "soft", "shape", "outside", "none"]
    role: Role | Annotated[list[Role], Field(min_length=1)]
    repeats: Text | None = None
    source: Text
    note: str = ""

    @property
    def unit(self) -> str:
        """As it is printed."""
        return UNITS[self.quantity.rpartition(".")[2]]

    @property
    def all_channels(self) -> tuple[int, ...]:
        """The numbers of channels to measure."""
        return (self.channels,) if isinstance(self.channels, int) else tuple(self.channels)

    @property
    def points(self) -> list[PublishedPoint]:
        """In the order of the file."""
        values = self.value if isinstance(self.value, list) else [self.value]
        sizes = self.size_bytes if isinstance(self.size_bytes, list) else [self.size_bytes] * len(values)
        roles = self.role if isinstance(self.role, list) else [self.role] * len(values)
        return [PublishedPoint(*point) for point in zip(sizes, values, roles, strict=True)]

    def problems(self) -> list[tuple[str, object, str]]:
        """Inconsistencies: key, value, expected."""
        found: list[tuple[str, object, str]] = []
        if (self.statistic == "at_size") != (self.size_bytes is not None):
            found.append(("size_bytes", self.size_bytes, 'a size with statistic = "at_size", and none otherwise'))
        lengths = [len(given) if isinstance(given, list) else 1 for given in (self.value, self.size_bytes)]
        if lengths[0] != lengths[1]:
            found.append(("value", self.value, f"one for each of the {lengths[1]} sizes"))
        if isinstance(self.role, list) and len(self.role) != lengths[0]:
            found.append(("role", self.role, f"one for each of the {lengths[0]} values, or one for all"))
        if (self.quantity == "gain_percent") != (self.against is not None):
            found.append(("against", self.against, 'settings of the other run with quantity = "gain_percent"'))
        if (self.quantity == "flat_until_bytes") != (self.within_us is not None):
            found.append(("within_us", self.within_us, 'what is flat, with quantity = "flat_until_bytes" alone'))
        of_a_sweep = self.quantity.startswith("fit.") or self.quantity in ("crossover_bytes", "flat_until_bytes")
        if of_a_sweep != (self.statistic == "whole"):
            found.append(("statistic", self.statistic, f'{"" if of_a_sweep else "not "}"whole" for {self.quantity}'))
        if self.target in ("hard", "soft", "outside") and self.tolerance_percent is None and self.bound is None:
            found.append(("tolerance_percent", None, f'a tolerance or a bound with target = "{self.target}"'))
        return found
