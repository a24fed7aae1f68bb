"""Calls that mpi4py makes with counts of type MPI_Count if the process has such functions."""

from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
above, below = (rank + 1) % size, (rank - 1) % size
counts = [one + 1 for one in range(size)]
places = [sum(counts[:one]) for one in range(size)]
own = array("i", [rank] * (rank + 1))
said = []


def note(*values):
    said.append([list(value) if isinstance(value, array) else value for value in values])


all_words = array("i", [-1] * sum(counts))
world.Gatherv(own, [all_words, counts, places, MPI.INT], 0)
note("Gatherv", all_words)
world.Allgatherv(own, [all_words, counts, places, MPI.INT])
note("Allgatherv", all_words)
part = array("i", [-1] * (rank + 1))
world.Scatterv([all_words if rank == 0 else None, counts, places, MPI.INT], part, 0)
note("Scatterv", part)
sent, got = array("i", [rank] * size), array("i", [-1] * size)
each = [1] * size, list(range(size))
world.Alltoallv([sent, *each, MPI.INT], [got, *each, MPI.INT])
note("Alltoallv", got)
world.Iallgatherv(own, [all_words, counts, places, MPI.INT]).Wait()
note("Iallgatherv", all_words)
total = array("i", [0])
world.Reduce_scatter(sent, total, [1] * size)
note("Reduce_scatter", total)
requests = [world.Send_init(sent, above), world.Recv_init(got, below)]
for _ in range(2):
    MPI.Prequest.Startall(requests)
    MPI.Request.Waitall(requests)
for request in requests:
    request.Free()
note("persistent", got)
window = MPI.Win.Allocate(4, 1, comm=world)
window.Fence()
window.Put([array("i", [7 + rank]), MPI.INT], above)
window.Fence()
note("Put", window.tomemory().cast("i").tolist())
window.Free()
note("pickled", world.gather({"rank": rank}), world.allgather("a" * rank), world.alltoall(list(range(size))))
note("pickled", world.sendrecv(rank, above, source=below), world.allreduce(rank), world.bcast(rank))
between = world.Split(rank % 2).Create_intercomm(0, world, 1 - rank % 2)
note("between", between.allgather(rank))
for one in range(size):
    world.Barrier()
    if one == rank:
        print(rank, *said, sep="\n", flush=True)
