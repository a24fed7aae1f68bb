"""Every rank prints; one of them raises while the others wait for it."""

from mpi4py import MPI

world = MPI.COMM_WORLD
print("rank", world.rank, "begins", flush=True)
total = world.allreduce(world.rank)
print("rank", world.rank, "has", total)
if world.rank == 2:
    raise ValueError("rank 2 has had enough")
world.barrier()
print("rank", world.rank, "is past the barrier")
