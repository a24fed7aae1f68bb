"""The folder of a run: request, machine and results.

`machine.toml`, `command.json`, `run.json` and `network.json` do not depend on the host: they are equal for equal runs.
`host.json` holds everything that does.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Self, TypeVar

from apenet import _core
from apenet.base.errors import InputError, NotWrittenError
from apenet.base.outfiles import FolderKind, OutFolder, given_path, holds_json, keep_apart
from apenet.run.computation import Computation
from apenet.run.packet_file import PacketFile, Packets
from apenet.run.recording import Recording
from apenet.run.results import Request, Result
from apenet.run.trace_file import ALL, TraceFile, TraceFilter

Kept = TypeVar("Kept", bound=Result)

RECORDING = "recording.goal"
"""The recording of a run in its own folder."""
OF_SEVERAL_JOBS = "one of several jobs (apenet cluster run): links, ports and faults are of the whole machine"
"""A warning in the folder of a job."""
RESULTS = ("run.json", "network.json", "host.json")
REQUEST = "command.json"
KIND = FolderKind(REQUEST, holds_json({"machine", "ranks", "engine", "version"}.issubset), "run")


class Outputs:
    """The output files of a run or a replay: reserved before it begins, written when it has ended.

    If the folder holds an earlier run, its results are deleted. Raises InputError for paths that cannot be written,
    that hold files of other origin, or that are equal.
    """

    def __init__(
        self,
        request: Request,
        *,
        out: str | Path | None,
        trace: str | Path | None,
        trace_filter: TraceFilter = ALL,
        packets: Packets | None = None,
        record: str | Path | None = None,
        profile: Path | None = None,
        inputs: Mapping[str, Path | None],
    ) -> None:
        trace_filter.require_ranks(request.ranks)
        self._trace_filter = trace_filter
        folder = given_path("out", out, "a folder")
        trace_file = given_path("trace", trace, "a file")
        record_file = given_path("record", record, "a file")
        self._machine = request.machine.saved() if folder is not None else {}
        names = (*self._machine, *RESULTS)
        files = [
            ("trace", trace_file),
            ("pcap", None if packets is None else packets.path),
            ("record", record_file),
            ("compute", profile),
        ]
        of_folder = [("out", folder / name) for name in (".", REQUEST, *names)] if folder is not None else []
        keep_apart(files, [*inputs.items(), *of_folder])
        with ExitStack() as stack:
            self._folder = None
            if folder is not None:
                self._folder = stack.enter_context(OutFolder("out", folder, KIND, names))
            self._trace = None
            if trace_file is not None:
                self._trace = stack.enter_context(TraceFile(trace_file))
            self._packets = stack.enter_context(PacketFile(packets)) if packets is not None else None
            self.recording = stack.enter_context(Recording(record_file)) if record_file is not None else None
            if self._folder is not None:
                given = [path.resolve() for path in inputs.values() if path is not None]
                of_earlier = [] if (self._folder.path / RECORDING).resolve() in given else [RECORDING]
                self._folder.remove([*RESULTS, *of_earlier])
                self._keep_request(request)
            self._closing = stack.pop_all()

    @property
    def observation(self) -> _core.ObservationOptions:
        """The parts that the core must observe: the network for a run folder, everything for a trace."""
        options = _core.ObservationOptions()
        options.network_history = self._folder is not None
        options.trace_path = "" if self._trace is None else self._trace.writable
        self._trace_filter.apply(options)
        return options

    def with_packets(self, options: _core.SessionOptions) -> _core.SessionOptions:
        """The options of the run, which then keeps the packets of its sockets if there is a file for them."""
        if self._packets is not None:
            self._packets.apply(options)
        return options

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Keeps the trace of a failed simulation, which has no result but shows how far it came."""
        if kind is not None and self._trace is not None and not issubclass(kind, InputError | NotWrittenError):
            with suppress(NotWrittenError):
                self._trace.keep()
        self._closing.close()

    def keep(self, result: Kept, computation: Computation | None = None, lost: NotWrittenError | None = None) -> Kept:
        """Writes a result to each of its files, even if one fails. Raises NotWrittenError, which has the result.

        Also for what was `lost` before.
        """
        failures = [] if lost is None else [lost]
        if self._folder is not None:
            result = replace(result, folder=self._folder.path)
        files = (self.recording, self._trace, self._packets)
        steps: list[Callable[[], None]] = [file.keep for file in files if file is not None]
        steps.append(lambda: self._keep_results(result))
        if computation is not None:
            steps.append(computation.keep)
        for step in steps:
            try:
                step()
            except NotWrittenError as error:
                failures.append(error)
        if failures:
            raise NotWrittenError.together(failures, result)
        return result

    def _keep_request(self, request: Request) -> None:
        assert self._folder is not None  # noqa: S101 (the caller has checked)
        try:
            self._folder.keep({REQUEST: _json(request.to_json())})
        except NotWrittenError as error:
            raise InputError("out", self._folder.path, f"a folder that can be written ({error.reason})") from error

    def _keep_results(self, result: Result) -> None:
        if self._folder is None:
            return
        network = {} if result.network is None else {"network.json": _json(result.network.to_json())}
        self._folder.keep(
            {
                **self._machine,
                "run.json": _json(result.to_json()),
                **network,
                "host.json": _json(host_properties(result)),
            }
        )


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def host_properties(result: Result) -> dict[str, Any]:
    """Wall time, host and library versions: values that differ between runs."""
    packages: dict[str, str | None] = {}
    for package in ("mpich", "mpi4py", "numpy"):
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            packages[package] = None
    return {
        "wall_time_s": round(result.wall_time_s, 3),
        **result.of_host(),
        "messages_per_wall_second": round(result.messages / result.wall_time_s) if result.wall_time_s else None,
        "host": platform.node(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": packages,
    }
