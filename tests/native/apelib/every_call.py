"""Every function of apenet.apelib on any number of ranks; prints "passed" at rank 0."""

import numpy as np
import pytest

from apenet import apelib
from apenet.apelib import Direction, Error, ErrorCode, How


def messages(rank: int, up: int, down: int) -> None:
    for how in How:
        for count in (0, 5, 3000):
            out, into = np.full(count, rank, np.int32), np.full(count, -1, np.int32)
            request = apelib.irecv(into, down, tag=3, how=how)
            apelib.send(out, up, tag=3, how=how)
            assert request.wait() == out.nbytes
            assert (into == down).all()
            apelib.sendrecv(out + 1, up, into, down, how=how)
            assert (into == down + 1).all()
    sent = apelib.isend(np.arange(4.0), up)
    got = np.zeros((2, 2))
    apelib.recv(got, down)
    assert (got == [[0, 1], [2, 3]]).all()
    while not sent.test():
        pass
    requests = [apelib.irecv(np.zeros(1), down, tag=tag) for tag in range(3)]
    sends = [apelib.isend(np.ones(1), up, tag=tag) for tag in range(3)]
    assert sorted(apelib.wait_any(requests) for _ in range(3)) == [0, 1, 2]
    assert apelib.wait_any(requests) is None
    apelib.wait_all(sends + requests)


def collectives(rank: int, size: int) -> None:
    for kind in (np.float64, np.float32, np.int64, np.complex128):
        values = np.array([rank, 1], kind)
        apelib.global_sum(values)
        assert (values == [size * (size - 1) / 2, size]).all()
    values = np.array([rank, -rank])
    apelib.global_max(values)
    assert (values == [size - 1, 0]).all()
    apelib.global_min(values)
    assert (values == [size - 1, 0]).all()
    word = np.frombuffer(b"root" if rank == size - 1 else b"none", np.uint8).copy()
    apelib.broadcast(word, size - 1)
    assert word.tobytes() == b"root"
    every = apelib.gather(np.array([rank, rank**2]), 0)
    assert (every is None) == (rank != 0)
    assert every is None or (every == [[i, i**2] for i in range(size)]).all()
    apelib.barrier()


def halos(rank: int) -> None:
    out, into = np.empty((6, 3)), np.empty((6, 3))
    with apelib.Halo() as halo:
        for direction in Direction:
            halo.face(direction, out[direction], into[direction])
        for turn in range(3):
            out[:] = 100 * rank + np.arange(6)[:, None] + turn
            halo.start()
            while not halo.test():
                pass
            for direction in Direction:
                assert (into[direction] == 100 * apelib.neighbor(direction) + (direction ^ 1) + turn).all()
        with pytest.raises(ValueError, match="expected 24 as in out"):
            halo.face(0, out[0], into[0, :2])


def refusals(size: int) -> None:
    with pytest.raises(Error, match=f"rank {size}: expected 0 to {size - 1}") as refused:
        apelib.send(np.zeros(1), size)
    assert refused.value.code is ErrorCode.RANK
    with pytest.raises(Error) as refused:
        apelib.neighbor(99)
    assert refused.value.code is ErrorCode.DIRECTION
    with pytest.raises(ValueError, match="contiguous"):
        apelib.send(np.zeros((4, 4))[:, 0], 0)
    with pytest.raises(ValueError, match="references to objects"):
        apelib.send(np.array([object()]), 0)
    read_only = np.zeros(1)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="may be written"):
        apelib.recv(read_only, 0)
    with pytest.raises(ValueError, match="int16"):
        apelib.global_sum(np.zeros(1, np.int16))
    with pytest.raises(ValueError, match="coordinates"):
        apelib.rank_at([0])


def routes(size: int) -> None:
    """In virtual time there are some, in real time none."""
    try:
        way = apelib.route(0, size - 1)
    except Error as refused:
        assert refused.code is ErrorCode.UNSUPPORTED
        with pytest.raises(Error, match="real time"):
            apelib.apply_routes()
        return
    assert len(way) == min(size - 1, 2)
    if size > 1:
        apelib.add_route(0, size - 1, [Direction.MINUS_X] * 2)
        apelib.apply_routes()
        assert apelib.route(0, size - 1) == (Direction.MINUS_X, Direction.MINUS_X)
        apelib.add_route(0, size - 1, [Direction.PLUS_X])
        with pytest.raises(Error, match="it ends at") as refused:
            apelib.apply_routes()
        assert refused.value.code is ErrorCode.ROUTE
    apelib.apply_routes()
    assert apelib.route(0, size - 1) == way


def main() -> None:
    with pytest.raises(Error) as refused:
        apelib.rank()
    assert refused.value.code is ErrorCode.STATE
    apelib.init()
    rank, size = apelib.rank(), apelib.size()
    assert np.prod(apelib.dims()) == size
    assert apelib.rank_at(apelib.coords(rank)) == rank
    messages(rank, (rank + 1) % size, (rank - 1) % size)
    collectives(rank, size)
    halos(rank)
    refusals(size)
    routes(size)
    apelib.finalize()
    if rank == 0:
        print("passed")


main()
