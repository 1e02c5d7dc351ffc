"""Programs that others wrote, through a cache on the real stack: curl, wget, nginx and a browser."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .beside import CLIENT, HOST, SERVER, Network
from .cached import cache, curl, status

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
