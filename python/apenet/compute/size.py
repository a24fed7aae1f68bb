"""The size of one rank's part of a problem, to which the times of regions are fitted."""

from __future__ import annotations

import math
import re
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from apenet.base.errors import InputError

EXPECTED = "a number of sites of one rank, or a lattice and its process grid such as 16x16x16x32/2x2x2x2"
_LATTICE = re.compile(r"([0-9]+(?:x[0-9]+){0,5})/([0-9]+(?:x[0-9]+){0,5})")
_MOST = 10**15


class Size(BaseModel):
    """The size of one rank's part.

    `inner`: of its sites, those without a neighbour on another rank. `halo`: of all its faces to other ranks the sites
    together, so that a site in an edge counts for each of its faces.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    given: str
    sites: float = Field(gt=0, le=_MOST, allow_inf_nan=False)
    inner: float = Field(ge=0, le=_MOST, allow_inf_nan=False)
    halo: float = Field(ge=0, le=12 * _MOST, allow_inf_nan=False)

    @property
    def counts(self) -> tuple[float, float, float]:
        """The counts on which the times of regions depend."""
        return self.sites, self.inner, self.halo

    @classmethod
    def of_share(cls, ranks: int) -> Self:
        """The default without --size: each rank has an equal share of one problem."""
        return cls(given=f"1/{ranks} of the problem", sites=1 / ranks, inner=1 / ranks, halo=0)


def parse_size(text: str, ranks: int) -> Size:
    """Reads the value of --size. Raises InputError."""
    lattice = _LATTICE.fullmatch(text)
    if lattice is None:
        return _number(text)
    whole, grid = ([int(part) for part in group.split("x")] for group in lattice.groups())
    if len(whole) != len(grid):
        raise InputError("size", text, "as many extents of the process grid as of the lattice")
    if 0 in whole or 0 in grid or any(extent % parts for extent, parts in zip(whole, grid, strict=True)):
        raise InputError("size", text, "a process grid whose extents divide those of the lattice")
    if math.prod(grid) != ranks:
        raise InputError("size", text, f"a process grid of {ranks} ranks: this one has {math.prod(grid)}")
    local = [extent // parts for extent, parts in zip(whole, grid, strict=True)]
    inner = math.prod(max(extent - 2, 0) if parts > 1 else extent for extent, parts in zip(local, grid, strict=True))
    sites = math.prod(local)
    halo = sum(2 * sites // extent for extent, parts in zip(local, grid, strict=True) if parts > 1)
    return _checked(text, sites, inner, halo)


def _number(text: str) -> Size:
    try:
        sites = float(text)
    except ValueError:
        raise InputError("size", text, EXPECTED) from None
    return _checked(text, sites, sites, 0)


def _checked(text: str, sites: float, inner: float, halo: float) -> Size:
    if not 0 < sites <= _MOST:
        raise InputError("size", text, EXPECTED)
    return Size(given=text, sites=sites, inner=inner, halo=halo)
