"""Settings as Python values, and rates in place of clocks."""

import numpy as np
import pytest

from apenet.base.errors import InputError, MachineError
from apenet.base.rates import parse_rate
from apenet.machine import machine


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10GB/s", 10e9),
        ("200Gbit/s", 25e9),
        ("200Gbit", 25e9),
        ("1.5 GiB/s", 1.5 * 2**30),
        ("8kb/s", 1000),
        ("640Mbps", 80e6),
        ("12B/s", 12),
    ],
)
def test_rates_are_bytes_a_second(text, rate):
    assert parse_rate("rate", text) == rate


@pytest.mark.parametrize(
    "text", ["", "10", "0GB/s", "-1GB/s", "1e9B/s", "10GB/min", "fast", "1iB/s", "nanGB/s", "1.GBB"]
)
def test_other_texts_are_no_rates(text):
    with pytest.raises(InputError):
        parse_rate("rate", text)


# (machine, key, rate, clock in MHz): by hand, rate * word_cycles / word_bytes.
RATES = [
    ("my-cluster", "network.link.rate", "10GB/s", "network.link.clock_mhz", 312.5),  # words: 32 bytes
    ("my-cluster", "bus.rate", "32GB/s", "bus.clock_mhz", 1000),
    ("my-cluster", "router.port_rate", "40Gbit/s", "router.port_clock_mhz", 156.25),
    ("torus-slice", "network.link.x.rate", "24GB/s", "network.link.x.clock_mhz", 480),  # words: 50 bytes
]


@pytest.mark.parametrize(("name", "key", "rate", "clock", "mhz"), RATES)
def test_a_rate_sets_the_clock(name, key, rate, clock, mhz):
    base = machine(name).description().base_units()
    chosen = machine(name, [f"{key}={rate}"])
    found = chosen.file
    for step in clock.split("."):
        found = getattr(found, step)
    assert found.value == mhz
    assert found.source == f"--set {key}={rate}"
    assert chosen.description().base_units() != base


def test_a_rate_of_a_rail_is_that_rails():
    two = machine("pax-dual", ["rail.port2.network.link.rate=1GB/s"])
    link = two.file.rail["port2"].network.link
    assert link.clock_mhz.value == 1000 * link.word_cycles.value / link.word_bytes.value
    assert two.file.network == machine("pax-dual").file.network


def test_settings_are_also_a_mapping():
    wanted = {
        "network.dims": np.array([4, 2, 2]),
        "network.link.rate": "10GB/s",
        "network.routing": "dimension-order",
        "router.buffer_bytes": np.int64(65536),
        "network.link.latency_ns": 12.5,
    }
    texts = ["network.dims=[4, 2, 2]", "network.link.rate=10GB/s", "network.routing=dimension-order"]
    texts += ["router.buffer_bytes=65536", "network.link.latency_ns=12.5"]
    assert machine("torus-slice", wanted) == machine("torus-slice", texts)


@pytest.mark.parametrize("settings", [{"network.dims": {1}}, {"network.dims": None}, "network.dims=[2]", {"\ud800": 1}])
def test_other_settings_are_refused(settings):
    with pytest.raises(InputError):
        machine("pax", settings)


def test_an_error_shows_both_ends_of_a_long_setting():
    with pytest.raises(MachineError) as caught:
        machine("ape16").with_settings(f"network.dims=[{'1, ' * 9999}2]")
    assert "--set network.dims=[1, 1, " in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_frame_has_all_parameters():
    pytest.importorskip("pandas")
    frame = machine("ape16", {"network.link.latency_ns": 99}).frame()
    assert frame.loc["network.link.latency_ns", ["value", "class"]].tolist() == [99, "set"]
    assert "software.card.send_us" in frame.index
