"""Waits of Python's libraries that only this process can end take their virtual time, an hour each, and no real time.

Prints one line a case: its name, the result, and the time in seconds.
"""

import asyncio
import queue
import threading
import time

from mpi4py import MPI

HOUR_S = 3600


def case(name, run, digits=2):
    began_s = time.monotonic()
    result = run()
    print(MPI.COMM_WORLD.rank, name, result, f"{time.monotonic() - began_s:.{digits}f}", flush=True)


def acquires() -> bool:
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire(timeout=HOUR_S)


def gets() -> str:
    try:
        queue.Queue().get(timeout=HOUR_S)
    except queue.Empty:
        return "empty"
    return "item"


def is_notified() -> bool:
    event = threading.Event()

    def tells() -> None:
        time.sleep(2)
        event.set()

    threading.Thread(target=tells).start()
    return event.wait(HOUR_S)


async def calls_later() -> int:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_later(HOUR_S, future.set_result, 7)
    return await future


async def times_out() -> str:
    try:
        await asyncio.wait_for(asyncio.Event().wait(), HOUR_S)
    except TimeoutError:
        return "late"
    return "set"


async def gathers() -> int:
    await asyncio.gather(*(asyncio.sleep(HOUR_S * i / 10) for i in range(11)))
    return 11


def sleeps(result: int) -> int:
    time.sleep(2)
    return result


async def awaits_thread() -> int:
    return await asyncio.to_thread(sleeps, 5)


async def awaits_thread_and_sleeps() -> int:
    result = await asyncio.wait_for(asyncio.to_thread(sleeps, 6), HOUR_S)
    await asyncio.sleep(HOUR_S)
    return result


async def awaits_process() -> int:
    process = await asyncio.create_subprocess_exec("true")
    result = await process.wait()
    await asyncio.sleep(HOUR_S)
    return result


def run_alone() -> None:
    case("event", lambda: threading.Event().wait(HOUR_S))
    case("lock", acquires)
    case("queue", gets)
    case("asyncio.sleep", lambda: asyncio.run(asyncio.sleep(HOUR_S)))
    case("call_later", lambda: asyncio.run(calls_later()))
    case("wait_for", lambda: asyncio.run(times_out()))
    case("gather", lambda: asyncio.run(gathers()))


run_alone()
# Threads that wait for the interpreter's lock do so for 5 ms at a time, which may pass in the host.
case("event of a thread", is_notified, 0)
never = threading.Event()
threading.Thread(target=never.wait, daemon=True).start()
run_alone()
case("to_thread", lambda: asyncio.run(awaits_thread()), 0)
case("wait_for to_thread", lambda: asyncio.run(awaits_thread_and_sleeps()), 0)
if MPI.COMM_WORLD.size == 1:
    case("process", lambda: asyncio.run(awaits_process()), 0)
