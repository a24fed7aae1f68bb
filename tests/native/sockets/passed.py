"""Sockets that come in a message, as standard streams, and to a program without an environment."""

import os
import socket
import subprocess
import sys
import time

STREAMS = sys.argv[1]

if os.environ["APENET_RANK"] == "0":
    server = socket.create_server(("", 70))
    near, far = socket.socketpair()
    if os.fork() == 0:
        _, files, _, _ = socket.recv_fds(far, 9, 1)
        got = socket.socket(fileno=files[0])
        got.sendall(b"the worker got " + got.recv(99))
        os._exit(0)
    connection, _ = server.accept()
    socket.send_fds(near, [b"it"], [connection.fileno()])
    connection.close()
    os.wait()
    for arguments in ([], ["fdopen"]):
        connection, _ = server.accept()
        program = [STREAMS, *arguments]
        subprocess.run(program, stdin=connection, stdout=connection, env={}, check=True)
        connection.close()
else:
    time.sleep(0.001)
    for _ in range(3):
        connection = socket.create_connection(("node0", 70))
        connection.sendall(b"one\ntwo\n")
        connection.shutdown(socket.SHUT_WR)
        print(connection.makefile().read().splitlines(), f"{time.monotonic() - 1e9:.6f}")
