"""The packet engine agrees with the flit engine within 10 %, or it warns.

APENET_TRUST_DRAWS sets how many configurations are drawn; docs/models/flit-engine.md shows the result of 200.
"""

import os
import random
import re
from dataclasses import dataclass

import pytest

import apenet

DRAWS = int(os.environ.get("APENET_TRUST_DRAWS", "40"))
TOLERANCE = 0.1
WARNING = "deviate by more than 10 %"
SHORT = {"warmup_cycles": 3000, "measure_cycles": 5000, "drain_cycles": 20000}
PAPERS = ["ape128", "qpace", "quong", "extoll-64", "extoll-64-2d", "pax", "torus-slice", "my-cluster"]
CUBES = ["[8]", "[2]", "[4,4]", "[4,4,4]", "[8,4]", "[4,2,2]", "[5,3]"]


@dataclass(frozen=True)
class Case:
    machine: str
    packet_flits: int
    load: float
    pattern: str = "uniform"
    settings: tuple[str, ...] = ()

    def run(self, engine, seed=1, **cycles):
        """The point of this load, and whether the packet engine warned."""
        result = apenet.traffic(
            self.machine,
            loads=(self.load,),
            pattern=self.pattern,
            packet_flits=self.packet_flits,
            settings=self.settings,
            engine=engine,
            seed=seed,
            **cycles,
        )
        return result.points[0], any(WARNING in warning for warning in result.warnings)


def drawn(seed):
    draws = random.Random(seed)
    machine = draws.choice([*PAPERS, *4 * ["iq-router-v1", "iq-router-v2"]])
    settings = []
    if machine not in ("pax", "my-cluster"):
        settings.append(f"network.dims={draws.choice(CUBES)}")
    elif draws.random() < 0.5:
        settings.append("network.routing=random-up")
    packet_flits = draws.choice([1, 2, 4, 8, 17, 32])
    if machine.startswith("iq"):
        buffer_flits = draws.choice([1, 2, 4, 8, 16, 32])
        settings.append(f"router.buffer_flits={buffer_flits}")
        settings.append(f"router.virtual_channels={draws.choice([2, 3, 4, 5, 8])}")
        settings.append(f"router.channel_selection={draws.choice(['any', 'lane'])}")
        settings.append(f"network.link.latency_ns={draws.choice([1, 1, 1, 4])}")
        if buffer_flits >= packet_flits:
            settings.append(f"router.switching={draws.choice(['wormhole', 'virtual-cut-through'])}")
    pattern = draws.choice(["uniform", "uniform", "neighbor", "randperm"])
    return Case(machine, packet_flits, round(draws.uniform(0.05, 0.7), 3), pattern, tuple(settings))


@pytest.mark.parametrize("seed", range(DRAWS))
def test_a_drawn_configuration_agrees_or_is_warned_of(seed):
    case = drawn(seed)
    flit, _ = case.run("flit", seed, **SHORT)
    packet, is_warned = case.run("packet", seed, **SHORT)
    if is_warned:
        return
    assert not flit.saturated, case
    assert packet.packet_latency_cycles == pytest.approx(flit.packet_latency_cycles, rel=TOLERANCE), case
    assert packet.network_latency_cycles == pytest.approx(flit.network_latency_cycles, rel=TOLERANCE), case


SMALL_BUFFERS = ("router.buffer_flits=2",)


@pytest.mark.parametrize(
    "case",
    [
        Case("iq-router-v1", 8, 0.3),
        Case("iq-router-v1", 1, 0.25, settings=SMALL_BUFFERS),
        Case("iq-router-v1", 16, 0.06, settings=SMALL_BUFFERS),
        Case("iq-router-v2", 8, 0.15),
        Case("iq-router-v2", 1, 0.14, "neighbor", ("network.dims=[8]",)),
        Case("ape128", 17, 0.35, "randperm", ("network.dims=[4,4,4]",)),
    ],
)
def test_packets_span_buffers_and_take_any_lane(case):
    """Within 10 % without a warning, where whole packets in single buffers were wrong by up to 130 %."""
    flit, _ = case.run("flit", **SHORT)
    packet, is_warned = case.run("packet", **SHORT)
    assert packet.packet_latency_cycles == pytest.approx(flit.packet_latency_cycles, rel=0.07)
    assert not is_warned


@pytest.mark.parametrize("packet_flits", [1, 2, 4, 8])
@pytest.mark.parametrize("buffer_flits", [1, 2, 8])
def test_one_virtual_channel_carries_what_the_flit_engine_does(packet_flits, buffer_flits):
    settings = ("network.dims=[8]", "router.virtual_channels=2", f"router.buffer_flits={buffer_flits}")
    case = Case("iq-router-v1", packet_flits, 1.0, "neighbor", settings)
    flit, packet = (case.run(engine, **SHORT)[0] for engine in ("flit", "packet"))
    assert packet.accepted == pytest.approx(flit.accepted, rel=0.01)
    assert packet.min_latency_cycles == flit.min_latency_cycles


def test_a_warning_says_size_and_direction():
    result = apenet.traffic("iq-router-v2", loads=(0.3,), packet_flits=8, **SHORT)
    (warning,) = result.warnings
    assert "(a buffer holds less than a packet; compare with --engine flit)" in warning
    assert "too low" in warning


@pytest.mark.parametrize(
    ("machine", "packet_flits"), [("qpace", 8), ("qpace", 32), ("torus-slice", 32), ("ape128", 32), ("quong", 8)]
)
def test_a_warning_predicts_what_slower_ports_and_pauses_cost_the_flit_engine(machine, packet_flits):
    """Two nodes send to themselves."""
    case = Case(machine, packet_flits, 0.3, "randperm", ("network.dims=[2,1]",))
    arguments = {"loads": (case.load,), "pattern": case.pattern, "packet_flits": packet_flits, **SHORT}
    result = apenet.traffic(machine, settings=case.settings, **arguments)
    flit, _ = case.run("flit", **SHORT)
    (warning,) = result.warnings
    expected = re.search(r"about (\d+) % too low in the mean", warning)
    assert expected is not None
    deviation = result.points[0].packet_latency_cycles / flit.packet_latency_cycles - 1
    assert int(expected[1]) / 100 == pytest.approx(-deviation, abs=0.04)


@pytest.mark.parametrize(
    "settings",
    [
        ("network.dims=[4,4,4]", "router.buffer_flits=4", "router.virtual_channels=5", "router.switching=wormhole"),
        ("network.dims=[8]", "router.buffer_flits=2", "router.switching=virtual-cut-through"),
    ],
)
def test_a_lane_that_is_full_on_a_link_that_is_not_is_warned_of(settings):
    """The flit engine takes 1.6 and 2.4 times as long: packets wait behind others of their lane."""
    load = 0.306 if "router.buffer_flits=4" in settings else 0.136
    _, is_warned = Case("iq-router-v2", 1, load, settings=(*settings, "router.channel_selection=lane")).run(
        "packet", **SHORT
    )
    assert is_warned


@pytest.mark.parametrize("machine", ["ape16", "quong", "extoll-64", "torus-slice"])
@pytest.mark.parametrize("workload", [apenet.bench.halo, apenet.bench.alltoall, apenet.bench.allreduce])
def test_bursts_of_programs_take_the_same_time(machine, workload):
    """docs/models/flit-engine.md: a workload is one burst after another, with an idle network in between."""
    packet, flit = (workload(machine, sizes=[4096], engine=engine).times_us[0] for engine in ("packet", "flit"))
    assert packet == pytest.approx(flit, rel=0.03)
