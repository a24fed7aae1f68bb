"""apelib from Python: messages between the processes of a torus, with numpy arrays and without a copy of them.

The same program runs under `apenet run`, in virtual time, and under `mpiexec`, in real time: docs/apis/apelib.md.

    from apenet import apelib

    apelib.init()
    right = apelib.neighbor(apelib.Direction.PLUS_X)
    left = apelib.neighbor(apelib.Direction.MINUS_X)
    apelib.sendrecv(mine, right, theirs, left)
    apelib.global_sum(action)
    apelib.finalize()

Arrays must be contiguous (C order), because the network reads and writes their memory. Every function raises
`apelib.Error` if the library refuses the call; its `code` is one of `ErrorCode`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Direction",
    "Error",
    "ErrorCode",
    "Halo",
    "How",
    "Request",
    "add_route",
    "apply_routes",
    "barrier",
    "broadcast",
    "coords",
    "dims",
    "finalize",
    "gather",
    "global_max",
    "global_min",
    "global_sum",
    "init",
    "irecv",
    "isend",
    "neighbor",
    "rank",
    "rank_at",
    "recv",
    "route",
    "send",
    "sendrecv",
    "size",
    "wait_all",
    "wait_any",
]

Array = NDArray[Any]

_MOST_DIMENSIONS = 6
_NOTHING = 0  # APE_NO_REQUEST, APE_NO_HALO


class Direction(IntEnum):
    """The directions of a torus; 2 d and 2 d + 1 for dimension d of one with more than three."""

    PLUS_X = 0
    MINUS_X = 1
    PLUS_Y = 2
    MINUS_Y = 3
    PLUS_Z = 4
    MINUS_Z = 5


class How(IntEnum):
    """The way of a message from and to the program's memory: ape_how of apelib.h."""

    AUTO = 0
    ZERO_COPY = 1
    COPIED = 2


class ErrorCode(IntEnum):
    """ape_error of apelib.h."""

    STATE = 1
    FINALIZED = 2
    ENVIRONMENT = 3
    ARGUMENT = 4
    RANK = 5
    DIRECTION = 6
    COORDINATES = 7
    TAG = 8
    HOW = 9
    TYPE = 10
    OVERSIZE = 11
    TRUNCATED = 12
    REQUEST = 13
    HALO = 14
    BUSY = 15
    IDLE = 16
    MEMORY = 17
    NETWORK = 18
    ROUTE = 19
    DEADLOCK = 20
    UNSUPPORTED = 21


class Error(Exception):
    """The library has refused a call, or a transfer has failed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = ErrorCode(code)


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(__file__).parent / "lib" / "libapelib.so"))
    library.ape_strerror.restype = ctypes.c_char_p
    library.ape_last_error.restype = ctypes.c_char_p
    return library


def _check(code: int) -> None:
    if code != 0:
        reason = _library().ape_last_error() or _library().ape_strerror(code)
        raise Error(code, reason.decode(errors="replace"))


def _memory(array: Array, *, is_written: bool) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    """Address and size of an array's bytes. Raises ValueError if they are not one piece of usable memory."""
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise ValueError("array: expected a contiguous numpy array (C order)")
    if array.dtype.hasobject:
        raise ValueError(f"array of {array.dtype}: expected numbers, not references to objects")
    if is_written and not array.flags.writeable:
        raise ValueError("array: expected one that may be written")
    return ctypes.c_void_p(array.ctypes.data if array.nbytes > 0 else None), ctypes.c_size_t(array.nbytes)


def _whole(function: str) -> int:
    value = ctypes.c_int()
    _check(getattr(_library(), function)(ctypes.byref(value)))
    return value.value


def init() -> None:
    """Joins the run that the launcher's environment describes. Call in all ranks."""
    _check(_library().ape_init())


def finalize() -> None:
    """Leaves the run. Call in all ranks; waits until all have called it."""
    _check(_library().ape_finalize())


def rank() -> int:
    """The number of this process, from 0."""
    return _whole("ape_rank")


def size() -> int:
    """The number of processes."""
    return _whole("ape_size")


def dims() -> tuple[int, ...]:
    """The extents of the torus of ranks, at least three."""
    count = ctypes.c_int()
    extents = (ctypes.c_int * _MOST_DIMENSIONS)()
    _check(_library().ape_dims(ctypes.byref(count), extents))
    return tuple(extents[: count.value])


def coords(of: int) -> tuple[int, ...]:
    """The coordinates of a rank."""
    place = (ctypes.c_int * _MOST_DIMENSIONS)()
    _check(_library().ape_coords(of, place))
    return tuple(place[: len(dims())])


def rank_at(place: Sequence[int]) -> int:
    """The rank with these coordinates, as many as the torus has dimensions."""
    if len(place) != len(dims()):
        raise ValueError(f"place = {tuple(place)}: expected {len(dims())} coordinates")
    found = ctypes.c_int()
    padded = (ctypes.c_int * _MOST_DIMENSIONS)(*place)
    _check(_library().ape_rank_at(padded, ctypes.byref(found)))
    return found.value


def neighbor(direction: Direction | int) -> int:
    """The next rank in this direction."""
    found = ctypes.c_int()
    _check(_library().ape_neighbor(int(direction), ctypes.byref(found)))
    return found.value


def send(array: Array, to: int, *, tag: int = 0, how: How = How.AUTO) -> None:
    """Sends the array's bytes, and returns when its memory may be used again."""
    _check(_library().ape_send(*_memory(array, is_written=False), to, tag, int(how)))


def recv(array: Array, source: int, *, tag: int = 0, how: How = How.AUTO) -> None:
    """Receives into the array; a shorter message fills its beginning."""
    _check(_library().ape_recv(*_memory(array, is_written=True), source, tag, int(how)))


def sendrecv(out: Array, to: int, into: Array, source: int, *, tag: int = 0, how: How = How.AUTO) -> None:
    """Both directions at once."""
    memory = (*_memory(out, is_written=False), to, *_memory(into, is_written=True), source)
    _check(_library().ape_sendrecv(*memory, tag, int(how)))


class Request:
    """A transfer in progress. Keeps its array alive, whose memory belongs to the library until the end."""

    def __init__(self, handle: ctypes.c_uint64, array: Array) -> None:
        self._handle = handle
        self._array: Array | None = array

    def wait(self) -> int:
        """Waits for the end. Returns the bytes received, 0 for a send."""
        received = ctypes.c_size_t()
        try:
            _check(_library().ape_wait(ctypes.byref(self._handle), ctypes.byref(received)))
        finally:
            self._release()
        return received.value

    def test(self) -> bool:
        """Whether the transfer has ended; a request that has needs no wait."""
        done = ctypes.c_int()
        try:
            _check(_library().ape_test(ctypes.byref(self._handle), ctypes.byref(done), None))
        finally:
            self._release()
        return done.value != 0

    def _release(self) -> None:
        if self._handle.value == _NOTHING:
            self._array = None


def isend(array: Array, to: int, *, tag: int = 0, how: How = How.AUTO) -> Request:
    """Begins a send."""
    handle = ctypes.c_uint64()
    _check(_library().ape_isend(*_memory(array, is_written=False), to, tag, int(how), ctypes.byref(handle)))
    return Request(handle, array)


def irecv(array: Array, source: int, *, tag: int = 0, how: How = How.AUTO) -> Request:
    """Begins a receive."""
    handle = ctypes.c_uint64()
    _check(_library().ape_irecv(*_memory(array, is_written=True), source, tag, int(how), ctypes.byref(handle)))
    return Request(handle, array)


def _handles(requests: Sequence[Request]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(requests))(*(request._handle.value for request in requests))


def _take_back(requests: Sequence[Request], handles: ctypes.Array[ctypes.c_uint64]) -> None:
    for request, handle in zip(requests, handles, strict=True):
        request._handle.value = handle
        request._release()


def wait_all(requests: Sequence[Request]) -> None:
    """Waits for all of them; skips those that have ended."""
    handles = _handles(requests)
    try:
        _check(_library().ape_wait_all(len(requests), handles))
    finally:
        _take_back(requests, handles)


def wait_any(requests: Sequence[Request]) -> int | None:
    """Waits for one of them, and returns its index. None: all had ended before."""
    handles = _handles(requests)
    which = ctypes.c_int()
    try:
        _check(_library().ape_wait_any(len(requests), handles, ctypes.byref(which), None))
    finally:
        _take_back(requests, handles)
    return which.value if which.value >= 0 else None


def barrier() -> None:
    """Waits until all ranks have called it."""
    _check(_library().ape_barrier())


def broadcast(array: Array, root: int) -> None:
    """The root's values come into the arrays of all ranks."""
    _check(_library().ape_broadcast(*_memory(array, is_written=True), root))


def gather(array: Array, root: int) -> Array | None:
    """At the root, the arrays of all ranks, along a new first axis; elsewhere None."""
    whole = np.empty((size(), *array.shape), array.dtype) if rank() == root else None
    room = None if whole is None else ctypes.c_void_p(whole.ctypes.data)
    _check(_library().ape_gather(*_memory(array, is_written=False), room, root))
    return whole


_TYPES = {"float64": 0, "float32": 1, "int64": 2, "complex128": 3}


def _combine(function: str, array: Array) -> None:
    address, _ = _memory(array, is_written=True)
    if array.dtype.name not in _TYPES or not array.dtype.isnative:
        raise ValueError(f"array of {array.dtype}: expected one of {', '.join(_TYPES)}")
    code = getattr(_library(), function)(address, ctypes.c_size_t(array.size), _TYPES[array.dtype.name])
    _check(code)


def global_sum(array: Array) -> None:
    """Replaces each value by its sum over all ranks, the same bits everywhere."""
    _combine("ape_sum", array)


def global_min(array: Array) -> None:
    """Replaces each value by its minimum over all ranks."""
    _combine("ape_min", array)


def global_max(array: Array) -> None:
    """Replaces each value by its maximum over all ranks."""
    _combine("ape_max", array)


class Halo:
    """A halo exchange that is declared once and repeated: face() for each, then start() and wait()."""

    def __init__(self) -> None:
        self._handle = ctypes.c_uint64()
        self._arrays: list[Array] = []
        _check(_library().ape_halo_create(ctypes.byref(self._handle)))

    def face(self, direction: Direction | int, out: Array, into: Array) -> None:
        """`out` goes to the neighbour in this direction, and what comes from there fills `into`, of the same size."""
        address, size_of_out = _memory(out, is_written=False)
        room, size_of_into = _memory(into, is_written=True)
        if size_of_out.value != size_of_into.value:
            raise ValueError(f"into: {size_of_into.value} bytes, expected {size_of_out.value} as in out")
        _check(_library().ape_halo_face(self._handle, int(direction), address, room, size_of_out))
        self._arrays += [out, into]

    def start(self) -> None:
        """Begins an exchange. Until its end the arrays belong to the library."""
        _check(_library().ape_halo_start(self._handle))

    def wait(self) -> None:
        """Waits for the end of the exchange."""
        _check(_library().ape_halo_wait(self._handle))

    def test(self) -> bool:
        """Whether the exchange has ended; one that has needs no wait."""
        done = ctypes.c_int()
        _check(_library().ape_halo_test(self._handle, ctypes.byref(done)))
        return done.value != 0

    def free(self) -> None:
        """Ends the use of the halo."""
        _check(_library().ape_halo_free(ctypes.byref(self._handle)))
        self._arrays.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.free()


def route(begin: int, end: int) -> tuple[Direction | int, ...]:
    """The directions of the hops that packets take from the node of one rank to that of another."""
    hops = ctypes.c_int()
    _check(_library().ape_route_get(begin, end, 0, None, ctypes.byref(hops)))
    directions = (ctypes.c_int * hops.value)()
    _check(_library().ape_route_get(begin, end, hops.value, directions, ctypes.byref(hops)))
    return tuple(Direction(d) if d in list(Direction) else d for d in directions)


def add_route(begin: int, end: int, directions: Sequence[Direction | int]) -> None:
    """Declares a route, for the next apply_routes()."""
    hops = (ctypes.c_int * len(directions))(*(int(direction) for direction in directions))
    _check(_library().ape_route_add(begin, end, len(directions), hops))


def apply_routes() -> None:
    """Replaces all routes that were set by those that all ranks have declared. Call in all ranks.

    Raises Error, and leaves the routes as they were, if one does not lead to its end or packets could deadlock.
    """
    _check(_library().ape_route_apply())
