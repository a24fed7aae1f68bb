"""apenet calibrate over the provider tcp: real messages between two processes, whose speed is not tested."""

import json
import socket
import threading

import numpy as np
import pytest

import apenet as package
from apenet import calibrate
from apenet.fit import MeasurementError, fit_loggp, parse, write_machine
from apenet.fit.calibrate import Calibration, Sweep

LIMITS_S = 250


def sweep(test, sizes, samples):
    samples = np.asarray(samples, dtype=np.float64)
    least, low, median, high, largest = np.percentile(samples, [0, 25, 50, 75, 100], axis=1)
    return Sweep(test, np.array(sizes), median, low, high, least, largest, samples.shape[1])


SMALL = ["--provider", "tcp", "--sizes", "8,512,4K,64K", "--samples", "9", "--window", "8"]


def test_a_real_fabric_is_measured(apenet):
    done = apenet("calibrate", *SMALL, "--json", timeout_s=LIMITS_S)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    pingpong, stream = content["sweeps"]
    assert (pingpong["test"], stream["test"]) == ("pingpong", "unidirectional")
    for one in (pingpong, stream):
        assert [point["size_bytes"] for point in one["points"]] == [8, 512, 4096, 65536]
        for point in one["points"]:
            assert 0 < point["least_us"] <= point["quartile_low_us"] <= point["time_us"]
            assert point["time_us"] <= point["quartile_high_us"] <= point["largest_us"]
    overheads = pingpong["overheads"]
    assert overheads["send_us"] > 0
    assert overheads["receive_us"] > 0
    # A busy host disturbs some sizes; they are marked.
    quiet = [[point["time_us"] for point in one["points"] if not point["disturbed"]] for one in (pingpong, stream)]
    assert content["latency_us"] == quiet[0][0]
    assert content["message_rate_per_second"] == pytest.approx(1e6 / quiet[1][0])
    assert content["bandwidth_mib_s"] == pytest.approx(65536 / 2**20 / stream["points"][-1]["time_us"] * 1e6)
    for one in (pingpong, stream):
        again = parse("calibration.json", done.stdout.encode(), section=one["test"])
        assert again.times_us.tolist() == [point["time_us"] for point in one["points"] if not point["disturbed"]]


def test_a_real_fabric_becomes_a_machine(apenet, tmp_path):
    mine = tmp_path / "mine.toml"
    done = apenet("calibrate", *SMALL, "--json", "--to-machine", mine, timeout_s=LIMITS_S)
    if done.returncode == 2:
        assert "at least 3" in done.stderr  # a host so busy that no sizes were left
        return
    assert done.returncode == 0, done.stderr
    agreement = json.loads(done.stdout)["machine"]["agreement"][0]
    assert agreement["test"] == "pingpong"
    assert abs(agreement["worst_percent"]) <= 5
    assert package.machine(mine).file.card.kind == "fabric"


def test_two_sides_as_on_two_hosts(apenet, start_apenet):
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = str(probe.getsockname()[1])
    server = start_apenet("calibrate", "--provider", "tcp", "--server", "--port", port)
    finished = []
    waiting = threading.Thread(target=lambda: finished.append(server.finish(LIMITS_S)))
    try:
        assert f"port {port}" in server.process.stderr.readline()
        waiting.start()
        arguments = ["--provider", "tcp", "--client", "127.0.0.1", "--port", port, "--sizes", "8,64", "--samples", "3"]
        done = apenet("calibrate", *arguments, timeout_s=LIMITS_S)
    finally:
        waiting.join()
    assert done.returncode == 0, done.stderr
    assert "# tcp, this host and 127.0.0.1" in done.stdout
    assert "# Size (B)" in done.stdout
    assert finished[0].returncode == 0, finished[0].stderr


def test_an_unknown_provider_is_refused_with_those_there_are(apenet):
    done = apenet("calibrate", "--provider", "carrier-pigeon")
    assert done.returncode == 2
    assert '--provider = "carrier-pigeon": expected one that ' in done.stderr
    assert "tcp" in done.stderr
    assert any(name.partition(";")[0] == "tcp" for name in calibrate.providers())


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (["--samples", "0"], 2, "samples = 0: expected a whole number from 1"),
        (["--window", "1000"], 2, "window = 1000: expected a whole number from 1 to 256"),
        (["--sizes", "8:2G"], 2, "up to 1G"),
        (["--libfabric", "absent.so"], 2, "--libfabric"),
        (["--to-machine", "mine"], 2, "--to-machine"),
        (["--server", "--client", "x"], 2, "--client"),
        (["--domain", "absent0"], 2, '--domain = "absent0": expected one of tcp here: '),
        (["--client", "127.0.0.1", "--port", "1", "--sizes", "8", "--samples", "1"], 1, "nobody listens on 127.0.0.1"),
    ],
)
def test_impossible_measurements_are_reported(apenet, arguments, status, named):
    done = apenet("calibrate", "--provider", "tcp", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert named in done.stderr


def test_medians_and_spread_are_those_of_the_samples():
    samples = {"pingpong": [[1.0, 9.0, 2.0, 3.0, 1000.0]], "unidirectional": [[1.0, 1.0, 1.1, 1.0, 1.0]]}
    results = [{"test": test, "size_bytes": 8, "samples_us": rows[0]} for test, rows in samples.items()]
    results += [{"test": "send", "samples_us": [0.5, 0.25, 0.75]}, {"test": "receive", "samples_us": []}]
    made = calibrate._calibration("tcp", "libfabric.so.1", "two processes of this host", 64, results, [])
    assert made.pingpong.median_us.tolist() == [3.0]
    assert made.pingpong.spread.tolist() == [pytest.approx((9 - 2) / 3)]
    assert made.send_us == 0.5
    assert made.receive_us is None
    wide, receive, no_model = made.warnings
    assert wide.startswith("pingpong: at 1 of 1 sizes the middle half of the samples is wider than 25 %")
    assert "cost of a receive" in receive
    assert "at least 3" in no_model
    assert made.to_json()["loggp"] is None


def test_disturbed_sizes_are_shown_and_marked_and_the_others_fitted(tmp_path):
    sizes = [8, 16, 32, 64, 128]
    samples = {"pingpong": [10, 400, 11, 12, 13], "unidirectional": [90, 2, 2, 3, 4]}
    results = [
        {"test": test, "size_bytes": size, "samples_us": [time] * 3}
        for test, times in samples.items()
        for size, time in zip(sizes, times, strict=True)
    ]
    results += [{"test": "send", "samples_us": [0.5]}, {"test": "receive", "samples_us": [0.5]}]
    made = calibrate._calibration("tcp", "l", "b", 64, results, [])
    assert made.pingpong.disturbed.tolist() == [False, True, False, False, False]
    assert made.stream.disturbed.tolist() == [True, False, False, False, False]
    assert made.warnings[0].startswith("pingpong: left out of the fit: 16 bytes, more than 4 times as slow")
    assert made.warnings[1].startswith("unidirectional: left out of the fit: 8 bytes")
    assert made.fitted is not None
    pingpong, stream = made.measurements()
    assert pingpong.sizes_bytes.tolist() == [8, 32, 64, 128]
    assert stream.sizes_bytes.tolist() == [16, 32, 64, 128]
    assert pingpong.notes[0].startswith("1 of 5 rows is left out, because the file marks it as invalid")
    assert made.to_json()["latency_us"] == 10
    assert made.to_json()["message_rate_per_second"] == pytest.approx(1e6 / 2)
    written = write_machine([pingpong, stream], tmp_path / "mine.toml")
    assert abs(written.agreements[0].worst_percent) <= 5


def test_a_calibration_with_too_few_sizes_left_makes_no_machine():
    sizes = [8, 16, 32, 64]
    disturbed = sweep("pingpong", sizes, [[100], [100], [1], [1]])
    stream = sweep("unidirectional", sizes, [[1], [1], [1], [1]])
    made = Calibration("tcp", "l", "b", 64, disturbed, stream, 0.1, 0.1, fitted=None, warnings=())
    with pytest.raises(MeasurementError, match="at least 3"):
        fit_loggp(made.measurements())


def test_loggp_takes_the_measured_overheads():
    sizes = [8, 64, 512, 4096]
    pingpong = sweep("pingpong", sizes, [[10 + size / 1000] for size in sizes])
    stream = sweep("unidirectional", sizes, [[2 + size / 1000] for size in sizes])
    made = Calibration("tcp", "l", "b", 64, pingpong, stream, 1.0, 2.0, fitted=None, warnings=())
    fitted = fit_loggp(made.measurements())
    assert fitted.latency_us.value == pytest.approx(10 - 3, abs=0.01)
    assert fitted.gap_us.value == pytest.approx(2, abs=0.01)
    assert fitted.gap_per_byte_us.value == pytest.approx(0.001, rel=1e-6)
