"""The treatment of a program's computation: none, measure it, record it, or charge a profile."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.outfiles import Held, OutFile
from apenet.compute.charging import Charge, Charged, Job, judge, parse_source, prepare
from apenet.compute.exchange import Exchange
from apenet.compute.host_speed import Companion
from apenet.compute.profile import IS_PROFILE
from apenet.compute.recording import Origin, make_profile

EXPECTED = "none, measured[:SCALE] with a scale above 0, record:FILE, or a profile's FILE[:SCALE]"
_RECORD = "record:"


@dataclass(frozen=True)
class Choice:
    """The value of --compute. At most one of `record`, the file to write, and `charge` is set."""

    mode: _core.ComputeMode
    scale: float = 1.0
    record: Path | None = None
    charge: Charge | None = None

    @property
    def profile(self) -> Path | None:
        """The file that is read."""
        return None if self.charge is None else self.charge.path


def choose(compute: str, job: Job) -> Choice:
    """Reads the value of --compute. Raises InputError, and ProfileError for a profile of something else."""
    if compute == "none":
        return Choice(_core.ComputeMode.none)
    measured = re.fullmatch(r"measured(?::([0-9]+(?:\.[0-9]+)?))?", compute)
    if measured is not None and (measured[1] is None or 0 < float(measured[1]) <= 1e6):  # noqa: PLR2004
        return Choice(_core.ComputeMode.measured, float(measured[1] or 1))
    if compute.startswith(_RECORD) and len(compute) > len(_RECORD):
        return Choice(_core.ComputeMode.record, record=Path(compute.removeprefix(_RECORD)))
    if not compute or compute.startswith((_RECORD, "measured:")):
        raise InputError("compute", compute, EXPECTED)
    path, scale = parse_source(compute)
    if not path.exists():
        raise InputError("compute", compute, EXPECTED)
    return Choice(_core.ComputeMode.profile, charge=prepare(path, scale, job))


class Computation(Held):
    """A choice while its run lasts: the files by which it reaches the ranks, and the profile that is written.

    Raises InputError if the profile cannot be written at its path.
    """

    def __init__(self, choice: Choice, job: Job) -> None:
        self._choice = choice
        self._job = job
        self._profile: bytes | None = None
        with ExitStack() as stack:
            self._file = None
            self._companion = None
            if choice.record is not None:
                self._file = stack.enter_context(OutFile("compute", choice.record, IS_PROFILE))
                self._companion = Companion()
            is_needed = choice.record is not None or choice.charge is not None
            table = None if choice.charge is None else choice.charge.table()
            self._exchange = stack.enter_context(Exchange(table)) if is_needed else None
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    @property
    def environment(self) -> dict[str, str]:
        """The ranks' variables."""
        return {} if self._exchange is None else self._exchange.environment

    def measure_if_due(self) -> None:
        """Call often while the run lasts."""
        if self._companion is not None:
            self._companion.measure_if_due()

    def judge(self, *, is_complete: bool) -> tuple[Charged | None, tuple[str, ...]]:
        """The use of a profile in the run, and warnings of one sentence each."""
        if self._exchange is None:
            return None, ()
        if not is_complete:
            return None, ("compute: no profile was written, the run did not complete",) if self._companion else ()
        reports = self._exchange.reports()
        if self._choice.charge is not None:
            charged, warnings = judge(self._choice.charge, reports, self._job.ranks)
            return charged, (*self._choice.charge.warnings, *warnings)
        assert self._companion is not None  # noqa: S101 (a recording has one)
        job = self._job
        origin = Origin(job.program.name, job.arguments, job.ranks, job.size, self._companion.speed)
        profile, warnings = make_profile(reports, origin)
        self._profile = profile.to_bytes()
        return None, warnings

    def keep(self) -> None:
        """Puts the profile at its path, if one was made. Raises NotWrittenError."""
        if self._file is not None and self._profile is not None:
            self._file.write(self._profile)
            self._file.keep()
