"""A run that charges no computation says how much there was. The program's own CPU clock makes the amounts exact."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import apenet as package
from apenet.run.program_result import uncharged_note

SOURCE = Path(__file__).with_name("uncharged.c")
BIN = Path(sys.executable).parent
INCLUDE = Path(__file__).parents[3] / "src" / "api" / "compute"
NOTE = "apenet: note: a rank computes for about "


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("uncharged") / "uncharged"
    command = [BIN / "mpicc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", f"-I{INCLUDE}"]
    subprocess.run([*command, "-o", made, SOURCE], check=True)
    return made


def test_a_long_region_is_named_with_its_time_and_what_to_do(apenet, program, tmp_path):
    done = apenet("run", "-n", "2", "-m", "ideal", "--out", tmp_path / "run", "--", program, "long")
    assert f"{NOTE}2 s that cost no virtual time; --compute measured charges them\n" in done.stderr
    assert json.loads((tmp_path / "run" / "host.json").read_text())["uncharged_cpu_s"] == 2.0
    # Nothing of it is in what must repeat exactly.
    assert "uncharged" not in (tmp_path / "run" / "run.json").read_text()


def test_what_it_advises_charges_them(program):
    none, measured = (
        package.run([program, "long"], n=2, machine="ideal", compute=compute, capture=True)
        for compute in ("none", "measured")
    )
    assert none.virtual_time_us < 1000
    assert measured.virtual_time_us == pytest.approx(2e6, rel=0.001)
    assert (none.uncharged_cpu_s, measured.uncharged_cpu_s) == (2.0, 0)


def test_many_short_regions_are_estimated(program):
    """8 ms in all, of which 128 regions are measured, then one in 2, 4, 8, ...: three standard deviations are 9 %."""
    result = package.run([program, "short"], n=1, machine="ideal", capture=True)
    assert result.uncharged_cpu_s == pytest.approx(8e-3, rel=0.15)


def test_a_program_that_declares_its_computation_has_charged_it(program):
    result = package.run([program, "declared"], n=2, machine="ideal", capture=True)
    assert result.uncharged_cpu_s == 0
    assert result.virtual_time_us >= 1000


@pytest.mark.parametrize(("how", "options"), [("none", []), ("long", ["--compute", "measured"]), ("declared", [])])
def test_nothing_is_said_where_nothing_is_missing(apenet, program, how, options):
    done = apenet("run", "-n", "2", "-m", "ideal", *options, "--", program, how)
    assert done.returncode == 0, done.stderr
    assert NOTE not in done.stderr


@pytest.mark.parametrize(("computed_us", "is_said"), [(199, False), (201, True)])
def test_what_the_start_of_a_program_takes_is_not_said(apenet, program, computed_us, is_said):
    """Beside microseconds of virtual time, so that a tenth of it is less."""
    done = apenet("run", "-n", "2", "-m", "ideal", "--", program, "once", str(computed_us))
    assert (f"{NOTE}200 us that cost no virtual time" in done.stderr) == is_said
    assert (NOTE in done.stderr) == is_said


@pytest.mark.parametrize(("uncharged_s", "is_said"), [(0.99e-3, False), (1.01e-3, True), (3.0, True)])
def test_a_tenth_of_the_virtual_time_is_said(program, uncharged_s, is_said):
    result = package.run([program, "none"], n=2, machine="ideal", capture=True)
    changed = replace(result, virtual_time_us=10_000.0, uncharged_cpu_s=uncharged_s)
    assert bool(uncharged_note(changed)) == is_said
    assert uncharged_note(replace(changed, exit_status=1)) == ""


def test_a_trapped_cycle_counter_is_not_read(program):
    result = package.run([program, "none"], n=2, machine="ideal", trap_tsc=True, capture=True)
    assert result.uncharged_cpu_s == 0
