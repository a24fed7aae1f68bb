"""Computation as a profile: recorded, charged, fitted. The program counts its work itself, so every time is exact."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apenet.base.errors import InputError
from apenet.compute.exchange import Samples
from apenet.compute.fitting import compare, fit_profiles
from apenet.compute.profile import ProfileError, RankPasses, read_profile
from apenet.compute.size import parse_size

BIN = Path(sys.executable).parent
SOURCE = Path(__file__).with_name("regions.c")
SITES = 4000
PASSES = 20


def compiled(folder: Path, *options: str) -> Path:
    program = folder / "regions"
    command = [BIN / "mpicc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", *options]
    subprocess.run([*command, "-o", program, SOURCE], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return compiled(tmp_path_factory.mktemp("regions"))


@pytest.fixture(scope="module")
def run(apenet, program):
    def run_program(ranks: int, compute: str | Path, form="loop", *, options: tuple[str | Path, ...] = (), of=program):
        return apenet("run", "-n", str(ranks), "--compute", compute, *options, "--", of, str(SITES), form)

    return run_program


@pytest.fixture(scope="module")
def recorded(run, tmp_path_factory):
    """Records a run once, and gives the profile's path and what the program printed."""
    folder = tmp_path_factory.mktemp("profiles")
    known: dict[tuple[object, ...], tuple[Path, str]] = {}

    def record(ranks: int, form="loop", *, options: tuple[str, ...] = ()) -> tuple[Path, str]:
        key = (ranks, form, options)
        if key not in known:
            path = folder / f"{len(known)}.json"
            done = run(ranks, f"record:{path}", form, options=options)
            assert done.returncode == 0, done.stderr
            known[key] = path, done.stdout
        return known[key]

    return record


def times(path: Path) -> dict[tuple[str, str, str], tuple[int, float]]:
    """Count and mean in nanoseconds of the regions that take time, by the called functions and the ranks."""
    return {
        (part.start_call, part.end_call, part.ranks): (part.count, part.cost.constant_ns)
        for part in read_profile(path).regions
        if part.cost.constant_ns > 0
    }


def test_regions_have_the_times_of_the_work(recorded):
    path, _ = recorded(4)
    local = SITES // 4
    assert times(path) == {
        ("MPI_Wtime", "MPI_Allreduce", "all"): (4, 100 + 3 * local),
        ("MPI_Allreduce", "MPI_Barrier", "first"): (PASSES, 7 * local + 5000),
        ("MPI_Allreduce", "MPI_Barrier", "others"): (3 * PASSES, 7 * local),
        ("MPI_Barrier", "MPI_Allreduce", "all"): (4 * (PASSES - 1), 100 + 3 * local),
    }
    profile = read_profile(path)
    assert profile.program == "regions"
    assert re.fullmatch(r"build-id:[0-9a-f]{40}", profile.modules["regions"])
    assert all(re.fullmatch(r"regions\+0x[0-9a-f]+", part.start) for part in profile.regions)
    assert all(part.deviation_ns == 0 for part in profile.regions)


def test_spread_is_recorded(recorded):
    path, _ = recorded(2, "uneven")
    (part,) = (part for part in read_profile(path).regions if part.start_call == "MPI_Barrier" and part.count > 2)
    once = 100 + 3 * SITES // 2
    assert (part.least_ns, part.most_ns) == (once, 3 * once)
    assert once < part.cost.constant_ns < 3 * once
    assert part.deviation_ns == pytest.approx(once, rel=0.02)


@pytest.mark.parametrize("compute", ["measured", "record"])
def test_work_inside_mpi_does_not_count(run, recorded, compute):
    """The operator of a reduction works a millisecond for each value, in the library's call."""
    if compute == "record":
        path, text = recorded(2, "operator")
        assert max(mean for _, mean in times(path).values()) < 20_000
    else:
        text = run(2, "measured", "operator").stdout
    assert float(text.split()[3]) < 1000


def test_measured_and_recording_charge_the_same(run, recorded):
    assert run(4, "measured").stdout == recorded(4)[1]
    halved = float(run(4, "measured:0.5").stdout.split()[3])
    assert halved < float(recorded(4)[1].split()[3])


def test_a_profile_charges_what_was_recorded_and_repeats(run, recorded, tmp_path):
    path, text = recorded(4)
    runs = [run(4, f"{path}:1", options=("--out", tmp_path / name)) for name in ("one", "two")]
    assert [done.stdout for done in runs] == [text, text]
    first, second = ((tmp_path / name / "run.json").read_bytes() for name in ("one", "two"))
    assert first == second
    said = json.loads(first)
    assert said["computation"]["unseen"] == []
    # MPI_Init to MPI_Wtime, the loop, MPI_Barrier to MPI_Wtime, MPI_Wtime to MPI_Finalize.
    assert said["computation"]["passes"] == 4 * (2 * PASSES + 3)
    assert said["warnings"] == []


def test_a_scale_multiplies_the_times(run, recorded):
    path, text = recorded(4)
    once, twice = (float(line.split()[3]) for line in (text, run(4, f"{path}:2").stdout))
    # On rank 0, which is the last at each barrier: two regions a pass.
    work_us = PASSES * (100 + 10 * SITES // 4 + 5000) / 1000
    assert twice - once == pytest.approx(work_us, rel=0.01)


def test_the_hosts_speed_becomes_the_machines(run, recorded):
    path, _ = recorded(4)
    speed = read_profile(path).host.flops_per_second
    done = run(4, path, options=("--set", "host.flops_per_second=1e9"))
    assert f"recorded times x {speed / 1e9:.4g}" in done.stderr
    slow_memory = ("--set", "host.flops_per_second=1e12", "--set", "host.copy_bandwidth_mib_s=1000")
    done = run(4, path, options=slow_memory)
    assert f"recorded times x {speed / (2 * 1000 * 2**20 * 1320 / 960):.4g}" in done.stderr


def test_programs_that_watch_the_clock_end(run, recorded):
    path, text = recorded(2, "timed")
    passes = int(text.split()[0])
    assert passes == pytest.approx(1000 / (10 * SITES / 2 / 1000), abs=2)
    assert run(2, f"{path}:1", "timed").stdout == text
    assert int(run(2, f"{path}:2", "timed").stdout.split()[0]) == pytest.approx(passes / 2, abs=1)


def test_unseen_regions_are_counted_and_listed(run, recorded, tmp_path):
    path, _ = recorded(2)
    done = run(2, f"{path}:1", "other", options=("--out", tmp_path / "run"))
    assert done.returncode == 0
    said = json.loads((tmp_path / "run" / "run.json").read_bytes())["computation"]
    assert said["unseen_passes"] == 4
    assert [(part["count"], part["ranks"]) for part in said["unseen"]] == [(2, [0, 1]), (2, [0, 1])]
    labels = [re.sub(r"regions\+0x[0-9a-f]+ ", "", part["region"]) for part in said["unseen"]]
    assert sorted(labels) == ["MPI_Barrier to MPI_Wtime", "MPI_Wtime to MPI_Barrier"]
    assert said["passes"] == 4
    warned = re.sub(r"\s+", " ", done.stderr)
    assert "4 of 8 passes are of 2 regions that the profile does not have, and took no time" in warned
    assert "MPI_Barrier (2 times on ranks 0, 1)" in warned
    assert f'arguments = "{SITES} loop": this run has "{SITES} other"' in warned


def test_ranks_without_a_region_are_listed(run, recorded, tmp_path):
    path, _ = recorded(2)
    profile = json.loads(path.read_bytes())
    profile["regions"] = [{**part, "ranks": "first"} for part in profile["regions"] if part["ranks"] != "others"]
    changed = tmp_path / "first.json"
    changed.write_text(json.dumps(profile))
    done = run(2, f"{changed}:1")
    assert "nothing was charged on rank 1" in re.sub(r"\s+", " ", done.stderr)


def test_a_fit_predicts_other_sizes(run, recorded, tmp_path, apenet):
    paths = [recorded(ranks)[0] for ranks in (2, 4, 8)]
    fitted, wanted = tmp_path / "fit.json", recorded(16)
    options = ("--to-profile", fitted, "--check", wanted[0], "--json")
    done = apenet("fit-compute", *paths, *options)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["regions_of_one_size"], said["other_path"]) == (0, 0)
    assert len(said["held_out"]) == 3
    assert said["checks"][0]["unseen_share"] == 0
    profile = read_profile(fitted)
    assert profile.is_fitted
    assert profile.error == pytest.approx(max(abs(held["error"]) for held in said["held_out"]), abs=1e-4)
    assert profile.host.flops_per_second == max(read_profile(path).host.flops_per_second for path in paths)
    assert run(16, f"{fitted}:1").stdout == wanted[1]


def test_a_fit_is_exact_where_times_are_straight(recorded):
    paths = [recorded(ranks)[0] for ranks in (2, 4, 8)]
    fit = fit_profiles(paths)
    assert max(abs(held.error) for held in fit.held_out) < 1e-6
    costs = {(part.start_call, part.end_call, part.ranks): part.cost for part in fit.profile.regions}
    barrier = costs["MPI_Barrier", "MPI_Allreduce", "all"]
    assert (barrier.constant_ns, barrier.per_site_ns) == (pytest.approx(100), pytest.approx(3 * SITES))
    first = costs["MPI_Allreduce", "MPI_Barrier", "first"]
    assert (first.constant_ns, first.per_site_ns) == (pytest.approx(5000), pytest.approx(7 * SITES))
    (check,) = compare(fit.profile, [recorded(16)[0]])
    assert check.error == pytest.approx(0, abs=1e-6)


def test_a_fit_knows_inner_sites_and_boundaries(recorded, tmp_path):
    """A lattice is cut in one dimension after the other: no region goes with the sites alone."""
    model = json.loads(recorded(2)[0].read_bytes())
    lattice = {2: "16x16x16x16/2x1x1x1", 4: "16x16x16x16/2x2x1x1", 8: "16x16x16x16/2x2x2x1", 16: "16x16x16x16/2x2x2x2"}
    paths = []
    for ranks, given in lattice.items():
        size = parse_size(given, ranks)
        times = (30 * size.inner, 70 * size.halo, 1000 + 2 * size.sites, 20 * size.inner + 50 * size.halo)
        parts = [
            {**model["regions"][0], "from": f"regions+{i}", "cost": {"constant_ns": ns}} for i, ns in enumerate(times)
        ]
        recording = {"ranks": ranks, "size": size.model_dump()}
        paths.append(tmp_path / f"{ranks}.json")
        paths[-1].write_text(json.dumps({**model, "recorded": [recording], "regions": parts}))
    fit = fit_profiles(paths[:3])
    (check,) = compare(fit.profile, paths[3:])
    assert [part.error for part in check.regions] == pytest.approx([0] * 4, abs=1e-6)
    inner = next(part for part in fit.profile.regions if part.start == "regions+0")
    assert inner.cost.per_inner_site_ns == pytest.approx(30)


def slowed(path: Path, folder: Path) -> list[Path]:
    """Two recordings: other load on the host slows some passes down in the one, and the others in the other."""
    made = []
    for parity in (0, 1):
        profile = json.loads(path.read_bytes())
        for part in profile["regions"]:
            part["cost"]["constant_ns"] *= 1.5
            for ranks in part["passes"]:
                for kind in ("quiet", "disturbed", "shared"):
                    runs = ranks[kind]
                    ranks[kind] = [
                        [
                            run[0],
                            *(
                                ns * (1 + (run[0] + i) % 2 * parity + (run[0] + i + 1) % 2 * (1 - parity))
                                for i, ns in enumerate(run[1:])
                            ),
                        ]
                        for run in runs
                    ]
        made.append(folder / f"{parity}.json")
        made[-1].write_text(json.dumps(profile))
    return made


def test_several_recordings_are_as_one_without_disturbance(recorded, tmp_path, apenet):
    path, small = recorded(4)[0], recorded(2)[0]
    disturbed = slowed(path, tmp_path)
    fit = fit_profiles([small, *disturbed])
    undisturbed = fit_profiles([small, path])
    assert fit.profile.regions == undisturbed.profile.regions
    (check,) = compare(undisturbed.profile, disturbed)
    assert check.error == pytest.approx(0, abs=1e-6)
    assert [(each.recordings, each.not_repeated) for each in fit.combined] == [(1, 0), (2, 0)]
    assert fit.combined[1].removed == pytest.approx(1 / 3)
    assert fit.combined[1].one_less == pytest.approx(0.5)
    done = apenet("fit-compute", small, *disturbed)
    assert re.search(r"4 │ 1/4 of the problem +│ +2 │ +33.3% │ +\+50.0% │ +0.0%", done.stdout), done.stdout


def test_all_recordings_keep_the_same_passes(recorded):
    """They can be compared where there are more than are kept. The host decides how many of them had a core alone."""
    any_kept = False
    for size in ("7", "8"):
        for part in kept_passes(recorded(2, "many", options=("--size", size))[0]):
            numbers = [number for runs in (part.quiet, part.disturbed, part.shared) for number, _ in part.times(runs)]
            selection = selected_passes(part.count)
            assert 600 < len(selection) <= MOST_PASSES
            assert set(numbers) <= selection
            any_kept = any_kept or numbers != []
    if not any_kept:
        pytest.skip("other programs left no pass a core of its own")


MOST_PASSES = 2048


def selected_passes(count: int) -> set[int]:
    """The numbers that src/runtime/shim/pass_times.cpp selects of so many passes."""
    halvings, selection = 0, set(range(count))
    while len(selection) > MOST_PASSES:
        halvings += 1
        selection = {number for number in selection if (number * 0x9E3779B97F4A7C15 >> 32) % 2**halvings == 0}
    return selection


def kept_passes(path: Path) -> tuple[RankPasses, ...]:
    """The passes of each rank, in the region with the most."""
    return max(read_profile(path).regions, key=lambda region: region.count).passes


def test_passes_that_a_size_has_more_of_are_said(recorded, tmp_path, apenet):
    """Half as many passes of a region, of twice the time."""
    path, small = recorded(4)[0], recorded(2)[0]
    profile = json.loads(path.read_bytes())
    (part,) = (
        each for each in profile["regions"] if (each["from_call"], each["to_call"]) == ("MPI_Barrier", "MPI_Allreduce")
    )
    part.update(passes=[], count=part["count"] // 2, cost={"constant_ns": 2 * part["cost"]["constant_ns"]})
    other = tmp_path / "other.json"
    other.write_text(json.dumps(profile))
    every = [each for of in (small, path) for each in read_profile(of).regions]
    total = sum(each.count * each.cost.constant_ns for each in every)
    share = sum(each.count * each.cost.constant_ns for each in every if each.key == (part["from"], part["to"])) / total
    assert fit_profiles([small, other]).other_path == pytest.approx(share)
    assert "of the time pass more often on a rank at one size" in re.sub(
        r"\s+", " ", apenet("fit-compute", small, other).stdout
    )


def test_recordings_of_one_size_become_one_that_holds_for_it_alone(run, recorded, tmp_path, apenet):
    path, _ = recorded(2)
    whole = tmp_path / "whole.json"
    done = apenet("fit-compute", *slowed(path, tmp_path), "--to-profile", whole)
    assert "one size, for which alone the profile holds" in re.sub(r"\s+", " ", done.stdout)
    given, made = read_profile(path), read_profile(whole)
    assert not made.is_fitted
    assert not any(part.passes for part in made.regions)
    least = sum(part.count * part.cost.constant_ns for part in given.regions)
    assert sum(part.count * part.cost.constant_ns for part in made.regions) == pytest.approx(least, rel=0.3)
    assert run(2, whole).returncode == 0
    assert "ranks = 2: expected 4 as in this run" in run(4, whole).stderr


def test_sizes():
    whole = parse_size("16x16x16x32/2x2x1x4", 16)
    assert whole.counts == (8 * 8 * 16 * 8, 6 * 6 * 16 * 6, 3 * 2 * 8 * 16 * 8)
    assert parse_size("1e3", 5).counts == (1000, 1000, 0)
    assert parse_size("4x4/1x1", 1).counts == (16, 16, 0)
    assert parse_size("2x4/2x1", 2).counts == (4, 0, 8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "number of sites"),
        ("-3", "number of sites"),
        ("nan", "number of sites"),
        ("inf", "number of sites"),
        ("1e99", "number of sites"),
        ("16x16/2", "as many extents"),
        ("16x15/2x2", "divide"),
        ("16x16/0x4", "divide"),
        ("16x16/2x4", "4 ranks: this one has 8"),
    ],
)
def test_bad_sizes_are_refused(text, expected):
    with pytest.raises(InputError, match=expected):
        parse_size(text, 4)


def passes(*ranks: dict[str, object]) -> dict[str, object]:
    region = {"from": "a", "from_call": "", "to": "b", "to_call": "", "ranks": "all", "count": 3, "cost": {}}
    return {"regions": [{**region, "passes": ranks}]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"format": "another"}, "format"),
        ({"version": 1}, "version = 1: expected 3, which this apenet reads; record anew"),
        ({"regions": [{"from": "a"}]}, "regions.0.from_call is missing"),
        ({"recorded": []}, "recorded"),
        ({"host": {"processor": "x", "flops_per_second": -1}}, "host.flops_per_second = -1"),
        ({"more": 1}, "more = 1"),
        (passes({"rank": -1, "count": 3}), "regions.0.passes.0.rank = -1"),
        (passes({"rank": 0, "count": 3, "quiet": [[0]]}), "regions.0.passes.0.quiet.0"),
        (passes({"rank": 0, "count": 3, "quiet": [[0, -5]]}), "regions.0.passes.0.quiet.0.1 = -5"),
        (passes({"rank": 0, "count": 3, "quiet": [[0, 1.5]]}), "regions.0.passes.0.quiet.0.1 = 1.5"),
        (passes({"rank": 0, "count": 3, "shared": [[2, 5, 5]]}), "each pass below 3 at most once"),
        (passes({"rank": 0, "count": 3, "quiet": [[0, 5]], "shared": [[0, 5]]}), "each pass below 3 at most once"),
        (passes({"rank": 0, "count": 1}, {"rank": 0, "count": 2}), "each rank at most once"),
        (passes({"rank": 0, "count": 1}), "3 passes in all"),
        (passes({"rank": 2, "count": 3}), "a rank below 2"),
        ({"regions": [{**passes()["regions"][0], "after": ["12"]}]}, 'regions.0.after.0 = "12"'),
    ],
)
def test_broken_profiles_are_refused(recorded, tmp_path, change, expected):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps({**json.loads(recorded(2)[0].read_bytes()), **change}))
    with pytest.raises(ProfileError, match=re.escape(f"{path}: ") + ".*" + re.escape(expected)):
        read_profile(path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"format": "apenet compute profile"}']
)
def test_files_that_are_no_profiles_are_refused(run, tmp_path, content):
    path = tmp_path / "none.json"
    path.write_bytes(content)
    done = run(2, path)
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "expected" in done.stderr


def test_a_profile_of_something_else_is_named(run, recorded, tmp_path, program, apenet):
    path, _ = recorded(2)
    rebuilt = compiled(tmp_path, "-O2", "-DANOTHER_BUILD", "-g")
    renamed = tmp_path / "renamed"
    renamed.write_bytes(program.read_bytes())
    renamed.chmod(0o755)
    cases = [
        (run(2, path, of=rebuilt), "modules.regions = ", "another build"),
        (run(2, path, of=renamed), 'program = "regions"', "a profile of renamed"),
        (run(4, path), "ranks = 2", "expected 4 as in this run"),
        (run(2, path, options=("--size", "9")), "size is missing", "--size 9 also when"),
        (run(2, tmp_path / "missing.json"), "compute = ", "a profile's FILE"),
        (run(2, f"{path}:0"), "compute = ", "a scale above 0"),
        (run(2, "record:"), "compute = ", "record:FILE"),
        (run(2, f"record:{program}"), "compute = ", "expected"),
        (apenet("fit-compute", path), "FILE = 1", "at least two recordings"),
        (apenet("fit-compute", path, path), "FILE = ", "each recording once"),
    ]
    for done, name, expected in cases:
        said = re.sub(r"\s+", " ", done.stderr)
        assert done.returncode == 2, said
        assert name in said
        assert expected in said


def test_sizes_must_agree(run, recorded):
    path, _ = recorded(2, options=("--size", "100"))
    done = run(4, f"{path}:1", options=("--size", "100"))
    assert done.returncode == 0  # the same part of a larger problem
    done = run(4, f"{path}:1", options=("--size", "50"))
    assert done.returncode == 2
    assert "size = " in done.stderr
    with pytest.raises(ProfileError, match="no size, as in the first file"):
        fit_profiles([recorded(4)[0], path])


def test_another_host_is_named(run, recorded, tmp_path):
    path, text = recorded(2)
    profile = json.loads(path.read_bytes())
    profile["host"]["processor"] = "A computer"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(profile))
    done = run(2, f"{other}:1")
    assert done.stdout == text
    assert "host = A computer: this host is" in re.sub(r"\s+", " ", done.stderr)
    with pytest.raises(ProfileError, match="the same host"):
        fit_profiles([recorded(4)[0], other])


def test_a_failed_run_leaves_no_profile(apenet, tmp_path):
    path = tmp_path / "profile.json"
    done = apenet("run", "-n", "2", "--compute", f"record:{path}", "--", "sh", "-c", "exit 3")
    assert done.returncode == 3
    assert not path.exists()


def test_sums_of_samples():
    one, other = Samples(2, 6.0, 20.0, 2, 4), Samples(1, 9.0, 81.0, 9, 9)
    assert one + Samples() == one == Samples() + one
    assert one + other == Samples(3, 15.0, 101.0, 2, 9)
    assert (one.mean_ps, one.variance) == (3.0, 1.0)
