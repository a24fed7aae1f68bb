"""Charges a profile: what the ranks get of it, and what they say of regions that it does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apenet.base.errors import ABSENT, InputError
from apenet.compute.elf import build_id
from apenet.compute.exchange import UNKNOWN_PS, Key, RankReport, make_table
from apenet.compute.host_speed import processor_name, slowdown
from apenet.compute.profile import Profile, ProfileError, Region, read_profile
from apenet.compute.recording import PS_PER_NS
from apenet.compute.size import Size
from apenet.machine import Machine

MOST_SCALE = 1e6
MOST_NAMED = 5  # regions and ranks in a warning
LEAST_OVERLAP_NS = 50_000
"""Overlap costs some 10 us of the host: it pays for longer computation than this."""


@dataclass(frozen=True)
class Job:
    """A run to which a profile is to be charged."""

    program: Path
    arguments: tuple[str, ...]
    ranks: int
    size: Size | None
    machine: Machine


@dataclass(frozen=True)
class Charge:
    """A profile that fits a run. `scale` multiplies its times; `note`: what is to be said of it on this host."""

    path: Path
    profile: Profile
    scale: float
    size: Size
    warnings: tuple[str, ...]
    note: str

    def table(self) -> bytes:
        """The times that the ranks charge."""
        costs: dict[Key, tuple[int, int]] = {}
        for region in self.profile.regions:
            first, others = costs.get(region.key, (UNKNOWN_PS, UNKNOWN_PS))
            ps = min(round(region.cost.at(self.size) * self.scale * PS_PER_NS), 2**62)
            costs[region.key] = (
                ps if region.ranks != "others" else first,
                ps if region.ranks != "first" else others,
            )
        return make_table(self.profile.modules, costs, self._call_paths(costs))

    def _call_paths(self, costs: Mapping[Key, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """The call paths after which the program always computes for long: the least cost of what follows."""
        following: dict[str, set[Key]] = {}
        for region in self.profile.regions:
            for call_path in region.after:
                following.setdefault(call_path, set()).add(region.key)
        least_ps = LEAST_OVERLAP_NS * self.scale * PS_PER_NS
        found: dict[str, tuple[int, int]] = {}
        for call_path, keys in following.items():
            first, others = (min(costs[key][ranks] for key in keys) for ranks in (0, 1))
            if max(first, others) >= least_ps:
                found[call_path] = (first if first >= least_ps else 0, others if others >= least_ps else 0)
        return found


@dataclass(frozen=True)
class Unseen:
    """A region without a cost: its call sites, how often it passed, and on which ranks."""

    region: str
    count: int
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Charged:
    """The use of a profile in a run.

    Computation in an unseen region took no time. `lengthened_passes`: of regions that are shorter than every one that
    the profile has after the same calls; they took as long as that.
    """

    scale: float
    passes: int
    unseen_passes: int
    lengthened_passes: int
    unseen: tuple[Unseen, ...]
    ranks_without: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """For run.json."""
        return {**vars(self), "unseen": [vars(region) for region in self.unseen]}


def prepare(path: Path, scale: float | None, job: Job) -> Charge:
    """Checks that a profile is of this program, at this size. Raises ProfileError and InputError."""
    profile = read_profile(path)
    _check_program(path, profile, job)
    size = _size_of(path, profile, job)
    warnings = []
    if profile.arguments != job.arguments and job.size is None:
        warnings.append(
            f"{path}: arguments = {_line(profile.arguments)}: this run has {_line(job.arguments)}; if its problem has "
            "another size, say so with --size, there and here"
        )
    here = processor_name()
    note = ""
    if profile.host.processor != here:
        note = f"{path}: host = {profile.host.processor}: this host is {here}; the times are those of the first"
    applied = slowdown(profile.host, job.machine) if scale is None else scale
    return Charge(path, profile, applied, size, tuple(warnings), note)


def parse_source(compute: str) -> tuple[Path, float | None]:
    """Splits FILE[:X]. Raises InputError."""
    match = re.fullmatch(r"(.+):([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)", compute, re.DOTALL)
    if match is None:
        return Path(compute), None
    scale = float(match[2])
    if not 0 < scale <= MOST_SCALE:
        raise InputError("compute", compute, f"a scale above 0, at most {MOST_SCALE:.0e}")
    return Path(match[1]), scale


def _check_program(path: Path, profile: Profile, job: Job) -> None:
    if profile.program != job.program.name:
        raise ProfileError(path, "program", profile.program, f"a profile of {job.program.name}, which this run runs")
    recorded = profile.modules.get(job.program.name)
    here = build_id(job.program)
    if recorded is not None and here is not None and recorded != here:
        raise ProfileError(
            path,
            f"modules.{job.program.name}",
            recorded,
            f"{here}: the profile is of another build of this program; record it anew",
        )


def _size_of(path: Path, profile: Profile, job: Job) -> Size:
    """The size at which to charge."""
    recorded = profile.recorded[0]
    has_sizes = recorded.size is not None
    if job.size is not None and not has_sizes:
        raise ProfileError(path, "size", ABSENT, f"--size {job.size.given} also when the profile is recorded")
    if profile.is_fitted:
        if job.size is None and has_sizes:
            raise ProfileError(
                path, "size", _sizes(profile), "--size of this run: a rank's sites, as in the recordings"
            )
        return job.size or Size.of_share(job.ranks)
    if recorded.ranks != job.ranks and job.size is None:
        raise ProfileError(
            path,
            "ranks",
            recorded.ranks,
            f"{job.ranks} as in this run, or a profile fitted to several sizes (apenet fit-compute)",
        )
    if job.size is not None and recorded.size is not None:
        same = job.size.counts == recorded.size.counts
        if not same:
            raise ProfileError(
                path,
                "size",
                recorded.size.given,
                f"{job.size.given} as in this run ({job.size.sites:.0f} sites of a rank, {job.size.halo:.0f} in "
                "its faces), or a profile fitted to several sizes (apenet fit-compute)",
            )
    return job.size or recorded.size or Size.of_share(job.ranks)


def _sizes(profile: Profile) -> str:
    return ", ".join(part.size.given for part in profile.recorded if part.size is not None)


def _line(arguments: tuple[str, ...]) -> str:
    return '"' + " ".join(arguments) + '"'


def judge(charge: Charge, reports: Mapping[int, RankReport], ranks: int) -> tuple[Charged, tuple[str, ...]]:
    """The ranks' reports together, and warnings of one sentence each."""
    unseen: dict[str, tuple[int, list[int]]] = {}
    for rank, report in sorted(reports.items()):
        for (start, end), passed in sorted(report.regions.items()):
            label = f"{start} {passed.calls[0]} to {end} {passed.calls[1]}"
            count, where = unseen.get(label, (0, []))
            unseen[label] = (count + passed.count, [*where, rank])
    found = sorted(unseen.items(), key=lambda item: (-item[1][0], item[0]))
    charged = Charged(
        scale=charge.scale,
        passes=sum(report.charged for report in reports.values()),
        unseen_passes=sum(count for count, _ in unseen.values()) + sum(report.lost for report in reports.values()),
        lengthened_passes=sum(report.lengthened for report in reports.values()),
        unseen=tuple(Unseen(label, count, tuple(where)) for label, (count, where) in found),
        ranks_without=tuple(rank for rank in range(ranks) if rank not in reports or reports[rank].charged == 0),
    )
    return charged, tuple(_warnings(charge, charged, reports))


def _warnings(charge: Charge, charged: Charged, reports: Mapping[int, RankReport]) -> Iterable[str]:
    for name, recorded in charge.profile.modules.items():
        others = {report.modules[name] for report in reports.values() if name in report.modules} - {recorded}
        for other in sorted(others):
            yield f"{charge.path}: modules.{name} = {recorded}: this run has {other}; its regions took no time"
    if charged.unseen_passes:
        named = [
            f"{region.region} ({region.count} times on {_ranks(region.ranks)})"
            for region in charged.unseen[:MOST_NAMED]
        ]
        more = len(charged.unseen) - len(named)
        yield (
            f"{charge.path}: {charged.unseen_passes} of {charged.unseen_passes + charged.passes} passes are of "
            f"{len(charged.unseen)} regions that the profile does not have, and took no time: {'; '.join(named)}"
            + (f"; and {more} more regions, all in run.json (--out)" if more else "")
        )
    if charged.lengthened_passes:
        yield (
            f"{charge.path}: {charged.lengthened_passes} passes took longer than the profile says of their regions: "
            "after the same calls it has only longer ones"
        )
    if charged.ranks_without:
        yield f"{charge.path}: nothing was charged on {_ranks(charged.ranks_without)}"


def _ranks(ranks: tuple[int, ...]) -> str:
    named = ", ".join(map(str, ranks[:MOST_NAMED]))
    more = len(ranks) - MOST_NAMED
    return ("rank " if len(ranks) == 1 else "ranks ") + named + (f" and {more} more" if more > 0 else "")


def region_for(profile: Profile, of: Region) -> Region | None:
    """The profile's region for the ranks of another profile's region."""
    candidates = {region.ranks: region for region in profile.regions if region.key == of.key}
    return candidates.get(of.ranks) or candidates.get("all") or candidates.get("others") or candidates.get("first")
