"""SO_RCVLOWAT of a stream: which reads and waits it holds up, and until when."""

import contextlib
import os
import select
import socket
import threading
import time

PARTS = (10, 60, 200)
PART_S = 0.01


def told(name, wait):
    result = wait()
    print(name, result, f"{time.monotonic() - begin:.3f}", flush=True)


def first(connection):
    connection.settimeout(0.005)
    try:
        return len(connection.recv(100))
    except TimeoutError:
        return "none"
    finally:
        connection.settimeout(None)


def in_set(connection):
    events = select.epoll()
    events.register(connection, select.EPOLLIN)
    return len(events.poll())


def lowered(connection):
    """The wait keeps the mark that it has found."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
    mark = (socket.SOL_SOCKET, socket.SO_RCVLOWAT, 50)
    threading.Timer(0.002, connection.setsockopt, mark).start()
    return len(connection.recv(1000))


WAITS = {
    "recv": lambda connection: len(connection.recv(100)),
    "of less": lambda connection: len(connection.recv(5)),
    "peek": lambda connection: len(connection.recv(100, socket.MSG_PEEK)),
    "peek of all": lambda connection: len(connection.recv(200, socket.MSG_PEEK | socket.MSG_WAITALL)),
    "at once": lambda connection: len(connection.recv(100, socket.MSG_DONTWAIT)),
    "read": lambda connection: len(os.read(connection.fileno(), 100)),
    "recvmsg": lambda connection: len(connection.recvmsg(100)[0]),
    "limit": first,
    "poll": lambda connection: len(select.select([connection], [], [])[0]),
    "epoll": in_set,
    "lowered": lowered,
    "to the end": lambda connection: len(connection.recv(1000, socket.MSG_PEEK)),
}

if os.environ["APENET_RANK"] == "0":
    server = socket.create_server(("", 70))
    for name, wait in WAITS.items():
        connection, _ = server.accept()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1000 if name == "to the end" else 50)
        time.sleep(0.001)
        begin = time.monotonic()
        told(name, lambda wait=wait, connection=connection: wait(connection))
        connection.close()
else:
    for _ in WAITS:
        time.sleep(PART_S)
        connection = socket.create_connection(("node0", 70))
        for part in PARTS:
            with contextlib.suppress(OSError):  # the server has what it waited for
                connection.send(bytes(part))
            time.sleep(PART_S)
        connection.close()
