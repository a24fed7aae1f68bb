"""A rank that runs 20 children, and prints which of them ends when: child k sleeps for 10 (20 - k) ms."""

import os
import subprocess

from mpi4py import MPI

comm = MPI.COMM_WORLD
comm.barrier()
started = [subprocess.Popen(["sh", "-c", f"sleep {0.01 * (20 - k):.2f}; exit {k}"]) for k in range(20)]
number = {child.pid: k for k, child in enumerate(started)}
for _ in started:
    process, status = os.wait()
    print(f"rank {comm.rank}: child {number[process]} with {os.waitstatus_to_exitcode(status)}", flush=True)
print(f"rank {comm.rank}: at {MPI.Wtime():.2f}", flush=True)
comm.barrier()
