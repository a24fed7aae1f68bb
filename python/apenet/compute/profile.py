"""The file of a profile: what a program's regions cost, on which host, at which size (docs/models/compute.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from apenet.base.errors import ABSENT, MachineError
from apenet.base.foreign import recognise_text
from apenet.base.infiles import UnreadableError, read_text
from apenet.base.outfiles import begins_with
from apenet.compute.size import Size

FORMAT = "apenet compute profile"
VERSION = 3
HEADING = f'{{"format": "{FORMAT}"'.encode()
IS_PROFILE = begins_with(HEADING)
_MOST_BYTES = 2**28
_MOST_NS = 9e15  # the end of virtual time

Nanoseconds = Annotated[float, Field(ge=0, le=_MOST_NS, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Run = Annotated[tuple[Annotated[int, Field(ge=0, le=int(_MOST_NS))], ...], Field(min_length=2)]
RankClass = Literal["all", "first", "others"]
"""All ranks, rank 0, or every other rank."""


class ProfileError(MachineError):
    """An invalid profile: file, key, value, what was expected."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class HostSpeed(_Part):
    """The speed of one core of the host, measured by a Wilson-Dirac kernel (`apenet perf host`)."""

    processor: str
    flops_per_second: float = Field(gt=0, allow_inf_nan=False)
    flops_per_second_in_cache: float = Field(gt=0, allow_inf_nan=False)
    bytes_per_second: float = Field(gt=0, allow_inf_nan=False)


class Cost(_Part):
    """The time of a region: a constant, and parts for each site, inner site and halo site (Size)."""

    constant_ns: Nanoseconds = 0.0
    per_site_ns: Nanoseconds = 0.0
    per_inner_site_ns: Nanoseconds = 0.0
    per_halo_site_ns: Nanoseconds = 0.0

    def at(self, size: Size) -> float:
        """Nanoseconds at this size."""
        return (
            self.constant_ns
            + self.per_site_ns * size.sites
            + self.per_inner_site_ns * size.inner
            + self.per_halo_site_ns * size.halo
        )


def to_runs(times: Mapping[int, int]) -> tuple[tuple[int, ...], ...]:
    """Times by the number of the pass, as runs of consecutive passes: the number of the first, then the times."""
    runs: list[list[int]] = []
    previous = None
    for number, ns in sorted(times.items()):
        if previous is None or number != previous + 1:
            runs.append([number])
        runs[-1].append(ns)
        previous = number
    return tuple(map(tuple, runs))


class RankPasses(_Part):
    """Single passes of a region on one rank, in nanoseconds, as to_runs() has them.

    `quiet` and `disturbed`: with a core of the rank's own, without and with signs of other load on it. `shared`:
    without such a core; kept if the region has too few of the others.
    """

    rank: int = Field(ge=0)
    count: int = Field(ge=1)
    quiet: tuple[Run, ...] = ()
    disturbed: tuple[Run, ...] = ()
    shared: tuple[Run, ...] = ()

    @model_validator(mode="after")
    def _has_each_pass_once(self) -> Self:
        kinds = (self.quiet, self.disturbed, self.shared)
        numbers = [number for runs in kinds for number, _ in self.times(runs)]
        if len(set(numbers)) != len(numbers) or any(number >= self.count for number in numbers):
            raise ValueError(f"each pass below {self.count} at most once")
        return self

    @staticmethod
    def times(runs: Iterable[Run]) -> Iterable[tuple[int, int]]:
        """Number and nanoseconds of each pass."""
        return ((run[0] + i, ns) for run in runs for i, ns in enumerate(run[1:]))


class Region(_Part):
    """The computation between two calls, with the call sites as `module+0xoffset`.

    Of a recording: `cost` is the mean, and the spread is of single passes. `cores`: the rank had a core for itself,
    with warm caches, or shared it. `between_ranks`: how far the ranks' means lie apart, as a share of the mean.
    Of a fit: `error` is the largest relative error of a size that was left out, if there were enough sizes.
    `after`: the call paths that it has followed, on any rank, in a profile that knows them of all regions
    (src/runtime/shim/call_path.hpp).
    """

    start: str = Field(alias="from", max_length=300)
    start_call: str = Field(alias="from_call", max_length=100)
    end: str = Field(alias="to", max_length=300)
    end_call: str = Field(alias="to_call", max_length=100)
    ranks: RankClass
    count: int = Field(ge=1)
    cost: Cost
    deviation_ns: Nanoseconds | None = None
    least_ns: Nanoseconds | None = None
    most_ns: Nanoseconds | None = None
    between_ranks: Share | None = None
    cores: Literal["own", "shared"] | None = None
    error: Share | None = None
    passes: tuple[RankPasses, ...] = ()
    after: tuple[Annotated[str, Field(pattern="^[0-9a-f]{16}$")], ...] = ()

    @model_validator(mode="after")
    def _has_each_rank_once(self) -> Self:
        ranks = [part.rank for part in self.passes]
        if len(set(ranks)) != len(ranks):
            raise ValueError("each rank at most once in passes")
        if self.passes and sum(part.count for part in self.passes) != self.count:
            raise ValueError(f"{self.count} passes in all")
        return self

    @property
    def key(self) -> tuple[str, str]:
        """The pair of call sites."""
        return self.start, self.end

    @property
    def label(self) -> str:
        """For messages: both sites with the functions called there."""
        return f"{self.start} {self.start_call} to {self.end} {self.end_call}"


class Recorded(_Part):
    """One recording: of how many ranks, at which size."""

    ranks: int = Field(ge=1)
    size: Size | None = None


class Profile(_Part):
    """The times of a program's regions. `recorded` has one element for a recording, several for a fit.

    `probe_ns`: of a recording, the time of the probe (src/runtime/shim/probe.hpp) on an undisturbed core.
    """

    format: Literal["apenet compute profile"]
    version: Literal[3]
    writer: str
    program: str
    arguments: tuple[str, ...]
    modules: dict[str, str]
    host: HostSpeed
    recorded: tuple[Recorded, ...] = Field(min_length=1)
    is_fitted: bool
    error: Share | None = None
    probe_ns: int | None = Field(default=None, ge=0, le=int(_MOST_NS))
    regions: tuple[Region, ...]

    @model_validator(mode="after")
    def _has_its_ranks_only(self) -> Self:
        ranks = self.recorded[0].ranks
        if any(part.rank >= ranks for region in self.regions for part in region.passes):
            raise ValueError(f"passes of a rank below {ranks}")
        return self

    def to_bytes(self) -> bytes:
        """The file: one region a line."""
        content = self.model_dump(mode="json", by_alias=True, exclude={"regions"}, exclude_none=True)
        head = json.dumps(content)[:-1]
        lines = [
            json.dumps(
                region.model_dump(
                    mode="json",
                    by_alias=True,
                    exclude_none=True,
                    exclude={name for name in ("passes", "after") if not getattr(region, name)},
                )
            )
            for region in self.regions
        ]
        return (f'{head}, "regions": [\n' + ",\n".join(lines) + "\n]}\n").encode()


def read_profile(path: Path) -> Profile:
    """Reads a profile. Raises ProfileError."""
    expected = "a compute profile, as --compute record:FILE writes it"
    try:
        text = read_text(path, _MOST_BYTES)
    except UnreadableError as error:
        raise ProfileError(path, "file", "not readable", f"{expected}: {error}") from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        other = recognise_text(text)
        reason = "" if other is None else f": {other}"
        raise ProfileError(path, "file", "no JSON", f"{expected}{reason}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format", ABSENT) if isinstance(content, dict) else "no object"
        raise ProfileError(path, "format", found, f'"{FORMAT}"')
    if content.get("version") != VERSION:
        raise ProfileError(
            path, "version", content.get("version", ABSENT), f"{VERSION}, which this apenet reads; record anew"
        )
    try:
        return Profile.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        value = ABSENT if first["type"] == "missing" else first["input"]
        raise ProfileError(path, key, value, first["msg"].lower()) from None
