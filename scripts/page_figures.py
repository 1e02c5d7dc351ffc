"""How fast the page of `tcplab ui` is, in Chromium against the real server.

Targets: first paint 1 s, edit to curve 300 ms, 60 frames a second with 50 nodes and 100 flows, bundle 1.5 MB.
"""

from __future__ import annotations

import gzip
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from tcplab.server.app import PAGE

_TIMES = 5
_PLAYED = 4.0
_SMALL = """\
tcplab: 1
name: small
network:
  path: {rate: 20 Mbit/s, rtt: 40 ms, queue: 1 BDP}
flows:
  - {name: bulk, kind: tcp, cc: cubic}
duration: 30 s
seed: 1
"""
# From a key press to the frame in which the new curves stand.
_EDIT = """() => new Promise((done) => {
    const status = document.querySelector("[data-took]");
    const begun = performance.now();
    new MutationObserver((_, watch) => {
        if (status.dataset.busy !== "false") return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
    }).observe(status, {attributes: true, attributeFilter: ["data-took", "data-busy"]});
    document.execCommand("insertText", false, String(Math.floor(Math.random() * 8) + 1));
})"""
_FRAMES = """(seconds) => new Promise((done) => {
    const begun = performance.now();
    const longest = {gap: 0, last: begun, frames: 0};
    const step = (now) => {
        longest.frames += 1;
        longest.gap = Math.max(longest.gap, now - longest.last);
        longest.last = now;
        if (now - begun < seconds * 1000) requestAnimationFrame(step);
        else done([longest.frames / ((now - begun) / 1000), longest.gap]);
    };
    requestAnimationFrame(step);
})"""


def main() -> int:
    """Print a line for each figure."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or not (PAGE / "index.html").is_file():
        sys.stderr.write("chromium and the page are needed: scripts/setup develop, make ui\n")
        return 3
    size = sum(len(gzip.compress(file.read_bytes(), 9)) for file in PAGE.rglob("*") if file.is_file())
    _say("bundle, compressed", f"{size / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory() as where, sync_playwright() as playwright:
        root = Path(where)
        (root / "small.yaml").write_text(_SMALL)
        (root / "large.yaml").write_text(large())
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with served(root) as address:
            _first_paint(browser, address)
            _edit_to_curve(browser, address)
            _frames(browser, address)
        browser.close()
    return 0


def large() -> str:
    """A network of 50 nodes with 100 flows that share one link."""
    senders, receivers = [f"s{n}" for n in range(24)], [f"d{n}" for n in range(24)]
    nodes = [*senders, *receivers]
    links = [f"{{ends: [{name}, r1], rate: 1 Gbit/s, delay: 1 ms}}" for name in senders]
    links += [f"{{ends: [r2, {name}], rate: 1 Gbit/s, delay: 1 ms}}" for name in receivers]
    links += ["{ends: [r1, r2], rate: 200 Mbit/s, delay: 10 ms, queue: 1 BDP}"]
    flows = [f"{{name: f{n}, kind: tcp, cc: cubic, from: s{n % 24}, to: d{n * 7 % 24}}}" for n in range(100)]
    listed = "".join(f"    - {node}\n" for node in nodes) + "".join(
        f"    - {{name: {name}, kind: router}}\n" for name in ("r1", "r2")
    )
    joined = "".join(f"    - {link}\n" for link in links)
    sent = "".join(f"  - {flow}\n" for flow in flows)
    return (
        f"tcplab: 1\nname: large\nnetwork:\n  nodes:\n{listed}  links:\n{joined}flows:\n{sent}duration: 5 s\n"
    )


def _first_paint(browser: Browser, address: str) -> None:
    times = []
    for _ in range(_TIMES):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector(".topbar")
        asked = "performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint')"
        times.append(page.evaluate(f"{asked}.startTime"))
        context.close()
    _say("first contentful paint", f"{statistics.median(times):.0f} ms")


def _edit_to_curve(browser: Browser, address: str) -> None:
    page = opened(browser, address, "small", 2)
    page.wait_for_selector(".status[data-took]")
    times = []
    for _ in range(2 * _TIMES + 1):
        page.locator(".cm-line", has_text="seed: 1").click()
        page.keyboard.press("End")
        times.append(page.evaluate(_EDIT))
        page.keyboard.press("Control+z")
        page.wait_for_timeout(700)
    times.sort()
    _say("edit to curve, 30 s at 20 Mbit/s", f"{statistics.median(times):.0f} ms, slowest {times[-1]:.0f} ms")
    page.context.close()


def _frames(browser: Browser, address: str) -> None:
    page = opened(browser, address, "large", 50)
    page.get_by_role("tab", name="Packets").click()
    page.get_by_label("Speed").select_option("0.01")
    clock = page.locator(".clock")
    page.get_by_label("Time of the run").fill("2")
    while clock.get_attribute("data-dots") in (None, "0"):
        page.wait_for_timeout(200)
    before, _ = page.evaluate(_FRAMES, 2.0)
    page.get_by_role("button", name="Play", exact=True).click()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    busy = _busy(devtools.send("Performance.getMetrics"))
    rate, gap = page.evaluate(_FRAMES, _PLAYED)
    busy = _busy(devtools.send("Performance.getMetrics")) - busy
    dots = clock.get_attribute("data-dots")
    _say(
        "packets, 50 nodes and 100 flows",
        f"{rate:.0f} frames/s ({before:.0f} while nothing moves), longest gap {gap:.0f} ms, "
        f"{1000 * busy / (rate * _PLAYED):.1f} ms of the page's thread a frame, {dots} packets in the last",
    )
    page.context.close()


def _busy(said: dict[str, list[dict[str, float | str]]]) -> float:
    """Seconds that the page's main thread has worked."""
    return next(float(one["value"]) for one in said["metrics"] if one["name"] == "TaskDuration")


def opened(
    browser: Browser, address: str, name: str, nodes: int, *, width: int = 1280, theme: str = "light"
) -> Page:
    """A page of this width that shows a scenario of so many nodes."""
    viewport = {"width": width, "height": width * 5 // 8}
    context = browser.new_context(viewport=viewport, color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_role("button", name=name, exact=True).click()
    while page.locator(".device").count() != nodes:
        time.sleep(0.1)
    return page


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a server of this directory, with its token."""
    command = [sys.executable, "-m", "tcplab", "ui", str(root), "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        address = server.stdout.readline().strip()
        assert urlsplit(address).fragment.startswith("token=")
        yield address
    finally:
        server.terminate()
        server.wait()


def _say(name: str, figure: str) -> None:
    sys.stdout.write(f"page: {name:<34} {figure}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
