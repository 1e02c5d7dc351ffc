"""The HTTP cache on the real stack: the simulator's hits and misses, and any client and server."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tcplab.results import Run

from .beside import CLIENT, GONE, HOST, ROUTER, SERVER, Network, Program

ASKED = ["page", "object", "offset", "cache"]

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
# Answers whatever comes, with text that is not HTTP.
SHOUTER = """
import json, socket
listener = socket.create_server(("0.0.0.0", 80))
print(json.dumps({"event": "serves"}))
while True:
    peer, _ = listener.accept()
    while data := peer.recv(100):
        peer.sendall(data.upper())
    peer.close()
"""


NGINX = """
user root;
daemon off;
pid DIR/pid;
events {}
http {
    log_format asked '$request_method $uri $status';
    access_log DIR/access asked;
    client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3;
    uwsgi_temp_path DIR/t4; scgi_temp_path DIR/t5;
    types { text/plain txt; }
    default_type text/plain;
    gzip on;
    gzip_vary on;
    gzip_types text/plain;
    gzip_proxied any;
    server {
        listen 80;
        listen [::]:80;
        root DIR;
        location / { add_header Cache-Control max-age=60; }
        location = /file { gzip off; add_header Cache-Control max-age=60; }
        location /stale/ { gzip off; alias DIR/; add_header Cache-Control max-age=0; }
    }
}
"""


def network(**cache: Any) -> dict[str, Any]:
    nodes = ["client", {"name": "gateway", "kind": "router", "cache": cache}, "server"]
    links = [
        {"ends": ["client", "gateway"], "rate": "100 Mbit/s", "delay": "1 ms"},
        {"ends": ["gateway", "server"], "rate": "20 Mbit/s", "delay": "20 ms"},
    ]
    return {"nodes": nodes, "links": links}


def web(**more: Any) -> dict[str, Any]:
    common = {"name": "web", "kind": "http", "from": "client", "to": "server", "connections": 1}
    return {**common, "sizes": ["1 kB", "20 kB", "100 kB"], "objects": 40, **more}


@pytest.mark.parametrize(
    ("ip", "size", "more"),
    [
        (4, "10 MB", {"page": 10, "count": 6}),
        # Too small for all: what was used least recently goes.
        (6, "300 kB", {"page": 10, "count": 12}),
        (4, "10 MB", {"page": 10, "count": 6, "ranges": 2}),
        (4, "10 MB", {"page": 10, "count": 4, "max_age": "0 s"}),
    ],
)
def test_both_engines_hit_and_miss_the_same(
    ip: int, size: str, more: dict[str, Any], run: Callable[..., Run]
) -> None:
    runs = {
        engine: run(network(size=size), [web(ip=ip, **more)], engine=engine, timeout="60 s", seed=3)
        for engine in ("sim", "kernel")
    }
    answers = {engine: done.fetches.sort("time").select(ASKED).rows() for engine, done in runs.items()}
    assert answers["kernel"] == answers["sim"]
    outcomes = set(runs["kernel"].fetches["cache"])
    stored = "revalidated" if "max_age" in more else "hit"
    assert outcomes == ({"miss"} if "ranges" in more else {"miss", stored})
    for done in runs.values():
        assert done.flows["complete"].all()
        rows = done.fetches.to_dicts()
        assert all(row["first_byte"] >= 40_000_000 for row in rows if row["cache"] != "hit"), "a round trip"
        assert set(done.legs["leg"]) == {"client", "server"}
        assert done.legs["exposed"].sum() == 0


def test_beside_an_accelerator_each_has_its_own_flows(run: Callable[..., Run]) -> None:
    both = network()
    both["nodes"][1]["accelerate"] = {"towards_server": {"cc": "reno"}}
    bulk = {"name": "bulk", "kind": "tcp", "from": "client", "to": "server", "bytes": "1 MB"}
    done = run(both, [web(page=5, count=4), bulk], timeout="60 s")
    assert done.flows["complete"].all()
    assert set(done.fetches["cache"]) == {"hit", "miss"}
    facts = done.manifest.facts["nodes"]["gateway"]
    assert (facts["accelerator"]["accepted"], facts["cache"]["accepted"]) == (1, 1)


@pytest.fixture
def origin(net: Network) -> Program:
    server = net.start(SERVER, ORIGIN, "80")
    server.next(event="serves")
    return server


def cache(net: Network, size: int = 10_000_000) -> Program:
    return net.proxy("cache", {"cache": {"size": size}, "ports": [80]})


def curl(net: Network, *words: str) -> str:
    return net.run(CLIENT, "curl", "--silent", "--show-error", "--max-time", "60", *words)


def status(net: Network, url: str, *words: str) -> tuple[str, str]:
    """The status of a response, and what the cache says of it."""
    form = "%{http_code}|%header{cache-status}"
    code, _, said = curl(net, "-o", "/dev/null", "-w", form, *words, url).partition("|")
    return code, said.removeprefix("tcplab; ")


@pytest.mark.parametrize("ip", [4, 6])
def test_curl_and_wget_get_it_once_from_the_server(ip: int, net: Network, tmp_path: Path) -> None:
    """With the server that Python has: no ages, no entity tags, HTTP/1.0."""
    body = os.urandom(1_000_000)
    (tmp_path / "file").write_bytes(body)
    # A tenth of its age is for how long it is fresh (RFC 9111, section 4.2.2).
    past = time.time() - 100_000
    os.utime(tmp_path / "file", (past, past))
    server = net.command(SERVER, "python3", "-u", "-m", "http.server", "--bind", "::", "80")
    log = tmp_path / "log"
    with log.open("wb") as file:
        serving = subprocess.Popen(server, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=file)
    try:
        url = f"http://{HOST[ip]}/file"
        curl(net, "-o", "/dev/null", "--retry", "20", "--retry-connrefused", url)
        before = log.read_text(encoding="utf-8").count("GET /file")
        proxy = cache(net)
        got = [tmp_path / str(number) for number in range(3)]
        curl(net, "-o", str(got[0]), url)
        net.run(CLIENT, "wget", "--quiet", "--timeout=60", "-O", str(got[1]), url)
        said = curl(net, "-o", str(got[2]), "-w", "%header{cache-status}|%header{age}", url)
        assert said.startswith("tcplab; hit|")
        assert said.partition("|")[2].isdecimal()
        digests = {hashlib.sha256(one.read_bytes()).digest() for one in got}
        assert digests == {hashlib.sha256(body).digest()}
        assert log.read_text(encoding="utf-8").count("GET /file") - before == 1
        counts = proxy.end()
        assert (counts["hits"], counts["misses"], counts["broken"]) == (2, 1, 0)
        assert counts["memory"] == 1_000_000 < counts["stored"] < 1_001_000
    finally:
        serving.kill()
        serving.wait(60)


def test_what_is_stale_is_confirmed_with_a_head(net: Network, origin: Program) -> None:
    cache(net)
    url = f"http://{HOST[4]}/a/5000/0"
    assert status(net, url) == ("200", "fwd=uri-miss")
    assert status(net, url) == ("200", "fwd=stale; fwd-status=304")
    assert len(curl(net, url)) == 5000
    fresh = f"http://{HOST[4]}/b/5000/60"
    assert status(net, fresh) == ("200", "fwd=uri-miss")
    assert status(net, fresh, "-H", "Cache-Control: no-cache") == ("200", "fwd=request; fwd-status=304")
    assert status(net, fresh, "-H", 'If-None-Match: "b"') == ("304", "hit")
    assert status(net, fresh, "-H", 'If-None-Match: "x"') == ("200", "hit")
    statuses = [origin.next(method="GET")["status"] for _ in range(5)]
    assert statuses == [200, 304, 304, 200, 304]


def test_ranges_and_heads_come_from_a_stored_object(net: Network, origin: Program) -> None:
    cache(net)
    url = f"http://{HOST[4]}/r/5000/60"
    # Of what is not stored a range is passed on, and a head is not an object.
    assert status(net, url, "-r", "0-99") == ("200", "fwd=uri-miss"), "this server has no ranges"
    assert origin.next(path="/r/5000/60")["range"] == "bytes=0-99"
    other = f"http://{HOST[4]}/h/5000/60"
    assert status(net, other, "--head") == ("200", "fwd=uri-miss")
    assert status(net, other, "--head") == ("200", "fwd=uri-miss")
    # Now it is.
    assert status(net, url, "-r", "0-99") == ("206", "hit")
    assert status(net, url, "-r", "4990-") == ("206", "hit")
    assert status(net, url, "-r", "5000-") == ("416", "hit")
    assert curl(net, "-r", "100-299", url) == "r" * 200
    head = curl(net, "--head", url).lower()
    assert head.startswith("http/1.1 200 ok")
    assert "content-length: 5000\r\n" in head
    assert "cache-status: tcplab; hit\r\n" in head
    assert status(net, url, "-r", "0-99", "-H", 'If-Range: "old"') == ("200", "hit")


def test_bodies_in_chunks_and_variants(net: Network, origin: Program) -> None:
    cache(net)
    url = f"http://{HOST[4]}/c/4500/60/chunked"
    assert curl(net, url) == curl(net, url) == curl(net, "--http1.0", url) == "c" * 4500
    assert status(net, url)[1] == "hit"
    # A client of HTTP/1.0 has no chunks.
    assert curl(net, "--http1.0", f"http://{HOST[4]}/d/4500/60/chunked") == "d" * 4500
    vary = f"http://{HOST[4]}/v/10/60/vary"
    german, french = ("-H", "Accept-Language: de"), ("-H", "Accept-Language: fr")
    said = [status(net, vary, *one)[1] for one in (german, german, french, french)]
    assert said == ["fwd=uri-miss", "hit", "fwd=vary-miss", "hit"]


def test_what_is_not_for_a_cache_passes(net: Network, origin: Program) -> None:
    proxy = cache(net)
    unstored = f"http://{HOST[4]}/u/100/60/unstored"
    assert [status(net, unstored)[1] for _ in range(2)] == ["fwd=uri-miss"] * 2
    url = f"http://{HOST[4]}/p/100/60"
    assert [status(net, url)[1] for _ in range(2)] == ["fwd=uri-miss", "hit"]
    # curl waits for a 100 Continue before a body of this size.
    body = "0123456789" * 200_000
    path = Path(f"/tmp/tcplab-cache-{os.getpid()}")
    try:
        path.write_text(body, encoding="ascii")
        assert curl(net, "--data-binary", f"@{path}", url) == body[::-1]
    finally:
        path.unlink(missing_ok=True)
    assert status(net, url)[1] == "fwd=uri-miss", "what was changed is not stored any longer"
    assert proxy.end()["passed"] == 1


def test_other_protocols_pass(net: Network) -> None:
    net.start(SERVER, SHOUTER).next(event="serves")
    proxy = cache(net)
    talk = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 80), 30)
for word in (b"\\x01\\x02 one", b"two"):
    peer.sendall(word)
    assert peer.recv(100) == word.upper()
peer.shutdown(socket.SHUT_WR)
assert peer.recv(100) == b""
"""
    # Words that a request could begin with, too: after three seconds it is clear that none follows.
    for code in (talk, talk.replace("\\x01\\x02 one", "one")):
        net.run(CLIENT, "python3", "-c", code, HOST[4])
    counts = proxy.end()
    assert (counts["passed"], counts["broken"]) == (2, 0)


def test_a_protocol_in_which_the_server_speaks_first_passes(net: Network) -> None:
    greeter = """
import json, socket
listener = socket.create_server(("0.0.0.0", 80))
print(json.dumps({"event": "serves"}))
while True:
    peer, _ = listener.accept()
    peer.sendall(b"220 welcome")
    while data := peer.recv(100):
        peer.sendall(data.upper())
    peer.close()
"""
    net.start(SERVER, greeter).next(event="serves")
    proxy = cache(net)
    talk = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 80), 30)
assert peer.recv(100) == b"220 welcome"
peer.sendall(b"get x")
assert peer.recv(100) == b"GET X"
peer.shutdown(socket.SHUT_WR)
assert peer.recv(100) == b""
"""
    net.run(CLIENT, "python3", "-c", talk, HOST[4])
    counts = proxy.end()
    assert (counts["passed"], counts["broken"]) == (1, 0)


def test_a_client_that_takes_its_time_is_served(net: Network, origin: Program) -> None:
    """As a browser that connects before it has anything to ask."""
    proxy = cache(net)
    late = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 80), 30)
time.sleep(2)
peer.sendall(b"GET /l/5/60 HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n\\r\\n")
said = b""
while data := peer.recv(1000):
    said += data
assert said.endswith(b"lllll"), said
"""
    for _ in range(2):
        net.run(CLIENT, "python3", "-c", late, HOST[4])
    counts = proxy.end()
    assert (counts["passed"], counts["broken"], counts["hits"], counts["misses"]) == (0, 0, 1, 1)


@pytest.mark.parametrize("gone", [CLIENT, SERVER])
def test_an_end_that_vanishes_is_given_up_after_the_user_timeout(
    gone: str, net: Network, origin: Program
) -> None:
    settings = {"size": 10_000_000, "user_timeout": 3 * 10**9}
    proxy = net.proxy("cache", {"cache": settings, "ports": [80]})
    slow = net.start(CLIENT, SLOW, HOST[4], "/z/30000000/60")
    slow.next(event="begun")
    net.run(gone, "nft", GONE)
    if gone == SERVER:
        slow.tell({})
    # Linux would wait for 15 minutes or longer. Counts come each second.
    reports = (proxy.next(event="counts", accepted=1) for _ in range(60))
    said = next(said for said in reports if said["open"] == 0)
    assert (said["broken"], said["memory"], said["stored"]) == (1, 0, 0)
    assert sockets(net) == []


def test_nginx_behind_it_is_asked_once(net: Network, tmp_path: Path) -> None:
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed: apt install nginx-light")
    body = os.urandom(200_000)
    (tmp_path / "file").write_bytes(body)
    (tmp_path / "text").write_text("0123456789\n" * 5000, encoding="ascii")
    (tmp_path / "nginx.conf").write_text(NGINX.replace("DIR", str(tmp_path)), encoding="ascii")
    command = net.command(SERVER, program, "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "errors"))
    nginx = subprocess.Popen(command)
    try:
        url = f"http://{HOST[4]}"
        curl(net, "-o", "/dev/null", "--retry", "20", "--retry-connrefused", f"{url}/ready")
        proxy = cache(net)
        assert [status(net, f"{url}/file")[1] for _ in range(2)] == ["fwd=uri-miss", "hit"]
        assert status(net, f"{url}/file", "-r", "100-199") == ("206", "hit")
        got = tmp_path / "got"
        curl(net, "-o", str(got), "-r", "1000-", f"{url}/file")
        assert got.read_bytes() == body[1000:]
        # Chunks, and a variant by Accept-Encoding.
        packed = ("-H", "Accept-Encoding: gzip")
        assert status(net, f"{url}/text", *packed) == ("200", "fwd=uri-miss")
        assert status(net, f"{url}/text", *packed) == ("200", "hit")
        assert curl(net, "--compressed", f"{url}/text") == "0123456789\n" * 5000
        # Stale at once, and confirmed by its entity tag.
        assert status(net, f"{url}/stale/file") == ("200", "fwd=uri-miss")
        assert status(net, f"{url}/stale/file") == ("200", "fwd=stale; fwd-status=304")
        assert status(net, f"{url}/nothing")[0] == "404"
        assert proxy.end()["broken"] == 0
        asked = (tmp_path / "access").read_text(encoding="utf-8").splitlines()
        assert asked.count("GET /file 200") == 1
        assert asked.count("GET /stale/file 304") == 1
    finally:
        nginx.terminate()
        nginx.wait(60)


def test_a_browser_loads_a_page_from_it(net: Network, tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed: apt install chromium")
    names = [f"part{number}.js" for number in range(12)]
    scripts = "".join(f'<script src="{name}"></script>' for name in names)
    page = f"<!doctype html><body>{scripts}<p id=sum></p><script>sum.textContent = 'sum ' + total</script>"
    (tmp_path / "index.html").write_text(page, encoding="ascii")
    for name in names:
        code = "globalThis.total = (globalThis.total ?? 0) + 7;" + "/" * 20_000
        (tmp_path / name).write_text(code, encoding="ascii")
        past = time.time() - 100_000
        os.utime(tmp_path / name, (past, past))
    serve = net.command(SERVER, "python3", "-u", "-m", "http.server", "--bind", "::", "80")
    server = subprocess.Popen(serve, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://{HOST[4]}/index.html"
        curl(net, "-o", "/dev/null", "--retry", "20", "--retry-connrefused", url)
        proxy = cache(net)
        for number in range(2):
            words = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/{number}")
            shown = net.run(CLIENT, browser, *words, "--virtual-time-budget=20000", "--dump-dom", url)
            assert "sum 84" in shown
        counts = proxy.end()
        assert counts["misses"] >= len(names)
        assert counts["hits"] >= len(names), "the second browser has nothing stored of its own"
        assert counts["broken"] <= counts["accepted"]
    finally:
        server.kill()
        server.wait(60)


def test_without_a_server_there_is_a_502(net: Network, origin: Program) -> None:
    cache(net)
    url = f"http://{HOST[4]}/a/100/60"
    assert status(net, url) == ("200", "fwd=uri-miss")
    origin.kill()
    assert status(net, url) == ("200", "hit")
    assert status(net, f"http://{HOST[4]}/b/100/60") == ("502", "fwd=uri-miss")
    assert status(net, f"http://{HOST[4]}/b/100/60", "--data", "x") == ("502", "fwd=method")
    assert status(net, url, "-H", "Cache-Control: no-cache") == ("502", "fwd=request")


def test_it_holds_no_more_than_its_size(net: Network, origin: Program) -> None:
    proxy = cache(net, 100_000)
    urls = [f"http://{HOST[4]}/{letter}/40000/60" for letter in "abc"]
    for url in urls:
        curl(net, "-o", "/dev/null", url)
    # Only two fit. The least recently used has gone.
    assert [status(net, url)[1] for url in (urls[1], urls[2], urls[0])] == ["hit", "hit", "fwd=uri-miss"]
    large = f"http://{HOST[4]}/l/200000/60"
    assert [status(net, large)[1] for _ in range(2)] == ["fwd=uri-miss"] * 2
    counts = proxy.end()
    assert counts["stored"] <= 100_000
    assert counts["memory"] == 80_000


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


def test_a_client_that_does_not_read_holds_no_memory_of_the_cache(net: Network, origin: Program) -> None:
    """An object larger than the cache is neither stored nor read ahead; others are served meanwhile."""
    legs = {
        leg: {"send_buffer": 100_000, "receive_buffer": 100_000}
        for leg in ("towards_client", "towards_server")
    }
    proxy = net.proxy("cache", {"cache": {"size": 1_000_000}, "ports": [80], **legs})
    slow = net.start(CLIENT, SLOW, HOST[4], "/z/30000000/60")
    slow.next(event="begun")
    url = f"http://{HOST[4]}/a/100/60"
    assert [status(net, url)[1] for _ in range(2)] == ["fwd=uri-miss", "hit"]
    held = [int(one.split()[0]) + int(one.split()[1]) for one in sockets(net)]
    assert sum(held) < 30_000_000 / 10, "the rest is still the server's"
    said = proxy.next(event="counts", hits=1)
    assert said["memory"] == 100
    slow.tell({})
    assert slow.next(event="read")["bytes"] > 30_000_000
    assert proxy.end()["broken"] == 0


def sockets(net: Network) -> list[str]:
    """Bytes that wait in the router's sockets: to be read and to be sent, of each."""
    return net.run(ROUTER, "ss", "-Htn", "state", "established").splitlines()


def test_a_client_that_leaves_takes_nothing_with_it(net: Network, origin: Program, tmp_path: Path) -> None:
    """Half an object is not stored."""
    proxy = cache(net)
    path = "/s/5000/60/stalls"
    part = tmp_path / "part"
    words = ["curl", "--silent", "--no-buffer", "-o", str(part), f"http://{HOST[4]}{path}"]
    fetch = subprocess.Popen(net.command(CLIENT, *words))
    while not part.exists() or part.stat().st_size < 1000:
        assert fetch.poll() is None
        time.sleep(0.05)
    assert proxy.next(event="counts", misses=1)["memory"] == 1000
    fetch.kill()
    fetch.wait(60)
    origin.kill()
    assert status(net, f"http://{HOST[4]}{path}")[0] == "502", "nothing of it is stored"
    said = proxy.next(event="counts", open=0, misses=2)
    assert (said["memory"], said["stored"]) == (0, 0)


def test_a_server_that_has_closed_the_connection_is_asked_anew(net: Network, origin: Program) -> None:
    """And requests that come at once are answered in their order."""
    cache(net)
    talk = """
import json, socket, sys
peer = socket.create_connection((sys.argv[1], 80), 60)
file = peer.makefile("rb")
def fetch(*paths):
    for path in paths:
        peer.sendall(b"GET %s HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n" % path.encode())
    bodies = []
    for _ in paths:
        assert file.readline().startswith(b"HTTP/1.1 200")
        length = 0
        while line := file.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split()[1])
        bodies.append(file.read(length).decode())
    return bodies
assert fetch("/a/5/60", "/b/5/60", "/a/5/60") == ["aaaaa", "bbbbb", "aaaaa"]
print(json.dumps({"event": "fetched"}))
sys.stdin.readline()
assert fetch("/c/5/60", "/b/5/60") == ["ccccc", "bbbbb"]
print(json.dumps({"event": "done"}))
"""
    client = net.start(CLIENT, talk, HOST[4])
    client.next(event="fetched")
    origin.kill()
    net.start(SERVER, ORIGIN, "80").next(event="serves")
    client.tell({})
    client.next(event="done")


def test_many_clients_at_a_time_get_what_they_ask_for(net: Network, origin: Program, tmp_path: Path) -> None:
    proxy = cache(net, 1_000_000)
    letters = "abcdefghijklmnopqrst"
    urls = [f"http://{HOST[4]}/{letter}/{(at + 1) * 5000}/60" for at, letter in enumerate(letters)] * 10
    lines = [f'url = "{url}"\noutput = "{tmp_path}/{number}"\n' for number, url in enumerate(urls)]
    (tmp_path / "urls").write_text("".join(lines), encoding="ascii")
    curl(net, "--parallel", "--parallel-max", "50", "--parallel-immediate", "-K", str(tmp_path / "urls"))
    for number, url in enumerate(urls):
        letter, size = url.split("/")[3:5]
        assert (tmp_path / str(number)).read_text(encoding="ascii") == letter * int(size), url
    counts = proxy.end()
    assert counts["hits"] + counts["misses"] == len(urls)
    assert counts["hits"] > 0
    assert counts["broken"] == 0
    assert counts["stored"] <= 1_000_000


def test_its_death_ends_fetches_with_an_error(net: Network, origin: Program, tmp_path: Path) -> None:
    """Connections that come afterwards pass the router."""
    proxy = cache(net)
    url = f"http://{HOST[4]}/s/5000/60/stalls"
    part = tmp_path / "part"
    fetch = subprocess.Popen(net.command(CLIENT, "curl", "--silent", "--no-buffer", "-o", str(part), url))
    origin.next(path="/s/5000/60/stalls")
    while not part.exists() or part.stat().st_size < 1000:
        assert fetch.poll() is None
        time.sleep(0.05)
    proxy.kill()
    assert fetch.wait(60) == 56, "recv failure: connection reset by peer (curl(1))"
    assert status(net, f"http://{HOST[4]}/a/100/60") == ("200", "")
