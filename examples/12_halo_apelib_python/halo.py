"""Relaxation of a field on a periodic lattice, 8^3 sites on each rank.

Each step has a halo exchange of six faces; a global sum comes at the end.
"""

import time

import numpy as np

from apenet import apelib

L = 8
STEPS = 20
FACES = range(6)
INSIDE = slice(1, -1)


def layer(direction: int, index: int) -> tuple[slice | int, ...]:
    """The sites of a layer that lies across this direction."""
    place: list[slice | int] = [INSIDE] * 3
    place[direction // 2] = index
    return tuple(place)


def shifted(field: np.ndarray, direction: int) -> np.ndarray:
    """The neighbours of all inner sites in this direction."""
    place = [INSIDE] * 3
    place[direction // 2] = slice(2, None) if direction % 2 == 0 else slice(None, -2)
    return field[tuple(place)]


def main() -> None:
    apelib.init()
    rank, dims = apelib.rank(), apelib.dims()
    here = apelib.coords(rank)

    field = np.zeros((L + 2,) * 3)  # with the neighbours' sites around
    out, into = np.empty((6, L, L)), np.empty((6, L, L))
    halo = apelib.Halo()
    for d in FACES:
        halo.face(d, out[d], into[d])

    x, y, z = (here[axis] * L + np.arange(L) for axis in range(3))
    field[INSIDE, INSIDE, INSIDE] = (7 * x[:, None, None] + 13 * y[:, None] + 29 * z) % 17

    exchange_us = np.zeros(1)
    for _ in range(STEPS):
        for d in FACES:
            out[d] = field[layer(d, L if d % 2 == 0 else 1)]
        start = time.perf_counter()
        halo.start()
        halo.wait()
        exchange_us += (time.perf_counter() - start) * 1e6
        for d in FACES:
            field[layer(d, L + 1 if d % 2 == 0 else 0)] = into[d]
        inner = field[INSIDE, INSIDE, INSIDE]
        inner += 0.1 * (sum(shifted(field, d) for d in FACES) - 6 * inner)

    action = np.array([np.sum(field[INSIDE, INSIDE, INSIDE] ** 2)])
    apelib.global_sum(action)
    apelib.global_max(exchange_us)
    if rank == 0:
        print(f"{apelib.size()} ranks, a torus of {'x'.join(map(str, dims))}")
        print(f"sum of squares {action[0]:.6f}")
        print(f"one exchange of six faces of {out[0].nbytes} bytes: {exchange_us[0] / STEPS:.2f} us")
    halo.free()
    apelib.finalize()


main()
