"""Python's multiprocessing: each case prints the virtual time that it took, and what came.

The argument is the start method: fork, spawn or forkserver; or "manager" for a server of objects.
"""

import concurrent.futures
import multiprocessing
import sys
import time

times_s: list[float] = []


def show(name: str, found: object) -> None:
    """Prints one case, and begins the next."""
    times_s.append(time.monotonic())
    print(f"{name}: {(times_s[-1] - times_s[-2]) * 1e3:.0f} ms, {found}", flush=True)


def square(number: int) -> int:
    """Takes 10 ms for each unit."""
    time.sleep(0.01 * number)
    return number * number


def put_later(queue, number: int) -> None:
    """Puts it after as many units of 10 ms."""
    time.sleep(0.01 * number)
    queue.put(number)


def add(lock, total) -> None:
    """Adds 1 five times, each in 10 ms under the lock."""
    for _ in range(5):
        with lock:
            before = total.value
            time.sleep(0.01)
            total.value = before + 1


def answer(pipe) -> None:
    """Answers each number by its double, after 20 ms."""
    while (number := pipe.recv()) is not None:
        time.sleep(0.02)
        pipe.send(2 * number)


def wait_for(event, queue) -> None:
    """Tells when the event has come."""
    event.wait()
    queue.put(round(time.monotonic(), 3))


def meet(barrier, queue, number: int) -> None:
    """Comes to the barrier after as many units of 10 ms."""
    time.sleep(0.01 * number)
    barrier.wait()
    queue.put(round(time.monotonic(), 3))


def append(shared, number: int) -> None:
    """Appends it after as many units of 10 ms."""
    time.sleep(0.01 * number)
    shared.append(number)


def in_processes(context, work, arguments) -> list[int]:
    """The exit codes of processes, one for each tuple of arguments."""
    started = [context.Process(target=work, args=one) for one in arguments]
    for one in started:
        one.start()
    for one in started:
        one.join()
    return [one.exitcode for one in started]


def meet_in_all_ways(method: str) -> None:
    """All cases without a server."""
    context = multiprocessing.get_context(method)
    times_s.append(time.monotonic())
    with context.Pool(4) as pool:
        show("pool", pool.map(square, range(8), chunksize=1))
        show("unordered", list(pool.imap_unordered(square, [5, 1, 4, 2])))
        show("apply", pool.apply(square, (3,)))
    show("end of the pool", 0)

    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as executor:
        show("executor", list(executor.map(square, range(6))))
    show("end of the executor", 0)

    queue = context.Queue()
    started = [context.Process(target=put_later, args=(queue, number)) for number in (4, 1, 3, 2)]
    for one in started:
        one.start()
    show("queue", [queue.get() for _ in started])
    for one in started:
        one.join()
    show("joined", [one.exitcode for one in started])

    lock = context.Lock()
    total = context.Value("i", 0, lock=False)
    in_processes(context, add, [(lock, total)] * 3)
    show("lock", total.value)

    here, there = context.Pipe()
    process = context.Process(target=answer, args=(there,))
    process.start()
    there.close()
    found = []
    for number in range(3):
        here.send(number)
        found.append(here.recv())
    here.send(None)
    process.join()
    show("pipe", found)

    event = context.Event()
    queue = context.Queue()
    started = [context.Process(target=wait_for, args=(event, queue)) for _ in range(2)]
    for one in started:
        one.start()
    time.sleep(0.05)
    event.set()
    show("event", len({queue.get() for _ in started}))
    for one in started:
        one.join()

    barrier = context.Barrier(3)
    in_processes(context, meet, [(barrier, queue, number) for number in (1, 3, 2)])
    show("barrier", len({queue.get() for _ in range(3)}))


def manage() -> None:
    """A list in a process of its own."""
    context = multiprocessing.get_context("fork")
    times_s.append(time.monotonic())
    with context.Manager() as manager:
        shared = manager.list()
        in_processes(context, append, [(shared, number) for number in (3, 1, 2)])
        show("manager", list(shared))


if __name__ == "__main__":
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    if sys.argv[1] == "manager":
        manage()
    else:
        meet_in_all_ways(sys.argv[1])
