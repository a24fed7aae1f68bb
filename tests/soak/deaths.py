"""Ends runs, or ranks of runs, by every signal in every phase: no run may hang or leave anything behind.

    .venv/bin/python tests/soak/deaths.py [--only WORD ...] [--every N]

Nothing may be left of a run: no process, no segment in /dev/shm, no file in the temporary folder. --every N takes each
Nth combination. The status is 1 if any combination hangs or leaves something.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cases import BIN, HERE, Case, Programs

MARK = "APENET_SOAK_MARK"
RANKS = 3
HANG_S = 60
GONE_S = 10

PHASES = ("before-init", "in-init", "messages", "computes", "polls", "host", "finalized")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGABRT)
# The ways to start the ranks: the words before the program.
SHAPES = {
    "plain": (),
    "script": ("sh", "-c", '"$@"; true', "sh"),
    "background": ("sh", "-c", '"$@" & wait', "sh"),
    "daemon": ("sh", "-c", 'setsid sh -c "sleep 1000" >/dev/null 2>&1 & exec "$@"', "sh"),
    "deaf": ("sh", "-c", 'trap "" TERM INT HUP QUIT USR1; exec "$@"', "sh"),
}
# Every signal is combined with every phase; shapes and victims take turns.
VICTIMS = ("apenet", "rank 0", "last rank")
BOTH = "apenet and its supervisor"


@dataclass(frozen=True)
class Death:
    """The victim, the signal, the phase, and the way in which the ranks are started."""

    victim: str
    number: signal.Signals
    phase: str
    shape: str

    def __str__(self) -> str:
        return f"{self.number.name} to {self.victim}, {self.phase}, {self.shape}"


def combinations() -> Iterator[Death]:
    """Each signal in each phase for each victim; shapes in turn, all of them for SIGKILL and SIGINT of the command."""
    shapes = list(SHAPES)
    turn = 0
    for victim in VICTIMS:
        for number in SIGNALS:
            for phase in PHASES:
                if victim == "apenet" and number in (signal.SIGKILL, signal.SIGINT):
                    yield from (Death(victim, number, phase, shape) for shape in shapes)
                else:
                    yield Death(victim, number, phase, shapes[turn % len(shapes)])
                    turn += 1
    yield from (Death(BOTH, signal.SIGKILL, phase, shape) for phase in PHASES for shape in shapes)


def processes_of(mark: str) -> dict[int, dict[str, str]]:
    """Processes with the mark in their environment, and that environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue  # has ended, or belongs to another user
        pairs = dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
        if pairs.get(MARK) == mark:
            found[int(entry.name)] = pairs
    return found


def rank_process(mark: str, rank: int) -> int:
    """The process that runs the program of a rank."""
    for process_id, environment in processes_of(mark).items():
        if environment.get("PMI_RANK") != str(rank):
            continue
        try:
            name = Path(f"/proc/{process_id}/comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if name.startswith("phases"):
            return process_id
    raise LookupError(f"no process of rank {rank}")


def supervisor_of(process_id: int) -> int:
    """The supervisor that a command has started."""
    for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii").split():
        if Path(f"/proc/{child}/comm").read_text(encoding="utf-8").startswith("apenet-supervis"):
            return int(child)
    raise LookupError("no supervisor")


def try_death(death: Death, program: str) -> str:
    """The error of this ending; empty without an error."""
    mark = uuid.uuid4().hex
    segments = {path.name for path in Path("/dev/shm").iterdir()}
    with tempfile.TemporaryDirectory() as folder:
        command = [str(BIN / "apenet"), "run", "-n", str(RANKS), "--machine", "ape16", "--"]
        command += [*SHAPES[death.shape], program, death.phase]
        run = subprocess.Popen(
            command,
            env={**os.environ, MARK: mark, "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wrong = _end(death, run, mark)
        left = _left(mark, segments, folder)
        for process_id in processes_of(mark):
            os.kill(process_id, signal.SIGKILL)
        return "; ".join(part for part in (wrong, *left) if part)


def _end(death: Death, run: subprocess.Popen[bytes], mark: str) -> str:
    """Ends the victim once the ranks are in their phase, and waits for the run; returns the error, or nothing."""
    try:
        if run.stdout is None or run.stdout.readline() != b"ready\n":
            return "the program did not come to its phase"
        time.sleep(0.1)
        if death.victim == "apenet":
            run.send_signal(death.number)
        elif death.victim == BOTH:
            supervisor = supervisor_of(run.pid)
            os.kill(run.pid, signal.SIGSTOP)  # neither sees the other's end
            os.kill(supervisor, death.number)
            run.send_signal(death.number)
        else:
            victim = rank_process(mark, 0 if death.victim == "rank 0" else RANKS - 1)
            # The other ranks continue: they have left MPI, or cannot know of the death, or no rank died. Ends the run
            # as a user would.
            hidden = death.phase == "before-init" and death.shape in ("script", "background")
            run_lasts = death.phase == "finalized" or hidden or _survives(victim, death.number)
            os.kill(victim, death.number)
            if run_lasts:
                run.send_signal(signal.SIGINT)
        run.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
        return f"hangs for {HANG_S} s"
    except LookupError as error:
        run.kill()
        run.wait()
        return str(error)
    finally:
        if run.stdout is not None:
            run.stdout.close()
    return "" if run.returncode != 0 else "status 0"


def _survives(process_id: int, number: signal.Signals) -> bool:
    """Whether the process ignores the signal, or catches it, as MPICH and its libraries do with some."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith(("SigIgn", "SigCgt")))
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks.values())


def _left(mark: str, segments: set[str], folder: str) -> list[str]:
    """What remains after a while."""
    give_up = time.monotonic() + GONE_S
    left: list[str] = []
    while time.monotonic() < give_up:
        left = [f"process {process_id} is left" for process_id in processes_of(mark)]
        left += [f"/dev/shm/{path.name} is left" for path in Path("/dev/shm").iterdir() if path.name not in segments]
        left += [f"{name} is left in the temporary folder" for name in sorted(Path(folder).iterdir())]
        if not left:
            break
        time.sleep(0.05)
    return left


def main() -> int:
    """Reads the options, runs the combinations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="words of which each stands in the combination's name")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    if options.every < 1:
        parser.error(f"--every {options.every}: expected 1 or more")
    chosen = [death for death in combinations() if all(word in str(death) for word in options.only)][:: options.every]
    if not chosen:
        parser.error(f"--only {' '.join(options.only)}: no combination has these words in its name")
    for number in SIGNALS:
        if number != signal.SIGKILL and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)  # in the background of a script: the runs would inherit it
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = HERE / "c" / "phases.c"
        (program,) = Programs(Path(folder)).command(Case("phases", RANKS, source))
        for death in chosen:
            wrong = try_death(death, program)
            failed += bool(wrong)
            if wrong:
                sys.stdout.write(f"{death}: {wrong}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
