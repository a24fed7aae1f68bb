"""The notebook of example 09: it is what its script says, and its cells run."""

import ast
import importlib.util
import json
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from apenet import Machine

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "09_notebook" / "latency.py"
NOTEBOOK = SCRIPT.with_suffix(".ipynb")


def load_generator():
    specification = importlib.util.spec_from_file_location("notebook", ROOT / "docs" / "notebook.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def values_of(cells):
    """The value of the last expression of each cell, in one namespace, as a notebook shows it."""
    names, values = {}, []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, "cell", "exec"), names)
        values.append(eval(compile(last, "cell", "eval"), names))
    return names, values


def test_the_notebook_is_made_from_its_script():
    made = load_generator().notebook_of(SCRIPT.read_text(encoding="utf-8"))
    assert NOTEBOOK.read_text(encoding="utf-8") == made, "run: .venv/bin/python docs/notebook.py"


def test_its_cells_run(monkeypatch):
    monkeypatch.setattr(mpl, "rcParams", mpl.rcParams.copy())
    mpl.use("Agg")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    names, (shown, drawn, _, times_us) = values_of(cells)
    assert isinstance(shown, Machine)
    assert isinstance(drawn, Figure)
    assert [line.get_label() for line in names["axes"].get_lines()] == ["ape16", "extoll-64", "pax"]
    # The bus limits: docs/howto/classroom.md has the first time, of the machine as it is.
    assert times_us == [pytest.approx(125.474, abs=0.001), pytest.approx(94.899, abs=0.001)]


def test_ten_lines_lead_to_the_plot():
    lines = SCRIPT.read_text(encoding="utf-8").partition("The same with other numbers")[0]
    code = [line for line in lines.splitlines() if line and not line.startswith("#")]
    assert len(code) <= 10
