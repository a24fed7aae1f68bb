"""Programs in partitions of a machine: what they see, and that they take the time of a machine of that shape."""

import re

import pytest


@pytest.fixture
def program(compile_native):
    return compile_native("apelib/in_partition.c", "apelib", mpi=True)


@pytest.fixture
def ranks_of(apenet, program):
    """The name, shape, coordinates and time of each rank of a run."""

    def run(ranks, *options):
        done = apenet("run", "-n", str(ranks), *options, "--", program)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [line.split() for line in done.stdout.splitlines()]
        assert [int(line[0]) for line in lines] == list(range(ranks))
        return [tuple(line[1:]) for line in lines]

    return run


def test_ranks_see_their_plane(ranks_of):
    """Coordinates are those in the plane, host names those of the machine's nodes."""
    seen = ranks_of(16, "-m", "ape128", "--partition", "1x4x4@6,0,0")
    places = [(y, z) for z in range(4) for y in range(4)]
    assert [line[:3] for line in seen] == [(f"ape128-6-{y}-{z}", "1x4x4", f"(0,{y},{z})") for y, z in places]


def test_ranks_are_mapped_within_their_plane(ranks_of):
    seen = ranks_of(16, "-m", "ape128", "--partition", "1x4x4@6,0,0", "--map", "cart:4x4")
    assert [line[2] for line in seen] == [f"(0,{y},{z})" for y in range(4) for z in range(4)]


def test_a_plane_takes_the_time_of_a_machine_of_its_shape(ranks_of):
    """To the picosecond, where the plane closes the same rings and its origin has an even sum of coordinates.

    Half-way around a ring of four, routers with an even sum use one direction and the others the other.
    """
    alone = ranks_of(16, "-m", "ape128", "--set", "network.dims=[1,4,4]")
    for x in (0, 6):
        plane = ranks_of(16, "-m", "ape128", "--partition", f"1x4x4@{x},0,0")
        assert [line[1:] for line in plane] == [line[1:] for line in alone]
    assert min(float(line[3]) for line in alone) > 0


def test_a_box_within_a_ring_is_a_mesh(ranks_of):
    """Three nodes of a ring of eight: the torus of ranks goes on from the last to the first, two links back."""
    box = ranks_of(3, "-m", "ape128", "--partition", "3x1x1")
    mesh = ranks_of(3, "-m", "ape128", "--set", "network.topology=mesh", "--set", "network.dims=[3,1,1]")
    assert [line[1:] for line in box] == [line[1:] for line in mesh]
    ring = ranks_of(3, "-m", "ape128", "--set", "network.dims=[3,1,1]")
    assert [line[3] for line in ring] != [line[3] for line in box]


def test_the_leaves_of_a_fat_tree(apenet, compile_native):
    program = compile_native("apelib/in_partition.c", "apelib", mpi=True)
    done = apenet("run", "-n", "4", "-m", "pax", "--partition", "nodes:0-1,20-21", "--", program)
    assert done.returncode == 0, done.stderr
    names = [line.split()[1] for line in done.stdout.splitlines()]
    assert names == ["pax-0", "pax-1", "pax-20", "pax-21"]


def test_what_does_not_fit_starts_nothing(apenet, program):
    for options, expected in (
        (("-n", "17", "--partition", "1x4x4"), "at most 16: partition 1x4x4 of ape128 has 1x4x4 = 16 nodes"),
        (("-n", "2", "--partition", "9x1x1"), "a box inside ape128, 8x4x4: dimension X has the nodes 0 to 7"),
        (("-n", "2", "--partition", "front"), "ape128.toml names none"),
    ):
        done = apenet("run", "-m", "ape128", *options, "--", program)
        assert done.returncode == 2
        assert expected in done.stderr
        assert done.stdout == ""


def test_links_of_a_mesh_end_at_the_edge_of_a_box(apenet, compile_native):
    """QPACE's links lead to neighbours: those of a box have none outside it."""
    program = compile_native("tnw/edges.c", "tnw")
    shape = ("-m", "qpace", "--set", "network.dims=[4,4,1]")
    lines = {
        name: apenet("run", "-n", str(ranks), *shape, *options, "--", program).stdout
        for name, ranks, options in (("box", 8, ("--partition", "2x4x1")), ("whole", 16, ()))
    }
    assert re.findall(r"^0 .*", lines["box"], re.MULTILINE) == ["0 (0,0,0): x+ y+ y- z+ z-"]
    assert re.findall(r"^0 .*", lines["whole"], re.MULTILINE) == ["0 (0,0,0): x+ x- y+ y- z+ z-"]
