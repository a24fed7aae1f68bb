"""APENet in software: unmodified MPI programs on a simulated 3D torus, in deterministic virtual time."""

from apenet._core import __version__

__all__ = ["__version__"]
