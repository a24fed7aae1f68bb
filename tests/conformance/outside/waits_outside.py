"""What Python's libraries do to wait for something outside; each case prints its name and "right", or what went wrong.

A case is right if it has the right result, before its limit, after no more turns than the real time that it took has
room for.
"""

import asyncio
import concurrent.futures
import multiprocessing
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from mpi4py import MPI

MOMENT_S = 0.004
BRIEFLY = [sys.executable, "-S", "-c", "import time; time.sleep(0.03)"]


def host_s() -> float:
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])


def turns_until(has_come, wait=time.sleep) -> int:
    turns = 0
    while not has_come():
        wait(MOMENT_S)
        turns += 1
    return turns


def case(name: str, expected, run, limit_s: float = 100) -> None:
    began_s, host_began_s = MPI.Wtime(), host_s()
    try:
        result = run()
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    took_s = MPI.Wtime() - began_s
    if expected is not None:
        verdict = result == expected
    else:
        most = (host_s() - host_began_s + 0.02) / MOMENT_S + 4  # the uptime has two digits
        verdict = isinstance(result, int) and result <= most
    print(f"{name}:", "right" if verdict and took_s < limit_s else f"{result!r} after {took_s} s", flush=True)


def computes() -> int:
    end_s = time.process_time() + 0.03
    while time.process_time() < end_s:
        pass
    return 7


def polls_process() -> int:
    process = subprocess.Popen(BRIEFLY)
    return turns_until(lambda: process.poll() is not None)


def polls_with_event() -> int:
    process = subprocess.Popen(BRIEFLY)
    never = threading.Event()
    return turns_until(lambda: process.poll() is not None, never.wait)


async def waits_in_a_loop() -> int:
    process = await asyncio.create_subprocess_exec(*BRIEFLY)
    return await asyncio.wait_for(process.wait(), 50)


async def polls_in_a_loop() -> int:
    process = subprocess.Popen(BRIEFLY)
    turns = 0
    while process.poll() is None:
        await asyncio.sleep(MOMENT_S)
        turns += 1
    return turns


def polls_future() -> int:
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        future = pool.submit(computes)
        turns = turns_until(future.done)
        assert future.result() == 7
    return turns


def polls_thread() -> int:
    # A computation without Python's lock, and one that polls a child.
    thread = threading.Thread(target=subprocess.run, args=(BRIEFLY,))
    thread.start()
    return turns_until(lambda: not thread.is_alive())


def polls_computing_thread() -> int:
    thread = threading.Thread(target=lambda: sum(range(1_000_000)))
    thread.start()
    return turns_until(lambda: not thread.is_alive())


def polls_member() -> int:
    process = multiprocessing.Process(target=computes)
    process.start()
    turns = turns_until(lambda: not process.is_alive())
    assert process.exitcode == 0
    return turns


def polls_event_of_a_process() -> int:
    event = multiprocessing.Event()
    process = multiprocessing.Process(target=event.set)
    process.start()
    turns = turns_until(event.is_set)
    process.join(50)
    return turns


def gets_from_a_process() -> int:
    answers = multiprocessing.Queue()
    process = multiprocessing.Process(target=lambda: answers.put(computes()))
    process.start()
    answer = answers.get(timeout=50)
    process.join(50)
    return answer


def gets_from_a_thread() -> int:
    answers = queue.Queue()
    threading.Thread(target=lambda: answers.put(computes())).start()
    return answers.get(timeout=50)


def gets_from_a_pool() -> int:
    with multiprocessing.Pool(2) as pool:
        return pool.apply_async(sum, ([1, 2, 3],)).get(timeout=50)


def reads_of_a_process() -> bytes:
    return subprocess.check_output(["sh", "-c", "sleep 0.03; echo x"])


def gets_from_an_executor() -> bytes:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(reads_of_a_process).result(timeout=50)


async def awaits_executor() -> bytes:
    # What is left of the limit must not take real time in a later sleep.
    return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, reads_of_a_process), 5000)


def joins_a_thread() -> bool:
    thread = threading.Thread(target=subprocess.run, args=(BRIEFLY,))
    thread.start()
    thread.join(50)
    return thread.is_alive()


def connects_to_a_server() -> bytes:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    text = f"import socket; s = socket.create_server({address!r}); c, _ = s.accept(); c.sendall(b'hello')"
    subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep(0.03); {text}"], start_new_session=True)
    end_s = time.monotonic() + 50
    while True:
        try:
            with socket.create_connection(address, timeout=5) as connection:
                return connection.recv(5)
        except ConnectionRefusedError:
            if time.monotonic() > end_s:
                raise
            time.sleep(MOMENT_S)


def times_out() -> str:
    try:
        subprocess.run(["sleep", "1000"], timeout=0.05, check=False)
    except subprocess.TimeoutExpired:
        return "timed out"
    return "ended"


CASES = {
    "run with a limit": (0, lambda: subprocess.run(BRIEFLY, timeout=50, check=False).returncode),
    "output with a limit": (b"x\n", lambda: subprocess.check_output(["sh", "-c", "sleep 0.03; echo x"], timeout=50)),
    "a limit that passes": ("timed out", times_out),
    "process": (None, polls_process),
    "process and event": (None, polls_with_event),
    "process in a loop": (0, lambda: asyncio.run(waits_in_a_loop())),
    "process and asyncio.sleep": (None, lambda: asyncio.run(polls_in_a_loop())),
    "future": (None, polls_future),
    "thread of a process": (None, polls_thread),
    "computing thread": (None, polls_computing_thread),
    "member": (None, polls_member),
    "event of a process": (None, polls_event_of_a_process),
    "queue of a process": (7, gets_from_a_process),
    "queue of a thread": (7, gets_from_a_thread),
    "pool of processes": (6, gets_from_a_pool),
    "executor": (b"x\n", gets_from_an_executor),
    "executor in a loop": (b"x\n", lambda: asyncio.run(awaits_executor())),
    "join of a thread": (False, joins_a_thread),
    "server": (b"hello", connects_to_a_server),
}

multiprocessing.set_start_method("fork")
for label, (wanted, action) in CASES.items():
    case(label, wanted, action)
