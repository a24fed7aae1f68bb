"""Several recordings of one size as one: what the passes take when no other load on the host disturbs them.

A program that repeats does the same work in the k-th pass of a region on a rank, whichever recording it is in, and
other load only makes a pass longer. So the time of pass k on rank r is taken as a_k b_r, and no pass was shorter than
that: the product is the largest one below the recorded passes. This is the maximum-likelihood estimate for delays of
exponential distribution (a deterministic frontier: D. Aigner, S. Chu, Am. Econ. Rev. 58, 826, 1968).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from apenet.compute.exchange import Key
from apenet.compute.profile import Cost, Profile, RankClass, RankPasses, Region
from apenet.compute.recording import LEAST_ALONE, LEAST_DIFFERENCE, QUIET, weight
from apenet.compute.size import Size

ALIKE = 2.0
"""A rank differs from the others if more passes than these show it: one or two may have been disturbed."""

Passes = dict[tuple[int, int], list[int]]
"""Nanoseconds by rank and number of the pass."""


@dataclass(frozen=True)
class Combined:
    """Recordings of one size as one.

    `removed`: the share of the recorded time that was disturbance. `one_less`: by how much all computation would be
    longer with one recording less. `not_repeated`: the share of the time in regions that pass more often in one
    recording than in another, of which the least mean counts.
    """

    profile: Profile
    recordings: int
    removed: float
    one_less: float
    not_repeated: float

    @property
    def size(self) -> Size:
        """The size of one rank's part."""
        recorded = self.profile.recorded[0]
        return recorded.size or Size.of_share(recorded.ranks)

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "ranks": self.profile.recorded[0].ranks,
            "size": self.size.given,
            "recordings": self.recordings,
            "removed": self.removed,
            "one_less": self.one_less,
            "not_repeated": self.not_repeated,
        }


def combine(profiles: Sequence[Profile]) -> Combined:
    """Combines recordings of one size. A single one stays as it is."""
    if len(profiles) == 1:
        return Combined(profiles[0], 1, 0.0, 0.0, 0.0)
    regions, not_repeated = _regions(profiles)
    total = _total(regions)
    fewer = [
        _total(_regions(rest)[0] if len(rest) > 1 else rest[0].regions)
        for rest in ([*profiles[:i], *profiles[i + 1 :]] for i in range(len(profiles)))
    ]
    recorded = fmean(_total(profile.regions) for profile in profiles)
    return Combined(
        profile=profiles[0].model_copy(update={"regions": regions}),
        recordings=len(profiles),
        removed=1 - total / recorded if recorded > 0 else 0.0,
        one_less=fmean(fewer) / total - 1 if total > 0 else 0.0,
        not_repeated=not_repeated / total if total > 0 else 0.0,
    )


def _total(regions: Iterable[Region]) -> float:
    return sum(map(weight, regions))


def _regions(profiles: Sequence[Profile]) -> tuple[tuple[Region, ...], float]:
    """The regions, and the time of those that do not repeat."""
    best_probe = min((each.probe_ns for each in profiles if each.probe_ns), default=0)
    is_quiet = [each.probe_ns is not None and each.probe_ns <= QUIET * best_probe for each in profiles]
    by_key: dict[Key, list[tuple[bool, list[Region]]]] = {}
    for profile, quiet in zip(profiles, is_quiet, strict=True):
        own: dict[Key, list[Region]] = {}
        for region in profile.regions:
            own.setdefault(region.key, []).append(region)
        for key, parts in own.items():
            by_key.setdefault(key, []).append((quiet, parts))
    regions: list[Region] = []
    not_repeated = 0.0
    for _, found in sorted(by_key.items()):
        groups = [parts for _, parts in found]
        if _repeats(groups, len(profiles)):
            regions += _undisturbed(found)
        else:
            least = list(_least(groups))
            not_repeated += _total(least)
            regions += least
    return tuple(regions), not_repeated


def _repeats(groups: Sequence[Sequence[Region]], recordings: int) -> bool:
    """Every rank passes as often in each recording, and single passes are known."""
    counts = [{each.rank: each.count for part in parts for each in part.passes} for parts in groups]
    return len(groups) == recordings and bool(counts[0]) and all(each == counts[0] for each in counts)


def _least(groups: Sequence[Sequence[Region]]) -> Iterable[Region]:
    """The least mean of the recordings. Other load on the host only makes a region slower."""
    by_class = [{part.ranks: part for part in parts} for parts in groups]
    same = all(found.keys() == by_class[0].keys() for found in by_class)
    each: Sequence[Mapping[RankClass, Region]] = (
        by_class if same else [{"all": together(list(found.values()))} for found in by_class]
    )
    for ranks in each[0]:
        yield min((found[ranks] for found in each), key=lambda region: region.cost.constant_ns)


def together(regions: Sequence[Region]) -> Region:
    """The classes of a region in one recording as one."""
    if len(regions) == 1:
        return regions[0]
    count = sum(region.count for region in regions)
    mean = sum(map(weight, regions)) / count
    return regions[0].model_copy(update={"ranks": "all", "count": count, "cost": Cost(constant_ns=mean), "passes": ()})


def _undisturbed(found: Sequence[tuple[bool, Sequence[Region]]]) -> Iterable[Region]:
    """The regions of one pair of call sites: of all ranks, or of rank 0 and of the others."""
    model = found[0][1][0]
    counts = {each.rank: each.count for part in found[0][1] for each in part.passes}
    pooled = [(quiet, each) for quiet, parts in found for part in parts for each in part.passes]
    # In most recordings rank 0 is a class of its own: its passes may differ from the others' by more than a factor.
    is_split = 2 * sum(len(parts) > 1 for _, parts in found) > len(found)
    means = {}
    for group in [{0}, counts.keys() - {0}] if is_split else [counts.keys()]:
        means.update(_means([(quiet, each) for quiet, each in pooled if each.rank in group], counts))

    def region(ranks: RankClass, of: Iterable[int]) -> Region:
        members = list(of)
        count = sum(counts[rank] for rank in members)
        mean = sum(counts[rank] * means[rank] for rank in members) / count
        return model.model_copy(
            update={"ranks": ranks, "count": count, "cost": Cost(constant_ns=round(mean, 3)), "passes": ()}
        )

    whole = region(model.ranks if not is_split and len(found[0][1]) == 1 else "all", counts)
    others = counts.keys() - {0}
    if 0 not in counts or not others:
        yield whole
        return
    first, rest = region("first", [0]), region("others", others)
    one, other = first.cost.constant_ns, rest.cost.constant_ns
    yield from (
        (first, rest)
        if abs(one - other) > LEAST_DIFFERENCE * max(one, other)
        else (whole.model_copy(update={"ranks": "all"}),)
    )


def _means(passes: Sequence[tuple[bool, RankPasses]], counts: Mapping[int, int]) -> dict[int, float]:
    """Nanoseconds of a pass of each rank."""
    ranks = sorted({each.rank for _, each in passes})
    of_pass, of_rank = frontier(*_chosen(passes, sum(counts[rank] for rank in ranks)))
    usual = fmean(of_rank.values())
    every = fmean(of_pass.values())
    means = {}
    for rank in ranks:
        known = [ns for number, ns in of_pass.items() if number < counts[rank]]
        means[rank] = (fmean(known) if known else every) * of_rank.get(rank, usual)
    return means


def _chosen(passes: Sequence[tuple[bool, RankPasses]], count: int) -> tuple[Passes, Passes]:
    """The passes that count, and those that bound the times from above.

    Of each pass number the quiet passes count, or else the disturbed ones. All of these are bounds. Passes on shared
    cores count, as all others do, if few are known on cores of the ranks' own.
    """
    quiet: Passes = {}
    own: Passes = {}
    every: Passes = {}
    for is_quiet, each in passes:
        for runs, to in (
            (each.quiet, (quiet, own, every) if is_quiet else (own, every)),
            (each.disturbed, (own, every)),
            (each.shared, (every,)),
        ):
            for number, ns in each.times(runs):
                for kind in to:
                    kind.setdefault((each.rank, number), []).append(ns)
    if len(own) < min(LEAST_ALONE, count):
        return every, every
    known = {number for _, number in quiet}
    return quiet | {key: times for key, times in own.items() if key[1] not in known}, own


def frontier(passes: Passes, bounds: Passes) -> tuple[dict[int, float], dict[int, float]]:
    """The times of passes and the factors of ranks, of which the products are the largest below all bounds.

    `bounds` are all passes, also those of `passes`, which are to be near the products and count by their times. Ranks
    count as equal where nothing relates them.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 (slow import)
    from scipy.sparse import coo_array  # noqa: PLC0415

    least = {key: min(times) for key, times in bounds.items()}
    of_pass: dict[int, float] = {}
    for (_, number), ns in least.items():
        of_pass[number] = min(ns, of_pass.get(number, ns))
    ranks = sorted({rank for rank, _ in least})
    if len(ranks) == 1:
        return of_pass, {ranks[0]: 1.0}
    # The clock does not see the others.
    numbers = sorted(number for number, ns in of_pass.items() if ns > 0)
    least = {key: ns for key, ns in least.items() if of_pass[key[1]] > 0}
    if not least:
        return of_pass, dict.fromkeys(ranks, 1.0)
    # Unknown are the logarithms: of a_k, of b_r, and the absolute values of the latter.
    column = {number: i for i, number in enumerate(numbers)}
    factor = {rank: len(numbers) + i for i, rank in enumerate(ranks)}
    size = len(ranks)
    usual = fmean(of_pass[number] for number in numbers)
    gain = np.zeros(len(numbers) + 2 * size)
    gain[-size:] = -ALIKE
    for (rank, number), times in passes.items():
        if number in column:
            share = len(times) * of_pass[number] / usual
            gain[column[number]] += share
            gain[factor[rank]] += share
    entries = [(row, at, 1) for row, (rank, number) in enumerate(least) for at in (column[number], factor[rank])]
    limits = list(np.log(list(least.values()))) + 2 * size * [0.0]
    for i, at in enumerate(factor.values()):
        for sign in (1, -1):
            row = len(least) + 2 * i + (sign < 0)
            entries += [(row, at, sign), (row, at + size, -1)]
    rows, columns, values = zip(*entries, strict=True)
    matrix = coo_array((values, (rows, columns)), shape=(len(limits), len(gain))).tocsr()
    # The interior-point method takes a tenth of the simplex method's time for thousands of passes.
    solved = linprog(-gain, A_ub=matrix, b_ub=limits, bounds=(None, None), method="highs-ipm")
    if not solved.success:
        raise RuntimeError(f"the passes of a region have no frontier: {solved.message}")
    times = np.exp(solved.x)
    return (
        of_pass | {number: float(times[at]) for number, at in column.items()},
        {rank: float(times[at]) for rank, at in factor.items()},
    )
