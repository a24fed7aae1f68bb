"""The pages of measurements: what bench, traffic and sweep print, as curves and a table."""

import json

import pytest

import apenet
from apenet.base.errors import InputError
from apenet.explain.measurement import measurement, read_measurement
from apenet.explain.report import page

PINGPONG = {
    "machine": "ape16",
    "test": "pingpong",
    "layer": "card",
    "seed": 1,
    "version": "0",
    "points": [
        {"size_bytes": 16, "time_us": 2.5, "bandwidth_mib_s": 6.1, "channels": 1},
        {"size_bytes": 1024, "time_us": 5.0, "bandwidth_mib_s": 195.3, "channels": 1},
        {"size_bytes": 4096, "time_us": 20.0, "bandwidth_mib_s": 195.2, "channels": 1},
    ],
}
TRAFFIC = {
    "machine": "ape16",
    "pattern": "uniform",
    "version": "0",
    "points": [
        {"offered": 0.1, "accepted": 0.1, "packet_latency_cycles": 20.0, "saturated": False},
        {"offered": 0.5, "accepted": 0.42, "packet_latency_cycles": float("nan"), "saturated": True},
    ],
    "warnings": ["<b>"],
}
LQCD = {
    "test": "lqcd",
    "lattice": [8, 8, 8, 16],
    "scaling": "strong",
    "layer": "apelib",
    "version": "0",
    "machines": [
        {
            "machine": name,
            "points": [
                {"ranks": 1, "grid": [1, 1], "iteration_us": 8.0, "dslash_us": 4.0, "efficiency": 1.0},
                {
                    "ranks": 4,
                    "grid": [1, 4],
                    "iteration_us": 8 / efficiency / 4,
                    "dslash_us": 2.0,
                    "efficiency": efficiency,
                },
            ],
            **({"warnings": ["<b>"]} if name == "two" else {}),
        }
        for name, efficiency in (("one", 0.5), ("two", 0.25))
    ],
}
# The clock changes the time by up to 3 (at 8 ranks), the ranks by up to 2 (at 100 MHz).
SWEEP = [
    {"machine": "m", "clock": clock, "ranks": ranks, "time_us": time}
    for clock, ranks, time in ((50, 4, 4.0), (100, 4, 2.0), (50, 8, 3.0), (100, 8, 1.0))
]


def test_a_benchmark_says_its_least_time_and_most_bandwidth():
    found = measurement(PINGPONG)
    assert found["verdict"]["text"] == "2.5 us for 16 B; at most 195.3 MiB/s, with 1024 B."
    assert found["over"] == "size_bytes"
    assert found["figures"] == ["time_us", "bandwidth_mib_s"]
    assert [curve["rows"] for curve in found["curves"]] == [[0, 1, 2]]
    assert "--goal FILE" in found["missing"]


def test_a_scaling_has_the_points_of_all_machines():
    found = measurement(LQCD)
    assert found["verdict"]["text"] == "one: efficiency 0.500 with 4 ranks; two: efficiency 0.250 with 4 ranks."
    assert found["over"] == "ranks"
    assert found["figures"] == ["iteration_us", "dslash_us", "efficiency"]
    assert [(curve["name"], curve["rows"]) for curve in found["curves"]] == [
        ("machine one", [0, 1]),
        ("machine two", [2, 3]),
    ]
    assert [row[found["columns"].index("grid")] for row in found["rows"]] == ["1x1", "1x4"] * 2
    assert found["warnings"] == ["two: <b>"]


def test_bench_lqcd_writes_a_page(apenet, tmp_path):
    words = ("bench", "lqcd", "--ranks", "1:2", "--lattice", "4x4x4x8", "--json", "--report", "page.html")
    done = apenet(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "result.json").write_text(done.stdout)
    assert apenet("explain", "result.json", cwd=tmp_path).stdout.startswith("ape16: efficiency ")
    assert (tmp_path / "result.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_traffic_says_where_it_saturates_and_has_no_number_that_is_none():
    found = measurement(TRAFFIC)
    assert found["verdict"]["text"] == "The network saturates at a load of 0.5 or below; it accepts at most 0.42."
    assert found["rows"][1][found["columns"].index("packet_latency_cycles")] is None
    assert "<b>" not in page(found)


def test_a_sweep_says_what_changes_its_result_most():
    found = measurement(SWEEP, command="apenet sweep: run", axes=("clock", "ranks"))
    text = "clock changes time_us most, by up to a factor of 3 with everything else equal."
    assert found["verdict"]["text"] == text
    assert found["over"] == "ranks"
    assert [(curve["name"], curve["rows"]) for curve in found["curves"]] == [
        ("clock 50", [0, 2]),
        ("clock 100", [1, 3]),
    ]


def test_a_small_effect_of_a_sweep_is_said_in_percent():
    rows = [{"clock": 100, "time_us": 254.291}, {"clock": 133, "time_us": 254.413}]
    found = measurement({"points": rows}, command="apenet sweep: run", axes=("clock",))
    text = "clock changes time_us most, by up to 0.048 % with everything else equal."
    assert found["verdict"]["text"] == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"points": []}',
        '{"points": [1]}',
        "num_ranks 2",
        '{"points": 3}',
        '{"machines": [{"points": 3}]}',
        "\0\1",
    ],
)
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(InputError, match="--json"):
        read_measurement(tmp_path / "other.json")


def test_bench_writes_a_page_that_explain_makes_again(apenet, tmp_path):
    done = apenet("bench", "pingpong", "--sizes", "8:64", "--json", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("page.html\n")
    (tmp_path / "result.json").write_text(done.stdout)
    again = apenet("explain", "result.json", cwd=tmp_path)
    assert again.stdout.splitlines()[1] == "result.html"
    assert (tmp_path / "result.html").read_bytes() == (tmp_path / "page.html").read_bytes()
    assert apenet("explain", "result.json", "--recording", "x", cwd=tmp_path).returncode == 2


def test_traffic_and_a_sweep_write_pages(apenet, tmp_path):
    assert apenet("traffic", "--load", "0.1,0.2", "--report", cwd=tmp_path).returncode == 0
    assert b'"offered"' in (tmp_path / "report.html").read_bytes()
    sweep = ("sweep", "--grid", "network.link.clock_mhz=50,100", "--workers", "1", "--report", "s.html")
    done = apenet(*sweep, "--", "bench", "pingpong", "--sizes", "1024:2048", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = apenet("explain", "study.sqlite", "--json", cwd=tmp_path)
    text = json.loads(again.stdout)["verdict"]["text"]
    assert text.startswith("network.link.clock_mhz changes time_us most, by up to a factor of ")
    assert (tmp_path / "s.html").read_text(encoding="utf-8") == page(json.loads(again.stdout))


def test_the_file_is_checked_before_the_measurement(apenet, tmp_path):
    (tmp_path / "mine.html").write_text("my own")
    done = apenet("bench", "pingpong", "--report", "mine.html", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert (tmp_path / "mine.html").read_text() == "my own"


def test_a_run_and_a_result_are_not_compared(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps(PINGPONG))
    with pytest.raises(InputError, match="a run folder"):
        apenet.explain(tmp_path / "result.json")
