"""The page under fingers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from .conftest import Served, visited
from .steps import chart, opened, simulated


@pytest.fixture
def touched(browser: Browser, served: Served) -> Iterator[Page]:
    """A page on a touch screen."""
    page = visited(browser, viewport={"width": 1024, "height": 768}, has_touch=True)
    yield page
    page.context.close()


def finger(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Put a finger down, move it and lift it."""
    screen = page.context.new_cdp_session(page)

    def send(kind: str, *points: tuple[float, float]) -> None:
        screen.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]}
        )

    send("touchStart", start)
    for step in range(1, 9):
        send("touchMove", tuple(a + (b - a) * step / 8 for a, b in zip(start, end, strict=True)))  # type: ignore[arg-type]
    send("touchEnd")


def at(element: Locator, share: float) -> tuple[float, float]:
    """A point of an element, at this share of its width."""
    box = element.bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def test_a_finger_moves_links_and_sends_a_flow(touched: Page, served: Served) -> None:
    opened(
        touched,
        served,
        "tcplab: 1\nname: small\nnetwork: {nodes: [a, b], links: []}\nflows: []\nduration: 1 s\n",
    )
    a, b = touched.locator("[data-node=a]"), touched.locator("[data-node=b]")
    before = at(b, 0.5)[0]
    finger(touched, at(b, 0.5), (before + 60, at(b, 0.5)[1]))
    expect(touched.get_by_role("button", name="Undo")).to_be_enabled()
    assert at(b, 0.5)[0] > before + 30
    for tool in ("Link", "Flow"):
        chosen = touched.get_by_role("button", name=tool, exact=True)
        chosen.click()
        expect(chosen).to_have_attribute("aria-pressed", "true")
        a.tap()
        expect(a).to_have_class(re.compile("selected"))
        finger(touched, at(a.locator(".react-flow__handle-right"), 0.5), at(b, 0.1))
        expect(touched.locator(f".react-flow__edge-{tool.lower()}")).to_have_count(1)
    simulated(touched)


def test_a_finger_zooms_into_curves_and_a_double_tap_shows_all(touched: Page, served: Served) -> None:
    opened(touched, served)
    simulated(touched)
    plot = chart(touched, "Goodput").locator(".u-over")
    whole = touched.get_by_role("button", name="Whole run")
    finger(touched, at(plot, 0.25), at(plot, 0.5))
    expect(whole).to_be_visible()
    plot.tap()
    plot.tap()
    expect(whole).to_have_count(0)
