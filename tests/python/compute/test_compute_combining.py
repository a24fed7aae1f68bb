"""Several recordings of one size as one: drawn recordings of a program whose undisturbed times are known."""

import random
from dataclasses import dataclass

import pytest

from apenet.compute.combining import combine, frontier
from apenet.compute.profile import Cost, HostSpeed, Profile, RankPasses, Recorded, Region, to_runs

HOST = HostSpeed(processor="a", flops_per_second=1, flops_per_second_in_cache=1, bytes_per_second=1)
PROBE_NS = 2000


@dataclass(frozen=True)
class Program:
    """A region: the undisturbed nanoseconds of pass k on rank r are times[k] * factors[r]."""

    times: tuple[int, ...]
    factors: tuple[float, ...]

    def undisturbed(self, rank: int, number: int) -> float:
        return self.times[number] * self.factors[rank]

    @property
    def mean(self) -> float:
        return sum(self.times) / len(self.times) * sum(self.factors) / len(self.factors)


@dataclass(frozen=True)
class Host:
    """Other load makes stretches of passes half as long again. A probe sees `seen` of the disturbed passes."""

    disturbed: float
    seen: float
    stretch: int = 10


def drawn(seed: int, ranks: int, passes: int = 120) -> Program:
    draw = random.Random(seed)
    times = tuple(draw.choice((100_000, 130_000, 2_000_000)) for _ in range(passes))
    return Program(times, tuple(1 + 0.3 * draw.random() for _ in range(ranks)))


def recording(program: Program, host: Host, seed: int) -> Profile:
    """One rank after the other has a core of its own, for a stretch of passes, from a drawn rank on."""
    draw = random.Random(seed)
    ranks, passes = len(program.factors), len(program.times)
    first, turn = draw.randrange(ranks), max(passes // (2 * ranks), 1)
    quiet: list[dict[int, int]] = [{} for _ in range(ranks)]
    disturbed: list[dict[int, int]] = [{} for _ in range(ranks)]
    is_disturbed = False
    for number in range(passes):
        if number % host.stretch == 0:
            is_disturbed = draw.random() < host.disturbed
        rank = (first + number // turn) % ranks
        ns = program.undisturbed(rank, number) * (1.5 if is_disturbed else 1) * (1 + 0.01 * draw.random())
        to = disturbed if is_disturbed and draw.random() < host.seen else quiet
        to[rank][number] = round(ns)
    parts = tuple(
        RankPasses(rank=rank, count=passes, quiet=to_runs(quiet[rank]), disturbed=to_runs(disturbed[rank]))
        for rank in range(ranks)
    )
    every = [ns for each in (*quiet, *disturbed) for ns in each.values()]
    return profile(parts, sum(every) / len(every))


def profile(passes: tuple[RankPasses, ...], mean: float, probe_ns: int = PROBE_NS) -> Profile:
    region = Region(
        start="a",
        start_call="",
        end="b",
        end_call="",
        ranks="all",
        count=sum(each.count for each in passes),
        cost=Cost(constant_ns=mean),
        passes=passes,
    )
    return Profile(
        format="apenet compute profile",
        version=3,
        writer="",
        program="a",
        arguments=(),
        modules={},
        host=HOST,
        recorded=(Recorded(ranks=len(passes)),),
        is_fitted=False,
        probe_ns=probe_ns,
        regions=(region,),
    )


def own(*times: int) -> tuple[tuple[int, ...], ...]:
    return to_runs(dict(enumerate(times)))


def mean(combined: Profile) -> float:
    return sum(part.count * part.cost.constant_ns for part in combined.regions) / sum(
        part.count for part in combined.regions
    )


@pytest.mark.parametrize("ranks", [1, 2, 8, 16])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("load", "seen"), [(0.5, 0.8), (0.3, 0.0)])
def test_disturbances_are_removed(ranks, seed, load, seen):
    program = drawn(seed, ranks)
    recordings = [recording(program, Host(load, seen), 100 * seed + i) for i in range(8)]
    combined = combine(recordings)
    assert mean(combined.profile) == pytest.approx(program.mean, rel=0.05)
    recorded = sum(map(mean, recordings)) / len(recordings)
    assert recorded > 1.1 * program.mean
    assert combined.removed == pytest.approx(1 - mean(combined.profile) / recorded)
    # What one recording less would give is nearer than what four less give.
    assert -0.01 < combined.one_less < mean(combine(recordings[:4]).profile) / mean(combined.profile) - 1 + 0.01


def test_a_quiet_host_loses_nothing():
    program = drawn(1, 4)
    combined = combine([recording(program, Host(0, 0), i) for i in range(5)])
    assert mean(combined.profile) == pytest.approx(program.mean, rel=0.01)


def test_ranks_keep_their_differences():
    """A rank with twice the work of the others is no disturbance."""
    program = Program((1000,) * 60, (1, 1, 1, 2))
    combined = combine([recording(program, Host(0.3, 0.5), i) for i in range(6)])
    assert mean(combined.profile) == pytest.approx(1250, rel=0.04)


def test_the_first_rank_is_a_class_of_its_own_where_it_differs():
    program = Program((10_000,) * 60, (2, 1, 1, 1))
    combined = combine([recording(program, Host(0.3, 0.5), i) for i in range(6)])
    costs = {part.ranks: (part.count, part.cost.constant_ns) for part in combined.profile.regions}
    assert costs["first"] == (60, pytest.approx(20_000, rel=0.04))
    assert costs["others"] == (180, pytest.approx(10_000, rel=0.04))


def test_the_frontier_is_a_product_below_all_passes():
    draw = random.Random(3)
    times = {(r, k): [round(1e5 * (1 + r) * (2 + k) * (1 + draw.random()))] for r in range(4) for k in range(9)}
    of_pass, of_rank = frontier(times, times)
    assert all(of_pass[k] * of_rank[r] <= ns[0] * (1 + 1e-9) for (r, k), ns in times.items())
    exact = {(r, k): [1000 * (1 + r) * (2 + k)] for r in range(4) for k in range(9)}
    of_pass, of_rank = frontier(exact, exact)
    assert all(of_pass[k] * of_rank[r] == pytest.approx(ns[0]) for (r, k), ns in exact.items())


def test_ranks_that_nothing_relates_count_as_equal():
    apart = {(0, 0): [100], (0, 1): [100], (1, 2): [500], (1, 3): [700]}
    _, of_rank = frontier(apart, apart)
    assert of_rank == {0: pytest.approx(1), 1: pytest.approx(1)}


def test_passes_without_time_stay_so():
    times = {(0, 0): [0], (1, 0): [3], (0, 1): [0], (1, 1): [0], (0, 2): [8], (1, 2): [8]}
    of_pass, _ = frontier(times, times)
    assert of_pass == {0: 0, 1: 0, 2: pytest.approx(8)}


def test_disturbed_passes_do_not_count_beside_quiet_ones():
    """Rank 1 has no quiet pass that could tell how it differs from rank 0, so it counts as equal."""
    passes = (
        RankPasses(rank=0, count=4, quiet=own(100, 200, 100, 200)),
        RankPasses(rank=1, count=4, disturbed=own(150, 300, 150, 300)),
    )
    assert mean(combine([profile(passes, 0), profile(passes, 0)]).profile) == pytest.approx(150)


def test_no_pass_is_shorter_than_the_estimate():
    """A disturbance in the middle of a quiet pass, which no probe sees; another recording has a shorter pass."""
    one = profile((RankPasses(rank=0, count=2, quiet=own(400, 100)),), 0)
    other = profile((RankPasses(rank=0, count=2, disturbed=own(300, 200)),), 0)
    assert mean(combine([one, other]).profile) == (300 + 100) / 2


def test_a_recording_on_a_slow_core_has_no_quiet_passes():
    """Its probe was never as fast as that of the other recording: the host was disturbed all the time."""
    nothing = RankPasses(rank=0, count=4), RankPasses(rank=1, count=4)
    fast = profile((RankPasses(rank=0, count=4, quiet=own(*[100] * 4)), nothing[1]), 0)
    late = (nothing[0], RankPasses(rank=1, count=4, quiet=own(*[150] * 4)))
    assert mean(combine([fast, profile(late, 0)]).profile) == pytest.approx(125)
    assert mean(combine([fast, profile(late, 0, probe_ns=2 * PROBE_NS)]).profile) == pytest.approx(100)


def test_shared_cores_do_not_mix_with_own_ones():
    shared = tuple((i, 50) for i in range(8))
    one = profile((RankPasses(rank=0, count=16, quiet=((0, *[100] * 8),)),), 100)
    other = profile((RankPasses(rank=0, count=16, shared=shared),), 50)
    assert mean(combine([one, other]).profile) == 100
    few = profile((RankPasses(rank=0, count=16, quiet=((0, *[100] * 7),)),), 100)
    assert mean(combine([few, other]).profile) == (8 * 50) / 8


def test_programs_that_do_not_repeat_have_the_least_mean():
    """Pass k of one recording is another one than pass k of the next."""
    one = profile((RankPasses(rank=0, count=2, quiet=own(100, 300)),), 200)
    other = profile((RankPasses(rank=0, count=3, quiet=own(300, 100, 200)),), 180)
    combined = combine([one, other])
    assert mean(combined.profile) == 180
    assert combined.not_repeated == 1


def test_a_single_recording_stays_as_it_is():
    one = recording(drawn(2, 4), Host(0.5, 0.5), 1)
    combined = combine([one])
    assert combined.profile is one
    assert (combined.removed, combined.one_less) == (0, 0)
