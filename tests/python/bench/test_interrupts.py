"""Reception by interrupt, as a setting of any machine (docs/models/host.md)."""

import pytest

from apenet import bench
from apenet.base.errors import MachineError
from apenet.machine import machine

INTERRUPT_US = 10.0


def half_round_trip_us(name, layer, *settings):
    (time,) = bench.measure("pingpong", machine(name, settings), sizes="16", layer=layer).times_us
    return float(time)


@pytest.mark.parametrize(
    "name", ["ideal", "ape128", "apenetplus-v4", "apenetplus-v5", "extoll-64", "pax", "qpace", "torus-slice"]
)
def test_every_card_can_receive_by_interrupt(name):
    polled = half_round_trip_us(name, "card")
    told = half_round_trip_us(name, "card", f"card.interrupt_us={INTERRUPT_US}")
    late = half_round_trip_us(name, "card", f"card.interrupt_us={INTERRUPT_US}", "card.coalesce_us=16")
    early = half_round_trip_us(
        name, "card", f"card.interrupt_us={INTERRUPT_US}", "card.coalesce_us=16", "card.coalesce_events=1"
    )
    assert told == pytest.approx(polled + INTERRUPT_US)
    assert late == pytest.approx(polled + INTERRUPT_US + 16)
    assert early == told


def test_mpi_waits_for_the_interrupt_of_its_message():
    polled = half_round_trip_us("pax", "mpi")
    told = half_round_trip_us("pax", "mpi", "card.interrupt_us=10")
    assert told == pytest.approx(polled + 10, abs=0.001)  # the library's polls fall on other times


def test_udp_has_one_interrupt():
    """The card's takes the place of the kernel's own, which the other layers do not have."""
    own = half_round_trip_us("l5530-pair", "udp", "software.udp.interrupt_us=7")
    assert half_round_trip_us("l5530-pair", "udp", "card.interrupt_us=7") == pytest.approx(own)


@pytest.mark.parametrize(
    ("settings", "key", "expected"),
    [
        (["card.coalesce_us=5"], "card.coalesce_us", "there is no interrupt without card.interrupt_us above 0"),
        (
            ["card.interrupt_us=5", "card.coalesce_events=4"],
            "card.coalesce_events",
            "no interrupt waits for events without card.coalesce_us above 0",
        ),
        (["card.interrupt_us=-1"], "card.interrupt_us", "0"),
    ],
)
def test_what_has_no_effect_is_refused(settings, key, expected):
    with pytest.raises(MachineError) as refused:
        bench.measure("pingpong", machine("pax", settings), sizes="16")
    assert refused.value.key == key
    assert expected in refused.value.expected
