"""Ranges of assumed numbers, and which results hang on one of them."""

import json

import pytest

from apenet.base.errors import MachineError
from apenet.machine import machine, machines
from apenet.machine.assumptions import Assumption, assumptions
from apenet.machine.quantity import quantities
from apenet.reproduce.sensitivity import JUDGED, SAMPLES, digest_of, sensitivity, shipped


def judged():
    """The machines with a judged result, and the points of those results."""
    return {
        one.name: [
            (key, point)
            for key, result in one.file.results.items()
            if result.target in JUDGED
            for point in result.points
        ]
        for one in machines()
        if any(result.target in JUDGED for result in one.file.results.values())
    }


ABSTRACT = {"ideal", "iq-router-v1", "iq-router-v2", "my-cluster", "torus-slice"}
"""For teaching, or BookSim2's routers: no machine that was built, so no other value is plausible."""


@pytest.mark.parametrize("name", sorted({one.name for one in machines()} - ABSTRACT))
def test_every_assumed_number_has_a_range(name):
    for key, quantity in quantities(machine(name).file):
        if quantity.origin == "assumed" and isinstance(quantity.value, int | float):
            assert quantity.range is not None, key
            assert quantity.range[0] <= quantity.value <= quantity.range[1], key


def test_the_ends_of_ranges_can_be():
    """The sensitivity varies no machine without a result, so it does not find an end that cannot be."""
    for one in assumptions(machine("bluegene-l")):
        for share in (0, 1):
            assert machine("bluegene-l", (one.at(share),)).name == "bluegene-l"


def test_the_shipped_sensitivity_is_that_of_the_shipped_machines():
    """`apenet reproduce --sensitivity --json` after a change of a machine file gives the new one."""
    found = {entry["name"]: entry["digest"] for entry in shipped()["machines"]}
    assert found == {name: digest_of(machine(name)) for name in judged()}
    assert shipped()["samples"] == SAMPLES


def test_classes_are_those_that_the_sensitivity_finds():
    found = {(row["key"], row["size_bytes"]): row["found"] for row in shipped()["rows"]}
    said = {(key, point.size_bytes): point.role for points in judged().values() for key, point in points}
    assert found == said


@pytest.fixture
def cached(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "apenet"


def test_an_agreement_that_hangs_on_an_assumption(cached):
    counts = []
    one = [machine("extoll-64")]
    only = {"extoll.rma_rate", "extoll.velo_latency"}
    first = sensitivity(one, only, 4, counts.append)
    rows = {row.key: row for row in first.rows}
    rate = rows["extoll.rma_rate"]
    assert rate.found == "assumed"
    # A requester that needs 48 clocks of 156 MHz sends 3.25 million puts a second, fewer than the 4.41 that are enough.
    assert rate.broken_by == ("card.rma_requester_cycles",)
    (swing,) = [swing for swing in rate.swings if swing.breaks]
    assert swing.at_high == pytest.approx(156e6 / 48, rel=0.01)
    assert rate.swings[0] == swing
    assert 0 <= rate.holds_percent <= 100
    assert rows["extoll.velo_latency"].found == "fitted"
    # What is known is not measured again.
    assert counts[0] > 2 * len(assumptions(one[0]))
    assert sensitivity(one, only, 4, counts.append) == first
    assert counts[1] == 0
    (kept,) = cached.iterdir()
    assert len(json.loads(kept.read_bytes())["content"]) == counts[0] + 1  # and the derivatives of the fit


def test_settings_in_a_range():
    rate = Assumption("card.gpu_read_bandwidth_mib_s", 100.0, 50.0, 200.0, "", is_whole=False)
    assert [rate.at(share) for share in (0, 0.5, 1)] == [f"{rate.key}={value}" for value in ("50.0", "100.0", "200.0")]
    buffer = Assumption("router.buffer_bytes", 256, 128, 512, "", is_whole=True)
    assert [buffer.at(share) for share in (0, 0.3, 0.7, 1)] == [f"{buffer.key}={at}" for at in (128, 256, 256, 512)]
    cycles = Assumption("card.descriptor_cycles", 25, 10, 60, "", is_whole=True)
    assert [cycles.at(share) for share in (0, 0.3, 0.7, 1)] == [f"{cycles.key}={at}" for at in (10, 20, 40, 60)]
    from_zero = Assumption("card.max_pio_bytes", 0, 0, 128, "", is_whole=True)
    assert [from_zero.at(share) for share in (0, 1)] == ["card.max_pio_bytes=0", "card.max_pio_bytes=128"]


@pytest.mark.parametrize(
    ("entry", "key", "expected"),
    [
        ('class = "assumed", range = [100, 100]', "range", "and a larger one"),
        ('class = "assumed", range = [200, 50]', "range", "and a larger one"),
        ('class = "assumed", range = [50, 200]', "range_source", "why the value may be anywhere in the range"),
        ('class = "published", range = [50, 200], range_source = "r"', "range", 'of class "assumed"'),
        ('class = "assumed", range_source = "r"', "range_source", "none without a range"),
        ('class = "assumed", range = [1], range_source = "r"', "range", "a list of two numbers"),
        ('class = "assumed", range = 5, range_source = "r"', "range", "a list of two numbers"),
    ],
)
def test_bad_ranges_are_named(tmp_path, entry, key, expected):
    text = machine("ideal").to_toml()
    lines = [
        f'latency_ns = {{ value = 100, {entry}, source = "s" }}' if line.startswith("latency_ns") else line
        for line in text.splitlines()
    ]
    path = tmp_path / "bad.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(MachineError) as refused:
        machine(path)
    assert refused.value.key.endswith(f"latency_ns.{key}")
    assert expected in refused.value.expected
