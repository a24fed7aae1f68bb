"""A ring of CuPy's arrays through mpi4py, which takes the device pointer of an array that it is given."""

import cupy
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
for count in (1, 100, 1000, 10_000, 1_000_000):
    sent = cupy.arange(count, dtype=cupy.float64) * 2 + rank
    got = cupy.full(count, -1.0)
    cupy.cuda.get_current_stream().synchronize()
    requests = [world.Irecv(got, (rank - 1) % size, 7), world.Isend(sent, (rank + 1) % size, 7)]
    MPI.Request.Waitall(requests)
    expected = numpy.arange(count) * 2.0 + (rank - 1) % size
    assert (cupy.asnumpy(got) == expected).all(), f"rank {rank}: {count} elements"
    if rank == 0:
        print(f"{count}: {MPI.Wtime():.9f}")
