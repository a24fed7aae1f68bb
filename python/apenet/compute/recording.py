"""Makes a profile of what the ranks of a recorded run report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apenet._core import version
from apenet.compute.exchange import Key, Pass, Passed, RankReport, Samples
from apenet.compute.profile import (
    FORMAT,
    VERSION,
    Cost,
    HostSpeed,
    Profile,
    RankClass,
    RankPasses,
    Recorded,
    Region,
    to_runs,
)
from apenet.compute.size import Size

PS_PER_NS = 1000
LEAST_ALONE = 8
"""Passes on a core of a rank's own that suffice for a mean, or half of all. With fewer, all passes count."""
SIGMAS = 4
LEAST_DIFFERENCE = 0.1
"""Rank 0 and the others are classes of their own if their means differ by more than both."""
UNDISTURBED = 0.02
"""The quantile of the probe's times that is taken for its time on an undisturbed core; a clock may err in a few."""
QUIET = 1.2
"""A core counts as undisturbed if the probe takes at most so many times that."""
UNEVEN = 0.25
HEAVY = 0.02
"""Ranks that differ by more than the first, in a region with more than the second share of all time: a warning."""


@dataclass(frozen=True)
class Origin:
    """The run that a recording is of."""

    program: str
    arguments: tuple[str, ...]
    ranks: int
    size: Size | None
    host: HostSpeed


def make_profile(reports: Mapping[int, RankReport], origin: Origin) -> tuple[Profile, tuple[str, ...]]:
    """The profile, and what is to be said about it, one sentence each."""
    modules: dict[str, str] = {}
    for report in reports.values():
        modules.update(report.modules)
    probe_ns = _undisturbed_probe(reports)
    keys = sorted({key for report in reports.values() for key in report.regions})
    call_paths = _call_paths(reports)
    regions = tuple(
        region.model_copy(update={"after": call_paths.get(key, ())})
        for key in keys
        for region in _regions(key, reports, probe_ns)
    )
    profile = Profile(
        format=FORMAT,
        version=VERSION,
        writer=f"apenet {version}",
        program=origin.program,
        arguments=origin.arguments,
        modules=dict(sorted(modules.items())),
        host=origin.host,
        recorded=(Recorded(ranks=origin.ranks, size=origin.size),),
        is_fitted=False,
        probe_ns=probe_ns or None,
        regions=regions,
    )
    return profile, tuple(_warnings(profile, reports, origin.ranks))


def _call_paths(reports: Mapping[int, RankReport]) -> dict[Key, tuple[str, ...]]:
    """The call paths that each region has followed; none if a rank had no room for all of them."""
    if not all(report.has_call_paths for report in reports.values()):
        return {}
    return united((key, passed.call_paths) for report in reports.values() for key, passed in report.regions.items())


def united(call_paths: Iterable[tuple[Key, Iterable[str]]]) -> dict[Key, tuple[str, ...]]:
    """All call paths of each region, sorted."""
    found: dict[Key, set[str]] = {}
    for key, own in call_paths:
        found.setdefault(key, set()).update(own)
    return {key: tuple(sorted(own)) for key, own in found.items()}


def _regions(key: Key, reports: Mapping[int, RankReport], probe_ns: int) -> Iterable[Region]:
    passed = {rank: report.regions[key] for rank, report in reports.items() if key in report.regions}
    first = {rank: part for rank, part in passed.items() if rank == 0}
    others = {rank: part for rank, part in passed.items() if rank != 0}
    if not others and len(reports) > 1:
        yield _region(key, "first", first, probe_ns)
    elif not first:
        yield _region(key, "others", others, probe_ns)
    elif others and _differ(_used(first)[0], _used(others)[0]):
        yield _region(key, "first", first, probe_ns)
        yield _region(key, "others", others, probe_ns)
    else:
        yield _region(key, "all", passed, probe_ns)


def _used(passed: Mapping[int, Passed]) -> tuple[Samples, bool]:
    """The samples that count, and whether they are of ranks with a core of their own."""
    alone = sum((part.alone for part in passed.values()), Samples())
    every = sum((part.beside for part in passed.values()), alone)
    if alone.count >= min(LEAST_ALONE, every.count / 2):
        return alone, True
    return every, False


def _differ(one: Samples, other: Samples) -> bool:
    difference = abs(one.mean_ps - other.mean_ps)
    error = math.sqrt(one.variance / one.count + other.variance / other.count)
    return difference > SIGMAS * error and difference > LEAST_DIFFERENCE * max(one.mean_ps, other.mean_ps)


def _region(key: Key, ranks: RankClass, passed: Mapping[int, Passed], probe_ns: int) -> Region:
    samples, is_alone = _used(passed)
    calls = next(iter(passed.values())).calls
    of_ranks = [part.alone if is_alone else part.alone + part.beside for part in passed.values()]
    means = [own.mean_ps for own in of_ranks if own.count >= LEAST_ALONE]
    spread = (max(means) - min(means)) / samples.mean_ps if len(means) > 1 and samples.mean_ps > 0 else None
    return Region(
        start=key[0],
        start_call=calls[0],
        end=key[1],
        end_call=calls[1],
        ranks=ranks,
        count=sum(part.count for part in passed.values()),
        cost=Cost(constant_ns=_ns(samples.mean_ps)),
        deviation_ns=_ns(math.sqrt(samples.variance)),
        least_ns=_ns(samples.least_ps),
        most_ns=_ns(samples.most_ps),
        between_ranks=None if spread is None else round(spread, 3),
        cores="own" if is_alone else "shared",
        passes=tuple(
            RankPasses(
                rank=rank,
                count=part.count,
                quiet=_runs(each for each in part.alone_passes if each.probe_ns <= QUIET * probe_ns),
                disturbed=_runs(each for each in part.alone_passes if each.probe_ns > QUIET * probe_ns),
                shared=() if is_alone else _runs(part.beside_passes),
            )
            for rank, part in sorted(passed.items())
        ),
    )


def _undisturbed_probe(reports: Mapping[int, RankReport]) -> int:
    """Nanoseconds that the probe takes on an undisturbed core; 0 if no rank had a core of its own."""
    times = sorted(
        each.probe_ns for report in reports.values() for part in report.regions.values() for each in part.alone_passes
    )
    return times[int(UNDISTURBED * len(times))] if times else 0


def _runs(passes: Iterable[Pass]) -> tuple[tuple[int, ...], ...]:
    return to_runs({each.number: each.ns for each in passes})


def _ns(ps: float) -> float:
    return round(ps / PS_PER_NS, 3)


def _warnings(profile: Profile, reports: Mapping[int, RankReport], ranks: int) -> Iterable[str]:
    silent = [str(rank) for rank in range(ranks) if rank not in reports]
    if silent:
        yield f"recording: no computation of rank {', '.join(silent)}: it ended without MPI_Finalize or exit()"
    lost = sum(report.lost for report in reports.values())
    if lost:
        yield (
            f"recording: {lost} passes are missing: their call sites are in code without a file, or there are more "
            "than 4096 sites or 8192 pairs"
        )
    total = sum(weight(region) for region in profile.regions)
    for region in profile.regions:
        if (region.between_ranks or 0) > UNEVEN and weight(region) > HEAVY * total:
            yield (
                f"recording: the ranks differ by {region.between_ranks:.0%} in {region.label}: "
                "the profile has their mean"
            )
    shared = sum(weight(region) for region in profile.regions if region.cores == "shared")
    if total > 0 and shared > UNEVEN * total:
        yield (
            f"recording: {shared / total:.0%} of the time was measured while ranks shared a core and its caches: "
            "the host has one core, or the run was short"
        )


def weight(region: Region) -> float:
    """Its time in the recording: of all passes."""
    return region.count * region.cost.constant_ns
