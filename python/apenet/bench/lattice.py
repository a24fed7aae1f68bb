"""Halos of a lattice: the bytes that each node sends to each neighbour, from the lattice and the bytes per site.

Three dimensions of the lattice are spread over the grid of nodes, the others stay inside a node. A message is the
surface of the node's part across one dimension, with as many sites as the part has in the other dimensions. Wilson
fermions send half-spinors, two spins of three complex colours: 24 bytes per site with 16-bit numbers, 48 in single
precision, 96 in double.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from apenet.base.errors import InputError
from apenet.base.sizes import LARGEST_BYTES


@dataclass(frozen=True)
class Lattice:
    """Sites in each dimension of the whole lattice, and the bytes that a surface site sends."""

    extents: tuple[int, ...]
    site_bytes: int

    def faces(self, grid: tuple[int, ...]) -> list[int]:
        """Bytes of the message along each dimension of the grid.

        The first dimensions of the lattice are spread over those of the grid. Raises InputError if they do not fit.
        """
        local = self._part(grid)
        sites = math.prod(local)
        faces = [sites // local[dimension] * self.site_bytes for dimension in range(len(grid))]
        if max(faces, default=0) > LARGEST_BYTES:
            raise InputError(
                "lattice", str(self), f"surfaces of at most {LARGEST_BYTES} bytes, not {max(faces)}: fewer sites"
            )
        return faces

    def sites(self, grid: tuple[int, ...]) -> int:
        """Sites of a node's part. Raises InputError if the lattice does not fit the grid."""
        return math.prod(self._part(grid))

    def _part(self, grid: tuple[int, ...]) -> list[int]:
        if len(self.extents) < len(grid):
            raise InputError("lattice", str(self), f"at least the {len(grid)} dimensions of the nodes' grid")
        local = list(self.extents)
        for dimension, nodes in enumerate(grid):
            if local[dimension] % nodes:
                shape = "x".join(map(str, grid))
                raise InputError(
                    "lattice", str(self), f"a multiple of {nodes} sites in each dimension of {shape} nodes"
                )
            local[dimension] //= nodes
        return local

    def __str__(self) -> str:
        return "x".join(map(str, self.extents))


def parse_lattice(text: str, site_bytes: int) -> Lattice:
    """Parses `64x64x64x192`; `site_bytes` are the bytes per site."""
    if re.fullmatch(r"[1-9][0-9]{0,5}(x[1-9][0-9]{0,5}){0,6}", text) is None:
        raise InputError("lattice", text, "sites in each dimension, such as 64x64x64x192")
    if site_bytes < 1:
        raise InputError("site-bytes", site_bytes, "a whole number of at least 1")
    return Lattice(tuple(int(extent) for extent in text.split("x")), site_bytes)
