"""Rank 0 serves three requests by http.server; the other fetches them by urllib."""

import http.server
import os
import time
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.path.encode() * 1000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, template, *values):
        print(f"{time.monotonic():.9f}", template % values)


if os.environ["APENET_RANK"] == "0":
    with http.server.HTTPServer(("", 8000), Handler) as server:
        for _ in range(3):
            server.handle_request()
else:
    time.sleep(0.001)  # until the server listens
    for i in range(3):
        with urllib.request.urlopen(f"http://node0:8000/{i}") as answer:
            print(f"{time.monotonic():.9f}", len(answer.read()))
