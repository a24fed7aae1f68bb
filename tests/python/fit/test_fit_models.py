"""Fits: known models are found again, what data cannot determine is reported as unknown, and everything repeats."""

import json
from pathlib import Path

import numpy as np
import pytest

import apenet as package
from apenet.fit import MeasurementError, fit, fit_loggp, fit_paths, fit_protocols, parse, read
from apenet.fit.curvefit import MIB
from apenet.fit.plot import size_limits
from apenet.fit.report import number_text, size_text
from apenet.fit.statistics import interval

FOLDER = Path(__file__).parent / "measurements"
SIZES = [2**k for k in range(0, 21)]
# The intervals come from resamples; a test that reads none of them needs none.
NO_INTERVALS = 1
# The ping-pong of QPACE as published: lambda and tau in us, beta in bytes per us (here: MB per second).
QPACE = ((0.766, 0.57, 4084.74), (2.76, 0.037, 937.8))


def times(paths, size, channels):
    return max(fixed + channels * gap + channels * size / rate for fixed, gap, rate in paths)


def measured(paths, sizes, counts=(1,), noise=0.0, seed=1, test="pingpong"):
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = ["size_bytes,time_us,channels"]
    for channels in counts:
        for size in sizes:
            disturbance = 1 + noise * generator.standard_normal()
            rows.append(f"{size},{times(paths, size, channels) * disturbance!r},{channels}")
    return parse("synthetic.csv", "\n".join(rows).encode(), test=test)


def test_one_path_is_found_exactly():
    (path,) = fit_paths(measured([(2.0, 0.0, 1000.0)], SIZES), 1, NO_INTERVALS).paths
    assert path.fixed_us.value == pytest.approx(2.0, rel=1e-6)
    assert path.beta_mib_s.value == pytest.approx(1000e6 / MIB, rel=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_paths_and_their_crossovers_are_found_exactly(count):
    paths = [(20.0, 0.0, 8000.0), (10.0, 0.0, 1000.0), (0.0, 0.0, 900.0)][:count]
    fitted = fit_paths(measured(paths, sorted({*SIZES, *(3 * size for size in SIZES)})), count, NO_INTERVALS)
    assert fitted.in_sample.max_percent < 1e-3
    for found, (fixed, _, rate) in zip(fitted.paths, paths, strict=True):
        assert found.fixed_us.value == pytest.approx(fixed, rel=1e-3, abs=1e-3)
        assert found.beta_mib_s.value == pytest.approx(rate * 1e6 / MIB, rel=1e-4)
    # 20 + N/8000 = 10 + N/1000 at N = 80000/7, 10 + N/1000 = N/900 at 90000
    for crossover, size in zip(fitted.crossovers, (80000 / 7, 90000), strict=False):
        assert crossover.size_bytes.value == pytest.approx(size, rel=1e-3)
    assert len(fitted.crossovers) == count - 1


def test_one_channel_count_determines_only_the_sum():
    fitted = fit_paths(measured(QPACE, range(128, 2049, 64), counts=[8]), 2, NO_INTERVALS)
    for path, (fixed, gap, _) in zip(fitted.paths, QPACE, strict=True):
        assert path.lambda_us is None
        assert path.tau_us is None
        assert path.fixed_us.value == pytest.approx(fixed + 8 * gap, rel=1e-4)
        assert any("lambda and tau" in line for line in path.unknown)
    assert fitted.crossovers[0].size_bytes.value == pytest.approx(345.4, rel=1e-3)


def test_several_channel_counts_separate_lambda_and_tau():
    fitted = fit_paths(measured(QPACE, range(64, 2049, 64), counts=[1, 2, 4, 5, 6, 7, 8]), 2, NO_INTERVALS)
    for path, (fixed, gap, rate) in zip(fitted.paths, QPACE, strict=True):
        assert path.lambda_us.value == pytest.approx(fixed, rel=1e-3)
        assert path.tau_us.value == pytest.approx(gap, rel=1e-3)
        assert path.beta_mib_s.value == pytest.approx(rate * 1e6 / MIB, rel=1e-3)


def test_a_path_seen_with_one_channel_count_keeps_only_its_sum():
    """The first path dominates only at Nvc = 8, although other numbers were measured."""
    first, second = fit_paths(measured(QPACE, range(64, 2049, 64), counts=[1, 2, 8]), 2, NO_INTERVALS).paths
    assert first.lambda_us is None
    assert "Nvc = 8" in " ".join(first.unknown)
    assert second.lambda_us.value == pytest.approx(2.76, rel=1e-3)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    truth = [(2.0, 0.0, 1000.0)]
    inside = 0
    for seed in range(24):
        (path,) = fit_paths(measured(truth, SIZES, noise=0.02, seed=seed), 1, resamples=60).paths
        inside += path.fixed_us.low <= 2.0 <= path.fixed_us.high
    # 95 % of 24 are 23; with few points a bootstrap is a little narrow.
    assert inside >= 19


def test_an_outlier_does_not_move_the_fit():
    rows = [f"{size},{2 + size / 1000}" for size in SIZES]
    rows[8] = f"256,{1.8 * (2 + 0.256)}"
    (path,) = fit_paths(parse("o.csv", "\n".join(["size_bytes,latency_us", *rows]).encode()), 1, NO_INTERVALS).paths
    assert path.fixed_us.value == pytest.approx(2.0, rel=0.01)
    assert path.beta_mib_s.value == pytest.approx(1000e6 / MIB, rel=0.01)


def test_held_out_error_is_that_of_sizes_the_fit_did_not_see():
    measurement = measured([(2.0, 0.0, 1000.0)], SIZES, noise=0.02)
    fitted = fit_paths(measurement, 1, NO_INTERVALS)
    assert fitted.held_out.points == len(SIZES) - 2
    assert not np.isfinite(fitted.held_out_percent[[0, -1]]).any()
    size = SIZES[5]
    rest = fit_paths(measurement.without(size), 1, NO_INTERVALS)
    expected = 100 * (measurement.times_us[5] / rest.curve(np.array([float(size)]), 1)[0] - 1)
    assert fitted.held_out_percent[5] == pytest.approx(expected, abs=1e-3)
    assert fitted.held_out.rms_percent > fitted.in_sample.rms_percent


def test_the_same_data_give_the_same_fit():
    measurement = measured(QPACE, range(64, 2049, 64), counts=[1, 8], noise=0.02)
    first, second = (fit_paths(measurement, 2, resamples=40) for _ in range(2))
    assert json.dumps(first.to_json()) == json.dumps(second.to_json())


@pytest.mark.parametrize(
    ("model", "sizes"), [("auto", 2), ("paths:1", 2), ("paths:2", 4), ("paths:3", 6), ("loggp", 2)]
)
def test_too_few_sizes_are_refused(model, sizes):
    with pytest.raises(MeasurementError, match=f"{sizes} message sizes: expected at least {sizes + 1}"):
        fit(measured([(2.0, 0.0, 1000.0)], SIZES[:sizes]), model=model)


def test_loggp_of_a_pingpong_is_a_sum():
    fitted = fit_loggp([measured([(5.0, 0.0, 1000.0)], SIZES)])
    assert fitted.sum_us.value == pytest.approx(5.0 + 0.001, rel=1e-3)  # N - 1 bytes at G
    assert fitted.gap_per_byte_us.value == pytest.approx(0.001, rel=1e-6)
    assert fitted.latency_us is None
    assert fitted.gap_us is None
    assert len(fitted.unknown) == 2


def test_loggp_of_a_pingpong_and_a_stream_with_measured_overheads():
    def content(test, fixed, **more):
        points = [{"size_bytes": size, "time_us": fixed + 0.001 * max(0, size - 1)} for size in SIZES]
        return parse(test, json.dumps({"test": test, "points": points, **more}).encode())

    overheads = {"send_us": 0.25, "receive_us": 0.5}
    fitted = fit_loggp([content("oneway", 0.75), content("pingpong", 5.0, overheads=overheads)])
    assert fitted.latency_us.value == pytest.approx(4.25, rel=1e-6)
    assert (fitted.send_us, fitted.receive_us) == (0.25, 0.5)
    assert fitted.gap_us.value == pytest.approx(0.75, rel=1e-6)
    assert fitted.unknown == ()
    more = {"send_us": 3.0, "receive_us": 3.0}
    fitted = fit_loggp([content("oneway", 0.75), content("pingpong", 5.0, overheads=more)])
    assert fitted.latency_us is None
    assert fitted.unknown[0].startswith("L: o_s + o_r = 6 us is all of L + o_s + o_r = 5 us")


def test_loggp_refuses_two_pingpongs():
    one = measured([(5.0, 0.0, 1000.0)], SIZES)
    with pytest.raises(MeasurementError, match="a second pingpong"):
        fit_loggp([one, one])


def test_models_are_named():
    with pytest.raises(package.InputError, match="--model"):
        fit("file", model="paths:4")
    with pytest.raises(package.InputError, match="one file, not 2"):
        fit("one", "two", model="paths:1")


def test_an_interval_of_few_estimates_is_not_determined():
    found = interval(1.0, np.array([1.0, np.nan, np.nan]))
    assert not np.isfinite(found.low)


def test_the_command_prints_one_object(apenet):
    done = apenet("fit", FOLDER / "osu_latency.txt", "--json")
    content = json.loads(done.stdout)
    assert content["model"] == "protocols"
    assert content["input"]["test"] == "pingpong"
    assert len(content["points"]) == content["input"]["points"] == 23
    assert {one["model"] for one in content["compared"]} == {"paths:1", "paths:2", "protocols"}
    paths = json.loads(apenet("fit", FOLDER / "osu_latency.txt", "--json", "--model", "paths:2").stdout)
    assert paths["paths"][0]["lambda_us"] is None
    assert paths["compared"] == []


def test_a_curve_with_steps_is_fitted_by_protocols():
    measurement = read(FOLDER / "osu_latency.txt")
    chosen = fit(measurement)
    assert chosen.model == "protocols"
    assert chosen.in_sample.max_percent <= 4
    assert fit_paths(measurement, 2, NO_INTERVALS).in_sample.max_percent > 50
    errors = {one.model: one.held_out_rms_percent for one in chosen.compared}
    assert min(errors, key=errors.get) == "protocols"
    assert sum(one.points for one in chosen.ranges) == len(measurement)
    alone = fit(measurement, model="protocols")
    assert alone.to_json() | {"compared": None} == chosen.to_json() | {"compared": None}
    # The ranges of the other sizes predict a left-out size.
    rest = fit_protocols(measurement.without(int(measurement.sizes_bytes[4])), NO_INTERVALS)
    expected = 100 * (measurement.times_us[4] / rest.curve(measurement.sizes_bytes[4:5].astype(float))[0] - 1)
    assert chosen.held_out_percent[4] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("paths", "counts", "noise", "model"),
    [
        ([(2.0, 0.0, 1000.0)], [1], 0.0, "paths:1"),
        ([(2.0, 0.0, 1000.0)], [1], 0.02, "paths:1"),
        ([(2.0, 0.0, 4000.0), (1.0, 0.0, 500.0)], [1], 0.0, "paths:2"),
        (QPACE, [1, 8], 0.0, "paths:2"),
    ],
)
def test_the_simplest_of_the_models_that_predict_is_chosen(paths, counts, noise, model):
    chosen = fit(measured(paths, SIZES if counts == [1] else SIZES[4::3], counts, noise))
    assert chosen.model == model
    assert [one.model for one in chosen.compared][:2] == ["paths:1", "paths:2"]


def test_a_step_is_found_where_it_is():
    rows = [f"{size},{(2 + size / 1000) if size <= 4096 else (9 + size / 4000)!r}" for size in SIZES]
    chosen = fit(parse("steps.csv", "\n".join(["size_bytes,time_us", *rows]).encode(), test="pingpong"))
    assert chosen.model == "protocols"
    assert [one.sizes_bytes for one in chosen.ranges] == [(1, 4096), (8192, 2**20)]
    assert [one.latency_us.value for one in chosen.ranges] == pytest.approx([2, 9], rel=1e-3)
    assert [one.beta_mib_s.value for one in chosen.ranges] == pytest.approx([1e9 / MIB, 4e9 / MIB], rel=1e-3)


def test_several_files_are_for_loggp():
    pingpong = measured([(5.0, 0.0, 1000.0)], SIZES)
    stream = measured([(1.0, 0.0, 1000.0)], SIZES, test="unidirectional")
    assert fit(pingpong, stream).model == "loggp"


def test_the_command_prints_a_table_and_draws(apenet, tmp_path):
    done = apenet("fit", FOLDER / "osu_latency.txt", FOLDER / "osu_bw.txt", "--model", "loggp")
    assert "L + o_s + o_r" in done.stdout
    assert "\nunknown " in done.stdout
    for name, model in (("fit.svg", "protocols"), ("fit.png", "auto")):
        drawn = apenet("fit", FOLDER / "osu_latency.txt", "--model", model, "--plot", tmp_path / name)
        assert drawn.returncode == 0, drawn.stderr
        assert (tmp_path / name).stat().st_size > 10_000
    assert "chosen     by held-out error (rms): paths:1 " in drawn.stdout
    paths = apenet("fit", FOLDER / "osu_latency.txt", "--model", "paths:2")
    assert "crossover" in paths.stdout


def test_a_picture_shows_no_sizes_below_those_measured():
    from_zero, from_eight = (measured(QPACE, [least, 16, 512]) for least in (0, 8))
    low, high = size_limits([from_eight])
    assert 4 < low < 8
    assert 512 < high < 1024
    low, _ = size_limits([from_eight, from_zero])
    assert -1 < low < 0


def test_numbers_are_printed_readably():
    assert number_text(2.086e18) == "2.1e+18"
    assert number_text(14399.4) == "14399"
    assert size_text(2**40) == "1024 GiB"


def test_bad_input_ends_with_status_two(apenet, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for arguments in ([empty], ["absent.txt"], [FOLDER / "osu_latency.txt", "--plot", "fit.docx"]):
        done = apenet("fit", *arguments)
        assert done.returncode == 2
        assert "expected" in done.stderr
        assert done.stdout == ""
