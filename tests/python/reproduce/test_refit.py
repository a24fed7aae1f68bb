"""Fitted numbers are fitted again where assumed ones vary, and each published number counts once."""

from dataclasses import replace

import pytest

from apenet import bench
from apenet.base.errors import MachineError
from apenet.machine import machine, machines
from apenet.machine.quantity import quantities
from apenet.reproduce import Reproduction, plan
from apenet.reproduce.refit import FittedRow, Refit, calibration_of
from apenet.reproduce.rows import Row


def refit_of(name, layers=frozenset({"card"})):
    calibration = calibration_of(machine(name), set(layers))
    values, *slopes = calibration.measure()
    return Refit(calibration, tuple(values), tuple(map(tuple, slopes)))


def velo_us(*settings):
    result = machine("extoll-64").file.results["extoll.velo_latency"]
    return float(bench.measure(result.test, machine("extoll-64", settings), sizes=result.sizes).times_us.min())


def test_a_fit_is_repeated():
    refit = refit_of("extoll-64")
    assert refit.values == (pytest.approx(velo_us()),)
    changed = "router.forward_cycles=20"
    assert abs(velo_us(changed) / velo_us() - 1) > 0.1
    fitted = refit.settings((changed,))
    assert [setting.partition("=")[0] for setting in fitted] == ["software.card.send_us", "software.card.receive_us"]
    assert velo_us(changed, *fitted) == pytest.approx(velo_us(), rel=0.005)
    # What no fitted number has to make good stays.
    assert refit.settings(("card.rma_requester_cycles=48",)) == (
        "software.card.send_us=0.1",
        "software.card.receive_us=0.3",
    )


def test_a_machine_that_cannot_be_fitted_is_no_candidate():
    """Without any software, 5 us until the doorbell is at the card are far more than 0.97 us."""
    assert refit_of("extoll-64").settings(("bus.pio_write_latency_ns=5000",)) is None


def test_a_number_is_fitted_where_its_result_is():
    assert refit_of("extoll-64").calibration.rows == (FittedRow("extoll.velo_latency", None),)
    # No judged result of the layer mpi, and none of the machine at all.
    assert calibration_of(machine("extoll-64"), {"mpi"}) is None
    assert calibration_of(machine("extoll-64-2d"), {"card"}) is None


def test_what_a_number_is_fitted_to_exists():
    results = {key: result for one in machines() for key, result in one.file.results.items()}
    named = {
        (key, name) for one in machines() for key, quantity in quantities(one.file) for name in quantity.fitted_to or ()
    }
    assert named
    for key, name in named:
        result, _, size = name.partition("@")
        assert any(
            point.role == "fitted" and size in ("", str(point.size_bytes)) for point in results[result].points
        ), key


def test_only_fitted_numbers_are_fitted_to_something(tmp_path):
    text = machine("ideal").to_toml().replace('source = "', 'fitted_to = ["extoll.velo_latency"], source = "', 1)
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MachineError) as refused:
        machine(path)
    assert refused.value.key.endswith(".fitted_to")
    assert 'class "fitted"' in refused.value.expected


@pytest.mark.parametrize("repeated", ["apenet-2004.nothing", "apenet-2004.uni_time_1MiB"])
def test_a_repeated_result_is_one_of_the_file(tmp_path, repeated):
    text = machine("apenet-2004").to_toml().replace('repeats = "apenet-2004.uni_bw"', f'repeats = "{repeated}"', 1)
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MachineError) as refused:
        machine(path)
    assert refused.value.key.endswith(".repeats")
    assert refused.value.value == repeated


def test_each_published_number_counts_once():
    row = Row(
        key="a",
        machine="ideal",
        test="pingpong",
        published=1.0,
        simulated=1.0,
        unit="us",
        tolerance_percent=10,
        bound=None,
        target="hard",
        role="predicted",
        source="s",
    )
    again = replace(row, key="b", simulated=2.0, repeats="a")
    both = Reproduction((row, again), (), (), ())
    assert (both.count("hard").met, both.count("hard").missed) == (1, 0)
    assert both.agrees
    assert both.to_json()["rows"][1]["repeats"] == "a"
    # A row that is shown without the one that it repeats counts.
    assert Reproduction((again,), (), (), ()).count("hard").missed == 1


def test_no_key_of_a_row_is_repeated_in_a_circle():
    planned = plan()
    repeats = {key: result.repeats for _, key, result in planned.results if result.repeats}
    repeats |= {shape.key: shape.repeats for shape in planned.shapes if shape.repeats}
    known = {*(key for _, key, _ in planned.results), *(shape.key for shape in planned.shapes)}
    assert set(repeats.values()) <= known
    assert not set(repeats.values()) & set(repeats)
