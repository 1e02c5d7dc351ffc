"""A real server of `tcplab ui` over a directory of its own, and Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tcplab.server.app import PAGE

# How long the page may take on a machine that is busy with something else: no verdict rests on it.
PATIENCE = 120_000
TOKEN = "a-token-for-browsers"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One browser at a time: these tests stay in one of pytest-xdist's processes."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("browser"))


@dataclass
class Served:
    """`tcplab ui`, which can be killed and started again on the same port."""

    root: Path
    port: int
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Without the token."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def key(self) -> str:
        """As it is printed, with the token."""
        return f"{self.address}#token={TOKEN}"

    def start(self) -> None:
        """Start, and wait until it says that it listens."""
        command = [
            sys.executable,
            "-m",
            "tcplab",
            "ui",
            str(self.root),
            "--no-browser",
            "--port",
            str(self.port),
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TCPLAB_UI_TOKEN": TOKEN}
        )
        assert self.process.stdout is not None
        assert "tcplab ui shows" in self.process.stdout.readline()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server over an empty directory."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make ui")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Served(tmp_path / "lab", port)
    server.root.mkdir()
    server.start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: scripts/setup develop")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> BrowserContext:
    """For the pages of all tests: one for each takes as long as its page. Its first page stays empty."""
    context = patient(browser, viewport={"width": 1280, "height": 800})
    context.new_page()
    return context


def patient(browser: Browser, **options: Any) -> BrowserContext:
    """A context whose pages wait as long as the machine needs."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    context.set_default_navigation_timeout(PATIENCE)
    return context


def visited(browser: Browser, **options: Any) -> Page:
    """An empty page of a context of its own."""
    return patient(browser, **options).new_page()


# The browser's own words about a server that is away, or interfaces of the machine that came or went.
AWAY = "net::ERR_"


@pytest.fixture
def page(context: BrowserContext, served: Served, request: pytest.FixtureRequest) -> Iterator[Page]:
    """An empty page, which is closed before the server; by its end its console must be empty.

    Nothing of it is left: a later server may get the same port.

    A test that has the server refuse something says what: the browser itself complains of that. Nothing is
    requested from anywhere but this server, so the page works without a network.
    """
    refused = [str(mark.args[0]) for mark in request.node.iter_markers("refused")]
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    elsewhere: list[str] = []
    own = (served.address, served.address.replace("http", "ws", 1), "data:", "blob:")
    made.on("request", lambda asked: None if asked.url.startswith(own) else elsewhere.append(asked.url))
    made.on("websocket", lambda opened: None if opened.url.startswith(own) else elsewhere.append(opened.url))
    made.on("console", lambda said: problems.append(f"{said.type}: {said.text} {said.location['url']}"))
    yield made
    empty, *others = context.pages
    for opened in others:
        opened.close()
    context.clear_cookies()
    context.clear_permissions()
    left = {"origin": served.address.rstrip("/"), "storageTypes": "all"}
    context.new_cdp_session(empty).send("Storage.clearDataForOrigin", left)
    assert elsewhere == []
    assert [one for one in problems if not any(known in one for known in (AWAY, *refused))] == []
