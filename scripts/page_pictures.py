"""The pictures of `tcplab ui` in docs/images, taken of the real page: ui.png and ui-packets.webp.

`scripts/page_pictures.py FOLDER` also writes the page in both themes at 1280 and 1920 wide there, to look at.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from page_figures import opened, served
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

_IMAGES = Path(__file__).parents[1] / "docs" / "images"
_SCENARIO = """\
tcplab: 1
name: two-controls
network:
  nodes:
    - {name: s1}
    - {name: s2}
    - {name: r1, kind: router}
    - {name: r2, kind: router}
    - {name: d1}
    - {name: d2}
  links:
    - {ends: [s1, r1], rate: 100 Mbit/s, delay: 2 ms}
    - {ends: [s2, r1], rate: 100 Mbit/s, delay: 2 ms}
    # The bottleneck.
    - {ends: [r1, r2], rate: 10 Mbit/s, delay: 15 ms, queue: 40 packets}
    - {ends: [r2, d1], rate: 100 Mbit/s, delay: 2 ms}
    - {ends: [r2, d2], rate: 100 Mbit/s, delay: 2 ms}
flows:
  - {name: cubic, kind: tcp, from: s1, to: d1, cc: cubic}
  - {name: bbr, kind: tcp, from: s2, to: d2, cc: bbr2, start: 4 s}
duration: 30 s
"""
# Both flows, soon after the second has started, in steps of simulated time, s.
_FROM, _STEP, _FRAMES = 4.5, 0.004, 40
_WIDTH = 760


def main() -> None:
    """Take them."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as where, sync_playwright() as playwright:
        root = Path(where)
        (root / "two-controls.yaml").write_text(_SCENARIO)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with served(root) as address:
            page = _shown(browser, address, 1280, "light")
            Image.open(io.BytesIO(page.screenshot())).quantize(128).save(_IMAGES / "ui.png", optimize=True)
            _packets(page)
            page.context.close()
            for folder in map(Path, sys.argv[1:]):
                for width in (1280, 1920):
                    for theme in ("light", "dark"):
                        page = _shown(browser, address, width, theme)
                        page.screenshot(path=folder / f"page-{width}-{theme}.png")
                        page.context.close()
        browser.close()


def _shown(browser: Browser, address: str, width: int, theme: str) -> Page:
    page = opened(browser, address, "two-controls", 6, width=width, theme=theme)
    page.wait_for_selector(".status[data-took]")
    page.locator(".arc-label", has_text="bbr").click()
    page.wait_for_timeout(1500)
    return page


def _packets(page: Page) -> None:
    """Packets on their links, as an animation."""
    page.get_by_role("tab", name="Packets").click()
    slider, clock = page.get_by_label("Time of the run"), page.locator(".clock")
    box = page.locator(".canvas").bounding_box()
    assert box is not None
    frames = []
    for number in range(_FRAMES):
        slider.fill(f"{_FROM + number * _STEP:.3f}")
        while clock.get_attribute("data-dots") in (None, "0"):
            page.wait_for_timeout(50)
        page.wait_for_timeout(60)
        taken = Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB")
        frames.append(taken.resize((_WIDTH, round(taken.height * _WIDTH / taken.width))))
    frames[0].save(
        _IMAGES / "ui-packets.webp", save_all=True, append_images=frames[1:], duration=80, loop=0, quality=55
    )


if __name__ == "__main__":
    main()
