"""Runs a build with one line of progress on the terminal: steps, and about how long the rest takes.

    show_progress.py COMMAND [ARGS]...

What the command prints is shown only if it fails. Elsewhere than on a terminal there is no progress. Ends with the
command's status.
"""

import re
import subprocess
import sys
import time

STEP = re.compile(r"\[(\d+)/(\d+)\]")  # as ninja numbers them
FEWEST_STEPS = 10  # before an estimate means anything


def progress(done: int, steps: int, elapsed_s: float) -> str:
    """The line after so many steps of the build."""
    rest_s = elapsed_s * (steps - done) / done
    estimate = f", about {rest_s:.0f} s left" if done >= FEWEST_STEPS else ""
    return f"   {done} of {steps} steps in {elapsed_s:.0f} s{estimate}"


def main(command: list[str]) -> int:
    """Runs the command, and returns its status."""
    printed = []
    is_terminal = sys.stderr.isatty()
    began_s = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as build:
        for line in build.stdout or ():
            printed.append(line)
            step = STEP.search(line)
            if step is None or step[1] == "0" or not is_terminal:
                continue
            began_s = began_s or time.monotonic()
            text = progress(int(step[1]), int(step[2]), time.monotonic() - began_s)
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()
    if began_s is not None:
        sys.stderr.write("\r\033[K")
    if build.returncode != 0:
        sys.stderr.writelines(printed)
    return build.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
