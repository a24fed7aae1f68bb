"""What `help` and a notebook show: the real parameters with plain types, and a machine in a few lines."""

import inspect
import pydoc

import pytest

import apenet as package
from apenet.bench import TESTS
from apenet.bench.request import options_of


def test_the_help_of_a_benchmark_has_its_signature():
    shown = pydoc.plain(pydoc.render_doc(package.bench.pingpong)).replace("\n    ", " ")
    for text in ("machine: ", "sizes: str | int", "layer: str | None = None", "mpi: ", "BenchResult"):
        assert text in shown, shown
    for text in ("Annotated", "Option(", " at 0x"):
        assert text not in shown


@pytest.mark.parametrize("test", [*TESTS, "lqcd"])
def test_each_parameter_is_one_of_the_request(test):
    signature = inspect.signature(getattr(package.bench, test))
    request = package.bench.CATALOGUE.requests[test]
    assert {one.name for one in options_of(request)} <= set(signature.parameters)
    assert signature.return_annotation is not inspect.Signature.empty
    first = next(iter(signature.parameters.values()))
    assert first.name in ("machine", "machines")


def test_the_signature_can_be_called():
    bound = inspect.signature(package.bench.halo).bind("ideal", sizes=[64], n=8)
    assert package.bench.halo(*bound.args, **bound.kwargs).to_json()["nodes"] == 8


@pytest.mark.parametrize("name", package.machine_names())
def test_a_machine_is_shown_in_ten_lines(name):
    machine = package.machine(name)
    lines = repr(machine).splitlines()
    assert lines[0] == f"Machine {name}"
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 100
    assert machine.shape in repr(machine)


def test_many_settings_and_faults_are_counted():
    settings = [f"bus.clock_mhz={60 + number}" for number in range(40)]
    machine = package.machine("ape16", settings, ["link (0,0,0)+x down @10us"])
    lines = repr(machine).splitlines()
    assert len(lines) <= 10
    assert "  settings: bus.clock_mhz=60; bus.clock_mhz=61; and 38 more" in lines
    assert "  faults: link (0,0,0)+x down @10us" in lines


def test_a_notebook_shows_a_table_and_no_script_of_the_file(tmp_path):
    file = tmp_path / "evil.toml"
    script = "<script>alert(1)</script>"
    file.write_text(f'[machine]\nname = "evil"\nbase = "ape16"\ntitle = "{script}"\nsummary = "{script}"\n')
    shown = package.machine(file)._repr_html_()
    assert shown.count("<tr>") >= 4
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
