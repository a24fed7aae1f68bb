"""Sockets in the programs that a rank starts, and in the program that takes its place."""

import os
import socket
import subprocess
import sys
import time

READ = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); print(s.recv(99), s.getpeername(), flush=True)"
PROGRAM = [sys.executable, "-c", READ]

if os.environ["APENET_RANK"] == "0":
    server = socket.create_server(("", 70))
    for _ in range(3):
        connection, _ = server.accept()
        connection.sendall(b"to whom it concerns")
        time.sleep(0.01)
        print("the end comes:", connection.recv(9), f"{time.monotonic() - 1e9:.4f} s", socket.gethostname())
else:
    time.sleep(0.001)
    for closes in (True, False):
        connection = socket.create_connection(("node0", 70))
        child = subprocess.Popen([*PROGRAM, str(connection.fileno())], pass_fds=[connection.fileno()])
        if closes:
            connection.close()
        child.wait()
        connection.close()
    print(subprocess.run(["hostname"], capture_output=True, check=True).stdout.decode().strip(), flush=True)
    hidden = socket.create_connection(("node0", 70))
    kept = hidden.dup()
    os.set_inheritable(kept.fileno(), True)
    os.execv(sys.executable, [*PROGRAM, str(kept.fileno())])
