"""Three ranks that wait for each other for ever, each in another call on a socket."""

import os
import select
import socket
import threading
import time

PORT = 70

rank = int(os.environ["APENET_RANK"])
server = socket.create_server(("", PORT))
time.sleep(0.001)
if rank == 0:
    first, _ = server.accept()
    threading.Thread(target=server.accept).start()
    first.recv(1)
elif rank == 1:
    connection = socket.create_connection(("node0", PORT))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("", PORT + 1))
    select.select([connection, datagrams], [], [])
else:
    connection = socket.create_connection(("node1", PORT))
    connection.recv(1)
