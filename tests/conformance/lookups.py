"""An MPI program that finds MPI's functions by name in a library that it opens: lookups.py LIBRARY FLAGS PREFIX."""

import ctypes
import ctypes.util
import socket
import sys
import time

library = ctypes.CDLL(sys.argv[1], int(sys.argv[2]))


def mpi(name: str):
    """The function MPI_name, or PMPI_name for the prefix P."""
    return getattr(library, f"{sys.argv[3]}MPI_{name}")


mpi("Wtime").restype = ctypes.c_double
world = 0x44000000
if "libmpi.so.40" in sys.argv[1]:
    world = ctypes.byref(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world"))
rank, size = ctypes.c_int(-1), ctypes.c_int(-1)
mpi("Init")(None, None)
mpi("Comm_rank")(world, ctypes.byref(rank))
mpi("Comm_size")(world, ctypes.byref(size))
begin_s = mpi("Wtime")()
time.sleep(0.5)
mpi("Barrier")(world)
slept_s = mpi("Wtime")() - begin_s
print(f"{rank.value} of {size.value}: {slept_s:.3f} s, {time.gmtime().tm_year}, {socket.gethostname()}", flush=True)
mpi("Finalize")()
