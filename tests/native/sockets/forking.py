"""A server that forks for each connection; three workers that accept; a child that a signal ends."""

import os
import signal
import socket
import sys
import time

HOW, CLIENTS = sys.argv[1], 4


def serve_forking(server):
    children = []
    for number in range(CLIENTS):
        connection, _ = server.accept()
        children.append(os.fork())
        if children[-1] == 0:
            server.close()
            got = connection.recv(100)
            time.sleep(0.01)
            connection.sendall(b"child %d to " % number + got)
            os._exit(number)
        connection.close()
    for child in children:
        print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def serve_workers(server):
    children = []
    for number in range(3):
        children.append(os.fork())
        if children[-1] == 0:
            while True:
                connection, _ = server.accept()
                got = connection.recv(100)
                time.sleep(0.01)
                connection.sendall(b"worker %d to " % number + got)
                connection.close()
    time.sleep(0.5)
    for child in children:
        os.kill(child, signal.SIGTERM)
        print("signal", os.WTERMSIG(os.waitpid(child, 0)[1]))


def serve_killed(server):
    for _ in range(CLIENTS):
        connection, _ = server.accept()
        child = os.fork()
        if child == 0:
            connection.recv(100)
            connection.sendall(b"once")
            connection.recv(100)
        connection.close()
        time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        print("signal", os.WTERMSIG(os.waitpid(child, 0)[1]))


def ask(name):
    connection = socket.create_connection(("node0", 70))
    connection.sendall(b"client of " + name.encode())
    got = b""
    while part := connection.recv(100):
        got += part
    print(got.decode(), f"at {time.monotonic() - 1e9:.6f} s", socket.gethostname())


if os.environ["APENET_RANK"] == "0":
    server = socket.create_server(("", 70))
    {"forks": serve_forking, "workers": serve_workers, "killed": serve_killed}[HOW](server)
else:
    time.sleep(0.001)
    for _ in range(CLIENTS // 2):
        ask(os.environ["APENET_RANK"])
