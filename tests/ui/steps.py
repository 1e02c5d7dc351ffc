"""Steps that many tests of the page take, and states that they wait for."""

from __future__ import annotations

import re

from playwright.sync_api import FilePayload, Locator, Page, expect

from .conftest import PATIENCE, Served

expect.set_options(timeout=PATIENCE)

SCENARIO = """# Kept.
tcplab: 1
name: small
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: 20 packets}
flows:
  - {name: bulk, kind: tcp, cc: reno}   # the only one
duration: 3 s
"""

PASTE = """(editor, text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    editor.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def opened(page: Page, served: Served, text: str = SCENARIO, nodes: int = 2) -> None:
    """The page with this scenario open."""
    (served.root / "small.yaml").write_text(text)
    page.goto(served.key)
    page.get_by_role("button", name="small", exact=True).click()
    expect(page.locator(".device")).to_have_count(nodes)
    settled(page)


def settled(page: Page) -> None:
    """Wait until the drawing is laid out and seen whole."""
    expect(page.get_by_role("region", name="Network", exact=True)).to_have_attribute("aria-busy", "false")


def chart(page: Page, title: str) -> Locator:
    return page.locator(f".chart[data-panel='{title}']")


def write(page: Page, text: str) -> None:
    """Replace the editor's text."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    # Text that Chromium itself inserts over several lines gets style attributes, which the policy refuses.
    page.locator(".cm-content").evaluate(PASTE, text)


def simulated(page: Page) -> None:
    """Wait for the simulation's curve, before there are others."""
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "1")


def text_of(page: Page) -> str:
    """The text in the editor."""
    return "\n".join(page.locator(".cm-line").all_inner_texts())


def reads(page: Page, text: str) -> None:
    """Wait until this stands in the editor."""
    expect(page.locator(".cm-line")).to_have_text([*text.rstrip().split("\n"), ""])


def drag(page: Page, start: str, end: str) -> None:
    """From the right edge of one node to the left edge of another."""
    page.locator(f"[data-node={start}]").hover()
    a = page.locator(f"[data-node={start}] .react-flow__handle-right").bounding_box()
    b = page.locator(f"[data-node={end}] .react-flow__handle-left").bounding_box()
    assert a is not None
    assert b is not None
    page.mouse.move(a["x"] + a["width"] / 2, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(b["x"] + 20, b["y"] + 20, steps=6)
    page.mouse.move(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2, steps=4)
    page.mouse.up()


def group(page: Page, name: str) -> Locator:
    """The settings of this name, opened; not those of a link's directions, which are further below."""
    named = page.locator("> summary", has_text=re.compile(rf"^{name}"))
    outer = ".inspector > .group, .inspector > details:not(.group) > .group"
    found = page.locator(outer).filter(has=named)
    if not found.is_visible():
        page.locator(".inspector > details > summary", has_text="More settings").click()
    found.locator("summary").first.click()
    return found


def open_file(page: Page, name: str, text: str) -> None:
    page.get_by_text("New", exact=True).click()
    page.get_by_label("Open a file").set_input_files(
        FilePayload(name=name, mimeType="", buffer=text.encode())
    )
