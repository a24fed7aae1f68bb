"""Fits the times of regions to the size of a rank's part of the problem, and says by how much it errs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet._core import version
from apenet.base.errors import InputError
from apenet.compute.charging import region_for
from apenet.compute.combining import Combined, combine, together
from apenet.compute.exchange import Key
from apenet.compute.profile import Cost, Profile, ProfileError, RankClass, Region, read_profile
from apenet.compute.recording import united, weight
from apenet.compute.size import Size

LEAST_SIZES = 2
SIZES_FOR_ERROR = 3
NOTHING_NS = 1e-9
CLEARLY_BETTER = 0.5
OTHER_PATH = 1.25
_PREDICTORS = ("constant_ns", "per_site_ns", "per_inner_site_ns", "per_halo_site_ns")
_SITES, _INNER, _HALO = 1, 2, 3


@dataclass(frozen=True)
class Point:
    """The mean of a region in one recording."""

    recording: int
    size: Size
    region: Region


@dataclass(frozen=True)
class Held:
    """A recording predicted by the others: the ratio of the sums of the regions that two of them have, less one."""

    ranks: int
    size: str
    error: float


@dataclass(frozen=True)
class Fit:
    """A fitted profile.

    `combined`: the recordings, one for each size. `held_out`: one for each of them if there are enough. `constant`:
    regions of one size. `other_path`: the share of the recorded time in regions that a rank passes more often at one
    size than at another, by more than OTHER_PATH: the passes of one size may do other work than those of another.
    """

    profile: Profile
    combined: tuple[Combined, ...]
    held_out: tuple[Held, ...]
    constant: int
    other_path: float

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "program": self.profile.program,
            "sizes": [vars(part.size) if part.size else None for part in self.profile.recorded],
            "regions": len(self.profile.regions),
            "regions_of_one_size": self.constant,
            "other_path": self.other_path,
            "error": self.profile.error,
            "combined": [each.to_json() for each in self.combined],
            "held_out": [vars(held) for held in self.held_out],
        }


@dataclass(frozen=True)
class Compared:
    """A region of a recording beside its prediction, in nanoseconds; None: the profile does not have it."""

    region: Region
    share: float
    recorded_ns: float
    predicted_ns: float | None

    @property
    def error(self) -> float | None:
        """Relative; None without a prediction."""
        if self.predicted_ns is None or self.recorded_ns == 0:
            return None
        return self.predicted_ns / self.recorded_ns - 1


@dataclass(frozen=True)
class Comparison:
    """A recording beside the predictions of a profile; the regions by their share of all time."""

    combined: Combined
    ranks: int
    error: float
    unseen_share: float
    regions: tuple[Compared, ...]

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "ranks": self.ranks,
            "combined": self.combined.to_json(),
            "error": self.error,
            "unseen_share": self.unseen_share,
            "regions": [
                {
                    "region": part.region.label,
                    "of_ranks": part.region.ranks,
                    "share": part.share,
                    "recorded_ns": part.recorded_ns,
                    "predicted_ns": part.predicted_ns,
                    "error": part.error,
                }
                for part in self.regions
            ],
        }


def fit_profiles(paths: Sequence[Path]) -> Fit:
    """Fits recordings of one program on one host at several sizes. Raises ProfileError and InputError.

    Several recordings of one size count as one, without what other load on the host took (combining.py). If all are of
    one size, the profile is their combination and holds for it alone.
    """
    given = [read_profile(path) for path in paths]
    combined = _combined(given, _checked(paths, given))
    profiles = [each.profile for each in combined]
    sizes = [_known_size(profile) for profile in profiles]
    is_fitted = len(profiles) > 1
    regions = list(_fitted(profiles, sizes)) if is_fitted else [(part, LEAST_SIZES) for part in _alone(profiles[0])]
    held_out = tuple(_held_out(profiles, sizes)) if len(profiles) >= SIZES_FOR_ERROR else ()
    call_paths = _call_paths(given)
    profile = profiles[0].model_copy(
        update={
            "writer": f"apenet {version}",
            "modules": dict(sorted({name: of for each in given for name, of in each.modules.items()}.items())),
            "host": max((each.host for each in given), key=lambda host: host.flops_per_second),
            "recorded": tuple(each.recorded[0] for each in profiles),
            "is_fitted": is_fitted,
            "probe_ns": None,
            "error": round(max(abs(held.error) for held in held_out), 4) if held_out else None,
            "regions": tuple(
                region.model_copy(update={"after": call_paths.get(region.key, ())}) for region, _ in regions
            ),
        }
    )
    constant = sum(points == 1 for _, points in regions)
    return Fit(profile, tuple(combined), held_out, constant, _other_path(profiles))


def _call_paths(profiles: Sequence[Profile]) -> dict[Key, tuple[str, ...]]:
    """The call paths that each region has followed in any recording; none if one recording has none."""
    if not all(any(region.after for region in profile.regions) for profile in profiles):
        return {}
    return united((region.key, region.after) for profile in profiles for region in profile.regions)


def _alone(profile: Profile) -> Iterable[Region]:
    """The regions of combined recordings, without their single passes."""
    return (region.model_copy(update={"passes": ()}) for region in profile.regions)


def _other_path(profiles: Sequence[Profile]) -> float:
    passes: dict[Key, list[float]] = {}
    time: dict[Key, float] = {}
    for profile in profiles:
        counts: dict[Key, int] = {}
        for region in profile.regions:
            counts[region.key] = counts.get(region.key, 0) + region.count
            time[region.key] = time.get(region.key, 0.0) + weight(region)
        for key, count in counts.items():
            passes.setdefault(key, []).append(count / profile.recorded[0].ranks)
    other = sum(time[key] for key, of_sizes in passes.items() if max(of_sizes) > OTHER_PATH * min(of_sizes))
    total = sum(time.values())
    return other / total if total > 0 else 0.0


def compare(profile: Profile, paths: Sequence[Path]) -> tuple[Comparison, ...]:
    """Predicts recordings by a fitted profile; several of one size count as one. Raises ProfileError."""
    recordings = [read_profile(path) for path in paths]
    has_sizes = profile.recorded[0].size is not None
    for path, recording in zip(paths, recordings, strict=True):
        _check_same(path, recording, profile)
    sizes = [_size(path, each, has_sizes=has_sizes) for path, each in zip(paths, recordings, strict=True)]
    return tuple(_compare(profile, combined) for combined in _combined(recordings, sizes))


def _compare(profile: Profile, combined: Combined) -> Comparison:
    recording = combined.profile
    size = _known_size(recording)
    total = sum(weight(region) for region in recording.regions)
    parts = []
    for region in sorted(recording.regions, key=lambda each: (-weight(each), each.label)):
        found = region_for(profile, region)
        parts.append(
            Compared(
                region=region,
                share=weight(region) / total if total > 0 else 0.0,
                recorded_ns=region.cost.constant_ns,
                predicted_ns=None if found is None else found.cost.at(size),
            )
        )
    predicted = sum(part.region.count * part.predicted_ns for part in parts if part.predicted_ns is not None)
    return Comparison(
        combined=combined,
        ranks=recording.recorded[0].ranks,
        error=predicted / total - 1 if total > 0 else 0.0,
        unseen_share=sum(part.share for part in parts if part.predicted_ns is None),
        regions=tuple(parts),
    )


def _combined(profiles: Sequence[Profile], sizes: Sequence[Size]) -> list[Combined]:
    """One recording for each size."""
    groups: dict[tuple[int, float, float, float], list[Profile]] = {}
    for profile, size in zip(profiles, sizes, strict=True):
        groups.setdefault((profile.recorded[0].ranks, *size.counts), []).append(profile)
    return [combine(group) for group in groups.values()]


def _known_size(profile: Profile) -> Size:
    recorded = profile.recorded[0]
    return recorded.size or Size.of_share(recorded.ranks)


def _checked(paths: Sequence[Path], profiles: Sequence[Profile]) -> list[Size]:
    if len(paths) < LEAST_SIZES:
        raise InputError("FILE", len(paths), "at least two recordings, of several sizes or of one")
    if len({path.resolve() for path in paths}) < len(paths):
        twice = next(path for path in paths if [other.resolve() for other in paths].count(path.resolve()) > 1)
        raise InputError("FILE", twice, "each recording once")
    for path, profile in zip(paths, profiles, strict=True):
        _check_same(path, profile, profiles[0])
    has_sizes = profiles[0].recorded[0].size is not None
    sizes = [_size(path, profile, has_sizes=has_sizes) for path, profile in zip(paths, profiles, strict=True)]
    kinds = {(profile.recorded[0].ranks, size.counts) for profile, size in zip(profiles, sizes, strict=True)}
    if len(kinds) > 1 and len({size.sites for size in sizes}) < LEAST_SIZES:
        raise ProfileError(paths[1], "size", sizes[1].given, "recordings of at least two sizes, or of one alone")
    return sizes


def _check_same(path: Path, profile: Profile, base: Profile) -> None:
    if profile.is_fitted:
        raise ProfileError(path, "is_fitted", True, "a recording, as --compute record:FILE writes it")
    if profile.program != base.program:
        raise ProfileError(path, "program", profile.program, f"{base.program} as in the first file")
    for name, identity in profile.modules.items():
        first = base.modules.get(name, identity)
        if first != identity:
            raise ProfileError(path, f"modules.{name}", identity, f"{first} as in the first file: the same build")
    if profile.host.processor != base.host.processor:
        raise ProfileError(
            path, "host.processor", profile.host.processor, f"{base.host.processor} as in the first file: the same host"
        )


def _size(path: Path, profile: Profile, *, has_sizes: bool) -> Size:
    recorded = profile.recorded[0]
    if (recorded.size is not None) != has_sizes:
        said = "a size as in the first file (--size at the recording)" if has_sizes else "no size, as in the first file"
        raise ProfileError(path, "size", recorded.size.given if recorded.size else "none", said)
    return _known_size(profile)


def _fitted(
    profiles: Sequence[Profile], sizes: Sequence[Size], without: int | None = None
) -> Iterable[tuple[Region, int]]:
    """The fitted regions, each with the number of its points; `without` leaves one recording out."""
    by_key: dict[Key, list[Point]] = {}
    for number, (profile, size) in enumerate(zip(profiles, sizes, strict=True)):
        for region in profile.regions if number != without else ():
            by_key.setdefault(region.key, []).append(Point(number, size, region))
    for _, points in sorted(by_key.items()):
        for ranks, own in _classes(points, profiles):
            yield _fit_region(own, ranks), len(own)


def _classes(points: Sequence[Point], profiles: Sequence[Profile]) -> Iterable[tuple[RankClass, list[Point]]]:
    """The points of each class of ranks. One class if any recording of several ranks has but one."""
    several = [point for point in points if profiles[point.recording].recorded[0].ranks > 1]
    classes = sorted({point.region.ranks for point in several})
    if not classes or "all" in classes:
        yield "all", [_pooled([point for point in points if point.recording == number]) for number in _numbers(points)]
        return
    for ranks in classes:
        # The only rank of a run is a first one.
        own = [
            point
            for point in points
            if point.region.ranks == ranks or (point.region.ranks == "all" and ranks == "first")
        ]
        yield ranks, own


def _numbers(points: Sequence[Point]) -> list[int]:
    return sorted({point.recording for point in points})


def _pooled(points: Sequence[Point]) -> Point:
    """The classes of one recording together."""
    return Point(points[0].recording, points[0].size, together([point.region for point in points]))


def _fit_region(points: Sequence[Point], ranks: RankClass) -> Region:
    sizes = [point.size for point in points]
    rows = np.array([[1.0, *size.counts] for size in sizes])
    means = np.array([point.region.cost.constant_ns for point in points])
    chosen, error = _choose(rows, means)
    values = dict(zip((_PREDICTORS[i] for i in chosen), _solve(rows[:, chosen], means), strict=True))
    first = points[0].region
    return Region(
        start=first.start,
        start_call=first.start_call,
        end=first.end,
        end_call=first.end_call,
        ranks=ranks,
        count=sum(point.region.count for point in points),
        cost=Cost.model_validate({name: float(f"{value:.9g}") for name, value in values.items() if value > NOTHING_NS}),
        error=None if error is None else round(error, 4),
    )


def _choose(rows: NDArray[np.float64], means: NDArray[np.float64]) -> tuple[list[int], float | None]:
    """The predictors, and the largest relative error of a size left out, if that can be known.

    Work goes with the inner and the halo sites, or with a constant and the sites where no halo is known. Others are
    chosen only if they err much less on sizes left out: with few sizes, small differences are chance.
    """
    has_halo = bool(np.any(rows[:, _HALO]))
    usable = [0, _SITES, _INNER, _HALO] if has_halo else [0, _SITES]
    usual = [_INNER, _HALO] if has_halo else [0, _SITES]
    known = len(means)
    if known < SIZES_FOR_ERROR:
        return ([0] if known == 1 else usual), None
    best = usual
    errors = _errors(rows, means, usual)
    limit = CLEARLY_BETTER * sum(errors)
    for length in range(1, min(len(usable), known - 1) + 1):
        for chosen in map(list, combinations(usable, length)):
            if {_SITES, _INNER, _HALO} <= set(chosen):
                continue  # but for the edges, one is the sum of the others
            others = _errors(rows, means, chosen)
            if sum(others) < limit:
                best, errors, limit = chosen, others, sum(others)
    return best, max(errors)


def _errors(rows: NDArray[np.float64], means: NDArray[np.float64], chosen: list[int]) -> list[float]:
    return [_left_out(rows[:, chosen], means, i) for i in range(len(means))]


def _left_out(rows: NDArray[np.float64], means: NDArray[np.float64], index: int) -> float:
    keep = np.arange(len(means)) != index
    values = _solve(rows[keep], means[keep])
    return abs(float(rows[index] @ values) / max(float(means[index]), 1.0) - 1) if means[index] > 0 else 0.0


def _solve(rows: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that are not negative, of least relative deviation."""
    from scipy.optimize import nnls  # noqa: PLC0415 (slow import)

    weights = 1 / np.maximum(means, 1.0)
    scale = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
    values, _ = nnls(rows / scale * weights[:, None], means * weights)
    return np.asarray(values / scale, dtype=np.float64)


def _held_out(profiles: Sequence[Profile], sizes: Sequence[Size]) -> Iterable[Held]:
    for number, (profile, size) in enumerate(zip(profiles, sizes, strict=True)):
        if len({of.sites for i, of in enumerate(sizes) if i != number}) < LEAST_SIZES:
            continue
        # One size says nothing of another.
        fitted = _fitted(profiles, sizes, without=number)
        regions = tuple(region for region, points in fitted if points >= LEAST_SIZES)
        others = profile.model_copy(update={"regions": regions})
        recorded = predicted = 0.0
        for region in profile.regions:
            found = region_for(others, region)
            if found is None:
                continue
            recorded += weight(region)
            predicted += region.count * found.cost.at(size)
        if recorded > 0:
            yield Held(profile.recorded[0].ranks, size.given, predicted / recorded - 1)
