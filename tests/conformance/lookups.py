"""An MPI program that finds the functions of MPI by name in a library that it opens: lookups.py LIBRARY FLAGS."""

import ctypes
import ctypes.util
import socket
import sys
import time

library = ctypes.CDLL(sys.argv[1], int(sys.argv[2]))
library.MPI_Wtime.restype = ctypes.c_double
world = 0x44000000
if "libmpi.so.40" in sys.argv[1]:
    world = ctypes.byref(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world"))
rank, size = ctypes.c_int(-1), ctypes.c_int(-1)
library.MPI_Init(None, None)
library.MPI_Comm_rank(world, ctypes.byref(rank))
library.MPI_Comm_size(world, ctypes.byref(size))
begin_s = library.MPI_Wtime()
time.sleep(0.5)
library.MPI_Barrier(world)
slept_s = library.MPI_Wtime() - begin_s
print(f"{rank.value} of {size.value}: {slept_s:.3f} s, {time.gmtime().tm_year}, {socket.gethostname()}", flush=True)
library.MPI_Finalize()
