"""Jacobi's method for a periodic 3D Poisson problem, one block of the grid per rank.

Solves -laplace(u) = f on the unit cube with N points a side. Before every sweep each rank exchanges the faces
of its block with six neighbours. At the end, rank 0 solves the same problem alone and compares.

    python jacobi.py [--points N] [--iterations K] [--dims XxYxZ]
"""

import argparse
import ctypes
import sys
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

FLOPS_PER_POINT = 8  # six additions, two multiplications
TOLERANCE = 1e-12


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Jacobi's method on a 3D grid of processes")
    parser.add_argument("--points", type=int, default=32, help="grid points along each side")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--dims", help="processes along X, Y and Z, such as 4x2x2 (default: MPI decides)")
    return parser.parse_args()


def process_grid(world: MPI.Comm, text: str | None) -> MPI.Cartcomm:
    """A periodic grid with axes (Z, Y, X): MPI's last axis varies fastest, and so does X on the torus."""
    dims = [int(part) for part in text.split("x")] if text else MPI.Compute_dims(world.size, 3)
    if len(dims) != 3 or np.prod(dims) != world.size:
        sys.exit(f"--dims = {text}: expected three numbers whose product is {world.size}")
    return world.Create_cart(dims[::-1], periods=[True] * 3)


def block(points: int, parts: int, index: int) -> slice:
    """The share of part `index` when `points` are divided as evenly as possible."""
    return slice(points * index // parts, points * (index + 1) // parts)


def source_term(points: int) -> np.ndarray:
    wave = np.sin(2 * np.pi * np.arange(points) / points)
    return wave[:, None, None] * wave[None, :, None] * wave[None, None, :]


def sweep(u: np.ndarray, f_scaled: np.ndarray) -> np.ndarray:
    """One Jacobi step; `u` has one layer of its neighbours' points on every side."""
    inner = slice(1, -1)
    return (
        u[:-2, inner, inner]
        + u[2:, inner, inner]
        + u[inner, :-2, inner]
        + u[inner, 2:, inner]
        + u[inner, inner, :-2]
        + u[inner, inner, 2:]
        + f_scaled
    ) * (1 / 6)


@dataclass
class Side:
    """The exchange across one side of a block: sends one layer of its points, receives one of the neighbour's."""

    destination: int
    leaving: tuple[slice | int, ...]
    outgoing: np.ndarray
    origin: int
    arriving: tuple[slice | int, ...]
    incoming: np.ndarray


class Halo:
    """Exchanges the six faces of a block with the neighbours on the process grid."""

    def __init__(self, grid: MPI.Cartcomm, shape: tuple[int, ...]) -> None:
        self.grid = grid
        self.sides = []
        for axis in range(3):
            face = np.delete(shape, axis)
            below, above = grid.Shift(axis, 1)
            for destination, inside, origin, outside in [(below, 1, above, -1), (above, -2, below, 0)]:
                leaving, arriving = self.layer(axis, inside), self.layer(axis, outside)
                self.sides.append(Side(destination, leaving, np.empty(face), origin, arriving, np.empty(face)))

    @staticmethod
    def layer(axis: int, position: int) -> tuple[slice | int, ...]:
        return tuple(position if i == axis else slice(1, -1) for i in range(3))

    def exchange(self, u: np.ndarray) -> None:
        requests = [self.grid.Irecv(side.incoming, side.origin, tag) for tag, side in enumerate(self.sides)]
        for tag, side in enumerate(self.sides):
            side.outgoing[...] = u[side.leaving]
            requests.append(self.grid.Isend(side.outgoing, side.destination, tag))
        MPI.Request.Waitall(requests)
        for side in self.sides:
            u[side.arriving] = side.incoming


def declare_flops(count: float) -> None:
    """Under apenet, declares this rank's computation to the simulated CPU; otherwise does nothing."""
    function = getattr(ctypes.CDLL(None), "ape_compute_flops", None)
    if function is not None:
        function(ctypes.c_double(count))


def solve_alone(points: int, iterations: int) -> np.ndarray:
    f_scaled = source_term(points) / points**2
    u = np.zeros((points, points, points))
    for _ in range(iterations):
        u = sweep(np.pad(u, 1, mode="wrap"), f_scaled)
    return u


def gather(grid: MPI.Cartcomm, mine: np.ndarray, points: int) -> np.ndarray | None:
    blocks = grid.gather(mine)
    if blocks is None:
        return None
    whole = np.empty((points, points, points))
    for rank, part in enumerate(blocks):
        where = zip(grid.dims, grid.Get_coords(rank), strict=True)
        whole[tuple(block(points, parts, index) for parts, index in where)] = part
    return whole


def main() -> int:
    options = parse_arguments()
    points = options.points
    grid = process_grid(MPI.COMM_WORLD, options.dims)
    if points < max(grid.dims):
        sys.exit(f"--points = {points}: expected at least one point a process, {max(grid.dims)}")

    share = tuple(block(points, n, i) for n, i in zip(grid.dims, grid.coords, strict=True))
    f_scaled = source_term(points)[share] / points**2
    u = np.zeros([n + 2 for n in f_scaled.shape])
    halo = Halo(grid, f_scaled.shape)

    grid.Barrier()
    begin_s = MPI.Wtime()
    for _ in range(options.iterations):
        halo.exchange(u)
        u[1:-1, 1:-1, 1:-1] = sweep(u, f_scaled)
        declare_flops(FLOPS_PER_POINT * f_scaled.size)
    time_us = grid.allreduce((MPI.Wtime() - begin_s) / options.iterations, MPI.MAX) * 1e6

    whole = gather(grid, u[1:-1, 1:-1, 1:-1], points)
    difference = 0.0
    if whole is not None:
        difference = float(np.abs(whole - solve_alone(points, options.iterations)).max())
        x, y, z = grid.dims[::-1]
        print(f"{points}^3 points on {x}x{y}x{z} processes, {options.iterations} iterations")
        print(f"time per iteration         {time_us:.2f} us")
        print(f"largest value              {np.abs(whole).max():.6e}")
        print(f"difference to one process  {difference:.1e}")
    return 0 if grid.bcast(difference) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
