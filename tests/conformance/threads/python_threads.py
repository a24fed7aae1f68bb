"""Threads of Python: a queue, a timer, an event, and a pool that exchanges messages."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from mpi4py import MPI

comm = MPI.COMM_WORLD
jobs: queue.Queue[int | None] = queue.Queue()
lock = threading.Lock()


def say(text: str) -> None:
    with lock:
        print(f"rank {comm.rank}: {text} at {MPI.Wtime():.3f}", flush=True)


def consume(name: int) -> None:
    while (job := jobs.get()) is not None:
        time.sleep(0.01 * (job % 3 + 1))
        say(f"thread {name} took {job}")


def exchange(task: int) -> int:
    source, to = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    return comm.sendrecv(task, to, sendtag=task, source=source, recvtag=task)


over = threading.Event()
threading.Timer(0.5, lambda: (say("timer"), over.set())).start()
threads = [threading.Thread(target=consume, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
for number in range(9):
    jobs.put(number)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
with ThreadPoolExecutor(4) as pool:
    say(f"sum {sum(pool.map(exchange, range(12)))}")
while not over.wait(0.2):
    say("waits")
say("ends")
