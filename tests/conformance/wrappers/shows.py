"""What shows.c prints."""

import os
import time

from mpi4py import MPI

date = int(time.time())
before = MPI.Wtime()
time.sleep(0.5)
MPI.COMM_WORLD.Barrier()
print(MPI.COMM_WORLD.rank, date, os.uname().nodename, f"{MPI.Wtime() - before:.3f}")
