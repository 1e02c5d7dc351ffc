"""A cache in the router of a small network, a server behind it that says what it was asked, and clients."""

from __future__ import annotations

from .beside import CLIENT, ROUTER, Network, Program

# A server that says what it was asked. `/ID/SIZE/SECONDS` is an object with an age; words after that change
# the response.
ORIGIN = """
import json, socket, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name, size, age, *words = self.path.strip("/").split("/")
        tag = '"%s"' % name
        known = self.headers["If-None-Match"] == tag
        print(json.dumps({"method": self.command, "path": self.path, "range": self.headers["Range"],
                          "status": 304 if known else 200}))
        self.send_response(304 if known else 200)
        self.send_header("ETag", tag)
        self.send_header("Cache-Control", "no-store" if "unstored" in words else "max-age=" + age)
        if "vary" in words:
            self.send_header("Vary", "Accept-Language")
        body = bytes(ord(name[0]) for _ in range(int(size)))
        if known:
            self.end_headers()
        elif "chunked" in words:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(body), 1000):
                part = body[at:at + 1000]
                self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(part), part))
            self.wfile.write(b"0\\r\\n\\r\\n")
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if "stalls" in words:
                self.wfile.write(body[:1000])
                time.sleep(600)
            elif self.command == "GET":
                self.wfile.write(body)

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(json.dumps({"method": "POST", "path": self.path, "status": 200}))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])

    def log_message(self, *_):
        pass

class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 100

server = Server(("::", int(sys.argv[1])), Handler)
print(json.dumps({"event": "serves"}))
server.serve_forever()
"""


# Fetches a large object and reads none of it until asked, then all; says how many bytes that was.
SLOW = """
import json, socket, sys
peer = socket.socket()
peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50_000)
peer.connect((sys.argv[1], 80))
peer.sendall(b"GET %s HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n\\r\\n" % sys.argv[2].encode())
first = peer.recv(100, socket.MSG_WAITALL)
print(json.dumps({"event": "begun"}))
sys.stdin.readline()
total = len(first)
while data := peer.recv(65536):
    total += len(data)
print(json.dumps({"event": "read", "bytes": total}))
"""


def cache(net: Network, size: int = 10_000_000) -> Program:
    return net.proxy("cache", {"cache": {"size": size}, "ports": [80]})


def curl(net: Network, *words: str) -> str:
    return net.run(CLIENT, "curl", "--silent", "--show-error", "--max-time", "60", *words)


def status(net: Network, url: str, *words: str) -> tuple[str, str]:
    """The status of a response, and what the cache says of it."""
    form = "%{http_code}|%header{cache-status}"
    code, _, said = curl(net, "-o", "/dev/null", "-w", form, *words, url).partition("|")
    return code, said.removeprefix("tcplab; ")


def sockets(net: Network) -> list[str]:
    """Bytes that wait in the router's sockets: to be read and to be sent, of each."""
    return net.run(ROUTER, "ss", "-Htn", "state", "established").splitlines()
