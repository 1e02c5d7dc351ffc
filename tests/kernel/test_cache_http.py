"""The store of a cache on the real stack: ages, ranges, heads, variants (RFC 9111)."""

from __future__ import annotations

from pathlib import Path

from .beside import CLIENT, HOST, SERVER, Network, Program
from .cached import ORIGIN, cache, curl, status


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
    client.send({})
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
