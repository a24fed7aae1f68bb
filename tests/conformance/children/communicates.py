"""Python's subprocess with pipes in both directions: each case prints the virtual time that it took, and what came."""

import subprocess
import sys
from subprocess import PIPE

from mpi4py import MPI

ANSWERS = """
import sys, time
for line in sys.stdin:
    time.sleep(0.1)
    print(line.upper(), end="", flush=True)
"""

times_s = [MPI.Wtime()]


def show(name: str, found: object) -> None:
    """Prints one case, and begins the next."""
    times_s.append(MPI.Wtime())
    print(f"{name}: {(times_s[-1] - times_s[-2]) * 1e3:.1f} ms, {found}", flush=True)


done = subprocess.run(["cat"], input=b"x" * 300_000, capture_output=True, check=True)
show("cat", len(done.stdout))

done = subprocess.run(
    ["sh", "-c", "read one; sleep 0.2; echo $one; cat"], input="a\nb\nc\n", capture_output=True, text=True, check=True
)
show("shell", done.stdout.split())

with subprocess.Popen([sys.executable, "-c", ANSWERS], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as answers:
    for word in ("one", "two", "three"):
        answers.stdin.write(word + "\n")
        show("coprocess", answers.stdout.readline().strip())
    answers.stdin.close()
show("its end", answers.returncode)

first = subprocess.Popen(["sh", "-c", "for i in 1 2 3; do sleep 0.1; echo $i; done"], stdout=PIPE)
second = subprocess.Popen(["cat"], stdin=first.stdout, stdout=PIPE, text=True)
first.stdout.close()
for line in second.stdout:
    show("pipeline", line.strip())
first.wait()
second.wait()

try:
    subprocess.run(["sh", "-c", "read one; sleep 9"], input=b"go\n", timeout=0.5, capture_output=True, check=True)
except subprocess.TimeoutExpired:
    show("timeout", "expired")
