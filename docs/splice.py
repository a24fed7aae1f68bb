"""Keeps the documentation's transcripts current: runs their commands and inserts the output.

A ```console block after the line `<!-- spliced -->` holds commands (`$ ...`) and their output. A table after `<!--
results: KEY ... -->` compares published and simulated results, measured by `apenet reproduce`. A table after
`<!-- keys: SECTION -->` holds the keys of a section of machine files, as `apenet machine keys` prints them. A table
after `<!-- modules: src -->` or `<!-- modules: python -->` holds the modules of src/modules.json.

    .venv/bin/python docs/splice.py            rewrites the documents
    .venv/bin/python docs/splice.py --check    lists documents that are not current; the status is then 1

The commands of one document share a temporary folder that links to the project's files. Virtual times repeat exactly;
the host's times are replaced.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DOCUMENTS = ("README.md", "src/*.md", "docs/**/*.md", "examples/*/*.md", "paper/*.md")
BLOCK = re.compile(r"(<!-- spliced -->\n```console\n)(.*?)(```\n)", re.DOTALL)
TABLE = re.compile(r"(<!-- results: ([\w.\s-]+?) -->\n)((?:\|.*\n)*)")
KEYS = re.compile(r"(<!-- keys: ([\w. -]+?) -->\n)((?:\|.*\n)*)")
MODULES = re.compile(r"(<!-- modules: (\w+) -->\n)((?:\|.*\n)*)")
# Output that depends on the host, and its replacement.
OF_THE_HOST = (
    (re.compile(r"[\d.]+ s of wall time"), "... s of wall time"),
    (re.compile(r"apenet: note: a rank computes for about .*\n"), ""),
)
TIME_LIMIT_S = 300


class Workplace:
    """A temporary folder with links to the project's files, in which commands may write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for entry in ("bench", "docs", "examples", "machines", "src", "tests"):
            (folder / entry).symlink_to(ROOT / entry)
        (folder / ".venv").symlink_to(BIN.parent)
        (folder / "demo").mkdir()
        # As after `make demo`.
        self.run("mpicc -O2 -o demo/pingpong examples/01_pingpong/pingpong.c")

    def run(self, command: str) -> str:
        """The output of the command, without values that depend on the host."""
        environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(BIN), os.environ.get("PATH", os.defpath))),
            # Tables have the same columns on every terminal.
            "COLUMNS": "120",
            "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        # It changes how often Python reads the clock, and with it the time of a run.
        environment.pop("PYTHONUNBUFFERED", None)
        text = self.output(command, environment).replace(str(self.folder), ".").replace(str(ROOT), ".")
        for pattern, shown in OF_THE_HOST:
            text = pattern.sub(shown, text)
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def output(self, command: str, environment: dict[str, str]) -> str:
        """What the command writes to both of its outputs."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIME_LIMIT_S,
        )
        return done.stdout

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 (what a command prints)
        """The object that `apenet ARGUMENTS... --json` prints."""
        command = [str(BIN / "apenet"), *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
        return json.loads(done.stdout)


def spliced_block(block: str, workplace: Workplace) -> str:
    """The commands of a block with their current output."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)\n", block, re.MULTILINE)
    return "".join(f"$ {command}\n{workplace.run(command)}" for command in commands)


def results_table(keys: list[str], workplace: Workplace) -> str:
    """A table of published and simulated values for these keys, or for all results of a machine."""
    rows = workplace.json("reproduce", *(word for key in keys for word in ("--only", key)))["rows"]
    chosen = [row for key in keys for row in rows if key in (row["key"], row["machine"])]
    lines = ["| machine | quantity | published | simulated | error | |", "|---|---|--:|--:|--:|---|"]
    for row in chosen:
        bound = {"upper": "< ", "lower": "> ", None: ""}[row["bound"]]
        error = "" if row["error_pct"] is None else f"{row['error_pct']:+.1f} %"
        lines.append(
            f"| {row['machine']} | {quantity_of(row)} | {bound}{row['published']:g} {row['unit']} "
            f"| {simulated_of(row)} | {error} | {row['class'] or ''} |"
        )
    return "\n".join(lines) + "\n"


def keys_table(section: str, workplace: Workplace) -> str:
    """The keys of a section of machine files."""
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    for row in workplace.json("machine", "keys", section)[section]:
        lines.append(f"| `{row['key']}` | {row['value']} | {row['default']} | {row['meaning']} |")
    return "\n".join(lines) + "\n"


def modules_table(part: str) -> str:
    """The modules of src/ or of the Python package: their job, what they import, where to begin."""
    entries = json.loads((ROOT / "src" / "modules.json").read_text(encoding="utf-8"))[part]
    begins = part == "src"
    lines = [f"| module | its one job | imports |{' begin with |' * begins}", f"|---|---|---|{'---|' * begins}"]
    for entry in entries:
        imports = entry["includes"] if begins else entry["imports"]
        begin = f" {quoted(entry['begin'])} |" if begins else ""
        lines.append(f"| `{entry['module']}` | {entry['job']} | {quoted(imports) or 'nothing'} |{begin}")
    return "\n".join(lines) + "\n"


def quoted(names: list[str]) -> str:
    """The names as Markdown code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def quantity_of(row: dict[str, Any]) -> str:
    """The quantity of a row: its test, or the key if that is more specific."""
    key = row["key"].partition(".")[2]
    name = key if key.startswith(f"{row['test']}.") else f"{row['test']} ({row['layer']})"
    return f"{name}, {row['size_bytes']} B" if row["size_bytes"] else name


def simulated_of(row: dict[str, Any]) -> str:
    """The simulated value with three digits and its unit."""
    return "n/a" if row["simulated"] is None else f"{float(format(row['simulated'], '.3g')):g} {row['unit']}"


def spliced(document: Path, workplace_in: Callable[[Path], Workplace] = Workplace) -> str:
    """The document's text with current transcripts."""
    text = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        workplace = workplace_in(Path(folder))
        text = BLOCK.sub(lambda match: match[1] + spliced_block(match[2], workplace) + match[3], text)
        text = KEYS.sub(lambda match: match[1] + keys_table(match[2], workplace), text)
        text = MODULES.sub(lambda match: match[1] + modules_table(match[2]), text)
        return TABLE.sub(lambda match: match[1] + results_table(match[2].split(), workplace), text)


def documents() -> list[Path]:
    """Every document with a transcript."""
    found = [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]
    return [path for path in found if has_splices(path.read_text(encoding="utf-8"))]


def has_splices(text: str) -> bool:
    """Whether a document contains commands to run."""
    return any(pattern.search(text) is not None for pattern in (BLOCK, KEYS, MODULES, TABLE))


def main() -> int:
    """Rewrites or checks the documents."""
    parser = argparse.ArgumentParser(description="Keeps the documentation's transcripts current")
    parser.add_argument("--check", action="store_true", help="change nothing, status 1 if something is not current")
    parser.add_argument("documents", nargs="*", type=Path, help="default: every document with a transcript")
    options = parser.parse_args()
    stale = []
    for document in [path.resolve() for path in options.documents] or documents():
        text = spliced(document)
        if text == document.read_text(encoding="utf-8"):
            continue
        stale.append(document)
        if not options.check:
            document.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'not current' if options.check else 'rewritten'}: {document.relative_to(ROOT)}\n")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
