"""Published and simulated values: their classes, verdicts, and the report."""

import json
import math
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

import apenet.reproduce
from apenet import bench
from apenet.base.errors import InputError
from apenet.bench.result import make_result
from apenet.machine import machine, machines
from apenet.machine.published import PublishedResult
from apenet.machine.quantity import quantities
from apenet.reproduce import Reproduction, Row, Tally, plan, reproduce
from apenet.reproduce.charts import chart
from apenet.reproduce.figures import Figure, FigureSpec, Mark, Series, figures
from apenet.reproduce.literature import FIGURES, LOADS
from apenet.reproduce.random_access import PROCESSES, AccessRates, parameters_digest
from apenet.reproduce.report import page, report_json
from apenet.reproduce.rows import row_of
from apenet.reproduce.shapes import shapes
from apenet.reproduce.unmeasured import shipped_digests, unmeasured_rows
from apenet.reproduce.values import path_coefficients, value_of


def test_the_card_of_2004():
    reproduction = reproduce(plan(["apenet-2004"]))
    assert reproduction.agrees
    rows = {row.key: row for row in reproduction.rows}
    assert rows["apenet-2004.uni_bw"].role == "assumed"
    assert rows["apenet-2004.bidir_bw_sat"].role == "fitted"
    assert rows["apenet-2004.uni_time_1MiB"].verdict == "n/a"
    assert {row.verdict for row in rows.values() if row.target != "none"} == {"pass"}
    # 470 of 508 MiB/s is 0.925, so both simulated values have the same relative error.
    error = rows["apenet-2004.uni_bw"].error_percent
    assert rows["apenet-2004.uni_bw_fraction_of_link"].error_percent == pytest.approx(error, abs=0.2)
    assert rows["apenet-2004.latency_flat_until"].simulated in (256, 512)


def row(**changes):
    fields = {
        "key": "k",
        "machine": "m",
        "test": "pingpong",
        "published": 100.0,
        "simulated": 100.0,
        "unit": "us",
        "tolerance_percent": 10.0,
        "bound": None,
        "target": "hard",
        "role": "predicted",
        "source": "s",
    }
    return Row(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"simulated": 110.0}, "pass"),
        ({"simulated": 90.0}, "pass"),
        ({"simulated": 110.1}, "miss"),
        ({"simulated": 89.9}, "miss"),
        ({"simulated": 150.0, "bound": "lower"}, "pass"),
        ({"simulated": 90.0, "bound": "lower"}, "pass"),
        ({"simulated": 89.0, "bound": "lower"}, "miss"),
        ({"simulated": 89.0, "bound": "upper", "tolerance_percent": None}, "pass"),
        ({"simulated": 100.1, "bound": "upper", "tolerance_percent": None}, "miss"),
        ({"simulated": 1.0, "target": "none"}, "n/a"),
        ({"simulated": None}, "n/a"),
    ],
)
def test_verdicts(changes, verdict):
    assert row(**changes).verdict == verdict
    assert row(**changes).to_json()["verdict"] == verdict


def test_what_is_not_measured_does_not_agree():
    rows = [row(), row(simulated=None), row(target="soft", simulated=200.0)]
    assert Reproduction(tuple(rows[:1]), (), (), ()).agrees
    reproduction = Reproduction(tuple(rows), (), (), ())
    assert not reproduction.agrees
    assert reproduction.count("hard") == Tally(met=1, missed=0, unmeasured=1)
    assert reproduction.count("soft") == Tally(met=0, missed=1, unmeasured=0)


def test_a_machine_says_what_it_rests_on():
    rows = (row(machine="ape128"), row(machine="ape128", role="fitted"), row(machine="ape128", simulated=200.0))
    (standing,) = Reproduction(rows, (), (), ()).standings
    assert standing.targets == {"fitted": (1, 1), "follows": (0, 0), "assumed": (0, 0), "predicted": (1, 2)}
    assert sum(standing.numbers.values()) == len(list(quantities(machine("ape128").file)))
    assert standing.numbers["fitted"] == 4


def test_unknown_results_are_named():
    with pytest.raises(InputError, match=r"apenet-2005\.rtt_min"):
        plan(["ape128.rtt"])
    with pytest.raises(InputError, match="one of ape128, "):
        plan(["-"])


def test_one_measurement_answers_all_that_ask_for_it():
    planned = plan(["apenet-2004.uni_bw", "apenet-2004.uni_time_1MiB", "apenet-2004.latency_small_page"])
    assert len(planned.results) == 3
    assert len(planned.tasks) == 1


def published(**changes):
    fields = {
        "test": "pingpong",
        "sizes": "16:64",
        "quantity": "time_us",
        "statistic": "minimum",
        "value": 1.0,
        "target": "none",
        "role": "predicted",
        "source": "s",
    }
    return PublishedResult(**{**fields, **changes})


def measured(points, *, channels, test="pingpong"):
    asked = bench.make_request(test, "ape16")
    return make_result(asked, "card", points, channels=channels)


def sweep_result(times, *, test="pingpong", bandwidths=None, channels=None):
    sizes = [16, 32, 64] * (len(times) // 3)
    points = list(zip(sizes, times, bandwidths or [1.0] * len(times), strict=True))
    return measured(points, test=test, channels=channels)


def test_the_same_twice_whoever_measures():
    planned = plan(["apenet-2004.latency_flat_until", "apenet-2004.bidir_bw_sat"])
    first, second = (reproduce(planned).to_json() for _ in range(2))
    assert first == second
    for task in planned.tasks:
        alone = task.measure()
        assert alone.times_us[0] > 0
        row = next(row for row in first["rows"] if row["key"] == "apenet-2004.bidir_bw_sat")
        if alone.test == "bidirectional":
            assert row["simulated"] == alone.bandwidths_mib_s.max()


def test_a_figure_with_curves_of_mpi_names_their_eager_limit():
    spec = next(spec for spec in FIGURES if spec.name == "2005-bandwidth")
    asked = bench.make_request("unidirectional", "ape128")
    result = make_result(asked, "mpi", [(4096, 8.0, 500.0), (16384, 40.0, 400.0)])
    (figure,) = figures({}, [spec], {curve.task: result for curve in spec.curves})
    limit = int(machine("ape128").file.software.mpi.eager_limit_bytes.value)
    assert figure.steps == (f"MPI on ape128: eager up to {limit} bytes, rendezvous above",)
    assert figure.to_json()["note"].endswith(figure.steps[0])
    assert chart(figure)["note"] == figure.to_json()["note"]


def test_values_read_off_the_points():
    one = sweep_result([2.0, 2.4, 4.0], bandwidths=[10.0, 20.0, 30.0])
    other = sweep_result([2.0, 2.4, 4.0], bandwidths=[10.0, 10.0, 20.0])
    assert value_of("ape16", published(), [one], None) == 2
    assert value_of("ape16", published(statistic="maximum"), [one], None) == 4
    assert value_of("ape16", published(statistic="at_size", size_bytes=32), [one], 32) == 2.4
    flat = published(quantity="flat_until_bytes", statistic="whole", within_us=0.5)
    assert value_of("ape16", flat, [one], None) == 32
    gain = published(quantity="gain_percent", statistic="maximum", against=[])
    assert value_of("ape16", gain, [one, other], None) == pytest.approx(100)
    in_mb = published(quantity="bandwidth_mb_s", statistic="maximum")
    assert value_of("ape16", in_mb, [one], None) == pytest.approx(30 * 1.048576)
    # 16 bytes in 3 clocks of 115 MHz.
    of_link = published(quantity="link_fraction", statistic="maximum")
    assert value_of("ape16", of_link, [one], None) == pytest.approx(30 / (16 * 115e6 / 3 / 2**20))
    with pytest.raises(InputError, match="quantity"):
        value_of("ape16", published(quantity="rate_per_s"), [one], None)
    with pytest.raises(InputError, match="size_bytes"):
        value_of("ape16", published(statistic="at_size", size_bytes=5), [one], 5)


def test_last_bits_of_a_fit_are_not_shown(monkeypatch):
    """They are those of the host's processor."""
    points = [(size, 2.0, size / 2**20 / 2e-6) for size in (128, 256, 512)]
    result = measured([*points, (512, 4.0, 2 * 512 / 2**20 / 4e-6)], channels=[1, 1, 1, 2])
    given = [(0.8000000001234, 0.6, 1 / 4000), (2.8, 0.05, 1 / 900)]
    monkeypatch.setattr(
        "apenet.reproduce.values.fit_coefficients",
        lambda _data, _count: [[math.nextafter(x, 9) for x in row] for row in given],
    )
    assert path_coefficients(result) == ((0.8000000001, 0.6, 0.00025), (2.8, 0.05, 0.001111111111))


def test_two_paths_are_found_again():
    """Points of a model with known paths give its parameters, and where the paths cross."""
    fast, slow = (0.8, 0.6, 1 / 4000), (2.8, 0.05, 1 / 900)
    sizes, channels = [2**k for k in range(7, 12)], [1, 2, 4, 8]
    points, of_points = [], []
    for nvc in channels:
        for size in sizes:
            time_us = max(lam + nvc * tau + nvc * size * slope for lam, tau, slope in (fast, slow))
            points.append((size, time_us, nvc * size / 2**20 / (time_us * 1e-6)))
            of_points.append(nvc)
    result = measured(points, channels=of_points)
    assert path_coefficients(result)[1] == pytest.approx(slow, rel=1e-3)
    whole = {"statistic": "whole", "channels": channels}
    beta = value_of("ape16", published(quantity="fit.slow.beta_mb_s", **whole), [result], None)
    assert beta == pytest.approx(900, rel=1e-3)
    crossing = value_of("ape16", published(quantity="crossover_bytes", **whole), [result], None)
    expected = ((0.8 - 2.8) + 8 * 0.55) / (8 * (1 / 900 - 1 / 4000))
    assert crossing == pytest.approx(expected, rel=0.01)
    # With 8 channels only, the crossing is determined, but lambda and tau are not separated.
    alone = measured(points[-5:], channels=[8] * 5)
    of_eight = {"statistic": "whole", "channels": 8}
    crossing = value_of("ape16", published(quantity="crossover_bytes", **of_eight), [alone], None)
    assert crossing == pytest.approx(expected, rel=0.05)
    with pytest.raises(InputError, match="channels"):
        value_of("ape16", published(quantity="fit.slow.tau_us", **of_eight), [alone], None)


def test_each_result_has_one_entry():
    keys = [key for machine in machines() for key in machine.file.results]
    keys += [shape.key for shape in shapes()] + [row.key for row in unmeasured_rows()]
    assert len(keys) == len(set(keys))


def test_values_without_a_counterpart_give_the_reason():
    shipped = shipped_digests()
    for row in unmeasured_rows():
        assert (row.simulated is not None) == (row.key in shipped)
        assert row.verdict == "n/a" or row.key in shipped
        assert row.reason
    assert any("no published target" in str(row.published) for row in unmeasured_rows() if row.machine == "pax")


def test_values_that_are_not_simulated_have_no_class():
    result = published(role="fitted")
    (point,) = result.points
    assert row_of("ape16", "k", result, point, 1.0).role == "fitted"
    assert row_of("ape16", "k", result, point, None).role is None


def test_an_order_gives_pass_or_miss():
    assert row(published="this above that", simulated=2.0, holds=True).verdict == "pass"
    assert row(published="this above that", simulated=0.5, holds=False).verdict == "miss"
    assert row(simulated=math.nan).to_json()["simulated"] is None


def shape(key):
    return next(one for one in shapes() if one.key == key)


def rates(grown, *, more_from=2048):
    """In proportion to the processes, from a number on with a factor more."""
    return AccessRates({count: float(count * (grown if count >= more_from else 1)) for count in PROCESSES})


def test_a_step_of_random_access_is_one_on_the_first_mesh_only():
    even, stepped, falling = rates(1), rates(2, more_from=512), rates(0.5, more_from=512)
    factor = shape("extoll.randomaccess_step").factor
    assert factor([stepped, even]) == pytest.approx(1.1)  # the even curve is no step by this factor
    assert factor([stepped, falling]) == pytest.approx(2 / 1.1)
    for curves in ([even, even], [stepped, stepped], [falling, even], [even, stepped]):
        assert factor(curves) < 1


def test_rates_of_random_access_are_compared_at_every_number_of_processes():
    order = shape("gasnet.randomaccess_order").factor
    close = shape("gasnet.randomaccess_conduit_vs_velo_processes").factor
    lower = AccessRates({count: 0.5 * count for count in PROCESSES})
    assert order([rates(1), lower, AccessRates({count: 0.1 * count for count in PROCESSES})]) == pytest.approx(2)
    assert order([rates(1), rates(2, more_from=1024), lower]) < 1
    assert close([rates(1), rates(0.95, more_from=1024)]) > 1
    assert close([rates(1), rates(0.8, more_from=1024)]) < 1


def test_a_figure_of_random_access_counts_processes():
    spec = next(spec for spec in FIGURES if spec.name == "extoll-randomaccess")
    (figure,) = figures({}, [spec], {curve.task: rates(1) for curve in spec.curves})
    assert figure.to_json()["x_label"] == "processes"
    assert figure.series[0].x == tuple(map(float, PROCESSES))
    assert figure.series[0].y[-1] == pytest.approx(1024e-6)


def test_a_hard_miss_is_status_1(apenet, tmp_path):
    done = apenet("reproduce", "--only", "apenet-2004.bidir_bw_sat", "--json")
    assert done.returncode == 0
    (result,) = json.loads(done.stdout)["rows"]
    assert (result["published"], result["verdict"], result["class"]) == (677, "pass", "fitted")
    missing = reproduce(plan(["apenet-2004.bidir_bw_sat"]))
    assert missing.agrees
    assert not type(missing)((row(simulated=1.0),), (), (), ()).agrees
    assert type(missing)((row(simulated=1.0, target="soft"),), (), (), ()).agrees


def test_a_folder_gets_a_page_numbers_and_figures(apenet, tmp_path):
    done = apenet("reproduce", "--only", "apenet-2004", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out" / "report"
    content = json.loads((folder / "report.json").read_text())
    assert {figure["name"] for figure in content["figures"]} == {"2004-latency", "2004-bandwidth"}
    for figure in content["figures"]:
        picture = (folder / "figures" / f"{figure['name']}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
    bandwidth = next(figure for figure in content["figures"] if figure["name"] == "2004-bandwidth")
    assert {(mark["x"], mark["y"]) for mark in bandwidth["marks"]} == {(2**20, 470), (None, 677)}
    text = (folder / "index.html").read_text()
    assert text.count(get_plotlyjs()) == 1
    own = text.replace(get_plotlyjs(), "")
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)|https?://(?!www\.w3\.org/2000/svg)|@import|url\(""", own)
    assert "default-src 'none'" in own  # Plotly could load maps; the browser does not let it
    assert "showSendToCloud: false" in own


def test_a_page_holds_its_data_whatever_is_in_it():
    content = report_json(reproduce(plan(["gasnet.am_impl2_gain"])))
    content["rows"][0]["note"] = "</script><script>"
    text = page(content).replace(get_plotlyjs(), "")
    assert text.count("<script") == 3  # the note's own is escaped in the data
    assert "/*" not in re.sub(r"/\*[^*]*\*/", "", text[: text.index("<script>")])
    data = re.search(r'id="data">(.*?)</script>', text, flags=re.DOTALL)[1]
    assert json.loads(data)["rows"][0]["note"] == "</script><script>"


def a_mark(**changes):
    fields = {"label": "peak: 80 MB/s", "x": 32.0, "y": 80.0, "role": "fitted", "is_measured": True}
    fields |= {"tolerance_percent": 10.0, "bound": None, "source": "Table 3 of the paper"}
    return Mark(**{**fields, **changes})


def chart_of(*marks, axis="bandwidth_mb_s"):
    spec = FigureSpec("name", "title", "Fig. 1", axis, ())
    return chart(Figure(spec, (Series("curve", (16.0, 32.0), (50.0, 90.0)),), marks))["plot"]


def test_a_chart_shows_the_published_beside_ours_with_tolerance_and_source():
    curve, point = chart_of(a_mark())["data"]
    assert (curve["name"], curve["x"], curve["y"]) == ("curve", [16, 32], [50, 90])
    assert (point["x"], point["y"], point["error_y"]["array"]) == ([32], [80], [8])
    for expected in ("peak: 80 MB/s", "published, fitted, tolerance 10 %", "Table 3 of the paper"):
        assert expected in point["hovertemplate"]
    assert "derived from what is published, fitted" in chart_of(a_mark(is_measured=False))["data"][1]["hovertemplate"]


@pytest.mark.parametrize(("bound", "band"), [(None, (72, 88)), ("upper", (80, 88)), ("lower", (72, 80))])
def test_a_peak_is_a_line_with_its_tolerance_as_a_band(bound, band):
    plot = chart_of(a_mark(x=None, bound=bound))
    assert [(shape["y0"], shape["y1"]) for shape in plot["layout"]["shapes"]] == [(80, 80), band]
    (label,) = plot["layout"]["annotations"]
    assert "(fitted)" in label["text"]
    assert "Table 3 of the paper" in label["hovertext"]
    assert len(chart_of(a_mark(x=None, tolerance_percent=None))["layout"]["shapes"]) == 1


def test_times_have_a_logarithmic_axis_and_sizes_always_do():
    for axis, kind in (("time_us", "log"), ("bandwidth_mb_s", "linear")):
        layout = chart_of(a_mark(x=None), axis=axis)["layout"]
        assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", kind)
        assert layout["xaxis"]["ticktext"] == ["16", "32"]
        assert layout["annotations"][0]["y"] == pytest.approx(math.log10(80) if kind == "log" else 80)
    assert chart_of()["layout"]["annotations"][0]["text"] == "<i>no data published for this figure</i>"


def test_the_style_has_the_colours_of_the_charts():
    style = (Path(apenet.__file__).parent / "base" / "page" / "style.css").read_text()
    used = set(re.findall(r"var(\(--\w+)\)", json.dumps(chart_of(a_mark(), a_mark(x=None)))))
    assert len(used) > 3
    for name in used | {f"(--c{number}" for number in range(6)}:
        assert style.count(f"{name[1:]}:") == 3  # light, dark by the system, dark by choice


def test_figures_name_values_that_exist():
    known = {key for machine in machines() for key in machine.file.results}
    names = {machine.name for machine in machines()}
    assert len({spec.name for spec in FIGURES}) == len(FIGURES)
    for spec in FIGURES:
        if names.issuperset(spec.machines):
            assert known.issuperset(spec.keys), spec.name


def test_loads_are_those_of_every_link():
    (load,) = [load for load in LOADS if load.mapping == "linear" and load.test == "halo"]
    measured = load.measure()
    assert len(measured.links) == 128 * 6
    # A halo between neighbours crosses each link once, so all loads are equal.
    assert len({wire_bytes for _, _, wire_bytes in measured.links}) == 1


def outside_of_the_literature():
    """Key, size and value of every published number that is an outside check."""
    found = {
        (key, point.size_bytes): (point.value, result.unit)
        for one in machines()
        for key, result in one.file.results.items()
        if result.target == "outside"
        for point in result.points
    }
    return found | {(row.key, None): (row.published, row.unit) for row in unmeasured_rows() if row.target == "outside"}


def test_outside_values_are_those_of_the_publications():
    found = outside_of_the_literature()
    assert found["ib.osu_latency", 1] == (1.66, "us")
    assert found["ib.osu_latency", 4194304] == (1247.17, "us")
    assert found["ib.osu_bw", 8] == (18.14, "MB/s")
    assert found["ib.osu_bw", 4194304] == (3388.66, "MB/s")
    assert found["ib.rc_pingpong", 4096] == (4.6, "us")
    assert found["bgl.alltoall.16x8x8", None] == (64, "%")
    assert found["tpu.bisection", None] == (24, "TB/s")
    assert len([key for key, _ in found if key.startswith("ib.osu")]) == 21 + 20


def test_an_outside_row_is_judged_and_is_no_target_of_the_status():
    missed = row(machine="ape16", target="outside", simulated=111.0)
    assert missed.verdict == "miss"
    assert row(target="outside", simulated=109.0).verdict == "pass"
    reproduction = Reproduction((row(machine="ape16"), missed), (), (), ())
    assert reproduction.agrees
    assert reproduction.to_json()["outside"] == {"met": 0, "missed": 1, "unmeasured": 0}


def test_shipped_values_are_those_of_the_shipped_machines():
    """The row's command after a change of the machine file gives the new one."""
    digests = shipped_digests()
    assert set(digests) == {"bgl.alltoall.16x8x8", "bgl.alltoall.10x8x4"}
    assert set(digests.values()) == {parameters_digest("bluegene-l")}


def test_a_section_shows_the_outside_rows_with_their_commands(apenet):
    done = apenet("reproduce", "--only", "ib.rc_pingpong", "--only", "tpu.bisection", "--only", "bgl.alltoall.16x8x8")
    assert done.returncode == 0, done.stderr
    section = done.stdout[done.stdout.index("outside: ") :]
    command = "apenet bench pingpong --machine l5530-pair --sizes 4096 --path send"
    assert command in section
    assert "45.2 %  -29.4 %" in section  # 45.2 of 64
    assert "no machine of the package is this one" in section
    # The command is the measurement.
    rows = json.loads(apenet("reproduce", "--only", "ib.rc_pingpong", "--json").stdout)["rows"]
    measured = json.loads(apenet(*command.split()[1:], "--json").stdout)
    assert rows[0]["command"] == command
    assert rows[0]["simulated"] == measured["points"][0]["time_us"]
