"""A recorded run as an OTF2 archive, for Vampir, Scalasca and other tools of the Score-P family.

The times are those of the replay of the recording, in picoseconds. A rank computes or is in an MPI call: a region of a
call lasts from the first message or wait of the call to the next call or computation, so that calls of one function at
one place that follow each other directly are one region. Messages are those of the network, also within collective
operations.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from apenet.base.errors import InputError, NotWrittenError
from apenet.base.otf2_library import otf2_library, said_by_otf2
from apenet.explain.folder import RunFolder
from apenet.explain.timed import CALC, SEND, Timed, operations_of, timed

ANCHOR = "traces"
_PS_PER_S = 10**12
_COMPUTING = -1
_FINALIZE = -2
# Order of events at one time: what ends in a call, its end, the beginning of the next one, what begins in it.
_ENDS, _LEAVES, _ENTERS, _BEGINS, _ENDS_AT_ONCE = range(5)


def write_otf2(run: RunFolder, folder: Path) -> Path:
    """Writes the archive as a new folder, and returns its anchor file.

    Raises InputError for a run without a recording, a folder that exists, or where otf2 is not installed;
    NotWrittenError if writing fails, and then leaves nothing.
    """
    if run.lacks:
        raise InputError("otf2", folder, f"a run of MPI's messages alone: those of {run.lacks} cannot be recorded")
    if run.schedule is None:
        raise InputError("otf2", folder, "a run with its recording: apenet run --report or --record")
    if folder.exists() or folder.is_symlink():
        raise InputError("otf2", folder, "a folder that does not exist yet")
    otf2 = otf2_library("otf2", folder)
    replay = timed(run.request, run.schedule, operations_of(run.schedule))
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError("otf2", folder, f"a folder that can be written ({error.strerror})") from error
    try:
        made = beside / "archive"
        with said_by_otf2() as said:
            try:
                with otf2.writer.open(str(made), archive_name=ANCHOR, timer_resolution=_PS_PER_S) as archive:
                    _Writer(otf2, archive, run).write(replay)
                made.rename(folder)
            except (OSError, import_module("_otf2").Error) as error:
                raise NotWrittenError("otf2", folder, said[0] if said else str(error)) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder / f"{ANCHOR}.otf2"


class _Writer:
    """Writes the definitions of a run, and the events of its ranks."""

    def __init__(self, otf2: Any, archive: Any, run: RunFolder) -> None:  # noqa: ANN401 (otf2 has no types)
        self._events = otf2.events
        self._archive = archive
        self._definitions = archive.definitions
        self._mpi = otf2.enums.Paradigm.MPI
        kinds = otf2.enums.GroupType
        machine = self._definitions.system_tree_node(run.request.machine.name, class_name="machine")
        nodes = {
            node: self._definitions.system_tree_node(f"node {node}", class_name="node", parent=machine)
            for node in sorted(set(run.request.nodes))
        }
        self._groups = [
            self._definitions.location_group(f"rank {rank}", system_tree_parent=nodes[node])
            for rank, node in enumerate(run.request.nodes)
        ]
        self._masters = [self._definitions.location("processor 0", group=group) for group in self._groups]
        self._definitions.group("MPI", group_type=kinds.COMM_LOCATIONS, paradigm=self._mpi, members=self._masters)
        everybody = self._definitions.group(
            "all ranks", group_type=kinds.COMM_GROUP, paradigm=self._mpi, members=self._masters
        )
        self._world = self._definitions.comm("MPI_COMM_WORLD", group=everybody)

    def write(self, replay: Timed) -> None:
        operations = replay.operations
        self._regions = {
            _COMPUTING: self._definitions.region("computation"),
            _FINALIZE: self._definitions.region("MPI_Finalize", paradigm=self._mpi),
        }
        for number, (call, place) in enumerate(zip(operations.calls, operations.places, strict=True)):
            file, _, line = place.rpartition(":")
            self._regions[number] = self._definitions.region(
                call or "MPI", source_file=file, begin_line_number=int(line or 0), paradigm=self._mpi
            )
        for rank in range(operations.ranks):
            of_rank = slice(int(operations.first[rank]), int(operations.first[rank + 1]))
            processors = operations.cpu[of_rank]
            for processor in sorted({0, *np.unique(processors).tolist()}):
                location = self._masters[rank]
                if processor:
                    location = self._definitions.location(f"processor {processor}", group=self._groups[rank])
                chosen = np.flatnonzero(processors == processor) + of_rank.start
                events = list(self._messages(replay, chosen))
                if processor == 0:
                    events += self._calls(replay, rank, chosen)
                writer = self._archive.event_writer_from_location(location)
                for _, _, event in sorted(events, key=lambda one: one[:2]):
                    writer(event)

    def _messages(self, replay: Timed, chosen: Any) -> Iterator[tuple[int, int, Any]]:  # noqa: ANN401
        operations, events = replay.operations, self._events
        for number in chosen.tolist():
            if operations.kind[number] == CALC:
                continue
            began, ended = int(replay.began[number]), int(replay.ended[number])
            ends = _ENDS if ended > began else _ENDS_AT_ONCE
            who = (int(operations.peer[number]), self._world)
            what = (int(operations.tag[number]), int(operations.amount[number]), number)
            if operations.kind[number] == SEND:
                yield began, _BEGINS, events.MpiIsend(began, *who, *what)
                yield ended, ends, events.MpiIsendComplete(ended, number)
            else:
                yield began, _BEGINS, events.MpiIrecvRequest(began, number)
                yield ended, ends, events.MpiIrecv(ended, *who, *what)

    def _calls(self, replay: Timed, rank: int, chosen: Any) -> Iterator[tuple[int, int, Any]]:  # noqa: ANN401
        end, call = 0, None
        for begin, end, call in _regions(replay, rank, chosen):
            yield begin, _ENTERS, self._events.Enter(begin, self._regions[call])
            yield end, _LEAVES, self._events.Leave(end, self._regions[call])
        if call == _COMPUTING:  # readers take what lies before a call
            yield end, _BEGINS, self._events.Enter(end, self._regions[_FINALIZE])
            yield end, _ENDS_AT_ONCE, self._events.Leave(end, self._regions[_FINALIZE])


def _regions(replay: Timed, rank: int, chosen: Any) -> Iterator[tuple[int, int, int]]:  # noqa: ANN401
    """Beginning and end of what a rank does, one after the other: a call's number, or that it computes."""
    operations = replay.operations
    waits = slice(int(replay.waits.first[rank]), int(replay.waits.first[rank + 1]))
    is_calc = operations.kind[chosen] == CALC
    computing = [
        (int(replay.began[number]), int(replay.began[number]) + int(operations.amount[number]) * 1000)
        for number in chosen[is_calc].tolist()
    ]
    marks = [(int(replay.began[number]), int(operations.begun_in[number])) for number in chosen[~is_calc].tolist()]
    marks += zip(replay.waits.start[waits].tolist(), replay.waiting_call[waits].tolist(), strict=True)
    marks.sort(key=lambda mark: mark[0])
    finish = int(replay.report.finish_ps[rank])
    at = free = 0
    for begin, end in [*sorted(computing), (finish, finish)]:
        current, since = None, free
        while at < len(marks) and marks[at][0] < max(begin, free + 1):
            time, call = marks[at]
            at += 1
            if current is None:
                current = call
            elif call != current and time > since:
                yield since, time, current
                current, since = call, time
        if current is not None and begin > since:
            yield since, begin, current
        if end > begin:
            yield begin, end, _COMPUTING
        free = end
