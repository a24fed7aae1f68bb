"""Ends as the argument says, beside a process, semaphores and shared memory that Python names and has not removed."""

import multiprocessing
import os
import signal
import sys
from multiprocessing import shared_memory


def work(lock, queue):
    with lock:
        queue.put(1)
    signal.pause()


def main():
    from mpi4py import MPI

    spawn = multiprocessing.get_context("spawn")
    lock, queue = spawn.Lock(), spawn.Queue()
    memory = shared_memory.SharedMemory(create=True, size=4096)
    removed = shared_memory.SharedMemory(create=True, size=4096)
    removed.close()
    removed.unlink()
    started = spawn.Process(target=work, args=(lock, queue))
    started.start()
    queue.get()
    print(f"rank {MPI.COMM_WORLD.rank} has {memory.name} sem.{lock._semlock.name[1:]}", flush=True)
    match sys.argv[1]:
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "aborts":
            MPI.COMM_WORLD.Abort(3)
        case "exits":
            os._exit(0)
        case "waits":
            started.join()


if __name__ == "__main__":
    main()
