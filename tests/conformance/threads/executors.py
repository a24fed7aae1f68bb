"""An event loop whose executors sleep and exchange messages: it waits without a limit, then with one."""

import asyncio
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
TASKS = 4
ROUNDS = 6


def exchange(task: int, number: int) -> int:
    """Takes 10 ms a task number, and a message to the next rank."""
    time.sleep(0.01 * (task + 1))
    return comm.sendrecv(
        number,
        (comm.rank + 1) % comm.size,
        sendtag=task,
        source=(comm.rank - 1) % comm.size,
        recvtag=task,
    )


async def work(task: int, done: list[str]) -> None:
    loop = asyncio.get_running_loop()
    for number in range(ROUNDS):
        got = await loop.run_in_executor(None, exchange, task, number)
        done.append(f"{task}.{got}")


async def main() -> None:
    for limit_s in (None, 50):
        done: list[str] = []
        await asyncio.wait_for(asyncio.gather(*(work(task, done) for task in range(TASKS))), limit_s)
        print(f"rank {comm.rank}: {' '.join(done)} at {MPI.Wtime():.9f}")


asyncio.run(main())
