"""The examples' results. test_documents.py compares the transcripts in their READMEs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from apenet.host.compiling import compile_program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_pingpong_prints_a_latency_for_every_size(apenet, build):
    program = build(EXAMPLES / "01_pingpong" / "pingpong.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    assert [int(size) for size, *_ in rows] == [16**i for i in range(1, 6)]
    latencies = [float(latency) for _, latency, _ in rows]
    assert latencies == sorted(latencies)


@pytest.mark.parametrize(("ranks", "machine", "grid"), [(1, "ape16", "1x1x1"), (16, "ape16", "4x2x2")])
def test_jacobi_agrees_with_one_process(apenet, ranks, machine, grid):
    script = EXAMPLES / "02_jacobi" / "jacobi.py"
    done = apenet("run", "-n", str(ranks), "--machine", machine, "--", "python", script, "--points", "16")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"16^3 points on {grid} processes" in done.stdout
    assert float(re.search(r"difference to one process +(\S+)", done.stdout)[1]) <= 1e-12


def test_jacobi_refuses_a_grid_that_does_not_fit(apenet):
    script = EXAMPLES / "02_jacobi" / "jacobi.py"
    done = apenet("run", "-n", "4", "--machine", "ape16", "--", "python", script, "--dims", "3x2x2")
    assert done.returncode != 0
    assert "--dims = 3x2x2: expected three numbers whose product is 4" in done.stderr


def test_changed_numbers_change_the_expected_times():
    script = EXAMPLES / "03_change_a_number" / "change_a_number.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    before, faster_link, slower_reads = ([float(row[i]) for row in rows] for i in (1, 5, 9))
    assert faster_link[0] == pytest.approx(before[0], abs=0.1)
    assert faster_link[-1] < 0.8 * before[-1]
    assert [late - early for late, early in zip(slower_reads, before, strict=True)] == pytest.approx([1] * 5, abs=0.02)


def test_only_small_messages_hide_behind_work(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(EXAMPLES / "04_overlap" / "overlap.c"))
    assert done.returncode == 0, done.stderr
    hidden = [int(line.split()[-1].rstrip("%")) for line in done.stdout.splitlines()[1:]]
    assert hidden[0] > 30
    assert max(hidden[1:]) < 5


def test_device_pointers_save_the_programs_copies(apenet, build):
    program = build(EXAMPLES / "07_gpu_memory" / "exchange.c")
    done = apenet("run", "-n", "4", "--machine", "quong", "--", program)
    assert done.returncode == 0, done.stderr
    rows = [[float(word) for word in line.split()] for line in done.stdout.splitlines()[1:]]
    assert all(direct < 0.8 * staged for _, direct, staged in rows)
    assert apenet("run", "-n", "2", "--machine", "ape16", "--", program).returncode != 0


def test_a_credit_that_comes_late_delays_the_answer(apenet, tmp_path):
    program = tmp_path / "pingpong"
    compile_program(["-O2", EXAMPLES / "15_tnw_credits" / "pingpong.c", "-o", program], ["tnw"])
    done = apenet("run", "-n", "2", "--machine", "qpace", "--", program)
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()[1:]
    assert all(float(late) > 1.2 * float(hidden) for _, _, hidden, late in map(str.split, rows))
    same, other = map(float, re.findall(r"([\d.]+) us", last))
    assert same > other + 20
    forgotten = apenet("run", "-n", "2", "--machine", "qpace", "--", program, "forgotten")
    assert forgotten.returncode == 1
    assert "waits in tnw_wait" in forgotten.stderr


def test_a_histogram_counts_each_number_once(apenet, tmp_path):
    program = tmp_path / "histogram"
    compile_program(["-O2", EXAMPLES / "16_gasnet_histogram" / "histogram.c", "-o", program], ["gasnet-seq"])
    done = apenet("run", "-n", "4", "--machine", "extoll-64", "--", program)
    assert done.returncode == 0, done.stderr
    counts = [int(count) for line in done.stdout.splitlines() for count in line.split(":")[1].split()]
    assert len(counts) == 16
    assert sum(counts) == 4000


def test_one_program_gives_the_same_answer_on_many_machines(build):
    program = build(EXAMPLES / "06_many_machines" / "cg.c")
    script = EXAMPLES / "06_many_machines" / "many_machines.py"
    done = subprocess.run([sys.executable, script, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert len({row[-1] for row in rows}) == 1
    times = {row[0]: float(row[1]) for row in rows}
    assert len(times) == 7
    assert max(times, key=times.__getitem__) == "qpace"
    assert min(times, key=times.__getitem__) == "torus-slice"
