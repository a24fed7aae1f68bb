"""What ends a wait for a socket besides the network: alarms, signals, the end of a child, a file."""

import os
import select
import signal
import socket
import time


class HandledError(Exception):
    pass


def raise_it(*_):
    raise HandledError


def note(what):
    print(what, f"{time.monotonic() - 1e9:.4f}", flush=True)


def in_child(act):
    child = os.fork()
    if child == 0:
        time.sleep(0.05)
        act()
        os._exit(0)
    return child


def check(cause, begin):
    for name, call in CALLS.items():
        child = begin()
        try:
            call()
            note(f"{name} returned")
        except HandledError:
            note(f"{name} by {cause}")
        if child:
            os.waitpid(child, 0)


server = socket.create_server(("", 70))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("", 71))
out, into = os.pipe()
epoll, poll = select.epoll(), select.poll()
for file in (server, out):
    epoll.register(file, select.EPOLLIN)
    poll.register(file, select.POLLIN)
CALLS = {
    "accept": server.accept,
    "recv": lambda: datagrams.recv(9),
    "poll": poll.poll,
    "epoll": epoll.poll,
    "select": lambda: select.select([server, out], [], []),
}

signal.signal(signal.SIGALRM, raise_it)
check("an alarm", lambda: signal.setitimer(signal.ITIMER_REAL, 0.05) and None)
signal.signal(signal.SIGUSR1, raise_it)
parent = os.getpid()
check("a signal", lambda: in_child(lambda: os.kill(parent, signal.SIGUSR1)))
signal.signal(signal.SIGCHLD, raise_it)
check("a child's end", lambda: in_child(lambda: None))
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
del CALLS["accept"], CALLS["recv"]


def write():
    os.write(into, b"x")
    time.sleep(0.01)


for name, call in CALLS.items():
    child = in_child(write)
    call()
    note(f"{name} by a pipe")
    os.read(out, 1)
    os.waitpid(child, 0)

signal.signal(signal.SIGALRM, lambda *_: note("handled"))
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.02)
child = in_child(lambda: socket.create_connection(("localhost", 70)))
server.accept()
note("accepted")
os.waitpid(child, 0)

# A handler may start processes and use sockets: it runs once the call that it has interrupted is over.


def start_from_handler(*_):
    if os.fork() == 0:
        socket.create_connection(("localhost", 70)).sendall(b"by a child of the handler")
        os._exit(0)


signal.signal(signal.SIGALRM, start_from_handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(server.accept()[0].recv(99).decode(), flush=True)
os.wait()
