"""Random numbers of the system, of a rank, its threads and children, and the program that it becomes at the end."""

import os
import subprocess
import sys
import threading
import uuid


def draw(numbers):
    numbers.append(os.urandom(5).hex())


numbers = [uuid.uuid4().hex]
drawn = [[] for _ in range(3)]
threads = [threading.Thread(target=draw, args=(one,)) for one in drawn]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
numbers += [number for one in drawn for number in one]
if sys.argv[1] != "child":
    for _ in range(2):
        child = [sys.executable, sys.argv[0], "child"]
        numbers += subprocess.run(child, capture_output=True, text=True, check=True).stdout.split()
    reads, writes = os.pipe()
    forked = os.fork()
    if forked == 0:
        os.write(writes, os.urandom(5).hex().encode())
        os._exit(0)
    os.waitpid(forked, 0)
    numbers.append(os.read(reads, 10).decode())
print(*numbers, sep="\n", flush=True)
if sys.argv[1] == "first":
    os.execv(sys.executable, [sys.executable, sys.argv[0], "second"])
