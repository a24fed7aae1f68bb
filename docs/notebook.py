"""Makes each notebook of examples/ from the script of its name, whose cells begin with a mark.

    .venv/bin/python docs/notebook.py

A notebook has no output, so its bytes depend on the script alone.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = "# %%"


def cells_of(script: str) -> list[tuple[str, str]]:
    """The kind (`markdown` or `code`) and the text of each cell."""
    cells = []
    for part in script.split(MARK)[1:]:
        heading, _, body = part.partition("\n")
        is_text = heading.strip() == "[markdown]"
        lines = [line.removeprefix("#").removeprefix(" ") if is_text else line for line in body.strip().split("\n")]
        cells.append(("markdown" if is_text else "code", "\n".join(lines)))
    return cells


def notebook_of(script: str) -> str:
    """The notebook as a file, in format 4.5."""
    cells = []
    for number, (kind, text) in enumerate(cells_of(script)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        cells.append(cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def main() -> int:
    """Writes each notebook anew."""
    for notebook in sorted(ROOT.glob("examples/*/*.ipynb")):
        notebook.write_text(notebook_of(notebook.with_suffix(".py").read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
