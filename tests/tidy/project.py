"""The project's own files, as the tidy tests read them."""

import functools
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def files(*patterns: str) -> tuple[Path, ...]:
    """Tracked files, and new files that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for path in (ROOT / line for line in sorted(set(listed.splitlines()))) if path.is_file())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def cxx_files(folder: str) -> tuple[Path, ...]:
    return tuple(path for path in files(folder) if path.suffix in {".cpp", ".hpp", ".c", ".h"})


def code(path: Path) -> str:
    """C or C++ without comments and string contents; the lines stay where they are."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return '""' if found[0] in "\"'" else "\n" * found.count("\n")

    # A quote inside a number (1'000) is no character.
    plain = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text(path))
    return re.sub(pattern, blank, plain, flags=re.DOTALL)


BINARY = {".png", ".jpg", ".gif", ".pdf"}
ALL = files()
TEXTS = [path for path in ALL if path.suffix not in BINARY]
