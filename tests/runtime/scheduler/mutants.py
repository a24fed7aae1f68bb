#!/usr/bin/env python3
"""Changes each transition of a rank's states, one at a time, and checks that a test notices.

    tests/runtime/scheduler/mutants.py build/release [FIRST LAST]

BUILD is a configured folder with APENET_TESTS=ON. The script removes each transition of
src/runtime/scheduler/rank_state.cpp, and lets it lead to another state. Each time it compiles that file and links
scheduler_test. It ends with status 1 if a mutant passes all tests but those that compare the table with itself.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src/runtime/scheduler/rank_state.cpp"
TRANSITION = re.compile(r"    RankTransition\{(\w+), (\w+), (\w+)\},\n")

STAND_INS = {
    "running": "queued",
    "queued": "running",
    "awaiting_event": "awaiting_time",
    "awaiting_time": "awaiting_event",
    "polling": "awaiting_event",
    "computing": "awaiting_event",
    "flushing": "awaiting_event",
    "starting": "awaiting_event",
    "suspended": "awaiting_event",
    "computing_ended": "ended",
    "ended": "finished",
    "finished": "ended",
}
"""The state to which a changed transition leads, by the right one: one that does something similar."""


def mutants(text: str) -> list[tuple[str, str]]:
    """What is changed, and the changed text."""
    found = []
    for match in TRANSITION.finditer(text):
        begin, end = match.span()
        start, trigger, to = match.groups()
        found.append((f"{start}, {trigger}: refused", text[:begin] + text[end:]))
        line = match.group(0).replace(f"{to}}}", f"{STAND_INS[to]}}}")
        found.append((f"{start}, {trigger}: {STAND_INS[to]} instead of {to}", text[:begin] + line + text[end:]))
    return found


def passes(build: Path) -> bool:
    """Whether the tests pass; a mutant on which they do not end, or crash, fails."""
    made = subprocess.run(
        ["cmake", "--build", str(build), "--target", "scheduler_test"], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise SystemExit(made.stdout + made.stderr)
    test = build / "tests/runtime/scheduler/scheduler_test"
    environment = os.environ | {"GTEST_BRIEF": "1", "GTEST_FAIL_FAST": "1"}
    try:
        done = subprocess.run(
            [test, "--gtest_filter=-RankState.*"], capture_output=True, env=environment, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    """Compiles and tests each mutant, and restores the source."""
    build = Path(sys.argv[1])
    text = SOURCE.read_text(encoding="utf-8")
    cases = mutants(text)
    first, last = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (0, len(cases))
    survivors = []
    try:
        for number, (name, changed) in enumerate(cases[first:last], first):
            SOURCE.write_text(changed, encoding="utf-8")
            survives = passes(build)
            print(f"{number}: {name}: {'SURVIVES' if survives else 'fails'}", flush=True)
            if survives:
                survivors.append(name)
    finally:
        SOURCE.write_text(text, encoding="utf-8")
    if not passes(build):
        raise SystemExit("the tests fail without any change")
    print(f"{last - first} mutants, {len(survivors)} survive")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
