"""The lattice QCD program against an operator written independently here, and against itself in other divisions."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import apenet
from apenet.base.errors import InputError
from apenet.bench.decomposition import Decomposition, decompose, folded
from apenet.bench.lqcd_figure import write_figure
from apenet.bench.lqcd_scaling import LAYERS, program
from apenet.cli.lqcd import cost_of

SIGMA = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
GRIDS = {1: "1x1x1x1", 2: "1x1x1x2", 4: "2x1x1x2", 8: "4x1x2x1", 16: "2x2x2x2"}


def gammas():
    """DeGrand-Rossi: i sigma_x, -i sigma_y, i sigma_z and 1 in the upper corner."""
    corners = [1j * SIGMA[0], -1j * SIGMA[1], 1j * SIGMA[2], np.eye(2)]
    zero = np.zeros((2, 2))
    return [np.block([[zero, corner], [corner.conj().T, zero]]) for corner in corners]


def run(executable, arguments, ranks, machine="ape16"):
    result = apenet.run([executable, *arguments], n=ranks, machine=machine, capture=True)
    return json.loads(result.stdout)


def check_program(layer, precision):
    return program(layer, precision, Path(__file__).with_name("lqcd_check.c"))


class Fields:
    """The fields that the processes wrote, by [t, z, y, x]: links, source, M source, solution."""

    def __init__(self, prefix, extents):
        rows = np.concatenate([np.fromfile(part).reshape(-1, 1 + 2 * 36 + 3 * 24) for part in prefix])
        rows = rows[np.argsort(rows[:, 0])]
        assert rows[:, 0].tolist() == list(range(np.prod(extents)))
        numbers = rows[:, 1::2] + 1j * rows[:, 2::2]
        shape = extents[::-1]
        self.links = numbers[:, :36].reshape(*shape, 4, 3, 3)
        spinors = numbers[:, 36:].reshape(*shape, 3, 4, 3)
        self.source, self.image, self.solution = (spinors[..., i, :, :] for i in range(3))


def run_check(tmp_path, extents, ranks, kind, kappa, *, layer="mpi", precision="double"):
    lattice = "x".join(map(str, extents))
    arguments = [lattice, GRIDS[ranks], kind, str(kappa), tmp_path / "fields"]
    found = run(check_program(layer, precision), arguments, ranks)
    return found, Fields(sorted(tmp_path.glob("fields.*")), extents)


def wilson(links, psi, kappa):
    out = psi.copy()
    for mu, gamma in enumerate(gammas()):
        axis = 3 - mu
        u = links[..., mu, :, :]
        upper = np.einsum("...ab,...sb->...sa", u, np.roll(psi, -1, axis))
        lower = np.roll(np.einsum("...ba,...sb->...sa", u.conj(), psi), 1, axis)
        out -= kappa * np.einsum("st,...ta->...sa", np.eye(4) - gamma, upper)
        out -= kappa * np.einsum("st,...ta->...sa", np.eye(4) + gamma, lower)
    return out


def test_the_gamma_matrices_are_euclidean():
    for mu, left in enumerate(gammas()):
        for nu, right in enumerate(gammas()):
            assert left @ right + right @ left == pytest.approx(2 * np.eye(4) * (mu == nu))
    x, y, z, t = gammas()
    assert x @ y @ z @ t == pytest.approx(np.diag([1, 1, -1, -1]))


@pytest.mark.parametrize(("precision", "rounding"), [("double", 1e-14), ("single", 1e-6)])
def test_the_operator_is_that_of_the_formula(tmp_path, precision, rounding):
    found, fields = run_check(tmp_path, (8, 4, 4, 6), 8, "random", 0.12, precision=precision)
    unit = np.einsum("...ab,...cb->...ac", fields.links, fields.links.conj())
    assert abs(unit - np.eye(3)).max() < rounding * 10
    assert abs(np.linalg.det(fields.links) - 1).max() < rounding * 10
    assert abs(wilson(fields.links, fields.source, 0.12) - fields.image).max() < rounding
    # The solver stops at 1e-13 and 1e-6 of the normal equation's right side.
    assert abs(wilson(fields.links, fields.solution, 0.12) - fields.source).max() < 50 * rounding
    loops = plaquettes(fields.links)
    assert found["plaquette"] == pytest.approx(loops, rel=100 * rounding)
    # Gauge covariance: M[U^g] g psi = g M[U] psi; gamma5-hermiticity: gamma5 M gamma5 = M^dagger.
    assert found["covariance"] < rounding
    assert found["gamma5"] < rounding
    assert found["adjoint"] < 100 * rounding
    assert found["rotated_plaquette"] == pytest.approx(found["plaquette"], rel=1000 * rounding)


def plaquettes(links):
    total = 0.0
    for mu in range(4):
        for nu in range(mu):
            u, v = links[..., mu, :, :], links[..., nu, :, :]
            v_upper, u_upper = np.roll(v, -1, 3 - mu), np.roll(u, -1, 3 - nu)
            total += np.einsum("...ab,...bc,...dc,...ad->...", u, v_upper, u_upper.conj(), v.conj()).real.sum()
    return total / links[..., 0, 0, 0].size / 6 / 3


def test_a_free_quark_propagates_as_the_formula_says(tmp_path):
    extents, kappa = (4, 6, 4, 8), 0.11
    _, fields = run_check(tmp_path, extents, 4, "unit", kappa)
    axes = [2 * np.pi * np.arange(extent) / extent for extent in extents[::-1]]
    momenta = np.meshgrid(*axes, indexing="ij")[::-1]
    # M(p) = 1 - 2 kappa sum cos p + 2 i kappa sum gamma sin p, inverted by its conjugate.
    scalar = 1 - 2 * kappa * sum(np.cos(p) for p in momenta)
    slash = sum(2 * kappa * np.sin(p)[..., None, None] * g for p, g in zip(momenta, gammas(), strict=True))
    squares = scalar**2 + sum((2 * kappa * np.sin(p)) ** 2 for p in momenta)
    inverse = (scalar[..., None, None] * np.eye(4) - 1j * slash) / squares[..., None, None]
    propagator = np.fft.ifftn(inverse, axes=(0, 1, 2, 3))
    assert abs(fields.solution[..., 0] - propagator[..., 0]).max() < 1e-12
    assert abs(fields.solution[..., 1:]).max() == 0


def test_the_residuals_are_those_of_every_layer_and_division():
    arguments = ["--lattice", "8x4x4x4", "--tolerance", "1e-6"]
    first = run(program("mpi", "double"), [*arguments, "--grid", GRIDS[1]], 1)
    assert first["residuals"][-1] < 1e-6 < first["residuals"][-2]
    for layer in LAYERS:
        for ranks in (2, 4, 8, 16):
            other = run(program(layer, "double"), [*arguments, "--grid", GRIDS[ranks]], ranks)
            assert other["residuals"] == pytest.approx(first["residuals"], rel=1e-11), (layer, ranks)
            assert other["plaquette"] == pytest.approx(first["plaquette"], rel=1e-13)
            again = run(program(layer, "double"), [*arguments, "--grid", GRIDS[ranks]], ranks) if ranks == 4 else other
            assert again == other
    single = run(program("mpi", "single"), [*arguments, "--grid", GRIDS[4], "--tolerance", "1e-5"], 4)
    assert single["residuals"] == pytest.approx(first["residuals"][: single["iterations"]], rel=1e-3)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_pattern_communicates_as_the_computation(layer):
    arguments = ["--lattice", "8x4x4x4", "--grid", "2x2x1x2", "--iterations", "3", "--tolerance", "0"]
    computed, pattern = (run(program(layer, "double"), [*arguments, "--pattern", p], 8) for p in "01")
    assert {key: pattern[key] for key in pattern if not key.endswith("_us")} == {
        key: computed[key] for key in pattern if not key.endswith("_us")
    }
    # The plaquette before moves the start against the clocks of buses and links.
    assert pattern["iteration_us"] == pytest.approx(computed["iteration_us"], rel=1e-3)
    assert pattern["dslash_us"] == pytest.approx(computed["dslash_us"], rel=1e-3)
    # Three divided dimensions, both ways, half the sites of a face a hop, 12 doubles each.
    assert pattern["dslash_halo_bytes"] == 2 * 2 * (2 * 4 * 2 + 4 * 4 * 2 + 4 * 2 * 4) // 2 * 12 * 8
    assert pattern["dslash_flops"] == 1320 * (4 * 2 * 4 * 2)


def neighbours(parts):
    """Pairs of ranks next to each other in the periodic grid."""
    count = len(parts.nodes)
    stride = 1
    for extent in parts.grid:
        for rank in range(count if extent > 1 else 0):
            place = rank // stride % extent
            yield rank, rank + ((place + 1) % extent - place) * stride
        stride *= extent


def hops(machine, first, second):
    total = 0
    for extent in machine.dims:
        apart = abs(first % extent - second % extent)
        total += min(apart, extent - apart)
        first, second = first // extent, second // extent
    return total


@pytest.mark.parametrize(
    ("name", "ranks"), [("ape128", 128), ("ape16", 16), ("ape16", 8), ("qpace", 256), ("ape128", 2)]
)
def test_neighbours_of_the_grid_are_neighbours_on_the_torus(name, ranks):
    machine = apenet.machine(name)
    parts = decompose(machine, ranks, (32, 32, 32, 64), strong=True)
    assert len(set(parts.nodes)) == ranks == np.prod(parts.grid)
    assert {hops(machine, parts.nodes[a], parts.nodes[b]) for a, b in neighbours(parts)} == {1}
    assert parts.whole == (32, 32, 32, 64)


def test_two_dimensions_of_two_fold_onto_a_ring_of_four():
    machine = apenet.machine("ape16").with_settings("network.dims=[4,1,1]")
    parts = decompose(machine, 4, (4, 4, 2, 2), strong=True)
    assert parts.grid == (2, 2, 1, 1)
    assert parts.nodes == (0, 1, 3, 2)
    assert parts.surface_to_volume == 2


@pytest.mark.parametrize(
    ("grid", "finer", "furthest"),
    [
        ((8, 4, 4), (8, 2, 4, 2), 1),
        ((4, 1, 1), (2, 1, 1, 2), 1),
        ((16, 8, 2), (8, 8, 2, 2), 2),
        ((6, 3, 3), (3, 3, 3, 2), 2),
    ],
)
def test_a_fourth_dimension_folds(grid, finer, furthest):
    machine = apenet.machine("ape16").with_settings(f"network.dims={list(grid)}")
    found, places = folded(grid)
    assert found == finer
    assert sorted(places) == list(range(np.prod(grid)))
    parts = Decomposition(finer, (2, 2, 2, 2), tuple(places))
    assert max(hops(machine, places[a], places[b]) for a, b in neighbours(parts)) == furthest
    with pytest.raises(InputError, match="an even extent"):
        folded((3, 3, 1))


def test_a_switched_network_gets_the_smallest_surface():
    parts = decompose(apenet.machine("pax"), 16, (8, 8, 8, 16), strong=True)
    assert parts.surface_to_volume == min(
        sum(2 * g / extent for g, extent in zip(grid, (8, 8, 8, 16), strict=True) if g > 1)
        for grid in [(1, 1, 2, 8), (1, 1, 4, 4), (1, 2, 2, 4), (2, 2, 2, 2), (1, 2, 1, 8)]
    )


@pytest.mark.parametrize(("name", "grid"), [("pax", (4, 4, 4, 2)), ("ape128", (8, 4, 4, 1))])
def test_a_lattice_that_grows_with_the_ranks_grows_in_all_dimensions(name, grid):
    """A line of ranks would have the smallest surface of a part."""
    parts = decompose(apenet.machine(name), 128, (32, 32, 32, 64), strong=False)
    assert (parts.grid, parts.local) == (grid, (32, 32, 32, 64))


def test_strong_and_weak_scaling(tmp_path):
    result = apenet.bench.lqcd(["ape16", "ideal"], lattice="8x4x4x4", ranks=[1, 4, 32], layer="apelib")
    ape16, ideal = result.machines
    assert [point.ranks for point in ideal.points] == [1, 4, 32]
    assert ape16.without_nodes == (32,)
    one, four = ape16.points
    # 1320 operations a site and hop, four hops of half the sites, seven operations on fields of 24 numbers.
    assert one.compute_us == pytest.approx(256 * (4 * 1320 + 7 * 48) * 1e-3)
    assert one.iteration_us == pytest.approx(one.compute_us, abs=0.1)  # a look at the clock costs 50 ns
    assert (one.communication_share, one.halo_bytes, one.surface_to_volume) == (pytest.approx(0, abs=1e-4), 0, 0)
    assert ape16.efficiency(four) == one.iteration_us / four.iteration_us / 4
    assert four.compute_us == one.compute_us / 4
    assert four.communication_share == pytest.approx(1 - four.compute_us / four.iteration_us)
    content = result.to_json()
    assert content["machines"][0]["points"][1]["efficiency"] == ape16.efficiency(four)
    assert "ape16 has no nodes for 32 ranks" in result.to_table()
    for name in ("first.png", "second.png"):
        write_figure(result, tmp_path / name)
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()

    flit = apenet.bench.lqcd(["ape16"], lattice="4x4x4x4", ranks=[2], layer="qmp", engine="flit")
    assert flit.to_json()["engine"] == "flit"
    assert "engine flit" in flit.heading

    plans, ended = [], []
    weak = apenet.bench.lqcd(
        ["ape16"],
        lattice="4x4x4x4",
        ranks=[1, 4],
        scaling="weak",
        layer="apelib",
        planned=plans.append,
        finished=lambda machine, point: ended.append((machine, point)),
    )
    one, four = weak.machines[0].points
    assert ended == [("ape16", one), ("ape16", four)]
    ((no_halo, halo),) = plans
    # Dslash twice and one iteration, which applies it twice; ape16's packets hold 256 bytes.
    assert (no_halo.halo_bytes, no_halo.packets) == (0, 0)
    assert (halo.machine, halo.ranks, halo.halo_bytes) == ("ape16", 4, 4 * 4 * four.halo_bytes)
    assert halo.packets == halo.halo_bytes / 256
    assert re.search(
        r"2 runs send .* the largest, 4 ranks on ape16, sends .* minutes of a processor", cost_of([no_halo, halo])
    )
    assert one.local == four.local == (4, 4, 4, 4)
    assert one.compute_us == four.compute_us
    assert weak.machines[0].efficiency(four) == one.iteration_us / four.iteration_us < 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lattice", "8x8x8"], "lattice = .8x8x8.: expected 4 even extents"),
        (["--lattice", "8x8x8x5"], "even extents"),
        (
            ["--lattice", "4096x4096x4096x4096", "--ranks", "2"],
            "lattice = .4096x4096x4096x4096.: expected at most 2147",
        ),
        (["--lattice", "512x512x512x512", "--ranks", "16"], "sites and bytes of a face"),
        (["--ranks", "3"], "ranks = 3: expected a number that divides"),
        (["--ranks", "32"], "ranks = 32: expected at most the 16 nodes of ape16"),
        (["--layer", "rdma"], "layer = .rdma.: expected one of mpi, apelib, qmp"),
        (["--precision", "half"], "precision = .half.: expected one of double, single"),
        (["--scaling", "both"], "scaling = .both.: expected one of strong, weak"),
        (["--iterations", "0"], "iterations = 0"),
        (["--sizes", "8"], "sizes = .8.: expected none for lqcd"),
        (["--machine", "ape16,ape16"], "machine = .ape16,ape16.: expected each machine once"),
        (["--figure", "x.gif"], "--figure = .x.gif.: expected a file that ends in .png"),
    ],
)
def test_bad_input_is_refused(apenet, options, said):
    refused = apenet("bench", "lqcd", *options)
    assert refused.returncode == 2
    assert re.search(said, refused.stderr)


def test_its_options_belong_to_it(apenet):
    refused = apenet("bench", "halo", "--scaling", "weak")
    assert refused.returncode == 2
    assert 'scaling = "weak": expected none for halo: it belongs to lqcd' in refused.stderr


def messages(trace, least_bytes):
    """The messages that each rank sends: their bytes and targets, sorted."""
    ranks = re.split(r"^rank [0-9]+ \{$", trace.read_text(), flags=re.MULTILINE)[1:]
    of_ranks = [re.findall(r": send ([0-9]+)b to ([0-9]+)", rank) for rank in ranks]
    return [sorted(one for one in sent if int(one[0]) >= least_bytes) for sent in of_ranks]


def test_the_workload_dslash_is_what_the_program_does(tmp_path):
    """The program times two Dslash, and an iteration of the solver has two; sums are of 8 bytes."""
    machine, lattice, site_bytes = apenet.machine("ape16"), "4x4x8x8", 96
    scripted, recorded = tmp_path / "scripted.goal", tmp_path / "recorded.goal"
    options = {"lattice": lattice, "n": 4, "site_bytes": site_bytes}
    apenet.bench.dslash(machine, goal=scripted, iterations=4, **options)
    parts = decompose(machine, 4, [4, 4, 8, 8], strong=True)
    grid = "x".join(map(str, parts.grid))
    arguments = ["--lattice", lattice, "--grid", grid, "--pattern", "1", "--iterations", "1"]
    command = [program("mpi", "double"), *arguments]
    result = apenet.run(command, n=4, machine=machine, map=parts.nodes, record=recorded, capture=True)
    told = json.loads(result.stdout)
    sent = messages(scripted, 0)
    assert sent == messages(recorded, 9)
    assert sum(int(size) for size, _ in sent[0]) == 4 * told["dslash_halo_bytes"]
    computed_ns = sum(map(int, re.findall(r": calc ([0-9]+)", scripted.read_text()))) / (4 * 4)
    rate = machine.file.host.flops_per_second.value
    assert computed_ns == pytest.approx(told["dslash_flops"] / rate * 1e9, abs=6)
    by_card = apenet.bench.dslash(machine, iterations=1, **options).times_us[0]
    assert computed_ns * 1e-3 < by_card <= told["dslash_us"]


def test_dslash_refuses_lattices_without_parts_of_both_parities():
    for options, name in (
        ({"lattice": "7x8x8x8"}, "lattice"),
        ({"lattice": "8x8x8"}, "lattice"),
        ({"n": 7}, "ranks"),
        ({"nodes": [0, 1]}, "nodes"),
        ({"sizes": [64]}, "sizes"),
        ({"site_bytes": 0}, "site-bytes"),
        ({"layer": "mpi"}, "layer"),
        ({"partitions": "16:32"}, "partitions"),
    ):
        with pytest.raises(InputError) as refused:
            apenet.bench.dslash("ape16", **options)
        assert refused.value.name == name
