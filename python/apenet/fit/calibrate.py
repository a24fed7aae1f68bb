"""Measures a real fabric: two processes exchange messages through libfabric, in real time, without a simulator.

`apenet.calibrate.calibrate("tcp")` measures between two processes of this host, as `apenet calibrate` does; with
`serve` on one host and `client=` on the other it measures between two hosts. See docs/reference/calibrate.md.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet._core import version as __version__
from apenet.base.errors import HostError, InputError
from apenet.base.infiles import other_kind
from apenet.base.sizes import checked_sizes
from apenet.fit import LogGpFit, Measurement, MeasurementError, fit_loggp, parse
from apenet.fit.measurement import LARGEST_FALL

PROGRAM = Path(_core.__file__).parent / "bin" / "apenet_fabric_bench"
SONAME = "libfabric.so.1"
DEFAULT_SIZES = "8:4M"
DEFAULT_SAMPLES = 50
DEFAULT_WINDOW = 64
DEFAULT_PORT = 47593
MOST_SAMPLES = 2**20
MOST_WINDOW = 256
MOST_SIZES = 64
LARGEST_BYTES = 2**30
_LIST_LIMIT_S = 60
_WIDE = 0.25
"""An interquartile range above this share of the median: other load disturbed the host or the fabric."""


@dataclass(frozen=True)
class Sweep:
    """One test over sizes: median and spread of the samples of each size, in us."""

    test: str
    sizes_bytes: NDArray[np.int64]
    median_us: NDArray[np.float64]
    quartile_low_us: NDArray[np.float64]
    quartile_high_us: NDArray[np.float64]
    least_us: NDArray[np.float64]
    largest_us: NDArray[np.float64]
    samples: int

    @property
    def disturbed(self) -> NDArray[np.bool_]:
        """Disturbed sizes, far slower than a larger message. They are shown but not fitted."""
        least_of_larger = np.minimum.accumulate(self.median_us[::-1])[::-1]
        return self.median_us > LARGEST_FALL * least_of_larger

    @property
    def spread(self) -> NDArray[np.float64]:
        """Interquartile range of the samples over their median."""
        return (self.quartile_high_us - self.quartile_low_us) / self.median_us

    def to_json(self) -> dict[str, Any]:
        """The sweep in the form that `apenet fit` reads."""
        rows = zip(
            self.sizes_bytes,
            self.median_us,
            self.quartile_low_us,
            self.quartile_high_us,
            self.least_us,
            self.largest_us,
            strict=True,
        )
        keys = ("time_us", "quartile_low_us", "quartile_high_us", "least_us", "largest_us")
        return {
            "test": self.test,
            "samples": self.samples,
            "points": [
                {
                    "size_bytes": int(size),
                    **{key: float(value) for key, value in zip(keys, values, strict=True)},
                    "disturbed": bool(disturbed),
                }
                for (size, *values), disturbed in zip(rows, self.disturbed, strict=True)
            ],
        }


@dataclass(frozen=True)
class Calibration:
    """The measurement of one provider, and the LogGP model fitted to it."""

    provider: str
    library: str
    between: str
    window: int
    pingpong: Sweep
    stream: Sweep
    send_us: float | None
    receive_us: float | None
    fitted: LogGpFit | None
    warnings: tuple[str, ...]

    def measurements(self) -> list[Measurement]:
        """Ping-pong and stream without their disturbed sizes. Raises MeasurementError if too few sizes remain."""
        content = json.dumps(self.sweeps()).encode()
        name = f"calibration of {self.provider}"
        return [parse(name, content, section=sweep.test) for sweep in (self.pingpong, self.stream)]

    def sweeps(self) -> dict[str, Any]:
        """The measured part of `to_json`."""
        is_known = self.send_us is not None and self.receive_us is not None
        overheads = {"overheads": {"send_us": self.send_us, "receive_us": self.receive_us}} if is_known else {}
        return {
            "provider": self.provider,
            "library": self.library,
            "between": self.between,
            "version": __version__,
            "window": self.window,
            "sweeps": [{**self.pingpong.to_json(), **overheads}, self.stream.to_json()],
        }

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet calibrate --json` prints; `apenet fit` reads it, with --section."""
        stream_times = self.stream.median_us[~self.stream.disturbed]
        smallest, largest = float(stream_times[0]), float(stream_times[-1])
        return {
            **self.sweeps(),
            "latency_us": float(self.pingpong.median_us[~self.pingpong.disturbed][0]),
            "message_rate_per_second": 1e6 / smallest,
            "bandwidth_mib_s": float(self.stream.sizes_bytes[-1]) / 2**20 / largest * 1e6,
            "loggp": self.fitted.to_json()["parameters"] if self.fitted is not None else None,
            "warnings": list(self.warnings),
        }


def find_library(asked: Path | None = None) -> str:
    """The libfabric to measure with: the requested one, the system's, or the one in MPICH's wheel.

    The system's comes first because on a cluster it is the one with the fabric's provider. Raises HostError.
    """
    if asked is not None:
        kind = other_kind(asked)
        if kind is not None:  # opening a pipe waits for its writer
            raise InputError("--libfabric", str(asked), f"a {SONAME} that can be loaded: it is {kind}")
        if os.path.lexists(asked):  # the loader searches for a bare name
            asked = asked.absolute()
    of_mpich = Path(sys.prefix) / "lib" / "mpich" / SONAME
    candidates = [SONAME, str(of_mpich)] if asked is None else [str(asked)]
    for candidate in candidates:
        try:
            _load(candidate)
        except (OSError, UnicodeError) as error:
            if asked is not None:
                reason = str(error).rpartition(": ")[2] if isinstance(error, OSError) else "its name is no text"
                expected = f"a {SONAME} that can be loaded ({reason})"
                raise InputError("--libfabric", str(asked), expected) from error
            continue
        return candidate
    raise HostError(
        f"{SONAME}: neither this system nor this Python environment has it; install libfabric (Debian: libfabric1) or "
        "pip install mpich, or name the file with --libfabric"
    )


def _load(library: str) -> None:
    """Loads a library, which may set handlers of signals of its own, and sets those of this process again."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in numbers} if is_main else {}
    try:
        ctypes.CDLL(library)
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


def providers(library: str | None = None) -> dict[str, list[str]]:
    """Providers of this host that can be measured (reliable datagrams with tags), with their domains."""
    listed = _finished([*_program(library or find_library()), "list"])
    found: dict[str, list[str]] = {}
    for line in listed.splitlines():
        name, _, domain = line.partition(" ")
        if domain not in found.setdefault(name, []):
            found[name].append(domain)
    return found


def check_provider(provider: str, library: str, domain: str | None = None) -> None:
    """Raises InputError, which lists the available providers or their domains."""
    known = providers(library)
    if provider not in {*known, *(name.partition(";")[0] for name in known)}:
        names = ", ".join(known) or "none: this libfabric has no provider for this host"
        raise InputError("--provider", provider, f"one that {library} has here: {names}")
    domains = [one for name in known if provider in (name, name.partition(";")[0]) for one in known[name]]
    if domain is not None and domain not in domains:
        raise InputError("--domain", domain, f"one of {provider} here: {', '.join(dict.fromkeys(domains))}")


def serve(
    provider: str,
    *,
    domain: str | None = None,
    port: int = DEFAULT_PORT,
    library: Path | None = None,
    listening: Callable[[int], None] = lambda _: None,
) -> None:
    """The server of a measurement between two hosts: serves one client and returns."""
    found = find_library(library)
    check_provider(provider, found, domain)
    with _start([*_program(found), "server", provider, domain or "-", "-", str(port)]) as server:
        try:
            listening(_port(server))
            _, trouble = server.communicate()
        finally:
            server.kill()
    if server.returncode != 0:
        raise _failed(server.returncode, trouble)


def calibrate(
    provider: str,
    *,
    sizes: str | Sequence[int] = DEFAULT_SIZES,
    samples: int = DEFAULT_SAMPLES,
    window: int = DEFAULT_WINDOW,
    domain: str | None = None,
    client: str | None = None,
    port: int = DEFAULT_PORT,
    library: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Measures `provider` between two processes of this host, or with the server on host `client`.

    `progress` is called with each finished test. Raises InputError for invalid input, HostError if the fabric fails.
    """
    checked = _checked(sizes, samples, window)
    found = find_library(library)
    check_provider(provider, found, domain)
    program = _program(found)
    plan = [str(samples), str(window), *map(str, checked)]
    warnings = []
    if client is not None:
        results = _run_client([*program, "client", provider, domain or "-", "-", client, str(port), *plan], progress)
        between = f"this host and {client}"
    else:
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) == 1:
            warnings.append(
                "both processes share the single CPU of this host: every wait includes a switch by its scheduler"
            )
        with _start([*program, "server", provider, domain or "-", str(cpus[-1]), "0"]) as server:
            try:
                here = ["127.0.0.1", str(_port(server))]
                results = _run_client(
                    [*program, "client", provider, domain or "-", str(cpus[0]), *here, *plan], progress
                )
                server.wait()
            finally:
                server.kill()
        between = "two processes of this host"
    return _calibration(provider, found, between, window, results, warnings)


def _checked(sizes: str | Sequence[int], samples: int, window: int) -> list[int]:
    checked = checked_sizes(sizes)
    if len(checked) > MOST_SIZES or checked[-1] > LARGEST_BYTES:
        raise InputError("sizes", f"{len(checked)} to {checked[-1]}", f"at most {MOST_SIZES} sizes, up to 1G")
    for name, value, most in (("samples", samples, MOST_SAMPLES), ("window", window, MOST_WINDOW)):
        if not 1 <= value <= most:
            raise InputError(name, value, f"a whole number from 1 to {most}")
    return checked


def _program(library: str) -> list[str]:
    if not PROGRAM.exists():
        raise HostError(f"{PROGRAM.name}: not in this installation; build the package again")
    return [str(PROGRAM), library]


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finished(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIST_LIMIT_S)
    if done.returncode != 0:
        raise _failed(done.returncode, done.stderr)
    return done.stdout


def _failed(status: int, trouble: str) -> HostError:
    """The error for a measuring program that has failed: what it said, or how it ended."""
    ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return HostError(trouble.strip() or f"{PROGRAM.name}, the measuring program, {ended} without a word")


def _port(server: subprocess.Popen[str]) -> int:
    line = server.stdout.readline() if server.stdout is not None else ""
    if not line:
        _, trouble = server.communicate()
        raise _failed(server.returncode, trouble)
    return int(line)


def _run_client(command: Sequence[str], progress: Callable[[str], None]) -> list[dict[str, Any]]:
    results = []
    with _start(command) as client:
        try:
            for line in client.stdout or ():
                results.append(json.loads(line))
                progress(results[-1]["test"])
            _, trouble = client.communicate()
        finally:
            client.kill()
    if client.returncode != 0:
        raise _failed(client.returncode, trouble)
    return results


def _calibration(
    provider: str, library: str, between: str, window: int, results: list[dict[str, Any]], warnings: list[str]
) -> Calibration:
    pingpong, stream = (_sweep(test, results) for test in ("pingpong", "unidirectional"))
    send, receive = (
        float(np.median(result["samples_us"])) if result["samples_us"] else None
        for test in ("send", "receive")
        for result in results
        if result["test"] == test
    )
    warnings += [line for sweep in (pingpong, stream) for line in _disturbances(sweep)]
    if receive is None:
        warnings.append("the cost of a receive was not measured: this provider completes messages without a poll")
    measured = Calibration(
        provider, library, between, window, pingpong, stream, send, receive, fitted=None, warnings=tuple(warnings)
    )
    try:
        fitted = fit_loggp(measured.measurements())
    except MeasurementError as error:
        note = f"no model was fitted: {error}"
        return Calibration(**{**vars(measured), "warnings": (*measured.warnings, note)})
    return Calibration(**{**vars(measured), "fitted": fitted})


def _sweep(test: str, results: list[dict[str, Any]]) -> Sweep:
    mine = [result for result in results if result["test"] == test]
    samples = np.array([result["samples_us"] for result in mine], dtype=np.float64)
    least, low, median, high, largest = np.percentile(samples, [0, 25, 50, 75, 100], axis=1)
    sizes = np.array([result["size_bytes"] for result in mine], dtype=np.int64)
    return Sweep(test, sizes, median, low, high, least, largest, samples.shape[1])


def _disturbances(sweep: Sweep) -> list[str]:
    said = []
    if sweep.disturbed.any():
        sizes = ", ".join(map(str, sweep.sizes_bytes[sweep.disturbed]))
        said.append(
            f"{sweep.test}: left out of the fit: {sizes} bytes, more than {LARGEST_FALL:g} times as slow as a "
            "larger message; measure again on a quiet host, or with more --samples"
        )
    wide = np.flatnonzero(sweep.spread > _WIDE)
    if not len(wide):
        return said
    worst = int(sweep.spread.argmax())
    return [
        *said,
        f"{sweep.test}: at {len(wide)} of {len(sweep.sizes_bytes)} sizes the middle half of the samples is wider than "
        f"{100 * _WIDE:.0f} % of the median, at {sweep.sizes_bytes[worst]} bytes {100 * sweep.spread[worst]:.0f} %: "
        "other load disturbed the host or the fabric, and a fit to these times is no better than they are",
    ]
